r"""Several kinds of people: where one bell does not describe them, two do, over all parameters at once.

Fifteen impaired people among a hundred are swallowed by a prior that knows only one kind: everybody is drawn
towards the many. Here a person is of kind c with the probability :math:`w_c`, and then every parameter has a
normal prior of that kind. What the choices, the durations and the pauses say together tells the kind far
better than any of them alone. Two kinds are learned by expectation–maximisation from likelihoods on nodes,
with coefficients, shapes and lapse rate held; they are kept only if they beat one kind by more than their
numbers cost (Bayesian information criterion).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fidm.fit.offsets import OwnKinds
from fidm.types import Floats

FEWEST_PEOPLE = 40
"""Kinds are not looked for among fewer people."""

MOST_PEOPLE = 4_000
"""More people are not needed to learn them."""

ROUNDS = 400
CLEARLY = 3.0
"""How much the log-likelihood of two kinds must exceed that of parameters that go together."""
WIDE = 1.5
"""The spread of the prior under which likelihoods are taken for normal ones."""
NARROWEST = 0.4
"""The smallest spread of a kind, in units of the population's sd."""
SMALLEST = 0.02
"""The smallest share of people that is a kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Shares of C kinds of people [C], and mean and sd of every parameter in each, [C, K].

    Means are distances from the population's mean, both in units of the population's sd; log η comes first.
    """

    share: Floats
    place: Floats
    spread: Floats

    def log_evidence(self, likelihoods: Sequence[Likelihood]) -> Floats:
        """Return how probable everybody's data are under each kind, by parameter, [P, C, K]."""
        found = [
            np.stack(
                [own.log_mass(*kind) for kind in zip(self.place[:, k], self.spread[:, k], strict=True)], 1
            )
            for k, own in enumerate(likelihoods)
        ]
        return np.stack(found, axis=2)

    def own(self, likelihoods: Sequence[Likelihood]) -> list[OwnKinds]:
        """Return everybody's prior of every parameter, given what the other parameters say of their kind."""
        evidence = self.log_evidence(likelihoods)
        total = evidence.sum(axis=2) + np.log(self.share)
        return [
            OwnKinds(_shares(total - evidence[:, :, k]), self.place[:, k], self.spread[:, k])
            for k in range(evidence.shape[2])
        ]

    def probabilities(self, likelihoods: Sequence[Likelihood]) -> Floats:
        """Return how probable each kind is for everybody, [P, C]."""
        return _shares(self.log_evidence(likelihoods).sum(axis=2) + np.log(self.share))


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """Everybody's likelihood of one parameter on nodes.

    ``at`` says where the nodes lie, in units of the population's sd from its mean: [Q], or [P, Q] if people
    have nodes of their own. ``value`` is the likelihood there, times the distance of nodes, [P, Q].
    """

    at: Floats
    value: Floats

    def log_mass(self, place: float, spread: float) -> Floats:
        """Return the logarithm of the integral under a normal prior, [P]."""
        bell = np.exp(-0.5 * ((self.at - place) / spread) ** 2) / spread
        mass = self.value @ bell if bell.ndim == 1 else (self.value * bell).sum(axis=1)
        return np.asarray(np.log(np.maximum(mass, 1e-300)))

    def moments(self, place: float, spread: float) -> tuple[Floats, Floats, Floats]:
        """Return the logarithm of the integral, and the posterior's mean and second moment, [P] each."""
        bell = np.broadcast_to(np.exp(-0.5 * ((self.at - place) / spread) ** 2) / spread, self.value.shape)
        weight = self.value * bell
        mass = np.maximum(weight.sum(axis=1), 1e-300)
        first = (weight * self.at).sum(axis=1) / mass
        return np.log(mass), first, (weight * self.at**2).sum(axis=1) / mass


def learn_kinds(likelihoods: Sequence[Likelihood]) -> Kinds | None:
    """Return the kinds of people there are, or None where one is enough.

    Likelihoods are first taken for normal ones, which is quick; only if two kinds then look worth their while
    are they learned from the likelihoods themselves.
    """
    n, width = len(likelihoods[0].value), len(likelihoods)
    if n < FEWEST_PEOPLE:
        return None
    seen = [own.moments(0.0, WIDE) for own in likelihoods]
    mean, square = (np.array([one[i] for one in seen]).T for i in (1, 2))
    # Sums over people must not depend on their order, so they are put into one.
    order = np.lexsort(mean.T)
    mean, square = mean[order], square[order]
    precision = np.maximum(1 / np.maximum(square - mean**2, 1e-12) - WIDE**-2, 1e-9)
    measured = (mean * (precision + WIDE**-2)) / precision, 1 / precision
    cost = 0.5 * (1 + 2 * width) * math.log(n)
    one, _ = _roughly(*measured, np.ones((n, 1)))
    z = (mean - mean.mean(axis=0)) / np.maximum(mean.std(axis=0), 1e-9)
    direction = np.linalg.eigh(z.T @ z)[1][:, -1]
    found = []
    for score in (z @ direction, -(z @ direction), (z**2).sum(axis=1)):
        far = score > np.quantile(score, 0.85)
        found.append(_roughly(*measured, np.where(far[:, None], (0.1, 0.9), (0.9, 0.1))))
    value, rough = max(found, key=lambda result: result[0])
    if value - one < 0.7 * cost or rough.share.min() < SMALLEST:
        return None
    # Parameters that merely go together look a little like kinds, but one sloping bell fits them better.
    if value - _going_together(*measured) < CLEARLY:
        return None
    own = [Likelihood(k.at if k.at.ndim == 1 else k.at[order], k.value[order]) for k in likelihoods]
    one, _ = _climb(own, Kinds(np.ones(1), np.zeros((1, width)), np.ones((1, width))))
    value, best = _climb(own, rough)
    return best if value - one > cost and best.share.min() >= SMALLEST else None


def _roughly(y: Floats, noise: Floats, belongs: Floats) -> tuple[float, Kinds]:
    """Expectation–maximisation as if everybody's parameters were measured with normal noise, [P, K]."""
    value, place, spread = -math.inf, np.zeros((1, 1)), np.ones((1, 1))
    theta, variance = y / (1 + noise), noise / (1 + noise)  # shrunk by the one kind that begins
    theta, variance = theta[:, None], np.repeat(variance[:, None], belongs.shape[1], axis=1)
    for _ in range(ROUNDS):
        share = belongs.mean(axis=0)
        weight = (belongs / belongs.sum(axis=0))[:, :, None]
        place = (weight * theta).sum(axis=0)
        spread = np.sqrt((weight * (variance + (theta - place) ** 2)).sum(axis=0))
        spread = np.maximum(spread, NARROWEST)
        total = spread**2 + noise[:, None]
        log_total = np.log(np.maximum(share, 1e-6)) - 0.5 * (
            (y[:, None] - place) ** 2 / total + np.log(total)
        ).sum(axis=2)
        reached = float(np.logaddexp.reduce(log_total, axis=1).sum())
        belongs = _shares(log_total)
        gain = spread**2 / total
        theta, variance = place + gain * (y[:, None] - place), gain * noise[:, None]
        if reached - value < 1e-3:
            break
        value = reached
    return value, Kinds(share, place, spread)


def _going_together(y: Floats, noise: Floats) -> float:
    """The log-likelihood of one kind whose parameters may go together, with normal noise."""
    n, width = y.shape
    mean, covariance = y.mean(axis=0), np.eye(width)
    value = -math.inf
    for _ in range(ROUNDS):
        total = covariance + noise[:, :, None] * np.eye(width)
        away = np.linalg.solve(total, (y - mean)[:, :, None])[:, :, 0]
        log_det = np.linalg.slogdet(total)[1]
        reached = float(-0.5 * ((y - mean) * away).sum() - 0.5 * log_det.sum())
        if reached - value < 1e-2:
            break
        value = reached
        theta = mean + away @ covariance
        left = covariance - covariance @ np.linalg.solve(total, np.broadcast_to(covariance, total.shape))
        mean = theta.mean(axis=0)
        covariance = left.mean(axis=0) + (theta - mean).T @ (theta - mean) / n
    return value


def _climb(likelihoods: Sequence[Likelihood], kinds: Kinds) -> tuple[float, Kinds]:
    """Expectation–maximisation from kinds that are nearly right; the log-likelihood, and the kinds."""
    value = -math.inf
    for _ in range(ROUNDS):
        log_total = kinds.log_evidence(likelihoods).sum(axis=2) + np.log(kinds.share)
        reached = float(np.logaddexp.reduce(log_total, axis=1).sum())
        if reached - value < 1e-2:
            break
        value, belongs = reached, _shares(log_total)
        total = belongs.sum(axis=0)
        place, spread = np.empty_like(kinds.place), np.empty_like(kinds.spread)
        for k, own in enumerate(likelihoods):
            for c in range(len(total)):
                _, first, second = own.moments(kinds.place[c, k], kinds.spread[c, k])
                place[c, k] = belongs[:, c] @ first / total[c]
                variance = belongs[:, c] @ second / total[c] - place[c, k] ** 2
                spread[c, k] = max(math.sqrt(max(variance, 0.0)), NARROWEST)
        kinds = Kinds(np.maximum(total / len(belongs), 1e-6), place, spread)
    return reached, kinds


def _shares(log_weight: Floats) -> Floats:
    weight = np.exp(log_weight - log_weight.max(axis=1)[:, None])
    return np.asarray(weight / weight.sum(axis=1)[:, None])
