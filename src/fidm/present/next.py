"""What to do next with a study: one rule for every verb, from what lies in the folder."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from rich.console import Console

from fidm.folder import RESULTS, is_older, lacks_grounding
from fidm.grounding.store import FOLDER, has_grounding
from fidm.present.terminal import state
from fidm.types import SkipBad

MANY_DOUBTS = 0.2
"""From this share of segments that need review on, reviewing comes before fitting."""

REPORT = "report.html"


def say_next(console: Console, study: Path, *, after: str, skip: SkipBad = False) -> None:
    """Print what to do next, as the last line of a verb that worked on a study."""
    state(console, next_step(study, after=after, skip=skip))


def next_step(study: Path, *, after: str, skip: SkipBad = False) -> str:
    """Return the next step with a study, after a verb has done its work.

    ``skip`` is what that verb left out where data have problems; the next one must leave it out, too.
    """
    again = "" if skip is False else " --skip-bad" if skip is True else f" --skip {skip}"
    if lacks_grounding(study):
        return f"Next: fidm ground {study}"
    doubts = _doubts(study) if after in ("ground", "run", "report") else ""
    if doubts:
        return f"{doubts}Next: fidm review {study}"
    fit, report = study / "fit.json", study / REPORT
    if after != "fit" and (not fit.is_file() or is_older(fit, study)):
        return f"Next: fidm fit {study}{again}"
    if not _is_newer(study / RESULTS / "evidence.json", fit):
        return f"Next: fidm evidence {study}{again}"
    results = [path for path in (study / RESULTS).glob("*.json") if path.is_file()]
    if not all(_is_newer(report, path) for path in (fit, *results)):
        return f"Next: fidm report {study}{again}"
    return f"Next: open {report.resolve().as_uri()}"


def _doubts(study: Path) -> str:
    """How much awaits review, where that is much; empty otherwise."""
    if not has_grounding(study):
        return ""
    columns = ["status", "n_moves", "n_inferred"]
    table = pl.read_parquet(study / FOLDER / "segments.parquet", columns=columns, glob=False)
    share = int((table["status"] == "needs_review").sum()) / max(1, table.height)
    if share < MANY_DOUBTS:
        return ""
    moves = int(table["n_moves"].sum())
    inferred = int(table["n_inferred"].sum()) / moves if moves else 0.0
    also = f" and {inferred:.0%} of moves are inferred" if inferred >= MANY_DOUBTS else ""
    return f"{share:.0%} of segments need review{also}: η will rest on few moves. "


def _is_newer(path: Path, than: Path) -> bool:
    """Whether a file is there and not older than another, where that one is there."""
    return path.is_file() and (not than.is_file() or path.stat().st_mtime + 1 >= than.stat().st_mtime)
