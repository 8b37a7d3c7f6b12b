"""``fidm localize``: whether unexpected actions are where people turned away or passed a target by."""

from __future__ import annotations

from pathlib import Path

from fidm.cli.shared import ReadingFit, Writing, finish, print_result
from fidm.defaults import LOCALIZE_BOOTSTRAP
from fidm.errors import count
from fidm.present.terminal import note, page, progress_bar


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
    from fidm.plot.save import write_with_figures
    from fidm.present.experiments import show_localization

    check_settings(seed=seed, bootstrap=bootstrap, level=level)
    with progress_bar() as bars:
        opened = reading.open(study, bars)
        fitted, source = reading.fit(opened, bars)
        evidence = find_evidence(fitted, opened.cohort, workers=workers, on_progress=bars.step)
        found = run(
            evidence, opened.cohort, seed=seed, bootstrap=bootstrap, level=level, on_progress=bars.step
        )
        target = writing.target(study)
        written = write_with_figures(found, target)
    if writing.json:
        print_result(found)
        return 0
    console = page()
    console.print(f"[bold]Where the actions of {count(len(opened.cohort), 'participant')} were unexpected[/]")
    note(console, f"what people share was {source}")
    show_localization(found, level, console)
    finish(console, written, target, opened)
    return 0
