"""Does the best agent finish, and does each goal beat wandering? The core of the task check.

Both are read off the solved values: the best agent is followed from the start, and wherever a goal can
be taken, taking it is compared with the best way of walking on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fidm.tasks.behaviour import look_ahead, pair_values, reachable
from fidm.tasks.model import TaskModel
from fidm.types import Values

LONGEST_SITTING = 1_000
"""No check looks further ahead than so many actions."""


@dataclass(frozen=True, slots=True)
class GoalCheck:
    """By how much taking a goal beats walking on, in units of value.

    ``typical`` and ``worst`` are the median and the smallest gap over all states that acting can
    reach; ``incomplete`` is the smallest over the states one is only told into (a phase opened
    before the earlier goals were complete), or NaN where there are none. ``implied`` marks the goal
    "finish" of a task that names no goals: ending it. Whether that ought to beat going on, only the
    task's author knows, so it is shown and not judged.
    """

    goal: str
    achieved: bool
    typical: float
    worst: float
    incomplete: float
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What a solved task shows: whether the best agent finishes, how soon, and by how much goals pay.

    Parameters
    ----------
    ends : bool
        Whether the task has an end at all.
    finishes : bool
        Whether the best agent reaches it.
    actions : float
        How many actions the best agent takes, at most ``sitting``.
    fewest : int or None
        The fewest actions in which every goal can be taken as a goal; None if the end is out of reach.
    sitting : int
        How many actions were looked ahead.
    acting : bool array [S]
        Which states acting can reach from the start.
    goals : tuple of GoalCheck
        By how much each goal beats walking on.
    loop : tuple of int
        The pairs the best agent goes round in for ever; empty if it finishes or outcomes are uncertain.
    """

    ends: bool
    finishes: bool
    actions: float
    fewest: int | None
    sitting: int
    acting: NDArray[np.bool_]
    goals: tuple[GoalCheck, ...]
    loop: tuple[int, ...] = ()

    @classmethod
    def at(cls, task: TaskModel, values: Values, like: Look | None = None) -> Look:
        """Look at a solved task; ``like`` saves what does not depend on the values."""
        fewest = like.fewest if like else _fewest_actions(task)
        acting = like.acting if like else _acting(task)
        sitting = like.sitting if like else _sitting(task, fewest)
        best = look_ahead(task, _best(task, values), max_steps=sitting)
        ends = bool(task.terminal.any())
        return cls(
            ends=ends,
            finishes=ends and best.finished > 0.99,
            actions=best.actions,
            fewest=fewest,
            sitting=sitting,
            acting=acting,
            goals=_goals(task, values, acting, best.visits > 0),
            loop=_loop(task, values) if task.is_deterministic else (),
        )

    @property
    def narrowest(self) -> float:
        """The smallest of the goals' typical gaps; NaN where no goals are known."""
        return min((goal.typical for goal in self.goals), default=math.nan)

    @property
    def works(self) -> bool:
        """Whether the best agent finishes, if there is an end, and no goal loses to walking on."""
        traps = [goal for goal in self.goals if goal.typical <= 0 and not goal.implied]
        return (self.finishes or not self.ends) and not traps


def _acting(task: TaskModel) -> NDArray[np.bool_]:
    """Which states acting can reach from the start."""
    acting = np.zeros(task.n_states, dtype=np.bool_)
    for ring in reachable(task):
        acting[ring] = True
    return acting


def _fewest_actions(task: TaskModel) -> int | None:
    """The fewest actions from start to end, each goal taken when it is one."""
    straight = (task.is_move | (task.goal >= 0)) if task.goals else np.ones(task.n_pairs, np.bool_)
    rings = enumerate(reachable(task, straight))
    return next((n for n, ring in rings if task.terminal[ring].any()), None)


def _sitting(task: TaskModel, fewest: int | None) -> int:
    """How many actions to look ahead: five times the fewest, within reason."""
    if task.horizon is not None:
        return task.horizon
    return min(LONGEST_SITTING, max(50, 5 * (fewest if fewest is not None else 40)))


def _best(task: TaskModel, values: Values) -> NDArray[np.float64]:
    """The agent that always takes the first best action."""
    best = np.argmax(values.q, axis=1)
    return np.asarray(task.action == best[task.pair_state], dtype=np.float64)


def _loop(task: TaskModel, values: Values) -> tuple[int, ...]:
    """The pairs the best agent ends up repeating, if it never reaches an end."""
    best = np.argmax(values.q, axis=1)
    order: dict[int, int] = {}
    pairs: list[int] = []
    state = task.start
    while state not in order:
        if task.terminal[state]:
            return ()
        order[state] = len(pairs)
        pairs.append(task.pair(state, int(best[state])))
        state = int(task.handover[task.successor[pairs[-1]]])
    return tuple(pairs[order[state] :])


def _goals(
    task: TaskModel, values: Values, acting: NDArray[np.bool_], on_route: NDArray[np.bool_]
) -> tuple[GoalCheck, ...]:
    """For each goal, how much more it is worth to take it than to walk on."""
    names, goal, implied = task.goals, task.goal, not task.goals
    if implied and task.horizon is None and task.terminal.any():
        ending = np.minimum.reduceat(task.terminal[task.successor], task.successor_offsets[:-1])
        names, goal = ("finish",), np.where(ending, 0, -1)
    q, state = pair_values(task, values), task.pair_state
    walking_on = np.full(task.n_states, -np.inf)
    np.maximum.at(walking_on, state[goal < 0], q[goal < 0])
    best = np.argmax(values.q, axis=1)
    checks = []
    for i, name in enumerate(names):
        rows = np.flatnonzero((goal == i) & np.isfinite(walking_on[state]))
        gap = q[rows] - walking_on[state[rows]]
        reached, told = gap[acting[state[rows]]], gap[~acting[state[rows]]]
        taken = np.flatnonzero((goal == i) & on_route[state] & (task.action == best[state]))
        checks.append(
            GoalCheck(
                goal=name,
                achieved=len(taken) > 0,
                typical=float(np.median(reached)) if len(reached) else math.nan,
                worst=float(reached.min()) if len(reached) else math.nan,
                incomplete=float(told.min()) if len(told) else math.nan,
                implied=implied,
            )
        )
    return tuple(checks)
