"""Rank correlations and group differences with bootstrap intervals, and p-values corrected for their number.

People are resampled with replacement, whole people each time; where groups are compared, within each group.
What was learned from all people together stays as it was, so the intervals do not include the uncertainty of
that.

In all functions ``seed`` is that of the draws, and ``bootstrap`` how many there are. Estimates and p-values
come from SciPy. The draws are our own, because :func:`scipy.stats.bootstrap` gives NaN as soon as one
resample is constant, cannot resample clusters, and would change intervals in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, spearmanr
from scipy.stats import t as student

from fidm.types import Floats

FEWEST = 5
"""Of fewer people no number is given."""

ENDS = (0.025, 0.975)
"""Where 95 % of the draws lie."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number measured on people, its 95 % interval, and of how many people it is.

    Parameters
    ----------
    value, low, high : float
        The number and the ends; NaN where there are too few people.
    n : int
        How many people it is of.
    p : float
        The probability of a number as far from chance if there were nothing; NaN where none was computed.
    """

    value: float
    low: float
    high: float
    n: int
    p: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def rank_correlation(
    x: ArrayLike, y: ArrayLike, *, seed: int, bootstrap: int, cluster: ArrayLike | None = None
) -> Interval:
    """Return Spearman's correlation of two measurements of the same people.

    Parameters
    ----------
    x, y : float array [n]
        The measurements; people who lack one of them are left out.
    cluster : array [n], optional
        Who belongs together, such as the two of a pair, and is drawn together.

    Examples
    --------
    >>> found = rank_correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5], seed=1, bootstrap=200)
    >>> round(found.value, 2), found.n
    (0.83, 6)
    """
    both, known = _known(x, y)
    if _too_few(both):
        return _nothing(both.shape[1])
    found = spearmanr(*both)
    if cluster is None:
        low, high = ends(_drawn(_rank_correlations, both, seed, bootstrap))
    else:
        often = draw_clusters(np.asarray(cluster)[known], seed=seed, bootstrap=bootstrap)
        low, high = ends(_weighted_rank_correlations(both[0], both[1], often))
    return Interval(float(found.statistic), low, high, both.shape[1], float(found.pvalue))


def partial_rank_correlation(
    x: ArrayLike, y: ArrayLike, fixed: ArrayLike, *, seed: int, bootstrap: int
) -> Interval:
    """Return Spearman's correlation of two measurements with a third held fixed.

    It is the partial correlation of the ranks; p is that of Student's t with n - 3 degrees of freedom.

    Parameters
    ----------
    x, y, fixed : float array [n]
        The measurements; people who lack one of them are left out.

    Examples
    --------
    >>> found = partial_rank_correlation(
    ...     [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5], [0, 0, 0, 1, 1, 1], seed=1, bootstrap=200
    ... )
    >>> round(found.value, 2), found.n
    (0.65, 6)
    """
    every, _ = _known(x, y, fixed)
    if _too_few(every):
        return _nothing(every.shape[1])
    n, value = every.shape[1], float(_partial(*every[:, None])[0])
    low, high = ends(_drawn(_partial, every, seed, bootstrap))
    with np.errstate(divide="ignore"):
        distance = abs(value) * np.sqrt((n - 3) / np.maximum(1 - value**2, 0.0))
    return Interval(value, low, high, n, float(2 * student.sf(distance, n - 3)))


def stepped_up(x: ArrayLike, y: ArrayLike, *, seed: int, bootstrap: int) -> tuple[float, Interval]:
    """Return Pearson's correlation of two halves, and the reliability of the whole (Spearman and Brown).

    Parameters
    ----------
    x, y : float array [n]
        The halves; people without a finite number in both are left out.

    Examples
    --------
    >>> r, whole = stepped_up([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5], seed=1, bootstrap=200)
    >>> round(r, 2), round(whole.value, 2)
    (0.83, 0.91)
    """
    both, _ = _known(x, y, finite=True)
    if _too_few(both):
        return math.nan, _nothing(both.shape[1])
    r = _correlations(*both[:, None])
    low, high = ends(_whole(_drawn(_correlations, both, seed, bootstrap)))
    return float(r[0]), Interval(float(_whole(r)[0]), low, high, both.shape[1])


def separation(higher: ArrayLike, lower: ArrayLike, *, seed: int, bootstrap: int) -> Interval:
    """Return the AUC: how probably somebody of the first group has more than somebody of the second.

    Parameters
    ----------
    higher, lower : float array
        The measurements of both groups; infinite ones take the last place.

    Examples
    --------
    >>> separation([3, 4, 5, 6, 2], [1, 2, 1, 0, 3], seed=1, bootstrap=200).value
    0.92
    """
    a, b = (one[~np.isnan(one)] for one in (np.asarray(higher, np.float64), np.asarray(lower, np.float64)))
    n = len(a) + len(b)
    if min(len(a), len(b)) < FEWEST:
        return _nothing(n)
    rng = np.random.default_rng([seed, n])
    low, high = ends(_aucs(*(one[rng.integers(0, len(one), (bootstrap, len(one)))] for one in (a, b))))
    return Interval(float(_aucs(a[None], b[None])[0]), low, high, n)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method; NaN stays.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: np.isfinite(values).sum()]  # what is no number comes last
    found = np.full(len(values), np.nan)
    steps = np.minimum(1.0, values[order] * np.arange(len(order), 0, -1))
    found[order] = np.maximum.accumulate(steps)
    return found.tolist()


def draw_clusters(cluster: NDArray[np.generic], *, seed: int, bootstrap: int) -> Floats:
    """Return how often each row is in each draw when clusters are drawn with replacement, [B, n]."""
    _, number = np.unique(cluster, return_inverse=True)
    n = int(number.max(initial=-1)) + 1
    drawn = np.random.default_rng([seed, n]).integers(0, max(n, 1), (bootstrap, n))
    counts = [np.bincount(one, minlength=n) for one in drawn]
    return np.array(counts, dtype=np.float64).reshape(bootstrap, n)[:, number]


def ends(drawn: Floats) -> tuple[float, float]:
    """Return where 95 % of the draws lie; NaN if most of them are no numbers."""
    known = drawn[np.isfinite(drawn)]
    if len(known) <= len(drawn) // 2:
        return math.nan, math.nan
    low, high = np.quantile(known, ENDS)
    return float(low), float(high)


def _drawn(statistic: Callable[..., Floats], every: Floats, seed: int, bootstrap: int) -> Floats:
    """A statistic of every draw of people, [B]."""
    n = every.shape[1]
    people = np.random.default_rng([seed, n]).integers(0, n, (bootstrap, n))
    return statistic(*(one[people] for one in every))


def _known(*measured: ArrayLike, finite: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
    """The measurements of those who lack none of them, [k, n], and who they are."""
    every = np.stack([np.asarray(one, dtype=np.float64) for one in measured])
    known: NDArray[np.bool_] = np.all(np.isfinite(every) if finite else ~np.isnan(every), axis=0)
    return every[:, known], known


def _too_few(every: Floats) -> bool:
    return every.shape[1] < FEWEST or any(len(np.unique(one)) < 2 for one in every)


def _nothing(n: int) -> Interval:
    return Interval(math.nan, math.nan, math.nan, n)


def _rank_correlations(a: Floats, b: Floats) -> Floats:
    """Spearman's correlation of every draw, [B]."""
    return _correlations(rankdata(a, axis=1), rankdata(b, axis=1))


def _correlations(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation of every draw, [B]."""
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


def _partial(a: Floats, b: Floats, c: Floats) -> Floats:
    """The partial rank correlation of every draw, [B]."""
    ab, ac, bc = _rank_correlations(a, b), _rank_correlations(a, c), _rank_correlations(b, c)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2)))


def _whole(r: Floats) -> Floats:
    """What the whole would reach; a negative correlation is not stepped up."""
    return np.where(r > 0, 2 * r / (1 + np.abs(r)), r)


def _aucs(a: Floats, b: Floats) -> Floats:
    """The AUC of every draw, [B]."""
    n, m = a.shape[1], b.shape[1]
    ranks = rankdata(np.concatenate([a, b], axis=1), axis=1)
    return np.asarray((ranks[:, :n].sum(axis=1) - n * (n + 1) / 2) / (n * m))


def weighted_aucs(score: Floats, positive: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return the AUC under every line of weights, [B]; ties count half, NaN where there is one kind only."""
    order, begins, _ = _ties(score)
    is_case = positive[order]
    cases, others = (
        np.add.reduceat(np.where(chosen, weight[:, order], 0.0), begins, axis=1)
        for chosen in (is_case, ~is_case)
    )
    below = np.cumsum(others, axis=1) - 0.5 * others
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((cases * below).sum(axis=1) / (cases.sum(axis=1) * others.sum(axis=1)))


def _weighted_rank_correlations(a: Floats, b: Floats, weight: Floats) -> Floats:
    """Spearman's correlation when each row stands so often in a draw, [B]."""
    x, y = _ranks(a, weight), _ranks(b, weight)
    total = weight.sum(axis=1, keepdims=True)
    x, y = (one - (weight * one).sum(axis=1, keepdims=True) / total for one in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.sqrt((weight * x**2).sum(axis=1) * (weight * y**2).sum(axis=1))
        return np.asarray((weight * x * y).sum(axis=1) / size)


def _ranks(values: Floats, weight: Floats) -> Floats:
    """The middle rank of every row in every draw, but for a constant, [B, n]."""
    order, begins, group = _ties(values)
    sizes = np.add.reduceat(weight[:, order], begins, axis=1)
    return np.asarray((np.cumsum(sizes, axis=1) - 0.5 * sizes)[:, group])


def _ties(values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """An order of rows by value, where each value begins in it, and the number of every row's value."""
    different, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(len(different))), group
