"""What inferred moves and groundings must not change, and what weights they amount to."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import fidm
from fidm.fit.averaged import average_profiles
from fidm.fit.profile import PER_PERSON, Profile
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People

WAYS = [{}, {"method": "mle", "population": "pooled"}, {"joint": True}]
WAY_IDS = ["eb", "paper", "joint"]
CHANNELS = paper_channels()[:2]
"""Enough of effort: which moves count is the same to every channel."""
COUNTED = ("estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se")


@functools.cache
def setting():
    """People who differ enough in effort that a joint prior is learned in some fifty rounds, not two thousand."""
    task = fidm.load_task("errands")
    people = People(effort_sd=0.7)
    plain = fidm.simulate_cohort(task, 40, seed=4, max_steps=40, wrong_moves=0.02, people=people)
    rng = np.random.default_rng(3)
    return task, plain, rng.random(plain.n_steps) < 0.3, rng.choice([0.0, 0.5, 1.0, 2.0], plain.n_steps)


def same(a: Profile, b: Profile, names=PER_PERSON, rows=slice(None)):
    for name in names:
        left, right = getattr(a, name), getattr(b, name)[rows]
        assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), name


def compared(cohort, weight, other, way):
    """The same people as two cohorts: what is learned and estimated must agree to the last bit."""
    task = setting()[0]
    a = fidm.Model(task, channels=CHANNELS, inferred=weight).fit(cohort, **way)
    b = fidm.Model(task, channels=CHANNELS).fit(other, **way)
    assert_frame_equal(a.population_table(), b.population_table(), check_exact=True)
    mine, theirs = a.profile(cohort), b.profile(other)
    same(mine, theirs, [name for name in COUNTED if name != "status"])
    assert np.array_equal(mine.status[:, 0], theirs.status[:, 0])  # effort says of its own what is in doubt
    assert_frame_equal(a.log_likelihood(cohort), b.log_likelihood(other), check_exact=True)


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_counted_fully_they_are_like_any_other(way):
    _, plain, flags, weight = setting()
    compared(replace(plain, inferred=flags), 1.0, plain, way)
    compared(replace(plain, inferred=flags, weight=weight), 1.0, replace(plain, weight=weight), way)


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_left_out_they_are_steps_of_weight_zero(way):
    _, plain, flags, weight = setting()
    compared(replace(plain, inferred=flags), 0.0, replace(plain, weight=np.where(flags, 0.0, 1.0)), way)
    compared(
        replace(plain, inferred=flags, weight=weight),
        0.0,
        replace(plain, weight=np.where(flags, 0.0, weight)),
        way,
    )


@settings(max_examples=10)
@given(share=st.floats(0, 1), seed=st.integers(0, 1000))
def test_in_between_the_weights_are_multiplied(share, seed):
    task, plain, _, weight = setting()
    flags = np.random.default_rng(seed).random(plain.n_steps) < 0.4
    product = weight * np.where(flags, share, 1.0)
    fit = fidm.Model(task, channels=(), inferred=share).fit(plain, method="mle")
    found = fit.profile(replace(plain, inferred=flags, weight=weight))
    same(found, fit.profile(replace(plain, weight=product)), COUNTED)


def test_flags_that_are_all_false_change_no_bit():
    _, plain, flags, _ = setting()
    for weight in (0.0, 0.5):
        compared(replace(plain, inferred=np.zeros_like(flags)), weight, plain, {})


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_order_and_batches_change_no_bit(way):
    task, plain, flags, _ = setting()
    cohort = replace(plain, inferred=flags)
    order = np.random.default_rng(1).permutation(len(cohort))
    model = fidm.Model(task, channels=CHANNELS, inferred=0.3)
    straight, shuffled = model.fit(cohort, **way), model.fit(cohort[order], **way)
    assert_frame_equal(straight.population_table(), shuffled.population_table(), check_exact=True)
    whole = straight.profile(cohort)
    same(shuffled.profile(cohort[order]), whole, rows=order)
    same(Profile.concat([straight.profile(cohort[:9]), straight.profile(cohort[9:], workers=3)]), whole)


# ---------------------------------------------------------------------- averages over groundings


@functools.cache
def draws(method):
    task, plain, _, _ = setting()
    fit = fidm.Model(task).fit(plain, method=method)
    found = []
    for seed in range(5):
        cohort = fidm.simulate_cohort(task, 40, seed=seed, max_steps=15).with_participants(plain.participants)
        found.append(fit.profile(cohort))
    return fit.profile(plain), found


@pytest.mark.parametrize("method", ["eb", "mle"])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_average_of_one_profile_repeated_is_that_profile(method, k):
    profile = draws(method)[0]
    together = average_profiles([profile] * k)
    same(together, profile)
    assert np.array_equal(together.prior_sd, profile.prior_sd, equal_nan=True)
    assert (together.n_draws, together.method, together.level) == (k, method, 0.95)
    finite = np.isfinite(np.column_stack([profile.log_sensitivity, profile.estimate[:, 1:]]))
    assert (together.grounding_share[finite] == 0).all()


@pytest.mark.parametrize("method", ["eb", "mle"])
def test_people_are_averaged_each_alone_and_in_any_order_of_draws(method):
    found = draws(method)[1]
    whole = average_profiles(found)
    rows = np.random.default_rng(0).permutation(40)[:11]

    def some(profile):
        arrays = {name: getattr(profile, name)[rows] for name in PER_PERSON}
        return replace(profile, participants=profile.participants.gather(rows), **arrays)

    same(average_profiles([some(profile) for profile in found]), whole, rows=rows)
    turned = average_profiles(found[::-1])
    for name in ("estimate", "se", "low", "high"):
        assert getattr(turned, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=1e-12, nan_ok=True)
    assert np.array_equal(turned.status, whole.status)


@pytest.mark.parametrize("method", ["eb", "mle"])
def test_more_draws_of_the_same_kind_narrow_the_interval(method):
    """Twice the same draws: the same mean, and less doubt whether these draws stand for all."""
    found = draws(method)[1]
    once, twice = average_profiles(found), average_profiles([*found, *found])
    known = np.isfinite(once.log_sensitivity_se)
    assert twice.log_sensitivity[known] == pytest.approx(once.log_sensitivity[known], rel=1e-12)
    assert (twice.log_sensitivity_se[known] <= once.log_sensitivity_se[known] * (1 + 1e-12)).all()
    assert (twice.low[known, 0] >= once.low[known, 0] * (1 - 1e-12)).all()
