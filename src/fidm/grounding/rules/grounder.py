"""The rules grounder: a lexicon and a grammar read what was said, and say when they are not sure.

A text is cut into sentences and clauses. Clauses that are questions, negated, hypothetical or talk to
oneself give nothing; a repair ("no, three") replaces what it corrects, so the later wins. What remains is
read by the grammar, and the program is replayed from where the person is. The grounder then asks itself
whether it may be wrong:

- words about the way that no rule used, or a place that was named and not used;
- a vague distance, or none at all where the map does not settle it;
- a move into a shelf, a place that does not come into reach, a turn with no heading;
- a repair with nothing to replace; a question or a negation that could be an instruction after all;
- unknown words where a place or a thing should be, or more than a quarter of them.

Each is a *doubt*. With a second opinion by words alone and with readings close to that of the grammar, doubts
decide which reading is the most probable one and how probable it is to be right; below a threshold the
segment is marked for review.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fidm
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.route.program import (
    MAX_INSTRUCTIONS,
    START,
    Instruction,
    Program,
    same_program,
    tidy,
)
from fidm.grounding.route.replay import DOUBTFUL, Replay, replay
from fidm.grounding.rules import confidence, opinion
from fidm.grounding.rules.confidence import MOST_CLAUSES, Candidate, compare, nearby, notice
from fidm.grounding.rules.draft import Draft
from fidm.grounding.rules.frames import FRAMES, Frame, in_frame, on_map
from fidm.grounding.rules.grammar import Clause, Grammar, cut_clauses, grammar_of
from fidm.grounding.rules.landmarks import around_corners, settle
from fidm.grounding.rules.language import (
    BREAK,
    COMPASS,
    QUESTION,
    STOP,
    UNKNOWN,
    Token,
    Vocabulary,
    load_language,
    vocabulary_of,
)
from fidm.grounding.rules.opinion import Looked, Opinion, look
from fidm.grounding.rules.overlay import Overlay, load_overlay
from fidm.tasks.spec import TaskSpec

FLIPPABLE = ("maybe_repair", "said_twice", "ambiguous_place", "set_aside", "counted_on")
"""Doubts between two readings; the other one can be asked for."""


VERSION = 1
"""Goes up whenever a number may change."""

DENIED = frozenset({"not_in_reach", "not_there"})
"""What the map says against a reading."""

OPEN = DENIED | {"undecided", "place_unused", "ambiguous_place", "named_aside", "where_to"}
"""Doubts that leave open what was meant, however probable the reading may be."""

LASTING = OPEN | {"too_long"}
"""Doubts that stay, however probable the reading may be."""

REREAD = "reread"
"""The doubt that another reading than that of the grammar was taken."""

MOST_WORDS = 2_000
"""So many words and marks of a segment are read; the time that takes may grow with their square."""

SURE = 0.85
"""The probability from which on a reading needs no review; of new authors 95 % of them are right."""

ASIDE = 0.1
"""With a greater share of unknown letters, a thing that is only named may be part of anything."""

CLEARLY = 0.3
"""How much more probable another reading has to be than that of the grammar to be taken."""

MOST_OTHERS, SLIGHT = 3, 0.03
"""How many readings stand beside the one that is taken, and how probable they are at least."""


@dataclass(frozen=True, slots=True)
class Read:
    """A segment as the grammar reads it."""

    draft: Draft
    tokens: tuple[Token, ...]
    clauses: tuple[Clause, ...]
    base: Candidate  # the reading, and its moves
    noticed: Mapping[str, float]  # what the probability of any reading depends on
    looked: Looked  # what its words look like


class Rules:
    """Read segments with a lexicon and a grammar; everything is data and nothing leaves the machine.

    Parameters
    ----------
    language : str, optional
        A code or the path of a language file; by default the one each dialog is in.
    turns : {"walker", "map"}, optional
        Whether "turn left" is the figure's own left, or the map's.
    sides : {"map", "walker", "listener"}, optional
        Whether "go left" is the map's left, the figure's own, or that of a listener who sits opposite. Where
        neither is given, turns are the figure's and sides the map's, unless a dialog clearly tells otherwise;
        see :mod:`fidm.grounding.rules.frames`.
    unknown : float
        The share of unknown words from which on they are a doubt.
    sure : float
        The probability from which on a reading needs no review. 1 marks every reading.
    words : path or Overlay, optional
        A study's own words, see :mod:`fidm.grounding.rules.overlay`.
    """

    name = "rules"

    def __init__(
        self,
        *,
        language: str | None = None,
        turns: Frame | None = None,
        sides: Frame | None = None,
        unknown: float = 0.25,
        sure: float = SURE,
        words: str | Path | Overlay = "",
    ) -> None:
        self.language = language
        self.words = words if isinstance(words, Overlay) else load_overlay(words) if words else None
        self.turns, self.sides, self.unknown, self.sure = turns, sides, unknown, sure
        self._readers: dict[tuple[str, int], tuple[Vocabulary, Grammar]] = {}
        self._specs: list[TaskSpec] = []
        self._hashes: dict[tuple[str, int], str] = {}

    def provenance(self) -> Mapping[str, Any]:
        """Return the version and the settings."""
        return {
            "grounder": self.name,
            "fidm": fidm.__version__,
            "rules_version": VERSION,
            "learned_sha256": learned_digest(),
            "languages_sha256": {code: found for (code, _), found in sorted(self._hashes.items())},
            **({"words_sha256": self.words.digest} if self.words else {}),
            "settings": {
                "language": self.language,
                "turns": self.turns,
                "sides": self.sides,
                "unknown": self.unknown,
                "sure": self.sure,
            },
        }

    def close(self) -> None:
        """Nothing to let go of."""

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way."""
        read = self.read(segment, context)
        return self._proposal(read, context)

    def frames(self) -> Mapping[str, Rules]:
        """Return the same rules for dialogs in which directions are meant otherwise; none if that was set."""
        if self.turns is not None or self.sides is not None:
            return {}
        found = {}
        for name, (turns, sides) in FRAMES.items():
            found[name] = copy(self)
            found[name].turns, found[name].sides = turns, sides
        return found

    def read(self, segment: Segment, context: Context) -> Read:
        """Read a segment with the grammar, ask what may be wrong with that, and what else it may be."""
        vocabulary, grammar = self._reader(context)
        plain = vocabulary.language.normal(segment.text)
        said = vocabulary.cut(plain)
        tokens = said[:MOST_WORDS]
        clauses = cut_clauses(tokens, plain)
        draft = Draft(context)
        draft.read(clauses, vocabulary, grammar)
        if len(draft.steps) > MAX_INSTRUCTIONS or len(said) > MOST_WORDS:
            draft.doubt("too_long")
        steps = self._settled(draft)
        base = _candidate("", steps, *self._done(steps, tokens, context), tokens, context)
        self._doubts(draft, base, tokens, plain)
        noticed = notice(draft.doubts, clauses, tokens, base.program)
        return Read(draft, tuple(tokens), tuple(clauses), base, noticed, look(tokens, plain))

    def weigh(self, read: Read, second: Opinion) -> tuple[list[Candidate], list[dict[str, float]]]:
        """Return what a segment may mean, and what the probability of each depends on.

        The reading of the grammar comes first. Nothing else is looked for where there is no doubt and the
        words speak for nothing else.
        """
        found, held = [read.base], [second.of(read.base.said)]
        if read.draft.doubts or held[0]["kinds, differ"] or held[0]["uses, differ"]:
            found.extend(self.others(read))
            held.extend(second.of(one.said) for one in found[1:])
        return found, compare(read.noticed, held, found)

    def others(self, read: Read) -> Iterator[Candidate]:
        """Yield readings close to that of the grammar that lead elsewhere."""
        known = {tuple(read.base.done.actions)}
        context, heard = read.draft.context, {read.base.said}
        for change, changed in self._changed(read):
            said = tidy(changed)
            if said in heard:
                continue  # most clauses that are turned change nothing
            heard.add(said)
            program, done = self._done(said, read.tokens, context)
            if tuple(done.actions) not in known:
                known.add(tuple(done.actions))
                yield _candidate(change, said, program, done, read.tokens, context)

    def _done(
        self, said: Sequence[Instruction], tokens: Sequence[Token], context: Context
    ) -> tuple[Program, Replay]:
        """A reading on the map, and its moves."""
        program = self._framed(said, context, tokens)
        return program, replay(program, context.terrain, context.position, told=context.told)

    def _changed(self, read: Read) -> Iterator[tuple[str, Sequence[Instruction]]]:
        context, clauses = read.draft.context, [*read.clauses]
        for doubt in FLIPPABLE:
            if doubt in read.draft.doubts:
                other = Draft(context, frozenset({doubt}))
                yield "flipped", self._anew(other, clauses)
        yield from nearby(read.base.said, read.tokens)
        for i, clause in enumerate(clauses if len(clauses) <= MOST_CLAUSES else ()):
            if "NOT" not in clause.kinds:  # what is denied in so many words is never done
                turned = [*clauses[:i], clause.otherwise(), *clauses[i + 1 :]]
                yield "clause", self._anew(Draft(context), turned)

    def _anew(self, draft: Draft, clauses: list[Clause]) -> list[Instruction]:
        draft.read(clauses, *self._reader(draft.context))
        return self._settled(draft)

    # ------------------------------------------------------------------ reading

    def _reader(self, context: Context) -> tuple[Vocabulary, Grammar]:
        code = self.language or context.language
        spec = context.terrain.spec
        key = (code, id(spec))
        if key not in self._readers:
            language = load_language(code)
            self._specs.append(spec)  # kept alive, so that its id stays its own
            self._hashes[key] = language.digest
            own = self.words.of(language, spec) if self.words else None
            self._readers[key] = (vocabulary_of(code, spec, own), grammar_of(language))
        return self._readers[key]

    def _settled(self, draft: Draft) -> list[Instruction]:
        """The steps of a draft, with what one sees turned into squares."""
        steps, is_settled = settle(draft.steps, draft.context)
        if not is_settled:
            draft.doubt("vague")
        steps, is_changed = around_corners(steps, draft.context)
        if is_changed:
            draft.doubt("not_straight")
        return steps

    def _framed(self, steps: Sequence[Instruction], context: Context, tokens: Sequence[Token]) -> Program:
        """Put directions into the frames they are said in."""
        turns, sides = self.turns or "walker", self.sides or "map"
        compass = [(token.start, token.end) for token in tokens if token.kind in COMPASS]
        return in_frame(steps, context, turns=turns, sides=sides, compass=compass)

    # ------------------------------------------------------------------ doubts

    def _doubts(self, draft: Draft, base: Candidate, tokens: Sequence[Token], plain: str) -> None:
        context, program, done = draft.context, base.program, base.done
        for issue in done.issues:
            if issue.code in DOUBTFUL:
                draft.doubt(issue.code)
        cells = {context.terrain.cell(state) for state in (*done.states, done.end.state)}
        beside = all(context.terrain.is_near(cells, place) for place in draft.mentions)
        if "place_unused" in draft.doubts and len(done) and draft.mentions and beside:
            draft.doubts.remove("place_unused")  # "with the eggs on my right", and there they are
        if not all(context.terrain.is_near(cells, place) for place in draft.passed):
            draft.doubt("not_there")
        moved = {i for i, step in enumerate(program) if step.op in ("MOVE", "BACK", "ALONG", "TURN")}
        for issue in done.issues:
            filled = sum(1 for owner in done.instruction if owner == issue.instruction) - 1
            if issue.code == "filled_in" and filled > 1 and issue.instruction - 1 in moved:
                draft.doubt("not_in_reach")
        for i in draft.checks:
            if any(owner == i for owner in done.instruction):
                draft.doubt("not_in_reach")
        letters = sum(t.end - t.start for t in tokens if t.kind not in (BREAK, STOP, QUESTION))
        unknown = sum(t.end - t.start for t in tokens if t.kind == UNKNOWN)
        limit = self.unknown
        if letters and unknown / letters > limit:
            draft.doubt("unknown_words")
        if "only_named" in draft.doubts and unknown > ASIDE * letters:
            draft.doubt("named_aside")
        bought = {step.place for step in program if step.op == "BUY"}
        parts = _parts(tokens, plain)
        if not parts.isdisjoint(bought) or (parts and "place_unused" in draft.doubts):
            draft.doubt("ambiguous_place")

    def _proposal(self, read: Read, context: Context) -> Proposal:
        """The most probable reading, how probable it is, and its alternatives."""
        candidates, facts = self.weigh(read, opinion.learned().on(read.looked))
        probable = confidence.learned_trees().of(facts)
        first = preferred(probable)
        best = candidates[first]
        doubts = self.doubts_of(read, best)
        if OPEN.intersection(doubts):  # one of them at most is meant
            probable = probable / max(1.0, probable.sum())
        sure = float(probable[first])
        if sure >= self.sure and not (DOUBTFUL | LASTING).intersection(doubts):
            doubts = ()
        elif not doubts:
            doubts = ("unsure",)
        others = [
            (one.program, float(p))
            for one, p in sorted(zip(candidates, probable, strict=True), key=lambda pair: -pair[1])
            if one is not best
        ][:MOST_OTHERS]
        turned = on_map(best.program, context)
        if any(step.op == "TURN" for step in best.program) and not same_program(turned, best.program):
            others.append((turned, (1.0 - sure) / 4))
        left = (1.0 - sure) / max(1e-9, sum(p for _, p in others))
        share = min(
            1.0, left, 0.9 * sure / max((p for _, p in others), default=1.0)
        )  # the best stays the best
        weighed = [(best.program, sure), *((other, share * p) for other, p in others if share * p >= SLIGHT)]
        return Proposal.of([(_weighed(program, p), p) for program, p in weighed], doubts, self.name)

    def doubts_of(self, read: Read, best: Candidate) -> tuple[str, ...]:
        """The doubts about the best reading, which may be another than that of the grammar."""
        doubts = list(read.draft.doubts)
        if best.change:
            doubts = [one for one in doubts if one not in DOUBTFUL | DENIED and one != "place_unused"]
            doubts += [*best.done.doubts, REREAD]
        is_start = any((step.op, step.place) == ("GOTO", START) for step in best.program)
        if is_start and not any(token.kind == "BACK" for token in read.tokens):
            doubts.append("named_aside")
        return tuple(dict.fromkeys(doubts))


def _candidate(
    change: str,
    said: Sequence[Instruction],
    program: Program,
    done: Replay,
    tokens: Sequence[Token],
    context: Context,
) -> Candidate:
    """A reading, and what the map says to it."""
    terrain = context.terrain
    end = terrain.cell(done.end.state)
    cells = {end, *map(terrain.cell, done.states)}
    named = {str(token.value).split("|")[0] for token in tokens if token.kind == "PLACE"}
    passed = sum(terrain.is_near(cells, place) for place in named) / max(1, len(named))
    ends = any(terrain.is_near((end,), place) for place in named)
    return Candidate(change, tidy(said), program, done, passed, ends)


@cache
def learned_digest() -> str:
    """Return a hash of what was learned from phrasings."""
    files = resources.files("fidm.grounding.rules")
    learned = b"".join((files / name).read_bytes() for name in ("opinion.npz", "confidence.json"))
    return hashlib.sha256(learned).hexdigest()


def _parts(tokens: Sequence[Token], text: str) -> set[str]:
    """The sections of things that may be part of what nobody knows: "a bread knife", but not "eggs love"."""
    return {
        section
        for one, other in pairwise(tokens)
        if (one.kind, other.kind) == ("PLACE", UNKNOWN) and other.start - one.end <= 1
        if text[one.end - 1] != "s"
        for section in str(one.value).split("|")
    }


def preferred(probable: NDArray[np.float64]) -> int:
    """Return which reading is taken: that of the grammar, unless another one is clearly more probable."""
    best = int(probable.argmax())
    return best if probable[best] > probable[0] + CLEARLY else 0


def _weighed(program: Program, probability: float) -> Program:
    return tuple(replace(step, probability=probability) for step in program)
