r"""Positive amounts: how long something took, how large it was.

===========================  ==================================================  =========================
channel                      distribution                                        shape, setting
===========================  ==================================================  =========================
Gamma                        mean e^ξ, variance μ²/κ                             κ
LogNormal                    log y is normal around ξ                            standard deviation of log y
GeneralizedGamma             (y / e^ξ)^p is Gamma with mean 1                    κ, power p
Weibull                      (y / e^ξ)^k is exponential with mean 1              k
===========================  ==================================================  =========================

θ multiplies the whole distribution by e^θ: the median, the mean and every quantile; of amounts that begin at
``above``, what lies beyond it. e^ξ itself is the power mean (E y^p)^{1/p} of a generalised gamma (the mean
for p = 1, nearly the median near 0), and the 63rd percentile of a Weibull. The generalised gamma with p = 1
is Gamma, and as p approaches 0 it becomes log-normal; with κ = 1 it is Weibull.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fidm.errors import DataError
from fidm.model.channels import LARGEST, Channel, cut_exp, is_number, mean_of, person_sums
from fidm.types import Floats


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


def _stirling(kappa: float) -> tuple[float, float]:
    """κ log κ − κ − log Γ(κ) and its derivative in κ, by their series where κ is large."""
    if kappa < 50:
        return kappa * math.log(kappa) - kappa - float(special.gammaln(kappa)), math.log(kappa) - float(
            special.digamma(kappa)
        )
    r = 1 / kappa**2
    value = 0.5 * math.log(kappa / (2 * math.pi)) - (1 / 12 - r * (1 / 360 - r / 1260)) / kappa
    return value, (0.5 + (1 / 12 - r * (1 / 120 - r / 252)) / kappa) / kappa
