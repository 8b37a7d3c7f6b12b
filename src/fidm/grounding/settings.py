"""The file ``grounding.toml`` of a study: what differs from the defaults on the way from words to moves.

    talks = "talks"             # where the dialogs are
    names = "file"              # P001.cha; or "folder": P001/visit1.cha; or "{participant}_{episode}"
    by = "rules"                # or "llm", "hybrid", or a grounder of another package
    language = "yue"            # or the path of a language file

    skip = ["notes.json"]       # files among the dialogs that are none
    roles = "roles.csv"         # who is who, file by file: the columns file, speaker, role

    [speakers]                  # who is who, by the names the files use
    SPEAKER_00 = "assessor"

    [languages]                 # what it means when a file says its language is …
    zh = "yue"

    [columns]                   # of CSV and JSONL files
    text = "utterance"

    [counting]                  # see fidm.grounding.segment.Counting
    [segmenting]                # see fidm.grounding.segment.Segmenting
    [weighing]                  # see fidm.grounding.dialog.Weighing
    [rules]                     # see fidm.grounding.rules.grounder.Rules
    [llm]                       # see fidm.grounding.llm.grounder.LanguageModel

Keys nobody knows are errors, so that a slip of the pen never leaves a default in force.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fidm.errors import DataError, GroundingError, Problem
from fidm.grounding.base import Grounder
from fidm.grounding.dialog import Settings, Weighing
from fidm.grounding.rules.grounder import SURE, Rules
from fidm.grounding.segment import Counting, Kind, Segmenting
from fidm.grounding.whereabouts import KNOWN
from fidm.io.dialogs import name_pattern
from fidm.io.formats.checks import Roles, load_roles
from fidm.io.talk import Transcripts
from fidm.registry import GROUNDERS
from fidm.tasks.spec import did_you_mean

if TYPE_CHECKING:
    from fidm.grounding.llm.examples import OwnExample

FILE = "grounding.toml"
ASKING = ("llm", "hybrid")
"""Grounders that ask a language model; [llm] is for them alone."""


NOT_THE_MODELS = {"endpoint", "examples", "check_share", "model_weight", "workers"}
"""Keys of [llm] that are not passed on to the language model as they are."""


def _known_grounder(name: str) -> str:
    if name not in GROUNDERS:
        raise ValueError(f"must be one of {', '.join(GROUNDERS.names())}")
    return name


def _known_names(names: str) -> str:
    try:
        name_pattern(names)
    except DataError as error:
        raise ValueError(error.message) from None
    return names


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class CountingTable(_Table):
    """What counts as a character, a turn and a pause."""

    fillers: bool = True
    retracings: bool = True
    punctuation: bool = False
    pause_above_s: float = Field(0.25, ge=0, le=60)
    untimed_pause_s: float = Field(0.3, ge=0, le=60)
    after_assessor: bool = True
    duration: Literal["speech", "turns"] = "speech"
    turns: Literal["participant", "both"] = "participant"


class SegmentingTable(_Table):
    """What ends a segment."""

    closes: list[Kind] = Field(default_factory=lambda: list(Segmenting().closes))


class WeighingTable(_Table):
    """What moves in doubt count."""

    doubtful: float = Field(0.0, ge=0, le=1)
    keep_talk: bool = False
    sure: float = Field(KNOWN, gt=0.5, le=1)


class RulesTable(_Table):
    """The rules grounder."""

    turns: Literal["walker", "map"] | None = None
    sides: Literal["walker", "map", "listener"] | None = None
    unknown: float = Field(0.25, ge=0, le=1)
    sure: float = Field(SURE, gt=0, le=1)
    words: str = ""


class ModelTable(_Table):
    """A language-model server."""

    endpoint: str = "http://127.0.0.1:8080/v1"
    model: str | None = None
    template: str = "route_v1"
    temperature: float | None = Field(None, ge=0, le=2)
    samples: int = Field(1, ge=1, le=64)
    logprobs: bool = False
    timeout_s: float = Field(120.0, gt=0)
    retries: int = Field(4, ge=0, le=20)
    model_file: str | None = None
    max_instructions: int | None = Field(None, ge=1, le=64)
    examples: Literal["template", "reviewed"] = "template"
    max_examples: int = Field(6, ge=1, le=32)
    check_share: float = Field(1.0, ge=0, le=1)
    model_weight: float = Field(0.5, gt=0, lt=1)
    workers: int = Field(8, ge=1, le=256)


class GroundingFile(_Table):
    """Everything ``grounding.toml`` may say."""

    talks: str = "talks"
    names: Annotated[str, AfterValidator(_known_names)] = "file"
    by: Annotated[str, AfterValidator(_known_grounder)] = "rules"
    language: str = ""
    context_turns: int = Field(6, ge=0, le=100)
    untimed: Literal["problem", "keep"] = "problem"
    speakers: dict[str, Literal["participant", "assessor", "other"]] = Field(default_factory=dict)
    roles: str = ""
    skip: list[str] = Field(default_factory=list)
    languages: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    counting: CountingTable = Field(default_factory=CountingTable)
    segmenting: SegmentingTable = Field(default_factory=SegmentingTable)
    weighing: WeighingTable = Field(default_factory=WeighingTable)
    rules: RulesTable = Field(default_factory=RulesTable)
    llm: ModelTable = Field(default_factory=ModelTable)

    def settings(self) -> Settings:
        """Return the settings that change numbers."""
        return Settings(
            counting=Counting(**self.counting.model_dump()),
            segmenting=Segmenting(tuple(self.segmenting.closes)),
            weighing=Weighing(**self.weighing.model_dump()),
            language=self.language,
            context_turns=self.context_turns,
        )

    def who_is_who(self, study: Path) -> Roles:
        """Return who is who in the dialogs of a study: in all files, and file by file."""
        everywhere = load_roles(self.speakers)
        if not self.roles:
            return everywhere
        by_file = load_roles(study / self.roles)
        return replace(by_file, everywhere={**everywhere.everywhere, **by_file.everywhere})

    def in_languages(self, dialogs: Transcripts) -> Transcripts:
        """Return dialogs with what they say of their language read as [languages] has it."""
        if not self.languages:
            return dialogs
        found = (replace(one, language=self.languages.get(one.language, one.language)) for one in dialogs)
        return replace(dialogs, items=tuple(found))

    def grounder(
        self,
        *,
        cache: Path | None,
        allow_remote: bool = False,
        api_key: str | None = None,
        reviewed: Sequence[OwnExample] = (),
    ) -> Grounder:
        """Return the grounder that is asked for; a language model's server is not called yet."""
        if self.by not in ("rules", *ASKING):
            return _made(self.by)
        rules = Rules(**self.rules.model_dump())
        if self.by == "rules":
            return rules
        from fidm.grounding.hybrid import Hybrid
        from fidm.grounding.llm.grounder import LanguageModel

        model = LanguageModel(
            self.llm.endpoint,
            context_turns=self.context_turns,
            cache=cache,
            allow_remote=allow_remote,
            api_key=api_key,
            examples=reviewed if self.llm.examples == "reviewed" else (),
            **self.llm.model_dump(exclude=NOT_THE_MODELS),
        )
        if self.by == "llm":
            return model
        return Hybrid(rules, model, check_share=self.llm.check_share, model_weight=self.llm.model_weight)


def _made(name: str) -> Grounder:
    """A grounder of another package."""
    made = GROUNDERS.find(name)()
    if not isinstance(made, Grounder):
        raise GroundingError(
            f"What is installed as {name!r} makes no grounder: that has name, provenance, ground and close."
        )
    return made


def read_settings(study: str | Path) -> GroundingFile:
    """Read a study's ``grounding.toml``; the defaults where there is none."""
    path = Path(study) / FILE
    if not path.exists():
        return GroundingFile()
    try:
        data: Any = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise GroundingError(f"cannot be read ({type(error).__name__}).", source=str(path)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise GroundingError(f"is not valid TOML: {error}.", source=str(path)) from None
    try:
        found = GroundingFile.model_validate(data)
        return _beside(found, Path(study))
    except ValidationError as error:
        problems = [_explained(item) for item in error.errors(include_url=False, include_input=False)]
        raise GroundingError("cannot be used.", source=str(path), problems=problems) from None


def _explained(item: Any) -> Problem:
    """One thing that is wrong in the file, in words."""
    where = [str(part) for part in item["loc"]]
    if item["type"] == "extra_forbidden":
        table: Any = GroundingFile
        for part in where[:-1]:
            table = table.model_fields[part].annotation
        known = list(table.model_fields)
        return Problem("is no known key.", ".".join(where), hint=did_you_mean(where[-1], known))
    said = (
        item["msg"]
        .removeprefix("Value error, ")
        .replace("Input should be", "must be")
        .replace("valid list", 'list, as in ["prompt"]')
    )
    return Problem(f"{said.rstrip('.')}.", ".".join(where))


def _beside(found: GroundingFile, study: Path) -> GroundingFile:
    """The same settings, with files that lie in the study named from there."""

    def place(name: str | None) -> str | None:
        if name and not Path(name).is_absolute() and (study / name).is_file():
            return str(study / name)
        return name

    llm = found.llm.model_copy(
        update={"model_file": place(found.llm.model_file), "template": place(found.llm.template)}
    )
    rules = found.rules
    if rules.words:
        rules = rules.model_copy(update={"words": str(study / rules.words)})
    return found.model_copy(update={"language": place(found.language), "rules": rules, "llm": llm})
