"""What was found about families in the HCRC Map Task, in sentences; numbers choose the words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fidm.reanalyses import map_task_figures as figures
from fidm.reanalyses.base import Findings
from fidm.reanalyses.map_task_readings import MOVE, OBSERVABLES, WORDS
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm.study.families_found import CLOSE, SAME_ORDER, Families

ODDS = 20.0
"""How much more probable data must be under one family than under another to speak of it for sure."""

MATTERS = 0.001
"""A smaller gain per move is too little to matter: it takes about 3,000 moves to favour a family 20 to 1."""

TOO_WIDE = 0.9
"""Below this dispersion a family allows for clearly more spread than there is."""

Row = Mapping[str, Any]


def verdict(found: Families, observable: str) -> str:
    """Say whether the first family of an observation stands, and what a better one would change.

    Parameters
    ----------
    found : Families
        The comparison.
    observable : str
        Which observation.
    """
    rows = found.of(observable)
    reference, others = rows[0], rows[1:]
    what = OBSERVABLES[observable]
    what = what[0].upper() + what[1:]
    better = [row for row in others if standing(row) > 0]
    if better:
        best = max(better, key=lambda row: row["difference"])
        return (
            f"{what}: {best['family']} predicts better than {reference['family']}, by {_gain(best)} per "
            f"move; it takes about {_moves(best)} moves to favour it {ODDS:.0f} to 1. "
            f"{_residual_words(best)} "
            f"{_order_words(best, reference)}"
        )
    text = f"{what}: {reference['family']} stands."
    worse = [f"{row['family']} by {_gain(row, sign=-1)}" for row in others if standing(row) < 0]
    alike = [row["family"] for row in others if standing(row) == 0]
    if worse:
        text += f" Worse per move: {', '.join(worse)}."
    if alike:
        text += f" Not better by an amount that matters: {', '.join(alike)}."
    return f"{text} {_residual_words(reference)}"


def standing(row: Row) -> int:
    """Return 1 if a family is better than the first beyond chance and by what matters, −1 if worse, else 0.

    Examples
    --------
    >>> standing({"difference": 0.02, "low": 0.01, "high": 0.03})
    1
    >>> standing({"difference": 0.0002, "low": 0.0001, "high": 0.0003})
    0
    """
    if abs(row["difference"]) < MATTERS:
        return 0
    return 1 if row["low"] > 0 else -1 if row["high"] < 0 else 0


def changed(judged: Mapping[str, Families]) -> str:
    """Say which verdicts are others once the number of words is given."""
    other: list[str] = []
    narrow: list[str] = []
    for name in judged[WORDS].observables:
        for row in judged[WORDS].of(name)[1:]:
            before = standing(judged[MOVE].row(name, row["family"]))
            if standing(row) != before:
                said = {1: "better", 0: "alike", -1: "worse"}
                first = judged[WORDS].of(name)[0]["family"]
                other.append(
                    f"{OBSERVABLES[name]} ({row['family']} against {first}: {said[before]} before, "
                    f"{said[standing(row)]} then)"
                )
        spread = min((row["dispersion"] for row in judged[WORDS].of(name)), key=lambda x: abs(x - 1))
        if spread < TOO_WIDE:
            narrow.append(f"{OBSERVABLES[name]} (dispersion {spread:.2f})")
    text = "Given also the number of words, "
    text += f"the verdict changes for {listed(other)}." if other else "no verdict changes."
    if narrow:
        text += f" Less spread than both families compared allow is then left in {listed(narrow)}."
    return text


def compared(findings: Findings, given: str) -> dict[str, Any]:
    """Return the section about the families, given the move or its words."""
    found: Families = findings.parts[given]
    key = "move" if given == MOVE else "words"
    how = (
        "Every move counts as one, and nothing else is known of how much it says."
        if given == MOVE
        else "The number of words is given as a design column, log(words); θ is then how slow, how "
        "long-worded and how hesitant somebody is for as much as is said. Each family of the paper is "
        "compared with one rival."
    )
    said = [
        f"{how} {findings.numbers['quads']} quads were dealt to {findings.record.settings['folds']} folds. "
        "Gains are of the held-out log-likelihood per move, over the first family of each observation; less "
        f"than {MATTERS:g} does not matter. {how_drawn(findings, 'quads')}",
        *(verdict(found, name) for name in found.observables),
    ]
    columns = [
        text_column("observable"), text_column("family"), column("n", "moves"),
        column("log_likelihood", "log-likelihood"),
        *with_interval("difference", "gain", low="low", high="high"),
        column("dispersion"), column("residual_sd", "sd of residuals"), column("ks", "distance from normal"),
        column("ad", "Anderson–Darling"), column("zeros_observed", "zeros"),
        column("zeros_expected", "zeros expected"), column("theta_rank_r", "θ: rank r with first"),
        text_column("settings", "chosen"),
    ]  # fmt: skip
    table = findings.tables["families"].filter(given=given)
    tiny = pl.col("difference", "low", "high", "zeros_expected").fill_nan(None).round(5)
    shown = table_of(
        f"families-{key}",
        f"Families given {given}",
        columns,
        table.with_columns(pl.col("observable").replace(OBSERVABLES), tiny),
        note="Dispersion: mean squared residual over the variance expected; there is none for families in "
        "two parts. Residuals are randomised quantile residuals, each move predicted from the person's "
        "others; their distance from a normal distribution is shown (Kolmogorov–Smirnov), since with "
        "thousands of moves small distances are significant too. θ under a family in two parts is that of "
        "the amount.",
    )
    drawn = [
        figure(
            f"gains-{key}",
            f"Gain over the first family, given {given}",
            figures.gains(found, found.observables),
            alt="A mark with its interval per family: right of the dashed line it predicts people left out "
            "better than the first family of that observation.",
            table=f"families-{key}",
        ),
        figure(
            f"worms-{key}",
            f"Quantile residuals against normal ones, given {given}",
            figures.worms(found, found.observables),
            alt="A line per family: how far its quantile residuals lie from those of a normal distribution; "
            "a grey band shows what chance allows.",
            table=f"families-{key}",
        ),
    ]
    title = "Families, given the move" if given == MOVE else "Families, given its words"
    return section(f"given-{key}", title, said, tables=[shown], figures=drawn)


def how_drawn(findings: Findings, whom: str) -> str:
    """Return how intervals were made."""
    return (
        f"Intervals hold 95 % of {findings.record.settings['bootstrap']:,} bootstrap draws of {whom} "
        f"(seed {findings.record.seed})."
    )


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _gain(row: Row, *, sign: int = 1) -> str:
    low, high = sorted((sign * row["low"], sign * row["high"]))
    digits = 4 if abs(row["difference"]) < 0.01 else 3
    return f"{sign * row['difference']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _moves(row: Row) -> str:
    """How many moves tell two families apart, with two digits that matter."""
    moves = math.log(ODDS) / row["difference"]
    size = 10 ** max(0, math.floor(math.log10(moves)) - 1)
    return f"{round(moves / size) * size:,.0f}"


def _residual_words(row: Row) -> str:
    much = "at most" if row["ks"] < CLOSE else "as much as"
    return f"Quantile residuals of {row['family']} are off by {much} {100 * row['ks']:.1f} % of moves."


def _order_words(row: Row, reference: Row) -> str:
    r = row["theta_rank_r"]
    if r is None or r != r:
        return ""
    kept = "keep their order" if r >= SAME_ORDER else "change places"
    return (
        f"By θ people {kept}: rank correlation {r:.3f} with {reference['family']}, {row['n_people']} people."
    )
