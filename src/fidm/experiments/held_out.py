"""One family of distributions, learned from some people and judged on others.

A family may have a setting to choose, such as the power of a generalised gamma; :func:`tuned` chooses it by
the marginal likelihood of the people learned from.

Quantile residuals: whether observations are spread as an effort channel says they are.

An observation y that was drawn from a distribution F has F(y) spread evenly between 0 and 1, and
Φ⁻¹(F(y)) is standard normal, whatever F is. Of a count, F jumps at y; a place between P(Y < y) and P(Y ≤ y)
is drawn at random (Dunn and Smyth 1996). Residuals that are not standard normal show what a family gets
wrong: a mean off 0 is a bias, a spread above 1 too little variance, a bend in the worm a wrong tail.

F depends on the person's θ, which is not known. To take the estimate from the same observations would make
residuals too small, the more so the fewer observations a person has. Instead

- ``"leave_one_out"`` predicts each observation from the person's *other* ones: F is averaged over the
  posterior of θ without it. For somebody with one observation that is the prior. Under the model every
  residual is standard normal; those of one person hang together very slightly.
- ``"drawn"`` draws one θ per person from the posterior. Under the model the residuals are standard normal and
  independent, but the posterior has seen the observation, so that a wrong family stands out a little less.

The integrals over θ are sums over nodes, as in :mod:`fidm.fit.offsets`. Dividing the posterior by the density
of an observation takes that observation out of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, at_least, one_of
from fidm.fit.common import learn_population, log_likelihoods, own_offsets, threads
from fidm.fit.effort_alone import EffortFit, as_cohort
from fidm.fit.offsets import REPORT_NODES, Population, in_chunks, on_nodes
from fidm.fit.population import Learned, random_intercepts
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import (
    Levels,
    Observed,
    column_values,
    design_names,
    effort_problems,
    observed,
    refuse,
    text_levels,
    without_constants,
)
from fidm.types import Floats, Integers

Theta = Literal["leave_one_out", "drawn"]

NODES: Floats = np.arange(-16, 17).astype(np.float64) / 2
"""Nodes around the posterior's mode, in units of its curvature: wide enough for one observation fewer, and
close enough for what is averaged over a prior."""

EDGE = 1e-15
"""Probabilities nearer to 0 or 1 than this give the residual there, about ±8."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """What is expected of every observation, given everything else that is known of its person."""

    # [m]: the probability of an observation below this one, and of one that is at most as large.
    below: Floats
    up_to: Floats
    # [m]: of the prediction, in the units of the column. The mean may be infinite; the variance is NaN where
    # it is, and where a channel does not tell it.
    mean: Floats
    variance: Floats
    zero: Floats  # [m]: the probability of a recorded 0

    def residuals(self, rng: np.random.Generator) -> Floats:
        """Return the quantile residuals; where an observation has a probability, a place in it is drawn."""
        share = self.below + rng.random(len(self.below)) * (self.up_to - self.below)
        return np.asarray(special.ndtri(np.clip(share, EDGE, 1 - EDGE)))


def predict(
    channel: Channel,
    seen: Observed,
    shared: Population,
    *,
    theta: Theta = "leave_one_out",
    rng: np.random.Generator | None = None,
) -> Predicted:
    """Return what is expected of every observation of a channel.

    The channel needs a distribution function, and ``shared`` a prior of θ. What is known of θ is said at the
    top of this module; ``rng`` draws it, and is needed for ``"drawn"``.
    """
    if not np.isfinite(shared.sd):
        raise FitError(
            "Quantile residuals average over what θ may be, which a fit by maximum likelihood to pooled "
            "segments does not know. Fit with method='eb'."
        )
    if theta == "drawn":
        if rng is None:
            raise FitError("To draw θ a random generator is needed.")
        own = _draws(channel, seen, shared, rng)
        return _mixture(channel, seen, shared, own[:, None], np.ones((len(seen.y), 1)))
    parts = in_chunks(seen, lambda part: _left_out(channel, part, shared), 1)
    names = ("below", "up_to", "mean", "variance", "zero")
    return Predicted(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def quantile_residuals(
    fit: EffortFit, cohort: Cohort, *, theta: Theta = "leave_one_out", seed: int = 1
) -> pl.DataFrame:
    """Return how surprising each observation is, on the scale of a standard normal.

    Parameters
    ----------
    fit : EffortFit
        What people share; it needs priors (``method="eb"``, or random intercepts).
    cohort : Cohort
        The people; best others than those it was learned from.
    theta : {"leave_one_out", "drawn"}
        Whether an observation is predicted from the person's other ones, or at a θ drawn from the posterior.
    seed : int
        Of the draws: within the probability of a count, and of θ.

    Returns
    -------
    DataFrame
        A row per observation: ``participant``, ``episode``, ``segment``, ``channel``, ``below`` and ``up_to``
        (the probability of a smaller one, and of one at most as large) and ``residual``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.experiments.held_out import quantile_residuals
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 40, seed=1)
    >>> found = quantile_residuals(fidm.Model(task).fit(cohort), cohort)
    >>> bool(abs(found["residual"].mean()) < 0.1)
    True
    """
    one_of("theta", theta, ("leave_one_out", "drawn"), FitError)
    at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    of_segment = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    owner = cohort.episode_owner()[of_segment]
    tables = []
    effort = observed(fit.channels, cohort, fit.levels, required=False)
    known = fit.known(cohort)
    for channel, one in zip(fit.channels, effort, strict=True):
        shared, seen = fit.populations[channel.name].population, replace(one, known=known.get(channel.name))
        found = predict(channel, seen, shared, theta=theta, rng=rng)
        tables.append(
            pl.DataFrame(
                {
                    "participant": cohort.ids.gather(owner[seen.row]),
                    "episode": cohort.episodes["episode"].gather(of_segment[seen.row]),
                    "segment": cohort.segments["segment"].gather(seen.row).cast(pl.String),
                    "channel": pl.Series([channel.name] * len(seen.y), dtype=pl.String),
                    "below": found.below,
                    "up_to": found.up_to,
                    "residual": found.residuals(rng),
                }
            )
        )
    if not tables:
        raise FitError("This fit has no effort channels, so there is nothing to compare with them.")
    return pl.concat(tables)


# ---------------------------------------------------------------------- the pieces


def _left_out(channel: Channel, part: Observed, shared: Population) -> Predicted:
    """Every observation predicted from its person's others."""
    counts, base = part.counts, part.predictor(shared.coefficients)
    centre, scale, _ = on_nodes(channel, part, shared, NODES[:1])
    alone = counts <= 1  # without their one observation only the prior is left
    means = np.broadcast_to(shared.means(part), len(centre))
    centre[alone], scale[alone] = means[alone], shared.sd
    nodes = centre[:, None] + scale[:, None] * NODES
    own = np.stack(
        [channel.varying(part.y, base + np.repeat(node, counts), shared.shape) for node in nodes.T], axis=1
    )
    summed = np.stack([person_sums(column, part.offsets) for column in own.T], axis=1)
    posterior = summed - 0.5 * ((nodes - means[:, None]) / shared.sd) ** 2
    others = np.repeat(posterior, counts, axis=0) - own
    weight = np.exp(others - others.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return _mixture(channel, part, shared, nodes, weight)


def _mixture(
    channel: Channel, part: Observed, shared: Population, nodes: Floats, weight: Floats
) -> Predicted:
    """The prediction averaged over offsets [P, Q] with weights of each observation [m, Q]."""
    counts, base = part.counts, part.predictor(shared.coefficients)
    none = np.full(len(part.y), channel.observe(np.zeros(1))[0])
    told = type(channel).variance is not Channel.variance
    up_to, point, mean, second, zero = (np.zeros(len(part.y)) for _ in range(5))
    for q in range(nodes.shape[1]):
        xi = base + np.repeat(nodes[:, q], counts)
        up_to += weight[:, q] * channel.cumulative(part.y, xi, shared.shape)
        expected = channel.mean(xi, shared.shape)
        with np.errstate(invalid="ignore", over="ignore"):  # moments of heavy tails may be infinite
            mean += weight[:, q] * expected
            if told:
                second += weight[:, q] * (channel.variance(xi, shared.shape) + expected**2)
        if channel.discrete:
            point += weight[:, q] * np.exp(channel.log_density(part.y, xi, shared.shape))
            zero += weight[:, q] * channel.cumulative(none, xi, shared.shape)
    up_to = np.minimum(up_to, 1.0)
    variance = np.full(len(mean), np.nan)
    known = np.isfinite(second) & told
    variance[known] = second[known] - mean[known] ** 2
    return Predicted(np.maximum(up_to - point, 0.0), up_to, mean, variance, zero)


def _draws(channel: Channel, seen: Observed, shared: Population, rng: np.random.Generator) -> Floats:
    """One θ per person from the posterior, by its distribution function on nodes, [P]."""
    shares = rng.random(len(seen.offsets) - 1)
    found: list[float] = []
    for centre, scale, density in in_chunks(
        seen, lambda part: on_nodes(channel, part, shared, REPORT_NODES), 1
    ):
        weight = np.exp(density - density.max(axis=1, keepdims=True))
        inside = 0.5 * (weight[:, 1:] + weight[:, :-1])
        up_to = np.concatenate([np.zeros((len(centre), 1)), np.cumsum(inside, axis=1)], axis=1)
        up_to /= up_to[:, -1:]
        first = len(found)
        for j in range(len(centre)):
            found.append(centre[j] + scale[j] * np.interp(shares[first + j], up_to[j], REPORT_NODES))
    return np.asarray(found)


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
            (channel,), _ = without_constants([part], learners)
            if self.tune and part.tunable:
                channel = tuned(channel, learners, refine=1, workers=self.workers)
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
        theta = own_offsets(channel, seen, learned, method="eb", level=0.95).estimate
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
    (varying,), _ = without_constants([channel], people)
    levels = text_levels([varying], people)
    refuse(effort_problems([channel], people), hint="Repair them, or leave these observations empty.")
    seen = observed([varying], people, levels)[0]
    reached: dict[float, float] = {}

    def at(value: float) -> float:
        if value not in reached:
            reached[value] = _marginal(_with(varying, name, value), seen, levels, threads(workers))
        return reached[value]

    best = _uphill(at, tried, getattr(channel, name))
    for _ in range(refine):
        known = sorted(reached)
        place = known.index(best)
        between = [0.5 * (best + known[i]) for i in (place - 1, place + 1) if 0 <= i < len(known)]
        best = max([best, *(value for value in between if _allowed(channel, name, value))], key=at)
    if not math.isfinite(at(best)):
        random_intercepts(_with(varying, name, best), seen, design_names(varying, levels), 1)  # says why
    return _with(channel, name, best)


def _only(channel: Channel) -> str:
    """The one setting of a channel that can be tuned."""
    if len(channel.tunable) != 1:
        raise FitError(f"{channel.name} has {len(channel.tunable)} settings to tune; name one with setting=…")
    return next(iter(channel.tunable))


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
