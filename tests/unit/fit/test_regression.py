"""Covariates of latent parameters: what a formula makes of people, and what is learned from it."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.fit.fitted import Data
from fidm.fit.population import random_intercepts
from fidm.fit.regression import Covariates, regress_offsets, regress_sensitivity
from fidm.fit.sensitivity import _Learning, _marginal
from fidm.model.effort import Observed, paper_channels
from fidm.tasks.stack import TaskSet

PEOPLE = pl.DataFrame(
    {
        "participant": ["a", "b", "c", "d", "e"],
        "age": [60.0, 70.0, None, 65.0, float("nan")],
        "group": ["x", "y", "x", None, "y"],
        "years": [1, 2, 3, 4, 5],
        "site": ["one"] * 5,
    }
)


@functools.cache
def cohort(n=30):
    return fidm.simulate_cohort(fidm.load_task("errands"), n, seed=7, max_steps=30)


@functools.cache
def data(n=30):
    task = fidm.load_task("errands")
    tasks = TaskSet.of(task)
    q = tasks.values([fidm.solve(task)])
    return Data.of(tasks, q, paper_channels(), {}, cohort(n), need_columns=True, inferred=0.0)


def covariate(n=30):
    return np.linspace(-1, 1, n)[:, None]


def test_a_formula_becomes_columns_around_their_means():
    found = Covariates.of(PEOPLE, "years + C(group)")
    assert found.names == ("years", "C(group)[T.y]")
    assert found.terms == {"years": (0,), "C(group)": (1,)}
    assert found.complete.tolist() == [True, True, True, False, True]
    assert found.values[found.complete].mean(axis=0) == pytest.approx([0, 0])
    assert found.values[:, 0].tolist() == [-1.75, -0.75, 0.25, 0, 2.25]


def test_whoever_lacks_a_value_is_in_no_group():
    """formulaic takes a missing text for the first group."""
    assert Covariates.of(PEOPLE, "C(group)").complete.tolist() == [True, True, True, False, True]
    assert Covariates.of(PEOPLE, "age").complete.tolist() == [True, True, False, True, False]


def test_terms_of_several_columns_can_be_left_out():
    many = pl.DataFrame({"years": np.arange(20.0), "group": ["x", "y"] * 10})
    found = Covariates.of(many, "bs(years, df=3) + C(group)")
    assert len(found.terms["bs(years, df=3)"]) == 3
    less = found.without(found.terms["bs(years, df=3)"])
    assert (less.names, dict(less.terms)) == (("C(group)[T.y]",), {"C(group)": (0,)})


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("height", "names 'height', which the participants do not have"),
        ("age ~ years", "must have no outcome"),
        ("years +", "cannot be read"),
        ("C(site) + years", "same for everybody"),
        ("years + I(2 * years)", "follow from each other"),
    ],
)
def test_formulas_that_cannot_be_used_are_named(formula, said):
    with pytest.raises(fidm.DataError, match=said):
        Covariates.of(PEOPLE, formula)


@pytest.mark.parametrize("random", [False, True])
def test_the_slopes_of_the_marginal_likelihood_are_its_derivatives(random):
    learning = _Learning(replace(data().choices, known=covariate()), 1)
    table = learning.table(0.0)
    likelihood = np.exp(table - table.max(axis=1)[:, None])
    chance = np.full(30, 0.2) if random else None
    free = np.array([3.0, math.log(0.4), *([-1.0] if random else []), 0.3])
    value, slopes = _marginal(likelihood, learning.grid, free, chance, learning.known)
    assert slopes.shape == (30, len(free))
    for k, unit in enumerate(np.eye(len(free))):
        ahead, behind = (
            _marginal(likelihood, learning.grid, free + step * unit, chance, learning.known)[0]
            for step in (1e-5, -1e-5)
        )
        assert slopes[:, k] == pytest.approx((ahead - behind) / 2e-5, abs=1e-6)
    assert np.isfinite(value).all()


def test_nothing_depends_on_the_order_of_people():
    found = regress_sensitivity(data().choices, covariate(), lapse=0.0)
    turned = cohort()[np.arange(29, -1, -1)]
    tasks = TaskSet.of(fidm.load_task("errands"))
    q = tasks.values([fidm.solve(tasks.tasks[0])])
    other = Data.of(tasks, q, (), {}, turned, need_columns=True, inferred=0.0)
    again = regress_sensitivity(other.choices, covariate()[::-1], lapse=0.0)
    assert found.slopes.tolist() == again.slopes.tolist()


def test_effort_goes_with_covariates_as_with_columns_of_its_own():
    channel, seen = paper_channels()[0], data().effort[0]
    wide = np.concatenate([seen.x, np.repeat(covariate().T, seen.counts, axis=1)])
    names = ("intercept", "log_moves")
    alone = random_intercepts(channel, Observed(seen.y, wide, seen.offsets, seen.row), (*names, "age"), 1)
    found = random_intercepts(channel, replace(seen, known=covariate()), names, 1)
    assert found.population.slopes[0] == pytest.approx(alone.population.coefficients[2], abs=1e-7)
    assert found.population.sd == pytest.approx(alone.population.sd, rel=1e-6)
    assert found.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-8)
    assert np.sqrt(found.covariance[0, 0]) == pytest.approx(alone.se["age"], rel=1e-4)
    leaned = regress_offsets(channel, seen, {}, covariate())  # a weak hyperprior draws slopes towards 0
    assert 0.95 < leaned.slopes[0] / found.population.slopes[0] < 1
    assert (leaned.n_people, leaned.n_free, leaned.freedom) == (30, 5, 25)


def test_a_likelihood_ratio_and_a_slope_agree():
    with_age = regress_sensitivity(data().choices, covariate(), lapse=0.0)
    without = regress_sensitivity(data().choices, np.zeros((30, 0)), lapse=0.0)
    assert with_age.against(without) == pytest.approx(float(with_age.p_values()[0]), abs=0.15)
    low, high = with_age.intervals(0.95)
    assert low[0] < with_age.slopes[0] < high[0]


def test_too_few_people_are_refused_in_words():
    with pytest.raises(fidm.FitError, match="3 people were observed in it; that is too few to learn 3"):
        regress_sensitivity(data(3).choices, covariate(3), lapse=0.0)


def test_lapse_rates_whose_roots_are_the_same_are_both_known():
    learning, rate = _Learning(data().choices, 1), 0.03
    beside = math.nextafter(rate, 1)
    assert math.sqrt(rate) == math.sqrt(beside)
    for one in (0.0, rate, beside):
        learning.at(one, random=False)
    assert len(learning._rates(rate, False, given=False)) > 1
