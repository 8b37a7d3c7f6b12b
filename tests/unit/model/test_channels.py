"""Further channels, distribution functions, and the contract they are held to: against scipy and statsmodels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fidm
from fidm.channels import (
    Bernoulli,
    Channel,
    Gamma,
    GeneralizedGamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    ShiftedNegativeBinomial,
    TruncatedNegativeBinomial,
    Weibull,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)
from fidm.errors import DataError, FitError
from fidm.fit.offsets import Population, _climb, maximum
from fidm.fit.population import pooled
from fidm.model.effort import Observed
from fidm.testing import check_channel

XI = np.linspace(-1.0, 2.0, 25)


def frozen(channel: Channel, xi: np.ndarray, shape: float):
    """The distribution of what is recorded, by scipy; None where scipy has none ready."""
    mean, loc = np.exp(xi), getattr(channel, "above", 0.0)
    plain = stats.nbinom(shape, shape / (shape + mean))
    kinds = {
        "gamma": lambda: stats.gamma(shape, loc=loc, scale=mean / shape),
        "log_normal": lambda: stats.lognorm(shape, loc=loc, scale=mean),
        "negative_binomial": lambda: plain,
        "poisson": lambda: stats.poisson(mean),
        "bernoulli": lambda: stats.bernoulli(1 / (1 + np.exp(-xi))),
        "generalized_gamma": lambda: stats.gengamma(
            shape, channel.power, loc=loc, scale=mean * shape ** (-1 / channel.power)
        ),
        "weibull": lambda: stats.weibull_min(shape, loc=loc, scale=mean),
        "shifted_negative_binomial": lambda: stats.nbinom(shape, shape / (shape + mean), loc=channel.least),
    }
    return kinds[channel.kind]()


@pytest.mark.parametrize(
    ("channel", "shape"),
    [
        (Gamma("a", "y"), 1.7),
        (LogNormal("a", "y"), 0.6),
        (NegativeBinomial("a", "y"), 2.5),
        (Poisson("a", "y"), 1.0),
        (Bernoulli("a", "y"), 1.0),
        (GeneralizedGamma("a", "y", power=0.4), 3.0),
        (GeneralizedGamma("a", "y", power=-0.3), 30.0),
        (GeneralizedGamma("a", "y", power=0.05), 900.0),
        (Weibull("a", "y"), 1.4),
        (Gamma("a", "y", above=0.25), 0.9),
        (LogNormal("a", "y", above=0.25), 0.6),
        (GeneralizedGamma("a", "y", power=0.4, above=2.0), 3.0),
        (Weibull("a", "y", above=0.25), 1.4),
        (ShiftedNegativeBinomial("a", "y", least=2), 0.8),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)
def test_densities_and_distribution_functions_are_those_of_scipy(channel, shape):
    rng = np.random.default_rng(1)
    y = channel.sample(XI, shape, rng)
    recorded = channel.record(y)
    known = frozen(channel, XI, shape)
    density = known.logpmf(recorded) if channel.discrete else known.logpdf(recorded)
    np.testing.assert_allclose(channel.log_density(y, XI, shape), density, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(channel.cumulative(y, XI, shape), known.cdf(recorded), rtol=1e-8, atol=1e-12)
    below = known.cdf(recorded - 1) if channel.discrete else known.cdf(recorded)
    np.testing.assert_allclose(channel.cumulative(y, XI, shape, below=True), below, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(channel.mean(XI, shape), known.mean(), rtol=1e-8)
    np.testing.assert_allclose(channel.variance(XI, shape), known.var(), rtol=1e-7)


@pytest.mark.parametrize("channel", [TruncatedNegativeBinomial("a", "y"), ZeroInflatedPoisson("a", "y"),
                                     ZeroInflatedNegativeBinomial("a", "y", extra_zeros=0.35)],
                         ids=lambda channel: channel.kind)  # fmt: skip
def test_counts_changed_at_zero_follow_from_the_plain_ones(channel):
    shape = 1.3 if channel.shape_name else 1.0
    y = np.arange(0.0, 400.0)
    for xi in (-1.0, 0.5, 2.0):
        mean = math.exp(xi)
        plain = (
            stats.nbinom(shape, shape / (shape + mean)) if channel.shape_name else stats.poisson(mean)
        ).pmf(y)
        if isinstance(channel, TruncatedNegativeBinomial):
            expected = np.where(y == 0, 0.0, plain / (1 - plain[0]))
        else:
            share = channel.extra_zeros
            expected = np.where(y == 0, share, 0.0) + (1 - share) * plain
        seen = y[1:] if isinstance(channel, TruncatedNegativeBinomial) else y
        at = np.full(len(y), xi)
        found = np.exp(channel.log_density(seen, at[: len(seen)], shape))
        np.testing.assert_allclose(found, expected[-len(seen) :], rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(channel.cumulative(y, at, shape), np.cumsum(expected), rtol=1e-9)
        moments = (y @ expected, y**2 @ expected)
        assert channel.mean(at[:1], shape)[0] == pytest.approx(moments[0])
        assert channel.variance(at[:1], shape)[0] == pytest.approx(moments[1] - moments[0] ** 2)


@pytest.mark.parametrize(
    ("channel", "shape"),
    [
        (GeneralizedGamma("a", "y", power=0.3), 1.5),
        (GeneralizedGamma("a", "y", power=-0.25), 6.0),
        (Weibull("a", "y"), 1.5),
        (Gamma("a", "y", above=0.25), 1.5),
        (LogNormal("a", "y", above=0.25), 0.7),
        (GeneralizedGamma("a", "y", power=0.3, above=0.25), 1.5),
        (Weibull("a", "y", above=0.25), 1.5),
        (ShiftedNegativeBinomial("a", "y"), 1.5),
        (TruncatedNegativeBinomial("a", "y"), 8.0),
        (ZeroInflatedNegativeBinomial("a", "y", extra_zeros=0.3), 1.5),
        (ZeroInflatedPoisson("a", "y"), 1.0),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)
def test_every_channel_keeps_its_contract(channel, shape):
    check_channel(channel, shape=shape)


def test_a_wrong_distribution_function_variance_or_information_is_found():
    class Off(Poisson):
        def cumulative(self, y, xi, shape, *, below=False):
            return super().cumulative(y, xi + 0.1, shape, below=below)

        def variance(self, xi, shape):
            return 1.1 * np.exp(xi)

        def information(self, xi, shape):
            return 0.9 * np.exp(xi)

    with pytest.raises(AssertionError) as raised:
        check_channel(Off("a", "y"))
    for said in ("cumulative does not rise", "what sample draws", "variance says", "information says"):
        assert said in str(raised.value)


@pytest.mark.parametrize("plain", [Poisson, Gamma])
def test_a_distribution_function_that_does_not_begin_at_0_is_found(plain):
    class Raised(plain):
        def cumulative(self, y, xi, shape, *, below=False):
            return super().cumulative(y, xi, shape, below=below) + 0.001

    with pytest.raises(AssertionError, match="cumulative is not 0"):
        check_channel(Raised("a", "y"))


@pytest.mark.parametrize("power", [-0.4, 0.1])
def test_heavy_tails_keep_the_contract_at_the_shape_it_is_tried_at(power):
    check_channel(GeneralizedGamma("a", "y", power=power))


def test_moments_too_large_for_a_number_are_infinite():
    channel = GeneralizedGamma("a", "y", power=0.01)
    assert np.isinf(channel.variance(XI, 1.5)).all()
    assert np.isinf(GeneralizedGamma("a", "y", power=-0.4).mean(XI, 1.5)).all()


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (GeneralizedGamma, {"power": "1"}),
        (GeneralizedGamma, {"power": True}),
        (ZeroInflatedPoisson, {"extra_zeros": None}),
        (Gamma, {"above": "1"}),
    ],
)
def test_settings_that_are_no_numbers_are_refused(kind, setting):
    with pytest.raises(DataError, match="must be a number"):
        kind("a", "y", **setting)


def test_gamma_and_log_normal_are_special_cases():
    y = np.random.default_rng(2).gamma(2.0, 1.0, len(XI))
    one = GeneralizedGamma("a", "y", power=1.0)
    np.testing.assert_allclose(
        one.log_density(y, XI, 2.0), Gamma("a", "y").log_density(y, XI, 2.0), rtol=1e-12
    )
    sd, power = 0.7, 0.01
    near = GeneralizedGamma("a", "y", power=power).log_density(y, XI, 1 / (power * sd) ** 2)
    np.testing.assert_allclose(near, LogNormal("a", "y").log_density(np.log(y), XI, sd), rtol=0.02)
    weibull = GeneralizedGamma("a", "y", power=1.4).log_density(y, XI, 1.0)
    np.testing.assert_allclose(weibull, Weibull("a", "y").log_density(y, XI, 1.4), rtol=1e-10)


@pytest.mark.parametrize("channel", [GeneralizedGamma("a", "y", power=0.4), Weibull("a", "y")],
                         ids=lambda channel: channel.kind)  # fmt: skip
def test_the_fast_maximum_is_that_of_newton_steps(channel):
    rng = np.random.default_rng(3)
    base = rng.normal(0, 0.3, 60)
    data = Observed(
        channel.sample(base, 1.8, rng), np.stack([np.ones(60), base]), np.arange(0, 61, 10), np.arange(60)
    )
    quick = channel.own_maximum(data.y, base, data.offsets, 1.8)
    slow = _climb(channel, data, base, 1.8)
    np.testing.assert_allclose(quick[0], slow[0], atol=1e-9)
    np.testing.assert_allclose(quick[1], slow[1], rtol=1e-8)


def test_a_person_whose_words_never_exceed_the_least_has_no_finite_maximum():
    y = np.array([0.0, 0.0, 0.0, 2.0])
    data = Observed(y, np.ones((1, 4)), np.array([0, 2, 4]), np.arange(4))
    found = maximum(ShiftedNegativeBinomial("a", "y"), data, Population(np.zeros(1), 1.0), level=0.95)
    assert found.estimate[0] == -np.inf
    assert np.isfinite(found.estimate[1])
    same = Observed(np.zeros(3), np.ones((1, 3)), np.array([0, 3]), np.arange(3))
    with pytest.raises(FitError, match=r"all 3 segments have the same a \(3\)"):
        pooled(ShiftedNegativeBinomial("a", "words", least=3), same, ("intercept",))


def test_pooled_fits_are_those_of_scipy_and_statsmodels():
    from statsmodels.discrete.truncated_model import TruncatedLFNegativeBinomialP

    rng = np.random.default_rng(4)
    n = 600
    x = np.stack([np.ones(n), rng.normal(0, 1, n)])
    data = Observed(rng.gamma(2.0, 1.0, n) ** 2, x[:1], np.array([0, n]), np.arange(n))
    kappa, _, _, scale = stats.gengamma.fit(data.y, 2.0, fc=0.5, floc=0)
    found = pooled(GeneralizedGamma("a", "y", power=0.5), data, ("intercept",))
    assert found.shape == pytest.approx(kappa, rel=1e-3)
    assert found.coefficients[0] == pytest.approx(math.log(scale * kappa**2), abs=1e-3)
    k, _, scale = stats.weibull_min.fit(data.y, floc=0)
    found = pooled(Weibull("a", "y"), data, ("intercept",))
    assert (found.shape, math.exp(found.coefficients[0])) == pytest.approx((k, scale), rel=1e-3)
    channel = TruncatedNegativeBinomial("a", "y")
    y = channel.sample(0.4 + 0.5 * x[1], 1.5, rng)
    known = TruncatedLFNegativeBinomialP(y, x.T).fit(disp=False, method="bfgs", maxiter=200)
    found = pooled(channel, Observed(y, x, np.array([0, n]), np.arange(n)), ("intercept", "x"))
    np.testing.assert_allclose(found.coefficients, known.params[:2], atol=2e-3)
    assert 1 / found.shape == pytest.approx(known.params[2], abs=5e-3)


def test_the_search_for_coefficients_also_climbs_where_the_likelihood_is_not_concave():
    from statsmodels.discrete.count_model import ZeroInflatedPoisson as Known

    rng = np.random.default_rng(5)
    n = 800
    x = np.stack([np.ones(n), rng.normal(0, 1, n)])
    channel = ZeroInflatedPoisson("a", "y", extra_zeros=0.6)
    y = channel.sample(1.5 + 0.8 * x[1], 1.0, rng)
    found = pooled(channel, Observed(y, x, np.array([0, n]), np.arange(n)), ("intercept", "x"))
    known = Known(y, x.T).loglike(np.array([math.log(0.6 / 0.4), *found.coefficients]))
    assert math.fsum(channel.log_density(y, found.coefficients @ x, 1.0)) == pytest.approx(known, rel=1e-9)
    for nudge in np.eye(2):  # no better place beside it
        for sign in (-0.01, 0.01):
            other = channel.log_density(y, (found.coefficients + sign * nudge) @ x, 1.0).sum()
            assert other < channel.log_density(y, found.coefficients @ x, 1.0).sum()


def test_settings_survive_a_file(tmp_path):
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 12, seed=1)
    channels = [
        GeneralizedGamma("duration", "duration_s", power=0.5),
        ShiftedNegativeBinomial("turns", "n_turns", least=0),
        Gamma("pause", "pause_s", zeros="left_out", above=1e-4),
    ]
    fit = fidm.Model(task, channels=channels).fit(cohort)
    fit.save(tmp_path / "fit.json")
    again = fidm.load_fit(tmp_path / "fit.json")
    assert again.channels == tuple(channels)
    assert again.channels[2].above == 1e-4
    assert again.profile(cohort).table.equals(fit.profile(cohort).table)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: GeneralizedGamma("a", "y", power=0.0), "LogNormal"),
        (lambda: GeneralizedGamma("a", "y", power=math.nan), "must be a number"),
        (lambda: ZeroInflatedPoisson("a", "y", extra_zeros=1.0), "from 0 to below 1"),
        (lambda: ShiftedNegativeBinomial("a", "y", least=-1), "whole number"),
        (lambda: Gamma("a", "y", zeros="kept"), "'refused' or 'left_out'"),
        (lambda: LogNormal("a", "y", above=-0.1), "above of a is -0.1"),
        (lambda: Weibull("a", "y", above=math.inf), "must be a number, 0 or more"),
        (lambda: Gamma("a", "y", above=True), "must be a number, 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, said):
    with pytest.raises(DataError, match=said):
        make()


def test_values_a_channel_cannot_have_are_found():
    raw = np.array([np.nan, 0.0, 1.0, 1.5, 2.0])
    assert TruncatedNegativeBinomial("a", "y").wrong(raw)[0].tolist() == [False, True, False, True, False]
    assert ShiftedNegativeBinomial("a", "y", least=2).wrong(raw)[0].tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert Gamma("a", "y").wrong(raw)[0].tolist() == [False, True, False, False, False]
    assert not Gamma("a", "y", zeros="left_out").wrong(raw)[0].any()
    assert np.isnan(Gamma("a", "y", zeros="left_out").observe(raw)[:2]).all()
    late, said = Gamma("a", "y", zeros="left_out", above=1.0).wrong(np.append(raw, -1.0))
    assert late.tolist() == [False, False, True, False, False, True]
    assert said == "must be 0, or above 1"
    late, said = LogNormal("a", "y", above=1.0).wrong(raw)
    assert late.tolist() == [False, True, True, False, False]
    assert "must be above 1;" in said


@pytest.mark.parametrize("kind", [Gamma, LogNormal, Weibull, GeneralizedGamma])
def test_amounts_from_a_limit_on_are_fitted_as_what_lies_beyond_it(kind):
    from fidm.evidence.evidence import find_residuals
    from fidm.fit.effort_alone import fit_effort

    rng = np.random.default_rng(7)
    beyond = rng.gamma(1.2, np.exp(np.repeat(rng.normal(0, 0.4, 12), 10)))
    segments = pl.DataFrame(
        {
            "participant": np.repeat([f"P{j:02d}" for j in range(12)], 10),
            "segment": range(120),
            "n_moves": 1,
            "plain": np.where(np.arange(120) % 4, beyond, 0.0),
            "late": np.where(np.arange(120) % 4, beyond + 0.25, 0.0),
        }
    )
    plain = fit_effort(segments, kind("pause", "plain", design=(), zeros="left_out"))
    late = fit_effort(segments, kind("pause", "late", design=(), zeros="left_out", above=0.25))
    for method in ("eb", "mle"):
        a, b = (replace(fit, method=method).profile(segments)["pause"] for fit in (plain, late))
        np.testing.assert_allclose(b, a, rtol=1e-6)
    cohort = fidm.Cohort.from_segments(segments)
    parts = [find_residuals(fit, cohort, fit.profile(cohort)) for fit in (plain, late)]
    for name, shift in (("observed", 0.25), ("expected", 0.25), ("residual", 0.0), ("own_z", 0.0)):
        a, b = (table[f"pause_{name}"].drop_nulls().to_numpy() for table in parts)
        np.testing.assert_allclose(b, a + shift, rtol=1e-5, atol=1e-6)
    channel = kind("pause", "late", zeros="left_out", above=0.25)
    assert channel.to_dict()["above"] == 0.25
    assert "above" not in kind("pause", "late").to_dict()


@dataclass(frozen=True)
class Bare(Channel):
    """A channel as somebody may have written it: without a distribution function."""

    kind: ClassVar[str] = "bare"
    twice: bool = False

    def varying(self, y, xi, shape):
        return -0.5 * (y - xi) ** 2

    def fixed(self, y, shape):
        return np.full(len(y), -0.5 * math.log(2 * math.pi))

    def slopes(self, y, xi, shape):
        return y - xi, np.ones(len(y))

    def predictor(self, y):
        return float(y.mean())

    def mean(self, xi, shape):
        return xi

    def residual(self, y, xi):
        return y - xi

    def sample(self, xi, shape, rng):
        return rng.normal(xi)


def test_a_channel_of_ones_own_needs_a_distribution_function_only_where_it_is_asked_for():
    from fidm.experiments.held_out import quantile_residuals
    from fidm.fit.effort_alone import fit_effort

    check_channel(Bare("a", "y"))
    rng = np.random.default_rng(6)
    segments = pl.DataFrame(
        {"participant": np.repeat(list("ABCDE"), 8), "segment": range(40), "y": rng.normal(size=40)}
    )
    fit = fit_effort(segments, Bare("a", "y", design=()))
    with pytest.raises(FitError, match="no distribution function"):
        quantile_residuals(fit, fidm.Cohort.from_segments(segments))
    with pytest.raises(FitError, match="observations vary"):
        Bare("a", "y").variance(XI, 1.0)
    assert replace(Bare("a", "y"), twice=True).to_dict()["twice"] is True
