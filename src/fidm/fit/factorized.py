"""The factorized model: fit it to a cohort, then profile anybody.

``Model`` says what is assumed, ``Model.fit`` learns from a training part what people share, ``Fit.profile``
estimates every person. Constructing computes nothing; fitting returns a new object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from fidm.cohort import Cohort, require_skip
from fidm.defaults import MAX_PEOPLE
from fidm.errors import FitError, count, one_of, remedy
from fidm.fit import sensitivity
from fidm.fit.common import (
    Data,
    Method,
    PopulationKind,
    can_be_learned,
    default_lapse,
    drawn,
    learn_populations,
    plain_algebra,
    threads,
    valid_channels,
    valid_inferred,
    valid_lapse,
    valid_level,
)
from fidm.fit.fitted import Fit
from fidm.fit.population import FEWEST_PEOPLE, enough_known
from fidm.fit.profile import SENSITIVITY
from fidm.fit.regression import Formulas, clusters_of, layouts_of, say_clusters, say_rare
from fidm.fit.sensitivity import SensitivityPrior
from fidm.model.action import Choices
from fidm.model.channels import Channel
from fidm.model.effort import (
    Levels,
    cohort_problems,
    far_longer,
    paper_channels,
    refuse,
    text_levels,
    without_constants,
)
from fidm.tasks.beliefs import Believes, name_beliefs, own_values, seen_values
from fidm.tasks.check import task_problems
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import rows_at
from fidm.tasks.stack import TaskSet, follow, sound_steps
from fidm.types import Floats, Integers, Progress, Skip, Values, read_only

if TYPE_CHECKING:
    from fidm.fit.nuts import Posterior


class Model:
    """What is assumed of people: their tasks, their effort channels, and whether they lapse.

    Parameters
    ----------
    task : TaskModel, or several
        The task everybody was given, or all the tasks that episodes name.
    channels : sequence of Channel, optional
        The effort channels. Left out, they are those of the paper whose columns the training part has;
        ``()`` fits choices alone.
    lapse : float or "estimate", optional
        The share of choices made at random among the legal actions: a number below 1, or estimated from the
        training part. It absorbs wrongly grounded moves. Left out, empirical Bayes estimates it, and maximum
        likelihood takes 0 as in the paper.
    inferred : float
        How much a move counts in the action likelihood if a planner filled it in, from 0 (left out, the
        default: nobody chose it) to 1 (like any other). No matter where no step of a cohort is inferred.
    values : Values, or several, optional
        The tasks' values, where they are solved already; in any order. Values of other tasks or settings are
        refused, and so are values made by hand.
    believes : TaskModel, Values, or several by the name of the task, optional
        What people go by, where it is not the task they act in: another task of the same states and actions,
        or values made by hand. Of several tasks, those not named are believed as they are.
    regress : str or mapping of str to str, optional
        What the mean of people's parameters depends on, as a formula over columns of the participants:
        ``"age + C(group)"``, ``"bs(age, df=3) * sex"``. One formula for all parameters, or one for each that
        is named. People are then drawn towards others like them; see :meth:`Fit.regression_table`.
        Empirical Bayes only.
    cluster : str, optional
        A column of the participants: people with the same value (a site, a family) may go together, and the
        standard errors of slopes allow for it.

    Examples
    --------
    >>> import fidm
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 50, seed=1)
    >>> fit = fidm.Model(task).fit(cohort)
    >>> profile = fit.profile(cohort)
    >>> profile.parameters
    ('action_sensitivity', 'duration', 'characters', 'turns', 'pause', 'pause_presence')
    """

    def __init__(
        self,
        task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel],
        *,
        channels: Sequence[Channel] | None = None,
        lapse: float | Literal["estimate"] | None = None,
        inferred: float = 0.0,
        values: Values | Iterable[Values] | None = None,
        believes: Believes | None = None,
        regress: Formulas | None = None,
        cluster: str | None = None,
    ) -> None:
        self.tasks = TaskSet.of(task)
        self.channels = None if channels is None else valid_channels(channels)
        if lapse is not None:
            valid_lapse(lapse)
        self.lapse = lapse
        self.inferred = valid_inferred(inferred)
        self._values = None if values is None else own_values(self.tasks, values)
        self._believes = name_beliefs(self.tasks, believes)
        if not (regress is None or isinstance(regress, str | Mapping)):
            raise FitError(
                f"regress is {regress!r}; it must be a formula, or one for each of some parameters: "
                "{'duration': 'age'}."
            )
        self.regress = regress if regress is None or isinstance(regress, str) else dict(regress)
        self.cluster = cluster

    @plain_algebra
    def fit(
        self,
        cohort: Cohort,
        *,
        method: Method = "eb",
        population: PopulationKind = "random",
        joint: bool = False,
        level: float = 0.95,
        max_people: int | None = MAX_PEOPLE,
        workers: int | None = None,
        on_progress: Progress | None = None,
    ) -> Fit:
        """Learn from a training part what people share.

        Parameters
        ----------
        cohort : Cohort
            The training part.
        method : {"eb", "mle"}
            ``"eb"`` shrinks every person's estimate towards what people are like, by a prior learned from
            the training part; ``"mle"`` takes the maximum of the person's own likelihood, as in the paper.
        population : {"random", "pooled"}
            Whether α, β and the shapes are fitted with a random intercept per person, or to all segments as
            if they came from one person, as in the paper.
        joint : bool
            Learn one normal prior over all parameters together (``"eb"`` only). Helps where parameters go
            together in people; for anybody with fewer than 20 choices η is taken from its own prior.
        level : float
            The level of intervals.
        max_people : int or None
            Learn from at most so many people, those whose ids have the smallest hash; None takes all. With
            20,000 a prior's sd is known to half a percent.
        workers : int, optional
            Threads; by default one per processor. Changes no number.
        on_progress : callable, optional
            Called as ``on_progress(doing, done, of)``.
        """
        one_of("method", method, ("eb", "mle"), FitError)
        one_of("population", population, ("random", "pooled"), FitError)
        if joint and method == "mle":
            raise FitError(
                f"{remedy('joint=True', '--joint')} is a prior over all parameters; it needs "
                + remedy("method='eb'.", "--method eb.")
            )
        valid_level(level)
        _check_people(cohort)
        pool = threads(workers)
        say = on_progress or (lambda doing, done, of: None)
        learners = drawn(cohort, max_people)
        channels, skipped = self._channels_of(learners)
        channels, constant = without_constants(channels, learners)
        say("solving", 0, 2 + len(channels))
        seen, beliefs = seen_values(self.tasks, self._values, self._believes)
        q = read_only(self.tasks.values(seen))
        levels, longest, data = self._lay_out(learners, channels, q)
        parameters = [SENSITIVITY, *(channel.name for channel in channels)]
        layouts, known = layouts_of(self.regress, parameters, learners, method, self.cluster)
        clusters = clusters_of(learners.participants, self.cluster)
        data = data.with_known(known, channels)
        notes = [*constant, *([] if clusters is None else [say_clusters(clusters, self.cluster)])]

        say("action sensitivity", 1, 2 + len(channels))
        asked = default_lapse(self.lapse, method)
        wants_prior = method == "eb" or asked == "estimate"
        prior, lapse, lapse_se = learn_sensitivity(
            data, asked, pool, wanted=wants_prior, notes=notes, clusters=clusters
        )
        populations, left_out = learn_populations(
            channels, data, levels, by_name=self.channels is not None,
            method=method, population=population, workers=pool, on_progress=on_progress, before=2,
            clusters=clusters,
        )  # fmt: skip
        layouts = {
            name: layout
            for name, layout in layouts.items()
            if name in populations or (name == SENSITIVITY and prior.slopes is not None)
        }
        seen_in = dict(zip(parameters, data.seen(), strict=True))
        notes += [*say_rare(layouts, known, learners.participants, seen_in), *left_out]
        chose = int((np.diff(data.choices.person_offsets) > 0).sum())
        if method == "eb" and chose < FEWEST_PEOPLE and not populations:
            raise FitError(f"Nothing can be learned from the training part. {' '.join(notes)}")
        channels = tuple(channel for channel in channels if channel.name in populations)
        fit = Fit(
            tasks=self.tasks,
            q=q,
            channels=channels,
            levels=levels,
            prior=prior,
            lapse=lapse,
            lapse_se=lapse_se,
            populations=populations,
            method=method,
            population=population,
            level=level,
            n_people=len(cohort),
            n_learned=data.n_told(),
            skipped=skipped,
            inferred=self.inferred,
            notes=(*task_problems(self.tasks, seen), *_at_chance(data.choices), *notes),
            beliefs=beliefs,
            longest=longest,
            regress=layouts,
        )
        if method == "eb":
            fit = fit.with_alike(learners)
            fit = fit if joint else fit.with_kinds(learners)
        if joint:
            fit = fit.with_joint(learners)
        return fit

    def sample(
        self,
        cohort: Cohort,
        *,
        seed: int,
        draws: int = 500,
        warmup: int = 500,
        chains: int = 4,
        joint: bool = True,
        level: float = 0.95,
        keep: str | Path | None = None,
        however_long: bool = False,
        workers: int | None = None,
        on_progress: Progress | None = None,
    ) -> Posterior:
        """Sample the full Bayesian model, to check a fit: everybody's parameters and what people share.

        :meth:`fit` answers in a second what this answers in minutes or hours, and should give nearly the same
        estimates and errors. Needs jax and numpyro (``pip install 'fidm[bayes]'``). A lapse rate that is left
        out is 0; ``lapse="estimate"`` of the model samples it, with no probability of being exactly 0. Look
        at ``warnings`` of the result first.

        Parameters
        ----------
        cohort : Cohort
            The people.
        seed : int
            The same seed gives the same draws on the same kind of processor.
        draws, warmup, chains : int
            How many draws of each chain are kept, how many steps before these tune the sampler, and how many
            chains there are. On a GPU they run side by side, otherwise in as many threads as ``workers``.
        joint : bool
            Whether parameters may be correlated in people; False is the model of the default fit.
        level : float
            The level of intervals.
        keep : path, optional
            A file in which the chains are kept after every 25 steps. If it is there, sampling goes on where
            it stopped, and the draws are those of a run that never stopped; more draws may be asked for.
        however_long : bool
            Sample although it takes more than an hour by a rough estimate, which is refused otherwise.
        workers : int, optional
            Threads; by default one per processor. Changes no number.
        on_progress : callable, optional
            Called as ``on_progress(doing, done, of)``.
        """
        from fidm.fit import nuts

        valid_level(level)
        _check_people(cohort)
        channels, constant = without_constants(self._channels_of(cohort)[0], cohort)
        seen, _ = seen_values(self.tasks, self._values, self._believes)
        levels, _, data = self._lay_out(cohort, channels, read_only(self.tasks.values(seen)))
        named = [SENSITIVITY, *(channel.name for channel in channels)]
        layouts, known = layouts_of(self.regress, named, cohort, "eb")
        data = data.with_known(known, channels)
        channels, effort, notes = can_be_learned(channels, data, levels, by_name=self.channels is not None)
        parameters = (SENSITIVITY, *(channel.name for channel in channels))
        return nuts.sample_posterior(
            replace(data, effort=effort), channels, levels, cohort.ids,
            lapse=0.0 if self.lapse is None else valid_lapse(self.lapse), joint=joint,
            draws=draws, warmup=warmup, chains=chains, seed=seed, level=level, keep=keep,
            however_long=however_long, workers=workers, on_progress=on_progress,
            known={
                f"log_{name}" if name == SENSITIVITY else name: (layouts[name].names, own)
                for name, own in known.items()
                if name in parameters
            },
            notes=[*constant, *notes],
        )  # fmt: skip

    def _channels_of(self, cohort: Cohort) -> tuple[tuple[Channel, ...], tuple[str, ...]]:
        """The channels, and which of the paper's are not among them as their column is missing."""
        if self.channels is not None:
            return self.channels, ()
        paper, columns = paper_channels(), cohort.segments.columns
        found = tuple(channel for channel in paper if channel.column in columns)
        if not cohort.n_segments:  # nothing was said, so nothing is missing
            return found, ()
        return found, tuple(channel.name for channel in paper if channel.column not in columns)

    def _lay_out(
        self, learners: Cohort, channels: Sequence[Channel], q: Floats
    ) -> tuple[Levels, float, Data]:
        """Levels of text columns, how long segments are that are learned from, and the data themselves."""
        levels = text_levels(channels, learners)
        _, longest = far_longer(learners)
        data = Data.of(
            self.tasks, q, channels, levels, learners,
            need_columns=True, inferred=self.inferred, longest=longest,
        )  # fmt: skip
        return levels, longest, data

    def check(self, cohort: Cohort, *, strict: bool = True, skip: Skip = "participant") -> Cohort:
        """Check a cohort against the tasks and the channels.

        Parameters
        ----------
        cohort : Cohort
            The people.
        strict : bool
            Raise if a row cannot be used, with all of them. With False the people concerned are left out,
            and ``problems`` of what is returned says why.
        skip : {"participant", "episode", "rest"}
            With ``strict=False``, what is left out: the people, the episodes concerned, or of these what
            comes from a wrong step on.
        """
        require_skip(skip, strict)
        channels, _ = self._channels_of(cohort)
        followed = follow(self.tasks, cohort)
        problems = cohort_problems(self.tasks, channels, cohort, followed)
        if not problems.height:
            return cohort
        if strict:
            refuse(problems)
        known = pl.concat([cohort.problems, problems])
        if skip == "participant":
            good = ~cohort.ids.is_in(problems["participant"].implode())
            return cohort[np.flatnonzero(good.to_numpy())].with_problems(known)
        sound = sound_steps(cohort, followed, skip)
        said = problems.filter(pl.col("table") == "segments")["row"].to_numpy() - 1
        sound[np.searchsorted(cohort.segment_offsets, said, side="right") - 1] = -1
        return cohort.up_to(sound).with_problems(known)

    def __repr__(self) -> str:
        channels = "the paper's" if self.channels is None else [c.name for c in self.channels]
        more = f" and {len(self.tasks.names) - 3} more" if len(self.tasks.names) > 3 else ""
        inferred = f"; inferred: {self.inferred:g}" if self.inferred else ""
        believes = f"; believing in another {', '.join(self._believes)}" if self._believes else ""
        regress = "" if self.regress is None else f"; regress: {self.regress!r}"
        return (
            f"Model({', '.join(self.tasks.names[:3])}{more}; channels: {channels}; "
            f"lapse: {'by default' if self.lapse is None else self.lapse}{inferred}{believes}{regress})"
        )


def _check_people(cohort: Cohort) -> None:
    """Raise unless there is a cohort to learn from."""
    if not isinstance(cohort, Cohort):
        raise FitError(
            f"A model learns from a Cohort, not from a {type(cohort).__name__}. See fidm.make_cohort."
        )
    if not len(cohort):
        raise FitError("There is nobody to learn from.")


def learn_sensitivity(
    data: Data,
    lapse: float | Literal["estimate"],
    workers: int,
    *,
    wanted: bool,
    notes: list[str],
    plausible: bool = True,
    clusters: Integers | None = None,
) -> tuple[SensitivityPrior, float, float]:
    """Return the prior of log η, the lapse rate and its standard error; NaN where there is none.

    Where the training part cannot tell how people differ, there is no prior, and ``notes`` says why. Without
    ``plausible`` the most probable prior stands alone.
    """
    choices = data.choices
    rate = valid_lapse(lapse)
    none = SensitivityPrior(np.nan, np.nan), 0.0 if rate is None else rate, np.nan
    if not wanted and rate is not None:
        return none
    if not len(choices.row):
        notes.append(
            f"{SENSITIVITY} is not estimated: in no counted step of the training part do two legal actions "
            f"differ in value.{_left_out(data)}"
        )
        return none
    told = int(sensitivity.has_maximum(choices).sum())
    if told < FEWEST_PEOPLE:
        notes.append(
            f"{SENSITIVITY}: {count(told, 'participant')} of the training part made choices that are neither "
            f"all best nor no better than chance; {FEWEST_PEOPLE} are needed to learn how people differ. "
            "Everybody's own maximum likelihood is given instead, with bounds where there is none."
            f"{_left_out(data)}"
        )
        return none
    enough_known(choices.known, np.diff(choices.person_offsets) > 0, 2)
    return sensitivity.learn_prior(
        choices, lapse=rate, workers=workers, plausible=plausible, clusters=clusters
    )


def _at_chance(choices: Choices) -> list[str]:
    """Say it if most people's η is highest at 0: the likelihood falls there, whatever the lapse rate."""
    rows, place = np.unique(choices.row, return_inverse=True)
    pairs, offsets = rows_at(choices.offsets, rows)
    mean = np.add.reduceat(choices.q[pairs], offsets[:-1]) / np.diff(offsets) if len(rows) else np.zeros(0)
    sizes = np.diff(choices.person_offsets)
    person = np.repeat(np.arange(len(sizes)), sizes)
    gain = np.bincount(person, choices.weight * (choices.q[choices.pair] - mean[place]), minlength=len(sizes))
    known, zero = int((sizes > 0).sum()), int(((gain <= 0) & (sizes > 0)).sum())
    if 2 * zero <= known:
        return []
    return [
        f"{SENSITIVITY}: {zero:,} of {known:,} people choose no better than at random by the values of the "
        "task (η is 0). Either they do not pursue its goals, or these values are not what they go by: see "
        f"fidm check{remedy(', and believes of fidm.Model', '')}."
    ]


def _left_out(data: Data) -> str:
    """What inferred moves have to do with it, if they are left out."""
    inferred = float(np.nansum(data.n_inferred))
    if not inferred or data.choices.n_choices.sum() >= np.nansum(data.n_steps):
        return ""
    return (
        f" {inferred / np.nansum(data.n_steps):.0%} of the counted steps are inferred and left out; "
        f"{remedy('inferred=1', 'fidm fit --inferred 1')} counts them, but then η says how well the planner "
        "chooses."
    )
