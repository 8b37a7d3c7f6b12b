"""What ``fidm classify`` prints, for results made up by hand: every number in its place, at any width."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language
from rich.cells import cell_len

from fidm.present.classification import show
from fidm.present.numbers import percent, span
from fidm.present.terminal import page


def printed(result, monkeypatch, width=120, **options):
    monkeypatch.setenv("COLUMNS", str(width))
    console = page()
    console.file = io.StringIO()
    show(result, console, **options)
    return console.file.getvalue()


def cells(text, row, after=""):
    """The texts of the first row of that name after a heading."""
    lines = text[text.index(after) :].splitlines()
    return next(line for line in lines if line.strip().startswith(row)).split(row, 1)[1].split()


def test_the_papers_second_table_stands_beside_ours(monkeypatch):
    found = make_classification()
    text = printed(found, monkeypatch)
    row = found.score("score+fidm", part="held-out", metric="balanced_accuracy")
    two = "Two classes (the paper's table 2, left): normal against mci and major_ncd; in per cent"
    three = "Three classes (table 2, right): normal, mci, major_ncd, each against the rest"
    shown = cells(text, "score + FIDM (6)", after=two)
    assert shown[-3:] == [percent(row["value"]), span(row["low"], row["high"]), "68.6"]
    assert len(shown) == 12
    assert cells(text, "score + FIDM (6)", after=three)[2] == "70.2"
    headings = [
        "clinical baselines", "behavioural baselines", "language baselines", "model (both factors)", "combinations",
    ]  # fmt: skip
    assert [line.strip() for line in text.splitlines() if line.strip() in headings] == headings * 2


def test_the_papers_third_table_takes_the_factors_apart(monkeypatch):
    text = printed(make_classification(), monkeypatch)
    after = "Factors alone and together (table 3), by cross-validation"
    assert [cells(text, name, after=after)[2::3] for name in ("action (1)", "effort (4)", "FIDM (5)")] == [
        ["67.9", "63.7", "62.6", "47.9"],
        ["64.2", "61.8", "63.0", "51.7"],
        ["70.4", "65.1", "67.4", "49.6"],
    ]


def test_rows_that_were_not_run_keep_their_place_and_say_what_to_do(monkeypatch):
    text = printed(without_language(), monkeypatch)
    assert cells(text, "BERT ", after="Two classes")[:3] == ["–", "–", "67.6"]
    assert cells(text, "MacBERT + FIDM", after="Three classes")[:3] == ["–", "–", "72.6"]
    warnings = [line for line in text.splitlines() if line.startswith("! ")]
    assert len(warnings) == 1  # one reason is said once
    assert warnings[0].startswith("! BERT, MacBERT, BERT + FIDM, MacBERT + FIDM not run: ")
    assert "hf download google-bert/bert-base-chinese" in warnings[0]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
@pytest.mark.parametrize("full", [False, True])
def test_tables_fit_the_terminal(monkeypatch, width, full):
    text = printed(make_classification(), monkeypatch, width, full=full)
    lines = [line.rstrip() for line in text.splitlines() if line.startswith(" ")]
    assert max(map(cell_len, lines)) <= width
    for name in ("score + subscores + FIDM (13)", "action (1)"):
        rows = [line.split(name)[1].split() for line in lines if line.strip().startswith(name)]
        assert sum(map(len, rows)) == (24 if name.startswith("score") else 12)  # nothing is lost or broken
        assert all(len(row) % 3 == 0 for row in rows)
    assert text.count("─ cross-validation ─") == (4 if full else 3)  # once above all of its columns
    assert "95 % CI paper" in text


def test_narrow_tables_still_say_which_question_they_answer(monkeypatch):
    text = printed(make_classification(), monkeypatch, 80)
    factors = text[text.index("Factors alone") : text.index("What a combination")]
    assert "two classes" in factors
    assert "three classes" in factors


def test_who_is_in_it_and_who_is_not(monkeypatch):
    text = printed(make_classification(), monkeypatch)
    assert text.startswith("400 participants")
    assert cells(text, "major_ncd") == ["20", "4"]
    assert cells(text, "together") == ["332", "68"]
    assert "left out: 2 (did not complete), 3 (problems in their data), 1 (status not known)\n" in text
    assert text.count("cases: ") == 1
    assert "simulated" not in text
    assert "simulated" in printed(make_classification(), monkeypatch, simulated=True)
    many = make_classification(excluded={f"reason {n}": 10 - n for n in range(8)})
    assert "6 (reason 4), 12 (other reasons)" not in printed(many, monkeypatch)
    assert "6 (reason 4), 16 (other reasons)" in printed(many, monkeypatch)


def test_differences_are_marked_and_counted(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    gains = found.differences.with_columns(
        value=pl.lit(-0.05),
        low=pl.when(part="cv").then(-0.08).otherwise(-0.2),
        high=pl.when(part="cv").then(-0.01).otherwise(0.1),
    )
    text = printed(with_tables(found, differences=gains), monkeypatch, 160)
    shown = cells(text, "score + FIDM", after="What a combination adds")
    assert shown[:5] == ["↓−5.0", "−8.0", "to", "−1.0", "+10.6"]
    assert shown[10:15] == ["−5.0", "−20.0", "to", "+10.0", "+8.4"]
    assert "Of 4 intervals, 2 exclude 0 (0 above, 2 below)" in text  # over what is shown
    assert "classify-differences.csv" in text
    assert "baseline, three classes" not in text
    everything = printed(with_tables(found, differences=gains), monkeypatch, 160, full=True)
    assert "Of 8 intervals, 4 exclude 0 (0 above, 4 below)" in everything
    assert "baseline, three classes" in everything
    assert "significant" not in text


def test_other_combinations_say_what_they_are_compared_with(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    gains = found.differences.with_columns(representation=pl.lit("score+trajectory"), against=pl.lit("score"))
    text = printed(with_tables(found, differences=gains), monkeypatch)
    assert "score + trajectory − score" in text


def test_checks_are_one_line_if_all_passed(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    text = printed(found, monkeypatch)
    [line] = [line for line in text.splitlines() if line.startswith("checks: ")]
    for n in ("scrambled 100 times", "50.3 (50 expected)", "−0.1 points", "4 of 4 passed"):
        assert n in line, n
    assert "Scrambled labels" not in text
    wide = found.checks.with_columns(high=pl.when(check="fold number").then(0.4).otherwise("high"))
    text = printed(with_tables(found, checks=wide), monkeypatch)
    assert "1 not judged, 3 of the other 3 passed" in text
    assert "too uncertain" in text
    single = found.checks.with_columns(
        passed=pl.when(check="fold number").then("passed"), n=pl.lit(1, pl.Int64)
    )
    text = printed(with_tables(found, checks=single), monkeypatch)
    assert "scrambled once" in text
    assert "3 not judged, 1 of the other 1 passed" in text


def test_checks_are_shown_in_full_and_a_failed_one_is_not_passed_over(monkeypatch):
    found = make_classification(("score", "fidm", "score+fidm"))
    text = printed(found, monkeypatch, full=True)
    after = "Scrambled labels must give"
    assert cells(text, "FIDM", after=after) == ["50.3", "49.0–51.6", "✓", "68.0", "≤", "0.010"]
    assert "no p below 0.010" in text
    assert "−0.1 points of AUC to FIDM (99.9 %: −0.6 to +0.4)" in text
    assert "do not trust" not in text
    failed = with_tables(found, checks=found.checks.with_columns(passed=pl.lit(value=False)))
    text = printed(failed, monkeypatch)
    assert after in text
    assert "FAILED" in text
    assert "! 4 of 4 checks failed: do not trust" in text
    unjudged = with_tables(
        found, checks=found.checks.with_columns(passed=pl.lit(None, pl.Boolean), p=pl.lit(None, pl.Float64))
    )
    text = printed(unjudged, monkeypatch, full=True)
    assert cells(text, "FIDM", after="Scrambled")[2:] == ["–", "68.0", "–"]
    assert "no p: " in text


def test_the_page_says_what_its_numbers_rest_on(monkeypatch):
    found = make_classification(notes=("pause is left out: nobody paused",))
    text = printed(found, monkeypatch)
    more = ("Within groups, AUC by cross-validation", "At a threshold of one half", "a slope of 1 are best")
    for words in (
        "its 95 % confidence interval",
        "pause is left out: nobody paused",
        "pause_presence is not used",
        "68 held-out people",
        "about 13 points",
        "5 folds, 5 times",
        "widened (× 1.25)",
        "--full, or classify-summary.md",
    ):
        assert words in text, words
    assert not [words for words in more if words in text]
    full = printed(found, monkeypatch, full=True)
    assert not [words for words in more if words not in full]
    assert full.count("from the first repetition") == 3
    assert not re.search(r"(?<![\w.])-\d", full)  # every minus is a true one


def test_another_question_than_the_papers_leaves_its_figures_out(monkeypatch):
    found, nothing = without_language(), pl.lit(None, pl.Float64)
    settings = {**found.record.settings, "label": "sex", "normal": "female"}
    other = replace(
        found,
        record=replace(found.record, settings=settings),
        scores=found.scores.with_columns(paper=nothing),
        differences=found.differences.with_columns(paper=nothing),
    )
    text = printed(other, monkeypatch, full=True)
    assert text.count("figures are left out") == 1
    assert text.count("paper") == 2  # there, and where pause_presence is left out as the paper does
    assert "Two classes: normal against" in text
    assert len(cells(text, "score + FIDM (6)", after="Two classes")) == 8
    assert not re.search(r"^ +BERT", text, re.M)  # a row without anything in it is left out
    assert "! BERT, MacBERT, BERT + FIDM, MacBERT + FIDM not run: " in text


def test_what_has_no_interval_has_a_dash(monkeypatch):
    found, nothing = make_classification(("score", "fidm", "score+fidm")), pl.lit(None, pl.Float64)
    bare = with_tables(
        found,
        scores=found.scores.with_columns(low=nothing, high=nothing, se=nothing),
        differences=found.differences.with_columns(low=nothing, high=nothing, se=nothing, p=nothing),
    )
    text = printed(bare, monkeypatch)
    assert cells(text, "FIDM (5)", after="Two classes")[1::3] == ["–"] * 4
    assert "No difference has" in text
    assert "None" not in text


def test_factors_alone_have_their_table(monkeypatch):
    text = printed(make_classification(("action", "effort")), monkeypatch)
    assert len(cells(text, "effort (4)", after="Two classes")) == 12
    assert "single factors" in text
    assert "Factors alone and together" not in text


def test_two_classes_and_nobody_held_out_give_a_shorter_page(monkeypatch):
    found = make_classification(("effort",), classes={"normal": (30, 0), "mci": (20, 0)}, held_out=False)
    bare = with_tables(found, checks=found.checks.clear(), groups=found.groups.clear())
    text = printed(bare, monkeypatch)
    assert "nobody is held" in text
    for words in ("held-out part", "Three", "Factors alone", "What a combination", "Within", "\nchecks:"):
        assert words not in text, words


def test_markup_in_a_study_is_shown_as_it_is(monkeypatch):
    found = make_classification(classes={"normal": (30, 9), "[red]x[/]": (20, 9)}, excluded={"[b]y": 1})
    text = printed(found, monkeypatch)
    assert re.search(r"^ \[red\]x\[/\] +20 +9", text, re.M)
    assert "normal against [red]x[/];" in text
    assert "left out: 1 ([b]y), " in text


def test_nothing_is_said_of_intervals_that_are_not_there(monkeypatch):
    found = make_classification()
    assert "intervals are widened" in printed(found, monkeypatch)
    none = pl.lit(None, pl.Float64)
    bare = with_tables(found, scores=found.scores.with_columns(se=none, low=none, high=none))
    assert "intervals are widened" not in printed(bare, monkeypatch)
