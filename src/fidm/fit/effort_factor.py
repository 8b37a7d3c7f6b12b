"""The effort factor on its own: what people share in every channel, and everybody's offsets.

The factorized fit and the fit of effort without a task are both made of these pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fidm.errors import FitError
from fidm.fit import offsets
from fidm.fit.common import effort_status
from fidm.fit.offsets import Estimates, Population
from fidm.fit.population import TOLERANCE, Learned, pooled, pooled_prior, random_intercepts
from fidm.fit.profile import SENSITIVITY
from fidm.model.channels import Channel
from fidm.model.effort import Levels, Observed, design_names

Floats = NDArray[np.float64]


def valid_channels(channels: Channel | Sequence[Channel]) -> tuple[Channel, ...]:
    """Return channels as a tuple, or say what is wrong with them: what they are, or what they are called."""
    found = (channels,) if isinstance(channels, Channel) else tuple(channels)
    odd = [channel for channel in found if not isinstance(channel, Channel)]
    if odd:
        raise FitError(f"{odd[0]!r} is not a channel. fidm.channels has Gamma, NegativeBinomial and others.")
    names = [channel.name for channel in found]
    if len(set(names)) < len(names) or SENSITIVITY in names:
        raise FitError(f"Every channel needs a name of its own, other than {SENSITIVITY!r}; got {names}.")
    return found


def learn_population(
    channel: Channel,
    seen: Observed,
    levels: Levels,
    *,
    method: str,
    population: str,
    workers: int,
    tolerance: float = TOLERANCE,
    errors: bool = True,
) -> Learned:
    """Learn what people share in one channel.

    Parameters
    ----------
    channel : Channel
        The channel.
    seen : Observed
        Its observations in the training part.
    levels : mapping
        The levels of text columns.
    method, population : str
        As in :meth:`fidm.Model.fit`.
    workers : int
        Threads; changes no number.
    tolerance : float
        How exactly random intercepts are fitted; comparisons need less than what is reported.
    errors : bool
        Whether random intercepts come with standard errors, which comparisons do not need.
    """
    names = design_names(channel, levels)
    if population == "random":
        return random_intercepts(channel, seen, names, workers, tolerance=tolerance, errors=errors)
    shared = pooled(channel, seen, names)
    return pooled_prior(channel, seen, shared, workers) if method == "eb" else Learned(shared, {})


def own_offsets(
    channel: Channel, seen: Observed, shared: Population, *, method: str, level: float, workers: int = 1
) -> Estimates:
    """Return everybody's θ in a channel, by maximum likelihood or as the posterior's mean."""
    if method == "mle":
        return offsets.maximum(channel, seen, shared, level=level, workers=workers)
    return offsets.posterior(channel, seen, shared, level=level, workers=workers)[0]


def offset_status(
    channel: Channel, seen: Observed, shared: Population, se: Floats, *, method: str
) -> NDArray[np.int8]:
    """Return what is to be said about everybody's offset in a channel, as codes."""
    return effort_status(channel, seen, se, informed(shared.sd, method))


def informed(prior_sd: float, method: str) -> float:
    """Return the standard error above which an estimate is called poorly informed."""
    return 0.8 * prior_sd if method == "eb" else 1.0


def log_likelihoods(
    channel: Channel, seen: Observed, shared: Population, theta: Floats | None = None, *, workers: int = 1
) -> Floats:
    """Return the log-likelihood of everybody's observations, at their θ or averaged over its prior, [P]."""
    if theta is not None:
        return offsets.values_at(channel, seen, shared, theta)
    inside = offsets.posterior(channel, seen, shared, level=0.95, workers=workers)[1]
    return inside + offsets.constants(channel, seen, shared)


def population_rows(
    channels: Sequence[Channel], populations: Mapping[str, Learned], levels: Levels, population: str
) -> list[tuple[str, str, float, float]]:
    """Return the channel, the quantity, its estimate and its standard error of everything people share."""
    rows = []
    for channel in channels:
        learned = populations[channel.name]
        shared = learned.population
        named = dict(zip(design_names(channel, levels), shared.coefficients.tolist(), strict=True))
        if channel.shape_name:
            named[channel.shape_name] = shared.shape
        if population == "pooled":
            named["mean"] = shared.mean
        named["sd"] = shared.sd
        if not np.isfinite(shared.sd):
            named = {key: value for key, value in named.items() if key not in ("mean", "sd")}
        rows += [(channel.name, key, value, learned.se.get(key, np.nan)) for key, value in named.items()]
    return rows
