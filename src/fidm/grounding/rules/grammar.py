"""The grammar of route talk: sequences of word classes become instructions.

Rules are data (``languages/grammar.toml`` and each language's own). Every class of words has a letter; a
clause is the string of its letters, and a rule a regular expression over them, so that reading a clause is
one match after the other from left to right.

A text becomes clauses, and it is decided which of them are instructions at all.

Questions, negated and hypothetical clauses, and talk to oneself are set aside; what follows "no, …" is marked
as a repair of what came before. Numbers that are counted up and words that are begun twice are put right
first.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from itertools import pairwise

from fidm.errors import GroundingError
from fidm.grounding.route.program import MAX_SQUARES, Instruction
from fidm.grounding.rules.landmarks import Sight
from fidm.grounding.rules.language import (
    ACTING,
    BREAK,
    COMPASS,
    DIRECTIONS,
    QUESTION,
    STEERING,
    STOP,
    UNKNOWN,
    Language,
    Token,
    Vocabulary,
)

_LETTER = dict(zip(ACTING, string.ascii_letters, strict=False))
_GROUPS = {
    "DIR": "[" + "".join(_LETTER[kind] for kind in DIRECTIONS) + "]",
    "SIDE": "[" + _LETTER["LEFT"] + _LETTER["RIGHT"] + "]",
    "N": _LETTER["NUMBER"],
    "Q": "[" + "".join(_LETTER[kind] for kind in ("IT", "NUMBER", "UNIT", "MORE", "SOME", "OF")) + "]",
    "COMPASS": "[" + "".join(_LETTER[kind] for kind in COMPASS) + "]",
}
_WAY = dict(zip(DIRECTIONS, ("up", "down", "left", "right") * 2, strict=True))


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule makes of a stretch of words."""

    # ``do`` for an instruction; ``check``, ``straight``, ``and``, ``bought``, ``had``, ``it``, ``measure``,
    # ``face``, ``past``, ``passed`` and ``onward`` for what needs the context; ``doubt`` for what cannot
    # be read.
    what: str
    step: Instruction  # the instruction, or the place in question
    why: str = ""  # the code of a doubt; of a BUY that names nothing, the one where no place was named before


_Stretch = tuple[int, int, list[list[str]] | None]
"""Where a rule begins and ends to fit, and its right side; None where none fits."""

REMEMBERED = 10_000
"""How many clauses are kept as they were matched: people use the same few classes of words."""


class Grammar:
    """The rules of a language, compiled.

    A rule is ``"GO? DIR N UNIT? => MOVE dir n"`` and the like; the first that fits wins.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        self._results: list[list[list[str]]] = []
        sources = []
        for rule in rules:
            left, arrow, right = rule.partition("=>")
            if not arrow:
                raise GroundingError(f"The grammar rule {rule!r} has no '=>'.")
            sources.append(f"({_expression(left, rule)})")
            self._results.append([part.split() for part in right.split(";") if part.strip()])
        self._rules = re.compile("|".join(sources))
        self._matched: dict[str, list[_Stretch]] = {}

    def read(self, tokens: Sequence[Token]) -> tuple[list[Found], list[Token]]:
        """Read the acting words of one clause; return what was found, and words that fit no rule."""
        letters = "".join([_LETTER[token.kind] for token in tokens])
        known = self._matched.get(letters)
        if known is None:
            if len(self._matched) > REMEMBERED:
                self._matched.clear()
            known = self._matched[letters] = list(self._match(letters))
        found: list[Found] = []
        lost: list[Token] = []
        for first, end, results in known:
            used = tokens[first:end]
            if results is None:
                lost += used
                continue
            for words in results:
                made = _make(words, used)
                if made is not None:
                    found.append(made)
        return found, lost

    def _match(self, letters: str) -> Iterator[_Stretch]:
        """Yield stretches of a clause, each with the right sides of its rule; none where no rule fits."""
        i = 0
        while i < len(letters):
            match = self._rules.match(letters, i)
            if match is None or match.end() == i:
                yield i, i + 1, None
                i += 1
                continue
            yield i, match.end(), self._results[(match.lastindex or 1) - 1]
            i = match.end()


def _make(words: list[str], used: Sequence[Token]) -> Found | None:
    """One instruction on the right of a rule, with what the matched words say."""
    span = (used[0].start, used[-1].end)
    op = words[0]
    if op == "skip":
        return _skipped(words, used, span)
    if op == "doubt":
        return Found("doubt", Instruction("NONE", span=span), words[1])
    places = [str(token.value) for token in used if token.kind == "PLACE"]
    if op == "check":
        return Found("check", Instruction("GOTO", place=places[-1], span=span)) if places else None
    if op == "between":
        way = next((_WAY[token.kind] for token in used if token.kind in _WAY), "")
        return Found("do", Sight("MOVE", way, span=span, between=(places[0], places[-1])))  # type: ignore[arg-type]
    if op in ("nth", "past"):
        return _sight(op, words[1:], used, places, span)
    if op == "face":
        way = next(_WAY[token.kind] for token in used if token.kind in _WAY)
        return Found(op, Instruction("TURN", way, span=span))  # type: ignore[arg-type]
    if op in ("straight", "and", "bought", "had", "paying", "leaving", "onward"):
        return Found(op, Instruction("GOTO", place=places[-1] if places else "", span=span))
    if op in ("measure", "more"):
        return Found(op, _instruction(["MOVE", "ahead", "n"], used, places, span))
    what = "it" if "it" in words else "do"
    step = _instruction([op] if what == "it" else words, used, places, span)
    is_bare = op == "BUY" and {token.kind for token in used} <= {"BUY", "SOME"}
    return Found(what, step, "what_to_buy" if is_bare else "")


def _skipped(words: list[str], used: Sequence[Token], span: tuple[int, int]) -> Found | None:
    """Aisles that are left behind: "past the first aisle"; otherwise nothing."""
    if "n" not in words:
        return None
    count = next(int(token.value) for token in used if token.kind in ("NUMBER", "ORDINAL"))
    way = next((_WAY[token.kind] for token in used if token.kind in _WAY), "") if "dir" in words else ""
    return Found("passed", Instruction("MOVE", way, count, span=span))  # type: ignore[arg-type]


def _instruction(
    words: list[str], used: Sequence[Token], places: list[str], span: tuple[int, int]
) -> Instruction:
    """The instruction that the right of a rule writes down."""
    way, squares, to_end, place = "", None, False, ""
    for word in words[1:]:
        if word == "dir":
            way = next((_WAY[token.kind] for token in used if token.kind in _WAY), "")
        elif word in ("up", "down", "left", "right", "ahead", "around"):
            way = word
        elif word == "n":
            numbers = [int(token.value) for token in used if token.kind == "NUMBER"]
            squares = min(MAX_SQUARES, max(1, numbers[0])) if numbers else None
        elif word == "end":
            to_end = True
        elif word == "place" and places:
            place = places[-1]
        elif word == "first" and places:
            place = places[0]
    return Instruction(words[0], way, squares, to_end, place, span)  # type: ignore[arg-type]


def _sight(
    op: str, words: list[str], used: Sequence[Token], places: list[str], span: tuple[int, int]
) -> Found | None:
    """A stretch of the way that ends at something one sees."""
    ordinals = [int(token.value) for token in used if token.kind in ("ORDINAL", "NUMBER")]
    sides = [{"ONLEFT": "left", "ONRIGHT": "right"}.get(token.kind, "") for token in used]
    ways = [_WAY[token.kind] for token in used if token.kind in _WAY]
    side = next(filter(None, sides), "")
    if op == "past":
        way = ways[0] if "dir" in words and ways else "" if "place" in words else "ahead"
        beyond = ordinals[0] if "n" in words else 0
        place = places[-1] if places else ""
        return Found(op, Sight("MOVE", way, place=place, span=span, beyond=beyond))  # type: ignore[arg-type]
    way = ways[0] if ways and "ahead" not in words else "ahead"
    if not side and len(ways) > 1 and ways[-1] in ("left", "right"):  # "up the second aisle to the left"
        side = ways[-1]
    nth = ordinals[0] if ordinals else 1
    sight = Sight("MOVE", way, span=span, nth=nth, side=side, goes_to="to" in words)  # type: ignore[arg-type]
    past = (places[-1],) if "past" in words else ()
    return Found("do", replace(sight, after="after" in words, past=past, is_mouth="mouth" in words))


def _expression(left: str, rule: str) -> str:
    """The left side of a rule as a regular expression over letters."""
    parts = re.findall(r"[A-Z_]+|\(=|[()|?*+]|\S", left)
    known = {**_LETTER, **_GROUPS, "(": "(?:", "(=": "(?=", **{mark: mark for mark in ")|?*+"}}
    strange = next((part for part in parts if part not in known), None)
    if strange is not None:
        raise GroundingError(f"The grammar rule {rule!r} has {strange!r}, which is no class of words.")
    return "".join(known[part] for part in parts)


@lru_cache(maxsize=16)
def _shared_rules() -> tuple[str, ...]:
    text = (resources.files("fidm.grounding.rules") / "grammar.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["rules"])


@lru_cache(maxsize=16)
def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language: its own rules, then those all languages share."""
    return Grammar((*language.rules, *_shared_rules()))


CORE = frozenset(
    {
        *DIRECTIONS, "AHEAD", "TURN", "AROUND", "BACK", "END", "BUY", "PAY", "LEAVE", "PLACE", "UNIT",
        "NUMBER", "ORDINAL",
    }
)  # fmt: skip
"""Words about the way; heard and unused, they are a doubt."""

QUIET = frozenset({*STEERING, BREAK, STOP, QUESTION, UNKNOWN})
"""Words the grammar does not read."""

_STUTTERED = CORE - {"NUMBER", "UNIT"} | {"GO", "TO", "MORE", "ALONG"}
_WAYS = frozenset({"UP", "DOWN", "LEFT", "RIGHT", "AHEAD"})
UNPUNCTUATED = 3
"""The number of words from which on a text without any punctuation is taken for one that has lost it."""

_GOING = frozenset({"GO", "TO", "AHEAD", "ALONG", "BACK", *DIRECTIONS})
_TAKES_OBJECT = frozenset({"TO", "BUY", "NEED", "DONE_BUY", "GO", "ALONG", "TURN", "PAST"})
_BETWEEN = frozenset({"SAY", "FRESH", "IT", "POLITE", "OF", "SOME", "NUMBER", "UNIT", "MORE"})


Reading = tuple[list[Token], bool, list[Found], list[Token]]
"""Acting words of a clause; whether an object of theirs is unknown; what was found; what fits no rule."""


@dataclass(slots=True)
class Clause:
    """Words between two pauses, and how to take them."""

    tokens: list[Token]  # the words
    repairs: str = ""  # ``hard`` after "no", ``soft`` after "wait"; empty otherwise
    # Why it is no instruction: ``if``, ``after if``, ``asked``, ``perhaps asked``, ``not`` or ``unreal``.
    dead: str = ""
    ends_repair: bool = False  # whether a "no" follows it and then nothing
    # Whether the "no" before it stood alone: "no, silly me, …" and not "in no hurry".
    after_pause: bool = False
    is_next: bool = False  # whether a "then" came before it
    is_asked: bool = False  # whether it is a request: "…, please"
    goes_on: bool = False  # whether its sentence goes on after it
    _known: tuple[Sequence[Token], list[Token], frozenset[str]] = field(
        default=((), [], frozenset()), init=False, repr=False, compare=False
    )
    _readings: dict[tuple[bool, bool], Reading] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def acting(self) -> list[Token]:
        """The words the grammar reads; "along" beside a direction adds nothing."""
        return self._asked()[1]

    @property
    def kinds(self) -> frozenset[str]:
        """The classes of its words."""
        return self._asked()[2]

    def read(self, vocabulary: Vocabulary, grammar: Grammar, *, is_whole: bool, is_measured: bool) -> Reading:
        """Return what the grammar reads in it, without verbs of other things.

        A direction that only opens the sentence is left out, unless the clause is taken as a whole.
        """
        key = (is_whole, is_measured)
        if key not in self._readings:  # asked for every reading of a segment
            kept, is_unknown = without_objects(self.tokens)
            acting = self.acting if is_whole else without_openers(self, vocabulary, is_measured)
            if len(kept) < len(self.tokens):
                own = frozenset(kept)
                acting = [token for token in acting if token in own]
            self._readings[key] = (acting, is_unknown, *grammar.read(acting))
        return self._readings[key]

    def otherwise(self) -> Clause:
        """Return the same words, as an instruction if they are none, else as none."""
        found = copy(self)
        found.dead = "" if self.dead else "not"
        return found

    def sooner(self, tokens: list[Token]) -> Clause:
        """Return it as a request, with fewer words."""
        return replace(self, tokens=tokens, is_asked=True)

    def _asked(self) -> tuple[Sequence[Token], list[Token], frozenset[str]]:
        if self._known[0] is not self.tokens:  # asked again and again
            tokens = self.tokens
            self._known = (tokens, _acting(tokens), frozenset([token.kind for token in tokens]))
        return self._known


def _acting(tokens: Sequence[Token]) -> list[Token]:
    found = [token for token in tokens if token.kind not in QUIET]
    kinds = [token.kind for token in found]
    if "ALONG" in kinds:
        beside = [_WAYS.intersection(kinds[max(0, i - 1) : i + 3]) for i in range(len(found))]
        found = [t for t, ways in zip(found, beside, strict=True) if t.kind != "ALONG" or not ways]
    return found


def cut_clauses(tokens: Sequence[Token], text: str) -> list[Clause]:
    """Cut a text into clauses, and say which of them are no instructions."""
    tokens = _without_ends_of_things(_without_lengths(_without_pointing(tokens, text)))
    found = _clauses(_unstuttered(_counted(_punctuated(tokens)), text))
    for clause in found:
        clause.tokens = _without_purposes(clause.tokens)
    return found


def _without_pointing(tokens: Sequence[Token], text: str) -> list[Token]:
    """Leave out what only points to an unknown word after it: "of that line" is not of that."""
    points = {"that", "this", "these", "those"}
    nexts = [token.kind for token in tokens[1:]]
    return [
        token
        for i, token in enumerate(tokens)
        if nexts[i : i + 1] != [UNKNOWN] or text[token.start : token.end] not in points
    ]


def _without_lengths(tokens: Sequence[Token]) -> list[Token]:
    """Take a length that is no number of squares for a vague distance: "another three inches".

    Minutes and stairs are no squares at all.
    """
    found: list[Token] = []
    for token in tokens:
        if token.kind == "OWN":
            while found and found[-1].kind == "NUMBER":
                found.pop()
                kinds = [one.kind for one in found[-2:]]
                if kinds and kinds[-1] in DIRECTIONS and kinds[0] != "TURN":  # "up two flights of stairs"
                    found.pop()
        if token.kind == "LENGTH":
            while found and found[-1].kind in ("NUMBER", "MORE", "SOME"):
                found.pop()
            token = token._replace(kind="VAGUE")
        found.append(token)
    return found


_BOUNDS = frozenset({"END", "UP", "DOWN", "LEFT", "RIGHT"})
_DESCRIBING = frozenset({"SAY", "SOME", "MY", "IT"})


def _without_ends_of_things(tokens: Sequence[Token]) -> list[Token]:
    """Doubt the end or a side of what nobody knows: "the top of the hill" is not the top of the map.

    A side of "it" is one of a thing, too, and so is its end where nobody goes: "to the top of that".
    """
    found = list(tokens)
    goes = any(token.kind in ("GO", "ALONG", "AISLE") for token in tokens)
    for i, token in enumerate(tokens):
        last = i - 1 - (tokens[i - 1].kind == "SAY")  # "the right-hand side of"
        if token.kind != "OF" or last < 0 or tokens[last].kind not in _BOUNDS:
            continue
        one = [k for k in range(last + 1) if tokens[k].start == tokens[last].start]  # "to the top" is two
        after = [t.kind for t in tokens[i + 1 : i + 5]]
        owner = next((kind for kind in after if kind not in _DESCRIBING), BREAK)
        is_side = tokens[one[0]].kind in ("LEFT", "RIGHT") and (len(one) == 2 or last < i - 1)
        is_thing = is_side or not goes if "IT" in after else owner in (BREAK, STOP)
        if is_thing or owner in (UNKNOWN, "UNIT"):
            for k in one:
                found[k] = tokens[k]._replace(kind="VAGUE", value="")
    return found


_KILLERS = frozenset({"IF", "ASK", "NOT", "LATER", "UNREAL", "BE", "ONCE"})
"""Words that make a clause no instruction."""

_JOINED = frozenset(
    {"POLITE", "AND", "TO", "IF", "ASK", "FRESH", "THAT", "NOT", "THEN", BREAK, STOP, QUESTION}
)
_COMPLETE = frozenset({"PLACE", "UNIT", "NUMBER", "END", "HERE", "IT", "OWN", "MY", "TAG", "HALT", UNKNOWN})
"""What a clause may end with."""

_STARTS = frozenset({"GO", "BUY", "TURN", "AROUND", "PAY", "LEAVE", "AHEAD"})


def _punctuated(tokens: Sequence[Token]) -> list[Token]:
    """Cut what has no punctuation, as speech recognisers write it, where a request begins, turn by turn."""
    ends = [i + 1 for i, token in enumerate(tokens) if token.value == "\n"]
    turns = [tokens[a:b] for a, b in pairwise((0, *ends, len(tokens)))]
    return [token for turn in turns for token in _punctuated_turn(turn)]


def _punctuated_turn(tokens: Sequence[Token]) -> list[Token]:
    """Cut one turn of talk, if it has no punctuation."""
    marks = (BREAK, STOP, QUESTION)
    if len(tokens) <= UNPUNCTUATED or any(token.kind in marks for token in tokens[:-1]):
        return list(tokens)
    found: list[Token] = []
    first = 0  # where the clause begins
    for i, token in enumerate(tokens):
        mark = _pause_before(tokens, first, i)
        if mark:
            found.append(Token(mark, "", token.start, token.start))
            first = i
        elif token.kind in ("THEN", "REPAIR"):
            first = i + 1
        found.append(token)
        if token.kind == "FINAL" or (token.kind == "TAG" and i > first):
            found.append(Token(STOP if token.kind == "FINAL" else BREAK, "", token.end, token.end))
            first = i + 1
    return found


def _pause_before(tokens: Sequence[Token], first: int, i: int) -> str:
    """The mark that should stand before a word of a text without punctuation, if any."""
    kind, clause = tokens[i].kind, tokens[first:i]
    if not clause or clause[-1].kind in _JOINED:
        return ""
    kinds = [token.kind for token in clause]
    if kind in ("NEED", "THAT") and next((one for one in reversed(kinds) if one != "SAY"), "") in (
        "ASK",
        "LATER",
    ):
        return ""  # "when do I have to …"
    if kind in ("POLITE", "NEED", "FRESH", "THAT"):
        told = any(one in _KILLERS or one == "QUOTED" for one in kinds[:-1]) and kinds[-1] not in _KILLERS
        if kind == "FRESH" and told and kinds[0] != "IF" and tokens[i + 1 :] and _starts(tokens, i + 1):
            return STOP  # "my mother used to bake anyway go up three"
        return BREAK if kinds[-1] not in ("UNREAL", "BE") else ""
    if kind == "ORDINAL" and (_is_passed_over(tokens[i:]) or (kind in kinds and "NOT" in kinds)):
        return BREAK
    killers = [place for place, one in enumerate(kinds) if one in _KILLERS]
    if killers:
        return _pause_after_talk(tokens, i, kinds, killers)
    if kind == "PLACE" and "PLACE" in kinds and kinds[-1] in _AMOUNT:  # 菜心要一斤方包要一條, 蛋一盒方包一條
        follows = tokens[i + 1 : i + 2] and tokens[i + 1].kind
        return BREAK if follows in ("BUY", "NEED") or (follows in _AMOUNT and _amount_last(kinds)) else ""
    if kind == "PLACE" and (kinds[-1] == kind or _is_measured_before(tokens[i - 2 : i + 2])):
        return BREAK
    if kinds[-1] == "PLACE" and kind in ("SOME", "NUMBER") and _names_next(tokens[i + 1 :]):
        return "" if _amount_last(kinds) and _amount_after_next(tokens[i + 1 :]) else BREAK
    if kind in ("GO", "BUY") and {"PLACE"} <= set(kinds) <= _NAMING and _means_it(tokens[i + 1 :]):
        return BREAK  # "the soy sauce get it"
    if kind == "NOT" and tokens[i + 1 : i + 2] and tokens[i + 1].kind == "MY":  # "she buys it, not me"
        return ""
    return STOP if kind in ("UNREAL", "ASK", "NOT") and _is_said(kinds, kind) else ""


_NAMING = frozenset({"PLACE", "SAY", "THE", "SOME", "OF", "NUMBER", "UNIT", UNKNOWN})
"""Words of a clause that only names things."""


def _pause_after_talk(tokens: Sequence[Token], i: int, kinds: Sequence[str], killers: Sequence[int]) -> str:
    """The mark before a word where what stands before it in its clause is no instruction."""
    if kinds[0] == "IF":  # "if it rains go home"
        return ""
    small = ("SAY", "THE", "FRESH", UNKNOWN)
    denied = [one for one in kinds[killers[-1] :] if one not in small]
    is_part = denied[0] == "NOT" and len(denied) == 2 and denied[1] in (*DIRECTIONS, "PLACE", "END")
    if is_part and tokens[i].kind in (*DIRECTIONS, "PLACE", "TO"):
        return BREAK  # "not the eggs the milk"
    is_over = kinds[-1] in (*_COMPLETE, "AISLE") or (kinds[-1] == "SAY" and len(kinds) - killers[-1] > 3)
    is_over |= kinds[-1] == "SAY" and kinds[killers[-1]] == "ASK"
    is_over |= kinds[-1] == "BE" or (kinds[-1] == "LATER" and len(kinds) > 2)
    is_over |= kinds[killers[-1]] == "NOT" and _is_refused(kinds[killers[-1] + 1 :], tokens[i].kind)
    return STOP if is_over and _starts(tokens, i) else ""


def _is_said(kinds: Sequence[str], kind: str) -> bool:
    """Whether a clause is complete where a denial, a question or talk of something else begins."""
    acts = any(one in _STARTS or one in DIRECTIONS for one in kinds)
    if kind == "NOT":
        if kinds[0] in ("FRESH", "MY"):  # "I went left, not right"
            return False
        acts |= "PLACE" in kinds and any(one in ("SOME", "NUMBER", "NEED") for one in kinds)
    else:
        acts |= "NEED" in kinds and "PLACE" in kinds
    return acts and (
        kinds[-1] in _COMPLETE or kinds[-1] in DIRECTIONS or (kinds[-1] == "SAY" and kind != "NOT")
    )


def _means_it(tokens: Sequence[Token]) -> bool:
    """Whether the next word that is not a small one points back: "it", "there"."""
    return next((t.kind for t in tokens if t.kind not in ("SAY", "AND", "GO", "BUY")), "") in ("IT", "HERE")


_AMOUNT = ("SOME", "NUMBER", "UNIT")


def _amount_last(kinds: Sequence[str]) -> bool:
    """Whether amounts stand after what they count, as far as one can tell: 雞蛋一盒, not 一盒雞蛋."""
    return not any(kind in _AMOUNT for kind in kinds[: kinds.index("PLACE")])


def _is_measured_before(tokens: Sequence[Token]) -> bool:
    """Whether squares, and not goods, are counted before a thing and its amount: 落兩格豆腐兩磚."""
    kinds = [token.kind for token in tokens]
    return kinds[:3] == ["NUMBER", "UNIT", "PLACE"] and kinds[-1] in ("SOME", "NUMBER")


def _amount_after_next(tokens: Sequence[Token]) -> bool:
    """Whether an amount follows the next thing that is named."""
    kinds = [token.kind for token in tokens]
    after = kinds.index("PLACE") + 1
    return kinds[after : after + 1] != [] and kinds[after] in _AMOUNT


def _is_passed_over(tokens: Sequence[Token]) -> bool:
    """Whether the next aisle is not to be taken: "not the first aisle, the second"."""
    return next((t.kind for t in tokens[1:4] if t.kind not in ("AISLE", "SAY")), "") == "NOT"


def _is_refused(denied: Sequence[str], kind: str) -> bool:
    """Whether a negation is complete: 唔要 before any verb, 唔使噉高 before a direction."""
    if not denied or kind == "LEAVE" or not {"SAY", "FINAL", "BUY", "AROUND"}.issuperset(denied):
        return False
    return "BUY" in denied or "AROUND" in denied or kind in DIRECTIONS


def _names_next(tokens: Sequence[Token]) -> bool:
    """Whether the next word that is not a small one names something."""
    return next((t.kind for t in tokens if t.kind not in ("SAY", "SOME", "OF", UNKNOWN)), "") == "PLACE"


def _starts(tokens: Sequence[Token], i: int) -> bool:
    """Whether an instruction begins here: with a verb, or with a direction and how far."""
    kinds = [token.kind for token in tokens[i : i + 4]]
    if kinds[0] in _STARTS:
        return True
    if kinds[0] in DIRECTIONS:
        return kinds[1:2] == ["NUMBER"] or kinds[1:2] == ["END"] or kinds[1:3] == ["TO", "PLACE"]
    if kinds[0] == "NUMBER":
        rest = [kind for kind in kinds[1:] if kind not in ("UNIT", "TO", "MORE")]
        return bool(rest) and rest[0] in DIRECTIONS
    return False


def _counted(tokens: Sequence[Token]) -> list[Token]:
    """Leave out all but the last of numbers that are counted up: "one, two, three squares"."""
    kept: list[Token] = []
    waiting: list[Token] = []  # what stood between the last number and here
    pauses = (BREAK, STOP, QUESTION)
    tokens = _without_runs(_without_steps(_without_last_and(tokens)))
    for i, token in enumerate(tokens):
        if token.kind == "NUMBER":
            last = kept[-1] if kept else None
            counts_on = last is not None and last.kind == "NUMBER"
            step = int(token.value) - int(last.value) if last is not None and counts_on else 0
            alone = len(kept) > 1 and kept[-2].kind in pauses
            alone &= all(t.kind in (*pauses, "SAY", "BUY", "NUMBER") for t in tokens[i + 2 : i + 3])
            if counts_on and not waiting and step:  # "two three squares": two or three
                kept[-1] = Token("VAGUE", "", kept[-1].start, kept[-1].end)
            elif counts_on and (
                step in (0, 1) if "UNIT" not in {t.kind for t in waiting} else step == 1 and alone
            ):
                kept.pop()
            else:
                kept += waiting
            waiting = []
            kept.append(token)
        elif kept and kept[-1].kind == "NUMBER" and token.kind in (BREAK, STOP, "SAY", "UNIT"):
            waiting.append(token)
        else:
            kept += [*waiting, token]
            waiting = []
    return kept + waiting


def _without_last_and(tokens: Sequence[Token]) -> list[Token]:
    """Leave out the "and" before the last of numbers counted up: "one, two, three and four"."""
    kept: list[Token] = []
    for i, token in enumerate(tokens):
        if token.kind == "AND" and tokens[i + 1 : i + 2] and tokens[i + 1].kind == "NUMBER":
            counted = [one for one in kept if one.kind not in (BREAK, STOP, "SAY")][-2:]
            rises = [one.value for one in (*counted, tokens[i + 1]) if one.kind == "NUMBER"]
            if len(rises) == 3 and rises == list(range(int(rises[0]), int(rises[0]) + 3)):
                continue
        kept.append(token)
    return kept


def _without_steps(tokens: Sequence[Token]) -> list[Token]:
    """Leave out all but the last of squares counted up: "one square, two squares, three squares"."""
    kept: list[Token] = []
    run = 0  # how many were counted
    for token in tokens:
        kept.append(token)
        if token.kind != "UNIT":
            continue
        pairs = [(one.kind, one.value) for one in kept[-4:]]
        last, value = pairs[0][1], pairs[-2][1] if len(pairs) > 1 else ""
        rises = isinstance(last, int) and pairs == [
            ("NUMBER", last),
            ("UNIT", ""),
            ("NUMBER", last + 1),
            ("UNIT", ""),
        ]
        run = run + 1 if rises else int(value == 1)
        if run > 2:
            del kept[-6 if run == 3 else -4 : -2]
    return kept


def _without_runs(tokens: Sequence[Token]) -> list[Token]:
    """Leave out all but the last of numbers counted up without a pause, but for "one two squares"."""
    kept: list[Token] = []
    run = 0  # how far has been counted
    for i, token in enumerate(tokens):
        counts = token.kind == "NUMBER" and token.value == run + 1 and (run == 0 or kept[-1].kind == "NUMBER")
        run = run + 1 if counts else int(token.kind == "NUMBER" and token.value == 1)
        kept.append(token)
        if run >= 3 or (
            run == 2 and all(later.kind not in ("UNIT", "NUMBER") for later in tokens[i + 1 : i + 2])
        ):
            del kept[-(run if run == 3 else 2) : -1]
    return kept


def _unstuttered(tokens: Sequence[Token], text: str) -> list[Token]:
    """Leave out a word that is begun again at once: "down, down seven squares", "turn, turn round"."""
    kept: list[Token] = []
    n, opens = len(tokens), True  # whether nothing but verbs of going stands before it in its clause
    for i, token in enumerate(tokens):
        if token.kind in (BREAK, STOP, QUESTION, "THEN"):
            opens = True
        if _broke_off(tokens, i, text):
            continue
        is_begun = token.kind in _STUTTERED or token.kind == "NUMBER"
        if opens and is_begun and i + 2 < n and tokens[i + 1].kind == BREAK:
            later = i + 2
            while later + 1 < n and tokens[later].kind in ("SAY", BREAK):
                later += 1
            longer = tokens[later].end - tokens[later].start > token.end - token.start
            again = text.startswith(text[token.start : token.end], tokens[later].start)
            if again and (longer or token.kind != "NUMBER"):
                continue
        opens = opens and token.kind in ("GO", "TO", "MORE", "SAY", "POLITE", "THEN", BREAK, STOP, QUESTION)
        kept.append(token)
    return kept


def _broke_off(tokens: Sequence[Token], i: int, text: str) -> bool:
    """Whether a word breaks off and is said in full at once: "the vege... the vegetables", 雞…雞蛋."""
    token = tokens[i]
    if token.kind not in (UNKNOWN, "PLACE", "LEFT"):
        return False
    begun = text[token.start : token.end]
    later = next((t for t in tokens[i + 1 : i + 5] if t.kind not in (BREAK, "SAY", "IT", "SOME")), None)
    if later is None or not text.startswith(begun, later.start) or later.start - token.end > 12:
        return False
    return later.end - later.start > token.end - token.start and later.kind != UNKNOWN


def _clauses(tokens: Sequence[Token]) -> list[Clause]:
    """Cut a text into clauses, and say which of them are no instructions."""
    found: list[Clause] = []
    sentence: list[Clause] = []
    current = Clause([])

    def close(repairs: str = "") -> None:
        nonlocal current
        if current.tokens:
            sentence.append(current)
            current = Clause([], repairs)
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
            current.after_pause = bool(current.repairs)
        elif token.kind in (BREAK, "THEN"):
            close()
            current.after_pause = bool(current.repairs)
            current.is_next |= token.kind == "THEN"
        elif token.kind in ("REPAIR", "HOLD"):
            close("hard" if token.kind == "REPAIR" else "soft")
        else:
            current.tokens.append(token)
    finish(False)
    if found and current.repairs == "hard":
        found[-1].ends_repair = True
    return found


def _judge(sentence: list[Clause], asked: bool) -> None:
    """Mark the clauses of a sentence that are no instructions."""
    rest = ""
    quoted = _quoted(sentence)
    for i, clause in enumerate(sentence):
        kinds = clause.kinds
        later = sentence[i + 1].kinds if i + 1 < len(sentence) else frozenset()
        clause.is_asked = "TAG" in kinds or later in ({"TAG"}, {"TAG", "SAY"})
        clause.goes_on = i + 1 < len(sentence)
        is_last = i == len(sentence) - 1
        if rest == "unreal" and clause.tokens and clause.tokens[0].kind == "FRESH":
            rest = ""  # "my mother used to cook … right, down three"
        if "IF" in kinds:
            rest = "if"
        elif "ONCE" in kinds:
            rest = rest or "unreal"
        if rest:
            clause.dead = rest
            rest = "unreal" if rest == "unreal" else "after if"
        elif "ASK" in kinds:
            clause.dead = "asked" if asked else "perhaps asked"
        elif asked and is_last and not any(_requests(one) for one in sentence):
            clause.dead = "perhaps asked"
        elif "NOT" in kinds or "LATER" in kinds:
            clause.dead = "not"
        elif (
            i in quoted
            or "UNREAL" in kinds
            or ("BE" in kinds and not _says_until(clause.tokens) and not _is_needed(clause.tokens))
        ):
            clause.dead = "unreal"
    if asked and sentence and sentence[-1].dead in ("asked", "perhaps asked"):  # "drinks, is it?"
        for clause in sentence:
            if not clause.dead and {token.kind for token in clause.acting} <= {"PLACE", "SOME", "AND"}:
                clause.dead = "asked"


def _quoted(sentence: Sequence[Clause]) -> set[int]:
    """The clauses of a sentence that are somebody else's words: "turn left, turn right, he'd shout"."""
    says = [i for i, clause in enumerate(sentence) if "QUOTED" in clause.kinds]
    if not says:
        return set()
    after = says[-1] + 1
    return {*range(after), *(after for clause in sentence[after : after + 1] if not clause.is_next)}


def _is_needed(tokens: Sequence[Token]) -> bool:
    """Whether "is" belongs to a need: "soy sauce is next on my list", "butter is what I want"."""
    kinds = [token.kind for token in tokens if token.kind not in ("SAY", "FRESH")]
    return "PLACE" in kinds and any(set(kinds[i : i + 2]) == {"BE", "NEED"} for i in range(len(kinds)))


def _requests(clause: Clause) -> bool:
    """Whether a clause asks for something in the form of a question."""
    return not clause.dead and not clause.kinds.isdisjoint(("POLITE", "TAG", "NEED"))


def _says_until(tokens: Sequence[Token]) -> bool:
    """Whether "is" only belongs to where one stops: "until the eggs are on my right"."""
    kinds = [token.kind for token in tokens]
    return "HALT" in kinds or not _WAYS_ON.isdisjoint(kinds[: kinds.index("BE")])


_WAYS_ON = frozenset({"TO", "PAST", "AHEAD", "ALONG", "ONLEFT", "ONRIGHT", "BETWEEN", *DIRECTIONS})


def without_objects(tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """Leave out verbs whose object is no place, and say whether such an object is unknown.

    "Let me get my glasses" takes nothing here; "go to the …" leads somewhere nobody knows. Unknown words
    before a place only describe it: "a pint of milk", "a nice brown loaf".
    """
    kept: list[Token] = []
    is_unknown = False
    for i, token in enumerate(tokens):
        if token.kind in _TAKES_OBJECT or (token.kind == "AND" and _counts(tokens[i + 1 : i + 2])):
            after = _object(tokens[i + 1 :])
            if after == "own" and token.kind in ("BUY", "NEED", "DONE_BUY", "GO"):
                continue
            if after == "unknown":
                is_unknown = True
                if token.kind in ("BUY", "NEED", "DONE_BUY"):
                    continue
        kept.append(token)
    return kept, is_unknown


def _counts(tokens: Sequence[Token]) -> bool:
    return any(token.kind in ("SOME", "NUMBER") for token in tokens)


def _without_purposes(tokens: list[Token]) -> list[Token]:
    """Leave out what goods are for: "onions for the soup"; on the way, "for" gets them: "up for the eggs"."""
    if all(token.kind not in ("FOR", "USED") for token in tokens):
        return tokens
    kept: list[Token] = []
    skips = False  # whether the next place is what something is for
    verb = ""  # the last word of going or getting
    for i, token in enumerate(tokens):
        if token.kind == "FOR" and any(one.kind == "PLACE" for one in tokens[i:]):
            if verb in _GOING:
                kept.append(token._replace(kind="BUY"))
                continue
            skips = any(one.kind == "PLACE" for one in kept)
        elif token.kind == "USED" and kept and kept[-1].kind == "PLACE":
            kept.pop()
        elif token.kind == "PLACE" and skips:
            skips = False
            continue
        elif token.kind in _GOING or token.kind in ("BUY", "NEED", "DONE_BUY", "PAY"):
            verb, skips = token.kind, False
        elif token.kind in ("AND", "SOME") and skips and kept[-1].kind == "AND":
            skips = False  # "onions for the soup and a loaf"
        kept.append(token)
    return kept


def _object(tokens: Sequence[Token]) -> str:
    """What follows a verb: ``own`` for something that is no goods, ``unknown``, or empty."""
    is_mine = is_odd = False
    for token in tokens:
        if token.kind == "OWN":
            return "own"
        if token.kind == "MY":
            is_mine = True
        elif token.kind == UNKNOWN:
            is_odd = True
        elif token.kind == "PLACE":
            return ""
        elif token.kind not in _BETWEEN:
            break
    return "" if not is_odd else "own" if is_mine else "unknown"


def without_openers(clause: Clause, vocabulary: Vocabulary, measured: bool = False) -> list[Token]:
    """Leave out a direction that only opens the sentence, as in "Right, I go up", unless it is measured."""
    acting, openers = clause.acting, vocabulary.language.openers
    if not openers or not acting or acting[0] is not clause.tokens[0] or clause.is_next:
        return acting
    if acting[0].end - acting[0].start != len(acting[0].kind):  # "to the right" is no opener
        return acting
    alone = len(clause.tokens) == 1
    if alone and measured:
        return acting
    measured = not alone and clause.tokens[1].kind in ("NUMBER", "UNIT", "TO", "END", "MORE", "AND", "VAGUE")
    other = any(token.kind in ("UP", "DOWN", "LEFT", "RIGHT", "TURN", "AHEAD") for token in acting[1:])
    if acting[0].kind.lower() in openers and (alone or (other and not measured)):
        return acting[1:]
    return acting
