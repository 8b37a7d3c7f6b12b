r"""Do the parameters come back? Recovery of five factors that are varied independently of each other.

On the structure of a study (tasks, people, numbers of actions and moves) five factors are drawn at random,
independently: log η and θ of speech duration, characters, turns and pause. Choices and effort are drawn from
them, the population is learned again from everybody, and everybody is profiled. Each *recovered* parameter is
then regressed on all five *manipulated* factors, everything standardized; the slopes form the 5 × 5 matrix of
the paper's figure 3 (rows manipulated, columns recovered). A slope on the diagonal says how faithfully a
factor comes back, one beside it how much a factor passes for another. The diagonal is a reliability,

.. math:: 1 / \sqrt{1 + \mathrm{se}^2 / \mathrm{SD}^2},

and so depends on how much people differ (SD) as well as on how much data each of them gave (se).

In words, a parameter whose estimate has the correlation r with the truth is recovered *well* from .85 on,
*well enough to compare groups* from .70, *only weakly* from .50; below, it *cannot be estimated*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.stats import t

from fidm.channels import CHANNEL_WORDS, SENSITIVITY_WORDS
from fidm.cohort import Cohort
from fidm.errors import DataError, one_of, remedy
from fidm.experiments.shared import fit_learnable
from fidm.fit.profile import SENSITIVITY, Profile
from fidm.model.channels import Channel
from fidm.model.effort import Levels, paper_channels
from fidm.record import Record
from fidm.simulate.cohort import PAPER_TRUTH, Truth, WideTruth
from fidm.simulate.structure import (
    PRESENCE,
    counted_steps,
    learned_truth,
    people_like,
    redraw_effort,
    redraw_walks,
    undrawable,
)
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Progress

Method = Literal["eb", "mle"]

METHODS: tuple[Method, ...] = ("eb", "mle")
CONDITIONS = ("complete", "missing", "noise")

PAPER_EFFORT_SD, PAPER_LOG_SENSITIVITY_SD, PAPER_LOG_SENSITIVITY = 0.7, 0.42, math.log(24)
"""How much the factors vary where no study says how much people differ."""

WIDEST, NOISIEST = 5.0, 100.0
"""The largest sd of a factor, and the most noise, that can be asked for."""

FEWEST_PEOPLE = 10
"""Five slopes and an intercept cannot be told from chance with fewer people."""

LABELS: Mapping[str, str] = {
    SENSITIVITY: SENSITIVITY_WORDS,
    f"log_{SENSITIVITY}": SENSITIVITY_WORDS,
    **{name: words.name for name, words in CHANNEL_WORDS.items()},
}
"""How parameters are called in sentences and pictures."""

VERDICTS = ((0.85, "well"), (0.70, "well enough to compare groups"), (0.50, "only weakly"))
"""How well a parameter is recovered, by the least correlation with the truth; below, it cannot be."""

NOTICEABLE = 0.12
"""A cross-response up to this is nothing to speak of."""

ENOUGH_REPETITIONS = 5
"""With fewer, the sd of r between repetitions is taken from theory, not from them."""

_FACTORS, _RESAMPLE = 101, 102  # purposes of random streams, apart from those of persons


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """How well each parameter comes back, and whether it is mistaken for another.

    Parameters
    ----------
    record : Record
        How it came about.
    factors : tuple of str [K]
        What was varied, action sensitivity first.
    matrices : DataFrame
        A row per condition, method, scale of η, manipulated factor and recovered parameter: the standardized
        partial slope (mean over repetitions), its sd between repetitions, its standard error within one,
        how many people it rests on, and from how many repetitions it comes.
    parameters : DataFrame
        A row per condition, method and parameter: r with the truth and where it lies in 95 % of such studies,
        slope on the truth, bias, rmse, coverage of the intervals, and how many have no finite estimate.
    n_people : int
        How many people.
    n_actions, n_segments : float
        How many of each a person has, on average.
    repeat : int
        How many repetitions.
    is_like : bool
        Whether it is about a study.
    not_learned : mapping of str to str
        Channels that could not be learned in some repetition, and why.
    notes : tuple of str
        What else is to be said.
    """

    record: Record
    factors: tuple[str, ...]
    matrices: pl.DataFrame
    parameters: pl.DataFrame
    n_people: int
    n_actions: float
    n_segments: float
    repeat: int
    is_like: bool
    not_learned: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods tried, the default one first."""
        return tuple(self.matrices["method"].unique(maintain_order=True))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions tried."""
        return tuple(self.matrices["condition"].unique(maintain_order=True))

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The parameters, and the matrices."""
        return {"": self.parameters, "matrix": self.matrices}

    def matrix(
        self, condition: str = "complete", *, method: str = "", scale: str = "log", value: str = "slope"
    ) -> Floats:
        """Return a matrix [K, K]: rows are manipulated factors, columns recovered parameters.

        Parameters
        ----------
        condition : {"complete", "missing", "noise"}
            Which condition.
        method : {"eb", "mle"}
            How people were estimated; by default the first method tried.
        scale : {"log", "raw"}
            Whether log η or η.
        value : {"slope", "sd", "se"}
            The mean slope, its sd between repetitions, or its standard error in one.
        """
        chosen = self.matrices.filter(condition=condition, method=method or self.methods[0], scale=scale)
        if not chosen.height:
            raise DataError(
                f"There is no matrix for {condition!r}, {method or self.methods[0]!r} and {scale!r}."
            )
        found = np.full((len(self.factors), len(self.factors)), np.nan)
        for row in chosen.iter_rows(named=True):
            at = self.factors.index(row["factor"]), self.factors.index(row["recovered"])
            found[at] = math.nan if row[value] is None else row[value]
        return found

    def row(self, parameter: str, condition: str = "complete", *, method: str = "") -> dict[str, Any] | None:
        """Return what is known of a parameter; None if it could not be learned."""
        chosen = self.parameters.filter(
            condition=condition, method=method or self.methods[0], parameter=parameter
        )
        return chosen.row(0, named=True) if chosen.height else None

    def sentences(self) -> tuple[str, ...]:
        """Answer in words: what can be estimated with these people and this much data, and what cannot."""
        whose = f"your {self.n_people:,} people" if self.is_like else f"{self.n_people:,} simulated people"
        much = f"about {self.n_actions:.0f} actions and {self.n_segments:.0f} segments each"
        said = []
        first = self.conditions[0]
        for k, name in enumerate(self.factors):
            row = self.row(f"log_{name}" if k == 0 else name, first)
            what = label_of(name)
            if row is None or row["r"] is None:
                text = f"{what} cannot be estimated: {self.not_learned.get(name, 'nobody has an estimate.')}"
            else:
                text = f"{what} {self._judged(row)}"
            said.append(f"With {whose} and {much}, {text}" if k == 0 else text[0].upper() + text[1:])
        return (*said, *self._worse(), *self._crossed())

    def condition_words(self, condition: str) -> str:
        """Return a condition in words."""
        settings = self.record.settings
        if condition == "missing":
            return f"{settings['missing']:.0%} of the effort missing"
        return f"noise × {settings['noise']:g}" if condition == "noise" else "complete observations"

    def _judged(self, row: Mapping[str, Any]) -> str:
        r, word = row["r"], verdict(row["r"])
        how = f"over {self.repeat} repetitions" if self.repeat > 1 else "one repetition"
        figures = f"r = {as_printed(r)} ({as_printed(row['r_low'])} to {as_printed(row['r_high'])}, {how})"
        return f"is recovered with {figures}: {word}." if word else f"cannot be estimated: {figures}."

    def _worse(self) -> list[str]:
        """Where another condition changes the verdict."""
        said = []
        for condition in self.conditions[1:]:
            changes = []
            for name in self.factors[1:]:
                before, after = self.row(name, self.conditions[0]), self.row(name, condition)
                if before is None or after is None or before["r"] is None or after["r"] is None:
                    continue
                if verdict(after["r"]) != verdict(before["r"]) and after["r"] < before["r"]:
                    word = verdict(after["r"]) or "cannot be estimated"
                    changes.append(f"{label_of(name)} {word} (r = {as_printed(after['r'])})")
            if changes:
                said.append(f"With {self.condition_words(condition)}: {'; '.join(changes)}.")
        return said

    def _crossed(self) -> list[str]:
        """Whether a factor passes for another, beyond the largest of all cross-responses by chance."""
        matrix = self.matrix(self.conditions[0])
        error = self.matrix(self.conditions[0], value="se") / math.sqrt(self.repeat)
        off = ~np.eye(len(matrix), dtype=bool)
        if not np.isfinite(matrix[off]).any():
            return []
        freedom = max(1, self.repeat * (self.n_people - len(matrix) - 1))
        by_chance = float(t.ppf(1 - 0.025 / off.sum(), freedom)) * error  # one in twenty studies has a larger
        with np.errstate(invalid="ignore"):
            big = off & (np.abs(matrix) > NOTICEABLE) & (np.abs(matrix) > by_chance)
        if big.any():
            return [
                f"{label_of(self.factors[i]).capitalize()} passes in part for "
                f"{label_of(self.factors[j])}: cross-response {as_printed(matrix[i, j])}."
                for i, j in np.argwhere(big)
            ]
        largest, limit = float(np.nanmax(np.abs(matrix[off]))), float(np.nanmax(by_chance[off]))
        sizes = as_printed(largest), as_printed(limit)
        figures = "the largest cross-response is {}, and chance alone gives up to {}".format(*sizes)
        if limit > NOTICEABLE:
            return [f"Too few people to tell whether one factor passes for another: {figures}."]
        return [f"No factor passes for another: {figures}."]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "people": self.n_people,
            "actions_per_person": self.n_actions,
            "segments_per_person": self.n_segments,
            "repeat": self.repeat,
            "factors": list(self.factors),
            "sentences": list(self.sentences()),
            "parameters": self.parameters.to_dicts(),
            "matrices": self.matrices.to_dicts(),
            "not_learned": dict(self.not_learned),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def verdict(r: float) -> str:
    """Return how well a parameter with this correlation is recovered; empty if it cannot be estimated.

    What is judged is r as it is printed, with two digits.
    """
    return next((word for least, word in VERDICTS if round(r, 2) >= least), "")


def as_printed(value: float) -> str:
    """Return a correlation or slope as papers print it: .93."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.2f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text


def label_of(parameter: str) -> str:
    """Return what a parameter is called in sentences; its own name where nobody has given it another."""
    return LABELS.get(parameter, parameter)


def recover(
    task: TaskModel | Iterable[TaskModel] | None = None,
    *,
    like: Cohort | None = None,
    learn_from: Cohort | None = None,
    channels: Sequence[Channel] | None = None,
    n: int | None = None,
    seed: int = 1,
    repeat: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    log_sensitivity_sd: float | None = None,
    log_sensitivity_mean: float | None = None,
    truth: Mapping[str, Truth] | None = None,
    methods: Sequence[Method] = METHODS,
    population: Literal["random", "pooled"] = "random",
    conditions: Sequence[str] = CONDITIONS,
    missing: float = 0.3,
    noise: float = 2.0,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Recovery:
    """Say how well each parameter would come back, on a study's own structure or on the paper's.

    Parameters
    ----------
    task : TaskModel, or several, optional
        The tasks; by default the grocery task.
    like : Cohort, optional
        The study whose people, tasks and trace lengths to use; by default people like the paper's.
    learn_from : Cohort, optional
        The part of the study that says what people share and how much they differ; by default all of it.
    channels : sequence of Channel, optional
        The effort channels that a study's people are learned with; by default the paper's.
    n : int, optional
        How many people: 400 by default, or as many as the study has. A study of another size is made of its
        people, drawn with replacement.
    seed : int
        The same seed gives the same numbers.
    repeat : int
        How many times everything is drawn.
    spread : {"study", "paper"}, optional
        How much people differ: as much as those of the study (the default with ``like``), or as in a test of
        the method: sd 0.7 in effort and 0.42 in log η.
    effort_sd, log_sensitivity_sd, log_sensitivity_mean : float, optional
        How the factors vary, instead of what ``spread`` says. η lies around 24, or around the study's mean.
    truth : mapping of channel names to Truth, optional
        The population values; by default :data:`PAPER_TRUTH`, or those learned from the study.
    methods : sequence of {"eb", "mle"}
        How people are estimated.
    population : {"random", "pooled"}
        How what people share is learned from each drawn study (see :meth:`fidm.Model.fit`). The paper's way
        is "mle" with "pooled".
    conditions : sequence of {"complete", "missing", "noise"}
        All effort observed; a share of it removed; more noise in it. Choices are the same in all.
    missing : float
        The share of effort observations that ``"missing"`` removes.
    noise : float
        How many times as noisy ``"noise"`` is: the shapes κ are divided by it, and the variance of log pauses
        multiplied (:func:`fidm.simulate.structure.noisier`). Counts also vary by counting, so their variance
        grows less.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.experiments.recover import recover
    >>> found = recover(fidm.load_task("errands"), n=40, methods=["eb"], conditions=["complete"])
    >>> found.matrix().shape
    (5, 5)
    """
    protocol = _Protocol(
        seed=seed, repeat=repeat, methods=methods, population=population, conditions=conditions,
        missing=missing, noise=noise, workers=workers,
    )  # fmt: skip
    varied = Variation(spread, effort_sd, log_sensitivity_sd, log_sensitivity_mean, is_like=like is not None)
    tasks = TaskSet.of(load_task("grocery") if task is None else task)
    say = on_progress or (lambda doing, done, of: None)
    say("structure", 0, 1)
    people = people_of(tasks, like, n, seed, FEWEST_PEOPLE)
    learners = like if like is None or learn_from is None else learn_from
    design = design_of(tasks, learners, channels or paper_channels(), truth, varied, workers)
    rows, stats, failures = _repeated(tasks, people, design, protocol, say)
    settings = {
        "people": len(people),
        "repeat": repeat,
        "like_study": like is not None,
        "spread": "paper" if like is None else spread or "study",
        "log_sensitivity_mean": design.mean,
        "sd": dict(zip(design.factors, design.sd.tolist(), strict=True)),
        "truth": design.truth_numbers,
        "methods": list(methods),
        "population": population,
        "conditions": list(conditions),
        "missing": missing,
        "noise": noise,
    }
    return Recovery(
        record=Record.of("recover", tasks.tasks, seed=seed, settings=settings, cohort=people),
        factors=design.factors,
        matrices=over_repetitions(rows, ("condition", "method", "scale", "factor", "recovered")),
        parameters=over_repetitions(stats, ("condition", "method", "parameter")),
        n_people=len(people),
        n_actions=float(counted_steps(tasks, people).sum() / len(people)),
        n_segments=people.n_segments / len(people),
        repeat=repeat,
        is_like=like is not None,
        not_learned=failures,
        notes=design.notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Protocol:
    """What is asked: the options of :func:`recover`, described there, checked."""

    seed: int
    repeat: int
    methods: Sequence[Method]
    population: Literal["random", "pooled"]
    conditions: Sequence[str]
    missing: float
    noise: float
    workers: int | None

    def __post_init__(self) -> None:
        for what, known in (("methods", METHODS), ("conditions", CONDITIONS)):
            chosen = getattr(self, what)
            if isinstance(chosen, str) or not chosen or set(chosen) - set(known):
                raise DataError(f"{what} must be some of {', '.join(map(repr, known))}.")
        for what, least in (("repeat", 1), ("seed", 0)):
            if getattr(self, what) < least:
                raise DataError(f"{what} is {getattr(self, what)}; it must be {least} or more.")
        if not 0 < self.missing < 1:
            raise DataError(f"missing is {self.missing:g}; it must lie between 0 and 1.")
        if not 1 < self.noise <= NOISIEST:
            raise DataError(f"noise is {self.noise:g}; it must be above 1 and at most {NOISIEST:g}.")
        one_of("population", self.population, ("random", "pooled"))


# ---------------------------------------------------------------------- what is drawn


@dataclass(frozen=True, slots=True)
class Variation:
    """How much people differ: as in a study, as in a test of the method, or as told; see :func:`recover`."""

    spread: Literal["study", "paper"] | None
    effort_sd: float | None
    log_sensitivity_sd: float | None
    log_sensitivity_mean: float | None
    is_like: bool

    def __post_init__(self) -> None:
        if self.spread is not None:
            one_of("spread", self.spread, ("study", "paper"))
        if not self.is_like and self.spread == "study":
            raise DataError(f"The spread of a study needs a study: give {remedy('like', '--like STUDY')}.")
        for what in ("effort_sd", "log_sensitivity_sd"):
            value = getattr(self, what)
            if value is not None and not 0 < value <= WIDEST:
                raise DataError(
                    f"{what} is {value:g}; it must be above 0, since what does not vary cannot come back, "
                    f"and at most {WIDEST:g}."
                )
        mean = self.log_sensitivity_mean
        if mean is not None and not np.isfinite(mean):
            raise DataError(f"log_sensitivity_mean is {mean:g}; it must be a finite number.")


@dataclass(frozen=True, slots=True)
class Design:
    """What is drawn: the channels, their population values, and how the factors vary."""

    channels: tuple[Channel, ...]
    truth: Mapping[str, Truth]
    mean: float
    sd: Floats
    notes: tuple[str, ...]
    levels: Levels | None = None  # of text columns that channels are conditioned on

    @property
    def factors(self) -> tuple[str, ...]:
        """What is varied."""
        return _names(self.channels)

    @property
    def truth_numbers(self) -> dict[str, list[float]]:
        """Intercept, slope and shape of every channel, and all slopes of a design of more than the moves."""
        return {
            name: [own.intercept, own.slope, own.shape, *(own.slopes if isinstance(own, WideTruth) else ())]
            for name, own in self.truth.items()
        }


def _names(channels: Sequence[Channel]) -> tuple[str, ...]:
    return (SENSITIVITY, *(channel.name for channel in channels))


def people_of(tasks: TaskSet, like: Cohort | None, n: int | None, seed: int, fewest: int) -> Cohort:
    """Return whose structure is used: people like the paper's, of a study, or so many drawn from them."""
    if like is None:
        people = people_like(tasks.tasks, 400 if n is None else n, seed=seed)
    elif n is None or n == len(like):
        people = like
    else:  # with replacement, each with a name of their own
        people = like[np.sort(np.random.default_rng([seed, _RESAMPLE]).integers(0, len(like), n))]
        names = pl.Series("participant", [f"P{j + 1:07d}" for j in range(n)])
        people = replace(people, participants=people.participants.with_columns(names))
    if len(people) < fewest:
        raise DataError(
            f"There are {len(people)} people; this needs {fewest} or more. Say how many people like these to "
            f"draw: {remedy('n', '--people')}."
        )
    return people


def design_of(
    tasks: TaskSet,
    learners: Cohort | None,
    wanted: Sequence[Channel],
    truth: Mapping[str, Truth] | None,
    varied: Variation,
    workers: int | None,
) -> Design:
    """Return what a study's people share and how much they differ, or the paper's numbers without a study.

    Channels that tell nothing are left out, with a note; where pause presence cannot be learned, everybody
    always pauses, or never.
    """
    notes: tuple[str, ...] = ()
    levels: Levels | None = None
    mean, spreads = PAPER_LOG_SENSITIVITY, [PAPER_LOG_SENSITIVITY_SD]
    if learners is None:
        truth = dict(truth or PAPER_TRUTH)
        channels = tuple(c for c in wanted if c.name in truth and c.name != PRESENCE)
    else:
        fit, why = fit_learnable(tasks.tasks, learners, wanted, workers=workers)
        left_out = [f"{name} is left out: {reason}" for name, reason in why.items() if name != PRESENCE]
        notes = (*left_out, *fit.warnings)
        truth, levels = {**learned_truth(fit), **(truth or {})}, fit.levels
        channels = tuple(channel for channel in fit.channels if channel.name != PRESENCE)
        lost = undrawable(channels, truth)
        channels = tuple(channel for channel in channels if channel.name not in lost)
        notes = (*notes, *(f"{name} is left out: {reason}" for name, reason in lost.items()))
        sd_of = [fit.prior.sd, *(fit.populations[c.name].population.sd for c in channels)]
        if np.isfinite(fit.prior.sd):
            mean = fit.prior.mean
        else:
            notes = (
                *notes,
                f"How people differ in η cannot be learned: η is drawn around {math.exp(mean):.0f}.",
            )
            sd_of[0] = PAPER_LOG_SENSITIVITY_SD
        if varied.spread != "paper":
            spreads = sd_of
    sd = np.array([*spreads, *[PAPER_EFFORT_SD] * (1 + len(channels) - len(spreads))])
    sd[0] = sd[0] if varied.log_sensitivity_sd is None else varied.log_sensitivity_sd
    sd[1:] = sd[1:] if varied.effort_sd is None else varied.effort_sd
    mean = mean if varied.log_sensitivity_mean is None else varied.log_sensitivity_mean
    return Design(channels, truth, mean, sd, notes, levels)


def draw_factors(design: Design, n: int, seed: tuple[int, int]) -> Floats:
    """Draw log η and the offsets of n people, independently of each other, [n, K]."""
    rng = np.random.default_rng([*seed, _FACTORS])
    factors = design.sd * rng.standard_normal((n, len(design.sd)))
    factors[:, 0] += design.mean
    return np.asarray(factors)


def _repeated(
    tasks: TaskSet, people: Cohort, design: Design, protocol: _Protocol, say: Progress
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """Draw and recover everything: rows of slopes, rows of statistics, and channels that were not learned."""
    values = [solve(model) for model in tasks.tasks]
    rows: list[dict[str, Any]] = []
    stats: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    total = protocol.repeat * len(protocol.conditions)
    for repetition in range(protocol.repeat):
        seed = (protocol.seed, repetition)
        factors = draw_factors(design, len(people), seed)
        walked = redraw_walks(tasks, people, np.exp(factors[:, 0]), seed=seed, values=values)
        for i, condition in enumerate(protocol.conditions):
            say("repetitions", repetition * len(protocol.conditions) + i, total)
            drawn = walked
            if design.channels:
                missing = protocol.missing if condition == "missing" else 0.0
                noise = protocol.noise if condition == "noise" else 1.0
                known = design.channels, design.truth, factors[:, 1:]
                drawn = redraw_effort(
                    walked, *known, seed=seed, missing=missing, noise=noise, levels=design.levels
                )
            for method in protocol.methods:
                fit, why = fit_learnable(
                    tasks.tasks,
                    drawn,
                    design.channels,
                    method=method,
                    population=protocol.population,
                    values=values,
                    workers=protocol.workers,
                )
                failures = why | failures
                profile = fit.profile(drawn, workers=protocol.workers)
                key = {"repetition": repetition + 1, "condition": condition, "method": method}
                rows += [key | row for row in slope_rows(factors, design.channels, profile)]
                stats += [key | row for row in statistic_rows(factors, design.channels, profile)]
    say("repetitions", total, total)
    return rows, stats, failures


# ---------------------------------------------------------------------- how estimates respond to the truth


def slope_rows(factors: Floats, channels: Sequence[Channel], profile: Profile) -> list[dict[str, Any]]:
    """Return the standardized partial slopes of every recovered parameter, on both scales of η."""
    found = []
    for scale in ("log", "raw"):
        x = factors.copy()
        if scale == "raw":
            x[:, 0] = np.exp(x[:, 0])
        for name in profile.parameters:
            slope, se, used = partial_slopes(x, _estimates(profile, name, scale))
            key = {"scale": scale, "recovered": name, "n": used}
            found += [
                key | {"factor": factor, "slope": slope[i], "se": se[i]}
                for i, factor in enumerate(_names(channels))
            ]
    return found


def partial_slopes(x: Floats, y: Floats) -> tuple[Floats, Floats, int]:
    """Regress y, [P], on all columns of x, [P, K], standardized; return slopes, errors, how many people.

    People without a finite y are left out. Where everybody has the same y nothing is recovered: slopes are 0.
    The errors are those of least squares times √(1 − b²), since the sd of y is estimated too: a slope near 1
    is known better than least squares says, as a correlation is.
    """
    known = np.isfinite(y)
    x, y, width = x[known], y[known], x.shape[1]
    if len(y) <= width + 1:
        return np.full(width, np.nan), np.full(width, np.nan), len(y)
    if y.std() <= 1e-12 * max(1.0, float(np.abs(y).max())):
        return np.zeros(width), np.full(width, np.nan), len(y)
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    v = (y - y.mean()) / y.std(ddof=1)
    inverse = np.linalg.pinv(z.T @ z)
    slope = inverse @ (z.T @ v)
    residual = v - z @ slope
    variance = float(residual @ residual) / (len(v) - width - 1)
    error = np.sqrt(variance * np.diag(inverse) * np.clip(1 - slope**2, 0, 1))
    return slope, error, len(y)


def statistic_rows(factors: Floats, channels: Sequence[Channel], profile: Profile) -> list[dict[str, Any]]:
    """Return correlation, slope, bias, error and coverage of every parameter; η is there on both scales."""
    found = []
    for k, name in enumerate(_names(channels)):
        if name not in profile.parameters:
            continue
        truth = factors[:, k]
        own = np.exp(truth) if k == 0 else truth
        coverage = _coverage(profile, profile.parameters.index(name), own)
        scales = [(f"log_{name}" if k == 0 else name, truth, "log")]
        scales += [(name, own, "raw")] if k == 0 else []
        for parameter, meant, scale in scales:
            y = _estimates(profile, name, scale)
            known = np.isfinite(y)
            r, slope = _line(meant[known], y[known])
            error = y[known] - meant[known]
            found.append(
                {
                    "parameter": parameter,
                    "r": r,
                    "slope": slope,
                    "bias": float(error.mean()) if len(error) else math.nan,
                    "rmse": float(np.sqrt((error**2).mean())) if len(error) else math.nan,
                    "coverage": coverage,
                    "without": int((~known).sum()),
                    "n": int(known.sum()),
                }
            )
    return found


def _coverage(profile: Profile, column: int, truth: Floats) -> float:
    """The share of intervals that hold the truth."""
    low, high = profile.low[:, column], profile.high[:, column]
    there = ~np.isnan(low) & ~np.isnan(high) & ~np.isnan(profile.estimate[:, column])
    inside = (low <= truth) & (truth <= high)
    return float(inside[there].mean()) if there.any() else math.nan


def _line(truth: Floats, y: Floats) -> tuple[float, float]:
    """Correlation and slope of the estimate on the truth; 0 where everybody has the same estimate."""
    if len(y) < 3 or truth.std() == 0:
        return math.nan, math.nan
    slope = float(np.cov(truth, y)[0, 1] / truth.var(ddof=1))
    if y.std() <= 1e-12 * max(1.0, float(np.abs(y).max())):
        return 0.0, 0.0
    return slope * float(truth.std() / y.std()), slope


def _estimates(profile: Profile, name: str, scale: str) -> Floats:
    matrix, _ = profile.features(scale="log" if scale == "log" else "raw")
    return matrix[:, profile.parameters.index(name)]


def over_repetitions(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> pl.DataFrame:
    """Average rows over repetitions; a correlation also gets the range in which 95 % of such studies lie.

    With R repetitions, mean z and sd s of Fisher's z the range is tanh(z ± t s √(1 + 1/R)), t the quantile of
    Student's distribution with R − 1 degrees of freedom: a prediction interval for one more study. With fewer
    than five repetitions s is 1 / √(n − 3), and t is 1.96.
    """
    table = pl.DataFrame(list(rows)).fill_nan(None)
    mean = [
        pl.col(name).mean()
        for name in ("r", "slope", "bias", "rmse", "coverage", "se", "without", "n")
        if name in table.columns
    ]
    more = [pl.col("slope").std().alias("sd"), pl.len().alias("repetitions")]
    if "r" in table.columns:
        z = pl.col("r").clip(-0.999999, 0.999999).arctanh()
        own = (1 / (pl.col("n").mean() - 3).clip(lower_bound=1).sqrt()).alias("_own")
        more = [z.mean().alias("_z"), z.std().alias("_sd"), z.count().alias("_count"), own, *more]
    found = table.group_by(keys, maintain_order=True).agg(*mean, *more)
    if "r" not in table.columns:
        return found
    count = found["_count"].to_numpy()
    enough = count >= ENOUGH_REPETITIONS
    quantile = np.where(enough, t.ppf(0.975, np.maximum(count - 1, 1)), 1.96)
    spread = np.where(enough, found["_sd"].fill_null(0.0).to_numpy(), found["_own"].to_numpy())
    width = pl.Series(quantile * spread * np.sqrt(1 + 1 / np.maximum(count, 1)))
    return found.with_columns(
        r=pl.col("_z").tanh(),
        r_low=(pl.col("_z") - width).tanh(),
        r_high=(pl.col("_z") + width).tanh(),
    ).select(*keys, "r", "r_low", "r_high", pl.exclude(*keys, "r", "r_low", "r_high", "sd", "^_.*$"))
