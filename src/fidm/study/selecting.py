"""Which move cost and temperature suit people best: the paper's grid, by cross-validation (appendix B.3).

Every point of the grid first goes through the task check. A point at which the best agent never finishes, or
a goal is worth less than walking on, is *degenerate*: it is reported with the reason and never chosen,
however well it scores.

The paper does not say what its cross-validation compares. Here it is by default the probability of choices:
the prior of η is learned from four fifths of the people, and the choices of the others are scored by their
log-likelihood averaged over that prior, in nats per action. Outcomes do not enter. Where people have a
diagnosis, the area under the curve by the same folds is shown beside it, and can be made the criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, TaskError
from fidm.fit.factorized import Model
from fidm.fit.fitted import Progress
from fidm.model.channels import paper_channels
from fidm.record import Record
from fidm.study import paper
from fidm.study.selected import By, Point, Selection
from fidm.study.separate import FOLDS, held_out_auc
from fidm.study.structure import PRESENCE
from fidm.tasks.check import check_task
from fidm.tasks.findings import move_cost
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DIAGNOSIS, NORMAL = "diagnosis", "normal"
"""The column of participants that is looked at unless told otherwise, and its class of healthy people."""

FEWEST_PER_FOLD = 2


def select(
    task: TaskModel,
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
    task : TaskModel
        A task with movements.
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
        The column of participants with the groups: "normal" against the others, or two values. By default
        "diagnosis", where there is one.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.study.selecting import select
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 30, seed=1)
    >>> found = select(task, people, costs=[-0.03], temperatures=[0.02, 0.2])
    >>> found.chosen.tau, found.points[1].usable
    (0.02, False)
    """
    if by not in ("likelihood", "auc"):
        raise DataError(f"by is {by!r}; it must be 'likelihood' or 'auc'.")
    own_cost = move_cost(task)
    if own_cost is None:
        raise TaskError(f"{task.name} has no movements, so it has no move cost to select.")
    if not (len(costs) and len(temperatures)):
        raise DataError("The grid is empty; give at least one move cost and one temperature.")
    strange = sorted({name for name in cohort.tasks if name} - {task.name})
    if strange:
        raise DataError(
            f"People did {', '.join(strange)}, not only {task.name}. One task is needed, since a move cost "
            "and a temperature belong to one."
        )
    if folds < 2 or len(cohort) < FEWEST_PER_FOLD * folds:
        raise DataError(
            f"{folds} folds cannot be made of {len(cohort)} participant{'s' * (len(cohort) != 1)}; there "
            f"must be 2 folds or more, and {FEWEST_PER_FOLD} participants in each."
        )
    group, notes = _groups(cohort, label, folds, wanted=by == "auc" or label is not None)
    fold = cut(len(cohort), group, folds, seed)
    effort = None if group is None else _effort(task, cohort, fold)
    grid = [(float(cost), float(tau)) for cost in costs for tau in temperatures]
    say = on_progress or (lambda doing, done, of: None)
    scored = []
    for done, (cost, tau) in enumerate(grid):
        say("points", done, len(grid))
        variant = task.with_settings(move_cost=cost, tau=tau)
        found = check_task(variant, vary=False)
        reasons = tuple(finding.says for finding in found.findings if finding.level == "problem")
        parts = _cross_validate(variant, cohort, fold, group, effort, usable=found.usable)
        scored.append(_Scored(cost, tau, reasons, *parts))
    say("points", len(grid), len(grid))
    points, best = _compared(scored, by)
    return Selection(
        record=Record.of(
            "select",
            task,
            seed=seed,
            settings={
                "costs": list(map(float, costs)),
                "temperatures": list(map(float, temperatures)),
                "folds": folds,
                "by": by,
                "label": label,
            },
            cohort=cohort,
        ),
        points=points,
        by=by,
        chosen=None if best is None else points[best],
        close=() if best is None else _close(points, best, by),
        own=(own_cost, task.tau),
        n_people=len(cohort),
        n_actions=max(int(one.n.sum()) for one in scored),
        notes=notes,
    )


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


def cut(n: int, group: NDArray[np.int8] | None, folds: int, seed: int) -> Integers:
    """Return the fold of each person, [n]; the groups are spread evenly."""
    order = np.random.default_rng([seed, n]).permutation(n)
    if group is not None:
        order = order[np.argsort(group[order], kind="stable")]
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % folds
    return fold


def _groups(
    cohort: Cohort, label: str | None, folds: int, *, wanted: bool
) -> tuple[NDArray[np.int8] | None, tuple[str, ...]]:
    """Everybody's group, 0 or 1, -1 where it is unknown; None, with the reason, where there are not two."""
    column = label or DIAGNOSIS
    if column not in cohort.participants.columns:
        if not wanted:
            return None, (f"The participants have no column {column!r}, so no AUC is shown.",)
        raise DataError(f"The participants have no column {column!r} that says who belongs to which group.")
    values = cohort.participants[column].cast(pl.String)
    classes = values.drop_nulls().unique().sort().to_list()
    problem = ""
    if NORMAL not in classes and len(classes) != 2:
        problem = f"has {len(classes)} different values and none is {NORMAL!r}; two are needed"
    second = values != NORMAL if NORMAL in classes else values == classes[-1] if classes else values.is_null()
    group = np.where(values.is_null().to_numpy(), -1, second.fill_null(value=False).to_numpy()).astype(
        np.int8
    )
    smaller = int(min((group == 0).sum(), (group == 1).sum()))
    if not problem and smaller < folds:
        problem = f"has a smaller group of {smaller}; {folds} folds need at least {folds}"
    if not problem:
        return group, ()
    if wanted:
        raise DataError(f"The column {column!r} of the participants {problem}.")
    return None, (f"The column {column!r} of the participants {problem}, so no AUC is shown.",)


def _effort(task: TaskModel, cohort: Cohort, fold: Integers) -> list[Floats]:
    """Everybody's effort features, learned without each fold; they do not depend on the task's settings."""
    columns = cohort.segments.columns
    channels = tuple(c for c in paper_channels() if c.column in columns and c.name != PRESENCE)
    if not channels or not cohort.n_segments:
        return [np.zeros((len(cohort), 0))] * (int(fold.max()) + 1)
    return [
        Model(task, channels=channels)
        .fit(cohort[np.flatnonzero(fold != number)])
        .profile(cohort)
        .features()[0][:, 1:]
        for number in range(int(fold.max()) + 1)
    ]


def _cross_validate(
    task: TaskModel,
    cohort: Cohort,
    fold: Integers,
    group: NDArray[np.int8] | None,
    effort: list[Floats] | None,
    *,
    usable: bool,
) -> tuple[Floats, Integers, Floats]:
    """Everybody's log-likelihood when left out, their number of choices, and the AUC of each fold."""
    folds = int(fold.max()) + 1
    log, n, areas = np.full(len(cohort), np.nan), np.zeros(len(cohort), np.int64), np.full(folds, np.nan)
    model = Model(task, channels=(), values=solve(task))
    for number in range(folds):
        left_out = np.flatnonzero(fold == number)
        try:
            fit = model.fit(cohort[np.flatnonzero(fold != number)])
        except FitError:
            if usable:
                raise
            continue  # values so flat that nobody can be told from anybody: one more sign of degeneracy
        log[left_out] = fit.log_likelihood(cohort[left_out], at="prior")["action"].to_numpy()
        profile = fit.profile(cohort)
        n[left_out] = profile.n[left_out, 0]
        if group is not None and effort is not None:
            features = np.column_stack([profile.features()[0], effort[number]])
            train, test = (np.flatnonzero((group >= 0) & own) for own in (fold != number, fold == number))
            areas[number] = held_out_auc(features, group, train, test)
    return log, n, areas


# ---------------------------------------------------------------------- comparing


def _compared(scored: Sequence[_Scored], by: By) -> tuple[tuple[Point, ...], int | None]:
    """The points with their standard errors, and the place of the best usable one."""
    kinds: tuple[By, ...] = ("likelihood", "auc")
    best = {kind: _best(scored, kind) for kind in kinds}
    points = []
    for one in scored:
        errors = {
            kind: np.nan if place is None else one.error(scored[place], kind) for kind, place in best.items()
        }
        points.append(
            Point(
                move_cost=one.cost,
                tau=one.tau,
                usable=not one.reasons,
                reasons=one.reasons,
                likelihood=one.mean("likelihood"),
                likelihood_se=errors["likelihood"],
                auc=one.mean("auc"),
                auc_se=errors["auc"],
            )
        )
    return tuple(points), best[by]


def _best(scored: Sequence[_Scored], by: By) -> int | None:
    usable = [(one.mean(by), -place) for place, one in enumerate(scored) if not one.reasons]
    usable = [pair for pair in usable if not np.isnan(pair[0])]
    return -max(usable)[1] if usable else None


def _close(points: Sequence[Point], best: int, by: By) -> tuple[Point, ...]:
    error = "likelihood_se" if by == "likelihood" else "auc_se"
    top = getattr(points[best], by)
    return tuple(p for p in points if p.usable and top - getattr(p, by) <= getattr(p, error))
