"""Whether a probability means what it says: of ten people given 30 %, three should turn out to be cases.

Ranking people well is one thing (the AUC), giving them honest probabilities another. A *calibration curve*
puts people with similar probabilities together and compares the mean probability of each bin with the share
of cases in it. Two numbers sum it up, from logistic regressions of the truth on the logit of the probability
p (Cox 1958; Van Calster et al. 2016, 2019)::

    logit P(case) = a + logit p          a: the intercept, calibration in the large; 0 is ideal,
                                         above 0 the probabilities are too low on average
    logit P(case) = c + b · logit p      b: the slope; 1 is ideal, below 1 the probabilities are too
                                         extreme, as is usual when a classifier was fitted to few people

The *Brier score* is the mean of (p − truth)²; it means something beside that of always saying the
prevalence, which is prevalence · (1 − prevalence).

A classifier with balanced class weights behaves as if cases and non-cases were equally many, so its
probabilities are too high wherever cases are rarer. :func:`at_prevalence` puts them back before they are
judged. :func:`at_threshold` says what happens at a cut-off: who is found, who is missed, and who is alarmed
for nothing.

References
----------
Cox (1958), Biometrika 45, 562–565. Brier (1950), Monthly Weather Review 78, 1–3. Van Calster et al. (2016),
Journal of Clinical Epidemiology 74, 167–176; (2019), BMC Medicine 17, 230. Wilson (1927), JASA 22, 209–212.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri

from fidm.errors import DataError
from fidm.stats import wilson
from fidm.types import Floats

Booleans = NDArray[np.bool_]

FEWEST_BINS, MOST_BINS, PEOPLE_PER_BIN = 3, 10, 15
"""A curve has one bin for every 15 people, but at least 3 and at most 10."""

_EDGE = 1e-12
"""Probabilities nearer to 0 or 1 than this are moved here, so that their logit is finite."""
_MOST_STEPS, _CLOSE = 100, 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """How honest the probabilities of a classifier are.

    Parameters
    ----------
    curve : DataFrame
        One row per bin, from low to high probabilities: ``bin`` (from 1), ``n``, ``predicted`` (their mean
        probability), ``observed`` (the share of cases), ``low`` and ``high`` (its Wilson interval).
    summary : dict
        ``n``, ``prevalence``, ``intercept`` and ``slope``, each with ``_low`` and ``_high`` (Wald), ``brier``
        and ``brier_reference`` (that of always saying the prevalence). None where a number does not exist:
        both with one class only, the slope also with a constant probability and where a cut-off separates
        the classes without fail.
    """

    curve: pl.DataFrame
    summary: dict[str, int | float | None]


def calibration(
    probability: ArrayLike, positive: ArrayLike, *, bins: int | None = None, level: float = 0.95
) -> CalibrationCurve:
    """Compare the probabilities people were given with what they turned out to be.

    Parameters
    ----------
    probability : array [n]
        Of being a case, 0 to 1, by a classifier that has not seen these people.
    positive : bool array [n]
        Who is a case.
    bins : int, optional
        How many bins of about equally many people; by default one per 15 people, 3 to 10. People with the
        same probability stay together, so there may be fewer.
    level : float
        Of the intervals.

    Examples
    --------
    >>> found = calibration([0.2] * 50 + [0.8] * 50, [True] * 10 + [False] * 40 + [True] * 40 + [False] * 10)
    >>> found.curve["observed"].to_list()
    [0.2, 0.8]
    >>> round(found.summary["slope"], 6), round(found.summary["brier"], 6)
    (1.0, 0.16)
    """
    p, y = check_probability(probability, positive)
    n, cases = len(y), int(y.sum())
    if bins is not None and bins < 1:
        raise DataError(f"bins is {bins}; a calibration curve needs at least one.")
    many = bins if bins is not None else min(max(n // PEOPLE_PER_BIN, FEWEST_BINS), MOST_BINS)
    prevalence = cases / n
    z = float(ndtri(0.5 + level / 2))
    x = np.asarray(logit(np.clip(p, _EDGE, 1 - _EDGE)), dtype=np.float64)
    summary: dict[str, int | float | None] = {"n": n, "prevalence": prevalence}
    for name, found in (("intercept", _intercept(x, y)), ("slope", _slope(x, y))):
        value, se = found if found is not None else (None, None)
        summary[name] = value
        summary[f"{name}_low"] = None if value is None or se is None else value - z * se
        summary[f"{name}_high"] = None if value is None or se is None else value + z * se
    summary["brier"] = float(np.mean((p - y) ** 2))
    summary["brier_reference"] = prevalence * (1 - prevalence)
    return CalibrationCurve(_curve(p, y, many, level), summary)


def at_prevalence(logit: ArrayLike, n_negative: int, n_positive: int) -> Floats:
    """Return the probability of a balanced classifier, put back to how common cases were in training.

    With balanced weights each class counts as half, so the odds are those of equally many cases and
    non-cases. Bayes' rule gives the odds among people like those it learned from::

        logit p = logit of the classifier + log(n₁ / n₀).

    Parameters
    ----------
    logit : array
        The classifier's log odds (``decision_function``).
    n_negative, n_positive : int
        How many non-cases n₀ and cases n₁ it learned from.

    Examples
    --------
    >>> at_prevalence([0.0], 75, 25)
    array([0.25])
    """
    if n_negative < 1 or n_positive < 1:
        raise DataError(f"A classifier learns from both classes; here {n_negative} and {n_positive} people.")
    return np.asarray(
        expit(np.asarray(logit, dtype=np.float64) + math.log(n_positive / n_negative)), dtype=np.float64
    )


def check_probability(probability: ArrayLike, positive: ArrayLike) -> tuple[Floats, Booleans]:
    """Return probabilities and labels as arrays, or say what is wrong with them."""
    p, y = np.asarray(probability, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    if p.ndim != 1 or p.shape != y.shape:
        raise DataError(f"There are probabilities of the shape {p.shape} and labels of the shape {y.shape}.")
    if not len(p):
        raise DataError("There is nobody whose probability could be judged.")
    wrong = int((~((p >= 0) & (p <= 1))).sum())
    if wrong:
        raise DataError(f"{wrong} of {len(p)} probabilities are missing or not between 0 and 1.")
    return p, y


def _curve(p: Floats, y: Booleans, bins: int, level: float) -> pl.DataFrame:
    """Put people with similar probabilities together; those with the same one share a bin."""
    ordered = np.sort(p)
    middle = (np.searchsorted(ordered, p, "left") + np.searchsorted(ordered, p, "right")) / 2
    rough = np.minimum((middle / len(p) * bins).astype(np.int64), bins - 1)
    kept, rows = np.unique(rough, return_inverse=True)
    n = np.bincount(rows)
    cases = np.bincount(rows, y)
    ends = [wilson(int(k), int(m), level) for k, m in zip(cases, n, strict=True)]
    return pl.DataFrame(
        {
            "bin": np.arange(1, len(kept) + 1),
            "n": n,
            "predicted": np.bincount(rows, p) / n,
            "observed": cases / n,
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
        }
    )


def _intercept(x: Floats, y: Booleans) -> tuple[float, float] | None:
    """Return the offset a of logit P(case) = a + x, and its standard error; None with one class."""
    if y.all() or not y.any():
        return None
    low, high = -float(x.max()) - 50.0, -float(x.min()) + 50.0
    a = 0.0
    for _ in range(_MOST_STEPS):
        p = expit(a + x)
        gap, weight = float((y - p).sum()), float((p * (1 - p)).sum())
        low, high = (a, high) if gap > 0 else (low, a)
        step = a + gap / weight if weight > 0 else math.inf
        new = step if low < step < high else (low + high) / 2
        if abs(new - a) < _CLOSE:
            break
        a = new
    p = expit(new + x)
    return new, 1 / math.sqrt(float((p * (1 - p)).sum()))


def _slope(x: Floats, y: Booleans) -> tuple[float, float] | None:
    """Return the slope b of logit P(case) = c + b x, and its standard error; None where there is no maximum.

    With one variable the likelihood has a finite maximum exactly when the two classes overlap strictly.
    """
    if y.all() or not y.any():
        return None
    cases, others = x[y], x[~y]
    if cases.min() >= others.max() or others.min() >= cases.max():
        return None
    middle, spread = float(x.mean()), float(x.std())
    u = np.column_stack([np.ones(len(x)), (x - middle) / spread])
    beta = np.zeros(2)
    value = _likelihood(u @ beta, y)
    for _ in range(_MOST_STEPS):
        p = expit(u @ beta)
        information = (u * (p * (1 - p))[:, None]).T @ u
        if not np.linalg.det(information) > _EDGE * information[0, 0] * information[1, 1]:
            return None  # separated but for rounding
        step = np.linalg.solve(information, u.T @ (y - p))
        if np.abs(step).max() < _CLOSE * (1 + np.abs(beta).max()):
            return float(beta[1]) / spread, math.sqrt(float(np.linalg.inv(information)[1, 1])) / spread
        while (new := _likelihood(u @ (beta + step), y)) < value and np.abs(step).max() > _CLOSE:
            step = step / 2
        beta, value = beta + step, new
    return None


def _likelihood(eta: Floats, y: Booleans) -> float:
    return float((y * eta - np.logaddexp(0.0, eta)).sum())


def at_threshold(
    probability: ArrayLike, positive: ArrayLike, *, threshold: float = 0.5, level: float = 0.95
) -> dict[str, int | float | None]:
    """Count who is rightly and wrongly called a case when everybody at or above a cut-off is.

    *Sensitivity* is the share of cases that are found, *specificity* the share of others that are left alone;
    *ppv* is the share of those called cases who are, *npv* the share of those not called cases who are not.
    The last two hold only where cases are as common as among these people.

    Parameters
    ----------
    probability : array [n]
        Of being a case, 0 to 1.
    positive : bool array [n]
        Who is a case.
    threshold : float
        The cut-off; a probability of exactly this much counts as a case.
    level : float
        Of the Wilson (1927) intervals.

    Returns
    -------
    dict
        ``threshold``, ``n``, ``true_positive``, ``false_positive``, ``true_negative``, ``false_negative``,
        then ``sensitivity``, ``specificity``, ``ppv`` and ``npv``, each with ``_low`` and ``_high``; None
        where nobody stands below the fraction line.

    Examples
    --------
    >>> found = at_threshold([0.9, 0.6, 0.4, 0.2], [True, False, True, False])
    >>> found["sensitivity"], found["true_positive"], found["false_positive"]
    (0.5, 1, 1)
    """
    p, y = check_probability(probability, positive)
    called = p >= threshold
    tp, fp = int((called & y).sum()), int((called & ~y).sum())
    fn, tn = int((~called & y).sum()), int((~called & ~y).sum())
    row: dict[str, int | float | None] = {
        "threshold": threshold,
        "n": len(y),
        "true_positive": tp,
        "false_positive": fp,
        "true_negative": tn,
        "false_negative": fn,
    }
    shares = {
        "sensitivity": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "ppv": (tp, tp + fp),
        "npv": (tn, tn + fn),
    }
    for name, (right, of) in shares.items():
        low, high = wilson(right, of, level) if of else (None, None)
        row |= {name: right / of if of else None, f"{name}_low": low, f"{name}_high": high}
    return row
