"""A dialog becomes segments: runs of participant talk, each closed by the assessor moving the figure.

The rule: a segment begins with the participant's first words and goes on, through further turns and the
assessor's prompts, until the assessor moves the figure ("okay, I've moved you"), something happens (an
event mark), the assessor asks for something new (the bakery request) or gives an instruction. Prompts such
as "and then?" do not close it. Which words do which is data, in ``[assessor]`` of the language file;
``Segmenting.closes`` says what closes.

A request that names what a later phase is about opens that phase: "please also get some bread" opens the
phase whose target is the bakery, "you can go and pay now" the one that ends at the till.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from fidm.errors import GroundingError
from fidm.grounding.base import Segment
from fidm.grounding.route.program import FINISH
from fidm.grounding.rules.language import Vocabulary
from fidm.talk import Transcript, Turn
from fidm.tasks.spec import TaskSpec

Kind = Literal["moved", "event", "request", "instruction", "prompt", "other"]
KINDS: tuple[Kind, ...] = ("moved", "event", "request", "instruction", "prompt", "other")


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
    """A dialog cut into segments.

    Parameters
    ----------
    segments : tuple of Segment
        In the order they were spoken.
    told : frozenset of str
        The phases somebody opens in so many words.
    kinds : tuple of str
        What each turn of the assessor does; empty for others.
    """

    segments: tuple[Segment, ...]
    told: frozenset[str]
    kinds: tuple[str, ...]


Segmenter = Callable[[Transcript, Vocabulary, TaskSpec, Segmenting], Cut]
"""Another rule: anything that cuts a dialog into segments."""


def cut_dialog(
    transcript: Transcript, vocabulary: Vocabulary, spec: TaskSpec, segmenting: Segmenting | None = None
) -> Cut:
    """Cut a dialog into segments by the rule of this module.

    :func:`fidm.ground` takes another function of this form as ``segmenter``.

    Parameters
    ----------
    transcript : Transcript
        The dialog.
    vocabulary : Vocabulary
        The words of its language for this task.
    spec : TaskSpec
        The task.
    segmenting : Segmenting, optional
        What ends a segment.
    """
    rule = segmenting or Segmenting()
    segments: list[Segment] = []
    kinds: list[str] = []
    own: list[int] = []
    opened: list[str] = []
    waiting: list[str] = []
    told: set[str] = set()

    def close(why: str) -> None:
        if own:
            segments.append(_segment(len(segments) + 1, transcript, own, tuple(opened), why))
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
            kind, phase = classify(turn, vocabulary, spec, bool(segments or own))
            kinds.append(kind)
            if kind in rule.closes:
                close(kind)
            if phase:
                close(kind)
                waiting.append(phase)
                told.add(phase)
        else:
            kinds.append("")
    close("end")
    return Cut(tuple(segments), frozenset(told), tuple(kinds))


def _segment(
    number: int, transcript: Transcript, own: Sequence[int], opened: tuple[str, ...], why: str
) -> Segment:
    texts, starts, place = [], [], 0
    for i in own:
        starts.append(place)
        texts.append(_kept(transcript.turns[i]))
        place += len(texts[-1]) + 1
    dialog = tuple(range(own[0], own[-1] + 1))
    return Segment(number, "\n".join(texts), tuple(own), tuple(starts), dialog, opened, why)


def _kept(turn: Turn) -> str:
    """What a turn says in the end: words marked as taken back are blanked, so that places stay."""
    letters = list(turn.text)
    for mark in turn.marks:
        if mark.kind == "retraced":
            letters[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(letters)


def classify(turn: Turn, vocabulary: Vocabulary, spec: TaskSpec, begun: bool) -> tuple[Kind, str]:
    """Return what a turn of the assessor does, and the phase it opens, if any."""
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
        return "moved", ""
    if vocabulary.says(text, said["prompt"]) or text.rstrip().endswith(("?", "？")):
        return "prompt", ""
    return "other", ""


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
