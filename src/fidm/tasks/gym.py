"""The same task as a Gymnasium environment, for agents that learn it or play it.

Needs the extra ``gym``: ``pip install 'fidm[gym]'``.

>>> import gymnasium
>>> env = gymnasium.make("fidm.tasks.gym:fidm/Task-v0", task="grocery")
>>> state, info = env.reset(seed=1)
>>> [env.unwrapped.task.actions[a] for a in info["action_mask"].nonzero()[0]]
['W']
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fidm.errors import TaskError, one_of
from fidm.tasks.behaviour import first_state
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "fidm.tasks.gym needs Gymnasium. Install it with: pip install 'fidm[gym]'"
    ) from error


class TaskEnv(gymnasium.Env[np.int64, np.int64]):
    """A task as an environment: observations are states, actions are the task's own.

    Parameters
    ----------
    task : TaskModel, str or Path
        A task, the name of a built-in one, or the path of a task file.
    max_steps : int
        An episode is truncated after so many actions.
    illegal : {"stay", "raise"}
        What an action that is not legal does: nothing at no reward, flagged in ``info["legal"]``,
        or an error. ``info["action_mask"]`` tells which are legal.
    render_mode : {"ansi"} or None
        ``"ansi"`` draws the map with the walker as ``@``, or the state in words.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        task: TaskModel | str | Path,
        *,
        max_steps: int = 1_000,
        illegal: Literal["stay", "raise"] = "stay",
        render_mode: str | None = None,
    ) -> None:
        one_of("illegal", illegal, ("stay", "raise"), TaskError)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise TaskError(f"render_mode is {render_mode!r}; it must be 'ansi' or None.")
        self.task = task if isinstance(task, TaskModel) else load_task(task)
        self.max_steps = max_steps
        self.illegal = illegal
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(self.task.n_states)
        self.action_space = spaces.Discrete(self.task.n_actions)
        self._state = self.task.start
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Go back to the start, or to any of several; ``options={"state": s}`` begins in another state."""
        super().reset(seed=seed)
        self._state = int((options or {}).get("state", first_state(self.task.starts, self.np_random)))
        self.task.describe(self._state)  # raises if there is no such state
        self._steps = 0
        return np.int64(self._state), self._info(legal=True)

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if not self.action_space.contains(action):
            raise TaskError(f"action is {action!r}; actions are 0 to {self.task.n_actions - 1}.")
        self._steps += 1
        legal, reward = bool(self._mask()[int(action)]), 0.0
        if legal or self.illegal == "raise":
            pair = self.task.pair(self._state, int(action))
            reward = float(self.task.reward[pair])
            low, high = self.task.successor_offsets[pair : pair + 2]
            link = low + self.np_random.choice(high - low, p=self.task.probability[low:high])
            self._state = int(self.task.handover[self.task.successor[link]])
        ended = bool(self.task.terminal[self._state])
        truncated = not ended and self._steps >= self.max_steps
        return np.int64(self._state), reward, ended, truncated, self._info(legal=legal)

    def render(self) -> str | None:
        """Draw the map with the walker on it."""
        if self.render_mode is None:
            return None
        grid = self.task.grid
        cell = grid.cell(self._state) if grid else None
        if grid is None or cell is None:
            return self.task.describe(self._state)
        rows = [list(row) for row in grid.spec.rows]
        for row, column, known in grid.known(self._state):
            walls_and_floor = {"#": grid.spec.map.wall, ".": grid.spec.map.floor, "+": grid.spec.map.floor}
            rows[row][column] = walls_and_floor.get(known, rows[row][column])
        rows[cell[0]][cell[1]] = "@"
        return "\n".join("".join(row) for row in rows)

    def _mask(self) -> NDArray[np.int8]:
        mask = np.zeros(self.task.n_actions, dtype=np.int8)
        rows = slice(self.task.offsets[self._state], self.task.offsets[self._state + 1])
        mask[self.task.action[rows]] = 1
        return mask

    def _info(self, *, legal: bool) -> dict[str, Any]:
        return {"action_mask": self._mask(), "legal": legal}


if "fidm/Task-v0" not in gymnasium.registry:
    gymnasium.register(id="fidm/Task-v0", entry_point="fidm.tasks.gym:TaskEnv")
