"""What counts as duration, character, turn and pause, and what each setting changes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fidm.errors import GroundingError
from fidm.grounding.rules.language import load_language
from fidm.grounding.segment import Counting, Effort, count_characters, measure
from fidm.io.talk import Mark, Transcript, Turn, Word

NAN = math.nan
DEFAULT = Counting()


def par(start: float, end: float, text: str = "left", **more: Any) -> Turn:
    return Turn("PAR", start, end, text, "participant", **more)


def inv(start: float, end: float, text: str = "and then?") -> Turn:
    return Turn("INV", start, end, text, "assessor")


def cost(*turns: Turn, **settings: Any) -> Effort:
    return measure(Transcript("P1", turns), range(len(turns)), Counting(**settings))


def letters(
    text: str, marks: tuple[Mark, ...] = (), fillers: frozenset[str] = frozenset(), **settings: Any
) -> int:
    return count_characters(par(0, 1, text, marks=marks), Counting(**settings), fillers)


# ------------------------------------------------------------------ characters


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("", 0),
        ("go left", 6),
        ("  go\tleft \n", 6),
        ("go left, then 12 squares!", 19),
        ("don't", 4),
        ("向左行三格", 5),
        ("向左，行三格。", 5),
        ("去「菜」檔…⋯", 3),
        ("３格", 2),
        ("\U00020b9f\U0002070e", 2),
        ("\U00020b9f係", 2),
        ("café", 4),
        ("cafe\u0301", 5),
        ("नि", 2),
        ("½ Ⅷ ²", 3),
        ("a+b=c 5$ ♥", 4),
        ("\u200b\u200d\ufeff", 0),
    ],
)
def test_characters_are_code_points_of_letters_and_digits(text: str, n: int) -> None:
    assert letters(text) == n


def test_punctuation_and_symbols_count_if_asked() -> None:
    assert letters("go left, then $5!", punctuation=True) - letters("go left, then $5!") == 3
    assert letters("向左，行。", punctuation=True) == 5
    assert letters(" \n", punctuation=True) == 0


def test_marked_fillers_count_or_not() -> None:
    marks = (Mark("filler", 0, 2),)
    assert letters("um left", marks) == 6
    assert letters("um left", marks, fillers=frozenset()) == 6
    assert count_characters(par(0, 1, "um left", marks=marks), Counting(fillers=False)) == 4


def test_marked_retracings_count_or_not() -> None:
    marks = (Mark("retraced", 0, 4),)
    assert letters("left right", marks) == 9
    assert letters("left right", marks, retracings=False) == 5


def test_a_filler_taken_back_is_not_taken_out_twice() -> None:
    turn = par(0, 1, "um left", marks=(Mark("filler", 0, 2), Mark("retraced", 0, 2)))
    assert count_characters(turn, Counting(fillers=False, retracings=False)) == 4
    assert count_characters(turn, Counting(retracings=False)) == 4
    assert count_characters(turn, DEFAULT) == 6


def test_other_marks_change_no_character() -> None:
    turn = par(0, 1, "left now", marks=(Mark("pause", 4, 4, 1.0), Mark("event", 0, 4)))
    assert count_characters(turn, Counting(fillers=False, retracings=False)) == 7


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Um, left", 4),
        ("left um", 4),
        ("umbrella", 8),
        ("album um", 5),
        ("um1 um", 3),
        ("UHM left", 4),
        ("erm er", 0),
    ],
)
def test_unmarked_fillers_of_a_spaced_language_are_whole_words(text: str, n: int) -> None:
    fillers = load_language("en").fillers
    assert count_characters(par(0, 1, text), Counting(fillers=False), fillers) == n
    assert count_characters(par(0, 1, text), DEFAULT, fillers) == letters(text)


@pytest.mark.parametrize(
    ("text", "n"),
    [("嗯，向左", 2), ("呃向左", 2), ("嗯嗯 向左", 2), ("um 向左", 2), ("album向左", 7)],
)
def test_unmarked_fillers_of_an_unspaced_language(text: str, n: int) -> None:
    assert count_characters(par(0, 1, text), Counting(fillers=False), load_language("yue").fillers) == n


@pytest.mark.parametrize("text", ["唔好向左", "我唔去菜檔", "唔該"])
def test_the_cantonese_not_is_no_filler(text: str) -> None:
    assert count_characters(par(0, 1, text), Counting(fillers=False), load_language("yue").fillers) == len(
        text
    )


def test_letters_that_grow_in_small_print_do_not_shift_fillers() -> None:
    assert count_characters(par(0, 1, "İİ um left"), Counting(fillers=False), frozenset({"um"})) == 6


# ------------------------------------------------------------------ turns


def test_turns_are_how_often_the_participant_has_the_floor() -> None:
    talk = (par(0, 1), par(1.1, 2), inv(2, 3), par(3, 4), inv(4, 5), inv(5, 6), par(6, 7), par(7, 8))
    assert cost(*talk).n_turns == 3
    assert cost(*talk, turns="both").n_turns == 5


def test_turns_without_words_are_no_turns() -> None:
    assert cost(par(0, 1), inv(1, 2, ""), par(2, 3)).n_turns == 1
    assert cost(par(0, 1), inv(1, 2), par(2, 3, ""), inv(3, 4), par(4, 5), turns="both").n_turns == 3


def test_others_do_not_take_the_floor() -> None:
    other = Turn("VIS", 1, 2, "hello", "other")
    assert cost(par(0, 1), other, par(2, 3)).n_turns == 1


# ------------------------------------------------------------------ times


def test_one_utterance_has_its_length_and_no_pause() -> None:
    assert cost(par(2, 4.5)) == Effort(2, 4.5, 2.5, 4, 1, 0.0)


def test_silence_between_utterances_is_pause() -> None:
    found = cost(par(0, 1), par(2.5, 3))
    assert (found.duration_s, found.pause_s) == (1.5, 1.5)


@pytest.mark.parametrize(("gap", "pause"), [(0.1, 0.0), (0.25, 0.0), (0.251, 0.251), (0.3, 0.3)])
def test_short_silences_are_no_pause(gap: float, pause: float) -> None:
    for base in (0.0, 1.1, 57.3):
        assert cost(par(base, base + 0.7), par(base + 0.7 + gap, base + 2)).pause_s == pytest.approx(pause)


def test_the_threshold_is_a_setting() -> None:
    talk = (par(0, 1), par(1.4, 2), par(3, 4))
    assert cost(*talk).pause_s == pytest.approx(1.4)
    assert cost(*talk, pause_above_s=0.5).pause_s == pytest.approx(1.0)
    assert cost(*talk, pause_above_s=0).pause_s == pytest.approx(1.4)
    assert cost(*talk, pause_above_s=2).pause_s == 0


def test_the_assessor_speaking_is_no_silence() -> None:
    found = cost(par(0, 1), inv(1.5, 3), par(4, 5))
    assert (found.duration_s, found.pause_s) == (2, 1.5)


def test_silence_after_the_assessor_counts_or_not() -> None:
    talk = (par(0, 1), inv(2, 3), par(5, 6), par(7, 8))
    assert cost(*talk).pause_s == 1 + 2 + 1
    assert cost(*talk, after_assessor=False).pause_s == 1 + 1


def test_overlapping_speakers_leave_no_silence() -> None:
    assert cost(par(0, 3), inv(2, 5), par(5.5, 6)).pause_s == 0.5
    assert cost(par(0, 5), inv(1, 2), par(6, 7)).pause_s == 1
    assert cost(par(0, 1), inv(0.5, 6), par(2, 3), par(5, 7)).pause_s == 0


def test_pause_marks_are_taken_out_of_the_utterance() -> None:
    marks = (Mark("pause", 2, 2, 1.0), Mark("pause", 4, 4), Mark("pause", 4, 4, 0.2))
    found = cost(par(0, 5, marks=marks))
    assert (found.duration_s, found.pause_s) == (pytest.approx(3.7), pytest.approx(1.3))
    longer = cost(par(0, 5, marks=marks), untimed_pause_s=0.8)
    assert (longer.duration_s, longer.pause_s) == (pytest.approx(3.2), pytest.approx(1.8))
    none = cost(par(0, 5, marks=marks), untimed_pause_s=0.1)
    assert (none.duration_s, none.pause_s) == (pytest.approx(4), pytest.approx(1))


def test_duration_may_keep_the_pauses_inside() -> None:
    found = cost(par(0, 5, marks=(Mark("pause", 2, 2, 1.0),)), duration="turns")
    assert (found.duration_s, found.pause_s) == (5, 1)


def test_marks_cannot_last_longer_than_the_utterance() -> None:
    found = cost(par(0, 2, marks=(Mark("pause", 2, 2, 7.0),)), par(2, 3))
    assert (found.duration_s, found.pause_s) == (1, 2)


def test_an_utterance_of_silence_has_no_duration() -> None:
    assert cost(par(0, 2, marks=(Mark("pause", 2, 2, 7.0),))).duration_s is None
    assert cost(par(2, 2)).duration_s is None


def words(*times: tuple[float, float]) -> tuple[Word, ...]:
    return tuple(Word(2 * i, 2 * i + 1, start, end) for i, (start, end) in enumerate(times))


def test_times_of_words_show_the_pauses_inside() -> None:
    turn = par(0, 5, "a b c d", words=words((0, 1), (1.2, 2), (3, 4), (4.2, 5)))
    found = cost(turn)
    assert (found.duration_s, found.pause_s) == (4, 1)


def test_times_of_words_come_before_pause_marks() -> None:
    turn = par(0, 4, "a b", words=words((0, 1), (3, 4)), marks=(Mark("pause", 1, 1, 0.9),))
    assert cost(turn).pause_s == 2


def test_there_is_no_silence_across_a_word_without_times() -> None:
    turn = par(0, 5, "a b c", words=words((0, 1), (NAN, NAN), (3, 4)))
    assert cost(turn).pause_s == 0
    marked = par(0, 5, "a", words=words((NAN, NAN)), marks=(Mark("pause", 1, 1, 0.9),))
    assert cost(marked).pause_s == pytest.approx(0.9)


def test_words_that_overlap_leave_no_silence() -> None:
    turn = par(0, 6, "a b c", words=words((0, 5), (1, 2), (4, 6)))
    assert cost(turn).pause_s == 0


def test_a_pause_inside_an_utterance_in_which_the_assessor_speaks_is_no_silence() -> None:
    """Silence is when nobody speaks, also where times of words show it."""
    turn = par(0, 5, "a b", words=words((0, 1), (4, 5)))
    assert cost(turn, inv(1, 4), par(5, 6)).pause_s == 0


def test_turns_of_one_participant_without_times_leave_times_unknown() -> None:
    found = cost(par(0, 1), par(NAN, NAN), inv(2, 3), par(4, 5))
    assert found == Effort(None, None, None, 12, 2, None)
    assert cost(par(0, NAN)) == Effort(None, None, None, 4, 1, None)


def test_with_an_assessor_without_times_the_pause_is_not_known() -> None:
    found = cost(par(0, 1), inv(NAN, NAN), par(1.1, 2))
    assert (found.duration_s, found.n_turns, found.pause_s) == (pytest.approx(1.9), 2, None)


def test_only_the_given_turns_are_measured() -> None:
    transcript = Transcript("P1", (inv(0, 1), par(2, 3), inv(4, 5), par(6, 7), inv(8, 9), par(10, 11)))
    found = measure(transcript, (1, 2, 3), DEFAULT)
    assert (found.start_s, found.end_s, found.duration_s, found.pause_s) == (2, 7, 2, 2)


def test_nobody_speaking_costs_nothing() -> None:
    assert cost() == Effort(None, None, None, 0, 0, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pause_above_s": -0.1},
        {"pause_above_s": NAN},
        {"untimed_pause_s": -1},
        {"untimed_pause_s": NAN},
        {"duration": "words"},
        {"turns": "assessor"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(GroundingError):
        Counting(**wrong)
