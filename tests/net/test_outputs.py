"""Every verb gives the numbers and files it gave before: the net below every change that should change nothing."""

from __future__ import annotations

import json

import pytest
from net.verbs import EXPECTED, arithmetic, run_verbs

SAME = 1e-9
"""How far sums may differ where the arithmetic differs."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    return run_verbs(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def expected():
    return json.loads(EXPECTED.read_text("utf-8"))


@pytest.mark.parametrize("kind", ["printed", "written"])
def test_every_output_is_as_before(kind, outputs, expected):
    found, known = outputs[kind], expected[kind]
    assert list(found) == list(known)
    exact = expected["arithmetic"] == arithmetic()
    assert [name for name in known if not is_same(found[name], known[name], exact=exact)] == []


def is_same(found, known, *, exact):
    """Whether two digests are of the same content; bits count where the arithmetic is the same."""
    if exact:
        return found == known
    near = pytest.approx(known["sums"], rel=SAME, abs=SAME) if "sums" in known else None
    rest = {name: value for name, value in known.items() if name not in ("bits", "sums")}
    return found.get("sums") == near and rest == {
        name: value for name, value in found.items() if name not in ("bits", "sums")
    }
