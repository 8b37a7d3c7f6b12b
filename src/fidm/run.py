"""The whole line on a study: ground, fit, evidence, localize, reliability, compare, classify, report.

Each step remembers a hash of what it was made from and of what it wrote, in ``results/run.json``. A step
whose inputs and outputs are as they were is up to date and not done again, so that a run which was
interrupted goes on where it stopped. A ``fit.json`` that somebody else made is used as it is, as long as the
tables are not newer, and so is a ``results/compare.json`` of the same data.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from joblib import cpu_count

import fidm
from fidm.behind import places_behind, write_evidence
from fidm.classify.question import Protocol
from fidm.defaults import MAX_PEOPLE, FitOptions, GroundOptions, RunOptions
from fidm.errors import DataError, FidmError, count, listed
from fidm.evidence.evidence import find_evidence
from fidm.evidence.localization import localize
from fidm.experiments.compare import compare
from fidm.experiments.reliability import reliability
from fidm.files import hash_file, whole_file
from fidm.folder import RESULTS, StudyFolder, is_older
from fidm.grounding.review.apply import bring_up_to_date
from fidm.grounding.settings import read_settings
from fidm.grounding.store import FOLDER, given_tables
from fidm.io.columns import say_reasons
from fidm.io.formats.base import files_below
from fidm.io.study import GROUNDED, TABLES, read_manifest
from fidm.languages import WORDS, languages_with
from fidm.line import classify_study, fit_study, ground_study, silent
from fidm.model.effort import make_channels
from fidm.model.gaps import segment_uses
from fidm.plot.evidence import evidence_figure
from fidm.plot.save import save_figure, write_with_figures
from fidm.present.experiments import with_ends
from fidm.present.study import how_much
from fidm.present.summary import write_summary
from fidm.registry import LANGUAGES, SEAMS
from fidm.report.report import NAME, write_report
from fidm.tasks.behaviour import has_hidden
from fidm.tasks.kept import split_name
from fidm.tasks.spec import builtin_tasks, builtin_text
from fidm.types import Progress, leave_out

STATE = "run.json"
SCHEMA = 2

Outcome = Literal["done", "up to date", "left out"]


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one step."""

    step: str  # the verb
    outcome: Outcome  # whether there was anything to do
    said: str  # what was done, or why the step was left out
    warnings: tuple[str, ...] = ()  # what a reader must not miss
    notes: tuple[str, ...] = ()  # what it was made from, in words


class Done(NamedTuple):
    """What a step did, which files it wrote, and what a reader must not miss."""

    said: str
    wrote: list[Path]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def run_line(
    study: str | Path, options: RunOptions = RunOptions(), *, on_progress: Progress = silent
) -> Iterator[Step]:
    """Take a study from its dialogs, or its tables, to its report; give each step when it is finished."""
    line = _Line(Path(study), options, on_progress)
    memory = _Memory(line.results / STATE, again=options.again)
    for name, do, why_not in (
        ("ground", line.ground, line.no_dialogs),
        ("fit", line.fit, line.foreign_fit),
        ("evidence", line.evidence, None),
        ("localize", line.localize, line.no_map),
        ("reliability", line.reliability, None),
        ("compare", line.compare, line.no_groups),
        ("classify", line.classify, line.no_label),
        ("report", line.report, None),
    ):
        yield memory.step(name, line, do, why_not)


class _Line:
    """The steps on one study, which is opened once it has tables."""

    def __init__(self, folder: Path, options: RunOptions, on_progress: Progress) -> None:
        if not folder.is_dir():
            raise DataError("is not a folder.", source=str(folder))
        self.folder, self.results = folder, folder / RESULTS
        self.label, self.normal, self.seed = options.label, options.normal, options.seed
        self.workers = cpu_count() if options.workers is None else options.workers
        self.skip_bad, self.on_progress = leave_out(options.skip_bad, options.skip), on_progress
        self._opened: StudyFolder | None = None

    @property
    def opened(self) -> StudyFolder:
        """The study, read when it is first needed."""
        if self._opened is None:
            self._opened = StudyFolder.open(self.folder, skip_bad=self.skip_bad, on_progress=self.on_progress)
        return self._opened

    @cached_property
    def settings(self) -> list[object]:
        """What changes every result besides the study's files: versions, built-in tasks and words."""
        tasks = read_manifest(self.folder).tasks
        texts = [builtin_text(name) for name in tasks if name in builtin_tasks()]
        texts += [LANGUAGES.read(name, WORDS) for name in languages_with(WORDS)]
        packages = sorted({place.package for seam in SEAMS.values() for place in seam.places().values()})
        versions = [f"{name} {version(name)}" for name in packages if name not in ("", "fidm")]
        return [fidm.__version__, versions, self.skip_bad, texts]

    def options(self, name: str) -> list[object]:
        """The settings of a step: those of every step, and options that it looks at."""
        labels: list[object] = [self.label, self.normal] if name in ("compare", "classify", "report") else []
        is_drawn = name not in ("ground", "fit", "evidence", "compare")
        return [*self.settings, *labels, *([self.seed] if is_drawn else [])]

    def inputs(self, name: str) -> list[Path]:
        """The files and folders that a step is made from."""
        tasks = [one for one in read_manifest(self.folder).tasks if one not in builtin_tasks()]
        beside = [self.folder / split_name(one)[0] for one in tasks if not one.startswith("tasks/")]
        study = [self.folder / "study.toml", self.folder / "tasks", *beside]
        found = [path for one in TABLES for path in self.folder.glob(f"{one}*")]
        given = given_tables(self.folder).values()
        is_grounded = (self.folder / GROUNDED).is_file()
        tables = [path for path in found if not is_grounded or path not in given]
        if name == "ground":
            settings = read_settings(self.folder)
            named = [self.folder / settings.roles] if settings.roles else []
            named += [Path(settings.rules.words)] if settings.rules.words else []
            return [*study, *given, self.folder / "grounding.toml", *named, self._talks()]
        channels = make_channels(read_manifest(self.folder).channels, source=str(self.folder / "study.toml"))
        tables += [Path(inspect.getfile(type(one))) for one in channels]  # a class may be the study's own
        if name in ("fit", "compare"):
            return [*study, *tables]
        fitted = [*study, *tables, self.folder / "fit.json"]
        if name != "report":
            return [*fitted, *([self._talks()] if name == "classify" else [])]
        shown = ("localize", "reliability", "compare", "compare-models", "classify")
        results = [self.results / f"{one}.json" for one in shown]
        return [*fitted, *results, self.folder / FOLDER / "provenance.json"]

    def _talks(self) -> Path:
        return self.folder / read_settings(self.folder).talks

    # ------------------------------------------------------------------ why a step is left out

    def no_dialogs(self, _memory: _Memory) -> str | None:
        """Say that there are no dialogs, so that tables are taken as they are."""
        talks = self._talks()
        return None if talks.exists() else f"no dialogs in {talks.name}/; the tables are used as they are"

    def foreign_fit(self, memory: _Memory) -> str | None:
        """Say that fit.json was made by somebody else, and is not older than the tables."""
        fit = self.folder / "fit.json"
        if memory.again or not fit.exists() or memory.wrote("fit", fit):
            return None
        if is_older(fit, self.folder):
            return None
        return "fit.json was made by fidm fit, and is used as it is"

    def no_map(self, _memory: _Memory) -> str | None:
        """Say that a task has neither map nor coordinates, or a map that is partly hidden."""
        if not all(task.has_places for task in self.opened.tasks):
            return "the task is not drawn as a map"
        return "the task has hidden cells" if any(map(has_hidden, self.opened.tasks)) else None

    def no_groups(self, memory: _Memory) -> str | None:
        """Say that nobody's group is known, or that groups have been compared by somebody else."""
        is_own = memory.again or memory.wrote("compare", self.results / "compare.json")
        if not is_own and self.opened.find_comparison() is not None:
            return "compare.json was made by fidm compare, and is used as it is"
        return self.no_label(memory)

    def no_label(self, _memory: _Memory) -> str | None:
        """Say that nobody's status is known."""
        if self.label in self.opened.cohort.participants.columns:
            return None
        return f"participants have no column {self.label!r}"

    # ------------------------------------------------------------------ steps

    def ground(self) -> Done:
        """Ground the dialogs."""
        options = GroundOptions(skip_bad=bool(self.skip_bad))
        found = ground_study(self.folder, options, on_progress=self.on_progress)
        review = found.grounded.shares().get("needs_review", 0.0)
        uses, total = segment_uses(found.grounded.cohort), found.grounded.segments.height
        said = f"{count(len(found.grounded.dialogs), 'dialog')}, {count(total, 'segment')}"
        in_effort, in_choices = uses.select(pl.sum("in_effort", "in_choices")).row(0)
        if in_choices < total:
            said += f" ({in_effort:,} count in effort, {in_choices:,} can count in action sensitivity)"
        tables = [path for one in TABLES for path in self.folder.glob(f"{one}.parquet")]
        wrote = [self.folder / FOLDER / "provenance.json", *tables]
        return Done(f"{said}, {review:.1%} marked for review", wrote, found.warnings, (found.heard,))

    def fit(self) -> Done:
        """Learn what people share, and profile everybody."""
        options = FitOptions(workers=self.workers)
        found = fit_study(self.folder, options, skip_bad=self.skip_bad, on_progress=self.on_progress)
        who = count(len(found.profile), "participant")
        of = f" of {found.fit.n_people:,}" if found.fit.n_learned < found.fit.n_people <= MAX_PEOPLE else ""
        said = f"{who}, learned from {found.fit.n_learned:,}{of} ({found.part})"
        said += f"; {say_reasons(found.reasons)}" if found.reasons else ""
        return Done(said, [self.folder / name for name in found.files], found.warnings)

    def evidence(self) -> Done:
        """Find everybody's evidence."""
        fit, _ = self.opened.fit()
        found = find_evidence(fit, self.opened.cohort, workers=self.workers, on_progress=self.on_progress)
        written = write_evidence(found, places_behind(self.folder, found), self.results)
        shown = found.most_astray()
        if shown is not None:
            pictures = [self.results / "evidence.png", self.results / "evidence.pdf"]
            save_figure(evidence_figure(found, shown, self.opened.tasks, self.opened.cohort), pictures)
            written += pictures
        return Done(how_much(found), written)

    def localize(self) -> Done:
        """Test whether unexpected actions are where people went astray."""
        fit, _ = self.opened.fit()
        evidence = find_evidence(fit, self.opened.cohort, workers=self.workers, on_progress=self.on_progress)
        found = localize(evidence, self.opened.cohort, seed=self.seed, on_progress=self.on_progress)
        return Done(say_detours(found.row("route_divergence")), write_with_figures(found, self.results))

    def reliability(self) -> Done:
        """Say how reliable every parameter is."""
        fit, _ = self.opened.fit()
        found = reliability(
            self.opened.tasks,
            self.opened.cohort,
            fit=fit,
            learn_from=self.opened.part()[0],
            seed=self.seed,
            workers=self.workers,
            on_progress=self.on_progress,
        )
        return Done(count(len(found.parameters), "parameter"), write_with_figures(found, self.results))

    def compare(self) -> Done:
        """Compare people of different status."""
        people = self.opened.cohort.participants
        status = people[self.label].cast(pl.String)  # a code is the name of a group, too
        found = compare(
            self.opened.tasks,
            self.opened.cohort.with_participants(people.with_columns(status)),
            by=self.label,
            reference=self.normal if (status == self.normal).any() else None,
            channels=self.opened.channels,
            workers=self.workers,
            on_progress=self.on_progress,
        )
        who = count(int(found.groups["people"].sum()), "participant")
        said = f"{listed(found.table['contrast'].unique(maintain_order=True))}; {who}"
        return Done(said, write_with_figures(found, self.results))

    def classify(self) -> Done:
        """Classify people's status."""
        protocol = Protocol(label=self.label, normal=self.normal, seed=self.seed, workers=self.workers)
        made = classify_study(self.opened, protocol, skip_bad=self.skip_bad, on_progress=self.on_progress)
        summary = write_summary(made.found, self.results, simulated=self.opened.is_simulated)
        learned, held_out = made.found.flow.n("train"), made.found.flow.n("held-out")
        said = f"{count(len(made.found.representations), 'representation')}; "
        said += f"{count(learned, 'participant')} cross-validated"
        said += f", {held_out:,} held out" if held_out else ""
        return Done(said, [*write_with_figures(made.found, self.results), summary])

    def report(self) -> Done:
        """Write the report."""
        written = write_report(
            self.folder,
            label=self.label,
            normal=self.normal,
            skip_bad=self.skip_bad,
            seed=self.seed,
            workers=self.workers,
            on_progress=self.on_progress,
        )
        return Done(NAME, list(written))


def say_detours(row: Mapping[str, Any]) -> str:
    """Return how well unexpected actions point at detours, with what that rests on."""
    if row["auc"] is None:
        who = f"{count(row['n_people'], 'person', 'people')} with detours and other actions"
        return f"{who}: too few to judge whether the unexpected ones are detours"
    rests_on = f"{row['n_people']:,} of {row['n_people_all']:,} people, {count(row['n_events'], 'event')}"
    few = "; too few people for an interval" if row["auc_low"] is None else ""
    auc = with_ends(row, "auc", ".3f")
    return f"unexpected actions point at detours with an AUC of {auc} ({rests_on}{few})"


class _Memory:
    """What each step was made from and what it wrote, as hashes in a file."""

    def __init__(self, path: Path, *, again: bool) -> None:
        self.path, self.again = path, again
        try:
            said = json.loads(path.read_text("utf-8"))
            self.steps: dict[str, dict[str, Any]] = said["steps"] if said["schema"] == SCHEMA else {}
        except (OSError, ValueError, KeyError, TypeError):
            self.steps = {}

    def step(
        self,
        name: str,
        line: _Line,
        do: Callable[[], Done],
        why_not: Callable[[_Memory], str | None] | None,
    ) -> Step:
        """Do a step, unless it is up to date or cannot be done."""
        reason = why_not(self) if why_not is not None else None
        if reason is not None:
            return Step(name, "left out", reason)
        if name == "fit":
            bring_up_to_date(line.folder)  # with decisions of reviewers, which the tables may lack
        made_from = _hash(line.inputs(name), line.options(name))
        known = self.steps.get(name, {})
        is_same = known.get("made_from") == made_from and not self.again
        if is_same and all(_file_hash(line.folder / path) == old for path, old in known["wrote"].items()):
            return Step(name, "up to date", known["said"], tuple(known.get("warnings", ())))
        try:
            done = do()
        except FidmError as error:
            if name in ("ground", "fit", "evidence", "report"):
                raise
            return Step(name, "left out", error.message)
        if name == "ground":
            line._opened = None
            made_from = _hash(line.inputs(name), line.options(name))  # it names its task in study.toml
        hashes = {path.relative_to(line.folder).as_posix(): _file_hash(path) for path in done.wrote}
        told = {"said": done.said, "warnings": list(done.warnings)}
        self.steps[name] = {"made_from": made_from, "wrote": hashes, **told}
        with whole_file(self.path) as part:
            part.write_text(json.dumps({"schema": SCHEMA, "steps": self.steps}, indent=1) + "\n", "utf-8")
        return Step(name, "done", done.said, done.warnings, done.notes)

    def wrote(self, name: str, path: Path) -> bool:
        """Whether a file is as the step left it."""
        place = path.relative_to(self.path.parent.parent).as_posix()
        return name in self.steps and self.steps[name]["wrote"].get(place) == _file_hash(path)


def _hash(paths: Iterable[Path], settings: Sequence[object]) -> str:
    """A hash of files, of all files in folders, and of settings."""
    found = hashlib.sha256(json.dumps(settings).encode())
    for path in paths:
        inside = sorted(files_below(path)) if path.is_dir() else [path]
        for file in inside:
            found.update(f"\0{file.relative_to(path.parent).as_posix()}\0{_file_hash(file)}".encode())
    return found.hexdigest()


def _file_hash(path: Path) -> str:
    """A hash of a file's content; empty where there is none."""
    return hash_file(path) if path.is_file() else ""
