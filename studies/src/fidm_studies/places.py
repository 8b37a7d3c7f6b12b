"""Where the files of a data set are, whether they are the published ones, and reading them.

Nothing here asks the network for anything; see :mod:`fidm_studies.fetching` for that.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

import polars as pl

from fidm.errors import DataError, FidmError, Problem
from fidm.types import Progress
from fidm_studies.dataset import Dataset, Loaded, find_dataset, no_progress

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
            "Nobody said where the data are. Name their folder with --data (in Python: data=…), or let the "
            f"environment variable {VARIABLE} name it. `fidm studies download NAME --data FOLDER` gets them."
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
