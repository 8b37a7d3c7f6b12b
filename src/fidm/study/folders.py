"""Where a simulated study is written: a folder that appears whole at the end, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fidm.errors import DataError

SIMULATION = "simulation.json"
"""How a study was simulated; a folder without it is not ours to replace."""


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a place to write a study to, and move it to its own when all went well.

    If the block raises nothing is left behind, and an older study stays as it was.

    Parameters
    ----------
    target : Path
        Where the study is to be.
    overwrite : bool
        Replace an earlier simulated study, with everything in its folder; any other is refused.
    """
    _refuse(target, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    old = hidden / "old"
    try:
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


def _refuse(target: Path, overwrite: bool) -> None:
    """Raise unless a folder may be written to."""
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError("is a file, not a folder.", source=str(target))
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise DataError(
            "exists already. Choose another folder, or replace it: overwrite=True (on the command line: "
            "--overwrite).",
            source=str(target),
        )
    try:
        ours = json.loads((target / SIMULATION).read_text("utf-8")).get("experiment") == "simulate"
    except (OSError, ValueError, AttributeError):
        ours = False
    if not ours:
        raise DataError(
            f"is no simulated study: it has no {SIMULATION} of ours. It is left as it is; choose another "
            "folder.",
            source=str(target),
        )
