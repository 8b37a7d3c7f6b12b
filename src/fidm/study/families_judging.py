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


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The people of one fold: who, their log-likelihood, and what was expected of their observations."""

    people: Integers
    log_likelihood: Floats
    owner: Integers
    raw: Floats
    predicted: Predicted


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One family: log-likelihood and observations of everybody [P], residuals, and θ of a fit to all."""

    log_likelihood: Floats
    counts: Integers
    residual: Floats
    raw: Floats
    dispersion: float
    zeros: tuple[float, float]
    theta: Floats
    settings: str


class Judge:
    """Learns a family from some people and judges it on others."""

    def __init__(self, people: Cohort, parts: tuple[Channel, ...], *, tune: bool, workers: int) -> None:
        self.people, self.workers, self.tune = people, workers, tune
        self.parts = parts
        self.levels: Levels = text_levels(parts, people)
        self.parts, self.shared = self.learn(people)  # a fold's search for settings begins where this ended

    def learn(self, learners: Cohort) -> tuple[tuple[Channel, ...], list[Learned]]:
        """Choose settings and learn what people share."""
        channels = tuple(
            tuned(part, learners, refine=1, workers=self.workers) if self.tune and part.tunable else part
            for part in self.parts
        )
        seen = observed(channels, learners, self.levels)
        return channels, [
            learn_population(
                channel,
                one,
                self.levels,
                method="eb",
                population="random",
                workers=self.workers,
                tolerance=TOLERANCE,
            )
            for channel, one in zip(channels, seen, strict=True)
        ]

    def hold_out(self, held: Integers, others: Integers) -> HeldOut:
        """Learn from the others and judge these."""
        channels, learned = self.learn(self.people[others])
        cohort = self.people[held]
        seen = observed(channels, cohort, self.levels)
        total = np.zeros(len(held))
        predicted: list[Predicted] = []
        for channel, one, shared in zip(channels, seen, learned, strict=True):
            total += log_likelihoods(channel, one, shared.population, workers=self.workers)
            predicted.append(predict(channel, one, shared.population))
        whole = predicted[0]
        if len(seen) > 1:
            whole = Predicted.two_parts(predicted[0], predicted[1], np.isin(seen[0].row, seen[1].row))
        raw = column_values(cohort.segments, channels[0].column)[seen[0].row]
        return HeldOut(held, total, held[_owner(seen[0])], raw, whole)

    def joined(self, folds: Sequence[HeldOut], rng: np.random.Generator) -> Judged:
        """Put the folds together, with the θ of a fit to everybody."""
        n = len(self.people)
        total, counts = np.zeros(n), np.zeros(n, dtype=np.int64)
        for held in folds:
            total[held.people] = held.log_likelihood
            counts += np.bincount(held.owner, minlength=n)
        raw = np.concatenate([held.raw for held in folds])
        away = np.concatenate(
            [(held.raw - held.predicted.mean) ** 2 / held.predicted.variance for held in folds]
        )
        expected = float(np.mean(np.concatenate([held.predicted.zero for held in folds])))
        zeros = (float((raw == 0).mean()), expected)
        channel = self.parts[-1]
        seen = observed([channel], self.people, self.levels)[0]
        theta = own_offsets(channel, seen, self.shared[-1].population, method="eb", level=0.95).estimate
        return Judged(
            log_likelihood=total,
            counts=counts,
            residual=np.concatenate([held.predicted.residuals(rng) for held in folds]),
            raw=raw,
            dispersion=float(np.mean(away)) if (away > 0).any() else math.nan,
            zeros=zeros,
            theta=np.where(seen.counts > 0, theta, np.nan),
            settings=", ".join(
                f"{name} {getattr(part, name):.3g}" for part in self.parts for name in part.tunable
            ),
        )


def _owner(seen: Observed) -> Integers:
    return np.repeat(np.arange(len(seen.offsets) - 1), seen.counts)
