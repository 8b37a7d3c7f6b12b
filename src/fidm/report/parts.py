"""The pieces a report is made of, as plain dicts: sections, tables, figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.plot.style import figure_svg
from fidm.present.numbers import rounded

LOW, HIGH, FLAG = "low", "high", "flag"
"""What a column can be to another one, in whose cells the page shows it: an end of an interval, a remark."""


def section(
    name: str,
    title: str,
    paragraphs: Iterable[str] = (),
    *,
    tables: Iterable[Mapping[str, Any]] = (),
    figures: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a section of the report."""
    return {
        "id": name,
        "title": title,
        "paragraphs": [text for text in paragraphs if text],
        "tables": list(tables),
        "figures": list(figures),
    }


def column(name: str, words: str = "", *, unit: str | None = None, align: str = "right") -> dict[str, Any]:
    """Return a table's column: its name for programs, its words for readers, its unit."""
    return {"name": name, "words": words or name.replace("_", " "), "unit": unit, "align": align}


def with_interval(
    name: str, words: str = "", *, low: str = "", high: str = "", flag: str = "", unit: str | None = None
) -> list[dict[str, Any]]:
    """Return the columns of a number, its interval and, if named, its flag; a page shows them as one.

    Parameters
    ----------
    name, words, unit
        As in :func:`column`.
    low, high : str
        What the columns of the ends are called; by default the name with ``_low`` and ``_high``.
    flag : str
        What the column with a remark's code is called, if there is one.
    """
    whole = column(name, words, unit=unit)
    ends = [(low or f"{name}_low", LOW, "from"), (high or f"{name}_high", HIGH, "to")]
    if flag:
        ends.append((flag, FLAG, "remark"))
    parts = ({**column(own, said, unit=unit), "within": name, "role": role} for own, role, said in ends)
    return [whole, *parts]


def text_column(name: str, words: str = "") -> dict[str, Any]:
    """Return a column of words."""
    return column(name, words, align="left")


def table(
    name: str,
    title: str,
    columns: Sequence[Mapping[str, Any]],
    rows: Iterable[Sequence[Any]],
    *,
    note: str = "",
) -> dict[str, Any]:
    """Return a table; its cells are raw values, rounded to six significant digits."""
    return {
        "id": name,
        "title": title,
        "columns": list(columns),
        "rows": [[raw(cell) for cell in row] for row in rows],
        "note": note,
    }


def table_of(
    name: str, title: str, columns: Sequence[Mapping[str, Any]], frame: pl.DataFrame, *, note: str = ""
) -> dict[str, Any]:
    """Return a data frame as a table, with the columns that are named."""
    chosen = frame.select(one["name"] for one in columns)
    return table(name, title, columns, chosen.iter_rows(), note=note)


def figure(name: str, title: str, drawn: Figure | Axes, *, alt: str, table: str) -> dict[str, Any]:
    """Return a figure as SVG text, with the table that has its numbers.

    Parameters
    ----------
    name, title : str
        Its name in the page, and what stands above it.
    drawn : Figure or Axes
        What a function of :mod:`fidm.plot` gave.
    alt : str
        What it shows, for those who cannot see it.
    table : str
        The id of the table with its numbers.
    """
    whole = drawn.figure if isinstance(drawn, Axes) else drawn
    assert isinstance(whole, Figure)  # noqa: S101
    return {"id": name, "title": title, "alt": alt, "table": table, "svg": figure_svg(whole)}


def raw(value: Any) -> Any:
    """Return a value as JSON knows it, its digits those that matter."""
    if isinstance(value, float):
        return rounded(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
