"""``fidm check TASK``: is this task sane, and what to change if it is not."""

from __future__ import annotations

import json
import math

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fidm.present.terminal import aside, page
from fidm.tasks.check import Finding, TaskCheck, check_task
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel

MARKS = {"problem": ("✗", "bold red"), "warning": ("!", "yellow"), "note": ("·", "dim")}


def check(task: str, *, json: bool = False, vary: bool = True) -> int:
    """Say whether a task can be used, with numbers and in words.

    Exit code 0: usable. 1: not usable. 2: the task could not be read.

    Parameters
    ----------
    task
        The name of a built-in task, or the path of a task file.
    json
        Print everything as JSON instead of a page.
    vary
        Also solve the task for other temperatures and move costs.
    """
    model = load_task(task)
    result = run_check(model, vary=vary)
    if json:
        print_json(result)
    else:
        show(result, page())
    return 0 if result.usable else 1


def run_check(model: TaskModel, *, vary: bool) -> TaskCheck:
    """Check a task with a progress bar on the error stream, if somebody is looking."""
    console = aside()
    if not console.is_terminal:
        return check_task(model, vary=vary)
    with Progress(
        TextColumn("[dim]solving"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as progress:
        bar = progress.add_task("solving", total=None)
        return check_task(
            model,
            vary=vary,
            on_progress=lambda done, of: progress.update(bar, completed=done, total=of),
        )


def print_json(result: TaskCheck) -> None:
    """Print a check for machines."""
    print(json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))


def show(result: TaskCheck, console: Console) -> None:
    """Print a check for people."""
    console.print(
        Text.assemble(
            ("✓ usable", "bold green") if result.usable else ("✗ not usable", "bold red"),
            f"   {result.task}: {result.n_states:,} states, {result.n_actions} actions, "
            f"{result.n_pairs:,} legal choices",
        )
    )
    cost = "" if result.move_cost is None else f", move cost {result.move_cost:g}"
    console.print(Text(_best_agent(result)))
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


def _best_agent(result: TaskCheck) -> str:
    if result.fewest_actions is None:
        return "There is no end that acting can reach."
    if not result.best_finishes:
        return f"The best agent never finishes; {result.fewest_actions} actions would do."
    return (
        f"{_goals_reachable(result)}The best agent finishes in {result.best_actions:.0f} actions; "
        f"the shortest way that takes every goal when it is asked for has {result.fewest_actions}."
    )


def _goals_reachable(result: TaskCheck) -> str:
    named = [goal for goal in result.goals if not goal.implied]
    missing = [goal.goal for goal in named if not goal.reachable]
    if missing:
        return f"Out of reach: {', '.join(missing)}. "
    return f"All {len(named)} goals can be reached. " if named else ""


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
        error = f"±{row.relative_error:.0%}" if math.isfinite(row.relative_error) else "–"
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
    mark, style = MARKS[finding.level]
    line = Table.grid(padding=(0, 1))
    line.add_row(Text(mark, style), Text(f"{finding.says} {finding.advice}".strip()))
    return line
