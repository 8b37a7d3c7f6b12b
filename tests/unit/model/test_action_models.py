"""Accounts of choice: what holds of every one of them, and what cannot be asked of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.action_models import (
    BelievesTask,
    Depth,
    Discounting,
    GoalAtATime,
    Lapse,
    Mixture,
    Parameter,
    Random,
    Softmax,
    Stickiness,
    World,
)
from fidm.errors import FitError
from fidm.model.action_models import HORIZONS, NOTHING, RATES, list_chosen
from fidm.tasks.stack import TaskSet

PLAIN = (Softmax(), Lapse(), Stickiness("both"), Discounting(), Depth(), GoalAtATime(), Random(),
         Mixture(Stickiness(), Softmax()))  # fmt: skip


@functools.cache
def errands():
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 6, seed=1)
    return World(TaskSet.of(task)), cohort


def middle(model, world):
    return {one.name: one.value(one.nodes[len(one.nodes) // 2]) for one in model.parameters(world)}


@pytest.mark.parametrize("model", PLAIN, ids=lambda one: one.name)
def test_probabilities_sum_to_one(model):
    world, _ = errands()
    row = np.flatnonzero(np.diff(world.tasks.offsets) > 0)
    seen = world.situations(row, np.full(len(row), 1), np.roll(row, 1))
    for place in (0, -1):
        values = {one.name: one.value(one.nodes[place]) for one in model.parameters(world)}
        p = np.exp(model.log_probabilities(world, seen, values))
        np.testing.assert_allclose(np.add.reduceat(p, seen.offsets[:-1]), 1.0, atol=1e-12)


@pytest.mark.parametrize("model", [Softmax(), Lapse(), Stickiness("both")], ids=lambda one: one.name)
def test_a_constant_per_state_changes_nothing(model):
    world, cohort = errands()
    size = np.diff(world.tasks.offsets)
    other = World(world.tasks, world.q + np.repeat(np.random.default_rng(0).normal(0, 5, len(size)), size))
    both = [model.log_likelihoods(list_chosen(one, cohort), middle(model, world)) for one in (world, other)]
    np.testing.assert_allclose(*both, atol=1e-9)
    ends = [one.sensitivity().nodes for one in (world, other)]
    np.testing.assert_allclose(*ends, atol=1e-9)


@pytest.mark.parametrize("model", [*PLAIN, GoalAtATime("chosen")], ids=lambda one: one.name)
def test_people_and_copies_are_parts_of_the_whole(model):
    world, cohort = errands()
    weight = np.random.default_rng(1).uniform(0.2, 1.0, cohort.n_steps)
    made = list_chosen(world, replace(cohort, weight=weight), remembers=model.remembers)
    values = middle(model, world)
    whole = model.log_likelihoods(made, values)
    for j in (0, 5):
        own = made.person(j)
        alone = model.log_likelihoods(own, values)
        np.testing.assert_allclose(alone, whole[made.owner == j], atol=1e-9)
        twice = model.log_likelihoods(own.copies(2), values)
        np.testing.assert_allclose(twice, np.tile(alone, 2), atol=1e-12)


def test_steps_that_do_not_count_are_left_out():
    world, cohort = errands()
    half = np.arange(cohort.n_steps) % 2 == 0
    whole = list_chosen(world, cohort)
    some = list_chosen(world, replace(cohort, inferred=half))
    as_much = list_chosen(world, replace(cohort, inferred=half), inferred=0.5)
    assert some.n.sum() < whole.n.sum() == as_much.n.sum()
    assert set(as_much.weight) == {0.5, 1.0}
    none = list_chosen(world, replace(cohort, weight=np.zeros(cohort.n_steps)))
    assert none.n.tolist() == [0] * 6
    assert none.n_trials == 0


def test_one_episode_is_cut_into_quarters_and_several_are_trials():
    task = fidm.load_task("errands")
    world = World(TaskSet.of(task))
    for episodes, trials in ((1, 4), (2, 2), (3, 3)):
        cohort = fidm.simulate_choices(task, Random(), {}, 3, seed=1, episodes=episodes, max_steps=20)
        made = list_chosen(world, cohort)
        assert np.bincount(made.owner).tolist() == [trials] * 3
        total = Softmax().log_likelihoods(made, {"action_sensitivity": 3.0}).sum()
        flat = np.log(np.exp(Softmax().log_probabilities(world, made.seen, {"action_sensitivity": 3.0})))
        assert total == pytest.approx(flat[made.option[made.which]].sum())


def test_the_first_step_repeats_nothing():
    world, cohort = errands()
    made = list_chosen(world, cohort)
    first = np.flatnonzero(~np.isin(made.which, made.which[:0]))[0]
    place = np.searchsorted(made.seen.offsets, made.option[made.which[first]], side="right") - 1
    options = slice(made.seen.offsets[place], made.seen.offsets[place + 1])
    assert not made.seen.repeats[options].any()
    assert not made.seen.returns[options].any()
    start = world.situations(np.array([0]), np.array([NOTHING]), np.array([NOTHING]))
    assert not start.repeats.any()


def test_values_and_free_numbers_are_each_others_inverse():
    for scale, value in (("log", 20.0), ("logit", 0.1), ("discount", 0.9), ("plain", -1.5)):
        one = Parameter("x", "x", np.arange(5.0), scale)
        assert one.value(one.free(value)) == pytest.approx(value)
    steps = Parameter.of_levels("depth", "depth", (1.0, 3.0, np.inf))
    assert [steps.value(steps.free(depth)) for depth in (1.0, 3.0, np.inf)] == [1.0, 3.0, np.inf]
    assert steps.value(7.0) == np.inf
    assert Parameter("r", "r", RATES, "logit").value(-800.0) >= 0


def test_nearer_nodes_of_a_discount_are_stated():
    world, _ = errands()
    said = Discounting().stated_error(world)
    assert said.startswith("Values between two discounts are interpolated, to 0.")
    model, seen = Discounting(), world.situations(np.array([0]), np.array([-1]), np.array([-1]))
    for free in (-5.0, HORIZONS[0], HORIZONS[-1], 50.0):  # beyond the nodes the outer ones hold
        model.log_probabilities(world, seen, {"action_sensitivity": 1.0, "discount": -np.expm1(-free)})


def test_ten_actions():
    rng = np.random.default_rng(3)
    to = rng.integers(0, 12, (12, 10))
    to[11] = -1
    task = fidm.TaskModel.from_arrays(to, rng.normal(0, 0.3, (12, 10)), gamma=0.8, tau=0.2)
    people = {"action_sensitivity": (3.0, 0.4), "repeat": (1.0, 0.4)}
    cohort = fidm.simulate_choices(task, Stickiness(), people, 15, seed=1, episodes=4, max_steps=15)
    fit = fidm.fit_action_model(task, cohort, Stickiness())
    assert fit.population["mean"].to_numpy() == pytest.approx([np.log(3.0), 1.0], abs=0.5)


def test_what_cannot_be_asked_is_said():
    no_goals = fidm.TaskModel.from_arrays(
        [[0, 1], [-1, -1]], np.zeros((2, 2)), gamma=0.9, tau=0.1, name="two"
    )
    tasks = TaskSet.of(no_goals)
    assert "Fewer than two goals in two" in GoalAtATime().problems(tasks)
    assert "Fewer than two goals in two" in Depth(heuristic="nearest").problems(tasks)
    assert "Fewer than two goals in two" in Mixture(GoalAtATime()).problems(tasks)
    assert BelievesTask(fidm.load_task("errands")).problems(tasks)
    with pytest.raises(FitError, match="mixture of mixtures"):
        Mixture(Mixture(Softmax()))
    with pytest.raises(FitError, match="cannot be mixed choice by choice"):
        Mixture(Softmax(), GoalAtATime("chosen"))
    for bad in ((3.0,), (2.0, 1.0), (0.0, 1.0), (1.0, 1.0)):
        with pytest.raises(FitError, match="two or more numbers of steps"):
            Depth(bad)
    for make in (lambda: Stickiness("left"), lambda: GoalAtATime("far"), lambda: Depth(heuristic="far")):
        with pytest.raises(FitError):
            make()


def test_parameters_must_be_possible():
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 4, seed=1)

    @dataclass(frozen=True)
    class Odd(Softmax):
        given: tuple = ()
        kind = "odd"

        def parameters(self, world):
            return self.given

    eta = World(TaskSet.of(task)).sensitivity()
    steps = Parameter.of_levels("depth", "depth", (1.0, 2.0))
    for given, said in (
        ((eta, eta), "two parameters of the same name"),
        ((steps, eta), "must name parameters with levels last"),
        ((replace(eta, nodes=np.array([0.0, 1.0, 3.0])),), "must rise by equal steps"),
        ((replace(eta, nodes=np.zeros(1)),), "must rise by equal steps"),
    ):
        with pytest.raises(FitError, match=said):
            fidm.fit_action_model(task, cohort, Odd(given))


def test_many_levels_are_tabulated_all_the_same():
    """More combinations of levels than a person usually has nodes."""
    task = fidm.load_task("errands")
    cohort = fidm.simulate_choices(task, Random(), {}, 3, seed=1, max_steps=5)

    @dataclass(frozen=True)
    class Levels(Random):
        kind = "levels"

        def parameters(self, world):
            return tuple(Parameter.of_levels(name, name, range(46)) for name in ("a", "b"))

    fit = fidm.fit_action_model(task, cohort, Levels())
    assert fit.table["status"].cast(pl.String).to_list() == ["few_observations"] * 6


def test_states_of_the_same_coordinates_are_one_place():
    """Going back where one came from is going back, also with a key in the hand that was found there."""
    # Two places, without and with the key: 0 and 2 are here, 1 and 3 there; the step to 1 leads to 3 at once.
    task = fidm.TaskModel.from_arrays(
        [[3, -1], [0, -1], [3, -1], [2, 4], [-1, -1]],
        [[-0.1, 0], [-0.1, 0], [-0.1, 0], [-0.1, 1.0], [0, 0]],
        gamma=0.9, tau=0.1, coordinates=[(0, 0), (1, 0), (0, 0), (1, 0), (np.nan, np.nan)],
    )  # fmt: skip
    world = World(TaskSet.of(task))
    assert world.place.tolist()[:4] == [0, 1, 0, 1]
    seen = world.situations(np.array([3]), np.array([0]), np.array([0]))
    assert seen.returns.tolist() == [True, False]
