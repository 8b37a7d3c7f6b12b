"""The house only gets smaller and simpler: what ``scripts/house.py`` measures stays below its ceilings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import house  # noqa: E402
from house import CEILINGS, SOURCES, measure  # noqa: E402

WIDEST = 20
"""How many modules may stand side by side, for good."""


@pytest.mark.parametrize("package", SOURCES)
def test_nothing_grows_beyond_its_ceiling(package):
    """A ceiling that is too low for a new feature is raised by hand, in a commit that says why."""
    ceilings = json.loads(CEILINGS.read_text("utf-8"))[package]
    found = measure(package)
    assert {name: n for name, n in found.items() if n > ceilings[name]} == {}
    assert found["modules side by side"] <= WIDEST
    assert found["import cycles"] == found["re-exports between inner modules"] == 0


def test_where_ruff_does_not_run_it_says_so(monkeypatch):
    monkeypatch.setattr(house, "COMPLEX", "many")  # which ruff refuses
    with pytest.raises(SystemExit, match="counts branches with ruff, which did not run: "):
        house.complex_functions("fidm")
