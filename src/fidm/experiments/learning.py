r"""How action sensitivity changes over blocks of episodes: curves and trends, per person and for all.

*Blocks* are the values of a column of the episodes, or follow from a rule (:class:`.shared.Blocks`).

*A person's blocks.* What people share is learned once, from all blocks together, and every block of a person
is estimated from its own choices under that one prior. A prior learned in each block would draw everybody
towards the mean of that block, and show trends of the group in people who have none. These estimates are
drawn towards the one mean instead, the more the fewer choices a block has: with few choices per block they
are nearly flat. They say what a block tells by itself; take neither slopes nor means from them.

*The group's trend* is learned from choices, not from estimates (:mod:`fidm.fit.within`): person j in block k
at :math:`t_k` has

.. math::

    \log \eta_{jk} = m + a_j + (\gamma + b_j)(t_k - \bar t), \qquad (a_j, b_j) \sim N(0, \Sigma).

The mean slope γ has a t interval with the people who were observed in several blocks, less one, as degrees of
freedom. A person's line has the level :math:`m + a_j` and the slope :math:`\gamma + b_j`, given all of their
choices; its interval holds what is not known of m and γ, too.

*The group's curve* replaces the line by a mean :math:`m_k` of each block; people still differ in their level
and slope. It is the mean of log η of all people, also of those who were not observed in a block, as far as
their other blocks tell. Blocks in which fewer than five people can be compared with themselves have no mean.

Nobody is left out for a missing block, nor for an estimate that is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError, FitError, count, listed
from fidm.experiments.shared import Blocks
from fidm.fit.common import Data, plain_algebra, threads, valid_level
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY, STATUSES
from fidm.fit.within import FEWEST_PAIRED, Changed, sensitivity_within
from fidm.model.gaps import has_data
from fidm.record import Record, hash_values
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Integers, Progress

TREND = {
    "slope": pl.Float64, "se": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64,
    "factor": pl.Float64, "factor_low": pl.Float64, "factor_high": pl.Float64,
    "slope_sd": pl.Float64, "differs": pl.Boolean, "n_people": pl.Int64, "n_paired": pl.Int64,
}  # fmt: skip
"""The columns of the trend."""


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """How η changes over blocks.

    Parameters
    ----------
    record : Record
        How it came about.
    by, unit : str
        What names the blocks, and what one more of ``at`` is.
    level : float
        The level of intervals.
    group : DataFrame
        A row per block: ``block``, ``at``, people and choices, and the mean of log η with its standard error
        and interval; ``action_sensitivity`` with ``low`` and ``high`` is the same as a geometric mean of η.
    people : DataFrame
        A row per person and block in which anything was observed: η from this block's choices alone, with
        interval, ``status`` and ``n``; and on the person's own line through all blocks (``line``,
        ``line_low``, ``line_high``).
    slopes : DataFrame
        A row per person: the change of log η per unit with its interval, and how many blocks and choices it
        rests on; null for people who were observed in one block.
    trend : DataFrame
        A row: the mean ``slope`` of log η per unit with interval and p-value, the ``factor`` by which η
        changes, and the sd of people's slopes (``slope_sd``; ``differs`` says whether it is clearly not 0).
        No row where fewer than five people were observed in several blocks.
    notes : tuple of str
        What is to be said of blocks and people.
    """

    record: Record
    by: str
    unit: str
    level: float
    group: pl.DataFrame
    people: pl.DataFrame
    slopes: pl.DataFrame
    trend: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The group's curve, everybody's curves and slopes, and the trend."""
        return {"": self.group, "people": self.people, "slopes": self.slopes, "trend": self.trend}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "by": self.by,
            "unit": self.unit,
            "level": self.level,
            "trend": self.trend.row(0, named=True) if self.trend.height else None,
            "group": self.group.to_dicts(),
            "slopes": self.slopes.to_dicts(),
            "people": self.people.to_dicts(),
            "notes": list(self.notes),
        }

    @classmethod
    def of(cls, record: Record, said: Mapping[str, Any]) -> Learning:
        """Make it again from what was written."""
        group, people, slopes = (
            pl.DataFrame(said[name], infer_schema_length=None) for name in ("group", "people", "slopes")
        )
        trend = pl.DataFrame([] if said["trend"] is None else [said["trend"]], schema=TREND)
        by, unit, level, notes = (said[name] for name in ("by", "unit", "level", "notes"))
        return cls(record, by, unit, level, group, people, slopes, trend, tuple(notes))

    def __repr__(self) -> str:
        said = "no trend: too few people"
        if self.trend.height:
            row = self.trend.row(0, named=True)
            ends = f"{row['factor_low']:.2f} to {row['factor_high']:.2f}"
            said = f"η × {row['factor']:.2f} ({ends}) per {self.unit}"
        n = self.slopes.height
        return (
            f"Learning({count(n, 'participant')}, {count(self.group.height, 'block')} by {self.by!r}; {said})"
        )


@plain_algebra
def learning(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    by: str,
    fit: Fit | None = None,
    level: float = 0.95,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Learning:
    """Estimate how action sensitivity changes over blocks of episodes, per person and for the group.

    Parameters
    ----------
    task : TaskModel, or several
        The tasks the episodes name.
    cohort : Cohort
        The people.
    by : str
        A column of the episodes that names the blocks, or a rule: ``"every 10"`` (episodes of a person),
        ``"halves"``, ``"thirds"``, ``"quarters"``, ``"fifths"``, ``"tenths"``.
    fit : Fit, optional
        What people share, by which everybody's blocks are estimated; learned from the cohort if left out.
    level : float
        The level of intervals.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm, fidm.study
    >>> task = fidm.load_task("errands")
    >>> values = fidm.solve(task)
    >>> walks = [
    ...     fidm.walk(task, values, 8.0 + 4 * trial, seed=10 * who + trial, label=f"P{who}")
    ...     for who in range(6)
    ...     for trial in range(4)
    ... ]
    >>> found = fidm.study.learning(task, fidm.Cohort.from_traces(walks), by="halves")
    >>> found.group["n_people"].to_list(), found.trend["slope"][0] > 0
    ([6, 6], True)
    """
    valid_level(level)
    blocks = Blocks.of(cohort, by)
    say = on_progress or (lambda doing, done, of: None)
    notes: list[str] = []
    units, owner, block = _units(cohort, blocks)
    seen = np.flatnonzero(has_data(units))
    units, owner, block = units[seen], owner[seen], block[seen]
    if not len(units):
        raise DataError(f"Nobody made a choice in a block by {by!r}, so there is no curve.")
    say("population", 0, 3)
    if fit is None:
        fit = _learned(task, cohort, workers, notes)
    alone = replace(
        fit, channels=(), populations={}, joint=None, kinds=None, level=level,
        alike=tuple(name for name in fit.alike if name == SENSITIVITY),
        regress={name: layout for name, layout in fit.regress.items() if name == SENSITIVITY},
    )  # fmt: skip
    say("blocks", 1, 3)
    profile = alone.profile(units, workers=workers)
    people = pl.DataFrame(
        {
            "participant": cohort.ids.gather(owner),
            "block": [blocks.names[k] for k in block],
            "at": blocks.at[block],
            "action_sensitivity": pl.Series(profile.estimate[:, 0], nan_to_null=True),
            "low": pl.Series(profile.low[:, 0], nan_to_null=True),
            "high": pl.Series(profile.high[:, 0], nan_to_null=True),
            "log_se": pl.Series(profile.log_sensitivity_se, nan_to_null=True),
            "status": pl.Series(np.array(STATUSES)[profile.status[:, 0]], dtype=pl.Enum(STATUSES)),
            "n": profile.n[:, 0],
        }
    )
    say("trend", 2, 3)
    data = Data.of(fit.tasks, fit.q, (), {}, units, need_columns=True, inferred=fit.inferred)
    told = np.diff(data.choices.person_offsets) > 0
    observed = _Observed(data, owner, block, told, blocks, level)
    trend = observed.trend(threads(workers), notes)
    group = observed.curve(trend, threads(workers), notes)
    say("trend", 3, 3)
    notes += _said_of_blocks(cohort, blocks)
    return Learning(
        record=Record.of(
            "learning",
            fit.tasks.tasks,
            settings={
                "by": by,
                "level": level,
                "method": fit.method,
                "inferred": fit.inferred,
                "learned": hash_values(np.array([fit.prior.mean, fit.prior.sd, fit.lapse])),
                "blocks": hash_values(blocks.of_episode),
            },
            cohort=cohort,
        ),
        by=by,
        unit=blocks.unit,
        level=level,
        group=group,
        people=people.hstack(observed.lines(trend)),
        slopes=observed.slopes(cohort, trend),
        trend=observed.trend_table(trend),
        notes=tuple(notes),
    )


def _learned(task: Any, cohort: Cohort, workers: int | None, notes: list[str]) -> Fit:
    """What people share, or maximum likelihood where there are too few to learn it from."""
    try:
        return Model(task, channels=()).fit(cohort, workers=workers)
    except FitError as error:
        notes.append(f"Everybody's blocks are estimated one by one: {error.message.rstrip('.')}.")
        return Model(task, channels=(), lapse=0.0).fit(cohort, method="mle", workers=workers)


def _units(cohort: Cohort, blocks: Blocks) -> tuple[Cohort, Integers, Integers]:
    """People's blocks as if each were a person of its own, and whose and which each is."""
    owner = cohort.episode_owner()
    inside = np.flatnonzero(blocks.of_episode >= 0)
    order = inside[np.lexsort((inside, blocks.of_episode[inside], owner[inside]))]
    key = owner[order] * max(len(blocks.names), 1) + blocks.of_episode[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    who, block = owner[order][first], blocks.of_episode[order][first]
    names = cohort.ids.gather(who) + pl.Series([f", {blocks.names[k]}" for k in block], dtype=pl.String)
    own = cohort.participants[who].with_columns(participant=names)
    sizes = np.diff(np.append(first, len(order)))
    return cohort.of_episodes(own, order, offsets_of(sizes)), who, block


@dataclass(frozen=True, slots=True, eq=False)
class _Observed:
    """The choices of people's blocks, whose [U] and in which block [U] they are, and which tell anything."""

    data: Data
    owner: Integers
    block: Integers
    told: Any
    blocks: Blocks
    level: float

    def trend(self, workers: int, notes: list[str]) -> Changed | None:
        """How log η changes per unit; None where too few people were observed in several blocks."""
        at = self.blocks.at[self.block]
        n_paired = int((self._spans() > 0).sum())
        if n_paired < FEWEST_PAIRED:
            several = f"{count(n_paired, 'person was', 'people were')} observed in several blocks"
            notes.append(f"No trend of the group: {several}; at least {FEWEST_PAIRED} are needed.")
            return None
        try:
            return sensitivity_within(
                self.data.choices, self.owner, at[:, None], by_people=True, lapse=None, workers=workers
            )
        except FitError as error:
            notes.append(f"No trend of the group: {error.message}")
            return None

    def curve(self, trend: Changed | None, workers: int, notes: list[str]) -> pl.DataFrame:
        """The group's mean in each block."""
        names, n = self.blocks.names, len(self.blocks.names)
        n_people = np.bincount(self.block[self.told], minlength=n)
        columns: dict[str, Any] = {
            "block": list(names),
            "at": self.blocks.at,
            "n_people": n_people,
            "n_choices": np.bincount(self.block, self.data.choices.n_choices, minlength=n).astype(np.int64),
        }
        found = np.full((4, n), np.nan)
        if trend is not None:
            some, kept = self._compared()
            if len(kept) > 1:
                value, se = self._means(some, kept, trend.lapse, workers)
                reach = stats.t.ppf(0.5 + 0.5 * self.level, np.maximum(n_people[kept] - 1, 1)) * se
                found[:, kept] = value, se, value - reach, value + reach
            lost = [names[k] for k in range(n) if k not in kept]
            if lost:
                notes.append(
                    f"The group has no mean in {count(len(lost), 'block')} ({listed(lost[:10])}): fewer than "
                    f"{FEWEST_PAIRED} people can be compared with themselves there."
                )
        own = dict(zip(("log_mean", "se", "log_low", "log_high"), found, strict=True))
        own |= {"action_sensitivity": np.exp(found[0]), "low": np.exp(found[2]), "high": np.exp(found[3])}
        return pl.DataFrame({**columns, **own}, nan_to_null=True)

    def _spans(self) -> Floats:
        """From how early to how late a block each person was observed; 0 in one block alone."""
        low = np.full(int(self.owner.max()) + 1, np.inf)
        high = -low
        np.minimum.at(low, self.owner[self.told], self.blocks.at[self.block[self.told]])
        np.maximum.at(high, self.owner[self.told], self.blocks.at[self.block[self.told]])
        return np.where(high > low, high - low, 0.0)

    def _compared(self) -> tuple[Any, Integers]:
        """The units of blocks in which enough people can be compared with themselves, and these blocks."""
        some = self.told.copy()
        while True:
            paired = some & (np.bincount(self.owner, some)[self.owner] > 1)
            n = np.bincount(self.block[paired], minlength=len(self.blocks.names))
            enough = n >= FEWEST_PAIRED
            fewer = some & enough[self.block]
            if (fewer == some).all():
                return some, np.flatnonzero(enough)
            some = fewer

    def _means(self, some: Any, kept: Integers, lapse: float, workers: int) -> tuple[Floats, Floats]:
        """The means of log η in these blocks, and their standard errors."""
        block = self.block[some]
        known = (block[:, None] == kept[1:]).astype(np.float64)
        choices = self.data.choices.take(some)
        line = self.blocks.at[block]
        found = sensitivity_within(
            choices, self.owner[some], known, line=line, by_people=True, lapse=lapse, workers=workers
        )
        return found.means(np.eye(len(kept))[:, 1:])

    def lines(self, trend: Changed | None) -> pl.DataFrame:
        """η on everybody's own line, in the blocks in which they were observed."""
        found = np.full((3, len(self.owner)), np.nan)
        if trend is not None:
            person = np.unique(self.owner[self.told], return_inverse=True)[1]
            value, se = trend.lines(person, self.blocks.at[self.block[self.told]])
            reach = stats.norm.ppf(0.5 + 0.5 * self.level) * se
            found[:, self.told] = np.exp([value, value - reach, value + reach])
        return pl.DataFrame(
            dict(zip(("line", "line_low", "line_high"), found, strict=True)), nan_to_null=True
        )

    def slopes(self, cohort: Cohort, trend: Changed | None) -> pl.DataFrame:
        """Everybody's change per unit."""
        n_blocks = np.bincount(self.owner[self.told], minlength=len(cohort))
        n = np.bincount(self.owner, self.data.choices.n_choices, minlength=len(cohort)).astype(np.int64)
        found = np.full((2, len(cohort)), np.nan)
        if trend is not None and trend.own is not None and trend.own_covariance is not None:
            se = np.sqrt(trend.own_covariance[:, 1, 1])
            found[:, np.unique(self.owner[self.told])] = np.stack([trend.own[:, 1], se]) / trend.scale[0]
            found[:, n_blocks < 2] = np.nan
        reach = stats.norm.ppf(0.5 + 0.5 * self.level) * found[1]
        columns = {"slope": found[0], "se": found[1], "low": found[0] - reach, "high": found[0] + reach}
        return pl.DataFrame(
            {"participant": cohort.ids, **columns, "n_blocks": n_blocks, "n": n}, nan_to_null=True
        )

    def trend_table(self, trend: Changed | None) -> pl.DataFrame:
        """The mean slope in a row; no row where there is none."""
        if trend is None:
            return pl.DataFrame(schema=TREND)
        ends = [float(trend.slopes[0]), *(float(end[0]) for end in trend.intervals(self.level))]
        row = [
            ends[0], float(trend.se[0]), *ends[1:], float(trend.p_values()[0]), *map(math.exp, ends),
            trend.slope_sd, trend.differs, trend.n_people, trend.n_paired,
        ]  # fmt: skip
        return pl.DataFrame([row], schema=TREND, orient="row")


def _said_of_blocks(cohort: Cohort, blocks: Blocks) -> list[str]:
    """Say what lies in no block, and where a trend along blocks is not one over time alone."""
    said, owner, block = [], cohort.episode_owner(), blocks.of_episode
    lost = int((block < 0).sum())
    if lost:
        said.append(f"{count(lost, 'episode')} in no block {'is' if lost == 1 else 'are'} left out.")
    inside = block >= 0
    back = (np.diff(block[inside]) < 0) & (np.diff(owner[inside]) == 0)
    turned = len(np.unique(owner[inside][1:][back]))
    if turned:
        said.append(
            f"{count(turned, 'participant')} went through the blocks in another order: a trend along blocks "
            "is then not one over time."
        )
    tasks = pl.DataFrame({"block": block, "task": cohort.episodes["task"]}).filter(pl.col("block") >= 0)
    sets = tasks.group_by("block").agg(pl.col("task").unique().sort())["task"].to_list()
    if len({tuple(one) for one in sets}) > 1:
        said.append(
            "Not every task occurs in every block, so that part of a trend may be a difference between tasks."
        )
    return said
