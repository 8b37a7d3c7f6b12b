"""What a grounder is given, what it gives back, and how good it is.

A grounder reads one segment of talk in its context and proposes what it says about the way: one route
program, or several with probabilities. It never makes moves, so no grounder can make an illegal one.

How good it is, phrasings with a known meaning tell, read one by one and compared move by move. A file of
phrasings has one JSON object per line: ``id``, ``task``, ``row``, ``column`` (of the drawing, from 1),
``heading`` (or null), ``text``, ``program`` (the meaning, in the route language), ``kind`` and optionally
``language``. A reading is right if it leads through exactly the same actions as the meaning. Where something
is meant that words and position do not settle, the program is ``UNCLEAR``: no reading is right there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import polars as pl

from fidm.errors import GroundingError, Problem
from fidm.grounding.route.program import NOTHING, Program, parse_program, same_program, write_program
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.io.talk import Role
from fidm.tasks.compile import load_task


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of participant talk about the way, until the figure is moved.

    Parameters
    ----------
    number : int
        Counted from 1 within the dialog.
    text : str
        What the participant said, one line per turn.
    turns : tuple of int
        The participant's turns, as numbers of the transcript's turns, from 0.
    starts : tuple of int
        Where each of them begins in the text.
    dialog : tuple of int
        All turns from the first to the last of them, those of the assessor included.
    opened : tuple of str
        The phases that were opened since the segment before.
    closed_by : str
        What ended it: ``moved``, ``event``, ``request``, ``instruction``, ``prompt`` or ``end``.
    reached : tuple of str
        The place where the assessor says that the figure is now, if any.
    """

    number: int
    text: str
    turns: tuple[int, ...]
    starts: tuple[int, ...]
    dialog: tuple[int, ...]
    opened: tuple[str, ...] = ()
    closed_by: str = "end"
    reached: tuple[str, ...] = ()

    def turn_of(self, place: int) -> tuple[int, int]:
        """Return the turn a place of the text belongs to, and the place within that turn's own text."""
        row = max(i for i, start in enumerate(self.starts) if start <= max(0, place))
        return self.turns[row], place - self.starts[row]

    def __repr__(self) -> str:
        return f"Segment({self.number}, {len(self.turns)} turns, {len(self.text)} characters)"


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What is known when a segment is read.

    Parameters
    ----------
    terrain : Terrain
        The map.
    position : Position
        Where the person is.
    language : str
        The language spoken, such as ``"yue"`` or ``"en"``.
    told : frozenset of str
        The phases somebody opens in this dialog.
    preceding : tuple of (role, text)
        The turns before the segment, the latest last.
    """

    terrain: Terrain
    position: Position
    language: str = "en"
    told: frozenset[str] = frozenset()
    preceding: tuple[tuple[Role, str], ...] = field(default=(), repr=False)


ALL, HALF = 0.999, 0.5

MARKS = re.compile(r"[，,、;；:：—–\"“”()（）…⋯。.!！?？]+")
"""Punctuation that speech recognisers leave out."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand a segment.

    Parameters
    ----------
    program : tuple of Instruction
        What it says about the way.
    probability : float
        How probable this reading is.
    """

    program: Program
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a grounder makes of one segment.

    Parameters
    ----------
    readings : tuple of Reading
        The most probable first; never empty. Their probabilities sum to at most one; what is left is for
        anything else.
    doubts : tuple of str
        Why a person should look at it, in short codes; empty where the grounder is confident.
    grounder : str
        Who proposed it: ``rules``, ``llm``, or in a hybrid the one that was followed.
    """

    readings: tuple[Reading, ...] = (Reading(NOTHING),)
    doubts: tuple[str, ...] = ()
    grounder: str = ""

    @property
    def program(self) -> Program:
        """The most probable reading."""
        return self.readings[0].program

    @property
    def sureness(self) -> float:
        """How probable the most probable reading is."""
        return self.readings[0].probability

    def trusted(self) -> tuple[Reading, ...]:
        """Return the readings as probable as they can be believed to be.

        A grounder that doubts and leaves nothing for anything else does not say how sure it is; its readings
        are trusted half.
        """
        total = math.fsum(reading.probability for reading in self.readings)
        if not self.doubts or total < ALL:
            return self.readings
        return tuple(Reading(one.program, HALF * one.probability / total) for one in self.readings)

    @property
    def is_confident(self) -> bool:
        """Whether nobody needs to look at it."""
        return not self.doubts

    @classmethod
    def of(
        cls, weighed: list[tuple[Program, float]], doubts: tuple[str, ...] = (), grounder: str = ""
    ) -> Proposal:
        """Put readings together: equal ones are added up, and probabilities sum to at most one."""
        merged: list[tuple[Program, float]] = []
        for program, weight in weighed:
            for i, (known, total) in enumerate(merged):
                if same_program(known, program):
                    merged[i] = (known, total + weight)
                    break
            else:
                merged.append((program, weight))
        whole = max(1.0, sum(weight for _, weight in merged))
        merged.sort(key=lambda pair: -pair[1])
        readings = tuple(Reading(program, weight / whole) for program, weight in merged)
        return cls(readings or (Reading(NOTHING),), doubts, grounder)


@runtime_checkable
class Grounder(Protocol):
    """Anything that reads a segment and proposes a route program."""

    @property
    def name(self) -> str:
        """A short name, such as ``rules``."""

    def provenance(self) -> Mapping[str, Any]:
        """Return what a later reader must know to repeat the work: versions, hashes, settings."""

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way."""

    def close(self) -> None:
        """Let go of files and connections."""


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Something one might say, where one is, and what it means."""

    id: str
    task: str
    row: int
    column: int
    heading: str | None
    text: str
    program: str
    kind: str
    language: str
    spaced: str = ""  # the same with spaces between words, where the language has none

    def __repr__(self) -> str:
        return f"Phrasing({self.id!r})"

    def unpunctuated(self) -> Phrasing:
        """Return it as speech recognisers write: small letters, and no punctuation."""
        gap = " " if max(self.text, default="") < "\u2e80" else ""  # Chinese has no spaces
        lines = [re.sub(" +", " ", MARKS.sub(gap, line.lower())).strip() for line in self.text.split("\n")]
        if not gap:
            lines = [re.sub("(?<![a-z]) | (?![a-z])", "", line) for line in lines]
        return replace(self, text="\n".join(lines))


def read_phrasings(path: str | Path, *, language: str) -> list[Phrasing]:
    """Read a file of phrasings; every line that cannot be used is reported."""
    found: list[Phrasing] = []
    problems: list[Problem] = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            item = {"kind": "", "language": language, **json.loads(line)}
            texts = ("id", "task", "text", "program", "kind", "language")
            fields: dict[str, Any] = {name: str(item[name]) for name in texts}
            fields |= {name: int(item[name]) for name in ("row", "column")}
            found.append(Phrasing(**fields, heading=item.get("heading"), spaced=item.get("spaced", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(Problem("is no phrasing.", f"line {number}"))
    if problems:
        raise GroundingError("cannot be used.", source=str(path), problems=problems)
    return found


UNCLEAR = "UNCLEAR"
"""The program of a phrasing that means something, but not what."""


def placed(
    phrasings: Iterable[Phrasing],
) -> Iterator[tuple[Phrasing, Segment, Context, list[int] | None]]:
    """Yield each phrasing as a segment, where it is said, and the actions it means; None if unclear."""
    terrains: dict[str, Terrain] = {}
    for item in phrasings:
        if item.task not in terrains:
            terrains[item.task] = Terrain(load_task(item.task))
        terrain = terrains[item.task]
        position = terrain.position(item.row, item.column, item.heading)
        wanted = None
        if item.program != UNCLEAR:
            wanted = replay(parse_program(item.program, terrain.places), terrain, position).actions
        segment = Segment(1, item.text, (0,), (0,), (0,))
        yield item, segment, Context(terrain, position, language=item.language), wanted


def judge(grounder: Grounder, phrasings: Iterable[Phrasing]) -> pl.DataFrame:
    """Read every phrasing and say which readings are right.

    Returns
    -------
    DataFrame
        ``id``, ``kind``, ``confident``, ``right``, ``doubts``, ``program`` and ``meant`` of each; no text.
    """
    rows = []
    for item, segment, context, wanted in placed(phrasings):
        proposal = grounder.ground(segment, context)
        got = replay(proposal.program, context.terrain, context.position)
        rows.append(
            {
                "id": item.id,
                "kind": item.kind,
                "confident": proposal.is_confident and not got.doubts,
                "right": got.actions == wanted,
                "doubts": ", ".join(proposal.doubts),
                "program": write_program(proposal.program),
                "meant": item.program,
            }
        )
    schema = {"confident": pl.Boolean, "right": pl.Boolean}
    return pl.DataFrame(rows, schema_overrides=schema)
