"""Everything that is found by name, one catalogue per seam: what fidm has, and what other packages add.

To add something to fidm, add its line below (a language is a folder of ``fidm/languages``, a task a file of
``fidm/tasks/builtin``; neither needs a line). Another package adds its own with an entry point of the
catalogue's group. Nothing is imported before it is asked for, so this module stands below all others.
"""

from __future__ import annotations

import logging
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fidm.errors import DataError, meant

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from fidm.grounding.base import Grounder
    from fidm.io.formats.base import Format
    from fidm.io.transcribe import Transcriber
    from fidm.model.action_models import ActionModel
    from fidm.model.channels import Channel
    from fidm_studies import Dataset, Reanalysis

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something is that has a name."""

    name: str  # what it is called
    package: str  # the distribution it comes from, such as ``fidm``
    value: str  # ``"module:attribute"``, or ``"module"`` where a package holds files


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue(Generic[T]):
    """What there is of one kind, by name; nothing is imported before it is asked for."""

    what: str  # what one of them is called in messages
    group: str  # the group of entry points by which other packages add theirs
    kind: str  # what each of them must be, as ``"module:Class"``
    built_in: Mapping[str, str]  # those that come with fidm: where each is, as ``"module:attribute"``
    named: str = "name"  # the attribute that must hold the name; empty where there is none
    classes: bool = False  # whether they are subclasses of ``kind`` rather than instances

    def places(self) -> dict[str, Place]:
        """Return where each is: first the built-in ones, which no other package can replace."""
        found = self._own()
        for one in self._others():
            found.setdefault(one.name, one)
        return found

    def names(self) -> tuple[str, ...]:
        """Return all names: the built-in ones, then those of other packages."""
        return tuple(self.places())

    def __contains__(self, name: str) -> bool:
        return name in self.built_in or name in self.places()

    def find(self, name: str) -> T:
        """Return the one of this name."""
        places = self._own() if name in self.built_in else self.places()
        if name not in places:
            raise DataError(f"There is no {self.what} {name!r}. {meant([name], places)}")
        found = self._load(places[name])
        called = getattr(found, self.named, None) if self.named else name
        if called != name:
            raise DataError(
                f"The entry point {name!r} of the package {places[name].package} leads to a {self.what} "
                f"whose {self.named} is {called!r}. The two names must agree: change one of them."
            )
        return found

    def resolve(self, text: str) -> T:
        """Return the one of this name, or what ``"module:attribute"`` leads to, which runs that module.

        Only for what a person wrote: a name out of a file that came from elsewhere is for :meth:`find`.
        """
        package = text.replace(":", ".").partition(".")[0]
        return self._load(Place(text, package, text)) if ":" in text else self.find(text)

    def loaded(self) -> dict[str, T]:
        """Return all that can be loaded, by name; a package that is broken is logged and left out."""
        found = {}
        for name in self.names():
            try:
                found[name] = self.find(name)
            except DataError as error:
                logger.warning("%s", error)
        return found

    def ignored(self, name: str | None = None) -> tuple[str, ...]:
        """Return what other packages add in vain because the name is taken, as sentences.

        ``name`` looks for this name alone.
        """
        places = self.places()
        return tuple(
            f"The {self.what} {one.name!r} of the package {one.package} is ignored, because "
            f"{places[one.name].package} has one of that name. It needs another name."
            for one in self._others()
            if places[one.name] != one and name in (None, one.name)
        )

    def _own(self) -> dict[str, Place]:
        """Where the built-in ones are."""
        return {name: Place(name, "fidm", value) for name, value in self.built_in.items()}

    def _others(self) -> tuple[Place, ...]:
        """What other packages add; of two with the same name, the one whose package comes first counts."""
        return _added(self.group, tuple(sys.path))

    def _load(self, place: Place) -> T:
        """What a place leads to; of a package that is broken, its name is told."""
        try:
            found, kind = pkgutil.resolve_name(place.value), pkgutil.resolve_name(self.kind)
        except (ImportError, AttributeError, SyntaxError, ValueError) as error:
            raise DataError(
                f"The {self.what} {place.name!r} of the package {place.package} cannot be loaded: {error}."
            ) from error
        is_class = isinstance(found, type)
        if not (is_class and issubclass(found, kind) if self.classes else isinstance(found, kind)):
            raise DataError(
                f"What is installed as the {self.what} {place.name!r} ({place.value}) is no "
                f"{'subclass of ' * self.classes}{self.kind.replace(':', '.')}."
            )
        checked: T = found
        return checked


@lru_cache(maxsize=64)
def _added(group: str, _path: tuple[str, ...]) -> tuple[Place, ...]:
    """The entry points of a group, sorted; looked for again where ``sys.path`` has changed."""
    from importlib.metadata import entry_points  # slow to import, and not needed for what is built in

    found = (
        Place(one.name, one.dist.name if one.dist else "", one.value.partition("[")[0].replace(" ", ""))
        for one in entry_points(group=group)
    )
    return tuple(sorted(found))


class Files(Catalogue[ModuleType]):
    """What there is of one kind, where a name leads to the package that holds its files."""

    def path(self, name: str, file: str) -> Traversable:
        """Return where a file of this name is, or would be."""
        from importlib.resources import files

        return files(self.find(name)) / file

    def read(self, name: str, file: str) -> str:
        """Return the text of a file."""
        path = self.path(name, file)
        if not path.is_file():
            package = self.places()[name].package
            raise DataError(f"The {self.what} {name!r} of the package {package} lacks the file {file}.")
        return path.read_text("utf-8")


_HERE = Path(__file__).parent

CHANNELS: Catalogue[type[Channel]] = Catalogue(
    "channel",
    "fidm.channels",
    "fidm.model.channels:Channel",
    {
        "gamma": "fidm.model.amounts:Gamma",
        "negative_binomial": "fidm.model.counts:NegativeBinomial",
        "poisson": "fidm.model.counts:Poisson",
        "log_normal": "fidm.model.amounts:LogNormal",
        "bernoulli": "fidm.model.counts:Bernoulli",
        "generalized_gamma": "fidm.model.amounts:GeneralizedGamma",
        "weibull": "fidm.model.amounts:Weibull",
        "shifted_negative_binomial": "fidm.model.counts:ShiftedNegativeBinomial",
        "truncated_negative_binomial": "fidm.model.counts:TruncatedNegativeBinomial",
        "zero_inflated_negative_binomial": "fidm.model.counts:ZeroInflatedNegativeBinomial",
        "zero_inflated_poisson": "fidm.model.counts:ZeroInflatedPoisson",
    },
    named="kind",
    classes=True,
)
"""Classes of effort channels, by the ``kind`` that saved fits name."""

ACTION_MODELS: Catalogue[ActionModel] = Catalogue(
    "action model",
    "fidm.action_models",
    "fidm.model.action_models:ActionModel",
    {
        "softmax": "fidm.model.action_models:SOFTMAX",
        "lapse": "fidm.model.action_models:LAPSE",
        "stickiness": "fidm.model.action_models:STICKINESS",
        "no_way_back": "fidm.model.action_models:NO_WAY_BACK",
        "discounting": "fidm.model.action_models:DISCOUNTING",
        "depth": "fidm.model.action_models:DEPTH",
        "nearest_goal": "fidm.model.action_models:NEAREST_GOAL",
        "chosen_goal": "fidm.model.action_models:CHOSEN_GOAL",
        "random": "fidm.model.action_models:RANDOM",
    },
)
"""Accounts of how people choose, by the names that comparisons give them; the first is the paper's."""

FORMATS: Catalogue[Format] = Catalogue(
    "format",
    "fidm.formats",
    "fidm.io.formats.base:Format",
    {
        "chat": "fidm.io.formats.chat:FORMAT",
        "elan": "fidm.io.formats.elan:FORMAT",
        "textgrid": "fidm.io.formats.textgrid:FORMAT",
        "srt": "fidm.io.formats.subtitles:SRT",
        "vtt": "fidm.io.formats.subtitles:VTT",
        "whisper": "fidm.io.formats.whisper:FORMAT",
        "csv": "fidm.io.formats.table:CSV",
        "tsv": "fidm.io.formats.table:TSV",
        "jsonl": "fidm.io.formats.table:JSONL",
    },
)
"""File formats of dialogs; where two have the same suffix, the first reads it."""

GROUNDERS: Catalogue[Callable[..., Grounder]] = Catalogue(
    "grounder",
    "fidm.grounders",
    "collections.abc:Callable",
    {
        "rules": "fidm.grounding.rules.grounder:Rules",
        "llm": "fidm.grounding.llm.grounder:LanguageModel",
        "hybrid": "fidm.grounding.hybrid:Hybrid",
    },
    named="",
)
"""What makes a grounder; that of another package is called without arguments."""

TRANSCRIBERS: Catalogue[Callable[..., Transcriber]] = Catalogue(
    "transcriber",
    "fidm.transcribers",
    "collections.abc:Callable",
    {
        "faster-whisper": "fidm.io.engines:FasterWhisper",
        "whisper.cpp": "fidm.io.engines:WhisperCpp",
        "pocketsphinx": "fidm.io.engines:PocketSphinx",
    },
    named="",
)
"""What makes a transcriber of recordings; called with ``model=`` and ``prompt=``."""

LANGUAGES = Files(
    "language",
    "fidm.languages",
    "types:ModuleType",
    {one.name: f"fidm.languages.{one.name}" for one in sorted((_HERE / "languages").glob("[a-z]*/"))},
    named="",
)
"""Packages with the files of a language, by its code."""

TASKS = Files(
    "task",
    "fidm.tasks",
    "types:ModuleType",
    {one.stem: "fidm.tasks.builtin" for one in sorted((_HERE / "tasks/builtin").glob("*.toml"))},
    named="",
)
"""Packages that hold a task file, by its name without ``.toml``."""

DATASETS: Catalogue[Dataset] = Catalogue("data set", "fidm.datasets", "fidm_studies:Dataset", {})
"""Published data sets: those of fidm-studies, and of other packages."""

REANALYSES: Catalogue[Reanalysis] = Catalogue("study", "fidm.reanalyses", "fidm_studies:Reanalysis", {})
"""Analyses of published data sets."""

SEAMS: Mapping[str, Catalogue[Any]] = {
    "channels": CHANNELS,
    "action-models": ACTION_MODELS,
    "formats": FORMATS,
    "grounders": GROUNDERS,
    "transcribers": TRANSCRIBERS,
    "languages": LANGUAGES,
    "tasks": TASKS,
    "datasets": DATASETS,
}
"""Where fidm can be extended: what ``fidm list`` lists."""
