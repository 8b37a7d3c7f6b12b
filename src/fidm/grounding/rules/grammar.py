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
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from fidm.errors import GroundingError
from fidm.grounding.route.program import MAX_SQUARES, Instruction
from fidm.grounding.rules.language import (
    ACTING,
    BREAK,
    DIRECTIONS,
    QUESTION,
    STEERING,
    STOP,
    UNKNOWN,
    Language,
    Token,
    Vocabulary,
)

_LETTER = {kind: chr(ord("A") + i) for i, kind in enumerate(ACTING)}
_GROUPS = {
    "DIR": "[" + "".join(_LETTER[kind] for kind in DIRECTIONS) + "]",
    "SIDE": "[" + _LETTER["LEFT"] + _LETTER["RIGHT"] + "]",
    "N": _LETTER["NUMBER"],
}
_WAY = {"UP": "up", "DOWN": "down", "LEFT": "left", "RIGHT": "right"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule makes of a stretch of words."""

    # ``do`` for an instruction; ``check``, ``straight``, ``and``, ``bought``, ``it`` and ``measure`` for what
    # needs the context; ``doubt`` for what cannot be read.
    what: str
    step: Instruction  # the instruction, or the place in question
    why: str = ""  # the code of a doubt


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

    def read(self, tokens: Sequence[Token]) -> tuple[list[Found], list[Token]]:
        """Read the acting words of one clause; return what was found, and words that fit no rule."""
        letters = "".join(_LETTER[token.kind] for token in tokens)
        found: list[Found] = []
        lost: list[Token] = []
        i = 0
        while i < len(letters):
            match = self._rules.match(letters, i)
            if match is None or match.end() == i:
                lost.append(tokens[i])
                i += 1
                continue
            used = tokens[i : match.end()]
            for words in self._results[(match.lastindex or 1) - 1]:
                made = _make(words, used)
                if made is not None:
                    found.append(made)
            i = match.end()
        return found, lost


def _make(words: list[str], used: Sequence[Token]) -> Found | None:
    """One instruction on the right of a rule, with what the matched words say."""
    span = (used[0].start, used[-1].end)
    op = words[0]
    if op == "skip":
        return None
    if op == "doubt":
        return Found("doubt", Instruction("NONE", span=span), words[1])
    places = [str(token.value) for token in used if token.kind == "PLACE"]
    if op == "check":
        return Found("check", Instruction("GOTO", place=places[-1], span=span)) if places else None
    if op in ("straight", "and", "bought", "paying", "leaving"):
        return Found(op, Instruction("GOTO", place=places[-1] if places else "", span=span))
    if op == "measure":
        made = _make(["MOVE", "ahead", "n"], used)
        return Found("measure", made.step) if made else None
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
        elif word == "it":
            return Found("it", Instruction(op, span=span))  # type: ignore[arg-type]
    return Found("do", Instruction(op, way, squares, to_end, place, span))  # type: ignore[arg-type]


def _expression(left: str, rule: str) -> str:
    """The left side of a rule as a regular expression over letters."""
    parts = re.findall(r"[A-Z_]+|[()|?*+]|\S", left)
    known = {**_LETTER, **_GROUPS, "(": "(?:", **{mark: mark for mark in ")|?*+"}}
    strange = next((part for part in parts if part not in known), None)
    if strange is not None:
        raise GroundingError(f"The grammar rule {rule!r} has {strange!r}, which is no class of words.")
    return "".join(known[part] for part in parts)


@lru_cache(maxsize=16)
def _shared_rules() -> tuple[str, ...]:
    text = (resources.files("fidm.grounding.rules") / "grammar.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["rules"])


def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language: its own rules, then those all languages share."""
    return Grammar((*language.rules, *_shared_rules()))


CORE = frozenset(
    {
        "UP", "DOWN", "LEFT", "RIGHT", "AHEAD", "TURN", "AROUND", "BACK", "END", "BUY", "PAY", "LEAVE",
        "PLACE", "UNIT", "NUMBER",
    }
)  # fmt: skip
"""Words about the way; heard and unused, they are a doubt."""

QUIET = frozenset({*STEERING, BREAK, STOP, QUESTION, UNKNOWN})
"""Words the grammar does not read."""

_STUTTERED = CORE - {"NUMBER", "UNIT"} | {"GO", "TO", "MORE", "ALONG"}
_WAYS = frozenset({"UP", "DOWN", "LEFT", "RIGHT", "AHEAD"})
_TAKES_OBJECT = frozenset({"TO", "BUY", "GO", "AND", "ALONG", "TURN", "BACK", "MORE", "NUMBER"})
_BETWEEN = frozenset({"SAY", "IT", "POLITE"})


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

    @property
    def acting(self) -> list[Token]:
        """The words the grammar reads; "along" beside a direction adds nothing."""
        found = [token for token in self.tokens if token.kind not in QUIET]
        if any(token.kind == "ALONG" for token in found):
            beside = [{t.kind for t in found[max(0, i - 1) : i + 3]} & _WAYS for i in range(len(found))]
            found = [t for t, ways in zip(found, beside, strict=True) if t.kind != "ALONG" or not ways]
        return found


def cut_clauses(tokens: Sequence[Token], text: str) -> list[Clause]:
    """Cut a text into clauses, and say which of them are no instructions."""
    return _clauses(_unstuttered(_counted(tokens), text))


def _counted(tokens: Sequence[Token]) -> list[Token]:
    """Leave out all but the last of numbers that are counted up: "one, two, three squares"."""
    kept: list[Token] = []
    waiting: list[Token] = []  # what stood between the last number and here
    for token in tokens:
        if token.kind == "NUMBER":
            last = kept[-1] if kept else None
            counts_on = last is not None and last.kind == "NUMBER"
            if counts_on and not waiting:  # "two three squares": two or three
                kept[-1] = Token("VAGUE", "", kept[-1].start, kept[-1].end)
            elif last is not None and counts_on and int(token.value) - int(last.value) in (0, 1):
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
    n, opens = len(tokens), True  # whether nothing but verbs of going stands before it in its clause
    for i, token in enumerate(tokens):
        if token.kind in (BREAK, STOP, QUESTION, "THEN"):
            opens = True
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


def has_unknown_object(tokens: Sequence[Token]) -> bool:
    """Whether a verb or preposition of the way is followed by a word nobody knows: "go to the …"."""
    for i, token in enumerate(tokens):
        if token.kind in _TAKES_OBJECT:
            follower = next((later for later in tokens[i + 1 :] if later.kind not in _BETWEEN), None)
            if follower is not None and follower.kind == UNKNOWN:
                return True
    return False


def without_openers(clause: Clause, vocabulary: Vocabulary) -> list[Token]:
    """Leave out a direction that only opens the sentence, as in "Right, I go up"."""
    acting, openers = clause.acting, vocabulary.language.openers
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
