"""The files of the HCRC Map Task: moves and timed units of a speaker, from a folder or from an archive.

A file of moves says, for each move, its label and the first and last timed unit of it; a file of timed units
has words (``tu``), silences (``sil``) and noises (``noi``) with their times. Files are XML; one with a
document type is refused, since only such a file can make a small text grow without end.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from fidm.errors import DataError
from fidm_studies.dataset import visible_files

ARCHIVE = "hcrc_timed_units_and_moves.tar.gz"
"""An archive that holds all files; whoever has it needs no others."""

GIVER = "g"
"""Who speaks, in the names of files: ``g`` the one who gives the route, ``f`` the one who follows it."""

DIALOG = re.compile(r"q([1-8])([en])c([1-8])")
"""The name of a dialog: quad, eye contact or none, conversation."""

LARGEST_FILE = 20_000_000
"""No published file is a tenth as large, in bytes; a larger one is not read."""

_FILE = re.compile(rf"(?:\./)?((?:moves|timed-units)/{DIALOG.pattern}\.[gf]\.(?:moves|timed-units)\.xml)")
_LINK = re.compile(r"[^#]*#id\(([^()]+)\)(?:\.\.id\(([^()]+)\))?")
_NUMBER = re.compile(r"[0-9]{1,6}")
_CHILD = "{http://nite.sourceforge.net/}child"


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, a silence or a noise, and when it was.

    Parameters
    ----------
    kind : str
        ``"tu"`` for a word, ``"sil"`` for a silence, ``"noi"`` for a noise.
    start_s, end_s : float
        When it began and ended.
    text : str
        The word; empty for the others.
    """

    kind: str
    start_s: float
    end_s: float
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Move:
    """One annotated move: what it does in the dialog, and the units it is made of.

    Parameters
    ----------
    name : str
        Its number in the dialog, such as ``"12"``.
    label : str
        What it does: ``"instruct"``, ``"check"`` and so on.
    units : tuple of Unit
        From its first to its last one, silences and noises in between included.
    abandoned : bool
        Whether the speaker gave it up before its end.
    """

    name: str
    label: str
    units: tuple[Unit, ...]
    abandoned: bool


def published_files(folder: Path) -> Mapping[str, bytes]:
    """Return the giver's files by their paths, from a folder's archive or else from its single files.

    The archive goes first, since it is also what is checked where there is one
    (:func:`fidm_studies.verify`).
    """
    if (folder / ARCHIVE).is_file():
        found = dict(_from_archive(folder / ARCHIVE))
    elif (folder / "moves").is_dir():
        found = dict(_from_folder(folder))
    else:
        raise DataError(
            f"There is neither a folder 'moves' nor the archive {ARCHIVE}. "
            "Name the folder that holds one of them, or download the files.",
            source=str(folder),
        )
    return {path: found[path] for path in sorted(found)}


def read_units(data: bytes, path: str) -> dict[str, Unit]:
    """Return the timed units of one speaker in a dialog, by their ids and in the order of the file."""
    found: dict[str, Unit] = {}
    timed = (element for element in _root(data, path) if element.tag in ("tu", "sil", "noi"))
    for number, element in enumerate(timed, 1):
        try:
            start, end = float(element.attrib["start"]), float(element.attrib["end"])
            name = element.attrib["id"]
        except (KeyError, ValueError):
            raise DataError(f"Unit {number} has no id, start and end in seconds.", source=path) from None
        if not 0 <= start <= end < float("inf"):
            raise DataError(f"Unit {number} ends before it begins.", source=path)
        if name in found:
            raise DataError(f"Unit {number} has the id of another one.", source=path)
        found[name] = Unit(element.tag, start, end, (element.text or "").strip())
    return found


def read_moves(data: bytes, path: str, units: Mapping[str, Unit]) -> tuple[list[Move], list[int]]:
    """Return the moves of one speaker in a dialog, and the places of those whose units are not there.

    Places are counted from 1 in the order of the file; what it calls a move may be anything.
    """
    order = {name: place for place, name in enumerate(units)}
    every = tuple(units.values())
    moves: list[Move] = []
    lost: list[int] = []
    names: set[str] = set()
    annotated = (element for element in _root(data, path) if element.tag == "move")
    for number, element in enumerate(annotated, 1):
        whole = element.get("id", "")
        name = whole.rpartition(".")[2]
        if not _NUMBER.fullmatch(name) or whole in names:
            raise DataError(f"Move {number} has no id of its own that ends with a number.", source=path)
        names.add(whole)
        child = element.find(_CHILD)
        link = _LINK.fullmatch("" if child is None else child.get("href", ""))
        first = None if link is None else order.get(link[1])
        last = None if link is None else order.get(link[2] or link[1])
        if first is None or last is None or last < first:
            lost.append(number)
            continue
        moves.append(
            Move(
                name=name,
                label=element.get("label", ""),
                units=every[first : last + 1],
                abandoned=element.get("aban") == "true_aban",
            )
        )
    return moves, lost


def _from_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    for kind in ("moves", "timed-units"):
        for place in visible_files(folder / kind, f"*.{GIVER}.{kind}.xml"):
            path = place.relative_to(folder).as_posix()
            if not _FILE.fullmatch(path):
                continue
            try:
                _check_size(place.stat().st_size, str(place))
                yield path, place.read_bytes()
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}.", source=str(place)) from None


def _from_archive(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The files in an archive; nothing is ever unpacked onto the disk."""
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                name = _FILE.fullmatch(member.name)
                if name is None or not member.isfile() or f".{GIVER}." not in member.name:
                    continue
                _check_size(member.size, f"{archive}, {member.name}")
                content = packed.extractfile(member)
                if content is not None:
                    yield name[1], content.read()
            while packed.fileobj is not None and packed.fileobj.read(LARGEST_FILE):
                pass  # at its very end is the checksum of it all, which reading up to there compares
    except (tarfile.TarError, EOFError, OSError, ValueError, LookupError, zlib.error) as error:
        raise DataError(
            f"cannot be read as an archive ({type(error).__name__}). Is it the published file?",
            source=str(archive),
        ) from None


def _check_size(size: int, source: str) -> None:
    if size > LARGEST_FILE:
        raise DataError(f"The file has {size:,} bytes; no published one has a tenth of that.", source=source)


def _root(data: bytes, path: str) -> ElementTree.Element:
    """The root of an XML text without a document type, so that no entity can be declared in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("The file is not UTF-8.", source=path) from None
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError("The file declares a document type, which no published one does.", source=path)
    try:
        # Decoded above, so the parser knows no other encoding in which a document type could hide.
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        line, column = error.position
        raise DataError(f"The file is not XML: line {line}, character {column + 1}.", source=path) from None
