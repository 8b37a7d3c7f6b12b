"""The command line: verbs, exit codes, JSON, and errors as sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources

import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError


@pytest.fixture
def open_floor(tmp_path):
    text = (resources.files("fidm.tasks") / "builtin" / "grocery_small.toml").read_text("utf-8")
    head, rest = text.split('drawing = """', 1)
    tail = rest.split('"""', 1)[1]
    rows = ["#" * 20, "#V" + "." * 16 + "M#"] + ["#" + "." * 18 + "#"] * 2 + ["#P" + "." * 17 + "#"]
    rows += ["#" + "." * 18 + "#", "#SX" + "." * 15 + "B#", "####E#####G###D##K##"]
    path = tmp_path / "open.toml"
    path.write_text(f'{head}drawing = """\n' + "\n".join(rows) + f'\n"""{tail}')
    return path


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fidm", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", fidm.builtin_tasks())
def test_check_says_usable(name, capsys):
    assert main(["check", name, "--no-vary"]) == 0
    assert "✓ usable" in capsys.readouterr().out


def test_check_of_a_bad_task_exits_with_1_and_says_what_to_change(open_floor, capsys):
    assert main(["check", str(open_floor), "--no-vary"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "✗ not usable" in said
    assert 'normaliser = "mean"' in said


def test_check_of_the_same_map_with_mean_passes(open_floor, capsys):
    open_floor.write_text(open_floor.read_text().replace('normaliser = "sum"', 'normaliser = "mean"'))
    assert main(["check", str(open_floor), "--no-vary"]) == 0


def test_check_for_machines(capsys):
    assert main(["check", "errands", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["usable"] is True
    assert len(result["settings"]) == 12


def test_check_runs_as_a_program():
    done = run("check", "grocery", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["fewest_actions"] == 59
    assert done.stderr == ""


def test_errors_are_sentences_on_the_error_stream(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("format = 1\nname = 3\nsurprise = 1\n")
    done = run("check", path)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "name (line 2)" in done.stderr
    assert "surprise (line 3)" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_names_cannot_smuggle_terminal_markup(open_floor, capsys):
    text = open_floor.read_text().replace('action = "PAY"', 'action = "[red]PAY[/blue]"')
    open_floor.write_text(text.replace('label = "till"', 'label = "[bold"'))
    assert main(["check", str(open_floor), "--no-vary"]) == 1
    assert "[red]PAY[/blue]" in capsys.readouterr().out
    assert main(["task", "show", str(open_floor)]) == 0


def test_unknown_verbs_and_options_fail_politely():
    for arguments in (["dance"], ["check"], ["check", "grocery", "--loud"]):
        done = run(*arguments)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr + done.stdout


def test_task_list_and_show(tmp_path, capsys):
    assert main(["task", "list"]) == 0
    assert "errands" in capsys.readouterr().out
    out = tmp_path / "map.svg"
    assert main(["task", "show", "grocery", "--out", str(out)]) == 0
    assert out.read_text().startswith("<?xml")
    shown = capsys.readouterr().out
    assert "V vegetables (target)" in shown
    assert main(["task", "show", "grocery", "--completed", "meat, bakery", "--phase", "checkout"]) == 0
    assert "completed: meat, bakery" in capsys.readouterr().out


def test_task_copy_starts_a_task_of_ones_own_and_overwrites_nothing(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    assert main(["task", "copy", "errands", str(path)]) == 0
    assert fidm.read_task(path).name == "mine"
    for stem, name in (
        ("Our Town-2", "our_town_2"),
        ("2", "errands"),
        ("市場", "errands"),
        ("a" * 65, "errands"),
    ):
        assert main(["task", "copy", "errands", str(tmp_path / f"{stem}.toml")]) == 0
        assert fidm.read_task(tmp_path / f"{stem}.toml").name == name
    path.write_text("mine")
    assert main(["task", "copy", "errands", str(path)]) == 2
    assert path.read_text() == "mine"
    assert main(["task", "copy", "cake", str(tmp_path / "cake.toml")]) == 2


def test_task_show_refuses_what_cannot_be(tmp_path, capsys):
    assert main(["task", "show", "grocery", "--out", str(tmp_path / "map.docx")]) == 2
    assert main(["task", "show", "grocery", "--completed", "cake"]) == 2
    assert main(["task", "show", "grocery", "--phase", "dessert"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_demo_runs_the_whole_line(no_pictures, briefly_classified, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--people", "62", "--language", "yue"]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"study"}
    results = {p.name for p in (tmp_path / "study" / "results").iterdir()}
    assert results >= {"evidence.png", "localize.png", "localize.json", "localize.csv"}
    said = capsys.readouterr().out
    assert "62 dialogs in 7 formats" in said
    assert "of segments led" in said
    assert "turned away" in said
    assert f"{len(fidm.read_cohort(tmp_path / 'study'))} participants and " in said
    report = tmp_path / "study" / "report.html"
    assert f"open {report.resolve().as_uri()}" in said
    assert report.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh-Hant"}, "zh"),
        ({"LANG": "zh_TW.UTF-8@x"}, "zh"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_HK.UTF-8"}, "yue"),
        ({"LANG": "zh_MO"}, "yue"),
        ({"LANG": "en_GB", "LC_MESSAGES": "yue_HK.UTF-8"}, "yue"),
        ({"LANG": "zh_HK", "LC_ALL": "en_HK.UTF-8"}, "en"),
        ({"LANG": "zh_HK", "LC_ALL": ""}, "yue"),
    ],
)
def test_the_demo_speaks_the_language_of_the_terminal(environment, language, monkeypatch, tmp_path):
    asked = {}

    def noted(*_, **options):
        asked.update(options)
        raise DataError("enough")

    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("fidm.simulate.twin.simulate_study", noted)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert asked["language"] == language
    assert main(["demo", "--out", str(tmp_path), "--language", "yue"]) == 2
    assert asked["language"] == "yue"


def test_version_and_help(capsys):
    assert run("--version").stdout.strip() == fidm.__version__
    assert "check" in run("--help").stdout


def test_importing_fidm_loads_nothing_heavy():
    code = "import sys, fidm; print(*[m for m in ('numpy', 'scipy', 'pydantic', 'matplotlib', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_public_name_can_be_had():
    for name in fidm.__all__:
        assert getattr(fidm, name) is not None
    assert set(fidm.__all__) <= set(dir(fidm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fidm.nothing


def test_a_closed_pipe_is_neither_a_verdict_nor_a_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "fidm", "check", "errands", "--no-vary"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_terminal_without_our_letters_gets_question_marks():
    done = subprocess.run(
        [sys.executable, "-m", "fidm", "check", "errands", "--no-vary"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0
    assert b"? usable" in done.stdout
