r"""A person's action sensitivity η: maximum likelihood, and posterior under a log-normal prior.

Maximum likelihood. Without lapses ℓ(η) is concave, and its edges are known exactly:

- η̂ = 0 if and only if the chosen actions are together worth no more than the average legal action;
- there is no finite maximum if and only if every choice was a best action (gaps below 1e-8 are ties);
- η is undefined if and only if every row is flat.

Otherwise the best node of a tabulated grid is polished by safeguarded Newton steps on the exact ℓ. The
standard error is 1/√−ℓ''(η̂). The interval holds every η whose ℓ lies within z²/2 of the maximum (profile
likelihood); where the estimate is 0 or infinite only its other end is finite and belongs to a one-sided
interval of the same level.

Posterior. With log η ~ N(m, s²), everything is an integral over evenly spaced nodes in log η. The prior,
and the lapse rate if it is to be estimated, maximise the marginal likelihood of the training part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from fidm.errors import FitError
from fidm.fit.offsets import REPORT_NODES, Moments, node_moments, node_quantiles
from fidm.fit.population import Gradients, standard_errors
from fidm.model import kernels
from fidm.model.action import TIE, Choices, log_likelihoods, over_chunks, sensitivity_grid
from fidm.types import Floats

SPACING = 0.08
"""The distance of grid nodes in log η."""

REACH = 8.0
"""How many prior standard deviations the posterior's nodes reach to either side."""

BEYOND = 5.0
"""How much farther than the grid the prior is integrated while it is learned."""

LARGEST_LAPSE = 0.5
SMALLEST_SD, LARGEST_SD = 0.05, 2.0
"""How much people may differ in log η, at least and at most."""

FEWEST = 2
"""A prior cannot be learned from fewer people."""

Entries = tuple[Any, Any, Any, Any, Any, Any]
"""What :meth:`fidm.model.action.Choices.entries` returns."""

FINITE, AT_ZERO, NO_MAXIMUM, UNDEFINED = 0, 1, 2, 3
"""Where the maximum lies."""


@dataclass(frozen=True, slots=True)
class SensitivityPrior:
    """The log-normal prior of η: mean and standard deviation of log η, and their standard errors.

    ``at_bound`` says that the mean ran to the end of the range in which choices tell anything.
    """

    mean: float
    sd: float
    mean_se: float = math.nan
    sd_se: float = math.nan
    at_bound: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivities:
    """η of many people.

    Parameters
    ----------
    estimate, se, low, high : float array [P]
        η, its standard error and its interval.
    log_estimate, log_se : float array [P]
        The same for log η: its posterior mean and sd, or log η̂ and se/η̂.
    where : int array [P]
        0 finite, 1 at zero, 2 no finite maximum, 3 undefined; of the likelihood, for both methods.
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    log_estimate: Floats
    log_se: Floats
    where: NDArray[np.int64]


def maximum(choices: Choices, *, lapse: float, level: float, workers: int = 1) -> Sensitivities:
    """Return every person's η of highest likelihood, with profile-likelihood intervals."""
    grid = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)

    def chunk(part: Choices) -> tuple[Floats, ...]:
        return _maximum_of(part, grid, lapse, level)

    eta, se, low, high, where = over_chunks(choices, chunk, workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_eta, log_se = np.log(eta), se / eta
    log_se = np.where(np.isfinite(log_eta), log_se, np.nan)
    return Sensitivities(eta, se, low, high, log_eta, log_se, where.astype(np.int64))


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
    place, peak = _vertex(grid, table, best)
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
    for j in np.flatnonzero(finite & np.isnan(peak)):
        peak[j] = kernels.value(j, *entries, eta[j], lapse)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where((bend < 0) & (where != NO_MAXIMUM), 1 / np.sqrt(-bend), np.nan)
    two_sided, one_sided = (
        0.5 * special.ndtri(0.5 + level / 2) ** 2,
        0.5 * max(0.0, special.ndtri(level)) ** 2,
    )
    one_sided = one_sided if one_sided > 0 else np.nan  # at levels below one half there is no such bound
    target = peak - np.where(finite, two_sided, one_sided)
    left = _crossing(entries, grid, table, eta, target, at_zero, lapse, upward=False)
    right = _crossing(entries, grid, table, eta, target, at_infinity, lapse, upward=True)
    left[where == AT_ZERO] = 0.0
    right[where == NO_MAXIMUM] = np.inf
    if np.isnan(one_sided):
        left[where == NO_MAXIMUM], right[where == AT_ZERO] = np.inf, 0.0
    nothing = where == UNDEFINED
    left[nothing], right[nothing] = 0.0, np.inf
    return eta, se, left, right, where.astype(np.float64)


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


def _extremes(entries: Entries, lapse: float) -> Floats:
    scores = np.empty((len(entries[0]) - 1, 4))
    kernels.extremes(*entries, lapse, TIE, scores)
    return scores


def _vertex(grid: Floats, table: Floats, best: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Place and height of the top of the quartic through the best node and two nodes to either side.

    At the edge of the grid there is no such quartic: the place is the node's, the height NaN.
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
    height = c + shift * (slope + shift * (bend / 2 + shift * (third / 6 + shift * fourth / 24)))
    return grid[best] + shift * (grid[1] - grid[0]), np.where(good, height, np.nan)


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

    Among the grid's nodes the tabulated ℓ is interpolated; nearer to the estimate than a node, or beyond the
    grid, the exact ℓ is followed.
    """
    n = len(eta)
    end = np.inf if upward else 0.0
    with np.errstate(divide="ignore"):
        here = np.log(eta)
    falls = (at_end < target) & ~np.isnan(eta) & (eta != end)
    found = np.empty(n)
    kernels.cross_table(table, grid[0], grid[1] - grid[0], here, target, upward, found)
    found = np.where(falls, np.exp(found), end)
    hard = np.flatnonzero(falls & np.isnan(found))
    if len(hard):
        low, high = np.full(n, np.nan), np.full(n, np.nan)
        for j in hard.tolist():
            low[j], high[j] = _bracket(
                entries, j, float(eta[j]), float(target[j]), lapse, grid, upward=upward
            )
        exact = np.empty(n)
        kernels.cross(*entries, lapse, target, low, high, exact)
        found[hard] = exact[hard]
    return found


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
    choices: Choices, prior: SensitivityPrior, *, lapse: float, level: float, workers: int = 1
) -> tuple[Sensitivities, Floats]:
    """Return every person's posterior of η, and the log marginal likelihood."""
    nodes = prior_nodes(prior)
    tails = (0.5 * (1 - level), 0.5 + 0.5 * level)

    def chunk(part: Choices) -> tuple[Floats, ...]:
        entries = part.entries()
        table = log_likelihoods(entries, np.exp(prior.mean + prior.sd * nodes), lapse)
        centre, scale = np.full(len(part), prior.mean), np.full(len(part), prior.sd)
        moments, low, high, raw_sd = _integrated(centre, scale, table, nodes, prior, tails)
        coarse = prior.sd * (nodes[1] - nodes[0])
        log_mass = moments.log_mass.copy()
        mean, sd = moments.mean.copy(), moments.sd.copy()
        at_edge = np.maximum(moments.weight[:, 0], moments.weight[:, -1]) > 1e-10
        for j in np.flatnonzero((sd < 1.2 * coarse) | at_edge):  # very many choices, or far from everybody
            mean[j], sd[j], low[j], high[j], raw_sd[j], log_mass[j] = _closer(
                part.people(int(j), int(j) + 1), prior, lapse, tails
            )
        where = _place(part, _extremes(entries, lapse), table.max(axis=1), lapse)
        return mean, sd, low, high, raw_sd, where.astype(np.float64), log_mass

    mean, sd, low, high, raw_sd, where, marginal = over_chunks(choices, chunk, workers)
    found = Sensitivities(np.exp(mean), raw_sd, np.exp(low), np.exp(high), mean, sd, where.astype(np.int64))
    return found, marginal + choices.flat


def prior_nodes(prior: SensitivityPrior) -> Floats:
    """Return evenly spaced nodes in units of the prior's sd, no farther apart than the grid's spacing."""
    step = min(0.5, SPACING / prior.sd)
    half = math.ceil(REACH / step)
    return np.asarray(step * np.arange(-half, half + 1), dtype=np.float64)


def _integrated(
    centre: Floats,
    scale: Floats,
    table: Floats,
    nodes: Floats,
    prior: SensitivityPrior,
    tails: tuple[float, float],
) -> tuple[Moments, Floats, Floats, Floats]:
    """Moments, quantiles and the sd of η itself, from ℓ on nodes."""
    log_eta = centre[:, None] + scale[:, None] * nodes
    away = (log_eta - prior.mean) / prior.sd
    density = table - 0.5 * away**2 - math.log(prior.sd * math.sqrt(2 * math.pi))
    moments = node_moments(centre, scale, density, nodes)
    low, high = node_quantiles(centre, scale, density, nodes, tails)
    relative = np.exp(np.minimum(log_eta - moments.mean[:, None], 300.0))
    mean = (moments.weight * relative).sum(axis=1)
    spread = (moments.weight * (relative - mean[:, None]) ** 2).sum(axis=1)
    return moments, low, high, np.exp(moments.mean) * np.sqrt(spread)


def _closer(
    one: Choices, prior: SensitivityPrior, lapse: float, tails: tuple[float, float]
) -> tuple[float, ...]:
    """The posterior of one person on nodes around its own mode, scaled to its own width."""
    entries = one.entries()
    mean, sd = _mode(entries, prior, lapse)
    for _ in range(20):
        centre, scale = np.array([mean]), np.array([sd])
        table = log_likelihoods(entries, np.exp(mean + sd * REPORT_NODES), lapse)
        moments, low, high, raw_sd = _integrated(centre, scale, table, REPORT_NODES, prior, tails)
        new_mean, new_sd = float(moments.mean[0]), float(moments.sd[0])
        if 0.7 * sd < new_sd < 1.4 * sd and abs(new_mean - mean) < 0.5 * sd:
            return (
                new_mean,
                new_sd,
                float(low[0]),
                float(high[0]),
                float(raw_sd[0]),
                float(moments.log_mass[0]),
            )
        mean, sd = new_mean, min(max(new_sd, 0.3 * sd), 3.0 * sd)
    raise FitError(
        "The posterior of somebody's action sensitivity could not be integrated: their choices and the prior "
        f"(log η {prior.mean:.2f} ± {prior.sd:.2f}) are too far apart. Was it learned from such people?"
    )


def _mode(entries: Entries, prior: SensitivityPrior, lapse: float) -> tuple[float, float]:
    """Where one person's posterior of log η is highest, and the width its curvature gives there."""
    grid = np.linspace(min(-12.0, prior.mean - 10 * prior.sd), max(16.0, prior.mean + 10 * prior.sd), 561)
    table = log_likelihoods(entries, np.exp(grid), lapse)[0] - 0.5 * ((grid - prior.mean) / prior.sd) ** 2
    best = int(table.argmax())
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]

    def slope(u: float) -> float:
        eta = math.exp(u)
        return eta * float(kernels.slopes(0, *entries, eta, lapse)[0]) - (u - prior.mean) / prior.sd**2

    if slope(low) > 0 > slope(high):
        mode = float(optimize.brentq(slope, low, high, xtol=1e-12))
    else:
        mode = float(grid[best])
    step = 1e-4 * prior.sd
    bend = (slope(mode - step) - slope(mode + step)) / (2 * step)
    return mode, 1 / math.sqrt(max(bend, 1e-3 / prior.sd**2))


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
    choices: Choices, *, lapse: float | None, workers: int = 1
) -> tuple[SensitivityPrior, float, float]:
    """Return the prior of log η, the lapse rate and its standard error, by marginal likelihood.

    ``lapse=None`` estimates the lapse rate together with the prior.
    """
    grid = _learning_grid(choices)
    start: list[Floats] = []

    def best_at(rate: float) -> tuple[SensitivityPrior, float]:
        (table,) = over_chunks(
            choices, lambda part: (log_likelihoods(part.entries(), np.exp(grid), rate),), workers
        )

        def gradients(free: Floats) -> tuple[Floats, Floats]:
            return _marginal(table, grid, free)

        if not start:
            start.append(_first_guess(table, grid))
        best, se = _climb(gradients, start[0], grid)
        start[0] = best
        sd = float(np.exp(best[1]))
        at_bound = bool(min(best[0] - grid[0], grid[-1] - best[0]) < BEYOND + 1e-6)
        found = SensitivityPrior(float(best[0]), sd, float(se[0]), float(se[1]) * sd, at_bound)
        return found, math.fsum(gradients(best)[0])

    if lapse is not None:
        return best_at(lapse)[0], lapse, math.nan
    result = optimize.minimize_scalar(
        lambda rate: -best_at(rate)[1], bounds=(0.0, LARGEST_LAPSE), method="bounded", options={"xatol": 1e-6}
    )
    rate, top = float(result.x), -float(result.fun)
    if best_at(0.0)[1] >= top:
        return best_at(0.0)[0], 0.0, math.nan
    width = max(0.1 * rate, 1e-4)
    beside = [best_at(rate + sign * min(width, 0.5 * rate))[1] for sign in (-1, 1)]
    bend = (beside[0] - 2 * top + beside[1]) / min(width, 0.5 * rate) ** 2
    return best_at(rate)[0], rate, 1 / math.sqrt(-bend) if bend < 0 else math.nan


def _learning_grid(choices: Choices) -> Floats:
    """Nodes wide enough for everybody and close enough for whoever is known best."""
    wide = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)
    heaviest = float(np.diff(choices.person_offsets).max(initial=1))
    spacing = max(SPACING * min(1.0, math.sqrt(300.0 / max(heaviest, 1.0))), (wide[-1] - wide[0]) / 4000)
    # Beyond the grid ℓ hardly changes, but a wide prior has mass there.
    return np.arange(wide[0] - BEYOND, wide[-1] + BEYOND + spacing, spacing)


def _climb(gradients: Gradients, start: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Maximise over (m, log s) within what the grid can show; return where, and standard errors."""

    def loss(free: Floats) -> tuple[float, Floats]:
        value, slopes = gradients(free)
        return -math.fsum(value) / len(value), -np.array([math.fsum(c) for c in slopes.T]) / len(value)

    bounds = [(grid[0] + BEYOND, grid[-1] - BEYOND), (math.log(SMALLEST_SD), math.log(LARGEST_SD))]
    result = optimize.minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
    )
    best = np.asarray(result.x)
    return best, standard_errors(gradients, best, np.eye(2))


def _first_guess(table: Floats, grid: Floats) -> Floats:
    inside = table.argmax(axis=1)
    finite = np.sort(grid[inside[(inside > 0) & (inside < len(grid) - 1)]])  # in any order of people the same
    if len(finite) < FEWEST:
        return np.array([0.5 * (grid[0] + grid[-1]), 0.0])
    return np.array([np.median(finite), math.log(min(1.5, max(0.2, 0.7 * float(finite.std()))))])


def _marginal(table: Floats, grid: Floats, free: Floats) -> tuple[Floats, Floats]:
    mean, sd = float(free[0]), float(np.exp(free[1]))
    away = (grid - mean) / sd
    density = table - 0.5 * away**2 - math.log(sd * math.sqrt(2 * math.pi))
    top = density.max(axis=1)
    weight = np.exp(density - top[:, None])
    total = weight.sum(axis=1)
    weight /= total[:, None]
    slopes = np.stack([(weight * away).sum(axis=1) / sd, (weight * away**2).sum(axis=1) - 1], axis=1)
    return top + np.log(total * (grid[1] - grid[0])), slopes
