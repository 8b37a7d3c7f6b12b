"""Vectors of what people said, kept in one SQLite file so that nobody is encoded twice.

One row per text: its key is the hash of everything the vector depends on (the encoder's files, how the text
is cut, how token vectors are pooled, and the text), its value the vector. The file holds no text. A vector
can still betray what was said, and who has a text can find out whether it is in here, so the file belongs
into the study's folder and can be read by its owner alone. Several threads and several processes may use it
at once, and a killed run loses only what was under way.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm.private import Contents, PrivateFile

Vector = NDArray[np.float32]

KEYS_AT_ONCE = 500
"""How many rows one query asks for."""

STORED = np.dtype("<f4")
"""How numbers are stored, on every machine."""

CONTENTS = Contents(
    table="""
CREATE TABLE IF NOT EXISTS vectors (
    key TEXT PRIMARY KEY,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
""",
    application_id=0x46494456,  # "FIDV"
    version=1,
    what="vectors",
    kept="What was encoded so far is kept.",
    again="its vectors are then made anew.",
    error=DataError,
)


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
        self._file = PrivateFile(path, CONTENTS)
        self.path = self._file.path

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        """Return those of these vectors that are there; one without numbers is of a text without tokens."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Vector] = {}
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            some = wanted[first : first + KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, dimension, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608
            with self._file.use() as connection:
                rows = connection.execute(query, some).fetchall()
            for key, dimension, raw, checksum in rows:
                found[key] = self._read(key, dimension, raw, checksum)
        return found

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep these vectors, all or none of them; those that are there already stay."""
        rows = []
        for key, vector in vectors.items():
            raw = np.ascontiguousarray(vector, dtype=STORED).tobytes()
            rows.append((key, len(vector), raw, _checksum(key, raw)))
        with self._file.use() as connection:
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
        with self._file.use() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM vectors").fetchone()[0])

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
        self._file.close()

    def _read(self, key: str, dimension: object, raw: object, checksum: object) -> Vector:
        if (
            not isinstance(raw, bytes)
            or not isinstance(dimension, int)
            or len(raw) != dimension * STORED.itemsize
            or checksum != _checksum(key, raw)
        ):
            raise self._file.damaged()
        return np.frombuffer(raw, dtype=STORED).astype(np.float32)


def _checksum(key: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(key.encode("ascii", "replace")))
