"""What ``fidm classify --full`` shows besides: thresholds, calibration, groups of people, and all checks."""

from __future__ import annotations

import polars as pl
from rich.console import Console
from rich.text import Text

from fidm.cli.console import note, table_of
from fidm.study.check_words import check_level, permutation_p, say_fold
from fidm.study.classified import Classification
from fidm.study.leakage import FOLD_NUMBER, SCRAMBLED
from fidm.study.markdown import rows_of
from fidm.study.subgroups import FEWEST
from fidm.study.wording import (
    DASH,
    FIRST,
    NO_INTERCEPT,
    PARTS,
    between,
    briefly,
    featured,
    number,
    percent,
    span,
)

VERDICTS = {True: "✓", False: "✗", None: DASH}


def show_closely(found: Classification, console: Console) -> None:
    """Print thresholds and calibration of a few representations."""
    chosen = featured(found)
    rows = []
    for row in rows_of(found.thresholds, chosen):
        shares = (
            f"{percent(row[name])} {span(row[f'{name}_low'], row[f'{name}_high'])}"
            for name in ("sensitivity", "specificity")
        )
        rows.append([briefly(row["representation"]), PARTS[row["part"]], *shares])
    if rows:
        console.print(
            "[bold]At a threshold of one half[/] of the balanced probability, in per cent", soft_wrap=True
        )
        console.print(table_of(["", "", "sensitivity, 95 % CI", "specificity, 95 % CI"], rows, left=2))
        note(console, f"{FIRST} Intervals are Wilson's, not widened.")
        console.print()
    rows = []
    for row in rows_of(found.calibration_summary, chosen):
        numbers = (
            f"{number(row[name])} {between(row[f'{name}_low'], row[f'{name}_high'])}"
            if row[name] is not None
            else DASH
            for name in ("intercept", "slope")
        )
        rows.append([briefly(row["representation"]), PARTS[row["part"]], *numbers])
    if rows:
        console.print("[bold]Calibration[/]: an intercept of 0 and a slope of 1 are best", soft_wrap=True)
        console.print(table_of(["", "", "intercept, 95 % CI", "slope, 95 % CI"], rows, left=2))
        note(console, f"{FIRST} Intervals are not widened. {NO_INTERCEPT}")
        console.print()


def show_groups(found: Classification, console: Console) -> None:
    """Print the area under the curve within groups of people, for a few representations."""
    chosen = list(featured(found, most=2))
    table = found.groups.filter(pl.col("representation").is_in(chosen), part="cv", metric="auc")
    if not table.height:
        return
    values = {
        (row["column"], row["group"], row["representation"]): row for row in table.iter_rows(named=True)
    }
    rows = []
    for column, group, n, cases in (
        table.select("column", "group", "n", "n_cases")
        .unique(["column", "group"], maintain_order=True)
        .rows()
    ):
        cells = []
        for name in chosen:
            row = values.get((column, group, name))
            known = row is not None and row["value"] is not None
            cells.append(
                f"{percent(row['value'])} {span(row['low'], row['high'])}" if row and known else DASH
            )
        rows.append([column, group, f"{n:,}", f"{cases:,}", *cells])
    console.print("[bold]Within groups[/], AUC by cross-validation, in per cent", soft_wrap=True)
    header = ["", "", "people", "cases", *(briefly(name) for name in chosen)]
    console.print(table_of(header, rows, left=2))
    few = f" {DASH}: fewer than {FEWEST} cases or {FEWEST} others." if table["value"].null_count() else ""
    note(console, f"{FIRST} Intervals are not widened.{few}")
    console.print()


def show_checks(found: Classification, console: Console) -> None:
    """Print what scrambled labels and features that name the fold give: nothing, if all is well."""
    table = found.checks.filter(check=SCRAMBLED)
    rows, least = [], False
    for row in table.iter_rows(named=True):
        low, high = row["low"], row["high"]
        p = permutation_p(row["p"], row["n"])
        least = least or p.startswith("≤")
        rows.append(
            [
                briefly(row["representation"]),
                percent(row["value"]),
                DASH if low is None or high is None else span(max(low, 0.0), min(high, 1.0)),
                VERDICTS[row["passed"]],
                percent(row["observed"]),
                p,
            ]
        )
    if rows:
        console.print("[bold]Scrambled labels[/] must give an AUC of 50 per cent", soft_wrap=True)
        made = table_of(["", "scrambled", check_level(), "passed", "true labels,", "p"], rows)
        made.columns[4].header = Text("true labels,\nfirst\nrepetition", justify="right")
        console.print(made)
        if table["p"].null_count() == table.height:
            note(console, "no p: some people belong together, so labels cannot be exchanged freely")
    if least:
        n = int(table["n"][0])
        note(
            console,
            f"{n:,} scramble{'' if n == 1 else 's'} can give no p below "
            f"{permutation_p(1 / (1 + n), n).removeprefix('≤ ')}",
        )
    for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True):
        console.print(say_fold(row), soft_wrap=True, markup=False)
