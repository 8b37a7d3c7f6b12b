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
from collections.abc import Iterable, Iterator, Mapping
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
from fidm.io.sheets import SEPARATORS, separator_of
from fidm.io.talk import Transcript

NEEDED = ("speaker", "start_s", "end_s", "text")
OPTIONAL = ("participant", "episode", "language", "role")
WRITTEN = ("participant", "episode", "language", "speaker", "role", "start_s", "end_s", "text")


CALLED: Mapping[str, tuple[str, ...]] = {
    "speaker": (
        "who", "spk", "spkr", "speaker_id", "speaker_name", "speaker_label", "tier", "channel", "name",
        "sprecher", "sprecherin", "locuteur", "hablante", "說話者", "说话者", "說話人", "说话人", "講者",
    ),
    "start_s": (
        "start", "start_time", "begin", "begin_time", "onset", "from", "tmin", "xmin",
        "beginn", "anfang", "von", "début", "debut", "inicio", "開始", "开始", "開始時間", "开始时间",
    ),
    "end_s": (
        "end", "end_time", "stop", "offset", "to", "tmax", "xmax",
        "ende", "bis", "fin", "結束", "结束", "結束時間", "结束时间",
    ),
    "text": (
        "utterance", "utt", "transcript", "transcription", "words", "content", "said", "sentence",
        "äußerung", "äusserung", "transkript", "texte", "texto", "內容", "内容", "文字", "說話內容", "逐字稿",
    ),
    "participant": (
        "participant_id", "pt", "ppt", "subject", "subject_id", "pid", "參加者", "参加者", "受試者",
    ),
}  # fmt: skip
"""What tables call their columns, besides the names that are always known; capitals and units aside."""

USUAL = {
    *NEEDED, *OPTIONAL, "begin", "channel", "duration", "end", "file", "from", "id", "line", "name", "offset",
    "onset", "start", "start_time", "end_time", "tier", "time", "to", "transcript", "turn", "utterance",
    "who",
}  # fmt: skip
"""Names of columns that messages may show, as nobody said them."""

UNIT = re.compile(r"[ _]*[(\[](s|sec|seconds|ms|msec|milliseconds)[)\]]$|[ _](s|sec|seconds|ms|msec)$")
"""The unit at the end of a column's name."""

NO_COLUMN = "has no column"
"""How what is said of a table without a column begins."""

MS = re.compile(r"\b(ms|msec|milliseconds)\b|_ms$")

MOST_TITLES = 5
"""Within so many lines of titles the names of columns are looked for."""

TIME_HINT = "Give times in seconds, with a point, or as hours, minutes and seconds, such as 0:01:12.5."
CLOCK = re.compile(r"(?:([0-9]{1,3}):(?=[0-5]?[0-9]:))?([0-9]{1,3}):([0-5]?[0-9](?:[.,][0-9]{0,9})?)")
DECIMAL_COMMA = re.compile(r"-?[0-9]{1,9},[0-9]{0,9}")


def read_csv(text: str, options: Options) -> RawFile:
    """Read the text of a CSV file, whatever stands between its columns."""
    between, titles = _header(text, options)
    return _file(_csv_rows(text, between, titles), options, commas=between != ",")


def _header(text: str, options: Options) -> tuple[str, int]:
    """What stands between columns, and how many lines of titles stand above their names."""
    usual = {*USUAL, *(name for names in CALLED.values() for name in names), *options.columns.values()}
    for above, line in enumerate(text.split("\n", MOST_TITLES)[:MOST_TITLES]):
        for between in SEPARATORS:
            if sum(_plain(cell.strip(' "\r')) in usual for cell in line.split(between)) >= 2:
                return between, above
    return separator_of(text), 0


def _csv_rows(text: str, between: str, titles: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    lines = io.StringIO(text, newline="")
    for _ in range(titles):
        lines.readline()
    reader = csv.reader(lines, delimiter=between, strict=True)
    header: list[str] | None = None
    line = titles + 1
    try:
        for cells in reader:
            here, line = line, titles + reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                named = [cell for cell in header if cell]
                if len(set(named)) < len(named):
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
    names: dict[str, str] = {}
    file, in_ms = RawFile(), False
    needed: tuple[str, ...] = NEEDED
    seen: set[tuple[object, ...]] = set()
    told: set[str] = set()
    decimals: set[str] = set()
    for line, row in rows:
        if not names:
            found = columns_of(row, options.columns)
            names = {name: found.get(name, options.columns.get(name, name)) for name in (*NEEDED, *OPTIONAL)}
            if "speaker" not in found and "" in options.speakers:  # all is said by one, as the user said
                needed = NEEDED[1:]
            in_ms = all(MS.search(names[name].casefold()) for name in ("start_s", "end_s"))
        missing = [name for name in needed if names[name] not in row and name not in told]
        for name in missing:
            told.add(name)
            say = remedy(f"columns={{{name!r}: …}}, or [columns] in", f"{name} in [columns] of the study's")
            hint = f"Say which it is: {say} grounding.toml."
            hint = f"{_columns_of(row)} {hint if name == names[name] else ''}".strip()
            file.flaws.append(Flaw(f"{NO_COLUMN} {names[name]!r}.", line or 1, hint))
        absent = [name for name in options.columns if name not in NEEDED and names[name] not in row]
        for name in absent:
            if name not in told:
                told.add(name)
                file.flaws.append(Flaw(f"{NO_COLUMN} {names[name]!r}.", line or 1, _columns_of(row)))
        if line == 0 or any(names[name] not in row for name in needed):
            continue
        cells = {name: row.get(column) for name, column in names.items()}
        decimals |= {sign for time in ("start_s", "end_s") for sign in ".," if sign in str(cells[time])}
        turn = _turn(cells, row, line, file.flaws, commas=commas, scale=0.001 if in_ms else 1.0)
        if turn is None:
            continue
        key = (turn.participant, turn.episode, turn.speaker, turn.start_s, turn.end_s, turn.text)
        if key in seen and turn.start_s == turn.start_s:  # turns without times may repeat
            file.flaws.append(Flaw("The row repeats an earlier one.", line))
        seen.add(key)
        file.turns.append(turn)
    if len(decimals) == 2 and not file.flaws:
        file.flaws.append(
            Flaw("Some times have points, others commas.", None, "Write all of them in one way.")
        )
    return file


def columns_of(names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return what a table calls the columns that are needed and optional, as far as it has them.

    What is ``given`` comes first, then the names that are always known, then those that are usual.

    Examples
    --------
    >>> columns_of(["Who", "Start (ms)", "End (ms)", "said"], {"text": "said"})
    {'speaker': 'Who', 'start_s': 'Start (ms)', 'end_s': 'End (ms)', 'text': 'said'}
    """
    own = list(names)
    plain = {_plain(name): name for name in reversed(own)}
    found: dict[str, str] = {}
    for name in (*NEEDED, *OPTIONAL):
        usual = [plain[one] for one in (name, name.removesuffix("_s"), *CALLED.get(name, ())) if one in plain]
        known = [one for one in (given.get(name), name) if one in own]
        for column in (*known, *usual):
            if column is not None and column not in found.values():
                found[name] = column
                break
    return found


def _plain(name: str) -> str:
    """The name of a column without capitals and unit."""
    return UNIT.sub("", name.strip().casefold()).replace(" ", "_")


def _columns_of(row: Mapping[str, Any]) -> str:
    """The usual columns of a table by name, and others by their place, as a broken name may be speech."""
    usual = [name for name in row if name.casefold() in USUAL]
    if len(usual) < max(2, len(row) // 2 + 1) or any(re.match(r"\s*[0-9]", name) for name in row):
        return "Its first row must hold the names of its columns."
    places = [str(place) for place, name in enumerate(row, 1) if name not in usual]
    named = [repr(name) for name in usual]
    if places:
        of = "column {} of another name" if len(places) == 1 else "columns {} of other names"
        named.append(of.format(", ".join(places)))
    return f"It has {', '.join(named)}."


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
    cells: Mapping[str, Any],
    row: Mapping[str, Any],
    line: int,
    flaws: list[Flaw],
    *,
    commas: bool,
    scale: float,
) -> RawTurn | None:
    if not isinstance(cells["text"], str):
        flaws.append(Flaw("The text is missing or is no text.", line))
        return None
    times: dict[str, float] = {}
    for name in ("start_s", "end_s"):
        try:
            times[name] = _time(cells[name], commas=commas) * scale
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
