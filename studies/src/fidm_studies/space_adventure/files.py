"""Reads the published files of the Space Adventure Task: one person's flights, and their other tests.

The flights are in MATLAB files with a structure ``data``; the tests in tables with tabs between columns.
A session whose fuel ran out ended there: it has fewer mini-blocks, and the last one may lack flights.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.errors import DataError, Problem
from fidm.types import Floats, Integers
from fidm_studies.dataset import visible_files
from fidm_studies.space_adventure.task import ACTIONS, FUEL, N_PLANETS, RELIABILITY, MiniBlock

SESSIONS, SCORES = "*.mat", "*.txt"
"""What the files of flights, and those of the other tests, are like."""

_NO_SESSION = (
    OSError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    ArithmeticError,
    MemoryError,
    zlib.error,
    struct.error,
)
"""What reading a MATLAB file stumbles over where it is damaged, or is none, beside SciPy's own error."""


MOST_STEPS = 3
FASTEST_MS = 150
"""Answers of the tests that were faster than this are left out, as the authors did."""

TRAINING_ITEMS = 4
"""How many lines at the head of a memory test's file are training."""

N_ITEMS = {"processing_speed": 46, "vocabulary": 35, "working_memory": 96}
"""How many items each test has; its score is the share of them that was answered rightly."""


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """What one file holds: a person's mini-blocks, flight by flight.

    Parameters
    ----------
    path : Path
        The file.
    age : float
        In years; NaN where the file does not say.
    gender : str or None
        ``"man"`` or ``"woman"``; None where the file does not say.
    blocks : tuple of MiniBlock [B]
        The mini-blocks that were begun, in the order in which they were shown.
    action, planet : int array [B, 3]
        What was done on each flight, and the planet it was done on, both counted from 0; -1 where there was
        no flight.
    landed : int array [B, 3]
        The planet each flight led to; -1 where it did not take place or was not recorded, that is, where the
        file has no planet or no fuel after it.
    rt_s, fuel : float array [B, 3]
        Seconds until the choice, and fuel after the flight.
    """

    path: Path
    age: float
    gender: str | None
    blocks: tuple[MiniBlock, ...]
    action: Integers
    planet: Integers
    landed: Integers
    rt_s: Floats
    fuel: Floats

    @property
    def flown(self) -> NDArray[np.bool_]:
        """Whether there was a flight, [B, 3]."""
        return self.action >= 0

    @property
    def points(self) -> float:
        """The fuel at the end; NaN if it was never recorded."""
        known = self.fuel[np.isfinite(self.fuel)]
        return float(known[-1]) if len(known) else np.nan

    def same_choices(self, other: Session) -> bool:
        """Return whether another file has the same flights, planets and reaction times."""
        return (
            self.blocks == other.blocks
            and np.array_equal(self.action, other.action)
            and np.array_equal(self.planet, other.planet)
            and np.array_equal(self.landed, other.landed)
            and np.array_equal(self.rt_s, other.rt_s, equal_nan=True)
        )


def read_session(path: Path) -> Session:
    """Read one person's flights from a MATLAB file."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        data = loadmat(path, squeeze_me=True, struct_as_record=False)["data"]
        keys = _rows(data.Responses.Keys, MOST_STEPS)
        states = _rows(data.States, MOST_STEPS + 1)
        kinds = _rows(data.PlanetConf, N_PLANETS)
        rt_s, fuel = _rows(data.Responses.RT, MOST_STEPS), _rows(data.Points, MOST_STEPS)
        steps = np.atleast_1d(data.Conditions.notrials).astype(np.float64)
        noise = [str(word) for word in np.atleast_1d(data.Conditions.noise).tolist()]
        age, gender = float(data.Age), float(data.Gender)
    except NotImplementedError:
        raise DataError(
            "It is a MATLAB file of version 7.3, which no published one is.", source=path.name
        ) from None
    except (MatReadError, *_NO_SESSION) as error:
        raise DataError(
            f"It cannot be read as a session of the Space Adventure Task ({type(error).__name__}). Is it the "
            "published file?",
            source=path.name,
        ) from None
    if len({len(rows) for rows in (keys, states, kinds, rt_s, fuel, steps)}) > 1:
        raise DataError(
            "Its tables are not of the same mini-blocks: they differ in length.", source=path.name
        )
    begun = np.isfinite(steps) & np.isfinite(keys[:, 0])
    if not begun.any():
        raise DataError("No mini-block was begun in it.", source=path.name)
    n = len(begun) if begun.all() else int(np.flatnonzero(~begun)[0])
    if n > len(noise) or begun[n:].any():
        raise DataError("Mini-blocks are missing between others.", source=path.name)
    within = np.arange(MOST_STEPS) < steps[:n, None]
    flown = np.isfinite(keys[:n])
    _check(path, keys[:n], states[:n], kinds[:n], steps[:n], noise[:n], rt_s[:n], flown, within)
    if np.isinf(age) or np.isinf(gender) or np.isinf(fuel[:n]).any():
        raise DataError("An age, a gender or the fuel is infinite in it.", source=path.name)
    return Session(
        path=path,
        age=age,
        gender=None if not np.isfinite(gender) else ("man", "woman")[int(gender != 0)],
        blocks=tuple(
            MiniBlock(tuple(int(kind) for kind in kinds[b]), noise[b], int(steps[b]), int(states[b, 0]) - 1)
            for b in range(n)
        ),
        action=np.where(flown, keys[:n] - 1, -1).astype(np.int64),
        planet=np.where(flown, states[:n, :-1] - 1, -1).astype(np.int64),
        landed=np.where(flown & np.isfinite(states[:n, 1:] + fuel[:n]), states[:n, 1:] - 1, -1).astype(
            np.int64
        ),
        rt_s=np.where(flown, rt_s[:n], np.nan),
        fuel=np.where(flown, fuel[:n], np.nan),
    )


def _rows(values: Any, width: int) -> Floats:
    return np.asarray(values, dtype=np.float64).reshape(-1, width)


def _check(
    path: Path,
    keys: Floats,
    states: Floats,
    kinds: Floats,
    steps: Floats,
    noise: list[str],
    rt_s: Floats,
    flown: NDArray[np.bool_],
    within: NDArray[np.bool_],
) -> None:
    """Raise where a file holds something the task does not have."""
    wrong = {
        "an action other than 1 and 2": not np.isin(keys[flown], np.arange(len(ACTIONS)) + 1).all(),
        f"a planet other than 1 to {N_PLANETS}": not np.isin(
            states[np.isfinite(states)], np.arange(N_PLANETS) + 1
        ).all(),
        f"a kind of planet other than 1 to {len(FUEL)}": not np.isin(kinds, np.arange(len(FUEL)) + 1).all(),
        "a number of flights other than 2 and 3": not np.isin(steps, (2, 3)).all(),
        "a noise other than low and high": not set(noise) <= set(RELIABILITY),
        "more flights than a mini-block has": bool((flown & ~within).any()),
        "a flight from a planet that is not recorded": bool((flown & ~np.isfinite(states[:, :-1])).any()),
        "a flight that follows one that is missing": bool((flown[:, 1:] & ~flown[:, :-1]).any()),
        "a reaction time that is not above 0": not ((rt_s[flown] > 0) & np.isfinite(rt_s[flown])).all(),
    }
    found = [what for what, is_so in wrong.items() if is_so]
    if found:
        raise DataError(f"It has {' and '.join(found)}, which the task does not.", source=path.name)


def person_of(path: Path) -> str:
    """Return whose file it is, as its name says.

    Examples
    --------
    >>> person_of(Path("part_29900001_01-Jan-2000_10-00.mat")), person_of(Path("b09_09101_exp.mat"))
    ('29900001', '09101')
    >>> person_of(Path("09102_b09_idp_file.txt"))
    '09102'
    """
    found = re.match(r"(?:b\d+_|part_)?(\d+)[_.]", path.name)
    if found is None:
        raise DataError("Its name does not say whose file it is.", source=path.name)
    return found[1]


def read_sessions(folder: Path) -> dict[str, Session]:
    """Read all sessions of a folder, by person."""
    return {person: read_session(path) for person, path in _files(folder, SESSIONS).items()}


def require_folders(patterns: Mapping[Path, str]) -> None:
    """Raise where folders have no files like a pattern; all of them at once."""
    problems = [
        Problem(f"There are no files like {pattern} in it.", where=str(folder))
        for folder, pattern in patterns.items()
        if not visible_files(folder, pattern)
    ]
    if problems:
        raise DataError("Files are missing. Are these all the published ones?", problems=problems)


def _files(folder: Path, pattern: str) -> dict[str, Path]:
    """The files of a folder by person; each has one."""
    found: dict[str, Path] = {}
    for path in visible_files(folder, pattern):
        if found.setdefault(person_of(path), path) != path:
            raise DataError("There is another file of the same person beside it.", source=path.name)
    require_folders({folder: pattern} if not found else {})
    return found


# ---------------------------------------------------------------------- other tests


def read_scores(folder: Path, test: str) -> dict[str, float]:
    """Read a test's files of a folder: the share of all items that each person answered rightly.

    Answers after the time was up, and those faster than 150 ms, are not counted; nor are training items.

    Parameters
    ----------
    folder : Path
        With a file per person.
    test : {"processing_speed", "vocabulary", "working_memory"}
        Which test it is.
    """
    found = {}
    for person, path in _files(folder, SCORES).items():
        if test == "working_memory":
            table = _columns(path, ("Resp1", "RT1", "Corr1"))[TRAINING_ITEMS:]
            is_right = (pl.col("Resp1") >= 0) & (pl.col("RT1") >= FASTEST_MS) & (pl.col("Corr1") > 0)
        else:
            table = _columns(path, ("RESP", "RESPT", "ACC"))
            is_right = (pl.col("RESP") > 0) & (pl.col("RESPT") >= FASTEST_MS) & (pl.col("ACC") > 0)
        found[person] = table.filter(is_right).height / N_ITEMS[test]
    return found


def _columns(path: Path, names: Iterable[str]) -> pl.DataFrame:
    """These columns of a table with tabs, as numbers; lines may end with a further tab."""
    try:
        lines = path.read_text("utf-8-sig", errors="replace").splitlines()
        head = lines[0].rstrip("\t").split("\t") if lines else []
        place = {name: head.index(name) for name in names}
        rows = [line.split("\t") for line in lines[1:] if line.strip()]
        return pl.DataFrame({name: [float(row[at]) for row in rows] for name, at in place.items()})
    except (OSError, ValueError, IndexError):
        raise DataError(
            f"It cannot be read as a table with the columns {', '.join(names)}.", source=path.name
        ) from None
