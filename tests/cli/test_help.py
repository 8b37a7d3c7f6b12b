"""Help is quick: what takes long to import is imported when a verb runs, not when it is described."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"matplotlib", "numba", "numpy", "pandas", "polars", "scipy", "sklearn", "torch", "transformers"}
ASK = """
import contextlib, io, json, sys
from fidm.cli.main import app, main

def verbs(app, words=()):
    for name in app:
        if not name.startswith("-"):
            yield (*words, name)
            yield from verbs(app[name], (*words, name))

asked = [(), *verbs(app)]
with contextlib.redirect_stdout(io.StringIO()):
    codes = {main([*words, "--help"]) for words in asked} | {main(["task", "list"])}
print(json.dumps([len(asked), sorted(codes), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_no_help_imports_what_takes_long():
    found = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    n_asked, codes, imported = json.loads(found.stdout)
    assert n_asked > 25
    assert codes == [0]
    assert HEAVY & set(imported) == set()


def test_steps_before_classifying_do_without_its_libraries():
    ask = "import sys, fidm.line, fidm.present.study; print(*{'pandas', 'sklearn'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
