"""Defaults that functions and options of the command line share, and nothing that takes time to import."""

from __future__ import annotations

MAX_PEOPLE = 20_000
"""What people share is learned from at most so many of them unless told otherwise."""

LABEL, NORMAL = "diagnosis", "normal"
"""The column with people's status and the status of healthy people, unless others are named."""

SCORE = "score_total"
"""The column with the total score, unless another is named."""

FOLDS, REPEATS = 5, 5
"""Into how many parts people are cut, and how often that is repeated."""

PERMUTATIONS = 100
"""How often labels are scrambled."""

BOOTSTRAP, LOCALIZE_BOOTSTRAP = 1_000, 2_000
"""How often participants are resampled for intervals of reliability, and of localisation."""
