r"""Any model of choice: everybody's parameters, with what people share learned from them.

The likelihood of every trial is found on a coarse grid of a person's parameters x (on their free scale), and
again on nodes of the person's own, where the person may be, a fraction of a posterior standard deviation
apart; what people share is roughly known from the coarse grid. Everything
else is a sum over these nodes, each with the mass that what people share has in its cell. People are normal
in each parameter,

.. math:: p(y \mid \varphi) = \prod_j \int p(y_j \mid x) \prod_k N(x_k; m_k, s_k)\, dx,

with weak hyperpriors: the mean normal around the middle of what can be told, the sd a half-t with four
degrees of freedom (:mod:`fidm.fit.plausible`). What the people leave open about φ is not ignored: estimates,
intervals and predictions are averaged over a weighted sample of plausible φ. Of a parameter with a few
levels, such as a depth, the cell of a level reaches half-way to its neighbours.

Predictions of people who were not learned from, and of trials from the other trials of the same person, are
ratios of such integrals, so no step is approximated by a normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize, special

from fidm.cohort import Cohort, offsets_of
from fidm.errors import FitError
from fidm.fit.common import plain_algebra, valid_level
from fidm.fit.plausible import log_sd_prior, sample
from fidm.fit.population import FEWEST_PEOPLE
from fidm.fit.profile import FEW_ACTIONS, STATUSES
from fidm.model.action_models import ActionModel, Made, Parameter, World, list_chosen
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Integers, Progress

if TYPE_CHECKING:
    import arviz

DEEP = 12.0
"""Nodes whose log-posterior lies lower than the best by more are left out."""

CLOSE = (0.2, 0.5, 0.8)
"""How many standard deviations of somebody's posterior nodes lie apart: of one, two or more parameters
without levels."""

WIDER = 2.0
"""What people share is known roughly when nodes are laid out; it may be so many times wider."""

ROUGHLY = 20
"""The rounds in which it is found."""

MOST_NODES = 2_000
"""How many nodes a person has at most; otherwise they lie farther apart."""

MANY = 2
"""With more parameters than these every second node is tabulated."""

ROUNDS = 5
"""How often nodes may be moved closer together."""

OPTIONS = 1_000_000
"""About how many options are worked on at a time."""

POINTS = 128
"""How many populations stand for the plausible ones."""

NEGLIGIBLE = 1e-4
"""Populations whose weight is a smaller share of the largest one are left out."""

EDGE = 0.1
"""Somebody with so much probability at the outer nodes of a parameter is at the edge of what is tabulated."""

TOLD = 0.8
"""A parameter whose posterior sd is above this share of the prior's has told little."""

ROOT = math.sqrt(2 * math.pi)
SMALLEST_SD = 0.05
LARGEST_SD = 4.0


# ---------------------------------------------------------------------- likelihoods on nodes


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """Everybody's likelihood of one model on nodes of their own, person after person.

    ``held`` are the log-likelihoods of the trials of each fold; their sum is that of the person.
    """

    model: ActionModel
    parameters: tuple[Parameter, ...]
    offsets: Integers  # [P + 1]: where the nodes of each person begin
    x: Floats  # [T, D]: the free numbers of each node
    # [T, D]: the ends of its cell; those of outer cells of the whole table are infinite.
    low: Floats
    high: Floats
    held: Floats  # [F, T]
    n: Integers  # [P]: how many choices of each person count

    @property
    def log_likelihood(self) -> Floats:
        """Of everything a person did, [T]."""
        return np.asarray(self.held.sum(axis=0))

    def __len__(self) -> int:
        return len(self.n)

    def people(self, chosen: Integers) -> Tabulated:
        """Return some of the people."""
        sizes = np.diff(self.offsets)[chosen]
        cut = offsets_of(sizes)
        nodes = np.repeat(self.offsets[chosen] - cut[:-1], sizes) + np.arange(cut[-1])
        return replace(
            self, offsets=cut, x=self.x[nodes], low=self.low[nodes], high=self.high[nodes],
            held=self.held[:, nodes], n=self.n[chosen],
        )  # fmt: skip


def tabulate(model: ActionModel, made: Made, fold: Integers, folds: int) -> Tabulated:
    """Return everybody's likelihood on nodes; ``fold`` is that of each trial, [T]."""
    parameters = model.parameters(made.world)
    _check_parameters(model, parameters)
    if sum(not one.is_discrete for one in parameters) > MANY:
        parameters = tuple(
            one if one.is_discrete else replace(one, nodes=one.nodes[::2]) for one in parameters
        )
    shape = tuple(len(one.nodes) for one in parameters)
    people = len(made.n)
    coarse = np.empty((*shape, people))
    for index in np.ndindex(shape):
        values = {one.name: one.value(one.nodes[i]) for one, i in zip(parameters, index, strict=True)}
        found = model.log_likelihoods(made, values)
        coarse[index] = np.bincount(made.owner, found, minlength=people)
    people_like = _expected(parameters, coarse.reshape(-1, people)[:, made.n > 0])
    parts = [_own_nodes(model, parameters, made, j, coarse[..., j], people_like) for j in range(people)]
    x, low, high = (np.concatenate([part[k] for part in parts]) for k in range(3))
    held = np.zeros((folds, len(x)))
    offsets = offsets_of([len(part[0]) for part in parts])
    for j, part in enumerate(parts):
        np.add.at(held[:, offsets[j] : offsets[j + 1]], fold[made.owner == j], part[3])
    return Tabulated(model, parameters, offsets, x, low, high, held, made.n)


def _check_parameters(model: ActionModel, parameters: Sequence[Parameter]) -> None:
    """Raise where parameters cannot be tabulated."""
    names = [one.name for one in parameters]
    if len(set(names)) < len(names):
        raise FitError(f"The action model {model.name} has two parameters of the same name: {names}.")
    kinds = [one.is_discrete for one in parameters]
    if kinds != sorted(kinds):
        raise FitError(f"The action model {model.name} must name parameters with levels last.")
    for one in parameters:
        steps = np.diff(one.nodes)
        if len(one.nodes) < 2 or not np.allclose(steps, steps[0]) or steps[0] <= 0:
            raise FitError(f"The nodes of {one.name} in {model.name} must rise by equal steps.")


def _expected(parameters: Sequence[Parameter], coarse: Floats) -> Floats:
    """Roughly what people share: mean, sd, and an sd that is wide enough if this is wrong, [3, D].

    Counted in coarse nodes, as everything that lays out nodes; ``coarse`` is everybody's log-likelihood on
    the coarse grid, [N, P]. It decides where likelihoods are looked at, and nothing else.
    """
    size = np.array([one.spacing for one in parameters])
    spread = np.array([one.spread for one in parameters]) / size
    middle = np.array([(one.middle - one.nodes[0]) for one in parameters]) / size
    places = np.indices([len(one.nodes) for one in parameters]).reshape(len(parameters), len(coarse))
    mean, sd = middle, np.hypot(np.array([one.reach for one in parameters]) / size, 2 * spread)
    for _ in range(ROUGHLY if coarse.size else 0):
        log_prior = -0.5 * (((places.T - mean) / sd) ** 2).sum(axis=1)
        weight = special.softmax(coarse + log_prior[:, None], axis=0).mean(axis=1)
        mean = places @ weight
        sd = np.maximum(np.sqrt(places**2 @ weight - mean**2), 0.25)
    return np.stack([mean, sd, WIDER * np.hypot(sd, spread)])


def _own_nodes(
    model: ActionModel,
    parameters: Sequence[Parameter],
    made: Made,
    j: int,
    table: Floats,
    people_like: Floats,
) -> tuple[Floats, Floats, Floats, Floats]:
    """One person's nodes [n, D], the ends of their cells, and the log-likelihoods of trials there, [T, n].

    ``table`` [N₁, …, N_D] is the person's log-likelihood on the coarse grid, which says where to look, as
    does ``people_like`` [3, D], what people share roughly.
    """
    if not parameters or made.n[j] == 0:
        one = np.zeros((len(parameters), 1))
        held = model.log_likelihoods(made.person(j), {})[:, None] if made.n[j] else np.zeros((0, 1))
        return *_cells(parameters, one, [np.zeros(1)] * len(parameters)), held
    places = np.indices(table.shape).reshape(len(parameters), -1).astype(np.float64)
    found, own = table.reshape(-1), made.person(j)
    before = [np.inf] * len(parameters)
    for _ in range(ROUNDS):
        axes = _axes(parameters, places, _likely(people_like, places, found))
        places = np.stack([one.reshape(-1) for one in np.meshgrid(*axes, indexing="ij")])
        held = _exactly(model, parameters, own, places)
        found = held.sum(axis=0)
        steps = [axis[1] - axis[0] if len(axis) > 1 else 0.0 for axis in axes]
        if all(step > 0.7 * earlier for step, earlier in zip(steps, before, strict=True)):
            break
        before = steps
    kept = (_likely(people_like, places, found) > -DEEP).any(axis=0)
    return *_cells(parameters, places[:, kept], axes), held[:, kept]


def _cells(
    parameters: Sequence[Parameter], places: Floats, axes: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """The free numbers of nodes at places [D, n] counted in coarse nodes, and the ends of their cells, [n,
    D].
    """
    x, low, high = np.empty((3, places.shape[1], len(parameters)))
    for k, (one, axis) in enumerate(zip(parameters, axes, strict=True)):
        half = 0.5 * (axis[1] - axis[0] if len(axis) > 1 else 2 * len(one.nodes))
        x[:, k] = one.nodes[0] + one.spacing * places[k]
        low[:, k] = np.where(places[k] <= half, -np.inf, x[:, k] - half * one.spacing)
        high[:, k] = np.where(places[k] >= len(one.nodes) - 1 - half, np.inf, x[:, k] + half * one.spacing)
    return x, low, high


def _exactly(model: ActionModel, parameters: Sequence[Parameter], own: Made, places: Floats) -> Floats:
    """The log-likelihood of a person's trials at places [D, n] counted in coarse nodes, [T, n]."""
    n, size = places.shape[1], len(own.seen.pair)
    found = np.empty((n, own.n_trials))
    many = max(1, OPTIONS // max(size, 1))
    for first in range(0, n, many):
        some = places[:, first : first + many]
        values = {
            one.name: np.repeat(one.value(one.nodes[0] + one.spacing * place), size)
            for one, place in zip(parameters, some, strict=True)
        }
        copies = own.copies(some.shape[1])
        found[first : first + many] = model.log_likelihoods(copies, values).reshape(-1, own.n_trials)
    return found.T


def _likely(people_like: Floats, places: Floats, log_likelihood: Floats) -> Floats:
    """Log-posteriors at places [D, n], the best being 0, if people are as expected, and if wider, [2, n]."""
    mean, *sds = people_like
    away = np.stack([(((places.T - mean) / sd) ** 2).sum(axis=1) for sd in sds])
    found = log_likelihood - 0.5 * away
    return np.asarray(found - found.max(axis=1, keepdims=True))


def _axes(parameters: Sequence[Parameter], places: Floats, likely: Floats) -> list[Floats]:
    """Where a person's nodes should lie along each parameter, counted in coarse nodes.

    ``places`` [D, n] is where the log-posteriors [2, n] are known.
    """
    weight = special.softmax(likely, axis=1)
    inside = places[:, (likely > -DEEP).any(axis=0)]
    continuous = sum(not one.is_discrete for one in parameters)
    close = CLOSE[min(max(continuous, 1), len(CLOSE)) - 1]
    apart, steps = [], []
    for place in places:
        known = np.unique(place)
        apart.append(float(known[1] - known[0]) if len(known) > 1 else 1.0)
        sd = math.sqrt(float((weight @ place**2 - (weight @ place) ** 2).clip(0).min()))
        steps.append(close * max(sd, 0.3 * apart[-1]))
    fewest = math.prod(len(one.nodes) if one.is_discrete else 2 for one in parameters)
    while True:
        axes = [
            _axis(one, float(used.min()) - more, float(used.max()) + more, step)
            for one, used, more, step in zip(parameters, inside, apart, steps, strict=True)
        ]
        if math.prod(map(len, axes)) <= max(MOST_NODES, fewest):
            return axes
        steps = [1.1 * step for step in steps]


def _axis(one: Parameter, first: float, last: float, step: float) -> Floats:
    """Even places between two; all levels of a parameter that has levels."""
    end = len(one.nodes) - 1
    if one.is_discrete:
        return np.arange(end + 1, dtype=np.float64)
    first, last = max(first, 0.0), min(last, float(end))
    return np.linspace(first, last, max(math.ceil((last - first) / step), 1) + 1)


# ---------------------------------------------------------------------- what people share


class Sharing:
    """The posterior of what people share: mean and log sd of every parameter, in turn."""

    def __init__(self, tabulated: Tabulated) -> None:
        self.seen = tabulated
        self.parameters = tabulated.parameters
        self.base = tabulated.log_likelihood
        self.owner = np.repeat(np.arange(len(tabulated)), np.diff(tabulated.offsets))
        # Along each parameter many nodes of a person share their cell: its ends, and which one each is in.
        self.cells = [self._cells(k) for k in range(len(self.parameters))]

    def _cells(self, k: int) -> tuple[Floats, Integers]:
        """The ends of every cell along a parameter, [2, C], and which one each node is in, [T]."""
        _, one, which = np.unique(self.owner + 1j * self.seen.x[:, k], return_index=True, return_inverse=True)
        return np.stack([self.seen.low[one, k], self.seen.high[one, k]]), which.reshape(-1)

    def log_prior(self, free: Floats) -> Floats:
        """Return the logarithm of the mass of every node's cell under a population, [T]."""
        found = np.zeros(len(self.seen.x))
        for k, (_, which) in enumerate(self.cells):
            found += self._mass(k, free)[0][which]
        return found

    def _mass(self, k: int, free: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithm of the mass of every cell along one parameter, and its ends in sds from the mean."""
        low, high = (self.cells[k][0] - free[2 * k]) / math.exp(free[2 * k + 1])
        above = low > 0  # the smaller tail is the exact one
        log_near = special.log_ndtr(np.where(above, -low, high))
        log_far = special.log_ndtr(np.where(above, -high, low))
        return log_near + np.log1p(-np.exp(np.minimum(log_far - log_near, -1e-15))), low, high

    def _slopes(self, k: int, free: Floats, share: Floats) -> tuple[float, float]:
        """How the log-likelihood of everybody changes with the mean and the log sd of one parameter.

        ``share`` is each node's share of its person's posterior, [T].
        """
        log_mass, *ends = self._mass(k, free)
        weight = np.bincount(self.cells[k][1], share, minlength=len(log_mass))
        used = weight > 0
        density = [weight[used] * np.exp(-0.5 * end[used] ** 2 - log_mass[used]) / ROOT for end in ends]
        low, high = (np.where(np.isfinite(end[used]), end[used], 0.0) for end in ends)
        by_mean = float((density[0] - density[1]).sum()) / math.exp(free[2 * k + 1])
        return by_mean, float((low * density[0] - high * density[1]).sum())

    def log_evidence(self, free: Floats, log_likelihood: Floats | None = None) -> Floats:
        """Return the log-likelihood of every person, averaged over the population, [P]."""
        return self._sums(self.log_prior(free) + (self.base if log_likelihood is None else log_likelihood))[0]

    def _sums(self, value: Floats) -> tuple[Floats, Floats]:
        """The logarithm of the sum of exp(value) over a person's nodes, [P], and each node's share of it."""
        begins = self.seen.offsets[:-1]
        top = np.maximum.reduceat(value, begins)
        share = np.exp(value - top[self.owner])
        total = np.add.reduceat(share, begins)
        share /= total[self.owner]
        return top + np.log(total), share

    def beforehand(self, free: Floats) -> tuple[float, Floats]:
        """Return the log-hyperprior and its slopes."""
        value, slope = 0.0, np.zeros(len(free))
        for k, one in enumerate(self.parameters):
            away = (free[2 * k] - one.middle) / one.reach
            of_sd, by_sd = log_sd_prior(float(free[2 * k + 1]), one.spread)
            value += of_sd - 0.5 * away**2
            slope[2 * k], slope[2 * k + 1] = -away / one.reach, by_sd
        return value, slope

    def posterior(self, free: Floats) -> tuple[float, Floats]:
        """Return the log-posterior of a population and its slopes."""
        log_z, share = self._sums(self.log_prior(free) + self.base)
        value, slope = self.beforehand(free)
        for k in range(len(self.parameters)):
            by_mean, by_sd = self._slopes(k, free, share)
            slope[2 * k] += by_mean
            slope[2 * k + 1] += by_sd
        return float(log_z.sum()) + value, slope

    def _downhill(self, free: Floats) -> tuple[float, Floats]:
        value, slope = self.posterior(free)
        return -value, -slope

    def populations(self) -> Populations:
        """Return the most probable population, and a sample of the plausible ones."""
        if not self.parameters:
            return Populations(np.zeros((1, 0)), np.ones(1), np.zeros(0))
        start = np.array([start for one in self.parameters for start in (one.middle, math.log(one.spread))])
        for k in range(len(self.parameters)):  # where people's likelihoods lie, as far as they tell
            start[2 * k] = self._centre(k)
        bounds = [
            end
            for one in self.parameters
            for end in (
                (float(one.nodes[0]), float(one.nodes[-1])),
                (math.log(SMALLEST_SD), math.log(LARGEST_SD * max(one.spread, 0.5))),
            )
        ]
        found = optimize.minimize(
            self._downhill, start, jac=True, bounds=bounds,
            method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-7, "maxiter": 500},
        )  # fmt: skip
        mode = found.x
        points, weight, _ = sample(self._many(bounds), mode, self._curvature(mode), POINTS)
        kept = weight > NEGLIGIBLE * weight.max()
        return Populations(points[kept], weight[kept] / weight[kept].sum(), mode)

    def _centre(self, k: int) -> float:
        """The median over people of where their own likelihood of a parameter lies."""
        own = self._sums(self.base)[1] * self.seen.x[:, k]
        return float(np.median(np.add.reduceat(own, self.seen.offsets[:-1])))

    def _curvature(self, mode: Floats) -> Floats:
        """The second derivatives of the log-posterior, by differences of its slopes."""
        step = 1e-3
        rows = [
            (self.posterior(mode + step * unit)[1] - self.posterior(mode - step * unit)[1]) / (2 * step)
            for unit in np.eye(len(mode))
        ]
        return 0.5 * (np.array(rows) + np.array(rows).T)

    def _many(self, bounds: Sequence[tuple[float, float]]) -> Any:
        low, high = np.array(bounds).T

        def posterior(points: Floats) -> Floats:
            inside = ((points >= low - 1) & (points <= high + 1)).all(axis=1)
            return np.array(
                [
                    float(self.log_evidence(free).sum()) + self.beforehand(free)[0] if fits else -np.inf
                    for free, fits in zip(points, inside, strict=True)
                ]
            )

        return posterior


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """What people share, as far as the training part tells: weighted points [R, 2 D], and the most
    probable.
    """

    points: Floats
    weight: Floats
    mode: Floats

    def log_predictive(self, seen: Tabulated) -> Floats:
        """Return the log-likelihood of people who were not learned from, [P]."""
        learning = Sharing(seen)
        found = np.stack([learning.log_evidence(free) for free in self.points])
        return np.asarray(special.logsumexp(found, axis=0, b=self.weight[:, None]))

    def log_predictive_trials(self, seen: Tabulated) -> Floats:
        """Return the log-likelihood of each fold of trials given the person's other ones, [F, P].

        0 where a person has no choice in a fold.
        """
        learning, total = Sharing(seen), seen.log_likelihood
        log_weight = np.log(self.weight)[:, None]
        whole = special.logsumexp(
            log_weight + np.stack([learning.log_evidence(free) for free in self.points]), axis=0
        )
        found = np.empty((len(seen.held), len(seen)))
        for fold, own in enumerate(seen.held):
            others = np.stack([learning.log_evidence(free, total - own) for free in self.points])
            found[fold] = whole - special.logsumexp(log_weight + others, axis=0)
        return found

    def posterior(self, seen: Tabulated) -> Floats:
        """Return each node's share of its person's posterior, averaged over plausible populations, [T]."""
        learning = Sharing(seen)
        found = np.zeros(len(seen.x))
        for free, weight in zip(self.points, self.weight, strict=True):
            found += weight * learning._sums(learning.log_prior(free) + learning.base)[1]
        return found


# ---------------------------------------------------------------------- the result


@dataclass(frozen=True, slots=True, eq=False)
class ActionFit:
    """An action model fitted to people: everybody's parameters, and what they share.

    Parameters
    ----------
    model : ActionModel
        The model.
    table : DataFrame
        A row per person and parameter: ``estimate``, ``se`` (on the free scale), ``low``, ``high``,
        ``status`` (:data:`fidm.fit.profile.STATUSES`) and ``n``, how many choices count.
    population : DataFrame
        A row per parameter: mean and sd of people on the free scale with standard errors, and ``typical``,
        the value at the mean.
    log_likelihood : float
        The log-likelihood of everybody's choices, averaged over the most probable population.
    seen : Tabulated
        Everybody's likelihoods on nodes.
    shared : Populations
        What people share.
    weight : float array [T]
        The posterior of every node.
    ids : Series
        Who they are.
    level : float
        The level of intervals.
    made : Made
        What they chose.
    notes : tuple of str
        What is to be known of it.
    """

    model: ActionModel
    table: pl.DataFrame
    population: pl.DataFrame
    log_likelihood: float
    seen: Tabulated
    shared: Populations
    weight: Floats
    ids: pl.Series
    level: float
    made: Made
    notes: tuple[str, ...] = ()

    def __getitem__(self, parameter: str) -> Floats:
        """Return everybody's estimates of a parameter, [P]; NaN where there is none."""
        own = self.table.filter(pl.col("parameter") == parameter)
        if not own.height:
            known = ", ".join(one.name for one in self.seen.parameters) or "none"
            raise FitError(f"{self.model.name} has no parameter {parameter!r}. It has: {known}.")
        return own["estimate"].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Return values drawn from everybody's posterior, by parameter, [n, P]."""
        picked = np.empty((n, len(self.seen)), dtype=np.int64)
        for j in range(len(self.seen)):
            nodes = slice(int(self.seen.offsets[j]), int(self.seen.offsets[j + 1]))
            p = self.weight[nodes]
            picked[:, j] = nodes.start + rng.choice(len(p), n, p=p / p.sum())
        return {
            one.name: np.asarray(one.value(self.seen.x[picked, k]))
            for k, one in enumerate(self.seen.parameters)
        }

    def to_inference_data(self, *, draws: int = 1_000, seed: int) -> arviz.InferenceData:
        """Return draws of everybody's parameters with the log-likelihood of every trial, for ArviZ.

        ``arviz.loo`` of it is the leave-one-trial-out score by Pareto-smoothed importance sampling, given
        what people share. :func:`fidm.compare_models` needs no such approximation: it integrates.

        Parameters
        ----------
        draws : int
            How many draws.
        seed : int
            The same seed gives the same draws.
        """
        try:
            import arviz
        except ModuleNotFoundError:
            raise FitError("ArviZ is not installed. Install it: pip install 'fidm[arviz]'.") from None
        drawn = self.draws(draws, np.random.default_rng([seed, 6]))
        log_likelihood = np.empty((draws, self.made.n_trials))
        for j in range(len(self.seen)):
            if self.made.n[j]:
                own = self.made.person(j)
                size = len(own.seen.pair)
                values = {name: np.repeat(value[:, j], size) for name, value in drawn.items()}
                found = self.model.log_likelihoods(own.copies(draws), values)
                log_likelihood[:, self.made.owner == j] = found.reshape(draws, -1)
        trials = [f"{self.ids[int(j)]}/{k}" for k, j in enumerate(self.made.owner)]
        found_data: arviz.InferenceData = arviz.from_dict(
            posterior={name: value[None] for name, value in drawn.items()},
            log_likelihood={"choices": log_likelihood[None]},
            coords={"participant": self.ids.to_list(), "trial": trials},
            dims={**{name: ["participant"] for name in drawn}, "choices": ["trial"]},
        )
        return found_data

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "model": self.model.to_dict(),
            "population": self.population.to_dicts(),
            "people": self.table.to_dicts(),
            "log_likelihood": self.log_likelihood,
            "level": self.level,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        of = ", ".join(one.name for one in self.seen.parameters) or "no parameters"
        return f"ActionFit({self.model.name}: {of}; {len(self.seen):,} people)"


@plain_algebra
def fit_action_model(
    task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel],
    cohort: Cohort,
    model: ActionModel,
    *,
    inferred: float = 0.0,
    level: float = 0.95,
    world: World | None = None,
    on_progress: Progress | None = None,
) -> ActionFit:
    """Fit an action model to people's choices by empirical Bayes.

    Parameters
    ----------
    task : TaskModel, or several
        The tasks they did.
    cohort : Cohort
        The people.
    model : ActionModel
        The account of how they choose; see :mod:`fidm.action_models`.
    inferred : float
        How much a move counts that a planner filled in, as in :class:`fidm.Model`.
    level : float
        The level of intervals.
    world : World, optional
        What was solved already for the same tasks.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.action_models import Stickiness
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 12, seed=1)
    >>> fit = fidm.fit_action_model(task, cohort, Stickiness())
    >>> fit.table.filter(parameter="repeat").height
    12
    """
    valid_level(level)
    say = on_progress or (lambda doing, done, of: None)
    tasks = TaskSet.of(task)
    known = world or World(tasks)
    require_usable(model, tasks)
    say(f"choices: {model.name}", 0, 2)
    made = list_chosen(known, cohort, inferred=inferred, remembers=model.remembers)
    require_people(made)
    seen = tabulate(model, made, np.zeros(made.n_trials, dtype=np.int64), 1)
    say(f"population: {model.name}", 1, 2)
    return fitted(seen, made, cohort.ids, level, notes=stated(model, known))


def require_usable(model: ActionModel, tasks: TaskSet) -> None:
    """Raise where a model cannot be used for these tasks."""
    if not isinstance(model, ActionModel):
        raise FitError(
            f"{type(model).__name__} is no action model. See fidm.action_models for those there are."
        )
    why = model.problems(tasks)
    if why:
        raise FitError(f"The action model {model.name} cannot be used: {why}")


def require_people(made: Made) -> None:
    """Raise where too few people chose anything."""
    people = int((made.n > 0).sum())
    if people < FEWEST_PEOPLE:
        raise FitError(
            f"{people} people made a choice that counts; {FEWEST_PEOPLE} are needed to learn "
            "how people differ."
        )


def stated(model: ActionModel, world: World) -> tuple[str, ...]:
    """Return what is to be known of how exactly a model is computed."""
    said = model.stated_error(world)
    return (said,) if said else ()


def learn_shared(seen: Tabulated) -> Populations:
    """Return what these people share, as far as they tell."""
    return Sharing(seen).populations()


def fitted(
    seen: Tabulated, made: Made, ids: pl.Series, level: float, *, notes: tuple[str, ...] = ()
) -> ActionFit:
    """Learn what people share, and estimate everybody."""
    shared = learn_shared(seen)
    weight = shared.posterior(seen)
    return ActionFit(
        model=seen.model,
        table=_people_table(seen, shared, weight, ids, level),
        population=_population_table(seen.parameters, shared),
        log_likelihood=float(Sharing(seen).log_evidence(shared.mode).sum()),
        seen=seen,
        shared=shared,
        weight=weight,
        ids=ids,
        level=level,
        made=made,
        notes=notes,
    )


def _people_table(
    seen: Tabulated, shared: Populations, weight: Floats, ids: pl.Series, level: float
) -> pl.DataFrame:
    """Everybody's estimates, parameter by parameter."""
    begins, owner = seen.offsets[:-1], np.repeat(np.arange(len(seen)), np.diff(seen.offsets))
    parts = []
    for k, one in enumerate(seen.parameters):
        x = seen.x[:, k]
        mean = np.add.reduceat(weight * x, begins)
        sd = np.sqrt(np.add.reduceat(weight * (x - mean[owner]) ** 2, begins))
        ends = np.array([_quantiles(seen, weight, j, k, level) for j in range(len(seen))])
        prior_sd = float(np.exp(shared.weight @ shared.points[:, 2 * k + 1]))
        status = _statuses(seen, weight, k, sd, prior_sd)
        nothing = seen.n == 0
        columns = {
            "estimate": one.value(mean),
            "se": sd,
            "low": one.value(ends[:, 0]),
            "high": one.value(ends[:, 1]),
        }
        parts.append(
            pl.DataFrame(
                {
                    "participant": ids,
                    "parameter": [one.name] * len(seen),
                    **{
                        name: pl.Series(np.where(nothing, np.nan, values), nan_to_null=True)
                        for name, values in columns.items()
                    },
                    "status": pl.Series(status, dtype=pl.Enum(STATUSES)),
                    "n": seen.n,
                }
            )
        )
    schema: dict[str, Any] = {
        "participant": pl.String, "parameter": pl.String, "estimate": pl.Float64, "se": pl.Float64,
        "low": pl.Float64, "high": pl.Float64, "status": pl.Enum(STATUSES), "n": pl.Int64,
    }  # fmt: skip
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def _quantiles(seen: Tabulated, weight: Floats, j: int, k: int, level: float) -> Floats:
    """The ends of a person's interval of a parameter, on the free scale."""
    nodes = slice(int(seen.offsets[j]), int(seen.offsets[j + 1]))
    x, where = np.unique(seen.x[nodes, k], return_inverse=True)
    own = np.bincount(where.reshape(-1), weight[nodes])
    up_to = np.cumsum(own) / own.sum()
    wanted = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    if seen.parameters[k].is_discrete:
        return np.asarray(x[np.minimum(np.searchsorted(up_to, wanted - 1e-12), len(x) - 1)])
    if len(x) == 1:
        return np.full(2, x[0])
    middle = up_to - 0.5 * own / own.sum()  # half of a node's share lies below it
    return np.asarray(np.interp(wanted, middle, x))


def _statuses(seen: Tabulated, weight: Floats, k: int, sd: Floats, prior_sd: float) -> NDArray[np.str_]:
    """What is to be said about everybody's estimate of a parameter."""
    one, begins = seen.parameters[k], seen.offsets[:-1]
    outer = np.isclose(seen.x[:, k], one.nodes[0]) | np.isclose(seen.x[:, k], one.nodes[-1])
    at_edge = np.add.reduceat(weight * outer, begins) > EDGE
    status = np.full(len(seen), "ok", dtype="<U20")
    status[sd > TOLD * prior_sd] = "low_information"
    status[seen.n < FEW_ACTIONS] = "few_observations"
    if not one.is_discrete:
        status[at_edge] = "at_edge"
    status[seen.n == 0] = "no_observation"
    return status


def _population_table(parameters: Sequence[Parameter], shared: Populations) -> pl.DataFrame:
    """Mean and sd of people in every parameter, with standard errors."""
    rows = []
    for k, one in enumerate(parameters):
        points, weight = shared.points[:, 2 * k : 2 * k + 2], shared.weight
        mean, log_sd = weight @ points
        error, log_error = np.sqrt(weight @ (points - [mean, log_sd]) ** 2)
        rows.append(
            {
                "parameter": one.name,
                "label": one.label,
                "typical": float(one.value(mean)),
                "mean": float(mean),
                "mean_se": float(error),
                "sd": float(math.exp(log_sd)),
                "log_sd_se": float(log_error),
            }
        )
    schema = {
        "parameter": pl.String, "label": pl.String, "typical": pl.Float64, "mean": pl.Float64,
        "mean_se": pl.Float64, "sd": pl.Float64, "log_sd_se": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)
