"""Hidden cells: seen from beside or by entering, in values, checks, traces, figures and refusals."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

import fidm
from fidm.classify.trajectory import NAMES, trajectory_statistics
from fidm.evidence.localization import anchors
from fidm.grounding.route.replay import Terrain
from fidm.pages import map_scene
from fidm.plot.maps import draw_map, routes, value_field
from fidm.present.task import map_text
from fidm.report.people import _cells
from fidm.simulate.walker import Floor
from fidm.tasks.behaviour import worth_of_cells
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Trace

TEXT = """
format = 1
name = "hidden"
title = "Ways that may be blocked"
[values]
gamma = 0.95
tau = 0.01
[rewards]
move = -0.05
target = 1.0
repeated = -0.1
non_target = -0.1
[hidden]
"?" = { open = 0.7 }
[map]
drawing = '''
S..?.G
.####.
......
'''
[sections.goal]
symbol = "G"
reach = "arrive"
[[phases]]
name = "all"
targets = ["goal"]
[rules]
phase_change = "goals"
"""

TRIED = ('phase_change = "goals"', 'phase_change = "goals"\nreveal = "on_entering"')
BUMPS = ('phase_change = "goals"', 'phase_change = "goals"\nbumps = "stay"')
TRANSCRIPT = ('phase_change = "goals"', 'phase_change = "transcript"')


def text(*changes: tuple[str, str]) -> str:
    found = TEXT
    for old, new in changes:
        assert found.count(old) == 1, old
        found = found.replace(old, new)
    return found


def made(*changes: tuple[str, str]) -> fidm.TaskModel:
    return fidm.compile_task(fidm.parse_task(text(*changes), source="hidden.toml"))


def leads(task: fidm.TaskModel, state: int, action: str) -> dict[int, float]:
    pair = task.pair(state, action)
    links = slice(task.successor_offsets[pair], task.successor_offsets[pair + 1])
    return dict(zip(task.successor[links].tolist(), task.probability[links].tolist(), strict=True))


def at(task: fidm.TaskModel, row: int, column: int, known: str = "?") -> int:
    return task.grid.state((row - 1, column - 1), known=known)


def walk_of(task: fidm.TaskModel, *steps: tuple[int, str]) -> Trace:
    states = [state for state, _ in steps]
    actions = [task.actions.index(action) for _, action in steps[:-1]]
    return Trace("hidden", np.array(states, np.int32), np.array(actions, np.int32), False, "P1")


# ---------------------------------------------------------------------- what is seen when


def test_arriving_beside_a_cell_shows_it():
    task = made()
    assert leads(task, at(task, 1, 2), "E") == pytest.approx(
        {at(task, 1, 3, "."): 0.7, at(task, 1, 3, "#"): 0.3}
    )
    assert task.legal(at(task, 1, 3, ".")) == ("E", "W")
    assert task.legal(at(task, 1, 3, "#")) == ("W",)
    assert task.legal(at(task, 1, 3)) == ()  # nobody stands beside it without seeing it
    assert made(BUMPS).legal(at(task, 1, 3, "#")) == ("N", "S", "E", "W")


def test_trying_to_enter_a_cell_shows_it_and_costs_a_step():
    task = made(TRIED)
    assert leads(task, at(task, 1, 3), "E") == pytest.approx(
        {at(task, 1, 4, "."): 0.7, at(task, 1, 3, "#"): 0.3}
    )
    assert task.reward[task.pair(at(task, 1, 3), "E")] == pytest.approx(-0.05)
    assert task.legal(at(task, 1, 3, "#")) == ("W",)
    assert task.legal(at(task, 1, 4)) == ()


def test_entering_pays_once():
    pays = ("{ open = 0.7 }", "{ open = 0.7, reward = 0.5 }")
    task = made(pays)
    into = task.pair(at(task, 1, 3, "."), "E")
    assert task.reward[into] == pytest.approx(0.45)
    assert task.successor[task.successor_offsets[into]] == at(task, 1, 4, "+")
    assert task.reward[task.pair(at(task, 1, 3, "+"), "E")] == pytest.approx(-0.05)
    tried = made(pays, TRIED)
    assert tried.reward[tried.pair(at(tried, 1, 3), "E")] == pytest.approx(-0.05 + 0.7 * 0.5)  # as expected
    assert tried.reward[tried.pair(at(tried, 1, 3, "."), "E")] == pytest.approx(-0.05)


def test_cells_seen_together_are_independent():
    task = made(("S..?.G\n.####.", "S..?.G\n.#?##."), ('"?" = { open = 0.7 }', '"?" = { open = 0.7 }'))
    found = leads(task, at(task, 1, 2, "??"), "E")
    wanted = {"..": 0.49, ".#": 0.21, "#.": 0.21, "##": 0.09}
    assert found == pytest.approx({at(task, 1, 3, known): chance for known, chance in wanted.items()})


def test_the_best_agent_looks_where_looking_pays():
    for open_, best in ((0.9, "E"), (0.1, "S")):
        task = made(("0.7", str(open_)))
        assert task.actions[int(fidm.solve(task).q[task.start].argmax())] == best


def test_states_say_what_is_known():
    task = made()
    assert task.describe(at(task, 1, 3, "#")).endswith("completed: nothing yet, hidden cells: (1, 4) a wall")
    assert task.grid.known(at(task, 1, 3, ".")) == ((0, 3, "."),)
    for wrong in ("", "??", "+", "x"):
        with pytest.raises(fidm.TaskError, match="one letter for each"):
            at(task, 1, 3, wrong)
    with pytest.raises(fidm.TaskError, match="no hidden cells"):
        fidm.load_task("grocery").grid.state((1, 1), known="?")


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([TRANSCRIPT], "does not go with \\[hidden\\]"),
        ([(BUMPS[0], BUMPS[0] + '\ndiagonal = "free"')], "does not go with \\[hidden\\]"),
        ([("open = 0.7", "open = 1.0")], "less than 1"),
        ([("open = 0.7", "opens = 0.7")], "Did you mean 'open'"),
        ([("S..?.G", "S....G")], "not on the map"),
        ([("S..?.G", ".S?..G")], "row 1.*directly beside a hidden cell"),
        ([('"?" = {', '"G" = {'), ("S..?.G", "S..#.G")], "both use the symbol 'G'"),
    ],
)
def test_problems_of_the_file(changes, says):
    with pytest.raises(fidm.TaskError, match=says):
        fidm.parse_task(text(*changes), source="hidden.toml")


def test_too_many_and_shut_in():
    many = "S." + "?" * 14 + ".G"
    with pytest.raises(
        fidm.TaskError, match=r"14 hidden cells make 4,782,969 .* states; 5,000,000 can be used"
    ):
        made(("S..?.G\n.####.\n......", many))
    with pytest.raises(fidm.TaskError, match=r"nothing would be legal in row 1, column 1.*every way on"):
        made(("S..?.G\n.####.\n......", "S?.G"), TRIED)


def test_a_task_that_may_have_no_end_is_found_out():
    check = fidm.check_task(made(("......", "..#...")), vary=False)
    assert not check.usable
    assert "(1, 4) a wall" in next(one.says for one in check.findings if one.code == "shut_off")


def test_targets_that_may_be_barred_can_be_left():
    changes = [
        ('[sections.goal]\nsymbol = "G"', '[sections.goal]\nsymbol = "T"'),
        ("S..?.G\n.####.\n......", "S..G\n.##.\n....\n#?##\n#T##"),
        ("[rules]", '[finish]\nsymbol = "G"\naction = "LEAVE"\nreward = 0.5\n[rules]'),
    ]
    check = fidm.check_task(made(*changes), vary=False)
    assert check.usable, check.summary()
    assert not [one for one in check.findings if one.code == "left_undone"]
    poor = fidm.check_task(made(*changes, ("target = 1.0", "target = 0.1")), vary=False)
    assert [one for one in poor.findings if one.code in ("left_undone", "wander_trap")]


def test_what_cannot_carry_them_says_so():
    task = made()
    cohort = fidm.simulate_cohort(task, 3, seed=1)
    with pytest.raises(fidm.FidmError, match="hidden cells"):
        Terrain(task)
    with pytest.raises(fidm.FidmError, match="hidden cells"):
        Floor.of(task)
    with pytest.raises(fidm.FidmError, match="hidden cells"):
        anchors(task, cohort)
    steps = pl.DataFrame({"participant": ["P1"], "step": [1], "action": ["E"]})
    with pytest.raises(fidm.DataError, match=r"several outcomes.*Add the column"):
        fidm.make_cohort(steps=steps, tasks=task)


# ---------------------------------------------------------------------- people


@pytest.mark.parametrize("changes", [[], [TRIED], [BUMPS], [TRIED, BUMPS]])
def test_people_are_simulated_followed_fitted_and_counted(changes):
    task = made(*changes)
    values = fidm.solve(task)
    walks = [fidm.walk(task, values, 20.0, seed=seed, label=f"P{seed:02}") for seed in range(20)]
    cohort = fidm.Cohort.from_traces(walks)
    assert not follow(TaskSet.of(task), cohort).fault.any()
    profile = fidm.Model(task, channels=()).fit(cohort).profile(cohort)
    assert 5 < profile.wide["action_sensitivity"].median() < 60
    found = dict(zip(NAMES, trajectory_statistics(task, cohort).T, strict=True))
    assert found["is_consistent"].all()
    moved = [np.diff(walk.state[:-1] % task.grid.grid.n_cells) for walk in walks]
    stayed = sum(int((one == 0).sum()) for one in moved)
    assert found["n_revisits"].sum() >= stayed
    assert (stayed > 0) == bool(changes)
    cells = _cells(cohort, [task] * cohort.n_episodes)
    assert (cells["next_cell"] >= 0).all()


def test_a_step_must_lead_to_what_can_follow():
    task = made()
    walk = walk_of(task, (at(task, 1, 1), "E"), (at(task, 1, 2), "E"), (at(task, 1, 3, "#"), "W"), (-1, ""))
    for known, fault in (("#", 0), (".", 0), ("?", 3)):
        state = walk.state.copy()
        state[2] = at(task, 1, 3, known)
        cohort = fidm.Cohort.from_traces([Trace("hidden", state[:3], walk.action[:2], False, "P1")])
        assert follow(TaskSet.of(task), cohort).fault.tolist() == [0, fault]


def test_beliefs_about_hidden_cells_may_differ_but_not_their_places():
    task = made()
    walks = [fidm.walk(task, fidm.solve(task), 20.0, seed=seed, label=f"P{seed}") for seed in range(12)]
    cohort = fidm.Cohort.from_traces(walks)
    hopeful = fidm.Model(task, channels=(), believes=made(("0.7", "0.95"))).fit(cohort)
    assert hopeful.profile(cohort).wide["action_sensitivity"].min() > 0
    with pytest.raises(fidm.TaskError, match="differ in their states"):
        fidm.Model(task, channels=(), believes=made(("S..?.G", "S.?..G"), TRIED)).fit(cohort)


# ---------------------------------------------------------------------- figures and words


def test_figures_hatch_them_and_draw_what_was_blocked():
    task = made(TRIED)
    ax = draw_map(task)
    hatched = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert [patch.get_xy() for patch in hatched] == [(2.5, -0.5)]
    for known, cell, n_bars in (("#", 3, 1), (".", 4, 0)):
        tried = walk_of(task, (at(task, 1, 3), "E"), (at(task, 1, cell, known), ""))
        drawn = [one for one in routes(task, tried).collections if isinstance(one, LineCollection)]
        assert sum(len(one.get_segments()) for one in drawn if one.get_linewidth()[0] == 2.6) == n_bars
    plt.close("all")


def test_values_are_shown_where_somebody_can_be():
    task = made()
    values = fidm.solve(task)
    worth = worth_of_cells(task, values)
    assert np.isnan(worth).tolist() == [False] * 2 + [True] * 4 + [False] * 8  # row 1 from column 3 on
    assert np.isnan(worth[task.grid.hidden.cells]).all()
    value_field(task, values)
    assert "?" in map_text(task.grid, worth).plain
    assert task.grid.spec.ground_names == {"?": "hidden cell, open with probability 0.7"}
    assert map_scene(task)["hidden"] == [(0, 3)]
    plt.close("all")
