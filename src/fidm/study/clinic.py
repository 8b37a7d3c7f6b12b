"""The make-up of a simulated study: its diagnoses, what they change, and what a rater scores.

Everything here is invented, or calibrated to figures that were published; nothing is data about anybody. The
shares of the three diagnoses and the sizes of the parts are the paper's. How far a diagnosis moves action
sensitivity and effort was chosen so that the model separates people about as weakly as it does in the paper
(``benchmarks/simulate.py`` shows by how much). The instrument's seven subscores are not published: those here
have names, maxima and difficulties of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fidm.errors import DataError


@dataclass(frozen=True, slots=True)
class ClinicalGroup:
    """How the people of one diagnosis differ from those without any.

    Parameters
    ----------
    name : str
        The diagnosis.
    share : float
        Its share of people.
    log_sensitivity : float
        The shift of log η.
    effort : mapping of str to float
        The shift of θ by channel; none where a channel is not named.
    age_years, education_years : float
        The means.
    score : float
        The shift of what the scores measure, in standard deviations; 0 or less.
    """

    name: str
    share: float
    log_sensitivity: float
    effort: Mapping[str, float]
    age_years: float
    education_years: float
    score: float


@dataclass(frozen=True, slots=True)
class Subscore:
    """One of the scores a rater gives.

    Parameters
    ----------
    name : str
        Its column.
    maximum : int
        The most points.
    ease : float
        The log-odds of a point for somebody ordinary.
    weight : float
        How much of what the diagnosis does to scores shows in this one.
    """

    name: str
    maximum: int
    ease: float
    weight: float


GROUPS = (
    ClinicalGroup("normal", 0.63, 0.0, {}, 72.0, 8.5, 0.0),
    ClinicalGroup(
        "mci",
        0.31,
        -0.25,
        {"duration": 0.15, "characters": 0.03, "turns": 0.03, "pause": 0.03, "pause_presence": 0.03},
        75.5,
        7.0,
        -0.22,
    ),
    ClinicalGroup(
        "major_ncd",
        0.06,
        -0.55,
        {"duration": 0.45, "characters": 0.09, "turns": 0.09, "pause": 0.09, "pause_presence": 0.09},
        79.5,
        5.5,
        -0.50,
    ),
)
"""The three diagnoses. Shares: the paper's. Time: published shifts of other tasks. The rest: calibrated."""

SUBSCORES = (
    Subscore("score_items", 8, 1.6, 0.4),
    Subscore("score_route", 10, 0.6, 1.6),
    Subscore("score_request", 4, 0.8, 1.2),
    Subscore("score_payment", 4, 2.0, 0.2),
    Subscore("score_clarity", 6, 1.0, 0.5),
    Subscore("score_independence", 6, 0.8, 1.4),
    Subscore("score_time", 6, 0.4, 0.7),
)
"""Seven subscores with 44 points in all. Their names, maxima and difficulties are invented."""


@dataclass(frozen=True, slots=True)
class Clinic:
    """The make-up of a simulated study.

    Parameters
    ----------
    groups : tuple of ClinicalGroup
        The diagnoses; shares must add up to 1.
    subscores : tuple of Subscore
        What a rater scores; the total is their sum.
    excluded_share : float
        The share of people who did not complete.
    test_share : float
        The share of the others who are kept for the test.
    age_sd_years, education_sd_years : float
        How people of one diagnosis differ.
    score_action, score_effort : float
        How much of a person's own action sensitivity and (as a burden) effort shows in the scores, in
        standard deviations per standard deviation.
    score_noise : float
        What all of a person's scores share beyond that.
    subscore_noise : float
        What each score has of its own.
    female_share : float
        The share of women.
    """

    groups: tuple[ClinicalGroup, ...] = GROUPS
    subscores: tuple[Subscore, ...] = SUBSCORES
    excluded_share: float = 2 / 402
    test_share: float = 68 / 400
    age_sd_years: float = 6.5
    education_sd_years: float = 4.0
    score_action: float = 0.15
    score_effort: float = 0.10
    score_noise: float = 0.65
    subscore_noise: float = 0.75
    female_share: float = 0.60

    def __post_init__(self) -> None:
        shares = [group.share for group in self.groups]
        if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise DataError("The shares of the groups must be 0 or more and add up to 1.")
        if not (0 <= self.excluded_share < 1 and 0 <= self.test_share < 1 and 0 <= self.female_share <= 1):
            raise DataError("excluded_share, test_share and female_share must be between 0 and 1.")
        if len({group.name for group in self.groups}) < len(self.groups):
            raise DataError("Two groups have the same name.")

    @property
    def names(self) -> tuple[str, ...]:
        """The diagnoses."""
        return tuple(group.name for group in self.groups)
