"""Decisions reach the verbs: fit and the others apply them first, ground keeps them, audit checks them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import draw_sample
from fidm.grounding.review.trail import Kind, Trail
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.io.dialogs import write

TALKS = fidm.simulate_talks(fidm.load_task("grocery"), 4, seed=4, language="en")


@pytest.fixture
def study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "study"
    (folder / "talks").mkdir(parents=True)
    for transcript in TALKS.transcripts:
        write(transcript, folder / "talks" / f"{transcript.participant}.csv", format="csv")
    (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    assert main(["ground", str(folder)]) == 0
    capsys.readouterr()
    return folder


def judge(study: Path, who: str, kind: Kind, *numbers: int, sample: str = "") -> None:
    grounded, trail = read_proposed(study), Trail(study)
    dialog = grounded.dialogs[0]
    for number in numbers:
        segment = review_dialog(dialog, trail.decisions, grounded.terrain)[number]
        trail.append(decide(dialog, segment, grounded.terrain, reviewer=who, kind=kind, sample=sample))


@pytest.mark.usefixtures("no_pictures")
def test_fit_and_evidence_use_the_reviewed_traces(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = fidm.read_cohort(study)
    judge(study, "Ann", "reject", 1)
    assert main(["fit", str(study), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["participants"] == 4
    assert "1 new decision" in said.err
    assert "1 rejected" in said.err
    after = fidm.read_cohort(study)
    assert after.n_segments == before.n_segments - 1
    assert np.asarray(after.weight).sum() < np.asarray(before.weight).sum()
    judge(study, "Ann", "accept", 1)
    assert main(["evidence", str(study), "--json"]) == 0
    said = capsys.readouterr()
    assert "1 new decision" in said.err
    assert fidm.read_cohort(study).n_segments == before.n_segments
    status = pl.read_parquet(study / "segments.parquet")["status"]
    assert (status == "reviewed").sum() == 1


def test_ground_keeps_the_decisions_and_says_what_became_of_them(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(study, "Ann", "accept", 0, 1)
    judge(study, "Ann", "reject", 2)
    assert main(["ground", str(study)]) == 0
    said = capsys.readouterr().out
    assert "2 segments read by hand, 1 rejected" in said
    assert "read by hand" in said
    first = TALKS.transcripts[0].participant
    name = study / "talks" / f"{first}.csv"
    name.write_text(name.read_text("utf-8").replace(",go ", ",please go "), "utf-8")
    assert main(["ground", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["review"]
    assert found["n_decisions"] == 3
    assert found["n_reviewed"] + found["n_rejected"] + found["n_lost"] + found["n_stale"] == 3
    assert main(["fit", str(study)]) == 0
    assert capsys.readouterr().err == ""


def test_verify_says_who_when_and_whether(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify", str(study)]) == 0
    assert "No review decisions" in capsys.readouterr().out
    judge(study, "Ann [bold]", "accept", 0, 1)
    judge(study, "Bo", "reject", 1)
    assert main(["audit", "verify", str(study)]) == 0
    said = capsys.readouterr().out
    head = Trail(study).head
    assert f"head {head}" in said
    assert "3 entries" in said
    assert "by Ann [bold] 2, Bo 1; from 20" in said
    assert main(["audit", "verify", str(study), "--expect", head]) == 0
    assert main(["audit", "verify", str(study), "--expect", "0" * 64]) == 1
    capsys.readouterr()
    assert main(["audit", "verify", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["entries"], found["head"], found["is_whole"]) == (3, head, True)
    assert found["reviewers"] == {"Ann [bold]": 2, "Bo": 1}
    path = study / "grounding" / "review.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"reject"', b'"accept"'))
    assert main(["audit", "verify", str(study)]) == 1
    assert "! " in capsys.readouterr().out
    assert main(["audit", "verify", str(study), "--json"]) == 1
    assert not json.loads(capsys.readouterr().out)["is_whole"]
    for verb in (["fit", str(study)], ["audit", "agreement", str(study)]):
        assert main(verb) == 2
        assert "fidm audit verify" in capsys.readouterr().err
    assert main(["audit", "verify", str(study / "nowhere")]) == 2


def test_agreement_is_a_table_and_audits_follow(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "agreement", str(study)]) == 2
    assert f"fidm review {study}" in capsys.readouterr().err
    judge(study, "Ann", "accept", 0, 1, 2)
    assert main(["audit", "agreement", str(study)]) == 0
    assert "No two reviewers" in capsys.readouterr().out
    Trail(study).append(draw_sample(study, 4, 1, reviewer="Ann"))
    for number, kind in ((0, "accept"), (1, "reject"), (2, "accept")):
        judge(study, "Bo", kind, number, sample="audit-1-4")  # type: ignore[arg-type]
    assert main(["audit", "agreement", str(study)]) == 0
    said = capsys.readouterr().out
    assert "Ann, Bo" in said
    assert "66.7%" in said
    assert "audit-1-4, Bo: 0 of 0 dialogs right" in said
    assert "audit-1-4, Ann" not in said  # Ann's decisions were not made in the audit
    assert "not judged yet" in said
    assert main(["audit", "agreement", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [pair["n"] for pair in found["pairs"]] == [3]
    assert [(a["name"], a["reviewer"], a["n_segments"]) for a in found["audits"]] == [("audit-1-4", "Bo", 3)]
    assert found["pairs"][0]["kappa"] == 0.0
    assert main(["audit", "agreement", str(study / "nowhere")]) == 2


def test_a_trail_that_was_deleted_whole_is_noticed(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(study, "Ann", "accept", 0)
    assert main(["fit", str(study)]) == 0
    for name in ("review.jsonl", "review.head"):
        (study / "grounding" / name).unlink()
    capsys.readouterr()
    assert main(["fit", str(study)]) == 2
    assert "fidm audit verify" in capsys.readouterr().err
    assert main(["audit", "verify", str(study)]) == 1
