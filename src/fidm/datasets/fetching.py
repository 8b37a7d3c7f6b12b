"""Fetching the files of a data set from where its authors published them; only ever on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fidm.datasets.base import Dataset, Progress, Source, no_progress
from fidm.datasets.places import CHANGED, WORDS, checksum, data_folder, dataset_folder, verify
from fidm.errors import DataError, Problem
from fidm.files import whole_file

Getter = Callable[[str, str, None], None]
"""Fetches an address into a file."""

TIMEOUT_S = 30.0
"""After how many seconds without an answer a server is given up."""

RETRIES, WAIT_S = 2, 1.0
"""How often a broken connection is tried again, and the seconds before that."""


def download(
    dataset: Dataset,
    data: str | Path | None = None,
    *,
    base_urls: Mapping[str, str] | None = None,
    on_progress: Progress | None = None,
) -> Path:
    """Fetch the files of a data set that are missing or changed, check each, and return their folder.

    Every file is there whole and with its published checksum, or not at all; who was interrupted goes on
    where it stopped. Files that are there but are not the published ones are replaced.

    Parameters
    ----------
    dataset : Dataset
        What to fetch.
    data : path, optional
        The folder of all data, made if need be; by default what ``FIDM_DATA`` names.
    base_urls : mapping of str to str, optional
        Other addresses to fetch from, such as a mirror, by the ``home`` of the source they replace.
    on_progress : callable, optional
        Is told what is being done, how much of it is done, and of how much.
    """
    get, tell = _downloader(), on_progress or no_progress
    folder = _target(dataset, data)
    wanted = [row[0] for row in verify(dataset, folder, on_progress=on_progress).iter_rows()]
    if dataset.archives and set(wanted) <= set(dataset.archives):
        wanted = list(dataset.paths) if wanted else []
    problems: list[Problem] = []
    for done, path in enumerate(wanted):
        tell("downloading", done, len(wanted))
        problem = _fetch(
            get, address(dataset, path, base_urls=base_urls), folder / path, dataset.manifest[path]
        )
        if problem is not None:
            problems.append(Problem(problem, where=path))
    tell("downloading", len(wanted), len(wanted))
    if problems:
        raise DataError(
            f"{len(problems):,} of {len(wanted):,} files could not be fetched; what was fetched is kept.",
            source=str(folder),
            problems=problems,
        )
    return folder


def address(dataset: Dataset, path: str, *, base_urls: Mapping[str, str] | None = None) -> str:
    """Return where a file of a data set is published.

    Parameters
    ----------
    dataset : Dataset
        Whose file it is.
    path : str
        Its path in the manifest.
    base_urls : mapping of str to str, optional
        Other addresses, by the ``home`` of the source they replace.
    """
    source = source_of(dataset, path)
    base = (base_urls or {}).get(source.home, source.base_url)
    return base.rstrip("/") + "/" + quote(source.there + path.removeprefix(source.within))


def source_of(dataset: Dataset, path: str) -> Source:
    """Return the source a file comes from: of those whose folder it is in, the innermost."""
    having = [one for one in dataset.sources if path.startswith(one.within)]
    if not having:
        raise DataError(f"No source of {dataset.title} has {path}.")
    return max(having, key=lambda one: len(one.within))


def _target(dataset: Dataset, data: str | Path | None) -> Path:
    """The folder to write to: the one that has files already, or else a new one in the data folder."""
    if data is not None:
        try:
            Path(data).expanduser().mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot be made: {error.strerror}.", source=str(data)) from None
    folder = data_folder(data)
    try:
        return dataset_folder(dataset, folder)
    except DataError:
        return folder / dataset.folder


def _downloader() -> Getter:
    try:
        from pooch import HTTPDownloader  # type: ignore[import-untyped]
    except ImportError:
        raise DataError(
            "Fetching data needs the package pooch. Install it with: pip install 'fidm[data]'."
        ) from None
    found: Getter = HTTPDownloader(progressbar=False, timeout=TIMEOUT_S)
    return found


def _fetch(get: Getter, url: str, target: Path, expected: str) -> str | None:
    """Fetch one file; None if it is there now, or else what is wrong with the answer.

    A server that cannot be reached is an error at once: it would not be reached for the next file either.
    """
    from requests import HTTPError, RequestException

    for left in reversed(range(RETRIES + 1)):
        try:
            with whole_file(target) as part:
                get(url, str(part), None)
                if checksum(part) != expected:
                    raise _ChangedError
        except _ChangedError:
            return WORDS[CHANGED]
        except HTTPError as error:
            return f"The server answered {_status(error)} to {url}."
        except RequestException as error:
            if not left:
                raise DataError(
                    f"The connection failed ({type(error).__name__}). What was fetched before is kept; "
                    "the same command goes on from there.",
                    source=url,
                ) from None
            time.sleep(WAIT_S)
        else:
            return None
    return None


def _status(error: Any) -> str:
    return str(error.response.status_code) if error.response is not None else "with an error"


class _ChangedError(Exception):
    """What was fetched is not the published file."""
