"""A joint prior keeps correlations that are clear, and steps back where none is."""

from __future__ import annotations

import numpy as np

import fidm
from fidm.fit.joint import JointPrior, Likelihoods, chance, clear
from fidm.fit.offsets import WIDE_NODES
from fidm.simulate.cohort import People


def prior(*correlations):
    found = np.eye(3)
    found[np.triu_indices(3, 1)] = correlations
    found += np.triu(found, 1).T
    sd = np.array([0.4, 0.3, 2.0])
    return JointPrior(np.zeros(3), found * np.outer(sd, sd))


def test_correlations_that_may_be_chance_are_left_out():
    kept = clear(prior(0.5, 0.1, -0.05), 1 / 20)
    assert np.allclose(kept.covariance, prior(0.5, 0.0, 0.0).covariance)
    assert clear(prior(0.5, 0.1, -0.05), 1 / 5) is None


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
    kept = clear(own, 1 / 4)  # the third is dropped, and .9, .9, 0 cannot be
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
