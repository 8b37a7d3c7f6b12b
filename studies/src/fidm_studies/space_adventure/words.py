"""What was found in the Space Adventure Task, in sentences, tables and figures; numbers choose the words."""

from __future__ import annotations

from typing import Any

import polars as pl

from fidm.present.numbers import MINUS, number_text
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded
from fidm_studies.space_adventure import figures
from fidm_studies.space_adventure.covariate_words import tests
from fidm_studies.space_adventure.figures import WORDS
from fidm_studies.space_adventure.group_words import age, clinical, times
from fidm_studies.space_adventure.people import DRAWN, IN_TIME
from fidm_studies.telling import Row, how_drawn, more_or_less, one_row, said


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
        _task(findings),
        _agreement(findings, loaded),
        _halves(findings),
        times(findings),
        age(findings),
        tests(findings),
        clinical(findings),
        _limits(findings),
    ]


def _summary(findings: Findings) -> dict[str, Any]:
    numbers, tables = findings.numbers, findings.tables
    beta = one_row(tables["agreement"], parameter="eta", published="model_beta")
    halves = tables["reliability"].filter(halves="mini-blocks")
    eta, theta = (one_row(halves, parameter=name) for name in ("eta", "theta"))
    auc = tables["ablation"].filter(metric="auc")
    action, effort, both = (one_row(auc, representation=name) for name in ("action", "effort", "fidm"))
    first, later = (
        one_row(tables["groups"], comparison="age", parameter=name)
        for name in ("first_choice", "later_choices")
    )
    return section(
        "found",
        "What was found",
        [
            f"The solved task has {numbers['pairs_same']:,} of the {numbers['pairs']:,} published pairs of "
            f"action values, and {_none(numbers['impossible'])} of {numbers['transitions']:,} recorded "
            "transitions is impossible. η is how strongly values steer a person's choices, θ how slow the "
            "person is, given which choice it is, the noise and the flights to go.",
            "η goes with the β that the authors estimated from the same choices: Spearman "
            f"{said(beta)}, {beta['n']} people. Split halves of mini-blocks give a reliability of "
            f"{said(eta, 'reliability')} for η and {said(theta, 'reliability')} for θ, {eta['n']} people.",
            f"Of {numbers['age_eta']['n']} people, the older have {_lower(numbers['age_eta'])} (AUC, younger "
            f"above older, {said(numbers['age_eta'])}) and {_slower(numbers['age_theta'])} (AUC, older above "
            f"younger, {said(numbers['age_theta'])}). Told apart by cross-validation, action alone reaches "
            f"an AUC of {said(action)}, effort alone {said(effort)}, and both {said(both)}.",
            _two_times(first, later),
        ],
    )


def _two_times(first: Row, later: Row) -> str:
    words = ("slower", "faster", "neither slower nor faster for sure")
    one, other = (more_or_less(row, *words, chance=0.5) for row in (first, later))
    aucs = said(first, "auc"), said(later, "auc")
    if one == other:
        return f"Older people are {one} in first choices and in later ones alike: AUC {aucs[0]}, {aucs[1]}."
    return (
        f"One θ for all reaction times hides something: in first choices older people are {one} (AUC, "
        f"older above younger, {aucs[0]}), in later ones {other} ({aucs[1]})."
    )


def _lower(row: Row) -> str:
    words = ("a lower η", "a higher η", "an η that is neither lower nor higher for sure")
    return more_or_less(row, *words, chance=0.5)


def _slower(row: Row) -> str:
    words = ("a larger θ: they are slower", "a smaller θ: they are faster", "a θ that differs not for sure")
    return more_or_less(row, *words, chance=0.5)


def _none(n: int) -> str:
    return f"{n:,}" if n else "none"


def _task(findings: Findings) -> dict[str, Any]:
    numbers, tables = findings.numbers, findings.tables
    pairs = (
        tables["values"]
        .group_by("task", "steps", "depth")
        .agg(pl.col("is_same").all(), pl.col("misprint").any())
        .group_by("steps", "depth")
        .agg(n_pairs=pl.len(), n_same=pl.col("is_same").sum(), misprints=pl.col("misprint").sum())
        .sort("steps", "depth")
    )
    return section(
        "task",
        "Is it the same task?",
        [
            "Every mini-block was solved exactly, with the best action in every state. "
            f"{numbers['pairs_same']:,} of {numbers['pairs']:,} published pairs of values are equal to ours. "
            f"{_other_pairs(findings)} Misprints apart, the largest difference is "
            f"{number_text(numbers['largest_difference'])} units of fuel.",
            "In the files of older, younger, alcohol use disorder and control there are "
            f"{numbers['transitions']:,} transitions; {_none(numbers['impossible'])} of them leads where the "
            f"rules do not allow, and {_none(numbers['other_fuel'])} brought other fuel than the rules say. "
            f"The {numbers['n_joined']} people who are in two studies are counted in both here. Whatever is "
            "said of all adults counts them once; the groups of the two studies overlap.",
        ],
        tables=[
            table_of(
                "values",
                "Published pairs of action values, and how many of them the solved task has",
                [
                    column("steps", "flights of the mini-block"),
                    column("depth", "flights to go"),
                    column("n_pairs", "published pairs"),
                    column("n_same", "the same"),
                    column("misprints", "misprints"),
                ],
                pairs,
            ),
            table_of(
                "transitions",
                "Recorded transitions",
                [
                    text_column("group"),
                    column("files"),
                    column("transitions"),
                    column("impossible"),
                    column("other_fuel", "other fuel"),
                    column("not_recorded", "landing not recorded"),
                ],
                tables["transitions"],
            ),
        ],
        figures=[
            figure(
                "values",
                "Action values, published and solved (misprints left out)",
                figures.draw_values(tables["values"]),
                alt="Published against solved action values: points on the diagonal are the same.",
                table="values",
            )
        ],
    )


def _other_pairs(findings: Findings) -> str:
    """What there is to say of published values that are not ours."""
    other = findings.numbers["pairs"] - findings.numbers["pairs_same"]
    if not other:
        return "None differs."
    wrong = findings.tables["values"].filter(~pl.col("is_same"))
    if other > 1 or not wrong["misprint"].all():
        return f"{other} differ."
    row = wrong.row(0, named=True)
    return (
        f"The one that differs is a misprint in the published table: mini-block {row['block_id']}, "
        f"{row['depth']} flights to go, where {_plain(row['q'])} stands for {_plain(row['ours'])}."
    )


def _plain(value: float) -> str:
    """A value of the published table with all its digits."""
    return f"{value:,.3f}".replace("-", MINUS)


def _agreement(findings: Findings, loaded: Loaded) -> dict[str, Any]:
    tables = findings.tables
    beta, depth = (
        one_row(tables["agreement"], parameter="eta", published=name)
        for name in ("model_beta", "mean_planning_depth")
    )
    rises = more_or_less(
        depth, "people who plan deeper have a higher η", "people who plan deeper have a lower η",
        "η and planning depth do not go together for sure", chance=0,
    )  # fmt: skip
    return section(
        "agreement",
        "η and what was published of the same people",
        [
            "The authors fitted a richer model: how deep a person plans in each mini-block, a response "
            "precision β, a bias and a learning rate. η is one number for all of that: how strongly the "
            f"values of the best plan steer choices. Its rank correlation with β is {said(beta)} in "
            f"{beta['n']} people, with their mean planning depth {said(depth)}: {rises}. η alone cannot tell "
            "shallow planning from noisy choosing; both lower it.",
        ],
        tables=[
            table_of(
                "agreement",
                "Rank correlations with published estimates",
                [
                    text_column("parameter"),
                    text_column("published", "what was published"),
                    *with_interval("value", "Spearman correlation", low="low", high="high"),
                    column("n", "people"),
                ],
                figures.in_words(tables["agreement"], "parameter", "published"),
                note=how_drawn(findings, DRAWN),
            )
        ],
        figures=[
            figure(
                "agreement",
                "η against the published β",
                figures.draw_agreement(tables["people"], loaded.tables["published_fits"]),
                alt="Everybody's η, on a logarithmic axis, against the β published of the same person.",
                table="agreement",
            )
        ],
    )


def _halves(findings: Findings) -> dict[str, Any]:
    rows = findings.tables["reliability"]
    whole, single = (one_row(rows, halves=name, parameter="theta") for name in ("mini-blocks", "choices"))
    ends = (single["high"], whole["low"])
    less = None not in ends and ends[0] < ends[1]
    then = "clearly less, for first and later choices are not alike" if less else "which is not clearly less"
    return section(
        "reliability",
        "How reliable are they?",
        [
            "Odd mini-blocks against even ones, each half estimated alone; their correlation r is stepped up "
            f"to full length (Spearman and Brown). All adults, {whole['n']} people.",
            "Dealing single choices in turn would put the first choices of mini-blocks with two flights into "
            "one half and the second choices into the other. The reliability of θ is then "
            f"{said(single, 'reliability')}, {then}.",
            _in_time(rows),
        ],
        tables=[
            table_of(
                "reliability",
                "Reliability",
                [
                    text_column("parameter"),
                    text_column("halves", "what was dealt to halves"),
                    column("r", "r of the halves"),
                    column("rank_r", "rank r"),
                    *with_interval("reliability", "reliability", low="low", high="high"),
                    column("n", "people"),
                ],
                figures.in_words(rows, "parameter"),
                note="People whose η is 0 or infinite in a half are left out of all but the rank "
                f"correlation. {how_drawn(findings, DRAWN)}",
            )
        ],
    )


def _in_time(rows: pl.DataFrame) -> str:
    """What the first half of a session says of the last."""
    told = []
    for name in ("eta", "theta"):
        mixed, split = (one_row(rows, halves=halves, parameter=name) for halves in ("mini-blocks", IN_TIME))
        if None in (mixed["r"], split["r"]):
            return ""
        than = "less than" if split["r"] < mixed["r"] else "no less than"
        lost = mixed["n"] - split["n"]
        out = f" ({lost} people left out; rank correlation {number_text(split['rank_r'])})" if lost else ""
        told.append(
            f"{number_text(split['r'])} for {WORDS[name]}{out}, {than} the {number_text(mixed['r'])} of odd "
            "and even ones"
        )
    return (
        "Odd and even mini-blocks share everything that changes in the course of a session. The first half "
        "of the mini-blocks against the last is a harder split, since people learn and tire: r is "
        f"{', and '.join(told)}."
    )


def _limits(findings: Findings) -> dict[str, Any]:
    return section(
        "limits",
        "What this cannot show",
        [
            f"Groups are small ({findings.numbers['age_eta']['n']} people in the comparison of ages), and "
            "people of different ages differ in more than age. Reaction times are those of key presses: "
            "nobody spoke. η says how far choices follow the best plan, not whether somebody planned less "
            "deeply or chose more noisily. Intervals do not hold the doubt about what was learned from all "
            "adults together.",
        ],
    )
