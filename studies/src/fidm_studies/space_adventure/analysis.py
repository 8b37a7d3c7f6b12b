"""The analysis of the Space Adventure Task: how older and younger people choose, and how long they take.

η comes from the choices of the two or three flights of each mini-block, valued by the exact hard-max solution
of the task; θ from the logarithm of reaction times, given which choice it is, the noise and the flights to
go. What people share is learned once from all 90 adults, by empirical Bayes, without regard to groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

import fidm
from fidm.classify.classify import classify
from fidm.classify.result import Classification
from fidm.cohort import Cohort
from fidm.experiments.reliability import reliability
from fidm.fit.profile import SENSITIVITY
from fidm.record import Record
from fidm.sklearn import FactorizedFeatures
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Progress, Values
from fidm_studies.analysis import ARITHMETIC, KNOWN, PUBLISHED, Band, Findings, expect
from fidm_studies.dataset import Loaded, no_progress
from fidm_studies.resampling import Interval, rank_correlation
from fidm_studies.space_adventure.dataset import BOTH, STUDENTS
from fidm_studies.space_adventure.people import (
    AGE,
    CLINICAL,
    DESIGN,
    ETA,
    FIRST,
    IN_TIME,
    LATER,
    TESTS,
    THETA,
    TIME,
    TWO_TIMES,
    Estimates,
    agreement,
    compare,
    estimate_people,
    halves_in_time,
    medians,
    reaction_times,
    relations,
    turned,
    with_age,
)

TOLERANCE = 1e-3
"""Published values are equal to ours if they differ by less than this, in units of fuel."""

FOLDS, REPEATS = 5, 3
"""How many folds of people cross-validation has, and how often it is repeated with other folds."""

TWO = "fidm-two-times"
"""The representation with one θ for first choices and one for later ones."""

HALVES: tuple[Literal["episodes", "segments"], ...] = ("episodes", "segments")
"""What is dealt to halves: mini-blocks, and, to see what that does, single choices."""

FEWEST_DRAWS = 20
STEPS = 6

ADJUSTMENTS = {"nothing": (), "gender": ("gender",), "gender and other tests": ("gender", *TESTS)}
"""What the comparison of ages is adjusted for."""


def analyse(
    loaded: Loaded,
    *,
    seed: int = 1,
    bootstrap: int = 1000,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Findings:
    """Analyse the Space Adventure Task."""
    say = on_progress or no_progress
    say("solving the task", 0, STEPS)
    values = tuple(solve(task) for task in loaded.tasks)
    same = compare_values(loaded, values)
    say("estimating people", 1, STEPS)
    found = estimate_people(loaded, values, workers=workers)
    adults = found.adult_people
    draws = {"seed": seed, "bootstrap": bootstrap}
    say("split halves", 2, STEPS)
    halves = _reliability(loaded, found, seed, bootstrap, workers)
    say("groups and tests", 3, STEPS)
    published = agreement(adults, loaded.tables["published_fits"], **draws)
    kept = loaded.tables["published_fits"].select("participant", "model_beta")
    groups = _groups(adults, kept, draws)
    times = _two_kinds(adults, draws)
    say("telling older from younger", 4, STEPS)
    told = _older_or_younger(loaded, found, values, seed, workers)
    say("writing", 5, STEPS)
    tables = {
        "values": same,
        "transitions": loaded.tables["transitions"],
        "population": found.fit.population_table(),
        "agreement": published,
        "reliability": halves,
        "reaction_times": reaction_times(loaded),
        "two_kinds_of_time": times,
        "medians": medians(found.people),
        "groups": groups,
        "latent": _latent(loaded, found, workers),
        "ablation": told.scores.select(
            "representation", "metric", "n_features", "n", "value", "se", "low", "high"
        ),
        "ablation_differences": told.differences.select(
            "representation", "against", "metric", "value", "low", "high", "p"
        ),
        "relations": relations(adults, **draws),
        "age": with_age(adults, **draws),
        "people": found.people,
    }
    numbers = _numbers(loaded, found, tables)
    say("done", STEPS, STEPS)
    return Findings(
        record=Record.of(
            "space-adventure",
            loaded.tasks,
            seed=seed,
            settings={"bootstrap": bootstrap, "folds": FOLDS, "repeats": REPEATS, "design": list(DESIGN)},
            cohort=loaded.cohort,
        ),
        tables=tables,
        numbers=numbers,
        expectations=expect(_expected(tables, numbers), BANDS),
    )


# ---------------------------------------------------------------------- the task


def compare_values(loaded: Loaded, values: Sequence[Values]) -> pl.DataFrame:
    """Return every published value beside what the solved task gives, and whether they are the same.

    A value of planning depth d is that of the first state if only d flights were to go.
    """
    tasks = {task.name: (task, solved) for task, solved in zip(loaded.tasks, values, strict=True)}

    def ours(row: dict[str, Any]) -> float:
        if row["task"] not in tasks:
            return float("nan")
        task, solved = tasks[row["task"]]
        return float(solved.q[task.at(row["planet"], row["depth"]), row["action"]])

    table = loaded.tables["published_values"]
    found = table.with_columns(ours=pl.Series([ours(row) for row in table.iter_rows(named=True)]))
    return found.with_columns(is_same=(pl.col("ours") - pl.col("q")).abs() < TOLERANCE)


def _pairs(values: pl.DataFrame) -> pl.DataFrame:
    """Whether both actions of a mini-block and depth have the published values."""
    keys = ("task", "block_id", "depth")
    return values.group_by(keys).agg(pl.col("is_same").all(), pl.col("misprint").any()).sort(keys[1:])


# ---------------------------------------------------------------------- people


def _reliability(
    loaded: Loaded, found: Estimates, seed: int, bootstrap: int, workers: int | None
) -> pl.DataFrame:
    """Split halves of whole mini-blocks, odd and even, and of single choices; the model's; halves in time."""
    dealt: dict[Literal["episodes", "segments"], pl.DataFrame] = {}
    for halves in HALVES:
        dealt[halves] = reliability(
            loaded.tasks,
            found.adults,
            fit=found.fit,
            halves=halves,
            seed=seed,
            bootstrap=max(FEWEST_DRAWS, bootstrap),
            workers=workers,
        ).table
    columns = ("parameter", "halves", "kind", "n", "r", "rank_r", "reliability", "low", "high")
    rows = [
        dealt["episodes"].filter(pl.col("kind") != "retest").with_columns(halves=pl.lit("mini-blocks")),
        dealt["segments"].filter(kind="split-half").with_columns(halves=pl.lit("choices")),
    ]
    named = {SENSITIVITY: ETA, TIME.name: THETA}
    in_time = halves_in_time(found, seed=seed, bootstrap=max(FEWEST_DRAWS, bootstrap), workers=workers)
    dealt_out = (
        pl.concat(rows, how="vertical_relaxed")
        .with_columns(
            pl.col("parameter").replace(named),
            halves=pl.when(pl.col("kind") == "model").then(pl.lit("none: by the model")).otherwise("halves"),
        )
        .select(columns)
    )
    split = in_time.with_columns(kind=pl.lit("split-half"), halves=pl.lit(IN_TIME))
    return pl.concat([dealt_out, split], how="diagonal_relaxed").fill_nan(None)


def _groups(adults: pl.DataFrame, published: pl.DataFrame, draws: dict[str, int]) -> pl.DataFrame:
    """Older against younger; alcohol use disorder against controls, all and those with published fits."""
    both = (ETA, THETA, FIRST, LATER)
    theirs = adults.join(published, on="participant", how="inner")
    left = compare(theirs, CLINICAL, (ETA, THETA, FIRST, LATER, "model_beta"), **draws)
    return pl.concat(
        [
            compare(adults, AGE, both, **draws),
            compare(adults, CLINICAL, both, **draws),
            left.with_columns(comparison=pl.lit("clinical, as published")),
        ]
    )


def _latent(loaded: Loaded, found: Estimates, workers: int | None) -> pl.DataFrame:
    """Older against younger in the latent parameters themselves, adjusted for less and for more."""
    tasks, aged = _aged(loaded.tasks, found)
    tables = []
    for words, adjust in ADJUSTMENTS.items():
        compared = fidm.compare(
            tasks,
            aged,
            by=AGE.column,
            adjust=adjust,
            reference=AGE.second,
            channels=(TIME, *TWO_TIMES),
            workers=workers,
        )
        tables.append(compared.table.select(pl.lit(words).alias("adjusted"), pl.all()))
    return pl.concat(tables).with_columns(pl.col("parameter").replace({SENSITIVITY: ETA, TIME.name: THETA}))


def _aged(tasks: Sequence[TaskModel], found: Estimates) -> tuple[tuple[TaskModel, ...], Cohort]:
    """The people of the study of ageing, and the tasks they did."""
    aged = found.adults[np.flatnonzero(found.adults.participants[AGE.column].is_not_null().to_numpy())]
    played = set(aged.tasks)
    return tuple(task for task in tasks if task.name in played), aged


def _two_kinds(adults: pl.DataFrame, draws: dict[str, int]) -> pl.DataFrame:
    """How the times of first and of later choices go with each other, with η and with age."""
    pairs = [(FIRST, LATER), (FIRST, ETA), (LATER, ETA), (THETA, ETA), (FIRST, "age"), (LATER, "age")]
    rows = [
        {"one": one, "other": other, **rank_correlation(adults[one], adults[other], **draws).to_dict()}
        for one, other in pairs
    ]
    return pl.DataFrame(rows).drop("p")


def _older_or_younger(
    loaded: Loaded, found: Estimates, values: Sequence[Values], seed: int, workers: int | None
) -> Classification:
    """The paper's ablation on a real question: older or younger, from choices, from times, and from both."""
    tasks, aged = _aged(loaded.tasks, found)
    solved = tuple(one for task, one in zip(loaded.tasks, values, strict=True) if task in tasks)
    return classify(
        tasks,
        aged,
        representations=("action", "effort", "fidm", TWO),
        own={TWO: FactorizedFeatures(tasks, channels=TWO_TIMES, values=solved)},
        channels=(TIME,),
        label=AGE.column,
        normal=AGE.second,
        by=(),
        folds=FOLDS,
        repeats=REPEATS,
        permutations=0,
        seed=seed,
        workers=workers,
    )


# ---------------------------------------------------------------------- numbers


def _numbers(loaded: Loaded, found: Estimates, tables: dict[str, pl.DataFrame]) -> dict[str, Any]:
    """The single numbers that words and expectations are made of."""
    adults = found.adult_people
    flights = tables["transitions"].filter(pl.col("study") != STUDENTS)
    pairs = _pairs(tables["values"])
    fine = tables["values"].filter(~pl.col("misprint"))
    spread = {row["parameter"]: row["estimate"] for row in _shapes(found.fit)}
    bare = found.bare.profile(found.adults)
    conditioned = rank_correlation(bare[TIME.name], found.profile[TIME.name], seed=0, bootstrap=20)
    one, two = (
        fit.log_likelihood(found.adults, at="prior")
        .drop("participant", "action", "total")
        .sum()
        .sum_horizontal()
        for fit in (found.fit, found.two)
    )
    age = {row["parameter"]: row for row in tables["groups"].filter(comparison="age").iter_rows(named=True)}
    return {
        "n_adults": adults.height,
        "n_joined": adults.filter(source=BOTH).height,
        "n_students": found.people.height - adults.height,
        "n_published_fits": loaded.tables["published_fits"].height,
        "n_choices": found.adults.n_steps,
        "transitions": int(flights["transitions"].sum()),
        "impossible": int(flights["impossible"].sum()),
        "other_fuel": int(flights["other_fuel"].sum()),
        "pairs": pairs.height,
        "pairs_same": int(pairs["is_same"].sum()),
        "pairs_misprinted": int(pairs["misprint"].sum()),
        "largest_difference": float((fine["ours"] - fine["q"]).abs().max() or 0.0),  # type: ignore[arg-type]
        "log_sd": spread[TIME.name],
        "log_sd_without_design": {row["parameter"]: row["estimate"] for row in _shapes(found.bare)}[
            TIME.name
        ],
        "theta_with_and_without_design": conditioned.value,
        "gain_of_two_times": float((two - one)[0]) / found.adults.n_segments,
        "age_eta": turned(age[ETA]).to_dict(),
        "age_theta": _as_is(age[THETA]).to_dict(),
        "warnings": list(found.fit.warnings),
    }


def _shapes(fit: Any) -> list[dict[str, Any]]:
    """The spread of log reaction times about what is expected, of every channel."""
    return list(fit.population_table().filter(quantity="log_sd").iter_rows(named=True))


def _as_is(row: dict[str, Any]) -> Interval:
    return Interval(row["auc"], row["low"], row["high"], row["n_first"] + row["n_second"])


# We wrote these bands down before we estimated anything; nothing but our word shows that. The AUC of η is
# known to be about .78, that of θ about .89; one published pair of values is a misprint.
BANDS: tuple[Band, ...] = (
    ("n_adults", "people of the studies of ageing and alcohol", 90, 90, KNOWN, ""),
    ("n_joined", "people who are in both of them", 27, 27, KNOWN, ""),
    ("n_students", "students", 44, 44, KNOWN, ""),
    ("transitions", "transitions in the files of both studies", 29_250, 29_250, KNOWN, ""),
    ("impossible", "transitions that the rules do not allow", 0, 0, ARITHMETIC, ""),
    ("other_fuel", "transitions that brought other fuel", 0, 0, ARITHMETIC, ""),
    ("pairs_same", "published pairs of values, of {pairs}, that hard-max Q equals", 249, 250, PUBLISHED,
     "misprints in the published table: {pairs_misprinted}"),
    ("beta", "Spearman correlation of η with the published model_beta", 0.87, math.inf, KNOWN,
     "{n_beta} people have a published estimate"),
    ("eta", "split-half reliability of η", 0.90, math.inf, KNOWN, "odd and even mini-blocks"),
    ("theta", "split-half reliability of θ", 0.90, math.inf, KNOWN, "odd and even mini-blocks"),
    ("age_eta_auc", "AUC of η, younger above older", 0.73, 0.83, KNOWN,
     "the published direction: more response noise in older people"),
    ("age_theta_auc", "AUC of θ, older above younger", 0.84, 0.94, KNOWN, ""),
)  # fmt: skip


def _expected(tables: Mapping[str, pl.DataFrame], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that have a band."""
    beta = tables["agreement"].filter(parameter=ETA, published="model_beta").row(0, named=True)
    halves = tables["reliability"].filter(halves="mini-blocks", kind="split-half")
    return {
        **numbers,
        **dict(halves.select("parameter", "reliability").iter_rows()),
        "beta": beta["value"],
        "n_beta": beta["n"],
        "age_eta_auc": numbers["age_eta"]["value"],
        "age_theta_auc": numbers["age_theta"]["value"],
    }
