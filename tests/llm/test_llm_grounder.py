"""The grounder against a fake server: what is asked, what is doubted, what is kept."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_server import UP_THREE, FakeServer
from llm_dialogs import context, segment

from fidm.errors import GroundingError
from fidm.grounding.base import Grounder
from fidm.grounding.llm import client
from fidm.grounding.llm.client import AnswerCache
from fidm.grounding.llm.grounder import LanguageModel, export_requests, import_answers
from fidm.grounding.llm.prompt import MAX_SAID
from fidm.grounding.route.program import write_program


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)


def steps(*items: dict) -> str:
    return json.dumps({"instructions": [{"words": "up three", **item} for item in items]})


BLOCKED = steps({"op": "MOVE", "way": "right", "squares": 9})


def ground(server: FakeServer, text: str = "go up three", **options):
    model: Grounder = LanguageModel(server.url, **options)
    try:
        return model.ground(segment(text), context())
    finally:
        model.close()


def test_a_plain_answer_and_what_was_sent() -> None:
    with FakeServer() as server:
        found = ground(server)
        body = server.requests[0]
    assert write_program(found.program) == "MOVE up 3"
    assert found.program[0].span == (3, 11)
    assert (found.doubts, found.grounder, found.readings[0].probability) == ((), "llm", 1.0)
    form = body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("fake-model", 0.0, 432)
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


def test_whether_schemas_are_enforced_is_found_out_once_and_recorded() -> None:
    for probe, expected in (("enforced", True), ("ignored", False)):
        with FakeServer(probe=probe) as server:
            model = LanguageModel(server.url)
            assert model.provenance()["enforced"] is None
            for _ in range(3):
                model.ground(segment(), context())
            found = model.provenance()
            assert (server.n_probes, found["enforced"]) == (1, expected)
            assert found["system_fingerprint"] == ["fake-1"]
            model.close()


def test_a_strict_server_is_asked_without_the_fields_it_refuses() -> None:
    with FakeServer(probe="strict") as server:
        assert ground(server).is_confident
        assert "chat_template_kwargs" not in server.requests[0]


def test_provenance_has_hashes_and_no_paths(tmp_path: Path) -> None:
    weights = tmp_path / "weights.gguf"
    weights.write_bytes(b"abc")
    with FakeServer() as server:
        server.models = [str(tmp_path / "weights.gguf")]
        model = LanguageModel(server.url, model_file=weights)
        model.ground(segment(), context())
        found = model.provenance()
        model.close()
    assert found["model"] == "weights.gguf"
    assert found["model_file_sha256"].startswith("ba7816bf")
    assert found["template"] == "route_v1"
    assert [len(digest) for digest in found["schema_sha256"]] == [64]
    assert found["endpoint"] == "loopback"
    assert str(tmp_path) not in json.dumps(found)
    with pytest.raises(GroundingError, match="cannot be read"):
        LanguageModel(model_file=tmp_path / "none")


def test_several_models_must_be_named() -> None:
    with FakeServer() as server:
        server.models = ["a", "b"]
        with pytest.raises(GroundingError, match=r"2 models \(a, b\)"):
            ground(server)
        assert ground(server, model="b").is_confident
        server.models = []
        with pytest.raises(GroundingError, match="0 models"):
            ground(server)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_answers_among_the_thoughts_are_read(field: str) -> None:
    with FakeServer(f"reasoning {field}") as server:
        assert write_program(ground(server).program) == "MOVE up 3"


def test_a_cut_answer_is_asked_for_once_more_with_more_room() -> None:
    with FakeServer("length", "ok") as server:
        assert ground(server).is_confident
        assert [body["max_tokens"] for body in server.requests] == [432, 864]
    with FakeServer("length") as server:
        assert ground(server).doubts == ("no_answer", "cut_off")
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("usage", "cut"),
    [
        ('{"prompt_tokens": 300}', True),
        ('{"prompt_tokens": 700}', True),
        ('{"prompt_tokens": 0}', False),
        ("{}", False),
        ("null", False),
        ('"many"', False),
    ],
)
def test_a_prompt_that_was_cut_silently_is_noticed(usage: str, cut: bool) -> None:
    with FakeServer(f"usage {usage}") as server:
        assert ("prompt_cut" in ground(server).doubts) == cut


def test_a_segment_too_long_to_send_is_doubted() -> None:
    with FakeServer() as server:
        assert "prompt_cut" in ground(server, "up three " * (MAX_SAID // 8)).doubts


def test_an_invalid_answer_gets_a_second_try() -> None:
    with FakeServer("say I think up.", "ok") as server:
        assert ground(server).is_confident
        assert json.loads(server.requests[1]["messages"][-1]["content"]) == {"problems": ["not_json"]}
    with FakeServer("say I think up.") as server:
        found = ground(server)
        assert found.doubts == ("no_answer", "not_json")
        assert write_program(found.program) == "NONE"
        assert len(server.requests) == 2


def test_an_answer_that_does_not_fit_the_map_gets_a_second_try() -> None:
    with FakeServer(answer=lambda _, number: [BLOCKED, UP_THREE][number]) as server:
        found = ground(server)
        assert json.loads(server.requests[1]["messages"][-1]["content"]) == {"problems": ["blocked"]}
        assert len(server.requests) == 2
    # People do say what cannot be done, so the first reading stays, and somebody looks.
    assert found.doubts == ("repaired",)
    assert {write_program(r.program): r.probability for r in found.readings} == {
        "MOVE up 3": 0.5,
        "MOVE right 9": 0.5,
    }
    with FakeServer(answer=BLOCKED) as server:
        assert ground(server).doubts == ("blocked",)
        assert len(server.requests) == 2
    with FakeServer("ok", "status 503", answer=BLOCKED) as server:
        assert ground(server, retries=0).doubts == ("blocked",)


def test_a_second_try_of_which_nothing_is_left_does_not_replace_the_first() -> None:
    unsaid = steps({"words": "blocked", "op": "MOVE", "way": "up", "squares": 1})
    with FakeServer(answer=lambda _, number: [BLOCKED, unsaid][number]) as server:
        found = ground(server)
    assert (write_program(found.program), found.doubts) == ("MOVE right 9", ("blocked",))


def test_an_answer_that_goes_round_in_circles_is_no_reading() -> None:
    circles = steps(*[{"op": "MOVE", "way": way, "squares": 1} for way in ("up", "down") * 4])
    with FakeServer(answer=lambda _, number: [circles, UP_THREE][number]) as server:
        assert ground(server).is_confident
        assert json.loads(server.requests[1]["messages"][-1]["content"]) == {"problems": ["loop"]}
    with FakeServer(answer=circles) as server:
        assert ground(server).doubts == ("no_answer", "loop")


def test_a_distance_nobody_mentioned_is_no_reason_to_ask_again() -> None:
    with FakeServer(answer=steps({"op": "MOVE", "way": "up"})) as server:
        assert ground(server).doubts == ("guessed_distance",)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "text", "doubts"),
    [
        ('{"instructions":[]}', "go up three", ("missed",)),
        ('{"instructions":[]}', "the meat, please", ("missed",)),
        ('{"instructions":[]}', "hmm, wait", ()),
        (UP_THREE, "hmm, wait", ("unquoted",)),
        (UP_THREE, "let's go up now", ("unquoted", "missed")),
        (steps({"op": "MOVE", "way": "up", "squares": 1}, {"op": "PAY"}), "up three", ("requoted",)),
        (
            steps(*[{"op": "MOVE", "way": way, "words": way} for way in ("up", "down") * 4]),
            " ".join(["up down"] * 4),
            ("guessed_distance", "full"),
        ),
    ],
)
def test_what_is_odd_about_an_answer_is_doubted(answer: str, text: str, doubts: tuple[str, ...]) -> None:
    with FakeServer(answer=answer) as server:
        assert ground(server, text).doubts == doubts


def test_silence_is_not_asked_about() -> None:
    with FakeServer() as server:
        assert ground(server, " \n").is_confident
        assert not server.requests


def test_samples_become_readings() -> None:
    two = steps({"op": "MOVE", "way": "up", "squares": 2})
    with FakeServer(answer=lambda body, _: UP_THREE if body["seed"] <= 3 else two) as server:
        found = ground(server, samples=5)
        assert {body["temperature"] for body in server.requests} == {0.7}
    assert [(write_program(r.program), r.probability) for r in found.readings] == [
        ("MOVE up 3", 0.6),
        ("MOVE up 2", 0.4),
    ]
    assert found.doubts == ("disagree",)
    with FakeServer(answer=lambda body, _: UP_THREE if body["seed"] <= 4 else "nonsense") as server:
        assert ground(server, samples=5).is_confident
    with FakeServer(answer="nonsense") as server:
        assert ground(server, samples=3).doubts == ("no_answer", "not_json")


def test_probabilities_of_tokens() -> None:
    for logprob, sure in ((-0.01, True), (-2.0, False), (float("-inf"), False)):
        with FakeServer(f"logprobs {logprob}") as server:
            found = ground(server, logprobs=True)
            assert server.requests[0]["logprobs"] is True
        assert found.is_confident == sure
        assert (found.readings[0].probability > 0.5) == sure
    with FakeServer() as server:
        assert ground(server, logprobs=True).readings[0].probability == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"samples": 0},
        {"samples": 3, "temperature": 0},
        {"samples": 3, "logprobs": True},
        {"temperature": 3},
        {"timeout_s": 0},
        {"retries": -1},
        {"context_turns": -1},
        {"template": "none"},
    ],
)
def test_settings_that_cannot_apply_are_refused(options: dict) -> None:
    with pytest.raises(GroundingError):
        LanguageModel(**options)


def test_single_moves_as_in_the_paper() -> None:
    with FakeServer(answer='{"moves":["N","N","N"]}') as server:
        found = ground(server, template="moves_v1")
    assert write_program(found.program) == "MOVE up 3"


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    path = tmp_path / "study" / "answers.sqlite"
    with FakeServer("length", "ok", "say bad", "ok") as server:
        for _ in range(2):
            model = LanguageModel(server.url, cache=path)
            for text in ("go up three", "up three", "go up three"):
                assert model.ground(segment(text), context()).is_confident
            assert model.provenance()["enforced"] is True
            assert model.provenance()["system_fingerprint"] == ["fake-1"]
            model.close()
        assert len(server.requests) == 4
        assert server.n_probes == 1
    # All is kept, so the server need not even be there.
    model = LanguageModel("http://127.0.0.1:9/v1", "fake-model", cache=path)
    assert write_program(model.ground(segment(), context()).program) == "MOVE up 3"
    model.close()


def test_what_an_answer_depends_on_is_in_its_key(tmp_path: Path) -> None:
    weights = tmp_path / "w"
    weights.write_bytes(b"1")
    with FakeServer(answer='{"moves":[]}') as server:
        for number, options in enumerate(
            [{}, {"model": "other"}, {"temperature": 0.5}, {"model_file": weights}, {"max_instructions": 3}],
            start=1,
        ):
            model = LanguageModel(server.url, template="moves_v1", cache=tmp_path / "a.sqlite", **options)
            model.ground(segment("hm"), context())
            assert len(server.requests) == number
            model.close()


def test_the_same_question_at_the_same_time_is_asked_once(tmp_path: Path) -> None:
    with FakeServer(service_s=0.1) as server:
        model = LanguageModel(server.url, cache=tmp_path / "a.sqlite")
        barrier = threading.Barrier(6)

        def ask(_: int) -> str:
            barrier.wait()
            return write_program(model.ground(segment(), context()).program)

        with ThreadPoolExecutor(6) as pool:
            assert set(pool.map(ask, range(6))) == {"MOVE up 3"}
        assert len(server.requests) == 1
        assert server.n_probes == 1
        model.close()


def test_batches_run_in_rounds(tmp_path: Path) -> None:
    cache, out, back = tmp_path / "a.sqlite", tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    model = LanguageModel("http://127.0.0.1:9/v1", "m", cache=cache)
    work = [(segment("go up three"), context()), (segment("up three now"), context()), (segment(), context())]
    answers = {1: BLOCKED, 2: UP_THREE}
    for round_number, expected in ((1, 2), (2, 2), (3, 0)):
        assert export_requests(model, work, out) == expected
        assert out.stat().st_mode & 0o777 == 0o600
        lines = [json.loads(line) for line in out.read_text("ascii").splitlines()]
        assert all(line["url"] == "/v1/chat/completions" and line["method"] == "POST" for line in lines)
        with back.open("w") as file:
            for line in lines:
                reply = {
                    "choices": [{"finish_reason": "stop", "message": {"content": answers[round_number]}}]
                }
                item = {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": reply}}
                file.write(json.dumps(item) + "\n\n")
        assert model.cache is not None
        assert import_answers(back, model.cache).n_answers == expected
    assert model.ground(*work[0]).doubts == ("repaired",)
    assert model.provenance()["enforced"] is None
    model.close()


def test_lines_of_a_batch_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    good = {"choices": [{"message": {"content": UP_THREE}}]}
    path.write_text(
        "\n".join(
            [
                "{",
                "[1]",
                json.dumps({"custom_id": "x", "response": {"body": good}}),
                json.dumps(
                    {"custom_id": "a" * 64, "response": {"status_code": 500, "body": {"error": "up three"}}}
                ),
                json.dumps({"custom_id": "a" * 64, "response": None, "error": "up three"}),
                json.dumps({"custom_id": "a" * 64, "response": {"body": {}}}),
                json.dumps({"custom_id": "b" * 64, "response": {"body": good}}),
            ]
        )
    )
    cache = AnswerCache(tmp_path / "a.sqlite")
    found = import_answers(path, cache)
    assert (found.n_answers, [problem.line for problem in found.problems]) == (1, [1, 2, 3, 4, 5, 6])
    assert "up three" not in " ".join(map(str, found.problems))
    assert cache.keys() == {"b" * 64}
    cache.close()
    model = LanguageModel("http://127.0.0.1:9/v1", "m")
    with pytest.raises(GroundingError, match="cache"):
        export_requests(model, [], path)
    model.close()
    with pytest.raises(GroundingError, match="cannot be read"):
        import_answers(tmp_path / "none", cache)
