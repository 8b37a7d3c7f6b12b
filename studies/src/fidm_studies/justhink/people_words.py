"""Speech and learning in the JUSThink corpus, in sentences and tables; the numbers choose the words."""

from __future__ import annotations

from typing import Any

import polars as pl

from fidm.channels import parameter_words
from fidm.fit.profile import SENSITIVITY
from fidm.present.numbers import number_text, percent_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.justhink import figures
from fidm_studies.justhink.people import OUTCOMES
from fidm_studies.telling import Row, against, how_drawn, one_row, said

DRAWN = "whole teams"
"""Who is drawn anew for intervals."""

SURE = 0.05
"""A corrected p-value below this is called more than chance."""


def learning_verdict(learned: pl.DataFrame) -> str:
    """Return what η and θ have to do with learning, as a few sentences."""
    eta = one_row(learned, parameter=SENSITIVITY, outcome="relative_gain")
    effort = learned.filter(pl.col("parameter") != SENSITIVITY)
    sure = effort.filter(pl.col("p_corrected") < SURE)
    own = against(eta["low"], eta["high"], 0.0, "goes with", "goes against", "does not go for sure with")
    text = f"η {own} relative gain: {said(eta)}, {eta['n']} children. "
    if not effort.height:
        return text + "Nobody's speech was recorded."
    largest = effort.sort(pl.col("value").abs(), descending=True, nulls_last=True).row(0, named=True)
    found = (
        f"{sure.height} of {effort.height} correlations of θ with learning are more than chance"
        if sure.height
        else f"None of {effort.height} correlations of θ with learning is more than chance"
    )
    return (
        f"{text}{found} after correction for the {learned.height} tests made here; the largest is "
        f"{said(largest)}, of {parameter_words(largest['parameter'])} with {OUTCOMES[largest['outcome']]}. "
        f"{_power(largest, learned.height)}"
    )


def _power(row: Row, n_tests: int) -> str:
    """What correlation could have been found, by one test and by several, in children and in pairs."""
    return (
        f"If {row['n']} speaking children are taken as independent, one test finds a correlation of "
        f"{number_text(row['detectable'])} four times out of five; corrected for the {n_tests} tests made "
        f"here, it takes one of {number_text(row['detectable_corrected'])}. They are {row['n'] // 2} pairs; "
        f"if a pair counts as one, it takes {number_text(row['pairs_detectable'])} and, corrected, "
        f"{number_text(row['pairs_detectable_corrected'])}."
    )


def speech_section(findings: Findings) -> dict[str, Any]:
    """Return the section on what speech costs, turn by turn."""
    numbers, tables = findings.numbers, findings.tables
    effort = tables["population"].filter(pl.col("quantity").is_in(["log_moves", "role=tells", "sd"]))
    effort = effort.filter(~pl.col("parameter").str.starts_with("log_"))
    if not effort.height:
        return section("speech", "What speech costs", ["No team was transcribed."])
    wide = effort.pivot("quantity", index="parameter", values=["estimate", "se"])
    for name in ("log_moves", "role=tells", "sd"):
        for kind in ("estimate", "se"):
            if f"{kind}_{name}" not in wide.columns:
                wide = wide.with_columns(pl.lit(None, dtype=pl.Float64).alias(f"{kind}_{name}"))
    more = wide.filter(pl.col("estimate_log_moves") > 1.96 * pl.col("se_log_moves")).height
    eta = one_row(tables["halves"], parameter=SENSITIVITY)
    return section(
        "speech",
        "What speech costs, turn by turn",
        [
            f"{numbers['n_speaking']} children were transcribed, in {numbers['n_turns']:,} turns at the "
            "board. Where an earlier solution was put on the board within a turn, what came before and after "
            f"it is observed apart, which makes {numbers['n_stretches']:,} stretches of turns; "
            f"{numbers['n_without_change']:,} of them hold no change. In a turn one child has the view in "
            "which tracks are laid and removed, and the other the second view; both speak, so each stretch "
            "has an observation of each child. Speech is conditioned on the changes made in the stretch and "
            "on the role; θ is how much more a child speaks than that explains. "
            f"{percent_text(numbers['share_of_two'])} of the stretches hold two changes, after which the "
            "views are swapped; the coefficient of the number of changes rests on the others.",
            f"More changes go with more speech in {more} of {wide.height} channels (coefficient more than "
            "1.96 standard errors above 0).",
            f"{_theta_twice(tables['halves'])}η, odd against even episodes, has a reliability of "
            f"{said(eta, 'reliability')}; an episode is an attempt, or the part of one before or after a "
            f"loading. Each half is estimated alone, by maximum likelihood.{_left_out(eta)} Halves of the "
            "same conversation share the partner and the day, so this is no retest.",
        ],
        tables=[
            table_of(
                "effort",
                "What speech in a stretch of a turn goes with",
                [
                    text_column("parameter", "channel"),
                    column("estimate_log_moves", "log(1 + changes)"),
                    column("se_log_moves", "standard error"),
                    column("estimate_role=tells", "telling against doing"),
                    column("se_role=tells", "standard error"),
                    column("estimate_sd", "spread of θ"),
                ],
                wide.with_columns(_parameters()),
            ),
            table_of(
                "halves",
                "Two halves of a child's own data",
                [
                    text_column("parameter"),
                    column("r", "correlation"),
                    column("rank_r", "rank correlation"),
                    *with_interval("reliability", "of the whole (Spearman-Brown)", low="low", high="high"),
                    column("n", "children"),
                ],
                tables["halves"].with_columns(_parameters()),
            ),
        ],
    )


def _theta_twice(halves: pl.DataFrame) -> str:
    """How far θ agrees between halves, if anybody spoke."""
    known = halves.filter(pl.col("parameter") != SENSITIVITY).drop_nulls("reliability")
    if not known.height:
        return ""
    low, high = (number_text(one) for one in (known["reliability"].min(), known["reliability"].max()))  # type: ignore[arg-type]
    return f"Odd against even stretches, θ has a reliability from {low} to {high} over channels. "


def _left_out(eta: Row) -> str:
    if not eta["without"]:
        return ""
    who = "child is" if eta["without"] == 1 else "children are"
    return f" {eta['without']} {who} left out for want of a finite η in one of the halves."


def _parameters() -> pl.Expr:
    return pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)


def learning_section(findings: Findings) -> dict[str, Any]:
    """Return the section on what η and θ have to do with learning."""
    numbers, tables, parts = findings.numbers, findings.tables, findings.parts
    shown = tables["relations"].with_columns(_parameters(), pl.col("outcome").replace_strict(OUTCOMES))
    crossing = tables["relations"].filter((pl.col("low") > 0) | (pl.col("high") < 0)).height
    return section(
        "learning",
        "Does it go with learning?",
        [
            f"Of ten questions {number_text(numbers['mean_before'])} were answered rightly before and "
            f"{number_text(numbers['mean_after'])} after the activity; {numbers['n_gained']} children "
            f"gained, {numbers['n_lost']} lost. Relative gain is the authors': the share of what could be "
            "gained, or, for a loss, of what could be lost.",
            learning_verdict(tables["relations"]),
            f"Intervals that leave 0 out: {crossing} of {shown.height}; about {0.05 * shown.height:.1g} "
            "would by chance if all were independent. p-values take children as independent and are "
            f"corrected for their number by Holm's method. {how_drawn(findings, DRAWN)}",
        ],
        tables=[
            table_of(
                "relations",
                "Rank correlations with learning",
                [
                    text_column("parameter"),
                    text_column("outcome", "with"),
                    *with_interval("value", "Spearman", low="low", high="high"),
                    column("p", "p"),
                    column("p_corrected", "p, corrected"),
                    column("detectable", "could be found, one test"),
                    column("detectable_corrected", "corrected"),
                    column("pairs_detectable_corrected", "corrected, pairs as one"),
                    column("n", "children"),
                ],
                shown,
                note="Could be found: the correlation that would be more than chance four times out of five, "
                "by one test of independent children; corrected for the number of tests in this table; and "
                "corrected, if the two children of a pair count as one.",
            )
        ],
        figures=[
            figure(
                "relations",
                "Rank correlations with relative gain",
                figures.draw_relations(tables["relations"]),
                alt="Correlation of each parameter with relative gain, and what could have been found.",
                table="relations",
            ),
            figure(
                "gain",
                "Relative gain and action sensitivity",
                figures.draw_gain(parts["estimates"][SENSITIVITY], parts["relative_gain"]),
                alt="Relative gain against the logarithm of action sensitivity, a point per child.",
                table="relations",
            ),
        ],
    )


def limits_section(findings: Findings) -> dict[str, Any]:
    """Return the section on what cannot be shown."""
    numbers = findings.numbers
    speaking = findings.tables["relations"].filter(pl.col("parameter") != SENSITIVITY)
    words = (
        f"{numbers['n_speaking']} speaking children can show that such recordings can be read: whether "
        "clocks agree, whether each channel can be fitted given changes and role, and how far θ agrees "
        "between odd and even stretches of turns. They cannot show whether θ goes with learning, unless it "
        f"did so very closely ({number_text(speaking['detectable_corrected'][0])} if all are independent, "
        f"{number_text(speaking['pairs_detectable_corrected'][0])} if each of the "
        f"{numbers['n_speaking'] // 2} pairs counts as one, corrected for the number of tests), nor that it "
        "does not."
        if speaking.height
        else "Nobody's speech was recorded, so nothing can be said about effort."
    )
    return section(
        "limits",
        "What this cannot show",
        [
            words,
            "η measures how closely changes follow the best plan of somebody who knows every cost. Two "
            "children who look at different views of one board talk before one of them changes it: η is not "
            "the child's alone, and partly the pair's.",
            "Dear tracks are seldom in a best network, so that unexpectedness and cost overlap by the nature "
            "of the task, and how far they can part depends on the price of a change, which is our reading. "
            "Nobody but us knows that we fixed it before we saw a result; other prices stand beside it for "
            "that reason. Whether an unlogged change lies before a step cannot be known where no slip shows.",
        ],
    )
