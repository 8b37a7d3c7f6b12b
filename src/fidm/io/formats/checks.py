"""From the turns of a file to checked transcripts: who a speaker is in the task, times, events."""

from __future__ import annotations

import json
import math
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from fidm.errors import DataError, Problem, count, few, listed, meant, remedy
from fidm.io.formats.base import Flaw, Happening, RawFile, RawTurn, clean
from fidm.io.sheets import SHEETS, TEXTS, read_table, table_columns
from fidm.io.talk import ROLES, Mark, Role, Transcript, Turn

KNOWN: dict[str, Role] = {
    **dict.fromkeys(
        (
            "par", "participant", "child", "chi", "patient", "pat", "p", "subject", "sub", "sbj", "client",
            "interviewee", "testee", "target_child", "target_adult", "參加者", "參與者", "受試者",
            "病人", "長者",
        ),
        "participant",
    ),
    **dict.fromkeys(
        (
            "inv", "investigator", "assessor", "ass", "examiner", "exa", "exm", "interviewer", "int",
            "experimenter", "exp",
            "tester", "doctor", "doc", "clinician", "therapist", "nurse", "researcher", "e", "a",
            "評估員", "評估者", "研究員", "測試員", "醫生",
        ),
        "assessor",
    ),
    **dict.fromkeys(("other", "oth", "unidentified"), "other"),
}  # fmt: skip
"""Speakers known by name. A diariser's SPEAKER_00 is nobody in particular; ``roles`` must map it."""

MOST_NAMES, LONGEST_NAME = 12, 24


@dataclass(frozen=True, slots=True)
class Roles:
    """Who the speakers are, by names in lower case: in all files, and in single ones, which come first."""

    everywhere: Mapping[str, Role] = field(default_factory=dict)
    by_file: Mapping[str, Mapping[str, Role]] = field(default_factory=dict)
    """By a file's name, or the end of its path where several files have the same name."""

    source: str = ""
    """The file they were read from; empty where there is none."""

    def of(self, path: Path) -> Mapping[str, Role]:
        """Return who is who in a file."""
        return {**self.everywhere, **dict(self._own(path))}

    def _own(self, path: Path) -> Iterator[tuple[str, Role]]:
        for parts in range(1, len(path.parts) + 1):
            yield from self.by_file.get("/".join(path.parts[-parts:]), {}).items()

    def names(self) -> frozenset[str]:
        """Return every name that somebody has."""
        return frozenset(self.everywhere).union(*self.by_file.values())

    def require_files(self, paths: Iterable[Path]) -> None:
        """Raise if a file is named that is not among the dialogs."""
        known = {"/".join(path.parts[-n:]) for path in paths for n in range(1, len(path.parts) + 1)}
        lost = [name for name in self.by_file if name not in known]
        if lost:
            known_names = [name for name in known if "/" not in name]
            raise DataError(
                f"names {count(len(lost), 'file')} that {'is' if len(lost) == 1 else 'are'} not among the "
                f"dialogs: {few(lost)}. {meant(lost[:1], known_names)}",
                source=self.source,
            )


def load_roles(roles: Mapping[str, Any] | str | Path | Roles | None) -> Roles:
    """Return who is who, from a mapping or a file (TOML, JSON, a table); all problems are said at once."""
    if roles is None:
        return Roles()
    if isinstance(roles, Roles):
        return roles
    source = "" if isinstance(roles, Mapping) else str(roles)
    given = dict(roles) if isinstance(roles, Mapping) else _from_file(Path(roles))
    everywhere: dict[str, Role] = {}
    by_file: dict[str, dict[str, Role]] = {}
    problems: list[Problem] = []
    for name, said in given.items():
        own = {name: said} if not isinstance(said, Mapping) else said
        table = everywhere if own is not said else by_file.setdefault(str(name), {})
        where = source if own is not said else str(name)
        for speaker, role in own.items():
            known = role.strip().casefold() if isinstance(role, str) else ""
            if known in ROLES and isinstance(speaker, str):
                table[clean(speaker).casefold()] = next(one for one in ROLES if one == known)
            elif not known and own is said:
                who = shown_names([clean(str(speaker))], are_names=True)
                problems.append(Problem(f"The role of {who} is empty.", where, hint=ROLE_HINT))
            else:
                problems.append(Problem(f"roles must map names of speakers to {ROLE_NAMES}.", where))
    if problems and not by_file:
        raise DataError(problems[0].what, source=source)
    if problems:
        raise DataError("does not say who everybody is.", source=source, problems=problems)
    return Roles(everywhere, by_file, source)


ROLE_NAMES = "'participant', 'assessor' or 'other'"
ROLE_HINT = f"Fill in {ROLE_NAMES}."


def _from_file(path: Path) -> dict[str, Any]:
    """What a file of roles says: by speaker, or by file and speaker."""
    kind = path.suffix.casefold()
    if kind in (*TEXTS, *SHEETS):
        return _from_table(path)
    try:
        text = path.read_text("utf-8-sig")
        found = tomllib.loads(text) if kind == ".toml" else json.loads(text) if kind == ".json" else None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", source=str(path)) from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DataError(NO_ROLES, source=str(path))
    nested = found.get("roles")
    return nested if kind == ".toml" and isinstance(nested, dict) else found


def _from_table(path: Path) -> dict[str, Any]:
    """The rows of a table with the columns speaker and role, and file where they differ from file to file."""
    table = read_table(path, ids=table_columns(path)).rename(lambda name: name.strip().casefold())
    if table.width == 2 and table.columns[1] in ROLES:  # without a row of names
        rows = [("", *table_columns(path)), *(("", *row) for row in table.rows())]
    elif {"speaker", "role"} <= set(table.columns):
        where = pl.col("file") if "file" in table.columns else pl.lit("").alias("file")
        rows = table.select(where, "speaker", "role").rows()
    else:
        raise DataError(f"{NO_ROLES} It has {listed(map(repr, table.columns))}.", source=str(path))
    found: dict[str, Any] = {}
    for file, speaker, role in rows:
        own = found.setdefault(file.strip(), {}) if file and file.strip() else found
        own[speaker or ""] = role or ""
    return found


NO_ROLES = (
    'is not a table of roles: TOML or JSON with PAR = "participant", or a table with the columns speaker and '
    "role, and file if they differ between files."
)


def who_is(turn: RawTurn, roles: Mapping[str, Role]) -> tuple[str, Role | None]:
    """Return the name under which a speaker is known and the role; None where nobody knows them.

    What ``roles`` says comes first, then what the file says, then the names everybody uses.
    """
    names = [name for name in (turn.speaker, *turn.others) if name]
    for name in names or [""]:
        role = roles.get(name.casefold())
        if role is not None:
            return name, role
    if turn.role is not None:
        return turn.speaker, turn.role
    for name in names:
        role = KNOWN.get(name.casefold())
        if role is not None:
            return name, role
    return turn.speaker, None


def shown_names(names: list[str], *, are_names: bool = False) -> str:
    """Return names of speakers for a message; what does not look like a name is counted, not shown.

    A table whose columns are mixed up has words in the place of names. Names with spaces, such as Dr Smith,
    are shown where ``are_names`` says that these are surely speakers.
    """
    plain = [name for name in names if _is_name(name, are_names)] if len(names) <= MOST_NAMES else []
    others = len(names) - len(plain)
    listed = ", ".join(repr(name) if name else "no name" for name in plain)
    if others:
        more = f"{others} that {'is' if others == 1 else 'are'} not shown"
        listed = f"{listed} and {more}" if listed else more
    return listed


def _is_name(name: str, are_names: bool) -> bool:
    """Whether a name is a code such as SPEAKER_00 or a short word; a sentence must not pass for one."""
    if len(name) > LONGEST_NAME:
        return False
    if are_names and len(name.split()) <= 3 and re.fullmatch(r"[\w .@'()-]*", name):
        return True
    if not name.isascii():
        return len(name) <= 4 and name.isalnum()
    return re.fullmatch(r"[A-Za-z0-9_.@-]*", name) is not None


def _are_speakers(turns: list[RawTurn]) -> bool:
    """Whether these are speakers: few, each with several turns, who say more than there are names."""
    names = Counter(turn.speaker for turn in turns)
    texts = {turn.text for turn in turns}
    return 2 * len(names) <= len(turns) and len(texts) > len(names) and min(names.values(), default=0) >= 2


NO_TIMES = "The turn has no times."

LONGEST_S = 24 * 3600.0
"""No dialog lasts longer; times beyond are in the wrong unit."""

SLACK_S = 0.05
"""How far times may run back, or turns of one speaker overlap: times set by hand touch a little."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller of ``read`` asked for."""

    roles: Mapping[str, Role]
    language: str
    untimed: str
    participant: str | None
    """Given as a text, for the one file there is."""

    name_of: Callable[[], str]
    """Gives the participant of a file that names none."""


def transcripts_of(
    file: RawFile, asked: Asked, *, source: str, format: str
) -> tuple[list[Transcript], list[tuple[str, Flaw]]]:
    """Return the transcripts of a file, and what is wrong with them, each with its participant."""
    flaws: list[tuple[str, Flaw]] = []
    groups: dict[tuple[str, str], list[RawTurn]] = {}
    own = asked.name_of()
    flaws += [(own, flaw) for flaw in file.flaws]
    if (
        asked.participant is not None
        and len({turn.participant for turn in file.turns if turn.participant}) > 1
    ):
        flaws.append((own, Flaw("names several participants itself, so participant= cannot be given.")))
    for turn in file.turns:
        who = own if asked.participant is not None else turn.participant or own
        groups.setdefault((who, turn.episode or "1"), []).append(turn)
    if not file.turns and not file.flaws:
        flaws.append((own, Flaw("has no turns.", None, "Is it the right file?")))
    found: list[Transcript] = []
    for (who, episode), turns in groups.items():
        named, wrong = _named(turns, asked.roles)
        tested = {turn.speaker for turn, one in zip(turns, named, strict=True) if one.role == "participant"}
        about = file.about.get((turns[0].participant, turns[0].episode), {}) or _agreed(file.people, tested)
        wrong += [*_wrong_times(turns, asked.untimed, in_order=file.in_order)] or _milliseconds(turns)
        wrong += _overlaps([turn for turn, one in zip(turns, named, strict=True) if one.role != "other"])
        flaws += [(who, flaw) for flaw in wrong]
        if not file.in_order:
            named.sort(key=lambda turn: math.inf if math.isnan(turn.start_s) else turn.start_s)
        named = named if wrong else _with_events(named, file.events)
        said = next((turn.language for turn in turns if turn.language), file.language)
        tongue = said or asked.language
        found.append(Transcript(who, tuple(named), source, format, episode, tongue, about, file.media))
    return found, flaws


def _agreed(people: Mapping[str, Mapping[str, str]], speakers: set[str]) -> dict[str, str]:
    """What a file says of all these speakers alike; usually there is one."""
    told = [people[name] for name in speakers if people.get(name)]
    return {
        fact: value
        for fact, value in (told[0] if told else {}).items()
        if all(other.get(fact) == value for other in told[1:])
    }


NO_SECONDS = "Times are in seconds; are these milliseconds? In a table, call the columns start_ms and end_ms."
SLOW_S, SLOWEST = 60.0, 0.5
"""Turns this long on average, with fewer characters per second than that, are in another unit."""


def _named(turns: list[RawTurn], roles: Mapping[str, Role]) -> tuple[list[Turn], list[Flaw]]:
    """The turns with their roles, and speakers nobody knows."""
    found: list[Turn] = []
    unknown: dict[str, int] = {}
    for turn in turns:
        name, role = who_is(turn, roles)
        if role is None:
            unknown.setdefault(name, turn.line)
        times = turn.start_s, turn.end_s
        found.append(Turn(name, *times, turn.text, role or "other", turn.line, turn.words, turn.marks))
    speakers = list(dict.fromkeys(turn.speaker for turn in found))
    sure = _are_speakers(turns)
    say = remedy('roles={"NAME": "participant", …}, or [speakers] in', "[speakers] in the study's")
    hint = (
        f"The speakers of the file are {shown_names(speakers, are_names=sure)}. Say who they are: {say} "
        'grounding.toml; "" is a speaker without a name.'
    )
    if unknown:
        are = " is" if len(unknown) == 1 else "s are"
        what = f"{len(unknown)} speaker{are} not known: {shown_names(list(unknown), are_names=sure)}."
        return found, [Flaw(what, next(iter(unknown.values())) or None, hint)]
    if not any(turn.role == "participant" for turn in found):
        return found, [Flaw("Nobody in it is the participant.", None, hint)]
    tested = {turn.speaker.casefold(): turn.speaker for turn in found if turn.role == "participant"}
    if len(tested) > 1 and tested.keys().isdisjoint(roles) and all(turn.role != "assessor" for turn in found):
        names = shown_names(list(tested.values()), are_names=sure)
        return found, [
            Flaw(f"{len(tested)} speakers are participants, and nobody is the assessor: {names}.", None, hint)
        ]
    return found, []


def _wrong_times(turns: list[RawTurn], untimed: str, *, in_order: bool) -> Iterator[Flaw]:
    """What is wrong with the times of one transcript, turn by turn."""
    latest = -math.inf
    for turn in turns:
        start, end, line = turn.start_s, turn.end_s, turn.line or None
        known = [time for time in (start, end) if not math.isnan(time)]
        is_open = turn.ends_open and not math.isnan(start)
        if len(known) < 2 and untimed == "problem" and not is_open:
            yield Flaw(NO_TIMES, line, 'Turns without times pass with untimed = "keep".')
        if any(time < 0 for time in known):
            yield Flaw("A time is negative.", line)
        elif any(time > LONGEST_S for time in known):
            yield Flaw("A time is beyond 24 hours.", line, NO_SECONDS)
        elif end < start:
            yield Flaw("The turn ends before it starts.", line)
        elif in_order and start < latest - SLACK_S:
            yield Flaw("The turn starts before the one above it.", line, "Put turns in the order of time.")
        elif not math.isnan(start):
            latest = max(latest, start)


def _milliseconds(turns: list[RawTurn]) -> list[Flaw]:
    """Whole numbers between which hardly anything is said are no seconds."""
    timed = [turn for turn in turns if turn.end_s > turn.start_s >= 0]
    length = sum(turn.end_s - turn.start_s for turn in timed)
    said = sum(len(turn.text) for turn in timed)
    whole = all(time == int(time) for turn in timed for time in (turn.start_s, turn.end_s))
    if not timed or not whole or length / len(timed) < SLOW_S or said > SLOWEST * length:
        return []
    return [Flaw("People hardly say anything in these times.", timed[0].line or None, NO_SECONDS)]


def _overlaps(turns: list[RawTurn]) -> Iterator[Flaw]:
    """Turns of one speaker that overlap; different speakers may."""
    until: dict[str, tuple[float, int]] = {}
    timed = [turn for turn in turns if turn.end_s >= turn.start_s]
    for turn in sorted(timed, key=lambda turn: turn.start_s):
        before, line = until.get(turn.speaker, (-math.inf, 0))
        if turn.start_s < before - SLACK_S:
            which = f"the one of line {line}" if line else "another one"
            what = f"The turn overlaps {which}, of the same speaker."
            yield Flaw(what, turn.line or None, "Two people can talk at once; one cannot.")
        if turn.end_s > before:
            until[turn.speaker] = (turn.end_s, turn.line)


def _with_events(turns: list[Turn], events: list[Happening]) -> list[Turn]:
    """The turns with what happened: a mark on the turn it happened in, or a turn of its own."""
    if not events:
        return turns
    groups: dict[str, _Stretches] = {}
    for place, turn in sorted(enumerate(turns), key=lambda pair: pair[1].start_s):
        if turn.role != "other" and turn.is_timed:
            groups.setdefault(turn.speaker, _Stretches()).add(turn.start_s, turn.end_s, (place, 0))
    own_group = _Stretches()
    every = [*groups.values(), own_group]
    earliest = list(
        accumulate((math.inf if math.isnan(t.start_s) else t.start_s for t in reversed(turns)), min)
    )[::-1]
    marked: Counter[tuple[int, int]] = Counter()
    own: list[tuple[tuple[int, int], Happening]] = []
    for event in sorted(events, key=lambda event: event.start_s):
        near = [pair for group in every if (pair := group.nearest(event.start_s, event.end_s)) is not None]
        if near:
            marked[min(near)[1]] += 1
            continue
        key = (bisect_right(earliest, event.start_s) - 1, len(own) + 1)  # after the last that began before
        own.append((key, event))
        own_group.add(event.start_s, event.end_s, key)
    shown = [((place, 0), turn) for place, turn in enumerate(turns)]
    shown += [(key, Turn("events", e.start_s, e.end_s, "", "assessor", e.line)) for key, e in own]
    marked.update(key for key, _ in own)
    return [
        replace(turn, marks=(*turn.marks, *[Mark("event", len(turn.text), len(turn.text))] * marked[key]))
        if key in marked
        else turn
        for key, turn in sorted(shown, key=lambda pair: pair[0])
    ]


class _Stretches:
    """Stretches of one speaker by their start, each with its key: which one lies nearest to an event."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._rows: list[tuple[float, float, tuple[int, int]]] = []

    def add(self, start_s: float, end_s: float, key: tuple[int, int]) -> None:
        latest = max(end_s, self._rows[-1][1]) if self._rows else end_s
        self._starts.append(start_s)
        self._rows.append((end_s, latest, key))

    def nearest(self, start_s: float, end_s: float) -> tuple[float, tuple[int, int]] | None:
        """How far the middles lie apart, and the key; None if nothing touches the event."""
        best: tuple[float, tuple[int, int]] | None = None
        for place in range(bisect_right(self._starts, end_s) - 1, -1, -1):
            own_end, latest, key = self._rows[place]
            if latest < start_s:
                break
            if own_end >= start_s:
                far = abs((self._starts[place] + own_end) / 2 - (start_s + end_s) / 2)
                best = min(best or (far, key), (far, key))
        return best


def same_talk(wanted: Transcript, found: RawFile) -> bool:
    """Whether a file says what a transcript says: the speakers, texts and times of all turns with words."""
    said = [turn for turn in wanted if turn.text]
    heard = [turn for turn in found.turns if turn.text]
    if not found.in_order:  # by speaker, then by time, as files with tiers keep them
        said.sort(key=lambda turn: (turn.speaker, turn.start_s))
        heard.sort(key=lambda turn: (turn.speaker, turn.start_s))
    return (
        not found.flaws
        and len(said) == len(heard)
        and all(
            (a.speaker, a.text) == (b.speaker, b.text)
            and _close(a.start_s, b.start_s)
            and _close(a.end_s, b.end_s)
            for a, b in zip(said, heard, strict=True)
        )
    )


def _close(one_s: float, other_s: float) -> bool:
    return (math.isnan(one_s) and math.isnan(other_s)) or abs(one_s - other_s) < 0.002
