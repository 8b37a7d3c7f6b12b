"""The tasks that come with the package: their shape, the paper's numbers, and that they can be used."""

from __future__ import annotations

import numpy as np
import pytest

import fidm

GROCERIES = ["grocery", "grocery_small"]


@pytest.mark.parametrize("name", fidm.builtin_tasks())
def test_passes_its_own_check(name):
    check = fidm.check_task(fidm.load_task(name), vary=False)
    assert check.usable, check.findings
    assert check.best_finishes
    assert all(goal.typical > 0 and goal.achieved for goal in check.goals)
    assert check.best_actions <= 1.1 * check.fewest_actions


@pytest.mark.parametrize("name", fidm.builtin_tasks())
def test_residual_and_number_of_steps(name):
    values = fidm.solve(fidm.load_task(name))
    assert values.residual <= 1e-10
    assert values.iterations < 10


def test_grocery_looks_like_the_store_that_was_asked_for():
    task = fidm.load_task("grocery")
    states = task.grid
    spec, grid = states.spec, states.grid
    assert 75 <= grid.n_cells <= 90
    assert len(grid.cut_off) == 0
    assert len(spec.targets) == 5
    assert 5 <= len(set(spec.sections) - set(spec.targets)) <= 6
    distance = grid.distances()
    (till,) = grid.cells_on("P")
    bakery = distance[grid.cells_beside("B")][:, till].min()
    assert bakery >= 0.5 * distance[till].max()
    shelves = [grid.cells_beside(spec.sections[t].symbol) for t in spec.targets]
    for i, one in enumerate(shelves):
        for other in shelves[i + 1 :]:
            assert not set(one) & set(other)


@pytest.mark.parametrize("name", GROCERIES)
def test_the_papers_settings(name):
    task = fidm.load_task(name)
    assert (task.gamma, task.tau, task.normaliser) == (0.98, 0.05, "sum")
    assert task.grid.grid.n_cells * 96 + 1 == task.n_states


def beside(task, symbol):
    grid = task.grid.grid
    cell = grid.cells_beside(symbol)[0]
    return int(grid.row[cell]), int(grid.column[cell])


@pytest.mark.parametrize("name", GROCERIES)
def test_the_papers_reward_table(name):
    task = fidm.load_task(name)
    grid = task.grid
    meat, bread, drinks = beside(task, "M"), beside(task, "B"), beside(task, "K")
    four = ("vegetables", "meat", "egg_tofu", "seasoning")
    till = tuple(int(x[0]) for x in np.nonzero(grid.grid.symbol == "P"))

    def pay(cell, completed, phase, action):
        state = grid.state(cell, completed, phase)
        pair = task.pair(state, action)
        return float(task.reward[pair]), int(task.successor[pair])

    assert set(task.reward[task.is_move]) == {-0.02}
    reward, after = pay(meat, (), "shopping", "BUY meat")
    assert reward == 1.0
    assert grid.completed(after) == ("meat",)
    assert pay(meat, ("meat",), "shopping", "BUY meat") == (-0.1, grid.state(meat, ("meat",), "shopping"))
    assert pay(drinks, (), "shopping", "BUY drinks") == (-0.2, grid.state(drinks, (), "shopping"))
    assert pay(bread, four, "bakery", "BUY bakery") == (1.0, grid.state(bread, (*four, "bakery"), "checkout"))
    assert pay(bread, (), "shopping", "BUY bakery") == (0.0, grid.state(bread, ("bakery",), "shopping"))
    assert pay(meat, (), "checkout", "BUY meat") == (0.0, grid.state(meat, ("meat",), "checkout"))
    assert pay(till, (), "shopping", "PAY") == (0.0, grid.state(till, (), "shopping"))
    for n_done in range(5):
        reward, after = pay(till, four[:n_done], "checkout", "PAY")
        assert reward == pytest.approx(0.5 + 1.5 * n_done / 5)
        assert after == grid.end
    assert pay(till, (*four, "bakery"), "checkout", "PAY")[0] == pytest.approx(2.0)
    assert "OUT" not in task.actions


def test_the_fourth_target_opens_the_bakery_and_an_early_bakery_opens_the_till():
    task = fidm.load_task("grocery")
    grid, cell = task.grid, beside(task, "M")
    three = ("vegetables", "egg_tofu", "seasoning")
    after = task.successor[task.pair(grid.state(cell, three, "shopping"), "BUY meat")]
    assert "phase bakery" in grid.describe(int(after))
    early = grid.state(cell, (*three, "bakery"), "shopping")
    assert "phase checkout" in grid.describe(int(task.successor[task.pair(early, "BUY meat")]))


def test_steps_between_the_fourth_target_and_the_request_are_left_out_of_the_likelihood():
    task = fidm.load_task("grocery")
    grid, cell = task.grid, beside(task, "M")
    four = ("vegetables", "meat", "egg_tofu", "seasoning")
    waiting = grid.state(cell, four, "shopping")
    assert not task.counted[waiting]
    assert task.handover[waiting] == grid.state(cell, four, "bakery")
    assert task.counted[grid.state(cell, four, "bakery")]
    assert task.counted[grid.state(cell, four[:3], "shopping")]


def test_errands_has_shops_that_open_after_others():
    task = fidm.load_task("errands")
    grid = task.grid
    cell = beside(task, "P")
    assert "VISIT pharmacy" not in task.legal(grid.state(cell, (), "errands"))
    assert "VISIT pharmacy" in task.legal(grid.state(cell, ("doctor",), "errands"))
    assert grid.spec.finish is None
    assert "bakery" not in grid.spec.sections


def test_a_state_that_cannot_be_says_so():
    grid = fidm.load_task("errands").grid
    with pytest.raises(fidm.TaskError, match="phase errands with pharmacy"):
        grid.state(beside(fidm.load_task("errands"), "P"), ("pharmacy",), "errands")
    with pytest.raises(fidm.TaskError, match="row 1, column 1"):
        grid.state((0, 0))
