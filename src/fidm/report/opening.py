"""Opening a study for its report: its people, what they share, and the evidence with what was said."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from fidm.cohort import Cohort
from fidm.evidence.evidence import find_evidence
from fidm.grounding.review import bring_up_to_date
from fidm.grounding.store import FOLDER, has_grounding
from fidm.io.study import Study
from fidm.report.known import Key, Known
from fidm.report.naming import draw_names, rename, renamed
from fidm.report.parts import Progress
from fidm.report.reviews import segment_reviews
from fidm.study.behind import Behind, places_behind
from fidm.study.folders import SIMULATION
from fidm.study.opening import read_people, study_fit, study_tasks


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A study with everything computed that its sections and its people need.

    Parameters
    ----------
    folder : Path
        Where the study is.
    known : Known
        What is known of its people.
    excluded : DataFrame
        ``participant`` and ``reason`` of whoever takes no part.
    source : str
        Where what people share comes from, in words.
    provenance : mapping
        How the study was grounded; empty where it was not.
    grounded : DataFrame or None
        Every grounded segment of those who take part.
    notes : tuple of str
        What a reader must not miss.
    names : mapping of str to str
        What people are called instead of their ids, in a de-identified report.
    secret : bytes
        What the order of reviewers is drawn with in a de-identified report; never shown.
    """

    folder: Path
    known: Known
    excluded: pl.DataFrame
    source: str
    provenance: Mapping[str, Any]
    grounded: pl.DataFrame | None
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: bytes = field(default=b"", repr=False)

    @property
    def is_simulated(self) -> bool:
        """Whether the people are simulated."""
        return (self.folder / SIMULATION).exists()


def open_for_report(
    folder: Path,
    *,
    task: Sequence[str] = (),
    use: Path | None = None,
    label: str | None = None,
    skip_bad: bool = False,
    deidentify: bool = False,
    key: Path | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Opened:
    """Read a study, find or learn what its people share, and find everybody's evidence.

    Parameters
    ----------
    folder, task, use, label, skip_bad, deidentify, key, workers, on_progress
        As in :func:`fidm.report.report.build_report`.
    """
    say = on_progress or (lambda doing, done, of: None)
    say("reading", 0, 1)
    told = bring_up_to_date(folder, on_progress=on_progress)
    study = Study(folder)
    tasks = study_tasks(study, task)
    cohort = read_people(study, tasks, skip_bad=skip_bad)
    excluded = study.excluded()
    names: dict[str, str] = {}
    if deidentify:
        everybody = [*cohort.ids, *excluded["participant"], *cohort.problems["participant"].drop_nulls()]
        names = draw_names(everybody, key=key)
        cohort, excluded = rename(cohort, names), renamed(excluded, names)
    fit, source = study_fit(folder, tasks, cohort, use=use, name_file=False, one_by_one=True)
    profile = fit.profile(cohort, workers=workers, on_progress=on_progress)
    found = find_evidence(fit, cohort, profile=profile, workers=workers, on_progress=on_progress)
    behind = places_behind(folder, found, names=names or None)
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
        label if label in cohort.participants.columns else None,
        _languages(folder, names),
        deidentify,
        reviews,
    )
    grounded = _own(behind, cohort) if provenance else None
    notes = (*([told] if told else []), *behind.warnings)
    return Opened(folder, known, excluded, source, provenance, grounded, notes, names, secret)


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


def _own(behind: Behind, cohort: Cohort) -> pl.DataFrame | None:
    """The grounded segments of those who take part."""
    if behind.words is None:
        return None
    return behind.words.segments.join(cohort.participants, on="participant", how="semi")


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
