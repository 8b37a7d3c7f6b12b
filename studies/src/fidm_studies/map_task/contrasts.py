"""What seeing each other, and knowing each other, does to a route giver's θ; quads are what is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from fidm.types import Floats
from fidm_studies.resampling import holm

EYE_CONTACT, FAMILIAR = "eye_contact", "familiar"
"""The two contrasts: pairs who see each other against pairs who do not, and friends against strangers."""

LEVEL = 0.05
"""A difference is spoken of if its p, corrected for the number of contrasts, is below this."""

SCHEMA = {
    "contrast": pl.String,
    "parameter": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "n": pl.Int64,
    "quads": pl.Int64,
}


def contrasts(theta: pl.DataFrame, parameters: Sequence[str]) -> pl.DataFrame:
    """Return differences of θ with t intervals and p over quads.

    The four people of a quad talk to each other, so quads are what was drawn independently: each counts with
    its mean. Eye contact is compared between quads (Welch's t); familiarity within givers, each of whom gave
    the route once to a friend and once to a stranger (t of one sample).

    Parameters
    ----------
    theta : DataFrame
        A row per dialog: ``giver``, ``quad``, ``eye_contact``, ``familiar`` and one column per parameter.
    parameters : sequence of str
        The columns to compare; dialogs whose value is not finite are left out.
    """
    rows: list[dict[str, Any]] = []
    for name in parameters:
        known = theta.filter(pl.col(name).is_finite())
        for contrast, differ in ((EYE_CONTACT, _between), (FAMILIAR, _within)):
            rows.append({"contrast": contrast, "parameter": name, **differ(known, name)})
    return pl.DataFrame(rows, schema=SCHEMA)


def corrected(table: pl.DataFrame) -> pl.DataFrame:
    """Return contrasts with p corrected for the number of all of them, by Holm's method, as ``p_holm``."""
    p = holm([math.nan if one is None else one for one in table["p"]])
    return table.with_columns(p_holm=pl.Series(p, dtype=pl.Float64).fill_nan(None))


def is_clear(row: Mapping[str, Any]) -> bool:
    """Return whether a contrast stands after the correction for their number."""
    return row["p_holm"] is not None and row["p_holm"] < LEVEL


def _between(known: pl.DataFrame, name: str) -> dict[str, Any]:
    """Quads with eye contact less those without."""
    quads = known.group_by("quad", EYE_CONTACT).agg(pl.col(name).mean()).sort("quad")
    sides = [quads.filter(pl.col(EYE_CONTACT) == seen)[name].to_numpy() for seen in (True, False)]
    return _differ(sides, known.height)


def _within(known: pl.DataFrame, name: str) -> dict[str, Any]:
    """The same giver with a friend less with a stranger."""
    one = known.filter(FAMILIAR).select("quad", "giver", friend=name)
    other = known.filter(~pl.col(FAMILIAR)).select("giver", stranger=name)
    pairs = one.join(other, on="giver").with_columns(difference=pl.col("friend") - pl.col("stranger"))
    quads = pairs.group_by("quad").agg(pl.col("difference").mean()).sort("quad")
    return _differ([quads["difference"].to_numpy()], pairs.height)


def _differ(sides: Sequence[Floats], n: int) -> dict[str, Any]:
    """The mean of the first side less that of the second, if there is one, with its t interval and p."""
    nothing = {"difference": None, "low": None, "high": None, "p": None}
    count = {"n": n, "quads": sum(map(len, sides))}
    if any(len(side) < 2 for side in sides):
        return nothing | count
    found = float(sides[0].mean()) - (float(sides[1].mean()) if len(sides) > 1 else 0.0)
    if all(np.ptp(side) == 0 for side in sides):
        return {"difference": found, "low": found, "high": found, "p": float(found == 0)} | count
    test = stats.ttest_ind(*sides, equal_var=False) if len(sides) > 1 else stats.ttest_1samp(sides[0], 0.0)
    low, high = test.confidence_interval(0.95)
    return {"difference": found, "low": float(low), "high": float(high), "p": float(test.pvalue)} | count
