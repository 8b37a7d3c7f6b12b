"""How simulated people act in a dialog: they choose, and say exactly what they chose.

A person acts as a softmax chooser or as a walker does, or names a destination and leaves the way to the
planner. What they do is cut into segments; each gets a route program that says it exactly, drawn among all
wordings that do. The program is replayed before it is used, so what it says and what was done can never
differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fidm.cohort import NO_ACTION
from fidm.errors import DataError
from fidm.grounding.route.program import EXIT, FINISH, START, Instruction, Op, Program, Way
from fidm.grounding.route.replay import HEADING_NAMES, LEFT_OF, OPPOSITE, RIGHT_OF, Position, Terrain, replay
from fidm.simulate import walker as walking
from fidm.simulate.walker import Walker
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Values

_PLACES: dict[str, str] = {"PAY": FINISH, "LEAVE": EXIT}


class Describer:
    """Finds the programs that say exactly what was done.

    ``told`` are the phases the assessor opens.
    """

    def __init__(self, terrain: Terrain, told: frozenset[str]) -> None:
        self.terrain, self.told = terrain, told
        self._uses = self._used_places()

    def describe(
        self, state: int, heading: int | None, actions: Sequence[int], rng: np.random.Generator
    ) -> Iterator[Instruction]:
        """Words that fix these actions, drawn among all that do."""
        terrain, i = self.terrain, 0
        while i < len(actions):
            if actions[i] not in terrain.move_code:
                yield self.use(state, actions[i])
                state, i = terrain.after(state, actions[i], self.told), i + 1
                continue
            way, first, begun = terrain.move_code.index(actions[i]), i, terrain.cell(state)
            while i < len(actions) and actions[i] == actions[first]:
                state, i = terrain.after(state, actions[i], self.told), i + 1
            is_used = i < len(actions) and actions[i] not in terrain.move_code
            then = self.use(state, actions[i]) if is_used else None
            ways = self._ways_to_say(begun, heading, way, i - first, then)
            yield from ways[int(rng.random() * len(ways))]
            heading = way

    def _ways_to_say(
        self, cell: int, heading: int | None, way: int, n: int, then: Instruction | None
    ) -> list[Program]:
        """Every exact way to say a run of equal moves."""
        terrain = self.terrain
        fars: list[tuple[int | None, bool, str]] = [(n, False, "")] * 2
        there = cell
        for _ in range(n):
            there = terrain.neighbour[there][way]
        if terrain.neighbour[there][way] < 0:
            fars.append((None, True, ""))
        fars += [
            (None, False, place)
            for place in terrain.reach
            if place != START and terrain.straight(cell, way, place) == n
        ]
        goal = "" if then is None else _PLACES.get(then.op, then.place)
        if goal and terrain.straight(cell, way, goal) == n:
            fars.append((None, False, ""))
        heads: list[tuple[Program, Way]] = [((), _way(way))]
        if heading is not None:
            turns: dict[int, Program] = {
                heading: (),
                LEFT_OF[heading]: (Instruction("TURN", "left"),),
                RIGHT_OF[heading]: (Instruction("TURN", "right"),),
                OPPOSITE[heading]: (Instruction("TURN", "around"),),
            }
            heads.append((turns[way], "ahead"))
        found = [
            (*head, Instruction("MOVE", said, squares, to_end, place))
            for head, said in heads
            for squares, to_end, place in fars
        ]
        if heading is not None and way == OPPOSITE[heading]:
            found += [(Instruction("BACK", squares=n),)] * 2
        return found

    def use(self, state: int, action: int) -> Instruction:
        """The instruction of an action that is no movement."""
        op, place = self._uses.get(action, ("BUY", ""))
        if op != "BUY" or place:
            return Instruction(op, place=place)
        cell, done = self.terrain.cell(state), self.progress(state)
        near = [name for name in self.terrain.places if cell in self.terrain.reach[name]]
        gained = self.progress(int(self.terrain.task.next_state[state, action])) & ~done
        targets = self.terrain.spec.targets
        new = [name for name in near if name in targets and gained >> targets.index(name) & 1]
        return Instruction("BUY", place=(new or near)[0])

    def place(self, state: int, action: int) -> str:
        """Return where an action that is no movement is done."""
        said = self.use(state, action)
        return _PLACES.get(said.op, said.place)

    def progress(self, state: int) -> int:
        """Return which targets are completed, one bit each; all at the end."""
        if state == self.terrain.end:
            return -1
        return int(self.terrain.grid.progress[state // self.terrain.n_cells])

    def _used_places(self) -> dict[int, tuple[Op, str]]:
        """What each action that is no movement is called in a program; no place where one fits all."""
        spec, terrain = self.terrain.spec, self.terrain
        found: dict[int, tuple[Op, str]] = {}
        for place in terrain.places:
            found[terrain.buying(place)] = ("BUY", "" if spec.rules.buy == "single" else place)
        if spec.finish:
            found[terrain.code(spec.finish.action)] = ("PAY", "")
        if spec.exit:
            found[terrain.code(spec.exit.action)] = ("LEAVE", "")
        return found


def _way(heading: int) -> Way:
    names: dict[str, Way] = {"up": "up", "down": "down", "left": "left", "right": "right"}
    return names[HEADING_NAMES[heading]]


class Agent(Protocol):
    """A way to act on a task, for one person at a time."""

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody with these (log η, θ…), at the start of the task."""

    def choose(self, state: int) -> int:
        """Return the next action."""

    def place(self, state: int) -> str:
        """Return the place they are heading for; empty where there is none."""

    def led(self, state: int, heading: int) -> None:
        """Hear that they were led to a state, the last step this way."""

    def is_done(self, state: int) -> bool:
        """Whether nothing is left to do."""

    def lets_be(self, state: int) -> bool:
        """Whether they will not fetch what is missing, and the assessor goes on."""


class Chooser:
    """Somebody who chooses as the model says: by softmax, with a sensitivity η."""

    def __init__(self, task: TaskModel, values: Values, describer: Describer) -> None:
        self._task, self._describer = task, describer
        self._q = values.q[task.pair_state, task.action]
        self._rows: dict[int, tuple[list[int], list[float]]] = {}
        self._places: dict[int, str] = {}

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody with η = exp(truth[0])."""
        self._eta, self._rng = float(np.exp(truth[0])), rng

    def _row(self, state: int) -> tuple[list[int], list[float]]:
        """The legal actions of a state and their values."""
        if state not in self._rows:
            pairs = slice(int(self._task.offsets[state]), int(self._task.offsets[state + 1]))
            self._rows[state] = (self._task.action[pairs].tolist(), self._q[pairs].tolist())
        return self._rows[state]

    def choose(self, state: int) -> int:
        """Draw an action with a probability that grows with η times its value."""
        actions, values = self._row(state)
        top = max(values)
        weights = [math.exp(self._eta * (value - top)) for value in values]
        left = self._rng.random() * sum(weights)
        for action, weight in zip(actions, weights, strict=True):
            left -= weight
            if left < 0:
                return action
        return actions[-1]

    def place(self, state: int) -> str:
        """Return where the best policy would next take something or pay; empty where it never does."""
        if state in self._places:
            return self._places[state]
        terrain, told = self._describer.terrain, self._describer.told
        place, here = "", state
        for _ in range(2 * terrain.n_cells):
            actions, values = self._row(here)
            if not actions:
                break
            action = actions[int(np.argmax(values))]
            if action not in terrain.move_code:
                place = self._describer.place(here, action)
                break
            here = terrain.after(here, action, told)
        self._places[state] = place
        return place

    def led(self, state: int, heading: int) -> None:
        """Choose afresh wherever one is."""

    def is_done(self, state: int) -> bool:
        """Go on as long as anything is legal."""
        return False

    def lets_be(self, state: int) -> bool:
        """Leave it to chance what is missing."""
        return False


class Stroller:
    """Somebody who walks from target to target, and slips; see :mod:`fidm.simulate.walker`."""

    def __init__(self, walker: Walker, targets: tuple[str, ...]) -> None:
        self._walker, self._floor = walker, walker.floor
        self._names = (*targets, FINISH, EXIT)

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody of this ability, with a fresh memory."""
        self._rates, self._memory = self._walker.begin(truth, rng)
        self._rng = rng

    def choose(self, state: int) -> int:
        """Take the walker's next step."""
        draws = self._rng.random(walking.N_DRAWS)
        return int(walking.step(self._floor, self._rates, self._memory, state, draws))

    def place(self, state: int) -> str:
        """Return what they are heading for."""
        draws = self._rng.random(walking.N_DRAWS)
        aim = int(walking.aim_of(self._floor, self._rates, self._memory, state, draws))
        return self._names[aim] if aim >= 0 else ""

    def led(self, state: int, heading: int) -> None:
        """Be back on the way, whatever went wrong before."""
        walking.put_right(self._floor, self._memory, state, heading)

    def is_done(self, state: int) -> bool:
        """Whether everything is fetched, and paid where one pays."""
        return self._wanted(state) == 0

    def lets_be(self, state: int) -> bool:
        """Whether all that is missing was forgotten for good, and the assessor may ask for something else."""
        return self._wanted(state) == walking.SENT_ON

    def _wanted(self, state: int) -> int:
        return int(walking.wanted(self._floor, self._memory, state))


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
    """What one segment is about."""

    program: Program  # what is said about the way
    # What is done, and the states it is done in.
    actions: list[int]
    states: list[int]
    inferred: list[bool]  # whether the planner chose the action
    n_moves: int  # how many of the actions are movements
    opened: tuple[str, ...] = ()  # the phases the assessor opens right after it


class Actor:
    """A task, ready to be acted out by many people.

    ``by`` is the soft values people choose by, or the walkers they are.
    """

    def __init__(self, task: TaskModel, style: Style, by: Values | Walker) -> None:
        self.terrain = Terrain(task)
        self.style = style
        self.spec = self.terrain.spec
        if self.spec.rules.bumps == "stay":
            raise DataError(
                f"{task.name} has bumps (rules.bumps = 'stay'), and simulated people have no words for them. "
                "Simulate dialogs on the task without bumps, or simulate moves without dialogs."
            )
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
