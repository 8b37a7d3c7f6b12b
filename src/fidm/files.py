"""Files and folders: whole or not there, held by one process at a time, read by their owner alone.

A :class:`PrivateFile` is a SQLite file for what must be kept and must not be seen. Several threads and
several processes may use one at once, and a killed run loses only what was under way.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from fidm.errors import DataError, FidmError

WRITING = ".fidm-writing-"
"""How the name of a folder begins in which somebody writes what is to appear in the folder around it."""


@contextmanager
def whole_file(path: str | Path, *, mode: int | None = None) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to, and move it there when all went well.

    If the block raises, nothing is left behind and an older file stays as it was. ``mode`` is who may read
    and write it; by default what the process gives new files.
    """
    target = Path(path)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        os.chmod(part, 0o666 & ~_umask() if mode is None else mode)
        with writing(target):
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why something cannot be written."""
    from polars.exceptions import PolarsError

    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}.", source=str(path)) from None
    except PolarsError:
        raise DataError("cannot be written. Is the disk full?", source=str(path)) from None


@contextmanager
def whole_folder(folder: Path, *, replaced: Callable[[], Iterable[str]]) -> Iterator[Path]:
    """Give a hidden place in a folder to write to; all that is in it appears at once when all went well.

    If the block raises, the folder stays as it was, or is not there if it was not. If the process is killed
    while it replaces files, the folder :func:`is_interrupted` until :func:`recover_folder` puts them back.
    What is in the folder and is not replaced stays; folders in it are added to.

    ``replaced`` gives what in the folder goes when the new comes, besides what is there by the same name. It
    may refuse by raising, and is asked before anything is written and again before anything is replaced.
    """
    recover_folder(folder)
    replaced()
    was_there = folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(dir=folder, prefix=WRITING))
    try:
        with ExitStack() as held:
            with suppress(OSError):  # a disk without such locks
                held.enter_context(locked(hidden / "lock"))
            (hidden / "new").mkdir()  # only now, so that whoever has this and not the lock is no more
            yield hidden / "new"
            with writing(folder):
                _swap(folder, hidden, list(replaced()))
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if not was_there:
            with suppress(OSError):  # something is in it
                folder.rmdir()


def _swap(folder: Path, hidden: Path, gone: list[str]) -> None:
    """Move what is replaced to ``old`` and what is new to its place; all or nothing."""
    new, old = hidden / "new", hidden / "old"
    placed = list(_placed(new, folder, gone))
    (hidden / "plan.json").write_text(json.dumps({"gone": gone, "placed": placed}), "utf-8")
    old.mkdir()  # while it stands, nobody reads
    try:
        for name in dict.fromkeys([*gone, *placed]):
            _move(name, folder, old)
        for name in placed:
            _move(name, new, folder)
        os.replace(old, hidden / "done")
    except BaseException:
        _put_back(folder, hidden)
        raise


def _placed(new: Path, folder: Path, gone: Iterable[str], within: str = "") -> Iterator[str]:
    """What is moved from the one folder to the other: files, and folders that the other does not keep."""
    for path in sorted((new / within).iterdir()):
        name = path.relative_to(new).as_posix()
        if path.is_dir() and (folder / name).is_dir() and name not in gone:
            yield from _placed(new, folder, gone, name)
        else:
            yield name


def _move(name: str, source: Path, target: Path) -> None:
    """Move a file or folder, if it is there."""
    if os.path.lexists(source / name):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(source / name, target / name)


def _put_back(folder: Path, hidden: Path) -> None:
    """Undo a swap, however far it or its undoing came."""
    new, old = hidden / "new", hidden / "old"
    plan = json.loads((hidden / "plan.json").read_text("utf-8"))
    for name in plan["placed"]:
        if not os.path.lexists(new / name):
            _move(name, folder, new)
    for name in dict.fromkeys([*plan["gone"], *plan["placed"]]):
        _move(name, old, folder)
    shutil.rmtree(old)


def recover_folder(folder: Path) -> bool:
    """Put back what a process was killed over while it replaced it; return whether there was anything.

    What else such processes left is removed. Where somebody replaces files just now, that is an error.
    """
    was_interrupted = False
    for hidden in sorted(folder.glob(f"{WRITING}*/")):
        if not (hidden / "new").is_dir():  # somebody begins just now
            continue
        is_open = (hidden / "old").exists()
        with ExitStack() as held:
            try:
                held.enter_context(locked(hidden / "lock", wait_s=0.0))
            except TimeoutError:
                if is_open:
                    raise DataError("is being written by another process.", source=str(folder)) from None
                continue
            except OSError:  # a disk without such locks: who knows
                if not is_open:
                    continue
            if is_open:
                with writing(folder):
                    _put_back(folder, hidden)
                was_interrupted = True
        shutil.rmtree(hidden, ignore_errors=True)
    return was_interrupted


def is_interrupted(folder: Path) -> bool:
    """Whether a folder's files are being replaced, or whoever did was killed; they may not fit together."""
    return any(folder.glob(f"{WRITING}*/old"))


def contents(folder: Path) -> list[str]:
    """Return what is in a folder, apart from what somebody is writing."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return [name for name in names if not name.startswith(WRITING)]


@contextmanager
def locked(path: Path, *, wait_s: float = -1.0, only_reads: bool = False) -> Iterator[None]:
    """Do what follows while nobody else holds the same lock; the lock ends with the process, however it ends.

    The file is there for the lock alone, made if need be and left there. Raises TimeoutError if somebody else
    holds it longer than ``wait_s`` (below zero: waits as long as it takes), and OSError if it cannot be had
    at all. What ``only_reads`` does without the lock in a folder in which this user may not write, such as a
    backup.
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


def hash_file(path: str | Path) -> str:
    """Return the SHA-256 of a file's content."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


BUSY_S = 60.0
"""How long to wait for another process."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds, and how that is said."""

    table: str  # the SQL statement that makes its table if it is not there
    # What marks a file as one of these.
    application_id: int
    version: int
    what: str  # what it holds, such as ``"answers"``, which is also what its table is called
    kept: str  # what is kept if the file cannot be used any more, a sentence
    again: str  # what happens if a damaged file is moved away, a sentence
    error: type[FidmError]  # what is raised


class PrivateFile:
    """A file with one table; a class below says what it holds.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.
    """

    contents: ClassVar[Contents]

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The file is made here, not by SQLite, so that nobody else can read it for even a moment;
            # SQLite gives its companions the same rights.
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                if self.path.stat().st_mode & 0o077 and os.name == "posix":
                    self.path.chmod(0o600)
        except OSError as error:
            raise self._error(f"The file of {self.contents.what} cannot be made: {error.strerror}.") from None
        self._connection: sqlite3.Connection | None = None
        with self._explained():
            connection = sqlite3.connect(
                self.path, timeout=BUSY_S, check_same_thread=False, isolation_level=None
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def __len__(self) -> int:
        with self._use() as connection:
            return int(connection.execute(f"SELECT COUNT(*) FROM {self.contents.what}").fetchone()[0])  # noqa: S608

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to one thread at a time; SQLite's errors become ones that say what to do."""
        with self._lock, self._explained():
            if self._connection is None:
                raise self._error(f"The file of {self.contents.what} was closed before.")
            yield self._connection

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _damaged(self) -> FidmError:
        """Return the error that says that the file does not hold what it should."""
        return self._error(
            f"The file of {self.contents.what} is damaged or is no SQLite file. Move it away (or delete it) "
            f"and run again: {self.contents.again}"
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Some network drives cannot do WAL; SQLite then keeps to its older journal, which is as safe.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        own = self.contents
        if tables and (application != own.application_id or version != own.version):
            raise self._error(
                f"This SQLite file holds something else, or {own.what} of another version of fidm. "
                f"Move it away, or name another file for the {own.what}."
            )
        connection.execute(own.table)
        connection.execute(f"PRAGMA application_id = {own.application_id}")
        connection.execute(f"PRAGMA user_version = {own.version}")
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = getattr(error, "sqlite_errorname", "") or "unknown reason"
            raise self._error(
                f"The file of {self.contents.what} cannot be used ({reason}). Is the disk full, the file "
                f"locked by another program, or the folder read-only? {self.contents.kept}"
            ) from None
        except sqlite3.DatabaseError:
            raise self._damaged() from None

    def _error(self, message: str) -> FidmError:
        return self.contents.error(message, source=str(self.path))
