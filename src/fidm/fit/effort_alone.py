"""Effort without a task: what each segment cost people, where there are no choices to explain."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from fidm.cohort import Cohort
from fidm.defaults import MAX_PEOPLE
from fidm.errors import DataError, FitError, one_of
from fidm.fit import offsets
from fidm.fit.common import (
    CHECKED,
    Data,
    Method,
    PopulationKind,
    alike_in,
    drawn,
    effort_likelihoods,
    effort_status,
    informed,
    learn_populations,
    leave_empty,
    log_likelihoods,
    own_offsets,
    plain_algebra,
    population_rows,
    said_of_people,
    threads,
    valid_channels,
    valid_level,
)
from fidm.fit.draws import AT_ONCE, Draws, Noise, draw_offsets, elpd_of
from fidm.fit.kinds import MOST_PEOPLE, Kinds, Likelihood, learn_kinds
from fidm.fit.offsets import OwnKinds, Population
from fidm.fit.population import Learned, effort_without_each, errors_of
from fidm.fit.profile import PER_PERSON, SENSITIVITY, Profile
from fidm.fit.regression import Formulas, Layout, clusters_of, layouts_of, say_rare, variables, wald
from fidm.model.channels import Channel
from fidm.model.effort import Levels, far_longer, paper_channels, text_levels, without_constants
from fidm.types import Floats, Progress

if TYPE_CHECKING:
    import arviz

BATCH = 50_000
"""How many people are profiled at a time."""

FEWEST_PER_THREAD = 500
"""A thread is not worth its while for fewer people."""


@plain_algebra
def fit_effort(
    cohort: Cohort | pl.DataFrame | Any,
    channels: Channel | Sequence[Channel] | None = None,
    *,
    method: Method = "eb",
    population: PopulationKind = "random",
    regress: Formulas | None = None,
    cluster: str | None = None,
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
    regress, cluster
        What the mean of θ depends on, as in :class:`fidm.Model`.
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
    one_of("method", method, ("eb", "mle"), FitError)
    one_of("population", population, ("random", "pooled"), FitError)
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
    found, constant = without_constants(found, learners)
    levels = text_levels(found, learners)
    _, longest = far_longer(learners)
    data = Data.of_effort(found, levels, learners, need_columns=True, longest=longest)
    names = [one.name for one in found]
    layouts, known = layouts_of(regress, names, learners, method, cluster)
    data = data.with_known(known, found)
    populations, notes = learn_populations(
        found, data, levels, by_name=channels is not None,
        method=method, population=population, workers=threads(workers), on_progress=on_progress,
        clusters=clusters_of(learners.participants, cluster),
    )  # fmt: skip
    if not populations:
        raise FitError(f"There is no effort channel that can be fitted. {' '.join(notes)}")
    layouts = {name: layout for name, layout in layouts.items() if name in populations}
    fit = EffortFit(
        channels=tuple(channel for channel in found if channel.name in populations),
        levels=levels,
        populations=populations,
        method=method,
        population=population,
        level=level,
        n_people=len(people),
        n_learned=data.n_told(),
        notes=(
            *constant,
            *say_rare(layouts, known, learners.participants, dict(zip(names, data.seen()[1:], strict=True))),
            *notes,
        ),
        longest=longest,
        regress=layouts,
    )
    return fit.with_alike(learners).with_kinds(learners) if method == "eb" else fit


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EffortFit:
    """What people share in their effort, learned from a training part; profiles anybody.

    Parameters
    ----------
    channels, levels
        The effort channels, and the levels of text columns they are conditioned on.
    populations : mapping of str to Learned
        Coefficients, shape and prior of every channel, with standard errors. Maximum likelihood learns no
        prior, except the spread that random intercepts have anyway.
    method, population, level
        As given to :func:`fit_effort` or :meth:`Model.fit`.
    n_people, n_learned : int
        How many people the training part had, and how many were learned from.
    kinds : Kinds or None
        The kinds of people there are, where one prior for all is clearly not enough.
    alike : tuple of str
        The parameters in which people differ too little to be told apart.
    notes : tuple of str
        What is to be said of the fit besides: what was found against the tasks and the choices, and what was
        left out.
    longest : float
        How many moves the longest segment has that was learned from. Where all of somebody's are far longer,
        nothing is known of their effort.
    regress : mapping of str to Layout
        How covariates of people are laid out that the means of parameters depend on, by the parameter.
    """

    channels: tuple[Channel, ...]
    levels: Levels
    populations: Mapping[str, Learned]
    method: str
    population: str
    level: float
    n_people: int
    n_learned: int
    kinds: Kinds | None = None
    alike: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    longest: float = np.inf
    regress: Mapping[str, Layout] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of a person's parameters."""
        return tuple(channel.name for channel in self.channels)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said against the population parameters."""
        return tuple(self._said())

    # ------------------------------------------------------------------ people

    def profile(
        self,
        cohort: Cohort | pl.DataFrame | Any,
        *,
        workers: int | None = None,
        on_progress: Progress | None = None,
    ) -> Profile:
        """Estimate every person of a cohort, whether or not they were in the training part.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The people; where there is no task, their segments will do.
        workers : int, optional
            Threads; by default one per processor. Changes no number.
        on_progress : callable, optional
            Called as ``on_progress(doing, done, of)``.

        Returns
        -------
        Profile
            Of :attr:`parameters`: there is no ``action_sensitivity`` in it where there is no task.
        """
        people = as_cohort(cohort)
        parts = []
        for first in range(0, max(1, len(people)), BATCH):
            if on_progress:
                on_progress("profiles", first, len(people))
            parts += self._in_threads(people[first : first + BATCH], threads(workers))
        if on_progress:
            on_progress("profiles", len(people), len(people))
        found: Any = {name: np.concatenate([part[name] for part in parts]) for name in PER_PERSON}
        return Profile(
            participants=people.ids,
            parameters=self.parameters,
            **found,
            method=self.method,
            level=self.level,
            prior_sd=self._prior_sd(),
            prior_sd_range=self._prior_sd_range(),
            inferred=self.inferred,
        )

    def draws(self, cohort: Cohort | pl.DataFrame | Any, n: int = 1_000, *, seed: int) -> Draws:
        """Draw everybody's parameters from the posterior that :meth:`profile` sums up.

        Differences among people, and whatever else is computed draw by draw, then have the right
        uncertainty: doubt about what people share is carried, as all people of one draw are under the same
        population. So is what goes together within a person, by a joint prior or by kinds of people. What
        is not doubted in a profile is not in its draws: correlations of a joint prior, the kinds and the
        share of people who choose at random, and what makes less than 2 % of the variance of estimates.

        Under a joint prior nobody with 20 choices or more is drawn at random, as in the profile's intervals.
        Where nobody's choices allow a prior of η, it has no posterior, and its draws are NaN.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The people. For anybody outside the training part, too, what people share is as it was learned.
        n : int
            How many draws. They take 8 n bytes per person and parameter.
        seed : int
            The same seed and n give the same draws of a person, in any batch and order of people.
        """
        if self.method != "eb":
            raise FitError("Maximum likelihood has no posterior to draw from. Fit with method='eb'.")
        for name, value, least in (("n", n, 1), ("seed", seed, 0)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise FitError(f"{name} is {value!r}; it must be a whole number, {least} or more.")
        people = as_cohort(cohort)
        missing = np.isnan(self.profile(people).estimate)
        values = np.empty((*missing.shape, n))
        for first in range(0, len(people), AT_ONCE):
            some = people[first : first + AT_ONCE]
            noise = Noise.of(some.ids.to_list(), len(self.parameters), n, int(seed))
            values[first : first + AT_ONCE] = np.stack(self._draws(self._data(some), noise), axis=1)
        values[missing] = np.nan
        names = tuple(f"log_{name}" if name == SENSITIVITY else name for name in self.parameters)
        return Draws(people.ids, names, values)

    def log_likelihood(
        self,
        cohort: Cohort | pl.DataFrame | Any,
        *,
        at: Literal["estimate", "prior"] = "prior",
        workers: int | None = None,
    ) -> pl.DataFrame:
        """Return how probable each person's data are, by factor.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The people; where there is no task, their segments will do.
        at : {"estimate", "prior"}
            At each person's own estimate; or averaged over the prior (one parameter at a time), which does
            not reward having fitted the person and so suits comparisons of models on people left out.
        workers : int, optional
            Threads; changes no number.

        Returns
        -------
        DataFrame
            ``participant``, ``action`` where there is a task, one column per channel, and their ``total``. A
            person without observations in a channel has 0 there.
        """
        one_of("at", at, ("estimate", "prior"), FitError)
        if at == "prior":
            self._check_priors()
        people = as_cohort(cohort)
        own = None if at == "prior" else self.profile(people, workers=workers).estimate
        return _with_total(people, self._log_likelihoods(self._data(people), own, threads(workers)))

    def leave_one_out(
        self, cohort: Cohort | pl.DataFrame | Any, *, workers: int | None = None
    ) -> pl.DataFrame:
        """Return how probable each person's data are by what the others share, by factor.

        This is the log-likelihood averaged over the prior, as :meth:`log_likelihood` has it, but under the
        population learned without the person. So it rewards no model for having seen the people it is judged
        by: of two models of the same people, the one with the higher sum predicts a new person better. And
        a person whose value is far below others' with as much data is unlike them.

        Nothing is fitted again. Where doubt about the population matters, the plausible populations are
        weighted as if the person had not been there, and averaged over. Elsewhere the population is moved by
        one Newton step. Held are what the fit decided rather than estimated: levels, how strongly effort is
        carried over, whether there are people who choose at random. Kinds of people and a joint prior play
        no part. With 15 people of 60 actions values are off by 0.02 on average from those of a fit without
        the person that holds the same, with 40 by less than 0.01; from those of an ordinary fit, which
        decides anew, by up to 0.17 in a factor. Effort needs ``population="random"``.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The training part. Anybody else was left out anyway: use :meth:`log_likelihood`.
        workers : int, optional
            Threads; changes no number.

        Returns
        -------
        DataFrame
            ``participant``, ``action`` where there is a task, one column per channel, and their ``total``. A
            person without observations in a channel has 0 there.
        """
        self._check_priors()
        if self.channels and self.population != "random":
            raise FitError(
                "Leaving people out in turn needs random intercepts: a pooled fit does not say how well its "
                "coefficients are known. Fit with population='random'."
            )
        people = as_cohort(cohort)
        return _with_total(people, self._without_each(self._data(people), threads(workers)))

    def elpd(
        self, cohort: Cohort | pl.DataFrame | Any, *, of: str = "total", workers: int | None = None
    ) -> arviz.ELPDData:
        """Return :meth:`leave_one_out` for ``arviz.compare``, which ranks models and gives them weights.

        Parameters
        ----------
        cohort : Cohort or DataFrame
            The training part.
        of : str
            Which factor: a column of :meth:`leave_one_out`. Models are compared in what they have in common.
        workers : int, optional
            Threads; changes no number.
        """
        left_out = self.leave_one_out(cohort, workers=workers)
        if of not in left_out.columns[1:]:
            raise FitError(f"of is {of!r}; there are: {', '.join(left_out.columns[1:])}.")
        inside = self.log_likelihood(cohort, at="prior", workers=workers)
        return elpd_of(left_out["participant"], left_out[of].to_numpy(), inside[of].to_numpy())

    def population_table(self) -> pl.DataFrame:
        """Return every population parameter with its standard error."""
        names = ("parameter", "quantity", "estimate", "se")
        table = pl.DataFrame(self._population_rows(), schema=names, orient="row")
        return table.with_columns(pl.col("se").fill_nan(None))

    def regression_table(self) -> pl.DataFrame:
        """Return how parameters go with covariates, a row per parameter and column of the formula.

        Returns
        -------
        DataFrame
            ``parameter``, ``term`` and ``column`` of its formula, the ``slope`` on the scale of log η or θ
            per unit of the column, its standard error, interval and ``p``-value, ``p_term`` of all columns
            of the term together (Wald's test), the ``sd`` of people after the covariates, the share of
            the differences among people that the covariates have ``explained``, and the column in ``words``:
            a category with the one it is compared with. Empty where nothing is regressed. See
            :meth:`regression_notes`.
        """
        rows = []
        for name, layout in self.regress.items():
            if name not in self.parameters:
                continue
            slopes, covariance, freedom, sd = self._slopes(name)
            se = errors_of(covariance)
            reach = stats.t.ppf(0.5 + 0.5 * self.level, freedom) * se
            p = 2 * stats.t.sf(np.abs(slopes) / se, freedom)
            because = float(slopes @ layout.covariance @ slopes)
            share = because / (because + sd**2)
            for term, columns in layout.terms.items():
                together = wald(slopes, covariance, columns, freedom)
                for k in columns:
                    ends = slopes[k], se[k], slopes[k] - reach[k], slopes[k] + reach[k]
                    column = layout.names[k]
                    rows.append((name, term, column, *ends, p[k], together, sd, share, layout.words(column)))
        numbers = ("slope", "se", "low", "high", "p", "p_term", "sd", "explained")
        schema = dict.fromkeys(("parameter", "term", "column"), pl.String) | dict.fromkeys(
            numbers, pl.Float64
        )
        return pl.DataFrame(rows, schema={**schema, "words": pl.String}, orient="row")

    def regression_notes(self) -> tuple[str, ...]:
        """Return how the slopes of :meth:`regression_table` are to be read.

        They say which category the others are compared with, how to choose another, and at which values of
        the others the slopes of variables are that interact.
        """
        return tuple(dict.fromkeys(note for layout in self.regress.values() for note in layout.notes()))

    def prior_means(self, cohort: Cohort | pl.DataFrame | Any) -> Floats:
        """Return where the prior of each person's parameters is centred, [P, K]; log η comes first.

        It is the same for everybody unless the fit is regressed on covariates.
        """
        people = as_cohort(cohort)
        return self._centre() + self._rises(self.known(people), len(people))

    def shrinkage_table(self, cohort: Cohort | pl.DataFrame | Any) -> pl.DataFrame:
        """Return why each estimate is what it is: what the person's data say, and what other people's do.

        An estimate lies between the two, the nearer to other people the less the data tell:
        ``shrinkage`` is the prior's share of what is known (:attr:`Profile.shrinkage`). Had the prior counted
        half as much, or twice, the estimate would have been ``half`` or ``double``; an estimate that these
        leave where it is rests on the data. They hold exactly for normal posteriors, on the scale of log η
        or θ. Under a joint prior the person's other parameters count among the data of others.

        Returns
        -------
        DataFrame
            A row per person and parameter with an estimate: ``participant``, ``parameter``, ``estimate``,
            ``own`` (by the person's data alone; infinite η where every choice was a best one), ``others``
            (where the prior is centred: people in general, or people like them), ``shrinkage``, ``half``,
            ``double`` and ``n`` choices or segments. Empty under ``"mle"``, which shrinks nothing.
        """
        people = as_cohort(cohort)
        profile, alone = self.profile(people), self._alone().profile(people)
        centre, share = self.prior_means(people), profile.shrinkage
        value = profile.estimate.copy()
        is_log = [name == SENSITIVITY for name in self.parameters]
        value[:, is_log] = profile.log_sensitivity[:, None]

        def natural(values: Floats) -> Floats:
            return np.where(is_log, np.exp(values), values)

        numbers = {
            "estimate": profile.estimate,
            "own": alone.estimate,
            "others": natural(centre),
            "shrinkage": share,
            "half": natural(centre + (value - centre) / (1 - share / 2)),
            "double": natural(centre + (value - centre) / (1 + share)),
        }
        told = pl.col("shrinkage").is_not_null()
        columns = {name: pl.Series(some.reshape(-1), nan_to_null=True) for name, some in numbers.items()}
        return profile.table.select("participant", "parameter", **columns, n="n").filter(told)

    def _alone(self) -> Self:
        """The same with everybody estimated by their own likelihood."""
        return replace(self, method="mle", kinds=None)

    # ------------------------------------------------------------------ what a fit of choices adds to

    @property
    def inferred(self) -> float:
        """How much an inferred move counts in the action likelihood."""
        return 0.0

    def _said(self) -> list[str]:
        """Return the notes, what is to be said against the channels' populations, and of the people."""
        found = [warning for learned in self.populations.values() for warning in learned.warnings]
        if self.regress:
            names = sorted(set().union(*(variables(one.formula) for one in self.regress.values())))
            found.append(
                f"Estimates are drawn towards people with the same {', '.join(names)}. Do not compare people "
                "who differ in these by their estimates: the regression says how parameters go with them."
            )
        return [
            *self.notes,
            *found,
            *said_of_people(
                self.alike, self.kinds, method=self.method, channels=self.channels, n=self.n_learned
            ),
        ]

    def _shared(self, channel: Channel) -> Population:
        """Return what people share in a channel."""
        return self.populations[channel.name].population

    def _prior_sd(self) -> Floats:
        """Return the spread of every parameter among people."""
        return np.array([self._shared(channel).sd for channel in self.channels])

    def _prior_sd_range(self) -> Floats:
        """Return how little and how much people may differ in every parameter, [K, 2]."""
        found = [self.populations[channel.name].sd_range() for channel in self.channels]
        return np.array(found).reshape(-1, 2)

    def _data(self, cohort: Cohort) -> Data:
        """Check a cohort and lay it out as the factors see it."""
        data = Data.of_effort(self.channels, self.levels, cohort, need_columns=False, longest=self.longest)
        return data.with_known(self.known(cohort), self.channels)

    def known(self, cohort: Cohort) -> dict[str, Floats]:
        """Covariates of people, by the parameter whose mean depends on them."""
        different = {layout.formula: layout for layout in self.regress.values()}
        found = {formula: layout.values(cohort.participants) for formula, layout in different.items()}
        return {name: found[layout.formula] for name, layout in self.regress.items()}

    def _slopes(self, name: str) -> tuple[Floats, Floats, float, float]:
        """Slopes of a parameter in its covariates, their covariance, degrees of freedom, and people's sd."""
        learned = self.populations[name]
        assert learned.covariance is not None  # noqa: S101
        return learned.population.slopes, learned.covariance, learned.freedom, float(learned.population.sd)

    def _centre(self) -> Floats:
        """The mean of every parameter among people, [K]."""
        return np.array([self._shared(channel).mean for channel in self.channels], dtype=np.float64)

    def _rises(self, known: Mapping[str, Floats], n: int) -> Floats:
        """By how much covariates move the mean of everybody's parameters, [P, K]."""
        found = np.zeros((n, len(self.parameters)))
        for k, name in enumerate(self.parameters):
            if name in known:
                found[:, k] = offsets.rise(known[name], self._slopes(name)[0])
        return found

    def with_alike(self, learners: Cohort) -> Self:
        """Return the same fit, knowing in which parameters people differ too little to be told apart.

        In those, even if people differed as much as the training part allows, hardly any of the differences
        among estimates would be differences among people.
        """
        return replace(self, alike=tuple(self._alike(self._data(drawn(learners, CHECKED)))))

    def with_kinds(self, learners: Cohort) -> Self:
        """Return the same fit with kinds of people, where there is clearly more than one."""
        return replace(
            self, kinds=learn_kinds(self.kind_likelihoods(self._data(drawn(learners, MOST_PEOPLE))))
        )

    def kind_likelihoods(self, data: Data) -> list[Likelihood]:
        """Return everybody's likelihood of every parameter, to tell what kind of person they are."""
        return effort_likelihoods(self.channels, data.effort, self.populations)

    def _check_priors(self) -> None:
        """Raise unless every parameter has a prior."""
        without = [
            name for name, sd in zip(self.parameters, self._prior_sd(), strict=True) if not sd < np.inf
        ]
        if without:
            why = " ".join(self.notes) if self.method == "eb" else "Fit with method='eb'."
            raise FitError(f"This fit has no prior of {', '.join(without)} to average over. {why}")

    def _without_each(self, data: Data, workers: int) -> dict[str, Floats]:
        """Everybody's log-likelihood by channel, under the population learned without them."""
        return {
            channel.name: effort_without_each(channel, seen, self.populations[channel.name], workers)
            for channel, seen in zip(self.channels, data.effort, strict=True)
        }

    def _alike(self, data: Data) -> list[str]:
        return alike_in(self.channels, data.effort, self.populations)

    def _population_rows(self) -> list[tuple[str, str, float, float]]:
        return population_rows(self.channels, self.populations, self.levels, self.population)

    def _log_likelihoods(self, data: Data, own: Floats | None, workers: int) -> dict[str, Floats]:
        """Everybody's log-likelihood by channel, at their own estimates [P, K] or averaged over the prior."""
        first = len(self.parameters) - len(self.channels)
        return {
            channel.name: log_likelihoods(
                channel,
                seen,
                self._shared(channel),
                None if own is None else own[:, k],
                workers=workers,
            )
            for k, (channel, seen) in enumerate(zip(self.channels, data.effort, strict=True), start=first)
        }

    # ------------------------------------------------------------------ inside

    def _in_threads(self, cohort: Cohort, workers: int) -> list[dict[str, NDArray[Any]]]:
        """Estimate people in as many ranges as there are threads."""
        n = len(cohort)
        ranges = max(1, min(workers, n // FEWEST_PER_THREAD))
        cuts = [n * i // ranges for i in range(ranges + 1)]
        pieces = [cohort[first:last] for first, last in itertools.pairwise(cuts)]
        if ranges == 1:
            return [self._estimates(pieces[0])]
        with ThreadPoolExecutor(ranges) as pool:
            try:
                return list(pool.map(self._estimates, pieces))
            except DataError:  # say everything that is wrong, not only with the first range
                self._data(cohort)
                raise

    def _estimates(self, cohort: Cohort) -> dict[str, NDArray[Any]]:
        """Everything a profile says of each person, by name."""
        data = self._data(cohort)
        kinds = self._own_kinds(data)
        columns = self._offsets(data, kinds)
        columns["error_given_prior"] = self._errors_given_prior(data, kinds, columns["se"])
        status = self._offset_status(data, columns["se"])
        unknown = dict.fromkeys(("log_sensitivity", "log_sensitivity_se", "random"), data.n_steps)
        return self._told(data, columns, status, [], unknown)

    def _own_kinds(self, data: Data) -> Sequence[OwnKinds | None]:
        if self.kinds is None or not len(data):
            return [None] * len(self.parameters)
        return self.kinds.own(self.kind_likelihoods(data))

    def _offsets(self, data: Data, kinds: Sequence[OwnKinds | None]) -> dict[str, Floats]:
        """Estimate, se, low and high of everybody's θ, [P, channels] each."""
        found = [
            own_offsets(
                channel,
                seen,
                self.populations[channel.name],
                method=self.method,
                level=self.level,
                kinds=own,
            )
            for channel, seen, own in zip(self.channels, data.effort, kinds, strict=True)
        ]
        n = len(data)
        return {
            name: np.stack([getattr(one, name) for one in found], axis=1) if found else np.zeros((n, 0))
            for name in ("estimate", "se", "low", "high")
        }

    def _errors_given_prior(self, data: Data, kinds: Sequence[OwnKinds | None], se: Floats) -> Floats:
        """The standard errors of everybody's θ if what people share were known, [P, channels]."""
        found = se.copy()
        for k, (channel, seen, own) in enumerate(zip(self.channels, data.effort, kinds, strict=True)):
            learned = self.populations[channel.name]
            if self.method == "eb" and learned.plausible is not None:
                sure = offsets.posterior(channel, seen, learned.population, level=self.level, kinds=own)[0]
                found[:, k] = sure.se
        return found

    def _draws(self, data: Data, noise: Noise) -> list[Floats]:
        """Everybody's draws of every parameter, [P, n] each."""
        kinds = self._own_kinds(data)
        first = len(kinds) - len(self.channels)
        columns = zip(self.channels, data.effort, kinds[first:], strict=True)
        return [
            draw_offsets(channel, seen, self.populations[channel.name], own, noise, k)
            for k, (channel, seen, own) in enumerate(columns, start=first)
        ]

    def _offset_status(self, data: Data, se: Floats) -> list[NDArray[np.int8]]:
        return [
            effort_status(
                channel,
                seen,
                own,
                informed(self._shared(channel).sd, self.method, self.populations[channel.name].n_people),
                in_doubt=doubt,
                longer=longer,
            )
            for channel, seen, own, doubt, longer in zip(
                self.channels, data.effort, se.T, data.in_doubt, data.longer, strict=True
            )
        ]

    def _told(
        self,
        data: Data,
        columns: dict[str, Floats],
        status: Sequence[NDArray[np.int8]],
        n: Sequence[NDArray[np.int64]],
        of_action: Mapping[str, Floats],
    ) -> dict[str, NDArray[Any]]:
        """What a profile says, with nothing where it rests on nothing."""
        codes = np.stack(status, axis=1)
        leave_empty(columns, codes, np.array([name in self.alike for name in self.parameters]))
        counts = np.stack([*n, *(seen.counts for seen in data.effort)], axis=1)
        return {
            **columns,
            "status": codes,
            "n": counts,
            **of_action,
            "n_steps": data.n_steps,
            "n_inferred": data.n_inferred,
        }

    def __repr__(self) -> str:
        return (
            f"EffortFit({', '.join(self.parameters)}; method={self.method!r}, "
            f"population={self.population!r}; learned from {self.n_learned:,} people)"
        )


def _with_total(people: Cohort, columns: Mapping[str, Floats]) -> pl.DataFrame:
    table = pl.DataFrame({"participant": people.ids, **columns})
    return table.with_columns(total=pl.sum_horizontal(pl.exclude("participant")))


def as_cohort(people: Cohort | pl.DataFrame | Any) -> Cohort:
    """Return a cohort as it is, or one made of a table of segments."""
    return people if isinstance(people, Cohort) else Cohort.from_segments(people)
