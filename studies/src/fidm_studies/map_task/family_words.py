"""What was found about families in the HCRC Map Task, in sentences; numbers choose the words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import polars as pl

from fidm.experiments.families import CLOSE, Families, order_kept
from fidm.present.numbers import MINUS
from fidm.present.wording import listed
from fidm.report.parts import column, figure, section, table_of, text_column, with_interval
from fidm_studies.analysis import Findings
from fidm_studies.map_task import figures
from fidm_studies.map_task.readings import MATTERS, MOVE, OBSERVABLES, WORDS, as_channel
from fidm_studies.telling import Row, how_drawn

ODDS = 20.0
"""How much more probable data must be under one family than under another to speak of it for sure."""

TOO_WIDE, NARROW = 0.9, 0.95
"""Below this dispersion, and this spread of residuals, a family allows for clearly more than there is."""


class Standing(StrEnum):
    """How a family stands to the first one of its observation."""

    BETTER = "better"
    BORDERLINE_BETTER = "better, borderline"
    WORSE = "worse"
    BORDERLINE_WORSE = "worse, borderline"
    ALIKE = "alike"
    UNSURE = "not told apart"


SIDE = {Standing.BETTER: 1, Standing.BORDERLINE_BETTER: 1, Standing.WORSE: -1, Standing.BORDERLINE_WORSE: -1}
"""Which way a family differs from the first, if it does."""


def standing(row: Row) -> Standing:
    """Return how a family stands to the first one.

    Better and worse are beyond chance (the interval excludes 0) and by what matters; borderline if the
    interval's near end is less than what matters. Alike: the whole interval is less than what matters. All
    else is not told apart.

    Examples
    --------
    >>> standing({"difference": 0.02, "low": 0.01, "high": 0.03}).value
    'better'
    >>> standing({"difference": 0.005, "low": 0.0002, "high": 0.009}).value
    'better, borderline'
    >>> standing({"difference": 0.0002, "low": 0.0001, "high": 0.0003}).value
    'alike'
    >>> standing({"difference": 0.0012, "low": -0.001, "high": 0.003}).value
    'not told apart'
    """
    difference, low, high = row["difference"], row["low"], row["high"]
    if difference >= MATTERS and low > 0:
        return Standing.BETTER if low >= MATTERS else Standing.BORDERLINE_BETTER
    if difference <= -MATTERS and high < 0:
        return Standing.WORSE if high <= -MATTERS else Standing.BORDERLINE_WORSE
    return Standing.ALIKE if max(-low, high) < MATTERS else Standing.UNSURE


def verdict(found: Families, observable: str) -> str:
    """Say whether the first family of an observation stands, and what a better one would change.

    Parameters
    ----------
    found : Families
        The comparison.
    observable : str
        Which observation.
    """
    reference, *others = found.of(observable)
    what = OBSERVABLES[observable]
    what = what[0].upper() + what[1:]
    better = [row for row in others if SIDE.get(standing(row)) == 1]
    sure = [row for row in better if standing(row) is Standing.BETTER]
    if not better:
        said = f"{what}: {reference['family']} stands."
        return " ".join([said, *_others(others), _residual_words(reference)])
    best = max(sure or better, key=lambda row: row["difference"])
    said = f"{what}: {best['family']} predicts better than {reference['family']}, by {_gain(best)} per move"
    if sure:
        said += f"; it takes about {_moves(best)} moves to favour it {ODDS:.0f} to 1."
    else:
        said += f". That is borderline: the near end of the interval is below {MATTERS:g}."
    rest = [row for row in others if row is not best]
    chosen = f" with {best['settings']}" if best["settings"] else ""
    offered = f"As a channel it is {as_channel(observable, best['family'])}{chosen}."
    parts = (said, *_others(rest), _residual_words(best), offered, _order_words(best, reference))
    return " ".join(part for part in parts if part)


def _others(rows: Sequence[Row]) -> list[str]:
    """A sentence per way in which families stand to the first."""
    found = []
    for kind, words in (
        (Standing.BETTER, "Also better per move"),
        (Standing.BORDERLINE_BETTER, "Better, but borderline"),
        (Standing.WORSE, "Worse per move"),
        (Standing.BORDERLINE_WORSE, "Worse, but borderline"),
    ):
        sign = SIDE[kind]
        named = [f"{row['family']} by {_gain(row, sign=sign)}" for row in rows if standing(row) is kind]
        found += [f"{words}: {', '.join(named)}."] if named else []
    unsure = [f"{row['family']} ({_signed(row)})" for row in rows if standing(row) is Standing.UNSURE]
    found += [f"Neither better nor worse for sure: {', '.join(unsure)}."] if unsure else []
    alike = [row["family"] for row in rows if standing(row) is Standing.ALIKE]
    found += [f"Not different by an amount that matters: {', '.join(alike)}."] if alike else []
    return found


def changed(judged: Mapping[str, Families]) -> str:
    """Say which verdicts are others once the number of words is given."""
    other: list[str] = []
    narrow: list[str] = []
    for name in judged[WORDS].observables:
        for row in judged[WORDS].of(name)[1:]:
            before, then = standing(judged[MOVE].row(name, row["family"])), standing(row)
            if SIDE.get(then) != SIDE.get(before):
                first = judged[WORDS].of(name)[0]["family"]
                other.append(
                    f"{OBSERVABLES[name]} ({row['family']} against {first}: {before.value} before; "
                    f"{then.value} then)"
                )
        rows = judged[WORDS].of(name)
        spread = min((row["dispersion"] for row in rows), key=lambda x: abs(x - 1))
        if spread < TOO_WIDE and max(row["residual_sd"] for row in rows) < NARROW:
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
        column("n_residuals", "residuals"), column("dispersion"), column("residual_sd", "sd of residuals"),
        column("ks", "distance from normal"), column("ad", "Anderson–Darling"),
        column("zeros_observed", "zeros"), column("zeros_expected", "zeros expected"),
        column("theta_rank_r", "θ: rank r with first"),
        text_column("settings", "chosen"),
    ]  # fmt: skip
    table = findings.tables["families"].filter(given=given)
    tiny = pl.col("difference", "low", "high", "zeros_expected").fill_nan(None).round(5)
    shown = table_of(
        f"families-{key}",
        f"Families given {given}",
        columns,
        table.with_columns(pl.col("observable").replace(OBSERVABLES), tiny),
        note="Dispersion: mean squared residual over the variance expected. Residuals are randomised "
        "quantile residuals, each move predicted from the person's others; their distance from a normal "
        "distribution is shown (Kolmogorov–Smirnov), since with thousands of moves small distances are "
        "significant too. "
        "Residuals, dispersion and θ of a family in two parts are those of the amounts above 0 alone.",
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


def _gain(row: Row, *, sign: int = 1) -> str:
    low, high = sorted((sign * row["low"], sign * row["high"]))
    digits = 4 if abs(row["difference"]) < 0.01 else 3
    return f"{sign * row['difference']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _signed(row: Row) -> str:
    return f"{row['difference']:+.4f}, {row['low']:+.4f} to {row['high']:+.4f}".replace("-", MINUS)


def _moves(row: Row) -> str:
    """How many moves tell two families apart, with two digits that matter."""
    moves = math.log(ODDS) / row["difference"]
    size = 10 ** max(0, math.floor(math.log10(moves)) - 1)
    return f"{round(moves / size) * size:,.0f}"


def _residual_words(row: Row) -> str:
    much = "at most" if row["ks"] < CLOSE else "as much as"
    whole = row["n_residuals"] == row["n"]
    of = "moves" if whole else f"the {row['n_residuals']:,} moves that have any"
    return f"Quantile residuals of {row['family']} are off by {much} {100 * row['ks']:.1f} % of {of}."


def _order_words(row: Row, reference: Row) -> str:
    r = row["theta_rank_r"]
    if r is None or r != r:
        return ""
    people = f"{row['n_people']} people"
    return f"By θ people {order_kept(r)}: rank correlation {r:.3f} with {reference['family']}, {people}."
