"""Layers of a task's states: parts that are never re-entered, each cut out as a problem of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import rows_of

DIRECT_WORK = 2e8
"""A layer is factorized if n states of bandwidth b would take at most this much work, n·b²."""

DIRECT_LIMIT = 100_000
"""In layers of more states than this the bandwidth is not even looked at."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def layer_states(task: TaskModel) -> list[Integers]:
    """Put the states that are not terminal into layers, each leading only to earlier ones.

    A layer is the union of all strongly connected parts whose longest way to the end passes
    equally many other parts.
    """
    n_states = task.n_states
    links = task.successor_offsets[task.offsets]
    graph = sparse.csr_array(
        (np.ones(len(task.successor)), task.successor, links), shape=(n_states, n_states), copy=True
    )
    graph.sum_duplicates()  # older releases of SciPy hang on repeated entries
    n_parts, part = csgraph.connected_components(graph, directed=True, connection="strong")
    tail = np.repeat(part, np.diff(links))
    head = part[task.successor]
    crossing = tail != head
    level = _longest_way_out(n_parts, tail[crossing], head[crossing])[part]
    live = np.flatnonzero(~task.terminal)
    live = live[np.argsort(level[live], kind="stable")]
    cuts = np.flatnonzero(np.diff(level[live])) + 1
    return [states for states in np.split(live, cuts) if len(states)]


def _longest_way_out(n_parts: int, tail: Integers, head: Integers) -> Integers:
    """Longest path from each part to one without a way out, in an acyclic graph of parts."""
    order = np.argsort(head, kind="stable")
    sources = tail[order]
    begins = np.searchsorted(head[order], np.arange(n_parts + 1))
    waiting = np.bincount(tail, minlength=n_parts)
    level = np.zeros(n_parts, dtype=np.int64)
    ready = np.flatnonzero(waiting == 0)
    depth = 0
    while len(ready):
        level[ready] = depth
        counts = begins[ready + 1] - begins[ready]
        rows = np.repeat(begins[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        reached, times = np.unique(sources[rows], return_counts=True)
        waiting[reached] -= times
        ready = reached[waiting[reached] == 0]
        depth += 1
    return level


@dataclass(frozen=True, slots=True)
class Layer:
    """The pairs of one layer, with everything that leads out of it already worked in.

    ``base`` is r + γ Σ p V(s') over successors outside the layer. Link i stays inside: it leads
    from pair ``pair[i]`` to state ``column[i]`` with weight γ p. The matrix I - γ P of a policy
    has a fixed pattern in CSC form (``indptr``, ``indices``), in which link i adds to entry
    ``slot[i]`` and the diagonal is at ``diagonal``.
    """

    base: Floats
    offsets: Integers
    pair: Integers
    weight: Floats
    column: Integers
    slot: Integers
    diagonal: Integers
    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]

    @property
    def is_acyclic(self) -> bool:
        """Whether nothing in the layer leads to the layer."""
        return len(self.pair) == 0

    @property
    def n_states(self) -> int:
        """The number of states in the layer."""
        return len(self.offsets) - 1

    @classmethod
    def cut(cls, task: TaskModel, states: Integers, v: Floats) -> Layer:
        """Cut a layer out of a task whose later layers are solved in ``v``."""
        n = len(states)
        pairs, offsets = rows_of(task.offsets, states)
        links, link_offsets = rows_of(task.successor_offsets, pairs)
        place = np.full(task.n_states, -1, dtype=np.int64)
        place[states] = np.arange(n)
        column = place[task.successor[links]]
        weight = task.gamma * task.probability[links]
        pair = np.repeat(np.arange(len(pairs)), np.diff(link_offsets))
        outside = column < 0
        future = weight[outside] * v[task.successor[links[outside]]]
        base = task.reward[pairs] + np.bincount(pair[outside], future, minlength=len(pairs))
        inside = ~outside & (weight > 0)
        pair, weight, column = pair[inside], weight[inside], column[inside]
        row = np.repeat(np.arange(n), np.diff(offsets))[pair]
        slot, diagonal, indptr, indices = _pattern(row, column, n)
        return cls(
            base=base,
            offsets=offsets,
            pair=pair,
            weight=weight,
            column=column,
            slot=slot,
            diagonal=diagonal,
            indptr=indptr,
            indices=indices,
        )

    def is_narrow(self) -> bool:
        """Whether the layer is so much like a corridor or a small map that factorizing it is cheap."""
        if self.n_states > DIRECT_LIMIT:
            return False
        pattern = sparse.csr_array(
            (np.ones(len(self.indices)), self.indices, self.indptr), shape=(self.n_states,) * 2
        )
        order = csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=False)
        place = np.empty(self.n_states, dtype=np.int64)
        place[order] = np.arange(self.n_states)
        width = np.abs(np.repeat(place, np.diff(self.indptr)) - place[self.indices]).max(initial=0)
        return float(width) ** 2 * self.n_states <= DIRECT_WORK

    def pair_values(self, v: Floats) -> Floats:
        """Q of the layer's pairs, given the value of its states."""
        inside = np.bincount(self.pair, self.weight * v[self.column], minlength=len(self.base))
        return np.asarray(self.base + inside)

    def system(self, policy: Floats) -> sparse.csc_array:
        """I - γ P under a policy."""
        data = np.bincount(self.slot, policy[self.pair] * -self.weight, minlength=len(self.indices))
        data[self.diagonal] = data[self.diagonal] + 1.0
        return sparse.csc_array((data, self.indices, self.indptr), shape=(self.n_states,) * 2)


def _pattern(
    row: Integers, column: Integers, n: int
) -> tuple[Integers, Integers, NDArray[np.int32], NDArray[np.int32]]:
    """The CSC pattern of links and the diagonal: where each link and each diagonal entry stands in it.

    ``row`` must not fall. Links that share a place are one entry. Takes no sorting, only a transposition, so
    that a layer of a million states and twenty million links is laid out in seconds.
    """
    count = np.bincount(row, minlength=n)
    link = np.arange(len(row)) + row  # each row's diagonal entry follows its links
    own = np.cumsum(count) + np.arange(n)
    columns = np.empty(len(row) + n, dtype=np.int64)
    columns[link], columns[own] = column, np.arange(n)
    rows = sparse.csr_array(
        (np.arange(len(columns)), columns, np.concatenate([[0], own + 1])), shape=(n, n)
    ).tocsc()
    new = np.ones(len(columns), dtype=np.bool_)
    new[1:] = rows.indices[1:] != rows.indices[:-1]
    new[rows.indptr[:-1]] = True  # no column is empty: each has its diagonal entry
    number = np.cumsum(new)
    slot = np.empty(len(columns), dtype=np.int64)
    slot[rows.data] = number - 1
    indptr = np.concatenate([[0], number])[rows.indptr]
    return slot[link], slot[own], indptr.astype(np.int32), rows.indices[new].astype(np.int32)
