r"""A person's action sensitivity η: maximum likelihood, and posterior under a log-normal prior.

Maximum likelihood. Without lapses ℓ(η) is concave, and its edges are known exactly:

- η̂ = 0 if and only if the chosen actions are together worth no more than the average legal action;
- there is no finite maximum if and only if every choice was a best action (gaps below 1e-8 are ties);
- η is undefined if and only if every row is flat.

Otherwise the best node of a tabulated grid is polished by safeguarded Newton steps on the exact ℓ. The
standard error is 1/√−ℓ''(η̂). The interval holds every η whose ℓ lies within z²/2 of the maximum (profile
likelihood). Where the estimate is 0 or infinite only the other end is finite and belongs to a one-sided
interval of the same level; somebody who always took a best action would do so with the probability 1 − level
at that end.

Posterior. With log η ~ N(m, s²), everything is an integral over evenly spaced nodes in log η. Where the mean
depends on covariates of a person, m is the person's own (:mod:`fidm.fit.regression`). The prior,
and the lapse rate if it is to be estimated, are the most probable ones given the training part, under weak
hyperpriors (:mod:`fidm.fit.plausible`; a lapse rate is 0 with probability ½, or has the density
20 (1 − λ)¹⁹). Where other priors and rates are nearly as probable and it matters, posteriors are averaged
over a grid of them.

People who choose at random. Where the training part is clearly more probable with a share ρ of people of
η = 0, these are part of the prior: a person's posterior then has a probability of η = 0, and the interval
may begin there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special

from fidm.errors import FitError
from fidm.fit.offsets import (
    FINE_NODES,
    REPORT_NODES,
    OwnKinds,
    node_moments,
    node_quantiles,
    products,
    rise,
)
from fidm.fit.plausible import (
    NEGLIGIBLE,
    SENSITIVITY_SCALE,
    log_sd_prior,
    log_slopes_prior,
    moved,
    sample,
    spread_of,
    weighted_sd,
    without_person,
)
from fidm.fit.population import (
    Gradients,
    around,
    bend_of,
    covariance_of,
    curvature_at,
    degrees,
    errors_of,
    middle_of,
    no_less,
    sandwich,
)
from fidm.model import kernels
from fidm.model.action import TIE, Choices, log_likelihoods, over_chunks, sensitivity_grid
from fidm.types import Flags, Floats, Integers

SPACING = 0.08
"""The distance of grid nodes in log η."""

REACH = 8.0
"""How many prior standard deviations the posterior's nodes reach to either side."""

BEYOND = 5.0
"""How much farther than the grid the prior is integrated while it is learned."""

LARGEST_LAPSE = 0.5
SMALLEST_SD, LARGEST_SD = 0.05, 2.0
"""How much people may differ in log η, at least and at most."""

LAPSE_PRIOR = 19
"""The power of 1 − λ in the prior of the lapse rate."""

MOST_CHOICES, LAPSE_PEOPLE = 2_000, 2_000
"""So many choices of a person are enough to learn the prior, and so many people to learn the lapse rate."""

NO_LAPSE = 0.9
"""How probable it is beforehand that nobody lapses."""

RATES = 7
"""How many lapse rates stand for the plausible ones."""

FIRST_ROOT, HIGHEST_ROOT, FAR_BELOW = 0.025, math.sqrt(LARGEST_LAPSE), 6.0
"""Where the search for √λ begins and ends, and how much lower the log-posterior of far too high a rate is."""

SLOPE_POINTS, FEWEST_PRIORS, RARE_RATE = 512, 32, 1e-3
"""How many priors whose mean depends on covariates stand for the plausible ones at the most probable lapse
rate, and at least at any; rates so much less probable are left out."""

MIDDLE_SD = 1.5
"""How far the mean of log η may lie from the middle of the range in which choices tell anything."""

FEWEST = 2
"""A prior cannot be learned from fewer people."""

Entries = tuple[Any, Any, Any, Any, Any, Any]
"""What :meth:`fidm.model.action.Choices.entries` returns."""

OWN_NODES: Floats = 8 * FINE_NODES
"""Nodes around a person's posterior of log η, in its sds from its mean."""

FINITE, AT_ZERO, NO_MAXIMUM, UNDEFINED = 0, 1, 2, 3
"""Where the maximum lies."""


@dataclass(frozen=True, slots=True, eq=False)
class PlausiblePriors:
    """Priors that a training part leaves possible: mean and sd of log η, lapse rate and weight, [R] each.

    Where the mean depends on covariates, ``slopes`` are theirs, [R, C].
    """

    mean: Floats
    sd: Floats
    lapse: Floats
    weight: Floats
    slopes: Floats | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def rates(self) -> Iterator[PlausiblePriors]:
        """Yield the priors that go with each lapse rate."""
        for rate in np.unique(self.lapse):
            own = self.lapse == rate
            slopes = None if self.slopes is None else self.slopes[own]
            yield PlausiblePriors(self.mean[own], self.sd[own], self.lapse[own], self.weight[own], slopes)

    def means(self, choices: Choices) -> Floats:
        """Return the mean of log η of people like each of these under each prior, [P, R], or of all, [R]."""
        if self.slopes is None:
            return self.mean
        return self.mean + np.stack([rise(choices.known, own) for own in self.slopes], axis=1)


@dataclass(frozen=True, slots=True)
class SensitivityPrior:
    """The log-normal prior of η: mean and standard deviation of log η, and their standard errors.

    ``at_bound`` says that the mean ran to the end of the range in which choices tell anything. ``random`` is
    the share of people who choose at random; ``plausible`` are other priors, where they matter. Where the
    mean depends on covariates, ``slopes`` [C] are theirs with their ``covariance`` [C, C] and degrees of
    ``freedom``, and nobody of the training part is moved farther by them than ``reach``.
    """

    mean: float
    sd: float
    mean_se: float = math.nan
    sd_se: float = math.nan
    at_bound: bool = False
    random: float = 0.0
    plausible: PlausiblePriors | None = None
    slopes: Floats | None = None
    covariance: Floats | None = None
    reach: float = 0.0
    freedom: float = math.nan

    def means(self, choices: Choices) -> Any:
        """Return the mean of log η of people like each of these, [P], or one for all."""
        return self.mean if self.slopes is None else self.mean + rise(choices.known, self.slopes)

    def sd_range(self) -> tuple[float, float]:
        """Return how little and how much people may differ: a 95 % interval of their sd."""
        if self.plausible is not None:
            return middle_of(self.plausible.sd, self.plausible.weight)
        return around(self.sd, self.sd_se)

    @property
    def no_lapse(self) -> float:
        """How probable it is that nobody lapses; NaN where that was not asked."""
        if self.plausible is None or len(np.unique(self.plausible.lapse)) < 2:
            return math.nan
        return float(self.plausible.weight[self.plausible.lapse == 0].sum())

    def rates(self, lapse: float) -> Iterable[PlausiblePriors]:
        """Return the priors that go with each lapse rate."""
        if self.plausible is not None:
            return self.plausible.rates()
        slopes = None if self.slopes is None else self.slopes[None]
        alone = np.array([self.mean]), np.array([self.sd]), np.array([lapse]), np.ones(1), slopes
        return [PlausiblePriors(*alone)]


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivities:
    """η of many people.

    Parameters
    ----------
    estimate, se, low, high : float array [P]
        η, its standard error and its interval.
    log_estimate, log_se : float array [P]
        The same for log η: its posterior median and sd, or log η̂ and se/η̂. Either way se is η times log_se.
    log_mean : float array [P]
        The posterior mean of log η, or log η̂.
    where : int array [P]
        0 finite, 1 at zero, 2 no finite maximum, 3 undefined; of the likelihood, for both methods.
    near_zero : bool array [P]
        Whose likelihood is highest elsewhere, but hardly lower at η = 0.
    random : float array [P] or None
        The probability that the person chooses at random, where the prior knows such people.
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    log_estimate: Floats
    log_se: Floats
    log_mean: Floats
    where: NDArray[np.int64]
    near_zero: Flags
    random: Floats | None = None


def maximum(choices: Choices, *, lapse: float, level: float, workers: int = 1) -> Sensitivities:
    """Return every person's η of highest likelihood, with profile-likelihood intervals."""
    grid = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)

    def chunk(part: Choices) -> tuple[Floats, ...]:
        return _maximum_of(part, grid, lapse, level)

    eta, se, low, high, where = over_chunks(choices, chunk, workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_eta, log_se = np.log(eta), se / eta
    log_se = np.where(np.isfinite(log_eta), log_se, np.nan)
    near_zero = (where == FINITE) & (low == 0.0)
    return Sensitivities(eta, se, low, high, log_eta, log_se, log_eta, where.astype(np.int64), near_zero)


def _maximum_of(part: Choices, grid: Floats, lapse: float, level: float) -> tuple[Floats, ...]:
    n, entries = len(part), part.entries()
    scores = _extremes(entries, lapse)
    at_zero, at_infinity = scores[:, 1], scores[:, 2]
    table = log_likelihoods(entries, np.exp(grid), lapse)
    best = table.argmax(axis=1)
    top = table[np.arange(n), best]
    where = _place(part, scores, top, lapse)
    if lapse > 0.0:
        best[at_zero >= top] = 0  # where ℓ rises from 0, it is highest before the first node
    finite = where == FINITE
    place, peak = _vertex(grid, table, best), np.full(n, np.nan)
    eta = np.exp(place)
    low, high = np.exp(grid[np.maximum(best - 1, 0)]), np.exp(grid[np.minimum(best + 1, len(grid) - 1)])
    low[best == 0] = 0.0
    for j in np.flatnonzero(finite & (best == len(grid) - 1)):
        high[j] = _beyond(entries, int(j), float(high[j]), lapse)
    eta[~finite] = np.nan
    bend = np.full(n, np.nan)
    kernels.polish(*entries, lapse, low, high, eta, bend)
    eta[where == AT_ZERO], peak[where == AT_ZERO] = 0.0, at_zero[where == AT_ZERO]
    eta[where == NO_MAXIMUM], peak[where == NO_MAXIMUM] = np.inf, at_infinity[where == NO_MAXIMUM]
    for j in np.flatnonzero(where == AT_ZERO):
        bend[j] = kernels.slopes(j, *entries, 0.0, lapse)[1]
    peak[finite] = _exact(entries, np.where(finite, eta, 0.0), lapse)[finite]
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where((bend < 0) & (where != NO_MAXIMUM), 1 / np.sqrt(-bend), np.nan)
    two_sided = _two_sided(level)
    at_edge = 0.5 * special.ndtri(level) ** 2 if level > 0.5 else np.nan  # below one half there is no bound
    # Of somebody who always took a best action, the bound is where doing so has the probability 1 − level.
    drop = np.select([finite, where == NO_MAXIMUM], [two_sided, -math.log1p(-level)], at_edge)
    target = peak - drop
    left = _crossing(entries, grid, table, eta, target, at_zero, lapse, upward=False)
    right = _crossing(entries, grid, table, eta, target, at_infinity, lapse, upward=True)
    left[where == AT_ZERO] = 0.0
    right[where == NO_MAXIMUM] = np.inf
    if np.isnan(at_edge):
        right[where == AT_ZERO] = 0.0
    nothing = where == UNDEFINED
    left[nothing], right[nothing] = 0.0, np.inf
    return eta, se, left, right, where.astype(np.float64)


def _two_sided(level: float) -> float:
    """By how much ℓ falls from its maximum to the ends of an interval."""
    return float(0.5 * special.ndtri(0.5 + level / 2) ** 2)


def _place(part: Choices, scores: Floats, top: Floats, lapse: float) -> NDArray[np.int64]:
    """Where each person's likelihood is highest: inside, at zero, at infinity, or nowhere."""
    slope, at_zero, at_infinity, short = scores.T
    where = np.full(len(part), FINITE)
    if lapse == 0.0:
        where[slope <= 0] = AT_ZERO
        where[short == 0] = NO_MAXIMUM
    else:  # ℓ need not be concave, so the places are compared
        close = 1e-9 * np.maximum(1.0, np.abs(top))
        where[(at_infinity >= top - close) & (at_infinity > at_zero)] = NO_MAXIMUM
        where[(at_zero >= top - close) & (at_zero >= at_infinity) & (slope <= 0)] = AT_ZERO
    where[np.diff(part.person_offsets) == 0] = UNDEFINED
    return where


def has_maximum(choices: Choices) -> NDArray[np.bool_]:
    """Return whose likelihood is highest at a finite η above 0, [P]."""
    scores = _extremes(choices.entries(), 0.0)
    return np.asarray((scores[:, 0] > 0) & (scores[:, 3] > 0) & (np.diff(choices.person_offsets) > 0))


def _extremes(entries: Entries, lapse: float) -> Floats:
    scores = np.empty((len(entries[0]) - 1, 4))
    kernels.extremes(*entries, lapse, TIE, scores)
    return scores


def _vertex(grid: Floats, table: Floats, best: NDArray[np.int64]) -> Floats:
    """Place of the top of the quartic through the best node and two nodes to either side.

    At the edge of the grid there is no such quartic: the place is the node's.
    """
    rows = np.arange(len(best))
    inner = np.clip(best, 2, len(grid) - 3)
    a, b, c, d, e = (table[rows, inner + i] for i in (-2, -1, 0, 1, 2))
    slope = (a - 8 * b + 8 * d - e) / 12
    bend = (-a + 16 * b - 30 * c + 16 * d - e) / 12
    third = (e - 2 * d + 2 * b - a) / 2
    fourth = a - 4 * b + 6 * c - 4 * d + e
    shift = np.zeros(len(best))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(4):  # Newton steps on the quartic
            rise = slope + shift * (bend + shift * (third / 2 + shift * fourth / 6))
            curve = bend + shift * (third + shift * fourth / 2)
            shift = np.clip(shift - rise / curve, -0.9, 0.9)
    good = np.isfinite(shift) & (best == inner)
    shift = np.where(good, shift, 0.0)
    return np.asarray(grid[best] + shift * (grid[1] - grid[0]))


def _beyond(entries: Entries, j: int, eta: float, lapse: float) -> float:
    """A sensitivity beyond the grid at which ℓ falls."""
    while kernels.slopes(j, *entries, eta, lapse)[0] > 0 and eta < 1e300:
        eta *= 4.0
    return eta


def _crossing(
    entries: Entries,
    grid: Floats,
    table: Floats,
    eta: Floats,
    target: Floats,
    at_end: Floats,
    lapse: float,
    *,
    upward: bool,
) -> Floats:
    """Return where ℓ falls below the target on one side of the estimate; the end itself if it never does.

    The search begins where the tabulated ℓ, interpolated, crosses; nearer to the estimate than a node, or
    beyond the grid, in a bracket of its own.
    """
    n = len(eta)
    end = np.inf if upward else 0.0
    with np.errstate(divide="ignore"):
        here = np.log(eta)
    falls = (at_end < target) & ~np.isnan(eta) & (eta != end)
    near = np.empty(n)
    kernels.cross_table(table, grid[0], grid[1] - grid[0], here, target, upward, near)
    step = 0.01 * (grid[1] - grid[0])
    low, high, near = np.exp(near - step), np.exp(near + step), np.exp(near)
    sides = np.stack([_exact(entries, np.where(np.isfinite(side), side, 0.0), lapse) for side in (low, high)])
    hard = np.isnan(near) | ((sides[0] >= target) == (sides[1] >= target))
    low[~falls] = np.nan
    for j in np.flatnonzero(falls & hard).tolist():
        low[j], high[j] = _bracket(entries, j, float(eta[j]), float(target[j]), lapse, grid, upward=upward)
    found = np.empty(n)
    kernels.cross(*entries, lapse, target, low, high, near, found)
    return np.where(falls, found, end)


def _bracket(
    entries: Entries, j: int, eta: float, target: float, lapse: float, grid: Floats, *, upward: bool
) -> tuple[float, float]:
    """Two sensitivities on different sides of where ℓ crosses the target."""
    if upward:
        outer = max(2.0 * eta, math.exp(grid[0]))
        while kernels.value(j, *entries, outer, lapse) >= target:
            outer *= 2.0
        return eta, outer
    inner = eta
    if not math.isfinite(eta):
        inner = math.exp(grid[-1])
        while kernels.value(j, *entries, inner, lapse) < target:
            inner *= 2.0
    return inner, 0.0


# ---------------------------------------------------------------------- posterior


def posterior(
    choices: Choices,
    prior: SensitivityPrior,
    *,
    lapse: float,
    level: float,
    workers: int = 1,
    kinds: OwnKinds | None = None,
) -> tuple[Sensitivities, Floats]:
    """Return every person's posterior of η, and the log marginal likelihood.

    With kinds of people (``workers`` must then be 1) everybody has a prior of their own.
    """
    log_eta = posterior_nodes(prior, choices)
    tails = (0.5 * (1 - level), 0.5 + 0.5 * level)

    done = 0

    def chunk(part: Choices) -> tuple[Floats, ...]:
        nonlocal done
        own = None if kinds is None else kinds.people(done, done + len(part))
        done += len(part)
        entries = part.entries()
        scores = _extremes(entries, lapse)
        found, edge = _integrated(part, log_eta, prior, lapse, tails, scores[:, 1], own)
        coarse = 1.2 * (log_eta[1] - log_eta[0])
        for j in np.flatnonzero((found[:, 2] < coarse) | edge):  # very many choices, or far from everybody
            alone = None if own is None else own.people(int(j), int(j) + 1)
            found[j] = _closer(part.people(int(j), int(j) + 1), prior, lapse, tails, scores[j, 1:2], alone)
        top = log_likelihoods(entries, np.exp(log_eta), lapse).max(axis=1)
        where = _place(part, scores, top, lapse)
        top = np.where(where == NO_MAXIMUM, scores[:, 2], top)
        near_zero = ((where == FINITE) | (where == NO_MAXIMUM)) & (scores[:, 1] >= top - _two_sided(level))
        return *found.T, where.astype(np.float64), near_zero.astype(np.float64)

    median, mean, sd, low, high, marginal, random, where, near_zero = over_chunks(choices, chunk, workers)
    found = Sensitivities(
        np.exp(median),
        np.exp(median) * sd,
        np.exp(low),
        np.exp(high),
        median,
        sd,
        mean,
        where.astype(np.int64),
        near_zero > 0,
        random,
    )
    return found, marginal + choices.flat


def likelihood_on_nodes(choices: Choices, prior: SensitivityPrior, lapse: float) -> tuple[Floats, Floats]:
    """Return nodes in the prior's sds from its mean, [Q] or [P, Q], and everybody's likelihood, [P, Q]."""
    log_eta = posterior_nodes(prior, choices)
    table = log_likelihoods(choices.entries(), np.exp(log_eta), lapse)
    return (log_eta - _column(prior.means(choices))) / prior.sd, np.exp(table - table.max(axis=1)[:, None])


def posterior_nodes(prior: SensitivityPrior, choices: Choices) -> Floats:
    """Return evenly spaced nodes in log η, no farther apart than the grid's, as far as any prior reaches.

    Plausible priors may be wide; beyond the range in which choices tell anything they are cut off.
    """
    step, reach = min(0.5 * prior.sd, SPACING), prior.reach
    low, high = prior.mean - reach - REACH * prior.sd, prior.mean + reach + REACH * prior.sd
    if prior.plausible is not None:
        grid = _learning_grid(choices)
        means, sds = prior.plausible.mean, prior.plausible.sd
        step = min(step, 0.5 * float(sds.min()))
        low = min(low, max(float((means - reach - REACH * sds).min()), grid[0]))
        high = max(high, min(float((means + reach + REACH * sds).max()), grid[-1]))
    below, above = math.ceil((prior.mean - low) / step), math.ceil((high - prior.mean) / step)
    return np.asarray(prior.mean + step * np.arange(-below, above + 1), dtype=np.float64)


def _integrated(
    part: Choices,
    log_eta: Floats,
    prior: SensitivityPrior,
    lapse: float,
    tails: tuple[float, float],
    at_zero: Floats,
    kinds: OwnKinds | None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return median, mean, sd, low and high of log η, log marginal likelihood and P(η = 0), [P, 7].

    Median, mean and sd are those of somebody who does not choose at random.

    Also whose posterior is not over at the ends of the nodes. Marginal likelihoods are the best prior's.
    """
    own: list[tuple[Any, float, float]] = [(1.0, 0.0, 1.0)]
    if kinds is not None:
        own = [
            (weight[:, None], float(place), float(spread))
            for weight, place, spread in zip(kinds.weight.T, kinds.place, kinds.spread, strict=True)
        ]
    eta = np.exp(log_eta)
    table = log_likelihoods(part.entries(), eta, lapse)
    density = table - 0.5 * ((log_eta - _column(prior.means(part))) / prior.sd) ** 2
    best = node_moments(*_unit(len(table)), density, log_eta)
    log_mass = best.log_mass - math.log(prior.sd * math.sqrt(2 * math.pi))
    if prior.plausible is not None or kinds is not None:
        density = _averaged(part, log_eta, prior.rates(lapse), own)
    moments = node_moments(*_unit(len(table)), density, log_eta)
    random = np.zeros(len(table))
    if prior.random:
        random = special.expit(math.log(prior.random / (1 - prior.random)) + at_zero - log_mass)
        log_mass = np.logaddexp(math.log(prior.random) + at_zero, math.log1p(-prior.random) + log_mass)
    ends = (np.array(tails) - random[:, None]) / np.maximum(1 - random, 1e-300)[:, None]
    shares = np.column_stack([np.full(len(table), 0.5), np.clip(ends, 1e-12, 1 - 1e-12)])
    middle, low, high = node_quantiles(*_unit(len(table)), density, log_eta, shares).T
    low, high = np.where(ends.T > 0, (low, high), -np.inf)
    # Plausible priors may be wide, and are cut off where choices tell nothing.
    beyond = 1e-10 if prior.plausible is None else 1e-6
    edge = np.maximum(moments.weight[:, 0], moments.weight[:, -1]) > beyond
    return np.column_stack([middle, moments.mean, moments.sd, low, high, log_mass, random]), edge


def _averaged(
    part: Choices,
    log_eta: Floats,
    rates: Iterable[PlausiblePriors],
    kinds: Sequence[tuple[Any, float, float]],
) -> Floats:
    """Return everybody's log-posterior on nodes, averaged over priors and kinds of people, [P, G]."""
    entries = part.entries()
    mixed = np.zeros((len(part), len(log_eta)))
    for priors in rates:
        table = log_likelihoods(entries, np.exp(log_eta), float(priors.lapse[0]))
        likelihood = np.exp(table - table.max(axis=1)[:, None])
        means, sds = priors.means(part), priors.sd
        if means.ndim == 1:
            _mix(mixed, likelihood, log_eta, means, sds, priors.weight, kinds)
            continue
        for j in range(len(part)):  # everybody has priors of their own
            one = slice(j, j + 1)
            own = [
                (share if isinstance(share, float) else share[one], place, spread)
                for share, place, spread in kinds
            ]
            _mix(mixed[one], likelihood[one], log_eta, means[j], sds, priors.weight, own)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(mixed), -700.0))


def _mix(
    mixed: Floats,
    likelihood: Floats,
    log_eta: Floats,
    means: Floats,
    sds: Floats,
    weights: Floats,
    kinds: Sequence[tuple[Any, float, float]],
) -> None:
    """Add up, in place, posteriors under priors [R] on nodes, each as probable as it is, [P, G]."""
    bells = [_bells(log_eta, means + place * sds, sds * spread) for _, place, spread in kinds]
    mass = np.zeros((len(likelihood), len(means)))
    for (share, _, _), bell in zip(kinds, bells, strict=True):
        mass += share * np.einsum("pg,rg->pr", likelihood, bell)  # unlike @, each row by itself
    shares = weights / np.maximum(mass, 1e-300)
    for (share, _, _), bell in zip(kinds, bells, strict=True):
        mixed += share * likelihood * products(shares, bell)


def _column(means: Any) -> Any:
    """Means of everybody below each other, [P, 1]; one for all is left as it is."""
    return means[:, None] if isinstance(means, np.ndarray) else means


def _unit(n: int) -> tuple[Floats, Floats]:
    """Centre and scale of nodes that are places already."""
    return np.zeros(n), np.ones(n)


def _bells(log_eta: Floats, means: Floats, sds: Floats) -> Floats:
    """Normal densities on nodes, times their distance, [R, G]."""
    step = log_eta[1] - log_eta[0]
    away = (log_eta - means[:, None]) / sds[:, None]
    return np.asarray(np.exp(-0.5 * away**2) * (step / (sds[:, None] * math.sqrt(2 * math.pi))))


def _closer(
    one: Choices,
    prior: SensitivityPrior,
    lapse: float,
    tails: tuple[float, float],
    at_zero: Floats,
    kinds: OwnKinds | None,
) -> Floats:
    """The posterior of one person on nodes around its own mode, scaled to its own width."""
    mean, sd = _mode(one, prior, lapse)
    for _ in range(20):
        found = _integrated(one, mean + sd * REPORT_NODES, prior, lapse, tails, at_zero, kinds)[0][0]
        new_mean, new_sd = float(found[1]), float(found[2])
        if 0.7 * sd < new_sd < 1.4 * sd and abs(new_mean - mean) < 0.5 * sd:
            return np.asarray(found)
        mean, sd = new_mean, min(max(new_sd, 0.3 * sd), 3.0 * sd)
    raise FitError(
        "The posterior of somebody's action sensitivity could not be integrated: their choices and the prior "
        f"(log η {prior.mean:.2f} ± {prior.sd:.2f}) are too far apart. Was it learned from such people?"
    )


def _mode(one: Choices, prior: SensitivityPrior, lapse: float) -> tuple[float, float]:
    """Where one person's posterior of log η is highest, and the width its curvature gives there."""
    entries, middle = one.entries(), float(np.ravel(prior.means(one))[0])
    grid = np.linspace(min(-12.0, middle - 10 * prior.sd), max(16.0, middle + 10 * prior.sd), 561)
    table = log_likelihoods(entries, np.exp(grid), lapse)[0] - 0.5 * ((grid - middle) / prior.sd) ** 2
    best = int(table.argmax())
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]

    def slope(u: float) -> float:
        eta = math.exp(u)
        return eta * float(kernels.slopes(0, *entries, eta, lapse)[0]) - (u - middle) / prior.sd**2

    if slope(low) > 0 > slope(high):
        mode = float(optimize.brentq(slope, low, high, xtol=1e-12))
    else:
        mode = float(grid[best])
    step = 1e-4 * prior.sd
    bend = (slope(mode - step) - slope(mode + step)) / (2 * step)
    return mode, 1 / math.sqrt(max(bend, 1e-3 / prior.sd**2))


def choices_without_each(
    choices: Choices, prior: SensitivityPrior, *, lapse: float, workers: int = 1
) -> Floats:
    """Return each person's log-likelihood under the prior learned without them, [P].

    Plausible priors and lapse rates are weighted anew for each person; where there are none, so many people
    were learned from that one Newton step is enough, the lapse rate held.
    """
    if prior.plausible is None:
        share = [float(special.logit(prior.random))] if prior.random else []
        best = np.array(
            [prior.mean, math.log(prior.sd), *share, *(() if prior.slopes is None else prior.slopes)]
        )

        def gradients(free: Floats) -> tuple[Floats, Floats]:
            rho = float(special.expit(free[2])) if prior.random else 0.0
            of_known = None if prior.slopes is None else free[2 + len(share) :]
            one = replace(prior, mean=float(free[0]), sd=math.exp(free[1]), random=rho, slopes=of_known)
            own, value = posterior(choices, one, lapse=lapse, level=0.95, workers=workers)
            random = np.zeros(len(value)) if own.random is None else own.random
            away = (own.log_mean - one.means(choices)) / one.sd
            slopes = np.stack([away / one.sd, away**2 + (own.log_se / one.sd) ** 2 - 1], axis=1)
            slopes *= (1 - random)[:, None]
            columns = [slopes, random - rho][: 1 + len(share)]
            if choices.known is not None:
                columns.append(slopes[:, :1] * choices.known)
            return value, np.column_stack(columns)

        value, slopes = gradients(best)
        return value + moved(slopes, curvature_at(gradients, best, np.eye(len(best))))
    own, _ = posterior(choices, prior, lapse=lapse, level=0.95, workers=workers)
    log_eta = own.log_mean[:, None] + own.log_se[:, None] * OWN_NODES
    at_zero = _extremes(choices.entries(), 0.0)[:, 1]
    found, weights = [], []
    for priors in prior.plausible.rates():
        table = values_on(choices, np.exp(log_eta), float(priors.lapse[0]))
        top = table.max(axis=1)
        likelihood = np.exp(table - top[:, None])
        means = np.broadcast_to(priors.means(choices), (len(choices), len(priors)))
        columns = zip(log_eta, likelihood, means, strict=True)
        mass = [np.einsum("rg,g->r", _bells(nodes, own, priors.sd), one) for nodes, one, own in columns]
        value = np.log(np.maximum(np.array(mass).T, 1e-300)) + top
        if prior.random:
            value = np.logaddexp(math.log(prior.random) + at_zero, math.log1p(-prior.random) + value)
        found.append(value)
        weights.append(priors.weight)
    value = np.concatenate(found)
    return without_person(np.concatenate(weights), value, value) + choices.flat


def values_at(choices: Choices, eta: Floats, lapse: float) -> Floats:
    """Return everybody's log-likelihood at sensitivities of their own, [P]; NaN counts as chance."""
    entries = choices.entries()
    scores = _extremes(entries, lapse)
    found = choices.flat + _exact(entries, np.where(np.isfinite(eta), eta, 0.0), lapse)
    return np.where(np.isinf(eta), choices.flat + scores[:, 2], found)


def values_on(choices: Choices, etas: Floats, lapse: float) -> Floats:
    """Return everybody's log-likelihood at several sensitivities of their own, [P, Q]."""
    found = np.empty(etas.shape)
    kernels.values_on(*choices.entries(), etas, lapse, found)
    return found


def _exact(entries: Entries, eta: Floats, lapse: float) -> Floats:
    found = np.empty(len(eta))
    kernels.values_at(*entries, eta, lapse, found)
    return found


# ---------------------------------------------------------------------- learning the prior


def learn_prior(
    choices: Choices,
    *,
    lapse: float | None,
    workers: int = 1,
    plausible: bool = True,
    clusters: Integers | None = None,
) -> tuple[SensitivityPrior, float, float]:
    """Return the prior of log η, the lapse rate and its standard error.

    ``lapse=None`` estimates the lapse rate together with the prior. Without ``plausible`` the most probable
    prior stands alone, which is enough for the probability of choices. Where covariates of the people are
    known, the mean of log η depends on them; people of the same cluster [P] may go together.
    """
    choices = thinned(choices, MOST_CHOICES)
    learning = few = _Learning(choices, workers, clusters)
    if len(choices) > LAPSE_PEOPLE:
        few = _Learning(_some(choices, LAPSE_PEOPLE), workers)
    rate, rate_se = (lapse, math.nan) if lapse is not None else few.best_rate(random=False)
    random = few.has_random(rate)
    if random and lapse is None:
        rate, rate_se = few.best_rate(random=True)
    found = learning.at(rate, random=random)
    sd = float(np.exp(found.best[1]))
    prior = SensitivityPrior(
        mean=float(found.best[0]),
        sd=sd,
        mean_se=float(found.se[0]),
        sd_se=float(found.se[1]) * sd,
        at_bound=bool(
            min(found.best[0] - learning.grid[0], learning.grid[-1] - found.best[0]) < BEYOND + 1e-6
        ),
        random=float(special.expit(found.best[2])) if random else 0.0,
    )
    if choices.known is not None:
        slopes = found.best[len(found.best) - choices.known.shape[1] :]
        reach = float(np.abs(rise(choices.known, slopes)).max())
        freedom = degrees(np.diff(choices.person_offsets) > 0, len(found.best), clusters)
        prior = replace(
            prior, slopes=slopes, covariance=found.of_slopes(len(slopes)), reach=reach, freedom=freedom
        )
    others = learning.plausible(prior, rate, given=lapse is not None) if plausible else None
    if others is not None:
        spread = weighted_sd(np.column_stack([others.mean, np.log(others.sd)]), others.weight)
        mean_se, sd_se = np.fmax([prior.mean_se, prior.sd_se], spread * [1, sd])
        prior = replace(prior, mean_se=float(mean_se), sd_se=float(sd_se), plausible=others)
    return prior, rate, rate_se


def learn_slopes(
    choices: Choices, *, lapse: float | None, workers: int = 1, clusters: Integers | None = None
) -> tuple[_Best, float]:
    """Return the best prior whose mean depends on what is known of people, and the lapse rate.

    People who choose at random are part of it where the training part clearly has them. ``lapse=None``
    estimates the lapse rate, too, and takes it for 0 unless it is clearly not.
    """
    learning = _Learning(thinned(choices, MOST_CHOICES), workers, clusters)
    rate = lapse if lapse is not None else learning.clear_rate(random=False)
    random = learning.has_random(rate)
    if random and lapse is None:
        rate = learning.clear_rate(random=True)
    return learning.at(rate, random=random), rate


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The best free numbers at a lapse rate, and their posterior.

    They are mean, log sd, logit ρ if it is free, and slopes. ``covariance`` is that of
    :func:`fidm.fit.population.sandwich`.
    """

    best: Floats
    covariance: Floats
    curvature: Floats
    log_posterior: float

    @property
    def se(self) -> Floats:
        """The standard error of each number."""
        return errors_of(self.covariance)

    @property
    def doubt(self) -> Floats:
        """The standard error of each number, by the curvature alone."""
        return errors_of(np.asarray(linalg.pinv(-self.curvature)))

    def of_slopes(self, width: int) -> Floats:
        """The covariance of the slopes of so many covariates, no less than the curvature gives, [C, C]."""
        own = slice(len(self.best) - width, None)
        doubt = np.asarray(linalg.pinv(-self.curvature), dtype=np.float64)
        return no_less(self.covariance[own, own], doubt[own, own])

    @property
    def wide(self) -> Floats:
        """How far each number may lie from the best, the others held."""
        return np.asarray(1 / np.sqrt(np.maximum(-np.diag(self.curvature), 0.4)))


def thinned(choices: Choices, most: int) -> Choices:
    """Return at most so many choices of everybody, evenly spread: more tell nothing of other people."""
    counts = np.diff(choices.person_offsets)
    if counts.max(initial=0) <= most:
        return choices
    every = np.maximum(1, -(-counts // most))
    place = np.arange(len(choices.row)) - np.repeat(choices.person_offsets[:-1], counts)
    kept = np.flatnonzero(place % np.repeat(every, counts) == 0)
    return replace(
        choices,
        person_offsets=np.searchsorted(kept, choices.person_offsets),
        row=choices.row[kept],
        pair=choices.pair[kept],
        weight=choices.weight[kept],
    )


def _some(choices: Choices, most: int) -> Choices:
    """Return so many people, in any order the same: those whose choices have the smallest hash."""
    owner = np.repeat(np.arange(len(choices)), np.diff(choices.person_offsets))
    scattered = (choices.pair.astype(np.uint64) + np.uint64(1)) * np.uint64(11400714819323198485)
    keys = np.zeros(len(choices), dtype=np.uint64)
    np.add.at(keys, owner, scattered >> np.uint64(20))
    chosen = np.zeros(len(choices), dtype=np.bool_)
    chosen[np.argsort(keys, kind="stable")[:most]] = True
    return choices.take(chosen)


class _Learning:
    """The search for the prior of log η, on one table of likelihoods per lapse rate.

    Covariates that are known of people move their means; the slopes are the last free numbers. People of the
    same cluster [P] may go together.
    """

    def __init__(self, choices: Choices, workers: int, clusters: Integers | None = None) -> None:
        self.choices, self.workers = choices, workers
        self.grid = _learning_grid(choices)
        self.middle = middle_of_range(choices)
        scores = _extremes(choices.entries(), 0.0)
        known = np.zeros((len(choices), 0)) if choices.known is None else choices.known
        # products of matrices must not depend on the order of people
        self._order = np.lexsort(np.column_stack([known, scores]).T)
        self.at_zero, self.known = scores[self._order, 1], known[self._order]
        self._told = (np.diff(choices.person_offsets) > 0)[self._order]
        self._clusters = None if clusters is None else clusters[self._order]
        self._covariance = covariance_of(self.known[self._told])
        self._last: tuple[float, Floats] = (math.nan, np.zeros((0, 0)))
        self._starts: dict[bool, Floats] = {}
        self._found: dict[tuple[float, bool], _Best] = {}

    def table(self, rate: float) -> Floats:
        """Everybody's log-likelihood on the grid, [P, G]; the last one is kept."""
        if self._last[0] != rate:
            found = over_chunks(
                self.choices,
                lambda part: (log_likelihoods(part.entries(), np.exp(self.grid), rate),),
                self.workers,
            )
            self._last = rate, np.asarray(found[0])[self._order]
        return self._last[1]

    def at(self, rate: float, *, random: bool) -> _Best:
        """The best prior at a lapse rate, with or without people who choose at random."""
        if (rate, random) in self._found:
            return self._found[rate, random]
        table = self.table(rate)
        top = table.max(axis=1)
        likelihood = np.exp(table - top[:, None])
        chance = np.exp(np.minimum(self.at_zero - top, 0.0)) if random else None

        def gradients(free: Floats) -> tuple[Floats, Floats]:
            value, slopes = _marginal(likelihood, self.grid, free, chance, self.known)
            return value + top, slopes

        if random not in self._starts:
            flat = np.append(_first_guess(table, self.grid), np.zeros(self.known.shape[1]))
            start = self._starts.get(False, flat)
            self._starts[random] = np.insert(start, 2, -2.5) if random else start
        found = self._climb(gradients, self._starts[random], LAPSE_PRIOR * math.log1p(-rate))
        self._starts[random] = found.best
        self._found[rate, random] = found
        return found

    def _climb(self, gradients: Gradients, start: Floats, more: float) -> _Best:
        """Maximise the posterior of the prior within what the grid can show."""

        def loss(free: Floats) -> tuple[float, Floats]:
            value, slopes = gradients(free)
            before, lean = self.beforehand(free)
            total = np.array([math.fsum(column) for column in slopes.T]) + lean
            return -(math.fsum(value) + before) / len(value), -total / len(value)

        inside = (self.grid[0] + BEYOND, self.grid[-1] - BEYOND)
        bounds = [inside, (math.log(SMALLEST_SD), math.log(LARGEST_SD)), (-9.0, 2.0)]
        bounds = bounds[: len(start) - self.known.shape[1]] + [(None, None)] * self.known.shape[1]
        result = optimize.minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
        )
        best = np.asarray(result.x)
        value, slopes = gradients(best)
        curvature = curvature_at(gradients, best, np.eye(len(best))) + bend_of(self.beforehand, best)
        return _Best(
            best,
            sandwich(slopes, curvature, self._told, self._clusters),
            curvature,
            more - float(result.fun) * len(value),
        )

    def beforehand(self, free: Floats) -> tuple[float, Floats]:
        """The log-density of the hyperpriors and its slopes: mean, log sd, and ρ by (1 − ρ)⁹."""
        slope = np.zeros(len(free))
        value, slope[1] = log_sd_prior(float(free[1]), SENSITIVITY_SCALE)
        away = (float(free[0]) - self.middle) / MIDDLE_SD
        value -= 0.5 * away**2
        slope[0] = -away / MIDDLE_SD
        if len(free) > 2 + self.known.shape[1]:
            rho = float(special.expit(free[2]))
            value += 9 * math.log1p(-rho)
            slope[2] = -9 * rho
        if width := len(self._covariance):
            own = slice(len(free) - width, None)
            more, slope[own] = log_slopes_prior(free[own], self._covariance, SENSITIVITY_SCALE)
            value += more
        return value, slope

    def best_rate(self, *, random: bool) -> tuple[float, float]:
        """The most probable lapse rate and its standard error, 0 and NaN where there is none.

        The search is in √λ, in which the posterior is smooth and nearly a parabola: upwards from 0, in steps
        that double, until rates are out of the question; then closer around the best of these.
        """

        def loss(root: float) -> float:
            return -self.at(root * root, random=random).log_posterior

        tried = [(loss(0.0), 0.0)]
        while tried[-1][0] < min(tried)[0] + FAR_BELOW and tried[-1][1] < HIGHEST_ROOT:
            root = min(max(2 * tried[-1][1], FIRST_ROOT), HIGHEST_ROOT)
            tried.append((loss(root), root))
        best = tried.index(min(tried))
        if best == 0:
            return 0.0, math.nan
        ends = tried[best - 1][1], tried[min(best + 1, len(tried) - 1)][1]
        found = optimize.minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-3})
        rate = float(found.x) ** 2
        width = 0.25 * math.sqrt(rate)
        beside = [loss(math.sqrt(rate) + sign * width) for sign in (-1, 1)]
        bend = (beside[0] - 2 * float(found.fun) + beside[1]) / width**2
        return rate, 2 * math.sqrt(rate) / math.sqrt(bend) if bend > 0 else math.nan

    def clear_rate(self, *, random: bool) -> float:
        """The most probable lapse rate, or 0 where none is more probable: too high a rate stretches η."""
        rate, _ = self.best_rate(random=random)
        gain = self.at(rate, random=random).log_posterior - self.at(0.0, random=random).log_posterior
        return rate if gain > math.log(NO_LAPSE / (1 - NO_LAPSE)) else 0.0

    def has_random(self, rate: float) -> bool:
        """Whether the training part is clearly more probable if some people choose at random."""
        gain = self.at(rate, random=True).log_posterior - self.at(rate, random=False).log_posterior
        return gain > 0.5 * math.log(len(self.choices)) + 1

    def plausible(self, prior: SensitivityPrior, rate: float, *, given: bool) -> PlausiblePriors | None:
        """Return priors and lapse rates on a grid with their weights, where others than the best matter."""
        random = prior.random > 0
        best = self.at(rate, random=random)
        # A person who tells nothing has the prior itself: this bounds what doubt adds to anybody's variance.
        # So does how far the mean moves with lapse rates that are about one standard error away.
        near = [
            found.best[0]
            for (_, way), found in self._found.items()
            if way == random and found.log_posterior > best.log_posterior - 0.5
        ]
        moved = 0.0 if given else 0.5 * (max(near) - min(near))
        doubt = best.wide[0] ** 2 + (best.wide[1] * prior.sd) ** 2 + moved**2
        if prior.covariance is not None:
            doubt += math.fsum(np.einsum("pi,ij,pj->p", self.known, prior.covariance, self.known)) / len(
                self.known
            )
        if doubt / prior.sd**2 < NEGLIGIBLE:
            return None
        rates = self._rates(rate, random, given=given)
        if prior.slopes is not None:
            return self._with_slopes(rates, random)
        half = min(0.5 * float(self.grid[-1] - self.grid[0]) - BEYOND, 4 * MIDDLE_SD)
        ends = np.array([(self.middle - half, self.middle + half), (math.log(SMALLEST_SD), math.log(3.0))])
        tables = [self._known(one, share, random=random) for one, share in rates]
        for _ in range(3):  # the whole range first, then closer and closer to where the weight is
            axes = [np.linspace(float(low), float(high), 25) for low, high in ends]
            mean, log_sd = (axis.ravel() for axis in np.meshgrid(*axes))
            bells = _bells(self.grid, mean, np.exp(log_sd)).T
            before = np.array([self.beforehand(np.array(free))[0] for free in zip(mean, log_sd, strict=True)])
            log_weight = np.stack([_log_likelihood(bells, *known) for known in tables]) + before
            weight = np.exp(log_weight - log_weight.max())
            kept = weight > 1e-4
            some = kept.any(axis=0)
            step = (ends[:, 1] - ends[:, 0]) / 24
            narrow = np.array([(axis[some].min(), axis[some].max()) for axis in (mean, log_sd)])
            closer = np.clip(narrow + step[:, None] * (-1, 1), ends[:, :1], ends[:, 1:])
            if ((closer[:, 1] - closer[:, 0]) > 0.7 * (ends[:, 1] - ends[:, 0])).all():
                break
            ends = closer
        lapse = np.array([one for one, _ in rates])
        at_rate, at_prior = np.nonzero(kept)
        share = weight[kept] / weight[kept].sum()
        return PlausiblePriors(mean[at_prior], np.exp(log_sd[at_prior]), lapse[at_rate], share)

    def _with_slopes(self, rates: Sequence[tuple[float, float]], random: bool) -> PlausiblePriors:
        """Priors whose mean depends on covariates, drawn at every lapse rate by importance sampling.

        The more probable a rate, by the curvature at its best prior, the more are drawn. The share of people
        who choose at random is held at the best one of each rate.
        """
        free = [k for k in range(2 + random + self.known.shape[1]) if not random or k != 2]
        bests = [self.at(rate, random=random) for rate, _ in rates]
        bends = [best.curvature[np.ix_(free, free)] for best in bests]
        volume = [float(np.log(np.diag(spread_of(bend))).sum()) for bend in bends]
        columns = zip(bests, volume, rates, strict=True)
        rough = np.array([best.log_posterior + room + share for best, room, (_, share) in columns])
        parts = []
        for (rate, log_share), best, bend, place in zip(
            rates, bests, bends, rough - rough.max(), strict=True
        ):
            if place < math.log(RARE_RATE):
                continue
            n = 1 << math.ceil(math.log2(max(FEWEST_PRIORS, SLOPE_POINTS * math.exp(place))))
            likelihood, top, chance, more = self._known(rate, log_share, random=random)
            density = functools.partial(self._log_posteriors, likelihood, chance)
            points, weight, log_mass = sample(density, best.best[free], bend, n)
            log_weight = np.log(np.maximum(weight, 1e-300)) + log_mass - math.log(n) + math.fsum(top) + more
            parts.append((points, log_weight, np.full(n, rate)))
        some, log_weight, lapse = (np.concatenate(column) for column in zip(*parts, strict=True))
        weight = np.exp(log_weight - log_weight.max())
        kept = weight > 1e-4
        share = weight[kept] / weight[kept].sum()
        return PlausiblePriors(some[kept, 0], np.exp(some[kept, 1]), lapse[kept], share, some[kept, 2:])

    def _log_posteriors(self, likelihood: Floats, chance: Floats, points: Floats) -> Floats:
        """The log-posteriors of mean, log sd and slopes, given likelihoods of those who do not guess."""
        mass = np.empty((len(points), len(likelihood)))
        for own, (mean, log_sd, *slopes) in zip(mass, points, strict=True):
            away = self.grid - (mean + rise(self.known, np.array(slopes)))[:, None]
            away *= away
            away *= -0.5 * math.exp(-2 * log_sd)
            np.einsum("pg,pg->p", likelihood, np.exp(away, out=away), out=own)
            own *= (self.grid[1] - self.grid[0]) / (math.exp(log_sd) * math.sqrt(2 * math.pi))
        said = np.log(np.maximum(mass + chance, 1e-300)).sum(axis=1)
        said += [self.beforehand(point)[0] for point in points]
        inside = (points[:, 1] >= math.log(SMALLEST_SD)) & (points[:, 1] <= math.log(3.0))
        return np.where(inside, said, -np.inf)

    def _rates(self, rate: float, random: bool, *, given: bool) -> list[tuple[float, float]]:
        """Lapse rates that may be plausible, evenly spaced in their root, and the log of their share."""
        if given:
            return [(rate, 0.0)]
        low = self.at(rate, random=random).log_posterior - FAR_BELOW
        tried = sorted(
            (math.sqrt(rate), one.log_posterior) for (rate, way), one in self._found.items() if way == random
        )
        known = [root for root, _ in tried]
        inside = [place for place, (_, value) in enumerate(tried) if value > low]
        first, last = known[max(inside[0] - 1, 0)], known[min(inside[-1] + 1, len(known) - 1)]
        edges = np.linspace(first, min(max(last, first + 0.01 * RATES), HIGHEST_ROOT), RATES + 1)
        roots, step = 0.5 * (edges[1:] + edges[:-1]), float(edges[1] - edges[0])
        dense = math.log((1 - NO_LAPSE) * (LAPSE_PRIOR + 1) * 2 * step)
        return [(0.0, math.log(NO_LAPSE)), *((float(root) ** 2, dense + math.log(root)) for root in roots)]

    def _known(self, rate: float, log_share: float, *, random: bool) -> tuple[Floats, Floats, Floats, float]:
        """Likelihoods at a lapse rate, their tops, ρ times that of chance, and the rate's log-density."""
        table = self.table(rate)
        top = table.max(axis=1)
        rho = float(special.expit(self.at(rate, random=True).best[2])) if random else 0.0
        chance = rho * np.exp(np.minimum(self.at_zero - top, 0.0))
        likelihood = (1 - rho) * np.exp(table - top[:, None])
        return likelihood, top, chance, LAPSE_PRIOR * math.log1p(-rate) + log_share


def _log_likelihood(bells: Floats, likelihood: Floats, top: Floats, chance: Floats, more: float) -> Floats:
    """The log-likelihood of priors, given on nodes [G, R], at a lapse rate, with the rate's log-density."""
    mass = likelihood @ bells + chance[:, None]
    said = np.sort(np.log(np.maximum(mass, 1e-300)), axis=0)  # in any order of people the same
    return np.asarray(said.sum(axis=0) + math.fsum(top) + more)


def _learning_grid(choices: Choices) -> Floats:
    """Nodes wide enough for everybody and close enough for whoever is known best."""
    wide = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)
    heaviest = float(np.diff(choices.person_offsets).max(initial=1))
    spacing = max(SPACING * min(1.0, math.sqrt(300.0 / max(heaviest, 1.0))), (wide[-1] - wide[0]) / 4000)
    # Beyond the grid ℓ hardly changes, but a wide prior has mass there.
    return np.arange(wide[0] - BEYOND, wide[-1] + BEYOND + spacing, spacing)


def middle_of_range(choices: Choices) -> float:
    """Return the middle of the range of log η in which choices tell anything."""
    grid = _learning_grid(choices)
    return 0.5 * float(grid[0] + grid[-1])


def _first_guess(table: Floats, grid: Floats) -> Floats:
    inside = table.argmax(axis=1)
    finite = np.sort(grid[inside[(inside > 0) & (inside < len(grid) - 1)]])  # in any order of people the same
    if len(finite) < FEWEST:
        return np.array([0.5 * (grid[0] + grid[-1]), 0.0])
    return np.array([np.median(finite), math.log(min(1.5, max(0.2, 0.7 * float(finite.std()))))])


def _marginal(
    likelihood: Floats, grid: Floats, free: Floats, chance: Floats | None, known: Floats
) -> tuple[Floats, Floats]:
    """Return everybody's log marginal likelihood, and its slopes in the free numbers.

    These are mean, log sd, with chance logit ρ, and the slopes of covariates [P, C].
    """
    sd, width = float(np.exp(free[1])), known.shape[1]
    mean = free[0] + (known * free[len(free) - width :]).sum(axis=1)[:, None] if width else float(free[0])
    away = (grid - mean) / sd
    bell = np.exp(-0.5 * away**2) * ((grid[1] - grid[0]) / (sd * math.sqrt(2 * math.pi)))
    parts = (bell, bell * away, bell * away**2)
    if width:
        sums = np.stack([np.einsum("pg,pg->p", likelihood, part) for part in parts], axis=1)
    else:
        sums = likelihood @ np.stack(parts, axis=1)
    mass = np.maximum(sums[:, 0], 1e-300)
    slopes = np.stack([sums[:, 1] / mass / sd, sums[:, 2] / mass - 1], axis=1)
    value, moved = np.log(mass), slopes[:, :1] * known
    if chance is None:
        return value, np.column_stack([slopes, moved])
    rho = float(special.expit(free[2]))
    total = (1 - rho) * mass + rho * chance
    at_random = rho * chance / total
    kept = (1 - at_random)[:, None]
    return np.log(total), np.column_stack([slopes * kept, at_random - rho, moved * kept])
