"""Is this task sane? Numbers and plain sentences about a task, before anybody is fitted to it.

The trap to catch is *wandering*: log-sum-exp pays every step a bonus of up to τ·ln(number of legal
actions), and where that exceeds the cost of a step, walking about can be worth more than finishing.
The values themselves give the verdict: the best agent must finish, and standing before a goal,
taking it must be worth more than walking on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fidm.tasks.behaviour import choice_probabilities, information, look_ahead
from fidm.tasks.findings import Finding, find, move_cost, wander_bonus
from fidm.tasks.goals import GoalCheck, Look
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Normaliser, Values

TAU_FACTORS = (0.6, 1.0, 1.6, 2.4)
COST_FACTORS = (0.5, 1.0, 2.5)
"""The paper's grid (τ of .03 .05 .08 .12, cost of .01 .02 .05) relative to its own choice."""

SENSITIVITY_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Sensitivities looked at, as multiples of 1/τ."""


@dataclass(frozen=True, slots=True)
class SensitivityCheck:
    """What a person of one sensitivity would do, and what one sitting would tell about them.

    ``information`` is the Fisher information of η per action; ``relative_error`` the standard error
    of an estimated η after one sitting, as a share of η (infinite at η = 0).
    """

    sensitivity: float
    actions: float
    finished: float
    information: float
    relative_error: float


@dataclass(frozen=True, slots=True)
class SettingCheck:
    """Whether the task would work with another temperature or move cost."""

    tau: float
    move_cost: float | None
    finishes: bool
    narrowest: float
    usable: bool


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """The result of :func:`check_task`: whether a task is usable, why, and every number behind it.

    Parameters
    ----------
    task : str
        The task's name.
    usable : bool
        False if anything was found that makes estimates meaningless.
    findings : tuple of Finding
        What there is to say, problems first.
    n_states, n_actions, n_pairs : int
        The size of the task: states, different actions, legal choices.
    gamma, tau, normaliser
        The settings its values were solved with.
    residual : float
        How exactly they were solved.
    wander_bonus : float
        The most a step earns for having a choice: τ·ln(most legal actions) under ``"sum"``, else 0.
    move_cost : float or None
        What a movement pays; None where the task has no movements.
    best_finishes : bool
        Whether the best agent reaches the end.
    best_actions : float
        How many actions it takes, at most ``sitting``.
    fewest_actions : int or None
        The fewest in which every goal is taken as a goal; an agent that takes a goal before it is asked
        for can need fewer. None if the end cannot be reached.
    sitting : int
        How many actions the check looks ahead: five times the fewest, within 50 and 1,000 but no less
        than twice the fewest; 1,000 where outcomes are uncertain; the horizon where there is one.
    goals : tuple of GoalCheck
        By how much each goal beats walking on.
    sensitivities : tuple of SensitivityCheck
        What to expect of people, from blind chance to the very sensible.
    settings : tuple of SettingCheck
        Whether the task would work with other temperatures and move costs.
    """

    task: str
    usable: bool
    findings: tuple[Finding, ...]
    n_states: int
    n_actions: int
    n_pairs: int
    gamma: float
    tau: float
    normaliser: Normaliser
    residual: float
    wander_bonus: float
    move_cost: float | None
    best_finishes: bool
    best_actions: float
    fewest_actions: int | None
    sitting: int
    goals: tuple[GoalCheck, ...]
    sensitivities: tuple[SensitivityCheck, ...]
    settings: tuple[SettingCheck, ...] = field(default=())

    def summary(self) -> str:
        """Return the verdict and the findings as a short text."""
        verdict = f"{self.task}: {'usable' if self.usable else 'not usable'}"
        lines = [f"{f.level}: {f.says} {f.advice}".rstrip() for f in self.findings]
        return "\n".join([verdict, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers; what is not finite becomes None."""
        return {key: _plain(value) for key, value in asdict(self).items()}


def check_task(
    task: TaskModel,
    *,
    vary: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> TaskCheck:
    """Say whether a task can be used, with numbers and in words.

    Parameters
    ----------
    task : TaskModel
        The task.
    vary : bool
        Also solve the task for the paper's grid of temperatures and move costs.
    on_progress : callable, optional
        Called with the number of solutions done and planned.

    Returns
    -------
    TaskCheck
        ``usable`` is False if anything was found that makes estimates meaningless.

    Examples
    --------
    >>> import fidm
    >>> check = fidm.check_task(fidm.load_task("grocery"), vary=False)
    >>> check.usable, check.fewest_actions
    (True, 59)
    """
    values = solve(task)
    variants = _variants(task) if vary else []
    planned = 1 + len(variants)
    report = on_progress or (lambda done, of: None)
    report(1, planned)
    look = Look.at(task, values)
    settings = []
    for done, variant in enumerate(variants, start=2):
        settings.append(_setting(variant, look))
        report(done, planned)
    sensitivities = tuple(
        _sensitivity(task, values, factor / task.tau, look.sitting) for factor in SENSITIVITY_FACTORS
    )
    best_error = min((row.relative_error for row in sensitivities), default=math.inf)
    findings = find(task, look, best_error, [setting.usable for setting in settings])
    usable = all(finding.level != "problem" for finding in findings)
    return TaskCheck(
        task=task.name,
        usable=usable,
        findings=findings,
        n_states=task.n_states,
        n_actions=task.n_actions,
        n_pairs=task.n_pairs,
        gamma=task.gamma,
        tau=task.tau,
        normaliser=task.normaliser,
        residual=values.residual,
        wander_bonus=wander_bonus(task),
        move_cost=move_cost(task),
        best_finishes=look.finishes,
        best_actions=look.actions,
        fewest_actions=look.fewest,
        sitting=look.sitting,
        goals=look.goals,
        sensitivities=sensitivities,
        settings=tuple(settings),
    )


def _sensitivity(task: TaskModel, values: Values, eta: float, sitting: int) -> SensitivityCheck:
    outlook = look_ahead(task, choice_probabilities(task, values, eta), max_steps=sitting)
    counted = outlook.visits * task.counted
    total = float(counted @ information(task, values, eta))
    n_counted = float(counted.sum())
    return SensitivityCheck(
        sensitivity=eta,
        actions=outlook.actions,
        finished=outlook.finished,
        information=total / n_counted if n_counted else 0.0,
        relative_error=1.0 / (eta * math.sqrt(total)) if eta * total > 0 else math.inf,
    )


def _variants(task: TaskModel) -> list[TaskModel]:
    """The paper's grid around this task's own temperature and move cost."""
    cost = move_cost(task)
    variants = []
    for cost_factor in COST_FACTORS if cost else (1.0,):
        for tau_factor in TAU_FACTORS:
            new_cost = round(cost * cost_factor, 12) if cost else None
            tau = round(task.tau * tau_factor, 12)
            variants.append(task.with_settings(tau=tau, move_cost=new_cost))
    return variants


def _setting(task: TaskModel, like: Look) -> SettingCheck:
    look = Look.at(task, solve(task), like)
    return SettingCheck(
        tau=task.tau,
        move_cost=move_cost(task),
        finishes=look.finishes,
        narrowest=look.narrowest,
        usable=look.works,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
