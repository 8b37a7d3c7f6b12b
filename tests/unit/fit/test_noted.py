"""A fit on a task that cannot be used says so, and so does one on people at chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.tasks import check
from fidm.tasks.beliefs import believed_values


def open_floor(size: int = 11, **settings) -> fidm.TaskModel:
    """An open floor whose goal, in a corner, ends the walk as soon as it is reached."""
    cell = np.arange(size * size).reshape(size, size)
    next_state = np.full((size * size, 4), -1)
    north, south, east, west = (next_state[:, i].reshape(size, size) for i in range(4))
    north[1:], south[:-1], east[:, :-1], west[:, 1:] = cell[:-1], cell[1:], cell[:, 1:], cell[:, :-1]
    next_state[-1] = -1
    reward = np.where(next_state == size * size - 1, 1.0, -0.01)
    return fidm.TaskModel.from_arrays(
        next_state, reward, **({"gamma": 0.99, "tau": 0.05, "name": "floor"} | settings)
    )


def walkers(task: fidm.TaskModel, people: int, eta: float) -> fidm.Cohort:
    """People who walk by what a floor without a wander bonus is worth."""
    values = believed_values(task, task.with_settings(tau=0.002))
    rows = []
    for j in range(people):
        trace = fidm.walk(task, values, eta, seed=j, max_steps=60)
        pairs = zip(trace.state.tolist(), trace.action.tolist(), strict=False)
        rows += [(f"P{j}", k, state, action) for k, (state, action) in enumerate(pairs)]
    steps = pl.DataFrame(rows, ["participant", "step", "state", "action"], orient="row")
    return fidm.make_cohort(steps=steps, tasks=task)


@pytest.fixture(scope="module")
def setting() -> tuple[fidm.TaskModel, fidm.Cohort]:
    task = open_floor()
    return task, walkers(task, 20, 60.0)


def test_a_task_that_cannot_be_used_is_named(setting, tmp_path):
    task, people = setting
    assert not fidm.check_task(task, vary=False).usable
    fit = fidm.Model(task, channels=()).fit(people, method="mle")
    assert (fit.profile(people).action_sensitivity == 0).mean() > 0.5
    first, second = fit.warnings
    assert first.startswith(
        "floor cannot be used: The best agent never finishes, although 20 actions would do."
    )
    assert "20 of 20 people choose no better than at random" in second
    fit.save(tmp_path / "fit.json")
    assert fidm.load_fit(tmp_path / "fit.json", task).warnings == fit.warnings


def test_a_sound_task_and_sound_people_are_not_spoken_of(setting):
    _, people = setting
    sound = open_floor(tau=0.002)
    assert fidm.check_task(sound, vary=False).usable
    fit = fidm.Model(sound, channels=()).fit(people, method="mle")
    assert fit.warnings == ()
    assert fit.notes == ()


def test_people_at_chance_are_spoken_of_whatever_the_lapse_rate(setting):
    task, people = setting
    sound = open_floor(tau=0.002)
    values = fidm.solve(sound)
    for lapse in (0.0, 0.1):
        away = fidm.Model(sound, channels=(), lapse=lapse, believes=replace(values, q=-values.q))
        (said,) = away.fit(people, method="mle").warnings
        assert said.startswith("action_sensitivity: 20 of 20 people")
    believing = fidm.Model(task, channels=(), believes=sound).fit(people, method="mle")
    assert believing.warnings == ()  # what matters is what people go by


def test_many_bad_tasks_are_counted_and_each_is_checked_once(setting, monkeypatch):
    _, people = setting
    tasks = [open_floor(name="floor"), *(open_floor(name=f"floor {i}") for i in range(4))]
    looked = []
    look = check.quick_problems
    monkeypatch.setattr(check, "quick_problems", lambda *given: looked.append(1) or look(*given))
    for _ in range(2):
        said = fidm.Model(tasks, channels=()).fit(people, method="mle").warnings
    assert said[3] == "2 more tasks cannot be used. See fidm check."
    assert len(looked) == 5
    monkeypatch.setattr(check, "QUICK_PAIRS", 10)
    assert len(fidm.Model(tasks, channels=()).fit(people, method="mle").notes) == 1  # people only
