"""``fidm reliability STUDY``: how far each person's numbers can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import ReadingFit, Writing
from fidm.defaults import BOOTSTRAP
from fidm.errors import count
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def reliability(
    study: Path,
    *,
    reading: ReadingFit = ReadingFit(),
    halves: str | None = None,
    split: str | None = None,
    bootstrap: int = BOOTSTRAP,
    seed: int = 1,
    workers: int | None = None,
    writing: Writing = Writing(),
) -> int:
    """Say how reliable every parameter is, and which change in a person is more than measurement error.

    Split-half (odd against even episodes, or segments where participants have one episode) and, where
    participants have two traces, retest. Writes reliability.json, reliability.csv and reliability.png and
    .pdf. Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    halves
        What is dealt to the two halves: "segments" or "episodes" (odd against even), "first-last" or "random"
        halves of the episodes, a column of the table of episodes such as a session, or a rule such as
        "every 10"; blocks are dealt in turn. By default episodes, or segments where participants have one
        episode.
    split
        Learn what people share from the participants with this value of "split", where no fit is used; by
        default from "train" if there is a split. Everybody is measured.
    bootstrap
        How many times participants are drawn anew for the intervals.
    seed
        The same seed gives the same intervals, and the same random halves.
    workers
        Threads; by default one per processor. Changes no number.
    """
    from fidm.experiments.reliability import reliability as run
    from fidm.present.experiments import show_reliability

    with progress_bar() as bars:
        opened = reading.open(study, bars)
        learners, part = opened.part(split)
        path = reading.use if reading.use is not None else study / "fit.json"
        has_fit = reading.use is not None or (split is None and path.exists())
        found = run(
            opened.tasks,
            opened.cohort,
            fit=opened.load_fit(path) if has_fit else None,
            learn_from=learners,
            channels=opened.channels,
            halves=halves,
            seed=seed,
            bootstrap=bootstrap,
            workers=workers,
            on_progress=bars.step,
        )
        written = writing.write(found, study)

    def show(page: Console) -> None:
        page.print(f"[bold]{count(len(opened.cohort), 'participant')}[/]")
        source = f"learned earlier, {path}" if has_fit else f"learned now from {len(learners):,} ({part})"
        page.print(f"what people share was {source}", style="dim", soft_wrap=True, markup=False)
        show_reliability(found, page)

    writing.show(found, written, study, opened, show)
    return 0
