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

Each is a *doubt*: the best reading is kept, and the segment is marked for review.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import fidm
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.clauses import cut_clauses
from fidm.grounding.draft import FLIPPABLE, Draft
from fidm.grounding.grammar import Grammar, grammar_of
from fidm.grounding.language import BREAK, QUESTION, STOP, UNKNOWN, Token, Vocabulary, load_language
from fidm.grounding.program import MAX_INSTRUCTIONS, NOTHING, Instruction, Program, same_program, tidy
from fidm.grounding.replay import DOUBTFUL, Replay, replay
from fidm.grounding.terrain import HEADINGS, LEFT_OF, RIGHT_OF
from fidm.tasks.spec import TaskSpec

VERSION = 1
"""Goes up whenever a number may change."""

UNKNOWN_IN_TALK = 0.12
"""The share of unknown words above which "nothing was said about the way" is in doubt."""

Frame = Literal["walker", "map"]


class Rules:
    """Read segments with a lexicon and a grammar; everything is data and nothing leaves the machine.

    Parameters
    ----------
    language : str, optional
        A code or the path of a language file; by default the one each dialog is in.
    turns : {"walker", "map"}
        Whether "turn left" is the figure's own left, or the map's.
    sides : {"map", "walker"}
        Whether "go left" is the map's left, or the figure's own.
    unknown : float
        The share of unknown words above which a segment is marked for review.
    """

    name = "rules"

    def __init__(
        self,
        *,
        language: str | None = None,
        turns: Frame = "walker",
        sides: Frame = "map",
        unknown: float = 0.25,
    ) -> None:
        self.language = language
        self.turns, self.sides, self.unknown = turns, sides, unknown
        self._readers: dict[tuple[str, int], tuple[Vocabulary, Grammar]] = {}
        self._specs: list[TaskSpec] = []
        self._hashes: dict[tuple[str, int], str] = {}

    def provenance(self) -> Mapping[str, Any]:
        """Return the version and the settings."""
        return {
            "grounder": self.name,
            "fidm": fidm.__version__,
            "rules_version": VERSION,
            "languages_sha256": {code: found for (code, _), found in sorted(self._hashes.items())},
            "settings": {
                "language": self.language,
                "turns": self.turns,
                "sides": self.sides,
                "unknown": self.unknown,
            },
        }

    def close(self) -> None:
        """Nothing to let go of."""

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way."""
        vocabulary, grammar = self._reader(context)
        plain = vocabulary.language.normal(segment.text)
        tokens = vocabulary.cut(plain)
        clauses = cut_clauses(tokens, plain)
        draft = Draft(context)
        draft.read(clauses, vocabulary, grammar)
        if len(draft.steps) > MAX_INSTRUCTIONS:
            draft.doubt("too_long")
        program = self._framed(draft.steps, context)
        done = replay(program, context.terrain, context.position, told=context.told)
        self._doubts(draft, program, done, tokens)
        others = []
        for doubt in (doubt for doubt in FLIPPABLE if doubt in draft.doubts):
            other = Draft(context, frozenset({doubt}))
            other.read(clauses, vocabulary, grammar)
            others.append(self._framed(other.steps, context))
        return self._proposal(program, others, draft, context)

    # ------------------------------------------------------------------ reading

    def _reader(self, context: Context) -> tuple[Vocabulary, Grammar]:
        code = self.language or context.language
        spec = context.terrain.spec
        key = (code, id(spec))
        if key not in self._readers:
            language = load_language(code)
            self._specs.append(spec)  # kept alive, so that its id stays its own
            self._hashes[key] = language.digest
            self._readers[key] = (Vocabulary(language, spec), grammar_of(language))
        return self._readers[key]

    def _framed(self, steps: Sequence[Instruction], context: Context) -> Program:
        """Put directions into the frames the settings ask for."""
        program = tidy(steps)
        if self.turns == "map":
            program = _on_map(program, context)
        if self.sides == "walker":
            framed: list[Instruction] = []
            for step in program:
                if step.op == "MOVE" and step.way in ("left", "right"):
                    framed += [Instruction("TURN", step.way, span=step.span), replace(step, way="ahead")]
                else:
                    framed.append(step)
            program = tuple(framed)
        return program

    # ------------------------------------------------------------------ doubts

    def _doubts(self, draft: Draft, program: Program, done: Replay, tokens: Sequence[Token]) -> None:
        for issue in done.issues:
            if issue.code in DOUBTFUL:
                draft.doubt(issue.code)
        moved = {i for i, step in enumerate(program) if step.op in ("MOVE", "BACK", "ALONG", "TURN")}
        for issue in done.issues:
            filled = sum(1 for owner in done.instruction if owner == issue.instruction) - 1
            if issue.code == "filled_in" and filled > 1 and any(i < issue.instruction for i in moved):
                draft.doubt("not_in_reach")
        for i in draft.checks:
            if any(owner == i for owner in done.instruction):
                draft.doubt("not_in_reach")
        letters = sum(t.end - t.start for t in tokens if t.kind not in (BREAK, STOP, QUESTION))
        unknown = sum(t.end - t.start for t in tokens if t.kind == UNKNOWN)
        limit = self.unknown if program[0].op != "NONE" else min(self.unknown, UNKNOWN_IN_TALK)
        if letters and unknown / letters > limit:
            draft.doubt("unknown_words")

    def _proposal(
        self, program: Program, others: Sequence[Program], draft: Draft, context: Context
    ) -> Proposal:
        """The reading with its alternatives; the weights are a judgement, not a measurement."""
        sure = 0.97 if not draft.doubts else max(0.2, 0.7 - 0.15 * (len(draft.doubts) - 1))
        best = tuple(replace(step, probability=sure) for step in program)
        weighed: list[tuple[Program, float]] = [(best, sure)]
        turned = _on_map(best, context) if any(step.op == "TURN" for step in best) else best
        if not same_program(turned, best):
            weighed.append((turned, (1 - sure) * 0.5 if not draft.doubts else 0.1))
        weighed += [(tuple(replace(step, probability=0.2) for step in other), 0.2) for other in others]
        if draft.doubts and program != NOTHING:
            weighed.append((NOTHING, 0.05))
        return Proposal.of(weighed, tuple(draft.doubts), self.name)


def _on_map(program: Program, context: Context) -> Program:
    """The program with its turns taken on the map: "left" is the map's left, wherever the figure faces."""
    made: list[Instruction] = []
    for step in program:
        if step.op != "TURN" or step.way not in ("left", "right"):
            made.append(step)
            continue
        heading = replay(made, context.terrain, context.position, told=context.told).end.heading
        wanted = HEADINGS[step.way]
        if heading is None or LEFT_OF[heading] == wanted:
            made.append(replace(step, way="left" if heading is not None else step.way))
        elif RIGHT_OF[heading] == wanted:
            made.append(replace(step, way="right"))
        elif heading != wanted:
            made.append(replace(step, way="around"))
    return tidy(made)
