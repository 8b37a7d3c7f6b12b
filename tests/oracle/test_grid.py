"""The compiled task agrees, state by state, with its rules written again as plainly as possible."""

from __future__ import annotations

import numpy as np
import pytest

import fidm
from fidm.tasks.compile import compile_rules
from fidm.testing import check_task
from oracle.slow_grid import SlowGrid

SETTINGS = [
    {},
    {"buy": "single"},
    {"reach": "anywhere"},
    {"order": "listed"},
    {"value_flow": "ends"},
    {"value_flow": "continues"},
    {"phase_change": "goals"},
    {"early_target": "ignored"},
    {"early_target": "illegal", "order": "listed"},
    {"late_target": "ignored", "early_target": "illegal"},
    {"non_targets": "illegal"},
    {"finish": {"early": "illegal"}},
    {"finish": {"ends": False}},
    {"exit": {"in_likelihood": True}},
]


def changed(name: str, settings: dict) -> fidm.TaskSpec:
    spec = fidm.read_task(name)
    parts = {key: settings[key] for key in ("finish", "exit") if key in settings}
    rules = {key: value for key, value in settings.items() if key not in parts}
    update = {"rules": spec.rules.model_copy(update=rules)}
    for key, value in parts.items():
        update[key] = getattr(spec, key).model_copy(update=value)
    return spec.model_copy(update=update)


def number(model: fidm.TaskModel, state) -> int:
    grid = model.grid
    if state == "end":
        return grid.end
    row, column, done, phase = state
    return grid.state((row, column), tuple(done), grid.spec.phases[phase].name)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["grocery_small", "errands"])
def test_compiled_task_follows_the_rules(name, settings):
    if name == "errands" and ({"finish", "exit"} & settings.keys()):
        settings = {"early_target": "marks", "phase_change": "transcript"}  # errands has neither
    spec = changed(name, settings)
    slow, model = SlowGrid(spec), fidm.compile_task(spec)
    plain = compile_rules(slow, gamma=model.gamma, tau=model.tau, normaliser=model.normaliser)
    values, oracle = fidm.solve(model), fidm.solve(plain)
    queue, seen = [slow.start()], {slow.start()}
    assert number(model, slow.start()) == model.start
    for i, state in enumerate(queue):
        here = number(model, state)
        actions = slow.actions(state)
        assert set(model.legal(here)) == set(actions), state
        assert abs(values.v[here] - oracle.v[i]) <= 1e-9, state
        for action in actions:
            pair = model.pair(here, action)
            after = slow.step(state, action)
            assert model.reward[pair] == pytest.approx(slow.reward(state, action), abs=1e-15)
            assert model.successor[pair] == number(model, after)
            if after not in seen:
                seen.add(after)
                queue.append(after)
    assert len(queue) == plain.n_states


def test_grocery_follows_the_rules_too():
    spec = fidm.read_task("grocery")
    model = fidm.compile_task(spec)
    plain = compile_rules(SlowGrid(spec), gamma=model.gamma, tau=model.tau)
    values, oracle = fidm.solve(model), fidm.solve(plain)
    assert values.v[model.start] == pytest.approx(oracle.v[0], abs=1e-9)
    assert np.isclose(np.sort(values.v), np.sort(oracle.v)[-1], atol=1e-9).any()


def test_slow_rules_keep_the_contract_of_a_task():
    check_task(SlowGrid(fidm.read_task("errands")))
