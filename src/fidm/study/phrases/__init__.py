"""The wordings of simulated people, one file per language."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from fidm.errors import DataError
from fidm.grounding.program import EXIT, FINISH, Instruction, Program
from fidm.tasks.spec import TaskSpec


def languages() -> tuple[str, ...]:
    """Return the languages simulated people speak."""
    folder = resources.files("fidm.study.phrases")
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


@lru_cache
def _tables(language: str) -> Mapping[str, Any]:
    if language not in languages():
        raise DataError(f"Simulated people do not speak {language!r}. Known: {', '.join(languages())}.")
    text = (resources.files("fidm.study.phrases") / f"{language}.toml").read_text("utf-8")
    return tomllib.loads(text)


def count_characters(text: str) -> int:
    """Return how many code points of a text are neither spaces nor punctuation."""
    return sum(1 for letter in text if not (letter.isspace() or unicodedata.category(letter)[0] == "P"))


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of talk about the way: a wording, and what stands in its gaps.

    Parameters
    ----------
    wording : str
        A wording with named gaps.
    slots : mapping of str to str
        What stands in the gaps.
    place : str
        The place it names; empty for none.
    squares : int
        How many squares it speaks of; 0 for none.
    """

    wording: str
    slots: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    squares: int = 0

    @property
    def text(self) -> str:
        """The words."""
        return self.wording.format_map(self.slots)


class Phrases:
    """The wordings of one language, for one task.

    Parameters
    ----------
    language : str
        ``"yue"`` or ``"en"``.
    spec : TaskSpec
        The task whose places are spoken of.
    """

    def __init__(self, language: str, spec: TaskSpec) -> None:
        self.tables = _tables(language)
        self.language, self.spec = language, spec
        self.comma: str = self.tables["comma"]
        self.space = " " if self.comma.endswith(" ") else ""
        self.letters_per_character: float = self.tables["letters_per_character"]
        self.places = tuple(spec.sections)
        self._words = {place: self._words_of(place) for place in (*self.places, FINISH, EXIT)}

    def said(self, table: str, key: str) -> Sequence[str]:
        """Return the wordings of one kind; none where the language has none."""
        found: Sequence[str] = self.tables[table].get(key, ())
        return found

    def by_verb(self, table: str) -> Sequence[str]:
        """Return the wordings that go with what one does at the places of the task."""
        return self.said(table, self.spec.verb) or self.said(table, "BUY")

    def word(self, place: str, kind: str, rng: np.random.Generator) -> str:
        """Return a word for a place (``"place"``) or what one takes there (``"item"``)."""
        return one_of(self._words[place][kind], rng)

    def clauses(self, program: Program, rng: np.random.Generator, *, terse: bool = False) -> list[Clause]:
        """Put a program into words, a clause for each instruction; a turn goes with the move after it."""
        found: list[Clause] = []
        turn = ""
        for step in program:
            if step.op == "TURN":
                turn = step.way
                continue
            found.append(self._clause(step, turn, rng, terse))
            turn = ""
        return found

    def wrong(self, clause: Clause, rng: np.random.Generator) -> tuple[str, str] | None:
        """Return a slip of the tongue, whole and up to the wrong word; None where none fits."""
        gaps = [gap for gap in clause.slots if f"{{{gap}}}" in clause.wording]
        if not gaps:
            return None
        gap = one_of(gaps, rng)
        if gap == "squares":
            nearby = [n for n in (clause.squares - 1, clause.squares + 1) if n >= 1]
            other = self.squares(nearby[int(rng.random() * len(nearby))], rng)
        elif gap in ("place", "item"):
            others = [place for place in self.places if place != clause.place]
            if not others:
                return None
            other = self.word(one_of(others, rng), gap, rng)
        else:
            known: Mapping[str, str] = self.tables["ways" if gap == "way" else "turns"]
            other = one_of([word for word in known.values() if word != clause.slots[gap]], rng)
        slip = replace(clause, slots={**clause.slots, gap: other})
        heard = replace(slip, wording=slip.wording[: slip.wording.index(f"{{{gap}}}") + len(gap) + 2])
        return slip.text, heard.text

    def squares(self, n: int, rng: np.random.Generator) -> str:
        """Return a number of squares in words."""
        table = self.tables["squares"]
        numbers: list[str] = table["numbers"]
        number = numbers[n - 1] if n <= len(numbers) else str(n)
        return one_of(table["one" if n == 1 else "many"], rng).format(number=number)

    def listed(self, places: Sequence[str], kind: str) -> str:
        """Return several places as a list, by their first words."""
        words = [self._words[place][kind][0] for place in places]
        table = self.tables["list"]
        before: str = table["comma"].join(words[:-1])
        return before + table["last"] + words[-1] if before else words[-1]

    # ------------------------------------------------------------------ one clause

    def _clause(self, step: Instruction, turn: str, rng: np.random.Generator, terse: bool) -> Clause:
        wordings: Sequence[str]
        if step.op in ("MOVE", "BACK"):
            far = "end" if step.to_end else "place" if step.place else "squares" if step.squares else "open"
            kind = "back" if step.op == "BACK" else self._move_kind(step.way, turn)
            moves = self.tables["move"]
            wordings = (
                (*moves[kind][far], *moves.get(step.way, {}).get(far, ()))
                if kind == "map"
                else moves[kind][far]
            )
        else:
            lists = {
                "GOTO": self.said("go", "to"),
                "BUY": self.by_verb("use"),
                "PAY": self.said("use", "pay"),
                "LEAVE": self.said("use", "leave"),
            }
            wordings = lists[step.op]
        slots: dict[str, str] = {}
        if step.place:
            slots |= {kind: self.word(step.place, kind, rng) for kind in ("place", "item")}
        if step.squares:
            slots["squares"] = self.squares(step.squares, rng)
        if step.way in self.tables["ways"]:
            slots["way"] = self.tables["ways"][step.way]
        if turn in self.tables["turns"]:
            slots["turn"] = self.tables["turns"][turn]
        choices = [Clause(wording, slots, step.place, step.squares or 0) for wording in wordings]
        if terse:
            sizes = [count_characters(clause.text) for clause in choices]
            choices = [c for c, size in zip(choices, sizes, strict=True) if size <= min(sizes) + 1]
        return choices[int(rng.random() * len(choices))]

    @staticmethod
    def _move_kind(way: str, turn: str) -> str:
        if way != "ahead":
            return "map"
        return {"": "ahead", "around": "around"}.get(turn, "turn")

    def _words_of(self, place: str) -> dict[str, Sequence[str]]:
        known: Mapping[str, Sequence[str]] = self.tables["words"].get(place, {})
        section = self.spec.sections.get(place)
        label = (section.label if section else None) or place.replace("_", " ").lower()
        unknown = self.tables["unknown"]
        usual = {kind: [word.format(label=label) for word in unknown[kind]] for kind in ("place", "item")}
        return {"place": known.get("place", usual["place"]), "item": known.get("item", usual["item"])}


def one_of(words: Sequence[str], rng: np.random.Generator) -> str:
    """Draw one of several words."""
    return words[min(len(words) - 1, int(rng.random() * len(words)))]
