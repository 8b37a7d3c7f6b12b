"""Action models are fitted to few and many people, also to those of whom little is known."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.action_models import Depth, Discounting, Lapse, Mixture, Random, Softmax, Stickiness, World
from fidm.errors import FitError
from fidm.fit.action_fit import DEEP, tabulate
from fidm.model.action_models import list_chosen
from fidm.tasks.stack import TaskSet

STICKY = {"action_sensitivity": (12.0, 0.4), "repeat": (1.0, 0.5)}


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def sticky(n=40):
    return fidm.simulate_choices(task(), Stickiness(), STICKY, n, seed=1, max_steps=60)


@pytest.mark.parametrize("n", [3, 4, 8, 15, 40])
def test_few_and_many_people(n):
    for model in (Softmax(), Stickiness(), Depth()):
        fit = fidm.fit_action_model(task(), sticky(40)[np.arange(n)], model)
        table = fit.table
        assert table.height == n * len(fit.seen.parameters)
        assert (table["low"] <= table["estimate"]).all()
        assert (table["estimate"] <= table["high"]).all()
        assert (table["se"] > 0).all()
        assert fit.population["sd"].is_between(0.02, 10).all()
    assert fit.draws(7, np.random.default_rng(0))["depth"].shape == (7, n)


def test_softmax_agrees_with_the_model_of_the_paper():
    grocery = fidm.load_task("grocery")
    cohort = fidm.simulate_cohort(grocery, 40, seed=1, max_steps=60)
    fit = fidm.fit_action_model(grocery, cohort, Softmax())
    model = fidm.Model(grocery, channels=(), lapse=0)
    table = model.fit(cohort).profile(cohort).table
    for column, within in (("estimate", 0.03), ("low", 0.05), ("high", 0.05)):
        own, known = (np.log(one[column].to_numpy()) for one in (fit.table, table))
        assert np.abs(own - known).max() < within, column


def test_the_order_of_people_changes_nothing():
    order = np.random.default_rng(0).permutation(15)
    cohort = sticky()[np.arange(15)]
    first = fidm.fit_action_model(task(), cohort, Stickiness())
    other = fidm.fit_action_model(task(), cohort[order], Stickiness())
    for name in ("action_sensitivity", "repeat"):
        np.testing.assert_allclose(other[name], first[name][order], rtol=1e-4)
    assert other.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-6)


def test_somebody_without_choices():
    weight = np.ones(sticky().n_steps)
    cohort = sticky()[np.arange(6)]
    steps = cohort.step_offsets[cohort.episode_offsets]
    weight = np.ones(cohort.n_steps)
    weight[steps[2] : steps[3]] = 0.0
    fit = fidm.fit_action_model(task(), replace(cohort, weight=weight), Stickiness())
    row = fit.table.filter(participant=cohort.ids[2], parameter="repeat").row(0, named=True)
    assert (row["status"], row["n"], row["estimate"], row["low"]) == ("no_observation", 0, None, None)
    assert np.isnan(fit["repeat"][2])
    without = fidm.fit_action_model(task(), cohort[np.array([0, 1, 3, 4, 5])], Stickiness())
    np.testing.assert_allclose(np.delete(fit["repeat"], 2), without["repeat"], atol=1e-3)
    drawn = fit.draws(400, np.random.default_rng(0))  # somebody unknown is drawn, too
    assert np.isfinite(drawn["repeat"]).all()
    json.dumps(fit.to_dict())


def best_people(n):
    """People who always choose best, and some who do not."""
    given = pl.DataFrame({"action_sensitivity": [1e4 if j % 2 else 8.0 for j in range(n)]})
    return fidm.simulate_choices(task(), Softmax(), given, n, seed=4, max_steps=60)


def test_people_who_always_chose_best_have_estimates():
    cohort = best_people(8)
    for model in (Softmax(), Lapse(), Stickiness()):
        fit = fidm.fit_action_model(task(), cohort, model)
        eta = fit["action_sensitivity"]
        assert np.isfinite(eta).all()
        assert eta[1::2].min() > eta[::2].max()
    everybody = fidm.fit_action_model(task(), cohort[np.arange(1, 8, 2)], Softmax())
    assert np.isfinite(everybody["action_sensitivity"]).all()
    assert set(everybody.table["status"].cast(pl.String)) & {"at_edge", "low_information"}


def test_people_who_choose_at_random_have_estimates():
    cohort = fidm.simulate_choices(task(), Random(), {}, 8, seed=4, max_steps=60)
    fit = fidm.fit_action_model(task(), cohort, Softmax())
    assert (fit["action_sensitivity"] < 3.0).all()


def test_a_weight_counts_as_often():
    cohort = sticky()[np.arange(6)]
    world = World(TaskSet.of(task()))
    twice = replace(cohort, weight=np.full(cohort.n_steps, 2.0))
    once, more = (
        Softmax().log_likelihoods(list_chosen(world, one), {"action_sensitivity": 9.0})
        for one in (cohort, twice)
    )
    np.testing.assert_allclose(more, 2 * once)
    fits = [fidm.fit_action_model(task(), one, Softmax(), world=world) for one in (cohort, twice)]
    assert (fits[1].table["se"] < fits[0].table["se"]).all()


def test_episodes_are_only_trials():
    """Softmax does not ask where an episode began: nodes and estimates are those of all choices."""
    one = sticky()[np.arange(8)]
    several = Softmax()
    world = World(TaskSet.of(task()))
    made = list_chosen(world, one)
    quarters = tabulate(several, made, np.arange(made.n_trials) % 4, 4)
    whole = tabulate(several, made, np.zeros(made.n_trials, np.int64), 1)
    np.testing.assert_allclose(quarters.log_likelihood, whole.log_likelihood, atol=1e-10)


@pytest.mark.parametrize(
    "model", [Stickiness("both"), Mixture(Stickiness(), Softmax())], ids=["three", "four"]
)
def test_three_and_four_parameters(model):
    fit = fidm.fit_action_model(task(), sticky()[np.arange(5)], model)
    assert fit.table["estimate"].is_finite().all()
    assert fit.seen.people(np.array([3])).offsets[-1] <= 2_000


def test_nodes_reach_as_far_as_anybody_may_be():
    """The outer nodes are improbable, unless the table of likelihoods ends there."""
    fit = fidm.fit_action_model(task(), sticky(), Stickiness())
    for j in range(40):
        own = slice(fit.seen.offsets[j], fit.seen.offsets[j + 1])
        x, weight = fit.seen.x[own], fit.weight[own]
        for k, one in enumerate(fit.seen.parameters):
            for end, edge in ((x[:, k].min(), one.nodes[0]), (x[:, k].max(), one.nodes[-1])):
                assert np.isclose(end, edge) or weight[x[:, k] == end].sum() < np.exp(-0.5 * DEEP)


def test_a_model_without_parameters():
    fit = fidm.fit_action_model(task(), sticky()[np.arange(3)], Random())
    assert (fit.table.height, fit.population.height) == (0, 0)
    world = World(TaskSet.of(task()))
    made = list_chosen(world, sticky()[np.arange(3)])
    size = np.diff(made.seen.offsets)
    place = np.searchsorted(made.seen.offsets, made.option[made.which], side="right") - 1
    assert fit.log_likelihood == pytest.approx(-np.log(size[place]).sum())
    assert repr(fit) == "ActionFit(random: no parameters; 3 people)"
    with pytest.raises(FitError, match="It has: none"):
        fit["repeat"]


def test_what_cannot_be_fitted_is_said():
    cohort = sticky()
    for n in (1, 2):
        with pytest.raises(FitError, match=f"{n} people made a choice that counts; 3 are needed"):
            fidm.fit_action_model(task(), cohort[np.arange(n)], Softmax())
    with pytest.raises(FitError, match="0 people made a choice"):
        fidm.fit_action_model(task(), cohort[np.arange(0)], Softmax())
    with pytest.raises(FitError, match="str is no action model"):
        fidm.fit_action_model(task(), cohort, "softmax")
    with pytest.raises(FitError, match="level"):
        fidm.fit_action_model(task(), cohort, Softmax(), level=95)


def test_a_discount_is_recovered_where_it_shows():
    people = {"action_sensitivity": (15.0, 0.3), "discount": (0.8, 0.3)}
    cohort = fidm.simulate_choices(task(), Discounting(), people, 40, seed=2, episodes=3, max_steps=60)
    fit = fidm.fit_action_model(task(), cohort, Discounting())
    row = fit.population.filter(parameter="discount").row(0, named=True)
    assert abs(row["mean"] + np.log(0.2)) < 3 * row["mean_se"]


def test_draws_for_arviz_give_nearly_the_same_score_as_integrals():
    import arviz

    model = fidm.load_task("errands")
    cohort = fidm.simulate_choices(
        model, Softmax(), {"action_sensitivity": (15.0, 0.4)}, 8, seed=1, episodes=4, max_steps=25
    )
    fit = fidm.fit_action_model(model, cohort, Softmax())
    data = fit.to_inference_data(draws=1_000, seed=1)
    assert data.posterior["action_sensitivity"].shape == (1, 1_000, 8)
    found = arviz.loo(data)
    own = np.concatenate([np.arange(n) for n in np.bincount(fit.made.owner)])
    exact = fit.shared.log_predictive_trials(tabulate(Softmax(), fit.made, own, 4)).sum()
    assert found["elpd_loo"] == pytest.approx(exact, abs=2.0)
