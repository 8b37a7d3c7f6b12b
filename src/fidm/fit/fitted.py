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
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fidm
from fidm.cohort import Cohort
from fidm.errors import FitError, few, one_of, remedy
from fidm.files import whole_file
from fidm.fit import joint as joints
from fidm.fit import sensitivity
from fidm.fit.common import (
    Data,
    action_status,
    bare,
    drawn,
    informed,
    plain_algebra,
    threads,
    valid_inferred,
    valid_level,
)
from fidm.fit.draws import Noise, draw_jointly, draw_sensitivities
from fidm.fit.effort_alone import EffortFit
from fidm.fit.joint import JointPrior
from fidm.fit.kinds import Kinds, Likelihood
from fidm.fit.offsets import REPORT_NODES, WIDE_NODES, OwnKinds, Plausible, Population
from fidm.fit.population import Learned
from fidm.fit.profile import (
    FEW_ACTIONS,
    FEWEST_FOR_SHARES,
    NO_OBSERVATION,
    SENSITIVITY,
    TOLD_APART,
    told_apart,
)
from fidm.fit.regression import Layout, Regressed, regress_offsets, regress_sensitivity
from fidm.fit.sensitivity import PlausiblePriors, Sensitivities, SensitivityPrior
from fidm.model.channels import Channel
from fidm.model.effort import (
    design_names,
    paper_channels,
)
from fidm.registry import CHANNELS
from fidm.tasks.beliefs import Belief, Believes, describe, name_beliefs, seen_values
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Values, read_only

Learnt = TypeVar("Learnt", Plausible, PlausiblePriors, Kinds)

JOINT_PEOPLE, CORRELATED_PEOPLE = 4_000, 1_000
"""So many people are enough to learn a joint prior, and correlations."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fit(EffortFit):
    """What people share, learned from a training part; profiles anybody.

    Parameters
    ----------
    channels, levels, populations, method, population, level, n_people, n_learned, kinds, alike, notes
        As in :class:`fidm.EffortFit`.
    tasks, q
        The stacked tasks and the value of every legal action in them.
    prior : SensitivityPrior
        Mean and sd of log η among people.
    lapse, lapse_se : float
        The lapse rate and its standard error (NaN where it was given).
    joint : JointPrior or None
        The joint prior of (log η, θ…), if one was learned.
    skipped : tuple of str
        Channels of the paper that were not fitted, because the segments lack their columns.
    inferred : float
        How much an inferred move counts in the action likelihood; see :class:`fidm.Model`.
    beliefs : tuple of Belief
        What people take the tasks to be, where it is not what they are; see :class:`fidm.Model`.
    """

    tasks: TaskSet
    q: Floats
    prior: SensitivityPrior
    lapse: float
    lapse_se: float
    joint: joints.JointPrior | None = None
    skipped: tuple[str, ...] = ()
    inferred: float = 0.0
    beliefs: tuple[Belief, ...] = ()

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
        found = [*noted, *self._said()]
        if self.prior.sd >= 0.99 * sensitivity.LARGEST_SD:
            found.append(f"{SENSITIVITY}: the data do not tell how much people differ.")
        if self.lapse_se > 0 and self.lapse >= 0.01 and self.lapse > 2 * self.lapse_se:
            found.append(
                f"{SENSITIVITY}: about {self.lapse:.0%} of the choices look random: lapses, wrongly "
                "grounded moves, or a sensitivity that changes over time. Their share is taken into account."
            )
        if self.prior.random:
            found.append(
                f"{SENSITIVITY}: about {self.prior.random:.0%} of the people choose as if at random; see the "
                "status at_random."
            )
        return tuple(found)

    def log_likelihood(
        self,
        cohort: Cohort | pl.DataFrame | Any,
        *,
        at: Literal["estimate", "prior"] = "estimate",
        workers: int | None = None,
    ) -> pl.DataFrame:
        """Return how probable each person's data are, by factor; see :meth:`EffortFit.log_likelihood`."""
        return EffortFit.log_likelihood(self, cohort, at=at, workers=workers)

    def correlations(self, cohort: Cohort) -> pl.DataFrame:
        """Return how parameters go together in people: those themselves, not their estimates.

        Correlations of estimates are too small, by how badly each is known, and where one person did less
        than another, they are of how much people did. Here everybody's likelihood is averaged over. Where
        the fit is regressed on covariates, correlations are of what these leave.

        Parameters
        ----------
        cohort : Cohort
            The people, as a rule the training part; of more than 1,000, those whose ids have the smallest
            hash.

        Returns
        -------
        DataFrame
            A row per pair: ``first``, ``second``, the ``correlation`` (the median of its posterior), its
            standard error ``se``, the interval ``low`` to ``high``, and ``n_people`` with observations of
            both. Pairs of fewer than 10 people are left out, and parameters in which people are alike.
        """
        self._check_priors()
        some = drawn(cohort, CORRELATED_PEOPLE)
        data = self._data(some)
        seen = [np.diff(data.choices.person_offsets) > 0, *(one.counts > 0 for one in data.effort)]
        likelihoods = self._likelihoods(data)
        prior = joints.JointPrior(self._centre(), np.diag(self._prior_sd() ** 2))
        rows = []
        for (i, first), (k, second) in itertools.combinations(enumerate(self.parameters), 2):
            n = int((seen[i] & seen[k]).sum())
            if n >= FEWEST_FOR_SHARES and not {first, second} & set(self.alike):
                found = joints.correlation(likelihoods, prior, i, k, self.level)
                rows.append((first, second, *found, n))
        numbers = dict.fromkeys(("correlation", "se", "low", "high"), pl.Float64)
        schema = {"first": pl.String, "second": pl.String, **numbers, "n_people": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @plain_algebra
    def likelihood_ratios(self, cohort: Cohort, *, workers: int | None = None) -> pl.DataFrame:
        """Return tests of the terms of a regression by the ratio of likelihoods, beside Wald's.

        Every term is left out in turn and the rest is learned again, with the lapse rate of the fit. Where
        people of a cluster go together, likelihoods cannot be compared; take Wald's test.

        Parameters
        ----------
        cohort : Cohort
            The training part.
        workers : int, optional
            Threads; changes no number.

        Returns
        -------
        DataFrame
            ``parameter``, ``term``, the p-values ``p_wald`` (of :meth:`regression_table`) and ``p_ratio``,
            null where people who choose at random are found only with the term, or only without it.
        """
        data, pool = self._data(cohort), threads(workers)
        wald = {
            row[:2]: row[2]
            for row in self.regression_table().select("parameter", "term", "p_term").iter_rows()
        }

        def learned(name: str, columns: Sequence[int]) -> Regressed:
            if name == SENSITIVITY:
                known = np.asarray(data.choices.known)[:, columns]
                return regress_sensitivity(data.choices, known, lapse=self.lapse, workers=pool)
            place = [channel.name for channel in self.channels].index(name)
            known = np.asarray(data.effort[place].known)[:, columns]
            return regress_offsets(self.channels[place], data.effort[place], self.levels, known, workers=pool)

        rows = []
        for name, layout in self.regress.items():
            every = range(len(layout.names))
            whole = learned(name, every)
            for term, own in layout.terms.items():
                smaller = learned(name, [k for k in every if k not in own])
                is_same = whole.n_free - smaller.n_free == len(own)
                rows.append((name, term, wald[name, term], whole.against(smaller) if is_same else None))
        schema = {"parameter": pl.String, "term": pl.String, "p_wald": pl.Float64, "p_ratio": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def save(self, path: str | Path) -> None:
        """Write the fit to a JSON file that :func:`fidm.load_fit` reads; whole or not at all."""
        with whole_file(path) as part:
            part.write_text(json.dumps(to_dict(self), indent=2, ensure_ascii=False) + "\n", "utf-8")

    # ------------------------------------------------------------------ inside

    def _data(self, cohort: Cohort) -> Data:
        data = Data.of(
            self.tasks,
            self.q,
            self.channels,
            self.levels,
            cohort,
            need_columns=False,
            inferred=self.inferred,
            longest=self.longest,
        )
        return data.with_known(self.known(cohort), self.channels)

    def _alone(self) -> Fit:
        return replace(self, method="mle", kinds=None, joint=None)

    def _slopes(self, name: str) -> tuple[Floats, Floats, float, float]:
        if name != SENSITIVITY:
            return EffortFit._slopes(self, name)
        assert self.prior.slopes is not None  # noqa: S101
        assert self.prior.covariance is not None  # noqa: S101
        return self.prior.slopes, self.prior.covariance, self.prior.freedom, self.prior.sd

    def _centre(self) -> Floats:
        return np.array([self.prior.mean, *EffortFit._centre(self)])

    def _prior_sd(self) -> Floats:
        return np.array([self.prior.sd, *EffortFit._prior_sd(self)])

    def _prior_sd_range(self) -> Floats:
        return np.array([self.prior.sd_range(), *EffortFit._prior_sd_range(self)])

    def _population_rows(self) -> list[tuple[str, str, float, float]]:
        rows = [
            (f"log_{SENSITIVITY}", "mean", self.prior.mean, self.prior.mean_se),
            (f"log_{SENSITIVITY}", "sd", self.prior.sd, self.prior.sd_se),
            ("lapse", "rate", self.lapse, self.lapse_se),
        ]
        return (rows if np.isfinite(self.prior.sd) else rows[2:]) + EffortFit._population_rows(self)

    def _log_likelihoods(self, data: Data, own: Floats | None, workers: int) -> dict[str, Floats]:
        if own is None:
            action = sensitivity.posterior(
                data.choices, self.prior, lapse=self.lapse, level=0.95, workers=workers
            )[1]
        else:
            action = sensitivity.values_at(data.choices, own[:, 0], self.lapse)
        return {"action": action, **EffortFit._log_likelihoods(self, data, own, workers)}

    def _without_each(self, data: Data, workers: int) -> dict[str, Floats]:
        action = sensitivity.choices_without_each(data.choices, self.prior, lapse=self.lapse, workers=workers)
        return {"action": action, **EffortFit._without_each(self, data, workers)}

    def _estimates(self, cohort: Cohort) -> dict[str, NDArray[Any]]:
        data = self._data(cohort)
        kinds = self._own_kinds(data)
        action = self._sensitivities(data, kinds[0])
        log_eta, log_se = action.log_estimate.copy(), action.log_se.copy()
        columns = {
            name: np.column_stack([getattr(action, name), effort])
            for name, effort in self._offsets(data, kinds[1:]).items()
        }
        given = self._errors_given_prior(data, kinds[1:], columns["se"][:, 1:])
        columns["error_given_prior"] = np.column_stack(
            [self._log_error_given_prior(data, kinds[0], log_se), given]
        )
        if self.joint is not None and len(cohort):
            self._apply_joint(data, columns, log_eta, log_se)
        n = data.choices.n_choices
        of_action = action_status(action, n, log_se, informed(self.prior.sd, self.method))
        status = [of_action, *self._offset_status(data, columns["se"][:, 1:])]
        random = np.full(len(cohort), np.nan) if action.random is None else action.random.copy()
        random[of_action == NO_OBSERVATION] = np.nan
        own = {"log_sensitivity": log_eta, "log_sensitivity_se": log_se, "random": random}
        told = self._told(data, columns, status, [n], own)
        for values in (log_eta, log_se):
            values[np.isnan(columns["estimate"][:, 0])] = np.nan
        return told

    def _sensitivities(self, data: Data, kinds: OwnKinds | None) -> Sensitivities:
        if self.method == "mle" or not np.isfinite(self.prior.sd):
            return sensitivity.maximum(data.choices, lapse=self.lapse, level=self.level)
        return sensitivity.posterior(
            data.choices, self.prior, lapse=self.lapse, level=self.level, kinds=kinds
        )[0]

    def _log_error_given_prior(self, data: Data, kinds: OwnKinds | None, log_se: Floats) -> Floats:
        """The standard error of everybody's log η if its prior were known, [P]."""
        if self.method != "eb" or self.prior.plausible is None or not np.isfinite(self.prior.sd):
            return log_se
        sure = replace(self.prior, plausible=None)
        found = sensitivity.posterior(data.choices, sure, lapse=self.lapse, level=self.level, kinds=kinds)
        return found[0].log_se

    def _draws(self, data: Data, noise: Noise) -> list[Floats]:
        if not np.isfinite(self.prior.sd):
            return [np.full(noise.kind.shape, np.nan), *EffortFit._draws(self, data, noise)]
        kinds = self._own_kinds(data)[0]
        own = self._sensitivities(data, kinds)
        log_eta = draw_sensitivities(data.choices, self.prior, self.lapse, own, kinds, noise)
        if self.joint is None:
            return [log_eta, *EffortFit._draws(self, data, noise)]
        seen = self._likelihoods(data)
        centre = joints.marginals(seen, self.joint, self.level)[0][:, :, None]
        drawn = centre + (draw_jointly(seen, self.joint, noise) - centre) * self._doubt(data)[:, :, None]
        drawn += self._moved(data)[:, :, None]
        few = data.choices.n_choices[:, None] < FEW_ACTIONS
        return [np.where(few, log_eta, drawn[:, 0]), *np.moveaxis(drawn[:, 1:], 1, 0)]

    def _doubt(self, data: Data) -> Floats:
        """By how much doubt about what people share widens errors of one parameter at a time, [P, K]."""
        kinds = self._own_kinds(data)
        of_action, effort = self._sensitivities(data, kinds[0]).log_se, self._offsets(data, kinds[1:])["se"]
        given = self._errors_given_prior(data, kinds[1:], effort)
        of_action_given = self._log_error_given_prior(data, kinds[0], of_action)
        return _wider(np.column_stack([of_action, effort]), np.column_stack([of_action_given, given]))

    def _moved(self, data: Data) -> Floats:
        """By how much covariates move the mean of everybody's parameters, [P, K]."""
        known = {SENSITIVITY: data.choices.known} | {
            channel.name: seen.known for channel, seen in zip(self.channels, data.effort, strict=True)
        }
        return self._rises({name: own for name, own in known.items() if own is not None}, len(data))

    def _likelihoods(self, data: Data) -> joints.Likelihoods:
        """Everybody's one-dimensional likelihoods, on nodes placed by the independent priors.

        What covariates add to a person's mean is taken off.
        """
        own, _ = sensitivity.posterior(data.choices, self.prior, lapse=self.lapse, level=self.level)
        centre, scale = [own.log_mean], [own.log_se]
        etas = np.exp(own.log_mean[:, None] + own.log_se[:, None] * WIDE_NODES)
        log = [sensitivity.values_on(data.choices, etas, self.lapse)]
        all_nodes = [WIDE_NODES]
        for channel, seen in zip(self.channels, data.effort, strict=True):
            shared = self._shared(channel)
            for column, place in zip(bare(channel, shared, seen), (centre, scale, log), strict=True):
                place.append(column)
            all_nodes.append(REPORT_NODES)
        if self.regress:
            centre = [own - moved for own, moved in zip(centre, self._moved(data).T, strict=True)]
        return joints.Likelihoods(tuple(centre), tuple(scale), tuple(all_nodes), tuple(log))

    def kind_likelihoods(self, data: Data) -> list[Likelihood]:
        """Return everybody's likelihood of every parameter, to tell what kind of person they are."""
        if np.isfinite(self.prior.sd):
            found = [Likelihood(*sensitivity.likelihood_on_nodes(data.choices, self.prior, self.lapse))]
        else:  # nothing is known of it
            found = [Likelihood(np.linspace(-4, 4, 33), np.ones((len(data), 33)))]
        return found + EffortFit.kind_likelihoods(self, data)

    def _alike(self, data: Data) -> list[str]:
        found = EffortFit._alike(self, data)
        if np.isfinite(self.prior.sd):
            best = replace(self.prior, plausible=None)
            own, _ = sensitivity.posterior(data.choices, best, lapse=self.lapse, level=self.level)
            some = np.diff(data.choices.person_offsets) > 0
            if told_apart(own.log_se[some], best.sd, self.prior.sd_range()[1]) < TOLD_APART:
                return [SENSITIVITY, *found]
        return found

    def with_joint(self, learners: Cohort) -> Fit:
        """Return the same fit with a joint prior learned on top."""
        chosen = drawn(learners, JOINT_PEOPLE)
        data = self._data(chosen)
        mean = np.array([self.prior.mean, *(self._shared(channel).mean for channel in self.channels)])
        start = joints.JointPrior(mean, np.diag(self._prior_sd() ** 2))
        seen = self._likelihoods(data)
        learned, converged = joints.learn(seen, start)
        joint = joints.shrunk(learned, start, joints.chance(seen, start))
        if joint is None:
            said = [
                f"No two parameters go together in {len(chosen)} people by more than a standard error: "
                "one at a time is estimated."
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
        """Replace one-at-a-time posteriors by those under the joint prior, but for the guarded ones.

        The joint prior is taken as known; doubt about what people share widens what comes of it as much as it
        widens estimates of one parameter at a time.
        """
        assert self.joint is not None  # noqa: S101
        seen = self._likelihoods(data)
        alone = np.column_stack([log_se, columns["se"][:, 1:]])
        wider = _wider(alone, columns["error_given_prior"])
        estimate, given, low, high = joints.marginals(seen, self.joint, self.level)
        sd = given * wider
        low, high = estimate + wider * (low - estimate), estimate + wider * (high - estimate)
        if self.regress:
            estimate, low, high = (ends + self._moved(data) for ends in (estimate, low, high))
        for name, found in (("estimate", estimate), ("se", sd), ("low", low), ("high", high)):
            columns[name][:, 1:] = found[:, 1:]
        enough = data.choices.n_choices >= FEW_ACTIONS
        columns["error_given_prior"][:, 1:] = given[:, 1:]
        columns["error_given_prior"][enough, 0] = given[enough, 0]
        log_eta[enough], log_se[enough] = estimate[enough, 0], sd[enough, 0]
        for name, values in (
            ("estimate", np.exp(estimate[:, 0])),
            ("se", np.exp(estimate[:, 0]) * sd[:, 0]),
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


def _wider(se: Floats, given: Floats) -> Floats:
    """How many times as large errors are as those given what people share; 1 where either is unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = se / given
    return np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)


FORMAT = "fidm fit"
SCHEMA = 3


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
                "people": learned.n_people,
            }
        )
    joint = None
    if fit.joint is not None:
        joint = {
            "parameters": ["log_action_sensitivity", *fit.parameters[1:]],
            "mean": fit.joint.mean.tolist(),
            "covariance": fit.joint.covariance.tolist(),
        }
    regressed = {}
    for name, layout in fit.regress.items():
        slopes, covariance, freedom, _ = fit._slopes(name)
        numbers = {"slopes": slopes.tolist(), "covariance": covariance.tolist(), "freedom": freedom}
        reach = {"reach": fit.prior.reach} if name == SENSITIVITY else {}
        regressed[name] = {**layout.to_dict(), "learned": {**numbers, **reach}}
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
        "longest_segment": _plain(fit.longest),
        **({"regress": regressed} if regressed else {}),
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
    if saved.get("schema") != SCHEMA:
        raise FitError(
            f"has the schema {saved.get('schema')}; this version of fidm reads {SCHEMA}. "
            f"It was written by fidm {saved.get('fidm_version')}: fit again.",
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
    _check_beliefs(named, [Belief(**entry) for entry in saved["believes"]], source)
    seen, beliefs = seen_values(tasks, values, named)
    layouts = {name: Layout.from_dict(entry) for name, entry in saved.get("regress", {}).items()}
    regressed: dict[str, dict[str, Any]] = {
        name: {
            key: np.array(value) if isinstance(value, list) else float(value) for key, value in own.items()
        }
        for name, own in ((name, entry["learned"]) for name, entry in saved.get("regress", {}).items())
    }
    channels, populations = [], {}
    for entry in saved["channels"]:
        kind = entry["kind"]
        if kind not in kinds and kind not in CHANNELS:
            raise FitError(
                f"uses a channel of the kind {kind!r}. "
                + remedy(
                    "Give its class: load_fit(…, channels=[…]).", "Name its class in study.toml, [channels]."
                ),
                source=source,
            )
        prior = {"mean": 0.0, "sd": math.inf} if entry["prior"] is None else entry["prior"]
        known = ("kind", "coefficients", "shape", "prior", "carried", "plausible", "se", "warnings", "people")
        options = {key: value for key, value in entry.items() if key not in known}
        channel = (kinds.get(kind) or CHANNELS.find(kind))(**{**options, "design": tuple(entry["design"])})
        levels = {column: tuple(names) for column, names in saved["levels"].items()}
        own = regressed.get(entry["name"], {})
        if list(entry["coefficients"]) != list(design_names(channel, levels)):
            raise ValueError(f"the coefficients of {channel.name} are not those of its design")
        shape = 1.0 if entry["shape"] is None else float(entry["shape"])
        shared = Population(
            np.array(list(entry["coefficients"].values()), dtype=np.float64),
            shape,
            float(prior["mean"]),
            float(prior["sd"]),
            float(entry["carried"]),
            own.get("slopes"),
        )
        channels.append(channel)
        populations[channel.name] = Learned(
            shared,
            dict(entry["se"]),
            tuple(entry["warnings"]),
            _unlisted(Plausible, entry["plausible"]),
            n_people=int(entry["people"]),
            covariance=own.get("covariance"),
            freedom=own.get("freedom", math.nan),
        )
    action = saved["action_sensitivity"]
    one_of("method", saved["method"], ("eb", "mle"), FitError)
    one_of("population", saved["population"], ("random", "pooled"), FitError)
    valid_level(saved["level"])
    joint = saved["joint"]
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
            random=float(action["at_random"]),
            plausible=_unlisted(PlausiblePriors, action["plausible"]),
            **regressed.get(SENSITIVITY, {}),
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
        inferred=valid_inferred(action["inferred"]),
        kinds=_unlisted(Kinds, saved["kinds"]),
        alike=tuple(saved["alike"]),
        beliefs=beliefs,
        notes=tuple(saved["notes"]),
        longest=math.inf if saved["longest_segment"] is None else float(saved["longest_segment"]),
        regress=layouts,
    )


def _listed(arrays: Plausible | PlausiblePriors | Kinds | None) -> dict[str, Any] | None:
    """The arrays of what was learned, by name."""
    if arrays is None:
        return None
    found = {one.name: getattr(arrays, one.name) for one in fields(arrays)}
    return {name: values.tolist() for name, values in found.items() if values is not None}


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
                f"{was.sha256[:12]}). "
                + remedy(
                    "Give it again: load_fit(path, task, believes=…).", "Such a fit is for Python alone."
                ),
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
            f"was fitted on the task {missing[0]!r}, which is not built in. "
            + remedy(
                "Give it: load_fit(path, task).", "Name it in study.toml (tasks), or give it: --task FILE."
            ),
            source=source,
        )
    return [load_task(name) for name in names]


def _check_tasks(tasks: TaskSet, saved: dict[str, Any], source: str) -> None:
    expected = {entry["name"]: entry["sha256"] for entry in saved["tasks"]}
    if list(expected) != list(tasks.names):
        raise FitError(
            f"was fitted on {few(list(expected))}, but {few(tasks.names)} was given.", source=source
        )
    for task in tasks.tasks:
        if task.fingerprint != expected[task.name]:
            raise FitError(
                f"was fitted on another version of the task {task.name!r}: its map, rules, rewards or "
                "settings differ, so sensitivities would not be comparable. Give the task it was fitted on, "
                "or fit again.",
                source=source,
            )


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
