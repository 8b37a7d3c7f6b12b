r"""Which account of people's choices predicts them best, and what the best one still fails to describe.

Every action model (:mod:`fidm.action_models`) is judged on choices it did not learn from, in two ways:

- *by people*: what people share is learned from the other folds of people; the score is the log-likelihood
  of all a person chose, averaged over the people that this lets expect;
- *by trials*: from the same population and the person's other trials, the choices of each fold of trials are
  predicted. This asks whether a parameter of a person is worth estimating.

Both count the same choices for every model. Differences to the reference are per choice, with an interval
from a bootstrap of people.

Groups may mix: some people go by one account, some by another. The *random-effects* table takes the held-out
log-likelihood by people as evidence, and finds how frequent each account is among people (Stephan et al.
2009), how probable it is that it is the most frequent one, and that probability *protected* against the
possibility that differences between people's evidence are chance (Rigoux et al. 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fidm.cohort import Cohort
from fidm.errors import FitError, at_least, listed
from fidm.experiments.criticism import Criticism, criticise
from fidm.experiments.shared import groups_of
from fidm.fit.action_fit import (
    ActionFit,
    Tabulated,
    fitted,
    learn_shared,
    require_people,
    require_usable,
    stated,
    tabulate,
)
from fidm.fit.common import plain_algebra, valid_level
from fidm.model.action_models import ActionModel, Made, World, list_chosen
from fidm.record import Record, hash_values, plain
from fidm.registry import ACTION_MODELS
from fidm.stats import deal, redraws
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Integers, Progress

DRAWS = 100_000
"""How many draws of frequencies tell how probably each model is the most frequent one."""

MOST_ROUNDS = 10_000
"""The most rounds of the random-effects estimate; it ends long before."""

FEWEST_PEOPLE = 4
"""Fewer people cannot be dealt to folds that leave two to learn from."""


def usual_models() -> tuple[ActionModel, ...]:
    """Return the models that are compared where none are named, the reference first."""
    return tuple(ACTION_MODELS.find(name) for name in ACTION_MODELS.names())


@dataclass(frozen=True, slots=True, eq=False)
class ModelComparison:
    """How well each account of choices predicts held-out choices.

    Parameters
    ----------
    record : Record
        How it came about.
    models : DataFrame
        A row per model: how many ``parameters`` a person has; held-out log-likelihood per choice
        ``by_people`` and ``by_trials``; their differences to the reference with intervals
        (``people_difference``, ``people_low``, ``people_high``, and likewise of trials); of how many people
        it is the ``best``; ``frequency``, ``exceedance`` and ``protected`` of the random-effects table.
    parameters : DataFrame
        A row per model and parameter: what people share, learned from everybody.
    people : DataFrame
        A row per person: ``n`` choices, the ``best`` model, by how much its log-likelihood is above the
        second, and the probability of each model under the random-effects estimate (``p_NAME``).
    criticism : Criticism
        What the reference and the best model fail to describe.
    chance : float
        The probability that no model is more frequent than others, and differences are chance.
    not_run : mapping of str to str
        Models that could not be used, and why.
    notes : tuple of str
        What is to be known of it.
    """

    record: Record
    models: pl.DataFrame
    parameters: pl.DataFrame
    people: pl.DataFrame
    criticism: Criticism
    chance: float
    not_run: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        return {
            "": self.models,
            "parameters": self.parameters,
            "people": self.people,
            **self.criticism.tables,
        }

    @property
    def reference(self) -> str:
        """The model the others are compared with."""
        return str(self.models["model"][0])

    @property
    def best(self) -> str:
        """The model that predicts people it was not learned from best."""
        return str(self.models.sort("by_people", descending=True, maintain_order=True)["model"][0])

    @property
    def is_beaten(self) -> bool:
        """Whether some model predicts held-out people better than the reference beyond chance."""
        return bool((self.models["people_low"] > 0).any())

    def row(self, model: str) -> dict[str, Any]:
        """Return what is known of one model."""
        found = self.models.filter(pl.col("model") == model)
        if not found.height:
            raise FitError(f"There is no model {model!r}. There are: {', '.join(self.models['model'])}.")
        return found.row(0, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "models": plain(self.models),
            "parameters": plain(self.parameters),
            "people": plain(self.people),
            "criticism": self.criticism.to_dict(),
            "reference": self.reference,
            "best": self.best,
            "chance": self.chance,
            "not_run": dict(self.not_run),
            "notes": list(self.notes),
        }

    @classmethod
    def of(cls, record: Record, said: Mapping[str, Any]) -> ModelComparison:
        """Make it again from what was written."""
        return cls(
            record,
            pl.DataFrame(said["models"], infer_schema_length=None),
            pl.DataFrame(said["parameters"], infer_schema_length=None),
            pl.DataFrame(said["people"], infer_schema_length=None),
            Criticism.of(said["criticism"]),
            said["chance"],
            said["not_run"],
            tuple(said["notes"]),
        )

    def __repr__(self) -> str:
        names = listed([str(name) for name in self.models["model"]])
        return f"ModelComparison({names}; {self.people.height:,} people; best: {self.best})"


@plain_algebra
def compare_models(
    task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel],
    cohort: Cohort,
    models: Sequence[ActionModel] | None = None,
    *,
    folds: int = 5,
    trial_folds: int = 4,
    seed: int = 1,
    bootstrap: int = 2_000,
    replicates: int = 100,
    together: str | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    on_progress: Progress | None = None,
) -> ModelComparison:
    """Compare accounts of people's choices on choices they were not learned from.

    Parameters
    ----------
    task : TaskModel, or several
        The tasks they did.
    cohort : Cohort
        The people.
    models : sequence of ActionModel, optional
        The accounts, the first being the reference; see :mod:`fidm.action_models`. By default all that come
        with fidm and can be used for the tasks.
    folds, trial_folds : int
        How many folds people are dealt to, and the trials of each person.
    seed : int
        Of the folds, the bootstrap and the simulated choices that models are checked with.
    bootstrap : int
        How often people are drawn again for the intervals.
    replicates : int
        How often everybody's choices are simulated to see what a model fails to describe.
    together : str, optional
        A column of the participants: people with the same value stay in one fold and are drawn together.
    inferred : float
        How much a move counts that a planner filled in, as in :class:`fidm.Model`.
    level : float
        The level of intervals.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.action_models import Random, Softmax
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 12, seed=1)
    >>> found = fidm.compare_models(task, cohort, [Softmax(), Random()], replicates=5)
    >>> found.best
    'softmax'
    """
    valid_level(level)
    for name, value, least in (
        ("folds", folds, 2), ("trial_folds", trial_folds, 2), ("bootstrap", bootstrap, 20), ("seed", seed, 0),
        ("replicates", replicates, 2),
    ):  # fmt: skip
        at_least(name, value, least)
    say = on_progress or (lambda doing, done, of: None)
    tasks = TaskSet.of(task)
    asked, not_run = _usable(models, tasks)
    people = cohort[np.flatnonzero(np.diff(cohort.step_offsets[cohort.episode_offsets]) > 0)]
    world = World(tasks)
    made = {deep: list_chosen(world, people, inferred=inferred, remembers=deep) for deep in (False, True)}
    plays = made[False].n > 0
    require_people(made[False])
    if int(plays.sum()) < FEWEST_PEOPLE:
        raise FitError(
            f"{int(plays.sum())} people made choices; {FEWEST_PEOPLE} are needed to compare models."
        )
    group = groups_of(people, together)
    fold = _deal_people(group, plays, folds, seed)
    trial_fold = _deal_trials(made[False], trial_folds, seed)
    scores, fits, notes = {}, {}, []
    for number, model in enumerate(asked):
        say(model.name, number, len(asked) + 1)
        seen = tabulate(model, made[model.remembers], trial_fold, trial_folds)
        scores[model.name] = _held_out(seen, fold)
        fits[model.name] = fitted(seen, made[model.remembers], people.ids, level, notes=stated(model, world))
        notes += [f"{model.name}: {said}" for said in fits[model.name].notes]
    names = list(scores)
    by_people = np.stack([scores[name][0] for name in names])[:, plays]
    by_trials = np.stack([scores[name][1] for name in names])[:, plays]
    n = made[False].n[plays]
    random_effects = _frequencies(by_people, seed)
    say("checks", len(asked), len(asked) + 1)
    table = _models_table(
        fits,
        by_people,
        by_trials,
        n,
        group[plays],
        random_effects,
        seed=seed,
        bootstrap=bootstrap,
        level=level,
    )
    best = str(table.sort("by_people", descending=True, maintain_order=True)["model"][0])
    checked = {name: fits[name] for name in dict.fromkeys([names[0], best])}
    settings = {
        "models": [model.to_dict() for model in asked], "folds": folds, "trial_folds": trial_folds,
        "bootstrap": bootstrap, "replicates": replicates, "together": together, "inferred": inferred,
        "level": level, "groups": hash_values(groups_of(cohort, together)),
    }  # fmt: skip
    return ModelComparison(
        record=Record.of("compare-models", tasks.tasks, seed=seed, settings=settings, cohort=cohort),
        models=table,
        parameters=_parameters_table(fits),
        people=_people_table(names, by_people, people.ids.filter(pl.Series(plays)), n, random_effects),
        criticism=criticise(world, people, checked, replicates=replicates, seed=seed, inferred=inferred),
        chance=random_effects.chance,
        not_run=not_run,
        notes=tuple(notes),
    )


def _usable(
    models: Sequence[ActionModel] | None, tasks: TaskSet
) -> tuple[tuple[ActionModel, ...], dict[str, str]]:
    """The models to compare, and why others are not; those that somebody named must all be usable."""
    if models is None:
        why = {model: model.problems(tasks) for model in usual_models()}
        not_run = {model.name: said for model, said in why.items() if said}
        return tuple(model for model, said in why.items() if not said), not_run
    for model in models:
        require_usable(model, tasks)
    names = [model.name for model in models]
    if len(names) < 2 or len(set(names)) < len(names):
        raise FitError(
            "Two or more models of different names are needed to compare; "
            f"given: {', '.join(names) or 'none'}."
        )
    return tuple(models), {}


def _deal_people(group: Integers, plays: NDArray[np.bool_], folds: int, seed: int) -> Integers:
    """The fold of everybody; groups stay together, and people without choices are in none (-1)."""
    known = np.unique(group[plays])
    of_group = deal(len(known), min(folds, len(known)), seed=[seed])
    fold = of_group[np.minimum(np.searchsorted(known, group), len(known) - 1)]
    return np.where(plays, fold, -1)


def _deal_trials(made: Made, folds: int, seed: int) -> Integers:
    """The fold of every trial, spread evenly within each person."""
    order = np.random.default_rng([seed, 1]).permutation(made.n_trials)
    order = order[np.argsort(made.owner[order], kind="stable")]
    first = np.searchsorted(made.owner[order], made.owner[order], side="left")
    fold = np.empty(made.n_trials, dtype=np.int64)
    fold[order] = (np.arange(made.n_trials) - first) % folds
    return fold


def _held_out(seen: Tabulated, fold: Integers) -> tuple[Floats, Floats]:
    """The held-out log-likelihood of everybody by people and by trials, [P] each; NaN without choices."""
    by_people, by_trials = np.full((2, len(seen)), np.nan)
    for number in range(int(fold.max()) + 1):
        held, others = np.flatnonzero(fold == number), np.flatnonzero((fold >= 0) & (fold != number))
        shared = learn_shared(seen.people(others))
        own = seen.people(held)
        by_people[held] = shared.log_predictive(own)
        by_trials[held] = shared.log_predictive_trials(own).sum(axis=0)
    return by_people, by_trials


# ---------------------------------------------------------------------- random effects


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """How frequent each model is among people."""

    share: Floats  # [M]: the expected frequency
    exceedance: Floats  # [M]: how probably it is the most frequent one
    chance: float  # the probability that all are equally frequent
    person: Floats  # [M, P]: the probability of each model of each person

    @property
    def protected(self) -> Floats:
        """The probability of being the most frequent one, if differences may be chance, [M]."""
        return np.asarray((1 - self.chance) * self.exceedance + self.chance / len(self.share))


def _frequencies(evidence: Floats, seed: int) -> Frequencies:
    """How frequent models are among people, from the log-evidence of each, [M, P]."""
    m = len(evidence)
    alpha = np.ones(m)
    for _ in range(MOST_ROUNDS):
        log_share = special.digamma(alpha) - special.digamma(alpha.sum())
        person = special.softmax(evidence + log_share[:, None], axis=0)
        before, alpha = alpha, 1 + person.sum(axis=1)
        if np.abs(alpha - before).max() < 1e-10:
            break
    drawn = np.random.default_rng([seed, 2]).dirichlet(alpha, DRAWS)
    exceedance = np.bincount(drawn.argmax(axis=1), minlength=m) / DRAWS
    equal = float((special.logsumexp(evidence, axis=0) - np.log(m)).sum())
    differing = _free_energy(evidence, person, alpha)
    return Frequencies(alpha / alpha.sum(), exceedance, float(special.expit(equal - differing)), person)


def _free_energy(evidence: Floats, person: Floats, alpha: Floats) -> float:
    """A lower bound of the log-evidence that frequencies differ (Rigoux et al. 2014, appendix)."""
    m = len(alpha)
    log_share = special.digamma(alpha) - special.digamma(alpha.sum())
    fits = (person * (evidence + log_share[:, None])).sum() + special.entr(person).sum()
    prior, posterior = np.ones(m), alpha

    def log_norm(a: Floats) -> float:
        return float(special.gammaln(a).sum() - special.gammaln(a.sum()))

    apart = log_norm(posterior) - log_norm(prior) - ((posterior - prior) * log_share).sum()
    return float(fits + apart)


# ---------------------------------------------------------------------- tables


def _models_table(
    fits: Mapping[str, ActionFit],
    by_people: Floats,
    by_trials: Floats,
    n: Integers,
    group: Integers,
    found: Frequencies,
    *,
    seed: int,
    bootstrap: int,
    level: float,
) -> pl.DataFrame:
    """A row per model, in the order given."""
    best = np.argmax(by_people, axis=0)
    rows = []
    for number, (name, fit) in enumerate(fits.items()):
        row: dict[str, Any] = {"model": name, "parameters": len(fit.seen.parameters)}
        for way, score in (("people", by_people), ("trials", by_trials)):
            gain = score[number] - score[0]
            low, high = _interval(gain, n, group, seed, bootstrap, level) if number else (0.0, 0.0)
            row |= {
                f"by_{way}": float(score[number].sum() / n.sum()),
                f"{way}_difference": float(gain.sum() / n.sum()),
                f"{way}_low": low,
                f"{way}_high": high,
            }
        row |= {
            "best": int((best == number).sum()),
            "frequency": float(found.share[number]),
            "exceedance": float(found.exceedance[number]),
            "protected": float(found.protected[number]),
        }
        rows.append(row)
    return pl.DataFrame(rows)


def _interval(
    gain: Floats, n: Integers, group: Integers, seed: int, bootstrap: int, level: float
) -> tuple[float, float]:
    """The interval of a mean gain per choice, people drawn again."""
    rng, together = np.random.default_rng([seed, 3]), group if len(np.unique(group)) < len(group) else None
    found = np.concatenate(
        [
            gain[drawn].sum(axis=1) / n[drawn].sum(axis=1)
            for drawn in redraws(len(n), bootstrap, rng, together=together)
        ]
    )
    low, high = np.quantile(found, (0.5 - 0.5 * level, 0.5 + 0.5 * level))
    return float(low), float(high)


def _parameters_table(fits: Mapping[str, ActionFit]) -> pl.DataFrame:
    """What people share, model by model."""
    parts = [
        fit.population.insert_column(0, pl.Series("model", [name] * fit.population.height))
        for name, fit in fits.items()
    ]
    return pl.concat(parts, how="diagonal_relaxed")


def _people_table(
    names: Sequence[str], by_people: Floats, ids: pl.Series, n: Integers, found: Frequencies
) -> pl.DataFrame:
    """A row per person who chose."""
    order = np.sort(by_people, axis=0)
    return pl.DataFrame(
        {
            "participant": ids,
            "n": n,
            "best": [names[i] for i in by_people.argmax(axis=0)],
            "ahead": order[-1] - order[-2],
            **{f"p_{name}": found.person[i] for i, name in enumerate(names)},
        }
    )
