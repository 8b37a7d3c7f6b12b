"""Which move cost and temperature suit people best: the paper's grid, by cross-validation (appendix B.3).

Every point of the grid first goes through the task check. A point at which the best agent never finishes, or
a goal is worth less than walking on, is *degenerate*: it is reported with the reason and never chosen,
however well it scores.

The paper does not say what its cross-validation compares. Here it is by default the probability of choices:
the prior of η is learned from four fifths of the people, and the choices of the others are scored by their
log-likelihood averaged over that prior, in nats per action. Outcomes do not enter, not even into the folds.
If a column of the participants is named, the area under the curve for telling its two groups apart is shown
beside it, by folds in which the groups are spread evenly, and can be made the criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, TaskError, at_least, one_of
from fidm.experiments import paper
from fidm.experiments.shared import FOLDS, fit_learnable, held_out_auc
from fidm.fit.common import Data, threads
from fidm.fit.factorized import Model, learn_sensitivity
from fidm.fit.fitted import Fit
from fidm.fit.sensitivity import posterior
from fidm.model.effort import paper_channels
from fidm.record import Record, hash_values
from fidm.simulate.structure import PRESENCE
from fidm.stats import deal
from fidm.tasks.check import check_task, move_cost
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Floats, Integers, Progress, Values

By = Literal["likelihood", "auc"]
PAPER_CHOICE = (paper.CHOSEN_MOVE_COST, paper.CHOSEN_TEMPERATURE)
"""The move cost and the temperature that the paper chose."""

DIAGNOSIS, NORMAL = "diagnosis", "normal"
"""The column of participants that ``by="auc"`` looks at by default, and its class of healthy people."""

FEWEST_PER_FOLD = 2


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid.

    Parameters
    ----------
    move_cost, tau : float
        What a movement pays, and the Bellman temperature.
    usable : bool
        Whether the task check has no problem with it.
    reasons : tuple of str
        The problems, if there are some.
    likelihood : float
        Mean log-likelihood of a left-out choice, in nats; NaN where nothing could be learned.
    likelihood_se : float
        Standard error, over people, of its difference from the best usable point.
    auc : float
        Area under the curve by all features; NaN where it was not computed.
    auc_se : float
        Standard error, over folds, of its difference from the best usable point.
    """

    move_cost: float
    tau: float
    usable: bool
    reasons: tuple[str, ...]
    likelihood: float
    likelihood_se: float
    auc: float
    auc_se: float


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The result of :func:`select`.

    Parameters
    ----------
    record : Record
        How it came about.
    points : tuple of Point
        The grid, costs first, temperatures within.
    by : {"likelihood", "auc"}
        What was compared.
    chosen : Point or None
        The usable point with the highest score; None if no point is usable.
    close : tuple of Point
        The usable points within one standard error of the chosen one, itself among them.
    own : tuple of float
        Move cost and temperature of the tasks as they stand; NaN where these differ among tasks.
    n_people, n_actions : int
        How many people and how many of their choices were scored.
    notes : tuple of str
        What is to be said beside.
    """

    record: Record
    points: tuple[Point, ...]
    by: By
    chosen: Point | None
    close: tuple[Point, ...]
    own: tuple[float, float]
    n_people: int
    n_actions: int
    notes: tuple[str, ...] = ()

    def at(self, cost: float, tau: float) -> Point | None:
        """Return the point with this move cost and temperature; None if the grid has none."""
        return next((p for p in self.points if np.allclose((p.move_cost, p.tau), (cost, tau), atol=0)), None)

    def score(self, point: Point) -> float:
        """Return what points are compared by."""
        return float(getattr(point, self.by))

    @property
    def own_is_close(self) -> bool | None:
        """Whether the task as it stands is within one standard error; None if it is not on the grid."""
        own = self.at(*self.own)
        return None if own is None else own in self.close

    @property
    def sentence(self) -> str:
        """Return what was chosen, and how clearly, in words."""
        if self.chosen is None:
            return (
                f"All {len(self.points)} points are degenerate, so none is chosen. fidm check says what "
                "would repair the task."
            )
        others = len(self.close) - 1
        how = {0: "No other usable point is", 1: "One other usable point is"}.get(
            others, f"{others} other usable points are"
        )
        own = {None: "is not on the grid", True: "is among them", False: "is not among them"}[
            self.own_is_close
        ]
        if self.at(*self.own) == self.chosen:
            own = "is the one chosen"
        setting = f"The task's own setting ({self.own[0]:g}, {self.own[1]:g}) {own}."
        if np.isnan(self.own).any():
            setting = "The tasks as they stand differ in their settings."
        return (
            f"Chosen: move cost {self.chosen.move_cost:g}, temperature {self.chosen.tau:g}. {how} within one "
            f"standard error of it. {setting}"
        )

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        names = ("move_cost", "tau", "likelihood", "likelihood_se", "auc", "auc_se")
        columns: dict[str, Any] = {
            name: pl.Series([getattr(p, name) for p in self.points], dtype=pl.Float64).fill_nan(None)
            for name in names
        }
        columns |= {
            "usable": [p.usable for p in self.points],
            "within_one_se": [p in self.close for p in self.points],
            "chosen": [p == self.chosen for p in self.points],
            "paper": [p == self.at(*PAPER_CHOICE) for p in self.points],
            "reasons": [" ".join(p.reasons) for p in self.points],
        }
        return {"": pl.DataFrame(columns)}

    def __repr__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values, without the record."""
        return {
            "by": self.by,
            "people": self.n_people,
            "actions": self.n_actions,
            "chosen": _named(self.chosen),
            "paper": {"move_cost": PAPER_CHOICE[0], "tau": PAPER_CHOICE[1]},
            "task_as_it_stands": {
                "move_cost": self.own[0],
                "tau": self.own[1],
                "within_one_se": self.own_is_close,
            },
            "within_one_se": [_named(point) for point in self.close],
            "points": self.tables[""],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def _named(point: Point | None) -> dict[str, float] | None:
    return None if point is None else {"move_cost": point.move_cost, "tau": point.tau}


def select(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    costs: Sequence[float] = paper.MOVE_COSTS,
    temperatures: Sequence[float] = paper.TEMPERATURES,
    folds: int = FOLDS,
    seed: int = 1,
    by: By = "likelihood",
    label: str | None = None,
    on_progress: Progress | None = None,
) -> Selection:
    """Try the task with other move costs and temperatures, and say which suits people best.

    Parameters
    ----------
    task : TaskModel, or several
        A task with movements. Several are all tried with the same move cost and temperature, and a point is
        usable if it is in every task.
    cohort : Cohort
        The training part.
    costs, temperatures : sequence of float
        The grid; by default the paper's.
    folds : int
        How many parts the people are cut into.
    seed : int
        Of the folds.
    by : {"likelihood", "auc"}
        What is compared: the probability of left-out choices, or how well all features tell two groups apart.
    label : str, optional
        The column of participants with the groups: "normal" against the others, or two values. Left out, no
        outcome is looked at; with ``by="auc"`` it is then "diagnosis".
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.experiments.select import select
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 30, seed=1)
    >>> found = select(task, people, costs=[-0.03], temperatures=[0.02, 0.2])
    >>> found.chosen.tau, found.points[1].usable
    (0.02, False)
    """
    tasks = TaskSet.of(task).tasks
    own = _check(tasks, cohort, costs, temperatures, folds, seed, by)
    if by == "auc" and label is None:
        label = DIAGNOSIS
    fold = deal(len(cohort), folds, seed=[seed, len(cohort)])
    groups = None if label is None else _Groups.of(tasks, cohort, label, folds, seed)
    grid = [(float(cost), float(tau)) for cost in costs for tau in temperatures]
    say = on_progress or (lambda doing, done, of: None)
    scored = []
    for done, (cost, tau) in enumerate(grid):
        say("points", done, len(grid))
        variants = tuple(one.with_settings(move_cost=cost, tau=tau) for one in tasks)
        reasons = tuple(
            reason for variant in variants for reason in _problems(variant, several=len(tasks) > 1)
        )
        values = tuple(solve(variant) for variant in variants)
        log, n = _cross_validate(variants, values, cohort, fold, usable=not reasons)
        areas = np.full(folds, np.nan)
        if groups is not None:
            areas = _areas(variants, values, cohort, groups, folds, usable=not reasons)
        scored.append(_Scored(cost, tau, reasons, log, n, areas))
    say("points", len(grid), len(grid))
    points, best = _compared(scored, by)
    settings = {
        "costs": list(map(float, costs)),
        "temperatures": list(map(float, temperatures)),
        "folds": folds,
        "by": by,
        "label": label,
        "groups": None if groups is None else hash_values(groups.group),
    }
    return Selection(
        record=Record.of("select", tasks, seed=seed, settings=settings, cohort=cohort),
        points=points,
        by=by,
        chosen=None if best is None else points[best],
        close=() if best is None else _close(points, best, by),
        own=own,
        n_people=len(cohort),
        n_actions=max(int(one.n.sum()) for one in scored),
        notes=() if groups is None else groups.notes,
    )


def _problems(task: TaskModel, *, several: bool) -> list[str]:
    """Why a task is degenerate, with its name where there are several."""
    found = check_task(task, vary=False).findings
    where = f"{task.name}: " if several else ""
    return [f"{where}{finding.says}" for finding in found if finding.level == "problem"]


def _check(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    costs: Sequence[float],
    temperatures: Sequence[float],
    folds: int,
    seed: int,
    by: By,
) -> tuple[float, float]:
    """The tasks' own move cost and temperature, NaN where they differ, if this grid can be tried."""
    one_of("by", by, ("likelihood", "auc"))
    at_least("seed", seed, 0)
    settings = {(move_cost(task), task.tau) for task in tasks}
    still = [task.name for task in tasks if move_cost(task) is None]
    if still:
        raise TaskError(f"{still[0]} has no movements, so it has no move cost to select.")
    if not (len(costs) and len(temperatures)):
        raise DataError("The grid is empty; give at least one move cost and one temperature.")
    names = [task.name for task in tasks]
    strange = sorted({name for name in cohort.tasks if name} - set(names))
    if strange:
        raise DataError(
            f"People did {', '.join(strange)}, not only {', '.join(names)}. Give all tasks they did, or the "
            "people who did these only."
        )
    if folds < 2 or len(cohort) < FEWEST_PER_FOLD * folds:
        raise DataError(
            f"{folds} folds cannot be made of {len(cohort)} participant{'s' * (len(cohort) != 1)}; there "
            f"must be 2 folds or more, and {FEWEST_PER_FOLD} participants in each."
        )
    cost, tau = settings.pop()
    return (np.nan, np.nan) if settings or cost is None else (cost, tau)


# ---------------------------------------------------------------------- scores


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """A point before it is compared: log-likelihood and number of choices per person, AUC per fold."""

    cost: float
    tau: float
    reasons: tuple[str, ...]
    log_likelihood: Floats
    n: Integers
    areas: Floats

    def mean(self, by: By) -> float:
        if by == "auc":
            return float(self.areas.mean())
        return float(self.log_likelihood.sum() / self.n.sum()) if self.n.any() else np.nan

    def error(self, best: _Scored, by: By) -> float:
        """The standard error of the difference from another point: over people, or over folds."""
        if not self.n.any():
            return np.nan
        if by == "likelihood":
            away, total = self.log_likelihood - best.log_likelihood, self.n.sum()
            left = away - away.sum() / total * self.n
            return float(np.sqrt(len(left) / (len(left) - 1) * (left @ left)) / total)
        away = self.areas - best.areas
        return float(away.std(ddof=1) / np.sqrt(len(away)))


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Two groups of people, folds in which they are spread evenly, and effort learned without each fold.

    ``group`` is 0 or 1, and -1 where it is not known; ``effort`` has one table per fold, since what people
    share is learned from the others. Effort does not depend on the task's settings.
    """

    group: NDArray[np.int8]
    fold: Integers
    effort: list[Floats]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, tasks: Sequence[TaskModel], cohort: Cohort, label: str, folds: int, seed: int) -> _Groups:
        group = _two_groups(cohort, label, folds)
        fold = deal(len(cohort), folds, seed=[seed, len(cohort)], classes=group)
        columns = cohort.segments.columns
        channels = tuple(c for c in paper_channels() if c.column in columns and c.name != PRESENCE)
        if not channels or not cohort.n_segments:
            return cls(group, fold, [np.zeros((len(cohort), 0))] * folds, ())
        effort: list[Floats] = []
        failures: dict[str, str] = {}
        for number in range(folds):
            learners = cohort[np.flatnonzero(fold != number)]
            fit, why = fit_learnable(tasks, learners, channels)
            failures |= why
            effort.append(fit.profile(cohort).features()[0][:, 1:])
        notes = tuple(f"{name} is left out of the AUC: {reason}" for name, reason in failures.items())
        return cls(group, fold, effort, notes)


def _two_groups(cohort: Cohort, label: str, folds: int) -> NDArray[np.int8]:
    """Everybody's group, 0 or 1, -1 where it is unknown."""
    if label not in cohort.participants.columns:
        raise DataError(f"The participants have no column {label!r} that says who belongs to which group.")
    column = cohort.participants[label]
    if column.dtype.is_nested():
        raise DataError(f"The column {label!r} of the participants holds lists; two plain values are needed.")
    values = (column.fill_nan(None) if column.dtype.is_float() else column).cast(pl.String)
    classes = values.drop_nulls().unique().sort().to_list()
    if NORMAL not in classes and len(classes) != 2:
        raise DataError(
            f"The column {label!r} of the participants has {len(classes)} different values and none is "
            f"{NORMAL!r}; two are needed."
        )
    second = values != NORMAL if NORMAL in classes else values == classes[-1]
    is_second = second.fill_null(value=False).to_numpy()
    group = np.where(values.is_null().to_numpy(), -1, is_second).astype(np.int8)
    smaller = int(min((group == 0).sum(), (group == 1).sum()))
    if smaller < folds:
        raise DataError(
            f"The column {label!r} of the participants has a smaller group of {smaller}; {folds} folds need "
            f"at least {folds}."
        )
    return group


def _cross_validate(
    tasks: Sequence[TaskModel], values: Sequence[Values], cohort: Cohort, fold: Integers, *, usable: bool
) -> tuple[Floats, Integers]:
    """Everybody's log-likelihood when left out, and their number of choices."""
    together = TaskSet.of(tasks)
    data = Data.of(together, together.values(values), (), {}, cohort, need_columns=True, inferred=0.0)
    log, workers = np.full(len(cohort), np.nan), threads(None)
    for number in range(int(fold.max()) + 1):
        inside, notes = fold == number, list[str]()
        learners = replace(data, choices=data.choices.take(~inside))
        prior, lapse, _ = learn_sensitivity(
            learners, "estimate", workers, wanted=True, notes=notes, plausible=False
        )
        if np.isfinite(prior.sd):
            left_out = data.choices.take(inside)
            log[inside] = posterior(left_out, prior, lapse=lapse, level=0.95, workers=workers)[1]
        elif usable:  # else one more sign of degeneracy
            raise FitError(" ".join(notes))
    return log, data.choices.n_choices


def _areas(
    tasks: Sequence[TaskModel],
    values: Sequence[Values],
    cohort: Cohort,
    groups: _Groups,
    folds: int,
    *,
    usable: bool,
) -> Floats:
    """How well all features tell the two groups apart, in each fold."""
    areas = np.full(folds, np.nan)
    for number in range(folds):
        fit = _learned(tasks, values, cohort[np.flatnonzero(groups.fold != number)], usable=usable)
        if fit is not None:
            features = np.column_stack([fit.profile(cohort).features()[0], groups.effort[number]])
            known, inside = groups.group >= 0, groups.fold == number
            rows = np.flatnonzero(known & ~inside), np.flatnonzero(known & inside)
            areas[number] = held_out_auc(features, groups.group, *rows)
    return areas


def _learned(
    tasks: Sequence[TaskModel], values: Sequence[Values], learners: Cohort, *, usable: bool
) -> Fit | None:
    """What people's choices share; None where the values of a degenerate point are too flat to learn it."""
    try:
        fit = Model(tasks, channels=(), values=values).fit(learners)
        if np.isnan(fit.prior.sd):
            raise FitError(" ".join(fit.notes))
    except FitError:
        if usable:
            raise
        return None  # one more sign of degeneracy
    return fit


# ---------------------------------------------------------------------- comparing


def _compared(scored: Sequence[_Scored], by: By) -> tuple[tuple[Point, ...], int | None]:
    """The points with their standard errors, and the place of the best usable one."""
    kinds: tuple[By, ...] = ("likelihood", "auc")
    best = {kind: _best(scored, kind) for kind in kinds}
    points = []
    for one in scored:
        numbers = []
        for kind, place in best.items():
            numbers += [one.mean(kind), np.nan if place is None else one.error(scored[place], kind)]
        points.append(Point(one.cost, one.tau, not one.reasons, one.reasons, *numbers))
    return tuple(points), best[by]


def _best(scored: Sequence[_Scored], by: By) -> int | None:
    usable = [(one.mean(by), -place) for place, one in enumerate(scored) if not one.reasons]
    usable = [pair for pair in usable if not np.isnan(pair[0])]
    return -max(usable)[1] if usable else None


def _close(points: Sequence[Point], best: int, by: By) -> tuple[Point, ...]:
    top = getattr(points[best], by)
    return tuple(p for p in points if p.usable and top - getattr(p, by) <= getattr(p, f"{by}_se"))
