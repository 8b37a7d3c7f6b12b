"""What the rules grounder makes of what people say, one habit of speech at a time."""

from __future__ import annotations

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.base import Context, Segment
from fidm.grounding.route.program import write_program
from fidm.grounding.route.replay import Terrain
from fidm.grounding.rules.grounder import MOST_WORDS, Rules
from fidm.grounding.rules.language import languages, load_language, parse_language

TERRAIN = Terrain(fidm.load_task("grocery"))


def read(text, *, language="en", at=(9, 8), heading="left", rules=None):
    context = Context(TERRAIN, TERRAIN.position(*at, heading), language=language)
    return (rules or Rules()).ground(Segment(1, text, (0,), (0,), (0,)), context)


def grammar(text, *, language="en", at=(9, 8), heading="left", rules=None):
    """What the grammar alone makes of a text: the program, and its doubts."""
    context = Context(TERRAIN, TERRAIN.position(*at, heading), language=language)
    found = (rules or Rules()).read(Segment(1, text, (0,), (0,), (0,)), context)
    return found.base.program, found.draft.doubts


def program(text, **more):
    return write_program(grammar(text, **more)[0])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("go up three squares", "MOVE up 3"),
        ("one square up", "MOVE up 1"),
        ("one square down", "MOVE down 1"),
        ("one square right", "MOVE right 1"),
        ("go one square left", "MOVE left 1"),
        ("go left over to the meat", "MOVE left to meat"),
        ("three squares up", "MOVE up 3"),
        ("um, up, let me see, 3", "MOVE up 3"),
        ("up one, two, three squares", "MOVE up 3"),
        ("three squares, up", "MOVE up 3"),
        ("up, up three squares", "MOVE up 3"),
        ("go right to the end", "MOVE right end"),
        ("turn right and go two squares", "TURN right; MOVE ahead 2"),
        ("Right, I go up two", "MOVE up 2"),
        ("go to the meat and take some", "GOTO meat; BUY meat"),
        ("get the meat, then the vegetables", "BUY meat; BUY vegetables"),
        ("carrots and potatoes, please get them", "BUY vegetables"),
        ("go to the till and pay", "GOTO FINISH; PAY"),
        ("turn round and go back two squares", "BACK 2"),
    ],
)
def test_english_instructions(text, meant):
    assert program(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("向上行三格", "MOVE up 3"),
        ("行三格上去", "MOVE up 3"),
        ("上，上三格", "MOVE up 3"),
        ("轉右行兩格", "TURN right; MOVE ahead 2"),
        ("一直向左行到盡頭", "MOVE left end"),
        ("去菜嗰度買菜", "GOTO vegetables; BUY vegetables"),
        ("買豬肉,跟住買蛋", "BUY meat; BUY egg_tofu"),
        ("去收銀處俾錢", "GOTO FINISH; PAY"),
        ("去收銀處畀錢", "GOTO FINISH; PAY"),
        ("返轉頭行兩格", "BACK 2"),
    ],
)
def test_cantonese_instructions(text, meant):
    assert program(text, language="yue") == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("往上走三格", "MOVE up 3"),
        ("往左走两格", "MOVE left 2"),
        ("往左走俩格", "MOVE left 2"),
        ("往左走兩格", "MOVE left 2"),
        ("右转走两格", "TURN right; MOVE ahead 2"),
        ("向左拐", "TURN left"),
        ("往东拐走三格", "MOVE right 3"),
        ("往北走三格", "MOVE up 3"),
        ("一直往左走到尽头", "MOVE left end"),
        ("到蔬菜那边拿一把葱", "GOTO vegetables; BUY vegetables"),
        ("把鸡蛋放进篮子里", "GOTO egg_tofu; BUY egg_tofu"),
        ("给我来一瓶酱油", "BUY seasoning"),
        ("帮我拿两盒牛奶", "BUY dairy"),
        ("買豬肉,然後買雞蛋", "BUY meat; BUY egg_tofu"),
        ("去收银台结账", "GOTO FINISH; PAY"),
        ("掉头走两格", "BACK 2"),
        ("往上走两格，不对，三格", "MOVE up 3"),
        ("往左，我是说往右走一格", "MOVE right 1"),
        ("不要买肉", "NONE"),
        ("肉在哪儿呢？", "NONE"),
        ("我该往哪边走", "NONE"),
    ],
)
def test_mandarin_instructions(text, meant):
    assert program(text, language="zh") == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("up two, no, three", "MOVE up 3"),
        ("two, no, three squares up", "MOVE up 3"),
        ("left two, no, right", "MOVE right 2"),
        ("go to the meat, no wait, the eggs", "GOTO egg_tofu"),
        ("turn left, straight on two, sorry, turn right, straight on three", "TURN right; MOVE ahead 3"),
        ("left six, no, silly me, right six", "MOVE right 6"),
        ("take the milk, no, not the milk, take the eggs", "BUY egg_tofu"),
    ],
)
def test_the_later_version_wins(text, meant):
    assert program(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "I don't need the meat",
        "where is the meat?",
        "if I went up two squares I would be at the meat",
        "let me see",
        "I'll have to pay later",
        "this is a big place",
    ],
)
def test_what_is_no_instruction_gives_none(text):
    assert program(text) == "NONE"


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("go up", "guessed_distance"),
        ("go up a bit", "vague"),
        ("go up seventy squares", "unread_words"),
        ("left 1.5 squares", "vague"),
        ("left 2 to 3 squares", "vague"),
        ("left two three squares", "vague"),
        ("pay for the meat", "vague"),
        ("skip the meat and buy vegetables", "set_aside"),
        ("if it rains go to the meat", "set_aside"),
        ("go left one square and go right one square, " * 40, "too_long"),
        ("go to the zorbles", "unknown_words"),
        ("the meat", "only_named"),
        ("up two, no", "unresolved_repair"),
        ("turn left and go right two", "mixed_frames"),
        ("go up two squares?", "set_aside"),
        ("up one, hold on, up two", "maybe_repair"),
    ],
)
def test_what_is_not_sure_is_doubted(text, doubt):
    _, doubts = grammar(text)
    assert doubt in doubts or (doubt == "unread_words" and doubts), doubts


def test_a_move_into_a_shelf_is_doubted():
    assert "blocked" in grammar("go up 3 squares", at=(9, 3))[1]


def test_alternatives_share_what_the_reading_leaves():
    for text in ("up one, hold on, up two", "get the meat, get the meat", "go up two squares?", "turn left"):
        readings = read(text).readings
        assert 0 < readings[0].probability <= sum(reading.probability for reading in readings) < 1
        assert [r.probability for r in readings] == sorted((r.probability for r in readings), reverse=True)
    twice = {write_program(reading.program) for reading in read("get the meat, get the meat").readings}
    assert {"BUY meat", "BUY meat; BUY meat"} <= twice


def test_frames_are_settings():
    text = "turn left and go one square"
    assert program(text, heading="down") == "TURN left; MOVE ahead 1"
    assert program(text, heading="down", rules=Rules(turns="map")) == "TURN right; MOVE ahead 1"
    assert program(text, heading="left", rules=Rules(turns="map")) == "MOVE ahead 1"
    assert program("go left one square", rules=Rules(sides="walker")) == "TURN left; MOVE ahead 1"


def test_spans_lead_back_to_the_words():
    text = "um, go up two squares and then take the meat"
    first, second = grammar(text)[0]
    assert text[slice(*first.span)] == "go up two squares"
    assert text[slice(*second.span)] == "take the meat"


def test_spans_count_code_points_beyond_the_basic_plane():
    text = "\U00020c41\U00020c41，向上行兩格"
    (step,), _ = grammar(text, language="yue")
    assert text[slice(*step.span)] == "向上行兩格"


def test_left_typed_for_the_perfective_is_no_direction():
    assert "MOVE" not in program("買左豬肉", language="yue")


def test_languages_come_as_files():
    assert {"en", "yue", "zh"} <= set(languages())
    with pytest.raises(GroundingError, match="no language"):
        load_language("tlh")


def test_a_third_language_is_a_file(tmp_path):
    path = tmp_path / "de.toml"
    path.write_text(
        'format = 1\nlanguage = "de"\nname = "Deutsch"\nspaced = true\n'
        '[numbers]\n3 = ["drei"]\n[words]\nUP = ["nach oben"]\nGO = ["gehe", "ich gehe"]\nUNIT = ["Felder"]\n'
        'THEN = ["dann"]\nBUY = ["nehme", "kaufe"]\nSAY = ["das", "ich"]\n',
        "utf-8",
    )
    found, doubts = grammar("ich gehe drei Felder nach oben", language=str(path), at=(9, 8))
    assert write_program(found) == "MOVE up 3"
    assert not doubts


def test_all_that_is_wrong_in_a_language_file_is_said_at_once():
    text = (
        'format = 2\nlanguage = "x"\nspaced = "no"\nfillers = "uh"\n[words]\nFLY = ["x"]\n[variants]\nab = "c"\n'
        '[places]\nmoon = ["m"]\n[numbers]\n1 = ["y"]\n2 = ["Y"]\n[compounds]\n"a b" = "FLY"\n'
    )
    with pytest.raises(GroundingError) as caught:
        parse_language(text, source="x.toml")
    said = str(caught.value)
    for part in (
        "format",
        "name",
        "spaced",
        "fillers",
        "words.FLY",
        "variants.ab",
        "places.moon",
        "numbers.2 (line 13)",
        "compounds.a b",
    ):
        assert part in said


def test_a_word_for_two_sections_is_ambiguous():
    spec = (
        fidm.builtin_text("grocery")
        .replace('"spuds"', '"spuds", "stock"')
        .replace('"miso"', '"miso", "stock"')
    )
    terrain = Terrain(fidm.compile_task(fidm.parse_task(spec)))
    context = Context(terrain, terrain.position(9, 8, "left"), language="en")
    found = Rules().ground(Segment(1, "go to the stock", (0,), (0,), (0,)), context)
    assert "ambiguous_place" in found.doubts
    programs = {write_program(reading.program) for reading in found.readings}
    assert {"GOTO vegetables", "GOTO seasoning"} <= programs


@pytest.mark.parametrize(
    ("said", "language"),
    [("left ", "en"), ("7 ", "en"), ("sugar ", "en"), ("left one and ", "en"), ("uh, ", "en"), ("左", "yue")],
)
def test_more_words_than_are_read_are_flagged(said, language):
    found = read(said * 10_000, language=language)
    assert "too_long" in found.doubts
    assert all(step.span[1] <= len(said) * MOST_WORDS for step in found.program)


def test_as_many_words_as_are_read_are_not_too_long():
    assert "too_long" not in grammar("blorp " * MOST_WORDS)[1]
    assert "too_long" in grammar("blorp " * (MOST_WORDS + 1))[1]


def test_a_program_that_was_cut_off_is_never_sure():
    said = "get the milk, then the eggs, then the meat, then the vegetables. " * 40
    assert "too_long" in read(said, rules=Rules(sure=0.0)).doubts


def test_readings_do_not_change_what_was_read():
    """Clauses are shared by all readings of a segment; asked again, each says the same."""
    rules = Rules()
    context = Context(TERRAIN, TERRAIN.position(9, 8, "left"))
    text = "some eggs, no wait, the milk first, then pay. No, don't go up, go left two to the meat"
    found = rules.read(Segment(1, text, (0,), (0,), (0,)), context)
    clauses = [(list(one.tokens), one.dead, one.is_asked) for one in found.clauses]
    once = [(one.change, one.program) for one in rules.others(found)]
    assert once == [(one.change, one.program) for one in rules.others(found)]
    assert clauses == [(list(one.tokens), one.dead, one.is_asked) for one in found.clauses]
