"""Task models from arrays, pairs and objects: what is accepted, what is refused, and with which words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fidm


def corridor(**settings):
    defaults = {"gamma": 0.9, "tau": 0.1}
    return fidm.TaskModel.from_arrays(
        [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], **(defaults | settings)
    )


def test_next_state_and_reward_survive():
    task = corridor()
    assert task.next_state.tolist() == [[-1, 1], [0, 2], [-1, -1]]
    assert task.table(task.reward, fill=0.0).tolist() == [[0, -0.1], [-0.1, 1], [0, 0]]
    assert task.terminal.tolist() == [False, False, True]
    assert (task.n_states, task.n_actions, task.n_pairs) == (3, 2, 3)


def test_values_are_minus_infinity_where_nothing_is_legal_and_terminal_states_are_worth_nothing():
    values = fidm.solve(corridor())
    assert np.isneginf(values.q[0, 0])
    assert np.isneginf(values.q[2]).all()
    assert values.v[2] == 0.0


def test_arrays_are_read_only_and_the_callers_stay_open():
    reward = np.array([[0.0, -0.1], [-0.1, 1.0], [0.0, 0.0]])
    task = fidm.TaskModel.from_arrays([[-1, 1], [0, 2], [-1, -1]], reward, gamma=0.9, tau=0.1)
    with pytest.raises(ValueError, match="read-only"):
        task.reward[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        fidm.solve(task).v[0] = 5
    reward[0, 1] = 7.0
    assert task.reward[0] == -0.1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gamma": 1.5}, "gamma: is 1.5"),
        ({"gamma": float("nan")}, "gamma: is nan"),
        ({"tau": 0}, "tau: is 0"),
        ({"tau": float("inf")}, "tau: is inf"),
        ({"normaliser": "median"}, "normaliser: is 'median'"),
        ({"start": 3}, "start is 3, but the task has 3 states"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"actions": ["left"]}, "1 actions are named, but there are 2"),
        ({"actions": ["go", "go"]}, "must differ"),
        ({"states": ["a"]}, "1 state names for 3 states"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, words):
    with pytest.raises(fidm.TaskError, match=words):
        corridor(**settings)


@pytest.mark.parametrize(
    ("next_state", "reward", "words"),
    [
        ([[0, 5]], [[0, 0]], r"next_state\[0, 1\]: is 5"),
        ([[0, -2]], [[0, 0]], r"next_state\[0, 1\]: is -2"),
        ([[0]], [[0, 0]], r"shape \(1, 1\) and reward \(1, 2\)"),
        ([0, 1], [0, 1], "both must be the same"),
        ([[0.5]], [[0]], "next_state must hold whole numbers"),
        ([[0]], [[np.nan]], "state 0, action 0: pays nan"),
        ([[0]], [["a"]], "reward must be a table of numbers"),
        ([[0, 1], [0]], [[0]], "next_state must be a table of numbers"),
    ],
)
def test_bad_tables_are_refused_by_place(next_state, reward, words):
    with pytest.raises(fidm.TaskError, match=words):
        fidm.TaskModel.from_arrays(next_state, reward, gamma=0.9, tau=0.1)


def test_all_bad_rows_are_counted_and_the_first_few_named():
    with pytest.raises(fidm.TaskError, match="and 5 more") as caught:
        fidm.TaskModel.from_arrays(np.full((10, 1), 99), np.zeros((10, 1)), gamma=0.9, tau=0.1)
    assert len(caught.value.problems) == 6


@pytest.mark.parametrize(
    ("state", "action", "transition", "words"),
    [
        ([0], [0], [[0.5, 0.4]], r"pair 0 \(state 0, action 0\): sums to 0.9"),
        ([0], [0], [[1.5, -0.5]], "has a probability below 0"),
        ([0], [0], [[np.nan, 1.0]], "below 0|sums to nan"),
        ([0, 0], [1, 1], [[1, 0], [0, 1]], "state 0, action 1: occurs more than once"),
        ([2], [0], [[1, 0]], "pair 0: is state 2, action 0"),
        ([0], [-1], [[1, 0]], "pair 0: is state 0, action -1"),
        ([0, 1], [0], [[1, 0]], "one row per pair"),
        ([0], [0], "much", "transition is not a matrix"),
    ],
)
def test_bad_pairs_are_refused(state, action, transition, words):
    with pytest.raises(fidm.TaskError, match=words):
        fidm.TaskModel.from_pairs(state, action, [0.0] * len(state), transition, gamma=0.9, tau=0.1)


def test_from_pairs_leaves_the_callers_matrix_alone():
    matrix = sparse.csr_array(
        (np.array([0.25, 0.25, 0.5]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    fidm.TaskModel.from_pairs([0], [0], [1.0], matrix, gamma=0.9, tau=0.1)
    assert matrix.data.tolist() == [0.25, 0.25, 0.5]


def test_sizes_beyond_reason_are_refused_before_memory_is():
    task = fidm.TaskModel.from_arrays([[0]], [[1.0]], gamma=0.9, tau=0.1)
    with pytest.raises(fidm.TaskError, match="20000000 can be used"):
        task.with_horizon(10**9)
    with pytest.raises(fidm.TaskError, match="actions; up to 1000000"):
        fidm.TaskModel.from_pairs([0], [2**31 - 1], [1.0], [[1.0]], gamma=0.9, tau=0.1)
    with pytest.raises(fidm.TaskError, match=r"at most 1e\+12"):
        fidm.TaskModel.from_arrays([[0]], [[1e300]], gamma=0.9, tau=0.1)
    with pytest.raises(fidm.TaskError, match="at a tau"):
        fidm.solve(fidm.TaskModel.from_arrays([[0, 0]], [[1e8, 1]], gamma=0.999999, tau=0.05))


def test_running_out_of_time_is_not_finishing_where_there_is_an_end():
    task = corridor(horizon=1)
    trace = fidm.walk(task, fidm.solve(task), 1.0, seed=0)
    assert not trace.finished
    endless = fidm.TaskModel.from_arrays([[0]], [[1.0]], gamma=0.9, tau=0.1, horizon=2)
    assert fidm.walk(endless, fidm.solve(endless), 1.0, seed=0).finished


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": lambda s: [0]}, "start\\(\\) gives a state that is not hashable"),
        ({"step": lambda s, x, a: ([1],)}, "gives a state that is not hashable"),
        ({"reward": lambda s, x, a: None}, "is no number"),
        ({"actions": lambda s, x: None}, "is no list of actions"),
        ({"actions": lambda s, x: [[1]]}, "gives an action that is not hashable"),
        ({"step": lambda s, x, a: {0: "x"}}, "a probability of .* is no number"),
    ],
)
def test_rules_that_answer_nonsense_are_named(change, words):
    with pytest.raises(fidm.TaskError, match=words):
        fidm.compile_task(type("Bad", (Countdown,), change)(), gamma=0.9, tau=0.1, max_states=10)


def test_a_stochastic_task_has_no_next_state_table():
    task = fidm.TaskModel.from_pairs([0], [0], [1.0], [[0.5, 0.5]], gamma=0.9, tau=0.1)
    assert not task.is_deterministic
    with pytest.raises(fidm.TaskError, match="several outcomes"):
        _ = task.next_state


def test_circles_without_discount_are_refused_but_a_horizon_helps():
    with pytest.raises(fidm.TaskError, match="gamma = 1"):
        fidm.solve(corridor(gamma=1.0))
    assert fidm.solve(corridor(gamma=1.0, horizon=4)).residual <= 1e-10


def test_horizon_keeps_track_of_steps_to_go():
    task = corridor(horizon=3)
    assert task.n_states == 3 * 3 + 1
    assert task.describe(task.at(1, 2)) == "state 1 with 2 steps to go"
    assert task.describe(task.n_states - 1) == "time has run out"
    assert task.next_state[task.at(0, 1), 1] == task.n_states - 1
    assert task.next_state[task.at(0, 3), 1] == task.at(1, 2)
    with pytest.raises(fidm.TaskError, match="state 7 with 2 steps"):
        task.at(7, 2)
    with pytest.raises(fidm.TaskError, match="horizon of 3"):
        task.with_horizon(2)


def test_an_illegal_action_says_what_is_legal():
    task = fidm.load_task("grocery")
    with pytest.raises(fidm.TaskError, match=r"'N' is not legal in row 12, column 16.*Legal here: W"):
        task.pair(task.start, "N")
    with pytest.raises(fidm.TaskError, match="'dance' is not"):
        task.pair(task.start, "dance")
    assert task.actions[task.action[task.pair(task.start, "W")]] == "W"


def test_fingerprint_changes_with_any_number_and_with_nothing_else():
    task = corridor()
    assert task.fingerprint == corridor().fingerprint
    assert task.fingerprint == corridor(name="other").fingerprint
    for changed in (corridor(gamma=0.8), corridor(tau=0.2), corridor(start=1), corridor(normaliser="max")):
        assert changed.fingerprint != task.fingerprint


def test_move_cost_needs_movements():
    with pytest.raises(fidm.TaskError, match="no movements"):
        corridor().with_settings(move_cost=-1.0)
    cheaper = fidm.load_task("grocery").with_settings(move_cost=-0.01)
    assert set(cheaper.reward[cheaper.is_move]) == {-0.01}


class Countdown:
    """A task without an end of its states."""

    def start(self):
        return 0

    def actions(self, state):
        return ["more"]

    def step(self, state, action):
        return state + 1

    def reward(self, state, action):
        return 0.0


def test_endless_rules_are_stopped():
    from fidm.tasks.compile import compile_rules

    with pytest.raises(fidm.TaskError, match="more than 50 states"):
        compile_rules(Countdown(), gamma=0.9, tau=0.1, max_states=50)


def test_an_object_needs_all_four_methods_and_its_settings():
    with pytest.raises(fidm.TaskError, match="str is no"):
        fidm.compile_task("grocery", gamma=0.9, tau=0.1)
    with pytest.raises(fidm.TaskError, match="max_states"):
        fidm.compile_task(fidm.read_task("errands"), max_states=5)
    assert fidm.compile_task(fidm.read_task("errands"), name="town").name == "town"
    with pytest.raises(fidm.TaskError, match="gamma and tau"):
        fidm.compile_task(Countdown())


def test_very_large_rewards_are_solved_to_rounding():
    task = fidm.TaskModel.from_arrays([[1], [0]], [[1e8], [-3.0]], gamma=0.99, tau=0.1)
    assert fidm.solve(task).residual <= 1e-4


def test_a_task_that_is_over_at_once_is_worth_nothing():
    task = fidm.TaskModel.from_arrays([[-1]], [[0]], gamma=0.9, tau=0.1)
    values = fidm.solve(task)
    assert values.v.tolist() == [0.0]
    assert len(fidm.walk(task, values, 1.0, seed=0)) == 0
