"""Estimates agree with slow loops, with quadrature, and with statsmodels."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import fidm
from fidm.fit import offsets, sensitivity
from fidm.fit.offsets import Population
from fidm.fit.population import pooled, pooled_prior, random_intercepts
from fidm.model.action import sensitivity_grid
from fidm.model.amounts import Gamma, LogNormal
from fidm.model.counts import Bernoulli, NegativeBinomial, Poisson
from fidm.model.effort import Observed, observed
from oracle import slow_fit

NAMES = ("intercept", "log_moves")
CHANNELS = [
    (Gamma("duration", "y"), 1.9),
    (NegativeBinomial("characters", "y"), 2.2),
    (LogNormal("pause", "y"), 0.98),
    (Poisson("prompts", "y"), 1.0),
    (Bernoulli("presence", "y"), 1.0),
]
IDS = [channel.kind for channel, _ in CHANNELS]
DROP = 0.5 * stats.norm.ppf(0.975) ** 2


@functools.cache
def walked():
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    cohort = fidm.simulate_cohort(task, 40, seed=3, max_steps=60)
    fit = fidm.Model(task, channels=()).fit(cohort, method="mle")
    return task, values, cohort, fit


def rows_of(task, values, cohort, j):
    steps = slice(int(cohort.step_offsets[j]), int(cohort.step_offsets[j + 1]))
    rows = []
    for state, action in zip(cohort.state[steps].tolist(), cohort.action[steps].tolist(), strict=True):
        if task.counted[state]:
            legal = task.action[task.offsets[state] : task.offsets[state + 1]].tolist()
            rows.append(([float(values.q[state, a]) for a in legal], legal.index(action)))
    return rows


@functools.cache
def people(k):
    """Sixty people with two to forty segments each, and one who has none."""
    channel, shape = CHANNELS[k]
    rng = np.random.default_rng(k)
    counts = rng.integers(2, 40, 60)
    counts[7] = 0
    x = np.stack([np.ones(counts.sum()), np.log1p(rng.poisson(3, counts.sum()))])
    theta = rng.normal(0, 0.6, 60)
    y = channel.sample(0.6 + 0.4 * x[1] + np.repeat(theta, counts), shape, rng)
    return Observed(y, x, np.concatenate([[0], np.cumsum(counts)]), np.arange(len(y)))


def test_sensitivity_and_its_interval():
    task, values, cohort, fit = walked()
    profile = fit.profile(cohort)
    checked = 0
    for j in range(len(cohort)):
        rows = rows_of(task, values, cohort, j)
        eta = slow_fit.action_maximum(rows)
        if not math.isfinite(eta):
            assert profile.estimate[j, 0] == eta
            continue
        assert profile.estimate[j, 0] == pytest.approx(eta, rel=1e-8)
        low, high = slow_fit.action_interval(rows, eta, DROP)
        assert profile.low[j, 0] == pytest.approx(low, rel=1e-8)
        assert profile.high[j, 0] == pytest.approx(high, rel=1e-8)
        step = 1e-4 * eta
        bend = (slow_fit.action_score(rows, eta + step) - slow_fit.action_score(rows, eta - step)) / (
            2 * step
        )
        assert profile.se[j, 0] == pytest.approx(1 / math.sqrt(-bend), rel=1e-6)
        checked += 1
    assert checked > 30


def test_log_likelihood_at_the_estimate():
    task, values, cohort, fit = walked()
    found = fit.log_likelihood(cohort)["action"].to_numpy()
    profile = fit.profile(cohort)
    for j in range(0, len(cohort), 7):
        if math.isfinite(profile.estimate[j, 0]):
            rows = rows_of(task, values, cohort, j)
            expected = slow_fit.action_log_likelihood(rows, float(profile.estimate[j, 0]))
            assert found[j] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("lapse", [0.0, 0.07])
def test_posterior_of_the_sensitivity(lapse):
    task, values, cohort, _ = walked()
    fit = fidm.Model(task, channels=(), lapse=lapse).fit(cohort)
    fit = replace(fit, prior=replace(fit.prior, plausible=None, random=0.0), kinds=None)
    profile, marginal = fit.profile(cohort), fit.log_likelihood(cohort, at="prior")["action"]
    for j in (0, 5, 11):
        rows = rows_of(task, values, cohort, j)
        _, sd, (low, median, high), log_mass = slow_fit.posterior(
            lambda u, rows=rows: slow_fit.action_log_likelihood(rows, math.exp(u), lapse),
            fit.prior.mean,
            fit.prior.sd,
            (0.025, 0.5, 0.975),
        )
        assert profile.log_sensitivity[j] == pytest.approx(median, abs=2e-6 * sd)
        assert profile.estimate[j, 0] == math.exp(profile.log_sensitivity[j])
        assert profile.log_sensitivity_se[j] == pytest.approx(sd, rel=1e-6)
        assert math.log(profile.low[j, 0]) == pytest.approx(low, abs=2e-6 * sd)
        assert math.log(profile.high[j, 0]) == pytest.approx(high, abs=2e-6 * sd)
        assert marginal[j] == pytest.approx(log_mass, rel=1e-8)


def average_posterior(log_likelihood, priors, places):
    """Mean, sd and three quantiles of a posterior averaged over priors (mean, sd, weight), on places close by."""
    log = np.array([log_likelihood(place) for place in places])
    likelihood = np.exp(log - log.max())
    density = np.zeros(len(places))
    for mean, sd, weight in priors:
        own = likelihood * stats.norm.pdf(places, mean, sd)
        density += weight * own / own.sum()
    up_to = np.cumsum(density) - 0.5 * density
    mean = density @ places
    sd = math.sqrt(density @ (places - mean) ** 2)
    return mean, sd, np.interp((0.025, 0.5, 0.975), up_to, places)


def test_sensitivity_averaged_over_plausible_priors():
    task, values, cohort, _ = walked()
    fit = fidm.Model(task, channels=(), lapse=0.0).fit(cohort)
    assert fit.prior.plausible is not None
    assert fit.prior.plausible.weight.sum() == pytest.approx(1)
    profile = fit.profile(cohort)
    known = fit.prior.plausible
    for j in (0, 5, 11):
        rows = rows_of(task, values, cohort, j)
        _, sd, (low, median, high) = average_posterior(
            lambda u, rows=rows: slow_fit.action_log_likelihood(rows, math.exp(u)),
            list(zip(known.mean, known.sd, known.weight, strict=True)),
            np.linspace(fit.prior.mean - 5, fit.prior.mean + 3, 1201),
        )
        assert profile.log_sensitivity[j] == pytest.approx(median, abs=2e-3 * sd)
        assert profile.log_sensitivity_se[j] == pytest.approx(sd, rel=2e-3)
        assert math.log(profile.low[j, 0]) == pytest.approx(low, abs=0.01 * sd)
        assert math.log(profile.high[j, 0]) == pytest.approx(high, abs=0.01 * sd)


@pytest.mark.parametrize("k", range(len(CHANNELS)), ids=IDS)
def test_offsets_averaged_over_plausible_populations(k):
    channel, _ = CHANNELS[k]
    data = people(k)
    learned = random_intercepts(channel, data, NAMES, 1, plausible=True)
    known = learned.plausible
    assert known is not None
    found = offsets.integrated(channel, data, learned.population, known, level=0.95)
    places = np.linspace(-3, 3, 301)
    for j in (0, 20):
        own = data.people(j, j + 1)
        density = np.zeros(len(places))
        for r in range(len(known.weight)):
            xi = known.coefficients[r] @ own.x
            shifted = xi + places[:, None]
            log = slow_fit.DENSITIES[channel.kind](own.y, shifted, known.shape[r]).sum(axis=1)
            part = np.exp(log - log.max()) * stats.norm.pdf(places, known.mean[r], known.sd[r])
            density += known.weight[r] * part / part.sum()
        mean = density @ places
        sd = math.sqrt(density @ (places - mean) ** 2)
        low, high = np.interp((0.025, 0.975), np.cumsum(density) - 0.5 * density, places)
        assert found.estimate[j] == pytest.approx(mean, abs=2e-3 * sd)
        assert found.se[j] == pytest.approx(sd, rel=2e-3)
        assert found.low[j] == pytest.approx(low, abs=0.01 * sd)
        assert found.high[j] == pytest.approx(high, abs=0.01 * sd)


def test_a_bound_where_every_choice_was_best():
    values = np.array([[1.0, 0.0], [0.6, 0.1], [0.3, 0.0], [0.9, 0.2], [0.5, 0.0]])
    for level in (0.3, 0.8, 0.95):
        row = fidm.fit_choices(values, [0] * 5, level=level).table.row(0, named=True)
        chance = math.prod(1 / (1 + math.exp(-row["low"] * (a - b))) for a, b in values.tolist())
        assert chance == pytest.approx(1 - level, rel=1e-8)
        assert row["high"] == math.inf


def test_a_bound_where_every_count_is_zero():
    channel = Poisson("n", "n")
    data = Observed(np.zeros(3), np.ones((1, 3)), np.array([0, 3]), np.arange(3))
    found = offsets.maximum(channel, data, Population(np.array([0.5]), 1.0), level=0.95)
    assert found.estimate[0] == -math.inf
    assert math.exp(-3 * math.exp(0.5 + found.high[0])) == pytest.approx(0.05, rel=1e-8)


def test_lapse_maximum_is_the_global_one():
    task, values, cohort, _ = walked()
    fit = fidm.Model(task, channels=(), lapse=0.1).fit(cohort, method="mle")
    profile = fit.profile(cohort)
    grid = np.exp(np.linspace(-6, 9, 1500))
    for j in range(0, len(cohort), 4):
        rows = rows_of(task, values, cohort, j)
        best = max(slow_fit.action_log_likelihood(rows, eta, 0.1) for eta in grid)
        eta = float(profile.estimate[j, 0])
        reached = slow_fit.action_log_likelihood(rows, eta if math.isfinite(eta) else 1e6, 0.1)
        assert reached >= best - 1e-9


@pytest.mark.parametrize("k", range(len(CHANNELS)), ids=IDS)
def test_offsets_by_maximum_likelihood(k):
    channel, shape = CHANNELS[k]
    data = people(k)
    shared = Population(np.array([0.6, 0.4]), shape)
    found = offsets.maximum(channel, data, shared, level=0.95)
    likelihood = offsets.values_at(channel, data, shared, found.estimate)
    checked = 0
    for j in range(60):
        own = data.people(j, j + 1)
        xi = 0.6 + 0.4 * own.x[1]
        if not len(own.y):
            assert np.isnan(found.estimate[j])
        elif (
            channel.lowest is not None
            and len(set(own.y.tolist())) == 1
            and own.y[0] in (channel.lowest, channel.highest)
        ):
            assert np.isinf(found.estimate[j])
        else:
            theta = slow_fit.effort_maximum(channel.kind, own.y, xi, shape)
            assert found.estimate[j] == pytest.approx(theta, abs=1e-7)
            expected = slow_fit.effort_log_likelihood(channel.kind, own.y, xi, shape, theta)
            assert likelihood[j] == pytest.approx(expected, rel=1e-9)
            checked += 1
    assert checked > 45


@pytest.mark.parametrize("k", range(len(CHANNELS)), ids=IDS)
def test_posterior_of_the_offsets(k):
    channel, shape = CHANNELS[k]
    data = people(k)
    shared = Population(np.array([0.6, 0.4]), shape, 0.1, 0.5)
    found, marginal = offsets.posterior(channel, data, shared, level=0.95)
    marginal = marginal + offsets.constants(channel, data, shared)
    for j in (0, 3, 20):
        own = data.people(j, j + 1)
        xi = 0.6 + 0.4 * own.x[1]
        mean, sd, (low, high), log_mass = slow_fit.posterior(
            lambda t, own=own, xi=xi: slow_fit.effort_log_likelihood(channel.kind, own.y, xi, shape, t),
            0.1,
            0.5,
        )
        assert found.estimate[j] == pytest.approx(mean, abs=1e-7)
        assert found.se[j] == pytest.approx(sd, rel=1e-6)
        assert found.low[j] == pytest.approx(low, abs=2e-6 * sd)
        assert found.high[j] == pytest.approx(high, abs=2e-6 * sd)
        assert marginal[j] == pytest.approx(log_mass, rel=1e-7)
    assert found.estimate[7] == pytest.approx(0.1, abs=1e-9)  # nothing observed: the prior itself
    assert found.se[7] == pytest.approx(0.5, rel=1e-6)


# ---------------------------------------------------------------------- statsmodels


@pytest.mark.parametrize("k", range(len(CHANNELS)), ids=IDS)
def test_pooled_population_agrees_with_statsmodels(k):
    channel, _ = CHANNELS[k]
    data = people(k)
    found = pooled(channel, data, NAMES)
    x = data.x.T
    if channel.kind == "negative_binomial":
        model = sm.NegativeBinomial(data.y, x, loglike_method="nb2")
        result = model.fit(disp=0, method="newton", tol=1e-12, maxiter=200, start_params=[0.6, 0.4, 0.5])
        assert found.coefficients == pytest.approx(result.params[:2], rel=1e-6)
        assert 1 / found.shape == pytest.approx(result.params[2], rel=1e-6)
        return
    family = {
        "gamma": sm.families.Gamma(sm.families.links.Log()),
        "poisson": sm.families.Poisson(),
        "bernoulli": sm.families.Binomial(),
        "log_normal": sm.families.Gaussian(),
    }[channel.kind]
    result = sm.GLM(data.y, x, family=family).fit(tol=1e-14, maxiter=200)
    assert found.coefficients == pytest.approx(result.params, rel=1e-6)
    if channel.kind == "log_normal":
        assert found.shape == pytest.approx(math.sqrt(float(np.mean(result.resid_response**2))), rel=1e-9)
    if channel.kind == "gamma":  # statsmodels has no likelihood shape: it is the root of its own equation
        mu = result.fittedvalues
        from scipy import optimize, special

        side = float(np.mean(data.y / mu - np.log(data.y / mu))) - 1
        kappa = optimize.brentq(lambda a: math.log(a) - special.digamma(a) - side, 1e-3, 1e3, xtol=1e-13)
        assert found.shape == pytest.approx(kappa, rel=1e-8)


def test_random_intercepts_of_a_log_normal_agree_with_a_mixed_model():
    data = people(2)
    found = random_intercepts(CHANNELS[2][0], data, NAMES, 1).population
    groups = np.repeat(np.arange(60), data.counts)
    result = sm.MixedLM(data.y, data.x.T, groups).fit(reml=False, gtol=1e-10)
    assert found.coefficients == pytest.approx(result.fe_params, rel=1e-5)
    assert found.shape == pytest.approx(math.sqrt(result.scale), rel=1e-5)
    assert found.sd == pytest.approx(math.sqrt(float(np.asarray(result.cov_re).item())), rel=1e-4)


@pytest.mark.parametrize("k", range(len(CHANNELS)), ids=IDS)
def test_random_intercepts_maximise_the_marginal_likelihood(k):
    """The slow marginal likelihood, by quadrature on a fine grid, is highest where ours says."""
    channel, _ = CHANNELS[k]
    data = people(k).people(0, 25)
    found = random_intercepts(channel, data, NAMES, 1).population
    nodes = np.linspace(-5, 5, 101)

    def slow(coefficients, shape, sd):
        total = 0.0
        for j in range(25):
            own = data.people(j, j + 1)
            xi = coefficients[0] + coefficients[1] * own.x[1]
            at = np.array([slow_fit.DENSITIES[channel.kind](own.y, xi + t, shape).sum() for t in nodes * sd])
            at += stats.norm.logpdf(nodes)
            total += np.logaddexp.reduce(at) + math.log(nodes[1] - nodes[0])
        return total

    best = slow(found.coefficients, found.shape, found.sd)
    for bump in (-2e-3, 2e-3):
        for c in range(2):
            moved = found.coefficients.copy()
            moved[c] += bump
            assert slow(moved, found.shape, found.sd) < best
        assert slow(found.coefficients, found.shape, found.sd * (1 + bump)) < best
        if channel.shape_name:
            assert slow(found.coefficients, found.shape * (1 + bump), found.sd) < best


def sd_hyperprior(sd, scale):
    """The log-density of log sd, up to a constant, where the sd is half-t of four degrees."""
    return math.log(sd) + stats.t.logpdf(sd / scale, 4)


def test_prior_of_pooled_offsets_is_the_most_probable():
    channel, _ = CHANNELS[0]
    data = people(0)
    shared = pooled(channel, data, NAMES)
    learned = pooled_prior(channel, data, shared, 1).population

    def total(mean, sd):
        trial = Population(shared.coefficients, shared.shape, mean, sd)
        return offsets.posterior(channel, data, trial, level=0.95)[1].sum() + sd_hyperprior(sd, 1.0)

    best = total(learned.mean, learned.sd)
    for bump in (-2e-3, 2e-3):
        assert total(learned.mean + bump, learned.sd) < best
        assert total(learned.mean, learned.sd * (1 + bump)) < best


def test_prior_of_sensitivities_is_the_most_probable():
    task, _, cohort, _ = walked()
    fit = fidm.Model(task, channels=(), lapse=0.0).fit(cohort)
    choices = fit._data(cohort).choices
    grid = sensitivity_grid(choices.offsets, choices.q, spacing=sensitivity.SPACING)

    def total(mean, sd):
        prior = sensitivity.SensitivityPrior(mean, sd)
        marginal = sensitivity.posterior(choices, prior, lapse=0.0, level=0.95)[1].sum()
        return marginal + sd_hyperprior(sd, 0.5) + stats.norm.logpdf(mean, 0.5 * (grid[0] + grid[-1]), 1.5)

    best = total(fit.prior.mean, fit.prior.sd)
    for bump in (-2e-3, 2e-3):
        assert total(fit.prior.mean + bump, fit.prior.sd) < best
        assert total(fit.prior.mean, fit.prior.sd * (1 + bump)) < best


def test_design_of_the_paper():
    """ξ = α + β log(1 + n): the design of a simulated cohort, segment by segment."""
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    (data,) = observed([Gamma("duration", "duration_s")], cohort, {})
    moves = cohort.segments["n_moves"].to_list()
    assert data.x[1].tolist() == pytest.approx([math.log(1 + n) for n in moves], rel=1e-14)
    assert data.y.tolist() == cohort.segments["duration_s"].to_list()
