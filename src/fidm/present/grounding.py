"""What ``fidm ground`` shows in the terminal: how many segments can be used, and why others cannot."""

from __future__ import annotations

import polars as pl
from rich.console import Console
from rich.text import Text

from fidm.errors import count
from fidm.grounding.ground import NOTHING_SAID
from fidm.io.columns import say_reasons
from fidm.line import GroundedStudy
from fidm.present.terminal import note, table_of, warn

STATUSES = {
    "confident": "used as they are",
    "needs_review": "marked for review",
    "no_route": "say nothing about the way",
    "reviewed": "read by hand",
    "rejected": "rejected by hand and left out",
}
"""What becomes of segments; the last two are shown only where there are some."""


def show_grounded(found: GroundedStudy, console: Console) -> None:
    """Print what became of the dialogs, and what was written.

    Parameters
    ----------
    found : GroundedStudy
        What :func:`fidm.line.ground_study` gave.
    console : Console
        Where to.
    """
    grounded, table = found.grounded, found.grounded.segments
    console.print(
        f"[bold]{count(len(grounded.dialogs), 'dialog')}[/], {count(table.height, 'segment')}, "
        f"{count(grounded.cohort.n_steps, 'action')}, read by {found.by}",
        soft_wrap=True,
    )
    if found.reasons:
        told = f"{say_reasons(found.reasons)}; their dialogs are read, and reach no fit"
        console.print(Text(told), style="dim", soft_wrap=True)
    if grounded.provenance.get("allow_remote"):
        warn(console, "A server on another machine was allowed.")
    rows = []
    for status, words in STATUSES.items():
        n = int((table["status"] == status).sum())
        if n or status not in ("reviewed", "rejected"):
            rows.append([words, f"{n:,}", f"{n / max(1, table.height):.1%}"])
    console.print(table_of(["segments", "number", "share"], rows))
    _show_doubts(found, console)
    if found.by != "rules":
        warn(
            console,
            f"How often {found.by} is right on your dialogs is not known yet: fidm audit sample STUDY.",
        )
    if found.problems.height:
        left_out = count(found.problems["table"].n_unique(), "file")
        warn(console, f"{left_out} left out; see grounding/problems.csv")
    silent = grounded.checks.filter(pl.col("problem") == NOTHING_SAID)["participant"].n_unique()
    faulty = grounded.checks.filter(pl.col("problem") != NOTHING_SAID)["participant"].n_unique()
    if silent:
        warn(console, f"{count(silent, 'participant')} said nothing about the way that could be read")
    traces = len(grounded.cohort)
    console.print(f"structural checks: {traces - faulty:,} of {count(traces, 'trace')} sound")
    if found.applied is not None:
        console.print(Text(f"decisions of reviewers kept: {found.applied}"), soft_wrap=True)
        if found.applied.n_stale + found.applied.n_lost + found.applied.n_differ:
            warn(console, "some decisions do not hold any more, or differ; see fidm review")
    console.print(f"\nWrote the tables and grounding/ to {found.study}", soft_wrap=True, markup=False)
    if found.not_read:
        kinds = ", ".join(sorted({path.suffix or "no suffix" for path in found.not_read}))
        files = count(len(found.not_read), "file")
        warn(console, f"{files} beside the dialogs not read: no known format has {kinds}")


def _show_doubts(found: GroundedStudy, console: Console) -> None:
    """Why segments need review, how much was inferred, and how far rules and model agreed."""
    doubts = found.doubts()
    if doubts.height:
        listed = ", ".join(f"{name} {n:,}" for name, n in doubts.head(6).iter_rows())
        note(console, f"why review: {listed}")
    share = found.grounded.shares()["inferred_moves"]
    if share:
        note(
            console,
            f"{share:.0%} of moves are inferred: the words name a place and the planner found the way",
        )
    agreement = found.agreement
    if agreement is None:
        return
    note(
        console,
        f"the model was asked where rules doubted; they agreed in {agreement['agreed']:,} of "
        f"{agreement['asked']:,} segments",
    )
    if agreement["checked"]:
        note(
            console,
            f"of {agreement['checked']:,} segments in which rules were sure, the model confirmed "
            f"{agreement['confirmed']:,}",
        )
