"""Pairs of people with the same totals: one with segments as observed, one with merged ones and an offset.

The design of :func:`fidm.study.matching.matched`, which says what it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError
from fidm.fit.fitted import Fit
from fidm.model.channels import Channel, paper_channels, person_sums
from fidm.model.effort import column_values, segment_owner_offsets
from fidm.study.separate import FOLDS
from fidm.study.simulate import Truth
from fidm.study.structure import PRESENCE, counted_steps, redraw_choices, redraw_effort
from fidm.tasks.stack import TaskSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The structure all repetitions share.

    Parameters
    ----------
    tasks : TaskSet
        The tasks.
    separate, merged : Cohort
        The observed people with their own segments (A) and with merged ones (B).
    channels : tuple of Channel [C]
        The effort channels whose offsets are matched.
    truth : mapping of str to Truth
        Their population values.
    delta : float array [P, C]
        The offsets of B.
    """

    tasks: TaskSet
    separate: Cohort
    merged: Cohort
    channels: tuple[Channel, ...]
    truth: Mapping[str, Truth]
    delta: Floats

    @classmethod
    def of(cls, tasks: TaskSet, people: Cohort, fit: Fit) -> Pairs:
        """Pair people, each of whom made a choice, spoke a segment and moved (:func:`usable_people`)."""
        channels = tuple(channel for channel in fit.channels if channel.name != PRESENCE)
        separate = _bare_segments(people, channels)
        merged = merge_segments(separate)
        truth = {}
        for channel in fit.channels:
            shared = fit.populations[channel.name].population
            intercept, slope = map(float, shared.coefficients)
            truth[channel.name] = Truth(intercept, slope, shared.shape)
        apart, together = (expected_totals(cohort, channels, truth) for cohort in (separate, merged))
        return cls(tasks, separate, merged, channels, truth, np.log(apart / together))

    def draw(self, low: float, high: float, seed: tuple[int, int]) -> tuple[Cohort, Cohort]:
        """Draw A and B once."""
        found = []
        nothing = np.zeros_like(self.delta)
        for number, (cohort, eta, theta) in enumerate(
            ((self.separate, low, nothing), (self.merged, high, self.delta))
        ):
            own = (*seed, number)
            chosen = redraw_choices(self.tasks, cohort, np.full(len(cohort), eta), seed=own)
            found.append(redraw_effort(chosen, self.channels, self.truth, theta, seed=own))
        return found[0], found[1]


def merge_segments(cohort: Cohort) -> Cohort:
    """Merge neighbouring segments of each episode two by two, their moves added; an odd last one stays.

    What else stands in the segments is that of the first of two.
    """
    sizes = np.diff(cohort.segment_offsets)
    episode = np.repeat(np.arange(cohort.n_episodes), sizes)
    within = np.arange(cohort.n_segments) - cohort.segment_offsets[episode]
    table = (
        cohort.segments.with_columns(_episode=pl.Series(episode), _half=pl.Series(within // 2))
        .group_by("_episode", "_half", maintain_order=True)
        .agg(pl.exclude("n_moves").first(), pl.col("n_moves").sum())
        .select(cohort.segments.columns)
    )
    return _with_segments(cohort, table, offsets_of((sizes + 1) // 2))


def expected_totals(cohort: Cohort, channels: Sequence[Channel], truth: Mapping[str, Truth]) -> Floats:
    """Return everybody's expected total in every channel if their own offset were 0, [P, C]."""
    x = np.log1p(column_values(cohort.segments, "n_moves"))
    offsets = segment_owner_offsets(cohort)
    presence = {channel.column: channel for channel in paper_channels() if channel.name == PRESENCE}
    columns = []
    for channel in channels:
        own = truth[channel.name]
        each = channel.mean(own.intercept + own.slope * x, own.shape)
        if channel.column in presence and PRESENCE in truth:
            there = truth[PRESENCE]
            each = each * presence[channel.column].mean(there.intercept + there.slope * x, there.shape)
        columns.append(person_sums(each, offsets))
    return np.stack(columns, axis=1)


def usable_people(tasks: TaskSet, observed: Cohort) -> Cohort:
    """Return those of whom a pair can be made: they made a choice that counts, and moved in a segment."""
    if not observed.n_segments:
        raise DataError(
            "The observed people have no segments, and B differs from A in its segments. Give a study whose "
            "segments have duration_s, n_characters, n_turns or pause_s."
        )
    moves = np.nan_to_num(column_values(observed.segments, "n_moves"))
    moved = person_sums(moves, segment_owner_offsets(observed)) > 0
    steps = observed.step_offsets[observed.episode_offsets]
    chose = person_sums(counted_steps(tasks, observed).astype(np.float64), steps) > 0
    rows = np.flatnonzero(moved & chose)
    if not moved.any():
        raise DataError(
            "No segment of the observed people holds a movement, so nothing can be had per movement."
        )
    if len(rows) < FOLDS:
        raise DataError(
            f"{len(rows)} of {len(observed)} observed people made a choice that counts and have a segment "
            f"with movements; {FOLDS} folds need at least {FOLDS}."
        )
    return observed[rows]


def _bare_segments(cohort: Cohort, channels: Sequence[Channel]) -> Cohort:
    """The same people with the segments whose moves are known; every channel is to be drawn in each."""
    known = cohort.segments["n_moves"].is_not_null().to_numpy()
    kept = np.flatnonzero(known)
    table = cohort.segments[kept].select("segment", "n_moves")
    table = table.with_columns(**{channel.column: pl.lit(1.0) for channel in channels})
    before = np.append(0, np.cumsum(known))
    return _with_segments(cohort, table, before[cohort.segment_offsets])


def _with_segments(cohort: Cohort, segments: pl.DataFrame, offsets: NDArray[np.int64]) -> Cohort:
    return Cohort(
        participants=cohort.participants,
        episodes=cohort.episodes,
        episode_offsets=cohort.episode_offsets,
        step_offsets=cohort.step_offsets,
        state=cohort.state,
        action=cohort.action,
        end_state=cohort.end_state,
        segments=segments,
        segment_offsets=offsets,
        weight=cohort.weight,
        inferred=cohort.inferred,
    )
