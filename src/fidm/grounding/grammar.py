"""The grammar of route talk: sequences of word classes become instructions.

Rules are data (``languages/grammar.toml`` and each language's own). Every class of words has a letter; a
clause is the string of its letters, and a rule a regular expression over them, so that reading a clause is
one match after the other from left to right.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from fidm.errors import GroundingError
from fidm.grounding.language import ACTING, DIRECTIONS, Language, Token
from fidm.grounding.program import MAX_SQUARES, Instruction

_LETTER = {kind: chr(ord("A") + i) for i, kind in enumerate(ACTING)}
_GROUPS = {
    "DIR": "[" + "".join(_LETTER[kind] for kind in DIRECTIONS) + "]",
    "SIDE": "[" + _LETTER["LEFT"] + _LETTER["RIGHT"] + "]",
    "N": _LETTER["NUMBER"],
}
_WAY = {"UP": "up", "DOWN": "down", "LEFT": "left", "RIGHT": "right"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule makes of a stretch of words.

    Parameters
    ----------
    what : str
        ``do`` for an instruction; ``check``, ``straight``, ``and``, ``bought``, ``it`` and ``measure`` for
        what needs the context; ``doubt`` for what cannot be read.
    step : Instruction
        The instruction, or the place in question.
    why : str
        The code of a doubt.
    """

    what: str
    step: Instruction
    why: str = ""


class Grammar:
    """The rules of a language, compiled.

    Parameters
    ----------
    rules : sequence of str
        ``"GO? DIR N UNIT? => MOVE dir n"`` and the like; the first that fits wins.
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
    made = []
    for part in re.findall(r"[A-Z_]+|[()|?*+]|\S", left):
        if part in _LETTER:
            made.append(_LETTER[part])
        elif part in _GROUPS:
            made.append(_GROUPS[part])
        elif part == "(":
            made.append("(?:")
        elif part in ")|?*+":
            made.append(part)
        else:
            raise GroundingError(f"The grammar rule {rule!r} has {part!r}, which is no class of words.")
    return "".join(made)


@lru_cache(maxsize=16)
def _shared_rules() -> tuple[str, ...]:
    text = (resources.files("fidm.grounding") / "languages" / "grammar.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["rules"])


def grammar_of(language: Language) -> Grammar:
    """Return the grammar of a language: its own rules, then those all languages share."""
    return Grammar((*language.rules, *_shared_rules()))
