"""Whatever a program says, its replay is legal, short, and one unbroken chain."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fidm
from fidm.cohort import Cohort
from fidm.grounding.route.program import (
    EXIT,
    FINISH,
    MOVE_WAYS,
    START,
    TURN_WAYS,
    Instruction,
    parse_program,
    same_program,
    write_program,
)
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.tasks.spec import builtin_tasks
from fidm.tasks.stack import TaskSet, follow, trace_problems

TERRAIN = {name: Terrain(fidm.load_task(name)) for name in builtin_tasks()}
tasks = pytest.mark.parametrize("name", sorted(TERRAIN))


def steps(terrain: Terrain) -> st.SearchStrategy[Instruction]:
    places = st.sampled_from([*terrain.places, START, FINISH, EXIT])
    squares = st.one_of(st.integers(1, 9), st.just(999))
    move = st.sampled_from(MOVE_WAYS)
    return st.one_of(
        st.builds(lambda way, n: Instruction("MOVE", way, n), move, squares),
        st.builds(lambda way: Instruction("MOVE", way, to_end=True), move),
        st.builds(lambda way, place: Instruction("MOVE", way, place=place), move, places),
        st.builds(lambda way: Instruction("MOVE", way), move),
        st.builds(lambda way: Instruction("TURN", way), st.sampled_from(TURN_WAYS)),
        st.builds(lambda place: Instruction("GOTO", place=place), places),
        st.builds(lambda place: Instruction("ALONG", place=place), st.one_of(st.just(""), places)),
        st.builds(lambda n: Instruction("BACK", squares=n), st.one_of(st.none(), squares)),
        st.builds(lambda place: Instruction("BACK", place=place), places),
        st.builds(lambda place: Instruction("BUY", place=place), places),
        st.sampled_from([Instruction("PAY"), Instruction("LEAVE"), Instruction("NONE")]),
    )


def programs(terrain: Terrain) -> st.SearchStrategy[list[Instruction]]:
    return st.lists(steps(terrain), min_size=1, max_size=10)


def positions(terrain: Terrain) -> st.SearchStrategy[Position]:
    cells = st.lists(st.integers(0, terrain.n_cells - 1), max_size=8).map(tuple)
    states = st.one_of(st.integers(0, terrain.task.n_states - 1), st.just(terrain.end))
    return st.builds(Position, states, st.one_of(st.none(), st.integers(0, 3)), cells)


def told_phases(terrain: Terrain) -> st.SearchStrategy[frozenset[str]]:
    """Phases somebody may open; where goals alone open them, nobody does."""
    if terrain.spec.rules.phase_change != "transcript":
        return st.just(frozenset())
    return st.frozensets(st.sampled_from(terrain.phases[1:]))


def successors(terrain: Terrain, state: int, action: int, told: frozenset[str]) -> set[int]:
    """The states an action may lead to, from the task's own arrays."""
    task, grid = terrain.task, terrain.grid
    if action == -1:
        return {state}
    plain = int(task.successor[task.successor_offsets[task.pair(state, action)]])
    settled = int(task.handover[plain])
    if settled == terrain.end:
        return {settled}
    before = int(grid.phase[state // terrain.n_cells])
    if int(grid.phase[settled // terrain.n_cells]) == before or terrain.phases[before + 1] not in told:
        return {settled}
    return {
        mode * terrain.n_cells + settled % terrain.n_cells
        for mode in range(len(grid.phase))
        if grid.phase[mode] == before and grid.progress[mode] == grid.progress[settled // terrain.n_cells]
    } or {settled}


@tasks
@settings(max_examples=150)
@given(data=st.data())
def test_no_program_makes_an_illegal_action(name: str, data: st.DataObject) -> None:
    terrain = TERRAIN[name]
    program = data.draw(programs(terrain))
    position = data.draw(positions(terrain))
    told = data.draw(told_phases(terrain))
    done = replay(program, terrain, position, told=told)
    task = terrain.task
    chain = [*done.states, done.end.state]
    assert chain[0] == position.state
    for state, action, follower in zip(done.states, done.actions, chain[1:], strict=True):
        if action >= 0:
            assert task.actions[action] in task.legal(state)
        else:
            assert action == -1
            assert terrain.spec.exit is not None
        assert follower in successors(terrain, state, action, told)
    moves = [action for action in done.actions if action in terrain.move_code]
    assert len(moves) <= terrain.n_cells * len(program)
    assert len(done.actions) == len(done.states) == len(done.inferred) == len(done.instruction)
    assert done.instruction == sorted(done.instruction)
    assert all(flag is False for a, flag in zip(done.actions, done.inferred, strict=True) if a not in moves)
    if done.end.state != terrain.end and done.end.trail:
        assert all(0 <= cell < terrain.n_cells for cell in done.end.trail)


@tasks
@settings(max_examples=40)
@given(data=st.data())
def test_programs_said_one_after_the_other_follow_the_task(name: str, data: st.DataObject) -> None:
    terrain = TERRAIN[name]
    told = data.draw(told_phases(terrain))
    said = data.draw(st.lists(programs(terrain), min_size=1, max_size=4))
    position = terrain.start()
    states: list[int] = []
    actions: list[int] = []
    inferred: list[bool] = []
    for program in said:
        if told and data.draw(st.booleans()):
            position = terrain.tell(position, data.draw(st.sampled_from(sorted(told))), told)
        done = replay(program, terrain, position, told=told)
        states += done.states
        actions += done.actions
        inferred += done.inferred
        position = done.end
    cohort = Cohort(
        participants=pl.DataFrame({"participant": ["P1"]}),
        episodes=pl.DataFrame({"episode": ["1"], "task": [terrain.task.name]}),
        episode_offsets=np.array([0, 1]),
        step_offsets=np.array([0, len(states)]),
        state=np.array(states, dtype=np.int32),
        action=np.array(actions, dtype=np.int32),
        end_state=np.array([position.state], dtype=np.int32),
        segments=pl.DataFrame(schema={"segment": pl.String, "n_moves": pl.Int32}),
        segment_offsets=np.array([0, 0]),
        inferred=np.array(inferred, dtype=np.bool_),
    )
    known = TaskSet.of(terrain.task)
    followed = follow(known, cohort)
    assert trace_problems(known, cohort, followed).height == 0
    assert not followed.fault.any()


@tasks
@settings(max_examples=50)
@given(data=st.data())
def test_every_program_can_be_written_and_read_again(name: str, data: st.DataObject) -> None:
    terrain = TERRAIN[name]
    program = [step for step in data.draw(programs(terrain)) if step.op != "NONE"]
    again = parse_program(write_program(program), terrain.places)
    assert same_program(again, program or [Instruction("NONE")])
    assert [step for step in again if step.op != "NONE"] == program
