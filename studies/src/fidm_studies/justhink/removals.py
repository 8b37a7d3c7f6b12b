"""Whether tracks that were laid unexpectedly are removed again, and what hangs on how the task is read.

Every track a child lays either stays until the board is submitted or replaced, or is removed before: a
criterion that knows nothing of the model. How well unexpectedness predicts the one or the other is an AUC; so
is what plainer things predict: the track's cost, whether it closes a cycle, how far the attempt has come.
Intervals come from resampling teams, whole teams each time, since both children of a team work on one board.

The price of a change decides what a wrong track costs. It has to be laid and taken away again, so at a small
price all wrong tracks lose about the same, whatever they cost in francs. At a price near that of a track it
is sometimes better to let a dear one lie, and then values know prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from fidm.cohort import Cohort
from fidm.evidence.evidence import find_surprisal
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.model.action import TIE
from fidm.tasks.stack import follow
from fidm.types import Floats, Values
from fidm_studies.dataset import Loaded
from fidm_studies.justhink import people
from fidm_studies.justhink.network import CHANGE, TAU
from fidm_studies.justhink.toggles import solve_toggles
from fidm_studies.resampling import draw_clusters, ends, rank_correlation, weighted_aucs

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
    """Return every track that was laid, with its unexpectedness and whether it was removed later."""
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


AS_READ = "as read here"


OTHER_CHANGES = (1.0, 2.0)
"""Other prices of a change that are tried, in francs."""


OWN, WITHOUT, ONE, WITHIN = "own", "without the attempt", "one for all", "within pairs"


WHOSE = {
    OWN: "η from all changes of the child, as reported",
    WITHOUT: "η from the child's other attempts",
    ONE: "one η for all children",
    WITHIN: "η as reported, tracks of the same pair compared only",
}
"""Under whose η a track is unexpected, in words."""


MIDDLE = (0.05, 0.95)
"""Between these quantiles lies what most wrong tracks lose."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The reading the page reports, beside which others are put.

    Parameters
    ----------
    loaded : Loaded
        The data.
    values : Values
        The values of the task.
    fit, profile
        What was learned, and everybody's estimates.
    actions : DataFrame
        The actions of :func:`fidm.evidence.evidence.find_evidence`.
    laid : DataFrame
        What :func:`fidm_studies.justhink.removals.laid_tracks` gave.
    odds : DataFrame
        What :func:`fidm_studies.justhink.removals.removal_odds` gave.
    seed, bootstrap : int
        Of the draws of teams, and how many.
    workers : int, optional
        Threads; changes no number.
    """

    loaded: Loaded
    values: Values
    fit: Fit
    profile: Profile
    actions: pl.DataFrame
    laid: pl.DataFrame
    odds: pl.DataFrame
    seed: int
    bootstrap: int
    workers: int | None

    def laid_under(self, unexpectedness: Floats, q_gap: Floats) -> pl.DataFrame:
        """Return the laid tracks with another unexpectedness and value lost, those of every step, [N]."""
        actions = self.actions.with_columns(unexpectedness=unexpectedness, q_gap=q_gap)
        return laid_tracks(self.loaded.tables["edits"], actions, self.loaded.tables["network"])

    def aucs(self, laid: pl.DataFrame) -> dict[str, Any]:
        """Return how well unexpectedness tells which tracks are removed."""
        draws = {"seed": self.seed, "bootstrap": self.bootstrap}
        row = removal_aucs(laid, **draws, scores=("unexpectedness",)).row(0, named=True)
        names = ("auc", "low", "high", "over_cost", "over_cost_low", "over_cost_high", "n")
        return {name: row[name] for name in names}


def other_readings(reading: Reading) -> pl.DataFrame:
    """Return what comes out if the task is read otherwise.

    Columns: ``reading``; ``change``, its price in francs; ``same_order``, the rank correlation of η with that
    reported; ``auc`` and ``over_cost`` as in :func:`fidm_studies.justhink.removals.removal_aucs`; ``odds``
    of removal per standard deviation of unexpectedness, cost, circle and changes before held fixed;
    ``log_likelihood``, how much more probable the same choices are than as read here, η averaged over what
    children are like (missing where other choices count); ``loss_low`` and ``loss_high``, between which nine
    of ten tracks that are in line with no best plan lose value, in francs (missing for soft values); ``n``.
    """
    loaded, cohort = reading.loaded, reading.loaded.cohort
    task = loaded.tasks[0]
    plain = replace(reading.fit, channels=(), populations={})
    own = _marginal(plain, cohort)
    rows = [
        {
            **_row(reading, AS_READ, CHANGE, reading.profile, reading.laid, 0.0, reading.odds),
            **_losses(reading.laid, reading.values),
        }
    ]
    for name, change, counted, values in _others(reading):
        fit = Model(task, channels=(), believes=values, lapse=0).fit(counted, workers=reading.workers)
        profile = fit.profile(counted, workers=reading.workers)
        found = find_surprisal(fit, cohort, follow(fit.tasks, cohort), profile.action_sensitivity)
        laid = reading.laid_under(found.unexpectedness, found.q_gap)
        gain = _marginal(fit, cohort) - own if counted is cohort else None
        odds = removal_odds(laid, seed=reading.seed, bootstrap=reading.bootstrap)
        row = _row(reading, name, change, profile, laid, gain, odds)
        rows.append({**row, **_losses(laid, values)})
    return pl.DataFrame(rows, infer_schema_length=None)


def _others(reading: Reading) -> Iterable[tuple[str, float, Cohort, Values]]:
    """Name, price of a change, people with what counts, and values; one at a time, since they are large."""
    cohort, task = reading.loaded.cohort, reading.loaded.tasks[0]
    for change in OTHER_CHANGES:
        price = f"{change:g} franc{'' if change == 1 else 's'}"
        yield f"a change costs {price}", change, cohort, solve_toggles(task, change=-change)
    weight = np.ones(cohort.n_steps) if cohort.weight is None else cohort.weight
    with_ends = replace(cohort, weight=np.where(cohort.action == task.n_actions - 1, 1.0, weight))
    yield "submissions count, as choices of both children", CHANGE, with_ends, reading.values
    soft = f"soft values (log-mean-exp, τ = {TAU:g} franc)"
    yield soft, CHANGE, cohort, solve_toggles(task, "mean")


def _marginal(fit: Fit, cohort: Cohort) -> float:
    """The log-likelihood of everybody's choices, η averaged over what children are like."""
    return math.fsum(fit.log_likelihood(cohort, at="prior")["action"])


def _row(
    reading: Reading,
    name: str,
    change: float,
    other: Profile,
    laid: pl.DataFrame,
    gain: float | None,
    odds: pl.DataFrame,
) -> dict[str, Any]:
    alike = rank_correlation(
        reading.profile.log_sensitivity, other.log_sensitivity, seed=reading.seed, bootstrap=1
    )
    own = odds.filter(score="unexpectedness").rows(named=True) or [dict.fromkeys(("odds", "low", "high"))]
    return {
        "reading": name,
        "change": change,
        "same_order": alike.value,
        **reading.aucs(laid),
        "odds": own[0]["odds"],
        "odds_low": own[0]["low"],
        "odds_high": own[0]["high"],
        "log_likelihood": gain,
    }


def _losses(laid: pl.DataFrame, values: Values) -> dict[str, float | None]:
    """Between which ends nine of ten wrong tracks lose value; soft values have no plain best plan."""
    lost = laid["q_gap"].to_numpy()
    lost = lost[lost >= TIE]
    if values.normaliser != "max" or not len(lost):
        return {"loss_low": None, "loss_high": None}
    low, high = np.quantile(lost, MIDDLE)
    return {"loss_low": float(low), "loss_high": float(high)}


def whose_sensitivity(reading: Reading) -> pl.DataFrame:
    """Return what unexpectedness tells under an η that has not seen the attempt, and under one for all.

    A child's η is learned from all its changes, the removals among them and the attempt itself. Columns:
    ``whose`` (a key of :data:`WHOSE`), and ``auc``, ``over_cost`` and ``n`` as in
    :func:`fidm_studies.justhink.removals.removal_aucs`.
    """
    cohort = reading.loaded.cohort
    plain = replace(reading.fit, channels=(), populations={})
    followed = follow(plain.tasks, cohort)
    gap = find_surprisal(plain, cohort, followed, reading.profile.action_sensitivity).q_gap
    attempt = people.attempts(cohort)
    weight = np.ones(cohort.n_steps) if cohort.weight is None else cohort.weight
    unseen = np.full(cohort.n_steps, np.nan)
    for one in np.unique(attempt):
        is_it = attempt == one
        others = plain.profile(
            replace(cohort, weight=np.where(is_it, 0.0, weight)), workers=reading.workers
        ).action_sensitivity
        unseen[is_it] = find_surprisal(plain, cohort, followed, others).unexpectedness[is_it]
    middle = np.full(len(cohort), math.exp(plain.prior.mean))
    shared = find_surprisal(plain, cohort, followed, middle).unexpectedness
    rows = [
        {"whose": OWN, **reading.aucs(reading.laid)},
        {"whose": WITHOUT, **reading.aucs(reading.laid_under(unseen, gap))},
        {"whose": ONE, **reading.aucs(reading.laid_under(shared, gap))},
        {
            "whose": WITHIN,
            **within_teams(reading.laid, seed=reading.seed, bootstrap=reading.bootstrap),
        },
    ]
    return pl.DataFrame(rows)


def best_by_chance(laid: pl.DataFrame, values: Values) -> float:
    """Return how often a track laid at random, where one was laid, would be in line with a best plan."""
    state = laid["state"].to_numpy()
    q = values.q[state]
    tracks = np.arange(q.shape[1] - 1)
    free = (state[:, None] >> tracks) & 1 == 0
    best = free & (q[:, :-1] > q.max(axis=1, keepdims=True) - TIE)
    return float((best.sum(axis=1) / free.sum(axis=1)).mean()) if len(state) else math.nan
