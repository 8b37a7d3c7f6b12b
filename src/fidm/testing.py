"""Contract tests that authors of plug-ins can run on their own work.

>>> from fidm.testing import check_task
>>> class Corridor:
...     def start(self): return 0
...     def actions(self, state): return ["on", "back"] if 0 < state < 3 else ["on"] if state < 3 else []
...     def step(self, state, action): return state + 1 if action == "on" else state - 1
...     def reward(self, state, action): return 1.0 if state == 2 and action == "on" else -0.1
>>> check_task(Corridor())
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from fidm.errors import TaskError
from fidm.tasks.behaviour import reachable
from fidm.tasks.compile import compile_task
from fidm.tasks.rules import TaskRules
from fidm.tasks.solve import solve


def check_task(task: TaskRules, *, max_states: int = 100_000, seed: int = 0) -> None:
    """Raise an AssertionError that lists every way in which an object breaks the contract of a task.

    A task has ``start() · actions(state) · step(state, action) · reward(state, action)``. States and
    actions must be hashable; asking twice must give the same answer; actions must not repeat and must
    not read the same; probabilities must be positive and sum to one; rewards must be finite numbers;
    the states must be countable; the values must be solvable; and the compiled task must agree with
    the object along random walks.

    Parameters
    ----------
    task : object
        The task to test.
    max_states : int
        More reachable states than this count as a failure.
    seed : int
        For the random walks.
    """
    if isinstance(task, type):
        raise AssertionError(f"{task.__name__} is a class; pass an object of it.")
    if not isinstance(task, TaskRules):
        missing = [m for m in ("start", "actions", "step", "reward") if not callable(getattr(task, m, None))]
        raise AssertionError(f"{type(task).__name__} lacks {', '.join(missing)}.")
    found = _Complaints()
    _walk_rules(task, found, max_states)
    found.raise_if_any()
    try:
        model = compile_task(task, gamma=0.9, tau=0.1)
        values = solve(model)
    except TaskError as error:
        raise AssertionError(f"The task cannot be compiled and solved: {error}") from error
    if values.residual > 1e-9:
        found.add(f"the values have a residual of {values.residual:.1e}")
    if sum(len(ring) for ring in reachable(model)) != model.n_states:
        found.add("some enumerated states cannot be reached")
    _compare(task, model, found, np.random.default_rng(seed))
    found.raise_if_any()


class _Complaints:
    """What was found wrong, each kind of complaint kept once."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}

    def add(self, what: str, where: str = "") -> None:
        self.lines.setdefault(what, where)

    def raise_if_any(self) -> None:
        if self.lines:
            listed = [
                f"  - {what}{f' (first at {where})' if where else ''}" for what, where in self.lines.items()
            ]
            raise AssertionError("The task breaks its contract:\n" + "\n".join(listed))


def _is_hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


def _walk_rules(task: TaskRules, found: _Complaints, max_states: int) -> None:
    """Visit every reachable state once and look at all that is legal there."""
    start = task.start()
    if not _is_hashable(start):
        found.add("start() is not hashable")
        return
    if start != task.start():
        found.add("start() answers differently when asked again")
    seen: set[Hashable] = {start}
    queue: list[Any] = [start]
    for state in queue:  # the queue grows while it is read
        actions, where = list(task.actions(state)), f"state {state!r}"
        if not all(map(_is_hashable, actions)):
            found.add("an action is not hashable", where)
            return
        if actions != list(task.actions(state)):
            found.add("actions() answers differently when asked again", where)
        if len(set(actions)) != len(actions):
            found.add("an action is offered twice", where)
        if len({str(action) for action in actions}) != len(set(actions)):
            found.add("two actions read the same", where)
        for action in actions:
            for next_state in _outcomes(task, state, action, found):
                if next_state not in seen:
                    seen.add(next_state)
                    queue.append(next_state)
        if len(seen) > max_states:
            found.add(f"more than {max_states} states can be reached")
            return


def _outcomes(task: TaskRules, state: Any, action: Any, found: _Complaints) -> list[Hashable]:
    """The states an action may lead to, having looked at its reward and probabilities."""
    where = f"state {state!r}, action {action!r}"
    outcome, pay = task.step(state, action), task.reward(state, action)
    if outcome != task.step(state, action):
        found.add("step() answers differently when asked again", where)
    if not isinstance(pay, int | float | np.floating | np.integer) or not math.isfinite(pay):
        found.add("reward() is not a finite number", where)
    elif pay != task.reward(state, action):
        found.add("reward() answers differently when asked again", where)
    if not isinstance(outcome, Mapping):
        if _is_hashable(outcome):
            return [outcome]
        found.add("step() gives a state that is not hashable", where)
        return []
    chances = list(outcome.values())
    if not chances or not all(chance > 0 for chance in chances) or abs(sum(chances) - 1) > 1e-9:
        found.add("the probabilities of step() are not positive or do not sum to one", where)
    return list(outcome)


def _compare(task: TaskRules, model: Any, found: _Complaints, rng: np.random.Generator) -> None:
    """Walk the object and its compiled form side by side."""
    number = {name: i for i, name in enumerate(model.states)}
    if len(number) != model.n_states:
        found.add("two states read the same, so states cannot be told apart by name")
        return
    for _ in range(10):
        state: Any = task.start()
        for _ in range(100):
            actions = list(task.actions(state))
            legal = model.legal(number[str(state)])
            if {str(action) for action in actions} != set(legal):
                found.add("the compiled task offers other actions", f"state {state!r}")
            if not actions:
                break
            action = actions[int(rng.integers(len(actions)))]
            pair = model.pair(number[str(state)], str(action))
            if model.reward[pair] != task.reward(state, action):
                found.add("the compiled task pays another reward", f"state {state!r}")
            outcome = task.step(state, action)
            options = list(outcome) if isinstance(outcome, Mapping) else [outcome]
            state = options[int(rng.integers(len(options)))]
