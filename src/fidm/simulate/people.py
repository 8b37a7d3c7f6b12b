"""Who simulated people are: diagnosis, age, education, scores, and the part of the study they are in.

Everything here is invented, or calibrated to figures that were published; nothing is data about anybody. The
shares of the three diagnoses and the sizes of the parts are the paper's, and dealt by exact quotas. How far a
diagnosis moves action sensitivity and effort was chosen so that the model separates people about as weakly as
it does in the paper (``benchmarks/simulate.py`` shows by how much). The instrument's seven subscores are not
published: those here have names, maxima and difficulties of our own. What else a person has comes from a
random stream of their own, made from the seed and their number, so that people may be drawn in any parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from fidm.errors import DataError
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People, covariance_root, draw_truth
from fidm.types import Floats


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


NOT_COMPLETED = "did not complete the assessment"
"""Why simulated people are excluded."""

ROSTER, OWN = 7_001, 7_002
"""What sets the random streams of this module apart from those of acting and speaking."""

YOUNGEST, OLDEST = 60, 95
MOST_EDUCATION = 20


def quotas(n: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers that add up to ``n`` in these proportions, by largest remainders.

    Examples
    --------
    >>> from fidm.simulate.people import quotas
    >>> quotas(400, [0.63, 0.31, 0.06]), quotas(1, [0.63, 0.31, 0.06])
    ([252, 124, 24], [1, 0, 0])
    """
    exact = [n * share / sum(shares) for share in shares]
    found = [int(np.floor(value + 1e-9)) for value in exact]
    left = sorted(range(len(shares)), key=lambda i: (found[i] - exact[i], i))
    for i in left[: n - sum(found)]:
        found[i] += 1
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """Who has which diagnosis, and who is in which part of the study."""

    group: NDArray[np.int8]  # [n]: the row of each person's group
    # [n]: whether they are kept for the test, and whether they did not complete; nobody is both.
    is_test: NDArray[np.bool_]
    is_excluded: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.group)


def draw_roster(n: int, *, seed: int, clinic: Clinic | None = None) -> Roster:
    """Deal diagnoses and parts to people, by exact quotas.

    Those who complete have diagnoses in the given shares, those who do not likewise; each part of the study
    has its due of each diagnosis.
    """
    if not isinstance(n, int | np.integer) or n < 1:
        raise DataError(f"n is {n}; there must be somebody to simulate.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise DataError(f"seed is {seed}; it must be a whole number, 0 or more.")
    made = clinic or Clinic()
    shares = [group.share for group in made.groups]
    n_out = round(n * made.excluded_share)
    done = quotas(n - n_out, shares)
    n_test = round((n - n_out) * made.test_share)
    test = quotas(n_test, done) if n_test else [0] * len(done)
    group, is_test, is_out = [], [], []
    for g, (size, tested) in enumerate(zip(done, test, strict=True)):
        group += [g] * size
        is_test += [True] * tested + [False] * (size - tested)
    is_out = [False] * len(group) + [True] * n_out
    for g, size in enumerate(quotas(n_out, shares)):
        group += [g] * size
    is_test += [False] * n_out
    order = np.random.default_rng([seed, ROSTER]).permutation(n)
    return Roster(
        group=np.array(group, dtype=np.int8)[order],
        is_test=np.array(is_test, dtype=np.bool_)[order],
        is_excluded=np.array(is_out, dtype=np.bool_)[order],
    )


def draw_people(
    roster: Roster, *, seed: int, clinic: Clinic | None = None, first: int = 0, n: int | None = None
) -> pl.DataFrame:
    """Return who people are: ``participant``, ``split``, ``diagnosis``, age, education, sex, ``excluded``.

    ``first`` and ``n`` are the number of the first person and how many; by default everybody.

    Examples
    --------
    >>> from fidm.simulate.people import draw_people, draw_roster
    >>> people = draw_people(draw_roster(402, seed=1), seed=1)
    >>> people["split"].value_counts(sort=True).rows()
    [('train', 332), ('test', 68), (None, 2)]
    """
    made = clinic or Clinic()
    rows = slice(first, len(roster) if n is None else first + n)
    group = roster.group[rows]
    noise = _own_noise(seed, range(*rows.indices(len(roster))), len(made.subscores))
    out, test = pl.Series(roster.is_excluded[rows]), pl.Series(roster.is_test[rows])
    age = np.array([one.age_years for one in made.groups])[group] + made.age_sd_years * noise[:, 0]
    school = np.array([one.education_years for one in made.groups])[group]
    school = school + made.education_sd_years * noise[:, 1]
    return pl.DataFrame(
        {
            "participant": [f"P{j + 1:07d}" for j in range(*rows.indices(len(roster)))],
            "diagnosis": pl.Series(made.names).gather(pl.Series(group).cast(pl.UInt32)),
            "age_years": np.clip(np.round(age), YOUNGEST, OLDEST).astype(np.int32),
            "education_years": np.clip(np.round(school), 0, MOST_EDUCATION).astype(np.int32),
            "sex": pl.Series(noise[:, 2] < ndtri(made.female_share)),
        }
    ).select(
        "participant",
        pl.when(out).then(None).when(test).then(pl.lit("test")).otherwise(pl.lit("train")).alias("split"),
        "diagnosis",
        "age_years",
        "education_years",
        pl.when("sex").then(pl.lit("female")).otherwise(pl.lit("male")).alias("sex"),
        pl.when(out).then(pl.lit(NOT_COMPLETED)).otherwise(None).alias("excluded"),
    )


def shifts_of(group: NDArray[np.int8], channels: Sequence[str], *, clinic: Clinic | None = None) -> Floats:
    """Return how far each person's diagnosis moves them in (log η, θ…), [n, D].

    ``group`` [n] are the rows of their groups; ``channels`` are in the order of θ.
    """
    made = clinic or Clinic()
    table = [[one.log_sensitivity, *(one.effort.get(name, 0.0) for name in channels)] for one in made.groups]
    return np.asarray(np.array(table)[group])


def score_people(
    roster: Roster,
    *,
    seed: int,
    people: People | None = None,
    clinic: Clinic | None = None,
    first: int = 0,
    n: int | None = None,
) -> pl.DataFrame:
    """Return what a rater would give: ``score_total`` and its parts, empty for whoever did not complete.

    A score depends on the diagnosis, a little on the person's own ability and effort (the same that
    :func:`fidm.simulate_cohort` draws for this seed), and mostly on noise, as scores of short assessments do.
    ``people`` is how people differ within a diagnosis; the rest is as for :func:`draw_people`.
    """
    made, kind = clinic or Clinic(), people or People()
    numbers = range(first, len(roster) if n is None else first + n)
    rows = slice(numbers.start, numbers.stop)
    noise = _own_noise(seed, numbers, len(made.subscores))
    truth = _true_parameters(roster, kind, made, seed, numbers)
    ability = made.score_noise * noise[:, 3]
    if kind.log_sensitivity_sd:
        ability = ability + made.score_action * truth[:, 0] / kind.log_sensitivity_sd
    if kind.effort_sd and truth.shape[1] > 1:
        ability = ability - made.score_effort * truth[:, 1:].mean(axis=1) / kind.effort_sd
    moved = np.array([one.score for one in made.groups])[roster.group[rows]]
    columns: dict[str, Any] = {}
    for k, score in enumerate(made.subscores):
        own = ability + score.weight * moved + made.subscore_noise * noise[:, 4 + k]
        points = score.maximum / (1 + np.exp(-(score.ease + own)))
        columns[score.name] = np.round(points).astype(np.int32)
    scores = pl.DataFrame(columns)
    total = scores.select(pl.sum_horizontal(pl.all()).alias("score_total"))
    completed = pl.Series(~roster.is_excluded[rows])
    return total.with_columns(scores).select(pl.when(completed).then(pl.all()).otherwise(None))


def channels_of(people: People) -> tuple[str, ...]:
    """Return the names of the channels of simulated people, in the order of θ."""
    return tuple(channel.name for channel in paper_channels() if channel.name in people.truth)


def _true_parameters(roster: Roster, kind: People, made: Clinic, seed: int, numbers: range) -> Floats:
    """Everybody's (log η less its mean, θ…), drawn as those who act draw it: first from their own stream."""
    channels = channels_of(kind)
    root = covariance_root(kind, len(channels))
    shifts = shifts_of(roster.group[numbers.start : numbers.stop], channels, clinic=made)
    found = np.empty(shifts.shape)
    for i, j in enumerate(numbers):
        found[i] = draw_truth(np.random.default_rng([seed, j]), kind, root, shifts[i])
    found[:, 0] -= kind.log_sensitivity_mean
    return found


def _own_noise(seed: int, numbers: range, n_scores: int) -> Floats:
    """Everybody's own standard normal numbers: age, education, sex, ability, and one per subscore."""
    found = np.empty((len(numbers), 4 + n_scores))
    for i, j in enumerate(numbers):
        found[i] = np.random.default_rng([seed, j, OWN]).standard_normal(4 + n_scores)
    return found
