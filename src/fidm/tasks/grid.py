"""Maps: a drawing becomes walkable cells, the moves between them, and what can be reached from where.

Rows run from north to south and columns from west to east. Cells are numbered in reading order;
only cells that can be reached from the start are kept.
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
from fidm.types import read_only

if TYPE_CHECKING:
    from fidm.tasks.spec import TaskSpec

MOVES = ("N", "S", "E", "W")
"""The four movements, in the order of their action codes."""

_STEPS = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The walkable cells of a map.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the drawing.
    symbol : str array [rows, columns]
        The drawing itself.
    row, column : int array [C]
        Where each walkable cell lies, counted from 0.
    neighbour : int array [C, 4]
        The cell north, south, east and west of each, or -1.
    start : int
        The cell an episode begins in.
    cut_off : int array [n, 2]
        Row and column of the walkable cells that cannot be reached from the start.
    """

    shape: tuple[int, int]
    symbol: NDArray[np.str_]
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    neighbour: NDArray[np.int32]
    start: int
    cut_off: NDArray[np.int32]

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
        padded = np.pad(number, 1, constant_values=-1)
        neighbour = np.stack(
            [padded[row + 1 + down, column + 1 + right] for down, right in _STEPS.values()], axis=1
        )
        start = int(number[symbol == spec.map.start][0])
        reached = np.sort(csgraph.breadth_first_order(_graph(neighbour), start, return_predecessors=False))
        renumber = np.full(len(row) + 1, -1, dtype=np.int32)
        renumber[reached] = np.arange(len(reached))
        return cls(
            shape=(symbol.shape[0], symbol.shape[1]),
            symbol=read_only(symbol),
            row=read_only(row[reached].astype(np.int32)),
            column=read_only(column[reached].astype(np.int32)),
            neighbour=read_only(renumber[neighbour[reached]]),
            start=int(renumber[start]),
            cut_off=read_only(np.stack([row, column], axis=1)[renumber[:-1] < 0].astype(np.int32)),
        )

    def cells_on(self, symbol: str) -> NDArray[np.int64]:
        """Return the walkable cells drawn with a symbol."""
        return np.flatnonzero(self.symbol[self.row, self.column] == symbol)

    def cells_beside(self, symbol: str) -> NDArray[np.int64]:
        """Return the walkable cells with a symbol directly north, south, east or west of them."""
        drawn = np.pad(self.symbol == symbol, 1)
        row, column = self.row + 1, self.column + 1
        beside = np.zeros(self.n_cells, dtype=np.bool_)
        for down, right in _STEPS.values():
            beside |= drawn[row + down, column + right]
        return np.flatnonzero(beside)

    def cells_reaching(self, symbol: str, reach: str) -> NDArray[np.int64]:
        """Return the cells from which a place can be used: beside it, on it, or anywhere."""
        if reach == "anywhere":
            return np.arange(self.n_cells)
        return self.cells_on(symbol) if reach == "on" else self.cells_beside(symbol)

    def distances(self) -> NDArray[np.float64]:
        """Return the fewest moves between any two cells, [C, C]; for maps of ordinary size."""
        return np.asarray(csgraph.shortest_path(_graph(self.neighbour), unweighted=True))


@dataclass(frozen=True, slots=True, eq=False)
class GridStates:
    """Where each state of a drawn task is, what has been done in it, and which phase it is in.

    State ``mode * n_cells + cell`` stands for a cell together with a *mode*: the set of targets
    completed and the active phase. The last state is the end of the task.

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
    """

    grid: Grid
    spec: TaskSpec
    progress: NDArray[np.int64]
    phase: NDArray[np.int32]

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

    def state(self, cell: tuple[int, int], completed: Sequence[str] = (), phase: str | None = None) -> int:
        """Return the number of a state, given its row and column (from 0), completed targets and phase."""
        done = (completed,) if isinstance(completed, str) else tuple(completed)
        phases = [p.name for p in self.spec.phases]
        wanted = phases[0] if phase is None else phase
        for given, known, what in (
            ([wanted], phases, "phase"),
            (done, self.spec.targets, "target"),
        ):
            for name in given:
                if name not in known:
                    raise TaskError(f"{self.spec.name} has no {what} {name!r}. It has: {', '.join(known)}.")
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
        return int(modes[0]) * self.grid.n_cells + int(places[0])

    def states_of(self, completed: Sequence[str] = (), phase: str | None = None) -> slice:
        """Return the states of all cells, in the order of the grid, with these targets completed."""
        corner = (int(self.grid.row[0]), int(self.grid.column[0]))
        first = self.state(corner, completed, phase)
        return slice(first, first + self.grid.n_cells)

    def describe(self, state: int) -> str:
        """Say in words which state this is."""
        place = self.cell(state)
        if place is None:
            return "the end of the task"
        phase = self.spec.phases[int(self.phase[state // self.grid.n_cells])].name
        done = ", ".join(self.completed(state)) or "nothing yet"
        return f"row {place[0] + 1}, column {place[1] + 1}, phase {phase}, completed: {done}"


def walkable_symbols(spec: TaskSpec) -> list[str]:
    """Return the symbols one can stand on."""
    symbols = [spec.map.floor, spec.map.start]
    symbols += [s.symbol for name, s in spec.sections.items() if spec.reach_of(name) == "on"]
    if spec.finish and spec.finish.reach == "on":
        symbols.append(spec.finish.symbol)
    if spec.exit:
        symbols.append(spec.exit.symbol)
    return symbols


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
    if starts > 1:
        what = f"is {spec.map.start!r}, which is on the map {starts} times, not once."
        problems.append(Problem(what, "map.start"))
    return problems or _reach_problems(spec)


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


def _symbol_keys(spec: TaskSpec) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    pairs = [(f"map.{name}", getattr(spec.map, name)) for name in ("wall", "floor", "start")]
    pairs += [(f"sections.{name}.symbol", s.symbol) for name, s in spec.sections.items()]
    if spec.finish:
        pairs.append(("finish.symbol", spec.finish.symbol))
    if spec.exit:
        pairs.append(("exit.symbol", spec.exit.symbol))
    for key, symbol in pairs:
        keys.setdefault(symbol, []).append(key)
    return keys


def _letters(rows: tuple[str, ...]) -> NDArray[np.str_]:
    codes = np.array([np.frombuffer(row.encode("utf-32-le"), dtype="<u4") for row in rows])
    return np.ascontiguousarray(codes).view("<U1").reshape(len(rows), -1)


def _graph(neighbour: NDArray[np.int32]) -> sparse.csr_array:
    cell, way = np.nonzero(neighbour >= 0)
    size = len(neighbour)
    begins = np.searchsorted(cell, np.arange(size + 1)).astype(np.int32)
    return sparse.csr_array((np.ones(len(cell)), neighbour[cell, way], begins), shape=(size, size))
