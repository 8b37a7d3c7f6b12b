"""Cells whose content nobody knows at the start: what has been seen of them is part of the state.

Each hidden cell is floor with a probability of its own, independently of the others, and else a wall. Of each
one knows nothing, that it is a wall, that it is open, or, where entering it pays once, that it was entered.
A *level* is one combination of these. The task is laid out as if every hidden cell were floor. Each level is
a copy of that in which movements into walls are blocked, and movements that show something lead to several
levels. Only states that can be reached have legal actions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.errors import TaskError
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Integers, read_only

if TYPE_CHECKING:
    from fidm.tasks.grid import Grid, GridStates
    from fidm.tasks.spec import TaskSpec

MOST_STATES = 5_000_000
"""More states than this of a task with hidden cells are refused; this many take gigabytes and minutes."""

UNSEEN, WALL, OPEN, ENTERED = range(4)
"""What one may know of a hidden cell."""

LETTERS = "?#.+"
"""The same as letters."""

WORDS = {"?": "unknown", "#": "a wall", ".": "open", "+": "open and entered"}


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """The hidden cells of a map, in reading order, and every level of what may be known of them."""

    cells: Integers  # [n]: their numbers among the walkable cells
    number: Integers  # [C]: which hidden cell each walkable cell is, or -1
    chance: Floats  # [n]: how probable it is that each is open
    reward: Floats  # [n]: what entering it for the first time pays besides the step
    is_shown: NDArray[np.bool_]  # [C, n]: which are seen on arriving in each cell
    is_tried: bool  # whether a cell is seen by trying to enter it, not from beside it
    known: NDArray[np.int8]  # [L, n]: what is known of each in each level; nothing in the first
    weight: Integers  # [n]: by how much the number of a level grows with what is known of each

    @classmethod
    def of(cls, spec: TaskSpec, grid: Grid, n_modes: int) -> Hidden:
        """Find the hidden cells of a map, and raise if its states are too many."""
        symbol = grid.symbol[grid.row, grid.column]
        cells = np.flatnonzero(np.isin(symbol, list(spec.hidden)))
        own = [spec.hidden[str(symbol[cell])] for cell in cells]
        is_tried = spec.rules.reveal == "on_entering"
        kinds = [3 if is_tried or one.reward is None else 4 for one in own]
        n_states = math.prod(kinds) * n_modes * grid.n_cells + 1
        if n_states > MOST_STATES:
            raise TaskError(
                f"{len(cells)} hidden cells make {math.prod(kinds):,} combinations of what is known "
                f"of them, so the task has {n_states:,} states; {MOST_STATES:,} can be used. Use fewer "
                "hidden cells (up to eight as a rule), a smaller map, or fewer targets.",
                source=spec.name,
            )
        number = np.full(grid.n_cells, -1, dtype=np.int64)
        number[cells] = np.arange(len(cells))
        away = np.abs(np.subtract.outer(grid.row, grid.row[cells]))
        away += np.abs(np.subtract.outer(grid.column, grid.column[cells]))
        known = np.array(list(product(*map(range, kinds))), dtype=np.int8).reshape(math.prod(kinds), -1)
        return cls(
            cells=read_only(cells),
            number=read_only(number),
            chance=read_only(np.array([one.open for one in own])),
            reward=read_only(np.array([one.reward or 0.0 for one in own])),
            is_shown=read_only(np.zeros_like(away, dtype=np.bool_) if is_tried else away == 1),
            is_tried=is_tried,
            known=read_only(known),
            weight=read_only(
                np.array([math.prod(kinds[i + 1 :]) for i in range(len(cells))], dtype=np.int64)
            ),
        )

    def level(self, known: str, name: str) -> int:
        """Return the number of a level, given a letter per hidden cell (:data:`LETTERS`)."""
        digits = np.array([LETTERS.find(letter) for letter in known], dtype=np.int64)
        if len(digits) == len(self.cells):
            found = np.flatnonzero((self.known == digits).all(axis=1))
            if len(found):
                return int(found[0])
        raise TaskError(
            f"{name} has {len(self.cells)} hidden cells; known is {known!r}. It needs one letter for each, "
            "in reading order: '?' for unknown, '#' for a wall, '.' for open, and, where entering a cell "
            "that was seen before pays once, '+' for entered."
        )


class _Kind(NamedTuple):
    """What a movement has to do with hidden cells."""

    entered: int  # the hidden cell it leads into, or -1
    shown: tuple[int, ...]  # those one sees after it


class _Case(NamedTuple):
    """What movements of one kind do where the same is known of the cells they have to do with."""

    is_bump: bool
    reward: float  # what is paid besides, as expected
    # By how much the number of the level grows, how probable that is, and whether one stays where one is.
    outcomes: tuple[tuple[int, float, bool], ...]


class _Laid(NamedTuple):
    """The pairs of all levels, in no order, and what they lead to."""

    state: Integers
    like: Integers  # the pair each is a copy of
    reward: Floats
    extra: Floats  # as ``move_extra`` of a task
    # The pair each link belongs to, the state it leads to, and how probable that is.
    pair: Integers
    successor: Integers
    probability: Floats


def with_hidden(task: TaskModel, hidden: Hidden) -> TaskModel:
    """Return a task with hidden cells, given the one in which all of them are floor."""
    states = task.grid
    assert states is not None  # noqa: S101 - hidden cells are drawn
    laid = _lay_levels(task, states, hidden)
    size, n_levels = task.n_states - 1, len(hidden.known)
    handover = np.arange(n_levels)[:, None] * size + task.handover[:size]
    handover = np.append(handover.reshape(-1), n_levels * size)
    kept = np.flatnonzero(_reached(task.starts, laid.state[laid.pair], laid.successor, handover)[laid.state])
    order = kept[np.lexsort((task.action[laid.like[kept]], laid.state[kept]))]
    place = np.full(len(laid.state), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    link = np.flatnonzero(place[laid.pair] >= 0)
    link = link[np.lexsort((laid.successor[link], place[laid.pair[link]]))]
    like, of_state = laid.like[order], laid.state[order]
    has_extra = task.move_extra is not None or bool(laid.extra.any())
    found = replace(
        task,
        offsets=np.searchsorted(of_state, np.arange(n_levels * size + 2)).astype(np.int64),
        action=task.action[like],
        reward=laid.reward[order],
        successor_offsets=np.searchsorted(place[laid.pair[link]], np.arange(len(order) + 1)).astype(np.int64),
        successor=laid.successor[link].astype(np.int32),
        probability=laid.probability[link],
        goal=task.goal[like],
        is_move=task.is_move[like],
        counted=np.append(np.tile(task.counted[:size], n_levels), True),
        handover=handover.astype(np.int32),
        grid=replace(
            states,
            progress=np.tile(states.progress, n_levels),
            phase=np.tile(states.phase, n_levels),
            hidden=hidden,
        ),
        move_extra=laid.extra[order] if has_extra else None,
    )
    _refuse_shut_in(found)
    return found


def _lay_levels(task: TaskModel, states: GridStates, hidden: Hidden) -> _Laid:
    """Copy the pairs of a task for every level of what is known."""
    pay = states.spec.rewards
    bump, bump_extra = (pay.move, 0.0) if pay.bump is None else (pay.bump, np.nan)
    extra = np.zeros(task.n_pairs) if task.move_extra is None else task.move_extra
    size, end = task.n_states - 1, (task.n_states - 1) * len(hidden.known)
    tail, head = task.pair_state.astype(np.int64), task.successor.astype(np.int64)
    stay = head - head % states.grid.n_cells + tail % states.grid.n_cells
    pairs, links, first = [], [], 0
    for kind, rows in _kinds(task, hidden):
        for known, case in _cases(kind, hidden, bumps=states.grid.bumps):
            is_so = (hidden.known[:, list(known)] == list(known.values())).all(axis=1)
            level = np.flatnonzero(is_so)[:, None]
            shape = (len(level), len(rows))
            paid = np.full(len(rows), bump) if case.is_bump else task.reward[rows] + case.reward
            besides = np.full(len(rows), bump_extra) if case.is_bump else extra[rows] + case.reward
            made = (level * size + tail[rows], rows, paid, besides)
            pairs.append([np.broadcast_to(column, shape).reshape(-1) for column in made])
            number = np.arange(first, first + level.size * len(rows))
            first += len(number)
            for change, probability, stays in case.outcomes:
                there = stay[rows] if stays else head[rows]
                to = np.where(there == size, end, (level + change) * size + there)
                links.append([number, to.reshape(-1), np.full(len(number), probability)])
    return _Laid(*(np.concatenate(part) for table in (pairs, links) for part in zip(*table, strict=True)))


def _kinds(task: TaskModel, hidden: Hidden) -> Iterator[tuple[_Kind, Integers]]:
    """The pairs of a task, by what they have to do with hidden cells."""
    size, end = len(hidden.number), task.n_states - 1
    here, there = task.pair_state % size, task.successor % size
    moved = task.is_move & (task.successor < end) & (here != there)
    entered = np.where(moved, hidden.number[there], -1)
    shown = np.where(moved[:, None], hidden.is_shown[there], False)
    kinds, kind = np.unique(np.column_stack([entered, shown]), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    for i, (into, *seen) in enumerate(kinds.tolist()):
        yield _Kind(into, tuple(np.flatnonzero(seen).tolist())), np.flatnonzero(kind == i)


def _cases(kind: _Kind, hidden: Hidden, *, bumps: bool) -> Iterator[tuple[dict[int, int], _Case]]:
    """What movements of a kind do, by what is known of the cells they have to do with, where legal."""
    about = sorted({*kind.shown, *([kind.entered] if kind.entered >= 0 else [])})
    for digits in product(*(range(int(hidden.known[:, i].max()) + 1) for i in about)):
        known = dict(zip(about, digits, strict=True))
        before = known.get(kind.entered, -1)
        if before == WALL:
            if bumps:
                yield known, _Case(True, 0.0, ((0, 1.0, True),))
        elif before != UNSEEN or hidden.is_tried:
            yield known, _case(kind, hidden, known)


def _case(kind: _Kind, hidden: Hidden, known: dict[int, int]) -> _Case:
    """What a movement does that leads somewhere, or tries to."""
    into = kind.entered
    looks = [i for i in kind.shown if known[i] == UNSEEN]
    reward, change = 0.0, 0
    if known.get(into) == UNSEEN:
        looks.append(into)
        reward = float(hidden.chance[into] * hidden.reward[into])
    elif known.get(into) == OPEN and hidden.known[:, into].max() == ENTERED:
        reward, change = float(hidden.reward[into]), int(hidden.weight[into])
    outcomes = []
    for seen in product((OPEN, WALL), repeat=len(looks)):
        found = dict(zip(looks, seen, strict=True))
        chances = (hidden.chance[i] if what == OPEN else 1.0 - hidden.chance[i] for i, what in found.items())
        grown = change + sum(int(what * hidden.weight[i]) for i, what in found.items())
        outcomes.append((grown, float(math.prod(chances)), found.get(into) == WALL))
    return _Case(False, reward, tuple(outcomes))


def _reached(
    starts: tuple[int, ...], tail: Integers, head: Integers, handover: Integers
) -> NDArray[np.bool_]:
    """Which states acting can reach, or is expected to reach, from the starts."""
    size = len(handover)
    origin = size  # leads to every start
    tail = np.concatenate([tail, np.arange(size), np.full(len(starts), origin)])
    head = np.concatenate([head, handover, np.array(starts)])
    graph = sparse.csr_array((np.ones(len(tail)), (tail, head)), shape=(size + 1, size + 1))
    reached = np.zeros(size + 1, dtype=np.bool_)
    reached[csgraph.breadth_first_order(graph, origin, return_predecessors=False)] = True
    return reached[:-1]


def _refuse_shut_in(task: TaskModel) -> None:
    """Raise if somebody can get where nothing is legal, because all ways on turned out to be walls."""
    reached = np.zeros(task.n_states, dtype=np.bool_)
    reached[[*task.starts, *task.handover[task.successor].tolist()]] = True
    stuck = np.flatnonzero(task.terminal & reached)
    stuck = stuck[stuck != task.n_states - 1]
    if len(stuck):
        raise TaskError(
            f"nothing would be legal in {task.describe(int(stuck[0]))}: every way on may be a wall. Draw a "
            'way that is not hidden, or set rules.bumps = "stay".',
            source=task.name,
        )
