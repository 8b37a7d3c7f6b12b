"""The summary along the lines of TRIPOD+AI: everything is in it, and nothing in it breaks the page."""

from __future__ import annotations

import re

import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language

from fidm.study.tripod import plain_text, summary
from fidm.study.wording import (
    compared,
    excluding_zero,
    featured,
    half_width,
    percent,
    rows_shown,
    say_chance,
    span,
)


def tables(text):
    """Every table of a Markdown page, as rows of cells."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            found.append(rows)
            rows = []
    return found


@pytest.fixture(scope="module")
def found():
    return make_classification(notes=("pause is left out: nobody paused",))


@pytest.fixture(scope="module")
def text(found):
    return summary(found)


def test_every_section_is_there_and_every_item_points_to_one(text):
    sections = re.findall(r"^## (\d+) ", text, re.M)
    assert sections == [str(i) for i in range(1, 12)]
    items = tables(text)[0]
    assert [row[2] for row in items[2:-1]] == sections
    assert "to be told by the study" in items[-1]


def test_it_says_who_was_in_and_who_was_not_and_why(text):
    assert "400 people were analysed: 332 to learn from and for cross-validation, 68 held out" in text
    assert "Left out: did not complete (2); problems in their data (3); status not known (1)." in text
    assert ["normal", "209 (63%)", "43 (63%)"] in tables(text)[1]
    assert "Binary question: normal against mci and major\\_ncd grouped together." in text


def test_it_says_what_was_done(text):
    for words in (
        "C = 1",
        "nothing was tuned",
        "5-fold cross-validation",
        "5 times with new folds (seed 1)",
        "divided by √d",
        "empirical Bayes",
        "pause is left out\\: nobody paused",
        "replaced by the median",
        "123 people in the training part",
        "BERT (0.2)",
        "no external validation",
        "fidm 0.1.0; seed 1; task grocery `abc123`",
        "Research use only, not a diagnosis",
    ):
        assert words in text, words
    assert "simulated" not in text
    assert "stay in one fold" not in text


def test_it_has_every_score_with_its_interval(found, text):
    row = found.score("bert+fidm", setting="multiclass", part="held-out", metric="balanced_accuracy")
    cell = f"{percent(row['value'])} ({span(row['low'], row['high'])})"
    assert cell in [
        cells[4] for rows in tables(text) for cells in rows if cells[0] == "BERT + FIDM" and len(cells) == 5
    ]
    assert say_chance(compared(found)) in text


def test_every_table_has_as_many_cells_in_every_row(text):
    made = tables(text)
    assert len(made) == 10
    for rows in made:
        assert {len(row) for row in rows} == {len(rows[0])}


def test_what_a_study_calls_things_cannot_break_the_page():
    nasty = "a|b\n# *c* <script> [x](http://y) `z`"
    made = make_classification(
        classes={"normal": (40, 12), nasty: (30, 9)}, excluded={nasty: 4}, notes=(nasty,)
    )
    groups = made.groups.with_columns(column=pl.lit(nasty), group=pl.lit("|"))
    text = summary(with_tables(made, groups=groups))
    assert "<script>" not in text
    assert "\n# *c*" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert len(re.findall(r"^# ", text, re.M)) == 1
    for rows in tables(text):
        assert {len(row) for row in rows} == {len(rows[0])}


def test_plain_text_is_one_line_and_loses_nothing_to_markdown():
    assert plain_text("score_total") == r"score\_total"
    assert plain_text(" a\n\tb\x00 ") == "a b"
    assert plain_text("認知_正常") == r"認知\_正常"


def test_rows_that_were_not_run_say_why():
    text = summary(without_language(), simulated=True)
    assert "| BERT + FIDM | not run: bert-base-chinese is not on this machine." in text
    assert "**These people are simulated.**" in text


def test_a_failed_check_is_not_passed_over(found):
    checks = found.checks.with_columns(passed=pl.col("representation") != "fidm")
    text = summary(with_tables(found, checks=checks))
    assert "for 12 of 13 representations" in text
    assert "FAILED" in text
    assert "must not be trusted" in text
    assert "must not be trusted" not in summary(found)


def test_small_results_give_a_summary_too(found):
    alone = make_classification(("effort",), classes={"normal": (30, 8), "mci": (20, 5)}, held_out=False)
    text = summary(with_tables(alone, groups=alone.groups.clear(), checks=alone.checks.clear()))
    assert "none held out" in text
    assert "no columns of age, sex or education" in text
    assert "held-out part" not in text
    assert "classes apart" not in text
    complete = found.missing.with_columns(n_missing=pl.lit(0, pl.Int64))
    assert "No feature was missing for anybody." in summary(with_tables(found, missing=complete))


def test_numbers_in_words():
    assert (percent(1.0), percent(float("nan")), percent(None)) == ("100.0", "–", "–")
    assert [percent(value, sign=True) for value in (-0.0004, -0.0, 0.0004)] == ["-0.0", "+0.0", "+0.0"]
    assert span(None, 0.5) == "–"
    assert span(-0.004, 0.123, sign=True) == "-0.4 to +12.3"


def test_intervals_that_exclude_zero_are_counted(found):
    table = found.differences.head(4).with_columns(
        low=pl.Series([0.01, -0.1, -0.2, None]), high=pl.Series([0.1, -0.05, 0.2, None])
    )
    assert excluding_zero(table) == (3, 1, 1)
    assert say_chance(table).startswith("Of 3 intervals, 2 exclude 0 (1 above, 1 below)")
    assert "about 2 would by chance" in say_chance(compared(found))  # 5 % of 40
    assert say_chance(table.clear()) == "No difference has an interval."
    assert half_width(found, "held-out") == pytest.approx(1.96 * 0.068, abs=1e-6)


def test_rows_come_in_the_papers_order_with_those_not_run_in_place():
    names = [name for name, kind, _ in rows_shown(without_language()) if kind != "ablation"]
    assert names[:6] == ["score", "score+subscores", "trajectory", "bert", "macbert", "fidm"]
    assert names[-1] == "macbert+fidm"
    kinds = {name: kind for name, kind, _ in rows_shown(without_language())}
    assert (kinds["macbert"], kinds["macbert+fidm"]) == ("language", "fusion")
    assert featured(without_language(), most=99) == without_language().representations
