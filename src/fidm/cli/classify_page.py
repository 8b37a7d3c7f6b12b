"""What ``fidm classify`` shows in the terminal: the paper's tables with intervals, differences and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fidm.cli.console import count, note, table_of, warn
from fidm.io.excluded import say_reasons
from fidm.study.classified import KINDS, Classification
from fidm.study.leakage import FOLD_NUMBER, SCRAMBLED
from fidm.study.leakage import LEVEL as CHECK_LEVEL
from fidm.study.paper import classification
from fidm.study.wording import (
    DASH,
    PARTS,
    SHORT,
    baseline_of,
    briefly,
    compared,
    featured,
    half_width,
    percent,
    rows_shown,
    say_chance,
    span,
)

Cell = tuple[str, str, str]
"""A setting, a part and a metric."""

Reader = Callable[[Cell, str], tuple[str, str, str]]
"""Gives the value, the interval and the paper's value of a row in a column."""

INTERVALS = (
    "intervals: DeLong; in cross-validation by the influence of every person (LeDell et al. 2015), widened "
    "by √2 since everybody also teaches. They know that other people could have been judged, not that others "
    "could have been learned from",
    "where several things are compared, some intervals exclude 0 by chance",
)
"""Where intervals come from, and what they leave out."""

VERDICTS = {True: "✓", False: "✗", None: DASH}

ABLATION = ("action", "effort", "fidm")
"""The rows of the paper's table 3."""


def show(found: Classification, console: Console) -> None:
    """Print everything: who is in it, the tables, the differences, and what they rest on."""
    _show_people(found, console)
    for setting in found.settings:
        _show_scores(found, setting, console)
    _show_ablation(found, console)
    _say_not_run(found, console)
    _show_differences(found, console)
    _show_closely(found, console)
    _show_groups(found, console)
    _show_checks(found, console)
    _say_notes(found, console)


def question(found: Classification, setting: str) -> str:
    """Return what a setting asks, in the study's words: "normal against mci, major_ncd"."""
    first, *others = found.classes
    if setting == "binary":
        return f"{first} against {', '.join(others)}"
    return f"{', '.join(found.classes)} apart"


def _show_people(found: Classification, console: Console) -> None:
    flow = found.flow
    parts = ["train"] + (["held-out"] if flow.n("held-out") else [])
    judged = sum(flow.n(part) for part in parts)
    console.print(
        f"[bold]{count(judged, 'participant')}[/] of known status in {len(found.classes)} classes",
        soft_wrap=True,
    )
    header = ["", *("to learn from" if part == "train" else "held out" for part in parts)]
    rows = [[name, *(f"{counts.get(part, 0):,}" for part in parts)] for name, counts in flow.classes.items()]
    console.print(table_of(header, [*rows, ["together", *(f"{flow.n(part):,}" for part in parts)]]))
    said = [say_reasons(flow.excluded)] if flow.excluded else []
    if flow.with_problems:
        said.append(f"{flow.with_problems:,} left out because of problems in their data")
    if flow.without_label:
        said.append(f"{flow.without_label:,} of unknown status")
    if flow.without_part:
        said.append(f"{flow.without_part:,} in no part")
    note(console, f"not in it: {'; '.join(said)}" if said else "nobody is left out")


def _show_scores(found: Classification, setting: str, console: Console) -> None:
    """Print the paper's table 2 for one setting."""
    shown = [row for row in rows_shown(found) if row[1] != "ablation"]
    columns = [(setting, part, metric) for part in found.parts for metric in SHORT]
    name = {"binary": "Two classes"}.get(setting, f"{len(found.classes)} classes")
    console.print(
        Text.assemble("\n", (name, "bold"), f", {question(found, setting)}; in per cent"), soft_wrap=True
    )
    _grid(found, shown, columns, console)


def _show_ablation(found: Classification, console: Console) -> None:
    """Print the paper's table 3: the factors alone and together."""
    kept = [row for row in rows_shown(found) if row[0] in ABLATION]
    if len(kept) < 2:  # nothing is taken apart
        return
    shown = sorted(kept, key=lambda row: ABLATION.index(row[0]))
    columns = [(setting, "cv", metric) for setting in found.settings for metric in SHORT]
    console.print("\n[bold]Factors alone and together[/], by cross-validation, in per cent", soft_wrap=True)
    _grid(found, shown, columns, console, is_ablation=True)


def _grid(
    found: Classification,
    shown: Sequence[tuple[str, str, int | None]],
    columns: Sequence[Cell],
    console: Console,
    *,
    is_ablation: bool = False,
) -> None:
    """Print scores, a column per setting, part and metric; two tables where one is too wide."""
    lines: list[tuple[str, str | None, str]] = []
    for kind, words in KINDS.items():
        own = [row for row in shown if row[1] == kind]
        if own and not is_ablation:
            lines.append((words, None, "dim italic"))
        for name, _, n in own:
            brackets = f" ({n:,})" if n is not None else ""
            indent = "" if is_ablation else " "
            lines.append((f"{indent}{briefly(name)}{brackets}", name, "bold" if name == "fidm" else ""))
    cells = {
        (row["setting"], row["part"], row["metric"], row["representation"]): row
        for row in found.scores.iter_rows(named=True)
    }

    def cell(column: Cell, name: str) -> tuple[str, str, str]:
        row = cells.get((*column, name))
        told = classification(name, *column) if row is None else row["paper"]
        if row is None:
            return DASH, DASH, percent(told)
        return percent(row["value"]), span(row["low"], row["high"]), percent(told)

    _fitting(lines, columns, cell, console, by_setting=is_ablation)


def _fitting(
    lines: Sequence[tuple[str, str | None, str]],
    columns: Sequence[Cell],
    cell: Reader,
    console: Console,
    *,
    by_setting: bool = False,
) -> None:
    """Print one table, or one per pair of columns where the terminal is too narrow for all."""
    table = _table(lines, columns, cell, by_setting=by_setting)
    least = Measurement.get(console, console.options.update(max_width=1_000), table).minimum
    if least > console.width and len(columns) > 2:
        for i in range(0, len(columns), 2):
            console.print(_table(lines, columns[i : i + 2], cell, by_setting=by_setting))
    else:
        console.print(table)


def _table(
    lines: Sequence[tuple[str, str | None, str]], columns: Sequence[Cell], cell: Reader, *, by_setting: bool
) -> Table:
    """A table whose cells line up: the value, its interval, and the paper's value."""
    rows: list[list[str]] = [[words] for words, _, _ in lines]
    header = [""]
    for column in columns:
        parts = [None if name is None else cell(column, name) for _, name, _ in lines]
        shown = [("", "95 %", "paper"), *(part for part in parts if part is not None)]
        widths = [max(len(part[i]) for part in shown) for i in range(3)]
        for row, part in zip(rows, parts, strict=True):
            row.append("" if part is None else _spaced(part, widths))
        header.append(f"{_heading(column, by_setting=by_setting)}\n{_spaced(shown[0], widths)}")
    table = table_of([name.rsplit("\n", 1)[-1] for name in header], rows)
    for own, name in zip(table.columns, header, strict=True):
        own.header = Text(name, justify="right")
        own.min_width = max(own.min_width or 0, *(len(line) for line in name.split("\n")))
    for line, (_, _, style) in zip(table.rows, lines, strict=True):
        line.style = style
    return table


def _spaced(texts: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))


def _heading(column: Cell, *, by_setting: bool) -> str:
    setting, part, metric = column
    above = {"binary": "two classes", "multiclass": "all classes"}[setting] if by_setting else PARTS[part]
    return f"{above}\n{SHORT[metric]}"


def _say_not_run(found: Classification, console: Console) -> None:
    """Say which rows are empty, and what would fill them; reasons that are alike are said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in found.not_run.items():
        reasons.setdefault(why, []).append(briefly(name))
    warn(console, *(f"{', '.join(names)} not run: {why}" for why, names in reasons.items()))


def _show_differences(found: Classification, console: Console) -> None:
    """Print what each combination gains over its baseline, the same people compared with themselves."""
    table = compared(found)
    if not table.height:
        return
    known = {
        (row["setting"], row["part"], row["metric"], f"{row['representation']} {row['against']}"): row
        for row in table.iter_rows(named=True)
    }
    pairs = table.select("representation", "against").unique(maintain_order=True).rows()
    lines = [(_pair_words(*pair), f"{pair[0]} {pair[1]}", "") for pair in pairs]

    def cell(column: Cell, name: str) -> tuple[str, str, str]:
        row = known.get((*column, name))
        if row is None:
            return DASH, DASH, DASH
        low, high = row["low"], row["high"]
        mark = "" if low is None or high is None else "↑" if low > 0 else "↓" if high < 0 else ""
        return (
            mark + percent(row["value"], sign=True),
            span(low, high, sign=True),
            percent(row["paper"], sign=True),
        )

    console.print("\n[bold]What a combination adds[/] to its baseline, in points", soft_wrap=True)
    for setting in found.settings:
        console.print(Text(question(found, setting)), style="dim italic", soft_wrap=True)
        columns = [(setting, part, metric) for part in found.parts for metric in SHORT]
        _fitting(lines, columns, cell, console)
    console.print(say_chance(table), soft_wrap=True, markup=False)
    note(
        console, "↑ ↓ mark intervals above and below 0; differences from FIDM alone: classify-differences.csv"
    )


def _pair_words(representation: str, against: str) -> str:
    if baseline_of(representation) == against:
        return briefly(representation)
    return f"{briefly(representation)} − {briefly(against)}"


def _show_closely(found: Classification, console: Console) -> None:
    """Print thresholds and calibration of a few representations."""
    chosen = list(featured(found))
    rows = []
    for row in _of(found.thresholds, chosen):
        shares = (
            f"{percent(row[name])} {span(row[f'{name}_low'], row[f'{name}_high'])}"
            for name in ("sensitivity", "specificity")
        )
        rows.append([briefly(row["representation"]), PARTS[row["part"]], *shares])
    if rows:
        console.print("\n[bold]At a threshold of one half[/], in per cent", soft_wrap=True)
        console.print(table_of(["", "", "sensitivity, 95 %", "specificity, 95 %"], rows, left=2))
    rows = []
    for row in _of(found.calibration_summary, chosen):
        numbers = (
            f"{_number(row[name])} {_between(row[f'{name}_low'], row[f'{name}_high'])}"
            for name in ("intercept", "slope")
        )
        rows.append([briefly(row["representation"]), PARTS[row["part"]], *numbers])
    if rows:
        console.print("\n[bold]Calibration[/]: an intercept of 0 and a slope of 1 are best", soft_wrap=True)
        header = ["", "", "intercept, 95 %", "slope, 95 %"]
        console.print(table_of(header, rows, left=2))


def _show_groups(found: Classification, console: Console) -> None:
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
    console.print("\n[bold]Within groups[/], AUC by cross-validation, in per cent", soft_wrap=True)
    header = ["", "", "people", "cases", *(briefly(name) for name in chosen)]
    console.print(table_of(header, rows, left=2))


def _show_checks(found: Classification, console: Console) -> None:
    """Print what scrambled labels and the number of the fold give: nothing, if all is well."""
    level = f"{CHECK_LEVEL:.1%}".replace("%", " %")
    rows = [
        [
            briefly(row["representation"]),
            percent(row["value"]),
            span(max(row["low"], 0.0), min(row["high"], 1.0)),
            VERDICTS[row["passed"]],
            percent(row["observed"]),
            _probability(row["p"]),
        ]
        for row in found.checks.filter(check=SCRAMBLED).iter_rows(named=True)
    ]
    if rows:
        console.print("\n[bold]Scrambled labels[/] must give an AUC of 50 per cent", soft_wrap=True)
        header = ["", "scrambled", level, "passed", "true labels", "p"]
        console.print(table_of(header, rows))
    for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True):
        verdict = {True: "as it must", False: "which it must not", None: "not judged"}[row["passed"]]
        console.print(
            f"The number of the fold adds {percent(row['value'], sign=True)} points of AUC to "
            f"{briefly(row['representation'])} ({level}: {span(row['low'], row['high'], sign=True)}), "
            f"{verdict}.",
            soft_wrap=True,
            markup=False,
        )
    failed = found.checks.filter(passed=False)
    if failed.height:
        warn(
            console,
            f"{failed.height} of {count(found.checks.height, 'check')} failed: do not trust the tables above "
            "before it is known why",
        )


def _say_notes(found: Classification, console: Console) -> None:
    settings = found.record.settings
    half, n = half_width(found, "held-out"), found.flow.n("held-out")
    few = (
        f"{n:,} held-out people are few: the interval of an AUC reaches about {100 * half:.0f} points to "
        "either side"
        if half is not None
        else "nobody is held out: only cross-validation speaks"
    )
    note(
        console,
        *found.notes,
        few,
        "beside each value its 95 % interval and what the paper reports; how many features, in brackets",
        f"cross-validation: {settings.get('folds', DASH)} folds, {settings.get('repeats', DASH)} times; the "
        "paper cut its people once",
        *INTERVALS,
        "the paper's figures are of its own 400 people, whose data are not public: these people and this map "
        "differ. It gives no intervals, thresholds, calibration, groups or checks",
        "more of thresholds, calibration and groups: classify-summary.md and classify-*.csv",
    )


def _of(table: pl.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of these representations, in their order."""
    return [row for name in names for row in table.filter(representation=name).iter_rows(named=True)]


def _probability(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _number(value: float | None) -> str:
    return DASH if value is None or value != value else f"{value:.2f}"


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return DASH
    return f"{low:.2f} to {high:.2f}"
