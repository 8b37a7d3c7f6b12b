"""Who speaks in a file of dialogs, and who of them is the participant, as far as that can be found out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fidm.errors import few
from fidm.grounding.rules.language import DIRECTIONS, Vocabulary, language_of, vocabulary_of
from fidm.io.formats.base import Format, RawFile, RawTurn
from fidm.io.formats.checks import Roles, who_is
from fidm.io.talk import ROLES, Role, Transcript, Transcripts
from fidm.languages import WORDS, languages_with
from fidm.tasks.spec import builtin_tasks, read_task

CLEARER, MORE, LEAST_WORDS = 1.5, 1.2, 3
"""Who says so many times more words of the way than others that are no echo, so many times more of them all,
and at least so many, is the participant."""

FEWEST_WORDS = 8
"""Where the participant says fewer words of the way, it may be about something else."""

OF_THE_WAY = frozenset((*DIRECTIONS, "AHEAD", "TURN", "BACK"))
"""Classes of words that say where somebody goes; assessors, too, name goods and say "go on"."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Somebody who speaks in a file."""

    name: str
    role: Role | None  # None where it is not clear
    is_guess: bool  # whether the role was found by what they say, not by name
    turns: int
    words: int  # or characters, in languages without spaces
    seconds: float
    way_words: int  # words of the way: directions, straight on, turning
    new_words: int  # of these, the ones that are no echo of what another said just before


@dataclass(frozen=True, slots=True)
class DialogFile:
    """A file with dialogs."""

    path: Path
    name: str  # from the folder of the dialogs
    format: str
    language: str
    speakers: tuple[Speaker, ...]
    is_undiarised: bool  # whether all is said by one speaker whom nothing calls the participant

    @property
    def is_off_task(self) -> bool:
        """Whether the participant hardly speaks of the way, so that it may be about something else."""
        way = sum(one.way_words for one in self.speakers if one.role == "participant")
        return not self.is_unclear and way < FEWEST_WORDS

    @property
    def is_guessed(self) -> bool:
        """Whether somebody's role was found by what they say."""
        return any(one.is_guess for one in self.speakers)

    @property
    def is_unclear(self) -> bool:
        """Whether nobody can tell who the participant is."""
        return any(one.role is None for one in self.speakers)


class WayWords:
    """Finds words of the way in the languages that can be read."""

    def __init__(self, task: str) -> None:
        self._spec = read_task(task if task in builtin_tasks() else Path(task))
        self._known: dict[str, Vocabulary | None] = {}

    def find(self, text: str, language: str) -> list[str]:
        """Return the classes of those in a text; none in a language that cannot be read."""
        if language not in self._known:
            is_known = language in languages_with(WORDS) or Path(language).is_file()
            self._known[language] = vocabulary_of(language, self._spec) if is_known else None
        words = self._known[language]
        return [] if words is None else [one.kind for one in words.tokens(text) if one.kind in OF_THE_WAY]

    def count(self, turns: Sequence[RawTurn], language: str) -> tuple[Counter[str], Counter[str]]:
        """Return how many each speaker says, and how many of them are no echo of another just before."""
        found, new = Counter[str](), Counter[str]()
        before: list[tuple[str, set[str]]] = []
        for turn in turns:
            said = self.find(turn.text, language)
            heard = {one for who, some in before[-ECHO:] if who != turn.speaker for one in some}
            found[turn.speaker] += len(said)
            new[turn.speaker] += sum(one not in heard for one in said)
            before.append((turn.speaker, set(said)))
        return found, new


ECHO = 3
"""Within so many turns a word of the way may be repeated after somebody else, as some assessors do."""


def dialog_file(
    path: Path, raw: RawFile, kind: Format, talk: Transcript, given: Roles, words: WayWords, talks: Path
) -> DialogFile:
    """Return a file with its speakers, and the roles that they have or would be given."""
    said = given.of(path)
    turns: dict[str, list[RawTurn]] = {}
    for turn in raw.turns:
        turns.setdefault(turn.speaker, []).append(turn)
    way, new = words.count(raw.turns, talk.language)
    speakers = [
        Speaker(
            name,
            who_is(own[0], said)[1],
            False,
            len(own),
            sum(_n_words(turn.text) for turn in own),
            sum(max(0.0, turn.end_s - turn.start_s) for turn in own if turn.end_s >= turn.start_s),
            way[name],
            new[name],
        )
        for name, own in turns.items()
    ]
    single = len(speakers) == 1 and who_is(raw.turns[0], {})[1] is None
    if not any(name.casefold() in said for name in turns):
        speakers = _with_roles(speakers)
    elif any(one.role is None for one in speakers):
        speakers = _guessed(speakers, ask_all=False)
    return DialogFile(
        path, path.relative_to(talks).as_posix(), kind.name, talk.language, tuple(speakers), single
    )


def _with_roles(speakers: list[Speaker]) -> list[Speaker]:
    """The speakers of a file of which nobody said who is who; without roles where words contradict it."""
    tested = [one for one in speakers if one.role == "participant"]
    has_assessor = any(one.role == "assessor" for one in speakers)
    most = max((one.way_words for one in speakers), default=0)
    if len(tested) == 1 and most >= max(LEAST_WORDS, CLEARER * tested[0].way_words):
        return [replace(one, role=None) for one in speakers]
    if any(one.role is None for one in speakers) or (len(speakers) > 1 and not (tested and has_assessor)):
        return _guessed(speakers, ask_all=len(tested) > 1 and not has_assessor)
    return speakers


def _n_words(text: str) -> int:
    """How many words a text has; characters, where it is written without spaces."""
    return len(split_words(text))


def split_words(text: str) -> list[str]:
    """Return the words of a text, and its Chinese characters."""
    return re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+", text)


def _guessed(speakers: list[Speaker], *, ask_all: bool) -> list[Speaker]:
    """The speakers with the participant found by who speaks of the way; without, where that is not clear.

    ``other`` is what files call somebody of whom they know no more, so that may be the participant, too.
    """
    known = [one for one in speakers if one.role == "participant" and not ask_all]
    if known:
        return told(speakers, known[0].name, kept=True)
    maybe = [one for one in speakers if ask_all or one.role != "assessor"]
    ranked = sorted(maybe, key=lambda one: one.new_words, reverse=True)
    if not ranked:
        return [replace(one, role=None) for one in speakers]
    most, others = ranked[0], ranked[1:]
    is_clear = most.new_words >= max(LEAST_WORDS, *(CLEARER * one.new_words for one in others), 0)
    agrees = all(most.way_words >= MORE * one.way_words for one in others)
    if len(speakers) > 1 and is_clear and agrees:
        return told(speakers, most.name, kept=not ask_all)
    return [replace(one, role=None if one in maybe else one.role) for one in speakers]


def told(speakers: Sequence[Speaker], participant: str, *, kept: bool = False) -> list[Speaker]:
    """Return the speakers with one as the participant, and who speaks most of the others as the assessor."""
    others = [one for one in speakers if one.name != participant]
    has_assessor = kept and any(one.role == "assessor" for one in speakers)
    asks = None if has_assessor else max(others, key=lambda one: one.turns, default=None)
    found = []
    for one in speakers:
        role: Role = "participant" if one.name == participant else "assessor" if one is asks else "other"
        is_known = one.role == role or (kept and one.role is not None and role == "other")
        found.append(replace(one, role=one.role if is_known else role, is_guess=not is_known))
    return found


def say_heard(dialogs: Transcripts) -> str:
    """Return who was heard in dialogs, and how: formats, languages, and who is who by the speakers' names.

    Examples
    --------
    >>> from fidm.io.talk import Transcript, Transcripts, Turn
    >>> turns = (Turn("INV", 0, 1, "and then?", "assessor"), Turn("PAR", 1, 3, "left", "participant"))
    >>> say_heard(Transcripts((Transcript("P1", turns, format="chat", language="en"),)))
    'chat 1; en 1; participant PAR 1, assessor INV 1'
    """
    names: Counter[tuple[Role, str]] = Counter()
    for one in dialogs:
        names.update({(turn.role, turn.speaker or "(no name)") for turn in one})
    kinds, spoken = (
        ", ".join(f"{name} {n:,}" for name, n in Counter(some).most_common())
        for some in ([one.format for one in dialogs], [language_of(one) for one in dialogs])
    )
    who = []
    for role in ROLES:
        own = [f"{name} {n:,}" for (one, name), n in names.most_common() if one == role]
        shown = few(own) if len(own) <= MOST_NAMES else f"{len(own):,} names"
        who += [f"{role} {shown}"] if own else []
    return f"{kinds}; {spoken}; {', '.join(who)}"


MOST_NAMES = 4
"""With more names than that speakers have names of their own, which are counted."""
