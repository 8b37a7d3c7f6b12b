"""Programs on the map: every instruction, what is stated and what inferred, and every issue.

Moves are written N, S, E, W, with ``?`` behind those the planner filled in.
"""

from __future__ import annotations

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.route.program import Instruction, parse_program
from fidm.grounding.route.replay import DOUBTFUL, HEADING_NAMES, MEANING, Position, Replay, Terrain, replay

TERRAIN = {name: Terrain(fidm.load_task(name)) for name in ("grocery", "grocery_small", "errands")}
BIG, SMALL, TOWN = (TERRAIN[name] for name in ("grocery", "grocery_small", "errands"))


def run(terrain: Terrain, where: Position, text: str, told: tuple[str, ...] = ()) -> Replay:
    return replay(parse_program(text, terrain.places), terrain, where, told=frozenset(told))


def shown(terrain: Terrain, done: Replay) -> str:
    names = (*terrain.task.actions, terrain.spec.exit.action if terrain.spec.exit else "")
    return " ".join(
        names[action].replace(f"{terrain.spec.verb} ", "$") + "?" * flag
        for action, flag in zip(done.actions, done.inferred, strict=True)
    )


def place(terrain: Terrain, state: int) -> tuple[int, int] | None:
    cell = terrain.cell(state)
    grid = terrain.grid.grid
    return None if cell < 0 else (int(grid.row[cell]) + 1, int(grid.column[cell]) + 1)


# task, row, column, heading, program; moves, issues, row and column afterwards, heading afterwards
CASES = {
    "measured": ("grocery", 12, 16, None, "MOVE left 1; MOVE up 3", "W N N N", "", (9, 15), "up"),
    "measured, small": ("grocery_small", 10, 8, None, "MOVE right 1; MOVE up 2", "E N N", "", (8, 9), "up"),
    "ahead": ("grocery", 9, 5, "up", "MOVE ahead 2", "N N", "", (7, 5), "up"),
    "ahead, small": ("grocery_small", 8, 9, "up", "MOVE ahead 2", "N N", "", (6, 9), "up"),
    "to the end": ("grocery", 9, 2, "up", "MOVE up end", "N N N N N N N", "", (2, 2), "up"),
    "to the end, small": (
        "grocery_small", 10, 8, None, "MOVE right 1; MOVE up end", "E N N N N N N N", "", (3, 9), "up"
    ),
    "to the end, nowhere": ("grocery", 9, 5, "up", "MOVE down end", "", "blocked", (9, 5), "down"),
    "to a place": ("grocery", 9, 5, "up", "MOVE up to vegetables", "N N N N", "", (5, 5), "up"),
    "to a place, small": ("grocery_small", 10, 9, None, "MOVE up to seasoning", "N N N N", "", (6, 9), "up"),
    "to a place, there already": ("grocery", 5, 5, "up", "MOVE up to vegetables", "", "", (5, 5), "up"),
    "to a place not in line": (
        "grocery", 9, 7, "up", "MOVE up to meat", "E? N? N? N? N?", "not_in_line", (5, 8), "up"
    ),
    "to a place not in line, small": (
        "grocery_small", 8, 5, "up", "MOVE up to seasoning", "N? N? E? E?", "not_in_line", (6, 7), "right"
    ),
    "blocked": ("grocery", 9, 5, "up", "MOVE left 9", "W W W", "blocked", (9, 2), "left"),
    "blocked at once": ("grocery", 9, 15, "up", "MOVE ahead 2", "", "blocked", (9, 15), "up"),
    "blocked, small": ("grocery_small", 8, 9, "up", "MOVE left 3", "W W", "blocked", (8, 7), "left"),
    "goes on after blocked": ("grocery", 9, 5, "up", "MOVE left 9; MOVE up 1", "W W W N", "blocked", (8, 2), "up"),
    "unmeasured before a turn": ("grocery", 9, 5, "up", "MOVE up; TURN right", "N N N N N N N", "", (2, 5), "right"),
    "unmeasured before a turn, small": (
        "grocery_small", 10, 9, None, "MOVE up; TURN left; MOVE ahead 1", "N N W", "", (8, 8), "left"
    ),
    "unmeasured before a turn that never opens": (
        "grocery", 11, 3, "down", "MOVE down; TURN right", "S", "guessed_distance", (12, 3), "left"
    ),
    "unmeasured before a turn, blocked": ("grocery", 9, 5, "up", "MOVE down; TURN left", "", "blocked", (9, 5), "right"),
    "unmeasured across": ("grocery", 9, 5, "up", "MOVE up; MOVE right 2", "N N N N N N N E E", "", (2, 7), "right"),
    "unmeasured across leaves the first opening": (
        "grocery", 9, 2, "right", "MOVE right; MOVE up 1", "E E E N", "", (8, 5), "up"
    ),
    "unmeasured across, small": (
        "grocery_small", 8, 2, "right", "MOVE right; MOVE up 1", "E E E N", "", (7, 5), "up"
    ),
    "unmeasured before the same way": (
        "grocery", 9, 5, "up", "MOVE up; MOVE up 2", "N? N? N? N? N? N? N?", "guessed_distance blocked", (2, 5), "up"
    ),
    "unmeasured before the opposite way": (
        "grocery", 9, 5, "up", "MOVE up; MOVE down 1", "N? N? N? N? N? N? N? S", "guessed_distance", (3, 5), "down"
    ),
    "unmeasured before turning round": (
        "grocery", 9, 5, "up", "MOVE up; TURN around", "N? N? N? N? N? N? N?", "guessed_distance", (2, 5), "down"
    ),
    "unmeasured before taking": ("grocery", 9, 5, "up", "MOVE up; BUY vegetables", "N N N N $vegetables", "", (5, 5), "up"),
    "unmeasured before taking, small": (
        "grocery_small", 10, 9, None, "MOVE up; BUY seasoning", "N N N N $seasoning", "", (6, 9), "up"
    ),
    "unmeasured before a destination": ("grocery", 9, 5, "up", "MOVE up; GOTO vegetables", "N N N N", "", (5, 5), "up"),
    "unmeasured before taking what is elsewhere": (
        "grocery", 9, 7, "up", "MOVE up; BUY meat", "E? N? N? N? N? $meat", "not_in_line filled_in", (5, 8), "up"
    ),
    "unmeasured before paying": ("grocery", 11, 3, "up", "MOVE left; PAY", "W PAY", "", (11, 2), "left"),
    "unmeasured before leaving": ("grocery", 12, 16, None, "MOVE left; LEAVE", "W W W W W W W W OUT", "", (12, 8), "left"),
    "unmeasured before leaving, small": ("grocery_small", 10, 8, None, "MOVE left; LEAVE", "W W W W OUT", "", (10, 4), "left"),
    "unmeasured before nothing": (
        "grocery", 9, 5, "up", "MOVE up", "N? N? N? N? N? N? N?", "guessed_distance", (2, 5), "up"
    ),
    "unmeasured before nothing, small": (
        "grocery_small", 8, 9, "up", "MOVE ahead", "N? N? N? N? N?", "guessed_distance", (3, 9), "up"
    ),
    "turn left": ("grocery", 9, 5, "up", "TURN left; MOVE ahead 1", "W", "", (9, 4), "left"),
    "turn right": ("grocery", 9, 5, "down", "TURN right; MOVE ahead 1", "W", "", (9, 4), "left"),
    "turn around": ("grocery", 8, 5, "up", "TURN around; MOVE ahead 1", "S", "", (9, 5), "down"),
    "turn, small": ("grocery_small", 8, 9, "up", "TURN left; MOVE ahead 2", "W W", "", (8, 7), "left"),
    "two turns leave out the way between": (
        "grocery", 9, 5, "up", "TURN right; TURN left; MOVE ahead 2", "E E E N N", "", (7, 8), "up"
    ),
    "turn without heading": ("grocery", 12, 16, None, "TURN left; MOVE ahead 1", "W", "no_heading", (12, 15), "left"),
    "turn without heading, small": (
        "grocery_small", 10, 8, None, "TURN right; MOVE ahead 1", "E", "no_heading", (10, 9), "right"
    ),
    "turn around without heading": (
        "grocery", 12, 16, None, "TURN around", "", "no_heading", (12, 16), "down"
    ),
    "ahead without heading": (
        "grocery_small", 8, 9, None, "MOVE ahead 1", "N", "no_heading", (7, 9), "up"
    ),
    "destination": ("grocery", 9, 5, "up", "GOTO seasoning", "N?", "", (8, 5), "up"),
    "destination, small": (
        "grocery_small", 10, 8, None, "GOTO egg_tofu", "W? W? W? W? W? N? N?", "", (8, 3), "up"
    ),
    "destination there already": ("grocery", 9, 4, "up", "GOTO seasoning", "", "", (9, 4), "up"),
    "destination after a turn, in line": ("grocery", 9, 5, "up", "TURN left; GOTO seasoning", "W", "", (9, 4), "left"),
    "destination after a turn, not in line": (
        "grocery", 9, 8, "up", "TURN left; GOTO meat", "N? N? N? N?", "", (5, 8), "up"
    ),
    "start, exit, finish": (
        "grocery_small", 10, 6, "left", "GOTO START; GOTO EXIT; GOTO FINISH", "E? E? W? W? W? W? W? W?", "", (10, 2), "left"
    ),
    "along": ("grocery", 12, 15, "left", "ALONG", "W W W W W W W", "", (12, 8), "left"),
    "along to a fork": ("grocery", 9, 5, "up", "ALONG", "N N N N N N N", "", (2, 5), "up"),
    "along round corners, small": ("grocery_small", 10, 8, "right", "ALONG", "E N N", "", (8, 9), "up"),
    "along without heading, one way": ("grocery", 12, 16, None, "ALONG", "W", "", (12, 15), "left"),
    "along without heading, several ways": ("grocery", 9, 5, None, "ALONG", "", "blocked", (9, 5), None),
    "along to a place": ("grocery", 9, 7, "up", "ALONG meat", "E? N? N? N? N?", "", (5, 8), "up"),
    "back, squares": ("grocery", 9, 5, "up", "MOVE up 3; BACK 2", "N N N S S", "", (8, 5), "down"),
    "back, squares, small": ("grocery_small", 8, 9, "up", "MOVE up 3; BACK 2", "N N N S S", "", (7, 9), "down"),
    "back, too many squares": ("grocery", 9, 5, "up", "MOVE up 3; BACK 5", "N N N S S S", "blocked", (9, 5), "down"),
    "back, squares, without heading": ("grocery_small", 9, 9, None, "BACK 1", "S", "no_heading", (10, 9), "down"),
    "back the way one came": (
        "grocery", 9, 5, "up", "MOVE up 2; BACK", "N N S? S?", "guessed_distance", (9, 5), "down"
    ),
    "back the way one came, round a corner": (
        "grocery_small", 10, 8, None, "MOVE right 1; MOVE up 1; BACK", "E N S? W?", "guessed_distance", (10, 8), "left"
    ),
    "back from nowhere": ("grocery", 9, 5, "up", "BACK", "", "guessed_distance", (9, 5), "up"),
    "back, then a move": ("grocery", 9, 5, "up", "MOVE up 2; BACK; MOVE ahead 1", "N N S", "", (8, 5), "down"),
    "back, then a turn": ("grocery", 9, 5, "up", "MOVE up 2; BACK; TURN left", "N N S S", "", (9, 5), "right"),
    "back, then something to take": (
        "grocery", 9, 8, "up", "MOVE up 1; BACK; BUY meat", "N N? N? N? $meat", "filled_in", (5, 8), "up"
    ),
    "back to a place": ("grocery", 9, 7, "up", "BACK meat", "E? N? N? N? N?", "", (5, 8), "up"),
    "take": ("grocery", 5, 8, "up", "BUY meat", "$meat", "", (5, 8), "up"),
    "take, small": ("grocery_small", 6, 9, "up", "BUY seasoning", "$seasoning", "", (6, 9), "up"),
    "take, filled in": ("grocery", 9, 8, "up", "BUY meat", "N? N? N? N? $meat", "filled_in", (5, 8), "up"),
    "take, filled in, small": (
        "grocery_small", 8, 9, "up", "BUY seasoning", "N? N? $seasoning", "filled_in", (6, 9), "up"
    ),
    "take after a turn, in line": ("grocery", 9, 5, "up", "TURN left; BUY seasoning", "W $seasoning", "filled_in", (9, 4), "left"),
    "take what cannot be taken": ("grocery", 12, 15, "up", "BUY START", "E?", "filled_in not_here", (12, 16), "right"),
    "pay too early": ("grocery", 11, 3, "up", "PAY", "W? PAY", "filled_in", (11, 2), "left"),
    "leave": ("grocery", 12, 8, "left", "LEAVE", "OUT", "", (12, 8), "left"),
    "leave, filled in": ("grocery", 12, 10, "left", "LEAVE", "W? W? OUT", "filled_in", (12, 8), "left"),
    "nothing": ("grocery", 9, 5, "up", "NONE", "", "", (9, 5), "up"),
    "no till and no exit": ("errands", 8, 9, None, "PAY; LEAVE", "", "unreachable unreachable", (8, 9), None),
    "no such places": (
        "errands", 8, 9, None, "GOTO FINISH; MOVE left to EXIT", "", "unreachable not_in_line unreachable", (8, 9), None
    ),
    "needs something first": ("errands", 8, 2, None, "BUY pharmacy", "S?", "filled_in not_here", (9, 2), "down"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_instruction_on_the_map(case) -> None:  # type: ignore[no-untyped-def]
    task, row, column, heading, text, moves, issues, there, faces = case
    terrain = TERRAIN[task]
    done = run(terrain, terrain.position(row, column, heading), text)
    assert shown(terrain, done) == moves
    assert " ".join(issue.code for issue in done.issues) == issues
    assert place(terrain, done.end.state) == there
    if text != "GOTO FINISH; MOVE left to EXIT":
        assert (None if done.end.heading is None else HEADING_NAMES[done.end.heading]) == faces
    assert done.doubts == tuple(dict.fromkeys(code for code in issues.split() if code in DOUBTFUL))
    assert len(done) == len(done.states) == len(done.instruction) == len(moves.split())
    steps = parse_program(text, terrain.places)
    assert done.instruction == sorted(done.instruction)
    assert all(0 <= number < len(steps) for number in done.instruction)
    assert all(0 <= issue.instruction < len(steps) for issue in done.issues)


def test_the_cases_show_every_instruction_on_both_maps_and_every_issue_but_one() -> None:
    for task in ("grocery", "grocery_small"):
        used = {step.split()[0] for case in CASES.values() if case[0] == task for step in case[4].split(";")}
        assert used >= {"MOVE", "TURN", "GOTO", "ALONG", "BACK", "BUY", "LEAVE"}
    assert set(MEANING) - {code for case in CASES.values() for code in case[6].split()} == {"after_end"}


def test_instructions_and_issues_are_numbered() -> None:
    done = run(BIG, BIG.position(9, 5, "up"), "MOVE left 9; TURN right; MOVE ahead 1; BUY meat")
    assert [(issue.code, issue.instruction) for issue in done.issues] == [("blocked", 0), ("filled_in", 3)]
    assert sorted(set(done.instruction)) == [0, 2, 3]


SHOPPING = "BUY vegetables; BUY meat; BUY egg_tofu; BUY seasoning"
shops = pytest.mark.parametrize("terrain", [BIG, SMALL], ids=["grocery", "grocery_small"])


@shops
def test_the_whole_task_and_what_is_said_after_its_end(terrain: Terrain) -> None:
    done = run(terrain, terrain.start(), f"{SHOPPING}; BUY bakery; PAY; LEAVE; MOVE up 1; PAY")
    assert done.end.state == terrain.end
    assert {issue.code for issue in done.issues} == {"filled_in", "after_end"}
    assert [issue.instruction for issue in done.issues if issue.code == "after_end"] == [7, 8]
    assert not done.doubts
    assert done.actions[-1] == -1
    assert done.states[-1] == terrain.end
    assert not any(
        flag
        for action, flag in zip(done.actions, done.inferred, strict=True)
        if action not in terrain.move_code
    )


@shops
def test_leaving_after_the_end_keeps_the_end(terrain: Terrain) -> None:
    done = run(terrain, Position(terrain.end), "LEAVE")
    assert (done.actions, done.states, done.issues, done.end.state) == ([-1], [terrain.end], [], terrain.end)


@pytest.mark.parametrize("terrain", TERRAIN.values(), ids=TERRAIN.keys())
@pytest.mark.parametrize(
    "step", ["MOVE up 1", "MOVE up", "TURN left", "GOTO START", "ALONG", "BACK", "BACK 1", "PAY"]
)
def test_nothing_happens_after_the_end(terrain: Terrain, step: str) -> None:
    done = run(terrain, Position(terrain.end, 0), step)
    assert (done.actions, [issue.code for issue in done.issues]) == ([], ["after_end"])
    assert done.end.state == terrain.end


@pytest.mark.parametrize("way", ["MOVE right", "MOVE right end", "ALONG", "MOVE right 5", "BACK 5"])
def test_an_instruction_during_which_the_task_ends_stops_there(way: str) -> None:
    """In the town nothing ends by walking; in no built-in task does it. The walk must still be safe."""
    done = run(TOWN, TOWN.start(), f"BUY bank; BUY doctor; BUY pharmacy; BUY market; BUY home; {way}")
    assert done.end.state == TOWN.end
    assert done.issues[-1].code == "after_end"


# ------------------------------------------------------------------ phases


def phase(terrain: Terrain, position: Position) -> str:
    return terrain.phases[terrain.phase(position.state)]


@shops
def test_a_phase_nobody_tells_begins_when_the_one_before_is_complete(terrain: Terrain) -> None:
    shopped = run(terrain, terrain.start(), SHOPPING)
    assert phase(terrain, shopped.end) == "bakery"
    baked = run(terrain, shopped.end, "BUY bakery")
    assert phase(terrain, baked.end) == "checkout"
    assert run(terrain, baked.end, "PAY").end.state == terrain.end


@shops
def test_a_phase_that_is_told_waits_until_it_is_told(terrain: Terrain) -> None:
    told = frozenset({"bakery"})
    shopped = run(terrain, terrain.start(), SHOPPING, tuple(told))
    assert phase(terrain, shopped.end) == "shopping"
    assert not terrain.task.counted[shopped.end.state]
    strolled = run(terrain, shopped.end, "MOVE up 1; MOVE down 1; MOVE left 1; MOVE right 1", tuple(told))
    assert strolled.actions
    assert phase(terrain, strolled.end) == "shopping"
    opened = terrain.tell(strolled.end, "bakery", told)
    assert phase(terrain, opened) == "bakery"
    assert terrain.cell(opened.state) == terrain.cell(strolled.end.state)
    assert (opened.heading, opened.trail) == (strolled.end.heading, strolled.end.trail)
    assert terrain.task.counted[opened.state]
    assert phase(terrain, run(terrain, opened, "BUY bakery", tuple(told)).end) == "checkout"


@shops
def test_a_phase_told_early_leaves_what_is_missing_behind(terrain: Terrain) -> None:
    told = frozenset({"bakery"})
    begun = run(terrain, terrain.start(), "BUY vegetables", tuple(told))
    opened = terrain.tell(begun.end, "bakery", told)
    assert phase(terrain, opened) == "bakery"
    assert terrain.tell(opened, "bakery", told) == opened
    assert terrain.tell(opened, "shopping", told) == opened
    assert phase(terrain, run(terrain, opened, "BUY bakery", tuple(told)).end) == "checkout"


@shops
def test_a_phase_whose_goals_are_complete_already_is_over_when_it_is_told(terrain: Terrain) -> None:
    told = frozenset({"bakery"})
    early = run(terrain, terrain.start(), f"BUY bakery; {SHOPPING}", tuple(told))
    assert phase(terrain, early.end) == "shopping"
    assert phase(terrain, terrain.tell(early.end, "bakery", told)) == "checkout"


@shops
def test_checkout_may_be_told_too(terrain: Terrain) -> None:
    told = frozenset({"bakery", "checkout"})
    shopped = run(terrain, terrain.start(), SHOPPING, tuple(told))
    baking = terrain.tell(shopped.end, "bakery", told)
    baked = run(terrain, baking, "BUY bakery", tuple(told))
    assert phase(terrain, baked.end) == "bakery"
    paying = terrain.tell(baked.end, "checkout", told)
    assert phase(terrain, paying) == "checkout"
    assert run(terrain, paying, "PAY", tuple(told)).end.state == terrain.end


@shops
def test_nothing_is_told_after_the_end(terrain: Terrain) -> None:
    over = Position(terrain.end)
    assert terrain.tell(over, "checkout", frozenset({"checkout"})) == over


def test_the_town_needs_nobody_to_tell() -> None:
    done = run(TOWN, TOWN.start(), "BUY bank; BUY doctor; BUY pharmacy; BUY market")
    assert phase(TOWN, done.end) == "home"


# ------------------------------------------------------------------ trails, ways, terrain


@shops
def test_back_reaches_into_the_segment_before(terrain: Terrain) -> None:
    first = run(terrain, terrain.start(), "ALONG START; GOTO seasoning")
    assert len(first.end.trail) == len(first)
    back = run(terrain, first.end, "BACK")
    assert terrain.cell(back.end.state) == terrain.cell(terrain.task.start)
    assert all(back.inferred)
    assert len(back) == len(first)


@shops
def test_a_segment_without_moves_keeps_the_trail(terrain: Terrain) -> None:
    first = run(terrain, terrain.start(), "GOTO seasoning")
    bought = run(terrain, first.end, "BUY seasoning")
    assert bought.end.trail == first.end.trail


@shops
def test_back_again_and_again_stays_within_the_map_size(terrain: Terrain) -> None:
    text = "GOTO seasoning" + "; BACK" * 12
    assert len(run(terrain, terrain.start(), text)) <= terrain.n_cells * 13


@pytest.mark.parametrize("terrain", TERRAIN.values(), ids=TERRAIN.keys())
def test_ways_are_shortest_and_straight_counts_squares(terrain: Terrain) -> None:
    for cell in range(terrain.n_cells):
        for name, cells in terrain.reach.items():
            way = terrain.way(cell, name, None)
            if way is None:
                continue
            here = cell
            for heading in way:
                assert here not in cells
                here = terrain.neighbour[here][heading]
                assert here >= 0
            assert here in cells
            for heading in range(4):
                squares = terrain.straight(cell, heading, name)
                assert squares is None or squares >= len(way)


def test_a_way_goes_straight_on_where_it_can() -> None:
    cell = BIG.cell(BIG.position(9, 5).state)
    assert BIG.way(cell, "bakery", 0) == [0] * 7 + [2] * 3
    assert BIG.way(cell, "bakery", 2) == [2] * 3 + [0] * 7


def test_a_task_without_a_map_is_refused() -> None:
    bare = fidm.TaskModel.from_arrays([[-1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.1)
    with pytest.raises(GroundingError, match="has no map"):
        Terrain(bare)


def test_unknown_actions_have_no_code() -> None:
    assert BIG.code("FLY") == BIG.buying("START") == -1
    assert BIG.after(BIG.task.start, BIG.code("N")) == -1


def test_spans_and_probabilities_change_no_move() -> None:
    plain = replay([Instruction("MOVE", "left", 1)], BIG, BIG.start())
    marked = replay([Instruction("MOVE", "left", 1, span=(3, 9), probability=0.2)], BIG, BIG.start())
    assert plain.actions == marked.actions
    assert plain.end == marked.end
