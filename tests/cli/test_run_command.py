"""``fidm run``: the whole line on one study, resumed where it stopped; one number for one thing."""

from __future__ import annotations

import contextlib
import io
import json
import shutil

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError
from fidm.folder import StudyFolder
from fidm.grounding.review.verdicts import MEANINGS
from fidm.run import say_detours

UNLABELLED = ("--label", "nobody_has_this")
"""Without a status nothing is classified, which takes the most time."""

STEPS = ["ground", "fit", "evidence", "localize", "reliability", "compare", "classify", "report"]


def run(study, capsys, *options):
    capsys.readouterr()
    assert main(["run", str(study), "--json", "--workers", "1", *options]) == 0
    steps = json.loads(capsys.readouterr().out)
    assert [one["step"] for one in steps] == STEPS
    return {one["step"]: one["outcome"] for one in steps}


@pytest.fixture(scope="module")
def finished(briefly_classified, tmp_path_factory):
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


@pytest.mark.usefixtures("no_pictures")
def test_what_was_lost_or_changed_is_made_again(study, capsys):
    (study / "results" / "reliability.csv").unlink()
    found = run(study, capsys)
    assert found == outcomes(reliability="done")


@pytest.mark.usefixtures("no_pictures")
def test_a_new_dialog_reaches_the_report(study, capsys):
    dialog = sorted((study / "talks").iterdir())[0]
    text = dialog.read_text("utf-8").replace(dialog.stem, "NEW")
    dialog.with_name(f"NEW{dialog.suffix}").write_text(text, "utf-8")
    found = run(study, capsys, *UNLABELLED)
    assert (found.pop("compare"), found.pop("classify")) == ("left out", "left out")
    assert set(found.values()) == {"done"}
    page = json.loads((study / "report.json").read_text("utf-8"))
    assert "NEW" in {person["id"] for person in page["people"]}


@pytest.mark.usefixtures("no_pictures")
def test_another_label_grounds_and_fits_nothing_again(study, capsys):
    """It did, and a fit of one's own was then older than the tables on a slow machine, and made again."""
    found = run(study, capsys, *UNLABELLED)
    assert (found["ground"], found["fit"], found["evidence"]) == ("up to date",) * 3


@pytest.mark.usefixtures("no_pictures")
def test_a_fit_of_ones_own_is_used_as_it_is(study, capsys):
    assert main(["fit", str(study), "--method", "mle"]) == 0
    own = (study / "fit.json").read_bytes()
    found = run(study, capsys, *UNLABELLED)
    assert (found["fit"], found["evidence"]) == ("left out", "done")
    assert (study / "fit.json").read_bytes() == own


@pytest.mark.usefixtures("no_pictures")
def test_without_dialogs_and_labels_steps_are_left_out(tmp_path, capsys):
    folder = tmp_path / "plain"
    fidm.write_cohort(fidm.simulate_cohort(fidm.load_task("errands"), 20, seed=1), folder, tasks=["errands"])
    found = run(folder, capsys)
    left_out = [step for step, outcome in found.items() if outcome == "left out"]
    assert left_out == ["ground", "compare", "classify"]
    assert found["report"] == "done"


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


def test_the_report_shows_the_comparison_that_is_kept(study):
    kept = pl.read_csv(study / "results" / "compare.csv")
    page = json.loads((study / "report.json").read_text("utf-8"))
    section = next(one for one in page["sections"] if one["id"] == "comparison")
    shown = next(one for one in section["tables"] if one["id"] == "contrast-0")
    assert shown["title"].endswith(" / normal")
    names = [column["name"] for column in shown["columns"]]
    cells = [row[names.index("factor")] for row in shown["rows"]]
    own = kept.filter(contrast=shown["title"])["factor"]
    assert cells == pytest.approx(own.to_list(), rel=1e-5)


@pytest.mark.usefixtures("no_pictures")
def test_a_comparison_of_ones_own_is_used_as_it_is(study, capsys, monkeypatch):
    assert main(["compare", str(study), "--by", "diagnosis", "--adjust", "age_years"]) == 0
    own = (study / "results" / "compare.json").read_bytes()
    assert run(study, capsys) == outcomes(compare="left out", report="done")
    assert (study / "results" / "compare.json").read_bytes() == own
    page = json.loads((study / "report.json").read_text("utf-8"))
    section = next(one for one in page["sections"] if one["id"] == "comparison")
    assert "adjusted for age (years)" in section["paragraphs"][0]

    def refuse(*_, **__):
        raise DataError("not now")

    monkeypatch.setattr("fidm.run.classify_study", refuse)  # it takes most of the time
    found = run(study, capsys, "--again")
    assert (found.pop("classify"), set(found.values())) == ("left out", {"done"})


@pytest.mark.usefixtures("no_pictures")
def test_too_few_people_of_a_group_are_not_compared(study, capsys):
    capsys.readouterr()
    assert main(["run", str(study), "--json", "--workers", "1", "--label", "participant"]) == 0
    steps = {one["step"]: one for one in json.loads(capsys.readouterr().out)}
    assert steps["compare"]["outcome"] == "left out"
    assert "Two groups of 5 people with data" in steps["compare"]["said"]


def test_results_of_other_data_are_not_taken(study):
    opened = StudyFolder.open(study)
    fit, _ = opened.fit()
    assert opened.find_reliability(fit) is not None
    assert opened.find_localization(fit) is not None
    assert opened.find_classification(label="diagnosis", normal="normal") is not None
    assert opened.find_comparison() is not None
    fewer = StudyFolder(opened.path, opened.tasks, opened.cohort[:-1], opened.excluded)
    assert fewer.find_reliability(fit) is None
    assert fewer.find_localization(fit) is None
    assert fewer.find_classification(label="diagnosis", normal="normal") is None
    assert fewer.find_comparison() is None
    people = opened.cohort.participants.with_columns(diagnosis=pl.col("diagnosis").reverse())
    other = StudyFolder(opened.path, opened.tasks, opened.cohort.with_participants(people), opened.excluded)
    assert other.find_classification(label="diagnosis", normal="normal") is None
    assert other.find_comparison() is None
    nobody = StudyFolder(
        opened.path,
        opened.tasks,
        opened.cohort.with_participants(people.drop("diagnosis")),
        opened.excluded,
    )
    assert nobody.find_comparison() is None
    kept = study / "results" / "compare.json"
    said = json.loads(kept.read_text("utf-8"))
    del said["settings"]["known"]  # as results had it before covariates were hashed
    kept.write_text(json.dumps(said), "utf-8")
    assert opened.find_comparison() is None
    (study / "results" / "classify.json").write_text("{}", "utf-8")
    assert opened.find_classification(label="diagnosis", normal="normal") is None


SAID = {
    "D01": ["it is cold today, is it not", "she has two lovely children now", "I used to live in a town"],
    "C01": ["right one, then up three, then right two, and I visit the bank", "left two, up three, left one"],
    "C02": ["right one, then up three", "right two, and I visit the bank", "left two, up three"],
    "C03": ["right one, then up three", "go right one", "right one, and I visit the bank"],
    "C04": ["right one, left one, right one, up three", "right two, and I visit the bank", "left two"],
    "C05": ["right one, then up nine, then up nine"],
}
"""What a few people said about the errands: the first made small talk only, the last hit a wall."""


def messy_study(folder, *, visits=1):
    """A study of CSV files, with one participant of whom there is no dialog."""
    for who, said in SAID.items():
        for visit in range(visits):
            (folder / "talks" / who).mkdir(parents=True, exist_ok=True)
            lines = ["speaker,start_s,end_s,text"]
            for i, text in enumerate(said):
                start, end = 1 + 5 * i, 1 + 5 * i + 0.05 * len(text)
                lines += [f'participant,{start},{end},"{text}"', f'assessor,{end + 0.2},{end + 0.4},"okay"']
            (folder / "talks" / who / f"visit{visit}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "grounding.toml").write_text('names = "folder"\n', "utf-8")
    (folder / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    people = "participant\n" + "\n".join([*SAID, "D06"]) + "\n"
    (folder / "participants.csv").write_text(people, "utf-8")
    return folder


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """Such a study, taken through the whole line, and what that said."""
    study, said = messy_study(tmp_path_factory.mktemp("messy") / "study"), io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["run", str(study), "--workers", "1"]) == 0
    return study, said.getvalue()


def test_a_run_shows_what_a_reader_must_not_miss(messy, capsys):
    study, first = messy
    warned = {line for line in first.splitlines() if line.startswith("! ")}
    assert "! 1 participant has no dialog: D06" in warned
    assert "6 dialogs, 15 segments (12 count in effort, 11 can count in action sensitivity), " in first
    assert "! no moves were read in dialogs of 1 participant; look at them in fidm review: D01" in warned
    unknown = (
        "! the files of 5 participants cannot show pauses, so these are unknown and part of the durations: "
    )
    assert any(line.startswith(unknown) for line in warned)
    assert any("pause" in line and "left out" in line for line in warned)  # of the fit
    assert main(["run", str(study), "--workers", "1"]) == 0
    again = capsys.readouterr().out
    assert warned == {line for line in again.splitlines() if line.startswith("! ")}


def test_few_people_with_detours_are_not_called_a_success(messy):
    study, said = messy
    (localize,) = (line for line in said.splitlines() if "localize" in line)
    assert "1 person with detours and other actions: too few to judge" in localize
    page = json.loads((study / "report.json").read_text("utf-8"))
    (shown,) = (one for one in page["sections"] if one["id"] == "localisation")
    assert "1 person has both such events and other actions: too few to judge." in shown["paragraphs"][1]
    assert "AUC" not in " ".join(shown["paragraphs"])
    (table,) = shown["tables"]
    assert not any(row[3] for row in table["rows"])
    assert table["note"] == ""  # no interval stands in brackets


def test_the_page_says_why_nothing_is_estimated(messy, capsys):
    study, _ = messy
    page = json.loads((study / "report.json").read_text("utf-8"))
    said = {
        (person["id"], one["parameter"]): one["said"]
        for person in page["people"]
        for one in person["profile"]
    }
    assert said["D06", "action_sensitivity"] == said["D06", "duration"] == "Not estimated: no dialog."
    assert (
        said["D01", "action_sensitivity"] == said["D01", "duration"] == "Not estimated: no moves were read."
    )
    assert said["C05", "action_sensitivity"] == "Not estimated: what was said awaits review."
    assert said["C05", "duration"].endswith("were filled in by a planner or await review.")
    assert "awaits" not in str([why for (who, _), why in said.items() if who == "C01"])
    overview = page["sections"][0]["paragraphs"]
    (unclassified,) = (one for one in page["sections"] if one["id"] == "classification")
    assert "no column 'diagnosis'" in unclassified["paragraphs"][0]
    assert "1 participant has no dialog: D06." in overview
    assert "No moves were read in dialogs of 1 participant; look at them in fidm review: D01." in overview
    counted = (
        "12 of 15 segments count in effort (1 of these awaits review) and 11 can count in action "
        "sensitivity; in 3 no moves were read"
    )
    assert f"{counted}." in overview
    assert main(["ground", str(study)]) == 0
    assert counted in " ".join(capsys.readouterr().out.split())
    assert "The effort of 1 participant rests only on segments that await review: C05." in overview
    assert main(["evidence", str(study)]) == 0
    weightless = "of weight 0 (in segments that need review or were rejected, or after them"
    assert weightless in " ".join(capsys.readouterr().out.split())
    html = (study / "report.html").read_text("utf-8")
    assert "η: not estimated: no dialog" in html
    assert "nobody has a recorded pause length" in html


def test_evidence_of_somebody_without_segments_judges_none(messy, capsys):
    study, _ = messy
    for who, why in (("D06", "no dialog"), ("D01", "no moves were read")):
        assert main(["evidence", str(study), "--participant", who]) == 0
        out = capsys.readouterr().out
        assert f"! η, duration and characters: not estimated: {why}" in out
    assert main(["evidence", str(study), "--participant", "C05"]) == 0
    assert "! η: not estimated: what was said awaits review" in capsys.readouterr().out
    assert main(["evidence", str(study), "--participant", "D06"]) == 0
    out = capsys.readouterr().out
    assert "than expected" not in out


def test_small_talk_is_no_effort_and_whoever_has_no_data_is_not_learned_from(tmp_path, capsys):
    study = messy_study(tmp_path / "study")
    assert main(["ground", str(study)]) == 0
    assert "structural checks: 5 of 5 traces sound" in capsys.readouterr().out
    assert main(["fit", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["learned_from"]["participants"] == 5
    learned = found["learned_from"]["parameters"]
    assert (learned["action_sensitivity"], learned["duration"]) == (4, 5)
    assert main(["fit", str(study)]) == 0
    assert "was learned from 5 (everybody with data): speech of 5" in capsys.readouterr().out
    profile = pl.read_csv(study / "profile.csv").filter(participant="D01").row(0, named=True)
    assert (profile["duration"], profile["duration_status"]) == (None, "no_observation")


def test_copied_dialogs_are_found_and_give_no_reliability(tmp_path, capsys):
    study = messy_study(tmp_path / "study", visits=2)
    copied = "! 5 participants have episodes that are exact copies of each other"
    assert main(["ground", str(study)]) == 0
    out = capsys.readouterr().out
    assert copied in out
    assert "10 of 10 traces sound" in out
    assert main(["fit", str(study)]) == 0
    assert copied in capsys.readouterr().out
    assert main(["reliability", str(study)]) == 2
    assert "exact copies" in capsys.readouterr().err


def test_a_run_without_a_task_advises_what_it_has(tmp_path, capsys):
    study = messy_study(tmp_path / "study")
    (study / "study.toml").unlink()
    assert main(["run", str(study)]) == 2
    assert "fidm ground STUDY --task NAME" in capsys.readouterr().err


def test_an_auc_of_few_people_is_not_printed_alone():
    row = {
        "auc": 0.9247,
        "auc_low": None,
        "auc_high": None,
        "n_people": 5,
        "n_people_all": 11,
        "n_events": 22,
    }
    said = say_detours(row)
    assert said.endswith("an AUC of 0.925 (5 of 11 people, 22 events; too few people for an interval)")
    said = say_detours(row | {"auc_low": 0.8, "auc_high": 0.97})
    assert said.endswith("an AUC of 0.925 [0.800, 0.970] (5 of 11 people, 22 events)")
    assert "too few to judge" in say_detours(row | {"auc": None, "n_people": 1})


@pytest.mark.usefixtures("no_pictures")
def test_doubts_are_words_on_every_page(study, capsys):
    table = pl.read_parquet(study / "grounding" / "segments.parquet")
    had = {code for codes in table["doubts"] for code in codes.split()}
    waiting = table.filter(pl.col("status") == "needs_review")["doubts"].str.split(" ").explode()
    (most,) = waiting.mode().sort()[:1]
    assert {code for code in had if "_" in code} <= set(MEANINGS)
    capsys.readouterr()
    for verb in (["ground"], ["evidence"], ["audit", "sample"]):
        assert main([*verb, str(study)]) == 0
    said = capsys.readouterr().out
    assert MEANINGS[most] in said
    pages = [said, *((study / name).read_text("utf-8") for name in ("report.json", "grounding/audit-1.csv"))]
    codes = [code for code in MEANINGS if "_" in code]
    assert [code for page in pages for code in codes if code in page] == []
