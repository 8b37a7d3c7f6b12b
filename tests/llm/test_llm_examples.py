"""Examples from a lab's own reviewed segments: whose, which, and where their words go."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from fake_server import FakeServer
from llm_dialogs import context, segment, terrain

from fidm.cli.main import main
from fidm.errors import GroundingError
from fidm.grounding.hybrid import Hybrid
from fidm.grounding.llm.answers import AnswerForm
from fidm.grounding.llm.examples import OwnExample, choose_examples, pool_digest
from fidm.grounding.llm.grounder import LanguageModel
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.trail import Trail
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.grounding.route.program import parse_program
from fidm.grounding.rules.grounder import Rules

LAND = terrain()
TASK = LAND.task.fingerprint


def example(
    program: str = "MOVE up 3",
    said: str = "go up three",
    who: str = "A",
    *,
    words: tuple[str, ...] = (),
    **more,
) -> OwnExample:
    steps = parse_program(program, LAND.places)
    quotes = words or (said,) * len(steps)
    spans = [(said.index(quote), said.index(quote) + len(quote)) for quote in quotes]
    spanned = tuple(replace(step, span=span) for step, span in zip(steps, spans, strict=True))
    given = {"participant": who, "language": "en", "task": TASK, "said": said, "position": LAND.start()}
    return OwnExample(**{**given, "program": spanned, **more})


def chosen(examples: list[OwnExample], n: int = 6, **more) -> list[str]:
    options = {"language": "en", "task": TASK, "without": frozenset(), **more}
    return [one.said for one in choose_examples(examples, AnswerForm.of(LAND), n=n, **options)]


def test_an_example_is_an_answer_that_would_be_read_as_the_reviewed_program() -> None:
    form = AnswerForm.of(LAND)
    two = example("TURN left; MOVE ahead 2", "turn left and go two", words=("turn left", "go two"))
    assert json.loads(two.answer(form))["instructions"] == [
        {"words": "turn left", "op": "TURN", "way": "left"},
        {"words": "go two", "op": "MOVE", "way": "ahead", "squares": 2},
    ]
    assert example("NONE", "hm").answer(form) == '{"instructions":[]}'
    # Of two moves that quote the same words the second would be left out.
    assert example("MOVE up 2; MOVE left 1", "up two left one").answer(form) == ""
    assert example(said="go up three " + "or so " * 60, words=("go up three",)).answer(form) == ""
    assert example(said="go up three " + "or so " * 20).answer(form) == ""
    many = "; ".join(["MOVE up 1"] * 8)
    said = " ".join(f"up{i}" for i in range(8))
    assert example(many, said, words=tuple(said.split())).answer(form) == ""


def test_examples_are_never_of_those_who_are_judged_nor_of_another_language_or_map() -> None:
    pool = [
        example(said="go up three", who="A"),
        example(said="up three, please", who="B"),
        example(said="three up", who="C", language="en-GB"),
        example(said="上三格", who="C", language="yue"),
        example(said="three squares up", who="C", task="another map"),
    ]
    assert set(chosen(pool)) == {"go up three", "up three, please", "three up"}
    assert set(chosen(pool, without={"A"})) == {"up three, please", "three up"}
    assert chosen(pool, without={"A", "B", "C"}) == []
    assert chosen(pool, language="yue") == ["上三格"]


def test_the_choice_is_fixed_and_shows_much() -> None:
    pool = [example(said=f"go up three {i}", who="A") for i in range(20)]
    pool += [
        example("GOTO meat; BUY meat", "get the meat", who="B"),
        example("NONE", "hm", who="C"),
        example("MOVE left 2", "left two", who="D"),
        example("MOVE left 2", "LEFT two", who="D"),
    ]
    first = chosen(pool, 4)
    assert chosen(pool[::-1], 4) == first
    assert first[0] == "get the meat"  # two kinds of instructions at once
    assert "hm" in first
    assert sum(said.startswith("go up") for said in first) == 1
    assert sum(said.casefold() == "left two" for said in first) == 1
    assert pool_digest(pool) == pool_digest(pool[::-1]) != pool_digest(pool[1:])
    assert "meat" not in repr(pool[20]).replace(str(pool[20].program), "")


def said_in(body: dict) -> list[str]:
    """What is said in the data of a request, the last being what is asked about."""
    data = [json.loads(one["content"]) for one in body["messages"][1:] if one["role"] == "user"]
    return [one["said"] for one in data if "said" in one]


def test_only_a_model_that_knows_whom_it_reads_shows_examples() -> None:
    pool = [example(said="three up for A", who="A"), example(said="three up for B", who="B")]
    with FakeServer() as server:
        model = LanguageModel(server.url, examples=pool)
        plain = LanguageModel(server.url)
        for one in (plain, model, model.about("A"), model.about("C"), model.about("C", {"B"})):
            one.ground(segment(), context())
        both = Hybrid(Rules(), model).about("A")
        assert both.ground(segment(), context()).is_confident
        asked = [said_in(body) for body in server.requests]
        assert model.answers().n_asked == 5
        assert model.provenance()["examples"] == {"n": 2, "sha256": pool_digest(pool)}
        assert plain.provenance()["examples"]["n"] == 0
        model.close()
        plain.close()
    shown = [{said for said in one if said.endswith((" A", " B"))} for one in asked]
    assert shown == [
        set(), set(), {"three up for B"}, {"three up for A", "three up for B"}, {"three up for A"},
        {"three up for B"},
    ]  # fmt: skip
    assert asked[0] == asked[1]
    assert both.agreement().n_checked == 1


def test_what_is_shown_is_in_the_key_of_the_answer(tmp_path: Path) -> None:
    with FakeServer() as server:
        for n, pool in enumerate(([], [example(who="B")], [example(said="up three", who="B")]), start=1):
            model = LanguageModel(server.url, examples=pool, cache=tmp_path / "answers.sqlite").about("A")
            for _ in range(2):
                model.ground(segment(), context())
            model.close()
            assert len(server.requests) == n


def test_words_of_participants_go_to_no_other_machine() -> None:
    with pytest.raises(GroundingError, match="this machine only"):
        LanguageModel("http://10.0.0.7/v1", allow_remote=True, examples=[example()])
    with pytest.raises(GroundingError, match="single moves"):
        LanguageModel(template="moves_v1", examples=[example()])


CANARY = "zanzibarkumquat"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    (folder / "talks").mkdir(parents=True)
    (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    (folder / "grounding.toml").write_text(
        'by = "hybrid"\n[llm]\nexamples = "reviewed"\nworkers = 1\n', "utf-8"
    )
    (folder / "participants.csv").write_text("participant,excluded\nA,\nB,\nC,withdrew\n", "utf-8")
    for name in "ABC":
        lines = ["speaker,start_s,end_s,text"]
        for i, said in enumerate((f"go left one square {CANARY}{name}", "go up one square")):
            lines += [f'PAR,{4 * i},{4 * i + 1},"{said}"', f"INV,{4 * i + 2},{4 * i + 3},okay I've moved you"]
        (folder / "talks" / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def left_one(body: dict, _: int) -> str:
    way = "left" if "left" in said_in(body)[-1] else "up"
    return json.dumps(
        {"instructions": [{"words": f"go {way} one square", "op": "MOVE", "way": way, "squares": 1}]}
    )


def test_reviewed_segments_of_others_are_shown_and_heard_nowhere_else(
    study: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with FakeServer(answer=left_one) as server:
        options = ["--endpoint", server.url]
        assert main(["ground", str(study), *options]) == 0
        said = capsys.readouterr().out
        assert "No segment of this study is reviewed yet" in " ".join(said.split())
        assert not any(CANARY in text for body in server.requests for text in said_in(body)[:-1])
        grounded, trail = read_proposed(study), Trail(study)
        for dialog in grounded.dialogs:
            walked = review_dialog(dialog, (), grounded.terrain)
            trail.append(decide(dialog, walked[0], grounded.terrain, reviewer="Ann", kind="accept"))
        server.requests.clear()
        assert main(["ground", str(study), *options, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        asked = [said_in(body) for body in server.requests]
    assert found["provenance"]["model"]["examples"]["n"] == 2  # nobody who withdrew
    for texts in asked:
        *shown, last = texts
        own = next((name for name in "ABC" if last.endswith(CANARY + name)), "")
        others = {text[-1] for text in shown if CANARY in text}
        assert others == set("AB") - {own} or (not own and others in ({"A"}, {"B"}, {"A", "B"}))
    assert {texts[-1][-1] for texts in asked if CANARY in texts[-1]} == set("ABC")
    kept = (study / "grounding" / "provenance.json").read_text("utf-8")
    for heard in (said, json.dumps(found), kept, caplog.text):
        assert CANARY not in heard
    assert capsys.readouterr().err == ""
