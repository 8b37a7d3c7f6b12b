"""How studies of published data look on a terminal: a list of them, their terms, and what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fidm.cli.console import count, printable, table_of, warn
from fidm.cli.opening import finish
from fidm.datasets.base import Dataset
from fidm.reanalyses.base import Expectation
from fidm.reanalyses.told import NO, Told, about_data, band_text, figure_text, mark

NARROW = 80
"""On a terminal of fewer columns studies stand one below the other, not in a table."""

HEADER = ("name", "what it is", "people", "licence", "files")
"""What the list says of each study."""


def print_json(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print plain values, for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def show_list(rows: Sequence[tuple[str, ...]], console: Console) -> None:
    """A table of studies; on a narrow terminal one below the other."""
    table = table_of(HEADER, rows, left=len(HEADER))
    least = Measurement.get(console, console.options.update(max_width=1_000), table).minimum
    if console.width >= max(NARROW, least):
        console.print(table)
        return
    for name, *rest in rows:
        console.print()
        console.print(Text(printable(name), style="bold"))
        grid = grid_of_terms()
        for term, text in zip(HEADER[1:], rest, strict=True):
            add_term(grid, term, text)
        console.print(grid)
    console.print()


def show_run(told: Told, written: tuple[Path, ...], target: Path, console: Console) -> None:
    """What a study found: its terms, a tick or a cross per number, the summary, and what was written."""
    findings, found = told.findings, told.sections[0]
    console.print(Text(told.study.title, style="bold"))
    console.print(Text(told.study.question, style="italic"))
    console.print()
    console.print(terms(told.loaded.dataset))
    if findings.expectations:
        console.print()
        console.print(_expected(findings.expectations))
    console.print()
    for text in found["paragraphs"]:
        console.print(Text(printable(text)))
        console.print()
    missed = sum(not one.reached for one in findings.expectations)
    if missed:
        of = count(len(findings.expectations), "number")
        rest = " None of these is required." if findings.reached else ""
        warn(console, f"{missed:,} of {of} did not come out; see {NO} above.{rest}")
    if not told.loaded.verified:
        warn(console, told.loaded.notes[-1])
    finish(console, written, target, None)


def terms(dataset: Dataset) -> Table:
    """What a data set is, its licence, whom to cite, and where it is published."""
    grid = grid_of_terms()
    for term, said in about_data(dataset):
        for i, one in enumerate(said):
            address = f" <{one.url}>" if one.url and one.url not in one.text else ""
            add_term(grid, term if not i else "", one.text + address)
    return grid


def grid_of_terms() -> Table:
    """Two columns: a term, and what is said of it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def add_term(grid: Table, term: str, text: str) -> None:
    """Add a term, and what is said of it; as text, whatever it holds."""
    grid.add_row(Text(term), Text(printable(text)))


def _expected(expectations: tuple[Expectation, ...]) -> Table:
    """A line per number that was to come out: a tick or a cross, what was found, the band, and what it is."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for one in expectations:
        tick = Text(mark(one), style="green" if one.reached else "bold red")
        what = one.what if one.required else f"{one.what} (not required)"
        grid.add_row(tick, figure_text(one.found), band_text(one), Text(printable(what)))
    return grid
