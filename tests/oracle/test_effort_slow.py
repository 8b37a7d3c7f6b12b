"""Effort against a loop that looks at every millisecond and asks who is speaking."""

from __future__ import annotations

import itertools
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from fidm.grounding.segment import Counting, measure
from fidm.io.talk import Role, Transcript, Turn, Word

Piece = tuple[Role, int, int, str, tuple[tuple[int, int], ...]]
"""Role, first and last millisecond, text, and the milliseconds of words where they are known."""

TEXTS = st.text(st.sampled_from("ab1,。 向左\U00020b9f?"), min_size=1, max_size=8).filter(str.strip)


@st.composite
def dialogs(draw: st.DrawFn, *, overlaps: bool, has_words: bool) -> list[Piece]:
    """Turns in whole milliseconds; those of one speaker never overlap."""
    pieces: list[Piece] = []
    until: dict[str, int] = {"participant": 0, "assessor": 0}
    clock = draw(st.integers(0, 500))
    for number in range(draw(st.integers(1, 7))):
        role: Role = "participant" if number == 0 else draw(st.sampled_from(["assessor", "participant"]))
        back = draw(st.sampled_from([0, 100, 400, 800, 1200, 2000])) if overlaps else 0
        start = max(until[role], clock + draw(st.sampled_from([0, 40, 249, 250, 251, 252, 700])) - back, 0)
        if pieces:
            start = max(start, pieces[-1][1])
        length = draw(st.integers(1, 1500))
        inside: list[tuple[int, int]] = []
        if has_words and role == "participant":
            here = start + draw(st.integers(0, 100))
            for _ in range(draw(st.sampled_from([0, 1, 2, 3, 5]))):
                end = here + draw(st.integers(1, 300))
                inside.append((here, end))
                here = end + draw(st.sampled_from([0, 30, 249, 250, 251, 400, 900]))
            if inside:
                length = max(length, inside[-1][1] - start + draw(st.integers(0, 60)))
        pieces.append((role, start, start + length, draw(TEXTS), tuple(inside)))
        until[role] = start + length
        clock = max(clock, start + length)
    return pieces


def transcript(pieces: list[Piece]) -> Transcript:
    turns = []
    for role, start, end, text, inside in pieces:
        words = tuple(Word(0, len(text), a / 1000, b / 1000) for a, b in inside)
        turns.append(Turn(role[:3], start / 1000, end / 1000, text, role, words=words))
    return Transcript("P1", tuple(turns))


def last_own(pieces: list[Piece]) -> int:
    return max(i for i, piece in enumerate(pieces) if piece[0] == "participant")


def slow(pieces: list[Piece], above_ms: int) -> tuple[int, int, int, int]:
    """Milliseconds of speech, of pause; characters; turns: one look at a time."""
    pieces = pieces[: last_own(pieces) + 1]
    own = [piece for piece in pieces if piece[0] == "participant"]
    first, last = min(piece[1] for piece in own), max(piece[2] for piece in own)
    speech = pause = run = 0
    for now in range(first, last + 1):
        participant = assessor = False
        for role, start, end, _, inside in pieces:
            if not start <= now < end:
                continue
            if role == "assessor":
                assessor = True
                continue
            silent = any(
                word_end <= now < next_start and next_start - word_end > above_ms
                for (_, word_end), (next_start, _) in itertools.pairwise(inside)
            )
            participant = participant or not silent
        speech += participant and now < last
        if participant or assessor or now == last:
            pause += run if run > above_ms else 0
            run = 0
        else:
            run += 1
    characters = 0
    for piece in own:
        for letter in piece[3]:
            characters += unicodedata.category(letter)[0] in ("L", "N", "M")
    turns, holder = 0, ""
    for piece in pieces:
        if piece[0] == "participant" and holder != "participant":
            turns += 1
        holder = piece[0]
    return speech, pause, characters, turns


def agree(pieces: list[Piece], above_ms: int) -> None:
    speech, pause, characters, turns = slow(pieces, above_ms)
    counting = Counting(pause_above_s=above_ms / 1000)
    found = measure(transcript(pieces), range(last_own(pieces) + 1), counting)
    assert abs((found.duration_s or 0.0) - speech / 1000) <= 0.001
    assert found.pause_s is not None
    assert abs(found.pause_s - pause / 1000) <= 0.001
    assert (found.n_characters, found.n_turns) == (characters, turns)


@settings(max_examples=60)
@given(dialogs(overlaps=False, has_words=False), st.sampled_from([0, 250, 251, 500]))
def test_turns_one_after_the_other(pieces: list[Piece], above_ms: int) -> None:
    agree(pieces, above_ms)


@settings(max_examples=60)
@given(dialogs(overlaps=True, has_words=False), st.sampled_from([0, 250, 500]))
def test_speakers_who_talk_at_once(pieces: list[Piece], above_ms: int) -> None:
    agree(pieces, above_ms)


@settings(max_examples=60)
@given(dialogs(overlaps=False, has_words=True), st.sampled_from([0, 250, 500]))
def test_times_of_words(pieces: list[Piece], above_ms: int) -> None:
    agree(pieces, above_ms)


@settings(max_examples=200)
@given(dialogs(overlaps=True, has_words=True), st.sampled_from([250, 500]))
def test_times_of_words_while_the_assessor_talks(pieces: list[Piece], above_ms: int) -> None:
    agree(pieces, above_ms)
