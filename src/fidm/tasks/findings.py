"""What a task check has to say, in words: what is wrong, how grave it is, and what repairs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fidm.tasks.compile import compile_task
from fidm.tasks.goals import GoalCheck, Look
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve

DETOUR = 1.1
"""A best agent that takes more than so many times the fewest actions gets a warning."""

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


def find(
    task: TaskModel, look: Look, best_error: float, settings_usable: Sequence[bool]
) -> tuple[Finding, ...]:
    """Return all findings about a task, the gravest first.

    Parameters
    ----------
    task, look
        The task and what its values show.
    best_error : float
        The smallest relative error with which one sitting tells somebody's sensitivity.
    settings_usable : sequence of bool
        Whether the task would work with each of the other settings that were tried.
    """
    findings = [*_way_findings(task, look)]
    for goal in look.goals:
        findings += _goal_findings(goal, look.finishes)
    findings += [*_step_findings(task, look), *_information_findings(best_error), *_map_findings(task)]
    broken = sum(not usable for usable in settings_usable)
    if 0 < broken < len(settings_usable):
        findings.append(
            Finding(
                "note",
                "sensitive",
                f"{broken} of the {len(settings_usable)} settings of temperature and move cost around the "
                "task's own cannot be used: values depend on that choice, so report it.",
            )
        )
    if not look.works and look.fewest is not None and not look.left_undone:
        findings.append(_repairs(task, look))
    return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))


def move_cost(task: TaskModel) -> float | None:
    """Return what a movement pays; None where the task has no movements."""
    return float(task.reward[task.is_move][0]) if task.is_move.any() else None


def wander_bonus(task: TaskModel) -> float:
    """Return the most that having a choice adds to a step's value."""
    if task.normaliser != "sum":
        return 0.0
    return float(task.tau * math.log(max(1, int(np.diff(task.offsets).max(initial=1)))))


def _way_findings(task: TaskModel, look: Look) -> list[Finding]:
    """Whether and how the best agent reaches the end."""
    if not look.ends:
        return [Finding("note", "endless", "The task has no end, so nobody can finish it.")]
    if look.fewest is None:
        return [
            Finding(
                "problem",
                "unreachable",
                "The end of the task cannot be reached from its start.",
                "Look for a missing way, a goal that nothing leads to, finish.ends = false, or too short a "
                "horizon.",
            )
        ]
    if not look.finishes:
        return [
            Finding(
                "problem",
                "never_finishes",
                f"The best agent never finishes, although {look.fewest} actions would do. "
                f"{_what_it_does(task, look)}",
                "Going on must be worth less than finishing: see the repairs.",
            )
        ]
    if look.left_undone:
        return [
            Finding(
                "problem",
                "left_undone",
                f"The best agent ends the task without {', '.join(look.left_undone)}.",
                "Ending must not be worth more than the goals: raise their rewards, lower the move cost, or "
                "leave the exit out of the likelihood.",
            )
        ]
    if task.goals and task.is_deterministic and look.actions > DETOUR * look.fewest:
        return [
            Finding(
                "warning",
                "detour",
                f"The best agent takes {look.actions:.0f} actions where {look.fewest} would do.",
                "A smaller tau or a higher move cost straightens its way.",
            )
        ]
    return []


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


def _goal_findings(goal: GoalCheck, finishes: bool) -> list[Finding]:
    """Whether a goal beats walking on."""
    if goal.implied:
        return _ending_findings(goal)
    if not goal.reachable:
        return [
            Finding(
                "problem",
                "goal_unreachable",
                f"{goal.goal} can never be taken as a goal: acting does not bring anybody there in time.",
                "Look for a missing way, or a phase or horizon that ends too soon.",
            )
        ]
    if goal.typical <= 0:
        return [
            Finding(
                "problem",
                "wander_trap",
                f"Standing before {goal.goal}, walking on is worth {-goal.typical:.3f} more than taking it.",
                "The goal must pay more, or walking on less: see the repairs.",
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


def _ending_findings(goal: GoalCheck) -> list[Finding]:
    """What to say of a task that names no goals."""
    if not goal.typical <= 0:
        return []
    return [
        Finding(
            "note",
            "going_on",
            f"Where the task can be ended, going on is worth {-goal.typical:.3f} more as a rule.",
            "In a task about when to stop that is meant; in one with a goal to reach it is not.",
        )
    ]


def _step_findings(task: TaskModel, look: Look) -> list[Finding]:
    """What a step costs and earns."""
    bonus, cost = wander_bonus(task), move_cost(task)
    if not look.ends or cost is None:
        return []
    if cost > 0:
        return [
            Finding(
                "warning",
                "paid_steps",
                f"Every movement pays {cost:g}, so walking about is a way to earn.",
                "Give rewards.move a minus sign, unless that is meant.",
            )
        ]
    if bonus < -cost:
        return []
    return [
        Finding(
            "note",
            "wander_bonus",
            f"Each step earns a bonus of up to {bonus:.3f} for having a choice and costs {abs(cost):.3f}, so "
            "wandering is not punished as such; what counts is that every goal beats it.",
        )
    ]


def _information_findings(best_error: float) -> list[Finding]:
    """How much choices can tell about a person."""
    if not math.isfinite(best_error):
        return [
            Finding(
                "problem",
                "no_information",
                "Choices tell nothing about a person: wherever people go, the legal actions are worth the "
                "same, or differ so much that nobody would choose otherwise, or there is nothing to choose.",
                "Look at what the actions pay, compared with tau.",
            )
        ]
    if best_error > 0.5:
        return [
            Finding(
                "warning",
                "little_information",
                f"One sitting tells a person's sensitivity to ±{best_error:.0%} at best.",
                "Let each person do several episodes, or make the task longer.",
            )
        ]
    return []


def _map_findings(task: TaskModel) -> list[Finding]:
    """Cells of the map that nobody can get to."""
    cells = task.grid.grid.cut_off if task.grid is not None else ()
    if not len(cells):
        return []
    places = "; ".join(f"row {row + 1}, column {column + 1}" for row, column in cells[:4])
    more = f" and {len(cells) - 4} more" if len(cells) > 4 else ""
    return [
        Finding(
            "warning",
            "cut_off",
            f"Walkable cells that cannot be reached from the start: {places}{more}.",
            "Open a way to them or draw them as walls.",
        )
    ]


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
    """The usual changes to a task that does not work, each with its name."""
    changes: list[tuple[str, TaskModel]] = []
    cost = move_cost(task)
    stands_still = len(look.loop) == 1 and not task.is_move[look.loop[0]]
    if stands_still and task.grid is not None and task.horizon is None and cost:
        spec, fine = task.grid.spec, round(-5.0 * abs(cost), 12)
        rewards = spec.rewards.model_copy(update={"repeated": fine, "non_target": fine})
        changed = compile_task(spec.model_copy(update={"rewards": rewards})).with_settings(
            gamma=task.gamma, tau=task.tau, move_cost=cost, normaliser=task.normaliser
        )
        changes.append((f"repeated = {fine:g} with non_target = {fine:g}", changed))
    if task.normaliser != "mean":
        changes.append(('normaliser = "mean"', task.with_settings(normaliser="mean")))
    for factor in (0.5, 0.2, 0.1):
        tau = round(task.tau * factor, 12)
        changes.append((f"tau = {tau:g}", task.with_settings(tau=tau)))
    for factor in (2.5, 5.0) if cost else ():
        new_cost = round(-abs(cost or 0.0) * factor, 12)
        changes.append((f"move = {new_cost:g}", task.with_settings(move_cost=new_cost)))
    return changes
