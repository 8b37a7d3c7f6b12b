"""What hangs on how the network task is read: the price of a change, submissions, soft values, whose η.

The price of a change decides what a wrong track costs. It has to be laid and taken away again, so at a small
price all wrong tracks lose about the same, whatever they cost in francs. At a price near that of a track it
is sometimes better to let a dear one lie, and then values know prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.evidence.surprisal import find_surprisal
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.model.action import TIE
from fidm.tasks.stack import follow
from fidm.tasks.toggles import solve_toggles
from fidm.types import Floats, Values
from fidm_studies.dataset import Loaded
from fidm_studies.justhink import anchor, people
from fidm_studies.justhink.network import CHANGE, TAU
from fidm_studies.resampling import rank_correlation

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
        What :func:`fidm_studies.justhink.anchor.laid_tracks` gave.
    odds : DataFrame
        What :func:`fidm_studies.justhink.anchor.removal_odds` gave.
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
        return anchor.laid_tracks(self.loaded.tables["edits"], actions, self.loaded.tables["network"])

    def aucs(self, laid: pl.DataFrame) -> dict[str, Any]:
        """Return how well unexpectedness tells which tracks are removed."""
        draws = {"seed": self.seed, "bootstrap": self.bootstrap}
        row = anchor.removal_aucs(laid, **draws, scores=("unexpectedness",)).row(0, named=True)
        names = ("auc", "low", "high", "over_cost", "over_cost_low", "over_cost_high", "n")
        return {name: row[name] for name in names}


def other_readings(reading: Reading) -> pl.DataFrame:
    """Return what comes out if the task is read otherwise.

    Columns: ``reading``; ``change``, its price in francs; ``same_order``, the rank correlation of η with that
    reported; ``auc`` and ``over_cost`` as in :func:`fidm_studies.justhink.anchor.removal_aucs`; ``odds``
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
        fit = Model(task, channels=(), values=values).fit(counted, workers=reading.workers)
        profile = fit.profile(counted, workers=reading.workers)
        found = find_surprisal(fit, cohort, follow(fit.tasks, cohort), profile.action_sensitivity)
        laid = reading.laid_under(found.unexpectedness, found.q_gap)
        gain = _marginal(fit, cohort) - own if counted is cohort else None
        odds = anchor.removal_odds(laid, seed=reading.seed, bootstrap=reading.bootstrap)
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
    :func:`fidm_studies.justhink.anchor.removal_aucs`.
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
            **anchor.within_teams(reading.laid, seed=reading.seed, bootstrap=reading.bootstrap),
        },
    ]
    return pl.DataFrame(rows)


def best_by_chance(laid: pl.DataFrame, values: Values) -> float:
    """Return how often a track laid at random, where one was laid, would be in line with a best plan.

    Parameters
    ----------
    laid : DataFrame
        The laid tracks, with the board before each (``state``).
    values : Values
        The values of the task.
    """
    state = laid["state"].to_numpy()
    q = values.q[state]
    tracks = np.arange(q.shape[1] - 1)
    free = (state[:, None] >> tracks) & 1 == 0
    best = free & (q[:, :-1] > q.max(axis=1, keepdims=True) - TIE)
    return float((best.sum(axis=1) / free.sum(axis=1)).mean()) if len(state) else math.nan
