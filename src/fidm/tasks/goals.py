"""Does the best agent finish, and does each goal beat wandering? The core of the task check.

Both are read off the solved values: the best agent is followed from every start, and wherever a goal can
be taken, taking it is compared with the best way of walking on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.tasks.behaviour import look_ahead, pair_values, reachable
from fidm.tasks.model import TaskModel
from fidm.types import Values

LONGEST_SITTING = 1_000
"""No check looks further ahead than so many actions, unless the shortest way is longer."""

TIE = 1e-8
"""Actions whose values differ by no more than this count as equally good."""


@dataclass(frozen=True, slots=True)
class GoalCheck:
    """By how much taking a goal beats walking on, in units of value.

    ``reachable`` says whether acting can bring one before it while it is a goal, ``achieved`` whether the
    best agent then takes it.
    ``typical`` and ``worst`` are the median and the smallest gap over all states that acting can
    reach; ``incomplete`` is the smallest over the states one is only told into (a phase opened
    before the earlier goals were complete), or NaN where there are none. ``implied`` marks the goal
    "finish" of a task that names no goals: ending it. Whether that ought to beat going on, only the
    task's author knows, so it is shown and not judged.
    """

    goal: str
    reachable: bool
    achieved: bool
    typical: float
    worst: float
    incomplete: float
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What a solved task shows: whether the best agent finishes, how soon, and by how much goals pay."""

    ends: bool  # whether the task has an end at all
    finishes: bool  # whether the best agent is sure to reach it; with a horizon, whether it can
    actions: float  # how many actions the best agent takes, at most ``sitting``
    # The fewest actions in which every goal can be taken as a goal; None if the end is out of reach. Of
    # several starts the mean, rounded up; None if the end is out of reach of any.
    fewest: int | None
    sitting: int  # how many actions were looked ahead
    acting: NDArray[np.bool_]  # [S]: which states acting can reach from the start
    goals: tuple[GoalCheck, ...]  # by how much each goal beats walking on
    # The pairs the best agent goes round in for ever; empty if it finishes or outcomes are uncertain.
    loop: tuple[int, ...] = ()
    left_undone: tuple[str, ...] = ()  # the targets the best agent ends the task without

    @classmethod
    def at(cls, task: TaskModel, values: Values, like: Look | None = None) -> Look:
        """Look at a solved task; ``like`` saves what does not depend on the values."""
        lengths = [] if like else [_fewest_actions(task, start) for start in task.starts]
        fewest = like.fewest if like else _mean(lengths)
        acting = like.acting if like else _acting(task)
        sitting = like.sitting if like else _sitting(task, lengths)
        policy = _best(task, values)
        best = look_ahead(task, policy, max_steps=sitting)
        ends = bool(task.ends.any())
        return cls(
            ends=ends,
            finishes=ends and (best.finished > 0 if task.horizon else _surely_ends(task, policy > 0)),
            actions=best.actions,
            fewest=fewest,
            sitting=sitting,
            acting=acting,
            goals=_goals(task, values, acting, best.visits > 0),
            loop=_loop(task, values) if task.is_deterministic else (),
            left_undone=_left_undone(task, values),
        )

    @property
    def narrowest(self) -> float:
        """The smallest of the goals' typical gaps; NaN where no goals are known."""
        return min((goal.typical for goal in self.goals), default=math.nan)

    @property
    def works(self) -> bool:
        """Whether the best agent finishes, if there is an end, and no goal loses to walking on."""
        traps = [goal for goal in self.goals if goal.typical <= 0 and not goal.implied]
        return (self.finishes or not self.ends) and not traps and not self.left_undone


def _acting(task: TaskModel) -> NDArray[np.bool_]:
    """Which states acting can reach from the start."""
    acting = np.zeros(task.n_states, dtype=np.bool_)
    for ring in reachable(task):
        acting[ring] = True
    return acting


def _fewest_actions(task: TaskModel, start: int) -> int | None:
    """The fewest actions from a start to an end, each goal taken when it is one."""
    straight = (task.is_move | (task.goal >= 0)) if task.goals else np.ones(task.n_pairs, np.bool_)
    rings = enumerate(reachable(task, straight, start=start))
    ends = task.ends
    return next((n for n, ring in rings if ends[ring].any()), None)


def _mean(lengths: list[int | None]) -> int | None:
    """The mean length of the ways, rounded up; None if there is none from some start."""
    known = [length for length in lengths if length is not None]
    return math.ceil(sum(known) / len(known)) if len(known) == len(lengths) else None


def _sitting(task: TaskModel, lengths: list[int | None]) -> int:
    """How many actions to look ahead: five times the fewest from the worst start, within reason."""
    if task.horizon is not None:
        return task.horizon
    known = [length for length in lengths if length is not None]
    if not task.is_deterministic or len(known) < len(lengths):
        return LONGEST_SITTING
    fewest = max(known)
    return max(min(LONGEST_SITTING, max(50, 5 * fewest)), 2 * fewest)


def _best(task: TaskModel, values: Values) -> NDArray[np.float64]:
    """The agent that always takes a best action; ties, up to ``TIE``, are shared evenly."""
    q, state = pair_values(task, values), task.pair_state
    top = np.full(task.n_states, -np.inf)
    np.maximum.at(top, state, q)
    is_best = (q >= top[state] - TIE).astype(np.float64)
    return np.asarray(is_best / np.bincount(state, is_best, minlength=task.n_states)[state])


def _surely_ends(task: TaskModel, taken: NDArray[np.bool_]) -> bool:
    """Whether an end is reached with probability 1 if only the taken pairs are used."""
    counts = np.diff(task.successor_offsets)
    used = np.repeat(taken, counts)
    tail = np.repeat(task.pair_state, counts)[used]
    n = task.n_states
    onward = sparse.csr_array((np.ones(len(tail)), (tail, task.handover[task.successor[used]])), shape=(n, n))
    passed = [csgraph.breadth_first_order(onward, start, return_predecessors=False) for start in task.starts]
    can_end = _can_end(task, used)
    return all(bool(can_end[states].all()) for states in passed)


def _can_end(task: TaskModel, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """From which states an end can be reached over the links that are used."""
    tail = np.repeat(task.pair_state, np.diff(task.successor_offsets))[used]
    head, n, ends = task.handover[task.successor[used]], task.n_states, np.flatnonzero(task.ends)
    back = sparse.csr_array(
        (
            np.ones(len(tail) + len(ends)),
            (np.concatenate([head, np.full(len(ends), n)]), np.concatenate([tail, ends])),
        ),
        shape=(n + 1, n + 1),
    )
    can_end = np.zeros(n + 1, dtype=np.bool_)
    can_end[csgraph.breadth_first_order(back, n, return_predecessors=False)] = True
    return can_end[:-1]


def shut_off(task: TaskModel, look: Look) -> int | None:
    """Return a state that acting can reach and that no way leads to an end from; None if there is none."""
    can_end = _can_end(task, np.ones(len(task.successor), np.bool_))
    lost = np.flatnonzero(look.acting & ~can_end)
    return int(lost[0]) if len(lost) else None


def _route(task: TaskModel, values: Values, state: int) -> tuple[list[int], int | None]:
    """The pairs the first best actions lead through, and where they begin to repeat (None: an end)."""
    best = np.argmax(values.q, axis=1) if task.n_actions else np.zeros(task.n_states, dtype=np.int64)
    order: dict[int, int] = {}
    pairs: list[int] = []
    while state not in order:
        if task.terminal[state]:
            return pairs, None
        order[state] = len(pairs)
        pairs.append(task.pair(state, int(best[state])))
        state = int(task.handover[task.successor[pairs[-1]]])
    return pairs, order[state]


def _loop(task: TaskModel, values: Values) -> tuple[int, ...]:
    """The pairs the best agent ends up repeating, if from some start it never reaches an end."""
    for start in task.starts:
        pairs, begin = _route(task, values, start)
        if begin is not None:
            return tuple(pairs[begin:])
    return ()


def _left_undone(task: TaskModel, values: Values) -> tuple[str, ...]:
    """The targets of a drawn task that the best agent has not completed when it ends the task.

    Where hidden cells may bar the way to a target, it is one only if the agent never completes it.
    """
    if task.grid is None:
        return ()
    undone = set[str]()
    for start in task.starts:
        done = [
            {
                *task.grid.completed(int(task.pair_state[last])),
                *(task.goals[g] for g in [task.goal[last]] if g >= 0),
            }
            for last in _last_pairs(task, values, start)
        ]
        undone |= {*task.grid.spec.targets}.difference(*done) if done else set()
    return tuple(target for target in task.grid.spec.targets if target in undone)


def _last_pairs(task: TaskModel, values: Values, start: int) -> list[int]:
    """The pairs by which the best agent may end the task; one, if every outcome is certain."""
    if task.is_deterministic:
        pairs, begin = _route(task, values, start)
        return pairs[-1:] if begin is None else []
    best = task.action == np.argmax(values.q, axis=1)[task.pair_state]
    passed = np.concatenate([*reachable(task, best, start=start)])
    taken = np.flatnonzero(best & np.isin(task.pair_state, passed))
    ending = np.logical_or.reduceat(task.terminal[task.handover[task.successor]], task.successor_offsets[:-1])
    return [int(pair) for pair in taken[ending[taken]]]


def _goals(
    task: TaskModel, values: Values, acting: NDArray[np.bool_], on_route: NDArray[np.bool_]
) -> tuple[GoalCheck, ...]:
    """For each goal, how much more it is worth to take it than to walk on."""
    names, goal, implied = task.goals, task.goal, not task.goals
    if implied and task.horizon is None and task.terminal.any() and task.n_pairs:
        ending = np.maximum.reduceat(task.terminal[task.successor], task.successor_offsets[:-1])
        names, goal = ("finish",), np.where(ending, 0, -1)
    q, state = pair_values(task, values), task.pair_state
    walking_on = np.full(task.n_states, -np.inf)
    np.maximum.at(walking_on, state[goal < 0], q[goal < 0])
    best = np.argmax(values.q, axis=1) if task.n_actions else np.zeros(task.n_states, dtype=np.int64)
    checks = []
    for i, name in enumerate(names):
        rows = np.flatnonzero((goal == i) & np.isfinite(walking_on[state]))
        gap = q[rows] - walking_on[state[rows]]
        reached, told = gap[acting[state[rows]]], gap[~acting[state[rows]]]
        taken = np.flatnonzero((goal == i) & on_route[state] & (task.action == best[state]))
        checks.append(
            GoalCheck(
                goal=name,
                reachable=bool(acting[state[goal == i]].any()),
                achieved=len(taken) > 0,
                typical=float(np.median(reached)) if len(reached) else math.nan,
                worst=float(reached.min()) if len(reached) else math.nan,
                incomplete=float(told.min()) if len(told) else math.nan,
                implied=implied,
            )
        )
    return tuple(checks)
