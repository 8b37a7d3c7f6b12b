"""What every verb writes to: consoles without markup surprises, tables that line up, progress bars."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fidm.doctor import Checkup


class _Console(Console):
    """A console that leaves a closed pipe to :func:`fidm.cli.main.main` instead of exiting with 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        super().print(*objects, crop=crop, **options)


class _Lines(Table):
    """A table that grows beyond a narrow terminal rather than break its numbers in two."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        least = Measurement.get(console, options.update(max_width=1_000), self).minimum
        if least > options.max_width:
            options = options.update(width=least, max_width=least)
        yield from super().__rich_console__(console, options)


SHORT = 16
"""Cells up to so many characters are not broken into lines."""


def page() -> Console:
    """Return the console for results, on standard output."""
    return _Console(highlight=False)


def aside() -> Console:
    """Return the console for errors and progress, on the error stream."""
    return _Console(highlight=False, stderr=True)


def printable(text: str) -> str:
    """Return a text without what a terminal would obey: names of columns and classes come from files."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def folded(text: str, width: int) -> str:
    r"""Return a name in lines of so many characters that end at spaces and underscores, where they can.

    Examples
    --------
    >>> folded("severity_of_impairment: mild / none", 16)
    'severity_of_\nimpairment: mild\n/ none'
    """
    lines = [""]
    for part in re.findall(rf"[^\s_]{{1,{width}}}[\s_]*|[\s_]+", text):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """Return a table that lines up: the first ``left`` columns, which are words, then numbers."""
    table = _Lines(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for i, name in enumerate(header):
        width = max((cell_len(line) for row in rows for line in row[i].split("\n")), default=0)
        is_words = 0 < i < left and width > SHORT
        table.add_column(
            name,
            justify="left" if i < left else "right",
            no_wrap=not is_words,
            overflow="fold",
            min_width=None if is_words else max(width, cell_len(name)),
        )
    for row in rows:
        table.add_row(*(Text("\n".join(map(printable, cell.split("\n")))) for cell in row))
    return table


def note(console: Console, *sentences: str) -> None:
    """Print what is to be said about a table, quietly."""
    for sentence in sentences:
        console.print(Text(_lines(console, f"· {sentence}")), style="dim", soft_wrap=True)


def warn(console: Console, *sentences: str) -> None:
    """Print what a reader must not miss."""
    for sentence in sentences:
        console.print(Text.assemble(("!", "yellow"), _lines(console, f"! {sentence}")[1:]), soft_wrap=True)


def state(console: Console, *sentences: str) -> None:
    """Print what was found."""
    for sentence in sentences:
        console.print(Text(_lines(console, sentence)), soft_wrap=True)


def _lines(console: Console, sentence: str) -> str:
    """A sentence in lines that end between words and fit a terminal; in one line where there is none."""
    if not console.is_terminal:
        return printable(sentence)
    wrapped = textwrap.TextWrapper(
        console.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return wrapped.fill(printable(sentence))


CHECKED = {"ok": ("✓", "green"), "lacking": ("–", "yellow"), "problem": ("✗", "bold red")}
"""How what was looked at is marked, and in which colour."""


def show_checkup(found: Checkup, console: Console) -> None:
    """Print what this machine has, and below each thing it lacks what to do about it."""
    for one in found.checks:
        line = Text.assemble(CHECKED[one.status], f" {one.name:<15} ", printable(one.said))
        console.print(line, soft_wrap=True)
        if one.remedy:
            console.print(Text(f"    {printable(one.remedy)}", "dim"), soft_wrap=True)
    console.print()
    state(console, "fidm can do its work here." if found.can_work else "fidm cannot do its work: see ✗.")


class RateColumn(ProgressColumn):
    """How many are done per second, or how long one takes."""

    def render(self, task: Task) -> Text:
        """Return the rate in words."""
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:,.0f}/s" if speed >= 1 else f"{1 / speed:,.1f} s each", style="dim")


class Bars:
    """Where work reports how far it is."""

    def __init__(self, progress: Progress | None, doing: str) -> None:
        self._progress = progress
        self._bar = progress.add_task(doing, total=None) if progress else None

    def step(self, doing: str, done: int, of: int) -> None:
        """Say what is being done, and how much of it is done."""
        if self._progress is not None and self._bar is not None:
            if doing != self._progress.tasks[0].description:  # another piece of work has a rate of its own
                self._progress.reset(self._bar)
            self._progress.update(self._bar, description=doing, completed=done, total=of)


@contextmanager
def progress_bar(doing: str = "") -> Iterator[Bars]:
    """Draw a bar with the rate and the time left while the block runs.

    Nothing is drawn where the error stream is no terminal.
    """
    console = aside()
    if not console.is_terminal:
        yield Bars(None, doing)
        return
    columns = (
        TextColumn("[dim]{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress, doing)
