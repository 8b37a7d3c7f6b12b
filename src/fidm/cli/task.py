"""``fidm task list`` and ``fidm task show TASK``: look at tasks in the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich import box
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from fidm import plot
from fidm.errors import DataError, TaskError
from fidm.files import whole_file
from fidm.present.terminal import page, require_format, save_figure
from fidm.tasks.compile import compile_task
from fidm.tasks.grid import GridStates
from fidm.tasks.solve import solve
from fidm.tasks.spec import builtin_tasks, builtin_text, read_task

SHADES = ("#00204d", "#2f4470", "#575c6d", "#7c7b78", "#a69c75", "#d3c164", "#ffea46")
"""Seven steps of the cividis colour map, dark (low value) to light (high value)."""


def list_tasks() -> None:
    """List the tasks that come with fidm."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("name", "what it is", "targets"):
        table.add_column(column)
    for name in builtin_tasks():
        spec = read_task(name)
        table.add_row(name, spec.title, ", ".join(spec.targets))
    page().print(table)


def copy(name: str, path: Path) -> None:
    """Copy a built-in task to a file of your own, as a starting point.

    Parameters
    ----------
    name
        The name of a built-in task.
    path
        The file to write; it must not exist yet.
    """
    text = builtin_text(name)
    if path.exists():
        raise DataError("exists already; nothing was written.", source=str(path))
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
    page().print(Text(f"Wrote {path}. Change it, then run: fidm check {path}"))


def show(task: str, *, out: Path | None = None, completed: str = "", phase: str | None = None) -> None:
    """Draw a task's map and what it is worth to stand in each place.

    Parameters
    ----------
    task
        The name of a built-in task, or the path of a task file.
    out
        Also write the picture to this file; .png, .svg or .pdf.
    completed
        Targets already completed, separated by commas.
    phase
        The active phase; the first by default.
    """
    if out is not None:
        require_format(out)
    spec = read_task(task)
    model = compile_task(spec)
    if model.grid is None:
        raise TaskError("has no map to show.", source=task)
    values = solve(model)
    done = tuple(filter(None, (name.strip() for name in completed.split(","))))
    worth = values.v[model.grid.states_of(done, phase)]
    console = page()
    console.print(Text(spec.title, "bold"))
    console.print(Text(spec.description.strip().replace("\n", " "), "dim"))
    console.print()
    console.print(map_text(model.grid, worth))
    console.print()
    console.print(_legend(model.grid))
    console.print(
        f"Value of standing somewhere: {worth.min():.2f} (dark, 0) to {worth.max():.2f} (light, 9); "
        f"phase {phase or spec.phases[0].name}, completed: {', '.join(done) or 'nothing yet'}."
    )
    if out is not None:
        rows, columns = model.grid.grid.shape
        figure = Figure(figsize=(0.45 * columns, 0.42 * rows))
        plot.value_field(model, values, completed=done, phase=phase, ax=figure.subplots())
        save_figure(figure, [out])
        console.print(f"Wrote {out}", soft_wrap=True, markup=False)


def map_text(states: GridStates, worth: NDArray[np.float64]) -> Text:
    """The map as coloured text: walls as blocks, places by symbol, floor by its value from 0 to 9."""
    grid, spec = states.grid, states.spec
    low, high = float(worth.min()), float(worth.max())
    share = np.full(grid.shape, np.nan)
    share[grid.row, grid.column] = (worth - low) / (high - low) if high > low else 0.0
    text = Text()
    for i, row in enumerate(grid.symbol):
        for j, symbol in enumerate(row):
            here = float(share[i, j])
            if np.isnan(here):
                is_wall = symbol == spec.map.wall
                text.append("██" if is_wall else f"{symbol} ", "bright_black" if is_wall else "bold")
                continue
            shade = min(int(here * len(SHADES)), len(SHADES) - 1)
            ink = "black" if shade > 3 else "white"
            shown = str(min(int(here * 10), 9)) if symbol == spec.map.floor else symbol
            text.append(f"{shown} ", f"{ink} on {SHADES[shade]}")
        text.append("\n")
    text.right_crop(1)
    return text


def _legend(states: GridStates) -> Columns:
    targets = {states.spec.sections[target].symbol for target in states.spec.targets}
    return Columns(
        [
            Text.assemble((symbol, "bold"), f" {name}{' (target)' if symbol in targets else ''}")
            for symbol, name in states.spec.place_names.items()
        ],
        padding=(0, 3),
    )
