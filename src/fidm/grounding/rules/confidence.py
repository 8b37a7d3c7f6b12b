"""How probable it is that a reading of a segment is right, given what the rules noticed.

What is noticed are the doubts and a few plain facts: how much of the talk is unknown, whether it says
anything about the way, how long it is, whether it was corrected; how well the reading agrees with what the
words alone speak for (:mod:`fidm.grounding.rules.opinion`), and how it compares with readings close to it.
The log odds are a sum over small decision trees (gradient boosting). They were learned on phrasings that
nobody had seen who wrote the rules (``scripts/confidence.py``) and stand in ``confidence.json``.

Readings close to that of the grammar are one thing less, one more, another use of a place, another clause.
Most wrong readings are nearly right: something told of was taken for an instruction, a correction was not
seen, a thing asked for was not recognised as such. Each of these is undone once; which reading is the most
probable one is decided like everything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fidm.grounding.route.program import EXIT, FINISH, NOTHING, START, Instruction, Program
from fidm.grounding.route.replay import Replay
from fidm.grounding.rules.grammar import CORE, Clause
from fidm.grounding.rules.language import BREAK, DIRECTIONS, QUESTION, STOP, UNKNOWN, Token

PUNCTUATION = (BREAK, STOP, QUESTION)
ASKING = frozenset({"BUY", "NEED", "POLITE", "TAG", "GO", "TO", "SOME", "NUMBER", "PAST"})
POINTING = ("HERE", "IT", "VAGUE")
PLAIN = frozenset({*DIRECTIONS, "GO", "TO", "AHEAD", "TURN", "NUMBER", "UNIT", "AND", "THEN"})
LONGEST_PLAIN, SURE_IF_PLAIN = 8, 0.97
"""What is plain is right at least so often; phrasings have too little of it to learn all its forms."""
WHY = {"unreal": "told", "not": "refused", "asked": "asked", "perhaps asked": "asked", "if": "asked"}


def notice(
    doubts: Sequence[str], clauses: Sequence[Clause], tokens: Sequence[Token], program: Program
) -> dict[str, float]:
    """Return what the probability of any reading of a segment depends on, given what the grammar read."""
    live = [clause for clause in clauses if not clause.dead]
    core = [t for clause in live for t in clause.tokens if t.kind in CORE]
    used = [step.span for step in program]
    places = [clause for clause in live if "PLACE" in clause.kinds]
    found = {f"doubt {doubt}": 1.0 for doubt in doubts}
    found |= {f"points {kind.lower()}": 1.0 for clause in live for kind in _pointing(clause.tokens)}
    found |= {f"set aside, {WHY[clause.dead]}": 1.0 for clause in clauses if clause.dead in WHY}
    found |= {
        "doubts": float(len(doubts)),
        "words": math.log1p(len(tokens)),
        "unknown": _share_unknown(tokens),
        "unknown on": _share_unknown([t for clause in live for t in clause.tokens]),
        "corrected": float(any(clause.repairs for clause in clauses)),
        "unpunctuated": float(len(tokens) > 6 and not any(token.kind in PUNCTUATION for token in tokens)),
        "left over": min(3.0, sum(not any(a <= t.start < b for a, b in used) for t in core)),
        "places unasked": float(sum(ASKING.isdisjoint(clause.kinds) for clause in places)),
        "told of": float(any(not clause.kinds.isdisjoint(("THAT", "MY")) for clause in live)),
        "own": float(any(token.kind == "OWN" for token in tokens)),
        "plain": float(is_plain(doubts, tokens, program)),
    }
    return {name: value for name, value in found.items() if value}


def is_plain(doubts: Sequence[str], tokens: Sequence[Token], program: Program) -> bool:
    """Whether a segment is a short way in measured steps and nothing else: "go right one, then up three"."""
    said = [token for token in tokens if token.kind not in PUNCTUATION]
    measured = all(step.op == "TURN" or (step.op == "MOVE" and step.squares) for step in program)
    if doubts or not measured or len(said) > LONGEST_PLAIN or not {token.kind for token in said} <= PLAIN:
        return False  # "right one" alone may be the right one
    return any(token.kind in ("GO", "UNIT") for token in said) or any((s.squares or 0) > 1 for s in program)


def _share_unknown(tokens: Sequence[Token]) -> float:
    letters = sum(t.end - t.start for t in tokens if t.kind not in PUNCTUATION)
    return sum(t.end - t.start for t in tokens if t.kind == UNKNOWN) / max(1, letters)


def _pointing(tokens: Sequence[Token]) -> Iterator[str]:
    """The kinds of words that point: "there", but not "there" beside the name of a place."""
    kinds = [token.kind for token in tokens]
    for i, kind in enumerate(kinds):
        if kind == "HERE" and ("PLACE" in kinds or set(kinds[i + 1 : i + 2]) & CORE):  # "the eggs there"
            continue
        if kind in POINTING:
            yield kind


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reading that may be the right one."""

    change: str  # how it differs from what the grammar read; empty for that itself
    said: Program  # as it is said, in whatever frame
    program: Program  # on the map
    done: Replay
    passed: float = 0.0  # the share of named places that the way passes
    ends: bool = False  # whether it ends at a named place


def compare(
    noticed: Mapping[str, float], opinions: Sequence[Mapping[str, float]], candidates: Sequence[Candidate]
) -> list[dict[str, float]]:
    """Return what the probability of each candidate depends on; the first is what the grammar read."""
    found = []
    best = max(_agreement(held) for held in opinions)
    for one, held in zip(candidates, opinions, strict=True):
        facts = {**noticed, **held, **_facts(one)}
        facts["agreement"] = _agreement(held)
        facts["behind"] = best - facts["agreement"]
        facts["others"] = float(len(candidates) - 1)
        for name, more in COMPARED.items():
            facts[more] = held[name] - opinions[0][name]
        found.append(facts)
    return found


def _agreement(held: Mapping[str, float]) -> float:
    return held["kinds"] + held["uses"]


COMPARED = {
    name: f"{name}, more" for name in (
        "kinds", "kinds, least", "uses", "uses, differ", "uses, of what is read", "uses, of what is not",
    )
}  # fmt: skip
"""What a candidate is compared in with what the grammar read, and what the difference is called."""


def _facts(one: Candidate) -> dict[str, float]:
    steps = 0 if one.program == NOTHING else len(one.program)
    return {
        **({f"changed {one.change}": 1.0} if one.change else {}),
        **{f"walked {code}": 1.0 for code in one.done.doubts},
        "filled in": sum(one.done.inferred) / max(1, len(one.done)),
        "steps": math.log1p(steps),
        "nothing": float(steps == 0),
        "passed": one.passed,
        "ends at a place": float(one.ends),
        "moves": math.log1p(len(one.done)),
        "bends": float(sum(a != b for a, b in pairwise(one.done.actions))),
        "purchases": float(sum(step.op == "BUY" for step in one.program)),
        "goals": float(sum(step.op == "GOTO" for step in one.program)),
    }


@dataclass(frozen=True, slots=True)
class Trees:
    """Small decision trees whose answers are added up."""

    column: Mapping[str, int]  # of each fact that is asked about
    start: float
    fact: NDArray[np.intp]  # (trees, nodes): what each node asks about
    limit: NDArray[np.float64]  # (trees, nodes): "is it more?"
    leaves: NDArray[np.float64]  # (trees, nodes + 1)

    def of(self, rows: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Return how probable it is that each reading is right."""
        table = np.array([[row.get(name, 0.0) for name in self.column] for row in rows])
        n, inner = self.fact.shape
        first = inner * np.arange(n)  # the place of each tree in a table of all nodes, and of all leaves
        row_of = len(self.column) * np.arange(len(rows))[:, np.newaxis]
        node = np.zeros((len(rows), n), dtype=np.intp)
        while node[0, 0] < inner:  # all leaves are equally deep
            at = first + node
            node = 2 * node + 1 + (table.take(row_of + self.fact.take(at)) > self.limit.take(at))
        leaf = first + np.arange(n) + node - inner
        odds: NDArray[np.float64] = self.start + self.leaves.take(leaf).sum(axis=1)
        return floored(rows, 1.0 / (1.0 + np.exp(-odds)))


def floored(rows: Sequence[Mapping[str, float]], probable: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of the readings of a segment; what the grammar read of plain words is sure."""
    if rows[0].get("plain"):
        return np.concatenate([np.maximum(probable[:1], SURE_IF_PLAIN), probable[1:]])
    return probable


@cache
def learned_trees() -> Trees:
    """Return what was learned from all phrasings."""
    text = (resources.files("fidm.grounding.rules") / "confidence.json").read_text("utf-8")
    found = json.loads(text)
    column = {name: i for i, name in enumerate(found["facts"])}
    trees = found["trees"]
    fact = np.array([[column[name] for name in tree["asks"]] for tree in trees])
    limit, leaves = (np.array([tree[name] for tree in trees]) for name in ("limits", "leaves"))
    return Trees(column, found["start"], fact, limit, leaves)


# ---------------------------------------------------------------- readings close to that of the grammar

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
