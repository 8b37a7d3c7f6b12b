"""``fidm select STUDY``: the paper's grid of move costs and temperatures, degenerate points left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from matplotlib.figure import Figure
from rich.console import Console

from fidm.cli.opening import finish, open_study, results_folder
from fidm.errors import DataError, count
from fidm.experiments.select import PAPER_CHOICE, Point, Selection
from fidm.experiments.select import select as run
from fidm.plot.experiments import selection_map
from fidm.present.terminal import note, page, progress_bar, save_figure, table_of, warn
from fidm.record import to_json, write_result

NONE_CHOSEN = 1
"""The exit code if every point is degenerate."""


def select(
    study: Path,
    *,
    task: str | None = None,
    split: str | None = None,
    by: Literal["likelihood", "auc"] = "likelihood",
    label: str | None = None,
    folds: int = 5,
    seed: int = 1,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Try the paper's move costs and temperatures by cross-validation, and say which suits people best.

    Every point first goes through the task check; degenerate ones are reported and never chosen. Writes
    select.json, select.csv and select.png and .pdf. Exit code 0: done. 1: every point is degenerate. 2: the
    study could not be used.

    Parameters
    ----------
    study
        The study folder.
    task
        A built-in task or a task file; by default the one that study.toml names.
    split
        The participants with this value of "split"; by default "train" where there is a split, else
        everybody. "all" takes everybody.
    by
        likelihood compares how probable left-out people's choices are; auc how well all features tell two
        groups apart.
    label
        The participants' column with two groups: "normal" against the others, or two values. Then the AUC is
        shown too; left out, no outcome is looked at. With --by auc it is "diagnosis" by default.
    folds
        How many parts people are cut into.
    seed
        The same seed gives the same folds.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    out
        Where to write; by default STUDY/results.
    json
        Print the result as JSON instead of a page.
    """
    with progress_bar(rates=True) as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=() if task is None else (task,), skip_bad=skip_bad)
        if len(opened.tasks) > 1:
            names = ", ".join(model.name for model in opened.tasks)
            raise DataError(
                f"has several tasks ({names}). One task is needed, since a move cost and a temperature "
                "belong to one.",
                source=str(study),
            )
        cohort, part = opened.part(split)
        found = run(
            opened.tasks[0], cohort, folds=folds, seed=seed, by=by, label=label, on_progress=bars.step
        )
        target = results_folder(out, study)
        written = write_result(found, target)
        pictures = [target / "select.png", target / "select.pdf"]
        figure = Figure(figsize=(6.0, 3.4), layout="constrained")
        selection_map(found, ax=figure.add_subplot())
        save_figure(figure, pictures)
    code = NONE_CHOSEN if found.chosen is None else 0
    if json:
        print(to_json(found))
        return code
    console = page()
    _show(found, part, console)
    finish(console, (*written, *pictures), target, opened)
    return code


def _show(found: Selection, part: str, console: Console) -> None:
    folds = found.record.settings["folds"]
    console.print(
        f"[bold]{count(found.n_people, 'participant')}[/] ({part}), {count(found.n_actions, 'choice')}, "
        f"{folds} folds",
        soft_wrap=True,
    )
    _grid(found, "likelihood", console)
    if any(point.auc == point.auc for point in found.points):
        _grid(found, "auc", console)
    console.print(found.sentence, soft_wrap=True, markup=False)
    cost, tau = PAPER_CHOICE
    console.print(
        f"Paper: move cost {cost:g}, temperature {tau:g}, on its own map and people.", soft_wrap=True
    )
    degenerate = [point for point in found.points if not point.usable]
    if degenerate:
        console.print(
            f"\n{count(len(degenerate), 'degenerate point')} of {len(found.points)}, never chosen "
            "(select.csv and fidm check say more):",
            soft_wrap=True,
        )
        for point in degenerate:
            warn(
                console, f"{point.move_cost:g}, {point.tau:g}: {point.reasons[0].split('. ')[0].rstrip('.')}."
            )
    note(
        console,
        "✓ chosen, ≈ within one standard error of it, ✗ degenerate, p the paper's choice",
        "likelihood: of a left-out person's choice, averaged over the prior of η learned from the others, "
        "in nats; ± is the standard error of the difference from the best usable point",
        "a task file has the move cost as move in [rewards], the temperature as tau in [values]",
        "the paper does not say what its cross-validation compares",
        *found.notes,
    )


def _grid(found: Selection, kind: Literal["likelihood", "auc"], console: Console) -> None:
    """Print the scores of one kind: a row per move cost, a column per temperature."""
    temperatures = list(dict.fromkeys(point.tau for point in found.points))
    name = {"likelihood": "Log-likelihood per choice", "auc": "AUC of all features"}[kind]
    rows: dict[float, list[str]] = {}
    for point in found.points:
        row = rows.setdefault(point.move_cost, [f"{point.move_cost:g}"])
        row.append(_cell(found, point, kind))
    console.print(f"\n[bold]{name}[/], by move cost and temperature")
    header = ["cost", *(f"τ {tau:g}" for tau in temperatures)]
    console.print(table_of(header, list(rows.values())))


def _cell(found: Selection, point: Point, kind: Literal["likelihood", "auc"]) -> str:
    value, error = getattr(point, kind), getattr(point, f"{kind}_se")
    text = f"{value:.4f}" if value == value else "–"
    if point.usable and error == error and error > 0:
        text += f" ±{error:.4f}".replace("0.", ".")
    marks = "" if point.usable else "✗"
    if kind == found.by and point in found.close:
        marks = "✓" if point == found.chosen else "≈"
    marks += "p" if point == found.at(*PAPER_CHOICE) else ""
    return f"{text} {marks:<2}"
