"""The shared task as arrays: states, legal actions, what each leads to and what it pays.

A task is a Markov decision process M = (S, A, T, r, γ). Only its *legal state-action pairs* are
stored, sorted by state and then by action, so that nothing of size S × A × S ever exists:

- the pairs of state ``s`` are the rows ``offsets[s]:offsets[s + 1]``;
- pair ``k`` takes action ``action[k]``, pays ``reward[k]``, and leads to the states
  ``successor[successor_offsets[k]:successor_offsets[k + 1]]`` with the probabilities beside them.

A deterministic pair has one successor. A state without pairs is terminal and has the value 0. In a
task with a finite horizon the steps to go are part of the state. Everything else in the package
(solving, checking, walking, fitting) reads these arrays and does not ask where they came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fidm.errors import Problem, TaskError
from fidm.tasks.pairs import (
    MAX_STATES,
    Pairs,
    check_coordinates,
    find_moves,
    number_places,
    pairs_of_rows,
    pairs_of_tables,
)
from fidm.types import Normaliser, read_only

if TYPE_CHECKING:
    from fidm.tasks.grid import GridStates


MIN_TAU = 1e-9
"""Temperatures below this are refused; use ``normaliser="max"`` instead."""

MAX_NAMED = 1_000_000
"""More states than this lose their names when the steps to go join them."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TaskModel:
    """A shared task that people walk through, in the form the mathematics needs.

    Make one with :func:`fidm.load_task`, :meth:`from_arrays`, :meth:`from_pairs` or
    :func:`fidm.compile_task`; the constructor takes arrays that are already sorted.

    Parameters
    ----------
    name : str
        What the task is called.
    offsets : int array [S + 1]
        Where each state's pairs begin.
    action : int array [K]
        The action of each pair, ascending within a state.
    reward : float array [K]
        What each pair pays.
    successor_offsets : int array [K + 1]
        Where each pair's successors begin.
    successor : int array [N]
        The states each pair leads to.
    probability : float array [N]
        How probable each successor is; sums to one within a pair.
    actions : tuple of str
        The names of the A actions.
    gamma : float
        The discount per step, between 0 and 1.
    tau : float
        The Bellman temperature, above 0.
    normaliser : {"sum", "mean", "max"}
        The soft maximum :func:`fidm.solve` uses unless told otherwise.
    start : int
        The state every episode begins in; of several, the first.
    goals : tuple of str
        The names of what is to be achieved; empty where the task names none.
    goal : int array [K]
        Which goal a pair achieves, or -1.
    is_move : bool array [K]
        Whether a pair is a movement; the task check varies what movements cost, see ``move_extra``.
    counted : bool array [S]
        Whether actions in this state enter the likelihood.
    handover : int array [S]
        The state in which an episode goes on when the task itself opens the next phase here.
    states : tuple of str
        Names of the states; may be empty.
    grid : GridStates or None
        Place, progress and phase of each state, where the task was drawn as a map.
    horizon : int or None
        The number of steps an episode lasts, where it is limited.
    also_starts : tuple of int
        The other states an episode may begin in.
    move_extra : float array [K] or None
        What a movement pays besides the task's move cost, such as the target it arrives at; NaN where it pays
        a price of its own instead (a costly cell). None where every movement pays the move cost alone.
    coordinates : float array [S, 2] or None
        Where each state is in a drawing, in any unit: x from left to right and y from top to bottom, as on a
        screen. NaN where a state has no place. States of the same coordinates are at the same place.
    """

    name: str
    offsets: NDArray[np.int64]
    action: NDArray[np.int32]
    reward: NDArray[np.float64]
    successor_offsets: NDArray[np.int64]
    successor: NDArray[np.int32]
    probability: NDArray[np.float64]
    actions: tuple[str, ...]
    gamma: float
    tau: float
    normaliser: Normaliser
    start: int
    goals: tuple[str, ...]
    goal: NDArray[np.int16]
    is_move: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    handover: NDArray[np.int32]
    states: tuple[str, ...] = ()
    grid: GridStates | None = field(default=None, repr=False)
    horizon: int | None = None
    also_starts: tuple[int, ...] = ()
    move_extra: NDArray[np.float64] | None = None
    coordinates: NDArray[np.float64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_numbers(self.gamma, self.tau, self.normaliser)
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if self.move_extra is not None:
            object.__setattr__(self, "move_extra", read_only(self.move_extra))
        for start in self.starts:
            if not 0 <= start < self.n_states:
                raise TaskError(f"start is {start}, but the task has {self.n_states} states.")
        if self.states and len(self.states) != self.n_states:
            raise TaskError(f"{len(self.states)} state names for {self.n_states} states.")
        if self.coordinates is not None:
            at = check_coordinates(self.coordinates, self.n_states)
            object.__setattr__(self, "coordinates", read_only(at))

    # ------------------------------------------------------------------ ways to make one

    @classmethod
    def from_arrays(
        cls,
        next_state: ArrayLike,
        reward: ArrayLike,
        *,
        gamma: float,
        tau: float,
        normaliser: Normaliser = "sum",
        start: int = 0,
        horizon: int | None = None,
        name: str = "task",
        actions: Sequence[str] = (),
        states: Sequence[str] = (),
        coordinates: ArrayLike | None = None,
    ) -> TaskModel:
        """Make a deterministic task from two tables.

        Parameters
        ----------
        next_state : int array [S, A]
            The state each action leads to; -1 where the action is not legal. A state without
            legal actions is terminal.
        reward : float array [S, A]
            What each action pays; ignored where it is not legal.
        gamma, tau, normaliser, start, name
            As in the class.
        horizon : int, optional
            End every episode after so many steps; the steps to go become part of the state.
        actions, states : sequence of str, optional
            Names; numbers are used where none are given.
        coordinates : float array [S, 2], optional
            Where each state is in a drawing: x from left to right, y from top to bottom; NaN where a state
            has no place. What surely leads to another place is then a movement, so that maps, routes, detours
            and other move costs are to be had.

        Examples
        --------
        A corridor of three cells; the last one ends the walk.

        >>> import fidm
        >>> task = fidm.TaskModel.from_arrays(
        ...     [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1
        ... )
        >>> fidm.solve(task, normaliser="max").v.round(2).tolist()
        [0.8, 1.0, 0.0]
        """
        pairs = pairs_of_tables(next_state, reward, actions)
        model = cls._plain(pairs, gamma, tau, normaliser, start, name, states, coordinates)
        return model if horizon is None else model.with_horizon(horizon)

    @classmethod
    def from_pairs(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        transition: Any,
        *,
        gamma: float,
        tau: float,
        normaliser: Normaliser = "sum",
        start: int = 0,
        horizon: int | None = None,
        name: str = "task",
        actions: Sequence[str] = (),
        states: Sequence[str] = (),
        coordinates: ArrayLike | None = None,
    ) -> TaskModel:
        """Make a task whose actions may have several outcomes, from its state-action pairs.

        Parameters
        ----------
        state, action : int array [K]
            The state and the action of each legal pair, in any order, each pair once.
        reward : float array [K]
            What each pair pays (expected, where it depends on the outcome).
        transition : sparse matrix or array [K, S]
            Row k holds the probabilities of the states pair k leads to.
        gamma, tau, normaliser, start, horizon, name, actions, states, coordinates
            As in :meth:`from_arrays`.

        Examples
        --------
        A jump that lands on the goal four times out of five, and else stays.

        >>> import fidm
        >>> task = fidm.TaskModel.from_pairs(
        ...     [0], [0], [-1.0], [[0.2, 0.8]], gamma=1.0, tau=0.1, horizon=2
        ... )
        >>> fidm.solve(task).v.round(2).tolist()
        [-1.2, 0.0, -1.0, 0.0, 0.0]
        """
        pairs = pairs_of_rows(state, action, reward, transition, actions)
        model = cls._plain(pairs, gamma, tau, normaliser, start, name, states, coordinates)
        return model if horizon is None else model.with_horizon(horizon)

    @classmethod
    def _plain(
        cls,
        pairs: Pairs,
        gamma: float,
        tau: float,
        normaliser: Normaliser,
        start: int,
        name: str,
        states: Sequence[str],
        coordinates: ArrayLike | None,
    ) -> TaskModel:
        """A task without goals, phases or map."""
        n_states, n_pairs = len(pairs.offsets) - 1, len(pairs.action)
        at = None if coordinates is None else check_coordinates(coordinates, n_states)
        return cls(
            name=name,
            **{one.name: getattr(pairs, one.name) for one in fields(pairs)},
            gamma=float(gamma),
            tau=float(tau),
            normaliser=normaliser,
            start=start,
            goals=(),
            goal=np.full(n_pairs, -1, dtype=np.int16),
            is_move=np.zeros(n_pairs, dtype=np.bool_) if at is None else find_moves(pairs, at),
            counted=np.ones(n_states, dtype=np.bool_),
            handover=np.arange(n_states, dtype=np.int32),
            states=tuple(states),
            coordinates=at,
        )

    # ------------------------------------------------------------------ variations

    def with_settings(
        self,
        *,
        gamma: float | None = None,
        tau: float | None = None,
        move_cost: float | None = None,
        normaliser: Normaliser | None = None,
    ) -> TaskModel:
        """Return the same task with another discount, temperature, move cost or normaliser.

        The move cost (:attr:`move_cost`) is what plain movements pay. One that pays more or less than that,
        such as a movement that reaches a prize, keeps the difference; one with a price of its own keeps it.
        """
        reward, usual = self.reward, self.move_cost
        if move_cost is not None:
            if usual is None:
                raise TaskError(f"{self.name} has no movements, so it has no move cost to change.")
            if not np.isfinite(move_cost):
                raise TaskError(f"move_cost is {move_cost}; it must be a finite number.")
            if self.move_extra is not None:
                paid = float(move_cost) + self.move_extra
            else:
                paid = np.where(reward == usual, float(move_cost), reward + (float(move_cost) - usual))
            reward = np.where(self.pays_move_cost, paid, reward)
        return replace(
            self,
            reward=reward,
            gamma=self.gamma if gamma is None else float(gamma),
            tau=self.tau if tau is None else float(tau),
            normaliser=self.normaliser if normaliser is None else normaliser,
        )

    def with_horizon(self, horizon: int) -> TaskModel:
        """Return the task that ends after ``horizon`` steps; the steps to go join the state.

        State ``s`` with ``k`` steps to go becomes state ``(horizon - k) * S + s`` (see :meth:`at`);
        one further state, the last, is where time has run out.
        """
        if self.horizon is not None:
            raise TaskError(f"{self.name} has a horizon of {self.horizon} steps already.")
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
            raise TaskError(f"horizon is {horizon!r}; it must be a whole number of steps, 1 or more.")
        n_states, n_pairs, n_links = self.n_states, self.n_pairs, len(self.successor)
        total = horizon * n_states + 1
        if total > MAX_STATES:
            raise TaskError(
                f"{horizon} steps of {n_states} states make {total} states; {MAX_STATES} can be used."
            )
        step = np.arange(horizon)
        successor = self.successor[None, :] + (step[:, None] + 1) * n_states
        successor[-1] = total - 1
        handover = self.handover[None, :] + step[:, None] * n_states
        at, nowhere = self.coordinates, np.full((1, 2), np.nan)
        return replace(
            self,
            offsets=np.append(_repeat_offsets(self.offsets, horizon), n_pairs * horizon),
            action=np.tile(self.action, horizon),
            reward=np.tile(self.reward, horizon),
            successor_offsets=_repeat_offsets(self.successor_offsets, horizon),
            successor=successor.astype(np.int32).reshape(horizon * n_links),
            probability=np.tile(self.probability, horizon),
            goal=np.tile(self.goal, horizon),
            is_move=np.tile(self.is_move, horizon),
            counted=np.append(np.tile(self.counted, horizon), True),
            handover=np.append(handover.astype(np.int32).reshape(-1), np.int32(total - 1)),
            states=self._names_to_go(horizon) if total <= MAX_NAMED else (),
            grid=None,
            horizon=int(horizon),
            move_extra=None if self.move_extra is None else np.tile(self.move_extra, horizon),
            coordinates=None if at is None else np.concatenate([np.tile(at, (horizon, 1)), nowhere]),
        )

    def _names_to_go(self, horizon: int) -> tuple[str, ...]:
        """The names of states with so many steps to go, where states have names."""
        if not self.states:
            return ()
        steps = [f" with {_steps_to_go(k)}" for k in range(horizon, 0, -1)]
        return (*(name + to_go for to_go in steps for name in self.states), TIME_OUT)

    # ------------------------------------------------------------------ looking inside

    @property
    def n_states(self) -> int:
        """The number of states S."""
        return len(self.offsets) - 1

    @property
    def n_actions(self) -> int:
        """The number of different actions A."""
        return len(self.actions)

    @property
    def n_pairs(self) -> int:
        """The number of legal state-action pairs K."""
        return len(self.action)

    @property
    def starts(self) -> tuple[int, ...]:
        """The states an episode may begin in."""
        return (self.start, *self.also_starts)

    @property
    def pays_move_cost(self) -> NDArray[np.bool_]:
        """Which pairs are movements that pay the task's move cost, not a price of their own, [K]."""
        return self.is_move if self.move_extra is None else self.is_move & ~np.isnan(self.move_extra)

    @property
    def pair_state(self) -> NDArray[np.int32]:
        """The state of each pair, [K]."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.offsets))

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """Which states end the episode because nothing is legal there, [S]."""
        return np.array(np.diff(self.offsets) == 0)

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Which states are an end, [S]; running out of time is one only where there is no other."""
        ends = self.terminal
        if self.horizon is not None and ends[:-1].any():
            ends[-1] = False
        return ends

    @property
    def move_cost(self) -> float | None:
        """What plain movements pay; None in a task without such movements."""
        plain = np.flatnonzero(self.pays_move_cost)
        paid = self.reward[plain]
        if not len(plain):
            return None
        if self.move_extra is not None:
            besides = self.move_extra[plain]
            first = int(np.argmin(besides != 0))  # one that does nothing but move, if there is any
            return float(paid[first] - besides[first])
        if (paid == paid[0]).all():
            return float(paid[0])
        different, times = np.unique(paid, return_counts=True)
        return float(different[np.argmax(times)])

    @property
    def has_places(self) -> bool:
        """Whether states are somewhere: the task was drawn as a map, or its states have coordinates."""
        return self.grid is not None or self.coordinates is not None

    @property
    def place(self) -> NDArray[np.int64]:
        """The number of the place of each state, [S]; -1 where it has none.

        In a drawn task places are the cells of its map, else the different coordinates.
        """
        if self.grid is not None:
            state = np.arange(self.n_states)
            return np.where(state < self.grid.end, state % self.grid.grid.n_cells, -1)
        if self.coordinates is not None:
            return number_places(self.coordinates)
        return np.full(self.n_states, -1, dtype=np.int64)

    @property
    def is_deterministic(self) -> bool:
        """Whether every action has one certain outcome."""
        return len(self.successor) == self.n_pairs

    @property
    def next_state(self) -> NDArray[np.int32]:
        """Where each action leads, [S, A]; -1 where it is not legal. Deterministic tasks only."""
        if not self.is_deterministic:
            raise TaskError(
                f"{self.name} has actions with several outcomes, so it has no next_state table. "
                "Read successor and probability instead."
            )
        return self.table(self.successor, fill=np.int32(-1))

    def table(self, per_pair: NDArray[Any], *, fill: Any) -> NDArray[Any]:
        """Spread one number per pair over a [S, A] table, with ``fill`` where nothing is legal."""
        spread = np.full((self.n_states, self.n_actions), fill, dtype=np.asarray(per_pair).dtype)
        spread[self.pair_state, self.action] = per_pair
        return spread

    def pair(self, state: int, action: int | str) -> int:
        """Return the row of a legal state-action pair, or say what is legal there instead."""
        self._require(state)
        rows = slice(int(self.offsets[state]), int(self.offsets[state + 1]))
        for row, code in enumerate(self.action[rows].tolist(), start=rows.start):
            if action in (code, self.actions[code]):
                return row
        known = isinstance(action, int | np.integer) and 0 <= action < self.n_actions
        shown = self.actions[int(action)] if known else repr(action)
        legal = ", ".join(self.legal(state)) or "nothing, the state is terminal"
        raise TaskError(f"{shown} is not legal in {self.describe(state)}. Legal here: {legal}.")

    def legal(self, state: int) -> tuple[str, ...]:
        """Return the names of the actions that are legal in a state."""
        self._require(state)
        return tuple(self.actions[a] for a in self.action[self.offsets[state] : self.offsets[state + 1]])

    def at(self, state: int, steps_to_go: int) -> int:
        """Return the number of a state with so many steps to go, in a task with a horizon."""
        if self.horizon is None:
            raise TaskError(f"{self.name} has no horizon.")
        per_step = (self.n_states - 1) // self.horizon
        if not (1 <= steps_to_go <= self.horizon and 0 <= state < per_step):
            raise TaskError(
                f"There is no state {state} with {steps_to_go} steps to go; states run to "
                f"{per_step - 1} and steps from 1 to {self.horizon}."
            )
        return (self.horizon - steps_to_go) * per_step + state

    def describe(self, state: int) -> str:
        """Say in words which state this is."""
        self._require(state)
        if self.grid is not None:
            return self.grid.describe(state)
        if self.states:
            return self.states[state]
        if self.horizon is None:
            return f"state {state}"
        if state == self.n_states - 1:
            return TIME_OUT
        step, base = divmod(state, (self.n_states - 1) // self.horizon)
        return f"state {base} with {_steps_to_go(self.horizon - step)}"

    def _require(self, state: int) -> None:
        if not 0 <= state < self.n_states:
            raise TaskError(f"{self.name} has no state {state}; its states are 0 to {self.n_states - 1}.")

    def __repr__(self) -> str:
        return (
            f"TaskModel({self.name!r}: {self.n_states:,} states, {self.n_actions} actions, "
            f"{self.n_pairs:,} legal choices, gamma={self.gamma:g}, tau={self.tau:g}, "
            f"normaliser={self.normaliser!r})"
        )

    @property
    def fingerprint(self) -> str:
        """A hash of everything that changes a number, the same on every machine."""
        if self not in _FINGERPRINTS:  # a task of twenty million choices takes a second
            digest = hashlib.sha256()
            digest.update(repr((self.gamma, self.tau, self.normaliser, self.start, self.actions)).encode())
            if self.also_starts:
                digest.update(repr(self.also_starts).encode())
            for name in _ARRAYS:
                array = getattr(self, name)
                digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
                digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
            if self.coordinates is not None:  # which states share a place, not where that is drawn
                digest.update(b"place" + self.place.astype("<i8").tobytes())
            _FINGERPRINTS[self] = digest.hexdigest()
        return _FINGERPRINTS[self]


TIME_OUT = "time has run out"
"""What the last state of a task with a horizon is called."""

_FINGERPRINTS: WeakKeyDictionary[TaskModel, str] = WeakKeyDictionary()
"""The fingerprints of tasks that were asked for theirs; nothing of a task can change."""

_ARRAYS = (
    "offsets",
    "action",
    "reward",
    "successor_offsets",
    "successor",
    "probability",
    "goal",
    "is_move",
    "counted",
    "handover",
)


def _check_numbers(gamma: float, tau: float, normaliser: str) -> None:
    problems = []
    if not 0.0 <= gamma <= 1.0:
        problems.append(Problem(f"is {gamma}; it must lie between 0 and 1.", "gamma"))
    if not (np.isfinite(tau) and tau >= MIN_TAU):
        problems.append(Problem(f"is {tau}; it must be a finite number, {MIN_TAU:g} or more.", "tau"))
    if normaliser not in get_args(Normaliser):
        problems.append(Problem(f"is {normaliser!r}; it must be 'sum', 'mean' or 'max'.", "normaliser"))
    if problems:
        raise TaskError("These settings cannot be used.", problems=problems)


def _steps_to_go(n: int) -> str:
    return f"{n} step{'s' * (n > 1)} to go"


def _repeat_offsets(offsets: NDArray[np.int64], times: int) -> NDArray[np.int64]:
    """Offsets of ``times`` copies laid end to end."""
    sizes = np.tile(np.diff(offsets), times)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
