"""What a published data set is, where its files are, whether they are the published ones, and reading them.

The package ships loaders, not data. A :class:`Dataset` knows the names and checksums of the files that were
published, and turns them into tasks, a cohort and tables (:class:`Loaded`). A package adds a data set with an
entry point of the group ``fidm.datasets`` that leads to one. Nothing here asks the network for anything; see
:mod:`fidm_studies.fetching` for that.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError, FidmError, Problem
from fidm.registry import DATASETS
from fidm.tasks.model import TaskModel
from fidm.types import Progress

LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def no_progress(_doing: str, _done: int, _of: int) -> None:
    """Tell nobody: the progress of work that nobody watches."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place where files of a data set are published, at one fixed version.

    Parameters
    ----------
    home : str
        The page for people, such as ``https://github.com/jeffensen/plandepth_age``.
    version : str
        Which version of it: a full commit.
    base_url : str
        The address files are fetched from, with a slash at its end.
    within : str
        The folder of these files within the data set's own folder, with a slash at its end; ``""`` if all of
        them come from here. It may be a single file.
    there : str
        What stands in place of ``within`` at the source.
    """

    home: str
    version: str
    base_url: str
    within: str
    there: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A published data set: what it is, its terms, its files, and the function that reads them.

    Parameters
    ----------
    name, title : str
        What it is called on the command line, and in a heading.
    folder : str
        The folder of its files within the folder of all data.
    summary : str
        One sentence: what people did and what was recorded.
    people : str
        Who they were: "90 adults and 44 students".
    licence, licence_url : str
        Its licence, by its short name and its address.
    terms : str
        What the licence asks, in one plain sentence.
    citation : tuple of str
        Full references with DOI, of those who are to be cited.
    sources : tuple of Source
        Where its files are published.
    manifest : mapping of str to str
        The SHA-256 checksum of every file by its path within the folder (:func:`read_manifest`).
    read : callable
        ``read(folder, on_progress)`` returns what the files hold, as :class:`Loaded`.
    archives : tuple of str
        Paths of the manifest that each hold all the other files: whoever has one needs no others. They are
        never downloaded.
    """

    name: str
    title: str
    folder: str
    summary: str
    people: str
    licence: str
    licence_url: str
    terms: str
    citation: tuple[str, ...]
    sources: tuple[Source, ...]
    manifest: Mapping[str, str]
    read: Callable[[Path, Progress], Loaded]
    archives: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the data set, without the archives of them all."""
        return tuple(path for path in self.manifest if path not in self.archives)

    def to_dict(self) -> dict[str, Any]:
        """Return whose data they are, on which terms, and where they are published, as plain values."""
        names = ("name", "title", "summary", "people", "licence", "licence_url", "terms")
        places = [
            {"home": one.home, "version": one.version, "base_url": one.base_url} for one in self.sources
        ]
        return {
            **{name: getattr(self, name) for name in names},
            "citation": list(self.citation),
            "sources": places,
            "n_files": len(self.paths),
        }

    def __post_init__(self) -> None:
        if is_outside(self.folder):
            raise DataError(f"The folder of the data set {self.name} is outside the folder of all data.")
        if isinstance(self.manifest, Manifest):
            return  # is checked when it is read, which costs time
        for path in self.manifest:
            if is_outside(path):
                raise DataError(f"The manifest of {self.name} names a file outside its folder: {path!r}.")

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self.people}, {self.licence})"


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What the files of a data set hold, ready to be analysed.

    Parameters
    ----------
    dataset : Dataset
        Whose files they are.
    tasks : tuple of TaskModel
        The tasks people did; none where nothing was decided step by step.
    cohort : Cohort
        The people: their covariates, steps, and segments with observations and design columns.
    tables : mapping of str to DataFrame
        Other published tables, such as the authors' own estimates.
    notes : tuple of str
        What was excluded, joined or corrected, as sentences with counts.
    verified : bool
        Whether every file had its published checksum (:func:`fidm_studies.load` finds out).
    """

    dataset: Dataset
    tasks: tuple[TaskModel, ...]
    cohort: Cohort
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verified: bool = True

    def __repr__(self) -> str:
        return (
            f"Loaded({self.dataset.name!r}: {len(self.cohort.ids):,} people, {len(self.tasks):,} tasks, "
            f"{'as published' if self.verified else 'NOT as published'})"
        )


class Manifest(Mapping[str, str]):
    """The checksums of published files by their paths, read from a file when they are first needed.

    Parameters
    ----------
    name : str
        The file: a line per published file, its SHA-256 checksum, two spaces and its path.
    package : str
        The package or module beside which the folder ``manifests`` stands.
    """

    def __init__(self, name: str, *, package: str = "fidm_studies") -> None:
        self.name = name
        self.package = package

    @cached_property
    def _checksums(self) -> dict[str, str]:
        text = files(self.package).joinpath("manifests", self.name).read_text("utf-8")
        return parse_manifest(text, source=self.name)

    def __getitem__(self, path: str) -> str:
        return self._checksums[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._checksums)

    def __len__(self) -> int:
        return len(self._checksums)

    def __repr__(self) -> str:
        return f"Manifest({self.name!r}, package={self.package!r})"


def read_manifest(name: str, *, package: str = "fidm_studies") -> Manifest:
    """Return the checksums of a data set's files; the file with them is read when they are first needed.

    Parameters
    ----------
    name : str
        A file in the folder ``manifests`` of the package, as ``sha256sum`` writes it.
    package : str
        The package that has it; that of a plug-in is its own.

    Examples
    --------
    >>> checksums = read_manifest("justhink.txt")
    >>> len(checksums["metadata/network.json"])
    64
    """
    return Manifest(name, package=package)


def parse_manifest(text: str, *, source: str = "") -> dict[str, str]:
    """Return checksums by path from a text as ``sha256sum`` writes it; lines that begin with # are remarks.

    Examples
    --------
    >>> parse_manifest("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  data/none.csv")
    {'data/none.csv': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = LINE.fullmatch(line.rstrip())
        if parts is None:
            raise DataError(f"Line {number} is not a SHA-256 checksum, two spaces and a path.", source=source)
        if parts[2] in found:
            raise DataError(f"Line {number} names {parts[2]} again.", source=source)
        if is_outside(parts[2]):
            raise DataError(f"Line {number} names a file outside the data set's folder.", source=source)
        found[parts[2]] = parts[1]
    return found


def is_outside(path: str) -> bool:
    """Return whether a path names something outside the folder it is to be in, on whatever system.

    Examples
    --------
    >>> [is_outside(path) for path in ("logs/one.csv", "../one.csv", "/etc/passwd", "C:one.csv")]
    [False, True, True, True]
    """
    return (
        path in ("", ".")
        or "\\" in path
        or "\0" in path
        or ".." in path.split("/")
        or bool(PureWindowsPath(path).anchor)
    )


def visible_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder whose names are like a pattern, sorted; hidden ones are never among them.

    A hidden name begins with a point: what an interrupted download left, and what some systems put beside
    files.

    Parameters
    ----------
    folder : Path
        Where to look; nothing is found where there is no such folder.
    pattern : str
        As :meth:`pathlib.Path.glob` has it.
    """
    found = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
    require_files(found)
    return found


def require_files(paths: Iterable[Path]) -> None:
    """Raise where something is missing or is no file, such as a folder; all of it at once.

    Parameters
    ----------
    paths : iterable of Path
        What is going to be read.
    """
    problems = [
        Problem("is a folder or a device, not a file." if path.exists() else "is missing.", where=str(path))
        for path in paths
        if not path.is_file()
    ]
    if problems:
        raise DataError("Files cannot be read. Are these the published ones?", problems=problems)


def dataset_names() -> tuple[str, ...]:
    """Return the names of all data sets, in the order of the alphabet.

    Examples
    --------
    >>> dataset_names()[:3]
    ('justhink', 'map-task', 'space-adventure')
    """
    return DATASETS.names()


def find_dataset(name: str) -> Dataset:
    """Return the data set of this name.

    Parameters
    ----------
    name : str
        One of :func:`dataset_names`.

    Examples
    --------
    >>> find_dataset("map-task").licence
    'CC BY-NC-SA 2.5'
    """
    return DATASETS.find(name)


VARIABLE = "FIDM_DATA"
"""The environment variable that names the folder of all data."""


MISSING, CHANGED, UNKNOWN = "missing", "changed", "unknown"
"""What can be wrong with a file."""


WORDS = {
    MISSING: "is missing.",
    CHANGED: "is not the published file: its checksum is another one.",
    UNKNOWN: "is not one of the published files, and would be read with them.",
}


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder that holds data sets: the one that is named, or else what ``FIDM_DATA`` names.

    Parameters
    ----------
    data : path, optional
        The folder; by default the one that the environment variable ``FIDM_DATA`` names.
    """
    if data == "":
        raise DataError(
            "data is an empty text, which names no folder. Name one, or leave data out (None) to use the "
            f"folder that the environment variable {VARIABLE} names."
        )
    named = data if data is not None else os.environ.get(VARIABLE) or None
    if named is None:
        raise DataError(
            "No data folder given. Name it with --data (in Python: data=…) or with the environment variable "
            f"{VARIABLE}. `fidm studies download NAME --data FOLDER` fetches the files."
        )
    folder = at_home(named)
    if not is_folder(folder):
        whence = "" if data is not None else f" (from the environment variable {VARIABLE})"
        raise DataError(f"there is no such folder{whence}.", source=str(folder))
    return folder


def at_home(path: str | Path) -> Path:
    """Return a path with the home folder in place of ``~``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise DataError("begins with ~, but nobody of that name has a home here.", source=str(path)) from None


def is_folder(path: Path) -> bool:
    """Return whether there is such a folder; a name that no folder can have is none."""
    try:
        return path.is_dir()
    except (ValueError, OSError):
        return False


def dataset_folder(dataset: Dataset, data: str | Path | None = None) -> Path:
    """Return the folder with the files of a data set: its own within the data folder, or that one itself.

    Parameters
    ----------
    dataset : Dataset
        Whose files are looked for.
    data : path, optional
        The folder of all data, or of this data set alone; by default what ``FIDM_DATA`` names.
    """
    folder = data_folder(data)
    if (folder / dataset.folder).is_dir():
        return folder / dataset.folder
    if any((folder / path).is_file() for path in dataset.manifest):
        return folder
    raise DataError(
        f"has no folder {dataset.folder} with the files of {dataset.title}. "
        f"`fidm studies download {dataset.name} --data {folder}` fetches them.",
        source=str(folder),
    )


def verify(dataset: Dataset, folder: str | Path, *, on_progress: Progress | None = None) -> pl.DataFrame:
    """Return which files of a data set are missing, changed or unknown; an empty table is good.

    Where an archive of the data set is present, it is what is read, and therefore what is checked; single
    files beside it do not matter. A file of which the manifest knows nothing is a problem where it would be
    read: beside published files whose names end as its own does. Hidden files, whose names begin with a
    point, are never read and never a problem.

    Parameters
    ----------
    dataset : Dataset
        Whose files they are.
    folder : path
        The folder with its files.
    on_progress : callable, optional
        Is told what is being done, how much of it is done, and of how much.

    Returns
    -------
    DataFrame
        ``path`` and ``problem`` (``"missing"``, ``"changed"`` or ``"unknown"``), a row per file.
    """
    place, tell = Path(folder), on_progress or no_progress
    archives = [path for path in dataset.archives if (place / path).is_file()]
    if archives:
        wrong = {path: _problem(dataset, place, path) for path in archives}
        return _problems({path: problem for path, problem in wrong.items() if problem is not None})
    found: dict[str, str] = {}
    paths = dataset.paths
    for done, path in enumerate(paths):
        tell("checking files", done, len(paths))
        problem = _problem(dataset, place, path)
        if problem is not None:
            found[path] = problem
    tell("checking files", len(paths), len(paths))
    return _problems(found | dict.fromkeys(_strangers(dataset, place), UNKNOWN))


def load(
    dataset: str | Dataset,
    data: str | Path | None = None,
    *,
    verified: bool = True,
    on_progress: Progress | None = None,
) -> Loaded:
    """Read a published data set from its files: its tasks, its people and other tables.

    Parameters
    ----------
    dataset : str or Dataset
        Its name (:func:`fidm_studies.dataset_names`), or the data set itself.
    data : path, optional
        The folder of all data, or of this data set; by default what ``FIDM_DATA`` names.
    verified : bool
        Whether every file must be the published one, with no others among them. If not, what the files hold
        is read, whatever it is, and ``verified`` and ``notes`` of what is returned tell of it.
    on_progress : callable, optional
        Is told what is being done, how much of it is done, and of how much.
    """
    known = find_dataset(dataset) if isinstance(dataset, str) else dataset
    folder, tell = dataset_folder(known, data), on_progress or no_progress
    problems = verify(known, folder, on_progress=on_progress)
    if verified and problems.height:
        raise DataError(
            f"{not_as_published(problems)} {mending(known, data_folder(data), problems)}; "
            "--unverified (in Python: verified=False) reads them as they are.",
            source=str(folder),
            problems=[
                Problem(WORDS[row["problem"]], where=row["path"]) for row in problems.iter_rows(named=True)
            ],
        )
    loaded = _read(known, folder, tell, problems)
    if problems.is_empty():
        return replace(loaded, verified=True)
    return replace(loaded, verified=False, notes=(*loaded.notes, _unlike(problems)))


def not_as_published(problems: pl.DataFrame) -> str:
    """Return how many files are not as published, as a sentence."""
    n = problems.height
    return f"{n:,} {'file is' if n == 1 else 'files are'} not as published."


def mending(dataset: Dataset, folder: Path, problems: pl.DataFrame) -> str:
    """Return what to do about files that are not as published, as a sentence without its full stop."""
    told = []
    if set(problems["path"]) & set(dataset.archives):
        told.append("Move the archive away")
    elif UNKNOWN in problems["problem"]:
        told.append("Move the unknown files away")
    if problems.height > (problems["problem"] == UNKNOWN).sum():
        told.append(f"`fidm studies download {dataset.name} --data {folder}` fetches the published ones")
    return "; ".join(told)


def _read(dataset: Dataset, folder: Path, tell: Progress, problems: pl.DataFrame) -> Loaded:
    """What the files hold; whatever a loader stumbles over is an error without what stands in the files."""
    try:
        return dataset.read(folder, tell)
    except FidmError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged files can make any reader fail in any way
        now = (
            f"{mending(dataset, folder, problems)}."
            if problems.height
            else f"Every file is the published one, so the loader of {dataset.title} is at fault; please "
            "report it to its authors."
        )
        raise DataError(
            f"cannot be read as published ({type(error).__name__}). {now}", source=str(folder)
        ) from None


def _strangers(dataset: Dataset, folder: Path) -> list[str]:
    """What lies beside published files, ends as they do, and is none of them; hidden files do not count."""
    known = set(dataset.manifest)
    beside: dict[PurePosixPath, set[str]] = {}
    for path in map(PurePosixPath, dataset.paths):
        beside.setdefault(path.parent, set()).add(path.suffix.lower())
    found = []
    for parent, endings in beside.items():
        place = folder / parent
        for entry in _entries(place):
            name = (parent / entry.name).as_posix()
            is_alike = entry.suffix.lower() in endings and not entry.name.startswith(".")
            if is_alike and name not in known and (entry.suffix or entry.is_file()):
                found.append(name)
    return sorted(found)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", source=str(folder)) from None


def _unlike(problems: pl.DataFrame) -> str:
    counts = dict(problems["problem"].value_counts().iter_rows())
    said = " and ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items()))
    return (
        f"These are not the files as published ({said}), so nothing here need agree with what was published."
    )


def _problems(found: dict[str, str]) -> pl.DataFrame:
    rows = {"path": list(found), "problem": list(found.values())}
    return pl.DataFrame(rows, schema={"path": pl.String, "problem": pl.String})


def _problem(dataset: Dataset, folder: Path, path: str) -> str | None:
    file = folder / path
    if not file.is_file():
        return MISSING
    return None if checksum(file) == dataset.manifest[path] else CHANGED


def checksum(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", source=str(path)) from None
