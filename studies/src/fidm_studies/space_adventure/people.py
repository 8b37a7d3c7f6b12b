"""Estimates of everybody who flew, and what they have to do with groups, tests and published estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.channels import LogNormal
from fidm.cohort import Cohort
from fidm.experiments.shared import by_method
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.model.effort import segment_owner_offsets
from fidm.types import Values
from fidm_studies.dataset import Loaded
from fidm_studies.resampling import (
    Interval,
    holm,
    partial_rank_correlation,
    rank_correlation,
    separation,
    stepped_up,
)
from fidm_studies.space_adventure.dataset import CHOICES, STUDENTS
from fidm_studies.space_adventure.files import N_ITEMS

DESIGN = ("choice_index", "noise", "steps_to_go")
"""What reaction times are conditioned on: first, second or third choice, noise, and flights to go.

The first has three levels, the second two, and the third is a number. They do not determine each other: a
first choice has two or three flights to go, a second one or two.
"""

TIME = LogNormal("response_time", "rt_s", design=DESIGN)
"""The effort channel: one θ per person for the reaction times of all choices."""

FIRST, LATER = "first_choice", "later_choices"
TWO_TIMES = (
    LogNormal(FIRST, "first_rt_s", design=("noise", "steps_to_go")),
    LogNormal(LATER, "later_rt_s", design=("is_third", "noise", "steps_to_go")),
)
"""Another reading: one θ for first choices, and one for those that follow."""

BARE = LogNormal("response_time", "rt_s", design=())
"""The channel without any design, to see what conditioning does."""

ETA, THETA = "eta", "theta"
IN_TIME = "mini-blocks, first against last half"
"""What is dealt to halves if the first half of a session is compared with the last."""

UNDER = 40
"""A cut of ours: relations are looked at again among adults below this age, where age differs less."""

TESTS = tuple(N_ITEMS)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Everybody's estimates beside what else is known of them.

    Parameters
    ----------
    people : DataFrame
        A row per person: the covariates, ``eta``, ``theta``, ``first_choice``, ``later_choices``.
    adults : Cohort
        The people of the studies of ageing and of alcohol, which the population was learned from.
    fit, profile
        Of the one channel; the profile is that of the adults.
    two, bare : Fit
        With two channels of time, and with one that is conditioned on nothing.
    """

    people: pl.DataFrame
    adults: Cohort
    fit: Fit
    profile: Profile
    two: Fit
    bare: Fit

    @property
    def adult_people(self) -> pl.DataFrame:
        """The rows of the adults."""
        return self.people.filter(pl.col("source") != STUDENTS)


def estimate_people(loaded: Loaded, values: Sequence[Values], *, workers: int | None = None) -> Estimates:
    """Learn what adults share, and estimate everybody."""
    cohort = with_two_times(loaded.cohort)
    is_adult = (cohort.participants["source"] != STUDENTS).to_numpy()
    adults = cohort[np.flatnonzero(is_adult)]

    def fitted(*channels: LogNormal) -> Fit:
        return Model(loaded.tasks, channels=channels, values=values).fit(adults, workers=workers)

    fit, two, bare = fitted(TIME), fitted(*TWO_TIMES), fitted(BARE)
    everybody, by_kind = fit.profile(cohort, workers=workers), two.profile(cohort, workers=workers)
    people = cohort.participants.with_columns(
        pl.Series(ETA, everybody.action_sensitivity),
        pl.Series(THETA, everybody[TIME.name]),
        pl.Series(FIRST, by_kind[FIRST]),
        pl.Series(LATER, by_kind[LATER]),
    )
    return Estimates(people, adults, fit, fit.profile(adults, workers=workers), two, bare)


def with_two_times(cohort: Cohort) -> Cohort:
    """Return the same people with reaction times of first and of later choices in columns of their own."""
    is_first = pl.col("choice_index") == CHOICES[0]
    return replace(
        cohort,
        segments=cohort.segments.with_columns(
            first_rt_s=pl.when(is_first).then("rt_s"),
            later_rt_s=pl.when(~is_first).then("rt_s"),
            is_third=(pl.col("choice_index") == CHOICES[2]).cast(pl.Int32),
        ),
    )


def halves_in_time(
    found: Estimates, *, seed: int, bootstrap: int, workers: int | None = None
) -> pl.DataFrame:
    """Return how far the first half of everybody's mini-blocks agrees with the last: people learn and tire.

    Each half is estimated alone, by maximum likelihood, as in
    :func:`fidm.experiments.reliability.reliability`. People whose η is 0 or infinite in a half are left out
    of all but the rank correlation. Columns: ``parameter``, ``n``, ``r``, ``rank_r``, ``reliability``,
    ``low``, ``high``.
    """
    cohort, alone = found.adults, by_method(found.fit, "mle")
    counts = np.diff(cohort.episode_offsets)
    place = np.arange(cohort.n_episodes) - np.repeat(cohort.episode_offsets[:-1], counts)
    is_early = place < np.repeat(counts, counts) / 2
    weight = np.ones(cohort.n_steps) if cohort.weight is None else cohort.weight

    def half(episodes: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        steps = np.repeat(episodes, np.diff(cohort.step_offsets))
        segments = pl.Series(np.repeat(episodes, np.diff(cohort.segment_offsets)))
        times = cohort.segments.with_columns(pl.when(segments).then(pl.col(TIME.column)).alias(TIME.column))
        some = replace(cohort, weight=np.where(steps, weight, 0.0), segments=times)
        profile = alone.profile(some, workers=workers)
        return {ETA: profile.log_sensitivity, THETA: profile[TIME.name]}

    early, late = half(is_early), half(~is_early)
    rows = []
    for name in (ETA, THETA):
        r, whole = stepped_up(early[name], late[name], seed=seed, bootstrap=bootstrap)
        ranked = rank_correlation(early[name], late[name], seed=seed, bootstrap=1)
        rows.append(
            {
                "parameter": name,
                "n": whole.n,
                "r": r,
                "rank_r": ranked.value,
                "reliability": whole.value,
                "low": whole.low,
                "high": whole.high,
            }
        )
    return pl.DataFrame(rows)


# ---------------------------------------------------------------------- tables


def agreement(people: pl.DataFrame, fits: pl.DataFrame, *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return how η and θ go with what the authors estimated of the same people."""
    joined = people.join(fits.select("participant", *PUBLISHED), on="participant", how="inner")
    rows = [
        {"parameter": parameter, "published": published, **correlated.to_dict()}
        for published in PUBLISHED
        for parameter in (ETA, THETA)
        for correlated in [
            rank_correlation(joined[parameter], joined[published], seed=seed, bootstrap=bootstrap)
        ]
    ]
    return pl.DataFrame(rows).drop("p")


PUBLISHED = ("model_beta", "mean_planning_depth", "model_theta", "model_alpha")
"""What the authors estimated of each person: response precision, planning depth, bias and learning rate."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two groups of people to be compared.

    Parameters
    ----------
    name : str
        What the comparison is called.
    column, first, second : str
        The column that says who is in which group, and the two groups.
    """

    name: str
    column: str
    first: str
    second: str


AGE = Comparison("age", "age_group", "older", "younger")
CLINICAL = Comparison("clinical", "clinical_group", "alcohol use disorder", "control")


def compare(
    people: pl.DataFrame, which: Comparison, parameters: Sequence[str], *, seed: int, bootstrap: int
) -> pl.DataFrame:
    """Return of each parameter how probably somebody of the first group has more than one of the second."""
    first, second = (people.filter(pl.col(which.column) == name) for name in (which.first, which.second))
    rows: list[dict[str, Any]] = []
    for parameter in parameters:
        found = separation(first[parameter], second[parameter], seed=seed, bootstrap=bootstrap)
        rows.append(
            {
                "comparison": which.name,
                "parameter": parameter,
                "first": which.first,
                "second": which.second,
                "n_first": first.height,
                "n_second": second.height,
                "median_first": first[parameter].median(),
                "median_second": second[parameter].median(),
                "auc": found.value,
                "low": found.low,
                "high": found.high,
            }
        )
    return pl.DataFrame(rows)


def turned(row: Mapping[str, Any]) -> Interval:
    """Return the AUC of a row with the groups exchanged: how probably the second has more."""
    return Interval(1 - row["auc"], 1 - row["high"], 1 - row["low"], row["n_first"] + row["n_second"])


def relations(people: pl.DataFrame, *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return how η and θ go with the other tests: in all adults, and where age differs less.

    ``partial`` is the rank correlation with alcohol use disorder held fixed: having it goes with η here, and
    may go with the tests. It is missing where nobody of a sample has it. p-values are corrected by Holm's
    method within each sample, those of plain and of partial correlations apart.
    """
    samples = {
        "all adults": people,
        f"adults under {UNDER}": people.filter(pl.col("age") < UNDER),
        "older": people.filter(age_group="older"),
        "younger": people.filter(age_group="younger"),
    }
    rows = []
    for sample, chosen in samples.items():
        found = [
            {"sample": sample, "parameter": parameter, "test": test, **correlated.to_dict()}
            for parameter in (ETA, THETA)
            for test in TESTS
            for correlated in [
                rank_correlation(chosen[parameter], chosen[test], seed=seed, bootstrap=bootstrap)
            ]
        ]
        clinical = (chosen[CLINICAL.column] == CLINICAL.first).fill_null(value=False)
        partly = [
            partial_rank_correlation(
                chosen[row["parameter"]], chosen[row["test"]], clinical, seed=seed, bootstrap=bootstrap
            )
            for row in found
        ]
        corrected, of_partial = holm([row["p"] for row in found]), holm([one.p for one in partly])
        rows += [
            {
                **row,
                "p_holm": p,
                "partial": one.value,
                "partial_low": one.low,
                "partial_high": one.high,
                "partial_p": one.p,
                "partial_p_holm": partial_p,
            }
            for row, p, one, partial_p in zip(found, corrected, partly, of_partial, strict=True)
        ]
    return pl.DataFrame(rows).with_columns(pl.selectors.starts_with("partial").fill_nan(None))


def with_age(people: pl.DataFrame, *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return how η, θ and the other tests go with age."""
    rows = [
        {
            "measure": name,
            **rank_correlation(people[name], people["age"], seed=seed, bootstrap=bootstrap).to_dict(),
        }
        for name in (ETA, THETA, *TESTS)
    ]
    return pl.DataFrame(rows).drop("p")


def reaction_times(loaded: Loaded) -> pl.DataFrame:
    """Return the typical reaction time of each kind of choice, of all adults and of the age groups."""
    cohort = loaded.cohort
    owner = np.repeat(np.arange(len(cohort)), np.diff(segment_owner_offsets(cohort)))
    choices = cohort.segments.with_columns(
        group=cohort.participants["age_group"].gather(owner),
        source=cohort.participants["source"].gather(owner),
    ).filter(pl.col("source") != STUDENTS)
    keys = ("choice_index", "steps_to_go", "noise")
    logs = pl.col("rt_s").log()
    numbers = (pl.len().alias("n_choices"), logs.mean().exp().alias("typical_s"), logs.std().alias("log_sd"))
    parts = [
        choices.group_by(keys).agg(*numbers).with_columns(group=pl.lit("all adults")),
        choices.drop_nulls("group").group_by("group", *keys).agg(*numbers),
    ]
    return (
        pl.concat(parts, how="diagonal")
        .with_columns(pl.col("choice_index").cast(pl.Enum(CHOICES)))
        .sort("group", "choice_index", "steps_to_go", "noise")
        .select("group", *keys, "n_choices", "typical_s", "log_sd")
    )


def medians(people: pl.DataFrame) -> pl.DataFrame:
    """Return the median and the quartiles of η and θ in every group of people."""
    groups = {
        "older": pl.col("age_group") == "older",
        "younger": pl.col("age_group") == "younger",
        "alcohol use disorder": pl.col("clinical_group") == "alcohol use disorder",
        "control": pl.col("clinical_group") == "control",
        "students": pl.col("source") == STUDENTS,
    }
    rows = []
    for group, is_in in groups.items():
        chosen = people.filter(is_in)
        row: dict[str, Any] = {"group": group, "n": chosen.height, "median_age": chosen["age"].median()}
        for parameter in (ETA, THETA):
            row[parameter] = chosen[parameter].median()
            row[f"{parameter}_low"] = chosen[parameter].quantile(0.25, "linear")
            row[f"{parameter}_high"] = chosen[parameter].quantile(0.75, "linear")
        rows.append(row)
    return pl.DataFrame(rows)
