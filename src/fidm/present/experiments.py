"""What experiments show in the terminal: recover, calibrate, matched, select, reliability, learning,
compare, twins.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from rich.console import Console
from rich.text import Text

from fidm.errors import count, listed
from fidm.evidence.localization import FEWEST, SAID, Localization
from fidm.experiments.calibrate import Calibration
from fidm.experiments.comparison import HOW_TO_READ, Comparison
from fidm.experiments.learning import Learning
from fidm.experiments.matched import FEATURES, Matched
from fidm.experiments.paper import LOCALIZATION, MATCHED_LARGEST_DIFFERENCE, RECOVERY_DIAGONAL
from fidm.experiments.recover import Recovery, as_printed, label_of
from fidm.experiments.reliability import TOO_LOW, Reliability
from fidm.experiments.select import PAPER_CHOICE, Point, Selection
from fidm.io.columns import say_reasons
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.numbers import DASH, METHODS, ONE_SITTING, SHORT, number
from fidm.present.terminal import note, printable, state, table_of, warn
from fidm.simulate.talk import SEVEN_FORMATS
from fidm.simulate.twin import MOST_DIALOGS, TALKS, TRUTH, SimulatedStudy


def show_recovery(found: Recovery, console: Console, *, all_matrices: bool) -> None:
    """Print how well each parameter came back."""
    whose = "people of the study" if found.is_like else "simulated people"
    console.print(
        f"[bold]{found.n_people:,} {whose}[/], about {found.n_actions:.0f} actions and "
        f"{found.n_segments:.0f} segments each, {count(found.repeat, 'repetition')}",
        soft_wrap=True,
    )
    shown = [(method, scale) for method in found.methods for scale in ("log", "raw")]
    for method, scale in shown if all_matrices else shown[:1]:
        for condition in found.conditions:
            console.print(
                f"\n[bold]{found.condition_words(condition)}[/], {METHODS[method]}, {scale} η", soft_wrap=True
            )
            console.print(_matrix(found, condition, method, scale))
    console.print()
    for sentence in found.sentences():
        console.print(sentence, soft_wrap=True, markup=False)
    _say_without(found, console)
    settings = found.record.settings
    sds = ", ".join(f"{SHORT.get(name, name)} {sd:.2f}" for name, sd in settings["sd"].items())
    how = "as much as the study's people do" if settings["spread"] == "study" else "as much as we say"
    note(
        console,
        f"people differ {how}, with an sd of (log η first): {sds}",
        "rows are manipulated factors, columns recovered parameters; cells are standardized partial slopes "
        "(matched: those on the diagonal), which r, a plain correlation, need not equal",
        "well: r from .85; well enough to compare groups: from .70; only weakly: from .50; below that, it "
        "cannot be estimated",
        "choices are the same in all conditions, and so is the row of η; whether there is a pause at all "
        "follows the same chance for everybody and is not recovered",
        "paper: the range of its matched responses with complete observations, on data that are not public",
    )
    for name, why in found.not_learned.items():
        warn(console, f"{name} could not be learned in every repetition: {why}")
    warn(console, *found.notes)


def _matrix(found: Recovery, condition: str, method: str, scale: str) -> object:
    matrix = found.matrix(condition, method=method, scale=scale)
    spread = found.matrix(condition, method=method, scale=scale, value="sd" if found.repeat > 1 else "se")
    names = [SHORT.get(name, name) for name in found.factors]
    paper = "–"
    if condition == "complete":
        paper = " to ".join(as_printed(bound) for bound in RECOVERY_DIAGONAL)
    header = ["manipulated", *names, "matched ± sd" if found.repeat > 1 else "matched ± se", "paper"]
    rows = [
        [name, *map(as_printed, matrix[i]), f"{as_printed(matrix[i, i])} ± {as_printed(spread[i, i])}", paper]
        for i, name in enumerate(names)
    ]
    return table_of(header, rows)


def _say_without(found: Recovery, console: Console) -> None:
    """Who had no finite estimate and was left out of a column."""
    for method in found.methods:
        for row in found.parameters.filter(method=method, condition=found.conditions[0]).iter_rows(
            named=True
        ):
            if row["without"] and not row["parameter"].startswith("log_"):
                label = SHORT.get(row["parameter"], row["parameter"])
                note(
                    console,
                    f"{METHODS[method]}: {row['without']:.1f} of {found.n_people:,} people have no finite "
                    f"{label} on average and are left out of its column",
                )


def show_calibration(found: Calibration, console: Console) -> None:
    """Print how often intervals held the truth."""
    whose = "like yours" if found.is_like else "of simulated people"
    console.print(
        f"[bold]{count(found.n_studies, 'study', 'studies')} {whose}[/], "
        f"{count(found.n_people, 'person', 'people')} with about {found.n_actions:.0f} actions and "
        f"{found.n_segments:.0f} segments each\n",
        soft_wrap=True,
    )
    header = ["parameter", "50 % hold", "80 % hold", "95 % hold", "mean rank", "p, uniform"]
    rows = [
        [
            label_of(row["parameter"]),
            *(f"{100 * row[name]:.1f} ± {100 * row[f'{name}_se']:.1f} %" for name in HELD),
            f"{row['mean_rank']:.3f} ± {row['mean_rank_se']:.3f}",
            f"{row['p']:.3f}",
        ]
        for row in found.parameters.iter_rows(named=True)
    ]
    console.print(table_of(header, rows))
    note(
        console,
        "how many of all people's intervals held the truth, ± standard error by study",
        "mean rank: 0.5 where estimates are neither too high nor too low on average (above: too low)",
        "p: of ranks as far from uniform, one person per study; below 0.01 posteriors are not calibrated",
    )
    warn(console, *found.notes)


HELD = ("held_50", "held_80", "held_95")


def show_matched(found: Matched, console: Console, *, is_like: bool) -> None:
    """Print what tells people with equal totals apart."""
    settings = found.record.settings
    whose = "of the study's people" if is_like else "of simulated people"
    console.print(
        f"[bold]{count(found.n_pairs, 'pair')} {whose}[/], {count(settings['repeat'], 'repetition')}",
        soft_wrap=True,
    )
    console.print(
        f"A: η = {settings['low']:g}, {found.n_segments:.1f} segments each. "
        f"B: η = {settings['high']:g}, merged to {found.n_merged:.1f} segments. "
        f"Both: {found.n_actions:.0f} choices, and the same totals in expectation.",
        soft_wrap=True,
    )
    rows = [
        [FEATURES[row["features"]], *_matched_cells(row, "auc", "sd", "paper")]
        for row in found.auc.iter_rows(named=True)
    ]
    console.print(table_of(["telling A from B by", "AUC", "± sd", "paper"], rows))
    console.print(found.sentence, soft_wrap=True, markup=False)
    console.print(
        f"\nLargest standardized difference of raw and per-movement totals: {found.largest_difference:.3f} "
        f"(paper {MATCHED_LARGEST_DIFFERENCE:.3f}); in one repetition {found.largest_single_difference:.3f}",
        soft_wrap=True,
    )
    rows = []
    for row in found.differences.iter_rows(named=True):
        what = f"{row['channel']}, {FEATURES[row['summary']]}"
        rows.append([what, f"{row['mean']:+.3f}", *_matched_cells(row, "largest")])
    console.print(table_of(["B − A in pooled sd", "mean", "largest in one"], rows))
    shown = ("r", "paper_r", "direction", "paper_direction", "difference", "paper_difference", "meant")
    rows = [[row["factor"], *_matched_cells(row, *shown)] for row in found.recovery.iter_rows(named=True)]
    header = ["recovered", "r", "paper", "B > A", "paper", "B − A", "paper", "true"]
    console.print(table_of(header, rows))
    is_log = found.recovery["factor"].str.starts_with("log_")
    without = found.recovery.filter(~is_log & (found.recovery["left_out"] > 0))
    note(
        console,
        *(
            f"{row['factor']}: {row['left_out']:.1f} of {found.n_pairs:,} pairs on average lack a finite "
            "estimate and are left out of r and B − A"
            for row in without.iter_rows(named=True)
        ),
        f"differences: by chance alone one has a standard error of up to {found.chance_difference:.3f} in a "
        "repetition",
        "as a feature, log η is used; an estimate without a finite maximum gets the farthest finite value",
        "what people share comes from the observed people, not from A and B",
        "estimates are by maximum likelihood",
        "paper: 400 people whose data and map are not public",
    )
    if found.skipped:
        warn(console, f"nothing was observed of {', '.join(found.skipped)}")
    if found.n_left_out:
        warn(
            console,
            f"{count(found.n_left_out, 'participant')} without a choice that counts or a movement: no pair",
        )


def _matched_cells(row: Mapping[str, Any], *names: str) -> list[str]:
    values = [math.nan if row[name] is None else row[name] for name in names]
    return ["–" if math.isnan(x) else f"{x:.3f}" if abs(x) < 10 else f"{x:.2f}" for x in values]


def show_selection(found: Selection, part: str, console: Console) -> None:
    """Print the grid of move costs and temperatures, and which suits people best."""
    folds = found.record.settings["folds"]
    console.print(
        f"[bold]{count(found.n_people, 'participant')}[/] ({part}), {count(found.n_actions, 'choice')}, "
        f"{folds} folds",
        soft_wrap=True,
    )
    _grid(found, "likelihood", console)
    if any(point.auc == point.auc for point in found.points):
        _grid(found, "auc", console)
    console.print(found.sentence, soft_wrap=True, markup=False)
    (cost, tau), discount = PAPER_CHOICE, ", the discount as gamma" if found.varies_gamma else ""
    console.print(
        f"Paper: move cost {cost:g}, temperature {tau:g}, on its own map and people.", soft_wrap=True
    )
    degenerate = [point for point in found.points if not point.usable]
    if degenerate:
        console.print(
            f"\n{count(len(degenerate), 'degenerate point')} of {len(found.points)}, never chosen "
            "(select.csv and fidm check say more):",
            soft_wrap=True,
        )
        for point in degenerate:
            said = f"{point.move_cost:g}, {point.tau:g}"
            if found.varies_gamma or np.isnan(point.move_cost):
                said = found.words(point.move_cost, point.tau, point.gamma)
            warn(console, f"{said}: {point.reasons[0].split('. ')[0].rstrip('.')}.")
    note(
        console,
        "✓ chosen, ≈ within one standard error of it, ✗ degenerate, p the paper's choice",
        "likelihood: of a left-out person's choice, averaged over the prior of η learned from the others, "
        "in nats; ± is the standard error of the difference from the best usable point",
        f"a task file has the move cost as move in [rewards], the temperature as tau in [values]{discount}",
        "the paper does not say what its cross-validation compares",
        *found.notes,
    )


def _grid(found: Selection, kind: Literal["likelihood", "auc"], console: Console) -> None:
    """Print the scores of one kind: a row per move cost, a column per temperature, a table per discount."""
    temperatures = list(dict.fromkeys(point.tau for point in found.points))
    name = {"likelihood": "Log-likelihood per choice", "auc": "AUC of all features"}[kind]
    header = ["cost", *(f"τ {tau:g}" for tau in temperatures)]
    for gamma, some in itertools.groupby(found.points, key=lambda point: f"{point.gamma:g}"):
        rows: dict[str, list[str]] = {}
        for point in some:
            cost = "–" if np.isnan(point.move_cost) else f"{point.move_cost:g}"
            rows.setdefault(cost, [cost]).append(_point_cell(found, point, kind))
        at = f", gamma {gamma}" if found.varies_gamma else ""
        console.print(f"\n[bold]{name}[/], by move cost and temperature{at}")
        console.print(table_of(header, list(rows.values())))


def _point_cell(found: Selection, point: Point, kind: Literal["likelihood", "auc"]) -> str:
    value, error = getattr(point, kind), getattr(point, f"{kind}_se")
    text = f"{value:.4f}" if value == value else "–"
    if point.usable and error == error and error > 0:
        text += f" ±{error:.4f}".replace("0.", ".")
    marks = "" if point.usable else "✗"
    if kind == found.by and point in found.close:
        marks = "✓" if point == found.chosen else "≈"
    marks += "p" if point is found.at(*PAPER_CHOICE) else ""
    return f"{text} {marks:<2}"


def show_reliability(found: Reliability, console: Console) -> None:
    """Print how reliable every parameter is, and which change is more than error."""
    rows = []
    for row in found.table.iter_rows(named=True):
        name, kind, n = SHORT.get(row["parameter"], row["parameter"]), row["kind"], f"{row['n']:,}"
        shares = ("–" if row[k] is None else as_printed(row[k]) for k in ("r", "rank_r", "reliability"))
        ends = "–" if row["low"] is None else f"{as_printed(row['low'])} to {as_printed(row['high'])}"
        rows.append(
            [
                name,
                kind,
                n,
                *shares,
                ends,
                _one(row, "sem", ".2f"),
                number(row["mdc"]),
                number(row["mdc_shrunk"]),
            ]
        )
    header = ["parameter", "kind", "n", "r", "rank", "rel.", "95 %", "SEM", "MDC", "(eb)"]
    console.print(table_of(header, rows, left=2))
    for sentence in found.sentences():
        console.print(sentence, soft_wrap=True, markup=False)
    note(
        console,
        *found.notes,
        "SEM: standard error of measurement; MDC: minimal detectable change, 95 %; both of log η and θ, of "
        "estimates by maximum likelihood; (eb): of those by empirical Bayes, which fidm fit prints; "
        f"– where the reliability is or may be {as_printed(TOO_LOW)} or below, or of few people",
        "rel.: reliability; rank: the rank correlation, which also counts people whose estimate is infinite "
        "in one of the two",
        ONE_SITTING,
        "model: what empirical Bayes expects of its own estimates",
        "the paper gives no reliability",
    )
    for name, why in found.not_learned.items():
        warn(console, f"{name} is left out: {why}")


MOST_SLOPES = 30
"""Slopes of more people stand in the table alone."""


def show_learning(found: Learning, console: Console) -> None:
    """Print η by block, its trend, and everybody's own."""
    level = f"{found.level:.0%}"
    rows = [
        [row["block"], f"{row['n_people']:,}", f"{row['n_choices']:,}",
         _one(row, "action_sensitivity", ".3g"), _ends(row, "low", "high", ".3g")]
        for row in found.group.iter_rows(named=True)
    ]  # fmt: skip
    console.print(table_of(["block", "people", "choices", "η", level], rows, left=1))
    state(console, *say_trend(found))
    known = found.slopes.drop_nulls("slope").with_columns(factor=pl.col("slope").exp())
    if 0 < known.height <= MOST_SLOPES:
        rows = [
            [row["participant"], f"{row['n_blocks']:,}", f"{row['n']:,}", f"× {row['factor']:.2f}",
             f"{math.exp(row['low']):.2f} to {math.exp(row['high']):.2f}"]
            for row in known.iter_rows(named=True)
        ]  # fmt: skip
        console.print(
            table_of(["participant", "blocks", "choices", f"η per {found.unit}", level], rows, left=1)
        )
    warn(console, *found.notes)
    note(
        console,
        "η: the mean of all people on the scale of log η, from choices, not from estimates of single people; "
        "its intervals hold how much people differ, so judge the change by the trend",
        "slopes of single people are drawn towards the mean slope, the more the fewer choices they rest on",
        "everybody's η in each block, and on their own line: learning-people.csv",
    )


def say_trend(found: Learning) -> list[str]:
    """Return how η changes over blocks, as sentences; none where that cannot be told."""
    if not found.trend.height:
        return []
    row, per = found.trend.row(0, named=True), found.unit
    ends = f"{found.level:.0%} interval {row['factor_low']:.2f} to {row['factor_high']:.2f}"
    said = [
        f"Per {per} η changes by a factor of {row['factor']:.2f} ({ends}, p {_equals(row['p'])}; "
        f"{count(row['n_paired'], 'person', 'people')} with several blocks)."
    ]
    if row["differs"]:
        said.append(f"People clearly differ in how they change: the sd of slopes is {row['slope_sd']:.2f}.")
    return said


def _equals(p: float) -> str:
    said = probability(p)
    return said.replace("<", "< ") if said.startswith("<") else f"= {said}"


def _ends(row: Mapping[str, Any], low: str, high: str, form: str) -> str:
    """An interval; a dash where there is none."""
    return DASH if row[low] is None else f"{row[low]:{form}} to {row[high]:{form}}"


def show_comparison(found: Comparison, console: Console) -> None:
    """Print how groups differ, and by how much."""
    people = found.groups.iter_rows(named=True)
    rows = [
        [
            row["group"],
            f"{row['people']:,}",
            f"{row['actions']:g}",
            f"{row['segments']:g}",
            _one(row, "inferred", ".0%"),
        ]
        for row in people
    ]
    header = ["group", "people", "actions each", "segments each", "moves inferred"]
    shown = len(header) if found.groups["inferred"].sum() else len(header) - 1
    console.print(table_of(header[:shown], [row[:shown] for row in rows], left=1))
    level = f"{found.level:.0%}"
    measure = f"{'r' if found.correlations.height else 'AUC'} ({level})"
    header = ["parameter", f"factor ({level})", "Holm p", measure, "n", "unadjusted"]
    shown = len(header) if found.adjust else len(header) - 1
    related = {row["parameter"]: row for row in found.correlations.iter_rows(named=True)}
    for contrast, table, said in found.by_contrast():
        rows = []
        for row in table.iter_rows(named=True):
            own = related.get(row["parameter"])
            plain = "" if own else f", {_one(row, 'auc_unadjusted', '.2f').removeprefix('0')}"
            rows.append(
                [
                    SHORT.get(row["parameter"], row["parameter"]),
                    f"{number(row['factor'])} ({number(row['factor_low'])} to {number(row['factor_high'])})",
                    probability(row["p_holm"]),
                    _with_ends(row, "auc", "auc_low", "auc_high") if own is None else _with_ends(own, "r"),
                    f"{row['n_people']:,}",
                    f"{number(row['unadjusted'])}{plain}",
                ]
            )
        console.print(Text(f"\n{printable(contrast)}", style="bold"), soft_wrap=True)
        console.print(table_of(header[:shown], [row[:shown] for row in rows], left=1))
        state(console, *said)
    console.print()
    state(console, *together(found))
    note(console, *(text for text in found.notes if text.startswith(HOW_TO_READ)), *comparison_notes(found))
    warn(console, *(text for text in found.notes if not text.startswith(HOW_TO_READ)), *found.gaps)


def together(found: Comparison) -> list[str]:
    """Return the tests of several differences together, and of their change with covariates."""
    if found.table["contrast"].n_unique() < 2 and not found.overall["p_interaction"].count():
        return []
    tests = {"p": "All differences together", "p_interaction": "Change of the difference"}
    if interact := found.record.settings.get("interact"):
        tests["p_interaction"] += f" with {listed(interact)}"
    return [
        f"{name}, p of each parameter: "
        + ", ".join(
            f"{SHORT.get(row['parameter'], row['parameter'])} {probability(row[p])}"
            for row in found.overall.iter_rows(named=True)
        )
        + "."
        for p, name in tests.items()
        if found.overall[p].count()
    ]


def comparison_notes(found: Comparison) -> list[str]:
    """Return how the columns of a comparison are to be read."""
    adjusted = f", adjusted for {listed(found.adjust)}" if found.adjust else ""
    measure = (
        "AUC: how well the parameter itself, if it were known without error, would distinguish the groups: "
        ".5 not at all, 1 or 0 perfectly (below .5 it is lower in the first group); its interval carries the "
        "uncertainty of the difference and of the spread within groups"
    )
    if found.correlations.height:
        plain = ", ".join(
            f"{SHORT.get(row['parameter'], row['parameter'])} {as_printed(row['r_estimates'])}"
            for row in found.correlations.drop_nulls("r_estimates").iter_rows(named=True)
        )
        measure = (
            f"r: the {'partial ' if found.adjust else ''}correlation of the parameter itself; the error of "
            f"people's estimates lowers that of the estimates ({plain})"
        )
    without = "factor" if found.correlations.height else "factor and AUC"
    return [
        f"factor: how many times as high the parameter is{adjusted}; of pause presence the odds"
        + (f"; unadjusted: {without} without that" if found.adjust else ""),
        "Holm p: holds for all rows together; judge by it. p of each row alone, and false discovery rates: "
        "compare.csv",
        measure,
        "everybody's choices and segments tell the difference; nobody's own estimate enters",
    ]


def _with_ends(row: Mapping[str, Any], name: str, low: str = "low", high: str = "high") -> str:
    """A share or a correlation with its interval."""
    if row[name] is None:
        return DASH
    middle, *ends = (as_printed(row[one]) for one in (name, low, high))
    return f"{middle} ({' to '.join(ends)})"


def probability(p: float) -> str:
    """Return a p-value as tables print it."""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


RATES = (
    ("in the top tenth", "in that tenth", "top_rate", ".1%"),
    ("in all (baseline)", "in all (baseline)", "baseline", ".1%"),
    ("enrichment, times", "enrichment, times", "enrichment", ".2f"),
)
"""How the rows are called, also below others, which number they show, and how."""


def show_localization(found: Localization, level: float, console: Console) -> None:
    """Print how well unexpectedness points at detours and at targets passed by."""
    header = ["", "this study", "Q gap alone", "paper"]
    for anchor, among in found.anchors.items():
        row, control = found.row(anchor), found.row(anchor, "q_gap")
        paper = LOCALIZATION.get(anchor, {})
        console.print(f"\n[bold]{SAID[anchor]}[/], among {among}", soft_wrap=True)
        rows = [
            [
                "AUC within a person",
                with_ends(row, "auc", ".3f"),
                _one(control, "auc", ".3f"),
                _paper_auc(paper),
            ],
            *(
                [name, with_ends(row, key, form), _one(control, key, form), _one(paper, key, form)]
                for name, _, key, form in RATES
            ),
            ["pooled over people:", "", "", ""],
            *(
                [
                    f"  {name}",
                    _one(row, f"pooled_{key}", form),
                    _one(control, f"pooled_{key}", form),
                    _one(paper, key, form),
                ]
                for _, name, key, form in RATES
            ),
            [
                "people counted",
                f"{row['n_people']:,} of {row['n_people_all']:,}",
                f"{control['n_people']:,} of {control['n_people_all']:,}",
                "–",
            ],
            ["events, of steps", f"{row['n_events']:,} of {row['n_steps']:,}", "", "–"],
        ]
        table = table_of(header, rows)
        table.columns[0].no_wrap = False  # words may wrap in a narrow terminal, numbers may not
        console.print(table)
    note(
        console,
        *found.notes,
        f"numbers are means over the people counted, and events and steps are theirs; {level:.0%} intervals "
        f"come from drawing people again, where {FEWEST} or more are counted",
        "pooled over people: every step of everybody counts the same, also of people without an event",
        "a stretch is the way from one completion to the next; who passes a target by and completes another "
        "has, in hindsight, walked away from the latter by sensible steps",
        "paper: its 400 participants, whose data and store are not public; it does not say which steps its "
        "bypasses are counted among, nor whether its rates and enrichment are means over people or pooled",
    )


def _one(row: Mapping[str, Any], key: str, form: str) -> str:
    value = row.get(key)
    return "–" if value is None else format(value, form)


def with_ends(row: Mapping[str, Any], key: str, form: str) -> str:
    """Return a number with its interval in brackets, if it has one; a dash where it is not known."""
    if row[key] is None or row[f"{key}_low"] is None:
        return _one(row, key, form)
    low, high = format(row[f"{key}_low"], form), format(row[f"{key}_high"], form)
    return f"{format(row[key], form)} [{low}, {high}]"


def _paper_auc(paper: Any) -> str:
    return f"{paper['auc']:.3f} [{paper['low']:.3f}, {paper['high']:.3f}]" if paper else "–"


CALIBRATED = "grocery"
"""The task on which simulated people resemble published figures."""


TITLES = {"chat": "CHAT", "elan": "ELAN", "textgrid": "TextGrid", "vtt": "WebVTT", "srt": "SRT",
          "whisper": "Whisper JSON", "csv": "CSV"}  # fmt: skip


WHAT_TRUTH_IS = (
    "true_characters, true_turns, … are what was drawn. Talk cannot be shorter than its words, so with "
    "dialogs people differ somewhat less than that; and θ of a fit is relative to the mean of the people it "
    "was learned from."
)


def say_left_out(written: Sequence[str]) -> str:
    """Return which of the seven formats could not be written, as a sentence; empty if all could."""
    lost = [TITLES[name] for name in SEVEN_FORMATS if name not in written]
    if not lost:
        return ""
    named = listed(TITLES[name] for name in written)
    return f"Written as {named} only: pip install 'fidm[speech]' adds {listed(lost)}."


def show_simulated(
    made: SimulatedStudy, study: Path, console: Console, *, was_asked: bool, left_out: str
) -> None:
    """Print who was simulated, and what to do next."""
    settings = made.record.settings
    task = ", ".join(made.record.tasks)
    n, is_walker = int(settings["people"]), settings["agent"] == "walker"
    one, more = ("acts as people do", "act as people do") if is_walker else (
        "chooses as the model says", "choose as the model says")  # fmt: skip
    console.print(
        Text.assemble(
            (count(n, "simulated participant"), "bold"),
            f" who {one if n == 1 else more}, on {task}, seed {made.record.seed}",
        ),
        soft_wrap=True,
    )
    rows = [
        (row["diagnosis"], f"{row['train']:,}", f"{row['test']:,}", f"{row['train'] + row['test']:,}",
         f"{(row['train'] + row['test']) / max(1, made.n_people):.1%}")
        for row in made.counts.iter_rows(named=True)
    ]  # fmt: skip
    both = [int(made.counts[name].sum()) for name in ("train", "test")]
    rows.append(("all", f"{both[0]:,}", f"{both[1]:,}", f"{sum(both):,}", ""))
    console.print(table_of(("diagnosis", "train", "test", "all", "share"), rows))
    if made.reasons:
        console.print(Text(say_reasons(made.reasons)), soft_wrap=True)
    each = max(1, made.n_people)
    console.print(
        f"{made.n_actions / each:,.1f} actions and {made.n_segments / each:,.1f} segments per participant"
    )
    if made.dialogs:
        formats = ", ".join(f"{name} {n:,}" for name, n in made.dialogs.items())
        n_dialogs = sum(made.dialogs.values())
        said = f"{count(n_dialogs, 'dialog')} in {TALKS}/ ({settings['language']}): {formats}"
        console.print(Text(said), soft_wrap=True)
        if left_out:
            warn(console, left_out)
    else:
        why = "" if was_asked else f": of more than {MOST_DIALOGS:,} people only with --dialogs"
        console.print(Text(f"no dialogs{why}"), soft_wrap=True)
    known = ", calibrated to published figures" if CALIBRATED in made.record.tasks else ""
    note(
        console,
        f"Simulated people{known}; not data about anybody.",
        f"True parameters are in {TRUTH}/, and not among the participants' columns.",
        *([WHAT_TRUTH_IS] if made.dialogs else []),
    )
    console.print(f"\nWrote {study}. What next:", soft_wrap=True, markup=False)
    read = "read the dialogs in place of what was truly done, and " if made.dialogs else ""
    steps = [("fidm run", f"{read}go on to the report"), ("fidm fit", "only a profile of every participant")]
    for verb, what in steps:
        console.print(Text(f"  {verb} {study}".ljust(34) + f"  {what}"), soft_wrap=True)
    console.print(NOT_A_DIAGNOSIS, style="dim")
