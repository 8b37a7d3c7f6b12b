"""The fourteen trajectory statistics against a slow loop, written straight from the appendix's list."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.classify.trajectory import NAMES, trajectory_statistics
from fidm.cohort import offsets_of

WAYS = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}
BACK = {"N": "S", "S": "N", "E": "W", "W": "E"}


@functools.cache
def tasks():
    found = tuple(fidm.load_task(name) for name in ("errands", "grocery_small"))
    return found, tuple(fidm.solve(task) for task in found)


def slow_statistics(models, cohort):
    """One person after the other, one episode after the other, one step after the other."""
    by_name = {task.name: task for task in models}
    rows = []
    for person in range(len(cohort)):
        found = dict.fromkeys(NAMES, 0.0)
        found["is_consistent"] = 1.0
        for e in range(cohort.episode_offsets[person], cohort.episode_offsets[person + 1]):
            one_episode(by_name[cohort.episodes["task"][e]], cohort, e, found)
        rows.append([found[name] if found["n_actions"] else np.nan for name in NAMES])
    return np.array(rows)


def one_episode(task, cohort, e, found):
    spec = task.grid.spec
    steps = range(cohort.step_offsets[e], cohort.step_offsets[e + 1])
    states = [int(cohort.state[i]) for i in steps] + [int(cohort.end_state[e])]
    visited, last_way = set(), None
    for place, i in enumerate(steps):
        code = int(cohort.action[i])
        name = "OUT" if code == -1 else task.actions[code]
        found["n_actions"] += 1
        if not 0 <= states[place] < task.n_states:
            found["is_consistent"] = 0.0
        here, there = where(task, states[place]), where(task, states[place + 1])
        if here is not None:
            visited.add(here)
        if name in WAYS:
            found["n_movements"] += 1
            found["n_" + {"N": "north", "S": "south", "E": "east", "W": "west"}[name]] += 1
            found["n_direction_changes"] += last_way is not None and name != last_way
            found["n_backtracks"] += last_way is not None and name == BACK[last_way]
            last_way = name
            expected = None if here is None else walked(task, here, name)
            if expected is None:
                found["is_consistent"] = 0.0
            if there is None:
                there = expected
            if here is not None and there != expected and expected is not None:
                found["is_consistent"] = 0.0
            if there is not None:
                found["n_revisits"] += there in visited
                visited.add(there)
            continue
        if here is not None and there is not None and here != there:
            found["is_consistent"] = 0.0
        if name == "OUT" or (spec.exit and name == spec.exit.action):
            found["has_out"] = 1.0
        elif spec.finish and name == spec.finish.action:
            found["has_pay"] = 1.0
        else:
            assert name.startswith(spec.verb)
            found["n_buys"] += 1
    found["n_cells"] += len(visited)


def where(task, state):
    return task.grid.cell(state) if 0 <= state < task.n_states else None


def walked(task, cell, way):
    """The cell next door, or None where nobody can stand."""
    there = (cell[0] + WAYS[way][0], cell[1] + WAYS[way][1])
    grid = task.grid.grid
    return there if there in set(zip(grid.row.tolist(), grid.column.tolist(), strict=True)) else None


def random_cohort(seed, *, spoilt):
    """People with no, one or several episodes on two maps; some leave, some end unseen, some are spoilt."""
    rng = np.random.default_rng(seed)
    models, values = tasks()
    names, sizes, state, action, ends, per_person = [], [], [], [], [], []
    for _ in range(25):
        per_person.append(int(rng.integers(0, 4)))
        for _ in range(per_person[-1]):
            t = int(rng.integers(2))
            trace = fidm.walk(
                models[t], values[t], float(rng.choice([0.0, 5.0, 30.0])), seed=rng, max_steps=60
            )
            size = int(rng.integers(0, len(trace.action) + 1))
            s, a = trace.state[: size + 1].tolist(), trace.action[:size].tolist()
            if rng.random() < 0.5:  # leaves, at the end or in between
                at = size if rng.random() < 0.5 else int(rng.integers(0, size + 1))
                s.insert(at, s[at])
                a.insert(at, -1)
            if rng.random() < 0.3:
                s[-1] = -1
            if spoilt and a and rng.random() < 0.5:
                at = int(rng.integers(len(a)))
                kind = rng.integers(3)
                if kind == 0:
                    s[at] = int(rng.integers(models[t].n_states))
                elif kind == 1:
                    s[at] = models[t].n_states + 7
                else:
                    a[at] = int(rng.integers(models[t].n_actions))
            names.append(models[t].name)
            sizes.append(len(a))
            state += s[:-1]
            action += a
            ends.append(s[-1])
    n = len(names)
    return models, fidm.Cohort(
        participants=pl.DataFrame({"participant": [f"P{i}" for i in range(25)]}),
        episodes=pl.DataFrame({"episode": [str(i) for i in range(n)], "task": names}),
        episode_offsets=offsets_of(per_person),
        step_offsets=offsets_of(sizes),
        state=np.array(state, dtype=np.int32),
        action=np.array(action, dtype=np.int32),
        end_state=np.array(ends, dtype=np.int32),
        segments=pl.DataFrame(
            {"segment": [], "n_moves": []}, schema={"segment": pl.String, "n_moves": pl.Int32}
        ),
        segment_offsets=np.zeros(n + 1, dtype=np.int64),
    )


@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_all_fourteen_equal_the_slow_loop(seed, spoilt):
    models, cohort = random_cohort(seed, spoilt=spoilt)
    found, expected = trajectory_statistics(models, cohort), slow_statistics(models, cohort)
    for place, name in enumerate(NAMES):
        assert np.array_equal(found[:, place], expected[:, place], equal_nan=True), name
    known = found[~np.isnan(found[:, 0])]
    assert len(known) < 25  # some have done nothing
    assert spoilt == (known[:, -1] == 0).any()


def test_what_is_compared_varies():
    """The walks are rich enough that each of the fourteen takes several values somewhere."""
    rows = np.concatenate(
        [trajectory_statistics(*random_cohort(seed, spoilt=True)) for seed in range(6)], axis=0
    )
    for place, name in enumerate(NAMES):
        assert len(np.unique(rows[~np.isnan(rows[:, 0]), place])) > 1, name
