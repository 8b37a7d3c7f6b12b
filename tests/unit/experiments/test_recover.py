"""Recovery of independently varied factors: slopes, words, and what it does with poor studies."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import fidm
from fidm.channels import Gamma, LogNormal, NegativeBinomial, Poisson
from fidm.errors import DataError
from fidm.experiments.recover import (
    as_printed,
    over_repetitions,
    partial_slopes,
    recover,
    slope_rows,
    statistic_rows,
    verdict,
)
from fidm.experiments.shared import by_method, fit_learnable
from fidm.fit.factorized import Model
from fidm.model.effort import paper_channels
from fidm.plot.experiments import recovery, recovery_matrix
from fidm.record import to_json, write_result


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def study(task):
    return fidm.simulate_cohort(task, 30, seed=2, max_steps=20)


@pytest.fixture(scope="module")
def found(task, study):
    return recover(task, like=study, repeat=2)


def test_partial_slopes_are_those_of_a_standardized_regression():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 5)) * [1, 2, 3, 4, 5]
    x[:, 1] += x[:, 0]  # manipulations that happen to correlate
    y = 2 * x[:, 0] + rng.normal(size=200)
    y[:3] = np.inf, np.nan, -np.inf
    slope, se, n = partial_slopes(x, y)
    known = np.isfinite(y)
    z = (x[known] - x[known].mean(0)) / x[known].std(0, ddof=1)
    v = (y[known] - y[known].mean()) / y[known].std(ddof=1)
    import statsmodels.api as sm

    model = sm.OLS(v, sm.add_constant(z)).fit()
    assert n == 197
    np.testing.assert_allclose(slope, model.params[1:], atol=1e-12)
    np.testing.assert_allclose(se, model.bse[1:] * np.sqrt(1 - model.params[1:] ** 2), rtol=1e-10)
    assert abs(slope[1]) < 0.05  # what passes through another manipulation is not counted


def test_people_who_are_all_alike_are_not_recovered():
    x = np.random.default_rng(1).normal(size=(50, 2))
    assert partial_slopes(x, np.full(50, 3.0))[0].tolist() == [0, 0]
    assert np.isnan(partial_slopes(x[:3], np.arange(3.0))[0]).all()


def test_one_fit_may_serve_both_methods_nearly(task, study):
    """Empirical Bayes takes the most probable population, maximum likelihood the likeliest."""
    channels = paper_channels()[:4]
    ours = by_method(fit_learnable([task], study, channels)[0], "mle").profile(study)
    theirs = Model(task, channels=channels).fit(study, method="mle").profile(study)
    np.testing.assert_allclose(ours.estimate[:, 1:], theirs.estimate[:, 1:], atol=0.02)


def test_every_condition_method_and_scale_has_a_matrix(found):
    assert found.conditions == ("complete", "missing", "noise")
    assert found.methods == ("eb", "mle")
    for condition in found.conditions:
        for method in found.methods:
            for scale in ("log", "raw"):
                assert np.isfinite(found.matrix(condition, method=method, scale=scale)).all()
    assert found.matrices.height == 3 * 2 * 2 * 25
    assert (found.matrix(value="sd") > 0).all()
    np.testing.assert_array_equal(found.matrix()[:, 0], found.matrix("noise")[:, 0])  # choices are the same
    with pytest.raises(DataError, match="no matrix"):
        found.matrix("windy")


def test_a_study_answers_in_words(found, study):
    first, *rest = found.sentences()
    assert first.startswith("With your 30 people")
    assert "action sensitivity η" in first
    assert "over 2 repetitions" in first
    assert any(line.startswith("Pause length") for line in rest)
    row = found.row("duration")
    assert row["r_low"] < row["r"] < row["r_high"]
    assert found.record.settings["spread"] == "study"
    assert found.n_segments == study.n_segments / 30


def test_verdicts_have_declared_thresholds():
    assert [verdict(r) for r in (0.85, 0.84, 0.70, 0.69, 0.50, 0.49)] == [
        "well", "well enough to compare groups", "well enough to compare groups", "only weakly",
        "only weakly", "",
    ]  # fmt: skip
    assert [as_printed(v) for v in (0.931, -0.04, -0.001, 1.0, float("nan"))] == [
        ".93", "-.04", ".00", "1.00", "–",
    ]  # fmt: skip


def test_one_repetition_has_the_range_of_one_correlation():
    table = over_repetitions([{"parameter": "x", "r": 0.5, "slope": 1.0, "n": 103}], ["parameter"])
    assert table["r"][0] == pytest.approx(0.5)
    assert table["r_high"][0] == pytest.approx(np.tanh(np.arctanh(0.5) + 1.96 * np.sqrt(2) / 10))


@pytest.mark.parametrize("repeat", [1, 2, 5, 10])
def test_nineteen_of_twenty_further_studies_lie_in_the_range(repeat):
    """Correlations of 100 people whose true one is .6: the range of some holds 95 % of others."""
    rng = np.random.default_rng(repeat)
    z = np.arctanh(0.6) + rng.normal(size=(1_500, repeat + 1)) / np.sqrt(97)
    rows = [{"study": i, "r": np.tanh(v), "slope": 1.0, "n": 100} for i, own in enumerate(z) for v in own[1:]]
    table = over_repetitions(rows, ["study"])
    low, high, other = table["r_low"].to_numpy(), table["r_high"].to_numpy(), np.tanh(z[:, 0])
    inside = (low <= other) & (other <= high)
    assert 0.93 <= inside.mean() <= 0.97


def test_bias_coverage_and_error_are_what_they_say(task, study):
    """A profile whose estimates are the truth plus what we say, in every number."""
    profile = fidm.Model(task, channels=paper_channels()[:1]).fit(study).profile(study)
    truth = np.zeros((len(study), 2))
    shift = np.linspace(-0.2, 0.4, len(study))
    changed = replace(
        profile,
        estimate=np.column_stack([np.exp(shift), shift]),
        log_sensitivity=shift,
        low=np.column_stack([np.exp(shift - 0.3), shift - 0.3]),
        high=np.column_stack([np.exp(shift + 0.1), shift + 0.1]),
    )
    log_eta, eta, duration = statistic_rows(truth, paper_channels()[:1], changed)
    assert (log_eta["parameter"], eta["parameter"]) == ("log_action_sensitivity", "action_sensitivity")
    for row in (log_eta, duration):
        assert row["bias"] == pytest.approx(shift.mean())
        assert row["rmse"] == pytest.approx(np.sqrt((shift**2).mean()))
        assert row["coverage"] == pytest.approx(((shift - 0.3 <= 0) & (shift + 0.1 >= 0)).mean())
    assert eta["bias"] == pytest.approx((np.exp(shift) - 1).mean())


def test_each_scale_of_sensitivity_responds_to_its_own(task, study):
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(len(study), 2))
    profile = fidm.Model(task, channels=paper_channels()[:1]).fit(study).profile(study)
    eta = np.exp(factors[:, 0])
    changed = replace(profile, estimate=np.column_stack([eta, factors[:, 1]]), log_sensitivity=factors[:, 0])
    for row in slope_rows(factors, paper_channels()[:1], changed):
        own = row["factor"] == row["recovered"]
        assert row["slope"] == pytest.approx(1.0 if own else 0.0, abs=1e-9)


def test_what_people_share_comes_from_the_part_to_learn_from(task, study):
    owner = np.repeat(study.episode_owner(), np.diff(study.segment_offsets))
    keyed = study.segments.with_columns(participant=study.ids.gather(owner), episode=pl.lit("1"))
    late = pl.Series(owner >= 20)
    slow = keyed.with_columns(
        pl.when(late).then(pl.col("duration_s") * 50).otherwise("duration_s").alias("duration_s")
    )
    options = {"learn_from": study[:20], "conditions": ["complete"], "methods": ["mle"]}
    ours, theirs = (
        recover(task, like=like, **options).record.settings["truth"]
        for like in (study, study.with_segments(slow))
    )
    assert ours == theirs
    everybody = recover(task, like=study.with_segments(slow), conditions=["complete"], methods=["mle"])
    assert everybody.record.settings["truth"] != ours


@pytest.mark.parametrize("name", ["effort_sd", "log_sensitivity_sd"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_does_not_vary_cannot_be_asked_for(task, name, value):
    with pytest.raises(DataError, match=name):
        recover(task, n=20, **{name: value})


def test_few_people_cannot_tell_whether_a_factor_passes_for_another(task):
    said = recover(task, n=12, conditions=["complete"], methods=["eb"]).sentences()[-1]
    assert said.startswith("Too few people to tell") or "passes in part" in said


def test_the_same_seed_gives_the_same_numbers_with_any_number_of_workers(task, study):
    one, two = (recover(task, like=study, conditions=["complete"], workers=w) for w in (1, 2))
    assert to_json(one) == to_json(two)
    other = recover(task, like=study, conditions=["complete"], seed=2)
    assert not np.array_equal(one.matrix(), other.matrix())


def test_more_people_like_these_can_be_asked_for(task, study):
    more = recover(task, like=study, n=60, conditions=["complete"], methods=["mle"])
    assert more.n_people == 60
    assert more.methods == ("mle",)


def test_the_spread_may_be_the_papers(task, study):
    wide = recover(task, like=study, spread="paper", effort_sd=0.9, conditions=["complete"], methods=["eb"])
    assert wide.record.settings["sd"]["action_sensitivity"] == 0.42
    assert wide.record.settings["sd"]["turns"] == 0.9


def test_a_channel_that_cannot_be_learned_is_left_out_and_said_so(task, study):
    silent = study.segments.with_columns(pause_s=pl.lit(0.0)).drop("n_turns")
    poor = recover(task, like=replace(study, segments=silent), conditions=["complete"], methods=["eb"])
    assert poor.factors == ("action_sensitivity", "duration", "characters")
    assert any("turns is left" in note for note in poor.notes)
    assert any(note.startswith("pause is left out") for note in poor.notes)


class _Silent(Gamma):
    """A channel of somebody's own that nobody can simulate."""

    kind = "silent"

    def sample(self, xi, shape, rng):
        """There is none."""
        raise NotImplementedError


def test_a_study_is_recovered_with_channels_and_designs_of_its_own(task, study):
    rng = np.random.default_rng(1)
    table = study.segments.with_columns(
        role=pl.Series(rng.choice(["asks", "tells"], study.n_segments)),
        n_glances=pl.Series(rng.poisson(3.0, study.n_segments)),
        wait_s=pl.Series(rng.gamma(2.0, 1.0, study.n_segments)),
        site=pl.lit("here"),
    )
    own = replace(study, segments=table)
    channels = [
        Gamma("duration", "duration_s", design=("log_moves", "role", "site")),
        Poisson("glances", "n_glances", design=()),
        _Silent("wait", "wait_s", design=()),
        LogNormal("speed", "duration_s"),
        NegativeBinomial("turns", "n_turns", design=("n_glances",)),
    ]
    found = recover(task, like=own, channels=channels, conditions=["complete"], methods=["eb"], effort_sd=0.7)
    assert found.factors == ("action_sensitivity", "duration", "glances")
    assert found.row("glances")["r"] > 0.7
    assert found.row("duration")["r"] > 0.7
    assert len(found.record.settings["truth"]["duration"]) == 5
    said = " ".join(found.notes)
    assert "duration is not conditioned on site" in said
    assert "wait is left out: its kind, silent, cannot be simulated" in said
    assert "speed is left out: duration is drawn in the same column" in said
    assert "turns is left out: it is conditioned on n_glances, drawn anew" in said


def test_a_study_without_segments_recovers_sensitivity_alone(task, study):
    bare = replace(
        study, segments=study.segments[:0], segment_offsets=np.zeros(study.n_episodes + 1, int), segment=None
    )
    assert recover(task, like=bare, conditions=["complete"]).factors == ("action_sensitivity",)


def test_too_few_people_and_wrong_settings(task, study):
    with pytest.raises(DataError, match="needs 10 or more"):
        recover(task, like=study[:5])
    with pytest.raises(DataError, match="needs a study"):
        recover(task, spread="study")
    with pytest.raises(DataError, match="methods must be"):
        recover(task, methods=["guess"])
    with pytest.raises(DataError, match=r"noise is .* must be above 1"):
        recover(task, noise=0.5)
    with pytest.raises(DataError, match="repeat is 0"):
        recover(task, repeat=0)


def test_it_is_written_and_drawn(found, tmp_path):
    names = {path.name for path in write_result(found, tmp_path)}
    assert names == {"recover.json", "recover.csv", "recover-matrix.csv"}
    said = json.loads((tmp_path / "recover.json").read_text("utf-8"))
    assert said["result"]["sentences"][0].startswith("With your")
    figure = recovery(found)
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 4
    ax = recovery_matrix(found, method="mle", scale="raw")
    assert ax.texts[0].get_text() == as_printed(found.matrix(method="mle", scale="raw")[0, 0])


def test_the_papers_maximum_likelihood_learns_as_if_all_segments_were_one_persons(task):
    random, pooled = (
        recover(task, n=60, seed=3, methods=["mle"], population=kind, conditions=["complete"])
        for kind in ("random", "pooled")
    )
    assert (random.record.settings["population"], pooled.record.settings["population"]) == (
        "random",
        "pooled",
    )
    first, second = (
        found.parameters.filter(parameter="duration").row(0, named=True) for found in (random, pooled)
    )
    assert first["r"] == pytest.approx(second["r"], abs=0.01)
    assert second["bias"] - first["bias"] == pytest.approx(-(0.7**2) / 2, abs=0.1), (
        "θ from the average segment"
    )
    with pytest.raises(DataError, match="population is 'none'"):
        recover(task, n=60, population="none")
