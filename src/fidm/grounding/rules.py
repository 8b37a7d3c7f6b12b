"""The rules grounder: a lexicon and a grammar read what was said, and say when they are not sure.

A text is cut into sentences and clauses. Clauses that are questions, negated, hypothetical or talk to oneself give
nothing; a repair ("no, three") replaces what it corrects, so the later wins. What remains is read by the grammar,
and the program is replayed from where the person is. The grounder then asks itself whether it may be wrong:

- words about the way that no rule used, or a place that was named and not used;
- a vague distance, or none at all where the map does not settle it;
- a move into a shelf, a place that does not come into reach, a turn with no heading;
- a repair with nothing to replace; more than a third of the words unknown.

Each is a *doubt*: the best reading is kept, and the segment is marked for review.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import fidm
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.grammar import Found, Grammar, grammar_of
from fidm.grounding.language import BREAK, QUESTION, STOP, UNKNOWN, Token, Vocabulary, load_language
from fidm.grounding.program import NOTHING, Instruction, Program, same_program, tidy
from fidm.grounding.replay import DOUBTFUL, Replay, replay
from fidm.grounding.terrain import HEADING_NAMES, LEFT_OF, RIGHT_OF, Terrain
from fidm.tasks.spec import TaskSpec

VERSION = 1
"""Goes up whenever a number may change."""

CORE = frozenset(
    {
        "UP",
        "DOWN",
        "LEFT",
        "RIGHT",
        "AHEAD",
        "TURN",
        "AROUND",
        "BACK",
        "END",
        "BUY",
        "PAY",
        "LEAVE",
        "PLACE",
        "UNIT",
        "NUMBER",
    }
)
"""Words about the way; heard and unused, they are a doubt."""

UNKNOWN_IN_TALK = 0.12
"""The share of unknown words above which "nothing was said about the way" is in doubt."""

Frame = Literal["walker", "map"]


@dataclass(slots=True)
class _Clause:
    """Words between two pauses, and how to take them."""

    tokens: list[Token]
    repairs: str = ""
    dead: str = ""
    ends_repair: bool = False


@dataclass(slots=True)
class _Draft:
    """A program in the making."""

    steps: list[Instruction] = field(default_factory=list)
    checks: set[int] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)
    place: str = ""
    measured: int = -1
    unused: str = ""
    aside: set[str] = field(default_factory=set)

    def add(self, step: Instruction) -> None:
        self.steps.append(step)
        if step.place:
            self.place = step.place
            if step.place == self.unused:
                self.unused = ""

    def named(self, place: str) -> None:
        """Remember a place that was only mentioned; a later "it" may mean it."""
        if self.unused:
            self.doubt("place_unused")
        self.place = self.unused = place

    def doubt(self, why: str) -> None:
        if why not in self.doubts:
            self.doubts.append(why)


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
        unknown: float = 0.34,
    ) -> None:
        self.language = language
        self.turns, self.sides, self.unknown = turns, sides, unknown
        self._readers: dict[tuple[str, int], tuple[Vocabulary, Grammar]] = {}
        self._specs: list[TaskSpec] = []

    def provenance(self) -> Mapping[str, Any]:
        """Return the version and the settings."""
        return {
            "grounder": self.name,
            "fidm": fidm.__version__,
            "rules_version": VERSION,
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
        draft = self._draft(tokens, plain, vocabulary, grammar, context)
        program = self._framed(tidy(draft.steps), context)
        done = replay(program, context.terrain, context.position, told=context.told)
        self._doubts(draft, program, done, tokens, context)
        return self._proposal(program, draft, context)

    # ------------------------------------------------------------------ reading

    def _reader(self, context: Context) -> tuple[Vocabulary, Grammar]:
        code = self.language or context.language
        spec = context.terrain.spec
        key = (code, id(spec))
        if key not in self._readers:
            language = load_language(code)
            self._specs.append(spec)  # kept alive, so that its id stays its own
            self._readers[key] = (Vocabulary(language, spec), grammar_of(language))
        return self._readers[key]

    def _draft(
        self,
        tokens: Sequence[Token],
        text: str,
        vocabulary: Vocabulary,
        grammar: Grammar,
        context: Context,
    ) -> _Draft:
        draft = _Draft()
        cancelled = False
        for clause in _clauses(_unstuttered(_counted(tokens), text)):
            acting = [token for token in clause.tokens if token.kind not in _QUIET]
            if clause.dead:
                _bury(clause, acting, grammar, draft)
                cancelled = clause.dead == "not" and not acting and bool(draft.steps)
                continue
            if cancelled and not clause.repairs:  # "to the meat … better not … to the bakery"
                clause.repairs = "hard"
            cancelled = False
            if _has_unknown_object(clause.tokens):
                draft.doubt("unknown_words")
            if not clause.repairs:
                acting = _without_openers(acting, clause, vocabulary)
            found, lost = grammar.read(acting)
            if (
                clause.ends_repair and not clause.repairs
            ):  # else the correction was before: "sorry, down two I mean"
                draft.doubt("unresolved_repair")
            if clause.repairs == "soft" and found and _may_repair(found[0].step, draft):
                draft.doubt("maybe_repair")
            if clause.repairs == "hard" and acting and _mend(found, lost, draft, context):
                continue
            if [token.kind for token in acting] == ["NUMBER"] and draft.steps and _is_open(draft.steps[-1]):
                lost, found = [], [Found("measure", Instruction("MOVE", "ahead", int(acting[0].value)))]
            if len(acting) == 1 and acting[0].kind == "PLACE" and draft.steps and draft.steps[-1].place:
                lost, found = [], [Found("and", _going(acting[0]))]  # "the meat, then the vegetables"
            for one in found:
                _take(one, draft, context)
            _note_lost(lost, draft)
        if draft.unused:
            draft.doubt("place_unused")
        return draft

    def _framed(self, program: Program, context: Context) -> Program:
        """Put directions into the frames the settings ask for."""
        if self.turns == "walker" and self.sides == "map":
            return program
        framed = []
        for step in program:
            if step.op == "TURN" and self.turns == "map" and step.way in ("left", "right"):
                framed.append(replace(step, op="MOVE", squares=None))
            elif step.op == "MOVE" and self.sides == "walker" and step.way in ("left", "right"):
                framed += [Instruction("TURN", step.way, span=step.span), replace(step, way="ahead")]
            else:
                framed.append(step)
        return tuple(framed)

    # ------------------------------------------------------------------ doubts

    def _doubts(
        self, draft: _Draft, program: Program, done: Replay, tokens: Sequence[Token], context: Context
    ) -> None:
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

    def _proposal(self, program: Program, draft: _Draft, context: Context) -> Proposal:
        sure = 0.97 if not draft.doubts else max(0.2, 0.7 - 0.15 * (len(draft.doubts) - 1))
        best = tuple(replace(step, probability=sure) for step in program)
        weighed: list[tuple[Program, float]] = [(best, sure)]
        other = _other_frame(best, context)
        if other is not None:
            weighed.append((other, (1 - sure) * 0.5 if not draft.doubts else 0.15))
        if draft.doubts and program != NOTHING:
            weighed.append((NOTHING, 0.1))
        return Proposal.of(weighed, tuple(draft.doubts), self.name)


_QUIET = frozenset(
    {
        "SAY",
        "POLITE",
        "THEN",
        "REPAIR",
        "NOT",
        "UNREAL",
        "IF",
        "LATER",
        "ASK",
        "HOLD",
        "TAG",
        BREAK,
        STOP,
        QUESTION,
        UNKNOWN,
    }
)


_STUTTERED = CORE - {"NUMBER", "UNIT"} | {"GO", "TO", "MORE", "ALONG"}


def _counted(tokens: Sequence[Token]) -> list[Token]:
    """Leave out all but the last of numbers that are counted up: "one, two, three squares"."""
    kept: list[Token] = []
    waiting: list[Token] = []  # what stood between the last number and here
    for token in tokens:
        if token.kind == "NUMBER":
            last = kept[-1] if kept else None
            if last is not None and last.kind == "NUMBER" and int(token.value) - int(last.value) in (0, 1):
                kept.pop()
            else:
                kept += waiting
            waiting = []
            kept.append(token)
        elif kept and kept[-1].kind == "NUMBER" and token.kind in (BREAK, STOP, "SAY"):
            waiting.append(token)
        else:
            kept += [*waiting, token]
            waiting = []
    return kept + waiting


def _unstuttered(tokens: Sequence[Token], text: str) -> list[Token]:
    """Leave out a word that is begun again at once: "down, down seven squares", "turn, turn round"."""
    kept: list[Token] = []
    n = len(tokens)
    for i, token in enumerate(tokens):
        if token.kind in _STUTTERED and i + 2 < n and tokens[i + 1].kind == BREAK:
            later = i + 2
            while later + 1 < n and tokens[later].kind in ("SAY", BREAK):
                later += 1
            if text.startswith(text[token.start : token.end], tokens[later].start):
                continue
        kept.append(token)
    return kept


def _clauses(tokens: Sequence[Token]) -> list[_Clause]:
    """Cut a text into clauses, and say which of them are no instructions."""
    found: list[_Clause] = []
    sentence: list[_Clause] = []
    current = _Clause([])

    def close(repairs: str = "") -> None:
        nonlocal current
        if current.tokens:
            sentence.append(current)
            current = _Clause([], repairs)
        else:
            current.repairs = "hard" if "hard" in (repairs, current.repairs) else repairs or current.repairs

    def finish(asked: bool) -> None:
        nonlocal sentence
        close()
        _judge(sentence, asked)
        found.extend(sentence)
        sentence = []

    for token in tokens:
        if token.kind in (STOP, QUESTION):
            finish(token.kind == QUESTION)
        elif token.kind in (BREAK, "THEN"):
            close()
        elif token.kind in ("REPAIR", "HOLD"):
            close("hard" if token.kind == "REPAIR" else "soft")
        else:
            current.tokens.append(token)
    finish(False)
    if found and current.repairs == "hard":
        found[-1].ends_repair = True
    return found


def _judge(sentence: list[_Clause], asked: bool) -> None:
    """Mark the clauses of a sentence that are no instructions."""
    rest = ""
    for i, clause in enumerate(sentence):
        kinds = {token.kind for token in clause.tokens}
        is_last = i == len(sentence) - 1
        if "IF" in kinds:
            rest = "if"
        if rest:
            clause.dead = rest
            rest = "after if"
        elif "ASK" in kinds:
            clause.dead = "asked" if asked else "perhaps asked"
        elif asked and is_last and not kinds & {"POLITE", "TAG"}:
            clause.dead = "perhaps asked"
        elif "NOT" in kinds or "LATER" in kinds:
            clause.dead = "not"
        elif "UNREAL" in kinds:
            clause.dead = "unreal"


def _bury(clause: _Clause, acting: list[Token], grammar: Grammar, draft: _Draft) -> None:
    """Doubt a clause that was set aside although it reads like an instruction."""
    found, _ = grammar.read(acting)
    whole = [
        one.step for one in found if one.what in ("do", "it", "measure", "straight") and _is_whole(one.step)
    ]
    places = {str(token.value) for token in acting if token.kind == "PLACE"}
    draft.aside |= places
    if clause.dead == "not":
        while places and draft.steps and draft.steps[-1].place in places:  # "take the milk, no, not the milk"
            draft.steps.pop()
        whole = [step for step in whole if not step.place]
    elif clause.dead == "if":
        whole = []
    elif clause.dead == "asked":
        whole = [step for step in whole if step.op == "MOVE"]
    else:
        whole = [one.step for one in found if one.what != "doubt" and one.step.op != "GOTO"] or whole
    if whole:
        draft.doubt("set_aside")


_TAKES_OBJECT = frozenset({"TO", "BUY", "GO", "AND", "ALONG", "TURN", "BACK", "MORE"})
_BETWEEN = frozenset({"SAY", "IT", "NUMBER", "POLITE"})


def _has_unknown_object(tokens: Sequence[Token]) -> bool:
    """Whether a verb or preposition of the way is followed by a word nobody knows: "go to the …"."""
    for i, token in enumerate(tokens):
        if token.kind in _TAKES_OBJECT:
            follower = next((later for later in tokens[i + 1 :] if later.kind not in _BETWEEN), None)
            if follower is not None and follower.kind == UNKNOWN:
                return True
    return False


def _is_whole(step: Instruction) -> bool:
    """Whether an instruction says where to or how far."""
    return step.op in ("PAY", "LEAVE", "TURN") or bool(step.place) or step.to_end or step.squares is not None


def _without_openers(acting: list[Token], clause: _Clause, vocabulary: Vocabulary) -> list[Token]:
    """Leave out a direction that only opens the sentence, as in "Right, I go up"."""
    openers = vocabulary.language.openers
    if not openers or not acting or acting[0] is not clause.tokens[0]:
        return acting
    if acting[0].end - acting[0].start != len(acting[0].kind):  # "to the right" is no opener
        return acting
    alone = len(clause.tokens) == 1
    measured = not alone and clause.tokens[1].kind in ("NUMBER", "UNIT", "TO", "END", "MORE", "AND", "VAGUE")
    other = any(token.kind in ("UP", "DOWN", "LEFT", "RIGHT", "TURN", "AHEAD") for token in acting[1:])
    if acting[0].kind.lower() in openers and (alone or (other and not measured)):
        return acting[1:]
    return acting


def _take(one: Found, draft: _Draft, context: Context) -> None:
    """Add what a rule found to the program."""
    step = one.step
    if "|" in step.place:  # a word for several sections: the first is taken, and doubted
        draft.doubt("ambiguous_place")
        step = replace(step, place=step.place.split("|")[0])
    if one.what == "do":
        _do(step, draft)
    elif one.what == "measure":
        last = draft.steps[-1] if draft.steps else None
        if last is not None and last.op == "MOVE" and last.squares == step.squares:
            return  # "one, two, three … yes, three squares"
        if last is not None and _is_open(last):
            draft.steps[-1] = replace(
                last, squares=step.squares, span=(last.span[0], step.span[1] or last.span[1])
            )
        else:
            draft.measured = len(draft.steps)
            draft.add(step)
    elif one.what == "check":
        draft.checks.add(len(draft.steps))
        draft.add(step)
    elif one.what == "straight":
        draft.add(step if not _in_line(draft, step, context) else replace(step, op="MOVE", way="ahead"))
    elif one.what == "and":
        last = draft.steps[-1] if draft.steps else None
        if last is not None and last.place == step.place:
            return
        draft.add(replace(step, op="BUY" if last is not None and last.op == "BUY" else "GOTO"))
        if last is None or not last.place:
            draft.doubt("place_unused")
    elif one.what == "bought":
        _bought(step, draft, context)
    elif one.what == "it":
        if draft.unused or (draft.place and draft.steps and draft.steps[-1].op != "BUY"):
            draft.add(replace(step, place=draft.place))
        elif step.op == "GOTO":
            draft.doubt("where_to")
        elif not draft.steps or draft.steps[-1].op != "BUY":
            _buy_here(step, draft, context)
    else:
        draft.doubt(one.why)


def _do(step: Instruction, draft: _Draft) -> None:
    """Add an instruction, unless it says again, or completes, what was said before."""
    last = draft.steps[-1] if draft.steps else None
    if last is not None and _repeats(step, last):
        draft.doubt("said_twice")
        return
    if step.op == "LEAVE":
        draft.steps = [earlier for earlier in draft.steps if earlier.op != "LEAVE"]
    if last is not None and step.op == last.op == "MOVE":
        if not _is_whole(step) and draft.measured == len(draft.steps) - 1:  # "three squares, up"
            draft.steps[-1] = replace(last, way=step.way, span=(last.span[0], step.span[1]))
            draft.measured = -1
            return
        if _is_open(last) and step.way in (last.way, "ahead"):  # "down, down seven squares"
            draft.steps[-1] = replace(step, way=last.way, span=(last.span[0], step.span[1]))
            return
    draft.add(step)


def _is_open(step: Instruction) -> bool:
    """Whether a MOVE does not say how far."""
    return step.op == "MOVE" and not _is_whole(step)


def _may_repair(step: Instruction, draft: _Draft) -> bool:
    """Whether an instruction could be meant to replace the one before."""
    return bool(draft.steps) and draft.steps[-1].op == step.op and not same_program([draft.steps[-1]], [step])


def _going(token: Token) -> Instruction:
    return Instruction("GOTO", place=str(token.value), span=(token.start, token.end))


def _repeats(step: Instruction, last: Instruction) -> bool:
    """Whether somebody said the same purchase twice in a row."""
    return step.op == last.op and step.op in ("BUY", "PAY", "LEAVE") and step.place == last.place


def _in_line(draft: _Draft, step: Instruction, context: Context) -> bool:
    """Whether a place comes into reach straight on from where the program has led so far."""
    end = replay(draft.steps, context.terrain, context.position, told=context.told).end
    cell = context.terrain.cell(end.state)
    if cell < 0 or end.heading is None:
        return False
    return context.terrain.straight(cell, end.heading, step.place) is not None


def _bought(step: Instruction, draft: _Draft, context: Context) -> None:
    """Take "I've got the meat" as the purchase itself if one stands there and has not got it yet."""
    place = step.place or draft.place
    if not place:
        return
    end = replay(draft.steps, context.terrain, context.position, told=context.told).end
    here = context.terrain.cell(end.state) in context.terrain.reach.get(place, frozenset())
    done = place in context.terrain.grid.completed(end.state)
    named = any(s.op == "BUY" and s.place == place for s in draft.steps)
    if here and not done and not named:
        draft.add(replace(step, op="BUY", place=place))
    elif not done and not named:
        draft.doubt("bought_elsewhere")


def _buy_here(step: Instruction, draft: _Draft, context: Context) -> None:
    """Take "I take it" as a purchase of what is in reach, if that is one section only."""
    terrain: Terrain = context.terrain
    cell = terrain.cell(context.position.state)
    near = [place for place in terrain.places if cell in terrain.reach[place]]
    wanted = [place for place in near if place not in terrain.grid.completed(context.position.state)]
    if len(near) == 1 and wanted and not draft.aside - set(near):
        draft.add(replace(step, place=near[0]))
    else:
        draft.doubt("what_to_buy")


def _mend(found: list[Found], lost: list[Token], draft: _Draft, context: Context) -> bool:
    """Let the later of two versions win; return whether the clause was used up by that."""
    steps = [one for one in found if one.what != "doubt"]
    fragments = [token for token in lost if token.kind in ("NUMBER", "PLACE")]
    last = draft.steps[-1] if draft.steps else None
    if last is None:
        return not steps and bool(fragments)  # "no eggs today"
    if not steps:
        numbers = [int(token.value) for token in fragments if token.kind == "NUMBER"]
        places = [str(token.value) for token in fragments if token.kind == "PLACE"]
        if numbers and last.op in ("MOVE", "BACK"):
            draft.steps[-1] = replace(last, squares=numbers[-1], to_end=False, place="")
            return True
        if places and last.place:
            wrong = last.place
            for i in range(len(draft.steps) - 1, -1, -1):
                if draft.steps[i].place != wrong:
                    break
                draft.steps[i] = replace(draft.steps[i], place=places[-1])
            draft.place = places[-1]
            return True
        if fragments or any(token.kind in CORE for token in lost):
            draft.doubt("unresolved_repair")
        return False
    new = steps[0].step
    if steps[0].what == "do" and not _is_whole(new) and new.op == "MOVE" and last.op == "MOVE":
        new = replace(last, way=new.way, span=new.span)  # "left two — no, right"
        draft.steps[-1] = new
        steps = steps[1:]
    elif new.op == "MOVE" and last.op == "MOVE" and new.way == "ahead" and new.squares is not None:
        draft.steps[-1] = replace(last, squares=new.squares, to_end=False, place="", span=new.span)
        steps = steps[1:]
    elif new.op == "BUY" and last.op not in ("BUY", "GOTO"):
        draft.doubt("unresolved_repair")
    else:
        _drop_back(new, draft)
    for one in steps:
        _take(one, draft, context)
    _note_lost(lost, draft)
    return True


def _drop_back(new: Instruction, draft: _Draft) -> None:
    """Take back what a new version replaces: back to the last instruction of its kind, else the last one."""
    kinds = [step.op for step in draft.steps]
    near = next((i for i in range(len(kinds) - 1, max(-1, len(kinds) - 4), -1) if kinds[i] == new.op), None)
    first = len(kinds) - 1 if near is None else near
    place = draft.steps[first].place
    while first and place and draft.steps[first - 1].place == place:
        first -= 1
    del draft.steps[first:]


def _note_lost(lost: Sequence[Token], draft: _Draft) -> None:
    for token in lost:
        if token.kind == "PLACE":
            draft.named(str(token.value).split("|")[0])
        elif token.kind == "VAGUE":
            draft.doubt("vague")
        elif token.kind in CORE:
            draft.doubt("unread_words")


def _other_frame(program: Program, context: Context) -> Program | None:
    """The reading in which turns are taken on the map; None where it is the same."""
    heading = context.position.heading
    if heading is None or not any(step.op == "TURN" for step in program):
        return None
    made: list[Instruction] = []
    for i, step in enumerate(program):
        if step.op == "TURN" and step.way in ("left", "right"):
            following = program[i + 1] if i + 1 < len(program) else None
            if following is not None and following.op == "MOVE" and following.way == "ahead":
                continue
            made.append(replace(step, op="MOVE", squares=1))
        elif step.op == "MOVE" and step.way == "ahead" and i and program[i - 1].op == "TURN":
            made.append(replace(step, way=program[i - 1].way if program[i - 1].way != "around" else "ahead"))
        else:
            made.append(step)
    turned = LEFT_OF if program[0].way == "left" else RIGHT_OF
    if program[0].op == "TURN" and HEADING_NAMES[turned[heading]] == program[0].way:
        return None
    return tuple(made)
