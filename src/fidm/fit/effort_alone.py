"""Effort without a task: what each segment cost people, where there are no choices to explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.defaults import MAX_PEOPLE
from fidm.errors import FitError
from fidm.fit.common import (
    CHECKED,
    alike_in,
    drawn,
    effort_likelihoods,
    learn_population,
    leave_empty,
    log_likelihoods,
    offset_status,
    one_of,
    own_offsets,
    plain_algebra,
    population_rows,
    said_of_people,
    threads,
    valid_channels,
    valid_level,
)
from fidm.fit.factorized import Method, PopulationKind
from fidm.fit.kinds import MOST_PEOPLE, Kinds, learn_kinds
from fidm.fit.offsets import OwnKinds, Population
from fidm.fit.population import Learned
from fidm.fit.profile import Profile
from fidm.model.channels import Channel
from fidm.model.effort import Levels, Observed, effort_problems, observed, paper_channels, refuse, text_levels
from fidm.types import Progress


@plain_algebra
def fit_effort(
    cohort: Cohort | pl.DataFrame | Any,
    channels: Channel | Sequence[Channel] | None = None,
    *,
    method: Method = "eb",
    population: PopulationKind = "random",
    level: float = 0.95,
    max_people: int | None = MAX_PEOPLE,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> EffortFit:
    """Learn what segments cost people, given what they hold, where there is no decision task.

    This is the effort factor of :class:`fidm.Model` alone: the same channels, the same populations, the same
    offsets θ. Speech that comes without choices (route instructions, picture descriptions) can be fitted so.

    Parameters
    ----------
    cohort : Cohort or DataFrame
        The people to learn from; or their segments, as a table with the columns ``participant``, ``segment``
        and the observations (see :meth:`fidm.Cohort.from_segments`).
    channels : Channel, or several, optional
        The effort channels; those of the paper whose columns the segments have, if left out. Their design
        may be ``()``, or name any columns of the segments.
    method : {"eb", "mle"}
        Whether people's θ are shrunk by a prior learned from them, or those of highest likelihood.
    population : {"random", "pooled"}
        Whether coefficients and shapes are fitted with a random intercept per person, or to all segments as
        if they came from one person.
    level : float
        The level of intervals.
    max_people : int or None
        Learn from at most so many people, those whose ids have the smallest hash; None takes all.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm, numpy as np, polars as pl
    >>> rng = np.random.default_rng(1)
    >>> who = np.repeat(np.arange(20), 10)
    >>> spoken = rng.gamma(3.0, np.exp(rng.normal(0, 0.5, 20))[who])
    >>> segments = pl.DataFrame(
    ...     {"participant": [f"P{j}" for j in who], "segment": range(200), "duration_s": spoken}
    ... )
    >>> fit = fidm.fit_effort(segments, fidm.channels.Gamma("duration", "duration_s", design=()))
    >>> fit.parameters
    ('duration',)
    >>> profile = fit.profile(segments)
    >>> profile.table.columns[:4]
    ['participant', 'parameter', 'estimate', 'se']
    """
    one_of("method", method, ("eb", "mle"))
    one_of("population", population, ("random", "pooled"))
    valid_level(level)
    people = as_cohort(cohort)
    if not len(people):
        raise FitError("There is nobody to learn from.")
    if channels is None:
        found = tuple(c for c in paper_channels() if c.column in people.segments.columns)
    else:
        found = valid_channels(channels)
    if not found:
        columns = ", ".join(dict.fromkeys(channel.column for channel in paper_channels()))
        raise FitError(
            f"There is no effort channel to fit. The paper's are observed in {columns}; name your own with "
            "channels=[…]. For choices without effort see fidm.fit_choices."
        )
    learners = drawn(people, max_people)
    say = on_progress or (lambda doing, done, of: None)
    levels = text_levels(found, learners)
    effort = _observations(found, learners, levels, required=True)
    populations: dict[str, Learned] = {}
    notes: list[str] = []
    for i, (channel, seen) in enumerate(zip(found, effort, strict=True)):
        say(channel.name, i, len(found))
        try:
            populations[channel.name] = learn_population(
                channel, seen, levels, method=method, population=population, workers=threads(workers)
            )
        except FitError as error:
            if channels is not None:  # it was asked for by name
                raise
            notes.append(f"{channel.name} is left out: {error}")
    if not populations:
        raise FitError(f"There is no effort channel that can be fitted. {' '.join(notes)}")
    say("done", len(found), len(found))
    kept = tuple(channel for channel in found if channel.name in populations)
    fit = EffortFit(
        kept, levels, populations, method, population, level, len(people), len(learners), tuple(notes)
    )
    return fit.with_people(learners) if method == "eb" else fit


@dataclass(frozen=True, slots=True, eq=False)
class EffortFit:
    """What people share in their effort, learned from a training part; profiles anybody.

    Parameters
    ----------
    channels, levels
        The effort channels, and the levels of text columns they are conditioned on.
    populations : mapping of str to Learned
        Coefficients, shape and prior of every channel, with standard errors.
    method, population, level
        As given to :func:`fit_effort`.
    n_people, n_learned : int
        How many people the training part had, and how many were learned from.
    notes : tuple of str
        Which of the paper's channels were left out, and why.
    alike : tuple of str
        The channels in which people differ too little to be told apart.
    kinds : Kinds or None
        Kinds of people, if there is clearly more than one.
    """

    channels: tuple[Channel, ...]
    levels: Levels
    populations: Mapping[str, Learned]
    method: str
    population: str
    level: float
    n_people: int
    n_learned: int
    notes: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    kinds: Kinds | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of a person's parameters: the channels."""
        return tuple(channel.name for channel in self.channels)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said against the population parameters."""
        found = [warning for learned in self.populations.values() for warning in learned.warnings]
        return (
            *self.notes,
            *found,
            *said_of_people(
                self.alike, self.kinds, method=self.method, channels=self.channels, n=self.n_learned
            ),
        )

    def with_people(self, learners: Cohort) -> EffortFit:
        """Return the same fit, knowing in what people are alike, and whether they are of several kinds."""
        some = _observations(self.channels, drawn(learners, CHECKED), self.levels)
        more = _observations(self.channels, drawn(learners, MOST_PEOPLE), self.levels)
        return replace(
            self,
            alike=tuple(alike_in(self.channels, some, self.populations)),
            kinds=learn_kinds(effort_likelihoods(self.channels, more, self.populations)),
        )

    def profile(self, cohort: Cohort | pl.DataFrame | Any, *, workers: int | None = None) -> Profile:
        """Estimate θ of every person of a cohort, whether or not they were in the training part.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The people, or their segments.
        workers : int, optional
            Threads; changes no number.

        Returns
        -------
        Profile
            Of the channels alone: there is no ``action_sensitivity`` in it.
        """
        people = as_cohort(cohort)
        effort = _observations(self.channels, people, self.levels)
        shared = [self._shared(channel) for channel in self.channels]
        pieces = list(zip(self.channels, effort, shared, strict=True))
        own: Sequence[OwnKinds | None] = [None] * len(self.channels)
        if self.kinds is not None and len(people):
            own = self.kinds.own(effort_likelihoods(self.channels, effort, self.populations))
        found = [
            own_offsets(
                channel,
                seen,
                self.populations[channel.name],
                method=self.method,
                level=self.level,
                workers=threads(workers),
                kinds=kinds,
            )
            for channel, seen, kinds in zip(self.channels, effort, own, strict=True)
        ]
        status = [
            offset_status(*piece, one.se, method=self.method)
            for piece, one in zip(pieces, found, strict=True)
        ]
        columns = {
            name: np.stack([getattr(one, name) for one in found], axis=1)
            for name in ("estimate", "se", "low", "high")
        }
        statuses = np.stack(status, axis=1)
        leave_empty(columns, statuses, np.array([name in self.alike for name in self.parameters]))
        unknown = np.full(len(people), np.nan)
        return Profile(
            participants=people.ids,
            parameters=self.parameters,
            estimate=columns["estimate"],
            se=columns["se"],
            low=columns["low"],
            high=columns["high"],
            status=statuses,
            n=np.stack([seen.counts for seen in effort], axis=1),
            log_sensitivity=unknown,
            log_sensitivity_se=unknown,
            random=unknown,
            method=self.method,
            level=self.level,
            prior_sd=np.array([one.sd for one in shared]),
            n_steps=unknown,
            n_inferred=unknown,
        )

    def log_likelihood(
        self,
        cohort: Cohort | pl.DataFrame | Any,
        *,
        at: Literal["prior", "estimate"] = "prior",
        workers: int | None = None,
    ) -> pl.DataFrame:
        """Return how probable each person's observations are, by channel.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The people, or their segments.
        at : {"prior", "estimate"}
            Averaged over the prior of θ, which does not reward having fitted the person and so suits
            comparisons on people left out; or at each person's own estimate.
        workers : int, optional
            Threads; changes no number.

        Returns
        -------
        DataFrame
            ``participant``, one column per channel, and their ``total``. A person without observations in a
            channel has 0 there.
        """
        one_of("at", at, ("prior", "estimate"))
        if at == "prior" and not all(np.isfinite(self._shared(channel).sd) for channel in self.channels):
            raise FitError("This fit has no priors to average over; fit with method='eb'.")
        people = as_cohort(cohort)
        own = None if at == "prior" else self.profile(people, workers=workers).estimate
        columns = {
            channel.name: log_likelihoods(
                channel,
                seen,
                self._shared(channel),
                None if own is None else own[:, k],
                workers=threads(workers),
            )
            for k, (channel, seen) in enumerate(
                zip(self.channels, _observations(self.channels, people, self.levels), strict=True)
            )
        }
        table = pl.DataFrame({"participant": people.ids, **columns})
        return table.with_columns(total=pl.sum_horizontal(pl.exclude("participant")))

    def population_table(self) -> pl.DataFrame:
        """Return every population parameter with its standard error."""
        rows = population_rows(self.channels, self.populations, self.levels, self.population)
        names = ("parameter", "quantity", "estimate", "se")
        return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("se").fill_nan(None))

    def _shared(self, channel: Channel) -> Population:
        return self.populations[channel.name].population

    def __repr__(self) -> str:
        return (
            f"EffortFit({', '.join(self.parameters)}; method={self.method!r}, "
            f"population={self.population!r}; learned from {self.n_learned:,} people)"
        )


def as_cohort(people: Cohort | pl.DataFrame | Any) -> Cohort:
    """Return a cohort as it is, or one made of a table of segments."""
    return people if isinstance(people, Cohort) else Cohort.from_segments(people)


def _observations(
    channels: Sequence[Channel], cohort: Cohort, levels: Levels, *, required: bool = False
) -> tuple[Observed, ...]:
    """Check the segments of a cohort and lay out what was observed."""
    refuse(effort_problems(channels, cohort), remedy="Repair them, or leave these observations empty.")
    return observed(channels, cohort, levels, required=required)
