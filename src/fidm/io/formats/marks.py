"""Marks, words and roles as JSON files of ours keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fidm.io.formats.base import number, rounded
from fidm.talk import ROLES, Mark, MarkKind, Role, Word

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
