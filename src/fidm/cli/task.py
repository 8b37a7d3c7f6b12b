"""``fidm check``, ``task list``, ``copy``, ``show`` and ``select``: tasks, and settings that suit people."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from fidm.cli.shared import Flag, Reading, Writing, print_json
from fidm.errors import DataError, TaskError
from fidm.present.terminal import page, progress_bar, table_of

NONE_CHOSEN = 1
"""The exit code of ``select`` if every point is degenerate."""


def list_tasks(path: Path | None = None) -> None:
    """List the tasks that come with fidm, or those in a file.

    Parameters
    ----------
    path
        A file of tasks (.parquet); by default the tasks that come with fidm are listed.
    """
    from fidm.registry import TASKS

    if path is not None:
        from fidm.present.task import show_kept
        from fidm.tasks.compile import load_tasks

        show_kept(load_tasks(path), page())
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
        worth = values.v[model.grid.states_of(done, phase)]
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
    task: str,
    *,
    json: bool = False,
    vary: bool = True,
) -> int:
    """Say whether a task can be used, with numbers and in words.

    Of a file of several tasks, print a row each; FILE.parquet#NAME is one of them in full.

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
    from fidm.present.task import show_check, show_checks
    from fidm.tasks.check import check_task
    from fidm.tasks.compile import load_tasks

    with progress_bar("solving") as bars:
        models = load_tasks(task)
        results = []
        for done, model in enumerate(models):
            if len(models) > 1:
                bars.step("checking tasks", done, len(models))
            say = None if len(models) > 1 else lambda done, of: bars.step("solving", done, of)
            results.append(check_task(model, vary=vary and len(models) == 1, on_progress=say))
    if json:
        found = [result.to_dict() for result in results]
        print_json(found[0] if len(found) == 1 else found)
    elif len(results) == 1:
        show_check(results[0], page())
    else:
        show_checks(results, page(), source=task)
    return 0 if all(result.usable for result in results) else 1


def select(
    study: Path,
    *,
    task: str | None = None,
    split: str | None = None,
    by: Literal["likelihood", "auc"] = "likelihood",
    label: str | None = None,
    folds: int = 5,
    seed: int = 1,
    skip_bad: Flag = False,
    writing: Writing = Writing(),
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
        A built-in task or a task file; by default those that study.toml names, which are all tried with the
        same move cost and temperature.
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
    """
    from fidm.experiments.select import select as run
    from fidm.present.experiments import show_selection

    with progress_bar() as bars:
        opened = Reading(task=() if task is None else (task,), skip_bad=skip_bad).open(study, bars)
        cohort, part = opened.part(split)
        found = run(opened.tasks, cohort, folds=folds, seed=seed, by=by, label=label, on_progress=bars.step)
        written = writing.write(found, study)
    writing.show(found, written, study, opened, lambda page: show_selection(found, part, page))
    return NONE_CHOSEN if found.chosen is None else 0
