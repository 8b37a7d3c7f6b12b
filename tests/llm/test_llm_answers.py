"""What a model may answer, and how its answers are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llm_dialogs import terrain

import fidm
from fidm.errors import GroundingError
from fidm.grounding.llm.answers import VARIANTS, AnswerForm, InvalidAnswerError, locate
from fidm.grounding.route.program import OPS, parse_program, write_program
from fidm.grounding.route.replay import Terrain


@pytest.fixture(scope="module")
def form() -> AnswerForm:
    return AnswerForm.of(terrain())


def answer(*steps: dict) -> str:
    return json.dumps({"instructions": list(steps)})


def step(op: str, words: str = "go", **fields) -> dict:
    return {"words": words, "op": op, **fields}


def test_every_instruction_of_the_language_can_be_answered(form: AnswerForm) -> None:
    assert {op for op, _ in VARIANTS} == set(OPS) - {"NONE"}
    text = (
        "MOVE up 3; MOVE ahead end; MOVE left to meat; MOVE down; TURN around; GOTO START; BUY egg_tofu; "
        "ALONG bakery; ALONG; BACK 2; BACK meat; BACK; PAY; LEAVE"
    )
    program = parse_program(text, terrain().places)
    steps = []
    for one in program:
        fields: dict = {"way": one.way} if one.way else {}
        fields |= {"squares": one.squares} if one.squares else {}
        fields |= {"end": True} if one.to_end else {}
        fields |= {"place": one.place} if one.place else {}
        steps.append(step(one.op, **fields))
    said = " then ".join(f"step {i}" for i in range(len(steps)))
    steps = [{**one, "words": f"step {i}"} for i, one in enumerate(steps)]
    assert write_program(form.read(answer(*steps), said).program) == text


def test_the_schema_gives_each_instruction_exactly_its_own_fields(form: AnswerForm) -> None:
    items = form.schema["properties"]["instructions"]["items"]["anyOf"]
    found = [
        (
            item["properties"]["op"]["enum"][0],
            tuple(k for k in item["properties"] if k not in ("op", "words")),
        )
        for item in items
    ]
    assert found == list(VARIANTS)
    assert all(item["additionalProperties"] is False for item in items)
    assert all(item["required"] == list(item["properties"]) for item in items)
    assert form.schema["$defs"]["place"]["enum"] == list(terrain().reach)
    assert "FINISH" not in form.schema["$defs"]["section"]["enum"]


def test_what_a_task_does_not_have_cannot_be_answered() -> None:
    task = terrain("errands")
    form = AnswerForm.of(task)
    for op, place in (("PAY", "FINISH"), ("LEAVE", "EXIT")):
        is_there = place in task.reach
        assert (f'"{op}"' in json.dumps(form.schema)) == is_there
        if not is_there:
            with pytest.raises(InvalidAnswerError):
                form.read(answer(step(op)), "go")


def test_length_and_tokens_are_sized_together() -> None:
    small, large = (AnswerForm.of(terrain(), most=most) for most in (4, 32))
    assert small.schema["properties"]["instructions"]["maxItems"] == 4
    assert large.max_tokens > 6 * small.max_tokens
    with pytest.raises(GroundingError, match="1 to 64"):
        AnswerForm.of(terrain(), most=65)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_json"),
        ("I go up.", "not_json"),
        ('{"instructions":[', "not_json"),
        ('{"instructions":[{"words":"go","op":"MOVE","way":"up","squares":NaN}]}', "not_json"),
        ('{"instructions":[],"instructions":[]}', "not_json"),
        ('{"instructions":' + "[" * 5000, "not_json"),
        ('{"instructions":' + "9" * 5000 + "}", "not_json"),
        ('{"instructions":{}}', "wrong_form"),
        ('{"instructions":[],"more":1}', "wrong_form"),
        ('{"instructions":["MOVE up 3"]}', "wrong_form"),
        (answer(step("FLY", way="up")), "wrong_form"),
        (answer(step("MOVE")), "wrong_form"),
        (answer(step("MOVE", way="north")), "wrong_form"),
        (answer(step("TURN", way="up")), "wrong_form"),
        (answer(step("MOVE", way="up", squares=0)), "wrong_form"),
        (answer(step("MOVE", way="up", squares=10**30)), "wrong_form"),
        (answer(step("MOVE", way="up", squares=True)), "wrong_form"),
        (answer(step("MOVE", way="up", squares=2.5)), "wrong_form"),
        (answer(step("MOVE", way="up", end=False)), "wrong_form"),
        (answer(step("MOVE", way="up", squares=2, end=True)), "wrong_form"),
        (answer(step("GOTO", place="moon")), "unknown_place"),
        (answer(step("BUY", place="FINISH")), "unknown_place"),
        (answer(step("GOTO", place=["meat"])), "unknown_place"),
        (answer(*[step("ALONG")] * 65), "too_long"),
        (" " * 100_001, "too_long"),
        ('{"instructions":[' + " " * 200 + "]}", "loop"),
        ('{"instructions":[{"words":"go' + "\\n" * 3 + "\n" * 200 + '"', "loop"),
        (answer(*[step("MOVE", way="up", squares=1)] * 3), "loop"),
        (answer(*[step("GOTO", place="meat"), step("BUY", place="meat")] * 3), "loop"),
        (answer(*[step("TURN", "nobody said so", way="left")] * 3), "loop"),
    ],
)
def test_wrong_answers_have_a_code_and_no_text(form: AnswerForm, text: str, code: str) -> None:
    with pytest.raises(InvalidAnswerError) as found:
        form.read(text, "go")
    assert found.value.code == code
    assert str(found.value) == f"The model's answer cannot be used: {code}."


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"instructions":[{"words":"go","op":"GOTO","place":"egg_tofu"}]}\n```',
        '<think>hm {"a":1}</think>{"instructions":[{"words":"go","op":"goto","place":"Egg and Tofu"}]}',
        'Sure! {"instructions":[{"words":"go","op":"GOTO","place":"egg tofu","squares":null}]}',
    ],
)
def test_servers_that_do_not_enforce_are_read_too(form: AnswerForm, text: str) -> None:
    assert write_program(form.read(text, "go").program) == "GOTO egg_tofu"


def test_a_label_of_two_sections_means_neither(form: AnswerForm) -> None:
    text = fidm.builtin_text("grocery_small").replace('label = "egg and tofu"', 'label = "meat"')
    text = text.replace('symbol = "G"', 'symbol = "G"\nlabel = "Shelf"').replace(
        'symbol = "D"', 'symbol = "D"\nlabel = "shelf"'
    )
    other = AnswerForm.of(Terrain(fidm.compile_task(fidm.parse_task(text))))
    assert write_program(other.read(answer(step("GOTO", place="meat")), "go").program) == "GOTO meat"
    with pytest.raises(InvalidAnswerError, match="unknown_place"):
        other.read(answer(step("GOTO", place="shelf")), "go")


def test_empty_and_full_answers(form: AnswerForm) -> None:
    assert write_program(form.read('{"instructions":[]}', "hm").program) == "NONE"
    said = " ".join(f"go {i}" for i in range(8))
    assert form.read(answer(*[step("ALONG", f"go {i}") for i in range(8)]), said).is_full
    assert not form.read(answer(*[step("ALONG", f"go {i}") for i in range(7)]), said).is_full


@pytest.mark.parametrize(
    ("said", "steps", "program", "doubts"),
    [
        # What has no effect the second time counts once, whatever it quotes.
        ("get the meat", [step("BUY", "get", place="meat"), step("BUY", "the meat", place="meat")],
         "BUY meat", ()),
        ("get the meat", [step("BUY", "get the meat", place="meat")] * 5, "BUY meat", ()),
        ("pay", [step("PAY", "pay"), step("PAY", "I pay now")], "PAY", ()),
        # Twice said is twice meant, unless it is the same thing taken.
        ("left, left", [step("MOVE", "left", way="left", squares=1)] * 2, "MOVE left 1; MOVE left 1", ()),
        ("left, left, left", [step("MOVE", "left", way="left", squares=1)] * 3,
         "MOVE left 1; MOVE left 1; MOVE left 1", ()),
        ("meat, then eggs, then meat",
         [step("BUY", "meat", place="meat"), step("BUY", "eggs", place="egg_tofu"),
          step("BUY", "meat", place="meat")], "BUY meat; BUY egg_tofu; BUY meat", ()),
        # Nobody said so.
        ("go up three", [step("MOVE", "go up three", way="up", squares=3), step("PAY", "I pay")],
         "MOVE up 3", ("unquoted",)),
        ("hm", [step("PAY", "I pay")], "NONE", ("unquoted",)),
        ("hm", [step("PAY", "")], "NONE", ("unquoted",)),
        # The words are used up.
        ("go down two", [step("MOVE", "go down two", way="down", squares=2),
                         step("MOVE", "go down two", way="left", place="seasoning")],
         "MOVE down 2", ("requoted",)),
        ("go down two", [step("MOVE", "go down two", way="down", squares=2),
                         step("MOVE", "two", way="left", squares=2)], "MOVE down 2", ("requoted",)),
        ("go down two", [step("MOVE", "go down two", way="down", squares=2)] * 2, "MOVE down 2", ("requoted",)),
        ("get the meat", [step("BUY", "get the meat", place="meat"),
                          step("GOTO", "get the meat", place="meat")], "BUY meat", ("requoted",)),
        ("get the meat", [step("BUY", "get the meat", place="meat"),
                          step("BUY", "get the meat", place="drinks")], "BUY meat", ("requoted",)),
        # One stretch of words, two instructions that follow from each other.
        ("get the meat", [step("GOTO", "get the meat", place="meat"),
                          step("BUY", "get the meat", place="meat")], "GOTO meat; BUY meat", ()),
        ("up to the meat and take some", [step("MOVE", "up to the meat and take some", way="up", place="meat"),
                                          step("BUY", "take some", place="meat")],
         "MOVE up to meat; BUY meat", ()),
        ("turn left and go two", [step("TURN", "turn left and go two", way="left"),
                                  step("MOVE", "turn left and go two", way="ahead", squares=2)],
         "TURN left; MOVE ahead 2", ()),
        ("pay and leave", [step("GOTO", "pay and leave", place="FINISH"), step("PAY", "pay and leave"),
                           step("LEAVE", "pay and leave")], "GOTO FINISH; PAY; LEAVE", ()),
        # Only what comes directly before is followed from.
        ("turn left, stop", [step("TURN", "turn left", way="left"), step("ALONG", "stop"),
                             step("MOVE", "turn left", way="ahead", squares=1)],
         "TURN left; ALONG", ("requoted",)),
        # A longer quote that begins with used words says something of its own.
        ("up two and left one", [step("MOVE", "up two", way="up", squares=2),
                                 step("MOVE", "up two and left one", way="left", squares=1)],
         "MOVE up 2; MOVE left 1", ()),
    ],
)  # fmt: skip
def test_every_instruction_needs_words_of_its_own(
    form: AnswerForm, said: str, steps: list[dict], program: str, doubts: tuple[str, ...]
) -> None:
    found = form.read(answer(*steps), said)
    assert (write_program(found.program), found.doubts) == (program, doubts)


def test_the_default_room_is_one_more_than_anybody_was_found_to_need(form: AnswerForm) -> None:
    """So that a loop is short, and an answer as long as the longest meaning is not called full."""
    longest = 0
    for path in (Path(__file__).parents[1] / "data" / "phrasings").glob("development*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            longest = max(longest, json.loads(line)["program"].count(";") + 1)
    assert longest < form.most == form.schema["properties"]["instructions"]["maxItems"]
    assert form.max_tokens < 500


def test_single_moves_become_a_program() -> None:
    form = AnswerForm.of(terrain(), "moves")
    found = form.read('{"moves":["N","N","W","BUY meat","PAY","OUT"]}', "x")
    assert write_program(found.program) == "MOVE up 2; MOVE left 1; BUY meat; PAY; LEAVE"
    for wrong in ('{"moves":["n"]}', '{"moves":[1]}', '{"moves":["BUY moon"]}', '{"instructions":[]}'):
        with pytest.raises(InvalidAnswerError):
            form.read(wrong, "x")
    with pytest.raises(InvalidAnswerError, match="too_long"):
        form.read(json.dumps({"moves": ["N", "S"] * 40}), "x")


def test_words_are_found_in_what_was_said() -> None:
    assert locate("up three", "Go up three, up three") == ((3, 11), 1.0)
    assert locate("up three", "Go up three, up three", 11) == ((13, 21), 1.0)
    assert locate("UP  Three!", "go up, three squares") == ((3, 12), 0.95)
    assert locate("三 格", "向上行三格") == ((3, 5), 0.95)
    assert locate("STRASSE", "die Straße") == ((4, 10), 0.95)
    for nowhere in ("fly", "", "  ", "!?", None, 7, "\ud800"):
        assert locate(nowhere, "go up") == ((0, 5), 0.5)


def test_spans_follow_one_another(form: AnswerForm) -> None:
    said = "up one then up one"
    found = form.read(answer(*[step("MOVE", "up one", way="up", squares=1)] * 2), said)
    assert [one.span for one in found.program] == [(0, 6), (12, 18)]
    assert found.doubts == ()
