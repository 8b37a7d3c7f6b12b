"""Where the files of a data set are, whether they are the published ones, and reading them.

Nothing here asks the network for anything; see :mod:`fidm.datasets.fetching` for that.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import polars as pl

from fidm.datasets.base import Dataset, Loaded, Progress, no_progress
from fidm.datasets.catalogue import find_dataset
from fidm.errors import DataError, Problem

VARIABLE = "FIDM_DATA"
"""The environment variable that names the folder of all data."""

MISSING, CHANGED = "missing", "changed"
"""What can be wrong with a file."""

WORDS = {MISSING: "is missing.", CHANGED: "is not the published file: its checksum is another one."}


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder that holds data sets: the one that is named, or else what ``FIDM_DATA`` names.

    Parameters
    ----------
    data : path, optional
        The folder; by default the one that the environment variable ``FIDM_DATA`` names.
    """
    named = data if data is not None else os.environ.get(VARIABLE) or None
    if named is None:
        raise DataError(
            "Nobody said where the data are. Name their folder with --data (in Python: data=…), or let the "
            f"environment variable {VARIABLE} name it. `fidm studies download NAME --data FOLDER` gets them."
        )
    folder = Path(named).expanduser()
    if not folder.is_dir():
        whence = "" if data is not None else f" (from the environment variable {VARIABLE})"
        raise DataError(f"there is no such folder{whence}.", source=str(folder))
    return folder


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
    """Return which files of a data set are missing or are not the published ones; an empty table is good.

    Whoever has one of the data set's archives whole needs no single files. Files of which the manifest knows
    nothing do not matter.

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
        ``path`` and ``problem`` (``"missing"`` or ``"changed"``), a row per file.
    """
    place, tell = Path(folder), on_progress or no_progress
    archives = {path: _problem(dataset, place, path) for path in dataset.archives}
    if None in archives.values():
        return _problems({})
    found: dict[str, str] = {}
    paths = dataset.paths
    for done, path in enumerate(paths):
        tell("checking files", done, len(paths))
        problem = _problem(dataset, place, path)
        if problem is not None:
            found[path] = problem
    tell("checking files", len(paths), len(paths))
    changed = {path: CHANGED for path, problem in archives.items() if problem == CHANGED}
    if changed and all(problem == MISSING for problem in found.values()) and len(found) == len(paths):
        return _problems(changed)  # the archive is what they have, and it is not the published one
    return _problems(found)


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
        Its name (:func:`fidm.datasets.dataset_names`), or the data set itself.
    data : path, optional
        The folder of all data, or of this data set; by default what ``FIDM_DATA`` names.
    verified : bool
        Whether every file must be the published one. If not, what the files hold is read, whatever it is,
        and ``verified`` and ``notes`` of what is returned tell of it.
    on_progress : callable, optional
        Is told what is being done, how much of it is done, and of how much.
    """
    known = find_dataset(dataset) if isinstance(dataset, str) else dataset
    folder, tell = dataset_folder(known, data), on_progress or no_progress
    problems = verify(known, folder, on_progress=on_progress)
    if verified and problems.height:
        raise DataError(
            f"{problems.height:,} of {len(known.paths):,} files of {known.title} are not as published. "
            f"`fidm studies download {known.name} --data {data_folder(data)}` fetches them anew; "
            "--unverified (in Python: verified=False) reads them as they are.",
            source=str(folder),
            problems=[
                Problem(WORDS[row["problem"]], where=row["path"]) for row in problems.iter_rows(named=True)
            ],
        )
    loaded = known.read(folder, tell)
    if problems.is_empty():
        return replace(loaded, verified=True)
    return replace(loaded, verified=False, notes=(*loaded.notes, _unlike(problems)))


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
