"""Soft values by loops written straight from the equations; slow, plain, and independent of fidm.

A task is a dict: state -> {action: (reward, {next state: probability})}. A state without actions ends.
"""

from __future__ import annotations

import math


def soft_maximum(values: list[float], tau: float, normaliser: str) -> float:
    if normaliser == "max":
        return max(values)
    top = max(values)
    total = sum(math.exp((value - top) / tau) for value in values)
    if normaliser == "mean":
        total /= len(values)
    return top + tau * math.log(total)


def action_values(task: dict, v: dict, gamma: float) -> dict:
    return {
        state: {
            action: reward + gamma * sum(p * v[after] for after, p in chances.items())
            for action, (reward, chances) in actions.items()
        }
        for state, actions in task.items()
    }


def infinite_horizon(task: dict, gamma: float, tau: float, normaliser: str) -> tuple[dict, dict]:
    """Iterate V <- softmax Q(V) until nothing changes by more than 1e-13."""
    v = dict.fromkeys(task, 0.0)
    while True:
        q = action_values(task, v, gamma)
        new = {s: soft_maximum(list(q[s].values()), tau, normaliser) if q[s] else 0.0 for s in task}
        change = max(abs(new[s] - v[s]) for s in task)
        v = new
        if change <= 1e-13:
            return action_values(task, v, gamma), v


def finite_horizon(
    task: dict, gamma: float, tau: float, normaliser: str, steps: int
) -> list[tuple[dict, dict]]:
    """Backward induction; entry k holds q and v with k steps to go."""
    v = dict.fromkeys(task, 0.0)
    table: list[tuple[dict, dict]] = [({}, v)]
    for _ in range(steps):
        q = action_values(task, v, gamma)
        v = {s: soft_maximum(list(q[s].values()), tau, normaliser) if q[s] else 0.0 for s in task}
        table.append((q, v))
    return table
