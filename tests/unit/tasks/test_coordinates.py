"""Coordinates make places and movements of states; nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from mazes import maze

import fidm
from fidm.tasks.sketch import Sketch

CORRIDOR = {"gamma": 0.9, "tau": 0.1}
TABLES = [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]]


def corridor(**options):
    return fidm.TaskModel.from_arrays(*TABLES, **CORRIDOR, **options)


def test_fingerprints_of_tasks_without_coordinates_stay():
    assert corridor().fingerprint.startswith("9e0bca8fa5cedc54")
    assert corridor(horizon=3).fingerprint.startswith("a4a842aff9cc5cdf")
    errands = fidm.load_task("errands")
    assert errands.fingerprint.startswith("433c94d392944b58")
    assert errands.with_horizon(4).fingerprint.startswith("caa5e91965603e36")
    assert errands.with_settings(move_cost=-0.07).fingerprint.startswith("9143e293f57f6652")


def test_a_fingerprint_knows_who_shares_a_place_and_not_where_it_is_drawn():
    one = corridor(coordinates=[(0, 0), (1, 0), (2, 0)])
    assert one.fingerprint != corridor().fingerprint
    assert one.fingerprint == corridor(coordinates=[(0, 9), (0, 5), (0, -3)]).fingerprint
    assert one.fingerprint != corridor(coordinates=[(0, 0), (1, 0), (0, 0)]).fingerprint


def test_what_surely_leads_to_another_place_is_a_movement():
    nan = float("nan")
    task = fidm.TaskModel.from_pairs(
        [0, 0, 0, 0, 1], [0, 1, 2, 3, 0], [0.0] * 5,
        [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1], [1, 0, 0, 0]],
        **CORRIDOR, coordinates=[(0, 0), (1, 0), (0, -0.0), (nan, nan)],
    )  # fmt: skip
    # to another place; to the same place; by chance; to no place; back
    assert task.is_move.tolist() == [True, False, False, False, True]
    assert task.place.tolist() == [0, 1, 0, -1]
    assert not corridor().is_move.any()
    assert not corridor().has_places


def test_places_of_a_drawn_task_are_the_cells_of_its_map():
    task = fidm.load_task("errands")
    cells = [task.grid.cell(s) for s in range(task.n_states)]
    rows, columns = task.grid.grid.row, task.grid.grid.column
    place = task.place
    for s in range(0, task.n_states - 1, 97):
        assert cells[s] == (rows[place[s]], columns[place[s]])
    assert place[-1] == -1


def test_with_a_horizon_places_stay_and_names_tell_the_steps_to_go():
    task = corridor(coordinates=[(0, 0), (1, 0), (2, 0)], states=["a", "b", "c"], horizon=2)
    assert task.place.tolist() == [0, 1, 2, 0, 1, 2, -1]
    assert task.describe(4) == "b with 1 step to go"
    assert task.states[0] == "a with 2 steps to go"
    assert task.describe(6) == task.states[6] == "time has run out"
    assert corridor(horizon=2).describe(4) == "state 1 with 1 step to go"
    assert task.is_move.tolist() == [True] * 6
    assert Sketch.of(task).labels == ("a", "b", "c")
    assert Sketch.of(task).ends.tolist() == [2]


def test_a_move_cost_leaves_what_movements_pay_besides():
    task = maze(1)
    assert task.move_cost == -0.02
    dearer = task.with_settings(move_cost=-0.05)
    assert dearer.move_cost == -0.05
    plain = task.reward == -0.02
    assert (dearer.reward[plain] == -0.05).all()
    np.testing.assert_allclose(dearer.reward[~plain] - task.reward[~plain], -0.03, rtol=1e-12)
    assert task.with_settings(move_cost=-0.02).fingerprint == task.fingerprint
    with pytest.raises(fidm.TaskError, match="no movements"):
        corridor().with_settings(move_cost=-0.1)


def test_the_check_tries_other_move_costs_where_there_are_places():
    assert {one.move_cost for one in fidm.check_task(maze(1)).settings} == {-0.01, -0.02, -0.05}
    assert {one.move_cost for one in fidm.check_task(maze(1, coordinates=None)).settings} == {None}


class Stairs:
    """Up and down; upstairs there is a room nobody can draw."""

    def start(self):
        return 0

    def actions(self, state):
        return [] if state == "room" else ["up", "down"]

    def step(self, state, action):
        return min(max(state + (1 if action == "up" else -1), 0), 2) if state != 2 else "room"

    def reward(self, state, action):
        return -0.1

    def coordinates(self, state):
        return None if state == "room" else (0, -state)


def test_rules_say_where_states_are():
    task = fidm.compile_task(Stairs(), gamma=0.9, tau=0.1)
    assert task.coordinates[:3].tolist() == [[0, 0], [0, -1], [0, -2]]
    assert np.isnan(task.coordinates[3]).all()
    legal = {(task.describe(s), task.actions[a]) for s, a in zip(
        task.pair_state[task.is_move], task.action[task.is_move], strict=True)}  # fmt: skip
    assert legal == {("0", "up"), ("1", "up"), ("1", "down")}


@pytest.mark.parametrize(
    ("answer", "said"),
    [(7, "is no pair of x and y"), ((1, 2, 3), "is no pair of x and y"), (("a", 1), "is no number")],
)
def test_rules_that_say_nonsense_are_refused(answer, said):
    class Odd(Stairs):
        def coordinates(self, state):
            return answer

    with pytest.raises(fidm.TaskError, match=said):
        fidm.compile_task(Odd(), gamma=0.9, tau=0.1)


@pytest.mark.parametrize(
    ("coordinates", "said"),
    [
        ([(0, 0)], r"shape \(1, 2\).*3 states"),
        ([0, 1, 2], r"shape \(3,\)"),
        ([(0, 0), (np.inf, 0), (1, np.nan)], r"coordinates\[1\]: is inf, 0.\n.*coordinates\[2\]: is 1, nan."),
        ("somewhere", "must be a table of numbers"),
    ],
)
def test_odd_coordinates_are_refused(coordinates, said):
    with pytest.raises(fidm.TaskError, match=said):
        corridor(coordinates=coordinates)


def test_a_sketch_is_in_units_of_a_typical_movement():
    sketch = Sketch.of(maze(1, coordinates=[(40 * (s % 4) - 7, 40 * (s // 4) + 3) for s in range(16)]))
    np.testing.assert_allclose(sketch.at, [(s % 4, s // 4) for s in range(16)])
    assert len(sketch.links) == 24  # each way between neighbours once
    assert (sketch.start, sketch.ends.tolist()) == (0, [15])
    assert np.isnan(
        Sketch.of(corridor(coordinates=[(0, 0), (1, 1), (np.nan,) * 2])).spots(np.array([2]))
    ).all()


def test_a_place_of_states_with_different_names_has_none():
    task = corridor(coordinates=[(0, 0), (1, 0), (0, 0)], states=["a", "b", "c"])
    assert Sketch.of(task).labels == ("", "b")


def test_tasks_without_places_have_no_sketch():
    with pytest.raises(fidm.TaskError, match="no coordinates"):
        Sketch.of(corridor())
    with pytest.raises(fidm.TaskError, match="no state with coordinates"):
        Sketch.of(corridor(coordinates=np.full((3, 2), np.nan)))
