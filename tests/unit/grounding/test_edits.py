"""What a reviewer may write: programs, moves, or both; legal ones only, and the error says what is."""

from __future__ import annotations

from pathlib import Path

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.review.edits import action_names, legal_actions, parse_edit, program_of
from fidm.grounding.route.program import NOTHING, write_program
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.tasks.compile import load_task

GROCERY = Terrain(fidm.load_task("grocery"))
ERRANDS = Terrain(fidm.load_task("errands"))
START = GROCERY.start()


def edited(text: str, terrain: Terrain = GROCERY, position: Position | None = None) -> tuple[str, str]:
    program, done = parse_edit(text, terrain, position or terrain.start())
    return write_program(program), " ".join(action_names(terrain, done.actions))


@pytest.mark.parametrize(
    ("text", "program", "actions"),
    [
        ("MOVE left 1; MOVE up 2", "MOVE left 1; MOVE up 2", "W N N"),
        ("W N N", "MOVE left 1; MOVE up 2", "W N N"),
        ("W, N×2", "MOVE left 1; MOVE up 2", "W N N"),
        ("w n*2", "MOVE left 1; MOVE up 2", "W N N"),
        ("W\nN2", "MOVE left 1; MOVE up 2", "W N N"),
        ("W，N，Nx1；", "MOVE left 1; MOVE up 2", "W N N"),
        ("W; MOVE up 2; N", "MOVE left 1; MOVE up 3", "W N N N"),
        ("MOVE left 1 N N", "MOVE left 1; MOVE up 2", "W N N"),
        ("W TURN right MOVE ahead 2", "MOVE left 1; TURN right; MOVE ahead 2", "W N N"),
        ("NONE", "NONE", ""),
        ("none; W", "MOVE left 1", "W"),
        ("W W E E", "MOVE left 2; MOVE right 2", "W W E E"),
    ],
)
def test_programs_and_moves(text: str, program: str, actions: str) -> None:
    assert edited(text) == (program, actions)


def test_things_to_take_by_the_tasks_own_names() -> None:
    program, actions = edited("GOTO bank; visit bank GOTO doctor", ERRANDS)
    assert program == "GOTO bank; BUY bank; GOTO doctor"
    assert "VISIT bank" in actions
    program, actions = edited("goto FINISH GOTO EXIT OUT")
    assert program == "GOTO FINISH; GOTO EXIT; LEAVE"
    assert actions.endswith("OUT")


def test_a_way_left_to_the_planner_is_inferred() -> None:
    _, done = parse_edit("GOTO meat; BUY meat", GROCERY, START)
    assert done.inferred[:-1] == [True] * (len(done) - 1)
    assert done.inferred[-1] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Nothing is written"),
        (" ;,\n", "Nothing is written"),
        ("N", "Instruction 1, MOVE up 1, cannot be done: a shelf or wall.*Legal there: W\\."),
        ("W N×50", "Instruction 2, MOVE up 50, cannot be done.*Legal there: S"),
        ("MOVE left", "Instruction 1, MOVE left, cannot be done: nobody said how far"),
        ("TURN left", "the figure faces nowhere"),
        ("BACK", "cannot be done"),
        ("BUY nowhere", "Instruction 1, “BUY nowhere”, names no place of the task"),
        ("W; FLY up", "Instruction 2, “FLY up”, has no known name. Known: MOVE.*BUY"),
        ("W; MOVE sideways 2", "Instruction 2, “MOVE sideways 2”: MOVE needs one of"),
        ("W W, N; FLY", "Instruction 4, “FLY”, has no known name"),  # as it was written, not as it is kept
        ("W W N×50", "Instruction 3, MOVE up 50, cannot be done"),
        ("NONE; W; S", "Instruction 3, MOVE down 1, cannot be done"),
        ("W W W×0", "Instruction 3: a number of squares"),
        ("W0", "1 to 999"),
        ("W×1000", "1 to 999"),
        ("MOVE left 1 2", "more than it takes"),
        ("N " * 3000, "letters"),
        ("W E " * 40, "at most 64 instructions"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(text: str, said: str) -> None:
    with pytest.raises(GroundingError, match=said):
        parse_edit(text, GROCERY, START)


def test_the_message_quotes_little_of_what_was_written_and_nothing_unseen() -> None:
    with pytest.raises(GroundingError, match="“FLYhome”"):
        parse_edit("W; FLY\u202e\x07home", GROCERY, START)
    with pytest.raises(GroundingError) as caught:
        parse_edit("W; " + "x" * 3000, GROCERY, START)
    assert "“" + "x" * 40 + "…”" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_after_the_end_only_leaving_is_legal() -> None:
    end = Position(GROCERY.end)
    assert legal_actions(GROCERY, end) == ("OUT",)
    assert legal_actions(ERRANDS, Position(ERRANDS.end)) == ()
    with pytest.raises(GroundingError, match="had ended"):
        parse_edit("W", GROCERY, end)
    assert edited("OUT", position=end) == ("LEAVE", "OUT")


def test_legal_actions_are_those_that_can_be_replayed() -> None:
    for state in range(0, GROCERY.task.n_states - 1, 97):
        here = Position(state)
        for name in legal_actions(GROCERY, here):
            program = program_of([name], GROCERY, here)
            done = replay(program, GROCERY, here)
            assert action_names(GROCERY, done.actions) == (name,)
            assert not done.doubts


def test_programs_of_actions() -> None:
    assert program_of([], GROCERY, START) == NOTHING
    assert write_program(program_of(["W", "W", "E"], GROCERY, START)) == "MOVE left 2; MOVE right 1"
    with pytest.raises(GroundingError, match="Action 2, S, is"):
        program_of(["W", "S"], GROCERY, START)
    for strange in ("FLY", 99, -2):
        with pytest.raises(GroundingError, match="Action 1"):
            program_of([strange], GROCERY, START)
    with pytest.raises(GroundingError, match="Action 1 is none"):
        program_of([-1], ERRANDS, ERRANDS.start())
    with pytest.raises(GroundingError, match="at most 64"):
        program_of(["W", "E"] * 40, GROCERY, START)


def test_a_task_with_one_word_for_all_places(tmp_path: Path) -> None:
    text = fidm.builtin_text("errands")
    assert "[rules]" in text
    own = tmp_path / "single.toml"
    own.write_text(text.replace("[rules]", '[rules]\nbuy = "single"', 1), "utf-8")
    terrain = Terrain(load_task(own))
    place = terrain.places[0]
    by_word = parse_edit(f"GOTO {place}; {terrain.spec.verb}", terrain, terrain.start())
    named = parse_edit(f"GOTO {place}; BUY {place}", terrain, terrain.start())
    assert by_word[1].actions == named[1].actions
    assert program_of(named[1].actions, terrain, terrain.start())[-1].op == "BUY"
    with pytest.raises(GroundingError, match="in reach"):
        parse_edit(terrain.spec.verb, terrain, terrain.start())
