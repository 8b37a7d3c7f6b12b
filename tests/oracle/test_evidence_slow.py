"""Evidence once more, one step and one segment at a time, straight from the equations."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fidm
from fidm.evidence.evidence import find_evidence
from oracle.slow_fit import log_policy

TOLERANCE = 1e-10


def study(seed, *, inferred=False):
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    cohort = fidm.simulate_cohort(tasks, 15, seed=seed, wrong_moves=0.1, max_steps=60)
    rng = np.random.default_rng(seed)
    fields = {name: getattr(cohort, name) for name in type(cohort).__slots__}
    fields["weight"] = rng.choice([0.0, 0.5, 1.0], cohort.n_steps)
    fields["inferred"] = rng.random(cohort.n_steps) < 0.2 if inferred else None
    return tasks, fidm.Cohort(**fields)


def slow_steps(tasks, cohort, fit, profile):
    """(unexpectedness, gap, counts) of every step."""
    rows = []
    values = {task.name: fidm.solve(task).q for task in tasks}
    for j in range(len(cohort)):
        eta = profile.action_sensitivity[j]
        for e in range(cohort.episode_offsets[j], cohort.episode_offsets[j + 1]):
            task = next(task for task in tasks if task.name == cohort.episodes["task"][e])
            for i in range(cohort.step_offsets[e], cohort.step_offsets[e + 1]):
                state, action = int(cohort.state[i]), int(cohort.action[i])
                if not task.counted[state]:
                    rows.append((None, None, False))
                    continue
                legal = task.action[task.offsets[state] : task.offsets[state + 1]].tolist()
                q = [float(values[task.name][state, a]) for a in legal]
                chosen = legal.index(action)
                weight = 1.0 if cohort.weight is None else cohort.weight[i]
                if cohort.inferred is not None and cohort.inferred[i]:
                    weight *= fit.inferred
                rows.append((slow_surprise(q, chosen, eta, fit.lapse), max(q) - q[chosen], weight > 0))
    return rows


def slow_surprise(q, chosen, eta, lapse):
    if math.isfinite(eta):
        return -log_policy(q, chosen, eta, lapse)
    best = [value > max(q) - 1e-8 for value in q]
    p = (1 - lapse) * best[chosen] / sum(best) + lapse / len(q)
    return -math.log(p) if p > 0 else math.inf


@pytest.mark.parametrize(
    ("method", "lapse", "inferred"),
    [("eb", 0.0, 0.0), ("eb", 0.05, 0.5), ("mle", 0.0, 1.0), ("mle", 0.03, 0.0)],
)
def test_unexpectedness_is_minus_log_of_the_policy(method, lapse, inferred):
    tasks, cohort = study(3, inferred=True)
    fit = fidm.Model(tasks, lapse=lapse, inferred=inferred).fit(cohort, method=method)
    profile = fit.profile(cohort)
    found = find_evidence(fit, cohort).actions
    slow = slow_steps(tasks, cohort, fit, profile)
    assert found["counts"].to_list() == [row[2] for row in slow]
    for name, k in (("unexpectedness", 0), ("q_gap", 1)):
        expected = np.array([row[k] for row in slow], dtype=np.float64)
        np.testing.assert_allclose(found[name].to_numpy(), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("population", ["random", "pooled"])
def test_residuals_are_those_of_the_appendix(population):
    tasks, cohort = study(4)
    fit = fidm.Model(tasks).fit(cohort, population=population)
    profile = fit.profile(cohort)
    table = find_evidence(fit, cohort, profile=profile).segments
    place = {name: j for j, name in enumerate(cohort.ids.to_list())}
    segments = cohort.segments.iter_rows(named=True)
    for found, segment in zip(table.iter_rows(named=True), segments, strict=True):
        j = place[found["participant"]]
        for channel in ("duration", "characters", "turns", "pause", "pause_presence"):
            shared = fit.populations[channel].population
            alpha, beta = shared.coefficients
            xi = alpha + beta * math.log(1 + segment["n_moves"])
            for part, own in (("residual", 0.0), ("own_residual", profile[channel][j])):
                expected = slow_residual(channel, segment, xi + own)
                if expected is None:
                    assert found[f"{channel}_{part}"] is None
                else:
                    assert found[f"{channel}_{part}"] == pytest.approx(expected, abs=TOLERANCE)
            seen = found[f"{channel}_expected"]
            if seen is not None:  # e^ξ is the mean, and of a log-normal the typical value
                chance = 1 / (1 + math.exp(-xi))
                assert seen == pytest.approx(chance if channel == "pause_presence" else math.exp(xi))
            own = slow_z(channel, segment, xi + profile[channel][j], shared.shape)
            assert found[f"{channel}_own_z"] == (None if own is None else pytest.approx(own, abs=TOLERANCE))


def slow_residual(channel, segment, xi):
    if channel == "duration":
        return math.log(segment["duration_s"]) - xi
    if channel == "pause":
        return math.log(segment["pause_s"]) - xi if segment["pause_s"] > 0 else None
    if channel == "pause_presence":
        return (segment["pause_s"] > 0) - 1 / (1 + math.exp(-xi))
    return math.log(1 + segment[f"n_{channel}"]) - math.log(1 + math.exp(xi))


def slow_z(channel, segment, xi, shape):
    """(y − mean) / sd."""
    if channel == "pause":
        return (math.log(segment["pause_s"]) - xi) / shape if segment["pause_s"] > 0 else None
    mean = 1 / (1 + math.exp(-xi)) if channel == "pause_presence" else math.exp(xi)
    if channel == "pause_presence":
        return ((segment["pause_s"] > 0) - mean) / math.sqrt(mean * (1 - mean))
    if channel == "duration":
        return (segment["duration_s"] - mean) / math.sqrt(mean**2 / shape)
    return (segment[f"n_{channel}"] - mean) / math.sqrt(mean + mean**2 / shape)


@pytest.mark.parametrize(
    ("method", "lapse", "inferred"), [("eb", 0.0, 0.0), ("mle", 0.04, 0.5), ("mle", 0.0, 1.0)]
)
def test_unexpectedness_adds_up_to_the_likelihood(method, lapse, inferred):
    tasks, cohort = study(5, inferred=True)
    fit = fidm.Model(tasks, lapse=lapse, inferred=inferred).fit(cohort, method=method)
    counted = find_evidence(fit, cohort).counted
    total = dict.fromkeys(cohort.ids.to_list(), 0.0)
    for row in counted.iter_rows(named=True):
        total[row["participant"]] -= row["weight"] * row["unexpectedness"]
    np.testing.assert_allclose(list(total.values()), fit.log_likelihood(cohort)["action"], atol=TOLERANCE)
