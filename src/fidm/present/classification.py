"""What ``fidm classify`` shows in the terminal: the paper's tables with intervals, differences and checks.

A cell of a table of scores has a value, its interval and the paper's value, at any width of the terminal.
``--full`` shows thresholds, calibration, groups of people and all checks besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fidm.classify.result import Classification
from fidm.classify.validation import SCRAMBLED
from fidm.errors import count
from fidm.experiments.paper import classification
from fidm.io.columns import MOST_REASONS
from fidm.present import findings
from fidm.present.findings import Row, Rows
from fidm.present.numbers import DASH, percent, span
from fidm.present.terminal import note, table_of, warn

Cell = tuple[str, str, str]
"""A setting, a part and a metric."""

Shown = tuple[str, ...]
"""A representation, and what it is compared with if it is."""

Line = tuple[str, Shown | None, str]
"""What a row is called, what it shows (None in a heading), and its style."""

Reader = Callable[[Cell, Shown], tuple[str, str, str]]
"""Gives the value, the interval and the paper's value of a row in a column."""

HEAD = ("", "95 % CI", "paper")
NARROW = {"balanced accuracy": "bal. acc."}


def print_grid(
    lines: Sequence[Line],
    columns: Sequence[Cell],
    read: Reader,
    console: Console,
    *,
    above: Callable[[Cell], str] = lambda column: findings.PARTS[column[1]],
) -> None:
    """Print one table, or one per part (or question) where the terminal is too narrow for all.

    ``read`` gives what stands in a cell, ``above`` what stands above a column; neighbours under the same
    words share them.
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
        column: [None if shown is None else _short(read(column, shown), narrow) for _, shown, _ in lines]
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
            metric = findings.SHORT[column[2]]
            metric = NARROW.get(metric, metric) if narrow else metric
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


def _show_closely(found: Classification, console: Console) -> None:
    """Print thresholds, calibration and groups of people, for a few representations."""
    title = "[bold]At a threshold of one half[/] of the balanced probability, in per cent"
    shown = findings.threshold_rows(found, findings.briefly).first(4)
    _show_rows(
        console, title, shown, f"In brackets: 95 % intervals (Wilson's), not widened. {findings.FIRST}"
    )
    title = "[bold]Calibration[/]: an intercept of 0 and a slope of 1 are best"
    shown = findings.calibration_rows(found, findings.briefly).first(4)
    _show_rows(
        console,
        title,
        shown,
        f"In brackets: 95 % intervals, not widened. {findings.FIRST} {findings.NO_INTERCEPT}",
    )
    title = "[bold]Within groups[/], AUC by cross-validation, in per cent"
    shown = findings.group_rows(found, findings.briefly, ["cv"])
    few = f" {findings.FEW_CASES}" if any(DASH in row for row in shown.cells) else ""
    _show_rows(console, title, shown, f"In brackets: 95 % intervals, not widened. {findings.FIRST}{few}")


def _show_rows(console: Console, title: str, rows: Rows, said: str) -> None:
    if rows.cells:
        console.print(title, soft_wrap=True)
        console.print(table_of(*rows, left=2))
        note(console, said)
        console.print()


def _show_scrambled(found: Classification, console: Console) -> None:
    """Print what scrambled labels give for each representation: an AUC of one half, if all is well."""
    table = found.checks.filter(check=SCRAMBLED)
    rows, least = [], False
    for row in table.iter_rows(named=True):
        low, high = row["low"], row["high"]
        p = findings.permutation_p(row["p"], row["n"])
        least = least or p.startswith("≤")
        rows.append(
            [
                findings.briefly(row["representation"]),
                percent(row["value"]),
                DASH if low is None or high is None else span(max(low, 0.0), min(high, 1.0)),
                VERDICTS[row["passed"]],
                percent(row["observed"]),
                p,
            ]
        )
    if rows:
        console.print("[bold]Scrambled labels[/] must give an AUC of 50 per cent", soft_wrap=True)
        made = table_of(["", "scrambled", findings.check_level(), "passed", "true labels,", "p"], rows)
        made.columns[4].header = Text("true labels,\nfirst\nrepetition", justify="right")
        console.print(made)
        if table["p"].null_count() == table.height:
            note(console, "no p: some people belong together, so labels cannot be exchanged freely")
    if least:
        n = int(table["n"][0])
        bound = findings.permutation_p(1 / (1 + n), n).removeprefix("≤ ")
        note(console, f"{count(n, 'scramble')} can give no p below {bound}")


PLACES = {"binary": "the paper's table 2, left", "multiclass": "table 2, right"}
"""Where the paper has the same table."""


def show(found: Classification, console: Console, *, simulated: bool = False, full: bool = False) -> None:
    """Print who is in it, the tables, the differences, the checks, and what all this rests on.

    With ``full``, thresholds, calibration, groups, all checks and all differences as well.
    """
    _show_people(found, console, simulated=simulated)
    for setting in found.settings:
        _show_scores(found, setting, console)
    _show_factors(found, console)
    missing = findings.say_not_run(found, findings.briefly)
    if missing:
        warn(console, *missing)
        console.print()
    _show_differences(found, console, full=full)
    if full:
        _show_closely(found, console)
    _show_checks(found, console, full=full)
    _say_notes(found, console, full=full)


def _show_people(found: Classification, console: Console, *, simulated: bool) -> None:
    flow = found.flow
    parts = findings.study_parts(found)
    judged = sum(flow.n(part) for part in parts)
    console.print(
        f"[bold]{count(judged, 'participant')}[/] of known status in {len(found.classes)} classes",
        soft_wrap=True,
    )
    if simulated:
        warn(console, findings.SIMULATED)
    rows = [[name, *(f"{counts.get(part, 0):,}" for part in parts)] for name, counts in flow.classes.items()]
    rows.append(["together", *(f"{flow.n(part):,}" for part in parts)])
    console.print(table_of(["", *parts.values()], rows))
    out = findings.left_out(flow)
    said = [f"{n:,} ({why})" for n, why in out[:MOST_REASONS]]
    if len(out) > MOST_REASONS:
        said.append(f"{sum(n for n, _ in out[MOST_REASONS:]):,} (other reasons)")
    beside = (
        ", its 95 % confidence interval and what the paper reports"
        if findings.has_paper(found)
        else " and its 95 % confidence interval"
    )
    note(
        console,
        f"left out: {', '.join(said)}" if said else "nobody is left out",
        f"cases: everybody who is not {found.classes[0]}",
        f"a cell has the value{beside}; in brackets, how many features",
    )
    if findings.asks_otherwise(found):
        note(console, findings.PAPERS_OWN)
    console.print()


def _show_scores(found: Classification, setting: str, console: Console) -> None:
    """Print the paper's table 2 for one setting."""
    name = findings.how_many_classes(found, setting).capitalize()
    place = f" ({PLACES[setting]})" if findings.has_paper(found, setting) else ""
    unit = "; in per cent" if setting == "binary" else ""
    console.print(
        Text.assemble((name, "bold"), f"{place}: {findings.question(found, setting)}{unit}"),
        soft_wrap=True,
    )
    lines: list[Line] = []
    for heading, rows in findings.grouped(findings.main_rows(found)):
        lines.append((heading, None, "dim italic"))
        lines += _lines(rows, indent=" ")
    print_grid(lines, _columns(found, setting), _reader(found, found.scores, "representation"), console)


def _show_factors(found: Classification, console: Console) -> None:
    """Print the paper's table 3: the factors alone and together."""
    rows = findings.factor_rows(found)
    if not rows:
        return
    columns = [(setting, "cv", metric) for setting in found.settings for metric in findings.SHORT]
    place = " (table 3)" if findings.has_paper(found) else ""
    console.print(
        f"[bold]Factors alone and together[/]{place}, by cross-validation, in per cent", soft_wrap=True
    )
    read = _reader(found, found.scores, "representation")
    print_grid(
        _lines(rows), columns, read, console, above=lambda column: findings.how_many_classes(found, column[0])
    )


def _columns(found: Classification, setting: str) -> list[Cell]:
    """Both metrics of every part in which a setting could be judged."""
    parts = found.scores.filter(setting=setting)["part"].unique(maintain_order=True)
    return [(setting, part, metric) for part in parts for metric in findings.SHORT]


def _lines(rows: Sequence[Row], *, indent: str = "") -> list[Line]:
    return [
        (
            f"{indent}{findings.briefly(name)}{f' ({n:,})' if n is not None else ''}",
            (name,),
            "bold" if name == "fidm" else "",
        )
        for name, _, n in rows
    ]


def _reader(found: Classification, frame: pl.DataFrame, *shows: str) -> Reader:
    """What gives the cells of scores, or of differences if rows show two representations."""
    known = findings.found_by(frame, "setting", "part", "metric", *shows)
    sign = len(shows) > 1

    def read(column: Cell, shown: Shown) -> tuple[str, str, str]:
        row = known.get((*column, *shown))
        if row is None:
            has_told = not sign and findings.has_paper(found, column[0])
            return DASH, DASH, percent(classification(shown[0], *column) if has_told else None)
        low, high = row["low"], row["high"]
        is_clear = sign and low is not None and high is not None
        mark = "↑" if is_clear and low > 0 else "↓" if is_clear and high < 0 else ""
        value, told = (percent(row[name], sign=sign) for name in ("value", "paper"))
        return mark + value, span(low, high, sign=sign), told

    return read


def _show_differences(found: Classification, console: Console, *, full: bool) -> None:
    """Print what each combination gains over its baseline, the same people compared with themselves."""
    settings = found.settings if full else found.settings[:1]
    table = findings.compared(found, *settings)
    if not table.height:
        return
    pairs = table.select("representation", "against").unique(maintain_order=True).rows()
    lines = [(findings.pair_words(findings.briefly, *pair), pair, "") for pair in pairs]
    read = _reader(found, table, "representation", "against")
    for setting in settings:
        words = findings.how_many_classes(found, setting)
        console.print(f"[bold]What a combination adds[/] to its baseline, {words}, in points", soft_wrap=True)
        print_grid(lines, _columns(found, setting), read, console)
    console.print(findings.say_chance(table), soft_wrap=True, markup=False)
    more = (
        "" if full or len(found.settings) == 1 else f"{findings.how_many_classes(found, 'multiclass')} and "
    )
    note(
        console,
        f"↑ ↓: an interval above or below 0; {more}differences from FIDM alone: classify-differences.csv",
    )
    console.print()


def _show_checks(found: Classification, console: Console, *, full: bool) -> None:
    """Say in a line what the checks gave; show them one by one if asked to, or if one failed."""
    failed = findings.say_failed(found, findings.briefly)
    if full or failed:
        _show_scrambled(found, console)
    for line in findings.say_checks(found):
        console.print(line, soft_wrap=True, markup=False)
    warn(console, *failed)


def _say_notes(found: Classification, console: Console, *, full: bool) -> None:
    settings = found.record.settings
    said = [*found.notes, *findings.say_missing(found)]
    if findings.uses_effort(found):
        said.append(findings.NO_PRESENCE)
    said += findings.say_width(found)
    if not found.flow.n("held-out"):
        said.append("nobody is held out: there is only cross-validation")
    once = "; the paper cut its people once" if findings.has_paper(found) else ""
    folds, repeats = (settings.get(name, DASH) for name in ("folds", "repeats"))
    said.append(f"cross-validation: {folds} folds, {findings.times(repeats)}{once}")
    if found.scores.filter(part="cv")["low"].count():
        said.append(findings.say_widened(found))
    if findings.has_paper(found):
        said.append(findings.PAPERS_PEOPLE)
    if not full:
        said.append("thresholds, calibration, groups and all checks: --full, or classify-summary.md")
    note(console, *said)
