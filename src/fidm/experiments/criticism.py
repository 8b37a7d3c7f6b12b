"""What a model of choice fails to describe: what people do is compared with what they would do under it.

*Posterior-predictive checks.* Everybody's episodes are made again, from where they began, with parameters
drawn from the person's posterior: as long as it takes where the person reached an end (within four times as
many steps), else for as many steps. What users look at is counted in both. Where the observed mean of a group
lies outside nearly all of the replicated ones, the model does not describe it. Steps that do not count in the
likelihood (filled in by a planner, in doubt) are left out of what was observed. *People not described* are
those whose own numbers lie so far from their replicates that it is no chance, with a false discovery rate of
5 % over all people and statistics.

*Calibration.* The predicted probabilities of all options, averaged over each person's posterior, against how
often options of such a probability were chosen. The posterior has seen these choices, so it is a little too
good.

=====================  ====================================================================================
``steps``              steps of an episode (where episodes end)
``steps_to_goal``      steps until the first goal of an episode, or its end, is reached; where it is
``first_best``         share of first choices that were a best action
``best_small_gap``     share of best choices where the best and the second-best action are close in value,
``best_middle_gap``    farther apart,
``best_large_gap``     and farthest apart (thirds of the choices people made)
``repeats``            share of steps that repeat the action before
``backtracks``         share of steps that go back to where the step before began
``revisits``           share of steps to a place that was visited before in the episode
=====================  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from fidm.cohort import Cohort
from fidm.fit.action_fit import ActionFit
from fidm.model.action import TIE, effective_weight
from fidm.model.action_models import NOTHING, World, list_chosen
from fidm.record import plain
from fidm.simulate.choosing import Walks, walk_together
from fidm.stats import wilson
from fidm.tasks.stack import Followed, follow
from fidm.types import Flags, Floats, Integers

STATISTICS = (
    "steps", "steps_to_goal", "first_best", "best_small_gap", "best_middle_gap", "best_large_gap", "repeats",
    "backtracks", "revisits",
)  # fmt: skip
"""What is counted, in order."""

LONGER = 4
"""A replicated episode may take so many times the steps of the observed one."""

BINS = 10
"""Into how many parts predicted probabilities are cut."""

CALIBRATED = 20
"""How many draws of everybody's parameters predicted probabilities are averaged over."""

DISCOVERED = 0.05
"""The false discovery rate of people who are not described."""

LEVEL = 0.95
"""The level of the bands of replicated means."""


@dataclass(frozen=True, slots=True, eq=False)
class Criticism:
    """What models fail to describe.

    Parameters
    ----------
    checks : DataFrame
        A row per model and statistic: ``observed`` mean over people, ``replicated`` mean with the band
        ``low`` to ``high`` of 95 % of replicates, ``p`` (two-sided), and how many ``people`` have it.
    calibration : DataFrame
        A row per model and bin: mean ``predicted`` probability, ``observed`` share chosen with its interval,
        ``n`` options.
    undescribed : DataFrame
        A row per model, person and statistic that the model does not describe: ``observed``, ``replicated``.
    n_people : int
        How many people were checked.
    """

    checks: pl.DataFrame
    calibration: pl.DataFrame
    undescribed: pl.DataFrame
    n_people: int

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        return {"checks": self.checks, "calibration": self.calibration, "undescribed": self.undescribed}

    def misses(self, model: str) -> pl.DataFrame:
        """Return the statistics that a model does not describe."""
        own = pl.col("model") == model
        return self.checks.filter(
            own & ((pl.col("observed") < pl.col("low")) | (pl.col("observed") > pl.col("high")))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**{name: plain(table) for name, table in self.tables.items()}, "people": self.n_people}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Criticism:
        """Make it again from what was written."""
        return cls(
            pl.DataFrame(said["checks"], schema=CHECKS),
            pl.DataFrame(said["calibration"], schema=CALIBRATION),
            pl.DataFrame(said["undescribed"], schema=UNDESCRIBED),
            said["people"],
        )


CHECKS = {
    "model": pl.String, "statistic": pl.String, "observed": pl.Float64, "replicated": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "people": pl.Int64,
}  # fmt: skip
CALIBRATION = {
    "model": pl.String, "bin": pl.Int64, "predicted": pl.Float64, "observed": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64,
}  # fmt: skip
UNDESCRIBED = {
    "model": pl.String, "participant": pl.String, "statistic": pl.String, "observed": pl.Float64,
    "replicated": pl.Float64,
}  # fmt: skip


def criticise(
    world: World,
    cohort: Cohort,
    fits: Mapping[str, ActionFit],
    *,
    replicates: int,
    seed: int,
    inferred: float = 0.0,
) -> Criticism:
    """Compare what people did with what they would do under models fitted to them."""
    observed, owner, start, most, ended, counted = _observed(world, cohort, inferred)
    whole = np.bincount(observed.episode, ~counted, minlength=observed.n_episodes) == 0
    counts = _Counting(world, observed, whole, ended & whole)
    seen = counts.of(observed, owner, len(cohort), counted)
    checks, calibration, undescribed = [], [], []
    for number, (name, fit) in enumerate(fits.items()):
        rng = np.random.default_rng([seed, 5, number])
        drawn = fit.draws(replicates, rng)
        again = np.stack(
            [
                counts.of(
                    walk_together(
                        world, fit.model, {key: own[r][owner] for key, own in drawn.items()}, start, most, rng
                    ),
                    owner, len(cohort),
                )
                for r in range(replicates)
            ]
        )  # fmt: skip
        checks.append(_checks(name, seen, again))
        undescribed.append(_undescribed(name, seen, again, cohort.ids))
        calibration.append(_calibration(name, world, cohort, fit, inferred, rng))
    return Criticism(
        pl.concat([pl.DataFrame(schema=CHECKS), *checks]),
        pl.concat([pl.DataFrame(schema=CALIBRATION), *calibration]),
        pl.concat([pl.DataFrame(schema=UNDESCRIBED), *undescribed]),
        len(cohort),
    )


def _observed(
    world: World, cohort: Cohort, inferred: float
) -> tuple[Walks, Integers, Integers, Integers, Flags, Flags]:
    """What people did, and of every episode whose it is, its start, how long it may last, if it ended.

    Last, which steps count: those that a planner filled in, or that are in doubt, are nobody's choices.
    """
    followed = follow(world.tasks, cohort)
    number = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    fine = (followed.pair >= 0) & (followed.fault == 0)
    some = np.flatnonzero(np.bincount(number[fine], minlength=cohort.n_episodes) > 0)
    place = np.full(cohort.n_episodes, -1)
    place[some] = np.arange(len(some))
    first = np.flatnonzero(fine)[np.unique(number[fine], return_index=True)[1]]
    length = np.bincount(number[fine], minlength=cohort.n_episodes)[some]
    last = np.flatnonzero(fine)[np.cumsum(length) - 1]
    to = _led_to(world, cohort, followed)
    end = to[last]
    ended = (np.diff(world.tasks.offsets) == 0)[end]
    walks = Walks(
        place[number[fine]],
        followed.row[fine].astype(np.int64),
        followed.pair[fine].astype(np.int64),
        to[fine],
        end,
        len(some),
    )
    most = np.where(ended, LONGER * length, length)
    own = effective_weight(cohort, inferred)
    counted = own[fine] > 0 if len(own) else np.ones(len(walks.row), dtype=np.bool_)
    start = followed.row[first].astype(np.int64)
    return walks, cohort.episode_owner()[some], start, most, ended, counted


def _led_to(world: World, cohort: Cohort, followed: Followed) -> Integers:
    """The row that every step led to: as recorded, else the most probable one."""
    recorded = np.append(followed.row[1:], NOTHING).astype(np.int64)
    known = np.flatnonzero((np.diff(cohort.step_offsets) > 0) & (followed.task >= 0))
    base, end = world.tasks.state_base[followed.task[known]], cohort.end_state[known]
    recorded[cohort.step_offsets[known + 1] - 1] = np.where(end >= 0, base + end, NOTHING)
    likely = world.leads_to[np.maximum(followed.pair, 0)]
    return np.where(recorded >= 0, world.goes_on[np.maximum(recorded, 0)], likely)


class _Counting:
    """Counts what walks are like, for each person; their length only where all steps of an episode count."""

    def __init__(self, world: World, observed: Walks, whole: Flags, ended: Flags) -> None:
        self.world, self.whole, self.ended = world, whole, ended
        self.is_end = np.diff(world.tasks.offsets) == 0
        self.gap, self.is_best = _gaps(world)
        gaps = self.gap[observed.row]
        gaps = gaps[np.isfinite(gaps)]
        self.thirds = np.quantile(gaps, (1 / 3, 2 / 3)) if len(gaps) else np.array([np.inf, np.inf])

    def of(self, walks: Walks, owner: Integers, people: int, counted: Flags | None = None) -> Floats:
        """Return every statistic of every person, [S, P]; NaN where there is nothing to count."""
        world, e, ended = self.world, walks.episode, self.ended
        person = owner[e]
        first = np.r_[True, e[1:] != e[:-1]] if len(e) else np.zeros(0, np.bool_)
        before = np.maximum(np.arange(len(e)) - 1, 0)
        place, to = world.place[walks.row], world.place[walks.to]
        again = ~first & (world.tasks.action[walks.pair] == world.tasks.action[walks.pair[before]])
        moved = to != place
        back = ~first & moved & (to == place[before])
        best, gap = self.is_best[walks.pair], self.gap[walks.row]
        third = np.where(np.isfinite(gap), np.searchsorted(self.thirds, gap, side="right"), -1)
        length = np.bincount(e, minlength=walks.n_episodes)
        reached = world.achieves[walks.pair] | self.is_end[walks.to]
        rank = np.arange(len(e)) - np.concatenate([[0], np.cumsum(length)])[e] + 1
        soonest = np.full(walks.n_episodes, np.inf)
        np.minimum.at(soonest, e[reached], rank[reached])

        every = np.ones(len(e), np.bool_) if counted is None else counted

        def share(flag: Any, among: Any) -> Floats:
            here = among & every
            return _mean(person[here], flag[here].astype(np.float64), people)

        arrived = np.isfinite(soonest) & self.whole
        return np.stack(
            [
                _mean(owner[ended], np.log(np.maximum(length[ended], 1)), people, back=np.exp),
                _mean(owner[arrived], np.log(soonest[arrived]), people, back=np.exp),
                share(best, first & np.isfinite(gap)),
                *(share(best, third == k) for k in range(3)),
                share(again, ~first),
                share(back, ~first),
                share(self._revisits(e, place, to, first) & moved, moved),
            ]
        )

    @staticmethod
    def _revisits(e: Integers, place: Integers, to: Integers, first: Any) -> Any:
        """Whether each step leads to a place that was visited before in the episode."""
        n = len(e)
        key = np.stack([np.r_[e, e], np.r_[place, to], np.r_[2 * np.arange(n), 2 * np.arange(n) + 1]])
        order = np.lexsort((key[2], key[1], key[0]))
        known = np.zeros(2 * n, np.bool_)
        same = (key[0][order][1:] == key[0][order][:-1]) & (key[1][order][1:] == key[1][order][:-1])
        known[order[1:]] = same
        return known[n:]


def _gaps(world: World) -> tuple[Floats, Any]:
    """How far the second-best option lies below the best in every row, inf where none does; which are
    best.
    """
    offsets, q = world.tasks.offsets, world.q
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    top = np.full(len(offsets) - 1, -np.inf)
    np.maximum.at(top, row, q)
    below = top[row] - q
    gap = np.full(len(offsets) - 1, np.inf)
    np.minimum.at(gap, row, np.where(below >= TIE, below, np.inf))
    return gap, below < TIE


def _mean(person: Integers, values: Floats, people: int, back: Any = None) -> Floats:
    """The mean of everybody's values, [P]; NaN where somebody has none."""
    n = np.bincount(person, minlength=people)
    with np.errstate(invalid="ignore"):
        found = np.bincount(person, values, minlength=people) / np.where(n > 0, n, np.nan)
    return np.asarray(found if back is None else back(found))


def _checks(name: str, seen: Floats, again: Floats) -> pl.DataFrame:
    """The observed mean over people of each statistic, and that of the replicates."""
    rows = []
    for k, statistic in enumerate(STATISTICS):
        has = np.isfinite(seen[k])
        if not has.any():
            continue
        observed = float(seen[k][has].mean())
        with np.errstate(invalid="ignore"):
            means = np.array([_known_mean(one[k][has]) for one in again])
        means = means[np.isfinite(means)]
        if not len(means):
            continue
        low, high = np.quantile(means, (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL))
        beyond = min(int((means >= observed).sum()), int((means <= observed).sum()))
        rows.append(
            {
                "model": name,
                "statistic": statistic,
                "observed": observed,
                "replicated": float(means.mean()),
                "low": float(low),
                "high": float(high),
                "p": min(1.0, 2 * (beyond + 1) / (len(means) + 1)),
                "people": int(has.sum()),
            }
        )
    return pl.DataFrame(rows, schema=CHECKS)


def _known_mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _undescribed(name: str, seen: Floats, again: Floats, ids: pl.Series) -> pl.DataFrame:
    """The people whose own numbers lie too far from their replicates to be chance."""
    n = np.isfinite(again).sum(axis=0)
    filled = np.where(np.isfinite(again), again, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=0) / n
        sd = np.sqrt((np.where(np.isfinite(again), again - mean, 0.0) ** 2).sum(axis=0) / (n - 1))
        t = (seen - mean) / (sd * np.sqrt(1 + 1 / n))
    usable = np.isfinite(t) & (n >= 0.5 * len(again)) & (n > 2)
    if not usable.any():
        return pl.DataFrame(schema=UNDESCRIBED)
    p = 2 * stats.t.sf(np.abs(t[usable]), n[usable] - 1)
    far = np.zeros(seen.shape, dtype=np.bool_)
    far[usable] = stats.false_discovery_control(p) <= DISCOVERED
    rows = [
        {
            "model": name,
            "participant": ids[int(j)],
            "statistic": STATISTICS[int(k)],
            "observed": float(seen[k, j]),
            "replicated": float(mean[k, j]),
        }
        for j, k in zip(*np.nonzero(far.T), strict=True)
    ]
    return pl.DataFrame(rows, schema=UNDESCRIBED)


def _calibration(
    name: str, world: World, cohort: Cohort, fit: ActionFit, inferred: float, rng: np.random.Generator
) -> pl.DataFrame:
    """Predicted probabilities of options against how often they were chosen, by bins."""
    model = fit.model
    if model.has_memory:
        return pl.DataFrame(schema=CALIBRATION)  # what a person had in mind is not known
    made = list_chosen(world, cohort, inferred=inferred, remembers=model.remembers)
    place = np.searchsorted(made.seen.offsets, made.option[made.which], side="right") - 1
    situations = made.seen.some(place)
    chosen = situations.offsets[:-1] + made.option[made.which] - made.seen.offsets[place]
    owner = np.repeat(made.owner[made.trial], np.diff(situations.offsets))
    p = np.zeros(len(situations.pair))
    drawn = fit.draws(CALIBRATED, rng)
    for r in range(CALIBRATED):
        values = {key: own[r][owner] for key, own in drawn.items()}
        p += np.exp(model.log_probabilities(world, situations, values)) / CALIBRATED
    hit = np.zeros(len(p), dtype=np.bool_)
    hit[chosen] = True
    several = np.repeat(np.diff(situations.offsets) > 1, np.diff(situations.offsets))
    number = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    rows = []
    for k in range(BINS):
        here = (number == k) & several
        if here.any():
            low, high = wilson(int(hit[here].sum()), int(here.sum()))
            rows.append(
                {
                    "model": name, "bin": k + 1, "predicted": float(p[here].mean()),
                    "observed": float(hit[here].mean()), "low": low, "high": high, "n": int(here.sum()),
                }
            )  # fmt: skip
    return pl.DataFrame(rows, schema=CALIBRATION)
