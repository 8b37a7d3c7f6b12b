"""Saying what is wrong in a task file in plain words, with its key, its line and what may have been meant.

TOML parsers drop the places of keys, so the text is read again, line by line, just far enough to know
under which heading each key stands.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from fidm.errors import Problem

_HEADING = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=\s*(.*?)\s*$")
_OPENING = re.compile(r"(\"\"\"|''')(.*)")


def line_of(text: str, where: str) -> int | None:
    """Find the line of a key such as ``sections.meat.symbol`` in a task file.

    A table in an array is given by its number (``phases.1.targets``) or by its ``name``. ``map.drawing,
    row 3`` is the line of that row. Where the key itself is not in the file, the line of the innermost
    heading above it is returned; where there is none, None.
    """
    if " and " in where:  # several keys: the first that stands in the file
        return next((line for key in where.split(" and ") if (line := line_of(text, key))), None)
    key, _, row = where.partition(", row ")
    lines, numbers = _places(text)
    path = key.split(".")
    if len(path) > 1:
        path[1] = numbers.get((path[0], path[1]), path[1])
    known = (lines[tuple(path[:n])] for n in range(len(path), 0, -1) if tuple(path[:n]) in lines)
    line = next(known, None)
    if line is None or not row.isdigit():
        return line
    return _line_of_row(text.splitlines(), line, int(row))


def _places(text: str) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, str], str]]:
    """The line of every heading and key, and the number of every named table in an array."""
    lines: dict[tuple[str, ...], int] = {}
    numbers: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    until = ""  # the quotes that end the string we are in
    for line, content in enumerate(text.splitlines(), start=1):
        if until:
            until = "" if until in content else until
        elif heading := _HEADING.match(content):
            table = tuple(_bare(part) for part in heading[2].split("."))
            if heading[1] == "[[":
                counts[heading[2]] = counts.get(heading[2], -1) + 1
                lines.setdefault(table, line)
                table = (*table, str(counts[heading[2]]))
            lines.setdefault(table, line)
        elif key := _KEY.match(content):
            path = (*table, *(_bare(part) for part in key[1].split(".")))
            lines.setdefault(path, line)
            if len(path) == 3 and path[2] == "name" and path[1].isdigit():
                numbers.setdefault((path[0], _bare(key[2])), path[1])
            if (opening := _OPENING.match(key[2])) and opening[1] not in opening[2]:
                until = opening[1]
    return lines, numbers


def _line_of_row(lines: list[str], line: int, row: int) -> int:
    """The line of a row of a drawing whose key is on the given line."""
    key = _KEY.match(lines[line - 1])
    opening = _OPENING.match(key[2]) if key else None
    if opening is None or opening[1] in opening[2]:
        return line  # the whole drawing is on one line
    first = line if opening[2] else line + 1
    while first < len(lines) and not lines[first - 1].strip():
        first += 1
    return first + row - 1


def _bare(word: str) -> str:
    return word.strip().strip("\"'")


def toml_hint(message: str) -> str:
    """Say what most often lies behind a TOML parser's complaint."""
    if "('phases',)" in message:
        return " Write [[phases]], with double brackets, above each phase."
    if "Invalid value" in message or "Expected newline" in message:
        return " Text needs quotes, and decimal numbers a point."
    return ""


def explain(
    item: Mapping[str, Any], data: Mapping[str, Any], text: str, known: Callable[[list[Any]], list[str]]
) -> Problem:
    """Put one pydantic finding into our words, with its key and line."""
    path = _named([part for part in item["loc"] if part != "[key]"], data)
    where, kind = ".".join(map(str, path)), item["type"]
    what, hint = item["msg"].removeprefix("Value error, ").removeprefix("Input should be "), ""
    if kind == "extra_forbidden":
        what, hint = "is not a known key.", did_you_mean(str(path[-1]), known(path[:-1]))
    elif kind == "missing":
        what = "is missing."
    elif kind == "finite_number":
        what = "is not a finite number."
    elif kind == "tuple_type" and path == ["phases"]:
        what = "needs double brackets: write [[phases]] above each phase."
    elif kind == "tuple_type":
        what = f'should be a list, such as ["a", "b"], not {shown(item["input"])}.'
    elif item["msg"].startswith("Input should be "):
        what = f"should be {what}, not {shown(item['input'])}."
    elif not what.endswith("."):
        what = f"{what[0].lower()}{what[1:]}."
    return located(Problem(what, where or "the file", hint=hint), text)


def _named(path: list[Any], data: Mapping[str, Any]) -> list[Any]:
    """The same path with a phase's name in the place of its number, and without a list's numbers."""
    if len(path) < 3 or path[0] != "phases":
        return [part for part in path if not isinstance(part, int)] if path[:1] == ["sections"] else path
    name = data["phases"][path[1]].get("name")
    known = isinstance(name, str) and path[2] != "name"
    return ["phases", name if known else path[1], *(p for p in path[2:] if not isinstance(p, int))]


def shown(value: object) -> str:
    """Show a value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def did_you_mean(word: str, known: Any) -> str:
    """Guess which of the known words was meant, or list them."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known here: {', '.join(known)}."


def located(problem: Problem, text: str) -> Problem:
    """Add the line to a problem whose key stands in the text."""
    line = problem.line if problem.line is not None else line_of(text, problem.where)
    return Problem(problem.what, problem.where, line, problem.hint)
