"""Many dialogs become a cohort: positions, doubts, draws, languages, and nothing that depends on order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.errors import FidmError, GroundingError
from fidm.grounding.base import Context, Proposal, Reading, Segment
from fidm.grounding.dialog import Reader, Settings, Weighing, follow_path
from fidm.grounding.ground import MOVE_SCHEMA, SEGMENT_SCHEMA, Grounded, ground
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.grounding.rules.romanised import is_romanised
from fidm.grounding.segment import Counting, Segmenting, script_of
from fidm.io.talk import Mark, Transcript, Turn
from fidm.simulate.talk import Talks
from fidm.tasks.stack import TaskSet, follow

TASK = fidm.load_task("grocery")
TERRAIN = Terrain(TASK)
ARRAYS = (
    "state",
    "action",
    "weight",
    "segment",
    "inferred",
    "end_state",
    "step_offsets",
    "segment_offsets",
    "episode_offsets",
)


class Stub:
    """A grounder that takes what is said for a program; ``|`` sets readings apart, ``!`` is a doubt."""

    name = "stub"

    def __init__(self) -> None:
        self.seen: list[Context] = []
        self.closed = 0

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": "stub"}

    def ground(self, segment: Segment, context: Context) -> Proposal:
        self.seen.append(context)
        text = segment.text.replace("\n", ";")
        doubts = ("odd",) if text.endswith("!") else ()
        weighed = []
        for part in text.rstrip("!").split("|"):
            said, _, p = part.partition("@")
            weighed.append((parse_program(said, context.terrain.places), float(p or 1)))
        return Proposal.of(weighed, doubts, "stub")

    def close(self) -> None:
        self.closed += 1


def talk(*said: str, who: str = "P1", episode: str = "1", language: str = "en") -> Transcript:
    """Each is one segment of the participant, closed by the assessor."""
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor"))
    return Transcript(who, tuple(turns), language=language, episode=episode)


def stubbed(*transcripts: Transcript, task: fidm.TaskModel = TASK, **more: Any) -> Grounded:
    return ground(transcripts, task, by=Stub(), **more)


def moves(grounded: Grounded) -> str:
    return " ".join(TASK.actions[action] if action >= 0 else "OUT" for action in grounded.cohort.action)


def same(one: fidm.Cohort, other: fidm.Cohort) -> None:
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("participants", "episodes", "segments"):
        assert getattr(one, name).equals(getattr(other, name)), name


@pytest.fixture(scope="module")
def talks() -> Talks:
    return fidm.simulate_talks(TASK, 12, seed=11, language="en")


# ------------------------------------------------------------------ positions and context


def test_each_segment_is_read_where_the_one_before_ended() -> None:
    stub = Stub()
    said = ("MOVE left 1", "MOVE up 3", "NONE", "TURN left; MOVE ahead 2", "BUY meat")
    found = ground([talk(*said)], TASK, by=stub)
    position = TERRAIN.start()
    for text, context in zip(said, stub.seen, strict=True):
        assert context.position == position
        position = replay(parse_program(text, TERRAIN.places), TERRAIN, position).end
    assert found.cohort.end_state.tolist() == [position.state]
    assert found.cohort.state[0] == TASK.start


def test_the_best_reading_leads_on() -> None:
    stub = Stub()
    ground([talk("MOVE left 1@0.4|GOTO meat@0.6", "BUY meat")], TASK, by=stub)
    cell = TERRAIN.cell(stub.seen[1].position.state)
    assert cell in TERRAIN.reach["meat"]


def test_the_context_holds_the_turns_before_the_phases_and_the_language() -> None:
    stub = Stub()
    turns = [
        Turn("INV", 0, 1, "your task is to buy vegetables", "assessor"),
        Turn("PAR", 1, 2, "NONE", "participant"),
        Turn("INV", 2, 3, "please also get some bread", "assessor"),
        Turn("PAR", 3, 4, "NONE", "participant"),
    ]
    ground(
        [Transcript("P1", tuple(turns), language="en-GB")], TASK, by=stub, settings=Settings(context_turns=2)
    )
    assert [context.preceding for context in stub.seen] == [
        (("assessor", turns[0].text),),
        (("participant", "NONE"), ("assessor", turns[2].text)),
    ]
    assert all(context.told == {"bakery"} for context in stub.seen)
    assert all(context.language == "en" for context in stub.seen)
    assert [TERRAIN.phase(context.position.state) for context in stub.seen] == [0, 1]
    assert "bread" not in repr(stub.seen)


def test_a_request_opens_the_phase_in_the_moves_too() -> None:
    shopping = "BUY vegetables; BUY meat; BUY egg_tofu; BUY seasoning"
    turns = [
        Turn("PAR", 0, 1, shopping, "participant"),
        Turn("INV", 1, 2, "okay, moved", "assessor"),
        Turn("PAR", 2, 3, "GOTO START", "participant"),
        Turn("INV", 3, 4, "please also get some bread", "assessor"),
        Turn("PAR", 4, 5, "BUY bakery", "participant"),
    ]
    found = stubbed(Transcript("P1", tuple(turns), language="en"))
    phases = [TERRAIN.phase(int(state)) for state in found.cohort.state]
    by_segment = {
        k: {p for p, s in zip(phases, found.cohort.segment, strict=True) if s == k} for k in range(3)
    }
    assert by_segment == {0: {0}, 1: {0}, 2: {1}}
    assert found.checks.height == 0
    assert found.segments["opened"].to_list() == ["", "", "bakery"]


# ------------------------------------------------------------------ doubt


def test_moves_in_doubt_count_nothing_until_it_is_known_where_the_figure_is() -> None:
    """One more square up says little; from wherever that leads, the way to the seasoning is the same."""
    said = ("MOVE left 1", "MOVE up 2!", "MOVE up 1", "GOTO seasoning", "MOVE left 1")
    found = stubbed(talk(*said))
    assert found.segments["status"].to_list() == ["confident", "needs_review", *["confident"] * 3]
    weight = [sorted(set(found.cohort.weight[found.cohort.segment == k].tolist())) for k in range(5)]
    assert weight == [[1.0], [0.0], [0.0], [1.0], [1.0]]


@pytest.mark.parametrize("anchor", ["GOTO meat", "BUY meat", "PAY", "LEAVE", "ALONG meat", "BACK meat"])
def test_a_named_place_makes_the_position_certain(anchor: str) -> None:
    found = stubbed(talk("MOVE left 1!", anchor, "GOTO START"))
    assert found.segments["status"].to_list() == ["needs_review", "confident", "confident"]
    assert set(found.cohort.weight[found.cohort.segment == 2].tolist()) == {1.0}


def test_a_straight_way_to_a_named_place_makes_the_position_certain() -> None:
    found = stubbed(talk("MOVE left 1!", "MOVE left to EXIT", "MOVE right 1"))
    assert found.segments["status"].to_list() == ["needs_review", "confident", "confident"]
    assert found.cohort.weight[found.cohort.segment == 2].tolist() == [1.0]


def test_a_way_to_a_named_place_counts_from_where_all_ways_come_together() -> None:
    found = stubbed(talk("MOVE left 1; MOVE up 3", "MOVE left 2!", "BUY seasoning; MOVE left 1"))
    weight = found.cohort.weight.tolist()
    assert found.segments["status"].to_list() == ["confident", "needs_review", "confident"]
    assert weight[:6] == [*[1.0] * 4, *[0.0] * 2]
    assert weight[-8:] == [1.0] * 8
    assert weight == [*weight[:4], *sorted(weight[4:])]


@pytest.mark.parametrize("doubted", ["BUY vegetables!", "NONE!"])
def test_after_a_doubtful_completion_nothing_counts_until_it_is_known_what_is_completed(doubted: str) -> None:
    """Where somebody is says nothing of what they have, and so of what any later action is worth."""
    found = stubbed(talk(doubted, "GOTO meat", "MOVE down 1"))
    assert found.segments["status"].to_list()[-1] == "confident"
    assert set(found.cohort.weight.tolist()) == {0.0}
    turns = [
        *talk(doubted, "GOTO EXIT").turns,
        Turn("INV", 20, 21, "please also get some bread", "assessor"),
        Turn("PAR", 21, 22, "MOVE right 1", "participant"),
    ]
    opened = stubbed(Transcript("P1", tuple(turns), language="en"))
    assert opened.cohort.weight[-1] == 1.0  # the assessor takes what came before for done


def test_what_is_named_in_doubt_makes_nothing_certain() -> None:
    found = stubbed(talk("MOVE left 1!", "GOTO meat!", "MOVE down 1"))
    assert set(found.cohort.weight.tolist()) == {0.0}


def test_the_map_raises_doubts_no_grounder_can_argue_away() -> None:
    found = stubbed(talk("MOVE up 3"))
    assert found.segments.row(0, named=True)["status"] == "needs_review"
    assert found.segments["doubts"].to_list() == ["blocked"]
    assert stubbed(talk("MOVE up 3!")).segments["doubts"].to_list() == ["odd blocked"]


def test_moves_in_doubt_may_count_something() -> None:
    said = ("MOVE left 1; MOVE up 3", "MOVE left 2!", "MOVE left 1")
    found = stubbed(talk(*said), settings=Settings(weighing=Weighing(doubtful=0.25)))
    assert found.cohort.weight.tolist() == [*[1.0] * 4, *[0.25] * 3]
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(GroundingError):
            Weighing(doubtful=wrong)


# ------------------------------------------------------------------ talk


def test_talk_about_nothing_is_left_out_of_the_cohort_or_kept() -> None:
    said = talk("NONE", "MOVE left 1", "NONE", "MOVE up 1")
    plain = stubbed(said)
    assert plain.segments["status"].to_list() == ["no_route", "confident", "no_route", "confident"]
    assert plain.cohort.segments["segment"].to_list() == ["2", "4"]
    assert plain.cohort.segment.tolist() == [0, 1]
    kept = stubbed(said, settings=Settings(weighing=Weighing(keep_talk=True)))
    assert kept.cohort.segments["segment"].to_list() == ["1", "2", "3", "4"]
    assert kept.cohort.segments["n_moves"].to_list() == [0, 1, 0, 1]
    assert kept.cohort.segment.tolist() == [1, 3]
    assert kept.checks.height == plain.checks.height == 0


def test_turns_without_moves_are_segments_and_talk_in_doubt_waits_for_review() -> None:
    said = talk("NONE!", "MOVE left 1; TURN right", "TURN left", "TURN left!", "MOVE up 1!")
    found = stubbed(said)
    assert found.cohort.segments["segment"].to_list() == ["2", "3", "5"]
    assert found.cohort.segments["n_moves"].to_list() == [1, 0, 1]
    assert found.segments["status"][0] == found.segments["status"][3] == "needs_review"
    kept = stubbed(said, settings=Settings(weighing=Weighing(keep_talk=True)))
    assert kept.cohort.segments.height == 5


def test_pauses_that_a_file_cannot_show_are_not_observed() -> None:
    """Stored as 0, they would measure the format of the file."""
    said = talk("MOVE left 1", "MOVE up 1")
    for name in ("csv", "elan", "srt"):
        assert stubbed(replace(said, format=name)).cohort.segments["pause_s"].to_list() == [None, None]
    for name in ("", "chat", "whisper", "jsonl", "another"):
        assert stubbed(replace(said, format=name)).cohort.segments["pause_s"].to_list() == [0.0, 0.0]


def test_a_file_that_shows_a_pause_between_utterances_shows_that_there_is_none_elsewhere() -> None:
    """If only segments without a pause went missing, everybody left would seem to pause all the time."""
    first, *others = talk("MOVE left 1", "MOVE up 1").turns
    more = Turn("PAR", first.end_s + 0.4, first.end_s + 0.45, "TURN left", "participant")
    found = stubbed(Transcript("P1", (first, more, *others), format="csv", language="en"))
    assert found.cohort.segments["pause_s"].to_list() == [0.4, 0.0]


def test_settings_reach_the_segments() -> None:
    turns = [Turn("PAR", 0, 1, "NONE", "participant"), Turn("INV", 2, 3, "and then?", "assessor"),
             Turn("PAR", 4, 5, "MOVE left 1", "participant")]  # fmt: skip
    plain = stubbed(Transcript("P1", tuple(turns), language="en"))
    assert plain.cohort.segments.select("duration_s", "n_turns", "pause_s").rows() == [(2.0, 2, 2.0)]
    closing = Settings(segmenting=Segmenting(("prompt",)), counting=Counting(punctuation=True))
    assert stubbed(Transcript("P1", tuple(turns), language="en"), settings=closing).segments.height == 2


# ------------------------------------------------------------------ draws


def alternatives(n: int = 40) -> list[Transcript]:
    said = ("MOVE left 1@0.7|NONE@0.3", "GOTO meat@0.5|GOTO seasoning@0.3|BUY vegetables@0.2", "MOVE up 1")
    return [talk(*said, who=f"P{i:03d}") for i in range(n)]


def test_same_seed_same_draws() -> None:
    found = stubbed(*alternatives(8))
    first, again, other = (list(found.draws(3, seed=seed)) for seed in (4, 4, 5))
    for one, two in zip(first, again, strict=True):
        same(one, two)
    assert any(not np.array_equal(a.action, b.action) for a, b in zip(first, other, strict=True))
    assert not np.array_equal(first[0].action, first[1].action)
    longer = list(found.draws(5, seed=4))
    same(first[2], longer[2])


def test_draws_follow_the_probabilities() -> None:
    found = stubbed(*alternatives(40))
    left = meat = total = 0
    for cohort in found.draws(25, seed=1):
        for j in range(len(cohort)):
            own = cohort.action[cohort.step_offsets[j] : cohort.step_offsets[j + 1]]
            segments = cohort.segments["segment"][
                int(cohort.segment_offsets[j]) : int(cohort.segment_offsets[j + 1])
            ]
            total += 1
            left += "1" in segments.to_list()
            last = TERRAIN.cell(int(cohort.state[cohort.step_offsets[j + 1] - 1])) if len(own) else -1
            meat += last in TERRAIN.reach["meat"]
    assert total == 1000
    for share, p in ((left / total, 0.7), (meat / total, 0.5)):
        assert abs(share - p) < 4.5 * math.sqrt(p * (1 - p) / total)


def test_in_a_draw_every_move_counts_and_follows_the_task() -> None:
    found = stubbed(talk("MOVE left 1!", "MOVE up 2@0.5|MOVE left 9@0.5!"))
    assert set(found.cohort.weight.tolist()) == {0.0}
    for cohort in found.draws(4, seed=0):
        assert set(cohort.weight.tolist()) == {1.0}
        assert cohort.participants.equals(found.cohort.participants)
        assert not follow(TaskSet.of(TASK), cohort).fault.any()


def test_draws_of_sure_readings_are_the_cohort_itself() -> None:
    found = stubbed(talk("MOVE left 1", "GOTO meat"), talk("NONE", "MOVE left 1", who="P2"))
    for cohort in found.draws(2, seed=3):
        same(cohort, found.cohort)


def test_people_added_or_shuffled_change_nobodys_draws() -> None:
    people = alternatives(6)
    one = list(stubbed(*people).draws(2, seed=9))
    other = list(stubbed(*people[::-1], talk("MOVE left 1", who="Q")).draws(2, seed=9))
    for a, b in zip(one, other, strict=True):
        for item in people:
            assert own(a, item.participant) == own(b, item.participant)


def own(cohort: fidm.Cohort, who: str) -> tuple[Any, ...]:
    """Everything a cohort holds about one person."""
    j = cohort.ids.to_list().index(who)
    found: list[Any] = []
    for e in range(int(cohort.episode_offsets[j]), int(cohort.episode_offsets[j + 1])):
        steps = slice(int(cohort.step_offsets[e]), int(cohort.step_offsets[e + 1]))
        rows = cohort.segments[int(cohort.segment_offsets[e]) : int(cohort.segment_offsets[e + 1])]
        found.append(
            [
                getattr(cohort, name)[steps].tolist()
                for name in ("state", "action", "weight", "segment", "inferred")
            ]
        )
        found.append((cohort.episodes.row(e), int(cohort.end_state[e]), rows.rows()))
    return tuple(map(repr, found))


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (-1, 1), (1, -1)])
def test_draws_need_a_number_and_a_seed(n: int, seed: int) -> None:
    with pytest.raises(GroundingError):
        next(stubbed(talk("MOVE left 1")).draws(n, seed=seed))


def test_readings_are_added_up_sorted_and_sum_to_one() -> None:
    proposal = Stub().ground(
        Segment(1, "MOVE up 1@1|MOVE up 2@2|MOVE up 1@3", (0,), (0,), (0,)), Context(TERRAIN, Position(0))
    )
    assert [(str(r.program[0]), round(r.probability, 3)) for r in proposal.readings] == [
        ("MOVE up 1", 0.667),
        ("MOVE up 2", 0.333),
    ]
    assert Proposal.of([]).readings == (Reading(Proposal().program),)


# ------------------------------------------------------------------ people


def test_shuffled_people_change_nothing(talks: Talks) -> None:
    one = ground(talks.transcripts, TASK)
    order = np.random.default_rng(0).permutation(len(talks.transcripts))
    other = ground([talks.transcripts[int(i)] for i in order], TASK)
    assert other.cohort.ids.to_list() == [talks.transcripts[int(i)].participant for i in order]
    for who in one.cohort.ids.to_list():
        assert own(one.cohort, who) == own(other.cohort, who)
    keys = ["participant", "episode", "segment"]
    assert one.segments.sort(keys).equals(other.segments.sort(keys))


def test_several_episodes_stay_with_their_person() -> None:
    items = [
        talk("MOVE left 1", who="A", episode="2"),
        talk("MOVE left 2", who="B"),
        talk("MOVE left 3", who="A", episode="1"),
        talk("MOVE left 4", who="B", episode="x"),
    ]
    found = stubbed(*items)
    assert found.cohort.ids.to_list() == ["A", "B"]
    assert found.cohort.episodes["episode"].to_list() == ["2", "1", "1", "x"]
    assert np.diff(found.cohort.step_offsets).tolist() == [1, 3, 2, 4]
    assert found.cohort.episode_offsets.tolist() == [0, 2, 4]
    assert found.segments["episode"].to_list() == ["2", "1", "1", "x"]
    assert all(found.cohort.state[found.cohort.step_offsets[:-1]] == TASK.start)


def test_two_dialogs_of_one_episode_are_refused() -> None:
    with pytest.raises(GroundingError, match="'P1', episode '1'"):
        stubbed(talk("NONE"), talk("MOVE left 1"))


def test_an_empty_dialog_is_a_person_without_moves() -> None:
    silent = Transcript("P0", (), language="en")
    assessor = Transcript("P2", (Turn("INV", 0, 1, "hello", "assessor"),), language="en")
    found = stubbed(silent, talk("MOVE left 1"), assessor)
    assert found.cohort.ids.to_list() == ["P0", "P1", "P2"]
    assert np.diff(found.cohort.step_offsets).tolist() == [0, 1, 0]
    assert sorted(found.checks["participant"].to_list()) == ["P0", "P2"]
    assert set(found.checks["problem"].to_list()) == {"No moves were read."}
    assert len(next(iter(found.draws(1, seed=0)))) == 3


def test_no_dialogs_at_all() -> None:
    found = stubbed()
    assert len(found.cohort) == found.segments.height == found.moves.height == 0
    assert "0 dialogs" in repr(found)


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_change_nothing(talks: Talks, workers: int) -> None:
    one, many = (ground(talks.transcripts, TASK, workers=n) for n in (1, workers))
    same(one.cohort, many.cohort)
    assert one.segments.equals(many.segments)
    assert one.moves.equals(many.moves)
    assert one.checks.equals(many.checks)
    assert one.provenance == many.provenance


def test_same_dialogs_same_numbers(talks: Talks) -> None:
    one, again = ground(talks.transcripts, TASK), ground(talks.transcripts, TASK)
    same(one.cohort, again.cohort)
    assert one.segments.equals(again.segments)
    assert one.moves.equals(again.moves)


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_is_reported(workers: int) -> None:
    seen: list[tuple[str, int, int]] = []
    people = [talk("MOVE left 1", who=f"P{i}") for i in range(5)]
    stubbed(*people, workers=workers, on_progress=lambda *said: seen.append(said))
    assert seen == [("grounding", i, 5) for i in range(6)]


def test_an_error_of_the_grounder_reaches_the_caller() -> None:
    for workers in (1, 3):
        with pytest.raises(GroundingError, match="no known name"):
            stubbed(talk("FLY", who="A"), talk("NONE", who="B"), workers=workers)


# ------------------------------------------------------------------ languages


@pytest.mark.parametrize(
    ("said", "own_code", "language", "expected"),
    [
        ("go left", "", "", "en"),
        ("向左行", "", "", "yue"),
        ("\U00020b9f\U00020b9f", "", "", "yue"),
        ("\U00020000\U00020000", "", "", "yue"),
        ("向左 ok", "", "", "yue"),
        ("I go to the 菜 place", "", "", "en"),
        ("", "", "", "en"),
        ("go left", "yue", "", "yue"),
        ("向左行", "en", "", "en"),
        ("go left", "eng", "", "en"),
        ("go left", "en_US", "", "en"),
        ("go left", "EN-GB", "", "en"),
        ("向左行", "zh-HK", "", "yue"),
        ("向左行", "Cantonese", "", "yue"),
        ("往左走两格，买这个", "", "", "zh"),
        ("往左走兩格，買那個的", "", "", "zh"),
        ("往左走两格", "zh", "", "zh"),
        ("往左走兩格", "zh_TW", "", "zh"),
        ("往左走两格", "cmn", "", "zh"),
        ("往左走两格", "Mandarin", "", "zh"),
        ("我喺門口行上去攞菜", "zh", "", "yue"),
        ("我喺門口行上去攞菜", "zh", "zh", "zh"),
        ("zyun2 zo2 haang4 loeng5 gaak3", "", "", "und-Latn"),
        ("zyun2 zo2 haang4 loeng5 gaak3", "zh-HK", "", "yue-Latn"),
        ("wang3 zuo3 zou3 liang3 ge2", "cmn", "", "zh-Latn"),
        ("wǎng zuǒ zǒu liǎng gé", "zh", "", "zh-Latn"),
        ("zyun zo haang loeng gaak", "yue-Latn", "", "yue-Latn"),
        ("go left", "und-Latn", "", "und-Latn"),
        ("go left two squares, to A1, OK", "yue", "", "yue"),
        ("轉左 zyun2 zo2 行兩格", "yue", "", "yue"),
        ("向左行", "en", "yue", "yue"),
    ],
)
def test_the_language_of_a_dialog(said: str, own_code: str, language: str, expected: str) -> None:
    reader = Reader(TERRAIN, Settings(language=language))
    turns = (Turn("INV", 0, 1, "hello there how are you", "assessor"), Turn("PAR", 1, 2, said, "participant"))
    assert reader.language_of(Transcript("P1", turns, language=own_code)) == expected


def test_dialogs_of_several_languages_are_read_together() -> None:
    english = Transcript("E", (Turn("P", 0, 1, "go left one square", "participant"),))
    cantonese = Transcript("C", (Turn("P", 0, 1, "向左行一格", "participant"),))
    mandarin = Transcript("M", (Turn("P", 0, 1, "往左走一格", "participant"),))
    found = ground([english, cantonese, mandarin], TASK)
    assert [dialog.language for dialog in found.dialogs] == ["en", "yue", "zh"]
    assert moves(found) == "W W W"


JYUTPING = "zyun2 zo2 haang4 loeng5 gaak3"


def romanised(who: str, text: str = JYUTPING, **about: str) -> Transcript:
    asked = Turn("INV", 0, 1, "跟住呢", "assessor")
    return Transcript(who, (asked, Turn("PAR-jyut", 1, 2, text, "participant")), **about)


def test_romanised_chinese_stops_with_every_dialog_named_and_nothing_quoted() -> None:
    stub = Stub()
    wrong = [
        romanised("A", source="talks/A.eaf", language="yue"),
        romanised("B", "wǎng zuǒ zǒu liǎng gé", language="zh"),
        romanised("C", "zyun zo haang loeng gaak", language="yue-Latn"),
        romanised("D"),
    ]
    with pytest.raises(GroundingError, match="4 of 5 dialogs are in romanised Chinese") as caught:
        ground([*wrong, talk("MOVE left 1")], TASK, by=stub)
    assert stub.seen == []
    said = str(caught.value)
    assert "characters are needed" in said
    assert [p.where for p in caught.value.problems] == [
        "talks/A.eaf, speaker 'PAR-jyut'",
        "B, speaker 'PAR-jyut'",
        "C, speaker 'PAR-jyut'",
        "D, speaker 'PAR-jyut'",
    ]
    assert not any(word in said for word in (*JYUTPING.split(), "wǎng", "zyun"))


@pytest.mark.parametrize("language", ["yue", "zh"])
def test_a_language_that_is_said_does_not_let_romanised_chinese_through(language: str) -> None:
    with pytest.raises(GroundingError, match="1 of 1 dialogs are in romanised"):
        ground([romanised("A")], TASK, settings=Settings(language=language))


def test_a_romanised_tier_of_somebody_else_is_no_hindrance() -> None:
    turns = (
        Turn("PAR", 0, 1, "向左行一格", "participant"),
        Turn("PAR-jyut", 0, 1, "hoeng3 zo2 haang4 jat1 gaak3", "other"),
    )
    found = ground([Transcript("A", turns, language="yue")], TASK)
    assert moves(found) == "W"


@pytest.mark.parametrize(
    "text", ["OK", "go to A1, then B2 and E3", "turn left, then up two", "no no, go to the bakery please"]
)
@pytest.mark.parametrize("language", ["", "en", "yue", "zh"])
def test_english_in_a_chinese_dialog_is_not_taken_for_romanised(text: str, language: str) -> None:
    ground([Transcript("A", (Turn("PAR", 0, 1, text, "participant"),), language=language)], TASK)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("déjà allé à gauche, près de là", ""),
        ("běž doleva, pak nahoru, čtyři kroky", "cs"),
        ("ej pa kreisi, pēc tam augšā, četri soļi", "lv"),
    ],
)
def test_marks_of_other_languages_are_no_tones(text: str, language: str) -> None:
    said = (Turn("PAR", 0, 1, text, "participant"),)
    assert not is_romanised(Transcript("A", said), language)


def test_a_long_drawn_out_word_takes_no_time() -> None:
    said = (Turn("PAR", 0, 1, "ā" * 5_000 + "q", "participant"),)
    assert not is_romanised(Transcript("A", said), "yue")


def test_an_unknown_language_is_an_error_before_anything_is_read() -> None:
    stub = Stub()
    with pytest.raises(GroundingError, match="1 of 2 dialogs"):
        ground([talk("MOVE left 1"), talk("MOVE left 1", who="P2", language="tlh")], TASK, by=stub)
    assert stub.seen == []


# ------------------------------------------------------------------ tables


def test_every_move_leads_back_to_its_words() -> None:
    turns = (
        Turn("PAR", 0, 1, "um, go left one square", "participant"),
        Turn("INV", 1, 2, "and then?", "assessor"),
        Turn("PAR", 2, 3, "then up two squares", "participant"),
        Turn("INV", 3, 4, "okay, moved", "assessor"),
    )
    found = ground([Transcript("P1", turns)], TASK)
    assert found.moves.columns == list(MOVE_SCHEMA)
    rows = list(found.moves.iter_rows(named=True))
    assert [(row["step"], row["action"], row["instruction"]) for row in rows] == [
        (1, "W", "MOVE left 1"),
        (2, "N", "MOVE up 2"),
        (3, "N", "MOVE up 2"),
    ]
    words = [turns[row["turn"] - 1].text[row["word_start"] : row["word_end"]] for row in rows]
    assert "left one square" in words[0]
    assert words[1] == words[2]
    assert "up two squares" in words[1]


def test_words_that_reach_over_two_turns_end_with_the_first(talks: Talks) -> None:
    found = ground(talks.transcripts, TASK)
    texts = {
        (item.participant, i + 1): turn.text
        for item in talks.transcripts
        for i, turn in enumerate(item.turns)
    }
    for row in found.moves.iter_rows(named=True):
        text = texts[row["participant"], row["turn"]]
        assert 0 <= row["word_start"] < row["word_end"] <= len(text)
        assert 0 < row["probability"] <= 1


def test_tables_agree_with_the_cohort(talks: Talks) -> None:
    found = ground(talks.transcripts, TASK)
    assert found.segments.columns == list(SEGMENT_SCHEMA)
    assert found.segments["n_actions"].sum() == found.moves.height == found.cohort.n_steps
    assert found.segments["n_inferred"].sum() == found.cohort.inferred.sum()
    assert found.checks.height == 0
    shares = found.shares()
    assert sum(share for name, share in shares.items() if name != "inferred_moves") == pytest.approx(1)
    assert 0 < shares["inferred_moves"] < 1
    assert found.provenance["task_fingerprint"] == TASK.fingerprint
    assert found.provenance["counting"]["pause_above_s"] == 0.25


def test_leaving_has_the_name_of_the_exit_in_the_table() -> None:
    found = stubbed(talk("GOTO EXIT; LEAVE"))
    assert found.moves["action"].to_list()[-1] == "OUT"
    assert found.cohort.action[-1] == -1


def test_following_a_choice_of_programs(talks: Talks) -> None:
    dialog = stubbed(talk("MOVE left 1", "MOVE up 1")).dialogs[0]
    nothing = parse_program("NONE", ())
    path = follow_path(dialog, TERRAIN, Weighing(), chosen=[nothing, parse_program("MOVE left 2", ())])
    assert (path.kept, path.n_moves, path.segment) == ([1], [2], [0, 0])


def test_what_is_said_shows_in_no_repr(talks: Talks) -> None:
    canary = "purplehippopotamus"
    turns = (
        Turn("PAR", 0, 1, f"go left one square {canary}", "participant"),
        Turn("INV", 1, 2, f"and then? {canary}", "assessor"),
        Turn("PAR", 2, 3, f"{canary} {canary} {canary}", "participant"),
    )
    found = ground([Transcript("P1", turns)], TASK)
    dialog = found.dialogs[0]
    shown = [
        found,
        dialog,
        found.cohort,
        found.segments.rows(),
        found.moves.rows(),
        found.provenance,
        dialog.segments,
    ]
    shown += [found.terrain, found.settings, found.checks.rows(), *turns, dialog.transcript]
    shown += list(itertools.chain.from_iterable((one.segment, one.proposal) for one in dialog.segments))
    assert canary not in "".join(map(repr, shown)) + "".join(map(str, shown))
    assert repr(found).startswith("Grounded(1 dialogs, 1 segments")


# ------------------------------------------------------------------ other tasks


def test_a_request_in_a_task_that_waits_for_nobody_breaks_no_rule() -> None:
    """In the town phases change by themselves; an assessor who names one must not make traces illegal."""
    town = fidm.load_task("errands")
    turns = [
        Turn("PAR", 0, 1, "BUY bank; BUY doctor; BUY pharmacy; BUY market", "participant"),
        Turn("INV", 1, 2, "okay, moved", "assessor"),
        Turn("PAR", 2, 3, "MOVE left 1; MOVE right 1", "participant"),
        Turn("INV", 3, 4, "could you also visit my house please", "assessor"),
        Turn("PAR", 4, 5, "BUY home", "participant"),
    ]
    found = stubbed(Transcript("P1", tuple(turns), language="en"), task=town)
    assert found.segments["opened"].to_list() == ["", "", "home"]
    assert found.checks.rows() == []
    assert found.cohort.end_state.tolist() == [town.n_states - 1]


def test_a_task_without_a_map_is_refused() -> None:
    bare = fidm.TaskModel.from_arrays([[-1, 1], [-1, -1]], [[0, 0], [0, 0]], gamma=0.9, tau=0.1)
    with pytest.raises(FidmError, match="no map"):
        stubbed(talk("NONE"), task=bare)


def test_the_grounder_is_left_open_for_the_next_call() -> None:
    stub = Stub()
    ground([talk("NONE")], TASK, by=stub)
    assert stub.closed == 0


def test_cohorts_keep_their_types() -> None:
    found = stubbed(talk("MOVE left 1"))
    assert found.cohort.segments.schema["n_moves"] == pl.Int32
    assert found.cohort.segments.schema["duration_s"] == pl.Float64
    untimed = Transcript("P1", (Turn("P", math.nan, math.nan, "NONE", "participant"),), language="en")
    kept = stubbed(untimed, settings=Settings(weighing=Weighing(keep_talk=True)))
    assert kept.cohort.segments.row(0, named=True)["duration_s"] is None
    assert kept.cohort.segments.row(0, named=True)["n_characters"] == 4


def test_dialogs_are_measured_in_the_way_in_which_all_of_them_can_be():
    """A table of utterances shows no pause inside them, so durations include those of all others, too."""

    def said(who: str, format: str) -> Transcript:
        pause = (Mark("pause", 5, 5, 1.5),)
        turns = (
            Turn("PAR", 0.0, 4.0, "go left one square", role="participant", marks=pause),
            Turn("PAR", 5.0, 7.0, "go up one square", role="participant"),
        )
        return Transcript(who, turns, format=format)

    task = fidm.load_task("grocery")
    alone = fidm.ground([said("A", "chat")], task).cohort.segments
    mixed = fidm.ground([said("A", "chat"), said("B", "csv")], task).cohort
    assert alone.select("duration_s", "pause_s").rows() == [(4.5, 2.5)]
    assert mixed.segments.select("duration_s", "pause_s").rows() == [(6.0, 2.5), (6.0, None)]
    assert "pauses_included" in mixed.segments.columns
    assert "pauses_included" not in alone.columns


ENGLISH, CANTONESE = "go left one square and up one square", "向左行一格，再向上行一格"


def spoken(who: str, text: str, language: str = "en") -> Transcript:
    return Transcript(who, (Turn("PAR", 0.0, 4.0, text, role="participant"),), language=language)


def characters(*dialogs: Transcript) -> list[int | None]:
    return list(fidm.ground(dialogs, TASK).cohort.segments["n_characters"].to_list())


def test_characters_of_two_scripts_are_not_put_on_one_scale() -> None:
    """The same words are 11 Chinese characters or 29 letters: only those of most participants are kept."""
    a, b, c = spoken("A", ENGLISH), spoken("B", ENGLISH), spoken("C", CANTONESE, "yue")
    alone = fidm.ground([a, b], TASK).cohort.segments
    mixed = fidm.ground([a, c, b], TASK)
    assert alone.columns == mixed.cohort.segments.columns[: alone.width]
    assert mixed.cohort.segments["n_characters"].to_list() == [29, None, 29]
    assert mixed.cohort.segments["script"].to_list() == ["Latin", "Han", "Latin"]
    assert mixed.cohort.segments["n_characters_any_script"].to_list() == [29, 11, 29]
    assert mixed.segments["n_characters"].to_list() == [29, 11, 29]  # what reviewers see
    (drawn,) = mixed.draws(1, seed=1)
    assert drawn.segments["n_characters"].to_list() == [29, None, 29]
    assert characters(c, replace(c, participant="D")) == [11, 11]


def test_the_script_of_most_participants_is_kept_and_that_with_more_characters_where_they_are_as_many():
    a, c = spoken("A", ENGLISH), spoken("C", CANTONESE, "yue")
    assert characters(a, c) == characters(a, replace(a, episode="2"), c)[1:] == [29, None]
    assert characters(a, c, replace(c, participant="D")) == [None, 11, 11]
    switched = spoken("B", f"{CANTONESE} okay", "yue")  # by most of their characters
    assert characters(a, switched, c) == [None, 15, 11]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Élan, naïve, ﬁve ｌｅｆｔ", "Latin"),
        ("向左行兩格 okay 々", "Han"),
        ("㐂𠮷", "Han"),
        ("左に二マス進んで、肉売場を右", "Kana"),  # Japanese is written in both
        ("왼쪽으로 두 칸", "Hangul"),
        ("налево два квадрата", "Cyrillic"),
        ("2 3 …!", ""),
        ("", ""),
    ],
)
def test_the_script_is_that_of_the_text(text: str, script: str) -> None:
    assert script_of(text) == script
