"""Encoders shared by the tests of this folder, and no network for any of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_bert
import torch
import transformers

import fidm
from fidm.classify.language import Texts, participant_texts
from fidm.cohort import Cohort
from fidm.simulate.talk import simulate_talks


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert.tiny_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def talk() -> tuple[Cohort, Texts]:
    """Twelve simulated people and what they said in Cantonese."""
    talks = simulate_talks(fidm.load_task("grocery"), 12, seed=5)
    return talks.cohort, participant_texts(talks.transcripts)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every attempt to reach anything fails, and fails the test too if somebody swallowed the error."""
    attempts: list[str] = []

    def refuse(*arguments: Any, **options: Any) -> Any:
        attempts.append(repr(arguments[-1:]))
        raise OSError("there is no network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    yield
    assert not attempts
