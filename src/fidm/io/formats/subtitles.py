"""What subtitles have in common: speakers before the text, and times as a clock shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fidm.io.formats.base import clean, milliseconds
from fidm.talk import UNKNOWN_TIME

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
    if bracketed and match.group().endswith("]") and not is_code:
        return "", text
    if not bracketed and not is_code and name.casefold() not in known:
        return "", text
    return clean(name), text[match.end() :].strip()


def prefix_of(speaker: str) -> str:
    """Return what to write before a text, so that :func:`split_prefix` finds the speaker."""
    if not speaker:
        return ""
    return f"{speaker}: " if CODE.fullmatch(speaker) and speaker == speaker.upper() else f"[{speaker}]: "


def one_speaker(lines: Sequence[str], known: frozenset[str]) -> bool:
    """Whether the lines of a subtitle name no second speaker."""
    return not any(split_prefix(clean(line), known)[0] for line in lines[1:])


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
