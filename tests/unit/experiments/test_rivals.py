"""Accounts of choice are compared on held-out people and trials, and criticised."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.action_models import GoalAtATime, Lapse, Random, Softmax, Stickiness, World
from fidm.cohort import Cohort
from fidm.errors import FitError
from fidm.experiments.criticism import STATISTICS, _Counting, _observed, criticise
from fidm.experiments.rivals import (
    ModelComparison,
    _deal_people,
    _deal_trials,
    _frequencies,
    compare_models,
)
from fidm.model.action_models import list_chosen
from fidm.tasks.stack import TaskSet
from fidm.types import Trace

QUICK = {"replicates": 3, "bootstrap": 50}
THREE = (Softmax(), Stickiness(), Random())


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def sticky(n=20):
    people = {"action_sensitivity": (12.0, 0.4), "repeat": (1.5, 0.5)}
    return fidm.simulate_choices(task(), Stickiness(), people, n, seed=1, max_steps=60)


@functools.cache
def compared():
    return compare_models(task(), sticky(), THREE, **QUICK)


def test_the_account_people_go_by_predicts_them_best():
    found = compared()
    assert found.best == "stickiness"
    assert found.is_beaten
    row = found.row("stickiness")
    assert row["people_low"] > 0
    assert row["trials_low"] > 0
    assert row["protected"] > 0.9
    assert found.models["frequency"].sum() == pytest.approx(1)
    assert found.models["best"].sum() == 20
    assert set(found.people["best"]) <= {"softmax", "stickiness", "random"}
    assert found.reference == "softmax"
    assert found.row("softmax")["people_difference"] == 0.0


def test_all_accounts_are_judged_by_the_same_choices():
    """What is chosen at random can be counted: the logarithm of how many options there were."""
    world = World(TaskSet.of(task()))
    made = list_chosen(world, sticky())
    place = np.searchsorted(made.seen.offsets, made.option[made.which], side="right") - 1
    expected = -np.log(np.diff(made.seen.offsets)[place]).mean()
    row = compared().row("random")
    assert row["by_people"] == pytest.approx(expected)
    assert row["by_trials"] == pytest.approx(expected)


def test_the_reference_changes_only_differences():
    other = compare_models(task(), sticky(), THREE[::-1], **QUICK)
    for name in ("softmax", "stickiness", "random"):
        one, two = compared().row(name), other.row(name)
        for column in ("by_people", "by_trials", "best", "frequency"):
            assert one[column] == pytest.approx(two[column])
    assert other.row("softmax")["people_difference"] == pytest.approx(
        -compared().row("random")["people_difference"]
    )


@pytest.mark.parametrize("n", [4, 8])
def test_few_people_and_every_account(n):
    found = compare_models(task(), sticky()[np.arange(n)], **QUICK)
    assert found.not_run == {}
    assert found.models.height == 9
    assert found.models.select(pl.col(pl.Float64).is_finite().all()).row(0) == (True,) * len(
        found.models.select(pl.col(pl.Float64)).columns
    )
    assert found.people.height == n


def test_tasks_without_goals_leave_out_what_needs_them():
    plain = fidm.TaskModel.from_arrays(
        [[0, 1], [0, 2], [-1, -1]], [[-0.1, 0], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.3, name="plain"
    )
    cohort = fidm.simulate_choices(plain, Softmax(), {"action_sensitivity": 2.0}, 6, seed=1, episodes=5)
    found = compare_models(plain, cohort, **QUICK)
    assert set(found.not_run) == {"nearest_goal", "chosen_goal"}
    with pytest.raises(FitError, match="nearest_goal cannot be used: Fewer than two goals in plain"):
        compare_models(plain, cohort, [Softmax(), GoalAtATime()])


def test_somebody_without_choices_is_left_out():
    cohort = sticky()[np.arange(6)]
    steps = cohort.step_offsets[cohort.episode_offsets]
    weight = np.ones(cohort.n_steps)
    weight[steps[3] : steps[4]] = 0.0
    found = compare_models(task(), replace(cohort, weight=weight), THREE, **QUICK)
    assert found.people["participant"].to_list() == [cohort.ids[j] for j in (0, 1, 2, 4, 5)]
    assert np.isfinite(found.models["by_people"].to_numpy()).all()


def test_groups_stay_together():
    """Groups of one to seven people are dealt and drawn as wholes."""
    group = np.repeat([0, 1, 2, 3, 4], [7, 1, 5, 3, 4])
    fold = _deal_people(group, np.ones(20, np.bool_), 5, 1)
    assert all(len(set(fold[group == one])) == 1 for one in range(5))
    assert len(set(fold)) == 5
    teams = sticky().with_participants(
        sticky().participants.with_columns(team=pl.Series(group).cast(pl.String))
    )
    found = compare_models(task(), teams, THREE, together="team", **QUICK)
    apart = compared().row("stickiness")
    assert found.row("stickiness")["people_low"] != apart["people_low"]
    one = compare_models(task(), teams, THREE, together="team", folds=50, **QUICK)
    assert one.models["by_people"].is_finite().all()


def test_trials_of_everybody_are_spread_over_folds():
    made = list_chosen(World(TaskSet.of(task())), sticky())
    fold = _deal_trials(made, 4, 1)
    for j in range(20):
        assert sorted(fold[made.owner == j].tolist()) == [0, 1, 2, 3]


def test_it_can_be_written_and_read():
    found = compared()
    said = json.loads(json.dumps(found.to_dict()))
    again = ModelComparison.of(found.record, said)
    assert again.models.equals(found.models)
    assert again.criticism.checks.equals(found.criticism.checks)
    assert (again.best, again.chance) == (found.best, found.chance)
    assert "ModelComparison(softmax, stickiness" in repr(found)


def test_what_cannot_be_compared_is_said():
    cohort = sticky()
    for models, said in (
        ([Softmax()], "Two or more models"),
        ([Softmax(), Softmax()], "Two or more models of different names"),
        ([], "given: none"),
    ):
        with pytest.raises(FitError, match=said):
            compare_models(task(), cohort, models)
    with pytest.raises(FitError, match="3 people made choices; 4 are needed"):
        compare_models(task(), cohort[np.arange(3)], THREE)
    with pytest.raises(FitError, match="0 people made a choice"):
        compare_models(task(), cohort[np.arange(0)], THREE)
    with pytest.raises(FitError, match="There is no model 'x'"):
        compared().row("x")
    for name in ("folds", "trial_folds", "bootstrap", "replicates"):
        with pytest.raises(fidm.FidmError, match=name):
            compare_models(task(), cohort, THREE, **{name: 1})
    with pytest.raises(fidm.FidmError, match="no column 'team'"):
        compare_models(task(), cohort, THREE, together="team")


def test_frequencies_do_not_depend_on_the_level_of_evidence():
    evidence = np.random.default_rng(0).normal(0, 1, (3, 15))
    one, two = (_frequencies(evidence + shift, 1) for shift in (0.0, -5000.0))
    np.testing.assert_allclose(one.share, two.share, atol=1e-9)
    assert one.chance == pytest.approx(two.chance, abs=1e-6)
    hopeless = np.zeros((2, 10))
    hopeless[1] = -3000.0
    assert _frequencies(hopeless, 1).protected[0] > 0.99


# ---------------------------------------------------------------------- criticism


def chancy():
    """Three places; a jump from the first lands on the last in six cases of ten, else on the one between."""
    to = [[0, 1, 0], [0, 0.4, 0.6], [1, 0, 0], [0, 0, 1]]
    return fidm.TaskModel.from_pairs(
        [0, 0, 1, 1], [0, 1, 0, 1], [-0.1, -0.1, -0.1, 1.0], to, gamma=0.9, tau=0.5, name="chancy"
    )


def test_where_chance_decides_what_is_recorded_counts():
    model = chancy()
    walks = [([0, 1, 0, 1], [1, 0, 1]), ([0, 2], [1]), ([0, 1], [1])]
    cohort = Cohort.from_traces(
        [
            Trace("chancy", np.array(state), np.array(action), False, f"P{j}")
            for j, (state, action) in enumerate(walks)
        ]
    )
    world = World(TaskSet.of(model))
    observed, owner, _, most, ended, counted = _observed(world, cohort, 0.0)
    assert ended.tolist() == [False, True, False]
    assert most.tolist() == [3, 4, 1]
    counting = _Counting(world, observed, np.ones(3, np.bool_), ended)
    found = dict(zip(STATISTICS, counting.of(observed, owner, 3, counted), strict=True))
    # One jump lands between, then one goes back: of two later steps the first, and the second to where it was.
    assert found["backtracks"].tolist()[0] == 1.0
    assert found["revisits"].tolist() == [pytest.approx(2 / 3), 0.0, 0.0]
    assert found["steps_to_goal"][1] == 1.0
    assert np.isnan(found["steps_to_goal"][[0, 2]]).all()


def test_steps_that_nobody_chose_are_not_what_people_did():
    """A planner's steps are all best ones: with them softmax would seem to miss how people begin."""
    cohort = fidm.simulate_choices(
        task(), Softmax(), {"action_sensitivity": (5.0, 0.2)}, 15, seed=3, max_steps=40
    )
    world, rng = World(TaskSet.of(task())), np.random.default_rng(1)
    q = fidm.solve(task()).q[cohort.state, :]
    best = q[np.arange(len(q)), cohort.action] >= q.max(axis=1) - 1e-8
    filled = replace(cohort, inferred=best & (rng.random(len(best)) < 0.5))
    fit = {"softmax": fidm.fit_action_model(task(), cohort, Softmax(), world=world)}
    kept = criticise(world, filled, fit, replicates=20, seed=1).checks
    whole = criticise(world, cohort, fit, replicates=20, seed=1).checks
    small = pl.col("statistic") == "best_small_gap"
    assert kept.filter(small)["observed"].item() < whole.filter(small)["observed"].item()
    people = dict(kept.select("statistic", "people").iter_rows())
    assert people.get("steps_to_goal", 0) < people["repeats"]
    counted = criticise(world, filled, fit, replicates=20, seed=1, inferred=1.0).checks
    assert counted.filter(small)["observed"].item() == whole.filter(small)["observed"].item()


def test_what_is_true_is_seldom_found_wanting():
    cohort = fidm.simulate_choices(
        task(), Softmax(), {"action_sensitivity": (12.0, 0.4)}, 20, seed=3, max_steps=60
    )
    world = World(TaskSet.of(task()))
    fits = {"softmax": fidm.fit_action_model(task(), cohort, Softmax(), world=world)}
    found = criticise(world, cohort, fits, replicates=60, seed=1)
    assert found.misses("softmax").height <= 1
    assert found.undescribed.height <= 2
    assert found.calibration["n"].sum() == sum(
        size for size in np.diff(list_chosen(world, cohort).seen.offsets)[_places(world, cohort)] if size > 1
    )
    wrong = {"softmax": fidm.fit_action_model(task(), sticky(), Softmax(), world=world)}
    assert (
        "repeats" in criticise(world, sticky(), wrong, replicates=60, seed=1).misses("softmax")["statistic"]
    )


def _places(world, cohort):
    made = list_chosen(world, cohort)
    return np.searchsorted(made.seen.offsets, made.option[made.which], side="right") - 1


def test_lapses_are_told_from_noise():
    people = {"action_sensitivity": (25.0, 0.3), "lapse_rate": (0.2, 0.4)}
    cohort = fidm.simulate_choices(task(), Lapse(), people, 20, seed=2, episodes=2, max_steps=60)
    found = compare_models(task(), cohort, (Softmax(), Lapse()), **QUICK)
    assert found.best == "lapse"
