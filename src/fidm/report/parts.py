"""The pieces a report is made of, as plain dicts: sections, tables, figures; and how a cell is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.plot.vector import figure_svg
from fidm.report.known import rounded

Progress = Callable[[str, int, int], None]

PERCENT = "%"
"""The unit of shares: a cell holds a number from 0 to 1, and the page shows per cent."""

MINUS, DASH = "−", "–"

DIGITS = 6
"""How many significant digits a table keeps; the page shows three of them."""


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
        return rounded(value, digits=DIGITS)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def cell_text(value: Any, unit: str | None = None) -> str:
    """Return a cell as the page shows it.

    Examples
    --------
    >>> cell_text(0.1234, "%"), cell_text(-1.5), cell_text(12345), cell_text(None), cell_text(True)
    ('12.3 %', '−1.50', '12,345', '–', 'yes')
    """
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not math.isfinite(value):
        return DASH
    if isinstance(value, int | float) and unit == PERCENT:
        return f"{100 * value:.1f} %".replace("-", MINUS)
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".removesuffix(".")
        return ("0" if value == 0 else text).replace("-", MINUS)
    return str(value)


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
