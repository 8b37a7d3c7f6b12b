"""``fidm evidence`` and ``fidm localize``: what makes people's profiles what they are, and where it lies."""

from __future__ import annotations

import difflib
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import ReadingFit, Writing, finish, print_result
from fidm.defaults import LOCALIZE_BOOTSTRAP
from fidm.errors import DataError, at_least, count
from fidm.present.terminal import aside, note, page, progress_bar, warn

if TYPE_CHECKING:
    from rich.console import Console

SIMILAR = 3
"""How many ids are offered to whoever mistyped one."""


def evidence(
    study: Path,
    *,
    reading: ReadingFit = ReadingFit(),
    participant: str | None = None,
    top: int = 10,
    workers: int | None = None,
    writing: Writing = Writing(),
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
    participant
        Show this person's actions and segments, with the words they came from where the study has dialogs.
    top
        How many actions, and how many segments per kind of effort, to show.
    workers
        Threads; by default one per processor. Changes no number.
    json
        Print the result as JSON instead of a page: what is said of everybody, or with --participant of that
        person. The JSON holds numbers and ids, and nothing of what was said.
    """
    from fidm.behind import places_behind, write_evidence
    from fidm.evidence.evidence import find_evidence
    from fidm.plot.evidence import evidence_figure
    from fidm.plot.save import save_figure
    from fidm.present.study import Person, show_evidence

    at_least("--top", top, 1)
    with progress_bar() as bars:
        opened = reading.open(study, bars)
        if participant is not None:
            _require(participant, opened.cohort.ids.to_list())
        fitted, source = reading.fit(opened, bars)
        profile = fitted.profile(opened.cohort, workers=workers, on_progress=bars.step)
        found = find_evidence(fitted, opened.cohort, profile=profile, workers=workers, on_progress=bars.step)
        bars.step("writing", 0, 1)
        behind = places_behind(study, found)
        target = writing.target(study)
        written = write_evidence(found, behind, target)
        shown = found.most_astray() if participant is None else participant
        if not found.actions.filter(participant=shown).height:
            shown = None  # there are no steps to draw
        if shown is not None:
            name = "evidence" if participant is None else f"evidence-{file_name(participant)}"
            pictures = [target / f"{name}.png", target / f"{name}.pdf"]
            save_figure(evidence_figure(found, shown, opened.tasks, opened.cohort), pictures)
            written += pictures
    if writing.json:
        warn(aside(), *behind.warnings)
        print_result(found if participant is None else Person(found, behind, participant, top))
        return 0
    console = page()
    show_evidence(
        found, behind, console, participant=participant, top=top, fit=fitted, source=source, profile=profile,
        cohort=opened.cohort,
    )  # fmt: skip
    if shown is not None:
        note(console, f"the figure shows {shown}")
    finish(console, written, target, opened)
    return 0


def file_name(participant: str) -> str:
    """Return a participant's id as part of a file name; different ids have different names."""
    safe = re.sub(r"[^\w.-]+", "_", participant)[:60]
    if safe == participant:
        return safe
    return f"{safe}-{hashlib.sha256(participant.encode()).hexdigest()[:6]}"


def _require(participant: str, ids: list[str]) -> None:
    """Raise if there is no such person, and say whose ids are similar."""
    if participant in ids:
        return
    ends = [one for one in ids if one.endswith(participant)] if participant else []
    similar = list(dict.fromkeys([*ends, *difflib.get_close_matches(participant, ids)]))[:SIMILAR]
    hint = f" Similar ids: {', '.join(similar)}." if similar else ""
    raise DataError(f"There is no participant {participant!r} among the {len(ids):,} people.{hint}")


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
