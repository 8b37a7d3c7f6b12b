"""Fetching the files of a data set from where its authors published them; only ever on request."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from fidm.errors import DataError, Problem
from fidm.files import whole_file
from fidm.types import Progress
from fidm_studies.dataset import Dataset, Source, no_progress
from fidm_studies.places import (
    CHANGED,
    UNKNOWN,
    WORDS,
    at_home,
    checksum,
    data_folder,
    dataset_folder,
    verify,
)

Getter = Callable[[str, "_Part", None], None]
"""Fetches an address into a file that is open."""

DOWNLOADING = "downloading"
"""What is being done, as progress tells it, while files are fetched."""

TIMEOUT_S = 30.0
"""After how many seconds without an answer a server is given up."""

RETRIES, WAIT_S = 2, 1.0
"""How often a broken connection is tried again, and the seconds before that."""

MOST_BYTES = 200_000_000
"""No published file is nearly so large; whoever sends more sends something else."""

MOST_S = 600.0
"""How long one file may take in all, however steadily it trickles in."""

CHUNK_BYTES = 64
"""After how many bytes the time is looked at: few, since a slow server takes its time over each."""

LEFTOVER_S = 3_600.0
"""A part of a file that nobody has written to for so long is left from a download that was killed."""


def download(
    dataset: Dataset,
    data: str | Path | None = None,
    *,
    base_urls: Mapping[str, str] | None = None,
    on_progress: Progress | None = None,
) -> Path:
    """Fetch the files of a data set that are missing or changed, check each, and return their folder.

    Every file is there whole and with its published checksum, or not at all; who was interrupted goes on
    where it stopped. Files that are there but are not the published ones are replaced; files of which the
    manifest knows nothing, and an archive that is not the published one, are left alone.

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
    found = dict(verify(dataset, folder, on_progress=on_progress).iter_rows())
    wanted = [path for path, problem in found.items() if problem != UNKNOWN]
    if set(wanted) & set(dataset.archives):
        raise DataError(
            f"{wanted[0]} is not the published archive. It would be read in place of single files, so move "
            "it away first; then the same command fetches those.",
            source=str(folder),
        )
    _tidy(folder / path for path in dataset.paths)
    problems: list[Problem] = []
    for done, path in enumerate(wanted):
        tell(DOWNLOADING, done, len(wanted))
        problem = _fetch(
            get, address(dataset, path, base_urls=base_urls), folder / path, dataset.manifest[path]
        )
        if problem is not None:
            problems.append(Problem(problem, where=path))
    tell(DOWNLOADING, len(wanted), len(wanted))
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
            if data != "":
                at_home(data).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot be made: {error.strerror}.", source=str(data)) from None
        except ValueError:
            raise DataError("cannot be the name of a folder.", source=str(data)) from None
    folder = data_folder(data)
    try:
        return dataset_folder(dataset, folder)
    except DataError:
        return folder / dataset.folder


def _downloader() -> Getter:
    try:
        from pooch import HTTPDownloader
    except ImportError:
        raise DataError(
            "Fetching data needs the package pooch. Install it with: pip install 'fidm[data]'."
        ) from None
    found: Getter = HTTPDownloader(progressbar=False, chunk_size=CHUNK_BYTES, timeout=TIMEOUT_S)
    return found


def _tidy(targets: Iterable[Path]) -> None:
    """Remove what downloads that were killed left of these files, but nothing that may still be written."""
    by_folder: dict[Path, set[tuple[str, str]]] = {}
    for target in targets:
        by_folder.setdefault(target.parent, set()).add((target.stem, target.suffix))
    for folder, names in by_folder.items():
        for path in folder.glob(".*"):
            part = _LEFT.fullmatch(path.stem)
            if part is None or (part[1], path.suffix) not in names or not path.is_file():
                continue
            if time.time() - path.stat().st_mtime > LEFTOVER_S:
                path.unlink(missing_ok=True)


_LEFT = re.compile(r"\.(.+)-[a-z0-9_]{8}", re.DOTALL)
"""The name :func:`fidm.files.whole_file` gives to a part, without its ending."""


def _fetch(get: Getter, url: str, target: Path, expected: str) -> str | None:
    """Fetch one file; None if it is there now, or else what is wrong with the answer.

    A server that cannot be reached is an error at once: it would not be reached for the next file either.
    """
    from requests import HTTPError, RequestException

    until = time.monotonic() + MOST_S
    for left in reversed(range(RETRIES + 1)):
        try:
            with whole_file(target) as part:
                with part.open("wb") as file:
                    get(url, _Part(file, until), None)
                if checksum(part) != expected:
                    raise _ChangedError
        except _ChangedError:
            return WORDS[CHANGED]
        except _TooLargeError:
            return f"The server sends more than {MOST_BYTES:,} bytes, so it is not the published file: {url}."
        except _TooSlowError:
            raise DataError(
                f"The server takes more than {MOST_S / 60:g} minutes to send this file. What was fetched "
                "before is kept; the same command goes on from there, perhaps at a better time.",
                source=url,
            ) from None
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
        except OSError as error:  # those of requests are such too, and are dealt with above
            raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
        except ValueError as error:
            return f"The server leads on to an address that is none ({type(error).__name__}), from {url}."
        else:
            return None
    return None


def _status(error: Any) -> str:
    return str(error.response.status_code) if error.response is not None else "with an error"


class _Part:
    """A file that is being fetched, which takes neither too many bytes nor too much time."""

    def __init__(self, file: BinaryIO, until: float) -> None:
        self.file, self.until, self.left = file, until, MOST_BYTES

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise _TooLargeError
        if time.monotonic() > self.until:
            raise _TooSlowError
        return self.file.write(data)

    def flush(self) -> None:
        """Do nothing: small chunks are not worth a trip to the disk each."""


class _TooLargeError(Exception):
    """More is sent than any published file has."""


class _TooSlowError(Exception):
    """A file takes longer than anybody would wait."""


class _ChangedError(Exception):
    """What was fetched is not the published file."""
