"""What verbs share: options about reading a study and writing results, and the last lines of a page.

Verbs are signatures and calls. What takes time to import is imported when a verb runs, so that help is quick.
"""

from __future__ import annotations

import json as jsons
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fidm.errors import DataError, count
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import Bars, aside, note, page, printable, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.fit.fitted import Fit
    from fidm.folder import StudyFolder
    from fidm.record import Result
    from fidm.tasks.model import TaskModel
    from fidm.types import SkipBad

MOST_NAMED = 8
"""How many files are named one by one."""

Many = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
"""An option that may be repeated."""

Flag = Annotated[bool, Parameter(negative=())]
"""An option that is there or not."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a study is read.

    Parameters
    ----------
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    skip
        What is left out where data have problems: the participant, the episode, or the rest of the episode
        ("episode" and "rest" imply --skip-bad).
    """

    task: Many = ()
    skip_bad: Flag = False
    skip: Literal["participant", "episode", "rest"] = "participant"

    @property
    def leave_out(self) -> SkipBad:
        """Whether anything is left out where data have problems, and what."""
        from fidm.types import leave_out

        return leave_out(self.skip_bad, self.skip)

    def open(self, study: Path, bars: Bars) -> StudyFolder:
        """Open the study, and say if decisions of reviewers were applied."""
        from fidm.folder import StudyFolder

        bars.step("reading", 0, 1)
        opened = StudyFolder.open(study, task=self.task, skip_bad=self.leave_out, on_progress=bars.step)
        say_notes(opened.notes)
        return opened

    def open_like(self, like: Path | None, bars: Bars) -> tuple[StudyFolder | None, Sequence[TaskModel]]:
        """Open the study that simulated data are to be like, if there is one; and the tasks."""
        from fidm.tasks.compile import load_tasks

        if like is not None:
            opened = self.open(like, bars)
            return opened, opened.tasks
        return None, tuple(task for name in self.task or ("grocery",) for task in load_tasks(name))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadingFit(Reading):
    """How a study and its fit are read.

    Parameters
    ----------
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    skip
        What is left out where data have problems: the participant, the episode, or the rest of the episode
        ("episode" and "rest" imply --skip-bad).
    use
        A fit.json with what people share; by default the study's own, or else one learned now.
    """

    use: Path | None = None

    def fit(self, opened: StudyFolder, bars: Bars) -> tuple[Fit, str]:
        """Return what people share, and where it comes from in words."""
        bars.step("what people share", 0, 1)
        return opened.fit(self.use)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Writing:
    """What becomes of a result.

    Parameters
    ----------
    out
        Where to write; by default STUDY/results, or fidm-results where there is no study.
    json
        Print the result as JSON instead of a page.
    """

    out: Path | None = None
    json: bool = False

    def target(self, study: Path | None) -> Path:
        """Return where results go: where they are told to, into the study, or into ``fidm-results``."""
        if self.out is not None:
            return self.out
        return study / "results" if study is not None else Path("fidm-results")

    def write(self, found: Result, study: Path | None) -> list[Path]:
        """Write a result with its figures, and return what was written."""
        from fidm.plot.save import write_with_figures

        return write_with_figures(found, self.target(study))

    def show(
        self,
        found: Result,
        written: Iterable[Path],
        study: Path | None,
        opened: StudyFolder | None,
        page_of: Callable[[Console], None],
    ) -> None:
        """Print a result: as JSON, or as its page with who is not in it and what was written."""
        if self.json:
            print_result(found)
            return
        console = page()
        page_of(console)
        finish(console, written, self.target(study), opened)


def say_notes(notes: Iterable[str]) -> None:
    """Say on the error stream what was done before the work, such as applying reviewers' decisions."""
    note(aside(), *notes)


def require_writable(folder: Path) -> None:
    """Raise before a long computation if its results could not be written; nothing is made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise DataError("is a file; a folder is needed for the results.", source=str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise DataError("cannot be written. Name another folder: --out.", source=str(there))


def print_result(found: Result) -> None:
    """Print a result and its record as JSON."""
    from fidm.record import to_json

    print(to_json(found))


def print_json(values: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print plain values as JSON."""
    print(jsons.dumps(values, indent=2, ensure_ascii=False, allow_nan=False))


def finish(console: Console, files: Iterable[Path], target: Path, opened: StudyFolder | None) -> None:
    """Print who is not in the numbers, what was written, and what it is not."""
    if opened is not None:
        say_who(console, opened)
    console.print(f"\nWrote {_named(list(files))} to {target}", soft_wrap=True, markup=False)
    console.print(NOT_A_DIAGNOSIS, style="dim")
    if opened is not None:
        from fidm.present.next import say_next

        say_next(console, opened.path, after="result", skip=opened.skip)


def say_who(console: Console, opened: StudyFolder) -> None:
    """Print that people are simulated, excluded, or left out because of problems, where they are."""
    from fidm.io.columns import say_reasons

    if opened.is_simulated:
        say_simulated(console)
    if opened.reasons:
        console.print(printable(say_reasons(opened.reasons)), style="dim", soft_wrap=True, markup=False)
    if opened.n_left_out:
        warn(console, f"{count(opened.n_left_out, 'participant')} left out because of problems in their data")


def say_simulated(console: Console) -> None:
    """Print that people are simulated."""
    note(
        console, "these people are simulated, and made to resemble the paper's: agreement is partly built in"
    )


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
