"""``fidm learning STUDY --by BLOCK``: how people's decisions change over blocks of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import ReadingFit, Writing
from fidm.errors import count
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def learning(
    study: Path,
    *,
    by: str,
    level: float = 0.95,
    reading: ReadingFit = ReadingFit(),
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Estimate how action sensitivity changes over blocks of trials, per participant and for the group.

    Every block of a participant is estimated from its own choices under one prior; the group's curve and its
    trend come from everybody's choices together. Writes learning.json, tables and a figure. Exit code 0:
    done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    by
        What makes the blocks: a column of the table of episodes, "every 10" (episodes of a participant), or
        "halves", "thirds", "quarters", "fifths", "tenths".
    level
        The level of intervals.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.learning import learning as run
    from fidm.present.experiments import show_learning

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        fit, source = opened.fit(reading.use, one_by_one=True)
        found = run(
            opened.tasks,
            opened.cohort,
            by=by,
            fit=fit,
            level=level,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, study)

    def show(page: Console) -> None:
        page.print(f"[bold]{count(len(opened.cohort), 'participant')}[/]")
        page.print(f"what people share was {source}", style="dim", soft_wrap=True, markup=False)
        show_learning(found, page)

    writing.show(found, written, study, opened, show)
    return 0
