"""``fidm localize``: whether unexpected actions are where people turned away or passed a target by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import ReadingFit, Writing
from fidm.defaults import LOCALIZE_BOOTSTRAP
from fidm.errors import count
from fidm.present.terminal import note, progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def localize(
    study: Path,
    *,
    reading: ReadingFit = ReadingFit(),
    bootstrap: int = LOCALIZE_BOOTSTRAP,
    seed: int = 1,
    level: float = 0.95,
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Say how well the unexpectedness of actions points at detours and at targets passed by (table 1).

    Writes localize.json, localize.csv (a row per anchor and score), localize-people.csv and a figure. Exit
    code 0: done. 2: the study could not be used, has no map, or nobody went astray.

    Parameters
    ----------
    study
        The study folder.
    bootstrap
        How many times participants are drawn anew for the intervals.
    seed
        The same seed gives the same intervals.
    level
        The level of the intervals, between 0 and 1.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.evidence.evidence import find_evidence
    from fidm.evidence.localization import check_settings
    from fidm.evidence.localization import localize as run
    from fidm.present.experiments import show_localization

    check_settings(seed=seed, bootstrap=bootstrap, level=level)
    with progress_bar() as bars:
        opened = reading.open(study, bars)
        fitted, source = reading.fit(opened, bars)
        evidence = find_evidence(fitted, opened.cohort, workers=workers, on_progress=bars.step)
        found = run(
            evidence, opened.cohort, seed=seed, bootstrap=bootstrap, level=level, on_progress=bars.step
        )
        written = writing.write(found, study)

    def show(page: Console) -> None:
        page.print(
            f"[bold]Where the actions of {count(len(opened.cohort), 'participant')} were unexpected[/]"
        )
        note(page, f"what people share was {source}")
        show_localization(found, level, page)

    writing.show(found, written, study, opened, show)
    return 0
