"""The contract of action models: all that come with fidm keep it, and broken ones are told how they break it."""

from __future__ import annotations

import numpy as np
import pytest

import fidm
from fidm.action_models import (
    ActionModel,
    BelievesTask,
    Depth,
    GoalAtATime,
    Lapse,
    Mixture,
    Parameter,
    Softmax,
    Stickiness,
)
from fidm.experiments.rivals import usual_models
from fidm.testing import check_action_model


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


def more_models():
    other = fidm.load_task("errands").with_settings(gamma=0.8)
    return [
        Stickiness("both"),
        Depth(heuristic="nearest"),
        Mixture(Softmax(), Stickiness()),
        BelievesTask(other),
    ]


@pytest.mark.parametrize("model", [*usual_models(), *more_models()], ids=lambda model: model.name)
def test_models_that_come_with_fidm_keep_the_contract(model, task):
    check_action_model(model, task=task)


def test_a_task_without_a_map_will_do_too():
    corridor = fidm.TaskModel.from_arrays(
        [[1, 2], [2, 0], [-1, -1]], [[-0.1, -0.3], [1.0, -0.1], [0.0, 0.0]], gamma=0.9, tau=0.1
    )
    check_action_model(Lapse(), task=corridor)
    with pytest.raises(AssertionError, match=r"give another task: Fewer than two goals"):
        check_action_model(GoalAtATime(), task=corridor)


class Broken(Softmax):
    """Each of these breaks one rule."""

    kind = "broken"


class Leaks(Broken):
    def log_probabilities(self, world, seen, values):
        return super().log_probabilities(world, seen, values) - 0.01


class Forbids(Broken):
    def utilities(self, world, seen, values):
        first = np.isin(np.arange(len(seen.pair)), seen.offsets[:-1])
        return np.where(first & (len(first) > 1), -np.inf, super().utilities(world, seen, values))


class Forgets(Broken):
    def utilities(self, world, seen, values):
        return super().utilities(world, seen, values) + seen.repeats


class Scalar(Broken):
    def utilities(self, world, seen, values):
        return float(np.mean(values["action_sensitivity"])) * world.q[seen.pair]


class Refuses(Broken):
    def utilities(self, world, seen, values):
        return float(values["action_sensitivity"]) * world.q[seen.pair]


class Changes(Broken):
    def utilities(self, world, seen, values):
        found = super().utilities(world, seen, values)
        seen.repeats[:] = True
        return found


class Draws(Broken):
    def utilities(self, world, seen, values):
        return super().utilities(world, seen, values) + np.random.default_rng().normal(size=len(seen.pair))


class TooShort(Broken):
    def log_probabilities(self, world, seen, values):
        return super().log_probabilities(world, seen, values)[:-1]


class Uneven(Broken):
    def parameters(self, world):
        return (Parameter("action_sensitivity", "η", np.array([0.0, 1.0, 3.0]), "log"),)


class Twice(Broken):
    def parameters(self, world):
        return (*super().parameters(world), *super().parameters(world))


class LevelsFirst(Broken):
    def parameters(self, world):
        return (Parameter.of_levels("depth", "depth", (1, 2)), *super().parameters(world))


class Unlike(Broken):
    def log_likelihoods(self, made, values):
        return super().log_likelihoods(made, values) - np.mean(values["action_sensitivity"])


class Untold(Broken):
    def to_dict(self):
        return {"broken": True}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Leaks(), "do not sum to one, but to 0.99005"),
        (Forbids(), "no legal action may be impossible. (first at action_sensitivity = "),
        (Forgets(), "remembers = True"),
        (Scalar(), "values of its own for every option it answers differently"),
        (Refuses(), "does not take an array of values with an entry per option"),
        (Changes(), "changes the values of the task or the situations"),
        (Draws(), "Asked twice"),
        (TooShort(), "one number per option is needed"),
        (Uneven(), "The nodes of action_sensitivity do not rise by equal steps"),
        (Twice(), "Two parameters have the same name"),
        (LevelsFirst(), "levels must come last"),
        (Unlike(), "log_likelihoods of two copies"),
        (Untold(), "begin with super().to_dict()"),
        (Softmax, "is not an object of a subclass"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_a_broken_model_is_told_what_is_wrong(broken, said, task):
    with pytest.raises(AssertionError) as raised:
        check_action_model(broken, task=task)
    assert said in str(raised.value)


def test_everything_that_is_wrong_is_listed(task):
    class Worse(Leaks, Untold):
        pass

    with pytest.raises(AssertionError) as raised:
        check_action_model(Worse(), task=task)
    assert "to_dict" in str(raised.value)  # what a model says of itself comes first
    assert isinstance(Worse(), ActionModel)
