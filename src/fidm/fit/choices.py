"""Action sensitivity from choices between options whose values a lab knows already, without a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from fidm.cohort import offsets_of
from fidm.errors import DataError, FitError, Problem, count, one_of
from fidm.fit import sensitivity
from fidm.fit.common import action_status, default_lapse, threads, valid_lapse, valid_level
from fidm.fit.population import FEWEST_PEOPLE
from fidm.fit.profile import NO_OBSERVATION, STATUSES
from fidm.fit.sensitivity import Sensitivities, SensitivityPrior
from fidm.model.action import Choices, list_choices
from fidm.record import plain
from fidm.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class ChoicesFit:
    """How strongly value steers each person's choices, and how probable the choices are.

    Parameters
    ----------
    table : DataFrame
        One row per person in the order of first appearance: ``participant``, ``action_sensitivity``, ``se``,
        ``low``, ``high``, ``status`` (see :data:`fidm.fit.profile.STATUSES`), ``n`` and the log-likelihood of
        the choices: ``log_likelihood`` at the estimate, ``log_marginal`` averaged over the prior (null for
        ``"mle"``). An infinite ``action_sensitivity`` means that every choice was a best one; ``low`` is then
        a one-sided bound.
    prior : SensitivityPrior or None
        Mean and sd of log η among people, as learned; None for ``"mle"``.
    lapse, lapse_se : float
        The share of choices made at random, and its standard error (NaN where it was given, or is 0).
    method : str
        ``"mle"`` or ``"eb"``.
    level : float
        The level of the intervals.
    """

    table: pl.DataFrame
    prior: SensitivityPrior | None
    lapse: float
    lapse_se: float
    method: str
    level: float

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of everybody's choices at their estimates."""
        return math.fsum(self.table["log_likelihood"])

    @property
    def log_marginal(self) -> float | None:
        """The log-likelihood of everybody's choices averaged over the prior; None for ``"mle"``."""
        return None if self.prior is None else math.fsum(self.table["log_marginal"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; infinite and unknown numbers are None."""
        prior = None
        if self.prior is not None:
            names = {"log_mean": "mean", "log_sd": "sd", "log_mean_se": "mean_se", "log_sd_se": "sd_se"}
            prior = {name: getattr(self.prior, own) for name, own in names.items()}
            prior["at_random"] = self.prior.random
        said = {
            "method": self.method,
            "level": self.level,
            "lapse": self.lapse,
            "lapse_se": self.lapse_se,
            "prior": prior,
            "log_likelihood": self.log_likelihood,
            "log_marginal": self.log_marginal,
            "participants": self.table,
        }
        return {name: plain(value) for name, value in said.items()}

    def __repr__(self) -> str:
        n = int(self.table["n"].sum())
        prior = (
            "" if self.prior is None else f", log η {self.prior.mean:.2f} ± {self.prior.sd:.2f} among people"
        )
        return (
            f"ChoicesFit({count(self.table.height, 'participant')}, {count(n, 'choice')}; "
            f"method={self.method!r}, lapse rate {self.lapse:.3g}{prior}; "
            f"log-likelihood {self.log_likelihood:.2f})\n{self.table}"
        )


def fit_choices(
    option_values: ArrayLike | Sequence[Sequence[float]],
    chosen: ArrayLike,
    participant: ArrayLike | None = None,
    *,
    method: Literal["mle", "eb"] = "mle",
    lapse: float | Literal["estimate"] | None = None,
    level: float = 0.95,
    workers: int | None = None,
) -> ChoicesFit:
    """Estimate how strongly value steers each person's choices.

    Choices are softmax(η · values) among the options that were offered.

    Parameters
    ----------
    option_values : float array [n, options], or n rows of different lengths
        The value of every option of every choice; NaN or -inf where an option was not offered.
    chosen : int array [n]
        The index of the option that was chosen.
    participant : array [n], optional
        Whose choice it was; one person if left out. The rows may come in any order.
    method : {"mle", "eb"}
        Maximum likelihood, or shrunk by a log-normal prior learned from all the people.
    lapse : float or "estimate", optional
        The share of choices made at random. Left out, ``"eb"`` estimates it and ``"mle"`` takes 0.
    level : float
        The level of the intervals.
    workers : int, optional
        Threads; changes no number.

    Examples
    --------
    >>> import fidm
    >>> values = [[1.0, 0.0], [0.5, 0.0], [0.0, 0.2], [1.0, 0.8]]
    >>> found = fidm.fit_choices(values, [0, 0, 0, 1])
    >>> found.table.select("action_sensitivity", "status").rows()
    [(2.08..., 'near_chance')]
    >>> round(found.log_likelihood, 2)
    -2.27
    """
    one_of("method", method, ("mle", "eb"), FitError)
    valid_level(level)
    rate = valid_lapse(default_lapse(lapse, method))
    offsets, q, pair = _rows(option_values, chosen)
    scale = _scale(offsets, q)  # what counts as a tie is relative to how far values lie apart
    q = q / scale
    names, owner = _people(participant, len(pair))
    order = np.argsort(owner, kind="stable")
    choices = list_choices(
        offsets,
        q,
        offsets_of(np.bincount(owner, minlength=len(names))),
        order.astype(np.int32),
        pair[order].astype(np.int32),
        np.zeros(0),
        np.ones(len(offsets) - 1, dtype=np.bool_),
    )
    found = _estimate(choices, method, rate, level, threads(workers))
    action = found.action
    status = action_status(
        action, choices.n_choices, action.log_se, 1.0 if found.prior is None else 0.8 * found.prior.sd
    )
    columns = {name: getattr(action, name).copy() for name in ("estimate", "se", "low", "high")}
    for values in columns.values():
        values[status == NO_OBSERVATION] = np.nan
    table = pl.DataFrame(
        {
            "participant": names,
            "action_sensitivity": pl.Series(columns["estimate"] / scale, nan_to_null=True),
            "se": pl.Series(columns["se"] / scale, nan_to_null=True),
            "low": pl.Series(columns["low"] / scale, nan_to_null=True),
            "high": pl.Series(columns["high"] / scale, nan_to_null=True),
            "status": pl.Series(np.array(STATUSES)[status], dtype=pl.Enum(STATUSES)),
            "n": choices.n_choices,
            "log_likelihood": sensitivity.values_at(choices, columns["estimate"], found.lapse),
            "log_marginal": pl.Series(found.marginal, dtype=pl.Float64, nan_to_null=True),
        }
    )
    prior = None if found.prior is None else _in_units(found.prior, scale)
    return ChoicesFit(table, prior, found.lapse, found.lapse_se, method, level)


def _in_units(prior: SensitivityPrior, scale: float) -> SensitivityPrior:
    """A prior of η times the scale, as one of η."""
    others = prior.plausible
    if others is not None:
        others = replace(others, mean=others.mean - math.log(scale))
    return replace(prior, mean=prior.mean - math.log(scale), plausible=others)


def _scale(offsets: NDArray[np.int64], q: Floats) -> float:
    """How far the options of a row typically lie apart."""
    some = np.flatnonzero(np.diff(offsets) > 0)
    if not len(some):
        return 1.0
    spread = np.maximum.reduceat(q, offsets[some]) - np.minimum.reduceat(q, offsets[some])
    spread = spread[spread > 0]
    return float(np.median(spread)) if len(spread) else 1.0


@dataclass(frozen=True, slots=True)
class _Estimated:
    """Everybody's η, the prior that was used, the lapse rate with its error, log marginal likelihoods."""

    action: Sensitivities
    prior: SensitivityPrior | None
    lapse: float
    lapse_se: float
    marginal: Floats


def _estimate(choices: Choices, method: str, lapse: float | None, level: float, workers: int) -> _Estimated:
    prior, rate, rate_se = None, 0.0 if lapse is None else lapse, math.nan
    if method == "eb" or lapse is None:
        if not len(choices.row):
            raise FitError(
                "No choice is between options of different value, so there is nothing to learn from."
            )
        people = int((np.diff(choices.person_offsets) > 0).sum())
        if people < FEWEST_PEOPLE:
            raise FitError(
                f"{people} people made a choice that tells something; {FEWEST_PEOPLE} are needed to learn "
                "how people differ. method='mle' without an estimated lapse needs one."
            )
        prior, rate, rate_se = sensitivity.learn_prior(choices, lapse=lapse, workers=workers)
    if method == "mle" or prior is None:
        action = sensitivity.maximum(choices, lapse=rate, level=level, workers=workers)
        return _Estimated(action, None, rate, rate_se, np.full(len(choices), np.nan))
    action, marginal = sensitivity.posterior(choices, prior, lapse=rate, level=level, workers=workers)
    return _Estimated(action, prior, rate, rate_se, marginal)


def _rows(option_values: Any, chosen: ArrayLike) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """The offered options laid end to end, where each row begins, and which one was chosen."""
    table = _table(option_values)
    picked = np.asarray(chosen)
    if picked.dtype.kind not in "iufb":
        raise DataError("chosen must hold whole numbers, the index of the option that was chosen.")
    if picked.shape != (len(table),):
        raise DataError(
            f"There are {len(table)} rows of option_values, but chosen has the shape {picked.shape}."
        )
    if not np.issubdtype(picked.dtype, np.integer):
        as_float = picked.astype(np.float64)
        if not (np.isfinite(as_float).all() and (as_float == np.round(as_float)).all()):
            raise DataError("chosen must hold whole numbers, the index of the option that was chosen.")
        picked = as_float.astype(np.int64)
    width = table.shape[1]
    offered = np.isfinite(table)
    problems = [
        Problem("an option is worth +inf.", f"row {i}") for i in np.flatnonzero((table == np.inf).any(axis=1))
    ]
    inside = (picked >= 0) & (picked < width)
    taken = np.zeros(len(table), dtype=np.bool_)
    taken[inside] = offered[np.flatnonzero(inside), picked[inside]]
    problems += [
        Problem(f"the option chosen is {picked[i]}, which was not offered.", f"row {i}")
        for i in np.flatnonzero(~taken)
    ]
    if problems:
        from_one = width > 1 and picked.min() == 1 and picked.max() == width
        asking = " Are options counted from 1? They must be counted from 0." if from_one else ""
        raise DataError(
            f"{len(problems)} choices cannot be used; rows are counted from 0.{asking}", problems=problems
        )
    sizes = offered.sum(axis=1)
    offsets = offsets_of(sizes)
    rank = np.cumsum(offered, axis=1) - 1
    pair = offsets[:-1] + rank[np.arange(len(table)), picked] if len(table) else np.zeros(0, np.int64)
    return offsets, table[offered], pair


def _table(option_values: Any) -> Floats:
    try:
        table = np.asarray(option_values, dtype=np.float64)
    except (ValueError, TypeError):
        try:
            rows = [np.asarray(row, dtype=np.float64).reshape(-1) for row in option_values]
        except (ValueError, TypeError):
            raise DataError("option_values must be rows of numbers, one row per choice.") from None
        table = np.full((len(rows), max((len(row) for row in rows), default=0)), np.nan)
        for i, row in enumerate(rows):
            table[i, : len(row)] = row
    if table.ndim != 2:
        raise DataError(f"option_values has the shape {table.shape}; expected (choices, options).")
    return table


def _names(participant: ArrayLike) -> pl.Series:
    if isinstance(participant, list | tuple):  # an array would make text of a missing name among texts
        given = np.empty(len(participant), dtype=object)
        given[:] = participant
        if all(isinstance(name, int | np.integer) for name in participant):
            given = np.asarray(participant)
    else:
        given = np.asarray(participant)
    if given.dtype.kind in "iufUb":
        return pl.Series(given)
    texts = [
        None if name is None or name != name or str(name) == "<NA>" else str(name) for name in given.tolist()
    ]
    return pl.Series(texts, dtype=pl.String)


def _people(participant: ArrayLike | None, n: int) -> tuple[pl.Series, NDArray[np.int64]]:
    if participant is None:
        return pl.Series([0]), np.zeros(n, dtype=np.int64)
    names = participant if isinstance(participant, pl.Series) else _names(participant)
    if len(names) != n:
        raise DataError(f"There are {n} choices, but participant has {len(names)} entries.")
    if names.dtype.is_float() and names.is_nan().any():
        raise DataError(f"{names.is_nan().sum()} choices have no participant.")
    if names.null_count():
        raise DataError(f"{names.null_count()} choices have no participant.")
    known = names.unique(maintain_order=True)
    places = pl.DataFrame({"participant": known}).with_row_index("place")
    owner = pl.DataFrame({"participant": names}).join(
        places, on="participant", how="left", maintain_order="left"
    )
    return known, owner["place"].to_numpy().astype(np.int64)
