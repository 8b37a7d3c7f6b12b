"""Answers of a language model, kept in one SQLite file so that nothing is asked twice.

One row per call; its key is the hash of everything the answer depends on. The file holds raw answers, which
may repeat what was said: it belongs into the study's folder and can be read by its owner alone. Several
threads and several processes may use it at once, and a killed run loses only the calls that were under way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fidm.errors import GroundingError
from fidm.files import Contents, PrivateFile

CONTENTS = Contents(
    table="""
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
""",
    application_id=0x4649444D,  # "FIDM"
    version=1,
    what="answers",
    kept="What was answered so far is kept.",
    again="its answers are then asked for anew.",
    error=GroundingError,
)


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


class AnswerCache(PrivateFile):
    """A file of answers.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.
    """

    contents = CONTENTS

    def get(self, key: str) -> Stored | None:
        """Return the answer of a call; None if it was never made."""
        with self._use() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
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
        with self._use() as connection:
            # INSERT is a transaction of its own: a row is there whole or not at all.
            connection.execute(
                "INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, json.dumps(kept))
            )

    def keys(self) -> set[str]:
        """Return the keys of all calls made."""
        with self._use() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM answers")}
