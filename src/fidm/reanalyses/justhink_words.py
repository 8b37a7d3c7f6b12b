"""What was found in the JUSThink corpus, in sentences, tables and figures; the numbers choose the words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm.datasets.base import Loaded
from fidm.reanalyses import justhink_figures as figures
from fidm.reanalyses.base import Findings
from fidm.reanalyses.justhink_anchor import SCORES
from fidm.reanalyses.justhink_people_words import (
    against,
    drawn_text,
    learning_section,
    learning_verdict,
    limits_section,
    one_row,
    said,
    speech_section,
)
from fidm.report.numbers import number_text, percent_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval

Row = Mapping[str, Any]

MORE_SCORES = {
    **SCORES,
    "edits_after": "changes after it in the attempt",
    "edits_before": SCORES["edits_before"],
}


def sections(findings: Findings, loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first.

    Parameters
    ----------
    findings : Findings
        What the analysis gave.
    loaded : Loaded
        The data.
    """
    return [
        _summary(findings),
        _replay(findings),
        _task(findings),
        _removals(findings),
        _readings(findings),
        speech_section(findings),
        learning_section(findings),
        limits_section(findings),
    ]


# ---------------------------------------------------------------------- what was found


def _summary(findings: Findings) -> dict[str, Any]:
    numbers, tables = findings.numbers, findings.tables
    learned = tables["relations"]
    return section(
        "found",
        "What was found",
        [
            f"{numbers['n_children']} children in {numbers['n_teams']} pairs made {numbers['n_edits']:,} "
            f"changes to their network; {numbers['n_illegal']} of them cannot be replayed, and "
            f"{numbers['n_costs_match']} of {numbers['n_submissions']} submitted costs are those of the "
            f"replayed board. The task was solved exactly on all {numbers['n_sets']:,} sets of tracks.",
            _removal_verdict(tables),
            learning_verdict(learned),
        ],
    )


def _removal_verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    own, cost = one_row(tables["aucs"], score="unexpectedness"), one_row(tables["aucs"], score="cost")
    sure = against(own["low"], own["high"], 0.5, "better than chance", "worse than chance", "not for sure")
    text = (
        f"Of {own['n']:,} laid tracks {own['n_removed']:,} were removed again in the same attempt. "
        f"Unexpectedness tells them with an AUC of {said(own, 'auc')}, "
        f"{sure}; the track's cost alone with {said(cost, 'auc')}. "
    )
    verdict = against(
        own["over_cost_low"], own["over_cost_high"], 0.0,
        "Unexpectedness tells more than cost does",
        "It tells less than cost does",
        "The two do not differ for sure",
    )  # fmt: skip
    odds = tables["odds"].filter(score="unexpectedness")
    if not odds.height:
        return f"{text}{verdict}."
    row = odds.row(0, named=True)
    adds = against(
        row["low"], row["high"], 1.0,
        "still goes with removal", "goes with keeping", "adds nothing that could be told from chance",
    )  # fmt: skip
    return (
        f"{text}{verdict}; with cost, circles and time held fixed, unexpectedness {adds} (odds "
        f"{said(row, 'odds')} per standard deviation)."
    )


# ---------------------------------------------------------------------- the sections behind it


def _replay(findings: Findings) -> dict[str, Any]:
    numbers = findings.numbers
    return section(
        "replay",
        "Can the logs be replayed?",
        [
            f"{numbers['n_edits']:,} changes, {numbers['n_loads']:,} loadings of an earlier solution and "
            f"{numbers['n_submissions']:,} submissions were logged. {numbers['n_illegal']:,} changes are not "
            "possible on the replayed board, because an event before them was not logged: they are left out, "
            "and the replay goes on from its own board, which is right about that track again. "
            f"{numbers['n_costs_match']:,} submitted costs are those of the replayed board. "
            f"{numbers['n_not_joined']:,} submissions of boards that do not join all mines are left out.",
            f"{numbers['n_impossible']:,} of the remaining steps break the rules of the task.",
            "The clocks of logs and transcripts were compared by the robot's lines, which are in both: in "
            f"the team that is farthest off, the median lag is {number_text(numbers['clock_lag_s'])} s."
            if math.isfinite(numbers["clock_lag_s"])
            else "",
        ],
        tables=[
            table_of(
                "slips",
                "What is not right in the logs",
                [text_column("slip", "what it looks like"), column("events"), column("in_teams", "teams")],
                findings.tables["slips"],
                note="A submission may both have another cost and not join all mines.",
            )
        ],
    )


def _task(findings: Findings) -> dict[str, Any]:
    numbers, settings = findings.numbers, findings.record.settings
    return section(
        "task",
        "The task, solved",
        [
            "A state is a set of tracks; an action lays or removes one, or submits. Submitting is possible "
            "where all mines are joined and pays what the network saves, in francs, against laying every "
            f"track; a change costs {settings['change']:g} francs, and rewards are discounted by "
            f"{settings['gamma']:g} a step. Values are those of the best plan. Log-sum-exp as in the paper "
            "would pay a bonus for every change that is larger than its cost, and make changing tracks for "
            "ever the best plan.",
            f"All {numbers['n_sets']:,} sets with {numbers['n_choices']:,} possible choices were solved to a "
            f"residual of {within(numbers['residual'])}. On {_tracks(numbers)} tracks the general solver "
            f"gives the same values, the largest difference being {within(numbers['solver_difference'])}. "
            "From an empty board the best plan submits a network of "
            f"{number_text(numbers['best_plan_cost'])} francs after {numbers['best_plan_changes']} changes; "
            f"the published least cost is {number_text(numbers['least_cost'])}. {numbers['n_teams_optimal']} "
            f"of {numbers['n_teams']} pairs found it.",
            "Submissions do not count as choices: the robot answers each with the distance from the least "
            "cost, so that submitting is also asking. Laying and removing does, for the child who did it.",
            f"Children made {percent_text(numbers['best_shares'])} of their layings in line with a best "
            f"plan. The median η is {number_text(numbers['median_eta'])} per franc, from a median of "
            f"{number_text(numbers['median_edits_counted'])} changes of a child. The η of the two children "
            f"of a pair have a rank correlation of {said(numbers['pair_likeness'])} over "
            f"{numbers['pair_likeness']['n']} pairs.",
        ],
    )


def within(size: float) -> str:
    """Return how small a difference is: at most 1e-12, or what it is."""
    return "at most 1e-12" if size <= 1e-12 else f"{size:.1e}"


def _tracks(numbers: Mapping[str, Any]) -> int:
    return min(12, int(math.log2(numbers["n_sets"])))


def _removals(findings: Findings) -> dict[str, Any]:
    tables = findings.tables
    return section(
        "removals",
        "Are unexpected tracks removed again?",
        [
            "This anchor does not come from the model: whether a track stays is seen in the log. A track "
            "counts as removed if it is taken away in the same attempt before the board is submitted or "
            "replaced by an earlier solution. Unexpectedness is that of the child who laid it, under the "
            "child's own η.",
            _removal_verdict(tables),
            drawn_text(findings),
        ],
        tables=[
            table_of(
                "aucs",
                "What tells the tracks that are removed later",
                [
                    text_column("score", "by"),
                    *with_interval("auc", "AUC", low="low", high="high"),
                    *with_interval("over_cost", "more than cost"),
                    column("n", "laid tracks"),
                    column("n_removed", "removed"),
                    column("n_clusters", "pairs"),
                ],
                _worded(tables["aucs"]),
            ),
            table_of(
                "odds",
                "Odds of removal per standard deviation, the others held fixed",
                [
                    text_column("score", "of"),
                    *with_interval("odds", "odds ratio", low="low", high="high"),
                    column("n", "laid tracks"),
                ],
                _worded(tables["odds"]),
                note="Changes before and after it enter as log(1 + n); early tracks can be removed longer.",
            ),
            table_of(
                "fifths",
                "Removal by fifths of unexpectedness",
                [
                    column("fifth"),
                    column("unexpectedness", "mean unexpectedness"),
                    column("removed", "share removed"),
                    column("n", "laid tracks"),
                ],
                tables["fifths"],
            ),
        ],
        figures=[
            figure(
                "aucs",
                "What tells the tracks that are removed later",
                figures.draw_aucs(tables["aucs"]),
                alt="AUC with interval of unexpectedness, value lost, cost, circles and changes before.",
                table="aucs",
            ),
            figure(
                "fifths",
                "Removal by fifths of unexpectedness",
                figures.draw_fifths(tables["fifths"]),
                alt="Bars of the share of tracks removed later, in five parts from expected to unexpected.",
                table="fifths",
            ),
        ],
    )


def _worded(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("score").replace_strict(MORE_SCORES))


def _readings(findings: Findings) -> dict[str, Any]:
    table = findings.tables["readings"]
    least = table.sort("same_order").row(0, named=True)
    return section(
        "readings",
        "What if the task is read otherwise?",
        [
            f"The AUC of unexpectedness lies between {number_text(table['auc'].min())} and "  # type: ignore[arg-type]
            f"{number_text(table['auc'].max())} under the readings tried. The order of children by η is most "  # type: ignore[arg-type]
            f"different if {least['reading']}: a rank correlation of {number_text(least['same_order'])} with "
            "the order reported here."
        ],
        tables=[
            table_of(
                "readings",
                "Other readings of the task",
                [
                    text_column("reading"),
                    column("same_order", "rank correlation of η with that reported"),
                    *with_interval("auc", "AUC of unexpectedness", low="low", high="high"),
                    column("n", "laid tracks"),
                ],
                table,
            )
        ],
    )
