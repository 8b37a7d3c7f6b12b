"""The file of vectors: private, shared, and hard to break."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from fidm.classify.encoder import VectorCache
from fidm.errors import DataError


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)


def test_vectors_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    with VectorCache(path) as cache:
        cache.put({"a": vector(1, -0.0, 3e-39), "none": vector()})
        cache.put({"a": vector(9), **{str(i): vector(i) for i in range(1200)}})
    with VectorCache(path) as cache:
        found = cache.get(["a", "none", "b", *map(str, range(1200))])
        assert found["a"].tobytes() == vector(1, -0.0, 3e-39).tobytes()
        assert len(found["none"]) == 0
        assert len(found) == 1202
        assert found["1199"].tolist() == [1199]
    with pytest.raises(DataError, match="closed before"):
        cache.get(["a"])


def test_files_that_cannot_be_used_say_what_to_do(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"not a database at all" * 100)
    with pytest.raises(DataError, match=r"damaged.*Move it away"):
        VectorCache(garbage)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE notes (a)")
    other.commit()
    other.close()
    with pytest.raises(DataError, match="something else"):
        VectorCache(tmp_path / "other")
    with pytest.raises(DataError, match="file of vectors"):
        VectorCache(tmp_path)
    with pytest.raises(DataError, match="cannot be made"):
        VectorCache(garbage / "below")
    for change in ("vector = x'00000000'", "dimension = 7", "checksum = 1", "vector = 'text'"):
        path = tmp_path / f"{len(change)}.sqlite"
        with VectorCache(path) as cache:
            cache.put({"a": vector(1)})
        raw = sqlite3.connect(path)
        raw.execute(f"UPDATE vectors SET {change}")
        raw.commit()
        raw.close()
        with VectorCache(path) as cache, pytest.raises(DataError, match="damaged"):
            cache.get(["a"])


def _write(path: Path, number: int) -> None:
    with VectorCache(path) as cache:
        for i in range(50):
            cache.put({f"{number}-{i}": vector(i), f"shared-{i}": vector(i)})


def test_processes_share_it(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_write, args=(path, i)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    with VectorCache(path) as cache:
        assert len(cache) == 150
