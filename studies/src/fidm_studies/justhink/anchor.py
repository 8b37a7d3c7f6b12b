"""Are tracks that were laid unexpectedly removed again? An anchor that knows nothing of the model.

Every track a child lays either stays until the board is submitted or replaced, or is removed before. How well
unexpectedness tells the one from the other is an AUC; so is what plainer things tell: the track's cost,
whether it closes a circle, how far the attempt has come. Intervals come from drawing teams anew, whole teams
each time, since both children of a team work on one board.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from fidm.types import Floats
from fidm_studies.resampling import draw_clusters, ends, weighted_aucs

SCORES: Mapping[str, str] = {
    "unexpectedness": "unexpectedness under the child's own η",
    "q_gap": "value lost, without η",
    "cost": "cost of the track",
    "closes_a_circle": "closes a cycle",
    "edits_before": "earlier changes in the attempt",
}
"""What may tell which tracks are removed, in words."""

DRAWS_AT_ONCE = 50
"""So many draws are worked on together; what is found does not depend on it."""

STEPS = 30
"""Newton steps of the logistic regression before it is given up."""

SMALL_STEP = 1e-6
"""A Newton step below this is the last: the error that remains is about its square."""

WORST = 1e12
"""From this condition number on, a regression cannot tell its columns apart."""


def laid_tracks(edits: pl.DataFrame, actions: pl.DataFrame, network: pl.DataFrame) -> pl.DataFrame:
    """Return every track that was laid, with its unexpectedness and whether it was removed later.

    Parameters
    ----------
    edits : DataFrame
        The changes, as the loader gives them.
    actions : DataFrame
        The actions of :func:`fidm.evidence.evidence.find_evidence`.
    network : DataFrame
        The tracks and their costs.
    """
    key = ["participant", "episode", "step"]
    known = actions.filter("counts").select(*key, "unexpectedness", "q_gap", "probability", "n_legal")
    costs = network["cost"].to_numpy()
    laid = edits.filter(pl.col("verb") == "adds").join(known, on=key, how="left", maintain_order="left")
    return laid.with_columns(cost=pl.Series(costs[laid["action"].to_numpy()]))


def removal_aucs(
    laid: pl.DataFrame, *, seed: int, bootstrap: int, scores: Iterable[str] = tuple(SCORES)
) -> pl.DataFrame:
    """Return how well each score tells the tracks that are removed later, with intervals.

    Columns: ``score``, ``auc``, ``low``, ``high``, ``n``, ``n_removed``, ``n_clusters``, and ``over_cost``
    with ``over_cost_low`` and ``over_cost_high``: how much more it tells than the track's cost does.
    """
    drawn = draw_clusters(laid["team"].to_numpy(), seed=seed, bootstrap=bootstrap)
    removed = laid["removed_later"].to_numpy()
    weight = np.vstack([np.ones(laid.height), drawn])
    of_cost = weighted_aucs(laid["cost"].to_numpy(), removed, weight)
    rows = []
    for score in scores:
        every = weighted_aucs(laid[score].cast(pl.Float64).to_numpy(), removed, weight)
        low, high = ends(every[1:])
        more = every - of_cost
        more_low, more_high = ends(more[1:])
        is_cost = score == "cost"
        rows.append(
            {
                "score": score,
                "auc": float(every[0]),
                "low": low,
                "high": high,
                "n": laid.height,
                "n_removed": int(removed.sum()),
                "n_clusters": laid["team"].n_unique(),
                "over_cost": None if is_cost else float(more[0]),
                "over_cost_low": None if is_cost else more_low,
                "over_cost_high": None if is_cost else more_high,
            }
        )
    return pl.DataFrame(rows)


def removal_odds(laid: pl.DataFrame, *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return the odds of removal per standard deviation of each thing, the others held fixed.

    A logistic regression on unexpectedness, cost, circle, and the logarithm of 1 + changes before it in the
    attempt. Changes after it are left out: a removal is one of them, so what is to be told would tell itself.
    Columns: ``score``, ``odds``, ``low``, ``high``.
    """
    columns = {
        "unexpectedness": laid["unexpectedness"].to_numpy(),
        "cost": laid["cost"].to_numpy(),
        "closes_a_circle": laid["closes_a_circle"].cast(pl.Float64).to_numpy(),
        "edits_before": np.log1p(laid["edits_before"].to_numpy()),
    }
    columns = {name: values for name, values in columns.items() if values.std() > 0}
    x = np.stack([np.ones(laid.height), *((v - v.mean()) / v.std() for v in columns.values())])
    y = laid["removed_later"].to_numpy().astype(np.float64)
    drawn = draw_clusters(laid["team"].to_numpy(), seed=seed, bootstrap=bootstrap)
    found = logistic(x, y, np.ones((1, len(y))))[0]
    draws = logistic(x, y, drawn, start=found)
    rows = []
    for k, name in enumerate(columns, start=1):
        low, high = ends(draws[:, k])
        odds = tuple(math.exp(min(value, 50.0)) for value in (found[k], low, high))
        rows.append({"score": name, "odds": odds[0], "low": odds[1], "high": odds[2], "n": len(y)})
    schema = {"score": pl.String, "odds": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema)


def removal_by_fifth(laid: pl.DataFrame) -> pl.DataFrame:
    """Return the share of tracks removed later in each fifth of unexpectedness, from expected to not."""
    ranked = laid.with_columns(fifth=((pl.col("unexpectedness").rank("ordinal") - 1) * 5 // pl.len()) + 1)
    return (
        ranked.group_by("fifth")
        .agg(
            n=pl.len().cast(pl.Int64),
            unexpectedness=pl.col("unexpectedness").mean(),
            removed=pl.col("removed_later").mean(),
        )
        .with_columns(pl.col("fifth").cast(pl.Int64))
        .sort("fifth")
    )


def within_teams(laid: pl.DataFrame, *, seed: int, bootstrap: int) -> dict[str, Any]:
    """Return the AUC of unexpectedness when only tracks of the same team are compared, and that over cost.

    Whoever removes much and whoever is surprising much may be the same team; here that tells nothing.
    """
    _, team = np.unique(laid["team"].to_numpy(), return_inverse=True)
    removed = laid["removed_later"].to_numpy()
    own = (team == np.arange(team.max(initial=-1) + 1)[:, None]).astype(np.float64)
    pairs = own @ removed * (own @ ~removed)
    counts = np.vstack(
        [np.ones(len(own)), draw_clusters(np.arange(len(own)), seed=seed, bootstrap=bootstrap)]
    )
    found = []
    for score in ("unexpectedness", "cost"):
        each = np.where(pairs > 0, weighted_aucs(laid[score].to_numpy(), removed, own), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(counts @ (each * pairs) / (counts @ pairs))
    more = found[0] - found[1]
    (low, high), (more_low, more_high) = ends(found[0][1:]), ends(more[1:])
    return {
        "auc": float(found[0][0]), "low": low, "high": high, "over_cost": float(more[0]),
        "over_cost_low": more_low, "over_cost_high": more_high, "n": laid.height,
    }  # fmt: skip


def logistic(x: Floats, y: Floats, weight: Floats, *, start: Floats | None = None) -> Floats:
    """Return the coefficients of a logistic regression under every line of weights, [B, p].

    They are NaN where the regression does not settle.

    Parameters
    ----------
    x : float array [p, n]
        The design, one line per column, the intercept first.
    y : float array [n]
        What happened.
    weight : float array [B, n]
        How much each row counts.
    start : float array [p], optional
        Where to begin.
    """
    begin = np.zeros(len(x)) if start is None or not np.isfinite(start).all() else start
    parts = range(0, len(weight), DRAWS_AT_ONCE)
    return np.concatenate([_settled(x, y, weight[first : first + DRAWS_AT_ONCE], begin) for first in parts])


def _settled(x: Floats, y: Floats, weight: Floats, begin: Floats) -> Floats:
    """Newton steps from one place, of as many draws as fit into fast memory."""
    size = len(x)
    beta, found = np.tile(begin, (len(weight), 1)), np.full((len(weight), size), np.nan)
    squares = (x[:, None] * x[None]).reshape(size * size, -1).T
    left = np.arange(len(weight))
    for _ in range(STEPS):
        p = expit(beta[left] @ x)
        slope = (weight[left] * (y - p)) @ x.T
        p *= 1.0 - p
        curve = ((weight[left] * p) @ squares).reshape(-1, size, size)
        good = np.linalg.cond(curve) < WORST
        left, step = left[good], np.linalg.solve(curve[good], slope[good][:, :, None])[:, :, 0]
        beta[left] += np.clip(step, -5.0, 5.0)
        settled = np.abs(step).max(axis=1) < SMALL_STEP
        found[left[settled]] = beta[left[settled]]
        left = left[~settled]
        if not len(left):
            break
    return found
