"""Checking many tasks at once: information adds up, and a task that tells nothing alone says so in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import fidm
from fidm.errors import TaskError
from fidm.tasks.behaviour import choice_probabilities, information
from fidm.tasks.check import check_task, find
from fidm.tasks.goals import Look
from fidm.tasks.solve import solve


def corridor(name, n=6, tau=0.2, end=1.0):
    """A corridor of n places: on, or back to the start; the end pays."""
    on = [*range(1, n), -1]
    back = [*([0] * (n - 1)), -1]
    pay = [*([-0.1] * (n - 2)), end, 0.0]
    made = fidm.TaskModel.from_arrays(
        np.transpose([on, back]), np.transpose([pay, [*([-0.1] * (n - 1)), 0.0]]), gamma=0.9, tau=tau
    )
    return replace(made, name=name)


def told_slowly(task, eta, steps):
    """The information of one episode, by following the distribution over states in plain loops."""
    values = solve(task)
    p, per_state = choice_probabilities(task, values, eta), information(task, values, eta)
    here, total = {task.start: 1.0}, 0.0
    for _ in range(steps):
        onward: dict[int, float] = {}
        for state, weight in here.items():
            total += weight * per_state[state]
            for k in range(task.offsets[state], task.offsets[state + 1]):
                there = int(task.successor[k])
                onward[there] = onward.get(there, 0.0) + weight * float(p[k])
        here = onward
    return total


@pytest.fixture(scope="module")
def tasks():
    return [corridor(f"c{n}", n) for n in (3, 5, 8)]


def test_information_of_all_tasks_adds_up(tasks):
    found = fidm.check_tasks(tasks, sensitivity=4.0)
    each = [told_slowly(task, 4.0, check_task(task, vary=False).sitting) for task in tasks]
    np.testing.assert_allclose([row.per_episode for row in found.tasks], each, rtol=1e-6)
    assert found.relative_error == pytest.approx(1 / (4 * math.sqrt(sum(each))), rel=1e-6)
    alone = check_task(tasks[0], vary=False)
    row = next(one for one in alone.sensitivities if one.sensitivity == 5.0)
    same = fidm.check_tasks(tasks[:1], sensitivity=5.0).tasks[0]
    assert (same.per_choice, same.relative_error) == (row.information, row.relative_error)


def test_what_people_recorded_counts(tasks):
    one, two = (fidm.simulate_cohort(some, 10, seed=1) for some in (tasks[:2], tasks[:1]))
    two = replace(two, participants=two.participants.with_columns(participant="Q" + two.ids))
    both = fidm.Cohort.concat([one, two])
    found = fidm.check_tasks(tasks, cohort=both)
    assert [row.episodes for row in found.tasks] == [1.0, 0.5, 0.0]
    assert found.n_people == 20
    first, second, _ = (row.per_episode for row in found.tasks)
    assert found.relative_error == pytest.approx(1 / (5 * math.sqrt(first + 0.5 * second)))
    assert found.notes == ("c8: nobody has an episode on it.",)
    assert "1.5 episodes per person, as recorded of 20 people" in found.sentences()[1]
    assert fidm.check_tasks(tasks, cohort=both[:0]).n_people is None


def test_tasks_that_tell_nothing_alone_are_counted_in_words():
    usable = [corridor(f"c{i}", 6) for i in range(3)]
    silent = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.2)
    sure = corridor("sure", 4, end=1e6)
    found = fidm.check_tasks([*usable, replace(silent, name="silent"), sure], sensitivity=5.0)
    assert found.named("tells nothing") == ["silent", "sure"]
    assert found.usable
    assert found.sentences()[0].startswith("5 tasks: 3 usable alone, 2 tell nothing about η alone; together")
    assert found.table["relative_error"].null_count() == 2
    assert json.loads(json.dumps(found.to_dict()))["tasks"][3]["relative_error"] is None
    nothing = fidm.check_tasks([replace(silent, name="silent")])
    assert not nothing.usable
    assert "together they tell nothing" in nothing.summary()


def test_a_task_with_problems_is_left_out():
    trap = fidm.load_task("errands").with_settings(tau=0.5)
    good = corridor("good", 4)
    found = fidm.check_tasks([trap, good], sensitivity=5.0)
    assert found.named("not usable") == ["errands"]
    assert not found.usable
    assert found.relative_error == found.tasks[1].relative_error
    assert "errands: The best agent never finishes" in found.summary()
    assert "tasks that are not usable are left out" in found.summary()


def test_the_sensitivity_is_that_of_the_walker_or_as_given(tasks):
    assert fidm.check_tasks(tasks).sensitivity == 5.0
    mixed = fidm.check_tasks([tasks[0], tasks[1].with_settings(tau=0.1), tasks[2].with_settings(tau=0.1)])
    assert (mixed.sensitivity, mixed.source) == (10.0, "the median 1/τ of the tasks")
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(TaskError, match="must be a positive number"):
            fidm.check_tasks(tasks, sensitivity=wrong)
    with pytest.raises(TaskError, match="Several tasks are called"):
        fidm.check_tasks([tasks[0], tasks[0]])


@pytest.mark.parametrize(
    ("error", "code"),
    [(0.4, None), (0.8, "little_information"), (5e19, "little_information"), (np.inf, "no_information")],
)
def test_no_absurd_percentage_is_said_of_one_task(error, code):
    task = corridor("c", 4)
    found = [one for one in find(task, Look.at(task, solve(task)), error, []) if "information" in one.code]
    assert [one.code for one in found] == [code][: code is not None]
    assert all("%" not in one.says for one in found if error > 10)


def test_hundreds_of_tasks_are_checked():
    many = [corridor(f"c{i}", 3 + i % 8) for i in range(300)]
    found = fidm.check_tasks(many)
    assert len(found.tasks) == found.table.height == 300
    assert found.relative_error < min(row.relative_error for row in found.tasks) / 10
