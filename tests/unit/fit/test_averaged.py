"""Averaging profiles over groundings: what is checked, and what happens at the edges."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.fit.averaged import average_profiles, profile_draws
from fidm.fit.profile import (
    AT_EDGE,
    AT_ZERO,
    LOW_INFORMATION,
    NO_MAXIMUM,
    NO_OBSERVATION,
    OK,
    STATUSES,
    Profile,
)


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def draws():
    """Three groundings of the same thirty people, as far apart as three sittings would be."""
    first = fidm.simulate_cohort(task(), 30, seed=1)
    others = [fidm.simulate_cohort(task(), 30, seed=seed) for seed in (2, 3)]
    return [first, *(other.with_participants(first.participants) for other in others)]


@functools.cache
def fit(method="eb"):
    return fidm.Model(task()).fit(draws()[0], method=method)


def made(estimate, se=0.2, status=OK, method="mle", low=None, high=None):
    """A profile of one person and two parameters, log η and θ given."""
    log_eta, theta = estimate
    with np.errstate(over="ignore"):
        eta = float(np.exp(log_eta))
        ends = [[eta * np.exp(-2 * se), theta - 2 * se]] if low is None else [low]
        tops = [[eta * np.exp(2 * se), theta + 2 * se]] if high is None else [high]
    finite = np.isfinite(log_eta)
    return Profile(
        participants=pl.Series(["A"]),
        parameters=("action_sensitivity", "duration"),
        estimate=np.array([[eta, theta]]),
        se=np.array([[eta * se if finite else np.nan, se if np.isfinite(theta) else np.nan]]),
        low=np.array(ends, float),
        high=np.array(tops, float),
        status=np.full((1, 2), status, np.int8) if np.isscalar(status) else np.array([status], np.int8),
        n=np.array([[30, 7]]),
        log_sensitivity=np.array([float(log_eta)]),
        log_sensitivity_se=np.array([se if finite else np.nan]),
        method=method,
        level=0.95,
        prior_sd=np.array([0.5, 0.5]) if method == "eb" else np.full(2, np.nan),
        n_steps=np.array([40.0]),
        n_inferred=np.array([10.0]),
    )


def test_draws_may_come_one_at_a_time():
    said = []
    found = profile_draws(fit(), (cohort for cohort in draws()), on_progress=lambda *what: said.append(what))
    expected = average_profiles([fit().profile(cohort) for cohort in draws()])
    assert found.table.equals(expected.table)
    assert said == [("groundings", 1, 0), ("groundings", 2, 0), ("groundings", 3, 0)]


def test_tables_of_an_average_say_how_much_of_the_variance_is_the_grounding_s():
    profile = profile_draws(fit(), draws())
    assert profile.table.columns[-1] == "grounding_share"
    assert profile.table["grounding_share"].to_numpy() == pytest.approx(profile.grounding_share.reshape(-1))
    assert "duration_grounding_share" in profile.wide.columns
    assert ((profile.grounding_share >= 0) & (profile.grounding_share <= 1)).all()
    assert "averaged over 3 groundings" in str(profile.summary())
    assert "grounding_share" not in fit().profile(draws()[0]).table.columns
    parts = [
        profile_draws(fit(), [cohort[rows] for cohort in draws()]) for rows in (slice(0, 7), slice(7, 30))
    ]
    assert Profile.concat(parts).wide.equals(profile.wide)


def test_intervals_are_wider_than_in_one_draw_and_hold_the_estimate():
    for method in ("eb", "mle"):
        profiles = [fit(method).profile(cohort) for cohort in draws()]
        together = average_profiles(profiles)
        width = np.mean([np.log(p.high[:, 0] / p.low[:, 0]) for p in profiles], axis=0)
        known = np.isfinite(width)
        assert (np.log(together.high[:, 0] / together.low[:, 0])[known] >= width[known]).all()
        assert (together.low <= together.estimate).all()
        assert (together.estimate <= together.high).all()


def test_one_draw_is_returned_as_it_is():
    profile = fit().profile(draws()[0])
    assert average_profiles([profile]) is profile
    with pytest.raises(fidm.DataError, match="no groundings"):
        profile_draws(fit(), iter(()))


def test_draws_of_other_people_or_models_are_refused():
    first = draws()[0]
    with pytest.raises(fidm.DataError, match="Draw 2 has"):
        profile_draws(fit(), [first, first[::-1]])
    with pytest.raises(fidm.DataError, match="such as 'P0000029'"):
        profile_draws(fit(), [first, first[:28]])
    mine = fit().profile(first)
    with pytest.raises(fidm.DataError, match="method 'eb', draw 2 'mle'"):
        average_profiles([mine, fit("mle").profile(first)])
    with pytest.raises(fidm.DataError, match=r"inferred 0\.0, draw 3 1\.0"):
        average_profiles([mine, mine, replace(mine, inferred=1.0)])
    with pytest.raises(fidm.DataError, match="has parameters"):
        average_profiles([mine, fidm.Model(task(), channels=()).fit(first).profile(first)])
    with pytest.raises(fidm.DataError, match="an average already"):
        average_profiles([average_profiles([mine, mine]), mine])
    with pytest.raises(fidm.DataError, match="different numbers"):
        Profile.concat([average_profiles([mine, mine]), mine])


def test_counts_are_means_over_the_draws():
    other = replace(made((1, 0)), n=np.array([[33, 8]]), n_steps=np.array([50.0]), n_inferred=np.array([2.0]))
    together = average_profiles([made((1, 0)), other])
    assert together.n.tolist() == [[32, 8]]
    assert together.inferred_share.tolist() == [6 / 45]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([OK, OK, LOW_INFORMATION], OK),
        ([OK, LOW_INFORMATION], LOW_INFORMATION),
        ([OK, OK, NO_MAXIMUM], LOW_INFORMATION),
        ([OK, OK, NO_OBSERVATION], LOW_INFORMATION),
        ([OK, NO_MAXIMUM, NO_MAXIMUM], NO_MAXIMUM),
        ([AT_ZERO, NO_MAXIMUM], NO_MAXIMUM),
        ([AT_EDGE, AT_EDGE, OK], AT_EDGE),
    ],
)
def test_statuses_are_put_together_as_documented(statuses, expected):
    together = average_profiles([made((1.0, 0.5), status=code, method="eb") for code in statuses])
    assert STATUSES[together.status[0, 0]] == STATUSES[expected]


def test_doubt_about_the_grounding_alone_can_make_an_estimate_uninformed():
    near = average_profiles([made((1.0, 0.5), method="eb"), made((1.1, 0.5), method="eb")])
    far = average_profiles([made((0.0, 0.5), method="eb"), made((2.0, 0.5), method="eb")])
    assert [STATUSES[code] for code in near.status[0]] == ["ok", "ok"]
    assert [STATUSES[code] for code in far.status[0]] == ["low_information", "ok"]
    assert far.grounding_share[0, 0] > 0.9
    assert far.grounding_share[0, 1] == 0.0


def test_somebody_at_an_edge_in_some_draws_gets_the_median_and_the_widest_interval():
    finite = made((2.0, 0.3))
    best = made((np.inf, 0.4), status=(NO_MAXIMUM, OK), low=(9.0, 0.0), high=(np.inf, 0.8))
    together = average_profiles([finite, finite, best])
    assert together.estimate[0, 0] == pytest.approx(np.exp(2.0))
    assert together.log_sensitivity[0] == 2.0
    assert together.low[0, 0] == pytest.approx(min(9.0, np.exp(2.0 - 0.4)))
    assert together.high[0, 0] == np.inf
    assert np.isnan([together.se[0, 0], together.log_sensitivity_se[0], together.grounding_share[0, 0]]).all()
    assert STATUSES[together.status[0, 0]] == "low_information"
    assert np.isfinite(together.se[0, 1])
    mostly = average_profiles([finite, best, best])
    assert mostly.estimate[0, 0] == np.inf
    assert STATUSES[mostly.status[0, 0]] == "no_maximum"
    zero = made((-np.inf, 0.4), status=(AT_ZERO, OK), low=(0.0, 0.0), high=(3.0, 0.8))
    both = average_profiles([zero, best])
    assert np.isnan(both.estimate[0, 0])
    assert (both.low[0, 0], both.high[0, 0]) == (0.0, np.inf)
    all_best = average_profiles([best, best])
    assert (all_best.estimate[0, 0], all_best.low[0, 0], all_best.high[0, 0]) == (np.inf, 9.0, np.inf)


def test_somebody_observed_in_some_draws_only():
    seen = made((2.0, 0.3))
    unseen = made((np.nan, np.nan), status=NO_OBSERVATION, low=(0.0, np.nan), high=(np.inf, np.nan))
    together = average_profiles([seen, seen, unseen])
    assert together.estimate[0] == pytest.approx([np.exp(2.0), 0.3])
    assert together.low[0].tolist() == [0.0, -np.inf]
    assert together.high[0].tolist() == [np.inf, np.inf]
    never = average_profiles([unseen, unseen])
    assert np.isnan(never.estimate).all()
    assert np.isnan(never.low[0, 1])
    assert [STATUSES[code] for code in never.status[0]] == ["no_observation"] * 2


def test_an_open_end_in_one_draw_stays_open():
    shut, open_below = made((1.0, 0.0)), made((1.2, 0.0), low=(0.0, -0.4))
    together = average_profiles([shut, open_below])
    assert together.low[0, 0] == 0.0
    assert np.isfinite(together.high[0, 0])
