"""How studies put numbers into words: a number with its interval, and the words an interval calls for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm.reanalyses.base import Findings
from fidm.report.numbers import number_text

Row = Mapping[str, Any]
"""A row of a table of findings."""


def said(row: Row, value: str = "value", low: str = "low", high: str = "high") -> str:
    """Return a number and its interval, where it has one.

    Examples
    --------
    >>> said({"value": 0.8936, "low": 0.8203, "high": 0.9340})
    '0.894 (0.820 to 0.934)'
    """
    if row[value] is None:
        return "an unknown value"
    if row[low] is None or row[low] != row[low]:
        return number_text(row[value])
    return f"{number_text(row[value])} ({number_text(row[low])} to {number_text(row[high])})"


def more_or_less(row: Row, more: str, less: str, unsure: str, *, chance: float) -> str:
    """Return which of three words an interval calls for: above chance, below it, or neither.

    Examples
    --------
    >>> more_or_less({"low": 0.6, "high": 0.9}, "slower", "faster", "alike", chance=0.5)
    'slower'
    """
    if row["low"] is None or row["low"] != row["low"]:
        return unsure
    return against(row["low"], row["high"], chance, more, less, unsure)


def against(low: float, high: float, chance: float, above: str, below: str, neither: str) -> str:
    """Return which of three texts an interval calls for."""
    return above if low > chance else below if high < chance else neither


def one_row(frame: pl.DataFrame, **keys: Any) -> dict[str, Any]:
    """Return the one row with these values."""
    return frame.filter(**keys).row(0, named=True)


def how_drawn(findings: Findings, whom: str) -> str:
    """Return how intervals were made: of draws of whom."""
    return (
        f"Intervals hold 95 % of {findings.record.settings['bootstrap']:,} bootstrap draws of {whom} (seed "
        f"{findings.record.seed})."
    )
