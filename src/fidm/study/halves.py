"""Which steps and segments of a person make up each of two halves, or each of two measurements.

Segments are dealt in turn, odd and even, and every step goes with its segment. In episodes whose steps do not
say which segment they belong to, runs of three counted steps are dealt instead. Whole episodes can be dealt
too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.model.channels import Channel
from fidm.model.effort import segment_owner_offsets
from fidm.study.structure import counted_steps
from fidm.tasks.stack import TaskSet

Flags = NDArray[np.bool_]

RUN = 3
"""How many counted steps are dealt at a time where steps do not name their segment."""


def deal_segments(tasks: TaskSet | None, cohort: Cohort) -> tuple[Flags, Flags, str]:
    """Which steps and which segments are in the odd half, and how that was decided."""
    person_start = segment_owner_offsets(cohort)
    owner = np.repeat(np.arange(len(cohort)), np.diff(person_start))
    odd_segment = (np.arange(cohort.n_segments) - person_start[owner]) % 2 == 0
    how = "split-half: odd against even segments"
    episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    segment = np.full(cohort.n_steps, -1, np.int32) if cohort.segment is None else cohort.segment
    linked = np.bincount(episode[segment >= 0], minlength=cohort.n_episodes) > 0
    odd = np.zeros(cohort.n_steps, np.bool_)
    if linked.any():
        place = cohort.segment_offsets[episode] + _filled_in(segment, cohort.step_offsets)
        odd = odd_segment[np.clip(place, 0, cohort.n_segments - 1)]
        how += ", each with its steps"
    alone = ~linked & (np.diff(cohort.step_offsets) > 0)
    if tasks is None or not alone.any():
        return odd, odd_segment, how
    odd = np.where(alone[episode], _runs(cohort, counted_steps(tasks, cohort) & alone[episode]), odd)
    where = f" of {int(alone.sum()):,} of {cohort.n_episodes:,} episodes" if linked.any() else ""
    how += (
        f"; steps{where} do not say which segment they belong to, so for sensitivity runs of {RUN} counted "
        "steps were dealt in turn"
    )
    return odd, odd_segment, how


def _runs(cohort: Cohort, counts: Flags) -> Flags:
    """Whether a step is in an odd run of those of its person that count."""
    edges = cohort.step_offsets[cohort.episode_offsets]
    before = np.append(0, np.cumsum(counts))
    index = before[:-1] - np.repeat(before[edges[:-1]], np.diff(edges))
    return np.asarray((index // RUN) % 2 == 0)


def _filled_in(segment: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every step's segment; a step without one goes with the step before it, or else with the first."""
    at = np.arange(len(segment))
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    last = np.maximum.accumulate(np.where(segment >= 0, at, -1))
    known = last >= starts
    return np.where(known, segment[np.maximum(last, 0)], 0).astype(np.int64)


def deal_episodes(cohort: Cohort) -> tuple[tuple[tuple[Flags, Flags], tuple[Flags, Flags]], str]:
    """Which steps and segments belong to the first and the second measurement, and how that was decided."""
    starts = np.repeat(cohort.episode_offsets[:-1], np.diff(cohort.episode_offsets))
    is_first = (np.arange(cohort.n_episodes) - starts) % 2 == 0
    steps = np.repeat(is_first, np.diff(cohort.step_offsets))
    segments = np.repeat(is_first, np.diff(cohort.segment_offsets))
    most = int(np.diff(cohort.episode_offsets).max())
    how = "first against second trace" if most == 2 else "odd against even traces; it is that of half of them"
    how = f"retest: {how}, {len(cohort):,} people with several"
    if len(cohort.tasks) > 1:
        how += "; traces are on different tasks, so the retest is one with parallel forms"
    return ((steps, segments), (~steps, ~segments)), how


def half_of(cohort: Cohort, channels: tuple[Channel, ...], steps: Flags, segments: Flags) -> Cohort:
    """The same people with only these steps and these segments' observations."""
    weight = np.ones(cohort.n_steps) if cohort.weight is None else cohort.weight
    names = {channel.column for channel in channels} & set(cohort.segments.columns)
    kept = pl.Series(segments)
    table = cohort.segments.with_columns(
        pl.when(kept).then(pl.col(name)).otherwise(None).alias(name) for name in sorted(names)
    )
    return replace(cohort, weight=np.where(steps, weight, 0.0), segments=table)
