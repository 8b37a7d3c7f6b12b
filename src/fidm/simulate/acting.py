"""How simulated people act in a dialog: they choose, and say exactly what they chose.

A person acts as a softmax chooser or as a walker does, or names a destination and leaves the way to the
planner. What they do is cut into segments; each gets a route program that says it exactly. The program is
replayed before it is used, so what it says and what was done can never differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fidm.cohort import NO_ACTION
from fidm.errors import DataError
from fidm.grounding.route.program import Instruction, Program
from fidm.grounding.route.replay import replay
from fidm.grounding.route.terrain import Position, Terrain
from fidm.simulate.agents import Agent, Chooser, Describer, Stroller
from fidm.simulate.walker import Walker
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Values

LONGEST = 30
"""No segment holds more chosen actions, so that its program stays within what a program may hold."""


@dataclass(frozen=True, slots=True)
class Style:
    """How simulated people put their way into words.

    Parameters
    ----------
    names_place : float
        How often a segment begins with a destination, the way being left to the planner.
    early_request : float
        How often somebody is sent on to the next phase although one target is missing.
    actions_per_segment : float
        About how many actions a segment describes.
    ends_after_use : float
        How often a segment ends after something was taken or paid, whatever its length.
    max_actions : int
        The dialog is broken off after so many actions.
    """

    names_place: float = 0.25
    early_request: float = 0.05
    actions_per_segment: float = 3.5
    ends_after_use: float = 0.5
    max_actions: int = 1_000

    def __post_init__(self) -> None:
        shares = (self.names_place, self.early_request, self.ends_after_use)
        if not all(0 <= share <= 1 for share in shares):
            raise DataError("names_place, early_request and ends_after_use must be between 0 and 1.")
        if not (self.actions_per_segment >= 1 and self.max_actions >= 1):
            raise DataError("actions_per_segment and max_actions must be 1 or more.")


@dataclass(slots=True)
class Stretch:
    """What one segment is about.

    Parameters
    ----------
    program : tuple of Instruction
        What is said about the way.
    actions, states : list of int
        What is done, and the states it is done in.
    inferred : list of bool
        Whether the planner chose the action.
    n_moves : int
        How many of the actions are movements.
    opened : tuple of str
        The phases the assessor opens right after it.
    """

    program: Program
    actions: list[int]
    states: list[int]
    inferred: list[bool]
    n_moves: int
    opened: tuple[str, ...] = ()


class Actor:
    """A task, ready to be acted out by many people.

    Parameters
    ----------
    task : TaskModel
        A task made from a map.
    style : Style
        How people put their way into words.
    by : Values or Walker
        The soft values people choose by, or the walkers they are.
    """

    def __init__(self, task: TaskModel, style: Style, by: Values | Walker) -> None:
        self.terrain = Terrain(task)
        self.style = style
        self.spec = self.terrain.spec
        self._task = task
        told = self.spec.rules.phase_change == "transcript"
        self.told = frozenset(phase.name for phase in self.spec.phases[1:] if told and phase.targets)
        self._bits = [
            [1 << self.spec.targets.index(target) for target in phase.targets] for phase in self.spec.phases
        ]
        self.describer = Describer(self.terrain, self.told)
        self._agent: Agent = (
            Stroller(by, self.spec.targets) if isinstance(by, Walker) else Chooser(task, by, self.describer)
        )

    def act(self, truth: Floats, rng: np.random.Generator) -> tuple[list[Stretch], Position]:
        """Let somebody with these (log η, θ…) do the task; return the segments and where they end."""
        terrain, style = self.terrain, self.style
        position, left = terrain.start(), style.max_actions
        found: list[Stretch] = []
        early = [rng.random() < style.early_request for _ in self.spec.phases]
        self._agent.begin(truth, rng)
        start = position
        while left > 0 and self._goes_on(position.state):
            start = position
            program, actions = self._segment(position, left, rng)
            stretch, position = self._stretch(program, actions, position)
            left -= len(actions)
            found.append(stretch)
            position, stretch.opened = self._told(position, early)
        leaving = self.spec.exit
        if position.state == terrain.end and leaving and terrain.code(leaving.action) < 0:
            last = Stretch((), [], [], [], 0) if rng.random() < style.ends_after_use else found.pop()
            start = start if last.program else position
            program = (*last.program, Instruction("LEAVE"))
            found.append(self._stretch(program, [*last.actions, NO_ACTION], start)[0])
        return found, position

    # ------------------------------------------------------------------ choosing

    def _goes_on(self, state: int) -> bool:
        """Whether there is something one can do here, and has to do."""
        is_stuck = self._task.offsets[state] == self._task.offsets[state + 1]
        return state != self.terrain.end and not is_stuck and not self._agent.is_done(state)

    def _segment(self, position: Position, most: int, rng: np.random.Generator) -> tuple[Program, list[int]]:
        """What is said and done next, up to the end of a segment."""
        terrain, style, agent = self.terrain, self.style, self._agent
        state, actions = position.state, list[int]()
        named: Program = ()
        place = agent.place(state) if rng.random() < style.names_place else ""
        way = terrain.way(terrain.cell(state), place, position.heading) if place else None
        if way and len(way) <= most:
            actions = [terrain.move_code[heading] for heading in way]
            named = (Instruction("GOTO", place=place),)
            for action in actions:
                state = terrain.after(state, action, self.told)
            agent.led(state, way[-1])
        begun, there = len(actions), state
        is_over = begun > 0 and rng.random() < 0.5  # a destination alone, or also what one does there
        while not is_over and len(actions) < most and self._goes_on(state):
            action = agent.choose(state)
            actions.append(action)
            state = terrain.after(state, action, self.told)
            is_over = rng.random() < 1 / style.actions_per_segment or len(actions) - begun >= LONGEST
            is_over |= action not in terrain.move_code and rng.random() < style.ends_after_use
            is_over |= self._waits(state)
        heading = terrain.move_code.index(actions[begun - 1]) if named else position.heading
        return (*named, *self.describer.describe(there, heading, actions[begun:], rng)), actions

    # ------------------------------------------------------------------ phases

    def _waits(self, state: int) -> bool:
        """Whether the goals of the phase are complete, or let be, and the next is opened by the assessor."""
        if state == self.terrain.end:
            return False
        return int(self._task.handover[state]) != state or self._agent.lets_be(state)

    def _told(self, position: Position, early: list[bool]) -> tuple[Position, tuple[str, ...]]:
        """The position after the assessor opened what is due, and what that was."""
        terrain, opened = self.terrain, []
        while position.state != terrain.end:
            phase = terrain.phase(position.state)
            if phase + 1 >= len(terrain.phases) or terrain.phases[phase + 1] not in self.told:
                break
            if not (self._waits(position.state) or (early[phase] and self._misses_one(position.state))):
                break
            sent = terrain.tell(position, terrain.phases[phase + 1], self.told)
            if sent == position:
                break
            opened.append(terrain.phases[phase + 1])
            position = sent
        return position, tuple(opened)

    def _misses_one(self, state: int) -> bool:
        """Whether one target of the phase is missing, and others are not."""
        bits = self._bits[self.terrain.phase(state)]
        done = self.describer.progress(state)
        return len(bits) > 1 and sum(bool(done & bit) for bit in bits) == len(bits) - 1

    # ------------------------------------------------------------------ checking

    def _stretch(self, program: Program, actions: list[int], start: Position) -> tuple[Stretch, Position]:
        """A segment whose program was replayed and found to be exact."""
        done = replay(program, self.terrain, start, told=self.told)
        named = bool(program) and program[0].op == "GOTO"
        begun = sum(number == 0 for number in done.instruction) if named else 0
        inferred = [i < begun for i in range(len(actions))]
        if done.actions != actions or done.issues or done.inferred != inferred:
            raise RuntimeError(
                f"A simulated segment of {len(actions)} actions on {self._task.name} does not say what was "
                "done. This is a mistake in fidm; please report it."
            )
        moves = sum(action in self.terrain.move_code for action in actions)
        return Stretch(program, actions, done.states, inferred, moves), done.end
