"""What is wrong with a cohort in the eyes of a model: its traces, and its effort observations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort, no_problems
from fidm.errors import DataError, Problem
from fidm.model.channels import LOG_MOVES, Channel
from fidm.model.effort import column_values, segment_owner_offsets
from fidm.tasks.stack import Followed, TaskSet, problem_rows, trace_problems


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
    remedy: str = "Repair them, or leave these people out with Model.check(cohort, strict=False).",
) -> None:
    """Raise if there are problems, with all of them."""
    if problems.height:
        rows, people = problems.height, problems["participant"].n_unique()
        raise DataError(
            f"{rows:,} row{'s' * (rows > 1)} of {people:,} participant{'s' * (people > 1)} cannot be used; "
            f"rows are counted as in the cohort. {remedy}",
            problems=[
                Problem(
                    row["problem"],
                    f"{row['table']}, row {row['row']}, {row['participant']}",
                    hint=row["hint"],
                )
                for row in problems.iter_rows(named=True)
            ],
        )
