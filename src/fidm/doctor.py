"""What this machine has of what fidm can use, and what to do about what is missing or broken.

Nothing is changed and nothing leaves the machine: servers of language models are looked for at 127.0.0.1
alone, without a proxy. What is installed is read from the packages themselves; of what is slow to import
only what the estimates need is imported.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Literal

import fidm
from fidm.errors import count, few

PORTS = {"Ollama": 11434, "vLLM": 8000, "llama.cpp": 8080, "LM Studio": 1234}
"""Where servers of language models usually listen."""

WAIT_S = 0.5
"""How long such a server may take to answer."""

MOST_BYTES = 1_000_000

FOR_DEVELOPERS = ("dev", "docs")
"""Extras that nobody needs who uses fidm."""

SIGNS = "✓η買"
"""What pages of fidm hold; a terminal that cannot show one of these shows ? instead."""

BROKEN = (ImportError, OSError, AttributeError, RuntimeError, SyntaxError, TypeError, ValueError)
"""What importing a package raises that is installed only in part, or for another machine."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str  # what was looked at, in two or three words
    status: Literal[
        "ok", "lacking", "problem"
    ]  # lacking: something optional; problem: fidm cannot do its work
    said: str  # what was found
    remedy: str = ""  # what to do about it


@dataclass(frozen=True, slots=True)
class Checkup:
    """What :func:`examine` found."""

    checks: tuple[Check, ...]

    @property
    def can_work(self) -> bool:
        """Whether fidm can take a study from dialogs or tables to its report."""
        return all(one.status != "problem" for one in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"can_work": self.can_work, "checks": [asdict(one) for one in self.checks]}


def examine() -> Checkup:
    """Look at this machine: libraries, extras, fonts, encoders, servers, folders and the terminal.

    Examples
    --------
    >>> from fidm.doctor import examine
    >>> found = examine()
    >>> found.can_work, found.checks[0].name
    (True, 'Python')
    """
    parts: tuple[Callable[[], Iterator[Check]], ...] = (
        _python, _libraries, _compiled, _extras, _studies, _fonts, _encoders, _servers, _folder, _terminal,
    )  # fmt: skip
    return Checkup(tuple(check for part in parts for check in _heard(part)))


def _heard(part: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """What one part found; where a broken package makes it fail, that."""
    try:
        yield from part()
    except BROKEN as error:
        name = part.__name__.strip("_")
        yield Check(name, "lacking", f"cannot be looked at: {error}", "Install what it names again.")


def _python() -> Iterator[Check]:
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    said = f"{platform.python_version()} on {platform.system()}, {count(there, 'processor')}"
    yield Check("Python", "ok", said)
    yield Check("fidm", "ok", f"{fidm.__version__} in {Path(fidm.__file__).parent}")


def _needed(extra: str = "") -> tuple[list[str], list[str]]:
    """What fidm, or an extra of it, is installed with; and what it lacks, as pip takes it."""
    from packaging.requirements import Requirement  # matplotlib needs it, so it is here

    here: list[str] = []
    lacking: list[str] = []
    for one in map(Requirement, requires("fidm") or ()):
        if one.marker.evaluate({"extra": extra}) if one.marker else not extra:
            try:
                found = version(one.name)
            except PackageNotFoundError:
                lacking.append(f"{one.name}{one.specifier}")
            else:
                fits = one.specifier.contains(found, prereleases=True)
                (here if fits else lacking).append(
                    f"{one.name} {found}" if fits else f"{one.name}{one.specifier}"
                )
    return here, lacking


def _libraries() -> Iterator[Check]:
    try:
        here, lacking = _needed()
    except PackageNotFoundError:
        yield Check("libraries", "lacking", "fidm is not installed as a package", "pip install -e .")
        return
    if lacking:
        again = " ".join(f"'{one}'" for one in lacking)
        yield Check("libraries", "problem", f"missing or too old: {few(lacking)}", f"pip install -U {again}")
    else:
        yield Check("libraries", "ok", ", ".join(here))


def _compiled() -> Iterator[Check]:
    """Numba refuses at import where there is no folder for what it compiles."""
    try:
        importlib.import_module("fidm.model.kernels")
    except BROKEN as error:
        yield Check(
            "compiled loops", "problem", f"cannot be loaded: {error}",
            "Install numba and numpy again, or set NUMBA_CACHE_DIR to a folder that you can write.",
        )  # fmt: skip
    else:
        yield Check("compiled loops", "ok", "can be loaded and kept")


def _extras() -> Iterator[Check]:
    try:
        names = metadata("fidm").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return
    for name in sorted(set(names) - set(FOR_DEVELOPERS)):
        here, lacking = _needed(name)
        if lacking:
            said = f"not installed: {', '.join(lacking)}"
            yield Check(f"extra {name}", "lacking", said, f"pip install 'fidm[{name}]'")
        else:
            yield Check(f"extra {name}", "ok", ", ".join(here))


def _studies() -> Iterator[Check]:
    try:
        yield Check("fidm-studies", "ok", version("fidm-studies"))
    except PackageNotFoundError:
        said = "published data sets are not installed"
        yield Check("fidm-studies", "lacking", said, "pip install fidm-studies")


def _fonts() -> Iterator[Check]:
    from fidm.plot.style import chinese_families

    found = chinese_families()
    if found:
        yield Check("figures", "ok", f"Chinese is drawn with {found[0]}")
        return
    yield Check(
        "figures", "lacking", "no installed font has Chinese letters; they are drawn as boxes",
        "Install one such as Noto Sans CJK (Debian, Ubuntu: apt-get install fonts-noto-cjk).",
    )  # fmt: skip


def _encoders() -> Iterator[Check]:
    from fidm.classify.encoder import ENCODERS, encoders_here

    found = encoders_here()
    if found:
        yield Check("encoders", "ok", few(found))
        return
    fetch = f"For language in fidm classify: hf download {ENCODERS['bert']}"
    yield Check("encoders", "lacking", "no language encoder is on this machine", fetch)


def _servers() -> Iterator[Check]:
    with ThreadPoolExecutor(len(PORTS)) as pool:
        answers = dict(zip(PORTS, pool.map(_models, PORTS.values()), strict=True))
    for name, models in answers.items():
        if models is not None:
            address = f"http://127.0.0.1:{PORTS[name]}/v1"
            said = f"answers at {address} (the usual port of {name}): {few(models) or 'names no model'}"
            yield Check("language model", "ok", said)
    if all(models is None for models in answers.values()):
        looked = ", ".join(f"{name} {port}" for name, port in PORTS.items())
        yield Check(
            "language model", "lacking", f"no server answers at 127.0.0.1 ({looked})",
            "Only fidm ground --by llm or --by hybrid needs one; --endpoint names another port.",
        )  # fmt: skip


def _models(port: int) -> list[str] | None:
    """The models of a server on this machine; None where there is no server of this kind."""
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        listed = json.loads(answer.read(MOST_BYTES))["data"] if answer.status == 200 else None
        return None if listed is None else [str(one["id"]) for one in listed]
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        connection.close()


def _folder() -> Iterator[Check]:
    try:
        with tempfile.TemporaryFile(dir=Path.cwd()):
            yield Check("this folder", "ok", "can be written")
    except OSError as error:
        said = f"cannot be written: {error.strerror}"
        yield Check("this folder", "lacking", said, "Work in another folder, or name one: --out.")


def _terminal() -> Iterator[Check]:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    named = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    said = f"{encoding}, locale {next(filter(None, named), 'not set')}"
    try:
        SIGNS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        remedy = "Set a UTF-8 locale, such as LANG=C.UTF-8, or PYTHONUTF8=1."
        yield Check("terminal", "lacking", f"{said}: some letters are shown as ?", remedy)
    else:
        yield Check("terminal", "ok", said)
