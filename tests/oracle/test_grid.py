"""The compiled task agrees, state by state, with its rules written again as plainly as possible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fidm
from fidm.tasks.compile import compile_rules
from fidm.testing import check_task
from oracle.slow_grid import SlowGrid, SlowHidden

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


def reached(slow: SlowGrid, starts: list) -> list:
    """Every state that acting can lead to, breadth first."""
    queue = list(dict.fromkeys(starts))
    seen = set(queue)
    for state in queue:  # the queue grows while it is read
        for action in slow.actions(state):
            after = slow.step(state, action)
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return queue


def agree(spec: fidm.TaskSpec) -> fidm.TaskModel:
    """The compiled task is the slow one, state by state and value by value; return it."""
    slow, model = SlowGrid(spec), fidm.compile_task(spec)
    values = fidm.solve(model)
    assert tuple(number(model, state) for state in slow.starts()) == model.starts
    for state in reached(slow, slow.starts()):
        here = number(model, state)
        actions = slow.actions(state)
        assert set(model.legal(here)) == set(actions), state
        for action in actions:
            pair = model.pair(here, action)
            after = slow.step(state, action)
            assert model.reward[pair] == pytest.approx(slow.reward(state, action), abs=1e-12)
            assert model.successor[pair] == number(model, after)
            assert model.is_move[pair] == (action in slow.ways)
    plain = compile_rules(slow, gamma=model.gamma, tau=model.tau, normaliser=model.normaliser)
    oracle = fidm.solve(plain)
    for state, worth in zip(reached(slow, [slow.start()]), oracle.v, strict=True):
        assert abs(values.v[number(model, state)] - worth) <= 1e-9, state
    return model


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", ["grocery_small", "errands"])
def test_compiled_task_follows_the_rules(name, settings):
    if name == "errands" and ({"finish", "exit"} & settings.keys()):
        settings = {"early_target": "marks", "phase_change": "transcript"}  # errands has neither
    agree(changed(name, settings))


MAZE = """
format = 1
name = "maze"
title = "A maze"
[values]
gamma = 0.9
tau = 0.1
normaliser = "{normaliser}"
[rewards]
move = -0.1
target = 1.0
repeated = -0.5
non_target = -0.4
out_of_phase = 0.1
{bump}
[costs]
"~" = -0.7
"A" = -0.3
[map]
one_way = {{ "^" = "N", "v" = "S", "<" = "W", ">" = "E" }}
drawing = '''
{drawing}
'''
[sections.a]
symbol = "A"
reach = "{reach_a}"
[sections.b]
symbol = "B"
{b}
[sections.c]
symbol = "C"
[[phases]]
name = "first"
targets = ["a"]
[[phases]]
name = "second"
targets = [{second}]
{finish}
[rules]
{rules}
"""

FINISHES = [
    "",
    '[finish]\nsymbol = "G"\nreach = "arrive"\nreward = 2.0\nreward_completion = 0.5\nreward_early = -0.2',
    '[finish]\nsymbol = "G"\nreach = "arrive"\nreward = 2.0\nreward_early = -0.2\nearly = "illegal"',
    '[finish]\nsymbol = "G"\nreach = "arrive"\nreward = 0.1\nends = false',
    '[finish]\nsymbol = "G"\naction = "PAY"\nreward = 2.0',
]
RULES = {
    "reach": ["arrive", "adjacent", "on"],
    "bumps": ["illegal", "stay"],
    "diagonal": ["none", "free", "no_corner_cutting"],
    "order": ["any", "listed"],
    "value_flow": ["chained", "ends", "continues"],
    "phase_change": ["transcript", "goals"],
    "early_target": ["marks", "ignored", "illegal"],
    "late_target": ["marks", "ignored", "illegal"],
    "non_targets": ["legal", "illegal"],
    "buy": ["per_section", "single"],
}


@st.composite
def mazes(draw: st.DrawFn) -> str:
    """The text of a small maze with many rules at once; every symbol that is declared is on it."""
    rows, columns = draw(st.integers(4, 5)), draw(st.integers(4, 6))
    finish = draw(st.sampled_from(FINISHES))
    must = list("SABC~^v<>" + ("G" if finish else "") + "S" * draw(st.integers(0, 2)))
    rest = rows * columns - len(must)
    fill = draw(st.lists(st.sampled_from("......~~##"), min_size=rest, max_size=rest))
    cells = draw(st.permutations(must + fill))
    drawing = "\n".join("".join(cells[i * columns : (i + 1) * columns]) for i in range(rows))
    rules = {name: draw(st.sampled_from(values)) for name, values in RULES.items()}
    return MAZE.format(
        normaliser=draw(st.sampled_from(["sum", "mean", "max"])),
        bump="bump = -0.15" if rules["bumps"] == "stay" and draw(st.booleans()) else "",
        drawing=drawing,
        reach_a=draw(st.sampled_from(["arrive", "on"])),
        b=draw(st.sampled_from(["", 'requires = ["a"]', "reward = 0.3"])),
        second=draw(st.sampled_from(['"b"', '"b"', ""] if finish else ['"b"'])),
        finish=finish,
        rules="\n".join([*(f'{name} = "{value}"' for name, value in rules.items()), 'starts = "several"']),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(mazes())
def test_mazes_follow_the_rules(text):
    try:
        spec = fidm.parse_task(text)
    except fidm.TaskError as error:  # a place is walled in, or a door leads nowhere
        assert "reached" in str(error) or "never left" in str(error), error
        assume(False)
    model = agree(spec)
    again = model.with_settings(move_cost=-0.25)
    dearer = spec.rewards.model_copy(update={"move": -0.25})
    assert np.array_equal(again.reward, fidm.compile_task(spec.model_copy(update={"rewards": dearer})).reward)
    if model.horizon is None:
        assert model.with_horizon(3).with_settings(move_cost=-0.25).n_pairs == 3 * model.n_pairs


def test_grocery_follows_the_rules_too():
    spec = fidm.read_task("grocery")
    model = fidm.compile_task(spec)
    plain = compile_rules(SlowGrid(spec), gamma=model.gamma, tau=model.tau)
    values, oracle = fidm.solve(model), fidm.solve(plain)
    assert values.v[model.start] == pytest.approx(oracle.v[0], abs=1e-9)
    assert np.isclose(np.sort(values.v), np.sort(oracle.v)[-1], atol=1e-9).any()


def test_slow_rules_keep_the_contract_of_a_task():
    check_task(SlowGrid(fidm.read_task("errands")))


HIDDEN = """
format = 1
name = "hidden"
title = "Hidden cells"
[values]
gamma = 0.9
tau = 0.1
normaliser = "{normaliser}"
[rewards]
move = -0.1
target = 1.0
repeated = -0.5
non_target = -0.4
{bump}
[costs]
"!" = -0.3
[hidden]
"?" = {{ open = 0.6 }}
"!" = {{ open = 0.3, reward = 0.4 }}
[map]
one_way = {{ ">" = "E" }}
drawing = '''
{drawing}
'''
[sections.a]
symbol = "A"
reach = "{reach}"
[[phases]]
name = "first"
targets = ["a"]
[[phases]]
name = "second"
[finish]
symbol = "G"
reach = "arrive"
reward = 1.0
[rules]
phase_change = "goals"
starts = "several"
bumps = "{bumps}"
reveal = "{reveal}"
value_flow = "{value_flow}"
"""


@st.composite
def hidden_maps(draw: st.DrawFn) -> str:
    """The text of a small map with hidden cells of two kinds."""
    rows, columns = draw(st.integers(3, 4)), draw(st.integers(4, 5))
    must = list("SAG>!?" + "S" * draw(st.integers(0, 1)))
    rest = rows * columns - len(must)
    fill = draw(st.lists(st.sampled_from("......#?"), min_size=rest, max_size=rest))
    cells = draw(st.permutations(must + fill))
    assume(cells.count("?") <= 3)
    bumps = draw(st.sampled_from(["stay", "illegal"]))
    return HIDDEN.format(
        normaliser=draw(st.sampled_from(["sum", "mean", "max"])),
        bump="bump = -0.15" if bumps == "stay" and draw(st.booleans()) else "",
        drawing="\n".join("".join(cells[i * columns : (i + 1) * columns]) for i in range(rows)),
        reach=draw(st.sampled_from(["arrive", "on", "adjacent"])),
        bumps=bumps,
        reveal=draw(st.sampled_from(["beside", "on_entering"])),
        value_flow=draw(st.sampled_from(["chained", "chained", "ends", "continues"])),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(hidden_maps())
def test_hidden_cells_follow_the_rules(text):
    try:
        spec = fidm.parse_task(text)
        model = fidm.compile_task(spec)
    except fidm.TaskError as error:
        said = (
            "reached from the start",
            "never left",
            "directly beside a hidden cell",
            "nothing would be legal",
        )
        assert any(words in str(error) for words in said), error
        assume(False)
    slow, phases = SlowHidden(spec), [phase.name for phase in spec.phases]
    plain = compile_rules(slow, gamma=model.gamma, tau=model.tau, normaliser=model.normaliser)
    values, oracle = fidm.solve(model), fidm.solve(plain)

    def number(state) -> int:
        if state == "end":
            return model.grid.end
        return model.grid.state(state[:2], tuple(state[2]), phases[state[3]], state[4])

    assert tuple(number(state) for state in slow.starts()) == model.starts
    queue = list(dict.fromkeys(slow.starts()))
    seen = set(queue)
    worth = {}
    for state in queue:  # the queue grows while it is read
        here = number(state)
        assert set(model.legal(here)) == set(slow.actions(state)), state
        for action in slow.actions(state):
            pair = model.pair(here, action)
            links = slice(model.successor_offsets[pair], model.successor_offsets[pair + 1])
            after = slow.step(state, action)
            assert model.reward[pair] == pytest.approx(slow.reward(state, action), abs=1e-12)
            found = dict(zip(model.successor[links].tolist(), model.probability[links].tolist(), strict=True))
            assert found == pytest.approx({number(one): chance for one, chance in after.items()}, abs=1e-12)
            assert model.is_move[pair] == (action in "NSEW")
            queue += [one for one in after if one not in seen]
            seen |= set(after)
        worth[str(state)] = values.v[here]
    for name, v in zip(plain.states, oracle.v, strict=True):
        assert abs(worth[name] - v) <= 1e-9, name
    dearer = spec.rewards.model_copy(update={"move": -0.25})
    again = fidm.compile_task(spec.model_copy(update={"rewards": dearer}))
    assert np.allclose(model.with_settings(move_cost=-0.25).reward, again.reward, atol=1e-15)
