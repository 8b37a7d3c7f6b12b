"""How people walked, in fourteen plain numbers: the paper's trajectory statistics (appendix B.1).

They are taken from the recorded steps and the map alone; neither Q nor η enters. Counts go over all episodes
of a person. A *movement* is N, S, E or W. A person *visits* a cell by standing in it when acting or by moving
into it; every episode begins anew, so a cell visited in two episodes counts twice.

=======================  ==============================================================================
``n_actions``            all recorded actions, those included that the likelihood leaves out
``n_movements``          movements
``n_buys``               actions on a section (BUY), whatever it is that was bought
``has_pay``              1 if the finishing action (PAY) was ever done, early or not
``has_out``              1 if the person ever left (OUT): the exit, or an action the task leaves out (-1)
``n_north`` …            movements north, south, east, west
``n_direction_changes``  movements in another direction than the movement before, whatever was done between
``n_backtracks``         movements straight back, opposite to the movement before; also direction changes
``n_cells``              different cells visited
``n_revisits``           movements into a cell visited before in the same episode
``is_consistent``        1 if every movement leads where the map says and every other action leaves the
                         person in place, as far as states are recorded. Traces that follow the rules of
                         their task have 1 throughout, and a study is refused otherwise: it then tells nothing
=======================  ==============================================================================

Somebody without a single recorded action has NaN throughout.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from fidm.cohort import NO_ACTION, UNKNOWN_STATE, Cohort
from fidm.errors import DataError, TaskError
from fidm.tasks.grid import MOVES, GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Flags, Floats, Integers

NAMES = (
    "n_actions",
    "n_movements",
    "n_buys",
    "has_pay",
    "has_out",
    "n_north",
    "n_south",
    "n_east",
    "n_west",
    "n_direction_changes",
    "n_backtracks",
    "n_cells",
    "n_revisits",
    "is_consistent",
)
"""The fourteen statistics, in the order of the appendix."""

NOWHERE = -1
"""Stands for a cell nobody knows: the task has ended, or the state was not recorded."""

MOVE, BUY, PAY, OUT = range(4)
"""The kinds of actions."""

OPPOSITE = np.array([1, 0, 3, 2, 5, 4, 7, 6])
"""The direction straight back from each of N, S, E and W, and of the diagonal ones."""


class TrajectoryFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns people into the paper's fourteen trajectory statistics; see :mod:`fidm.classify.trajectory`.

    Nothing is learned, so it can be made once for everybody.

    Parameters
    ----------
    tasks : TaskModel, or several
        Tasks that were drawn as maps.

    Examples
    --------
    >>> import fidm
    >>> from fidm.classify.trajectory import TrajectoryFeatures
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 20, seed=1)
    >>> TrajectoryFeatures(task).fit_transform(cohort).shape
    (20, 14)
    """

    learns = False

    def __init__(self, tasks: TaskModel | Iterable[TaskModel]) -> None:
        self.tasks = tasks

    def fit(self, X: Cohort, y: Any = None) -> TrajectoryFeatures:  # noqa: N803
        """Learn nothing, but make sure that these people moved on a map."""
        if not (self.transform(X)[:, NAMES.index("n_movements")] > 0).any():
            raise DataError(
                f"None of these {len(X)} people made a movement, so there are no trajectory statistics. "
                "Leave trajectory out, or see whether the steps were read."
            )
        return self

    def transform(self, X: Cohort) -> Floats:  # noqa: N803
        """Return the statistics of these people, [n, 14]; NaN for somebody without actions."""
        return trajectory_statistics(self.tasks, X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the statistics."""
        return np.array(NAMES, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def trajectory_statistics(tasks: TaskModel | Iterable[TaskModel], cohort: Cohort) -> Floats:
    """Return fourteen numbers on how each person walked, [P, 14], in the order of ``NAMES``.

    Parameters
    ----------
    tasks : TaskModel, or several
        Tasks that were drawn as maps.
    cohort : Cohort
        The people.
    """
    steps = _Steps.of(TaskSet.of(tasks), cohort)
    owner = np.repeat(cohort.episode_owner(), np.diff(cohort.step_offsets))
    moved = np.flatnonzero(steps.direction >= 0)
    way = steps.direction[moved]
    follows = np.zeros(len(moved), np.bool_)  # whether there is a movement before it in its episode
    follows[1:] = steps.episode[moved[1:]] == steps.episode[moved[:-1]]
    before = np.roll(way, 1)

    def count(rows: Integers | Flags) -> Floats:
        return np.bincount(owner[rows], minlength=len(cohort)).astype(np.float64)

    visits, revisits = _visits(steps, moved)
    found = np.column_stack(
        [
            count(np.arange(cohort.n_steps)),
            count(moved),
            count(steps.buys),
            count(steps.pays) > 0,
            count(steps.leaves) > 0,
            *(count(moved[way == direction]) for direction in range(len(MOVES))),
            count(moved[follows & (way != before)]),
            count(moved[follows & (way == OPPOSITE[before])]),
            count(visits),
            count(revisits),
            count(~steps.consistent) == 0,
        ]
    ).astype(np.float64)
    found[found[:, 0] == 0] = np.nan
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """What every step is, [N] each: its episode, direction of movement (-1 for none), cell and next cell."""

    episode: Integers
    direction: Integers
    cell: Integers
    arrival: Integers
    buys: Flags
    pays: Flags
    leaves: Flags
    consistent: Flags

    @classmethod
    def of(cls, tasks: TaskSet, cohort: Cohort) -> _Steps:
        task = tasks.task_of(cohort)
        strange = sorted(set(cohort.episodes["task"].gather(np.flatnonzero(task < 0)).to_list()))
        if strange:
            raise DataError(
                f"{len(strange)} of the tasks people did were not given; known: {', '.join(tasks.names)}."
            )
        n = cohort.n_steps
        episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
        following = np.full(n, UNKNOWN_STATE, dtype=np.int64)
        following[:-1] = cohort.state[1:]
        ends = cohort.step_offsets[1:][np.diff(cohort.step_offsets) > 0] - 1
        following[ends] = cohort.end_state[episode[ends]]
        direction, cell, arrival = np.full((3, n), NOWHERE, dtype=np.int64)
        buys, pays, leaves, consistent = np.zeros((4, n), np.bool_)
        found = cls(episode, direction, cell, arrival, buys, pays, leaves, consistent)
        for number in np.unique(task[episode]).tolist():
            own = np.flatnonzero(task[episode] == number)
            found._fill(tasks.tasks[number], own, cohort.state[own], cohort.action[own], following[own])
        return found

    def _fill(self, task: TaskModel, own: Integers, state: Any, action: Any, following: Integers) -> None:
        """Say what these steps of one task are."""
        grid = task.grid
        if grid is None or task.actions[: len(MOVES)] != MOVES:
            raise TaskError(
                f"{task.name} was not drawn as a map, so there are no directions and cells to count. Only "
                "tasks with a map have trajectory statistics; leave trajectory out."
            )
        kind = _kinds(task, len(grid.grid.moves))
        acted = np.where((action >= 0) & (action < task.n_actions), action, NO_ACTION)
        direction = np.where((acted >= 0) & (acted < len(grid.grid.moves)), acted, -1)
        here, there = _cells(grid, state), _cells(grid, following)
        led = grid.onward(np.where(here != NOWHERE, state, 0), np.maximum(direction, 0), following)
        onward = np.where((direction >= 0) & (here != NOWHERE), led, here)
        self.direction[own] = direction
        self.cell[own] = here
        self.arrival[own] = np.maximum(np.where(there == NOWHERE, onward, there), NOWHERE)
        self.buys[own] = kind[acted] == BUY
        self.pays[own] = kind[acted] == PAY
        self.leaves[own] = kind[acted] == OUT
        exists = (state >= 0) & (state < task.n_states)
        self.consistent[own] = exists & ((direction < 0) | (onward != NOWHERE)) & (
            (here == NOWHERE) | (there == NOWHERE) | (there == onward)
        )  # fmt: skip


def _kinds(task: TaskModel, n_moves: int) -> NDArray[np.int8]:
    """The kind of each action; the last entry is of the actions the task leaves out."""
    kind = np.full(task.n_actions + 1, BUY, dtype=np.int8)
    kind[:n_moves] = MOVE
    kind[-1] = OUT
    spec = task.grid.spec if task.grid is not None else None
    for special, what in () if spec is None else ((spec.finish, PAY), (spec.exit, OUT)):
        if special is not None and special.action in task.actions:
            kind[task.actions.index(special.action)] = what
    return kind


def _cells(grid: GridStates, state: Integers) -> Integers:
    """The cell of each state; NOWHERE at the end of the task and where the state is unknown."""
    inside = (state >= 0) & (state < grid.end)
    return np.where(inside, state % grid.grid.n_cells, NOWHERE).astype(np.int64)


def _visits(steps: _Steps, moved: Integers) -> tuple[Integers, Integers]:
    """The steps by which a cell was visited for the first time, and the movements into a known cell."""
    step = np.concatenate([np.arange(len(steps.cell)), moved])
    cell = np.concatenate([steps.cell, steps.arrival[moved]])
    is_arrival = np.repeat([False, True], [len(steps.cell), len(moved)])
    order = np.argsort(2 * step + is_arrival, kind="stable")
    order = order[cell[order] != NOWHERE]
    key = steps.episode[step[order]] * (cell.max(initial=0) + 1) + cell[order]
    is_first = np.zeros(len(key), np.bool_)
    is_first[np.unique(key, return_index=True)[1]] = True
    again = ~is_first & is_arrival[order]
    return step[order][is_first], step[order][again]
