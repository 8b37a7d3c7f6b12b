"""``fidm classify``: what it prints and writes for a small study, and how it refuses what it cannot use."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main

QUICKEST = ["--folds", "3", "--repeats", "1", "--permutations", "0"]
QUICK = [*QUICKEST[:-1], "2"]
TABLES = (
    "differences", "predictions", "roc", "calibration", "calibration-summary", "thresholds", "groups", "checks",
    "missing", "coefficients",
)  # fmt: skip
PICTURES = ("classify", "classify-roc", "classify-calibration")


def people(n=60):
    """Simulated people whose status depends on how slowly they speak, with a score that knows a little."""
    made = fidm.simulate_cohort(fidm.load_task("errands"), n, seed=1)
    slow = made.participants["true_duration"].to_numpy()
    mild, major = np.quantile(slow, [0.5, 0.75])
    rng = np.random.default_rng(2)
    table = made.participants.select("participant").with_columns(
        split=pl.Series((["train"] * 4 + ["test"]) * (n // 5)),
        diagnosis=pl.Series(np.where(slow > major, "major_ncd", np.where(slow > mild, "mci", "normal"))),
        age_years=pl.Series(rng.integers(60, 90, n)),
        sex=pl.Series(rng.choice(["female", "male"], n)),
        score_total=pl.Series(np.round(25 - 4 * slow + rng.normal(0, 3, n), 1)),
        score_route=pl.Series(rng.integers(0, 5, n)),
        excluded=pl.Series(["did not complete", *[None] * (n - 1)], dtype=pl.String),
    )
    return made.with_participants(table)


@pytest.fixture(scope="module", autouse=True)
def no_encoders(tmp_path_factory):
    """A machine to which nobody has fetched an encoder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path_factory.mktemp("hub")))
        patch.setenv("COLUMNS", "120")
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify") / "study"
    fidm.write_cohort(people(), folder, tasks=["errands"])
    return folder


@pytest.fixture(scope="module")
def ran(study, tmp_path_factory):
    """One run that many tests look at: what it printed, and where it wrote."""
    out = tmp_path_factory.mktemp("out")
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        assert main(["classify", str(study), *QUICK, "--out", str(out)]) == 0
    return page.getvalue(), out


def with_people(study, tmp_path, **columns):
    """A copy of the study whose participants table differs."""
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    table = pl.read_parquet(copy / "participants.parquet")
    for name, value in columns.items():
        table = table.drop(name) if value is None else table.with_columns(value.alias(name))
    table.write_parquet(copy / "participants.parquet")
    return copy


def test_the_page_has_both_of_the_papers_tables_with_intervals(ran):
    page, _ = ran
    assert page.startswith("59 participants")
    assert "left out: 1" in page
    rows = [line for line in page.splitlines() if line.strip().startswith("score + subscores + FIDM (")]
    assert len(rows) == 2  # two classes, three classes
    for row in rows:
        assert len(re.findall(r"\d+\.\d [ \d]\d\.\d–\d+\.\d +\d+\.\d", row)) == 4
    assert "Factors alone" in page
    assert len([line for line in page.splitlines() if line.strip().startswith("effort (4)")]) == 1
    for words in (
        "Two classes (the paper's table 2, left): normal against mci and major_ncd; in per cent",
        "Three classes (table 2, right): normal, mci, major_ncd, each against the rest",
        "What a combination adds to its baseline, two classes",
        "checks: labels scrambled 2 times gave a mean AUC of",
    ):
        assert words in page, words
    assert "Within groups" not in page  # that is for --full


def test_what_cannot_be_run_is_shown_empty_with_the_command_that_helps(ran):
    page, _ = ran
    assert re.search(r"^ +BERT + –", page, re.M)
    assert "hf download google-bert/bert-base-chinese" in page
    assert "hf download hfl/chinese-macbert-base" in page


def test_the_last_lines_say_what_was_written(ran):
    page, out = ran
    *_, kept, last = page.splitlines()
    assert kept == "Research use only, not a diagnosis."
    assert last.startswith("Next: fidm ")
    last = page.rstrip().splitlines()[-3]
    assert last.startswith("Wrote classify.json")
    assert "classify-summary.md" in last
    assert last.endswith(f"to {out}")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [
            "classify.json",
            "classify.csv",
            "classify-summary.md",
            *(f"classify-{name}.csv" for name in TABLES),
            *(f"{name}.{kind}" for name in PICTURES for kind in ("png", "pdf")),
        ]
    )
    for name in PICTURES:
        assert (out / f"{name}.png").stat().st_size > 20_000


def test_the_files_say_what_the_page_says(ran):
    page, out = ran
    scores = pl.read_csv(out / "classify.csv")
    fidm_row = scores.filter(representation="fidm", setting="binary", part="cv", metric="auc").row(
        0, named=True
    )
    shown = next(line for line in page.splitlines() if line.strip().startswith("FIDM (5)"))
    assert shown.split()[2:5] == [
        f"{100 * fidm_row['value']:.1f}",
        f"{100 * fidm_row['low']:.1f}–{100 * fidm_row['high']:.1f}",
        "70.4",
    ]
    made = json.loads((out / "classify.json").read_text("utf-8"))
    assert made["experiment"] == "classify"
    assert made["settings"]["folds"] == 3
    assert made["result"]["flow"]["n_participants"] == 59
    assert made["result"]["flow"]["excluded"] == {"did not complete": 1}
    assert set(made["result"]["not_run"]) == {"bert", "macbert", "bert+fidm", "macbert+fidm"}
    assert "predictions" not in made["result"]  # single people are in one file alone
    told = (out / "classify-summary.md").read_text("utf-8")
    assert "TRIPOD+AI" in told
    assert "3-fold cross-validation" in told
    assert "simulated" not in told.split("## 11")[0].replace("**", "")


def test_one_line_per_person_and_no_one_judged_twice(ran):
    _, out = ran
    said = pl.read_csv(out / "classify-predictions.csv").filter(setting="binary", representation="fidm")
    assert said["participant"].n_unique() == said.height == 59
    assert set(said["part"]) == {"cv", "held-out"}


def test_json_and_the_same_seed_give_the_same_numbers(study, tmp_path, capsys):
    arguments = ["classify", str(study), "--representations", "score,trajectory", "--representations"]
    arguments += ["score+trajectory", *QUICK, "--by", "sex", "--json"]
    assert main([*arguments, "--out", str(tmp_path / "a"), "--workers", "2"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["result"]["representations"] == ["score", "trajectory", "score+trajectory"]
    assert said["result"]["not_run"] == {}
    assert {row["column"] for row in said["result"]["groups"]} == {"sex"}
    assert main([*arguments, "--out", str(tmp_path / "b")]) == 0
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@pytest.mark.usefixtures("no_pictures")
def test_results_go_into_the_study_and_language_can_be_left_out(study, tmp_path, capsys):
    copy = with_people(study, tmp_path, diagnosis=pl.Series(["normal", "mci"] * 30), age_years=None, sex=None)
    assert main(["classify", str(copy), "--no-language", *QUICKEST]) == 0
    page = capsys.readouterr().out
    assert "BERT" not in page
    assert "hf download" not in page
    assert "normal against mci" in page
    assert "Three classes" not in page
    assert "Within groups" not in page  # nothing is known to form groups by
    assert (copy / "results" / "classify-summary.md").exists()
    assert not (copy / "grounding").exists()  # nothing was read, so nothing is kept


@pytest.mark.usefixtures("no_pictures")
def test_a_study_without_scores_still_has_its_other_rows(study, tmp_path, capsys):
    copy = with_people(study, tmp_path, score_total=None, score_route=None)
    assert main(["classify", str(copy), "--no-language", *QUICKEST]) == 0
    page = capsys.readouterr().out
    assert re.search(r"^ +score +– +– +62.1", page, re.M)
    assert re.search(r"^! score, .*not run: .*score_total", page, re.M)


REFUSED = {
    "one class": (["--label", "same"], "class"),
    "no such column": (["--label", "status"], "status"),
    "no such normal": (["--normal", "healthy"], "healthy"),
    "more folds than people": (["--folds", "70"], "70"),
    "a representation nobody knows": (["--representations", "score+shoe_size"], "shoe_size"),
    "an encoder that is not here": (
        ["--representations", "bert"],
        "hf download google-bert/bert-base-chinese",
    ),
    "a folder that is no encoder": (
        ["--representations", "mine", "--encoder", "mine=nowhere/at/all"],
        "folder is not there",
    ),
    "language and no language": (
        ["--representations", "bert+fidm", "--no-language"],
        "'bert+fidm' asks for it",
    ),
    "an encoder and no language": (["--encoder", "x", "--no-language"], "--encoder asks for it"),
    "a label with a plus": (
        ["--encoder", "a+b=x"],
        "a label has letters, digits, dots, hyphens and underscores",
    ),
    "a label that is taken": (["--encoder", "fidm=x"], "'fidm' is a representation already"),
    "a label twice": (["--encoder", "a=x", "--encoder", "a=y"], "names 'a' twice"),
    "no groups of that name": (["--by", "shoe_size"], "shoe_size"),
    "no repetition": (["--repeats", "0"], "repeats"),
    "a seed that is too large": (["--seed", "4294967296"], "seed is 4294967296"),
    "no names": (["--representations", " , "], "--representations names none"),
    "an encoder for nothing": (
        ["--representations", "score", "--encoder", "mine=somewhere"],
        "--encoder mine is used by no representation",
    ),
    "an encoder of one's own that is not here": (["--encoder", "mine=nowhere/at/all"], "folder is not there"),
    "no such score": (["--representations", "score", "--score", "moca"], "no column 'moca'"),
    "no such subscore": (["--representations", "score+subscores", "--subscores", "a,b"], "no column 'a'"),
    "no such dialogs": (["--talks", "nowhere"], "is not there"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_done_is_refused_in_words(study, tmp_path, capsys, options, words):
    if "same" in options:
        study = with_people(study, tmp_path, same=pl.lit("normal"))
    assert main(["classify", str(study), *options, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert words in said
    assert not (tmp_path / "out").exists()


def test_results_that_could_not_be_written_are_refused_at_once(study, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fidm.line.classify_study", None)  # nothing is computed
    (tmp_path / "file").write_text("", "utf-8")
    assert main(["classify", str(study), "--no-language", "--out", str(tmp_path / "file" / "there")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_missing_score_is_named_where_it_was_asked_for(study, tmp_path, capsys):
    copy = with_people(study, tmp_path, score_total=None)
    assert main(["classify", str(copy), "--representations", "score,fidm"]) == 2
    assert "score_total" in capsys.readouterr().err


def test_an_encoder_without_dialogs_is_refused(study, tmp_path, capsys):
    encoder = tmp_path / "tiny"
    encoder.mkdir()
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (encoder / name).write_text("{}", "utf-8")
    arguments = ["classify", str(study), "--representations", "tiny", "--encoder", str(encoder)]
    assert main(arguments) == 2
    assert "has no dialogs" in capsys.readouterr().err
    assert main([*arguments, "--talks", str(tmp_path / "nowhere")]) == 2
    assert "--talks" in capsys.readouterr().err
