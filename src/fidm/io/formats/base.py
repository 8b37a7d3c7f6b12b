"""What the formats share: from a path to a text, turns as a file has them, and what is wrong with a file.

Which files there are, and whether they are text at all; tidy text and clock times; and marks, words and roles
as JSON files of ours keep them.
"""

from __future__ import annotations

import glob
import importlib
import logging
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from fidm.errors import DataError
from fidm.io.talk import ROLES, UNKNOWN_TIME, Mark, MarkKind, Role, Transcript, Turn, Word

logger = logging.getLogger(__name__)
T = TypeVar("T")

EVENT_TIERS = {"event", "events", "act", "%act", "action", "actions", "move", "moves"}
"""Names of tiers that say what happened, not what was said."""

OTHER_TIERS = {
    "comment", "comments", "note", "notes", "com", "phone", "phones", "phoneme", "phonemes", "segments",
    "syllables", "silences", "gloss", "glosses", "morphemes", "mb", "pos", "translation", "ft", "ipa",
}  # fmt: skip
"""Names of tiers, or ends of them as in ``PAR-gloss``, that are neither speech nor events; so are all that
begin with ``%``."""

WORD_TIERS = {"word", "words", "token", "tokens"}
"""Names of tiers, or ends of them as in ``PAR - words``, that hold single words with their times."""

SILENCE_S = 0.5
"""Words are joined into one utterance as long as the silence between them is shorter."""

SILENT = {"", "<p>", "<p:>", "sp", "sil", "<sil>", "<eps>"}
NOT_HEARD = {"spn", "<unk>"}
"""What forced aligners write where nothing was said, and where they do not know what."""

SENTENCE_ENDS = tuple(".?!\u2026\u3002\uff1f\uff01")
CLOSING_SIGNS = "\"')]\u00bb\u2019\u201d\u300d"

INVISIBLE = dict.fromkeys(
    [0xFEFF, 0xFFFE, 0xFFFF, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
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
    file itself says; ``participant``, ``episode`` and ``language`` are filled by tables alone. ``ends_open``
    is set where a tool is known to leave the end of its last piece out, which is then no mistake.
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
    ends_open: bool = False


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
    ``about`` is what it says of a dialog's participant, by the participant and episode that its turns name
    (empty texts where they name none); ``people`` is what it says of each speaker; ``media`` the recording.
    """

    turns: list[RawTurn] = field(default_factory=list)
    events: list[Happening] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    language: str = ""
    in_order: bool = True
    about: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    people: dict[str, dict[str, str]] = field(default_factory=dict)
    media: str = ""


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
        ``participant`` (with the episode), ``about`` (what is said of the participant).
    read_text, write_text : callable
        From the text of a file, and to it.
    takes_columns : bool
        Whether its columns can have other names (``columns=``).
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    keeps: tuple[str, ...]
    read_text: Callable[[str, Options], RawFile] = field(repr=False)
    write_text: Callable[[Transcript], str] = field(repr=False)
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


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """A piece of speech with its times, a word or more, before it is part of a turn."""

    text: str
    start_s: float
    end_s: float
    line: int = 0
    speaker: str = ""


def utterances(words: Iterable[Piece], *, sentences: bool = False, spaced: bool = False) -> list[RawTurn]:
    """Join words into utterances: up to a silence of 0.5 s, another speaker or, if wanted, a sentence's end.

    Words that begin with a space, as Whisper writes them, are put after each other as they are, so that
    ``I`` and ``'m`` become one; otherwise a space goes between them, except in scripts that write none.
    """
    given = list(words)
    led = not spaced and any(word.text[:1].isspace() for word in given)
    between = "" if led or (not spaced and any(map(_unspaced, (word.text for word in given)))) else " "
    found: list[RawTurn] = []
    open_words: list[Piece] = []
    last_s = UNKNOWN_TIME
    for word in given:
        before = open_words[-1] if open_words else None
        if before is not None and (
            word.start_s - last_s >= SILENCE_S - 1e-9
            or word.speaker != before.speaker
            or (sentences and before.text.rstrip().rstrip(CLOSING_SIGNS).endswith(SENTENCE_ENDS))
        ):
            found.append(_utterance(open_words, between, glue=led))
            open_words = []
        if word.text.strip():
            open_words.append(word)
        known = [time for time in (word.start_s, word.end_s) if not math.isnan(time)]
        last_s = max(known, default=last_s)
    if open_words:
        found.append(_utterance(open_words, between, glue=led))
    return found


def _utterance(words: Sequence[Piece], between: str, *, glue: bool) -> RawTurn:
    text = ""
    placed: list[Word] = []
    for word in words:
        said = clean(word.text)
        if glue and text and not word.text[:1].isspace():
            text += said
            placed[-1] = Word(placed[-1].start, len(text), placed[-1].start_s, word.end_s)
            continue
        text += (" " if glue and text else between if text else "") + said
        placed.append(Word(len(text) - len(said), len(text), word.start_s, word.end_s))
    if text != clean(text):  # letters and their accents came apart, and are together again
        text, placed = clean(text), []
    starts = [word.start_s for word in words if not math.isnan(word.start_s)]
    ends = [word.end_s for word in words if not math.isnan(word.end_s)]
    is_open = math.isnan(words[-1].end_s) and bool(starts)
    end_s = UNKNOWN_TIME if is_open else max(ends, default=UNKNOWN_TIME)
    first = words[0]
    return RawTurn(
        first.speaker, min(starts, default=UNKNOWN_TIME), end_s, text, first.line, tuple(placed),
        ends_open=is_open,
    )  # fmt: skip


def _unspaced(text: str) -> bool:
    """Whether a text has letters of a script that puts no spaces between words."""
    return any(
        "\u0e00" <= letter <= "\u0eff" or "\u3040" <= letter <= "\u9fff" or letter >= "\U00020000"
        for letter in text
    )


def is_single(text: str) -> bool:
    """Whether a text looks like one word; where no spaces are written, like no more than three letters."""
    plain = text.strip()
    return len(plain.split()) <= 1 and (len(plain) <= 3 or not _unspaced(plain))


def tier_kind(name: str) -> str:
    """Say whether a tier holds ``speech``, ``events``, ``words`` or something ``else``, by its name."""
    plain = clean(name).casefold().split("@")[0]
    if plain in EVENT_TIERS or plain.lstrip("%") in EVENT_TIERS:
        return "events"
    if plain.startswith("%"):
        return "else"
    part = _tier_part(plain)[1]
    return "words" if part in WORD_TIERS else "else" if part in OTHER_TIERS else "speech"


def _tier_part(name: str) -> tuple[str, str]:
    """Speaker and part of a tier such as ``PAR - words``, ``PAR-gloss``, ``words`` or ``words@PAR``."""
    before, _, after = name.partition("@")
    if before.casefold() in WORD_TIERS | OTHER_TIERS:
        return after.strip(), before.casefold()
    place = max(before.rfind(sign) for sign in "-_/.:")
    part = before[place + 1 :].strip().casefold()
    if place > 0 and part in WORD_TIERS | OTHER_TIERS:
        return before[:place].rstrip(" -_/.:"), part
    return name, ""


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier of speech or of words as its file has it; ``owner`` is the speaker where a file says it."""

    name: str
    kind: str
    rows: list[Piece] = field(default_factory=list, repr=False)
    owner: str = ""

    @property
    def speaker(self) -> str:
        """The speaker: who the file says it is, or who the name of the tier says."""
        return self.owner or (_tier_part(self.name)[0] if self.kind == "words" else self.name)


def turns_of_tiers(tiers: Sequence[Tier]) -> list[RawTurn]:
    """Return the turns of tiers of speech, with the times of words; words alone are joined into utterances.

    A tier of words belongs to the tier of speech of the same speaker, or, without a name, to the only one.
    """
    speech = [tier for tier in tiers if tier.kind == "speech"]
    owners = Counter(tier.owner for tier in speech)
    words = {tier.speaker.casefold(): tier for tier in tiers if tier.kind == "words" and tier.rows}
    found: list[RawTurn] = []
    taken: set[str] = set()
    for tier in speech:
        short = tier.name.split("@")[0]
        names = [tier.owner, tier.name, short] if owners[tier.owner] == 1 else [tier.name, short, tier.owner]
        names = [name for name in names if name] or [""]  # a tier need not have a name
        keys = [name.casefold() for name in names]
        own = next((key for key in keys if key in words), "" if len(speech) == 1 else None)
        timed = words[own].rows if own in words and tier.rows else []
        taken.update(keys if tier.rows else [])
        for row, inside in zip(tier.rows, _words_inside(tier.rows, timed), strict=True):
            placed = placed_words(row.text, inside) or ()
            found.append(
                RawTurn(names[0], row.start_s, row.end_s, row.text, row.line, placed, others=tuple(names[1:]))
            )
    has_speech = any(tier.rows for tier in speech)
    for key, tier in words.items():
        if key not in taken and not (key == "" and has_speech):
            named = (replace(row, speaker=tier.speaker) for row in tier.rows if row.text not in SILENT)
            heard = (replace(row, text="") if row.text in NOT_HEARD else row for row in named)
            found += utterances(heard, spaced=True)
    return found


def _words_inside(rows: Sequence[Piece], words: Sequence[Piece]) -> list[list[tuple[str, float, float]]]:
    """The words within each stretch of speech; a word without a time stands where the one before it does."""
    placed: list[tuple[float, Piece]] = []
    now = -math.inf
    for word in words:
        now = now if math.isnan(word.start_s) else word.start_s
        placed.append((now, word))
    placed.sort(key=lambda pair: pair[0])
    found: list[list[tuple[str, float, float]]] = [[] for _ in rows]
    timed = [place for place, row in enumerate(rows) if row.end_s >= row.start_s]
    next_word = 0
    for place in sorted(timed, key=lambda place: rows[place].start_s):
        row = rows[place]
        while next_word < len(placed) and placed[next_word][0] < row.start_s - 1e-6:
            next_word += 1
        while next_word < len(placed) and placed[next_word][0] < row.end_s - 1e-6:
            word = placed[next_word][1]
            if word.text not in SILENT | NOT_HEARD:
                found[place].append((word.text, word.start_s, word.end_s))
            next_word += 1
    return found


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


def find_files(
    source: Source, suffixes: Sequence[str], *, but: Sequence[Path] = ()
) -> list[tuple[Path, str]]:
    """Return the files that a source names, each with the name by which messages call it.

    Of folders all files of known suffixes are taken, however deep, sorted by name; hidden ones, and folders
    below that hold a study of their own (``study.toml``), are left out.
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


NOT_SHOWN = (".", "~$")
"""How hidden files begin, and those by which office programs hold a document."""

RECORDINGS = (
    ".wav", ".mp3", ".m4a", ".mp4", ".ogg", ".opus", ".flac", ".webm", ".aac", ".wma", ".aiff", ".amr",
)  # fmt: skip
"""Endings of files that hold recordings."""


def files_below(folder: Path) -> Iterator[Path]:
    """Give the files in a folder, however deep; not hidden ones, nor those of studies that lie in it."""
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(
            one for one in inside if not one.startswith(".") and not Path(place, one, "study.toml").exists()
        )
        yield from (Path(place, name) for name in sorted(names) if not name.startswith(NOT_SHOWN))


def _files_of(path: Path, suffixes: Sequence[str]) -> list[tuple[Path, str]]:
    try:
        if path.is_dir():
            found = [
                (file, file.relative_to(path).as_posix())
                for file in files_below(path)
                if file.suffix.casefold() in suffixes
            ]
            if not found:
                raise DataError(
                    f"has no dialogs ({', '.join(suffixes)}). Put them there, or name another folder.",
                    source=str(path),
                )
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


def _unique(files: list[tuple[Path, str]], but: Sequence[Path]) -> list[tuple[Path, str]]:
    left_out = {os.path.abspath(path) for path in but}  # noqa: PTH100
    found: dict[str, tuple[Path, str]] = {}
    for path, name in files:
        key = os.path.abspath(path)  # noqa: PTH100
        if key not in left_out:
            found.setdefault(key, (path, name))
    times = Counter(name for _, name in found.values())
    return [(path, str(path) if times[name] > 1 else name) for path, name in found.values()]


def read_file(path: Path, *, quiet: bool = False) -> str:
    """Return the text of a file: UTF-8, UTF-16 with its mark, or Windows-1252 or Big5, which is logged."""
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
    text, encoding = decoded(data)
    if encoding in GUESSED and not quiet and path not in _told:
        _told.add(path)
        logger.warning(
            "%s is not UTF-8 and was read as %s. Check it, and save it as UTF-8.", path, GUESSED[encoding]
        )
    return text


_told: set[Path] = set()
"""Files of which it was said already that their encoding is a guess."""

GUESSED = {"cp1252": "Windows-1252 (Latin letters)", "big5hkscs": "Big5 (Chinese characters)"}
"""Encodings that no mark tells, in words."""

CUT = ("breaks off in the middle of a character.", "Was it copied whole?")


def decoded(data: bytes) -> tuple[str, str]:
    """Return bytes as text, and their encoding; raises BrokenError with what they look like if unknown."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            raise BrokenError(CUT[0], None, CUT[1]) from None
    else:
        encoding = "utf-8-sig"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            if error.reason == "unexpected end of data" and error.start >= len(data) - 4:
                raise BrokenError(CUT[0], line, CUT[1]) from None
            encoding = "cp1252" if _is_western(data) else "big5hkscs"
            if encoding == "big5hkscs" and not _is_big5(data):
                what = f"is not UTF-8 text; it looks like {_looks_like(data)}."
                raise BrokenError(what, line, "Save it as UTF-8.") from None
            text = data.decode(encoding)
    if "\x00" in text:
        looks = "UTF-16" if text.count("\x00") > len(text) // 4 else "something else than text"
        raise BrokenError(f"is not UTF-8 text; it looks like {looks}.", None, "Save it as UTF-8.")
    if not text.strip():
        raise BrokenError("is empty.")
    return text, encoding


SOME_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
QUOTES = re.compile(rb"\x85|\x92|(?<![A-Za-z\xc0-\xff])[\x91\x93\x96]|[\x94\x97](?![A-Za-z\xc0-\xff])")


LETTERS = re.compile(rb"[\xc0-\xd6\xd8-\xf6\xf8-\xff]")
ALONE = 0.9
"""So many of the letters beyond ASCII stand alone in Latin text; Chinese characters are pairs in rows."""


def _is_western(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are surely Latin letters, as Windows writes them.

    There are no control characters, and nothing in it is UTF-8. What is beyond ASCII is letters, and of signs
    those that only Windows has, quotes and dashes, in their places. The letters stand alone, or at least they
    are no Big5 or GB 18030.
    """
    if b"\x00" in data or SOME_UTF8.search(data) or re.search(rb"[\x80-\xff]{4}", data):
        return False
    plain = QUOTES.sub(b"", data)
    high, letters = re.findall(rb"[\x80-\xff]+", plain), LETTERS.findall(plain)
    alone = sum(len(run) == 1 for run in high)
    if sum(map(len, high)) > len(letters):
        return False
    return alone >= ALONE * len(high) or not any(_decodes(data, name) for name in ("big5hkscs", "gb18030"))


CHINESE, SURELY = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"), 20
"""Usual characters of Chinese text, and how many of them tell an encoding."""


def _is_big5(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are surely Chinese, as Windows writes it in Hong Kong and Taiwan."""
    if b"\x00" in data or _decodes(data, "gb2312") or not _decodes(data, "big5hkscs"):
        return False
    wide = [sign for sign in data.decode("big5hkscs") if not sign.isascii()]
    usual = sum(CHINESE.match(sign) is not None for sign in wide)
    return usual >= SURELY and usual >= ALONE * len(wide)


def _looks_like(data: bytes) -> str:
    """A guess at the encoding of bytes that are not UTF-8."""
    if b"\x00" in data[:1000]:
        return "UTF-16" if data[:1000].count(0) > 100 else "something else than text"
    for name, shown in (("gb2312", "GB 18030"), ("big5hkscs", "Big5"), ("gb18030", "GB 18030")):
        if _decodes(data, name):
            return shown
    return "damaged UTF-8" if SOME_UTF8.search(data) else "an older encoding"


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
