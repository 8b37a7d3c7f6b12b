"""A second opinion on what a segment says, by its words alone and without any grammar.

The grammar reads what it has a rule for, and cannot tell that it has none. So every segment is looked at once
more, with two sets of questions that logistic regressions answer:

- of the segment, which *kinds* of instruction it gives: a move up, a turn to the left, something to get,
  nothing at all, something that its words do not settle;
- of every word about the way, what *use* is made of it: is this place gone to or bought at, is this direction
  taken, is this a number of squares? The words and classes of words around it tell; places are masked.

A reading is the less probable to be right the more it differs from that, and where a reading close to it
agrees better, that is taken (:mod:`fidm.grounding.rules.confidence`).

The regressions were learned from phrasings (``scripts/confidence.py``) and stand in ``opinion.npz``. Classes
of words are shared by all languages, so a language without phrasings of its own has a second opinion, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.grounding.route.program import EXIT, FINISH, Instruction, Program
from fidm.grounding.rules.language import BREAK, QUESTION, STOP, Token

KINDS = (
    "NONE", "UNCLEAR", "place", "two places", "three places", "BUY", "PAY", "LEAVE", "BACK", "ALONG",
    "MOVE up", "MOVE down", "MOVE left", "MOVE right", "MOVE ahead",
    "TURN left", "TURN right",
)  # fmt: skip
"""What is asked of a segment."""

_KIND = {kind: i for i, kind in enumerate(KINDS)}

USES = ("used", "bought", "taken", "counted", "other")
"""What is asked of a word: of a place, whether anything is done there, and whether something is bought; of a
direction, whether it is taken; of a number, whether it counts squares; of other words about the way, whether
they are followed."""

MASK = "§"
BETWEEN = "\0"
LEAST = 1e-3
"""Nothing is held to be less probable, nor its contrary."""

_WAY = {"UP": "up", "DOWN": "down", "LEFT": "left", "RIGHT": "right", "ONLEFT": "left", "ONRIGHT": "right"}
_ENDS = (BREAK, STOP, QUESTION)


def kinds(program: Program) -> frozenset[str]:
    """Return the kinds of instruction a program gives; to turn round and go on is to go back."""
    before = ("", *(step.way for step in program))
    steps = [
        step for step, way in zip(program, before, strict=False) if (way, step.way) != ("around", "ahead")
    ]
    said = {"BACK" if step.way == "around" else f"{step.op} {step.way}".strip() for step in steps}
    found = said & _KIND.keys()
    places = sum(bool(step.place) for step in program if step.op in ("MOVE", "GOTO", "BUY"))
    return frozenset({*found, *("place", "two places", "three places")[: min(places, 3)]})


def uses(kind: str, value: str | int, program: Program) -> Iterator[tuple[str, bool]]:
    """Yield what is asked of a word, and the answer if this is what the segment means."""
    if kind == "PLACE":
        at = [step for step in program if step.place in str(value).split("|")]
        yield "used", bool(at)
        yield "bought", any(step.op == "BUY" for step in at)
    elif kind in _WAY:
        yield "taken", any(step.op in ("MOVE", "TURN") and step.way == _WAY[kind] for step in program)
    elif kind == "NUMBER":
        yield "counted", any(step.squares == value for step in program)
    elif kind in _FOLLOWED:
        yield "other", any(_follows(kind, step) for step in program)


_FOLLOWED = ("END", "PAY", "LEAVE", "BACK", "AROUND", "ALONG", "AHEAD")


def _follows(kind: str, step: Instruction) -> bool:
    match kind:
        case "END":
            return step.to_end or step.op == "ALONG"
        case "PAY":
            return step.op == "PAY" or step.place == FINISH
        case "LEAVE":
            return step.op == "LEAVE" or step.place == EXIT
        case "BACK" | "AROUND":
            return step.op == "BACK" or step.way == "around"
        case "ALONG":
            return step.op == "ALONG"
    return step.op in ("MOVE", "BACK")  # AHEAD


# ---------------------------------------------------------------- what is looked at


@dataclass(frozen=True, slots=True)
class Looked:
    """What a segment looks like: names of what it has, for the regressions to weigh."""

    runs: tuple[str, ...]  # words and classes of words that follow each other
    whole: tuple[str, ...]  # what the segment has anywhere
    words: tuple[tuple[str, str | int, tuple[str, ...]], ...]  # about the way: class, value, what is around


def look(tokens: Sequence[Token], text: str) -> Looked:
    """Look at the words of a segment."""
    groups: list[list[Token]] = []
    for token in tokens:  # an expression may stand for several classes
        if groups and groups[-1][0].start == token.start:
            groups[-1].append(token)
        else:
            groups.append([token])
    classes = ["+".join(token.kind for token in group) for group in groups]
    words = [_masked(group, text) for group in groups]
    runs = dict.fromkeys([*_runs("", words, 3), *_runs("/", classes, 4)])
    around = _Around(classes, words)
    found = []
    for i, group in enumerate(groups):
        for token in group:
            if token.kind in _ASKED:
                found.append((token.kind, token.value, tuple(around.of(i, token.kind))))
    return Looked(tuple(runs), tuple(around.whole), tuple(found))


_ASKED = frozenset({"PLACE", "NUMBER", *_WAY, *_FOLLOWED})
"""Words about the way, whose use is asked for."""


def _masked(group: Sequence[Token], text: str) -> str:
    if any(token.kind == "PLACE" for token in group):
        return MASK
    return text[group[0].start : group[0].end]


def _runs(mark: str, words: Sequence[str], longest: int) -> Iterator[str]:
    bounded = ["^"]
    for word in words:  # unknown Chinese words have no ends
        bounded.extend(word if word > "\u2e80" and word != MASK else [word])
    bounded.append("$")
    runs = [mark + word for word in bounded]
    yield from runs
    for length in range(1, longest):
        runs = [f"{run} {word}" for run, word in zip(runs, bounded[length:], strict=False)]
        yield from runs


class _Around:
    """What is around each word of a segment."""

    REACH = 5

    def __init__(self, classes: Sequence[str], words: Sequence[str]) -> None:
        pad = self.REACH
        self.classes = [*["^"] * pad, *classes, *["$"] * pad]
        self.words = [*["^"] * pad, *words, *["$"] * pad]
        self.whole = [f"any {name}" for name in dict.fromkeys(classes)]
        self.whole += [f"has {word}" for word in dict.fromkeys(words)]
        self.kinds = classes

    def of(self, i: int, kind: str) -> list[str]:
        """Return the names of what is around word i, which is taken as one of a class."""
        c, w, at = self.classes, self.words, i + self.REACH
        found = [f"= {kind}"]
        for k in (-3, -2, -1, 1, 2, 3):
            found += (f"{kind} {k} {c[at + k]}", f"{k} {w[at + k]}")
        for a, b in ((-3, -2), (-2, -1), (-1, 1), (1, 2), (2, 3)):
            found += (f"{a} {c[at + a]} {c[at + b]}", f"{a} {w[at + a]} {w[at + b]}")
        found += (f"< {c[at - 3]} {c[at - 2]} {c[at - 1]}", f"> {c[at + 1]} {c[at + 2]} {c[at + 3]}")
        for side, start in (("<", at - self.REACH), (">", at + 1)):
            found += [f"{side} {name}" for name in dict.fromkeys(c[start : start + self.REACH])]
            found += [f"{side}{word}" for word in dict.fromkeys(w[start : start + self.REACH])]
        first, last = at, at
        while c[first - 1] not in _ENDS and c[first - 1] != "^":
            first -= 1
        while c[last + 1] not in _ENDS and c[last + 1] != "$":
            last += 1
        found += (f"ends {c[last + 1]}", f"begins {c[first]}", f"begins {w[first]}")
        found += [f"in {name}" for name in dict.fromkeys(c[first : last + 1])]
        found += [f"in.{word}" for word in dict.fromkeys(w[first : last + 1])]
        if any(kind in name for name in self.kinds[i + 1 :]):
            found.append(f"later {kind}")
        if any(kind in name for name in self.kinds[:i]):
            found.append(f"earlier {kind}")
        found.append(f"at {4 * i // len(self.kinds)}")
        return found


# ---------------------------------------------------------------- what was learned


@dataclass(frozen=True, slots=True)
class Regressions:
    """Logistic regressions over named facts: a row for each name, a column for each question."""

    row: Mapping[str, int]
    weights: NDArray[np.float64]  # (names, questions)
    bias: NDArray[np.float64]  # (questions,)

    def known(self, names: Iterable[str]) -> list[int]:
        """Return the rows of those names that were learned from."""
        return [row for row in map(self.row.get, names) if row is not None]

    def probable(self, whole: Sequence[int], parts: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return how probable "yes" is to each question: a row for each part of a whole, given known rows."""
        asked = (whole, *parts)
        weights = self.weights.take([row for part in asked for row in part], axis=0)
        ends = accumulate(map(len, asked), initial=0)
        own = np.array([np.add.reduce(weights[first:end]) for first, end in pairwise(ends)])
        known = [[max(1, len(whole) + len(part))] for part in parts]
        odds = self.bias + (own[0] + own[1:]) / np.sqrt(known)
        found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-odds))
        return np.minimum(np.maximum(found, LEAST), 1.0 - LEAST)


@dataclass(frozen=True, slots=True)
class Second:
    """What was learned of kinds and uses."""

    kinds: Regressions
    uses: Regressions

    def on(self, looked: Looked) -> Opinion:
        """Return the second opinion on a segment."""
        answers: dict[tuple[str, str | int], dict[str, float]] = {}
        around = [self.uses.known(names) for _, _, names in looked.words]
        asked = self.uses.probable(self.uses.known(looked.whole), around).tolist() if around else []
        for (kind, value, _), probable in zip(looked.words, asked, strict=True):
            found = answers.setdefault((kind, value), {})
            for use, _ in uses(kind, value, ()):  # said twice, it may be used once
                found[use] = max(found.get(use, 0.0), probable[USES.index(use)])
        runs = self.kinds.known(looked.runs)
        return Opinion(self.kinds.probable(runs, [()])[0], answers, len(runs) / len(looked.runs))

    def save(self, path: Path) -> None:
        """Write it to a file."""
        arrays: dict[str, Any] = {}
        for name, part in (("kinds", self.kinds), ("uses", self.uses)):
            arrays[f"{name}_names"] = np.frombuffer(BETWEEN.join(part.row).encode(), dtype=np.uint8)
            arrays[f"{name}_weights"] = part.weights.astype(np.float16)
            arrays[f"{name}_bias"] = part.bias.astype(np.float32)
        np.savez_compressed(path, **arrays)


@cache
def learned() -> Second:
    """Return what was learned from all phrasings."""
    with (
        resources.as_file(resources.files("fidm.grounding.rules") / "opinion.npz") as path,
        np.load(path) as file,
    ):
        parts = []
        for name in ("kinds", "uses"):
            names = file[f"{name}_names"].tobytes().decode().split(BETWEEN)
            weights = file[f"{name}_weights"].astype(np.float64)
            bias = file[f"{name}_bias"].astype(np.float64)
            parts.append(Regressions({run: i for i, run in enumerate(names)}, weights, bias))
    return Second(*parts)


@dataclass(frozen=True, slots=True)
class Opinion:
    """How probable each kind is in a segment, and each use of its words."""

    kinds: NDArray[np.float64]
    uses: Mapping[tuple[str, str | int], Mapping[str, float]]  # of each class and value
    familiar: float  # the share of the runs of words that were ever learned from

    def of(self, program: Program) -> dict[str, float]:
        """Return how well a reading agrees with it."""
        given, asked = kinds(program), self.kinds.tolist()
        held = np.array([p if kind in given else 1.0 - p for kind, p in zip(KINDS, asked, strict=True)])
        logs = np.log(held)
        found = {
            "kinds": float(logs.sum()),
            "kinds, least": float(logs.min()),
            "kinds, of what is read": min((asked[_KIND[kind]] for kind in given), default=1.0),
            "kinds, of what is not": max(
                p for kind, p in zip(KINDS, asked, strict=True) if kind not in given
            ),
            "kinds, nothing": asked[_KIND["NONE"]],
            "kinds, unclear": asked[_KIND["UNCLEAR"]],
            "kinds, differ": float(np.count_nonzero(held < 0.5)),
            "uses": 0.0,
            "uses, differ": 0.0,
            "uses, of what is read": 0.0,
            "uses, of what is not": 0.0,
            "words about the way": float(len(self.uses)),
            "familiar": self.familiar,
        }
        for (kind, value), probable in self.uses.items():
            for use, is_so in uses(kind, value, program):
                log = math.log(probable[use] if is_so else 1.0 - probable[use])
                found["uses"] += log
                found["uses, differ"] += log < _EVEN
                for name in ("uses, of what is read" if is_so else "uses, of what is not", f"uses, {use}"):
                    found[name] = min(found.get(name, 0.0), log)
        return found


_EVEN = math.log(0.5)
