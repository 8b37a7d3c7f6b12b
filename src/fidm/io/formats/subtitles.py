"""Subtitles: SubRip (.srt), read by rustling, and WebVTT (.vtt), read by webvtt-py.

The speaker stands before the text: ``PAR: …`` or ``[SPEAKER_00]: …``; in WebVTT it may also be the voice of a
cue, ``<v Anna>…``. Other tags, such as ``<i>``, are dropped. Marks and word times cannot be kept.

The frame of each subtitle (its number and its times) is checked here first. rustling gives no line numbers,
drops the sign of a negative time, and its panics print what they choke on; webvtt-py passes over cues it
cannot read.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
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
    milliseconds,
    need_times,
)
from fidm.io.talk import UNKNOWN_TIME, Transcript

COLON = r"\s?(?:\uff1a|:(?=\s|$))"
PREFIX = re.compile(
    rf"\[([^\[\]:\uff1a]{{1,40}})\](?:{COLON}|(?=\s|$))|([^\s:\uff1a\[\]][^:\uff1a\[\]]{{0,39}}?){COLON}"
)
CODE = re.compile(r"[A-Z][A-Z0-9_]{1,15}|SPEAKER[_ ]?\d+", re.IGNORECASE)


def split_prefix(text: str, known: frozenset[str]) -> tuple[str, str]:
    """Return the speaker that stands before a text, and the rest; an empty name where there is none.

    A name is ``[ANY NAME]:``, a code in capitals such as ``PAR:``, or a name that is known, before a colon.
    ``[SPEAKER_00]`` needs no colon.
    """
    match = PREFIX.match(text)
    if match is None:
        return "", text
    bracketed, plain = match.groups()
    name = bracketed or plain
    is_code = CODE.fullmatch(name) is not None and name == name.upper()
    if bracketed and match.group().endswith("]") and not is_code and name.casefold() not in known:
        return "", text
    if not bracketed and not is_code and name.casefold() not in known:
        return "", text
    return clean(name), text[match.end() :].strip()


MOST_SPEAKERS, OFTEN = 8, 0.5
"""At most so many names, of which each returns, stand before at least so many of the texts of a file."""


def names_before(texts: Sequence[str], known: frozenset[str]) -> frozenset[str]:
    """Return speakers that are known, and those who stand before most texts of a file.

    Examples
    --------
    >>> sorted(names_before(["Dr. Lee: and then?", "Ann: left", "Dr. Lee: yes", "Ann: so: up"], frozenset()))
    ['ann', 'dr. lee']
    """
    found = Counter(
        name.strip().casefold()
        for match in map(PREFIX.match, texts)
        if match is not None and len((name := match[1] or match[2]).split()) <= MOST_WORDS
    )
    names = {name: n for name, n in found.items() if n > 1}
    is_usual = len(names) <= MOST_SPEAKERS and sum(names.values()) >= OFTEN * len(texts)
    return known.union(names) if is_usual else known


def _going_on(file: RawFile, known: frozenset[str], options: Options) -> str:
    """Who goes on in a subtitle without a name, where names stand before most of them; empty elsewhere."""
    return file.turns[-1].speaker if file.turns and known != options.speakers else ""


MOST_WORDS = 4
"""A name has at most so many words."""


def prefix_of(speaker: str) -> str:
    """Return what to write before a text, so that :func:`split_prefix` finds the speaker."""
    if not speaker:
        return ""
    return f"{speaker}: " if CODE.fullmatch(speaker) and speaker == speaker.upper() else f"[{speaker}]: "


def one_speaker(lines: Sequence[str], known: frozenset[str]) -> bool:
    """Whether the lines of a subtitle name no second speaker."""
    return not any(split_prefix(clean(line), known)[0] for line in lines[1:])


def two_speakers(what: str, line: int) -> Flaw:
    """Return what is wrong with a subtitle of two people."""
    says = f"Two speakers share one {what}, so their times cannot be told apart."
    return Flaw(says, line, f"Give each speaker a {what} of their own.")


CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})")


def from_clock(text: str) -> float:
    """Return the seconds of a time such as ``00:01:02,500``; NaN where it is none."""
    match = CLOCK.fullmatch(text.strip())
    if match is None:
        return UNKNOWN_TIME
    hours, minutes, seconds, rest = match.groups()
    return (int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)) + int(rest.ljust(3, "0")) / 1000


def to_clock(seconds: float, point: str) -> str:
    """Return a time as hours, minutes, seconds and thousandths."""
    whole = milliseconds(seconds)
    minutes = f"{whole // 3_600_000:02d}:{whole // 60_000 % 60:02d}"
    return f"{minutes}:{whole // 1000 % 60:02d}{point}{whole % 1000:03d}"


# ---------------------------------------------------------------------- SubRip

SRT_TIMES = re.compile(r"\s*\d{1,6}:\d\d:\d\d[.,]\d{3}\s*-->\s*\d{1,6}:\d\d:\d\d[.,]\d{3}\s*", re.ASCII)
SRT_TAG = re.compile(r"</?(?:[ibu]|font\b[^<>]*)>|\{\\an?\d+\}", re.IGNORECASE)
SRT_BROKEN = "is not a SubRip file that can be read."


def read_srt(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    library: Any = load_library("rustling.srt", "SubRip subtitles")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks, flaws = _blocks(lines)
    if flaws:
        return RawFile(flaws=flaws)
    plain = "\n\n".join("\n".join(body) for _, body in blocks) + "\n"
    read = guarded(lambda: library.SRT.from_strs([plain], ["file"], parallel=False).utterances(), SRT_BROKEN)
    if len(read) != len(blocks):
        raise BrokenError(SRT_BROKEN)
    file = RawFile()
    shown = [[SRT_TAG.sub("", part) for part in one.line.split("\n")] for one in read]
    known = names_before([clean(" ".join(parts)) for parts in shown], options.speakers)
    for (line, _), one, parts in zip(blocks, read, shown, strict=True):
        if not one_speaker(parts, known):
            file.flaws.append(two_speakers("subtitle", line))
        speaker, said = split_prefix(clean(" ".join(parts)), known)
        speaker = speaker or _going_on(file, known, options)
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
        elif len(body) < 2 or SRT_TIMES.fullmatch(body[1]) is None:
            flaws.append(
                Flaw(
                    "The times of a subtitle are missing or cannot be understood.",
                    place + 2,
                    "They look like 00:00:01,500 --> 00:00:03,000.",
                )
            )
        elif any(clean(SRT_TAG.sub("", part)) for part in body[2:]):
            blocks.append((place + 1, [body[0].strip(), body[1].strip(), *body[2:]]))
        place = end
    return blocks, flaws


def write_srt(transcript: Transcript) -> str:
    """Return the text of a file; written plainly, for rustling has no way to make subtitles of turns."""
    need_times(transcript, "SubRip")
    return "".join(
        f"{number}\n{to_clock(turn.start_s, ',')} --> {to_clock(turn.end_s, ',')}\n"
        f"{(prefix_of(turn.speaker) + turn.text).strip()}\n\n"
        for number, turn in enumerate(transcript, 1)
    )


SRT = Format("srt", "SubRip", (".srt",), ("times",), read_srt, write_srt)


# ---------------------------------------------------------------------- WebVTT

VTT_TIME = r"(?:[0-9]{1,6}:)?[0-9]{1,2}:[0-9]{1,2}\.[0-9]{1,3}"
VTT_TIMES = re.compile(rf"\s*{VTT_TIME}\s*-->\s*{VTT_TIME}(?=\s|$)")
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s([^<>]+)>")
VTT_TAG = re.compile(r"</?[a-z0-9.:][^<>]*>|</>", re.IGNORECASE)
LANGUAGE = re.compile(r"^Language:\s*([A-Za-z-]{2,12})\s*$", re.MULTILINE)
VTT_BROKEN = "is not a WebVTT file that can be read."


def read_vtt(text: str, options: Options) -> RawFile:
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
        if VTT_TIMES.match(line) is None
    ]
    if flaws:
        return RawFile(flaws=flaws)
    cues = guarded(
        lambda: library.from_string(text).captions, VTT_BROKEN, also=library.errors.MalformedFileError
    )
    if len(cues) != len(lines):
        raise BrokenError(VTT_BROKEN, None, "There must be an empty line between cues.")
    said_language = LANGUAGE.search(text.split("\n\n", 1)[0])
    file = RawFile(language=said_language.group(1) if said_language else "")
    parts = [[html.unescape(VTT_TAG.sub("", part)) for part in cue.raw_text.split("\n")] for cue in cues]
    known = names_before([clean(" ".join(shown)) for shown in parts], options.speakers)
    for (line, _), cue, shown in zip(lines, cues, parts, strict=True):
        voices = VOICE.findall(cue.raw_text)
        if len(set(voices)) > 1 or (not voices and not one_speaker(shown, known)):
            file.flaws.append(two_speakers("cue", line))
        said = clean(" ".join(shown))
        if voices:
            speaker = clean(html.unescape(voices[0]))
        else:
            speaker, said = split_prefix(said, known)
            speaker = speaker or _going_on(file, known, options)
        file.turns.append(RawTurn(speaker, from_clock(cue.start), from_clock(cue.end), said, line))
    return file


def write_vtt(transcript: Transcript) -> str:
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


VTT = Format("vtt", "WebVTT", (".vtt",), ("times", "empty", "language"), read_vtt, write_vtt)
