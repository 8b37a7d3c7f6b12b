"""What the profiles of the children go with: learning, their own other half, the other child of the pair.

Pairs are resampled with replacement, both children each time. Profiles are shrunk estimates, but for halves;
what was learned from all children together stays as it was.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import norm

from fidm.cohort import Cohort
from fidm.experiments.reliability import reliability
from fidm.fit.effort_alone import EffortFit
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY, Profile
from fidm.tasks.model import TaskModel
from fidm.types import Floats
from fidm_studies.resampling import holm, rank_correlation

OUTCOMES = {"relative_gain": "relative gain", "gain": "gain (right answers)"}


def estimates(profile: Profile) -> dict[str, Floats]:
    """Return log η and every θ by name, [P]; NaN where nothing was observed."""
    found = {SENSITIVITY: np.asarray(profile.log_sensitivity, dtype=np.float64)}
    for k, name in enumerate(profile.parameters[1:], start=1):
        found[name] = np.where(profile.n[:, k] > 0, profile.estimate[:, k], np.nan)
    return found


def relations(cohort: Cohort, profile: Profile, *, seed: int, bootstrap: int) -> pl.DataFrame:
    """Return Spearman's correlations of η and every θ with what was learned.

    Columns: ``parameter``, ``outcome``, ``value``, ``low``, ``high``, ``n``, ``p``, ``p_corrected``,
    and what could have been found. The p-values take children as independent and are corrected for their
    number by Holm's method. ``detectable`` is the correlation that a single test would have found four times
    out of five if all n children were independent, ``detectable_corrected`` the same after correction for the
    number of tests; ``pairs_detectable`` and ``pairs_detectable_corrected`` are what they are if the two
    children of a pair count as one. The truth lies between.
    """
    team = cohort.participants["team"].to_numpy()
    rows = []
    for name, values in estimates(profile).items():
        for outcome in OUTCOMES:
            learned = cohort.participants[outcome].cast(pl.Float64).fill_null(math.nan).to_numpy()
            row = rank_correlation(values, learned, cluster=team, seed=seed, bootstrap=bootstrap)
            rows.append({"parameter": name, "outcome": outcome, **row.to_dict()})
    table = pl.DataFrame(rows)
    level = 0.05 / table.height
    return table.with_columns(
        p_corrected=pl.Series(holm(table["p"].to_list()), dtype=pl.Float64),
        detectable=pl.Series([detectable(n) for n in table["n"]]),
        detectable_corrected=pl.Series([detectable(n, level=level) for n in table["n"]]),
        pairs_detectable=pl.Series([detectable(n // 2) for n in table["n"]]),
        pairs_detectable_corrected=pl.Series([detectable(n // 2, level=level) for n in table["n"]]),
    )


def detectable(n: int, *, level: float = 0.05, power: float = 0.8) -> float:
    """Return the correlation that n independent people would show to be more than chance with this power.

    ``level`` is that of the test: 0.05 for a single one, a twelfth of it if twelve are corrected for.

    Examples
    --------
    >>> round(detectable(20), 2), round(detectable(78), 2)
    (0.59, 0.31)
    """
    if n <= 3:
        return math.nan
    return math.tanh(float(norm.ppf(1 - level / 2) + norm.ppf(power)) / math.sqrt(n - 3))


def halves(
    task: TaskModel, fit: Fit, cohort: Cohort, *, seed: int, bootstrap: int, workers: int | None
) -> pl.DataFrame:
    """Return how far two halves of a child's own data agree: η by episode, θ by stretch of a turn.

    Odd ones are held against even ones, each half estimated alone by maximum likelihood; see
    :mod:`fidm.experiments.reliability`. Columns: ``parameter``, ``r``, ``rank_r``, ``reliability`` (of the
    whole, by Spearman and Brown), ``low``, ``high``, ``n`` and ``without``, those who have no finite number
    in a half.
    """
    often: Any = {"together": "team", "seed": seed, "bootstrap": bootstrap, "workers": workers}
    eta = pl.col("parameter") == SENSITIVITY
    found = [reliability(task, cohort, fit=fit, halves="episodes", **often).table.filter(eta)]
    spoken = cohort[np.flatnonzero(np.diff(cohort.segment_offsets[cohort.episode_offsets]) > 0)]
    if fit.channels and len(spoken) > 1:
        effort = EffortFit(
            channels=fit.channels, levels=fit.levels, populations=fit.populations, method=fit.method,
            population=fit.population, level=fit.level, n_people=fit.n_people, n_learned=fit.n_learned,
        )  # θ needs no task  # fmt: skip
        found.append(reliability(None, spoken, fit=effort, halves="segments", **often).table)
    columns = ("parameter", "r", "rank_r", "reliability", "low", "high", "n", "without")
    return pl.concat([one.filter(kind="split-half").select(columns) for one in found], how="vertical_relaxed")


def attempts(cohort: Cohort) -> NDArray[np.int64]:
    """Return the number of the attempt that each step belongs to, [N]."""
    attempt = cohort.episodes["episode"].str.split(".").list.first().cast(pl.Int64).to_numpy()
    return np.repeat(attempt, np.diff(cohort.step_offsets))


def pair_likeness(cohort: Cohort, profile: Profile, *, seed: int, bootstrap: int) -> dict[str, float | int]:
    """Return how far the two children of a pair have the same η, as Spearman's correlation over pairs."""
    log_eta = pl.DataFrame(
        {
            "team": cohort.participants["team"],
            "place": cohort.participants["child"],
            "log_eta": profile.log_sensitivity,
        }
    ).pivot("place", index="team", values="log_eta")
    both = log_eta.drop_nulls() if {"A", "B"} <= set(log_eta.columns) else pl.DataFrame({"A": [], "B": []})
    return rank_correlation(both["A"], both["B"], seed=seed, bootstrap=bootstrap).to_dict()
