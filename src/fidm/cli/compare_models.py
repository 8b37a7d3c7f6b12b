"""``fidm compare-models STUDY``: which account of how people choose predicts held-out choices best."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import Many, Reading, Writing
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from fidm.model.action_models import ActionModel
    from fidm.tasks.model import TaskModel


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
