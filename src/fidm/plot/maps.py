"""Maps: the drawing of a task, the value of being somewhere, and the ways people took."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from fidm.errors import TaskError
from fidm.tasks.grid import MOVES, GridStates
from fidm.tasks.model import TaskModel
from fidm.types import Trace, Values

WALL, FLOOR, SHELF, TARGET = "#d9d9d9", "#ffffff", "#efe6d5", "#f7d08a"
INK = "#222222"
PEOPLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours of people, distinguishable by the colour-blind (Okabe and Ito)."""

VALUE_MAP = "cividis"

CHINESE_FONTS = ("PingFang HK", "Microsoft JhengHei", "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei")
"""Fonts with Chinese characters whose names do not say so."""


def draw_map(task: TaskModel, *, ax: Axes | None = None) -> Axes:
    """Draw the map of a task: walls, floor, sections by name, start, finish and exit.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    states = _grid(task)
    spec, grid = states.spec, states.grid
    rows, columns = grid.shape
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(0.5 * columns, 0.5 * rows))[1]
    colour = {spec.map.wall: WALL}
    for name, section in spec.sections.items():
        colour[section.symbol] = TARGET if name in spec.targets else SHELF
    image = np.array([[to_rgb(colour.get(s, FLOOR)) for s in row] for row in grid.symbol])
    ax.imshow(image, interpolation="nearest", zorder=0)
    ax.set_xticks(np.arange(-0.5, columns), minor=True)
    ax.set_yticks(np.arange(-0.5, rows), minor=True)
    ax.grid(which="minor", color="#f2f2f2", linewidth=0.6, zorder=1)
    ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    for symbol, name in spec.place_names.items():
        at_row, at_column = np.nonzero(grid.symbol == symbol)
        on_floor = symbol not in colour  # people walk here: leave the middle of the cell to them
        ax.text(
            float(at_column.mean()),
            float(at_row.mean()) + 0.36 * on_floor,
            "\n".join(textwrap.wrap(name, 10, break_long_words=False)),
            ha="center",
            va="center",
            fontsize=5.5 if on_floor else 6,
            color=INK,
            fontfamily=_families(),
            parse_math=False,
            zorder=8,
            path_effects=[withStroke(linewidth=1.6, foreground="white", alpha=0.8)],
        )
    for spine in ax.spines.values():
        spine.set_color("#bbbbbb")
    return ax


def routes(task: TaskModel, traces: Sequence[Trace] | Trace, *, ax: Axes | None = None) -> Axes:
    """Draw the ways people took: direction by arrows, revisits side by side, actions as numbers.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map.
    traces : Trace or sequence of Trace
        One or several walks; each gets a colour and stands in the legend by its label.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    walks = [traces] if isinstance(traces, Trace) else list(traces)
    states = _grid(task)
    for trace in walks:
        if trace.task != task.name or trace.state.max() > states.end:
            raise TaskError(f"The walk of {trace.label!r} is on {trace.task!r}, not on {task.name!r}.")
    ax = draw_map(task, ax=ax)
    for i, trace in enumerate(walks):
        colour = PEOPLE[i % len(PEOPLE)]
        cells = [states.cell(state) for state in trace.state.tolist()]
        passed = np.array([cell[::-1] for cell in cells if cell], dtype=np.float64)
        begin, end = _lanes(passed, beside=0.1 * i)
        if len(begin):
            way = np.stack([begin, end], axis=1).reshape(-1, 2)
            ax.add_collection(LineCollection([way], colors=[colour], linewidths=1.1, alpha=0.9, zorder=3))
            ax.quiver(
                *((begin + end) / 2).T,
                *(end - begin).T,
                color=colour,
                angles="xy",
                scale_units="xy",
                scale=4.0,
                width=0.0035,
                headwidth=4.5,
                headlength=4.5,
                headaxislength=4.0,
                pivot="mid",
                zorder=4,
            )
        aside = np.array([0.42 * (i - (len(walks) - 1) / 2), 0.0])
        _number_actions(task, trace, passed + aside, colour, ax)
        count = f"{len(trace)} actions" + ("" if trace.finished else ", not finished")
        ax.plot([], [], color=colour, linewidth=2, label=f"{trace.label or trace.task} ({count})")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2, frameon=False, fontsize=8)
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
        The task and its values.
    completed : sequence of str
        The targets already completed.
    phase : str, optional
        The active phase; the first by default.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    states = _grid(task)
    grid = states.grid
    if len(values.v) != task.n_states:
        raise TaskError(f"These values are of {len(values.v)} states; {task.name} has {task.n_states}.")
    ax = draw_map(task, ax=ax)
    field = np.full(grid.shape, np.nan)
    field[grid.row, grid.column] = values.v[states.states_of(completed, phase)]
    image = ax.imshow(field, cmap=VALUE_MAP, interpolation="nearest", zorder=2)
    figure = ax.figure
    bar = figure.colorbar(image, ax=ax, fraction=0.035, pad=0.02)
    bar.set_label("value of standing here", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    active = phase or states.spec.phases[0].name
    named = [completed] if isinstance(completed, str) else completed
    done = ", ".join(named).replace("_", " ") or "nothing yet"
    ax.set_title(f"{states.spec.title}\nphase: {active} · completed: {done}", fontsize=8)
    return ax


@functools.cache
def _families() -> list[str]:
    """The fonts to draw names with: the usual one, then any installed one that has Chinese characters."""
    from matplotlib import rcParams
    from matplotlib.font_manager import get_font_names

    chinese = [name for name in get_font_names() if "CJK" in name or name in CHINESE_FONTS]
    return [*rcParams["font.family"], *sorted(chinese)]


def _grid(task: TaskModel) -> GridStates:
    if task.grid is None:
        raise TaskError(f"{task.name} was not drawn as a map, so there is no map to show.")
    return task.grid


def _lanes(passed: NDArray[np.float64], *, beside: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lay each step on the right-hand side of its way, one lane further out each time it is walked again.

    Returns begin and end of every step that moved, [n, 2] in map coordinates.
    """
    step = np.diff(passed, axis=0)
    moved = np.flatnonzero(np.abs(step).sum(axis=1) > 0)
    walked: dict[tuple[float, ...], int] = {}
    shift = np.zeros((len(moved), 2))
    for row, i in enumerate(moved):
        key = (*passed[i].tolist(), *step[i].tolist())
        lane = walked[key] = walked.get(key, -1) + 1
        shift[row] = np.array([-step[i, 1], step[i, 0]]) * min(0.06 + beside + 0.08 * lane, 0.44)
    return passed[moved] + shift, passed[moved + 1] + shift


def _number_actions(
    task: TaskModel, trace: Trace, passed: NDArray[np.float64], colour: str, ax: Axes
) -> None:
    """Number what was done on the way (buying, paying) in the order it was done, cell by cell."""
    done: dict[tuple[float, float], list[str]] = {}
    number = 0
    for i, action in enumerate(trace.action.tolist()):
        if task.actions[action] not in MOVES:
            number += 1
            x, y = passed[min(i, len(passed) - 1)].tolist()
            done.setdefault((x, y), []).append(str(number))
    for (x, y), numbers in done.items():
        shown = numbers if len(numbers) <= 3 else [numbers[0], "…", numbers[-1]]
        ax.text(
            x,
            y,
            " ".join(shown),
            ha="center",
            va="center",
            fontsize=5.5,
            color="white",
            zorder=7,
            bbox={
                "boxstyle": "round,pad=0.25,rounding_size=0.7",
                "facecolor": colour,
                "edgecolor": "white",
                "lw": 0.5,
            },
        )
