"""What a report's people are made of: everything computed, for everybody at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fidm.cohort import Cohort
from fidm.evidence.evidence import Evidence
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.study.behind import Behind
from fidm.tasks.model import TaskModel

Key = tuple[str, str]
"""A participant and an episode."""

DIGITS = 6
"""How many significant digits numbers keep; the page shows three of them, so that none is rounded twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of the people of a study, all computed.

    Parameters
    ----------
    cohort : Cohort
        The people.
    fit : Fit
        What they share.
    profile : Profile
        Their estimates.
    found : Evidence
        Their evidence.
    behind : Behind
        The same with its places in the dialogs.
    tasks : tuple of TaskModel
        Their tasks.
    label : str or None
        The column with people's status; None where there is none.
    languages : mapping
        The language of each dialog, by participant and episode.
    is_deidentified : bool
        Whether nothing may lead back to a person: no words, no covariates, no names of episodes.
    reviews : mapping
        What reviewers decided, by participant, episode and segment.
    """

    cohort: Cohort
    fit: Fit
    profile: Profile
    found: Evidence
    behind: Behind
    tasks: tuple[TaskModel, ...]
    label: str | None = None
    languages: Mapping[Key, str] = field(default_factory=dict)
    is_deidentified: bool = False
    reviews: Mapping[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)


def rounded(value: float | None, *, digits: int = DIGITS) -> float | None:
    """Return a number with so many significant digits; None where it is no finite number.

    Examples
    --------
    >>> rounded(0.12345678), rounded(float("nan")), rounded(-0.0)
    (0.123457, None, 0.0)
    """
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.{digits}g}") + 0.0
