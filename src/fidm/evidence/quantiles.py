r"""Quantile residuals: whether observations are spread as an effort channel says they are.

An observation y that was drawn from a distribution F has F(y) spread evenly between 0 and 1, and
Φ⁻¹(F(y)) is standard normal, whatever F is. Of a count, F jumps at y; a place between P(Y < y) and P(Y ≤ y)
is drawn at random (Dunn and Smyth 1996). Residuals that are not standard normal show what a family gets
wrong: a mean off 0 is a bias, a spread above 1 too little variance, a bend in the worm a wrong tail.

F depends on the person's θ, which is not known. To take the estimate from the same observations would make
residuals too small, the more so the fewer observations a person has. Instead

- ``"leave_one_out"`` predicts each observation from the person's *other* ones: F is averaged over the
  posterior of θ without it. For somebody with one observation that is the prior. Under the model every
  residual is standard normal; those of one person hang together very slightly.
- ``"drawn"`` draws one θ per person from the posterior. Under the model the residuals are standard normal and
  independent, but the posterior has seen the observation, so that a wrong family stands out a little less.

The integrals over θ are sums over nodes, as in :mod:`fidm.fit.offsets`. Dividing the posterior by the density
of an observation takes that observation out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import special

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.fit.common import one_of
from fidm.fit.effort_alone import EffortFit
from fidm.fit.fitted import Fit
from fidm.fit.offsets import REPORT_NODES, Population, in_chunks, on_nodes
from fidm.model.channels import Channel, person_sums
from fidm.model.effort import Observed, observed
from fidm.types import Floats

Theta = Literal["leave_one_out", "drawn"]

NODES: Floats = np.arange(-16, 17).astype(np.float64) / 2
"""Nodes around the posterior's mode, in units of its curvature: wide enough for one observation fewer, and
close enough for what is averaged over a prior."""

EDGE = 1e-15
"""Probabilities nearer to 0 or 1 than this give the residual there, about ±8."""


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """What is expected of every observation, given everything else that is known of its person.

    Parameters
    ----------
    below, up_to : float array [m]
        The probability of an observation below this one, and of one that is at most as large.
    mean, variance : float array [m]
        Of the prediction, in the units of the column. The mean may be infinite; the variance is NaN where it
        is, and where a channel does not tell it.
    zero : float array [m]
        The probability of a recorded 0.
    """

    below: Floats
    up_to: Floats
    mean: Floats
    variance: Floats
    zero: Floats

    def residuals(self, rng: np.random.Generator) -> Floats:
        """Return the quantile residuals; where an observation has a probability, a place in it is drawn."""
        share = self.below + rng.random(len(self.below)) * (self.up_to - self.below)
        return np.asarray(special.ndtri(np.clip(share, EDGE, 1 - EDGE)))


def predict(
    channel: Channel,
    seen: Observed,
    shared: Population,
    *,
    theta: Theta = "leave_one_out",
    rng: np.random.Generator | None = None,
) -> Predicted:
    """Return what is expected of every observation of a channel.

    Parameters
    ----------
    channel : Channel
        The channel; it needs a distribution function.
    seen : Observed
        The observations.
    shared : Population
        What people share, with a prior of θ.
    theta : {"leave_one_out", "drawn"}
        What is known of θ; see the top of this module.
    rng : Generator, optional
        Draws θ; needed for ``"drawn"``.
    """
    if not np.isfinite(shared.sd):
        raise FitError(
            "Quantile residuals average over what θ may be, which a fit by maximum likelihood to pooled "
            "segments does not know. Fit with method='eb'."
        )
    if theta == "drawn":
        if rng is None:
            raise FitError("To draw θ a random generator is needed.")
        own = _draws(channel, seen, shared, rng)
        return _mixture(channel, seen, shared, own[:, None], np.ones((len(seen.y), 1)))
    parts = in_chunks(seen, lambda part: _left_out(channel, part, shared), 1)
    names = ("below", "up_to", "mean", "variance", "zero")
    return Predicted(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def quantile_residuals(
    fit: Fit | EffortFit, cohort: Cohort, *, theta: Theta = "leave_one_out", seed: int = 1
) -> pl.DataFrame:
    """Return how surprising each observation is, on the scale of a standard normal.

    Parameters
    ----------
    fit : Fit or EffortFit
        What people share; it needs priors (``method="eb"``, or random intercepts).
    cohort : Cohort
        The people; best others than those it was learned from.
    theta : {"leave_one_out", "drawn"}
        Whether an observation is predicted from the person's other ones, or at a θ drawn from the posterior.
    seed : int
        Of the draws: within the probability of a count, and of θ.

    Returns
    -------
    DataFrame
        A row per observation: ``participant``, ``episode``, ``segment``, ``channel``, ``below`` and ``up_to``
        (the probability of a smaller one, and of one at most as large) and ``residual``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.quantiles import quantile_residuals
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 40, seed=1)
    >>> found = quantile_residuals(fidm.Model(task).fit(cohort), cohort)
    >>> bool(abs(found["residual"].mean()) < 0.1)
    True
    """
    one_of("theta", theta, ("leave_one_out", "drawn"))
    if seed < 0:
        raise DataError(f"seed is {seed}; it must be 0 or more.")
    rng = np.random.default_rng(seed)
    of_segment = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    owner = cohort.episode_owner()[of_segment]
    tables = []
    effort = observed(fit.channels, cohort, fit.levels, required=False)
    for channel, seen in zip(fit.channels, effort, strict=True):
        shared = fit.populations[channel.name].population
        found = predict(channel, seen, shared, theta=theta, rng=rng)
        tables.append(
            pl.DataFrame(
                {
                    "participant": cohort.ids.gather(owner[seen.row]),
                    "episode": cohort.episodes["episode"].gather(of_segment[seen.row]),
                    "segment": cohort.segments["segment"].gather(seen.row).cast(pl.String),
                    "channel": pl.Series([channel.name] * len(seen.y), dtype=pl.String),
                    "below": found.below,
                    "up_to": found.up_to,
                    "residual": found.residuals(rng),
                }
            )
        )
    if not tables:
        raise FitError("This fit has no effort channels, so there is nothing to compare with them.")
    return pl.concat(tables)


# ---------------------------------------------------------------------- the pieces


def _left_out(channel: Channel, part: Observed, shared: Population) -> Predicted:
    """Every observation predicted from its person's others."""
    counts, base = part.counts, part.predictor(shared.coefficients)
    centre, scale, _ = on_nodes(channel, part, shared, NODES[:1])
    alone = counts <= 1  # without their one observation only the prior is left
    centre[alone], scale[alone] = shared.mean, shared.sd
    nodes = centre[:, None] + scale[:, None] * NODES
    own = np.stack(
        [channel.varying(part.y, base + np.repeat(node, counts), shared.shape) for node in nodes.T], axis=1
    )
    summed = np.stack([person_sums(column, part.offsets) for column in own.T], axis=1)
    posterior = summed - 0.5 * ((nodes - shared.mean) / shared.sd) ** 2
    others = np.repeat(posterior, counts, axis=0) - own
    weight = np.exp(others - others.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return _mixture(channel, part, shared, nodes, weight)


def _mixture(
    channel: Channel, part: Observed, shared: Population, nodes: Floats, weight: Floats
) -> Predicted:
    """The prediction averaged over offsets [P, Q] with weights of each observation [m, Q]."""
    counts, base = part.counts, part.predictor(shared.coefficients)
    none = np.full(len(part.y), channel.observe(np.zeros(1))[0])
    told = type(channel).variance is not Channel.variance
    up_to, point, mean, second, zero = (np.zeros(len(part.y)) for _ in range(5))
    for q in range(nodes.shape[1]):
        xi = base + np.repeat(nodes[:, q], counts)
        up_to += weight[:, q] * channel.cumulative(part.y, xi, shared.shape)
        expected = channel.mean(xi, shared.shape)
        with np.errstate(invalid="ignore", over="ignore"):  # moments of heavy tails may be infinite
            mean += weight[:, q] * expected
            if told:
                second += weight[:, q] * (channel.variance(xi, shared.shape) + expected**2)
        if channel.discrete:
            point += weight[:, q] * np.exp(channel.log_density(part.y, xi, shared.shape))
            zero += weight[:, q] * channel.cumulative(none, xi, shared.shape)
    up_to = np.minimum(up_to, 1.0)
    variance = np.full(len(mean), np.nan)
    known = np.isfinite(second) & told
    variance[known] = second[known] - mean[known] ** 2
    return Predicted(np.maximum(up_to - point, 0.0), up_to, mean, variance, zero)


def _draws(channel: Channel, seen: Observed, shared: Population, rng: np.random.Generator) -> Floats:
    """One θ per person from the posterior, by its distribution function on nodes, [P]."""
    shares = rng.random(len(seen.offsets) - 1)
    found: list[float] = []
    for centre, scale, density in in_chunks(
        seen, lambda part: on_nodes(channel, part, shared, REPORT_NODES), 1
    ):
        weight = np.exp(density - density.max(axis=1, keepdims=True))
        inside = 0.5 * (weight[:, 1:] + weight[:, :-1])
        up_to = np.concatenate([np.zeros((len(centre), 1)), np.cumsum(inside, axis=1)], axis=1)
        up_to /= up_to[:, -1:]
        first = len(found)
        for j in range(len(centre)):
            found.append(centre[j] + scale[j] * np.interp(shares[first + j], up_to[j], REPORT_NODES))
    return np.asarray(found)
