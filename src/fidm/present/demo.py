"""What ``fidm demo`` shows of the study it made: words and moves, profiles, evidence, detours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.cohort import Cohort
from fidm.evidence.evidence import find_evidence
from fidm.evidence.localization import Localization
from fidm.experiments.paper import LOCALIZATION
from fidm.folder import StudyFolder
from fidm.grounding.store import read_grounding
from fidm.io.study import read_cohort
from fidm.present.evidence import worse_actions
from fidm.present.profiles import show_summary
from fidm.present.terminal import note, table_of
from fidm.simulate.twin import TRUTH

ANCHORS = {"route_divergence": "turned away from the next goal", "bypass": "passed a target by"}


def show_demo(study: Path, console: Console) -> None:
    """Print what became of words, what people are like, and what one of them did.

    Parameters
    ----------
    study : Path
        A simulated study that has been grounded and fitted.
    console : Console
        Where to.
    """
    opened = StudyFolder.open(study)
    _show_words(opened, console)
    fit, _ = opened.fit()
    profile = fit.profile(opened.cohort)
    console.print(f"\n[bold]What these {len(opened.cohort)} people are like[/], from what they did and said")
    show_summary(profile, console)
    found = find_evidence(fit, opened.cohort, profile=profile)
    whom = found.most_astray()
    if whom is not None:
        console.print(f"\n[bold]Evidence[/]: what {whom} did that was not best, the least expected first")
        rows = [
            [str(row["step"]), str(row["segment"]), row["action"], row["best"], f"{row['probability']:.1%}"]
            for row in worse_actions(found, 4, participant=whom).iter_rows(named=True)
        ]
        console.print(table_of(["step", "segment", "did", "best", "probability"], rows, left=4))
    astray = opened.find_localization(fit)
    if astray is not None:
        _show_localization(astray, console)


def _show_words(opened: StudyFolder, console: Console) -> None:
    """What became of the dialogs: how many segments are right, and what one of them looks like."""
    grounded = read_grounding(opened.path, opened.tasks[0])
    formats = len({dialog.transcript.format for dialog in grounded.dialogs})
    console.print(
        f"\n[bold]From words to moves[/]: {len(grounded.dialogs)} dialogs in {formats} formats, "
        f"{grounded.segments.height:,} segments, "
        f"{grounded.shares().get('needs_review', 0.0):.1%} marked for review",
        soft_wrap=True,
    )
    right, of = _right(read_cohort(opened.path / TRUTH), grounded.cohort)
    console.print(
        f"{right / of:.1%} of segments led through exactly the actions that were meant; this package put "
        "them into words, so that says nothing about real speech",
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("one of the simulated people said", overflow="fold", max_width=44)
    table.add_column("program", overflow="fold")
    table.add_column("actions", justify="right")
    dialog = grounded.dialogs[0]
    counts = grounded.segments.filter(grounded.segments["participant"] == dialog.transcript.participant)
    for one, n in list(zip(dialog.segments, counts["n_actions"].to_list(), strict=True))[:4]:
        program = "; ".join(str(step) for step in one.proposal.program)
        table.add_row(Text(one.segment.text.replace("\n", " / ")), Text(program), str(n))
    console.print(table)


def _right(truth: Cohort, found: Cohort) -> tuple[int, int]:
    """How many segments led through exactly the true actions, of how many."""
    same = found.select(truth.ids.to_list())
    actions = []
    for cohort in (truth, same):
        own = []
        for e in range(cohort.n_episodes):
            first, last = cohort.step_offsets[e], cohort.step_offsets[e + 1]
            owner = cohort.segment[first:last] if cohort.segment is not None else np.zeros(0)
            n = int(cohort.segment_offsets[e + 1] - cohort.segment_offsets[e])
            own.append([tuple(cohort.action[first:last][owner == i].tolist()) for i in range(n)])
        actions.append(own)
    right = sum(a == b for one, two in zip(*actions, strict=True) for a, b in zip(one, two, strict=False))
    return right, truth.n_segments


def _show_localization(astray: Localization, console: Console) -> None:
    """How well unexpected actions point at detours and shelves passed by."""
    console.print("[bold]Are unexpected actions where people went astray?[/] Two anchors from the map alone")
    rows = []
    for anchor, words in ANCHORS.items():
        row, paper = astray.row(anchor), LOCALIZATION[anchor]
        interval = f"{row['auc']:.3f}"
        if row["auc_low"] is not None:
            interval += f" [{row['auc_low']:.3f}, {row['auc_high']:.3f}]"
        rows.append(
            [words, interval, f"{paper['auc']:.3f}", f"{row['enrichment']:.2f}", f"{paper['enrichment']:.2f}"]
        )
    console.print(table_of(["", "AUC within a person", "paper", "enrichment", "paper"], rows))
    note(
        console,
        "The anchors are found from the same distances as the values, so part of this is circular; and these "
        "people were made to resemble the paper's.",
    )
