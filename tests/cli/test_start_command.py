"""``fidm start``: what it prints, asks and writes, and with which code it ends."""

import json
import sys

import pytest

from fidm.cli.main import main
from fidm.simulate.twin import simulate_study


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    """Six dialogs as a simulated study has them."""
    folder = tmp_path_factory.mktemp("start") / "simulated"
    simulate_study(folder, task="grocery", n=6, seed=4, formats=("csv", "whisper"), language="en")
    return folder / "talks"


@pytest.fixture
def lab(talks, tmp_path):
    """The same with a table of participants."""
    folder = tmp_path / "lab"
    folder.mkdir()
    for path in talks.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    rows = [
        f"{path.stem},{'control' if i % 2 else 'patient'}" for i, path in enumerate(sorted(talks.iterdir()))
    ]
    (folder / "people.csv").write_text("\n".join(["code,dx", *rows]))
    return folder


def answers(monkeypatch, *said):
    """Somebody at a terminal who says this."""
    left = list(said)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.console.Console.input", lambda *_, **__: left.pop(0))
    return left


def test_nothing_is_written_before_somebody_agrees(lab, capsys, monkeypatch):
    assert main(["start", str(lab)]) == 1
    assert "To write it: add --yes" in capsys.readouterr().out
    assert main(["start", str(lab), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == []
    left = answers(monkeypatch, "n")
    assert main(["start", str(lab)]) == 1
    assert left == []
    assert not (lab / "study").exists()
    answers(monkeypatch, "y")
    assert main(["start", str(lab)]) == 0
    assert (lab / "study" / "study.toml").is_file()


def test_romanised_chinese_is_asked_about_with_every_file_named(lab, capsys):
    for n, said in ((1, "zyun2 zo2 haang4 loeng5 gaak3"), (2, "maai5 joek6 haang4 soeng5 heoi3")):
        rows = [f"INV,{9 * i},{9 * i + 1},okay\nPAR,{9 * i + 2},{9 * i + 5},{said}" for i in range(4)]
        (lab / f"Y{n}.csv").write_text("\n".join(["speaker,start_s,end_s,text", *rows]), "utf-8")
    main(["start", str(lab), "--yes"])
    said = " ".join("".join(capsys.readouterr()).split())
    assert "2 files in romanised Chinese" in said
    assert "Y1.csv, Y2.csv. Where there is a tier of characters" in said
    assert "zyun2" not in said


def test_the_next_step_names_the_groups(lab, capsys):
    assert main(["start", str(lab), "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"Next: fidm run {lab / 'study'} --label dx --normal control" in said
    assert "6 rows in people.csv, 6 matched by 'code'" in said
    assert main(["start", str(lab), "--yes"]) == 0
    assert "stay as they are" in capsys.readouterr().out


def test_what_is_not_clear_is_asked_and_may_stay_open(talks, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "lab"
    folder.mkdir()
    said = "left two then up and right to the snacks"
    rows = [f"{who},{t},{t + 1},{said}" for t in range(0, 20, 2) for who in ("A1",)]
    rows += [f"B2,{t},{t + 1},{said}" for t in range(1, 20, 2)]
    rows.sort(key=lambda row: int(row.split(",")[1]))
    (folder / "P1.csv").write_text("\n".join(["speaker,start_s,end_s,text", *rows]))
    answers(monkeypatch, "", "y")
    assert main(["start", str(folder), "--task", "grocery"]) == 1
    assert "Who is the participant is not clear in 1 file: P1.csv" in capsys.readouterr().out
    for path in (folder / "study").iterdir():
        path.unlink()
    answers(monkeypatch, "B2", "y")
    assert main(["start", str(folder), "--task", "grocery"]) == 0
    assert 'B2" = "participant"' in (folder / "study" / "grounding.toml").read_text()


def test_a_folder_without_anything_and_an_unknown_task(tmp_path, lab, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["start", str(tmp_path / "empty")]) == 2
    assert "has no dialogs" in capsys.readouterr().err
    assert main(["start", str(lab), "--task", "grocry", "--yes"]) == 2
    assert "grocery" in capsys.readouterr().err
    assert not (lab / "study").exists()
