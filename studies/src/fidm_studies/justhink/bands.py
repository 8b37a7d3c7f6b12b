"""The figures that are to come out of the JUSThink corpus.

Counts are known beforehand (how many events the logs have, and how many a replay can make sense of). The AUC
of unexpectedness was not known: its band is our own expectation. It says only that whoever removes tracks
again should remove surprising ones more often than others, and that no such relation in people is near
perfect. We wrote it down first; nothing but our word shows that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fidm_studies.analysis import Expectation

KNOWN, PUBLISHED, SUM, OURS = "known beforehand", "published", "arithmetic", "our expectation"

BANDS: tuple[tuple[str, str, float, float, str, str], ...] = (
    ("n_edits", "logged changes of the board", 3816, 3816, KNOWN, ""),
    ("n_illegal", "changes that are not possible on the replayed board", 34, 34, KNOWN, ""),
    ("n_submissions", "submissions", 271, 271, KNOWN, ""),
    ("n_costs_match", "submitted costs that are those of the replayed board", 255, 255, KNOWN, ""),
    ("n_children", "children", 78, 78, PUBLISHED, ""),
    ("n_speaking", "children with speech", 20, 20, PUBLISHED, ""),
    ("n_sets", "sets of tracks that were solved", 2**20, 2**20, SUM, ""),
    ("least_cost", "least cost of joining all mines (francs)", 22, 22, PUBLISHED, ""),
    ("best_plan_cost", "what the best plan submits, from an empty board (francs)", 22, 22, PUBLISHED, ""),
    ("solver_difference", "values by sweeps against those of the general solver", 0, 1e-9, SUM,
     "on some of the tracks"),
    ("clock_lag_s", "lag of the robot's transcribed lines behind the log (s)", -1.5, 1.5, PUBLISHED,
     "median of the team that is farthest off"),
    ("auc_unexpectedness", "AUC of unexpectedness for tracks that are removed later", 0.55, 0.95, OURS,
     "direction expected, size unknown"),
)  # fmt: skip
"""Key in the findings' numbers, words, lowest and highest, where from, remark."""


def expectations(numbers: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """Return what was to come out beside what did."""
    return tuple(
        Expectation(what, float(numbers.get(key, math.nan)), low, high, source, note)
        for key, what, low, high, source, note in BANDS
    )
