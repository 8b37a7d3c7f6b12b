"""``fidm compare STUDY --by COLUMN``: whether groups differ in how they decide and what it costs them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fidm.cli.shared import Many, Reading, Writing
from fidm.errors import DataError, count
from fidm.present.terminal import progress_bar

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    study: Path,
    *,
    by: str,
    adjust: Many = (),
    reference: str | None = None,
    interact: Many = (),
    at: Many = (),
    missing: Literal["drop", "impute"] = "drop",
    imputations: int = 20,
    seed: int = 1,
    cluster: str | None = None,
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
        A column to adjust for, several with commas between them, or a term of a formula such as
        "bs(age, df=3)". May be repeated.
    reference
        The group the others are compared with; by default the largest.
    interact
        A column adjusted for with which the difference may change. May be repeated.
    at
        Values of such a column that differences are given for, as age=60,75; by default the mean of a number,
        and every group of a text. May be repeated.
    missing
        Leave out participants who lack what is adjusted for (drop), or impute it.
    imputations
        How often it is imputed.
    seed
        The same seed imputes the same.
    cluster
        A column of the participants whose values, such as sites, may go together.
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
            adjust=split_names(adjust),
            reference=reference,
            interact=split_names(interact),
            at=chosen_values(at),
            missing=missing,
            imputations=imputations,
            seed=seed,
            cluster=cluster,
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


def split_names(texts: Sequence[str]) -> list[str]:
    """Return names with commas between them one by one; commas within brackets belong to a name.

    Examples
    --------
    >>> split_names(["age, bs(education, df=3)", "sex"])
    ['age', 'bs(education, df=3)', 'sex']
    """
    return [name.strip() for text in texts for name in re.split(r",(?![^(]*\))", text)]


def chosen_values(texts: Sequence[str]) -> dict[str, list[float | str]]:
    """Return the values that are chosen of each column.

    Examples
    --------
    >>> chosen_values(["age=60,75", "sex=f"])
    {'age': [60.0, 75.0], 'sex': ['f']}
    """
    found: dict[str, list[float | str]] = {}
    for text in texts:
        name, is_given, values = text.partition("=")
        if not is_given or not values.strip():
            raise DataError(f"--at {text!r}: write the column, = and its values, as age=60,75.")
        found[name.strip()] = [_number(value.strip()) for value in values.split(",")]
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
