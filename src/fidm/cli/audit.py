"""``fidm audit``: groundings judged by hand, what the verdicts say, and whether anybody changed them."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fidm.cli.shared import print_json
from fidm.errors import DataError, count
from fidm.present.terminal import note, page, printable, progress_bar, table_of, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.grounding.review.audit import Agreement, AuditScore
    from fidm.grounding.review.trail import Sample


def sample(
    study: Path,
    *,
    n: Annotated[int, Parameter(name=["-n", "--n"])] = 20,
    seed: int = 1,
    out: Path | None = None,
) -> None:
    """Write the sheet for a manual audit: what was said, the moves, and a column for the verdict.

    Parameters
    ----------
    study
        A grounded study.
    n
        How many dialogs to draw.
    seed
        The same seed draws the same dialogs.
    out
        The sheet; by default grounding/audit-SEED.csv in the study.
    """
    from fidm.folder import require_grounded
    from fidm.grounding.review.audit import sample_audit

    require_grounded(study)
    with progress_bar("reading"):
        path = sample_audit(study, n, seed=seed, path=out)
    console = page()
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row[:2] for row in csv.reader(file)][1:]
    drawn = len({tuple(row) for row in rows})
    held = f"{count(drawn, 'dialog')}, {count(len(rows), 'segment')}"
    console.print(f"Wrote {path}: {held}", soft_wrap=True, markup=False)
    if drawn < n:
        console.print("That is every dialog of the study.", soft_wrap=True)
    console.print(
        f"Write ok or wrong into the column verdict of every row, then: fidm audit score {study} {path}",
        soft_wrap=True,
        markup=False,
    )
    console.print("The sheet holds what participants said.", style="dim")


def score(
    study: Path,
    sheet: Path,
    *,
    level: float = 0.95,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Say how many of the judged dialogs are right, with a Wilson interval.

    Parameters
    ----------
    study
        The study the sheet was drawn from.
    sheet
        The judged sheet.
    level
        The level of the interval.
    json
        Print the result as JSON.
    """
    from fidm.folder import require_grounded
    from fidm.grounding.review.audit import score_audit

    require_grounded(study)
    with progress_bar("reading"):
        found = score_audit(study, sheet, level=level)
    if json:
        print_json(asdict(found))
        return
    console = page()
    for what, right, n, (low, high) in (
        ("dialogs ", found.n_consistent, found.n_dialogs, found.dialogs),
        ("segments", found.n_right, found.n_segments, found.segments),
    ):
        share = right / n if n else float("nan")
        interval = f"{found.level:.0%} Wilson interval {low:.1%} to {high:.1%}"
        console.print(f"{what}  {right} of {n} right, {share:.1%} ({interval})")


def verify(
    study: Path,
    *,
    expect: str | None = None,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Check that no decision of a review was changed, removed or moved.

    Exit code 0: nothing was. 1: something was. 2: the study cannot be read.

    Parameters
    ----------
    study
        A study that was reviewed.
    expect
        A head that was written down earlier; it must still be in the trail.
    json
        Print the result as JSON.
    """
    from fidm.folder import require_grounded
    from fidm.grounding.review.trail import verify_trail

    with progress_bar("reading"):
        found = verify_trail(study, expect=expect)
    if not found.n_entries:
        require_grounded(study)
    who = Counter(entry.reviewer for entry in found.entries)
    times = [entry.at for entry in found.entries]
    if json:
        report = {
            "study": str(study),
            "entries": found.n_entries,
            "head": found.head,
            "is_whole": found.is_whole,
            "problems": list(found.problems),
            "notes": list(found.notes),
            "reviewers": dict(who),
            "first": times[0] if times else None,
            "last": times[-1] if times else None,
        }
        print_json(report)
        return 0 if found.is_whole else 1
    console = page()
    if not found.n_entries and found.is_whole:
        console.print("No review decisions yet", soft_wrap=True)
        return 0
    console.print(f"{found.n_entries:,} {'entry' if found.n_entries == 1 else 'entries'}", style="bold")
    if who:
        said = ", ".join(f"{name or 'nobody'} {n:,}" for name, n in who.most_common())
        console.print(printable(f"by {said}; from {times[0]} to {times[-1]}"), soft_wrap=True, markup=False)
    console.print(f"head {found.head}", soft_wrap=True)
    note(console, *found.notes)
    if found.problems:
        warn(console, *found.problems)
        return 1
    console.print("Every entry is as it was written, in its place.", soft_wrap=True)
    note(
        console, "write the head down elsewhere, to check later that nothing before it has changed: --expect"
    )
    return 0


def agreement(study: Path, *, json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Say how far reviewers agree, and what audits on the review page found.

    Exit code 2: there are no decisions yet.

    Parameters
    ----------
    study
        A study that was reviewed.
    json
        Print the result as JSON.
    """
    from fidm.folder import require_grounded
    from fidm.grounding.review.apply import read_proposed
    from fidm.grounding.review.audit import agreements, audits
    from fidm.grounding.review.trail import Trail
    from fidm.record import plain

    if not study.is_dir():
        raise DataError("is not a folder.", source=str(study))
    require_grounded(study)
    with progress_bar("reading"):
        trail = Trail(study)
        if not trail.decisions:
            raise DataError(f"has no review decisions yet. Make some: fidm review {study}", source=str(study))
        pairs = agreements(trail.decisions)
        found = audits(trail.samples, read_proposed(study), trail.decisions) if trail.samples else []
    if json:
        report = {
            "study": str(study),
            "decisions": len(trail.decisions),
            "pairs": [plain(asdict(pair)) for pair in pairs],
            "audits": [
                {"name": sample.name, "reviewer": reviewer, **asdict(score)}
                for sample, reviewer, score in found
            ],
        }
        print_json(report)
        return 0
    console = page()
    if pairs:
        header = ("reviewers", "both judged", "same verdict", "95% interval", "kappa", "same moves")
        console.print(table_of(header, [_row(pair) for pair in pairs]))
        note(
            console, "right or not, of segments of which both judged the same reading; kappa takes off chance"
        )
    else:
        console.print("No two reviewers have judged the same segment yet.", soft_wrap=True)
    for sample, reviewer, score in found:
        _show_audit(console, sample, reviewer, score)
    return 0


def _row(pair: Agreement) -> tuple[str, ...]:
    kappa = f"{pair.kappa:.2f}" if math.isfinite(pair.kappa) else "–"
    return (
        f"{pair.one}, {pair.other}", f"{pair.n:,}", f"{pair.agreement:.1%}",
        f"{pair.low:.1%} to {pair.high:.1%}", kappa, f"{pair.same_moves:.1%}",
    )  # fmt: skip


def _show_audit(console: Console, sample: Sample, reviewer: str, score: AuditScore) -> None:
    low, high = score.dialogs
    share = f", {score.n_consistent / score.n_dialogs:.1%}" if score.n_dialogs else ""
    said = (
        f"{sample.name}, {reviewer}: {score.n_consistent} of {count(score.n_dialogs, 'dialog')} right{share} "
        f"({score.level:.0%} Wilson interval {low:.1%} to {high:.1%})"
    )
    console.print(printable(said), soft_wrap=True, markup=False)
    if score.n_left:
        note(console, f"{count(score.n_left, 'segment')} of this sample not judged yet")
