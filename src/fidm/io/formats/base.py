"""What the formats share: from a path to a text, turns as a file has them, and what is wrong with a file.

Which files there are, and whether they are text at all; tidy text and clock times; and marks, words and roles
as JSON files of ours keep them.
"""

from __future__ import annotations

import glob
import importlib
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from fidm.errors import DataError
from fidm.talk import ROLES, UNKNOWN_TIME, Mark, MarkKind, Role, Transcript, Turn, Word

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
    takes_utf16 : bool
        Whether its usual program writes UTF-16.
    takes_columns : bool
        Whether its columns can have other names (``columns=``).
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    keeps: tuple[str, ...]
    read_text: Callable[[str, Options], RawFile] = field(repr=False)
    write_text: Callable[[Transcript], str] = field(repr=False)
    takes_utf16: bool = False
    takes_columns: bool = False


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


def guarded(call: Callable[[], T], what: str, *, also: type[Exception] = ValueError) -> T:
    """Call a library; whatever it finds wrong is told in our words, for its own may quote what was said."""
    try:
        return call()
    except (ValueError, also):
        raise BrokenError(what) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's own, which is no Exception
            raise
        raise BrokenError(what) from None


MOST_BYTES = 200_000_000
"""Larger files are refused; a day of talk needs a hundredth of it."""

Source = str | Path | Iterable[str | Path]


def find_files(source: Source, suffixes: Sequence[str], *, but: Path | None = None) -> list[tuple[Path, str]]:
    """Return the files that a source names, each with the name by which messages call it.

    Of folders all files of known suffixes are taken, however deep, sorted by name; hidden ones are left out.
    """
    if isinstance(source, str | Path | os.PathLike):
        return _unique(_files_of(Path(source), suffixes), but)
    if not isinstance(source, Iterable):
        raise DataError("The source must be a file, a folder, a pattern, or a list of these.")
    found: list[tuple[Path, str]] = []
    for one in source:
        if not isinstance(one, str | Path | os.PathLike):
            raise DataError("The source must be a file, a folder, a pattern, or a list of these.")
        found += _files_of(Path(one), suffixes)
    if not found:
        raise DataError("No files were named.")
    return _unique(found, but)


def _files_of(path: Path, suffixes: Sequence[str]) -> list[tuple[Path, str]]:
    try:
        if path.is_dir():
            inside = [(file, file.relative_to(path)) for file in path.rglob("*")]
            found = [
                (file, name.as_posix())
                for file, name in inside
                if file.suffix.casefold() in suffixes
                and not any(part.startswith(".") for part in name.parts)
                and file.is_file()
            ]
            if not found:
                raise DataError(f"has no dialogs ({', '.join(suffixes)}).", source=str(path))
            return sorted(found, key=lambda pair: pair[1])
        if glob.has_magic(str(path)) and not path.exists():
            matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207
            files = [(Path(match), Path(match).name) for match in matches if Path(match).is_file()]
            if not files:
                raise DataError("No file fits this pattern.", source=str(path))
            return files
        if not path.exists() and path.suffix.casefold() not in suffixes:
            raise DataError("there is no such file or folder.", source=str(path))
    except (OSError, ValueError):
        raise DataError("cannot be looked into.", source=str(path)) from None
    return [(path, path.name)]


def _unique(files: list[tuple[Path, str]], but: Path | None) -> list[tuple[Path, str]]:
    left_out = None if but is None else os.path.abspath(but)  # noqa: PTH100
    found: dict[str, tuple[Path, str]] = {}
    for path, name in files:
        key = os.path.abspath(path)  # noqa: PTH100
        if key != left_out:
            found.setdefault(key, (path, name))
    times = Counter(name for _, name in found.values())
    return [(path, str(path) if times[name] > 1 else name) for path, name in found.values()]


def read_file(path: Path, *, takes_utf16: bool) -> str:
    """Return the text of a file, which must be UTF-8; some programs write UTF-16."""
    try:
        if not path.exists():
            raise BrokenError("There is no such file.")
        if not path.is_file():
            raise BrokenError("is not a file.")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise BrokenError(
                f"is too large to be a transcript ({size / 1e6:,.0f} MB).",
                None,
                f"Files of up to {MOST_BYTES / 1e6:,.0f} MB are read.",
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "input error"
        raise BrokenError(f"cannot be read: {reason}.") from None
    return decoded(data, takes_utf16=takes_utf16)


def decoded(data: bytes, *, takes_utf16: bool) -> str:
    """Return bytes as text; raises BrokenError with what they look like if they are not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        if not takes_utf16:
            raise BrokenError("is not UTF-8 text; it looks like UTF-16.", None, "Save it as UTF-8.")
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            raise BrokenError(
                "breaks off in the middle of a character.", None, "Was it copied whole?"
            ) from None
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            if error.reason == "unexpected end of data" and error.start >= len(data) - 4:
                raise BrokenError(
                    "breaks off in the middle of a character.", line, "Was it copied whole?"
                ) from None
            raise BrokenError(
                f"is not UTF-8 text; it looks like {_looks_like(data)}.", line, "Save it as UTF-8."
            ) from None
    if "\x00" in text:
        looks = "UTF-16" if text.count("\x00") > len(text) // 4 else "something else than text"
        raise BrokenError(f"is not UTF-8 text; it looks like {looks}.", None, "Save it as UTF-8.")
    if not text.strip():
        raise BrokenError("is empty.")
    return text


def _looks_like(data: bytes) -> str:
    """A guess at the encoding of bytes that are not UTF-8."""
    if b"\x00" in data[:1000]:
        return "UTF-16" if data[:1000].count(0) > 100 else "something else than text"
    runs = re.findall(rb"[\x80-\xff]+", data)
    if all(len(run) == 1 for run in runs) and not _decodes(data, "big5hkscs"):
        return "Windows-1252 (Latin letters)"
    for name, shown in (("gb2312", "GB 18030"), ("big5hkscs", "Big5"), ("gb18030", "GB 18030")):
        if _decodes(data, name):
            return shown
    return "Windows-1252 (Latin letters)"


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


KINDS: tuple[MarkKind, ...] = ("pause", "filler", "retraced", "event")


def role_from(value: object) -> Role | None:
    """Return the role a file gives, or None where it gives none that is known."""
    return next((role for role in ROLES if role == value), None)


def marks_to(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Return marks as JSON keeps them."""
    rows: list[dict[str, Any]] = []
    for mark in marks:
        row: dict[str, Any] = {"kind": mark.kind, "from": mark.start, "to": mark.end}
        seconds = rounded(mark.seconds)
        rows.append(row if seconds is None else {**row, "seconds": seconds})
    return rows


def marks_from(rows: object, length: int) -> tuple[Mark, ...]:
    """Return the marks that JSON keeps; raises ValueError for what is none."""
    found = []
    for row in _rows(rows):
        kind = next((kind for kind in KINDS if kind == row.get("kind")), None)
        start, end = _stretch(row, length)
        if kind is None:
            raise ValueError
        found.append(Mark(kind, start, end, number(row.get("seconds"))))
    return tuple(found)


def words_to(words: Sequence[Word]) -> list[dict[str, Any]]:
    """Return words as JSON keeps them."""
    return [
        {"from": w.start, "to": w.end, "start_s": rounded(w.start_s), "end_s": rounded(w.end_s)}
        for w in words
    ]


def words_from(rows: object, length: int) -> tuple[Word, ...]:
    """Return the words that JSON keeps; raises ValueError for what is none."""
    return tuple(
        Word(*_stretch(row, length), number(row.get("start_s")), number(row.get("end_s")))
        for row in _rows(rows)
    )


def _rows(rows: object) -> list[dict[str, Any]]:
    if rows is None:
        return []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError
    return rows


def _stretch(row: dict[str, Any], length: int) -> tuple[int, int]:
    start, end = row.get("from"), row.get("to")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start <= end <= length:
        raise ValueError
    return start, end
