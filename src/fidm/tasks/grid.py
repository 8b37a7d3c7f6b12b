"""Maps: a drawing becomes walkable cells, the moves between them, and what can be reached from where.

Rows run from north to south and columns from west to east. Cells are numbered in reading order;
only cells that can be reached from a start are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.errors import Problem, TaskError
from fidm.tasks.hidden import LETTERS, OPEN, UNSEEN, WALL, WORDS, Hidden
from fidm.types import read_only

if TYPE_CHECKING:
    from fidm.tasks.spec import TaskSpec

MOVES = ("N", "S", "E", "W")
"""The four movements, in the order of their action codes."""

DIAGONALS = ("NE", "SW", "SE", "NW")
"""The diagonal movements of tasks that have them; of all movements 2i and 2i + 1 are opposite."""

_STEPS = {
    "N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1),
    "NE": (-1, 1), "SW": (1, -1), "SE": (1, 1), "NW": (-1, -1),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The walkable cells of a map. Hidden cells are among them: each may turn out to be a wall.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the drawing.
    symbol : str array [rows, columns]
        The drawing itself.
    row, column : int array [C]
        Where each walkable cell lies, counted from 0.
    neighbour : int array [C, W]
        The cell that each movement leads to from each cell, or -1 where the way is not free.
    start : int
        The cell an episode begins in; of several, the first.
    cut_off : int array [n, 2]
        Row and column of the walkable cells that cannot be reached from a start.
    moves : tuple of str
        The W movements: north, south, east and west, and the diagonal ones where there are any.
    starts : tuple of int
        The cells an episode may begin in.
    bumps : bool
        Whether a movement is also legal where the way is not free; one then stays where one is.
    """

    shape: tuple[int, int]
    symbol: NDArray[np.str_]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    neighbour: NDArray[np.int32]
    start: int
    cut_off: NDArray[np.int32]
    moves: tuple[str, ...]
    starts: tuple[int, ...]
    bumps: bool

    @property
    def n_cells(self) -> int:
        """The number of walkable cells."""
        return len(self.row)

    @classmethod
    def draw(cls, spec: TaskSpec) -> Grid:
        """Read the drawing of a task whose map is known to be well formed."""
        symbol = _letters(spec.rows)
        walkable = np.isin(symbol, walkable_symbols(spec))
        number = np.full(symbol.shape, -1, dtype=np.int32)
        number[walkable] = np.arange(walkable.sum())
        row, column = np.nonzero(walkable)
        moves = moves_of(spec)
        neighbour = _neighbours(spec, number, symbol, moves)
        starts = np.flatnonzero(symbol[walkable] == spec.map.start)
        reached = _reached(neighbour, starts)
        renumber = np.full(len(row) + 1, -1, dtype=np.int32)
        renumber[reached] = np.arange(len(reached))
        return cls(
            shape=(symbol.shape[0], symbol.shape[1]),
            symbol=read_only(symbol),
            row=read_only(row[reached].astype(np.int32)),
            column=read_only(column[reached].astype(np.int32)),
            neighbour=read_only(renumber[neighbour[reached]]),
            start=int(renumber[starts[0]]),
            cut_off=read_only(np.stack([row, column], axis=1)[renumber[:-1] < 0].astype(np.int32)),
            moves=moves,
            starts=tuple(renumber[starts].tolist()),
            bumps=spec.rules.bumps == "stay",
        )

    @property
    def arrival(self) -> NDArray[np.int32]:
        """Where each movement leads from each cell, [C, W]: bumps stay; -1 where it is not legal."""
        if not self.bumps:
            return self.neighbour
        stay = np.arange(self.n_cells, dtype=np.int32)[:, None]
        return np.where(self.neighbour < 0, stay, self.neighbour)

    @staticmethod
    def direction(move: str) -> tuple[int, int]:
        """Return how many columns to the east and rows to the south a movement goes."""
        down, right = _STEPS[move]
        return right, down

    def cells_on(self, symbol: str) -> NDArray[np.int64]:
        """Return the walkable cells drawn with a symbol."""
        return np.flatnonzero(self.symbol[self.row, self.column] == symbol)

    def cells_beside(self, symbol: str) -> NDArray[np.int64]:
        """Return the walkable cells with a symbol directly north, south, east or west of them."""
        drawn = np.pad(self.symbol == symbol, 1)
        row, column = self.row + 1, self.column + 1
        beside = np.zeros(self.n_cells, dtype=np.bool_)
        for down, right in (_STEPS[way] for way in MOVES):
            beside |= drawn[row + down, column + right]
        return np.flatnonzero(beside)

    def cells_reaching(self, symbol: str, reach: str) -> NDArray[np.int64]:
        """Return the cells from which a place can be used: beside it, on it, or anywhere.

        A place that is used by arriving is used on its own cells.
        """
        if reach == "anywhere":
            return np.arange(self.n_cells)
        return self.cells_beside(symbol) if reach == "adjacent" else self.cells_on(symbol)

    def distances(self) -> NDArray[np.float64]:
        """Return the fewest moves between any two cells, [C, C]; for maps of ordinary size."""
        return np.asarray(csgraph.shortest_path(_graph(self.neighbour), unweighted=True))


@dataclass(frozen=True, slots=True, eq=False)
class GridStates:
    """Where each state of a drawn task is, what has been done in it, and which phase it is in.

    State ``mode * n_cells + cell`` stands for a cell together with a *mode*: the set of targets
    completed, the active phase and what is known of hidden cells. The last state is the end of the task.

    Parameters
    ----------
    grid : Grid
        The walkable cells.
    spec : TaskSpec
        The description the task was made from.
    progress : int array [M]
        The targets completed in each mode, one bit each, in the order of ``spec.targets``.
    phase : int array [M]
        The active phase of each mode.
    hidden : Hidden or None
        The hidden cells, where there are any. The modes of each level of what is known of them follow each
        other.
    """

    grid: Grid
    spec: TaskSpec
    progress: NDArray[np.int64]
    phase: NDArray[np.int32]
    hidden: Hidden | None = None

    @property
    def end(self) -> int:
        """The number of the state in which the task has ended."""
        return len(self.progress) * self.grid.n_cells

    def cell(self, state: int) -> tuple[int, int] | None:
        """Return row and column of a state, counted from 0; None at the end."""
        if state == self.end:
            return None
        cell = state % self.grid.n_cells
        return int(self.grid.row[cell]), int(self.grid.column[cell])

    def completed(self, state: int) -> tuple[str, ...]:
        """Return the targets completed in a state."""
        if state == self.end:
            return ()
        progress = int(self.progress[state // self.grid.n_cells])
        return tuple(t for bit, t in enumerate(self.spec.targets) if progress >> bit & 1)

    def state(
        self,
        cell: tuple[int, int],
        completed: Sequence[str] = (),
        phase: str | None = None,
        known: str | None = None,
    ) -> int:
        """Return the number of a state, given its row and column (from 0), completed targets and phase.

        ``known`` says what is known of each hidden cell, in reading order: ``?`` nothing, ``#`` a wall, ``.``
        open, and, where entering a cell that was seen before pays once, ``+`` entered. By default nothing.
        """
        done = (completed,) if isinstance(completed, str) else tuple(completed)
        phases = [p.name for p in self.spec.phases]
        wanted = phases[0] if phase is None else phase
        for given, has, what in (
            ([wanted], phases, "phase"),
            (done, self.spec.targets, "target"),
        ):
            for name in given:
                if name not in has:
                    raise TaskError(f"{self.spec.name} has no {what} {name!r}. It has: {', '.join(has)}.")
        places = np.flatnonzero((self.grid.row == cell[0]) & (self.grid.column == cell[1]))
        if not len(places):
            raise TaskError(f"{self.spec.name}: nobody can stand in row {cell[0] + 1}, column {cell[1] + 1}.")
        progress = sum(1 << self.spec.targets.index(target) for target in set(done))
        modes = np.flatnonzero((self.progress == progress) & (self.phase == phases.index(wanted)))
        if not len(modes):
            raise TaskError(
                f"{self.spec.name}: nobody can be in phase {wanted} with {', '.join(done) or 'nothing'} "
                "completed."
            )
        mode = int(modes[0]) + (self._level(known) if known is not None else 0) * self._modes_per_level
        return mode * self.grid.n_cells + int(places[0])

    def _level(self, known: str) -> int:
        if self.hidden is None:
            raise TaskError(f"{self.spec.name} has no hidden cells, so there is nothing to know of any.")
        return self.hidden.level(known, self.spec.name)

    @property
    def has_bumps(self) -> bool:
        """Whether there are movements that lead nowhere: into what is in the way, or may be."""
        return self.grid.bumps or self.hidden is not None

    @property
    def _modes_per_level(self) -> int:
        return len(self.progress) // (1 if self.hidden is None else len(self.hidden.known))

    def known(self, state: int) -> tuple[tuple[int, int, str], ...]:
        """Return row and column of every hidden cell, and what a state knows of it: ``? # .`` or ``+``."""
        if self.hidden is None or state == self.end:
            return ()
        level = self.hidden.known[state // self.grid.n_cells // self._modes_per_level]
        row, column = self.grid.row[self.hidden.cells], self.grid.column[self.hidden.cells]
        return tuple(zip(row.tolist(), column.tolist(), (LETTERS[what] for what in level), strict=True))

    def onward(
        self, state: NDArray[np.integer], way: NDArray[np.integer], following: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the cells that movements lead to; -1 where they are not legal, -2 where nobody knows.

        ``way`` holds codes of movements and ``state`` no end. What a movement into an unknown cell led to is
        seen from ``following``, the states after it (-1 where they were not recorded).
        """
        cell = state % self.grid.n_cells
        there: NDArray[np.int64] = self.grid.arrival[cell, way].astype(np.int64)
        if self.hidden is None:
            return there
        which = np.where(there >= 0, self.hidden.number[there], -1)
        level = state // self.grid.n_cells // self._modes_per_level
        known = np.where(which >= 0, self.hidden.known[level, which], OPEN)
        is_recorded = (following >= 0) & (following < self.end)
        led = np.where(is_recorded, following % self.grid.n_cells, -2)
        blocked = np.where(self.grid.bumps, cell, -1)
        return np.asarray(np.select([known == WALL, known == UNSEEN], [blocked, led], there))

    def after(self, state: int, action: str | None, following: int = -1) -> int:
        """Return the cell that a movement leads to in a state; below 0 where it is none, or nobody knows."""
        if action not in self.grid.moves or state == self.end:
            return -1
        way = self.grid.moves.index(action)
        return int(self.onward(np.array([state]), np.array([way]), np.array([following]))[0])

    def states_of(self, completed: Sequence[str] = (), phase: str | None = None) -> slice:
        """Return the states of all cells, in the order of the grid, with these targets completed.

        Of hidden cells nothing is known in them.
        """
        corner = (int(self.grid.row[0]), int(self.grid.column[0]))
        first = self.state(corner, completed, phase)
        return slice(first, first + self.grid.n_cells)

    def labelled(self, symbol: str) -> list[NDArray[np.int64]]:
        """Return row and column of the cells a name belongs to, [n, 2]; every start has a name of its own."""
        cells = np.argwhere(self.grid.symbol == symbol)
        return np.split(cells, len(cells)) if symbol == self.spec.map.start else [cells]

    def doors(self) -> list[tuple[int, int, int, int]]:
        """Return row and column of every one-way door, and the rows and columns a step through it goes."""
        found = self.spec.map.one_way.items()
        cells = [(cell, _STEPS[way]) for symbol, way in found for cell in self._drawn(symbol)]
        return [(*cell, *step) for cell, step in cells]

    def prices(self) -> list[tuple[int, int, float]]:
        """Return row and column of every cell with a price, and how far it is from a plain step's, to 1."""
        apart = {symbol: abs(price - self.spec.rewards.move) for symbol, price in self.spec.costs.items()}
        most = max(apart.values(), default=0.0) or 1.0
        return [(*cell, far / most) for symbol, far in apart.items() for cell in self._drawn(symbol)]

    @property
    def hidden_cells(self) -> tuple[int, ...]:
        """The numbers of the hidden cells, and how many things may be known of each."""
        if self.hidden is None:
            return ()
        return (*self.hidden.cells.tolist(), *self.hidden.known[-1].tolist())

    def unseen(self) -> list[tuple[int, int]]:
        """Return row and column of every hidden cell."""
        return [cell for symbol in self.spec.hidden for cell in self._drawn(symbol)]

    def _drawn(self, symbol: str) -> list[tuple[int, int]]:
        return [(int(row), int(column)) for row, column in np.argwhere(self.grid.symbol == symbol)]

    def way_of(self, states: Sequence[int], actions: Sequence[str | None]) -> list[tuple[int, int] | None]:
        """Return row and column of all states of an episode, the place too where its last step ended it.

        ``states`` are those the actions were taken in, and the one after the last.
        """
        cells = [self.cell(state) for state in states]
        if len(cells) > 1 and cells[-1] is None and cells[-2] is not None:
            there = self.after(int(states[-2]), actions[-1])
            cells[-1] = None if there < 0 else (int(self.grid.row[there]), int(self.grid.column[there]))
        return cells

    def describe(self, state: int) -> str:
        """Say in words which state this is."""
        place = self.cell(state)
        if place is None:
            return "the end of the task"
        phase = self.spec.phases[int(self.phase[state // self.grid.n_cells])].name
        done = ", ".join(self.completed(state)) or "nothing yet"
        said = f"row {place[0] + 1}, column {place[1] + 1}, phase {phase}, completed: {done}"
        hidden = [f"({row + 1}, {column + 1}) {WORDS[what]}" for row, column, what in self.known(state)]
        return f"{said}, hidden cells: {', '.join(hidden)}" if hidden else said


def moves_of(spec: TaskSpec) -> tuple[str, ...]:
    """Return the movements of a task, in the order of their action codes."""
    return MOVES if spec.rules.diagonal == "none" else (*MOVES, *DIAGONALS)


def walkable_symbols(spec: TaskSpec) -> list[str]:
    """Return the symbols one can stand on."""
    symbols = [spec.map.floor, spec.map.start]
    symbols += [s.symbol for name, s in spec.sections.items() if spec.reach_of(name) in ("on", "arrive")]
    if spec.finish and spec.finish.reach in ("on", "arrive"):
        symbols.append(spec.finish.symbol)
    if spec.exit:
        symbols.append(spec.exit.symbol)
    declared = _symbol_keys(spec)
    symbols += [symbol for symbol in spec.costs if declared[symbol][0].startswith("costs.")]
    return [*symbols, *spec.hidden, *spec.map.one_way]


def map_problems(spec: TaskSpec) -> list[Problem]:
    """Return what is wrong with a task's map: its symbols, its shape, and what cannot be reached."""
    used = _symbol_keys(spec)
    problems = [
        Problem(f"both use the symbol {symbol!r}.", " and ".join(keys))
        for symbol, keys in used.items()
        if len(keys) > 1
    ]
    rows = spec.rows
    if not rows or not rows[0]:
        return [*problems, Problem("is empty.", "map.drawing")]
    width = max(len(row) for row in rows)
    problems += [
        Problem(f"has {len(row)} cells, the widest row has {width}.", f"map.drawing, row {i}")
        for i, row in enumerate(rows, start=1)
        if len(row) != width
    ]
    drawn = set("".join(rows))
    for symbol in sorted(drawn - used.keys()):
        i, j = next((i, r.index(symbol)) for i, r in enumerate(rows) if symbol in r)
        what = f"has {symbol!r} at column {j + 1}, a symbol nothing declares."
        problems.append(Problem(what, f"map.drawing, row {i + 1}"))
    for symbol, keys in used.items():
        if symbol not in drawn and keys[0] not in ("map.wall", "map.floor"):
            problems.append(Problem(f"is {symbol!r}, which is not on the map.", keys[0]))
    starts = sum(row.count(spec.map.start) for row in rows)
    if starts > 1 and spec.rules.starts == "one":
        what = f"is {spec.map.start!r}, which is on the map {starts} times, not once."
        hint = 'Set rules.starts = "several" if an episode may begin in any of them.'
        problems.append(Problem(what, "map.start", hint=hint))
    walkable = walkable_symbols(spec)
    for symbol in spec.costs:
        if symbol == spec.map.floor:
            hint = "What a step onto plain floor pays is rewards.move."
            problems.append(Problem("is the symbol of the floor.", f"costs.{symbol}", hint=hint))
        elif symbol not in walkable:
            problems.append(Problem("is the symbol of cells nobody can stand on.", f"costs.{symbol}"))
    return problems or [*_reach_problems(spec), *_door_problems(spec), *_start_problems(spec)]


def _reach_problems(spec: TaskSpec) -> list[Problem]:
    """Targets and places that nobody can get to on a well-formed map."""
    grid = Grid.draw(spec)
    known = [(name, spec.sections[name].symbol) for name in spec.targets if name in spec.sections]
    places = [(f"sections.{name}", symbol, spec.reach_of(name)) for name, symbol in known]
    if spec.finish:
        places.append(("finish", spec.finish.symbol, spec.finish.reach))
    return [
        Problem(f"cannot be reached from the start: no way leads to {symbol!r}.", where)
        for where, symbol, reach in places
        if not len(grid.cells_reaching(symbol, reach))
    ]


def _start_problems(spec: TaskSpec) -> list[Problem]:
    """Starts from which a hidden cell is seen: an episode would begin in one of several states."""
    if spec.rules.reveal != "beside":
        return []
    grid = Grid.draw(spec)
    beside = {int(cell) for symbol in spec.hidden for cell in grid.cells_beside(symbol)}
    return [
        Problem(
            f"has a start at column {grid.column[cell] + 1}, directly beside a hidden cell, which would be "
            "seen before the first action.",
            f"map.drawing, row {grid.row[cell] + 1}",
            hint='Leave a cell between them, or set rules.reveal = "on_entering".',
        )
        for cell in grid.starts
        if cell in beside
    ]


def _door_problems(spec: TaskSpec) -> list[Problem]:
    """Cells behind one-way doors that one can walk onto and never leave: nothing would be legal there."""
    if not spec.map.one_way:
        return []
    grid = Grid.draw(spec)
    ends = np.zeros(grid.n_cells, dtype=np.bool_)
    if spec.finish and spec.finish.ends and len(spec.phases) == 1:
        ends[grid.cells_reaching(spec.finish.symbol, spec.finish.reach)] = True
    stuck = np.flatnonzero((grid.neighbour < 0).all(axis=1) & ~ends)
    return [
        Problem(
            f"has {str(grid.symbol[grid.row[cell], grid.column[cell]])!r} at column {grid.column[cell] + 1}, "
            "a cell that can be walked onto and never left.",
            f"map.drawing, row {grid.row[cell] + 1}",
            hint="Open a way on from there, or turn the one-way door before it.",
        )
        for cell in stuck.tolist()
    ]


def _symbol_keys(spec: TaskSpec) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    pairs = [(f"map.{name}", getattr(spec.map, name)) for name in ("wall", "floor", "start")]
    pairs += [(f"sections.{name}.symbol", s.symbol) for name, s in spec.sections.items()]
    if spec.finish:
        pairs.append(("finish.symbol", spec.finish.symbol))
    if spec.exit:
        pairs.append(("exit.symbol", spec.exit.symbol))
    pairs += [(f"hidden.{symbol}", symbol) for symbol in spec.hidden]
    pairs += [(f"map.one_way.{symbol}", symbol) for symbol in spec.map.one_way]
    for key, symbol in pairs:
        keys.setdefault(symbol, []).append(key)
    for symbol in spec.costs:
        keys.setdefault(symbol, [f"costs.{symbol}"])  # a price may also be put on a place of another kind
    return keys


def _letters(rows: tuple[str, ...]) -> NDArray[np.str_]:
    codes = np.array([np.frombuffer(row.encode("utf-32-le"), dtype="<u4") for row in rows])
    return np.ascontiguousarray(codes).view("<U1").reshape(len(rows), -1)


def _neighbours(
    spec: TaskSpec, number: NDArray[np.int32], symbol: NDArray[np.str_], moves: tuple[str, ...]
) -> NDArray[np.int32]:
    """The cell each movement leads to, [C, W]; -1 at walls, at corners, and against one-way doors."""
    row, column = np.nonzero(number >= 0)
    padded = np.pad(number, 1, constant_values=-1)
    steps = {way: _STEPS[way] for way in moves}
    beyond = {way: padded[row + 1 + down, column + 1 + right] for way, (down, right) in steps.items()}
    one_way = {way: [s for s, leads in spec.map.one_way.items() if leads != way] for way in moves}
    found = []
    for way in moves:
        there = beyond[way]
        if way in DIAGONALS and spec.rules.diagonal == "no_corner_cutting":
            there = np.where((beyond[way[0]] < 0) | (beyond[way[1]] < 0), -1, there)
        if spec.map.one_way:  # every step onto or off a door goes its way
            closed = np.append(np.isin(symbol[row, column], one_way[way]), False)
            there = np.where(closed[:-1] | closed[there], -1, there)
        found.append(there)
    return np.stack(found, axis=1)


def _reached(neighbour: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cells that can be reached from any of the starts, in order."""
    seen = np.zeros(len(neighbour), dtype=np.bool_)
    graph = _graph(neighbour)
    for start in starts.tolist():
        if not seen[start]:
            seen[csgraph.breadth_first_order(graph, start, return_predecessors=False)] = True
    return np.flatnonzero(seen)


def _graph(neighbour: NDArray[np.int32]) -> sparse.csr_array:
    cell, way = np.nonzero(neighbour >= 0)
    size = len(neighbour)
    begins = np.searchsorted(cell, np.arange(size + 1)).astype(np.int32)
    return sparse.csr_array((np.ones(len(cell)), neighbour[cell, way], begins), shape=(size, size))
