"""People who choose by any action model."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.action_models import GoalAtATime, Lapse, Random, Softmax, Stickiness, World
from fidm.errors import FitError
from fidm.simulate.choosing import walk_together
from fidm.tasks.stack import TaskSet, follow


def chancy(name="chancy"):
    """One state to choose in: staying, or a jump that ends the walk in seven cases of ten."""
    to = [[1.0, 0.0], [0.3, 0.7]]
    return fidm.TaskModel.from_pairs([0, 0], [0, 1], [-0.1, 0.5], to, gamma=0.9, tau=0.5, name=name)


def test_choices_are_as_frequent_as_they_are_probable():
    task, model, values = chancy(), Lapse(), {"action_sensitivity": 2.0, "lapse_rate": 0.2}
    cohort = fidm.simulate_choices(task, model, values, 4000, seed=1, max_steps=1)
    world = World(TaskSet.of(task))
    seen = world.situations(np.array([0]), np.array([-1]), np.array([-1]))
    p = np.exp(model.log_probabilities(world, seen, values))
    assert np.bincount(cohort.action) / 4000 == pytest.approx(p, abs=4 * 0.5 / np.sqrt(4000))
    jumped = cohort.action == 1
    assert cohort.end_state[jumped].mean() == pytest.approx(0.7, abs=0.05)
    assert (cohort.end_state[~jumped] == 0).all()


def test_stickiness_is_seen_in_repeats():
    task = fidm.TaskModel.from_arrays(np.zeros((1, 3), int), np.zeros((1, 3)), gamma=0.5, tau=1.0)
    given = {"action_sensitivity": 1.0, "repeat": 1.0}
    cohort = fidm.simulate_choices(task, Stickiness(), given, 50, seed=1, max_steps=200)
    steps = cohort.action.reshape(50, 200)
    share = (steps[:, 1:] == steps[:, :-1]).mean()
    assert share == pytest.approx(np.e / (np.e + 2), abs=0.02)


def test_everything_follows_the_rules_and_is_named():
    tasks = [fidm.load_task("errands"), chancy()]
    cohort = fidm.simulate_choices(
        tasks, Softmax(), {"action_sensitivity": (6.0, 0.3)}, 5, seed=1, episodes=2
    )
    assert cohort.n_episodes == 20
    assert cohort.episodes["task"].to_list() == ["errands", "errands", "chancy", "chancy"] * 5
    assert not follow(TaskSet.of(tasks), cohort).fault.any()
    assert cohort.participants["true_action_sensitivity"].n_unique() == 5
    again = fidm.simulate_choices(tasks, Softmax(), {"action_sensitivity": (6.0, 0.3)}, 5, seed=1, episodes=2)
    assert (cohort.state == again.state).all()
    other = fidm.simulate_choices(tasks, Softmax(), {"action_sensitivity": (6.0, 0.3)}, 5, seed=2, episodes=2)
    assert (
        cohort.participants["true_action_sensitivity"][0] != other.participants["true_action_sensitivity"][0]
    )


def test_walks_stop_where_they_end_or_have_been_long_enough():
    task = fidm.load_task("errands")
    world = World(TaskSet.of(task))
    end = int(np.flatnonzero(task.terminal)[0])
    start, most = np.array([task.start, task.start, end, task.start]), np.array([3, 0, 5, 400])
    walks = walk_together(
        world, Softmax(), {"action_sensitivity": np.full(4, 60.0)}, start, most, np.random.default_rng(0)
    )
    length = np.bincount(walks.episode, minlength=4)
    assert length[:3].tolist() == [3, 0, 0]
    assert task.terminal[walks.end[3]]
    assert (walks.end[1:3] == start[1:3]).all()
    for e in (0, 3):
        own = walks.episode == e
        assert (walks.to[own][:-1] == walks.row[own][1:]).all()
        assert walks.to[own][-1] == walks.end[e]


def test_parameters_are_given_one_by_one():
    task = fidm.load_task("errands")
    table = pl.DataFrame({"action_sensitivity": [1.0, 50.0, 9.0]})
    cohort = fidm.simulate_choices(task, Softmax(), table, 3, seed=1, max_steps=5)
    assert cohort.participants["true_action_sensitivity"].to_list() == [1.0, 50.0, 9.0]
    assert fidm.simulate_choices(task, Random(), {}, 2, seed=1).participants.columns == ["participant"]
    with pytest.raises(FitError, match="has the parameters action_sensitivity; given: eta"):
        fidm.simulate_choices(task, Softmax(), {"eta": 3.0}, 3, seed=1)
    with pytest.raises(FitError, match="given: none"):
        fidm.simulate_choices(task, Softmax(), {}, 3, seed=1)
    with pytest.raises(FitError, match="3 rows for 2 people"):
        fidm.simulate_choices(task, Softmax(), table, 2, seed=1)
    for name in ("n", "episodes", "max_steps"):
        with pytest.raises(fidm.FidmError, match=name):
            fidm.simulate_choices(
                task, Softmax(), {"action_sensitivity": 3.0}, **{"n": 2, "seed": 1, name: 0}
            )


def test_goals_are_chosen_evenly_among_those_open():
    task = fidm.load_task("grocery")
    world = World(TaskSet.of(task))
    model, rng = GoalAtATime("chosen"), np.random.default_rng(0)
    memory = model.carry(world, np.full(3000, task.start), np.full(3000, -1), rng)
    counts = np.bincount(memory[memory >= 0], minlength=len(task.goals))
    open_now = counts > 0
    assert open_now.sum() > 2
    assert counts[open_now] / 3000 == pytest.approx(1 / open_now.sum(), abs=0.05)
    assert (model.carry(world, np.full(3000, task.start), memory, rng) == memory).all()
