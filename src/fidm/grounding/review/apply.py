"""From decisions to the study's tables: what people decided about segments becomes steps, weights and effort.

The grounder's segments are kept in ``grounding/proposals.parquet``. The tables of the study and those in
``grounding/`` are made again from them and from the trail of decisions, and ``provenance.json`` says up to
which entry of the trail. Nothing is lost if that is put off or interrupted: the commands that read the study
bring it up to date first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from fidm.cohort import PROBLEM_SCHEMA
from fidm.errors import DataError, GroundingError, count, listed
from fidm.files import recover_folder
from fidm.grounding.dialog import Settings, Weighing
from fidm.grounding.ground import Grounded, assemble
from fidm.grounding.llm.examples import OwnExample
from fidm.grounding.review.trail import FILE, HEAD, Decision, Trail
from fidm.grounding.review.verdicts import (
    ReviewedSegment,
    by_dialog,
    by_segment,
    latest_of_each,
    review_dialog,
    reviewed_dialog,
    segment_key,
)
from fidm.grounding.store import (
    FOLDER,
    PROPOSED,
    alone_in,
    given_tables,
    has_grounding,
    hash_given,
    known_participants,
    put_by_proposals,
    read_grounding,
    write_grounding,
)
from fidm.io.columns import excluded_people
from fidm.io.study import TABLES, Study
from fidm.tasks.compile import load_tasks
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks
from fidm.types import Progress

WAIT_S = 60.0
"""How long to wait for another process that writes the same study."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of the decisions about a study.

    Parameters
    ----------
    n_decisions : int
        How many there are in the trail.
    n_reviewed : int
        Segments that are now as a person read them.
    n_rejected : int
        Segments that a person rejected; they are left out.
    n_stale : int
        Segments decided on that somebody must look at again, because the figure starts elsewhere now.
    n_differ : int
        Segments about which reviewers differ.
    n_lost : int
        Segments decided on that the study has no more: other words, or cut in another way.
    head : str
        The head of the trail.
    grounded : Grounded
        The grounding as it stands.
    """

    n_decisions: int
    n_reviewed: int
    n_rejected: int
    n_stale: int
    n_differ: int
    n_lost: int
    head: str
    grounded: Grounded = field(repr=False, compare=False)

    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        names = ("n_decisions", "n_reviewed", "n_rejected", "n_stale", "n_differ", "n_lost")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        said = [f"{count(self.n_reviewed, 'segment')} read by hand"]
        if self.n_rejected:
            said.append(f"{self.n_rejected:,} rejected and left out")
        if self.n_differ:
            said.append(f"{self.n_differ:,} about which reviewers differ")
        if self.n_stale:
            said.append(f"{self.n_stale:,} to be looked at again, since a correction before moved the figure")
        if self.n_lost:
            said.append(f"{self.n_lost:,} that the study has no more")
        return f"{count(self.n_decisions, 'decision')}: {', '.join(said)}"


def read_proposed(study: str | Path, task: TaskModel | None = None) -> Grounded:
    """Read back a study's grounding as the grounder left it, whatever people decided since.

    Parameters
    ----------
    study : path
        A grounded study.
    task : TaskModel, optional
        Its task; by default the one that ``study.toml`` names.
    """
    if task is None:
        folder = Path(study)
        task = _task(folder, _task_names(folder), read_provenance(folder))
    grounded = read_grounding(study, task, proposed=True)
    weighing = Weighing(**grounded.provenance.get("weighing", {}))
    if weighing == grounded.settings.weighing:
        return grounded
    settings = Settings(weighing=weighing)
    return assemble(grounded.dialogs, grounded.terrain, settings, grounded.provenance)


def review_all(
    grounded: Grounded, decisions: Sequence[Decision], *, on_progress: Progress | None = None
) -> tuple[tuple[ReviewedSegment, ...], ...]:
    """Walk every dialog of a grounding as it stands after what people decided.

    Parameters
    ----------
    grounded : Grounded
        The grounding as the grounder left it.
    decisions : sequence of Decision
        Decisions, oldest first.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    mine = by_dialog(decisions)
    found = []
    for done, dialog in enumerate(grounded.dialogs):
        if on_progress is not None:
            on_progress("reviewing", done, len(grounded.dialogs))
        about = mine.get((dialog.transcript.participant, dialog.transcript.episode), [])
        found.append(review_dialog(dialog, about, grounded.terrain))
    return tuple(found)


def reviewed_grounding(
    grounded: Grounded,
    decisions: Sequence[Decision],
    *,
    head: str = "",
    on_progress: Progress | None = None,
) -> Applied:
    """Return a grounding as it stands after what people decided; nothing is written.

    Parameters
    ----------
    grounded, decisions, on_progress
        As in :func:`review_all`.
    head : str
        The head of the trail they are from.
    """
    walked = review_all(grounded, decisions, on_progress=on_progress)
    dialogs = [reviewed_dialog(dialog, one) for dialog, one in zip(grounded.dialogs, walked, strict=True)]
    segments = [segment for one in walked for segment in one]
    there = {segment_key(dialog, one) for dialog in grounded.dialogs for one in dialog.segments}
    lost = [key for key, made in by_segment(decisions).items() if key not in there and latest_of_each(made)]
    numbers = {
        "n_decisions": len(decisions),
        "n_reviewed": sum(one.grounded.status == "reviewed" for one in segments),
        "n_rejected": sum(one.grounded.status == "rejected" for one in segments),
        "n_stale": sum(one.is_stale for one in segments),
        "n_differ": sum(one.reviewers_differ for one in segments),
        "n_lost": len(lost),
    }
    provenance = {**grounded.provenance, "review": {"head": head, **numbers}}
    now = assemble(dialogs, grounded.terrain, grounded.settings, provenance)
    return Applied(**numbers, head=head, grounded=now)


def apply_review(
    study: str | Path, *, on_progress: Progress | None = None, is_alone: bool = False
) -> Applied | None:
    """Make a study's tables again from the grounder's proposals and what people decided.

    Parameters
    ----------
    study : path
        A grounded study.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    is_alone : bool
        Whether the caller holds the study already, see :func:`fidm.grounding.store.alone_in`.

    Returns
    -------
    Applied or None
        What became of the decisions; None where there is none.
    """
    if not is_alone:
        with alone_in(study, wait_s=WAIT_S):
            return apply_review(study, on_progress=on_progress, is_alone=True)
    folder = Path(study)
    trail = Trail(folder)
    provenance = read_provenance(folder)
    if not trail.decisions and "review" not in provenance:
        return None
    recover_folder(folder)
    names = _task_names(folder)
    task = _task(folder, names, provenance)
    problems = _unread(folder)
    grounded = read_proposed(folder, task)
    applied = reviewed_grounding(grounded, trail.decisions, head=trail.head, on_progress=on_progress)
    put_by_proposals(folder)
    write_grounding(folder, applied.grounded, tasks=names, problems=problems, keep_proposals=True)
    return applied


def bring_up_to_date(study: str | Path, *, on_progress: Progress | None = None) -> str | None:
    """Make a study's tables again if reviewers decided, or somebody changed the lab's own tables, since.

    Return a sentence if there was anything to do.

    Parameters
    ----------
    study : path
        A study, grounded or not.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    folder = Path(study)
    if _n_new(folder) is None and not _changed(folder):
        return None
    with alone_in(folder, wait_s=WAIT_S):
        new, changed = _n_new(folder), _changed(folder)  # somebody else may have done it meanwhile
        if new is None and not changed:
            return None
        applied = apply_review(folder, on_progress=on_progress, is_alone=True)
        if applied is None:
            names = _task_names(folder)
            grounded = read_proposed(folder, _task(folder, names, read_provenance(folder)))
            write_grounding(folder, grounded, tasks=names, problems=_unread(folder), keep_proposals=True)
    said = []
    if applied is not None and new is not None:
        said.append(f"with what reviewers decided ({count(new, 'new decision')}). {applied}.")
    if changed:
        said.append(f"from the changed {listed(changed)}.")
    return f"The tables were made again {' They were made '.join(said)}" if said else None


def _changed(folder: Path) -> list[str]:
    """The lab's own tables that the study's tables were not made with."""
    if not has_grounding(folder):
        return []
    used, given = read_provenance(folder).get("given", {}), given_tables(folder)
    return [given[name].name for name, now in hash_given(folder).items() if used.get(name) != now]


def _n_new(folder: Path) -> int | None:
    """How many decisions the tables were made without; None if they are up to date."""
    is_there = any(os.path.lexists(folder / FOLDER / name) for name in (FILE, HEAD))
    if not is_there and not (has_grounding(folder) and "review" in read_provenance(folder)):
        return None
    trail = Trail(folder)
    if not has_grounding(folder):
        if (folder / FOLDER / PROPOSED).exists():  # somebody was stopped while applying them
            return len(trail.decisions)
        if not trail.decisions:
            return None
        raise GroundingError(
            "has decisions of reviewers, but its grounding is not there or was interrupted. Run: fidm ground "
            "STUDY; the decisions are kept.",
            source=str(folder),
        )
    used = read_provenance(folder).get("review")
    if used is None:
        return len(trail.decisions) or None
    place = trail.place_of(str(used.get("head") if isinstance(used, dict) else used))
    if place is None:
        raise GroundingError(
            "lacks decisions that the study's tables were made with. See fidm audit verify; bring the file "
            "back from a backup, or run fidm ground again to start from what is left.",
            source=str(trail.path),
        )
    return sum(isinstance(entry, Decision) for entry in trail.entries[place:]) or None


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return what a study's tables were made with, or what the grounder left if somebody was stopped."""
    name = "provenance.json" if has_grounding(folder) else PROPOSED
    try:
        found = json.loads((folder / FOLDER / name).read_text("utf-8"))
    except FileNotFoundError:
        raise GroundingError("has no grounding. Run: fidm ground STUDY.", source=str(folder)) from None
    except (OSError, ValueError) as error:
        raise GroundingError(
            f"cannot be read ({type(error).__name__}). Run fidm ground again.",
            source=str(folder / FOLDER / name),
        ) from None
    return dict(found)


def _task_names(folder: Path) -> list[str | Path]:
    """The tasks that the study names, as they are loaded and written again."""
    return [name if name in builtin_tasks() else folder / name for name in Study(folder).task_names]


def _task(folder: Path, names: Sequence[str | Path], provenance: dict[str, Any]) -> TaskModel:
    """The task that the dialogs are about."""
    for task in (one for name in names for one in load_tasks(name)):
        if task.fingerprint == provenance.get("task_fingerprint"):
            return task
    raise GroundingError(
        "was grounded on a task that study.toml does not name, or on another version of it. Run fidm ground "
        "again; the decisions are kept.",
        source=str(folder),
    )


def _unread(folder: Path) -> pl.DataFrame | None:
    """What was wrong with dialogs that could not be read; problems of traces are found anew."""
    path = folder / FOLDER / "problems.csv"
    if not path.exists():
        return None
    try:
        found = pl.read_csv(path, schema=PROBLEM_SCHEMA)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"cannot be read ({type(error).__name__}).", source=str(path)) from None
    return found.filter(~pl.col("table").is_in(TABLES)).with_columns(pl.col(pl.String).fill_null(""))


def reviewed_examples(study: str | Path, task: TaskModel) -> tuple[OwnExample, ...]:
    """Return every segment of a study that somebody has reviewed; none where the map has changed since.

    Rejected segments, those about which reviewers differ and those of excluded participants are not among
    them.

    Parameters
    ----------
    study : path
        A study, grounded or not.
    task : TaskModel
        Its task.
    """
    decisions = Trail(study).decisions
    if not decisions or not (has_grounding(study) or (Path(study) / FOLDER / PROPOSED).is_file()):
        return ()
    if read_provenance(Path(study)).get("task_fingerprint") != task.fingerprint:
        return ()
    grounded = read_proposed(study, task)
    excluded = set(excluded_people(known_participants(study))["participant"])
    found = []
    for dialog, walked in zip(grounded.dialogs, review_all(grounded, decisions), strict=True):
        who = dialog.transcript.participant
        found += [
            OwnExample(
                who, dialog.language, task.fingerprint, one.proposed.segment.text, one.start, one.program
            )
            for one in walked
            if one.grounded.status == "reviewed" and who not in excluded
        ]
    return tuple(found)
