"""Small tasks from arrays for tests: mazes on a square, with names and coordinates, and people in them."""

from __future__ import annotations

import numpy as np
import polars as pl

import fidm

WAYS = {"up": (-1, 0), "down": (1, 0), "right": (0, 1), "left": (0, -1)}


def maze(number, size=4, **options):
    """A square with mud in three cells; the corner opposite the start pays 1 and ends the walk."""
    rng, n = np.random.default_rng([7, number]), size * size
    target = np.full((n, 4), -1)
    for s in range(n - 1):
        for a, (down, right) in enumerate(WAYS.values()):
            row, column = s // size + down, s % size + right
            if 0 <= row < size and 0 <= column < size:
                target[s, a] = row * size + column
    mud = rng.choice(np.arange(1, n - 1), 3, replace=False)
    pay = np.where(target == n - 1, 1.0, -0.02) - 0.1 * np.isin(target, mud)
    said = {
        "gamma": 0.98,
        "tau": 0.01,
        "name": f"maze_{number:03d}",
        "actions": list(WAYS),
        "states": [f"r{s // size + 1}c{s % size + 1}" for s in range(n)],
        "coordinates": [(s % size, s // size) for s in range(n)],
    }
    return fidm.TaskModel.from_arrays(target, pay, **said | options)


def walked(tasks, n_people, eta=20.0, seed=1):
    """Tables of people who walk through all tasks, states and actions by name: steps and episodes."""
    rng = np.random.default_rng(seed)
    solved = [fidm.solve(task) for task in tasks]
    steps, episodes = [], []
    for p in range(n_people):
        own = eta * float(np.exp(0.6 * rng.normal()))
        for e, (task, values) in enumerate(zip(tasks, solved, strict=True), start=1):
            trace = fidm.walk(task, values, own, seed=int(rng.integers(1 << 30)), max_steps=30)
            episodes.append((f"P{p:02d}", e, task.name))
            steps += [
                (f"P{p:02d}", e, i, task.states[trace.state[i - 1]], task.actions[trace.action[i - 1]])
                for i in range(1, len(trace) + 1)
            ]
    steps = pl.DataFrame(steps, schema=["participant", "episode", "step", "state", "action"], orient="row")
    return steps, pl.DataFrame(episodes, schema=["participant", "episode", "task"], orient="row")
