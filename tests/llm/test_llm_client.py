"""Where speech may go, and what the client does with each thing servers get wrong."""

from __future__ import annotations

import logging
import socket
import sys
import time

import pytest
from fake_server import FakeServer
from llm_dialogs import context, segment

from fidm.errors import GroundingError
from fidm.grounding.llm import client
from fidm.grounding.llm.client import check_address, is_loopback
from fidm.grounding.llm.grounder import LanguageModel
from fidm.grounding.route.program import write_program

SECRET = "Mrs Wong says up three"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)


def ground(server: FakeServer, text: str = SECRET, **options):
    model = LanguageModel(server.url, **options)
    try:
        return model.ground(segment(text), context()), model.provenance()
    finally:
        model.close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.5.4.3", "[::1]", "localhost", "LOCALHOST", "[::ffff:127.0.0.1]"]
)
def test_this_machine_is_allowed(host: str) -> None:
    url, kind = check_address(f"http://{host}:8080", allow_remote=False)
    assert kind == "loopback"
    assert url.endswith("/v1")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.evil.com/v1",
        "http://127.0.0.1.evil.com/v1",
        "http://evil.com/v1",
        "http://0.0.0.0:8080/v1",
        "http://[::]:8080/v1",
        "http://2130706433/v1",
        "http://0x7f000001/v1",
        "http://0177.0.0.1/v1",
        "http://127.1/v1",
        "http://[::ffff:8.8.8.8]/v1",
        "http://10.0.0.1/v1",
        "http://192.168.1.5:11434/v1",
        "http://evil.com#127.0.0.1",
        "http://evil.com/127.0.0.1",
        "http://127.0.0.1@evil.com/v1",
        "http://user:pass@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=1",
        "http://evil.com\\@127.0.0.1/v1",
        "http://[fe80::1%25lo]/v1",
        "file:///etc/passwd",
        "unix:///tmp/x",
        "127.0.0.1:8080",
        "",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(GroundingError):
        LanguageModel(url)


def test_remote_servers_only_if_said_and_recorded() -> None:
    model = LanguageModel("https://models.example.org/v1", "m", allow_remote=True)
    assert model.provenance()["endpoint"] == "remote"
    assert model.provenance()["allow_remote"] is True
    model.close()


def test_localhost_must_mean_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(client.socket, "getaddrinfo", lambda *_: elsewhere)
    assert not is_loopback("localhost")


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer() as server:
        assert write_program(ground(server)[0].program) == "MOVE up 3"


def test_redirects_are_never_followed() -> None:
    with FakeServer() as other, FakeServer(f"redirect {other.url}/chat/completions") as server:
        with pytest.raises(GroundingError, match="not followed"):
            ground(server)
        assert not other.requests


def test_without_httpx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(GroundingError, match=r"pip install 'fidm\[llm\]'"):
        LanguageModel()


@pytest.mark.parametrize(
    "script",
    [
        ["status 429 0", "ok"],
        ["status 429 Wed,_21_Oct_2015_07:28:00_GMT", "ok"],
        ["status 503", "status 502", "status 504", "status 408", "ok"],
        ["status 425", "ok"],
        ["status 500", "ok"],
        ["close", "ok"],
        ["half", "ok"],
        ["garbage", "ok"],
    ],
)
def test_what_passes_is_tried_again(script: list[str]) -> None:
    with FakeServer(*[what.replace("_", " ") for what in script]) as server:
        proposal, _ = ground(server)
        assert write_program(proposal.program) == "MOVE up 3"
        assert proposal.is_confident
        assert len(server.requests) == len(script)


def test_retry_after_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client.time, "sleep", waits.append)
    with FakeServer("status 429 7", "status 429 99999", "status 503 nan", "ok") as server:
        ground(server)
    assert waits[:2] == [7.0, 60.0]
    assert 0 < waits[2] < 1


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("status 503", "busy"),
        ("status 500", "server_error"),
        ("status 501", "server_error"),
        ("close", "broken_off"),
        ("half", "broken_off"),
        ("garbage", "garbage"),
        ('object {"choices": []}', "garbage"),
        ('object {"choices": [{"message": "hi"}]}', "garbage"),
        ("object [1]", "garbage"),
        ("huge", "too_large"),
        ("too_long", "beyond_context"),
    ],
)
def test_one_call_without_an_answer_is_a_doubt(what: str, code: str) -> None:
    with FakeServer(what) as server:
        proposal, _ = ground(server, retries=2)
    assert proposal.doubts == ("no_answer", code)
    assert write_program(proposal.program) == "NONE"


@pytest.mark.parametrize("what", ["hang 30", "trickle"])
def test_a_call_takes_no_longer_than_allowed(what: str) -> None:
    with FakeServer(what) as server:
        started = time.monotonic()
        proposal, _ = ground(server, timeout_s=0.4, retries=1)
        assert time.monotonic() - started < 10
    assert proposal.doubts == ("no_answer", "timeout")


@pytest.mark.parametrize("what", ["garbage", 'object {"error": "no"}'])
def test_many_calls_without_an_answer_end_the_run(what: str) -> None:
    with FakeServer(what) as server:
        model = LanguageModel(server.url, retries=0)
        for _ in range(4):
            assert "no_answer" in model.ground(segment(), context()).doubts
        with pytest.raises(GroundingError, match="answers no more"):
            model.ground(segment(), context())
        model.close()


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, "chat server"), (401, "api_key"), (403, "api_key"), (404, "/v1"), (422, "refuses")],
)
def test_refusals_say_what_to_do_and_nothing_that_was_said(status: int, hint: str) -> None:
    with FakeServer(f"status {status}") as server:
        with pytest.raises(GroundingError, match=hint) as found:
            ground(server)
        assert len(server.requests) == 1
    assert "Wong" not in str(found.value)
    assert found.value.__cause__ is None


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = LanguageModel(f"http://127.0.0.1:{port}", retries=1)
    with pytest.raises(GroundingError, match="Start it"):
        model.ground(segment(), context())
    model.close()


def test_a_key_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(GroundingError, match="copied whole") as found:
        LanguageModel(api_key="schlüssel\n")
    assert "schl" not in str(found.value)


def test_nothing_said_is_logged(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="fidm")
    answer = '{"instructions":[{"words":"Mrs Wong","op":"MOVE","way":"up","squares":3}]}'
    with FakeServer("status 503", "garbage", "ok", answer=answer) as server:
        model = LanguageModel(server.url, api_key="s3cret-key")
        proposal = model.ground(segment(SECRET), context(preceding=(("assessor", "Hello Mrs Wong"),)))
        assert write_program(proposal.program) == "MOVE up 3"
        logging.getLogger("test").debug("%r %s %r", proposal, model.provenance(), model)
        assert server.headers[0]["Authorization"] == "Bearer s3cret-key"
        model.close()
    captured = capfd.readouterr()
    for text in (caplog.text, captured.out, captured.err):
        assert "Wong" not in text
        assert "s3cret" not in text
    assert "Schema enforced" in caplog.text
