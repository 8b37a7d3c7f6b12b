"""The Gymnasium environment passes Gymnasium's own check and behaves like the task."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fidm
from fidm.tasks.gym import TaskEnv


@pytest.mark.parametrize("name", fidm.builtin_tasks())
def test_passes_gymnasiums_own_check(name):
    env = gymnasium.make("fidm.tasks.gym:fidm/Task-v0", task=name, render_mode="ansi")
    check_env(env.unwrapped, skip_render_check=False)


def test_can_be_made_by_name():
    env = gymnasium.make("fidm.tasks.gym:fidm/Task-v0", task="errands", render_mode="ansi")
    env.reset(seed=1)
    assert "@" in env.render()


def test_following_the_best_actions_collects_the_best_return():
    task = fidm.load_task("grocery_small")
    values = fidm.solve(task, normaliser="max")
    env = TaskEnv(task)
    state, info = env.reset(seed=0)
    worth, discount, ended = 0.0, 1.0, False
    while not ended:
        action = int(np.argmax(values.q[state]))
        assert info["action_mask"][action]
        state, reward, ended, truncated, info = env.step(action)
        assert not truncated
        worth += discount * reward
        discount *= task.gamma
    assert worth == pytest.approx(values.v[task.start], abs=1e-9)


def test_illegal_actions_stay_and_are_flagged_or_raise():
    env = TaskEnv("grocery")
    start, _ = env.reset()
    state, reward, ended, _, info = env.step(0)
    assert (state, reward, ended, info["legal"]) == (start, 0.0, False, False)
    strict = TaskEnv("grocery", illegal="raise")
    strict.reset()
    with pytest.raises(fidm.TaskError, match="not legal"):
        strict.step(0)


def test_truncates_and_starts_elsewhere_on_request():
    env = TaskEnv("grocery", max_steps=2)
    env.reset(options={"state": 5})
    env.step(0)
    assert env.step(0)[3]
    with pytest.raises(fidm.TaskError, match="no state"):
        env.reset(options={"state": 10**9})


def test_stochastic_tasks_draw_their_outcomes_from_the_seed():
    task = fidm.TaskModel.from_pairs([0, 1], [0, 0], [0.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], gamma=0.9, tau=0.1)
    env = TaskEnv(task)

    def run():
        env.reset(seed=3)
        return [int(env.step(0)[0]) for _ in range(50)]

    first = run()
    assert first == run()
    assert set(first) == {0, 1}
