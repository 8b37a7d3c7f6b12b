r"""How people's latent parameters change within people: from visit to visit, or between conditions.

A person has several episodes, each under a condition z. One parameter at a time, log η or θ of a channel,

.. math::

    v_{jz} = m + a_j + (\gamma + b_j)^\top z, \qquad (a_j, b_j) \sim N(0, \Sigma),

with z centred within the study, so that a_j is what is particular to a person on average and b_j to how the
person changes. Treating episodes as if each were a person of its own would measure the change γ by the
differences among people; here every person is compared with themselves.

The marginal likelihood integrates over (a, b): the trapezoidal rule on nodes around each person's posterior,
placed at its mode and then at its mean, scaled to its covariance. Its gradient is the posterior expectation
of the complete-data gradient (Fisher's identity). The hyperpriors of both sds are those of
:mod:`fidm.fit.plausible`; the correlation of a and b has a density proportional to 1 − r².

With one contrast, or along a line that is given (the order of the blocks, where each has a mean of its own),
people may change differently, unless the likelihood is no higher for it; then, and with
several contrasts, b = 0. Leaving b out whenever it is not clearly there would be wrong: where people change
differently and did less in one condition, γ of log η is then biased, and its intervals hold it too seldom.
That people differ in their change is only *said* where it is clear (:data:`CLEARLY`). Standard errors are
those of the sandwich by person, or the model's own where these are larger. As with paired differences, tests
take Student's t with the people who were observed under several conditions, less the contrasts, as degrees
of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from scipy import interpolate, linalg, optimize, stats

from fidm.errors import FitError, count
from fidm.fit import plausible
from fidm.fit.offsets import own_share
from fidm.fit.population import (
    HUGE_SHAPE,
    LARGEST_SHAPE,
    NEAR,
    NEGLIGIBLE,
    SMALLEST_SD,
    Gradients,
    bend_of,
    curvature_at,
    no_less,
    outer_product,
    random_intercepts,
)
from fidm.fit.profile import SENSITIVITY, told_apart
from fidm.fit.regression import Regressed
from fidm.fit.sensitivity import BEYOND, MIDDLE_SD, MOST_CHOICES, SPACING, learn_slopes, thinned
from fidm.model.action import Choices, log_likelihoods, over_chunks, sensitivity_grid
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import Levels, Observed, design_names
from fidm.types import Floats, Integers

CLEARLY = 5.14
"""Twice the log-likelihood that b must gain to be clearly there: the upper 5 % where all change alike.

The sd of b at its edge and its correlation with a are two numbers: a mixture of χ² with one and two degrees.
"""

FEWEST_PAIRED = 5
"""A change cannot be learned from fewer people who were observed under several conditions."""

TABLE_STEP = 0.05
"""The distance of places in log η between which log-likelihoods are interpolated."""

AT_ONCE = 60_000
"""How many observations are worked on at a time."""

MOST_STEPS, LEAST_GAIN = 60, 1e-6
"""Newton steps to a person's mode, and the gain in log-density below which it is near enough."""

LARGEST_SD, FARTHEST, LARGEST_ATANH = 6.0, 40.0, 3.0
"""Where searches turn back: sds of people, how far fixed numbers go, and the atanh of the correlation."""

FIRST_SD = 0.3
"""Where the search for the sd of changes begins."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """How far nodes are apart and how far they reach, in posterior sds."""

    step: float
    radius: float

    def __call__(self, width: int) -> Floats:
        """Evenly spaced nodes around 0 in one or two dimensions, [Q, D]."""
        reach = math.floor(self.radius / self.step)
        line = self.step * np.arange(-reach, reach + 1)
        nodes = np.stack(np.meshgrid(*[line] * width, indexing="ij"), axis=-1).reshape(-1, width)
        return np.asarray(nodes[np.square(nodes).sum(axis=1) <= self.radius**2])


@dataclass(frozen=True, slots=True, eq=False)
class Changed(Regressed):
    """How one parameter changes within people; ``slopes`` are the changes γ, ``spread`` is the sd of a.

    Parameters
    ----------
    slope_sd, log_slope_sd_se : float
        How much people may differ in their change, and the standard error of its logarithm; 0 and NaN where
        it is taken to be the same for all.
    correlation : float
        Of a and b; NaN where b is 0.
    gain : float
        Twice the log-likelihood that people who change differently gain; NaN where it was not asked.
    n_paired : int
        How many people were observed under several conditions; as of paired differences, the degrees of
        freedom of tests are these less the number of changes.
    fixed, fixed_covariance : float array [F], [F, F]
        The numbers that are the same for all: the mean in the middle of the conditions, the changes times
        ``scale`` [C], and what else a channel needs; and their covariance.
    middle : float array [C]
        The conditions' mean.
    own, own_covariance : float array [P, 2] and [P, 2, 2], or None
        Everybody's level in the middle and their change times ``scale``, m + a and γ + b, under the best
        model with b, and what is not known of them; None with several contrasts.
    lapse : float
        The lapse rate, of log η.
    """

    slope_sd: float = 0.0
    log_slope_sd_se: float = math.nan
    correlation: float = math.nan
    gain: float = math.nan
    n_paired: int = 0
    fixed: Floats = field(default_factory=lambda: np.zeros(0))
    fixed_covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    middle: Floats = field(default_factory=lambda: np.zeros(0))
    scale: Floats = field(default_factory=lambda: np.zeros(0))
    own: Floats | None = None
    own_covariance: Floats | None = None
    lapse: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether people clearly differ in their change."""
        return self.gain > CLEARLY

    def means(self, known: Floats) -> tuple[Floats, Floats]:
        """Return the mean of log η under conditions [K, C], and their standard errors."""
        weights = np.column_stack([np.ones(len(known)), (known - self.middle) / self.scale])
        some = slice(0, weights.shape[1])
        variance = np.einsum("kc,cd,kd->k", weights, self.fixed_covariance[some, some], weights)
        return weights @ self.fixed[some], np.sqrt(variance)

    def lines(self, person: Integers, known: Floats) -> tuple[Floats, Floats]:
        """Return log η on people's own lines at one contrast's values [K], and its standard errors.

        ``person`` [K] counts those who were observed, in their order.
        """
        assert self.own is not None  # noqa: S101
        assert self.own_covariance is not None  # noqa: S101
        at = np.column_stack([np.ones(len(known)), (known - self.middle[0]) / self.scale[0]])
        variance = np.einsum("ki,kij,kj->k", at, self.own_covariance[person], at)
        return (self.own[person] * at).sum(axis=1), np.sqrt(variance)

    def together(self) -> float:
        """Return the p-value of all changes together: Hotelling's test with the errors by person."""
        width = len(self.slopes)
        left = max(self.freedom - width + 1, 1)
        square = float(self.slopes @ linalg.pinv(self.covariance) @ self.slopes)
        return float(stats.f.sf(square / width * left / self.freedom, width, left))


def sensitivity_within(
    choices: Choices,
    owner: Integers,
    known: Floats,
    *,
    line: Floats | None = None,
    by_people: bool = False,
    lapse: float | None = 0.0,
    workers: int = 1,
) -> Changed:
    """Learn how log η changes within people.

    Parameters
    ----------
    choices : Choices
        The choices of every episode, as of :meth:`fidm.Cohort.by_episode`.
    owner : int array [U]
        The person each episode belongs to; episodes of a person stand side by side.
    known : float array [U, C]
        Its condition: a number, or one indicator per condition but the reference.
    line : float array [U], optional
        Along what people may change differently, where there are several contrasts.
    by_people : bool
        Whether standard errors are those of the sandwich alone. Along several blocks of similar size it holds
        its level, and the model's own, which the hyperpriors of the sds widen, are too large.
    lapse : float or None
        The lapse rate; None estimates it, with episodes as people.
    workers : int
        Threads; changes no number.
    """
    told = np.diff(choices.person_offsets) > 0
    people = _People.of(owner[told], known[told], None if line is None else line[told])
    some = thinned(choices.take(told), MOST_CHOICES)
    learned, rate = learn_slopes(replace(some, known=people.z), lapse=lapse, workers=workers)
    first, width = learned.best, people.z.shape[1]
    units = _Choosing.of(some, people.z, rate, workers)
    search = _Search(SENSITIVITY, units, people, plausible.SENSITIVITY_SCALE, by_people)
    begin = np.array([first[0], *first[len(first) - width :]])
    found = replace(search.changed(begin, float(first[1]), slice(1, 1 + width)), lapse=rate)
    if len(first) == 2 + width:
        return found
    said = "some people may choose at random, which changes within people do not allow for."
    return replace(found, warnings=(f"{SENSITIVITY}: {said}",))


def offsets_within(
    channel: Channel,
    seen: Observed,
    levels: Levels,
    owner: Integers,
    known: Floats,
    *,
    workers: int = 1,
) -> Changed:
    """Learn how θ of a channel changes within people; ``seen``, ``owner`` and ``known`` are by episode.

    As in :func:`sensitivity_within`.
    """
    told = seen.counts > 0
    people = _People.of(owner[told], known[told])
    columns = np.repeat(people.z.T, seen.counts[told], axis=1)
    offsets = np.append(seen.offsets[:-1][told], seen.offsets[-1])
    data = Observed(seen.y, np.concatenate([seen.x, columns]), offsets, seen.row)
    names = (*design_names(channel, levels), *(f"change{i}" for i in range(len(columns))))
    learned = random_intercepts(channel, data, names, workers, errors=False, plausible=True)
    shared = learned.population
    units = _Observing.of(channel, data, float(shared.shape), shared.carried)
    search = _Search(channel.name, units, people, plausible.OFFSET_SCALE)
    shape = [math.log(shared.shape)] if units.has_shape else []
    begin = np.array([*shared.coefficients, *shape])
    found = search.changed(begin, math.log(shared.sd), slice(len(seen.x), len(names)))
    return replace(found, warnings=learned.warnings)


# ---------------------------------------------------------------------- people and their units


@dataclass(frozen=True, slots=True, eq=False)
class _People:
    """Whose the units (episodes) are, [P + 1], their centred conditions [U, C], and what was divided by."""

    offsets: Integers
    z: Floats
    scale: Floats
    middle: Floats
    n_paired: int
    line: Floats | None  # what b multiplies, [U], centred and divided by its range as z; None where b is 0

    @classmethod
    def of(cls, owner: Integers, known: Floats, line: Floats | None = None) -> _People:
        """Lay out the units that tell anything; conditions are divided by their range."""
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        if len(np.unique(owner)) < len(begins):
            raise ValueError("units of a person must stand side by side.")
        offsets = np.append(begins, len(owner)).astype(np.int64)
        differs = (known != np.repeat(known[begins], np.diff(offsets), axis=0)).astype(np.float64)
        paired = np.array([person_sums(column, offsets) > 0 for column in differs.T])
        fewest = int(paired.sum(axis=1).min())
        if fewest < FEWEST_PAIRED:
            raise FitError(
                f"{count(fewest, 'person', 'people')} can be compared with themselves in it; at least "
                f"{FEWEST_PAIRED} are needed in each condition."
            )
        scale = np.ptp(known, axis=0)
        middle = np.array([math.fsum(column) / len(column) for column in known.T])
        z = (known - middle) / scale
        if line is not None:
            line = (line - math.fsum(line) / len(line)) / np.ptp(line)
        elif z.shape[1] == 1:
            line = z[:, 0]
        return cls(offsets, z, scale, middle, int(paired.any(axis=0).sum()), line)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def own(self, width: int) -> Floats:
        """What each unit takes of (a, b), [U, D]."""
        ones = np.ones((len(self.z), 1))
        return ones if width == 1 or self.line is None else np.column_stack([ones, self.line])

    def sums(self, values: Floats) -> Floats:
        """Sum over the units of each person, along the first axis."""
        return np.asarray(np.add.reduceat(values, self.offsets[:-1], axis=0))

    def repeated(self, values: Floats) -> Floats:
        """Return each person's values for each of their units."""
        return np.repeat(values, np.diff(self.offsets), axis=0)


class _Units(Protocol):
    """What units tell of their parameter: log-likelihoods at places away from what is fixed."""

    nodes: ClassVar[_Nodes]

    def values(self, fixed: Floats, away: Floats) -> Floats:
        """Log-likelihoods, [U, Q]."""

    def slopes(self, fixed: Floats, away: Floats) -> tuple[Floats, Floats]:
        """First derivative and minus the second, [U] each."""

    def expected(self, fixed: Floats, away: Floats, weight: Floats) -> Floats:
        """Derivatives in the fixed numbers, averaged over weighted places [U, Q]: [U, F]."""

    def beforehand(self, fixed: Floats) -> tuple[float, Floats]:
        """The log-density of the hyperprior of the fixed numbers, and its slopes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Choosing:
    """Log-likelihoods of log η: quintic splines through a table; fixed are the mean and the changes.

    ``pieces`` [U, G, 6] are the coefficients of each piece, the highest last. Posteriors may have shoulders,
    where somebody always took a best action: nodes are closer and reach farther.
    """

    nodes: ClassVar[_Nodes] = _Nodes(0.5, 9.0)

    grid: Floats
    pieces: Floats
    x: Floats
    middle: float

    @classmethod
    def of(cls, choices: Choices, z: Floats, rate: float, workers: int) -> _Choosing:
        wide = sensitivity_grid(choices.offsets, choices.q, spacing=SPACING)
        grid = np.arange(wide[0] - BEYOND, wide[-1] + BEYOND + TABLE_STEP, TABLE_STEP)
        table = over_chunks(
            choices, lambda part: (log_likelihoods(part.entries(), np.exp(grid), rate),), workers
        )[0]
        spline = interpolate.make_interp_spline(grid, table, k=5, axis=1)
        pieces = [spline(grid[:-1], nu=power) / math.factorial(power) for power in range(6)]
        middle = 0.5 * float(wide[0] + wide[-1])
        return cls(grid, np.stack(pieces, axis=-1), np.column_stack([np.ones(len(z)), z]), middle)

    def _at(self, fixed: Floats, away: Floats) -> tuple[Floats, Floats]:
        """The pieces that places fall on [U, Q, 6], and where on them [U, Q]."""
        base = (self.x * fixed).sum(axis=1)
        place = np.clip(base[:, None] + away, self.grid[0], self.grid[-1])
        piece = np.clip(((place - self.grid[0]) / TABLE_STEP).astype(np.int64), 0, len(self.grid) - 2)
        return self.pieces[np.arange(len(piece))[:, None], piece], place - self.grid[piece]

    def values(self, fixed: Floats, away: Floats) -> Floats:
        """Log-likelihoods, [U, Q]."""
        return _polynomial(*self._at(fixed, away))

    def slopes(self, fixed: Floats, away: Floats) -> tuple[Floats, Floats]:
        """First derivative and minus the second, [U] each."""
        piece, place = self._at(fixed, away[:, None])
        powers = np.arange(1, 6)
        once = piece[..., 1:] * powers
        twice = once[..., 1:] * powers[:-1]
        return _polynomial(once, place)[:, 0], -_polynomial(twice, place)[:, 0]

    def expected(self, fixed: Floats, away: Floats, weight: Floats) -> Floats:
        """Slopes in the mean and the changes, averaged over places, [U, F]."""
        piece, place = self._at(fixed, away)
        slope = (weight * _polynomial(piece[..., 1:] * np.arange(1, 6), place)).sum(axis=1)
        return np.asarray(slope[:, None] * self.x)

    def beforehand(self, fixed: Floats) -> tuple[float, Floats]:
        """The mean lies where choices tell anything, as in :mod:`fidm.fit.sensitivity`."""
        away = (fixed[0] - self.middle) / MIDDLE_SD
        return -0.5 * away**2, np.eye(len(fixed))[0] * (-away / MIDDLE_SD)


def _polynomial(coefficients: Floats, at: Floats) -> Floats:
    """Polynomials [..., n], the constant first, at their own places."""
    found = coefficients[..., -1]
    for power in range(coefficients.shape[-1] - 2, -1, -1):
        found = found * at + coefficients[..., power]
    return np.asarray(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Observing:
    """Log-likelihoods of θ in a channel; fixed are the coefficients and log shape, unless that is huge.

    ``share`` [U] is how much a unit counts where observations lean on those before.
    """

    nodes: ClassVar[_Nodes] = _Nodes(0.75, 7.5)

    channel: Channel
    data: Observed
    shape: float
    share: Floats
    has_shape: bool

    @classmethod
    def of(cls, channel: Channel, data: Observed, shape: float, carried: float) -> _Observing:
        has_shape = bool(channel.shape_name) and shape < HUGE_SHAPE
        return cls(channel, data, shape, own_share(data.counts, carried), has_shape)

    def _fixed(self, fixed: Floats) -> tuple[Floats, float]:
        """ξ of the average person, and the shape."""
        width = len(self.data.x)
        shape = math.exp(min(fixed[width], math.log(LARGEST_SHAPE))) if self.has_shape else self.shape
        return self.data.predictor(fixed[:width]), shape

    def _blocks(self, base: Floats, away: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some places at a time: which, and observations and predictors there, one place after the other."""
        size = max(1, AT_ONCE // len(base))
        for first in range(0, away.shape[1], size):
            some = slice(first, min(first + size, away.shape[1]))
            xi = base + np.repeat(away[:, some].T, self.data.counts, axis=1)
            yield some, np.tile(self.data.y, len(xi)), xi.ravel()

    def values(self, fixed: Floats, away: Floats) -> Floats:
        """Log-likelihoods, [U, Q]."""
        (base, shape), begins = self._fixed(fixed), self.data.offsets[:-1]
        found = np.empty(away.shape)
        for some, y, xi in self._blocks(base, away):
            with np.errstate(over="ignore"):
                varying = self.channel.varying(y, xi, shape).reshape(-1, len(base))
            found[:, some] = np.add.reduceat(varying, begins, axis=1).T
        constant = np.add.reduceat(self.channel.fixed(self.data.y, shape), begins)
        return np.asarray(self.share[:, None] * (found + constant[:, None]))

    def slopes(self, fixed: Floats, away: Floats) -> tuple[Floats, Floats]:
        """First derivative and minus the second, [U] each."""
        (base, shape), data = self._fixed(fixed), self.data
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.channel.slopes(data.y, base + np.repeat(away, data.counts), shape)
        first, bend = (self.share * person_sums(one, data.offsets) for one in found)
        return first, bend

    def expected(self, fixed: Floats, away: Floats, weight: Floats) -> Floats:
        """Slopes in coefficients and log shape, averaged over places, [U, F]."""
        (base, shape), data = self._fixed(fixed), self.data
        score, stretch = np.zeros(len(base)), np.zeros(len(base))
        for some, y, xi in self._blocks(base, away):
            counted = np.repeat((weight[:, some] * self.share[:, None]).T, data.counts, axis=1)
            score += (counted * self.channel.slopes(y, xi, shape)[0].reshape(counted.shape)).sum(axis=0)
            if self.has_shape:
                found = self.channel.shape_slope(y, xi, shape).reshape(counted.shape)
                stretch += (counted * found).sum(axis=0)
        columns = [score * column for column in data.x] + [stretch] * self.has_shape
        return np.stack([person_sums(column, data.offsets) for column in columns], axis=1)

    def beforehand(self, fixed: Floats) -> tuple[float, Floats]:
        """The shape of counts, as in :mod:`fidm.fit.plausible`."""
        slope = np.zeros(len(fixed))
        if not self.has_shape or self.channel.lowest is None:
            return 0.0, slope
        value, slope[-1] = plausible.log_count_shape_prior(float(fixed[-1]))
        return value, slope


# ---------------------------------------------------------------------- the integral


@dataclass(frozen=True, slots=True, eq=False)
class _Posterior:
    """Everybody's log marginal likelihood [P], its slopes [P, F], and mean and covariance of (a, b)."""

    value: Floats
    slopes: Floats
    mean: Floats  # [P, D]
    covariance: Floats  # [P, D, D]

    @property
    def sd(self) -> Floats:
        """The posterior sd of a, [P]."""
        return np.sqrt(self.covariance[:, 0, 0])


def _integrated(units: _Units, people: _People, free: Floats, width: int) -> _Posterior:
    """Integrate everybody's likelihood over a, or over (a, b) where the width is 2.

    ``free`` are the fixed numbers, then log sd of a; or log sds of both and the atanh of their correlation.
    """
    fixed, sd, r = _parts(free, width)
    own = people.own(width)
    correlation = np.array([[1.0, r], [r, 1.0]])[:width, :width]
    pull = linalg.inv(correlation * np.outer(sd, sd))
    log_norm = -0.5 * width * math.log(2 * math.pi) - math.fsum(np.log(sd)) - 0.5 * math.log1p(-r * r)

    def log_density(places: Floats) -> tuple[Floats, Floats]:
        """At places of everybody's own [P, Q, D]: of the posterior [P, Q]; and where units are, [U, Q]."""
        away = (own[:, None, :] * people.repeated(places)).sum(axis=2)
        inside = people.sums(units.values(fixed, away))
        return inside + log_norm - 0.5 * np.einsum("pqi,ij,pqj->pq", places, pull, places), away

    centre, root = _modes(units, fixed, people, own, pull, log_density)
    nodes = units.nodes(width)
    for last in (False, True):
        places = centre[:, None] + np.einsum("pij,qj->pqi", root, nodes)
        density, away = log_density(places)
        top = density.max(axis=1)
        weight = np.exp(density - top[:, None])
        total = weight.sum(axis=1)
        weight /= total[:, None]
        mean = np.einsum("pq,pqi->pi", weight, places)
        from_mean = places - mean[:, None]
        covariance = np.einsum("pq,pqi,pqj->pij", weight, from_mean, from_mean)
        if not last:
            centre, root = mean, np.linalg.cholesky(covariance)
    volume = units.nodes.step**width * np.diagonal(root, axis1=1, axis2=2).prod(axis=1)
    second = (covariance + mean[:, :, None] * mean[:, None, :]) / np.outer(sd, sd)
    slopes = people.sums(units.expected(fixed, away, people.repeated(weight)))
    return _Posterior(
        top + np.log(total * volume),
        np.column_stack([slopes, _spread_slopes(second, r)]),
        mean,
        covariance,
    )


def _parts(free: Floats, width: int) -> tuple[Floats, Floats, float]:
    """The fixed numbers, the sds of a and b, and their correlation."""
    if width == 1:
        return free[:-1], np.exp(free[-1:]), 0.0
    return free[:-3], np.exp(free[-3:-1]), math.tanh(free[-1])


def _spread_slopes(second: Floats, r: float) -> Floats:
    """Slopes in log sds and the atanh of the correlation from second moments in units of sds [P, D, D]."""
    if second.shape[1] == 1:
        return second[:, 0, :] - 1
    a, b, both = second[:, 0, 0], second[:, 1, 1], second[:, 0, 1]
    rest = 1 - r * r
    turn = r + both - r * (a - 2 * r * both + b) / rest
    return np.column_stack([(a - r * both) / rest - 1, (b - r * both) / rest - 1, turn])


def _modes(
    units: _Units,
    fixed: Floats,
    people: _People,
    own: Floats,
    pull: Floats,
    log_density: Callable[[Floats], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Return about where everybody's posterior is highest [P, D], and a root of its covariance [P, D, D].

    By Newton steps that are halved until the density rises; each person's depend on their own data alone.
    """
    at = np.zeros((len(people), own.shape[1]))
    value, size, still = log_density(at[:, None])[0][:, 0], np.ones(len(at)), np.ones(len(at), np.bool_)
    bend = np.broadcast_to(pull, (len(at), *pull.shape)).copy()
    squares = own[:, :, None] * own[:, None, :]
    for _ in range(MOST_STEPS):
        first, curved = units.slopes(fixed, (own * people.repeated(at)).sum(axis=1))
        slope = people.sums(own * first[:, None]) - np.einsum("pj,ij->pi", at, pull)
        now = people.sums(squares * np.maximum(curved, 0.0)[:, None, None]) + pull
        bend = np.where(still[:, None, None], now, bend)
        step = np.linalg.solve(now, slope[..., None])[..., 0]
        to = at + size[:, None] * step
        reached = log_density(to[:, None])[0][:, 0]
        rises = still & (reached >= value - 1e-9 * np.maximum(1.0, np.abs(value)))
        at, value = np.where(rises[:, None], to, at), np.where(rises, reached, value)
        size = np.where(rises, 1.0, 0.5 * size)
        still = still & ((slope * step).sum(axis=1) > LEAST_GAIN)
        if not still.any():
            break
    return at, np.linalg.cholesky(np.linalg.inv(bend))


# ---------------------------------------------------------------------- the search


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The best free numbers, their posterior, and the curvature of what was maximised, [F, F]."""

    free: Floats
    posterior: _Posterior
    curvature: Floats

    @property
    def log_likelihood(self) -> float:
        return math.fsum(self.posterior.value)

    def covariance(self, factor: float, *, by_people: bool) -> Floats:
        """A factor times the sandwich by person, or else the model's own covariance where that is larger."""
        bread = np.asarray(linalg.pinv(self.curvature), dtype=np.float64)
        sandwich = factor * bread @ outer_product(self.posterior.slopes) @ bread.T
        return sandwich if by_people else no_less(sandwich, -bread)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The search for what people share in one parameter, and how it changes."""

    parameter: str
    units: _Units
    people: _People
    scale: float
    by_people: bool = False

    def changed(self, fixed: Floats, log_sd: float, own: slice) -> Changed:
        """Return the changes, which stand at ``own`` among the fixed numbers; the search begins at these."""
        log_sd = min(max(log_sd, math.log(SMALLEST_SD) + 1), math.log(LARGEST_SD) - 1)
        best, width, gain = self.maximise(np.append(fixed, log_sd), 1), 1, math.nan
        wider = None
        if self.people.line is not None:
            wider = self.maximise(np.array([*best.free, math.log(FIRST_SD), 0.0]), 2)
            gain = 2 * (wider.log_likelihood - best.log_likelihood)
            best, width = (wider, 2) if gain > 0 else (best, 1)
        fixed, sd, r = _parts(best.free, width)
        paired, scale = self.people.n_paired, self.people.scale
        spent = 1 if self.people.line is not None else len(scale)
        fixed_too = 1 if self.by_people else 0  # the mean is learned, too
        covariance = best.covariance(paired / (paired - spent - fixed_too), by_people=self.by_people)
        errors = np.sqrt(np.diag(covariance))
        log_sd_se = float(errors[len(fixed)])
        low = sd[0] * math.exp(-1.96 * log_sd_se)
        lines = self.own_lines(wider, own.start, covariance)
        return Changed(
            self.parameter,
            fixed[own] / scale,
            covariance[own, own] / np.outer(scale, scale),
            float(sd[0]),
            log_sd_se,
            told_apart(best.posterior.sd, float(sd[0]), float(low)),
            best.log_likelihood,
            len(self.people),
            len(best.free),
            float(max(paired - spent, 1)),
            slope_sd=float(sd[1] / scale[0]) if width == 2 else 0.0,
            log_slope_sd_se=float(errors[len(fixed) + 1]) if width == 2 else math.nan,
            correlation=r if width == 2 else math.nan,
            gain=gain,
            n_paired=paired,
            fixed=fixed,
            fixed_covariance=covariance[: len(fixed), : len(fixed)],
            middle=self.people.middle,
            scale=scale,
            own=lines[0],
            own_covariance=lines[1],
        )

    def own_lines(
        self, best: _Best | None, place: int, covariance: Floats
    ) -> tuple[Floats, Floats] | tuple[None, None]:
        """Everybody's level and change, with a covariance that holds doubt about their means, too.

        A person of whom little is known is as everybody: what moves the mean of all moves theirs by V Σ⁻¹,
        where V is the posterior covariance of (a, b) and Σ that of the population.
        """
        if best is None or len(self.people.scale) > 1:
            return None, None
        fixed, sd, r = _parts(best.free, 2)
        shared, some = covariance[np.ix_([0, place], [0, place])], best.posterior
        pull = linalg.inv(np.array([[1.0, r], [r, 1.0]]) * np.outer(sd, sd))
        drawn = some.covariance @ pull
        total = some.covariance + drawn @ shared @ np.swapaxes(drawn, 1, 2)
        return fixed[[0, place]] + some.mean, total

    def gradients(self, width: int) -> Gradients:
        """Everybody's log marginal likelihood and its slopes, as a function of the free numbers."""

        def found(free: Floats) -> tuple[Floats, Floats]:
            posterior = _integrated(self.units, self.people, free, width)
            return posterior.value, posterior.slopes

        return found

    def beforehand(self, free: Floats, width: int) -> tuple[float, Floats]:
        """The log-density of the hyperpriors, and its slopes."""
        slope, sds = np.zeros(len(free)), len(free) - (2 * width - 1)
        value, slope[:sds] = self.units.beforehand(free[:sds])
        for place in range(sds, sds + width):
            more, slope[place] = plausible.log_sd_prior(float(free[place]), self.scale)
            value += more
        if width == 2:  # the density 1 − r², in terms of the atanh
            value -= 4 * math.log(math.cosh(free[-1]))
            slope[-1] = -4 * math.tanh(free[-1])
        return value, slope

    def maximise(self, start: Floats, width: int) -> _Best:
        """Return where the posterior of the free numbers is highest; a search that runs away is led back."""
        gradients, n, sds = self.gradients(width), len(self.people), len(start) - (2 * width - 1)
        low, high = start - FARTHEST, start + FARTHEST
        low[sds : sds + width], high[sds : sds + width] = math.log(SMALLEST_SD), math.log(LARGEST_SD)
        low[sds + width :], high[sds + width :] = -LARGEST_ATANH, LARGEST_ATANH
        square = outer_product(gradients(start)[1]) + 1e-3 * n * np.eye(len(start))
        whiten = linalg.inv(linalg.cholesky(square)) * math.sqrt(n)  # columns of unit curvature per person

        def loss(z: Floats) -> tuple[float, Floats]:
            free = start + whiten @ z
            inside = np.clip(free, low, high)
            value, slopes = gradients(inside)
            before, lean = self.beforehand(inside, width)
            total = np.array([math.fsum(column) for column in slopes.T]) + lean
            beyond = free - inside
            lost = 0.5 * float(beyond @ beyond) - (math.fsum(value) + before) / n
            return lost, whiten.T @ (beyond - total / n)

        found = optimize.minimize(loss, np.zeros(len(start)), jac=True, method="BFGS", options={"gtol": NEAR})
        left = 0.5 * n * float(np.sum(np.square(found.jac)))
        if not np.isfinite(found.x).all() or not left < NEGLIGIBLE:
            raise FitError(
                f"after {found.nit} steps the log-likelihood of its change could still rise by about "
                f"{left:.1g}. Are there enough people, and do its values make sense?"
            )
        best = np.clip(start + whiten @ found.x, low, high)
        bend = bend_of(lambda free: self.beforehand(free, width), best)
        curvature = curvature_at(gradients, best, np.eye(len(best))) + bend
        return _Best(best, _integrated(self.units, self.people, best, width), curvature)
