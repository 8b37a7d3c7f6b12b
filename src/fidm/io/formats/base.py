"""What the formats share: turns as a file has them, tidy text, clock times, and what is wrong with a file."""

from __future__ import annotations

import importlib
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TypeVar

from fidm.errors import DataError
from fidm.talk import UNKNOWN_TIME, Mark, Role, Transcript, Turn, Word

T = TypeVar("T")

EVENT_TIERS = {"event", "events", "act", "%act", "action", "actions", "move", "moves"}
"""Names of tiers that say what happened, not what was said."""

OTHER_TIERS = {
    "comment",
    "comments",
    "note",
    "notes",
    "com",
    "words",
    "word",
    "phones",
    "phonemes",
    "silences",
}
"""Names of tiers that are neither speech nor events; so are all that begin with ``%``."""

INVISIBLE = dict.fromkeys([0xFEFF, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Characters that show nothing and are dropped: byte-order marks, zero-width spaces, marks of direction."""


class BrokenError(Exception):
    """A file cannot be read at all; says what is wrong, never what stands in it."""

    def __init__(self, what: str, line: int | None = None, hint: str = "") -> None:
        super().__init__(what)
        self.flaw = Flaw(what, line, hint)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong in a file, and its line."""

    what: str
    line: int | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True, repr=False)  # a repr would show what was said
class RawTurn:
    """A turn as its file has it, before anybody knows who the speaker is.

    ``others`` are further names of the speaker, tried when ``speaker`` is not known; ``role`` is what the
    file itself says; ``participant``, ``episode`` and ``language`` are filled by tables alone.
    """

    speaker: str
    start_s: float
    end_s: float
    text: str
    line: int = 0
    words: tuple[Word, ...] = ()
    marks: tuple[Mark, ...] = ()
    role: Role | None = None
    others: tuple[str, ...] = ()
    participant: str = ""
    episode: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened, on a tier of its own."""

    start_s: float
    end_s: float
    line: int = 0


@dataclass(slots=True)
class RawFile:
    """What stands in one file.

    ``in_order`` is False where a file keeps its turns by speaker, so that they are put in the order of time.
    """

    turns: list[RawTurn] = field(default_factory=list)
    events: list[Happening] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    language: str = ""
    in_order: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """What a reader may need to know: names of columns, and names that are speakers."""

    columns: Mapping[str, str] = field(default_factory=dict)
    speakers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of timed dialogs.

    Parameters
    ----------
    name : str
        As ``format=`` takes it.
    title : str
        As people call it.
    suffixes : tuple of str
        Endings of its files, in lower case.
    keeps : tuple of str
        What survives writing and reading: ``times``, ``untimed`` turns, ``empty`` turns (without words),
        ``roles``, ``words``, ``pauses``, ``fillers``, ``retracings``, ``events``, ``language``,
        ``participant`` (with the episode).
    read_text, write_text : callable
        From the text of a file, and to it.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    keeps: tuple[str, ...]
    read_text: Callable[[str, Options], RawFile] = field(repr=False)
    write_text: Callable[[Transcript], str] = field(repr=False)


def clean(text: str) -> str:
    """Return a text in Unicode's composed form, on one line, without control characters or double spaces."""
    text = text.translate(INVISIBLE)
    if not text.isascii() or not text.isprintable():
        text = "".join(
            " " if kind == "Cc" else "\ufffd" if kind == "Cs" else letter
            for letter, kind in ((letter, unicodedata.category(letter)) for letter in text)
        )
    return " ".join(unicodedata.normalize("NFC", text).split())


def tidy(turn: Turn) -> Turn:
    """Return a turn whose text is clean; its words and marks move along."""
    text = clean(turn.text)
    speaker = clean(turn.speaker)
    if text == turn.text:
        return turn if speaker == turn.speaker else replace(turn, speaker=speaker)

    def moved(start: int, end: int) -> tuple[int, int]:
        until = min(len(clean(turn.text[:end])), len(text))
        begin = until if start >= end else len(text) - len(clean(turn.text[start:]))
        return max(0, min(begin, until)), until

    return replace(
        turn,
        speaker=speaker,
        text=text,
        words=tuple(Word(*moved(word.start, word.end), word.start_s, word.end_s) for word in turn.words),
        marks=tuple(Mark(mark.kind, *moved(mark.start, mark.end), mark.seconds) for mark in turn.marks),
    )


def placed_words(text: str, spoken: Sequence[tuple[str, float, float]]) -> tuple[Word, ...] | None:
    """Return where words stand in a text, in their order; None where one of them is not in it."""
    found: list[Word] = []
    place = 0
    for said, start_s, end_s in spoken:
        start = text.find(said, place) if said else -1
        if start < 0:
            if said:
                return None
            continue
        place = start + len(said)
        found.append(Word(start, place, start_s, end_s))
    return tuple(found)


def tier_kind(name: str) -> str:
    """Say whether a tier holds ``speech``, ``events`` or something ``else``, by its name."""
    plain = clean(name).casefold().split("@")[0]
    if plain in EVENT_TIERS or plain.lstrip("%") in EVENT_TIERS:
        return "events"
    return "else" if plain.startswith("%") or plain in OTHER_TIERS else "speech"


def milliseconds(seconds: float) -> int:
    """Return a time in whole milliseconds."""
    return round(seconds * 1000)


def number(value: object) -> float:
    """Return what a file gives as a number; NaN where it says nothing. Raises ValueError for what is none."""
    if value is None:
        return UNKNOWN_TIME
    if isinstance(value, str):
        if value.strip().casefold() in {"", "na", "n/a", "nan", "null"}:
            return UNKNOWN_TIME
        if "_" in value:
            raise ValueError
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    try:
        found = float(value)
    except OverflowError:
        raise ValueError from None
    if math.isinf(found):
        raise ValueError
    return found


def rounded(seconds: float) -> float | None:
    """Return a time to the microsecond, as text formats write it; None where it is unknown."""
    return None if math.isnan(seconds) else round(seconds, 6)


def need_times(transcript: Transcript, title: str) -> None:
    """Raise unless every turn has its times, as a format promises."""
    bad = [number for number, turn in enumerate(transcript, 1) if not turn.is_timed]
    if bad:
        raise DataError(
            f"Turn {bad[0]} of {transcript.participant!r} has no times, and {title} cannot do without. "
            "Write CHAT, CSV, JSONL or Whisper's JSON."
        )


def has_event(turn: Turn) -> bool:
    """Whether something happened in a turn that a tier of events can tell, which is not about others."""
    return turn.role != "other" and any(mark.kind == "event" for mark in turn.marks)


def load_library(name: str, what: str) -> ModuleType:
    """Import a library of the extra ``speech``, or say how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        library = {"webvtt": "webvtt-py"}.get(name.split(".")[0], name.split(".")[0])
        raise DataError(
            f"Reading and writing {what} needs {library}. Install it with: pip install 'fidm[speech]'"
        ) from None


def guarded(call: Callable[[], T], what: str, hint: str = "", *, also: type[Exception] = ValueError) -> T:
    """Call a library; whatever it finds wrong is told in our words, for its own may quote what was said."""
    try:
        return call()
    except (ValueError, also):
        raise BrokenError(what, None, hint) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's own, which is no Exception
            raise
        raise BrokenError(what, None, hint) from None
