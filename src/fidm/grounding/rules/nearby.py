"""Readings close to that of the grammar: one thing less, one more, another use of a place, another clause.

Most wrong readings are nearly right: something told of was taken for an instruction, a correction was not
seen, a thing asked for was not recognised as such. Each of these is undone once here; which reading is the
most probable one is decided elsewhere (:mod:`fidm.grounding.rules.confidence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fidm.grounding.route.program import EXIT, FINISH, NOTHING, START, Instruction, Program
from fidm.grounding.rules.language import Token

MOST_CLAUSES = 10
"""In longer talk clauses are not read anew."""

_NO_SECTIONS = (START, FINISH, EXIT)


def nearby(program: Program, tokens: Sequence[Token]) -> Iterator[tuple[str, Program]]:
    """Yield readings that differ from one in one instruction, and how they differ."""
    steps = () if program == NOTHING else program
    if steps:
        yield "none", NOTHING
    for i, step in enumerate(steps):
        if len(steps) > 1:
            yield "less", (*steps[:i], *steps[i + 1 :])
        if i > 1:
            yield "later", steps[i:]
        if step.op in ("BUY", "GOTO") and step.place not in _NO_SECTIONS:
            other = replace(step, op="GOTO" if step.op == "BUY" else "BUY")
            yield "otherwise", (*steps[:i], other, *steps[i + 1 :])
    for step in _named(tokens):
        if not any((step.op, step.place) == (known.op, known.place) for known in steps):
            at = sum(known.span[0] <= step.span[0] for known in steps)
            yield "more", (*steps[:at], step, *steps[at:])
            if len(steps) > 1:
                yield "only", (step,)


def _named(tokens: Sequence[Token]) -> Iterator[Instruction]:
    """Yield what may be done at each place that is named."""
    named: set[str] = set()
    for token in tokens:
        for place in str(token.value).split("|")[:2] if token.kind == "PLACE" else ():
            if place not in named and place != START:  # people say where that is; nobody has to go there
                named.add(place)
                span = (token.start, token.end)
                yield Instruction("GOTO", place=place, span=span)
                if place not in _NO_SECTIONS:
                    yield Instruction("BUY", place=place, span=span)
