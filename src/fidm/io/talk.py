"""What was said, by whom and when: turns, and transcripts made of them.

A transcript is what a reader makes of one file, whatever its format. Text holds the words alone: marks that a
format writes between the words (pauses, fillers, retracings) are taken out and kept beside them, so that what
counts as a character or a pause can be decided later, the same way for every format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, overload

import polars as pl

from fidm.cohort import no_problems
from fidm.errors import DataError
from fidm.types import Omission

Role = Literal["participant", "assessor", "other"]
"""Who a speaker is in the task; ``other`` is anybody whose talk is not part of the dialog."""

ROLES: tuple[Role, ...] = ("participant", "assessor", "other")

MarkKind = Literal["pause", "filler", "retraced", "event"]
"""What a mark says about its stretch of the text."""

UNKNOWN_TIME = math.nan
"""The time of what has none."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word with its time, as a recogniser gives it.

    Parameters
    ----------
    start, end : int
        Where the word stands in its turn's text, in code points.
    start_s, end_s : float
        When it was said; NaN where unknown.
    """

    start: int
    end: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Mark:
    """Something a transcriber noted within a turn.

    Parameters
    ----------
    kind : {"pause", "filler", "retraced", "event"}
        A silence, a filler such as *uhm*, words taken back, or something that happened (a move of the
        figure, a gesture).
    start, end : int
        The stretch of the turn's text it is about, in code points; equal where it stands between words.
    seconds : float
        How long a pause lasted; NaN where the mark does not say.
    """

    kind: MarkKind
    start: int
    end: int
    seconds: float = UNKNOWN_TIME


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of one speaker.

    Parameters
    ----------
    speaker : str
        As the file calls them.
    start_s, end_s : float
        When it began and ended; NaN where unknown.
    text : str
        The words, without the marks of the file's format.
    role : {"participant", "assessor", "other"}
        Who the speaker is in the task.
    line : int
        The line (or row, or item) of the file it stands in, from 1; 0 where there is none.
    words : tuple of Word
        Times of single words, where the file has them; in the order of the text.
    marks : tuple of Mark
        What the transcriber noted within it.
    """

    speaker: str
    start_s: float
    end_s: float
    text: str
    role: Role = "other"
    line: int = 0
    words: tuple[Word, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def is_timed(self) -> bool:
        """Whether both its times are known."""
        return not (math.isnan(self.start_s) or math.isnan(self.end_s))

    def __repr__(self) -> str:
        # What a participant said must not end up in a log by way of a repr.
        when = f"{self.start_s:.2f}-{self.end_s:.2f} s" if self.is_timed else "untimed"
        return f"Turn({self.role}, {when}, {len(self.text)} characters)"


@dataclass(frozen=True, slots=True, eq=False)
class Transcript:
    """One timed dialog.

    Parameters
    ----------
    participant : str
        Whose dialog it is.
    turns : tuple of Turn
        In the order they were spoken.
    source : str
        The file it was read from.
    format : str
        The format of that file, such as ``"chat"``.
    episode : str
        Which of the participant's episodes it is.
    language : str
        ``"yue"``, ``"en"`` or another code; empty where the file does not say.
    about : mapping of str to str
        What the file itself says about the participant, such as ``{"age": "72.25", "sex": "female"}``; empty
        where it says nothing.
    media : str
        The recording that the file names; empty where it names none.
    """

    participant: str
    turns: tuple[Turn, ...]
    source: str = ""
    format: str = ""
    episode: str = "1"
    language: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    media: str = ""

    def __post_init__(self) -> None:
        if not self.participant:
            raise DataError("A transcript needs the name of its participant.", source=self.source)

    def __len__(self) -> int:
        return len(self.turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __repr__(self) -> str:
        return f"Transcript({self.participant!r}, {len(self.turns)} turns)"


@dataclass(frozen=True, slots=True, eq=False)
class Transcripts(Sequence[Transcript]):
    """Transcripts that were read together, and what was wrong with others.

    Parameters
    ----------
    items : tuple of Transcript
        Those that can be used.
    problems : DataFrame
        What was wrong: ``table`` is the file and ``row`` its line. Files with problems are left out when they
        are read with ``strict=False``.
    omissions : tuple of Omission
        What was left out: files, and turns of those that were read.
    """

    items: tuple[Transcript, ...]
    problems: pl.DataFrame = field(default_factory=no_problems)
    omissions: tuple[Omission, ...] = ()

    @classmethod
    def of(cls, transcripts: Iterable[Transcript]) -> Transcripts:
        """Put transcripts together; names and episodes must not repeat."""
        items = tuple(transcripts)
        keys = [(item.participant, item.episode) for item in items]
        twice = (
            next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
        )
        if twice is not None:
            raise DataError(f"Two transcripts are of {twice[0]!r}, episode {twice[1]!r}.")
        return cls(items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Transcript: ...
    @overload
    def __getitem__(self, index: slice) -> Transcripts: ...
    def __getitem__(self, index: int | slice) -> Transcript | Transcripts:
        return replace(self, items=self.items[index]) if isinstance(index, slice) else self.items[index]

    def __repr__(self) -> str:
        bad = f", {self.problems.height} problems" if self.problems.height else ""
        return f"Transcripts({len(self)}{bad})"
