"""The map as a walker meets it: neighbours, what can be reached from where, and the ways there.

Made once per task from its compiled arrays; the replay of every segment looks things up here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from fidm.errors import GroundingError
from fidm.grounding.route.program import EXIT, FINISH, START
from fidm.tasks.grid import MOVES
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
        self._next: list[list[int]] = task.next_state.tolist()
        self._handover: list[int] = task.handover.tolist()
        self._phase: list[int] = task.grid.phase.tolist()
        self.places = tuple(self.spec.sections)
        symbols = {name: (s.symbol, self.spec.reach_of(name)) for name, s in self.spec.sections.items()}
        symbols[START] = (self.spec.map.start, "on")
        if self.spec.finish:
            symbols[FINISH] = (self.spec.finish.symbol, self.spec.finish.reach)
        if self.spec.exit:
            symbols[EXIT] = (self.spec.exit.symbol, "on")
        self.reach: dict[str, frozenset[int]] = {
            place: frozenset(grid.cells_reaching(symbol, reach).tolist())
            for place, (symbol, reach) in symbols.items()
        }
        self._distance = {place: self._distances(cells) for place, cells in self.reach.items()}
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
        there = self._next[state][action]
        return there if there < 0 or there == self.end else self._settled(there, self.phase(state), told)

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
        distance = self._distance.get(place)
        if distance is None or distance[cell] >= FAR:
            return None
        found: list[int] = []
        while distance[cell]:
            near = distance[cell] - 1
            open_ways = [
                way
                for way, there in enumerate(self.neighbour[cell])
                if there >= 0 and distance[there] == near
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
            for there in self.neighbour[cell]:
                if there >= 0 and found[there] == FAR:
                    found[there] = found[cell] + 1
                    queue.append(there)
        return found
