"""The map as a walker meets it, and the one place where a route program becomes moves on it.

A :class:`Terrain` is made once per task from its compiled arrays: neighbours, what can be reached from where,
and the ways there. :func:`replay` expands a program on it, legally, and marks each move stated or inferred.

A move is *stated* if the words fix it: "three up", "straight on until the shelf", "right to the end". It is
*inferred* if the planner filled it in: the way in "I go to the vegetables", or a distance nobody mentioned.
Only actions that are legal where they are taken are ever made; what a program asks for beyond that is an
*issue*, and the program goes on from where it can.

What a MOVE without a distance means depends on what follows: before a TURN or a MOVE across, it stops at
the first opening that way; before something to take or a place to go to, it stops where that comes into
reach; else it goes on to the end, which is a guess.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fidm.errors import GroundingError
from fidm.grounding.route.program import EXIT, FINISH, START, Instruction
from fidm.tasks.grid import MOVES, GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import TaskSpec

UP, DOWN, RIGHT, LEFT = range(4)
"""Headings, in the order of the moves N, S, E, W."""

HEADINGS = {"up": UP, "down": DOWN, "right": RIGHT, "left": LEFT}
HEADING_NAMES = ("up", "down", "right", "left")
OPPOSITE = (DOWN, UP, LEFT, RIGHT)
LEFT_OF = (LEFT, RIGHT, UP, DOWN)
RIGHT_OF = (RIGHT, LEFT, DOWN, UP)
FAR = 10**9
CHANGES = -2
"""In the table of steps: what follows depends on the phases that are told of."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a person is: the state of the task, and which way the figure faces.

    Parameters
    ----------
    state : int
        The state of the task.
    heading : int or None
        0 up, 1 down, 2 right, 3 left; None before the first move.
    trail : tuple of int
        The cells passed since the segment before began, the present one not included.
    """

    state: int
    heading: int | None = None
    trail: tuple[int, ...] = ()


class Terrain:
    """A drawn task, ready to be walked on.

    Parameters
    ----------
    task : TaskModel
        A task made from a map.
    """

    def __init__(self, task: TaskModel) -> None:
        if task.grid is None:
            raise GroundingError(
                f"{task.name} has no map, so words cannot be turned into moves on it. Only tasks that are "
                "drawn in a task file can be grounded."
            )
        _require_sayable(task, task.grid.spec)
        self.task = task
        self.grid = task.grid
        self.spec: TaskSpec = task.grid.spec
        grid = task.grid.grid
        self.n_cells = grid.n_cells
        self.neighbour: list[list[int]] = grid.neighbour.tolist()
        self.end = task.grid.end
        modes = zip(task.grid.progress.tolist(), task.grid.phase.tolist(), strict=True)
        self._mode = {mode: number for number, mode in enumerate(modes)}
        self._code = {name: code for code, name in enumerate(task.actions)}
        self.move_code = [self._code[name] for name in MOVES]
        self._next: list[list[int]] = _sayable(task).T.tolist()  # by action: few lists, each long
        self._handover: list[int] = task.handover.tolist()
        self._phase: list[int] = task.grid.phase.tolist()
        self.onward = _steps(task, self.move_code)
        self.places = tuple(self.spec.sections)
        self.reach = places_in_reach(task.grid)
        # The cells that stepping onto them ends the task, and those from which a step leads to each.
        self._ending = self.reach[FINISH] if self.is_taken_by_arriving(FINISH) else frozenset[int]()
        self._into: list[list[int]] = [[] for _ in self.neighbour]
        for cell, ways in enumerate(self.neighbour):
            for there in ways:
                if there >= 0:
                    self._into[there].append(cell)
        self._distance = {place: self._distances(cells) for place, cells in self.reach.items()}
        self._ways: dict[tuple[int, str, int | None], list[int] | None] = {}  # known ways to places
        self.phases = [phase.name for phase in self.spec.phases]

    def start(self) -> Position:
        """Return where an episode begins."""
        return Position(self.task.start)

    def cell(self, state: int) -> int:
        """Return the cell of a state; -1 at the end."""
        return -1 if state == self.end else state % self.n_cells

    def position(self, row: int, column: int, heading: str | None = None) -> Position:
        """Return a position in the first phase, given row and column of the drawing, both from 1."""
        state = self.grid.state((row - 1, column - 1))
        return Position(state, None if heading is None else HEADINGS[heading])

    def phase(self, state: int) -> int:
        """Return the number of a state's phase; that of the last at the end."""
        return len(self.phases) - 1 if state == self.end else self._phase[state // self.n_cells]

    def code(self, action: str) -> int:
        """Return the code of an action; -1 where the task has none."""
        return self._code.get(action, -1)

    def buying(self, place: str) -> int:
        """Return the code of buying somewhere."""
        name = self.spec.verb if self.spec.rules.buy == "single" else f"{self.spec.verb} {place}"
        return self.code(name)

    def after(self, state: int, action: int, told: frozenset[str] = frozenset()) -> int:
        """Return the state an action leads to; -1 where it is not legal.

        A phase whose goals are complete hands over to the next at once, unless somebody opens that phase
        in so many words (``told``); until then one waits.
        """
        there = self._next[action][state]
        if there < 0 or there == self.end:
            return there
        if self._handover[there] == there and there // self.n_cells == state // self.n_cells:
            return there  # only the square is another one
        return self._settled(there, self.phase(state), told)

    def is_taken_by_arriving(self, place: str) -> bool:
        """Whether stepping onto a place uses it, so that no action does."""
        owner = self.spec.finish if place == FINISH else self.spec.sections.get(place)
        return owner is not None and owner.symbol in self.spec.arrival_symbols

    def is_near(self, cells: Collection[int], place: str) -> bool:
        """Whether a place is in reach of one of these cells."""
        return not self.reach.get(place, frozenset()).isdisjoint(cells)

    def tell(self, position: Position, phase: str, told: frozenset[str] = frozenset()) -> Position:
        """Return the position after somebody opened a phase; earlier phases are never opened again."""
        number = self.phases.index(phase)
        if position.state == self.end or number <= self.phase(position.state):
            return position
        mode, cell = divmod(position.state, self.n_cells)
        opened = self._mode.get((int(self.grid.progress[mode]), number))
        if opened is None:
            return position
        return replace(position, state=self._settled(opened * self.n_cells + cell, number, told))

    def _settled(self, state: int, phase: int, told: frozenset[str]) -> int:
        """The state once a phase's goals are complete: the next one, or waiting until somebody opens it."""
        state = self._handover[state]
        if state == self.end or self.phase(state) == phase or self.phases[phase + 1] not in told:
            return state
        mode, cell = divmod(state, self.n_cells)
        waiting = self._mode.get((int(self.grid.progress[mode]), phase))
        return state if waiting is None else waiting * self.n_cells + cell

    def way(self, cell: int, place: str, heading: int | None) -> list[int] | None:
        """Return the shortest way to where a place can be used, as headings; None where there is none.

        Of several equally short ways the one that keeps going straight longest is taken.
        """
        key = (cell, place, heading)
        if key not in self._ways:
            self._ways[key] = self._way(cell, place, heading)
        return self._ways[key]

    def _way(self, cell: int, place: str, heading: int | None) -> list[int] | None:
        distance = self._distance.get(place)
        if distance is None or distance[cell] >= FAR:
            return None
        found: list[int] = []
        while distance[cell]:
            near = distance[cell] - 1
            open_ways = [
                way
                for way, there in enumerate(self.neighbour[cell])
                if there >= 0 and distance[there] == near and (near == 0 or there not in self._ending)
            ]
            way = heading if heading in open_ways else open_ways[0]
            assert way is not None  # noqa: S101 - a cell at distance d has a neighbour at d - 1
            found.append(way)
            heading, cell = way, self.neighbour[cell][way]
        return found

    def straight(self, cell: int, heading: int, place: str) -> int | None:
        """Return how many squares straight on a place comes into reach; None where it does not."""
        cells, squares = self.reach.get(place, frozenset()), 0
        while cell not in cells:
            cell = self.neighbour[cell][heading]
            if cell < 0:
                return None
            squares += 1
        return squares

    def _distances(self, goals: frozenset[int]) -> list[int]:
        found = [FAR] * self.n_cells
        queue = deque(goals)
        for cell in goals:
            found[cell] = 0
        while queue:
            cell = queue.popleft()
            if cell in self._ending and cell not in goals:
                continue  # the way on would end the task
            for there in self._into[cell]:
                if found[there] == FAR:
                    found[there] = found[cell] + 1
                    queue.append(there)
        return found


def places_in_reach(states: GridStates) -> dict[str, frozenset[int]]:
    """Return the cells from which each place can be used, by its name in the route language."""
    spec = states.spec
    symbols: dict[str, tuple[str, str]] = {
        name: (section.symbol, spec.reach_of(name)) for name, section in spec.sections.items()
    }
    symbols[START] = (spec.map.start, "on")
    if spec.finish:
        symbols[FINISH] = (spec.finish.symbol, spec.finish.reach)
    if spec.exit:
        symbols[EXIT] = (spec.exit.symbol, "on")
    return {
        place: frozenset(states.grid.cells_reaching(symbol, reach).tolist())
        for place, (symbol, reach) in symbols.items()
    }


def _require_sayable(task: TaskModel, spec: TaskSpec) -> None:
    """Raise if the route language cannot tell the ways through a task."""
    why = ""
    if spec.rules.diagonal != "none":
        why = f"has diagonal moves (rules.diagonal = {spec.rules.diagonal!r}), for which there are no words"
    elif task.also_starts:
        why = f"has {len(task.starts)} starts, and words do not tell in which one somebody begins"
    elif spec.hidden:
        why = "has hidden cells, and words do not tell what somebody saw"
    if why:
        raise GroundingError(
            f"{task.name} {why}: words cannot be turned into moves on it. Ground dialogs on a task without "
            "that, or give the moves as a table of steps."
        )


def _sayable(task: TaskModel) -> NDArray[np.int32]:
    """Where each action leads, [S, A]; -1 where not legal, and for bumps: there are no words for them."""
    there = task.next_state
    if task.grid is None or not task.grid.grid.bumps:
        return there
    blocked = task.grid.grid.neighbour < 0
    there[: task.grid.end, : blocked.shape[1]][np.tile(blocked, (len(task.grid.progress), 1))] = -1
    return there


def _steps(task: TaskModel, move_code: Sequence[int]) -> list[list[int]]:
    """Where a step leads, by heading and state: -1 where it is not legal, or :data:`CHANGES`."""
    assert task.grid is not None  # noqa: S101 - only tasks with a map are walked on
    neighbour = task.grid.grid.neighbour
    there = np.asarray(task.next_state)[:, move_code].astype(np.int64)
    states = np.arange(len(there))[:, np.newaxis]
    there[neighbour[states[:, 0] % len(neighbour)] < 0] = -1
    is_same = (np.asarray(task.handover)[there] == there) & (
        there // len(neighbour) == states // len(neighbour)
    )
    there[(there >= 0) & (there != task.grid.end) & ~is_same] = CHANGES
    found: list[list[int]] = there.T.tolist()
    return found


Code = Literal[
    "blocked",
    "guessed_distance",
    "filled_in",
    "not_in_line",
    "unreachable",
    "no_heading",
    "after_end",
    "not_here",
]

DOUBTFUL: frozenset[str] = frozenset(
    {"blocked", "guessed_distance", "not_in_line", "unreachable", "no_heading", "not_here"}
)
"""Issues after which a person should look at the segment."""

MEANING: dict[Code, str] = {
    "blocked": "a shelf or wall is in the way before the number of squares is reached",
    "guessed_distance": "nobody said how far, and nothing that follows tells",
    "filled_in": "something is taken away from its shelf; the way there was filled in",
    "not_in_line": "the place does not come into reach in that direction; the way there was filled in",
    "unreachable": "there is no way to that place, or the task has none such",
    "no_heading": "a turn before the first move, when the figure faces nowhere; read on the map",
    "after_end": "said after the task had ended",
    "not_here": "the action is not legal in this state",
}
"""What each issue means."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Something a program asks for that the map does not give as said.

    Parameters
    ----------
    code : str
        What kind of issue, see :data:`MEANING`.
    instruction : int
        The number of the instruction, from 0.
    """

    code: Code
    instruction: int


_issue = lru_cache(maxsize=1024)(Issue)  # there are few, and replays are many


@dataclass(slots=True)
class Replay:
    """A program's moves on the map.

    Parameters
    ----------
    actions : list of int
        The codes of the actions; -1 is one the task leaves out, such as leaving.
    states : list of int
        The states they are taken in.
    inferred : list of bool
        Whether the planner filled the action in.
    instruction : list of int
        Which instruction each action belongs to.
    end : Position
        Where one is afterwards.
    issues : list of Issue
        Where the map did not give what was said.
    """

    actions: list[int]
    states: list[int]
    inferred: list[bool]
    instruction: list[int]
    end: Position
    issues: list[Issue] = field(default_factory=list)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The codes of issues that a person should look at, each once."""
        return tuple(dict.fromkeys(issue.code for issue in self.issues if issue.code in DOUBTFUL))

    def __len__(self) -> int:
        return len(self.actions)


def replay(
    program: Sequence[Instruction],
    terrain: Terrain,
    position: Position,
    *,
    told: frozenset[str] = frozenset(),
) -> Replay:
    """Expand a route program on the map.

    Parameters
    ----------
    program : sequence of Instruction
        What was said.
    terrain : Terrain
        The map.
    position : Position
        Where the person is.
    told : frozenset of str
        The phases that somebody opens in so many words in this dialog; others open when the goals before
        them are complete.

    Examples
    --------
    >>> import fidm
    >>> from fidm.grounding.route.program import parse_program
    >>> from fidm.grounding.route.replay import Terrain
    >>> terrain = Terrain(fidm.load_task("grocery"))
    >>> done = replay(parse_program("MOVE left 1; MOVE up 2", terrain.places), terrain, terrain.start())
    >>> [terrain.task.actions[action] for action in done.actions]
    ['W', 'N', 'N']
    """
    walk = _Walk(terrain, position, told)
    for i, step in enumerate(program):
        walk.number = i
        if step.op == "NONE":
            continue
        if walk.state == terrain.end and step.op != "LEAVE":
            walk.say("after_end")
            continue
        following = program[i + 1] if i + 1 < len(program) else None
        before = program[i - 1] if i else None
        _STEPS[step.op](walk, step, following, before)
    return walk.done()


class _Walk:
    """A walk in progress."""

    def __init__(self, terrain: Terrain, position: Position, told: frozenset[str]) -> None:
        self.terrain, self.told = terrain, told
        self.state, self.heading = position.state, position.heading
        self.before = position.trail
        self.cells: list[int] = []
        self.number = 0
        self.made = Replay([], [], [], [], position)

    @property
    def cell(self) -> int:
        return self.terrain.cell(self.state)

    def say(self, code: Code) -> None:
        self.made.issues.append(_issue(code, self.number))

    def act(self, action: int) -> bool:
        """Take an action if it is legal."""
        there = self.terrain.after(self.state, action, self.told)
        if there < 0:
            return False
        self.note(action)
        self.state = there
        return True

    def note(self, action: int) -> None:
        """Note an action; -1 is one the task leaves out."""
        self.made.actions.append(action)
        self.made.states.append(self.state)
        self.made.inferred.append(False)
        self.made.instruction.append(self.number)

    def go(self, heading: int, *, inferred: bool = False) -> bool:
        """Take one step if nothing is in the way."""
        return self.along((heading,), inferred=inferred)

    def along(self, headings: Iterable[int], *, inferred: bool = False) -> bool:
        """Take step after step; return whether nothing was in the way."""
        terrain, made, cells, begun = self.terrain, self.made, self.cells, len(self.made.states)
        is_free = True
        for heading in headings:
            there = terrain.onward[heading][self.state]
            if there == CHANGES:
                there = terrain.after(self.state, terrain.move_code[heading], self.told)
            if there < 0:
                is_free = False
                break
            made.actions.append(terrain.move_code[heading])
            made.states.append(self.state)
            cells.append(self.state % terrain.n_cells)
            self.heading, self.state = heading, there
        taken = len(made.states) - begun
        made.inferred.extend([inferred] * taken)
        made.instruction.extend([self.number] * taken)
        return is_free

    def find(self, place: str) -> bool:
        """Go to a place by the planner's way."""
        way = self.terrain.way(self.cell, place, self.heading)
        if way is None:
            self.say("unreachable")
            return False
        return self.along(way, inferred=True)

    def facing(self, way: str) -> int:
        """The heading a MOVE or TURN means."""
        if way == "ahead" or way == "around":
            heading = self.heading
            if heading is None:
                self.say("no_heading")
                heading = HEADINGS["up"]
            return OPPOSITE[heading] if way == "around" else heading
        return HEADINGS[way]

    def done(self) -> Replay:
        trail = tuple(self.cells) if self.cells else self.before
        self.made.end = Position(self.state, self.heading, trail)
        return self.made


def _move(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    heading = walk.facing(step.way)
    if step.place:
        squares = walk.terrain.straight(walk.cell, heading, step.place)
        if squares is None:
            walk.say("not_in_line")
            walk.find(step.place)
            return
        _straight(walk, heading, squares)
    elif step.to_end:
        walk.heading = heading
        if not walk.go(heading):
            walk.say("blocked")
        walk.along(repeat(heading))
    elif step.squares is not None:
        _straight(walk, heading, step.squares)
    else:
        _unmeasured(walk, heading, following)


def _straight(walk: _Walk, heading: int, squares: int) -> None:
    walk.heading = heading
    if not walk.along(repeat(heading, squares)):
        walk.say("blocked")


def _unmeasured(walk: _Walk, heading: int, following: Instruction | None) -> None:
    """Go on until what follows becomes possible."""
    walk.heading = heading
    across = None
    if following is not None and following.op == "TURN" and following.way in ("left", "right"):
        across = LEFT_OF[heading] if following.way == "left" else RIGHT_OF[heading]
    elif following is not None and following.op == "MOVE" and following.way in HEADINGS:
        other = HEADINGS[following.way]
        across = other if other not in (heading, OPPOSITE[heading]) else None
    place = _goal(following)
    if across is not None:
        if not walk.go(heading):
            walk.say("blocked")
            return
        while walk.terrain.neighbour[walk.cell][across] < 0:
            if not walk.go(heading):
                walk.say("guessed_distance")
                return
    elif place and (squares := walk.terrain.straight(walk.cell, heading, place)) is not None:
        _straight(walk, heading, squares)
    elif place:
        walk.say("not_in_line")
    else:
        walk.say("guessed_distance")
        walk.along(repeat(heading), inferred=True)


def _goal(following: Instruction | None) -> str:
    """The place the next instruction is about."""
    if following is None:
        return ""
    return {"PAY": FINISH, "LEAVE": EXIT}.get(following.op, following.place)


def _turn(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if walk.heading is None and step.way in HEADINGS:
        walk.say("no_heading")
        walk.heading = HEADINGS[step.way]
        return
    if step.way == "around":
        walk.heading = walk.facing("around")
    elif walk.heading is not None:
        walk.heading = (LEFT_OF if step.way == "left" else RIGHT_OF)[walk.heading]
    if (
        following is not None
        and following.op == "TURN"
        and following.way != "around"
        and step.way != "around"
    ):
        _unmeasured(walk, walk.heading if walk.heading is not None else 0, following)


def _goto(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    _approach(walk, step.place, before)


def _approach(walk: _Walk, place: str, before: Instruction | None) -> None:
    """Go to a place: straight on after a turn, where that leads there."""
    if before is not None and before.op == "TURN" and walk.heading is not None:
        squares = walk.terrain.straight(walk.cell, walk.heading, place)
        if squares is not None:
            _straight(walk, walk.heading, squares)
            return
    walk.find(place)


def _along(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if step.place:
        _goto(walk, step, following, before)
        return
    neighbour = walk.terrain.neighbour
    for _ in range(walk.terrain.n_cells):
        back = None if walk.heading is None else OPPOSITE[walk.heading]
        ways = [way for way, there in enumerate(neighbour[walk.cell]) if there >= 0 and way != back]
        has_begun = walk.made.instruction[-1:] == [walk.number]
        if len(walk.cells) and has_begun and len(ways) != 1:
            return
        way = walk.heading if walk.heading in ways else ways[0] if len(ways) == 1 else None
        if way is None or not walk.go(way):
            walk.say("blocked")
            return


def _back(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    if step.place:
        _goto(walk, step, following, before)
        return
    if step.squares is not None:
        _straight(walk, walk.facing("around"), step.squares)
        return
    if following is not None and following.op in ("MOVE", "TURN", "ALONG"):
        walk.heading = walk.facing("around")
        if following.op == "TURN":
            _unmeasured(walk, walk.heading, following)
        return
    if following is not None and _goal(following):
        return
    walk.say("guessed_distance")
    begun = len(walk.cells)
    for cell in reversed((walk.cells or list(walk.before))[-walk.terrain.n_cells :]):
        ways = walk.terrain.neighbour[walk.cell]
        if cell not in ways or not walk.go(ways.index(cell), inferred=True):
            break
    walk.cells = walk.cells[begun:]  # the way there is used up; kept, it would double with every BACK


def _use(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    finish = walk.terrain.spec.finish
    if step.op == "BUY":
        place, action = step.place, walk.terrain.buying(step.place)
    elif finish is not None:
        place, action = FINISH, walk.terrain.code(finish.action)
    else:
        walk.say("unreachable")
        return
    if walk.cell not in walk.terrain.reach.get(place, frozenset()):
        walk.say("filled_in")
        _approach(walk, place, before)
    if walk.terrain.is_taken_by_arriving(place):
        return
    if action < 0 or not walk.act(action):
        walk.say("not_here")


def _leave(walk: _Walk, step: Instruction, following: Instruction | None, before: Instruction | None) -> None:
    leaving = walk.terrain.spec.exit
    if leaving is None:
        walk.say("unreachable")
        return
    action = walk.terrain.code(leaving.action)
    if walk.state != walk.terrain.end and walk.cell not in walk.terrain.reach[EXIT]:
        walk.say("filled_in")
        _approach(walk, EXIT, before)
    if action < 0:
        walk.note(-1)
    elif not walk.act(action):
        walk.say("not_here")


_STEPS = {
    "MOVE": _move,
    "TURN": _turn,
    "GOTO": _goto,
    "ALONG": _along,
    "BACK": _back,
    "BUY": _use,
    "PAY": _use,
    "LEAVE": _leave,
}
