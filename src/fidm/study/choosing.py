"""Simulated people who choose as the model says: by the softmax of η times the value of each action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fidm.tasks.model import TaskModel
from fidm.types import Values

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxWalker:
    """A task as a walk by softmax needs it: values of pairs, and the chances of successors, added up."""

    model: TaskModel
    q: Floats
    cumulative: Floats

    @classmethod
    def of(cls, model: TaskModel, values: Values) -> SoftmaxWalker:
        """Make a task ready to be walked through."""
        begins = np.repeat(model.successor_offsets[:-1], np.diff(model.successor_offsets))
        total = np.cumsum(model.probability)
        before = np.concatenate([[0.0], total])[begins]
        return cls(model, values.q[model.pair_state, model.action], total - before)

    def walk(self, start: int, eta: float, wrong: float, draws: Floats) -> tuple[Any, Any]:
        """Return the states and actions of a walk until the draws are used up or the episode ends.

        Parameters
        ----------
        start : int
            The first state.
        eta : float
            The person's sensitivity.
        wrong : float
            The chance of another legal action than the chosen one.
        draws : float array [L, 3]
            Uniform draws per step: which action, whether and which other one, which successor.
        """
        model = self.model
        states, actions = np.empty(len(draws) + 1, np.int32), np.empty(len(draws), np.int32)
        length = _walk(
            model.offsets, model.action, self.q, model.successor_offsets, model.successor, self.cumulative,
            model.handover, start, eta, wrong, draws, states, actions,
        )  # fmt: skip
        return states[: length + 1].copy(), actions[:length].copy()

    def run(self, truth: Floats, wrong: float, rng: np.random.Generator, most: int) -> tuple[Any, Any]:
        """Return the states and actions of a person whose log η comes first in ``truth``."""
        return self.walk(self.model.start, float(np.exp(truth[0])), wrong, rng.random((most, 3)))


def choose(offsets: NDArray[np.int64], q: Floats, row: NDArray[Any], eta: Floats, draw: Floats) -> Any:
    """Return the pair that each draw picks in its row, [n], by the softmax of η q."""
    found = np.empty(len(row), dtype=np.int64)
    _choose(offsets, q, row, eta, draw, found)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _pick(q, first, last, eta, draw):  # type: ignore[no-untyped-def]
    """The one of some pairs that a draw picks."""
    top = q[first]
    for k in range(first + 1, last):
        top = max(top, q[k])
    total = 0.0
    for k in range(first, last):
        total += np.exp(eta * (q[k] - top))
    left = draw * total
    for k in range(first, last):
        left -= np.exp(eta * (q[k] - top))
        if left < 0.0:
            return k
    return last - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _choose(offsets, q, row, eta, draw, found):  # type: ignore[no-untyped-def]
    for i in range(len(row)):
        found[i] = _pick(q, offsets[row[i]], offsets[row[i] + 1], eta[i], draw[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(  # type: ignore[no-untyped-def]
    offsets, action, q, successor_offsets, successor, cumulative, handover, start, eta, wrong, draws, states,
    actions,
):  # fmt: skip
    s = start
    states[0] = s
    for i in range(len(draws)):
        first = offsets[s]
        last = offsets[s + 1]
        if first == last:
            return i
        pair = _pick(q, first, last, eta, draws[i, 0])
        if draws[i, 1] < wrong and last - first > 1:
            shift = 1 + int(draws[i, 1] / wrong * (last - first - 1))
            pair = first + (pair - first + shift) % (last - first)
        link = successor_offsets[pair + 1] - 1
        for candidate in range(successor_offsets[pair], successor_offsets[pair + 1]):
            if draws[i, 2] < cumulative[candidate]:
                link = candidate
                break
        actions[i] = action[pair]
        s = handover[successor[link]]
        states[i + 1] = s
    return len(draws)
