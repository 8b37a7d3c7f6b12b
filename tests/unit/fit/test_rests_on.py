"""What an estimate rests on: lengths that were learned from, moves that were read, choices that tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.fit.profile import NEAR_CHANCE


@pytest.fixture(scope="module")
def task() -> fidm.TaskModel:
    return fidm.load_task("errands")


def test_segments_far_longer_than_all_others_are_neither_learned_from_nor_compared(task):
    people = fidm.simulate_cohort(task, 12, seed=1)
    rows = slice(*people.segment_offsets[people.episode_offsets[[3, 4]]])
    moves, seconds = (people.segments[name].to_numpy().copy() for name in ("n_moves", "duration_s"))
    moves[rows], seconds[rows] = 300, 1_000.0
    long = replace(people, segments=people.segments.with_columns(n_moves=moves, duration_s=seconds))
    fit, others = fidm.Model(task).fit(long), fidm.Model(task).fit(people[np.arange(12) != 3])
    mine = fit.population_table().filter(parameter="duration")["estimate"].to_numpy()
    theirs = others.population_table().filter(parameter="duration")["estimate"].to_numpy()
    assert mine == pytest.approx(theirs, rel=1e-6)
    profile = fit.profile(long)
    assert profile.table.filter(status="longer_than_learned")["parameter"].to_list() == list(
        fit.parameters[1:]
    )
    assert np.isnan(profile.estimate[3, 1:]).all()
    assert np.isfinite(profile.estimate[3, 0])  # choices are as long as anybody's
    assert fit.longest == moves[moves < 300].max()


def test_a_saved_fit_knows_the_longest_segment(task, tmp_path):
    people = fidm.simulate_cohort(task, 12, seed=1)
    fit = fidm.Model(task).fit(people)
    fit.save(tmp_path / "fit.json")
    assert fidm.load_fit(tmp_path / "fit.json", task).longest == people.segments["n_moves"].max()


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_effort_against_moves_that_are_mostly_in_doubt_is_flagged(task, share):
    people = fidm.simulate_cohort(task, 12, seed=1)
    fit = fidm.Model(task).fit(people)
    owner = np.repeat(np.arange(12), np.diff(people.segment_offsets[people.episode_offsets]))
    moves = people.segments["n_moves"].to_numpy()
    own = np.flatnonzero(owner == 5)
    reached = np.cumsum(moves[own]) / moves[own].sum()
    status = np.where(np.isin(np.arange(len(owner)), own[reached <= share]), "needs_review", "confident")
    doubted = fit.profile(replace(people, segments=people.segments.with_columns(status=pl.Series(status))))
    flagged = doubted.table.filter(status="moves_in_doubt").select("participant", "parameter").rows()
    expected = [(people.ids[5], name) for name in ("duration", "characters", "turns")] if share > 0.5 else []
    assert set(expected) <= set(flagged)
    assert all(who == people.ids[5] for who, _ in flagged)
    assert np.array_equal(doubted.estimate, fit.profile(people).estimate, equal_nan=True)


def test_moves_a_planner_filled_in_are_in_doubt_until_somebody_has_looked(task):
    people = fidm.simulate_cohort(task, 12, seed=1)
    fit = fidm.Model(task).fit(people)
    inferred = replace(people, inferred=people.segment >= 0)
    seen = people.segments.with_columns(status=pl.lit("reviewed"))
    for cohort, doubtful in ((inferred, True), (replace(inferred, segments=seen), False)):
        status = fit.profile(cohort).table.filter(parameter="duration")["status"].to_list()
        assert all((one == "moves_in_doubt") == doubtful for one in status)


def test_chance_is_excluded_by_the_likelihood_and_not_by_the_prior(task):
    """By either method those are flagged whose interval by maximum likelihood begins at 0, and nobody else."""
    people = fidm.simulate_cohort(task, 60, seed=2, max_steps=8)
    mle = fidm.Model(task, lapse=0.0).fit(people, method="mle").profile(people)
    eb = fidm.Model(task, lapse=0.0).fit(people).profile(people)
    begins = (mle.low[:, 0] == 0) & (mle.estimate[:, 0] > 0) & (mle.n[:, 0] > 0)
    assert begins.any()
    for profile in (mle, eb):
        assert np.array_equal(profile.status[:, 0] == NEAR_CHANCE, begins)


def test_one_best_choice_does_not_exclude_chance(task):
    """Whoever chose best once may have done so by chance: that is said instead of praise, by a posterior."""
    people = fidm.simulate_cohort(task, 40, seed=1)
    fit, maximum = (fidm.Model(task, channels=(), lapse=0.0).fit(people, method=how) for how in ("eb", "mle"))
    for weight in (np.zeros(people.n_steps), np.ones(people.n_steps)):
        weight[np.flatnonzero(people.action >= 0)[0]] = 1.0
        first = replace(people, weight=weight)[:1]
        code, n = fit.profile(first).status[0, 0], maximum.profile(first).n[0, 0]
        assert (code == NEAR_CHANCE) == (n == 1)


def test_whom_nothing_was_learned_from_is_not_counted_among_the_learners(task):
    people = fidm.simulate_cohort(task, 12, seed=1)
    weight = np.ones(people.n_steps)
    weight[slice(*people.step_offsets[people.episode_offsets[[3, 4]]])] = 0.0
    moves = people.segments["n_moves"].to_numpy().copy()
    moves[slice(*people.segment_offsets[people.episode_offsets[[3, 4]]])] = 300
    silent = replace(people, weight=weight, segments=people.segments.with_columns(n_moves=moves))
    fit = fidm.Model(task).fit(silent)
    assert (fit.n_people, fit.n_learned) == (12, 11)
    residuals = fidm.find_evidence(fit, silent).segments.filter(participant=people.ids[3])
    assert residuals["duration_expected"].null_count() == residuals.height > 0


def test_offsets_by_maximum_likelihood_are_flagged_where_few_people_were_learned_from(task, tmp_path):
    for n, flagged in ((9, True), (12, False)):
        people = fidm.simulate_cohort(task, n, seed=1)
        fit = fidm.Model(task).fit(people, method="mle")
        fit.save(tmp_path / "fit.json")
        for one in (fit, fidm.load_fit(tmp_path / "fit.json", task)):
            status = one.profile(people).table.filter(parameter="duration")["status"]
            assert (status == "low_information").all() == flagged


def test_evidence_of_effort_says_which_moves_are_in_doubt(task):
    people = fidm.simulate_cohort(task, 12, seed=1)
    status = np.where(np.arange(people.n_segments) % 3, "confident", "needs_review")
    doubted = replace(people, segments=people.segments.with_columns(status=pl.Series(status)))
    found = fidm.find_evidence(fidm.Model(task).fit(people), doubted).segments
    assert np.array_equal(found["moves_in_doubt"].to_numpy(), status == "needs_review")


def test_a_channel_in_which_four_people_were_observed_is_left_out(task):
    people = fidm.simulate_cohort(task, 12, seed=1)
    owner = np.repeat(np.arange(12), np.diff(people.segment_offsets[people.episode_offsets]))
    seconds = pl.Series(
        np.where(owner < 4, people.segments["duration_s"].to_numpy(), np.nan), nan_to_null=True
    )
    fit = fidm.Model(task).fit(replace(people, segments=people.segments.with_columns(duration_s=seconds)))
    assert "duration" not in fit.parameters
    assert any(
        "only 4 participants have a recorded speech duration; 5 are needed" in one for one in fit.warnings
    )
