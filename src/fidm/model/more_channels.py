r"""More effort channels, for data that the paper's families do not fit.

As in :mod:`fidm.model.channels`, ξ is the linear predictor. A distribution that needs a second number besides
its shape has it as a *setting*, a field of the class; :func:`fidm.fit.tuning.tuned` chooses it by marginal
likelihood, and a saved fit remembers it.

===========================  ==================================================  =========================
channel                      distribution                                        shape, setting
===========================  ==================================================  =========================
GeneralizedGamma             (y / e^ξ)^p is Gamma with mean 1                    κ, power p
Weibull                      (y / e^ξ)^k is exponential with mean 1              k
ShiftedNegativeBinomial      y − least is negative binomial with mean e^ξ        κ, least
TruncatedNegativeBinomial    negative binomial with mean e^ξ, given y ≥ 1        κ
ZeroInflatedNegativeBinomial 0 with probability π, else negative binomial        κ, extra_zeros π
ZeroInflatedPoisson          0 with probability π, else Poisson                  none, extra_zeros π
===========================  ==================================================  =========================

θ always multiplies by e^θ what e^ξ scales. Of amounts that is the whole distribution: the median, the mean
and every quantile are e^θ times as large; of amounts that begin at ``above``, what lies beyond it. e^ξ itself
is the power mean (E y^p)^{1/p} of a generalised gamma (the mean for p = 1, nearly the median for p near 0),
and the 63rd percentile of a Weibull.

The generalised gamma with p = 1 is Gamma, and as p approaches 0 it becomes log-normal; with κ = 1 it is
Weibull. Below f₀ is the probability of a zero under the plain count, s = d log f₀ / dξ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from fidm.errors import DataError
from fidm.model.channels import (
    LARGEST,
    Bernoulli,
    Channel,
    Count,
    Floats,
    Gamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    Positive,
    cut_exp,
    is_number,
    mean_of,
    person_sums,
    reached,
)

SMALLEST_POWER = 0.01
"""Powers nearer to 0 are refused: use :class:`LogNormal`."""


@dataclass(frozen=True)
class GeneralizedGamma(Positive):
    """A positive amount with a tail that can be set: y to a power is Gamma.

    ``power=1`` is Gamma; smaller powers have a heavier right tail, and near 0 it is log-normal. Negative
    powers have a heavier tail still; the mean is then infinite where κ is at most 1 / abs(power).
    """

    power: float = 1.0

    kind: ClassVar[str] = "generalized_gamma"
    shape_name: ClassVar[str] = "kappa"
    tunable: ClassVar[Mapping[str, tuple[float, ...]]] = {"power": (-1.0, -0.4, -0.1, 0.1, 0.4, 1.0, 2.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.power) and SMALLEST_POWER <= abs(self.power) < math.inf):
            raise DataError(
                f"power of {self.name} is {self.power!r}; it must be a number at least {SMALLEST_POWER} from "
                "0. In the limit of 0 the distribution is log-normal: use fidm.channels.LogNormal."
            )

    def _away(self, y: Floats, xi: Floats) -> Floats:
        """The logarithm of what is Gamma with mean 1, cut off before e to it is too large for a number."""
        return np.minimum(self.power * (np.log(y) - xi), LARGEST)

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        away = self._away(y, xi)  # written so that large shapes lose no digits
        return np.asarray(shape * (away - np.expm1(away)))

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.asarray(math.log(abs(self.power)) + _stirling(shape)[0] - np.log(y))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        away = self._away(y, xi)
        return shape * self.power * np.expm1(away), shape * self.power**2 * np.exp(away)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        away = self._away(y, xi)
        return np.asarray(shape * (_stirling(shape)[1] + away - np.expm1(away)))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        n = np.diff(offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.log(person_sums(np.exp(self._away(y, base)), offsets) / n) / self.power
        return theta, shape * self.power**2 * n

    def predictor(self, y: Floats) -> float:
        middle = mean_of(np.log(y))  # the power mean, without overflow
        return middle + math.log(mean_of(np.exp(self.power * (np.log(y) - middle)))) / self.power

    def _moment(self, order: int, shape: float) -> float:
        """The expectation of (y / e^ξ) to this order; ∞ where it is none, or too large for a number."""
        at = shape + order / self.power
        if at <= 0:
            return math.inf
        log = special.gammaln(at) - special.gammaln(shape) - order / self.power * math.log(shape)
        return math.exp(log) if log < LARGEST else math.inf

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(self.above + np.exp(xi) * self._moment(1, shape))

    def typical(self, xi: Floats, shape: float) -> Floats:
        return self.above + np.exp(xi)

    def variance(self, xi: Floats, shape: float) -> Floats:
        second = self._moment(2, shape)
        spread = second - self._moment(1, shape) ** 2 if math.isfinite(second) else math.inf
        return np.asarray(np.exp(2 * xi) * spread)

    def information(self, xi: Floats, shape: float) -> Floats:
        return np.full(len(xi), shape * self.power**2)

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        function = special.gammainc if self.power > 0 else special.gammaincc
        return np.asarray(function(shape, shape * np.exp(self._away(y, xi))))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log(y) - xi

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return np.asarray(np.exp(xi) * (rng.standard_gamma(shape, len(xi)) / shape) ** (1 / self.power))


@dataclass(frozen=True)
class Weibull(Positive):
    """A positive amount that ends at a rate which rises or falls with time, such as a waiting time."""

    kind: ClassVar[str] = "weibull"
    shape_name: ClassVar[str] = "k"

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return -shape * xi - cut_exp(shape * (np.log(y) - xi))

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.asarray(np.log(shape) + (shape - 1) * np.log(y))

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        pull = shape * cut_exp(shape * (np.log(y) - xi))
        return pull - shape, shape * pull

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        away = shape * (np.log(y) - xi)
        return np.asarray(1 + away - away * cut_exp(away))

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        n = np.diff(offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.log(person_sums(cut_exp(shape * (np.log(y) - base)), offsets) / n) / shape
        return theta, shape**2 * n

    def predictor(self, y: Floats) -> float:
        return math.log(mean_of(y))

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray(self.above + np.exp(xi) * special.gamma(1 + 1 / shape))

    def typical(self, xi: Floats, shape: float) -> Floats:
        return self.above + np.exp(xi)

    def variance(self, xi: Floats, shape: float) -> Floats:
        spread = special.gamma(1 + 2 / shape) - special.gamma(1 + 1 / shape) ** 2
        return np.asarray(np.exp(2 * xi) * spread)

    def information(self, xi: Floats, shape: float) -> Floats:
        return np.full(len(xi), shape**2)

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        return np.asarray(-np.expm1(-cut_exp(shape * (np.log(y) - xi))))

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log(y) - xi

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        return np.asarray(np.exp(xi) * rng.standard_exponential(len(xi)) ** (1 / shape))


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
    """Counts with more zeros than they would have by themselves; put before the plain count's class."""

    extra_zeros: float = 0.1

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
        return shape if self.shape_name else math.inf

    def varying(self, y: Floats, xi: Floats, shape: float) -> Floats:
        return np.where(y == 0, self._zeros(xi, shape)[0], super().varying(y, xi, shape))  # type: ignore[safe-super]

    def fixed(self, y: Floats, shape: float) -> Floats:
        return np.where(y == 0, 0.0, super().fixed(y, shape) + math.log1p(-self.extra_zeros))  # type: ignore[safe-super]

    def slopes(self, y: Floats, xi: Floats, shape: float) -> tuple[Floats, Floats]:
        score, information = super().slopes(y, xi, shape)  # type: ignore[safe-super]
        slope, bend = _none_slopes(xi, self._kappa(shape))
        plain = self._zeros(xi, shape)[1]
        at_zero = -plain * ((1 - plain) * slope**2 + bend)
        return np.where(y == 0, plain * slope, score), np.where(y == 0, at_zero, information)

    def shape_slope(self, y: Floats, xi: Floats, shape: float) -> Floats:
        found = super().shape_slope(y, xi, shape)
        return np.where(y == 0, self._zeros(xi, shape)[1] * found, found)

    def own_maximum(
        self, y: Floats, base: Floats, offsets: NDArray[np.int64], shape: float
    ) -> tuple[Floats, Floats] | None:
        return None

    def predictor(self, y: Floats) -> float:
        return super().predictor(y) - math.log1p(-self.extra_zeros)

    def mean(self, xi: Floats, shape: float) -> Floats:
        return np.asarray((1 - self.extra_zeros) * np.exp(xi))

    def variance(self, xi: Floats, shape: float) -> Floats:
        second = super().variance(xi, shape) + np.exp(2 * xi)
        return np.asarray((1 - self.extra_zeros) * second - self.mean(xi, shape) ** 2)

    def information(self, xi: Floats, shape: float) -> Floats:
        kappa, mean = self._kappa(shape), np.exp(xi)
        none, slope = np.exp(_log_none(xi, kappa)), _none_slopes(xi, kappa)[0]
        plain = self._zeros(xi, shape)[1]
        return np.asarray(
            (1 - self.extra_zeros) * (mean / (1 + mean / kappa) - none * slope**2 * (1 - plain))
        )

    def cumulative(self, y: Floats, xi: Floats, shape: float, *, below: bool = False) -> Floats:
        plain = super().cumulative(y, xi, shape, below=below)
        some = reached(y, below=below) >= 0
        return np.where(some, self.extra_zeros + (1 - self.extra_zeros) * plain, 0.0)

    def residual(self, y: Floats, xi: Floats) -> Floats:
        return np.log1p(y) - np.log1p(self.mean(xi, 1.0))

    def sample(self, xi: Floats, shape: float, rng: np.random.Generator) -> Floats:
        extra = rng.random(len(xi)) < self.extra_zeros
        return np.where(extra, 0.0, super().sample(xi, shape, rng))  # type: ignore[safe-super]


@dataclass(frozen=True)
class ZeroInflatedNegativeBinomial(_ZeroInflated, NegativeBinomial):
    """A varying count with additional zeros; θ is about the counts, and the share of extra zeros is set."""

    kind: ClassVar[str] = "zero_inflated_negative_binomial"


@dataclass(frozen=True)
class ZeroInflatedPoisson(_ZeroInflated, Poisson):
    """A count that varies by chance alone, with additional zeros whose share is set."""

    kind: ClassVar[str] = "zero_inflated_poisson"


KINDS: dict[str, type[Channel]] = {
    channel.kind: channel
    for channel in (
        Gamma,
        NegativeBinomial,
        Poisson,
        LogNormal,
        Bernoulli,
        GeneralizedGamma,
        Weibull,
        ShiftedNegativeBinomial,
        TruncatedNegativeBinomial,
        ZeroInflatedNegativeBinomial,
        ZeroInflatedPoisson,
    )
}
"""The channels a saved fit can name; channels of your own are handed to :func:`fidm.load_fit`."""


def _stirling(kappa: float) -> tuple[float, float]:
    """κ log κ − κ − log Γ(κ) and its derivative in κ, by their series where κ is large."""
    if kappa < 50:
        return kappa * math.log(kappa) - kappa - float(special.gammaln(kappa)), math.log(kappa) - float(
            special.digamma(kappa)
        )
    r = 1 / kappa**2
    value = 0.5 * math.log(kappa / (2 * math.pi)) - (1 / 12 - r * (1 / 360 - r / 1260)) / kappa
    return value, (0.5 + (1 / 12 - r * (1 / 120 - r / 252)) / kappa) / kappa


def _log_none(xi: Floats, kappa: float) -> Floats:
    """The log-probability of a zero, log f₀, of a negative binomial count; of a Poisson one if κ is ∞."""
    mean = cut_exp(xi)
    return -mean if math.isinf(kappa) else np.asarray(-kappa * np.log1p(mean / kappa))


def _none_slopes(xi: Floats, kappa: float) -> tuple[Floats, Floats]:
    """The first and the second derivative of log f₀ in ξ."""
    mean = cut_exp(xi)
    slope = -mean / (1 + mean / kappa)
    return slope, slope / (1 + mean / kappa)
