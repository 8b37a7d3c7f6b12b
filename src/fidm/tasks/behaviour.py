r"""How somebody with a given action sensitivity walks through a task.

Choices follow the action factor (paper, equation 5): with sensitivity η ≥ 0,

.. math:: \pi_\eta(a \mid s) = \exp(\eta Q(s,a)) \,/\, \sum_{a' \in A(s)} \exp(\eta Q(s,a')).

η = 0 is blind chance, a large η always takes the best action, and η = 1/τ is the walker whom the
soft values themselves assume.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fidm.errors import TaskError, at_least
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import rows_at
from fidm.types import Floats, Trace, Values


def pair_values(task: TaskModel, values: Values) -> Floats:
    """Return Q of every legal pair, [K]."""
    check_own(task, values)
    return np.asarray(values.q[task.pair_state, task.action])


def check_own(task: TaskModel, values: Values) -> None:
    """Raise if values were solved for another task, or do not fit this one."""
    if values.solved_for and values.solved_for != task.fingerprint:
        raise TaskError(
            f"These values were solved for another task than {task.name}, or for other settings of it, so "
            "they do not say what its actions are worth. Solve this one: fidm.solve(task). What people who "
            "believe in the other one go by is fidm.tasks.beliefs.believed_values(task, other)."
        )
    if values.q.shape != (task.n_states, task.n_actions):
        raise TaskError(
            f"These values are of shape {values.q.shape}, but {task.name} has "
            f"{task.n_states} states and {task.n_actions} actions."
        )


def choice_probabilities(task: TaskModel, values: Values, sensitivity: float) -> Floats:
    """Return how probable each legal action is for a person of this sensitivity.

    Parameters
    ----------
    task : TaskModel
        The task.
    values : Values
        Its values.
    sensitivity : float
        η, from 0 (chance) to infinity (always a best action; ties are shared evenly).

    Returns
    -------
    float array [K]
        One probability per pair; they sum to one within a state. ``task.table(p, fill=0.0)`` turns
        them into a table of states and actions.
    """
    at_least("sensitivity", sensitivity, 0, TaskError)
    q, live = pair_values(task, values), ~task.terminal
    if not len(q):
        return q
    begins, counts = task.offsets[:-1][live], np.diff(task.offsets)[live]
    below_best = q - np.repeat(np.maximum.reduceat(q, begins), counts)
    if np.isinf(sensitivity):
        weight = (below_best == 0).astype(np.float64)
    else:
        weight = np.exp(sensitivity * below_best)
    return np.asarray(weight / np.repeat(np.add.reduceat(weight, begins), counts))


def walk(
    task: TaskModel,
    values: Values,
    sensitivity: float,
    *,
    seed: int | np.random.Generator,
    max_steps: int = 1_000,
    label: str = "",
) -> Trace:
    """Let a person of a given sensitivity walk through a task once.

    Parameters
    ----------
    task, values
        The task and its values.
    sensitivity : float
        η, how strongly value steers the person.
    seed : int or Generator
        The same seed gives the same walk. It also draws the start where the task has several.
    max_steps : int
        The walk is broken off after so many actions.
    label : str
        Whose walk it is.

    Examples
    --------
    >>> import fidm
    >>> task = fidm.load_task("grocery")
    >>> trace = fidm.walk(task, fidm.solve(task), 40.0, seed=1)
    >>> trace.finished
    True
    """
    if not isinstance(seed, np.random.Generator) and seed < 0:
        raise TaskError(f"seed is {seed}; it must be 0 or more.")
    rng = np.random.default_rng(seed)
    probability = choice_probabilities(task, values, sensitivity)
    states: list[int] = [first_state(task.starts, rng)]
    actions: list[int] = []
    while len(actions) < max_steps and not task.terminal[states[-1]]:
        first, last = task.offsets[states[-1]], task.offsets[states[-1] + 1]
        pair = first + rng.choice(last - first, p=probability[first:last])
        low, high = task.successor_offsets[pair], task.successor_offsets[pair + 1]
        link = low if high - low == 1 else low + rng.choice(high - low, p=task.probability[low:high])
        actions.append(int(task.action[pair]))
        states.append(int(task.handover[task.successor[link]]))
    return Trace(
        task=task.name,
        state=np.array(states, dtype=np.int32),
        action=np.array(actions, dtype=np.int32),
        finished=bool(task.ends[states[-1]]),
        label=label,
    )


def worth_of_cells(
    task: TaskModel, values: Values, completed: Sequence[str] = (), phase: str | None = None
) -> Floats:
    """Return what it is worth to stand in each cell of a drawn task, [C], in one state of progress.

    In a task with hidden cells nothing is known of them, and the worth of cells where nobody can be without
    having seen some is NaN.
    """
    check_own(task, values)
    states = task.grid
    assert states is not None  # noqa: S101 - the caller has seen to that
    rows = states.states_of(completed, phase)
    if not states.spec.hidden:
        return np.asarray(values.v[rows])
    nobody = task.terminal[rows]
    if nobody.all():
        raise TaskError(
            f"{task.name}: nobody can have completed {', '.join(completed)} without having seen hidden cells."
        )
    return np.asarray(np.where(nobody, np.nan, values.v[rows]))


def has_hidden(task: TaskModel) -> bool:
    """Return whether a task was drawn with hidden cells."""
    return task.grid is not None and len(task.grid.spec.hidden) > 0


def first_state(starts: Sequence[int], rng: np.random.Generator) -> int:
    """Return the state an episode begins in; of several, any is as probable. One start takes no draw."""
    return starts[int(rng.integers(len(starts)))] if len(starts) > 1 else starts[0]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of somebody who acts by given probabilities, for up to ``max_steps`` actions."""

    actions: float  # the expected number of actions, those who have not finished counted with ``max_steps``
    finished: float  # the share of episodes that have ended by then
    visits: Floats  # [S]: how often each state is expected to be acted in
    max_steps: int  # how many actions were looked ahead


def look_ahead(task: TaskModel, probability: Floats, *, max_steps: int) -> Outlook:
    """Follow the exact distribution over states from the starts, step by step, without sampling."""
    weight = np.repeat(probability, np.diff(task.successor_offsets)) * task.probability
    reached = task.handover[task.successor]
    state = np.repeat(task.pair_state, np.diff(task.successor_offsets))
    onward = sparse.csr_array((weight, (reached, state)), shape=(task.n_states,) * 2)
    terminal = task.terminal
    here = np.zeros(task.n_states)
    here[list(task.starts)] = 1.0 / len(task.starts)
    visits, actions, finished = np.zeros(task.n_states), 0.0, 0.0
    ends = task.ends
    for _ in range(max_steps):
        finished += float(here[ends].sum())
        here[terminal] = 0.0
        alive = float(here.sum())
        if alive < 1e-12:
            break
        visits += here
        actions += alive
        here = np.asarray(onward @ here)
    finished += float(here[ends].sum())
    return Outlook(actions, min(1.0, finished), visits, max_steps)


def reachable(
    task: TaskModel, allowed: NDArray[np.bool_] | None = None, *, start: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Yield the states that acting can reach from the starts, by the fewest actions it takes.

    ``allowed`` (one flag per pair) leaves actions out; ``start`` begins in one state only.
    """
    seen = np.zeros(task.n_states, dtype=np.bool_)
    ring = np.unique(task.starts if start is None else [start])
    while len(ring):
        seen[ring] = True
        yield ring
        pairs = rows_at(task.offsets, ring)[0]
        if allowed is not None:
            pairs = pairs[allowed[pairs]]
        rows = rows_at(task.successor_offsets, pairs)[0]
        ring = np.unique(task.handover[task.successor[rows]])
        ring = ring[~seen[ring]]


def information(task: TaskModel, values: Values, sensitivity: float) -> Floats:
    """Return how much one action in each state tells about a person's sensitivity, [S].

    The Fisher information of η in one choice is the variance of Q under the person's own policy.
    """
    live = ~task.terminal
    told = np.zeros(task.n_states)
    if not live.any():
        return told
    q, p = pair_values(task, values), choice_probabilities(task, values, sensitivity)
    begins, counts = task.offsets[:-1][live], np.diff(task.offsets)[live]
    mean = np.add.reduceat(p * q, begins)
    told[live] = np.add.reduceat(p * (q - np.repeat(mean, counts)) ** 2, begins)
    return told
