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
Observer, *other*. Where several speakers are PAR0, PAR1, … and all of them Participant, as Batchalign writes
them, ``roles`` must say who is who. Age (in years), sex, group, SES, education and the custom field of the
participant's @ID are kept in ``about``, the name of @Media in ``media``. The participant's name is not taken
from the headers, which hold one for each speaker. Times of words are those of %wor, as Batchalign writes it.
Line numbers are found here, for rustling gives none.

The main line of CHAT: words, and the signs between them; :mod:`fidm.io.formats.chat` has the table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
)
from fidm.io.talk import UNKNOWN_TIME, Mark, Role, Transcript, Turn, Word

TOKEN = re.compile(
    r"""
    (?P<code>\[[^\[\]]*\])                     # [/], [: right], [=! laughs]
    | (?P<pause>\([0-9.:]*\))(?![^\s<>\[\]])
    | (?P<open><) | (?P<close>>)
    | (?P<end>\+(?:\.\.\.|\.\.\?|!\?|/\.|/\?|//\.|//\?|/!\?|"/\.|"\.|\.|[<^,+"]|\S*))(?!\S)
    | (?P<word>[^\s<>\[\]]+)
    """,
    re.VERBOSE,
)
REPLACED = re.compile(r"\[::?\s+([^\[\]]+)\]")
RETRACED = re.compile(r"\[(?:/{1,3}|/-|/\?)\]")
UNCLEAR = {"xxx", "yyy", "www", "xx", "yy"}
FILLERS = {"uh", "um", "uhm", "er", "erm", "eh", "ah", "hm", "hmm", "mm", "mhm", "誒", "嗯", "呃"}
MOVEMENTS = {
    "act", "ges", "gesture", "hand", "head", "move", "moves", "point", "points", "push", "pushes", "put",
    "puts", "take", "takes", "show", "shows", "turn", "turns", "walk", "walks", "pull", "pulls", "trace",
    "traces", "draw", "draws", "touch", "touches", "pick", "picks", "drop", "drops", "nod", "nods",
}  # fmt: skip
ENDING = ".,?!;\u3002\uff0c\uff1f\uff01\uff1b\u3001"
"""Ordinary punctuation after a word, Western and Chinese."""

CLOSING = re.compile(f"[{ENDING}]+")
SIGNS = re.compile("[‡„⌈⌉⌊⌋∙°↑↓⇗↗→↘⇘∞≈≋∇∆⁎♋⁇☺∬Ϋ∮↫ˈˌ^≠⸨⸩]")
"""Signs of intonation, overlap and stress that CHAT writes into words."""


def parse(line: str) -> tuple[str, list[Mark]]:
    """Return the words of a main line, and what is noted between them."""
    building = _Line()
    for match in TOKEN.finditer(line):
        kind, value = match.lastgroup, match.group()
        if kind == "pause":
            building.mark("pause", _seconds(value))
        elif kind == "open":
            building.opened.append(building.next_word)
        elif kind == "close":
            first = building.opened.pop() if building.opened else building.next_word
            building.scope = (first, building.next_word)
        elif kind == "code":
            if RETRACED.fullmatch(value):
                building.retrace()
            elif found := REPLACED.fullmatch(value):
                building.replace(found.group(1).split())
        elif kind == "word":
            _take(building, value)
    text, marks = building.finished()
    # A line without words has its full stop all the same.
    if len(text) == 1 and text in ".?!\u3002" and text != clean(line):
        return "", [replace(mark, start=0, end=0) for mark in marks]
    return text, marks


class _Line:
    """The text of a line while it is put together, word by word."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.glued: list[bool] = []
        self.scope: tuple[int, int] | None = None
        self.opened: list[int] = []
        self._notes: list[tuple[str, int, int, float]] = []

    @property
    def next_word(self) -> int:
        return len(self.words)

    def add(self, word: str, *, glue: bool = False) -> None:
        self.words.append(word)
        self.glued.append(glue and len(self.words) > 1)
        self.scope = (len(self.words) - 1, len(self.words))

    def mark(self, kind: str, seconds: float = UNKNOWN_TIME) -> None:
        self._notes.append((kind, len(self.words), len(self.words), seconds))

    def mark_last(self, kind: str) -> None:
        self._notes.append((kind, len(self.words) - 1, len(self.words), UNKNOWN_TIME))

    def retrace(self) -> None:
        if self.scope is not None and self.scope[0] < self.scope[1]:
            self._notes.append(("retraced", *self.scope, UNKNOWN_TIME))

    def replace(self, words: Sequence[str]) -> None:
        """Put what was meant in the place of what it sounded like; what follows a word stays with it."""
        meant = [plain for word in words if (plain := _plain(word))]
        if self.scope is None or self.scope[0] >= self.scope[1] or not meant:
            return
        first, last = self.scope
        if len(meant) <= last - first:
            meant += [""] * (last - first - len(meant))
        else:
            meant = [*meant[: last - first - 1], " ".join(meant[last - first - 1 :])]
        for place, word in zip(range(first, last), meant, strict=True):
            if not CLOSING.fullmatch(self.words[place]):
                self.words[place] = word

    def finished(self) -> tuple[str, list[Mark]]:
        starts, ends, text = [], [], ""
        for word, glue in zip(self.words, self.glued, strict=True):
            text += word if glue or not text or not word else " " + word
            starts.append(len(text) - len(word))
            ends.append(len(text))
        marks = []
        for kind, first, last, seconds in self._notes:
            if first == last:
                place = ends[first - 1] if first else 0
                marks.append(Mark(kind, place, place, seconds))  # type: ignore[arg-type]
            else:
                marks.append(Mark(kind, starts[first], ends[last - 1], seconds))  # type: ignore[arg-type]
        return text, sorted(marks, key=lambda mark: (mark.start, mark.end))


def _take(building: _Line, word: str) -> None:
    """Add one word of the main line, or what it stands for."""
    if word.startswith("&"):
        _take_special(building, word)
        return
    if word == "0":
        building.mark("event")
        return
    if CLOSING.fullmatch(word):
        building.add(word, glue=True)
        return
    if re.match(r"0[^\W\d_]", word):  # a word that was not said
        return
    end = word[len(word.rstrip(ENDING)) :]
    plain = _plain(word[: len(word) - len(end)])
    if plain.casefold() in UNCLEAR:
        plain = ""
    if plain:
        building.add(plain + end)
    elif end:
        building.add(end, glue=True)


def _take_special(building: _Line, word: str) -> None:
    if word.startswith("&-"):
        end = word[len(word.rstrip(ENDING)) :]
        filler = _plain(word[2 : len(word) - len(end)])
        if filler:
            building.add(filler)
            building.mark_last("filler")
        if end:
            building.add(end, glue=True)
    elif word.startswith("&="):
        if re.split(r"[:_]", word[2:].casefold())[0] in MOVEMENTS:
            building.mark("event")
    elif word[1:].casefold() in FILLERS:  # as older files write them
        building.add(_plain(word[1:]))
        building.mark_last("filler")


def _plain(word: str) -> str:
    """One word in full, whatever of it was left unsaid."""
    word = re.sub(r"\(([^()]*)\)", r"\1", word)
    word = SIGNS.sub("", word)
    word = re.sub(r"(?<=[^\s])@[a-zA-Z:$*&+_-]+$", "", word)
    word = re.sub(r"(?<=[^\W\d_]):+(?=[^\W\d_]|$)", "", word)
    word = re.sub(r"(?<=[^\W\d_])\+(?=[^\W\d_])", "", word)
    return clean(word)


def _seconds(pause: str) -> float:
    """The length of a pause such as (1.5) or (1:02.5); NaN for (.)."""
    match = re.fullmatch(r"\((?:([0-9]{1,6}):)?([0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})\)", pause)
    if match is None:
        return UNKNOWN_TIME
    return 60 * int(match.group(1) or 0) + float(match.group(2))


def written(text: str, marks: Sequence[Mark]) -> str:
    """Return the main line of a text with its marks.

    Fillers and retracings are written where they cover whole words; a pause inside a word stands after it.
    A text that does not end with ``.``, ``?`` or ``!`` gets CHAT's ``+.``, which is read as nothing.
    """
    spans = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    shown = [text[start:end] for start, end in spans]
    starts = {start: place for place, (start, _) in enumerate(spans)}
    ends = {end: place for place, (_, end) in enumerate(spans)}
    closing = "."
    if text:
        closing = "+."
        if text[-1] in ".?!" and not CLOSING.fullmatch(shown[-1]):
            closing, shown[-1] = text[-1], shown[-1][:-1]
            ends[len(text) - 1] = len(spans) - 1
        elif len(text) == 1 and text in ".?!":
            closing, shown = text, []
    between: dict[int, list[str]] = {}
    for mark in marks:
        place = sum(start < mark.start for start, _ in spans)
        if mark.kind == "pause":
            between.setdefault(place, []).append(_pause(mark.seconds))
        elif mark.kind == "event":
            between.setdefault(place, []).append("&=act")
    _write_covering(shown, marks, starts, ends)
    if not text:
        own = between.setdefault(0, [])
        if "&=act" in own:
            own[own.index("&=act")] = "0"
        else:
            own.insert(0, "xxx")
    parts: list[str] = []
    for place in range(len(spans) + 1):
        parts += between.get(place, [])
        parts += shown[place : place + 1]
    return " ".join([*parts, closing])


def _write_covering(
    shown: list[str], marks: Sequence[Mark], starts: dict[int, int], ends: dict[int, int]
) -> None:
    """Write fillers and retracings into the words they cover."""
    covered: list[tuple[int, int]] = []
    for mark in marks:
        first, last = starts.get(mark.start), ends.get(mark.end)
        if first is None or last is None or not first <= last < len(shown):
            continue
        if mark.kind == "filler" and first == last and not shown[first].startswith("&"):
            shown[first] = f"&-{shown[first]}"
        elif mark.kind == "retraced" and not any(a <= last and first <= b for a, b in covered):
            covered.append((first, last))
    for first, last in covered:
        shown[last] += "> [/]"
        shown[first] = "<" + shown[first]


def _pause(seconds: float) -> str:
    if math.isnan(seconds):
        return "(.)"
    digits = f"{seconds:.3f}".rstrip("0")
    return f"({digits}0)" if digits.endswith(".") else f"({digits})"


BULLET = re.compile(r"\x15([0-9]{1,12})_([0-9]{1,12})\x15")
ANY_BULLET = re.compile(r"\x15[^\x15]*\x15?")
TIMED_WORD = re.compile(
    r"(?<![^\s\x15])([^\s\x15]++)(?:\s*+\x15([0-9]{1,12})_([0-9]{1,12})\x15|\s++([0-9]{1,12})_([0-9]{1,12})(?!\S))"
)
"""A word of a %wor line with its times, also where the signs around them were lost."""

NUMBERED = re.compile(r"par[0-9]{1,3}")
AGE = re.compile(r"([0-9]{1,3})(?:;([0-9]{0,2})(?:\.([0-9]{0,2}))?)?\.?")
ID_FIELDS = {"age": 3, "sex": 4, "group": 5, "ses": 6, "education": 8, "custom": 9}
"""Where an @ID line has what it says of a speaker."""

AHEAD = 6
"""How many words a %wor line may leave out at once."""

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
    guessed = [code for code, role in roles.items() if role == "participant" and NUMBERED.fullmatch(code)]
    if len(guessed) > 1:  # Batchalign calls everybody a participant
        roles.update(dict.fromkeys(guessed))
    tongue = clean(headers.languages[0]) if headers.languages else ""
    file = RawFile(language=SHORT.get(tongue, tongue))
    for row in lines:
        if row.startswith("@ID:"):
            cells = [clean(cell) for cell in row[4:].split("|")]
            told = {name: cells[place] for name, place in ID_FIELDS.items() if place < len(cells)}
            told["age"] = _years(told.get("age", ""))
            file.people["".join(cells[2:3])] = {name: value for name, value in told.items() if value}
        elif row.startswith("@Media:"):
            file.media = clean(row[7:].rpartition(",")[0] or row[7:]).split(",")[0].strip('"')
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
    words = _words(text, tiers.get("%wor") or "")
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


def _words(text: str, line: str) -> tuple[Word, ...]:
    """The words of a text with the times of a %wor line, which may leave words out and keeps CHAT's signs."""
    spans = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    plain = [text[start:end].strip(ENDING).casefold() for start, end in spans]
    found: list[Word] = []
    place = 0
    for match in TIMED_WORD.finditer(line):
        said, *times = (part for part in match.groups() if part is not None)
        special = said[2:] if said.startswith("&-") else said
        whole = clean(special) if clean(special) in text else _plain(special)
        word = whole.strip(ENDING).casefold()
        at = next(
            (i for i in range(place, min(place + AHEAD, len(spans))) if word and plain[i] == word), None
        )
        if at is None:
            continue
        start = text.find(whole, spans[at][0], spans[at][1])
        first = spans[at][0] if start < 0 else start
        last = spans[at][1] if start < 0 else start + len(whole)
        found.append(Word(first, last, int(times[0]) / 1000, int(times[1]) / 1000))
        place = at + 1
    return tuple(found)


def _years(age: str) -> str:
    """An age such as ``72;03.`` in years; what is none is left as it is."""
    match = AGE.fullmatch(age)
    if match is None:
        return age
    years, months, days = (int(part or 0) for part in match.groups())
    return f"{years + months / 12 + days / 365.25:.4f}".rstrip("0").rstrip(".")


def _age(years: str) -> str:
    """An age in years as an @ID line has it."""
    if re.fullmatch(r"[0-9]{1,3}(?:\.[0-9]{1,6})?", years) is None:
        return years
    months = round(float(years) * 12)
    return f"{months // 12};{months % 12:02d}."


def _id_line(tongue: str, name: str, role: Role, about: Mapping[str, str]) -> str:
    cells = [tongue or "und", "fidm", name, "", "", "", "", ROLE_WORDS[role], "", "", ""]
    for fact, place in ID_FIELDS.items() if role == "participant" else ():
        value = clean(about.get(fact, ""))
        cells[place] = "" if "|" in value else _age(value) if fact == "age" else value
    return "@ID:\t" + "|".join(cells)


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
        lines.append(_id_line(tongue, name, role, transcript.about))
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
