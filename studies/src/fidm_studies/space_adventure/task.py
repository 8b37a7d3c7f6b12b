"""The Space Adventure Task as tasks: six planets in a ring, two ways to fly on, two or three flights.

A *mini-block* shows six planets, each of which adds or takes fuel when one lands on it. *Move* flies to the
next planet of the ring and costs 2 units of fuel; *jump* costs 5 and aims at a far planet, which it reaches
with probability 0.9 (little noise) or 0.5 (much noise); otherwise it lands on one of the two planets beside
it. After two or three flights the mini-block ends. What a flight is worth is the fuel it is expected to bring
to the end, when the best flights follow: the maximum, not a soft one, as in the published values.

Every mini-block is a :class:`fidm.TaskModel` of its own. Its states are the planet and the flights to go:
planet ``p`` with ``k`` flights to go is ``task.at(p, k)``, planets counted from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fidm.tasks.model import TaskModel
from fidm.types import Floats

N_PLANETS = 6
ACTIONS = ("move", "jump")
COSTS = (2.0, 5.0)
"""The fuel each action takes."""

TARGETS = (4, 3, 4, 5, 1, 1)
"""The planet a jump aims at, by the planet it starts from; planets are counted from 0."""

RELIABILITY = {"low": 0.9, "high": 0.5}
"""How probably a jump lands where it aims, by how much noise there is."""

FUEL = (-20.0, -10.0, 0.0, 10.0, 20.0)
"""What landing brings, by the kind of planet; kinds are counted from 1 in the files."""


@dataclass(frozen=True, slots=True, order=True)
class MiniBlock:
    """One mini-block: which planets there are, how noisy jumps are, how many flights, and where it starts.

    Parameters
    ----------
    planets : tuple of int [6]
        The kind of each planet, 1 (takes 20 units of fuel) to 5 (brings 20).
    noise : {"low", "high"}
        How noisy jumps are.
    steps : int
        How many flights there are.
    start : int
        The planet it starts on, counted from 0.
    """

    planets: tuple[int, ...]
    noise: str
    steps: int
    start: int

    @property
    def name(self) -> str:
        """What its task is called: planets, noise, flights and start, counted from 1 as in the files."""
        kinds = "".join(map(str, self.planets))
        return f"planets-{kinds}-{self.noise}-{self.steps}-from-{self.start + 1}"

    @property
    def fuel(self) -> Floats:
        """What landing on each planet brings, [6]."""
        return np.array([FUEL[kind - 1] for kind in self.planets])


@lru_cache
def transitions(noise: str) -> Floats:
    """Return where each action leads with which probability, [action, planet, next planet]; read only.

    Examples
    --------
    >>> transitions("low")[1, 0].round(2).tolist()
    [0.0, 0.0, 0.0, 0.05, 0.9, 0.05]
    """
    table = np.zeros((len(ACTIONS), N_PLANETS, N_PLANETS))
    hit = RELIABILITY[noise]
    for planet, target in enumerate(TARGETS):
        table[0, planet, (planet + 1) % N_PLANETS] = 1.0
        table[1, planet, target] = hit
        for beside in (-1, 1):
            table[1, planet, (target + beside) % N_PLANETS] = (1.0 - hit) / 2.0
    table.flags.writeable = False
    return table


def make_task(block: MiniBlock) -> TaskModel:
    """Return a mini-block as a task; the action values are in units of fuel.

    Examples
    --------
    >>> import fidm
    >>> task = make_task(MiniBlock((5, 5, 5, 2, 1, 2), "low", 2, 2))
    >>> fidm.solve(task).q[task.at(2, 2)].round(1).tolist()
    [-26.0, -10.3]
    """
    where = transitions(block.noise)
    gain = where @ block.fuel - np.array(COSTS)[:, None]
    planet = np.repeat(np.arange(N_PLANETS), len(ACTIONS))
    action = np.tile(np.arange(len(ACTIONS)), N_PLANETS)
    return TaskModel.from_pairs(
        planet,
        action,
        gain[action, planet],
        where[action, planet],
        gamma=1.0,
        tau=1.0,  # has no bearing on a maximum
        normaliser="max",
        start=block.start,
        horizon=block.steps,
        name=block.name,
        actions=ACTIONS,
    )
