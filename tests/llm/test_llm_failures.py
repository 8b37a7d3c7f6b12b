"""A server that fails: everywhere it is the server's fault and no result; here and there it is counted."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from fake_server import UP_THREE, FakeServer
from llm_dialogs import context, segment

from fidm.cli.main import main
from fidm.errors import GroundingError
from fidm.grounding.llm import client
from fidm.grounding.llm.grounder import LanguageModel

LEFT_ONE = UP_THREE.replace("up", "left").replace("three", "one").replace("3", "1")

N = 12
"""Segments of the study, in two dialogs."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    def make(by: str, **settings: object) -> Path:
        folder = tmp_path / "study"
        (folder / "talks").mkdir(parents=True)
        (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
        told = {"timeout_s": 0.3, "retries": 0, "workers": 1, "check_share": 1.0, **settings}
        table = "\n".join(f"{key} = {value}" for key, value in told.items())
        (folder / "grounding.toml").write_text(f'by = "{by}"\n[llm]\n{table}\n', "utf-8")
        for name in ("p1", "p2"):
            lines = ["speaker,start_s,end_s,text"]
            for i in range(N // 2):
                lines += [
                    f"PAR,{4 * i},{4 * i + 1},go left one square Wong",
                    f"INV,{4 * i + 2},{4 * i + 3},okay",
                ]
            (folder / "talks" / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
        return folder

    return make


@pytest.mark.parametrize("by", ["llm", "hybrid"])
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("status 500", "failed"),
        ("status 429 0", "busy"),
        ("garbage", "no answer"),
        ("hang 1", "in time"),
        ("close", "broke off"),
        ("length", "cut off"),
        ("say ", "form"),
        ("say hello", "form"),
        ('say {"instructions": [{"op": "FLY"}]}', "form"),
        ("too_long", "context"),
    ],
)
def test_a_server_that_fails_everywhere_is_blamed_itself(
    study: Callable[..., Path], capsys: pytest.CaptureFixture[str], by: str, what: str, why: str
) -> None:
    folder = study(by)
    with FakeServer(what) as server:
        assert main(["ground", str(folder), "--endpoint", server.url]) == 2
    said = capsys.readouterr()
    assert server.url in said.err
    assert "server" in said.err
    assert why in said.err
    for wrong in ("--roles", "participant", "Wong", "square"):
        assert wrong not in said.err
    assert said.out == ""
    assert not list(folder.glob("steps*"))


@pytest.mark.parametrize("by", ["llm", "hybrid"])
def test_a_server_that_is_not_there_is_named(
    study: Callable[..., Path], capsys: pytest.CaptureFixture[str], by: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    assert main(["ground", str(study(by)), "--endpoint", url]) == 2
    said = capsys.readouterr().err
    assert url in said
    assert "Start it" in said


class Failing(FakeServer):
    """Fails at every third request."""

    def behaviour(self, body: dict) -> tuple[str, int]:
        what, number = super().behaviour(body)
        return (what, number) if number < 0 else ("status 500" if number % 3 == 2 else "ok", number)


@pytest.mark.parametrize("by", ["llm", "hybrid"])
def test_some_failures_are_counted_and_marked(
    study: Callable[..., Path], capsys: pytest.CaptureFixture[str], by: str
) -> None:
    folder = study(by)
    with Failing(answer=LEFT_ONE) as server:
        assert main(["ground", str(folder), "--endpoint", server.url]) == 0
        said = capsys.readouterr().out
        n = len([i for i in range(len(server.requests)) if i % 3 == 2])
    assert f"The language-model server gave no usable answer for {n} of {N} segments" in said
    assert "the server failed" in said
    kept = json.loads((folder / "grounding" / "provenance.json").read_text("utf-8"))
    assert kept["answers"] == {"asked": N, "unanswered": {"server_error": n}}
    segments = pl.read_parquet(folder / "grounding" / "segments.parquet")
    if by == "llm":
        doubted = segments.filter(pl.col("doubts") == "no_answer server_error")
        assert doubted.height == n
        assert set(doubted["status"]) == {"needs_review"}


def test_what_failed_stands_beside_the_doubts_of_rules() -> None:
    from test_hybrid import Stub, both

    found, _ = both(Stub("rules", "NONE", ("unread_words",)), Stub("llm", "NONE", ("no_answer", "timeout")))
    assert found.doubts == ("unread_words", "no_answer", "timeout")


def test_slow_answers_at_the_same_time_do_not_end_a_healthy_run() -> None:
    """Eight calls under way together fail together, and others are answered before and after."""
    n_workers = 8
    together = threading.Barrier(n_workers)

    class Slow(FakeServer):
        def behaviour(self, body: dict) -> tuple[str, int]:
            what, number = super().behaviour(body)
            if 0 <= number < n_workers:
                together.wait(30)
                return "status 501", number
            return what, number

    with Slow() as server, ThreadPoolExecutor(n_workers) as pool:
        model = LanguageModel(server.url, retries=0)
        texts = [f"go up three {i}" for i in range(3 * n_workers)]
        found = list(pool.map(lambda text: model.ground(segment(text), context()).doubts, texts))
        model.close()
    assert sum(doubts == ("no_answer", "server_error") for doubts in found) == n_workers


def test_a_dead_server_ends_a_run_of_many_workers() -> None:
    with FakeServer("status 501") as server:
        model = LanguageModel(server.url, retries=0)
        with pytest.raises(GroundingError, match="answers no more"), ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: model.ground(segment(f"go up {i}"), context()), range(200)))
        model.close()  # once nobody is asking any more
        assert len(server.requests) < 100


def test_more_calls_are_under_way_than_64_if_there_are_workers() -> None:
    enough = threading.Event()

    class Holding(FakeServer):
        under_way = 0

        def behaviour(self, body: dict) -> tuple[str, int]:
            what, number = super().behaviour(body)
            if number >= 0:
                with self.lock:
                    self.under_way += 1
                    if self.under_way > 64:
                        enough.set()
                enough.wait(60)
            return what, number

    with Holding() as server, ThreadPoolExecutor(70) as pool:
        model = LanguageModel(server.url, timeout_s=90, retries=0)
        found = list(
            pool.map(lambda i: model.ground(segment(f"go up three {i}"), context()).doubts, range(70))
        )
        model.close()
    assert enough.is_set()
    assert not any("no_answer" in doubts for doubts in found)
