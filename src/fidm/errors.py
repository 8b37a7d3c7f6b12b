"""Every error fidm raises on purpose: what went wrong, where, why, and what to do now.

An error carries its problems as fields, so that a program can read them, and prints them as
sentences, so that a person can. Batch work collects all its problems before it raises.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

MOST_LISTED, MOST_ALIKE = 100, 5
"""How many problems a message lists, and how many of one kind; the rest it counts. ``problems`` holds all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, and what to do about it.

    Parameters
    ----------
    what : str
        The problem, as a sentence without its place.
    where : str
        The key, row or file it concerns, such as ``map.drawing, row 3``.
    line : int or None
        The line of the file, counted from 1, where it is known.
    hint : str
        What to do now; may be empty.
    """

    what: str
    where: str = ""
    line: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = self.where
        if self.line is not None:
            place = f"{place} (line {self.line})" if place else f"line {self.line}"
        text = f"{place}: {self.what}" if place else self.what
        return f"{text} {self.hint}" if self.hint else text


class FidmError(Exception):
    """The parent of every error fidm raises on purpose.

    Parameters
    ----------
    message : str
        What went wrong, in one sentence.
    source : str
        The file or object it happened in; may be empty.
    problems : sequence of Problem
        Each single problem found; all of them, not only the first.
    """

    def __init__(self, message: str, *, source: str = "", problems: Sequence[Problem] = ()) -> None:
        self.message = message
        self.source = source
        self.problems = tuple(problems)
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.source}: {self.message}" if self.source else self.message
        if len(self.problems) == 1 and not self.message:
            return f"{self.source}: {self.problems[0]}" if self.source else str(self.problems[0])
        shown: dict[str, int] = {}
        lines: list[str] = []
        hidden = 0
        for problem in self.problems:
            shown[problem.what] = shown.get(problem.what, 0) + 1
            if shown[problem.what] <= MOST_ALIKE and len(lines) < MOST_LISTED:
                lines.append(f"  - {problem}")
            elif shown[problem.what] <= MOST_ALIKE:
                hidden += 1
        alike = {what: times - MOST_ALIKE for what, times in shown.items() if times > MOST_ALIKE}
        lines += [
            f"  - … and {count(times, 'time')} more: {what}" for what, times in list(alike.items())[:20]
        ]
        hidden += sum(list(alike.values())[20:])
        if hidden:
            lines.append(f"  - … and {hidden:,} more")
        return "\n".join([head, *lines])


_doors = ["Python"]


@contextmanager
def command_line() -> Iterator[None]:
    """Let messages name options of the command line for a while, in all threads of this process."""
    _doors.append("command line")
    try:
        yield
    finally:
        _doors.pop()


def remedy(python: str, options: str) -> str:
    """Return what to do in the words of the door people came through: Python's, or the command line's.

    It is asked where a message is made, so a message never has to be translated.

    Examples
    --------
    >>> remedy("strict=False", "--skip-bad")
    'strict=False'
    >>> with command_line():
    ...     remedy("strict=False", "--skip-bad")
    '--skip-bad'
    """
    return python if _doors[-1] == "Python" else options


class TaskError(FidmError):
    """A task cannot be read, compiled or solved."""


class DataError(FidmError):
    """Data handed to fidm does not fit its task or its schema."""


class GroundingError(FidmError):
    """Words could not be turned into legal moves."""


class FitError(FidmError):
    """A model could not be fitted to the data it was given.

    ``channel`` names the effort channel that cannot be learned, where one alone is the reason.
    """

    channel: str = ""


def one_of(name: str, value: str, allowed: Sequence[str], error: type[FidmError] = DataError) -> None:
    """Raise unless an option has one of its values."""
    if value not in allowed:
        raise error(f"{name} is {value!r}; it must be {' or '.join(map(repr, allowed))}.")


def at_least(name: str, value: float, least: int, error: type[FidmError] = DataError) -> None:
    """Raise unless an option is so large."""
    if not value >= least:
        raise error(f"{name} is {value}; it must be {least} or more.")


def listed(names: Iterable[str]) -> str:
    """Return names as one says them: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def few(names: Iterable[object]) -> str:
    """Return the first five names, and how many more there are."""
    said = [str(name) for name in names]
    return ", ".join(said[:5]) + (f" and {len(said) - 5} more" if len(said) > 5 else "")


MOST_KNOWN = 20
"""How many of the names that there are a message lists."""


def meant(names: Iterable[str], known: Iterable[str]) -> str:
    """Return which known names were probably meant by unknown ones, and what there is.

    Examples
    --------
    >>> meant(["Agee", "sit"], ["age", "site", "sex"]), meant(["height"], ["age"])
    ('Did you mean age and site? There are: age, site, sex.', 'There are: age.')
    """
    every = list(dict.fromkeys(known))
    folded = {name.casefold(): name for name in every}
    near = [one for name in names for one in difflib.get_close_matches(name.casefold(), folded, n=1)]
    guess = f"Did you mean {listed(folded[one] for one in dict.fromkeys(near))}? " if near else ""
    more = f" and {len(every) - MOST_KNOWN} more" if len(every) > MOST_KNOWN else ""
    return f"{guess}There are: {', '.join(every[:MOST_KNOWN])}{more}."


def count(n: int, thing: str, things: str = "") -> str:
    """Return how many there are, in words.

    Examples
    --------
    >>> count(1, "person", "people"), count(1200, "step")
    ('1 person', '1,200 steps')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"
