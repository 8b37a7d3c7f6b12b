"""Effort observations of a cohort, laid out per channel: what was observed, given what, by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort, no_problems, offsets_of
from fidm.errors import DataError, Problem, listed, remedy
from fidm.model.amounts import Gamma, LogNormal
from fidm.model.channels import LOG_MOVES, Channel
from fidm.model.counts import Bernoulli, NegativeBinomial
from fidm.registry import CHANNELS
from fidm.tasks.stack import Followed, TaskSet, problem_rows, trace_problems
from fidm.types import Flags, Floats, Integers

Levels = Mapping[str, tuple[str, ...]]
"""The levels of each text column, as the training part showed them."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The observations of one channel, person after person, the missing ones left out."""

    y: Floats  # [m]: the observations
    x: Floats  # [p, m]: their design, one line per column, the intercept first
    offsets: Integers  # [P + 1]: where each person's observations begin
    row: Integers  # [m]: the segment each was observed in
    # [P, C]: covariates of the people that the mean of their offset depends on, if it does.
    known: Floats | None = None

    @property
    def counts(self) -> Integers:
        """How many observations each person has, [P]."""
        return np.diff(self.offsets)

    def predictor(self, coefficients: Floats) -> Floats:
        """Return ξ without the person's own offset, [m]; the same bits wherever an observation stands."""
        total = np.full(len(self.y), coefficients[0])
        for coefficient, column in zip(coefficients[1:], self.x[1:], strict=True):
            total += coefficient * column
        return total

    def without(self, people: Flags) -> Observed:
        """Return the same people, of whom these [P] have no observation."""
        kept = ~np.repeat(people, self.counts)
        counts = np.where(people, 0, self.counts)
        return Observed(self.y[kept], self.x[:, kept], offsets_of(counts), self.row[kept], self.known)

    def people(self, first: int, last: int) -> Observed:
        """Return the people in these rows."""
        low, high = self.offsets[first], self.offsets[last]
        return Observed(
            self.y[low:high],
            self.x[:, low:high],
            self.offsets[first : last + 1] - low,
            self.row[low:high],
            None if self.known is None else self.known[first:last],
        )


def far_longer(cohort: Cohort) -> tuple[Flags, float]:
    """Return whose every segment has far more moves than any of the others', and the most that these have.

    At most a tenth of the people are so, or one.
    """
    least, most = _least_and_most(cohort)
    some = np.flatnonzero(np.isfinite(least))
    order = some[np.argsort(-least[some], kind="stable")]
    found = np.zeros(len(cohort), dtype=np.bool_)
    rest = np.maximum.accumulate(most[order][::-1])[::-1]  # the most of everybody from here on
    for k in range(min(max(1, len(some) // 10), len(order) - 1), 0, -1):
        if least[order[k - 1]] > far(rest[k]):
            found[order[:k]] = True
            return found, float(rest[k])
    return found, float(rest[0]) if len(rest) else np.inf


def without_longer(
    channels: Sequence[Channel], effort: Sequence[Observed], cohort: Cohort, longest: float
) -> tuple[tuple[Observed, ...], list[Flags]]:
    """Return what was observed without people whose every segment is far longer, and who these are, [P].

    In channels that are conditioned on the moves nothing is known of effort at that length.
    """
    least, _ = _least_and_most(cohort)
    longer = np.isfinite(least) & (least > far(longest))
    of_each = [
        longer & (seen.counts > 0) & (LOG_MOVES in channel.design)
        for channel, seen in zip(channels, effort, strict=True)
    ]
    if not longer.any():
        return tuple(effort), of_each
    return tuple(seen.without(people) for seen, people in zip(effort, of_each, strict=True)), of_each


def far(moves: float) -> float:
    """Return above how many moves nothing is known of effort that was learned up to these."""
    return 1.5 * moves + 5


def _least_and_most(cohort: Cohort) -> tuple[Floats, Floats]:
    """The fewest and the most moves of everybody's segments, [P]; infinite where there are none."""
    least, most = np.full(len(cohort), np.inf), np.full(len(cohort), -np.inf)
    if "n_moves" in cohort.segments.columns:
        moves = column_values(cohort.segments, "n_moves")
        owner = np.repeat(np.arange(len(cohort)), np.diff(segment_owner_offsets(cohort)))
        known = np.isfinite(moves)
        np.minimum.at(least, owner[known], moves[known])
        np.maximum.at(most, owner[known], moves[known])
    return least, most


def inferred_moves(cohort: Cohort) -> Integers:
    """Return how many moves of each segment a planner filled in, [M]."""
    if cohort.inferred is None or cohort.segment is None:
        return np.zeros(cohort.n_segments, np.int64)
    filled_in = cohort.inferred & (cohort.segment >= 0)
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))[filled_in]
    rows = cohort.segment[filled_in] + cohort.segment_offsets[of_step]
    return np.bincount(rows, minlength=cohort.n_segments)


def awaits_review(cohort: Cohort) -> Flags:
    """Return whether each segment awaits review, [M]."""
    if "status" not in cohort.segments.columns:
        return np.zeros(cohort.n_segments, np.bool_)
    return np.asarray((cohort.segments["status"] == "needs_review").fill_null(False).to_numpy())


def doubtful_moves(cohort: Cohort) -> Floats:
    """Return how many moves of each segment are in doubt, [M].

    Those are that a planner filled in, unless a person looked at them, and all in segments that await review.
    """
    if "n_moves" not in cohort.segments.columns:
        return np.zeros(cohort.n_segments)
    moves, filled_in = column_values(cohort.segments, "n_moves"), inferred_moves(cohort)
    if "status" in cohort.segments.columns:
        seen = (cohort.segments["status"] == "reviewed").fill_null(False).to_numpy()
        filled_in = np.where(seen, 0, filled_in)
    return np.nan_to_num(np.where(awaits_review(cohort), moves, np.minimum(filled_in, moves)))


def in_doubt(cohort: Cohort, effort: Sequence[Observed]) -> list[Flags]:
    """Return, per channel, of whom over half of the moves are in doubt that effort is held against, [P]."""
    doubtful = doubtful_moves(cohort)
    if not doubtful.any():
        return [np.zeros(len(cohort), np.bool_)] * len(effort)
    moves, found = column_values(cohort.segments, "n_moves"), []
    for one in effort:
        owner = np.repeat(np.arange(len(cohort)), one.counts)
        of, n = (np.bincount(owner, values[one.row], minlength=len(cohort)) for values in (doubtful, moves))
        found.append(2 * of > n)
    return found


def segment_owner_offsets(cohort: Cohort) -> Integers:
    """Return where each person's segments begin, [P + 1]."""
    return cohort.segment_offsets[cohort.episode_offsets]


def design_names(channel: Channel, levels: Levels) -> tuple[str, ...]:
    """Return the names of a channel's coefficients, the intercept first."""
    names = ["intercept"]
    for column in channel.design:
        names += [f"{column}={level}" for level in levels[column][1:]] if column in levels else [column]
    return tuple(names)


def text_levels(channels: Sequence[Channel], cohort: Cohort) -> dict[str, tuple[str, ...]]:
    """Return the levels of every text column the channels are conditioned on."""
    found = {}
    for column in {column for channel in channels for column in channel.design}:
        if column in cohort.segments.columns and cohort.segments.schema[column] in _TEXT:
            values = cohort.segments[column].cast(pl.String).drop_nulls().unique().sort().to_list()
            found[column] = tuple(values)
    return found


ALMOST_NOTHING = 1e-10
"""A column whose values differ by less than this share of the largest is the same everywhere."""


def without_constants(
    channels: Sequence[Channel], cohort: Cohort
) -> tuple[tuple[Channel, ...], tuple[str, ...]]:
    """Return channels conditioned on what varies among these people's observations, and what was left out.

    A design column that is the same in all segments a channel is observed in is one with the intercept:
    nothing can be learned of it, so it leaves the design, whatever it is in other people.
    """
    found = []
    named: dict[tuple[str, ...], list[str]] = {}
    for channel in channels:
        same = _constants(channel, cohort.segments)
        if same:
            kept = tuple(column for column in channel.design if column not in same)
            channel = replace(channel, design=kept)
            named.setdefault(same, []).append(channel.name)
        found.append(channel)
    return tuple(found), tuple(_said_constant(names, same) for same, names in named.items())


def _said_constant(names: Sequence[str], columns: Sequence[str]) -> str:
    """What is said of channels that leave out design columns."""
    known = listed("n_moves" if column == LOG_MOVES else column for column in columns)
    are = "is" if len(names) == 1 else "are"
    same = "it is the same" if len(columns) == 1 else "they are the same"
    return (
        f"{listed(names)} {are} not conditioned on {known}: {same} in every segment that "
        f"{'it is' if len(names) == 1 else 'they are'} learned from. People with another value "
        "are estimated as if they had this one."
    )


def _constants(channel: Channel, segments: pl.DataFrame) -> tuple[str, ...]:
    """The design columns that are known and the same wherever a channel is observed, twice or more."""
    if not channel.design or not _is_number(segments, channel.column):
        return ()
    rows = np.flatnonzero(~np.isnan(channel.observe(column_values(segments, channel.column))))
    if len(rows) < 2:
        return ()
    return tuple(column for column in channel.design if _is_constant(segments, column, rows))


def _is_constant(segments: pl.DataFrame, column: str, rows: Integers) -> bool:
    """Whether a design column has one value in these rows; one that is missing somewhere has not."""
    name = "n_moves" if column == LOG_MOVES and LOG_MOVES not in segments.columns else column
    if name not in segments.columns:
        return False
    if segments.schema[name] in _TEXT:
        values = segments[name].gather(rows)
        return values.null_count() == 0 and values.n_unique() == 1
    if not _is_number(segments, name):
        return False
    numbers = column_values(segments, name)[rows]
    if not np.isfinite(numbers).all():
        return False
    return bool(np.ptp(numbers) <= ALMOST_NOTHING * np.abs(numbers).max())


def _is_number(segments: pl.DataFrame, column: str) -> bool:
    """Whether there is such a column, and it holds numbers."""
    if column not in segments.columns:
        return False
    kind = segments.schema[column]
    return kind.is_numeric() or kind in (pl.Boolean, pl.Null)


def observed(
    channels: Sequence[Channel], cohort: Cohort, levels: Levels, *, required: bool = True
) -> tuple[Observed, ...]:
    """Lay out the observations of every channel; what is missing is left out.

    Without ``required`` a cohort that lacks a channel's column has nothing to observe in it.
    """
    owner_offsets = segment_owner_offsets(cohort)
    designs: dict[tuple[str, ...], Floats] = {}
    found = []
    for channel in channels:
        if channel.column not in cohort.segments.columns and not required:
            width, nothing = len(design_names(channel, levels)), np.zeros(0, dtype=np.int64)
            empty = np.zeros(len(cohort) + 1, dtype=np.int64)
            found.append(Observed(np.zeros(0), np.zeros((width, 0)), empty, nothing))
            continue
        raw = column_values(cohort.segments, channel.column)
        if channel.design not in designs:
            designs[channel.design] = design_matrix(channel, cohort.segments, levels)
        found.append(_observed(channel, raw, designs[channel.design], owner_offsets, levels))
    return tuple(found)


def _observed(channel: Channel, raw: Floats, x: Floats, owner_offsets: Integers, levels: Levels) -> Observed:
    y = channel.observe(raw)
    missing = np.isnan(y)
    rows, before = np.arange(len(y)), owner_offsets
    if missing.any():
        rows = np.flatnonzero(~missing)
        y, x = y[rows], x[:, rows]
        before = np.searchsorted(rows, owner_offsets)
    lost = np.isnan(x).sum(axis=1)
    if lost.any():
        column = int(np.flatnonzero(lost)[0])
        name = design_names(channel, levels)[column]
        name = "n_moves" if name == LOG_MOVES else name
        raise DataError(
            f"{int(lost[column])} segments have a {channel.column} but no {name}, which {channel.name} is "
            f"conditioned on. Fill it in, or leave their {channel.column} empty."
        )
    return Observed(y, x, before.astype(np.int64), rows)


def column_values(segments: pl.DataFrame, column: str) -> Floats:
    """Return a column as numbers, NaN where it is missing."""
    if column not in segments.columns:
        known = ", ".join(repr(name) for name in segments.columns)
        raise DataError(f"The segments have no column {column!r}. They have: {known}.")
    series = segments[column]
    if not _is_number(segments, column):
        raise DataError(f"The column {column!r} of the segments holds {series.dtype}, not numbers.")
    values = series.cast(pl.Float64).to_numpy()
    return np.asarray(values, dtype=np.float64)


_TEXT = (pl.String, pl.Categorical, pl.Enum)


def design_matrix(channel: Channel, segments: pl.DataFrame, levels: Levels) -> Floats:
    """Return what a channel is conditioned on, a line per coefficient and NaN where it is missing, [p, M]."""
    columns = [np.ones(segments.height)]
    for column in channel.design:
        if column == LOG_MOVES and LOG_MOVES not in segments.columns:
            columns.append(np.log1p(column_values(segments, "n_moves")))
        elif column in levels:
            columns += _indicators(segments, column, levels[column])
        else:
            columns.append(column_values(segments, column))
    return np.stack(columns)


def _indicators(segments: pl.DataFrame, column: str, levels: tuple[str, ...]) -> list[Floats]:
    if column not in segments.columns:
        raise DataError(f"The segments have no column {column!r}.")
    text = segments[column].cast(pl.String)
    unseen = sorted(set(text.drop_nulls().unique().to_list()) - set(levels))
    if unseen:
        raise DataError(
            f"The column {column!r} has {len(unseen)} levels that the training part, with {len(levels)}, "
            "does not have."
        )
    missing = text.is_null().to_numpy()
    return [
        np.where(missing, np.nan, (text == level).fill_null(value=False).to_numpy().astype(np.float64))
        for level in levels[1:]
    ]


def make_channels(tables: Mapping[str, Mapping[str, Any]], *, source: str = "") -> tuple[Channel, ...]:
    """Make effort channels from tables: a kind, a column, and further settings of the kind's class.

    ``tables`` have, by the channel's name, its ``kind`` (a built-in one, one of an installed package, or
    ``"module:Class"``), ``column``, and any other field of the class. ``source`` is where they are from, for
    messages.

    Examples
    --------
    >>> make_channels({"gaze": {"kind": "poisson", "column": "n_gaze"}})
    (Poisson(name='gaze', column='n_gaze', design=('log_moves',)),)
    """
    made, problems = [], []
    for name, table in tables.items():
        settings = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        kind = settings.pop("kind", None)
        if not isinstance(kind, str) or "column" not in settings:
            problems.append(Problem("needs a kind and a column.", where=f"channels.{name}"))
            continue
        try:
            make: Any = CHANNELS.resolve(kind)
            made.append(make(name=name, **settings))
        except (DataError, TypeError) as error:
            problems.append(Problem(f"cannot be made: {error}", where=f"channels.{name}"))
    if problems:
        raise DataError("Effort channels cannot be used.", source=source, problems=problems)
    return tuple(made)


def paper_channels() -> tuple[Channel, ...]:
    """Return the channels of the paper: duration, characters, turns, pause, and whether there was a pause."""
    return (
        Gamma("duration", "duration_s", label="speech duration", unit="s"),
        NegativeBinomial("characters", "n_characters", label="character count", unit="characters"),
        NegativeBinomial("turns", "n_turns", label="turn count", unit="turns"),
        LogNormal(
            "pause",
            "pause_s",
            zeros="left_out",
            label="pause length",
            unit="s",
            rests_on="paused segments",
        ),
        Bernoulli("pause_presence", "pause_s", label="pause presence"),
    )


def cohort_problems(
    tasks: TaskSet, channels: Sequence[Channel], cohort: Cohort, followed: Followed
) -> pl.DataFrame:
    """Return every step and every segment the model cannot use, as a table of problems."""
    found = [trace_problems(tasks, cohort, followed), effort_problems(channels, cohort)]
    return pl.concat(found).unique(maintain_order=True)


def effort_problems(channels: Sequence[Channel], cohort: Cohort) -> pl.DataFrame:
    """Return every segment the channels cannot use, as a table of problems."""
    found = [no_problems()]
    owner_offsets = segment_owner_offsets(cohort)
    seen: set[tuple[str, int]] = set()
    for channel in channels:
        if channel.column not in cohort.segments.columns:
            continue
        raw = column_values(cohort.segments, channel.column)
        bad, must = channel.wrong(raw)
        bad = bad | np.isinf(raw)
        rows = [row for row in np.flatnonzero(bad).tolist() if (channel.column, row) not in seen]
        seen.update((channel.column, row) for row in rows)
        owner = np.searchsorted(owner_offsets, rows, side="right") - 1
        found.append(
            problem_rows(
                "segments",
                rows,
                cohort.ids.gather(owner),
                [f"{channel.column} is {raw[row]:g}." for row in rows],
                [f"It {must or 'must be a finite number'}." for _ in rows],
            )
        )
    found += [_design_problems(channel, cohort, owner_offsets) for channel in channels]
    return pl.concat(found).unique(maintain_order=True)


def _design_problems(channel: Channel, cohort: Cohort, owner_offsets: NDArray[np.int64]) -> pl.DataFrame:
    """Segments that were observed, but lack something the channel is conditioned on."""
    segments = cohort.segments
    rows: list[int] = []
    names: list[str] = []
    for column in channel.design if channel.column in segments.columns else ():
        name = "n_moves" if column == LOG_MOVES and LOG_MOVES not in segments.columns else column
        if name not in segments.columns:
            continue
        values = segments[name]
        missing = values.is_null()
        if values.dtype.is_float():
            missing |= values.is_nan().fill_null(value=False)
        if missing.any():
            y = channel.observe(column_values(segments, channel.column))
            lost = np.flatnonzero(~np.isnan(y) & missing.to_numpy()).tolist()
            rows += lost
            names += [name] * len(lost)
    owner = np.searchsorted(owner_offsets, rows, side="right") - 1
    return problem_rows(
        "segments",
        rows,
        cohort.ids.gather(owner),
        [f"{name} is missing, which {channel.name} is conditioned on." for name in names],
        [f"Fill it in, or leave {channel.column} empty." for _ in rows],
    )


def refuse(
    problems: pl.DataFrame,
    *,
    hint: str = "",
) -> None:
    """Raise if there are problems, with all of them, and how to get round them."""
    if problems.height:
        leave_out = remedy("Model.check(cohort, strict=False)", "--skip-bad")
        hint = hint or f"Repair them, or leave these people out with {leave_out}."
        rows, people = problems.height, problems["participant"].n_unique()
        raise DataError(
            f"{rows:,} row{'s' * (rows > 1)} of {people:,} participant{'s' * (people > 1)} cannot be used; "
            f"rows are counted as in the cohort. {hint}",
            problems=[
                Problem(
                    row["problem"],
                    f"{row['table']}, row {row['row']}, {row['participant']}",
                    hint=row["hint"],
                )
                for row in problems.iter_rows(named=True)
            ],
        )
