"""The one door to a study: its people, whom to learn from, its dialogs, its fit, and the results kept in it.

Results lie in ``STUDY/results`` and are found again by their :class:`~fidm.record.Record`: one counts only
if it was made by this version, on these tasks, from these data and, where a fit takes part, with this fit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fidm.classify import result as classified
from fidm.classify.result import Classification, Flow
from fidm.cohort import Cohort
from fidm.errors import DataError, FidmError, FitError, count, remedy
from fidm.evidence.localization import Localization, table_schema
from fidm.experiments.comparison import Comparison, hash_columns, hash_conditions
from fidm.experiments.contrasts import asked_for
from fidm.experiments.learning import Learning
from fidm.experiments.reliability import Reliability, hash_halves, learned_numbers
from fidm.experiments.rivals import ModelComparison
from fidm.experiments.shared import Blocks, fit_learnable, groups_of
from fidm.files import is_interrupted
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit, hash_fit, load_fit
from fidm.grounding.review.apply import bring_up_to_date
from fidm.grounding.settings import read_settings
from fidm.grounding.store import given_tables
from fidm.io.columns import count_reasons, n_without, say_reasons
from fidm.io.dialogs import read
from fidm.io.formats.checks import load_roles
from fidm.io.study import Study, read_manifest
from fidm.io.talk import Transcripts
from fidm.model.channels import Channel
from fidm.model.effort import awaits_review, make_channels, paper_channels
from fidm.model.gaps import learners_of
from fidm.record import Record, hash_cohort, hash_values, read_record
from fidm.registry import TASKS
from fidm.simulate.twin import SIMULATION
from fidm.tasks.compile import load_tasks
from fidm.tasks.model import TaskModel
from fidm.tasks.together import TaskSetCheck, check_tasks
from fidm.types import Progress, SkipBad

RESULTS = "results"
"""The folder of a study that experiments write to."""


def checked_parts(
    study: Study, model: Model, skip_bad: SkipBad, only: pl.Series | None = None
) -> Iterator[Cohort]:
    """Read a study part by part, and check each against the tasks and the channels."""
    strict, skip = not skip_bad, skip_bad if isinstance(skip_bad, str) else "participant"
    for batch in study.batches(tasks=model.tasks.tasks, strict=strict, skip=skip, only=only):
        yield model.check(batch, strict=strict, skip=skip)


@dataclass(frozen=True, slots=True, eq=False)
class StudyFolder:
    """A study that has been opened: decisions of reviewers are applied, its people are read and checked."""

    path: Path  # where it is
    tasks: tuple[TaskModel, ...]  # its tasks
    cohort: Cohort  # everybody whose data can be used
    excluded: pl.DataFrame  # ``participant`` and ``reason`` of everybody who takes no part
    # What a reader must not miss, such as decisions of reviewers that were applied just now.
    notes: tuple[str, ...] = ()
    # The effort channels that study.toml names; None where it names none, and the paper's are meant.
    channels: tuple[Channel, ...] | None = None
    skip: SkipBad = False  # what is left out where data have problems

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        task: Sequence[str] = (),
        skip_bad: SkipBad = False,
        on_progress: Progress | None = None,
    ) -> StudyFolder:
        """Open a study.

        ``task`` names tasks or their files, by default those that study.toml names. ``skip_bad`` leaves out
        people whose data have problems, instead of refusing the study; ``"episode"`` and ``"rest"`` only the
        episodes, or what follows in them.
        """
        folder = Path(path)
        require_grounded(folder)
        applied = bring_up_to_date(folder, on_progress=on_progress)
        study = Study(folder)
        tasks = study_tasks(study, task)
        channels = study_channels(study)
        model = Model(tasks, channels=channels)
        parts = list(checked_parts(study, model, skip_bad))
        cohort = parts[0] if len(parts) == 1 else Cohort.concat(parts)
        if not len(cohort):
            raise nobody_left(study, cohort.problems)
        notes = () if applied is None else (applied,)
        return cls(folder, tasks, cohort, study.excluded(), notes, channels, skip_bad)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why people are excluded, and how many."""
        return count_reasons(self.excluded)

    @property
    def n_left_out(self) -> int:
        """How many people were left out because of problems in their data."""
        return n_without(self.cohort.problems, self.cohort.ids)[0]

    @property
    def is_simulated(self) -> bool:
        """Whether the people are simulated."""
        return (self.path / SIMULATION).exists()

    @property
    def results(self) -> Path:
        """Where its results are."""
        return self.path / RESULTS

    def part(self, split: str | None = None) -> tuple[Cohort, str]:
        """Return whom to learn from and what they are called: those in ``train``, if there is a split.

        People of whom there is no data are not among them.
        """
        ids, said = choose_part(self.cohort.participants, split, source=str(self.path))
        if ids is None:
            return learners_of(self.cohort, said)
        return learners_of(self.cohort[np.flatnonzero(self.cohort.ids.is_in(ids.implode()).to_numpy())], said)

    def fit(
        self, use: Path | None = None, *, name_file: bool = True, one_by_one: bool = False
    ) -> tuple[Fit, str]:
        """Return what the study's people share, and where it comes from in words.

        It is the file given, else the study's own ``fit.json``, else it is learned now from the training
        part.

        Parameters
        ----------
        use : Path, optional
            The file of a fit.
        name_file : bool
            Whether the words name the file.
        one_by_one : bool
            Whether people are estimated one by one, which the words then say, where there are too few to
            learn how people differ; otherwise that is an error.
        """
        path = use if use is not None else self.path / "fit.json"
        if use is not None or path.exists():
            fit = self.load_fit(path)
            own = " of this study" if use is None and fit.n_learned <= len(self.cohort) else ""
            said = f"learned {'' if own else 'earlier '}from {count(fit.n_learned, 'participant')}{own}"
            said += f", {path}" if name_file else ""
            if use is None and is_older(path, self.path):
                said += (
                    ". The study's tables are newer than that: fit it again (fidm fit) if they have changed"
                )
            return fit, said
        learners, part = self.part()
        silent = self.channels is None and not learners.n_segments  # nothing was said that could be missing
        alone, channels = "", () if silent else self.channels or paper_channels()
        try:
            with naming_study(self.path, learners):
                fit, failures = fit_learnable(self.tasks, learners, channels)
        except FitError as error:
            if not one_by_one:
                raise
            fit, failures = fit_learnable(self.tasks, learners, channels, method="mle")
            alone = f". People are estimated one by one: {error.message.rstrip('.')}"
        said = f"learned now from {count(fit.n_learned, 'participant')} ({part}){alone}"
        for name, why in failures.items():
            said += f". {name} is left out: {why.rstrip('.')}"
        return fit, said

    def load_fit(self, path: Path) -> Fit:
        """Read a fit of the study's tasks, which may use channels of the study's own."""
        return load_fit(path, self.tasks, channels=[type(one) for one in self.channels or ()])

    # ------------------------------------------------------------------ results

    def find_reliability(self, fit: Fit) -> Reliability | None:
        """Return the study's reliability, if it was found from these data with this fit."""
        record, said = self._saved("reliability")
        if record is None or record.settings.get("learned") != hash_values(learned_numbers(fit)):
            return None
        if dealt := record.settings.get("dealt"):
            try:
                if dealt != hash_halves(self.cohort, record.settings["halves"], record.seed or 0):
                    return None
            except FidmError:
                return None
        return Reliability(
            record,
            tuple(said["parameters"]),
            pl.DataFrame(said["reliability"], infer_schema_length=None),
            tuple(said["notes"]),
            said["not_learned"],
        )

    def find_localization(self, fit: Fit) -> Localization | None:
        """Return the study's localisation, if it is of these data and this fit; without single people."""
        record, said = self._saved("localize")
        if record is None or record.settings.get("fit_sha256") != hash_fit(fit):
            return None
        table = pl.DataFrame(said["anchors"], schema=table_schema())
        return Localization(table, pl.DataFrame(), tuple(said["notes"]), record)

    def find_comparison(self) -> Comparison | None:
        """Return the study's comparison of groups, if it is of these data and of what is known of people."""
        record, said = self._saved("compare")
        if record is None:
            return None
        by, adjust = record.settings["by"], record.settings["adjust"]
        if record.settings.get("within_people"):
            known = hash_conditions(self.cohort, by) if by in self.cohort.episodes.columns else None
        else:
            try:
                asked = asked_for(self.cohort.participants, by, adjust)
                cluster = record.settings.get("cluster")
                known = hash_columns(self.cohort, [*asked, *([] if cluster is None else [cluster])])
            except (FidmError, pl.exceptions.ColumnNotFoundError):
                return None
        return Comparison.of(record, said) if record.settings.get("known") == known else None

    def find_learning(self) -> Learning | None:
        """Return the study's learning curve, if it is of these data and blocks."""
        record, said = self._saved("learning")
        if record is None:
            return None
        try:
            blocks = hash_values(Blocks.of(self.cohort, record.settings["by"]).of_episode)
        except FidmError:
            return None
        return Learning.of(record, said) if record.settings["blocks"] == blocks else None

    def find_model_comparison(self) -> ModelComparison | None:
        """Return the study's comparison of accounts of choice, if it is of these data and groups."""
        record, said = self._saved("compare-models")
        if record is None:
            return None
        try:
            groups = hash_values(groups_of(self.cohort, record.settings["together"]))
        except DataError:
            return None
        return ModelComparison.of(record, said) if record.settings.get("groups") == groups else None

    def find_classification(self, *, label: str, normal: str) -> Classification | None:
        """Return the study's classification, if it is of these data and labels."""
        from fidm.classify.question import ask

        record, said = self._saved("classify")
        if record is None or (record.settings["label"], record.settings["normal"]) != (label, normal):
            return None
        asked = {name: record.settings[name] for name in ("label", "normal", "together", "folds")}
        try:
            question = ask(self.cohort, **asked)
        except FidmError:
            return None
        predictions = self.results / "classify-predictions.csv"
        if record.settings["labels"] != hash_values(question.label) or not predictions.is_file():
            return None
        tables = {
            name: pl.DataFrame(said[name], schema=getattr(classified, name.upper()))
            for name in classified.TABLES
            if name != "predictions"
        }
        return Classification(
            record=record,
            flow=Flow(**said["flow"]),
            representations=tuple(said["representations"]),
            predictions=pl.read_csv(predictions, schema=classified.PREDICTIONS),
            not_run=said["not_run"],
            notes=tuple(said["notes"]),
            **tables,
        )

    def _saved(self, experiment: str) -> tuple[Record | None, dict[str, Any]]:
        """A result with its record, if it is about these tasks and data and of this version."""
        found = read_record(self.results / f"{experiment}.json")
        if found is None:
            return None, {}
        now = Record.of(experiment, self.tasks)
        record, said = found
        same = (record.experiment, record.version, record.tasks) == (now.experiment, now.version, now.tasks)
        return (record, said) if same and record.data == hash_cohort(self.cohort) else (None, {})


def study_channels(study: Study) -> tuple[Channel, ...] | None:
    """Return the effort channels that study.toml names; None where it names none."""
    return make_channels(study.channels, source=str(study.folder / "study.toml")) or None


def study_tasks(study: Study, task: Sequence[str] = ()) -> tuple[TaskModel, ...]:
    """Return the tasks with these names or files, or else those that study.toml names."""
    tasks = tuple(one for name in task for one in load_tasks(name)) or study.load_tasks()
    if not tasks:
        raise _no_tasks(study.folder)
    return tasks


def find_tasks(named: Sequence[str]) -> tuple[tuple[TaskModel, ...], Path | None]:
    """Return the tasks of these names or files; or of the one study folder that is named, and the folder."""
    folders = [name for name in named if name not in TASKS and Path(name).is_dir()]
    if not folders:
        return tuple(task for name in named for task in load_tasks(name)), None
    if len(named) > 1:
        raise DataError("A study is checked on its own: give one folder, or tasks.", source=folders[0])
    folder = Path(folders[0])
    tasks = tuple(
        task
        for name in read_manifest(folder).tasks
        for task in load_tasks(name if name in TASKS else folder / name)
    )
    if not tasks:
        raise _no_tasks(folder)
    return tasks, folder


def check_set(tasks: Sequence[TaskModel], folder: Path | None, on_progress: Progress) -> TaskSetCheck:
    """Check several tasks together; those of a study with its people's episodes and the η of its fit."""

    def say(done: int, of: int) -> None:
        on_progress("solving", done, of)

    if folder is None:
        return check_tasks(tasks, on_progress=say)
    cohort: Cohort | None = None
    said: tuple[str, ...] = ()
    if not lacks_grounding(folder):
        on_progress("reading", 0, 1)
        cohort = Cohort.concat(list(Study(folder).batches(tasks=tuple(tasks), strict=False)))
        if n := cohort.problems.height:
            said = (
                f"Only the tasks were checked. The study's tables have {count(n, 'problem')}, and those "
                f"concerned are not counted here. To see them: fidm fit {folder}",
            )
    sensitivity, source = _typical_sensitivity(folder, tasks)
    found = check_tasks(tasks, cohort=cohort, sensitivity=sensitivity, source=source, on_progress=say)
    return replace(found, notes=(*found.notes, *said))


def _typical_sensitivity(folder: Path, tasks: Sequence[TaskModel]) -> tuple[float | None, str]:
    """The η of the typical person by the study's fit; None, and why, where there is none of these tasks."""
    path = folder / "fit.json"
    if not path.exists():
        return None, ""
    try:
        kinds = make_channels(read_manifest(folder).channels, source=str(folder / "study.toml"))
        prior = load_fit(path, tasks, channels=[type(one) for one in kinds]).prior
    except FidmError:
        return None, "1/τ; fit.json is of other tasks or settings, so fit again: fidm fit"
    if not math.isfinite(prior.mean):
        return None, "1/τ; fit.json has no population of η"
    return math.exp(prior.mean), "the typical person of fit.json"


def _no_tasks(folder: Path) -> DataError:
    return DataError(
        'names no task in study.toml. Add it there (tasks = ["NAME"]), or give '
        + remedy("its name as task.", "--task NAME."),
        source=str(folder),
    )


def choose_part(people: pl.DataFrame, split: str | None, *, source: str) -> tuple[pl.Series | None, str]:
    """Return who is learned from and what they are called; None is everybody.

    Those with the value ``split`` in the column of that name; by default ``train``, if anybody has a split.
    ``"all"`` is everybody, unless somebody has that value. ``source`` is the study, for messages.
    """
    has_split = "split" in people.columns
    named = people["split"].drop_nulls().cast(pl.String) if has_split else pl.Series([], dtype=pl.String)
    if split is None and len(named):
        split = "train"
        if not (named == split).any():
            known = ", ".join(repr(name) for name in named.unique().sort().to_list())
            raise DataError(
                f"The participants have a split ({known}), but nobody is in 'train'. Say whom to learn from: "
                "--split NAME, or --split all, of fidm fit.",
                source=source,
            )
    if split is None or (split == "all" and not (named == "all").any()):
        return None, "everybody"
    chosen = people.filter(pl.col("split").cast(pl.String) == split) if has_split else people.clear()
    if not chosen.height:
        raise DataError(f"Nobody is in the split {split!r}.", source=source)
    return chosen["participant"].cast(pl.String).unique(maintain_order=True).drop_nulls(), f"split {split!r}"


def read_talks(
    study: Path,
    *,
    talks: Path | None = None,
    roles: Path | None = None,
    skip_bad: bool = False,
    on_progress: Progress | None = None,
) -> Transcripts | None:
    """Return a study's dialogs, read as its grounding.toml says; None where it has none.

    ``talks`` and ``roles`` come before what grounding.toml says of where the dialogs are and who is who in
    them; ``skip_bad`` leaves out dialogs that cannot be read.
    """
    chosen = read_settings(study)
    place = talks if talks is not None else Path(os.path.normpath(study / chosen.talks))
    if not place.exists():
        if talks is None:
            return None
        raise DataError("is not there. Say where the dialogs are with --talks.", source=str(place))
    found = read(
        place,
        names=chosen.names,
        roles=load_roles(roles) if roles is not None else chosen.who_is_who(study),
        columns=chosen.columns or None,
        skip=chosen.skip,
        strict=not skip_bad,
        untimed=chosen.untimed,
        on_progress=None
        if on_progress is None
        else lambda done, of: on_progress("reading dialogs", done, of),
    )
    own = [os.path.relpath(path, place) for path in given_tables(study).values()]
    left = [more for one in found.omissions for more in (one.without(own) if one.what == "file" else [one])]
    return chosen.in_languages(replace(found, omissions=tuple(left)))


def lacks_grounding(folder: Path) -> bool:
    """Return whether a study has no table of steps yet."""
    return folder.is_dir() and not any(folder.glob("steps*")) and not is_interrupted(folder)


def require_grounded(folder: Path) -> None:
    """Raise where a study has no table of steps yet: what was found instead, and what to do."""
    if not lacks_grounding(folder):
        return
    talks = read_settings(folder).talks
    if (folder / talks).exists():
        said = (
            f"{talks}/ found, not yet grounded. Run: fidm ground {folder} (this step) or fidm run {folder} "
        )
        raise DataError(f"{said}(all steps).", source=str(folder))
    raise DataError(
        f"has neither dialogs nor tables. Looked for dialogs in {talks}/, and for the table of steps "
        f"(steps.parquet, steps.csv, steps/). To make a study of dialogs: fidm start {folder}",
        source=str(folder),
    )


@contextmanager
def naming_study(folder: Path, learners: Cohort) -> Iterator[None]:
    """Name the study from which nothing can be learned, and what is still to be reviewed in it."""
    try:
        yield
    except FitError as error:
        error.source = error.source or str(folder)
        if n := int(awaits_review(learners).sum()):
            are = "segment needs" if n == 1 else "segments need"
            error.message += f" {n:,} {are} review, and may be why: fidm review {folder}"
        raise


def nobody_left(study: Study, problems: pl.DataFrame) -> DataError:
    """Return the error of a study in which nobody is left, with what became of everybody."""
    excluded, n_bad = study.excluded(), problems["participant"].n_unique()
    why = [
        *([say_reasons(count_reasons(excluded))] if excluded.height else []),
        *([f"{count(n_bad, 'participant')} left out because of problems in their data"] if n_bad else []),
    ]
    said = f"has nobody whose data can be used: {'; '.join(why) or 'its tables are empty'}. "
    hint = "Correct the data, or the column excluded of its participants."
    return DataError(said + hint, source=str(study.folder))


def is_older(fit: Path, folder: Path) -> bool:
    """Return whether a fit was written before the tables of the study it is to be used on."""
    tables = [path for name in ("steps", "segments") for path in folder.glob(f"{name}*")]
    return any(path.stat().st_mtime > fit.stat().st_mtime + 1 for path in tables)
