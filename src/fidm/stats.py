"""Shares of people or of segments, and how sure one can be of them."""

from __future__ import annotations

from scipy.stats import binomtest


def wilson(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of Wilson (1927) of a share.

    Parameters
    ----------
    right, n : int
        How many there are, and of how many; of none, the share could be anything.
    level : float
        How often such intervals hold the truth.

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
