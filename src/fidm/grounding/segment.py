"""A dialog becomes segments: runs of participant talk, each closed by the assessor moving the figure.

The rule: a segment begins with the participant's first words and goes on, through further turns and the
assessor's prompts, until the assessor moves the figure ("okay, I've moved you"), something happens (an
event mark), the assessor asks for something new (the bakery request) or gives an instruction. Prompts such
as "and then?" do not close it. Which words do which is data, in ``[assessor]`` of the language file;
``Segmenting.closes`` says what closes.

A request that names what a later phase is about opens that phase: "please also get some bread" opens the
phase whose target is the bakery, "you can go and pay now" the one that ends at the till.

What a segment cost: duration, characters, turns and pauses, counted one way for every format.

All four are measured on the participant's own talk between the first and the last word of the segment:

- **duration**: the time the participant's utterances last, silences inside them taken out, so that no
  second counts both as speech and as pause;
- **characters**: code points that are letters or digits; fillers and words taken back count, punctuation
  and spaces do not;
- **turns**: how often the participant had the floor; utterances that follow each other without the assessor
  in between are one turn;
- **pause**: every silence above 0.25 s in which nobody speaks, added up.

Each of these is a setting of :class:`Counting`; ``docs/explanation/words-to-moves.md`` says what each
changes.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from fidm.errors import GroundingError
from fidm.grounding.base import Segment
from fidm.grounding.route.program import FINISH
from fidm.grounding.rules.language import QUESTION, STOP, Token, Vocabulary
from fidm.io.talk import Transcript, Turn, Word
from fidm.tasks.spec import TaskSpec

Kind = Literal["moved", "event", "request", "instruction", "prompt", "other"]
KINDS: tuple[Kind, ...] = ("moved", "event", "request", "instruction", "prompt", "other")

KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
SCRIPTS = {"CJK": "Han", "IDEOGRAPHIC": "Han"} | dict.fromkeys(KANA, "Kana")
"""The script of letters whose names in Unicode begin in another way than with it."""


@dataclass(frozen=True, slots=True)
class Segmenting:
    """What ends a segment.

    Parameters
    ----------
    closes : tuple of str
        The kinds of assessor turns that end one; add ``"prompt"`` where every prompt means that the figure
        has been moved.
    """

    closes: tuple[Kind, ...] = ("moved", "event", "request", "instruction")

    def __post_init__(self) -> None:
        strange = [kind for kind in self.closes if kind not in KINDS]
        if strange:
            raise GroundingError(f"closes has {strange[0]!r}; it may have {', '.join(KINDS)}.")


@dataclass(frozen=True, slots=True)
class Cut:
    """A dialog cut into segments."""

    segments: tuple[Segment, ...]  # in the order they were spoken
    told: frozenset[str]  # the phases somebody opens in so many words
    kinds: tuple[str, ...]  # what each turn of the assessor does; empty for others


Segmenter = Callable[[Transcript, Vocabulary, TaskSpec, Segmenting], Cut]
"""Another rule: anything that cuts a dialog into segments."""


def cut_dialog(
    transcript: Transcript, vocabulary: Vocabulary, spec: TaskSpec, segmenting: Segmenting | None = None
) -> Cut:
    """Cut a dialog into segments by the rule of this module.

    :func:`fidm.ground` takes another function of this form as ``segmenter``.
    """
    rule = segmenting or Segmenting()
    segments: list[Segment] = []
    kinds: list[str] = []
    own: list[int] = []
    opened: list[str] = []
    waiting: list[str] = []
    told: set[str] = set()

    def close(why: str, reached: tuple[str, ...] = ()) -> None:
        if own:
            segments.append(_segment(len(segments) + 1, transcript, own, tuple(opened), why, reached))
            own.clear()
            opened.clear()

    for i, turn in enumerate(transcript.turns):
        if turn.role == "participant":
            kinds.append("")
            if turn.text:
                if not own:
                    opened += waiting
                    waiting = []
                own.append(i)
            if any(mark.kind == "event" for mark in turn.marks) and "event" in rule.closes:
                close("event")
        elif turn.role == "assessor":
            kind, named = classify(turn, vocabulary, spec, bool(segments or own))
            phase = named if kind == "request" else ""
            kinds.append(kind)
            if kind in rule.closes:
                close(kind, (named,) if kind == "moved" and named else ())
            if phase:
                close(kind)
                waiting.append(phase)
                told.add(phase)
        else:
            kinds.append("")
    close("end")
    return Cut(tuple(segments), frozenset(told), tuple(kinds))


def _segment(
    number: int,
    transcript: Transcript,
    own: Sequence[int],
    opened: tuple[str, ...],
    why: str,
    reached: tuple[str, ...],
) -> Segment:
    texts, starts, place = [], [], 0
    for i in own:
        starts.append(place)
        texts.append(_kept(transcript.turns[i]))
        place += len(texts[-1]) + 1
    dialog = tuple(range(own[0], own[-1] + 1))
    return Segment(number, "\n".join(texts), tuple(own), tuple(starts), dialog, opened, why, reached)


def _kept(turn: Turn) -> str:
    """What a turn says in the end: words marked as taken back are blanked, so that places stay."""
    if not turn.marks:
        return turn.text
    letters = list(turn.text)
    for mark in turn.marks:
        if mark.kind == "retraced":
            letters[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(letters)


def classify(turn: Turn, vocabulary: Vocabulary, spec: TaskSpec, begun: bool) -> tuple[Kind, str]:
    """Return what a turn of the assessor does; of a request, the phase it opens; of a move, where it led."""
    if any(mark.kind == "event" for mark in turn.marks):
        return "event", ""
    key = (turn.text, begun)
    if key not in vocabulary.assessed:  # assessors use the same few sentences over and over
        vocabulary.assessed[key] = _classify(turn.text, vocabulary, spec, begun)
    found: tuple[Kind, str] = vocabulary.assessed[key]
    return found


def _classify(said_text: str, vocabulary: Vocabulary, spec: TaskSpec, begun: bool) -> tuple[Kind, str]:
    language = vocabulary.language
    text = language.normal(said_text)
    said = language.assessor
    if begun and vocabulary.says(text, said["request"]):
        phase = _phase_named(text, vocabulary, spec)
        if phase:
            return "request", phase
    if vocabulary.says(text, said["instruction"]):
        return "instruction", ""
    if vocabulary.says(text, said["not_yet"]):
        return "prompt", ""
    if vocabulary.says(text, said["moved"]):
        return "moved", _place_reached(text, vocabulary)
    if vocabulary.says(text, said["prompt"]) or text.rstrip().endswith(("?", "？")):
        return "prompt", ""
    return "other", ""


def _place_reached(text: str, vocabulary: Vocabulary) -> str:
    """The one place where an assessor says that the figure is now: "okay, you're at the meat. And then?"."""
    places: set[str] = set()
    sentence: list[Token] = []
    for token in (*vocabulary.tokens(text), Token(STOP, "", len(text), len(text))):
        sentence.append(token)
        if token.kind in (STOP, QUESTION):
            if not any(word.kind in ("NOT", "ASK", "IF", QUESTION) for word in sentence):
                places |= {str(word.value) for word in sentence if word.kind == "PLACE"}
            sentence = []
    place = next(iter(places), "")
    return place if len(places) == 1 and "|" not in place else ""


def _phase_named(text: str, vocabulary: Vocabulary, spec: TaskSpec) -> str:
    """The latest phase whose targets, or whose finish, a text names; empty for the first phase."""
    tokens = vocabulary.tokens(text)
    places = {str(token.value) for token in tokens if token.kind == "PLACE"}
    pays = any(token.kind == "PAY" for token in tokens) or FINISH in places
    for number in range(len(spec.phases) - 1, 0, -1):
        phase = spec.phases[number]
        if places & set(phase.targets):
            return phase.name
        if pays and not phase.targets and spec.finish is not None:
            return phase.name
    return ""


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts as a character, a turn and a pause.

    Parameters
    ----------
    fillers : bool
        Whether fillers such as *uhm* count as characters.
    retracings : bool
        Whether words that were taken back or repeated count as characters.
    punctuation : bool
        Whether punctuation counts as characters.
    pause_above_s : float
        Silences up to this long are no pauses.
    untimed_pause_s : float
        How long a pause mark without a time, such as ``(.)``, lasts.
    after_assessor : bool
        Whether the silence between the assessor's words and the participant's next ones counts.
    duration : {"speech", "turns"}
        Whether pauses inside utterances are taken out of the duration.
    turns : {"participant", "both"}
        Whose turns are counted.
    """

    fillers: bool = True
    retracings: bool = True
    punctuation: bool = False
    pause_above_s: float = 0.25
    untimed_pause_s: float = 0.3
    after_assessor: bool = True
    duration: Literal["speech", "turns"] = "speech"
    turns: Literal["participant", "both"] = "participant"

    def __post_init__(self) -> None:
        if not (self.pause_above_s >= 0 and self.untimed_pause_s >= 0):
            raise GroundingError("pause_above_s and untimed_pause_s must be 0 or more.")
        if self.duration not in ("speech", "turns") or self.turns not in ("participant", "both"):
            raise GroundingError("duration is 'speech' or 'turns'; turns is 'participant' or 'both'.")


@dataclass(frozen=True, slots=True)
class Effort:
    """The four channels of one segment; None where they cannot be known."""

    # When its first word began and its last one ended.
    start_s: float | None
    end_s: float | None
    duration_s: float | None  # how long the participant spoke
    n_characters: int  # how much was said
    n_turns: int  # in how many turns
    pause_s: float | None  # how long nobody spoke


def measure(
    transcript: Transcript, dialog: Sequence[int], counting: Counting, fillers: frozenset[str] = frozenset()
) -> Effort:
    """Measure what a stretch of dialog cost the participant.

    ``dialog`` has the turns of the segment, from the participant's first to their last; ``fillers`` are words
    that are fillers in this language, for formats that do not mark them.
    """
    everybody = [transcript.turns[i] for i in dialog]
    turns = [turn for turn in everybody if turn.role != "other"]
    own = [turn for turn in turns if turn.role == "participant"]
    characters = sum(count_characters(turn, counting, fillers) for turn in own)
    floor = "".join("p" if turn.role == "participant" else "a" for turn in turns if turn.text)
    runs = [letter for i, letter in enumerate(floor) if not i or floor[i - 1] != letter]
    n_turns = len(runs) if counting.turns == "both" else runs.count("p")
    if not own or not all(turn.is_timed for turn in own):
        return Effort(None, None, None, characters, n_turns, None)
    inside = [_silences_inside(turn, counting) for turn in own]
    lengths = [turn.end_s - turn.start_s for turn in own]
    duration = math.fsum(lengths) - (math.fsum(inside) if counting.duration == "speech" else 0.0)
    marked = math.fsum(gap for gap, turn in zip(inside, own, strict=True) if not _timed_words(turn))
    pause = marked + _silences_between(everybody, counting)
    if any(turn.text and not turn.is_timed for turn in everybody):  # somebody spoke, and nobody knows when
        pause = math.nan
    start, end = min(turn.start_s for turn in own), max(turn.end_s for turn in own)
    lasted = round(duration, 6) if duration > 1e-9 else None
    return Effort(start, end, lasted, characters, n_turns, None if math.isnan(pause) else round(pause, 6))


def count_characters(turn: Turn, counting: Counting, fillers: frozenset[str] = frozenset()) -> int:
    """Count the characters of a turn that count."""
    text = turn.text
    dropped: set[int] = set()
    for mark in turn.marks:
        if (mark.kind == "filler" and not counting.fillers) or (
            mark.kind == "retraced" and not counting.retracings
        ):
            dropped.update(range(mark.start, mark.end))
    if not counting.fillers and fillers:
        dropped |= _filler_places(text, fillers)
    kept = [letter for i, letter in enumerate(text) if i not in dropped] if dropped else text
    return sum(_counts(letter, counting.punctuation) for letter in kept)


def count_letters(text: str) -> int:
    """Return how many characters of a text count where nothing else is said: letters, digits, marks.

    Examples
    --------
    >>> count_letters("Left, 2 squares!")
    12
    """
    return sum(_counts(letter, False) for letter in text)


def script_of(text: str) -> str:
    """Return the script that most letters of a text are in; empty where it has no letter.

    Chinese characters are those of Japanese where a tenth as many kana or more stand beside them.

    Examples
    --------
    >>> script_of("À gauche, 2 cases"), script_of("向左行兩格 okay"), script_of("2")
    ('Latin', 'Han', '')
    """
    found: Counter[str] = Counter()
    for letter, n in Counter(unicodedata.normalize("NFKC", text)).items():
        name = unicodedata.name(letter, "").split(" ")[0]
        if name and name != "MODIFIER" and unicodedata.category(letter)[0] == "L":
            found[SCRIPTS.get(name, name.capitalize())] += n
    if 10 * found["Kana"] >= found["Han"] and found["Kana"]:
        found["Kana"] += found.pop("Han", 0)
    return min(found, key=lambda script: (-found[script], script)) if found else ""


@lru_cache(maxsize=4096)
def _counts(letter: str, punctuation: bool) -> bool:
    kind = unicodedata.category(letter)[0]
    return kind in "LNM" or (punctuation and kind in "PS")


def _filler_places(text: str, fillers: frozenset[str]) -> set[int]:
    """The places of fillers: whole words, or runs of letters where words are not spaced."""
    found: set[int] = set()
    small, i = "".join(low if len(low := a.lower()) == 1 else a for a in text), 0
    longest = max(map(len, fillers), default=0)
    while i < len(small):
        for length in range(min(longest, len(small) - i), 0, -1):
            piece = small[i : i + length]
            if piece in fillers and (not piece.isascii() or _stands_alone(small, i, i + length)):
                found.update(range(i, i + length))
                i += length - 1
                break
        i += 1
    return found


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isascii() and before.isalnum()) and not (after.isascii() and after.isalnum())


def _silences_inside(turn: Turn, counting: Counting) -> float:
    """The pauses within one utterance: from its words' times, else from its marks."""
    if _timed_words(turn):
        gaps = [later[0] - one[1] for one, later in pairwise(_spoken(turn, counting))]
    else:
        gaps = [
            counting.untimed_pause_s if math.isnan(mark.seconds) else mark.seconds
            for mark in turn.marks
            if mark.kind == "pause"
        ]
    total = math.fsum(gap for gap in gaps if gap > counting.pause_above_s + 1e-9)
    return min(total, max(0.0, turn.end_s - turn.start_s))


def _timed_words(turn: Turn) -> list[Word]:
    return [word for word in turn.words if not (math.isnan(word.start_s) or math.isnan(word.end_s))]


def _spoken(turn: Turn, counting: Counting) -> list[tuple[float, float]]:
    """When a turn is speech: cut at the silences that the times of its words show."""
    found: list[tuple[float, float]] = []
    start, until = turn.start_s, -math.inf
    is_known = True  # a word without a time may lie anywhere in the gap, so there is no silence to be sure of
    for word in turn.words if turn.role == "participant" else ():
        if math.isnan(word.start_s) or math.isnan(word.end_s):
            is_known = False
            continue
        if is_known and until > -math.inf and word.start_s - until > counting.pause_above_s + 1e-9:
            found.append((start, until))
            start = word.start_s
        until, is_known = max(until, min(word.end_s, turn.end_s)), True
    return [*found, (start, max(start, turn.end_s))]


def _silences_between(turns: Sequence[Turn], counting: Counting) -> float:
    """The silences in which nobody speaks, between utterances and where words' times show them inside."""
    gaps: list[float] = []
    spoken = [
        (start, end, turn.role) for turn in turns if turn.is_timed for start, end in _spoken(turn, counting)
    ]
    said_until, speaker = -math.inf, ""
    for start, end, role in sorted(spoken):
        is_answer = speaker != "participant" and role == "participant"
        if said_until > -math.inf and (counting.after_assessor or not is_answer):
            gaps.append(start - said_until)
        if end >= said_until:
            said_until, speaker = end, role
    return math.fsum(gap for gap in gaps if gap > counting.pause_above_s + 1e-9)
