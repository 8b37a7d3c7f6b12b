"""A text becomes clauses, and it is decided which of them are instructions at all.

Questions, negated and hypothetical clauses, and talk to oneself are set aside; what follows "no, …" is marked
as a repair of what came before. Numbers that are counted up and words that are begun twice are put right
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fidm.grounding.language import BREAK, QUESTION, STOP, UNKNOWN, Token, Vocabulary

CORE = frozenset(
    {
        "UP", "DOWN", "LEFT", "RIGHT", "AHEAD", "TURN", "AROUND", "BACK", "END", "BUY", "PAY", "LEAVE",
        "PLACE", "UNIT", "NUMBER",
    }
)  # fmt: skip
"""Words about the way; heard and unused, they are a doubt."""

QUIET = frozenset(
    {
        "SAY", "POLITE", "THEN", "REPAIR", "NOT", "UNREAL", "IF", "LATER", "ASK", "HOLD", "TAG", BREAK, STOP,
        QUESTION, UNKNOWN,
    }
)  # fmt: skip
"""Words the grammar does not read."""

_STUTTERED = CORE - {"NUMBER", "UNIT"} | {"GO", "TO", "MORE", "ALONG"}
_WAYS = frozenset({"UP", "DOWN", "LEFT", "RIGHT", "AHEAD"})
_TAKES_OBJECT = frozenset({"TO", "BUY", "GO", "AND", "ALONG", "TURN", "BACK", "MORE", "NUMBER"})
_BETWEEN = frozenset({"SAY", "IT", "POLITE"})


@dataclass(slots=True)
class Clause:
    """Words between two pauses, and how to take them.

    Parameters
    ----------
    tokens : list of Token
        The words.
    repairs : str
        ``hard`` after "no", ``soft`` after "wait"; empty otherwise.
    dead : str
        Why it is no instruction: ``if``, ``after if``, ``asked``, ``perhaps asked``, ``not`` or ``unreal``.
    ends_repair : bool
        Whether a "no" follows it and then nothing.
    after_pause : bool
        Whether the "no" before it stood alone: "no, silly me, …" and not "in no hurry".
    """

    tokens: list[Token]
    repairs: str = ""
    dead: str = ""
    ends_repair: bool = False
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
