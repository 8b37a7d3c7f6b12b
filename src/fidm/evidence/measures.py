r"""How unexpected each action was, and how heavy each segment.

How much more each segment cost than its number of moves leads one to expect.

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

How unexpected each action is of the person who took it.

The unexpectedness of action i of person j is (paper, section 4.3)

.. math:: U_{ji} = -\log \pi_{\hat\eta_j}(a_{ji} \mid s_{ji}),

in natural units, with the person's own estimate η̂ (the population's where there is none) and, where the fit
has one, the lapse rate mixed in as in the likelihood: π = (1 − ε) softmax(η̂ Q) + ε / \|A(s)\|. It is 0 where
nothing else was possible or thinkable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.fit.effort_alone import EffortFit
from fidm.fit.fitted import Fit
from fidm.fit.profile import Profile
from fidm.model.action import TIE, effective_weight
from fidm.model.channels import Channel
from fidm.model.effort import awaits_review, column_values, doubtful_moves, observed, without_longer
from fidm.tasks.stack import Followed
from fidm.types import Floats

IN_DOUBT = "moves_in_doubt"
"""The column that says whether over half of a segment's moves were filled in or await review."""

PARTS = ("observed", "expected", "residual", "own_residual", "own_z")
"""What is known of a segment in each channel."""


def find_residuals(fit: EffortFit, cohort: Cohort, profile: Profile) -> pl.DataFrame:
    """Return one row per segment and, per channel, five columns; null where nothing was observed.

    ``moves_in_doubt`` says whether over half of the segment's moves, which everything is relative to, were
    filled in by a planner or await review. The columns of a channel:

    - ``duration_observed``: the observation, as it stands in the segments;
    - ``duration_expected``: what the residual is relative to, given the moves: the mean in the population; of
      a log-normal channel (pauses) exp(ξ), the typical value, since its residual is that of the logarithm.
      An observation below it never has a residual above 0;
    - ``duration_residual``: the residual above, the paper's. As speech is skewed, that of a typical segment
      lies below 0 where it is relative to a mean;
    - ``duration_own_residual``: the same relative to what the person's own θ̂ leads one to expect, or the
      mean of the population where the person has no estimate;
    - ``duration_own_z``: how many standard deviations the observation lies above that (Pearson's residual).

    Parameters
    ----------
    fit : EffortFit
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
        moves = column_values(cohort.segments, "n_moves")
        columns[IN_DOUBT] = pl.Series(awaits_review(cohort) | (2 * doubtful_moves(cohort) > moves))
    effort = observed(fit.channels, cohort, fit.levels, required=False)
    effort, _ = without_longer(fit.channels, effort, cohort, fit.longest)
    for channel, seen in zip(fit.channels, effort, strict=True):
        shared = fit.populations[channel.name].population
        theta = profile[channel.name][owner[seen.row]]
        theta = np.where(np.isnan(theta), shared.mean, theta)
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


@dataclass(frozen=True, slots=True, eq=False)
class Surprisal:
    """What the fitted policy says of every step.

    Parameters
    ----------
    unexpectedness : float array [N]
        −log π of the action taken; NaN where it cannot be said. Infinite where a person whose η has no finite
        maximum is credited with an action that is not a best one (such a step does not count).
    q_gap : float array [N]
        How much less the action is worth than the best one; NaN where it cannot be said.
    n_legal : int array [N]
        How many actions were legal.
    weight : float array [N]
        How much the step counts in the likelihood.
    counts : bool array [N]
        Whether it counts at all.
    """

    unexpectedness: Floats
    q_gap: Floats
    n_legal: NDArray[np.int32]
    weight: Floats
    counts: NDArray[np.bool_]


def find_surprisal(fit: Fit, cohort: Cohort, followed: Followed, eta: Floats) -> Surprisal:
    """Return how unexpected each step is, given everybody's η.

    Steps the likelihood leaves out because of their weight, such as inferred ones, have an unexpectedness all
    the same, but do not count; steps in states that are not counted have none.

    Parameters
    ----------
    fit : Fit
        What people share.
    cohort : Cohort
        The people.
    followed : Followed
        Their steps in terms of the fit's tasks.
    eta : float array [P]
        Action sensitivities; NaN where unknown, infinite where there is no finite maximum.
    """
    n, tasks = cohort.n_steps, fit.tasks
    found, gap = np.full(n, np.nan), np.full(n, np.nan)
    _surprisal(
        cohort.step_offsets[cohort.episode_offsets],
        followed.row,
        followed.pair,
        tasks.counted,
        tasks.offsets,
        fit.q,
        np.asarray(eta, dtype=np.float64),
        fit.lapse,
        TIE,
        found,
        gap,
    )
    weight = effective_weight(cohort, fit.inferred)
    weight = weight if len(weight) else np.ones(n)
    sizes = np.diff(tasks.offsets).astype(np.int32)
    known = followed.row >= 0
    row = np.where(known, followed.row, 0)
    counts = (followed.pair >= 0) & known & tasks.counted[row] & (weight > 0)
    return Surprisal(found, gap, np.where(known, sizes[row], 0).astype(np.int32), weight, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _surprisal(  # type: ignore[no-untyped-def]
    person_steps, row, pair, counted, offsets, q, etas, lapse, tie, found, gap
):
    for j in range(len(person_steps) - 1):
        eta = etas[j]
        for i in range(person_steps[j], person_steps[j + 1]):
            if pair[i] < 0 or not counted[row[i]]:
                continue
            first = offsets[row[i]]
            last = offsets[row[i] + 1]
            top = q[first]
            bottom = q[first]
            for k in range(first + 1, last):
                top = max(top, q[k])
                bottom = min(bottom, q[k])
            own = q[pair[i]] - top
            gap[i] = -own
            n = last - first
            if top - bottom < tie:  # nothing to choose between, whatever η is
                found[i] = np.log(n)
                continue
            if np.isnan(eta):
                continue
            if np.isinf(eta):
                ties = 0
                for k in range(first, last):
                    if top - q[k] < tie:
                        ties += 1
                p = 1.0 / ties if -own < tie else 0.0
                found[i] = max(0.0, -np.log((1.0 - lapse) * p + lapse / n))
                continue
            total = 0.0
            for k in range(first, last):
                d = q[k] - top
                total += 1.0 if d == 0.0 else np.exp(eta * d)
            if lapse == 0.0:
                found[i] = np.log(total) - eta * own
            else:
                found[i] = max(0.0, -np.log((1.0 - lapse) * np.exp(eta * own) / total + lapse / n))
