"""Changes within people: the integral over people, what is learned from it, and when it must not be."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import fidm
from fidm.channels import Bernoulli, Gamma, LogNormal
from fidm.errors import FitError
from fidm.fit.fitted import Data
from fidm.fit.offsets import Population
from fidm.fit.population import _marginal
from fidm.fit.within import (
    CLEARLY,
    _Choosing,
    _integrated,
    _Observing,
    _People,
    _spread_slopes,
    offsets_within,
    sensitivity_within,
)
from fidm.model.effort import Observed
from fidm.simulate.cohort import People
from fidm.tasks.stack import TaskSet

SD_A, SD_B, R = 0.5, 0.4, 0.3
SPREAD = [math.log(SD_A), math.log(SD_B), math.atanh(R)]
COVARIANCE = np.array([[SD_A**2, R * SD_A * SD_B], [R * SD_A * SD_B, SD_B**2]])


def seen(channel, n=8, *, visits=2, level=0.5, change=0.2, differ=0.4, at_least=1, at_most=5, seed=0):
    """Observations of people at several visits: by visit, with owners and visits."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), visits)
    visit = np.tile(np.arange(visits), n).astype(np.float64)
    own = level * rng.normal(size=n)[owner] + (change + differ * rng.normal(size=n)[owner]) * visit
    counts = rng.integers(at_least, at_most, len(owner))
    y = channel.sample(np.repeat(0.3 + own, counts), 2.0, rng)
    x = np.ones((1, len(y)))
    return Observed(y, x, np.append(0, np.cumsum(counts)), np.arange(len(y))), owner, visit[:, None]


def observing(channel, data, people, *, carried=0.0):
    wide = np.concatenate([data.x, np.repeat(people.z.T, data.counts, axis=1)])
    return _Observing.of(channel, Observed(data.y, wide, data.offsets, data.row), 2.0, carried)


@functools.cache
def choices(n=8, first=40, second=12):
    """The choices of people at two visits, at the second of whom they choose less."""
    task = fidm.load_task("errands")
    tasks = TaskSet.of(task)
    q = tasks.values([fidm.solve(task)])
    parts = [
        fidm.simulate_cohort(task, n, seed=4, first=n * visit, max_steps=most)
        for visit, most in enumerate((first, second))
    ]
    cohort = fidm.Cohort.concat(parts)[np.arange(2 * n).reshape(2, n).T.ravel()]
    data = Data.of(tasks, q, (), {}, cohort, need_columns=True, inferred=0.0)
    return data.choices, np.repeat(np.arange(n), 2), np.tile([0.0, 1.0], n)[:, None]


# ---------------------------------------------------------------------- the integral


STEP = 0.04
A, B = (axis.ravel() for axis in np.mgrid[-3.6:3.6:STEP, -3.0:3.0:STEP])
"""A grid of (a, b) far wider and closer than it need be."""


def brute_force(log_likelihood):
    """The log of the integral of a likelihood, known on the grid, times the density of (a, b)."""
    normal = stats.multivariate_normal.logpdf(np.column_stack([A, B]), np.zeros(2), COVARIANCE)
    return special.logsumexp(log_likelihood + normal) + 2 * math.log(STEP)


def test_gamma_observations_are_integrated_as_by_brute_force():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel)
    people = _People.of(owner, visit)
    free = np.array([0.3, 0.2, math.log(2.0), *SPREAD])
    found = _integrated(observing(channel, data, people), people, free, 2).value
    for j in range(8):
        total = np.zeros(len(A))
        for unit in (2 * j, 2 * j + 1):
            scale = np.exp(0.3 + (0.2 + B) * people.z[unit, 0] + A) / 2.0
            for y in data.y[slice(*data.offsets[unit : unit + 2])]:
                total += stats.gamma.logpdf(y, 2.0, scale=scale)
        assert found[j] == pytest.approx(brute_force(total), abs=1e-8)


def test_choices_are_integrated_as_by_brute_force():
    found, owner, visit = choices()
    people = _People.of(owner, visit)
    value = _integrated(_Choosing.of(found, people.z, 0.0, 1), people, np.array([3.0, 0.2, *SPREAD]), 2).value
    for j in (0, 3, 7):
        total = np.zeros(len(A))
        for unit in (2 * j, 2 * j + 1):
            eta = np.exp(3.0 + (0.2 + B) * people.z[unit, 0] + A)
            for i in range(*found.person_offsets[unit : unit + 2]):
                options = found.q[slice(*found.offsets[found.row[i] : found.row[i] + 2])]
                total += eta * found.q[found.pair[i]] - special.logsumexp(np.outer(options, eta), axis=0)
        assert value[j] == pytest.approx(brute_force(total), abs=1e-8)


def test_of_log_normal_observations_the_integral_is_known():
    channel = LogNormal("pause", "pause_s", design=())
    data, owner, visit = seen(channel, visits=3)
    people = _People.of(owner, visit)
    free = np.array([0.3, 0.2, math.log(2.0), *SPREAD])
    found = _integrated(observing(channel, data, people), people, free, 2).value
    logs = np.log(channel.record(data.y))
    for j in range(len(people)):
        units = np.arange(people.offsets[j], people.offsets[j + 1])
        z = np.repeat(people.z[units, 0], data.counts[units])
        taken = np.column_stack([np.ones(len(z)), z])
        own = logs[data.offsets[units[0]] : data.offsets[units[-1] + 1]]
        spread = taken @ COVARIANCE @ taken.T + 4.0 * np.eye(len(z))
        known = stats.multivariate_normal.logpdf(own, 0.3 + 0.2 * z, spread) - own.sum()
        assert found[j] == pytest.approx(known, abs=1e-8)


def test_with_one_visit_each_it_is_the_integral_of_random_intercepts():
    channel = Bernoulli("pause_presence", "pause_s", design=())
    data, owner, visit = seen(channel)
    people = replace(_People.of(owner, visit), offsets=np.arange(len(owner) + 1))
    units = observing(channel, data, people, carried=0.2)
    found = _integrated(units, people, np.array([0.3, 0.2, math.log(SD_A)]), 1)
    shared = Population(np.array([0.3, 0.2]), 1.0, 0.0, SD_A, carried=0.2)
    value, slopes = _marginal(channel, units.data, shared, 1, learn="all")
    assert found.value == pytest.approx(value, abs=1e-7)
    assert found.slopes == pytest.approx(slopes, abs=1e-5)  # its nodes are fewer


@pytest.mark.parametrize("what", ["effort", "choices", "alike"])
def test_slopes_are_those_of_the_integral(what):
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel)
    width = 1 if what == "alike" else 2
    free = np.array([0.3, 0.2, math.log(2.0), *SPREAD[: 2 * width - 1]])
    if what == "choices":
        found, owner, visit = choices()
        free = np.array([3.0, 0.2, *SPREAD])
    people = _People.of(owner, visit)
    units = _Choosing.of(found, people.z, 0.02, 1) if what == "choices" else observing(channel, data, people)
    slopes = _integrated(units, people, free, width).slopes
    for place, step in enumerate(1e-4 * np.eye(len(free))):
        ahead, behind = (_integrated(units, people, free + sign * step, width).value for sign in (1, -1))
        assert slopes[:, place] == pytest.approx((ahead - behind) / 2e-4, abs=1e-5)


def test_slopes_of_the_spread_vanish_where_people_differ_as_said():
    correlation = np.array([[[1.0, R], [R, 1.0]]])
    assert _spread_slopes(correlation, R) == pytest.approx(np.zeros((1, 3)), abs=1e-15)


# ---------------------------------------------------------------------- what is learned


def test_a_change_is_found_and_that_people_differ_in_it():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 60, change=0.4, differ=0.5, at_least=8, at_most=14)
    found = offsets_within(channel, data, {}, owner, visit)
    low, high = found.intervals(0.95)
    assert low[0] < 0.4 < high[0]
    assert found.p_values()[0] < 0.001
    assert found.gain > CLEARLY
    assert found.differs
    assert found.slope_sd == pytest.approx(0.5, abs=0.15)
    assert found.spread == pytest.approx(math.hypot(0.5, 0.25), abs=0.15)
    assert (found.n_people, found.n_paired, found.freedom) == (60, 60, 59)
    assert found.together() == pytest.approx(found.p_values()[0], rel=1e-9)


def test_people_who_change_alike_have_one_change():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 60, change=0.4, differ=0.0, at_least=8, at_most=14, seed=1)
    found = offsets_within(channel, data, {}, owner, visit)
    assert found.gain <= 0
    assert not found.differs
    assert found.slope_sd == 0
    assert math.isnan(found.correlation)
    assert found.se[0] < 0.07  # episodes as people would have 0.1


def test_pairs_are_told_from_people_of_their_own():
    """Large differences among people do not hide a small change."""
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 30, level=1.5, change=0.3, differ=0.0, at_least=10, at_most=16)
    found = offsets_within(channel, data, {}, owner, visit)
    assert found.p_values()[0] < 0.01
    assert found.se[0] < 0.1


def test_the_unit_of_a_number_does_not_matter():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 20, visits=3, at_least=3, at_most=8)
    one, other = (offsets_within(channel, data, {}, owner, z) for z in (visit, 60 * visit + 7))
    assert other.slopes * 60 == pytest.approx(one.slopes, rel=1e-5)
    assert other.se * 60 == pytest.approx(one.se, rel=1e-4)
    assert other.slope_sd * 60 == pytest.approx(one.slope_sd, rel=1e-4)


def test_several_conditions_are_several_contrasts():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 30, visits=3, change=0.4, differ=0.0, at_least=6, at_most=9)
    known = np.column_stack([visit == 1, visit == 2]).astype(np.float64)
    found = offsets_within(channel, data, {}, owner, known)
    low, high = found.intervals(0.99)
    assert (low < [0.4, 0.8]).all()
    assert (high > [0.4, 0.8]).all()
    assert math.isnan(found.gain)
    assert found.together() < 0.001
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(found.se)


def test_choices_tell_a_change():
    found = sensitivity_within(*big_change())
    low, high = found.intervals(0.95)
    assert low[0] < -0.8 < high[0] < 0
    assert found.parameter == "action_sensitivity"


@functools.cache
def big_change(n=40):
    """People whose η falls by the factor e^-0.8."""
    task = fidm.load_task("errands")
    tasks = TaskSet.of(task)
    q = tasks.values([fidm.solve(task)])
    own = 0.5 * np.random.default_rng(2).normal(size=n)
    alike = People(log_sensitivity_sd=1e-9)
    parts = []
    for visit in (0, 1):
        shifts = np.zeros((n, 6))
        shifts[:, 0] = own - 0.8 * visit
        parts.append(
            fidm.simulate_cohort(task, n, seed=3, first=n * visit, max_steps=60, people=alike, shifts=shifts)
        )
    cohort = fidm.Cohort.concat(parts)[np.arange(2 * n).reshape(2, n).T.ravel()]
    data = Data.of(tasks, q, (), {}, cohort, need_columns=True, inferred=0.0)
    return data.choices, np.repeat(np.arange(n), 2), np.tile([1.0, 2.0], n)[:, None]


def test_the_order_of_people_changes_no_bit():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 12, at_least=3, at_most=6)
    turned = np.arange(24).reshape(12, 2)[::-1].ravel()
    rows = np.concatenate([np.arange(data.offsets[u], data.offsets[u + 1]) for u in turned])
    offsets = np.append(0, np.cumsum(data.counts[turned]))
    other = Observed(data.y[rows], data.x[:, rows], offsets, np.arange(len(rows)))
    one, two = (
        offsets_within(channel, what, {}, who, z)
        for what, who, z in ((data, owner, visit), (other, owner, visit[turned]))
    )
    assert one.slopes.tobytes() == two.slopes.tobytes()
    assert one.se.tobytes() == two.se.tobytes()


def test_people_with_one_visit_take_part_but_do_not_count_as_pairs():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 20, at_least=3, at_most=6)
    once = np.flatnonzero((owner < 6) & (visit[:, 0] == 1))
    lost = np.isin(np.arange(len(owner)), once)
    found = offsets_within(channel, data.without(lost), {}, owner, visit)
    assert (found.n_people, found.n_paired, found.freedom) == (20, 14, 13)


def test_too_few_pairs_are_refused():
    channel = Gamma("duration", "duration_s", design=())
    data, owner, visit = seen(channel, 20)
    lost = (owner >= 4) & (visit[:, 0] == 1)
    with pytest.raises(FitError, match="4 people can be compared with themselves in it; at least 5"):
        offsets_within(channel, data.without(lost), {}, owner, visit)
    with pytest.raises(ValueError, match="side by side"):
        offsets_within(channel, data, {}, np.tile(np.arange(20), 2), visit)
