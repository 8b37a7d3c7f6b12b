"""One family of distributions, learned from some people and judged on others.

A family may have a setting to choose, such as the power of a generalised gamma; :func:`tuned` chooses it by
the marginal likelihood of the people learned from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.evidence.quantiles import Predicted, predict
from fidm.fit.common import learn_population, log_likelihoods, own_offsets, threads
from fidm.fit.effort_alone import as_cohort
from fidm.fit.population import Learned, random_intercepts
from fidm.model.channels import Channel
from fidm.model.effort import (
    Levels,
    Observed,
    column_values,
    design_names,
    effort_problems,
    observed,
    refuse,
    text_levels,
)
from fidm.types import Floats, Integers

ROUGHLY = 1e-5
"""How exactly a population is fitted when settings are compared; enough for their log-likelihood."""

TOLERANCE = 1e-6
"""How exactly populations are fitted: to about that many standard errors per person."""


Part = tuple[Channel, Learned]
"""A channel with its settings chosen, and what people share."""

Kind = TypeVar("Kind", bound=Channel)


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
class FamilyScores:
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


class FamilyTest:
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
            owner=np.repeat(held, seen[0].counts),
            is_zero=raw[seen[0].row] == 0,
            zero=predicted[0].zero,
            raw=raw[seen[-1].row],
            predicted=predicted[-1],
        )

    def joined(self, folds: Sequence[HeldOut], rng: np.random.Generator) -> FamilyScores:
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
        return FamilyScores(
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


# ---------------------------------------------------------------------- settings


def tuned(
    channel: Kind,
    cohort: Cohort | pl.DataFrame | Any,
    *,
    setting: str | None = None,
    values: Sequence[float] | None = None,
    refine: int = 2,
    workers: int | None = None,
) -> Kind:
    """Return a channel with the setting under which these people's observations are most probable.

    The marginal log-likelihood of random intercepts is followed uphill over the values to try, from the one
    nearest to the channel's own setting, and then between the best of them and its neighbours. It is taken to
    have one peak.

    Parameters
    ----------
    channel : Channel
        A channel with a setting to choose; one that has none comes back as it is.
    cohort : Cohort or DataFrame
        The people to learn from, or their segments. Judge the choice on others.
    setting : str, optional
        Which setting; the channel's only one that can be tuned if left out.
    values : sequence of float, optional
        The values to try, in order; the channel's own (:attr:`fidm.channels.Channel.tunable`) if left out.
    refine : int
        How often the gap between the best value and its neighbours is halved.
    workers : int, optional
        Threads; changes no number.

    Examples
    --------
    >>> import fidm, numpy as np, polars as pl
    >>> from fidm.experiments.held_out import tuned
    >>> rng = np.random.default_rng(1)
    >>> seconds = rng.gamma(2.0, 1.0, 400) ** 2  # so the square root is Gamma
    >>> segments = pl.DataFrame(
    ...     {"participant": [f"P{j // 20}" for j in range(400)], "segment": range(400), "wait_s": seconds}
    ... )
    >>> channel = fidm.channels.GeneralizedGamma("wait", "wait_s", design=())
    >>> 0.2 < tuned(channel, segments).power < 0.8
    True
    """
    if setting is None and values is None and not channel.tunable:
        return channel
    name = setting or _only(channel)
    tried = tuple(channel.tunable.get(name, ()) if values is None else values)
    if not tried or not hasattr(channel, name):
        can = ", ".join(channel.tunable) or "none"
        raise FitError(f"{channel.name} has no values to try for {name!r}; it can tune: {can}.")
    people = as_cohort(cohort)
    levels = text_levels([channel], people)
    seen = _seen(channel, people, levels)
    reached: dict[float, float] = {}

    def at(value: float) -> float:
        if value not in reached:
            reached[value] = _marginal(_with(channel, name, value), seen, levels, threads(workers))
        return reached[value]

    best = _uphill(at, tried, getattr(channel, name))
    for _ in range(refine):
        known = sorted(reached)
        place = known.index(best)
        between = [0.5 * (best + known[i]) for i in (place - 1, place + 1) if 0 <= i < len(known)]
        best = max([best, *(value for value in between if _allowed(channel, name, value))], key=at)
    if not math.isfinite(at(best)):
        random_intercepts(_with(channel, name, best), seen, design_names(channel, levels), 1)  # says why
    return _with(channel, name, best)


def _only(channel: Channel) -> str:
    """The one setting of a channel that can be tuned."""
    if len(channel.tunable) != 1:
        raise FitError(f"{channel.name} has {len(channel.tunable)} settings to tune; name one with setting=…")
    return next(iter(channel.tunable))


def _seen(channel: Channel, people: Cohort, levels: Levels) -> Observed:
    refuse(effort_problems([channel], people), remedy="Repair them, or leave these observations empty.")
    return observed([channel], people, levels)[0]


def _with(channel: Kind, name: str, value: float) -> Kind:
    """The same channel with another setting; whole numbers stay whole."""
    changes: dict[str, Any] = {name: type(getattr(channel, name))(value)}
    return replace(channel, **changes)


def _allowed(channel: Channel, name: str, value: float) -> bool:
    """Whether a channel may have this setting."""
    try:
        _with(channel, name, value)
    except DataError:
        return False
    return True


def _marginal(channel: Channel, seen: Observed, levels: Levels, workers: int) -> float:
    """The marginal log-likelihood of everybody's observations; −∞ where the channel cannot be fitted."""
    try:
        names = design_names(channel, levels)
        learned = random_intercepts(channel, seen, names, workers, tolerance=ROUGHLY, errors=False)
    except FitError:
        return -math.inf
    return math.fsum(log_likelihoods(channel, seen, learned.population, workers=workers))


def _uphill(at: Callable[[float], float], values: Sequence[float], start: float) -> float:
    """The best of values in order, found by going uphill from the one nearest to a start."""
    place = min(range(len(values)), key=lambda i: abs(values[i] - start))
    for step in (1, -1):
        while 0 <= place + step < len(values) and at(values[place + step]) > at(values[place]):
            place += step
    return values[place]
