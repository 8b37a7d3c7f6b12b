"""How people change from one visit, block or condition to the next: each is compared with themselves.

See :mod:`fidm.fit.within` for the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from fidm.channels import parameter_words
from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, count, meant, remedy
from fidm.experiments.comparison import (
    CORRELATIONS,
    Comparison,
    all_together,
    each_group,
    gaps_of,
    hash_conditions,
    lay_out_for,
    numbers_of,
    say_moves_inferred,
    say_unequal,
    say_unequally_inferred,
)
from fidm.fit.common import Data, default_lapse, threads, valid_lapse
from fidm.fit.profile import SENSITIVITY
from fidm.fit.regression import without_missing
from fidm.fit.within import Changed, offsets_within, sensitivity_within
from fidm.model.channels import Channel
from fidm.model.effort import far_longer
from fidm.model.gaps import has_data
from fidm.record import Record
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Integers, Progress


def compare_within(
    task: TaskModel | Iterable[TaskModel],
    whole: Cohort,
    by: str,
    *,
    reference: str | None,
    channels: Sequence[Channel] | None,
    lapse: float | Literal["estimate"] | None,
    inferred: float,
    level: float,
    workers: int | None,
    on_progress: Progress | None,
) -> Comparison:
    """Compare people with themselves: how parameters go with a column of the episodes."""
    every = whole.by_episode()
    stated = without_missing(whole.episodes.select(by))
    units = every[np.flatnonzero(stated & has_data(every))]
    known, contrasts, condition = _conditions(units.episodes[by], by, reference)
    owner = units.participants["person"].rle_id().to_numpy().astype(np.int64)

    tasks = TaskSet.of(task)
    longest = far_longer(whole)[1]
    used, levels, data, constant = lay_out_for(tasks, units, channels, inferred, longest)
    pool, rate = threads(workers), valid_lapse(default_lapse(lapse, "eb"))
    say = on_progress or (lambda doing, done, of: None)
    found: list[Changed] = []
    notes = [*constant]
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
                "known": hash_conditions(whole, by),
            },
            cohort=whole,
        ),
        **_change_tables(found, contrasts, level),
        groups=described,
        correlations=pl.DataFrame(schema=CORRELATIONS),
        by=by,
        adjust=(),
        level=level,
        notes=(
            *_said_reference(contrasts, reference),
            *_unstated(int((~stated).sum()), by),
            *say_unequal(described, "conditions"),
            *say_unequally_inferred(described, inferred),
            *say_moves_inferred(data, inferred),
            *notes,
            *(said for one in found for said in one.warnings),
            *_of_changes(found, by),
        ),
        gaps=gaps_of(whole, whole),
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
        raise DataError(f"{by} has no condition {base!r}. {meant([base], sorted(names))}")
    others = sorted(name for name in names if name != base)
    known = np.column_stack([(condition == other).to_numpy() for other in others]).astype(np.float64)
    told = {name: f"{by} {name}" if name.replace(".", "").isdigit() else name for name in names}
    return known, [f"{told[other]} / {told[base]}" for other in others], condition


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
                    "auc_unadjusted": None,
                    "n_people": one.n_people,
                }
            )
            terms.append((one.parameter, name, *ends[:1], one.se[place], *ends[1:], p[place]))
        spread = (None, one.spread, None, None, one.n_people, one.n_paired, one.slope_sd)
        overall.append((one.parameter, one.together(), *spread))
    number = dict.fromkeys(("p", "p_interaction", "sd", "sd_without", "explained"), pl.Float64)
    return {
        "table": all_together(pl.DataFrame(rows, schema_overrides=numbers_of(rows))),
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
            "moves": data.n_steps,
            "inferred": data.n_inferred,
        },
        nan_to_null=True,
    )
    did = counted.group_by("group", "person").agg(pl.exclude("group", "person").sum())
    return each_group(did)


def _said_reference(contrasts: Sequence[str], reference: str | None) -> list[str]:
    base = contrasts[0].partition(" / ")[2]
    other = f"; {remedy('reference', 'fidm compare --reference')} names another"
    how = "" if reference else f", the lower of two numbers or the condition of most episodes{other}"
    return [f"Reference: {base}{how}."] if base else []


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
