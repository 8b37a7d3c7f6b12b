"""Languages as data: the words of a language file, and how a text is cut into them.

A language is one TOML file with classes of words (``UP``, ``GO``, ``BUY``, ``REPAIR``, …), numbers,
spelling variants and expressions that stand for several classes at once. The names of sections come from
the task file. The longest known expression wins, so an idiom can be told apart from the words inside it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

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
from fidm.grounding.route.program import EXIT, FINISH, START
from fidm.languages import WORDS, language_called, languages_with
from fidm.registry import LANGUAGES
from fidm.talk import Transcript
from fidm.tasks.spec import TaskSpec, builtin_tasks, explain, located, read_task

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
_MARKS = {
    **dict.fromkeys('，,、;；:：—–"“”()（）…⋯', BREAK),
    **dict.fromkeys("。.!！\n", STOP),
    **dict.fromkeys("?？", QUESTION),
}
_CLAUSE = re.compile(r"[\s，,。.！!？?、；;：:]+")
_SPACED_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Token:
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
    compounds: dict[Word, Classes] = {}
    words: dict[Class, Words] = {}
    numbers: dict[Number, Words] = {}
    places: dict[Place, Words] = {}
    variants: dict[str, str] = {}
    openers: Words = ()
    fillers: Words = ()
    verbs: dict[str, Words] = {}
    assessor: dict[Act, Words] = {}
    grammar: GrammarTable = GrammarTable()

    @field_validator("compounds", "words", "numbers")
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
        meaning = tuple(("NUMBER", _COUNTS[k]) if k in _COUNTS else (k, "") for k in classes.split())
        yield f"compounds.{form}", form, meaning
    for kind, forms in tables.get("words", {}).items():
        yield from ((f"words.{kind}", form, ((kind, ""),)) for form in forms)
    for number, forms in tables.get("numbers", {}).items():
        yield from ((f"numbers.{number}", form, (("NUMBER", int(number)),)) for form in forms)


class Vocabulary:
    """A language together with the words for the places of one task."""

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
        if letter in _MARKS:
            found.append(Token(_MARKS[letter], "", i, i + 1))


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
        meanings={_form(form, file.spaced): meaning for _, form, meaning in _expressions(dict(file))},
        places=file.places,
        variants=file.variants,
        openers=frozenset(file.openers),
        rules=file.grammar.rules,
        verbs=file.verbs,
        fillers=frozenset(file.fillers),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        assessor={
            key: tuple(_form(form, file.spaced) for form in file.assessor.get(key, ())) for key in ASSESSOR
        },
    )


CANTONESE, SPOKEN = re.compile("[唔喺嘅咗啲嗰冇佢係哋畀俾咁噉嚟攞]"), 0.02
"""Characters that are Cantonese alone, and the share of them from which on a text is."""

MANDARIN = re.compile("[这這那哪们們吗嗎怎么麼沒没的]")
"""Characters that are Mandarin, or written Chinese, in their place."""


def is_cantonese(text: str) -> bool:
    """Return whether a text in Chinese characters is surely Cantonese."""
    return len(CANTONESE.findall(text)) > SPOKEN * len(text)


def is_mandarin(text: str) -> bool:
    """Return whether a text in Chinese characters is rather Mandarin than Cantonese."""
    found = len(MANDARIN.findall(text))
    return found > SPOKEN * len(text) and found > len(CANTONESE.findall(text))


def language_of(transcript: Transcript, said: str = "") -> str:
    """Return the language to read a dialog in: the one said, the file's own, or the one of its script."""
    said = said or transcript.language
    if not said:
        letters = "".join(turn.text for turn in transcript.turns if turn.role == "participant")
        wide = sum(1 for letter in letters if "\u3400" <= letter <= "\u9fff" or letter >= "\U00020000")
        return "en" if 3 * wide <= len(letters) else "zh" if is_mandarin(letters) else "yue"
    small = said.lower().replace("_", "-")
    return language_called(small) or said


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
            words[code] = [Vocabulary(load_language(code), spec) for spec in specs] if is_known else []
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
