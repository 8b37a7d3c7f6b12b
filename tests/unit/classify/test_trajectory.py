"""Trajectory statistics of walks drawn by hand."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.classify.trajectory import NAMES, TrajectoryFeatures, trajectory_statistics

CORRIDOR = """
format = 1
name = "corridor"
title = "A corridor"
[values]
gamma = 0.95
tau = 0.02
[rewards]
move = -0.05
target = 1.0
repeated = -0.1
non_target = -0.2
[map]
drawing = '''
#A#B####
S......X
####P###
'''
[sections.apples]
symbol = "A"
[sections.bread]
symbol = "B"
[[phases]]
name = "all"
targets = ["apples", "bread"]
[[phases]]
name = "pay"
[finish]
symbol = "P"
action = "PAY"
reach = "adjacent"
reward = 1.0
[exit]
symbol = "X"
action = "OUT"
[rules]
phase_change = "goals"
"""


@functools.cache
def corridor():
    return fidm.compile_task(fidm.parse_task(CORRIDOR))


def walks(**by_person):
    """A cohort of people who took these actions, from the start, an episode each."""
    steps = [
        {"participant": who, "episode": str(e), "step": i + 1, "action": action}
        for who, episodes in by_person.items()
        for e, actions in enumerate(episodes)
        for i, action in enumerate(actions)
    ]
    return fidm.make_cohort(steps=pl.DataFrame(steps), tasks=[corridor()])


def statistics(*episodes):
    return dict(zip(NAMES, trajectory_statistics(corridor(), walks(P=episodes))[0].tolist(), strict=True))


def test_a_walk_by_hand():
    found = statistics(
        ["E", "BUY apples", "E", "W", "E", "E", "BUY bread", "BUY bread", "E", "PAY"],
    )
    assert found == {
        "n_actions": 10,
        "n_movements": 6,
        "n_buys": 3,
        "has_pay": 1,
        "has_out": 0,
        "n_north": 0,
        "n_south": 0,
        "n_east": 5,
        "n_west": 1,
        "n_direction_changes": 2,
        "n_backtracks": 2,
        "n_cells": 5,
        "n_revisits": 2,
        "is_consistent": 1,
    }


def test_a_purchase_between_does_not_hide_that_one_turns_back():
    found = statistics(["E", "BUY apples", "W"])
    assert (found["n_direction_changes"], found["n_backtracks"], found["n_revisits"]) == (1, 1, 1)


def test_who_leaves_and_who_pays_early():
    assert statistics(["E"] * 7 + ["OUT"])["has_out"] == 1
    early = statistics(["E"] * 4 + ["PAY"])
    assert (early["has_pay"], early["has_out"], early["n_actions"]) == (1, 0, 5)


def test_an_exit_that_counts_in_the_likelihood_is_out_too():
    counted = CORRIDOR.replace('action = "OUT"', 'action = "OUT"\nin_likelihood = true')
    task = fidm.compile_task(fidm.parse_task(counted))
    assert "OUT" in task.actions
    steps = pl.DataFrame({"participant": "P", "step": range(1, 9), "action": ["E"] * 7 + ["OUT"]})
    found = trajectory_statistics(task, fidm.make_cohort(steps=steps, tasks=[task]))[0]
    assert found[NAMES.index("has_out")] == 1
    assert found[NAMES.index("n_buys")] == 0


def test_counts_go_over_all_episodes_and_each_begins_anew():
    once, twice = statistics(["E", "W"]), statistics(["E", "W"], ["E", "W"])
    for name in NAMES:
        assert twice[name] == (once[name] if name.startswith(("has", "is")) else 2 * once[name]), name


def test_somebody_without_actions_has_nothing():
    empty = fidm.Cohort.concat([walks(A=[["E"]], B=[["E", "W"]]), _emptied(walks(C=[["E"]]))])
    found = trajectory_statistics(corridor(), empty)
    assert np.isnan(found).all(axis=1).tolist() == [False, False, True]
    assert np.array_equal(TrajectoryFeatures(corridor()).fit(empty).transform(empty), found, equal_nan=True)


def _emptied(cohort):
    """The same people, of whom nothing was recorded."""
    fields = {name: getattr(cohort, name) for name in fidm.Cohort.__slots__}
    none = np.zeros(0, dtype=np.int32)
    return fidm.Cohort(
        **{
            **fields,
            "step_offsets": np.zeros(cohort.n_episodes + 1, dtype=np.int64),
            **dict.fromkeys(("state", "action"), none),
            "weight": None,
            "segment": None,
            "inferred": None,
        }
    )


def test_nobody_who_moved_is_refused():
    with pytest.raises(fidm.DataError, match="made a movement"):
        TrajectoryFeatures(corridor()).fit(_emptied(walks(A=[["E"]])))


def test_a_task_without_a_map_is_refused():
    task = fidm.TaskModel.from_arrays(
        [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1, name="plain"
    )
    cohort = fidm.simulate_cohort(task, 3, seed=1)
    with pytest.raises(fidm.TaskError, match="not drawn"):
        TrajectoryFeatures(task).fit(cohort)


def test_an_unknown_task_is_refused():
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    with pytest.raises(fidm.DataError, match="known: corridor"):
        trajectory_statistics(corridor(), cohort)


def test_the_order_of_people_changes_nothing_but_the_order():
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 20, seed=1)
    order = np.random.default_rng(1).permutation(20)
    assert np.array_equal(
        trajectory_statistics(task, cohort[order]), trajectory_statistics(task, cohort)[order]
    )


def test_a_trace_that_jumps_is_not_consistent():
    cohort = walks(A=[["E", "E", "E"]], B=[["E", "E", "E"]])
    fields = {name: getattr(cohort, name) for name in fidm.Cohort.__slots__}
    state = cohort.state.copy()
    state[1] = state[2]
    jumping = fidm.Cohort(**{**fields, "state": state})
    assert trajectory_statistics(corridor(), jumping)[:, -1].tolist() == [0, 1]
