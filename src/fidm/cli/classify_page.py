"""What ``fidm classify`` shows in the terminal: the paper's tables with intervals, differences and checks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from fidm.cli.classify_grid import Cell, Line, print_grid
from fidm.cli.classify_more import show_checks, show_closely, show_groups
from fidm.cli.console import count, note, table_of, warn
from fidm.io.excluded import MOST_REASONS
from fidm.study.check_words import check_words, is_unsure
from fidm.study.classified import Classification
from fidm.study.leakage import FOLD_NUMBER
from fidm.study.paper import classification
from fidm.study.wording import (
    DASH,
    PAPERS_OWN,
    SHORT,
    Row,
    asks_otherwise,
    baseline_of,
    briefly,
    compared,
    factor_rows,
    grouped,
    half_width,
    has_paper,
    how_many_classes,
    left_out,
    main_rows,
    percent,
    question,
    say_chance,
    say_widened,
    span,
    times,
    uses_effort,
)

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
            verdict += "; the latter is too uncertain to judge with so few people"
        if checks["passed"].null_count():
            verdict += f"; {checks['passed'].null_count()} not judged"
        console.print(f"checks: {check_words(found)}{verdict}", soft_wrap=True, markup=False)


def _say_notes(found: Classification, console: Console, *, full: bool) -> None:
    settings = found.record.settings
    half, n = half_width(found, "held-out"), found.flow.n("held-out")
    said = [*found.notes]
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
    said += [f"cross-validation: {folds} folds, {times(repeats)}{once}", say_widened(found)]
    if has_paper(found):
        said.append(
            "the paper's figures are of its own 400 people and map, which are not public: agreement proves "
            "nothing"
        )
    if not full:
        said.append("thresholds, calibration, groups and all checks: --full, or classify-summary.md")
    note(console, *said)
