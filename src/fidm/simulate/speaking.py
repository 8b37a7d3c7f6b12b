"""How simulated people talk: words for a route program, what they cost, and when they are said.

The wordings are in one file per language. The four effort channels of a segment are drawn first; the talk is
then made to fit them as closely as words allow. It can be no shorter than the words that are needed, and
every turn needs some. What is returned is what the talk really is, which is what a table of the truth must
hold. Times are whole milliseconds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fidm.errors import DataError
from fidm.grounding.route.program import EXIT, FINISH, Instruction, Program
from fidm.grounding.segment import count_letters
from fidm.io.talk import Role, Turn
from fidm.languages import PHRASES, languages_with
from fidm.registry import LANGUAGES
from fidm.tasks.spec import TaskSpec


def languages() -> tuple[str, ...]:
    """Return the languages simulated people speak."""
    return languages_with(PHRASES)


@lru_cache
def _tables(language: str) -> Mapping[str, Any]:
    if language not in languages():
        raise DataError(f"Simulated people do not speak {language!r}. Known: {', '.join(languages())}.")
    return tomllib.loads(LANGUAGES.read(language, PHRASES))


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of talk about the way: a wording, and what stands in its gaps."""

    wording: str  # a wording with named gaps
    slots: Mapping[str, str] = field(default_factory=dict)  # what stands in the gaps
    place: str = ""  # the place it names; empty for none
    squares: int = 0  # how many squares it speaks of; 0 for none

    @property
    def text(self) -> str:
        """The words."""
        return self.wording.format_map(self.slots)


class Phrases:
    """The wordings of one language, for one task."""

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
        return pick(self._words[place][kind], rng)

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
        gap = pick(gaps, rng)
        if gap == "squares":
            nearby = [n for n in (clause.squares - 1, clause.squares + 1) if n >= 1]
            other = self.squares(nearby[int(rng.random() * len(nearby))], rng)
        elif gap in ("place", "item"):
            others = [place for place in self.places if place != clause.place]
            if not others:
                return None
            other = self.word(pick(others, rng), gap, rng)
        else:
            known: Mapping[str, str] = self.tables["ways" if gap == "way" else "turns"]
            other = pick([word for word in known.values() if word != clause.slots[gap]], rng)
        slip = replace(clause, slots={**clause.slots, gap: other})
        heard = replace(slip, wording=slip.wording[: slip.wording.index(f"{{{gap}}}") + len(gap) + 2])
        return slip.text, heard.text

    def squares(self, n: int, rng: np.random.Generator) -> str:
        """Return a number of squares in words."""
        table = self.tables["squares"]
        numbers: list[str] = table["numbers"]
        number = numbers[n - 1] if n <= len(numbers) else str(n)
        return pick(table["one" if n == 1 else "many"], rng).format(number=number)

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
            sizes = [count_letters(clause.text) for clause in choices]
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


def pick(words: Sequence[str], rng: np.random.Generator) -> str:
    """Draw one of several words."""
    return words[min(len(words) - 1, int(rng.random() * len(words)))]


PARTICIPANT, ASSESSOR = "PAR", "INV"
"""How the speakers are called."""

SHORTEST_MS = 120
"""No utterance is shorter."""

SHORTEST_PAUSE_MS = 300
"""No pause is shorter; gaps that are none stay below 250."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a segment costs a person, as drawn or as it came out."""

    duration_ms: int  # how long the participant speaks
    characters: int  # how many characters they say, spaces and punctuation left out
    turns: int  # in how many turns
    # How long nobody speaks between their first and last word; gaps that are no pauses left out.
    pause_ms: int


@dataclass(slots=True)
class _Unit:
    """What is said in one breath; a clause about the way, or something else."""

    words: str = ""
    clause: Clause | None = None
    link: str = ""
    slip: str = ""
    asks: bool = False

    @property
    def text(self) -> str:
        """All of it: a word that links, words that were taken back, and what is meant."""
        return self.link + self.slip + (self.clause.text if self.clause else self.words)


class Dialog:
    """A dialog as it is written down, turn by turn.

    ``rng`` gives the person's own random numbers.
    """

    def __init__(self, phrases: Phrases, rng: np.random.Generator) -> None:
        self.phrases, self.rng = phrases, rng
        self.turns: list[Turn] = []
        self.clock_ms = 0

    def assess(self, text: str, gap_ms: int) -> None:
        """Let the assessor say something after a gap."""
        length = 200 + round(count_letters(text) * 150 / self.phrases.letters_per_character)
        self._say(text, gap_ms, length, "assessor")

    def assessor_says(self, words: Sequence[str], **gaps: str) -> None:
        """Let the assessor say one of several things, between segments."""
        self.assess(pick(words, self.rng).format_map(gaps), self._ms(300, 900))

    def describe(self, program: Program, drawn: Effort) -> Effort:
        """Let the participant say a program at about the cost that was drawn, and return what it cost."""
        rng = self.rng
        n_turns = max(1, drawn.turns)
        n_pauses = 0
        if drawn.pause_ms:
            n_pauses = 1
            n_pauses += drawn.pause_ms >= 2 * SHORTEST_PAUSE_MS and rng.random() < 0.35
            n_pauses += drawn.pause_ms >= 5 * SHORTEST_PAUSE_MS and rng.random() < 0.25
        between = min(n_turns - 1, sum(int(rng.random() < 0.5) for _ in range(n_pauses)))
        n_cuts = n_turns - 1 + n_pauses - between
        units = self._units(program, drawn.characters, n_cuts + 1, n_turns - 1)
        cuts, breaks = self._cut(units, n_cuts, n_turns - 1)
        texts = [self._joined(units[a:b]) for a, b in zip([0, *cuts], [*cuts, len(units)], strict=True)]
        silent = self._pauses(cuts, breaks, n_pauses, drawn.pause_ms)
        lengths = self._lengths(texts, drawn.duration_ms)
        gap_ms = self._ms(300, 1_500)
        for i, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            self._say(text, gap_ms, length, "participant")
            if i == len(cuts):
                break
            pause, gap_ms = silent.get(cuts[i], 0), self._ms(60, 200)
            if cuts[i] not in breaks:
                gap_ms = pause or gap_ms
                continue
            asked = units[cuts[i] - 1].asks
            words = (
                self.phrases.said("help", "answered") if asked else self.phrases.said("assessor", "prompts")
            )
            before = bool(pause) and rng.random() < 0.7
            self.assess(pick(words, rng), pause if before else self._ms(100, 200))
            gap_ms = self._ms(100, 200) if before else pause or gap_ms
        return Effort(sum(lengths), sum(map(count_letters, texts)), len(breaks) + 1, sum(silent.values()))

    # ------------------------------------------------------------------ words

    def _units(self, program: Program, characters: int, n_least: int, n_breaks: int) -> list[_Unit]:
        """The talk in pieces: the words that are needed, then others until there are enough."""
        rng, phrases = self.rng, self.phrases
        fillers = phrases.said("extra", "fillers")
        least = min(map(count_letters, fillers))
        shortest = [word for word in fillers if count_letters(word) == least]
        clauses = phrases.clauses(program, rng)
        missing = max(0, n_least - len(clauses))
        if sum(count_letters(clause.text) for clause in clauses) + missing > characters:
            clauses = phrases.clauses(program, rng, terse=True)
        units = [_Unit(clause=clause) for clause in clauses]
        left = characters - sum(count_letters(unit.text) for unit in units)
        for _ in range(missing):
            roomy = left > 8 * missing * phrases.letters_per_character
            text = pick(phrases.said("extra", "remarks") if roomy else shortest, rng)
            self._put(units, _Unit(text))
            left -= count_letters(text)
        asked = 0
        while left > 0:
            added = 0
            for _ in range(3):
                added = added or self._embellish(units, left, may_ask=asked < n_breaks)
            if not added:
                text = pick(fillers if left > 2 * phrases.letters_per_character else shortest, rng)
                self._put(units, _Unit(text))
                added = count_letters(text)
            asked = sum(unit.asks for unit in units)
            left -= added
        return units

    def _embellish(self, units: list[_Unit], left: int, *, may_ask: bool) -> int:
        """Add something that costs at most what is left; return how many characters it has, or 0."""
        rng, phrases = self.rng, self.phrases
        draw = rng.random()
        if draw < 0.45:
            return self._stumble(units[int(rng.random() * len(units))], draw, left)
        if draw < 0.55:
            text = pick(phrases.said("extra", "fillers"), rng)
        elif draw < 0.78:
            text = pick(phrases.said("extra", "remarks"), rng)
        elif draw < 0.88:
            text = self._negated(units)
        elif may_ask:
            text = pick(phrases.said("help", "asked"), rng)
        else:
            return 0
        added = count_letters(text)
        if not 0 < added <= left + 1 or any(unit.text == text for unit in units):
            return 0
        self._put(units, _Unit(text, asks=draw >= 0.88))
        return added

    def _put(self, units: list[_Unit], unit: _Unit) -> None:
        """Put a piece somewhere; a question is never the last, since an answer follows."""
        places = len(units) + (not unit.asks)
        units.insert(int(self.rng.random() * places), unit)

    def _stumble(self, unit: _Unit, draw: float, left: int) -> int:
        """Link a clause to what was said before, or let it come out at the second try."""
        if unit.clause is None:
            return 0
        link, slip, size = unit.link, unit.slip, count_letters(unit.text)
        if draw < 0.2:
            unit.link = link or pick(self.phrases.said("extra", "links"), self.rng) + self.phrases.space
        else:
            unit.slip = slip or (self._slip(unit.clause) if draw < 0.33 else self._start(unit.clause))
        added = count_letters(unit.text) - size
        if added > left + 1:
            unit.link, unit.slip, added = link, slip, 0
        return added

    def _slip(self, clause: Clause) -> str:
        """A slip of the tongue and the word that takes it back; the later wins."""
        slip = self.phrases.wrong(clause, self.rng)
        if slip is None:
            return ""
        said = slip[0] if self.rng.random() < 0.6 else slip[1]
        repair = pick(self.phrases.said("extra", "repairs"), self.rng)
        return said + self.phrases.comma + repair + self.phrases.comma

    def _start(self, clause: Clause) -> str:
        """The first word, which is then said again, as people do who are still thinking."""
        first = clause.text.split(" ")[0].rstrip(",") if self.phrases.space else clause.text[0]
        return first + self.phrases.comma

    def _negated(self, units: list[_Unit]) -> str:
        """Something one does not want, or not now."""
        phrases, rng = self.phrases, self.rng
        wording = pick(phrases.said("extra", "negated"), rng)
        named = {unit.clause.place for unit in units if unit.clause is not None}
        others = [place for place in phrases.places if place not in named]
        if not others:
            return ""
        place = pick(others, rng)
        return wording.format(place=phrases.word(place, "place", rng), item=phrases.listed([place], "item"))

    def _joined(self, units: list[_Unit]) -> str:
        text = ""
        for unit in units:
            if text:
                ends = text.endswith(("?", "\uff1f"))
                text += self.phrases.space if ends else self.phrases.comma
            text += unit.text
        return text

    # ------------------------------------------------------------------ turns and times

    def _cut(self, units: list[_Unit], n_cuts: int, n_breaks: int) -> tuple[list[int], set[int]]:
        """Where the talk is cut into utterances, and at which of the cuts the assessor speaks."""
        forced = [i + 1 for i, unit in enumerate(units) if unit.asks]
        free = [i for i in range(1, len(units)) if i not in forced]
        self.rng.shuffle(free)
        cuts = [*forced, *free][:n_cuts]
        return sorted(cuts), set(cuts[:n_breaks])

    def _pauses(self, cuts: list[int], breaks: set[int], n_pauses: int, pause_ms: int) -> dict[int, int]:
        """How long nobody speaks at which cuts."""
        if not n_pauses:
            return {}
        places = [cut for cut in cuts if cut not in breaks]
        others = sorted(breaks)
        self.rng.shuffle(others)
        places = [*places, *others][:n_pauses]
        spare = max(0, pause_ms - SHORTEST_PAUSE_MS * len(places))
        marks = sorted(int(self.rng.random() * (spare + 1)) for _ in places[1:])
        parts = [b - a for a, b in zip([0, *marks], [*marks, spare], strict=True)]
        return {place: SHORTEST_PAUSE_MS + part for place, part in zip(places, parts, strict=True)}

    def _lengths(self, texts: list[str], duration_ms: int) -> list[int]:
        """How long each utterance takes, as its share of the characters."""
        sizes = [count_letters(text) for text in texts]
        spare = max(0, duration_ms - SHORTEST_MS * len(texts))
        reached = [round(spare * sum(sizes[: i + 1]) / sum(sizes)) for i in range(len(sizes))]
        return [SHORTEST_MS + b - a for a, b in zip([0, *reached[:-1]], reached, strict=True)]

    def _ms(self, least: int, most: int) -> int:
        return least + int(self.rng.random() * (most - least))

    def _say(self, text: str, gap_ms: int, length_ms: int, role: Role) -> None:
        begin = self.clock_ms + gap_ms
        self.clock_ms = begin + length_ms
        speaker = PARTICIPANT if role == "participant" else ASSESSOR
        self.turns.append(Turn(speaker, begin / 1000, self.clock_ms / 1000, text, role))
