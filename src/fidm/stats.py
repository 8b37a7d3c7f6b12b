"""Statistics that several results share: intervals of shares, people dealt to folds, people drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from fidm.types import Integers

AT_ONCE = 2_000_000
"""How many people are drawn in one piece; what is drawn does not depend on it."""


def wilson(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of Wilson (1927) of a share.

    ``right`` of ``n``; of none, the share could be anything. ``level`` is how often such intervals hold the
    truth.

    Examples
    --------
    >>> from fidm.stats import wilson
    >>> low, high = wilson(19, 20)
    >>> round(low, 3), round(high, 3)
    (0.764, 0.991)
    """
    if n == 0:
        return 0.0, 1.0
    found = binomtest(right, n).proportion_ci(confidence_level=level, method="wilson")
    return float(found.low), float(found.high)


def deal(n: int, folds: int, *, seed: Sequence[int], classes: NDArray[np.integer] | None = None) -> Integers:
    """Return the fold of each of n people, dealt in turn in an order drawn at random, [n].

    ``classes`` [n], if given, is the class of each; every class is then spread evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from fidm.stats import deal
    >>> np.bincount(deal(10, 3, seed=[1])).tolist()
    [4, 3, 3]
    """
    order = np.random.default_rng(seed).permutation(n)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % folds
    return fold


def deal_classes(label: ArrayLike, folds: int, *, seed: int, groups: ArrayLike | None = None) -> Integers:
    """Return the fold of each person; classes are spread evenly as scikit-learn does it, [n].

    People of the same one of ``groups`` [n] stay in the same fold.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    cutter = (StratifiedKFold if groups is None else StratifiedGroupKFold)(
        folds, shuffle=True, random_state=seed
    )
    fold = np.zeros(len(np.asarray(label)), dtype=np.int64)
    for number, (_, tested) in enumerate(cutter.split(fold, label, groups)):
        fold[tested] = number
    return fold


def redraws(
    n: int, times: int, rng: np.random.Generator, *, together: Integers | None = None
) -> Iterator[Integers]:
    """Yield who is in each draw when n people are drawn n times with replacement, many draws at once, [b, m].

    ``together`` [n] is the group of each person; whole groups are then drawn, as many as there are.

    Examples
    --------
    >>> import numpy as np
    >>> from fidm.stats import redraws
    >>> np.concatenate(list(redraws(4, 2, np.random.default_rng(1)))).shape
    (2, 4)
    """
    if together is None:
        members = list(np.arange(n)[:, None])
    else:
        members = [np.flatnonzero(together == one) for one in np.unique(together)]
    is_even = len({len(one) for one in members}) == 1
    size = max(1, AT_ONCE // n) if is_even else 1
    for first in range(0, times, size):
        drawn = rng.integers(0, len(members), (min(size, times - first), len(members)))
        if is_even:
            yield np.stack(members)[drawn].reshape(len(drawn), -1)
        else:
            yield np.concatenate([members[i] for i in drawn[0]])[None]
