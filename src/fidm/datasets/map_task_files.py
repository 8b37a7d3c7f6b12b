"""The files of the HCRC Map Task: moves and timed units of a speaker, from a folder or from an archive.

A file of moves says, for each move, its label and the first and last timed unit of it; a file of timed units
has words (``tu``), silences (``sil``) and noises (``noi``) with their times. Files are XML; one with a
document type is refused, since only such a file can make a small text grow without end.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from fidm.errors import DataError

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
    """Return the giver's files by their paths, from the single files of a folder or else from its archive.

    Parameters
    ----------
    folder : path
        Has the folders ``moves`` and ``timed-units``, or the archive.
    """
    if (folder / "moves").is_dir():
        found = dict(_from_folder(folder))
    elif (folder / ARCHIVE).is_file():
        found = dict(_from_archive(folder / ARCHIVE))
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
    for element in _root(data, path):
        if element.tag not in ("tu", "sil", "noi"):
            continue
        try:
            start, end = float(element.attrib["start"]), float(element.attrib["end"])
            name = element.attrib["id"]
        except (KeyError, ValueError):
            raise DataError(
                f"Unit {len(found) + 1} has no id, start and end in seconds.", source=path
            ) from None
        if not 0 <= start <= end < float("inf"):
            raise DataError(f"Unit {name!r} ends before it begins.", source=path)
        found[name] = Unit(element.tag, start, end, (element.text or "").strip())
    return found


def read_moves(data: bytes, path: str, units: Mapping[str, Unit]) -> tuple[list[Move], list[str]]:
    """Return the moves of one speaker in a dialog, and the names of those whose units are not there."""
    order = {name: place for place, name in enumerate(units)}
    every = tuple(units.values())
    moves: list[Move] = []
    lost: list[str] = []
    for element in _root(data, path):
        if element.tag != "move":
            continue
        name = element.get("id", "").rpartition(".")[2]
        child = element.find(_CHILD)
        link = _LINK.fullmatch("" if child is None else child.get("href", ""))
        first = None if link is None else order.get(link[1])
        last = None if link is None else order.get(link[2] or link[1])
        if first is None or last is None or last < first:
            lost.append(name)
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
    for place in sorted(folder.glob(f"moves/*.{GIVER}.moves.xml")) + sorted(
        folder.glob(f"timed-units/*.{GIVER}.timed-units.xml")
    ):
        path = place.relative_to(folder).as_posix()
        if _FILE.fullmatch(path):
            _check_size(place.stat().st_size, str(place))
            yield path, place.read_bytes()


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
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"cannot be read as an archive: {error}.", source=str(archive)) from None


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
        raise DataError(f"The file is not XML: {error}.", source=path) from None
