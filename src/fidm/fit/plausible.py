r"""What the training part leaves open about people: a sample of the populations that it allows.

Empirical Bayes takes the learned population (coefficients, shape, mean and sd of the prior) as known. With 15
or 30 people, or three segments each, it is not, and intervals that ignore this are too short. So the
population φ has a posterior of its own,

.. math::

    p(\varphi \mid y) \propto p(\varphi) \prod_j
    \int p(y_j \mid \theta, \varphi)\, p(\theta \mid \varphi)\, d\theta,

which is drawn by importance sampling: a Student t of the posterior's mode and curvature, stretched to either
side where the posterior is skewed, proposes points of a fixed low-discrepancy sequence, and each is weighted
by the posterior over the proposal. If few of the points
carry the weight, the proposal is moved to what was found and the points are drawn again. A person's posterior
is the average of those under each point. It is the same every time: nothing is random.

The hyperpriors are weak and keep a vanishing spread away: the sd of people has a half-t with four degrees of
freedom, of scale 1 for offsets and ½ for log η (people differ by 0.2 to 0.8 in either), 1/√κ of counts a
half-normal of scale 1; what covariates do to people, a multivariate t with four degrees of freedom and the
scale of the sd of people; everything else is flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import linalg, special

from fidm.types import Floats

FEWEST_POINTS, MOST_POINTS = 128, 2048
"""How many populations stand for those that are plausible, at least and at most."""

EVALUATIONS = 100_000
"""So many observations times populations are worth while: the smaller a study, the more it leaves open."""

FREEDOM = 6.0
"""The degrees of freedom of the proposal; its tails must be longer than the posterior's."""

ROUNDS = 4
"""How often the proposal may be moved to what was found."""

ENOUGH = 0.35
"""The effective share of the points above which the proposal is good enough."""

PROBES: Floats = np.array([1.0, 2.0, 3.0, 4.5])
"""Where the posterior is compared with a normal one, in standard deviations."""

WIDEST = 1.5
"""The largest standard deviation of the proposal in any free number, where the curvature tells nothing."""

NEGLIGIBLE = 0.02
"""Where doubt about the population adds less than this to the variance of estimates, it is left out."""

OFFSET_SCALE, SENSITIVITY_SCALE = 1.0, 0.5
"""The scales of the hyperpriors of people's sd, and of the sd that covariates make: of offsets, of log η."""

Posterior = Callable[[Floats], Floats]
"""From points [R, F] to the logarithms of their posterior [R], up to a constant."""


def log_sd_prior(log_sd: float, scale: float) -> tuple[float, float]:
    """Return the log-density of the logarithm of people's sd, and its slope: half-t of four degrees."""
    square = math.exp(2 * log_sd) / scale**2
    return log_sd - 2.5 * math.log1p(square / 4), 1 - 5 * square / (4 + square)


def log_slopes_prior(slopes: Floats, covariance: Floats, scale: float) -> tuple[float, Floats]:
    """Return the log-density of slopes [C] of covariates of this covariance [C, C], and its slopes.

    It is a multivariate t with four degrees of freedom in what the covariates do together, so that it does
    not matter from where an age is counted, or which group is the reference.
    """
    moved, free = covariance @ slopes / scale**2, 4 + len(slopes)
    square = float(slopes @ moved)
    return -0.5 * free * math.log1p(square / 4), -free * moved / (4 + square)


def log_count_shape_prior(log_shape: float) -> tuple[float, float]:
    """Return the log-density of log κ of counts, and its slope: 1/√κ is half-normal of scale 1."""
    inverse = math.exp(-log_shape)
    return -0.5 * log_shape - 0.5 * inverse, -0.5 + 0.5 * inverse


def points_for(observations: int) -> int:
    """Return how many populations stand for those that so many observations leave open: a power of two.

    With these, ends of intervals are typically off by 0.005 to 0.05 of a standard deviation, and in channels
    in which fewer than ten people were observed by up to 0.25; with 64 points they were off by up to 0.4.

    Examples
    --------
    >>> [points_for(n) for n in (80, 540, 7_000)]
    [2048, 256, 128]
    """
    wanted = math.ceil(EVALUATIONS / max(observations, 1))
    return min(max(1 << (wanted - 1).bit_length(), FEWEST_POINTS), MOST_POINTS)


def sample(posterior: Posterior, mode: Floats, curvature: Floats, n: int) -> tuple[Floats, Floats, float]:
    """Return points [n, F], their weights [n], and the logarithm of the posterior's integral.

    The integral is up to a factor that depends on F and n alone.

    Parameters
    ----------
    posterior : callable
        The log-posterior of the free numbers.
    mode : float array [F]
        Where it is highest.
    curvature : float array [F, F]
        Its second derivatives there.
    n : int
        How many points, a power of two.
    """
    standard, log_standard = _proposals(len(mode), n)
    centre, spread = mode, spread_of(curvature)
    best: tuple[Floats, Floats, float, float] | None = None
    for _ in range(ROUNDS):
        stretch = _stretches(posterior, centre, spread)
        own = np.where(standard < 0, stretch[0], stretch[1])
        points = centre + (own * standard) @ spread.T
        log_weight = posterior(points) - log_standard + np.log(own).sum(axis=1)
        log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
        weight = np.exp(log_weight - log_weight.max())
        log_mass = float(log_weight.max() + np.log(weight.sum()) + np.log(np.diag(spread)).sum())
        weight /= weight.sum()
        effective = 1 / float(np.sum(weight**2)) / len(weight)
        if best is None or effective > best[3]:
            best = points, weight, log_mass, effective
        if effective >= ENOUGH:
            break
        # Flattened weights move the proposal without letting one lucky point take it all.
        flat = np.sqrt(best[1])
        flat /= flat.sum()
        centre = flat @ best[0]
        away = best[0] - centre
        covariance = (flat[:, None] * away).T @ away
        spread = _root(0.7 * covariance + 0.3 * spread @ spread.T)
    assert best is not None  # noqa: S101
    return best[:3]


def _stretches(posterior: Posterior, centre: Floats, spread: Floats) -> Floats:
    """How much wider than normal the posterior is to either side along each column of the root, [2, F].

    As wide as it must be for the proposal to lie above the posterior at :data:`PROBES` (Geweke 1989).
    """
    width = len(centre)
    axes = np.concatenate([-spread.T, spread.T])
    places = centre + (PROBES[:, None, None] * axes).reshape(-1, width)
    value = posterior(np.concatenate([centre[None], places]))
    fall = np.maximum(value[0] - value[1:].reshape(len(PROBES), 2, width), 1e-3)
    return np.asarray(np.clip((PROBES[:, None, None] / np.sqrt(2 * fall)).max(axis=0), 0.7, 3.0))


def weighted_sd(points: Floats, weight: Floats) -> Floats:
    """Return the standard deviation of every column of weighted points, [F]."""
    away = points - weight @ points
    return np.asarray(np.sqrt(weight @ away**2))


def without_person(weight: Floats, counted: Floats, value: Floats) -> Floats:
    """Return the logarithm of the average of exp(value) [R, P] over points as plausible without each person.

    Without a person a point is as plausible as with them, over what they add to it: exp(counted), [R, P].
    """
    log_weight = np.log(weight)[:, None] - counted
    top = special.logsumexp(log_weight + value, axis=0)
    return np.asarray(top - special.logsumexp(log_weight, axis=0))


def moved(slopes: Floats, curvature: Floats) -> Floats:
    """Return by how much everybody's log-likelihood falls if the most probable point is found without them.

    To first order the point moves by the inverse of the curvature [F, F] times the person's slopes [P, F].
    """
    return np.asarray(-np.square(np.einsum("pf,fg->pg", slopes, spread_of(curvature))).sum(axis=1))


def _proposals(width: int, n: int) -> tuple[Floats, Floats]:
    """Points of a standard Student t in so many dimensions, and their log-density up to a constant.

    Every point has its mirror image, so that whatever is odd around the mode is integrated exactly.
    """
    from scipy.stats import qmc

    even = qmc.Sobol(width + 1, scramble=True, rng=np.random.default_rng(0)).random(n // 2)
    normal = special.ndtri(even[:, :width])
    half = normal / np.sqrt(special.chdtri(FREEDOM, even[:, -1:]) / FREEDOM)
    points = np.concatenate([half, -half])
    return points, -0.5 * (FREEDOM + width) * np.log1p((points**2).sum(axis=1) / FREEDOM)


def spread_of(curvature: Floats) -> Floats:
    """Return the root of the covariance that a curvature gives, no wider than is reasonable."""
    values, vectors = linalg.eigh(-0.5 * (curvature + curvature.T))
    return _root((vectors / np.maximum(values, WIDEST**-2)) @ vectors.T)


def _root(covariance: Floats) -> Floats:
    """The lower triangular root, which small changes of the covariance change little."""
    return np.asarray(linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)), lower=True))
