r"""A person's own offset θ in one effort channel: maximum likelihood, and posterior under a normal prior.

Both are one-dimensional. The log-likelihood ℓ(θ) = Σ log f(y; ξ₀ + θ) is concave for every channel that
comes with the package, so safeguarded Newton steps find its maximum, or that of ℓ(θ) + log N(θ; m, s²).
Posterior means, standard deviations, quantiles and the marginal likelihood are integrals on evenly spaced
nodes around the posterior's mode, scaled to its curvature. For smooth, peaked functions the trapezoidal
rule converges geometrically: with nodes one standard deviation apart its error is about 1e-9, which is why
few nodes are enough.

Everything is done for many people at once, and each person's numbers depend on that person's data alone:
cutting the people into other batches, or using other numbers of threads, changes no bit of them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fidm.model.channels import Channel, person_sums
from fidm.model.effort import Observed
from fidm.types import Floats

Result = TypeVar("Result")

CHUNK = 4_096
"""How many people are worked on at a time; small enough for the processor's cache."""

MAX_NEWTON = 500
LONGEST_STEP = 2.0
CONVERGED = 1e-12
FARTHEST = 500.0
"""Offsets beyond this overflow an exponential; a maximum that far away is none."""

SEARCH_NODES: Floats = np.arange(-5, 6).astype(np.float64)
"""Nodes for marginal likelihoods, in units of the posterior's curvature."""

REPORT_NODES: Floats = np.arange(-14, 15).astype(np.float64) / 2
"""Nodes for what is reported: closer and farther, since quantiles need more than moments."""


WIDE_NODES: Floats = np.arange(-20, 21).astype(np.float64) * 0.4
"""Nodes that reach farther still, for likelihoods that another prior will be laid over."""


@dataclass(frozen=True, slots=True)
class Population:
    """What everybody shares in one channel.

    Parameters
    ----------
    coefficients : float array [p]
        Intercept α, slope β of log(1 + n), and those of further design columns.
    shape : float
        κ, or the standard deviation of a log-normal; 1 where the channel has none.
    mean, sd : float
        The normal prior of θ. Under ``population="random"`` its mean is 0, as α holds it.
    """

    coefficients: Floats
    shape: float
    mean: float = 0.0
    sd: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """One parameter of many people.

    Parameters
    ----------
    estimate, se, low, high : float array [P]
        The estimate, its standard error (or posterior sd) and its interval. NaN where nothing was observed.
    """

    estimate: Floats
    se: Floats
    low: Floats
    high: Floats


def maximum(
    channel: Channel, data: Observed, shared: Population, *, level: float, workers: int = 1
) -> Estimates:
    """Return every person's θ of highest likelihood, with Wald intervals.

    Where all observations are at the edge of what is possible (all counts zero), θ is infinite and only
    one end of the interval is finite: where the log-likelihood has fallen z²/2 below its supremum, with z
    that of a one-sided interval of the same level.
    """
    z, drop = special.ndtri(0.5 + 0.5 * level), 0.5 * max(0.0, special.ndtri(level)) ** 2

    def chunk(part: Observed) -> tuple[Floats, ...]:
        base = part.predictor(shared.coefficients)
        theta, curvature = channel.own_maximum(part.y, base, part.offsets, shared.shape) or _climb(
            channel, part, base, shared.shape
        )
        at_low, at_high = edges(channel, part)
        finite = ~(at_low | at_high) & (part.counts > 0)
        theta = np.where(finite, theta, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            se = np.where(finite & (curvature > 0), 1 / np.sqrt(curvature), np.nan)
        low, high = theta - z * se, theta + z * se
        for edge, sign in ((at_low, -1.0), (at_high, 1.0)):
            for j in np.flatnonzero(edge).tolist():
                theta[j] = sign * np.inf
                bound = _one_sided(channel, part.people(j, j + 1), shared, sign, drop)
                low[j], high[j] = (-np.inf, bound) if sign < 0 else (bound, np.inf)
        return theta, se, low, high

    return Estimates(*_joined(in_chunks(data, chunk, workers)))


def posterior(
    channel: Channel, data: Observed, shared: Population, *, level: float, workers: int = 1
) -> tuple[Estimates, Floats]:
    """Return every person's posterior mean of θ, its sd and interval, and the log marginal likelihood.

    The part of the log-density that does not depend on θ is left out of the latter; see :func:`constants`.
    """
    tail = 0.5 * (1 - level)

    def chunk(part: Observed) -> tuple[Floats, ...]:
        centre, scale, density = on_nodes(channel, part, shared, REPORT_NODES)
        moments = node_moments(centre, scale, density, REPORT_NODES)
        low, high = node_quantiles(centre, scale, density, REPORT_NODES, (tail, 1 - tail))
        return moments.mean, moments.sd, low, high, moments.log_mass

    *found, marginal = _joined(in_chunks(data, chunk, workers))
    return Estimates(*found), marginal


def constants(channel: Channel, data: Observed, shared: Population) -> Floats:
    """Return the part of everybody's log-likelihood that does not depend on θ, [P]."""
    return person_sums(channel.fixed(data.y, shared.shape), data.offsets)


def values_at(channel: Channel, data: Observed, shared: Population, theta: Floats) -> Floats:
    """Return the log-likelihood of everybody's observations at offsets of their own, [P].

    An infinite offset gives the supremum; a missing one, which belongs to no observation, gives 0.
    """
    near = np.clip(np.nan_to_num(theta, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)

    def chunk(part: Observed, own: Floats) -> Floats:
        base = part.predictor(shared.coefficients)
        fixed = person_sums(channel.fixed(part.y, shared.shape), part.offsets)
        return fixed + _summed(channel, part, base, own, shared.shape)

    n = len(near)
    found = [
        chunk(data.people(first, min(first + CHUNK, n)), near[first : first + CHUNK])
        for first in range(0, n, CHUNK)
    ]
    return np.concatenate([np.zeros(0), *found])


# ---------------------------------------------------------------------- the pieces


def _climb(
    channel: Channel, part: Observed, base: Floats, shape: float, prior: Population | None = None
) -> tuple[Floats, Floats]:
    """Return the θ where the log-likelihood (or posterior) is highest, and its curvature there."""
    n, counts = len(part.offsets) - 1, part.counts
    pull, centre = (0.0, 0.0) if prior is None else (1 / prior.sd**2, prior.mean)
    theta, curvature = np.full(n, centre), np.full(n, pull)
    still = counts > 0
    if prior is None:
        at_low, at_high = edges(channel, part)
        still &= ~(at_low | at_high)
    low, high = np.full(n, -FARTHEST), np.full(n, FARTHEST)
    for _ in range(MAX_NEWTON):
        if not still.any():
            break
        with np.errstate(over="ignore", invalid="ignore"):
            score, information = channel.slopes(part.y, base + np.repeat(theta, counts), shape)
        slope = person_sums(score, part.offsets) - pull * (theta - centre)
        bend = person_sums(information, part.offsets) + pull
        curvature[still] = bend[still]
        low = np.where(still & (slope > 0), theta, low)
        high = np.where(still & (slope < 0), theta, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(bend > 0, slope / bend, np.sign(slope) * LONGEST_STEP)
        step = np.clip(np.nan_to_num(step), -LONGEST_STEP, LONGEST_STEP)
        done = still & (np.abs(step) <= CONVERGED * np.maximum(1.0, np.abs(theta)))
        to = theta + step
        # A converged step is taken before the bracket is asked: rounding may put it a hair outside.
        outside = ~done & ((to <= low) | (to >= high))
        to = np.where(outside, 0.5 * (low + high), to)
        theta = np.where(still, to, theta)
        still = still & ~done
    return theta, curvature


def edges(channel: Channel, part: Observed) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whose observations are all at the lowest, or all at the highest possible value."""
    found = []
    for edge in (channel.lowest, channel.highest):
        if edge is None:
            found.append(np.zeros(len(part.offsets) - 1, dtype=np.bool_))
        else:
            at_edge = person_sums((part.y == edge).astype(np.float64), part.offsets)
            found.append((at_edge == part.counts) & (part.counts > 0))
    return found[0], found[1]


def _summed(channel: Channel, part: Observed, base: Floats, theta: Floats, shape: float) -> Floats:
    xi = base + np.repeat(theta, part.counts)
    return person_sums(channel.varying(part.y, xi, shape), part.offsets)


def _one_sided(channel: Channel, own: Observed, shared: Population, sign: float, drop: float) -> float:
    """Return where one person's ℓ has fallen ``drop`` below its supremum at ±∞, by bisection."""
    base = own.predictor(shared.coefficients)

    def at(theta: float) -> float:
        with np.errstate(over="ignore"):
            return float(channel.varying(own.y, base + theta, shared.shape).sum())

    far, near = sign * FARTHEST, -sign * FARTHEST
    target = at(far) - drop
    for _ in range(60):
        middle = 0.5 * (far + near)
        if at(middle) >= target:
            far = middle
        else:
            near = middle
    return 0.5 * (far + near)


def on_nodes(
    channel: Channel, part: Observed, shared: Population, nodes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return centre and scale of each person's nodes, and the log posterior on them, [P, Q].

    The part of the log-density that does not depend on θ is left out.
    """
    base = part.predictor(shared.coefficients)
    centre, curvature = _climb(channel, part, base, shared.shape, shared)
    scale = 1 / np.sqrt(np.maximum(curvature, 1 / shared.sd**2))
    density = np.empty((len(centre), len(nodes)))
    counts = part.counts
    for q, node in enumerate(nodes):
        theta = centre + scale * node
        xi = base + np.repeat(theta, counts)
        away = (theta - shared.mean) / shared.sd
        with np.errstate(over="ignore"):
            inside = person_sums(channel.varying(part.y, xi, shared.shape), part.offsets)
        density[:, q] = inside - 0.5 * away**2 - np.log(shared.sd * np.sqrt(2 * np.pi))
    return centre, scale, density


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Mean and sd of a density given on nodes, the log of its integral, and its weights [P, Q]."""

    mean: Floats
    sd: Floats
    log_mass: Floats
    weight: Floats


def node_moments(centre: Floats, scale: Floats, density: Floats, nodes: Floats) -> Moments:
    """Integrate densities given by their logarithms on nodes ``centre + scale * nodes``."""
    top = density.max(axis=1)
    weight = np.exp(density - top[:, None])
    total = weight.sum(axis=1)
    weight /= total[:, None]
    first = (weight * nodes).sum(axis=1)
    second = (weight * (nodes - first[:, None]) ** 2).sum(axis=1)
    step = nodes[1] - nodes[0]
    return Moments(
        centre + scale * first, scale * np.sqrt(second), top + np.log(total * step * scale), weight
    )


def node_quantiles(
    centre: Floats,
    scale: Floats,
    density: Floats,
    nodes: Floats,
    shares: tuple[float, ...],
) -> list[Floats]:
    """Return quantiles of densities given by their logarithms on nodes.

    The distribution function at a node is the trapezoidal sum up to it with the first Euler–Maclaurin
    correction. Between two nodes the place is a cubic in the probit of that function, whose slopes at the
    nodes the density gives; it is nearly a straight line.
    """
    step = nodes[1] - nodes[0]
    weight = np.exp(density - density.max(axis=1)[:, None])
    total = weight.sum(axis=1)[:, None]
    correction = weight * np.gradient(density, axis=1) / 12
    up_to = (np.cumsum(weight, axis=1) - 0.5 * weight - correction) / total
    probit = special.ndtri(np.clip(np.maximum.accumulate(up_to, axis=1), 1e-300, 1 - 1e-16))
    found = []
    rows = np.arange(len(centre))
    for share in shares:
        target = special.ndtri(share)
        right = np.clip((probit < target).sum(axis=1), 1, len(nodes) - 1)
        z = probit[rows, right - 1], probit[rows, right]
        gap = np.maximum(z[1] - z[0], 1e-300)
        t = np.clip((target - z[0]) / gap, 0.0, 1.0)
        slope = []
        for side, at in zip(z, (right - 1, right), strict=True):
            height = weight[rows, at] / total[:, 0]  # mass per node
            bell = np.exp(-0.5 * side**2) / np.sqrt(2 * np.pi)
            slope.append(np.where(height > 1e-12, bell * gap / np.maximum(height, 1e-300), 1.0))
        bow = t * (1 - t) * ((slope[0] - 1) * (1 - t) - (slope[1] - 1) * t)
        fraction = np.clip(t + bow, 0.0, 1.0)
        found.append(centre + scale * (nodes[right - 1] + fraction * step))
    return found


# ---------------------------------------------------------------------- people in chunks


def in_chunks(data: Observed, function: Callable[[Observed], Result], workers: int = 1) -> list[Result]:
    """Apply a function to the people, a chunk at a time, and return what it gives in order."""
    n = len(data.offsets) - 1
    parts = [data.people(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK)] or [data]
    if workers <= 1 or len(parts) == 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, parts))


def _joined(parts: list[tuple[Floats, ...]]) -> list[Floats]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]
