"""What a language model may answer: a JSON schema made from the task, and its answers read back as programs.

One table, :data:`VARIANTS`, says which fields each instruction has. The schema that a server enforces and
the check of what comes back are both made from it, so they cannot differ. Whatever a model answers becomes
either a valid program or an :class:`InvalidAnswerError`; a program is then walked by
:mod:`fidm.grounding.route.replay`, which makes legal moves only.

There are two styles. ``route`` asks for a route program, with the words each instruction comes from, which
are then found in what was said. ``moves`` asks for single moves (N, S, E, W, BUY …), as in the paper.

Small models fill an answer up: they take the same thing twice, add steps that nobody mentioned, or go round
in circles. So what a route says is held against the words it quotes (:func:`supported`), and an answer that
goes round in circles is no reading at all.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from fidm.errors import GroundingError
from fidm.grounding.route.program import (
    EXIT,
    FINISH,
    MAX_INSTRUCTIONS,
    MAX_SQUARES,
    MOVE_WAYS,
    TURN_WAYS,
    Instruction,
    Op,
    Program,
    tidy,
)
from fidm.grounding.route.replay import HEADING_NAMES, Terrain
from fidm.tasks.grid import MOVES

EXACT, CLOSE, NOWHERE = 1.0, 0.95, 0.5
"""The probability of an instruction whose words were said so, nearly so, or not at all."""


def locate(words: object, said: str, after: int = 0) -> tuple[tuple[int, int], float]:
    """Find words in what was said: the stretch of the text, and how sure one can be of it.

    Looked for as they stand, then without regard to case, spaces and punctuation; each time first behind
    ``after`` and then from the beginning. Words that are nowhere are put down to the whole text.

    Examples
    --------
    >>> locate("turn LEFT", "go up, turn left")
    ((7, 16), 0.95)
    """
    whole = (0, len(said))
    if not isinstance(words, str) or not words.strip():
        return whole, NOWHERE
    words = words.strip()
    for start in (after, 0):
        found = said.find(words, start)
        if found >= 0:
            return (found, found + len(words)), EXACT
    plain, places = _plain(said)
    wanted = _plain(words)[0]
    if wanted:
        behind = next((i for i, place in enumerate(places) if place >= after), len(plain))
        for start in (behind, 0):
            found = plain.find(wanted, start)
            if found >= 0:
                return (places[found], places[found + len(wanted) - 1] + 1), CLOSE
    return whole, NOWHERE


def _plain(text: str) -> tuple[str, list[int]]:
    """A text without case, spaces and punctuation, and where each of its characters stood."""
    kept, places = [], []
    for place, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).casefold():
            if unicodedata.category(part)[0] in "LMN":
                kept.append(part)
                places.append(place)
    return "".join(kept), places


Style = Literal["route", "moves"]

VARIANTS: tuple[tuple[Op, tuple[str, ...]], ...] = (
    ("MOVE", ("way", "squares")),
    ("MOVE", ("way", "end")),
    ("MOVE", ("way", "place")),
    ("MOVE", ("way",)),
    ("TURN", ("way",)),
    ("GOTO", ("place",)),
    ("BUY", ("place",)),
    ("ALONG", ("place",)),
    ("ALONG", ()),
    ("BACK", ("squares",)),
    ("BACK", ("place",)),
    ("BACK", ()),
    ("PAY", ()),
    ("LEAVE", ()),
)
"""Every form an instruction can have: its name, and the fields it then has besides ``words``."""

MOST_INSTRUCTIONS, MOST_MOVES = 8, 60
"""How many instructions, or moves, fit into an answer. Of 2,380 phrasings composed for tests none means more
than 7 instructions, and 7 of them mean more than 5; room for more is room for a loop."""

LOOP, LONGEST_GAP = 3, 100
"""An instruction that quotes the same words so many times, or so many blanks in a row, are a loop."""

MAX_ANSWER_CHARACTERS = 100_000
MAX_WORDS = 80
MAX_MOVES = 120
TOKENS_PER_INSTRUCTION, TOKENS_PER_MOVE, TOKENS_AROUND = 48, 8, 48
MOST_SQUARES = 99

_WAYS: dict[str, tuple[str, ...]] = {"MOVE": MOVE_WAYS, "TURN": TURN_WAYS}


class InvalidAnswerError(GroundingError):
    """A model's answer is not in the form it was asked for.

    ``code`` says why: ``not_json``, ``wrong_form``, ``too_long``, ``loop`` or ``unknown_place``.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"The model's answer cannot be used: {code}.")


@dataclass(frozen=True, slots=True)
class Answer:
    """A valid answer."""

    program: Program  # what it says about the way
    # What was left out of it: ``unquoted`` where nobody said the words, ``requoted`` where they were used up.
    doubts: tuple[str, ...] = ()
    is_full: bool = False  # whether it has as many instructions as fit, so that some may be missing


def supported(steps: Sequence[tuple[Instruction, bool]]) -> tuple[list[Instruction], tuple[str, ...]]:
    """Keep the instructions that words stand behind, and say what was left out.

    What has no effect the second time (taking, going to a place, paying, leaving) counts once where it is
    directly repeated. An instruction whose words nobody said is left out (``unquoted``). So is one whose
    words lie within those of an instruction before it (``requoted``), unless it follows from the last one
    kept: taking what one has just gone to, paying at the till, going out after that, going on after a turn.

    Parameters
    ----------
    steps : sequence of (Instruction, bool)
        The instructions of an answer, and whether the words of each were said.

    Raises
    ------
    InvalidAnswerError
        If the same instruction quotes the same words three times.
    """
    listed = [one for i, one in enumerate(steps) if not (i and _is_idle(one[0], steps[i - 1][0]))]
    if any(n >= LOOP for n in Counter((str(step), step.span) for step, _ in listed).values()):
        raise InvalidAnswerError("loop")
    kept: list[Instruction] = []
    doubts: list[str] = []
    for step, is_quoted in listed:
        low, high = step.span
        users = [one for one in kept if one.span[0] <= low and high <= one.span[1]]
        if not is_quoted:
            doubts.append("unquoted")
        elif users and not (users[-1] is kept[-1] and _follows(step, kept[-1])):
            doubts.append("requoted")
        else:
            kept.append(step)
    return kept, tuple(dict.fromkeys(doubts))


def _is_idle(step: Instruction, before: Instruction) -> bool:
    """Whether an instruction does nothing because the one directly before it says the same."""
    return step.op in ("BUY", "GOTO", "PAY", "LEAVE") and str(step) == str(before)


def _follows(step: Instruction, before: Instruction) -> bool:
    """Whether the words of an instruction may well mean this one too: "get the meat", "turn left and go"."""
    if step.op == "BUY":
        return before.place == step.place
    if step.op == "PAY":
        return before.place == FINISH
    if step.op == "LEAVE":
        return before.op == "PAY" or before.place == EXIT
    return before.op == "TURN" and (step.op == "ALONG" or step.way == "ahead")


@dataclass(frozen=True, slots=True, eq=False)
class AnswerForm:
    """The form in which a model answers about one task."""

    style: Style  # a route program, or single moves
    schema: dict[str, Any]  # the JSON schema
    most: int  # how many instructions or moves fit into an answer
    # Each place by its name, and by its folded names where these mean one place only.
    places: Mapping[str, str] = field(repr=False)
    sections: frozenset[str] = field(repr=False)  # the places where something can be bought
    # What each name of a move means, for the style ``moves``.
    moves: Mapping[str, Instruction] = field(repr=False)

    @classmethod
    def of(cls, terrain: Terrain, style: Style = "route", *, most: int | None = None) -> AnswerForm:
        """Make the form of a task's answers."""
        limit = MAX_INSTRUCTIONS if style == "route" else MAX_MOVES
        most = (MOST_INSTRUCTIONS if style == "route" else MOST_MOVES) if most is None else most
        if not 1 <= most <= limit:
            raise GroundingError(f"An answer has room for 1 to {limit} instructions, not {most}.")
        spec = terrain.spec
        labels = [_fold(section.label or name) for name, section in spec.sections.items()]
        named = {
            label: name for label, name in zip(labels, spec.sections, strict=True) if labels.count(label) == 1
        }
        places = named | {_fold(place): place for place in terrain.reach} | {p: p for p in terrain.reach}
        moves = _moves(terrain)
        listed = {"type": "array", "maxItems": most, "items": {"enum": list(moves)}}
        schema = _route_schema(terrain, most) if style == "route" else closed({"moves": listed})
        return cls(style, schema, most, places, frozenset(terrain.places), moves)

    @property
    def digest(self) -> str:
        """The SHA-256 of the schema as compact JSON."""
        return hashlib.sha256(json.dumps(self.schema, separators=(",", ":")).encode()).hexdigest()

    @property
    def outline(self) -> str:
        """The schema in a short form for the prompt, since not every server enforces the long one."""
        if self.style == "moves":
            return f'{{"moves":[at most {self.most} of: {", ".join(map(json.dumps, self.moves))}]}}'
        lines = [f'{{"instructions":[at most {self.most} of the following]}}']
        for op, keys in self._variants():
            shown = {
                "way": f'"way":"{"|".join(_WAYS.get(op, ()))}"',
                "squares": f'"squares":1..{MOST_SQUARES}',
                "end": '"end":true',
                "place": f'"place":"{"section" if op == "BUY" else "place"}"',
            }
            lines.append(",".join(['{"words":"…"', f'"op":"{op}"', *(shown[key] for key in keys)]) + "}")
        return "\n".join(lines)

    def _variants(self) -> list[tuple[Op, tuple[str, ...]]]:
        return _known_variants(self.places.values())

    @property
    def max_tokens(self) -> int:
        """How many tokens the longest answer may take."""
        return TOKENS_AROUND + self.most * (
            TOKENS_PER_INSTRUCTION if self.style == "route" else TOKENS_PER_MOVE
        )

    def read(self, text: str, said: str) -> Answer:
        """Read a model's answer.

        Parameters
        ----------
        text : str
            What the model wrote.
        said : str
            The segment's text, in which the words of each instruction are looked for.

        Raises
        ------
        InvalidAnswerError
            If it is not in this form.
        """
        data = _object(text)
        key = "instructions" if self.style == "route" else "moves"
        items = data.get(key)
        if not isinstance(items, list) or set(data) != {key}:
            raise InvalidAnswerError("wrong_form")
        if len(items) > (MAX_INSTRUCTIONS if self.style == "route" else MAX_MOVES):
            raise InvalidAnswerError("too_long")
        full = len(items) >= self.most
        if self.style == "moves":
            return Answer(self._from_moves(items, said), is_full=full)
        steps: list[tuple[Instruction, bool]] = []
        after = 0
        for item in items:
            if not isinstance(item, dict):
                raise InvalidAnswerError("wrong_form")
            span, sure = locate(item.get("words"), said, after)
            after = span[1] if sure > NOWHERE else after
            steps.append((self._step(item, span, sure), sure > NOWHERE))
        kept, doubts = supported(steps)
        return Answer(tidy(kept), doubts, full)

    def _step(self, item: dict[str, Any], span: tuple[int, int], sure: float) -> Instruction:
        given = {key: value for key, value in item.items() if value is not None and key != "words"}
        op = given.pop("op", None)
        if not isinstance(op, str) or given.get("end") is False:
            raise InvalidAnswerError("wrong_form")
        known = next(
            (name for name, keys in self._variants() if name == op.upper() and set(keys) == set(given)), None
        )
        if known is None:
            raise InvalidAnswerError("wrong_form")
        way, squares, place = given.get("way", ""), given.get("squares"), given.get("place", "")
        if "way" in given and (not isinstance(way, str) or way.lower() not in _WAYS[known]):
            raise InvalidAnswerError("wrong_form")
        if isinstance(squares, float) and squares.is_integer():
            squares = int(squares)
        if "squares" in given and (
            not isinstance(squares, int) or isinstance(squares, bool) or not 1 <= squares <= MAX_SQUARES
        ):
            raise InvalidAnswerError("wrong_form")
        if "end" in given and given["end"] is not True:
            raise InvalidAnswerError("wrong_form")
        if "place" in given:
            place = (
                self.places.get(place) or self.places.get(_fold(place)) if isinstance(place, str) else None
            )
            if place is None or (known == "BUY" and place not in self.sections):
                raise InvalidAnswerError("unknown_place")
        return Instruction(known, way.lower(), squares, "end" in given, place, span, sure)

    def _from_moves(self, items: Sequence[Any], said: str) -> Program:
        names = [item.strip() if isinstance(item, str) else "" for item in items]
        if any(name not in self.moves for name in names):
            raise InvalidAnswerError("wrong_form")
        span, steps = (0, len(said)), []
        for name, run in groupby(names):
            step, times = self.moves[name], len(list(run))
            if step.op == "MOVE":
                steps.append(Instruction("MOVE", step.way, min(times, MAX_SQUARES), span=span))
            else:
                steps += [Instruction(step.op, place=step.place, span=span)] * times
        if len(steps) > MAX_INSTRUCTIONS:
            raise InvalidAnswerError("too_long")
        return tidy(steps)


def _fold(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").split())


def _object(text: str) -> dict[str, Any]:
    """The one JSON object in a text; thoughts, fences and words around it are left out."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise InvalidAnswerError("too_long")
    text = re.sub(r"(?s)^\s*<think>.*?</think>", "", text).strip()
    if re.search(rf"\s{{{LONGEST_GAP}}}", text):
        raise InvalidAnswerError("loop")
    start = text.find("{")
    if start < 0:
        raise InvalidAnswerError("not_json")
    try:
        found, _ = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise InvalidAnswerError("not_json") from None
    if not isinstance(found, dict):
        raise InvalidAnswerError("not_json")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


def _known_variants(places: Collection[str]) -> list[tuple[Op, tuple[str, ...]]]:
    """The forms of a task's instructions: one without a till cannot be paid in."""
    return [
        (op, keys)
        for op, keys in VARIANTS
        if (op != "PAY" or FINISH in places) and (op != "LEAVE" or EXIT in places)
    ]


def _route_schema(terrain: Terrain, most: int) -> dict[str, Any]:
    variants = []
    for op, keys in _known_variants(terrain.reach):
        fields: dict[str, Any] = {"words": {"$ref": "#/$defs/words"}, "op": {"enum": [op]}}
        known = {
            "way": {"enum": list(_WAYS.get(op, ()))},
            "squares": {"type": "integer", "minimum": 1, "maximum": MOST_SQUARES},
            "end": {"enum": [True]},
            "place": {"$ref": f"#/$defs/{'section' if op == 'BUY' else 'place'}"},
        }
        fields |= {key: known[key] for key in keys}
        variants.append(closed(fields))
    schema = closed({"instructions": {"type": "array", "maxItems": most, "items": {"anyOf": variants}}})
    schema["$defs"] = {
        "words": {"type": "string", "maxLength": MAX_WORDS},
        "place": {"enum": list(terrain.reach)},
        "section": {"enum": list(terrain.places)},
    }
    return schema


def response_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a server is asked to keep to a schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def closed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _moves(terrain: Terrain) -> dict[str, Instruction]:
    """What the name of each move means."""
    spec = terrain.spec
    found = {name: Instruction("MOVE", way) for name, way in zip(MOVES, HEADING_NAMES, strict=True)}  # type: ignore[arg-type]
    found |= {f"{spec.verb} {place}": Instruction("BUY", place=place) for place in terrain.places}
    if spec.finish:
        found[spec.finish.action] = Instruction("PAY")
    if spec.exit:
        found[spec.exit.action] = Instruction("LEAVE")
    return found
