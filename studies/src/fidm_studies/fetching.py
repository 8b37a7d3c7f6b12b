"""Fetching the files of a data set from where its authors published them; only ever on request."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from fidm.errors import DataError, Problem
from fidm.files import whole_file
from fidm.types import Progress
from fidm_studies.dataset import (
    CHANGED,
    UNKNOWN,
    WORDS,
    Dataset,
    Source,
    at_home,
    checksum,
    data_folder,
    dataset_folder,
    no_progress,
    verify,
)

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

GO_ON = "What was fetched before is kept; the same command goes on from there"

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
    folder, tell = _target(dataset, data), on_progress or no_progress
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
        url = address(dataset, path, base_urls=base_urls)
        problem = _fetch(url, folder / path, dataset.manifest[path])
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
    """Return where a file of a data set is published; ``base_urls`` are as in :func:`download`."""
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


def _fetch(url: str, target: Path, expected: str) -> str | None:
    """Fetch one file; None if it is there now, or else what is wrong with the answer.

    A server that cannot be reached is an error at once: it would not be reached for the next file either.
    """
    from pooch import HTTPDownloader
    from requests import HTTPError, RequestException

    get = HTTPDownloader(progressbar=False, chunk_size=CHUNK_BYTES, timeout=TIMEOUT_S)
    until = time.monotonic() + MOST_S
    for left in reversed(range(RETRIES + 1)):
        try:
            with whole_file(target) as part:
                with part.open("wb") as file:
                    get(url, _Part(file, until, url), None)
                if checksum(part) != expected:
                    raise _RefusedError(WORDS[CHANGED])
            return None
        except _RefusedError as error:
            return str(error)
        except HTTPError as error:
            answer = "with an error" if error.response is None else error.response.status_code
            return f"The server answered {answer} to {url}."
        except RequestException as error:
            if not left:
                raise DataError(
                    f"The connection failed ({type(error).__name__}). {GO_ON}.", source=url
                ) from None
            time.sleep(WAIT_S)
        except OSError as error:  # those of requests are such too, and are dealt with above
            raise DataError(f"cannot be written: {error.strerror}.", source=str(target)) from None
        except ValueError as error:
            return f"The server leads on to an address that is none ({type(error).__name__}), from {url}."
    return None


class _RefusedError(Exception):
    """What the server sends is not the published file; the message says why."""


class _Part:
    """A file that is being fetched, which takes neither too many bytes nor too much time."""

    def __init__(self, file: BinaryIO, until: float, url: str) -> None:
        self.file, self.until, self.url, self.left = file, until, url, MOST_BYTES

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            more = f"The server sends more than {MOST_BYTES:,} bytes"
            raise _RefusedError(f"{more}, so it is not the published file: {self.url}.")
        if time.monotonic() > self.until:
            slow = f"The server takes more than {MOST_S / 60:g} minutes to send this file."
            raise DataError(f"{slow} {GO_ON}, perhaps at a better time.", source=self.url)
        return self.file.write(data)

    def flush(self) -> None:
        """Do nothing: small chunks are not worth a trip to the disk each."""
