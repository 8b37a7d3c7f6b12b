"""Simulated people who walk as people do: they go for one thing at a time, and slip.

A walker picks a target, goes there by a shortest way and takes it. On the way they may turn wrong, walk on
until they notice, and come back; they may walk past the very shelf they were heading for, leave alone what
lies on the way, and forget a target until the others are done, or for good. Nothing here knows of soft values
or of η, so what is estimated from walkers was not put in by the same equations.

:func:`step` is the whole walker. Where each thing can be had from, and how far that is, it looks up in a
:class:`Floor`, made once per task. What somebody has in mind stands in a small array, their *memory*, and
chance enters as uniform draws, so the same draws give the same walk whether whole walks run in compiled code
(:func:`walk_on`) or a dialog asks for one action after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

from fidm.errors import DataError, TaskError, remedy
from fidm.tasks.behaviour import first_state
from fidm.tasks.grid import GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import TaskSpec
from fidm.types import Floats, Integers

if TYPE_CHECKING:
    from fidm.simulate.cohort import People

NOBODY, PAYS = -1, -2
"""Who lets a forgotten target be: nobody, or oneself by paying; a number is the mode the assessor opens."""


class Floor(NamedTuple):
    """A task as a walker sees it; *aims* are the targets, then the finish, then the exit."""

    # As in the task.
    offsets: NDArray[np.int64]
    action: NDArray[np.int32]
    successor: NDArray[np.int32]
    handover: NDArray[np.int32]
    marks: NDArray[np.int64]  # [K]: the aim each pair achieves, or -1
    neighbour: NDArray[np.int32]  # [C, 4]: the cell north, south, east and west of each cell, or -1
    distance: NDArray[np.int32]  # [n, C]: the fewest moves from each cell to several sets of cells
    # [M, aims]: in each mode, which of these sets an aim can be achieved from; -1 where it cannot.
    place: NDArray[np.int32]
    # [M]: one bit per target: those one can go for in a mode, and those its phase still needs.
    active: Integers
    undone: Integers
    # [M]: the mode that follows when the assessor asks for the next phase all the same; NOBODY or PAYS.
    then: Integers
    asked: Integers  # [phases]: the targets of each phase, one bit each
    # The targets that may be forgotten, and forgotten for good.
    forgettable: int
    losable: int
    n_targets: int  # how many targets there are

    @classmethod
    def of(cls, task: TaskModel) -> Floor:
        """Survey a task that was made from a map."""
        if task.grid is None:
            raise TaskError(
                f"{task.name} has no map, so nobody can walk on it. Walkers need a task drawn in a task "
                f"file, without a horizon; {remedy('the agent', '--agent')} model acts on any task."
            )
        states, spec = task.grid, task.grid.spec
        odd = _not_walked(spec)
        if odd:
            raise TaskError(
                f"Walkers do not know {' and '.join(odd)}, which {task.name} has. "
                f"{remedy('the agent', '--agent')} model acts on any task."
            )
        n_cells, n_targets = states.grid.n_cells, len(spec.targets)
        marks = _marks(task, states)
        pair_mode, pair_cell = np.divmod(task.pair_state.astype(np.int64), n_cells)
        n_modes = len(states.progress)
        place = np.full((n_modes, n_targets + 2), -1, dtype=np.int32)
        sets: list[NDArray[np.bool_]] = []
        for aim in range(n_targets + 2):
            within = np.zeros((n_modes, n_cells), dtype=np.bool_)
            own = marks == aim
            within[pair_mode[own], pair_cell[own]] = True
            reached = np.flatnonzero(within.any(axis=1))
            if len(reached):
                found, number = np.unique(within[reached], axis=0, return_inverse=True)
                place[reached, aim] = number.reshape(-1) + len(sets)
                sets.extend(found)
        active = np.zeros(n_modes, dtype=np.int64)
        for target in range(n_targets):
            active[np.unique(pair_mode[task.goal == target])] |= 1 << target
        bit = {target: 1 << i for i, target in enumerate(spec.targets)}
        asked = np.array([sum(bit[t] for t in phase.targets) for phase in spec.phases], dtype=np.int64)
        needed = {name for target in spec.targets for name in spec.sections[target].requires}
        several = [t for phase in spec.phases if len(phase.targets) > 1 for t in phase.targets]
        return cls(
            offsets=task.offsets,
            action=task.action,
            successor=task.successor,
            handover=task.handover,
            marks=marks,
            neighbour=states.grid.neighbour,
            distance=_distances(np.array(sets), states.grid.neighbour),
            place=place,
            active=active,
            undone=asked[states.phase] & ~states.progress,
            then=_followers(states),
            asked=asked,
            forgettable=sum(bit[target] for target in several),
            losable=sum(bit[target] for target in several if target not in needed),
            n_targets=n_targets,
        )


def _not_walked(spec: TaskSpec) -> list[str]:
    """What of a task walkers do not know: they go and come back four ways, and take things by actions."""
    has = {
        "diagonal moves": spec.rules.diagonal != "none",
        "one-way doors": len(spec.map.one_way) > 0,
        "places that are used by arriving": len(spec.arrival_symbols) > 0,
        "hidden cells": len(spec.hidden) > 0,
    }
    return [name for name, is_so in has.items() if is_so]


def _marks(task: TaskModel, states: GridStates) -> NDArray[np.int64]:
    """The aim each pair achieves: a target, asked for or not; the finish; the exit; or -1."""
    n_cells, n_targets = states.grid.n_cells, len(states.spec.targets)
    progress = np.append(states.progress, 0)
    gained = progress[task.successor // n_cells] & ~progress[task.pair_state // n_cells]
    is_over = task.successor == states.end
    marks = task.goal.astype(np.int64)
    marks[(marks < 0) & is_over] = n_targets + 1
    other = np.flatnonzero((marks < 0) & (gained > 0))
    marks[other] = [int(mark).bit_length() - 1 for mark in gained[other].tolist()]
    return marks


def _followers(states: GridStates) -> Integers:
    """Who lets a target be in each mode: see :data:`NOBODY`."""
    spec = states.spec
    modes = list(zip(states.progress.tolist(), states.phase.tolist(), strict=True))
    number = {mode: i for i, mode in enumerate(modes)}
    then = np.full(len(modes), NOBODY, dtype=np.int64)
    for i, (progress, phase) in enumerate(modes):
        if phase + 1 == len(spec.phases):
            then[i] = PAYS if spec.finish else NOBODY
        elif spec.rules.phase_change == "transcript" and spec.phases[phase + 1].targets:
            then[i] = number.get((progress, phase + 1), NOBODY)
    return then


@njit(cache=True, nogil=True)
def _distances(sets, neighbour):  # type: ignore[no-untyped-def]
    """The fewest moves from every cell to each set of cells, [n, C]."""
    found = np.full(sets.shape, -1, np.int32)
    queue = np.empty(sets.shape[1], np.int64)
    for i in range(len(sets)):
        last = 0
        for cell in range(sets.shape[1]):
            if sets[i, cell]:
                found[i, cell] = 0
                queue[last] = cell
                last += 1
        first = 0
        while first < last:
            cell = queue[first]
            first += 1
            for way in range(4):
                there = neighbour[cell, way]
                if there >= 0 and found[i, there] < 0:
                    found[i, there] = found[i, cell] + 1
                    queue[last] = there
                    last += 1
    return found


WRONG_TURN, NOTICES, TURNS_BACK, PASSES_BY, TAKES_ON_WAY, NEAREST, PUTS_OFF = range(7)
"""Where each habit stands among a person's rates."""

DONE, SENT_ON = -1, -2
"""What :func:`step` answers besides an action: all is done; the assessor asks for something else."""

N_DRAWS = 10
"""Uniform draws per step, in this order: takes on the way, nearest, which other, passes by, turns wrong and
which way, notices, turns back, which of several ways, puts off, and (for whole walks) which action goes
wrong."""

AIM, MODE, HEADING, ASTRAY, HIDDEN, LOST, PASSED, JUDGED, NEAR, PAID, N_TRAIL, TRAIL = range(12)
"""Where things stand in the memory; the trail, the ways gone since one went astray, comes last."""

LONGEST_TRAIL = 24
"""Who has walked so many cells astray notices."""

AWAY = 3
"""A shelf one walked past comes to mind again so many moves away, or when all others are done."""

ON_WAY, TURNED_WRONG, WENT_PAST, GOES_BACK = range(4)
"""What the memory says about being astray."""


@njit(cache=True, nogil=True)
def begin(floor, forgets, remembers, draws):  # type: ignore[no-untyped-def]
    """Return a fresh memory; ``draws`` [2, targets] say what is forgotten, and what of that for good."""
    memory = np.zeros(TRAIL + LONGEST_TRAIL, np.int64)
    memory[AIM] = memory[MODE] = memory[HEADING] = -1
    for target in range(floor.n_targets):
        bit = np.int64(1) << target
        if floor.forgettable & bit and draws[0, target] < forgets:
            memory[HIDDEN] |= bit
            if floor.losable & bit and draws[1, target] >= remembers:
                memory[LOST] |= bit
    for asked in floor.asked:
        if asked != 0 and asked & ~memory[HIDDEN] == 0:
            memory[HIDDEN] &= ~(asked & -asked)
            memory[LOST] &= ~(asked & -asked)
    return memory


@njit(cache=True, nogil=True)
def wanted(floor, memory, state):  # type: ignore[no-untyped-def]
    """Return what somebody may go for next, one bit per aim; 0 when all is done, or SENT_ON."""
    n_cells, n = len(floor.neighbour), floor.n_targets
    mode, cell = state // n_cells, state % n_cells
    active = floor.active[mode]
    known = active & ~memory[HIDDEN]
    if known == 0 and active != 0:
        memory[HIDDEN] &= ~(active & ~memory[LOST])  # they come to mind
        known = active & ~memory[HIDDEN]
    lets_be = False
    if known == 0 and floor.undone[mode] != 0:
        lets_be = floor.undone[mode] & ~memory[LOST] == 0 and floor.then[mode] != NOBODY
        if lets_be and floor.then[mode] >= 0:
            return np.int64(SENT_ON)
        if not lets_be:
            memory[HIDDEN] &= ~active
            memory[LOST] &= ~active
            known = active
    if known != 0:
        fresh = np.int64(0)
        for aim in range(n):
            bit = np.int64(1) << aim
            if known & bit and (
                not memory[PASSED] & bit or floor.distance[floor.place[mode, aim], cell] >= AWAY
            ):
                fresh |= bit
        return fresh if fresh != 0 else known
    if not lets_be and floor.undone[mode] != 0:  # what the phase needs is not to be had yet
        others = np.int64(0)
        for aim in range(n):
            if floor.place[mode, aim] >= 0:
                others |= np.int64(1) << aim
        if others != 0:
            return others
    for aim in range(n, n + 2):
        if floor.place[mode, aim] >= 0 and not (aim == n and memory[PAID]):
            return np.int64(1) << aim
    return np.int64(0)


@njit(cache=True, nogil=True)
def _pick(floor, rates, state, choices, draws):  # type: ignore[no-untyped-def]
    """One of several aims: the nearest, or any."""
    n_cells = len(floor.neighbour)
    mode, cell = state // n_cells, state % n_cells
    nearest, least, count = -1, 0, 0
    for aim in range(floor.n_targets + 2):
        if choices & (np.int64(1) << aim):
            far = floor.distance[floor.place[mode, aim], cell]
            if nearest < 0 or far < least:
                nearest, least = aim, far
            count += 1
    if draws[1] < rates[NEAREST]:
        return nearest
    left = int(draws[2] * count)
    for aim in range(floor.n_targets + 2):
        if choices & (np.int64(1) << aim):
            if left == 0:
                return aim
            left -= 1
    return nearest


@njit(cache=True, nogil=True)
def aim_of(floor, rates, memory, state, draws):  # type: ignore[no-untyped-def]
    """Return what somebody is heading for, chosen if need be; DONE or SENT_ON where there is nothing."""
    mode = state // len(floor.neighbour)
    aim = memory[AIM]
    if aim >= 0 and mode != memory[MODE]:
        is_open = aim >= floor.n_targets or floor.active[mode] & (np.int64(1) << aim) != 0
        if not is_open or floor.place[mode, aim] < 0:
            aim = -1
    memory[MODE] = mode
    if aim < 0:
        memory[ASTRAY] = ON_WAY
        memory[N_TRAIL] = 0
        choices = wanted(floor, memory, state)
        memory[AIM] = -1
        if choices == 0:
            return np.int64(DONE)
        if choices == SENT_ON:
            return np.int64(SENT_ON)
        aim = np.int64(_pick(floor, rates, state, choices, draws))
    memory[AIM] = aim
    return aim


@njit(cache=True, nogil=True)
def near(floor, state):  # type: ignore[no-untyped-def]
    """Return the targets one can go for that can be taken right here, one bit each."""
    found = np.int64(0)
    for k in range(floor.offsets[state], floor.offsets[state + 1]):
        if 0 <= floor.marks[k] < floor.n_targets:
            found |= np.int64(1) << floor.marks[k]
    return found & floor.active[state // len(floor.neighbour)]


@njit(cache=True, nogil=True)
def put_right(floor, memory, state, heading):  # type: ignore[no-untyped-def]
    """Change the memory of somebody who was led to a state: they are on their way again."""
    memory[ASTRAY] = ON_WAY
    memory[N_TRAIL] = 0
    memory[HEADING] = heading
    memory[NEAR] = near(floor, state)


@njit(cache=True, nogil=True)
def _taking(floor, memory, state, aims):  # type: ignore[no-untyped-def]
    """The action that achieves one of these aims here; one is no longer heading for anything it achieves."""
    for k in range(floor.offsets[state], floor.offsets[state + 1]):
        mark = floor.marks[k]
        if mark >= 0 and aims & (np.int64(1) << mark):
            if mark == memory[AIM]:
                memory[AIM] = -1
            if mark == floor.n_targets:
                memory[PAID] = 1
            return floor.action[k]
    return DONE


@njit(cache=True, nogil=True)
def _onward(floor, memory, cell, draw):  # type: ignore[no-untyped-def]
    """The way of somebody who walks on without a thought: straight, else aside; -1 at a dead end."""
    heading = memory[HEADING]
    if heading >= 0 and floor.neighbour[cell, heading] >= 0:
        return heading
    count = 0
    for way in range(4):
        count += floor.neighbour[cell, way] >= 0 and (heading < 0 or way != heading ^ 1)
    left = int(draw * count)
    for way in range(4):
        if floor.neighbour[cell, way] >= 0 and (heading < 0 or way != heading ^ 1):
            if left == 0:
                return np.int64(way)
            left -= 1
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _towards(floor, rates, memory, distance, cell, draws):  # type: ignore[no-untyped-def]
    """The way of somebody who knows where to go: a shortest one, best straight on; or a wrong turn."""
    heading, here = memory[HEADING], distance[cell]
    n_closer = n_other = 0
    goes_straight = False
    for way in range(4):
        there = floor.neighbour[cell, way]
        if there < 0:
            continue
        if distance[there] < here:
            n_closer += 1
            goes_straight |= way == heading
        elif heading < 0 or way != heading ^ 1:
            n_other += 1
    is_wrong = n_other > 0 and draws[4] < rates[WRONG_TURN]
    if goes_straight and not is_wrong:
        return heading
    left = int(draws[4] / rates[WRONG_TURN] * n_other) if is_wrong else int(draws[7] * n_closer)
    found = np.int64(0)
    for way in range(4):
        there = floor.neighbour[cell, way]
        if there < 0:
            continue
        is_closer = distance[there] < here
        if is_wrong == is_closer or (is_wrong and heading >= 0 and way == heading ^ 1):
            continue
        found = np.int64(way)
        if left == 0:
            break
        left -= 1
    if is_wrong:
        memory[ASTRAY] = TURNED_WRONG
        memory[N_TRAIL] = 0
    return found


@njit(cache=True, nogil=True)
def step(floor, rates, memory, state, draws):  # type: ignore[no-untyped-def]
    """Return somebody's next action, and bring their memory up to date; DONE or SENT_ON where there is none.

    Parameters
    ----------
    floor : Floor
        The task.
    rates : float array [7]
        A person's habits, see :func:`rates_of`.
    memory : int array
        What they have in mind; changed.
    state : int
        Where they are.
    draws : float array [N_DRAWS]
        Fresh uniform draws.
    """
    aim = aim_of(floor, rates, memory, state, draws)
    if aim < 0:
        return aim
    n_cells = len(floor.neighbour)
    mode, cell = state // n_cells, state % n_cells
    bit = np.int64(1) << aim
    here = near(floor, state)
    fresh = here & ~memory[NEAR] & ~memory[HIDDEN] & ~bit
    memory[NEAR] = here
    if fresh != 0 and draws[0] < rates[TAKES_ON_WAY]:
        memory[NEAR] = here & ~fresh  # what else is fresh is thought about at the next step
        return np.int64(_taking(floor, memory, state, fresh))
    distance = floor.distance[floor.place[mode, aim]]
    is_astray = memory[ASTRAY] == TURNED_WRONG or memory[ASTRAY] == WENT_PAST
    if is_astray and memory[N_TRAIL] > 0:
        is_there = memory[ASTRAY] == TURNED_WRONG and distance[cell] == 0
        is_end = memory[N_TRAIL] == LONGEST_TRAIL or _onward(floor, memory, cell, draws[7]) < 0
        if is_there or is_end or draws[5] < rates[NOTICES]:
            memory[ASTRAY] = GOES_BACK if draws[6] < rates[TURNS_BACK] else ON_WAY
    if distance[cell] == 0 and memory[ASTRAY] != WENT_PAST:
        memory[ASTRAY] = ON_WAY
        if aim < floor.n_targets and not memory[JUDGED] & bit:
            memory[JUDGED] |= bit
            if draws[3] < rates[PASSES_BY] and floor.neighbour[cell].max() >= 0:
                memory[PASSED] |= bit
                memory[N_TRAIL] = 0
                others = wanted(floor, memory, state) & ~bit
                if others != 0 and draws[8] < rates[PUTS_OFF]:
                    aim = np.int64(_pick(floor, rates, state, others, draws))
                    memory[AIM] = aim
                    bit = np.int64(1) << aim
                    distance = floor.distance[floor.place[mode, aim]]
                else:
                    memory[ASTRAY] = WENT_PAST
        if distance[cell] == 0 and memory[ASTRAY] != WENT_PAST:
            return np.int64(_taking(floor, memory, state, bit))
    if memory[ASTRAY] == GOES_BACK and memory[N_TRAIL] > 0:
        memory[N_TRAIL] -= 1
        way = memory[TRAIL + memory[N_TRAIL]] ^ 1
    elif memory[ASTRAY] == TURNED_WRONG or memory[ASTRAY] == WENT_PAST:
        way = _onward(floor, memory, cell, draws[7])
        if way < 0:
            way = memory[HEADING] ^ 1  # the shelf stands at a dead end
    else:
        memory[ASTRAY] = ON_WAY
        way = _towards(floor, rates, memory, distance, cell, draws)
    if memory[ASTRAY] == TURNED_WRONG or memory[ASTRAY] == WENT_PAST:
        memory[TRAIL + memory[N_TRAIL]] = way
        memory[N_TRAIL] += 1
    memory[HEADING] = way
    return np.int64(way)


@njit(cache=True, nogil=True)
def walk_on(floor, rates, memory, wrong, draws, states, actions, begun):  # type: ignore[no-untyped-def]
    """Go on with a walk after ``begun`` actions; return how many are done now, and whether it is over."""
    offsets, n_cells = floor.offsets, len(floor.neighbour)
    s = np.int64(states[begun])
    for i in range(begun, min(begun + len(draws), len(actions))):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            return i, True
        chosen = step(floor, rates, memory, s, draws[i - begun])
        while chosen == SENT_ON:
            s = np.int64(floor.handover[floor.then[s // n_cells] * n_cells + s % n_cells])
            states[i] = s
            first, last = offsets[s], offsets[s + 1]
            chosen = step(floor, rates, memory, s, draws[i - begun])
        if chosen < 0:
            return i, True
        pair = first
        while floor.action[pair] != chosen:
            pair += 1
        slip = draws[i - begun, N_DRAWS - 1]
        if slip < wrong and last - first > 1:
            pair = first + (pair - first + 1 + int(slip / wrong * (last - first - 1))) % (last - first)
            memory[ASTRAY] = ON_WAY
            memory[N_TRAIL] = 0
            if floor.action[pair] < 4:
                memory[HEADING] = floor.action[pair]
        actions[i] = floor.action[pair]
        s = np.int64(floor.handover[floor.successor[pair]])
        states[i + 1] = s
    return min(begun + len(draws), len(actions)), offsets[s] == offsets[s + 1]


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
    """A task, ready to be walked through by many people."""

    floor: Floor  # the task
    starts: tuple[int, ...]  # the states a walk may begin in
    people: People  # how people differ
    habits: Habits  # how people of average ability go about a task

    @classmethod
    def of(cls, task: TaskModel, people: People, habits: Habits | None) -> Walker:
        """Make walkers for a task that was made from a map."""
        return cls(Floor.of(task), task.starts, people, habits or Habits())

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
        states[0] = first_state(self.starts, rng)
        length, is_over = 0, False
        while length < most and not is_over:
            draws = rng.random((BLOCK, N_DRAWS))
            length, is_over = walk_on(self.floor, rates, memory, wrong, draws, states, actions, length)
        return states[: length + 1].copy(), actions[:length].copy()
