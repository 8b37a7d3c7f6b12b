"""Mazes: bumps, arriving, several starts, one-way doors, prices of cells and diagonal moves, wherever they show."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import fidm
from fidm.classify.trajectory import NAMES, trajectory_statistics
from fidm.evidence.localization import anchors
from fidm.grounding.review.edits import legal_actions
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain, replay
from fidm.pages import map_scene
from fidm.plot.maps import draw_map, routes
from fidm.report.people import _cells
from fidm.simulate.talk import simulate_talks
from fidm.tasks.behaviour import look_ahead
from fidm.tasks.check import move_cost
from fidm.tasks.gym import TaskEnv
from fidm.tasks.stack import TaskSet, follow
from fidm.tasks.stack import replay as replay_actions
from fidm.types import Trace

HEAD = """
format = 1
name = "maze"
title = "A maze"
[values]
gamma = 0.95
tau = 0.01
[rewards]
move = -0.05
target = 1.0
repeated = -0.3
non_target = -0.3
"""

MAZE = (
    HEAD
    + """
[costs]
"~" = -0.2
[map]
one_way = { ">" = "E" }
drawing = '''
S.T..
.#~#.
S#.>G
'''
[sections.treasure]
symbol = "T"
[[phases]]
name = "all"
targets = ["treasure"]
[finish]
symbol = "G"
reach = "arrive"
reward = 0.5
[rules]
reach = "arrive"
bumps = "stay"
starts = "several"
"""
)

ROOM = (
    HEAD
    + """
[map]
drawing = '''
S..
.#.
..G
'''
[sections.goal]
symbol = "G"
reach = "arrive"
[[phases]]
name = "all"
targets = ["goal"]
"""
)

RULES = '\n[rules]\nbumps = "stay"\n'


def made(text: str = MAZE, *changes: tuple[str, str]) -> fidm.TaskModel:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return fidm.compile_task(fidm.parse_task(text, source="maze.toml"))


def pay(
    task: fidm.TaskModel, cell: tuple[int, int], action: str, done: tuple[str, ...] = ()
) -> tuple[float, str]:
    pair = task.pair(task.grid.state((cell[0] - 1, cell[1] - 1), done), action)
    return round(float(task.reward[pair]), 12), task.describe(int(task.successor[pair]))


def walked(task: fidm.TaskModel, start: int, names: str) -> tuple[np.ndarray, np.ndarray]:
    states, actions = [start], [task.actions.index(name) for name in names.split()]
    for action in actions:
        states.append(int(task.handover[task.successor[task.pair(states[-1], action)]]))
    return np.array(states, dtype=np.int32), np.array(actions, dtype=np.int32)


def trace(task: fidm.TaskModel, start: int, names: str, label: str = "P1") -> Trace:
    states, actions = walked(task, start, names)
    return Trace(task.name, states, actions, bool(task.terminal[states[-1]]), label)


# ---------------------------------------------------------------------- nothing else changed


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        ("errands", "433c94d392944b58589b588944b640d15213732b9d1cf26311b1f3e8bd1879b4"),
        ("grocery", "0f924500719dffc7457aac520710ce477fce33cf461cee83432adc40cde0842d"),
        ("grocery_small", "6fac2282755c2596e5d8005c29be72285c620348bf8e5c6bdcec634217268939"),
    ],
)
def test_the_defaults_change_no_existing_task(name, fingerprint):
    task = fidm.load_task(name)
    assert task.fingerprint == fingerprint
    assert (task.starts, task.move_extra) == ((task.start,), None)


# ---------------------------------------------------------------------- what it pays and where it leads


def test_a_bump_stays_and_pays_what_a_move_does():
    task = made()
    assert pay(task, (1, 1), "N") == (-0.05, "row 1, column 1, phase all, completed: nothing yet")
    assert pay(task.with_settings(move_cost=-0.09), (1, 1), "N")[0] == -0.09
    assert all(set("NSEW") <= set(task.legal(state)) for state in range(task.grid.end))


def test_a_bump_with_a_price_of_its_own_keeps_it():
    task = made(MAZE, ("[costs]", "bump = -0.5\n[costs]")).with_settings(move_cost=-0.09)
    assert pay(task, (1, 1), "N")[0] == -0.5
    assert pay(task, (1, 1), "S")[0] == -0.09


def test_prices_are_those_of_entering_and_are_no_plain_moves():
    task = made().with_settings(move_cost=-0.09)
    assert pay(task, (3, 3), "N")[0] == -0.2
    assert pay(task, (2, 3), "S")[0] == -0.09
    assert pay(task, (2, 3), "E")[0] == -0.09, "a bump beside mud steps on nothing"
    assert move_cost(task) == -0.09
    assert task.is_move.all()


def test_arriving_takes_a_target_once_and_a_completed_one_is_floor():
    task = made()
    assert pay(task, (1, 2), "E") == (0.95, "row 1, column 3, phase all, completed: treasure")
    assert pay(task, (1, 2), "E", ("treasure",)) == (-0.05, "row 1, column 3, phase all, completed: treasure")
    assert pay(task, (1, 3), "N", ("treasure",))[0] == -0.05
    assert not [name for name in task.actions if "treasure" in name]
    assert task.with_settings(move_cost=-0.5).reward[task.goal == 0].tolist() == [0.5, 0.5, 0.5]


def test_arriving_at_the_goal_ends_the_episode():
    task = made()
    assert task.goals == ("treasure", "ARRIVE")
    assert task.actions == ("N", "S", "E", "W")
    assert pay(task, (2, 5), "S") == (0.45, "the end of the task")
    assert (
        made(MAZE, ('reach = "arrive"\nreward = 0.5', 'reach = "arrive"\naction = "home"')).goals[-1]
        == "home"
    )


def test_one_way_doors_are_walked_through_in_their_direction_only():
    task = made()
    assert pay(task, (3, 3), "E") == (-0.05, "row 3, column 4, phase all, completed: nothing yet")
    assert "row 3, column 4" in pay(task, (3, 4), "W")[1]
    assert "row 3, column 4" in pay(task, (3, 4), "N")[1]
    assert pay(task, (3, 4), "E")[1] == "the end of the task"
    assert made(MAZE, ('bumps = "stay"\n', "")).legal(task.grid.state((2, 3))) == ("E",)


def test_diagonal_moves_cut_corners_only_where_they_may():
    plain, free, careful = (
        made(ROOM, ("[sections", f'[rules]\ndiagonal = "{rule}"\n[sections'))
        for rule in ("none", "free", "no_corner_cutting")
    )
    assert plain.actions == ("N", "S", "E", "W")
    assert free.actions == (*plain.actions, "NE", "SW", "SE", "NW")
    assert free.legal(free.grid.state((0, 1))) == ("E", "W", "SW", "SE")
    assert careful.legal(careful.grid.state((0, 1))) == ("E", "W")
    assert fidm.check_task(free, vary=False).fewest_actions == 3
    assert fidm.check_task(careful, vary=False).fewest_actions == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([('starts = "several"', "")], ["map.start (line 16): is 'S', which is on the map 2 times", 'Set rules.starts = "several"']),
        ([('bumps = "stay"', ""), ("[costs]", "bump = -1\n[costs]")], ["rewards.bump (line 14): is set, but bumps are not legal"]),
        ([('"~" = -0.2', '"~" = -0.2\n"." = -1')], ["costs.. (line 16): is the symbol of the floor"]),
        ([('"~" = -0.2', '"~" = -0.2\n"#" = -1')], ["costs.# (line 16): is the symbol of cells nobody can stand on"]),
        ([('"~" = -0.2', '"~" = -0.2\n"," = -1')], ["costs., (line 16): is ',', which is not on the map"]),
        ([('"~" = -0.2', '"~" = "dear"')], ["costs.~ (line 15): should be a valid number, not 'dear'"]),
        ([('"~" = -0.2', '"~~" = -0.2')], ["costs.~~ (line 15): is '~~'; a symbol is one printable character"]),
        ([('">" = "E"', '">" = "east"')], ["map.one_way.> (line 17)", "'N', 'E', 'S' or 'W', not 'east'"]),
        ([('">" = "E"', '"." = "E"')], ["map.floor and map.one_way..", "both use the symbol '.'"]),
        ([("S.T..", "S.T.G"), ("S#.>G", "S#.>#")], ["map.drawing, row 3 (line 21): has '>' at column 4, a cell that can be walked onto and never left"]),
        ([("[rules]", '[rules]\ndiagonal = "always"')], ["rules.diagonal (line 33): should be 'none', 'free' or 'no_corner_cutting'"]),
        ([('reach = "arrive"\nreward = 0.5', "reward = 0.5")], ["finish.action (line 28): is missing"]),
    ],
)  # fmt: skip
def test_each_mistake_is_named(changes, words):
    text = MAZE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    with pytest.raises(fidm.TaskError) as caught:
        fidm.parse_task(text, source="maze.toml")
    for word in words:
        assert word in str(caught.value), str(caught.value)


# ---------------------------------------------------------------------- the check


def test_where_bumps_are_a_trap_their_price_is_named_as_a_repair():
    trap = made(MAZE, ("tau = 0.01", "tau = 0.05"), ("S#.>G", "..#>G"), ("reward = 0.5", "reward = 0.05"))
    check = fidm.check_task(trap, vary=False)
    assert not check.usable
    repairs = check.findings[-1].says
    assert "bump = -0.25" in repairs
    dearer = made(
        MAZE,
        ("tau = 0.01", "tau = 0.05"),
        ("S#.>G", "..#>G"),
        ("reward = 0.5", "reward = 0.05"),
        ("[costs]", "bump = -0.25\n[costs]"),
    )
    assert fidm.check_task(dearer, vary=False).usable


def test_the_check_speaks_of_all_starts():
    check = fidm.check_task(made())
    assert check.usable
    assert check.fewest_actions == 7  # six and eight
    assert [finding.code for finding in check.findings][-1] == "several_starts"
    assert "begin in 2 places" in check.summary()
    cut = fidm.check_task(
        made(MAZE, ("S#.>G", "S#.>G\n#####\n###S."), ("starts", 'value_flow = "chained"\nstarts')),
        vary=False,
    )
    assert not cut.usable
    assert cut.findings[0].code == "unreachable"


def test_lengths_are_means_over_the_starts():
    room = made(ROOM, ("S..\n.#.", "S..\n.#S"), ("[sections", '[rules]\nstarts = "several"\n[sections'))
    check = fidm.check_task(room, vary=False)
    assert (check.fewest_actions, check.usable) == (3, True), "four and one actions, the mean rounded up"
    assert check.best_actions == pytest.approx(2.5)
    assert look_ahead(room, np.full(room.n_pairs, 0.5), max_steps=1).visits[list(room.starts)].tolist() == [
        0.5,
        0.5,
    ]


# ---------------------------------------------------------------------- people


def test_walks_begin_in_any_start_and_are_accepted():
    task = made()
    values = fidm.solve(task)
    walks = [fidm.walk(task, values, 30.0, seed=seed, label=f"P{seed}") for seed in range(20)]
    assert {int(one.state[0]) for one in walks} == set(task.starts)
    cohort = fidm.Cohort.from_traces(walks)
    assert not follow(TaskSet.of(task), cohort).fault.any()
    for agent in ("model", "walker"):
        one = made(
            MAZE,
            ('one_way = { ">" = "E" }\n', ""),
            ("S#.>G", "S#..G"),
            ('reach = "arrive"\nreward', 'action = "END"\nreward'),
            ('reach = "arrive"\nbumps', 'reach = "on"\nbumps'),
        )
        people = fidm.simulate_cohort(one, 30, seed=1, agent=agent, wrong_moves=0.1)
        assert {int(state) for state in people.state[people.step_offsets[:-1]]} == set(one.starts)
        assert not follow(TaskSet.of(one), people).fault.any()


def test_walkers_refuse_what_they_do_not_know():
    with pytest.raises(fidm.TaskError, match="one-way doors and places that are used by arriving"):
        fidm.simulate_cohort(made(), 2, seed=1, agent="walker")


def test_actions_without_states_begin_where_they_fit():
    task = made(MAZE, ('bumps = "stay"\n', ""))
    code = {name: i for i, name in enumerate(task.actions)}
    actions = np.array([code[name] for name in ("E", "E", "S", "N", "N", "E")])
    state, end = replay_actions(task, actions, np.array([0, 3, 6]))
    assert state[[0, 3]].tolist() == list(task.starts)
    assert task.describe(int(end[0])).startswith("row 2, column 3")
    with pytest.raises(fidm.DataError, match="the actions of 1 episodes are legal from more than one"):
        replay_actions(made(), actions, np.array([0, 6]))


# ---------------------------------------------------------------------- words


def test_grounding_refuses_what_words_cannot_say():
    with pytest.raises(fidm.errors.GroundingError, match="has 2 starts"):
        Terrain(made())
    slanted = made(ROOM, ("[sections", '[rules]\ndiagonal = "free"\n[sections'))
    with pytest.raises(fidm.errors.GroundingError, match="diagonal moves"):
        Terrain(slanted)
    with pytest.raises(fidm.DataError, match="no words for them"):
        simulate_talks(made(ROOM, ("[sections", f"{RULES}[sections")), 1, seed=1, language="en")


def test_words_lead_through_doors_take_by_arriving_and_never_bump():
    task = made(MAZE, ("S#.>G", ".#.>G"), ('starts = "several"', ""))
    terrain = Terrain(task)
    assert legal_actions(terrain, terrain.start()) == ("S", "E")

    def said(text: str) -> tuple[str, list[str]]:
        done = replay(parse_program(text, terrain.places), terrain, terrain.start())
        return " ".join(task.actions[a] for a in done.actions), [issue.code for issue in done.issues]

    assert said("BUY treasure; PAY") == ("E E E E S S", ["filled_in", "filled_in"])
    assert said("GOTO treasure; MOVE up 1") == ("E E", ["blocked"])
    back = replay(parse_program("GOTO START", terrain.places), terrain, terrain.position(3, 4))
    assert not back.actions, "a door is in the way, and behind it the task ends"


# ---------------------------------------------------------------------- evidence, statistics, pictures


def test_taking_a_target_by_arriving_passes_nothing_by():
    task = made()
    one = trace(task, task.start, "E N W E E S S E E")
    table = anchors(task, fidm.Cohort.from_traces([one]))
    assert table["completes"].to_list() == [False] * 4 + [True] + [False] * 3 + [True]
    assert table["bypass"].to_list() == [False, False, True] + [False] * 6
    assert table["route_divergence"].to_list() == [False, False, True] + [False] * 6
    assert table["distance_after"].to_list() == [1, 1, 2, 1, 0, 3, 2, 1, 0]


def test_distances_go_through_doors_in_their_direction():
    task = made(
        MAZE,
        ("S.T..\n.#~#.", "STG..\n.#^#."),
        ('">" = "E"', '">" = "E", "^" = "N"'),
        ('"~" = -0.2', ""),
        ("S#.>G", "S#.>."),
    )
    one = trace(task, task.start, "E E")
    assert anchors(task, fidm.Cohort.from_traces([one]))["distance_before"].to_list() == [1, 1]
    far = trace(task, task.start, "S N E E")
    assert anchors(task, fidm.Cohort.from_traces([far]))["distance_before"].to_list() == [1, 2, 1, 1]


def test_bumps_and_diagonal_moves_are_movements():
    task = made(ROOM, ("[sections", f'{RULES}diagonal = "free"\n[sections'))
    one = trace(task, task.start, "N E SE S")
    row = dict(
        zip(NAMES, trajectory_statistics(task, fidm.Cohort.from_traces([one]))[0].tolist(), strict=True)
    )
    assert {name: row[name] for name in NAMES[:9]} == {
        "n_actions": 4, "n_movements": 4, "n_buys": 0, "has_pay": 0, "has_out": 0,
        "n_north": 1, "n_south": 1, "n_east": 1, "n_west": 0,
    }  # fmt: skip
    assert (row["n_cells"], row["n_revisits"], row["is_consistent"]) == (4, 1, 1)


def test_reports_know_where_the_last_step_led():
    task = made()
    cohort = fidm.Cohort.from_traces([trace(task, task.start, "N E E S S E E")])
    cells = _cells(cohort, [task])
    goal = [i for i, at in enumerate(map_scene(task)["cells"]) if at == [2, 4]]
    assert cells["next_cell"][-1] == goal[0]
    assert cells["cell"][0] == cells["next_cell"][0]


def test_maps_show_doors_prices_bumps_and_every_start():
    task = made()
    scene = map_scene(task)
    assert scene["doors"] == [(2, 3, 0, 1)]
    assert scene["prices"] == [(1, 2, 1.0)]
    assert [(one["row"], one["column"]) for one in scene["labels"] if one["name"] == "START"] == [
        (0, 0),
        (2, 0),
    ]
    plain = map_scene(fidm.load_task("errands"))
    assert not {"doors", "prices"} & plain.keys()
    ax = draw_map(task)
    assert sum(text.get_text() == "start" for text in ax.texts) == 2
    image = ax.images[0].get_array()
    assert tuple(image[1, 2]) != tuple(image[0, 1])
    ax = routes(task, [trace(task, task.start, "N E E S S E E")])
    ways, bars = [one for one in ax.collections if isinstance(one, LineCollection)][-2:]
    assert ways.get_segments()[0][-1].round().tolist() == [4, 2], "the step that ends the task is drawn"
    assert len(bars.get_segments()) == 1
    assert np.mean(bars.get_segments()[0], axis=0).tolist() == [0.0, -0.44]
    plt.close("all")


def test_the_gym_environment_begins_in_any_start():
    env = TaskEnv(made(), render_mode="ansi")
    assert {int(env.reset(seed=seed)[0]) for seed in range(8)} == set(env.task.starts)


def test_simulated_dialogs_are_grounded_on_mazes():
    changes = (("S#.>G", ".#.>G"), ('starts = "several"', ""), ('bumps = "stay"\n', ""))
    task = made(MAZE, *changes)
    talks = simulate_talks(task, 6, seed=1, language="en")
    grounded = fidm.ground(talks.transcripts, task)
    assert not follow(TaskSet.of(task), grounded.cohort).fault.any()
    assert (grounded.cohort.end_state == task.grid.end).all()
