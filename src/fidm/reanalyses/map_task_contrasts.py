"""What seeing each other, and knowing each other, does to a route giver's θ; quads are drawn anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EYE_CONTACT, FAMILIAR = "eye_contact", "familiar"
"""The two contrasts: pairs who see each other against pairs who do not, and friends against strangers."""

SCHEMA = {
    "contrast": pl.String,
    "parameter": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "quads": pl.Int64,
}


def contrasts(theta: pl.DataFrame, parameters: Sequence[str], *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return mean differences of θ with intervals from a bootstrap of quads.

    The four people of a quad talk to each other, so quads are what was drawn independently. Eye contact is
    compared between quads, drawn anew within each condition; familiarity within givers, each of whom gave the
    route once to a friend and once to a stranger.

    Parameters
    ----------
    theta : DataFrame
        A row per dialog: ``giver``, ``quad``, ``eye_contact``, ``familiar`` and one column per parameter.
    parameters : sequence of str
        The columns to compare; dialogs whose value is not finite are left out.
    seed : int
        Of the bootstrap.
    bootstrap : int
        How many times quads are drawn anew.
    """
    rows: list[dict[str, Any]] = []
    for k, name in enumerate(parameters):
        known = theta.filter(pl.col(name).is_finite())
        for contrast, differ in ((EYE_CONTACT, _between), (FAMILIAR, _within)):
            rng = np.random.default_rng([seed, k, contrast == FAMILIAR])
            rows.append({"contrast": contrast, "parameter": name, **differ(known, name, rng, bootstrap)})
    return pl.DataFrame(rows, schema=SCHEMA)


def _between(known: pl.DataFrame, name: str, rng: np.random.Generator, bootstrap: int) -> dict[str, Any]:
    """Quads with eye contact less those without."""
    sides = []
    for seen in (True, False):
        quads = (
            known.filter(pl.col(EYE_CONTACT) == seen)
            .group_by("quad")
            .agg(pl.col(name).sum().alias("sum"), pl.len().alias("n"))
            .sort("quad")
        )
        sides.append((quads["sum"].to_numpy(), quads["n"].to_numpy().astype(np.float64)))
    return _interval(lambda drawn: drawn[0] - drawn[1], sides, rng, bootstrap, known.height)


def _within(known: pl.DataFrame, name: str, rng: np.random.Generator, bootstrap: int) -> dict[str, Any]:
    """The same giver with a friend less with a stranger."""
    one = known.filter(FAMILIAR).select("quad", "giver", friend=name)
    other = known.filter(~pl.col(FAMILIAR)).select("giver", stranger=name)
    pairs = one.join(other, on="giver").with_columns(difference=pl.col("friend") - pl.col("stranger"))
    quads = (
        pairs.group_by("quad").agg(pl.col("difference").sum().alias("sum"), pl.len().alias("n")).sort("quad")
    )
    side = (quads["sum"].to_numpy(), quads["n"].to_numpy().astype(np.float64))
    return _interval(lambda drawn: drawn[0], [side], rng, bootstrap, pairs.height)


def _interval(
    combine: Callable[[list[Floats]], Floats],
    sides: list[tuple[Floats, Floats]],
    rng: np.random.Generator,
    bootstrap: int,
    n: int,
) -> dict[str, Any]:
    """The difference of means, and its interval from drawing quads anew on each side."""
    quads = sum(len(sums) for sums, _ in sides)
    if any(len(sums) < 2 for sums, _ in sides):
        return {"difference": None, "low": None, "high": None, "n": n, "quads": quads}
    found = combine([np.atleast_1d(sums.sum() / counts.sum()) for sums, counts in sides])
    drawn = []
    for sums, counts in sides:
        rows = rng.integers(0, len(sums), (bootstrap, len(sums)))
        drawn.append(np.asarray(sums[rows].sum(axis=1) / counts[rows].sum(axis=1)))
    low, high = np.quantile(combine(drawn), (0.025, 0.975))
    return {"difference": float(found[0]), "low": float(low), "high": float(high), "n": n, "quads": quads}


def is_clear(row: Mapping[str, Any]) -> bool:
    """Return whether the interval of a contrast excludes no difference."""
    return row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
