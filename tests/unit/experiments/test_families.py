"""Which family suits an observation: held-out likelihoods and quantile residuals against slow, plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

from fidm.channels import (
    Bernoulli,
    Gamma,
    GeneralizedGamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    ShiftedNegativeBinomial,
)
from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.experiments.families import Families, _deal, anderson_darling, anderson_darling_p, compare_families
from fidm.experiments.held_out import predict, quantile_residuals, tuned
from fidm.fit.effort_alone import fit_effort
from fidm.fit.offsets import Population
from fidm.model.effort import Observed, observed
from fidm.plot.experiments import MOST_POINTS, NARROWEST, family_differences, quantile_plot, worm_plot
from fidm.record import to_json, write_result

PEOPLE, EACH = 24, 12


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(PEOPLE), EACH)
    theta = rng.normal(0, 0.5, PEOPLE)[who]
    n = len(who)
    segments = pl.DataFrame(
        {
            "participant": [f"P{j:02d}" for j in who],
            "segment": np.arange(n),
            "duration_s": rng.lognormal(0.5 + theta, 0.9),
            "n_words": 1 + rng.poisson(rng.gamma(2.0, np.exp(0.3 + theta) / 2)),
            "pause_s": np.where(rng.random(n) < 0.6, rng.lognormal(-0.5 + theta, 0.5), 0.0),
        }
    )
    people = pl.DataFrame(
        {"participant": [f"P{j:02d}" for j in range(PEOPLE)], "pair": np.arange(PEOPLE) // 2}
    )
    return Cohort.from_segments(segments, participants=people)


DURATION = [Gamma("duration", "duration_s", design=()), LogNormal("duration", "duration_s", design=())]
PAUSE = {
    "the paper's": (
        Bernoulli("presence", "pause_s", design=()),
        LogNormal("pause", "pause_s", design=(), zeros="left_out"),
    ),
    "gamma": (
        Gamma("pause", "pause_s", design=(), zeros="left_out"),
        Bernoulli("presence", "pause_s", design=()),
    ),
}


@pytest.fixture(scope="module")
def found(cohort) -> Families:
    words = [
        NegativeBinomial("words", "n_words", design=()),
        ShiftedNegativeBinomial("words", "n_words", design=()),
    ]
    return compare_families(
        cohort, {"duration": DURATION, "words": words, "pause": PAUSE}, folds=3, bootstrap=200
    )


def one_channel(channel, y, counts, shared):
    """Observations without a design, as the pieces take them."""
    return Observed(
        np.asarray(y, float), np.ones((1, len(y))), np.append(0, np.cumsum(counts)), np.arange(len(y))
    )


def test_held_out_log_likelihood_is_that_of_a_normal_with_what_the_others_share(cohort, found):
    fold = _deal(np.arange(PEOPLE), 3, 1)
    y = np.log(cohort.segments["duration_s"].to_numpy()).reshape(PEOPLE, EACH)
    total = 0.0
    for k in range(3):
        others = fit_effort(cohort[np.flatnonzero(fold != k)], DURATION[1], method="mle")
        shared = others.populations["duration"].population
        spread = shared.shape**2 * np.eye(EACH) + shared.sd**2
        normal = stats.multivariate_normal(np.full(EACH, shared.coefficients[0]), spread)
        total += sum(normal.logpdf(row) - row.sum() for row in y[fold == k])
    row = found.row("duration", "log normal")
    assert row["log_likelihood"] == pytest.approx(total / y.size, rel=1e-6)
    assert row["n"] == y.size
    assert row["n_people"] == PEOPLE


def test_families_that_made_the_data_are_found(found):
    assert found.observables == ("duration", "words", "pause")
    assert found.best("duration") == "log normal"
    assert found.best("words") == "shifted negative binomial"
    assert found.best("pause") == "the paper's"
    assert not found.is_right("words")
    assert found.is_right("pause")
    row = found.row("duration", "log normal")
    assert row["low"] < row["difference"] < row["high"]
    assert 0.7 < row["theta_rank_r"] < 1
    assert abs(row["residual_mean"]) < 0.15
    assert row["residual_sd"] == pytest.approx(1.0, abs=0.1)
    assert row["ks_p"] > 0.01
    assert found.row("duration", "gamma")["difference"] == 0.0
    assert found.row("words", "negative binomial")["zeros_observed"] == 0.0
    assert found.row("words", "negative binomial")["zeros_expected"] > 0.05
    assert found.row("words", "shifted negative binomial")["zeros_expected"] == 0.0
    assert found.row("words", "shifted negative binomial")["dispersion"] == pytest.approx(1.0, abs=0.3)
    zeros = found.row("pause", "the paper's")
    assert zeros["zeros_observed"] == pytest.approx(zeros["zeros_expected"], abs=0.03)
    assert zeros["n"] == PEOPLE * EACH
    assert zeros["n_residuals"] == round(zeros["n"] * (1 - zeros["zeros_observed"]))
    assert zeros["dispersion"] == pytest.approx(1.0, abs=0.3)
    assert zeros["residual_sd"] == pytest.approx(1.0, abs=0.12)


def test_it_is_told_in_words_and_written(found, tmp_path):
    said = found.sentences()
    assert len(said) == 3
    assert "better than negative binomial" in said[1]
    assert "paper's predicts" in said[2]
    n = found.row("pause", "gamma")["n_residuals"]
    assert f"quantile residuals, of the {n:,} amounts above 0, are" in said[2]
    assert "amounts" not in said[0]
    assert "288 observations of 24 people" in said[0]
    assert "NaN" not in to_json(found)
    assert {path.name for path in write_result(found, tmp_path)} == {"families.json", "families.csv"}
    with pytest.raises(DataError, match="gamma, log normal"):
        found.row("duration", "weibull")
    with pytest.raises(DataError, match="known of 'height'"):
        found.of("height")


def test_words_follow_the_numbers(found):
    table = found.table.filter(pl.col("observable") == "duration")

    def verdict(**changes) -> str:
        new = table.with_columns(
            **{name: pl.Series([table[name][0], value]) for name, value in changes.items()}
        )
        return Families(found.record, new, found.residuals, 24, 3).verdict("duration")

    base = found.row("duration", "gamma")["log_likelihood"]
    better = verdict(log_likelihood=base + 1, beyond_chance=1, ks=0.2, theta_rank_r=0.5)
    assert "better than gamma" in better
    assert "far from normal" in better
    assert "change places" in better
    unsure = verdict(log_likelihood=base + 1, beyond_chance=0, ks=0.05)
    assert "not beyond chance" in unsure
    assert "roughly normal" in unsure
    assert "cannot be told" in verdict(log_likelihood=base - 1, beyond_chance=0)
    worse = verdict(log_likelihood=base - 1, beyond_chance=-1)
    assert "gamma predicts" in worse


def test_it_is_the_same_with_other_threads_and_in_another_order(cohort, found):
    again = compare_families(cohort, {"duration": DURATION}, folds=3, bootstrap=200, workers=2)
    assert again.table.equals(found.table.filter(pl.col("observable") == "duration"))
    seen: list[tuple[int, int]] = []
    other = compare_families(
        cohort, {"duration": DURATION[:1]}, folds=2, bootstrap=20, together="pair",
        on_progress=lambda doing, done, of: seen.append((done, of)),
    )  # fmt: skip
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert "no other family" in other.sentences()[0]
    fold = _deal(cohort.participants["pair"].to_numpy(), 2, 1)
    assert (fold[0::2] == fold[1::2]).all()


def test_settings_are_tuned_on_those_learned_from(cohort):
    families = [GeneralizedGamma("duration", "duration_s", design=(), power=1.0)]
    tuned = compare_families(cohort, {"duration": families}, folds=2, bootstrap=20)
    fixed = compare_families(cohort, {"duration": families}, folds=2, bootstrap=20, tune=False)
    assert tuned.table["settings"][0] != fixed.table["settings"][0] == "power 1"
    assert tuned.table["log_likelihood"][0] > fixed.table["log_likelihood"][0]


def test_residuals_in_two_parts_are_those_of_the_amounts_alone(cohort, found):
    """Random residuals of zeros would make every family look better than it is."""
    amounts = LogNormal("pause", "pause_s", design=(), zeros="left_out")
    alone = compare_families(cohort, {"pause": [amounts]}, folds=3, bootstrap=20)
    one, both = alone.table.row(0, named=True), found.row("pause", "the paper's")
    assert (one["n_residuals"], one["n"]) == (both["n_residuals"], both["n_residuals"])
    for name in ("ks", "ad", "residual_sd", "dispersion"):
        assert one[name] == pytest.approx(both[name])
    drawn = found.residuals.filter(observable="pause", family="the paper's")
    assert drawn.height == both["n_residuals"]


def test_amounts_from_a_limit_on_have_a_family_that_begins_there(cohort):
    late = pl.when(pl.col("pause_s") > 0).then(pl.col("pause_s") + 0.25).otherwise(0.0)
    limited = replace(cohort, segments=cohort.segments.with_columns(pause_s=late))
    some = Bernoulli("presence", "pause_s", design=())
    plain = LogNormal("pause", "pause_s", design=(), zeros="left_out")
    families = {"plain": (some, plain), "late": (some, replace(plain, above=0.25))}
    result = compare_families(limited, {"pause": families}, folds=3, bootstrap=50)
    assert result.best("pause") == "late"
    shifted = compare_families(cohort, {"pause": {"a": (some, plain)}}, folds=3, bootstrap=50)
    unlike = result.row("pause", "late")["log_likelihood"] - shifted.row("pause", "a")["log_likelihood"]
    assert abs(unlike) < 1e-6
    with pytest.raises(DataError, match="0, or above 5"):
        compare_families(limited, {"pause": {"far": (some, replace(plain, above=5.0))}})


def test_folds_search_for_settings_from_those_given(cohort, monkeypatch):
    begun = []

    def watched(channel, *others, **settings):
        begun.append(channel.power)
        return tuned(channel, *others, **settings)

    monkeypatch.setattr("fidm.experiments.held_out.tuned", watched)
    given = GeneralizedGamma("duration", "duration_s", design=(), power=2.0)
    compare_families(cohort, {"duration": [given]}, folds=2, bootstrap=20)
    assert begun == [2.0] * 3


@pytest.mark.parametrize(
    ("families", "said"),
    [
        ([Gamma("a", "duration_s"), Gamma("a", "pause_s")], "same name"),
        ({"x": Gamma("a", "duration_s"), "y": Gamma("a", "pause_s")}, "different columns"),
        ([Gamma("a", "n_words"), Poisson("a", "n_words")], "counts and amounts"),
        ([LogNormal("a", "pause_s", zeros="left_out"), PAUSE["gamma"]], "Where one leaves zeros out"),
        ([(Bernoulli("a", "pause_s"), Gamma("b", "pause_s"))], "only then do they make one density"),
        ([Gamma("a", "pause_s")], "cannot have such values"),
        ([], "no family to judge"),
        (["gamma"], "A family is a channel"),
    ],
)
def test_what_cannot_be_compared_is_refused(cohort, families, said):
    if isinstance(families, list):
        families = [
            family if isinstance(family, str | tuple) else type(family)(**{**family.__dict__, "design": ()})
            for family in families
        ]
    with pytest.raises(DataError, match=said):
        compare_families(cohort, {"thing": families})


def test_too_few_people_are_refused(cohort):
    with pytest.raises(DataError, match="for 5 folds"):
        compare_families(cohort[:4], {"duration": DURATION})
    with pytest.raises(DataError, match="leave 2"):
        compare_families(cohort[:4], {"duration": DURATION}, folds=2)
    with pytest.raises(DataError, match="at least 2, 0 and 20"):
        compare_families(cohort, {"duration": DURATION}, folds=1)
    with pytest.raises(DataError, match="no column 'family'"):
        compare_families(cohort, {"duration": DURATION}, together="family")


# ---------------------------------------------------------------------- quantile residuals


def test_leaving_one_out_is_exact_for_the_log_normal():
    rng = np.random.default_rng(2)
    counts = np.array([1, 2, 7, 0, 4])
    shared = Population(np.array([0.4]), 0.5, 0.0, 0.8)
    channel = LogNormal("a", "y", design=())
    y = rng.normal(0.4, 1.0, counts.sum())
    found = predict(channel, one_channel(channel, y, counts, shared), shared)
    at = 0
    for n in counts:
        for i in range(n):
            others = np.delete(y[at : at + n], i) - 0.4
            precision = 1 / 0.8**2 + len(others) / 0.5**2
            centre = others.sum() / 0.5**2 / precision
            expected = stats.norm.cdf(y[at + i], 0.4 + centre, math.sqrt(0.5**2 + 1 / precision))
            assert found.up_to[at + i] == pytest.approx(expected, abs=1e-6)
            assert found.below[at + i] == found.up_to[at + i]
        at += n


def test_leaving_one_out_is_the_integral_for_counts():
    counts = np.array([3, 1])
    y = np.array([0.0, 4.0, 2.0, 1.0])
    shared = Population(np.array([0.3]), 2.0, 0.0, 0.7)
    channel = NegativeBinomial("a", "y", design=())
    found = predict(channel, one_channel(channel, y, counts, shared), shared)

    def average(i: int, function) -> float:
        others = [k for k in (range(3) if i < 3 else [3]) if k != i]

        def weight(theta: float) -> float:
            xi = np.full(len(others), 0.3 + theta)
            return math.exp(channel.log_density(y[others], xi, 2.0).sum() - 0.5 * (theta / 0.7) ** 2)

        top = integrate.quad(lambda theta: weight(theta) * function(np.array([0.3 + theta])), -6, 6)[0]
        return top / integrate.quad(weight, -6, 6)[0]

    for i in range(4):
        own = y[i : i + 1]
        up_to = average(i, lambda xi, own=own: channel.cumulative(own, xi, 2.0)[0])
        below = average(i, lambda xi, own=own: channel.cumulative(own, xi, 2.0, below=True)[0])
        mean = average(i, lambda xi: channel.mean(xi, 2.0)[0])
        second = average(i, lambda xi: (channel.variance(xi, 2.0) + channel.mean(xi, 2.0) ** 2)[0])
        zero = average(i, lambda xi: channel.cumulative(np.zeros(1), xi, 2.0)[0])
        assert (found.below[i], found.up_to[i]) == pytest.approx((below, up_to), abs=1e-6)
        assert (found.mean[i], found.zero[i]) == pytest.approx((mean, zero), abs=1e-6)
        assert found.variance[i] == pytest.approx(second - mean**2, rel=1e-5)


@pytest.mark.parametrize("theta", ["leave_one_out", "drawn"])
def test_residuals_of_the_right_family_are_standard_normal(theta):
    rng = np.random.default_rng(3)
    people, each = 100, 6
    channel = NegativeBinomial("turns", "n_turns", design=())
    xi = 0.5 + np.repeat(rng.normal(0, 0.6, people), each)
    segments = pl.DataFrame(
        {
            "participant": [f"P{j:03d}" for j in np.repeat(np.arange(people), each)],
            "segment": np.arange(people * each),
            "n_turns": channel.sample(xi, 2.0, rng),
        }
    )
    cohort = Cohort.from_segments(segments)
    fit = fit_effort(cohort, channel)
    table = quantile_residuals(fit, cohort, theta=theta)
    residual = table["residual"].to_numpy()
    assert stats.kstest(residual, "norm").pvalue > 0.05
    assert anderson_darling(residual)[1] > 0.05
    assert table.columns == ["participant", "episode", "segment", "channel", "below", "up_to", "residual"]
    assert table.equals(quantile_residuals(fit, cohort, theta=theta))
    assert not table.equals(quantile_residuals(fit, cohort, theta=theta, seed=2))
    wrong = quantile_residuals(
        fit_effort(cohort, Poisson("turns", "n_turns", design=())), cohort, theta=theta
    )
    assert anderson_darling(wrong["residual"].to_numpy())[1] < 0.001


def test_residuals_need_a_prior(cohort):
    fit = fit_effort(cohort, DURATION[1], method="mle", population="pooled")
    with pytest.raises(FitError, match="method='eb'"):
        quantile_residuals(fit, cohort)
    with pytest.raises(FitError, match="theta is"):
        quantile_residuals(fit, cohort, theta="best")
    with pytest.raises(DataError, match="seed is -1"):
        quantile_residuals(fit, cohort, seed=-1)
    with pytest.raises(DataError, match="nothing to compare"):
        compare_families(cohort, {})


def test_a_mean_that_is_infinite_leaves_residuals_and_no_dispersion(cohort):
    heavy = GeneralizedGamma("duration", "duration_s", (), power=-1.0)
    found = predict(heavy, observed([heavy], cohort, {})[0], Population(np.array([1.0]), 0.5, sd=0.5))
    assert np.isinf(found.mean).all()
    assert np.isnan(found.variance).all()
    assert np.isfinite(found.residuals(np.random.default_rng(1))).all()


def test_anderson_darling_is_that_of_the_books():
    x = np.random.default_rng(4).normal(0.1, 1.1, 40)
    p = np.sort(stats.norm.cdf(x))
    plain = -40 - sum((2 * i + 1) / 40 * (math.log(p[i]) + math.log(1 - p[39 - i])) for i in range(40))
    assert anderson_darling(x)[0] == pytest.approx(plain)
    for level, critical in ((0.10, 1.933), (0.05, 2.492), (0.025, 3.070), (0.01, 3.857)):  # Stephens 1974
        assert anderson_darling_p(critical) == pytest.approx(level, rel=0.03)
    assert anderson_darling_p(40.0) == 0.0


# ---------------------------------------------------------------------- pictures


def test_pictures_show_every_family(found):
    ax = family_differences(found, "duration")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["log normal", "gamma"]
    assert "per observation, against gamma" in ax.get_xlabel()
    ax = worm_plot(found, "words")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "negative binomial",
        "shifted negative binomial",
    ]
    ax = quantile_plot(found, "duration", "gamma", worm_plot(found, "duration"))
    assert ax.get_title(loc="left") == "duration: gamma"
    drawn = np.concatenate([line.get_ydata() for line in ax.lines])
    assert found.residuals.filter(family="gamma", observable="duration")["residual"].max() in drawn
    with pytest.raises(DataError, match="no family 'weibull'"):
        quantile_plot(found, "duration", "weibull")


def test_many_residuals_are_thinned_without_losing_the_tails(found):
    n = 5_000
    at = stats.norm.ppf((np.arange(n) + 0.5) / n)
    names = {"observable": ["duration"] * n, "family": ["gamma"] * n}
    many = pl.DataFrame({**names, "expected": at, "low": at, "high": at, "residual": at})
    ax = quantile_plot(replace(found, residuals=many), "duration", "gamma")
    drawn = ax.lines[-1].get_xdata()
    assert len(drawn) <= MOST_POINTS
    np.testing.assert_array_equal(drawn[:20], at[:20])
    np.testing.assert_array_equal(drawn[-20:], at[-20:])


def test_differences_that_are_rounding_do_not_fill_the_axis(found):
    tiny = found.table.with_columns(pl.col("difference", "low", "high") * 0 + 1e-7)
    ax = family_differences(replace(found, table=tiny), "duration")
    assert ax.get_xlim() == (-NARROWEST, NARROWEST)
    ax.figure.draw_without_rendering()
    assert ax.xaxis.get_offset_text().get_text() == ""
    assert family_differences(found, "duration").get_xlim()[1] > NARROWEST
