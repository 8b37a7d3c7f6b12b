"""Route programs: what somebody said about the way, as a short list of instructions.

A grounder turns words into a program and never into moves; :mod:`fidm.grounding.route.replay` alone expands
it on the map. The whole language, one instruction per line or separated by semicolons:

=================================  ========================================================================
``MOVE up 3``                      three squares up the map (also ``down``, ``left``, ``right``)
``MOVE ahead 2``                   two squares in the direction the figure faces
``MOVE up end``                    until a shelf or wall stops it
``MOVE up to meat``                until the meat can be reached
``MOVE up``                        nobody said how far: until the next instruction becomes possible
``TURN left``                      face left, as the figure sees it (also ``right``, ``around``)
``GOTO meat``                      go there; the way is left to the planner
``ALONG`` or ``ALONG meat``        follow the aisle to where it forks or ends, or until the meat is reached
``BACK 2`` or ``BACK``             turn round and go two squares back, or back to where one came from
``BUY meat``                       take something there
``PAY``, ``LEAVE``                 the task's finish, its exit
``NONE``                           nothing about the way was said
=================================  ========================================================================

Places are the sections of the task, and ``START``, ``FINISH`` and ``EXIT``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from fidm.errors import GroundingError

Op = Literal["MOVE", "TURN", "GOTO", "ALONG", "BACK", "BUY", "PAY", "LEAVE", "NONE"]
Way = Literal["", "up", "down", "left", "right", "ahead", "around"]

OPS: tuple[Op, ...] = get_args(Op)
MOVE_WAYS = ("up", "down", "left", "right", "ahead")
TURN_WAYS = ("left", "right", "around")

START, FINISH, EXIT = "START", "FINISH", "EXIT"
"""Places that are no sections: where the task starts, where it is finished, and the way out."""

MAX_INSTRUCTIONS = 64
"""The longest program; nobody says more in one breath."""

MAX_SQUARES = 999


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a route program, with the words it came from.

    Parameters
    ----------
    op : str
        What to do.
    way : str
        The direction of a MOVE or a TURN.
    squares : int or None
        How far, for MOVE and BACK; None where nobody said.
    to_end : bool
        A MOVE until something is in the way.
    place : str
        A section, START, FINISH or EXIT.
    span : tuple of int
        The stretch of the segment's text it came from, in code points.
    probability : float
        How sure the grounder is of it.
    """

    op: Op
    way: Way = ""
    squares: int | None = None
    to_end: bool = False
    place: str = ""
    span: tuple[int, int] = (0, 0)
    probability: float = 1.0

    def __str__(self) -> str:
        return _written(self.op, self.way, self.squares, self.to_end, self.place)


@lru_cache(maxsize=4096)  # people say the same few things
def _written(op: Op, way: Way, squares: int | None, to_end: bool, place: str) -> str:
    said: list[str] = [op, way]
    if to_end:
        said.append("end")
    elif squares is not None:
        said.append(str(squares))
    if place:
        said.append(f"to {place}" if op == "MOVE" else place)
    return " ".join(word for word in said if word)


Program = tuple[Instruction, ...]
"""What one segment says about the way."""

NOTHING: Program = (Instruction("NONE"),)
"""The program of words that say nothing about the way."""


def write_program(program: Iterable[Instruction]) -> str:
    """Return a program as one line of text.

    Examples
    --------
    >>> write_program([Instruction("MOVE", "up", 3), Instruction("BUY", place="meat")])
    'MOVE up 3; BUY meat'
    """
    return "; ".join(map(str, program))


def same_program(one: Sequence[Instruction], other: Sequence[Instruction]) -> bool:
    """Whether two programs say the same, whatever words they came from."""
    return write_program(one) == write_program(other)


def parse_program(text: str, places: Iterable[str]) -> Program:
    """Read a program from text.

    Parameters
    ----------
    text : str
        Instructions, separated by semicolons or line ends.
    places : iterable of str
        The sections of the task; START, FINISH and EXIT are known besides.

    Examples
    --------
    >>> [str(step) for step in parse_program("turn left; MOVE ahead end; BUY meat", ["meat"])]
    ['TURN left', 'MOVE ahead end', 'BUY meat']
    """
    known = {place.casefold(): place for place in (*places, START, FINISH, EXIT)}
    parts = [part.split() for part in re.split(r"[;\n]", text) if part.strip()]
    if len(parts) > MAX_INSTRUCTIONS:
        raise GroundingError(f"A program has at most {MAX_INSTRUCTIONS} instructions, not {len(parts)}.")
    found = tuple(_parse(i, words, known) for i, words in enumerate(parts, start=1))
    return tidy(found)


def tidy(program: Iterable[Instruction]) -> Program:
    """Leave out NONE beside other instructions; an empty program is NONE."""
    kept = tuple(step for step in program if step.op != "NONE")
    return kept[:MAX_INSTRUCTIONS] or NOTHING


def _parse(number: int, words: Sequence[str], known: dict[str, str]) -> Instruction:
    op, rest = words[0].upper(), [word.casefold() for word in words[1:]]
    where = f"Instruction {number}"
    if op not in OPS:
        raise GroundingError(f"{where} has no known name. Known: {', '.join(OPS)}.")
    step = Instruction(op)
    if op in ("MOVE", "TURN"):
        ways = MOVE_WAYS if op == "MOVE" else TURN_WAYS
        if not rest or rest[0] not in ways:
            raise GroundingError(f"{where}: {op} needs one of {', '.join(ways)}.")
        step = replace(step, way=rest.pop(0))  # type: ignore[arg-type]
    if op == "MOVE" and rest and rest[0] == "end":
        rest.pop(0)
        step = replace(step, to_end=True)
    elif op in ("MOVE", "BACK") and rest and rest[0].isascii() and rest[0].isdigit():
        squares = int(rest.pop(0)[:6])
        if not 1 <= squares <= MAX_SQUARES:
            raise GroundingError(f"{where}: a number of squares is 1 to {MAX_SQUARES}.")
        step = replace(step, squares=squares)
    elif op == "MOVE" and rest and rest[0] == "to":
        rest.pop(0)
        step = replace(step, place=_place(where, rest, known))
    elif op in ("GOTO", "BUY", "ALONG", "BACK") and (rest or op in ("GOTO", "BUY")):
        step = replace(step, place=_place(where, rest, known))
    if rest:
        raise GroundingError(f"{where}: {op} is followed by more than it takes.")
    return step


def _place(where: str, rest: list[str], known: dict[str, str]) -> str:
    word = rest.pop(0) if rest else ""
    if word not in known:
        raise GroundingError(f"{where} names no place of the task. Known: {', '.join(known.values())}.")
    return known[word]
