"""``fidm run``: the whole line on one study, resumed where it stopped; one number for one thing."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.folder import StudyFolder

UNLABELLED = ("--label", "nobody_has_this")
"""Without a status nothing is classified, which takes the most time."""

STEPS = ["ground", "fit", "evidence", "localize", "reliability", "classify", "report"]


def run(study, capsys, *options):
    capsys.readouterr()
    assert main(["run", str(study), "--json", "--workers", "1", *options]) == 0
    steps = json.loads(capsys.readouterr().out)
    assert [one["step"] for one in steps] == STEPS
    return {one["step"]: one["outcome"] for one in steps}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with dialogs that was taken through the whole line once."""
    folder = tmp_path_factory.mktemp("run") / "study"
    fidm.simulate_study(folder, task="errands", n=24, seed=2, language="en", formats=("csv",))
    assert main(["run", str(folder), "--workers", "1"]) == 0
    return folder


@pytest.fixture
def study(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "study")


def outcomes(**others):
    return {**dict.fromkeys(STEPS, "up to date"), **others}


def test_everything_is_there_and_nothing_is_done_twice(study, capsys):
    for name in ("fit.json", "profile.csv", "report.html", "results/evidence.json", "results/classify.csv"):
        assert (study / name).exists()
    before = {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.is_file()}
    assert run(study, capsys) == outcomes()
    after = {path: path.stat().st_mtime_ns for path in study.rglob("*") if path.is_file()}
    assert before == after


def test_what_was_lost_or_changed_is_made_again(study, capsys):
    (study / "results" / "reliability.csv").unlink()
    found = run(study, capsys)
    assert found == outcomes(reliability="done")


def test_a_new_dialog_reaches_the_report(study, capsys):
    dialog = sorted((study / "talks").iterdir())[0]
    text = dialog.read_text("utf-8").replace(dialog.stem, "NEW")
    dialog.with_name(f"NEW{dialog.suffix}").write_text(text, "utf-8")
    found = run(study, capsys, *UNLABELLED)
    assert found.pop("classify") == "left out"
    assert set(found.values()) == {"done"}
    page = json.loads((study / "report.json").read_text("utf-8"))
    assert "NEW" in {person["id"] for person in page["people"]}


def test_a_fit_of_ones_own_is_used_as_it_is(study, capsys):
    assert main(["fit", str(study), "--method", "mle"]) == 0
    own = (study / "fit.json").read_bytes()
    found = run(study, capsys, *UNLABELLED)
    assert (found["fit"], found["evidence"]) == ("left out", "done")
    assert (study / "fit.json").read_bytes() == own


def test_without_dialogs_and_labels_steps_are_left_out(tmp_path, capsys):
    folder = tmp_path / "plain"
    fidm.write_cohort(fidm.simulate_cohort(fidm.load_task("errands"), 20, seed=1), folder, tasks=["errands"])
    found = run(folder, capsys)
    assert (found["ground"], found["classify"], found["report"]) == ("left out", "left out", "done")


def test_the_report_shows_the_numbers_of_the_results(study):
    """A study has one AUC, whether one looks into results/ or into the report."""
    scores = pl.read_csv(study / "results" / "classify.csv").filter(setting="binary", part="cv", metric="auc")
    page = json.loads((study / "report.json").read_text("utf-8"))
    section = next(one for one in page["sections"] if one["id"] == "classification")
    shown = next(one for one in section["tables"] if one["id"] == "scores")
    names = [column["name"] for column in shown["columns"]]
    judged = [row for row in shown["rows"] if row[names.index("part")] == "cross-validation"]
    cells = [row[names.index("auc")] for row in judged]
    assert cells == pytest.approx(scores["value"].to_list(), abs=1e-5)


def test_results_of_other_data_are_not_taken(study):
    opened = StudyFolder.open(study)
    fit, _ = opened.fit()
    assert opened.find_reliability(fit) is not None
    assert opened.find_localization(fit) is not None
    assert opened.find_classification(label="diagnosis", normal="normal") is not None
    fewer = StudyFolder(opened.path, opened.tasks, opened.cohort[:-1], opened.excluded)
    assert fewer.find_reliability(fit) is None
    assert fewer.find_localization(fit) is None
    assert fewer.find_classification(label="diagnosis", normal="normal") is None
    people = opened.cohort.participants.with_columns(diagnosis=pl.col("diagnosis").reverse())
    other = StudyFolder(opened.path, opened.tasks, opened.cohort.with_participants(people), opened.excluded)
    assert other.find_classification(label="diagnosis", normal="normal") is None
    (study / "results" / "classify.json").write_text("{}", "utf-8")
    assert opened.find_classification(label="diagnosis", normal="normal") is None
