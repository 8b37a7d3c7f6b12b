"""Values by the task they belong to, and people who believe in another task than they act in.

A task's own values carry its fingerprint, and are found by it: their order does not matter, and values of
another task are refused. Somebody may still go by another world than the one they act in: they take a way to
be open, a goal to pay, or a step to cost something that it does not. That is said in so many words, by
``believes``; the states and actions must be the same, since what people did is recorded in these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fidm.errors import TaskError
from fidm.record import hash_values
from fidm.tasks.behaviour import check_own
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Values

Believes = TaskModel | Values | Iterable[TaskModel] | Mapping[str, TaskModel | Values]


@dataclass(frozen=True, slots=True)
class Belief:
    """What people take a task to be."""

    task: str  # the name of the task they act in
    name: str  # the name of the task they believe in; empty where its values were given
    sha256: str  # the fingerprint of the task they believe in, or the hash of values made by hand


def own_values(tasks: TaskSet, given: Values | Iterable[Values] | None) -> tuple[Values, ...]:
    """Return the values of every task, found by its fingerprint among those given, or solved."""
    if given is None:
        return tuple(solve(task) for task in tasks.tasks)
    solved = (given,) if isinstance(given, Values) else tuple(given)
    known = {values.solved_for: values for values in solved}
    if "" in known:
        raise TaskError(
            "These values were made or changed by hand, so nobody knows what task they are of. Leave out "
            "values to have the tasks solved. If people go by these instead, say so: believes=values, or "
            "believes={task: values} where there are several tasks."
        )
    missing = [task.name for task in tasks.tasks if task.fingerprint not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TaskError(
            f"None of these values was solved for {missing[0]}{more}: they are of other tasks, or of other "
            "settings, such as another normaliser. Give fidm.solve of each task, or leave out values. If "
            "people believe in another task than they act in, say so: believes=other_task."
        )
    return tuple(known[task.fingerprint] for task in tasks.tasks)


def name_beliefs(tasks: TaskSet, believes: Believes | None) -> dict[str, TaskModel | Values]:
    """Return what is believed by the name of the task it is believed of, if that can be.

    One task needs no name. Several are told by a mapping, or by tasks of the same names; those not named are
    believed as they are.
    """
    if believes is None:
        return {}
    if isinstance(believes, TaskModel | Values):
        if len(tasks.tasks) > 1:
            raise TaskError(
                f"There are {len(tasks.tasks)} tasks, so it must be said which one is believed to be "
                "another: believes={name: other_task}."
            )
        believes = {tasks.names[0]: believes}
    elif not isinstance(believes, Mapping):
        others = TaskSet.of(believes)
        believes = {task.name: task for task in others.tasks}
        if len(believes) == len(tasks.tasks) == 1:
            believes = {tasks.names[0]: others.tasks[0]}
    strange = [name for name in believes if name not in tasks.names]
    if strange:
        raise TaskError(
            f"Something is believed of {strange[0]!r}, which is none of the tasks: "
            f"{', '.join(tasks.names[:5])}{', …' if len(tasks.names) > 5 else ''}. Tasks of other names are "
            "given as believes={name: task}."
        )
    by_name = dict(zip(tasks.names, tasks.tasks, strict=True))
    for name, other in believes.items():
        if isinstance(other, TaskModel):
            _check_same(by_name[name], other)
        elif not isinstance(other, Values):
            raise TaskError(f"People believe in a task or its values, not in a {type(other).__name__}.")
    return dict(believes)


def believed_values(task: TaskModel, believes: TaskModel | Values) -> Values:
    """Return what actions are worth to people who take a task to be another one.

    ``believes`` is the task they believe in, of the same states and actions, or its values.

    Examples
    --------
    The prize is behind the left door, but somebody thinks it is behind the right one.

    >>> import fidm
    >>> from fidm.tasks.beliefs import believed_values
    >>> doors = {"gamma": 0.9, "tau": 0.1, "actions": ["left", "right"]}
    >>> real = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[1, 0], [0, 0]], **doors)
    >>> other = fidm.TaskModel.from_arrays([[1, 1], [-1, -1]], [[0, 1], [0, 0]], **doors)
    >>> real.actions[fidm.walk(real, believed_values(real, other), 50.0, seed=1).action[0]]
    'right'
    """
    if isinstance(believes, TaskModel):
        _check_same(task, believes)
        believes = solve(believes)
    plain = replace(believes)  # they are of no task any more
    check_own(task, plain)
    if not np.isfinite(plain.q[task.pair_state, task.action]).all():
        raise TaskError(
            f"In what people believe, some action has no value that can be taken in {task.name}. Whatever "
            "can be done must be possible in the believed task too; make it costly there instead."
        )
    return plain


def seen_values(
    tasks: TaskSet, values: Values | Iterable[Values] | None, believes: Mapping[str, TaskModel | Values]
) -> tuple[tuple[Values, ...], tuple[Belief, ...]]:
    """Return the values of every task as people see it, and what they believe.

    ``values`` is as in :func:`own_values`, where nothing else is believed; ``believes`` as
    :func:`name_beliefs` gives it.
    """
    if not believes:
        return own_values(tasks, values), ()
    if values is not None:
        raise TaskError("values are of the tasks as they are; give believes alone where people go by others.")
    seen = tuple(
        believed_values(task, believes[task.name]) if task.name in believes else solve(task)
        for task in tasks.tasks
    )
    return seen, tuple(describe(name, other) for name, other in believes.items())


def describe(task: str, believes: TaskModel | Values) -> Belief:
    """Return what identifies a belief."""
    if isinstance(believes, TaskModel):
        return Belief(task, believes.name, believes.fingerprint)
    return Belief(task, "", believes.solved_for or hash_values(believes.q))


def _check_same(task: TaskModel, other: TaskModel) -> None:
    """Raise unless two tasks have the same states and actions."""
    differ = f"{task.name} cannot be believed to be {other.name}: the two differ in their"
    why = "What people did is recorded by these, so they must be the same; all else may differ."
    if task.actions != other.actions:
        raise TaskError(f"{differ} actions. {why}")
    same = task.n_states == other.n_states and task.states == other.states
    if same and task.grid is not None and other.grid is not None:
        mine, theirs = task.grid, other.grid
        same = mine.spec.targets == theirs.spec.targets and all(
            np.array_equal(a, b)
            for a, b in (
                (mine.grid.row, theirs.grid.row),
                (mine.grid.column, theirs.grid.column),
                (mine.progress, theirs.progress),
                (mine.phase, theirs.phase),
                (mine.hidden_cells, theirs.hidden_cells),
            )
        )
    if not same:
        raise TaskError(f"{differ} states ({task.n_states:,} and {other.n_states:,}). {why}")
