"""``fidm compare``: groups of a study, as a page, as files and as JSON."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import fidm
from fidm.cli.main import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "study"
    fidm.simulate_study(folder, task="errands", n=36, seed=2, language="en", formats=("csv",))
    assert main(["ground", str(folder), "--task", "errands"]) == 0
    return folder


@pytest.fixture
def study(made, tmp_path):
    return shutil.copytree(made, tmp_path / "study")


def test_groups_are_shown_and_written(study, capsys):
    assert main(["compare", str(study), "--by", "sex", "--adjust", "age_years, education_years"]) == 0
    said = capsys.readouterr().out
    assert "adjusted for age_years and education_years" in said
    assert "actions each" in said
    assert " / " in said
    assert "nobody's own estimate enters" in said
    written = {path.name for path in (study / "results").iterdir()}
    assert written >= {"compare.json", "compare.csv", "compare-groups.csv", "compare.png", "compare.pdf"}


@pytest.mark.usefixtures("no_pictures")
def test_json_has_the_record_and_the_tables(study, capsys):
    capsys.readouterr()
    assert main(["compare", str(study), "--by", "age_years", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == "compare"
    assert found["result"]["by"] == "age_years"
    assert {row["contrast"] for row in found["result"]["table"]} == {"age_years + 1 SD"}


@pytest.mark.usefixtures("no_pictures")
def test_differences_are_given_at_chosen_values(study, capsys):
    asked = ["--by", "sex", "--adjust", "age_years, bs(education_years, df=3)", "--interact", "age_years"]
    assert main(["compare", str(study), *asked, "--at", "age_years=65,80"]) == 0
    said = capsys.readouterr().out
    assert "at age_years 65" in said
    assert "at age_years 80" in said
    assert "adjusted for age_years and bs(education_years, df=3)" in said


@pytest.mark.usefixtures("no_pictures")
def test_missing_covariates_are_imputed(study, capsys):
    table = study / "participants.parquet"
    people = pl.read_parquet(table)
    lost = pl.when(pl.int_range(people.height) % 4 == 0).then(None).otherwise(pl.col("age_years"))
    people.with_columns(age_years=lost).write_parquet(table)
    asked = ["--by", "sex", "--adjust", "age_years", "--missing", "impute", "--imputations", "2", "--json"]
    capsys.readouterr()
    assert main(["compare", str(study), *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seed"], found["settings"]["imputations"]) == (1, 2)
    assert any("Imputed 2 times" in note for note in found["result"]["notes"])


def test_values_without_a_column_are_refused(study, capsys):
    assert main(["compare", str(study), "--by", "sex", "--at", "60,75"]) == 2
    assert "write the column, = and its values" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_a_lapse_rate_is_a_number(study, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["compare", str(study), "--by", "sex", "--lapse", "often"])
    assert "often" in capsys.readouterr().err


def test_a_column_that_is_not_there_is_named(study, capsys):
    assert main(["compare", str(study), "--by", "shoe size"]) == 2
    assert "have no column 'shoe size'" in capsys.readouterr().err
