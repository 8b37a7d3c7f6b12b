"""What codes and names of the package are called on a report's pages."""

from __future__ import annotations

from collections.abc import Mapping

from fidm.fit.profile import SENSITIVITY
from fidm.grounding.replay import MEANING

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

DOUBTS: Mapping[str, str] = {
    **{str(code): said for code, said in MEANING.items()},
    "ambiguous_place": "a name that several places have",
    "bought_elsewhere": "something is taken that the place just named does not have",
    "cut_off": "the model's answer was longer than it may be",
    "disagree": "two readings, or samples of the model, disagree",
    "full": "as many instructions as fit, so that some may be missing",
    "maybe_repair": "words that may correct what was said before",
    "missed": "an empty answer, though the words name a place or something to do",
    "mixed_frames": "left and right of the figure and of the map are mixed",
    "moved_since_review": "an earlier segment was corrected, so that this one starts elsewhere than reviewed",
    "no_answer": "nothing usable came back from the model",
    "not_in_reach": "something is taken that is not in reach",
    "place_unused": "a place is named, and nothing is done with it",
    "prompt_cut": "the model's server seems to have read only a part of what was sent",
    "repaired": "the model's first answer did not fit the map; its second does",
    "reviewers_differ": "reviewers differ",
    "said_twice": "the same is said twice, and may be meant once",
    "set_aside": "words that are taken back or set aside",
    "too_long": "too long to be read as a whole",
    "unknown_words": "words that are not known",
    "unquoted": "an instruction whose words nobody said",
    "unread_words": "words that were not read",
    "unresolved_repair": "something is corrected, and it is not clear what",
    "unsure": "the model's answer has a low probability",
    "vague": "vague words about where or how far",
    "what_to_buy": "something is taken, and it is not said what",
    "where_to": "a movement without a direction",
}
"""Why a person should look at a segment."""

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
    return [DOUBTS.get(code, code.replace("_", " ")) for code in (codes or "").split()]


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
