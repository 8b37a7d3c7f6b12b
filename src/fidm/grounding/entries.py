"""One entry of the trail of decisions, and the line it is written as.

A line is one JSON object in ASCII. It begins with ``previous``, the SHA-256 of the line before without its
end, and ``entry``, which is ``decision`` or ``sample``; the fields of the entry follow.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

MOST_COMMENT, MOST_REVIEWER = 2000, 80
"""How many characters are kept of a comment and of a reviewer's name."""

Kind = Literal["accept", "edit", "reject", "withdraw"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a segment is read as.

    Parameters
    ----------
    program : str
        In the route language.
    actions : tuple of str
        What the program comes to on the map, by name.
    """

    program: str
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one person decided about one segment.

    Parameters
    ----------
    number : int
        The line it stands in, from 1; given by the trail.
    at : str
        When, in UTC; given by the trail.
    reviewer : str
        Who.
    kind : str
        ``accept`` and ``edit`` say what the segment is read as, ``reject`` that no reading of it can be used,
        ``withdraw`` takes back what the same person decided before.
    participant, episode, segment : str
        Which segment, as the tables name it.
    turns : str
        The participant's turns in it, as numbers from 1, set apart by spaces.
    words : str
        SHA-256 of what was said.
    task : str
        The fingerprint of the task.
    start : int
        The state before the segment.
    old : Outcome
        What it was read as until then.
    new : Outcome or None
        What it is read as from then on; None if it is rejected or withdrawn.
    comment : str
        Why, in the reviewer's words.
    settles : bool
        Made by somebody who saw that reviewers differ; it overrules what was decided before.
    sample : str
        The audit sample it belongs to; empty if to none.
    """

    number: int = 0
    at: str = ""
    reviewer: str
    kind: Kind
    participant: str
    episode: str
    segment: str
    turns: str
    words: str
    task: str
    start: int
    old: Outcome
    new: Outcome | None = None
    comment: str = ""
    settles: bool = False
    sample: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The segment it is about: participant, episode, turns and words."""
        return self.participant, self.episode, self.turns, self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Dialogs that were drawn at random for an audit.

    Parameters
    ----------
    number : int
        The line it stands in, from 1; given by the trail.
    at : str
        When, in UTC; given by the trail.
    reviewer : str
        Who drew them.
    name : str
        ``audit-SEED-N``.
    seed, n : int
        The seed, and how many were asked for.
    dialogs : tuple of (str, str)
        Participant and episode of each.
    """

    number: int = 0
    at: str = ""
    reviewer: str = ""
    name: str
    seed: int
    n: int
    dialogs: tuple[tuple[str, str], ...]


Entry = Decision | Sample
AnEntry = TypeVar("AnEntry", Decision, Sample)

_READERS: dict[str, TypeAdapter[Any]] = {"decision": TypeAdapter(Decision), "sample": TypeAdapter(Sample)}


def words_hash(text: str) -> str:
    """Return the SHA-256 of what was said in a segment."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def clean_text(text: str, most: int) -> str:
    """Return a text in one line without control characters, at most so many characters of it."""
    plain = "".join(
        " " if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter
        for letter in text[: 4 * most]
        if unicodedata.category(letter) != "Cs"
    )
    return " ".join(plain.split())[:most].rstrip()


def clean_name(text: str) -> str:
    """Return a reviewer's name without anything that cannot be seen."""
    shown = "".join(letter for letter in unicodedata.normalize("NFC", text[:1000]) if letter.isprintable())
    return clean_text(shown, MOST_REVIEWER)


def write_line(entry: Entry, previous: str) -> bytes:
    """Return the line of an entry, without the line's end."""
    kind = "decision" if isinstance(entry, Decision) else "sample"
    said = {"previous": previous, "entry": kind, **asdict(entry)}
    # Only ASCII: no editor or transfer can take a letter for a line's end.
    return json.dumps(said, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def read_line(line: bytes, number: int, previous: str) -> tuple[Entry | None, str]:
    """Return an entry, and what is wrong with its line; empty where nothing is.

    Parameters
    ----------
    line : bytes
        The line, without its end.
    number : int
        Which line it is, from 1.
    previous : str
        The hash of the line before.
    """
    try:
        said = json.loads(line)
        kind = said.pop("entry")
        linked = said.pop("previous")
        entry: Entry = _READERS[kind].validate_json(json.dumps(said), strict=True)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError, ValidationError):
        return None, "is no entry of this version of fidm"
    if linked != previous:
        return entry, "does not follow the line before it: one of the two was changed, removed or moved"
    if entry.number != number:
        return entry, f"has the number {entry.number}"
    if set(said) != {field.name for field in fields(entry)}:
        return entry, "has other fields than an entry has"
    return entry, ""


def line_hash(line: bytes) -> str:
    """Return the SHA-256 of a line, without the line's end."""
    return hashlib.sha256(line).hexdigest()
