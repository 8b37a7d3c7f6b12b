"""Reaction times and groups of the Space Adventure Task, in sentences, tables and figures."""

from __future__ import annotations

from typing import Any

import polars as pl

from fidm.present.numbers import number_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.space_adventure import figures
from fidm_studies.space_adventure.figures import WORDS
from fidm_studies.space_adventure.people import DRAWN
from fidm_studies.telling import how_drawn, more_or_less, one_row, said

ALIKE = 0.99
"""From this rank correlation on, two orders of people are called alike."""

GROUP_COLUMNS = (
    text_column("parameter"),
    text_column("first", "first group"),
    text_column("second", "second group"),
    column("n_first", "people of the first"),
    column("n_second", "of the second"),
    column("median_first", "median of the first"),
    column("median_second", "of the second"),
    *with_interval("auc", "AUC, first above second", low="low", high="high"),
)
"""The columns of a table that compares groups."""


def times(findings: Findings) -> dict[str, Any]:
    """Return the section about reaction times: why they are conditioned, and that there are two kinds."""
    numbers, tables = findings.numbers, findings.tables
    shown, kinds = tables["reaction_times"], tables["two_kinds_of_time"]
    slow, fast = (_typical(shown, name) for name in ("first", "second"))
    together = one_row(kinds, one="first_choice", other="later_choices")
    with_first, with_later = (one_row(kinds, one=f"{name}", other="eta") for name in KINDS)
    apart = more_or_less(
        together, "who is slow in one is slow in the other", "who is slow in one is fast in the other",
        "who is slow in one need not be slow in the other", chance=0,
    )  # fmt: skip
    gain = numbers["gain_of_two_times"]
    fits = "better" if gain > 0 else "no better"
    order = numbers["theta_with_and_without_design"]
    so = "people look at the planets, plan, and then carry it out" if slow > fast else "they are no slower"
    changes = "hardly depends" if order >= ALIKE else "depends"
    return section(
        "times",
        "Reaction times",
        [
            f"First choices typically take {number_text(slow)} s, second ones {number_text(fast)} s: {so}. "
            "Reaction times are conditioned on which choice it is (two indicators), on noise (one) and on "
            "flights to go (a number); these do not determine each other.",
            "Conditioning changes the spread of log times from "
            f"{number_text(numbers['log_sd_without_design'])} to {number_text(numbers['log_sd'])}. The order "
            f"of adults by θ {changes} on it (rank correlation with and without {number_text(order)}), for "
            "all of them had the same mini-blocks; it matters for single choices, and for people who did not "
            "finish.",
            "With a channel each for first and for later choices, the two θ correlate by "
            f"{said(together)}: {apart}. θ of first choices goes with η by {said(with_first)}, θ of later "
            f"ones by {said(with_later)} ({together['n']} people). Two channels fit {fits} than one, by "
            f"{number_text(gain)} nats per choice (on the people they were learned from, averaged over the "
            "prior). θ of all times together is a mean of the two. This second reading was made after "
            "looking at the data; the figures that were to come out are those of the first.",
        ],
        tables=[
            table_of(
                "times",
                "Typical reaction times (geometric means)",
                [
                    text_column("group"),
                    text_column("choice_index", "choice"),
                    column("steps_to_go", "flights to go"),
                    text_column("noise"),
                    column("n_choices", "choices"),
                    column("typical_s", "typical time", unit="s"),
                    column("log_sd", "SD of log time"),
                ],
                shown,
            ),
            table_of(
                "two-kinds",
                "Times of first and of later choices: rank correlations",
                [
                    text_column("one", "of"),
                    text_column("other", "with"),
                    *with_interval("value", "Spearman correlation", low="low", high="high"),
                    column("n", "people"),
                ],
                figures.in_words(kinds, "one", "other"),
                note=how_drawn(findings, DRAWN),
            ),
        ],
        figures=[
            figure(
                "times",
                "Reaction times of first, second and third choices",
                figures.draw_times(shown),
                alt="Typical reaction times by choice, of older and younger people, with little and much "
                "noise.",
                table="times",
            )
        ],
    )


KINDS = ("first_choice", "later_choices")


def _typical(shown: pl.DataFrame, choice: str) -> float:
    """The geometric mean of the cells of a choice, of all adults; cells have as many choices each."""
    cells = shown.filter(pl.col("group") == "all adults", pl.col("choice_index") == choice)
    total = cells.select((pl.col("typical_s").log() * pl.col("n_choices")).sum() / pl.col("n_choices").sum())
    return float(total.select(pl.first().exp()).item())


def age(findings: Findings) -> dict[str, Any]:
    """Return the section about older and younger people, with the ablation."""
    numbers, tables = findings.numbers, findings.tables
    steered = more_or_less(
        numbers["age_eta"], "are steered less by value than younger ones",
        "are steered more by value than younger ones", "do not differ for sure from younger ones in η",
        chance=0.5,
    )  # fmt: skip
    slower = more_or_less(
        numbers["age_theta"], "take longer on the whole", "take less time on the whole",
        "do not differ for sure in θ", chance=0.5,
    )  # fmt: skip
    return section(
        "age",
        "Older or younger?",
        [
            f"Older people {steered} (the published finding is more response noise), and {slower}: the AUC "
            f"is {said(numbers['age_eta'])} for η, younger above older, and {said(numbers['age_theta'])} for "
            f"θ, older above younger, {numbers['age_eta']['n']} people.",
            f"The ablation: logistic regression, {findings.record.settings['folds']} folds of people, "
            f"{findings.record.settings['repeats']} times over; what people share is learned anew in every "
            f"training fold. {_more_with_both(tables['ablation_differences'])}",
        ],
        tables=[
            table_of(
                "age",
                "Older against younger, each parameter alone",
                GROUP_COLUMNS,
                figures.in_words(tables["groups"].filter(comparison="age"), "parameter"),
                note=how_drawn(findings, DRAWN),
            ),
            table_of(
                "ablation",
                "Older or younger, from action, effort and both",
                [
                    text_column("representation"),
                    text_column("metric"),
                    column("n_features", "features"),
                    *with_interval("value", "cross-validated", low="low", high="high"),
                    column("n", "people"),
                ],
                figures.in_words(tables["ablation"], "representation").with_columns(
                    pl.col("metric").replace(METRICS)
                ),
                note="95 % intervals from what each person adds to the score, widened for cross-validation.",
            ),
            table_of(
                "medians",
                "Median and quartiles in every group",
                [
                    text_column("group"),
                    column("n", "people"),
                    column("median_age", "median age", unit="years"),
                    *with_interval("eta", "η (quartiles)"),
                    *with_interval("theta", "θ (quartiles)"),
                ],
                tables["medians"],
                note="η per unit of fuel, θ in log seconds. Students are estimated by what was learned from "
                "adults. Groups of the two studies overlap: people who are in both stand in two of them.",
            ),
        ],
        figures=[
            figure(
                "groups",
                "η and θ of everybody; who is in both studies stands in two groups",
                figures.draw_groups(tables["people"]),
                alt="η and θ of every person in each of five groups, with the groups' medians.",
                table="medians",
            ),
            figure(
                "ablation",
                "How well older and younger people are told apart",
                figures.draw_ablation(tables["ablation"]),
                alt="AUC with intervals of action, effort, both, and both with two kinds of time.",
                table="ablation",
            ),
        ],
    )


METRICS = {"auc": "AUC", "balanced_accuracy": "balanced accuracy"}


def _more_with_both(differences: pl.DataFrame) -> str:
    """Whether action and effort together tell more than each alone."""
    rows = {row["against"]: row for row in differences.filter(metric="auc").iter_rows(named=True)}
    words = ("more than", "less than", "not for sure more than")
    told = [
        f"{more_or_less(row, *words, chance=0)} {WORDS[name]} alone (AUC difference {said(row)})"
        for name, row in rows.items()
    ]
    return f"Both together tell {' and '.join(told)}." if told else ""


def clinical(findings: Findings) -> dict[str, Any]:
    """Return the section about alcohol use disorder and controls."""
    groups = findings.tables["groups"]
    everybody, theirs = (groups.filter(comparison=name) for name in ("clinical", "clinical, as published"))
    eta, theta = (one_row(everybody, parameter=name) for name in ("eta", "theta"))
    fewer, beta = (one_row(theirs, parameter=name) for name in ("eta", "model_beta"))
    words = ("a higher", "a lower", "neither a higher nor a lower")
    steered, slow = (more_or_less(row, *words, chance=0.5) for row in (eta, theta))
    left_out = eta["n_second"] - fewer["n_second"]
    return section(
        "clinical",
        "Alcohol use disorder",
        [
            f"People with alcohol use disorder have {steered} η than controls (AUC {said(eta, 'auc')}) and "
            f"{slow} θ ({said(theta, 'auc')}); {eta['n_first']} and {eta['n_second']} people. The authors "
            f"left out people who had gained little. Among those with published estimates, {left_out} "
            f"controls fewer, the AUC of η is {said(fewer, 'auc')}, and that of the published β "
            f"{said(beta, 'auc')}. Two samples of volunteers differ in more than alcohol; this is no finding "
            "about it.",
        ],
        tables=[
            table_of(
                "clinical",
                "Alcohol use disorder against controls",
                [text_column("comparison", "people"), *GROUP_COLUMNS],
                figures.in_words(pl.concat([everybody, theirs]), "parameter").with_columns(
                    pl.col("comparison").replace(
                        {"clinical": "all", "clinical, as published": "with published estimates"}
                    )
                ),
                note=how_drawn(findings, DRAWN),
            )
        ],
    )
