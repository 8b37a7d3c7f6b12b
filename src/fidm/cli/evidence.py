"""``fidm evidence``: the actions and the segments that make people's profiles what they are."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter
from matplotlib.figure import Figure

from fidm.cli.opening import find_fit, finish, open_study, results_folder
from fidm.errors import DataError, count
from fidm.evidence.evidence import Evidence, find_evidence
from fidm.experiments.behind import places_behind
from fidm.files import whole_file
from fidm.plot.evidence import person_evidence
from fidm.present.evidence import Person, show_everybody, show_person
from fidm.present.terminal import aside, note, page, progress_bar, save_figure, warn
from fidm.record import to_json, write_result
from fidm.tasks.model import TaskModel

SIMILAR = 3
"""How many ids are offered to whoever mistyped one."""


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
    evidence.json, three CSV files (summary, people, top), and a figure of one person: evidence.png and .pdf,
    or evidence-PARTICIPANT.png and .pdf where one was asked for. The files hold the numbers of turns and the
    times of what was said, never the words. Exit code 0: done. 2: the study could not be used.

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
        How many actions, and how many segments per kind of effort, to show.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default STUDY/results.
    json
        Print the result as JSON instead of a page: what is said of everybody, or with --participant of that
        person. The JSON holds numbers and ids, and nothing of what was said.
    """
    if top < 1:
        raise DataError(f"--top is {top}; it must be 1 or more.")
    with progress_bar() as bars:
        bars.step("reading", 0, 1)
        opened = open_study(study, task=task, skip_bad=skip_bad)
        if participant is not None:
            _require(participant, opened.cohort.ids.to_list())
        fitted, source = find_fit(opened, use, bars)
        found = find_evidence(fitted, opened.cohort, workers=workers, on_progress=bars.step)
        bars.step("writing", 0, 1)
        behind = places_behind(study, found)
        target = results_folder(out, study)
        shown = most_astray(found) if participant is None else participant
        written = [target / "evidence-actions.parquet", target / "evidence-segments.parquet"]
        with _telling(target):
            for path, table in zip(written, (behind.actions, behind.segments), strict=True):
                with whole_file(path) as part:
                    table.write_parquet(part)
            written += write_result(found, target)
            if shown is not None:
                name = "evidence" if participant is None else f"evidence-{file_name(participant)}"
                pictures = [target / f"{name}.png", target / f"{name}.pdf"]
                save_figure(_figure(found, shown, opened.tasks, opened.cohort.episode_keys()), pictures)
                written += pictures
    if json:
        warn(aside(), *behind.warnings)
        print(to_json(found if participant is None else Person(found, behind, participant, top)))
        return 0
    console = page()
    console.print(
        f"[bold]Evidence for {count(len(found.participants), 'participant')}[/]: "
        f"{count(found.actions.height, 'action')}, {count(found.segments.height, 'segment')}",
        soft_wrap=True,
    )
    note(console, f"what people share was {source}")
    if participant is None:
        show_everybody(found, top, console)
    else:
        show_person(found, behind, participant, top, console)
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


def file_name(participant: str) -> str:
    """Return a participant's id as part of a file name; different ids have different names."""
    safe = re.sub(r"[^\w.-]+", "_", participant)[:60]
    if safe == participant:
        return safe
    return f"{safe}-{hashlib.sha256(participant.encode()).hexdigest()[:6]}"


@contextmanager
def _telling(target: Path) -> Iterator[None]:
    """Say in a sentence that results cannot be written."""
    try:
        yield
    except OSError as error:
        why = f": {error.strerror}." if error.strerror else ". Is the disk full?"
        raise DataError(f"cannot be written{why}", source=str(target)) from None
    except pl.exceptions.PolarsError:
        raise DataError("cannot be written. Is the disk full?", source=str(target)) from None


def _require(participant: str, ids: list[str]) -> None:
    """Raise if there is no such person, and say whose ids are similar."""
    if participant in ids:
        return
    ends = [one for one in ids if one.endswith(participant)] if participant else []
    similar = list(dict.fromkeys([*ends, *difflib.get_close_matches(participant, ids)]))[:SIMILAR]
    hint = f" Similar ids: {', '.join(similar)}." if similar else ""
    raise DataError(f"There is no participant {participant!r} among the {len(ids):,} people.{hint}")


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
