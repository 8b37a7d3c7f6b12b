"""People who choose by any action model: cohorts with known parameters, and choices made again.

Everybody takes one step at a time together, so a thousand people cost little more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from fidm.cohort import Cohort, offsets_of
from fidm.errors import FitError, at_least
from fidm.model.action_models import NOTHING, ActionModel, World
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """Steps of many episodes, episode after episode, in stacked rows and pairs."""

    episode: Integers  # [n]: the number of the episode
    row: Integers  # [n]
    pair: Integers  # [n]
    to: Integers  # [n]: the row each step led to
    end: Integers  # [E]: the row after the last step
    n_episodes: int


def walk_together(
    world: World,
    model: ActionModel,
    values: Mapping[str, Floats],
    start: Integers,
    most: Integers,
    rng: np.random.Generator,
) -> Walks:
    """Let episodes run from their first rows, until they end or have had so many steps.

    ``values`` has an entry per episode, [E], as have ``start`` and ``most``.
    """
    n = len(start)
    row, action, came_from, memory = start.copy(), *np.full((3, n), NOTHING)
    open_to = np.diff(world.tasks.offsets) > 0
    running, taken, step = np.flatnonzero(open_to[row] & (most > 0)), [], 0
    while len(running):
        memory[running] = model.carry(world, row[running], memory[running], rng)
        seen = world.situations(row[running], action[running], came_from[running])
        size = np.diff(seen.offsets)
        given = {name: np.repeat(own[running], size) for name, own in values.items()}
        log_p = model.log_probabilities(world, seen, {**given, "memory": np.repeat(memory[running], size)})
        # The largest of log-probabilities plus Gumbel noise is a draw from the probabilities.
        noisy = log_p + rng.gumbel(size=len(log_p))
        best = np.repeat(np.maximum.reduceat(noisy, seen.offsets[:-1]), size)
        pair = seen.pair[noisy == best]
        came_from[running], action[running] = row[running], world.tasks.action[pair]
        memory[running[world.achieves[pair]]] = NOTHING
        row[running] = world.led(pair, rng)
        taken.append((running, came_from[running], pair, row[running]))
        step += 1
        running = running[open_to[row[running]] & (most[running] > step)]
    steps = [np.concatenate([np.zeros(0, dtype=np.int64), *(part[k] for part in taken)]) for k in range(4)]
    order = np.argsort(steps[0], kind="stable")
    episode, rows, pairs, to = (one[order] for one in steps)
    return Walks(episode, rows, pairs, to, row, n)


def simulate_choices(
    task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel],
    model: ActionModel,
    parameters: Mapping[str, float | tuple[float, float]] | pl.DataFrame,
    n: int,
    *,
    seed: int,
    episodes: int = 1,
    max_steps: int = 200,
) -> Cohort:
    """Let people with known parameters choose as an action model says.

    Parameters
    ----------
    task : TaskModel, or several
        Everybody does each of them ``episodes`` times.
    model : ActionModel
        How they choose.
    parameters : mapping, or DataFrame
        Of every parameter its value, or median and sd of people on the free scale; or a table with a column
        per parameter and a row per person.
    n : int
        How many people.
    seed : int
        The same seed gives the same people.
    episodes : int
        How often everybody does each task.
    max_steps : int
        An episode is broken off after so many actions.

    Returns
    -------
    Cohort
        Its participants have the true values as ``true_NAME``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.action_models import Stickiness
    >>> task = fidm.load_task("errands")
    >>> people = {"action_sensitivity": (20.0, 0.4), "repeat": (1.0, 0.5)}
    >>> fidm.simulate_choices(task, Stickiness(), people, 5, seed=1).participants.columns
    ['participant', 'true_action_sensitivity', 'true_repeat']
    """
    for name, value in (("n", n), ("episodes", episodes), ("max_steps", max_steps)):
        at_least(name, value, 1)
    tasks = TaskSet.of(task)
    world = World(tasks)
    rng = np.random.default_rng([seed, 4])
    true = _true_values(world, model, parameters, n, rng)
    first = np.array([one.start for one in tasks.tasks]) + tasks.state_base
    start = np.tile(np.repeat(first, episodes), n)
    owner = np.repeat(np.arange(n), len(first) * episodes)
    walks = walk_together(
        world,
        model,
        {name: own[owner] for name, own in true.items()},
        start,
        np.full(len(start), max_steps),
        rng,
    )
    base = np.tile(np.repeat(tasks.state_base, episodes), n)
    ids = [f"P{j + 1:07d}" for j in range(n)]
    return Cohort(
        participants=pl.DataFrame(
            {"participant": ids, **{f"true_{name}": own for name, own in true.items()}}
        ),
        episodes=pl.DataFrame(
            {
                "episode": [str(k + 1) for _ in range(n) for k in range(len(first) * episodes)],
                "task": [name for _ in range(n) for name in tasks.names for _ in range(episodes)],
            }
        ),
        episode_offsets=offsets_of(np.full(n, len(first) * episodes)),
        step_offsets=offsets_of(np.bincount(walks.episode, minlength=len(start))),
        state=(walks.row - base[walks.episode]).astype(np.int32),
        action=tasks.action[walks.pair].astype(np.int32),
        end_state=(walks.end - base).astype(np.int32),
        segments=pl.DataFrame(schema={"segment": pl.String, "n_moves": pl.Int32}),
        segment_offsets=np.zeros(len(start) + 1, dtype=np.int64),
    )


def _true_values(
    world: World,
    model: ActionModel,
    parameters: Mapping[str, float | tuple[float, float]] | pl.DataFrame,
    n: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Everybody's parameters, given or drawn, [n] each."""
    known = {one.name: one for one in model.parameters(world)}
    given = list(parameters.columns if isinstance(parameters, pl.DataFrame) else parameters)
    if sorted(given) != sorted(known):
        raise FitError(
            f"{model.name} has the parameters {', '.join(known) or 'none'}; "
            f"given: {', '.join(given) or 'none'}."
        )
    if isinstance(parameters, pl.DataFrame):
        if parameters.height != n:
            raise FitError(f"parameters has {parameters.height} rows for {n} people.")
        return {name: parameters[name].cast(pl.Float64).to_numpy() for name in known}
    found = {}
    for name, one in known.items():
        value = parameters[name]
        if isinstance(value, tuple):
            found[name] = np.asarray(one.value(one.free(value[0]) + value[1] * rng.standard_normal(n)))
        else:
            found[name] = np.full(n, float(value))
    return found
