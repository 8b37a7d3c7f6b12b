"""Markdown that shows what a study calls things as it is: escaped text, tables, and cells with intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from fidm.study.wording import DASH, percent, span

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$@^]|:(?=//|\w+:))")
"""Characters that Markdown may take for more than themselves, in the middle of a line."""


def plain_text(text: object) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> from fidm.study.markdown import plain_text
    >>> print(plain_text("major_ncd | *new*"))
    major\_ncd \| \*new\*
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return SPECIAL.sub(r"\\\1", line)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; the first columns are words, the others numbers. Cells are not escaped."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return ["", *(f"| {' | '.join(row)} |" for row in (header, rule, *rows)), ""]


def cell(row: Mapping[str, Any] | None, name: str = "", *, sign: bool = False) -> str:
    """Return a value and its interval in per cent: "70.4 (61.2–78.3)"; a dash where it is not known."""
    value, low, high = (f"{name}", f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    if row is None or row[value] is None:
        return DASH
    return f"{percent(row[value], sign=sign)} ({span(row[low], row[high], sign=sign)})"


def rows_of(frame: pl.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of these representations, in their order."""
    return [row for name in names for row in frame.filter(representation=name).iter_rows(named=True)]
