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

from fidm.fit.offsets import REPORT_NODES, Moments, node_moments, node_quantiles
from fidm.fit.population import Gradients, outer_product
from fidm.model import kernels
from fidm.model.action import TIE, Choices, log_likelihoods, over_chunks, sensitivity_grid

Floats = NDArray[np.float64]

SPACING = 0.08
"""The distance of grid nodes in log η."""

REACH = 8.0
"""How many prior standard deviations the posterior's nodes reach to either side."""

LARGEST_LAPSE = 0.5
SMALLEST_SD, LARGEST_SD = 0.05, 2.0
"""How much people may differ in log η, at least and at most."""

FEWEST = 2
"""A prior cannot be learned from fewer people."""

FINITE, AT_ZERO, NO_MAXIMUM, UNDEFINED = 0, 1, 2, 3
"""Where the maximum lies."""


@dataclass(frozen=True, slots=True)
class SensitivityPrior:
    """The log-normal prior of η: mean and standard deviation of log η, and their standard errors."""

    mean: float
    sd: float
    mean_se: float = math.nan
    sd_se: float = math.nan


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
    log_likelihood : float array [P]
        ℓ at the estimate, uninformative choices included.
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    log_estimate: Floats
    log_se: Floats
    where: NDArray[np.int64]
    log_likelihood: Floats


def maximum(choices: Choices, *, lapse: float, level: float, workers: int = 1) -> Sensitivities:
    """Return every person's η of highest likelihood, with profile-likelihood intervals."""
    grid = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)

    def chunk(part: Choices) -> tuple[Floats, ...]:
        return _maximum_of(part, grid, lapse, level)

    eta, se, low, high, where, value = over_chunks(choices, chunk, workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_eta, log_se = np.log(eta), se / eta
    log_se = np.where(np.isfinite(log_eta), log_se, np.nan)
    return Sensitivities(eta, se, low, high, log_eta, log_se, where.astype(np.int64), value + choices.flat)


def _maximum_of(part: Choices, grid: Floats, lapse: float, level: float) -> tuple[Floats, ...]:
    n = len(part)
    scores = _extremes(part, lapse)
    at_zero, at_infinity, short = scores[:, 1], scores[:, 2], scores[:, 3]
    table = log_likelihoods(part, np.exp(grid), lapse)
    best = table.argmax(axis=1)
    rows = np.arange(n)
    where = np.full(n, FINITE)
    if lapse == 0.0:
        where[scores[:, 0] <= 0] = AT_ZERO
        where[short == 0] = NO_MAXIMUM
    else:  # ℓ need not be concave, so the places are compared
        top = table[rows, best]
        where[(at_infinity >= top) & (at_infinity > at_zero)] = NO_MAXIMUM
        where[(at_zero >= top) & (at_zero >= at_infinity)] = AT_ZERO
    where[np.diff(part.person_offsets) == 0] = UNDEFINED
    finite = where == FINITE
    eta = np.exp(_vertex(grid, table, best))
    low, high = np.exp(grid[np.maximum(best - 1, 0)]), np.exp(grid[np.minimum(best + 1, len(grid) - 1)])
    low[best == 0] = 0.0
    for j in np.flatnonzero(finite & (best == len(grid) - 1)):
        high[j] = _beyond(part, int(j), float(high[j]), lapse)
    eta[~finite] = np.nan
    value, bend = np.zeros(n), np.full(n, np.nan)
    arrays = _arrays(part)
    kernels.polish(*arrays, lapse, low, high, eta, value, bend, 0, n)
    eta[where == AT_ZERO], value[where == AT_ZERO] = 0.0, at_zero[where == AT_ZERO]
    eta[where == NO_MAXIMUM], value[where == NO_MAXIMUM] = np.inf, at_infinity[where == NO_MAXIMUM]
    zero = np.flatnonzero(where == AT_ZERO)
    for j in zero:
        bend[j] = kernels.person_terms(j, *arrays, 0.0, lapse)[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where((bend < 0) & (where != NO_MAXIMUM), 1 / np.sqrt(-bend), np.nan)
    two_sided, one_sided = 0.5 * special.ndtri(0.5 + level / 2) ** 2, 0.5 * special.ndtri(level) ** 2
    target = value - np.where(finite, two_sided, one_sided)
    left = _crossing(part, grid, table, eta, target, at_zero, lapse, upward=False)
    right = _crossing(part, grid, table, eta, target, at_infinity, lapse, upward=True)
    left[where == AT_ZERO] = 0.0
    right[where == NO_MAXIMUM] = np.inf
    nothing = where == UNDEFINED
    left[nothing], right[nothing] = 0.0, np.inf
    return eta, se, left, right, where.astype(np.float64), value


def _arrays(part: Choices) -> tuple[Any, Any, Any, Any, Any, Any]:
    """What every kernel takes first."""
    return part.person_offsets, part.pair, part.row, part.weight, part.offsets, part.q


def _extremes(part: Choices, lapse: float) -> Floats:
    scores = np.empty((len(part), 4))
    kernels.extremes(*_arrays(part), lapse, TIE, scores, 0, len(part))
    return scores


def _vertex(grid: Floats, table: Floats, best: NDArray[np.int64]) -> Floats:
    """The top of the parabola through the best node and its neighbours."""
    rows = np.arange(len(best))
    inner = np.clip(best, 1, len(grid) - 2)
    left, middle, right = (table[rows, inner + i] for i in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = 0.5 * (left - right) / (left - 2 * middle + right)
    shift = np.where(np.isfinite(shift) & (best == inner), np.clip(shift, -0.9, 0.9), 0.0)
    return np.asarray(grid[best] + shift * (grid[1] - grid[0]))


def _beyond(part: Choices, j: int, eta: float, lapse: float) -> float:
    """A sensitivity beyond the grid at which ℓ falls."""
    arrays = _arrays(part)
    while kernels.person_terms(j, *arrays, eta, lapse)[1] > 0 and eta < 1e300:
        eta *= 4.0
    return eta


def _crossing(
    part: Choices,
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

    Between four grid nodes ℓ is taken as their cubic; nearer to the estimate than a node, or beyond the
    grid, the exact ℓ is followed.
    """
    n, last = len(part), len(grid) - 1
    end = np.inf if upward else 0.0
    found = np.full(n, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        here = np.log(eta)
        falls = (at_end < target) & ~np.isnan(here) & (here != (np.inf if upward else -np.inf))
    beyond = (grid > here[:, None]) if upward else (grid < here[:, None])
    outside: NDArray[np.bool_] = beyond & (table < target[:, None])
    any_node = np.asarray(outside.any(axis=1))
    node = outside.argmax(axis=1) if upward else last - outside[:, ::-1].argmax(axis=1)
    toward = node - 1 if upward else node + 1  # the neighbour on the estimate's side
    nearby = (toward >= 0) & (toward <= last)
    side = np.clip(toward, 0, last)
    between = (grid[side] > here) if upward else (grid[side] < here)
    smooth = falls & any_node & nearby & between & (node >= 2) & (node <= last - 2)
    some = np.flatnonzero(smooth)
    if len(some):
        first = np.minimum(node[some], side[some]) - 1
        found[some] = np.exp(_cubic_root(grid, table, some, first, target[some]))
    arrays = _arrays(part)
    low, high = np.full(n, np.nan), np.full(n, np.nan)
    for j in np.flatnonzero(falls & ~smooth):
        inner = float(eta[j])
        if upward:
            outer = float(np.exp(grid[node[j]])) if any_node[j] else max(2.0 * inner, float(np.exp(grid[-1])))
            while kernels.person_terms(j, *arrays, outer, lapse)[0] >= target[j]:
                outer *= 2.0
        else:
            outer = float(np.exp(grid[node[j]])) if any_node[j] else 0.0
            if not np.isfinite(inner):
                inner = float(np.exp(grid[side[j]]))
                while kernels.person_terms(j, *arrays, inner, lapse)[0] < target[j]:
                    inner *= 2.0
        low[j], high[j] = inner, outer
    if (falls & ~smooth).any():
        exact = np.empty(n)
        kernels.cross(*arrays, lapse, target, low, high, exact, 0, n)
        found = np.where(falls & ~smooth, exact, found)
    return found


def _cubic_root(
    grid: Floats, table: Floats, rows: NDArray[np.int64], first: NDArray[np.int64], target: Floats
) -> Floats:
    """Where the cubic through four nodes meets the target, between the second and the third."""
    y0, y1, y2, y3 = (table[rows, first + i] - target for i in range(4))
    # Newton's form in t = distance from the second node, in node spacings
    c1 = (-2 * y0 - 3 * y1 + 6 * y2 - y3) / 6
    c2 = (y0 - 2 * y1 + y2) / 2
    c3 = (-y0 + 3 * y1 - 3 * y2 + y3) / 6
    low, high = np.zeros(len(rows)), np.ones(len(rows))
    rising = y2 > y1
    t = np.clip(y1 / (y1 - y2), 0.0, 1.0)
    still = np.ones(len(rows), dtype=np.bool_)  # nobody's number of steps depends on anybody else
    for _ in range(30):
        value = ((c3 * t + c2) * t + c1) * t + y1
        above = (value > 0) == rising
        high, low = np.where(above, t, high), np.where(above, low, t)
        slope = (3 * c3 * t + 2 * c2) * t + c1
        with np.errstate(divide="ignore", invalid="ignore"):
            to = t - value / slope
        to = np.where((to >= low) & (to <= high), to, 0.5 * (low + high))
        moved = np.abs(to - t) >= 1e-12
        t = np.where(still, to, t)
        still &= moved
        if not still.any():
            break
    return np.asarray(grid[first + 1] + t * (grid[1] - grid[0]))


# ---------------------------------------------------------------------- posterior


def posterior(
    choices: Choices, prior: SensitivityPrior, *, lapse: float, level: float, workers: int = 1
) -> tuple[Sensitivities, Floats]:
    """Return every person's posterior of η, and the log marginal likelihood."""
    nodes = prior_nodes(prior)
    tails = (0.5 * (1 - level), 0.5 + 0.5 * level)

    def chunk(part: Choices) -> tuple[Floats, ...]:
        table = log_likelihoods(part, np.exp(prior.mean + prior.sd * nodes), lapse)
        centre, scale = np.full(len(part), prior.mean), np.full(len(part), prior.sd)
        moments, low, high, raw_sd = _integrated(centre, scale, table, nodes, prior, tails)
        coarse = prior.sd * (nodes[1] - nodes[0])
        log_mass = moments.log_mass.copy()
        mean, sd = moments.mean.copy(), moments.sd.copy()
        for j in np.flatnonzero(sd < 1.2 * coarse):  # somebody with very many choices
            mean[j], sd[j], low[j], high[j], raw_sd[j], log_mass[j] = _closer(
                part.people(int(j), int(j) + 1),
                float(mean[j]),
                max(float(sd[j]), 0.25 * coarse),
                prior,
                lapse,
                tails,
            )
        at, scores = _exact(part, np.exp(mean), lapse), _extremes(part, lapse)
        where = np.where(scores[:, 0] <= 0, AT_ZERO, FINITE)
        where[scores[:, 3] == 0] = NO_MAXIMUM
        where[np.diff(part.person_offsets) == 0] = UNDEFINED
        return mean, sd, low, high, raw_sd, where.astype(np.float64), at, log_mass

    mean, sd, low, high, raw_sd, where, at, marginal = over_chunks(choices, chunk, workers)
    found = Sensitivities(
        np.exp(mean), raw_sd, np.exp(low), np.exp(high), mean, sd, where.astype(np.int64), at + choices.flat
    )
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
    one: Choices, mean: float, sd: float, prior: SensitivityPrior, lapse: float, tails: tuple[float, float]
) -> tuple[float, ...]:
    """The posterior of one person on nodes drawn ever closer, until they resolve it."""
    for _ in range(12):
        centre, scale = np.array([mean]), np.array([sd])
        table = log_likelihoods(one, np.exp(mean + sd * REPORT_NODES), lapse)
        moments, low, high, raw_sd = _integrated(centre, scale, table, REPORT_NODES, prior, tails)
        new_mean, new_sd = float(moments.mean[0]), float(moments.sd[0])
        if 0.8 * sd < new_sd < 1.25 * sd and abs(new_mean - mean) < 0.3 * sd:
            break
        mean, sd = new_mean, max(new_sd, 0.3 * sd)
    return new_mean, new_sd, float(low[0]), float(high[0]), float(raw_sd[0]), float(moments.log_mass[0])


def values_at(choices: Choices, eta: Floats, lapse: float) -> Floats:
    """Return everybody's log-likelihood at sensitivities of their own, [P]; NaN counts as chance."""
    scores = _extremes(choices, lapse)
    found = choices.flat + _exact(choices, np.where(np.isfinite(eta), eta, 0.0), lapse)
    return np.where(np.isinf(eta), choices.flat + scores[:, 2], found)


def _exact(part: Choices, eta: Floats, lapse: float) -> Floats:
    arrays = _arrays(part)
    found = np.empty(len(part))
    kernels.values_at(*arrays, eta, lapse, found, 0, len(part))
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
        (table,) = over_chunks(choices, lambda part: (log_likelihoods(part, np.exp(grid), rate),), workers)

        def gradients(free: Floats) -> tuple[Floats, Floats]:
            return _marginal(table, grid, free)

        if not start:
            start.append(_first_guess(table, grid))
        best, se = _climb(gradients, start[0], grid)
        start[0] = best
        sd = float(np.exp(best[1]))
        found = SensitivityPrior(float(best[0]), sd, float(se[0]), float(se[1]) * sd)
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
    return np.arange(wide[0], wide[-1] + spacing, spacing)


def _climb(gradients: Gradients, start: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Maximise over (m, log s) within what the grid can show; return where, and standard errors."""

    def loss(free: Floats) -> tuple[float, Floats]:
        value, slopes = gradients(free)
        return -math.fsum(value) / len(value), -np.array([math.fsum(c) for c in slopes.T]) / len(value)

    bounds = [(grid[0], grid[-1]), (math.log(SMALLEST_SD), math.log(LARGEST_SD))]
    result = optimize.minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
    )
    best = np.asarray(result.x)
    spread = np.linalg.pinv(outer_product(gradients(best)[1]))
    return best, np.sqrt(np.maximum(np.diag(spread), 0.0))


def _first_guess(table: Floats, grid: Floats) -> Floats:
    inside = table.argmax(axis=1)
    finite = grid[inside[(inside > 0) & (inside < len(grid) - 1)]]
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
