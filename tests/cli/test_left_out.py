"""Whatever is left out on the way from a folder to the report is said once, and counted in the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from fidm.cli.main import main
from fidm.io.dialogs import read, write
from fidm.report.report import build_report
from fidm.simulate.twin import simulate_study

SECRET = "zanzibar"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = tmp_path_factory.mktemp("left-out") / "study"
    simulate_study(study, task="errands", n=8, seed=1, language="en", formats=("jsonl",), dialogs=True)
    return study


@pytest.fixture
def odd(made: Path, tmp_path: Path) -> Path:
    """A study of seven dialogs in which something of every kind is left out."""
    study, talks = tmp_path / "odd", tmp_path / "odd" / "talks"
    shutil.copytree(made / "talks", talks)
    chat = talks / "P0000001.cha"
    write(read(talks / "P0000001.jsonl")[0], chat)
    lines = chat.read_text("utf-8").splitlines()
    told = [
        "@ID:\teng|x|PAR|72;03.|female|patient||Participant|||" if "|PAR|" in one else one for one in lines
    ]
    chat.write_text("\n".join(told) + "\n", "utf-8")
    (talks / "P0000001.jsonl").unlink()
    turns = [json.loads(line) for line in (talks / "P0000002.jsonl").read_text("utf-8").splitlines()]
    last = {"participant": "P0000002", "start_s": 9000.0, "end_s": 9001.0}
    turns += [{**last, "speaker": "MUM", "text": SECRET}] * 1
    turns += [
        {**last, "speaker": "PAR", "role": "participant", "text": "", "start_s": 9001.0, "end_s": 9002.0}
    ]
    turns += [{"participant": "P0000002", "speaker": "PAR", "role": "participant", "text": f"hm {SECRET}",
               "start_s": None, "end_s": None}]  # fmt: skip
    (talks / "P0000002.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
    silent = {
        "participant": "P0000003",
        "speaker": "PAR",
        "role": "participant",
        "start_s": 0.0,
        "end_s": 1.0,
    }
    (talks / "P0000003.jsonl").write_text(json.dumps({**silent, "text": f"lovely {SECRET}"}) + "\n", "utf-8")
    (talks / "bad.csv").write_text(f"speaker,start_s,end_s,text\nPAR,5,1,{SECRET}\n", "utf-8")
    (talks / "scan.pdf").write_text("x", "utf-8")
    (talks / "meta.json").write_text("{}", "utf-8")
    (study / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    (study / "grounding.toml").write_text(
        'skip = ["meta.json"]\nuntimed = "keep"\n[speakers]\nMUM = "other"\n', "utf-8"
    )
    rows = ["participant,age,excluded", "P0000001,65,", "P0000002,70,", "P0000003,71,", "P0000004,60,moved away",
            "P0000005,61,", "P0000006,61,", "P0000007,63,", "X99,61,"]  # fmt: skip
    (study / "participants.csv").write_text("\n".join(rows) + "\n", "utf-8")
    (study / "episodes.csv").write_text("participant,episode,visit\nP0000001,1,a\nP0000001,2,b\n", "utf-8")
    return study


LINES = (
    "1 file left out: in no known format (scan.pdf)",
    "1 file left out: named in skip of grounding.toml (meta.json)",
    "1 file left out: problems, listed in grounding/problems.csv (bad.csv)",
    "1 turn left out: said by speakers with the role other (P0000002)",
    "1 turn left out: no words (P0000002)",
    "1 turn left out of durations and pauses: no times (P0000002)",
    "1 participant left out of comparisons by columns of the table: no row in the table of participants "
    "(P0000008)",
    "1 fact left out: the dialogs' files say another age than the table of participants, which counts "
    "(P0000001)",
    "1 episode left out: rows of the table of episodes without a dialog (P0000001)",
    "1 participant has no dialog: X99",
    "no moves were read in dialogs of 1 participant; look at them in fidm review: P0000003",
    "1 participant excluded: moved away (1)",
)


@pytest.mark.usefixtures("no_pictures")
def test_everything_that_is_left_out_is_said_and_counted(
    odd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ground", str(odd), "--skip-bad"]) == 0
    said = capsys.readouterr().out
    for line in LINES:
        assert said.count(line) == 1, line
    assert SECRET not in said

    assert main(["ground", str(odd), "--skip-bad", "--json"]) == 0
    text = capsys.readouterr().out
    assert SECRET not in text
    rows = json.loads(text)["omissions"]
    assert {(row["what"], row["n"]) for row in rows if row["what"] in ("file", "turn", "fact")} == {
        ("file", 1), ("turn", 1), ("fact", 1),
    }  # fmt: skip
    told = {row["why"]: row["who"] for row in rows if row["what"] == "participant"}
    assert told["excluded: moved away"] == ["P0000004"]
    assert told["no dialog or episode"] == ["X99"]

    assert main(["run", str(odd), "--skip-bad", "--again"]) == 0
    said = capsys.readouterr().out
    for line in LINES:
        assert said.count(line) == 1, line
    data = build_report(odd, classify=False, skip_bad=True).data
    (table,) = [one for part in data["sections"] for one in part["tables"] if one["id"] == "left-out"]
    shown = {(row[0], row[1]): row[2] for row in table["rows"]}
    assert shown["file", "in no known format"] == 1
    assert shown["participant", "excluded: moved away"] == 1
    kinds = {row[0].rstrip("s") for row in table["rows"]}
    assert kinds >= {"file", "turn", "fact", "participant", "segment", "action"}
    assert not any(SECRET in str(row) for row in table["rows"])


def test_a_folder_without_a_usable_dialog_says_why(odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (odd / "talks").glob("P*"):
        path.unlink()
    assert main(["ground", str(odd), "--skip-bad"]) == 2
    said = capsys.readouterr().err
    for part in (str(odd / "talks"), "bad.csv", "meta.json", "scan.pdf", "Repair"):
        assert part in said
    (odd / "talks" / "bad.csv").unlink()
    (odd / "talks" / "meta.json").unlink()
    assert main(["ground", str(odd)]) == 2
    assert "has no dialogs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "verb", ["fit", "evidence", "report", "run", "reliability", "compare --by age", "classify"]
)
def test_a_study_in_which_everybody_is_excluded_says_so(
    odd: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    who = [f"P000000{i}" for i in range(1, 9)]
    (odd / "participants.csv").write_text(
        "participant,age,excluded\n" + "".join(f"{one},60,moved away\n" for one in who), "utf-8"
    )
    assert main(["ground", str(odd), "--skip-bad"]) == 0
    words = verb.split()
    assert main([words[0], str(odd), *words[1:], "--skip-bad"]) == 2
    said = capsys.readouterr().err
    assert str(odd) in said
    assert "8 participants excluded: moved away (8)" in said


@pytest.mark.parametrize("verb", ["fit", "evidence"])
def test_a_study_of_doubts_alone_names_itself_and_the_review(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talks").mkdir()
    (tmp_path / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    for name in ("p1", "p2", "p3"):
        turns = "speaker,start_s,end_s,text\nPAR,0,1,go left\nINV,2,3,okay\n"
        (tmp_path / "talks" / f"{name}.csv").write_text(turns, "utf-8")
    assert main(["ground", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main([verb, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"Error: {tmp_path}: ")
    assert f"need review, and may be why: fidm review {tmp_path}" in said


def test_what_files_say_of_people_is_known_without_a_table_and_may_be_corrected(
    odd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (odd / "participants.csv").unlink()
    (odd / "episodes.csv").unlink()
    chat = odd / "talks" / "P0000001.cha"
    for age in ("72", "81"):
        chat.write_text(chat.read_text("utf-8").replace("|72;03.|", f"|{age};03.|"), "utf-8")
        assert main(["ground", str(odd), "--skip-bad"]) == 0
        assert "no row" not in capsys.readouterr().out
        people = pl.read_parquet(odd / "participants.parquet")
        assert people.filter(participant="P0000001")["age"].to_list() == [float(age) + 0.25]


@pytest.mark.parametrize("row", ["p0000002", "P-2", "P 0000002.cha"])
def test_an_exclusion_that_reaches_nobody_stops(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str
) -> None:
    study = tmp_path / "study"
    shutil.copytree(made / "talks", study / "talks")
    (study / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    people = f"participant,excluded\nP0000001,\n{row},withdrew consent\nP0000009,never came\n"
    (study / "participants.csv").write_text(people, "utf-8")
    assert main(["ground", str(study)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{row} is excluded, and P0000002, probably the same person, is not" in said
    assert "[participants.ids]" in said
    assert "never came" not in said
    assert not (study / "steps.parquet").exists()
    (study / "participants.csv").write_text(people.replace(row, "P0000002"), "utf-8")
    assert main(["ground", str(study)]) == 0
