"""``fidm evidence``: the actions and the segments that make people's profiles what they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.cli.behind import Behind, places_behind
from fidm.cli.console import count, note, page, table_of, warn
from fidm.cli.pictures import save_figure
from fidm.cli.progress import progress_bar
from fidm.cli.studies import find_fit, finish, open_study, results_folder
from fidm.errors import DataError
from fidm.evidence.evidence import IMPROBABLE, Evidence, find_evidence
from fidm.files import whole_file
from fidm.plot.evidence import person_evidence
from fidm.record import to_json, write_result
from fidm.tasks.model import TaskModel

WIDEST = 46
"""How many characters of what somebody said are shown in a table."""


def evidence(
    study: Path,
    *,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    use: Path | None = None,
    participant: str | None = None,
    top: int = 10,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Show which actions were unexpected of a person, and which segments cost more than their moves explain.

    Writes evidence-actions.parquet (a row per step), evidence-segments.parquet (a row per segment),
    evidence.json, three CSV files (summary, people, top), and a figure of one person. The files hold the
    numbers of turns and the times of what was said, never the words. Exit code 0: done. 2: the study could
    not be used.

    Parameters
    ----------
    study
        The study folder.
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    use
        A fit.json; by default the study's own, or else one learned now.
    participant
        Show this person's actions and segments, with the words they came from where the study has dialogs.
    top
        How many actions and segments to show.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default STUDY/results.
    json
        Print the result as JSON instead of a page; it holds no words either.
    """
    if top < 1:
        raise DataError(f"--top is {top}; it must be 1 or more.")
    with progress_bar() as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=task, skip_bad=skip_bad)
        if participant is not None:
            opened.cohort.select([participant])  # raises if there is no such person
        fitted, source = find_fit(opened, use, bars)
        found = find_evidence(fitted, opened.cohort, workers=workers, on_progress=bars.step)
        bars.step("writing", 0, 1)
        behind = places_behind(study, found)
        target = results_folder(out, study)
        written = [target / "evidence-actions.parquet", target / "evidence-segments.parquet"]
        for path, table in zip(written, (behind.actions, behind.segments), strict=True):
            with whole_file(path) as part:
                table.write_parquet(part)
        written += write_result(found, target)
        shown = most_astray(found) if participant is None else participant
        if shown is not None:
            pictures = [target / "evidence.png", target / "evidence.pdf"]
            save_figure(_figure(found, shown, opened.tasks, opened.cohort.episode_keys()), pictures)
            written += pictures
    if json:
        print(to_json(found))
        return 0
    console = page()
    console.print(
        f"[bold]Evidence for {count(len(found.participants), 'participant')}[/]: "
        f"{count(found.actions.height, 'action')}, {count(found.segments.height, 'segment')}",
        soft_wrap=True,
    )
    note(console, f"what people share was {source}")
    if participant is None:
        _show_everybody(found, top, console)
    else:
        _show_person(found, behind, participant, top, console)
    if not found.channels:
        warn(console, "No segment has an observation of effort, so there is evidence from actions only.")
    warn(console, *behind.warnings)
    if shown is not None:
        note(console, f"the figure shows {shown}")
    finish(console, written, target, opened)
    return 0


def most_astray(found: Evidence) -> str | None:
    """Return whose action was the most unexpected of all; None where nothing can be said of anybody."""
    top = found.most_unexpected(1)
    return str(top["participant"][0]) if top.height else None


def _figure(found: Evidence, participant: str, tasks: tuple[TaskModel, ...], keys: pl.DataFrame) -> Figure:
    """One person's evidence, with the map of the first episode that has steps on a task with a map."""
    by_name = {task.name: task for task in tasks}
    walked = found.actions.filter(pl.col("participant") == participant)["episode"].unique().implode()
    own = keys.filter((pl.col("participant") == participant) & pl.col("episode").is_in(walked))
    for row in own.iter_rows(named=True):
        task = tasks[0] if len(tasks) == 1 else by_name[row["task"]]
        if task.grid is not None:
            return person_evidence(found, participant, task=task, episode=row["episode"])
    return person_evidence(found, participant)


def _show_everybody(found: Evidence, top: int, console: Console) -> None:
    console.print(_spreads(found))
    counted = found.counted
    if counted.height:
        share = float((counted["probability"] < IMPROBABLE).sum() / counted.height)
        console.print(
            f"{share:.1%} of {counted.height:,} counted actions had a probability below {IMPROBABLE:.0%}",
            soft_wrap=True,
        )
    uncounted = found.actions.height - counted.height
    if uncounted:
        note(
            console, f"{count(uncounted, 'action')} not counted: left out of the likelihood, or without an η"
        )
    rows = found.most_unexpected(top)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/]")
        header = [
            "participant",
            "episode",
            "step",
            "segment",
            "action",
            "best",
            "probability",
            "unexpectedness",
        ]
        cells = [
            [row["participant"], row["episode"], str(row["step"]), row["segment"] or "–", *_action_cells(row)]
            for row in rows.iter_rows(named=True)
        ]
        console.print(table_of(header, cells, left=6))
    note(
        console,
        "unexpectedness is −log π of the action under the person's own fitted policy; residuals are on the "
        "scale of logarithms (of probabilities for presence), relative to what the population leads one to "
        "expect given the moves",
        "paper: it shows such evidence for four people (figures 5 and 6) and gives no numbers of it",
    )


def _spreads(found: Evidence) -> object:
    header = ["evidence", "rows", "mean", "sd", "80 % of rows", "paper"]
    rows = []
    for row in found.summary().iter_rows(named=True):
        name = row["quantity"] if row["quantity"] == "unexpectedness" else f"{row['quantity']} residual"
        span = f"{_number(row['p10'])} to {_number(row['p90'])}"
        rows.append([name, f"{row['n']:,}", _number(row["mean"]), _number(row["sd"]), span, "–"])
    return table_of(header, rows)


def _action_cells(row: dict[str, object]) -> list[str]:
    probability, unexpected = row["probability"], row["unexpectedness"]
    chance = f"{probability:.1%}" if isinstance(probability, float) else "–"
    return [str(row["action"]), str(row["best"]), chance, _number(unexpected)]


def _number(value: object) -> str:
    if not isinstance(value, float) or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _show_person(found: Evidence, behind: Behind, participant: str, top: int, console: Console) -> None:
    row = found.people.filter(pl.col("participant") == participant).row(0, named=True)
    eta = _number(row["action_sensitivity"])
    known = (
        f"η {eta}, {count(row['n_actions'], 'counted action')}, {row['n_improbable']} below {IMPROBABLE:.0%}"
    )
    console.print(Text.assemble("\n", (participant, "bold"), f": {known}"), soft_wrap=True)
    said = [] if behind.words is None else ["said"]
    rows = found.most_unexpected(top, participant=participant)
    if rows.height:
        console.print("\n[bold]Most unexpected actions[/]")
        cells = []
        for one in rows.iter_rows(named=True):
            words = [] if behind.words is None else [_short(behind.words.of_action(one))]
            cells.append(
                [one["episode"], str(one["step"]), one["segment"] or "–", *_action_cells(one), *words]
            )
        header = ["episode", "step", "segment", "action", "best", "probability", "unexpectedness", *said]
        console.print(_said_left(table_of(header, cells, left=5), said))
    else:
        warn(console, "None of this person's actions counts.")
    for channel in found.channels:
        heavy = found.heaviest(channel, min(top, 3), participant=participant)
        if not heavy.height:
            continue
        console.print(f"\n[bold]Heaviest segments[/] in {channel.replace('_', ' ')}")
        cells = []
        for one in heavy.iter_rows(named=True):
            words = [] if behind.words is None else [_short(behind.words.of_segment(one))]
            numbers = [_number(one[f"{channel}_{part}"]) for part in ("observed", "expected", "residual")]
            cells.append([one["episode"], one["segment"], str(one.get("n_moves", "–")), *numbers, *words])
        header = ["episode", "segment", "moves", "observed", "expected", "residual", *said]
        console.print(_said_left(table_of(header, cells), said))
    if behind.words is not None:
        note(console, "words are shown here only; no file holds them")


def _said_left(table: Table, said: list[str]) -> Table:
    if said:
        table.columns[-1].justify = "left"
    return table


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= WIDEST else one_line[: WIDEST - 1] + "…"
