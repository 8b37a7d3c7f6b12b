"""Words learned from reviewed segments: what is proposed, what blocks it, and that nothing is ever in force by itself."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

import fidm
from fidm.errors import DataError, GroundingError
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.review.learn import FILE, WordsLearned, propose_words, write_proposals
from fidm.grounding.review.trail import Decision
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import replay
from fidm.grounding.rules.overlay import load_overlay, parse_overlay
from fidm.grounding.settings import RulesTable
from fidm.io.talk import Transcript, Turn

TASK = fidm.load_task("grocery")
Judged = Sequence[tuple[str, str, str | None]]
"""Who said what, and what a reviewer wrote: ``ok`` accepts, None leaves it."""


def talks(said: Judged, language: str) -> Grounded:
    """Each participant says their sentences one after the other, and is moved after each."""
    turns: dict[str, list[Turn]] = {}
    for who, text, _ in said:
        own = turns.setdefault(who, [])
        t = 5.0 * len(own)
        own.append(Turn("PAR", t, t + 2, text, "participant"))
        own.append(Turn("INV", t + 3, t + 4, "okay, I've moved you", "assessor"))
    return ground([Transcript(who, tuple(own), language=language) for who, own in turns.items()], TASK)


def reviewed(said: Judged, language: str = "en") -> tuple[Grounded, list[Decision]]:
    grounded, decisions = talks(said, language), list[Decision]()
    terrain = grounded.terrain
    for dialog in grounded.dialogs:
        own = [meant for who, _, meant in said if who == dialog.transcript.participant]
        for i, meant in enumerate(own):
            if meant is None:
                continue
            segment = review_dialog(dialog, decisions, terrain)[i]
            kind = "accept" if meant == "ok" else "edit"
            program = parse_program(meant, terrain.places) if kind == "edit" else ()
            edit = (program, replay(program, terrain, segment.start, told=dialog.told)) if program else None
            decisions.append(decide(dialog, segment, terrain, reviewer="Ann", kind=kind, edit=edit))
    return grounded, decisions


def learn(said: Judged, language: str = "en", *, least: int = 2, words: str = "") -> WordsLearned:
    return propose_words(*reviewed(said, language), rules=RulesTable(words=words), least=least)


def told(found: WordsLearned) -> list[tuple[str, str, str]]:
    return [(one.language, one.phrase, one.means) for one in found.proposals]


ENGLISH = [
    ("P1", "go to the wibbles and buy some", "GOTO meat; BUY meat"),
    ("P1", "okay, I take the vegetables", "ok"),
    ("P2", "I want the wibbles, take them", "BUY meat"),
    ("P2", "to the wibbles then", None),
    ("P3", "hmm, let me see", "ok"),
]


def test_an_unknown_word_for_a_place_is_proposed_with_its_counts() -> None:
    found = learn(ENGLISH)
    assert told(found) == [("en", "wibbles", "meat")]
    (one,) = found.proposals
    assert one.segments == (("P1", "1", 1), ("P2", "1", 1))
    assert (one.n_participants, one.against) == (2, ())
    assert (one.n_right, one.n_wrong, one.n_open) == (2, 0, 1)
    assert (found.n_reviewed, found.n_misread) == (4, 2)
    assert "wibbles" not in repr(found)
    assert "wibbles" not in str(found.to_dict())


CANTONESE = [
    ("P1", "我想去鱷魚嗰度", "GOTO meat"),
    ("P2", "去鱷魚嗰邊,買鱷魚", "GOTO meat; BUY meat"),
    ("P3", "我要買鱷魚", "BUY meat"),
    ("P3", "跟住去鱷魚嗰度", None),
]


def test_where_words_are_not_written_apart_they_are_found_by_their_characters() -> None:
    found = learn(CANTONESE, "yue")
    assert told(found) == [("yue", "鱷魚", "meat")]
    (one,) = found.proposals
    assert (len(one.segments), one.n_participants, one.n_right, one.n_wrong, one.n_open) == (3, 3, 3, 0, 1)


def test_characters_that_mean_little_alone_may_be_part_of_a_word() -> None:
    found = learn([("P1", "我想去型架嗰度", "GOTO meat"), ("P2", "我要買型架", "BUY meat")], "yue")
    assert told(found) == [("yue", "型架", "meat")]


def test_a_direction_is_proposed_as_a_class_of_words() -> None:
    said = [
        ("P1", "go one square left", "ok"),
        ("P1", "go skywards two squares", "MOVE up 2"),
        ("P2", "go one square left", "ok"),
        ("P2", "skywards three squares", "MOVE up 3"),
    ]
    assert told(learn(said)) == [("en", "skywards", "UP")]


def test_reviewed_segments_with_the_word_and_another_meaning_block_it() -> None:
    against = [
        ("P4", "go to the vegetables, my wibbles", "ok"),
        ("P5", "go to the drinks, wibbles", "ok"),
    ]
    (free,) = learn([*ENGLISH, against[0]]).proposals
    assert (free.means, free.n_right, free.n_wrong) == ("meat", 2, 1)
    blocked = learn([*ENGLISH, *against])
    assert blocked.n_misread == 2
    assert told(blocked) == []  # two would become right, and two wrong


def test_what_is_against_a_word_is_listed() -> None:
    found = learn([*ENGLISH, ("P3", "wibbles, what a day", "ok")])
    assert [one.against for one in found.proposals] == [(("P3", "1", 2),)]


def test_one_segment_teaches_nothing_unless_asked_to() -> None:
    said = [one for one in ENGLISH if one[0] != "P2"]
    assert told(learn(said)) == []
    assert told(learn(said, least=1)) == [("en", "wibbles", "meat")]


def test_rejected_segments_teach_nothing() -> None:
    grounded, decisions = reviewed(ENGLISH)
    dialog = grounded.dialogs[1]
    segment = review_dialog(dialog, decisions, grounded.terrain)[0]
    decisions.append(decide(dialog, segment, grounded.terrain, reviewer="Ann", kind="reject"))
    assert told(propose_words(grounded, decisions)) == []


def test_of_words_that_always_go_together_the_whole_is_proposed() -> None:
    said = [
        ("P1", "go to the smoked wibbles", "GOTO meat"),
        ("P2", "take the smoked wibbles", "BUY meat"),
    ]
    assert told(learn(said)) == [("en", "smoked wibbles", "meat")]
    assert told(learn([*said, ("P3", "take some wibbles", "BUY meat")])) == [("en", "wibbles", "meat")]


def test_words_in_force_are_not_proposed_again(tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text('format = 1\n[en.places]\nmeat = ["wibbles"]\n', "utf-8")
    found = learn(ENGLISH, words=str(tmp_path / "words.toml"))
    assert (told(found), found.n_misread) == ([], 0)


def test_the_same_decisions_give_the_same_proposals_in_any_order_of_dialogs() -> None:
    grounded, decisions = reviewed(ENGLISH)
    once = propose_words(grounded, decisions)
    other, again = reviewed(sorted(ENGLISH, key=lambda one: one[0], reverse=True))
    twice = propose_words(other, again)
    assert told(once) == told(twice)
    assert [one.n_right for one in once.proposals] == [one.n_right for one in twice.proposals]


def test_without_reviewed_segments_it_says_what_to_do() -> None:
    with pytest.raises(GroundingError, match="fidm review"):
        propose_words(talks(ENGLISH, "en"), ())
    with pytest.raises(fidm.errors.FidmError, match="least is 0"):
        learn(ENGLISH, least=0)


def test_the_file_is_private_and_nothing_in_it_is_in_force(tmp_path: Path) -> None:
    found = learn(CANTONESE, "yue")
    path = write_proposals(found, tmp_path)
    assert path == tmp_path / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text("utf-8")
    assert load_overlay(path).tables == {}
    accepted = parse_overlay(text.replace("accept = false", "accept = true"))
    assert accepted.tables == {"yue": {"places": {"meat": ("鱷魚",)}}}
    assert "P2 segment 1" in text
    for _, said, _ in CANTONESE:
        assert said not in text


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    found = learn(ENGLISH)
    path = write_proposals(found, tmp_path)
    path.write_text("mine", "utf-8")
    with pytest.raises(DataError, match="replace=True"):
        write_proposals(found, tmp_path)
    assert path.read_text("utf-8") == "mine"
    write_proposals(found, tmp_path, replace=True)
    (tmp_path / "grounding.toml").write_text(f'[rules]\nwords = "{FILE}"\n', "utf-8")
    with pytest.raises(DataError, match=r"grounding\.toml names"):
        write_proposals(found, tmp_path, replace=True)
    assert write_proposals(found, tmp_path, path=tmp_path / "more.toml").exists()
    with pytest.raises(DataError, match="outside the study"):
        write_proposals(found, tmp_path, path=tmp_path.parent / "more.toml")
