"""Large layers: solved iteratively, in little memory, to the same residual."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fidm
from fidm.tasks import solve as module


def open_grid(n: int, **settings) -> fidm.TaskModel:
    """An n × n floor with one goal that ends the walk."""
    cell, end = np.arange(n * n).reshape(n, n), n * n
    next_state = np.full((n * n + 1, 5), -1)
    north, south, east, west, _ = (next_state[:end, i].reshape(n, n) for i in range(5))
    north[1:], south[:-1], east[:, :-1], west[:, 1:] = cell[:-1], cell[1:], cell[:, 1:], cell[:, :-1]
    reward = np.full(next_state.shape, -0.02)
    goal = cell[n // 3, n // 2]
    next_state[goal, 4], reward[goal, 4] = end, 1.0
    return fidm.TaskModel.from_arrays(next_state, reward, **({"gamma": 0.98, "tau": 0.05} | settings))


@pytest.mark.parametrize("normaliser", ["sum", "mean", "max"])
def test_a_large_layer_needs_no_factorization(normaliser, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a large layer was factorized")

    monkeypatch.setattr(module.sparse_linalg, "splu", refuse)
    values = fidm.solve(open_grid(120, normaliser=normaliser))
    assert values.residual <= 1e-10
    assert values.iterations < 10


@pytest.mark.parametrize("normaliser", ["sum", "mean", "max"])
def test_both_roads_lead_to_the_same_values(normaliser, monkeypatch):
    task = open_grid(40, normaliser=normaliser)
    direct = fidm.solve(task)
    monkeypatch.setattr("fidm.tasks.solve.DIRECT_WORK", -1.0)
    monkeypatch.setattr(module, "SWEEP_LIMIT", 0)
    assert np.allclose(fidm.solve(task).v, direct.v, rtol=0, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.999, 0.99999])
def test_gamma_near_one(gamma):
    assert fidm.solve(open_grid(85, gamma=gamma, normaliser="mean")).residual <= 1e-10


@pytest.mark.parametrize("normaliser", ["sum", "mean", "max"])
@pytest.mark.parametrize(("n_states", "gamma"), [(700, 0.98), (5_900, 0.98), (7_000, 0.999), (20_000, 0.98)])
def test_graphs_that_are_no_maps_are_never_factorized_whole(n_states, gamma, normaliser):
    """A random graph has no narrow ordering; factorizing it would take minutes and gigabytes."""
    rng = np.random.default_rng(n_states)
    next_state = rng.integers(0, n_states, (n_states, 4))
    next_state[0] = -1
    task = fidm.TaskModel.from_arrays(
        next_state, rng.normal(size=next_state.shape), gamma=gamma, tau=0.05, normaliser=normaliser, start=1
    )
    assert fidm.solve(task).residual <= 1e-10


def test_a_large_stochastic_layer():
    rng = np.random.default_rng(5)
    n, n_pairs = 8_000, 24_000
    chances = sparse.csr_array(
        (np.full(5 * n_pairs, 0.2), (np.repeat(np.arange(n_pairs), 5), rng.integers(0, n, 5 * n_pairs))),
        shape=(n_pairs, n),
    )
    task = fidm.TaskModel.from_pairs(
        np.repeat(np.arange(n), 3),
        np.tile(np.arange(3), n),
        rng.normal(size=n_pairs),
        chances,
        gamma=0.98,
        tau=0.05,
    )
    for normaliser in ("sum", "max"):
        assert fidm.solve(task, normaliser=normaliser).residual <= 1e-10


def test_a_very_long_corridor():
    n = 30_000
    next_state = np.stack([np.arange(n) - 1, np.arange(n) + 1], axis=1)
    next_state[-1] = -1
    task = fidm.TaskModel.from_arrays(next_state, np.full((n, 2), -0.01), gamma=0.9, tau=0.05)
    assert fidm.solve(task).residual <= 1e-10


def test_a_million_states_fit_in_eight_gigabytes():
    benchmark = Path(__file__).parents[3] / "benchmarks" / "solve.py"
    done = subprocess.run(
        [sys.executable, str(benchmark), "--million"], capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    assert result["states"] > 1_000_000
    assert result["residual"] <= 1e-10
    assert result["peak_gib"] < 8
