"""What ``fidm fit`` says about inferred moves: the sensitivity with them, and without."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import FitError
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.fit.inferred import BothWays, other_way
from fidm.fit.profile import Profile

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


def say_inferred(ways: BothWays | str, *, is_new: bool) -> str:
    """Return the comparison as a line."""
    if isinstance(ways, str):
        return f"not estimated with inferred moves left out: {ways}"
    return f"{ways}{'' if is_new else ' (both with the prior of the earlier fit)'}"


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
