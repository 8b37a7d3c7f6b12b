r"""Effort channels: how long, how much, how often, given how many moves a segment holds.

Every channel has one linear predictor per segment (paper, appendix "Effort likelihoods"),

.. math:: \xi = \alpha + \beta \log(1 + n) + \theta,

with n the segment's moves, α and β shared by everybody and θ the person's own. A channel says how an
observation y is distributed given ξ and, where it has one, a *shape* shared by everybody:

==================  =========================================  ===============================
channel             distribution                               shape
==================  =========================================  ===============================
Gamma               mean e^ξ                                   κ; variance μ²/κ
NegativeBinomial    mean e^ξ                                   κ; variance μ + μ²/κ
LogNormal           E[log y] = ξ                               standard deviation of log y
Poisson             mean e^ξ                                   none
Bernoulli           P(y = 1) = 1 / (1 + e^−ξ)                  none
==================  =========================================  ===============================

Amounts that begin at a limit, such as pauses counted from 0.25 s on, are given a setting ``above``: y − above
is then distributed so. More distributions are in :mod:`fidm.model.more_channels`. A new channel is one class
with the methods of :class:`Channel`; :func:`fidm.testing.check_channel` tests it. All arrays are vectors over
observations; ``shape`` is a number. Further numbers a distribution needs are *settings*: fields of its class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fidm.errors import DataError, FitError
from fidm.model import kernels

Floats = NDArray[np.float64]

LOG_MOVES = "log_moves"
"""The name of the design column log(1 + n_moves)."""


LARGEST = 700.0
"""Predictors beyond this stand for e^700: larger ones are no numbers any more."""


@dataclass(frozen=True)
class Channel(ABC):
    """One kind of effort observation and how it is distributed.

    Parameters
    ----------
    name : str
        What the person's parameter is called in a profile.
    column : str
        The column of the segments it is observed in.
    design : tuple of str
        What it is conditioned on: ``"log_moves"`` for log(1 + ``n_moves``), or names of columns of the
        segments. Text columns become one indicator per level but the first.
    """

    name: str
    column: str
    design: tuple[str, ...] = (LOG_MOVES,)

    kind: ClassVar[str]
    """The name of the distribution in saved fits."""
    shape_name: ClassVar[str] = ""
    """What the shape is called; empty where there is none."""
    lowest: ClassVar[float | None] = None
    """If all of a person's observations equal this, θ has no finite maximum below."""
    highest: ClassVar[float | None] = None
    """If all of a person's observations equal this, θ has no finite maximum above."""
    discrete: ClassVar[bool] = False
    """Whether observations are counts or yes and no, so that one value can be seen often."""
    tunable: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Settings that :func:`fidm.fit.tuning.tuned` may choose, each with values to try, in order."""

    def __post_init__(self) -> None:
        if not self.name or not self.column:
            raise DataError("A channel needs a name and the name of the column it is observed in.")
        if isinstance(self.design, str):
            raise DataError(
                f"design of {self.name} is the text {self.design!r}; it must be a tuple of names."
            )
        object.__setattr__(self, "design", tuple(self.design))

    def observe(self, raw: Floats) -> Floats:
        """Return the observations the density is about; NaN where there is nothing to observe."""
        return raw

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        """Return which recorded values cannot be, and what they must be; NaN is never wrong."""
        return np.zeros(len(raw), dtype=np.bool_), ""

    @abstractmethod
    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        """Return the part of the log-density that depends on ξ."""

    @abstractmethod
    def fixed(self, y: Floats, shape: float) -> Floats:
        """Return the rest of the log-density."""

    def log_density(self, y: Floats, xi: Floats, shape: float) -> Floats:
        """Return the log-density of observations."""
        return self.varying(y, xi, shape) + self.fixed(y, shape)

    @abstractmethod
    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        """Return the first derivative of the log-density in ξ, and minus the second."""

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        """Return the derivative of the log-density in log(shape)."""
        return np.zeros(len(y))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        """Return everybody's θ of highest likelihood and minus ℓ'' there, where there is a fast way to them.

        ``base`` is ξ without θ, and ``offsets`` cuts the observations into people. What is returned for
        people without observations, or with all of them at an edge, is not looked at. None, the default,
        leaves it to Newton steps with :meth:`slopes`.
        """
        return None

    @abstractmethod
    def predictor(self, y: Floats) -> float:
        """Return the ξ that suits these observations on average; only a place to start from."""

    @abstractmethod
    def mean(self, xi: Floats, shape: float) -> Floats:
        """Return the expected observation."""

    def typical(self, xi: Floats, shape: float) -> Floats:
        """Return what :meth:`residual` is relative to, in the units of the column; the mean by default."""
        return self.mean(xi, shape)

    def variance(self, xi: Floats, shape: float) -> Floats:
        """Return the variance of an observation as it is recorded; only dispersions ask for it."""
        raise FitError(
            f"The channel {self.name!r} does not say how much its observations vary. Write its method "
            "variance(xi, shape) to learn their dispersion."
        )

    def information(self, xi: Floats, shape: float) -> Floats:
        """Return the variance of the first of :meth:`slopes`, by which it becomes a standardised residual.

        By default minus the second derivative where the observation equals its mean, which is exact wherever
        that derivative is linear in the observation.
        """
        return self.slopes(self.mean(xi, shape), xi, shape)[1]

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        """Return the probability of an observation of at most y; with ``below``, of one below y.

        Quantile residuals need it; a channel that lacks it can be fitted all the same.
        """
        raise FitError(
            f"The channel {self.name!r} has no distribution function, which quantile residuals need. Write "
            "its method cumulative(y, xi, shape, *, below=False)."
        )

    @abstractmethod
    def residual(self, y: Floats, xi: Floats) -> Floats:
        """Return how far observations lie above what ξ leads one to expect, as the paper localises it."""

    @abstractmethod
    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        """Draw observations."""

    def record(self, y: Floats) -> Floats:
        """Return observations as they stand in the segments' column; undoes :meth:`observe`."""
        return y

    def to_dict(self) -> dict[str, Any]:
        """Return what a saved fit has to know: the kind and every field."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"kind": self.kind, **known, "design": list(self.design)}


@dataclass(frozen=True)
class Positive(Channel):
    """What all positive amounts share.

    ``zeros="left_out"`` takes a zero as nothing to observe: pauses are modelled where there is one.
    ``above`` is where amounts begin: where gaps count as pauses from 0.25 s on, no pause is shorter, and what
    is distributed is how much longer it is. Values between 0 and there are refused.
    """

    zeros: str = "refused"
    above: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeros not in ("refused", "left_out"):
            raise DataError(f"zeros of {self.name} is {self.zeros!r}; it must be 'refused' or 'left_out'.")
        if not (is_number(self.above) and 0 <= self.above < math.inf):
            raise DataError(f"above of {self.name} is {self.above!r}; it must be a number, 0 or more.")

    def observe(self, raw: Floats) -> Floats:
        return np.where(raw > self.above, raw - self.above, np.nan)

    def record(self, y: Floats) -> Floats:
        return y + self.above

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        known = ~np.isnan(raw)
        if self.zeros == "refused":
            said = f"must be above {self.above:g}; leave it empty where nothing was observed"
            return known & ~(raw > self.above), said
        said = f"must be 0, or above {self.above:g}" if self.above else "must be 0 or more"
        return known & ~((raw == 0) | (raw > self.above)), said

    def to_dict(self) -> dict[str, Any]:
        """Return what a saved fit has to know; where amounts begin only if it is not 0."""
        known = super().to_dict()
        return known if self.above else {name: value for name, value in known.items() if name != "above"}


@dataclass(frozen=True)
class Gamma(Positive):
    """A positive amount, such as the seconds spoken; its spread grows with its mean."""

    kind: ClassVar[str] = "gamma"
    shape_name: ClassVar[str] = "kappa"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return -shape * (xi + y * cut_exp(-xi))

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.asarray((shape - 1) * np.log(y) + (shape * np.log(shape) - special.gammaln(shape)))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        ratio = shape * y * cut_exp(-xi)
        return ratio - shape, ratio

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        constant = np.log(shape) + 1 - special.digamma(shape)
        return np.asarray(shape * (constant + np.log(y) - xi - y * cut_exp(-xi)))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        n = np.diff(offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(person_sums(y * np.exp(-base), offsets) / n), shape * n.astype(np.float64)

    def predictor(self, y: Floats) -> float:
        return math.log(mean_of(y))

    def mean(self, xi: Floats, shape: float) -> Floats:
        return self.above + np.exp(xi)

    def variance(self, xi: Floats, shape: float) -> Floats:
        return np.exp(2 * xi) / shape

    def information(self, xi: Floats, shape: float) -> Floats:
        return self.slopes(np.exp(xi), xi, shape)[1]

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        return np.asarray(special.gammainc(shape, shape * y * cut_exp(-xi)))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log(y) - xi

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.standard_gamma(shape, len(xi)) * (np.exp(xi) / shape))


@dataclass(frozen=True)
class Count(Channel):
    """What all counts share."""

    lowest: ClassVar[float | None] = 0.0
    discrete: ClassVar[bool] = True

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        bad = ~np.isnan(raw) & ~((raw >= 0) & (raw == np.round(raw)))
        return bad, "must be a whole number, 0 or more"

    def predictor(self, y: Floats) -> float:
        return math.log(max(mean_of(y), 0.5 / len(y)))

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.exp(xi)

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log1p(y) - np.log1p(np.exp(xi))


@dataclass(frozen=True)
class NegativeBinomial(Count):
    """A count that varies more than by chance alone, such as the characters spoken."""

    kind: ClassVar[str] = "negative_binomial"
    shape_name: ClassVar[str] = "kappa"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        log_total = np.log(shape + cut_exp(xi)) + np.maximum(xi - LARGEST, 0.0)
        return np.asarray(y * xi - (y + shape) * log_total)

    def fixed(self, y: Floats, shape: float) -> Floats:
        known = _by_count(y, lambda count: special.gammaln(count + shape) - special.gammaln(count + 1))
        return np.asarray(known - special.gammaln(shape) + shape * np.log(shape))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        mean = cut_exp(xi)
        pull = mean * (y + shape) / (shape + mean)
        return y - pull, pull * shape / (shape + mean)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        total = shape + cut_exp(xi)
        known = _by_count(y, lambda count: special.digamma(count + shape))
        constant = np.log(shape) + 1 - special.digamma(shape)
        return np.asarray(shape * (known + constant - np.log(total) - (y + shape) / total))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        theta, curvature = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
        kernels.negative_binomial_maximum(y, base, offsets, shape, theta, curvature)
        return theta, curvature

    def variance(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(np.exp(xi) * (1 + np.exp(xi) / shape))

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        count = reached(y, below=below)
        found = special.betainc(shape, np.maximum(count, 0.0) + 1, shape / (shape + cut_exp(xi)))
        return np.where(count < 0, 0.0, found)

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return rng.poisson(rng.standard_gamma(shape, len(xi)) * (np.exp(xi) / shape)).astype(np.float64)


@dataclass(frozen=True)
class Poisson(Count):
    """A count that varies by chance alone, such as the prompts an assessor gave."""

    kind: ClassVar[str] = "poisson"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return y * xi - cut_exp(xi)

    def fixed(self, y: Floats, shape: float) -> Floats:
        return -special.gammaln(y + 1)

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        mean = cut_exp(xi)
        return y - mean, mean

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        total = person_sums(y, offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(total / person_sums(np.exp(base), offsets)), total

    def variance(self, xi: Floats, shape: float) -> Floats:
        return np.exp(xi)

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        count = reached(y, below=below)
        return np.where(count < 0, 0.0, special.pdtr(np.maximum(count, 0.0), cut_exp(xi)))

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return rng.poisson(np.exp(xi)).astype(np.float64)


@dataclass(frozen=True)
class LogNormal(Positive):
    """A positive amount whose logarithm is normal, such as a response time."""

    kind: ClassVar[str] = "log_normal"
    shape_name: ClassVar[str] = "log_sd"

    def observe(self, raw: Floats) -> Floats:
        """Return the logarithm of the amount, since the density is normal in it."""
        return np.log(super().observe(raw))

    def record(self, y: Floats) -> Floats:
        return super().record(np.exp(y))

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return -0.5 * ((y - xi) / shape) ** 2

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.asarray(-y - (np.log(shape) + 0.5 * np.log(2 * np.pi)))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        return (y - xi) / shape**2, np.full(len(y), shape**-2)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return np.asarray(((y - xi) / shape) ** 2 - 1)

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        n = np.diff(offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            return person_sums(y - base, offsets) / n, n / shape**2

    def predictor(self, y: Floats) -> float:
        return mean_of(y)

    def mean(self, xi: Floats, shape: float) -> Floats:
        return self.above + np.exp(xi + 0.5 * shape**2)

    def typical(self, xi: Floats, shape: float) -> Floats:
        return self.above + np.exp(xi)

    def variance(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(np.expm1(shape**2) * np.exp(2 * xi + shape**2))

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        return np.asarray(special.ndtr((y - xi) / shape))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return y - xi

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return rng.normal(xi, shape)


@dataclass(frozen=True)
class Bernoulli(Channel):
    """Whether something happened at all, such as a pause: any positive amount counts as yes."""

    kind: ClassVar[str] = "bernoulli"
    lowest: ClassVar[float | None] = 0.0
    highest: ClassVar[float | None] = 1.0
    discrete: ClassVar[bool] = True

    def observe(self, raw: Floats) -> Floats:
        return np.where(np.isnan(raw), np.nan, (raw > 0).astype(np.float64))

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        return ~np.isnan(raw) & ~(raw >= 0), "must be 0 or more"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return y * xi - np.logaddexp(0.0, xi)

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.zeros(len(y))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        chance = special.expit(xi)
        return y - chance, chance * (1 - chance)

    def predictor(self, y: Floats) -> float:
        return float(special.logit(np.clip(mean_of(y), 0.5 / len(y), 1 - 0.5 / len(y))))

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(special.expit(xi))

    def variance(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(special.expit(xi) * special.expit(-xi))

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        count = reached(y, below=below)
        return np.where(count < 0, 0.0, np.where(count < 1, special.expit(-xi), 1.0))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.asarray(y - special.expit(xi))

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return (rng.random(len(xi)) < special.expit(xi)).astype(np.float64)


def paper_channels() -> tuple[Channel, ...]:
    """Return the channels of the paper: duration, characters, turns, pause, and whether there was a pause."""
    return (
        Gamma("duration", "duration_s"),
        NegativeBinomial("characters", "n_characters"),
        NegativeBinomial("turns", "n_turns"),
        LogNormal("pause", "pause_s", zeros="left_out"),
        Bernoulli("pause_presence", "pause_s"),
    )


def is_number(value: object) -> bool:
    """Whether a setting is a number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def cut_exp(x: Floats) -> Floats:
    """e^x, cut off before it is too large for a number: searches look at such places and turn back."""
    return np.asarray(np.exp(np.minimum(x, LARGEST)))


def reached(y: Floats, *, below: bool) -> Floats:
    """Return the largest whole number that is at most y; with ``below``, the largest below y."""
    return np.asarray(np.ceil(y) - 1 if below else np.floor(y))


def _by_count(y: Floats, function: Any) -> Floats:
    """Apply a costly function to counts, once per different count where that is cheaper."""
    if not len(y) or y.max() > max(10_000, len(y)):
        return np.asarray(function(y))
    return np.asarray(function(np.arange(y.max() + 1))[y.astype(np.intp)])


def person_sums(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the sum over each person's observations; 0 for a person who has none."""
    found = np.zeros(len(offsets) - 1)
    some = np.flatnonzero(offsets[1:] > offsets[:-1])
    if len(some):
        found[some] = np.add.reduceat(values, offsets[some])
    return found


def mean_of(y: Floats) -> float:
    """The mean, the same in whatever order the observations come."""
    return math.fsum(y) / len(y)
