r"""Soft Bellman values, exactly and fast: what every action of a task is worth.

The shared yardstick is the solution of (paper, equation 4)

.. math::

    Q(s,a) = r(s,a) + \gamma \sum_{s'} T(s' \mid s,a)\, V(s'), \qquad
    V(s)   = \tau \log \sum_{a' \in A(s)} \exp\bigl(Q(s,a') / \tau\bigr),

with V = 0 in terminal states. ``normaliser="mean"`` divides the sum by the number of legal actions
(log-mean-exp), ``"max"`` takes the best action instead.

How it is solved. Progress in a task only grows, so its graph of states falls into strongly
connected parts that are never re-entered. They are put into *layers*, each leading only to layers
solved before it. A layer without a cycle (a finite horizon has no other) is backed up once. In any
other, Newton's method solves F(v) = T(v) - v = 0, where T is the Bellman backup above: with π the
policy softmax(Q/τ),

.. math:: (I - \gamma P_\pi)\, \delta = T(v) - v, \qquad v \leftarrow v + \delta.

T is monotone and convex, so this is soft policy iteration: from its first step on it rises to the
solution, never slower than plain iteration, and its last steps converge quadratically. A first guess
saves steps: a few plain backups, or, in large layers, the values of walking straight out. The linear
system is solved by sparse LU where the layer is narrow (after a Cuthill-McKee ordering its n states have
a small bandwidth, as corridors and ordinary maps have) or nothing is left to chance (``"max"``). In wide
or very large layers it is solved by BiCGSTAB, whose memory grows with the number of transitions only; if
that does not converge, as happens with γ very near 1, by LU after all.

Stopping rule. Each layer stops at ``max |T(v) - v| <= 1e-10 (1 - γ)``, which bounds the error of its
values by 1e-10, or at the rounding error of its largest value where that is larger. The residual is then
measured anew over all states together; a task that misses 1e-10 raises an error rather than returning
values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from fidm.errors import TaskError
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import rows_at
from fidm.types import Floats, Integers, Normaliser, Values

DIRECT_WORK = 2e8
"""A layer is factorized if n states of bandwidth b would take at most this much work, n·b²."""

DIRECT_LIMIT = 100_000
"""In layers of more states than this the bandwidth is not even looked at."""


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
        pairs, offsets = rows_at(task.offsets, states)
        links, link_offsets = rows_at(task.successor_offsets, pairs)
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
        return cls(base, offsets, pair, weight, column, *_pattern(row, column, n))

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


TOLERANCE = 1e-10
"""The residual every solution meets."""

ITERATIONS = 500
"""How many rounds the iterative linear solver gets before a layer is factorized after all."""

MAX_STEPS = 500
"""Newton steps allowed in one layer before giving up; ten are usually enough."""

SWEEP_LIMIT = 4_000
"""Layers of up to so many states get their first guess from a few plain backups."""

SWEEPS = 16
"""How many plain backups that is at least; more, as long as each takes a good part of the change away."""


def solve(task: TaskModel, normaliser: Normaliser | None = None) -> Values:
    """Work out what every action is worth in every state of a task.

    Parameters
    ----------
    task : TaskModel
        The task.
    normaliser : {"sum", "mean", "max"}, optional
        The soft maximum; the task's own by default. The paper uses ``"sum"``. With another one the values are
        those of ``task.with_settings(normaliser=…)``, not of the task itself.

    Returns
    -------
    Values
        ``q`` (``-inf`` where an action is not legal), ``v``, and how exactly they were found: to a residual
        of 1e-10, or to the rounding error of the largest value where that is larger.

    Examples
    --------
    >>> import fidm
    >>> values = fidm.solve(fidm.load_task("grocery"))
    >>> values.residual <= 1e-10
    True
    """
    if not isinstance(task, TaskModel):
        raise TaskError(
            f"solve needs a task model, not {type(task).__name__}. Make one with fidm.load_task or "
            "fidm.compile_task."
        )
    if normaliser is not None and normaliser != task.normaliser:
        task = task.with_settings(normaliser=normaliser)
    layers = layer_states(task)
    v = np.zeros(task.n_states)
    steps, is_acyclic = 0, True
    for states in layers:
        layer = Layer.cut(task, states, v)
        if layer.is_acyclic:
            v[states] = soft_maximum(layer.base, layer.offsets, task.tau, task.normaliser)
        else:
            v[states], taken = _newton(layer, task)
            steps, is_acyclic = max(steps, taken), False
    pair_q = backup_pairs(task, v)
    residual = _residual(task, pair_q, v)
    tolerance = _reachable_tolerance(pair_q, TOLERANCE)
    if not residual <= tolerance or (task.normaliser != "max" and tolerance > 1e-2 * task.tau):
        raise TaskError(
            f"{task.name}: the values were found only to a residual of {residual:.2g}, which is too much at "
            f"a tau of {task.tau:g}. Smaller rewards, a smaller gamma or a larger tau make it easier."
        )
    return Values(
        q=task.table(pair_q, fill=-np.inf),
        v=v,
        normaliser=task.normaliser,
        tau=task.tau,
        residual=residual,
        iterations=steps,
        layers=len(layers),
        method="backward induction" if is_acyclic else "Newton by layers",
    ).marked(task.fingerprint)


def soft_maximum(pair_q: Floats, offsets: Integers, tau: float, normaliser: Normaliser) -> Floats:
    """Turn the action values of each state into the state's own value.

    ``pair_q`` [K] has the pairs of one state side by side; ``offsets`` [n + 1] say where each state's begin,
    and every state has at least one.
    """
    return _soft_maximum(pair_q, offsets, tau, normaliser)[0]


def _soft_maximum(
    pair_q: Floats, offsets: Integers, tau: float, normaliser: Normaliser
) -> tuple[Floats, Floats, Floats]:
    """The soft maximum, and its derivative by pair as a weight and each state's total of weights."""
    begins, counts = offsets[:-1], np.diff(offsets)
    best = np.maximum.reduceat(pair_q, begins)
    if normaliser == "max":  # all weight on the first best action
        is_best = pair_q == np.repeat(best, counts)
        rank = np.cumsum(is_best)
        rank -= np.repeat(rank[begins] - is_best[begins], counts)
        return best, (is_best & (rank == 1)).astype(np.float64), np.ones(len(counts))
    weight = pair_q - np.repeat(best, counts)
    weight *= 1.0 / tau
    np.exp(weight, out=weight)
    total = np.add.reduceat(weight, begins)
    value = best + tau * np.log(total / counts if normaliser == "mean" else total)
    return value, weight, total


def backup_pairs(task: TaskModel, v: Floats) -> Floats:
    """Return Q of every pair, given the value of every state."""
    future = task.probability * v[task.successor]
    if not task.is_deterministic:
        future = np.add.reduceat(future, task.successor_offsets[:-1]) if len(future) else future
    return np.asarray(task.reward + task.gamma * future)


def _residual(task: TaskModel, pair_q: Floats, v: Floats) -> float:
    live = np.flatnonzero(~task.terminal)
    if not len(live):
        return 0.0
    offsets = np.append(task.offsets[live], task.n_pairs)
    gaps = np.abs(soft_maximum(pair_q, offsets, task.tau, task.normaliser) - v[live])
    return float(gaps.max())


def _reachable_tolerance(pair_q: Floats, wanted: float) -> float:
    """The wanted residual, or what double precision allows where values are large."""
    scale = float(np.abs(pair_q).max(initial=0.0))
    return max(wanted, 16.0 * float(np.finfo(np.float64).eps) * scale)


def _newton(layer: Layer, task: TaskModel) -> tuple[Floats, int]:
    """Solve one layer that has cycles; return its values and the number of Newton steps."""
    if task.gamma >= 1.0:
        raise TaskError(
            f"{task.name} can be walked in circles for ever, so gamma = 1 gives it no finite "
            "values. Use a gamma below 1, or give the task a horizon."
        )
    is_small = layer.n_states <= SWEEP_LIMIT and task.normaliser != "max"
    v = _swept(layer, task) if is_small else _walked_out(layer, task)
    direct = (task.normaliser == "max" and task.is_deterministic) or layer.is_narrow()
    for step in range(MAX_STEPS):
        q = layer.pair_values(v)
        value, weight, total = _soft_maximum(q, layer.offsets, task.tau, task.normaliser)
        gap = value - v
        size = float(np.abs(gap).max())
        if size <= _reachable_tolerance(q, TOLERANCE * (1.0 - task.gamma)):
            return v, step
        policy = weight / np.repeat(total, np.diff(layer.offsets))
        delta, direct = _solve_linear(layer.system(policy), gap / size, size, direct)
        v = v + size * delta
    raise TaskError(
        f"{task.name}: a layer of {layer.n_states} states did not settle in {MAX_STEPS} steps "
        f"(residual {size:.2g}). A smaller gamma or a larger tau makes the task easier to solve."
    )


def _swept(layer: Layer, task: TaskModel) -> Floats:
    """A first guess for a small layer: a few plain backups, more while they converge fast."""
    v = np.zeros(layer.n_states)
    change, sweeps, is_fast = np.inf, 0, True
    while sweeps < SWEEPS or (is_fast and change > TOLERANCE * (1.0 - task.gamma)):
        before = v
        v = soft_maximum(layer.pair_values(v), layer.offsets, task.tau, task.normaliser)
        sweeps += 1
        if sweeps % 8 == 0:
            earlier, change = change, float(np.abs(v - before).max())
            is_fast = change < 0.1 * earlier
    return v


def _walked_out(layer: Layer, task: TaskModel) -> Floats:
    """A first guess for a large layer: its values if one could only walk straight out of it.

    Starting at the states with a way out, each ring of states is backed up from the rings before.
    States that are very far from a way out, or have no certain one, keep the value 0.
    """
    v = np.full(layer.n_states, -np.inf)
    n_inside = np.bincount(layer.pair, minlength=len(layer.base))
    link_begins = np.concatenate([[0], np.cumsum(n_inside)])
    column_begins = layer.indptr.astype(np.int64)
    ring = np.flatnonzero(np.minimum.reduceat(n_inside, layer.offsets[:-1]) == 0)
    for _ in range(int(40.0 / (1.0 - task.gamma))):  # beyond that γ^n has made everything too small to see
        if not len(ring):
            break
        pairs, offsets = rows_at(layer.offsets, ring)
        links, link_offsets = rows_at(link_begins, pairs)
        future = layer.weight[links] * v[layer.column[links]]
        of_pair = np.repeat(np.arange(len(pairs)), np.diff(link_offsets))
        q = layer.base[pairs] + np.bincount(of_pair, future, minlength=len(pairs))
        open_to = np.maximum.reduceat(q, offsets[:-1]) > -np.inf
        q = q[np.repeat(open_to, np.diff(offsets))]
        offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[open_to])])
        ring = ring[open_to]
        if len(ring):
            v[ring] = soft_maximum(q, offsets, task.tau, task.normaliser)
        before = _different(layer.indices[rows_at(column_begins, ring)[0]], layer.n_states)
        ring = before[v[before] == -np.inf]
    v[v == -np.inf] = 0.0
    return v


def _different(states: NDArray[np.int32], n: int) -> NDArray[np.integer[Any]]:
    """The states that occur, each once; marked off on a list of all where that is cheaper than sorting."""
    if len(states) < n // 8:
        return np.unique(states)
    occurs = np.zeros(n, dtype=np.bool_)
    occurs[states] = True
    return np.flatnonzero(occurs)


def _solve_linear(system: sparse.csc_array, gap: Floats, size: float, direct: bool) -> tuple[Floats, bool]:
    """Solve (I - γP) δ = gap, directly or iteratively; return δ and whether it was done directly."""
    if not direct:
        accuracy = min(1e-3, max(1e-6, size))
        delta, failed = sparse_linalg.bicgstab(system, gap, rtol=accuracy, atol=0.0, maxiter=ITERATIONS)
        if not failed:
            return np.asarray(delta), False
    if not system.data.all():  # what a policy never does must not cost memory
        system = system.copy()
        system.eliminate_zeros()
    factors = sparse_linalg.splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        panel_size=1,
        options={"SymmetricMode": True},
    )
    return np.asarray(factors.solve(gap)), True
