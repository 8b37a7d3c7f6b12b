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
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg, optimize, stats

from fidm.channels import channel_words
from fidm.errors import FitError, count
from fidm.fit import plausible
from fidm.fit.offsets import (
    SEARCH_NODES,
    Plausible,
    Population,
    in_chunks,
    maximum,
    node_moments,
    on_nodes,
    own_share,
    side_by_side,
)
from fidm.model.channels import Channel, mean_of, person_sums
from fidm.model.effort import Observed
from fidm.types import Flags, Floats, Integers

SMALLEST_SD, AT_FLOOR = 1e-3, 1.01e-3
"""People who differ by less are taken to be alike; a search that ends below the second ended at the floor."""

LARGEST_SHAPE, HUGE_SHAPE = 1e6, 1e4
"""Shapes go no higher than the first; above the second, a negative binomial is as good as Poisson."""

FEWEST_PEOPLE, FEWEST_OBSERVED = 3, 5
"""How people differ cannot be learned from fewer: of their choices, and of what was observed in speech."""

TOLERANCE, NEAR, NEGLIGIBLE = 1e-8, 1e-6, 0.01

FAR_LAGS = range(5, 9)
"""Observations so far apart are taken to have nothing to do with each other."""

FEWEST_NEIGHBOURS, SURELY = 60, 3.0
"""How many neighbours it takes to tell how they go together, and how many standard errors above 0."""

CLEARLY_LESS = 0.001
"""How improbable so small a variance must be in a Poisson channel, to be called less than by chance."""

LEFT_OUT_POINTS = 256
"""How many populations stand for the plausible ones where each person is left out in turn."""

ENOUGH_PEOPLE = 5_000
"""Doubt about what is learned from more people does not matter."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A channel's population, with standard errors of its coefficients, shape, mean and sd.

    The errors are those of :func:`sandwich`, or how much plausible populations differ if that is more.
    ``plausible`` are the populations that the training part leaves possible, where doubt about the population
    matters to anybody's estimate; ``log_likelihood`` is that of random intercepts; ``n_people`` is how many
    people were observed, 0 where that is not known; ``covariance`` is that of the slopes of covariates, whose
    tests have so many degrees of ``freedom``.
    """

    population: Population
    se: dict[str, float]
    warnings: tuple[str, ...] = ()
    plausible: Plausible | None = None
    log_likelihood: float = math.nan
    n_people: int = 0
    covariance: Floats | None = None
    freedom: float = math.nan

    def sd_range(self) -> tuple[float, float]:
        """Return how little and how much people may differ: a 95 % interval of their sd."""
        if self.plausible is not None:
            return middle_of(self.plausible.sd, self.plausible.weight)
        return around(float(self.population.sd), self.se.get("sd", 0.0))


def middle_of(sd: Floats, weight: Floats) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of weighted standard deviations."""
    order = np.argsort(sd)
    low, high = np.searchsorted(np.cumsum(weight[order]), (0.025, 0.975))
    return float(sd[order][low]), float(sd[order][min(int(high), len(sd) - 1)])


def around(sd: float, se: float) -> tuple[float, float]:
    """Return two standard errors below and above, but not below 0."""
    reach = 2 * se if math.isfinite(se) else 0.0
    return max(0.0, sd - reach), sd + reach


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
    check_design(channel, data, names)
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


def pooled_errors(
    channel: Channel, data: Observed, shared: Population, names: Sequence[str]
) -> dict[str, float]:
    """Return standard errors of a pooled fit, which hold although observations of one person go together."""
    width = len(shared.coefficients)
    has_shape = bool(channel.shape_name) and shared.shape < HUGE_SHAPE

    def slopes(free: Floats) -> tuple[Floats, Floats]:
        xi, shape = data.predictor(free[:width]), float(np.exp(free[width])) if has_shape else shared.shape
        score, _ = channel.slopes(data.y, xi, shape)
        columns = [person_sums(score * column, data.offsets) for column in data.x]
        if has_shape:
            columns.append(person_sums(channel.shape_slope(data.y, xi, shape), data.offsets))
        return np.zeros(0), np.stack(columns, axis=1)

    best = np.append(shared.coefficients, [math.log(shared.shape)] if has_shape else [])
    curvature = curvature_at(slopes, best, np.eye(len(best)))
    se = errors_of(sandwich(slopes(best)[1], curvature, data.counts > 0))
    found = dict(zip(names, se[:width].tolist(), strict=True))
    return {**found, channel.shape_name: float(se[width]) * shared.shape} if has_shape else found


def pooled_prior(
    channel: Channel,
    data: Observed,
    shared: Population,
    workers: int,
    clusters: Integers | None = None,
) -> Learned:
    """Learn the normal prior of θ with coefficients and shape held, and which others are plausible."""
    enough_people(channel, data)
    start = _first_guess(channel, data, shared, workers)
    free = _Free(replace(shared, slopes=start.slopes), "prior")
    search = _Search(channel, data, free, free.hyperprior(channel, data), workers, clusters)
    best, se = search.maximise(free.numbers(start))
    found, (others, spread) = free(best), search.plausible(best)
    covariance = search.of_slopes(others)
    se = np.fmax(se, spread)
    errors = {"mean": se[0], "sd": se[-1] * found.sd}
    return Learned(found, errors, _alike(channel, data, found), others, covariance=covariance)


def random_intercepts(
    channel: Channel,
    data: Observed,
    names: Sequence[str],
    workers: int,
    *,
    tolerance: float = TOLERANCE,
    errors: bool = True,
    plausible: bool = False,
    clusters: Integers | None = None,
) -> Learned:
    """Fit coefficients, shape and the spread of θ together, by marginal likelihood.

    The search ends where no slope per person is above the tolerance. Without ``errors`` there are no standard
    errors, which comparisons do not need. With ``plausible`` the population is the most probable one under
    weak hyperpriors, and comes with others that are plausible where that matters. People of the same cluster
    [P] may go together: see :func:`sandwich`.
    """
    check_design(channel, data, names)
    enough_people(channel, data)
    first = pooled(channel, data, names)
    start = _first_guess(channel, data, first, workers)
    width = len(first.coefficients)
    free = _Free.all_of(channel, replace(first, slopes=start.slopes))
    before = free.hyperprior(channel, data) if plausible else None
    search = _Search(channel, data, free, before, workers, clusters)
    begin = replace(start, coefficients=first.coefficients + np.eye(width)[0] * start.mean)
    best, found = search.maximise(free.numbers(begin), tolerance, errors=errors)
    if plausible:
        carried = carried_over(channel, data, free(best))
        if carried:
            search.at = free = replace(free, like=replace(free.like, carried=carried))
            best, found = search.maximise(best, tolerance, errors=errors)
    shared = free(best)
    if not errors:
        return Learned(shared, {}, _alike(channel, data, shared))
    others = None
    if plausible:
        others, spread = search.plausible(best)
        found = np.fmax(found, spread)
    se = dict(zip(names, found[:width], strict=True))
    if free.has_shape and shared.shape < HUGE_SHAPE:
        se[channel.shape_name] = found[free.shape_at] * shared.shape
    # at the floor the curvature says nothing of how much people may differ
    se["sd"] = found[-1] * shared.sd if shared.sd > AT_FLOOR else math.nan
    covariance = search.of_slopes(others)
    return Learned(shared, se, _alike(channel, data, shared), others, search.value, covariance=covariance)


def effort_without_each(channel: Channel, data: Observed, learned: Learned, workers: int) -> Floats:
    """Return each person's log-likelihood under the random intercepts learned without them, [P].

    Plausible populations are weighted anew for each person. Where they do not matter, so many people were
    learned from that one Newton step is enough.
    """
    shared = learned.population
    free = _Free.all_of(channel, shared)
    search = _Search(channel, data, free, free.hyperprior(channel, data), workers)
    best = free.numbers(shared)
    value, slopes = search.gradients(best)
    search.curvature = curvature_at(search.gradients, best, np.eye(len(best)))
    uncounted = 1 - own_share(data.counts, shared.carried)
    if learned.plausible is None:
        fixed = person_sums(channel.fixed(data.y, shared.shape), data.offsets)
        return value + uncounted * fixed + plausible.moved(slopes, search.curvature + search.bend(best))
    points, weight = search.sample(best, LEFT_OUT_POINTS)
    some = [free(point) for point in points[weight > 0]]
    fixed = np.stack([person_sums(channel.fixed(data.y, one.shape), data.offsets) for one in some])
    counted = _marginals(channel, data, some, workers)
    return plausible.without_person(weight[weight > 0], counted, counted + uncounted * fixed)


def enough_people(channel: Channel, data: Observed) -> None:
    """Raise unless enough people were observed to tell how people differ."""
    people = int((data.counts > 0).sum())
    if people < FEWEST_OBSERVED:
        raise FitError(
            f"only {count(people, 'participant')} {'has' if people == 1 else 'have'} a recorded "
            f"{channel_words(channel).name}; {FEWEST_OBSERVED} are needed to learn how people differ in it."
        )
    enough_known(data.known, data.counts > 0, len(data.x) + bool(channel.shape_name) + 1)


def enough_known(known: Floats | None, told: Flags, others: int) -> None:
    """Raise unless covariates [P, C] and so many other numbers can be learned from those who tell."""
    if known is None:
        return
    some, (n, width) = known[told], (int(told.sum()), known.shape[1])
    if n <= width + others:
        raise FitError(
            f"{count(n, 'person', 'people')} were observed in it; that is too few to learn {width + others} "
            "numbers from."
        )
    away = some - some.mean(axis=0)
    scale = np.sqrt((away**2).mean(axis=0))
    if width and (not (scale > 1e-12).all() or np.linalg.matrix_rank(away / scale) < width):
        raise FitError(
            f"the {count(n, 'person', 'people')} observed in it are too much alike in the covariates to tell "
            "what each of these does."
        )


# ---------------------------------------------------------------------- what a plain model leaves out


def carried_over(channel: Channel, data: Observed, shared: Population) -> float:
    """Return the correlation ρ of neighbouring observations within a person; 0 if it may be chance.

    Whether there is any is asked of residuals at everybody's own estimate: neighbours must go together more
    than observations far apart, since both share what is left of the person. How much comes from residuals
    at the average person, whose products at lag k are τ² + σ²ρᵏ on average: τ² is the person's own share.
    """
    owner = np.repeat(np.arange(len(data.counts)), data.counts)
    base = data.predictor(shared.coefficients)

    def residuals(xi: Floats) -> Floats:
        return np.clip(_residuals(channel, data, xi, shared.shape), -4.0, 4.0)

    def products(residual: Floats, lag: int) -> Floats:
        same = owner[lag:] == owner[: len(owner) - lag]
        return np.asarray((residual[lag:] * residual[: len(owner) - lag])[same])

    average_person = base + np.broadcast_to(shared.means(data), len(data.counts))[owner]

    centre, scale, density = on_nodes(channel, data, shared, SEARCH_NODES)
    own = residuals(base + node_moments(centre, scale, density, SEARCH_NODES).mean[owner])
    near, far = products(own, 1), np.concatenate([products(own, lag) for lag in FAR_LAGS])
    if len(near) < FEWEST_NEIGHBOURS or len(far) < FEWEST_NEIGHBOURS:
        return 0.0
    error = math.sqrt(mean_of(near**2) / len(near) + mean_of(far**2) / len(far))
    if mean_of(near) - mean_of(far) <= SURELY * error:
        return 0.0
    lags = np.arange(FAR_LAGS[-1] + 1)
    found = [products(residuals(average_person), int(lag)) for lag in lags]
    weight = np.sqrt([len(some) for some in found])
    average = np.array([mean_of(some) if len(some) else 0.0 for some in found])

    def misfit(rho: float) -> float:
        columns = np.column_stack([np.ones(len(lags)), rho**lags]) * weight[:, None]
        return float(optimize.nnls(columns, average * weight)[1])

    return float(optimize.minimize_scalar(misfit, bounds=(0.0, 0.9), method="bounded").x)


# ---------------------------------------------------------------------- pooled pieces


def check_design(channel: Channel, data: Observed, names: Sequence[str]) -> None:
    """Raise where observations do not vary, or do not tell apart what they are conditioned on."""
    n, (words, _, things) = len(data.y), channel_words(channel)
    if not n:
        raise FitError(f"nobody has a recorded {words}, so there is nothing to learn from it.")
    if n == 1:
        raise FitError(f"there is only one {words}, and nothing to learn from it.")
    if (data.y == data.y[0]).all():
        value = float(channel.record(data.y[:1])[0])
        what = ("yes" if value else "no") if channel.kind == "bernoulli" else f"{value:g}"
        raise FitError(
            f"all {n:,} {things} have the same {words} ({what}), so there is nothing to learn from it."
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
    if n <= data.x.shape[0]:
        raise FitError(f"only {n} {things} have a {words}; {data.x.shape[0] + 1} or more are needed.")


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
    """Mean and spread of θ by the moments of everybody's own estimate; no covariate has a slope yet."""
    found = maximum(channel, data, shared, level=0.95, workers=workers)
    good = np.isfinite(found.estimate) & np.isfinite(found.se)
    slopes = None if data.known is None else np.zeros(data.known.shape[1])
    if good.sum() < 2:
        return Population(shared.coefficients, shared.shape, 0.0, 0.5, slopes=slopes)
    theta, noise = found.estimate[good], found.se[good] ** 2
    mean = math.fsum(theta) / len(theta)
    spread = math.fsum((theta - mean) ** 2) / len(theta) - math.fsum(noise) / len(theta)
    sd = math.sqrt(max(spread, 0.05**2))
    return Population(shared.coefficients, shared.shape, mean, sd, slopes=slopes)


def _marginal(
    channel: Channel, data: Observed, shared: Population, workers: int, *, learn: str
) -> tuple[Floats, Floats]:
    """Return each person's log marginal likelihood [P] and its gradient in the free numbers [P, F].

    ``learn`` says which numbers are free: ``"all"``, or those of the ``"prior"``.
    """

    def chunk(part: Observed) -> tuple[Floats, Floats]:
        centre, scale, density = on_nodes(channel, part, shared, SEARCH_NODES)
        moments = node_moments(centre, scale, density, SEARCH_NODES)
        share = own_share(part.counts, shared.carried)
        value = moments.log_mass + share * person_sums(channel.fixed(part.y, shared.shape), part.offsets)
        away = (moments.mean - shared.means(part)) / shared.sd
        spread = away**2 + (moments.sd / shared.sd) ** 2 - 1
        moved = [] if part.known is None else list((part.known * (away / shared.sd)[:, None]).T)
        if learn == "prior":
            return value, np.stack([away / shared.sd, *moved, spread], axis=1)
        base, counts = part.predictor(shared.coefficients), part.counts
        score, bend = np.zeros(len(part.y)), np.zeros(len(part.y))
        for q, node in enumerate(SEARCH_NODES):
            xi = base + np.repeat(centre + scale * node, counts)
            weight = np.repeat(share * moments.weight[:, q], counts)
            score += weight * channel.slopes(part.y, xi, shared.shape)[0]
            if channel.shape_name:
                bend += weight * channel.shape_slope(part.y, xi, shared.shape)
        columns = [person_sums(score * part.x[c], part.offsets) for c in range(part.x.shape[0])] + moved
        if channel.shape_name:
            columns.append(person_sums(bend, part.offsets))
        return value, np.stack([*columns, spread], axis=1)

    found = in_chunks(data, chunk, workers)
    return np.concatenate([value for value, _ in found]), np.concatenate([slope for _, slope in found])


def _marginals(channel: Channel, data: Observed, populations: Sequence[Population], workers: int) -> Floats:
    """Return each person's log marginal likelihood under each of several populations, [R, P]."""

    def chunk(part: Observed) -> Floats:
        found = []
        for repeated, laid, k in side_by_side(part, populations):
            on = on_nodes(channel, repeated, laid, SEARCH_NODES, converged=1e-3)
            found.append(node_moments(*on, SEARCH_NODES).log_mass.reshape(k, -1))
        share = own_share(part.counts, populations[0].carried)
        fixed = [person_sums(channel.fixed(part.y, one.shape), part.offsets) for one in populations]
        return np.asarray(np.concatenate(found) + share * np.stack(fixed))

    return np.concatenate(in_chunks(data, chunk, workers), axis=1)


FARTHEST, FARTHEST_SD = 40.0, 6.0
"""A search goes no farther from where it begins: e^40 times as much, or a sd e^6 times as large."""

Gradients = Callable[[Floats], tuple[Floats, Floats]]
"""From free numbers to each person's log-likelihood [P] and its slopes [P, F]."""


@dataclass(frozen=True, slots=True)
class _Hyperprior:
    """What is thought of the free numbers beforehand: log sd is the last, log κ at ``count_shape``.

    Slopes of covariates, which have the covariance ``known``, begin at ``first_slope``.
    """

    count_shape: int | None
    first_slope: int = 0
    known: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __call__(self, free: Floats) -> tuple[float, Floats]:
        slope = np.zeros(len(free))
        value, slope[-1] = plausible.log_sd_prior(float(free[-1]), plausible.OFFSET_SCALE)
        if self.count_shape is not None:
            more, slope[self.count_shape] = plausible.log_count_shape_prior(float(free[self.count_shape]))
            value += more
        if len(self.known):
            own = slice(self.first_slope, self.first_slope + len(self.known))
            more, slope[own] = plausible.log_slopes_prior(free[own], self.known, plausible.OFFSET_SCALE)
            value += more
        return value, slope


@dataclass(frozen=True, slots=True, eq=False)
class _Free:
    """Which numbers of a population are free, the others being those of one like it; log sd is the last.

    ``learn`` is ``"all"`` or ``"prior"``, the mean and the sd; slopes of covariates follow the coefficients,
    or the mean. A shape may be held although all is learned; ``held`` is where its slope would be.
    """

    like: Population
    learn: str
    has_shape: bool = False
    held: int | None = None

    @classmethod
    def all_of(cls, channel: Channel, like: Population) -> _Free:
        """Coefficients, sd, and the shape unless it is huge: then it is held where it is."""
        has_shape = bool(channel.shape_name) and like.shape < HUGE_SHAPE
        found = cls(like, "all", has_shape)
        return found if has_shape or not channel.shape_name else replace(found, held=found.shape_at)

    @property
    def slopes(self) -> slice:
        """Where the slopes of covariates are."""
        first = 1 if self.learn == "prior" else len(self.like.coefficients)
        return slice(first, first + (0 if self.like.slopes is None else len(self.like.slopes)))

    @property
    def shape_at(self) -> int:
        """Where the logarithm of the shape is, if it is free."""
        return int(self.slopes.stop)

    def __call__(self, free: Floats) -> Population:
        """Make a population of free numbers."""
        like, width, sd = self.like, len(self.like.coefficients), float(np.exp(free[-1]))
        slopes = None if like.slopes is None else free[self.slopes]
        if self.learn == "prior":
            return Population(like.coefficients, like.shape, float(free[0]), sd, like.carried, slopes)
        shape = like.shape
        if self.has_shape:
            shape = float(np.exp(min(free[self.shape_at], math.log(LARGEST_SHAPE))))
        return Population(free[:width], shape, 0.0, sd, like.carried, slopes)

    def numbers(self, population: Population) -> Floats:
        """Return the free numbers of a population."""
        shape = [np.log(population.shape)] if self.has_shape else []
        first = [population.mean] if self.learn == "prior" else population.coefficients
        slopes = [] if population.slopes is None else population.slopes
        return np.array([*first, *slopes, *shape, np.log(population.sd)])

    def hyperprior(self, channel: Channel, data: Observed) -> _Hyperprior:
        """What is thought of them beforehand."""
        counts = self.learn == "all" and self.has_shape and channel.lowest is not None
        known = np.zeros((0, 0)) if data.known is None else covariance_of(data.known[data.counts > 0])
        return _Hyperprior(self.shape_at if counts else None, self.slopes.start, known)


@dataclass(slots=True)
class _Search:
    """The search for a channel's population; without a hyperprior the sd is kept above its floor."""

    channel: Channel
    data: Observed
    at: _Free
    hyperprior: _Hyperprior | None
    workers: int
    clusters: Integers | None = None
    curvature: Floats | None = None
    covariance: Floats | None = None
    value: float = math.nan

    def gradients(self, free: Floats) -> tuple[Floats, Floats]:
        value, slopes = _marginal(self.channel, self.data, self.at(free), self.workers, learn=self.at.learn)
        return value, slopes if self.at.held is None else np.delete(slopes, self.at.held, axis=1)

    def beforehand(self, free: Floats) -> tuple[float, Floats]:
        return (0.0, np.zeros(len(free))) if self.hyperprior is None else self.hyperprior(free)

    def maximise(
        self, start: Floats, tolerance: float = TOLERANCE, *, errors: bool = True
    ) -> tuple[Floats, Floats]:
        """Return where the sum over people is highest, and the standard errors there, or NaN."""
        name, lowest = self.channel.name, math.log(SMALLEST_SD)
        _, slopes = self.gradients(start)
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
            value, slope = self.gradients(inside)
            before, lean = self.beforehand(inside)
            total = np.array([math.fsum(column) for column in slope.T]) + lean
            beyond = free - inside  # a search that runs away is led back, and finds numbers on its way
            penalty = 0.5 * float(beyond @ beyond)
            return penalty - (math.fsum(value) + before) / n, whiten.T @ (beyond - total / n)

        near = max(tolerance, NEAR)
        result = optimize.minimize(
            loss, np.zeros(len(start)), jac=True, method="BFGS", options={"gtol": near, "maxiter": 500}
        )
        best = start + whiten @ result.x
        best[-1] = max(best[-1], lowest)
        # In whitened coordinates a slope g per person leaves about n g²/2 of log-likelihood to be gained.
        left = 0.5 * n * float(np.sum(np.square(result.jac)))
        if not np.isfinite(best).all() or (left > NEGLIGIBLE and best[-1] > lowest + 1e-6):
            raise FitError(
                f"what people share in {channel_words(self.channel).name} could not be estimated: after "
                f"{result.nit} steps the log-likelihood could still rise by about {left:.1g}. Are there "
                "enough people, and do its values make sense?"
            )
        if not errors:
            return best, np.full(len(best), np.nan)
        self.curvature = curvature_at(self.gradients, best, whiten)
        value, slopes = self.gradients(best)
        if best[-1] > lowest and tolerance < near:  # values of the loss are too coarse to come closer by
            rest = np.array([math.fsum(column) for column in slopes.T]) + self.beforehand(best)[1]
            step = linalg.pinv(-(self.curvature + self.bend(best))) @ rest
            if np.abs(step).max() < math.sqrt(near):
                best = best + step
                value, slopes = self.gradients(best)
        self.value = math.fsum(value)
        whole, seen = self.curvature + self.bend(best), self.data.counts > 0
        self.covariance = sandwich(slopes, whole, seen, self.clusters)
        return best, errors_of(self.covariance)

    def of_slopes(self, others: Plausible | None) -> Floats | None:
        """The covariance of the slopes of covariates, no less than plausible ones differ, [C, C]."""
        if self.at.like.slopes is None or self.covariance is None:
            return None
        own = np.asarray(self.covariance[self.at.slopes, self.at.slopes])
        if others is None or others.slopes is None:
            return own
        away = others.slopes - others.weight @ others.slopes
        return no_less(own, (others.weight * away.T) @ away)

    def bend(self, free: Floats) -> Floats:
        """The second derivatives of the hyperprior, [F, F]."""
        return bend_of(self.beforehand, free)

    def plausible(self, best: Floats) -> tuple[Plausible | None, Floats]:
        """Return the populations that the training part allows, where others than the best one matter.

        Also the standard deviations of their free numbers, [F]; NaN where there are no others.
        """
        nothing = None, np.full(len(best), np.nan)
        many = len(self.data.offsets) - 1 > ENOUGH_PEOPLE
        if many or self.curvature is None or not np.isfinite(self.curvature).all():
            return nothing
        if self._added(best, plausible.spread_of(self.curvature + self.bend(best))) < plausible.NEGLIGIBLE:
            return nothing
        points, weight = self.sample(best, plausible.points_for(len(self.data.y)))
        others = Plausible.of([self.at(point) for point in points], weight)
        return others, plausible.weighted_sd(points, weight)

    def sample(self, best: Floats, n: int) -> tuple[Floats, Floats]:
        """Return n free numbers that the training part allows, and how probable each is, [n, F] and [n]."""
        assert self.curvature is not None  # noqa: S101

        def log_posterior(points: Floats) -> Floats:
            with np.errstate(all="ignore"):
                people = _marginals(self.channel, self.data, [self.at(free) for free in points], self.workers)
            return np.array(
                [
                    math.fsum(value) + self.beforehand(free)[0] if np.isfinite(value).all() else -math.inf
                    for value, free in zip(people, points, strict=True)
                ]
            )

        return plausible.sample(log_posterior, best, self.curvature + self.bend(best), n)[:2]

    def _added(self, best: Floats, spread: Floats) -> float:
        """How much doubt about the population adds to the variance of people's estimates, as a share."""

        def means(free: Floats) -> tuple[Floats, Floats]:
            centre, scale, density = on_nodes(self.channel, self.data, self.at(free), SEARCH_NODES)
            moments = node_moments(centre, scale, density, SEARCH_NODES)
            return moments.mean, moments.sd**2

        within = means(best)[1]
        between = np.zeros(len(within))
        for axis in spread.T:
            ahead, behind = means(best + axis)[0], means(best - axis)[0]
            between += (0.5 * (ahead - behind)) ** 2
        return math.fsum(between / within) / len(within)


def curvature_at(gradients: Gradients, best: Floats, scale: Floats) -> Floats:
    """Return the second derivatives of the sum over people, [F, F].

    They are differences of slopes along the columns of ``scale``, steps of about one person's information.
    """
    width, step = len(best), 1e-4
    along = np.empty((width, width))
    for k in range(width):
        ahead, behind = (gradients(best + sign * step * scale[:, k])[1] for sign in (1, -1))
        along[:, k] = [math.fsum(a - b) / (2 * step) for a, b in zip(ahead.T, behind.T, strict=True)]
    return np.asarray(along @ linalg.inv(scale))


def bend_of(beforehand: Callable[[Floats], tuple[float, Floats]], free: Floats) -> Floats:
    """Return the second derivatives of a hyperprior, which gives its log-density and slopes, [F, F]."""
    step = 1e-4
    ahead, behind = (
        [beforehand(free + sign * step * unit)[1] for unit in np.eye(len(free))] for sign in (1, -1)
    )
    return (np.array(ahead) - np.array(behind)) / (2 * step)


def sandwich(slopes: Floats, curvature: Floats, seen: Flags, clusters: Integers | None = None) -> Floats:
    """Return a covariance that holds even where people differ more than the model says, [F, F].

    It is the sandwich H⁻¹ (Σ g gᵀ) H⁻¹, times n / (n − F): g is the slope of one of n people who were
    observed (``seen``, [P]), H the curvature of what was maximised, with the hyperpriors: where these alone
    keep a number from running away, that of the likelihood measures nothing. As many people as numbers to
    learn have none: the best numbers make their slopes vanish together.

    People of one cluster (a site, a family) may go together: with ``clusters``, g is the sum over one of G
    clusters, and the factor that of Stata and R, G / (G − 1) · (n − 1) / (n − F).
    """
    n, width = int(seen.sum()), len(curvature)
    factor = n / (n - width) if n > width else math.nan
    if clusters is not None:
        groups = len(np.unique(clusters[seen]))
        slopes = np.array([np.bincount(clusters, column) for column in slopes.T]).T
        factor = groups / (groups - 1) * (n - 1) / (n - width) if n > width and groups > 1 else math.nan
    if not math.isfinite(factor) or not np.isfinite(curvature).all():
        return np.full((width, width), np.nan)
    bread = linalg.pinv(curvature)
    return np.asarray(factor * bread @ outer_product(slopes) @ bread.T)


def degrees(seen: Flags, width: int, clusters: Integers | None) -> float:
    """Return the degrees of freedom of tests: people seen beyond numbers learned, or clusters less one."""
    beyond = max(int(seen.sum()) - width, 1)
    return float(beyond if clusters is None else min(beyond, max(len(np.unique(clusters[seen])) - 1, 1)))


def covariance_of(known: Floats) -> Floats:
    """Return the covariance of covariates [P, C] among people, [C, C]; in any order of people the same."""
    away = known - [math.fsum(column) / len(known) for column in known.T]
    return outer_product(away) / len(known)


def no_less(covariance: Floats, other: Floats) -> Floats:
    """Return a covariance under which no mixture of numbers varies less than under either of two, [F, F]."""
    if not len(other) or not (np.isfinite(covariance).all() and np.isfinite(other).all()):
        return covariance
    values, vectors = linalg.eigh(other)
    root = vectors * np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-300)))
    inverse = linalg.inv(root)
    times, axes = linalg.eigh(inverse @ covariance @ inverse.T)
    wide = root @ axes
    return np.asarray((wide * np.maximum(times, 1.0)) @ wide.T)


def errors_of(covariance: Floats) -> Floats:
    """Return the standard errors that a covariance holds, [F]."""
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def outer_product(slopes: Floats) -> Floats:
    """Return the sum over people of the outer products of their slopes, [F, F]."""
    width = slopes.shape[1]
    return np.array([[math.fsum(slopes[:, i] * slopes[:, j]) for j in range(width)] for i in range(width)])


def _alike(channel: Channel, data: Observed, shared: Population) -> tuple[str, ...]:
    found = []
    if shared.sd <= AT_FLOOR:
        found.append(f"{channel.name}: people cannot be told apart.")
    if channel.lowest is not None and channel.shape_name and shared.shape >= HUGE_SHAPE:
        means = np.broadcast_to(shared.means(data), len(data.counts))
        xi = data.predictor(shared.coefficients) + np.repeat(means, data.counts)
        residuals = _residuals(channel, data, xi, shared.shape)
        free = len(data.y) - len(shared.coefficients)
        if stats.chi2.cdf(math.fsum(residuals**2), free) < CLEARLY_LESS:
            said = "vary less than counts do by chance, so its intervals are wider than they need be"
        else:
            said = "vary no more than by chance; a Poisson channel would do"
        found.append(f"{channel.name}: its values {said}.")
    return tuple(found)


def _residuals(channel: Channel, data: Observed, xi: Floats, shape: float) -> Floats:
    """Pearson's residuals, [M]."""
    score, _ = channel.slopes(data.y, xi, shape)
    return np.asarray(score / np.sqrt(np.maximum(channel.information(xi, shape), 1e-300)))
