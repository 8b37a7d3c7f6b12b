"""What people share is known as well as its standard errors say, in small studies too."""

from __future__ import annotations

import numpy as np

from fidm.channels import LogNormal
from fidm.fit.plausible import points_for
from fidm.fit.population import random_intercepts
from fidm.model.effort import Observed

PAUSES = (
    ([4, 3, 2], [1.5, 0.9, 1.1]), ([1], [8.0]), ([6, 8, 9, 13], [0.3, 0.8, 0.3, 1.4]), ([5, 11, 15], [1.1, 1.3, 1.2]),
    ([10], [0.3]), ([6, 9, 12, 12], [0.3, 0.6, 0.8, 0.3]), ([5, 12], [0.3, 0.5]),
)  # fmt: skip
"""Moves and pauses of seven people. The likelihood alone has no maximum with a spread among people."""


def test_errors_are_those_of_what_was_maximised():
    """Among 18 pauses the curvature of the likelihood is not even negative definite at the posterior's mode."""
    moves, pauses = (np.concatenate([one[i] for one in PAUSES]).astype(float) for i in (0, 1))
    offsets = np.cumsum([0, *(len(one[0]) for one in PAUSES)])
    x = np.stack([np.ones(len(moves)), np.log1p(moves)])
    data = Observed(np.log(pauses), x, offsets, np.arange(len(pauses)))
    channel = LogNormal("pause", "pause_s", zeros="left_out")
    found = random_intercepts(channel, data, ("intercept", "log_moves"), 1, plausible=True)
    others = found.plausible
    spread = np.sqrt(others.weight @ (others.coefficients - others.weight @ others.coefficients) ** 2)
    for name, least in zip(("intercept", "log_moves"), spread, strict=True):
        assert least <= found.se[name] <= 10 * least


def test_the_smaller_a_study_the_more_populations_stand_for_it():
    found = [points_for(n) for n in (10, 50, 100, 500, 2_000, 10_000)]
    assert found == sorted(found, reverse=True)
    assert all(n & (n - 1) == 0 for n in found)


def test_a_spread_at_its_floor_has_no_error():
    """Twelve people who are alike: maximum likelihood lets the spread vanish, and knows nothing of it."""
    rng = np.random.default_rng(1)
    counts = np.full(12, 8)
    y = np.tile(rng.normal(0, 1, 8), 12)  # everybody's mean is the same
    x = np.stack([np.ones(96), np.tile(np.log1p(np.arange(8)), 12)])
    data = Observed(y, x, np.concatenate([[0], np.cumsum(counts)]), np.arange(96))
    channel = LogNormal("pause", "pause_s", zeros="left_out")
    found = random_intercepts(channel, data, ("intercept", "log_moves"), 1)
    assert found.population.sd < 0.0011
    assert np.isnan(found.se["sd"])
    assert np.isfinite(found.se["intercept"])
