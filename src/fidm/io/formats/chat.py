r"""CHAT (.cha), the format of TalkBank, DementiaBank and CLAN, read by rustling.

The marks of the main line are read here; rustling drops them.

Of the main line the text keeps what was said: words, in full and as they were meant, and ordinary
punctuation. In detail:

=========================================  ===========================================================
in the file                                in the turn
=========================================  ===========================================================
``(.)`` ``(..)`` ``(...)``                 a mark *pause* of unknown length
``(1.5)`` ``(1:02.5)``                     a mark *pause* of so many seconds
``&-uh``                                   ``uh`` with a mark *filler*
``<I go> [/]`` ``left [//]`` ``[///]``     the words, with a mark *retraced*
``[/-]`` ``[/?]``
``&=points`` ``&=ges:left`` ``&=act``      a mark *event*: movements of the hand or the figure
``0``, ``%act:`` lines                     a mark *event*: something done, not said
``&=laughs`` ``[=! whispers]``             nothing: sounds and ways of speaking
``xxx`` ``yyy`` ``www``                    nothing: what nobody could make out
``&+fr`` ``&~nonword`` ``0word``           nothing: fragments, and words that were not said
``&*INV:mhm``                              nothing: it was said by somebody else
``(be)cause``                              ``because``, the whole word
``wight [: right]`` ``word [*]``           ``right``, what was meant; ``word``
``word@l`` ``ba:na:nas`` ``black+board``   ``word`` ``bananas`` ``blackboard``
``+...`` ``+/.`` ``+"`` ``[+ exc]``        nothing: how the utterance ends, begins or is coded
``.`` ``?`` ``!`` ``,``                    themselves, after the word without a space
``\x15100_2500\x15``                       the times, in thousandths of a second
``%wor:`` line with times                  the times of the words
=========================================  ===========================================================

A pause or an event stands after the word before it. Roles are those of @Participants: Participant,
Target_Child, Target_Adult, Patient, Client and Subject are participants; Investigator, Examiner,
Interviewer, Experimenter, Clinician, Therapist, Doctor and Nurse assessors; others, such as Mother or
Observer, *other*. The participant's name is not taken from the headers, which hold one for each speaker.
Line numbers are found here, for rustling gives none.
"""

from __future__ import annotations

import math
import re
from typing import Any

from fidm.errors import DataError
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
    placed_words,
)
from fidm.io.formats.chat_line import parse, written
from fidm.talk import UNKNOWN_TIME, Mark, Role, Transcript, Turn

BULLET = re.compile(r"\x15([0-9]{1,12})_([0-9]{1,12})\x15")
ANY_BULLET = re.compile(r"\x15[^\x15]*\x15?")
TIMED_WORD = re.compile(r"(\S+)\s*\x15([0-9]{1,12})_([0-9]{1,12})\x15")
LONGEST = 20_000
BROKEN = "is not a CHAT file that can be read."
EVENT_LINES = ("%act", "%xact", "%gpx", "%xevt")
SHORT = {"eng": "en", "zho": "zh", "cmn": "zh", "deu": "de", "fra": "fr", "spa": "es"}
LONG = {short: long for long, short in reversed(SHORT.items())}

PARTICIPANTS = {"participant", "target_child", "target_adult", "patient", "client", "subject"}
ASSESSORS = {
    "investigator", "examiner", "interviewer", "experimenter", "clinician", "therapist", "doctor", "nurse",
    "tester", "assessor",
}  # fmt: skip
OTHERS = {
    "mother", "father", "brother", "sister", "sibling", "grandmother", "grandfather", "aunt", "uncle",
    "cousin", "family_friend", "friend", "playmate", "visitor", "student", "teacher", "babysitter",
    "caretaker", "housekeeper", "environment", "non_human", "media", "narrator", "observer", "audience",
    "unidentified", "camera_operator", "partner", "spouse", "wife", "husband", "relative", "adult",
    "teenager", "other",
}  # fmt: skip
ROLE_WORDS: dict[Role, str] = {
    "participant": "Participant", "assessor": "Investigator", "other": "Unidentified"
}  # fmt: skip


def read_text(text: str, options: Options) -> RawFile:
    """Read the text of a file."""
    library: Any = load_library("rustling.chat", "CHAT files")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    heads = [number for number, line in enumerate(lines, 1) if line.startswith("*")]
    if not heads and not any(line.startswith("@") for line in lines):
        raise BrokenError(BROKEN, 1, "It has neither headers nor utterances.")
    if not any(line.strip() == "@End" for line in lines):
        raise BrokenError("breaks off before its end: there is no @End.", len(lines), "Was it copied whole?")
    odd = [number for number in heads if not re.match(r"\*[^\s:*]+:(\s|$)", lines[number - 1])]
    if odd:
        return RawFile(
            flaws=[Flaw("The line names no speaker.", line, "It begins as in *PAR:") for line in odd]
        )
    endless = _too_long(lines)
    if endless:
        raise BrokenError(f"An utterance is longer than {LONGEST:,} characters.", endless)
    reader = guarded(
        lambda: library.CHAT.from_strs(
            [text], ["file"], parallel=False, strict=False, mor_tier=None, gra_tier=None
        ),
        BROKEN,
    )
    headers = guarded(lambda: reader.headers()[0], BROKEN)
    spoken = [one for one in guarded(reader.utterances, BROKEN) if one.participant is not None]
    if len(spoken) != len(heads):
        raise BrokenError(BROKEN)
    roles = {person.code.casefold(): _role(person.role) for person in headers.participants}
    tongue = clean(headers.languages[0]) if headers.languages else ""
    file = RawFile(language=SHORT.get(tongue, tongue))
    for line, one in zip(heads, spoken, strict=True):
        file.turns.append(_turn(one, line, roles))
    return file


def _too_long(lines: list[str]) -> int:
    """The line of an utterance nobody could say, over which rustling takes very long; 0 if there is none."""
    head = size = 0
    for number, line in enumerate(lines, 1):
        if line.startswith(("*", "@", "%")):
            head, size = number, 0
        size += len(line)
        if size > LONGEST:
            return head or number
    return 0


def _role(word: str) -> Role | None:
    plain = word.casefold()
    if plain in PARTICIPANTS:
        return "participant"
    if plain in ASSESSORS:
        return "assessor"
    return "other" if plain in OTHERS or plain.startswith(("target_", "group")) else None


def _turn(one: Any, line: int, roles: dict[str, Role | None]) -> RawTurn:
    said = one.annotated or ""
    times = BULLET.findall(said)
    start = int(times[0][0]) / 1000 if times else UNKNOWN_TIME
    end = int(times[-1][1]) / 1000 if times else UNKNOWN_TIME
    text, marks = parse(ANY_BULLET.sub(" ", said))
    tiers = one.tiers or {}
    if any(name in tiers for name in EVENT_LINES):
        marks.append(Mark("event", len(text), len(text)))
    timed = [
        (clean(word), int(first) / 1000, int(last) / 1000)
        for word, first, last in TIMED_WORD.findall(tiers.get("%wor") or "")
    ]
    words = placed_words(text, timed) or ()
    return RawTurn(
        clean(one.participant),
        start,
        end,
        text,
        line,
        words,
        tuple(marks),
        roles.get(one.participant.casefold()),
    )


def write_text(transcript: Transcript) -> str:
    """Return the text of a file; written plainly, for rustling has no way to make headers."""
    speakers: dict[str, Role] = {}
    for turn in transcript:
        speakers.setdefault(turn.speaker, turn.role)
    if any(not re.fullmatch(r"[^\s:*@%,|\x15]{1,30}", speaker) for speaker in speakers):
        raise DataError(
            "CHAT names speakers by a code without spaces and colons, such as PAR. Rename the speakers, or "
            "write another format.",
            source=transcript.participant,
        )
    tongue = LONG.get(transcript.language, transcript.language)
    people = ", ".join(f"{name} {ROLE_WORDS[role]}" for name, role in speakers.items())
    lines = ["@UTF8", "@Begin", f"@Languages:\t{tongue or 'und'}", f"@Participants:\t{people}"]
    for name, role in speakers.items():
        lines.append(f"@ID:\t{tongue or 'und'}|fidm|{name}|||||{ROLE_WORDS[role]}|||")
    for turn in transcript:
        lines += _written(turn)
    return "\n".join([*lines, "@End"]) + "\n"


def _written(turn: Turn) -> list[str]:
    """The main line of a turn and what hangs on it."""
    marks = list(turn.marks)
    after = [mark for mark in marks if turn.text and mark.kind == "event" and mark.start >= len(turn.text)]
    if after:
        marks.remove(after[0])
    body = written(turn.text, marks)
    times = ""
    if turn.is_timed:
        times = f" \x15{milliseconds(turn.start_s)}_{milliseconds(turn.end_s)}\x15"
    lines = [f"*{turn.speaker}:\t{body}{times}"]
    timed = [
        f"{turn.text[word.start : word.end]} \x15{milliseconds(word.start_s)}_{milliseconds(word.end_s)}\x15"
        for word in turn.words
        if not (math.isnan(word.start_s) or math.isnan(word.end_s))
        and not re.search(r"\s", turn.text[word.start : word.end])
    ]  # fmt: skip
    if timed:
        lines.append("%wor:\t" + " ".join(timed))
    if after:
        lines.append("%act:\tevent")
    return lines


FORMAT = Format(
    "chat",
    "CHAT",
    (".cha",),
    ("times", "untimed", "empty", "roles", "words", "pauses", "fillers", "retracings", "events", "language"),
    read_text,
    write_text,
)
