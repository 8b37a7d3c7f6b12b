"""Languages as data: the words of a language file, and how a text is cut into them.

A language is one TOML file with classes of words (``UP``, ``GO``, ``BUY``, ``REPAIR``, …), numbers,
spelling variants and expressions that stand for several classes at once. The names of sections come from
the task file. The longest known expression wins, so an idiom can be told apart from the words inside it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from fidm.errors import GroundingError, Problem
from fidm.grounding.route.program import EXIT, FINISH, START
from fidm.languages import WORDS, languages_with
from fidm.registry import LANGUAGES
from fidm.tasks.spec import TaskSpec

FORMAT = 1

DIRECTIONS = ("UP", "DOWN", "LEFT", "RIGHT")
ACTING = (
    *DIRECTIONS, "AHEAD", "TURN", "AROUND", "BACK", "NUMBER", "UNIT", "END", "TO", "GO", "BUY", "DONE_BUY",
    "PAY", "LEAVE", "ALONG", "AND", "MORE", "VAGUE", "IT", "HERE", "PLACE",
)  # fmt: skip
"""Classes of words that the grammar reads."""

STEERING = ("REPAIR", "HOLD", "TAG", "NOT", "UNREAL", "IF", "LATER", "ASK", "POLITE", "THEN", "SAY")
"""Classes of words that decide which clauses count."""

ASSESSOR = ("moved", "not_yet", "prompt", "request", "instruction")
"""What an assessor may do with a turn."""

BREAK, STOP, QUESTION, UNKNOWN = "BREAK", "STOP", "QUESTION", "UNKNOWN"
"""What is no known word: a comma, the end of a sentence, a question mark, a word nobody knows."""

_COUNTS = {"ONE": 1, "TWO": 2, "THREE": 3, "FOUR": 4, "FIVE": 5, "SIX": 6}
_PAUSING = '，,、;；:：—–"“”()（）…⋯'
_STOPPING = "。.!！\n"
_ASKING = "?？"
_CLAUSE = re.compile(r"[\s，,。.！!？?、；;：:]+")
_SPACED_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or expression of a text.

    Parameters
    ----------
    kind : str
        Its class.
    value : str or int
        Which place or number it is; empty otherwise.
    start, end : int
        Where it stands in the text.
    """

    kind: str
    value: str | int
    start: int
    end: int


Meaning = tuple[tuple[str, "str | int"], ...]
"""The classes an expression stands for, each with its place or number."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language the rules grounder can read.

    Parameters
    ----------
    code, name : str
        ``"en"`` and ``"English"``.
    spaced : bool
        Whether words are written with spaces between them.
    meanings : mapping of str to Meaning
        What each expression stands for, lower case.
    places : mapping of str to tuple of str
        Words for START, FINISH and EXIT.
    variants : mapping of str to str
        Spellings to put right; both sides are equally long, so that places in the text stay.
    openers : frozenset of str
        Directions that open a sentence without meaning one.
    rules : tuple of str
        Grammar rules of this language, before the shared ones.
    verbs : mapping of str to tuple of str
        Words for the use of a section, by the verb of the task.
    fillers : frozenset of str
        Words that only fill a pause.
    assessor : mapping of str to tuple of str
        What an assessor says to move the figure, to prompt, to request something and to instruct.
    digest : str
        The hash of its file.
    """

    code: str
    name: str
    spaced: bool
    meanings: Mapping[str, Meaning] = field(repr=False)
    places: Mapping[str, tuple[str, ...]] = field(repr=False)
    variants: Mapping[str, str] = field(repr=False)
    openers: frozenset[str] = field(repr=False)
    rules: tuple[str, ...] = field(repr=False)
    verbs: Mapping[str, tuple[str, ...]] = field(repr=False)
    fillers: frozenset[str] = field(repr=False)
    assessor: Mapping[str, tuple[str, ...]] = field(repr=False)
    digest: str
    _spelling: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        longest_first = sorted(self.variants, key=len, reverse=True)
        object.__setattr__(self, "_spelling", re.compile("|".join(map(re.escape, longest_first))))

    def normal(self, text: str) -> str:
        """Return the text in small letters and common spelling, as long as before."""
        small = text.lower()
        if len(small) != len(text):  # a few capitals become two letters
            small = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        return (
            self._spelling.sub(lambda found: self.variants[found.group()], small) if self.variants else small
        )


class Vocabulary:
    """A language together with the words for the places of one task.

    Parameters
    ----------
    language : Language
        The language.
    spec : TaskSpec
        The task, whose sections have words in this language.
    """

    def __init__(self, language: Language, spec: TaskSpec) -> None:
        self.language = language
        known: dict[str, list[Meaning]] = {form: [meaning] for form, meaning in language.meanings.items()}
        if spec.exit is None:  # "go home" leaves nothing where there is no way out
            known = {form: found for form, found in known.items() if found[0] != (("LEAVE", ""),)}
        for written in language.verbs.get(spec.verb, ()):
            known[_form(written, language.spaced)] = [(("BUY", ""),)]
        for form, place in _place_words(language, spec):
            meaning: Meaning = (("PLACE", place),)
            others = [m for m in known.get(form, []) if m[0][0] == "PLACE" and m != meaning]
            known[form] = [*others, meaning]
        self._known = known
        self._longest: dict[str, int] = {}  # by first word, or first character
        for form in known:
            parts = form.split(" ") if language.spaced else form
            self._longest[parts[0]] = max(len(parts), self._longest.get(parts[0], 0))
        self.assessed: dict[tuple[str, bool], Any] = {}
        self.ambiguous = {form for form, meanings in known.items() if len(meanings) > 1}

    def tokens(self, text: str) -> list[Token]:
        """Cut a text into known expressions; the longest wins."""
        return self.cut(self.language.normal(text))

    def cut(self, plain: str) -> list[Token]:
        """Cut a text that is in normal form already."""
        return self._spaced(plain) if self.language.spaced else self._unspaced(plain)

    def says(self, text: str, expressions: Iterable[str]) -> bool:
        """Whether a text, already in normal form, has one of these expressions; words only as a whole."""
        if not self.language.spaced:  # a single character must stand alone, or it would be found anywhere
            alone = set(_CLAUSE.split(text))
            return any(e in alone if len(e) == 1 else e in text for e in expressions)
        words = f" {' '.join(_SPACED_WORD.findall(text))} "
        return any(f" {expression} " in words for expression in expressions)

    def _spaced(self, text: str) -> list[Token]:
        words = [(match.group(), match.start(), match.end()) for match in _SPACED_WORD.finditer(text)]
        found: list[Token] = []
        i, place = 0, 0
        while i < len(words):
            _marks(text, place, words[i][1], found)
            room, longest = 1, self._longest.get(words[i][0], 1)
            while room < longest and i + room < len(words) and _joined(text, words, i + room):
                room += 1
            for length in range(room, 0, -1):
                form = " ".join(word for word, _, _ in words[i : i + length])
                if form in self._known:
                    break
            else:
                length, form = 1, words[i][0]
            place = words[i + length - 1][2]
            self._add(form, words[i][1], place, found)
            i += length
        _marks(text, place, len(text), found)
        return found

    def _unspaced(self, text: str) -> list[Token]:
        found: list[Token] = []
        i, n = 0, len(text)
        while i < n:
            letter = text[i]
            if letter.isascii() and letter.isalnum():
                end = i + 1
                while end < n and text[end].isascii() and text[end].isalnum():
                    end += 1
                self._add(text[i:end], i, end, found)
                i = end
                continue
            for length in range(min(self._longest.get(letter, 0), n - i), 0, -1):
                if text[i : i + length] in self._known:
                    self._add(text[i : i + length], i, i + length, found)
                    i += length
                    break
            else:
                if letter.isalnum():
                    found.append(Token(UNKNOWN, "", i, i + 1))
                elif letter == " " and not (text[i - 1 : i].isascii() or text[i + 1 : i + 2].isascii()):
                    found.append(Token(BREAK, "", i, i + 1))  # where words are not spaced, a space is a pause
                else:
                    _marks(text, i, i + 1, found)
                i += 1
        return found

    def _add(self, form: str, start: int, end: int, found: list[Token]) -> None:
        meanings = self._known.get(form)
        if meanings is not None:
            if len(meanings) > 1:
                found.append(Token("PLACE", "|".join(str(m[0][1]) for m in meanings), start, end))
            else:
                found += [Token(kind, value, start, end) for kind, value in meanings[0]]
        elif form.isdigit() and form.isascii():
            number = int(form[:6])
            found.append(Token("NUMBER" if number else "VAGUE", number or "", start, end))
        else:
            found.append(Token(UNKNOWN, "", start, end))


def _joined(text: str, words: list[tuple[str, int, int]], i: int) -> bool:
    """Whether only spaces stand between a word and the one before."""
    return text[words[i - 1][2] : words[i][1]].strip(" -") == ""


def _marks(text: str, start: int, end: int, found: list[Token]) -> None:
    for i in range(start, end):
        letter = text[i]
        if letter == "." and (text[i - 1 : i] == "." or text[i + 1 : i + 2] == "."):
            letter = "…"
        if text[i - 1 : i].isdigit() and text[i + 1 : i + 2].isdigit():  # 1.5, 1,5, 2/3, 2-3
            found.append(Token("VAGUE", "", i, i + 1))
            continue
        kind = (
            STOP
            if letter in _STOPPING
            else QUESTION
            if letter in _ASKING
            else BREAK
            if letter in _PAUSING
            else ""
        )
        if kind:
            found.append(Token(kind, "", i, i + 1))


def _place_words(language: Language, spec: TaskSpec) -> Iterable[tuple[str, str]]:
    """Every word for a place of the task, in this language; names and labels of sections are English."""
    listed: list[tuple[str, str]] = []
    for place, given in language.places.items():
        named = {START: True, FINISH: spec.finish is not None, EXIT: spec.exit is not None}[place]
        listed += [(word, place) for word in given if named]
    own = spec.words.get(language.code, {})
    listed += [(word, START) for word in own.get("start", ())]
    listed += [(word, FINISH) for word in own.get("finish", ()) if spec.finish is not None]
    listed += [(word, EXIT) for word in own.get("exit", ()) if spec.exit is not None]
    for name, section in spec.sections.items():
        words = list(own.get(name, ()))
        if language.code == "en":
            words += [name.replace("_", " "), section.label or name.replace("_", " ")]
        listed += [(word, name) for word in dict.fromkeys(words)]
    return [(_form(word, language.spaced), place) for word, place in listed]


def _form(written: str, spaced: bool) -> str:
    small = written.lower()
    return " ".join(_SPACED_WORD.findall(small)) if spaced else small


def languages() -> tuple[str, ...]:
    """Return the codes of the languages that can be read: those of fidm, then those of other packages."""
    return languages_with(WORDS)


@lru_cache(maxsize=16)
def load_language(source: str) -> Language:
    """Load a language by its code, or from a file.

    Parameters
    ----------
    source : str
        A code such as ``"yue"``, or the path of a TOML file.
    """
    if source in languages():
        text = LANGUAGES.read(source, WORDS)
    else:
        try:
            text = Path(source).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise GroundingError(
                f"There is no language {source!r}. Built in: {', '.join(languages())}; or give the path of a "
                "language file in UTF-8."
            ) from None
    return parse_language(text, source=source)


def parse_language(text: str, *, source: str = "language") -> Language:
    """Turn the text of a language file into a language; all that is wrong in it is said at once."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GroundingError(f"is not valid TOML: {error}.", source=source) from None
    problems: list[Problem] = []
    if data.get("format") != FORMAT:
        problems.append(Problem(f"must be {FORMAT}.", "format"))
    for key, wanted in (("language", str), ("name", str), ("spaced", bool)):
        if not isinstance(data.get(key), wanted):
            problems.append(Problem("is missing, or of the wrong kind.", key))
    spaced = bool(data.get("spaced"))
    meanings: dict[str, Meaning] = {}

    def note(form: Any, meaning: Meaning, where: str) -> None:
        if not isinstance(form, str) or not form.strip():
            problems.append(Problem("has something that is no word.", where))
            return
        small = _form(form, spaced)
        if meanings.setdefault(small, meaning) != meaning:
            problems.append(Problem(f"has {form!r}, which stands elsewhere with another meaning.", where))

    for form, classes in _table(data, "compounds", problems).items():
        kinds = str(classes).split()
        strange = [kind for kind in kinds if kind not in (*ACTING, *STEERING, *_COUNTS)]
        if strange or not kinds:
            problems.append(Problem(f"names no known class: {', '.join(strange)}.", f"compounds.{form}"))
        note(
            form,
            tuple(("NUMBER", _COUNTS[kind]) if kind in _COUNTS else (kind, "") for kind in kinds),
            "compounds",
        )
    for kind, forms in _table(data, "words", problems).items():
        if kind not in (*ACTING, *STEERING):
            problems.append(Problem("is no known class of words.", f"words.{kind}"))
        for form in _list(forms, f"words.{kind}", problems):
            note(form, ((kind, ""),), f"words.{kind}")
    for number, forms in _table(data, "numbers", problems).items():
        if not (number.isascii() and number.isdigit()):
            problems.append(Problem("is no number.", f"numbers.{number}"))
            continue
        for form in _list(forms, f"numbers.{number}", problems):
            note(form, (("NUMBER", int(number)),), f"numbers.{number}")
    places: dict[str, tuple[str, ...]] = {}
    for place, forms in _table(data, "places", problems).items():
        if place not in (START, FINISH, EXIT):
            problems.append(
                Problem("is no such place; sections have their words in the task file.", f"places.{place}")
            )
            continue
        places[place] = tuple(_list(forms, f"places.{place}", problems))
    variants = _table(data, "variants", problems)
    for written, meant in variants.items():
        if not isinstance(meant, str) or len(written) != len(meant):
            problems.append(Problem("must be as long as what it stands for.", f"variants.{written}"))
    grammar = _table(data, "grammar", problems)
    assessor, verbs = _table(data, "assessor", problems), _table(data, "verbs", problems)
    for key, forms in assessor.items():
        if key not in ASSESSOR:
            problems.append(Problem(f"is none of {', '.join(ASSESSOR)}.", f"assessor.{key}"))
        _list(forms, f"assessor.{key}", problems)
    if problems:
        raise GroundingError("the language cannot be used.", source=source, problems=problems)
    return Language(
        code=data["language"],
        name=data["name"],
        spaced=spaced,
        meanings=meanings,
        places=places,
        variants=variants,
        openers=frozenset(_list(data.get("openers", []), "openers", problems)),
        rules=tuple(_list(grammar.get("rules", []), "grammar.rules", problems)),
        verbs={verb: tuple(_list(forms, f"verbs.{verb}", problems)) for verb, forms in verbs.items()},
        fillers=frozenset(_list(data.get("fillers", []), "fillers", problems)),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        assessor={key: tuple(_form(form, spaced) for form in assessor.get(key, [])) for key in ASSESSOR},
    )


def _table(data: Mapping[str, Any], key: str, problems: list[Problem]) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        problems.append(Problem("must be a table.", key))
        return {}
    return table


def _list(value: Any, where: str, problems: list[Problem]) -> list[str]:
    if not isinstance(value, list):
        problems.append(Problem("must be a list of words.", where))
        return []
    return value
