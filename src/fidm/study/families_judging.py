"""Judging one family of distributions on people it was not learned from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.evidence.quantiles import Predicted, predict
from fidm.fit.effort_factor import learn_population, log_likelihoods, own_offsets
from fidm.fit.population import Learned
from fidm.fit.tuning import tuned
from fidm.model.channels import Channel
from fidm.model.effort import Levels, Observed, column_values, observed, text_levels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-6
"""How exactly populations are fitted: to about that many standard errors per person."""


Part = tuple[Channel, Learned]
"""A channel with its settings chosen, and what people share."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The people of one fold: who, their log-likelihood, and what was expected of their observations.

    ``is_zero`` and ``zero`` are of all observations; ``raw`` and ``predicted`` of those above 0 alone if the
    family is in two parts.
    """

    people: Integers
    log_likelihood: Floats
    owner: Integers
    is_zero: NDArray[np.bool_]
    zero: Floats
    raw: Floats
    predicted: Predicted


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One family: log-likelihood and observations of everybody [P], residuals, and θ of a fit to all.

    Residuals and dispersion of a family in two parts are those of the amounts: residuals of the zeros are
    drawn at random, so they would only make any family look better.
    """

    log_likelihood: Floats
    counts: Integers
    residual: Floats
    dispersion: float
    zeros: tuple[float, float]
    theta: Floats
    settings: str


class Judge:
    """Learns a family from some people and judges it on others.

    ``known`` remembers what was learned of a channel, by its identity, from the people without a fold, so
    that a part two families share is learned once.
    """

    def __init__(
        self,
        people: Cohort,
        parts: tuple[Channel, ...],
        *,
        tune: bool,
        workers: int,
        known: dict[tuple[int, int | None], Part] | None = None,
    ) -> None:
        self.people, self.workers, self.tune = people, workers, tune
        self.given = parts
        self.known = {} if known is None else known
        self.levels: Levels = text_levels(parts, people)
        self.whole = [self.learn(part, people, None) for part in parts]

    def learn(self, part: Channel, learners: Cohort, fold: int | None) -> Part:
        """Choose settings, searching from those given, and learn what people share."""
        place = id(part), fold
        if place not in self.known:
            channel = part
            if self.tune and part.tunable:
                channel = tuned(part, learners, refine=1, workers=self.workers)
            learned = learn_population(
                channel,
                observed([channel], learners, self.levels)[0],
                self.levels,
                method="eb",
                population="random",
                workers=self.workers,
                tolerance=TOLERANCE,
                errors=False,
            )
            self.known[place] = channel, learned
        return self.known[place]

    def hold_out(self, fold: int, held: Integers, others: Integers) -> HeldOut:
        """Learn from the others and judge these."""
        learners, cohort = self.people[others], self.people[held]
        parts = [self.learn(part, learners, fold) for part in self.given]
        seen = observed([channel for channel, _ in parts], cohort, self.levels)
        total = np.zeros(len(held))
        predicted: list[Predicted] = []
        for (channel, learned), one in zip(parts, seen, strict=True):
            total += log_likelihoods(channel, one, learned.population, workers=self.workers)
            predicted.append(predict(channel, one, learned.population))
        raw = column_values(cohort.segments, parts[0][0].column)
        return HeldOut(
            people=held,
            log_likelihood=total,
            owner=held[_owner(seen[0])],
            is_zero=raw[seen[0].row] == 0,
            zero=predicted[0].zero,
            raw=raw[seen[-1].row],
            predicted=predicted[-1],
        )

    def joined(self, folds: Sequence[HeldOut], rng: np.random.Generator) -> Judged:
        """Put the folds together, with the θ of a fit to everybody."""
        n = len(self.people)
        total, counts = np.zeros(n), np.zeros(n, dtype=np.int64)
        for held in folds:
            total[held.people] = held.log_likelihood
            counts += np.bincount(held.owner, minlength=n)
        away = np.concatenate(
            [(held.raw - held.predicted.mean) ** 2 / held.predicted.variance for held in folds]
        )
        is_zero, zero = (
            np.concatenate([getattr(held, name) for held in folds]) for name in ("is_zero", "zero")
        )
        channel, learned = self.whole[-1]
        seen = observed([channel], self.people, self.levels)[0]
        theta = own_offsets(channel, seen, learned.population, method="eb", level=0.95).estimate
        return Judged(
            log_likelihood=total,
            counts=counts,
            residual=np.concatenate([held.predicted.residuals(rng) for held in folds]),
            dispersion=float(np.mean(away)) if (away > 0).any() else math.nan,
            zeros=(float(is_zero.mean()), float(zero.mean())),
            theta=np.where(seen.counts > 0, theta, np.nan),
            settings=", ".join(
                f"{name} {getattr(part, name):.3g}" for part, _ in self.whole for name in part.tunable
            ),
        )


def _owner(seen: Observed) -> Integers:
    return np.repeat(np.arange(len(seen.offsets) - 1), seen.counts)
