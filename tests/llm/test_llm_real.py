"""A real model behind a real server, end to end. How well so small a model reads is reported, not asserted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_server import CountingProxy
from llm_dialogs import context, segment
from real_server import running_server, weights
from resume_worker import SHORT, TEXTS

from fidm.grounding.base import Proposal
from fidm.grounding.llm.client import AnswerCache
from fidm.grounding.llm.grounder import LanguageModel
from fidm.grounding.route.replay import replay

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(log=tmp_path_factory.mktemp("server") / "log") as address:
        yield address


def check(proposal: Proposal) -> None:
    """A proposal that can be used: probabilities in order, moves legal."""
    here = context()
    assert proposal.grounder == "llm"
    assert all(0 <= reading.probability <= 1 for reading in proposal.readings)
    for reading in proposal.readings:
        walk = replay(reading.program, here.terrain, here.position)
        for state, action in zip(walk.states, walk.actions, strict=True):
            assert action == -1 or here.terrain.task.actions[action] in here.terrain.task.legal(state)


def test_a_real_model_grounds_real_words(server: str, tmp_path: Path) -> None:
    model = LanguageModel(server, model_file=weights(), cache=tmp_path / "answers.sqlite", max_instructions=2)
    proposals = [model.ground(segment(text), context()) for text in TEXTS[:3]]
    found = model.provenance()
    assert model.cache is not None
    assert len(model.cache) >= 3
    model.close()
    for proposal in proposals:
        check(proposal)
        assert "prompt_cut" not in proposal.doubts
    # The schema is enforced, so every answer has the right form.
    assert found["enforced"] is True
    assert all("no_answer" not in proposal.doubts for proposal in proposals)
    assert found["model_file_sha256"].startswith("b179c952")
    assert found["server"]["n_params"] == 134_515_008
    assert "/" not in json.dumps(found)


def test_four_threads_ask_at_once_with_logprobs(server: str) -> None:
    model = LanguageModel(server, template=SHORT, logprobs=True, max_instructions=2)
    with ThreadPoolExecutor(4) as pool:
        proposals = list(pool.map(lambda text: model.ground(segment(text), context()), TEXTS[:4]))
    model.close()
    for proposal in proposals:
        check(proposal)
    assert any(proposal.readings[0].probability < 1 for proposal in proposals)


def test_a_killed_run_goes_on_where_it_was(server: str, tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    with CountingProxy(server) as proxy:
        command = [sys.executable, str(HERE / "resume_worker.py"), proxy.url, str(cache)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            assert [worker.stdout.readline().strip() for _ in range(2)] == [b"1", b"2"]
            os.kill(worker.pid, signal.SIGKILL)
        kept = AnswerCache(cache)
        n_kept = len(kept)
        kept.close()
        assert n_kept >= 2
        asked_before = [json.dumps(body, sort_keys=True) for body in proxy.requests]
        assert len(asked_before) <= n_kept + 1  # besides what is kept, only the call that was under way
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        assert done.stdout.split() == [b"1", b"2", b"3", b"4", b"5"]
        asked_after = [json.dumps(body, sort_keys=True) for body in proxy.requests][len(asked_before) :]
        assert asked_after
        assert not set(asked_before[:n_kept]) & set(asked_after)
        n_requests = len(proxy.requests)
        subprocess.run(command, stdout=subprocess.PIPE, check=True)
        assert len(proxy.requests) == n_requests
