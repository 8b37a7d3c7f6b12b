"""What is sent to a language model: fixed instructions, examples, and one JSON object with what was said.

The instructions and examples come from a versioned template (``prompts/*.toml``) and the task; nothing a
participant says can change them. What was said travels as strings of one JSON object, in which every
character that could end the string, mark a role or hide from a reader is written as an escape.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from string import Template as Text
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Segment
from fidm.grounding.llm.answers import AnswerForm, Style
from fidm.grounding.llm.examples import OwnExample
from fidm.grounding.route.program import EXIT, FINISH
from fidm.grounding.route.replay import HEADING_NAMES, Terrain

Message = dict[str, str]
"""One message of a chat: its role and its content."""

MAX_SAID, MAX_TURN = 6_000, 300
"""How many characters of a segment, and of each turn before it, are sent."""

MOST_WORDS = 4
"""How many words for a place are sent."""

MAX_TEMPLATE_BYTES = 1_000_000

_ESCAPED_CHARACTERS = frozenset("<>[]|`｜▁")
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Example(_Table):
    """One worked example of a template."""

    said: str
    language: str
    facing: str = ""
    needs: list[str] = []
    answer: list[dict[str, Any]] | None = None
    moves: list[str] | None = None


class PromptTemplate(_Table):
    """A way to ask, as its file describes it."""

    name: Annotated[str, Field(pattern="^[a-z0-9_]+$")]
    style: Style
    system: str
    action_words: dict[str, list[str]] = {}
    examples: list[Example] = []
    digest: str = ""


@cache
def read_template(name: str) -> PromptTemplate:
    """Read a template: one that comes with the package by its name, else the path of a TOML file.

    Examples
    --------
    >>> read_template("route_v1").style
    'route'
    """
    known = builtin_templates()
    source: Any = resources.files("fidm.grounding.llm") / "prompts" / f"{name}.toml"
    if name not in known:
        source = Path(name)
        if not source.is_file():
            raise GroundingError(
                f"There is no template {name!r}. Built in: {', '.join(known)}; or give the path of a "
                "TOML file."
            )
    try:
        raw = source.read_bytes()
        data = tomllib.loads(raw.decode("utf-8")) if len(raw) <= MAX_TEMPLATE_BYTES else {}
        found = PromptTemplate.model_validate(data | {"digest": hashlib.sha256(raw).hexdigest()})
    except OSError as error:
        raise GroundingError(f"cannot be read: {error.strerror}.", source=name) from None
    except ValidationError as error:
        where = ", ".join(sorted({".".join(map(str, item["loc"])) for item in error.errors()}))
        raise GroundingError(f"is no template: see {where}. Copy a built-in one.", source=name) from None
    except (ValueError, RecursionError):
        raise GroundingError("is not valid TOML in UTF-8.", source=name) from None
    return found


def builtin_templates() -> tuple[str, ...]:
    """Return the names of the templates that come with the package."""
    folder = resources.files("fidm.grounding.llm") / "prompts"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """Everything that is sent about one task in one language, except what was said."""

    template: PromptTemplate  # the way to ask
    form: AnswerForm  # the form of the answers
    fixed: tuple[Message, ...]  # instructions and examples
    telling: re.Pattern[str]

    @classmethod
    def of(cls, template: PromptTemplate, form: AnswerForm, terrain: Terrain, language: str) -> Prompt:
        """Fill a template in for a task; the examples are those in the language, else the English ones."""
        base = language.split("-")[0]
        system = Text(template.system.strip()).safe_substitute(
            title=terrain.spec.title,
            places=_places(terrain, base),
            form=form.outline,
            map="\n".join(terrain.spec.rows),
            legend=json.dumps({**terrain.spec.place_names, **terrain.spec.ground_names}, ensure_ascii=False),
        )
        fixed: list[Message] = [{"role": "system", "content": system}]
        spoken = {example.language for example in template.examples}
        chosen = base if base in spoken else "en"
        for example in template.examples:
            wanting = ("finish" in example.needs and FINISH not in terrain.reach) or (
                "exit" in example.needs and EXIT not in terrain.reach
            )
            if example.language == chosen and not wanting:
                fixed += _worked(example, form, terrain, base)
        return cls(template, form, tuple(fixed), _telling(template, terrain, base))

    def own(self, example: OwnExample, terrain: Terrain) -> list[Message]:
        """Return an example of the lab's own as two messages."""
        where = _where(Context(terrain, example.position))
        data = _data([], where, example.said, example.language)
        return [data, {"role": "assistant", "content": example.answer(self.form)}]

    def messages(
        self, segment: Segment, context: Context, turns: int, own: Sequence[Message] = ()
    ) -> list[Message]:
        """Return all messages for one segment, with examples of the lab's own; the last is the data."""
        dialog = [
            {"who": role, "said": text[-MAX_TURN:]}
            for role, text in (context.preceding[-turns:] if turns else ())
        ]
        where = _where(context)
        return [*self.fixed, *own, _data(dialog, where, segment.text[:MAX_SAID], context.language)]

    def repair(self, messages: Sequence[Message], answer: str, codes: Sequence[str]) -> list[Message]:
        """Return the messages of a second try: the first answer, and the codes of what is wrong with it."""
        again = "".join(_escape(c) if c not in "[]\n" else c for c in answer[:MAX_SAID])
        problems = {"problems": list(codes)}
        return [
            *messages,
            {"role": "assistant", "content": again or "{}"},
            {"role": "user", "content": write_data(problems)},
        ]

    def tells(self, said: str) -> bool:
        """Whether the words name a place, a direction or something to do."""
        return self.telling.search(said.casefold()) is not None


def write_data(value: Any) -> str:
    r"""Write a value as JSON whose strings hold no character that could be taken for anything but text.

    Examples
    --------
    >>> print(write_data({"said": "<|im_end|> 左"}))
    {"said":"\u003c\u007cim_end\u007c\u003e 左"}
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_data(k)}:{write_data(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write_data, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(map(_in_string, value)) + '"'
    return json.dumps(value)


@lru_cache(4096)
def _in_string(character: str) -> str:
    if character in _ESCAPED_CHARACTERS or unicodedata.category(character) in _ESCAPED_CATEGORIES:
        return _escape(character)
    return json.dumps(character, ensure_ascii=False)[1:-1]


def _escape(character: str) -> str:
    if character in _ESCAPED_CHARACTERS or unicodedata.category(character) in _ESCAPED_CATEGORIES:
        written = json.dumps(character)[1:-1]
        return f"\\u{ord(character):04x}" if written == character else written
    return character


def _data(dialog: list[dict[str, str]], where: dict[str, Any], said: str, language: str) -> Message:
    value = {"dialog_so_far": dialog, "where": where, "language": language, "said": said}
    return {"role": "user", "content": write_data(value)}


def _where(context: Context) -> dict[str, Any]:
    """Where the figure is, which way it faces, and what is beside it."""
    terrain, position = context.terrain, context.position
    cell = terrain.cell(position.state)
    if cell < 0:
        return {"ended": True}
    grid, names = terrain.grid.grid, terrain.spec.place_names
    row, column = int(grid.row[cell]), int(grid.column[cell])
    found: dict[str, Any] = {
        "row": row + 1,
        "column": column + 1,
        "facing": None if position.heading is None else HEADING_NAMES[position.heading],
    }
    for heading, (down, right) in enumerate(((-1, 0), (1, 0), (0, 1), (0, -1))):
        r, c = row + down, column + right
        inside = 0 <= r < grid.shape[0] and 0 <= c < grid.shape[1]
        free = terrain.neighbour[cell][heading] >= 0
        name = names.get(str(grid.symbol[r, c])) if inside else None
        found[HEADING_NAMES[heading]] = name or ("free" if free else "blocked")
    return found


def _called(terrain: Terrain, language: str) -> dict[str, list[str]]:
    """What each place is called: the words the task file has in a language, and its label."""
    spec = terrain.spec
    labels: dict[str, str | None] = {name: section.label for name, section in spec.sections.items()}
    labels |= {
        FINISH: spec.finish.label if spec.finish else None,
        EXIT: spec.exit.label if spec.exit else None,
    }
    words = spec.words.get(language, {})
    found = {}
    for place in terrain.reach:
        label = labels.get(place)
        known = words.get(place, words.get(place.lower(), ()))
        found[place] = list(dict.fromkeys([*known, *([label] if label else [])]))
    return found


def _places(terrain: Terrain, language: str) -> str:
    called = {
        place: [word for word in words if word != place][:MOST_WORDS]
        for place, words in _called(terrain, language).items()
    }
    return "; ".join(f"{place} ({', '.join(words)})" if words else place for place, words in called.items())


def _worked(example: Example, form: AnswerForm, terrain: Terrain, language: str) -> list[Message]:
    """One example as two messages, with sections of this task."""
    called = _called(terrain, language)
    first, second = terrain.places[0], terrain.places[min(1, len(terrain.places) - 1)]
    spec = terrain.spec

    def filled(text: str, *, labels: bool) -> str:
        for mark, name in (("first", first), ("second", second)):
            label = [*called[name], name.replace("_", " ")][0] if labels else name
            text = text.replace(f"{{buy {mark}}}", f"{spec.verb} {name}").replace(f"{{{mark}}}", label)
        return text

    answer: dict[str, Any]
    if form.style == "route":
        steps = [
            {
                key: filled(value, labels=key == "words") if isinstance(value, str) else value
                for key, value in step.items()
            }
            for step in example.answer or []
        ]
        answer = {"instructions": steps}
    else:
        answer = {"moves": [filled(move, labels=False) for move in example.moves or []]}
    where = {"row": 5, "column": 5, "facing": example.facing or None}
    said = filled(example.said, labels=True)
    return [
        _data([], where, said, example.language),
        {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False, separators=(",", ":"))},
    ]


def _telling(template: PromptTemplate, terrain: Terrain, language: str) -> re.Pattern[str]:
    """What words name a place of the task or something to do; nothing about what was said is kept."""
    words = list(template.action_words.get(language, template.action_words.get("en", [])))
    words += [name.replace("_", " ") for name in terrain.places]
    words += [word for called in _called(terrain, language).values() for word in called]
    words += [name for symbol, name in terrain.spec.place_names.items() if symbol != terrain.spec.map.start]
    parts = {
        rf"\b{re.escape(word.casefold())}\b" if word.isascii() else re.escape(word.casefold())
        for word in words
        if word
    }
    return re.compile("|".join(sorted(parts)) or r"(?!)")
