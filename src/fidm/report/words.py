"""What codes and names of the package are called on a report's pages."""

from __future__ import annotations

from collections.abc import Mapping

from fidm.channels import channel_words, parameter_words
from fidm.errors import count
from fidm.fit.profile import SENSITIVITY
from fidm.grounding.review.verdicts import doubt_in_words

__all__ = [
    "COLUMNS",
    "FLAGS",
    "GROUNDED",
    "NOT_A_DIAGNOSIS",
    "STATUSES",
    "against",
    "channel_words",
    "column_words",
    "count",
    "doubt_words",
    "parameter_words",
    "place_words",
    "rests_on",
]

NOT_A_DIAGNOSIS = "Research use only, not a diagnosis."

STATUSES: Mapping[str, str] = {
    "low_information": "The data narrow this down little.",
    "few_observations": "It rests on few observations.",
    "at_zero": "The choices are together no better than chance.",
    "at_edge": "All observations are at the edge of what is possible, so the data give no end on that side.",
    "no_maximum": "Every choice was a best action, so the data give only a lower bound.",
    "no_observation": "There is nothing to estimate it from.",
}
"""What is to be said against an estimate."""

FROM_OTHERS: Mapping[str, str] = {
    "at_edge": " That end comes from what is known of the other people.",
    "no_maximum": " The upper end comes from what is known of the other people.",
}
"""What is added where an estimate leans on other people (empirical Bayes)."""

FLAGS: Mapping[str, str] = {
    "low_information": "little information",
    "few_observations": "few observations",
    "at_zero": "no better than chance",
    "at_edge": "at the edge",
    "no_maximum": "data give a lower bound only",
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


def against(status: str, method: str) -> str | None:
    """Return what is to be said against an estimate, by how it was made; None where nothing is.

    Parameters
    ----------
    status : str
        One of :data:`fidm.fit.profile.STATUSES`.
    method : str
        ``eb`` or ``mle``.

    Examples
    --------
    >>> against("no_maximum", "mle")
    'Every choice was a best action, so the data give only a lower bound.'
    >>> against("no_maximum", "eb").removeprefix(against("no_maximum", "mle"))
    ' The upper end comes from what is known of the other people.'
    """
    said = STATUSES.get(status)
    return said if said is None or method != "eb" else said + FROM_OTHERS.get(status, "")


def rests_on(name: str, n: int) -> str:
    """Return what a person's parameter rests on, with how many.

    Examples
    --------
    >>> rests_on("action_sensitivity", 54), rests_on("pause", 1), rests_on("duration", 23)
    ('54 steps', '1 pause', '23 segments')
    """
    things = "steps" if name == SENSITIVITY else channel_words(name).rests_on
    return count(n, things.removesuffix("s"), things)


def place_words(text: str, places: Mapping[str, str]) -> str:
    """Return a goal or an action with its place called as on the map.

    Examples
    --------
    >>> place_words("BUY egg_tofu", {"egg_tofu": "egg and tofu"})
    'BUY egg and tofu'
    """
    return " ".join(places.get(part, part.replace("_", " ")) for part in text.split(" "))


def doubt_words(codes: str | None) -> list[str]:
    """Return a segment's doubts in words; a code nobody knows is shown as it is."""
    return [doubt_in_words(code) for code in (codes or "").split()]


def column_words(name: str) -> str:
    """Return what a column of the table of participants is called."""
    return COLUMNS.get(name, name.replace("_", " "))
