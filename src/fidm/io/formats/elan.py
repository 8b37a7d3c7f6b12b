"""ELAN's annotation files (.eaf).

Each tier without a parent is a speaker: by its PARTICIPANT, where no other tier has the same, by its name, or
by what stands before an ``@`` in it. Tiers named ``events``, ``act`` or ``moves`` say when things happened.
Tiers of words below a speaker's tier (``PAR-words``) give the times of words; other tiers that depend on
another one (glosses, translations), tiers such as ``Notes`` and those that begin with ``%`` are passed over.
A tier of words without a tier of utterances is joined into utterances at silences of 0.5 s. When a file is
written, marks (but events) and times of words are dropped.

The XML is read by expat. A file that declares entities or a document type is refused: ELAN writes none, and
they can fetch other files or grow without end.
"""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from urllib.parse import unquote
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from fidm.io.formats.base import (
    BrokenError,
    Flaw,
    Format,
    Happening,
    Options,
    Piece,
    RawFile,
    Tier,
    clean,
    has_event,
    milliseconds,
    need_times,
    tier_kind,
    turns_of_tiers,
)
from fidm.io.talk import UNKNOWN_TIME, Transcript

BROKEN = "is not an ELAN file that can be read."
CUT_SHORT = {3, 5, 6, 20}
"""What expat calls the end of a file in the middle of an element, a token, a character or CDATA."""

INTERNAL = {"urn", "lastusedannotationid", "lastusedannotation"}
"""Properties that ELAN itself keeps in the header."""


class _Document:
    """What stands in a file, filled by the parser as it goes."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self.parser = parser
        self.slots: dict[str, float] = {}
        self.tiers: list[tuple[dict[str, str], list[tuple[str, str, str, int]]]] = []
        self.properties: list[tuple[str, str]] = []
        self.media = ""
        self.depth = 0
        self.root = ""
        self._text: list[str] | None = None
        self._open: tuple[str, str, int] | None = None
        self._property = ""
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.say
        parser.StartDoctypeDeclHandler = self.refuse
        parser.EntityDeclHandler = self.refuse

    def refuse(self, *_: object) -> None:
        raise BrokenError(
            "declares a document type or entities, which can be used to do harm.",
            self.parser.CurrentLineNumber,
            "ELAN writes none; save the file again with ELAN.",
        )

    def start(self, name: str, values: dict[str, str]) -> None:
        if not self.root:
            self.root = name
            if name != "ANNOTATION_DOCUMENT":
                raise BrokenError(BROKEN, self.parser.CurrentLineNumber, "It has no ANNOTATION_DOCUMENT.")
        if name == "TIME_SLOT":
            value = values.get("TIME_VALUE", "")
            if value and not (value.isdecimal() and len(value) <= 12):
                raise BrokenError(BROKEN, self.parser.CurrentLineNumber, "A time is no whole number.")
            self.slots[values.get("TIME_SLOT_ID", "")] = int(value) / 1000 if value else UNKNOWN_TIME
        elif name == "TIER":
            self.tiers.append((values, []))
        elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            slots = values.get("TIME_SLOT_REF1", ""), values.get("TIME_SLOT_REF2", "")
            self._open = (*slots, self.parser.CurrentLineNumber)
        elif name in ("ANNOTATION_VALUE", "PROPERTY"):
            self._text = []
            self._property = values.get("NAME", "")
        elif name == "MEDIA_DESCRIPTOR" and not self.media:
            self.media = _media(values.get("RELATIVE_MEDIA_URL", ""), values.get("MEDIA_URL", ""))

    def end(self, name: str) -> None:
        if self._text is None or name not in ("ANNOTATION_VALUE", "PROPERTY"):
            return
        said, self._text = "".join(self._text), None
        if name == "PROPERTY":
            self.properties.append((self._property, said))
        elif self._open is not None and self.tiers:
            first, last, line = self._open
            self.tiers[-1][1].append((first, last, said, line))
            self._open = None

    def say(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


def _media(relative: str, whole: str) -> str:
    """The recording as the file finds it, or the name of the file alone."""
    near = unquote(relative).removeprefix("file:")
    return clean(near.removeprefix("./") if near else PurePosixPath(unquote(whole)).name)


def _parsed(text: str) -> _Document:
    parser = expat.ParserCreate("utf-8")
    document = _Document(parser)
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        is_cut = error.code in CUT_SHORT and document.root
        what, hint = ("breaks off before its end.", "Was it copied whole?") if is_cut else (BROKEN, "")
        raise BrokenError(what, error.lineno, hint) from None
    return document


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    document = _parsed(text.lstrip())
    file = RawFile(in_order=False, media=document.media)
    facts = {clean(name): clean(said) for name, said in document.properties}
    facts = {name: said for name, said in facts.items() if name and said and name.casefold() not in INTERNAL}
    if facts:
        file.about["", ""] = facts
    heads = {values.get("TIER_ID", ""): values for values, _ in document.tiers}
    if len(heads) < len(document.tiers):
        file.flaws.append(Flaw("Two tiers have the same name.", None, "Rename one in ELAN."))
        return file
    tiers = []
    for values, rows in document.tiers:
        name = clean(values.get("TIER_ID", ""))
        holds = tier_kind(name)
        parent = _root(values, heads)
        if holds == "else" or (parent is not None and holds == "speech"):
            continue
        owner = clean(values.get("PARTICIPANT", "") if parent is None else "")
        owner = owner or (clean(parent.get("TIER_ID", "")) if parent is not None else "")
        tier = Tier(name, holds, owner=owner)
        for first, last, said, line in rows:
            times = document.slots.get(first, UNKNOWN_TIME), document.slots.get(last, UNKNOWN_TIME)
            if holds != "events":
                tier.rows.append(Piece(clean(said), *times, line))
            elif any(map(math.isnan, times)):
                file.flaws.append(Flaw("An event has no times.", line, "Align it in ELAN."))
            else:
                file.events.append(Happening(*times, line))
        tiers.append(tier)
    file.turns += turns_of_tiers([tier for tier in tiers if tier.kind != "events"])
    return file


def _root(values: dict[str, str], heads: dict[str, dict[str, str]]) -> dict[str, str] | None:
    """The tier on which a tier depends in the end; None if it stands alone."""
    above = values.get("PARENT_REF")
    if above is None:
        return None
    seen = {values.get("TIER_ID", "")}
    while above not in seen and above in heads:
        seen.add(above)
        values, above = heads[above], heads[above].get("PARENT_REF", above)
    return values


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
