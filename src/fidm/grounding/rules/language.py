"""Languages as data: the words of a language file, and how a text is cut into them.

A language is one TOML file with classes of words (``UP``, ``GO``, ``BUY``, ``REPAIR``, …), numbers,
spelling variants and expressions that stand for several classes at once. The names of sections come from
the task file. The longest known expression wins, so an idiom can be told apart from the words inside it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from fidm.errors import GroundingError, Problem
from fidm.grounding.route.program import EXIT, FINISH, MAX_SQUARES, START
from fidm.grounding.rules.romanised import CHINESE, ROMANISED, is_romanised
from fidm.languages import WORDS, language_called, languages_with
from fidm.registry import LANGUAGES
from fidm.talk import Transcript
from fidm.tasks.spec import TaskSpec, builtin_tasks, explain, located, read_task

COMPASS = ("NORTH", "SOUTH", "WEST", "EAST")
DIRECTIONS = ("UP", "DOWN", "LEFT", "RIGHT", *COMPASS)
ACTING = (
    *DIRECTIONS, "AHEAD", "TURN", "AROUND", "BACK", "NUMBER", "UNIT", "END", "TO", "GO", "BUY", "DONE_BUY",
    "NEED", "PAY", "LEAVE", "ALONG", "PAST", "ORDINAL", "AISLE", "ONLEFT", "ONRIGHT", "AND", "MORE", "SOME",
    "OF", "VAGUE", "IT", "HERE", "PLACE",
    "BETWEEN",
)  # fmt: skip
"""Classes of words that the grammar reads."""

STEERING = (
    "REPAIR", "HOLD", "TAG", "NOT", "UNREAL", "BE", "IF", "LATER", "ASK", "POLITE", "THEN", "MY", "OWN",
    "FRESH", "FINAL", "THAT", "FOR", "USED", "LENGTH", "SAY", "OR", "QUOTED", "BEFORE", "ONCE", "WHAT", "THE",
    "HALT",
)  # fmt: skip
"""Classes of words that decide which clauses count."""

ASSESSOR = ("moved", "not_yet", "prompt", "request", "instruction")
"""What an assessor may do with a turn."""

BREAK, STOP, QUESTION, UNKNOWN = "BREAK", "STOP", "QUESTION", "UNKNOWN"
"""What is no known word: a comma, the end of a sentence, a question mark, a word nobody knows."""

_COUNTS = {
    **{word: ("NUMBER", n) for n, word in enumerate(("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX"), start=1)},
    **{
        word: ("ORDINAL", n)
        for n, word in enumerate(("FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"), start=1)
    },
}
_MARKS = {
    **dict.fromkeys('，,、;；:：—–"“”()（）…⋯', BREAK),
    **dict.fromkeys("。.!！\n", STOP),
    **dict.fromkeys("?？", QUESTION),
}
_CLAUSE = re.compile(r"[\s，,。.！!？?、；;：:]+")
_SPACED_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*", re.UNICODE)


class Token(NamedTuple):
    """A word or expression of a text."""

    kind: str  # its class
    value: str | int  # which place or number it is; empty otherwise
    # Where it stands in the text.
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
    also : str
        The code of a language whose words people mix in; read where Latin letters stand.
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
    endearments : frozenset of str
        Names of goods by which people call each other: "fetch me a loaf, sugar".
    assessor : mapping of str to tuple of str
        What an assessor says to move the figure, to prompt, to request something and to instruct.
    digest : str
        The hash of its file.
    """

    code: str
    name: str
    spaced: bool
    also: str
    meanings: Mapping[str, Meaning] = field(repr=False)
    places: Mapping[str, tuple[str, ...]] = field(repr=False)
    variants: Mapping[str, str] = field(repr=False)
    openers: frozenset[str] = field(repr=False)
    rules: tuple[str, ...] = field(repr=False)
    verbs: Mapping[str, tuple[str, ...]] = field(repr=False)
    fillers: frozenset[str] = field(repr=False)
    endearments: frozenset[str] = field(repr=False)
    assessor: Mapping[str, tuple[str, ...]] = field(repr=False)
    digest: str
    _variants: Mapping[str, str] = field(init=False, repr=False)
    _spelling: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        plain = (
            self.variants if self.spaced else {simplified(a): simplified(b) for a, b in self.variants.items()}
        )
        object.__setattr__(self, "_variants", plain)
        longest_first = sorted(plain, key=len, reverse=True)
        object.__setattr__(self, "_spelling", re.compile("|".join(map(re.escape, longest_first))))

    def normal(self, text: str) -> str:
        """Return the text in small letters and common spelling, as long as before."""
        small = text.lower()
        if len(small) != len(text):  # a few capitals become two letters
            small = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
        if not self.spaced:
            small = simplified(small)
        return (
            self._spelling.sub(lambda found: self._variants[found.group()], small) if self.variants else small
        )


@cache
def _han() -> dict[int, str]:
    """Simplified characters by traditional ones."""
    _, traditional, simple = (resources.files("fidm.languages") / "han.txt").read_text("utf-8").splitlines()
    return dict(zip(map(ord, traditional), simple, strict=True))


def simplified(text: str) -> str:
    """Return Chinese text in simplified characters, as long as before; in these, words are compared."""
    return text if text.isascii() else text.translate(_han())


def _must(hold: Callable[[str], bool], otherwise: str) -> AfterValidator:
    def check(text: str) -> str:
        if not hold(text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(check)


Word = Annotated[str, _must(lambda text: bool(text.strip()), "has something that is no word")]
Words = Annotated[tuple[Word, ...], Field(strict=False)]
Number = Annotated[str, _must(lambda text: text.isascii() and text.isdigit(), "is no number")]
Class = Annotated[str, _must((*ACTING, *STEERING).__contains__, "is no known class of words")]
Classes = Annotated[
    str,
    _must(
        lambda text: set() < set(text.split()) <= {*ACTING, *STEERING, *_COUNTS},
        'must be known classes of words, such as "TURN LEFT"',
    ),
]
Place = Annotated[
    str, _must((START, FINISH, EXIT).__contains__, "is no such place; sections are named in the task file")
]
Act = Annotated[str, _must(ASSESSOR.__contains__, f"is none of {', '.join(ASSESSOR)}")]


class GrammarTable(BaseModel):
    """The grammar of one language."""

    rules: Words = ()


class LanguageFile(BaseModel):
    """Everything a language file may say; what contradicts something else goes to the list in the context."""

    model_config = ConfigDict(strict=True)

    format: Literal[1]
    language: str
    name: str
    spaced: bool
    also: str = ""
    compounds: dict[Word, Classes] = {}
    words: dict[Class, Words] = {}
    numbers: dict[Number, Words] = {}
    ordinals: dict[Number, Words] = {}
    places: dict[Place, Words] = {}
    variants: dict[str, str] = {}
    openers: Words = ()
    fillers: Words = ()
    endearments: Words = ()
    verbs: dict[str, Words] = {}
    assessor: dict[Act, Words] = {}
    grammar: GrammarTable = GrammarTable()

    @field_validator("compounds", "words", "numbers", "ordinals")
    @classmethod
    def _mean_one_thing(cls, table: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        tables, problems = {**info.data, str(info.field_name): table}, cast(list[Problem], info.context)
        known: dict[str, Meaning] = {}
        for where, form, meaning in _expressions(tables):
            is_other = known.setdefault(_form(form, tables.get("spaced", False)), meaning) != meaning
            if is_other and where.startswith(f"{info.field_name}."):
                problems.append(Problem(f"has {form!r}, which stands elsewhere with another meaning.", where))
        return table

    @field_validator("variants")
    @classmethod
    def _are_as_long(cls, variants: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        cast(list[Problem], info.context).extend(
            Problem("must be as long as what it stands for.", f"variants.{written}")
            for written, meant in variants.items()
            if len(written) != len(meant)
        )
        return variants


def _expressions(tables: Mapping[str, Any]) -> Iterator[tuple[str, str, Meaning]]:
    """Every expression of a language file: its key, how it is written and what it stands for."""
    for form, classes in tables.get("compounds", {}).items():
        yield f"compounds.{form}", form, tuple(_COUNTS.get(k, (k, "")) for k in classes.split())
    for kind, forms in tables.get("words", {}).items():
        yield from ((f"words.{kind}", form, ((kind, ""),)) for form in forms)
    for table, kind in (("numbers", "NUMBER"), ("ordinals", "ORDINAL")):
        for number, forms in tables.get(table, {}).items():
            yield from ((f"{table}.{number}", form, ((kind, int(number)),)) for form in forms)


def _own_meanings(language: Language, own: Mapping[str, Any]) -> Iterator[tuple[str, Meaning]]:
    """What a study's own words stand for in a language, by how they are written in normal form."""
    listed = [(written, meaning) for _, written, meaning in _expressions(own)]
    places = own.get("places", {}).items()
    listed += [(word, (("PLACE", place),)) for place, words in places for word in words]
    yield from ((_form(language.normal(written), language.spaced), meaning) for written, meaning in listed)


def _meanings(tables: Mapping[str, Any]) -> dict[str, Meaning]:
    """What each expression stands for; one that is written out goes before alternatives."""
    found: dict[str, Meaning] = {}
    listed = sorted(_expressions(tables), key=lambda one: "(" not in one[1])
    for _, written, meaning in listed:
        found |= {_form(form, tables["spaced"]): meaning for form in spellings(written)}
    return found


class Vocabulary:
    """A language together with the words for the places of one task, and a study's own words by language."""

    def __init__(
        self, language: Language, spec: TaskSpec, own: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self.language, self.spec = language, spec
        known: dict[str, list[Meaning]] = {form: [meaning] for form, meaning in language.meanings.items()}
        if spec.exit is None:  # "go home" leaves nothing where there is no way out
            known = {form: found for form, found in known.items() if found[0] != (("LEAVE", ""),)}
        for written in language.verbs.get(spec.verb, ()):
            known[_form(written, language.spaced)] = [(("BUY", ""),)]
        for form, place in _place_words(language, spec):
            meaning: Meaning = (("PLACE", place),)
            others = [m for m in known.get(form, []) if m[0][0] == "PLACE" and m != meaning]
            known[form] = [*others, meaning]
        for form, meaning in _own_meanings(language, (own or {}).get(language.code, {})):
            known[form] = [meaning]  # and nothing else, whatever it means in the language or the task
        self._known = known
        self._longest: dict[str, int] = {}  # by first word, or first character
        for form in known:
            parts = form.split(" ") if language.spaced else form
            self._longest[parts[0]] = max(len(parts), self._longest.get(parts[0], 0))
        # Names of two letters, and verbs of getting that may end with the first of them.
        self._goods = frozenset(f for f, found in known.items() if len(f) == 2 and found[0][0][0] == "PLACE")
        first = {name[0] for name in self._goods}
        self._cut_short = frozenset(
            form
            for form, found in known.items()
            if form[-1:] in first and found[0][-1][0] in ("BUY", "NEED") and form[:-1] in known
        )
        self.foreign = vocabulary_of(language.also, spec, own) if language.also else None
        self.assessed: dict[tuple[str, bool], Any] = {}

    def tokens(self, text: str) -> list[Token]:
        """Cut a text into known expressions; the longest wins."""
        return self.cut(self.language.normal(text))

    def cut(self, plain: str) -> list[Token]:
        """Cut a text that is in normal form already."""
        if self.language.spaced:
            return self._called(_headed(self._spaced(plain), plain), plain)
        where = _without_word_spaces(plain)
        if len(where) == len(plain):
            return self._unspaced(plain)
        found = self._unspaced("".join(plain[i] for i in where))
        return [token._replace(start=where[token.start], end=where[token.end - 1] + 1) for token in found]

    def says(self, text: str, expressions: Iterable[str]) -> bool:
        """Whether a text, already in normal form, has one of these expressions; words only as a whole."""
        if not self.language.spaced:  # a single character must stand alone, or it would be found anywhere
            text = "".join(text[i] for i in _without_word_spaces(text))
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
            for length in range(room, 1, -1):
                form = " ".join([word for word, _, _ in words[i : i + length]])
                if form in self._known:
                    break
            else:
                length, form = 1, words[i][0]
            if length > 1 and self._names_place(words, i + length - 1):  # "the loo | roll" is no loo
                length -= 1
                form = " ".join(word for word, _, _ in words[i : i + length])
            place = words[i + length - 1][2]
            if (
                form.endswith("'s") and form not in self._known and form[:-2] in self._known
            ):  # "the meat's there"
                self._add(form[:-2], words[i][1], place - 2, found)
                found.append(Token("BE", "", place - 2, place))
            else:
                self._add(form, words[i][1], place, found)
            i += length
        _marks(text, place, len(text), found)
        return found

    def _called(self, tokens: list[Token], text: str) -> list[Token]:
        """Take goods for a person addressed, where they stand alone beside a request: "a loaf, sugar"."""
        names = self.language.endearments
        if not names:
            return tokens
        kinds = [token.kind for token in tokens]
        return [
            token._replace(kind="SAY", value="")
            if token.kind == "PLACE" and text[token.start : token.end] in names and _is_address(kinds, i)
            else token
            for i, token in enumerate(tokens)
        ]

    def _names_place(self, words: Sequence[tuple[str, int, int]], i: int) -> bool:
        """Whether a name of a place of more than one word begins with this word."""
        if i + 1 >= len(words) or words[i + 1][1] - words[i][2] != 1:
            return False
        meanings = self._known.get(f"{words[i][0]} {words[i + 1][0]}")
        return meanings is not None and meanings[0][0][0] == "PLACE"

    def _unspaced(self, text: str) -> list[Token]:
        found: list[Token] = []
        i, n = 0, len(text)
        while i < n:
            letter = text[i]
            is_latin = letter.isascii() and letter.isalnum()
            for length in range(min(self._longest.get(letter, 0), n - i), 0, -1):
                form = text[i : i + length]
                if form in self._known and not (is_latin and _goes_on(text, i + length)):
                    if form in self._cut_short and text[i + length - 1 : i + length + 1] in self._goods:
                        continue  # 買 | 番茄 is no 買番
                    self._add(form, i, i + length, found)
                    i += length
                    break
            else:
                if is_latin:
                    i = self._latin(text, i, found)
                    continue
                if letter.isalnum():
                    found.append(Token(UNKNOWN, "", i, i + 1))
                elif letter == " " and not (text[i - 1 : i].isascii() or text[i + 1 : i + 2].isascii()):
                    found.append(Token(BREAK, "", i, i + 1))  # where words are not spaced, a space is a pause
                else:
                    _marks(text, i, i + 1, found)
                i += 1
        return _whole_words(_headed(found, text))

    def _latin(self, text: str, start: int, found: list[Token]) -> int:
        """Cut a stretch of Latin words inside another script; the words of both languages are known."""
        stretch = _LATIN.match(text, start)
        assert stretch is not None  # noqa: S101 - called where a Latin letter or a digit stands
        words = [(m.group(), m.start(), m.end()) for m in _SPACED_WORD.finditer(text, start, stretch.end())]
        i = 0
        while i < len(words):
            for length in range(min(6, len(words) - i), 0, -1):
                form = " ".join(word for word, _, _ in words[i : i + length])
                owner = next((v for v in (self, self.foreign) if v is not None and form in v._known), self)
                if form in owner._known or length == 1:
                    owner._add(form, words[i][1], words[i + length - 1][2], found)
                    i += length
                    break
        return stretch.end()

    def _add(self, form: str, start: int, end: int, found: list[Token]) -> None:
        meanings = self._known.get(form)
        if meanings is not None:
            if len(meanings) > 1:
                found.append(Token("PLACE", "|".join(str(m[0][1]) for m in meanings), start, end))
            else:
                found += [Token(kind, value, start, end) for kind, value in meanings[0]]
        elif form.isdigit() and form.isascii():
            number = int(form[:6])
            kind = UNKNOWN if number > MAX_SQUARES else "NUMBER" if number else "VAGUE"  # in 1953
            found.append(Token(kind, number if kind == "NUMBER" else "", start, end))
        else:
            found.append(Token(UNKNOWN, "", start, end))


_SHARED: deque[Vocabulary] = deque(maxlen=8)
"""The last vocabularies that were made."""


def vocabulary_of(
    code: str, spec: TaskSpec, own: Mapping[str, Mapping[str, Any]] | None = None
) -> Vocabulary:
    """Return the words of a language for a task; made once for all who read about it."""
    language = load_language(code)
    if own:
        return Vocabulary(language, spec, own)
    for known in tuple(_SHARED):
        if known.language is language and known.spec is spec:
            return known
    made = Vocabulary(language, spec)
    _SHARED.append(made)
    return made


_LATIN = re.compile(r"[a-z0-9]+(?:[-'’ ][a-z0-9]+)*")
_WIDE = r"[\u2e80-\U0003ffff]"
_BETWEEN_WIDE = re.compile(rf"(?<={_WIDE}) +(?={_WIDE}|[a-z0-9])|(?<=[a-z0-9]) +(?={_WIDE})")
_WIDE_PAIR = re.compile(rf"(?<={_WIDE})(?={_WIDE})")

SEGMENTED = 0.34
"""The share of neighbouring wide characters with a space between them from which on spaces part words."""


def _without_word_spaces(text: str) -> list[int]:
    """The places of a text's letters but for spaces between words, where words are not written with them."""
    gaps = [found.span() for found in _BETWEEN_WIDE.finditer(text)]
    if len(gaps) <= SEGMENTED * (len(gaps) + len(_WIDE_PAIR.findall(text))):
        return list(range(len(text)))
    spaces = {i for start, end in gaps for i in range(start, end)}
    return [i for i in range(len(text)) if i not in spaces]


def _headed(tokens: list[Token], text: str) -> list[Token]:
    """Of two places that name one thing, one counts: a tin of tomatoes is a tin, a cheese cake is a cake."""
    found: list[Token] = []
    for i, token in enumerate(tokens):
        before = [one.kind for one in found[-2:]]
        if token.kind == "PLACE" and before == ["PLACE", "OF"]:
            del found[-1]
            found[-1] = found[-1]._replace(end=token.end)
        elif token.kind != "PLACE" or before[-1:] != ["PLACE"] or _is_list(tokens, i, before):
            found.append(token)
        elif _is_compound(text, found[-1], token):
            heads = text.endswith(" of", found[-1].start, found[-1].end)
            found[-1] = (found[-1] if heads else token)._replace(start=found[-1].start, end=token.end)
        else:
            found.append(token)
    return found


_MARK = frozenset({BREAK, STOP, QUESTION})
_THANKING = frozenset({"SAY", "FRESH", "TAG", "THEN"})


def _is_address(kinds: Sequence[str], i: int) -> bool:
    """Whether a word between two marks is no thing: what stands beside it says itself what is to be done."""
    n = len(kinds)
    if (i and kinds[i - 1] not in _MARK) or (i + 1 < n and kinds[i + 1] not in _MARK):
        return i > 0 and i + 1 == n and kinds[i - 1] == "PLACE" and "AND" not in kinds[:i]
    last = next((j for j in range(i - 2, -1, -1) if kinds[j] in _MARK), -1)
    left = [kind for kind in kinds[last + 1 : i] if kind not in _MARK]
    end = next((j for j in range(i + 2, n) if kinds[j] in _MARK), n)
    right = [kind for kind in kinds[i + 2 : end] if kind not in _MARK]
    return any(_is_full(side) for side in (left, right)) or (bool(left) and _THANKING.issuperset(left))


def _is_full(kinds: Sequence[str]) -> bool:
    """Whether words say by themselves what is to be done: "get the eggs", "left two"."""
    does = any(kind in (*DIRECTIONS, "GO", "BUY", "NEED", "TURN", "PAY", "AHEAD", "BACK") for kind in kinds)
    return does and any(kind in ("PLACE", "NUMBER", "END", "PAY", *DIRECTIONS) for kind in kinds)


def _is_list(tokens: Sequence[Token], i: int, before: Sequence[str]) -> bool:
    """Whether a name of goods is one of three or more in a row: "bread milk eggs"."""
    return before == ["PLACE", "PLACE"] or (i + 1 < len(tokens) and tokens[i + 1].kind == "PLACE")


def _is_compound(text: str, first: Token, second: Token) -> bool:
    """Whether the first of two English words only says of what kind the second is; a plural does not."""
    between, last = text[first.end : second.start], text[first.end - 1]
    counted = text.startswith(("a ", "an ", "some ", "half "), second.start)
    return (
        between in (" ", "-")
        and last.isascii()
        and last != "s"
        and text[second.start].isascii()
        and not counted
    )


def _goes_on(text: str, end: int) -> bool:
    """Whether a Latin word goes on here."""
    return text[end - 1].isascii() and end < len(text) and text[end].isascii() and text[end].isalnum()


def _whole_words(tokens: list[Token]) -> list[Token]:
    """Names of places that are only part of a longer, unknown word are unknown, too: 蛋 in 蛋糕."""
    found = list(tokens)
    for i, token in enumerate(tokens):
        if token.kind != "PLACE" or token.end - token.start > 2:
            continue
        sides = [tokens[j] for j in (i - 1, i + 1) if 0 <= j < len(tokens)]
        glued = [
            one for one in sides if one.kind == UNKNOWN and token.start <= one.end and one.start <= token.end
        ]
        if glued and token.end - token.start == 1:
            found[i] = Token(UNKNOWN, "", token.start, token.end)
    return found


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
        if letter in _MARKS:
            found.append(Token(_MARKS[letter], "\n" if letter == "\n" else "", i, i + 1))


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
    return [(_form(form, language.spaced), place) for word, place in listed for form in spellings(word)]


def spellings(written: str) -> list[str]:
    """Every way to take one of the alternatives in parentheses.

    Examples
    --------
    >>> spellings("(until|till) (i|you) stop")
    ['until i stop', 'until you stop', 'till i stop', 'till you stop']
    """
    parts = [part.split("|") for part in re.split(r"[()]", written)]
    return ["".join(chosen) for chosen in product(*parts)]


def _form(written: str, spaced: bool) -> str:
    small = written.lower()
    return " ".join(_SPACED_WORD.findall(small)) if spaced else simplified(small)


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
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise GroundingError(f"is not valid TOML: {error}.", source=source) from None
    problems: list[Problem] = []
    try:
        file = LanguageFile.model_validate(data, context=problems)
    except ValidationError as error:
        problems += [explain(item, data, text, lambda _: []) for item in error.errors(include_url=False)]
    if problems:
        problems = [located(problem, text) for problem in problems]
        raise GroundingError("the language cannot be used.", source=source, problems=problems)
    return Language(
        code=file.language,
        name=file.name,
        spaced=file.spaced,
        also=file.also,
        meanings=_meanings(dict(file)),
        places=file.places,
        variants=file.variants,
        openers=frozenset(file.openers),
        rules=file.grammar.rules,
        verbs=file.verbs,
        fillers=frozenset(file.fillers),
        endearments=frozenset(file.endearments),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        assessor={
            key: tuple(_form(form, file.spaced) for form in file.assessor.get(key, ())) for key in ASSESSOR
        },
    )


CANTONESE, SPOKEN = re.compile("[唔喺嘅咗啲嗰冇佢係哋畀俾咁噉嚟攞]"), 0.02
"""Characters that are Cantonese alone, and the share of them from which on a text is."""

MANDARIN = re.compile("[这這那哪们們吗嗎怎么麼沒没的走往拿是吧]")
"""Characters that are Mandarin, or written Chinese, in their place."""

RATHER_CANTONESE = re.compile("[行喇㗎嘢返揀搵埋]")
"""Further ones that speak against that."""


def is_cantonese(text: str) -> bool:
    """Return whether a text in Chinese characters is surely Cantonese."""
    return len(CANTONESE.findall(text)) > SPOKEN * len(text)


def is_mandarin(text: str) -> bool:
    """Return whether a text in Chinese characters is rather Mandarin than Cantonese."""
    found = len(MANDARIN.findall(text))
    against = len(CANTONESE.findall(text)) + len(RATHER_CANTONESE.findall(text))
    return found > SPOKEN * len(text) and found > against


def called(name: str) -> str | None:
    """Return the code of the language that a file calls so; None where nobody knows it."""
    return language_called(name.lower().replace("_", "-"))


def language_of(transcript: Transcript, said: str = "") -> str:
    """Return the language to read a dialog in: the one said, the file's own, or the one of its script.

    Recognisers call Cantonese Chinese, so the characters decide where a file says no more than that. Chinese
    in Latin letters has a name of its own, such as ``"yue-Latn"``, by which nothing can be read.
    """
    named = said or transcript.language
    code = called(named) or named
    if said:
        return code
    if is_romanised(transcript, code):
        first = code.split("-")[0]
        return (first if first in CHINESE else "und") + ROMANISED
    letters = "".join(turn.text for turn in transcript.turns if turn.role == "participant")
    if code == "zh":
        return "yue" if is_cantonese(letters) and not is_mandarin(letters) else "zh"
    if code:
        return code
    wide = sum(1 for letter in letters if "\u3400" <= letter <= "\u9fff" or letter >= "\U00020000")
    return "en" if 3 * wide <= len(letters) else "zh" if is_mandarin(letters) else "yue"


MOST_LOOKED_AT = 40
"""In how many dialogs the places of tasks are looked for; more would not change the choice."""

FITS, FAR_BETTER = 0.05, 3.0
"""Talk is about a task if its fit is so high; another task is meant if it fits so many times better."""


def task_fit(
    transcripts: Sequence[Transcript], tasks: Sequence[str | Path] = (), *, language: str = ""
) -> dict[str, float]:
    """Return how well tasks fit talk: the share of unusual words that name their places.

    Words that mean the same in every task (directions, numbers, verbs) are not counted. What is left, counted
    in letters, names a place of one of the tasks or is a word that no task knows.

    Parameters
    ----------
    transcripts : sequence of Transcript
        The dialogs; forty of them, evenly spread, are looked at. Participants' turns count; all turns of
        dialogs in which nobody is marked as the participant.
    tasks : sequence of str or path
        Names of built-in tasks or task files; by default every built-in task.
    language : str
        The language of the dialogs; by default the one each is in. Dialogs in a language that cannot be read
        are left out.

    Returns
    -------
    dict
        By task, in the order given, 0 to 1. 0 where only one of its places is named: people go home in talk
        about anything.

    Examples
    --------
    >>> from fidm.talk import Transcript, Turn
    >>> said = Turn("P", 0.0, 1.0, "go to the bank, then the pharmacy", "participant")
    >>> fit = task_fit([Transcript("p1", (said,), language="en")], ["grocery", "errands"])
    >>> fit["errands"] > fit["grocery"]
    True
    """
    names = [str(task) for task in tasks or builtin_tasks()]
    specs = [read_task(task) for task in tasks or builtin_tasks()]
    every = max(1, -(-len(transcripts) // MOST_LOOKED_AT))
    words: dict[str, list[Vocabulary]] = {}
    known, of = [0] * len(specs), 0
    seen: list[set[str | int]] = [set() for _ in specs]
    for one in transcripts[::every]:
        code = language_of(one, language)
        if code not in words:
            is_known = code in languages() or Path(code).is_file()
            words[code] = [vocabulary_of(code, spec) for spec in specs] if is_known else []
        own = [turn.text for turn in one.turns if turn.role == "participant"]
        for text in (own or [turn.text for turn in one.turns]) if words[code] else ():
            cut = [each.tokens(text) for each in words[code]]
            named, unnamed = zip(*map(_named, cut), strict=True)
            for places, tokens in zip(seen, cut, strict=True):
                places.update(token.value for token in tokens if _is_section(token))
            known = [n + len(places) for n, places in zip(known, named, strict=True)]
            of += len(set.union(*named)) + len(set.intersection(*unnamed))
    found = zip(names, specs, known, seen, strict=True)
    return {
        name: n / of if of and len(places) >= min(2, len(spec.sections)) else 0.0
        for name, spec, n, places in found
    }


def _is_section(token: Token) -> bool:
    return token.kind == "PLACE" and token.value not in (START, FINISH, EXIT)


def _named(tokens: Iterable[Token]) -> tuple[set[int], set[int]]:
    """Where letters of a text belong to a section of the task, and where to words that nobody knows."""
    places, unknown = set[int](), set[int]()
    for token in tokens:
        if token.kind == UNKNOWN:
            unknown.update(range(token.start, token.end))
        elif _is_section(token):
            places.update(range(token.start, token.end))
    return places, unknown


def better_task(fit: Mapping[str, float], task: str) -> str | None:
    """Return the task that fits talk far better than the one chosen; None where there is none.

    Examples
    --------
    >>> better_task({"grocery": 0.4, "errands": 0.02}, "errands")
    'grocery'
    """
    best = max(fit, key=lambda name: fit[name])
    return best if fit[best] >= max(FITS, FAR_BETTER * fit[task]) else None
