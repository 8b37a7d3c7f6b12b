"""``fidm review``: the page on which people look at groundings, accept, mend or reject them."""

from __future__ import annotations

import os
import secrets
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidm.errors import DataError, count
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import note, page, progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def review(
    study: Path,
    *,
    reviewer: str = "",
    port: int = 0,
    sample: int | None = None,
    seed: int = 1,
    task: str | None = None,
    open: Annotated[bool, Parameter(negative="--no-open")] = True,
) -> int:
    """Open a page in the browser on which a person checks and corrects what dialogs were read as.

    The page is served on this machine alone and needs the address that is printed. Every decision is on the
    disk before the page says so. Ctrl-C stops it; the study's tables are then made again with what was
    decided. If the program is stopped in another way, fidm fit and the others do that. Exit code 0: done. 2:
    the study could not be used.

    Parameters
    ----------
    study
        A grounded study.
    reviewer
        Your name, which stands beside every decision; by default the page asks for it.
    port
        The port to listen on; by default any that is free.
    sample
        Draw so many dialogs at random and judge them blind, to say how often the grounder is right.
    seed
        The same seed draws the same dialogs.
    task
        A built-in task or a task file; by default the one that study.toml names.
    open
        Whether to open the browser; --no-open only prints the address.
    """
    try:
        from fidm.review.desk import Desk
        from fidm.review.server import HOST, listen, make_app, serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise DataError(
            f"The review page needs the package {error.name}. Install it with: pip install 'fidm[web]'"
        ) from None
    from fidm.folder import require_grounded
    from fidm.tasks.compile import load_task

    if sample is not None and sample < 1:
        raise DataError(f"--sample is {sample}; it must be 1 or more.")
    if not study.is_dir():
        raise DataError("is not a folder.", source=str(study))
    console = page()
    with listen(port) as sock:
        require_grounded(study)
        with progress_bar() as bars:
            loaded = load_task(task) if task is not None else None
            desk = Desk(study, task=loaded, reviewer=reviewer, on_progress=bars.step)
            if sample is not None:
                desk.sample = desk.draw(reviewer or "fidm review", sample, seed)["name"]
        token = secrets.token_urlsafe(32)
        chosen = sock.getsockname()[1]
        address = f"http://{HOST}:{chosen}/#{token}"
        _say_hello(console, desk.n_segments, address)
        with _opened(address) if open else nullcontext(False) as is_open:
            if open and not is_open:
                note(console, "no browser could be opened; open the address yourself")
                _flush(console)
            serve(make_app(desk, port=chosen, token=token), sock)
    if desk.trail.entries and not desk.trail.path.exists():
        raise DataError(
            "is not there any more: the study was moved or deleted while it was reviewed. What was decided "
            "is wherever it went; run fidm fit on the study where it is now.",
            source=str(desk.trail.path),
        )
    return _finish(console, study)


def _say_hello(console: Console, n_segments: int, address: str) -> None:
    console.print(f"[bold]Review[/] of {count(n_segments, 'segment')}", soft_wrap=True)
    console.print(f"Open {address}", soft_wrap=True, markup=False)
    note(
        console,
        "the address lets in whoever has it, on this machine alone; keep it to yourself",
        "Ctrl-C stops it and brings the study up to date",
    )
    _flush(console)


def _flush(console: Console) -> None:
    """Let the address be read at once by whoever reads a pipe."""
    console.file.flush()


@contextmanager
def _opened(address: str) -> Iterator[bool]:
    """Open the browser by way of a file that its owner alone can read.

    Other people of this machine can see the command line of every program, so the address must not be on it.
    """
    held, name = tempfile.mkstemp(prefix="fidm-review-", suffix=".html")
    try:
        with os.fdopen(held, "w", encoding="utf-8") as file:
            target = escape(address, quote=True)
            file.write(
                f'<!doctype html><meta charset="utf-8"><title>Review</title>'
                f'<meta http-equiv="refresh" content="0; url={target}">'
                f'<p><a href="{target}">Open the review page</a></p>\n'
            )
        try:
            yield webbrowser.open(Path(name).as_uri())
        except webbrowser.Error:
            yield False
    finally:
        Path(name).unlink(missing_ok=True)


def _finish(console: Console, study: Path) -> int:
    """Make the study's tables again with what was decided, and say so."""
    from fidm.grounding.review.apply import bring_up_to_date
    from fidm.present.next import say_next

    with progress_bar() as bars:
        said = bring_up_to_date(study, on_progress=bars.step)
    if said is None:
        console.print("\nNothing new was decided, so nothing was written.")
    else:
        console.print(f"\n{said}", soft_wrap=True, markup=False)
        console.print(f"Wrote steps, segments and grounding to {study}", soft_wrap=True, markup=False)
    console.print(NOT_A_DIAGNOSIS, style="dim")
    say_next(console, study, after="review")
    return 0
