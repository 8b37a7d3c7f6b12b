"""Answers of a language model, kept in one SQLite file so that nothing is asked twice.

One row per call; its key is the hash of everything the answer depends on. The file holds raw answers, which
may repeat what was said: it belongs into the study's folder and can be read by its owner alone. Several
threads and several processes may use it at once, and a killed run loses only the calls that were under way.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fidm.errors import GroundingError

APPLICATION_ID = 0x4649444D
"""What marks the file as one of these: "FIDM"."""

VERSION = 1
BUSY_S = 60.0

_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """One answer as the server gave it, and what was known of the server.

    Parameters
    ----------
    body : dict
        The whole answer.
    enforced : bool or None
        Whether the server was found to keep to schemas; None where nobody looked.
    tokens_per_character : float or None
        What the server counted for a text of known length.
    """

    body: dict[str, Any]
    enforced: bool | None = None
    tokens_per_character: float | None = None

    def __repr__(self) -> str:
        # An answer repeats what was said, and must not end up in a log by way of a repr.
        return f"Stored(enforced={self.enforced})"


class AnswerCache:
    """A file of answers.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.
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
            raise GroundingError(
                f"The file of answers cannot be made: {error.strerror}.", source=str(path)
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

    def get(self, key: str) -> Stored | None:
        """Return the answer of a call; None if it was never made."""
        with self._lock, self._explained():
            row = self._open().execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            kept = json.loads(row[0])
            return Stored(kept["body"], kept["enforced"], kept["tokens_per_character"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged() from None

    def put(self, key: str, stored: Stored) -> None:
        """Keep an answer; one that is there already stays."""
        kept = {
            "body": stored.body,
            "enforced": stored.enforced,
            "tokens_per_character": stored.tokens_per_character,
        }
        with self._lock, self._explained():
            # INSERT is a transaction of its own: a row is there whole or not at all.
            self._open().execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, json.dumps(kept))
            )

    def keys(self) -> set[str]:
        """Return the keys of all calls made."""
        with self._lock, self._explained():
            return {key for (key,) in self._open().execute("SELECT key FROM answers")}

    def __len__(self) -> int:
        with self._lock, self._explained():
            return int(self._open().execute("SELECT COUNT(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise GroundingError("The file of answers was closed before.", source=str(self.path))
        return self._connection

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
            raise GroundingError(
                "This SQLite file holds something else, or answers of another version of fidm. "
                "Name another file for the answers.",
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
            raise GroundingError(
                f"The file of answers cannot be used ({reason}). Is the disk full, the file locked by "
                "another program, or the folder read-only? What was answered so far is kept.",
                source=str(self.path),
            ) from None
        except sqlite3.DatabaseError:
            raise self._damaged() from None

    def _damaged(self) -> GroundingError:
        return GroundingError(
            "The file of answers is damaged or is no SQLite file. Move it away (or delete it) and run again: "
            "its answers are then asked for anew.",
            source=str(self.path),
        )
