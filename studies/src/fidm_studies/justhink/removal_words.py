"""Which tracks were removed again in the JUSThink corpus, in sentences and tables; numbers choose words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm.present.numbers import number_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.justhink import figures
from fidm_studies.justhink.anchor import SCORES
from fidm_studies.justhink.people_words import DRAWN
from fidm_studies.justhink.readings import AS_READ, ONE, OWN, WHOSE, WITHIN, WITHOUT
from fidm_studies.telling import against, how_drawn, one_row, said

Row = Mapping[str, Any]

ALIKE = 1.2
"""Losses whose ends differ by less than this factor are called about equal."""

LESS, MORE, UNSURE = "less", "more", "unsure"


def removal_verdict(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return whether unexpected tracks are removed again, and what that adds to their cost."""
    own, cost = one_row(tables["aucs"], score="unexpectedness"), one_row(tables["aucs"], score="cost")
    sure = against(own["low"], own["high"], 0.5, "better than chance", "worse than chance", "not for sure")
    verdict = against(
        own["over_cost_low"], own["over_cost_high"], 0.0,
        "As the task is read here, unexpectedness tells more than cost does",
        "As the task is read here, unexpectedness tells less than cost does",
        "As the task is read here, the two do not differ for sure",
    )  # fmt: skip
    text = (
        f"Of {own['n']:,} laid tracks {own['n_removed']:,} were removed again in the same attempt. "
        f"Unexpectedness tells them with an AUC of {said(own, 'auc')}, "
        f"{sure}; the track's cost alone with {said(cost, 'auc')}. {verdict}{_held_fixed(tables['odds'])}."
    )
    return f"{text} {over_readings(tables['readings'])}"


def _held_fixed(odds: pl.DataFrame) -> str:
    rows = odds.filter(score="unexpectedness").rows(named=True)
    if not rows:
        return ""
    adds = against(
        rows[0]["low"], rows[0]["high"], 1.0,
        "still goes with removal", "goes with keeping", "adds nothing that could be told from chance",
    )  # fmt: skip
    return (
        f"; with cost, circles and changes before held fixed, unexpectedness {adds} (odds "
        f"{said(rows[0], 'odds')} per standard deviation)"
    )


def over_readings(table: pl.DataFrame) -> str:
    """Return whether it depends on the reading of the task if cost tells more, and if it tells all."""
    rows = table.rows(named=True)
    verdicts = [against(row["over_cost_low"], row["over_cost_high"], 0.0, MORE, LESS, UNSURE) for row in rows]
    adds = [_sides(row["odds_low"], row["odds_high"]) for row in rows]
    so = (
        "Whether one of the two tells more for sure depends on how the task is read"
        if len(set(verdicts)) > 1
        else "Whether one of the two tells more for sure does not depend on how the task is read"
    )
    return (
        f"{so}: of {len(rows)} readings, unexpectedness tells less than cost for sure in "
        f"{verdicts.count(LESS)} and more in {verdicts.count(MORE)}; with cost held fixed it goes with "
        f"removal for sure in {adds.count(MORE)}."
    )


def _sides(low: float | None, high: float | None) -> str:
    return UNSURE if low is None or high is None else against(low, high, 1.0, MORE, LESS, UNSURE)


def removals_section(findings: Findings) -> dict[str, Any]:
    """Return the section on which tracks are removed later."""
    tables = findings.tables
    return section(
        "removals",
        "Are unexpected tracks removed again?",
        [
            "This anchor does not come from the model: whether a track stays is seen in the log. A track "
            "counts as removed if it is taken away in the same attempt before the board is submitted or "
            "replaced by an earlier solution. Unexpectedness is that of the child who laid it, under the "
            "child's own η.",
            removal_verdict(tables),
            whose_verdict(tables["whose"]),
            how_drawn(findings, DRAWN),
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
                "whose",
                "Unexpectedness under other η",
                [
                    text_column("whose", "unexpected under"),
                    *with_interval("auc", "AUC", low="low", high="high"),
                    *with_interval("over_cost", "more than cost"),
                    column("n", "laid tracks"),
                ],
                tables["whose"].with_columns(pl.col("whose").replace_strict(WHOSE)),
                note="What children share, that is mean and spread of log η, is learned from all attempts in "
                "every row. The one η is that at the mean of log η. In the last row cost too is compared "
                "within pairs.",
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
                note="Changes before it enter as log(1 + n). Changes after it are not held fixed: a removal "
                "is one of them.",
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


def whose_verdict(table: pl.DataFrame) -> str:
    """Return what is left if η has not seen the attempt, is the same for all, or pairs are kept apart."""
    rows = {row["whose"]: row for row in table.iter_rows(named=True)}
    others = [rows[name] for name in (WITHOUT, ONE, WITHIN)]
    above = sum(row["low"] > 0.5 for row in others)
    lower = sum(row["auc"] < rows[OWN]["auc"] for row in others)
    return (
        "A child's η has seen the removals and the attempt itself, which may flatter it. Under an η from the "
        f"child's other attempts alone the AUC is {said(others[0], 'auc')}, under one η for all children "
        f"{said(others[1], 'auc')}, and if only tracks of the same pair are compared "
        f"{said(others[2], 'auc')}: {lower} of the {len(others)} are lower than that reported, and {above} "
        "are better than chance."
    )


def _worded(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("score").replace_strict(SCORES))


def readings_section(findings: Findings) -> dict[str, Any]:
    """Return the section on other readings of the task."""
    table = findings.tables["readings"]
    own = one_row(table, reading=AS_READ)
    least = table.sort("same_order").row(0, named=True)
    return section(
        "readings",
        "What if the task is read otherwise?",
        [
            losses_text(table),
            f"{over_readings(table)} The AUC of unexpectedness lies between "
            f"{number_text(table['auc'].min())} and {number_text(table['auc'].max())}. The "  # type: ignore[arg-type]
            f"order of children by η is most different if {least['reading']}: a rank correlation of "
            f"{number_text(least['same_order'])} with the order reported here.",
            f"{likelihood_text(table)} We fixed the price of {own['change']:g} francs first, and keep it; "
            "nothing but our word shows that it was first. The intervals are not corrected for the number of "
            "readings.",
        ],
        tables=[
            table_of(
                "readings",
                "Other readings of the task",
                [
                    text_column("reading"),
                    *with_interval("auc", "AUC of unexpectedness", low="low", high="high"),
                    *with_interval("over_cost", "more than cost"),
                    *with_interval("odds", "odds, cost held fixed"),
                    column("log_likelihood", "log-likelihood, more than as read"),
                    column("same_order", "rank correlation of η with that reported"),
                    column("loss_low", "wrong tracks lose from", unit="francs"),
                    column("loss_high", "to", unit="francs"),
                    column("n", "laid tracks"),
                ],
                table,
                note="Log-likelihood in nats, of the same choices, η averaged over what children are like; "
                "where submissions count there are other choices. Wrong tracks are those in line with no "
                "best plan; nine of ten lose a value between the two numbers.",
            )
        ],
    )


def losses_text(table: pl.DataFrame) -> str:
    """Return how much value a wrong track loses at every price of a change, and what follows from that."""
    own = one_row(table, reading=AS_READ)
    dear = table.filter(pl.col("change") == table["change"].max()).row(0, named=True)
    if own["loss_low"] is None or dear["loss_low"] is None:
        return ""
    text = (
        f"With {own['change']:g} francs for a change, nine of ten wrong tracks lose between "
        f"{number_text(own['loss_low'])} and {number_text(own['loss_high'])} francs of value"
    )
    if own["loss_high"] <= ALIKE * own["loss_low"]:
        text += (
            ": each is laid and has to be taken away again, whatever it costs. Every wrong track is about "
            "equally bad then, and unexpectedness cannot see how dear one is: what cost tells more is in "
            "part built into this reading."
        )
    else:
        text += ": wrong tracks are not equally bad."
    if dear["change"] > own["change"]:
        text += (
            f" With {dear['change']:g} francs they lose between {number_text(dear['loss_low'])} and "
            f"{number_text(dear['loss_high'])}."
        )
    return text


def likelihood_text(table: pl.DataFrame) -> str:
    """Return under which reading the choices are most probable."""
    known = table.drop_nulls("log_likelihood").sort("log_likelihood", descending=True)
    best = known.row(0, named=True)
    if best["reading"] == AS_READ:
        return "Children's choices are most probable as the task is read here."
    return (
        f"Of the {known.height} readings in which the same choices count, children's choices are most "
        f"probable if {best['reading']}: by {number_text(best['log_likelihood'])} nats more than as read "
        "here."
    )
