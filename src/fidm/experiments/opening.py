"""Opening a study, the same way for verbs and for the report: its people, checked, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, count
from fidm.experiments.learnable import fit_learnable
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit, load_fit
from fidm.io.study import Study
from fidm.model.effort import paper_channels
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel


def study_tasks(study: Study, task: Sequence[str] = ()) -> tuple[TaskModel, ...]:
    """Return the tasks that are named, or else those of the study.

    Parameters
    ----------
    study : Study
        The study.
    task : sequence of str
        Names or files of tasks; by default those that study.toml names.
    """
    tasks = tuple(load_task(name) for name in task) or study.load_tasks()
    if not tasks:
        raise DataError("names no task in study.toml. Give one: --task NAME.", source=str(study.folder))
    return tasks


def read_people(study: Study, tasks: tuple[TaskModel, ...], *, skip_bad: bool = False) -> Cohort:
    """Return everybody of a study whose data can be used.

    Parameters
    ----------
    study : Study
        The study.
    tasks : tuple of TaskModel
        Its tasks.
    skip_bad : bool
        Leave out people whose data have problems, instead of refusing the study.
    """
    model, strict = Model(tasks), not skip_bad
    parts = [model.check(batch, strict=strict) for batch in study.batches(tasks=tasks, strict=strict)]
    cohort = parts[0] if len(parts) == 1 else Cohort.concat(parts)
    if not len(cohort):
        raise DataError("has nobody whose data can be used.", source=str(study.folder))
    return cohort


def part_of(cohort: Cohort, split: str | None = None) -> tuple[Cohort, str]:
    """Return the people of a split and its name: ``train`` unless told otherwise, if there is one.

    Parameters
    ----------
    cohort : Cohort
        The people.
    split : str, optional
        Which split; ``"all"`` is everybody.
    """
    people = cohort.participants
    if split is None and "split" in people.columns and people["split"].drop_nulls().len() > 0:
        split = "train"
    if split is None or split == "all":
        return cohort, "everybody"
    return cohort.split(split), f"split {split!r}"


def study_fit(
    folder: Path,
    tasks: tuple[TaskModel, ...],
    cohort: Cohort,
    *,
    use: Path | None = None,
    name_file: bool = True,
    one_by_one: bool = False,
) -> tuple[Fit, str]:
    """Return what a study's people share, and where it comes from in words.

    It is the file given, else the study's own ``fit.json``, else it is learned now from the training part.

    Parameters
    ----------
    folder : Path
        The study.
    tasks : tuple of TaskModel
        Its tasks.
    cohort : Cohort
        Its people.
    use : Path, optional
        The file of a fit.
    name_file : bool
        Whether the words name the file.
    one_by_one : bool
        Whether people are estimated one by one, which the words then say, where there are too few to learn
        how people differ; otherwise that is an error.
    """
    path = use if use is not None else folder / "fit.json"
    if use is not None or path.exists():
        fit = load_fit(path, tasks)
        file = f", {path}" if name_file else ""
        said = f"learned earlier from {count(fit.n_learned, 'participant')}{file}"
        if use is None and _is_older(path, folder):
            said += ". The study's tables are newer than that: fit it again (fidm fit) if they have changed"
        return fit, said
    learners, part = part_of(cohort)
    alone = ""
    try:
        fit, failures = fit_learnable(tasks, learners, paper_channels())
    except FitError as error:
        if not one_by_one:
            raise
        fit, failures = fit_learnable(tasks, learners, paper_channels(), method="mle")
        alone = f". People are estimated one by one: {error.message.rstrip('.')}"
    said = f"learned now from {count(fit.n_learned, 'participant')} ({part}){alone}"
    for name, why in failures.items():
        said += f". {name} is left out: {why.rstrip('.')}"
    return fit, said


def _is_older(fit: Path, folder: Path) -> bool:
    """Whether a fit was written before the tables of the study it is to be used on."""
    tables = [path for name in ("steps", "segments") for path in folder.glob(f"{name}*")]
    return any(path.stat().st_mtime > fit.stat().st_mtime + 1 for path in tables)
