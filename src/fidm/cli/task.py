"""``fidm check``, ``task list``, ``copy``, ``show`` and ``select``: tasks, and settings that suit people."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fidm.cli.shared import Reading, Writing, print_json
from fidm.errors import DataError, TaskError
from fidm.present.terminal import page, progress_bar, table_of

Floats = Annotated[tuple[float, ...], Parameter(negative=(), show_default=False)]
"""Numbers that may be given one by one."""

NONE_CHOSEN = 1
"""The exit code of ``select`` if every point is degenerate."""


def list_tasks(path: Path | None = None) -> None:
    """List the tasks that come with fidm, or those of a file or a study.

    Parameters
    ----------
    path
        A file of tasks (.parquet) or a study folder; by default the tasks that come with fidm are listed.
    """
    from fidm.registry import TASKS

    if path is not None:
        from fidm.folder import find_tasks
        from fidm.present.task import show_kept

        show_kept(find_tasks([str(path)])[0], page())
        return

    rows = []
    for name in TASKS.names():
        text = tomllib.loads(TASKS.read(name, f"{name}.toml"))
        targets = [target for phase in text.get("phases", ()) for target in phase.get("targets", ())]
        rows.append([name, text.get("title", name), ", ".join(targets)])
    page().print(table_of(["name", "what it is", "targets"], rows, left=3))


def copy(name: str, path: Path) -> None:
    """Copy a built-in task to a file of your own, as a starting point.

    Parameters
    ----------
    name
        The name of a built-in task.
    path
        The file to write; it must not exist yet. The task is called like it.
    """
    from fidm.files import whole_file
    from fidm.tasks.spec import builtin_text, named_like

    text = named_like(builtin_text(name), path)
    if path.exists():
        raise DataError("exists already; nothing was written.", source=str(path))
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
    said = f"Wrote {path}. Change it, then run: fidm check {path}"
    page().print(said, markup=False)


def show(task: str, *, out: Path | None = None, completed: str = "", phase: str | None = None) -> None:
    """Draw a task's map and what it is worth to stand in each place.

    Of a task that was not drawn as a map, print what each state is worth, and where one can go from there.

    Parameters
    ----------
    task
        The name of a built-in task, the path of a task file, or FILE.parquet#NAME for a task of several.
    out
        Also write the picture to this file; .png, .svg or .pdf.
    completed
        Targets already completed, separated by commas.
    phase
        The active phase; the first by default.
    """
    from fidm.present.task import show_map, show_states
    from fidm.tasks.behaviour import worth_of_cells
    from fidm.tasks.compile import load_task
    from fidm.tasks.solve import solve

    if out is not None:
        from fidm.plot.save import require_format

        require_format(out)
    with progress_bar("solving"):
        model = load_task(task)
        values = solve(model)
    done = tuple(filter(None, (name.strip() for name in completed.split(","))))
    console = page()
    if model.grid is not None:
        worth = worth_of_cells(model, values, done, phase)
        show_map(model.grid, worth, console, done=done, phase=phase)
    else:
        if done or phase is not None:
            what = (
                "was not drawn as a map: it has no targets and no phases. Leave out --completed and --phase."
            )
            raise TaskError(what, source=task)
        show_states(model, values, console)
    if out is not None:
        from matplotlib.figure import Figure

        from fidm.plot.maps import value_field
        from fidm.plot.save import save_figure

        rows, columns = (12, 12) if model.grid is None else model.grid.grid.shape
        figure = Figure(figsize=(0.45 * columns, 0.42 * rows))
        value_field(model, values, completed=done, phase=phase, ax=figure.subplots())
        save_figure(figure, [out])
        console.print(f"Wrote {out}", soft_wrap=True, markup=False)


def check(
    task: Annotated[tuple[str, ...], Parameter(negative=())],
    *,
    json: bool = False,
    vary: bool = True,
) -> int:
    """Say whether a task can be used, or all tasks of a study, with numbers and in words.

    Exit code 0: usable. 1: not usable; of several tasks, one has problems, or all together tell nothing.
    2: the task or the study could not be read.

    Parameters
    ----------
    task
        The name of a built-in task, or the path of a task file. Several tasks, or a study folder with its
        tasks, are checked as a set: a row for each, and what they tell together.
    json
        Print everything as JSON instead of a page.
    vary
        Also solve the task for other temperatures and move costs; not for several tasks.
    """
    from fidm.folder import check_set, find_tasks
    from fidm.present.task import show_check, show_set
    from fidm.tasks.check import check_task

    with progress_bar("solving") as bars:
        tasks, folder = find_tasks(task)
        if len(tasks) != 1 or folder is not None:
            several = check_set(tasks, folder, on_progress=bars.step)
        else:
            one = check_task(tasks[0], vary=vary, on_progress=lambda done, of: bars.step("solving", done, of))
    if len(tasks) != 1 or folder is not None:
        print_json(several.to_dict()) if json else show_set(several, page())
        return 0 if several.usable else 1
    print_json(one.to_dict()) if json else show_check(one, page())
    return 0 if one.usable else 1


def select(
    study: Path,
    *,
    reading: Reading = Reading(),
    move_cost: Floats = (),
    tau: Floats = (),
    gamma: Floats = (),
    split: str | None = None,
    by: Literal["likelihood", "auc"] = "likelihood",
    label: str | None = None,
    folds: int = 5,
    seed: int = 1,
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Try move costs, temperatures and discounts by cross-validation, and say which suit people best.

    Every point first goes through the task check; degenerate ones are reported and never chosen. Writes
    select.json, select.csv and select.png and .pdf. Exit code 0: done. 1: every point is degenerate. 2: the
    study could not be used.

    Parameters
    ----------
    study
        The study folder. All its tasks are tried with the same settings.
    move_cost
        A move cost to try; may be repeated. By default the paper's, where a task has movements.
    tau
        A temperature to try; may be repeated. By default the paper's.
    gamma
        A discount to try; may be repeated. By default each task keeps its own.
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
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.paper import TEMPERATURES
    from fidm.experiments.select import select as run
    from fidm.present.experiments import show_selection

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        cohort, part = opened.part(split)
        found = run(
            opened.tasks,
            cohort,
            costs=move_cost or None,
            temperatures=tau or TEMPERATURES,
            gammas=gamma or None,
            folds=folds,
            seed=seed,
            by=by,
            label=label,
            channels=opened.channels,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, study)
    writing.show(found, written, study, opened, lambda page: show_selection(found, part, page))
    return NONE_CHOSEN if found.chosen is None else 0
