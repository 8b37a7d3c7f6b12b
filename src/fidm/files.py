"""Writing a file so that it is either there whole or not at all, and one process at a time."""

from __future__ import annotations

import errno
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


@contextmanager
def locked(path: Path, *, wait_s: float = -1.0, only_reads: bool = False) -> Iterator[None]:
    """Do what follows while nobody else holds the same lock; the lock ends with the process, however it ends.

    Raises TimeoutError if somebody else holds it for too long, and OSError if it cannot be had at all.

    Parameters
    ----------
    path : Path
        A file that is there for the lock alone, made if need be and left there.
    wait_s : float
        How long to wait, in seconds; below zero as long as it takes.
    only_reads : bool
        Whether what follows writes nothing. It then does without the lock in a folder in which this user may
        not write, such as a backup.
    """
    from filelock import FileLock

    lock = FileLock(path, timeout=wait_s, mode=0o600)
    try:
        lock.acquire(poll_interval=0.01)
    except NotImplementedError:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from None
    except OSError as error:
        if not only_reads or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    try:
        yield
    finally:
        lock.release()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
