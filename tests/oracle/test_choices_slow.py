"""Accounts of choice agree with slow loops, and everybody's integrals with brute force."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import special

import fidm
from fidm.action_models import (
    BelievesTask,
    Depth,
    Discounting,
    GoalAtATime,
    Lapse,
    Mixture,
    Random,
    Softmax,
    Stickiness,
    World,
)
from fidm.experiments.rivals import _frequencies
from fidm.fit.action_fit import Populations, Sharing, learn_shared, tabulate
from fidm.fit.action_fit import fitted as fit_people
from fidm.model.action_models import HORIZONS, list_chosen
from fidm.tasks.stack import TaskSet
from oracle import slow_choices as slow

ETA = 7.0


def grid(name="grid", rewards=(1.0, 0.7)):
    """Three by four cells, walls to bump into, and two goals in corners; both end the episode."""
    cells, ends = 12, {3: 0, 8: 1}
    to, reward, goal = (np.full((4 * cells, 4), value) for value in (-1, 0.0, -1))
    for mask in range(3):
        for cell in range(cells):
            y, x = divmod(cell, 4)
            for k, (dy, dx) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
                inside = 0 <= y + dy < 3 and 0 <= x + dx < 4
                new = cell + 4 * dy + dx if inside else cell
                achieved = ends.get(new) if inside else None
                fresh = achieved is not None and not mask >> achieved & 1
                to[mask * cells + cell, k] = (mask | (1 << achieved) if fresh else mask) * cells + new
                reward[mask * cells + cell, k] = rewards[achieved] if fresh else -0.05 - 0.05 * (not inside)
                goal[mask * cells + cell, k] = achieved if fresh else -1
    task = fidm.TaskModel.from_arrays(to, reward, gamma=0.9, tau=0.06, start=1, name=name)
    legal = to[task.pair_state, task.action] >= 0
    assert legal.all()
    return replace(task, goals=("a", "b"), goal=goal[task.pair_state, task.action].astype(np.int16))


def chancy(horizon=None, name="chancy"):
    """Five states in a row; running may fall back, and the last one pays."""
    state = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    action = [0, 1, 0, 1, 2, 0, 1, 2, 0, 1]
    to = np.zeros((10, 5))
    for k, links in enumerate(
        ({1: 1}, {1: 0.3, 2: 0.7}, {2: 1}, {3: 0.6, 0: 0.4}, {0: 1}, {3: 1}, {4: 0.5, 1: 0.5}, {1: 1},
         {4: 1}, {2: 0.9, 4: 0.1})
    ):  # fmt: skip
        for s, p in links.items():
            to[k, s] = p
    reward = [-0.1, -0.2, -0.1, -0.2, -0.05, -0.1, 0.2, -0.05, 1.0, 0.0]
    return fidm.TaskModel.from_pairs(
        state, action, reward, to, gamma=0.85, tau=0.1, horizon=horizon, name=name
    )


@functools.cache
def kinds():
    """Tasks by what is particular to them, with their slow twins and a few people who chose in them."""
    short = chancy(horizon=3, name="short")
    found = {"grid": [grid()], "chancy": [chancy()], "short": [short], "several": [grid(), chancy(), short],
             "errands": [fidm.load_task("errands")]}  # fmt: skip
    return {name: made(tasks, episodes=1 if name == "grid" else 2) for name, tasks in found.items()}


def made(tasks, episodes):
    places = {"short": lambda s: s % 5 if s < 15 else s}
    slows = {}
    for task in tasks:
        place = places.get(task.name)
        if task.grid is not None:
            n = task.grid.grid.n_cells

            def place(s, n=n, end=task.grid.end):
                return s % n if s < end else s

        slows[task.name] = slow.Slow(task, place)
    cohort = fidm.simulate_choices(
        tasks, Softmax(), {"action_sensitivity": (4.0, 0.3)}, 3, seed=2, episodes=episodes, max_steps=9
    )
    return tasks, slows, cohort


def agree(kind, model, values, log_p=None, *, expected=None):
    """Compare the log-likelihood of every trial with slow loops."""
    tasks, slows, cohort = kinds()[kind]
    world = World(TaskSet.of(tasks))
    chosen = list_chosen(world, cohort, remembers=model.remembers)
    found = model.log_likelihoods(chosen, values)
    for j in range(len(cohort)):
        slowly = expected(j) if expected else slow.by_trial(cohort, j, {n: log_p(n) for n in slows})
        np.testing.assert_allclose(found[chosen.owner == j], slowly, rtol=0, atol=1e-7)
        alone = model.log_likelihoods(chosen.person(j), values)
        np.testing.assert_allclose(alone, slowly, rtol=0, atol=1e-7)


EVERY = ["grid", "chancy", "short", "several", "errands"]


@functools.cache
def solved(kind):
    return {name: one.solved() for name, one in kinds()[kind][1].items()}


@pytest.mark.parametrize("kind", EVERY)
def test_plain_models_are_their_definitions(kind):
    slows, q = kinds()[kind][1], solved(kind)
    eta = {"action_sensitivity": ETA}
    agree(kind, Softmax(), eta, lambda n: slow.softly(slows[n], q[n], ETA))
    agree(kind, Random(), {}, lambda n: slow.softly(slows[n], q[n], 0.0))
    agree(kind, Lapse(), {**eta, "lapse_rate": 0.2}, lambda n: slow.lapsing(slows[n], q[n], ETA, 0.2))
    for of, values in (("action", (0.7, 0.0)), ("way", (0.0, -1.1)), ("both", (0.7, -1.1))):
        given = {**eta, "repeat": values[0], "step_back": values[1]}
        agree(
            kind, Stickiness(of), given, lambda n, values=values: slow.sticking(slows[n], q[n], ETA, *values)
        )
    both = Mixture(Stickiness(), Softmax())
    given = {**eta, "repeat": 0.7, "second_action_sensitivity": 2.0, "share": 0.3}
    agree(
        kind, both, given,
        lambda n: slow.mixed(
            slow.sticking(slows[n], q[n], ETA, 0.7), slow.softly(slows[n], q[n], 2.0), 0.3
        ),
    )  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_discounted_values_are_those_of_the_task_with_another_discount(kind):
    slows, q = kinds()[kind][1], solved(kind)
    tables = []
    for node in (4, 5):
        own = {n: one.solved(gamma=-math.expm1(-HORIZONS[node])) for n, one in slows.items()}
        factor = slow.spread(q.values()) / slow.spread(own.values())
        tables.append(
            {
                n: {s: {a: factor * v for a, v in row.items()} for s, row in table.items()}
                for n, table in own.items()
            }
        )
    for share in (0.0, 0.25, 1.0):  # between two discounts values are interpolated
        free = HORIZONS[4] + share * (HORIZONS[5] - HORIZONS[4])

        def log_p(n, share=share):
            mixed = {
                s: {a: (1 - share) * v + share * tables[1][n][s][a] for a, v in row.items()}
                for s, row in tables[0][n].items()
            }
            return slow.softly(slows[n], mixed, ETA)

        agree(kind, Discounting(), {"action_sensitivity": ETA, "discount": -math.expm1(-free)}, log_p)


@pytest.mark.parametrize("kind", ["grid", "chancy", "short", "several"])
def test_shallow_values_are_a_recursion(kind):
    slows = kinds()[kind][1]
    for depth in (1, 2, 4):
        tables = {n: one.shallow(depth) for n, one in slows.items()}
        given = {"action_sensitivity": ETA, "depth": float(depth)}
        agree(kind, Depth(), given, lambda n, tables=tables: slow.softly(slows[n], tables[n], ETA))
    given = {"action_sensitivity": ETA, "depth": math.inf}
    agree(kind, Depth(), given, lambda n: slow.softly(slows[n], solved(kind)[n], ETA))


def test_beyond_its_depth_a_plan_may_count_on_the_nearest_goal():
    one = kinds()["grid"][1]["grid"]
    nearest = slow.nearest_table(one, one.actions)
    m = one.model
    beyond = {
        s: slow.slow_values.soft_maximum(list(row.values()), m.tau, m.normaliser) if row else 0.0
        for s, row in nearest.items()
    }
    table = one.shallow(2, beyond)
    given = {"action_sensitivity": ETA, "depth": 2.0}
    agree("grid", Depth(heuristic="nearest"), given, lambda n: slow.softly(one, table, ETA))


def test_one_goal_at_a_time():
    _, slows, cohort = kinds()["grid"]
    given = {"action_sensitivity": ETA}
    visited = set(cohort.state.tolist())
    near = {n: slow.nearest_table(one, visited) for n, one in slows.items()}
    agree("grid", GoalAtATime(), given, lambda n: slow.softly(slows[n], near[n], ETA))
    tables = {n: [one.alone(g) for g in range(one.n_goals)] for n, one in slows.items()}
    agree(
        "grid", GoalAtATime("chosen"), given,
        expected=lambda j: slow.by_chosen_goal(cohort, j, slows, tables, ETA),
    )  # fmt: skip


def test_another_task_is_believed():
    slows = kinds()["grid"][1]
    other = grid("grid", rewards=(0.2, 2.0))
    q = slow.Slow(other).solved()
    agree("grid", BelievesTask(other), {"action_sensitivity": ETA}, lambda n: slow.softly(slows[n], q, ETA))


def test_people_who_choose_goals_are_simulated_as_they_are_described():
    """The mean slope of the log-likelihood is 0 at the truth."""
    tasks, model = grid(), GoalAtATime("chosen")
    n, given = 1500, {"action_sensitivity": 3.0}
    cohort = fidm.simulate_choices(tasks, model, given, n, seed=0, episodes=2, max_steps=25)
    chosen = list_chosen(World(TaskSet.of(tasks)), cohort)
    up, down = (
        np.bincount(chosen.owner, model.log_likelihoods(chosen, {"action_sensitivity": 3.0 + step}))
        for step in (1e-3, -1e-3)
    )
    slope = (up - down) / 2e-3
    assert abs(slope.mean()) < 3 * slope.std() / math.sqrt(n)


def test_a_goal_in_mind_lasts_until_any_goal_is_achieved():
    seen = []

    class Watched(GoalAtATime):
        def carry(self, world, row, memory, rng):
            found = super().carry(world, row, memory, rng)
            seen.append((int(row[0]), int(memory[0]), int(found[0])))
            return found

    task = fidm.load_task("grocery")  # several goals are left when one is achieved
    model, values = Watched("chosen"), {"action_sensitivity": 8.0}
    cohort = fidm.simulate_choices(task, model, values, 1, seed=2, max_steps=150)
    achieved = [
        task.goal[task.pair(s, int(a))] >= 0 for s, a in zip(cohort.state, cohort.action, strict=True)
    ]
    assert sum(achieved) > 2
    assert [row for row, _, _ in seen] == cohort.state.tolist()
    for i in range(1, len(seen)):
        assert seen[i][1] == (-1 if achieved[i - 1] else seen[i - 1][2])


# ---------------------------------------------------------------------- people


@functools.cache
def few():
    task = grid()
    cohort = fidm.simulate_choices(
        task, Softmax(), {"action_sensitivity": (5.0, 0.6)}, 6, seed=5, episodes=3, max_steps=10
    )
    world = World(TaskSet.of(task))
    return world, cohort, list_chosen(world, cohort)


def by_hand(world, cohort, j, q=None, keep=lambda trial: True):
    """The log-likelihood of a person as a function of log η, and of a bonus for repeating."""
    one = slow.Slow(world.tasks.tasks[0])
    q = q or one.solved()
    steps = slow.person_steps(cohort, j)
    steps = [one for one in steps if keep(one[0] - int(cohort.episode_offsets[j]))]

    def log_likelihood(x, b=None):
        eta, total = np.exp(x), np.zeros(np.shape(x))
        for _, _, s, a, before, _ in steps:
            worth = {
                c: eta * v + (0.0 if b is None or c != before else 1.0) * (0.0 if b is None else b)
                for c, v in q[s].items()
            }
            total = total + worth[a] - special.logsumexp(list(worth.values()), axis=0)
        return total

    return log_likelihood


def test_one_parameter_by_fine_quadrature():
    world, cohort, chosen = few()
    fold = np.arange(chosen.n_trials) % 3
    seen = tabulate(Softmax(), chosen, fold, 3)
    learned = learn_shared(seen).mode
    for mean, sd in ((learned[0], math.exp(learned[1])), (1.5, 0.5), (1.0, 1.2)):
        free = np.array([mean, math.log(sd)])
        shared = Populations(free[None], np.ones(1), free)
        evidence, trials = shared.log_predictive(seen), shared.log_predictive_trials(seen)
        weight = shared.posterior(seen)
        axis = np.linspace(mean - 8 * sd, mean + 8 * sd, 3001)
        for j in range(len(cohort)):
            whole, (centre,), _ = slow.integral(by_hand(world, cohort, j), [axis], [mean], [sd])
            assert evidence[j] == pytest.approx(whole, abs=2e-3)
            own = slice(seen.offsets[j], seen.offsets[j + 1])
            assert weight[own] @ seen.x[own, 0] == pytest.approx(centre, abs=0.02 * sd)
            for f in range(3):
                others = by_hand(world, cohort, j, keep=lambda trial, f=f: trial % 3 != f)
                without = slow.integral(others, [axis], [mean], [sd])[0]
                assert trials[f, j] == pytest.approx(whole - without, abs=4e-3)


def test_two_parameters_by_fine_quadrature():
    world, cohort, _ = few()
    chosen = list_chosen(world, cohort, remembers=True)
    model = Stickiness()
    seen = tabulate(model, chosen, np.arange(chosen.n_trials) % 3, 3)
    free = learn_shared(seen).mode
    means, sds = free[::2], np.exp(free[1::2])
    shared = Populations(free[None], np.ones(1), free)
    evidence, trials = shared.log_predictive(seen), shared.log_predictive_trials(seen)
    table = fit_people_at(seen, shared, cohort.ids)
    axes = [np.linspace(m - 7 * s, m + 7 * s, 161) for m, s in zip(means, sds, strict=True)]
    for j in range(3):
        whole, centre, quantile = slow.integral(by_hand(world, cohort, j), axes, means, sds)
        assert evidence[j] == pytest.approx(whole, abs=1e-2)
        for k, name in enumerate(("action_sensitivity", "repeat")):
            row = table.filter(participant=cohort.ids[j], parameter=name).row(0, named=True)
            to_free = seen.parameters[k].free
            assert to_free(row["estimate"]) == pytest.approx(centre[k], abs=0.03 * sds[k])
            for end, share in (("low", 0.025), ("high", 0.975)):
                assert to_free(row[end]) == pytest.approx(quantile(k, share), abs=0.1 * sds[k])
        others = by_hand(world, cohort, j, keep=lambda trial: trial % 3 != 1)
        without = slow.integral(others, axes, means, sds)[0]
        assert trials[1, j] == pytest.approx(whole - without, abs=2e-2)


def fit_people_at(seen, shared, ids):
    from fidm.fit.action_fit import _people_table

    return _people_table(seen, shared, shared.posterior(seen), ids, 0.95)


def test_a_depth_by_sums_over_levels():
    """Of a parameter with levels the prior mass of a level reaches half-way to its neighbours."""
    world, cohort, chosen = few()
    model = Depth((1.0, 2.0, 4.0))
    seen = tabulate(model, chosen, np.zeros(chosen.n_trials, np.int64), 1)
    free = learn_shared(seen).mode
    (mean, place), (sd, apart) = free[::2], np.exp(free[1::2])
    shared = Populations(free[None], np.ones(1), free)
    one = slow.Slow(world.tasks.tasks[0])
    axis = np.linspace(mean - 8 * sd, mean + 8 * sd, 2001)
    edges = special.ndtr((np.array([-np.inf, 0.5, 1.5, np.inf]) - place) / apart)
    for j in range(len(cohort)):
        parts = [
            slow.integral(by_hand(world, cohort, j, one.shallow(d)), [axis], [mean], [sd])[0]
            for d in (1, 2, 4)
        ]
        expected = special.logsumexp(parts, b=np.diff(edges))
        assert shared.log_predictive(seen)[j] == pytest.approx(expected, abs=5e-3)


def test_what_people_share_by_brute_force():
    """Predictions averaged over plausible populations are a ratio of integrals over mean and sd."""
    world, cohort, chosen = few()
    seen = tabulate(Softmax(), chosen, np.zeros(chosen.n_trials, np.int64), 1)
    training, held = np.arange(1, 6), np.array([0])
    found = learn_shared(seen.people(training)).log_predictive(seen.people(held))[0]
    one = world.sensitivity()
    x = np.linspace(-4, 7, 1201)
    log_l = np.stack([by_hand(world, cohort, j)(x) for j in range(6)])
    log_post, log_held = [], []
    for mean in np.linspace(one.middle - 5, one.middle + 5, 81):
        for log_sd in np.linspace(math.log(0.05), math.log(4.0), 61):
            sd = math.exp(log_sd)
            log_prior = -0.5 * ((x - mean) / sd) ** 2
            log_prior -= special.logsumexp(log_prior)
            each = special.logsumexp(log_l + log_prior, axis=1)
            square = (sd / one.spread) ** 2  # a half-t of four degrees, in the logarithm
            hyper = log_sd - 2.5 * math.log1p(square / 4) - 0.5 * ((mean - one.middle) / one.reach) ** 2
            log_post.append(each[1:].sum() + hyper)
            log_held.append(each[0])
    expected = special.logsumexp(np.add(log_post, log_held)) - special.logsumexp(log_post)
    assert found == pytest.approx(expected, abs=0.02)


def test_the_slopes_of_the_population_are_differences():
    world, cohort, _ = few()
    seen = tabulate(Stickiness(), list_chosen(world, cohort), np.zeros(18, np.int64), 1)
    learning = Sharing(seen)
    for free in (np.array([1.5, -0.7, 0.2, -1.0]), np.array([0.5, 0.4, 2.5, 0.8])):
        slope = learning.posterior(free)[1]
        for k, unit in enumerate(1e-5 * np.eye(4)):
            ends = [learning.posterior(free + sign * unit)[0] for sign in (1, -1)]
            assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5)


def test_an_interval_is_where_the_posterior_lies():
    world, cohort, chosen = few()
    seen = tabulate(Softmax(), chosen, np.zeros(chosen.n_trials, np.int64), 1)
    mean, sd = 1.5, 0.5
    free = np.array([mean, math.log(sd)])
    table = fit_people_at(seen, Populations(free[None], np.ones(1), free), cohort.ids)
    axis = np.linspace(mean - 8 * sd, mean + 8 * sd, 3001)
    for j, row in enumerate(table.iter_rows(named=True)):
        _, _, quantile = slow.integral(by_hand(world, cohort, j), [axis], [mean], [sd])
        for end, share in (("low", 0.025), ("high", 0.975)):
            assert math.log(row[end]) == pytest.approx(quantile(0, share), abs=0.04 * sd)
    assert isinstance(fit_people(seen, chosen, cohort.ids, 0.95).table, pl.DataFrame)


# ---------------------------------------------------------------------- random effects


def test_frequencies_by_the_plain_loop():
    evidence = np.random.default_rng(4).normal(0, 2, (3, 12))
    evidence[1] += 1.0
    found = _frequencies(evidence, 1)
    alpha, share = slow.random_effects(evidence.tolist())
    np.testing.assert_allclose(found.share, np.array(alpha) / sum(alpha), atol=1e-6)
    np.testing.assert_allclose(found.person.T, share, atol=1e-6)
    drawn = np.random.default_rng(9).dirichlet(alpha, 200_000)
    np.testing.assert_allclose(found.exceedance, np.bincount(drawn.argmax(1)) / 200_000, atol=0.01)


def test_the_lower_bound_lies_below_the_integral_over_frequencies():
    """With two models the integral over frequencies is one of a line; the bound is close to it, and below."""
    evidence = np.random.default_rng(5).normal(0, 2, (2, 6))
    r = (np.arange(20_000) + 0.5) / 20_000
    log_mixed = sum(np.logaddexp(a + np.log(r), b + np.log1p(-r)) for a, b in evidence.T)
    exact = special.logsumexp(log_mixed) - math.log(len(r))
    equal = (special.logsumexp(evidence, axis=0) - math.log(2)).sum()
    found = _frequencies(evidence, 1)
    bound = equal - special.logit(found.chance)
    assert exact - 0.8 < bound <= exact + 1e-9


def test_textbook_cases():
    same = _frequencies(np.zeros((4, 40)), 1)
    assert same.chance > 0.9
    np.testing.assert_allclose(same.share, 0.25)
    np.testing.assert_allclose(same.protected, 0.25, atol=0.01)
    ahead = np.zeros((3, 20))
    ahead[1] = 10.0
    found = _frequencies(ahead, 1)
    assert found.exceedance[1] > 0.999
    assert found.protected[1] > 0.99
    assert found.chance < 0.01
