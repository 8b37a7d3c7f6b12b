"""From a path to a text: which files there are, and whether they are text at all."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from fidm.errors import DataError
from fidm.io.formats.base import BrokenError

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
