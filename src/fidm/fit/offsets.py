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

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fidm.errors import FitError
from fidm.model import kernels
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import Observed
from fidm.types import Floats, Integers

Result = TypeVar("Result")

CHUNK = 4_096
"""How many people are worked on at a time; small enough for the processor's cache."""

AT_ONCE = 60_000
"""How many observations are worked on at a time where several populations stand side by side."""

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
        Mean and spread of θ among people. Under ``population="random"`` the mean is 0, as α holds it.
        Where several populations are laid :func:`side_by_side`, all of these are arrays.
    carried : float
        How strongly an observation leans on the one before it: the correlation of neighbours beyond what the
        model explains. A person's likelihood counts for less by it, see :func:`own_share`.
    slopes : float array [C] or None
        By how much the mean of θ rises with each covariate of a person, where it depends on any.
    """

    coefficients: Floats
    shape: Any
    mean: Any = 0.0
    sd: Any = np.inf
    carried: float = 0.0
    slopes: Any = None

    def means(self, data: Observed) -> Any:
        """Return the mean of θ of people like each of these, [P], or one for all."""
        return self.mean if self.slopes is None else self.mean + rise(data.known, self.slopes)


def rise(known: Floats | None, slopes: Floats) -> Floats:
    """Return by how much covariates [P, C] move everybody's mean, given slopes [C] or everybody's, [P, C].

    Columns are added one by one, so that a person's number depends on no one else.
    """
    if known is None:
        raise FitError("The prior depends on covariates, and those of these people are not known.")
    columns = np.moveaxis(np.broadcast_to(slopes, known.shape), -1, 0)
    total = np.zeros(len(known))
    for own, slope in zip(known.T, columns, strict=True):
        total += own * slope
    return total


@dataclass(frozen=True, slots=True, eq=False)
class OwnKinds:
    """One parameter's prior where people are of several kinds: a normal distribution for each kind.

    Parameters
    ----------
    weight : float array [P, C]
        How probable each kind is for each person, by what other parameters say.
    place, spread : float array [C]
        Where each kind's mean lies from the population's, and its sd, both in units of the population's sd.
    """

    weight: Floats
    place: Floats
    spread: Floats

    def people(self, first: int, last: int) -> OwnKinds:
        """Return the people in these rows."""
        return OwnKinds(self.weight[first:last], self.place, self.spread)


def log_prior(theta: Floats, mean: Any, sd: Any, kinds: OwnKinds | None = None) -> Floats:
    """Return the log-density of offsets, [P] or [P, Q], under one normal prior, or one per kind of person."""
    own = log_priors(theta, mean, sd, kinds)
    return own[..., 0] if kinds is None else np.asarray(np.logaddexp.reduce(own, axis=-1))


def log_priors(theta: Floats, mean: Any, sd: Any, kinds: OwnKinds | None) -> Floats:
    """Return what each kind of person adds to the density of :func:`log_prior`, [P, C] or [P, Q, C]."""
    away = (theta - mean) / sd
    if kinds is None:
        return np.asarray(-0.5 * away**2 - np.log(sd * np.sqrt(2 * np.pi)))[..., None]
    with np.errstate(divide="ignore"):
        weight = np.log(kinds.weight.reshape(len(theta), *(1,) * (theta.ndim - 1), -1))
    inside = weight - 0.5 * ((away[..., None] - kinds.place) / kinds.spread) ** 2
    return np.asarray(inside - np.log(kinds.spread * np.asarray(sd)[..., None] * np.sqrt(2 * np.pi)))


def own_share(counts: Integers, carried: float) -> Floats:
    """Return how much of a person's log-likelihood counts where observations lean on those before, [P].

    The mean of n observations that are an autoregression of order 1 varies c times as much as that of
    independent ones, c = (1 + ρ)/(1 − ρ) − 2ρ(1 − ρⁿ)/(n(1 − ρ)²); the share is 1/c.
    """
    n = np.maximum(counts, 1)
    inflated = (1 + carried) / (1 - carried) - 2 * carried * (1 - carried**n) / (n * (1 - carried) ** 2)
    return np.asarray(1 / inflated)


@dataclass(frozen=True, slots=True, eq=False)
class Plausible:
    """Populations that a training part leaves possible.

    Parameters
    ----------
    coefficients : float array [R, p]
        As in :class:`Population`, one row per population; so are ``shape``, ``mean``, ``sd`` and ``slopes``.
    weight : float array [R]
        How probable each is.
    """

    coefficients: Floats
    shape: Floats
    mean: Floats
    sd: Floats
    weight: Floats
    slopes: Floats | None = None

    @classmethod
    def of(cls, populations: Sequence[Population], weight: Floats) -> Plausible:
        """Lay populations side by side, those of next to no weight left out."""
        kept = [(one, share) for one, share in zip(populations, weight, strict=True) if share > 1e-6]
        shares = np.array([share for _, share in kept])
        return cls(
            np.stack([one.coefficients for one, _ in kept]),
            np.array([one.shape for one, _ in kept]),
            np.array([one.mean for one, _ in kept]),
            np.array([one.sd for one, _ in kept]),
            shares / shares.sum(),
            None if populations[0].slopes is None else np.stack([one.slopes for one, _ in kept]),
        )

    def __len__(self) -> int:
        return len(self.weight)

    def populations(self, carried: float) -> list[Population]:
        """Return them one by one."""
        rows = zip(self.coefficients, self.shape.tolist(), self.mean.tolist(), self.sd.tolist(), strict=True)
        slopes = [None] * len(self) if self.slopes is None else list(self.slopes)
        return [Population(*row, carried, own) for row, own in zip(rows, slopes, strict=True)]

    def means(self, data: Observed) -> Floats:
        """Return the mean of θ of people like each of these, under each population, [R, P]."""
        n = len(data.counts)
        if self.slopes is None:
            return np.broadcast_to(self.mean[:, None], (len(self), n))
        return np.stack(
            [mean + rise(data.known, own) for mean, own in zip(self.mean, self.slopes, strict=True)]
        )


def side_by_side(
    part: Observed, populations: Sequence[Population]
) -> Iterator[tuple[Observed, Population, int]]:
    """Yield the observations repeated for some of the populations, these as one, and how many they are.

    What a population says is then said for each observation or each person, one population after the other:
    a hundred small tables are worked on as one.
    """
    m, n = len(part.y), len(part.offsets) - 1
    size = max(1, AT_ONCE // max(m, 1))
    for first in range(0, len(populations), size):
        some = populations[first : first + size]
        k = len(some)
        begins = (np.arange(k)[:, None] * m + part.offsets[:-1]).ravel()
        repeated = Observed(
            np.tile(part.y, k),
            np.tile(part.x, (1, k)),
            np.append(begins, k * m),
            np.tile(part.row, k),
            None if part.known is None else np.tile(part.known, (k, 1)),
        )
        slopes = None
        if some[0].slopes is not None:
            slopes = np.repeat(np.stack([one.slopes for one in some]), n, axis=0)
        shape, mean, sd = (np.array([getattr(one, name) for one in some]) for name in ("shape", "mean", "sd"))
        coefficients = np.stack([one.coefficients for one in some], axis=1)
        yield (
            repeated,
            Population(
                np.repeat(coefficients, m, axis=1),
                np.repeat(shape, m),
                np.repeat(mean, n),
                np.repeat(sd, n),
                some[0].carried,
                slopes,
            ),
            k,
        )


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
    one end of the interval is finite: where what was seen has the probability 1 − level.
    """
    z, drop = special.ndtri(0.5 + 0.5 * level), -np.log1p(-level)

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
    channel: Channel,
    data: Observed,
    shared: Population,
    *,
    level: float,
    workers: int = 1,
    kinds: OwnKinds | None = None,
) -> tuple[Estimates, Floats]:
    """Return every person's posterior mean of θ, its sd and interval, and the log marginal likelihood.

    The part of the log-density that does not depend on θ is left out of the latter; see :func:`constants`.
    """
    tail = 0.5 * (1 - level)

    def chunk(part: Observed, own: OwnKinds | None = None) -> tuple[Floats, ...]:
        centre, scale, density = on_nodes(channel, part, shared, REPORT_NODES, own)
        moments = node_moments(centre, scale, density, REPORT_NODES)
        low, high = node_quantiles(centre, scale, density, REPORT_NODES, (tail, 1 - tail)).T
        return moments.mean, moments.sd, low, high, moments.log_mass

    *found, marginal = _joined(in_chunks(data, chunk, workers, kinds))
    return Estimates(*found), marginal


COARSE_NODES: Floats = -np.cos(np.pi * (np.arange(17) + 0.5) / 17)
"""Chebyshev's nodes in (−1, 1), on which a likelihood is computed where many priors are laid over it."""

FINE_NODES: Floats = np.linspace(-1.0, 1.0, 161)
"""Nodes on which it is then integrated."""


def _interpolation(coarse: Floats, fine: Floats) -> Floats:
    """The matrix [C, F] that takes values on Chebyshev's nodes to values on others."""
    return np.asarray(np.polynomial.chebyshev.chebvander(fine, len(coarse) - 1) @ np.linalg.inv(
        np.polynomial.chebyshev.chebvander(coarse, len(coarse) - 1)
    )).T  # fmt: skip


BLOCK = 32
"""How many populations are looked at side by side; the same for all, so that sums are, too."""

TO_FINE = _interpolation(COARSE_NODES, FINE_NODES)


def integrated(
    channel: Channel,
    data: Observed,
    shared: Population,
    plausible: Plausible,
    *,
    level: float,
    workers: int = 1,
    kinds: OwnKinds | None = None,
) -> Estimates:
    """Return every person's posterior mean of θ, its sd and interval, averaged over plausible populations."""
    tail = 0.5 * (1 - level)

    def chunk(part: Observed, own: OwnKinds | None = None) -> tuple[Floats, ...]:
        centre, half, coarse = under_each(channel, part, shared, plausible, own)
        theta = centre[:, None] + half[:, None] * FINE_NODES
        means = plausible.means(part)
        n, mixed = len(theta), np.zeros(theta.shape)
        for first in range(0, len(plausible), BLOCK):
            some = slice(first, first + BLOCK)
            sd, weight = (np.repeat(of[some], n)[:, None] for of in (plausible.sd, plausible.weight))
            mean = means[some].reshape(-1, 1)
            k = len(mean) // n if n else 0
            kinds_of = None if own is None else OwnKinds(np.tile(own.weight, (k, 1)), own.place, own.spread)
            density = on_fine_nodes(coarse[some].reshape(-1, len(COARSE_NODES)))
            density += log_prior(np.tile(theta, (k, 1)), mean, sd, kinds_of)
            density = np.exp(density - density.max(axis=1)[:, None])
            density *= weight / density.sum(axis=1)[:, None]
            mixed += density.reshape(k, *theta.shape).sum(axis=0)
        with np.errstate(divide="ignore"):
            log_mixed = np.maximum(np.log(mixed), -700.0)
        moments = node_moments(centre, half, log_mixed, FINE_NODES)
        low, high = node_quantiles(centre, half, log_mixed, FINE_NODES, (tail, 1 - tail)).T
        return moments.mean, moments.sd, low, high

    size = max(1, AT_ONCE // len(plausible))
    return Estimates(*_joined(in_chunks(data, chunk, workers, kinds, size)))


def on_fine_nodes(coarse: Floats) -> Floats:
    """Return on the fine nodes [n, F] what is known on Chebyshev's [n, C]."""
    return np.asarray(np.einsum("pc,cf->pf", coarse, TO_FINE))  # unlike @, each row by itself


def under_each(
    channel: Channel, part: Observed, shared: Population, plausible: Plausible, kinds: OwnKinds | None
) -> tuple[Floats, Floats, Floats]:
    """Return middle and half width of people's nodes, and ℓ on Chebyshev's [R, P, C] under each population.

    The part of ℓ that does not depend on θ is left out.
    """
    centre, half = _room(
        channel, part, shared, plausible, 1.0 if kinds is None else float(kinds.spread.max())
    )
    counts, size = part.counts, len(part.offsets) - 1
    share = own_share(counts, shared.carried)[:, None]
    places = centre[:, None] + half[:, None] * COARSE_NODES
    coarse = np.empty((len(plausible), size, len(COARSE_NODES)))
    done = 0
    for repeated, laid, k in side_by_side(part, plausible.populations(shared.carried)):
        base = repeated.predictor(laid.coefficients)
        for q in range(len(COARSE_NODES)):
            xi = base + np.tile(np.repeat(places[:, q], counts), k)
            inside = person_sums(channel.varying(repeated.y, xi, laid.shape), repeated.offsets)
            coarse[done : done + k, :, q] = inside.reshape(k, size)
        done += k
    return centre, half, share * coarse


def _room(
    channel: Channel, part: Observed, shared: Population, plausible: Plausible, wider: float
) -> tuple[Floats, Floats]:
    """Middle and half width of where each person's posteriors lie, under all of the plausible populations.

    Each posterior is taken for normal: the person's likelihood has the curvature of the best population's
    posterior, less its prior's, and its top moves against the predictor.
    """
    base = part.predictor(shared.coefficients)
    mode, curvature = _climb(channel, part, base, shared.shape, shared)
    pull = 1 / shared.sd**2
    bend = np.maximum(curvature - pull, 1e-6 * pull)
    top = mode + pull * (mode - shared.means(part)) / bend
    counts = np.maximum(part.counts, 1)
    away = plausible.coefficients - shared.coefficients
    moved = sum(
        own[:, None] * (person_sums(column, part.offsets) / counts)
        for own, column in zip(away.T, part.x, strict=True)
    )
    pull = 1 / (max(wider, 1.0) * plausible.sd[:, None]) ** 2
    centre = (bend * (top - moved) + pull * plausible.means(part)) / (bend + pull)
    reach = 7 / np.sqrt(bend + pull)
    low, high = (centre - reach).min(axis=0), (centre + reach).max(axis=0)
    return 0.5 * (low + high), 0.5 * (high - low)


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
    channel: Channel,
    part: Observed,
    base: Floats,
    shape: float,
    prior: Population | None = None,
    converged: float = CONVERGED,
) -> tuple[Floats, Floats]:
    """Return the θ where the log-likelihood (or posterior) is highest, and its curvature there."""
    n, counts = len(part.offsets) - 1, part.counts
    pull, centre = (0.0, 0.0) if prior is None else (1 / prior.sd**2, prior.means(part))
    share = own_share(counts, 0.0 if prior is None else prior.carried)
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
        slope = share * person_sums(score, part.offsets) - pull * (theta - centre)
        bend = share * person_sums(information, part.offsets) + pull
        curvature[still] = bend[still]
        low = np.where(still & (slope > 0), theta, low)
        high = np.where(still & (slope < 0), theta, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(bend > 0, slope / bend, np.sign(slope) * LONGEST_STEP)
        step = np.clip(np.nan_to_num(step), -LONGEST_STEP, LONGEST_STEP)
        done = still & (np.abs(step) <= converged * np.maximum(1.0, np.abs(theta)))
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
    channel: Channel,
    part: Observed,
    shared: Population,
    nodes: Floats,
    kinds: OwnKinds | None = None,
    *,
    converged: float = CONVERGED,
) -> tuple[Floats, Floats, Floats]:
    """Return centre and scale of each person's nodes, and the log posterior on them, [P, Q].

    The part of the log-density that does not depend on θ is left out. The centre is the posterior's mode, as
    exactly as ``converged`` says; integrals do not need it exact.
    """
    base = part.predictor(shared.coefficients)
    centre, curvature = _climb(channel, part, base, shared.shape, shared, converged)
    scale = 1 / np.sqrt(np.maximum(curvature, 1 / shared.sd**2))
    density = np.empty((len(centre), len(nodes)))
    counts, means = part.counts, shared.means(part)
    share = own_share(counts, shared.carried)
    for q, node in enumerate(nodes):
        theta = centre + scale * node
        xi = base + np.repeat(theta, counts)
        with np.errstate(over="ignore"):
            inside = person_sums(channel.varying(part.y, xi, shared.shape), part.offsets)
        density[:, q] = share * inside + log_prior(theta, means, shared.sd, kinds)
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
    shares: Sequence[float] | Floats,
) -> Floats:
    """Return quantiles [P, N] of densities given by their logarithms on nodes, at shares [N] or [P, N].

    The distribution function at a node is the integral of the band-limited function through all nodes, which
    is as exact as the trapezoidal rule is for the whole. Between two nodes the place is first a cubic in the
    probit of that function, whose slopes at the nodes the density gives; it is nearly a straight line. A
    Newton step on the integral between the nodes, where the log-density is a quintic, makes it exact to about
    a millionth of the standard deviation.
    """
    step = nodes[1] - nodes[0]
    density = density - density.max(axis=1)[:, None]
    weight = np.exp(density)
    total = weight.sum(axis=1)[:, None]
    up_to = products(weight, _below(len(nodes))) / total
    probit = special.ndtri(np.clip(np.maximum.accumulate(up_to, axis=1), 1e-300, 1 - 1e-16))
    target = np.atleast_2d(special.ndtri(shares))
    right = np.empty((len(centre), target.shape[1]), dtype=np.int64)
    kernels.count_below(probit, target, right)
    right = np.clip(right, 1, len(nodes) - 1)
    rows = np.arange(len(centre))[:, None]
    z = probit[rows, right - 1], probit[rows, right]
    gap = np.maximum(z[1] - z[0], 1e-300)
    t = np.clip((target - z[0]) / gap, 0.0, 1.0)
    slope = []
    for side, at in zip(z, (right - 1, right), strict=True):
        height = weight[rows, at] / total  # mass per node
        bell = np.exp(-0.5 * side**2) / np.sqrt(2 * np.pi)
        slope.append(np.where(height > 1e-12, bell * gap / np.maximum(height, 1e-300), 1.0))
    bow = t * (1 - t) * ((slope[0] - 1) * (1 - t) - (slope[1] - 1) * t)
    part = np.clip(t + bow, 0.0, 1.0)
    first = np.clip(right - 3, 0, len(nodes) - 6)
    near = np.einsum("pnw,vw->vpn", density[rows[..., None], first[..., None] + np.arange(6)], QUINTIC)

    def mass_at(place: Floats) -> Floats:
        inside, found = right - 1 - first + place, near[5]
        for coefficient in near[4::-1]:
            found = found * inside + coefficient
        return np.asarray(np.exp(np.minimum(found, 1.0)))

    mass = part * sum(share * mass_at(part * at) for at, share in zip(*GAUSS, strict=True))
    missing = (np.atleast_2d(shares) - up_to[rows, right - 1]) * total
    part = np.clip(part + (missing - mass) / np.maximum(mass_at(part), 1e-300), 0.0, 1.0)
    return np.asarray(centre[:, None] + scale[:, None] * (nodes[right - 1] + part * step))


def products(left: Floats, right: Floats) -> Floats:
    """Return the matrix product; unlike that of @, a row's bits do not depend on where it stands."""
    found = np.empty((len(left), right.shape[1]))
    kernels.row_products(np.ascontiguousarray(left), right, found)
    return found


QUINTIC: Floats = np.linalg.inv(np.vander(np.arange(6), increasing=True).astype(np.float64))
"""What makes values at 0, 1, …, 5 the coefficients of the quintic through them, the lowest first."""

GAUSS = ((np.polynomial.legendre.leggauss(4)[0] + 1) / 2, np.polynomial.legendre.leggauss(4)[1] / 2)
"""Places in (0, 1) and weights of Gauss and Legendre."""


@cache
def _below(n: int) -> Floats:
    """How much of what each of n nodes stands for lies below each node, [n, n]: the integral of a sinc."""
    away = np.arange(n) - np.arange(n)[:, None]
    return np.asarray(0.5 + special.sici(np.pi * away)[0] / np.pi)


# ---------------------------------------------------------------------- people in chunks


def in_chunks(
    data: Observed,
    function: Callable[..., Result],
    workers: int = 1,
    kinds: OwnKinds | None = None,
    size: int = CHUNK,
) -> list[Result]:
    """Apply a function to the people, so many at a time, and return what it gives in order.

    The function is called with the observations of some people and their kinds, where there are any.
    """
    n = len(data.offsets) - 1
    ranges = [(first, min(first + size, n)) for first in range(0, n, size)] or [(0, n)]

    def one(span: tuple[int, int]) -> Result:
        part = data.people(*span)
        return function(part) if kinds is None else function(part, kinds.people(*span))

    if workers <= 1 or len(ranges) == 1:
        return [one(span) for span in ranges]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, ranges))


def _joined(parts: list[tuple[Floats, ...]]) -> list[Floats]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]
