"""Check a file of phrasings as its author writes it: ``python scripts/phrasings.py FILE_en.jsonl``.

Prints where each meaning leads (row and column from the top left, from 1) and what is wrong with it: a
program that cannot be read or walked, a place to stand that is a shelf, ids and texts that stand twice. It
never shows what the rules make of a phrasing, so that authors do not write for them.
``tests/data/phrasings/BRIEF.md`` is what authors are given.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from fidm.errors import FidmError
from fidm.grounding.base import UNCLEAR, Phrasing, read_phrasings
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain, replay
from fidm.tasks.compile import load_task

TASKS = ("grocery", "grocery_small")


def walked(item: Phrasing, terrain: Terrain) -> tuple[str, list[str]]:
    """Return where a phrasing leads, and what is wrong with it."""
    position = terrain.position(item.row, item.column, item.heading)
    if item.program == UNCLEAR:
        return UNCLEAR, []
    done = replay(parse_program(item.program, terrain.places), terrain, position)
    cells = [terrain.grid.cell(state) for state in (position.state, *done.states, done.end.state)]
    ends = " ".join(f"{cell[0] + 1},{cell[1] + 1}" for cell in dict.fromkeys(cells) if cell)
    acts = [name for a in done.actions if a >= 0 and len(name := terrain.task.actions[a]) > 1]
    return f"{ends}  {'; '.join(acts)}", [f"cannot be walked as meant: {code}" for code in done.doubts]


def main() -> None:
    """Check one file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--quiet", action="store_true", help="only say what is wrong")
    given = parser.parse_args()
    terrains = {name: Terrain(load_task(name)) for name in TASKS}
    items = read_phrasings(given.file, language=given.file.stem.rsplit("_", 1)[1])
    wrong = 0
    for what in ("id", "text"):
        twice = [
            item.id for item in items if Counter(getattr(i, what) for i in items)[getattr(item, what)] > 1
        ]
        wrong += len(twice)
        if twice:
            print(f"The same {what} stands twice: {', '.join(twice)}")
    for item in items:
        try:
            led, problems = walked(item, terrains[item.task])
        except (FidmError, KeyError, ValueError, IndexError) as error:
            led, problems = "", [str(error)]
        wrong += len(problems)
        if problems or not given.quiet:
            print(f"{item.id}: {item.program}  ->  {led}", *(f"\n    ! {found}" for found in problems))
    kinds = ", ".join(f"{name} {n}" for name, n in Counter(item.kind for item in items).most_common())
    print(f"{len(items)} phrasings ({kinds}); {wrong} problems.")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
