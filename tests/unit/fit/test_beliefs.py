"""Values belong to the task they were solved for; believing in another one is said in so many words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.simulate.structure import redraw_choices, redraw_walks
from fidm.tasks.beliefs import believed_values
from fidm.tasks.stack import TaskSet


def maze(seed: int, name: str = "", **settings) -> fidm.TaskModel:
    """A ring of six cells with a way out of one of them, different in each maze."""
    rng = np.random.default_rng(seed)
    cells = np.arange(6)
    next_state = np.column_stack([(cells + 1) % 6, (cells - 1) % 6, np.full(6, 6)])
    reward = np.column_stack([rng.uniform(-0.3, -0.1, (6, 2)), rng.uniform(-2.0, 1.0, 6)])
    return fidm.TaskModel.from_arrays(
        np.vstack([next_state, [-1, -1, -1]]),
        np.vstack([reward, [0, 0, 0]]),
        name=name or f"maze {seed}",
        **{"gamma": 0.95, "tau": 0.1, **settings},
    )


@cache
def setting() -> tuple[tuple[fidm.TaskModel, ...], fidm.Cohort]:
    """Twelve people, each on four mazes."""
    tasks = tuple(maze(seed) for seed in range(4))
    steps, episodes = [], []
    for person in range(12):
        for number, task in enumerate(tasks):
            episodes.append({"participant": f"P{person}", "episode": f"e{number}", "task": task.name})
            for again in range(3):
                trace = fidm.walk(task, fidm.solve(task), 6.0, seed=100 * person + 10 * number + again)
                name = f"e{number}.{again}"
                episodes.append({"participant": f"P{person}", "episode": name, "task": task.name})
                for k, (state, action) in enumerate(zip(trace.state, trace.action, strict=False)):
                    steps.append((f"P{person}", name, k, int(state), int(action)))
    table = pl.DataFrame(steps, ["participant", "episode", "step", "state", "action"], orient="row")
    cohort = fidm.make_cohort(steps=table, episodes=pl.DataFrame(episodes), tasks=tasks)
    return tasks, cohort


def sensitivities(model: fidm.Model) -> np.ndarray:
    people = setting()[1]
    return model.fit(people, method="mle").profile(people).action_sensitivity


def test_values_are_found_by_their_task_in_any_order():
    tasks, _ = setting()
    solved = [fidm.solve(task) for task in tasks]
    expected = sensitivities(fidm.Model(tasks, channels=()))
    assert np.array_equal(sensitivities(fidm.Model(tasks, channels=(), values=solved[::-1])), expected)


def test_values_of_another_task_are_refused():
    tasks, people = setting()
    solved = [fidm.solve(task) for task in tasks]
    message = "None of these values was solved for maze 0: .*believes=other_task"
    with pytest.raises(fidm.TaskError, match=message):
        fidm.Model(tasks, values=[*solved[1:], fidm.solve(maze(9))])
    with pytest.raises(fidm.TaskError, match="maze 0: they are of other tasks, or of other settings"):
        fidm.Model(tasks[0], values=fidm.solve(tasks[0], normaliser="max"))
    with pytest.raises(fidm.TaskError, match="solved for another task than maze 0"):
        fidm.walk(tasks[0], solved[1], 3.0, seed=1)
    with pytest.raises(fidm.TaskError, match="solved for another task than maze 0"):
        fidm.choice_probabilities(tasks[0], solved[1], 3.0)
    for again in (redraw_walks, redraw_choices):
        same = [
            again(TaskSet.of(tasks), people, np.full(12, 5.0), seed=1, values=v) for v in (None, solved[::-1])
        ]
        assert np.array_equal(same[0].action, same[1].action)
        with pytest.raises(fidm.TaskError, match="None of these values"):
            again(TaskSet.of(tasks), people, np.full(12, 5.0), seed=1, values=solved[:3])


def test_values_made_or_changed_by_hand_are_taken_as_beliefs_only():
    task = maze(0)
    values = fidm.solve(task)
    assert values.solved_for == task.fingerprint
    changed = replace(values, q=values.q * 2)
    assert changed.solved_for == ""
    with pytest.raises(fidm.TaskError, match=r"made or changed by hand.*believes=values"):
        fidm.Model(task, values=changed)
    assert fidm.walk(task, changed, 3.0, seed=1).finished  # one task and its values, side by side
    with pytest.raises(fidm.TaskError, match="some action has no value"):
        believed_values(task, replace(values, q=np.where(np.arange(3) == 1, -np.inf, values.q)))


def test_people_may_believe_in_another_task_than_they_act_in():
    tasks, people = setting()
    other = maze(9, "maze 0")
    own = sensitivities(fidm.Model(tasks, channels=()))
    found = [
        sensitivities(fidm.Model(tasks, channels=(), believes=believes))
        for believes in ([other], {"maze 0": other}, {"maze 0": fidm.solve(other)})
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert not np.allclose(found[0], own)
    q = np.concatenate([believed_values(tasks[0], other).q[:6].ravel()])
    fit = fidm.Model(tasks, channels=(), believes=[other]).fit(people, method="mle")
    assert np.array_equal(fit.q[:18], q)
    assert fit.beliefs[0].task == "maze 0"
    assert "believing in another maze 0" in repr(fidm.Model(tasks, believes=[other]))


def test_a_believed_task_has_the_same_states_and_actions():
    task = maze(0)
    for wrong, message in [
        (fidm.load_task("errands"), "differ in their actions"),
        (
            fidm.TaskModel.from_arrays(
                [[1, 0, 1], [-1, -1, -1]], np.zeros((2, 3)), gamma=0.9, tau=0.1, name="short"
            ),
            r"differ in their states \(7 and 2\)",
        ),
    ]:
        with pytest.raises(fidm.TaskError, match=message):
            fidm.Model(task, believes=wrong)
    with pytest.raises(fidm.TaskError, match="Something is believed of 'maze 9', which is none of the tasks"):
        fidm.Model([task, maze(1)], believes=[maze(9)])
    with pytest.raises(fidm.TaskError, match="it must be said which one"):
        fidm.Model([task, maze(1)], believes=maze(9))
    with pytest.raises(fidm.TaskError, match="not in a str"):
        fidm.Model(task, believes={"maze 0": "maze 1"})
    with pytest.raises(fidm.TaskError, match="give believes alone"):
        fidm.Model(task, values=fidm.solve(task), believes=maze(1)).fit(setting()[1])


def test_a_drawn_map_is_believed_by_its_cells():
    task = fidm.load_task("grocery")
    cheap = task.with_settings(move_cost=-0.001)
    assert np.array_equal(believed_values(task, cheap).q, fidm.solve(cheap).q)
    with pytest.raises(fidm.TaskError, match="differ in their"):
        believed_values(task, fidm.load_task("grocery_small"))


# ---------------------------------------------------------------------- saving


def test_a_saved_fit_remembers_what_people_believe(tmp_path):
    tasks, people = setting()
    other, path = maze(9, "maze 0"), tmp_path / "fit.json"
    fit = fidm.Model(tasks, channels=(), believes=[other]).fit(people, method="mle")
    fit.save(path)
    with pytest.raises(
        fidm.FitError, match=r"do not see maze 0 as it is: .*load_fit\(path, task, believes=…\)"
    ):
        fidm.load_fit(path, tasks)
    with pytest.raises(fidm.FitError, match="and believes is something else"):
        fidm.load_fit(path, tasks, believes=[maze(8, "maze 0")])
    for believes in ([other], {"maze 0": fidm.solve(other)}):
        again = fidm.load_fit(path, tasks, believes=believes)
        assert np.array_equal(again.profile(people).estimate, fit.profile(people).estimate)
        assert again.beliefs[0].sha256 == other.fingerprint


def test_a_saved_fit_remembers_values_made_by_hand(tmp_path):
    tasks, people = setting()
    path = tmp_path / "fit.json"
    double = replace(fidm.solve(tasks[1]), q=2 * fidm.solve(tasks[1]).q)
    fit = fidm.Model(tasks, channels=(), believes={"maze 1": double}).fit(people, method="mle")
    fit.save(path)
    with pytest.raises(fidm.FitError, match="they go by values of their own"):
        fidm.load_fit(path, tasks)
    again = fidm.load_fit(path, tasks, believes={"maze 1": double})
    assert np.array_equal(again.profile(people).estimate, fit.profile(people).estimate)


def test_a_saved_fit_takes_the_tasks_own_values(tmp_path):
    tasks, people = setting()
    path = tmp_path / "fit.json"
    solved = [fidm.solve(task) for task in tasks]
    fit = fidm.Model(tasks, channels=(), values=solved).fit(people, method="mle")
    fit.save(path)
    for values in (None, solved[::-1]):
        again = fidm.load_fit(path, tasks, values=values)
        assert np.array_equal(again.profile(people).estimate, fit.profile(people).estimate)
    with pytest.raises(fidm.TaskError, match="None of these values"):
        fidm.load_fit(path, tasks, values=solved[:2])
    with pytest.raises(fidm.FitError, match="who see maze 0 as it is; leave out believes"):
        fidm.load_fit(path, tasks, believes=[maze(9, "maze 0")])
