"""A joint prior keeps correlations that are clear, and steps back where none is."""

from __future__ import annotations

import numpy as np

import fidm
from fidm.fit.joint import JointPrior, clear
from fidm.simulate.cohort import People


def prior(*correlations):
    found = np.eye(3)
    found[np.triu_indices(3, 1)] = correlations
    found += np.triu(found, 1).T
    sd = np.array([0.4, 0.3, 2.0])
    return JointPrior(np.zeros(3), found * np.outer(sd, sd))


def test_correlations_that_may_be_chance_are_left_out():
    kept = clear(prior(0.5, 0.1, -0.05), 400)
    assert np.allclose(kept.covariance, prior(0.5, 0.0, 0.0).covariance)
    assert clear(prior(0.5, 0.1, -0.05), 30) is None


def test_what_is_left_is_still_a_covariance():
    own = prior(0.9, 0.9, 0.7)
    kept = clear(own, 14)  # the third is dropped, and .9, .9, 0 cannot be
    assert np.linalg.eigvalsh(kept.covariance)[0] > 0
    assert np.allclose(np.diag(kept.covariance), np.diag(own.covariance))
    assert kept.covariance[1, 2] == 0


def test_independent_parameters_are_estimated_one_at_a_time():
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 60, seed=4)
    joint, alone = (fidm.Model(task).fit(people, joint=way) for way in (True, False))
    assert joint.joint is None
    assert any("clearly go together" in said for said in joint.notes)
    assert np.array_equal(joint.profile(people).low, alone.profile(people).low, equal_nan=True)


def test_parameters_that_go_together_inform_each_other():
    correlation = np.eye(6)
    correlation[1, 2] = correlation[2, 1] = 0.9
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 150, seed=4, people=People(correlation=correlation))
    fit = fidm.Model(task).fit(people, joint=True)
    assert fit.joint is not None
    assert fit.joint.covariance[1, 2] > 0
    assert fit.joint.covariance[0, 3] == 0
