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
from typing import Any, Literal

import numpy as np

from fidm.tasks.behaviour import choice_probabilities, information, look_ahead
from fidm.tasks.goals import GoalCheck, Look
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Normaliser, Values

TAU_FACTORS = (0.6, 1.0, 1.6, 2.4)
COST_FACTORS = (0.5, 1.0, 2.5)
"""The paper's grid (τ of .03 .05 .08 .12, cost of .01 .02 .05) relative to its own choice."""

SENSITIVITY_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Sensitivities looked at, as multiples of 1/τ."""

DETOUR = 1.1
"""A best agent that takes more than so many times the fewest actions gets a warning."""

Level = Literal["problem", "warning", "note"]
LEVELS = ("problem", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the check has to say: how grave it is, what it is, and what to do about it."""

    level: Level
    code: str
    says: str
    advice: str = ""


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
    """Whether the task would work with another temperature, move cost or normaliser."""

    tau: float
    move_cost: float | None
    normaliser: Normaliser
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
        How many actions the check looks ahead: five times the fewest, within 50 and 1,000.
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
    variants = _variants(task) if vary else []
    planned = 1 + len(variants)
    report = on_progress or (lambda done, of: None)
    values = solve(task)
    report(1, planned)
    look = Look.at(task, values)
    settings = []
    for done, variant in enumerate(variants, start=2):
        settings.append(_setting(variant, look))
        report(done, planned)
    sensitivities = tuple(
        _sensitivity(task, values, factor / task.tau, look.sitting) for factor in SENSITIVITY_FACTORS
    )
    findings = [*_findings(task, look, sensitivities), *_setting_findings(task, settings)]
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    usable = all(finding.level != "problem" for finding in findings)
    if not look.works and look.fewest is not None:
        findings.append(_repairs(task, look))
    return TaskCheck(
        task=task.name,
        usable=usable,
        findings=tuple(findings),
        n_states=task.n_states,
        n_actions=task.n_actions,
        n_pairs=task.n_pairs,
        gamma=task.gamma,
        tau=task.tau,
        normaliser=task.normaliser,
        residual=values.residual,
        wander_bonus=_wander_bonus(task),
        move_cost=_move_cost(task),
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
    cost = _move_cost(task)
    variants = []
    for cost_factor in COST_FACTORS if cost else (1.0,):
        for tau_factor in TAU_FACTORS:
            move_cost = round(cost * cost_factor, 12) if cost else None
            tau = round(task.tau * tau_factor, 12)
            variants.append(task.with_settings(tau=tau, move_cost=move_cost))
    return variants


def _setting(task: TaskModel, like: Look) -> SettingCheck:
    look = Look.at(task, solve(task), like)
    return SettingCheck(
        tau=task.tau,
        move_cost=_move_cost(task),
        normaliser=task.normaliser,
        finishes=look.finishes,
        narrowest=look.narrowest,
        usable=look.works,
    )


def _move_cost(task: TaskModel) -> float | None:
    return float(task.reward[task.is_move][0]) if task.is_move.any() else None


def _wander_bonus(task: TaskModel) -> float:
    """The most that choosing among the legal actions adds to a step's value."""
    if task.normaliser != "sum":
        return 0.0
    return float(task.tau * math.log(max(1, int(np.diff(task.offsets).max(initial=1)))))


# ---------------------------------------------------------------------- in words


def _findings(task: TaskModel, look: Look, sensitivities: tuple[SensitivityCheck, ...]) -> list[Finding]:
    findings = []
    if not look.ends:
        findings.append(Finding("note", "endless", "The task has no end, so nobody can finish it."))
    elif look.fewest is None:
        findings.append(
            Finding(
                "problem",
                "unreachable",
                "The end of the task cannot be reached from its start.",
                "Look for a missing way, a goal that nothing leads to, or finish.ends = false.",
            )
        )
    elif not look.finishes:
        findings.append(
            Finding(
                "problem",
                "never_finishes",
                f"The best agent has not finished after {look.sitting} actions, although "
                f"{look.fewest} would do: wandering about is worth more to it than finishing.",
            )
        )
    elif look.actions > DETOUR * look.fewest:
        findings.append(
            Finding(
                "warning",
                "detour",
                f"The best agent takes {look.actions:.0f} actions where {look.fewest} would do.",
                "A smaller tau or a higher move cost straightens its way.",
            )
        )
    for goal in look.goals:
        findings += _goal_findings(task, goal, look.finishes)
    bonus, cost = _wander_bonus(task), _move_cost(task)
    if look.ends and cost is not None and bonus >= -cost:
        findings.append(
            Finding(
                "note",
                "wander_bonus",
                f"Each step earns a bonus of up to {bonus:.3f} for having a choice and costs "
                f"{-cost:.3f}, so wandering is not punished as such; what counts is that every goal "
                "beats it.",
            )
        )
    findings += _information_findings(sensitivities)
    if task.grid is not None and task.grid.grid.cut_off:
        findings.append(
            Finding(
                "warning",
                "cut_off",
                f"{task.grid.grid.cut_off} walkable cells of the map cannot be reached from the start.",
                "Open a way to them or draw them as walls.",
            )
        )
    return findings


def _goal_findings(task: TaskModel, goal: GoalCheck, finishes: bool) -> list[Finding]:
    if goal.typical <= 0:
        return [
            Finding(
                "problem",
                "wander_trap",
                f"Standing before {goal.goal}, walking on is worth {-goal.typical:.3f} more than taking it.",
            )
        ]
    if goal.worst <= 0:
        return [
            Finding(
                "warning",
                "wander_somewhere",
                f"{goal.goal} beats walking on by {goal.typical:.3f} as a rule, but somewhere loses "
                f"by {-goal.worst:.3f}.",
            )
        ]
    if finishes and not goal.achieved:
        return [
            Finding(
                "warning",
                "goal_missed",
                f"The best agent does not take {goal.goal} as a goal: it does without it, or has "
                "taken it on the way before it was asked for.",
                "If that is not meant, look at rules.early_target, at its reward and at the move cost.",
            )
        ]
    if goal.incomplete <= 0:
        return [
            Finding(
                "warning",
                "incomplete",
                f"{goal.goal} beats walking on for those who completed what came before. For those who "
                f"did not, walking on can be worth up to {-goal.incomplete:.3f} more: fetching what is "
                "missing still pays, and so does wandering where steps earn a bonus.",
                "Read the choices of people who were sent on early with that in mind.",
            )
        ]
    return []


def _information_findings(rows: tuple[SensitivityCheck, ...]) -> list[Finding]:
    errors = [row.relative_error for row in rows if row.sensitivity > 0]
    best = min(errors, default=math.inf)
    if not math.isfinite(best):
        return [
            Finding(
                "problem",
                "no_information",
                "All legal actions are worth the same everywhere, so choices tell nothing about a person.",
                "Give the actions different rewards.",
            )
        ]
    if best > 0.5:
        return [
            Finding(
                "warning",
                "little_information",
                f"One sitting tells a person's sensitivity to ±{best:.0%} at best.",
                "Let each person do several episodes, or make the task longer.",
            )
        ]
    return []


def _setting_findings(task: TaskModel, settings: list[SettingCheck]) -> list[Finding]:
    broken = sum(not setting.usable for setting in settings)
    if not broken or broken == len(settings):
        return []
    return [
        Finding(
            "note",
            "sensitive",
            f"{broken} of the {len(settings)} settings of temperature and move cost around the "
            "task's own cannot be used: values depend on that choice, so report it.",
        )
    ]


def _repairs(task: TaskModel, look: Look) -> Finding:
    """Try the usual changes and name those that really repair the task."""
    cost = _move_cost(task)
    tries: list[tuple[str, TaskModel]] = []
    if task.normaliser != "mean":
        tries.append(('normaliser = "mean"', task.with_settings(normaliser="mean")))
    for factor in (0.5, 0.2, 0.1):
        tau = round(task.tau * factor, 12)
        tries.append((f"tau = {tau:g}", task.with_settings(tau=tau)))
    for factor in (2.5, 5.0) if cost else ():
        new_cost = round((cost or 0.0) * factor, 12)
        tries.append((f"move = {new_cost:g}", task.with_settings(move_cost=new_cost)))
    working = [name for name, changed in tries if Look.at(changed, solve(changed), look).works]
    if working:
        return Finding("note", "repairs", f"Each of these alone repairs it: {'; '.join(working)}.")
    return Finding(
        "note",
        "repairs",
        "None of the usual changes (normaliser, smaller tau, higher move cost) repairs it.",
        "Look at the map, at what is legal where, and at what each goal pays.",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
