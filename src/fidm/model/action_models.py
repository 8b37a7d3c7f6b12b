r"""Accounts of how people choose: what each action is worth to somebody, given a few numbers of their own.

An *action model* gives the probability of every legal action in a state to a person with certain parameters.
The paper's is softmax(η·Q). Its rivals explain the same low η otherwise: somebody plans few steps ahead,
values the present, repeats what they did, goes for one goal at a time, or does not attend.

===============  ==========================  ==========================================================
kind             parameters of a person      what they choose by
===============  ==========================  ==========================================================
``softmax``      η                           η·Q, the soft values of the task
``lapse``        η, rate                     the same, but at random at this rate
``stickiness``   η, repeat, step back        η·Q, a bonus for what they did last or for going back
``discounting``  η, γ                        η·Q of the task with a discount of their own
``depth``        η, steps                    η·Q, values backed up over so many steps only
``goal``         η                           η·Q of one goal at a time, the nearest or one they chose
``believes``     η                           η·Q of another task than the one they act in
``random``       none                        nothing: all legal actions are as probable
``mixture``      those of two models, share  at each choice, one model or the other
===============  ==========================  ==========================================================

A model of one's own is one small class below :class:`ActionModel`; :func:`fidm.testing.check_action_model`
tests it. Parameters live on a *free scale* from −∞ to ∞ (log η, the logit of a rate, −log(1 − γ)), on which
people are normally distributed, and on which the likelihood is tabulated (:mod:`fidm.fit.action_fit`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special
from scipy.sparse import csgraph

from fidm.cohort import Cohort, offsets_of
from fidm.errors import FitError, TaskError, few, one_of
from fidm.model.action import effective_weight, sensitivity_grid
from fidm.tasks.beliefs import Believes, describe, name_beliefs, own_values, seen_values
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import rows_at
from fidm.tasks.solve import backup_pairs, soft_maximum, solve
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Flags, Floats, Integers, Values

Scale = Literal["log", "logit", "discount", "plain", "levels"]
"""How the value of a parameter follows from its free number x: eˣ, 1/(1 + e⁻ˣ), 1 − e⁻ˣ, x; or x is the
place of the value among a few levels."""

Given = Mapping[str, Any]
"""The values of a person's parameters by name: numbers, or arrays with an entry per option."""

SPACING = 0.25
"""The distance of nodes in log η."""

NOTHING = -1
"""The action before the first one, and the row before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One number in which people differ, and where its likelihood is tabulated.

    Parameters
    ----------
    name, label : str
        What it is called in tables and in sentences.
    nodes : float array [N]
        Evenly spaced free numbers; beyond the outer ones nobody is expected.
    scale : str
        How its value follows from the free number.
    middle, reach : float
        The mean of people is expected within about two ``reach`` of ``middle``, on the free scale.
    spread : float
        About how much people are expected to differ, on the free scale.
    levels : tuple of float
        The values, where there are only a few.
    """

    name: str
    label: str
    nodes: Floats
    scale: Scale = "plain"
    middle: float = 0.0
    reach: float = 1.5
    spread: float = 0.5
    levels: tuple[float, ...] = ()

    @classmethod
    def of_levels(cls, name: str, label: str, levels: Sequence[float]) -> Parameter:
        """Return a parameter of a few values in order; people are normally distributed over their places."""
        n = len(levels)
        nodes = np.arange(n, dtype=np.float64)
        return cls(name, label, nodes, "levels", (n - 1) / 2, n / 2, n / 4, tuple(levels))

    @property
    def is_discrete(self) -> bool:
        """Whether it has a few values only."""
        return self.scale == "levels"

    @property
    def spacing(self) -> float:
        """The distance of nodes."""
        return float(self.nodes[1] - self.nodes[0]) if len(self.nodes) > 1 else 1.0

    def value(self, free: ArrayLike) -> Any:
        """Return the value of free numbers."""
        x = np.asarray(free, dtype=np.float64)
        if self.scale == "levels":
            found = np.array(self.levels)[np.clip(np.round(x), 0, len(self.levels) - 1).astype(np.int64)]
        elif self.scale == "log":
            found = np.exp(x)
        elif self.scale == "logit":
            found = special.expit(x)
        else:
            found = -np.expm1(-x) if self.scale == "discount" else x
        return found[()]

    def free(self, value: float) -> float:
        """Return the free number of a value."""
        if self.scale == "levels":
            return float(np.argmin(np.abs(np.minimum(self.levels, 1e9) - min(value, 1e9))))
        if self.scale == "log":
            return math.log(value)
        if self.scale == "logit":
            return float(special.logit(value))
        return -math.log1p(-value) if self.scale == "discount" else value


@dataclass(frozen=True, slots=True, eq=False)
class Situations:
    """States in which people chose, with what they had done before, and the actions that were open to
    them.
    """

    row: Integers  # [D]: the stacked row of each
    offsets: Integers  # [D + 1]: where the options of each begin
    pair: Integers  # [K]: the stacked pair of each option
    repeats: Flags  # [K]: whether it is the action of the step before
    returns: Flags  # [K]: whether it leads back to where the step before began

    def some(self, rows: Integers) -> Situations:
        """Return some of the situations."""
        options, offsets = rows_at(self.offsets, rows)
        return Situations(
            self.row[rows], offsets, self.pair[options], self.repeats[options], self.returns[options]
        )

    def copies(self, n: int) -> Situations:
        """Return the same situations n times, one after the other."""
        size = np.tile(np.diff(self.offsets), n)
        return Situations(
            np.tile(self.row, n),
            offsets_of(size),
            np.tile(self.pair, n),
            np.tile(self.repeats, n),
            np.tile(self.returns, n),
        )


class World:
    """The tasks as action models see them. What is solved is kept, so that several models share it."""

    def __init__(self, tasks: TaskSet, q: Floats | None = None) -> None:
        self.tasks = tasks
        self.q: Floats = tasks.values(own_values(tasks, None)) if q is None else q
        self._kept: dict[Any, Any] = {}

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what is kept under a key, made the first time."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def sensitivity(self, *values: Floats) -> Parameter:
        """Return η for choices by these values of pairs, by default those of the tasks."""
        ends = [sensitivity_grid(self.tasks.offsets, q, spacing=SPACING) for q in values or (self.q,)]
        first, last = min(grid[0] for grid in ends), max(grid[-1] for grid in ends)
        nodes = first + SPACING * np.arange(math.ceil((last - first) / SPACING) + 1)
        middle = float(0.5 * (nodes[0] + nodes[-1]))
        return Parameter("action_sensitivity", "action sensitivity η", nodes, "log", middle)

    @cached_property
    def place(self) -> Integers:
        """The place of every stacked row, whatever has been achieved and how many steps are left, [rows].

        A state without a place, such as the end of a task, is one of its own.
        """
        found = []
        for task, base in zip(self.tasks.tasks, self.tasks.state_base.tolist(), strict=True):
            state = np.arange(task.n_states)
            if task.has_places:
                place = task.place
                state = np.where(place >= 0, place, task.n_states + state)
            elif task.horizon is not None:
                own = (task.n_states - 1) // task.horizon
                state = np.where(state < task.n_states - 1, state % own, state)
            found.append(2 * base + state)
        return np.concatenate(found)

    @cached_property
    def achieves(self) -> Flags:
        """Whether every stacked pair achieves a goal, [K]."""
        return np.concatenate([task.goal for task in self.tasks.tasks]) >= 0

    @cached_property
    def goes_on(self) -> Integers:
        """Where an episode goes on from every stacked row, phases opened as the task does, [rows]."""
        parts = zip(self.tasks.tasks, self.tasks.state_base.tolist(), strict=True)
        return np.concatenate([base + task.handover.astype(np.int64) for task, base in parts])

    @cached_property
    def leads_to(self) -> Integers:
        """The most probable row that every stacked pair leads to, phases opened as the task does, [K]."""
        found = []
        for task, base in zip(self.tasks.tasks, self.tasks.state_base.tolist(), strict=True):
            best = task.successor_offsets[:-1]
            if not task.is_deterministic:
                pair = np.repeat(np.arange(task.n_pairs), np.diff(task.successor_offsets))
                best = np.lexsort((-task.probability, pair))[best]
            found.append(base + task.successor[best].astype(np.int64))
        return np.asarray(self.goes_on[np.concatenate(found)])

    def led(self, pair: Integers, rng: np.random.Generator) -> Integers:
        """Return the rows that stacked pairs lead to, drawn where there are several, [n]."""
        if all(task.is_deterministic for task in self.tasks.tasks):
            return self.leads_to[pair]
        task = np.searchsorted(self.tasks.pair_base, pair, side="right") - 1
        found = np.empty(len(pair), dtype=np.int64)
        for number in np.unique(task):
            here, model = np.flatnonzero(task == number), self.tasks.tasks[number]
            links, begins = rows_at(model.successor_offsets, pair[here] - self.tasks.pair_base[number])
            up_to = np.cumsum(model.probability[links])
            draws = np.concatenate([[0.0], up_to])[begins[:-1]] + rng.random(len(here))
            place = np.minimum(np.searchsorted(up_to, draws, side="right"), begins[1:] - 1)
            found[here] = self.tasks.state_base[number] + model.successor[links[place]]
        return self.goes_on[found]

    def situations(self, row: Integers, action: Integers, came_from: Integers) -> Situations:
        """Lay out situations: the row, the action before, and the row in which that was taken, [D] each."""
        pair, offsets = rows_at(self.tasks.offsets, row)
        size = np.diff(offsets)
        from_place = np.where(came_from >= 0, self.place[np.maximum(came_from, 0)], NOTHING)
        to = self.place[self.leads_to[pair]]
        return Situations(
            row,
            offsets,
            pair,
            self.tasks.action[pair] == np.repeat(action, size),
            (to == np.repeat(from_place, size)) & (to != np.repeat(self.place[row], size)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What people chose, in as few different situations as there are.

    A *trial* is what is held out together: an episode, or a quarter of somebody's steps who has only one.
    """

    world: World
    seen: Situations
    option: Integers  # [C]: the option that was chosen, in each different choice
    owner: Integers  # [T]: whose trial it is
    n: Integers  # [P]: how many choices of each person count
    # [n]: of every choice in order, which different one it is, its trial, its stretch (from one goal
    # achieved to the next), and its weight.
    which: Integers
    trial: Integers
    stretch: Integers
    weight: Floats

    @property
    def n_trials(self) -> int:
        """How many trials there are."""
        return len(self.owner)

    def summed(self, log_p: Floats) -> Floats:
        """Return the log-likelihood of every trial, [T], given that of every different choice, [C]."""
        found = np.bincount(self.trial, self.weight * log_p[self.which], minlength=self.n_trials)
        return np.asarray(found, dtype=np.float64)

    def person(self, j: int) -> Made:
        """Return the choices of one person."""
        trials = np.flatnonzero(self.owner == j)
        own = np.flatnonzero((self.trial >= trials[0]) & (self.trial <= trials[-1]))
        kept, which = np.unique(self.which[own], return_inverse=True)
        options = self.option[kept]
        place = np.searchsorted(self.seen.offsets, options, side="right") - 1
        situations, where = np.unique(place, return_inverse=True)
        seen = self.seen.some(situations)
        option = options - self.seen.offsets[place] + seen.offsets[where]
        return replace(
            self, seen=seen, option=option, owner=np.zeros(len(trials), np.int64), n=self.n[j : j + 1],
            which=which.reshape(-1), trial=self.trial[own] - trials[0], weight=self.weight[own],
            stretch=np.unique(self.stretch[own], return_inverse=True)[1].reshape(-1),
        )  # fmt: skip

    def copies(self, n: int) -> Made:
        """Return the same choices n times, one after the other, as if so many people had made them."""

        def shifted(values: Integers, by: int) -> Integers:
            return (values + by * np.arange(n)[:, None]).reshape(-1)

        return replace(
            self,
            seen=self.seen.copies(n),
            option=shifted(self.option, len(self.seen.pair)),
            owner=shifted(self.owner, len(self.n)),
            n=np.tile(self.n, n),
            which=shifted(self.which, len(self.option)),
            trial=shifted(self.trial, self.n_trials),
            stretch=shifted(self.stretch, int(self.stretch.max(initial=-1)) + 1),
            weight=np.tile(self.weight, n),
        )


FEWEST_TRIALS = 2
"""Somebody with fewer episodes has trials made of parts of them."""

PARTS = 4
"""Into how many parts the only episode of somebody is cut."""


def list_chosen(world: World, cohort: Cohort, *, inferred: float = 0.0, remembers: bool = True) -> Made:
    """Lay out the choices of a cohort that follow the rules and count.

    ``remembers`` says whether situations differ by what was done before; where no model asks for it, there
    are far fewer of them.
    """
    tasks = world.tasks
    followed = follow(tasks, cohort)
    step = np.flatnonzero((followed.pair >= 0) & (followed.fault == 0))
    step = step[tasks.counted[followed.row[step]]]
    own = effective_weight(cohort, inferred)
    weight = own[step] if len(own) else np.ones(len(step))
    step, weight = step[weight > 0], weight[weight > 0]
    episode = np.searchsorted(cohort.step_offsets, step, side="right") - 1
    is_first = step == cohort.step_offsets[episode]
    before = np.maximum(step - 1, 0)
    action = np.where(is_first, NOTHING, cohort.action[before]).astype(np.int64)
    came_from = np.where(is_first, NOTHING, followed.row[before]).astype(np.int64)
    if not remembers:
        action, came_from = np.full((2, len(step)), NOTHING)
    row = followed.row[step].astype(np.int64)
    known, where = np.unique(np.stack([row, action, came_from]), axis=1, return_inverse=True)
    seen = world.situations(*known)
    option = seen.offsets[where.reshape(-1)] + followed.pair[step] - tasks.offsets[row]
    options, which = np.unique(option, return_inverse=True)
    owner_of = cohort.episode_owner()[episode]
    trial, owner = _trials(episode, owner_of, len(cohort))
    n = np.bincount(owner_of, minlength=len(cohort))
    stretch = _stretches(world, followed.pair, step, episode)
    return Made(world, seen, options, owner, n, which.reshape(-1), trial, stretch, weight)


def _trials(episode: Integers, owner: Integers, people: int) -> tuple[Integers, Integers]:
    """The trial of each choice, and whose each trial is: episodes, or quarters of the only one."""
    pairs = np.unique(np.stack([owner, episode]), axis=1)
    alone = np.bincount(pairs[0], minlength=people)[owner] < FEWEST_TRIALS
    total = np.bincount(owner, minlength=people)
    rank = np.arange(len(owner)) - offsets_of(total)[owner]  # steps of a person stand side by side
    part = np.where(alone, rank * PARTS // np.maximum(total[owner], 1), episode + PARTS)
    known, trial = np.unique(np.stack([owner, part]), axis=1, return_inverse=True)
    return trial.reshape(-1), known[0]


def _stretches(world: World, pair: NDArray[np.int32], step: Integers, episode: Integers) -> Integers:
    """The stretch each choice belongs to: from one goal achieved to the next, within an episode."""
    achieved = (pair >= 0) & world.achieves[np.maximum(pair, 0)]
    before: Integers = np.cumsum(achieved) - achieved
    return np.unique(np.stack([episode, before[step]]), axis=1, return_inverse=True)[1].reshape(-1)


def log_softmax(utility: Floats, offsets: Integers) -> Floats:
    """Return the log-probabilities of options, [K], those of a situation side by side."""
    if not len(utility):
        return utility
    size = np.diff(offsets)
    top = np.maximum.reduceat(utility, offsets[:-1])
    below = utility - np.repeat(top, size)
    total = np.add.reduceat(np.exp(below), offsets[:-1])
    return np.asarray(below - np.repeat(np.log(total), size))


# ---------------------------------------------------------------------- the seam


class ActionModel(ABC):
    """An account of how people choose.

    A subclass is a frozen dataclass with a ``kind`` of its own. It says which parameters a person has and
    what the options are worth to them; probabilities are the softmax of that, unless it says otherwise in
    :meth:`log_probabilities`.

    Examples
    --------
    People who avoid the first action of every state:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from fidm.action_models import ActionModel, Parameter
    >>> @dataclass(frozen=True)
    ... class Avoids(ActionModel):
    ...     kind = "avoids"
    ...
    ...     def parameters(self, world):
    ...         avoids = Parameter("avoids", "avoidance of the first action", np.arange(-3, 3.1, 0.5))
    ...         return world.sensitivity(), avoids
    ...
    ...     def utilities(self, world, seen, values):
    ...         first = np.isin(np.arange(len(seen.pair)), seen.offsets[:-1])
    ...         return values["action_sensitivity"] * world.q[seen.pair] - values["avoids"] * first
    """

    kind: ClassVar[str]

    @property
    def remembers(self) -> bool:
        """Whether it asks what was done before (``repeats`` and ``returns`` of the situations)."""
        return False

    @property
    def has_memory(self) -> bool:
        """Whether people have something in mind that lasts (:meth:`carry`) and is not seen."""
        return False

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return self.kind

    @abstractmethod
    def parameters(self, world: World) -> tuple[Parameter, ...]:
        """Return the parameters in which people differ; those with levels come last."""

    @abstractmethod
    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        """Return what every option is worth to somebody with these values, [K]."""

    def log_probabilities(self, world: World, seen: Situations, values: Given) -> Floats:
        """Return the log-probability of every option, [K]."""
        return log_softmax(np.asarray(self.utilities(world, seen, values), dtype=np.float64), seen.offsets)

    def log_likelihoods(self, made: Made, values: Given) -> Floats:
        """Return the log-likelihood of every trial, [T], of people with these values."""
        return made.summed(self.log_probabilities(made.world, made.seen, values)[made.option])

    def carry(self, world: World, row: Integers, memory: Integers, rng: np.random.Generator) -> Integers:
        """Return what each of several people has in mind in these rows, [n], for models in which that lasts.

        ``memory`` is what it was before, -1 where nothing was or a goal has just been achieved.
        :meth:`log_probabilities` is given it as the value ``"memory"``.
        """
        return memory

    def problems(self, tasks: TaskSet) -> str:
        """Say why the model cannot be used for these tasks; empty where it can."""
        return ""

    def stated_error(self, world: World) -> str:
        """Say how exactly the model's values are found, where they are interpolated; else empty."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values."""
        return {"kind": self.kind, "name": self.name}


# ---------------------------------------------------------------------- those that come with fidm


@dataclass(frozen=True)
class Softmax(ActionModel):
    """Choices are softmax(η·Q): the paper's account, and the default."""

    kind = "softmax"

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        return (world.sensitivity(),)

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        return np.asarray(values["action_sensitivity"] * world.q[seen.pair])


@dataclass(frozen=True)
class Random(ActionModel):
    """All legal actions are as probable: what every account must beat."""

    kind = "random"

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        return ()

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        return np.zeros(len(seen.pair))


RATES: Floats = np.arange(-6.0, 3.1, 0.75)
"""Nodes of a rate on the logit scale, from 0.2 % to 95 %."""


@dataclass(frozen=True)
class Lapse(ActionModel):
    """Softmax, but at a rate of their own people choose at random."""

    kind = "lapse"

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        rate = Parameter("lapse_rate", "lapse rate", RATES, "logit", middle=-3.0, spread=1.0)
        return (world.sensitivity(), rate)

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        return np.asarray(values["action_sensitivity"] * world.q[seen.pair])

    def log_probabilities(self, world: World, seen: Situations, values: Given) -> Floats:
        chosen = super().log_probabilities(world, seen, values)
        rate, size = values["lapse_rate"], np.repeat(np.diff(seen.offsets), np.diff(seen.offsets))
        return np.asarray(np.logaddexp(np.log1p(-rate) + chosen, np.log(rate / size)))


BONUS: Floats = np.arange(-4.0, 4.1, 0.5)
"""Nodes of a bonus: from a fiftieth of the odds to fifty times as much."""


@dataclass(frozen=True)
class Stickiness(ActionModel):
    """Softmax with a bonus for what was done last.

    Parameters
    ----------
    of : {"action", "way", "both"}
        Repeat the last action (``repeat`` is its bonus, above 0 where people persist), go back to where one
        came from (``step_back``, below 0 where people avoid it), or both.
    """

    of: Literal["action", "way", "both"] = "action"

    kind = "stickiness"

    def __post_init__(self) -> None:
        one_of("of", self.of, ("action", "way", "both"), FitError)

    @property
    def remembers(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return {"action": "stickiness", "way": "no_way_back", "both": "stickiness_both"}[self.of]

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        repeat = Parameter("repeat", "bonus for repeating an action", BONUS)
        back = Parameter("step_back", "bonus for stepping back", BONUS)
        more = {"action": (repeat,), "way": (back,), "both": (repeat, back)}[self.of]
        return (world.sensitivity(), *more)

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        worth = values["action_sensitivity"] * world.q[seen.pair]
        if self.of != "way":
            worth = worth + values["repeat"] * seen.repeats
        if self.of != "action":
            worth = worth + values["step_back"] * seen.returns
        return np.asarray(worth)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "of": self.of}


HORIZONS: Floats = np.arange(0.8, 5.5, 0.2)
"""Nodes of −log(1 − γ): γ from 0.55 to 0.995."""


@dataclass(frozen=True)
class Discounting(ActionModel):
    """Softmax of values under a discount γ of one's own.

    Values are solved for γ at nodes of −log(1 − γ), and interpolated between them;
    :meth:`ActionModel.stated_error` says how exactly. Values of every γ are brought to the same typical
    distance between actions as those of the task, so that η means as much at any γ.
    """

    kind = "discounting"

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        gamma = Parameter("discount", "discount γ", HORIZONS, "discount", middle=3.0, reach=1.0)
        return (world.sensitivity(*self._tables(world)), gamma)

    def _tables(self, world: World) -> Floats:
        """Q of every pair at every node, [N, K]."""
        return np.asarray(world.kept("discounted", lambda: np.stack([self._at(world, x) for x in HORIZONS])))

    @staticmethod
    def _at(world: World, free: float) -> Floats:
        gamma = float(-np.expm1(-free))
        solved = (solve(task.with_settings(gamma=gamma)) for task in world.tasks.tasks)
        q = world.tasks.values(solved)
        return q * (
            _typical_distance(world.q, world.tasks.offsets) / _typical_distance(q, world.tasks.offsets)
        )

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        tables = self._tables(world)
        with np.errstate(divide="ignore"):
            free = -np.log1p(-np.asarray(values["discount"]))
        place = np.clip((free - HORIZONS[0]) / (HORIZONS[1] - HORIZONS[0]), 0, len(HORIZONS) - 1)
        low = np.minimum(place.astype(np.int64), len(HORIZONS) - 2)
        q = tables[low, seen.pair] * (1 - (place - low)) + tables[low + 1, seen.pair] * (place - low)
        return np.asarray(values["action_sensitivity"] * q)

    def stated_error(self, world: World) -> str:
        tables, offsets = self._tables(world), world.tasks.offsets
        some = np.flatnonzero(np.diff(offsets) > 1)
        if not len(some):
            return ""
        worst = 0.0
        for low in (len(HORIZONS) // 2, len(HORIZONS) - 2):
            exact = self._at(world, float(HORIZONS[low : low + 2].mean()))
            apart = [_contrasts(q, offsets, some) for q in (exact, tables[low : low + 2].mean(axis=0))]
            worst = max(worst, float(np.abs(apart[0] - apart[1]).max() / np.abs(apart[0]).max()))
        return f"Values between two discounts are interpolated, to {100 * worst:.1g} % of the largest gap."


def _typical_distance(q: Floats, offsets: Integers) -> float:
    """The root mean square of how far options lie from the mean of their row; 1 where all are worth the
    same.
    """
    some = np.flatnonzero(np.diff(offsets) > 1)
    pair, begins = rows_at(offsets, some)
    if not len(pair):
        return 1.0
    mean = np.add.reduceat(q[pair], begins[:-1]) / np.diff(begins)
    found = float(np.sqrt(np.mean((q[pair] - np.repeat(mean, np.diff(begins))) ** 2)))
    return found if found > 0 else 1.0


def _contrasts(q: Floats, offsets: Integers, rows: Integers) -> Floats:
    """How far every option of these rows lies below the best."""
    pair, begins = rows_at(offsets, rows)
    own = q[pair]
    return np.asarray(np.repeat(np.maximum.reduceat(own, begins[:-1]), np.diff(begins)) - own)


DEPTHS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, math.inf)
"""Over how many steps values are backed up; infinite is the whole way."""


@dataclass(frozen=True)
class Depth(ActionModel):
    """Softmax of values backed up over d steps only; what comes after is worth what a heuristic says.

    Parameters
    ----------
    depths : tuple of float
        The numbers of steps a person may look ahead, in order.
    heuristic : {"nothing", "nearest"}
        What lies beyond is worth nothing, or what going for the nearest goal alone is worth.
    """

    depths: tuple[float, ...] = DEPTHS
    heuristic: Literal["nothing", "nearest"] = "nothing"

    kind = "depth"

    def __post_init__(self) -> None:
        one_of("heuristic", self.heuristic, ("nothing", "nearest"), FitError)
        given = self.depths
        if len(given) < 2 or list(given) != sorted(set(given)) or given[0] < 1:
            raise FitError(f"depths is {given}; two or more numbers of steps from 1 on are needed, in order.")

    @property
    def name(self) -> str:
        return self.kind if self.heuristic == "nothing" else "depth_nearest"

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        steps = Parameter.of_levels("depth", "planning depth", self.depths)
        return (world.sensitivity(*self._tables(world)), steps)

    def problems(self, tasks: TaskSet) -> str:
        return GoalAtATime().problems(tasks) if self.heuristic == "nearest" else ""

    def _tables(self, world: World) -> Floats:
        """Q of every pair at every depth, [D, K]."""

        def make() -> Floats:
            return np.concatenate(
                [
                    _shallow(task, self._beyond(world, number), self.depths)
                    for number, task in enumerate(world.tasks.tasks)
                ],
                axis=1,
            )

        return np.asarray(world.kept((self.kind, self.depths, self.heuristic), make))

    def _beyond(self, world: World, number: int) -> Floats:
        """What every state of a task is worth by the heuristic."""
        task = world.tasks.tasks[number]
        if self.heuristic == "nothing":
            return np.zeros(task.n_states)
        base = int(world.tasks.pair_base[number])
        return _values_of(task, nearest_values(world)[base : base + task.n_pairs])

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        level = np.searchsorted(self.depths, np.asarray(values["depth"]))
        level = np.minimum(level, len(self.depths) - 1)
        return np.asarray(values["action_sensitivity"] * self._tables(world)[level, seen.pair])

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "depths": list(self.depths), "heuristic": self.heuristic}


def _values_of(task: TaskModel, pair_q: Floats) -> Floats:
    """The value of every state of a task from that of its pairs; 0 where nothing is legal."""
    v = np.zeros(task.n_states)
    live = np.flatnonzero(~task.terminal)
    if len(live):
        v[live] = soft_maximum(pair_q, np.append(task.offsets[live], task.n_pairs), task.tau, task.normaliser)
    return v


def _shallow(task: TaskModel, beyond: Floats, depths: Sequence[float]) -> Floats:
    """Q of every pair of a task, backed up over each number of steps, [D, K]."""
    found, v, step = [], beyond, 0
    for depth in depths:
        if math.isinf(depth):
            q = task_pairs(task)
        else:
            while step < depth:
                q = backup_pairs(task, v)
                v, step = _values_of(task, q), step + 1
        found.append(q)
    return np.stack(found)


def task_pairs(task: TaskModel) -> Floats:
    """Return Q of every pair of a task, solved, [K]."""
    return np.asarray(solve(task).q[task.pair_state, task.action])


@dataclass(frozen=True)
class GoalAtATime(ActionModel):
    """Softmax of the values of one goal alone, as if there were no other.

    Parameters
    ----------
    goal : {"nearest", "chosen"}
        The goal that fewest steps away; or one chosen at random among those that are open, and kept until a
        goal is achieved. Which one it was is not known, so all are averaged over.
    """

    goal: Literal["nearest", "chosen"] = "nearest"

    kind = "goal"

    def __post_init__(self) -> None:
        one_of("goal", self.goal, ("nearest", "chosen"), FitError)

    @property
    def name(self) -> str:
        return f"{self.goal}_goal"

    @property
    def has_memory(self) -> bool:
        return self.goal == "chosen"

    def problems(self, tasks: TaskSet) -> str:
        without = [task.name for task in tasks.tasks if len(task.goals) < 2]
        return f"Fewer than two goals in {few(without)}." if without else ""

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        if self.goal == "nearest":
            return (world.sensitivity(nearest_values(world)),)
        return (world.sensitivity(*(_goal_tables(world)[0])),)

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        if self.goal == "nearest":
            q = nearest_values(world)[seen.pair]
        else:
            tables = _goal_tables(world)[0]
            goal = np.minimum(np.asarray(values["memory"]), len(tables) - 1)
            q = np.where(goal >= 0, tables[goal, seen.pair], world.q[seen.pair])
        return np.asarray(values["action_sensitivity"] * q)

    def log_likelihoods(self, made: Made, values: Given) -> Floats:
        if self.goal == "nearest":
            return super().log_likelihoods(made, values)
        world, n = made.world, len(_goal_tables(made.world)[0])
        log_p = np.stack(
            [
                self.log_probabilities(world, made.seen, {**values, "memory": goal})[made.option]
                for goal in (*range(n), NOTHING)
            ]
        )
        # Trials may cut a stretch in two: each part is then averaged over goals of its own.
        part = np.unique(np.stack([made.trial, made.stretch]), axis=1, return_inverse=True)[1].reshape(-1)
        first = np.unique(part, return_index=True)[1]
        summed = np.stack([np.bincount(part, made.weight * own[made.which]) for own in log_p])
        situation = np.searchsorted(made.seen.offsets, made.option[made.which[first]], side="right") - 1
        open_now = _goal_tables(world)[1][:, made.seen.row[situation]]
        some = np.asarray(open_now.any(axis=0))
        masked = np.where(open_now, summed[:-1], -np.inf)
        averaged = special.logsumexp(masked, axis=0) - np.log(np.maximum(open_now.sum(axis=0), 1))
        own = np.where(some, averaged, summed[-1])
        return np.asarray(np.bincount(made.trial[first], own, minlength=made.n_trials), dtype=np.float64)

    def carry(self, world: World, row: Integers, memory: Integers, rng: np.random.Generator) -> Integers:
        if self.goal == "nearest":
            return memory
        is_open = _goal_tables(world)[1][:, row]
        drawn = np.argmax(np.where(is_open, rng.random(is_open.shape), -1.0), axis=0)
        return np.where(memory >= 0, memory, np.where(is_open.any(axis=0), drawn, NOTHING))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "goal": self.goal}


def _goal_tables(world: World) -> tuple[Floats, Flags, Floats]:
    """Values of each goal alone [G, K], whether it is open [G, rows], and its distance [G, rows]."""

    def make() -> tuple[Floats, Flags, Floats]:
        n = max(len(task.goals) for task in world.tasks.tasks)
        q, away = [], []
        for task in world.tasks.tasks:
            alone = np.tile(task_pairs(task), (n, 1))
            steps = np.full((n, task.n_states), np.inf)
            for goal in range(len(task.goals)):
                other = (task.goal >= 0) & (task.goal != goal)
                alone[goal] = task_pairs(replace(task, reward=np.where(other, 0.0, task.reward)))
                steps[goal] = _steps_to(task, goal, ~other)
            q.append(alone)
            away.append(steps)
        distance = np.concatenate(away, axis=1)
        return np.concatenate(q, axis=1), np.isfinite(distance), distance

    found: tuple[Floats, Flags, Floats] = world.kept("goals", make)
    return found


def nearest_values(world: World) -> Floats:
    """Return the values of the nearest open goal alone, [K]; of everything where no goal is open."""

    def make() -> Floats:
        q, is_open, away = _goal_tables(world)
        row = np.repeat(np.arange(len(world.tasks.offsets) - 1), np.diff(world.tasks.offsets))
        nearest = np.argmin(away, axis=0)[row]
        some = np.asarray(is_open.any(axis=0))
        return np.where(some[row], q[nearest, np.arange(len(row))], world.q)

    return np.asarray(world.kept("nearest", make))


def _steps_to(task: TaskModel, goal: int, usable: Flags) -> Floats:
    """How many steps every state is from where a goal can be achieved, by usable pairs alone; inf if
    nowhere.
    """
    states = np.unique(task.pair_state[task.goal == goal])
    if not len(states):
        return np.full(task.n_states, np.inf)
    links = np.repeat(usable, np.diff(task.successor_offsets))
    tail = np.repeat(task.pair_state, np.diff(task.successor_offsets))[links]
    head = task.handover[task.successor[links]]
    back = sparse.csr_array((np.ones(len(tail)), (head, tail)), shape=(task.n_states, task.n_states))
    return np.asarray(csgraph.dijkstra(back, indices=states, unweighted=True, min_only=True))


@dataclass(frozen=True, eq=False)
class BelievesTask(ActionModel):
    """Softmax of the values of another task than the one people act in.

    Parameters
    ----------
    task : TaskModel, Values, or several by the name of the task
        What people take the task to be; as ``believes`` of :class:`fidm.Model`.
    called : str
        What the model is called in tables.
    """

    task: Believes
    called: str = "believes"

    kind = "believes"

    def __post_init__(self) -> None:
        if not isinstance(self.task, TaskModel | Values | Mapping):
            object.__setattr__(self, "task", tuple(self.task))

    @property
    def name(self) -> str:
        return self.called

    def problems(self, tasks: TaskSet) -> str:
        try:
            name_beliefs(tasks, self.task)
        except TaskError as error:
            return error.message
        return ""

    def _values(self, world: World) -> Floats:
        def make() -> Floats:
            seen, _ = seen_values(world.tasks, None, name_beliefs(world.tasks, self.task))
            return world.tasks.values(seen)

        return np.asarray(world.kept(self, make))

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        return (world.sensitivity(self._values(world)),)

    def to_dict(self) -> dict[str, Any]:
        given = self.task
        if isinstance(given, TaskModel | Values):
            named = [(self.called, given)]
        else:
            named = list(given.items()) if isinstance(given, Mapping) else [(one.name, one) for one in given]
        hashes = {name: describe(name, one).sha256 for name, one in named}
        return {**super().to_dict(), "believes": hashes}

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        return np.asarray(values["action_sensitivity"] * self._values(world)[seen.pair])


@dataclass(frozen=True)
class Mixture(ActionModel):
    """At each choice a person goes by one of two models; ``share`` is how often by the second.

    Parameters
    ----------
    first, second : ActionModel
        The two; parameters of the second of the same name as one of the first are called ``second_…``.
    """

    first: ActionModel
    second: ActionModel = field(default_factory=Random)

    kind = "mixture"

    def __post_init__(self) -> None:
        if isinstance(self.first, Mixture) or isinstance(self.second, Mixture):
            raise FitError("A mixture of mixtures cannot be told from data. Give two plain models.")
        if self.first.has_memory or self.second.has_memory:
            raise FitError("A model in which a goal is chosen and kept cannot be mixed choice by choice.")

    @property
    def name(self) -> str:
        return f"{self.first.name}+{self.second.name}"

    @property
    def remembers(self) -> bool:
        return self.first.remembers or self.second.remembers

    def problems(self, tasks: TaskSet) -> str:
        return self.first.problems(tasks) or self.second.problems(tasks)

    def _named(self, world: World) -> dict[str, Parameter]:
        """The parameters of the second by the names they have there."""

        def make() -> dict[str, Parameter]:
            taken = {one.name for one in self.first.parameters(world)}
            return {
                one.name: replace(one, name=f"second_{one.name}", label=f"{one.label} (second)")
                if one.name in taken
                else one
                for one in self.second.parameters(world)
            }

        found: dict[str, Parameter] = world.kept(("named", self), make)
        return found

    def parameters(self, world: World) -> tuple[Parameter, ...]:
        share = Parameter("share", f"share of {self.second.name}", RATES, "logit", middle=-1.5, spread=1.0)
        every = (*self.first.parameters(world), *self._named(world).values(), share)
        return tuple(sorted(every, key=lambda one: one.is_discrete))

    def utilities(self, world: World, seen: Situations, values: Given) -> Floats:
        return self.log_probabilities(world, seen, values)

    def log_probabilities(self, world: World, seen: Situations, values: Given) -> Floats:
        own = {name: values[one.name] for name, one in self._named(world).items()}
        first = self.first.log_probabilities(world, seen, values)
        second = self.second.log_probabilities(world, seen, own)
        share = values["share"]
        return np.asarray(np.logaddexp(np.log1p(-share) + first, np.log(share) + second))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "first": self.first.to_dict(), "second": self.second.to_dict()}


SOFTMAX, LAPSE, RANDOM = Softmax(), Lapse(), Random()
STICKINESS, NO_WAY_BACK = Stickiness(), Stickiness("way")
DISCOUNTING, DEPTH = Discounting(), Depth()
NEAREST_GOAL, CHOSEN_GOAL = GoalAtATime(), GoalAtATime("chosen")
