"""Tables as labs keep them: Parquet, CSV with commas, semicolons or tabs, Excel and OpenDocument sheets.

What looks like an id stays text: ids themselves, columns with leading zeros ("007"), and numbers with more
digits than a number holds. Ids are never missing values: a participant may be called NA.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from polars import selectors as cs

from fidm.errors import DataError, meant
from fidm.io.formats.base import BrokenError, read_file

TEXTS, SHEETS = (".csv", ".tsv"), (".xlsx", ".xlsm", ".xls", ".ods")
SUFFIXES = (".parquet", *TEXTS, *SHEETS)
"""What a table may be kept as."""

NAMES = ("participant", "episode", "segment")
"""Columns that hold names, whatever they look like."""

MISSING = ["", "NA", "N/A", "NaN", "nan", "null"]
"""What stands for a missing value in a table that is not Parquet."""

SEPARATORS = ",;\t"
"""What may stand between columns."""

LIKE_AN_ID = r"^\s*[-+]?(0[0-9]|[0-9]{16})"
"""Numbers that are names: with leading zeros, or longer than a number keeps exactly."""


def read_table(path: Path, *, ids: Sequence[str] = NAMES, sheet: str = "") -> pl.DataFrame:
    """Read one table; ``ids`` are columns that hold names, ``sheet`` is that of a workbook, or its first."""
    with _readable(path):
        if path.suffix == ".parquet":
            return pl.read_parquet(path, glob=False)
        if path.suffix.casefold() in SHEETS:
            found = pl.read_excel(
                path, sheet_name=_sheet(path, sheet), infer_schema_length=None, raise_if_empty=False
            )
            return _tidy(found, ids)
        return _read_text(path, ids)


def table_columns(path: Path) -> list[str]:
    """Return the names of a table's columns."""
    with _readable(path):
        if path.suffix == ".parquet":
            return list(pl.read_parquet_schema(path))
        if path.suffix.casefold() in SHEETS:
            return read_table(path).columns
        text, between = _text(path)
        return pl.read_csv(io.StringIO(text), separator=between, n_rows=0).columns


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets; nothing for other tables."""
    if path.suffix.casefold() not in SHEETS:
        return []
    import fastexcel

    with _readable(path):
        try:
            return list(fastexcel.read_excel(path).sheet_names)
        except fastexcel.FastExcelError:
            why = "is not a workbook that can be read. Was it copied whole?"
            raise DataError(why, source=str(path)) from None


def separator_of(text: str) -> str:
    """Return what stands between the columns of a table, by its first line: a comma, a semicolon or a tab.

    Examples
    --------
    >>> separator_of("id;age"), separator_of("id")
    (';', ',')
    """
    first = text.lstrip("\r\n").split("\n", 1)[0]
    return max(SEPARATORS, key=first.count)  # of two that are as frequent, the first


def has_decimal_commas(text: str, between: str) -> bool:
    """Return whether numbers are written 1,5; only where columns have something else between them."""
    if between == ",":
        return False
    cell = rf'(?:^|{between})\s*"?-?[0-9]+,[0-9]+"?\s*(?={between}|\r?$)'
    return re.search(cell, text, re.MULTILINE) is not None


def _text(path: Path) -> tuple[str, str]:
    """The text of a file, and what stands between its columns."""
    try:
        text = read_file(path)
    except BrokenError as broken:
        raise DataError(f"{broken.flaw.what} {broken.flaw.hint}".strip(), source=str(path)) from None
    return text, separator_of(text)


def _read_text(path: Path, ids: Sequence[str]) -> pl.DataFrame:
    """A CSV file, read twice: as what its cells look like, and as text."""
    text, between = _text(path)
    data = text.encode()
    columns = pl.read_csv(data, separator=between, n_rows=0).columns
    names = [name for name in columns if name in ids]
    table = pl.read_csv(
        data,
        separator=between,
        decimal_comma=has_decimal_commas(text, between),
        schema_overrides=dict.fromkeys(names, pl.String),
        null_values=MISSING,
        infer_schema_length=None,
    )
    numbers = table.select(cs.numeric()).columns
    if not numbers and not names:
        return table
    texts = pl.read_csv(data, separator=between, columns=[*names, *numbers], infer_schema=False)
    return table.with_columns(
        texts[name] for name in texts.columns if name in names or texts[name].str.contains(LIKE_AN_ID).any()
    )


def _sheet(path: Path, name: str) -> str:
    """The sheet that is asked for, or the first."""
    known = sheet_names(path)
    if name and name not in known:
        raise DataError(f"has no sheet {name!r}. {meant([name], known)}", source=str(path))
    return name or known[0]


def _tidy(table: pl.DataFrame, ids: Sequence[str]) -> pl.DataFrame:
    """A sheet without empty rows and unnamed empty columns; numbers are numbers, ids are text."""
    empty = [name for name in table.columns if name.startswith("__UNNAMED__") and table[name].is_null().all()]
    table = table.drop(empty).rename(str.strip)
    if table.width:
        table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    return table.with_columns(_as_text(one) if one.name in ids else typed(one) for one in table)


def _as_text(column: pl.Series) -> pl.Series:
    """Ids as text; a sheet keeps 7 as 7.0."""
    return (column if column.dtype == pl.String else typed(column)).cast(pl.String)


def typed(column: pl.Series) -> pl.Series:
    """Return a column with missing values; as numbers where all its texts are, whole where all of these are.

    Examples
    --------
    >>> typed(pl.Series(["70", "NA", "72"])).to_list(), typed(pl.Series(["007"])).to_list()
    ([70, None, 72], ['007'])
    """
    if column.dtype == pl.String:
        column = column.set(column.is_in(MISSING), None)
        number = column.cast(pl.Float64, strict=False)
        if (
            not column.null_count() == number.null_count() < len(column)
            or column.str.contains(LIKE_AN_ID).any()
        ):
            return column
        column = number
    is_whole = column.dtype == pl.Float64 and column.is_finite().all() and (column % 1 == 0).all()
    return column.cast(pl.Int64) if is_whole and column.null_count() < len(column) else column


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say in a sentence why a file cannot be read."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or 'input error'}.", source=str(path)) from None
    except pl.exceptions.PolarsError as error:
        # The library's own message may quote a cell; a participant's words must not reach a log.
        kind = type(error).__name__
        hint = "Do all rows have as many cells as the first? " if path.suffix.casefold() in TEXTS else ""
        raise DataError(
            f"is not a table that can be read ({kind}). {hint}".strip(), source=str(path)
        ) from None
