"""What experiments share: learning what can be learned, what was learned, and people who belong together.

A channel that people tell nothing about is left out of a fit, with the reason why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.fit.effort_alone import EffortFit
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.model.channels import Channel
from fidm.simulate.cohort import Truth
from fidm.tasks.model import TaskModel
from fidm.types import Values

AnyFit = TypeVar("AnyFit", bound=Fit | EffortFit)


def fit_learnable(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    channels: Sequence[Channel],
    *,
    method: Literal["eb", "mle"] = "eb",
    values: Sequence[Values] | None = None,
    workers: int | None = None,
) -> tuple[Fit, dict[str, str]]:
    """Fit a model with those channels that these people tell something about, and say why others are not.

    Parameters
    ----------
    tasks, cohort, channels, method, values, workers
        As in :class:`fidm.Model` and :meth:`fidm.Model.fit`.

    Returns
    -------
    fit : Fit
        With the channels that could be learned.
    failures : dict
        Why each of the others could not, by its name.
    """
    failures: dict[str, str] = {}
    wanted = []
    for channel in channels:
        if channel.column in cohort.segments.columns:
            wanted.append(channel)
        else:
            failures[channel.name] = f"The segments have no column {channel.column}."

    def fit(channels: Sequence[Channel]) -> Fit:
        return Model(tasks, channels=channels, values=values).fit(cohort, method=method, workers=workers)

    try:
        return fit(wanted), failures
    except FitError:
        fit(())  # raises if it is not a channel's fault
    kept = []
    for channel in wanted:
        try:
            fit((channel,))
        except FitError as error:
            failures[channel.name] = error.message
        else:
            kept.append(channel)
    return fit(kept), failures


def learned_truth(fit: Fit) -> dict[str, Truth]:
    """Return the population values of a fit's channels as those to draw effort from, by channel."""
    found = {}
    for name, learned in fit.populations.items():
        intercept, slope = map(float, learned.population.coefficients)
        found[name] = Truth(intercept, slope, float(learned.population.shape))
    return found


def by_method(fit: AnyFit, method: Literal["eb", "mle"]) -> AnyFit:
    """Return the same population with people estimated one parameter at a time by this method."""
    changes: dict[str, Any] = {"method": method, **({"joint": None} if isinstance(fit, Fit) else {})}
    return replace(fit, **changes)


def groups_of(people: Cohort, together: str | None) -> NDArray[np.int64]:
    """Return the number of the group each person belongs to, [P]; everybody their own if none is asked for.

    Parameters
    ----------
    people : Cohort
        The people.
    together : str, optional
        A column of the participants: people with the same value belong together, and those without a value
        to nobody.
    """
    if together is None:
        return np.arange(len(people))
    if together not in people.participants.columns:
        raise DataError(f"The participants have no column {together!r}.")
    values = people.participants[together].cast(pl.String)
    names = [f"={value}" if value is not None else f"?{j}" for j, value in enumerate(values)]
    return np.unique(np.array(names), return_inverse=True)[1].astype(np.int64)
