"""Where a simulated study is written: a folder that appears whole at the end, or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fidm.errors import DataError
from fidm.files import locked

SIMULATION = "simulation.json"
"""How a study was simulated; a folder without it is not ours to replace."""

LOCK, MARK = "lock", "held"
"""A lock that is held by whoever writes a study, and a file that says so. Where the second is there and the
first is held by nobody, both were left behind by a process that was killed."""


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a place to write a study to, and move it to its own when all went well.

    If the block raises nothing is left behind, and an older study stays as it was. What a process that was
    killed has left beside the target is removed, and an older study that was on its way out is put back.

    Parameters
    ----------
    target : Path
        Where the study is to be.
    overwrite : bool
        Replace an earlier simulated study, with everything in its folder; any other is refused.
    """
    _tidy_up(target)
    _refuse(target, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    old = hidden / "old"
    try:
        with ExitStack() as held:
            with suppress(OSError):  # a disk without such locks
                held.enter_context(locked(hidden / LOCK))
                (hidden / MARK).touch()
            yield hidden / "study"
            _refuse(target, overwrite)  # somebody may have come first
            if target.exists():
                os.replace(target, old)
            try:
                os.replace(hidden / "study", target)
            except BaseException:
                if old.exists():
                    os.replace(old, target)
                raise
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    finally:
        if target.exists() or not old.exists():  # else the older study could not be put back, and stays here
            shutil.rmtree(hidden, ignore_errors=True)


def _is_held(hidden: Path) -> bool | None:
    """Whether somebody is writing to a folder; None where it is not marked, so that nobody knows."""
    if not (hidden / MARK).exists():
        return None
    try:
        with locked(hidden / LOCK, wait_s=0.0):
            return False
    except TimeoutError:
        return True
    except OSError:
        return None


def _tidy_up(target: Path) -> None:
    """Put back an older study that a process was killed over, and remove what else such processes left."""
    own = re.compile(rf"\.{re.escape(target.name)}-[a-z0-9_]{{8}}")  # as tempfile names them
    try:
        beside = [path for path in target.parent.iterdir() if own.fullmatch(path.name)]
    except OSError:
        return
    for hidden in beside:
        if hidden.is_symlink() or not hidden.is_dir():
            continue
        is_held = _is_held(hidden)
        if is_held:
            continue
        if _is_ours(hidden / "old") and not target.is_symlink():
            if target.is_dir() and _is_empty(target):  # it cannot be put back, and must not be lost
                continue
            if not target.exists():
                try:
                    os.replace(hidden / "old", target)
                except OSError:
                    continue
        if is_held is not None:  # what has no mark may be somebody else's
            shutil.rmtree(hidden, ignore_errors=True)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _is_ours(folder: Path) -> bool:
    """Whether a folder is a simulated study."""
    try:
        said = json.loads((folder / SIMULATION).read_text("utf-8"))
        return bool(said.get("experiment") == "simulate")
    except (OSError, ValueError, AttributeError):
        return False


def _refuse(target: Path, overwrite: bool) -> None:
    """Raise unless a folder may be written to."""
    if target.is_symlink():
        raise DataError("is a link. Name the folder itself.", source=str(target))
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError("is a file, not a folder.", source=str(target))
    here = Path.cwd().resolve()
    if target.resolve() == here:
        raise DataError("is the folder you are in. Name a new one.", source=str(target))
    if target.resolve() in here.parents:
        raise DataError("holds the folder you are in. Name a new one.", source=str(target))
    if _is_empty(target):
        return
    if not overwrite:
        raise DataError(
            "exists already. Choose another folder, or replace it: overwrite=True (on the command line: "
            "--overwrite).",
            source=str(target),
        )
    if not _is_ours(target):
        raise DataError(
            f"is no simulated study: it has no {SIMULATION} of ours. It is left as it is; choose another "
            "folder.",
            source=str(target),
        )
