"""What was found in the JUSThink corpus, in sentences, tables and figures; the numbers choose the words."""

from __future__ import annotations

import math
from typing import Any

from fidm.present.numbers import number_text, percent_text
from fidm.report.parts import column, section, table_of, text_column
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded
from fidm_studies.justhink.people_words import (
    learning_section,
    learning_verdict,
    limits_section,
    speech_section,
)
from fidm_studies.justhink.removal_words import readings_section, removal_verdict, removals_section
from fidm_studies.telling import said


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
        removals_section(findings),
        readings_section(findings),
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
            removal_verdict(tables),
            learning_verdict(learned),
        ],
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
            "None of the remaining steps breaks the rules of the task."
            if not numbers["n_impossible"]
            else f"{numbers['n_impossible']:,} of the remaining steps break the rules of the task.",
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
            f"would, from a τ of about {_trap(settings['change'], findings):.2g} francs on, pay a bonus for "
            "every change that is larger than its cost, and make changing tracks for ever the best plan.",
            f"All {numbers['n_sets']:,} sets with {numbers['n_choices']:,} possible choices were solved to a "
            f"residual of {within(numbers['residual'])}. On {numbers['n_compared']} tracks the general "
            f"solver gives {_same(numbers['solver_difference'])} values, the largest difference being "
            f"{within(numbers['solver_difference'])}. "
            "From an empty board the best plan submits a network of "
            f"{number_text(numbers['best_plan_cost'])} francs after {numbers['best_plan_changes']} changes; "
            f"the published least cost is {number_text(numbers['least_cost'])}. {numbers['n_teams_optimal']} "
            f"of {numbers['n_teams']} pairs found it.",
            "Submissions do not count as choices: the robot answers each with the distance from the least "
            "cost, so that submitting is also asking. Laying and removing do, for the child who did it.",
            f"Children made {percent_text(numbers['best_shares'])} of their layings in line with a best "
            f"plan; of tracks laid at random on the same boards, {percent_text(numbers['best_by_chance'])} "
            f"would be. The median η is {number_text(numbers['median_eta'])} per franc, from a median of "
            f"{number_text(numbers['median_edits_counted'])} changes of a child. The η of the two children "
            f"of a pair have a rank correlation of {said(numbers['pair_likeness'])} over "
            f"{numbers['pair_likeness']['n']} pairs.",
        ],
    )


def within(size: float) -> str:
    """Return how small a difference is: at most 1e-12, or what it is."""
    return "at most 10⁻¹²" if size <= 1e-12 else number_text(size)


def _trap(change: float, findings: Findings) -> float:
    """The temperature from which on a change is worth more than it costs, were all choices alike."""
    n_tracks = int(math.log2(findings.numbers["n_sets"]))
    return abs(change) / math.log(n_tracks + 1)


def _same(difference: float) -> str:
    return "the same" if difference <= 1e-9 else "other"
