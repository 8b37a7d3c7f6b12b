"""``fidm report``: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from cyclopts import App

import fidm
from fidm.cli.report import report
from fidm.errors import DataError, FidmError

app = App(result_action="return_value")
app.command(report)


def run(*arguments):
    return app(["report", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "study"
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 8, seed=1)
    people = cohort.participants.select("participant", diagnosis=pl.Series(["normal", "mci"] * 4))
    fidm.write_cohort(cohort.with_participants(people), folder, tasks=["errands"])
    return folder


def test_a_report_is_written_and_said(study, capsys):
    assert run(study, "--no-classify", "--workers", 1) == 0
    out = capsys.readouterr().out
    assert "Report of 8 participants" in out
    assert "single people" in out
    assert f"Wrote {study / 'report.html'}, {study / 'report.json'}" in out
    *_, kept, last = out.splitlines()
    assert kept == "Research use only, not a diagnosis."
    assert last.startswith("Next: fidm ")
    data = json.loads((study / "report.json").read_text("utf-8"))
    assert len(data["people"]) == 8
    sections = {section["id"]: section for section in data["sections"]}
    assert list(sections) == [
        "overview", "task", "grounding", "parameters", "models", "reliability", "comparison", "localisation", "classification",
        "method",
    ]  # fmt: skip
    assert sections["classification"]["paragraphs"] == [
        "Classification was left out of this report (--no-classify)."
    ]


@pytest.mark.usefixtures("no_pictures")
def test_a_deidentified_one_beside_it_for_programs(study, tmp_path, capsys):
    ids = pl.read_parquet(study / "participants.parquet")["participant"].to_list()
    target = tmp_path / "shared.html"
    done = run(
        study, "--deidentify", "--no-classify", "--participant", ids[3], "--key", tmp_path / "key.csv", "--out",
        target, "--json",
    )  # fmt: skip
    assert done == 0
    said = json.loads(capsys.readouterr().out)
    assert said["written"] == [str(target), str(tmp_path / "shared.json"), str(tmp_path / "key.csv")]
    assert said["n_people"] == 1
    assert all("svg" not in figure for section in said["sections"] for figure in section["figures"])
    assert not any(name in target.read_text("utf-8") for name in ids)
    assert (tmp_path / "key.csv").read_text().count("\n") == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "report.txt"), "must end in .html"),
        (("--key", "key.csv"), "de-identified"),
        (("--seed", "-1"), "seed is -1"),
        (("--participant", "Nemo"), "There is no participant 'Nemo'"),
        (("--use", "nothing.json"), "nothing.json"),
    ],
)
def test_what_cannot_be_done_is_refused(study, options, message):
    with pytest.raises(FidmError, match=message):
        run(study, "--no-classify", *options)


def test_nothing_of_somebody_elses_is_written_over(study, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("computed first")

    monkeypatch.setattr("fidm.report.report.build_report", never)
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><p>mine")
    with pytest.raises(DataError, match="is there already"):
        run(study, "--out", page)
    assert page.read_text() == "<!doctype html><p>mine"
    hide = ("--deidentify", "--out", tmp_path / "new.html", "--key")
    for name in ("new.html", "new.json"):
        with pytest.raises(DataError, match="the key and"):
            run(study, *hide, tmp_path / name)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no key file"):
        run(study, *hide, tmp_path / "data.csv")
    with pytest.raises(DataError, match="is a file"):
        run(study, *hide, page / "key.csv")


@pytest.mark.usefixtures("no_pictures")
def test_a_report_grouped_by_split(study, tmp_path):
    other = shutil.copytree(study, tmp_path / "study")
    people = pl.read_parquet(other / "participants.parquet")
    people.with_columns(split=pl.Series(["train", "test"] * 4)).write_parquet(other / "participants.parquet")
    assert run(other, "--no-classify", "--label", "split", "--participant", people["participant"][0]) == 0
    (person,) = json.loads((other / "report.json").read_text("utf-8"))["people"]
    assert person["label"] == "train"


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file"):
        run(study, "--out", tmp_path / "file" / "report.html")
