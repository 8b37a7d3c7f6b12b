"""How well numbers tell two groups of people apart, by the paper's classifier and cross-validation.

The classifier is the paper's (:func:`fidm.study.preparing.classifier`), on features that are median-imputed
and standardized within each training fold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fidm.errors import DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS = 5
"""The paper's number of folds."""

TOLERANCE = 1e-4
"""Where the search for the weights ends, as in scikit-learn; a tighter one moves areas by up to .001."""


def cross_validated_auc(
    features: ArrayLike,
    label: ArrayLike,
    *,
    seed: int,
    groups: ArrayLike | None = None,
    folds: int = FOLDS,
) -> float:
    """Return the mean area under the curve over the folds, each judged by a classifier that did not see it.

    Parameters
    ----------
    features : array [n, K] or [n]
        Numbers; NaN where missing. Infinite values are refused.
    label : bool array [n]
        The group of each person.
    seed : int
        Of the folds.
    groups : array [n], optional
        Rows of the same group stay in the same fold.
    folds : int
        How many folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # type: ignore[import-untyped]

    x = np.asarray(features, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    y = np.asarray(label, dtype=np.bool_)
    if x.ndim != 2 or len(x) != len(y):
        raise DataError(f"features have the shape {x.shape}, but there are {len(y)} labels.")
    if np.isinf(x).any():
        raise DataError("features hold infinite values; a classifier needs finite ones.")
    smaller = int(min(y.sum(), (~y).sum()))
    if smaller < folds:
        raise DataError(f"The smaller group has {smaller} people; {folds} folds need at least {folds}.")
    x = x[:, np.flatnonzero(~np.isnan(x).all(axis=0))]
    if not x.shape[1]:
        raise DataError("No feature has a value.")
    cutter = (
        StratifiedKFold(folds, shuffle=True, random_state=seed)
        if groups is None
        else StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    )
    return float(np.mean([held_out_auc(x, y, train, test) for train, test in cutter.split(x, y, groups)]))


def held_out_auc(features: Floats, label: NDArray[Any], train: Integers, test: Integers) -> float:
    """Return the area under the curve among some people, by a classifier that learned from others.

    Parameters
    ----------
    features : array [n, K]
        Numbers; NaN where missing.
    label : array [n]
        The group of each person: two values, the second of which is looked for.
    train, test : int arrays
        Rows to learn from, and rows to judge by.
    """
    from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]

    from fidm.study.preparing import Preparation, classifier

    prepared = Preparation.learn([features[train]])
    learned = classifier(tolerance=TOLERANCE).fit(prepared.apply([features[train]]), label[train])
    score = learned.decision_function(prepared.apply([features[test]]))
    return float(roc_auc_score(label[test], score))
