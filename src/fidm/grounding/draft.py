"""A program in the making: what the grammar finds, clause by clause, becomes instructions.

Here live repairs (the later version wins), purchases of "it", lists ("the meat, then the vegetables") and
distances said apart from their direction. Where two readings are possible the likelier one is taken and the
doubt is noted; *flipping* a doubt takes the other one, which is how alternatives are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fidm.grounding.base import Context
from fidm.grounding.clauses import CORE, Clause, has_unknown_object, without_openers
from fidm.grounding.grammar import Found, Grammar
from fidm.grounding.language import Token, Vocabulary
from fidm.grounding.program import EXIT, FINISH, Instruction, same_program
from fidm.grounding.replay import replay

FLIPPABLE = ("maybe_repair", "said_twice", "ambiguous_place", "set_aside")
"""Doubts between two readings; the other one can be asked for."""


@dataclass(slots=True)
class Draft:
    """A program in the making.

    Parameters
    ----------
    context : Context
        Where the person is.
    flipped : frozenset of str
        The doubts in which the less likely reading is to be taken.
    steps : list of Instruction
        The program so far.
    checks : set of int
        Instructions that only check that a place is in reach.
    doubts : list of str
        Why the reading may be wrong.
    """

    context: Context
    flipped: frozenset[str] = frozenset()
    steps: list[Instruction] = field(default_factory=list)
    checks: set[int] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)
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
            found, lost = [Found("and", _going(acting[0]))], []  # "the meat, then the vegetables"
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
        if one.what == "do":
            self._do(step)
        elif one.what == "measure":
            last = self.steps[-1] if self.steps else None
            if last is not None and last.op == "MOVE" and last.squares == step.squares:
                return  # "one, two, three … yes, three squares"
            if last is not None and is_open(last):
                self.steps[-1] = replace(
                    last, squares=step.squares, span=(last.span[0], step.span[1] or last.span[1])
                )
            else:
                self.measured = len(self.steps)
                self._add(step)
        elif one.what == "check":
            self.checks.add(len(self.steps))
            self._add(step)
        elif one.what == "straight":
            self._add(step if not self._in_line(step) else replace(step, op="MOVE", way="ahead"))
        elif one.what == "and":
            last = self.steps[-1] if self.steps else None
            if last is not None and last.place == step.place:
                return
            self._add(replace(step, op="BUY" if last is not None and last.op == "BUY" else "GOTO"))
            if last is None or not last.place:
                self.doubt("place_unused")
        elif one.what == "bought":
            self._bought(step)
        elif one.what in ("paying", "leaving"):  # at the till, through the door; not "pay for the meat"
            if step.place in (FINISH, EXIT):
                self._do(replace(step, op="PAY" if one.what == "paying" else "LEAVE", place=""))
            else:
                self.doubt("vague")
        elif one.what == "it":
            if self.unused or (self.place and self.steps and self.steps[-1].op != "BUY"):
                self._add(replace(step, place=self.place))
            elif step.op == "GOTO":
                self.doubt("where_to")
            elif not self.steps or self.steps[-1].op != "BUY":
                self._buy_here(step)
        else:
            self.doubt(one.why)

    def _do(self, step: Instruction) -> None:
        """Add an instruction, unless it says again, or completes, what was said before."""
        last = self.steps[-1] if self.steps else None
        if last is not None and _repeats(step, last):
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
        last = self.steps[-1] if self.steps else None
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


def _going(token: Token) -> Instruction:
    return Instruction("GOTO", place=str(token.value), span=(token.start, token.end))


def _repeats(step: Instruction, last: Instruction) -> bool:
    """Whether somebody said the same purchase twice in a row."""
    return step.op == last.op and step.op in ("BUY", "PAY", "LEAVE") and step.place == last.place
