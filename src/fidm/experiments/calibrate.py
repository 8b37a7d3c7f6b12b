r"""Do intervals hold what they promise, in studies of this size? Simulation-based calibration.

Studies are drawn on the structure of yours (tasks, people, numbers of actions and moves), with people whose
true parameters are known. Each is fitted as yours would be, and everybody's truth is ranked among draws from
their posterior. If posteriors are right, each rank from 0 to the number of draws is equally probable: a truth
that lies too often among the extreme draws betrays intervals that are too short, one that lies too often
below the middle betrays estimates that are too high (Talts et al. 2018).

People of one study share what was learned of the population, so their ranks go together. Shares of intervals
that hold the truth are of everybody, with standard errors by study. The test of uniformity takes one person
of every study, whose ranks are independent: the distribution function of the ranks is compared with that of a
uniform at all of its steps at once (Säilynoja et al. 2022).

The full Bayesian model is calibrated in the same way (``sampled``): if either went wrong, ranks would show
it, and not only that the two differ.

By default the population is the same in every study, as in yours. A fit allows for what other populations it
could have come from, and in very small studies it leans on its hyperpriors: intervals may hold the truth more
often than they promise, and ranks lie to the side of where the hyperprior expects people. With
``populations="drawn"`` means and spreads of people are drawn from the hyperpriors for every study (and shapes
of counts, too; what is flat beforehand stays). That is calibration in the strict sense: if the computation is
right, ranks are uniform whatever the size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import stats

from fidm.cohort import Cohort
from fidm.errors import DataError, at_least, count, one_of
from fidm.experiments.recover import Design, Variation, design_of, draw_factors, label_of, people_of
from fidm.experiments.shared import fit_learnable, with_learnable
from fidm.fit.draws import Draws
from fidm.fit.factorized import Model
from fidm.fit.plausible import OFFSET_SCALE, SENSITIVITY_SCALE
from fidm.fit.population import LARGEST_SHAPE
from fidm.fit.sensitivity import LARGEST_SD, MIDDLE_SD, SMALLEST_SD, middle_of_range
from fidm.model.action import choices_of
from fidm.model.channels import Channel
from fidm.model.effort import paper_channels
from fidm.record import Record
from fidm.simulate.cohort import Truth
from fidm.simulate.structure import counted_steps, redraw_effort, redraw_walks
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Flags, Floats, Integers, Progress, Values

LEVELS = (0.5, 0.8, 0.95)
"""Of which intervals it is said how often they hold the truth."""

FEWEST_STUDIES, FEWEST_PEOPLE, FEWEST_DRAWS = 20, 5, 19

SIMULATED = 4_000
"""How many samples of uniform ranks say how far these stray by chance."""

CHAINS, WARMUP, EVERY = 4, 300, 5
"""How a study is sampled: chains, steps that tune them, and of how many draws one is kept."""

_CHOSEN, _CHANCE, _DRAWN = 103, 104, 105  # purposes of random streams, apart from those of recovery


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The result of :func:`calibrate`.

    Parameters
    ----------
    record : Record
        How it came about.
    parameters : DataFrame
        A row per parameter (log η first): the share of people whose 50, 80 and 95 % intervals hold the truth
        with standard errors by study, the mean rank (0.5 where estimates are neither too high nor too low)
        with its standard error, the p-value of uniform ranks (``p``), and how many people and studies it
        rests on.
    ranks : DataFrame
        A row per study, person and parameter: how many draws lie below the truth, and whether the person was
        chosen for the test.
    n_people, n_studies, n_draws : int
        People in a study, studies, and draws of every person.
    n_actions, n_segments : float
        How many of each a person has, on average.
    is_like : bool
        Whether it is about a study.
    notes : tuple of str
        What else is to be said.
    """

    record: Record
    parameters: pl.DataFrame
    ranks: pl.DataFrame
    n_people: int
    n_studies: int
    n_draws: int
    n_actions: float
    n_segments: float
    is_like: bool
    notes: tuple[str, ...]

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The parameters, and everybody's ranks."""
        return {"": self.parameters, "ranks": self.ranks}

    def chosen(self, parameter: str) -> Integers:
        """Return the ranks of one person of every study."""
        return self.ranks.filter(parameter=parameter, chosen=True)["rank"].to_numpy()

    def sentences(self) -> tuple[str, ...]:
        """Say of every parameter whether its posteriors can be believed."""
        whose = "your study" if self.is_like else "a simulated study"
        people = count(self.n_people, "person", "people")
        said = [
            f"In {self.n_studies} studies like {whose} ({people} with about {self.n_actions:.0f} actions and "
            f"{self.n_segments:.0f} segments each), these shares of 95 % intervals held the truth:"
        ]
        for row in self.parameters.iter_rows(named=True):
            share = f"{row['held_95']:.1%} (standard error {row['held_95_se']:.1%})"
            by_chance = "as chance has them" if row["p"] >= 0.05 else "not uniform"
            said.append(f"{label_of(row['parameter'])}: {share}; ranks {by_chance} (p = {row['p']:.2g}).")
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single ranks as plain values."""
        return {
            "people": self.n_people,
            "studies": self.n_studies,
            "draws": self.n_draws,
            "actions_per_person": self.n_actions,
            "segments_per_person": self.n_segments,
            "sentences": list(self.sentences()),
            "parameters": self.parameters.to_dicts(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def calibrate(
    task: TaskModel | Iterable[TaskModel] | None = None,
    *,
    like: Cohort | None = None,
    learn_from: Cohort | None = None,
    channels: Sequence[Channel] | None = None,
    n: int | None = None,
    studies: int = 200,
    draws: int = 199,
    seed: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    log_sensitivity_sd: float | None = None,
    log_sensitivity_mean: float | None = None,
    truth: Mapping[str, Truth] | None = None,
    joint: bool = False,
    sampled: bool = False,
    populations: Literal["same", "drawn"] = "same",
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Calibration:
    """Say whether posteriors hold what they promise in studies of a given structure and size.

    Parameters
    ----------
    task, like, learn_from, channels, n, spread, effort_sd, log_sensitivity_sd, log_sensitivity_mean, truth
        Whose structure is used and what is drawn on it, as in :func:`fidm.study.recover`. By default 40
        people like the paper's.
    studies : int
        How many studies are drawn; so many ranks the test of uniformity has.
    draws : int
        How many draws of everybody's posterior the truth is ranked among; one less than a multiple of 20.
    seed : int
        The same seed gives the same numbers.
    joint : bool
        Whether to learn a joint prior, as in :meth:`fidm.Model.fit`; or whether parameters may be correlated,
        as in :meth:`fidm.Model.sample`.
    sampled : bool
        Calibrate the full Bayesian model, sampled by NUTS, instead of the fit: seconds to minutes per study.
        Needs jax and numpyro (``pip install 'fidm[bayes]'``).
    populations : {"same", "drawn"}
        Whether what people share is the same in every study, or drawn from the hyperpriors of a fit: the
        strict test of the computation.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> found = fidm.study.calibrate(fidm.load_task("errands"), n=10, studies=20, channels=[])
    >>> found.parameters["parameter"].to_list(), len(found.chosen("log_action_sensitivity"))
    (['log_action_sensitivity'], 20)
    """
    at_least("studies", studies, FEWEST_STUDIES)
    one_of("populations", populations, ("same", "drawn"))
    if draws < FEWEST_DRAWS or (draws + 1) % (FEWEST_DRAWS + 1):
        raise DataError(f"draws is {draws}; it must be one less than a multiple of {FEWEST_DRAWS + 1}.")
    varied = Variation(spread, effort_sd, log_sensitivity_sd, log_sensitivity_mean, is_like=like is not None)
    tasks = TaskSet.of(load_task("grocery") if task is None else task)
    say = on_progress or (lambda doing, done, of: None)
    say("structure", 0, 1)
    people = people_of(tasks, like, n if n is not None or like is not None else 40, seed, FEWEST_PEOPLE)
    learners = like if like is None or learn_from is None else learn_from
    wanted = paper_channels() if channels is None else channels
    design = design_of(tasks, learners, wanted, truth, varied, workers)
    whole, values = design, [solve(model) for model in tasks.tasks]
    middle = 0.0
    if populations == "drawn":
        middle = middle_of_range(choices_of(tasks, tasks.values(values), people, follow(tasks, people)))
    names = (f"log_{design.factors[0]}", *design.factors[1:])
    found: list[pl.DataFrame] = []
    failures: dict[str, str] = {}
    for study in range(studies):
        say("studies", study, studies)
        if populations == "drawn":
            design = _drawn(whole, middle, (seed, study))
        factors = draw_factors(design, len(people), (seed, study))
        drawn = redraw_walks(tasks, people, np.exp(factors[:, 0]), seed=(seed, study), values=values)
        if design.channels:
            known = design.channels, design.truth, factors[:, 1:]
            drawn = redraw_effort(drawn, *known, seed=(seed, study), levels=design.levels)
        if sampled:
            posterior, why = _sampled(
                tasks, drawn, design.channels, values, draws, (seed, study), joint, workers
            )
        else:
            fit, why = fit_learnable(
                tasks.tasks, drawn, design.channels, values=values, joint=joint, workers=workers
            )
            posterior = fit.draws(drawn, draws, seed=study)
        failures |= why
        who = np.random.default_rng([seed, study, _CHOSEN]).permutation(len(people))
        for k, name in enumerate(names):
            if name in posterior.parameters:
                found.append(_ranked(study, name, factors[:, k], posterior[name], who))
    say("studies", studies, studies)
    if not found:
        raise DataError("Nobody's parameters could be learned in any study.")
    ranks = pl.concat(found)
    return Calibration(
        record=Record.of(
            "calibrate",
            tasks.tasks,
            seed=seed,
            settings={
                "people": len(people),
                "studies": studies,
                "draws": draws,
                "joint": joint,
                **({"sampled": True} if sampled else {}),
                **({"populations": populations} if populations != "same" else {}),
                "like_study": like is not None,
                "log_sensitivity_mean": whole.mean,
                "sd": dict(zip(whole.factors, whole.sd.tolist(), strict=True)),
                "truth": whole.truth_numbers,
            },
            cohort=people,
        ),
        parameters=pl.DataFrame(
            [
                judged(name, ranks.filter(parameter=name), draws, seed)
                for name in names
                if name in ranks["parameter"]
            ]
        ),
        ranks=ranks,
        n_people=len(people),
        n_studies=studies,
        n_draws=draws,
        n_actions=float(counted_steps(tasks, people).sum() / len(people)),
        n_segments=people.n_segments / len(people),
        is_like=like is not None,
        notes=(
            *(
                ["Mean and spreads of people were drawn from the hyperpriors."]
                if populations == "drawn"
                else []
            ),
            *(["The full model was sampled in every study, not fitted."] if sampled else []),
            *design.notes,
            *(f"{name} could not be learned in some studies: {why}" for name, why in failures.items()),
        ),
    )


def _drawn(design: Design, middle: float, seed: tuple[int, int]) -> Design:
    """The same with a mean of log η, spreads of people and shapes of counts as the hyperpriors have them."""
    rng = np.random.default_rng([*seed, _DRAWN])
    scale = np.array([SENSITIVITY_SCALE, *[OFFSET_SCALE] * len(design.channels)])
    sd = np.abs(scale * rng.standard_t(4, len(scale)))
    sd[0] = np.clip(sd[0], SMALLEST_SD, LARGEST_SD)
    shapes = np.minimum(1 / rng.standard_normal(len(design.channels)) ** 2, LARGEST_SHAPE)
    truth = {
        channel.name: replace(design.truth[channel.name], shape=float(shape))
        for channel, shape in zip(design.channels, shapes, strict=True)
        if channel.shape_name and channel.lowest is not None
    }
    mean = float(middle + MIDDLE_SD * rng.standard_normal())
    return replace(design, mean=mean, sd=sd, truth={**design.truth, **truth})


def _sampled(
    tasks: TaskSet,
    cohort: Cohort,
    channels: Sequence[Channel],
    values: Sequence[Values],
    draws: int,
    seed: tuple[int, int],
    joint: bool,
    workers: int | None,
) -> tuple[Draws, dict[str, str]]:
    """Draws of the full model that are nearly independent, and why channels were left out."""
    number = int(np.random.default_rng([*seed, _CHANCE]).integers(2**31))

    def sample(some: Sequence[Channel]) -> Draws:
        model = Model(tasks.tasks, channels=some, values=values)
        return model.sample(
            cohort, seed=number, draws=(draws + 1) * EVERY // CHAINS, warmup=WARMUP, chains=CHAINS,
            joint=joint, however_long=True, workers=workers,
        ).draws  # fmt: skip

    found, why = with_learnable(cohort, channels, sample)
    return replace(found, values=found.values[:, :, ::EVERY][:, :, :draws], chains=1), why


def _ranked(study: int, parameter: str, truth: Floats, drawn: Floats, order: Integers) -> pl.DataFrame:
    """Everybody's rank in one study; the first person of a random order who has one is chosen."""
    known: Flags = np.asarray(~np.isnan(drawn).any(axis=1), dtype=np.bool_)
    chosen = np.zeros(len(truth), dtype=np.bool_)
    chosen[order[known[order]][:1]] = True
    return pl.DataFrame(
        {
            "study": np.full(len(truth), study + 1),
            "parameter": [parameter] * len(truth),
            "person": np.arange(1, len(truth) + 1),
            "rank": (drawn < truth[:, None]).sum(axis=1),
            "chosen": chosen,
        }
    ).filter(known)


def judged(parameter: str, ranks: pl.DataFrame, draws: int, seed: int) -> dict[str, Any]:
    """Return what the ranks of one parameter say: a row of :attr:`Calibration.parameters`."""
    place = (ranks["rank"].to_numpy() + 0.5) / (draws + 1)
    study = ranks["study"].to_numpy()
    row: dict[str, Any] = {"parameter": parameter}
    for level in LEVELS:
        share, se = _by_study(np.abs(place - 0.5) < level / 2, study)
        row |= {f"held_{100 * level:.0f}": share, f"held_{100 * level:.0f}_se": se}
    mean, se = _by_study(place, study)
    chosen = ranks.filter("chosen")["rank"].to_numpy()
    distance, by_chance = strays(chosen, draws, seed)
    p = (1 + int((by_chance <= distance).sum())) / (1 + len(by_chance))
    return row | {"mean_rank": mean, "mean_rank_se": se, "p": p, "people": len(place), "studies": len(chosen)}


def _by_study(values: Any, study: Integers) -> tuple[float, float]:
    """The mean over people and its standard error, where those of one study go together."""
    mean = float(values.mean())
    sums = np.bincount(np.unique(study, return_inverse=True)[1], values - mean)
    n = len(sums)
    return mean, math.sqrt(float((sums**2).sum()) * n / max(n - 1, 1)) / len(values)


def strays(ranks: Integers, draws: int, seed: int = 1, simulated: int = SIMULATED) -> tuple[float, Floats]:
    """Return how improbable the most improbable step of the ranks' distribution function is, and by chance.

    At a step the number of ranks below is binomial if ranks are uniform; its two-sided probability says how
    far it strays. The second array has the lowest such probability of each of many uniform samples.
    """
    shares = np.arange(1, draws + 1) / (draws + 1)
    n = len(ranks)
    below = np.arange(n + 1)[:, None]
    two_sided = 2 * np.minimum(stats.binom.cdf(below, n, shares), stats.binom.sf(below - 1, n, shares))
    steps = np.arange(draws)
    rng = np.random.default_rng([seed, _CHANCE])
    by_chance = [
        two_sided[_counted(rng.integers(0, draws + 1, n), draws), steps].min() for _ in range(simulated)
    ]
    return float(two_sided[_counted(ranks, draws), steps].min()), np.array(by_chance)


def _counted(ranks: Integers, draws: int) -> Integers:
    """How many ranks lie below each step, [draws]."""
    return np.cumsum(np.bincount(ranks, minlength=draws + 1))[:draws]


def band(n: int, draws: int, *, level: float = 0.95, seed: int = 1) -> tuple[Floats, Floats]:
    """Return between which shares the distribution function of n uniform ranks lies at all steps at once.

    Parameters
    ----------
    n, draws : int
        How many ranks, each from 0 to ``draws``.
    level : float
        How often it lies there.
    seed : int
        Of the simulation that finds how wide the band must be.
    """
    shares = np.arange(1, draws + 1) / (draws + 1)
    limit = float(np.quantile(strays(np.zeros(n, dtype=np.int64), draws, seed)[1], 1 - level))
    low, high = (stats.binom.ppf(share, n, shares) / n for share in (limit / 2, 1 - limit / 2))
    return np.asarray(low), np.asarray(high)
