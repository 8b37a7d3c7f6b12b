"""Saying what is wrong in a task file in plain words, with its key, its line and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from fidm.errors import Problem
from fidm.tasks.locate import line_of


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
