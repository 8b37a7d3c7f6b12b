"""What the checks of a classification found, in words, for its page and its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fidm.study.classified import Classification
from fidm.study.leakage import FOLD_NUMBER, LEVEL, SCRAMBLED
from fidm.study.wording import DASH, briefly, percent, span, times

UNSURE = 0.10
"""A check whose interval reaches further than this to either side cannot be judged."""


def check_level() -> str:
    """Return the level of the intervals of checks: "99.9 %"."""
    return f"{LEVEL:.1%}".replace("%", " %")


def is_unsure(row: Mapping[str, Any]) -> bool:
    """Return whether the check of the fold passed only because its interval is so wide."""
    low, high = row["low"], row["high"]
    return row["passed"] is not False and (low is None or high is None or not (high - low) / 2 <= UNSURE)


def say_fold(row: Mapping[str, Any]) -> str:
    """Return what features that name the fold add to a representation, and whether that is well."""
    verdict = {
        True: "nothing, as it must be",
        False: "it must be nothing, so the check FAILED",
        None: "not judged",
    }[row["passed"]]
    if is_unsure(row):
        verdict = "too uncertain to judge with so few people"
    return (
        "Features that name the fold, and the answer for those who are judged, add "
        f"{percent(row['value'], sign=True)} points of AUC to {briefly(row['representation'])} "
        f"({check_level()}: {span(row['low'], row['high'], sign=True)}): {verdict}."
    )


def permutation_p(p: float | None, n: int) -> str:
    """Return the p of n scrambles; at its least it is only a bound.

    Examples
    --------
    >>> from fidm.study.check_words import permutation_p
    >>> permutation_p(1 / 21, 20), permutation_p(0.5, 20)
    ('≤ 0.048', '0.500')
    """
    if p is None or not math.isfinite(p):
        return DASH
    words = f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"
    return f"≤ {words}" if p <= (1 + 1e-9) / (1 + n) else words


def check_words(found: Classification) -> str:
    """Return all checks in one line, for when none failed."""
    said = []
    scrambled = found.checks.filter(check=SCRAMBLED)
    values = scrambled["value"].drop_nulls().drop_nans().to_list()
    if values:
        low, high = percent(min(values)), percent(max(values))
        gave = low if low == high else f"{low} to {high}"
        said.append(f"labels scrambled {times(int(scrambled['n'][0]))} gave an AUC of {gave} (50 expected)")
    said += [
        f"{percent(row['value'], sign=True)} points from features that name the fold (0 expected)"
        for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True)
    ]
    return "; ".join(said)
