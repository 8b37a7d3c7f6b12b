"""What ``fidm classify`` shows in the terminal: the paper's tables with intervals, differences and checks.

What ``fidm classify --full`` shows besides: thresholds, calibration, groups of people, and all checks.

Tables of scores in the terminal: a value, its interval and the paper's value per cell, at any width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fidm.classify.result import Classification
from fidm.classify.subgroups import FEWEST
from fidm.classify.validation import FOLD_NUMBER, SCRAMBLED
from fidm.errors import count
from fidm.experiments.paper import classification
from fidm.io.columns import MOST_REASONS
from fidm.present.numbers import DASH, between, number, percent, rows_of, span
from fidm.present.summary import UNCERTAIN, check_level, check_words, is_unsure, permutation_p, say_fold
from fidm.present.terminal import note, table_of, warn
from fidm.present.wording import (
    FIRST,
    NO_INTERCEPT,
    PAPERS_OWN,
    PARTS,
    SHORT,
    Row,
    asks_otherwise,
    baseline_of,
    briefly,
    compared,
    factor_rows,
    featured,
    grouped,
    half_width,
    has_paper,
    how_many_classes,
    left_out,
    main_rows,
    question,
    say_chance,
    say_missing,
    say_widened,
    times,
    uses_effort,
)

Cell = tuple[str, str, str]
"""A setting, a part and a metric."""

Line = tuple[str, str | None, str]
"""What a row is called, what it shows (None in a heading), and its style."""

Reader = Callable[[Cell, str], tuple[str, str, str]]
"""Gives the value, the interval and the paper's value of a row in a column."""

HEAD = ("", "95 % CI", "paper")
NARROW = {"balanced accuracy": "bal. acc."}


def print_grid(
    lines: Sequence[Line],
    columns: Sequence[Cell],
    read: Reader,
    console: Console,
    *,
    above: Callable[[Cell], str] = lambda column: PARTS[column[1]],
) -> None:
    """Print one table, or one per part (or question) where the terminal is too narrow for all.

    Parameters
    ----------
    lines : sequence of Line
        The rows.
    columns : sequence of Cell
        The columns.
    read : callable
        Gives what stands in a cell.
    console : Console
        Where to print.
    above : callable
        Gives what stands above a column; neighbours under the same words share them.
    """
    everything = [_lay_out(lines, columns, read, above, narrow=narrow) for narrow in (0, 1)]
    fitting = [made for made in everything if _width(made) <= console.width]
    if fitting:
        _print(fitting[0], console)
        return
    for _, own in groupby(columns, above):
        some = list(own)
        made = [_lay_out(lines, some, read, above, narrow=narrow) for narrow in (0, 1, 2)]
        _print(next((one for one in made if _width(one) <= console.width), made[-1]), console)


def _width(made: Sequence[tuple[str, str]]) -> int:
    return max(cell_len(line) for line, _ in made)


def _print(made: Sequence[tuple[str, str]], console: Console) -> None:
    for line, style in made:
        console.print(Text(line, style=style), soft_wrap=True)
    console.print()


def _lay_out(
    lines: Sequence[Line],
    columns: Sequence[Cell],
    read: Reader,
    above: Callable[[Cell], str],
    *,
    narrow: int,
) -> list[tuple[str, str]]:
    """The lines of a table and their styles: three of headings, a rule, and the rows; 2 is narrowest."""
    gap = "  " if narrow == 0 else " "
    first = max(cell_len(words) for words, _, _ in lines)
    cells = {
        column: [None if name is None else _short(read(column, name), narrow) for _, name, _ in lines]
        for column in columns
    }
    told = {column[0] for column in columns if any(one and one[2] != DASH for one in cells[column])}
    upper, metrics, heads = [], [], []
    bodies: list[list[str]] = [[] for _ in lines]
    for words, group in groupby(columns, above):
        wide = []
        for column in group:
            n = 3 if column[0] in told else 2
            known = [one[:n] for one in cells[column] if one is not None]
            widths = [max(cell_len(one[i]) for one in (HEAD, *known)) for i in range(n)]
            metric = NARROW.get(SHORT[column[2]], SHORT[column[2]]) if narrow else SHORT[column[2]]
            width = max(sum(widths) + n - 1, len(metric))
            wide.append(width)
            metrics.append(metric.rjust(width))
            heads.append(_spaced(HEAD[:n], widths).rjust(width))
            for body, one in zip(bodies, cells[column], strict=True):
                body.append((_spaced(one[:n], widths) if one else "").rjust(width))
        upper.append(f" {words} ".center(sum(wide) + len(gap) * (len(wide) - 1), "─"))
    empty = " " * first
    made = [gap.join([empty, *texts]) for texts in (upper, metrics, heads)]
    made.append("─" * cell_len(made[0]))
    found = [(f" {line}", "") for line in made]
    for (words, _, style), body in zip(lines, bodies, strict=True):
        padded = words + " " * (first - cell_len(words))
        found.append((f" {gap.join([padded, *body])}".rstrip(), style))
    return found


def _short(texts: tuple[str, str, str], narrow: int) -> tuple[str, str, str]:
    value, interval, told = texts
    return value, interval.replace(" to ", "…") if narrow > 1 else interval, told


def _spaced(texts: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(" " * (width - cell_len(text)) + text for text, width in zip(texts, widths, strict=True))


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
            f"{count(n, 'scramble')} can give no p below {permutation_p(1 / (1 + n), n).removeprefix('≤ ')}",
        )
    for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True):
        console.print(say_fold(row), soft_wrap=True, markup=False)


FEW = 0.05
"""Held-out people are few if the interval of an AUC reaches further than this to either side."""

SIDES = {"binary": "the paper's table 2, left", "multiclass": "table 2, right"}
"""Where the paper has the same table."""


def show(found: Classification, console: Console, *, simulated: bool = False, full: bool = False) -> None:
    """Print who is in it, the tables, the differences, the checks, and what all this rests on.

    Parameters
    ----------
    found : Classification
        What :func:`fidm.study.classify` gave.
    console : Console
        Where to print.
    simulated : bool
        Whether the people are simulated.
    full : bool
        Print thresholds, calibration, groups, all checks and all differences as well.
    """
    _show_people(found, console, simulated=simulated)
    for setting in found.settings:
        _show_scores(found, setting, console)
    _show_factors(found, console)
    _say_not_run(found, console)
    _show_differences(found, console, full=full)
    if full:
        show_closely(found, console)
        show_groups(found, console)
    _show_checks(found, console, full=full)
    _say_notes(found, console, full=full)


def _show_people(found: Classification, console: Console, *, simulated: bool) -> None:
    flow = found.flow
    parts = {"train": "training part"} | ({"held-out": "held-out part"} if flow.n("held-out") else {})
    judged = sum(flow.n(part) for part in parts)
    console.print(
        f"[bold]{count(judged, 'participant')}[/] of known status in {len(found.classes)} classes",
        soft_wrap=True,
    )
    if simulated:
        warn(console, "these people are simulated: nothing here says how well real people can be told apart")
    rows = [[name, *(f"{counts.get(part, 0):,}" for part in parts)] for name, counts in flow.classes.items()]
    rows.append(["together", *(f"{flow.n(part):,}" for part in parts)])
    console.print(table_of(["", *parts.values()], rows))
    out = left_out(flow)
    said = [f"{n:,} ({why})" for n, why in out[:MOST_REASONS]]
    if len(out) > MOST_REASONS:
        said.append(f"{sum(n for n, _ in out[MOST_REASONS:]):,} (other reasons)")
    beside = (
        ", its 95 % confidence interval and what the paper reports"
        if has_paper(found)
        else " and its 95 % confidence interval"
    )
    note(
        console,
        f"left out: {', '.join(said)}" if said else "nobody is left out",
        f"cases: everybody who is not {found.classes[0]}",
        f"a cell has the value{beside}; in brackets, how many features",
    )
    if asks_otherwise(found):
        note(console, PAPERS_OWN)
    console.print()


def _show_scores(found: Classification, setting: str, console: Console) -> None:
    """Print the paper's table 2 for one setting."""
    name = how_many_classes(found, setting).capitalize()
    place = f" ({SIDES[setting]})" if has_paper(found, setting) else ""
    unit = "; in per cent" if setting == "binary" else ""
    console.print(
        Text.assemble((name, "bold"), f"{place}: {question(found, setting)}{unit}"),
        soft_wrap=True,
    )
    lines: list[Line] = []
    for heading, rows in grouped(main_rows(found)):
        lines.append((heading, None, "dim italic"))
        lines += _lines(rows, indent=" ")
    _print_scores(found, lines, _columns(found, setting), console)


def _show_factors(found: Classification, console: Console) -> None:
    """Print the paper's table 3: the factors alone and together."""
    rows = factor_rows(found)
    if not rows:
        return
    columns = [(setting, "cv", metric) for setting in found.settings for metric in SHORT]
    place = " (table 3)" if has_paper(found) else ""
    console.print(
        f"[bold]Factors alone and together[/]{place}, by cross-validation, in per cent", soft_wrap=True
    )
    _print_scores(found, _lines(rows), columns, console, by_setting=True)


def _columns(found: Classification, setting: str) -> list[Cell]:
    """Both metrics of every part in which a setting could be judged."""
    parts = found.scores.filter(setting=setting)["part"].unique(maintain_order=True)
    return [(setting, part, metric) for part in parts for metric in SHORT]


def _lines(rows: Sequence[Row], *, indent: str = "") -> list[Line]:
    return [
        (
            f"{indent}{briefly(name)}{f' ({n:,})' if n is not None else ''}",
            name,
            "bold" if name == "fidm" else "",
        )
        for name, _, n in rows
    ]


def _print_scores(
    found: Classification,
    lines: Sequence[Line],
    columns: Sequence[Cell],
    console: Console,
    *,
    by_setting: bool = False,
) -> None:
    known = {
        (row["setting"], row["part"], row["metric"], row["representation"]): row
        for row in found.scores.iter_rows(named=True)
    }

    def read(column: Cell, name: str) -> tuple[str, str, str]:
        row = known.get((*column, name))
        if row is None:
            told = classification(name, *column) if has_paper(found, column[0]) else None
            return DASH, DASH, percent(told)
        return percent(row["value"]), span(row["low"], row["high"]), percent(row["paper"])

    if by_setting:
        print_grid(lines, columns, read, console, above=lambda column: how_many_classes(found, column[0]))
    else:
        print_grid(lines, columns, read, console)


def _say_not_run(found: Classification, console: Console) -> None:
    """Say which rows are empty, and what would fill them; reasons that are alike are said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in found.not_run.items():
        reasons.setdefault(why, []).append(briefly(name))
    if reasons:
        warn(console, *(f"{', '.join(names)} not run: {why}" for why, names in reasons.items()))
        console.print()


def _show_differences(found: Classification, console: Console, *, full: bool) -> None:
    """Print what each combination gains over its baseline, the same people compared with themselves."""
    settings = found.settings if full else found.settings[:1]
    table = compared(found, *settings)
    if not table.height:
        return
    known = {
        (row["setting"], row["part"], row["metric"], f"{row['representation']} {row['against']}"): row
        for row in table.iter_rows(named=True)
    }
    pairs = table.select("representation", "against").unique(maintain_order=True).rows()
    lines = [(_pair_words(*pair), f"{pair[0]} {pair[1]}", "") for pair in pairs]

    def read(column: Cell, name: str) -> tuple[str, str, str]:
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

    for setting in settings:
        words = how_many_classes(found, setting)
        console.print(f"[bold]What a combination adds[/] to its baseline, {words}, in points", soft_wrap=True)
        print_grid(lines, _columns(found, setting), read, console)
    console.print(say_chance(table), soft_wrap=True, markup=False)
    more = "" if full or len(found.settings) == 1 else f"{how_many_classes(found, 'multiclass')} and "
    note(
        console,
        f"↑ ↓: an interval above or below 0; {more}differences from FIDM alone: classify-differences.csv",
    )
    console.print()


def _pair_words(representation: str, against: str) -> str:
    if baseline_of(representation) == against:
        return briefly(representation)
    return f"{briefly(representation)} − {briefly(against)}"


def _show_checks(found: Classification, console: Console, *, full: bool) -> None:
    """Say in a line that all checks passed, or show them in full."""
    checks = found.checks
    if not checks.height:
        return
    failed = checks.filter(passed=False).height
    if full or failed:
        show_checks(found, console)
    unsure = sum(map(is_unsure, checks.filter(check=FOLD_NUMBER).iter_rows(named=True)))
    judged = checks["passed"].count() - unsure
    if failed:
        warn(
            console,
            f"{failed} of {count(checks.height, 'check')} failed: do not trust the tables above before it is "
            "known why",
        )
    elif not full:
        verdict = f"; {judged} of {judged} passed" if judged else ""
        if unsure:
            verdict += f"; the latter is {UNCERTAIN}"
        if checks["passed"].null_count():
            verdict += f"; {checks['passed'].null_count()} not judged"
        console.print(f"checks: {check_words(found)}{verdict}", soft_wrap=True, markup=False)


def _say_notes(found: Classification, console: Console, *, full: bool) -> None:
    settings = found.record.settings
    half, n = half_width(found, "held-out"), found.flow.n("held-out")
    said = [*found.notes, *say_missing(found)]
    if uses_effort(found):
        said.append("pause_presence is not used, as in the paper")
    if half is not None:
        few = " are few" if half > FEW else ""
        said.append(
            f"{n:,} held-out people{few}: the interval of an AUC reaches about {100 * half:.0f} points to "
            "either side"
        )
    elif not n:
        said.append("nobody is held out: there is only cross-validation")
    once = "; the paper cut its people once" if has_paper(found) else ""
    folds, repeats = (settings.get(name, DASH) for name in ("folds", "repeats"))
    said.append(f"cross-validation: {folds} folds, {times(repeats)}{once}")
    if found.scores.filter(part="cv")["low"].count():
        said.append(say_widened(found))
    if has_paper(found):
        said.append(
            "the paper's figures are of its own 400 people and map, which are not public: agreement proves "
            "nothing"
        )
    if not full:
        said.append("thresholds, calibration, groups and all checks: --full, or classify-summary.md")
    note(console, *said)
