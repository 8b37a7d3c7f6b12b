"""The one place where results become words: numbers, tables, sentences, and pages of the terminal."""

from __future__ import annotations

from collections.abc import Mapping

NOT_A_DIAGNOSIS = "Research use only, not a diagnosis."

MODELS: Mapping[str, str] = {
    "softmax": "softmax",
    "lapse": "softmax with lapses",
    "stickiness": "repeating the last action",
    "no_way_back": "not stepping back",
    "stickiness_both": "repeating and stepping back",
    "discounting": "own discount γ",
    "depth": "planning few steps ahead",
    "depth_nearest": "few steps, then the nearest goal",
    "nearest_goal": "the nearest goal alone",
    "chosen_goal": "one goal at a time",
    "random": "random choice",
}
"""What each account of choice is called in sentences."""
