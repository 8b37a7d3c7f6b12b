"""A few numbers per person, with their uncertainty and with what is to be said against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm.types import read_only

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

SENSITIVITY = "action_sensitivity"
"""The name of η in a profile."""

STATUSES = ("ok", "low_information", "few_observations", "at_zero", "at_edge", "no_maximum", "no_observation")
"""What can be said about an estimate; where several apply, the last of them is given.

- ``ok``: nothing to be said against it.
- ``low_information``: the data narrow it down little: a standard error above 100 % of η or above 1 for an
  effort offset, or a posterior whose sd is still above 80 % of the prior's.
- ``few_observations``: fewer than 20 choices, or fewer than 3 observed segments.
- ``at_zero``: the choices are together no better than chance, so the likelihood is highest at η = 0.
- ``at_edge``: all observations are at the edge of what is possible (every count zero), so the likelihood
  rises for ever and the maximum-likelihood estimate is infinite.
- ``no_maximum``: every choice was a best action, so η has no finite maximum, only a lower bound.
- ``no_observation``: there is nothing to estimate it from.
"""

OK, LOW_INFORMATION, FEW_OBSERVATIONS, AT_ZERO, AT_EDGE, NO_MAXIMUM, NO_OBSERVATION = range(7)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """How each person decides and what it costs them, with uncertainty.

    Parameters
    ----------
    participants : Series [P]
        Whose profile it is.
    parameters : tuple of str [K]
        ``action_sensitivity`` and the names of the effort channels.
    estimate, se, low, high : float array [P, K]
        The estimate, its standard error (``"mle"``) or posterior standard deviation (``"eb"``), and its
        interval. NaN where there is none.
    status : int array [P, K]
        An index into :data:`STATUSES`.
    n : int array [P, K]
        How many choices or segments it rests on.
    log_sensitivity, log_sensitivity_se : float array [P]
        The logarithm of η, the better scale for statistics, and its standard error.
    method, level
        How it was estimated, and the level of the intervals.
    prior_sd : float array [K]
        The spread of each parameter among people (log η first); NaN where none was learned.
    """

    participants: pl.Series
    parameters: tuple[str, ...]
    estimate: Floats
    se: Floats
    low: Floats
    high: Floats
    status: NDArray[np.int8]
    n: NDArray[np.int64]
    log_sensitivity: Floats
    log_sensitivity_se: Floats
    method: str
    level: float
    prior_sd: Floats

    def __post_init__(self) -> None:
        for name in ("estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @staticmethod
    def concat(profiles: Sequence[Profile]) -> Profile:
        """Put profiles made by one fit into one."""
        if not profiles:
            raise DataError("There are no profiles to put together.")
        first = profiles[0]
        arrays = ("estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se")
        return Profile(
            participants=pl.concat([profile.participants for profile in profiles]),
            parameters=first.parameters,
            **{name: np.concatenate([getattr(profile, name) for profile in profiles]) for name in arrays},
            method=first.method,
            level=first.level,
            prior_sd=first.prior_sd,
        )

    def __len__(self) -> int:
        return len(self.participants)

    def __getitem__(self, parameter: str) -> Floats:
        """Return everybody's estimate of one parameter, [P]."""
        if parameter not in self.parameters:
            raise DataError(f"There is no parameter {parameter!r}. There are: {', '.join(self.parameters)}.")
        return self.estimate[:, self.parameters.index(parameter)]

    @property
    def action_sensitivity(self) -> Floats:
        """Everybody's η, [P]."""
        return self[SENSITIVITY]

    @property
    def table(self) -> pl.DataFrame:
        """A table with one row per person and parameter, its estimate, se, low, high, status and n."""
        width = len(self.parameters)
        return pl.DataFrame(
            {
                "participant": self.participants.gather(np.repeat(np.arange(len(self)), width)),
                "parameter": pl.Series(list(self.parameters) * len(self), dtype=pl.Enum(self.parameters)),
                "estimate": _column(self.estimate),
                "se": _column(self.se),
                "low": _column(self.low),
                "high": _column(self.high),
                "status": _status(self.status.reshape(-1)),
                "n": self.n.reshape(-1),
            }
        )

    @property
    def wide(self) -> pl.DataFrame:
        """A table with one row per person, each estimate beside its ``_se``, ``_low``, ``_high``, ``_n``."""
        columns: dict[str, Any] = {"participant": self.participants}
        for k, name in enumerate(self.parameters):
            columns[name] = _column(self.estimate[:, k])
            columns[f"{name}_se"] = _column(self.se[:, k])
            columns[f"{name}_low"] = _column(self.low[:, k])
            columns[f"{name}_high"] = _column(self.high[:, k])
            columns[f"{name}_status"] = _status(self.status[:, k])
            columns[f"{name}_n"] = self.n[:, k]
        return pl.DataFrame(columns)

    def to_pandas(self, *, wide: bool = False) -> pd.DataFrame:
        """Return the table as a pandas DataFrame; needs pandas (``pip install 'fidm[pandas]'``)."""
        try:
            return (self.wide if wide else self.table).to_pandas()
        except ModuleNotFoundError as error:
            raise DataError(f"This needs {error.name}: pip install 'fidm[pandas]'.") from None

    def features(self, *, scale: Literal["log", "raw"] = "log") -> tuple[Floats, tuple[str, ...]]:
        """Return the estimates as a matrix [P, K] for further statistics, and the names of its columns.

        Parameters
        ----------
        scale : {"log", "raw"}
            ``"log"`` gives log η, whose distribution has no heavy tail; ``"raw"`` gives η as in the paper.
            Infinite and missing estimates are NaN.
        """
        if scale not in ("log", "raw"):
            raise DataError(f"scale is {scale!r}; it must be 'log' or 'raw'.")
        matrix = self.estimate.copy()
        names = self.parameters
        if scale == "log":
            matrix[:, 0] = self.log_sensitivity
            names = (f"log_{SENSITIVITY}", *names[1:])
        matrix[~np.isfinite(matrix)] = np.nan
        return matrix, names

    def summary(self) -> ProfileSummary:
        """Return the profile in a few lines, for a terminal or a notebook."""
        rows = []
        for k, name in enumerate(self.parameters):
            values = self.estimate[:, k]
            known = values[np.isfinite(values)]
            errors = self.log_sensitivity_se if k == 0 else self.se[:, k]
            errors = errors[np.isfinite(errors)]
            low, middle, high = np.quantile(known, (0.1, 0.5, 0.9)) if len(known) else (math.nan,) * 3
            spread = self.prior_sd[k]
            reliability = math.nan
            if self.method == "eb" and spread > 0 and len(errors):
                reliability = max(0.0, 1 - float(np.mean(errors**2)) / spread**2)
            rows.append(
                {
                    "parameter": name,
                    "median": middle,
                    "p10": low,
                    "p90": high,
                    "typical_error": float(np.median(errors)) if len(errors) else math.nan,
                    "reliability": reliability,
                    "ok": int((self.status[:, k] == OK).sum()),
                    **{
                        status: int((self.status[:, k] == code).sum())
                        for code, status in enumerate(STATUSES)
                        if code != OK
                    },
                }
            )
        return ProfileSummary(pl.DataFrame(rows), len(self), self.method, self.level)

    def __repr__(self) -> str:
        return f"Profile({len(self):,} participants × {', '.join(self.parameters)}; method={self.method!r})"


@dataclass(frozen=True, slots=True, eq=False)
class ProfileSummary:
    """A profile in a few lines; prints as a table.

    Parameters
    ----------
    table : DataFrame
        One row per parameter: median, tenth and ninetieth percentile, typical error (of log η for the
        sensitivity), reliability (the share of the differences among people that the estimates account for;
        ``"eb"`` only) and how many people have each status.
    participants, method, level
        Of the profile.
    """

    table: pl.DataFrame
    participants: int
    method: str
    level: float

    def lines(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the header, the rows and the notes of the printed table."""
        header = ["parameter", "median", "80 % of people", "typical error", "reliability", "ok"]
        rows, notes = [], []
        for row in self.table.iter_rows(named=True):
            error = _number(row["typical_error"])
            if row["parameter"] == SENSITIVITY and math.isfinite(row["typical_error"]):
                error = f"{row['typical_error']:.0%}"
            rows.append(
                [
                    row["parameter"],
                    _number(row["median"]),
                    f"{_number(row['p10'])} to {_number(row['p90'])}",
                    error,
                    f"{row['reliability']:.2f}" if math.isfinite(row["reliability"]) else "–",
                    f"{row['ok']:,}",
                ]
            )
            said = [f"{row[status]:,} {status}" for status in STATUSES[1:] if row[status]]
            if said:
                notes.append(f"{row['parameter']}: {', '.join(said)}")
        return header, rows, notes

    def __str__(self) -> str:
        header, rows, notes = self.lines()
        widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
        how = {"eb": "empirical Bayes", "mle": "maximum likelihood"}.get(self.method, self.method)
        text = [f"{self.participants:,} participants, {how}, {self.level:.0%} intervals", ""]
        for line in [header, *rows]:
            cells = [
                line[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
            ]
            text.append("  ".join(cells).rstrip())
        if notes:
            text += ["", *notes]
        return "\n".join(text)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, rows, notes = self.lines()
        cell = "<td style='text-align: right'>{}</td>".format
        body = "".join(f"<tr><th>{row[0]}</th>{''.join(map(cell, row[1:]))}</tr>" for row in rows)
        head = "".join(f"<th>{name}</th>" for name in header)
        more = "".join(f"<br>{note}" for note in notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}{self.participants:,} participants{more}"


def _column(values: Floats) -> pl.Series:
    return pl.Series(np.ascontiguousarray(values).reshape(-1), nan_to_null=True)


def _status(codes: NDArray[np.int8]) -> pl.Series:
    names = np.array(STATUSES)
    return pl.Series(names[codes], dtype=pl.Enum(STATUSES))


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text
