"""A task as a simulated walker sees it: where each thing can be had from, and how far that is.

Made once per task from its compiled arrays; :mod:`fidm.study.walking` looks things up here at every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fidm.errors import TaskError
from fidm.tasks.grid import GridStates
from fidm.tasks.model import TaskModel

Ints = NDArray[np.int64]

NOBODY, PAYS = -1, -2
"""Who lets a forgotten target be: nobody, or oneself by paying; a number is the mode the assessor opens."""


class Floor(NamedTuple):
    """A task as a walker sees it; *aims* are the targets, then the finish, then the exit.

    Parameters
    ----------
    offsets, action, successor, handover : arrays
        As in the task.
    marks : int array [K]
        The aim each pair achieves, or -1.
    neighbour : int array [C, 4]
        The cell north, south, east and west of each cell, or -1.
    distance : int array [n, C]
        The fewest moves from each cell to several sets of cells.
    place : int array [M, aims]
        In each mode, which of these sets an aim can be achieved from; -1 where it cannot.
    active, undone : int array [M]
        One bit per target: those one can go for in a mode, and those its phase still needs.
    then : int array [M]
        The mode that follows when the assessor asks for the next phase all the same; NOBODY or PAYS.
    asked : int array [phases]
        The targets of each phase, one bit each.
    forgettable, losable : int
        The targets that may be forgotten, and forgotten for good.
    n_targets : int
        How many targets there are.
    """

    offsets: NDArray[np.int64]
    action: NDArray[np.int32]
    successor: NDArray[np.int32]
    handover: NDArray[np.int32]
    marks: NDArray[np.int64]
    neighbour: NDArray[np.int32]
    distance: NDArray[np.int32]
    place: NDArray[np.int32]
    active: Ints
    undone: Ints
    then: Ints
    asked: Ints
    forgettable: int
    losable: int
    n_targets: int

    @classmethod
    def of(cls, task: TaskModel) -> Floor:
        """Survey a task that was made from a map."""
        if task.grid is None:
            raise TaskError(
                f"{task.name} has no map, so nobody can walk on it. Walkers need a task drawn in a task "
                'file, without a horizon; agent="model" acts on any task.'
            )
        states, spec = task.grid, task.grid.spec
        n_cells, n_targets = states.grid.n_cells, len(spec.targets)
        marks = _marks(task, states)
        pair_mode, pair_cell = np.divmod(task.pair_state.astype(np.int64), n_cells)
        n_modes = len(states.progress)
        place = np.full((n_modes, n_targets + 2), -1, dtype=np.int32)
        sets: list[NDArray[np.bool_]] = []
        for aim in range(n_targets + 2):
            within = np.zeros((n_modes, n_cells), dtype=np.bool_)
            own = marks == aim
            within[pair_mode[own], pair_cell[own]] = True
            reached = np.flatnonzero(within.any(axis=1))
            if len(reached):
                found, number = np.unique(within[reached], axis=0, return_inverse=True)
                place[reached, aim] = number.reshape(-1) + len(sets)
                sets.extend(found)
        active = np.zeros(n_modes, dtype=np.int64)
        for target in range(n_targets):
            active[np.unique(pair_mode[task.goal == target])] |= 1 << target
        bit = {target: 1 << i for i, target in enumerate(spec.targets)}
        asked = np.array([sum(bit[t] for t in phase.targets) for phase in spec.phases], dtype=np.int64)
        needed = {name for target in spec.targets for name in spec.sections[target].requires}
        several = [t for phase in spec.phases if len(phase.targets) > 1 for t in phase.targets]
        return cls(
            offsets=task.offsets,
            action=task.action,
            successor=task.successor,
            handover=task.handover,
            marks=marks,
            neighbour=states.grid.neighbour,
            distance=_distances(np.array(sets), states.grid.neighbour),
            place=place,
            active=active,
            undone=asked[states.phase] & ~states.progress,
            then=_followers(states),
            asked=asked,
            forgettable=sum(bit[target] for target in several),
            losable=sum(bit[target] for target in several if target not in needed),
            n_targets=n_targets,
        )


def _marks(task: TaskModel, states: GridStates) -> NDArray[np.int64]:
    """The aim each pair achieves: a target, asked for or not; the finish; the exit; or -1."""
    n_cells, n_targets = states.grid.n_cells, len(states.spec.targets)
    progress = np.append(states.progress, 0)
    gained = progress[task.successor // n_cells] & ~progress[task.pair_state // n_cells]
    is_over = task.successor == states.end
    marks = task.goal.astype(np.int64)
    marks[(marks < 0) & is_over] = n_targets + 1
    other = np.flatnonzero((marks < 0) & (gained > 0))
    marks[other] = [int(mark).bit_length() - 1 for mark in gained[other].tolist()]
    return marks


def _followers(states: GridStates) -> Ints:
    """Who lets a target be in each mode: see :data:`NOBODY`."""
    spec = states.spec
    modes = list(zip(states.progress.tolist(), states.phase.tolist(), strict=True))
    number = {mode: i for i, mode in enumerate(modes)}
    then = np.full(len(modes), NOBODY, dtype=np.int64)
    for i, (progress, phase) in enumerate(modes):
        if phase + 1 == len(spec.phases):
            then[i] = PAYS if spec.finish else NOBODY
        elif spec.rules.phase_change == "transcript" and spec.phases[phase + 1].targets:
            then[i] = number.get((progress, phase + 1), NOBODY)
    return then


@njit(cache=True, nogil=True)
def _distances(sets, neighbour):  # type: ignore[no-untyped-def]
    """The fewest moves from every cell to each set of cells, [n, C]."""
    found = np.full(sets.shape, -1, np.int32)
    queue = np.empty(sets.shape[1], np.int64)
    for i in range(len(sets)):
        last = 0
        for cell in range(sets.shape[1]):
            if sets[i, cell]:
                found[i, cell] = 0
                queue[last] = cell
                last += 1
        first = 0
        while first < last:
            cell = queue[first]
            first += 1
            for way in range(4):
                there = neighbour[cell, way]
                if there >= 0 and found[i, there] < 0:
                    found[i, there] = found[i, cell] + 1
                    queue[last] = there
                    last += 1
    return found
