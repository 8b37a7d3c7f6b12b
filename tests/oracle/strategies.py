"""Random small decision processes for Hypothesis, as the dicts that slow_values reads."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import fidm

rewards = st.floats(-2, 2, allow_nan=False).map(lambda r: round(r, 3))
gammas = st.sampled_from([0.0, 0.3, 0.8, 0.95])
taus = st.sampled_from([0.01, 0.05, 0.5, 3.0])
normalisers = st.sampled_from(["sum", "mean", "max"])


@st.composite
def deterministic_tasks(draw: st.DrawFn, max_states: int = 7, max_actions: int = 4) -> dict:
    n_states = draw(st.integers(1, max_states))
    n_actions = draw(st.integers(1, max_actions))
    task: dict = {}
    for state in range(n_states):
        legal = draw(st.lists(st.integers(0, n_actions - 1), unique=True, max_size=n_actions))
        task[state] = {
            action: (draw(rewards), {draw(st.integers(0, n_states - 1)): 1.0}) for action in sorted(legal)
        }
    return task


@st.composite
def stochastic_tasks(draw: st.DrawFn, max_states: int = 6, max_actions: int = 3) -> dict:
    task = draw(deterministic_tasks(max_states, max_actions))
    for actions in task.values():
        for action, (reward, _) in actions.items():
            after = draw(st.lists(st.integers(0, len(task) - 1), unique=True, min_size=1, max_size=3))
            weights = [draw(st.integers(1, 5)) for _ in after]
            chances = {s: w / sum(weights) for s, w in zip(after, weights, strict=True)}
            actions[action] = (reward, chances)
    return task


def tables(task: dict) -> tuple[np.ndarray, np.ndarray]:
    """A deterministic task as the two tables of from_arrays."""
    n_actions = max((action + 1 for actions in task.values() for action in actions), default=1)
    next_state = np.full((len(task), n_actions), -1)
    reward = np.full((len(task), n_actions), np.nan)
    for state, actions in task.items():
        for action, (pay, chances) in actions.items():
            (next_state[state, action],) = chances
            reward[state, action] = pay
    return next_state, reward


def model_of_pairs(task: dict, **settings) -> fidm.TaskModel:
    """Any task through from_pairs, its pairs in shuffled order."""
    pairs = [(s, a, *outcome) for s, actions in task.items() for a, outcome in actions.items()]
    pairs = pairs[1::2] + pairs[0::2]
    transition = sparse.lil_array((len(pairs), len(task)))
    for row, (_, _, _, chances) in enumerate(pairs):
        for after, p in chances.items():
            transition[row, after] = p
    return fidm.TaskModel.from_pairs(
        [p[0] for p in pairs], [p[1] for p in pairs], [p[2] for p in pairs], transition, **settings
    )


def assert_same(values: fidm.Values, q: dict, v: dict, base: int = 0) -> None:
    """Values agree with the oracle's to 1e-10, and are -inf exactly where nothing is legal."""
    for state, worth in v.items():
        assert abs(values.v[base + state] - worth) <= 1e-10
        for action in range(values.q.shape[1]):
            if action in q[state]:
                assert abs(values.q[base + state, action] - q[state][action]) <= 1e-10
            else:
                assert values.q[base + state, action] == -np.inf
