"""Which table in a folder is about the participants, and which of its rows belongs to which dialog."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fidm.errors import DataError, count, few
from fidm.io.formats.base import RECORDINGS
from fidm.io.sheets import SHEETS, TEXTS, read_table, sheet_names, table_columns
from fidm.io.study import PeopleTable, read_manifest

MOST_GROUPS = 6
"""A column with more different texts tells people from each other rather than groups of them."""


@dataclass(frozen=True, slots=True)
class Roster:
    """A lab's table of participants, and which of its rows have a dialog."""

    table: PeopleTable  # where it is, from the study folder
    path: Path
    rows: int
    matched: int  # dialogs' participants with a row, those of ``pairs`` aside
    pairs: Mapping[str, str]  # id of a row and name of a dialog that are probably the same person's
    without_row: tuple[str, ...]  # participants of dialogs that no row is about
    without_dialog: tuple[str, ...]  # ids of rows without a dialog
    left_out: tuple[str, ...]  # ids of rows that say that somebody takes no part
    groups: Mapping[str, tuple[str, ...]]  # columns that may be groups, with their values, the largest first

    def say(self, n_dialogs: int) -> list[str]:
        """Return the match in sentences."""
        said = [
            f"{count(n_dialogs, 'participant')} with dialogs, {count(self.rows, 'row')} in {self.path.name}, "
            f"{self.matched:,} matched by {self.table.id!r}"
        ]
        if self.pairs:
            same = few(f"{dialog} = {row}" for row, dialog in self.pairs.items())
            said.append(f"{count(len(self.pairs), 'more', 'more')} taken as the same: {same}")
        if self.without_row:
            said.append(f"{count(len(self.without_row), 'dialog')} without a row: {few(self.without_row)}")
        if self.without_dialog:
            rows = count(len(self.without_dialog), "row")
            said.append(f"{rows} without a dialog: {few(self.without_dialog)}")
        return said


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, or a sheet of a workbook, that may be about the participants."""

    path: Path
    name: str  # of the sheet; empty where there is one, or the first is meant
    table: pl.DataFrame


def sheets_in(paths: Iterable[Path]) -> tuple[list[Sheet], dict[Path, str]]:
    """All tables, every column as text, and why some files cannot be read."""
    found: list[Sheet] = []
    broken: dict[Path, str] = {}
    for path in paths:
        if path.suffix.casefold() not in (*TEXTS, *SHEETS, ".txt"):
            continue
        try:
            for i, name in enumerate(sheet_names(path) or [""]):
                columns = table_columns(path) if not name else read_table(path, sheet=name).columns
                table = read_table(path, ids=columns, sheet=name)
                if table.width > 1 and table.height:
                    found.append(Sheet(path, name if i else "", table.cast(pl.String)))
        except DataError as error:
            if path.suffix.casefold() != ".txt":  # most of these are no tables
                broken[path] = error.message
    return found, broken


def find_people(
    ids: Sequence[str], study: Path, sheets: Sequence[Sheet]
) -> tuple[Roster | None, tuple[Path, ...]]:
    """Return the table that names most of the dialogs' participants, and tables that name nobody of them."""
    named = read_manifest(study).participants
    if named is not None:
        own, _ = sheets_in([study / named.file])
        use = [one for one in own if one.name == named.sheet and named.id in one.table.columns]
        return (_match(ids, study, use[0], named.id, named) if use else None), ()
    matches = [_match(ids, study, sheet, column, None) for sheet in sheets for column in sheet.table.columns]
    used = [one for one in matches if one.matched + len(one.pairs)]
    best = max(used, key=lambda one: (one.matched + len(one.pairs), one.matched), default=None)
    unused = dict.fromkeys(one.path for one in sheets if best is None or one.path != best.path)
    return best, tuple(one for one in unused if one.suffix != ".txt")


def _match(ids: Sequence[str], study: Path, sheet: Sheet, column: str, named: PeopleTable | None) -> Roster:
    """Which rows of a table have a dialog, if a column holds the ids."""
    given = {} if named is None else dict(named.ids)
    cells = [None if cell is None else _plain(cell) for cell in sheet.table[column]]
    named_rows = [given.get(row, row) for row in dict.fromkeys(cells) if row]
    exact = set(named_rows) & set(ids)
    rows, dialogs = ([one for one in some if one not in exact] for some in (named_rows, ids))
    pairs = same_people(rows, dialogs) if named is None else {}
    out = _withdrawn(sheet.table.drop(column)) if named is None else named.excluded
    is_out = [any((row[name] or "").strip() in values for name, values in out.items())
              for row in sheet.table.iter_rows(named=True)]  # fmt: skip
    own = os.path.relpath(sheet.path, study).replace(os.sep, "/")
    return Roster(
        named or PeopleTable(own, column, sheet.name, pairs, out),
        sheet.path,
        len(named_rows),
        len(exact),
        pairs,
        tuple(one for one in dialogs if one not in pairs.values()),
        tuple(one for one in rows if one not in pairs),
        tuple(row for row, is_gone in zip(cells, is_out, strict=True) if row and is_gone),
        _groups(sheet.table.drop(column, *out)),
    )


OUT = re.compile(
    r"withdr[ae]w\w*|exclu\w+|declined|refused|drop(ped)?[ -]?out|ineligible|退出|撤回", re.IGNORECASE
)
OUT_COLUMN = re.compile(r"exclu|withdr|drop.?out", re.IGNORECASE)
YES, NO = re.compile(r"yes|y|true|1|x", re.IGNORECASE), re.compile(r"no|n|false|0", re.IGNORECASE)


def _withdrawn(table: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Values by column that say somebody takes no part; a column ``excluded`` says it already."""
    found = {}
    for column in table:
        says = NO if "consent" in column.name.casefold() else YES if OUT_COLUMN.search(column.name) else None
        values = column.drop_nulls().str.strip_chars().unique().sort().to_list()
        out = [one for one in values if OUT.fullmatch(one) or (says is not None and says.fullmatch(one))]
        if out and column.name.casefold() != "excluded":
            found[column.name] = tuple(out)
    return found


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


def same_people(rows: Iterable[str], dialogs: Iterable[str]) -> dict[str, str]:
    """Return which ids of a table and names of dialogs are probably the same person's, one to one.

    Upper and lower case, leading zeros and what stands between letters and numbers make no difference; of
    what is still left, an id with letters and numbers may be a part of the other name, and at last O and I
    may be meant as 0 and 1. Where several could be meant, none is.

    Examples
    --------
    >>> same_people(["S01", "S02", "S3"], ["s1", "S-2_visit1", "S3a", "S3b"])
    {'S01': 's1', 'S02': 'S-2_visit1'}
    """
    left = {row: parts_of(row) for row in rows}
    names = {name: parts_of(name) for name in dialogs}
    found: dict[str, str] = {}
    for alike in (_equal, _holds, _alike):
        near = {
            row: [name for name, own in names.items() if alike(parts, own)] for row, parts in left.items()
        }
        times = Counter(name for some in near.values() for name in some)
        pairs = {row: some[0] for row, some in near.items() if len(some) == 1 and times[some[0]] == 1}
        found |= pairs
        left = {row: parts for row, parts in left.items() if row not in pairs}
        names = {name: parts for name, parts in names.items() if name not in pairs.values()}
    return found


def require_reached(
    excluded: Sequence[str], known: Iterable[str], dialogs: Iterable[str], source: str
) -> None:
    """Raise where an exclusion reaches nobody, and somebody it may mean would be analysed.

    Parameters
    ----------
    excluded : sequence of str
        Who is excluded.
    known : iterable of str
        Everybody the table of participants has a row for.
    dialogs : iterable of str
        Whose dialogs there are.
    source : str
        The study.
    """
    left = sorted(set(dialogs) - set(known))
    pairs = same_people(sorted(set(excluded) - set(dialogs)), left)
    if pairs:
        said = "; ".join(
            f"{row} is excluded, and {who}, probably the same person, is not" for row, who in pairs.items()
        )
        raise DataError(
            f"{said}. Write names in the table of participants as the dialogs have them, or say in "
            "study.toml which belong together, under [participants.ids]; where they are two people, give "
            "both a row.",
            source=source,
        )


NOT_OF_NAMES = (".transcript", ".cha", ".eaf", ".textgrid", ".srt", ".vtt", *RECORDINGS)
ENDINGS = rf"({'|'.join(map(re.escape, NOT_OF_NAMES))})+$"
"""What tables that list recordings or transcripts write after a name."""


def parts_of(name: str) -> tuple[str, ...]:
    """Return the letters and the numbers of a name, without zeros before a number; endings of files aside."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    plain = re.sub(ENDINGS, "", re.sub(r"(?<=\d)\.0$", "", plain))
    return tuple(part.lstrip("0") or "0" if part.isdigit() else part for part in
                 re.findall(r"\d+|[^\W\d_]+", plain))  # fmt: skip


def _equal(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return one == other != ()


def _holds(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether the shorter of two names, with letters and numbers, is a part of the longer."""
    short, long = sorted((one, other), key=len)
    starts = range(len(long) - len(short) + 1)
    return len(short) > 1 and any(long[start : start + len(short)] == short for start in starts)


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two names are the same where the letters o, i and l stand for digits."""
    first, second = (parts_of("".join(name).translate(DIGITS)) for name in (one, other))
    return first == second or (as_date(one) == as_date(other) and len(one) > 1)


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def as_date(name: tuple[str, ...]) -> list[str]:
    """Return what a spreadsheet keeps of a name that it takes for a date: 3-4 becomes 04-Mar."""
    return sorted(str(MONTHS.index(part) + 1) if part in MONTHS else part for part in name)


DIGITS = str.maketrans("oil", "011")


def _groups(table: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Columns that may tell groups of people: some texts, each of at least two people, the largest first."""
    found = {}
    for column in table:
        values = column.cast(pl.String).drop_nulls()
        times = Counter(values)
        are_words = values.cast(pl.Float64, strict=False).null_count() == len(values)
        if 2 <= len(times) <= MOST_GROUPS and min(times.values()) >= 2 and are_words:
            found[column.name] = tuple(sorted(times, key=lambda one: (-times[one], one)))
    return found
