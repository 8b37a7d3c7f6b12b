"""A progress bar on the error stream, if somebody is looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
from rich.text import Text

from fidm.cli.console import aside


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

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=None) if progress else None

    def step(self, doing: str, done: int, of: int) -> None:
        """Say what is being done, and how much of it is done."""
        if self._progress is not None and self._bar is not None:
            if doing != self._progress.tasks[0].description:  # another piece of work has a rate of its own
                self._progress.reset(self._bar)
            self._progress.update(self._bar, description=doing, completed=done, total=of)


@contextmanager
def progress_bar(*, rates: bool = False) -> Iterator[Bars]:
    """Draw a bar while the block runs; draw nothing where the error stream is no terminal.

    Parameters
    ----------
    rates
        Also show the rate and the time left.
    """
    console = aside()
    if not console.is_terminal:
        yield Bars(None)
        return
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("[dim]{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    if rates:
        columns = (*columns, RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)
