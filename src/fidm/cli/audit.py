"""``fidm audit``: a random sample of groundings for a person to judge, and what the verdicts say."""

from __future__ import annotations

import csv
import json as jsons
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fidm.cli.console import count, page
from fidm.grounding.audit import sample_audit, score_audit


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
    found = score_audit(study, sheet, level=level)
    if json:
        print(jsons.dumps(asdict(found), indent=2))
        return
    console = page()
    for what, right, n, (low, high) in (
        ("dialogs ", found.n_consistent, found.n_dialogs, found.dialogs),
        ("segments", found.n_right, found.n_segments, found.segments),
    ):
        share = right / n if n else float("nan")
        interval = f"{found.level:.0%} Wilson interval {low:.1%} to {high:.1%}"
        console.print(f"{what}  {right} of {n} right, {share:.1%} ({interval})")
