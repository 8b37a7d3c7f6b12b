r"""Praat's TextGrid (.TextGrid), long and short.

Each tier is a speaker, by its name; ``PAR@anything`` is PAR. Tiers named ``events``, ``act`` or ``moves``
say when something happened; tiers such as ``comments``, ``phones`` or ``%mor`` are passed over. Tiers of
words, as the Montreal Forced Aligner writes them (``words``, ``PAR - words``), give the times of words within
the speaker's utterances; where there are no utterances, words are joined into them up to silences of 0.5 s.
An interval without text, or with ``<p>``, ``sp`` or ``sil``, is silence, so turns without words cannot be
kept; nor, when a file is written, can marks (but events, on a tier of their own) and word times.

Read by code of our own: rustling 0.9 garbles every character beyond ASCII, refuses texts of several lines,
and ends the whole process when a file announces more intervals than memory can hold. Praat itself reads the
numbers, the quoted texts and the flags of a TextGrid and passes over all else; so does this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fidm.errors import DataError
from fidm.io.formats.base import (
    SILENT,
    BrokenError,
    Format,
    Happening,
    Options,
    Piece,
    RawFile,
    Tier,
    clean,
    has_event,
    need_times,
    tier_kind,
    turns_of_tiers,
)
from fidm.io.talk import Transcript, Turn

TOKEN = re.compile(
    r"""
    "(?P<text>(?:[^"]|"")*)"                               # a text; a quote in it is doubled
    | (?<![^\s])(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?![^\s])
    | <(?P<flag>\w+)>
    | ![^\n]*                                              # a comment
    | (?P<open>")                                          # a text that never ends
    | [^\s"<!]+ | [<!]                                     # names, which Praat passes over
    """,
    re.VERBOSE,
)
CUT = "breaks off before its end."


class _Tokens:
    """The numbers and texts of a file, one after the other, with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = self._all()
        self.line = 1

    def _all(self) -> Iterator[tuple[str, str]]:
        seen = 0
        for match in TOKEN.finditer(self._text):
            kind = match.lastgroup
            if kind is None:
                continue
            self.line += self._text.count("\n", seen, match.start())
            seen = match.start()
            yield kind, match.group(kind)

    def take(self, kind: str) -> str:
        """The next token, which must be of a kind."""
        found, value = next(self._found, ("end", ""))
        if found in ("end", "open"):
            raise BrokenError(CUT, self.line, "Was it copied whole?")
        if found != kind:
            raise BrokenError("is not a TextGrid that can be read.", self.line, f"A {kind} is expected here.")
        return value

    def seconds(self) -> float:
        return float(self.take("number"))

    def count(self) -> int:
        value = self.take("number")
        if not value.isdigit() or len(value) > 9:
            raise BrokenError("is not a TextGrid that can be read.", self.line, "A count is expected here.")
        return int(value)

    def words(self) -> str:
        return clean(self.take("text").replace('""', '"'))


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    tokens = _Tokens(text)
    if tokens.take("text") != "ooTextFile" or tokens.take("text") != "TextGrid":
        raise BrokenError("does not begin as a TextGrid.", tokens.line, "Save it in Praat as a text file.")
    tokens.seconds()
    tokens.seconds()
    file = RawFile(in_order=False)
    if tokens.take("flag") != "exists":
        return file
    tiers = []
    for _ in range(tokens.count()):
        kind = tokens.words()
        if kind not in ("IntervalTier", "TextTier"):
            raise BrokenError("has a tier of an unknown kind.", tokens.line)
        tiers.append(_read_tier(tokens, file, is_interval=kind == "IntervalTier"))
    file.turns += turns_of_tiers(tiers)
    return file


def _read_tier(tokens: _Tokens, file: RawFile, *, is_interval: bool) -> Tier:
    name = tokens.words()
    holds = tier_kind(name)
    tier = Tier(name, holds)
    tokens.seconds()
    tokens.seconds()
    for _ in range(tokens.count()):
        start = tokens.seconds()
        line = tokens.line
        end = tokens.seconds() if is_interval else start
        said = tokens.words()
        if said and holds == "events":
            file.events.append(Happening(start, end, line))
        elif is_interval and said.casefold() not in SILENT:
            tier.rows.append(Piece(said, start, end, line))
    return tier


def write_text(transcript: Transcript) -> str:
    """Return the text of a file, in Praat's long form; rustling has no way to make tiers of turns."""
    need_times(transcript, "TextGrid")
    said = [turn for turn in transcript if turn.text]
    speakers = list(dict.fromkeys(turn.speaker for turn in said))
    moments = sorted(
        {_seconds((turn.start_s + turn.end_s) / 2) for turn in transcript if has_event(turn)}, key=float
    )
    last = _seconds(max((turn.end_s for turn in transcript), default=0.0))
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    lines += ["xmin = 0 ", f"xmax = {last} ", "tiers? <exists> ", f"size = {len(speakers) + bool(moments)} "]
    lines.append("item []: ")
    for number, speaker in enumerate(speakers, 1):
        rows = _intervals([turn for turn in said if turn.speaker == speaker], last)
        lines += _head(number, "IntervalTier", speaker, last, f"intervals: size = {len(rows)} ")
        for place, (start, end, text) in enumerate(rows, 1):
            lines += [f"        intervals [{place}]:", f"            xmin = {start} "]
            lines += [f"            xmax = {end} ", f"            text = {_quoted(text)} "]
    if moments:
        lines += _head(len(speakers) + 1, "TextTier", "events", last, f"points: size = {len(moments)} ")
        for place, moment in enumerate(moments, 1):
            lines += [f"        points [{place}]:", f"            number = {moment} "]
            lines.append('            mark = "event" ')
    return "\n".join(lines) + "\n"


def _head(number: int, kind: str, name: str, last: str, size: str) -> list[str]:
    head = [f'class = "{kind}" ', f"name = {_quoted(name)} ", "xmin = 0 ", f"xmax = {last} ", size]
    return [f"    item [{number}]:", *(f"        {line}" for line in head)]


def _intervals(turns: list[Turn], last: str) -> list[tuple[str, str, str]]:
    """One speaker's turns with the silences between them."""
    rows: list[tuple[str, str, str]] = []
    place = "0"
    for turn in sorted(turns, key=lambda turn: turn.start_s):
        start, end = _seconds(turn.start_s), _seconds(turn.end_s)
        if float(start) < float(place) or float(end) <= float(start):
            raise DataError(
                "A TextGrid cannot keep two turns of one speaker at the same time, nor a turn of no length. "
                "Write another format."
            )
        if float(start) > float(place):
            rows.append((place, start, ""))
        rows.append((start, end, turn.text))
        place = end
    if float(place) < float(last):
        rows.append((place, last, ""))
    return rows


def _seconds(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


FORMAT = Format(
    "textgrid",
    "TextGrid",
    (".textgrid",),
    ("times", "events"),
    read_text,
    write_text,
)
