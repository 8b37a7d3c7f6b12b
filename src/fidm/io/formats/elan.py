"""ELAN's annotation files (.eaf), read by rustling.

Each tier is a speaker: by its name, by what stands before an ``@`` in it, or by its PARTICIPANT. Tiers
named ``events``, ``act`` or ``moves`` say when something happened; tiers such as ``comments`` or ``%mor``
and those that depend on another tier (translations, words) are passed over. Marks (but events) and word
times cannot be kept.

A file that declares entities or a document type is refused before it is parsed: ELAN writes none, and they
can fetch other files or grow without end. Line numbers are found here, for rustling gives none.
"""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Happening,
    Options,
    RawFile,
    RawTurn,
    clean,
    guarded,
    has_event,
    load_library,
    milliseconds,
    need_times,
    tier_kind,
)
from fidm.talk import UNKNOWN_TIME, Transcript

ANNOTATION = re.compile(r"<(?:ALIGNABLE|REF)_ANNOTATION\b[^<>]*?\bANNOTATION_ID\s*=\s*[\"']([^\"'<>]*)[\"']")
END = re.compile(r"</ANNOTATION_DOCUMENT\s*>\s*(?:<!--.*?-->\s*)*\Z", re.DOTALL)
BROKEN = "is not an ELAN file that can be read."


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    library: Any = load_library("rustling.elan", "ELAN files")
    if re.search(r"<!\s*(?:DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise BrokenError(
            "declares a document type or entities, which can be used to do harm.",
            None,
            "ELAN writes none; save the file again with ELAN.",
        )
    if "<ANNOTATION_DOCUMENT" not in text:
        raise BrokenError(BROKEN, 1, "It has no ANNOTATION_DOCUMENT.")
    if END.search(text[-10_000:]) is None:
        raise BrokenError("breaks off before its end.", text.count("\n") + 1, "Was it copied whole?")
    read = guarded(lambda: library.ELAN.from_strs([text], ["file"], parallel=False).tiers(), BROKEN)
    lines = _lines(text)
    file = RawFile(in_order=False)
    for tier in read[0].values() if read else ():
        holds = tier_kind(tier.id)
        if holds == "else" or (tier.parent_id is not None and holds != "events"):
            continue
        name = clean(tier.id)
        for one in tier.annotations:
            line = lines.get(one.id, 0)
            start, end = _seconds(one.start_time), _seconds(one.end_time)
            said = clean(one.value)
            if holds == "events":
                file.events.append(Happening(start, end, line))
            else:
                others = (name.split("@")[0], clean(tier.participant))
                file.turns.append(RawTurn(name, start, end, said, line, others=others))
    if len({tier.id for tier in read[0].values()} if read else ()) < text.count("<TIER "):
        file.flaws.append(Flaw("Two tiers have the same name.", None, "Rename one in ELAN."))
    return file


def _lines(text: str) -> dict[str, int]:
    """The line of each annotation."""
    found: dict[str, int] = {}
    line, seen = 1, 0
    for match in ANNOTATION.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        found[match.group(1)] = line
    return found


def _seconds(time_ms: int | None) -> float:
    return UNKNOWN_TIME if time_ms is None else time_ms / 1000


def write_text(transcript: Transcript) -> str:
    """Return the text of a file; written plainly, for rustling has no way to make tiers of turns."""
    need_times(transcript, "ELAN")
    slots: list[tuple[int, str]] = []
    tiers: dict[str, list[str]] = {}
    happened: list[str] = []
    for turn in transcript:
        if not turn.text and tier_kind(turn.speaker) == "events":
            happened += _annotation(slots, (milliseconds(turn.start_s), milliseconds(turn.end_s)), "event")
            continue
        times = (milliseconds(turn.start_s), milliseconds(turn.end_s))
        tiers.setdefault(turn.speaker, []).extend(_annotation(slots, times, turn.text))
        if has_event(turn):
            middle = sum(times) // 2
            happened += _annotation(slots, (middle, middle + 1), "event")
    body = []
    for name, rows in [*tiers.items(), *([("events", happened)] if happened else [])]:
        who = "" if rows is happened else f" PARTICIPANT={quoteattr(name)}"
        body.append(f'    <TIER LINGUISTIC_TYPE_REF="default-lt"{who} TIER_ID={quoteattr(name)}>')
        body += [*rows, "    </TIER>"]
    head = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<ANNOTATION_DOCUMENT AUTHOR="" DATE="1970-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">',
        '    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>',
        "    <TIME_ORDER>",
        *(
            f'        <TIME_SLOT TIME_SLOT_ID="{name}" TIME_VALUE="{time}"/>'
            for time, name in sorted(slots, key=lambda slot: slot[0])
        ),
        "    </TIME_ORDER>",
    ]
    tail = [
        '    <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="default-lt" '
        'TIME_ALIGNABLE="true"/>',
        "</ANNOTATION_DOCUMENT>",
    ]
    return "\n".join([*head, *body, *tail]) + "\n"


def _annotation(slots: list[tuple[int, str]], times: tuple[int, int], text: str) -> list[str]:
    """One annotation; its two time slots are added to those of the file."""
    first = len(slots) + 1
    slots += [(time, f"ts{first + place}") for place, time in enumerate(times)]
    return [
        "        <ANNOTATION>",
        f'            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a{(first + 1) // 2}" '
        f'TIME_SLOT_REF1="ts{first}" TIME_SLOT_REF2="ts{first + 1}">',
        f"                <ANNOTATION_VALUE>{escape(text)}</ANNOTATION_VALUE>",
        "            </ALIGNABLE_ANNOTATION>",
        "        </ANNOTATION>",
    ]


FORMAT = Format("elan", "ELAN", (".eaf",), ("times", "empty", "events"), read_text, write_text)
