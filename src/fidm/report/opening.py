"""Opening a study for its report: its people, what they share, the evidence with what was said, and reviews.

Everything is computed here, for everybody at once. In a report that must not lead back to anybody, people are
called P001, P002 and so on in an order nobody can guess: it is drawn from the machine's own randomness, not
from a seed, since whoever knows the ids of a study and the seed could draw the same order. Only a key file,
if one is asked for, says who is who; if it is there already, people keep their names, and those who are new
in the study get new ones. People also stand in the order of their new names, everywhere: in the order of the
study, whoever knows its ids could count who is who.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fidm.behind import Behind, places_behind, renamed
from fidm.cohort import Cohort
from fidm.defaults import LABEL, NORMAL
from fidm.errors import DataError, at_least
from fidm.evidence.evidence import Evidence, find_evidence
from fidm.files import whole_file
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY, Profile
from fidm.folder import StudyFolder
from fidm.grounding.review.apply import read_proposed, review_all
from fidm.grounding.review.trail import Decision, Trail
from fidm.grounding.store import FOLDER, has_grounding
from fidm.model.gaps import Gaps
from fidm.tasks.model import TaskModel
from fidm.types import Progress, SkipBad

KINDS: Mapping[str, str] = {
    "accept": "accepted as it was read",
    "edit": "corrected",
    "reject": "rejected",
}
"""What each kind of decision says about a segment."""


Where = tuple[str, str, str]
"""A participant, an episode and a segment."""


def segment_reviews(
    folder: Path,
    tasks: Sequence[TaskModel],
    fingerprint: object,
    *,
    names: Mapping[str, str] | None = None,
    secret: bytes = b"",
) -> dict[Where, list[dict[str, Any]]]:
    """Return the latest decision of every reviewer about each segment, oldest first.

    Only decisions about words that are still the same count, and none that was withdrawn. ``fingerprint`` is
    that of the task it was grounded on, as its grounding says. ``names`` is what people are called in a
    de-identified report: reviewers are numbered then with ``secret`` (see :func:`reviewer_names`), and
    neither comments nor times are told.
    """
    decisions = Trail(folder).decisions
    task = next((one for one in tasks if one.fingerprint == fingerprint), None)
    if not decisions or task is None:
        return {}
    hide = names is not None
    called = reviewer_names([one.reviewer for one in decisions], hide=hide, secret=secret)
    proposed = read_proposed(folder, task)
    found: dict[Where, list[dict[str, Any]]] = {}
    for dialog, segments in zip(proposed.dialogs, review_all(proposed, decisions), strict=True):
        who = dialog.transcript.participant
        shown = who if names is None else names.get(who)
        if shown is None:
            continue
        for one in segments:
            if one.decisions:
                where = (shown, dialog.transcript.episode, str(one.grounded.segment.number))
                found[where] = [
                    _told(made, called, hide=hide, holds=made is one.decision and not one.is_stale)
                    for made in one.decisions
                ]
    return found


def _told(made: Decision, called: Mapping[str, str], *, hide: bool, holds: bool) -> dict[str, Any]:
    return {
        "reviewer": called[made.reviewer],
        "at": None if hide else made.at,
        "kind": made.kind,
        "words": KINDS.get(made.kind, made.kind),
        "settles": made.settles,
        "in_force": holds,
        "comment": None if hide else made.comment or None,
    }


def reviewer_names(reviewers: Sequence[str], *, hide: bool, secret: bytes = b"") -> dict[str, str]:
    """Return what reviewers are called: their names, or "reviewer 1" and so on.

    ``secret`` is drawn anew for each report and kept nowhere: reviewers are numbered in an order that depends
    on it, so that it is neither that of the alphabet nor one that anybody who knows their names could find
    again.
    """
    known = sorted(dict.fromkeys(reviewers))
    if hide:
        known.sort(key=lambda name: hashlib.blake2b(name.encode("utf-8", "replace"), key=secret).digest())
    return {name: f"reviewer {i}" if hide else name for i, name in enumerate(known, start=1)}


Key = tuple[str, str]
"""A participant and an episode."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of the people of a study, all computed."""

    cohort: Cohort  # the people
    fit: Fit  # what they share
    profile: Profile  # their estimates
    found: Evidence  # their evidence
    behind: Behind  # the same with its places in the dialogs
    tasks: tuple[TaskModel, ...]  # their tasks
    label: str | None = None  # the column with people's status; None where there is none
    # The language of each dialog, by participant and episode.
    languages: Mapping[Key, str] = field(default_factory=dict)
    # Whether nothing may lead back to a person: no words, no covariates, no names of episodes.
    is_deidentified: bool = False
    # What reviewers decided, by participant, episode and segment.
    reviews: Mapping[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)
    # Who has no data, whose episodes are copies, and whose effort awaits review.
    gaps: Gaps = field(default_factory=Gaps)
    # Everybody's η with inferred moves treated the other way, with its ends and status, as ``fidm fit`` wrote
    # it beside the same estimates; None where it did not.
    other_way: pl.DataFrame | None = None

    @property
    def has_speech(self) -> bool:
        """Whether anything is known of what people said; if not, episodes are trials of choices."""
        return bool(self.cohort.n_segments) or self.behind.words is not None

    def why_not(self, row: int, k: int) -> str:
        """Return why nothing was observed of a person (row) in a parameter (k), where there is a reason."""
        column = self.fit.channels[k - 1].column if k else None
        return self.behind.why_nothing(self.cohort, row, column)


COLUMNS = ("participant", "shown_as")

SHOWN = re.compile(r"P[0-9]{1,9}")
"""What a name looks like."""


def draw_names(ids: Sequence[str], *, key: Path | None = None) -> dict[str, str]:
    """Return what each person is called in a de-identified report.

    ``ids`` are everybody's, those who are excluded among them; ``key`` is a file that says who is who, used
    if it is there.

    Examples
    --------
    >>> sorted(draw_names(["Ann", "Bo"]).values())
    ['P001', 'P002']
    """
    known = {} if key is None or not key.exists() else read_key(key)
    new = [name for name in dict.fromkeys(ids) if name not in known]
    taken = [number(shown) for shown in known.values()]
    first = max(taken, default=0) + 1
    width = max(3, len(str(first + len(new) - 1)))
    secrets.SystemRandom().shuffle(new)
    return {**known, **{name: f"P{first + i:0{width}d}" for i, name in enumerate(new)}}


def read_key(path: Path) -> dict[str, str]:
    """Read a key file: a row per person, ``participant`` and ``shown_as``."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot be read ({type(error).__name__}).", source=str(path)) from None
    if any(None in (row.get(name) for name in COLUMNS) for row in rows):
        raise DataError(
            f"is no key file: it needs the columns {' and '.join(COLUMNS)}.",
            source=str(path),
        )
    found = {row["participant"]: row["shown_as"] for row in rows}
    shown = list(found.values())
    if len(found) < len(rows) or len(set(shown)) < len(shown):
        raise DataError("names somebody twice, so it does not say who is who.", source=str(path))
    if not all(SHOWN.fullmatch(name) for name in shown):
        raise DataError("has names that are not P001, P002 and so on.", source=str(path))
    return found


def write_key(path: Path, names: Mapping[str, str]) -> None:
    """Write who is who, for the owner of the file alone."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows: list[tuple[str, str]] = sorted(names.items(), key=lambda pair: number(pair[1]))
    writer.writerows(rows)
    with whole_file(path, mode=0o600) as part:
        part.write_text(text.getvalue(), "utf-8")


def number(shown: str) -> int:
    """Return the number in a name.

    Examples
    --------
    >>> number("P012")
    12
    """
    return int(shown[1:])


def rename(cohort: Cohort, names: Mapping[str, str]) -> Cohort:
    """Return the same people under other names, in the order of those names.

    Nothing that is made from the cohort, no table and no figure, can then be in the order of the ids.
    """
    order = sorted(range(len(cohort)), key=lambda row: number(names[cohort.ids[row]]))
    moved, problems = cohort[order], renamed(cohort.problems, names)
    return replace(
        moved,
        participants=renamed(moved.participants, names),
        problems=problems.sort("problem", "participant", nulls_last=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report is asked for: the options of :func:`fidm.report.report.build_report`, described there."""

    task: Sequence[str] = ()
    use: Path | None = None
    label: str = LABEL
    normal: str = NORMAL
    participants: Sequence[str] | None = None
    classify: bool = True
    deidentify: bool = False
    key: Path | None = None
    skip_bad: SkipBad = False
    seed: int = 1
    workers: int | None = None
    on_progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.key is not None and not self.deidentify:
            raise DataError(
                "A key says who is who in a de-identified report. Ask for one, or leave the key out."
            )
        at_least("seed", self.seed, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A study with everything computed that its sections and its people need."""

    asked: ReportOptions  # what the report is asked for
    study: StudyFolder  # the study itself, with its results; its people have their own names
    known: Known  # what is known of its people
    excluded: pl.DataFrame  # ``participant`` and ``reason`` of whoever takes no part
    source: str  # where what people share comes from, in words
    provenance: Mapping[str, Any]  # how the study was grounded; empty where it was not
    grounded: pl.DataFrame | None  # every grounded segment of those who take part
    notes: tuple[str, ...] = ()  # what a reader must not miss
    # What people are called instead of their ids, in a de-identified report.
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What the order of reviewers is drawn with in a de-identified report; never shown.
    secret: bytes = field(default=b"", repr=False)

    @property
    def folder(self) -> Path:
        """Where the study is."""
        return self.study.path

    @property
    def is_simulated(self) -> bool:
        """Whether the people are simulated."""
        return self.study.is_simulated


def open_for_report(folder: Path, asked: ReportOptions) -> Opened:
    """Read a study, find or learn what its people share, and find everybody's evidence."""
    deidentify = asked.deidentify
    if asked.on_progress:
        asked.on_progress("reading", 0, 1)
    study = StudyFolder.open(folder, task=asked.task, skip_bad=asked.skip_bad, on_progress=asked.on_progress)
    tasks, shown = study.tasks, study
    names: dict[str, str] = {}
    if deidentify:
        problems = study.cohort.problems["participant"].drop_nulls()
        names = draw_names([*study.cohort.ids, *study.excluded["participant"], *problems], key=asked.key)
        shown = replace(study, cohort=rename(study.cohort, names), excluded=renamed(study.excluded, names))
    cohort = shown.cohort
    fit, source = shown.fit(asked.use, name_file=False, one_by_one=True)
    profile = fit.profile(cohort, workers=asked.workers, on_progress=asked.on_progress)
    found = find_evidence(fit, cohort, profile=profile, workers=asked.workers, on_progress=asked.on_progress)
    behind = places_behind(folder, found, names=names or None)
    said = None if behind.words is None else behind.words.segments
    provenance = _provenance(folder)
    secret = secrets.token_bytes(32)
    reviews = segment_reviews(
        folder,
        tasks,
        provenance.get("task_fingerprint"),
        names=names if deidentify else None,
        secret=secret,
    )
    known = Known(
        cohort,
        fit,
        profile,
        found,
        behind,
        tasks,
        asked.label if asked.label in cohort.participants.columns else None,
        _languages(folder, names),
        deidentify,
        reviews,
        Gaps.of(cohort, columns=[channel.column for channel in fit.channels]),
        _other_way(folder / "profile.parquet", profile, names),
    )
    grounded = None
    if provenance and said is not None:
        grounded = said.join(cohort.participants, on="participant", how="semi")
    notes = (*study.notes, *behind.warnings)
    return Opened(asked, study, known, shown.excluded, source, provenance, grounded, notes, names, secret)


def _other_way(path: Path, profile: Profile, names: Mapping[str, str]) -> pl.DataFrame | None:
    """What a table of profiles says of η the other way, if it is about the same estimates."""
    if not path.is_file():
        return None
    table = pl.read_parquet(path, glob=False)
    found = [name for name in table.columns if re.fullmatch(rf"{SENSITIVITY}_(all|stated)_moves", name)]
    if not found or not profile.n_inferred.any():
        return None
    own = profile.participants.to_frame("participant").join(
        renamed(table, names) if names else table, on="participant", how="left", maintain_order="left"
    )
    if not np.allclose(own[SENSITIVITY].to_numpy(), profile.estimate[:, 0], rtol=1e-6, equal_nan=True):
        return None
    return own.select(found[0], *(f"{found[0]}_{part}" for part in ("low", "high", "status")))


def _provenance(folder: Path) -> dict[str, Any]:
    """How the study was grounded, as the grounding itself says."""
    if not has_grounding(folder):
        return {}
    try:
        found = json.loads((folder / FOLDER / "provenance.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _languages(folder: Path, names: Mapping[str, str]) -> dict[Key, str]:
    """The language of each dialog, where the grounding tells."""
    path = folder / FOLDER / "dialogs.parquet"
    if not has_grounding(folder) or not path.is_file():
        return {}
    try:
        listed = pl.read_parquet(path, glob=False, columns=["participant", "episode", "language"])
    except (OSError, pl.exceptions.PolarsError):
        return {}
    listed = renamed(listed, names) if names else listed
    return {(who, episode): language for who, episode, language in listed.drop_nulls().iter_rows()}


def doubtful_weight(provenance: Mapping[str, Any]) -> float | None:
    """Return how much moves in doubt count in action sensitivity; None where the grounding does not say.

    Examples
    --------
    >>> doubtful_weight({"weighing": {"doubtful": 0.5}}), doubtful_weight({})
    (0.5, None)
    """
    weighing = provenance.get("weighing")
    weight = weighing.get("doubtful") if isinstance(weighing, Mapping) else None
    return float(weight) if isinstance(weight, int | float) else None
