"""A progress bar on the error stream, if somebody is looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fidm.cli.console import aside


class Bars:
    """Where work reports how far it is."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=None) if progress else None

    def step(self, doing: str, done: int, of: int) -> None:
        """Say what is being done, and how much of it is done."""
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, description=doing, completed=done, total=of)


@contextmanager
def progress_bar() -> Iterator[Bars]:
    """Draw a bar while the block runs; draw nothing where the error stream is no terminal."""
    console = aside()
    if not console.is_terminal:
        yield Bars(None)
        return
    columns = (
        TextColumn("[dim]{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)
