"""Help is quick: what takes long to import is imported when a verb runs, not when it is described."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from cyclopts.completion.detect import ShellDetectionError

from fidm.cli.main import VERBS, app, main

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


SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete_every_verb_and_its_options(shell, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZSH", raising=False)
    monkeypatch.delenv("ZSH_CUSTOM", raising=False)
    assert main(["--install-completion", "--shell", shell]) == 0
    path = Path(capsys.readouterr().out.split("Wrote ")[1].splitlines()[0])
    assert path.is_relative_to(tmp_path)
    script = path.read_text("utf-8")
    for words in (words for verbs in VERBS.values() for words in verbs):
        assert words.split()[-1] in script
    for option in ("permutations", "skip-bad", "install-completion"):  # verbs are not yet imported
        assert option in script
    program = which(shell)
    if program:
        subprocess.run([program, "-n", str(path)], check=True)


def test_bash_completes_a_verb_and_an_option():
    script = app.generate_completion(shell="bash")
    ask = "\n_fidm; echo ${COMPREPLY[*]}\n"
    for words, expected in (
        ("fidm clas", "classify"),
        ("fidm audit ag", "agreement"),
        ("fidm fit x --re", "--regress"),
    ):
        line = f"COMP_WORDS=({words}); COMP_CWORD={words.count(' ')}"
        found = subprocess.run(
            ["bash", "-c", f"{script}\n{line}{ask}"], capture_output=True, text=True, check=True
        )
        assert found.stdout.split() == [expected]


def test_an_unknown_shell_has_to_be_named(monkeypatch, capsys):
    def unknown():
        raise ShellDetectionError

    monkeypatch.setattr("cyclopts.completion.detect.detect_shell", unknown)
    assert main(["--install-completion"]) == 2
    assert "--shell bash" in capsys.readouterr().err
