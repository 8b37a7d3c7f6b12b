"""What must hold for the values of any task."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.strategies import (
    deterministic_tasks,
    gammas,
    model_of_pairs,
    normalisers,
    stochastic_tasks,
    tables,
    taus,
)

import fidm
from fidm.tasks.behaviour import choice_probabilities, information, look_ahead, reachable
from fidm.tasks.solve import layer_states


@given(stochastic_tasks(), gammas, taus)
def test_mean_is_below_max_is_below_sum(task, gamma, tau):
    model = model_of_pairs(task, gamma=gamma, tau=tau)
    mean, best, total = (fidm.solve(model, normaliser=n).v for n in ("mean", "max", "sum"))
    assert (mean <= best + 1e-9).all()
    assert (best <= total + 1e-9).all()


@given(stochastic_tasks(), gammas, taus, normalisers, st.randoms(use_true_random=False))
def test_renumbering_states_renumbers_values(task, gamma, tau, normaliser, random):
    order = list(task)
    random.shuffle(order)
    renamed = {
        order[s]: {a: (r, {order[t]: p for t, p in after.items()}) for a, (r, after) in actions.items()}
        for s, actions in task.items()
    }
    one = fidm.solve(model_of_pairs(task, gamma=gamma, tau=tau, normaliser=normaliser))
    two = fidm.solve(
        model_of_pairs(dict(sorted(renamed.items())), gamma=gamma, tau=tau, normaliser=normaliser)
    )
    assert np.allclose(two.v[order], one.v, rtol=0, atol=1e-9)


@given(deterministic_tasks(), st.sampled_from([0.3, 0.9]), taus, normalisers, st.floats(0, 3))
def test_a_better_reward_never_lowers_a_value(task, gamma, tau, normaliser, more):
    next_state, reward = tables(task)
    better = reward.copy()
    better[0] += more
    one, two = (
        fidm.solve(fidm.TaskModel.from_arrays(next_state, r, gamma=gamma, tau=tau, normaliser=normaliser))
        for r in (reward, better)
    )
    assert (two.v >= one.v - 1e-9).all()


@given(stochastic_tasks())
def test_each_layer_leads_only_to_earlier_ones_or_itself(task):
    model = model_of_pairs(task, gamma=0.9, tau=0.1)
    layers = layer_states(model)
    depth = np.zeros(model.n_states, dtype=int)
    for i, states in enumerate(layers, start=1):
        depth[states] = i
    assert (depth[model.terminal] == 0).all()
    assert sum(map(len, layers)) == (~model.terminal).sum()
    from_state = np.repeat(model.pair_state, np.diff(model.successor_offsets))
    assert (depth[model.successor] <= depth[from_state]).all()


@given(stochastic_tasks(), taus, st.sampled_from([0.0, 0.5, 7.0, 1e6, np.inf]))
def test_probabilities_sum_to_one_and_information_is_not_negative(task, tau, eta):
    model = model_of_pairs(task, gamma=0.8, tau=tau)
    values = fidm.solve(model)
    p = choice_probabilities(model, values, eta)
    assert (p >= 0).all()
    sums = np.bincount(model.pair_state, p, minlength=model.n_states)
    assert np.allclose(sums[~model.terminal], 1.0)
    if np.isfinite(eta):
        assert (information(model, values, eta) >= 0).all()


@settings(max_examples=50)
@given(stochastic_tasks(), st.integers(0, 20))
def test_looking_ahead_never_loses_anybody(task, steps):
    model = model_of_pairs(task, gamma=0.8, tau=0.1)
    outlook = look_ahead(model, choice_probabilities(model, fidm.solve(model), 3.0), max_steps=steps)
    assert -1e-9 <= outlook.finished <= 1 + 1e-9
    assert abs(outlook.visits.sum() - outlook.actions) < 1e-9
    assert outlook.actions <= steps + 1e-9


@given(stochastic_tasks(), st.integers(0, 2**32 - 1))
def test_walks_are_legal_and_repeatable(task, seed):
    model = model_of_pairs(task, gamma=0.8, tau=0.1)
    values = fidm.solve(model)
    trace = fidm.walk(model, values, 2.0, seed=seed, max_steps=30)
    again = fidm.walk(model, values, 2.0, seed=seed, max_steps=30)
    assert trace.state.tolist() == again.state.tolist()
    acting = {int(s) for ring in reachable(model) for s in ring}
    assert set(trace.state.tolist()) <= acting
    for i, action in enumerate(trace.action.tolist()):
        pair = model.pair(int(trace.state[i]), action)
        after = model.successor[model.successor_offsets[pair] : model.successor_offsets[pair + 1]]
        assert trace.state[i + 1] in after
