"""Legal state-action pairs from the tables a lab may have; checked once, offending rows named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fidm.errors import Problem, TaskError

MAX_LISTED = 5
"""How many offending rows an error lists before it only counts the rest."""

MAX_STATES = 20_000_000
"""More states than this are refused."""

MAX_ACTIONS = 1_000_000
"""More different actions than this are refused."""

MAX_REWARD = 1e12
"""Larger rewards leave no digits for the differences between actions."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Legal state-action pairs, sorted by state and action; see :class:`TaskModel` for the fields."""

    offsets: NDArray[np.int64]
    action: NDArray[np.int32]
    reward: NDArray[np.float64]
    successor_offsets: NDArray[np.int64]
    successor: NDArray[np.int32]
    probability: NDArray[np.float64]
    actions: tuple[str, ...]


def pairs_of_tables(next_state: ArrayLike, reward: ArrayLike, actions: Sequence[str]) -> Pairs:
    """Check the two tables of a deterministic task and return their legal pairs."""
    target, pay = _whole_numbers(next_state, "next_state"), _numbers(reward, "reward")
    if target.ndim != 2 or target.shape != pay.shape:
        raise TaskError(
            f"next_state has shape {target.shape} and reward {pay.shape}; "
            "both must be the same (states, actions)."
        )
    n_states, n_actions = target.shape
    _refuse(
        np.argwhere((target < -1) | (target >= n_states)),
        f"next_state must lie between -1 (not legal) and {n_states - 1}.",
        lambda s, a: (f"next_state[{s}, {a}]", f"is {target[s, a]}."),
    )
    state, action = np.nonzero(target >= 0)
    return _sorted_pairs(
        state,
        action,
        pay[state, action],
        np.arange(len(state) + 1),
        target[state, action],
        np.ones(len(state)),
        n_states,
        _action_names(actions, n_actions),
    )


def pairs_of_rows(
    state: ArrayLike, action: ArrayLike, reward: ArrayLike, transition: Any, actions: Sequence[str]
) -> Pairs:
    """Check state-action pairs with their successor probabilities and sort them."""
    try:
        matrix = sparse.csr_array(transition, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise TaskError(f"transition is not a matrix of numbers ({error}).") from None
    of_state, of_action = _whole_numbers(state, "state"), _whole_numbers(action, "action")
    pay = _numbers(reward, "reward")
    shapes = {of_state.shape, of_action.shape, pay.shape}
    if matrix.ndim != 2 or shapes != {(matrix.shape[0],)}:
        raise TaskError(
            f"state {of_state.shape}, action {of_action.shape}, reward {pay.shape} and "
            f"transition {matrix.shape} must have one row per pair."
        )
    n_pairs, n_states = matrix.shape
    _refuse(
        np.argwhere((of_state < 0) | (of_state >= n_states) | (of_action < 0)),
        f"States must lie between 0 and {n_states - 1}, actions from 0.",
        lambda k: (f"pair {k}", f"is state {of_state[k]}, action {of_action[k]}."),
    )
    matrix.sum_duplicates()
    negative = np.zeros(n_pairs, dtype=np.bool_)
    negative[np.repeat(np.arange(n_pairs), np.diff(matrix.indptr))[~(matrix.data >= 0)]] = True
    total = np.asarray(matrix.sum(axis=1)).reshape(-1)
    _refuse(
        np.argwhere(negative | ~(np.abs(total - 1.0) <= 1e-9)),
        "The probabilities of each pair must not be negative and must sum to one.",
        lambda k: (
            f"pair {k} (state {of_state[k]}, action {of_action[k]})",
            "has a probability below 0." if negative[k] else f"sums to {total[k]:.10g}.",
        ),
    )
    matrix.eliminate_zeros()
    order = np.lexsort((of_action, of_state))
    of_state, of_action, pay, matrix = of_state[order], of_action[order], pay[order], matrix[order]
    _refuse(
        np.argwhere((np.diff(of_state) == 0) & (np.diff(of_action) == 0)),
        "Each state-action pair may occur once.",
        lambda k: (f"state {of_state[k]}, action {of_action[k]}", "occurs more than once."),
    )
    n_actions = max(len(actions), int(of_action.max(initial=-1)) + 1)
    return _sorted_pairs(
        of_state,
        of_action,
        pay,
        matrix.indptr,
        matrix.indices,
        matrix.data,
        n_states,
        _action_names(actions, n_actions),
    )


def _sorted_pairs(
    state: NDArray[Any],
    action: NDArray[Any],
    reward: NDArray[np.float64],
    successor_offsets: NDArray[Any],
    successor: NDArray[Any],
    probability: NDArray[np.float64],
    n_states: int,
    actions: tuple[str, ...],
) -> Pairs:
    if not 1 <= n_states <= MAX_STATES:
        raise TaskError(f"The task has {n_states} states; from 1 to {MAX_STATES} can be used.")
    _refuse(
        np.argwhere(~(np.abs(reward) <= MAX_REWARD)),
        f"Every reward of a legal action must be a finite number, at most {MAX_REWARD:g} in size.",
        lambda k: (f"state {state[k]}, action {action[k]}", f"pays {reward[k]}."),
    )
    return Pairs(
        offsets=np.searchsorted(state, np.arange(n_states + 1)).astype(np.int64),
        action=action.astype(np.int32),
        reward=reward,
        successor_offsets=successor_offsets.astype(np.int64),
        successor=successor.astype(np.int32),
        probability=probability,
        actions=actions,
    )


def _refuse(rows: NDArray[Any], message: str, say: Callable[..., tuple[str, str]]) -> None:
    """Raise if there are offending rows: the first few in words, the rest as a count."""
    if not len(rows):
        return
    listed = []
    for row in rows[:MAX_LISTED].tolist():
        where, what = say(*row)
        listed.append(Problem(what, where))
    if len(rows) > MAX_LISTED:
        listed.append(Problem(f"and {len(rows) - MAX_LISTED} more."))
    raise TaskError(message, problems=listed)


def _whole_numbers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = _numbers(values, name)
    if not np.array_equal(array, np.rint(array)) or np.abs(array).max(initial=0.0) > 2**31:
        raise TaskError(f"{name} must hold whole numbers.")
    return array.astype(np.int64)


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TaskError(f"{name} must be a table of numbers.") from None


def _action_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    if count > MAX_ACTIONS:
        raise TaskError(f"The task has {count} actions; up to {MAX_ACTIONS} can be used.")
    if not names:
        return tuple(str(i) for i in range(count))
    if len(names) != count:
        raise TaskError(f"{len(names)} actions are named, but there are {count}.")
    if len(set(names)) != count:
        raise TaskError("The names of the actions must differ from each other.")
    return tuple(names)


def check_coordinates(coordinates: ArrayLike, n_states: int) -> NDArray[np.float64]:
    """Return where states are, [S, 2], two finite numbers, or NaN twice where there is no place."""
    at = _numbers(coordinates, "coordinates")
    if at.shape != (n_states, 2):
        raise TaskError(
            f"coordinates has shape {at.shape}; x and y of each of the {n_states} states are needed, "
            f"({n_states}, 2)."
        )
    _refuse(
        np.argwhere(np.isinf(at).any(axis=1) | (np.isnan(at[:, 0]) != np.isnan(at[:, 1]))),
        "Each state has two finite coordinates, or NaN twice where it has no place.",
        lambda s: (f"coordinates[{s}]", f"is {at[s, 0]:g}, {at[s, 1]:g}."),
    )
    return at


def number_places(coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number the different coordinates in the order of their first states, [S]; -1 where there are none."""
    place = np.full(len(coordinates), -1, dtype=np.int64)
    known = np.flatnonzero(~np.isnan(coordinates[:, 0]))
    at = coordinates[known, 0] + 1j * coordinates[known, 1]
    _, first, own = np.unique(at, return_index=True, return_inverse=True)
    place[known] = np.argsort(np.argsort(first))[own]
    return place


def find_moves(pairs: Pairs, coordinates: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which pairs surely lead from one place to another, [K]."""
    place, sizes = number_places(coordinates), np.diff(pairs.successor_offsets)
    here = place[np.repeat(np.arange(len(place)), np.diff(pairs.offsets))]
    there = place[pairs.successor[pairs.successor_offsets[:-1]]]
    return np.asarray((sizes == 1) & (here >= 0) & (there >= 0) & (here != there))


def rows_at(
    offsets: NDArray[np.int64], chosen: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that belong to the chosen groups, side by side, and where each group begins."""
    counts = offsets[chosen + 1] - offsets[chosen]
    begins = np.concatenate([[0], np.cumsum(counts)])
    return np.repeat(offsets[chosen] - begins[:-1], counts) + np.arange(begins[-1]), begins
