"""A route program in the making: repairs, purchases of "it", lists, and distances said after their direction.

A :class:`Draft` takes clause after clause. Where two readings are possible the likelier one is taken and a
doubt is noted; *flipping* a doubt takes the other one, which is how alternatives are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fidm.grounding.base import Context
from fidm.grounding.route.program import EXIT, FINISH, START, Instruction, same_program
from fidm.grounding.route.replay import HEADINGS, LEFT_OF, RIGHT_OF, Position, replay
from fidm.grounding.rules.grammar import CORE, Clause, Found, Grammar, without_objects
from fidm.grounding.rules.landmarks import Sight, settle
from fidm.grounding.rules.language import UNKNOWN, Token, Vocabulary


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
    mentions: set[str] = field(default_factory=set)  # places that were named with nothing to do there
    negated: set[str] = field(default_factory=set)  # places that were said not to be meant
    told: set[str] = field(default_factory=set)  # places that something was told of
    passed: list[str] = field(default_factory=list)  # places said to lie on the way or beside it
    only_named: set[str] = field(default_factory=set)  # places named without a word of what to do there
    is_next: bool = False  # whether what is read now is said to come after what was said before
    again: bool = False  # whether what is read now is said to be done once more
    mended: bool = False  # whether the last instruction was corrected, so that it may be said again
    coming: Clause | None = None  # the clause that is read next
    thing: Clause | None = None  # the clause that names something, with only descriptions before it
    hanging: str = ""  # the verb of a clause that broke off before its object: "go to the, the …"
    asks: bool = False  # whether the things named before were asked for, in the same sentence
    replaced: bool = False  # whether a place was just put in place of another: "not the beef, …"
    skipped: int = 0  # how many aisles were said not to be meant
    later: Instruction | None = None  # what was put off until the rest is done
    bare: set[str] = field(default_factory=set)  # places asked for without a verb
    surprised: bool = False  # whether the clause begins with "oh"
    wondered: str = ""  # the place that was asked about just before
    held: str = ""  # why the last instruction, the end of a way, may come later: "pay, wait, the milk first"

    def read(self, clauses: list[Clause], vocabulary: Vocabulary, grammar: Grammar) -> None:
        """Read all clauses of a segment; one that comes before what was said is put there as it is meant."""
        goes = any(not clause.kinds.isdisjoint(("GO", "BUY")) for clause in clauses)
        carried = ""
        acts = [bool(clause.acting) and not clause.dead for clause in clauses]
        names = [act and _does_more(clause) for act, clause in zip(acts, clauses, strict=True)]
        coming, things = _nexts(clauses, acts, within=4), _nexts(clauses, names, within=5)
        for i, (clause, self.coming, self.thing) in enumerate(zip(clauses, coming, things, strict=True)):
            repairs = clause.repairs or carried
            sooner = self._comes_before(clause, repairs)
            if sooner is not None:
                clause, repairs = sooner, ""
                clauses[i] = clause
                self._put_off(clause)
            idle = all(token.kind == "HERE" for token in clause.acting)
            if (
                idle and self.steps and (not clause.acting or repairs)
            ):  # "left six … no, that is wrong … right six"
                denied = clause.dead == "not" and sum(token.kind == UNKNOWN for token in clause.tokens) < 2
                carried = "hard" if denied else repairs if clause.after_pause or carried else ""
                continue
            carried = ""
            self._hold(clause, repairs)
            self._decide(clause)
            if clause.dead:
                carried = repairs if self._is_why(clause) else ""
                before = len(self.steps)
                self._bury(clause, grammar, goes)
                if len(self.steps) < before:
                    carried = ""  # it has taken that back itself
                if repairs == "hard" and "PLACE" not in clause.kinds:
                    carried = repairs  # "some nuts. No, I can't chew them, some soap"
            else:
                self._clause(clause, repairs, vocabulary, grammar)
        if carried and self.steps and any(clause.kinds == {"NOT"} for clause in clauses):
            self.steps.pop()  # "on three. No, don't, forget it"
        self._take_up()
        if self.held == "corrected":
            self.doubt("unresolved_repair")
            self.doubt("maybe_repair")
        if not self.told <= {step.place for step in self.steps} | self.negated:
            self.doubt("talked_of")
        if self.unused:
            self.doubt("place_unused")
        if self.only_named & {step.place for step in self.steps}:
            self.doubt("only_named")
        if not self.steps and any(_asks_something(clause) for clause in clauses):
            self.doubt("nothing_done")
        wished = [clause.kinds for clause in clauses if "asked" in clause.dead]
        if not self.steps and any({"GO", "VAGUE"} <= kinds for kinds in wished):
            self.doubt("where_to")  # "could he go a bit nearer?"

    def _decide(self, clause: Clause) -> None:
        """Doubt what has two versions: "two, or was it six?"; not "is it cold, or is it me?"."""
        if "OR" not in clause.kinds or clause.dead == "not":
            return
        things = any(token.kind in CORE for token in clause.acting)
        if not clause.dead or (self.steps and things):
            self.doubt("undecided")

    def _is_why(self, clause: Clause) -> bool:
        """Whether a clause only says why the last thing is taken back: "no, we have bread at home"."""
        places = {str(token.value) for token in clause.acting if token.kind == "PLACE"}
        return self.last is not None and bool(places) and places == {self.last.place}

    def _comes_before(self, clause: Clause, repairs: str) -> Clause | None:
        """The clause if it is to be done before what was said last: "before that …", "no, eggs first"."""
        if "BEFORE" in clause.kinds:
            return clause
        if not self.steps or self.steps[-1].op in ("MOVE", "TURN", "BACK"):
            return None
        if not repairs and not _closes(self.steps[-1]):
            return None
        first = next((i for i in (-1, 0) if _is_first(clause.tokens[i])), None)
        if first is None or "PLACE" not in clause.kinds:
            return None
        kept = list(clause.tokens)
        del kept[first]
        return clause.sooner(kept)

    def _put_off(self, clause: Clause) -> None:
        """Keep the last instruction for later: "pay … hang on, before that I need vinegar"."""
        if self.steps and not self.later and _does_something(clause, self.coming):
            self.later = self.steps.pop()

    def _take_up(self) -> None:
        """Do at the end what was put off, unless it was said again since."""
        if self.later is not None:
            self.doubt("maybe_repair")
            if not any((s.op, s.place) == (self.later.op, self.later.place) for s in self.steps):
                self._add(self.later)
            else:
                self.doubts.remove("maybe_repair")

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
        self.surprised = bool(repairs) or (bool(clause.tokens) and clause.tokens[0].kind in ("SAY", "FRESH"))
        is_measured = self.coming is not None and _is_measure(self.coming)
        acting, is_unknown, found, lost = clause.read(
            vocabulary, grammar, is_whole=bool(repairs), is_measured=is_measured
        )
        if is_unknown:
            self.doubt("unknown_words")
        if clause.ends_repair and not repairs:  # else it comes after its correction: "sorry, two I mean"
            self.doubt("unresolved_repair")
            self.doubt("maybe_repair")
        fragment = [token.kind for token in acting] in (["PLACE"], ["NUMBER"], ["NUMBER", "UNIT"])
        if repairs == "soft" and self.steps and (fragment or (found and self._may_repair(found[0].step))):
            self.doubt("maybe_repair")
            goes_less = found and self._goes_less(found[0].step)
            repairs = "hard" if goes_less or "maybe_repair" in self.flipped else repairs
        if (
            repairs == "hard"
            and not self.steps
            and found
            and not clause.after_pause
            and not found[0].step.place
        ):
            self.doubt("unresolved_repair")  # "not left two but right two"
        if repairs == "hard" and not clause.after_pause and found and self._echoes(found[0].step):
            self.steps.pop()  # "back two. Not back, but on two"
            return
        if repairs == "hard" and acting and (self._recount(acting) or self._mend(found, lost)):
            return
        kinds = [token.kind for token in acting]
        if "MORE" in kinds and set(kinds) <= {"AND", "MORE", "NUMBER", "UNIT"} and self._again(acting):
            return
        if self._only_things(acting, clause):
            return
        numbers = [int(token.value) for token in acting if token.kind == "NUMBER"]
        last = self.last
        waits = last is not None and (is_open(last) or last.op == "TURN" or _is_bare_back(last))
        if (
            waits and len(numbers) == 1 and set(kinds) <= {"NUMBER", "OF", "IT", "UNIT"}
        ):  # "right, two of them"
            span = (acting[0].start, acting[-1].end)
            found, lost = [Found("measure", Instruction("MOVE", "ahead", numbers[0], span=span))], []
        if not (self.hanging and set(kinds) <= _COUNTING):  # "get the … the long ones … the beans"
            self.hanging = _hangs(acting) if clause.goes_on and _names_things(self.thing) else ""
        if self.hanging == "BUY" and found and found[-1].what == "it":
            found = found[:-1]
        self.again = "MORE" in kinds
        self.is_next = clause.is_next or self.again
        for one in found:
            self._take(one)
            self.is_next = True
        if isinstance(self.last, Sight) and self.last.past and "HALT" in clause.kinds:
            self.steps[-1] = replace(self.last, beyond=self.last.beyond or 1)  # "past the milk, and stop"
        self._note_lost(lost)

    def _hold(self, clause: Clause, repairs: str) -> None:
        """Notice that somebody who was about to pay or to leave thinks of something else."""
        last = self.last
        if last is None or not _closes(last):
            self.held = ""
        elif repairs and not clause.is_next:
            self.held = "corrected"
        elif "NOT" in clause.kinds and not self.held:
            self.held = "perhaps"

    def _only_things(self, acting: Sequence[Token], clause: Clause) -> bool:
        """Take a clause that only names or counts things; return whether it does."""
        kinds = {token.kind for token in acting}
        replaced, self.replaced = self.replaced, False
        if "PLACE" in kinds and kinds <= {"AND", "ORDINAL", *_COUNTING}:
            fragments = [token for token in acting if token.kind == "PLACE"]
            if len(fragments) == 1 and self._stops_at(fragments[0], clause):
                return True
            replaces = replaced and len(fragments) == 1 and not clause.is_next
            if not (replaces and self._mend([], fragments)):
                self._things(acting, clause)
            self.replaced = False
            return True
        bought = self.last is not None and self.last.op == "BUY"
        is_known = UNKNOWN not in clause.kinds  # and not "three hours"
        if bought and "NUMBER" in kinds and kinds <= _COUNTING and is_known and not clause.is_next:
            if "UNIT" in kinds:  # "washing powder, one box"
                self.doubt("vague")
            elif self.last is not None:
                self.only_named.discard(self.last.place)
            return True
        opens = clause.tokens[0].kind == "TAG"  # "okay, you see that"
        counted = clause.is_asked or (self.wondered and kinds & {"SOME", "NUMBER", "OF"})
        if counted and not opens and "IT" in kinds and kinds <= _COUNTING:  # "no milk, so that, please"
            self._meant_before(Instruction("BUY", span=(acting[0].start, acting[-1].end)))
            return True
        return False

    def _stops_at(self, token: Token, clause: Clause) -> bool:
        """Take a place as the end of the way begun before: "up … there is tofu, stop there"."""
        last = self.last
        if last is None or "HALT" not in clause.kinds:
            return False
        if is_open(last):
            span = (token.start, token.end)
            self._take(Found("onward", Instruction("GOTO", place=str(token.value), span=span)))
            return True
        return last.place == token.value

    def _things(self, tokens: Sequence[Token], clause: Clause) -> None:
        """Take things that are named without a verb: "a bottle of milk, please", "the meat, then the eggs".

        What is counted or asked for is bought; what is only named is probably bought, and doubted unless what
        follows says so.
        """
        asked = is_counted = clause.is_asked or self.hanging == "BUY" or self.asks
        self.asks = asked and clause.goes_on
        hanging, self.hanging = self.hanging, ""
        that = [token.start for token in clause.tokens if token.kind == "THAT"]
        opens = next((token for token in clause.tokens if token.kind not in ("SAY", "FRESH")), None)
        if opens is not None and opens.kind == "THE" and not hanging:
            that = [*that, opens.start - 1]  # "the vegetables", of which something is told
        for i, token in enumerate(tokens):
            if token.kind in ("SOME", "OF", "NUMBER") and (not i or tokens[i - 1].kind != "ORDINAL"):
                is_counted = True
            if token.kind != "PLACE":
                continue
            place, last = str(token.value), self.last
            after = [later.kind for later in clause.tokens if later.start >= token.end]
            step = Instruction("GOTO", place=place, span=(tokens[0].start, token.end))
            if hanging == "GOTO" or (place == FINISH and last is not None and last.op == "GOTO"):
                self._take(Found("do", step))
                continue
            is_told = any(start < token.start for start in that) and not asked  # "that's a lot of eggs"
            is_odd = UNKNOWN in after[:2] and after[0] != "OF"
            if place in (START, FINISH, EXIT) or is_odd or is_told:  # "pepper makes me sneeze"
                self._note_lost([token])
                continue
            is_counted |= any(start >= token.end for start in that)  # "milk it is"
            is_counted |= any(
                t.start == token.end for t in tokens if t.kind in ("SOME", "NUMBER")
            )  # 雞蛋一盒
            follows = "|" not in place and last is not None and last.op in ("GOTO", "BUY") and not is_counted
            if follows and last is not None and not {place, last.place} & self.only_named:
                self._take(Found("and", step))
                continue
            if place not in self.only_named and any(
                s.op == "BUY" and s.place == place for s in self.steps[-1:]
            ):
                continue  # "buy some peanuts. The salted ones"
            self._take(Found("do", replace(step, op="BUY")))
            if is_counted:
                self.only_named.clear()
                self.bare.add(place)
            else:
                self.only_named.add(place)
            is_counted = clause.is_asked

    def _bury(self, clause: Clause, grammar: Grammar, goes: bool) -> None:
        """Doubt a clause that was set aside although it reads like an instruction."""
        acting = clause.acting
        found, _ = grammar.read(acting)
        whats = ("do", "it", "measure", "straight", "onward")
        whole = [one.step for one in found if one.what in whats and is_whole(one.step)]
        places = {str(token.value) for token in acting if token.kind == "PLACE"}
        self.aside |= places
        if clause.dead in ("asked", "perhaps asked", "unreal") and len(places) == 1:
            self.wondered = next(iter(places)).split("|")[0]
        words = clause.kinds
        if (
            self._not_yet(clause)
            or self._put_back(clause)
            or self._denied(words, places)
            or self._postponed(clause, places, words)
        ):
            return
        if len(places) == 1 and clause.dead in ("unreal", "not") and not self.steps:
            self.place = next(iter(places)).split("|")[0]  # "no stew without beef: I'd better have some"
        if clause.dead == "not":
            if self._skips(acting):
                return
            self.negated |= places
            while places and self.steps and self.steps[-1].place in places:  # "the milk … not the milk"
                self.hanging = "BUY" if self.steps.pop().op == "BUY" else "GOTO"
            said = {token.kind for token in acting}
            if (
                "END" in said
                and said <= {"END", "TO", "GO", "PLACE"}
                and self.last is not None
                and self.last.to_end
            ):
                place = next(iter(places), "")  # "to the top, no, not all the way, only as far as the meat"
                self.steps[-1] = replace(self.last, to_end=False, place=place)
                return
            negated = [one.step for one in found if one.what == "do"]
            ways = [(step.op, step.way) for step in negated]
            if self.last is not None and not places and ways == [(self.last.op, self.last.way)]:
                if self.coming is not None and _is_measure(self.coming):  # "not so far, three squares"
                    self.steps[-1] = replace(self.last, squares=None, to_end=False)
                else:
                    self.steps.pop()  # "right … no need to go right"
                return
            more = _says_more(clause)
            whole = [
                one.step
                for one in found
                if more or (one.step.op in ("MOVE", "TURN", "BACK") and not one.step.place)
            ]
        elif clause.dead == "asked":
            whole = [step for step in whole if step.op == "MOVE"]
        else:
            asked = clause.dead != "unreal"
            own = [one.step for one in found if one.what != "doubt" and one.step.op != "GOTO"]
            whole = [step for step in own if asked or not is_open(step)] or whole
            if goes and places:  # "where I want to go next is the spices"
                self.told |= places
        if whole:
            self.doubt("set_aside")
            if "set_aside" in self.flipped:
                for one in found:
                    self._take(one)

    def _not_yet(self, clause: Clause) -> bool:
        """Whether a clause only says that the end of the way is to wait: "pay … oh, not yet"."""
        only_later = not clause.acting and "LATER" in clause.kinds
        if not only_later or self.last is None or self.last.op not in ("PAY", "LEAVE"):
            return False
        self.steps.pop()
        return True

    def _skips(self, acting: Sequence[Token]) -> bool:
        """Whether a negated clause says which aisles are not meant: "skip one aisle"."""
        counts = [int(token.value) for token in acting if token.kind in ("NUMBER", "ORDINAL")]
        kinds = {token.kind for token in acting}
        if not counts or "AISLE" not in kinds:
            return False
        if not kinds <= {"NUMBER", "ORDINAL", "AISLE", "SOME", "MORE", "GO", "TO"}:
            return False
        self.skipped = counts[0]
        return True

    def _put_back(self, clause: Clause) -> bool:
        """Whether a clause only says that something is not done: "some lemonade … no, I don't want it"."""
        kinds = clause.kinds
        undone = {"BUY", "TURN"} & kinds  # "turn round … no need to turn"
        if (
            kinds <= {"NOT", "FINAL", "SAY", "FRESH", "IT", *undone}
            and self.last is not None
            and undone == {self.last.op}
        ):
            self.steps.pop()
            return True
        return False

    def _denied(self, kinds: frozenset[str], places: set[str]) -> bool:
        """Whether a clause takes back what was just named: "what bread? Soap!", "bread … we have bread"."""
        last = self.last
        if last is None or last.place not in places or "PLACE" not in kinds:
            return False
        if "DONE_BUY" in kinds and last.op == "BUY":
            self.steps.pop()
            return True
        if not (
            "WHAT" in kinds
            and kinds <= {"WHAT", "ASK", "PLACE", "SAY", "FINAL", "SOME", "THE", "IT", "FRESH"}
        ):
            return False
        self.hanging = "BUY" if self.steps.pop().op == "BUY" else "GOTO"
        return True

    def _postponed(self, clause: Clause, places: set[str], kinds: frozenset[str]) -> bool:
        """Whether a clause says that what was just named can wait: "the tins … I can get tomorrow"."""
        last = self.last
        if clause.dead != "not" or places or "BUY" not in kinds or last is None:
            return False
        if last.place in self.only_named:
            self.only_named.discard(last.place)
            self.steps.pop()
            return True
        return False

    # ------------------------------------------------------------------ instructions

    def _release(self, step: Instruction) -> None:
        """Take back that one pays or leaves, where something else comes first."""
        held, self.held = self.held, ""
        last = self.last
        pays = step.op == "PAY" or step.place == FINISH
        leaves = last is not None and (last.op == "LEAVE" or last.place == EXIT)
        if last is None or (_closes(step) and not (pays and leaves)):
            return
        if held == "perhaps":
            if step.op != "BUY" and not pays:
                return
            self.doubt("maybe_repair")
        while self.steps and _closes(self.steps[-1]):
            self.steps.pop()

    def _add(self, step: Instruction) -> None:
        self.wondered = ""
        last = self.last
        if step.op == "BUY" and last is not None and last.op in ("PAY", "LEAVE") and not self.is_next:
            self.held = self.held or "perhaps"
        if self.held:
            self._release(step)
        if self.only_named and step.place in self.only_named and self.last is not None:
            if self.last.place == step.place:  # "eggs … get some eggs", "the cheese counter, go there"
                self.steps.pop()
            self.only_named.discard(step.place)
        self.steps.append(step)
        self.mended = False
        if step.place:
            self.place = step.place
            if step.place == self.unused:
                self.unused = ""

    def _named(self, place: str) -> None:
        """Remember a place that was only mentioned; a later "it" may mean it."""
        if self.unused:
            self.doubt("place_unused")
        self.mentions.add(place)
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
            case "more":
                self._more(step)
            case "check":
                self.checks.add(len(self.steps))
                self._add(step)
            case "straight":
                self._add(replace(step, op="MOVE", way="ahead") if self._in_line(step) else step)
            case "had" if self._had(step.place):
                pass
            case "bought" | "had":
                self._bought(step)
            case "face" | "past" | "passed" | "onward" | "and":
                self._on_the_way(one.what, step)
            case "paying" | "leaving" if step.place in (FINISH, EXIT):  # at the till, through the door
                self._do(replace(step, op="PAY" if one.what == "paying" else "LEAVE", place=""))
            case "paying" | "leaving":  # "pay for the meat"
                self.doubt("vague")
            case "it":
                self._meant_before(step, one.why)
            case _:
                self.doubt(one.why)

    def _on_the_way(self, what: str, step: Instruction) -> None:
        """Take what needs to know where the way has led so far."""
        last = self.last
        match what:
            case "face":
                self._face(step)
            case "past":
                self._pass(step)
            case "passed":
                self._leave_behind(step)
            case "onward":
                self._onward(step)
            case _ if isinstance(last, Sight) and last.past and not last.beyond:
                self._pass(step)  # "past the milk and cheese"
            case _:
                self._next_place(step)

    def _measure(self, step: Instruction) -> None:
        """Take a number of squares for the move before, or for the one that follows."""
        last = self.last
        if isinstance(last, Sight) and last.past and not last.beyond and step.squares:
            self._more(step)
            return
        if last is not None and last.op in ("MOVE", "BACK") and last.squares == step.squares:
            return  # "one, two, three … yes, three squares"
        if last is not None and (is_open(last) or _is_bare_back(last)):
            self.steps[-1] = replace(
                last, squares=step.squares, span=(last.span[0], step.span[1] or last.span[1])
            )
            self.mended = True  # "up … three: up three"
        elif last is not None and last.op == "MOVE" and last.squares is not None and not self.is_next:
            self.doubt("counted_on")  # "up three … four squares": four, unless they are four more
            if "counted_on" in self.flipped:
                self._add(step)
            else:
                self.steps[-1] = replace(last, squares=step.squares)
                self.mended = True
        else:
            self.measured = len(self.steps)
            self._add(step)

    def _more(self, step: Instruction) -> None:
        """Take "two more" for squares the same way as before."""
        last = self.last
        if isinstance(last, Sight) and last.past and not last.beyond and step.squares:
            self.steps[-1] = replace(last, beyond=step.squares)  # "past the milk, and one more"
        elif last is None or last.op not in ("MOVE", "BACK") or is_open(last):
            self._measure(step)
        else:
            self._add(replace(last, squares=step.squares, to_end=False, place="", span=step.span))

    def _again(self, tokens: Sequence[Token]) -> bool:
        """Take "and another" for one square more the same way."""
        last = self.last
        if last is None or last.op not in ("MOVE", "BACK") or (last.squares is None and not last.place):
            return False
        squares = next((int(token.value) for token in tokens if token.kind == "NUMBER"), 1)
        span = (tokens[0].start, tokens[-1].end)
        self._add(replace(last, squares=squares, place="", span=span))
        return True

    def _face(self, step: Instruction) -> None:
        """Turn to a direction of the map, whichever way the figure faces."""
        heading = self._end().heading
        wanted = HEADINGS[step.way]
        turns = {} if heading is None else {LEFT_OF[heading]: "left", RIGHT_OF[heading]: "right"}
        if wanted in turns:
            self._add(replace(step, way=turns[wanted]))  # type: ignore[arg-type]
        elif heading is None:
            self.doubt("turn")
        elif wanted != heading:
            self._add(replace(step, way="around"))

    def _pass(self, step: Instruction) -> None:
        """Go past a place."""
        last = self.last
        beyond = step.beyond if isinstance(step, Sight) else 0
        if not step.place:  # "past the meat, one square past it"
            place = self.passed[-1] if self.passed else self.place
            if not place:
                self.doubt("vague")
                return
            step = replace(step, place=place)
        self.passed.append(step.place)
        if beyond:
            if (
                last is not None
                and (is_open(last) or isinstance(last, Sight))
                and step.way in ("ahead", last.way)
            ):
                self.steps.pop()
                step = replace(step, way=last.way)
            self._add(replace(step, past=(step.place,), place=""))  # type: ignore[call-arg]
            return
        if isinstance(last, Sight) and last.past and step.way in ("", "ahead", last.way):
            self.steps[-1] = replace(last, past=(*last.past, step.place))
        elif last is not None and is_open(last) and step.way in ("", "ahead", last.way):
            self.steps[-1] = Sight("MOVE", last.way, span=last.span, past=(step.place,))
        elif step.way and not (last is not None and last.to_end and step.way == "ahead"):
            self._add(Sight("MOVE", step.way, span=step.span, past=(step.place,)))

    def _leave_behind(self, step: Instruction) -> None:
        """Remember how many aisles are not meant: "skip one aisle, the one after that"."""
        self.skipped = step.squares or 0
        if step.way:
            self._do(replace(step, squares=None))

    def _onward(self, step: Instruction) -> None:
        """Take "to the meat" as the end of the way begun before, if it leads there: "left … to the meat"."""
        last = self.last
        if last is not None and is_open(last) and not isinstance(last, Sight):
            way = self.steps.pop()
            end = self._end()
            heading = HEADINGS.get(way.way, end.heading)
            cell = self.context.terrain.cell(end.state)
            leads = cell >= 0 and heading is not None
            if leads and self.context.terrain.straight(cell, heading or 0, step.place) is not None:
                self._add(replace(way, place=step.place, span=(way.span[0], step.span[1])))
                return
            self.steps.append(way)
        self._do(step)

    def _end(self) -> Position:
        """Where the program has led so far."""
        steps, _ = settle(self.steps, self.context)
        return replay(steps, self.context.terrain, self.context.position, told=self.context.told).end

    def _next_place(self, step: Instruction) -> None:
        """Do at a further place what was done at the one before: "the meat, then the vegetables"."""
        last = self.last
        if last is not None and last.place == step.place:
            return
        self._add(replace(step, op="BUY" if last is not None and last.op == "BUY" else "GOTO"))
        if last is None or not last.place:
            self.doubt("place_unused")

    def _meant_before(self, step: Instruction, unless: str = "") -> None:
        """Take "it" for the place named last, or for what is in reach, unless a doubt speaks against that."""
        if self.last is not None and self.last.place in self.only_named:  # "cheese. Pop it in the basket"
            self.only_named.discard(self.last.place)
            self.steps[-1] = replace(self.last, op=step.op)
            return
        buys = self.last is not None and self.last.op == "BUY"
        if buys and step.op == "GOTO" and self.last is not None and self.last.place in self.bare:
            self.steps[-1] = replace(self.last, op="GOTO")  # "household, please. Take him there"
            return
        if self.wondered:  # "is there any milk? Then I take a bottle"
            self._add(replace(step, place=self.wondered))
            return
        if self.unused or (self.place and (self.steps or self.place in self.aside) and not buys):
            self._add(replace(step, place=self.place))
        elif step.op == "GOTO":
            self.doubt("where_to")
        elif unless and not buys:
            self.doubt(unless)
        elif not buys:
            self._buy_here(step)

    def _do(self, step: Instruction) -> None:
        """Add an instruction, unless it says again, or completes, what was said before."""
        last = self.last
        if last is not None and self._says_again(step, last):
            return
        if last is not None and last.op == "TURN" and last.way == "around" and step.op == "BACK":
            self.steps.pop()
        if last is not None and last.op == "TURN" and step.op == "MOVE" and step.way in ("left", "right"):
            self.doubt("mixed_frames")  # the figure's own left, and then the map's?
        if step.op == "LEAVE":
            self.steps = [earlier for earlier in self.steps if earlier.op != "LEAVE"]
        if isinstance(step, Sight) and step.nth:
            if isinstance(last, Sight) and last.nth and self._is_same_aisle(step, last):
                self.steps[-1] = replace(last, goes_to=True)
                return
            step = self._counted_from(step)
        if isinstance(step, Sight) and step.between and last is not None and is_open(last):
            self.steps[-1] = replace(step, way=step.way or last.way, span=(last.span[0], step.span[1]))
            return
        counts_on = isinstance(last, Sight) and isinstance(step, Sight) and 0 < last.nth < step.nth
        counts_on &= not self.is_next  # "past two aisles, the third one"
        if isinstance(step, Sight) and step.nth and last is not None and (is_open(last) or counts_on):
            past = last.past if isinstance(last, Sight) else ()
            if step.way == "ahead" or step.goes_to:  # "go right, the second aisle"
                step = replace(step, way=last.way, goes_to=True)
            elif step.way != last.way:  # "left past the meat, and down the next aisle"
                step = replace(step, along=last.way)
            self.steps[-1] = replace(step, past=past, span=(last.span[0], step.span[1]))
            return
        if last is not None and step.op == last.op == "MOVE" and self._completes(step, last):
            return
        if (
            isinstance(last, Sight)
            and last.nth
            and not last.side
            and last.way == "ahead"
            and is_open(step)
            and not self.is_next
        ):
            self.steps[-1] = replace(last, way=step.way, goes_to=True)  # "the second aisle, going left"
            return
        self._add(step)

    def _is_same_aisle(self, step: Sight, last: Sight) -> bool:
        """Whether an aisle is the one that was counted before: "the second aisle, to its mouth"."""
        said_again = step.nth == last.nth and step.way == "ahead" and not step.after and not self.is_next
        return step.is_mouth or said_again

    def _counted_from(self, step: Sight) -> Sight:
        """Count on from aisles left behind where words say so: "skip one, the next one after"."""
        skipped, self.skipped = self.skipped, 0
        if step.after and not skipped and not any(isinstance(one, Sight) for one in self.steps):
            self.doubt("vague")  # "the one after", and nobody knows after which
            self.doubt("undecided")
        if step.nth == 1 and skipped:
            return replace(step, nth=skipped + 1)
        return step

    def _says_again(self, step: Instruction, last: Instruction) -> bool:
        """Whether an instruction only repeats the one before; where that is not sure, doubt it."""
        said = (step.op, step.place) == (last.op, last.place)
        if said and step.place in self.only_named:
            self.only_named.discard(step.place)
            return True
        if said and step.op in ("BUY", "PAY", "LEAVE"):
            self.doubt("said_twice")
            return "said_twice" not in self.flipped
        is_bought = last.op == "BUY" and last.place not in self.only_named | self.bare
        done_at = FINISH if last.op == "PAY" else last.place if is_bought else ""
        if step.op == "GOTO" and step.place == done_at:  # "pay, go and pay at the till"
            return True
        if last.op == step.op == "TURN" and last.way == step.way and not self.again:
            if not self.mended:  # "turn left, no, right: turn right and go on"
                self.doubt("said_twice")
            return True
        return False

    def _completes(self, step: Instruction, last: Instruction) -> bool:
        """Whether a move was put together with the move before, of which it is a part."""
        if is_open(last) and _is_opposite(last, step):
            self.doubt("maybe_repair")  # "left … right two"
            if "maybe_repair" not in self.flipped:
                self.steps.pop()
            return False
        if (
            step.squares is not None
            and step.squares == last.squares
            and not self.is_next
            and (step.way == last.way or (self.mended and step.way == "ahead"))
        ):
            if self.mended:  # "up two, no, three: up three"
                self.mended = False
                return True
            self.doubt("said_twice")
        is_passed = isinstance(last, Sight) and last.past and not last.beyond
        if is_passed and step.squares is not None and step.way in (last.way, "ahead"):
            self._more(step)  # "past the milk, and on two"
            return True
        if step.to_end and last.to_end and step.way in (last.way, "ahead"):  # "to the end, to the wall"
            return True
        if is_open(step) and is_whole(last) and step.way == last.way and self.coming is None:
            return True  # "up to the meat, straight up"
        is_same = step.squares is not None and step.squares == last.squares  # "… three squares. Up three"
        if (is_same or not is_whole(step)) and self.measured == len(self.steps) - 1:  # "three squares, up"
            self.steps[-1] = replace(last, way=step.way, span=(last.span[0], step.span[1]))
            self.measured = -1
            return True
        if is_open(last) and step.way in (last.way, "ahead") and not isinstance(step, Sight):
            if not (isinstance(last, Sight) and is_open(step)):  # "down, down seven squares"
                self.steps[-1] = replace(step, way=last.way, span=(last.span[0], step.span[1]))
            return True
        return False

    def _echoes(self, step: Instruction) -> bool:
        """Whether an instruction only names what was just said, to deny it."""
        last, goes = self.last, step.op == "BACK" and step.squares is None and not step.place
        if last is None or self.coming is None or (last.op, last.way) != (step.op, step.way):
            return False
        return goes or (is_open(step) and not isinstance(step, Sight)) or step.op == "TURN"

    def _may_repair(self, step: Instruction) -> bool:
        """Whether an instruction could be meant to replace the one before."""
        return (
            bool(self.steps) and self.steps[-1].op == step.op and not same_program([self.steps[-1]], [step])
        )

    def _goes_less(self, step: Instruction) -> bool:
        """Whether one cannot go on so from where the way has led: "down to the end, wait, down two"."""
        last = self.last
        if last is None or last.op != step.op:
            return False
        turned = last.op == "TURN" and {last.way, step.way} == {"left", "right"}  # "left, wait, right"
        return turned or (last.to_end and last.way == step.way and step.squares is not None)

    def _in_line(self, step: Instruction) -> bool:
        """Whether a place comes into reach straight on from where the program has led so far."""
        end = self._end()
        cell = self.context.terrain.cell(end.state)
        if cell < 0 or end.heading is None:
            return False
        return self.context.terrain.straight(cell, end.heading, step.place) is not None

    def _bought(self, step: Instruction) -> None:
        """Take "I've got the meat" as the purchase itself if one stands there and has not got it yet."""
        place = step.place or self.place
        if not place or place in self.negated:  # "not bread, I've got bread"
            return
        end = self._end()
        here = self.context.terrain.cell(end.state) in self.context.terrain.reach.get(place, frozenset())
        done = place in self.context.terrain.grid.completed(end.state)
        named = any(s.op == "BUY" and s.place == place for s in self.steps)
        if here and not done and not named:
            self._add(replace(step, op="BUY", place=place))
        elif not done and not named:
            self.doubt("bought_elsewhere")

    def _had(self, place: str) -> bool:
        """Take back what was to be bought, and was bought before: "some meat … oh, the meat is done"."""
        if self.last is None or (self.last.op, self.last.place) != ("BUY", place):
            return False
        if not self.surprised:
            self.doubt("maybe_repair")
        self.steps.pop()
        return True

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
            return not steps and bool(fragments) and not self.hanging  # "no eggs today"
        if (
            [one.what for one in found] == ["bought"]
            and last.op == "BUY"
            and last.place == steps[0].step.place
        ):
            self.steps.pop()  # "some bread. No, we've got bread"
            return True
        if not steps:
            return self._mend_part(last, fragments, lost)
        new = steps[0].step
        if is_open(new) and last.op == "TURN" and new.way in ("left", "right"):  # "turn right, I mean left"
            self.steps[-1] = replace(last, way=new.way, span=new.span)
            self.mended = True
            for one in steps[1:]:
                self._take(one)
            self._note_lost(lost)
            return True
        is_way = steps[0].what == "do" and new.op == "MOVE" and bool(new.way) and not is_whole(new)
        if is_way and last.op == "MOVE":
            new = replace(last, way=new.way, span=new.span)  # "left two — no, right"
            self.steps[-1] = new
            steps = steps[1:]
        elif _counts_again(steps[0], last):
            self.steps[-1] = replace(last, squares=new.squares, to_end=False, place="", span=new.span)
            self.mended = True
            steps = steps[1:]
        elif self.held and not (_closes(new) and new.op == last.op):
            self._release(new)
        elif new.op == "BUY" and last.op not in ("BUY", "GOTO"):
            self.doubt("unresolved_repair")
        else:
            self._drop_back(new)
        for one in steps:
            self._take(one)
        self._note_lost(lost)
        return True

    def _recount(self, tokens: Sequence[Token]) -> bool:
        """Put an ordinal said alone in place of the one before: "the second aisle, sorry, the third"."""
        ordinals = [int(token.value) for token in tokens if token.kind == "ORDINAL"]
        is_alone = {token.kind for token in tokens} <= {"ORDINAL", "AISLE", "TO", "GO", "SOME"}
        last = self.last
        if not (is_alone and ordinals and isinstance(last, Sight) and last.nth):
            return False
        self.steps[-1] = replace(last, nth=ordinals[-1])
        return True

    def _mend_part(self, last: Instruction, fragments: Sequence[Token], lost: Sequence[Token]) -> bool:
        """Put a number or a place that is said alone in place of the one before."""
        numbers = [int(token.value) for token in fragments if token.kind == "NUMBER"]
        places = [str(token.value) for token in fragments if token.kind == "PLACE"]
        if numbers and last.op in ("MOVE", "BACK"):
            squares = None if numbers[-1] == last.squares else numbers[-1]  # "down five, not five"
            self.steps[-1] = replace(last, squares=squares, to_end=False, place="")
            self.mended = True
            return True
        if places and last.place:
            wrong = last.place
            for i in range(len(self.steps) - 1, -1, -1):
                if self.steps[i].place != wrong:
                    break
                self.steps[i] = replace(self.steps[i], place=places[-1])
            self.place = places[-1]
            self.replaced = True
            return True
        if fragments or any(token.kind in CORE for token in lost):
            self.doubt("unresolved_repair")
        return False

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


_COUNTING = frozenset({"PLACE", "SOME", "OF", "NUMBER", "UNIT", "MORE", "HERE", "IT"})


def _names_things(clause: Clause | None) -> bool:
    """Whether a clause only names things."""
    kinds = {token.kind for token in clause.acting} if clause is not None else set()
    return "PLACE" in kinds and kinds <= _COUNTING


def _does_more(clause: Clause) -> bool:
    """Whether a clause names something, or does more than describe, such as "a long one"."""
    return any(token.kind == "PLACE" or token.kind not in _COUNTING for token in clause.acting)


def _nexts(clauses: Sequence[Clause], are_so: Sequence[bool], within: int) -> list[Clause | None]:
    """Of every clause the next one that is so, if it is one of the few that follow."""
    found: list[Clause | None] = []
    near = len(clauses) + within  # far off
    for i in range(len(clauses) - 1, -1, -1):
        found.append(clauses[near] if near <= i + within else None)
        if are_so[i]:
            near = i
    return found[::-1]


def _is_measure(clause: Clause) -> bool:
    """Whether a clause is a number of squares and nothing else."""
    kinds = [token.kind for token in clause.acting]
    return kinds in (["NUMBER"], ["NUMBER", "UNIT"]) and not clause.is_next


def _hangs(tokens: Sequence[Token]) -> str:
    """What was begun by a clause that broke off before its object."""
    kinds = [token.kind for token in tokens if token.kind not in ("SOME", "NUMBER", "OF", "IT")]
    if not kinds or kinds[-1] not in ("TO", "BUY", "NEED"):
        return ""
    return "GOTO" if kinds[-1] == "TO" else "BUY"


def _says_more(clause: Clause) -> bool:
    """Whether a negated clause has an instruction beside what it negates: "to the eggs, not the meat"."""
    verbs = ("GO", "BUY", "PAY", "LEAVE", "TURN", "UP", "DOWN", "LEFT", "RIGHT")
    kinds = [token.kind for token in clause.tokens]
    place = next((i for i, kind in enumerate(kinds) if kind in ("NOT", "LATER")), 0)
    before = any(kind in verbs for kind in kinds[:place])
    named = next((i for i in range(place, len(kinds)) if kinds[i] == "PLACE"), len(kinds))
    return before or any(kind in verbs for kind in kinds[named + 1 :])


def _is_first(token: Token) -> bool:
    return token.kind == "ORDINAL" and token.value == 1


def _does_something(clause: Clause, coming: Clause | None) -> bool:
    """Whether a clause, or the one after it, has something to do in it."""
    return any(
        token.kind in CORE for token in (*clause.acting, *(coming.acting if coming is not None else ()))
    )


def _asks_something(clause: Clause) -> bool:
    """Whether a clause that counts has words of going or getting."""
    kept, _ = without_objects(clause.tokens)
    kinds = {token.kind for token in kept}
    if clause.dead in ("if", "after if", "asked"):
        return False
    if clause.dead == "not":
        return "NOT" not in clause.kinds and _begins_as_instruction(clause)
    if clause.dead:
        wanted = bool(kinds & {"NEED", "BUY", "ORDINAL"}) and "PLACE" in kinds  # "the eggs are next"
        return wanted or _begins_as_instruction(clause)
    return bool(
        kinds & {"GO", "BUY", "NEED", "TURN", "AISLE", "MORE", "ALONG", "PAST", "AHEAD", "VAGUE", "BACK"}
    )


def _counts_again(one: Found, last: Instruction) -> bool:
    """Whether a number of squares stands for the one before: "left two, no, three", "back two, no, three"."""
    if one.step.op != "MOVE" or one.step.way != "ahead" or one.step.squares is None:
        return False
    return last.op == "MOVE" or (last.op == "BACK" and one.what == "measure")


def _closes(step: Instruction) -> bool:
    """Whether an instruction ends the way: to pay, to leave, or to go where that is done."""
    return step.op in ("PAY", "LEAVE") or (step.op == "GOTO" and step.place in (FINISH, EXIT))


def _begins_as_instruction(clause: Clause) -> bool:
    """Whether what is told in a clause only says where to: "go where we went", "keep going till I say"."""
    kinds = [token.kind for token in clause.tokens if token.kind != "SAY"]
    return kinds[:1] in (["GO"], ["AHEAD"], ["TO"]) and clause.tokens[0].kind != "SAY" and len(kinds) > 1


def _is_opposite(one: Instruction, other: Instruction) -> bool:
    ways = {one.way, other.way}
    return ways in ({"up", "down"}, {"left", "right"})


def _is_bare_back(step: Instruction) -> bool:
    """Whether one goes back, and nothing says how far."""
    return step.op == "BACK" and not step.squares and not step.place


def is_whole(step: Instruction) -> bool:
    """Whether an instruction says where to or how far."""
    return step.op in ("PAY", "LEAVE", "TURN") or bool(step.place) or step.to_end or step.squares is not None


def is_open(step: Instruction) -> bool:
    """Whether a MOVE does not say how far."""
    return (
        step.op == "MOVE"
        and not is_whole(step)
        and not (isinstance(step, Sight) and (step.nth or step.beyond or step.between))
    )
