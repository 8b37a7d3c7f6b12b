r"""What everybody shares in an effort channel: coefficients, shape, and how much people differ.

``"pooled"`` fits one generalized linear model to all segments as if they came from one person, as the
paper describes. When people differ, their differences then pass for noise: the shape is too small and
the intercept is that of the average *observation*.

``"random"`` gives every person an offset θ ~ N(0, s²) and maximises the marginal likelihood

.. math:: \sum_j \log \int \prod_u f(y_{ju}; \xi_{ju} + \theta)\, N(\theta; 0, s^2)\, d\theta

over coefficients, shape and s. Its gradient is the posterior expectation of the complete-data gradient
(Fisher's identity), and BFGS in coordinates whitened by the gradients' outer product maximises it.

Sums over people are exactly rounded (``math.fsum``), so that the order of the people, the number of
batches and the number of threads do not change a bit of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from fidm.errors import FitError
from fidm.fit.offsets import SEARCH_NODES, Population, in_chunks, maximum, node_moments, on_nodes
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import Observed
from fidm.types import Floats

SMALLEST_SD = 1e-3
"""People who differ by less than this are taken to be alike."""

LARGEST_SHAPE, HUGE_SHAPE = 1e6, 1e4
"""Shapes go no higher than the first; above the second, a negative binomial is as good as Poisson."""

FEWEST_PEOPLE = 3
"""How people differ cannot be learned from fewer."""

TOLERANCE, NEGLIGIBLE = 1e-8, 0.01


@dataclass(frozen=True, slots=True)
class Learned:
    """A channel's population, with standard errors of (coefficients…, log shape, log sd or mean, log sd)."""

    population: Population
    se: dict[str, float]
    warnings: tuple[str, ...] = ()


def pooled(channel: Channel, data: Observed, names: Sequence[str]) -> Population:
    """Fit one generalized linear model to everybody's observations, by maximum likelihood.

    Parameters
    ----------
    channel : Channel
        The distribution.
    data : Observed
        The observations and their design.
    names : sequence of str
        What the design's columns are called, for messages.
    """
    _check_design(channel, data, names)
    coefficients = np.zeros(data.x.shape[0])
    coefficients[0] = channel.predictor(data.y)
    shape = 1.0
    for _ in range(200):
        before = np.append(coefficients, np.log(shape))
        coefficients = _scoring(channel, data, coefficients, shape)
        shape = _best_shape(channel, data, data.predictor(coefficients), shape)
        moved = np.abs(np.append(coefficients, np.log(shape)) - before)
        if (moved <= 1e-11 * np.maximum(1.0, np.abs(before))).all():
            break
        if shape >= LARGEST_SHAPE:
            break
    return Population(coefficients, shape)


def pooled_prior(channel: Channel, data: Observed, shared: Population, workers: int) -> Learned:
    """Learn the normal prior of θ by marginal likelihood, with coefficients and shape held."""
    enough_people(channel, data)
    start = _first_guess(channel, data, shared, workers)

    def at(free: Floats) -> Population:
        return Population(shared.coefficients, shared.shape, float(free[0]), float(np.exp(free[1])))

    def gradients(free: Floats) -> tuple[Floats, Floats]:
        return _marginal(channel, data, at(free), workers, learn="prior")

    best, se = _maximise(gradients, np.array([start.mean, np.log(start.sd)]), channel.name)
    return Learned(at(best), {"mean": se[0], "sd": se[1] * at(best).sd}, _alike(channel, at(best)))


def random_intercepts(
    channel: Channel,
    data: Observed,
    names: Sequence[str],
    workers: int,
    *,
    tolerance: float = TOLERANCE,
    errors: bool = True,
) -> Learned:
    """Fit coefficients, shape and the spread of θ together, by marginal likelihood.

    The search ends where no slope per person is above the tolerance. Without ``errors`` there are no standard
    errors, which comparisons do not need.
    """
    _check_design(channel, data, names)
    enough_people(channel, data)
    first = pooled(channel, data, names)
    start = _first_guess(channel, data, first, workers)
    width = len(first.coefficients)
    has_shape = bool(channel.shape_name) and first.shape < HUGE_SHAPE  # else it is held where it is

    def at(free: Floats) -> Population:
        shape = float(np.exp(min(free[width], math.log(LARGEST_SHAPE)))) if has_shape else first.shape
        return Population(free[:width], shape, 0.0, float(np.exp(free[-1])))

    def gradients(free: Floats) -> tuple[Floats, Floats]:
        value, slopes = _marginal(channel, data, at(free), workers, learn="all")
        return value, slopes if has_shape or not channel.shape_name else np.delete(slopes, width, axis=1)

    begin = [first.coefficients + np.eye(width)[0] * start.mean]
    if has_shape:
        begin.append(np.array([np.log(first.shape)]))
    begin.append(np.array([np.log(start.sd)]))
    best, found = _maximise(gradients, np.concatenate(begin), channel.name, tolerance, errors=errors)
    shared = at(best)
    if not errors:
        return Learned(shared, {}, _alike(channel, shared))
    se = dict(zip(names, found[:width], strict=True))
    if has_shape:
        se[channel.shape_name] = found[width] * shared.shape
    se["sd"] = found[-1] * shared.sd
    return Learned(shared, se, _alike(channel, shared))


def enough_people(channel: Channel, data: Observed) -> None:
    """Raise unless enough people were observed to tell how people differ."""
    people = int((data.counts > 0).sum())
    if people < FEWEST_PEOPLE:
        raise FitError(
            f"{people} participants of the training part have a {channel.column}; {FEWEST_PEOPLE} are needed "
            f"to learn how people differ in {channel.name}. method='mle' with population='pooled' needs one."
        )


# ---------------------------------------------------------------------- pooled pieces


def _check_design(channel: Channel, data: Observed, names: Sequence[str]) -> None:
    if not len(data.y):
        raise FitError(
            f"Nobody in the training part has a {channel.column}, so {channel.name} cannot be fitted."
        )
    if channel.lowest is not None and (data.y == channel.lowest).all():
        raise FitError(
            f"Every {channel.column} in the training part is {_recorded(channel, channel.lowest):g}, so "
            f"{channel.name} cannot be fitted. Leave the channel out of the model."
        )
    if channel.highest is not None and (data.y == channel.highest).all():
        what = "positive" if channel.kind == "bernoulli" else f"{_recorded(channel, channel.highest):g}"
        raise FitError(
            f"Every {channel.column} in the training part is {what}, so {channel.name} cannot be fitted. "
            "Leave the channel out of the model."
        )
    scale = np.sqrt((data.x**2).mean(axis=1))
    columns = (data.x / np.where(scale > 0, scale, 1.0)[:, None]).T
    _, triangle, pivot = linalg.qr(columns, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-10 * diagonal.max()).sum())
    if rank < data.x.shape[0]:
        odd = names[int(max(pivot[rank:]))]
        raise FitError(
            f"{channel.name} is conditioned on {odd}, which in the training part is constant or follows from "
            "its other design columns. Leave it out of the channel's design."
        )
    if len(data.y) <= data.x.shape[0]:
        raise FitError(
            f"{len(data.y)} observations of {channel.column} are too few for {data.x.shape[0]} coefficients."
        )


def _recorded(channel: Channel, y: float) -> float:
    """An observation as it stands in the segments."""
    return float(channel.record(np.array([y]))[0])


def _scoring(channel: Channel, data: Observed, coefficients: Floats, shape: float) -> Floats:
    """Newton steps for the coefficients, halved until the likelihood rises."""
    value = math.fsum(channel.varying(data.y, data.predictor(coefficients), shape))
    for _ in range(100):
        score, information = channel.slopes(data.y, data.predictor(coefficients), shape)
        gradient = np.array([math.fsum(score * column) for column in data.x])
        bend = np.array([[math.fsum(a * b * information) for a in data.x] for b in data.x])
        try:
            step = np.linalg.solve(bend, gradient)
        except np.linalg.LinAlgError:
            raise FitError(
                f"{channel.name} cannot be fitted: what it is conditioned on explains it perfectly, or its "
                "values are too extreme. Leave a column out of its design, or the channel out of the model."
            ) from None
        if gradient @ step < 0:  # where the likelihood is not concave, the slopes' own spread shows the way
            bend = np.array([[math.fsum(a * b * score**2) for a in data.x] for b in data.x])
            step = np.linalg.lstsq(bend, gradient)[0]
        for _ in range(40):
            to = coefficients + step
            with np.errstate(over="ignore"):
                reached = math.fsum(channel.varying(data.y, data.predictor(to), shape))
            if reached >= value - 1e-12 * abs(value):
                break
            step = step / 2
        coefficients, value = to, reached
        if (np.abs(step) <= 1e-13 * np.maximum(1.0, np.abs(coefficients))).all():
            break
    return coefficients


def _best_shape(channel: Channel, data: Observed, xi: Floats, shape: float) -> float:
    """The shape of highest likelihood at this predictor, as a root of its slope."""
    if not channel.shape_name:
        return 1.0

    def slope(log_shape: float) -> float:
        return math.fsum(channel.shape_slope(data.y, xi, math.exp(log_shape)))

    low = high = math.log(shape)
    while slope(low) < 0:
        low -= 1.0
        if low < -30:
            raise FitError(f"{channel.name} has no finite {channel.shape_name}: are all its values the same?")
    while slope(high) > 0:
        high += 1.0
        if high > math.log(LARGEST_SHAPE):
            return LARGEST_SHAPE
    if low == high:
        return shape
    return math.exp(optimize.brentq(slope, low, high, xtol=1e-13, rtol=1e-14))


# ---------------------------------------------------------------------- marginal likelihood


def _first_guess(channel: Channel, data: Observed, shared: Population, workers: int) -> Population:
    """Mean and spread of θ by the moments of everybody's own estimate."""
    found = maximum(channel, data, shared, level=0.95, workers=workers)
    good = np.isfinite(found.estimate) & np.isfinite(found.se)
    if good.sum() < 2:
        return Population(shared.coefficients, shared.shape, 0.0, 0.5)
    theta, noise = found.estimate[good], found.se[good] ** 2
    mean = math.fsum(theta) / len(theta)
    spread = math.fsum((theta - mean) ** 2) / len(theta) - math.fsum(noise) / len(theta)
    return Population(shared.coefficients, shared.shape, mean, math.sqrt(max(spread, 0.05**2)))


def _marginal(
    channel: Channel, data: Observed, shared: Population, workers: int, *, learn: str
) -> tuple[Floats, Floats]:
    """Return each person's log marginal likelihood [P] and its gradient in the free numbers [P, F]."""

    def chunk(part: Observed) -> tuple[Floats, Floats]:
        centre, scale, density = on_nodes(channel, part, shared, SEARCH_NODES)
        moments = node_moments(centre, scale, density, SEARCH_NODES)
        fixed = person_sums(channel.fixed(part.y, shared.shape), part.offsets)
        away = (moments.mean - shared.mean) / shared.sd
        spread = away**2 + (moments.sd / shared.sd) ** 2 - 1
        if learn == "prior":
            return moments.log_mass + fixed, np.stack([away / shared.sd, spread], axis=1)
        base, counts = part.predictor(shared.coefficients), part.counts
        score, bend = np.zeros(len(part.y)), np.zeros(len(part.y))
        for q, node in enumerate(SEARCH_NODES):
            xi = base + np.repeat(centre + scale * node, counts)
            weight = np.repeat(moments.weight[:, q], counts)
            score += weight * channel.slopes(part.y, xi, shared.shape)[0]
            if channel.shape_name:
                bend += weight * channel.shape_slope(part.y, xi, shared.shape)
        columns = [person_sums(score * part.x[c], part.offsets) for c in range(part.x.shape[0])]
        if channel.shape_name:
            columns.append(person_sums(bend, part.offsets))
        return moments.log_mass + fixed, np.stack([*columns, spread], axis=1)

    found = in_chunks(data, chunk, workers)
    return np.concatenate([value for value, _ in found]), np.concatenate([slope for _, slope in found])


FARTHEST, FARTHEST_SD = 40.0, 6.0
"""A search goes no farther from where it begins: e^40 times as much, or a sd e^6 times as large."""

Gradients = Callable[[Floats], tuple[Floats, Floats]]
"""From free numbers to each person's log-likelihood [P] and its slopes [P, F]."""


def _maximise(
    gradients: Gradients, start: Floats, name: str, tolerance: float = TOLERANCE, *, errors: bool = True
) -> tuple[Floats, Floats]:
    """Maximise a sum over people; return where, and the standard errors there, or NaN if none are asked for.

    The last free number is the logarithm of a standard deviation, which is kept above its floor.
    """
    lowest = math.log(SMALLEST_SD)
    _, slopes = gradients(start)
    n = len(slopes)
    if not np.isfinite(slopes).all():
        raise FitError(f"The population of {name} cannot be fitted: its values are too extreme.")
    square = outer_product(slopes) + 1e-9 * n * np.eye(len(start))
    whiten = linalg.inv(linalg.cholesky(square)) * math.sqrt(n)  # columns of unit curvature per person

    def loss(z: Floats) -> tuple[float, Floats]:
        free = start + whiten @ z
        free[-1] = max(free[-1], lowest)
        inside = np.clip(free, start - FARTHEST, start + FARTHEST)
        inside[-1] = min(max(inside[-1], lowest), start[-1] + FARTHEST_SD)
        value, slope = gradients(inside)
        total = np.array([math.fsum(column) for column in slope.T])
        beyond = free - inside  # a search that runs away is led back, and finds numbers on its way
        penalty = 0.5 * float(beyond @ beyond)
        return penalty - math.fsum(value) / n, whiten.T @ (beyond - total / n)

    result = optimize.minimize(
        loss, np.zeros(len(start)), jac=True, method="BFGS", options={"gtol": tolerance, "maxiter": 500}
    )
    best = start + whiten @ result.x
    best[-1] = max(best[-1], lowest)
    # In whitened coordinates a slope g per person leaves about n g²/2 of log-likelihood to be gained.
    left = 0.5 * n * float(np.sum(np.square(result.jac)))
    if not np.isfinite(best).all() or (left > NEGLIGIBLE and best[-1] > lowest + 1e-6):
        raise FitError(
            f"The population of {name} could not be fitted: its log-likelihood could still rise by about "
            f"{left:.1g} after {result.nit} steps. Are there enough people, and do its values make sense?"
        )
    return best, standard_errors(gradients, best, whiten) if errors else np.full(len(best), np.nan)


def standard_errors(gradients: Gradients, best: Floats, scale: Floats) -> Floats:
    """Return standard errors that hold even where people differ more than the model says, [F].

    They are those of the sandwich H⁻¹ (Σ g gᵀ) H⁻¹: g is a person's slope, H the curvature of the whole,
    taken by differences along the columns of ``scale``, steps of about one person's worth of information.
    """
    width = len(best)
    step = 1e-4
    curvature = np.empty((width, width))
    for k in range(width):
        ahead, behind = (gradients(best + sign * step * scale[:, k])[1] for sign in (1, -1))
        curvature[:, k] = [math.fsum(a - b) / (2 * step) for a, b in zip(ahead.T, behind.T, strict=True)]
    if not np.isfinite(curvature).all():
        return np.full(width, np.nan)
    bread = linalg.pinv(curvature @ linalg.inv(scale))
    covariance = bread @ outer_product(gradients(best)[1]) @ bread.T
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def outer_product(slopes: Floats) -> Floats:
    """Return the sum over people of the outer products of their slopes, [F, F]."""
    width = slopes.shape[1]
    return np.array([[math.fsum(slopes[:, i] * slopes[:, j]) for j in range(width)] for i in range(width)])


def _alike(channel: Channel, shared: Population) -> tuple[str, ...]:
    found = []
    if shared.sd <= 1.01 * SMALLEST_SD:
        found.append(f"{channel.name}: people cannot be told apart; every offset is shrunk to 0.")
    if channel.lowest is not None and channel.shape_name and shared.shape >= HUGE_SHAPE:
        found.append(f"{channel.name}: its values vary no more than by chance; a Poisson channel would do.")
    return tuple(found)
