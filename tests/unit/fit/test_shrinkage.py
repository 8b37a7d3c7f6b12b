"""Why an estimate is what it is: the person's own data, other people, and the weight of either."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fidm

TASK = fidm.load_task("errands")
COHORT = fidm.simulate_cohort(TASK, 30, seed=1, max_steps=25)


def sure(fit):
    """The same fit with what people share taken as known, of which the formulas speak."""
    populations = {name: replace(one, plausible=None) for name, one in fit.populations.items()}
    return replace(fit, prior=replace(fit.prior, plausible=None), populations=populations, kinds=None)


def with_spread(fit, factor):
    """The same fit whose priors count 1 / factor² times as much."""
    populations = {
        name: replace(one, population=replace(one.population, sd=one.population.sd * factor))
        for name, one in fit.populations.items()
    }
    return replace(fit, prior=replace(fit.prior, sd=fit.prior.sd * factor), populations=populations)


@pytest.fixture(scope="module")
def fit():
    return sure(fidm.Model(TASK).fit(COHORT))


@pytest.mark.parametrize(("column", "factor"), [("half", np.sqrt(2)), ("double", np.sqrt(0.5))])
def test_a_prior_that_counts_more_or_less_is_foretold(fit, column, factor):
    found = fit.shrinkage_table(COHORT).join(
        with_spread(fit, factor).profile(COHORT).table, on=["participant", "parameter"]
    )
    assert found["parameter"].n_unique() == len(fit.parameters)
    for (name,), rows in found.group_by("parameter"):
        before, told, exact = (rows[one].to_numpy() for one in ("estimate", column, "estimate_right"))
        if name == "action_sensitivity":
            before, told, exact = np.log(before), np.log(told), np.log(exact)
        missed, moved = np.abs(told - exact), np.abs(exact - before)
        if name == "pause":  # a log-normal channel has normal posteriors
            assert np.allclose(told, exact, atol=1e-8)
        assert np.median(missed) < 0.3 * np.median(moved)


def test_an_estimate_lies_between_own_data_and_others(fit):
    table = fit.shrinkage_table(COHORT).filter(parameter="pause")
    own, others, share = (table[name].to_numpy() for name in ("own", "others", "shrinkage"))
    assert np.allclose(table["estimate"], (1 - share) * own + share * others, atol=1e-8)


def test_maximum_likelihood_shrinks_nothing(fit):
    assert fit._alone().shrinkage_table(COHORT).height == 0
