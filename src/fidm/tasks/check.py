"""Is this task sane? Numbers and plain sentences about a task, before anybody is fitted to it.

The trap to catch is *wandering*: log-sum-exp pays every step a bonus of up to τ·ln(number of legal
actions), and where that exceeds the cost of a step, walking about can be worth more than finishing.
The values themselves give the verdict: the best agent must finish, and standing before a goal,
taking it must be worth more than walking on. What is wrong is said with how grave it is, and what repairs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from fidm.record import plain
from fidm.tasks.behaviour import Outlook, choice_probabilities, has_hidden, information, look_ahead
from fidm.tasks.compile import compile_task
from fidm.tasks.goals import GoalCheck, Look, shut_off
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.stack import TaskSet
from fidm.types import Normaliser, Values

DETOUR = 1.1
"""A best agent that takes more than so many times the fewest actions gets a warning."""

NOTHING_SAID = 10.0
"""Beyond tenfold the size of a relative error says nothing."""

Level = Literal["problem", "warning", "note"]
LEVELS = ("problem", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the check has to say: how grave it is, what it is, and what to do about it.

    Parameters
    ----------
    level : {"problem", "warning", "note"}
        A problem makes the task unusable, a warning should be looked at, a note is good to know.
    code : str
        A short name, for programs and for looking it up.
    says : str
        What was found.
    advice : str
        What to do about it; empty where there is nothing to do.
    """

    level: Level
    code: str
    says: str
    advice: str = ""


FINDINGS: Mapping[str, tuple[Level, str, str]] = {
    "endless": ("note", "The task has no end, so nobody can finish it.", ""),
    "unreachable": (
        "problem",
        "The end of the task cannot be reached from its start.",
        "Look for a missing way, a goal that nothing leads to, finish.ends = false, or too short a horizon.",
    ),
    "never_finishes": (
        "problem",
        "The best agent never finishes, although {fewest} actions would do. {instead}",
        "Going on must be worth less than finishing: see the repairs.",
    ),
    "shut_off": (
        "problem",
        "Where hidden cells are walls the task may have no end: no way leads to it from {place}.",
        "Draw a way to the end that is not hidden, or one to leave by: an [exit] with in_likelihood = true.",
    ),
    "left_undone": (
        "problem",
        "The best agent ends the task without {undone}.",
        "Ending must not be worth more than the goals: raise their rewards, lower the move cost, or leave "
        "the exit out of the likelihood.",
    ),
    "detour": (
        "warning",
        "The best agent takes {actions:.0f} actions where {fewest} would do.",
        "{changes}",
    ),
    "goal_unreachable": (
        "problem",
        "{goal} can never be taken as a goal: acting does not bring anybody there in time.",
        "Look for a missing way, or a phase or horizon that ends too soon.",
    ),
    "wander_trap": (
        "problem",
        "Standing before {goal}, walking on is worth {lost:.3f} more than taking it.",
        "The goal must pay more, or walking on less: see the repairs.",
    ),
    "wander_somewhere": (
        "warning",
        "{goal} beats walking on by {won:.3f} as a rule, but somewhere loses by {lost:.3f}.",
        "",
    ),
    "goal_missed": (
        "warning",
        "The best agent does not take {goal} as a goal: it does without it, or has taken it on the way "
        "before it was asked for.",
        "If that is not meant, look at rules.early_target, at its reward and at the move cost.",
    ),
    "incomplete": (
        "warning",
        "{goal} beats walking on for those who completed what came before. For those who did not, walking "
        "on can be worth up to {lost:.3f} more: fetching what is missing still pays, and so does wandering "
        "where steps earn a bonus.",
        "Read the choices of people who were sent on early with that in mind.",
    ),
    "going_on": (
        "note",
        "Where the task can be ended, going on is worth {lost:.3f} more as a rule.",
        "In a task about when to stop that is meant; in one with a goal to reach it is not.",
    ),
    "paid_steps": (
        "warning",
        "Every movement pays {cost:g}, so walking about is a way to earn.",
        "Give rewards.move a minus sign, unless that is meant.",
    ),
    "wander_bonus": (
        "note",
        "Each step earns a bonus of up to {bonus:.3f} for having a choice and costs {cost:.3f}, so wandering "
        "is not punished as such; what counts is that every goal beats it.",
        "",
    ),
    "no_information": (
        "problem",
        "Choices tell nothing about a person: wherever people go, the legal actions are worth the same, or "
        "differ so much that nobody would choose otherwise, or there is nothing to choose.",
        "Look at what the actions pay, compared with tau.",
    ),
    "little_information": (
        "warning",
        "One sitting tells {told} at best.",
        "Let each person do several episodes, or make the task longer.",
    ),
    "cut_off": (
        "warning",
        "Walkable cells that cannot be reached from the start: {places}.",
        "Open a way to them or draw them as walls.",
    ),
    "several_starts": (
        "note",
        "An episode may begin in {n} places: numbers of actions are means over them, and what is said of the "
        "best agent holds from each.",
        "",
    ),
    "sensitive": (
        "note",
        "{broken} of the {of} settings of temperature and move cost around the task's own cannot be used: "
        "values depend on that choice, so report it.",
        "",
    ),
}
"""What the check may have to say, by code: how grave it is, what it is, and what to do about it."""


def _finding(code: str, **known: Any) -> Finding:
    level, says, advice = FINDINGS[code]
    return Finding(level, code, says.format_map(known), advice.format_map(known))


QUICK_PAIRS = 200_000
"""Tasks with more legal choices than this are not checked in passing: it would take longer than a fit."""

_PROBLEMS: WeakKeyDictionary[TaskModel, tuple[str, ...]] = WeakKeyDictionary()
"""What is wrong with tasks that were checked in passing; nothing of a task can change."""


def task_problems(tasks: TaskSet, solved: Sequence[Values]) -> list[str]:
    """Say which tasks cannot be used, and why, without trying repairs; a matter of milliseconds.

    The values of tasks that people take for others are passed over, and so are large tasks.
    """
    wrong = []
    for task, values in zip(tasks.tasks, solved, strict=True):
        if values.solved_for == task.fingerprint and task.n_pairs <= QUICK_PAIRS:
            if task not in _PROBLEMS:
                _PROBLEMS[task] = quick_problems(task, Look.at(task, values))
            if _PROBLEMS[task]:
                wrong.append(f"{task.name} cannot be used: {_PROBLEMS[task][0]} See fidm check.")
    more = [f"{len(wrong) - 3:,} more tasks cannot be used. See fidm check."] if len(wrong) > 3 else []
    return [*wrong[:3], *more]


def quick_problems(task: TaskModel, look: Look) -> tuple[str, ...]:
    """Return the problems that the values show by themselves, but for how much choices tell."""
    goes_well = look.finishes and look.fewest is not None and not look.left_undone
    found = [] if goes_well else [*_way_findings(task, look)]
    for goal in look.goals:
        found += _goal_findings(goal, look.finishes)
    return tuple(finding.says for finding in found if finding.level == "problem")


def find(
    task: TaskModel, look: Look, best_error: float, settings_usable: Sequence[bool]
) -> tuple[Finding, ...]:
    """Return all findings about a task, the gravest first.

    ``best_error`` is the smallest relative error with which one sitting tells somebody's sensitivity,
    ``settings_usable`` whether the task would work with each of the other settings that were tried.
    """
    findings = [*_way_findings(task, look)]
    for goal in look.goals:
        findings += _goal_findings(goal, look.finishes)
    findings += [*_step_findings(task, look), *_information_findings(best_error), *_map_findings(task)]
    broken = sum(not usable for usable in settings_usable)
    if 0 < broken < len(settings_usable):
        findings.append(_finding("sensitive", broken=broken, of=len(settings_usable)))
    if not look.works and look.fewest is not None and not look.left_undone:
        findings.append(_repairs(task, look))
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))


def move_cost(task: TaskModel) -> float | None:
    """Return what a movement pays; None where the task has no movements."""
    return task.move_cost


def wander_bonus(task: TaskModel) -> float:
    """Return the most that having a choice adds to a step's value."""
    if task.normaliser != "sum":
        return 0.0
    return float(task.tau * math.log(max(1, int(np.diff(task.offsets).max(initial=1)))))


def _way_findings(task: TaskModel, look: Look) -> Iterator[Finding]:
    """Whether and how the best agent reaches the end."""
    if not look.ends:
        yield _finding("endless")
    elif look.fewest is None:
        yield _finding("unreachable")
    elif not look.finishes and has_hidden(task) and (lost := shut_off(task, look)) is not None:
        yield _finding("shut_off", place=task.describe(lost))
    elif not look.finishes:
        yield _finding("never_finishes", fewest=look.fewest, instead=_what_it_does(task, look))
    elif look.left_undone:
        yield _finding("left_undone", undone=", ".join(look.left_undone))
    elif task.goals and task.is_deterministic and look.actions > DETOUR * look.fewest:
        changes = _straightening(task, look)
        yield _finding("detour", actions=look.actions, fewest=look.fewest, changes=changes)


def _straightening(task: TaskModel, look: Look) -> str:
    """Try the usual changes and name those that really straighten the best agent's way."""
    changes = _changes(task, look)
    for share in (0.5, 0.25) if task.gamma < 1 else ():
        gamma = round(1 - share * (1 - task.gamma), 12)
        changes.append((f"gamma = {gamma:g}", task.with_settings(gamma=gamma)))
    found = [(name, Look.at(changed, solve(changed), look)) for name, changed in changes]
    fewest = look.fewest or 0
    working = [name for name, one in found if one.works and fewest <= one.actions <= DETOUR * fewest]
    if working:
        return f"Each of these alone straightens its way: {'; '.join(working)}."
    return (
        "None of the usual changes (normaliser, smaller tau, higher move cost, gamma nearer to 1) "
        "straightens its way: look at what each action pays."
    )


def _what_it_does(task: TaskModel, look: Look) -> str:
    """What an agent that never finishes does instead."""
    if not look.loop:
        return "Going on is worth more to it than finishing."
    pair = look.loop[0]
    state, action = int(task.pair_state[pair]), task.actions[int(task.action[pair])]
    if len(look.loop) == 1:
        return (
            f"It does {action} for ever ({task.describe(state)}), which pays {task.reward[pair]:g} each time."
        )
    return f"It goes round and round {len(look.loop)} states, one of them {task.describe(state)}."


def _goal_findings(goal: GoalCheck, finishes: bool) -> Iterator[Finding]:
    """Whether a goal beats walking on; of a task that names no goals, whether ending it beats going on."""
    if goal.implied:
        if goal.typical <= 0:
            yield _finding("going_on", lost=-goal.typical)
    elif not goal.reachable:
        yield _finding("goal_unreachable", goal=goal.goal)
    elif goal.typical <= 0:
        yield _finding("wander_trap", goal=goal.goal, lost=-goal.typical)
    elif goal.worst <= 0:
        yield _finding("wander_somewhere", goal=goal.goal, won=goal.typical, lost=-goal.worst)
    elif finishes and not goal.achieved:
        yield _finding("goal_missed", goal=goal.goal)
    elif goal.incomplete <= 0:
        yield _finding("incomplete", goal=goal.goal, lost=-goal.incomplete)


def _step_findings(task: TaskModel, look: Look) -> Iterator[Finding]:
    """What a step costs and earns."""
    bonus, cost = wander_bonus(task), move_cost(task)
    if not look.ends or cost is None:
        return
    if cost > 0:
        yield _finding("paid_steps", cost=cost)
    elif bonus >= -cost:
        yield _finding("wander_bonus", bonus=bonus, cost=abs(cost))


def _information_findings(best_error: float) -> Iterator[Finding]:
    """How much choices can tell about a person."""
    if not math.isfinite(best_error):
        yield _finding("no_information")
    elif best_error > NOTHING_SAID:
        yield _finding("little_information", told="next to nothing about a person's sensitivity")
    elif best_error > 0.5:
        yield _finding("little_information", told=f"a person's sensitivity to ±{best_error:.0%}")


def _map_findings(task: TaskModel) -> Iterator[Finding]:
    """Cells of the map that nobody can get to, and several that an episode may begin in."""
    if task.also_starts:
        yield _finding("several_starts", n=len(task.starts))
    cells = task.grid.grid.cut_off if task.grid is not None else ()
    if len(cells):
        places = "; ".join(f"row {row + 1}, column {column + 1}" for row, column in cells[:4])
        yield _finding("cut_off", places=places + (f" and {len(cells) - 4} more" if len(cells) > 4 else ""))


def _repairs(task: TaskModel, look: Look) -> Finding:
    """Try the usual changes and name those that really repair the task."""
    working = [name for name, changed in _changes(task, look) if Look.at(changed, solve(changed), look).works]
    if working:
        return Finding("note", "repairs", f"Each of these alone repairs it: {'; '.join(working)}.")
    drawn = "at the map, at what is legal where, and " if task.grid is not None else ""
    return Finding(
        "note",
        "repairs",
        "None of the usual changes (normaliser, smaller tau, higher move cost) repairs it.",
        f"Look {drawn}at what each action pays.",
    )


def _changes(task: TaskModel, look: Look) -> list[tuple[str, TaskModel]]:
    """The usual changes to a task that does not work, each with its name; bumps get a price of their own."""
    changes: list[tuple[str, TaskModel]] = []
    cost = move_cost(task)
    stands_still = len(look.loop) == 1 and not task.is_move[look.loop[0]]
    if task.grid is not None and task.horizon is None and cost:
        spec, fine = task.grid.spec, round(-5.0 * abs(cost), 12)
        fines: list[tuple[str, ...]] = [("repeated", "non_target")] if stands_still else []
        fines += [("bump",)] if spec.rules.bumps == "stay" else []
        for names in fines:
            rewards = spec.rewards.model_copy(update=dict.fromkeys(names, fine))
            changed = compile_task(spec.model_copy(update={"rewards": rewards})).with_settings(
                gamma=task.gamma, tau=task.tau, move_cost=cost, normaliser=task.normaliser
            )
            changes.append((" with ".join(f"{name} = {fine:g}" for name in names), changed))
    if task.normaliser != "mean":
        changes.append(('normaliser = "mean"', task.with_settings(normaliser="mean")))
    for factor in (0.5, 0.2, 0.1):
        tau = round(task.tau * factor, 12)
        changes.append((f"tau = {tau:g}", task.with_settings(tau=tau)))
    for factor in (2.5, 5.0) if cost else ():
        new_cost = round(-abs(cost or 0.0) * factor, 12)
        changes.append((f"move = {new_cost:g}", task.with_settings(move_cost=new_cost)))
    return changes


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
        return dict(plain(asdict(self)))


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


def told_in_sitting(
    task: TaskModel, values: Values, eta: float, sitting: int
) -> tuple[Outlook, float, float]:
    """Return what a person does in one sitting, how many actions count, and their information about η."""
    outlook = look_ahead(task, choice_probabilities(task, values, eta), max_steps=sitting)
    counted = outlook.visits * task.counted
    return outlook, float(counted.sum()), float(counted @ information(task, values, eta))


def tells_nothing(task: TaskModel, values: Values, sitting: int) -> bool:
    """Return whether choices tell nothing about anybody, whatever their sensitivity."""
    return not any(
        math.isfinite(_sensitivity(task, values, factor / task.tau, sitting).relative_error)
        for factor in SENSITIVITY_FACTORS
        if factor
    )


def _sensitivity(task: TaskModel, values: Values, eta: float, sitting: int) -> SensitivityCheck:
    outlook, n_counted, total = told_in_sitting(task, values, eta, sitting)
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
