"""Whether groups of people differ in how they decide and what it costs them, adjusted for what else is known.

Estimates of single people are not compared: groups that did not do equally much differ in them without any
difference (see :mod:`fidm.fit.regression`). The mean of every latent parameter depends on the group and on
what is adjusted for instead, and everybody's choices and segments tell how.

Differences are given as factors: the η, the duration, the count of one group divided by that of the other;
for the presence of pauses the ratio of odds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import optimize, special, stats

from fidm.channels import parameter_words
from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, count
from fidm.fit.common import Data, default_lapse, plain_algebra, threads, valid_lapse, valid_level
from fidm.fit.profile import SENSITIVITY, TOLD_APART, say_share_inferred
from fidm.fit.regression import (
    Covariates,
    Regressed,
    regress_offsets,
    regress_sensitivity,
    without_missing,
)
from fidm.fit.within import Changed, offsets_within, sensitivity_within
from fidm.gaps import Gaps, has_data, named
from fidm.model.channels import Channel
from fidm.model.effort import far_longer, paper_channels, text_levels
from fidm.record import Record
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Flags, Floats, Integers, Progress

UNEQUAL = 1.25
"""Groups whose medians differ by more than this factor did not do equally much."""

SPREADS = 41
"""How many plausible spreads an interval of the AUC is averaged over."""

FEWEST_PER_GROUP = 5
"""A parameter that was observed in fewer people of a group is not compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The result of :func:`compare`.

    Parameters
    ----------
    record : Record
        How it came about.
    table : DataFrame
        A row per parameter and contrast: the ``difference`` on the scale of log η or θ with its standard
        error and interval, the same as a ``factor``, the p-value (``p``), and those that hold for all
        parameters together (``p_holm``, ``p_fdr``); ``auc`` says how well the parameter itself, known without
        error, would tell the two groups apart, with an interval that carries the uncertainty of the
        difference and of the spread within groups, and null where that spread cannot be told from 0;
        ``unadjusted`` is the factor without what is adjusted for.
    terms : DataFrame
        A row per parameter and covariate: slope, standard error, interval and p-value.
    overall : DataFrame
        A row per parameter: the p-value of all contrasts together (``p``; of a single one that of the
        table), the sd of people with and without covariates and the share of the variance that they explain,
        and how many people it rests on.
    groups : DataFrame
        A row per group: people with data, counted actions and segments.
    by : str
        What is compared.
    adjust : tuple of str
        What it is adjusted for.
    level : float
        The level of intervals.
    notes : tuple of str
        What is to be said besides.
    """

    record: Record
    table: pl.DataFrame
    terms: pl.DataFrame
    overall: pl.DataFrame
    groups: pl.DataFrame
    by: str
    adjust: tuple[str, ...]
    level: float
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        return {"": self.table, "terms": self.terms, "overall": self.overall, "groups": self.groups}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, a sentence for each parameter and contrast."""
        said = []
        for row in self.table.iter_rows(named=True):
            name, (one, _, other) = parameter_words(row["parameter"]), row["contrast"].partition(" / ")
            ends = f"{row['factor']:.2f} times ({row['factor_low']:.2f} to {row['factor_high']:.2f})"
            whose = f"in {one} as in {other}" if other else f"with {one}"
            clear = row["p_holm"] < 1 - self.level
            said.append(f"{name}: {'' if clear else 'no clear difference; '}{ends} as high {whose}.")
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts and lists."""
        return {
            "by": self.by,
            "adjust": list(self.adjust),
            "level": self.level,
            "notes": list(self.notes),
            **{name or "table": table.to_dicts() for name, table in self.tables.items()},
        }

    def __repr__(self) -> str:
        adjusted = f", adjusted for {', '.join(self.adjust)}" if self.adjust else ""
        return f"Comparison({self.by}{adjusted}: {self.table.height} differences)"


@plain_algebra
def compare(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    by: str,
    adjust: Sequence[str] = (),
    reference: str | None = None,
    channels: Sequence[Channel] | None = None,
    lapse: float | Literal["estimate"] | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Comparison:
    """Compare groups of people, or people along a number, in every latent parameter.

    Parameters
    ----------
    task : TaskModel, or several
        The tasks.
    cohort : Cohort
        The people; ``by`` and ``adjust`` are columns of its participants.
    by : str
        A column of texts (groups), or of numbers (the difference is then that of one standard deviation). A
        column of the episodes, such as a visit or a condition, is compared within people: how each person
        changes (:mod:`fidm.fit.within`). A number of more than two values is then compared per unit.
    adjust : sequence of str
        Columns to adjust for: numbers enter as they are, texts as groups.
    reference : str, optional
        The group the others are compared with; by default the largest.
    channels, lapse, inferred
        As in :class:`fidm.Model`.
    level : float
        The level of intervals.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> from fidm.experiments.compare import compare
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 40, seed=1)
    >>> half = pl.when(pl.int_range(40) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    >>> people = people.with_participants(people.participants.with_columns(group=half))
    >>> found = compare(task, people, by="group", reference="a", channels=())
    >>> found.table["contrast"].to_list()
    ['b / a']
    """
    valid_level(level)
    if by in cohort.episodes.columns and by not in cohort.participants.columns:
        return _within(
            task,
            cohort,
            by,
            adjust=adjust,
            reference=reference,
            channels=channels,
            lapse=lapse,
            inferred=inferred,
            level=level,
            workers=workers,
            on_progress=on_progress,
        )
    asked = _columns(cohort, by, adjust)
    whole, has_any = cohort, has_data(cohort)
    known = without_missing(cohort.participants.select(asked))
    cohort = whole[np.flatnonzero(known & has_any)]
    groups, contrasts, formula = _formula(cohort, by, adjust, reference)
    covariates = Covariates.of(groups, formula)
    own = tuple(i for term, places in covariates.terms.items() if "by__" in term for i in places)
    plain = Covariates.of(groups, formula.split(" + ")[0]) if adjust else covariates

    tasks = TaskSet.of(task)
    wanted = tuple(paper_channels() if channels is None else channels)
    used = tuple(c for c in wanted if channels is not None or c.column in cohort.segments.columns)
    levels = text_levels(used, cohort)
    q = tasks.values(solve(one) for one in tasks.tasks)
    data = Data.of(
        tasks, q, used, levels, cohort, need_columns=True, inferred=inferred, longest=far_longer(cohort)[1]
    )
    pool, rate = threads(workers), valid_lapse(default_lapse(lapse, "eb"))
    say = on_progress or (lambda doing, done, of: None)

    group = _group(cohort, by)

    def regressed(parameter: str, known: Covariates) -> Regressed:
        _enough_in_each(group, observed[parameter])
        if parameter == SENSITIVITY:
            return regress_sensitivity(data.choices, known.values, lapse=rate, workers=pool)
        place = [channel.name for channel in used].index(parameter)
        return regress_offsets(
            used[place], data.effort[place], levels, known.values, known.names, workers=pool
        )

    rows, terms, overall, notes, alike = [], [], [], [], []
    parameters = (SENSITIVITY, *(channel.name for channel in used))
    counts = (np.diff(data.choices.person_offsets), *(seen.counts for seen in data.effort))
    observed = {name: own > 0 for name, own in zip(parameters, counts, strict=True)}
    for done, parameter in enumerate(parameters):
        say(parameter, done, len(parameters))
        try:
            found = regressed(parameter, covariates)
            smaller = regressed(parameter, covariates.without(own))
            alone = regressed(parameter, plain) if adjust else found
        except FitError as error:
            notes.append(f"{parameter} is left out: {error}")
            continue
        notes += found.warnings
        alike += [parameter_words(parameter)] if found.least_reliability < TOLD_APART else []
        low, high = found.intervals(level)
        p = found.p_values()
        for k, (place, name) in enumerate(zip(own, contrasts, strict=True)):
            ends = np.array([found.slopes[place], low[place], high[place]])
            rows.append(
                {
                    "parameter": parameter,
                    "contrast": name,
                    "difference": ends[0],
                    "se": found.se[place],
                    "low": ends[1],
                    "high": ends[2],
                    **dict(zip(("factor", "factor_low", "factor_high"), np.exp(ends).tolist(), strict=True)),
                    "p": p[place],
                    **_latent_auc(found, place, level),
                    "unadjusted": float(np.exp(alone.slopes[k])),
                    "n_people": found.n_people,
                }
            )
        for place, name in enumerate(covariates.names):
            terms.append(
                (parameter, name, found.slopes[place], found.se[place], low[place], high[place], p[place])
            )
        share = max(0.0, 1 - (found.spread / smaller.spread) ** 2)
        together = float(p[own[0]]) if len(own) == 1 else found.against(smaller)
        overall.append((parameter, together, found.spread, smaller.spread, share, found.n_people))
    if not rows:
        raise FitError(f"Nothing can be compared. {' '.join(notes)}")
    areas = dict.fromkeys(("auc", "auc_low", "auc_high"), pl.Float64)
    table = _all_together(pl.DataFrame(rows, schema_overrides=areas))
    described = _described(cohort, by, data)
    return Comparison(
        record=Record.of(
            "compare",
            tasks.tasks,
            settings={
                "by": by,
                "adjust": list(adjust),
                "reference": reference,
                "lapse": lapse,
                "inferred": inferred,
                "level": level,
                "channels": list(parameters[1:]),
            },
            cohort=whole,
        ),
        table=table,
        terms=pl.DataFrame(
            terms, schema=["parameter", "term", "slope", "se", "low", "high", "p"], orient="row"
        ),
        overall=pl.DataFrame(
            overall,
            schema=["parameter", "p", "sd", "sd_without", "explained", "n_people"],
            orient="row",
        ),
        groups=described,
        by=by,
        adjust=tuple(adjust),
        level=level,
        notes=(
            *_left_out(known[has_any], asked),
            *_of_the_data(whole, cohort, data, inferred),
            *_unequal(described),
            *notes,
            *_no_auc(alike),
        ),
    )


# ---------------------------------------------------------------------- within people


def _within(
    task: TaskModel | Iterable[TaskModel],
    whole: Cohort,
    by: str,
    *,
    adjust: Sequence[str],
    reference: str | None,
    channels: Sequence[Channel] | None,
    lapse: float | Literal["estimate"] | None,
    inferred: float,
    level: float,
    workers: int | None,
    on_progress: Progress | None,
) -> Comparison:
    """Compare people with themselves: how parameters go with a column of the episodes."""
    if adjust:
        raise DataError(
            f"{by} is a column of the episodes, so people are compared with themselves, and what is the same "
            "in all of a person's episodes makes no difference. Leave adjust out."
        )
    every = whole.by_episode()
    stated = without_missing(whole.episodes.select(by))
    units = every[np.flatnonzero(stated & has_data(every))]
    known, contrasts, condition = _conditions(units.episodes[by], by, reference)
    owner = units.participants["person"].rle_id().to_numpy().astype(np.int64)

    tasks = TaskSet.of(task)
    wanted = tuple(paper_channels() if channels is None else channels)
    used = tuple(c for c in wanted if channels is not None or c.column in units.segments.columns)
    levels = text_levels(used, units)
    q = tasks.values(solve(one) for one in tasks.tasks)
    data = Data.of(
        tasks, q, used, levels, units, need_columns=True, inferred=inferred, longest=far_longer(whole)[1]
    )
    pool, rate = threads(workers), valid_lapse(default_lapse(lapse, "eb"))
    say = on_progress or (lambda doing, done, of: None)
    found: list[Changed] = []
    notes: list[str] = []
    parameters = (SENSITIVITY, *(channel.name for channel in used))
    for done, parameter in enumerate(parameters):
        say(parameter, done, len(parameters))
        try:
            if done == 0:
                found.append(sensitivity_within(data.choices, owner, known, lapse=rate, workers=pool))
            else:
                seen = data.effort[done - 1]
                found.append(offsets_within(used[done - 1], seen, levels, owner, known, workers=pool))
        except FitError as error:
            notes.append(f"{parameter} is left out: {error}")
    if not found:
        raise FitError(f"Nothing can be compared. {' '.join(notes)}")
    described = _did(owner, condition, units, data)
    return Comparison(
        record=Record.of(
            "compare",
            tasks.tasks,
            settings={
                "by": by,
                "within_people": True,
                "adjust": [],
                "reference": reference,
                "lapse": lapse,
                "inferred": inferred,
                "level": level,
                "channels": list(parameters[1:]),
            },
            cohort=whole,
        ),
        **_change_tables(found, contrasts, level),
        groups=described,
        by=by,
        adjust=(),
        level=level,
        notes=(
            *_unstated(int((~stated).sum()), by),
            *_of_the_data(whole, whole, data, inferred),
            *_unequal(described),
            *notes,
            *(said for one in found for said in one.warnings),
            *_of_changes(found, by),
        ),
    )


def _conditions(column: pl.Series, by: str, reference: str | None) -> tuple[Floats, list[str], pl.Series]:
    """What each episode is compared by [U, C], the names of the contrasts, and its condition in words.

    A number of two values is two conditions, of which the lower is the reference.
    """
    is_number = column.dtype.is_numeric()
    values = column.unique().sort().to_list()
    if len(values) < 2:
        raise DataError(f"{by} is the same in all episodes: there is nothing to compare.")
    if is_number and len(values) > 2:
        if reference is not None:
            raise DataError(f"{by} is a number, so there is no condition {reference!r} to compare with.")
        known = column.cast(pl.Float64).to_numpy()[:, None]
        return known, [f"{by} + 1"], pl.Series(["all"] * len(column), dtype=pl.String)
    condition = column.cast(pl.String)
    names = _largest_first(condition)
    if is_number:
        condition = pl.Series([str(value).removesuffix(".0") for value in column.to_list()])
        names = [str(value).removesuffix(".0") for value in values]
    base = names[0] if reference is None else reference
    if base not in names:
        raise DataError(f"{by} has no condition {base!r}. It has: {', '.join(sorted(names))}.")
    others = sorted(name for name in names if name != base)
    known = np.column_stack([(condition == other).to_numpy() for other in others]).astype(np.float64)
    return known, [f"{other} / {base}" for other in others], condition


def _largest_first(names: pl.Series) -> list[str]:
    """Different names, those of most episodes first."""
    sizes = names.alias("name").value_counts(name="n").sort(["n", "name"], descending=[True, False])
    return sizes["name"].to_list()


def _change_tables(found: Sequence[Changed], contrasts: Sequence[str], level: float) -> dict[str, Any]:
    """The tables of a comparison; there is no AUC, and nothing is explained of how people differ."""
    rows, terms, overall = [], [], []
    for one in found:
        (low, high), p = one.intervals(level), one.p_values()
        for place, name in enumerate(contrasts):
            ends = np.array([one.slopes[place], low[place], high[place]])
            factors = np.exp(ends).tolist()
            rows.append(
                {
                    "parameter": one.parameter,
                    "contrast": name,
                    "difference": ends[0],
                    "se": one.se[place],
                    "low": ends[1],
                    "high": ends[2],
                    **dict(zip(("factor", "factor_low", "factor_high"), factors, strict=True)),
                    "p": p[place],
                    **dict.fromkeys(("auc", "auc_low", "auc_high")),
                    "unadjusted": factors[0],
                    "n_people": one.n_people,
                }
            )
            terms.append((one.parameter, name, *ends[:1], one.se[place], *ends[1:], p[place]))
        spread = (one.spread, None, None, one.n_people, one.n_paired, one.slope_sd)
        overall.append((one.parameter, one.together(), *spread))
    areas = dict.fromkeys(("auc", "auc_low", "auc_high"), pl.Float64)
    number = dict.fromkeys(("p", "sd", "sd_without", "explained"), pl.Float64)
    return {
        "table": _all_together(pl.DataFrame(rows, schema_overrides=areas)),
        "terms": pl.DataFrame(
            terms, schema=["parameter", "term", "slope", "se", "low", "high", "p"], orient="row"
        ),
        "overall": pl.DataFrame(
            overall,
            schema={
                "parameter": pl.String,
                **number,
                "n_people": pl.Int64,
                "n_paired": pl.Int64,
                "sd_change": pl.Float64,
            },
            orient="row",
        ),
    }


def _did(owner: Integers, condition: pl.Series, units: Cohort, data: Data) -> pl.DataFrame:
    """How many people were observed in each condition, and how much they did."""
    counted = pl.DataFrame(
        {
            "group": condition,
            "person": owner,
            "actions": data.choices.n_choices,
            "segments": np.diff(units.segment_offsets),
        }
    )
    each = counted.group_by("group", "person").agg(pl.col("actions", "segments").sum())
    return (
        each.group_by("group")
        .agg(people=pl.len(), actions=pl.col("actions").median(), segments=pl.col("segments").median())
        .sort("group")
    )


def _unstated(lost: int, by: str) -> list[str]:
    return [f"{count(lost, 'episode')} without {by} {'is' if lost == 1 else 'are'} left out."] if lost else []


def _of_changes(found: Sequence[Changed], by: str) -> list[str]:
    """Say how many people are compared with themselves, and whether they change differently."""
    most = max(found, key=lambda one: one.n_paired)
    paired, people = most.n_paired, count(most.n_people, "person", "people")
    said = [f"{paired} of {people} have data of several values of {by}, and are compared with themselves."]
    if 2 * paired < most.n_people:
        said.append(
            f"Most people have data of one value of {by} alone: the change is largely a difference between "
            "people."
        )
    differ = [f"{parameter_words(one.parameter)} (sd {one.slope_sd:.2f})" for one in found if one.differs]
    if differ:
        said.append(
            f"People clearly differ in how they change in {', '.join(differ)}; given is the mean change."
        )
    unclear = [parameter_words(one.parameter) for one in found if one.slope_sd and not one.differs]
    if unclear:
        said.append(
            f"Whether people differ in how they change is not clear in {', '.join(unclear)}; intervals allow "
            "for it."
        )
    alike = [parameter_words(one.parameter) for one in found if not one.slope_sd]
    if alike:
        several = len(most.slopes) > 1
        why = "there are several contrasts" if several else "the data give no reason to assume otherwise"
        said.append(
            f"People are assumed to change alike in {', '.join(alike)}: {why}. Standard errors are by person."
        )
    return said


# ---------------------------------------------------------------------- between people


def _columns(cohort: Cohort, by: str, adjust: Sequence[str]) -> list[str]:
    asked = [by, *adjust]
    if len(set(asked)) < len(asked):
        raise DataError(f"A column is named twice: {', '.join(asked)}.")
    absent = [name for name in asked if name not in cohort.participants.columns]
    if absent:
        raise DataError(
            f"The participants have no column {', '.join(map(repr, absent))}. They have: "
            f"{', '.join(cohort.participants.columns)}."
        )
    return asked


def _formula(
    cohort: Cohort, by: str, adjust: Sequence[str], reference: str | None
) -> tuple[pl.DataFrame, list[str], str]:
    """The columns under plain names, the names of the contrasts, and the formula of all of them."""
    column = cohort.participants[by]
    made: dict[str, pl.Series] = {}
    if column.dtype.is_numeric():
        if reference is not None:
            raise DataError(f"{by} is a number, so there is no group {reference!r} to compare with.")
        values = column.cast(pl.Float64)
        spread = values.std()
        if not isinstance(spread, float) or not spread > 0:
            raise DataError(f"{by} is the same for everybody.")
        made["by__"] = values / spread
        contrasts, first = [f"{by} + 1 SD"], "by__"
    else:
        text = column.cast(pl.String)
        sizes = text.value_counts(sort=True).sort(["count", by], descending=[True, False])
        levels = sizes[by].to_list()
        if len(levels) < 2:
            raise DataError(f"{by} has only one group, {levels[0]!r}: there is nothing to compare.")
        base = levels[0] if reference is None else reference
        if base not in levels:
            raise DataError(f"{by} has no group {base!r}. It has: {', '.join(sorted(levels))}.")
        others = sorted(level for level in levels if level != base)
        made["by__"] = text.replace_strict({level: f"{i:03d}" for i, level in enumerate([base, *others])})
        contrasts, first = [f"{level} / {base}" for level in others], "C(by__)"
    terms = [first]
    for i, name in enumerate(adjust):
        other = cohort.participants[name]
        made[f"adjust{i}"] = other if other.dtype.is_numeric() else other.cast(pl.String)
        terms.append(f"adjust{i}" if other.dtype.is_numeric() else f"C(adjust{i})")
    return pl.DataFrame(made), contrasts, " + ".join(terms)


def _latent_auc(found: Regressed, place: int, level: float) -> dict[str, float | None]:
    """How well a parameter known without error would tell two groups apart that differ so much.

    It is Φ(difference / (√2 spread)). The ends of its interval are quantiles of that ratio, where the
    difference has its t distribution and the logarithm of the spread a normal one.
    """
    names = ("auc", "auc_low", "auc_high")
    if found.least_reliability < TOLD_APART:
        return dict.fromkeys(names)
    nodes, weights = special.roots_hermitenorm(SPREADS)
    spreads, weights = found.spread * np.exp(found.log_spread_se * nodes), weights / weights.sum()
    difference, se = found.slopes[place], found.se[place]

    def excess(area: float, share: float) -> float:
        away = (np.sqrt(2) * special.ndtri(area) * spreads - difference) / se
        return float(weights @ special.stdtr(found.freedom, away)) - share

    ends = [
        optimize.brentq(excess, 1e-15, 1 - 1e-15, args=(share,), xtol=1e-9)
        if excess(1e-15, share) < 0 < excess(1 - 1e-15, share)
        else float(share > 0.5)
        for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    ]
    middle = float(special.ndtr(difference / (np.sqrt(2) * found.spread)))
    return dict(zip(names, (middle, *ends), strict=True))


def _all_together(table: pl.DataFrame) -> pl.DataFrame:
    """Add p-values that hold for all rows together: by Holm, and as false discovery rates."""
    p = table["p"].to_numpy()
    order = np.argsort(p, kind="stable")
    holm = np.empty(len(p))
    holm[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1)))
    fdr = stats.false_discovery_control(p)
    after = table.columns.index("p") + 1
    return table.insert_column(after, pl.Series("p_holm", holm)).insert_column(
        after + 1, pl.Series("p_fdr", fdr)
    )


def _group(cohort: Cohort, by: str) -> pl.Series:
    """Everybody's group; one for all where a number is compared."""
    column = cohort.participants[by]
    return pl.Series(["everybody"] * len(cohort)) if column.dtype.is_numeric() else column.cast(pl.String)


def _enough_in_each(group: pl.Series, observed: Flags) -> None:
    """Raise if too few people of a group were observed."""
    for name in group.unique().sort().to_list():
        n = int((observed & (group == name).to_numpy()).sum())
        if n < FEWEST_PER_GROUP:
            raise FitError(
                f"{count(n, 'person', 'people')} of the group {name!r} can be compared in it; at least "
                f"{FEWEST_PER_GROUP} are needed in each."
            )


def _described(cohort: Cohort, by: str, data: Data) -> pl.DataFrame:
    """How many people each group has, and how much they did."""
    segments = np.diff(cohort.segment_offsets[cohort.episode_offsets])
    return (
        pl.DataFrame({"actions": data.choices.n_choices, "segments": segments})
        .with_columns(_group(cohort, by).alias("group"))
        .group_by("group")
        .agg(people=pl.len(), actions=pl.col("actions").median(), segments=pl.col("segments").median())
        .sort("group")
    )


def _left_out(known: Flags, asked: Sequence[str]) -> list[str]:
    lost = int((~known).sum())
    if not lost:
        return []
    return [f"{count(lost, 'person', 'people')} without {' or '.join(asked)} are left out."]


def _of_the_data(whole: Cohort, cohort: Cohort, data: Data, inferred: float) -> list[str]:
    """Who has no data, and what a fit of those who are compared would say of theirs."""
    gaps = Gaps.of(whole)
    lost = (*gaps.absent, *gaps.unread)
    are = "is" if len(lost) == 1 else "are"
    said = (
        [f"{count(len(lost), 'person', 'people')} without any data {are} left out: {named(lost)}."]
        if lost
        else []
    )
    said += (f"{one[0].upper()}{one[1:]}." for one in Gaps.of(cohort).say("episode"))
    moves = say_share_inferred(data.n_inferred, data.n_steps, inferred)
    return [*said, f"{moves[0].upper()}{moves[1:]}."] if moves else said


def _no_auc(alike: Sequence[str]) -> list[str]:
    """Say it if there is no AUC of a parameter."""
    if not alike:
        return []
    return [
        f"No AUC of {', '.join(alike)}: how much people of a group differ cannot be told from 0, and an AUC "
        "measures the difference between groups by that."
    ]


def _unequal(groups: pl.DataFrame) -> list[str]:
    """Say it if groups did not do equally much."""
    said = []
    for what in ("actions", "segments"):
        values = groups[what].to_numpy()
        if len(values) > 1 and values.min() > 0 and values.max() > UNEQUAL * values.min():
            said.append(
                f"The groups did not do equally much: {values.min():g} to {values.max():g} {what} (medians). "
                "Differences here allow for it; plain means of estimates would not."
            )
    return said
