"""fidm.testing.check_task passes good tasks and names what is wrong with bad ones."""

from __future__ import annotations

import itertools

import pytest

from fidm.testing import check_task


class Corridor:
    """Three steps to the end."""

    def start(self):
        return 0

    def actions(self, state):
        return [] if state == 3 else ["on"] if state == 0 else ["on", "back"]

    def step(self, state, action):
        return state + 1 if action == "on" else state - 1

    def reward(self, state, action):
        return 1.0 if state == 2 and action == "on" else -0.1


class Slippery(Corridor):
    """The same with chance."""

    def step(self, state, action):
        after = super().step(state, action)
        return {after: 0.75, state: 0.25}


@pytest.mark.parametrize("task", [Corridor(), Slippery()])
def test_good_tasks_pass(task):
    check_task(task)


counter = itertools.count()

BAD = {
    "start() is not hashable": {"start": lambda self: [0]},
    "an action is not hashable": {"actions": lambda self, state: [["on"]]},
    "an action is offered twice": {"actions": lambda self, s: [] if s == 3 else ["on", "on"]},
    "two actions read the same": {
        "actions": lambda self, s: [] if s == 3 else [1, "1"],
        "step": lambda self, s, a: s + 1,
    },
    "step() gives a state that is not hashable": {"step": lambda self, s, a: [s]},
    "step() answers differently": {"step": lambda self, s, a: next(counter)},
    "reward() is not a finite number": {"reward": lambda self, s, a: float("nan")},
    "reward() answers differently": {"reward": lambda self, s, a: next(counter)},
    "actions() answers differently": {
        "actions": lambda self, s: [] if s == 3 else ["on", f"x{next(counter)}"],
        "step": lambda self, s, a: s + 1,
    },
    "do not sum to one": {"step": lambda self, s, a: {s + 1: 0.5, 0: 0.4}},
    "more than 20 states": {"actions": lambda self, s: ["on"]},
    "two states read the same": {
        "start": lambda self: 0,
        "step": lambda self, s, a: str(int(s) + 1) if s == 0 else 1 if s == "1" else 3,
        "actions": lambda self, s: [] if s == 3 else ["on"],
        "reward": lambda self, s, a: 0.0,
    },
}


@pytest.mark.parametrize("complaint", BAD)
def test_bad_tasks_are_told_why(complaint):
    task = type("Bad", (Corridor,), BAD[complaint])()
    with pytest.raises(AssertionError, match=complaint.replace("(", r"\(").replace(")", r"\)")):
        check_task(task, max_states=20)


def test_what_is_no_task_lacks_methods():
    with pytest.raises(AssertionError, match="lacks step, reward"):
        check_task(type("Half", (), {"start": lambda s: 0, "actions": lambda s, x: []})())
