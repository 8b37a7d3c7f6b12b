"""What the rules make of route talk that has nothing to do with the task they read for.

Run from the repository root; a few seconds::

    python benchmarks/foreign.py --data FOLDER [--seed 1] [--n 100] [--sheet FILE] [--moves instruct]

People of the HCRC Map Task tell each other a route past landmarks on a map that has no grocery store. Every
move of a route giver that is annotated as an instruction is read alone, with the usual rules, on the task
``grocery``, heading left in the middle of the map. No square there has room on all sides, so each is read
from two: row 9, column 8, with 7 squares above, 6 to the left, 9 to the right and none below, and row 2,
column 8, with 7 below, none above, and the bakery beside it, where "get it" could be a purchase. An
instruction counts as read with confidence if it is so from either; its program is that of the first. Words
are as the corpus has them: lower case, no punctuation. ``--moves clarify explain check query_w query_yn
align`` reads the givers' other moves instead, most of which describe, ask or explain.

Printed are how many are read, how many with confidence, how many of those say something about the way (their
program is not ``NONE``), and how many confident programs have an instruction of each kind. A ``BUY`` from
such talk is never right.

``--sheet`` writes confident programs that are not ``NONE``, drawn with the seed, with their words, for
judging by a person. The words belong to the corpus, so the file must be outside the repository, and nobody
else can read it. They are judged by these rules, written before any reading was looked at:

sensible
    Every instruction of the program is something that was told to be done, in the sense of its direction,
    turn, distance or order, whatever the map: "go right to the edge of the page" is sensible as ``MOVE right
    end``, and as ``MOVE right``. A part that was said and is missing from the program does not matter where
    what is there leads the same way until then, and does where it turns it into something else: a distance
    that was said and replaced by another, or a "not" that was lost.
not sensible
    Anything else. A side or a turn out of a description or a place ("you should be right next to the lake",
    "the left of the hut"), "right" and "left" that mean no direction, a distance or a direction nobody said,
    an instruction out of a question, a negation or an assumption, an end nobody named, a map direction for
    what is no direction of the map, and every ``BUY``, ``PAY``, ``LEAVE`` and place, as nothing is bought and
    no such place is there. One wrong instruction of several makes the whole not sensible.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

import fidm
from fidm.grounding.base import Context, Segment
from fidm.grounding.route.program import Program, write_program
from fidm.grounding.route.replay import Terrain, replay
from fidm_studies.dataset import dataset_folder
from fidm_studies.map_task.dataset import DATASET, LABEL
from fidm_studies.map_task.files import published_files, read_moves, read_units

WHERE = ((9, 8, "left"), (2, 8, "left"))
"""Where each is read: row and column of the drawing, and heading."""


def said_in(folder: Path, labels: Collection[str]) -> Iterator[str]:
    """The words of every move with one of these labels of those who give a route."""
    files = published_files(folder)
    for path in (path for path in files if path.startswith("moves/")):
        timed = path.replace("moves", "timed-units")
        moves, _ = read_moves(files[path], path, read_units(files[timed], timed))
        for move in moves:
            said = " ".join(unit.text for unit in move.units if unit.kind == "tu").lower()
            if move.label in labels and said:
                yield said


def readings(texts: list[str]) -> Iterator[tuple[bool, Program]]:
    """Whether the rules are confident of each, and the program."""
    rules, terrain = fidm.Rules(), Terrain(fidm.load_task("grocery"))
    contexts = [Context(terrain, terrain.position(*where), language="en") for where in WHERE]
    for text in texts:
        found = []
        for context in contexts:
            proposal = rules.ground(Segment(1, text, (0,), (0,), (0,)), context)
            done = replay(proposal.program, terrain, context.position)
            found.append((proposal.is_confident and not done.doubts, proposal.program))
        yield max(found, key=lambda one: one[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", help="the folder of all data, or of this data set; else what FIDM_DATA names"
    )
    parser.add_argument(
        "--sheet", type=Path, help="a file outside the repository for words and programs to judge"
    )
    parser.add_argument("--n", type=int, default=100, help="how many to judge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moves", nargs="+", default=[LABEL], help="labels of the moves that are read")
    options = parser.parse_args()
    texts = list(said_in(dataset_folder(DATASET, options.data), options.moves))
    read = list(readings(texts))
    sure = [(text, program) for text, (confident, program) in zip(texts, read, strict=True) if confident]
    ways = [(text, program) for text, program in sure if program[0].op != "NONE"]
    kinds = Counter(op for _, program in ways for op in {step.op for step in program})
    print(f"{len(texts)} moves; confident {len(sure)} ({len(sure) / len(texts):.1%})")
    print(f"of those, about the way {len(ways)} ({len(ways) / max(1, len(sure)):.1%})")
    print("programs with " + ", ".join(f"{op} {count}" for op, count in kinds.most_common()))
    print(f"confident programs with a BUY: {kinds['BUY']}")
    if options.sheet:
        if Path(__file__).resolve().parents[1] in options.sheet.resolve().parents:
            sys.exit("The words belong to the corpus: name a file outside the repository.")
        chosen = np.random.default_rng(options.seed).permutation(len(ways))[: options.n]
        options.sheet.unlink(missing_ok=True)
        with os.fdopen(os.open(options.sheet, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sheet:
            for number, i in enumerate(chosen, start=1):
                sheet.write(f"{number}\t{ways[i][0]}\t{write_program(ways[i][1])}\n")


if __name__ == "__main__":
    main()
