"""What people share, once it is learned, and the profile of anybody that follows from it.

Keeping a fit in a file that a person can read: numbers, names, the tasks' hashes; no code.

The file is JSON. Numbers are written so that they come back to the last bit. A task itself is not in
the file: it is given again, or found among the built-in ones, and its hash must be the one the fit was
made with, since η means nothing without the values it multiplies.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fidm
from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.files import whole_file
from fidm.fit import joint as joints
from fidm.fit import kinds as kinds_of_people
from fidm.fit import sensitivity
from fidm.fit.common import (
    CHECKED,
    action_status,
    alike_in,
    bare,
    drawn,
    effort_likelihoods,
    informed,
    leave_empty,
    log_likelihoods,
    offset_status,
    one_of,
    own_offsets,
    population_rows,
    said_of_people,
    threads,
    told_apart,
    valid_inferred,
    valid_level,
)
from fidm.fit.joint import JointPrior
from fidm.fit.kinds import Kinds, Likelihood
from fidm.fit.offsets import REPORT_NODES, WIDE_NODES, OwnKinds, Plausible, Population
from fidm.fit.population import Learned
from fidm.fit.profile import FEW_ACTIONS, NO_OBSERVATION, SENSITIVITY, Profile
from fidm.fit.sensitivity import PlausiblePriors, SensitivityPrior
from fidm.model.action import Choices, choices_of, count_inferred
from fidm.model.channels import Channel
from fidm.model.effort import (
    Levels,
    Observed,
    cohort_problems,
    design_names,
    observed,
    paper_channels,
    refuse,
)
from fidm.registry import CHANNELS
from fidm.tasks.beliefs import Belief, Believes, describe, name_beliefs, seen_values
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Floats, Progress, Values, read_only

Learnt = TypeVar("Learnt", Plausible, PlausiblePriors, Kinds)

JOINT_PEOPLE = 4_000
BATCH = 50_000
"""How many people are profiled at a time."""

FEWEST_PER_THREAD = 500
"""A thread is not worth its while for fewer people."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What people share, learned from a training part; profiles anybody.

    Parameters
    ----------
    tasks, q
        The stacked tasks and the value of every legal action in them.
    channels, levels
        The effort channels, and the levels of text columns they are conditioned on.
    prior : SensitivityPrior
        Mean and sd of log η among people.
    lapse, lapse_se : float
        The lapse rate and its standard error (NaN where it was given).
    populations : mapping of str to Learned
        Coefficients, shape and prior of every channel, with standard errors. Maximum likelihood learns no
        prior, except the spread that random intercepts have anyway.
    method, population, level
        As given to :meth:`Model.fit`.
    n_people, n_learned : int
        How many people the training part had, and how many were learned from.
    joint : JointPrior or None
        The joint prior of (log η, θ…), if one was learned.
    skipped : tuple of str
        Channels of the paper that were not fitted, because the segments lack their columns.
    inferred : float
        How much an inferred move counts in the action likelihood; see :class:`fidm.Model`.
    kinds : Kinds or None
        The kinds of people there are, where one prior for all is clearly not enough.
    alike : tuple of str
        The parameters in which people differ too little to be told apart.
    beliefs : tuple of Belief
        What people take the tasks to be, where it is not what they are; see :class:`fidm.Model`.
    notes : tuple of str
        What is to be said of the fit besides: what was found against the tasks and the choices, and what was
        left out.
    """

    tasks: TaskSet
    q: Floats
    channels: tuple[Channel, ...]
    levels: Levels
    prior: SensitivityPrior
    lapse: float
    lapse_se: float
    populations: Mapping[str, Learned]
    method: str
    population: str
    level: float
    n_people: int
    n_learned: int
    joint: joints.JointPrior | None = None
    skipped: tuple[str, ...] = ()
    inferred: float = 0.0
    kinds: Kinds | None = None
    alike: tuple[str, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of a person's parameters."""
        return (SENSITIVITY, *(channel.name for channel in self.channels))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said against the tasks, the choices and the population parameters."""
        missing = [c for c in paper_channels() if c.name in self.skipped]
        if missing:
            columns = ", ".join(dict.fromkeys(channel.column for channel in missing))
            names = ", ".join(channel.name for channel in missing)
            noted = [f"The segments have no column {columns}, so {names} could not be fitted."]
        else:
            noted = []
        found = [*noted, *self.notes]
        found += [warning for learned in self.populations.values() for warning in learned.warnings]
        found += said_of_people(
            self.alike, self.kinds, method=self.method, channels=self.channels, n=self.n_learned
        )
        if self.prior.sd >= 0.99 * sensitivity.LARGEST_SD:
            found.append(f"{SENSITIVITY}: the data do not tell how much people differ.")
        if self.lapse_se > 0 and self.lapse >= 0.01 and self.lapse > 2 * self.lapse_se:
            found.append(
                f"{SENSITIVITY}: about {self.lapse:.0%} of the choices look random; they may be wrongly "
                "grounded moves, or lapses. Their share is taken into account."
            )
        if self.prior.random:
            found.append(
                f"{SENSITIVITY}: about {self.prior.random:.0%} of the people choose as if at random; see the "
                "status at_random."
            )
        return tuple(found)

    # ------------------------------------------------------------------ people

    def profile(
        self, cohort: Cohort, *, workers: int | None = None, on_progress: Progress | None = None
    ) -> Profile:
        """Estimate every person of a cohort, whether or not they were in the training part.

        Parameters
        ----------
        cohort : Cohort
            The people.
        workers : int, optional
            Threads; by default one per processor. Changes no number.
        on_progress : callable, optional
            Called as ``on_progress(doing, done, of)``.
        """
        parts = []
        for first in range(0, max(1, len(cohort)), BATCH):
            if on_progress:
                on_progress("profiles", first, len(cohort))
            parts += self._in_threads(cohort[first : first + BATCH], threads(workers))
        if on_progress:
            on_progress("profiles", len(cohort), len(cohort))
        joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        estimate, se, low, high, status, n, log_eta, log_se, random, n_steps, n_inferred = joined
        return Profile(
            participants=cohort.ids,
            parameters=self.parameters,
            estimate=estimate,
            se=se,
            low=low,
            high=high,
            status=status,
            n=n,
            log_sensitivity=log_eta,
            log_sensitivity_se=log_se,
            random=random,
            method=self.method,
            level=self.level,
            prior_sd=self._prior_sd(),
            n_steps=n_steps,
            n_inferred=n_inferred,
            inferred=self.inferred,
        )

    def log_likelihood(
        self, cohort: Cohort, *, at: Literal["estimate", "prior"] = "estimate", workers: int | None = None
    ) -> pl.DataFrame:
        """Return how probable each person's data are, by factor.

        Parameters
        ----------
        cohort : Cohort
            The people.
        at : {"estimate", "prior"}
            At each person's own estimate; or averaged over the prior (one parameter at a time), which does
            not reward having fitted the person and so suits comparisons of models on people left out.

        Returns
        -------
        DataFrame
            ``participant``, ``action``, one column per channel, and their ``total``.
        """
        one_of("at", at, ("estimate", "prior"))
        without = [name for name, sd in zip(self.parameters, self._prior_sd(), strict=True) if np.isnan(sd)]
        if at == "prior" and without:
            why = " ".join(self.notes) if self.method == "eb" else "Fit with method='eb'."
            raise FitError(f"This fit has no prior of {', '.join(without)} to average over. {why}")
        data = self._data(cohort)
        pool = threads(workers)
        if at == "prior":
            columns = [
                sensitivity.posterior(data.choices, self.prior, lapse=self.lapse, level=0.95, workers=pool)[1]
            ]
            for channel, seen in zip(self.channels, data.effort, strict=True):
                columns.append(log_likelihoods(channel, seen, self._shared(channel), workers=pool))
        else:
            profile = self.profile(cohort, workers=workers)
            columns = [sensitivity.values_at(data.choices, profile.estimate[:, 0], self.lapse)]
            for k, (channel, seen) in enumerate(zip(self.channels, data.effort, strict=True), start=1):
                columns.append(log_likelihoods(channel, seen, self._shared(channel), profile.estimate[:, k]))
        table = pl.DataFrame({"participant": cohort.ids, "action": columns[0]}).with_columns(
            **{channel.name: pl.Series(c) for channel, c in zip(self.channels, columns[1:], strict=True)}
        )
        return table.with_columns(total=pl.sum_horizontal(pl.exclude("participant")))

    def population_table(self) -> pl.DataFrame:
        """Return every population parameter with its standard error."""
        rows = [
            (f"log_{SENSITIVITY}", "mean", self.prior.mean, self.prior.mean_se),
            (f"log_{SENSITIVITY}", "sd", self.prior.sd, self.prior.sd_se),
            ("lapse", "rate", self.lapse, self.lapse_se),
        ]
        rows = rows if np.isfinite(self.prior.sd) else rows[2:]
        rows += population_rows(self.channels, self.populations, self.levels, self.population)
        names = ("parameter", "quantity", "estimate", "se")
        return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.col("se").fill_nan(None))

    def save(self, path: str | Path) -> None:
        """Write the fit to a JSON file that :func:`fidm.load_fit` reads; whole or not at all."""
        save_fit(self, path)

    # ------------------------------------------------------------------ inside

    def _data(self, cohort: Cohort) -> Data:
        return Data.of(
            self.tasks,
            self.q,
            self.channels,
            self.levels,
            cohort,
            need_columns=False,
            inferred=self.inferred,
        )

    def _shared(self, channel: Channel) -> Population:
        return self.populations[channel.name].population

    def _prior_sd(self) -> Floats:
        return np.array([self.prior.sd, *(self._shared(channel).sd for channel in self.channels)])

    def _in_threads(self, cohort: Cohort, workers: int) -> list[tuple[NDArray[np.generic], ...]]:
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
                refuse(cohort_problems(self.tasks, self.channels, cohort, follow(self.tasks, cohort)))
                raise

    def _estimates(self, cohort: Cohort) -> tuple[NDArray[np.generic], ...]:
        data = self._data(cohort)
        own: Sequence[OwnKinds | None] = [None] * (1 + len(self.channels))
        if self.kinds is not None and len(cohort):
            own = self.kinds.own(self.kind_likelihoods(data))
        if self.method == "mle" or not np.isfinite(self.prior.sd):
            action = sensitivity.maximum(data.choices, lapse=self.lapse, level=self.level)
        else:
            action, _ = sensitivity.posterior(
                data.choices, self.prior, lapse=self.lapse, level=self.level, kinds=own[0]
            )
        effort = [
            own_offsets(
                channel,
                seen,
                self.populations[channel.name],
                method=self.method,
                level=self.level,
                kinds=kinds,
            )
            for channel, seen, kinds in zip(self.channels, data.effort, own[1:], strict=True)
        ]
        log_eta, log_se = action.log_estimate.copy(), action.log_se.copy()
        columns = {
            name: np.stack([getattr(action, name), *(getattr(part, name) for part in effort)], axis=1)
            for name in ("estimate", "se", "low", "high")
        }
        if self.joint is not None and len(cohort):
            self._apply_joint(data, columns, log_eta, log_se)
        n = np.stack([data.choices.n_choices, *(seen.counts for seen in data.effort)], axis=1)
        status = np.stack(
            [
                action_status(action, data.choices.n_choices, log_se, informed(self.prior.sd, self.method)),
                *(
                    offset_status(channel, seen, self._shared(channel), se, method=self.method)
                    for channel, seen, se in zip(self.channels, data.effort, columns["se"].T[1:], strict=True)
                ),
            ],
            axis=1,
        )
        leave_empty(columns, status, np.array([name in self.alike for name in self.parameters]))
        for values in (log_eta, log_se):
            values[np.isnan(columns["estimate"][:, 0])] = np.nan
        random = np.full(len(cohort), np.nan) if action.random is None else action.random.copy()
        random[status[:, 0] == NO_OBSERVATION] = np.nan
        return (*columns.values(), status, n, log_eta, log_se, random, data.n_steps, data.n_inferred)

    def _likelihoods(self, data: Data) -> joints.Likelihoods:
        """Everybody's one-dimensional likelihoods, on nodes placed by the independent priors."""
        own, _ = sensitivity.posterior(data.choices, self.prior, lapse=self.lapse, level=self.level)
        centre, scale = [own.log_estimate], [own.log_se]
        etas = np.exp(own.log_estimate[:, None] + own.log_se[:, None] * WIDE_NODES)
        log = [sensitivity.values_on(data.choices, etas, self.lapse)]
        all_nodes = [WIDE_NODES]
        for channel, seen in zip(self.channels, data.effort, strict=True):
            shared = self._shared(channel)
            for column, place in zip(bare(channel, shared, seen), (centre, scale, log), strict=True):
                place.append(column)
            all_nodes.append(REPORT_NODES)
        return joints.Likelihoods(tuple(centre), tuple(scale), tuple(all_nodes), tuple(log))

    def kind_likelihoods(self, data: Data) -> list[Likelihood]:
        """Everybody's likelihood of every parameter, to tell what kind of person they are."""
        if np.isfinite(self.prior.sd):
            found = [Likelihood(*sensitivity.likelihood_on_nodes(data.choices, self.prior, self.lapse))]
        else:  # nothing is known of it
            found = [Likelihood(np.linspace(-4, 4, 33), np.ones((len(data.choices), 33)))]
        return found + effort_likelihoods(self.channels, data.effort, self.populations)

    def with_kinds(self, learners: Cohort) -> Fit:
        """Return the same fit with kinds of people, where there is clearly more than one."""
        likelihoods = self.kind_likelihoods(self._data(drawn(learners, kinds_of_people.MOST_PEOPLE)))
        return replace(self, kinds=kinds_of_people.learn_kinds(likelihoods))

    def with_alike(self, learners: Cohort) -> Fit:
        """Return the same fit, knowing in which parameters people differ too little to be told apart.

        In those, even if people differed as much as the training part allows, hardly any of the differences
        among estimates would be differences among people.
        """
        data = self._data(drawn(learners, CHECKED))
        found = []
        if np.isfinite(self.prior.sd):
            best = replace(self.prior, plausible=None)
            own, _ = sensitivity.posterior(data.choices, best, lapse=self.lapse, level=self.level)
            some = np.diff(data.choices.person_offsets) > 0
            if not told_apart(own.log_se[some], best.sd, self.prior.largest_sd()):
                found.append(SENSITIVITY)
        return replace(self, alike=(*found, *alike_in(self.channels, data.effort, self.populations)))

    def with_joint(self, learners: Cohort) -> Fit:
        """Return the same fit with a joint prior learned on top."""
        chosen = drawn(learners, JOINT_PEOPLE)
        data = self._data(chosen)
        mean = np.array([self.prior.mean, *(self._shared(channel).mean for channel in self.channels)])
        start = joints.JointPrior(mean, np.diag(self._prior_sd() ** 2))
        learned, converged = joints.learn(self._likelihoods(data), start)
        joint = joints.clear(learned, len(chosen))
        if joint is None:
            said = [
                f"No two parameters clearly go together in {len(chosen)} people: one at a time is estimated."
            ]
            return replace(self, notes=(*self.notes, *said)).with_kinds(learners)
        said = [] if converged else ["The joint prior has not settled; one parameter at a time is safer."]
        if len(chosen) < joints.FEWEST_PEOPLE:
            said.append(
                f"A joint prior is learned from {len(chosen)} people; below {joints.FEWEST_PEOPLE} one "
                "parameter at a time is safer."
            )
        return replace(self, joint=joint, notes=(*self.notes, *said))

    def _apply_joint(self, data: Data, columns: dict[str, Floats], log_eta: Floats, log_se: Floats) -> None:
        """Replace one-at-a-time posteriors by those under the joint prior, but for the guarded ones."""
        assert self.joint is not None  # noqa: S101
        seen = self._likelihoods(data)
        mean, sd, low, high = joints.marginals(seen, self.joint, self.level)
        for name, found in (("estimate", mean), ("se", sd), ("low", low), ("high", high)):
            columns[name][:, 1:] = found[:, 1:]
        enough = data.choices.n_choices >= FEW_ACTIONS
        log_eta[enough], log_se[enough] = mean[enough, 0], sd[enough, 0]
        for name, values in (
            ("estimate", np.exp(mean[:, 0])),
            ("se", np.exp(mean[:, 0]) * sd[:, 0]),
            ("low", np.exp(low[:, 0])),
            ("high", np.exp(high[:, 0])),
        ):
            columns[name][enough, 0] = values[enough]

    def __repr__(self) -> str:
        prior = "joint prior" if self.joint is not None else "one parameter at a time"
        inferred = f", inferred={self.inferred:g}" if self.inferred else ""
        return (
            f"Fit({', '.join(self.parameters)}; method={self.method!r}, population={self.population!r}"
            f"{inferred}, {prior}; learned from {self.n_learned:,} people)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A cohort as the two factors see it.

    ``n_steps`` and ``n_inferred`` say how many steps of each person would count if none were inferred, and
    how many of these are; NaN where the cohort does not say.
    """

    choices: Choices
    effort: tuple[Observed, ...]
    n_steps: Floats
    n_inferred: Floats

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
    ) -> Data:
        """Check a cohort and lay out its choices and observations."""
        followed = follow(tasks, cohort)
        refuse(cohort_problems(tasks, channels, cohort, followed))
        effort = observed(channels, cohort, levels, required=need_columns)
        choices = choices_of(tasks, q, cohort, followed, inferred=inferred)
        return cls(choices, effort, *count_inferred(tasks, cohort, followed))


FORMAT = "fidm fit"
SCHEMA = 3
READABLE = (1, 2, 3)
"""Files of schema 1 do not say how much inferred moves count, being older than the column of that name; those
of schemas 1 and 2 know one population and one kind of people."""


def save_fit(fit: Fit, path: str | Path) -> None:
    """Write a fit to a file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(json.dumps(to_dict(fit), indent=2, ensure_ascii=False) + "\n", "utf-8")


def hash_fit(fit: Fit) -> str:
    """Return a hash of everything a fit has learned, and how."""
    described = json.dumps(to_dict(fit), sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()


def to_dict(fit: Fit) -> dict[str, Any]:
    """Return everything a fit consists of, except the tasks."""
    channels = []
    for channel in fit.channels:
        learned = fit.populations[channel.name]
        shared = learned.population
        names = design_names(channel, fit.levels)
        channels.append(
            {
                **channel.to_dict(),
                "coefficients": dict(zip(names, shared.coefficients.tolist(), strict=True)),
                "shape": shared.shape if channel.shape_name else None,
                "prior": {"mean": shared.mean, "sd": shared.sd} if math.isfinite(shared.sd) else None,
                "carried": shared.carried,
                "plausible": _listed(learned.plausible),
                "se": {key: float(value) for key, value in learned.se.items()},
                "warnings": list(learned.warnings),
            }
        )
    joint = None
    if fit.joint is not None:
        joint = {
            "parameters": ["log_action_sensitivity", *fit.parameters[1:]],
            "mean": fit.joint.mean.tolist(),
            "covariance": fit.joint.covariance.tolist(),
        }
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "fidm_version": fidm.__version__,
        "method": fit.method,
        "population": fit.population,
        "level": fit.level,
        "people": {"training": fit.n_people, "learned_from": fit.n_learned},
        "tasks": [{"name": task.name, "sha256": task.fingerprint} for task in fit.tasks.tasks],
        "believes": [asdict(belief) for belief in fit.beliefs],
        "action_sensitivity": {
            "log_mean": _plain(fit.prior.mean),
            "log_sd": _plain(fit.prior.sd),
            "se": {"log_mean": _plain(fit.prior.mean_se), "log_sd": _plain(fit.prior.sd_se)},
            "lapse": fit.lapse,
            "lapse_se": _plain(fit.lapse_se),
            "inferred": fit.inferred,
            "at_random": fit.prior.random,
            "plausible": _listed(fit.prior.plausible),
        },
        "levels": {column: list(levels) for column, levels in fit.levels.items()},
        "channels": channels,
        "joint": joint,
        "kinds": _listed(fit.kinds),
        "alike": list(fit.alike),
        "notes": list(fit.notes),
    }


def load_fit(
    path: str | Path,
    task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel] | None = None,
    *,
    channels: Sequence[type[Channel]] = (),
    values: Values | Iterable[Values] | None = None,
    believes: Believes | None = None,
) -> Fit:
    """Read a fit from a file.

    Parameters
    ----------
    path : path
        A file written by :meth:`Fit.save`.
    task : TaskModel, or several, optional
        The tasks it was fitted on; left out, built-in ones of the same names.
    channels : sequence of Channel classes, optional
        Channels of your own that the fit uses, unless an installed package has them.
    values, believes
        As in :class:`fidm.Model`. What people believe must be given again, and be what the fit was made with.
    """
    where = Path(path)
    try:
        saved = json.loads(where.read_text("utf-8"))
    except OSError as error:
        raise FitError(f"cannot be read: {error.strerror}.", source=str(where)) from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise FitError("is not a saved fit: it is not JSON.", source=str(where)) from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise FitError("is not a saved fit.", source=str(where))
    if saved.get("schema") not in READABLE:
        raise FitError(
            f"has the schema {saved.get('schema')}; this version of fidm reads 1 to 3. "
            f"It was written by fidm {saved.get('fidm_version')}.",
            source=str(where),
        )
    try:
        return _fit_of(saved, task, {kind.kind: kind for kind in channels}, values, believes, str(where))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FitError(f"is damaged: {type(error).__name__} {error}.", source=str(where)) from None


def _fit_of(
    saved: dict[str, Any],
    task: Any,
    kinds: Mapping[str, type[Channel]],
    values: Values | Iterable[Values] | None,
    believes: Believes | None,
    source: str,
) -> Fit:
    tasks = TaskSet.of(_builtin(saved, source) if task is None else task)
    _check_tasks(tasks, saved, source)
    named = name_beliefs(tasks, believes)
    _check_beliefs(named, [Belief(**entry) for entry in saved.get("believes", ())], source)
    seen, beliefs = seen_values(tasks, values, named)
    channels, populations = [], {}
    for entry in saved["channels"]:
        kind = entry["kind"]
        if kind not in kinds and kind not in CHANNELS:
            raise FitError(
                f"uses a channel of the kind {kind!r}. Give its class: load_fit(…, channels=[…]).",
                source=source,
            )
        prior = {"mean": 0.0, "sd": math.inf} if entry["prior"] is None else entry["prior"]
        known = ("kind", "coefficients", "shape", "prior", "carried", "plausible", "se", "warnings")
        options = {key: value for key, value in entry.items() if key not in known}
        channel = (kinds.get(kind) or CHANNELS.find(kind))(**{**options, "design": tuple(entry["design"])})
        levels = {column: tuple(names) for column, names in saved["levels"].items()}
        if list(entry["coefficients"]) != list(design_names(channel, levels)):
            raise ValueError(f"the coefficients of {channel.name} are not those of its design")
        shape = 1.0 if entry["shape"] is None else float(entry["shape"])
        shared = Population(
            np.array(list(entry["coefficients"].values()), dtype=np.float64),
            shape,
            float(prior["mean"]),
            float(prior["sd"]),
            float(entry.get("carried", 0.0)),
        )
        channels.append(channel)
        populations[channel.name] = Learned(
            shared, dict(entry["se"]), tuple(entry["warnings"]), _unlisted(Plausible, entry.get("plausible"))
        )
    action = saved["action_sensitivity"]
    one_of("method", saved["method"], ("eb", "mle"))
    one_of("population", saved["population"], ("random", "pooled"))
    valid_level(saved["level"])
    if saved["schema"] < 3 and saved["method"] == "eb" and not (action["log_sd"] or 0) > 0:
        raise ValueError("there is no prior of the action sensitivity")
    joint = saved["joint"]
    inferred = valid_inferred(action["inferred"] if saved["schema"] > 1 else 0.0)
    return Fit(
        tasks=tasks,
        q=read_only(tasks.values(seen)),
        channels=tuple(channels),
        levels={column: tuple(levels) for column, levels in saved["levels"].items()},
        prior=SensitivityPrior(
            _number(action["log_mean"]),
            _number(action["log_sd"]),
            _number(action["se"]["log_mean"]),
            _number(action["se"]["log_sd"]),
            random=float(action.get("at_random", 0.0)),
            plausible=_unlisted(PlausiblePriors, action.get("plausible")),
        ),
        lapse=float(action["lapse"]),
        lapse_se=_number(action["lapse_se"]),
        populations=populations,
        method=saved["method"],
        population=saved["population"],
        level=float(saved["level"]),
        n_people=int(saved["people"]["training"]),
        n_learned=int(saved["people"]["learned_from"]),
        joint=None if joint is None else JointPrior(np.array(joint["mean"]), np.array(joint["covariance"])),
        inferred=inferred,
        kinds=_unlisted(Kinds, saved.get("kinds")),
        alike=tuple(saved.get("alike", ())),
        beliefs=beliefs,
        notes=tuple(saved.get("notes", ())),
    )


def _listed(arrays: Plausible | PlausiblePriors | Kinds | None) -> dict[str, Any] | None:
    """The arrays of what was learned, by name."""
    if arrays is None:
        return None
    return {one.name: getattr(arrays, one.name).tolist() for one in fields(arrays)}


def _unlisted(kind: type[Learnt], saved: Mapping[str, Any] | None) -> Learnt | None:
    return None if saved is None else kind(**{name: np.array(values) for name, values in saved.items()})


def _check_beliefs(given: Mapping[str, TaskModel | Values], saved: Sequence[Belief], source: str) -> None:
    """Raise unless people believe what they believed when the fit was made."""
    expected = {belief.task: belief for belief in saved}
    for task in dict.fromkeys([*expected, *given]):
        if task not in expected:
            raise FitError(
                f"was fitted on people who see {task} as it is; leave out believes.", source=source
            )
        was = expected[task]
        what = f"the task {was.name!r}" if was.name else "values of their own"
        if task not in given:
            raise FitError(
                f"was fitted on people who do not see {task} as it is: they go by {what} (sha256 "
                f"{was.sha256[:12]}). Give it again: load_fit(path, task, believes=…).",
                source=source,
            )
        if describe(task, given[task]).sha256 != was.sha256:
            raise FitError(
                f"was fitted on people who go by {what} (sha256 {was.sha256[:12]}) in {task}, and believes "
                "is something else, so sensitivities would not be comparable. Give what it was fitted with, "
                "or fit again.",
                source=source,
            )


def _builtin(saved: dict[str, Any], source: str) -> list[TaskModel]:
    names = [entry["name"] for entry in saved["tasks"]]
    missing = [name for name in names if name not in builtin_tasks()]
    if missing:
        raise FitError(
            f"was fitted on the task {missing[0]!r}, which is not built in. Give it: load_fit(path, task).",
            source=source,
        )
    return [load_task(name) for name in names]


def _check_tasks(tasks: TaskSet, saved: dict[str, Any], source: str) -> None:
    expected = {entry["name"]: entry["sha256"] for entry in saved["tasks"]}
    if list(expected) != list(tasks.names):
        raise FitError(
            f"was fitted on {_few(list(expected))}, but {_few(tasks.names)} was given.", source=source
        )
    for task in tasks.tasks:
        if task.fingerprint != expected[task.name]:
            raise FitError(
                f"was fitted on another version of the task {task.name!r}: its map, rules, rewards or "
                "settings differ, so sensitivities would not be comparable. Give the task it was fitted on, "
                "or fit again.",
                source=source,
            )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
