"""Writing a file so that it is either there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fidm.errors import DataError


@contextmanager
def whole_file(path: str | Path, *, mode: int | None = None) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to, and move it there when all went well.

    If the block raises, nothing is left behind and an older file stays as it was.

    Parameters
    ----------
    path : path
        Where the file is to be.
    mode : int, optional
        Who may read and write it; by default what the process gives new files.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        os.chmod(part, 0o666 & ~_umask() if mode is None else mode)
        try:
            os.replace(part, target)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
