"""Structural checks of every grounded trace, as in the paper, done anew and not by the code that made it.

A trace must start at the entrance, follow the rules of its task step by step, buy and pay only where that
can be done, have as many moves as its segments say, and its segments must follow each other in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from fidm.cohort import PROBLEM_SCHEMA, Cohort
from fidm.grounding.dialog import GroundedDialog
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet, follow, trace_problems

NOTHING_SAID = "Nothing was grounded."
"""What is said of a dialog without a single action."""

CHECKS = (
    "starts at the entrance",
    "legal chain",
    "events at the right shelf",
    "counts agree",
    "times monotone",
)
"""What is checked, in words."""


def trace_checks(task: TaskModel, cohort: Cohort, dialogs: Sequence[GroundedDialog]) -> pl.DataFrame:
    """Return what is wrong with any trace, as a table of problems; empty where all are sound."""
    tasks = TaskSet.of(task)
    followed = follow(tasks, cohort)
    rows: list[tuple[str, int | None, str, str, str]] = []
    owner = cohort.ids.gather(cohort.episode_owner()).to_list()
    moves = {i for i, name in enumerate(task.actions) if name in ("N", "S", "E", "W")}
    for e, dialog in enumerate(dialogs):
        first, last = int(cohort.step_offsets[e]), int(cohort.step_offsets[e + 1])
        if first == last:
            rows.append(("steps", None, owner[e], NOTHING_SAID, "Does the participant say where to go?"))
        elif _cell(task, int(cohort.state[first])) != _cell(task, task.start):
            rows.append(("steps", 1, owner[e], "The trace does not start at the entrance.", ""))
        low, high = int(cohort.segment_offsets[e]), int(cohort.segment_offsets[e + 1])
        if cohort.segment is not None:
            moved = np.isin(cohort.action[first:last], list(moves))
            counted = np.bincount(
                cohort.segment[first:last][moved & (cohort.segment[first:last] >= 0)], minlength=high - low
            )
            said = cohort.segments["n_moves"][low:high].to_numpy()
            if not np.array_equal(counted, said):
                rows.append(
                    ("segments", None, owner[e], "Segments say another number of moves than there are.", "")
                )
        ends = [
            (one.effort.start_s, one.effort.end_s)
            for one in dialog.segments
            if one.effort.start_s is not None
        ]
        for (_, end), (start, _) in pairwise(ends):
            if end is not None and start is not None and start < end - 1e-6:
                rows.append(("segments", None, owner[e], "Segments overlap in time, or are out of order.",
                             "Are the times of this file in order?"))  # fmt: skip
                break
    found = pl.DataFrame(rows, schema=PROBLEM_SCHEMA, orient="row")
    return pl.concat([found, trace_problems(tasks, cohort, followed)])


def _cell(task: TaskModel, state: int) -> int:
    """Where a state is, whatever phase was opened in it before the first step."""
    return state if task.grid is None else state % task.grid.grid.n_cells
