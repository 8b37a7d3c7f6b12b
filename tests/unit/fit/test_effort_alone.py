"""Effort without a task: the same numbers as the factorized model gives, and what is said of data it cannot use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.channels import Bernoulli, Gamma, GeneralizedGamma, LogNormal, Poisson, ZeroInflatedPoisson
from fidm.cohort import Cohort
from fidm.errors import DataError, FitError
from fidm.evidence.evidence import find_residuals
from fidm.experiments.held_out import tuned
from fidm.experiments.reliability import reliability
from fidm.fit.effort_alone import fit_effort
from fidm.stats import redraws


@pytest.fixture(scope="module")
def segments() -> pl.DataFrame:
    """Thirty people who spoke in two dialogs of six segments each."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(30), 12)
    theta, words = rng.normal(0, 0.5, 30)[who], rng.integers(1, 9, len(who))
    return pl.DataFrame(
        {
            "participant": [f"P{j:02d}" for j in who],
            "episode": np.tile(np.repeat([1, 2], 6), 30),
            "segment": np.tile(np.arange(12), 30),
            "n_words": words,
            "duration_s": rng.lognormal(0.3 + 0.1 * words + theta, 0.4),
            "pause_s": np.where(rng.random(len(who)) < 0.5, rng.gamma(2.0, 0.3, len(who)), 0.0),
        }
    )


CHANNELS = (
    LogNormal("duration", "duration_s", design=("n_words",)),
    Bernoulli("pause_presence", "pause_s", design=()),
)


@pytest.fixture(scope="module")
def fit(segments):
    return fit_effort(segments, CHANNELS)


@pytest.mark.parametrize(("method", "population"), [("eb", "random"), ("mle", "pooled")])
def test_it_is_the_effort_factor_of_the_model(method, population):
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 15, seed=1)
    channels = [Gamma("duration", "duration_s"), LogNormal("pause", "pause_s", zeros="left_out")]
    whole = fidm.Model(task, channels=channels).fit(cohort, method=method, population=population)
    alone = fit_effort(cohort, channels, method=method, population=population)
    rows = pl.col("parameter").is_in(["duration", "pause"])
    assert alone.population_table().equals(whole.population_table().filter(rows))
    one, other = alone.profile(cohort), whole.profile(cohort)
    for name in ("estimate", "se", "low", "high", "status", "n"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[:, 1:])
    where = "prior" if method == "eb" else "estimate"
    expected = whole.log_likelihood(cohort, at=where).select("participant", "duration", "pause")
    assert alone.log_likelihood(cohort, at=where).drop("total").equals(expected)
    mine, theirs = find_residuals(alone, cohort, one), find_residuals(whole, cohort, other)
    assert mine.equals(theirs)
    if method == "mle":
        with pytest.raises(FitError, match="no prior of duration"):
            alone.log_likelihood(cohort)


def test_a_log_normal_population_is_that_of_a_mixed_model(segments):
    import statsmodels.api as sm

    y, x = np.log(segments["duration_s"].to_numpy()), sm.add_constant(segments["n_words"].to_numpy())
    fit = replace(fit_effort(segments, CHANNELS, method="mle"), method="eb")  # at the likeliest population
    known = sm.MixedLM(y, x, groups=segments["participant"].to_numpy()).fit(reml=False)
    shared = fit.populations["duration"].population
    np.testing.assert_allclose(shared.coefficients, known.fe_params, atol=1e-4)
    assert shared.shape**2 == pytest.approx(known.scale, rel=1e-3)
    assert shared.sd**2 == pytest.approx(float(np.asarray(known.cov_re)[0, 0]), rel=5e-3)
    theta = fit.profile(segments)["duration"]
    effects = [known.random_effects[name].iloc[0] for name in fit.profile(segments).participants]
    np.testing.assert_allclose(theta, effects, atol=1e-3)
    assert fit.log_likelihood(segments)["duration"].sum() + y.sum() == pytest.approx(known.llf, abs=1e-3)


def test_a_profile_of_effort_alone_works_like_any_other(segments, fit):
    profile = fit.profile(segments)
    assert profile.parameters == ("duration", "pause_presence")
    assert profile.table.height == 60
    assert "inferred_share" not in profile.wide.columns
    matrix, names = profile.features()
    assert names == profile.parameters
    np.testing.assert_array_equal(matrix, profile.estimate)
    assert "duration" in str(profile.summary())
    assert "30 people" in repr(fit)
    assert fit.warnings == ()
    with pytest.raises(DataError, match="no parameter 'action_sensitivity'"):
        profile.action_sensitivity  # noqa: B018


def test_people_without_observations_and_in_any_order(segments, fit):
    people = pl.DataFrame({"participant": ["nobody", *(f"P{j:02d}" for j in range(30))], "age": range(31)})
    cohort = Cohort.from_segments(segments.sample(fraction=1.0, shuffle=True, seed=1), participants=people)
    assert cohort.ids[0] == "nobody"
    assert len(cohort) == 31
    found = fit.profile(cohort)
    assert found.table["status"][0] == "no_observation"
    assert fit.log_likelihood(cohort)["total"][0] == pytest.approx(0.0, abs=1e-9)
    shuffled = dict(zip(found.participants, found["duration"], strict=True))
    known = fit.profile(segments)
    np.testing.assert_allclose([shuffled[p] for p in known.participants], known["duration"], rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop("participant"), "need the columns 'participant' and 'segment'"),
        (lambda table: table.with_columns(participant=pl.lit(None, pl.String)), "do not say whose they are"),
        (lambda table: table.with_columns(duration_s=-pl.col("duration_s")), "360 rows of 30 participants"),
        (lambda table: table.drop("duration_s"), "no column 'duration_s'"),
        (lambda table: table.with_columns(n_words=pl.lit(None, pl.Int64)), "n_words is missing"),
        (lambda table: table.head(12), "only 1 participant has a recorded .*; 5 are needed"),
        (lambda table: table.clear(), "nobody to learn from"),
    ],
)
def test_data_that_cannot_be_used_are_named(segments, change, said):
    with pytest.raises((DataError, FitError), match=said):
        fit_effort(change(segments), CHANNELS)


def test_options_that_make_no_sense_are_refused(segments):
    with pytest.raises(FitError, match="no effort channel"):
        fit_effort(segments.select("participant", "segment", "n_words"))
    with pytest.raises(FitError, match="of its own"):
        fit_effort(segments, [CHANNELS[0], CHANNELS[0]])
    with pytest.raises(FitError, match="method is"):
        fit_effort(segments, CHANNELS, method="best")
    with pytest.raises(DataError, match="for 30 people"):
        Cohort.from_segments(segments, participants=pl.DataFrame({"participant": ["A"]}))
    with pytest.raises(DataError, match="each person once"):
        Cohort.from_segments(segments, participants=pl.DataFrame({"participant": ["A", "A"]}))


def test_the_papers_channels_are_those_whose_columns_there_are(segments):
    seen: list[str] = []
    with_moves = segments.with_columns(n_moves=pl.col("n_words"))
    fit = fit_effort(with_moves, on_progress=lambda doing, done, of: seen.append(f"{doing} {done}/{of}"))
    assert fit.parameters == ("duration", "pause", "pause_presence")
    assert seen == ["duration 0/3", "pause 1/3", "pause_presence 2/3", "done 3/3"]


def test_a_setting_is_tuned_by_marginal_likelihood(segments):
    rng = np.random.default_rng(2)
    skewed = segments.with_columns(wait_s=rng.gamma(3.0, 1.0, segments.height) ** 2.5)
    channel = GeneralizedGamma("wait", "wait_s", design=())
    best = tuned(channel, skewed)
    assert 0.1 <= best.power <= 0.9  # it was made with 0.4
    reached = {
        power: fit_effort(skewed, GeneralizedGamma("wait", "wait_s", design=(), power=power))
        .log_likelihood(skewed)["total"]
        .sum()
        for power in (-0.1, 1.0, best.power)
    }
    assert max(reached, key=lambda power: reached[power]) == best.power
    assert tuned(CHANNELS[0], skewed) is CHANNELS[0]
    counts = segments.with_columns(
        n=pl.Series(rng.poisson(2.0, segments.height) * (rng.random(segments.height) > 0.4))
    )
    assert 0.2 < tuned(ZeroInflatedPoisson("n", "n", design=()), counts).extra_zeros < 0.6
    with pytest.raises(FitError, match="no values"):
        tuned(Poisson("n", "n", design=()), counts, setting="power")


def test_reliability_of_effort_alone_is_the_correlation_of_halves(segments, fit):
    cohort = Cohort.from_segments(segments)
    found = reliability(None, cohort, fit=fit, halves="segments", bootstrap=50)
    assert any("neighbouring segments of an episode are in opposite halves" in note for note in found.notes)
    shared = fit.populations["duration"].population
    away = np.log(segments["duration_s"].to_numpy()) - shared.coefficients[0]
    away = (away - shared.coefficients[1] * segments["n_words"].to_numpy()).reshape(30, 12)
    r = np.corrcoef(away[:, 0::2].mean(axis=1), away[:, 1::2].mean(axis=1))[0, 1]
    assert found.row("duration")["r"] == pytest.approx(r)
    assert found.row("duration")["reliability"] == pytest.approx(2 * r / (1 + r))
    assert found.parameters == fit.parameters
    assert found.row("duration", "retest")["n"] == 30
    dialogs = reliability(None, cohort, fit=fit, unit="episode", bootstrap=50)
    pairs = away.reshape(60, 6)
    r = np.corrcoef(pairs[:, 0::2].mean(axis=1), pairs[:, 1::2].mean(axis=1))[0, 1]
    row = dialogs.row("duration")
    assert (row["n"], row["r"]) == (60, pytest.approx(r))
    assert row["low"] < row["reliability"] < row["high"]
    assert dialogs.record.settings["unit"] == "episode"
    assert dialogs.row("duration", "retest") is None


def test_people_who_belong_together_are_drawn_together(segments, fit):
    people = pl.DataFrame(
        {
            "participant": [f"P{j:02d}" for j in range(30)],
            "alone": [f"{j:02d}" for j in range(30)],
            "pair": [f"{j // 2}" for j in range(30)],
            "uneven": ["all"] * 20 + [None] * 10,
        }
    )
    cohort = Cohort.from_segments(segments, participants=people)
    found = {
        together: reliability(None, cohort, fit=fit, bootstrap=50, together=together)
        for together in (None, "alone", "pair", "uneven")
    }
    rows = {together: one.row("duration") for together, one in found.items()}
    ends = {together: (row["low"], row["high"]) for together, row in rows.items()}
    assert len({row["r"] for row in rows.values()}) == 1
    assert ends[None] == ends["alone"] != ends["pair"]
    assert all(low < high for low, high in ends.values())
    retest = {together: one.row("duration", "retest")["low"] for together, one in found.items()}
    assert retest[None] == retest["alone"] != retest["pair"]
    assert found["pair"].record.settings["together"] == "pair"
    assert "together" not in found[None].record.settings
    with pytest.raises(DataError, match="no column 'quad'"):
        reliability(None, cohort, fit=fit, together="quad")


def test_groups_are_drawn_alike_all_at_a_time_and_one_by_one(monkeypatch):
    group = np.repeat(np.arange(6), 2)
    members = [np.flatnonzero(group == one) for one in range(6)]
    rng = np.random.default_rng(2)
    slow = [np.concatenate([members[i] for i in rng.integers(0, 6, 6)]) for _ in range(30)]
    (quick,) = redraws(12, 30, np.random.default_rng(2), together=group)
    np.testing.assert_array_equal(quick, slow)
    monkeypatch.setattr("fidm.stats.AT_ONCE", 12 * 7)
    pieces = list(redraws(12, 30, np.random.default_rng(2), together=group))
    assert [len(one) for one in pieces] == [7, 7, 7, 7, 2]
    np.testing.assert_array_equal(np.concatenate(pieces), slow)
    alone, more = (
        list(redraws(12, 30, np.random.default_rng(3), together=own)) for own in (None, np.arange(12))
    )
    np.testing.assert_array_equal(np.concatenate(alone), np.concatenate(more))


def test_groups_of_different_sizes_are_drawn_whole():
    group = np.array([0, 0, 0, 1, 2, 2])
    for (rows,) in redraws(6, 20, np.random.default_rng(1), together=group):
        often = np.bincount(rows, minlength=6)
        assert often[0] == often[1] == often[2]
        assert often[4] == often[5]
        assert often[0] + often[3] + often[4] == 3


def test_reliability_says_what_does_not_go_together(segments, fit):
    cohort = Cohort.from_segments(segments)
    task = fidm.load_task("errands")
    with pytest.raises(DataError, match="None as the task"):
        reliability(task, cohort, fit=fit)
    with pytest.raises(DataError, match="to halves"):
        reliability(None, cohort, fit=fit, unit="episode", halves="episodes")
    with pytest.raises(DataError, match="unit is"):
        reliability(None, cohort, fit=fit, unit="dialog")


def test_episodes_can_stand_for_people(segments):
    people = pl.DataFrame({"participant": [f"P{j:02d}" for j in range(30)], "age": range(30)})
    cohort = Cohort.from_segments(segments, participants=people).by_episode()
    assert len(cohort) == 60
    assert cohort.participants.row(1, named=True) == {"participant": "P00, 2", "age": 0, "person": "P00"}
