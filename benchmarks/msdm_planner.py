"""Plan one task with msdm and print how long it took and what the states are worth, as JSON.

Run by ``benchmarks/solve.py`` with the Python of an environment that holds msdm (see
``msdm-requirements.txt``); fidm is not needed there. The planner is msdm's entropy-regularized policy
iteration. It weighs actions by a prior: with a prior of 1 for every legal action its values are fidm's
with ``normaliser="sum"``; with its own default, uniform over the legal actions, with ``"mean"``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msdm.algorithms import EntropyRegularizedPolicyIteration
from msdm.core.mdp import TabularMarkovDecisionProcess


def read_mdp(tables: Any) -> TabularMarkovDecisionProcess:
    """Make msdm's form of a deterministic task from its tables.

    Parameters
    ----------
    tables : mapping
        ``next_state`` [S, A] (-1 where an action is not legal), ``reward`` [S, A] and ``gamma``. A
        state without legal actions ends the task; msdm wants a loop there that pays nothing.
    """
    next_state, reward = tables["next_state"].copy(), tables["reward"].copy()
    ends = np.flatnonzero((next_state < 0).all(axis=1))
    next_state[ends, 0], reward[ends, 0] = ends, 0.0
    n_states, n_actions = next_state.shape
    state, action = np.nonzero(next_state >= 0)
    links = state, action, next_state[state, action]
    transition, pay = np.zeros((2, n_states, n_actions, n_states))
    transition[links] = 1.0
    pay[links] = reward[state, action]
    return TabularMarkovDecisionProcess.from_matrices(
        state_list=tuple(range(n_states)),
        action_list=tuple(range(n_actions)),
        initial_state_vec=np.eye(n_states)[0],
        transition_matrix=transition,
        action_matrix=(next_state >= 0).astype(np.float64),
        reward_matrix=pay,
        absorbing_state_vec=np.isin(np.arange(n_states), ends),
        discount_rate=float(tables["gamma"]),
    )


def main() -> None:
    """Read the tables of a task, plan several times, and print the shortest time and the values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", type=Path, help="an .npz file with next_state, reward, gamma and tau")
    parser.add_argument("--normaliser", choices=["sum", "mean"], default="sum")
    parser.add_argument("--repetitions", type=int, default=10)
    options = parser.parse_args()

    with np.load(options.tables) as tables:
        mdp = read_mdp(tables)
        tau = float(tables["tau"])
    # The transition and reward matrices are cached properties; they are built before the clock starts.
    legal = torch.from_numpy(mdp.action_matrix.copy())
    _ = mdp.transition_matrix, mdp.reward_matrix
    planner = EntropyRegularizedPolicyIteration(
        entropy_weight=torch.tensor([tau], dtype=torch.float64),  # a plain number would become float32
        policy_prior=legal if options.normaliser == "sum" else None,
    )
    seconds = []
    for _ in range(options.repetitions):
        begin = time.perf_counter()
        plan = planner.plan_on(mdp)
        seconds.append(time.perf_counter() - begin)
    json.dump(
        {
            "planner": type(planner).__name__,
            "msdm": importlib.metadata.version("msdm"),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "repetitions": options.repetitions,
            "seconds": min(seconds),
            "iterations": int(plan.iterations),
            "converged": bool(plan.converged),
            "values": [float(plan.V[state]) for state in mdp.state_list],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
