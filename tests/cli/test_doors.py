"""Messages speak the language of the door people came through: Python's arguments, or options that exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

import fidm
from fidm.cli.main import app, main
from fidm.errors import DataError, command_line, remedy

SOURCE = Path(fidm.__file__).parent
IN_PYTHON_ALONE = {
    "errors.py", "testing.py", "plot/style.py", "tasks/beliefs.py", "tasks/behaviour.py", "tasks/gym.py",
    "fit/choices.py", "fit/effort_alone.py", "experiments/held_out.py", "experiments/families.py",
    "simulate/cohort.py", "model/channels.py", "model/amounts.py",
}  # fmt: skip
"""Modules that no verb uses, or whose messages no verb can meet."""

PYTHON = re.compile(
    r"\b[a-z_]+=(True|False|…|'|\"|NAME|FILE|\[|\{|[01]\b)"  # an argument with its value
    r"|\b(load_fit|read_cohort|fidm\.[a-z_]+)\("  # a function
    r"|\b(api_key|however_long|allow_remote)\b|\bModel\.[a-z]"
)
IN_FORMULAS = {
    ("fit/regression.py", "base="),
    ("fit/regression.py", "extrapolation="),
    ("cli/", "df=3"),
}
"""What people write in a formula, by either door."""


def trees():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8"))


def is_remedy(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "remedy"


def texts(node, *, door):
    """Literal texts below a node, as a door shows them; no docstrings."""
    if is_remedy(node):
        yield from texts(node.args[door == "command line"], door=door)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    for child in ast.iter_child_nodes(node):
        yield from texts(child, door=door)


def messages(node, *, door):
    """The texts of a node with several words, and no markup."""
    shown = texts(node, door=door)
    return [
        (line, text)
        for line, text in shown
        if " " in text.strip() and not re.search(r"<[?!/A-Za-z]|<svg", text)
    ]


def remedies():
    for name, tree in trees():
        for node in ast.walk(tree):
            if is_remedy(node):
                yield name, node


def options():
    """The options of every verb, by its words."""
    found = defaultdict(set)

    def walk(one, words):
        for name in one:
            if name in ("-h", "--help", "--version"):
                continue
            walk(one[name], (*words, name))
        if one.default_command is not None:
            for argument in one.assemble_argument_collection():
                found[" ".join(words)].update(argument.names)

    walk(app, ())
    return found


def test_no_message_of_the_command_line_names_python():
    wrong = []
    for name, tree in trees():
        if name in IN_PYTHON_ALONE:
            continue
        for line, text in messages(tree, door="command line"):
            for hit in PYTHON.finditer(text):
                if not any(name.startswith(file) and part in text for file, part in IN_FORMULAS):
                    wrong.append(f"{name}:{line}: {hit[0]!r} in {text!r}")
    for name, node in remedies():  # also those of one word
        for line, text in texts(node, door="command line"):
            if PYTHON.search(text):
                wrong.append(f"{name}:{line}: {text!r}")
    assert not wrong, "\n".join(wrong)


def test_every_option_that_a_message_names_exists():
    known = options()
    every = set().union(*known.values())
    n = 0
    for name, tree in trees():
        if name.startswith("cli/main"):
            continue
        for line, text in texts(tree, door="command line"):
            for verb, option in re.findall(r"(?:fidm ([a-z]+)[^-.]*? )?(?<![\w-])(--[a-z][a-z-]+)", text):
                if not re.search(r"npm|apt-get|pip |^--version$", text):  # of other programs
                    n += 1
                    assert option in known.get(verb, every), f"{name}:{line}: {text}"
    assert n > 60


def test_python_is_not_told_of_options_by_a_remedy():
    for name, node in remedies():
        for line, text in texts(node, door="Python"):
            assert not re.search(r"(?<![\w-])--[a-z]", text), f"{name}:{line}: {text}"


def test_the_door_closes_again():
    with pytest.raises(DataError), command_line():
        assert remedy("overwrite=True", "--overwrite") == "--overwrite"
        raise DataError("")
    assert remedy("overwrite=True", "--overwrite") == "overwrite=True"


def test_the_same_mistake_by_both_doors(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["simulate", str(tmp_path), "--people", "3", "--task", "errands"]) == 2
    said = capsys.readouterr().err
    assert "--overwrite" in said
    assert "overwrite=True" not in said
    with pytest.raises(DataError, match="replace it: overwrite=True") as told:
        fidm.simulate_study(tmp_path, task="errands", n=3)
    assert "--" not in str(told.value)


def test_a_bad_cohort_by_both_doors(tmp_path, capsys):
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 6, seed=1)
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    steps = next((tmp_path / "study").glob("steps.*"))
    kept = steps.read_text("utf-8").splitlines() if steps.suffix == ".csv" else None
    table = pl.read_parquet(steps) if kept is None else pl.read_csv(steps)
    spoiled = table.with_columns(action=pl.lit("fly").cast(table.schema["action"], strict=False))
    spoiled.write_parquet(steps) if kept is None else spoiled.write_csv(steps)
    assert main(["fit", str(tmp_path / "study")]) == 2
    said = capsys.readouterr().err
    assert "leave these people out with --skip-bad" in said
    assert "strict=" not in said
    with pytest.raises(DataError, match="leave these people out with strict=False"):
        fidm.read_cohort(tmp_path / "study")
