"""The sections of the summary with results: performance, thresholds, calibration, groups, limitations."""

from __future__ import annotations

import polars as pl

from fidm.study.check_words import check_level, say_fold
from fidm.study.classified import Classification, in_words
from fidm.study.leakage import FOLD_NUMBER, SCRAMBLED
from fidm.study.markdown import cell, plain_text, rows_of, table
from fidm.study.subgroups import FEWEST
from fidm.study.wording import (
    DASH,
    FIRST,
    METRICS,
    NO_INTERCEPT,
    PARTS,
    SHORT,
    baseline_of,
    between,
    compared,
    featured,
    has_paper,
    how_many_classes,
    number,
    say_chance,
    times,
)


def performance(result: Classification) -> list[str]:
    """Return section 7: scores with intervals, and what combinations add."""
    lines = ["## 7 Performance", "", "In per cent, with 95 % intervals.", ""]
    parts = result.parts
    known = {
        (row["setting"], row["part"], row["metric"], row["representation"]): row
        for row in result.scores.iter_rows(named=True)
    }
    header = ["", *(f"{PARTS[part]}, {SHORT[metric]}" for part in parts for metric in METRICS)]
    for setting in result.settings:
        rows = [
            [
                plain_text(in_words(name)),
                *(cell(known.get((setting, part, metric, name))) for part in parts for metric in METRICS),
            ]
            for name in result.representations
        ]
        lines += [f"**{how_many_classes(result, setting).capitalize()}**", *table(header, rows)]
    differences = compared(result, "binary")
    if not differences.height:
        return lines[:-1]
    found = {
        (row["part"], row["metric"], row["representation"], row["against"]): row
        for row in differences.iter_rows(named=True)
    }
    pairs = differences.select("representation", "against").unique(maintain_order=True).rows()
    rows = [
        [
            _pair(*pair),
            *(cell(found.get((part, metric, *pair)), sign=True) for part in parts for metric in METRICS),
        ]
        for pair in pairs
    ]
    more = f" and {how_many_classes(result, 'multiclass')}" if "multiclass" in result.settings else ""
    return [
        *lines,
        "**What a combination adds to its baseline**, two classes, in points",
        *table(header, rows),
        f"{say_chance(differences)} p values{more}: classify-differences.csv.",
    ]


def output(result: Classification) -> list[str]:
    """Return section 8: what a threshold of one half gives, and calibration."""
    chosen = featured(result)
    rows = []
    for row in rows_of(result.thresholds, chosen):
        shares = (cell(row, name) for name in ("sensitivity", "specificity", "ppv", "npv"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *shares])
    lines = [
        "## 8 Probabilities and thresholds",
        "",
        f"Two classes. {FIRST} Intervals of this section are not widened.",
        "",
        "At a threshold of one half of the balanced probability, fixed before anybody was judged; in per "
        "cent, with Wilson's intervals. PPV and NPV hold only where cases are as frequent as among these "
        "people.",
        *table(["", "", "sensitivity", "specificity", "PPV", "NPV"], rows, left=2),
        "Calibration, at the prevalence of the training part (best: intercept 0, slope 1, a Brier score "
        f"below that of the prevalence alone). {NO_INTERCEPT}",
    ]
    rows = []
    for row in rows_of(result.calibration_summary, chosen):
        numbers = (
            f"{number(row[name])} ({between(row[f'{name}_low'], row[f'{name}_high'])})"
            if row[name] is not None
            else DASH
            for name in ("intercept", "slope")
        )
        briers = (number(row[name], places=3) for name in ("brier", "brier_reference"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *numbers, *briers])
    lines += table(["", "", "intercept", "slope", "Brier", "of the prevalence"], rows, left=2)
    return [*lines, "Clinical utility (net benefit): not examined."]


def groups(result: Classification) -> list[str]:
    """Return section 9: scores within groups of people."""
    chosen = featured(result, most=2)
    shown = result.groups.filter(pl.col("representation").is_in(list(chosen)), metric="auc")
    if not shown.height:
        return ["## 9 Groups", "", "The study has no columns of age, sex or education to cut people by."]
    keys = shown.select("column", "group").unique(maintain_order=True).rows()
    known = {
        (row["column"], row["group"], row["part"], row["representation"]): row
        for row in shown.iter_rows(named=True)
    }
    parts = result.parts
    rows = []
    for column, group in keys:
        sizes = [
            next((known[key] for name in chosen if (key := (column, group, part, name)) in known), None)
            for part in parts
        ]
        people = (f"{one['n_cases']:,} of {one['n']:,}" if one else DASH for one in sizes)
        cells = (cell(known.get((column, group, part, name))) for part in parts for name in chosen)
        rows.append([plain_text(column), plain_text(group), *people, *cells])
    header = [
        "",
        "",
        *(f"cases, {PARTS[part]}" for part in parts),
        *(f"{plain_text(in_words(name))}, {PARTS[part]}" for part in parts for name in chosen),
    ]
    lines = [
        "## 9 Groups",
        "",
        f"Area under the ROC curve, two classes, in per cent. {FIRST} Intervals are DeLong's, not widened. "
        "Balanced accuracy and all other representations: classify-groups.csv.",
        *table(header, rows, left=2),
    ]
    if shown["value"].null_count():
        return [*lines, f"{DASH}: fewer than {FEWEST} cases or {FEWEST} others."]
    return lines[:-1]


def limitations(result: Classification, *, simulated: bool) -> list[str]:
    """Return section 10: checks for leaks, and what the numbers do not show."""
    lines = ["## 10 Checks and limitations", ""]
    scrambled = result.checks.filter(check=SCRAMBLED)
    if scrambled.height:
        often, judged = times(int(scrambled["n"][0])), scrambled.drop_nulls("passed")
        lines.append(
            f"- Labels scrambled {often} give an AUC of one half, as they must, for "
            f"{int(judged['passed'].sum()):,} of {judged.height:,} representations ({check_level()} "
            "intervals)."
            if judged.height
            else f"- Labels were scrambled {often}, which is too few to judge what they give."
        )
    lines += [
        f"- {plain_text(say_fold(row))}"
        for row in result.checks.filter(check=FOLD_NUMBER).iter_rows(named=True)
    ]
    if result.checks.filter(passed=False).height:
        lines.append("- **A check failed. The results above must not be trusted before it is known why.**")
    return [
        *lines,
        "- Intervals do not cover chance in who was trained on or in how folds were cut (classify.csv has "
        "the spread over repetitions), nor another clinic, language or map.",
        "- Representations were compared many times on the same people; some intervals exclude 0 by chance.",
        *(
            ["- The held-out part comes from the same study: this is no external validation."]
            if "held-out" in result.parts
            else ["- Nobody was held out: this is no external validation."]
        ),
        *(["- The people are simulated and made to resemble the paper's."] if simulated else []),
        *(
            ["- The paper's figures in classify.csv are of its own 400 people, whose data are not public."]
            if has_paper(result)
            else []
        ),
    ]


def _pair(representation: str, against: str) -> str:
    words = plain_text(in_words(representation))
    return words if baseline_of(representation) == against else f"{words} − {plain_text(in_words(against))}"
