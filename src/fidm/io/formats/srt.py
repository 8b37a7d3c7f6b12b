"""SubRip subtitles (.srt), read by rustling.

The speaker stands before the text: ``PAR: …`` or ``[SPEAKER_00]: …``. Tags such as ``<i>`` are dropped. Marks
and word times cannot be kept. The frame of each subtitle (its number and its times) is checked here first:
rustling gives no line numbers, drops the sign of a negative time, and its panics print what they choke on.
"""

from __future__ import annotations

import re
from typing import Any

from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Options,
    RawFile,
    RawTurn,
    clean,
    guarded,
    load_library,
    need_times,
)
from fidm.io.formats.subtitles import one_speaker, prefix_of, split_prefix, to_clock
from fidm.talk import Transcript

TIMES = re.compile(r"\s*\d{1,6}:\d\d:\d\d[.,]\d{3}\s*-->\s*\d{1,6}:\d\d:\d\d[.,]\d{3}\s*", re.ASCII)
TAG = re.compile(r"</?(?:[ibu]|font\b[^<>]*)>|\{\\an?\d+\}", re.IGNORECASE)
BROKEN = "is not a SubRip file that can be read."


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    library: Any = load_library("rustling.srt", "SubRip subtitles")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks, flaws = _blocks(lines)
    if flaws:
        return RawFile(flaws=flaws)
    plain = "\n\n".join("\n".join(body) for _, body in blocks) + "\n"
    read = guarded(lambda: library.SRT.from_strs([plain], ["file"], parallel=False).utterances(), BROKEN)
    if len(read) != len(blocks):
        raise BrokenError(BROKEN)
    file = RawFile()
    for (line, _), one in zip(blocks, read, strict=True):
        shown = [TAG.sub("", part) for part in one.line.split("\n")]
        if not one_speaker(shown, options.speakers):
            file.flaws.append(
                Flaw(
                    "Two speakers share one subtitle, so their times cannot be told apart.",
                    line,
                    "Give each speaker a subtitle of their own.",
                )
            )
        speaker, said = split_prefix(clean(" ".join(shown)), options.speakers)
        start, end = one.time_marks
        file.turns.append(RawTurn(speaker, start / 1000, end / 1000, said, line))
    return file


def _blocks(lines: list[str]) -> tuple[list[tuple[int, list[str]]], list[Flaw]]:
    """Subtitles that say something, with the line of each; and what is wrong with their frames."""
    blocks: list[tuple[int, list[str]]] = []
    flaws: list[Flaw] = []
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        end = place
        while end < len(lines) and lines[end].strip():
            end += 1
        body = lines[place:end]
        if not re.fullmatch(r"[0-9]{1,9}", body[0].strip()):
            flaws.append(Flaw("A subtitle does not begin with its number.", place + 1))
        elif len(body) < 2 or TIMES.fullmatch(body[1]) is None:
            flaws.append(
                Flaw(
                    "The times of a subtitle are missing or cannot be understood.",
                    place + 2,
                    "They look like 00:00:01,500 --> 00:00:03,000.",
                )
            )
        elif any(clean(TAG.sub("", part)) for part in body[2:]):
            blocks.append((place + 1, [body[0].strip(), body[1].strip(), *body[2:]]))
        place = end
    return blocks, flaws


def write_text(transcript: Transcript) -> str:
    """Return the text of a file; written plainly, for rustling has no way to make subtitles of turns."""
    need_times(transcript, "SubRip")
    return "".join(
        f"{number}\n{to_clock(turn.start_s, ',')} --> {to_clock(turn.end_s, ',')}\n"
        f"{(prefix_of(turn.speaker) + turn.text).strip()}\n\n"
        for number, turn in enumerate(transcript, 1)
    )


FORMAT = Format("srt", "SubRip", (".srt",), ("times",), read_text, write_text)
