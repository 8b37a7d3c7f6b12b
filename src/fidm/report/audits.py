"""What people who looked at a grounding found: judged audit sheets, and decisions of the review page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fidm.errors import FidmError, count
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import Agreement, AuditScore, agreements, audits, score_audit
from fidm.grounding.review.trail import Trail
from fidm.grounding.store import FOLDER
from fidm.present.numbers import PERCENT
from fidm.report.opening import Opened, reviewer_names
from fidm.report.parts import column, table, text_column, with_interval

NOBODY = (
    "Nobody has audited this grounding. Draw a random sample with fidm audit sample, or judge one in "
    "fidm review, before you rely on it."
)


def audit_tables(opened: Opened) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tables of all audits and of how reviewers agree, and what there is to say."""
    scored, said = _sheets(opened)
    rows = [_score_row(name, one) for name, one in scored]
    tables, more = _decisions(opened, rows)
    said += more
    if rows:
        tables.insert(
            0,
            table(
                "audits",
                "Audits: random dialogs, judged by a person",
                [
                    text_column("audit"),
                    column("n_dialogs", "dialogs"),
                    *with_interval(
                        "consistent", "without a wrong segment", low="low", high="high", unit=PERCENT
                    ),
                    column("n_segments", "segments"),
                    *with_interval("right", unit=PERCENT),
                ],
                rows,
                note="95 % intervals (Wilson). Segments of a dialog go together, so theirs are a little too "
                "narrow. The paper judged 20 dialogs and found 19 consistent.",
            ),
        )
    elif not tables and not said:
        said.append(NOBODY)
    return tables, said


def _sheets(opened: Opened) -> tuple[list[tuple[str, AuditScore]], list[str]]:
    """The scores of the study's audit sheets, and what is to be said of those that have none."""
    scored, said = [], []
    for i, path in enumerate(sorted((opened.folder / FOLDER).glob("audit-*.csv")), start=1):
        name = f"sheet {i}" if opened.known.is_deidentified else path.name
        try:
            scored.append((name, score_audit(opened.folder, path)))
        except FidmError as error:
            n = len(error.problems)
            why = f"{count(n, 'row')} without a verdict that can be used" if n else "it cannot be read"
            said.append(f"The audit {name} is not in the table: {why}.")
    return scored, said


def _score_row(name: str, one: AuditScore) -> tuple[Any, ...]:
    return (
        name,
        one.n_dialogs,
        one.n_consistent / one.n_dialogs if one.n_dialogs else None,
        *one.dialogs,
        one.n_segments,
        one.n_right / one.n_segments if one.n_segments else None,
        *one.segments,
    )


def _decisions(opened: Opened, rows: list[tuple[Any, ...]]) -> tuple[list[dict[str, Any]], list[str]]:
    """How reviewers agree, and the audits they judged on the review page, which are added to the rows."""
    trail = Trail(opened.folder)
    decisions = trail.decisions
    if not decisions:
        return [], []
    hide = opened.known.is_deidentified
    names = reviewer_names([one.reviewer for one in decisions], hide=hide, secret=opened.secret)
    said = [
        f"{count(len(decisions), 'decision')} by {count(len(names), 'person', 'people')} "
        f"({', '.join(names.values())}) on the review page are taken up in the tables of this report."
    ]
    task = next(
        (one for one in opened.known.tasks if one.fingerprint == opened.provenance.get("task_fingerprint")),
        None,
    )
    if trail.samples and task is not None:
        proposed = read_proposed(opened.folder, task)
        number = {name: i for i, name in enumerate(names)}  # not in the order of names that are hidden
        judged = audits(trail.samples, proposed, decisions)
        for sample, reviewer, score in sorted(judged, key=lambda one: (one[0].number, number[one[1]])):
            rows.append(_score_row(f"{sample.name}, {names[reviewer]}", score))
            if score.n_left:
                left = f"{count(score.n_left, 'segment')} of the sample {sample.name}"
                said.append(f"{names[reviewer]} has not judged {left} yet; dialogs count once judged whole.")
    pairs = agreements(decisions)
    if not pairs:
        return [], said
    return [_agreement_table(pairs, names)], said


def _agreement_table(pairs: Sequence[Agreement], names: Mapping[str, str]) -> dict[str, Any]:
    return table(
        "agreement",
        "How far reviewers agree",
        [
            text_column("one"),
            text_column("other"),
            column("n", "segments both judged"),
            *with_interval("agreement", "same verdict", low="low", high="high", unit=PERCENT),
            column("kappa", "Cohen's κ"),
            column("same_moves", "same moves", unit=PERCENT),
        ],
        _agreement_rows(pairs, names),
        note="95 % intervals (Wilson). Kappa is undefined where both said the same of everything.",
    )


def _agreement_rows(pairs: Sequence[Agreement], names: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """A row per pair, in the order of what reviewers are called here, which may be numbers."""
    place = {name: i for i, name in enumerate(names)}
    rows = []
    for one in pairs:
        first, second = sorted((one.one, one.other), key=place.__getitem__)
        shown = (names[first], names[second])
        numbers = (one.n, one.agreement, one.low, one.high, one.kappa, one.same_moves)
        rows.append(((place[first], place[second]), (*shown, *numbers)))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]
