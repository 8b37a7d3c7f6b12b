"""How well a classifier does, and how sure one can be: each number knows what every person adds to its error.

An area under the curve (AUC) from 68 people is itself a measurement, with an error of several points. Its
size can be read from the people themselves. Every person *i* has a *placement*: the share of the other class
they are ranked rightly against, ties counting half. The AUC is the mean placement of either class,
and a person whose placement is far from it pulls it far::

    part_i = (placement_i − AUC) / √(m (m − 1)),     m the number of people in i's class,
    variance of the AUC = Σ_i part_i².

This is the estimate of DeLong, DeLong & Clarke-Pearson (1988), written person by person. The parts of other
measures are made in the same way, and then everything else is arithmetic:

- the difference of two classifiers on the same people has the differences of their parts, so what the two
  have in common cancels (DeLong's paired test);
- an average over folds averages the parts (LeDell, Petersen & van der Laan 2015).

What an interval speaks of are the classifiers that were trained: how well *they* would do with many new
people of the same kind. How much another training sample would change the classifier is not in it.

Held-out people are fresh, and their intervals hold what they promise. In cross-validation everybody both
judges and teaches; what two people tell about each other then enters twice, and the error is larger than the
parts say, most where there is next to nothing to learn (that plain intervals of cross-validation are too
narrow is also what Bates et al. 2024 find). And averaging over repetitions makes parts smaller much faster
than it makes the error smaller. So :func:`over_repeats` takes the error of a single cross-validation, the
root of the mean variance of the repetitions, times :data:`CAREFUL` = 1.25; a cross-validation that is not
repeated is less steady, and its error is taken times :data:`ALONE` = √2.

``tests/recovery/test_classification_intervals.py`` says how often such intervals hold the truth in
simulations with the paper's numbers of people: 94 to 99 % of the time, whether features tell something,
nothing, or join others in vain, where those of plain parts fall to 86 %.

Three additions for small samples:

- The spread of a class of four people is itself hardly known, so intervals use Student's t with the
  degrees of freedom of Welch (1947) and Satterthwaite (1946), counted by class.
- A class with a single person shows no spread at all; their placement is then compared with ½, which on
  average is never too small. (Balanced accuracy has its own rule, see there.)
- Where nobody differs (everybody is ranked rightly, say), the sample has no spread to show, and an interval
  of no width would be wrong. It then ends at z² / (m + z²) from the value, with m the size of the smallest
  class; at 0 and 1 this is where the interval of Wilson (1927) ends.

References
----------
Bates, Hastie & Tibshirani (2024), Journal of the American Statistical Association 119, 1434–1445. DeLong,
DeLong & Clarke-Pearson (1988), Biometrics 44, 837–845. LeDell, Petersen & van der Laan (2015), Electronic
Journal of Statistics 9, 1583–1607. Satterthwaite (1946), Biometrics Bulletin 2, 110–114.
Welch (1947), Biometrika 34, 28–35. Wilson (1927), JASA 22, 209–212.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from fidm.errors import DataError
from fidm.types import Floats, Integers, read_only

Booleans = NDArray[np.bool_]

NOBODY = -1
"""The class number of people who took no part in an estimate."""

CAREFUL, ALONE = 1.25, math.sqrt(2)
"""How much larger a cross-validated error is taken to be than its parts say: repeated, or done once."""

_NOTHING = 1e-12
"""A smaller standard error, or distance from 0 or 1, is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A number measured on people, and what each of them adds to its error.

    Parameters
    ----------
    value : float
        The number itself, such as an AUC between 0 and 1.
    parts : float array [n] or [R, n]
        What each person adds, in each of R repetitions if there are several; the sum of all squares is the
        variance.
    label : int array [n]
        The class of each person, from 0; −1 for people who took no part.

    Examples
    --------
    >>> found = auc([0.1, 0.4, 0.35, 0.8, 0.7, 0.9], [False, False, True, True, True, True])
    >>> round(found.value, 3), round(found.se, 3)
    (0.875, 0.177)
    """

    value: float
    parts: Floats
    label: Integers

    @property
    def variance(self) -> float:
        """The square of the standard error."""
        return float(np.square(self.parts).sum())

    @property
    def se(self) -> float:
        """The standard error: how far the value would typically be off with other people."""
        return math.sqrt(self.variance)

    @property
    def smallest(self) -> int:
        """The number of people in the smallest class."""
        return int(self._counts().min())

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the variance: few where it hangs on a class with few people."""
        counts = self._counts()
        there = self.label != NOBODY
        numbers, rows = np.unique(self.label[there], return_inverse=True)
        squares = np.square(np.atleast_2d(self.parts)).sum(axis=0)
        by_class = np.bincount(rows, squares[there], len(numbers))
        weight = float((by_class**2 / np.maximum(counts - 1, 1)).sum())
        return float(by_class.sum() ** 2 / weight) if weight > 0 else float(np.maximum(counts - 1, 1).min())

    def interval(self, level: float = 0.95, *, bounded: bool = True) -> tuple[float, float]:
        """Return the confidence interval.

        Parameters
        ----------
        level : float
            The share of such intervals that hold the truth.
        bounded : bool
            Whether the number lives between 0 and 1; the interval is then made on the logit scale and stays
            there. Say False for a difference.
        """
        if not 0 < level < 1:
            raise DataError(
                f"The level of an interval is {level}; it must lie between 0 and 1, such as 0.95."
            )
        value, se = self.value, self.se
        if se < _NOTHING or (bounded and not _NOTHING < value < 1 - _NOTHING):
            z = float(ndtri(0.5 + level / 2))
            half = z * z / (self.smallest + z * z)  # where Wilson's interval ends when everybody agrees
            return max(value - half, 0.0 if bounded else -1.0), min(value + half, 1.0)
        step = float(stdtrit(self.degrees, 0.5 + level / 2)) * se
        if not bounded:
            return value - step, value + step
        centre, step = math.log(value / (1 - value)), step / (value * (1 - value))
        return _expit(centre - step), _expit(centre + step)

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided probability of a value at least this far from ``null`` if that were the truth.

        Parameters
        ----------
        null : float
            The value to compare with: 0 for a difference, 0.5 for an AUC.
        """
        away = abs(self.value - null)
        if away < _NOTHING:
            return 1.0
        if self.se < _NOTHING:
            return float(2 * ndtr(-math.sqrt(self.smallest * away / (1 - away)))) if away < 1 else 0.0
        return float(2 * stdtr(self.degrees, -away / self.se))

    def _counts(self) -> Integers:
        return np.unique(self.label[self.label != NOBODY], return_counts=True)[1].astype(np.int64)


def auc(score: ArrayLike, positive: ArrayLike) -> Estimate:
    """Return the chance that a case scores higher than a non-case, with DeLong's error.

    Parameters
    ----------
    score : array [n]
        Anything that is higher for likelier cases: a probability, a logit, a test score.
    positive : bool array [n]
        Who is a case.
    """
    x, y = _score(score), np.asarray(positive, dtype=np.bool_)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"There are scores of the shape {x.shape} and labels of the shape {y.shape}.")
    value, parts = _auc(x, y)
    return _estimate(value, parts, y.astype(np.int64))


def macro_auc(probability: ArrayLike, label: ArrayLike) -> Estimate:
    """Return the mean, over classes, of the AUC of each class against all others.

    The value is that of scikit-learn's ``roc_auc_score(multi_class="ovr", average="macro")``.

    Parameters
    ----------
    probability : array [n, K]
        A score per class; the k-th column is higher for likelier members of class k.
    label : int array [n]
        The class of each person, 0 to K − 1. Every class needs somebody.
    """
    x, y = _score(probability), np.asarray(label, dtype=np.int64)
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise DataError(f"There are probabilities of the shape {x.shape} and labels of the shape {y.shape}.")
    n_classes = x.shape[1]
    _check_classes(y, n_classes)
    found = [_auc(x[:, number], y == number) for number in range(n_classes)]
    parts = np.mean([part for _, part in found], axis=0)
    return _estimate(float(np.mean([value for value, _ in found])), parts, y)


def balanced_accuracy(predicted: ArrayLike, label: ArrayLike, n_classes: int) -> Estimate:
    """Return the mean, over classes, of the share of a class that is recognised.

    Where a class is recognised as a whole, or missed as a whole, it shows no spread; its variance is then
    that of a class with one more person recognised and one more missed (Laplace's rule of succession).

    Parameters
    ----------
    predicted, label : int arrays [n]
        The class each person is given, and their true one, 0 to ``n_classes`` − 1.
    n_classes : int
        How many classes there are. Every class needs somebody.
    """
    x, y = np.asarray(predicted, dtype=np.int64), np.asarray(label, dtype=np.int64)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"There are predictions of the shape {x.shape} and labels of the shape {y.shape}.")
    _check_classes(y, n_classes)
    right = (x == y).astype(np.float64)
    counts = np.bincount(y, minlength=n_classes)
    hits = np.bincount(y, right, n_classes)
    recall = hits / counts
    parts = (right - recall[y]) / _scale(counts)[y]
    laplace = (hits + 1) / (counts + 2)
    alike = np.where((hits == 0) | (hits == counts), np.sqrt(laplace * (1 - laplace)) / counts, 0.0)
    parts += np.where(right == 1, alike[y], -alike[y])
    return _estimate(float(recall.mean()), parts / n_classes, y)


def mean_over_folds(estimates: Sequence[Estimate], rows: Sequence[ArrayLike], n: int) -> Estimate:
    """Average estimates made on the folds of one cross-validation (LeDell et al. 2015).

    Parameters
    ----------
    estimates : sequence of Estimate
        One per fold.
    rows : sequence of int arrays
        The people of each: their numbers among the ``n``, in the order of its parts.
    n : int
        How many people there are in all.
    """
    if not estimates:
        raise DataError("There is no estimate to average.")
    parts, label = np.zeros(n), np.full(n, NOBODY, dtype=np.int64)
    for found, places in zip(estimates, rows, strict=True):
        where = np.asarray(places, dtype=np.int64)
        if where.shape != found.parts.shape:
            raise DataError(f"A fold names {len(where)} people, but its estimate has {len(found.parts)}.")
        parts[where] += found.parts
        label[where] = found.label
    return _estimate(float(np.mean([found.value for found in estimates])), parts / len(estimates), label)


def over_repeats(estimates: Sequence[Estimate]) -> Estimate:
    """Average the repetitions of a cross-validation; its error is a single one's, made wider.

    Parameters
    ----------
    estimates : sequence of Estimate
        One per repetition, of the same people in the same order; see :func:`mean_over_folds`.
    """
    if not estimates:
        raise DataError("There is no estimate to average.")
    for found in estimates:
        _check_same(found, estimates[0])
    many = len(estimates)
    wider = (ALONE if many == 1 else CAREFUL) / math.sqrt(many)
    parts = wider * np.stack([found.parts for found in estimates])
    return _estimate(float(np.mean([found.value for found in estimates])), parts, estimates[0].label)


def by_groups(estimate: Estimate, groups: ArrayLike) -> Estimate:
    """Return an estimate that knows that people of a group are alike: their parts are added before squaring.

    Parameters
    ----------
    estimate : Estimate
        Of single people.
    groups : int array [n]
        The group of each of them, such as a family. A group counts as a member of its first person's class.
    """
    _, first, place = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
    parts = np.zeros_like(estimate.parts)
    np.add.at(parts, first[place], estimate.parts)
    label = np.full_like(estimate.label, NOBODY)
    label[first] = estimate.label[first]
    return _estimate(estimate.value, parts, label)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """Return how much better ``a`` does than ``b`` on the same people, with the error of the pair.

    Parameters
    ----------
    a, b : Estimate
        Of the same measure, on the same people in the same order.
    """
    _check_same(a, b)
    return _estimate(a.value - b.value, a.parts - b.parts, a.label)


def _check_same(a: Estimate, b: Estimate) -> None:
    if a.parts.shape != b.parts.shape or not np.array_equal(a.label, b.label):
        raise DataError(
            "The two estimates are not of the same people in the same order; a paired difference needs that."
        )


def _auc(score: Floats, positive: Booleans) -> tuple[float, Floats]:
    """Return the AUC and its parts, by placements from two sorted lists (no table of pairs)."""
    cases, others = score[positive], score[~positive]
    m, k = len(cases), len(others)
    if not m or not k:
        raise DataError(
            f"An AUC compares two classes, but there are {m} people of the class looked for and {k} others."
        )
    high, low = _share_below(cases, others), 1 - _share_below(others, cases)
    value = float(high.mean())
    scale = _scale(np.array([k, m]))
    parts = np.empty(len(score))  # somebody who is the only one of their class is compared with ½
    parts[positive] = (high - (value if m > 1 else 0.5)) / scale[1]
    parts[~positive] = (low - (value if k > 1 else 0.5)) / scale[0]
    return value, parts


def _share_below(values: Floats, others: Floats) -> Floats:
    """Return the share of ``others`` below each value, ties counting half."""
    ordered = np.sort(others)
    twice = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(twice / (2 * len(others)), dtype=np.float64)


def _scale(counts: Integers) -> Floats:
    """Return √(m (m − 1)), or 1 for a class of one."""
    return np.asarray(np.sqrt(np.maximum(counts * (counts - 1), 1)), dtype=np.float64)


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def _estimate(value: float, parts: Floats, label: Integers) -> Estimate:
    return Estimate(value, read_only(parts), read_only(label))


def _score(score: ArrayLike) -> Floats:
    x = np.asarray(score, dtype=np.float64)
    if np.isnan(x).any():
        raise DataError(f"{int(np.isnan(x).sum())} of {x.size} scores are missing; an AUC needs all of them.")
    return x


def _check_classes(label: Integers, n_classes: int) -> None:
    if len(label) and (label.min() < 0 or label.max() >= n_classes):
        raise DataError(f"Class numbers must be 0 to {n_classes - 1}; there are others.")
    empty = np.flatnonzero(np.bincount(label, minlength=n_classes) == 0)
    if len(empty) or n_classes < 2:
        raise DataError(
            f"{n_classes} classes, of which {len(empty)} have nobody among these {len(label)} people; "
            "at least two classes are needed, and somebody in each."
        )
