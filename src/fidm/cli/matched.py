"""``fidm matched``: two kinds of people with the same totals, and what tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fidm.cli.shared import Reading, Writing
from fidm.present.terminal import progress_bar


def matched(
    *,
    like: Path | None = None,
    reading: Reading = Reading(),
    people: int | None = None,
    low: float = 18.0,
    high: float = 30.0,
    repeat: int = 5,
    seed: int = 1,
    population: Literal["random", "pooled"] = "random",
    writing: Writing = Writing(),
) -> int:
    """Make pairs of people with the same totals and other habits, and see what tells them apart.

    A chooses less sensibly and speaks in the observed segments; B chooses more sensibly and speaks in
    segments merged two by two, with offsets so that both need as much in total. Writes matched.json,
    matched.csv, matched-recovery.csv, matched-differences.csv and matched.png and .pdf. Exit code 0: done.
    2: the study could not be used.

    Parameters
    ----------
    like
        A study folder: the pairs share its people's situations and segments. What people share is learned
        from its training part. Simulated people by default.
    people
        How many people to simulate, by default 400. Not with --like: everybody of the study gives a pair.
    low
        A's action sensitivity.
    high
        B's action sensitivity.
    repeat
        How many times the pairs are drawn.
    seed
        The same seed gives the same numbers.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    """
    from fidm.experiments.matched import matched as run
    from fidm.present.experiments import show_matched

    with progress_bar() as bars:
        opened, tasks = reading.open_like(like, bars)
        found = run(
            tasks,
            like=opened.cohort if opened else None,
            learn_from=opened.part()[0] if opened else None,
            n=people,
            low=low,
            high=high,
            repeat=repeat,
            seed=seed,
            population=population,
            on_progress=bars.step,
        )
        written = writing.write(found, like)
    is_like = like is not None
    writing.show(found, written, like, opened, lambda page: show_matched(found, page, is_like=is_like))
    return 0
