"""Whether unexpected actions are where people went astray: the paper's table 1, for any cohort.

Within each person, the actions at which an anchor event happened are
compared with the others: the AUC is the chance that an event is more unexpected than another action, ties
half. The top-decile rate is the share of events among the person's most unexpected tenth of actions, ⌈n/10⌉
of them; actions tied at the edge share the last places evenly, so that no order of rows matters. All numbers
are means over the people who have both events and other actions; enrichment is the top-decile rate over the
base rate. Intervals come from drawing people again with replacement, and need at least ten people who count.

The paper averages the AUC over people but does not say whether it does so with rates and enrichment. They are
therefore also given pooled: in these every action of everybody counts the same.

Who heads for one target, passes it by and completes another next has, in hindsight, walked away from the
latter by perfectly sensible steps. Route divergence is therefore also given for the stretches (the way from
one completion to the next) on which no target was passed by; the paper does not make this distinction.

The same is done with the gap in Q alone, which needs no η. Both scores are rounded to 1e-9 first, so that
equal ones tie on every machine.

The two anchors are the paper's (section 4.3 and appendix C.3), told from the trace and the map alone; neither
knows η or Q:

- a **route divergence** is a movement after which the place of the next task completion of this episode is
  farther away, in steps over walkable cells, than before it. A completion is an action that completes a
  target for the first time, in whatever phase, or finishes the task; its place is where the person stood.
  Movements after the last completion have no such place and are left out;
- a **bypass** is a movement out of reach of a target of the active phase that is not yet bought and could
  have been bought there. Buying something else, or moving along the shelf, is none. A step in a state in
  which such a purchase is possible is an *opportunity*.

Actions the task leaves out, and steps in states that are not counted, have neither.

A task that was not drawn as a map but whose states have coordinates has route divergences. What ends the task
is its completion, where it leads is the place of that, and distances are the fewest actions in which one can
get there. It has no shelves, so there are no bypasses in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.cohort import Cohort
from fidm.errors import DataError, TaskError, at_least, count, few
from fidm.evidence.evidence import Evidence, step_keys
from fidm.record import Record
from fidm.tasks.behaviour import has_hidden
from fidm.tasks.grid import Grid, GridStates
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import Followed, TaskSet, follow
from fidm.types import Flags, Floats, Progress

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The anchors of every step; a distance is NaN where there is no place to be distant from."""

    is_move: Flags
    is_known: Flags
    completes: Flags
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    opportunity: Flags
    leaves: Flags
    has_targets: Flags  # whether the task was drawn as a map, with targets that can be passed by


def anchors(
    tasks: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel] | TaskSet, cohort: Cohort
) -> pl.DataFrame:
    """Say of every step whether it leads away from the next goal, and whether it passes a goal by.

    Parameters
    ----------
    tasks : TaskModel, several, or TaskSet
        Tasks that were drawn as maps, or whose states have coordinates.
    cohort : Cohort
        The people.

    Returns
    -------
    DataFrame [N]
        ``participant``, ``episode``, ``step``; ``is_move``; ``completes`` (whether it is a task completion);
        ``stretch`` (the way from one completion to the next, counted from 1); ``distance_before`` and
        ``distance_after`` to the next completion; ``route_divergence``, null where it cannot be said;
        ``opportunity`` and ``bypass``, null in states that are not counted and in tasks without a map.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.localization import anchors
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 3, seed=1)
    >>> anchors(task, cohort).height == cohort.n_steps
    True
    """
    stacked = tasks if isinstance(tasks, TaskSet) else TaskSet.of(tasks)
    followed = follow(stacked, cohort)
    for t in np.unique(followed.task).tolist():
        if t >= 0 and not stacked.tasks[t].has_places:
            raise TaskError(
                f"{stacked.tasks[t].name} was not drawn as a map, so nobody knows what is a detour in it or "
                "what is passed by. Only tasks with a map have such anchors. Detours can also be told in a "
                "task that was made with coordinates of its states."
            )
        if t >= 0 and has_hidden(stacked.tasks[t]):
            raise TaskError(
                f"{stacked.tasks[t].name} has hidden cells, so what is a detour in it depends on what "
                "somebody had seen. Only tasks whose map is known have such anchors."
            )
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    found = _find(stacked, cohort, followed, of_step)
    done = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.completes)])
    farther = found.after > found.before
    known = found.is_move & found.is_known & ~np.isnan(found.before)
    return pl.DataFrame(
        {
            **step_keys(cohort, of_step),
            "is_move": found.is_move,
            "completes": found.completes,
            "stretch": (done[:-1] - done[cohort.step_offsets[of_step]] + 1).astype(np.int32),
            "distance_before": pl.Series(found.before, nan_to_null=True),
            "distance_after": pl.Series(found.after, nan_to_null=True),
            "route_divergence": _nullable(farther, known),
            "opportunity": _nullable(found.opportunity, found.is_known & found.has_targets),
            "bypass": _nullable(found.is_move & found.leaves, found.is_known & found.has_targets),
        }
    )


def _nullable(values: Flags, known: Flags) -> pl.Series:
    return pl.Series(values).set(pl.Series(~known), None)


def _find(tasks: TaskSet, cohort: Cohort, followed: Followed, of_step: NDArray[np.int64]) -> _Steps:
    n = cohort.n_steps
    found = _Steps(
        is_move=np.zeros(n, np.bool_),
        is_known=np.zeros(n, np.bool_),
        completes=np.zeros(n, np.bool_),
        before=np.full(n, np.nan),
        after=np.full(n, np.nan),
        opportunity=np.zeros(n, np.bool_),
        leaves=np.zeros(n, np.bool_),
        has_targets=np.zeros(n, np.bool_),
    )
    task_of_step = followed.task[of_step]
    for t, task in enumerate(tasks.tasks):
        steps = np.flatnonzero((task_of_step == t) & (followed.pair >= 0))
        if not len(steps) or not task.has_places:
            continue
        pair = followed.pair[steps] - int(tasks.pair_base[t])
        state = followed.row[steps] - int(tasks.state_base[t])
        found.is_move[steps] = task.is_move[pair]
        found.is_known[steps] = task.counted[state]
        if task.grid is None:
            led_to = _followers(task, cohort, steps, of_step[steps], pair)
            _find_places(task, found, steps, of_step[steps], (state, pair, led_to))
            continue
        then = task.successor[task.successor_offsets[pair]]
        found.has_targets[steps] = True
        found.completes[steps] = _completions(task, task.grid, state, pair, then, of_step[steps])
        cell = state % task.grid.grid.n_cells
        way = np.minimum(task.action[pair], len(task.grid.grid.moves) - 1)
        after = np.where(task.is_move[pair], task.grid.grid.arrival[cell, way], cell)
        place = _next_place(after, found.completes[steps], of_step[steps])
        walks = np.flatnonzero(task.is_move[pair] & (place != NOWHERE))
        distance, column = _distances(task.grid.grid, place[walks])
        found.before[steps[walks]] = distance[column, cell[walks]]
        found.after[steps[walks]] = distance[column, after[walks]]
        within = _within_reach(task, task.grid)
        found.opportunity[steps] = within[state] != 0
        taken = np.where(
            task.goal[pair] >= 0, np.int64(1) << np.maximum(task.goal[pair], 0).astype(np.int64), 0
        )
        found.leaves[steps] = (within[state] & ~within[then] & ~taken) != 0
    return found


def _completions(
    task: TaskModel,
    states: GridStates,
    state: NDArray[np.int32],
    pair: NDArray[np.int32],
    then: NDArray[np.int32],
    episode: NDArray[np.int64],
) -> Flags:
    """Which steps complete something for the first time in their episode."""
    n_cells, end = states.grid.n_cells, states.end
    inside = (state < end) & (then < end)
    mode, later = np.where(inside, state, 0) // n_cells, np.where(inside, then, 0) // n_cells
    marks = inside & (states.progress[mode] != states.progress[later])
    return np.asarray(marks | _first_goals(task, pair, episode))


def _first_goals(task: TaskModel, pair: NDArray[np.int32], episode: NDArray[np.int64]) -> Flags:
    """Which steps achieve a goal for the first time in their episode."""
    goal = task.goal[pair]
    achieves = np.flatnonzero(goal >= 0)
    key = episode[achieves] * len(task.goals) + goal[achieves]
    first = np.zeros(len(pair), np.bool_)
    first[achieves[np.unique(key, return_index=True)[1]]] = True
    return first


def _followers(
    task: TaskModel,
    cohort: Cohort,
    steps: NDArray[np.int64],
    episode: NDArray[np.int64],
    pair: NDArray[np.int32],
) -> NDArray[np.int64]:
    """The state each step led to: as recorded, else where it surely leads; -1 where nobody knows."""
    is_last = steps + 1 == cohort.step_offsets[episode + 1]
    recorded = cohort.state[np.minimum(steps + 1, cohort.n_steps - 1)]
    then = np.where(is_last, cohort.end_state[episode], recorded).astype(np.int64)
    first = task.successor_offsets[pair]
    sure = (then < 0) & (task.successor_offsets[pair + 1] - first == 1)
    return np.where(sure, task.successor[first], then)


def _find_places(
    task: TaskModel,
    found: _Steps,
    steps: NDArray[np.int64],
    episode: NDArray[np.int64],
    way: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]],
) -> None:
    """Fill in completions and distances of steps in a task whose states have coordinates."""
    state, pair, then = way
    ends = task.terminal
    if task.horizon is not None:
        ends[-1] = False  # time has run out: nobody heads for that
    place, is_move = task.place, task.is_move[pair]
    found.completes[steps] = ((then >= 0) & ends[then]) | _first_goals(task, pair, episode)
    reached = np.where(is_move & (then >= 0) & (place[then] >= 0), place[then], place[state])
    heads_for = _next_place(reached, found.completes[steps], episode)
    walks = np.flatnonzero(is_move & (heads_for != NOWHERE) & (then >= 0))
    onward = task.handover[task.successor]
    origin = np.repeat(task.pair_state, np.diff(task.successor_offsets))
    for goal in np.unique(heads_for[walks]).tolist():
        own = walks[heads_for[walks] == goal]
        distance = _actions_to(np.flatnonzero(place == goal), origin, onward, task.n_states)
        found.before[steps[own]] = distance[state[own]]
        found.after[steps[own]] = distance[then[own]]


def _actions_to(
    states: NDArray[np.int64], origin: NDArray[np.int32], onward: NDArray[np.int32], n_states: int
) -> NDArray[np.float64]:
    """The fewest actions in which one can get from each state to any of some states, [S]."""
    ahead = np.concatenate([onward, np.full(len(states), n_states)])  # one more state stands for all of them
    behind = np.concatenate([origin, states])
    back = sparse.csr_array((np.ones(len(ahead)), (ahead, behind)), shape=(n_states + 1, n_states + 1))
    return np.asarray(csgraph.shortest_path(back, unweighted=True, indices=n_states))[:-1] - 1.0


def _next_place(cell: NDArray[np.int32], completes: Flags, episode: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cell of the next completion of the same episode, at or after each step; -1 where there is none.

    ``cell`` is where each step led to: what is completed by an action stays where it is.
    """
    done = np.flatnonzero(completes)
    place = np.full(len(cell), NOWHERE, dtype=np.int64)
    if not len(done):
        return place
    following = np.searchsorted(done, np.arange(len(cell)))
    some = np.flatnonzero(following < len(done))
    following = done[following[some]]
    same = episode[following] == episode[some]
    place[some[same]] = cell[following[same]]
    return place


def _distances(grid: Grid, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The fewest moves to each different place from every cell, and the line of each place in it."""
    different, line = np.unique(places, return_inverse=True)
    cell, way = np.nonzero(grid.neighbour >= 0)
    size = grid.n_cells
    links = sparse.csr_array((np.ones(len(cell)), (grid.neighbour[cell, way], cell)), shape=(size, size))
    if not len(different):
        return np.zeros((0, size)), line
    return np.asarray(csgraph.shortest_path(links, unweighted=True, indices=different)), line


def _within_reach(task: TaskModel, states: GridStates) -> NDArray[np.int64]:
    """The unfinished targets of the active phase that can be bought in each state, one bit each, [S]."""
    within = np.zeros(task.n_states, dtype=np.int64)
    buys = np.flatnonzero((task.goal >= 0) & (task.goal < len(states.spec.targets)))
    np.bitwise_or.at(within, task.pair_state[buys], np.int64(1) << task.goal[buys].astype(np.int64))
    return within


ROUTE, ROUTE_CLEAR = "route_divergence", "route_divergence_clear"
BYPASS, BYPASS_OF_MOVES = "bypass", "bypass_of_moves"
DENOMINATORS: Mapping[str, str] = {
    ROUTE: "movements with a next completion",
    ROUTE_CLEAR: "those on stretches without a bypass",
    BYPASS: "opportunity steps",
    BYPASS_OF_MOVES: "all movements",
}
"""The anchors, and the steps each is looked for among."""

SAID: Mapping[str, str] = {
    ROUTE: "Turned away from the next goal",
    ROUTE_CLEAR: "Turned away from the next goal",
    BYPASS: "Passed a target by",
    BYPASS_OF_MOVES: "Passed a target by",
}
"""The anchors in words."""

SCORES = ("unexpectedness", "q_gap")
"""What is compared: the unexpectedness, and the control that needs no η."""

TOP = 0.1
CIRCULAR = (
    "The anchors are found from the same distances on the map as Q, so part of the agreement is there by "
    "construction. q_gap, which needs no η, is the control to compare with."
)
NUMBERS = ("auc", "top_rate", "baseline", "enrichment")

FEWEST, FEWEST_JUDGED = 10, 5
"""An interval from drawing people again, and any number at all, needs at least so many people who count."""


@dataclass(frozen=True, slots=True, eq=False)
class Localization:
    """How well unexpectedness points at detours and at shelves passed by.

    Parameters
    ----------
    table : DataFrame
        A row per anchor (see :data:`DENOMINATORS`) and score: ``auc``, ``top_rate``, ``baseline``,
        ``enrichment`` (null with fewer than five people who count), each with ``_low`` and ``_high`` (null
        with fewer than ten);
        ``n_people`` (who have both kinds of actions, and whom the numbers are about), ``n_people_all`` (who
        have any action of the denominator), ``n_events`` and ``n_steps`` of the former; and
        ``pooled_top_rate``, ``pooled_baseline`` and ``pooled_enrichment``, in which every action of all of
        the latter counts the same.
    people : DataFrame
        The same per person: ``n_steps``, ``n_events``, ``auc``, ``top_rate``, ``baseline``.
    notes : tuple of str
        What is to be said of it.
    record : Record
        How it came about.
    """

    table: pl.DataFrame
    people: pl.DataFrame
    notes: tuple[str, ...]
    record: Record

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The table, and the one per person."""
        return {"": self.table, "people": self.people}

    def row(self, anchor: str, score: str = "unexpectedness") -> dict[str, Any]:
        """Return the numbers of one anchor, such as ``"route_divergence"``."""
        found = self.table.filter((pl.col("anchor") == anchor) & (pl.col("score") == score))
        if not found.height:
            raise DataError(f"There is no anchor {anchor!r} with the score {score!r}.")
        return found.row(0, named=True)

    @property
    def anchors(self) -> Mapping[str, str]:
        """The anchors that were looked for, and among which steps; without a map there are no bypasses."""
        there = set(self.table["anchor"])
        return {anchor: among for anchor, among in DENOMINATORS.items() if anchor in there}

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        return {"anchors": self.table, "notes": self.notes}

    def sentences(self) -> tuple[str, ...]:
        """Return how well unexpectedness points at each anchor, in a sentence each."""
        said = []
        for anchor, among in self.anchors.items():
            row = self.row(anchor)
            what = f"{SAID[anchor]}, among {among}"
            if row["auc"] is None:
                who = _have(row["n_people"]) if row["n_people"] else "nobody has"
                few = ": too few to judge" if row["n_people"] else ""
                said.append(f"{what}: {who} both such events and other actions{few}.")
                continue
            low, high = row["auc_low"], row["auc_high"]
            interval = "" if low is None else f" [{low:.3f}, {high:.3f}]"
            said.append(
                f"{what}: AUC {row['auc']:.3f}{interval} within a person; {row['enrichment']:.2f} times as "
                f"frequent in the most unexpected tenth ("
                f"{row['n_people']:,} of {row['n_people_all']:,} people)."
            )
        return tuple(said)

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def localize(
    evidence: Evidence,
    cohort: Cohort,
    *,
    seed: int = 1,
    bootstrap: int = 2_000,
    level: float = 0.95,
    on_progress: Progress | None = None,
) -> Localization:
    """Say how well the unexpectedness of actions points at detours and at shelves passed by.

    Parameters
    ----------
    evidence : Evidence
        What :func:`find_evidence` found about these people.
    cohort : Cohort
        The people, on tasks with a map or with coordinates.
    seed : int
        The same seed gives the same intervals.
    bootstrap : int
        How often people are drawn again for the intervals.
    level : float
        The level of the intervals.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.evidence import find_evidence
    >>> from fidm.evidence.localization import localize
    >>> task = fidm.load_task("grocery_small")
    >>> cohort = fidm.simulate_cohort(task, 30, seed=1)
    >>> found = localize(find_evidence(fidm.Model(task).fit(cohort), cohort), cohort, bootstrap=100)
    >>> found.row("route_divergence")["auc"] > 0.5
    True
    """
    check_settings(seed=seed, bootstrap=bootstrap, level=level)
    if evidence.actions.height != cohort.n_steps or not evidence.participants.equals(cohort.ids):
        raise DataError("The evidence is not about these people. Make it with find_evidence(fit, cohort).")
    steps = evidence.actions.select("counts", *SCORES).with_columns(
        anchors(evidence.tasks, cohort).select(
            "stretch", "is_move", "route_divergence", "opportunity", "bypass"
        )
    )
    counts = steps["counts"].to_numpy() & steps["unexpectedness"].is_not_null().to_numpy()
    if not (counts & steps["is_move"].to_numpy()).any():
        raise DataError("No movement of anybody counts, so there is nothing to localize.")
    edges = cohort.step_offsets[cohort.episode_offsets]
    person = np.repeat(np.arange(len(cohort)), np.diff(edges))
    bypass = steps["bypass"].fill_null(value=False).to_numpy()
    away = steps["route_divergence"].fill_null(value=False).to_numpy()
    directed = counts & steps["route_divergence"].is_not_null().to_numpy()
    has_targets = steps["bypass"].is_not_null().to_numpy()
    cases: dict[str, tuple[Flags, Flags]] = {
        ROUTE: (directed, away),
        ROUTE_CLEAR: (directed & ~_on_stretch(cohort, steps["stretch"].to_numpy(), bypass), away),
        BYPASS: (counts & steps["opportunity"].fill_null(value=False).to_numpy(), bypass),
        BYPASS_OF_MOVES: (counts & steps["is_move"].to_numpy() & has_targets, bypass),
    }
    if not has_targets.any():
        cases = {ROUTE: cases[ROUTE]}
    if not any(among.any() for among, _ in cases.values()):
        raise DataError("Nobody reached an end of these tasks, so there is nothing to turn away from.")
    if not any((among & event).any() for among, event in cases.values()):
        raise DataError(
            "Nobody ever turned away from the next goal or passed a target by, so there is nothing to "
            "localize."
        )
    rows: list[dict[str, Any]] = []
    people: list[pl.DataFrame] = []
    for number, (anchor, (among, event)) in enumerate(cases.items()):
        for score in SCORES:
            if on_progress:
                on_progress("localizing", len(rows), len(cases) * len(SCORES))
            values = np.round(steps[score].fill_null(0.0).to_numpy(), 9)
            table = _people(person[among], values[among], event[among], cohort)
            named = {"anchor": anchor, "denominator": DENOMINATORS[anchor], "score": score}
            rows.append(named | _numbers(table, [seed, number], bootstrap, level))
            people.append(table.select(*(pl.lit(text).alias(key) for key, text in named.items()), pl.all()))
    if on_progress:
        on_progress("localizing", len(rows), len(rows))
    table = pl.DataFrame(rows, schema=table_schema())
    settings = {**evidence.record.settings, "bootstrap": bootstrap, "level": level, "top": TOP}
    return Localization(
        table=table,
        people=pl.concat(people).select("participant", pl.exclude("participant")),
        notes=(*_notes(table), *_without_map(evidence.tasks, cohort)),
        record=Record.of("localize", evidence.tasks.tasks, seed=seed, settings=settings, cohort=cohort),
    )


def _on_stretch(cohort: Cohort, stretch: NDArray[np.int32], event: Flags) -> Flags:
    """Whether an event happened anywhere on the stretch a step belongs to, [N]."""
    episode = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    number = np.append(0, np.cumsum((np.diff(episode) != 0) | (np.diff(stretch) != 0)))[: len(stretch)]
    return np.asarray(np.bincount(number, event, minlength=1)[number] > 0)


def check_settings(*, seed: int, bootstrap: int, level: float) -> None:
    """Raise if a setting of :func:`localize` cannot be, and say which."""
    at_least("seed", seed, 0)
    at_least("bootstrap", bootstrap, 1)
    if not 0 < level < 1:
        hint = f" Write {level / 100:g} for {level:g} %." if 1 < level < 100 else ""
        raise DataError(f"level is {level:g}; it must lie between 0 and 1.{hint}")


def _people(person: NDArray[np.int64], score: Floats, event: Flags, cohort: Cohort) -> pl.DataFrame:
    """Everybody's own numbers; null where a person does not have both kinds of actions."""
    order = np.lexsort((-score, person))
    sizes = np.bincount(person, minlength=len(cohort))
    some = np.flatnonzero(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes[some])]).astype(np.int64)
    n_events, auc, top = (np.zeros(len(some)) for _ in range(3))
    _rank(offsets, score[order], event[order], TOP, n_events, auc, top)
    n = sizes[some].astype(np.int64)
    return pl.DataFrame(
        {
            "participant": cohort.ids.gather(some),
            "n_steps": n,
            "n_events": n_events.astype(np.int64),
            "auc": pl.Series(auc, nan_to_null=True),
            "top_rate": top,
            "baseline": n_events / np.maximum(n, 1),
        }
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _rank(offsets, score, event, top, n_events, auc, top_rate):  # type: ignore[no-untyped-def]
    """Fill in each person's events, AUC and top rate; scores come person by person, the largest first."""
    for j in range(len(offsets) - 1):
        first = offsets[j]
        last = offsets[j + 1]
        n = last - first
        places = int(np.ceil(top * n - 1e-9))
        events = 0
        wins = 0.0  # pairs in which the event has the larger score, ties half
        hits = 0.0
        i = first
        while i < last:
            k = i
            tied_events = 0
            while k < last and score[k] == score[i]:
                tied_events += event[k]
                k += 1
            others = (k - i) - tied_events
            wins += others * (events + 0.5 * tied_events)
            free = min(max(places - (i - first), 0), k - i)
            hits += tied_events * free / (k - i)
            events += tied_events
            i = k
        n_events[j] = events
        auc[j] = wins / (events * (n - events)) if 0 < events < n else np.nan
        top_rate[j] = hits / places


def _numbers(people: pl.DataFrame, stream: list[int], bootstrap: int, level: float) -> dict[str, Any]:
    """The means over those who have both kinds of actions, with intervals."""
    both = people.filter(pl.col("auc").is_not_null())
    values = both.select("auc", "top_rate", "baseline").to_numpy()
    n = len(values)
    found: dict[str, Any] = {"n_people": n, "n_people_all": people.height}
    found |= {"n_events": int(both["n_events"].sum()), "n_steps": int(both["n_steps"].sum())}
    if n < FEWEST_JUDGED:
        return found
    places = np.ceil(TOP * people["n_steps"].to_numpy() - 1e-9)
    total, events = int(people["n_steps"].sum()), int(people["n_events"].sum())
    pooled = float((people["top_rate"].to_numpy() * places).sum() / places.sum()) if total else math.nan
    base = events / total if total else math.nan
    found |= {"pooled_top_rate": pooled, "pooled_baseline": base}
    found["pooled_enrichment"] = pooled / base if events else math.nan
    centre = values.mean(axis=0)
    found |= dict(zip(NUMBERS, (*centre.tolist(), centre[1] / centre[2]), strict=True))
    if n < FEWEST:
        return found
    means = np.empty((bootstrap, 3))
    for b in range(bootstrap):
        means[b] = values[np.random.default_rng([*stream, b]).integers(0, n, n)].mean(axis=0)
    drawn = np.column_stack([means, means[:, 1] / means[:, 2]])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    for k, name in enumerate(NUMBERS):
        found[f"{name}_low"], found[f"{name}_high"] = float(low[k]), float(high[k])
    return found


def table_schema() -> dict[str, Any]:
    """Return the columns of :attr:`Localization.table`."""
    columns: dict[str, Any] = dict.fromkeys(("anchor", "denominator", "score"), pl.String)
    for name in NUMBERS:
        columns |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Float64)
    columns |= dict.fromkeys(("n_people", "n_people_all", "n_events", "n_steps"), pl.Int64)
    return columns | dict.fromkeys(("pooled_top_rate", "pooled_baseline", "pooled_enrichment"), pl.Float64)


def _notes(table: pl.DataFrame) -> tuple[str, ...]:
    notes = [CIRCULAR]
    for row in table.filter(pl.col("score") == SCORES[0]).iter_rows(named=True):
        what = f"{row['anchor']} among {row['denominator']}"
        n, of = row["n_people"], count(row["n_people_all"], "person", "people")
        if not n:
            notes.append(f"{what}: nobody has both such events and other actions, so nothing can be said.")
        elif n < FEWEST_JUDGED:
            notes.append(f"{what}: {n:,} of {of} {'has' if n == 1 else 'have'} both kinds: too few to judge.")
        else:
            few = ": too few people for an interval" if n < FEWEST else ""
            notes.append(f"{what}: {n:,} of {of} have both kinds and are counted{few}.")
    return tuple(notes)


def _without_map(tasks: TaskSet, cohort: Cohort) -> list[str]:
    """What is to be said of tasks that were not drawn as maps."""
    used = np.unique(tasks.task_of(cohort)).tolist()
    plain = [tasks.names[t] for t in used if t >= 0 and tasks.tasks[t].grid is None]
    if not plain:
        return []
    was = "was" if len(plain) == 1 else "were"
    return [
        f"{few(plain)} {was} not drawn as a map, so no target can be passed by there: what is said of "
        "bypasses leaves them out. Distances in them are the fewest actions to where the next end of a task "
        "was reached."
    ]


def _have(n: int) -> str:
    return f"{count(n, 'person', 'people')} {'has' if n == 1 else 'have'}"
