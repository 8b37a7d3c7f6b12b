"""Choosing a setting of a channel, such as the power of a generalised gamma, by marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.fit.common import threads
from fidm.fit.effort_alone import as_cohort
from fidm.fit.effort_factor import log_likelihoods
from fidm.fit.population import random_intercepts
from fidm.model.channels import Channel
from fidm.model.check import effort_problems, refuse
from fidm.model.effort import Levels, Observed, design_names, observed, text_levels

ROUGHLY = 1e-5
"""How exactly a population is fitted when settings are compared; enough for their log-likelihood."""

Kind = TypeVar("Kind", bound=Channel)


def tuned(
    channel: Kind,
    cohort: Cohort | pl.DataFrame | Any,
    *,
    setting: str | None = None,
    values: Sequence[float] | None = None,
    refine: int = 2,
    workers: int | None = None,
) -> Kind:
    """Return a channel with the setting under which these people's observations are most probable.

    The marginal log-likelihood of random intercepts is followed uphill over the values to try, from the one
    nearest to the channel's own setting, and then between the best of them and its neighbours. It is taken to
    have one peak.

    Parameters
    ----------
    channel : Channel
        A channel with a setting to choose; one that has none comes back as it is.
    cohort : Cohort or DataFrame
        The people to learn from, or their segments. Judge the choice on others.
    setting : str, optional
        Which setting; the channel's only one that can be tuned if left out.
    values : sequence of float, optional
        The values to try, in order; the channel's own (:attr:`fidm.channels.Channel.tunable`) if left out.
    refine : int
        How often the gap between the best value and its neighbours is halved.
    workers : int, optional
        Threads; changes no number.

    Examples
    --------
    >>> import fidm, numpy as np, polars as pl
    >>> from fidm.fit.tuning import tuned
    >>> rng = np.random.default_rng(1)
    >>> seconds = rng.gamma(2.0, 1.0, 400) ** 2  # so the square root is Gamma
    >>> segments = pl.DataFrame(
    ...     {"participant": [f"P{j // 20}" for j in range(400)], "segment": range(400), "wait_s": seconds}
    ... )
    >>> channel = fidm.channels.GeneralizedGamma("wait", "wait_s", design=())
    >>> 0.2 < tuned(channel, segments).power < 0.8
    True
    """
    if setting is None and values is None and not channel.tunable:
        return channel
    name = setting or _only(channel)
    tried = tuple(channel.tunable.get(name, ()) if values is None else values)
    if not tried or not hasattr(channel, name):
        can = ", ".join(channel.tunable) or "none"
        raise FitError(f"{channel.name} has no values to try for {name!r}; it can tune: {can}.")
    people = as_cohort(cohort)
    levels = text_levels([channel], people)
    seen = _seen(channel, people, levels)
    reached: dict[float, float] = {}

    def at(value: float) -> float:
        if value not in reached:
            reached[value] = _marginal(_with(channel, name, value), seen, levels, threads(workers))
        return reached[value]

    best = _uphill(at, tried, getattr(channel, name))
    for _ in range(refine):
        known = sorted(reached)
        place = known.index(best)
        between = [0.5 * (best + known[i]) for i in (place - 1, place + 1) if 0 <= i < len(known)]
        best = max([best, *(value for value in between if _allowed(channel, name, value))], key=at)
    if not math.isfinite(at(best)):
        random_intercepts(_with(channel, name, best), seen, design_names(channel, levels), 1)  # says why
    return _with(channel, name, best)


def _only(channel: Channel) -> str:
    """The one setting of a channel that can be tuned."""
    if len(channel.tunable) != 1:
        raise FitError(f"{channel.name} has {len(channel.tunable)} settings to tune; name one with setting=…")
    return next(iter(channel.tunable))


def _seen(channel: Channel, people: Cohort, levels: Levels) -> Observed:
    refuse(effort_problems([channel], people), remedy="Repair them, or leave these observations empty.")
    return observed([channel], people, levels)[0]


def _with(channel: Kind, name: str, value: float) -> Kind:
    """The same channel with another setting; whole numbers stay whole."""
    changes: dict[str, Any] = {name: type(getattr(channel, name))(value)}
    return replace(channel, **changes)


def _allowed(channel: Channel, name: str, value: float) -> bool:
    """Whether a channel may have this setting."""
    try:
        _with(channel, name, value)
    except DataError:
        return False
    return True


def _marginal(channel: Channel, seen: Observed, levels: Levels, workers: int) -> float:
    """The marginal log-likelihood of everybody's observations; −∞ where the channel cannot be fitted."""
    try:
        names = design_names(channel, levels)
        learned = random_intercepts(channel, seen, names, workers, tolerance=ROUGHLY, errors=False)
    except FitError:
        return -math.inf
    return math.fsum(log_likelihoods(channel, seen, learned.population, workers=workers))


def _uphill(at: Callable[[float], float], values: Sequence[float], start: float) -> float:
    """The best of values in order, found by going uphill from the one nearest to a start."""
    place = min(range(len(values)), key=lambda i: abs(values[i] - start))
    for step in (1, -1):
        while 0 <= place + step < len(values) and at(values[place + step]) > at(values[place]):
            place += step
    return values[place]
