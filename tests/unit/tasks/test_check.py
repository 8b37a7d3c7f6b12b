"""The task check: it catches the wander trap, says what to change, and what it says is true."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fidm

OPEN_FLOOR = """
####################
#V................M#
#..................#
#..................#
#P.................#
#..................#
#S................B#
####E#####G#########
"""


def with_map(drawing: str, **values) -> fidm.TaskModel:
    spec = fidm.read_task("grocery_small")
    shelves = {n: s for n, s in spec.sections.items() if s.symbol in drawing}
    update = {
        "map": spec.map.model_copy(update={"drawing": drawing}),
        "values": spec.values.model_copy(update=values),
        "sections": shelves,
        "exit": None,
    }
    return fidm.compile_task(spec.model_copy(update=update))


def codes(check, level=None):
    return {finding.code for finding in check.findings if level in (None, finding.level)}


def test_a_map_without_aisles_is_caught():
    check = fidm.check_task(with_map(OPEN_FLOOR), vary=False)
    assert not check.usable
    assert {"never_finishes", "wander_trap"} <= codes(check, "problem")
    (pay,) = [goal for goal in check.goals if goal.goal == "PAY"]
    assert pay.typical < 0


def test_the_same_map_with_log_mean_exp_passes():
    check = fidm.check_task(with_map(OPEN_FLOOR, normaliser="mean"), vary=False)
    assert check.usable
    assert check.best_actions == check.fewest_actions
    assert all(goal.worst > 0 for goal in check.goals)


def test_every_repair_it_names_is_one():
    task = with_map(OPEN_FLOOR)
    (repair,) = [f for f in fidm.check_task(task, vary=False).findings if f.code == "repairs"]
    named = repair.says.removeprefix("Each of these alone repairs it: ").rstrip(".").split("; ")
    assert 'normaliser = "mean"' in named
    for text in named:
        key, value = text.split(" = ")
        key = {"move": "move_cost"}.get(key, key)
        changed = task.with_settings(**{key: json.loads(value)})
        assert fidm.check_task(changed, vary=False).usable, text


@pytest.mark.parametrize(
    ("rules", "finish"),
    [({"reach": "anywhere"}, {}), ({"value_flow": "ends"}, {}), ({}, {"ends": False})],
    ids=["buy anywhere", "phases end", "pay again and again"],
)
def test_readings_known_to_fail_are_caught(rules, finish):
    spec = fidm.read_task("grocery")
    update = {
        "rules": spec.rules.model_copy(update=rules),
        "finish": spec.finish.model_copy(update=finish),
    }
    check = fidm.check_task(fidm.compile_task(spec.model_copy(update=update)), vary=False)
    assert not check.usable


def test_the_papers_grid_is_looked_at():
    check = fidm.check_task(fidm.load_task("grocery"))
    assert {row.tau for row in check.settings} == {0.03, 0.05, 0.08, 0.12}
    assert {row.move_cost for row in check.settings} == {-0.01, -0.02, -0.05}
    own = [row for row in check.settings if (row.tau, row.move_cost) == (0.05, -0.02)]
    assert own[0].usable
    assert any(not row.usable for row in check.settings)
    assert "sensitive" in codes(check)


def test_everything_in_it_can_be_written_as_json():
    text = json.dumps(fidm.check_task(fidm.load_task("errands")).to_dict(), allow_nan=False)
    assert json.loads(text)["usable"] is True


def test_progress_is_reported_to_the_end():
    calls = []
    fidm.check_task(fidm.load_task("errands"), on_progress=lambda done, of: calls.append((done, of)))
    assert calls[0] == (1, 13)
    assert calls[-1] == (13, 13)


def test_information_is_the_curvature_of_the_likelihood():
    """The Fisher information of one action, against a second difference of its expected log-likelihood."""
    from fidm.tasks.behaviour import information

    task = fidm.load_task("grocery_small")
    values = fidm.solve(task)
    state, eta, h = task.start, 15.0, 1e-3
    legal = np.isfinite(values.q[state])

    def log_policy(x):
        q = x * values.q[state, legal]
        return q - np.log(np.exp(q - q.max()).sum()) - q.max()

    p = np.exp(log_policy(eta))
    curvature = p @ (2 * log_policy(eta) - log_policy(eta + h) - log_policy(eta - h)) / h**2
    assert information(task, values, eta)[state] == pytest.approx(curvature, rel=1e-4)


def test_expected_lengths_agree_with_walks():
    task = fidm.load_task("grocery_small")
    values = fidm.solve(task)
    check = fidm.check_task(task, vary=False)
    (row,) = [row for row in check.sensitivities if row.sensitivity == 20.0]
    rng = np.random.default_rng(20261115)
    lengths = [len(fidm.walk(task, values, 20.0, seed=rng)) for _ in range(400)]
    band = 4 * np.std(lengths) / np.sqrt(len(lengths))
    assert abs(np.mean(lengths) - row.actions) < band


def test_flat_values_tell_nothing_and_an_unreachable_end_is_said():
    flat = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.1)
    assert "no_information" in codes(fidm.check_task(flat), "problem")
    cut = fidm.TaskModel.from_arrays([[0, 0], [-1, -1]], [[0, 1], [0, 0]], gamma=0.9, tau=0.1)
    assert "unreachable" in codes(fidm.check_task(cut), "problem")


def test_a_task_without_an_end_can_be_used():
    endless = fidm.TaskModel.from_arrays([[1, 0], [0, 1]], [[0, 1], [0.5, 0]], gamma=0.9, tau=0.1)
    check = fidm.check_task(endless)
    assert "endless" in codes(check, "note")
    assert check.fewest_actions is None


def test_cells_nobody_can_reach_are_mentioned():
    drawing = OPEN_FLOOR.replace("####E#####G#########", "####E#####G#######.#").replace("B#", "B#")
    drawing += "##################.#"
    check = fidm.check_task(with_map(drawing, normaliser="mean"), vary=False)
    assert "cut_off" in codes(check, "warning")


def test_stochastic_and_finite_tasks_can_be_checked():
    task = fidm.TaskModel.from_pairs(
        [0, 0], [0, 1], [0.0, 1.0], [[0.5, 0.5], [0.9, 0.1]], gamma=1.0, tau=0.1, horizon=3
    )
    check = fidm.check_task(task)
    assert check.sitting == 3
    assert check.best_finishes


def test_an_agent_that_slips_is_not_said_to_wander():
    """An 8 × 8 floor on which half of the steps go astray; the luckiest way is no yardstick here."""
    n = 8
    rows, columns, pay = [], [], []
    chances = np.zeros((4 * (n * n - 1), n * n))
    ways = [(-1, 0), (1, 0), (0, 1), (0, -1)]
    for cell in range(n * n - 1):
        for action in range(4):
            for other, (down, right) in enumerate(ways):
                i, j = np.clip([cell // n + down, cell % n + right], 0, n - 1)
                chances[len(pay), i * n + j] += 0.5 if other == action else 0.5 / 3
            rows.append(cell)
            columns.append(action)
            pay.append(-0.02)
    task = fidm.TaskModel.from_pairs(rows, columns, pay, chances, gamma=0.98, tau=0.005)
    check = fidm.check_task(task, vary=False)
    assert check.usable, check.summary()
    assert 14 < check.best_actions < 100
    assert "detour" not in codes(check)


@pytest.mark.parametrize(
    ("settings", "helping"),
    [
        ({"gamma": 0.9, "tau": 0.12, "move_cost": -0.01}, {"tau", "move"}),
        ({"gamma": 0.8}, {"gamma"}),
        ({"gamma": 0.7, "tau": 0.02, "move_cost": -0.03}, {"move", "gamma"}),
    ],
)
def test_the_advice_on_a_detour_names_what_helps_and_nothing_else(settings, helping):
    task = fidm.load_task("grocery_small").with_settings(**settings)
    (advice,) = [one.advice for one in fidm.check_task(task, vary=False).findings if one.code == "detour"]
    named = advice.removeprefix("Each of these alone straightens its way: ").removesuffix(".").split("; ")
    changes = [(name, float(value)) for name, value in (one.split(" = ") for one in named)]
    assert {name for name, _ in changes} == helping
    for name, value in changes:
        changed = task.with_settings(**{"move_cost" if name == "move" else name: value})
        assert "detour" not in codes(fidm.check_task(changed, vary=False))


def test_a_horizon_that_is_too_short_is_caught():
    spec = fidm.read_task("grocery_small")
    check = fidm.check_task(fidm.compile_task(spec, horizon=5), vary=False)
    assert not check.usable
    assert not check.best_finishes
    assert "goal_unreachable" in codes(check, "problem")
    assert [goal.goal for goal in check.goals if goal.reachable] != [goal.goal for goal in check.goals]


def test_a_long_corridor_is_not_cut_short():
    n = 1_200
    next_state = np.stack([np.arange(n) - 1, np.arange(n) + 1], axis=1)
    next_state[-1] = -1
    reward = np.full((n, 2), -0.001)
    reward[-2, 1] = 1.0
    task = fidm.TaskModel.from_arrays(next_state, reward, gamma=0.9999, tau=0.01, normaliser="max")
    check = fidm.check_task(task, vary=False)
    assert check.usable, check.summary()
    assert check.best_actions == check.fewest_actions == n - 1


@pytest.mark.parametrize("drawing", ["S" + "." * 60 + "V", "V" + "." * 60 + "S"])
def test_the_verdict_does_not_depend_on_which_way_the_map_is_turned(drawing):
    spec = fidm.read_task("grocery_small")
    update = {
        "map": spec.map.model_copy(update={"drawing": drawing}),
        "values": spec.values.model_copy(update={"gamma": 0.3, "normaliser": "mean"}),
        "sections": {"vegetables": spec.sections["vegetables"]},
        "phases": (spec.phases[0].model_copy(update={"targets": ("vegetables",)}),),
        "finish": None,
        "exit": None,
    }
    assert fidm.check_task(fidm.compile_task(spec.model_copy(update=update)), vary=False).best_finishes


def test_leaving_without_the_goals_is_a_problem():
    spec = fidm.read_task("grocery_small")
    update = {
        "rewards": spec.rewards.model_copy(update={"move": -1.0}),
        "exit": spec.exit.model_copy(update={"in_likelihood": True}),
    }
    check = fidm.check_task(fidm.compile_task(spec.model_copy(update=update)), vary=False)
    assert "left_undone" in codes(check, "problem")


def test_tasks_with_nothing_to_do_are_told_so():
    task = fidm.TaskModel.from_arrays(np.empty((3, 0)), np.empty((3, 0)), gamma=0.9, tau=0.1)
    assert not fidm.check_task(task).usable
    with pytest.raises(fidm.TaskError, match="not str"):
        fidm.check_task("grocery")


def test_a_task_about_when_to_stop_is_not_called_a_trap():
    """Foraging: staying pays less each time, leaving ends; nobody ought to leave at once."""
    n = 6
    next_state = [[i + 1 if i < n - 2 else -1, n - 1] for i in range(n - 1)] + [[-1, -1]]
    reward = [[0.5 - 0.1 * i, 0.25] for i in range(n)]
    for normaliser in ("sum", "mean", "max"):
        task = fidm.TaskModel.from_arrays(next_state, reward, gamma=0.95, tau=0.1, normaliser=normaliser)
        check = fidm.check_task(task)
        assert check.usable, check.summary()
        assert all(setting.usable for setting in check.settings)
        assert "detour" not in codes(check)


def test_a_maze_from_tables_whose_best_agent_wanders_is_caught():
    n = 11
    cell = np.arange(n * n).reshape(n, n)
    next_state = np.full((n * n + 1, 4), -1)
    for i, (a, b) in enumerate([(cell[1:], cell[:-1]), (cell[:-1], cell[1:])]):
        next_state[a, i] = b
    for i, (a, b) in enumerate([(cell[:, 1:], cell[:, :-1]), (cell[:, :-1], cell[:, 1:])], start=2):
        next_state[a, i] = b
    reward = np.full(next_state.shape, -0.02)
    next_state[cell[-1, -1]] = [n * n, -1, -1, -1]
    reward[cell[-1, -1]] = 1.0
    wandering = fidm.TaskModel.from_arrays(next_state, reward, gamma=0.98, tau=0.05)
    check = fidm.check_task(wandering, vary=False)
    assert "never_finishes" in codes(check, "problem")
    assert fidm.check_task(wandering.with_settings(tau=0.01), vary=False).usable


def test_an_agent_that_stands_still_is_told_so_and_repaired():
    spec = fidm.read_task("errands")
    rewards = spec.rewards.model_copy(update={"repeated": 0.05})
    task = fidm.compile_task(spec.model_copy(update={"rewards": rewards}))
    check = fidm.check_task(task, vary=False)
    assert not check.usable
    (stuck,) = [f for f in check.findings if f.code == "never_finishes"]
    assert "It does VISIT" in stuck.says
    assert "for ever" in stuck.says
    (repair,) = [f for f in check.findings if f.code == "repairs"]
    assert "repeated = -0.15 with non_target = -0.15" in repair.says


def test_paid_steps_are_mentioned():
    check = fidm.check_task(fidm.load_task("errands").with_settings(move_cost=0.01), vary=False)
    assert "paid_steps" in codes(check, "warning")


def test_findings_come_gravest_first_and_read_as_a_summary():
    check = fidm.check_task(with_map(OPEN_FLOOR), vary=False)
    levels = [finding.level for finding in check.findings]
    assert levels == sorted(levels, key=["problem", "warning", "note"].index)
    assert check.summary().startswith("grocery_small: not usable\nproblem: ")


def test_shares_are_shares():
    for row in fidm.check_task(fidm.load_task("grocery_small"), vary=False).sensitivities:
        assert 0 <= row.finished <= 1
