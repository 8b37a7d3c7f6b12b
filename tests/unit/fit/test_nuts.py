"""The sampled model is the package's own model, and sampling can be stopped, resumed and refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest

import fidm
from fidm.channels import (
    Bernoulli,
    Gamma,
    LogNormal,
    NegativeBinomial,
    Poisson,
    ShiftedNegativeBinomial,
    Weibull,
)
from fidm.errors import FitError
from fidm.fit import nuts, offsets, plausible, sensitivity
from fidm.fit.draws import Draws
from fidm.fit.offsets import Population
from fidm.fit.population import _Free
from fidm.model.effort import paper_channels, text_levels

TASK = fidm.load_task("errands")
RNG = np.random.default_rng(8)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture(autouse=True)
def _in_double_precision():
    with nuts.double_precision():
        yield


# ---------------------------------------------------------------------- the density


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.5, 4e3])
@pytest.mark.parametrize(
    "kind", [Gamma, LogNormal, NegativeBinomial, ShiftedNegativeBinomial, Poisson, Bernoulli]
)
def test_every_channel_has_the_density_of_the_package(kind, shape):
    channel = kind("one", "column")
    xi = RNG.normal(0, 2, 500)
    y = channel.sample(xi, shape, RNG)
    if kind is Gamma:
        y = np.maximum(y, 1e-12)
    varying, fixed = nuts.DENSITIES[kind]
    found = np.asarray(varying(y, xi, shape) + fixed(y, shape))
    # sums of large numbers that cancel: log Γ(y + κ) − log Γ(κ)
    atol = 1e-10 if shape < 1e3 else 1e-9
    np.testing.assert_allclose(found, channel.log_density(y, xi, shape), rtol=1e-10, atol=atol)


def test_every_kind_that_can_be_sampled_is_compared_above():
    tested = {Gamma, LogNormal, NegativeBinomial, ShiftedNegativeBinomial, Poisson, Bernoulli}
    assert tested == set(nuts.DENSITIES)


@cache
def study(n=9):
    """A study, its data and the places of its arrays; somebody said nothing, somebody chose nothing."""
    cohort = fidm.simulate_cohort(TASK, n, seed=3, max_steps=30)
    owner = np.repeat(np.arange(n), np.diff(cohort.segment_offsets))
    silent = pl.Series(owner == 4)
    segments = cohort.segments.with_columns(
        duration_s=pl.when(~silent).then("duration_s"), pause_s=pl.when(~silent).then("pause_s")
    )
    cohort = replace(cohort, segments=segments, weight=np.where(_owner_of_steps(cohort) == 2, 0.0, 1.0))
    model = fidm.Model(TASK, channels=paper_channels())
    q = model.tasks.values([fidm.solve(TASK)])
    levels, _, data = model._lay_out(cohort, paper_channels(), q)
    return cohort, data, levels


def _owner_of_steps(cohort):
    steps = np.diff(cohort.step_offsets[cohort.episode_offsets])
    return np.repeat(np.arange(len(cohort)), steps)


def test_choices_have_the_likelihood_of_the_package():
    _, data, _ = study()
    log_eta = RNG.normal(3, 1, len(data))
    for lapse in (0.0, 0.07):
        found = nuts.of_choices(nuts.Chosen.of(data.choices), log_eta, lapse)
        expected = sensitivity.values_at(data.choices, np.exp(log_eta), lapse) - data.choices.flat
        np.testing.assert_allclose(found, expected, **CLOSE)
    assert (np.diff(data.choices.person_offsets) == 0).sum() == 1


def plan_of(levels, *, joint=True, lapse=None, slopes=((),) * 6):
    return nuts.Plan.of(paper_channels(), levels, slopes, joint=joint, lapse=lapse)


def test_the_posterior_is_that_of_the_package_and_its_hyperpriors():
    _, data, levels = study()
    plan = plan_of(levels, joint=False, lapse=0.0)
    laid = nuts.Laid.of(data, [np.zeros((len(data), 0))] * 6)

    def by_hand(free):
        at = nuts.latent(plan, free, laid)
        people, log_sd = np.asarray(at.people), np.asarray(at.log_sd)
        total = sensitivity.values_at(data.choices, np.exp(people[:, 0]), 0.0).sum()
        total += plausible.log_sd_prior(float(log_sd[0]), plausible.SENSITIVITY_SCALE)[0]
        middle = sensitivity._Learning(data.choices, 1).middle
        total -= 0.5 * ((float(at.mean) - middle) / sensitivity.MIDDLE_SD) ** 2
        values = dict(zip(plan.names(), np.asarray(nuts.shared(plan, free, at, laid)).tolist(), strict=True))
        for k, (channel, seen) in enumerate(zip(paper_channels(), data.effort, strict=True)):
            design = [values[channel.name, name] for name in plan.designs[k]]
            shape = values.get((channel.name, channel.shape_name), 1.0)
            population = Population(np.array(design), shape, 0.0, values[channel.name, "sd"])
            total += offsets.values_at(channel, seen, population, people[:, k + 1]).sum()
            of = _Free.all_of(channel, population)
            total += of.hyperprior(channel, seen)(of.numbers(population))[0]
        return total - 0.5 * np.square(free["own"]).sum()

    one, other = (plan.start(data, paper_channels(), laid, 5, chain) for chain in (0, 1))
    found = [float(nuts.log_posterior(plan, free, laid)) for free in (one, other)]
    expected = [float(by_hand(free)) for free in (one, other)]
    assert abs(expected[0] - expected[1]) > 5
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1], rel=1e-10)


def test_correlations_are_uniform_and_the_lapse_rate_has_its_density():
    _, data, levels = study()
    plan = plan_of(levels)
    laid = nuts.Laid.of(data, [np.zeros((len(data), 0))] * 6)
    below = np.tril_indices(6, -1)

    def correlations(free):
        root, _ = nuts._correlated(free)
        return (root @ root.T)[below]

    found, expected = [], []
    for chain in (0, 1):
        free = plan.start(data, paper_channels(), laid, 6, chain)
        at = nuts.latent(plan, free, laid)
        found.append(float(nuts.beforehand(plan, free, at, laid.middle)))
        rest = nuts.beforehand(plan_of(levels, joint=False, lapse=0.0), free, at, laid.middle)
        volume = np.linalg.slogdet(jax.jit(jax.jacobian(correlations))(free["correlations"]))[1]
        lapse = float(jax.nn.sigmoid(free["logit_lapse"]))
        density = np.log(lapse * (1 - lapse)) + sensitivity.LAPSE_PRIOR * np.log1p(-lapse)
        expected.append(float(rest) + volume + density)
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1], rel=1e-10)


def test_what_is_sampled_has_the_volume_of_what_it_means():
    _, data, levels = study()
    plan = plan_of(levels, lapse=0.0)
    laid = nuts.Laid.of(data, [np.zeros((len(data), 0))] * 6)
    free = plan.start(data, paper_channels(), laid, 7, 0)
    names = ["average", "log_spread", *(f"coefficients of {name}" for name in plan.parameters[1:])]

    def meant(some):
        at = nuts.latent(plan, {**free, **some}, laid)
        return jax.numpy.concatenate([at.mean[None], at.log_sd, *at.coefficients, some["own"].ravel()])

    slopes = jax.jacobian(meant)({name: free[name] for name in [*names, "own"]})
    columns = [np.asarray(slopes[name]).reshape(len(slopes["own"]), -1) for name in [*names, "own"]]
    sign, volume = np.linalg.slogdet(np.concatenate(columns, axis=1))
    assert sign == 1
    assert volume == pytest.approx(0.0, abs=1e-10)


def test_covariates_move_people_by_their_slopes():
    _, data, levels = study()
    age = RNG.normal(0, 10, (len(data), 1))
    known = [np.zeros((len(data), 0))] * 2 + [age] + [np.zeros((len(data), 0))] * 3
    plan = plan_of(levels, slopes=((), (), ("age",), (), (), ()))
    laid = nuts.Laid.of(data, known)
    free = plan.start(data, paper_channels(), laid, 8, 0)
    with_slope, without = (
        nuts.latent(plan, {**free, "slopes of characters": np.array([slope])}, laid) for slope in (0.03, 0.0)
    )
    moved = np.asarray(with_slope.people - without.people)
    np.testing.assert_allclose(moved[:, 2], 0.03 * age[:, 0], **CLOSE)
    assert not moved[:, [0, 1, 3, 4, 5]].any()
    named = dict(zip(plan.names(), np.asarray(nuts.shared(plan, free, without, laid)), strict=True))
    assert named["characters", "slope of age"] == free["slopes of characters"][0]


def test_slopes_have_the_hyperprior_of_a_fit():
    _, data, _ = study()
    known, slopes = RNG.normal(3, [10, 1], (len(data), 2)), np.array([0.05, -1.2])
    seen = data.effort[0].counts > 0
    assert 0 < seen.sum() < len(data)
    found = nuts._slopes_beforehand(slopes, known, seen.astype(np.float64), 0.5)
    expected = plausible.log_slopes_prior(slopes, np.cov(known[seen].T, ddof=0), 0.5)[0]
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_a_regressed_model_is_sampled_with_its_slopes():
    about = people().participants.with_columns(age=pl.Series(np.linspace(55, 85, 14)))
    found = model(regress="age").sample(people().with_participants(about), **FEW)
    slopes = [name for name, quantity in found.names if quantity == "slope of age"]
    assert slopes == list(found.draws.parameters)


# ---------------------------------------------------------------------- sampling

ONE = LogNormal("pause", "pause_s", zeros="left_out")
FEW = {"draws": 60, "warmup": 100, "chains": 2, "seed": 1, "joint": False, "however_long": True}


@cache
def people():
    return fidm.simulate_cohort(TASK, 14, seed=5, max_steps=30)


def model(**options):
    return fidm.Model(TASK, **{"channels": [ONE], "lapse": 0.0, **options})


@cache
def sampled():
    return model().sample(people(), **FEW)


def same(one, other):
    return np.array_equal(one, other, equal_nan=True)


class StoppedError(Exception):
    """Somebody stopped it."""


def test_sampling_gives_draws_of_everybody_and_of_what_people_share():
    found = sampled()
    assert isinstance(found.draws, Draws)
    assert found.draws.parameters == ("log_action_sensitivity", "pause")
    assert found.draws.values.shape == (14, 2, 120)
    assert found.names == (
        ("log_action_sensitivity", "mean"),
        ("log_action_sensitivity", "sd"),
        ("pause", "intercept"),
        ("pause", "log_moves"),
        ("pause", "log_sd"),
        ("pause", "sd"),
    )
    assert found.shared.shape == (6, 120)
    assert found.divergent.shape == (2, 60)
    assert repr(found).endswith("2 chains of 60 draws)")
    profile = model().fit(people()).profile(people())
    assert found.table.columns == [name for name in profile.table.columns if name != "status"]
    assert found.table["n"].to_list() == profile.table["n"].to_list()
    table = model().fit(people()).population_table()
    rows = table.filter(pl.col("parameter") != "lapse").select("parameter", "quantity").rows()
    assert tuple(rows) == found.names


def test_a_fit_agrees_with_what_is_sampled():
    found, profile = sampled(), model().fit(people()).profile(people())
    own = found.draws.values
    for k, expected in enumerate((profile.log_sensitivity, profile.estimate[:, 1])):
        # 120 draws: a mean is known to about a tenth of its standard deviation
        some = np.isfinite(expected)
        assert same(some, ~np.isnan(own[:, k]).any(axis=1))
        mean, sd = own[some, k].mean(axis=1), own[some, k].std(axis=1)
        away = (mean - expected[some]) / sd
        assert np.abs(away).max() < 0.5
        assert abs(away.mean()) < 0.25
        assert np.mean(sd / profile.errors[some, k]) == pytest.approx(1.0, abs=0.15)


def test_the_same_seed_gives_the_same_draws_with_any_number_of_threads():
    again = model().sample(people(), **FEW, workers=1)
    assert same(again.draws.values, sampled().draws.values)
    other = model().sample(people(), **{**FEW, "seed": 2})
    assert (other.draws.values != sampled().draws.values).mean() > 0.9


@pytest.mark.parametrize("after", [25, 125])
def test_what_was_stopped_goes_on_as_if_it_never_was(tmp_path, after):
    keep = tmp_path / "chains.npz"

    def stop(doing, done, of):
        if done >= after:
            raise StoppedError

    with pytest.raises(StoppedError):
        model().sample(people(), **FEW, keep=keep, on_progress=stop)
    seen = []
    found = model().sample(people(), **FEW, keep=keep, on_progress=lambda *one: seen.append(one))
    assert seen[0] == ("warming up" if after < 100 else "sampling", after, 160)
    assert seen[-1] == ("done", 160, 160)
    assert same(found.draws.values, sampled().draws.values)
    assert (found.shared == sampled().shared).all()
    assert (found.energy == sampled().energy).all()
    fewer = model().sample(people(), **{**FEW, "draws": 40}, keep=keep)
    one, other = (fidm.fit.draws.by_chain(a.draws.values, 2) for a in (fewer, sampled()))
    assert same(one, other[..., :40])


def test_chains_of_something_else_are_not_continued(tmp_path):
    keep = tmp_path / "chains.npz"
    short = {**FEW, "warmup": 100, "draws": 4}
    model().sample(people(), **short, keep=keep)
    with pytest.raises(FitError, match="other data, settings or another seed"):
        model().sample(people()[:13], **short, keep=keep)
    with pytest.raises(FitError, match="other data, settings or another seed"):
        model().sample(people(), **{**short, "seed": 2}, keep=keep)
    keep.write_bytes(keep.read_bytes()[:500])
    with pytest.raises(FitError, match="damaged"):
        model().sample(people(), **short, keep=keep)


def test_chains_side_by_side_are_those_in_threads():
    levels = text_levels([ONE], people())
    q = model().tasks.values([fidm.solve(TASK)])
    data = model()._lay_out(people(), [ONE], q)[2]
    plan = nuts.Plan.of([ONE], levels, [(), ()], joint=False, lapse=0.0)
    laid = nuts.Laid.of(data, [np.zeros((14, 0))] * 2)
    starts = [plan.start(data, [ONE], laid, 1, chain) for chain in range(2)]
    told = []
    for vectorised in (False, True):
        chains = nuts.Chains(plan, laid, starts, seed=1, warmup=100, workers=2, vectorised=vectorised)
        told.append(chains.advance(chains.begin(), 3)[1])
    assert told[0].leapfrogs.shape == (2, 3)
    np.testing.assert_array_equal(told[0].leapfrogs, told[1].leapfrogs)
    # each step magnifies differences in the last bit
    np.testing.assert_allclose(told[0].free["own"], told[1].free["own"], atol=1e-6)


def test_arviz_is_given_true_chains_and_what_people_share():
    found = sampled().to_inference_data()
    assert dict(found.posterior.sizes) == {"chain": 2, "draw": 60, "participant": 14}
    own = sampled().draws["pause"]
    assert same(found.posterior["pause"].values[1, 7], own[:, 67])
    assert (found.posterior["pause: sd"].values.ravel() == sampled().shared[-1]).all()
    assert found.sample_stats["diverging"].values.shape == (2, 60)
    table = sampled().diagnostics.table
    assert table.height == (sampled().n > 0).sum() + 6
    assert table["r_hat"].is_between(0.9, 1.2).all()
    assert table["ess_bulk"].is_between(10, 500).all()


def test_jax_outside_keeps_its_precision():
    sampled()
    with jax.enable_x64(False):
        model().sample(people(), **{**FEW, "draws": 4})
        assert jax.numpy.ones(1).dtype == np.float32


# ---------------------------------------------------------------------- what is said, and refused


def chains_of(values, **options):
    people = pl.Series(["a", "b"])
    shape = values.shape[1:]
    draws = Draws(
        people,
        ("log_action_sensitivity",),
        np.broadcast_to(values.reshape(1, 1, -1), (2, 1, values.size)),
        len(values),
    )
    quiet = {
        "divergent": np.zeros((len(values), *shape), bool),
        "leapfrogs": np.full((len(values), *shape), 15),
        "energy": np.zeros((len(values), *shape)),
    }
    return nuts.Posterior(
        draws, np.array([[40], [40]]), (("log_action_sensitivity", "mean"),), values.reshape(1, -1),
        **{**quiet, **options}, level=0.95,
    )  # fmt: skip


def test_chains_that_cannot_be_trusted_are_said_to_be_so():
    rng = np.random.default_rng(1)
    good = rng.normal(size=(4, 500))
    assert chains_of(good).warnings == ()
    (high, few) = chains_of(good + np.arange(4)[:, None]).warnings
    assert high.startswith("R-hat of 3 of 3 quantities is above 1.01")
    assert few.startswith("The smallest effective number of draws is")
    diverged = np.zeros((4, 500), bool)
    diverged[0, :7] = True
    assert chains_of(good, divergent=diverged).warnings[0].startswith("7 paths of 2,000 diverged")
    long = np.full((4, 500), 2**nuts.DEEPEST - 1)
    assert chains_of(good, leapfrogs=long).warnings[0].startswith("2,000 paths of 2,000 reached")
    assert chains_of(rng.normal(size=(1, 500))).warnings[0].startswith("One chain cannot show")


def test_the_table_has_the_median_of_eta_and_the_mean_of_offsets():
    found = sampled()
    rows = found.table.filter(pl.col("participant") == found.draws.participants[3])
    own = found.draws.values[3]
    assert rows["estimate"].to_list() == pytest.approx([np.exp(np.median(own[0])), own[1].mean()])
    assert rows["se"].to_list() == pytest.approx([np.exp(np.median(own[0])) * own[0].std(), own[1].std()])
    assert rows["high"].to_list() == pytest.approx(
        [np.exp(np.quantile(own[0], 0.975)), np.quantile(own[1], 0.975)]
    )
    assert found.population["estimate"].to_list() == pytest.approx(found.shared.mean(axis=1).tolist())


def test_people_without_observations_have_no_draws():
    cohort, _, _ = study()
    found = model().sample(cohort, **{**FEW, "draws": 4})
    missing = np.isnan(found.draws.values).all(axis=2)
    assert missing.tolist() == [[j == 2, j == 4] for j in range(9)]
    assert found.table.filter(pl.col("estimate").is_null())["n"].to_list() == [0, 0]
    assert np.isfinite(found.shared).all()


def test_what_would_take_hours_is_refused_with_an_estimate(monkeypatch):
    monkeypatch.setattr(nuts, "LONGEST_S", 0.0)
    with pytest.raises(FitError, match=r"would take about \d+ \w+ here.*however_long=True"):
        model().sample(people(), **{**FEW, "however_long": False})


@pytest.mark.parametrize(
    ("seconds", "said"), [(5_400, "2 hours"), (7_000_000, "81 days"), (200, "3 minutes"), (0.2, "1 second")]
)
def test_times_are_said_in_units_that_suit_them(seconds, said):
    assert nuts._duration(seconds) == said


def test_a_channel_that_cannot_be_sampled_is_named():
    class Own(Gamma):
        """A gamma with another density."""

    odd = Weibull("wait", "duration_s"), Own("own", "duration_s")
    with pytest.raises(FitError, match=r"wait \(Weibull\), own \(Own\) cannot be sampled"):
        model(channels=[ONE, *odd]).sample(people(), **FEW)


def test_a_channel_that_cannot_be_learned_is_left_out_or_refused():
    cohort = replace(people(), segments=people().segments.with_columns(duration_s=pl.lit(3.0)))
    with pytest.raises(FitError, match="same"):
        model(channels=[Gamma("duration", "duration_s")]).sample(cohort, **FEW)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"draws": 0}, "draws is 0"),
        ({"chains": 0}, "chains is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"level": 2}, "level is 2"),
    ],
)
def test_settings_are_checked(wrong, said):
    with pytest.raises(FitError, match=said):
        model().sample(people(), **{**FEW, **wrong})


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro.infer.hmc", None)
    with pytest.raises(FitError, match=r"pip install 'fidm\[bayes\]'"):
        model().sample(people(), **FEW)


def test_fidm_and_the_fit_do_without_jax():
    code = "import fidm, sys; fidm.Posterior; fidm.Model; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
