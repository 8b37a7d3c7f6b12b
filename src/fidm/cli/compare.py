"""``fidm compare STUDY --by COLUMN``: whether groups differ in how they decide and what it costs them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import Many, Reading, Writing
from fidm.errors import count
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    study: Path,
    *,
    by: str,
    adjust: Many = (),
    reference: str | None = None,
    lapse: float | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    reading: Reading = Reading(),
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Compare groups of participants in every parameter, adjusted for what else is known of them.

    Everybody's choices and segments tell how the groups differ; estimates of single people are not compared,
    so groups need not have done equally much. Writes compare.json, tables and a figure. Exit code 0: done.
    2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    by
        The column of the participants that holds the groups, or a number. A column of the episodes, such as a
        visit, compares people with themselves.
    adjust
        A column to adjust for, several with commas between them. May be repeated.
    reference
        The group the others are compared with; by default the largest.
    lapse
        The lapse rate of choices, a number; by default it is estimated.
    inferred
        How much an inferred move counts, from 0 to 1.
    level
        The level of intervals.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.compare import compare as run
    from fidm.present.experiments import show_comparison

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        found = run(
            opened.tasks,
            opened.cohort,
            by=by,
            adjust=[name.strip() for names in adjust for name in names.split(",")],
            reference=reference,
            channels=opened.channels,
            lapse=lapse,
            inferred=inferred,
            level=level,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, study)

    def show(page: Console) -> None:
        page.print(f"[bold]{count(len(opened.cohort), 'participant')}[/]")
        show_comparison(found, page)

    writing.show(found, written, study, opened, show)
    return 0
