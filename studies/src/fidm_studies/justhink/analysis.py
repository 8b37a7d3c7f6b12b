"""The analysis of JUSThink: choices on 2^20 sets of tracks, speech per turn, removals, and learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.evidence.evidence import find_evidence
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY, Profile
from fidm.model.channels import LOG_MOVES, Channel
from fidm.model.effort import paper_channels
from fidm.record import Record
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Progress, Values
from fidm_studies.analysis import ARITHMETIC, KNOWN, OURS, PUBLISHED, Band, Findings, expect
from fidm_studies.dataset import Loaded, no_progress
from fidm_studies.justhink import people
from fidm_studies.justhink.network import CHANGE, GAMMA
from fidm_studies.justhink.removals import (
    OTHER_CHANGES,
    Reading,
    best_by_chance,
    laid_tracks,
    other_readings,
    removal_aucs,
    removal_by_fifth,
    removal_odds,
    whose_sensitivity,
)
from fidm_studies.justhink.replay import LAID_TWICE, NOT_JOINED, OTHER_COST, REMOVED_TWICE
from fidm_studies.justhink.toggles import solve_toggles, toggle_task

DESIGN = (LOG_MOVES, "role")
"""Speech in a turn is conditioned on the turn's changes and on whether the child lays tracks or tells."""

COMPARED_TRACKS = 12
"""On so many of the tracks the general solver is asked too."""


def analyse(
    loaded: Loaded,
    *,
    seed: int = 1,
    bootstrap: int = 1000,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Findings:
    """Analyse the JUSThink corpus."""
    if bootstrap < 20:
        raise DataError(f"bootstrap is {bootstrap}; at least 20 draws are needed for an interval.")
    say, cohort, task = on_progress or no_progress, loaded.cohort, loaded.tasks[0]
    say("solving", 0, 6)
    values = solve_toggles(task)
    numbers: dict[str, Any] = {**_counts(loaded), **_solved(loaded, task, values)}
    say("fitting", 1, 6)
    # readings are compared by how probable they make choices, so η alone may be free in each of them
    fit = Model(task, channels=channels(cohort), values=values, lapse=0).fit(cohort, workers=workers)
    profile = fit.profile(cohort, workers=workers)
    say("evidence", 2, 6)
    actions = find_evidence(fit, cohort, profile=profile, workers=workers).actions
    laid = laid_tracks(loaded.tables["edits"], actions, loaded.tables["network"])
    say("removals", 3, 6)
    tables = {
        "aucs": removal_aucs(laid, seed=seed, bootstrap=bootstrap),
        "odds": removal_odds(laid, seed=seed, bootstrap=bootstrap),
        "fifths": removal_by_fifth(laid),
    }
    say("learning", 4, 6)
    tables["relations"] = people.relations(cohort, profile, seed=seed, bootstrap=bootstrap)
    tables["halves"] = people.halves(task, fit, cohort, seed=seed, bootstrap=bootstrap, workers=workers)
    tables["population"] = fit.population_table()
    tables["slips"] = _slips(loaded)
    say("other readings", 5, 6)
    reading = Reading(loaded, values, fit, profile, actions, laid, tables["odds"], seed, bootstrap, workers)
    tables["readings"] = other_readings(reading)
    tables["whose"] = whose_sensitivity(reading)
    numbers["best_by_chance"] = best_by_chance(laid, values)
    numbers |= _more_numbers(cohort, fit, profile, laid, tables, seed=seed, bootstrap=bootstrap)
    say("done", 6, 6)
    settings = {
        "bootstrap": bootstrap, "change": CHANGE, "other_changes": list(OTHER_CHANGES), "gamma": GAMMA,
        "normaliser": task.normaliser, "design": list(DESIGN), "drawn": "teams",
    }  # fmt: skip
    return Findings(
        record=Record.of("justhink", loaded.tasks, seed=seed, settings=settings, cohort=cohort),
        tables=tables,
        numbers=numbers,
        expectations=expect(numbers, BANDS),
        notes=fit.warnings,
        parts={
            "estimates": people.estimates(profile),
            "relative_gain": cohort.participants["relative_gain"].to_numpy(),
            "network": loaded.tables["network"],
        },
    )


def channels(cohort: Cohort) -> tuple[Channel, ...]:
    """Return the paper's channels given changes and role, those whose columns the segments have."""
    return tuple(
        replace(one, design=DESIGN) for one in paper_channels() if one.column in cohort.segments.columns
    )


def _counts(loaded: Loaded) -> dict[str, Any]:
    """What the logs hold, and what is not right in them."""
    slips = loaded.tables["slips"]["slip"].to_list()
    logged, sent = loaded.tables["logged"].row(0, named=True), loaded.tables["submissions"]
    lags = loaded.tables["clocks"].group_by("team").agg(pl.col("lag_s").median())["lag_s"].to_numpy()
    spoke = np.diff(loaded.cohort.segment_offsets[loaded.cohort.episode_offsets]) > 0
    best = sent.group_by("team").agg((pl.col("cost") - pl.col("optimal_cost")).min())["cost"]
    return {
        "n_edits": logged["n_edits"],
        "n_loads": logged["n_loads"],
        "n_illegal": slips.count(LAID_TWICE) + slips.count(REMOVED_TWICE),
        "n_submissions": sent.height,
        "n_costs_match": sent.height - slips.count(OTHER_COST),
        "n_not_joined": slips.count(NOT_JOINED),
        "n_children": len(loaded.cohort),
        "n_teams": loaded.cohort.participants["team"].n_unique(),
        "n_speaking": int(spoke.sum()),
        **_turns(loaded.cohort),
        "n_teams_optimal": int((best == 0).sum()),
        "clock_lag_s": float(lags[np.abs(lags).argmax()]) if len(lags) else float("nan"),
    }


def _turns(cohort: Cohort) -> dict[str, Any]:
    """How many turns there are, in how many stretches a loading leaves them, and how many changes they hold.

    Both children have every stretch.
    """
    episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    attempt = cohort.episodes["episode"].str.split(".").list.first().gather(episode)
    whose = cohort.ids.gather(cohort.episode_owner()[episode])
    turns = pl.DataFrame({"whose": whose, "attempt": attempt, "turn": cohort.segments["segment"]})
    changes = cohort.segments["n_moves"].to_numpy()
    return {
        "n_stretches": cohort.n_segments // 2,
        "n_turns": turns.unique().height // 2,
        "n_without_change": int((changes == 0).sum()) // 2,
        "share_of_two": float((changes == 2).mean()) if cohort.n_segments else float("nan"),
    }


def _slips(loaded: Loaded) -> pl.DataFrame:
    return (
        loaded.tables["slips"]
        .group_by("slip")
        .agg(events=pl.len().cast(pl.Int64), in_teams=pl.col("team").n_unique().cast(pl.Int64))
        .sort("slip")
    )


def _solved(loaded: Loaded, task: TaskModel, values: Values) -> dict[str, Any]:
    """How exactly the task was solved, and what its best plan does."""
    followed = follow(TaskSet.of(task), loaded.cohort)
    state, cost = task.start, loaded.tables["network"]["cost"].to_numpy()
    changes = 0
    while (action := int(values.q[state].argmax())) < task.n_actions - 1 and changes <= 2 * task.n_actions:
        state, changes = state ^ (1 << action), changes + 1
    lying = (state >> np.arange(len(cost))) & 1 == 1
    return {
        "n_sets": task.n_states - 1,
        "n_choices": task.n_pairs,
        "least_cost": loaded.tables["logged"]["least_cost"][0],
        "best_plan_cost": float(cost[lying].sum()),
        "best_plan_changes": changes,
        "residual": round(values.residual, 12),
        "n_compared": min(COMPARED_TRACKS, task.n_actions - 1),
        "solver_difference": round(_solver_difference(task), 12),
        "n_impossible": int((followed.fault != 0).sum()),
    }


def _solver_difference(task: TaskModel) -> float:
    """The largest difference of V and of Q between the two solvers, on some tracks with a best network."""
    n = task.n_actions - 1
    ends = np.flatnonzero(task.action == n)
    worth = np.full(task.n_states - 1, np.nan)
    worth[np.searchsorted(task.offsets, ends, side="right") - 1] = task.reward[ends]
    best = int(np.nanargmax(worth))
    tracks = sorted(range(n), key=lambda i: (not best >> i & 1, i))[:COMPARED_TRACKS]
    some = np.arange(1 << len(tracks))
    spread = sum(((some >> k) & 1) << track for k, track in enumerate(tracks))
    small = toggle_task(
        [task.actions[i] for i in tracks], worth[spread], change=-CHANGE, gamma=task.gamma, tau=task.tau
    )
    largest = 0.0
    for normaliser in ("max", "mean"):
        ours, general = solve_toggles(small, normaliser), solve(small, normaliser)
        known = np.isfinite(general.q)
        gaps = np.abs(ours.q[known] - general.q[known])
        largest = max(largest, float(gaps.max()), float(np.abs(ours.v - general.v).max()))
    return largest


def _more_numbers(
    cohort: Cohort,
    fit: Fit,
    profile: Profile,
    laid: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    *,
    seed: int,
    bootstrap: int,
) -> dict[str, Any]:
    """Single numbers that sentences need."""
    auc = tables["aucs"].row(0, named=True)
    scores = cohort.participants
    gaps = scores["gain"].drop_nulls()
    return {
        "auc_unexpectedness": auc["auc"],
        "n_laid": laid.height,
        "n_removed": int(laid["removed_later"].sum()),
        "median_eta": float(np.median(profile.estimate[:, 0])),
        "sd_log_eta": float(fit.prior.sd),
        "median_edits_counted": float(np.median(profile.n[:, 0])),
        "mean_before": scores["test_before"].mean(),
        "mean_after": scores["test_after"].mean(),
        "mean_gain": gaps.mean(),
        "n_gained": int((gaps > 0).sum()),
        "n_lost": int((gaps < 0).sum()),
        "pair_likeness": people.pair_likeness(cohort, profile, seed=seed, bootstrap=bootstrap),
        "best_shares": float(np.mean(laid["q_gap"].to_numpy() < 1e-8)),
        "parameters": [SENSITIVITY, *(one.name for one in fit.channels)],
    }


# Counts are known beforehand (how many events the logs have, and how many a replay can make sense of). The
# AUC of unexpectedness was not known: its band is our own expectation. It says only that children who remove
# tracks should remove surprising ones more often than others, and that no such relation is near perfect. We
# wrote it down first; nothing but our word shows that.
BANDS: tuple[Band, ...] = (
    ("n_edits", "logged changes of the board", 3816, 3816, KNOWN, ""),
    ("n_illegal", "changes that are not possible on the replayed board", 34, 34, KNOWN, ""),
    ("n_submissions", "submissions", 271, 271, KNOWN, ""),
    ("n_costs_match", "submitted costs that are those of the replayed board", 255, 255, KNOWN, ""),
    ("n_children", "children", 78, 78, PUBLISHED, ""),
    ("n_speaking", "children with speech", 20, 20, PUBLISHED, ""),
    ("n_sets", "sets of tracks that were solved", 2**20, 2**20, ARITHMETIC, ""),
    ("least_cost", "least cost of joining all mines (francs)", 22, 22, PUBLISHED, ""),
    ("best_plan_cost", "what the best plan submits, from an empty board (francs)", 22, 22, PUBLISHED, ""),
    ("solver_difference", "values by sweeps against those of the general solver", 0, 1e-9, ARITHMETIC,
     "on some of the tracks"),
    ("clock_lag_s", "lag of the robot's transcribed lines behind the log (s)", -1.5, 1.5, PUBLISHED,
     "median of the team that is farthest off"),
    ("auc_unexpectedness", "AUC of unexpectedness for tracks that are removed later", 0.55, 0.95, OURS,
     "direction expected, size unknown"),
)  # fmt: skip
