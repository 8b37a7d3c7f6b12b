"""WebVTT subtitles (.vtt), read by webvtt-py.

The speaker is the voice of a cue, ``<v Anna>…``, or stands before the text as in SubRip. Other tags are
dropped. Marks and word times cannot be kept. webvtt-py passes over cues it cannot read; here they are told.
"""

from __future__ import annotations

import html
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
from fidm.io.formats.subtitles import from_clock, one_speaker, split_prefix, to_clock
from fidm.talk import Transcript

TIME = r"(?:[0-9]{1,6}:)?[0-9]{1,2}:[0-9]{1,2}\.[0-9]{1,3}"
TIMES = re.compile(rf"\s*{TIME}\s*-->\s*{TIME}(?=\s|$)")
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]+)>")
TAG = re.compile(r"</?[a-z0-9.:][^<>]*>|</>", re.IGNORECASE)
LANGUAGE = re.compile(r"^Language:\s*([A-Za-z-]{2,12})\s*$", re.MULTILINE)
BROKEN = "is not a WebVTT file that can be read."


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    library: Any = load_library("webvtt", "WebVTT subtitles")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # webvtt-py splits at every kind of line end that Unicode knows; a cue must not break there.
    text = re.sub(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", " ", text)
    if not text.startswith("WEBVTT"):
        raise BrokenError("does not begin with WEBVTT.", 1, "Is it another kind of subtitles?")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if "-->" in line]
    flaws = [
        Flaw("The times of a cue cannot be understood.", number, "They look like 00:01.500 --> 00:03.000.")
        for number, line in lines
        if TIMES.match(line) is None
    ]
    if flaws:
        return RawFile(flaws=flaws)
    cues = guarded(lambda: library.from_string(text).captions, BROKEN, also=library.errors.MalformedFileError)
    if len(cues) != len(lines):
        raise BrokenError(BROKEN, None, "There must be an empty line between cues.")
    said_language = LANGUAGE.search(text.split("\n\n", 1)[0])
    file = RawFile(language=said_language.group(1) if said_language else "")
    for (line, _), cue in zip(lines, cues, strict=True):
        voices = VOICE.findall(cue.raw_text)
        shown = [html.unescape(TAG.sub("", part)) for part in cue.raw_text.split("\n")]
        if len(set(voices)) > 1 or (not voices and not one_speaker(shown, options.speakers)):
            file.flaws.append(
                Flaw(
                    "Two speakers share one cue, so their times cannot be told apart.",
                    line,
                    "Give each speaker a cue of their own.",
                )
            )
        said = clean(" ".join(shown))
        if voices:
            speaker = clean(html.unescape(voices[0]))
        else:
            speaker, said = split_prefix(said, options.speakers)
        file.turns.append(RawTurn(speaker, from_clock(cue.start), from_clock(cue.end), said, line))
    return file


def write_text(transcript: Transcript) -> str:
    """Return the text of a file."""
    need_times(transcript, "WebVTT")
    head = "WEBVTT\n" + (f"Language: {transcript.language}\n" if transcript.language else "")
    cues = []
    for number, turn in enumerate(transcript, 1):
        voice = f"<v {html.escape(turn.speaker, quote=False)}>" if turn.speaker else ""
        cues.append(
            f"\n{number}\n{to_clock(turn.start_s, '.')} --> {to_clock(turn.end_s, '.')}\n"
            f"{voice}{html.escape(turn.text, quote=False)}\n"
        )
    return head + "".join(cues)


FORMAT = Format("vtt", "WebVTT", (".vtt",), ("times", "empty", "language"), read_text, write_text)
