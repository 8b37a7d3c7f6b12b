"""Who decided what about a segment on the review page, when and why, as a report shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fidm.grounding.decisions import Decision, Trail
from fidm.grounding.review import read_proposed, review_all
from fidm.tasks.model import TaskModel

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

    Only decisions about words that are still the same count, and none that was withdrawn.

    Parameters
    ----------
    folder : Path
        The study.
    tasks : sequence of TaskModel
        Its tasks.
    fingerprint : object
        The fingerprint of the task it was grounded on, as its grounding says.
    names : mapping of str to str, optional
        What people are called in a de-identified report: reviewers are numbered then, and neither comments
        nor times are told.
    secret : bytes
        What the numbers of reviewers are drawn with, see :func:`reviewer_names`.
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

    Parameters
    ----------
    reviewers : sequence of str
        Who they are.
    hide : bool
        Whether they are numbered instead.
    secret : bytes
        Drawn anew for each report and kept nowhere: reviewers are numbered in an order that depends on it, so
        that it is neither that of the alphabet nor one that anybody who knows their names could find again.
    """
    known = sorted(dict.fromkeys(reviewers))
    if hide:
        known.sort(key=lambda name: hashlib.blake2b(name.encode("utf-8", "replace"), key=secret).digest())
    return {name: f"reviewer {i}" if hide else name for i, name in enumerate(known, start=1)}
