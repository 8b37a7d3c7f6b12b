"""No public name and no option of a verb is lost: scripts of users go on working."""

from __future__ import annotations

import importlib
import json

import pytest
from net.names import MODULES, NAMES, public_names

KNOWN = json.loads(NAMES.read_text("utf-8"))


@pytest.mark.parametrize("kind", ["python", "command line"])
def test_public_names_are_those_written_down(kind):
    assert public_names()[kind] == KNOWN[kind]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_leads_somewhere(module):
    found = importlib.import_module(module)
    assert [name for name in KNOWN["python"][module] if not hasattr(found, name)] == []
