"""A study folder: four tables and a line that says which tasks they are about.

    study/
      study.toml                 schema = 1, tasks = ["grocery"]
      participants.parquet       or .csv, .tsv, .xlsx, .ods, or participants/part-00000.parquet, …
      episodes.parquet
      steps.parquet
      segments.parquet

A large study is kept in parts, each with whole people, so that it can be read and fitted part by part in
little memory. Parts of the same name belong together. ``docs/reference/study-format.md`` has the columns.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from fidm.cohort import Cohort, require_skip
from fidm.errors import DataError
from fidm.files import contents, is_interrupted, whole_folder, writing
from fidm.io.columns import COLUMN as EXCLUDED
from fidm.io.columns import excluded_people, natural, refusal, without
from fidm.io.sheets import SUFFIXES, read_table, table_columns
from fidm.io.tables import Tasks, build, tables_of
from fidm.tasks.compile import load_task, load_tasks
from fidm.tasks.kept import require_keepable, save_tasks, split_name
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks
from fidm.tasks.stack import TaskSet
from fidm.types import Skip

SCHEMA = 1
TABLES = ("participants", "episodes", "steps", "segments")
NEEDED = ("steps",)
GIVEN = ("participants", "episodes")
"""Tables that a lab may keep beside those that are made when dialogs are grounded."""

GROUNDED = "grounding/provenance.json"
"""The file that says that the tables were made from dialogs."""

KEPT = "tasks/tasks.parquet"
"""The file in which tasks are kept that are given as such and not as files."""

PEOPLE_PER_PART = 50_000


def read_cohort(
    folder: str | Path, *, tasks: Tasks | None = None, strict: bool = True, skip: Skip = "participant"
) -> Cohort:
    """Read a study folder and check it against its tasks.

    Parameters
    ----------
    folder : path
        The study.
    tasks : TaskModel, or several, optional
        Its tasks; by default those that ``study.toml`` names.
    strict : bool
        Raise if anything is wrong, with all problems. With False people with problems are left out
        whole, and the problems are in ``cohort.problems``.
    skip : {"participant", "episode", "rest"}
        With ``strict=False``, what is left out, as in :func:`fidm.make_cohort`.
    """
    study = Study(folder)
    parts = list(study.batches(tasks=tasks, strict=strict, skip=skip))
    return parts[0] if len(parts) == 1 else Cohort.concat(parts)


def write_cohort(
    cohort: Cohort,
    folder: str | Path,
    *,
    tasks: Sequence[str | Path | TaskModel] = (),
    overwrite: bool = False,
) -> None:
    """Write a cohort as a study folder of Parquet files; whole or not at all.

    Parameters
    ----------
    cohort : Cohort
        What to write.
    folder : path
        Where to; must not exist, or be empty, unless ``overwrite`` is set.
    tasks : sequence of str, path or TaskModel
        Names of built-in tasks, paths of task files, or tasks made from arrays, pairs or code. Files are
        copied into the study; tasks are kept in ``tasks/tasks.parquet`` (:func:`fidm.save_tasks`).
    overwrite : bool
        Replace the tables of an existing study; other files in the folder stay.
    """
    with StudyWriter(folder, tasks=tasks, overwrite=overwrite) as writer:
        for first in range(0, max(1, len(cohort)), PEOPLE_PER_PART):
            whole = len(cohort) <= PEOPLE_PER_PART
            writer.add(cohort if whole else cohort[first : first + PEOPLE_PER_PART])


class Study:
    """A study folder, read part by part.

    Parameters
    ----------
    folder : path
        The study.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise DataError("is not a folder.", source=str(self.folder))
        if is_interrupted(self.folder):
            raise DataError(
                "was interrupted while being replaced, so its tables may not fit together. Write it again.",
                source=str(self.folder),
            )
        manifest = read_manifest(self.folder)
        self.task_names, self.channels = manifest.tasks, manifest.channels
        self._files = {name: self._parts(name) for name in TABLES}
        missing = [name for name in NEEDED if not self._files[name]]
        if missing:
            raise DataError(
                f"has no table {missing[0]!r}: {missing[0]}.parquet, {missing[0]}.csv or a folder "
                f"{missing[0]}/ of part-00000.parquet, … is needed.",
                source=str(self.folder),
            )
        numbers = {name: list(parts) for name, parts in self._files.items() if parts}
        for name, found in numbers.items():
            if found != numbers["steps"]:
                raise DataError(
                    f"{name} has {len(found)} parts and steps {len(numbers['steps'])}; parts of the same "
                    "name must hold the same people.",
                    source=str(self.folder),
                )

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return len(self._files["steps"])

    def load_tasks(self) -> tuple[TaskModel, ...]:
        """Return the tasks that ``study.toml`` names."""
        known = builtin_tasks()
        return tuple(
            task
            for name in self.task_names
            for task in load_tasks(name if name in known else self.folder / name)
        )

    def participants(self) -> pl.DataFrame:
        """Return who takes part in the study, all parts together; those who are excluded do not."""
        parts = [self._read("participants", number) for number in self._files["steps"]]
        frames = [
            without(part, excluded_people(part, source=str(self.folder))["participant"])
            for part in parts
            if part is not None
        ]
        if not frames:
            steps = [self._read("steps", number) for number in self._files["steps"]]
            frames = [
                s.select(pl.col("participant").unique(maintain_order=True))
                for s in steps
                if s is not None and "participant" in s.columns
            ]
            if not frames:
                raise DataError("The table 'steps' has no column 'participant'.", source=str(self.folder))
        lost = [frame for frame in frames if "participant" not in frame.columns]
        if lost:
            raise DataError("The table 'participants' has no column 'participant'.", source=str(self.folder))
        frames = [frame.drop(EXCLUDED, strict=False) for frame in frames]
        return pl.concat(frames, how="diagonal_relaxed").with_columns(natural(pl.col("participant")))

    def excluded(self) -> pl.DataFrame:
        """Return ``participant`` and ``reason`` of everybody whom the participants table leaves out.

        They are in the table with a reason, or true, in the column ``excluded``; nothing else of theirs is
        read, so nothing that is wrong with their data matters.
        """
        parts = [self._read("participants", number) for number in self._files["participants"]]
        return pl.concat([excluded_people(part, source=str(self.folder)) for part in (None, *parts)])

    def has_column(self, table: str, column: str) -> bool:
        """Return whether a table has a column, in any of the parts."""
        return any(column in table_columns(path) for path in self._files[table].values())

    def batches(
        self,
        *,
        tasks: Tasks | None = None,
        strict: bool = True,
        skip: Skip = "participant",
        only: pl.Series | None = None,
    ) -> Iterator[Cohort]:
        """Read the study part by part, without those who are excluded.

        Parameters
        ----------
        tasks, strict, skip
            As in :func:`read_cohort`. Problems are reported with the part they are in, after the last part.
        only : Series, optional
            Read these participants alone. Rows of problems are then counted among theirs.
        """
        require_skip(skip, strict)
        known: TaskSet | None = None
        if tasks is not None:
            known = TaskSet.of(tasks)
        elif self.task_names:
            known = TaskSet.of(self.load_tasks())
        bad: list[pl.DataFrame] = []  # every part is read, so that one error tells everything
        for number in self._files["steps"]:
            tables = {}
            for name in TABLES:
                table = self._read(name, number)
                if table is not None and only is not None and "participant" in table.columns:
                    table = table.filter(natural(pl.col("participant")).is_in(only.implode()))
                if table is not None:
                    tables[name] = table
            cohort = build(tables, known, strict=False, skip=skip, source=str(self.folder))
            if strict and cohort.problems.height:
                where = (
                    pl.col("table") if number == "" else pl.format("{}/{}", pl.col("table"), pl.lit(number))
                )
                bad.append(cohort.problems.with_columns(table=where))
            if not bad:
                yield cohort
        if bad:
            raise refusal(pl.concat(bad), str(self.folder))

    # ------------------------------------------------------------------ files

    def _parts(self, name: str) -> dict[str, Path]:
        """The files of a table by the number of their part."""
        single = [self.folder / f"{name}{suffix}" for suffix in SUFFIXES]
        found = [path for path in single if path.exists()]
        if name in GIVEN and (self.folder / GROUNDED).is_file() and found:
            found = found[:1]  # the lab's own stays beside the table that was made with it
        inside = self.folder / name
        parts = sorted(inside.glob("*.parquet")) if inside.is_dir() else []
        if len(found) + bool(parts) > 1:
            kinds = [path.name for path in found] + ([f"{name}/"] if parts else [])
            raise DataError(f"has {' and '.join(kinds)}; keep one of them.", source=str(self.folder))
        if parts:
            return {path.stem: path for path in parts}
        return {"": found[0]} if found else {}

    def _read(self, name: str, number: str) -> pl.DataFrame | None:
        path = self._files[name].get(number)
        if path is None:
            return None
        return read_table(path)

    def __repr__(self) -> str:
        tasks = ", ".join(self.task_names) or "not named"
        return f"Study({str(self.folder)!r}: {self.n_parts} parts, tasks {tasks})"


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """A lab's own table of participants, which stays where and as it is."""

    file: str  # from the study folder
    id: str = "participant"  # the column with their ids
    sheet: str = ""  # of a workbook; empty is its first
    ids: Mapping[str, str] = field(default_factory=dict)  # what the dialogs call somebody, by the table's id
    excluded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values, by column, that exclude


@dataclass(frozen=True, slots=True)
class Manifest:
    """What study.toml says."""

    tasks: tuple[str, ...] = ()  # built-in names or files
    channels: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # a table per effort channel
    participants: PeopleTable | None = None  # None where no table is named


def read_manifest(folder: Path) -> Manifest:
    """Return what study.toml says; nothing without a file."""
    path = folder / "study.toml"
    if not path.exists():
        return Manifest()
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"cannot be read: {error}.", source=str(path)) from None
    schema, tasks, channels = said.get("schema"), said.get("tasks", []), said.get("channels", {})
    if schema != SCHEMA:
        raise DataError(f"has the schema {schema!r}; this version of fidm reads {SCHEMA}.", source=str(path))
    if not isinstance(tasks, list) or not all(isinstance(task, str) for task in tasks):
        raise DataError("tasks must be a list of built-in names or of task files.", source=str(path))
    if not isinstance(channels, dict) or not all(isinstance(one, dict) for one in channels.values()):
        raise DataError(
            'channels must be tables, one per channel: [channels.duration], kind = "gamma", '
            'column = "duration_s".',
            source=str(path),
        )
    return Manifest(tuple(tasks), channels, _people_table(said.get("participants"), source=str(path)))


def _people_table(said: object, *, source: str) -> PeopleTable | None:
    """The table of participants that study.toml names."""
    if said is None:
        return None
    texts = {"ids": {}, "excluded": {}, **said} if isinstance(said, dict) else {}
    ids, excluded = texts.pop("ids", None), texts.pop("excluded", None)
    are_texts = (
        isinstance(ids, dict)
        and isinstance(excluded, dict)
        and all(isinstance(values, list) for values in excluded.values())
        and all(
            isinstance(one, str)
            for some in (texts.values(), ids.values(), *excluded.values())
            for one in some
        )
    )
    if not are_texts or not texts.get("file") or not texts.keys() <= {"file", "id", "sheet"}:
        raise DataError(
            '[participants] must have file = "FILE", and may have id = "COLUMN", sheet = "NAME", a table '
            '[participants.ids] with "id in the table" = "id of the dialog", and a table '
            '[participants.excluded] with COLUMN = ["VALUE"], which leaves people out.',
            source=source,
        )
    excluded = {name: tuple(values) for name, values in excluded.items()}
    return PeopleTable(**texts, ids=ids, excluded=excluded)


class StudyWriter:
    """Write a study folder part by part; it appears whole at the end, or not at all.

    Parameters
    ----------
    folder, tasks, overwrite
        As in :func:`write_cohort`.
    gone : sequence of str
        Other files of the study that go with the old tables.
    kept : sequence of str
        Tables whose files stay where a lab keeps its own, beside those that are written.

    Examples
    --------
    >>> import fidm, tempfile
    >>> from fidm.io.study import StudyWriter
    >>> task = fidm.load_task("errands")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with StudyWriter(f"{place}/study", tasks=["errands"]) as writer:
    ...         for part in range(3):
    ...             writer.add(fidm.simulate_cohort(task, 10, seed=1, first=10 * part))
    ...     len(fidm.read_cohort(f"{place}/study"))
    30
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        tasks: Sequence[str | Path | TaskModel] = (),
        overwrite: bool = False,
        gone: Sequence[str] = (),
        kept: Sequence[str] = (),
    ) -> None:
        self.folder = Path(folder)
        self.overwrite, self.gone, self.kept = overwrite, tuple(gone), tuple(kept)
        is_one = isinstance(tasks, str | TaskModel)
        if is_one or not all(isinstance(task, str | Path | TaskModel) for task in tasks):
            raise DataError(
                "tasks must be a list of built-in names, of paths of task files, or of TaskModels."
            )
        tasks = [
            load_task(task) if not isinstance(task, TaskModel) and split_name(task)[1] else task
            for task in tasks
        ]
        self._made = [task for task in tasks if isinstance(task, TaskModel)]
        if self._made:
            require_keepable(TaskSet.of(self._made).tasks, source=str(self.folder))
        known = builtin_tasks()
        self._tasks = [
            KEPT if isinstance(task, TaskModel) else str(task) if str(task) in known else Path(task)
            for task in tasks
        ]
        lost = [task for task in self._tasks if isinstance(task, Path) and not task.is_file()]
        files = [task.name for task in self._tasks if isinstance(task, Path)]
        files += [Path(KEPT).name] if self._made else []
        if len(set(files)) < len(files):
            raise DataError("Two task files have the same name, so one would replace the other. Rename one.")
        if lost:
            raise DataError(
                f"There is no task file {str(lost[0])!r}, and no such built-in task ({', '.join(known)})."
            )
        self._n_parts = 0
        self._place: Path | None = None

    @property
    def place(self) -> Path:
        """Where other files may be put that are to appear in the study with its tables."""
        if self._place is None:
            raise DataError("A StudyWriter writes inside a with block.", source=str(self.folder))
        return self._place

    def __enter__(self) -> StudyWriter:
        self._writing = self._whole()
        self._writing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writing.__exit__(kind, error, trace)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        with whole_folder(self.folder, replaced=self._replaced) as self._place:
            yield
            with writing(self.folder):
                self._finish()

    def add(self, cohort: Cohort) -> None:
        """Write one part: whole people, who are in no other part."""
        for name, table in tables_of(cohort).items():
            with writing(self.folder):
                (self.place / name).mkdir(exist_ok=True)
                table.write_parquet(self.place / name / f"part-{self._n_parts:05d}.parquet")
        self._n_parts += 1

    def _finish(self) -> None:
        place = self.place
        if self._n_parts == 1:
            for name in TABLES:
                os.replace(place / name / "part-00000.parquet", place / f"{name}.parquet")
                (place / name).rmdir()
        names = []
        for task in self._tasks:
            if isinstance(task, Path):
                (place / "tasks").mkdir(exist_ok=True)
                shutil.copyfile(task, place / "tasks" / task.name)
                names.append(f"tasks/{task.name}")
            else:
                names.append(task)
        if self._made:
            save_tasks(place / KEPT, self._made)
        names = list(dict.fromkeys(names))
        listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
        manifest = read_manifest(self.folder)
        if names and manifest.tasks == tuple(names):  # with the comments and the table of participants in it
            shutil.copyfile(self.folder / "study.toml", place / "study.toml")
            return
        kept = manifest.channels
        channels = "".join(
            f"\n[channels.{json.dumps(name)}]\n"
            + "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())
            for name, table in kept.items()
        )
        text = f"schema = {SCHEMA}\ntasks = [{listed}]\n{channels}"
        (place / "study.toml").write_text(text, "utf-8")

    def _replaced(self) -> list[str]:
        """What goes when the new study comes."""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError("is a file, not a folder.", source=str(self.folder))
        if contents(self.folder) and not self.overwrite:
            raise DataError(
                "exists already. Choose another folder, or overwrite it.", source=str(self.folder)
            )
        kept = {f"{name}{suffix}" for name in self.kept for suffix in SUFFIXES if suffix != ".parquet"}
        tables = [one for name in TABLES for one in (*(f"{name}{suffix}" for suffix in SUFFIXES), name)]
        return [*(one for one in tables if one not in kept), *self.gone]
