"""``fidm localize``: whether unexpected actions are where people turned away or passed a target by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from fidm.cli.opening import find_fit, finish, open_study, results_folder
from fidm.errors import count
from fidm.evidence.evidence import find_evidence
from fidm.evidence.localization import FEWEST, Localization, check_settings
from fidm.evidence.localization import localize as run
from fidm.experiments.paper import LOCALIZATION
from fidm.plot.evidence import localization as draw
from fidm.present.terminal import note, page, progress_bar, save_figure, table_of
from fidm.record import to_json, write_result

NAMES = {
    "route_divergence": "turned away from next goal",
    "route_divergence_clear": "the same, on stretches without a target passed by",
    "bypass": "passed a target by, of opportunities",
    "bypass_of_moves": "passed a target by, of movements",
}

RATES = (
    ("in the top tenth", "top_rate", ".1%"),
    ("in all (baseline)", "baseline", ".1%"),
    ("enrichment, times", "enrichment", ".2f"),
)
POOLED = (
    ("  in that tenth", "top_rate", ".1%"),
    ("  in all (baseline)", "baseline", ".1%"),
    ("  enrichment, times", "enrichment", ".2f"),
)
"""How the rows are called, which number they show, and how."""


def localize(
    study: Path,
    *,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    use: Path | None = None,
    bootstrap: int = 2_000,
    seed: int = 1,
    level: float = 0.95,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Say how well the unexpectedness of actions points at detours and at targets passed by (table 1).

    Writes localize.json, localize.csv (a row per anchor and score), localize-people.csv and a figure. Exit
    code 0: done. 2: the study could not be used, has no map, or nobody went astray.

    Parameters
    ----------
    study
        The study folder.
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    use
        A fit.json; by default the study's own, or else one learned now.
    bootstrap
        How many times participants are drawn anew for the intervals.
    seed
        The same seed gives the same intervals.
    level
        The level of the intervals, between 0 and 1.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default STUDY/results.
    json
        Print the result as JSON instead of a page.
    """
    check_settings(seed=seed, bootstrap=bootstrap, level=level)
    with progress_bar() as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=task, skip_bad=skip_bad)
        fitted, source = find_fit(opened, use, bars)
        evidence = find_evidence(fitted, opened.cohort, workers=workers, on_progress=bars.step)
        found = run(
            evidence, opened.cohort, seed=seed, bootstrap=bootstrap, level=level, on_progress=bars.step
        )
        target = results_folder(out, study)
        written = write_result(found, target)
        pictures = [target / "localize.png", target / "localize.pdf"]
        save_figure(draw(found, paper=LOCALIZATION), pictures)
    if json:
        print(to_json(found))
        return 0
    console = page()
    console.print(f"[bold]Where the actions of {count(len(opened.cohort), 'participant')} were unexpected[/]")
    note(console, f"what people share was {source}")
    _show(found, level, console)
    finish(console, (*written, *pictures), target, opened)
    return 0


def _show(found: Localization, level: float, console: Console) -> None:
    header = ["", "this study", "Q gap alone", "paper"]
    for anchor, title in NAMES.items():
        row, control = found.row(anchor), found.row(anchor, "q_gap")
        paper = LOCALIZATION.get(anchor, {})
        console.print(f"\n[bold]{title}[/]")
        rows = [
            ["AUC within a person", _with(row, "auc", ".3f"), _one(control, "auc", ".3f"), _paper_auc(paper)],
            *(
                [name, _with(row, key, form), _one(control, key, form), _one(paper, key, form)]
                for name, key, form in RATES
            ),
            ["pooled over people:", "", "", ""],
            *(
                [
                    name,
                    _one(row, f"pooled_{key}", form),
                    _one(control, f"pooled_{key}", form),
                    _one(paper, key, form),
                ]
                for name, key, form in POOLED
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


def _one(row: dict[str, Any] | Any, key: str, form: str) -> str:
    value = row.get(key)
    return "–" if value is None else format(value, form)


def _with(row: dict[str, Any], key: str, form: str) -> str:
    if row[key] is None or row[f"{key}_low"] is None:
        return _one(row, key, form)
    low, high = format(row[f"{key}_low"], form), format(row[f"{key}_high"], form)
    return f"{format(row[key], form)} [{low}, {high}]"


def _paper_auc(paper: Any) -> str:
    return f"{paper['auc']:.3f} [{paper['low']:.3f}, {paper['high']:.3f}]" if paper else "–"
