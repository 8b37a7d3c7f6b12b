r"""Two kinds of people who look the same in sum, and what tells them apart (paper, appendix C.2).

Every person of a study gives a pair. Both members stand in the very situations the person was in and make
the same number of moves, but

- A chooses with the lower η, and their effort is drawn segment by segment as the study has it;
- B chooses with the higher η, and neighbouring segments are merged two by two, so B says more at a time.

Merged segments need less in sum, since the effort of a segment grows more slowly than its moves. B
therefore gets an offset in every channel,

.. math:: \delta_k = \log \frac{\sum_{u \in A} m_k(n_u)}{\sum_{u \in B} m_k(n_u)},

with m_k(n) the expected effort of a segment of n moves, after which the totals of A and B agree in
expectation (A's own offset is 0). Raw totals, and totals per movement, then cannot tell A from B; η and θ
can. What people share is learned from the study and used both to draw and to estimate; it is not learned
again from A and B.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError, remedy
from fidm.experiments import paper
from fidm.experiments.shared import FOLDS, cross_validated_auc
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY, Profile
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import column_values, paper_channels, segment_owner_offsets
from fidm.record import Record, hash_cohort
from fidm.simulate.cohort import Truth
from fidm.simulate.structure import (
    PRESENCE,
    counted_steps,
    learned_truth,
    people_like,
    redraw_choices,
    redraw_effort,
)
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Progress

FEATURES: Mapping[str, str] = {
    "raw": "raw totals",
    "per_movement": "totals per movement",
    "per_segment": "means per segment",
    "n_segments": "number of segments alone",
    "action": "action factor",
    "effort": "effort factors",
    "full": "all factors",
}
"""What the two kinds of people are told apart by, in words."""

PLAIN = ("per_segment", "n_segments")
"""Plain summaries the paper does not try."""

MATCHED = ("raw", "per_movement")
"""Summaries that agree in expectation."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The result of :func:`matched`.

    Parameters
    ----------
    record : Record
        How it came about.
    auc : DataFrame
        How well each kind of ``features`` tells A from B: mean and sd of the AUC over repetitions, and the
        ``paper``'s; null where it gives none.
    recovery : DataFrame
        Every recovered ``factor``: correlation ``r`` with the truth over A and B, ``direction`` (the share of
        pairs in which B's estimate is the higher), mean ``difference`` B − A and the true one (``meant``),
        with the paper's; ``left_out`` is the number of pairs without two finite estimates, which are left out
        of r and the difference; both are empty where that is more than half. All are means over repetitions.
    differences : DataFrame
        Standardized mean differences B − A of every matched ``summary`` and ``channel``: mean and largest
        absolute value over repetitions.
    n_pairs, n_left_out : int
        How many pairs there are, and how many people of the study give none: without a choice that counts,
        a segment or a movement.
    n_actions, n_segments, n_merged : float
        A person's mean number of choices, and of segments in A and in B.
    skipped : tuple of str
        Channels of the paper that the observed people have no observations of.
    """

    record: Record
    auc: pl.DataFrame
    recovery: pl.DataFrame
    differences: pl.DataFrame
    n_pairs: int
    n_left_out: int
    n_actions: float
    n_segments: float
    n_merged: float
    skipped: tuple[str, ...] = ()

    @property
    def largest_difference(self) -> float:
        """The largest absolute standardized mean difference of a summary and channel, over all repetitions.

        Differences of a summary are averaged over repetitions first. The paper does not say whether it does
        so; with 400 pairs, its 0.072 would be smaller than chance allows if it did not.
        """
        return float(np.max(np.abs(self.differences["mean"].to_numpy())))

    @property
    def largest_single_difference(self) -> float:
        """The largest absolute standardized mean difference in any one repetition."""
        return float(np.max(self.differences["largest"].to_numpy()))

    @property
    def chance_difference(self) -> float:
        """The standard error of a difference in one repetition, if members of a pair share nothing."""
        return float(np.sqrt(2 / self.n_pairs))

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        return {"": self.auc, "recovery": self.recovery, "differences": self.differences}

    def area(self, features: str) -> float:
        """Return the mean AUC of one kind of features (see :data:`FEATURES`)."""
        found = self.auc.filter(pl.col("features") == features)["auc"]
        if not len(found):
            raise DataError(f"There are no features {features!r}. There are: {', '.join(FEATURES)}.")
        return float(found[0])

    @property
    def sentence(self) -> str:
        """What plain summaries that the paper does not try have to say."""
        means, number, full = (self.area(name) for name in (*PLAIN, "full"))
        better = (
            "as well as" if means >= full - 0.01 else "nearly as well as" if means >= 0.9 else "worse than"
        )
        return (
            f"Plain summaries the paper does not try see the merged segments too: means per segment tell A "
            f"from B {better} all factors ({means:.3f} and {full:.3f}), and the number of segments alone "
            f"reaches {number:.3f}."
        )

    def __repr__(self) -> str:
        areas = ", ".join(f"{FEATURES[name]} {self.area(name):.3f}" for name in FEATURES)
        return f"{self.n_pairs:,} pairs, told apart with an AUC of: {areas}"

    def to_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values, without the record."""
        return {
            "pairs": self.n_pairs,
            "left_out": self.n_left_out,
            "actions_per_person": self.n_actions,
            "segments_per_person": {"A": self.n_segments, "B": self.n_merged},
            "auc": self.auc,
            "recovery": self.recovery,
            "differences": self.differences,
            "largest_difference": {
                "value": self.largest_difference,
                "in_one_repetition": self.largest_single_difference,
                "paper": paper.MATCHED_LARGEST_DIFFERENCE,
                "chance_se": self.chance_difference,
            },
            "skipped": list(self.skipped),
            "sentence": self.sentence,
        }


def matched(
    task: TaskModel | Iterable[TaskModel] | None = None,
    *,
    like: Cohort | None = None,
    learn_from: Cohort | None = None,
    n: int | None = None,
    low: float = 18.0,
    high: float = 30.0,
    repeat: int = 5,
    seed: int = 1,
    population: Literal["random", "pooled"] = "random",
    on_progress: Progress | None = None,
) -> Matched:
    """Make pairs of people with the same totals and other habits, and see what tells them apart.

    Parameters
    ----------
    task : TaskModel, or several, optional
        What people did; by default the grocery task.
    like : Cohort, optional
        The observed people, whose situations and segments the pairs share. Simulated ones by default (see
        :func:`fidm.simulate.structure.people_like`).
    learn_from : Cohort, optional
        Whom to learn from what people share, such as a training part; the observed people by default.
    n : int, optional
        How many people to simulate if none are given; by default 400.
    low, high : float
        η of A and of B.
    repeat : int
        How often the pairs are drawn.
    seed : int
        The same seed gives the same result.
    population : {"random", "pooled"}
        How what people share is learned from the observed ones (see :meth:`fidm.Model.fit`). Everybody is
        then estimated by maximum likelihood, as in the paper.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.experiments.matched import matched
    >>> found = matched(fidm.load_task("errands"), n=60, repeat=1)
    >>> found.area("full") > 0.9 > 0.7 > found.area("raw")
    True
    """
    if not (0 < low < high < np.inf):
        raise DataError(f"low is {low:g} and high {high:g}; they must be above 0, low below high.")
    if repeat < 1 or seed < 0:
        raise DataError(f"repeat is {repeat} and seed {seed}; repeat must be 1 or more, seed 0 or more.")
    say = on_progress or (lambda doing, done, of: None)
    if like is not None and n is not None:
        raise DataError(
            f"n is {n}, but every person of the study gives one pair; leave {remedy('n', '--people')} out."
        )
    models = TaskSet.of(load_task("grocery") if task is None else task)
    say("people", 0, repeat)
    observed = people_like(models.tasks, 400 if n is None else n, seed=seed) if like is None else like
    say("what people share", 0, repeat)
    people = usable_people(models, observed)
    if int(np.diff(people.segment_offsets).max()) < 2:
        raise DataError("Nobody has two segments in a trace, so there is nothing to merge in B.")
    learners = observed if learn_from is None else learn_from
    fit = _learned(models, learners, population)
    pairs = MatchedPairs.of(models, people, fit)
    say("pairs", 0, repeat)
    rounds = []
    for number in range(repeat):
        rounds.append(_round(pairs, fit, low, high, (seed, number)))
        say("pairs", number + 1, repeat)
    names = [channel.name for channel in pairs.channels]
    settings = {
        "low": low,
        "high": high,
        "repeat": repeat,
        "population": population,
        "simulated": len(observed) if like is None else None,
        "learned_from": hash_cohort(learners),
    }
    return Matched(
        record=Record.of("matched", models.tasks, seed=seed, settings=settings, cohort=observed),
        auc=_auc_table([found.auc for found in rounds]),
        recovery=_recovery_table(rounds, names, low, high, np.mean(pairs.delta, axis=0)),
        differences=_difference_table([found.differences for found in rounds], names),
        n_pairs=len(people),
        n_left_out=len(observed) - len(people),
        n_actions=float(counted_steps(models, people).sum() / len(people)),
        n_segments=pairs.separate.n_segments / len(people),
        n_merged=pairs.merged.n_segments / len(people),
        skipped=tuple(c.name for c in paper_channels() if c.name not in (*names, PRESENCE)),
    )


def _learned(tasks: TaskSet, learners: Cohort, population: Literal["random", "pooled"]) -> Fit:
    """Fit the channels that were observed; pauses that are always there need no model of their presence."""
    channels = []
    for channel in paper_channels():
        if channel.column in learners.segments.columns:
            seen = channel.observe(column_values(learners.segments, channel.column))
            seen = seen[~np.isnan(seen)]
            if len(seen) and not (channel.name == PRESENCE and (seen.all() or not seen.any())):
                channels.append(channel)
    if not channels:
        raise DataError(
            "The observed people have no segments with effort observations, and B differs from A in its "
            "segments. Give a study whose segments have duration_s, n_characters, n_turns or pause_s."
        )
    return Model(tasks.tasks, channels=channels).fit(learners, method="mle", population=population)


# ---------------------------------------------------------------------- pairs


@dataclass(frozen=True, slots=True, eq=False)
class MatchedPairs:
    """The structure all repetitions share."""

    tasks: TaskSet  # the tasks
    # The observed people with their own segments (A) and with merged ones (B).
    separate: Cohort
    merged: Cohort
    channels: tuple[Channel, ...]  # the effort channels whose offsets are matched
    truth: Mapping[str, Truth]  # their population values
    delta: Floats  # [P, C]: the offsets of B

    @classmethod
    def of(cls, tasks: TaskSet, people: Cohort, fit: Fit) -> MatchedPairs:
        """Pair people, each of whom made a choice, spoke a segment and moved (:func:`usable_people`)."""
        channels = tuple(channel for channel in fit.channels if channel.name != PRESENCE)
        separate = _bare_segments(people, channels)
        merged = merge_segments(separate)
        truth = learned_truth(fit)
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
    return replace(cohort, segments=table, segment_offsets=offsets_of((sizes + 1) // 2), segment=None)


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
    return replace(cohort, segments=table, segment_offsets=before[cohort.segment_offsets], segment=None)


# ---------------------------------------------------------------------- one repetition


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """AUC by features; (r, direction, difference, left out) by factor; differences [summary, channel]."""

    auc: dict[str, float]
    recovery: list[tuple[float, float, float, int]]
    differences: Floats


def _round(pairs: MatchedPairs, fit: Fit, low: float, high: float, seed: tuple[int, int]) -> _Round:
    members = pairs.draw(low, high, seed)
    profiles = [fit.profile(member) for member in members]
    size = len(members[0])
    is_b = np.repeat([False, True], size)
    features = plain_summaries(members, pairs.channels)
    full = factor_features(profiles, [channel.name for channel in pairs.channels])
    features |= {"action": full[:, :1], "effort": full[:, 1:], "full": full}
    fold_seed = int(np.random.default_rng([*seed, size]).integers(2**31))
    auc = {
        name: cross_validated_auc(features[name], is_b, seed=fold_seed, groups=np.tile(np.arange(size), 2))
        for name in FEATURES
    }
    a, b = (profile.estimate for profile in profiles)
    log_a, log_b = (profile.log_sensitivity for profile in profiles)
    eta = np.full(size, low), np.full(size, high)
    recovery = [_recovered(a[:, 0], b[:, 0], *eta), _recovered(log_a, log_b, *map(np.log, eta))]
    for k, channel in enumerate(pairs.channels):
        column = profiles[0].parameters.index(channel.name)
        recovery.append(_recovered(a[:, column], b[:, column], np.zeros(size), pairs.delta[:, k]))
    return _Round(auc, recovery, np.stack([standardized_difference(features[name]) for name in MATCHED]))


def plain_summaries(members: Sequence[Cohort], channels: Sequence[Channel]) -> dict[str, Floats]:
    """Return totals, totals per movement, means per segment, number of segments; A's rows, then B's."""
    totals, moves, sizes = [], [], []
    for member in members:
        offsets = segment_owner_offsets(member)
        raw = [column_values(member.segments, channel.column) for channel in channels]
        totals.append(np.stack([person_sums(column, offsets) for column in raw], axis=1))
        moves.append(person_sums(column_values(member.segments, "n_moves"), offsets))
        sizes.append(np.diff(offsets).astype(np.float64))
    total, moved, size = np.concatenate(totals), np.concatenate(moves), np.concatenate(sizes)
    return {
        "raw": total,
        "per_movement": total / moved[:, None],
        "per_segment": total / size[:, None],
        "n_segments": size[:, None],
    }


def factor_features(profiles: Sequence[Profile], channels: Sequence[str]) -> Floats:
    """Return log η and the θ of these channels of everybody, [2P, 1 + C]; NaN where nothing was observed.

    An estimate without a finite maximum is beyond all others, and so gets the farthest finite value anybody
    has: those whose every choice was best are not set to the middle, as a missing value would be.
    """
    columns = [np.concatenate([profile.log_sensitivity for profile in profiles])]
    columns += [np.concatenate([profile[name] for profile in profiles]) for name in channels]
    for column in columns:
        finite = column[np.isfinite(column)]
        if len(finite):
            np.clip(column, finite.min(), finite.max(), out=column)
        else:
            column[:] = np.nan
    return np.stack(columns, axis=1)


def standardized_difference(values: Floats) -> Floats:
    """Return the mean difference of the second half from the first, over the pooled sd, [K]."""
    a, b = np.split(values, 2)
    spread = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((b.mean(axis=0) - a.mean(axis=0)) / spread)


def _recovered(a: Floats, b: Floats, true_a: Floats, true_b: Floats) -> tuple[float, float, float, int]:
    known = ~(np.isnan(a) | np.isnan(b))
    higher = (b[known] > a[known]) + 0.5 * (b[known] == a[known])
    direction = float(higher.mean()) if known.any() else np.nan
    finite = np.isfinite(a) & np.isfinite(b)
    left_out = int((~finite).sum())
    if finite.sum() < len(a) / 2:  # those who are left are not like the others
        return np.nan, direction, np.nan, left_out
    found = np.concatenate([a[finite], b[finite]])
    truth = np.concatenate([true_a[finite], true_b[finite]])
    varies = len(found) > 2 and np.ptp(found) > 0 and np.ptp(truth) > 0
    r = float(np.corrcoef(found, truth)[0, 1]) if varies else np.nan
    return r, direction, float((b[finite] - a[finite]).mean()) if finite.any() else np.nan, left_out


# ---------------------------------------------------------------------- tables


def _auc_table(rounds: Sequence[Mapping[str, float]]) -> pl.DataFrame:
    rows = []
    for name in FEATURES:
        found = np.array([auc[name] for auc in rounds])
        spread = float(found.std(ddof=1)) if len(found) > 1 else None
        rows.append((name, float(found.mean()), spread, paper.MATCHED_AUC.get(name)))
    schema = {"features": pl.String, "auc": pl.Float64, "sd": pl.Float64, "paper": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _recovery_table(
    rounds: Sequence[_Round], channels: Sequence[str], low: float, high: float, delta: Floats
) -> pl.DataFrame:
    meant = [high - low, np.log(high / low), *delta]
    rows = []
    for i, name in enumerate((SENSITIVITY, f"log_{SENSITIVITY}", *channels)):
        means = np.mean([found.recovery[i] for found in rounds], axis=0).tolist()
        r, direction, difference = paper.MATCHED_RECOVERY.get(name, (None, None, None))
        rows.append((name, means[0], r, means[1], direction, means[2], difference, float(meant[i]), means[3]))
    names = (
        "factor", "r", "paper_r", "direction", "paper_direction", "difference", "paper_difference", "meant",
        "left_out",
    )  # fmt: skip
    schema = {name: pl.String if name == "factor" else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _difference_table(rounds: Sequence[Floats], channels: Sequence[str]) -> pl.DataFrame:
    found = np.stack(rounds)
    rows = [
        (summary, channel, float(found[:, i, k].mean()), float(np.abs(found[:, i, k]).max()))
        for i, summary in enumerate(MATCHED)
        for k, channel in enumerate(channels)
    ]
    schema = {"summary": pl.String, "channel": pl.String, "mean": pl.Float64, "largest": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
