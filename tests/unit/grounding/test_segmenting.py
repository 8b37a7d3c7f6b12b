"""A dialog cut into segments: what closes one, what opens a phase."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.base import Segment
from fidm.grounding.rules.language import Vocabulary, load_language
from fidm.grounding.segment import KINDS, Cut, Segmenting, classify, cut_dialog
from fidm.io.talk import Mark, Role, Transcript, Turn

TASK = fidm.load_task("grocery")
SPEC = TASK.grid.spec
VOCABULARY = {code: Vocabulary(load_language(code), SPEC) for code in ("en", "yue", "zh")}
ROLES: dict[str, Role] = {"P": "participant", "A": "assessor", "O": "other"}

SAID = {
    "en": {
        "go": "left one square",
        "on": "and up two",
        "moved": "okay, I've moved you",
        "prompt": "and then?",
        "bread": "please also get some bread",
        "pay": "you can now go and pay",
        "task": "your task is to buy vegetables",
        "small talk": "hello there",
    },
    "yue": {
        "go": "向左行一格",
        "on": "再上兩格",
        "moved": "好，行咗",
        "prompt": "跟住呢？",
        "bread": "唔該順便買埋麵包",
        "pay": "而家可以去畀錢",
        "task": "你要買菜",
        "small talk": "今日天氣",
    },
    "zh": {
        "go": "往左走一格",
        "on": "再往上两格",
        "moved": "好，走了",
        "prompt": "然后呢？",
        "bread": "请顺便买个面包",
        "pay": "现在可以去付钱了",
        "task": "你要买菜",
        "small talk": "今天天气",
    },
}
both = pytest.mark.parametrize("language", ["en", "yue", "zh"])


def dialog(language: str, *said: str) -> Transcript:
    """Turns such as ``P go``; ``*`` behind one is an event mark."""
    turns = []
    for i, one in enumerate(said):
        who, _, what = one.partition(" ")
        is_event = what.endswith("*")
        text = SAID[language].get(what.rstrip("*"), what.rstrip("*"))
        marks = (Mark("event", len(text), len(text)),) if is_event else ()
        turns.append(Turn(who, float(i), i + 0.5, text, ROLES[who], marks=marks))
    return Transcript("P1", tuple(turns), language=language)


def cut(language: str, *said: str, closes: Sequence[str] | None = None) -> Cut:
    rule = None if closes is None else Segmenting(tuple(closes))
    return cut_dialog(dialog(language, *said), VOCABULARY[language], SPEC, rule)


def shape(found: Cut) -> list[tuple[tuple[int, ...], str]]:
    return [(segment.turns, segment.closed_by) for segment in found.segments]


@both
def test_the_figure_being_moved_closes_a_segment(language: str) -> None:
    found = cut(language, "A task", "P go", "A moved", "P on", "P go", "A moved", "P go")
    assert shape(found) == [((1,), "moved"), ((3, 4), "moved"), ((6,), "end")]
    assert [segment.number for segment in found.segments] == [1, 2, 3]
    assert found.kinds == ("instruction", "", "moved", "", "", "moved", "")
    assert found.told == frozenset()


@both
def test_prompts_and_small_talk_do_not_close(language: str) -> None:
    found = cut(language, "P go", "A prompt", "P on", "A small talk", "P go", "A moved")
    assert shape(found) == [((0, 2, 4), "moved")]
    assert found.segments[0].dialog == (0, 1, 2, 3, 4)
    assert found.kinds == ("", "prompt", "", "other", "", "moved")


@both
def test_prompts_close_if_asked(language: str) -> None:
    found = cut(language, "P go", "A prompt", "P on", "A moved", closes=["moved", "prompt"])
    assert shape(found) == [((0,), "prompt"), ((2,), "moved")]


@both
def test_what_is_not_asked_to_close_does_not(language: str) -> None:
    assert shape(cut(language, "P go", "A moved", "P on", "A task", "P go", closes=[])) == [
        ((0, 2, 4), "end")
    ]
    assert shape(cut(language, "P go", "A small talk", "P on", closes=["other"])) == [
        ((0,), "other"),
        ((2,), "end"),
    ]


@both
def test_an_instruction_closes_and_one_at_the_start_opens_nothing(language: str) -> None:
    found = cut(language, "A task", "A bread", "P go", "A task", "P on")
    assert shape(found) == [((2,), "instruction"), ((4,), "end")]
    assert found.told == frozenset()
    assert found.segments[0].opened == ()


@both
def test_a_request_closes_and_opens_its_phase_for_the_next_segment(language: str) -> None:
    found = cut(language, "P go", "A bread", "P on", "A moved", "P go", "A pay", "P go")
    assert shape(found) == [((0,), "request"), ((2,), "moved"), ((4,), "request"), ((6,), "end")]
    assert [segment.opened for segment in found.segments] == [(), ("bakery",), (), ("checkout",)]
    assert found.told == {"bakery", "checkout"}


@both
def test_a_request_after_the_figure_was_moved_opens_its_phase(language: str) -> None:
    found = cut(language, "P go", "A moved", "A bread", "A prompt", "P on")
    assert [segment.opened for segment in found.segments] == [(), ("bakery",)]


@both
def test_a_request_opens_its_phase_even_if_requests_do_not_close(language: str) -> None:
    found = cut(language, "P go", "A bread", "P on", closes=["moved"])
    assert [segment.opened for segment in found.segments] == [(), ("bakery",)]


@both
def test_a_request_nobody_answers_is_still_told(language: str) -> None:
    found = cut(language, "P go", "A bread")
    assert shape(found) == [((0,), "request")]
    assert found.told == {"bakery"}


@both
def test_two_requests_open_both_phases(language: str) -> None:
    found = cut(language, "P go", "A bread", "A pay", "P on")
    assert found.segments[1].opened == ("bakery", "checkout")


def test_the_example_of_the_documentation_opens_the_checkout() -> None:
    turn = Turn("A", 0, 1, "you can go and pay now", "assessor")
    assert classify(turn, VOCABULARY["en"], SPEC, begun=True) == ("request", "checkout")


@both
def test_asking_for_what_belongs_to_the_first_phase_is_no_request(language: str) -> None:
    text = {"en": "please remember to get the meat", "yue": "唔該記得買肉", "zh": "请记得买肉"}[language]
    kind, phase = classify(Turn("A", 0, 1, text, "assessor"), VOCABULARY[language], SPEC, begun=True)
    assert phase == ""
    assert kind != "request"


@both
def test_an_event_of_the_assessor_closes(language: str) -> None:
    found = cut(language, "P go", "A *", "P on", "A small talk*", "P go")
    assert shape(found) == [((0,), "event"), ((2,), "event"), ((4,), "end")]
    assert found.kinds[1] == found.kinds[3] == "event"


@both
def test_an_event_of_the_participant_closes_after_its_turn(language: str) -> None:
    found = cut(language, "P go", "P on*", "P go", "P *", "P on")
    assert shape(found) == [((0, 1), "event"), ((2,), "event"), ((4,), "end")]


@both
def test_events_need_not_close(language: str) -> None:
    assert shape(cut(language, "P go*", "P on", "A *", "P go", closes=["moved"])) == [((0, 1, 3), "end")]


@both
def test_other_marks_are_no_events(language: str) -> None:
    turn = Turn("P", 0, 1, "left", "participant", marks=(Mark("pause", 1, 1, 1.0), Mark("filler", 0, 2)))
    found = cut_dialog(Transcript("P1", (turn, turn)), VOCABULARY[language], SPEC)
    assert shape(found) == [((0, 1), "end")]


@both
def test_other_speakers_are_ignored(language: str) -> None:
    found = cut(language, "P go", "O moved", "O bread", "O *", "P on", "A moved")
    assert shape(found) == [((0, 4), "moved")]
    assert found.told == frozenset()
    assert found.kinds == ("", "", "", "", "", "moved")
    assert found.segments[0].dialog == (0, 1, 2, 3, 4)


@both
def test_turns_without_words_are_no_part_of_a_segment(language: str) -> None:
    assert shape(cut(language, "P ", "A moved", "P go", "P ", "A moved", "P ")) == [((2,), "moved")]


@both
def test_a_dialog_without_the_participant_has_no_segments(language: str) -> None:
    found = cut(language, "A task", "A moved", "A bread")
    assert found.segments == ()
    assert cut(language).segments == ()


@both
def test_the_text_keeps_every_turn_on_its_line(language: str) -> None:
    segment = cut(language, "P go", "A prompt", "P on", "A moved").segments[0]
    first, second = SAID[language]["go"], SAID[language]["on"]
    assert segment.text == f"{first}\n{second}"
    assert segment.starts == (0, len(first) + 1)
    assert segment.turn_of(0) == (0, 0)
    assert segment.turn_of(len(first) - 1) == (0, len(first) - 1)
    assert segment.turn_of(len(first) + 2) == (2, 1)
    assert first not in repr(segment)
    assert repr(segment) == f"Segment(1, 2 turns, {len(segment.text)} characters)"


def test_untimed_turns_are_cut_alike() -> None:
    plain = dialog("en", "P go", "A moved", "P on")
    untimed = [Turn(t.speaker, math.nan, math.nan, t.text, t.role) for t in plain]
    assert shape(cut_dialog(Transcript("P1", tuple(untimed)), VOCABULARY["en"], SPEC)) == [
        ((0,), "moved"),
        ((2,), "end"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_may_close(kind: str) -> None:
    assert Segmenting((kind,)).closes == (kind,)


def test_other_kinds_may_not_close() -> None:
    with pytest.raises(GroundingError, match="'bell'"):
        Segmenting(("moved", "bell"))


def test_words_count_as_a_whole() -> None:
    """'book' has 'ok' in it, and 'brightly' 'right': neither moves the figure."""
    for text in ("a book", "brightly"):
        turn = Turn("A", 0, 1, text, "assessor")
        assert classify(turn, VOCABULARY["en"], SPEC, begun=True) == ("other", "")


def test_a_single_character_counts_alone() -> None:
    """好 by itself means that the figure was moved; in 好多 it does not."""
    said = {
        text: classify(Turn("A", 0, 1, text, "assessor"), VOCABULARY["yue"], SPEC, True)[0]
        for text in ("好", "好多人", "好，跟住")
    }
    assert said == {"好": "moved", "好多人": "other", "好，跟住": "moved"}


def test_segments_can_be_made_by_hand() -> None:
    assert Segment(1, "a", (0,), (0,), (0,)).turn_of(-3) == (0, -3)


@both
def test_simulated_dialogs_are_cut_as_they_were_made(language: str) -> None:
    talks = fidm.simulate_talks(TASK, 15, seed=3, language=language)
    for transcript, turns in zip(talks.transcripts, talks.turns, strict=True):
        found = cut_dialog(transcript, VOCABULARY[language], SPEC)
        assert [(one.dialog[0], one.dialog[-1]) for one in found.segments] == list(turns)
        assert found.told == {"bakery"}
