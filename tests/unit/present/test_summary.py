"""The summary along the lines of TRIPOD+AI: everything is in it, and nothing in it breaks the page."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import polars as pl
import pytest
from classifications import make_classification, with_tables, without_language
from rich.console import Console

from fidm.classify import intervals as influence
from fidm.classify.result import MISSING
from fidm.classify.validation import FOLD_NUMBER
from fidm.present.classification import show
from fidm.present.findings import (
    compared,
    excluding_zero,
    factor_rows,
    featured,
    grouped,
    half_width,
    main_rows,
    permutation_p,
    rows_shown,
    say_chance,
    say_checks,
    say_fold,
    say_missing,
    say_widened,
)
from fidm.present.numbers import number, percent, plain_text, span
from fidm.present.summary import ITEMS, summary
from fidm.report.sections_model import checks as report_checks


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


def with_settings(result, **settings):
    """The same result, of another run."""
    return replace(result, record=replace(result.record, settings={**result.record.settings, **settings}))


def without_paper(result):
    """The same result, of a question that the paper did not ask."""
    nothing = pl.lit(None, pl.Float64)
    return with_settings(
        with_tables(
            result,
            scores=result.scores.with_columns(paper=nothing),
            differences=result.differences.with_columns(paper=nothing),
        ),
        label="sex",
        normal="female",
    )


def section(text, number):
    """One section of a summary."""
    return re.split(r"^## \d+ ", text, flags=re.M)[number]


@pytest.fixture(scope="module")
def found():
    return make_classification(notes=("pause is left out: nobody paused",))


@pytest.fixture(scope="module")
def text(found):
    return summary(found)


def test_every_section_is_there_and_every_item_points_to_one(text):
    sections = re.findall(r"^## (\d+) ", text, re.M)
    assert sections == [str(i) for i in range(1, 12)]
    items = tables(text)[0][2:]
    assert [tuple(row) for row in items] == list(ITEMS)
    assert {place for row in items[:-1] for place in row[2].split(", ")} == set(sections)
    assert items[-1][2] == "for the authors"


def test_every_item_of_the_checklist_is_named():
    named = set()
    for words, _, _ in ITEMS:
        for one in re.sub(r" \(in part\)", "", words).split(", "):
            first, last = (*one.split("–"), one)[:2] if "–" in one else (one, one)
            digits = re.match(r"\d+", first)[0]
            if last.isdigit():
                named |= {str(n) for n in range(int(first), int(last) + 1)}
            else:
                letters = range(ord(first[-1]), ord(last[-1]) + 1) if first != digits else ()
                named |= {digits + chr(c) for c in letters} or {digits}
    lettered = {"8": "abc", "9": "abc", "12": "abcdefg", "18": "abcdef", "20": "abc", "23": "ab"}
    whole = {str(n) for n in range(1, 28)} - lettered.keys()
    assert named == whole | {n + letter for n, letters in lettered.items() for letter in letters}


def test_it_says_who_was_in_and_who_was_not_and_why(text):
    assert text.startswith("# Classification of diagnosis: normal against mci, major\\_ncd\n")
    for n in ("400 people", "332 in the training part", "68 in the held-out part", "(column split)"):
        assert n in text, n
    assert "2 (did not complete), 3 (problems in their data), 1 (status not known)" in text
    assert ["normal", "209 (63%)", "43 (63%)"] in tables(text)[1]
    assert "mci and major\\_ncd grouped together" in text
    assert "three classes" in text


def test_it_says_what_was_done(text):
    for words in (
        "C = 1",
        "5-fold cross-validation",
        "5 times with new folds (seed 1)",
        "divided by √d",
        "empirical Bayes",
        "pause is left out",
        "pause\\_presence is not used",
        "widened (× 1.25)",
        "classify-differences.csv",
        "replaced by the median",
        "123 people",
        "BERT (0.2)",
        "fidm 0.1.0; seed 1; task grocery `abc123`",
        "Research use only, not a diagnosis",
    ):
        assert words in text, words
    assert "simulated" not in text
    assert "binary" not in text.lower()
    for number_ in (8, 9):
        assert "first repetition" in section(text, number_)
    assert "fewer than 5 cases" in section(text, 9)
    assert not re.search(r"[ (]-\d", text)  # every minus is a true one
    assert "stay in one fold" not in text


def test_it_has_every_score_with_its_interval(found, text):
    row = found.score("bert+fidm", setting="multiclass", part="held-out", metric="balanced_accuracy")
    cell = f"{percent(row['value'])} ({span(row['low'], row['high'])})"
    assert cell in [
        cells[4] for rows in tables(text) for cells in rows if cells[0] == "BERT + FIDM" and len(cells) == 5
    ]
    assert say_chance(compared(found, "binary")) in text
    assert say_chance(compared(found)) not in text


def test_scores_without_an_interval_have_a_dash(found):
    nothing = pl.lit(None, pl.Float64)
    bare = with_tables(
        found,
        scores=found.scores.with_columns(low=nothing, high=nothing, se=nothing),
        differences=found.differences.with_columns(low=nothing, high=nothing, se=nothing, p=nothing),
    )
    text = summary(bare)
    assert f"{percent(found.score('fidm')['value'])} (–)" in text
    assert "No difference has" in text
    assert "None" not in section(text, 7)
    assert half_width(bare, "cv") is None


def test_every_source_is_named_as_it_was(found):
    rows = {row[0]: row[1] for row in tables(section(summary(found), 3))[0]}
    assert "lab/bert-base (sha256 `bert00000000`)" in rows["BERT"]
    assert rows["score"].endswith("column score\\_total")
    assert rows["score + subscores"].endswith("score\\_total, all other score\\_… with numbers")
    assert "log η" in rows["FIDM"]
    assert "by empirical Bayes" in rows["FIDM"]
    other = with_settings(found, paper_estimates=True, score="moca", subscores=["moca_recall"])
    rows = {row[0]: row[1] for row in tables(section(summary(other), 3))[0]}
    assert "by maximum likelihood" in rows["action"]
    assert "log η" not in summary(other)
    few = found.coefficients.filter(~pl.col("representation").str.contains("bert"))
    assert "not of BERT, MacBERT" in summary(with_tables(found, coefficients=few))
    assert "Bayes" not in summary(other)
    assert rows["score + subscores"].endswith("columns moca, moca\\_recall")


def test_a_transformer_of_ones_own_is_called_so(found):
    own = with_tables(found, scores=found.scores.with_columns(kind=pl.lit("own")))
    assert "refitted" in summary(own)
    fixed = with_settings(own, fixed=dict.fromkeys(found.representations, "abc"))
    assert "refitted" not in summary(fixed)
    assert "learns nothing" in summary(fixed)


def test_another_question_leaves_the_paper_out(found):
    text = summary(without_paper(found))
    assert text.startswith("# Classification of sex: ")
    assert "the paper's figures" not in text.lower()


def test_what_was_done_once_was_done_once(found):
    text = summary(with_settings(found, repeats=1))
    assert "once (seed 1)" in text
    assert f"widened (× √{influence.ALONE**2:.0f})" in text
    assert f"(× {influence.CAREFUL:g})" in say_widened(found)


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
    assert text.count("bert-base-chinese is not on") == 1  # said once, below the table
    assert "BERT, MacBERT, BERT + FIDM, MacBERT + FIDM not run: " in text
    assert "hf download google-bert/bert-base-chinese" in text
    assert "simulated" in text


def test_a_failed_check_is_not_passed_over(found):
    checks = found.checks.with_columns(passed=pl.col("representation") != "fidm")
    text = summary(with_tables(found, checks=checks))
    assert "12 of 14 passed" in text
    assert "2 of 14 checks failed: do not trust" in text
    assert "Failed: scrambled labels (FIDM), fold number (FIDM)." in text
    assert "FAILED" in text
    assert "FAILED" not in summary(found)


def test_small_results_give_a_summary_too(found):
    alone = make_classification(("effort",), classes={"normal": (30, 8), "mci": (20, 5)}, held_out=False)
    text = summary(with_tables(alone, groups=alone.groups.clear(), checks=alone.checks.clear()))
    assert "nobody held out" in text
    assert "(column" not in text
    assert "grouped together" not in text
    assert "held-out part" not in text
    assert "three classes" not in text
    complete = found.missing.with_columns(n_missing=pl.lit(0, pl.Int64))
    assert "No feature was" in summary(with_tables(found, missing=complete))


def test_numbers_in_words():
    assert (percent(1.0), percent(float("nan")), percent(None)) == ("100.0", "–", "–")
    assert [percent(value, sign=True) for value in (-0.0004, -0.0, 0.0004)] == ["−0.0", "+0.0", "+0.0"]
    assert span(None, 0.5) == "–"
    assert (number(-1.005, places=1), number(float("nan"))) == ("−1.0", "–")
    assert span(-0.004, 0.123, sign=True) == "−0.4 to +12.3"


def test_intervals_that_exclude_zero_are_counted(found):
    table = found.differences.head(4).with_columns(
        low=pl.Series([0.01, -0.1, -0.2, None]), high=pl.Series([0.1, -0.05, 0.2, None])
    )
    assert excluding_zero(table) == (3, 1, 1)
    assert say_chance(table).startswith("Of 3 intervals, 2 exclude 0 (1 above, 1 below)")
    assert say_chance(table.head(1)).startswith("Of 1 interval, 1 excludes 0 (1 above, 0 below)")
    assert "No difference" in say_chance(table.clear())
    assert half_width(found, "held-out") == pytest.approx(1.96 * 0.068, abs=1e-6)


def test_rows_come_in_the_papers_order_with_those_not_run_in_place():
    names = [name for name, kind, _ in rows_shown(without_language()) if kind != "ablation"]
    assert names[:6] == ["score", "score+subscores", "trajectory", "bert", "macbert", "fidm"]
    assert names[-1] == "macbert+fidm"
    assert "bert" not in [name for name, _, _ in rows_shown(without_paper(without_language()))]
    kinds = {name: kind for name, kind, _ in rows_shown(without_language())}
    assert (kinds["macbert"], kinds["macbert+fidm"]) == ("language", "fusion")
    assert featured(without_language(), most=99) == without_language().representations


def test_factors_are_rows_of_their_own_table_unless_they_were_asked_for(found):
    assert [name for name, _, _ in factor_rows(found)] == ["action", "effort", "fidm"]
    assert not {"action", "effort"} & {name for name, _, _ in main_rows(found)}
    alone = make_classification(("action", "effort"))
    assert [name for name, _, _ in main_rows(alone)] == ["action", "effort"]
    assert factor_rows(alone) == []  # there is no "together"
    some = make_classification(("score", "action", "fidm"))
    assert [name for name, _, _ in main_rows(some)] == ["score", "fidm", "action"]
    assert [name for name, _, _ in factor_rows(some)] == ["action", "fidm"]


def test_demographics_have_a_heading_of_their_own():
    rows = [("score", "clinical", 1), ("demographics", "clinical", 3), ("fidm", "fidm", 5)]
    assert [words for words, _ in grouped(rows)] == [
        "clinical baselines",
        "demographic baseline",
        "model (both factors)",
    ]


def test_the_check_of_the_fold_says_what_it_found():
    row = {"value": 0.002, "low": -0.01, "high": 0.014, "representation": "fidm", "passed": True}
    assert "+0.2 points of AUC to FIDM (99.9 %: −1.0 to +1.4)" in say_fold(row)
    assert "uncertain" in say_fold({**row, "low": -0.2, "high": 0.2})
    assert "FAILED" in say_fold({**row, "low": 0.1, "high": 0.5, "passed": False})
    assert "FAILED" not in say_fold(row)


def test_a_check_that_is_not_judged_counts_once():
    found = make_classification(("score", "fidm"))
    nothing = pl.when(pl.col("check") != FOLD_NUMBER)
    unknown = found.checks.with_columns(
        low=nothing.then("low"), high=nothing.then("high"), passed=nothing.then("passed")
    )
    (said,) = say_checks(with_tables(found, checks=unknown))
    assert said.endswith("; 2 of 2 passed; 1 not judged")


def test_page_and_report_judge_the_check_of_the_fold_alike():
    found = make_classification(("score", "fidm"))
    wide = found.checks.with_columns(
        low=pl.when(check=FOLD_NUMBER).then(-0.5).otherwise("low"),
        high=pl.when(check=FOLD_NUMBER).then(0.5).otherwise("high"),
    )
    for checks, times in ((wide, 1), (found.checks, 0)):
        shown = with_tables(found, checks=checks)
        (said,) = report_checks(shown)
        console = Console(file=StringIO(), width=140)
        show(shown, console)
        for text in (said, console.file.getvalue()):
            assert text.count("too uncertain to judge with so few people") == times


def test_what_is_imputed_is_said_by_feature_or_by_representation():
    found = make_classification(("score", "action", "fidm", "trajectory"))
    rows = [
        ("action", "eta", "train", 12, 3), ("fidm", "eta", "train", 12, 3), ("fidm", "pause", "train", 12, 0),
        ("trajectory", "n_a", "train", 12, 1), ("trajectory", "n_b", "train", 12, 1),
        ("score", "score_total", "held-out", 4, 2),
    ]  # fmt: skip
    some = with_tables(found, missing=pl.DataFrame(rows, schema=MISSING, orient="row"))
    assert say_missing(some) == [
        "missing, and replaced by the median: eta for 3 of 12 people, score_total for 2 of 4 held-out people, "
        "2 features of trajectory for 1 of 12 people (classify-missing.csv)"
    ]
    assert say_missing(with_tables(found, missing=found.missing.with_columns(n_missing=0))) == []
    rows = [("action", "eta", "train", 12, 12), ("action", "eta", "held-out", 4, 4)]
    gone = pl.DataFrame(rows, schema=MISSING, orient="row")
    assert say_missing(with_tables(found, missing=gone)) == [
        "missing for everybody, and of no use: eta (classify-missing.csv)"
    ]


def test_the_least_p_is_only_a_bound():
    assert permutation_p(1 / 101, 100) == "≤ 0.010"
    assert permutation_p(2 / 101, 100) == "0.020"
    assert permutation_p(1 / 10_001, 10_000) == "≤ 0.0001"
    assert permutation_p(None, 20) == "–"
