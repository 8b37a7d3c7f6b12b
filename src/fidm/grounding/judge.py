"""How good a grounder is: phrasings with a known meaning, read one by one and compared move by move.

A file of phrasings has one JSON object per line: ``id``, ``task``, ``row``, ``column`` (of the drawing,
from 1), ``heading`` (or null), ``text``, ``program`` (the meaning, in the route language), ``kind`` and
optionally ``language``. A reading is right if it leads through exactly the same actions as the meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fidm.errors import GroundingError, Problem
from fidm.grounding.base import Context, Grounder, Segment
from fidm.grounding.route.program import parse_program, write_program
from fidm.grounding.route.replay import replay
from fidm.grounding.route.terrain import Terrain
from fidm.tasks.compile import load_task


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

    def __repr__(self) -> str:
        return f"Phrasing({self.id!r})"


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
            found.append(Phrasing(**fields, heading=item.get("heading")))
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(Problem("is no phrasing.", f"line {number}"))
    if problems:
        raise GroundingError("cannot be used.", source=str(path), problems=problems)
    return found


def judge(grounder: Grounder, phrasings: Iterable[Phrasing]) -> pl.DataFrame:
    """Read every phrasing and say which readings are right.

    Returns
    -------
    DataFrame
        ``id``, ``kind``, ``confident``, ``right``, ``doubts``, ``program`` and ``meant`` of each; no text.
    """
    terrains: dict[str, Terrain] = {}
    rows = []
    for item in phrasings:
        if item.task not in terrains:
            terrains[item.task] = Terrain(load_task(item.task))
        terrain = terrains[item.task]
        position = terrain.position(item.row, item.column, item.heading)
        segment = Segment(1, item.text, (0,), (0,), (0,))
        context = Context(terrain, position, language=item.language)
        proposal = grounder.ground(segment, context)
        meant = parse_program(item.program, terrain.places)
        wanted = replay(meant, terrain, position)
        got = replay(proposal.program, terrain, position)
        rows.append(
            {
                "id": item.id,
                "kind": item.kind,
                "confident": proposal.is_confident,
                "right": got.actions == wanted.actions,
                "doubts": ", ".join(proposal.doubts),
                "program": write_program(proposal.program),
                "meant": write_program(meant),
            }
        )
    schema = {"confident": pl.Boolean, "right": pl.Boolean}
    return pl.DataFrame(rows, schema_overrides=schema)
