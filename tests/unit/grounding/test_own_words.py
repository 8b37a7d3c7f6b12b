"""A study's own words: what a file of them may say, what the rules make of it, and all that is wrong said at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.base import Context, Segment
from fidm.grounding.route.program import write_program
from fidm.grounding.route.replay import Terrain
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.rules.overlay import Overlay, load_overlay, parse_overlay
from fidm.grounding.settings import FILE, read_settings

GROCERY = Terrain(fidm.load_task("grocery"))
OWN = """
format = 1
[en.places]
meat = ["wibbles", "Fnord-bits"]
FINISH = ["the beeper"]
[en.words]
UP = ["skywards"]
[en.compounds]
"hang a wally" = "TURN LEFT"
[en.numbers]
2 = ["a brace"]
[yue.places]
meat = ["鱷魚"]
"""


def read(text: str, own: str = "", *, language: str = "en", heading: str = "left") -> str:
    rules = Rules(words=parse_overlay(own) if own else "")
    context = Context(GROCERY, GROCERY.position(9, 8, heading), language=language)
    return write_program(rules.ground(Segment(1, text, (0,), (0,), (0,)), context).program)


@pytest.mark.parametrize(
    ("text", "language", "meant"),
    [
        ("go to the wibbles and buy some", "en", "GOTO meat; BUY meat"),
        ("take the fnord-bits", "en", "BUY meat"),
        ("go to the beeper", "en", "GOTO FINISH"),
        ("go skywards three squares", "en", "MOVE up 3"),
        ("hang a wally", "en", "TURN left"),
        ("go up a brace", "en", "MOVE up 2"),
        ("我想去鱷魚嗰度", "yue", "GOTO meat"),
        ("我想買wibbles", "yue", "BUY meat"),  # the words of a language that people mix in
    ],
)
def test_the_rules_know_the_words_of_a_study(text: str, language: str, meant: str) -> None:
    assert read(text, OWN, language=language) == meant
    assert read(text, language=language) != meant


def test_they_go_before_those_of_language_and_task() -> None:
    assert read("take the milk", 'format = 1\n[en.places]\nmeat = ["milk"]') == "BUY meat"
    assert read("go up two squares", 'format = 1\n[en.words]\nDOWN = ["up"]') == "MOVE down 2"
    assert read("take the dairy", 'format = 1\n[en.words]\nSAY = ["dairy"]') != "BUY dairy"


PROPOSED = """
format = 1
[[proposed]]
language = "en"
phrase = "wibbles"
means = "meat"
accept = {}
[[proposed]]
language = "en"
phrase = "louie"
means = "TURN LEFT"
accept = {}
[[proposed]]
language = "en"
phrase = "brace"
means = "2"
"""


def test_a_proposal_is_read_once_it_is_accepted() -> None:
    found = parse_overlay(PROPOSED.format("true", "false"))
    assert found.tables == {"en": {"places": {"meat": ("wibbles",)}}}
    both = parse_overlay(PROPOSED.format("true", "true")).tables["en"]
    assert both["compounds"] == {"louie": "TURN LEFT"}
    assert parse_overlay(PROPOSED.format("false", "false")).tables == {}


def test_one_more_word_changes_nothing_that_is_there() -> None:
    one = parse_overlay(OWN)
    more = one.plus("en", "zork", "meat").plus("en", "plugh", "UP")
    assert more.tables["en"]["places"]["meat"] == ("wibbles", "Fnord-bits", "zork")
    assert more.tables["en"]["words"]["UP"] == ("skywards", "plugh")
    assert one.tables == parse_overlay(OWN).tables
    assert Overlay().plus("yue", "鱷魚", "3").tables == {"yue": {"numbers": {"3": ("鱷魚",)}}}


def test_everything_wrong_is_said_at_once_with_its_line_and_without_the_words() -> None:
    text = """
format = 1
[en.words]
UPP = ["zanzibar"]
UP = [""]
[en.wrods]
UP = ["zanzibar"]
[en.compounds]
"zanzibar kumquat" = "TURN WEST EAST SIDEWAYS"
[en.places]
meat = "zanzibar"
[[proposed]]
language = "en"
phrase = "zanzibar"
means = "meat"
acept = true
"""
    with pytest.raises(GroundingError) as told:
        parse_overlay(text, source="words.toml")
    said = str(told.value)
    for where, line in [
        ("en.words.UPP", 4), ("en.words.UP", 5), ("en.wrods", 6), ("en.compounds", 9), ("en.places.meat", 11),
        ("proposed.0.acept", 16),
    ]:  # fmt: skip
        assert re.search(rf"- {where}(\.0)? \(line {line}\): ", said), (where, said)
    assert "Did you mean 'words'?" in said
    assert "Did you mean 'accept'?" in said
    assert "zanzibar" not in said
    assert "kumquat" not in said


def test_a_word_with_two_meanings_and_a_meaning_that_is_none() -> None:
    text = f'{OWN}[yue.words]\nUP = ["鱷魚"]\n{PROPOSED.format("true", "true")[12:]}'.replace(
        "TURN LEFT", "TURN"
    )
    with pytest.raises(GroundingError) as told:
        parse_overlay(text.replace('means = "TURN"', 'means = "TURNS"'))
    said = str(told.value)
    assert "yue.words.UP (line 15): has a word that stands elsewhere with another meaning." in said
    assert "must be a place, a number or known classes of words" in said
    assert "鱷魚" not in said


def test_places_and_languages_that_there_are_not() -> None:
    with pytest.raises(GroundingError) as told:
        read("go up", 'format = 1\n[en.places]\nmeet = ["a"]\n[eng.places]\nmeat = ["b"]')
    said = str(told.value)
    assert "en.places.meet (line 3): is no place of the task. Did you mean 'meat'?" in said
    assert "eng.places (line 4): is no language that can be read. Did you mean 'en'?" in said


@pytest.mark.parametrize("text", ["x", "format = 2", ""])
def test_what_is_no_file_of_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "words.toml").write_text(text, "utf-8")
    with pytest.raises(GroundingError, match=re.escape(str(tmp_path / "words.toml"))):
        load_overlay(tmp_path / "words.toml")
    with pytest.raises(GroundingError, match="cannot be read"):
        load_overlay(tmp_path / "nowhere.toml")


def test_the_file_is_named_as_seen_from_the_study_and_its_hash_is_kept(tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text(OWN, "utf-8")
    (tmp_path / FILE).write_text('[rules]\nwords = "words.toml"\n', "utf-8")
    rules = read_settings(tmp_path).grounder(cache=None)
    found = rules.provenance()
    assert found["words_sha256"] == parse_overlay(OWN).digest == load_overlay(tmp_path / "words.toml").digest
    assert str(tmp_path) not in str(found)
    assert "words_sha256" not in Rules().provenance()
    assert Rules(words=tmp_path / "words.toml").provenance() == found
