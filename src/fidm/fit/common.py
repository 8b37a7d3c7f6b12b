"""What every way of fitting shares: options, threads, who is learned from, and what is said of estimates.

The effort factor on its own: what people share in every channel, and everybody's offsets.

The factorized fit and the fit of effort without a task are both made of these pieces.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from numbers import Real
from typing import Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from fidm.cohort import Cohort
from fidm.errors import FitError, at_least, count
from fidm.fit import offsets, sensitivity
from fidm.fit.kinds import Kinds, Likelihood
from fidm.fit.offsets import REPORT_NODES, Estimates, OwnKinds, Population
from fidm.fit.population import (
    TOLERANCE,
    Learned,
    check_design,
    degrees,
    enough_people,
    pooled,
    pooled_errors,
    pooled_prior,
    random_intercepts,
)
from fidm.fit.profile import (
    ALIKE,
    AT_EDGE,
    AT_RANDOM,
    AT_ZERO,
    FEW_ACTIONS,
    FEW_OBSERVATIONS,
    FEW_SEGMENTS,
    FEWEST_FOR_SHARES,
    LONGER_THAN_LEARNED,
    LOW_INFORMATION,
    MOVES_IN_DOUBT,
    NEAR_CHANCE,
    NO_MAXIMUM,
    NO_OBSERVATION,
    NOT_ESTIMATED,
    OK,
    SENSITIVITY,
    TOLD_APART,
    told_apart,
)
from fidm.fit.sensitivity import Sensitivities
from fidm.model.action import Choices, choices_of, count_inferred, no_choices
from fidm.model.channels import Channel
from fidm.model.effort import (
    Levels,
    Observed,
    cohort_problems,
    design_names,
    effort_problems,
    in_doubt,
    observed,
    refuse,
    without_longer,
)
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Flags, Floats, Integers, Progress

Method = Literal["eb", "mle"]
PopulationKind = Literal["random", "pooled"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A cohort as the two factors see it; without a task there are no choices.

    How many steps of each person would count if none were inferred, and how many of these are, is NaN where
    the cohort does not say. ``longer`` and ``in_doubt`` say per channel [P] whose every segment has far more
    moves than any that is learned from, and of whom over half of the moves that effort is held against are in
    doubt.
    """

    choices: Choices
    effort: tuple[Observed, ...]  # by channel, but of those whose segments are too long
    n_steps: Floats
    n_inferred: Floats
    longer: Sequence[Flags]
    in_doubt: Sequence[Flags]

    @classmethod
    def of(
        cls,
        tasks: TaskSet,
        q: Floats,
        channels: Sequence[Channel],
        levels: Levels,
        cohort: Cohort,
        *,
        need_columns: bool,
        inferred: float,
        longest: float = np.inf,
    ) -> Data:
        """Check a cohort and lay out its choices and observations."""
        followed = follow(tasks, cohort)
        refuse(cohort_problems(tasks, channels, cohort, followed))
        choices = choices_of(tasks, q, cohort, followed, inferred=inferred)
        counts = count_inferred(tasks, cohort, followed)
        return cls(choices, *_effort(channels, levels, cohort, need_columns, longest, counts))

    @classmethod
    def of_effort(
        cls,
        channels: Sequence[Channel],
        levels: Levels,
        cohort: Cohort,
        *,
        need_columns: bool,
        longest: float = np.inf,
    ) -> Data:
        """Check the segments of a cohort and lay out what was observed in them."""
        refuse(effort_problems(channels, cohort), hint="Repair them, or leave these observations empty.")
        unknown = np.full(len(cohort), np.nan)
        counts = unknown, unknown
        return cls(no_choices(len(cohort)), *_effort(channels, levels, cohort, need_columns, longest, counts))

    def with_known(self, known: Mapping[str, Floats], channels: Sequence[Channel]) -> Data:
        """Return the same with covariates of the people that the means of parameters depend on, by name."""
        effort = [
            replace(seen, known=known.get(channel.name))
            for channel, seen in zip(channels, self.effort, strict=True)
        ]
        return replace(
            self, choices=replace(self.choices, known=known.get(SENSITIVITY)), effort=tuple(effort)
        )

    def seen(self) -> list[Flags]:
        """Return who was observed in choices, and in each channel, [P] each."""
        return [np.diff(self.choices.person_offsets) > 0, *(one.counts > 0 for one in self.effort)]

    def n_told(self) -> int:
        """Return of how many people there are choices or observations that tell anything."""
        return int(np.any(self.seen(), axis=0).sum())

    def __len__(self) -> int:
        return len(self.n_steps)


def _effort(
    channels: Sequence[Channel],
    levels: Levels,
    cohort: Cohort,
    need_columns: bool,
    longest: float,
    counts: tuple[Floats, Floats],
) -> tuple[tuple[Observed, ...], Floats, Floats, Sequence[Flags], Sequence[Flags]]:
    """What was observed, with what is to be said of it; ``counts`` are handed on."""
    effort = observed(channels, cohort, levels, required=need_columns)
    doubt = in_doubt(cohort, effort)
    effort, longer = without_longer(channels, effort, cohort, longest)
    return effort, *counts, longer, doubt


def plain_algebra(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function do its linear algebra on one thread.

    Its matrices are small, and people are dealt to threads already: more of them wait for each other.
    """

    @functools.wraps(function)
    def plain(*args: Given.args, **options: Given.kwargs) -> Result:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return plain


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through every library that is loaded


def valid_lapse(lapse: float | Literal["estimate"]) -> float | None:
    """Return a lapse rate, None if it is to be estimated, or say what it must be."""
    if isinstance(lapse, str) and lapse == "estimate":
        return None
    if isinstance(lapse, bool) or not (isinstance(lapse, Real) and 0 <= lapse < 1):
        raise FitError(f"lapse is {lapse!r}; it must be 'estimate' or a number from 0 to below 1.")
    return float(lapse)


def default_lapse(lapse: float | Literal["estimate"] | None, method: str) -> float | Literal["estimate"]:
    """Return the lapse rate asked for; by default empirical Bayes estimates it, and mle has none."""
    if lapse is not None:
        return lapse
    return "estimate" if method == "eb" else 0.0


def valid_inferred(inferred: float) -> float:
    """Return how much an inferred move counts, or say what it must be."""
    if isinstance(inferred, bool) or not (isinstance(inferred, Real) and 0 <= inferred <= 1):
        raise FitError(
            f"inferred is {inferred!r}; it must be a number from 0 (inferred moves are left out) to 1 (they "
            "count like any other)."
        )
    return float(inferred)


def valid_level(level: float) -> None:
    """Raise unless a level lies between 0 and 1."""
    if isinstance(level, bool) or not (isinstance(level, Real) and 0 < level < 1):
        raise FitError(f"level is {level!r}; it must lie between 0 and 1.")


def action_status(
    action: Sensitivities, n: NDArray[np.int64], log_se: Floats, informed: float
) -> NDArray[np.int8]:
    """Return what is to be said about everybody's sensitivity, as codes."""
    status = np.full(len(n), OK, dtype=np.int8)
    status[~(log_se <= informed)] = LOW_INFORMATION
    status[n < FEW_ACTIONS] = FEW_OBSERVATIONS
    status[action.near_zero] = NEAR_CHANCE
    status[action.where == sensitivity.AT_ZERO] = AT_ZERO
    status[action.where == sensitivity.NO_MAXIMUM] = NO_MAXIMUM
    if action.random is not None:  # a posterior, whose interval does not show what the choices leave open
        few_at_zero = (action.where == sensitivity.AT_ZERO) & (n < FEW_ACTIONS)
        status[action.near_zero | few_at_zero] = NEAR_CHANCE
        status[action.random > 0.5] = AT_RANDOM
    status[action.where == sensitivity.UNDEFINED] = NO_OBSERVATION
    return status


def effort_status(
    channel: Channel, seen: Observed, se: Floats, informed: float, *, in_doubt: Flags, longer: Flags
) -> NDArray[np.int8]:
    """Return what is to be said about everybody's offset in a channel, as codes."""
    status = np.full(len(se), OK, dtype=np.int8)
    status[~(se <= informed)] = LOW_INFORMATION
    status[seen.counts < FEW_SEGMENTS] = FEW_OBSERVATIONS
    status[in_doubt] = MOVES_IN_DOUBT
    at_low, at_high = offsets.edges(channel, seen)
    status[at_low | at_high] = AT_EDGE
    status[seen.counts == 0] = NO_OBSERVATION
    status[longer] = LONGER_THAN_LEARNED
    return status


def leave_empty(columns: Mapping[str, Floats], status: NDArray[np.int8], alike: NDArray[np.bool_]) -> None:
    """Take out, in place, what rests on nothing: people not observed, parameters in which all are alike.

    ``columns`` are arrays [P, K], ``alike`` says of which parameters.
    """
    status[:, alike] = np.maximum(status[:, alike], ALIKE)
    empty = np.isin(status, NOT_ESTIMATED)
    for values in columns.values():
        values[empty] = np.nan


def drawn(cohort: Cohort, most: int | None) -> Cohort:
    """Return at most so many people, those whose ids have the smallest hash, in any order the same."""
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 2):
        raise FitError(f"max_people is {most!r}; it must be a whole number, 2 or more, or None.")
    if most is None or len(cohort) <= most:
        return cohort
    return cohort[np.sort(smallest_hashes(cohort.ids.to_list(), most))]


def smallest_hashes(ids: Sequence[str], most: int) -> NDArray[np.int64]:
    """Return the rows of the ids with the smallest hashes: a draw that no order or batch changes."""
    keys = np.array([id_hash(i) for i in ids], np.uint64)
    return np.asarray(np.argsort(keys, kind="stable")[:most])


def id_hash(name: str) -> int:
    """Return a number that belongs to a name, the same everywhere."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def threads(workers: int | None) -> int:
    """Return how many threads to use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    at_least("workers", workers, 1, FitError)
    return workers


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
    clusters: Integers | None = None,
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
    clusters : int array [P], optional
        People of the same cluster may go together.
    """
    names = design_names(channel, levels)
    try:
        if population == "random":
            return random_intercepts(
                channel, seen, names, workers,
                tolerance=tolerance, errors=errors, plausible=method == "eb" and errors, clusters=clusters,
            )  # fmt: skip
        shared = pooled(channel, seen, names)
        if method == "mle":
            return Learned(shared, pooled_errors(channel, seen, shared, names) if errors else {})
        return pooled_prior(channel, seen, shared, workers, clusters)
    except FitError as error:
        error.channel = channel.name
        raise


def learn_populations(
    channels: Sequence[Channel],
    data: Data,
    levels: Levels,
    *,
    by_name: bool,
    method: str,
    population: str,
    workers: int,
    on_progress: Progress | None = None,
    before: int = 0,
    clusters: Integers | None = None,
) -> tuple[dict[str, Learned], list[str]]:
    """Learn what people share in every channel, and say which cannot be learned and why.

    Parameters
    ----------
    channels, data, levels, method, population, workers, clusters
        As in :func:`learn_population`.
    by_name : bool
        Whether the channels were asked for by name, so that one that cannot be learned is an error.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    before : int
        How many steps were done before.
    """
    found: dict[str, Learned] = {}
    notes = []
    for i, (channel, seen) in enumerate(zip(channels, data.effort, strict=True), start=before):
        if on_progress:
            on_progress(channel.name, i, before + len(channels))
        try:
            learned = learn_population(
                channel,
                seen,
                levels,
                method=method,
                population=population,
                workers=workers,
                clusters=clusters,
            )
            some = seen.counts > 0
            freedom = degrees(some, _n_learned(channel, learned.population), clusters)
            found[channel.name] = replace(learned, n_people=int(some.sum()), freedom=freedom)
        except FitError as error:
            if by_name:
                raise
            notes.append(f"{channel.name} is left out: {error}")
    if on_progress:
        on_progress("done", before + len(channels), before + len(channels))
    return found, notes


def _n_learned(channel: Channel, shared: Population) -> int:
    """How many numbers of a population are learned."""
    slopes = 0 if shared.slopes is None else len(shared.slopes)
    return len(shared.coefficients) + slopes + bool(channel.shape_name) + 1


def can_be_learned(
    channels: Sequence[Channel], data: Data, levels: Levels, *, by_name: bool
) -> tuple[tuple[Channel, ...], tuple[Observed, ...], list[str]]:
    """Return the channels that can be learned, their observations, and why others cannot.

    Where channels were asked for by name, one that cannot be learned is an error.
    """
    found, notes = [], []
    for channel, seen in zip(channels, data.effort, strict=True):
        try:
            check_design(channel, seen, design_names(channel, levels))
            enough_people(channel, seen)
            found.append((channel, seen))
        except FitError as error:
            if by_name:
                error.channel = channel.name
                raise
            notes.append(f"{channel.name} is left out: {error}")
    return tuple(channel for channel, _ in found), tuple(seen for _, seen in found), notes


def own_offsets(
    channel: Channel,
    seen: Observed,
    learned: Learned,
    *,
    method: str,
    level: float,
    workers: int = 1,
    kinds: OwnKinds | None = None,
) -> Estimates:
    """Return everybody's θ in a channel, by maximum likelihood or as the posterior's mean."""
    shared = learned.population
    if method == "mle":
        return offsets.maximum(channel, seen, shared, level=level, workers=workers)
    if learned.plausible is None:
        return offsets.posterior(channel, seen, shared, level=level, workers=workers, kinds=kinds)[0]
    return offsets.integrated(
        channel, seen, shared, learned.plausible, level=level, workers=workers, kinds=kinds
    )


def informed(prior_sd: float, method: str, n_people: int = 0) -> float:
    """Return the standard error above which an estimate is called poorly informed.

    Maximum likelihood takes what people share as known, which it is not if learned from a few (``n_people``).
    """
    if method == "eb":
        return 0.8 * prior_sd
    return 0.0 if 0 < n_people < FEWEST_FOR_SHARES else 1.0


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


# ---------------------------------------------------------------------- people alike, or of several kinds

CHECKED = 400
"""How many people tell whether a parameter can tell people apart."""


def alike_in(
    channels: Sequence[Channel], effort: Sequence[Observed], populations: Mapping[str, Learned]
) -> list[str]:
    """Return the channels in which people differ too little to be told apart."""
    found = []
    for channel, seen in zip(channels, effort, strict=True):
        learned = populations[channel.name]
        se = offsets.posterior(channel, seen, learned.population, level=0.95)[0].se[seen.counts > 0]
        if told_apart(se, learned.population.sd, learned.sd_range()[1]) < TOLD_APART:
            found.append(channel.name)
    return found


def effort_likelihoods(
    channels: Sequence[Channel], effort: Sequence[Observed], populations: Mapping[str, Learned]
) -> list[Likelihood]:
    """Return everybody's likelihood of every offset, to tell what kind of person they are."""
    found = []
    for channel, seen in zip(channels, effort, strict=True):
        shared = populations[channel.name].population
        centre, scale, log = bare(channel, shared, seen)
        means = np.broadcast_to(shared.means(seen), len(centre))[:, None]
        at = (centre[:, None] + scale[:, None] * REPORT_NODES - means) / shared.sd
        found.append(Likelihood(at, np.exp(log - log.max(axis=1)[:, None]) * scale[:, None]))
    return found


def bare(channel: Channel, shared: Population, seen: Observed) -> list[Floats]:
    """Return centre, scale and log-likelihood on nodes; the prior that placed the nodes is taken out."""

    def chunk(part: Observed) -> tuple[Floats, Floats, Floats]:
        centre, scale, density = offsets.on_nodes(channel, part, shared, REPORT_NODES)
        means = np.broadcast_to(shared.means(part), len(centre))[:, None]
        away = (centre[:, None] + scale[:, None] * REPORT_NODES - means) / shared.sd
        return centre, scale, density + 0.5 * away**2

    return [np.concatenate(column) for column in zip(*offsets.in_chunks(seen, chunk, 1), strict=True)]


FEW_LEARNERS = 30
"""Below so many people, what they share is known too badly to be taken as known."""


def said_of_people(
    alike: Sequence[str], kinds: Kinds | None, *, method: str, channels: Sequence[Channel], n: int
) -> list[str]:
    """Return what is to be said where people are alike, of two kinds, or too few for maximum likelihood."""
    found = [
        f"{name}: people differ too little to be told apart, so nobody has an estimate." for name in alike
    ]
    if method == "mle" and channels and n < FEW_LEARNERS:
        found.append(
            "By maximum likelihood intervals of effort take what people share as known. Learned from "
            f"{count(n, 'person', 'people')}, it is not, and they are too narrow; empirical Bayes allows for "
            "that."
        )
    if kinds is not None:
        shares = " and ".join(f"{share:.0%}" for share in sorted(kinds.share, reverse=True))
        found.append(f"People are of two kinds ({shares}); each is drawn towards their own.")
    return found
