r"""How much more each segment cost than its number of moves leads one to expect.

Residuals are relative to what the population leads one to expect given the segment's n moves (paper, appendix
"Effort likelihoods"): for speech duration, the two counts, and pauses

.. math::

    \log d - [\alpha + \beta \log(1 + n)], \qquad
    \log(1 + e) - \log(1 + \hat\mu), \qquad
    \log p - [\alpha + \beta \log(1 + n)],

with log μ̂ = α + β log(1 + n). α and β are the coefficients of the fit as they stand: with random intercepts
they describe a person with θ = 0, who is the average one; in a pooled fit (the paper's) they already average
over people, and the mean of the prior of θ, which is then not 0, is not added.

These are the paper's formulas. For durations and counts they compare an observation with its *mean*. Speech
is skewed: a few long segments pull the mean up, so that a typical segment has a residual a little below 0.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.fit.effort_alone import EffortFit
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.model.channels import Channel
from fidm.model.effort import observed
from fidm.types import Floats

PARTS = ("observed", "expected", "residual", "own_residual", "own_z")
"""What is known of a segment in each channel."""


def find_residuals(fit: Fit | EffortFit, cohort: Cohort, profile: Profile) -> pl.DataFrame:
    """Return one row per segment and, per channel, five columns; null where nothing was observed.

    - ``duration_observed``: the observation, as it stands in the segments;
    - ``duration_expected``: what the residual is relative to, given the moves: the mean in the population; of
      a log-normal channel (pauses) exp(ξ), the typical value, since its residual is that of the logarithm.
      An observation below it never has a residual above 0;
    - ``duration_residual``: the residual above, the paper's. As speech is skewed, that of a typical segment
      lies below 0 where it is relative to a mean;
    - ``duration_own_residual``: the same relative to what the person's own θ̂ leads one to expect;
    - ``duration_own_z``: how many standard deviations the observation lies above that (Pearson's residual).

    Parameters
    ----------
    fit : Fit or EffortFit
        What people share.
    cohort : Cohort
        The people.
    profile : Profile
        Their estimates.
    """
    of_segment = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    owner = cohort.episode_owner()[of_segment]
    columns: dict[str, pl.Series] = {
        "participant": cohort.ids.gather(owner),
        "episode": cohort.episodes["episode"].gather(of_segment),
        "segment": cohort.segments["segment"].cast(pl.String),
    }
    if "n_moves" in cohort.segments.columns:
        columns["n_moves"] = cohort.segments["n_moves"]
    for channel, seen in zip(
        fit.channels, observed(fit.channels, cohort, fit.levels, required=False), strict=True
    ):
        shared = fit.populations[channel.name].population
        theta = profile[channel.name][owner[seen.row]]
        base = seen.predictor(shared.coefficients)
        parts = (
            channel.record(seen.y),
            channel.typical(base, shared.shape),
            channel.residual(seen.y, base),
            channel.residual(seen.y, base + theta),
            _pearson(channel, seen.y, base + theta, shared.shape),
        )
        for name, values in zip(PARTS, parts, strict=True):
            spread = np.full(cohort.n_segments, np.nan)
            spread[seen.row] = values
            columns[f"{channel.name}_{name}"] = pl.Series(spread, nan_to_null=True)
    return pl.DataFrame(columns)


def _pearson(channel: Channel, y: Floats, xi: Floats, shape: float) -> Floats:
    """The score over the root of the information, which is (y − mean)/sd for the channels of the paper.

    Where ξ is infinite there is no spread, and it is 0.
    """
    finite = np.isfinite(xi)
    at = np.where(finite, xi, 0.0)
    slope, _ = channel.slopes(y, at, shape)
    information = channel.information(at, shape)
    return np.where(finite, slope / np.sqrt(information), np.where(np.isnan(xi), np.nan, 0.0))
