"""Five folders as labs have them, made by somebody who had not seen the code: each reaches a report, or says why not."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from fidm.cli.main import main

pytestmark = pytest.mark.usefixtures("no_pictures")

LABS = Path(__file__).parents[1] / "data" / "labs"


@pytest.fixture
def started(request, tmp_path, capsys):
    """A copy of a lab's folder, what fidm start said of it, and the code with which it ended."""
    folder = shutil.copytree(LABS / request.param, tmp_path / "lab")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code = main(["start", str(folder), "--yes", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {path: path.read_bytes() for path in before} == before
    return Path(found["study"]), found, code


def run(study, capsys, *options):
    """Take a study to its report; return what became of each step, and everybody's profile."""
    capsys.readouterr()
    assert main(["run", str(study), "--json", "--workers", "1", *options]) == 0
    steps = {one["step"]: one for one in json.loads(capsys.readouterr().out)}
    assert (study / "report.html").is_file()
    assert steps["report"]["outcome"] == "done"
    return steps, pl.read_csv(study / "profile.csv", infer_schema=False)


def participants_of(found):
    """Who is the participant in each file, by the speaker's name."""
    return {
        one["name"]: [who["name"] for who in one["speakers"] if who["role"] == "participant"]
        for one in found["files"]
    }


@pytest.mark.parametrize("started", ["clan"], indirect=True)
def test_chat_with_a_workbook(started, capsys):
    study, found, code = started
    people = found["participants"]
    assert (people["table"]["sheet"], people["table"]["id"]) == ("data", "id")
    assert people["pairs"] == {
        "SW-001": "SW001",
        "SW_005": "SW005",
        "SW-OO7": "SW007",
        "SW-8": "SW008",
        "SW-011": "SW011",
        "SW 012": "SW012_final",
    }
    assert people["without_row"] == ["SW019"]
    assert {"SW-004", "SW-006", "SW-020"} <= set(people["without_dialog"])
    assert people["left_out"] == ["SW-006", "SW-011"]
    assert people["table"]["excluded"] == {"consent": ["withdrew"]}
    assert "group" in people["groups"]
    assert set(map(tuple, participants_of(found).values())) == {("PAR",)}
    assert code == 0
    assert any(warning.startswith("2 turns without times") for warning in found["warnings"])

    steps, profile = run(study, capsys)
    said = " ".join(steps["ground"]["warnings"])
    assert "2 turns left out of durations and pauses: no times (SW019)" in said
    assert "facts left out: the dialogs' files say another" in said  # Dementia in the header, AD in the table
    assert "say another age than the table of participants, which counts (SW008)" in said
    assert "participants.xlsx" not in said
    assert "2 participants excluded: consent: withdrew (2)" in steps["fit"]["said"]
    assert steps["ground"]["notes"] == ["chat 8; en 8; participant PAR 8, assessor INV 8, other OTH 4"]
    assert "SW011" not in set(profile["participant"])  # withdrew
    assert {"SW001", "sw003", "SW007", "SW019"} <= set(profile["participant"])


@pytest.mark.parametrize("started", ["elan"], indirect=True)
def test_elan_with_six_tiers(started, capsys):
    study, found, code = started
    assert code == 0
    assert found["languages"] == {"yue": 5}
    assert found["task"] == "grocery"
    assert [who for (who,) in participants_of(found).values()] == [
        "VP01",
        "Participant",
        "VP04",
        "VP06",
        "VP09",
    ]
    roles = {who["name"]: who["role"] for one in found["files"] for who in one["speakers"]}
    assert roles["RA"] == "assessor"
    assert roles["Gestures"] == roles["手勢"] == "other"
    assert found["participants"]["table"]["file"] == "../vp_list.txt"
    assert found["participants"]["matched"] == 5
    _, profile = run(study, capsys)
    assert "VP06" in set(profile["participant"])


@pytest.mark.parametrize("started", ["asr"], indirect=True)
def test_what_recognisers_write(started, capsys):
    study, found, code = started
    assert code == 1
    assert len(found["files"]) == 7
    assert found["languages"] == {"en": 5, "yue": 2}
    assert {"rec_01.srt", "rec_01.tsv", "rec_01.vtt", "people.csv"} <= set(found["skip"])
    assert participants_of(found) == {
        **{f"rec_0{n}.json": [] for n in (1, 2, 5, 7)},
        "rec_04.json": ["1"],
        "rec_09.json": ["SPEAKER_00"],
        "rec_11.json": ["SPEAKER_00"],
    }
    (question,) = found["questions"]
    assert "4 files not told apart by speaker: rec_01.json" in question
    assert "said to be zh are taken for yue" in " ".join(found["warnings"])
    assert found["participants"]["matched"] == 7

    assert main(["run", str(study)]) == 2  # until somebody says who speaks
    said = capsys.readouterr().err
    assert "roles.csv" in said
    assert "rec_01.json: The role of no name is empty." in said
    roles = pl.read_csv(study / "roles.csv", infer_schema=False)
    alone = pl.col("role").is_null() | (pl.col("role") == "")
    roles.with_columns(pl.when(alone).then(pl.lit("participant")).otherwise("role").alias("role")).write_csv(
        study / "roles.csv"
    )
    steps, _ = run(study, capsys)
    assert any(one.startswith("4 dialogs have one speaker alone") for one in steps["ground"]["warnings"])


@pytest.mark.parametrize("started", ["batchalign"], indirect=True)
def test_two_participants_and_no_assessor(started, capsys):
    study, found, code = started
    assert code == 0
    assert participants_of(found) == {
        "gr01_walk.cha": ["PAR0"],
        **{f"gr0{n}_walk.cha": ["PAR1"] for n in (2, 5, 6, 7, 8)},
    }
    third = next(one for one in found["files"] if one["name"] == "gr06_walk.cha")["speakers"]
    assert {one["name"]: one["role"] for one in third} == {
        "PAR0": "assessor",
        "PAR1": "participant",
        **({"PAR2": "other"} if len(third) == 3 else {}),
    }
    assert any("Check roles.csv" in warning for warning in found["warnings"])
    run(study, capsys)
    (study / "grounding.toml").write_text(
        'talks = ".."\nskip = ["demographics.csv"]\n'
    )  # without anybody's word on who is who
    assert main(["ground", str(study)]) == 2
    assert "2 speakers are not known: 'PAR0', 'PAR1'" in capsys.readouterr().err


@pytest.mark.parametrize("started", ["spreadsheets"], indirect=True)
def test_ids_that_almost_match(started, capsys):
    study, found, code = started
    assert code == 0
    assert [one["name"] for one in found["files"]] == [f"S{n}.csv" for n in (1, 11, 2, 4, 5, 6, 8)]
    people = found["participants"]
    assert people["pairs"] == {f"S0{n}": f"S{n}" for n in (1, 2, 4, 5, 6, 8)}
    assert people["matched"] == 1  # S11
    assert {"S07", "S09", "S12"} <= set(people["without_dialog"])
    assert any("S1 (copy).csv = S1.csv" in warning for warning in found["warnings"])
    _, profile = run(study, capsys)
    rows = pl.read_parquet(study / "participants.parquet")
    assert rows.filter(pl.col("participant") == "S1").height == 1
    assert set(rows["participant"]) >= set(profile["participant"]) >= {"S1", "S2", "S11"}
