r"""Effort channels: how long, how much, how often, given how many moves a segment holds.

Every channel has one linear predictor per segment (paper, appendix "Effort likelihoods"),

.. math:: \xi = \alpha + \beta \log(1 + n) + \theta,

with n the segment's moves, α and β shared by everybody and θ the person's own. A channel says how an
observation y is distributed given ξ and, where it has one, a *shape* shared by everybody. Amounts are in
:mod:`fidm.model.amounts`, counts in :mod:`fidm.model.counts`. A new channel is one class
with the methods of :class:`Channel`; :func:`fidm.testing.check_channel` tests it. All arrays are vectors over
observations; ``shape`` is a number. Further numbers a distribution needs are *settings*: fields of its class,
which :func:`fidm.experiments.held_out.tuned` chooses by marginal likelihood, and a saved fit remembers.
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

from fidm.errors import DataError, FitError
from fidm.types import Floats

LOG_MOVES = "log_moves"
"""The name of the design column log(1 + n_moves)."""


NOT_SAVED = ("label", "unit", "rests_on")
"""The fields that say what a channel is called; they change no number, and a saved fit leaves them out."""

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
    label : str
        What it is called in figures and sentences, so that "is" can follow; by default its name.
    unit : str
        What an observation is counted in; empty where it has no unit.
    rests_on : str
        What its observations are, several of them: ``"segments"`` or ``"paused segments"``.
    """

    name: str
    column: str
    design: tuple[str, ...] = (LOG_MOVES,)
    label: str = field(default="", kw_only=True, repr=False, compare=False)
    unit: str = field(default="", kw_only=True, repr=False, compare=False)
    rests_on: str = field(default="segments", kw_only=True, repr=False, compare=False)

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
    """Settings that :func:`fidm.experiments.held_out.tuned` may choose, each with values to try, in order."""

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
        """Return the part of the log-density that depends on ξ.

        Here and in :meth:`slopes` there may also be a shape for each observation.
        """

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
        """Return what a saved fit has to know: the kind and every field but what it is called."""
        known = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in NOT_SAVED}
        return {"kind": self.kind, **known, "design": list(self.design)}


def is_number(value: object) -> bool:
    """Whether a setting is a number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def cut_exp(x: Floats) -> Floats:
    """e^x, cut off before it is too large for a number: searches look at such places and turn back."""
    return np.asarray(np.exp(np.minimum(x, LARGEST)))


def reached(y: Floats, *, below: bool) -> Floats:
    """Return the largest whole number that is at most y; with ``below``, the largest below y."""
    return np.asarray(np.ceil(y) - 1 if below else np.floor(y))


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
