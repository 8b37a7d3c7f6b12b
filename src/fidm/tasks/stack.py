"""One task or many as one set of rows, and whether recorded traces follow their rules.

A person may have played many episodes, each on a task of its own. The tasks' rows are stacked: state
``s`` of task ``t`` becomes row ``state_base[t] + s``, and its pairs follow each other in the same order.
Whatever is fitted afterwards sees one long list of rows and never asks which task one belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from fidm.cohort import PROBLEM_SCHEMA, Cohort
from fidm.errors import DataError, TaskError
from fidm.tasks.model import TaskModel
from fidm.types import Integers, Skip, Values, read_only

UNNAMED = ""
"""The task of episodes that name none."""

STATES_AT_ONCE = 1 << 15
"""Of how many states values are copied at a time."""

FINE, NO_SUCH_STATE, ILLEGAL, BROKEN = 0, 1, 2, 3
"""What can be wrong with a step."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSet:
    """Several tasks whose rows are stacked."""

    tasks: tuple[TaskModel, ...]  # the tasks, each with a name of its own
    # [T]: the first stacked row and the first stacked pair of each task.
    state_base: NDArray[np.int64]
    pair_base: NDArray[np.int64]
    offsets: NDArray[np.int64]  # [rows + 1]: where each row's pairs begin
    action: NDArray[np.int32]  # [K]: the action of each pair
    counted: NDArray[np.bool_]  # [rows]: whether actions in this row enter the likelihood

    @classmethod
    def of(cls, tasks: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel]) -> TaskSet:
        """Stack one task, several, or a mapping of names to tasks."""
        if isinstance(tasks, TaskModel):
            found: tuple[TaskModel, ...] = (tasks,)
        elif isinstance(tasks, Mapping):
            wrong = [name for name, task in tasks.items() if name != task.name]
            if wrong:
                raise TaskError(f"The task under {wrong[0]!r} calls itself {tasks[wrong[0]].name!r}.")
            found = tuple(tasks.values())
        else:
            found = tuple(tasks)
        odd = [type(task).__name__ for task in found if not isinstance(task, TaskModel)]
        if odd:
            raise TaskError(
                f"A model needs TaskModels, not {odd[0]}. fidm.load_task and fidm.compile_task make them."
            )
        if not found:
            raise TaskError("A model needs at least one task.")
        names = [task.name for task in found]
        twice = sorted(name for name, n in Counter(names).items() if n > 1)
        if twice:
            raise TaskError(
                f"Several tasks are called {twice[0]!r}; episodes name their task, so each needs its own."
            )
        states = _starts([task.n_states for task in found])
        pairs = _starts([task.n_pairs for task in found])
        shifted = [task.offsets[:-1] + base for task, base in zip(found, pairs, strict=False)]
        return cls(
            tasks=found,
            state_base=read_only(states[:-1]),
            pair_base=read_only(pairs[:-1]),
            offsets=read_only(np.concatenate([*shifted, pairs[-1:]])),
            action=read_only(np.concatenate([task.action for task in found])),
            counted=read_only(np.concatenate([task.counted for task in found])),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return tuple(task.name for task in self.tasks)

    def values(self, solved: Iterable[Values]) -> NDArray[np.float64]:
        """Return Q of every stacked pair, [K]."""
        found = np.empty(len(self.action))
        for task, base, values in zip(self.tasks, self.pair_base.tolist(), solved, strict=True):
            sizes = np.diff(task.offsets)
            for first in range(0, task.n_states, STATES_AT_ONCE):  # a large task needs no large copies
                last = min(first + STATES_AT_ONCE, task.n_states)
                low, high = int(task.offsets[first]), int(task.offsets[last])
                state = np.repeat(np.arange(first, last), sizes[first:last])
                found[base + low : base + high] = values.q[state, task.action[low:high]]
        return found

    def task_of(self, cohort: Cohort) -> NDArray[np.int64]:
        """Return the number of each episode's task, [E]; -1 where it is not one of these.

        An episode without a task's name is on the only task there is.
        """
        number = {name: i for i, name in enumerate(self.names)}
        if len(self.tasks) == 1:
            number[UNNAMED] = 0
        named = cohort.episodes["task"]
        known = {name: number.get(name, -1) for name in named.unique().to_list()}
        codes = np.array(list(known.values()), dtype=np.int64)
        if len(known) == 1:
            return np.full(cohort.n_episodes, codes[0])
        return named.replace_strict(list(known), codes, return_dtype=pl.Int64).to_numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """A cohort's steps in terms of stacked tasks."""

    pair: NDArray[np.int32]  # [N]: the stacked pair of each step; -1 where there is none
    row: NDArray[np.int32]  # [N]: the stacked row of each step
    fault: NDArray[np.int8]  # [N]: 0 where the step follows the rules, else what is wrong with it
    task: NDArray[np.int64]  # [E]: the number of each episode's task; -1 where it is unknown


def follow(tasks: TaskSet, cohort: Cohort) -> Followed:
    """Walk along every trace and say where it does not follow the rules of its task.

    A step is at fault if its state does not exist, if its action is not legal there, or if the next
    recorded state is not one it can lead to. A task whose phases are opened by the transcript also
    allows the same place and progress in a later phase, or in the same one until the next is opened.
    """
    task = tasks.task_of(cohort)
    pair = np.full(cohort.n_steps, -1, dtype=np.int32)
    row = np.full(cohort.n_steps, -1, dtype=np.int32)
    fault = np.zeros(cohort.n_steps, dtype=np.int8)
    for t, model in enumerate(tasks.tasks):
        _follow(
            np.flatnonzero(task == t),
            cohort.step_offsets,
            cohort.state,
            cohort.action,
            cohort.end_state,
            model.offsets,
            model.action,
            model.successor_offsets,
            model.successor,
            model.handover,
            int(tasks.state_base[t]),
            int(tasks.pair_base[t]),
            pair,
            row,
            fault,
        )
        _forgive_told(model, tasks.pair_base[t], tasks.state_base[t], cohort, task == t, pair, row, fault)
    return Followed(read_only(pair), read_only(row), read_only(fault), read_only(task))


@njit(cache=True, nogil=True)
def _pair(state, action, offsets, legal):  # type: ignore[no-untyped-def]
    """The pair of a state and an action; -1 where the action is not legal."""
    for k in range(offsets[state], offsets[state + 1]):
        if legal[k] == action:
            return k
    return -1


@njit(cache=True, nogil=True)
def _follow(  # type: ignore[no-untyped-def]
    episodes, step_offsets, state, action, end_state, offsets, legal, successor_offsets, successor, handover,
    state_base, pair_base, pair, row, fault,
):  # fmt: skip
    n_states = len(offsets) - 1
    for e in episodes:
        last = step_offsets[e + 1]
        for i in range(step_offsets[e], last):
            s = state[i]
            if s < 0 or s >= n_states:
                fault[i] = 1
                continue
            row[i] = state_base + s
            follower = state[i + 1] if i + 1 < last else end_state[e]
            if action[i] == -1:
                if follower != -1 and follower != s:
                    fault[i] = 3
                continue
            found = _pair(s, action[i], offsets, legal)
            if found < 0:
                fault[i] = 2
                continue
            pair[i] = pair_base + found
            if follower == -1:
                continue
            fits = False
            for link in range(successor_offsets[found], successor_offsets[found + 1]):
                there = successor[link]
                if follower == there or follower == handover[there]:
                    fits = True
                    break
            if not fits:
                fault[i] = 3


def replay(
    task: TaskModel, action: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the states that actions lead through from the start, episode by episode, and the last ones.

    An action that is not legal ends what can be known of its episode: later states are -2, the last -1. Of
    several starts the one is taken from which all actions of an episode are legal; if that is so of several,
    nobody can know.
    """
    laid = [_replayed(task, start, action, offsets) for start in task.starts]
    if len(laid) == 1:
        return laid[0]
    states, ends = (np.stack(arrays) for arrays in zip(*laid, strict=True))
    lengths = np.diff(offsets)
    unsure = int(((ends >= 0).sum(axis=0)[lengths > 0] > 1).sum())
    if unsure:
        raise DataError(
            f"{task.name} has {len(laid)} starts, and the actions of {unsure:,} episodes are legal from more "
            "than one of them. Add the column 'state' to the steps."
        )
    which = (ends >= 0).argmax(axis=0)  # the first where none fits
    return states[np.repeat(which, lengths), np.arange(len(action))], ends[which, np.arange(len(lengths))]


def _replayed(
    task: TaskModel, start: int, action: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The states that actions lead through from one start, and the last ones."""
    state = np.full(len(action), -2, dtype=np.int64)
    end = np.full(len(offsets) - 1, -1, dtype=np.int64)
    _replay(action, offsets, task.offsets, task.action, task.successor, task.handover, start, state, end)
    return state, end


@njit(cache=True, nogil=True)
def _replay(action, episodes, offsets, legal, successor, handover, start, state, end):  # type: ignore[no-untyped-def]
    for e in range(len(episodes) - 1):
        s = start
        end[e] = s
        for i in range(episodes[e], episodes[e + 1]):
            state[i] = s
            if action[i] == -1:
                continue
            found = _pair(s, action[i], offsets, legal)
            if found < 0:
                end[e] = -1
                break
            s = handover[successor[found]]
            end[e] = s


def _forgive_told(
    model: TaskModel,
    pair_base: int,
    state_base: int,
    cohort: Cohort,
    own: NDArray[np.bool_],
    pair: NDArray[np.int32],
    row: NDArray[np.int32],
    fault: NDArray[np.int8],
) -> None:
    """Clear the fault of steps after which somebody opened a later phase, or the next is not open yet."""
    grid = model.grid
    if grid is None or grid.spec.rules.phase_change != "transcript":
        return
    broken = np.flatnonzero(fault == BROKEN)
    if not len(broken):
        return
    episode = np.searchsorted(cohort.step_offsets, broken, side="right") - 1
    broken, episode = broken[own[episode]], episode[own[episode]]
    is_last = broken + 1 == cohort.step_offsets[episode + 1]
    follower = np.where(
        is_last, cohort.end_state[episode], cohort.state[np.minimum(broken + 1, cohort.n_steps - 1)]
    )
    here = row[broken] - state_base
    there = np.where(
        pair[broken] >= 0,
        model.successor[model.successor_offsets[np.maximum(pair[broken] - pair_base, 0)]],
        here,
    )
    end = model.n_states - 1
    inside = (there < end) & (follower >= 0) & (follower < end)
    n_cells = grid.grid.n_cells
    mode, told = there // n_cells, np.where(inside, follower, 0) // n_cells
    mode, begun = np.where(inside, mode, 0), np.where(inside, here, 0) // n_cells
    fits = (
        inside
        & (there % n_cells == follower % n_cells)
        & (grid.progress[mode] == grid.progress[told])
        & (grid.phase[begun] <= grid.phase[told])
    )
    fault[broken[fits]] = FINE


def sound_steps(cohort: Cohort, followed: Followed, skip: Skip) -> Integers:
    """Return how many steps of each episode can be used, [E]; -1 where the episode is left out."""
    whole = np.diff(cohort.step_offsets)
    faults = np.flatnonzero(followed.fault != FINE)
    episode = np.searchsorted(cohort.step_offsets, faults, side="right") - 1
    found = whole.copy()
    np.minimum.at(found, episode, faults - cohort.step_offsets[episode] if skip == "rest" else -1)
    nothing = (found == 0) & (whole > 0)
    found[nothing | ((followed.task < 0) & (whole > 0))] = -1
    return found


def trace_problems(
    tasks: TaskSet, cohort: Cohort, followed: Followed, rows: NDArray[np.int64] | None = None
) -> pl.DataFrame:
    """Return every step that does not follow its task's rules, as a table of problems.

    ``rows`` gives the row each step stood in where it was read; else steps are counted as they lie.
    """
    owner = cohort.episode_owner()
    strange = np.flatnonzero((followed.task < 0) & (np.diff(cohort.step_offsets) > 0))
    known = ", ".join(tasks.names[:5])
    names = cohort.episodes["task"].gather(strange).to_list()
    found = [
        problem_rows(
            "episodes",
            strange.tolist(),
            cohort.ids.gather(owner[strange]),
            [f"It names {_plainly(name)}, which was not given." for name in names],
            [f"Known: {known}{', …' if len(tasks.names) > 5 else ''}."] * len(strange),
        )
    ]
    faults = np.flatnonzero(followed.fault != FINE)
    episode = np.searchsorted(cohort.step_offsets, faults, side="right") - 1
    said = [say_fault(tasks, cohort, followed, int(step)) for step in faults]
    found.append(
        problem_rows(
            "steps",
            (faults if rows is None else rows[faults]).tolist(),
            cohort.ids.gather(owner[episode]),
            [what for what, _ in said],
            [hint for _, hint in said],
        )
    )
    return pl.concat(found)


def problem_rows(
    table: str, rows: Sequence[int], people: pl.Series, problems: Sequence[str], hints: Sequence[str]
) -> pl.DataFrame:
    """Return a table of problems; rows come counted from 0 and are given from 1."""
    return pl.DataFrame(
        {
            "table": [table] * len(rows),
            "row": [row + 1 for row in rows],
            "participant": people,
            "problem": list(problems),
            "hint": list(hints),
        },
        schema=PROBLEM_SCHEMA,
    )


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def say_fault(tasks: TaskSet, cohort: Cohort, followed: Followed, step: int) -> tuple[str, str]:
    """Return what is wrong with a step, and what would be right, as two sentences."""
    episode = int(np.searchsorted(cohort.step_offsets, step, side="right") - 1)
    task = tasks.tasks[int(followed.task[episode])]
    state, action = int(cohort.state[step]), int(cohort.action[step])
    fault = int(followed.fault[step])
    if fault == NO_SUCH_STATE:
        return f"{task.name} has no state {state}.", f"Its states are 0 to {task.n_states - 1}."
    said: Any = task.actions[action] if 0 <= action < task.n_actions else f"action {action}"
    if fault == ILLEGAL:
        legal = ", ".join(task.legal(state)) or "nothing, the state is terminal"
        return f"{said} is not legal in {task.describe(state)}.", f"Legal here: {legal}."
    is_last = step + 1 == cohort.step_offsets[episode + 1]
    follower = int(cohort.end_state[episode] if is_last else cohort.state[step + 1])
    reached = task.describe(follower) if 0 <= follower < task.n_states else f"state {follower}"
    if action == -1:
        return (
            f"A left-out action in {task.describe(state)} is followed by {reached}.",
            "It must leave the state as it is.",
        )
    k = task.pair(state, action)
    links = task.successor[task.successor_offsets[k] : task.successor_offsets[k + 1]]
    to = " or ".join(task.describe(int(s)) for s in np.unique(task.handover[links])[:3])
    return (
        f"{said} in {task.describe(state)} is followed by {reached}.",
        f"It leads to {to}; are rows missing, out of order, or of another version of the task?",
    )


def _plainly(name: str) -> str:
    """A task's name, if it looks like one: whatever else may stand in the column is not repeated."""
    return f"the task {name!r}" if len(name) <= 40 and not any(map(str.isspace, name)) else "a task"
