"""Which steps were detours or passed a shelf by, told from the trace and the map alone.

Two anchors of the paper (section 4.3 and appendix C.3); neither knows η or Q:

- a **route divergence** is a movement after which the place of the next task completion of this episode is
  farther away, in steps over walkable cells, than before it. A completion is an action that completes a
  target for the first time, in whatever phase, or finishes the task; its place is where the person stood.
  Movements after the last completion have no such place and are left out;
- a **bypass** is a movement out of reach of a target of the active phase that is not yet bought and could
  have been bought there. Buying something else, or moving along the shelf, is none. A step in a state in
  which such a purchase is possible is an *opportunity*.

Actions the task leaves out, and steps in states that are not counted, have neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.cohort import Cohort
from fidm.errors import TaskError
from fidm.tasks.grid import Grid, GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import Followed, TaskSet, follow

Flags = NDArray[np.bool_]
NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The anchors of every step; a distance is NaN where there is no place to be distant from."""

    is_move: Flags
    is_known: Flags
    completes: Flags
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    opportunity: Flags
    leaves: Flags


def anchors(
    tasks: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel] | TaskSet, cohort: Cohort
) -> pl.DataFrame:
    """Say of every step whether it leads away from the next goal, and whether it passes a goal by.

    Parameters
    ----------
    tasks : TaskModel, several, or TaskSet
        Tasks that were drawn as maps.
    cohort : Cohort
        The people.

    Returns
    -------
    DataFrame [N]
        ``participant``, ``episode``, ``step``; ``is_move``; ``completes`` (whether it is a task completion);
        ``stretch`` (the way from one completion to the next, counted from 1); ``distance_before`` and
        ``distance_after`` to the next completion; ``route_divergence``, null where it cannot be said;
        ``opportunity`` and ``bypass``, null in states that are not counted.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.anchors import anchors
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 3, seed=1)
    >>> anchors(task, cohort).height == cohort.n_steps
    True
    """
    stacked = tasks if isinstance(tasks, TaskSet) else TaskSet.of(tasks)
    followed = follow(stacked, cohort)
    for t in np.unique(followed.task).tolist():
        if t >= 0 and stacked.tasks[t].grid is None:
            raise TaskError(
                f"{stacked.tasks[t].name} was not drawn as a map, so nobody knows what is a detour in it or "
                "what is passed by. Only tasks with a map have such anchors."
            )
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    found = _find(stacked, cohort, followed, of_step)
    done = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.completes)])
    farther = found.after > found.before
    known = found.is_move & found.is_known & ~np.isnan(found.before)
    return pl.DataFrame(
        {
            "participant": cohort.ids.gather(cohort.episode_owner()[of_step]),
            "episode": cohort.episodes["episode"].gather(of_step),
            "step": (np.arange(cohort.n_steps) - cohort.step_offsets[of_step] + 1).astype(np.int32),
            "is_move": found.is_move,
            "completes": found.completes,
            "stretch": (done[:-1] - done[cohort.step_offsets[of_step]] + 1).astype(np.int32),
            "distance_before": pl.Series(found.before, nan_to_null=True),
            "distance_after": pl.Series(found.after, nan_to_null=True),
            "route_divergence": _nullable(farther, known),
            "opportunity": _nullable(found.opportunity, found.is_known),
            "bypass": _nullable(found.is_move & found.leaves, found.is_known),
        }
    )


def _nullable(values: Flags, known: Flags) -> pl.Series:
    return pl.Series(values).set(pl.Series(~known), None)


def _find(tasks: TaskSet, cohort: Cohort, followed: Followed, of_step: NDArray[np.int64]) -> _Steps:
    n = cohort.n_steps
    found = _Steps(
        is_move=np.zeros(n, np.bool_),
        is_known=np.zeros(n, np.bool_),
        completes=np.zeros(n, np.bool_),
        before=np.full(n, np.nan),
        after=np.full(n, np.nan),
        opportunity=np.zeros(n, np.bool_),
        leaves=np.zeros(n, np.bool_),
    )
    task_of_step = followed.task[of_step]
    for t, task in enumerate(tasks.tasks):
        steps = np.flatnonzero((task_of_step == t) & (followed.pair >= 0))
        if not len(steps) or task.grid is None:
            continue
        pair = followed.pair[steps] - int(tasks.pair_base[t])
        state = followed.row[steps] - int(tasks.state_base[t])
        then = task.successor[task.successor_offsets[pair]]
        found.is_move[steps] = task.is_move[pair]
        found.is_known[steps] = task.counted[state]
        found.completes[steps] = _completions(task, task.grid, state, pair, then, of_step[steps])
        cell = state % task.grid.grid.n_cells
        place = _next_place(cell, found.completes[steps], of_step[steps])
        walks = np.flatnonzero(task.is_move[pair] & (place != NOWHERE))
        moved = then[walks] % task.grid.grid.n_cells
        distance, column = _distances(task.grid.grid, place[walks])
        found.before[steps[walks]] = distance[column, cell[walks]]
        found.after[steps[walks]] = distance[column, moved]
        within = _within_reach(task, task.grid)
        found.opportunity[steps] = within[state] != 0
        found.leaves[steps] = (within[state] & ~within[then]) != 0
    return found


def _completions(
    task: TaskModel,
    states: GridStates,
    state: NDArray[np.int32],
    pair: NDArray[np.int32],
    then: NDArray[np.int32],
    episode: NDArray[np.int64],
) -> Flags:
    """Which steps complete something for the first time in their episode."""
    n_cells, end = states.grid.n_cells, states.end
    inside = (state < end) & (then < end)
    mode, later = np.where(inside, state, 0) // n_cells, np.where(inside, then, 0) // n_cells
    marks = inside & (states.progress[mode] != states.progress[later])
    goal = task.goal[pair]
    achieves = np.flatnonzero(goal >= 0)
    key = episode[achieves] * len(task.goals) + goal[achieves]
    first = np.zeros(len(state), np.bool_)
    first[achieves[np.unique(key, return_index=True)[1]]] = True
    return np.asarray(marks | first)


def _next_place(cell: NDArray[np.int32], completes: Flags, episode: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cell of the next completion of the same episode, at or after each step; -1 where there is none."""
    done = np.flatnonzero(completes)
    place = np.full(len(cell), NOWHERE, dtype=np.int64)
    if not len(done):
        return place
    following = np.searchsorted(done, np.arange(len(cell)))
    some = np.flatnonzero(following < len(done))
    following = done[following[some]]
    same = episode[following] == episode[some]
    place[some[same]] = cell[following[same]]
    return place


def _distances(grid: Grid, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The fewest moves from each different place to every cell, and the line of each place in it."""
    different, line = np.unique(places, return_inverse=True)
    cell, way = np.nonzero(grid.neighbour >= 0)
    size = grid.n_cells
    links = sparse.csr_array((np.ones(len(cell)), (cell, grid.neighbour[cell, way])), shape=(size, size))
    if not len(different):
        return np.zeros((0, size)), line
    return np.asarray(csgraph.shortest_path(links, unweighted=True, indices=different)), line


def _within_reach(task: TaskModel, states: GridStates) -> NDArray[np.int64]:
    """The unfinished targets of the active phase that can be bought in each state, one bit each, [S]."""
    within = np.zeros(task.n_states, dtype=np.int64)
    buys = np.flatnonzero((task.goal >= 0) & (task.goal < len(states.spec.targets)))
    np.bitwise_or.at(within, task.pair_state[buys], np.int64(1) << task.goal[buys].astype(np.int64))
    return within
