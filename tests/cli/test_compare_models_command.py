"""``fidm compare-models``: accounts of choice, as a page, as files, as JSON, and in the report."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.folder import StudyFolder
from fidm.record import plain
from fidm.report.opening import ReportOptions, open_for_report
from fidm.report.sections_model import models_section

QUICK = ["--folds", "2", "--trial-folds", "2", "--bootstrap", "40", "--replicates", "6"]

OWN = '''
"""Accounts of choice of a lab."""

from fidm.action_models import Softmax


class Firm(Softmax):
    """Softmax, under another name."""

    kind = "firm"


FIRM = Firm()
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "study"
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 10, seed=1)
    fidm.write_cohort(cohort, folder, tasks=["errands"])
    return folder


@pytest.fixture
def study(made, tmp_path):
    return shutil.copytree(made, tmp_path / "study")


def test_accounts_are_compared_shown_and_written(study, capsys):
    assert main(["compare-models", str(study), "--model", "lapse", "--model", "random", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "10 people" in said
    assert "softmax with lapses" in said
    assert "Of 10 people, not described: " in said
    assert "Calibration of “softmax”" in said
    written = {path.name for path in (study / "results").iterdir()}
    tables = {"", "-parameters", "-people", "-checks", "-calibration", "-undescribed"}
    figures = {
        f"compare-models{part}.{end}" for part in ("", "-checks", "-calibration") for end in ("png", "pdf")
    }
    assert written == {"compare-models.json", *(f"compare-models{part}.csv" for part in tables), *figures}
    table = pl.read_csv(study / "results" / "compare-models.csv")
    assert table["model"].to_list() == ["softmax", "lapse", "random"]  # softmax is the reference


@pytest.mark.usefixtures("no_pictures")
def test_json_has_the_record_and_the_numbers(study, capsys):
    asked = ["compare-models", str(study), "--model", "random", "--model", "softmax", *QUICK]
    capsys.readouterr()
    assert main([*asked, "--seed", "3", "--level", "0.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["experiment"], found["seed"], found["settings"]["level"]) == ("compare-models", 3, 0.9)
    assert found["result"]["reference"] == "random"  # it was named before softmax
    assert found["result"]["best"] == "softmax"
    task = fidm.load_task("errands")
    models = [fidm.action_models.Random(), fidm.action_models.Softmax()]
    same = fidm.compare_models(
        task, fidm.read_cohort(study), models, seed=3, level=0.9, folds=2, trial_folds=2, bootstrap=40,
        replicates=6,
    )  # fmt: skip
    assert found["result"]["models"] == plain(same.models)


@pytest.mark.usefixtures("no_pictures")
def test_a_task_that_people_may_believe_in_is_an_account(study, tmp_path, capsys):
    other = tmp_path / "errands_dear.toml"
    assert main(["task", "copy", "errands", str(other)]) == 0
    text = other.read_text("utf-8")
    other.write_text(text.replace("move = -0.03", "move = -0.06"), "utf-8")
    assert main(["compare-models", str(study), "--model", "softmax", "--believes", str(other), *QUICK]) == 0
    assert "taking the task for errands_dear" in capsys.readouterr().out
    assert main(["compare-models", str(study), "--believes", "grocery_small", *QUICK]) == 2
    assert "errands cannot be believed to be grocery_small" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_an_account_of_ones_own_is_a_class_of_a_module(study, tmp_path, monkeypatch, capsys):
    (tmp_path / "accounts_of_a_lab.py").write_text(OWN, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["compare-models", str(study), "--model", "accounts_of_a_lab:FIRM", *QUICK]) == 0
    assert "firm " in capsys.readouterr().out
    assert main(["compare-models", str(study), "--model", "accounts_of_a_lab:Firm", *QUICK]) == 2
    assert "is no fidm.model.action_models.ActionModel" in capsys.readouterr().err


def test_a_name_that_is_not_there_is_answered_with_those_that_are(study, capsys):
    assert main(["compare-models", str(study), "--model", "softmux"]) == 2
    said = capsys.readouterr().err
    assert "softmux" in said
    assert "softmax" in said
    assert main(["compare-models", str(study), "--model", "lapse", "--model", "lapse"]) == 2
    assert "different names" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_the_report_has_what_was_compared_with_these_data_alone(study, capsys):
    def section():
        return models_section(open_for_report(study, ReportOptions(classify=False)))

    before = section()
    assert before["title"] == "Choice model"
    [said] = before["paragraphs"]
    assert "softmax(η·Q)" in said
    assert "fidm compare-models STUDY" in said
    assert main(["compare-models", str(study), "--model", "lapse", *QUICK]) == 0
    capsys.readouterr()
    after = section()
    assert "Compared with “softmax” on held-out choices: “softmax with lapses”." in after["paragraphs"][0]
    tables = {one["id"]: one for one in after["tables"]}
    assert set(tables) == {"choice-models", "choice-shared", "choice-checks", "choice-calibration"}
    assert {one["table"] for one in after["figures"]} == {
        "choice-models",
        "choice-checks",
        "choice-calibration",
    }
    known = StudyFolder.open(study).find_model_comparison()
    names = [one["name"] for one in tables["choice-models"]["columns"]]
    [softmax, lapse] = [dict(zip(names, row, strict=True)) for row in tables["choice-models"]["rows"]]
    assert (softmax["people"], lapse["model"]) == (0.0, "lapse")
    assert lapse["protected"] == pytest.approx(known.row("lapse")["protected"], rel=1e-5)
    steps = pl.read_parquet(study / "steps.parquet")
    last = steps["participant"].unique().sort()[-1]
    steps.filter(pl.col("participant") != last).write_parquet(study / "steps.parquet")  # other data
    assert StudyFolder.open(study).find_model_comparison() is None


def test_accounts_are_listed(capsys):
    assert main(["list", "action-models", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["action-models"]["entries"]
    said = {one["name"]: one["what"] for one in entries}
    assert said["depth"] == "planning few steps ahead"
    assert said["no_way_back"] != said["stickiness"]
    assert main(["list"]) == 0
    assert "action models" in capsys.readouterr().out
