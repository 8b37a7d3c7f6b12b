"""Simulated people with known parameters: choosers or walkers whose speech follows the effort channels.

Choosers act as the model says, by the softmax of η times the value of each action. Every person has a random
stream of their own, made from the seed and the person's number, so a cohort of a given seed is the same
however many people are simulated at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import ArrayLike, NDArray

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError, at_least, one_of
from fidm.model.channels import LOG_MOVES, Channel
from fidm.model.effort import paper_channels
from fidm.simulate.walker import Habits, Walker, true_rates
from fidm.tasks.behaviour import first_state
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Values


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxWalker:
    """A task as a walk by softmax needs it: values of pairs, and the chances of successors, added up."""

    model: TaskModel
    q: Floats
    cumulative: Floats

    @classmethod
    def of(cls, model: TaskModel, values: Values) -> SoftmaxWalker:
        """Make a task ready to be walked through."""
        begins = np.repeat(model.successor_offsets[:-1], np.diff(model.successor_offsets))
        total = np.cumsum(model.probability)
        before = np.concatenate([[0.0], total])[begins]
        return cls(model, values.q[model.pair_state, model.action], total - before)

    def walk(self, start: int, eta: float, wrong: float, draws: Floats) -> tuple[Any, Any]:
        """Return the states and actions of a walk until the draws are used up or the episode ends.

        Parameters
        ----------
        start : int
            The first state.
        eta : float
            The person's sensitivity.
        wrong : float
            The chance of another legal action than the chosen one.
        draws : float array [L, 3]
            Uniform draws per step: which action, whether and which other one, which successor.
        """
        model = self.model
        states, actions = np.empty(len(draws) + 1, np.int32), np.empty(len(draws), np.int32)
        length = _walk(
            model.offsets, model.action, self.q, model.successor_offsets, model.successor, self.cumulative,
            model.handover, start, eta, wrong, draws, states, actions,
        )  # fmt: skip
        return states[: length + 1].copy(), actions[:length].copy()

    def run(self, truth: Floats, wrong: float, rng: np.random.Generator, most: int) -> tuple[Any, Any]:
        """Return the states and actions of a person whose log η comes first in ``truth``."""
        start = first_state(self.model.starts, rng)
        return self.walk(start, float(np.exp(truth[0])), wrong, rng.random((most, 3)))


def choose(offsets: NDArray[np.int64], q: Floats, row: NDArray[Any], eta: Floats, draw: Floats) -> Any:
    """Return the pair that each draw picks in its row, [n], by the softmax of η q."""
    found = np.empty(len(row), dtype=np.int64)
    _choose(offsets, q, row, eta, draw, found)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _pick(q, first, last, eta, draw):  # type: ignore[no-untyped-def]
    """The one of some pairs that a draw picks."""
    top = q[first]
    for k in range(first + 1, last):
        top = max(top, q[k])
    total = 0.0
    for k in range(first, last):
        total += np.exp(eta * (q[k] - top))
    left = draw * total
    for k in range(first, last):
        left -= np.exp(eta * (q[k] - top))
        if left < 0.0:
            return k
    return last - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _choose(offsets, q, row, eta, draw, found):  # type: ignore[no-untyped-def]
    for i in range(len(row)):
        found[i] = _pick(q, offsets[row[i]], offsets[row[i] + 1], eta[i], draw[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(  # type: ignore[no-untyped-def]
    offsets, action, q, successor_offsets, successor, cumulative, handover, start, eta, wrong, draws, states,
    actions,
):  # fmt: skip
    s = start
    states[0] = s
    for i in range(len(draws)):
        first = offsets[s]
        last = offsets[s + 1]
        if first == last:
            return i
        pair = _pick(q, first, last, eta, draws[i, 0])
        if draws[i, 1] < wrong and last - first > 1:
            shift = 1 + int(draws[i, 1] / wrong * (last - first - 1))
            pair = first + (pair - first + shift) % (last - first)
        link = successor_offsets[pair + 1] - 1
        for candidate in range(successor_offsets[pair], successor_offsets[pair + 1]):
            if draws[i, 2] < cumulative[candidate]:
                link = candidate
                break
        actions[i] = action[pair]
        s = handover[successor[link]]
        states[i + 1] = s
    return len(draws)


AgentName = Literal["model", "walker"]
"""The two ways to act: softmax over values, or one target after the other, with slips."""

PART = 20_000
"""So many people are put together at a time, so that a very large cohort fits into memory."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a simulated channel really is: intercept, slope of log(1 + n), and shape."""

    intercept: float
    slope: float
    shape: float = 1.0


@dataclass(frozen=True, slots=True)
class WideTruth(Truth):
    """What a channel really is that is conditioned on something else than the moves alone.

    ``slopes`` are those of its whole design, coefficient by coefficient; ``slope`` counts where only the
    moves are looked at.
    """

    slopes: tuple[float, ...] = ()


def truth_of(channel: Channel, coefficients: Floats, shape: float) -> Truth:
    """Return what was learned of a channel, the intercept first, as what is to be drawn from."""
    intercept, *slopes = map(float, coefficients)
    if channel.design == (LOG_MOVES,):
        return Truth(intercept, slopes[0], shape)
    slope = slopes[0] if channel.design[:1] == (LOG_MOVES,) else 0.0
    return WideTruth(intercept, slope, shape, tuple(slopes))


PAPER_TRUTH: Mapping[str, Truth] = {
    "duration": Truth(0.788, 0.570, 1.90),
    "characters": Truth(1.872, 0.480, 2.20),
    "turns": Truth(0.588, 0.120, 3.00),
    "pause": Truth(-0.105, 0.220, 0.980),
    "pause_presence": Truth(-0.35, 0.20),
}
"""Population values that reproduce the sizes the paper reports; a calibration, not a replication."""


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """How simulated people differ.

    Parameters
    ----------
    log_sensitivity_mean, log_sensitivity_sd : float
        Of log η; by default around η = 24.
    effort_sd : float
        The standard deviation of θ in every channel.
    correlation : array [D, D], optional
        Of (log η, θ…) among people; independent if left out.
    truth : mapping of channel names to Truth
        The population values of the channels.
    """

    log_sensitivity_mean: float = 3.178
    log_sensitivity_sd: float = 0.42
    effort_sd: float = 0.35
    correlation: ArrayLike | None = None
    truth: Mapping[str, Truth] = field(default_factory=lambda: PAPER_TRUTH)


def simulate_cohort(
    task: TaskModel | Iterable[TaskModel],
    n: int,
    *,
    seed: int,
    people: People | None = None,
    max_steps: int = 1_000,
    moves_per_segment: float = 3.5,
    wrong_moves: float = 0.0,
    shifts: ArrayLike | None = None,
    first: int = 0,
    agent: AgentName = "model",
    habits: Habits | None = None,
) -> Cohort:
    """Let people with known parameters do one or several tasks.

    The true parameters stand in the participants table, as ``true_action_sensitivity``, ``true_duration`` and
    so on. Walkers have no true sensitivity; theirs are ``true_wrong_turn``, ``true_passes_by`` and
    ``true_forgets``.

    Parameters
    ----------
    task : TaskModel, or several
        Everybody does each of them once.
    n : int
        How many people.
    seed : int
        The same seed gives the same people. It also draws where they begin in a task with several starts.
    people : People, optional
        How they differ.
    max_steps : int
        An episode is broken off after so many actions.
    moves_per_segment : float
        About how many actions a segment describes.
    wrong_moves : float
        The share of steps at which another legal action than the chosen one is taken, at random; steps with
        one legal action stay as they are.
    shifts : array [n, D], optional
        How far each person lies from others in (log η, θ…), as members of a clinical group may.
    first : int
        The number of the first person, to simulate a large cohort part by part.
    agent : {"model", "walker"}
        Whether people choose as the model says, by softmax over values, or walk from target to target and
        slip (see :class:`fidm.simulate.walker.Habits`). A walker's log η is their ability: the lower it is,
        the more they slip.
    habits : Habits, optional
        How walkers go about a task.

    Examples
    --------
    >>> import fidm
    >>> cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    >>> cohort.ids.to_list()
    ['P0000001', 'P0000002', 'P0000003']
    """
    if not all(isinstance(number, int | np.integer) for number in (n, seed, first, max_steps)):
        raise DataError("n, seed, first and max_steps must be whole numbers.")
    if n < 1 or first < 0:
        raise DataError(f"n is {n} and first is {first}; there must be somebody to simulate.")
    at_least("seed", seed, 0)
    if not (moves_per_segment >= 1 and 0 <= wrong_moves < 1 and max_steps >= 1):
        raise DataError("moves_per_segment and max_steps must be 1 or more, wrong_moves between 0 and 1.")
    check_agent(agent, habits)
    tasks = TaskSet.of(task)
    kind = people or People()
    channels = tuple(channel for channel in paper_channels() if channel.name in kind.truth)
    root = covariance_root(kind, len(channels))
    moved = valid_shifts(shifts, n, len(root))
    agents = [
        Walker.of(model, kind, habits) if agent == "walker" else SoftmaxWalker.of(model, solve(model))
        for model in tasks.tasks
    ]
    world = _World(tasks, agents, agent, habits, kind, channels, max_steps, moves_per_segment, wrong_moves)
    parts = []
    for begun in range(first, first + n, PART):
        rows: list[_Person] = []
        for j in range(begun, min(begun + PART, first + n)):
            rng = np.random.default_rng([seed, j])
            rows.append(_one_person(rng, draw_truth(rng, kind, root, moved[j - first]), world))
        parts.append(_assemble(rows, world, begun))
    return parts[0] if len(parts) == 1 else Cohort.concat(parts)


def check_agent(agent: str, habits: Habits | None) -> None:
    """Refuse a way to act that does not exist, and habits for people who have none."""
    one_of("agent", agent, get_args(AgentName))
    if habits is not None and agent != "walker":
        raise DataError("habits are for walkers; pass agent='walker' with them, or leave them out.")


def true_ways(truth: Floats, people: People, agent: AgentName, habits: Habits | None) -> dict[str, Floats]:
    """Return what is true of how people act, as columns of the participants' table."""
    if agent == "walker":
        return true_rates(truth, people, habits or Habits())
    return {"true_action_sensitivity": np.exp(truth[:, 0])}


class _Agent(Protocol):
    """A way to act on one task."""

    def run(self, truth: Floats, wrong: float, rng: np.random.Generator, most: int) -> tuple[Any, Any]:
        """Return the states and the actions of somebody's walk."""


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    """What is the same for everybody."""

    tasks: TaskSet
    agents: Sequence[_Agent]
    agent: AgentName
    habits: Habits | None
    kind: People
    channels: tuple[Channel, ...]
    max_steps: int
    moves_per_segment: float
    wrong: float
    moves: tuple[NDArray[np.bool_], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", tuple(_moves(model) for model in self.tasks.tasks))


def _moves(model: TaskModel) -> NDArray[np.bool_]:
    """Which actions are movements; all, where the task does not tell."""
    moves = np.zeros(model.n_actions, dtype=np.bool_)
    moves[model.action[model.is_move]] = True
    return moves if model.is_move.any() else ~moves


@dataclass(slots=True, eq=False)
class _Person:
    truth: Floats
    states: list[NDArray[np.int32]]
    actions: list[NDArray[np.int32]]
    step_segment: list[NDArray[np.int32]]
    n_moves: list[NDArray[np.int64]]
    observed: list[dict[str, Floats]]


def covariance_root(people: People, width: int) -> Floats:
    """Return the matrix that turns independent normal draws into people's (log η, θ…)."""
    sd = np.array([people.log_sensitivity_sd] + [people.effort_sd] * width)
    if people.correlation is None:
        return np.diag(sd)
    correlation = np.asarray(people.correlation, dtype=np.float64)
    if correlation.shape != (width + 1, width + 1):
        raise DataError(f"correlation has the shape {correlation.shape}; expected {(width + 1, width + 1)}.")
    try:
        return np.asarray(sd[:, None] * np.linalg.cholesky(correlation))
    except np.linalg.LinAlgError:
        raise DataError("correlation is not a correlation matrix: it is not positive definite.") from None


def draw_truth(rng: np.random.Generator, people: People, root: Floats, shift: Floats) -> Floats:
    """Draw a person's (log η, θ…); the first numbers that are drawn from their stream."""
    truth = root @ rng.standard_normal(len(root)) + shift
    truth[0] += people.log_sensitivity_mean
    return np.asarray(truth)


def valid_shifts(shifts: ArrayLike | None, n: int, width: int) -> Floats:
    """Return everybody's shifts, zero where none are given."""
    if shifts is None:
        return np.zeros((n, width))
    found = np.asarray(shifts, dtype=np.float64)
    if found.shape != (n, width) or not np.isfinite(found).all():
        raise DataError(f"shifts has the shape {found.shape}; {(n, width)} finite numbers are needed.")
    return found


def _one_person(rng: np.random.Generator, truth: Floats, world: _World) -> _Person:
    person = _Person(truth, [], [], [], [], [])
    for agent, moves in zip(world.agents, world.moves, strict=True):
        states, actions = agent.run(truth, world.wrong, rng, world.max_steps)
        ends = rng.random(len(actions)) < 1 / world.moves_per_segment
        ends[-1:] = True
        segment = np.zeros(len(actions), dtype=np.int32)
        np.cumsum(ends[:-1], out=segment[1:])
        n_moves = np.bincount(segment, moves[actions], minlength=int(ends.sum())).astype(np.int64)
        x = np.log1p(n_moves)
        observed: dict[str, Floats] = {}
        for channel, theta in zip(world.channels, truth[1:], strict=True):
            own = world.kind.truth[channel.name]
            xi = own.intercept + own.slope * x + theta
            drawn = channel.record(channel.sample(xi, own.shape, rng))
            observed[channel.column] = (
                drawn * observed[channel.column] if channel.column in observed else drawn
            )
        person.states.append(states)
        person.actions.append(actions)
        person.step_segment.append(segment)
        person.n_moves.append(n_moves)
        person.observed.append(observed)
    return person


def _assemble(rows: list[_Person], world: _World, first: int) -> Cohort:
    truth, tasks, channels = np.array([row.truth for row in rows]), world.tasks, world.channels
    columns: dict[str, Any] = {"participant": [f"P{j + 1:07d}" for j in range(first, first + len(rows))]}
    columns |= true_ways(truth, world.kind, world.agent, world.habits)
    columns |= {f"true_{channel.name}": truth[:, k] for k, channel in enumerate(channels, start=1)}
    n_moves = np.concatenate([part for row in rows for part in row.n_moves])
    counts = [len(part) for row in rows for part in row.n_moves]
    starts = offsets_of(counts)
    number = np.arange(len(n_moves)) - np.repeat(starts[:-1], counts) + 1
    segments: dict[str, Any] = {
        "segment": pl.Series(number).cast(pl.String),
        "n_moves": n_moves.astype(np.int32),
    }
    for column in dict.fromkeys(channel.column for channel in channels):
        segments[column] = np.concatenate([part[column] for row in rows for part in row.observed])
        if column.startswith("n_"):
            segments[column] = segments[column].astype(np.int32)
    states = [part for row in rows for part in row.states]
    return Cohort(
        participants=pl.DataFrame(columns),
        episodes=pl.DataFrame(
            {
                "episode": [str(i + 1) for i in range(len(tasks.tasks))] * len(rows),
                "task": list(tasks.names) * len(rows),
            }
        ),
        episode_offsets=np.arange(len(rows) + 1) * len(tasks.tasks),
        step_offsets=offsets_of([len(part) - 1 for part in states]),
        state=np.concatenate([part[:-1] for part in states]),
        action=np.concatenate([part for row in rows for part in row.actions]),
        end_state=np.array([part[-1] for part in states], dtype=np.int32),
        segments=pl.DataFrame(segments),
        segment_offsets=starts,
        segment=np.concatenate([part for row in rows for part in row.step_segment]),
    )
