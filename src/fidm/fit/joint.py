r"""One normal prior over all parameters of a person at once, by expectation propagation.

When parameters go together in people (who pauses long often speaks long), a joint prior
:math:`(\log\eta, \theta_1, …, \theta_K) \sim N(m, \Sigma)` lets what is known well inform what is not.
Given the prior a person's likelihood is a product of one-dimensional functions, one per parameter.
Expectation propagation replaces each by a normal *site* so that the marginals keep the mean and variance of
prior × likelihood, integrated numerically; the reported marginals are those integrals, not the normal ones.
m and Σ are learned by expectation–maximisation.

A normal approximation of the likelihood itself (Laplace) over-shrinks η when choices are few. Sites matched
by moments do much better; as a second guard :func:`fidm.Fit.profile` takes η from its own
prior for anybody with fewer than 20 choices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fidm.fit.offsets import node_quantiles
from fidm.types import Floats

MAX_SWEEPS, MAX_ROUNDS = 60, 2_000
SITE_TOLERANCE, ROUND_TOLERANCE = 1e-10, 1e-6
STRIDE = 1.8
"""How many times the plain step is taken while learning: the same end in half the rounds."""
DAMPING = 0.8
BEFOREHAND = 1.0
LOWEST_EIGENVALUE = 0.01
"""No mixture of parameters varies less than that, of standard deviations of 1 each."""
FEWEST_PEOPLE = 30
"""A joint prior of fewer people is warned of: it hardly helps."""


@dataclass(frozen=True, slots=True, eq=False)
class JointPrior:
    """Mean [D] and covariance [D, D] of (log η, θ…) among people."""

    mean: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Likelihoods:
    """One-dimensional log-likelihoods of many people on nodes of their own, one entry per parameter.

    ``at[k]`` and ``log[k]`` are [P, Q]: where the nodes lie, and the log-likelihood there. Nodes are evenly
    spaced: ``at[k] = centre[k] + scale[k] * nodes[k]``.
    """

    centre: tuple[Floats, ...]
    scale: tuple[Floats, ...]
    nodes: tuple[Floats, ...]
    log: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.centre[0])

    def at(self, k: int) -> Floats:
        """Return where the nodes of parameter k lie, [P, Q]."""
        return self.centre[k][:, None] + self.scale[k][:, None] * self.nodes[k]


@dataclass(slots=True, eq=False)
class _Sites:
    precision: Floats
    shift: Floats


def learn(likelihoods: Likelihoods, start: JointPrior) -> tuple[JointPrior, bool]:
    """Learn the joint prior by expectation–maximisation, from a prior of independent parameters.

    Correlations are drawn towards 0 as if :data:`BEFOREHAND` people per parameter had shown none; no spread
    falls below a tenth of what it was on its own. Also says whether the search has settled.
    """
    prior, n = start, len(likelihoods)
    sites: _Sites | None = None
    lowest = 0.01 * np.diag(start.covariance)
    kept = n / (n + BEFOREHAND * len(start.mean))
    settled = False
    for _ in range(MAX_ROUNDS):
        # Sites and prior converge together: one sweep a round is enough, as each starts from the last.
        sites, mean, covariance = _propagate(likelihoods, prior, sites, sweeps=1)
        centre = np.array([math.fsum(column) for column in mean.T]) / n
        away = mean - centre
        spread = np.array(
            [
                [math.fsum(covariance[:, i, k] + away[:, i] * away[:, k]) for k in range(len(centre))]
                for i in range(len(centre))
            ]
        )
        spread = 0.5 * (spread + spread.T) / n
        own = np.maximum(np.diag(spread), lowest)
        spread = np.where(np.eye(len(own)) > 0, np.diag(own), kept * spread)
        scale = np.sqrt(np.diag(spread))
        moved = max(
            float(np.abs((centre - prior.mean) / scale).max()),
            float(np.abs((spread - prior.covariance) / np.outer(scale, scale)).max()),
        )
        farther = prior.covariance + STRIDE * (spread - prior.covariance)
        if (np.diag(farther) >= lowest).all() and np.linalg.eigvalsh(farther)[0] > 0:
            prior = JointPrior(prior.mean + STRIDE * (centre - prior.mean), farther)
        else:
            prior = JointPrior(centre, spread)
        if moved < ROUND_TOLERANCE:
            settled = True
            break
    return prior, settled


def chance(likelihoods: Likelihoods, start: JointPrior) -> Floats:
    """Return the standard errors of correlations of parameters that do not go together, [D, D].

    Of n people who are known exactly it is 1/√n; known with the reliabilities r and q, which independent
    priors give, 1/√(n r q).
    """
    n, sd = len(likelihoods), marginals(likelihoods, start, 0.95)[1]
    left = np.array([math.fsum(column) for column in sd.T**2]) / (n * np.diag(start.covariance))
    reliability = np.clip(1 - left, 1e-6, 1.0)
    return np.asarray(1 / np.sqrt(n * np.outer(reliability, reliability)))


def shrunk(learned: JointPrior, alone: JointPrior, error: Floats | float) -> JointPrior | None:
    """Return independent priors with the correlations that were learned, less what may be chance.

    A correlation r of standard error e is drawn to 0 by the factor 1 − (e/r)², and is 0 below one error
    (James and Stein): taking all for true makes estimates worse than one parameter at a time does where
    parameters do not go together. Means and spreads stay those of the independent priors, which have
    hyperpriors. None if no correlation is left.
    """
    own = np.sqrt(np.diag(learned.covariance))
    correlation = learned.covariance / np.outer(own, own)
    with np.errstate(divide="ignore"):
        kept = correlation * np.maximum(1 - (error / np.abs(correlation)) ** 2, 0.0)
    kept = np.where(correlation == 0, 0.0, kept)
    np.fill_diagonal(kept, 1.0)
    if not np.triu(kept, 1).any():
        return None
    lowest = float(np.linalg.eigvalsh(kept)[0])
    if lowest < LOWEST_EIGENVALUE:
        share = (LOWEST_EIGENVALUE - lowest) / (1 - lowest)
        kept = (1 - share) * kept + share * np.eye(len(own))
    sd = np.sqrt(np.diag(alone.covariance))
    return JointPrior(alone.mean, kept * np.outer(sd, sd))


def correlation(
    likelihoods: Likelihoods, prior: JointPrior, i: int, k: int, level: float
) -> tuple[float, float, float, float]:
    """Return how two parameters go together in people: median, sd, low and high of the correlation.

    Means and spreads are held. A person is as probable under the correlation r, relative to none, as the
    density of two correlated normals over that of independent ones, on average over the two posteriors. Every
    r from −1 to 1 is as probable as any other beforehand.
    """
    sides = []
    for one in (i, k):
        at = (likelihoods.at(one) - prior.mean[one]) / math.sqrt(prior.covariance[one, one])
        log = likelihoods.log[one] - 0.5 * at**2
        weight = np.exp(log - log.max(axis=1)[:, None])
        sides.append((at, weight / weight.sum(axis=1)[:, None]))
    (u, of_u), (v, of_v) = sides
    product, squares = u[:, :, None] * v[:, None, :], u[:, :, None] ** 2 + v[:, None, :] ** 2
    values = []
    for r in CORRELATIONS:
        log_ratio = (r * product - 0.5 * r**2 * squares) / (1 - r**2)
        mean = np.einsum("pq,pqr,pr->p", of_u, np.exp(np.minimum(log_ratio, 300.0)), of_v)
        values.append(math.fsum(np.log(np.maximum(mean, 1e-300))) - 0.5 * len(u) * math.log1p(-(r**2)))
    density = np.exp(np.array(values) - max(values))
    up_to = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    low, middle, high = np.interp(
        [0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level], up_to / up_to[-1], CORRELATIONS
    )
    mean = float(density @ CORRELATIONS / density.sum())
    sd = math.sqrt(float(density @ (CORRELATIONS - mean) ** 2 / density.sum()))
    return float(middle), sd, float(low), float(high)


CORRELATIONS: Floats = np.linspace(-0.98, 0.98, 99)
"""The correlations that are tried."""


def marginals(
    likelihoods: Likelihoods, prior: JointPrior, level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return estimate, posterior sd, low and high of every parameter, [P, D].

    The estimate of the first, log η, is the posterior's median, that of an offset its mean.
    """
    shares = (0.5 * (1 - level), 0.5, 0.5 * (1 + level))
    found = []
    for k, density in enumerate(joint_posterior(likelihoods, prior)[0]):
        mean, variance = _moments(likelihoods, k, density)
        low, middle, high = node_quantiles(
            likelihoods.centre[k], likelihoods.scale[k], density, likelihoods.nodes[k], shares
        ).T
        found.append((mean if k else middle, np.sqrt(variance), low, high))
    estimate, sd, low, high = (np.stack(columns, axis=1) for columns in zip(*found, strict=True))
    return estimate, sd, low, high


def joint_posterior(likelihoods: Likelihoods, prior: JointPrior) -> tuple[list[Floats], Floats]:
    """Return the log-posterior of each parameter on its nodes [P, Q], and their covariances [P, D, D]."""
    sites, mean, covariance = _propagate(likelihoods, prior, None)
    cavities = [_cavity(mean, covariance, sites, k) for k in range(len(prior.mean))]
    return [_tilted(likelihoods, k, *cavity) for k, cavity in enumerate(cavities)], covariance


def _propagate(
    likelihoods: Likelihoods, prior: JointPrior, sites: _Sites | None, *, sweeps: int = MAX_SWEEPS
) -> tuple[_Sites, Floats, Floats]:
    """Match every site's moments until they stay; return sites, posterior means and covariances."""
    n, width = len(likelihoods), len(prior.mean)
    precision: Floats = np.asarray(np.linalg.inv(prior.covariance), dtype=np.float64)
    if sites is None:
        sites = _Sites(np.zeros((n, width)), np.zeros((n, width)))
    else:
        sites = _Sites(sites.precision.copy(), sites.shift.copy())
    mean, covariance = _combine(precision, prior.mean, sites)
    still = np.ones(n, dtype=np.bool_)  # nobody's number of sweeps depends on anybody else
    for _ in range(sweeps):
        new = _Sites(sites.precision.copy(), sites.shift.copy())
        for k in range(width):
            cavity_mean, cavity_variance = _cavity(mean, covariance, sites, k)
            density = _tilted(likelihoods, k, cavity_mean, cavity_variance)
            centre, variance = _moments(likelihoods, k, density)
            sharp = np.maximum(1 / variance - 1 / cavity_variance, 1e-8 * precision[k, k])
            pull = centre * (sharp + 1 / cavity_variance) - cavity_mean / cavity_variance
            new.precision[:, k] += np.where(still, DAMPING * (sharp - sites.precision[:, k]), 0.0)
            new.shift[:, k] += np.where(still, DAMPING * (pull - sites.shift[:, k]), 0.0)
        change = np.abs(new.precision - sites.precision) / (sites.precision + np.diag(precision))
        still &= change.max(axis=1) >= SITE_TOLERANCE
        sites = new
        mean, covariance = _combine(precision, prior.mean, sites)
        if not still.any():
            break
    return sites, mean, covariance


def _combine(precision: Floats, prior_mean: Floats, sites: _Sites) -> tuple[Floats, Floats]:
    total = precision[None] + sites.precision[:, :, None] * np.eye(len(prior_mean))[None]
    covariance: Floats = np.asarray(np.linalg.inv(total), dtype=np.float64)
    shift = (precision @ prior_mean)[None] + sites.shift
    return (covariance * shift[:, None, :]).sum(axis=2), covariance


def _cavity(mean: Floats, covariance: Floats, sites: _Sites, k: int) -> tuple[Floats, Floats]:
    variance = covariance[:, k, k]
    left = np.maximum(1 / variance - sites.precision[:, k], 1e-9 / variance)
    return (mean[:, k] / variance - sites.shift[:, k]) / left, 1 / left


def _tilted(likelihoods: Likelihoods, k: int, mean: Floats, variance: Floats) -> Floats:
    return likelihoods.log[k] - 0.5 * (likelihoods.at(k) - mean[:, None]) ** 2 / variance[:, None]


def _moments(likelihoods: Likelihoods, k: int, density: Floats) -> tuple[Floats, Floats]:
    weight = np.exp(density - density.max(axis=1)[:, None])
    weight /= weight.sum(axis=1)[:, None]
    nodes = likelihoods.nodes[k]
    first = (weight * nodes).sum(axis=1)
    second = (weight * (nodes - first[:, None]) ** 2).sum(axis=1)
    scale, step = likelihoods.scale[k], nodes[1] - nodes[0]
    # what lies between two nodes is not seen, so nothing is known better than that
    return likelihoods.centre[k] + scale * first, scale**2 * np.maximum(second, step**2 / 12)
