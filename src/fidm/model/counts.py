r"""Counts, and whether something happened at all.

===========================  ==================================================  =========================
channel                      distribution                                        shape, setting
===========================  ==================================================  =========================
NegativeBinomial             mean e^ξ, variance μ + μ²/κ                         κ
Poisson                      mean e^ξ                                            none
Bernoulli                    P(y = 1) = 1 / (1 + e^−ξ)                           none
ShiftedNegativeBinomial      y − least is negative binomial with mean e^ξ        κ, least
TruncatedNegativeBinomial    negative binomial with mean e^ξ, given y ≥ 1        κ
ZeroInflatedNegativeBinomial 0 with probability π, else negative binomial        κ, extra_zeros π
ZeroInflatedPoisson          0 with probability π, else Poisson                  none, extra_zeros π
===========================  ==================================================  =========================

Below f₀ is the probability of a zero under the plain count, s = d log f₀ / dξ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from fidm.errors import DataError
from fidm.model import kernels
from fidm.model.channels import LARGEST, Channel, cut_exp, is_number, mean_of, person_sums, reached
from fidm.types import Floats


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
        return y * xi - np.maximum(xi, 0.0) - np.log1p(np.exp(-np.abs(xi)))  # twice as fast as logaddexp

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


def _by_count(y: Floats, function: Any) -> Floats:
    """Apply a costly function to counts, once per different count where that is cheaper."""
    if not len(y) or y.max() > max(10_000, len(y)):
        return np.asarray(function(y))
    return np.asarray(function(np.arange(y.max() + 1))[y.astype(np.intp)])


@dataclass(frozen=True)
class ShiftedNegativeBinomial(NegativeBinomial):
    """A count that cannot be below ``least``, such as the words of a turn; e^ξ is the mean of the rest."""

    least: int = 1

    kind: ClassVar[str] = "shifted_negative_binomial"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 0:
            raise DataError(f"least of {self.name} is {self.least!r}; it must be a whole number, 0 or more.")

    def observe(self, raw: Floats) -> Floats:
        return raw - self.least

    def record(self, y: Floats) -> Floats:
        return y + self.least

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        bad = ~np.isnan(raw) & ~((raw >= self.least) & (raw == np.round(raw)))
        return bad, f"must be a whole number, {self.least} or more"

    def mean(self, xi: Floats, shape: float) -> Floats:
        return self.least + np.exp(xi)

    def information(self, xi: Floats, shape: float) -> Floats:
        return self.slopes(np.exp(xi), xi, shape)[1]


@dataclass(frozen=True)
class TruncatedNegativeBinomial(NegativeBinomial):
    """A count that is never seen when it is zero, such as the words of those turns that have any."""

    kind: ClassVar[str] = "truncated_negative_binomial"
    lowest: ClassVar[float | None] = 1.0

    def wrong(self, raw: Floats) -> tuple[NDArray[np.bool_], str]:
        bad = ~np.isnan(raw) & ~((raw >= 1) & (raw == np.round(raw)))
        return bad, "must be a whole number, 1 or more"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return super().varying(y, xi, shape) - np.log(-np.expm1(_log_none(xi, shape)))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        score, information = super().slopes(y, xi, shape)
        slope, bend = _none_slopes(xi, shape)
        none = _log_none(xi, shape)
        some, odds = -np.expm1(none), 1 / np.expm1(-none)  # of any, and of none against any
        return score + odds * slope, information - odds * (bend + slope**2 / some)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        none = _log_none(xi, shape)
        total = shape + cut_exp(xi)
        of_none = shape * (np.log(shape) + 1 - np.log(total) - shape / total)
        return np.asarray(super().shape_slope(y, xi, shape) + of_none / np.expm1(-none))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        return None

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(np.exp(xi) / -np.expm1(_log_none(xi, shape)))

    def typical(self, xi: Floats, shape: float) -> Floats:
        """Return the mean if counts varied by chance alone, which no shape is needed for."""
        return np.asarray(np.exp(xi) / -np.expm1(-np.exp(xi)))

    def variance(self, xi: Floats, shape: float) -> Floats:
        mean, count = self.mean(xi, shape), np.exp(xi)
        return np.asarray(mean * (1 + count / shape + count) - mean**2)

    def information(self, xi: Floats, shape: float) -> Floats:
        return np.asarray((shape / (shape + np.exp(xi))) ** 2 * self.variance(xi, shape))

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        count = reached(y, below=below)
        more = special.betaincc(shape, np.maximum(count, 0.0) + 1, shape / (shape + cut_exp(xi)))
        return np.where(count < 1, 0.0, 1 - more / -np.expm1(_log_none(xi, shape)))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log1p(y) - np.log1p(self.typical(xi, 1.0))

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        found = super().sample(xi, shape, rng)
        none = np.flatnonzero(found == 0)
        beyond = -np.expm1(_log_none(xi[none], shape)) * rng.random(len(none))
        found[none] = np.maximum(stats.nbinom.isf(beyond, shape, shape / (shape + np.exp(xi[none]))), 1.0)
        return found


@dataclass(frozen=True)
class _ZeroInflated(Count):
    """Counts with more zeros than they would have by themselves."""

    extra_zeros: float = 0.1

    plain: ClassVar[Count]
    """The count as it would be by itself; only its distribution is asked for."""
    tunable: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "extra_zeros": (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7)
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.extra_zeros) and 0 <= self.extra_zeros < 1):
            raise DataError(
                f"extra_zeros of {self.name} is {self.extra_zeros!r}; it must be a number from 0 to below 1."
            )

    def _zeros(self, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        """The log-probability of a zero, and how likely a zero is one of the plain count."""
        plain = (1 - self.extra_zeros) * np.exp(_log_none(xi, self._kappa(shape)))
        return np.log(self.extra_zeros + plain), plain / (self.extra_zeros + plain)

    def _kappa(self, shape: float) -> float:
        return shape if self.plain.shape_name else math.inf

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return np.where(y == 0, self._zeros(xi, shape)[0], self.plain.varying(y, xi, shape))

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.where(y == 0, 0.0, self.plain.fixed(y, shape) + math.log1p(-self.extra_zeros))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        score, information = self.plain.slopes(y, xi, shape)
        slope, bend = _none_slopes(xi, self._kappa(shape))
        plain = self._zeros(xi, shape)[1]
        at_zero = -plain * ((1 - plain) * slope**2 + bend)
        return np.where(y == 0, plain * slope, score), np.where(y == 0, at_zero, information)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        found = self.plain.shape_slope(y, xi, shape)
        return np.where(y == 0, self._zeros(xi, shape)[1] * found, found)

    def predictor(self, y: Floats) -> float:
        return super().predictor(y) - math.log1p(-self.extra_zeros)

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray((1 - self.extra_zeros) * np.exp(xi))

    def variance(self, xi: Floats, shape: float) -> Floats:
        second = self.plain.variance(xi, shape) + np.exp(2 * xi)
        return np.asarray((1 - self.extra_zeros) * second - self.mean(xi, shape) ** 2)

    def information(self, xi: Floats, shape: float) -> Floats:
        kappa, mean = self._kappa(shape), np.exp(xi)
        none, slope = np.exp(_log_none(xi, kappa)), _none_slopes(xi, kappa)[0]
        plain = self._zeros(xi, shape)[1]
        return np.asarray(
            (1 - self.extra_zeros) * (mean / (1 + mean / kappa) - none * slope**2 * (1 - plain))
        )

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        plain = self.plain.cumulative(y, xi, shape, below=below)
        some = reached(y, below=below) >= 0
        return np.where(some, self.extra_zeros + (1 - self.extra_zeros) * plain, 0.0)

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log1p(y) - np.log1p(self.mean(xi, 1.0))

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        extra = rng.random(len(xi)) < self.extra_zeros
        return np.where(extra, 0.0, self.plain.sample(xi, shape, rng))


@dataclass(frozen=True)
class ZeroInflatedNegativeBinomial(_ZeroInflated):
    """A varying count with additional zeros; θ is about the counts, and the share of extra zeros is set."""

    kind: ClassVar[str] = "zero_inflated_negative_binomial"
    shape_name: ClassVar[str] = NegativeBinomial.shape_name
    plain: ClassVar[Count] = NegativeBinomial("count", "count")


@dataclass(frozen=True)
class ZeroInflatedPoisson(_ZeroInflated):
    """A count that varies by chance alone, with additional zeros whose share is set."""

    kind: ClassVar[str] = "zero_inflated_poisson"
    plain: ClassVar[Count] = Poisson("count", "count")


def _log_none(xi: Floats, kappa: float) -> Floats:
    """The log-probability of a zero, log f₀, of a negative binomial count; of a Poisson one if κ is ∞."""
    mean = cut_exp(xi)
    return -mean if np.isinf(kappa).all() else np.asarray(-kappa * np.log1p(mean / kappa))


def _none_slopes(xi: Floats, kappa: float) -> tuple[Floats, Floats]:
    """The first and the second derivative of log f₀ in ξ."""
    mean = cut_exp(xi)
    slope = -mean / (1 + mean / kappa)
    return slope, slope / (1 + mean / kappa)
