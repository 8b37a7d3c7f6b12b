"""What verbs about a study share: opening it, and finding or making its fit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from fidm.cohort import Cohort
from fidm.errors import DataError, count
from fidm.experiments.opening import part_of, read_people, study_fit, study_tasks
from fidm.fit.fitted import Fit
from fidm.grounding.review.apply import bring_up_to_date
from fidm.grounding.settings import read_settings
from fidm.io.columns import count_reasons, say_reasons
from fidm.io.dialogs import read
from fidm.io.study import Study
from fidm.present.terminal import Bars, aside, note, printable, warn
from fidm.simulate.folders import SIMULATION
from fidm.talk import Transcripts
from fidm.tasks.model import TaskModel

MOST_NAMED = 8
"""How many files are named one by one."""

RESULTS = "results"
"""The folder of a study that experiments write to."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A study in memory.

    Parameters
    ----------
    folder : Path
        Where it is.
    tasks : tuple of TaskModel
        Its tasks.
    cohort : Cohort
        Its people, those left out excepted.
    n_left_out : int
        How many people were left out because of problems.
    excluded : mapping of str to int
        Why people are excluded, and how many.
    """

    folder: Path
    tasks: tuple[TaskModel, ...]
    cohort: Cohort
    n_left_out: int
    excluded: Mapping[str, int]

    def part(self, split: str | None) -> tuple[Cohort, str]:
        """Return the people of a split and its name: ``train`` unless told otherwise, if there is one."""
        return part_of(self.cohort, split)


def open_study(folder: Path, *, task: tuple[str, ...] = (), skip_bad: bool = False) -> Opened:
    """Read a study and its tasks.

    Parameters
    ----------
    folder
        The study.
    task
        Names or files of tasks; by default those that study.toml names.
    skip_bad
        Leave out people whose data have problems, instead of refusing the study.
    """
    apply_decisions(folder)
    study = Study(folder)
    tasks = study_tasks(study, task)
    cohort = read_people(study, tasks, skip_bad=skip_bad)
    n_left_out = cohort.problems["participant"].n_unique()
    return Opened(folder, tasks, cohort, n_left_out, count_reasons(study.excluded()))


def apply_decisions(folder: Path, bars: Bars | None = None) -> None:
    """Make the tables again if reviewers have decided on something since, and say so on the error stream.

    Parameters
    ----------
    folder
        The study.
    bars
        Where to report how far it is.
    """
    said = bring_up_to_date(folder, on_progress=None if bars is None else bars.step)
    if said is not None:
        aside().print(Text(f"· {printable(said)}"), style="dim", soft_wrap=True)


def find_fit(opened: Opened, use: Path | None, bars: Bars) -> tuple[Fit, str]:
    """Return a fit for a study's people, and where it comes from in words.

    It is the file given, else the study's own ``fit.json``, else one made now from its training part.
    """
    bars.step("what people share", 0, 1)
    return study_fit(opened.folder, opened.tasks, opened.cohort, use=use)


def read_talks(
    study: Path, bars: Bars, *, talks: Path | None = None, roles: Path | None = None, skip_bad: bool = False
) -> Transcripts | None:
    """Return a study's dialogs, read as its grounding.toml says; None where it has none.

    Parameters
    ----------
    study
        The study.
    bars
        Where reading reports how far it is.
    talks
        Where the dialogs are; by default where grounding.toml says, or in the folder talks.
    roles
        A file that says which speaker is the participant; by default what grounding.toml says.
    skip_bad
        Leave out dialogs that cannot be read.
    """
    chosen = read_settings(study)
    place = talks if talks is not None else study / chosen.talks
    if not place.exists():
        if talks is None:
            return None
        raise DataError("is not there. Say where the dialogs are with --talks.", source=str(place))
    return read(
        place,
        names=chosen.names,
        roles=roles if roles is not None else chosen.speakers or None,
        columns=chosen.columns or None,
        strict=not skip_bad,
        untimed=chosen.untimed,
        on_progress=lambda done, of: bars.step("reading dialogs", done, of),
    )


def results_folder(out: Path | None, study: Path | None) -> Path:
    """Return where an experiment writes: where it is told to, into the study, or into ``fidm-results``."""
    if out is not None:
        return out
    return study / RESULTS if study is not None else Path("fidm-results")


def require_writable(folder: Path) -> None:
    """Raise before a long computation if its results could not be written; nothing is made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise DataError("is a file; a folder is needed for the results.", source=str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise DataError("cannot be written. Name another folder: --out.", source=str(there))


def _named(files: Sequence[Path]) -> str:
    """Names of files; where there are many, how many there are of each kind."""
    if len(files) <= MOST_NAMED:
        return ", ".join(path.name for path in files)
    kinds: dict[str, list[str]] = {}
    for path in files:
        kinds.setdefault(path.suffix, []).append(path.name)
    return ", ".join(
        names[0] if len(names) == 1 else f"{len(names)} {kind} files ({names[0]}, …)"
        for kind, names in kinds.items()
    )


def finish(console: Console, files: Iterable[Path], target: Path, opened: Opened | None) -> None:
    """Print who is not in the numbers, what was written, and what it is not."""
    if opened is not None and (opened.folder / SIMULATION).exists():
        note(
            console,
            "these people are simulated, and made to resemble the paper's: agreement is partly built in",
        )
    if opened is not None and opened.excluded:
        console.print(say_reasons(opened.excluded), style="dim", soft_wrap=True, markup=False)
    if opened is not None and opened.n_left_out:
        warn(console, f"{count(opened.n_left_out, 'participant')} left out because of problems in their data")
    console.print(f"\nWrote {_named(list(files))} to {target}", soft_wrap=True, markup=False)
    console.print("Research use only, not a diagnosis.", style="dim")
