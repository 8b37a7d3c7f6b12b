"""Tables of turns: CSV (.csv) and TSV (.tsv) with a row for each, and JSONL (.jsonl) with an object for each.

Columns are ``speaker``, ``start_s``, ``end_s`` and ``text``; if wanted also ``participant``, ``episode``,
``language`` and ``role`` ("participant", "assessor" or "other"). One file may hold many participants. JSONL
keeps ``marks`` and ``words`` as well. Columns have commas, semicolons or tabs between them. Times are seconds
(``72.5``; ``72,5`` where columns have no commas between them) or clock times (``1:12.5``, ``00:01:12,500``).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fidm.errors import remedy
from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Options,
    RawFile,
    RawTurn,
    clean,
    marks_from,
    marks_to,
    number,
    role_from,
    rounded,
    words_from,
    words_to,
)
from fidm.io.sheets import separator_of
from fidm.talk import Transcript

NEEDED = ("speaker", "start_s", "end_s", "text")
OPTIONAL = ("participant", "episode", "language", "role")
WRITTEN = ("participant", "episode", "language", "speaker", "role", "start_s", "end_s", "text")


USUAL = {
    *NEEDED, *OPTIONAL, "begin", "channel", "duration", "end", "file", "from", "id", "line", "name", "offset",
    "onset", "start", "start_time", "end_time", "tier", "time", "to", "transcript", "turn", "utterance",
    "who",
}  # fmt: skip
"""Names of columns; where a first row has two of them, it is no row of what was said."""

TIME_HINT = "Give times in seconds, with a point, or as hours, minutes and seconds, such as 0:01:12.5."
CLOCK = re.compile(r"(?:([0-9]{1,3}):(?=[0-5]?[0-9]:))?([0-9]{1,3}):([0-5]?[0-9](?:[.,][0-9]{0,9})?)")
DECIMAL_COMMA = re.compile(r"-?[0-9]{1,9},[0-9]{0,9}")


def read_csv(text: str, options: Options) -> RawFile:
    """Read the text of a CSV file, whatever stands between its columns."""
    between = separator_of(text)
    return _file(_csv_rows(text, between), options, commas=between != ",")


def _csv_rows(text: str, between: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            here, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if len(set(header)) < len(header):
                    raise BrokenError("has two columns of the same name.", here)
                continue
            if len(cells) != len(header):
                raise BrokenError(
                    "A row has not as many cells as the first.",
                    here,
                    "Texts with the sign that separates columns need quotes around them.",
                )
            yield here, dict(zip(header, cells, strict=True))
    except csv.Error:
        raise BrokenError(
            "is not CSV that can be read.", line, "Is a quote missing, or was the file cut?"
        ) from None
    if header is not None and line >= 1:
        yield 0, dict.fromkeys(header)  # tells the columns of a table without rows


def read_jsonl(text: str, options: Options) -> RawFile:
    """Read the text of a JSONL file."""
    return _file(_jsonl_rows(text), options)


def _jsonl_rows(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not row.strip():
            continue
        try:
            found = json.loads(row)
        except (ValueError, RecursionError):
            raise BrokenError("A line is not JSON that can be read.", line, "Was the file cut?") from None
        if not isinstance(found, dict):
            raise BrokenError("A line is no JSON object.", line)
        yield line, found


def _file(
    rows: Iterator[tuple[int, Mapping[str, Any]]], options: Options, *, commas: bool = False
) -> RawFile:
    names = {name: options.columns.get(name, name) for name in (*NEEDED, *OPTIONAL)}
    file = RawFile()
    seen: set[tuple[object, ...]] = set()
    told: set[str] = set()
    decimals: set[str] = set()
    for line, row in rows:
        missing = [name for name in NEEDED if names[name] not in row and name not in told]
        for name in missing:
            told.add(name)
            say = remedy(f"columns={{{name!r}: …}}, or [columns] in", f"{name} in [columns] of the study's")
            hint = f"Say which it is: {say} grounding.toml."
            hint = f"{_columns_of(row)} {hint if name == names[name] else ''}".strip()
            file.flaws.append(Flaw(f"has no column {names[name]!r}.", line or 1, hint))
        absent = [name for name in options.columns if name not in NEEDED and names[name] not in row]
        for name in absent:
            if name not in told:
                told.add(name)
                file.flaws.append(Flaw(f"has no column {names[name]!r}.", line or 1, _columns_of(row)))
        if line == 0 or any(names[name] not in row for name in NEEDED):
            continue
        cells = {name: row.get(column) for name, column in names.items()}
        decimals |= {sign for time in ("start_s", "end_s") for sign in ".," if sign in str(cells[time])}
        turn = _turn(cells, row, line, file.flaws, commas=commas)
        if turn is None:
            continue
        key = (turn.participant, turn.episode, turn.speaker, turn.start_s, turn.end_s, turn.text)
        if key in seen:  # NaN is unlike itself, so untimed turns may repeat
            file.flaws.append(Flaw("The row repeats an earlier one.", line))
        seen.add(key)
        file.turns.append(turn)
    if len(decimals) == 2 and not file.flaws:
        file.flaws.append(
            Flaw("Some times have points, others commas.", None, "Write all of them in one way.")
        )
    return file


def _columns_of(row: Mapping[str, Any]) -> str:
    """The columns of a table, unless its first row may be something that was said."""
    names = [name for name in row if re.fullmatch(r"[\w .()\[\]/-]{1,24}", name)]
    are_names = sum(name.casefold() in USUAL for name in names) >= 2
    if not are_names or any(re.match(r"\s*[0-9]", name) for name in row):
        return "Its first row must hold the names of its columns."
    more = f" and {len(row) - len(names)} more" if len(row) > len(names) else ""
    return f"It has {', '.join(map(repr, names))}{more}."


def _time(value: object, *, commas: bool) -> float:
    """A time in seconds or as a clock shows it; raises ValueError for what is none."""
    if not isinstance(value, str):
        return number(value)
    plain = value.strip()
    clock = CLOCK.fullmatch(plain)
    if clock is not None:
        hours, minutes, seconds = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
    if commas and DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    return number(plain)


def _turn(
    cells: Mapping[str, Any], row: Mapping[str, Any], line: int, flaws: list[Flaw], *, commas: bool
) -> RawTurn | None:
    if not isinstance(cells["text"], str):
        flaws.append(Flaw("The text is missing or is no text.", line))
        return None
    times: dict[str, float] = {}
    for name in ("start_s", "end_s"):
        try:
            times[name] = _time(cells[name], commas=commas)
        except ValueError:
            flaws.append(Flaw(f"{name} is not a number.", line, TIME_HINT))
            return None
    text = clean(cells["text"])
    role = role_from(cells["role"])
    if cells["role"] not in (None, "") and role is None:
        flaws.append(Flaw("The role is none of participant, assessor, other.", line))
    try:
        marks, words = marks_from(row.get("marks"), len(text)), words_from(row.get("words"), len(text))
    except ValueError:
        marks, words = (), ()
        if not isinstance(row.get("marks"), str) and not isinstance(row.get("words"), str):
            flaws.append(Flaw("The marks or words of the turn cannot be understood.", line))
    named = {name: _name(cells[name]) for name in ("speaker", "participant", "episode", "language")}
    return RawTurn(
        named["speaker"], times["start_s"], times["end_s"], text, line, words, marks, role,
        participant=named["participant"], episode=named["episode"], language=named["language"],
    )  # fmt: skip


def _name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return clean(str(value)) if isinstance(value, str | int) else ""


def write_csv(transcript: Transcript, *, between: str = ",") -> str:
    """Return the text of a CSV file."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=between, lineterminator="\n")
    writer.writerow(WRITTEN)
    writer.writerows([row[name] for name in WRITTEN] for row in _written(transcript))
    return out.getvalue()


def write_tsv(transcript: Transcript) -> str:
    """Return the text of a table with tabs between its columns."""
    return write_csv(transcript, between="\t")


def write_jsonl(transcript: Transcript) -> str:
    """Return the text of a JSONL file."""
    lines = []
    for row, turn in zip(_written(transcript), transcript, strict=True):
        if turn.words:
            row["words"] = words_to(turn.words)
        if turn.marks:
            row["marks"] = marks_to(turn.marks)
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    return "".join(lines)


def _written(transcript: Transcript) -> Iterator[dict[str, Any]]:
    for turn in transcript:
        yield {
            "participant": transcript.participant,
            "episode": transcript.episode,
            "language": transcript.language,
            "speaker": turn.speaker,
            "role": turn.role,
            "start_s": rounded(turn.start_s),
            "end_s": rounded(turn.end_s),
            "text": turn.text,
        }


_BASIC = ("times", "untimed", "empty", "roles", "language", "participant")
CSV = Format("csv", "CSV", (".csv",), _BASIC, read_csv, write_csv, takes_columns=True)
TSV = Format("tsv", "TSV", (".tsv",), _BASIC, read_csv, write_tsv, takes_columns=True)
JSONL = Format(
    "jsonl",
    "JSONL",
    (".jsonl",),
    (*_BASIC, "words", "pauses", "fillers", "retracings", "events"),
    read_jsonl,
    write_jsonl,
    takes_columns=True,
)
