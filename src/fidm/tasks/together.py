r"""What several tasks tell together: a study of many small tasks, of which none need tell much alone.

Choices of different tasks are independent given a person's η, so their information adds up. With I_t the
Fisher information of one episode on task t and n_t the episodes a person does on it, the relative standard
error of η is

.. math:: \frac{1}{\eta \sqrt{\sum_t n_t I_t}}.

I_t is that of :func:`fidm.check_task`: what a person of this η is expected to do in one sitting. A task alone
*tells nothing* where the error would exceed η itself, so that η could not be distinguished from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import TaskError, count, few
from fidm.record import plain
from fidm.tasks.check import quick_problems, told_in_sitting
from fidm.tasks.goals import Look
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Floats

NOTHING = 1.0
"""With a larger relative standard error η cannot be distinguished from 0."""

Verdict = Literal["usable", "tells nothing", "not usable"]


@dataclass(frozen=True, slots=True)
class TaskInSet:
    """One task of several: its size, whether it works, and what it tells about a person.

    Parameters
    ----------
    task : str
        Its name.
    verdict : {"usable", "tells nothing", "not usable"}
        Whether it can be used alone; whether its choices tell nothing about η alone; or that it has problems.
    problems : tuple of str
        What makes it unusable.
    n_states : int
        How many states it has.
    fewest_actions : int or None
        The shortest way; None if the end cannot be reached.
    ends, best_finishes : bool
        Whether the task has an end, and whether the best agent reaches it.
    best_actions : float
        How many actions the best agent takes.
    per_choice, per_episode : float
        The expected Fisher information of η in a counted action and in one episode.
    relative_error : float
        The standard error of η after one episode, as a share of η; infinite where nothing is told.
    episodes : float
        How many episodes a person has on it, on average.
    """

    task: str
    verdict: Verdict
    problems: tuple[str, ...]
    n_states: int
    fewest_actions: int | None
    ends: bool
    best_finishes: bool
    best_actions: float
    per_choice: float
    per_episode: float
    relative_error: float
    episodes: float


@dataclass(frozen=True, slots=True)
class TaskSetCheck:
    """The result of :func:`check_tasks`: whether each of several tasks is usable, and what all tell together.

    Parameters
    ----------
    tasks : tuple of TaskInSet
        A row per task, in the order given.
    sensitivity : float
        The η at which information is computed.
    source : str
        Where this η comes from, in words.
    relative_error : float
        The standard error of η from all tasks together but those with problems, as a share of η.
    n_people : int or None
        Whose recorded episodes are counted; None where everybody is taken to do each task once.
    notes : tuple of str
        What else is to be said.
    """

    tasks: tuple[TaskInSet, ...]
    sensitivity: float
    source: str
    relative_error: float
    n_people: int | None
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether no task has problems, and all together tell something about η."""
        return not self.named("not usable") and self.relative_error <= NOTHING

    def named(self, verdict: Verdict) -> list[str]:
        """Return the names of the tasks with this verdict."""
        return [row.task for row in self.tasks if row.verdict == verdict]

    @property
    def table(self) -> pl.DataFrame:
        """A row per task; ``relative_error`` is null where the task tells nothing about η alone."""
        rows = [{**asdict(row), "problems": " ".join(row.problems)} for row in self.tasks]
        table = pl.DataFrame(rows, infer_schema_length=None)
        told = pl.col("relative_error") <= NOTHING
        return table.with_columns(relative_error=pl.when(told).then(pl.col("relative_error")))

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on the set in words: the tasks, and what they tell together."""
        counts = {kind: len(self.named(kind)) for kind in ("usable", "tells nothing", "not usable")}
        nothing = counts["tells nothing"]
        said = [f"{counts['usable']} usable alone"]
        said += [f"{nothing} {'tells' if nothing == 1 else 'tell'} nothing about η alone"] if nothing else []
        said += [f"{counts['not usable']} not usable"] if counts["not usable"] else []
        how, each = "one episode on each task", sum(row.episodes for row in self.tasks)
        if self.n_people is not None:
            people = count(self.n_people, "person", "people")
            how = f"{each:.3g} episode{'s' * (each != 1)} per person, as recorded of {people}"
        first = f"{count(len(self.tasks), 'task')}: {', '.join(said)}; {self._together()}."
        left = "; tasks that are not usable are left out" if counts["not usable"] else ""
        return first, f"Computed at η = {self.sensitivity:.3g} ({self.source}), with {how}{left}."

    def _together(self) -> str:
        if not self.relative_error <= NOTHING:
            return "together they tell nothing about η"
        return f"together η is known to ±{self.relative_error:.0%}"

    def summary(self) -> str:
        """Return the verdict on the set, and what is wrong with tasks, as a short text."""
        wrong = [f"{row.task}: {row.problems[0]}" for row in self.tasks if row.problems]
        return "\n".join([*self.sentences(), *wrong, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers; what is not finite becomes None."""
        told = {"usable": self.usable, "sentences": list(self.sentences())}
        return dict(plain({**told, **asdict(self)}))

    def __repr__(self) -> str:
        return " ".join(self.sentences())


def check_tasks(
    tasks: Iterable[TaskModel],
    *,
    cohort: Cohort | None = None,
    sensitivity: float | None = None,
    source: str = "",
    on_progress: Callable[[int, int], None] | None = None,
) -> TaskSetCheck:
    """Say whether each of several tasks can be used, and how well η is known from all of them together.

    Many small tasks can be worth as much as a large one: a maze that tells nothing about a person alone adds
    to what the others tell. Quicker than :func:`check_task` for each: no repairs and no other settings are
    tried.

    Parameters
    ----------
    tasks : several TaskModel
        The tasks, each with a name of its own.
    cohort : Cohort, optional
        The people, whose numbers of episodes on each task are taken; by default one episode on each task.
    sensitivity : float, optional
        The η at which information is computed; by default 1/τ, the walker that the values assume (the median
        where tasks differ in τ).
    source : str, optional
        Where ``sensitivity`` comes from, in words.
    on_progress : callable, optional
        Called with the number of tasks done and of all.

    Examples
    --------
    >>> import fidm
    >>> found = fidm.check_tasks([fidm.load_task("errands"), fidm.load_task("grocery_small")])
    >>> print(found.summary())
    2 tasks: 2 usable alone; together η is known to ±22%.
    Computed at η = 35 (the median 1/τ of the tasks), with one episode on each task.
    """
    together = TaskSet.of(tasks)
    eta, source = _reference(together.tasks, sensitivity, source)
    episodes, n_people = _episodes(together, cohort)
    say = on_progress or (lambda done, of: None)
    rows = []
    for done, (task, own) in enumerate(zip(together.tasks, episodes.tolist(), strict=True)):
        say(done, len(together.tasks))
        rows.append(_row(task, eta, own))
    say(len(rows), len(rows))
    told = math.fsum(row.episodes * row.per_episode for row in rows if not row.problems)
    never = [row.task for row in rows if not row.episodes]
    notes = [f"{few(never)}: nobody has an episode on it."] if len(never) == 1 else []
    notes += [f"Nobody has an episode on {len(never)} tasks: {few(never)}."] if len(never) > 1 else []
    return TaskSetCheck(tuple(rows), eta, source, _error(eta, told), n_people, tuple(notes))


def _reference(tasks: tuple[TaskModel, ...], sensitivity: float | None, source: str) -> tuple[float, str]:
    """The η to compute at, and where it comes from."""
    if sensitivity is not None:
        if not (math.isfinite(sensitivity) and sensitivity > 0):
            raise TaskError(f"sensitivity is {sensitivity}; it must be a positive number.")
        return float(sensitivity), source or "as given"
    each = [1 / task.tau for task in tasks]
    usual = "1/τ of the tasks" if len(set(each)) == 1 else "the median 1/τ of the tasks"
    return float(np.median(each)), source or usual


def _episodes(tasks: TaskSet, cohort: Cohort | None) -> tuple[Floats, int | None]:
    """How many episodes a person has on each task, on average, and of how many people; one without data."""
    n_tasks = len(tasks.tasks)
    if cohort is None:
        return np.ones(n_tasks), None
    task = tasks.task_of(cohort)
    there = (np.diff(cohort.step_offsets) > 0) & (task >= 0)
    people = len(np.unique(cohort.episode_owner()[there]))
    if not people:
        return np.ones(n_tasks), None
    return np.bincount(task[there], minlength=n_tasks) / people, people


def _row(task: TaskModel, eta: float, episodes: float) -> TaskInSet:
    values = solve(task)
    look = Look.at(task, values)
    problems = quick_problems(task, look)
    _, n_counted, told = told_in_sitting(task, values, eta, look.sitting)
    error = _error(eta, told)
    return TaskInSet(
        task=task.name,
        verdict="not usable" if problems else "usable" if error <= NOTHING else "tells nothing",
        problems=problems,
        n_states=task.n_states,
        fewest_actions=look.fewest,
        ends=look.ends,
        best_finishes=look.finishes,
        best_actions=look.actions,
        per_choice=told / n_counted if n_counted else 0.0,
        per_episode=told,
        relative_error=error,
        episodes=episodes,
    )


def _error(eta: float, information: float) -> float:
    """The standard error of η as a share of η; infinite where nothing is told."""
    return 1.0 / (eta * math.sqrt(information)) if information > 0 else math.inf
