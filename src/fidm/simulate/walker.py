"""Simulated people who walk as people do: they go for one thing at a time, and slip.

A walker picks a target, goes there by a shortest way and takes it. On the way they may turn wrong, walk on
until they notice, and come back; they may walk past the very shelf they were heading for, leave alone what
lies on the way, and forget a target until the others are done, or for good. Nothing here knows of soft values
or of η, so what is estimated from walkers was not put in by the same equations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from fidm.errors import DataError
from fidm.simulate.walking import N_DRAWS, PASSES_BY, WRONG_TURN, Floor, begin, walk_on
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Integers

if TYPE_CHECKING:
    from fidm.simulate.cohort import People


SLIPS = ("wrong_turn", "passes_by", "forgets")
"""The habits that depend on a person's ability."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How walkers go about a task; every number but the slope is a chance between 0 and 1.

    Parameters
    ----------
    wrong_turn : float
        Where another way leads on than back and towards the target: of taking that way.
    notices : float
        At each step after a wrong turn, or after walking past a shelf: of noticing it. Until then one walks
        straight on, and turns only where one must; at a dead end everybody notices.
    turns_back : float
        Having noticed: of going back by the cells one came by, instead of going on from here.
    passes_by : float
        At the shelf one was heading for: of walking past it. Nobody does so twice.
    puts_off : float
        Having walked past a shelf: of going for something else first, instead of walking on and noticing.
    takes_on_way : float
        Coming by the shelf of another target: of taking that too.
    forgets : float
        For each target of a phase that asks for several: of not thinking of it until the others are done.
        Nobody forgets all of them.
    remembers : float
        Of thinking of a forgotten target then. Who does not leaves it, where the assessor asks for the next
        phase or one can pay without it; where the task goes on only with it, it is fetched last.
    nearest : float
        Of going for the nearest target next; otherwise for any.
    slope : float
        By how much one standard deviation less of ability raises the log odds of each slip: wrong turns,
        passing by, forgetting.

    Examples
    --------
    >>> from fidm.simulate.walker import Habits
    >>> weaker = Habits(wrong_turn=0.05, slope=0.7).of_person(-1.0)
    >>> round(weaker.wrong_turn, 3)
    0.096
    """

    wrong_turn: float = 0.05
    notices: float = 0.6
    turns_back: float = 0.6
    passes_by: float = 0.15
    puts_off: float = 0.1
    takes_on_way: float = 0.5
    forgets: float = 0.05
    remembers: float = 0.6
    nearest: float = 0.75
    slope: float = 0.7

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "slope":
                if not np.isfinite(value):
                    raise DataError(f"The habit slope is {value}; it must be a finite number.")
            elif not 0 <= value <= 1:
                raise DataError(f"The habit {name} is {value}; it is a chance, between 0 and 1.")

    def of_person(self, deviation: float) -> Habits:
        """Return the habits of somebody whose ability lies so many standard deviations above the mean.

        The log odds of each slip fall by ``slope`` per standard deviation; 0 stays 0 and 1 stays 1.
        """
        return replace(self, **dict(zip(SLIPS, _slips(self, np.float64(deviation)).tolist(), strict=True)))


def deviation_of(truth: Floats, people: People) -> float | Floats:
    """Return how many standard deviations people's log η lies above the mean.

    ``truth`` is one person's (log η, θ…) or a table of several. Where people do not differ (a standard
    deviation of 0) the difference itself counts, so that a shifted group still differs.
    """
    return (truth[..., 0] - people.log_sensitivity_mean) / (people.log_sensitivity_sd or 1.0)


def true_rates(truth: Floats, people: People, habits: Habits) -> dict[str, Floats]:
    """Return everybody's true rates of slipping, as columns of the participants' table."""
    rates = _slips(habits, deviation_of(truth, people))
    return {f"true_{name}": rates[..., i].copy() for i, name in enumerate(SLIPS)}


def _slips(habits: Habits, deviation: Any) -> Floats:
    """The rates of slipping of people whose ability deviates so much, [..., 3]."""
    usual = special.logit([getattr(habits, name) for name in SLIPS])
    return np.asarray(special.expit(usual - habits.slope * np.asarray(deviation)[..., None]))


BLOCK = 128
"""Draws are made for so many steps at a time."""


def rates_of(habits: Habits) -> Floats:
    """Return the habits that :func:`step` looks up, in its order."""
    names = ("wrong_turn", "notices", "turns_back", "passes_by", "takes_on_way", "nearest", "puts_off")
    return np.array([getattr(habits, name) for name in names])


@dataclass(frozen=True, slots=True, eq=False)
class Walker:
    """A task, ready to be walked through by many people.

    Parameters
    ----------
    floor : Floor
        The task.
    start : int
        The state every walk begins in.
    people : People
        How people differ.
    habits : Habits
        How people of average ability go about a task.
    """

    floor: Floor
    start: int
    people: People
    habits: Habits

    @classmethod
    def of(cls, task: TaskModel, people: People, habits: Habits | None) -> Walker:
        """Make walkers for a task that was made from a map."""
        return cls(Floor.of(task), task.start, people, habits or Habits())

    def begin(self, truth: Floats, rng: np.random.Generator) -> tuple[Floats, Integers]:
        """Return a person's rates and a fresh memory."""
        turn, past, forgets = _slips(self.habits, deviation_of(truth, self.people)).tolist()
        rates = rates_of(self.habits)
        rates[WRONG_TURN], rates[PASSES_BY] = turn, past
        draws = rng.random((2, self.floor.n_targets))
        return rates, begin(self.floor, forgets, self.habits.remembers, draws)

    def run(self, truth: Floats, wrong: float, rng: np.random.Generator, most: int) -> tuple[Any, Any]:
        """Return the states and the actions of a whole walk of up to ``most`` actions."""
        rates, memory = self.begin(truth, rng)
        states, actions = np.empty(most + 1, np.int32), np.empty(most, np.int32)
        states[0] = self.start
        length, is_over = 0, False
        while length < most and not is_over:
            draws = rng.random((BLOCK, N_DRAWS))
            length, is_over = walk_on(self.floor, rates, memory, wrong, draws, states, actions, length)
        return states[: length + 1].copy(), actions[:length].copy()
