"""A joint prior draws correlations to 0 as far as they may be chance, and steps back where none is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import fidm
from fidm.fit.joint import JointPrior, Likelihoods, chance, correlation, shrunk
from fidm.fit.offsets import WIDE_NODES
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People


def prior(*correlations):
    found = np.eye(3)
    found[np.triu_indices(3, 1)] = correlations
    found += np.triu(found, 1).T
    sd = np.array([0.4, 0.3, 2.0])
    return JointPrior(np.zeros(3), found * np.outer(sd, sd))


def test_correlations_are_drawn_to_nothing_as_far_as_they_may_be_chance():
    alone = JointPrior(np.ones(3), np.diag([1.0, 4.0, 9.0]))
    kept = shrunk(prior(0.5, 0.09, -0.05), alone, 0.1)
    assert np.allclose(kept.covariance[0, 1], 1 * 2 * 0.5 * (1 - 0.2**2))
    assert kept.covariance[0, 2] == kept.covariance[1, 2] == 0
    assert np.allclose(np.diag(kept.covariance), [1, 4, 9])  # spreads and means are those of one at a time
    assert np.array_equal(kept.mean, alone.mean)
    assert shrunk(prior(0.5, 0.1, 0.0), alone, 0.5) is None


def test_parameters_that_are_hardly_known_go_together_by_chance():
    """A normal likelihood of variance v under a normal prior of variance s² has the reliability s²/(s² + v)."""
    n, sd, variance = 100, np.array([0.4, 0.3]), np.array([0.16, 0.81])
    seen = Likelihoods(
        tuple(np.zeros(n) for _ in sd),
        tuple(np.full(n, 0.3) for _ in sd),
        (WIDE_NODES, WIDE_NODES),
        tuple(np.tile(-0.5 * (0.3 * WIDE_NODES) ** 2 / v, (n, 1)) for v in variance),
    )
    error = chance(seen, JointPrior(np.zeros(2), np.diag(sd**2)))
    assert np.allclose(error, 0.1 / np.sqrt(np.outer([0.5, 0.1], [0.5, 0.1])))


def test_what_is_left_is_still_a_covariance():
    own = prior(0.9, 0.9, 0.7)
    error = np.array([[0, 0.01, 0.01], [0.01, 0, 0.7], [0.01, 0.7, 0]])
    kept = shrunk(own, own, error)  # the third is dropped, and .9, .9, 0 cannot be
    assert np.linalg.eigvalsh(kept.covariance)[0] > 0
    assert np.allclose(np.diag(kept.covariance), np.diag(own.covariance))
    assert kept.covariance[1, 2] == 0


def test_where_no_correlation_is_left_one_parameter_at_a_time_is_estimated(monkeypatch):
    monkeypatch.setattr("fidm.fit.joint.chance", lambda seen, start: 1.0)
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 20, seed=4)
    joint, alone = (fidm.Model(task).fit(people, joint=way) for way in (True, False))
    assert joint.joint is None
    assert any("go together" in said for said in joint.notes)
    assert np.array_equal(joint.profile(people).low, alone.profile(people).low, equal_nan=True)


def test_doubt_about_what_people_share_widens_intervals_under_a_joint_prior():
    task = fidm.load_task("errands")
    correlation = np.full((6, 6), 0.8) + 0.2 * np.eye(6)
    people = fidm.simulate_cohort(task, 12, seed=4, people=People(correlation=correlation))
    fit = fidm.Model(task).fit(people, joint=True)
    assert fit.joint is not None
    profile, alone = fit.profile(people), replace(fit, joint=None).profile(people)
    doubt = alone.errors / alone.error_given_prior
    assert doubt[:, 1:].max() > 1.05
    told = np.isfinite(profile.se[:, 1:])
    ratio = (profile.errors / profile.error_given_prior)[:, 1:]
    assert np.allclose(ratio[told], np.maximum(doubt, 1)[:, 1:][told])
    drawn = fit.draws(people, 4_000, seed=1)
    assert np.allclose(drawn.values[:, 1].std(axis=1) / profile.se[:, 1], 1, atol=0.05)


def test_parameters_that_go_together_inform_each_other():
    correlation = np.eye(6)
    correlation[1, 2] = correlation[2, 1] = 0.9
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 150, seed=4, people=People(correlation=correlation))
    fit = fidm.Model(task).fit(people, joint=True)
    assert fit.joint is not None
    sd = np.sqrt(np.diag(fit.joint.covariance))
    found = fit.joint.covariance / np.outer(sd, sd)
    assert found[1, 2] > 0.7
    others = found[np.triu_indices(6, 1)]
    assert np.sort(np.abs(others))[-2] < 0.25
    assert (others == 0).sum() >= 5  # about two of three chance correlations are below one error


# ---------------------------------------------------------------------- correlations


def normal_likelihoods(x, noise):
    """Likelihoods of people of whom two numbers were seen with normal noise."""
    nodes = WIDE_NODES
    centre = tuple(x.T)
    scale = (np.full(len(x), noise),) * 2
    log = tuple(np.tile(-0.5 * nodes**2, (len(x), 1)) for _ in range(2))
    return Likelihoods(centre, scale, (nodes, nodes), log)


@pytest.mark.parametrize(("n", "r", "noise"), [(12, 0.0, 0.4), (40, 0.6, 0.7), (40, -0.8, 0.3)])
def test_a_correlation_is_that_of_normal_numbers_seen_with_noise(n, r, noise):
    """In closed form: what is seen is normal with the variances 1 + noise² and the covariance r."""
    rng = np.random.default_rng(n)
    x = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], n) + noise * rng.normal(size=(n, 2))
    known = JointPrior(np.zeros(2), np.eye(2))
    found = correlation(normal_likelihoods(x, noise), known, 0, 1, 0.95)
    tried = np.linspace(-0.98, 0.98, 1_961)
    own = [stats.multivariate_normal([0, 0], [[1 + noise**2, q], [q, 1 + noise**2]]) for q in tried]
    log = np.array([one.logpdf(x).sum() for one in own])
    weight = np.exp(log - log.max())
    up_to = np.cumsum(weight) / weight.sum()
    mean = weight @ tried / weight.sum()
    assert found[1] == pytest.approx(np.sqrt(weight @ (tried - mean) ** 2 / weight.sum()), abs=2e-3)
    for value, share in zip((found[2], found[0], found[3]), (0.025, 0.5, 0.975), strict=True):
        assert value == pytest.approx(np.interp(share, up_to, tried), abs=4e-3)


def test_parameters_themselves_go_together_more_than_their_estimates_do():
    """With 15 actions estimates of η are mostly noise: over 12 studies theirs is less than half of 0.5."""
    task = fidm.load_task("errands")
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        latent = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 60)
        shifts = np.column_stack([0.42 * latent[:, 0], 0.35 * latent[:, 1], np.zeros((60, 4))])
        alike = People(log_sensitivity_sd=1e-9, effort_sd=1e-9)
        people = fidm.simulate_cohort(task, 60, seed=seed, max_steps=15, people=alike, shifts=shifts)
        fit = fidm.Model(task, channels=paper_channels()[:1]).fit(people)
        row = fit.correlations(people).row(0, named=True)
        profile = fit.profile(people)
        plain = np.corrcoef(profile.log_sensitivity, profile["duration"])[0, 1]
        found.append((row["correlation"], plain, row["low"] <= 0.5 <= row["high"]))
    estimate, plain, holds = np.mean(found, axis=0)
    assert estimate == pytest.approx(0.5, abs=0.2)
    assert plain < estimate - 0.1
    assert holds >= 9 / 12


def test_few_people_and_parameters_in_which_all_are_alike_have_no_correlation():
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 9, seed=1)
    assert not fidm.Model(task).fit(people).correlations(people).height
