"""Tasks written as code: an object that says where it starts, what is legal, what follows, what it pays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from fidm.errors import TaskError
from fidm.tasks.model import TaskModel
from fidm.types import Normaliser


@runtime_checkable
class TaskRules(Protocol):
    """Any object that can say where a task starts, what is legal, what follows and what it pays.

    States and actions are hashable values of the author's choice. :func:`compile_task` enumerates
    the states that can be reached; :func:`fidm.testing.check_task` tests such an object.
    """

    def start(self) -> Hashable:
        """Return the state an episode begins in."""

    def actions(self, state: Any) -> Iterable[Hashable]:
        """Return the actions that are legal in a state; none where the episode ends."""

    def step(self, state: Any, action: Any) -> Hashable | Mapping[Hashable, float]:
        """Return the next state, or a mapping from possible next states to probabilities."""

    def reward(self, state: Any, action: Any) -> float:
        """Return what the action pays in this state."""


def compile_rules(
    rules: TaskRules,
    *,
    gamma: float,
    tau: float,
    normaliser: Normaliser = "sum",
    horizon: int | None = None,
    name: str = "task",
    max_states: int = 1_000_000,
) -> TaskModel:
    """Enumerate every state that can be reached under an object's rules, and make a task of it.

    States are numbered in the order they are found, breadth first; actions in the order they are
    first offered. ``max_states`` guards against rules without an end.
    """
    number: dict[Hashable, int] = {}
    code: dict[Hashable, int] = {}
    queue: list[Hashable] = []

    def visit(state: Hashable, where: str) -> int:
        _require_hashable(state, f"{name}: {where} gives a state")
        if state not in number:
            if len(number) == max_states:
                raise TaskError(
                    f"{name}: more than {max_states} states can be reached. Make states coarser, "
                    "or raise max_states if the task really is that large."
                )
            number[state] = len(number)
            queue.append(state)
        return number[state]

    visit(rules.start(), "start()")
    of_state: list[int] = []
    of_action: list[int] = []
    pay: list[float] = []
    link_pair: list[int] = []
    link_state: list[int] = []
    link_probability: list[float] = []
    for state in queue:  # the queue grows while it is read
        for action in _listed(rules.actions(state), f"{name}: actions({state!r})"):
            _require_hashable(action, f"{name}: actions({state!r}) gives an action")
            outcome = rules.step(state, action)
            outcomes = outcome.items() if isinstance(outcome, Mapping) else [(outcome, 1.0)]
            for next_state, probability in outcomes:
                link_pair.append(len(pay))
                link_state.append(visit(next_state, f"step({state!r}, {action!r})"))
                link_probability.append(
                    _number(probability, f"{name}: a probability of step({state!r}, {action!r})")
                )
            of_state.append(number[state])
            of_action.append(code.setdefault(action, len(code)))
            pay.append(_number(rules.reward(state, action), f"{name}: reward({state!r}, {action!r})"))
    transition = sparse.csr_array((link_probability, (link_pair, link_state)), shape=(len(pay), len(number)))
    return TaskModel.from_pairs(
        np.array(of_state, dtype=np.int64),
        np.array(of_action, dtype=np.int64),
        pay,
        transition,
        gamma=gamma,
        tau=tau,
        normaliser=normaliser,
        horizon=horizon,
        name=name,
        actions=[str(action) for action in code],
        states=[str(state) for state in number],
    )


def _require_hashable(thing: object, what: str) -> None:
    try:
        hash(thing)
    except TypeError:
        raise TaskError(f"{what} that is not hashable. Use tuples, not lists.") from None


def _listed(things: Any, what: str) -> list[Any]:
    try:
        return list(things)
    except TypeError:
        raise TaskError(f"{what} is no list of actions.") from None


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TaskError(f"{what} is no number.") from None
