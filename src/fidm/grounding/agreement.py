"""How far reviewers agree with each other, and how often the grounder was right by their judgement.

Two reviewers are compared on segments of which both judged the same reading: whether both found it right
(agreement, and Cohen's kappa, which takes off what chance would give), and whether both ended at the same
moves. What counts is what each decided before they could see the other's decision: people may change their
minds as long as nobody else has judged the segment, and what they decide later does not enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from fidm.errors import GroundingError
from fidm.grounding.audit import AuditScore, drawn_dialogs
from fidm.grounding.decisions import Decision, Sample
from fidm.grounding.ground import Grounded
from fidm.grounding.program import write_program
from fidm.grounding.terrain import Terrain
from fidm.grounding.verdicts import ReviewedSegment, by_segment, latest_of_each, review_dialog, segment_key
from fidm.proportion import wilson

_Reading = tuple[str, int, str, tuple[str, ...]]
"""What somebody was shown: task, start, program and moves."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two reviewers agree.

    Parameters
    ----------
    one, other : str
        The reviewers.
    n : int
        Segments that both judged.
    n_same_verdict : int
        Those that both found right, or both not.
    agreement : float
        The share of those; nan where there is no segment.
    low, high : float
        Its 95 % Wilson interval; segments of a dialog go together, so it is a little too narrow.
    kappa : float
        Cohen's kappa of right or not; nan where it is undefined, because both said the same of everything.
    n_same_moves : int
        Segments for which both ended at the same moves, or both rejected them.
    same_moves : float
        The share of those.
    """

    one: str
    other: str
    n: int
    n_same_verdict: int
    agreement: float
    low: float
    high: float
    kappa: float
    n_same_moves: int
    same_moves: float


def agreements(decisions: Sequence[Decision]) -> tuple[Agreement, ...]:
    """Return how far each pair of reviewers agrees, on the segments both judged.

    Parameters
    ----------
    decisions : sequence of Decision
        Decisions, oldest first.
    """
    seen = {key: _by_reviewer(made) for key, made in by_segment(decisions).items()}
    reviewers = sorted({decision.reviewer for decision in decisions})
    found = []
    for one, other in combinations(reviewers, 2):
        pairs = [
            pair for each in seen.values() if (pair := _pair(each.get(one), each.get(other))) is not None
        ]
        if pairs:
            found.append(_compared(one, other, pairs))
    return tuple(found)


def _by_reviewer(made: Iterable[Decision]) -> dict[str, dict[_Reading, Decision]]:
    """What each reviewer decided about each reading of a segment before they could see what others had."""
    found: dict[str, dict[_Reading, Decision]] = {}
    judges: set[str] = set()
    settlers: set[str] = set()
    for decision in made:
        who, is_alone = decision.reviewer, judges <= {decision.reviewer}
        judges.add(who)
        if decision.settles:  # who settles a difference has seen what others decided
            settlers.add(who)
        elif decision.kind == "withdraw":
            if is_alone:
                found.pop(who, None)
        elif who not in settlers:
            reading = (decision.task, decision.start, decision.old.program, decision.old.actions)
            known = found.setdefault(who, {})
            if is_alone or not known:
                known[reading] = decision
    return found


def _pair(
    one: dict[_Reading, Decision] | None, other: dict[_Reading, Decision] | None
) -> tuple[Decision, Decision] | None:
    """What two reviewers decided about the first reading that both were shown."""
    if not one or not other:
        return None
    return next(((mine, other[reading]) for reading, mine in one.items() if reading in other), None)


def _compared(one: str, other: str, pairs: Sequence[tuple[Decision, Decision]]) -> Agreement:
    verdicts = [(_is_right(mine), _is_right(theirs)) for mine, theirs in pairs]
    n, same = len(pairs), sum(a == b for a, b in verdicts)
    moves = sum(_moves(mine) == _moves(theirs) for mine, theirs in pairs)
    low, high = wilson(same, n)
    return Agreement(one, other, n, same, same / n, low, high, _kappa(verdicts), moves, moves / n)


def _is_right(decision: Decision) -> bool:
    """Whether somebody found what was shown to be right."""
    return decision.new is not None and decision.new.program == decision.old.program


def _moves(decision: Decision) -> tuple[str, ...] | None:
    return None if decision.new is None else decision.new.actions


def _kappa(verdicts: Sequence[tuple[bool, bool]]) -> float:
    if len({verdict for pair in verdicts for verdict in pair}) < 2:
        return math.nan  # nothing but one verdict: chance alone would agree as well
    from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]

    return float(cohen_kappa_score([a for a, _ in verdicts], [b for _, b in verdicts]))


def draw_sample(study: str | Path, n: int, seed: int, *, reviewer: str = "") -> Sample:
    """Draw dialogs for an audit: those that ``fidm audit sample`` draws with the same seed.

    Parameters
    ----------
    study : path
        A grounded study.
    n : int
        How many dialogs; all of them if there are fewer.
    seed : int
        The same seed draws the same dialogs.
    reviewer : str
        Who draws them.
    """
    dialogs = drawn_dialogs(study, n, seed=seed)
    return Sample(reviewer=reviewer, name=f"audit-{seed}-{n}", seed=seed, n=n, dialogs=dialogs)


def audit_of(
    sample: Sample,
    grounded: Grounded,
    decisions: Sequence[Decision],
    *,
    reviewer: str,
    level: float = 0.95,
) -> AuditScore:
    """Return how many dialogs of an audit sample were grounded right, by what one reviewer found.

    Only what they decided while they judged the sample counts, since there they see neither doubts nor what
    others decided. A segment is right if it was accepted as the grounder proposed it, and wrong if it was
    edited or rejected. A dialog counts once all its segments are judged, and is right if all of them are.

    Parameters
    ----------
    sample : Sample
        The dialogs drawn.
    grounded : Grounded
        The grounding as the grounder left it, see :func:`fidm.grounding.review.read_proposed`.
    decisions : sequence of Decision
        Decisions, oldest first.
    reviewer : str
        By whose decisions.
    level : float
        The level of the intervals.
    """
    if not 0 < level < 1:
        raise GroundingError(f"level is {level}; it must be between 0 and 1.")
    wanted = set(sample.dialogs)
    known = by_segment(
        decision for decision in decisions if (decision.sample, decision.reviewer) == (sample.name, reviewer)
    )
    whole, single, n_left = [], [], 0
    for dialog in grounded.dialogs:
        if (dialog.transcript.participant, dialog.transcript.episode) not in wanted or not dialog.segments:
            continue
        proposed = review_dialog(dialog, (), grounded.terrain)
        verdicts = [
            _found_right(known.get(segment_key(dialog, one.proposed), []), one, grounded.terrain)
            for one in proposed
        ]
        judged = [verdict for verdict in verdicts if verdict is not None]
        n_left += len(verdicts) - len(judged)
        single += judged
        if len(judged) == len(verdicts):
            whole.append(all(judged))
    return AuditScore(
        level=level,
        n_dialogs=len(whole),
        n_consistent=sum(whole),
        dialogs=wilson(sum(whole), len(whole), level),
        n_segments=len(single),
        n_right=sum(single),
        segments=wilson(sum(single), len(single), level),
        n_left=n_left,
    )


def _found_right(made: Sequence[Decision], proposed: ReviewedSegment, terrain: Terrain) -> bool | None:
    """Whether a segment was found right as it was proposed; None where that was not judged."""
    latest = latest_of_each(made)
    if not latest or (latest[0].task, latest[0].start) != (terrain.task.fingerprint, proposed.start.state):
        return None
    return latest[0].new is not None and latest[0].new.program == write_program(proposed.program)


def audits(
    samples: Iterable[Sample], grounded: Grounded, decisions: Sequence[Decision]
) -> list[tuple[Sample, str, AuditScore]]:
    """Return what each reviewer found in each audit sample; a sample that was drawn twice counts once.

    Parameters
    ----------
    samples : iterable of Sample
        The samples drawn.
    grounded : Grounded
        The grounding as the grounder left it, see :func:`fidm.grounding.review.read_proposed`.
    decisions : sequence of Decision
        Decisions, oldest first.
    """
    found = []
    for sample in {one.name: one for one in samples}.values():
        judges = {decision.reviewer for decision in decisions if decision.sample == sample.name}
        for reviewer in sorted(judges):
            found.append((sample, reviewer, audit_of(sample, grounded, decisions, reviewer=reviewer)))
    return found
