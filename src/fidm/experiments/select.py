"""Which settings of a task suit people best: the paper's grid, by cross-validation (appendix B.3).

The paper's grid is of move costs and temperatures; discounts can be tried too. Of several tasks, all are
tried with the same settings, each setting where a task has it: one without movements has no move cost.

Every point of the grid first goes through the task check. A point at which the best agent never finishes, or
a goal is worth less than walking on, is *degenerate*: it is reported with the reason and never chosen,
however well it scores. Of several tasks one may tell nothing about anybody; all together must not.

The paper does not say what its cross-validation compares. Here it is by default the probability of choices:
the prior of η is learned from four fifths of the people, and the choices of the others are scored by their
log-likelihood averaged over that prior, in nats per action. Outcomes do not enter, not even into the folds.
If a column of the participants is named, the area under the curve for telling its two groups apart is shown
beside it, by folds in which the groups are spread evenly, and can be made the criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, TaskError, at_least, few, one_of, remedy
from fidm.experiments import paper
from fidm.experiments.shared import FOLDS, fit_learnable, held_out_auc
from fidm.fit.common import Data, plain_algebra, threads
from fidm.fit.factorized import Model, learn_sensitivity
from fidm.fit.fitted import Fit
from fidm.fit.sensitivity import posterior
from fidm.model.channels import Channel
from fidm.model.effort import paper_channels
from fidm.record import Record, hash_values
from fidm.simulate.structure import PRESENCE
from fidm.stats import deal
from fidm.tasks.check import FINDINGS, move_cost, quick_problems, tells_nothing
from fidm.tasks.goals import Look
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

MOST_REASONS = 10
"""No more reasons than this are given why a point is degenerate."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid.

    Parameters
    ----------
    move_cost, tau : float
        What a movement pays (NaN where no task has movements), and the Bellman temperature.
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
    gamma : float
        The discount; NaN where only those of the tasks are tried and they differ.
    """

    move_cost: float
    tau: float
    usable: bool
    reasons: tuple[str, ...]
    likelihood: float
    likelihood_se: float
    auc: float
    auc_se: float
    gamma: float = np.nan


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The result of :func:`select`.

    Parameters
    ----------
    record : Record
        How it came about.
    points : tuple of Point
        The grid: discounts first, costs within, temperatures within these.
    by : {"likelihood", "auc"}
        What was compared.
    chosen : Point or None
        The usable point with the highest score; None if no point is usable.
    close : tuple of Point
        The usable points within one standard error of the chosen one, itself among them.
    own : tuple of float
        Move cost and temperature of the tasks as they stand; NaN where these differ among tasks, and where
        there are no movements.
    n_people, n_actions : int
        How many people and how many of their choices were scored.
    notes : tuple of str
        What is to be said beside.
    own_gamma : float
        The discount of the tasks as they stand; NaN where it differs.
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
    own_gamma: float = np.nan

    def at(self, cost: float, tau: float, gamma: float | None = None) -> Point | None:
        """Return the point with this move cost, temperature and discount; None if the grid has none.

        The discount is that of the tasks as they stand if it is left out; where no task has movements, the
        move cost is NaN.
        """
        wanted = (cost, tau, self.own_gamma if gamma is None else gamma)
        settings = ((point, (point.move_cost, point.tau, point.gamma)) for point in self.points)
        return next((p for p, own in settings if np.allclose(own, wanted, atol=0, equal_nan=True)), None)

    @property
    def varies_gamma(self) -> bool:
        """Whether several discounts were tried, or another than the tasks' own."""
        return "gammas" in self.record.settings

    def words(self, cost: float, tau: float, gamma: float) -> str:
        """Return a setting in words, without what was not tried."""
        said = [] if np.isnan(cost) else [f"move cost {cost:g}"]
        said += [f"temperature {tau:g}", *([f"gamma {gamma:g}"] if self.varies_gamma else [])]
        return ", ".join(said)

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
        given = [*self.own, *([self.own_gamma] if self.varies_gamma else [])]
        figures = ", ".join(f"{one:g}" for one in given if not np.isnan(one))
        setting = f"The task's own setting ({figures}) {own}."
        if np.isnan(given[1:]).any() or (np.isnan(self.own[0]) and not np.isnan(self.chosen.move_cost)):
            setting = "The tasks as they stand differ in their settings."
        chosen = self.words(self.chosen.move_cost, self.chosen.tau, self.chosen.gamma)
        return f"Chosen: {chosen}. {how} within one standard error of it. {setting}"

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name."""
        names = ["move_cost", "tau", "likelihood", "likelihood_se", "auc", "auc_se"]
        names += ["gamma"] if self.varies_gamma else []
        columns: dict[str, Any] = {
            name: pl.Series([getattr(p, name) for p in self.points], dtype=pl.Float64).fill_nan(None)
            for name in names
        }
        columns |= {
            "usable": [p.usable for p in self.points],
            "within_one_se": [p in self.close for p in self.points],
            "chosen": [p == self.chosen for p in self.points],
            "paper": [p is self.at(*PAPER_CHOICE) for p in self.points],
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
            "chosen": self._named(self.chosen),
            "paper": {"move_cost": PAPER_CHOICE[0], "tau": PAPER_CHOICE[1]},
            "task_as_it_stands": {
                "move_cost": self.own[0],
                "tau": self.own[1],
                **({"gamma": self.own_gamma} if self.varies_gamma else {}),
                "within_one_se": self.own_is_close,
            },
            "within_one_se": [self._named(point) for point in self.close],
            "points": self.tables[""],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }

    def _named(self, point: Point | None) -> dict[str, float] | None:
        if point is None:
            return None
        gamma = {"gamma": point.gamma} if self.varies_gamma else {}
        return {"move_cost": point.move_cost, "tau": point.tau, **gamma}


@plain_algebra
def select(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    costs: Sequence[float] | None = None,
    temperatures: Sequence[float] = paper.TEMPERATURES,
    gammas: Sequence[float] | None = None,
    folds: int = FOLDS,
    seed: int = 1,
    by: By = "likelihood",
    label: str | None = None,
    channels: Sequence[Channel] | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Selection:
    """Try the task with other move costs, temperatures and discounts, and say which suits people best.

    Parameters
    ----------
    task : TaskModel, or several
        The task. Several are all tried with the same settings, and a point is usable if it is in every task;
        one that tells nothing about anybody does no harm beside others that do.
    cohort : Cohort
        The training part.
    costs, temperatures : sequence of float, optional
        The grid; by default the paper's. Tasks without movements keep what their actions pay; where no task
        has movements there are no costs to try.
    gammas : sequence of float, optional
        The discounts to try; left out, each task keeps its own.
    folds : int
        How many parts the people are cut into.
    seed : int
        Of the folds.
    by : {"likelihood", "auc"}
        What is compared: the probability of left-out choices, or how well all features tell two groups apart.
    label : str, optional
        The column of participants with the groups: "normal" against the others, or two values. Left out, no
        outcome is looked at; with ``by="auc"`` it is then "diagnosis".
    channels : sequence of Channel, optional
        The effort channels whose offsets help to distinguish the groups; by default the paper's.
    workers : int, optional
        Threads; by default one per processor. Changes no number.
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
    costs = _costs(tasks, costs)
    own, own_gamma = _check(tasks, cohort, (costs, temperatures, gammas), folds, seed, by)
    if by == "auc" and label is None:
        label = DIAGNOSIS
    fold = deal(len(cohort), folds, seed=[seed, len(cohort)])
    groups = None if label is None else _Groups.of(tasks, cohort, label, folds, seed, channels)
    grid = [
        (_set_all(tasks, cost, float(tau), gamma), cost, float(tau), own_gamma if gamma is None else gamma)
        for gamma in ([None] if gammas is None else map(float, gammas))
        for cost in (map(float, costs) if len(costs) else [np.nan])
        for tau in temperatures
    ]

    def score(point: tuple[tuple[TaskModel, ...], float, float, float]) -> _Scored:
        return _score(*point, cohort=cohort, fold=fold, groups=groups, folds=folds)

    say = on_progress or (lambda doing, done, of: None)
    scored: list[_Scored] = []
    say("points", 0, len(grid))
    with ThreadPoolExecutor(threads(workers)) as pool:
        for one in pool.map(score, grid):
            scored.append(one)
            say("points", len(scored), len(grid))
    lost = [one for one in scored if not one.is_learned]
    if lost and all(one.reasons for one in scored):
        raise FitError(lost[0].reasons[0])
    points, best = _compared(scored, by)
    settings = {
        "costs": list(map(float, costs)),
        "temperatures": list(map(float, temperatures)),
        **({} if gammas is None else {"gammas": list(map(float, gammas))}),
        **({} if channels is None else {"channels": [channel.name for channel in channels]}),
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
        own_gamma=own_gamma,
    )


def _set_all(
    tasks: Sequence[TaskModel], cost: float, tau: float, gamma: float | None
) -> tuple[TaskModel, ...]:
    """All tasks with these settings; those without movements have no move cost."""
    return tuple(
        one.with_settings(move_cost=None if move_cost(one) is None else cost, tau=tau, gamma=gamma)
        for one in tasks
    )


def _score(
    tasks: tuple[TaskModel, ...],
    cost: float,
    tau: float,
    gamma: float,
    *,
    cohort: Cohort,
    fold: Integers,
    groups: _Groups | None,
    folds: int,
) -> _Scored:
    """A point of the grid, checked and cross-validated."""
    areas = np.full(folds, np.nan)
    nothing = np.full(len(cohort), np.nan), np.zeros(len(cohort), dtype=np.int64)
    try:
        values = tuple(solve(task) for task in tasks)
    except TaskError as error:  # such as gamma = 1 where one can walk in circles
        return _Scored(cost, tau, (error.message,), *nothing, areas, gamma)
    reasons = _problems(tasks, values)
    try:
        log, n = _cross_validate(tasks, values, cohort, fold, usable=not reasons)
        if groups is not None:
            areas = _areas(tasks, values, cohort, groups, folds, usable=not reasons)
    except FitError as error:  # people's choices do not tell how they differ by these values
        why = reasons or (error.message,)
        return _Scored(cost, tau, why, *nothing, areas, gamma, is_learned=bool(reasons))
    return _Scored(cost, tau, reasons, log, n, areas, gamma)


def _problems(tasks: Sequence[TaskModel], solved: Sequence[Values]) -> tuple[str, ...]:
    """Why a point is degenerate, with the task's name where there are several; no more than a few reasons."""
    found, silent = [], 0
    for task, values in zip(tasks, solved, strict=True):
        look = Look.at(task, values)
        where = f"{task.name}: " if len(tasks) > 1 else ""
        found += [f"{where}{problem}" for problem in quick_problems(task, look)]
        silent += tells_nothing(task, values, look.sitting)
    if silent == len(tasks):  # one beside others that tell something does no harm
        found.append(f"{'' if silent == 1 else 'All tasks: '}{FINDINGS['no_information'][1]}")
    more = [f"{len(found) - MOST_REASONS:,} more problems of tasks."] if len(found) > MOST_REASONS else []
    return (*found[:MOST_REASONS], *more)


def _costs(tasks: Sequence[TaskModel], costs: Sequence[float] | None) -> Sequence[float]:
    """The move costs to try; none where no task has movements."""
    moving = any(move_cost(task) is not None for task in tasks)
    if costs is None:
        return paper.MOVE_COSTS if moving else ()
    if len(costs) and not moving:
        names = few([task.name for task in tasks])
        has = f"{names} has" if len(tasks) == 1 else f"None of {names} has"
        raise TaskError(
            f"{has} {'no ' if len(tasks) == 1 else ''}movements, so there is no move cost to select. Leave "
            + remedy("costs out.", "--move-cost out.")
        )
    if not len(costs) and moving:
        raise DataError("The grid is empty; give at least one move cost and one temperature.")
    return costs


def _check(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    grid: tuple[Sequence[float], Sequence[float], Sequence[float] | None],
    folds: int,
    seed: int,
    by: By,
) -> tuple[tuple[float, float], float]:
    """The tasks' own cost, temperature and discount, NaN where they differ, if this grid can be tried."""
    one_of("by", by, ("likelihood", "auc"))
    at_least("seed", seed, 0)
    _, temperatures, gammas = grid
    if not len(temperatures) or (gammas is not None and not len(gammas)):
        raise DataError("The grid is empty; give at least one of everything that is to be tried.")
    own_costs = {cost for task in tasks if (cost := move_cost(task)) is not None}
    own_taus, own_gammas = {task.tau for task in tasks}, {task.gamma for task in tasks}
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
    own_gamma = own_gammas.pop() if len(own_gammas) == 1 else np.nan
    if len(own_costs) > 1 or len(own_taus) > 1:
        return (np.nan, np.nan), own_gamma
    return (own_costs.pop() if own_costs else np.nan, own_taus.pop()), own_gamma


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
    gamma: float = np.nan
    is_learned: bool = True  # whether people's choices tell how they differ at a point that is sound

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
    def of(
        cls,
        tasks: Sequence[TaskModel],
        cohort: Cohort,
        label: str,
        folds: int,
        seed: int,
        wanted: Sequence[Channel] | None,
    ) -> _Groups:
        group = _two_groups(cohort, label, folds)
        fold = deal(len(cohort), folds, seed=[seed, len(cohort)], classes=group)
        columns = cohort.segments.columns
        channels = tuple(
            one
            for one in (paper_channels() if wanted is None else wanted)
            if one.column in columns and one.name != PRESENCE
        )
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
    log = np.full(len(cohort), np.nan)
    for number in range(int(fold.max()) + 1):
        inside, notes = fold == number, list[str]()
        learners = replace(data, choices=data.choices.take(~inside))
        prior, lapse, _ = learn_sensitivity(
            learners, "estimate", 1, wanted=True, notes=notes, plausible=False
        )
        if np.isfinite(prior.sd):
            left_out = data.choices.take(inside)
            log[inside] = posterior(left_out, prior, lapse=lapse, level=0.95, workers=1)[1]
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
            features = np.column_stack([fit.profile(cohort, workers=1).features()[0], groups.effort[number]])
            known, inside = groups.group >= 0, groups.fold == number
            rows = np.flatnonzero(known & ~inside), np.flatnonzero(known & inside)
            areas[number] = held_out_auc(features, groups.group, *rows)
    return areas


def _learned(
    tasks: Sequence[TaskModel], values: Sequence[Values], learners: Cohort, *, usable: bool
) -> Fit | None:
    """What people's choices share; None where the values of a degenerate point are too flat to learn it."""
    try:
        fit = Model(tasks, channels=(), values=values).fit(learners, workers=1)
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
        errors = [np.nan if place is None else one.error(scored[place], kind) for kind, place in best.items()]
        points.append(
            Point(
                move_cost=one.cost,
                tau=one.tau,
                usable=not one.reasons,
                reasons=one.reasons,
                likelihood=one.mean("likelihood"),
                likelihood_se=errors[0],
                auc=one.mean("auc"),
                auc_se=errors[1],
                gamma=one.gamma,
            )
        )
    return tuple(points), best[by]


def _best(scored: Sequence[_Scored], by: By) -> int | None:
    usable = [(one.mean(by), -place) for place, one in enumerate(scored) if not one.reasons]
    usable = [pair for pair in usable if not np.isnan(pair[0])]
    return -max(usable)[1] if usable else None


def _close(points: Sequence[Point], best: int, by: By) -> tuple[Point, ...]:
    top = getattr(points[best], by)
    return tuple(p for p in points if p.usable and top - getattr(p, by) <= getattr(p, f"{by}_se"))
