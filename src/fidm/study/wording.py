"""Words and numbers of a classification that its page, its pictures and its summary share."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from fidm.study.classified import LABELS, Classification, in_words
from fidm.study.paper import CLASSIFICATION

SETTINGS: Mapping[str, str] = {"binary": "healthy against all others", "multiclass": "all classes apart"}
PARTS: Mapping[str, str] = {"cv": "cross-validation", "held-out": "held-out part"}
METRICS: Mapping[str, str] = {"auc": "area under the ROC curve", "balanced_accuracy": "balanced accuracy"}
SHORT: Mapping[str, str] = {"auc": "AUC", "balanced_accuracy": "balanced accuracy"}
"""Settings, parts and metrics in words."""

DASH = "–"
LEVEL = 0.95
"""How often intervals should hold the true value."""

ADDED = "+fidm"
"""How the name of a combination with FIDM ends."""

USUAL = (
    "fidm",
    "score+fidm",
    "score",
    "trajectory",
    "bert",
    "macbert",
    "score+subscores+fidm",
    "score+subscores",
)
"""What is shown where there is room for a few, the most wanted first; chosen before anybody is classified."""


def percent(value: float | None, *, sign: bool = False) -> str:
    """Return a share in per cent with one decimal, as the paper prints it; a dash where it is not known.

    Examples
    --------
    >>> from fidm.study.wording import percent
    >>> percent(0.7039), percent(-0.0002, sign=True), percent(None)
    ('70.4', '-0.0', '–')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{100 * value + 0.0:+.1f}" if sign else f"{100 * value:.1f}"  # "-0.0" is just below zero


def span(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Return an interval in per cent: "66.1–74.3"; signed ones as "-1.2 to +4.0".

    Examples
    --------
    >>> from fidm.study.wording import span
    >>> span(0.661, 0.743), span(-0.012, 0.04, sign=True)
    ('66.1–74.3', '-1.2 to +4.0')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    between = " to " if sign else "–"
    return f"{percent(low, sign=sign)}{between}{percent(high, sign=sign)}"


def briefly(representation: str) -> str:
    """Return a representation's name where there is little room: "trajectory + FIDM"."""
    return in_words(representation).replace(LABELS["trajectory"], "trajectory")


def featured(result: Classification, *, most: int = 3) -> tuple[str, ...]:
    """Return a few representations to be shown more closely, in the order of the tables.

    FIDM, its combination with the clinical score, and baselines come first; their scores play no part in it.

    Parameters
    ----------
    result : Classification
        What was found.
    most : int
        How many at most.
    """
    wanted = [name for name in USUAL if name in result.representations]
    if "bert" in wanted and "macbert" in wanted:  # one language baseline stands for both
        wanted.remove("macbert")
    rest = [name for name in result.representations if name not in wanted]
    chosen = {*[*wanted, *rest][:most]}
    return tuple(name for name in result.representations if name in chosen)


def rows_shown(result: Classification) -> tuple[tuple[str, str, int | None], ...]:
    """Return the rows of the tables: name, kind and number of features, those that were not run included."""
    known = {
        name: (kind, n)
        for name, kind, n in result.scores.select("representation", "kind", "n_features").iter_rows()
    }
    found = [(name, *known[name]) for name in result.representations if name in known]
    kinds = {"score": "clinical", "score+subscores": "clinical", "trajectory": "behaviour",
             "action": "ablation", "effort": "ablation", "fidm": "fidm"}  # fmt: skip
    for name in result.not_run:
        kind = kinds.get(name) or ("fusion" if "+" in name else "language")
        found.append((name, kind, None))
    order = {name: i for i, name in enumerate((*CLASSIFICATION, "action", "effort"))}
    place = {name: i for i, (name, _, _) in enumerate(found)}
    return tuple(sorted(found, key=lambda row: (order.get(row[0], len(order)), place[row[0]])))


def baseline_of(representation: str) -> str:
    """Return what a combination with FIDM adds it to: "score" of "score+fidm"."""
    return representation.removesuffix(ADDED)


def compared(result: Classification) -> pl.DataFrame:
    """Return the differences between combinations and their baselines, without those against FIDM alone."""
    return result.differences.filter(pl.col("against") != "fidm")


def excluding_zero(differences: pl.DataFrame) -> tuple[int, int, int]:
    """Return how many differences have an interval, and how many of these lie above and below zero."""
    known = differences.filter(pl.col("low").is_finite() & pl.col("high").is_finite())
    return known.height, int((known["low"] > 0).sum()), int((known["high"] < 0).sum())


def say_chance(differences: pl.DataFrame) -> str:
    """Return how many intervals exclude zero, and how many would by chance, as a sentence."""
    n, above, below = excluding_zero(differences)
    if not n:
        return "No difference has an interval."
    expected = (1 - LEVEL) * n
    return (
        f"Of {n:,} intervals, {above + below:,} exclude 0 ({above:,} above, {below:,} below); if nothing "
        f"made a difference, about {expected:.0f} would by chance. They share people, so they are not "
        "independent."
    )


def half_width(result: Classification, part: str) -> float | None:
    """Return the median half width of the intervals of the binary AUC in a part."""
    rows = result.scores.filter(setting="binary", part=part, metric="auc")
    widths = (rows["high"] - rows["low"]).drop_nulls()
    return float(np.median(widths.to_numpy())) / 2 if len(widths) else None
