"""A few numbers per person, with their uncertainty and with what is to be said against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.errors import DataError, count, one_of
from fidm.types import Floats, read_only

if TYPE_CHECKING:
    import pandas as pd


SENSITIVITY = "action_sensitivity"
"""The name of η in a profile."""

STATUSES = (
    "ok", "low_information", "few_observations", "moves_in_doubt", "near_chance", "at_zero", "at_random",
    "at_edge", "no_maximum", "alike", "longer_than_learned", "no_observation",
)  # fmt: skip
"""What can be said about an estimate; where several apply, the last of them is given.

- ``ok``: nothing to be said against it.
- ``low_information``: the data narrow it down little: a standard error above 100 % of η or above 1 for an
  effort offset, or a posterior whose sd is still above 80 % of the prior's; by ``"mle"`` any offset of effort
  in a channel that fewer than 10 people were observed in.
- ``few_observations``: fewer than 20 choices, or fewer than 3 observed segments.
- ``moves_in_doubt``: of the moves that an offset of effort is held against, over half were filled in by a
  planner or are in segments that await review.
- ``near_chance``: the choices do not exclude η = 0, which an interval by ``"eb"`` never shows unless the
  training part has people who choose at random. There it stands for ``no_maximum``, too, and for ``at_zero``
  of few choices.
- ``at_zero``: the choices are together no better than chance, so the likelihood is highest at η = 0.
- ``at_random``: the person probably chooses at random (``"eb"``, where the training part has such people).
- ``at_edge``: all observations are at the edge of what is possible (every count zero), so the likelihood
  rises for ever and the maximum-likelihood estimate is infinite.
- ``no_maximum``: every choice was a best action, so η has no finite maximum, only a lower bound.
- ``alike``: people differ too little in it to be told apart, so nobody has an estimate (``"eb"`` only).
- ``longer_than_learned``: every segment has far more moves than any that was learned from, so nothing is
  known of effort at that length, and there is no estimate.
- ``no_observation``: there is nothing to estimate it from, so there is no estimate.
"""

FEW_ACTIONS, FEW_SEGMENTS = 20, 3
"""Fewer choices, or fewer observed segments, are called few."""

FEWEST_FOR_SHARES = 10
"""Medians and tenths of people, places among them and reliabilities are given of so many people."""

PER_PERSON = (
    "estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se", "random",
    "n_steps", "n_inferred", "error_given_prior",
)  # fmt: skip
"""The arrays of a profile with a row per person."""

(
    OK, LOW_INFORMATION, FEW_OBSERVATIONS, MOVES_IN_DOUBT, NEAR_CHANCE, AT_ZERO, AT_RANDOM, AT_EDGE,
    NO_MAXIMUM, ALIKE, LONGER_THAN_LEARNED, NO_OBSERVATION,
) = range(len(STATUSES))  # fmt: skip

TOLD_APART = 0.1
"""A parameter whose estimates account for less of the differences among people is not estimated."""

NOT_ESTIMATED = (ALIKE, LONGER_THAN_LEARNED, NO_OBSERVATION)
"""The codes of statuses without an estimate."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """How each person decides and what it costs them, with uncertainty.

    Parameters
    ----------
    participants : Series [P]
        Whose profile it is.
    parameters : tuple of str [K]
        ``action_sensitivity`` and the names of the effort channels; those alone where effort was fitted
        without a task.
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
    prior_sd_range : float array [K, 2]
        How little and how much people may differ: a 95 % interval of that spread.
    n_steps, n_inferred : float array [P]
        How many steps of each person would count if none were inferred, and how many of these a planner
        filled in; NaN where the cohort does not say. Means over the groundings in an averaged profile.
    inferred : float
        How much an inferred move counted in the action likelihood.
    n_draws : int
        How many groundings the profile is averaged over (see :func:`fidm.fit.averaged.average_profiles`).
    grounding_share : float array [P, K] or None
        The share of the variance, of log η or θ, that comes from doubt about the grounding: 0 if all draws
        give the same estimate, near 1 if they differ by far more than the data of one leave open. NaN where
        not all draws have a finite estimate; None if the profile is not averaged.
    random : float array [P]
        How probable it is that the person chooses at random; 0 where the training part has no such people,
        NaN under ``"mle"``.
    error_given_prior : float array [P, K]
        The standard error of log η and θ if what people share were known: without the doubt about it that
        ``se`` has, which is nearly the same for everybody and so no doubt about differences among people.
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
    n_steps: Floats
    n_inferred: Floats
    inferred: float = 0.0
    n_draws: int = 1
    grounding_share: Floats | None = None
    random: Floats = field(default_factory=lambda: np.zeros(0))
    error_given_prior: Floats = field(default_factory=lambda: np.zeros(0))
    prior_sd_range: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.random):
            object.__setattr__(self, "random", np.full(len(self.participants), np.nan))
        if not len(self.error_given_prior):
            object.__setattr__(self, "error_given_prior", self.errors)
        if not len(self.prior_sd_range):
            object.__setattr__(self, "prior_sd_range", np.column_stack([self.prior_sd, self.prior_sd]))
        for name in PER_PERSON:
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if self.grounding_share is not None:
            object.__setattr__(self, "grounding_share", read_only(self.grounding_share))

    @staticmethod
    def concat(profiles: Sequence[Profile]) -> Profile:
        """Put profiles made by one fit into one."""
        if not profiles:
            raise DataError("There are no profiles to put together.")
        first = profiles[0]
        if len({(profile.inferred, profile.n_draws) for profile in profiles}) > 1:
            raise DataError(
                "These profiles count inferred moves differently, or are averaged over different numbers of "
                "groundings, so they do not belong together. Make them with one fit and as many draws."
            )
        shares = [profile.grounding_share for profile in profiles if profile.grounding_share is not None]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(profile, name) for profile in profiles]) for name in PER_PERSON
        }
        people = pl.concat([profile.participants for profile in profiles])
        share = np.concatenate(shares) if shares else None
        return replace(first, participants=people, grounding_share=share, **joined)

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
    def inferred_share(self) -> Floats:
        """The share of inferred moves among everybody's counted steps, [P]; NaN where it is not known."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.n_inferred / self.n_steps)

    @property
    def errors(self) -> Floats:
        """The standard errors of log η and θ, [P, K]."""
        errors = self.se.copy()
        if SENSITIVITY in self.parameters:
            errors[:, 0] = self.log_sensitivity_se
        return errors

    @property
    def reliability(self) -> Floats:
        """The share of the differences among people that the estimates account for, and its interval, [K, 3].

        By the model's own estimate: the mean of I / (I + 1/sd²) over people, where I is the information of a
        person's data about log η or θ and sd the spread among people. The ends of the 95 % interval are those
        of sd. NaN of fewer than 10 people, and under ``"mle"``.
        """
        found = np.full((len(self.parameters), 3), np.nan)
        for k, (errors, sd) in enumerate(zip(self.error_given_prior.T, self.prior_sd, strict=True)):
            known = errors[np.isfinite(errors)]
            if self.method == "eb" and sd > 0 and len(known) >= FEWEST_FOR_SHARES:
                point, *ends = (told_apart(known, sd, one) for one in (sd, *self.prior_sd_range[k]))
                found[k] = point, min(point, *ends), max(point, *ends)
        return found

    @property
    def shrinkage(self) -> Floats:
        """How much of each estimate is the prior's, [P, K]: 1 if the data say nothing, near 0 if they decide.

        It is the prior's share of the precision, 1 − I / (I + 1/sd²), where I is the information of the
        person's data about log η or θ and sd the spread among people; so it is the variance of the posterior
        given what people share over that of the prior, without what several groundings add to it.
        NaN where there is no estimate, and under ``"mle"``, which shrinks nothing.
        """
        if self.method != "eb":
            return np.full(self.se.shape, np.nan)
        own = 1.0 if self.grounding_share is None else 1 - self.grounding_share
        return np.minimum(own * (self.error_given_prior / self.prior_sd) ** 2, 1.0)

    @property
    def is_few(self) -> NDArray[np.bool_]:
        """Whether each estimate rests on few observations, whatever else is said of it, [P, K]."""
        least = [fewest(name) for name in self.parameters]
        return np.asarray((self.n < least) & ~np.isin(self.status, NOT_ESTIMATED))

    @property
    def table(self) -> pl.DataFrame:
        """A table with one row per person and parameter, its estimate, se, low, high, status and n.

        Of an averaged profile also the ``grounding_share``.
        """
        width = len(self.parameters)
        shares = {} if self.grounding_share is None else {"grounding_share": _column(self.grounding_share)}
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
                **shares,
            }
        )

    @property
    def wide(self) -> pl.DataFrame:
        """A table with one row per person, each estimate beside its ``_se``, ``_low``, ``_high``, ``_n``.

        ``inferred_share`` is the share of inferred moves among the person's counted steps, null where it is
        not known. An averaged profile also has the ``_grounding_share`` of each parameter.
        """
        columns: dict[str, Any] = {"participant": self.participants}
        for k, name in enumerate(self.parameters):
            columns[name] = _column(self.estimate[:, k])
            columns[f"{name}_se"] = _column(self.se[:, k])
            columns[f"{name}_low"] = _column(self.low[:, k])
            columns[f"{name}_high"] = _column(self.high[:, k])
            columns[f"{name}_status"] = _status(self.status[:, k])
            columns[f"{name}_n"] = self.n[:, k]
            if self.grounding_share is not None:
                columns[f"{name}_grounding_share"] = _column(self.grounding_share[:, k])
            if name == SENSITIVITY:
                columns[f"{name}_random"] = _column(self.random)
                columns["inferred_share"] = _column(self.inferred_share)
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
        one_of("scale", scale, ("log", "raw"))
        matrix = self.estimate.copy()
        names = self.parameters
        if scale == "log" and SENSITIVITY in names:
            matrix[:, 0] = self.log_sensitivity
            names = (f"log_{SENSITIVITY}", *names[1:])
        matrix[~np.isfinite(matrix)] = np.nan
        return matrix, names

    def summary(self) -> ProfileSummary:
        """Return the profile in a few lines, for a terminal or a notebook."""
        rows, shares = [], self.reliability[:, 0]
        for k, name in enumerate(self.parameters):
            values, errors = self.estimate[:, k], self.errors[:, k]
            known = values[~np.isnan(values)]  # an infinite estimate is larger than any other
            errors = errors[np.isfinite(errors)]
            low, middle, high = _quantiles(known)
            rows.append(
                {
                    "parameter": name,
                    "median": middle,
                    "p10": low,
                    "p90": high,
                    "typical_error": float(np.median(errors)) if len(errors) else math.nan,
                    "reliability": float(shares[k]),
                    "ok": int((self.status[:, k] == OK).sum()),
                    **{
                        status: int(
                            (
                                self.is_few[:, k] if code == FEW_OBSERVATIONS else self.status[:, k] == code
                            ).sum()
                        )
                        for code, status in enumerate(STATUSES)
                        if code != OK
                    },
                }
            )
        return ProfileSummary(pl.DataFrame(rows), len(self), self.method, self.level, self._notes())

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if moves := say_share_inferred(self.n_inferred, self.n_steps, self.inferred):
            notes.append(moves)
        if self.grounding_share is not None:
            known = [column[np.isfinite(column)] for column in self.grounding_share.T]
            said = [
                f"{name} {np.median(shares):.0%}"
                for name, shares in zip(self.parameters, known, strict=True)
                if len(shares)
            ]
            notes.append(
                f"averaged over {self.n_draws} groundings; median share of the variance that is theirs: "
                f"{', '.join(said) or 'unknown'}"
            )
        return tuple(notes)

    def __repr__(self) -> str:
        who = count(len(self), "participant")
        return f"Profile({who} × {', '.join(self.parameters)}; method={self.method!r})"


def say_share_inferred(n_inferred: Floats, n_steps: Floats, weight: float) -> str:
    """Return which share of everybody's moves is inferred, and how these count; empty where none is."""
    inferred = float(np.nansum(n_inferred))
    if not inferred:
        return ""
    how = f"counted with weight {weight:g} in action sensitivity"
    if weight in (0.0, 1.0):
        how = "left out of" if weight == 0.0 else "counted like any other in"
        how += f" action sensitivity (weight {weight:g})"
    share = 100 * inferred / float(np.nansum(n_steps))
    which = "count" if weight else "would count"
    return f"inferred moves: {share:.{0 if share >= 1 else 1}f} % of the moves that {which}, {how}"


def told_apart(se: Floats, sd: float, spread: float) -> float:
    """Return which share of the differences among people estimates account for if they have this spread.

    ``se`` are posterior sds under a prior of the spread ``sd``; what the prior adds is taken out of them.
    """
    information = np.maximum(1 / np.square(se) - 1 / sd**2, 0.0)
    return float(np.mean(spread**2 * information / (1 + spread**2 * information)))


@dataclass(frozen=True, slots=True, eq=False)
class ProfileSummary:
    """A profile in a few lines; prints as a table.

    Parameters
    ----------
    table : DataFrame
        One row per parameter: median, tenth and ninetieth percentile, typical error (of log η for the
        sensitivity), reliability (the share of the differences among people that the estimates account for;
        ``"eb"`` only) and how many people have each status. Few observations are counted whatever else is
        said of the estimate.
    participants, method, level
        Of the profile.
    notes : tuple of str
        What is to be said of the profile as a whole: inferred moves, and groundings averaged over.
    """

    table: pl.DataFrame
    participants: int
    method: str
    level: float
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the header, the rows and the notes of the printed table."""
        header = ["parameter", "median", "80 % of people", "typical error", "reliability", "ok"]
        rows, notes = [], []
        for row in self.table.iter_rows(named=True):
            error = number_text(row["typical_error"])
            if row["parameter"] == SENSITIVITY:
                error = error_text(row["typical_error"])
            rows.append(
                [
                    row["parameter"],
                    number_text(row["median"]),
                    "–"
                    if math.isnan(row["p10"])
                    else f"{number_text(row['p10'])} to {number_text(row['p90'])}",
                    error,
                    f"{row['reliability']:.2f}" if math.isfinite(row["reliability"]) else "–",
                    f"{row['ok']:,}",
                ]
            )
            said = [f"{row[status]:,} {status}" for status in STATUSES[1:] if row[status]]
            if said:
                notes.append(f"{row['parameter']}: {', '.join(said)}")
        return header, rows, [*notes, *self.notes]

    def __str__(self) -> str:
        header, rows, notes = self.lines()
        widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
        how = {"eb": "empirical Bayes", "mle": "maximum likelihood"}.get(self.method, self.method)
        text = [f"{count(self.participants, 'participant')}, {how}, {self.level:.0%} intervals", ""]
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
        return f"{table}{count(self.participants, 'participant')}{more}"


def _quantiles(known: Floats) -> tuple[float, float, float]:
    """The tenth, fiftieth and ninetieth percentile; between a finite and an infinite value it is infinite.

    Fewer than ten people have no tenth of their number, and the one in the middle says little of the others.
    """
    if len(known) < FEWEST_FOR_SHARES:
        return math.nan, math.nan, math.nan
    shares = np.array([0.1, 0.5, 0.9])
    if np.isfinite(known).all():
        low, middle, high = np.quantile(known, shares)
    else:
        place = shares * (len(known) - 1)
        below, above = (np.sort(known)[end(place).astype(np.int64)] for end in (np.floor, np.ceil))
        part = place - np.floor(place)
        with np.errstate(invalid="ignore"):
            low, middle, high = np.where(below == above, below, (1 - part) * below + part * above)
    return float(low), float(middle), float(high)


def fewest(parameter: str) -> int:
    """Return how many choices, or observed segments, are no longer few for a parameter."""
    return FEW_ACTIONS if parameter == SENSITIVITY else FEW_SEGMENTS


def _column(values: Floats) -> pl.Series:
    return pl.Series(np.ascontiguousarray(values).reshape(-1), nan_to_null=True)


def _status(codes: NDArray[np.int8]) -> pl.Series:
    names = np.array(STATUSES)
    return pl.Series(names[codes], dtype=pl.Enum(STATUSES))


def error_text(relative: float) -> str:
    """Return a relative error in per cent, as summaries print it; beyond tenfold its size says nothing.

    Examples
    --------
    >>> from fidm.fit.profile import error_text
    >>> error_text(0.22), error_text(1e19), error_text(float("nan"))
    ('22%', '> 1000%', '–')
    """
    if not math.isfinite(relative):
        return number_text(relative)
    return f"{relative:.0%}" if relative <= 10 else "> 1000%"


def number_text(value: float) -> str:
    """Return a number as summaries print it.

    Examples
    --------
    >>> from fidm.fit.profile import number_text
    >>> number_text(26.53), number_text(-0.001), number_text(float("-inf")), number_text(float("nan"))
    ('26.5', '0.00', '-∞', '–')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "-∞"
    text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text
