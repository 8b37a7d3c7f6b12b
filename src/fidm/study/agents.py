"""Two ways for simulated people to act in a dialog: as the model says, or as people walk.

A dialog asks for one action after the other, and sometimes for the place somebody is heading for.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fidm.grounding.program import EXIT, FINISH
from fidm.study import walking
from fidm.study.describing import Describer
from fidm.study.walker import Walker
from fidm.tasks.model import TaskModel
from fidm.types import Values

Floats = NDArray[np.float64]


class Agent(Protocol):
    """A way to act on a task, for one person at a time."""

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody with these (log η, θ…), at the start of the task."""

    def choose(self, state: int) -> int:
        """Return the next action."""

    def place(self, state: int) -> str:
        """Return the place they are heading for; empty where there is none."""

    def led(self, state: int, heading: int) -> None:
        """Hear that they were led to a state, the last step this way."""

    def is_done(self, state: int) -> bool:
        """Whether nothing is left to do."""

    def lets_be(self, state: int) -> bool:
        """Whether they will not fetch what is missing, and the assessor goes on."""


class Chooser:
    """Somebody who chooses as the model says: by softmax, with a sensitivity η."""

    def __init__(self, task: TaskModel, values: Values, describer: Describer) -> None:
        self._task, self._describer = task, describer
        self._q = values.q[task.pair_state, task.action]
        self._rows: dict[int, tuple[list[int], list[float]]] = {}
        self._places: dict[int, str] = {}

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody with η = exp(truth[0])."""
        self._eta, self._rng = float(np.exp(truth[0])), rng

    def _row(self, state: int) -> tuple[list[int], list[float]]:
        """The legal actions of a state and their values."""
        if state not in self._rows:
            pairs = slice(int(self._task.offsets[state]), int(self._task.offsets[state + 1]))
            self._rows[state] = (self._task.action[pairs].tolist(), self._q[pairs].tolist())
        return self._rows[state]

    def choose(self, state: int) -> int:
        """Draw an action with a probability that grows with η times its value."""
        actions, values = self._row(state)
        top = max(values)
        weights = [math.exp(self._eta * (value - top)) for value in values]
        left = self._rng.random() * sum(weights)
        for action, weight in zip(actions, weights, strict=True):
            left -= weight
            if left < 0:
                return action
        return actions[-1]

    def place(self, state: int) -> str:
        """Return where the best policy would next take something or pay; empty where it never does."""
        if state in self._places:
            return self._places[state]
        terrain, told = self._describer.terrain, self._describer.told
        place, here = "", state
        for _ in range(2 * terrain.n_cells):
            actions, values = self._row(here)
            if not actions:
                break
            action = actions[int(np.argmax(values))]
            if action not in terrain.move_code:
                place = self._describer.place(here, action)
                break
            here = terrain.after(here, action, told)
        self._places[state] = place
        return place

    def led(self, state: int, heading: int) -> None:
        """Choose afresh wherever one is."""

    def is_done(self, state: int) -> bool:
        """Go on as long as anything is legal."""
        return False

    def lets_be(self, state: int) -> bool:
        """Leave it to chance what is missing."""
        return False


class Stroller:
    """Somebody who walks from target to target, and slips; see :mod:`fidm.study.walker`."""

    def __init__(self, walker: Walker, targets: tuple[str, ...]) -> None:
        self._walker, self._floor = walker, walker.floor
        self._names = (*targets, FINISH, EXIT)

    def begin(self, truth: Floats, rng: np.random.Generator) -> None:
        """Become somebody of this ability, with a fresh memory."""
        self._rates, self._memory = self._walker.begin(truth, rng)
        self._rng = rng

    def choose(self, state: int) -> int:
        """Take the walker's next step."""
        draws = self._rng.random(walking.N_DRAWS)
        return int(walking.step(self._floor, self._rates, self._memory, state, draws))

    def place(self, state: int) -> str:
        """Return what they are heading for."""
        draws = self._rng.random(walking.N_DRAWS)
        aim = int(walking.aim_of(self._floor, self._rates, self._memory, state, draws))
        return self._names[aim] if aim >= 0 else ""

    def led(self, state: int, heading: int) -> None:
        """Be back on the way, whatever went wrong before."""
        walking.put_right(self._floor, self._memory, state, heading)

    def is_done(self, state: int) -> bool:
        """Whether everything is fetched, and paid where one pays."""
        return self._wanted(state) == 0

    def lets_be(self, state: int) -> bool:
        """Whether all that is missing was forgotten for good, and the assessor may ask for something else."""
        return self._wanted(state) == walking.SENT_ON

    def _wanted(self, state: int) -> int:
        return int(walking.wanted(self._floor, self._memory, state))
