"""Who is who in a report that must not lead back to anybody.

People are called P001, P002 and so on in an order nobody can guess: it is drawn from the machine's own
randomness, not from a seed, since whoever knows the ids of a study and the seed could draw the same order.
Only a key file, if one is asked for, says who is who; if it is there already, people keep their names, and
those who are new in the study get new ones. People also stand in the order of their new names, everywhere:
in the order of the study, whoever knows its ids could count who is who.
"""

from __future__ import annotations

import csv
import io
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.files import whole_file

COLUMNS = ("participant", "shown_as")

SHOWN = re.compile(r"P[0-9]{1,9}")
"""What a name looks like."""


def draw_names(ids: Sequence[str], *, key: Path | None = None) -> dict[str, str]:
    """Return what each person is called in a de-identified report.

    Parameters
    ----------
    ids : sequence of str
        Everybody, those who are excluded among them.
    key : Path, optional
        A file that says who is who, used if it is there.

    Examples
    --------
    >>> sorted(draw_names(["Ann", "Bo"]).values())
    ['P001', 'P002']
    """
    known = {} if key is None or not key.exists() else read_key(key)
    new = [name for name in dict.fromkeys(ids) if name not in known]
    taken = [number(shown) for shown in known.values()]
    first = max(taken, default=0) + 1
    width = max(3, len(str(first + len(new) - 1)))
    secrets.SystemRandom().shuffle(new)
    return {**known, **{name: f"P{first + i:0{width}d}" for i, name in enumerate(new)}}


def read_key(path: Path) -> dict[str, str]:
    """Read a key file: a row per person, ``participant`` and ``shown_as``."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot be read ({type(error).__name__}).", source=str(path)) from None
    if any(None in (row.get(name) for name in COLUMNS) for row in rows):
        raise DataError(
            f"is no key file: it needs the columns {' and '.join(COLUMNS)}.",
            source=str(path),
        )
    found = {row["participant"]: row["shown_as"] for row in rows}
    shown = list(found.values())
    if len(found) < len(rows) or len(set(shown)) < len(shown):
        raise DataError("names somebody twice, so it does not say who is who.", source=str(path))
    if not all(SHOWN.fullmatch(name) for name in shown):
        raise DataError("has names that are not P001, P002 and so on.", source=str(path))
    return found


def write_key(path: Path, names: Mapping[str, str]) -> None:
    """Write who is who, for the owner of the file alone."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows: list[tuple[str, str]] = sorted(names.items(), key=lambda pair: number(pair[1]))
    writer.writerows(rows)
    with whole_file(path, mode=0o600) as part:
        part.write_text(text.getvalue(), "utf-8")


def number(shown: str) -> int:
    """Return the number in a name.

    Examples
    --------
    >>> number("P012")
    12
    """
    return int(shown[1:])


def rename(cohort: Cohort, names: Mapping[str, str]) -> Cohort:
    """Return the same people under other names, in the order of those names.

    Nothing that is made from the cohort, no table and no figure, can then be in the order of the ids.
    """
    order = sorted(range(len(cohort)), key=lambda row: number(names[cohort.ids[row]]))
    moved, problems = cohort[order], renamed(cohort.problems, names)
    return replace(
        moved,
        participants=renamed(moved.participants, names),
        problems=problems.sort("problem", "participant", nulls_last=True),
    )


def renamed(table: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """Return a table whose participants have other names; whoever has none is null."""
    new = pl.col("participant").replace_strict(names, default=None, return_dtype=pl.String)
    return table.with_columns(new)
