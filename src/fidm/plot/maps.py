"""Maps: the drawing of a task, the value of being somewhere, and the ways people took.

A task that was not drawn as a map, but whose states have coordinates, is shown as a sketch: a dot for each
place and a line for each way between two of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from fidm.errors import TaskError
from fidm.plot.profiles import FittedText
from fidm.plot.style import INK, LOOKS, Look, figure_of, ink_on, new_axes, plain, plain_legend
from fidm.tasks.behaviour import check_own, worth_of_cells
from fidm.tasks.grid import GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.sketch import Sketch
from fidm.types import Trace, Values

WALL, FLOOR, SHELF, TARGET = "#d9d9d9", "#ffffff", "#efe6d5", "#f7d08a"
PRICED, DOOR = "#a8c6dc", "#666666"
"""Cells whose price is farthest from a plain step's; arrows of one-way doors and hatches of hidden cells."""

FRAME = "#7a4d00"

VALUE_MAP = "cividis"

LINE_WIDTH = 10
"""How wide a line of a section's name may be, in Latin letters; a Chinese character is two of them."""

MOST_NAMED = 60
"""In a sketch of more places than this, places have no names."""

FIRST_LANE, LAST_LANE, LANE_GAP = 0.06, 0.44, 0.08
"""Where ways lie beside the middle of a cell, in cells; the gap is smaller where many are needed."""


def draw_map(task: TaskModel, *, ax: Axes | None = None) -> Axes:
    """Draw the map of a task: walls, floor, sections by name, starts, finish and exit.

    Cells with a price of their own are blue, the more so the farther it is from that of a plain step; one-way
    doors have an arrow, hidden cells are hatched.

    Of a task with coordinates, draw its places and the ways between them. The start is framed, the ends are
    squares, and places have their names where there are few.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map, or whose states have coordinates.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    if task.grid is None:
        return _draw_sketch(Sketch.of(task), ax)
    states = task.grid
    spec, grid = states.spec, states.grid
    rows, columns = grid.shape
    ax = ax or new_axes(0.5 * columns, 0.5 * rows)
    colour = {spec.map.wall: WALL}
    for name, section in spec.sections.items():
        colour[section.symbol] = TARGET if name in spec.targets else SHELF
    image = np.array([[to_rgb(colour.get(s, FLOOR)) for s in row] for row in grid.symbol])
    for row, column, share in states.prices():
        plain_floor = image[row, column]
        image[row, column] = plain_floor + (0.3 + 0.7 * share) * (np.array(to_rgb(PRICED)) - plain_floor)
    ax.imshow(image, interpolation="none", zorder=0)
    for row, column, down, right in states.doors():
        ax.annotate(
            "", (column + 0.36 * right, row + 0.36 * down), (column - 0.36 * right, row - 0.36 * down),
            arrowprops={"arrowstyle": "-|>", "color": DOOR, "lw": 1.4, "shrinkA": 0, "shrinkB": 0},
            zorder=2.5,
        )  # fmt: skip
    for row, column in states.unseen():
        ax.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5), 1, 1, facecolor="none", edgecolor=DOOR, hatch="////", linewidth=0,
                zorder=2.2,
            )
        )  # fmt: skip
    ax.set_xticks(np.arange(-0.5, columns), minor=True)
    ax.set_yticks(np.arange(-0.5, rows), minor=True)
    ax.grid(which="minor", color="#f2f2f2", linewidth=0.6, zorder=1)
    ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    target = {spec.place_names[spec.sections[name].symbol] for name in spec.targets}
    named = [
        (symbol, name, at) for symbol, name in spec.place_names.items() for at in states.labelled(symbol)
    ]
    for symbol, name, cells in named:
        at_row, at_column = cells.T
        # Where people walk the middle of the cell is left to them.
        on_floor = symbol not in colour or symbol in spec.arrival_symbols
        room = (0.96, 0.34) if on_floor else _room(at_row, at_column)
        text = FittedText(
            ax, float(at_column.mean()), float(at_row.mean()) + 0.36 * on_floor, _wrapped(name), room=room,
            size=6 if on_floor else 6.5, colour=INK, zorder=8,
        )  # fmt: skip
        if on_floor:
            text.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.4})
        if name in target:
            _frame(at_row, at_column, ax)
        plain(text)
    for spine in ax.spines.values():
        spine.set_color("#bbbbbb")
    return ax


def routes(task: TaskModel, traces: Sequence[Trace] | Trace, *, ax: Axes | None = None) -> Axes:
    """Draw the ways people took: direction by arrows, revisits side by side, actions as numbers.

    A bump is a short bar at the side where the way was not free, or turned out not to be; several at the same
    place are one.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map, or whose states have coordinates.
    traces : Trace or sequence of Trace
        One or several walks; each gets a colour and stands in the legend by its label.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    walks = [traces] if isinstance(traces, Trace) else list(traces)
    for trace in walks:
        if trace.task != task.name or trace.state.max() >= task.n_states:
            raise TaskError(f"The walk of {trace.label!r} is on {trace.task!r}, not on {task.name!r}.")
    ax = draw_map(task, ax=ax)
    handles = []
    passed = [_passed(task, trace) for trace in walks]
    spots = [spots_of(task, trace.state) for trace in walks]
    apart = min(0.42, 0.84 / max(len(walks) - 1, 1))  # the numbers of all stay in their cell
    for i, (trace, (begin, end)) in enumerate(zip(walks, lanes(passed), strict=True)):
        look = LOOKS[i % len(LOOKS)]
        if len(begin):
            _draw_way(begin, end, look, ax)
        _draw_bumps(task, trace, look, ax)
        aside = np.array([apart * (i - (len(walks) - 1) / 2), 0.0])
        _number_actions(task, trace, spots[i] + aside, look, ax)
        handles.append(Line2D([], [], color=look.colour, linewidth=2, linestyle=look.line))
    legend = ax.legend(
        handles, [str(i) for i in range(len(walks))], loc="upper center", bbox_to_anchor=(0.5, -0.01),
        ncols=2, frameon=False, fontsize=8, handlelength=3.2,
    )  # fmt: skip
    names = [
        f"{trace.label or trace.task} ({len(trace)} actions{'' if trace.finished else ', not finished'})"
        for trace in walks
    ]
    plain_legend(legend, names)
    return ax


def value_field(
    task: TaskModel,
    values: Values,
    *,
    completed: Sequence[str] = (),
    phase: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what it is worth to stand in each cell, in one state of progress.

    Parameters
    ----------
    task, values
        The task and its values. Of a task with coordinates, the value of the first state at each place is
        shown; with a horizon that is the one with the most steps to go.
    completed : sequence of str
        The targets already completed, in a task that was drawn as a map.
    phase : str, optional
        The active phase; the first by default.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    check_own(task, values)
    if task.grid is None:
        if completed or phase is not None:
            raise TaskError(f"{task.name} was not drawn as a map: it has no targets and no phases to name.")
        return _value_sketch(task, values, ax)
    states = task.grid
    grid = states.grid
    worth = worth_of_cells(task, values, completed, phase)
    ax = draw_map(task, ax=ax)
    field = np.full(grid.shape, np.nan)
    field[grid.row, grid.column] = worth
    image = ax.imshow(field, cmap=VALUE_MAP, interpolation="none", zorder=2)
    _value_bar(image, ax)
    active = phase or states.spec.phases[0].name
    named = [completed] if isinstance(completed, str) else completed
    done = ", ".join(named).replace("_", " ") or "nothing yet"
    plain(ax.set_title(f"{states.spec.title}\nphase: {active} · completed: {done}", fontsize=8))
    return ax


def _value_bar(image: ScalarMappable, ax: Axes) -> None:
    bar = figure_of(ax).colorbar(image, ax=ax, fraction=0.035, pad=0.02)
    bar.set_label("value of standing here", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def spots_of(task: TaskModel, states: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return where states lie on the map of a task, x and y, [n, 2]; NaN where a state has no place."""
    if task.grid is None:
        return Sketch.of(task).spots(states)
    cells = [task.grid.cell(state) for state in states.tolist()]
    nowhere = (np.nan, np.nan)
    return np.array([cell[::-1] if cell else nowhere for cell in cells], dtype=np.float64).reshape(-1, 2)


def _draw_sketch(sketch: Sketch, ax: Axes | None) -> Axes:
    """The places of a task with coordinates, and the ways between them."""
    width, height = np.ptp(sketch.at, axis=0) + 1.2
    ax = ax or new_axes(float(np.clip(0.6 * width, 2.4, 12.0)), float(np.clip(0.6 * height, 2.4, 9.0)))
    ax.add_collection(LineCollection(list(sketch.at[sketch.links]), colors="#cccccc", linewidths=1, zorder=1))
    is_end = np.isin(np.arange(len(sketch.at)), sketch.ends)
    for which, marker, face in ((~is_end, "o", FLOOR), (is_end, "s", TARGET)):
        x, y = sketch.at[which].T
        ax.scatter(x, y, s=46, marker=marker, c=face, edgecolors="#999999", lw=0.8, zorder=2)
    if sketch.start >= 0:
        x, y = sketch.at[sketch.start]
        ax.scatter(x, y, s=120, marker="o", facecolors="none", edgecolors=FRAME, lw=1.2, zorder=2)
    if len(sketch.at) <= MOST_NAMED:
        for (left, top), name in zip(sketch.at.tolist(), sketch.labels, strict=True):
            text = FittedText(
                ax, left + 0.24, top + 0.2, _wrapped(name), room=(0.46, 0.3), size=6, colour=INK, zorder=8
            )
            plain(text)
    ax.set_xlim(-0.6, width - 0.6)
    ax.set_ylim(height - 0.6, -0.6)
    ax.set_aspect("equal")
    ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    for spine in ax.spines.values():
        spine.set_color("#bbbbbb")
    return ax


def _value_sketch(task: TaskModel, values: Values, ax: Axes | None) -> Axes:
    """The value of the first state at each place of a task with coordinates, but not at its ends."""
    sketch = Sketch.of(task)
    ax = _draw_sketch(sketch, ax)
    known, first = np.unique(sketch.place, return_index=True)
    states = first[known >= 0]
    goes_on = ~task.terminal[states]  # where nothing can be done any more nothing is to be had
    x, y = sketch.at[goes_on].T
    worth = values.v[states[goes_on]]
    dots = ax.scatter(x, y, s=110, c=worth, cmap=VALUE_MAP, edgecolors="#555555", lw=0.5, zorder=3)
    _value_bar(dots, ax)
    plain(ax.set_title(task.name, fontsize=8))
    return ax


def lanes(ways: Sequence[NDArray[np.float64]]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Lay each step on the right-hand side of its way: a lane for each walk, then one for each time again.

    No two steps lie on each other: where a way is walked so often that the room ends, its lanes lie closer. A
    way is the places a walk passed, in map coordinates [L, 2]; the begin and the end [n, 2] of every step
    that moved come back for each.
    """
    taken: dict[tuple[float, ...], int] = {}  # how many lanes of this way are in use
    moves, lane, edges = [], [], []
    for i, passed in enumerate(ways):
        step = np.diff(passed, axis=0)
        moved = np.flatnonzero(np.abs(step).sum(axis=1) > 0)
        seen: set[tuple[float, ...]] = set()
        for row in moved.tolist():
            edge = (*passed[row].tolist(), *step[row].tolist())
            again = edge in seen
            seen.add(edge)
            taken.setdefault(edge, len(ways))
            lane.append(taken[edge] if again else i)
            taken[edge] += again
            edges.append(edge)
        moves.append((passed, step, moved))
    gap = np.array([min(LANE_GAP, (LAST_LANE - FIRST_LANE) / max(taken[edge] - 1, 1)) for edge in edges])
    out = FIRST_LANE + gap * np.array(lane, dtype=np.float64)
    laid, first = [], 0
    for passed, step, moved in moves:
        right = np.stack([-step[moved, 1], step[moved, 0]], axis=1) / np.hypot(*step[moved].T)[:, None]
        shift = right * out[first : first + len(moved), None]
        laid.append((passed[moved] + shift, passed[moved + 1] + shift))
        first += len(moved)
    return laid


def _room(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[float, float]:
    """How wide and high a name may be that stands in the middle of these cells: all of them, or one cell."""
    wide, high = int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1
    return (wide - 0.14, high - 0.14) if wide * high == len(rows) else (0.86, 0.86)


def _frame(rows: NDArray[np.int64], columns: NDArray[np.int64], ax: Axes) -> None:
    """A line round these cells, so that the shelves of targets differ from walls without colour too."""
    cells = set(zip(rows.tolist(), columns.tolist(), strict=True))
    sides = []
    for row, column in cells:
        corners = {(-1, 0): (0, 0, 1, 0), (1, 0): (0, 1, 1, 1), (0, -1): (0, 0, 0, 1), (0, 1): (1, 0, 1, 1)}
        for (down, right), (x0, y0, x1, y1) in corners.items():
            if (row + down, column + right) not in cells:
                x, y = column - 0.5, row - 0.5
                sides.append([(x + x0, y + y0), (x + x1, y + y1)])
    ax.add_collection(LineCollection(sides, colors=[FRAME], linewidths=1.2, capstyle="projecting", zorder=2))


def _draw_way(begin: NDArray[np.float64], end: NDArray[np.float64], look: Look, ax: Axes) -> None:
    """One line along all steps, an arrow on each, a dot where it begins and a larger mark where it ends."""
    way = np.stack([begin, end], axis=1).reshape(-1, 2)
    ax.add_collection(
        LineCollection([way], colors=[look.colour], linewidths=1.3, linestyles=[look.line], zorder=3)
    )
    ax.quiver(
        *((begin + end) / 2).T, *(end - begin).T, color=look.colour, angles="xy", scale_units="xy", scale=4.0,
        width=0.0035, headwidth=4.5, headlength=4.5, headaxislength=4.0, pivot="mid", zorder=4,
    )  # fmt: skip
    for place, size in ((way[0], 4.0), (way[-1], 6.5)):
        ax.plot(*place, look.marker, color=look.colour, ms=size, mec="white", mew=0.7, zorder=6)


def _passed(task: TaskModel, trace: Trace) -> NDArray[np.float64]:
    """Where a walk passed, x and y, the place included that its last step led to, [n, 2]."""
    if task.grid is None:
        spots = spots_of(task, trace.state)
        return spots[~np.isnan(spots[:, 0])]
    names = [task.actions[action] for action in trace.action.tolist()]
    cells = task.grid.way_of(trace.state.tolist(), names)
    return np.array([cell[::-1] for cell in cells if cell], dtype=np.float64).reshape(-1, 2)


def bumps_of(
    states: GridStates, passed: NDArray[np.integer], names: Sequence[str | None]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return which steps are bumps, and the bars across the sides where the way is not free, [n, 2, 2].

    ``passed`` are the states of the steps, and the one after the last where it is known.
    """
    rows, bars, grid = [], [], states.grid
    following = [*passed.tolist(), -1][1:]
    for i, (name, state, then) in enumerate(zip(names, passed.tolist(), following, strict=False)):
        cell = state % grid.n_cells
        if name is not None and state < states.end and states.after(state, name, then) == cell:
            right, down = grid.direction(name)
            x, y = grid.column[cell] + 0.44 * right, grid.row[cell] + 0.44 * down
            rows.append(i)
            bars.append([(x - 0.16 * down, y + 0.16 * right), (x + 0.16 * down, y - 0.16 * right)])
    return np.array(rows, dtype=np.int64), np.array(bars, dtype=np.float64).reshape(-1, 2, 2)


def _draw_bumps(task: TaskModel, trace: Trace, look: Look, ax: Axes) -> None:
    states = task.grid
    if states is not None and states.has_bumps:
        _, bars = bumps_of(states, trace.state, [task.actions[action] for action in trace.action.tolist()])
        ax.add_collection(LineCollection(list(bars), colors=[look.colour], linewidths=2.6, zorder=5))


def _number_actions(task: TaskModel, trace: Trace, spots: NDArray[np.float64], look: Look, ax: Axes) -> None:
    """Number what was done on the way (buying, paying) in the order it was done, cell by cell."""
    done: dict[tuple[float, float], list[str]] = {}
    number = 0
    for i, action in enumerate(trace.action.tolist()):
        is_way = (
            task.actions[action] in task.grid.grid.moves
            if task.grid is not None
            else action >= 0 and task.is_move[task.pair(int(trace.state[i]), action)]
        )
        if not is_way:
            number += 1
            x, y = spots[i].tolist()
            if np.isnan(x):
                continue
            done.setdefault((x, y), []).append(str(number))
    behind = {"boxstyle": look.box, "facecolor": look.colour, "edgecolor": "white", "lw": 0.5}
    for (x, y), numbers in done.items():
        shown = numbers if len(numbers) <= 3 else [numbers[0], "…", numbers[-1]]
        text = FittedText(
            ax, x, y, " ".join(shown), room=(0.8, 0.45), size=5.5, colour=ink_on(look.colour), zorder=7
        )
        text.set_bbox(behind)


def _wrapped(name: str) -> str:
    """A name in lines: cut between words, and between Chinese characters where a line would be too long."""
    lines, width = [""], 0
    for word in name.split():
        long = sum(_width(letter) for letter in word)
        if lines[-1] and width + 1 + long > LINE_WIDTH:
            lines.append("")
            width = 0
        elif lines[-1]:
            lines[-1] += " "
            width += 1
        for letter in word:
            if _width(letter) == 2 and width + 2 > LINE_WIDTH:
                lines.append("")
                width = 0
            lines[-1] += letter
            width += _width(letter)
    return "\n".join(lines)


def _width(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
