"""The words of one study: expressions that the rules know there besides those of the language and the task.

They stand in a TOML file of the study, in the tables of a language file by the code of the language::

    format = 1

    [en.places]             # sections of the task, START, FINISH and EXIT
    meat = ["bangers"]

    [en.words]              # classes of words
    UP = ["skywards"]

    [en.compounds]          # expressions that stand for several classes
    "hang a louie" = "TURN LEFT"

    [[proposed]]            # what ``fidm ground learn`` proposes; read once a person has accepted it
    language = "en"
    phrase = "pegs"
    means = "household"     # a place, one or more classes of words, or a number
    accept = false

A word that a study gives a meaning means that and nothing else there, whatever it means in the language or
the task. Words never change how a dialog is cut into segments: decisions of reviewers stay with theirs.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fidm.errors import GroundingError, Problem
from fidm.grounding.route.program import EXIT, FINISH, START
from fidm.grounding.rules.language import Class, Classes, Language, Number, Word, Words, languages
from fidm.tasks.spec import TaskSpec, did_you_mean, explain, located

Tables = dict[str, dict[str, Any]]
"""Words in tables as in a language file: places, words, compounds, numbers, ordinals."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LanguageTables(_Table):
    """What a study adds to one language; the names of places are checked with the task."""

    places: dict[str, Words] = {}
    words: dict[Class, Words] = {}
    compounds: dict[Word, Classes] = {}
    numbers: dict[Number, Words] = {}
    ordinals: dict[Number, Words] = {}


class Proposed(_Table):
    """A proposal of ``fidm ground learn``; what speaks for it and against it stands beside it in comments."""

    language: str
    phrase: Word
    means: Word
    accept: bool = False


class OverlayFile(BaseModel):
    """Everything a study's file of words may say: tables by language, and proposals."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, LanguageTables] = Field(init=False)

    format: Literal[1]
    proposed: list[Proposed] = []


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """A study's own words.

    Parameters
    ----------
    tables : mapping of str to Tables
        By the code of the language.
    digest : str
        The hash of the file.
    source, text : str
        The file and what stands in it, to say where something is wrong.
    """

    tables: Mapping[str, Tables] = field(default_factory=dict, repr=False)
    digest: str = ""
    source: str = ""
    text: str = field(default="", repr=False)

    def of(self, language: Language, spec: TaskSpec) -> Mapping[str, Tables]:
        """Return the tables; an error where they name a place or a language that there is not."""
        there = [START, *([FINISH] if spec.finish else []), *([EXIT] if spec.exit else []), *spec.sections]
        codes = {*languages(), language.code}
        problems = [
            Problem("is no language that can be read.", f"{code}.{next(iter(own))}", hint=_like(code, codes))
            for code, own in self.tables.items()
            if code not in codes
        ]
        problems += [
            Problem("is no place of the task.", f"{code}.places.{place}", hint=_like(place, there))
            for code, own in self.tables.items()
            for place in own.get("places", {})
            if place not in there
        ]
        _refuse(problems, self.text, self.source)
        return self.tables

    def plus(self, language: str, phrase: str, means: str) -> Overlay:
        """Return the same words and one more."""
        own = {name: dict(table) for name, table in self.tables.get(language, {}).items()}
        _put(own, phrase, means)
        return replace(self, tables={**self.tables, language: own})


def load_overlay(path: str | Path) -> Overlay:
    """Read a study's own words from a TOML file; all that is wrong in it is said at once."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise GroundingError(
            f"cannot be read ({type(error).__name__}). It must be a file of words in UTF-8; grounding.toml "
            "names it as seen from the study.",
            source=str(path),
        ) from None
    return parse_overlay(text, source=str(path))


def parse_overlay(text: str, *, source: str = "words") -> Overlay:
    r"""Turn the text of a file of words into an overlay.

    Examples
    --------
    >>> found = parse_overlay('format = 1\n[en.places]\nmeat = ["bangers"]')
    >>> found.tables
    {'en': {'places': {'meat': ('bangers',)}}}
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise GroundingError(f"is not valid TOML: {error}.", source=source) from None
    problems: list[Problem] = []
    tables: dict[str, Tables] = {}
    try:
        file = OverlayFile.model_validate(data)
    except ValidationError as error:
        problems = [explain(item, data, text, _known) for item in error.errors(include_url=False)]
        problems = [
            one
            if one.where == "format"
            else replace(one, what=f"{one.what.partition(', not ')[0].rstrip('.')}.")
            for one in problems
        ]  # what stands there may be what a participant said
    else:
        given = {code: own.model_dump(exclude_defaults=True) for code, own in file.__pydantic_extra__.items()}
        tables = {code: own for code, own in given.items() if own}
        problems = [*_accept(file.proposed, tables), *_contradictions(tables)]
    _refuse(problems, text, source)
    return Overlay(tables, hashlib.sha256(text.encode()).hexdigest(), source, text)


def _refuse(problems: list[Problem], text: str, source: str) -> None:
    """Raise where there are problems; keys that are what people say are left out, their line tells."""
    if problems:
        found = [located(problem, text) for problem in problems]
        found = [replace(one, where=re.sub(r"(\.compounds)\..*", r"\1", one.where)) for one in found]
        raise GroundingError("the words cannot be used.", source=source, problems=found)


def _like(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, sorted(known))


def _known(path: list[Any]) -> list[str]:
    """The keys known at a place of the file."""
    if not path:
        return [*OverlayFile.model_fields, *languages()]
    return list((Proposed if path[0] == "proposed" else LanguageTables).model_fields)


def _accept(proposed: list[Proposed], tables: dict[str, Tables]) -> Iterator[Problem]:
    """Put accepted proposals into the tables, and say which cannot be."""
    for number, one in enumerate(proposed):
        if not one.accept:
            continue
        try:
            _put(tables.setdefault(one.language, {}), one.phrase, one.means)
        except ValidationError:
            yield Problem("must be a place, a number or known classes of words.", f"proposed.{number}.means")


_CLASSES = TypeAdapter(Classes)


def _put(tables: Tables, phrase: str, means: str) -> None:
    """Add a phrase to tables, by what it means."""
    if means.isascii() and means.isdigit():
        name, key = "numbers", means
    elif " " in means:
        tables["compounds"] = {**tables.get("compounds", {}), phrase: _CLASSES.validate_python(means)}
        return
    else:
        is_class = means.isupper() and means not in (START, FINISH, EXIT)
        name, key = ("words", TypeAdapter(Class).validate_python(means)) if is_class else ("places", means)
    table = tables.get(name, {})
    tables[name] = {**table, key: (*table.get(key, ()), phrase)}


def _contradictions(tables: Mapping[str, Tables]) -> Iterator[Problem]:
    """Expressions that are said to mean two things."""
    for code, own in tables.items():
        known: dict[str, tuple[str, str]] = {}
        listed = [
            (name, key, form)
            for name, table in own.items()
            for key, forms in table.items()
            for form in ((key,) if name == "compounds" else forms)
        ]
        for name, key, form in listed:
            if known.setdefault(" ".join(form.lower().split()), (name, key)) != (name, key):
                yield Problem(
                    "has a word that stands elsewhere with another meaning.", f"{code}.{name}.{key}"
                )
