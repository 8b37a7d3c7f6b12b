"""fidm.solve agrees to 1e-10 with slow loops written straight from the equations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fidm
from oracle import slow_values
from oracle.strategies import (
    assert_same,
    deterministic_tasks,
    gammas,
    model_of_pairs,
    normalisers,
    stochastic_tasks,
    tables,
    taus,
)


@settings(max_examples=150)
@given(deterministic_tasks(), gammas, taus, normalisers)
def test_deterministic(task, gamma, tau, normaliser):
    q, v = slow_values.infinite_horizon(task, gamma, tau, normaliser)
    model = fidm.TaskModel.from_arrays(*tables(task), gamma=gamma, tau=tau)
    values = fidm.solve(model, normaliser=normaliser)
    assert values.residual <= 1e-10
    assert_same(values, q, v)


@settings(max_examples=150)
@given(stochastic_tasks(), gammas, taus, normalisers)
def test_stochastic(task, gamma, tau, normaliser):
    q, v = slow_values.infinite_horizon(task, gamma, tau, normaliser)
    model = model_of_pairs(task, gamma=gamma, tau=tau, normaliser=normaliser)
    assert_same(fidm.solve(model), q, v)


@settings(max_examples=150)
@given(stochastic_tasks(), st.sampled_from([0.5, 0.95, 1.0]), taus, normalisers, st.integers(1, 6))
def test_finite_horizon(task, gamma, tau, normaliser, steps):
    table = slow_values.finite_horizon(task, gamma, tau, normaliser, steps)
    model = model_of_pairs(task, gamma=gamma, tau=tau, normaliser=normaliser, horizon=steps)
    values = fidm.solve(model)
    assert values.iterations == 0
    for to_go in range(1, steps + 1):
        q, v = table[to_go]
        assert_same(values, q, v, base=model.at(0, to_go))


@settings(max_examples=60)
@given(deterministic_tasks(), st.sampled_from([0.5, 1.0]), taus, st.integers(1, 5))
def test_finite_horizon_of_tables(task, gamma, tau, steps):
    table = slow_values.finite_horizon(task, gamma, tau, "sum", steps)
    values = fidm.solve(fidm.TaskModel.from_arrays(*tables(task), gamma=gamma, tau=tau, horizon=steps))
    assert_same(values, *table[steps])


@settings(max_examples=60)
@given(deterministic_tasks(max_states=6), gammas, taus, normalisers)
def test_large_layers_take_another_road_to_the_same_values(task, gamma, tau, normaliser):
    """The iterative solver and the walk-out guess of large layers, on tasks small enough to check."""
    from fidm.tasks import solve as module

    q, v = slow_values.infinite_horizon(task, gamma, tau, normaliser)
    model = fidm.TaskModel.from_arrays(*tables(task), gamma=gamma, tau=tau, normaliser=normaliser)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fidm.tasks.solve.DIRECT_WORK", -1.0)
        patch.setattr(module, "SWEEP_LIMIT", 0)
        assert_same(fidm.solve(model), q, v)
