"""Vectors of what people said, kept in one SQLite file so that nobody is encoded twice.

One row per text: its key is the hash of everything the vector depends on (the encoder's files, how the text
is cut, how token vectors are pooled, and the text), its value the vector. The file holds no text. A vector
can still betray what was said, and who has a text can find out whether it is in here, so the file belongs
into the study's folder and can be read by its owner alone. Several threads and several processes may use it
at once, and a killed run loses only what was under way.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError

Vector = NDArray[np.float32]

APPLICATION_ID = 0x46494456
"""What marks the file as one of these: "FIDV"."""

VERSION = 1
BUSY_S = 60.0
KEYS_AT_ONCE = 500
"""How many rows one query asks for."""

STORED = np.dtype("<f4")
"""How numbers are stored, on every machine."""

_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (
    key TEXT PRIMARY KEY,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
"""


class VectorCache:
    """A file of vectors.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, VectorCache(f"{folder}/vectors.sqlite") as cache:
    ...     cache.put({"a": np.ones(3, dtype=np.float32)})
    ...     sorted(cache.get(["a", "b"])), len(cache)
    (['a'], 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # The file is made here, not by SQLite, so that nobody else can read it for even a moment;
            # SQLite gives its companions the same rights.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise DataError(
                f"The file of vectors cannot be made: {error.strerror}.", source=str(path)
            ) from None
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

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        """Return those of these vectors that are there; one without numbers is of a text without tokens."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Vector] = {}
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            some = wanted[first : first + KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, dimension, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608
            with self._lock, self._explained():
                rows = self._open().execute(query, some).fetchall()
            for key, dimension, raw, checksum in rows:
                found[key] = self._read(key, dimension, raw, checksum)
        return found

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep these vectors, all or none of them; those that are there already stay."""
        rows = []
        for key, vector in vectors.items():
            raw = np.ascontiguousarray(vector, dtype=STORED).tobytes()
            rows.append((key, len(vector), raw, _checksum(key, raw)))
        with self._lock, self._explained():
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "INSERT OR IGNORE INTO vectors (key, dimension, vector, checksum) VALUES (?, ?, ?, ?)",
                    rows,
                )
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def __len__(self) -> int:
        with self._lock, self._explained():
            return int(self._open().execute("SELECT COUNT(*) FROM vectors").fetchone()[0])

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"VectorCache({str(self.path)!r})"

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise DataError("The file of vectors was closed before.", source=str(self.path))
        return self._connection

    def _read(self, key: str, dimension: object, raw: object, checksum: object) -> Vector:
        if (
            not isinstance(raw, bytes)
            or not isinstance(dimension, int)
            or len(raw) != dimension * STORED.itemsize
            or checksum != _checksum(key, raw)
        ):
            raise self._damaged()
        return np.frombuffer(raw, dtype=STORED).astype(np.float32)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Some network drives cannot do WAL; SQLite then keeps to its older journal, which is as safe.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if tables and (application != APPLICATION_ID or version != VERSION):
            raise DataError(
                "This SQLite file holds something else, or vectors of another version of fidm. "
                "Name another file for the vectors.",
                source=str(self.path),
            )
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into ones that say what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = getattr(error, "sqlite_errorname", "") or "unknown reason"
            raise DataError(
                f"The file of vectors cannot be used ({reason}). Is the disk full, the file locked by "
                "another program, or the folder read-only? What was encoded so far is kept.",
                source=str(self.path),
            ) from None
        except sqlite3.DatabaseError:
            raise self._damaged() from None

    def _damaged(self) -> DataError:
        return DataError(
            "The file of vectors is damaged or is no SQLite file. Move it away (or delete it) and run again: "
            "its vectors are then made anew.",
            source=str(self.path),
        )


def _checksum(key: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(key.encode("ascii", "replace")))
