"""``fidm fit``: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.trail import Trail
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.io.dialogs import write
from fidm.io.study import StudyWriter
from fidm.io.tables import tables_of


@pytest.fixture(scope="module")
def cohort():
    made = fidm.simulate_cohort(fidm.load_task("errands"), 40, seed=1)
    split = pl.Series(["train"] * 30 + ["test"] * 10)
    return made.with_participants(made.participants.with_columns(split=split))


@pytest.fixture
def study(tmp_path, cohort):
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    return tmp_path / "study"


def test_a_study_is_fitted_and_everybody_profiled(study, cohort, capsys):
    assert main(["fit", str(study)]) == 0
    out = capsys.readouterr().out
    assert "40 participants" in out
    assert "from 30 (split 'train')" in out
    assert "action_sensitivity" in out
    assert "Research use only, not a diagnosis." in out
    table = pl.read_parquet(study / "profile.parquet")
    expected = fidm.Model(fidm.load_task("errands")).fit(cohort.split("train")).profile(cohort).wide
    assert table.equals(expected)
    assert pl.read_csv(study / "profile.csv").height == 40
    assert fidm.load_fit(study / "fit.json").n_learned == 30
    assert not (study / "problems.csv").exists()


def test_it_fits_in_eighty_columns(study, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["fit", str(study)])
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if "action_sensitivity" in line)
    assert len(row.split()) == 8
    assert max(map(len, lines[:12])) <= 80


def test_parameters_are_regressed_on_covariates(tmp_path, cohort, capsys):
    rng = np.random.default_rng(1)
    about = cohort.participants.with_columns(
        age=pl.Series(rng.normal(70, 7, 40).round()), site=pl.Series(np.arange(40) % 8)
    )
    people, study = cohort.with_participants(about), tmp_path / "study"
    fidm.write_cohort(people, study, tasks=["errands"])
    assert main(["fit", str(study), "--regress", "age", "--cluster", "site"]) == 0
    out = capsys.readouterr().out
    assert "factor per unit" in out
    assert "Estimates are drawn towards people with the same age" in out
    expected = fidm.Model(fidm.load_task("errands"), regress="age", cluster="site").fit(people.split("train"))
    kept = fidm.load_fit(study / "fit.json")
    assert kept.regression_table().equals(expected.regression_table())
    assert pl.read_parquet(study / "profile.parquet").equals(expected.profile(people).wide)
    assert main(["evidence", str(study)]) == 0
    assert main(["report", str(study), "--no-classify"]) == 0
    report = json.loads((study / "report.json").read_text())
    tables = {table["id"] for part in report["sections"] for table in part["tables"]}
    assert "covariates" in tables


@pytest.fixture
def described(tmp_path, cohort):
    """A study whose columns and categories have long names."""
    rng = np.random.default_rng(1)
    about = cohort.participants.with_columns(
        age=pl.Series(rng.normal(70, 7, 40).round()),
        severity_of_cognitive_impairment=pl.Series(["major neurocognitive disorder", "no impairment"] * 20),
    )
    fidm.write_cohort(cohort.with_participants(about), tmp_path / "described", tasks=["errands"])
    return tmp_path / "described"


def test_long_names_of_covariates_fit_in_eighty_columns(described, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # as in a terminal, where notes are broken into lines
    assert main(["fit", str(described), "--regress", "age * severity_of_cognitive_impairment"]) == 0
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    page = out[out.index("parameter, covariate") : out.index("Wrote ")]
    assert max(map(len, page.splitlines())) <= 80
    said = " ".join(page.split())
    names = " ".join(" ".join(line[:38] for line in page.splitlines()).split())
    assert "age × severity_of_cognitive_ impairment: no impairment / major neurocognitive disorder" in names
    assert "compared with major neurocognitive disorder, the first in alphabetical order" in said
    assert "its own slope is that at age 0" in said
    kept = fidm.load_fit(described / "fit.json")
    for slope, low, high in np.exp(kept.regression_table().select("slope", "low", "high").to_numpy()):
        assert f"{slope:.4g} ({low:.4g} to {high:.4g})" in page


def test_covariates_missing_in_either_part_are_said_at_once(described, capsys):
    table = described / "participants.parquet"
    people = pl.read_parquet(table)
    lost = pl.when(pl.int_range(40).is_in([2, 35])).then(None).otherwise("age")  # one to learn from, one not
    people.with_columns(age=lost).write_parquet(table)
    assert main(["fit", str(described), "--regress", "age"]) == 2
    ids = people["participant"]
    assert f"age is missing for 2: {ids[2]}, {ids[35]}." in capsys.readouterr().err


def test_json_holds_everything_the_page_shows(study, capsys):
    assert main(["fit", str(study), "--json", "--method", "mle", "--population", "pooled"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["participants"] == 40
    names = [row["parameter"] for row in said["parameters"]]
    by_parameter = dict.fromkeys(names, 30)
    expected = {"part": "split 'train'", "participants": 30, "parameters": by_parameter}
    assert said["learned_from"] == expected
    assert [row["parameter"] for row in said["parameters"]][:2] == ["action_sensitivity", "duration"]
    assert said["fit"]["method"] == "mle"
    assert said["fit"]["population"] == "pooled"


def test_options_reach_the_model(study, capsys):
    assert (
        main(
            [
                "fit",
                str(study),
                "--joint",
                "--lapse",
                "estimate",
                "--split",
                "test",
                "--out",
                str(study / "out"),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "No two parameters go together in 10 people" in " ".join(out.split())
    assert "lapse rate" in out
    assert "(split 'test')" in out
    saved = json.loads((study / "out" / "fit.json").read_text("utf-8"))
    assert saved["joint"] is None
    assert saved["people"]["learned_from"] == 10


def test_parts_give_the_same_numbers(study, cohort, tmp_path, capsys):
    with StudyWriter(tmp_path / "parts", tasks=["errands"]) as writer:
        for first in range(0, 40, 7):
            writer.add(cohort[first : first + 7])
    assert main(["fit", str(study), "--max-people", "20"]) == 0
    assert main(["fit", str(tmp_path / "parts"), "--max-people", "20", "--workers", "1"]) == 0
    capsys.readouterr()
    whole = pl.read_parquet(study / "profile.parquet")
    assert pl.read_parquet(tmp_path / "parts" / "profile.parquet").equals(whole)


def test_csv_files_of_a_lab(tmp_path, cohort, capsys):
    task = fidm.load_task("errands")
    tables = tables_of(cohort)
    names = pl.Series(np.array(task.actions)[cohort.action])
    tables["steps"].drop("episode", "segment", "state").with_columns(action=names).write_csv(
        tmp_path / "steps.csv"
    )
    tables["segments"].drop("episode").write_csv(tmp_path / "segments.csv")
    assert main(["fit", str(tmp_path)]) == 2
    assert "--task NAME" in capsys.readouterr().err
    assert main(["fit", str(tmp_path), "--task", "errands"]) == 0
    assert pl.read_csv(tmp_path / "profile.csv").height == 40


def test_bad_people_are_refused_or_skipped(study, cohort, capsys):
    tables = tables_of(cohort)
    segments = (
        tables["segments"]
        .with_row_index()
        .with_columns(
            duration_s=pl.when(pl.col("index") == 3).then(-1.0).otherwise("duration_s"),
            n_turns=pl.when(pl.col("index") == 200).then(1.5).otherwise("n_turns"),
        )
    )
    segments.drop("index").write_parquet(study / "segments.parquet")
    assert main(["fit", str(study)]) == 2
    err = capsys.readouterr().err
    assert "duration_s is negative." in err
    assert "n_turns is not" in err
    assert not (study / "profile.parquet").exists()
    assert main(["fit", str(study), "--skip-bad"]) == 0
    assert "2 participants left out" in " ".join(capsys.readouterr().out.split())
    assert pl.read_parquet(study / "profile.parquet").height == 38
    assert pl.read_csv(study / "problems.csv").height == 2


@pytest.mark.parametrize("skip", ["episode", "rest"])
def test_episodes_are_skipped_alone(tmp_path, skip, capsys):
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    trials = fidm.simulate_cohort(tasks, 12, seed=3)
    study = tmp_path / "study"
    fidm.write_cohort(trials, study, tasks=["errands", "grocery_small"])
    steps = pl.read_parquet(study / "steps.parquet")
    wrong = (
        (pl.col("step") == 9)
        & pl.col("participant").is_in(["P0000002", "P0000005"])
        & (pl.col("episode") == "2")
    )
    both = (pl.col("step") == 1) & (pl.col("participant") == "P0000007")
    cell = pl.when(wrong | both).then(pl.lit(-7)).otherwise(pl.col("action")).cast(pl.Int32)
    steps.with_columns(action=cell).write_parquet(study / "steps.parquet")
    assert main(["fit", str(study)]) == 2
    capsys.readouterr()
    assert main(["fit", str(study), "--skip", skip, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["participants"], found["left_out"]) == (11, 1)
    assert main(["fit", str(study), "--skip", skip]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 participant, and episodes of 2 others left out for 4 problems" in said
    profile = pl.read_parquet(study / "profile.parquet")
    assert profile["participant"].to_list() == [who for who in trials.ids if who != "P0000007"]
    assert main(["report", str(study), "--skip", skip, "--no-classify", "--json"]) == 0
    page = (study / "report.html").read_text("utf-8")
    assert "1 participant, and episodes of 2 others left out because of problems in their data." in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lapse", "often"], "--lapse is 'often'; it must be a number or 'estimate'."),
        (["--split", "dev"], "Nobody is in the split 'dev'."),
        (["--max-people", "1"], "--max-people is 1; it must be 2 or more."),
        (["--regress", "height"], "names 'height', which the participants do not have"),
        (["--regress", "duration ~ age; turns"], "--regress takes one formula, or one for each parameter"),
        (["--cluster", "split"], "cluster widens the standard errors of slopes; it needs regress."),
        (["--task", "nowhere"], "nowhere"),
        (["--task", "grocery"], "names the task 'errands', which was not given"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(study, arguments, sentence, capsys):
    assert main(["fit", str(study), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_that_is_none(tmp_path, capsys):
    assert main(["fit", str(tmp_path / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_leaves_the_study_alone(study, capsys):
    (study / "file").write_text("x")
    assert main(["fit", str(study), "--out", str(study / "file" / "inside")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    shutil.rmtree(study)


def test_a_split_without_train_is_not_guessed(tmp_path, cohort, capsys):
    named = cohort.participants.with_columns(split=pl.Series(["Train"] * 30 + ["Test"] * 10))
    fidm.write_cohort(cohort.with_participants(named), tmp_path / "study", tasks=["errands"])
    assert main(["fit", str(tmp_path / "study")]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "('Test', 'Train')" in err
    assert main(["fit", str(tmp_path / "study"), "--split", "Train"]) == 0
    assert "learned from 30" in capsys.readouterr().out
    assert main(["fit", str(tmp_path / "study"), "--split", "all"]) == 0
    assert "learned from 40 (everybody)" in capsys.readouterr().out


def test_new_people_are_profiled_with_an_earlier_fit(study, cohort, tmp_path, capsys):
    assert main(["fit", str(study)]) == 0
    fidm.write_cohort(cohort[:5], tmp_path / "new", tasks=["errands"])
    assert main(["fit", str(tmp_path / "new"), "--use", str(study / "fit.json")]) == 0
    out = capsys.readouterr().out
    assert "Wrote profile.parquet and profile.csv" in out
    assert not (tmp_path / "new" / "fit.json").exists()
    assert pl.read_parquet(tmp_path / "new" / "profile.parquet").equals(
        pl.read_parquet(study / "profile.parquet")[:5]
    )


def test_a_repaired_study_leaves_no_old_list_of_problems(study, cohort, capsys):
    (study / "problems.csv").write_text("old")
    assert main(["fit", str(study)]) == 0
    assert not (study / "problems.csv").exists()
    capsys.readouterr()


def test_it_says_how_much_of_the_study_is_as_reviewers_read_it(tmp_path, capsys):
    folder = tmp_path / "study"
    (folder / "talks").mkdir(parents=True)
    for transcript in fidm.simulate_talks(fidm.load_task("grocery"), 4, seed=4, language="en").transcripts:
        write(transcript, folder / "talks" / f"{transcript.participant}.csv", format="csv")
    (folder / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    assert main(["ground", str(folder)]) == 0
    capsys.readouterr()
    assert main(["fit", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["review"] is None
    grounded, trail = read_proposed(folder), Trail(folder)
    n_segments = grounded.segments.height
    segments = review_dialog(grounded.dialogs[0], (), grounded.terrain)
    for segment, kind in zip(segments[:3], ("accept", "accept", "reject"), strict=True):
        trail.append(decide(grounded.dialogs[0], segment, grounded.terrain, reviewer="Ann", kind=kind))
    said = f"2 of the study's {n_segments} segments are as reviewers read them, 1 is rejected and left out"
    for _ in range(2):  # when they are applied, and later
        assert main(["fit", str(folder)]) == 0
        assert said in capsys.readouterr().out
    assert main(["fit", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["review"]
    assert found == {"n_segments": n_segments, "n_decisions": 3, "n_reviewed": 2, "n_rejected": 1}


def test_a_study_without_a_grounding_says_nothing_of_reviewers(study, capsys):
    assert main(["fit", str(study)]) == 0
    assert "reviewers" not in capsys.readouterr().out
