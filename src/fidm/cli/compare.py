"""``fidm compare`` and ``compare-models``: whether groups differ, and which account predicts choices best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fidm.cli.shared import Many, Reading, Writing
from fidm.errors import DataError, count
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.model.action_models import ActionModel
    from fidm.tasks.model import TaskModel


def compare(
    study: Path,
    *,
    by: str,
    adjust: Many = (),
    reference: str | None = None,
    interact: Many = (),
    at: Many = (),
    missing: Literal["drop", "impute"] = "drop",
    imputations: int = 20,
    seed: int = 1,
    cluster: str | None = None,
    lapse: float | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    reading: Reading = Reading(),
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Compare groups of participants in every parameter, adjusted for what else is known of them.

    Everybody's choices and segments tell how the groups differ; estimates of single people are not compared,
    so groups need not have done equally much. Writes compare.json, tables and a figure. Exit code 0: done.
    2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    by
        The column of the participants that holds the groups, or a number. A column of the episodes, such as a
        visit, compares people with themselves.
    adjust
        A column to adjust for, several with commas between them, or a term of a formula such as
        "bs(age, df=3)". May be repeated.
    reference
        The group the others are compared with; by default the largest.
    interact
        A column adjusted for with which the difference may change. May be repeated.
    at
        Values of such a column that differences are given for, as age=60,75; by default the mean of a number,
        and every group of a text. May be repeated.
    missing
        Leave out participants who lack what is adjusted for (drop), or impute it.
    imputations
        How often it is imputed.
    seed
        The same seed imputes the same.
    cluster
        A column of the participants whose values, such as sites, may go together.
    lapse
        The lapse rate of choices, a number; by default it is estimated.
    inferred
        How much an inferred move counts, from 0 to 1.
    level
        The level of intervals.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.compare import compare as run
    from fidm.present.experiments import show_comparison

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        found = run(
            opened.tasks,
            opened.cohort,
            by=by,
            adjust=split_names(adjust),
            reference=reference,
            interact=split_names(interact),
            at=chosen_values(at),
            missing=missing,
            imputations=imputations,
            seed=seed,
            cluster=cluster,
            channels=opened.channels,
            lapse=lapse,
            inferred=inferred,
            level=level,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, study)

    def show(page: Console) -> None:
        page.print(f"[bold]{count(len(opened.cohort), 'participant')}[/]")
        show_comparison(found, page)

    writing.show(found, written, study, opened, show)
    return 0


def split_names(texts: Sequence[str]) -> list[str]:
    """Return names with commas between them one by one; commas within brackets belong to a name.

    Examples
    --------
    >>> split_names(["age, bs(education, df=3)", "sex"])
    ['age', 'bs(education, df=3)', 'sex']
    """
    return [name.strip() for text in texts for name in re.split(r",(?![^(]*\))", text)]


def chosen_values(texts: Sequence[str]) -> dict[str, list[float | str]]:
    """Return the values that are chosen of each column.

    Examples
    --------
    >>> chosen_values(["age=60,75", "sex=f"])
    {'age': [60.0, 75.0], 'sex': ['f']}
    """
    found: dict[str, list[float | str]] = {}
    for text in texts:
        name, is_given, values = text.partition("=")
        if not is_given or not values.strip():
            raise DataError(f"--at {text!r}: write the column, = and its values, as age=60,75.")
        found[name.strip()] = [_number(value.strip()) for value in values.split(",")]
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def compare_models(
    study: Path,
    *,
    model: Many = (),
    believes: Many = (),
    folds: int = 5,
    trial_folds: int = 4,
    seed: int = 1,
    bootstrap: int = 2_000,
    replicates: int = 100,
    together: str | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    reading: Reading = Reading(),
    writing: Writing = Writing(),
) -> int:
    """Compare accounts of how people choose on choices they were not learned from.

    Choices are softmax(η·Q) everywhere else; here that competes with lapses, habits, short planning, other
    discounts, one goal at a time and chance. Says which predicts people best, whether beyond chance, and
    what the best one and the reference fail to describe. Writes compare-models.json, tables and figures. Exit
    code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    model
        An account that fidm list action-models names, or your own as module:attribute. May be repeated; by
        default all that can be used for the tasks. The first is the reference; softmax comes first where it
        is not named.
    believes
        A task, or its file, that people may take theirs to be: an account of its own. May be repeated.
    folds
        How many folds people are dealt to.
    trial_folds
        How many folds the episodes of each person are dealt to.
    seed
        The same seed gives the same numbers.
    bootstrap
        How often people are drawn again for the intervals.
    replicates
        How often everybody's choices are simulated to see what an account fails to describe.
    together
        A column of the participants: people with the same value stay in one fold and are drawn together.
    inferred
        How much an inferred move counts, from 0 to 1.
    level
        The level of intervals.
    """
    from fidm.experiments.rivals import compare_models as run
    from fidm.present.choices import show_models

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        found = run(
            opened.tasks,
            opened.cohort,
            chosen_models(model, believes, opened.tasks),
            folds=folds,
            trial_folds=trial_folds,
            seed=seed,
            bootstrap=bootstrap,
            replicates=replicates,
            together=together,
            inferred=inferred,
            level=level,
            on_progress=bars.step,
        )
        written = writing.write(found, study)
    writing.show(found, written, study, opened, lambda page: show_models(found, opened.cohort, page))
    return 0


def chosen_models(
    names: Sequence[str], believes: Sequence[str], tasks: Sequence[TaskModel]
) -> tuple[ActionModel, ...] | None:
    """Return the models that are named, softmax first unless it is among them; None where none are."""
    from fidm.experiments.rivals import usual_models
    from fidm.model.action_models import BelievesTask
    from fidm.registry import ACTION_MODELS
    from fidm.tasks.compile import load_task
    from fidm.tasks.stack import TaskSet

    if not names and not believes:
        return None
    if names:
        asked = [ACTION_MODELS.resolve(name) for name in names]
        has_softmax = "softmax" in [one.name for one in asked]
        named = asked if has_softmax else [ACTION_MODELS.find("softmax"), *asked]
    else:
        stacked = TaskSet.of(tasks)
        named = [one for one in usual_models() if not one.problems(stacked)]
    others = [load_task(name) for name in believes]
    known = {task.name for task in tasks}
    believed = [
        BelievesTask({task.name: task} if task.name in known else task, called=task.name) for task in others
    ]
    return (*named, *believed)
