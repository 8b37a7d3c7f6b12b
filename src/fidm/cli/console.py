"""The consoles every verb writes to: no markup surprises, and a closed pipe is not a failure."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class _Console(Console):
    """A console that leaves a closed pipe to :func:`fidm.cli.main.main` instead of exiting with 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def page() -> Console:
    """Return the console for results, on standard output."""
    return _Console(highlight=False)


def aside() -> Console:
    """Return the console for errors and progress, on the error stream."""
    return _Console(highlight=False, stderr=True)


def count(n: int, thing: str) -> str:
    """Return how many there are, in words: "1 dialog", "2 dialogs"."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
