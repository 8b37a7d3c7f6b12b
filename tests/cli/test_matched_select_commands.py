"""``fidm matched`` and ``fidm select``: what they print, what they write, and how they refuse."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main


@pytest.fixture(scope="module")
def cohort():
    made = fidm.simulate_cohort(fidm.load_task("errands"), 40, seed=1)
    slow = made.participants["true_duration"].to_numpy() > 0
    return made.with_participants(
        made.participants.with_columns(
            split=pl.Series(["train"] * 30 + ["test"] * 10),
            diagnosis=pl.Series(np.where(slow, "mci", "normal")),
        )
    )


@pytest.fixture
def study(tmp_path, cohort):
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    return tmp_path / "study"


ONE_POINT = ["--move-cost", "-0.02", "--tau", "0.05"]


def test_matched_pairs_of_a_study(study, capsys):
    assert main(["matched", "--like", str(study), "--repeat", "2"]) == 0
    out = capsys.readouterr().out
    assert "40 pairs" in out
    for words in ("raw totals", "means per segment", "number of segments alone", "all factors", "paper"):
        assert words in out
    assert "0.929" in out
    assert "12.77" in out
    assert "Plain summaries" in out
    assert (
        "Wrote matched.json, matched.csv, matched-recovery.csv, matched-differences.csv, matched.png" in out
    )
    assert "Research use only, not a diagnosis." in out
    said = json.loads((study / "results" / "matched.json").read_text("utf-8"))
    assert said["settings"]["repeat"] == 2
    assert said["result"]["pairs"] == 40
    assert pl.read_csv(study / "results" / "matched-recovery.csv").height == 6
    assert (study / "results" / "matched.png").stat().st_size > 5_000


def test_matched_pairs_of_simulated_people_as_json(tmp_path, capsys):
    arguments = ["matched", "--task", "errands", "--people", "30", "--repeat", "1", "--json"]
    assert main([*arguments, "--out", str(tmp_path / "a")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["experiment"] == "matched"
    assert said["settings"]["simulated"] == 30
    assert list(said["tasks"]) == ["errands"]
    assert {row["features"] for row in said["result"]["auc"]} >= {"raw", "per_segment", "full"}
    assert main([*arguments, "--out", str(tmp_path / "b")]) == 0
    for name in ("matched.json", "matched.csv", "matched.png", "matched.pdf"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_matched_refuses_in_words(tmp_path, cohort, capsys):
    assert main(["matched", "--low", "30", "--high", "18", "--out", str(tmp_path)]) == 2
    assert "low below high" in capsys.readouterr().err
    silent = fidm.Cohort.from_traces(trace for name in cohort.ids for trace in cohort.traces(name))
    fidm.write_cohort(silent, tmp_path / "silent", tasks=["errands"])
    assert main(["matched", "--like", str(tmp_path / "silent")]) == 2
    assert "have no segments" in capsys.readouterr().err
    assert not (tmp_path / "silent" / "results").exists()


def test_a_setting_is_selected(study, capsys):
    assert main(["select", str(study)]) == 0
    out = capsys.readouterr().out
    assert "30 participants (split 'train')" in out
    assert "τ 0.12" in out
    assert "Chosen: move cost" in out
    assert "not on the grid" in out
    assert "5 degenerate points of 12" in out
    assert "never finishes" in out
    assert "move cost -0.02, temperature 0.05" in out
    assert "AUC" not in out  # no outcome is looked at unless it is named
    assert "Wrote select.json, select.csv, select.png, select.pdf" in out
    table = pl.read_csv(study / "results" / "select.csv")
    assert table.height == 12
    assert table.filter("chosen")["usable"].to_list() == [True]


@pytest.mark.usefixtures("no_pictures")
def test_pages_fit_in_eighty_columns(study, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["select", str(study), "--folds", "2", "--label", "diagnosis"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" -0.0")]
    assert len(rows) == 6
    assert all(len(row) <= 80 and len(row.split()) >= 5 for row in rows)
    main(["matched", "--like", str(study), "--repeat", "1"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" action_sensitivity")]
    assert len(rows[0].split()) == 8


@pytest.mark.usefixtures("no_pictures")
def test_a_setting_is_selected_by_area_as_json(study, tmp_path, capsys):
    arguments = ["select", str(study), *ONE_POINT, "--by", "auc", "--split", "all", "--folds", "3", "--json"]
    assert main([*arguments, "--out", str(tmp_path / "here")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["result"]["by"] == "auc"
    assert said["result"]["people"] == 40
    assert said["settings"]["folds"] == 3
    assert said["settings"]["label"] == "diagnosis"
    assert (tmp_path / "here" / "select.pdf").exists()


@pytest.mark.usefixtures("no_pictures")
def test_a_task_that_only_degenerates_gives_exit_code_1(tmp_path, cohort, capsys):
    text = fidm.builtin_text("errands")
    for reward in ("target = 1.0", "reward = 1.5", "reward = 2.0"):
        name = reward.split(" = ")[0]
        text = text.replace(reward, f"{name} = 0.001")
    (tmp_path / "errands.toml").write_text(text, "utf-8")
    fidm.write_cohort(cohort, tmp_path / "study", tasks=[tmp_path / "errands.toml"])
    assert main(["select", str(tmp_path / "study")]) == 1
    out = capsys.readouterr().out
    assert "All 12 points" in out
    assert (tmp_path / "study" / "results" / "select.png").exists()


def test_select_takes_several_tasks_and_discounts(tmp_path, capsys):
    tasks = [fidm.load_task(name) for name in ("errands", "grocery_small")]
    fidm.write_cohort(
        fidm.simulate_cohort(tasks, 10, seed=1), tmp_path / "two", tasks=["errands", "grocery_small"]
    )
    arguments = ["select", str(tmp_path / "two"), *ONE_POINT, "--gamma", "0.95", "--gamma", "0.97"]
    assert main([*arguments, "--folds", "2", "--skip", "episode"]) == 0
    out = capsys.readouterr().out
    assert "Chosen: move cost -0.02, temperature 0.05, gamma 0.9" in out
    assert "by move cost and temperature, gamma 0.95" in out
    table = pl.read_csv(tmp_path / "two" / "results" / "select.csv")
    assert table["gamma"].to_list() == [0.95, 0.97]


def test_select_refuses_in_words(study, capsys):
    assert main(["select", str(study), "--by", "auc", "--label", "split"]) == 2
    assert "has 1 different values" in capsys.readouterr().err
    assert main(["select", str(study), "--folds", "40"]) == 2
    assert "40 folds" in capsys.readouterr().err
