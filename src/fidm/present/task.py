"""What ``fidm check`` and ``fidm task show`` print: whether a task is sane, and its map with values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.errors import count
from fidm.fit.profile import error_text
from fidm.tasks.check import Finding, Level, TaskCheck
from fidm.tasks.grid import GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.together import TaskSetCheck
from fidm.types import Floats, Values

MARKS = {"problem": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "dim")}


def show_check(result: TaskCheck, console: Console) -> None:
    """Print a check for people."""
    console.print(
        Text.assemble(
            ("✓ usable", "bold green") if result.usable else ("✗ not usable", "bold red"),
            f"   {result.task}: {result.n_states:,} states, {result.n_actions} actions, "
            f"{result.n_pairs:,} legal choices",
        )
    )
    cost = "" if result.move_cost is None else f", move cost {result.move_cost:g}"
    console.print(Text(say_best_agent(result)))
    console.print(
        f"gamma {result.gamma:g}, tau {result.tau:g}, normaliser {result.normaliser}{cost}; "
        f"solved to a residual of {result.residual:.0e}",
        style="dim",
    )
    console.print()
    for finding in result.findings:
        console.print(_sentence(finding))
    if result.goals:
        console.print(
            "\n[bold]Does each goal beat wandering?[/] Value of taking it minus value of walking on"
        )
        console.print(_goal_table(result))
    console.print(f"[bold]What to expect of people[/] in one sitting of at most {result.sitting} actions")
    console.print(_sensitivity_table(result))
    console.print(
        f"η is how strongly value steers a person: 0 chooses blindly, {1 / result.tau:g} is the walker the "
        "values assume. The last column is the standard error of η after one sitting.\n",
        style="dim",
    )
    if result.settings:
        console.print(
            "[bold]Other settings[/] and the narrowest goal's lead over wandering; ✗ cannot be used"
        )
        console.print(_setting_table(result))


MOST_STATES = 60
"""So many states of a task without a map are shown."""


def show_kept(tasks: Sequence[TaskModel], console: Console) -> None:
    """Print what a file of tasks holds, a row each."""
    table = _table("task", "states", "actions", "choices", "steps", "x, y", "fingerprint")
    table.columns[6].no_wrap = True
    for task in tasks:
        table.add_row(
            Text(task.name), f"{task.n_states:,}", f"{task.n_actions:,}", f"{task.n_pairs:,}",
            "–" if task.horizon is None else f"{task.horizon:,}",
            "–" if task.coordinates is None else "yes", task.fingerprint[:12],
        )  # fmt: skip
    console.print(Text(count(len(tasks), "task"), "bold"))
    console.print(table)


def show_states(task: TaskModel, values: Values, console: Console) -> None:
    """Print the states of a task without a map: what each is worth, and where its actions lead."""
    console.print(Text(task.name, "bold"))
    table = _table("state", "value", "actions and where they lead, the best first")
    table.columns[2].justify = "left"
    for state in range(min(task.n_states, MOST_STATES)):
        pairs = np.arange(int(task.offsets[state]), int(task.offsets[state + 1]))
        pairs = pairs[np.argsort(-values.q[state, task.action[pairs]], kind="stable")]
        ways = [f"{task.actions[int(task.action[k])]} → {_leads_to(task, k)}" for k in pairs.tolist()]
        table.add_row(
            Text(task.describe(state)), f"{values.v[state]:.3f}", Text("; ".join(ways) or "the end")
        )
    console.print(table)
    more = task.n_states - MOST_STATES
    said = f"The start is {task.describe(task.start)}." + (f" {more:,} more states." if more > 0 else "")
    console.print(Text(said, "dim"))


def _leads_to(task: TaskModel, pair: int) -> str:
    """Where an action leads, with probabilities where that is uncertain."""
    links = range(int(task.successor_offsets[pair]), int(task.successor_offsets[pair + 1]))
    if len(links) == 1:
        return task.describe(int(task.successor[links[0]]))
    return ", ".join(f"{task.describe(int(task.successor[k]))} {task.probability[k]:.0%}" for k in links)


def say_best_agent(result: TaskCheck) -> str:
    """Return whether goals can be reached, whether the best agent finishes, and in how many actions."""
    if result.fewest_actions is None:
        return "There is no end that acting can reach."
    if not result.best_finishes:
        return f"The best agent never finishes; {result.fewest_actions} actions would do."
    if not any(not goal.implied for goal in result.goals):
        best = f"The best agent finishes in {result.best_actions:.0f} actions"
        return f"{best}; the fewest possible are {result.fewest_actions}."
    way = "the shortest way" if len(result.goals) == 1 else "the shortest way to take every goal when asked"
    return (
        f"{_goals_reachable(result)}The best agent finishes in {result.best_actions:.0f} actions; "
        f"{way} has {result.fewest_actions}."
    )


def _goals_reachable(result: TaskCheck) -> str:
    named = [goal for goal in result.goals if not goal.implied]
    missing = [goal.goal for goal in named if not goal.reachable]
    if missing:
        return f"Out of reach: {', '.join(missing)}. "
    every = "The goal" if len(named) == 1 else f"All {len(named)} goals"
    return f"{every} can be reached. " if named else ""


MOST_PROBLEMS = 8
"""Of so many tasks that cannot be used it is said why."""


def show_set(result: TaskSetCheck, console: Console) -> None:
    """Print a check of several tasks for people: the verdict on the set, and a row per task."""
    console.print(
        Text("✓ usable", "bold green") if result.usable else Text("✗ not usable", "bold red"),
        *map(Text, result.sentences()),
        sep="\n",
    )
    console.print(_set_table(result))
    wrong = [row for row in result.tasks if row.problems]
    for row in wrong[:MOST_PROBLEMS]:
        console.print(_marked("problem", f"{row.task}: {row.problems[0]}"))
    if wrong:
        more = f"{len(wrong) - MOST_PROBLEMS:,} more. " if len(wrong) > MOST_PROBLEMS else ""
        console.print(
            _marked("note", f"{more}fidm check TASK says more about one task, and what repairs it.")
        )
    for note in result.notes:
        console.print(_marked("note", note))
    console.print(
        "Shortest way and best agent in actions. Per choice and per episode: the information about η that is "
        "expected in a counted choice and in one episode. The last column is the standard error of η after "
        "one episode; nothing: it would exceed η itself.",
        style="dim",
    )


def _set_table(result: TaskSetCheck) -> Table:
    recorded = ("episodes",) if result.n_people is not None else ()
    table = _table(
        "task", "states", "shortest", "best agent", "per choice", "per episode", *recorded, "η alone"
    )
    table.columns[0].no_wrap = True
    for row in result.tasks:
        alone = {"usable": f"±{row.relative_error:.0%}", "tells nothing": "nothing"}.get(row.verdict, "✗")
        best = f"{row.best_actions:.0f}" if row.best_finishes else "never ends"
        table.add_row(
            Text(row.task),
            f"{row.n_states:,}",
            "–" if row.fewest_actions is None else f"{row.fewest_actions}",
            best if row.ends else "no end",
            f"{row.per_choice:.2g}",
            f"{row.per_episode:.2g}",
            *([f"{row.episodes:.2g}"] if recorded else []),
            Text(alone, {"usable": "green", "tells nothing": "yellow"}.get(row.verdict, "red")),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _goal_table(result: TaskCheck) -> Table:
    table = _table("goal", "typical", "at worst", "earlier goals missing")
    for goal in result.goals:
        table.add_row(Text(goal.goal), *map(_gap, (goal.typical, goal.worst, goal.incomplete)))
    return table


def _sensitivity_table(result: TaskCheck) -> Table:
    table = _table("sensitivity η", "actions", "reach the end", "information per action", "η known to")
    for row in result.sensitivities:
        error = error_text(row.relative_error)
        error = f"±{error}" if error[0].isdigit() else error
        actions = f"{row.actions:.0f}" if row.finished > 0.995 else f"≥ {row.actions:.0f}"
        table.add_row(f"{row.sensitivity:g}", actions, f"{row.finished:.0%}", f"{row.information:.2g}", error)
    return table


def _setting_table(result: TaskCheck) -> Table:
    taus = sorted({row.tau for row in result.settings})
    table = _table("move cost", *(f"tau {tau:g}" for tau in taus))
    costs = sorted({row.move_cost for row in result.settings}, key=lambda cost: -(cost or 0.0))
    for cost in costs:
        cells = {row.tau: row for row in result.settings if row.move_cost == cost}
        shown = []
        for tau in taus:
            mark = Text(" ✓", "green") if cells[tau].usable else Text(" ✗", "red")
            is_own = (tau, cost) == (result.tau, result.move_cost)
            shown.append(_gap(cells[tau].narrowest, bold=is_own) + mark)
        table.add_row("–" if cost is None else f"{cost:g}", *shown)
    return table


def _gap(value: float, *, bold: bool = False) -> Text:
    if not math.isfinite(value):
        return Text("–", "dim")
    style = ("bold " if bold else "") + ("red" if value <= 0 else "default")
    return Text(f"{value:+.3f}", style)


def _sentence(finding: Finding) -> Table:
    return _marked(finding.level, f"{finding.says} {finding.advice}".strip())


def _marked(level: Level, said: str) -> Table:
    """A sentence behind the mark of how grave it is."""
    mark, style = MARKS[level]
    line = Table.grid(padding=(0, 1))
    line.add_row(Text(mark, style), Text(said))
    return line


SHADES = ("#00204d", "#2f4470", "#575c6d", "#7c7b78", "#a69c75", "#d3c164", "#ffea46")
"""Seven steps of the cividis colour map, dark (low value) to light (high value)."""


def show_map(
    grid: GridStates,
    worth: Floats,
    console: Console,
    *,
    done: Sequence[str],
    phase: str | None,
) -> None:
    """Print a task's map with the value of standing in each cell, some targets completed already."""
    spec = grid.spec
    console.print(Text(spec.title, "bold"))
    console.print(Text(spec.description.strip().replace("\n", " "), "dim"))
    console.print()
    console.print(map_text(grid, worth))
    console.print()
    console.print(_legend(grid))
    low, high = np.nanmin(worth), np.nanmax(worth)
    console.print(
        f"Value of standing somewhere: {low:.2f} (dark, 0) to {high:.2f} (light, 9); "
        f"phase {phase or spec.phases[0].name}, completed: {', '.join(done) or 'nothing yet'}."
    )


def map_text(states: GridStates, worth: NDArray[np.float64]) -> Text:
    """The map as coloured text: walls as blocks, places by symbol, floor by its value from 0 to 9."""
    grid, spec = states.grid, states.spec
    low, high = float(np.nanmin(worth)), float(np.nanmax(worth))
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
            for symbol, name in {**states.spec.place_names, **states.spec.ground_names}.items()
        ],
        padding=(0, 3),
    )
