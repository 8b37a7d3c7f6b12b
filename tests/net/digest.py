"""What a machine reads of a folder of results, boiled down to a few numbers per file.

A digest has the hash of everything but the floating-point numbers and hashes of them (keys, columns, types, texts, counts, the places of
gaps), three sums of those numbers, and a hash of their bits. Sums can be compared between machines whose
arithmetic differs in the last digit; bits only where nothing differs.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fidm

READ = (".json", ".jsonl", ".csv", ".parquet", ".toml", ".cha", ".eaf", ".srt", ".vtt", ".TextGrid")
"""Files that programs read; pictures, pages and notes are for people."""

LAST_BIT = re.compile(r"[0-9a-f]{16,64}|\d+(\.\d+)+[a-z0-9.]*")
"""Hashes of numbers, and versions of libraries: texts that are the same only where arithmetic is."""

LEFT_OUT = {"svg"}
"""Keys whose values are pictures."""


def digest_folder(folder: Path) -> dict[str, dict[str, Any]]:
    """The digests of all files of a folder that programs read, by their paths within it."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in READ)
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in found}


def digest_file(path: Path) -> dict[str, Any]:
    """The digest of one file; what is no table and no JSON is one text."""
    if path.suffix == ".parquet":
        return digest(_table(pl.read_parquet(path, glob=False)))
    if path.suffix == ".csv":
        return digest(_table(pl.read_csv(path, infer_schema_length=None)))
    if path.suffix == ".json":
        return digest(json.loads(path.read_text("utf-8")))
    if path.suffix == ".jsonl":
        return digest([json.loads(line) for line in path.read_text("utf-8").splitlines()])
    return digest(path.read_text("utf-8"))


def digest(value: Any) -> dict[str, Any]:
    """The digest of nested plain values."""
    numbers: list[float] = []
    exact: list[str] = []
    shape = hashlib.sha256()
    for part in _parts(value, numbers, exact):
        shape.update(part.encode())
        shape.update(b"\0")
    found: dict[str, Any] = {"shape": shape.hexdigest()[:16]}
    if numbers or exact:
        array = np.array(numbers, dtype=np.float64)
        weights = np.cos(np.arange(len(array)))  # so that exchanged numbers are seen
        found["bits"] = hashlib.sha256(array.tobytes() + "".join(exact).encode()).hexdigest()[:16]
        found["sums"] = [math.fsum(array), math.fsum(np.abs(array)), math.fsum(array * weights)]
    return found


def _table(frame: pl.DataFrame) -> dict[str, Any]:
    types = {name: str(kind) for name, kind in frame.schema.items()}
    return {"types": types, **{name: frame[name].to_list() for name in frame.columns}}


def _parts(value: Any, numbers: list[float], exact: list[str]) -> Iterator[str]:
    """Everything that is the same on every machine, one text after the other; the rest goes to the lists."""
    if isinstance(value, dict):
        yield "{"
        for key, one in value.items():
            yield str(key)
            if key not in LEFT_OUT:
                yield from _parts(one, numbers, exact)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for one in value:
            yield from _parts(one, numbers, exact)
        yield "]"
    elif isinstance(value, float) and math.isfinite(value):
        numbers.append(value)
        yield "number"
    elif isinstance(value, str) and LAST_BIT.fullmatch(value):
        exact.append(value)
        yield "exact"
    else:
        yield repr(value).replace(fidm.__version__, "VERSION")
