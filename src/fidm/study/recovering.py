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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.fit.profile import SENSITIVITY
from fidm.model.channels import Channel, paper_channels
from fidm.record import Record
from fidm.study.learnable import by_method, fit_learnable
from fidm.study.recovered import Recovery, summarize
from fidm.study.responses import slope_rows, statistic_rows
from fidm.study.simulate import PAPER_TRUTH, Truth
from fidm.study.structure import PRESENCE, counted_steps, people_like, redraw_effort, redraw_walks
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
Method = Literal["eb", "mle"]

PAPER_EFFORT_SD, PAPER_LOG_SENSITIVITY_SD, PAPER_LOG_SENSITIVITY = 0.7, 0.42, math.log(24)
"""How much the factors vary where no study says how much people differ."""

METHODS: tuple[Method, ...] = ("eb", "mle")
CONDITIONS = ("complete", "missing", "noise")
WIDEST, NOISIEST = 5.0, 100.0
"""The largest sd of a factor, and the most noise, that can be asked for."""

FEWEST_PEOPLE = 10
"""Five slopes and an intercept cannot be told from chance with fewer people."""

_FACTORS, _RESAMPLE = 101, 102  # purposes of random streams, apart from those of persons


@dataclass(frozen=True, slots=True)
class _Design:
    """What is drawn: the channels, their population values, and how the factors vary."""

    channels: tuple[Channel, ...]
    truth: Mapping[str, Truth]
    mean: float
    sd: Floats
    notes: tuple[str, ...]


def recover(
    task: TaskModel | Iterable[TaskModel] | None = None,
    *,
    like: Cohort | None = None,
    learn_from: Cohort | None = None,
    n: int | None = None,
    seed: int = 1,
    repeat: int = 1,
    spread: Literal["study", "paper"] | None = None,
    effort_sd: float | None = None,
    log_sensitivity_sd: float | None = None,
    log_sensitivity_mean: float | None = None,
    truth: Mapping[str, Truth] | None = None,
    methods: Sequence[Method] = METHODS,
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
    conditions : sequence of {"complete", "missing", "noise"}
        All effort observed; a share of it removed; more noise in it. Choices are the same in all.
    missing : float
        The share of effort observations that ``"missing"`` removes.
    noise : float
        How many times as noisy ``"noise"`` is: the shapes κ are divided by it, and the variance of log pauses
        multiplied (:func:`fidm.study.structure.noisier`). Counts also vary by counting, so their variance
        grows less.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.study.recovering import recover
    >>> found = recover(fidm.load_task("errands"), n=40, methods=["eb"], conditions=["complete"])
    >>> found.matrix().shape
    (5, 5)
    """
    _check(methods, conditions, repeat, seed, missing, noise, like, spread)
    _check_spread(effort_sd, log_sensitivity_sd, log_sensitivity_mean)
    tasks = TaskSet.of(load_task("grocery") if task is None else task)
    say = on_progress or (lambda doing, done, of: None)
    say("structure", 0, 1)
    if like is None:
        people = people_like(tasks.tasks, 400 if n is None else n, seed=seed)
    else:
        people = like if n is None or n == len(like) else _resampled(like, n, seed)
    if len(people) < FEWEST_PEOPLE:
        raise DataError(
            f"There are {len(people)} people; recovery needs {FEWEST_PEOPLE} or more, since five slopes are "
            "estimated. Say how many people like these to draw (n, or --people)."
        )
    given = (effort_sd, log_sensitivity_sd, log_sensitivity_mean)
    if like is None:
        design = _design_of_paper(truth or PAPER_TRUTH, given)
    else:
        learners = like if learn_from is None else learn_from
        design = _design_of_study(tasks, learners, truth, given, spread or "study", workers)
    values = [solve(model) for model in tasks.tasks]
    rows: list[dict[str, Any]] = []
    stats: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    first: Method = "eb" if "eb" in methods else "mle"
    total = repeat * len(conditions)
    for repetition in range(repeat):
        rng = np.random.default_rng([seed, repetition, _FACTORS])
        factors = design.sd * rng.standard_normal((len(people), len(design.sd)))
        factors[:, 0] += design.mean
        walked = redraw_walks(tasks, people, np.exp(factors[:, 0]), seed=(seed, repetition), values=values)
        for i, condition in enumerate(conditions):
            say("repetitions", repetition * len(conditions) + i, total)
            drawn = (
                walked
                if not design.channels
                else redraw_effort(
                    walked,
                    design.channels,
                    design.truth,
                    factors[:, 1:],
                    seed=(seed, repetition),
                    missing=missing if condition == "missing" else 0.0,
                    noise=noise if condition == "noise" else 1.0,
                )
            )
            fit, why = fit_learnable(
                tasks.tasks, drawn, design.channels, method=first, values=values, workers=workers
            )
            failures = why | failures
            for method in methods:
                profile = by_method(fit, method).profile(drawn, workers=workers)
                key = {"repetition": repetition + 1, "condition": condition, "method": method}
                rows += [key | row for row in slope_rows(factors, design.channels, profile)]
                stats += [key | row for row in statistic_rows(factors, design.channels, profile)]
    say("repetitions", total, total)
    n_actions = counted_steps(tasks, people).sum() / len(people)
    settings = {
        "people": len(people),
        "repeat": repeat,
        "like_study": like is not None,
        "spread": "paper" if like is None else spread or "study",
        "log_sensitivity_mean": design.mean,
        "sd": dict(zip(_names(design.channels), design.sd.tolist(), strict=True)),
        "truth": {name: [own.intercept, own.slope, own.shape] for name, own in design.truth.items()},
        "methods": list(methods),
        "conditions": list(conditions),
        "missing": missing,
        "noise": noise,
    }
    return Recovery(
        record=Record.of("recover", tasks.tasks, seed=seed, settings=settings, cohort=people),
        factors=_names(design.channels),
        matrices=summarize(rows, ("condition", "method", "scale", "factor", "recovered")),
        parameters=summarize(stats, ("condition", "method", "parameter")),
        n_people=len(people),
        n_actions=float(n_actions),
        n_segments=people.n_segments / len(people),
        repeat=repeat,
        is_like=like is not None,
        not_learned=failures,
        notes=design.notes,
    )


# ---------------------------------------------------------------------- what is drawn


def _design_of_paper(truth: Mapping[str, Truth], given: tuple[float | None, ...]) -> _Design:
    channels = tuple(c for c in paper_channels() if c.name in truth and c.name != PRESENCE)
    effort, action, mean = (
        usual if own is None else own
        for own, usual in zip(
            given, (PAPER_EFFORT_SD, PAPER_LOG_SENSITIVITY_SD, PAPER_LOG_SENSITIVITY), strict=True
        )
    )
    return _Design(channels, dict(truth), mean, np.array([action] + [effort] * len(channels)), ())


def _design_of_study(
    tasks: TaskSet,
    learners: Cohort,
    truth: Mapping[str, Truth] | None,
    given: tuple[float | None, ...],
    spread: str,
    workers: int | None,
) -> _Design:
    """What a study's people share and how much they differ; channels that tell nothing are left out."""
    fit, why = fit_learnable(tasks.tasks, learners, paper_channels(), workers=workers)
    # Where pause presence cannot be learned, everybody always pauses, or never.
    notes = [f"{name} is left out: {reason}" for name, reason in why.items() if name != PRESENCE]
    notes += fit.warnings
    found = {}
    for channel in fit.channels:
        shared = fit.populations[channel.name].population
        intercept, slope = map(float, shared.coefficients)
        found[channel.name] = Truth(intercept, slope, float(shared.shape))
    channels = [channel for channel in fit.channels if channel.name != PRESENCE]
    sds = [fit.prior.sd, *(fit.populations[channel.name].population.sd for channel in channels)]
    sd = np.array(sds)
    if spread == "paper":
        sd = np.array([PAPER_LOG_SENSITIVITY_SD] + [PAPER_EFFORT_SD] * len(channels))
    effort, action, mean = given
    sd[0] = sd[0] if action is None else action
    sd[1:] = sd[1:] if effort is None else effort
    return _Design(
        tuple(channels),
        {**found, **(truth or {})},
        fit.prior.mean if mean is None else mean,
        sd,
        tuple(notes),
    )


def _resampled(cohort: Cohort, n: int, seed: int) -> Cohort:
    """So many people of a study, drawn with replacement, each with a name of their own."""
    rows = np.sort(np.random.default_rng([seed, _RESAMPLE]).integers(0, len(cohort), n))
    found = cohort[rows]
    names = pl.Series("participant", [f"P{j + 1:07d}" for j in range(n)])
    return replace(found, participants=found.participants.with_columns(names))


def _names(channels: Sequence[Channel]) -> tuple[str, ...]:
    return (SENSITIVITY, *(channel.name for channel in channels))


def _check_spread(effort_sd: float | None, sensitivity_sd: float | None, mean: float | None) -> None:
    for name, value in (("effort_sd", effort_sd), ("log_sensitivity_sd", sensitivity_sd)):
        if value is not None and not 0 < value <= WIDEST:
            raise DataError(
                f"{name} is {value:g}; it must be above 0, since what does not vary cannot come back, and at "
                f"most {WIDEST:g}."
            )
    if mean is not None and not np.isfinite(mean):
        raise DataError(f"log_sensitivity_mean is {mean:g}; it must be a finite number.")


def _check(
    methods: Sequence[str],
    conditions: Sequence[str],
    repeat: int,
    seed: int,
    missing: float,
    noise: float,
    like: Cohort | None,
    spread: str | None,
) -> None:
    for what, chosen, known in (("methods", methods, METHODS), ("conditions", conditions, CONDITIONS)):
        if isinstance(chosen, str) or not chosen or set(chosen) - set(known):
            raise DataError(f"{what} must be some of {', '.join(map(repr, known))}.")
    if repeat < 1:
        raise DataError(f"repeat is {repeat}; it must be 1 or more.")
    if seed < 0:
        raise DataError(f"seed is {seed}; it must be 0 or more.")
    if not 0 < missing < 1:
        raise DataError(f"missing is {missing:g}; it must lie between 0 and 1.")
    if not 1 < noise <= NOISIEST:
        raise DataError(f"noise is {noise:g}; it must be above 1 and at most {NOISIEST:g}.")
    if like is None and spread == "study":
        raise DataError("spread='study' needs a study: give like=, or --like STUDY.")
    if spread not in (None, "study", "paper"):
        raise DataError(f"spread is {spread!r}; it must be 'study' or 'paper'.")
