"""How the study of the Space Adventure Task puts numbers into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fidm.reanalyses.base import Findings
from fidm.reanalyses.space_adventure_figures import WORDS
from fidm.report.numbers import number_text

Row = Mapping[str, Any]


def said(row: Row, value: str = "value") -> str:
    """Return a number and its interval.

    Examples
    --------
    >>> said({"value": 0.8936, "low": 0.8203, "high": 0.9340})
    '0.894 (0.820 to 0.934)'
    """
    if row["low"] is None or row["low"] != row["low"]:
        return number_text(row[value])
    return f"{number_text(row[value])} ({number_text(row['low'])} to {number_text(row['high'])})"


def more_or_less(row: Row, more: str, less: str, unsure: str, *, chance: float) -> str:
    """Return which of three words an interval calls for: above chance, below it, or neither.

    Examples
    --------
    >>> more_or_less({"low": 0.6, "high": 0.9}, "slower", "faster", "alike", chance=0.5)
    'slower'
    """
    if row["low"] is None or row["low"] != row["low"]:
        return unsure
    return more if row["low"] > chance else less if row["high"] < chance else unsure


def one_row(frame: pl.DataFrame, **keys: str) -> dict[str, Any]:
    """Return the one row with these values."""
    return frame.filter(**keys).row(0, named=True)


def in_words(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the same table with the names in these columns in words."""
    return frame.with_columns(pl.col(name).replace(WORDS) for name in columns)


def how_drawn(findings: Findings) -> str:
    """Return how intervals were made."""
    return (
        f"Intervals hold 95 % of {findings.record.settings['bootstrap']:,} bootstrap draws of people (seed "
        f"{findings.record.seed}), within groups where groups are compared."
    )
