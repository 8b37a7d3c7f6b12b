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

Each is a *doubt*: the best reading is kept, and the segment is marked for review. A :class:`Draft` is a
program in the making: repairs, purchases of "it", lists ("the meat, then the vegetables") and distances said
apart from their direction live there. Where two readings are possible the likelier one is taken and the doubt
is noted; *flipping* a doubt takes the other one, which is how alternatives are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import fidm
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.route.program import (
    EXIT,
    FINISH,
    MAX_INSTRUCTIONS,
    NOTHING,
    Instruction,
    Program,
    same_program,
    tidy,
)
from fidm.grounding.route.replay import DOUBTFUL, HEADINGS, LEFT_OF, RIGHT_OF, Replay, replay
from fidm.grounding.rules.grammar import (
    CORE,
    Clause,
    Found,
    Grammar,
    cut_clauses,
    grammar_of,
    has_unknown_object,
    without_openers,
)
from fidm.grounding.rules.language import BREAK, QUESTION, STOP, UNKNOWN, Token, Vocabulary, load_language
from fidm.tasks.spec import TaskSpec

FLIPPABLE = ("maybe_repair", "said_twice", "ambiguous_place", "set_aside")
"""Doubts between two readings; the other one can be asked for."""


@dataclass(slots=True)
class Draft:
    """A program in the making."""

    context: Context  # where the person is
    flipped: frozenset[str] = frozenset()  # the doubts in which the less likely reading is to be taken
    steps: list[Instruction] = field(default_factory=list)  # the program so far
    checks: set[int] = field(default_factory=set)  # instructions that only check that a place is in reach
    doubts: list[str] = field(default_factory=list)  # why the reading may be wrong
    place: str = ""
    unused: str = ""
    measured: int = -1
    aside: set[str] = field(default_factory=set)

    def read(self, clauses: Sequence[Clause], vocabulary: Vocabulary, grammar: Grammar) -> None:
        """Read all clauses of a segment."""
        goes = any(token.kind in ("GO", "BUY") for clause in clauses for token in clause.tokens)
        carried = ""
        for clause in clauses:
            repairs = clause.repairs or carried
            if not clause.acting and self.steps:  # "left six … no, that is wrong … right six"
                carried = "hard" if clause.dead == "not" else repairs if clause.after_pause or carried else ""
                continue
            carried = ""
            if clause.dead:
                self._bury(clause, grammar, goes)
            else:
                self._clause(clause, repairs, vocabulary, grammar)
        if self.unused:
            self.doubt("place_unused")

    def doubt(self, why: str) -> None:
        """Note why the reading may be wrong."""
        if why not in self.doubts:
            self.doubts.append(why)

    @property
    def last(self) -> Instruction | None:
        """The instruction added last."""
        return self.steps[-1] if self.steps else None

    # ------------------------------------------------------------------ clauses

    def _clause(self, clause: Clause, repairs: str, vocabulary: Vocabulary, grammar: Grammar) -> None:
        if has_unknown_object(clause.tokens):
            self.doubt("unknown_words")
        acting = clause.acting if repairs else without_openers(clause, vocabulary)
        found, lost = grammar.read(acting)
        if clause.ends_repair and not repairs:  # else it comes after its correction: "sorry, two I mean"
            self.doubt("unresolved_repair")
        fragment = [token.kind for token in acting] in (["PLACE"], ["NUMBER"], ["NUMBER", "UNIT"])
        if repairs == "soft" and self.steps and (fragment or (found and self._may_repair(found[0].step))):
            self.doubt("maybe_repair")
            repairs = "hard" if "maybe_repair" in self.flipped else repairs
        if repairs == "hard" and not self.steps and found and not clause.after_pause:
            self.doubt("unresolved_repair")  # "not left two but right two"
        if repairs == "hard" and acting and self._mend(found, lost):
            return
        kinds = [token.kind for token in acting]
        if kinds == ["NUMBER"] and self.last is not None and is_open(self.last):
            found = [Found("measure", Instruction("MOVE", "ahead", int(acting[0].value)))]
            lost = []
        elif kinds == ["PLACE"] and self.last is not None and self.last.place:
            place = Instruction("GOTO", place=str(acting[0].value), span=(acting[0].start, acting[0].end))
            found, lost = [Found("and", place)], []  # "the meat, then the vegetables"
        for one in found:
            self._take(one)
        self._note_lost(lost)

    def _bury(self, clause: Clause, grammar: Grammar, goes: bool) -> None:
        """Doubt a clause that was set aside although it reads like an instruction."""
        acting = clause.acting
        found, _ = grammar.read(acting)
        kinds = ("do", "it", "measure", "straight")
        whole = [one.step for one in found if one.what in kinds and is_whole(one.step)]
        places = {str(token.value) for token in acting if token.kind == "PLACE"}
        self.aside |= places
        if clause.dead == "not":
            while places and self.steps and self.steps[-1].place in places:  # "the milk … not the milk"
                self.steps.pop()
            more = _says_more(clause)
            whole = [
                one.step
                for one in found
                if more or (one.step.op in ("MOVE", "TURN", "BACK") and not one.step.place)
            ]
        elif clause.dead == "asked":
            whole = [step for step in whole if step.op == "MOVE"]
        else:
            whole = [one.step for one in found if one.what != "doubt" and one.step.op != "GOTO"] or whole
            if goes and places:  # "where I want to go next is the spices"
                self.doubt("place_unused")
        if whole:
            self.doubt("set_aside")
            if "set_aside" in self.flipped:
                for one in found:
                    self._take(one)

    # ------------------------------------------------------------------ instructions

    def _add(self, step: Instruction) -> None:
        self.steps.append(step)
        if step.place:
            self.place = step.place
            if step.place == self.unused:
                self.unused = ""

    def _named(self, place: str) -> None:
        """Remember a place that was only mentioned; a later "it" may mean it."""
        if self.unused:
            self.doubt("place_unused")
        self.place = self.unused = place

    def _take(self, one: Found) -> None:
        """Add what a rule found to the program."""
        step = one.step
        if "|" in step.place:  # a word for several sections: the first is taken, and doubted
            self.doubt("ambiguous_place")
            names = step.place.split("|")
            step = replace(step, place=names["ambiguous_place" in self.flipped])
        match one.what:
            case "do":
                self._do(step)
            case "measure":
                self._measure(step)
            case "check":
                self.checks.add(len(self.steps))
                self._add(step)
            case "straight":
                self._add(replace(step, op="MOVE", way="ahead") if self._in_line(step) else step)
            case "and":
                self._next_place(step)
            case "bought":
                self._bought(step)
            case "paying" | "leaving" if step.place in (FINISH, EXIT):  # at the till, through the door
                self._do(replace(step, op="PAY" if one.what == "paying" else "LEAVE", place=""))
            case "paying" | "leaving":  # "pay for the meat"
                self.doubt("vague")
            case "it":
                self._meant_before(step)
            case _:
                self.doubt(one.why)

    def _measure(self, step: Instruction) -> None:
        """Take a number of squares for the move before, or for the one that follows."""
        last = self.last
        if last is not None and last.op == "MOVE" and last.squares == step.squares:
            return  # "one, two, three … yes, three squares"
        if last is not None and is_open(last):
            self.steps[-1] = replace(
                last, squares=step.squares, span=(last.span[0], step.span[1] or last.span[1])
            )
        else:
            self.measured = len(self.steps)
            self._add(step)

    def _next_place(self, step: Instruction) -> None:
        """Do at a further place what was done at the one before: "the meat, then the vegetables"."""
        last = self.last
        if last is not None and last.place == step.place:
            return
        self._add(replace(step, op="BUY" if last is not None and last.op == "BUY" else "GOTO"))
        if last is None or not last.place:
            self.doubt("place_unused")

    def _meant_before(self, step: Instruction) -> None:
        """Take "it" for the place named last, or for what is in reach."""
        buys = self.last is not None and self.last.op == "BUY"
        if self.unused or (self.place and self.steps and not buys):
            self._add(replace(step, place=self.place))
        elif step.op == "GOTO":
            self.doubt("where_to")
        elif not buys:
            self._buy_here(step)

    def _do(self, step: Instruction) -> None:
        """Add an instruction, unless it says again, or completes, what was said before."""
        last = self.last
        said = last is not None and (step.op, step.place) == (last.op, last.place)
        if said and step.op in ("BUY", "PAY", "LEAVE"):
            self.doubt("said_twice")
            if "said_twice" not in self.flipped:
                return
        if last is not None and last.op == "TURN" and step.op == "MOVE" and step.way in ("left", "right"):
            self.doubt("mixed_frames")  # the figure's own left, and then the map's?
        if step.op == "LEAVE":
            self.steps = [earlier for earlier in self.steps if earlier.op != "LEAVE"]
        if last is not None and step.op == last.op == "MOVE":
            if step.to_end and last.to_end and step.way in (last.way, "ahead"):  # "to the end, to the wall"
                return
            if not is_whole(step) and self.measured == len(self.steps) - 1:  # "three squares, up"
                self.steps[-1] = replace(last, way=step.way, span=(last.span[0], step.span[1]))
                self.measured = -1
                return
            if is_open(last) and step.way in (last.way, "ahead"):  # "down, down seven squares"
                self.steps[-1] = replace(step, way=last.way, span=(last.span[0], step.span[1]))
                return
        self._add(step)

    def _may_repair(self, step: Instruction) -> bool:
        """Whether an instruction could be meant to replace the one before."""
        return (
            bool(self.steps) and self.steps[-1].op == step.op and not same_program([self.steps[-1]], [step])
        )

    def _in_line(self, step: Instruction) -> bool:
        """Whether a place comes into reach straight on from where the program has led so far."""
        end = replay(self.steps, self.context.terrain, self.context.position, told=self.context.told).end
        cell = self.context.terrain.cell(end.state)
        if cell < 0 or end.heading is None:
            return False
        return self.context.terrain.straight(cell, end.heading, step.place) is not None

    def _bought(self, step: Instruction) -> None:
        """Take "I've got the meat" as the purchase itself if one stands there and has not got it yet."""
        place = step.place or self.place
        if not place:
            return
        end = replay(self.steps, self.context.terrain, self.context.position, told=self.context.told).end
        here = self.context.terrain.cell(end.state) in self.context.terrain.reach.get(place, frozenset())
        done = place in self.context.terrain.grid.completed(end.state)
        named = any(s.op == "BUY" and s.place == place for s in self.steps)
        if here and not done and not named:
            self._add(replace(step, op="BUY", place=place))
        elif not done and not named:
            self.doubt("bought_elsewhere")

    def _buy_here(self, step: Instruction) -> None:
        """Take "I take it" as a purchase of what is in reach, if that is one section only."""
        terrain = self.context.terrain
        cell = terrain.cell(self.context.position.state)
        near = [place for place in terrain.places if cell in terrain.reach[place]]
        wanted = [place for place in near if place not in terrain.grid.completed(self.context.position.state)]
        if len(near) == 1 and wanted and not self.aside - set(near):
            self._add(replace(step, place=near[0]))
        else:
            self.doubt("what_to_buy")

    def _mend(self, found: list[Found], lost: list[Token]) -> bool:
        """Let the later of two versions win; return whether the clause was used up by that."""
        steps = [one for one in found if one.what != "doubt"]
        fragments = [token for token in lost if token.kind in ("NUMBER", "PLACE")]
        last = self.last
        if last is None:
            return not steps and bool(fragments)  # "no eggs today"
        if not steps:
            numbers = [int(token.value) for token in fragments if token.kind == "NUMBER"]
            places = [str(token.value) for token in fragments if token.kind == "PLACE"]
            if numbers and last.op in ("MOVE", "BACK"):
                self.steps[-1] = replace(last, squares=numbers[-1], to_end=False, place="")
                return True
            if places and last.place:
                wrong = last.place
                for i in range(len(self.steps) - 1, -1, -1):
                    if self.steps[i].place != wrong:
                        break
                    self.steps[i] = replace(self.steps[i], place=places[-1])
                self.place = places[-1]
                return True
            if fragments or any(token.kind in CORE for token in lost):
                self.doubt("unresolved_repair")
            return False
        new = steps[0].step
        if is_open(new) and last.op == "TURN" and new.way in ("left", "right"):  # "turn right, I mean left"
            self.steps[-1] = replace(last, way=new.way, span=new.span)
            for one in steps[1:]:
                self._take(one)
            self._note_lost(lost)
            return True
        if steps[0].what == "do" and not is_whole(new) and new.op == "MOVE" and last.op == "MOVE":
            new = replace(last, way=new.way, span=new.span)  # "left two — no, right"
            self.steps[-1] = new
            steps = steps[1:]
        elif new.op == "MOVE" and last.op == "MOVE" and new.way == "ahead" and new.squares is not None:
            self.steps[-1] = replace(last, squares=new.squares, to_end=False, place="", span=new.span)
            steps = steps[1:]
        elif new.op == "BUY" and last.op not in ("BUY", "GOTO"):
            self.doubt("unresolved_repair")
        else:
            self._drop_back(new)
        for one in steps:
            self._take(one)
        self._note_lost(lost)
        return True

    def _drop_back(self, new: Instruction) -> None:
        """Take back what a new version replaces: the last instruction of its kind and all after it."""
        kinds = [step.op for step in self.steps]
        near = next(
            (i for i in range(len(kinds) - 1, max(-1, len(kinds) - 4), -1) if kinds[i] == new.op), None
        )
        first = len(kinds) - 1 if near is None else near
        place = self.steps[first].place
        if first and place and self.steps[first].op == "BUY" and self.steps[first - 1].place == place:
            first -= 1  # the way there goes with the purchase
        del self.steps[first:]

    def _note_lost(self, lost: Sequence[Token]) -> None:
        for token in lost:
            if token.kind == "PLACE":
                self._named(str(token.value).split("|")[0])
            elif token.kind == "VAGUE":
                self.doubt("vague")
            elif token.kind in CORE:
                self.doubt("unread_words")


def _says_more(clause: Clause) -> bool:
    """Whether a negated clause has an instruction beside what it negates: "to the eggs, not the meat"."""
    verbs = ("GO", "BUY", "PAY", "LEAVE", "TURN", "UP", "DOWN", "LEFT", "RIGHT")
    kinds = [token.kind for token in clause.tokens]
    place = next((i for i, kind in enumerate(kinds) if kind in ("NOT", "LATER")), 0)
    before = any(kind in verbs for kind in kinds[:place])
    named = next((i for i in range(place, len(kinds)) if kinds[i] == "PLACE"), len(kinds))
    return before or any(kind in verbs for kind in kinds[named + 1 :])


def is_whole(step: Instruction) -> bool:
    """Whether an instruction says where to or how far."""
    return step.op in ("PAY", "LEAVE", "TURN") or bool(step.place) or step.to_end or step.squares is not None


def is_open(step: Instruction) -> bool:
    """Whether a MOVE does not say how far."""
    return step.op == "MOVE" and not is_whole(step)


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
