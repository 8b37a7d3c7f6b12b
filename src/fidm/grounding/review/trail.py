"""What people decided about groundings, in a file that is only ever added to.

``STUDY/grounding/review.jsonl`` has one JSON object in ASCII per line, oldest first. It begins with
``previous``, the SHA-256 of the exact bytes of the line before it without its end (64 zeros in the first), so
that a line that is changed, removed or put elsewhere later is found; then ``entry``, which is ``decision`` or
``sample``, and the fields of the entry. The last line's own hash, the *head*, is kept in ``review.head`` and
in the provenance of tables that were made with it; whoever writes it down elsewhere can prove later that
nothing before it has changed.

A line is written in one piece and is on the disk before anybody is told so. Several processes may add lines
at once; whoever adds or reads holds ``review.lock`` meanwhile. What a process that was killed left of a line
nobody was told about goes to ``review.torn-1``, ….
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from fidm.errors import DataError, GroundingError
from fidm.files import locked
from fidm.grounding.store import FOLDER, private_folder

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
    number, at
        As in :class:`Decision`.
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

    ``line`` comes without its end, ``number`` is from 1, and ``previous`` is the hash of the line before.
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


FILE, HEAD, LOCK = "review.jsonl", "review.head", "review.lock"
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends
NOTHING_YET = "0" * 64
"""The head of a trail without a single entry."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at the whole trail found.

    Parameters
    ----------
    n_entries : int
        How many lines there are.
    head : str
        The hash of the last of them.
    problems : tuple of str
        What is wrong, in sentences; empty where nothing was changed.
    notes : tuple of str
        What is worth knowing and not wrong, such as the rest of a line nobody was told about.
    entries : tuple of Decision and Sample
        What could be read, in order.
    """

    n_entries: int
    head: str
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class Trail:
    """The decisions of a study, read from its trail, and the way to add one.

    Parameters
    ----------
    study : path
        A study folder. Nothing is made until the first entry is added.
    """

    def __init__(self, study: str | Path) -> None:
        self.study = Path(study)
        self._guard = threading.RLock()
        self._entries: list[Entry] = []
        self._hashes: list[str] = [NOTHING_YET]
        self._read = 0
        self.refresh()

    @property
    def path(self) -> Path:
        """The file."""
        return self.study / FOLDER / FILE

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything in the trail, oldest first."""
        with self._guard:
            return tuple(self._entries)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions, oldest first."""
        return tuple(entry for entry in self.entries if isinstance(entry, Decision))

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The audit samples, oldest first."""
        return tuple(entry for entry in self.entries if isinstance(entry, Sample))

    @property
    def head(self) -> str:
        """The hash of the last line."""
        with self._guard:
            return self._hashes[-1]

    def place_of(self, head: str) -> int | None:
        """Return after how many entries the trail had this head; None where it never had."""
        with self._guard:
            return self._hashes.index(head) if head in self._hashes else None

    def refresh(self) -> int:
        """Read what others have added; return how many entries are new."""
        with self._guard:
            try:
                with _reading(self.path) as held:
                    return self._take(held)
            except FileNotFoundError:
                if self._read or _kept_head(self.study) is not None:
                    raise _broken(self.path, "is not there any more") from None
                return 0
            except OSError as error:
                raise _failed(self.path, error) from None

    def append(self, entry: AnEntry, *, check: Callable[[], None] | None = None) -> AnEntry:
        """Add an entry; when this returns it is on the disk.

        Parameters
        ----------
        entry : Decision or Sample
            What to add. Its number and time are set here, and its texts are cleaned.
        check : callable, optional
            Called once what others have added is read and nobody else can add; raise in it to add nothing.
        """
        if not clean_name(entry.reviewer):
            raise GroundingError("A decision needs the name of its reviewer.")
        with self._guard:
            private_folder(self.study)
            try:
                held = _open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            except OSError as error:
                raise _failed(self.path, error, writing=True) from None
            try:
                if os.name == "posix":
                    os.fchmod(held, 0o600)
                with locked(self.path.with_name(LOCK)):
                    self._take(held)
                    self._put_aside(held)
                    if check is not None:
                        check()
                    return self._write(held, entry)
            except OSError as error:
                raise _failed(self.path, error, writing=True) from None
            finally:
                os.close(held)

    def _take(self, held: int) -> int:
        """Read the whole lines after those that were read before."""
        known = len(self._entries)
        size = os.fstat(held).st_size
        if size < self._read:
            raise _broken(self.path, "is shorter than it was")
        new = _read_from(held, self._read)
        for line in new.split(b"\n")[:-1]:
            entry, what = read_line(line, len(self._entries) + 1, self._hashes[-1])
            if entry is None or what:
                raise _broken(self.path, f"line {len(self._entries) + 1} {what}")
            self._entries.append(entry)
            self._hashes.append(line_hash(line))
            self._read += len(line) + 1
        kept = _kept_head(self.study)
        if kept is not None and kept not in self._hashes:
            raise _broken(self.path, "has lost its last entry, or it was changed")
        return len(self._entries) - known

    def _put_aside(self, held: int) -> None:
        """Move what is left of a line that nobody was told about out of the way."""
        torn = _read_from(held, self._read)
        if not torn:
            return
        folder = self.path.parent
        for number in range(1, 1_000_000):
            with suppress(FileExistsError):
                _write_new(folder / f"review.torn-{number}", torn)
                break
        _sync_folder(folder)
        os.ftruncate(held, self._read)

    def _write(self, held: int, entry: AnEntry) -> AnEntry:
        entry = replace(
            entry,
            number=len(self._entries) + 1,
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            reviewer=clean_name(entry.reviewer),
        )
        if isinstance(entry, Decision):
            entry = replace(entry, comment=clean_text(entry.comment, MOST_COMMENT))
        line = write_line(entry, self._hashes[-1])
        is_first = self._read == 0
        head = line_hash(line)
        try:
            _write_whole(held, line + b"\n")
            os.fsync(held)
            _keep_head(self.path.parent, head)
        except OSError:  # nobody was told of it
            os.ftruncate(held, self._read)
            raise
        if is_first:
            _sync_folder(self.path.parent)
        self._entries.append(entry)
        self._hashes.append(head)
        self._read += len(line) + 1
        return entry


def verify_trail(study: str | Path, *, expect: str | None = None) -> Verified:
    """Look whether any line of a study's trail was changed, removed or moved.

    Parameters
    ----------
    study : path
        The study folder.
    expect : str, optional
        A head that was written down earlier; it must still be in the trail.
    """
    folder = Path(study) / FOLDER
    if not Path(study).is_dir():
        raise DataError("is not a folder.", source=str(study))
    path = folder / FILE
    content, kept = b"", _kept_head(study)
    try:
        with suppress(FileNotFoundError), _reading(path) as held:
            content, kept = _read_from(held, 0), _kept_head(study)
    except OSError as error:
        raise _failed(path, error) from None
    *lines, torn = content.split(b"\n")
    problems, notes, entries, hashes = [], [], [], [NOTHING_YET]
    for number, line in enumerate(lines, start=1):
        entry, what = read_line(line, number, hashes[-1])
        if what:
            problems.append(f"Line {number} {what}.")
        if entry is not None:
            entries.append(entry)
        hashes.append(line_hash(line))
    if kept is not None and kept not in hashes:
        problems.append(
            f"The entry that was written last is not there as it was written: {HEAD} has another hash."
        )
    elif torn:
        notes.append("The last line is not whole: its writer was stopped before anybody was told of it.")
    if lines and kept is None:
        notes.append(f"{HEAD} is not there, so that nothing tells whether the last lines were removed.")
    elif kept in hashes and kept != hashes[-1]:
        notes.append(f"{HEAD} is of an earlier line: whoever wrote the last line was stopped after it.")
    used = _used_head(study)
    if used is not None and used not in hashes:
        problems.append("The decisions that the study's tables were made with are not all in the trail.")
    if expect is not None and expect.strip().lower() not in hashes[1:]:
        problems.append("The head that was expected is not in the trail.")
    aside = len(list(folder.glob("review.torn-*"))) if folder.is_dir() else 0
    if aside:
        notes.append(f"{aside} unfinished {'line was' if aside == 1 else 'lines were'} put aside.")
    return Verified(len(lines), hashes[-1], tuple(problems), tuple(notes), tuple(entries))


@contextmanager
def _reading(path: Path) -> Iterator[int]:
    """Open the trail and read it while nobody adds to it."""
    held = _open(path, os.O_RDONLY)
    try:
        with locked(path.with_name(LOCK), only_reads=True):
            yield held
    finally:
        os.close(held)


def _read_from(held: int, place: int) -> bytes:
    found = bytearray()
    os.lseek(held, place, os.SEEK_SET)
    while part := os.read(held, 1 << 20):
        found += part
    return bytes(found)


def _kept_head(study: str | Path) -> str | None:
    path = Path(study) / FOLDER / HEAD
    try:
        held = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, error) from None
    try:
        return os.read(held, 1000).decode("ascii", errors="replace").strip() or None
    finally:
        os.close(held)


def _keep_head(folder: Path, head: str) -> None:
    """Write the head whole or not at all; a link in its place is replaced, and never followed."""
    part = folder / f".{HEAD}-new"
    part.unlink(missing_ok=True)
    _write_new(part, f"{head}\n".encode("ascii"))
    os.replace(part, folder / HEAD)


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that must not be there yet, whole or not at all; it is then on the disk."""
    held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    try:
        _write_whole(held, content)
        os.fsync(held)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(held)


def _open(path: Path, flags: int) -> int:
    """Open a file of the trail: no link to somewhere else, and nothing but a file."""
    only_here = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    held = os.open(path, flags | only_here | _BINARY, 0o600)
    if not stat.S_ISREG(os.fstat(held).st_mode):
        os.close(held)
        raise OSError(errno.EINVAL, "it is no file")
    return held


def _write_whole(held: int, content: bytes) -> None:
    if os.write(held, content) != len(content):
        raise OSError(errno.ENOSPC, "the disk is full")


def _used_head(study: str | Path) -> str | None:
    """The head of the trail when the study's tables were made."""
    try:
        said = json.loads((Path(study) / FOLDER / "provenance.json").read_text("utf-8"))
        return str(said["review"]["head"]) if "review" in said else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _broken(path: Path, what: str) -> GroundingError:
    return GroundingError(
        f"{what}. The trail of decisions was changed from outside, so it cannot be used or added to. See "
        "fidm audit verify; bring the file back from a backup.",
        source=str(path),
    )


def _failed(path: Path, error: OSError, *, writing: bool = False) -> DataError:
    why = "it is a link" if error.errno == errno.ELOOP else error.strerror
    said = f"written: {why}. Nothing was decided; look, and decide again." if writing else f"read: {why}."
    return DataError(f"cannot be {said}", source=str(path))
