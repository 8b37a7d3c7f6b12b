"""The prior's share of an estimate is 1 where the data say nothing and near 0 where they decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm

DURATION = fidm.channels.LogNormal("duration", "duration_s", design=())


@pytest.fixture(scope="module")
def segments():
    """Forty people of 1, 2, 3 … segments each."""
    rng, counts = np.random.default_rng(1), np.arange(1, 41)
    theta = np.repeat(rng.normal(0, 0.5, 40), counts)
    spoken = np.exp(1 + theta + rng.normal(0, 0.6, len(theta)))
    who = np.repeat([f"P{j:02}" for j in range(40)], counts)
    return pl.DataFrame({"participant": who, "segment": np.arange(len(who)), "duration_s": spoken})


def with_noise(fit, sd):
    """The same fit, its population taken as known, with this much noise in each observation."""
    learned = fit.populations["duration"]
    known = replace(learned, population=replace(learned.population, shape=sd, carried=0.0), plausible=None)
    return replace(fit, populations={"duration": known}, kinds=None)


def test_it_is_the_share_of_the_prior_in_the_precision(segments):
    fit = with_noise(fidm.fit_effort(segments, DURATION), 0.6)
    information = np.arange(1, 41) / 0.6**2
    prior = 1 / fit.populations["duration"].population.sd ** 2
    assert np.allclose(
        fit.profile(segments).shrinkage[:, 0], 1 - information / (information + prior), atol=1e-7
    )


def test_it_is_1_without_information_and_near_0_with_very_much(segments):
    fit = fidm.fit_effort(segments, DURATION)
    assert with_noise(fit, 1e4).profile(segments).shrinkage.min() > 1 - 1e-5
    assert with_noise(fit, 1e-3).profile(segments).shrinkage.max() < 1e-4


def test_there_is_none_without_an_estimate_or_a_prior(segments):
    fit = fidm.fit_effort(segments, DURATION)
    silent = segments.with_columns(
        pl.when(pl.col("participant") != "P05").then("duration_s").alias("duration_s")
    )
    shares = fit.profile(silent).shrinkage[:, 0]
    assert np.isnan(shares[5])
    assert ((np.delete(shares, 5) > 0) & (np.delete(shares, 5) <= 1)).all()
    assert np.isnan(fidm.fit_effort(segments, DURATION, method="mle").profile(segments).shrinkage).all()


def test_of_action_sensitivity_it_is_that_of_the_logarithm():
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 40, seed=4)
    profile = fidm.Model(task, channels=()).fit(cohort).profile(cohort)
    assert np.allclose(profile.shrinkage[:, 0], (profile.log_sensitivity_se / profile.prior_sd[0]) ** 2)
    assert (profile.shrinkage < 1).all()


def test_doubt_about_the_grounding_is_not_the_priors(segments):
    profile = fidm.fit_effort(segments, DURATION).profile(segments)
    doubted = replace(profile, se=profile.se * 2, grounding_share=np.full(profile.se.shape, 0.75))
    assert np.allclose(doubted.shrinkage, profile.shrinkage)
