"""What happens at a cut-off: who is found, who is missed, and who is alarmed for nothing."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fidm.proportion import wilson
from fidm.study.calibrating import check_probability


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
