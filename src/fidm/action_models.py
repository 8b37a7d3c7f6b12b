"""Accounts of how people choose, beside the paper's: those that come with the package, and the class to
write one.

:func:`fidm.fit_action_model` fits one, :func:`fidm.compare_models` compares them on choices they were not
learned from. See :mod:`fidm.model.action_models` for what each says.
"""

from __future__ import annotations

from fidm.model.action_models import (
    ActionModel,
    BelievesTask,
    Depth,
    Discounting,
    GoalAtATime,
    Lapse,
    Mixture,
    Parameter,
    Random,
    Situations,
    Softmax,
    Stickiness,
    World,
)

__all__ = [
    "ActionModel",
    "BelievesTask",
    "Depth",
    "Discounting",
    "GoalAtATime",
    "Lapse",
    "Mixture",
    "Parameter",
    "Random",
    "Situations",
    "Softmax",
    "Stickiness",
    "World",
]
