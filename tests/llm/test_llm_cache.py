"""The file of answers: private, shared, and hard to break."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from fidm.errors import GroundingError
from fidm.grounding.llm.client import AnswerCache, Stored


def stored(text: str = "x") -> Stored:
    return Stored({"choices": [{"message": {"content": text}}]}, True, 0.25)


def test_answers_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "study" / "answers.sqlite"
    cache = AnswerCache(path)
    cache.put("a", stored("左 \ud800 \x00"))
    cache.put("a", stored("later"))
    assert cache.get("b") is None
    assert cache.keys() == {"a"}
    cache.close()
    again = AnswerCache(path)
    assert again.get("a") == stored("左 \ud800 \x00")
    assert len(again) == 1
    again.close()
    with pytest.raises(GroundingError, match="closed"):
        again.get("a")
    assert "左" not in repr(stored("左"))


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")
    cache.put("a", stored())
    files = list(tmp_path.iterdir())
    assert {file.name for file in files} >= {"answers.sqlite", "answers.sqlite-wal"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    cache.close()


def test_threads_share_it(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")

    def work(number: int) -> None:
        for i in range(50):
            cache.put(f"{number % 4}-{i}", stored())
            assert cache.get(f"{number % 4}-{i}") is not None

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 200
    cache.close()


def _write(path: Path, number: int) -> None:
    cache = AnswerCache(path)
    for i in range(100):
        cache.put(f"{number}-{i}", stored())
    cache.close()


def test_processes_share_it(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_write, args=(path, i)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    cache = AnswerCache(path)
    assert len(cache) == 300
    cache.close()


def test_files_that_cannot_be_used_say_what_to_do(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"not a database at all" * 100)
    with pytest.raises(GroundingError, match=r"damaged.*Move it away"):
        AnswerCache(garbage)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE notes (a)")
    other.commit()
    other.close()
    with pytest.raises(GroundingError, match="something else"):
        AnswerCache(tmp_path / "other")
    with pytest.raises(GroundingError, match="file of answers"):
        AnswerCache(tmp_path)
    with pytest.raises(GroundingError, match="cannot be made"):
        AnswerCache(garbage / "below")


def test_a_damaged_page_or_row_is_an_error_not_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    cache = AnswerCache(path)
    for i in range(200):
        cache.put(f"{i:064d}", stored("y" * 200))
    cache.close()
    raw = bytearray(path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    path.write_bytes(raw)
    cache = AnswerCache(path)
    with pytest.raises(GroundingError, match="damaged"):
        cache.get("0" * 64)
    cache.close()
    path.unlink()
    cache = AnswerCache(path)
    cache.close()
    row = sqlite3.connect(path)
    row.execute("INSERT INTO answers (key, answer) VALUES ('a', ?)", (json.dumps({"body": 1}),))
    row.commit()
    row.close()
    cache = AnswerCache(path)
    with pytest.raises(GroundingError, match="damaged"):
        cache.get("a")
    cache.close()
