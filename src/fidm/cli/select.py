"""``fidm select STUDY``: the paper's grid of move costs and temperatures, degenerate points left out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fidm.cli.shared import Flag, Reading, Writing
from fidm.present.terminal import progress_bar

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

    with progress_bar(rates=True) as bars:
        opened = Reading(task=() if task is None else (task,), skip_bad=skip_bad).open(study, bars)
        cohort, part = opened.part(split)
        found = run(opened.tasks, cohort, folds=folds, seed=seed, by=by, label=label, on_progress=bars.step)
        written = writing.write(found, study)
    writing.show(found, written, study, opened, lambda page: show_selection(found, part, page))
    return NONE_CHOSEN if found.chosen is None else 0
