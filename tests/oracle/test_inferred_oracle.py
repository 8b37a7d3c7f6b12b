"""Inferred moves and averages over groundings agree with slow loops."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

import fidm
from fidm.fit.averaged import average_profiles
from oracle import slow_average, slow_fit


@functools.cache
def walked():
    task = fidm.load_task("grocery")
    cohort = fidm.simulate_cohort(task, 25, seed=3, max_steps=60)
    rng = np.random.default_rng(1)
    weight = rng.choice([0.0, 0.5, 1.0, 1.5], cohort.n_steps)
    return task, fidm.solve(task), replace(cohort, inferred=rng.random(cohort.n_steps) < 0.3, weight=weight)


def rows_of(cohort, j, inferred):
    """Values of the legal actions, which was chosen, and how much it counts."""
    task, values, _ = walked()
    rows = []
    for i in range(int(cohort.step_offsets[j]), int(cohort.step_offsets[j + 1])):
        state, action = int(cohort.state[i]), int(cohort.action[i])
        if not task.counted[state] or cohort.weight[i] == 0.0:
            continue
        legal = task.action[task.offsets[state] : task.offsets[state + 1]].tolist()
        weight = float(cohort.weight[i]) * (inferred if cohort.inferred[i] else 1.0)
        rows.append(
            (
                [float(values.q[state, a]) for a in legal],
                legal.index(action),
                weight,
                bool(cohort.inferred[i]),
            )
        )
    return rows


def score(rows, eta):
    return sum(weight * slow_fit.action_score([(q, c)], eta) for q, c, weight, _ in rows if weight)


@pytest.mark.parametrize("inferred", [0.0, 0.4, 1.0])
def test_sensitivity_likelihood_and_share(inferred):
    task, values, cohort = walked()
    fit = fidm.Model(task, channels=(), inferred=inferred, values=values).fit(cohort, method="mle")
    profile, likelihood = fit.profile(cohort), fit.log_likelihood(cohort)["action"].to_numpy()
    checked = 0
    for j in range(len(cohort)):
        rows = rows_of(cohort, j, inferred)
        assert profile.inferred_share[j] == sum(row[3] for row in rows) / len(rows)
        assert profile.n[j, 0] == sum(row[2] > 0 for row in rows)
        eta = float(profile.estimate[j, 0])
        if not (0 < eta < math.inf):
            continue
        expected = optimize.brentq(lambda x, rows=rows: score(rows, x), eta / 2, eta * 2, rtol=1e-13)
        assert eta == pytest.approx(expected, rel=1e-8)
        slow = sum(w * slow_fit.log_policy(q, c, eta) for q, c, w, _ in rows if w)
        assert likelihood[j] == pytest.approx(slow, rel=1e-10)
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("method", ["eb", "mle"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_averages_over_groundings(method, level):
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 25, seed=1)
    fit = fidm.Model(task).fit(people, method=method, level=level)
    profiles = [
        fit.profile(
            fidm.simulate_cohort(task, 25, seed=seed, max_steps=40).with_participants(people.participants)
        )
        for seed in (2, 3, 4, 5)
    ]
    together = average_profiles(profiles)
    checked = 0
    for j in range(25):
        for k in range(6):
            natural = math.log if k == 0 else float
            raw = [
                [float(getattr(p, name)[j, k]) for p in profiles]
                for name in ("estimate", "se", "low", "high")
            ]
            if not np.isfinite(raw).all() or (k == 0 and min(raw[2]) == 0.0):
                continue
            errors = [float(p.log_sensitivity_se[j]) for p in profiles] if k == 0 else raw[1]
            estimates = [float(p.log_sensitivity[j]) for p in profiles] if k == 0 else raw[0]
            mean, error, share = slow_average.rubin(estimates, errors)
            if k == 0:
                assert together.log_sensitivity[j] == pytest.approx(mean, rel=1e-12)
                assert together.log_sensitivity_se[j] == pytest.approx(error, rel=1e-12)
            assert natural(together.estimate[j, k]) == pytest.approx(mean, rel=1e-10, abs=1e-12)
            scale = together.estimate[j, k] if k == 0 else 1.0
            assert together.se[j, k] == pytest.approx(scale * error, rel=1e-10)
            assert together.grounding_share[j, k] == pytest.approx(share, rel=1e-9)
            for name, ends, sign in (("low", raw[2], -1), ("high", raw[3], 1)):
                expected = slow_average.end(estimates, [natural(e) for e in ends], level, sign)
                assert natural(getattr(together, name)[j, k]) == pytest.approx(expected, rel=1e-9, abs=1e-11)
            checked += 1
    assert checked > 100
