"""Action sensitivity both ways: with the moves that a planner filled in, and without them.

Inferred moves are the shortest way, mostly best actions, so counting them raises η. How far the two estimates
lie apart says how much a study's η would rest on the planner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.fit.common import Data, default_lapse, threads
from fidm.fit.factorized import Model, learn_sensitivity
from fidm.fit.fitted import Fit
from fidm.fit.profile import FEWEST_FOR_SHARES, SENSITIVITY, Profile, number_text
from fidm.types import Floats


def other_way(
    fit: Fit,
    learners: Cohort | None = None,
    *,
    lapse: float | Literal["estimate"] | None = None,
    workers: int | None = None,
) -> Fit:
    """Return a fit of choices alone that treats inferred moves the other way.

    Where they count less than fully, they count fully in it; where they count fully, it leaves them out.

    Parameters
    ----------
    fit : Fit
        The fit to be compared with.
    learners : Cohort, optional
        Those whom the fit was learned from, to learn the prior of η and the lapse rate again. Left out, those
        of the fit are kept.
    lapse : float or "estimate"
        As it was given to the fit's model; looked at only where there are learners.
    workers : int, optional
        Threads; changes no number.
    """
    inferred = 0.0 if fit.inferred == 1.0 else 1.0
    of_choices = {name: layout for name, layout in fit.regress.items() if name == SENSITIVITY}
    other = replace(
        fit,
        channels=(),
        levels={},
        populations={},
        joint=None,
        skipped=(),
        inferred=inferred,
        regress=of_choices,
    )  # choices alone
    if learners is None:
        return other
    data = Data.of(fit.tasks, fit.q, (), {}, learners, need_columns=False, inferred=inferred)
    data = data.with_known(other.known(learners), ())
    asked = default_lapse(lapse, fit.method)
    wanted = fit.method == "eb" or asked == "estimate"
    notes: list[str] = []
    prior, rate, rate_se = learn_sensitivity(data, asked, threads(workers), wanted=wanted, notes=notes)
    if notes:
        raise FitError(" ".join(notes))
    return replace(other, prior=prior, lapse=rate, lapse_se=rate_se)


@dataclass(frozen=True, slots=True, eq=False)
class BothWays:
    """Everybody's η as it was estimated, and with inferred moves treated the other way.

    Parameters
    ----------
    profile, other : Profile
        The two profiles of the same people; the second from a fit of :func:`other_way`.
    """

    profile: Profile
    other: Profile

    def __post_init__(self) -> None:
        if not self.profile.participants.equals(self.other.participants):
            raise DataError("The two profiles are of different people, or of the same in another order.")

    @property
    def name(self) -> str:
        """What the other η is called: that of all moves, or of the stated ones."""
        return f"{SENSITIVITY}_{'all' if self.other.inferred == 1.0 else 'stated'}_moves"

    @property
    def median(self) -> tuple[float, float]:
        """The median η each way, of the people who have an estimate both ways; infinite ones count.

        NaN of fewer than 10 people.
        """
        mine, others = self._pairs()
        is_few = len(mine) < FEWEST_FOR_SHARES
        return (np.nan, np.nan) if is_few else (float(np.median(mine)), float(np.median(others)))

    @property
    def rank_correlation(self) -> float:
        """Spearman's rank correlation of the two; NaN where it is not defined, or of fewer than 10 people."""
        mine, others = (stats.rankdata(values) for values in self._pairs())
        if len(mine) < FEWEST_FOR_SHARES or not (np.ptp(mine) and np.ptp(others)):
            return np.nan
        return float(np.corrcoef(mine, others)[0, 1])

    @property
    def table(self) -> pl.DataFrame:
        """The other η of everybody with its interval and status, one row per person."""
        wide = self.other.wide
        return wide.select(
            pl.col(SENSITIVITY).alias(self.name),
            *(
                pl.col(f"{SENSITIVITY}_{part}").alias(f"{self.name}_{part}")
                for part in ("low", "high", "status")
            ),
        )

    def _pairs(self) -> tuple[Floats, Floats]:
        mine, others = self.profile.action_sensitivity, self.other.action_sensitivity
        known = ~(np.isnan(mine) | np.isnan(others))
        return mine[known], others[known]

    def __str__(self) -> str:
        (mine, others), together = self.median, self.rank_correlation
        if np.isnan(mine):
            ways = f"{say_way(self.profile.inferred)} and with {say_way(self.other.inferred)}"
            return f"η with {ways} stand side by side in the table of estimates"
        known = f"; rank correlation {together:.2f} (n = {len(self._pairs()[0]):,})"
        return (
            f"median η {number_text(mine)} with {say_way(self.profile.inferred)}, "
            f"{number_text(others)} with {say_way(self.other.inferred)}"
        ) + (known if np.isfinite(together) else "")


def say_way(inferred: float) -> str:
    """Return how inferred moves are treated, by how much they count.

    Examples
    --------
    >>> say_way(0.0), say_way(0.5), say_way(1.0)
    ('inferred moves left out', 'inferred moves counted 0.5', 'inferred moves counted, too')
    """
    if inferred in (0.0, 1.0):
        return f"inferred moves {'left out' if inferred == 0.0 else 'counted, too'}"
    return f"inferred moves counted {inferred:g}"


Ways = BothWays | str | None
"""The comparison, why there is none, or None where no move is inferred."""


def learn_other(fitted: Fit, learners: Cohort, model: Model, workers: int | None) -> Fit | str:
    """The fit that treats inferred moves the other way, or why there is none."""
    try:
        return other_way(fitted, learners, lapse=model.lapse, workers=workers)
    except FitError as error:  # without them, there may be too few choices
        return str(error)


def compare(profile: Profile, others: Profile | None, other: Fit | str | None) -> Ways:
    """The comparison, why there is none, or None where no move is inferred."""
    if not np.nansum(profile.n_inferred):
        return None
    return BothWays(profile, others) if others is not None else other if isinstance(other, str) else None


def with_other(wide: pl.DataFrame, ways: Ways) -> pl.DataFrame:
    """Return the table of a profile with the other sensitivity beside the first."""
    if not isinstance(ways, BothWays):
        return wide
    place = wide.columns.index("inferred_share") + 1
    return pl.concat([wide[:, :place], ways.table, wide[:, place:]], how="horizontal")


def report_inferred(profile: Profile, ways: BothWays | str, *, is_new: bool) -> dict[str, object]:
    """What inferred moves do to the sensitivity."""
    share = float(np.nansum(profile.n_inferred) / np.nansum(profile.n_steps))
    found: dict[str, object] = {"share": share, "weight": profile.inferred}
    if isinstance(ways, str):
        return {**found, "not_compared": ways}
    numbers = (*ways.median, ways.rank_correlation)
    mine, others, together = (value if math.isfinite(value) else None for value in numbers)
    return {
        **found,
        "median": mine,
        "other_weight": ways.other.inferred,
        "other_median": others,
        "other_columns": ways.table.columns,
        "other_prior": "learned again" if is_new else "that of the earlier fit",
        "rank_correlation": together,
    }
