r"""Tasks in which things are put in and taken out one at a time, until somebody says that it is done.

There are n things. A state is the set of those that are in, written as a number whose bit i says whether
thing i is. Action i puts it in or takes it out again; a last action ends the episode and pays what the set is
worth. It is legal only in sets that may be handed in. The states are the corners of a cube of n dimensions,
2^n of them, and one further state, the last, is the end.

Such a task is an ordinary :class:`fidm.TaskModel`, and :func:`fidm.solve` solves it. The cube is one layer of
cycles, though, and a million sets make a large one; :func:`solve_toggles` uses that what action i leads to is
``s ^ (1 << i)``, so that a backup needs no table of links. It sweeps over the cube until nothing changes:

.. math:: V(s) \leftarrow \text{soft maximum of }\; c + \gamma V(s \oplus 2^i) \;\text{ and }\; w(s),

with c what a change pays and w(s) what handing s in pays. The best set is at most n changes away, so that the
hard maximum is exact after n sweeps at most; soft ones take a few more, as long as changes are dear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np
from numba import njit

from fidm.errors import TaskError
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Normaliser, Values

MOST_THINGS = 22
"""With more things than this, sets and choices no longer fit into memory."""

SWEEPS = 500
"""How many sweeps there are before giving up."""

TOLERANCE = 1e-10
"""The residual at which the sweeps end, as in :func:`fidm.solve`."""

WIDEST = 600.0
"""How far apart values may lie, in temperatures, before soft maxima lose them."""


def toggle_task(
    things: Sequence[str],
    worth: Floats,
    *,
    change: float,
    gamma: float,
    tau: float = 1.0,
    normaliser: Normaliser = "max",
    end: str = "submit",
    name: str = "sets",
) -> TaskModel:
    """Make a task of putting things in and taking them out.

    Parameters
    ----------
    things : sequence of str
        The names of the n things, which are the names of the actions too.
    worth : float array [2^n]
        What handing in each set pays; NaN where it may not be handed in.
    change : float
        What putting a thing in or taking it out pays; below 0 where it costs something.
    gamma, tau, normaliser, name
        As in :class:`fidm.TaskModel`.
    end : str
        What handing in is called.

    Examples
    --------
    Two things; only both together may be handed in.

    >>> import numpy as np
    >>> from fidm_studies.justhink.toggles import solve_toggles, toggle_task
    >>> task = toggle_task(["a", "b"], np.array([np.nan, np.nan, np.nan, 3.0]), change=-1.0, gamma=1.0)
    >>> solve_toggles(task).v.tolist()
    [1.0, 2.0, 2.0, 3.0, 0.0]
    """
    n = len(things)
    if not 1 <= n <= MOST_THINGS:
        raise TaskError(f"There are {n} things; from 1 to {MOST_THINGS} can be put in and taken out.")
    if worth.shape != (1 << n,):
        raise TaskError(f"worth has the shape {worth.shape}; {n} things make {1 << n} sets.")
    if np.isinf(worth).any():
        raise TaskError(
            f"worth is infinite for {np.isinf(worth).sum():,} of {1 << n:,} sets; it must be a number, or "
            "NaN where a set may not be handed in."
        )
    if not math.isfinite(change):
        raise TaskError(f"change is {change}; it must be a finite number.")
    names = [*things, end]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TaskError(
            f"More than one action is called {', '.join(twice)}; every thing, and handing in, needs a name "
            "of its own."
        )
    states = np.arange(1 << n, dtype=np.int32)
    may_end = ~np.isnan(worth)
    offsets = np.zeros(len(states) + 2, dtype=np.int64)
    np.cumsum(n + may_end, out=offsets[1:-1])
    offsets[-1] = offsets[-2]
    n_pairs = int(offsets[-1])
    action = np.empty(n_pairs, dtype=np.int32)
    successor = np.empty(n_pairs, dtype=np.int32)
    reward = np.full(n_pairs, float(change))
    for thing in range(n):
        rows = offsets[:-2] + thing
        action[rows], successor[rows] = thing, states ^ np.int32(1 << thing)
    rows = offsets[:-2][may_end] + n
    action[rows], successor[rows], reward[rows] = n, 1 << n, worth[may_end]
    return TaskModel(
        name=name,
        offsets=offsets,
        action=action,
        reward=reward,
        successor_offsets=np.arange(n_pairs + 1, dtype=np.int64),
        successor=successor,
        probability=np.ones(n_pairs),
        actions=(*things, end),
        gamma=float(gamma),
        tau=float(tau),
        normaliser=normaliser,
        start=0,
        goals=(),
        goal=np.full(n_pairs, -1, dtype=np.int16),
        is_move=np.zeros(n_pairs, dtype=np.bool_),
        counted=np.ones(len(states) + 1, dtype=np.bool_),
        handover=np.arange(len(states) + 1, dtype=np.int32),
    )


def solve_toggles(
    task: TaskModel, normaliser: Normaliser | None = None, *, change: float | None = None
) -> Values:
    """Work out what every action is worth in a task of putting things in and taking them out.

    The values are those of :func:`fidm.solve`, to 1e-9, in a fraction of its time and memory where there are
    many things. With ``gamma=1``, which :func:`fidm.solve` refuses where one can walk in circles, there are
    values too as long as changes cost enough; else an error says so.

    Parameters
    ----------
    task : TaskModel
        What :func:`toggle_task` gave.
    normaliser : {"sum", "mean", "max"}, optional
        The soft maximum; the task's own by default.
    change : float, optional
        What a change pays, to see what the task would be like at another price; the task's own by default.
        Values at another price are those of no task, so a model takes them as ``believes`` only.
    """
    normaliser = task.normaliser if normaliser is None else normaliser
    if normaliser not in get_args(Normaliser):
        raise TaskError(f"normaliser is {normaliser!r}; it must be 'sum', 'mean' or 'max'.")
    things, own_change, worth = _inside(task)
    change = own_change if change is None else float(change)
    if not math.isfinite(change):
        raise TaskError(f"change is {change}; it must be a finite number.")
    may_end = ~np.isnan(worth)
    if not may_end.any():
        raise TaskError(f"{task.name}: no set may be handed in, so nothing has a value.")
    endings = np.where(may_end, worth, -np.inf)
    counts = (things + may_end).astype(np.float64)
    v = _first_guess(endings, things, change, task.gamma)
    sweeps = 0
    if normaliser != "max":
        v, sweeps = _softly(v, endings, counts, things, change, task, normaliser)
    q = np.empty((len(worth) + 1, things + 1))
    q[-1] = -np.inf
    _fill(v, endings, change, task.gamma, q)
    best = q[:-1].max(axis=1)
    if normaliser == "max":
        again = best
    else:
        total = np.exp((q[:-1] - best[:, None]) / task.tau).sum(axis=1)
        again = best + task.tau * np.log(total / counts if normaliser == "mean" else total)
    residual = float(np.abs(again - v).max())
    if not residual <= 10 * TOLERANCE:
        raise TaskError(
            f"{task.name}: the values were found only to a residual of {residual:.2g} in {sweeps} sweeps. A "
            "smaller tau, a dearer change or normaliser='max' makes it easier."
        )
    found = Values(
        q=q,
        v=np.append(v, 0.0),
        normaliser=normaliser,
        tau=task.tau,
        residual=residual,
        iterations=sweeps,
        layers=1,
        method="sweeps over the cube of sets",
    )
    if change != own_change:
        return found
    own = task if normaliser == task.normaliser else task.with_settings(normaliser=normaliser)
    return found.marked(own.fingerprint)


def _inside(task: TaskModel) -> tuple[int, float, Floats]:
    """The number of things, the price of a change and what sets pay, if it is such a task at all."""
    things = task.n_actions - 1
    is_cube = 1 <= things <= MOST_THINGS and task.n_states == (1 << things) + 1 and task.is_deterministic
    worth = np.full(1 << things if is_cube else 0, np.nan)
    if not is_cube or not _toggles(task.offsets, task.action, task.successor, task.reward, things, worth):
        raise TaskError(f"{task.name} is no task of putting things in and taking them out; use fidm.solve.")
    return things, float(task.reward[0]), worth


@njit(cache=True, nogil=True)
def _toggles(offsets, action, successor, reward, things, worth):  # type: ignore[no-untyped-def]
    """Whether action i of every set turns its bit i, all at one price; notes what handing in pays."""
    for s in range(len(worth)):
        first = offsets[s]
        n = offsets[s + 1] - first
        if n != things and n != things + 1:
            return False
        for i in range(things):
            k = first + i
            if action[k] != i or successor[k] != s ^ (1 << i) or reward[k] != reward[0]:
                return False
        if n > things:
            if successor[first + things] != len(worth):
                return False
            worth[s] = reward[first + things]
    return offsets[len(worth)] == offsets[len(worth) + 1]


@njit(cache=True, nogil=True)
def _fill(v, endings, change, gamma, q):  # type: ignore[no-untyped-def]
    things = q.shape[1] - 1
    for s in range(len(v)):
        for i in range(things):
            q[s, i] = change + gamma * v[s ^ (1 << i)]
        q[s, things] = endings[s]


def _first_guess(endings: Floats, things: int, change: float, gamma: float) -> Floats:
    """The hard maximum, which is exact when a round over all things improves no set."""
    v = endings.copy()
    for _ in range(SWEEPS):
        if not _improve(v, things, change, gamma):
            return v
    raise TaskError(
        "Going round in circles pays, so sets have no finite value. Make a change cost something."
    )


@njit(cache=True, nogil=True)
def _improve(v, things, change, gamma):  # type: ignore[no-untyped-def]
    """Let every set take the value of changing into a better neighbour; say whether any did."""
    any_better = False
    for thing in range(things):
        bit = 1 << thing
        for s in range(len(v)):
            offered = change + gamma * v[s ^ bit]
            if offered > v[s]:
                v[s] = offered
                any_better = True
    return any_better


def _softly(
    v: Floats,
    endings: Floats,
    counts: Floats,
    things: int,
    change: float,
    task: TaskModel,
    normaliser: Normaliser,
) -> tuple[Floats, int]:
    """Sweep soft maxima until nothing changes; sums of e^(V/τ) need one logarithm per set and sweep."""
    top, tau, gamma = float(v.max()), task.tau, task.gamma
    ended = np.exp((endings - top) / tau)
    shared = counts if normaliser == "mean" else np.ones(len(v))
    for sweep in range(1, SWEEPS + 1):
        if float(v.max() - v.min()) > WIDEST * tau:
            raise TaskError(f"{task.name}: values lie too far apart for a tau of {tau:g}; use a larger one.")
        lifted = np.exp((change + gamma * v - top) / tau)
        total = np.empty(len(v))
        _neighbours(lifted, ended, things, total)
        after = top + tau * np.log(total / shared)
        moved = float(np.abs(after - v).max())
        v = after
        if moved <= TOLERANCE * (1.0 - gamma if gamma < 1.0 else 1e-2):
            return v, sweep
    return v, SWEEPS


@njit(cache=True, nogil=True)
def _neighbours(lifted, ended, things, total):  # type: ignore[no-untyped-def]
    for s in range(len(lifted)):
        found = ended[s]
        for thing in range(things):
            found += lifted[s ^ (1 << thing)]
        total[s] = found
