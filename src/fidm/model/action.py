r"""A cohort's choices against the values of its tasks: the action factor.

The log-likelihood of person j is (paper, equation 8, first term)

.. math:: \ell_j(\eta) = \sum_i w_i \log \pi_\eta(a_i \mid s_i).

The weight w_i is the step's own, times ``inferred`` where a planner filled the step in: nobody chose it, and
being on the shortest way it is mostly a best action.

Steps in states that are not counted, steps of weight 0, actions the task leaves out, and rows in which all
legal actions are worth the same say nothing about η and are dropped at once. What remains depends on a
person only through which state-action pairs occurred how often, so log π is tabulated once per pair over
a grid of η, and a person's log-likelihood on that grid is a sum of table rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.model import kernels
from fidm.tasks.stack import Followed, TaskSet
from fidm.types import Floats

TIE = 1e-8
"""Two actions whose values differ by less than this count as equally good."""

TABLE_BYTES = 64 * 2**20
"""A table of log-probabilities is kept below this size by taking fewer values of η at a time."""

CHUNK_STEPS = 1_000_000
"""About how many choices are worked on at a time."""

CHUNK_ROWS = 1 << 15
"""How many rows of a task are looked at at a time; what is found does not depend on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The informative choices of many people."""

    offsets: NDArray[np.int64]  # [rows + 1]: where the options of each row begin
    q: Floats  # [K]: the value of every option
    person_offsets: NDArray[np.int64]  # [P + 1]: where each person's choices begin
    # [n]: the row of each choice and the option chosen.
    row: NDArray[np.int32]
    pair: NDArray[np.int32]
    weight: Floats  # [n]: how much each choice counts
    # [P]: how many choices each person made that enter the likelihood, the uninformative ones included.
    n_choices: NDArray[np.int64]
    flat: Floats  # [P]: the log-likelihood of the choices that say nothing (all options worth the same)
    # [P, C]: covariates of the people that the mean of log η depends on, if it does.
    known: Floats | None = None

    def __len__(self) -> int:
        return len(self.person_offsets) - 1

    def people(self, first: int, last: int) -> Choices:
        """Return the people in these rows; arrays are views."""
        low, high = self.person_offsets[first], self.person_offsets[last]
        return Choices(
            self.offsets,
            self.q,
            self.person_offsets[first : last + 1] - low,
            self.row[low:high],
            self.pair[low:high],
            self.weight[low:high],
            self.n_choices[first:last],
            self.flat[first:last],
            None if self.known is None else self.known[first:last],
        )

    def take(self, chosen: NDArray[np.bool_]) -> Choices:
        """Return the chosen people, [P]."""
        counts = np.diff(self.person_offsets)
        kept = np.repeat(chosen, counts)
        return Choices(
            self.offsets,
            self.q,
            np.concatenate([[0], np.cumsum(counts[chosen])]),
            self.row[kept],
            self.pair[kept],
            self.weight[kept],
            self.n_choices[chosen],
            self.flat[chosen],
            None if self.known is None else self.known[chosen],
        )

    def chunks(self) -> Iterator[Choices]:
        """Cut the people into runs of about :data:`CHUNK_STEPS` choices."""
        n, first = len(self), 0
        while first < n:
            ahead = (
                np.searchsorted(self.person_offsets, self.person_offsets[first] + CHUNK_STEPS, "right") - 1
            )
            last = min(n, max(first + 1, int(ahead)))
            yield self.people(first, last)
            first = last

    def entries(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Return what the kernels take: offsets, entries and weights of choices, and each entry's options.

        An entry is a state-action pair that occurs; the options of its row stand beside it, below their best.
        """
        pairs, entry = _distinct(self.pair, len(self.q))
        rows = np.searchsorted(self.offsets, pairs, side="right") - 1
        begin = np.empty(len(pairs) + 1, dtype=np.int64)
        d = np.empty(int((self.offsets[rows + 1] - self.offsets[rows]).sum()))
        own = np.empty(len(pairs))
        kernels.lay_out(pairs, rows, self.offsets, self.q, begin, d, own)
        return self.person_offsets, entry, self.weight, begin, d, own


def no_choices(people: int) -> Choices:
    """Return the choices of so many people who made none."""
    none, number = np.zeros(0), np.zeros(0, np.int32)
    return Choices(
        np.zeros(1, np.int64), none, np.zeros(people + 1, np.int64), number, number, none,
        np.zeros(people, np.int64), np.zeros(people),
    )  # fmt: skip


def choices_of(
    tasks: TaskSet, q: Floats, cohort: Cohort, followed: Followed, *, inferred: float = 0.0
) -> Choices:
    """Find the choices of a cohort that enter the action likelihood; an inferred step counts ``inferred``."""
    return list_choices(
        tasks.offsets,
        q,
        cohort.step_offsets[cohort.episode_offsets],
        followed.row,
        followed.pair,
        effective_weight(cohort, inferred),
        tasks.counted,
    )


def effective_weight(cohort: Cohort, inferred: float) -> Floats:
    """Return how much each step counts, [N]; empty where every step counts once."""
    own = np.zeros(0) if cohort.weight is None else cohort.weight
    if cohort.inferred is None or inferred == 1.0:
        return own
    factor = np.where(cohort.inferred, inferred, 1.0)
    return own * factor if len(own) else factor


def count_inferred(tasks: TaskSet, cohort: Cohort, followed: Followed) -> tuple[Floats, Floats]:
    """Return how many steps of each person would count if none were inferred, and how many are inferred, [P].

    NaN where the cohort does not say which steps are inferred.
    """
    if cohort.inferred is None:
        unknown = np.full(len(cohort), np.nan)
        return unknown, unknown
    counts = (followed.pair >= 0) & tasks.counted[followed.row]
    if cohort.weight is not None:
        counts &= cohort.weight > 0
    edges = cohort.step_offsets[cohort.episode_offsets]

    def per_person(flags: NDArray[np.bool_]) -> Floats:
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])
        return np.diff(before[edges]).astype(np.float64)

    return per_person(counts), per_person(counts & cohort.inferred)


def list_choices(
    offsets: NDArray[np.int64],
    q: Floats,
    person_steps: NDArray[np.int64],
    row: NDArray[np.int32],
    pair: NDArray[np.int32],
    weight: Floats,
    counted: NDArray[np.bool_],
) -> Choices:
    """List everybody's choices, those between options that are worth the same set aside.

    An empty ``weight`` counts every step once.
    """
    sizes = np.diff(offsets)
    flat = _flat(offsets, q, row[pair >= 0])
    n = len(person_steps) - 1
    kept = np.empty(len(pair), dtype=np.int64)
    person_offsets = np.empty(n + 1, dtype=np.int64)
    n_choices, said = np.empty(n, dtype=np.int64), np.empty(n)
    found = kernels.list_choices(
        pair, row, counted, flat, sizes, weight, person_steps, kept, person_offsets, n_choices, said
    )
    kept = kept[:found]
    return Choices(
        offsets,
        q,
        person_offsets,
        row[kept],
        pair[kept],
        weight[kept] if len(weight) else np.ones(found),
        n_choices,
        said,
    )


def _flat(offsets: NDArray[np.int64], q: Floats, row: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether all options of a row are worth the same, [rows]; said of rows that somebody was in."""
    seen = np.zeros(len(offsets) - 1, dtype=np.bool_)
    seen[row] = True
    flat = np.ones(len(seen), dtype=np.bool_)
    rows = np.flatnonzero(seen)
    if len(rows):  # a row that somebody chose in has an option
        size = offsets[rows + 1] - offsets[rows]
        begin = np.cumsum(size) - size
        own = q[np.repeat(offsets[rows] - begin, size) + np.arange(int(size.sum()))]
        flat[rows] = np.maximum.reduceat(own, begin) - np.minimum.reduceat(own, begin) < TIE
    return flat


def sensitivity_grid(offsets: NDArray[np.int64], q: Floats, *, spacing: float) -> Floats:
    """Return evenly spaced log η that span all these rows could tell apart, [G].

    From where hardly any gap between best and second best matters to where nearly every one decides. It
    depends on the rows alone, not on who visited them, so that everybody is measured on the same grid.
    """
    some = np.flatnonzero(np.diff(offsets) > 0)
    if not len(some):
        return np.arange(-2.0, 2.0, spacing)
    gap = np.concatenate(
        [_gaps(offsets, q, some[first : first + CHUNK_ROWS]) for first in range(0, len(some), CHUNK_ROWS)]
    )
    gap = gap[np.isfinite(gap)]
    if not len(gap):
        return np.arange(-2.0, 2.0, spacing)
    narrow, wide = np.quantile(gap, (0.05, 0.95))
    first, last = np.log(0.02 / wide), np.log(20.0 / narrow)
    last = min(max(last, first + 6.0), first + 24.0)
    return np.asarray(first + spacing * np.arange(int(np.ceil((last - first) / spacing)) + 1))


def _gaps(offsets: NDArray[np.int64], q: Floats, rows: NDArray[np.int64]) -> Floats:
    """How far the second best option lies below the best, of rows one after the other; infinite if nowhere.

    Rows without options may lie between them.
    """
    low, high = offsets[rows[0]], offsets[rows[-1] + 1]
    begin, size = offsets[rows] - low, offsets[rows + 1] - offsets[rows]
    below = np.repeat(np.maximum.reduceat(q[low:high], begin), size) - q[low:high]
    return np.asarray(np.minimum.reduceat(np.where(below >= TIE, below, np.inf), begin))


def log_likelihoods(entries: tuple[Any, Any, Any, Any, Any, Any], etas: Floats, lapse: float) -> Floats:
    """Return ℓ of every person at every η, [P, G], uninformative choices left out."""
    person_offsets, entry, weight, begin, d, own = entries
    found = np.empty((len(person_offsets) - 1, len(etas)))
    width = max(1, TABLE_BYTES // (8 * max(1, len(own))))
    for first in range(0, len(etas), width):
        some = etas[first : first + width]
        table = np.empty((len(own), len(some)))
        kernels.fill_table(begin, d, own, some, lapse, table)
        kernels.sum_table(person_offsets, entry, weight, table, found, first)
    return found


def _distinct(pair: NDArray[np.int32], n_pairs: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the pairs that occur, and where each choice's pair stands among them."""
    if len(pair) < n_pairs // 16:  # few choices in a large task: sorting them is less work than a table
        found, where = np.unique(pair, return_inverse=True)
        return found.astype(np.int64), where.astype(np.int32)
    occurs = np.zeros(n_pairs, dtype=np.bool_)
    occurs[pair] = True
    pairs = np.flatnonzero(occurs)
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return pairs, place[pair]


def over_chunks(
    choices: Choices, function: Callable[[Choices], tuple[Floats, ...]], workers: int
) -> list[Floats]:
    """Apply a function to the people, a chunk at a time, and join what it gives."""
    parts = list(choices.chunks()) or [choices]
    if workers <= 1 or len(parts) == 1:
        found = [function(part) for part in parts]
    else:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(function, parts))
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]
