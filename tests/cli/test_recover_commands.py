"""``fidm recover`` and ``fidm reliability``: what they print, what they write, and how they refuse."""

from __future__ import annotations

import json

import polars as pl
import pytest

import fidm
from fidm.cli.main import main


@pytest.fixture(scope="module")
def cohort():
    made = fidm.simulate_cohort(fidm.load_task("errands"), 30, seed=1, max_steps=30)
    split = pl.Series(["train"] * 20 + ["test"] * 10)
    return made.with_participants(made.participants.with_columns(split=split))


@pytest.fixture
def study(tmp_path, cohort):
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    return tmp_path / "study"


def test_recover_answers_about_a_study(study, capsys):
    assert main(["recover", "--like", str(study), "--repeat", "2", "--method", "eb"]) == 0
    out = capsys.readouterr().out
    assert "30 people" in out
    assert "empirical Bayes, log η" in out
    assert ".70 to .97" in out
    assert "With your 30 people" in out
    assert "people differ as" in out
    assert "Research use only, not a diagnosis." in out
    for name in ("recover.json", "recover.csv", "recover-matrix.csv", "recover.png", "recover.pdf"):
        assert (study / "results" / name).stat().st_size > 0


@pytest.mark.usefixtures("no_pictures")
def test_recover_without_a_study_and_as_json(tmp_path, capsys):
    arguments = ["recover", "--task", "errands", "--people", "20", "--repeat", "1", "--method", "mle"]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["experiment"] == "recover"
    assert said["settings"]["methods"] == ["mle"]
    assert said["result"]["people"] == 20
    written = json.loads((tmp_path / "out" / "recover.json").read_text("utf-8"))
    assert written == said


@pytest.mark.usefixtures("no_pictures")
def test_recover_prints_all_matrices_if_asked(tmp_path, capsys):
    arguments = ["recover", "--task", "errands", "--people", "20", "--repeat", "1", "--method", "eb", "--all"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("manipulated  ") == 6
    assert "matched ± se" in out


def test_recover_refuses_too_few_people(tmp_path, capsys):
    assert main(["recover", "--task", "errands", "--people", "4", "--out", str(tmp_path)]) == 2
    assert "10 or more" in capsys.readouterr().err
    assert main(["recover", "--spread", "study", "--out", str(tmp_path)]) == 2


def test_reliability_of_a_study(study, capsys):
    assert main(["reliability", str(study), "--bootstrap", "50"]) == 0
    out = capsys.readouterr().out
    assert "now from 20" in out
    assert "split-half" in out
    assert "no retest" in out
    assert "too uncertain to speak of changes in one person" in " ".join(out.split()), (
        "intervals reach .50 with 30 people"
    )
    for name in ("reliability.json", "reliability.csv", "reliability.png", "reliability.pdf"):
        assert (study / "results" / name).stat().st_size > 0


@pytest.mark.usefixtures("no_pictures")
def test_reliability_uses_the_fit_of_the_study(study, capsys):
    assert main(["fit", str(study)]) == 0
    capsys.readouterr()
    assert main(["reliability", str(study), "--bootstrap", "50"]) == 0
    assert "learned earlier" in capsys.readouterr().out
    assert main(["reliability", str(study), "--bootstrap", "50", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["result"]["parameters"][0] == "action_sensitivity"


def test_reliability_refuses_one_person(tmp_path, cohort, capsys):
    fidm.write_cohort(cohort[:1], tmp_path / "one", tasks=["errands"])
    assert main(["reliability", str(tmp_path / "one")]) == 2
    assert "one person" in capsys.readouterr().err
