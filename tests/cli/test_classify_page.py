"""What ``fidm classify`` prints, for results made up by hand: every number in its place, at any width."""

from __future__ import annotations

import io
import re

import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language
from rich.cells import cell_len

from fidm.cli.classify_page import show
from fidm.cli.console import page
from fidm.study.wording import percent, span


def printed(result, monkeypatch, width=120):
    monkeypatch.setenv("COLUMNS", str(width))
    console = page()
    console.file = io.StringIO()
    show(result, console)
    return console.file.getvalue()


def cells(text, row, after=""):
    """The texts of the first row of that name after a heading."""
    lines = text[text.index(after) :].splitlines()
    return next(line for line in lines if line.strip().startswith(row)).split(row, 1)[1].split()


def test_the_papers_second_table_stands_beside_ours(monkeypatch):
    found = make_classification()
    text = printed(found, monkeypatch)
    row = found.score("score+fidm", part="held-out", metric="balanced_accuracy")
    shown = cells(text, "score + FIDM (6)", after="Two classes, normal against mci, major_ncd")
    assert shown[-3:] == [percent(row["value"]), span(row["low"], row["high"]), "68.6"]
    assert len(shown) == 12
    assert cells(text, "score + FIDM (6)", after="3 classes, normal")[2] == "70.2"
    headings = [
        "clinical baselines", "behavioural baselines", "language baselines", "both factors", "combinations",
    ]  # fmt: skip
    assert [line.strip() for line in text.splitlines() if line.strip() in headings] == headings * 2


def test_the_papers_third_table_takes_the_factors_apart(monkeypatch):
    text = printed(make_classification(), monkeypatch)
    after = "Factors alone and together"
    assert [cells(text, name, after=after)[2::3] for name in ("action (1)", "effort (4)", "FIDM (5)")] == [
        ["67.9", "63.7", "62.6", "47.9"],
        ["64.2", "61.8", "63.0", "51.7"],
        ["70.4", "65.1", "67.4", "49.6"],
    ]


def test_rows_that_were_not_run_keep_their_place_and_say_what_to_do(monkeypatch):
    text = printed(without_language(), monkeypatch)
    assert cells(text, "BERT ", after="Two classes")[:3] == ["–", "–", "67.6"]
    assert cells(text, "MacBERT + FIDM", after="3 classes")[:3] == ["–", "–", "72.6"]
    warnings = [line for line in text.splitlines() if line.startswith("! ")]
    assert len(warnings) == 1  # one reason is said once
    assert warnings[0].startswith("! BERT, MacBERT, BERT + FIDM, MacBERT + FIDM not run: ")
    assert "hf download google-bert/bert-base-chinese" in warnings[0]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_tables_fit_the_terminal(monkeypatch, width):
    text = printed(make_classification(), monkeypatch, width)
    lines = [line.rstrip() for line in text.splitlines() if line.startswith(" ")]
    assert max(map(cell_len, lines)) <= width
    for name in ("score + subscores + FIDM (13)", "action (1)"):
        rows = [line.split(name)[1].split() for line in lines if line.strip().startswith(name)]
        assert sum(map(len, rows)) == (24 if name.startswith("score") else 12)  # nothing is lost or broken
        assert all(len(row) % 3 == 0 for row in rows)


def test_narrow_tables_still_say_which_question_they_answer(monkeypatch):
    text = printed(make_classification(), monkeypatch, 80)
    factors = text[text.index("Factors alone") : text.index("What a combination")]
    assert "two classes" in factors
    assert "all classes" in factors


def test_who_is_in_it_and_who_is_not(monkeypatch):
    text = printed(make_classification(), monkeypatch)
    assert text.startswith("400 participants of known status in 3 classes")
    assert cells(text, "major_ncd") == ["20", "4"]
    assert cells(text, "together") == ["332", "68"]
    assert (
        "· not in it: 2 participants excluded: did not complete (2); 3 left out because of problems in their "
        "data; 1 of unknown status" in text
    )


def test_differences_are_marked_and_counted(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    gains = found.differences.with_columns(
        value=pl.lit(-0.05),
        low=pl.when(part="cv").then(-0.08).otherwise(-0.2),
        high=pl.when(part="cv").then(-0.01).otherwise(0.1),
    )
    text = printed(with_tables(found, differences=gains), monkeypatch, 160)
    shown = cells(text, "score + FIDM", after="What a combination adds")
    assert shown[:5] == ["↓-5.0", "-8.0", "to", "-1.0", "+10.6"]
    assert shown[10:15] == ["-5.0", "-20.0", "to", "+10.0", "+8.4"]
    assert "Of 8 intervals, 4 exclude 0 (0 above, 4 below)" in text
    assert "significant" not in text


def test_other_combinations_say_what_they_are_compared_with(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    gains = found.differences.with_columns(representation=pl.lit("score+trajectory"), against=pl.lit("score"))
    text = printed(with_tables(found, differences=gains), monkeypatch)
    assert "score + trajectory − score" in text


def test_checks_are_shown_and_a_failed_one_is_not_passed_over(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    text = printed(found, monkeypatch)
    assert cells(text, "FIDM", after="Scrambled labels must give") == [
        "50.3",
        "49.0–51.6",
        "✓",
        "68.0",
        "0.010",
    ]
    assert (
        "The number of the fold adds -0.1 points of AUC to FIDM (99.9 %: -0.6 to +0.4), as it must." in text
    )
    assert "do not trust" not in text
    failed = with_tables(found, checks=found.checks.with_columns(passed=pl.lit(value=False)))
    text = printed(failed, monkeypatch)
    assert "which it must not" in text
    assert "! 4 of 4 checks failed: do not trust the tables above before it is known why" in text
    unjudged = with_tables(found, checks=found.checks.with_columns(passed=pl.lit(None, pl.Boolean)))
    assert cells(printed(unjudged, monkeypatch), "FIDM", after="Scrambled")[2] == "–"


def test_the_page_says_what_its_numbers_rest_on(monkeypatch):
    text = printed(make_classification(notes=("pause is left out: nobody paused",)), monkeypatch)
    for words in (
        "pause is left out: nobody paused",
        "68 held-out people are few: the interval of an AUC reaches about 13 points to either side",
        "LeDell et al. 2015",
        "some intervals exclude 0 by chance",
        "the paper's figures are of its own 400 people, whose data are not public",
        "Within groups, AUC by cross-validation",
        "At a threshold of one half",
        "an intercept of 0 and a slope of 1 are best",
    ):
        assert words in text, words


def test_two_classes_and_nobody_held_out_give_a_shorter_page(monkeypatch):
    found = make_classification(("effort",), classes={"normal": (30, 0), "mci": (20, 0)}, held_out=False)
    bare = with_tables(found, checks=found.checks.clear(), groups=found.groups.clear())
    text = printed(bare, monkeypatch)
    assert "nobody is held out: only cross-validation speaks" in text
    for words in ("held-out part", "apart;", "Factors alone", "What a combination", "Within", "Scrambled"):
        assert words not in text, words


def test_markup_in_a_study_is_shown_as_it_is(monkeypatch):
    found = make_classification(classes={"normal": (30, 9), "[red]x[/]": (20, 9)}, excluded={"[b]y": 1})
    text = printed(found, monkeypatch)
    assert re.search(r"^ \[red\]x\[/\] +20 +9", text, re.M)
    assert "Two classes, normal against [red]x[/]" in text
    assert "[b]y (1)" in text
