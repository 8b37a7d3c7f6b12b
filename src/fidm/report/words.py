"""What codes and names of the package are called on a report's pages."""

from __future__ import annotations

from collections.abc import Mapping

from fidm.fit.profile import SENSITIVITY
from fidm.grounding.meanings import doubt_in_words

NOT_A_DIAGNOSIS = "Research use only, not a diagnosis."

PARAMETERS: Mapping[str, str] = {
    SENSITIVITY: "action sensitivity η",
    "duration": "speech duration θ",
    "characters": "characters spoken θ",
    "turns": "dialog turns θ",
    "pause": "pause length θ",
    "pause_presence": "pause presence θ",
}
"""A person's parameters in words."""

CHANNELS: Mapping[str, tuple[str, str]] = {
    "duration": ("speech duration", "s"),
    "characters": ("characters spoken", "characters"),
    "turns": ("dialog turns", "turns"),
    "pause": ("pause length", "s"),
    "pause_presence": ("pause presence", ""),
}
"""The effort channels in words, and what they are counted in."""

STATUSES: Mapping[str, str] = {
    "low_information": "The data narrow this down little.",
    "few_observations": "It rests on few observations.",
    "at_zero": "The choices are together no better than chance.",
    "at_edge": "All observations are at the edge of what is possible, so it has no end on that side.",
    "no_maximum": "Every choice was a best action, so there is only a lower bound.",
    "no_observation": "There is nothing to estimate it from.",
}
"""What is to be said against an estimate."""

FLAGS: Mapping[str, str] = {
    "low_information": "little information",
    "few_observations": "few observations",
    "at_zero": "no better than chance",
    "at_edge": "at the edge",
    "no_maximum": "lower bound only",
    "no_observation": "no observation",
}
"""The same in two or three words."""

GROUNDED: Mapping[str, str] = {
    "confident": "confident",
    "needs_review": "needs review",
    "no_route": "nothing about the way",
    "reviewed": "reviewed by a person",
    "rejected": "rejected by a person",
}
"""What became of a segment."""

COLUMNS: Mapping[str, str] = {
    "age_years": "age (years)",
    "education_years": "education (years)",
    "score_total": "total score",
}
"""What usual columns of the table of participants are called."""

ROLES: Mapping[str, str] = {"participant": "participant", "assessor": "assessor"}


def parameter_words(name: str) -> str:
    """Return what a parameter is called.

    Examples
    --------
    >>> parameter_words("duration"), parameter_words("gaze_shifts")
    ('speech duration θ', 'gaze shifts θ')
    """
    return PARAMETERS.get(name, f"{name.replace('_', ' ')} θ")


def channel_words(name: str, column: str = "") -> tuple[str, str]:
    """Return what an effort channel is called, and its unit; "" where it has none."""
    if name in CHANNELS:
        return CHANNELS[name]
    return name.replace("_", " "), "s" if column.endswith("_s") else ""


def doubt_words(codes: str | None) -> list[str]:
    """Return a segment's doubts in words; a code nobody knows is shown as it is."""
    return [doubt_in_words(code) for code in (codes or "").split()]


def column_words(name: str) -> str:
    """Return what a column of the table of participants is called."""
    return COLUMNS.get(name, name.replace("_", " "))


def count(n: int, thing: str, things: str = "") -> str:
    """Return how many there are, in words.

    Examples
    --------
    >>> count(1, "person", "people"), count(1200, "step")
    ('1 person', '1,200 steps')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"
