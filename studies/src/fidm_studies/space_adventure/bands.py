"""What is to come out of the Space Adventure Task.

We wrote these figures down before we estimated anything; nothing but our word shows that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm_studies.analysis import Expectation

Band = tuple[float, float]

N_TRANSITIONS: Band = (29_250, 29_250)
"""Flights in the files of older, younger, alcohol use disorder and control."""

IMPOSSIBLE: Band = (0, 0)
"""Flights that led somewhere the rules do not allow."""

OTHER_FUEL: Band = (0, 0)
"""Flights after which the recorded fuel is not what the rules say."""

SAME_VALUES: Band = (249, 250)
"""Published pairs of values, of 250, that the rules reproduce; one is a misprint."""

N_ADULTS: Band = (90, 90)
N_JOINED: Band = (27, 27)
N_STUDENTS: Band = (44, 44)

BETA: Band = (0.87, math.inf)
"""Rank correlation of η with the published ``model_beta``."""

SPLIT_HALF: Band = (0.90, math.inf)
"""Reliability of η and of θ, odd against even mini-blocks."""

AGE_ETA: Band = (0.73, 0.83)
"""AUC of η, younger people's being higher: about .78."""

AGE_THETA: Band = (0.84, 0.94)
"""AUC of θ, older people's being higher: about .89."""


def expectations(tables: Mapping[str, pl.DataFrame], numbers: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """Return what was to come out, and what did.

    Parameters
    ----------
    tables, numbers
        What the analysis found.
    """
    beta = tables["agreement"].row(
        by_predicate=(pl.col("parameter") == "eta") & (pl.col("published") == "model_beta"), named=True
    )
    halves = {
        row["parameter"]: row
        for row in tables["reliability"].filter(halves="mini-blocks").iter_rows(named=True)
    }
    misprinted = numbers["pairs_misprinted"]
    known, published, arithmetic = "known beforehand", "published", "arithmetic"
    rows = [
        ("people of the studies of ageing and alcohol", numbers["n_adults"], N_ADULTS, known, ""),
        ("people who are in both of them", numbers["n_joined"], N_JOINED, known, ""),
        ("students", numbers["n_students"], N_STUDENTS, known, ""),
        ("transitions in the files of both studies", numbers["transitions"], N_TRANSITIONS, known, ""),
        ("transitions that the rules do not allow", numbers["impossible"], IMPOSSIBLE, arithmetic, ""),
        ("transitions that brought other fuel", numbers["other_fuel"], OTHER_FUEL, arithmetic, ""),
        (
            f"published pairs of values, of {numbers['pairs']}, that hard-max Q equals",
            numbers["pairs_same"],
            SAME_VALUES,
            published,
            f"misprints in the published table: {misprinted}",
        ),
        (
            "Spearman correlation of η with the published model_beta",
            beta["value"],
            BETA,
            known,
            f"{beta['n']} people have a published estimate",
        ),
        (
            "split-half reliability of η",
            _of(halves, "eta"),
            SPLIT_HALF,
            known,
            "odd and even mini-blocks",
        ),
        (
            "split-half reliability of θ",
            _of(halves, "theta"),
            SPLIT_HALF,
            known,
            "odd and even mini-blocks",
        ),
        (
            "AUC of η, younger above older",
            numbers["age_eta"]["value"],
            AGE_ETA,
            known,
            "the published direction: more response noise in older people",
        ),
        ("AUC of θ, older above younger", numbers["age_theta"]["value"], AGE_THETA, known, ""),
    ]
    return tuple(
        Expectation(what, float("nan") if found is None else float(found), low, high, source, note)
        for what, found, (low, high), source, note in rows
    )


def _of(rows: dict[str, dict[str, Any]], parameter: str) -> float | None:
    return rows[parameter]["reliability"] if parameter in rows else None
