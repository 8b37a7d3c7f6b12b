"""What the others share predicts a person as a fit without them does."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import logsumexp

import fidm
from fidm.errors import FitError
from fidm.fit import plausible, population, sensitivity
from fidm.model.effort import paper_channels

TASK = fidm.load_task("errands")
STUDIES = {"15 people": (15, {"max_steps": 60}), "40 people": (40, {"max_steps": 60})}
FACTORS = ("action", "duration", "turns", "pause_presence")


@cache
def study(name):
    n, people = STUDIES[name]
    cohort = fidm.simulate_cohort(TASK, n, seed=4, **people)
    return cohort, model().fit(cohort)


def model():
    return fidm.Model(TASK, channels=[c for c in paper_channels() if c.name in FACTORS])


def predicted(fit, cohort):
    """How probable one person's data are under a fit, averaged over its plausible populations, by factor."""
    data = fit._data(cohort)
    found = {}
    for channel, seen in zip(fit.channels, data.effort, strict=True):
        learned = fit.populations[channel.name]
        weights, populations = np.ones(1), [learned.population]
        if learned.plausible is not None:
            weights, populations = learned.plausible.weight, learned.plausible.populations(0.0)
        found[channel.name] = [weights, population._marginals(channel, seen, populations, 1)[:, 0]]
    prior, log_eta = fit.prior, np.linspace(-12, 16, 2_801)
    priors = [(fit.lapse, prior.mean, prior.sd, 1.0)]
    if prior.plausible is not None:
        priors = zip(
            *(getattr(prior.plausible, name) for name in ("lapse", "mean", "sd", "weight")), strict=True
        )
    rate, mean, sd, weight = (np.array(column) for column in zip(*priors, strict=True))
    table = {
        one: sensitivity.values_on(data.choices, np.exp(log_eta)[None], one)[0] for one in np.unique(rate)
    }
    said = np.stack([table[one] for one in rate]) + stats.norm.logpdf(log_eta, mean[:, None], sd[:, None])
    found["action"] = [weight, logsumexp(said, axis=1) + math.log(0.01) + data.choices.flat[0]]
    return [float(logsumexp(values, b=weights)) for weights, values in (found[name] for name in FACTORS)]


def certain(fit):
    """The same fit without doubt about what people share."""
    populations = {name: replace(one, plausible=None) for name, one in fit.populations.items()}
    return replace(fit, prior=replace(fit.prior, plausible=None), populations=populations)


@cache
def fits_without(name):
    """Every person of a study, or every third, and the fit to all the others.

    Which plausible populations are drawn must not matter, and whether effort is carried over is held.
    """
    cohort, _ = study(name)
    people = np.arange(0, len(cohort), 1 if len(cohort) < 20 else 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plausible, "points_for", lambda observations: 512)
        patch.setattr(population, "carried_over", lambda *_: 0.0)
        return {j: model().fit(cohort[np.delete(np.arange(len(cohort)), j)]) for j in people}


@pytest.mark.parametrize(
    ("name", "made"),
    [("15 people", lambda fit: fit), ("40 people", lambda fit: fit), ("40 people", certain)],
    ids=["15 people", "40 people", "40 people, one Newton step"],
)
def test_values_are_those_of_a_fit_without_the_person(name, made):
    cohort, fit = study(name)
    found = made(fit).leave_one_out(cohort).select(FACTORS).to_numpy()
    assert all(one.population.carried == 0 for one in fit.populations.values())
    people = list(fits_without(name))
    exact = [predicted(made(others), cohort[[j]]) for j, others in fits_without(name).items()]
    off = found[people] - exact
    print(name, np.abs(off).mean(axis=0).round(3), np.abs(off).max(axis=0).round(2))
    assert np.abs(off).mean(axis=0).max() <= 0.05
    seen = fit.log_likelihood(cohort, at="prior").select(FACTORS).to_numpy()[people]
    assert np.abs(seen - exact).mean() > 3 * np.abs(off).mean()  # nor would the fit that saw them do


def test_the_order_of_people_changes_no_bit():
    cohort, fit = study("15 people")
    order = np.random.default_rng(0).permutation(15)
    table = fit.leave_one_out(cohort)
    assert fit.leave_one_out(cohort[order], workers=2).equals(table[order.tolist()])
    assert table.columns == ["participant", *FACTORS, "total"]


def test_somebody_without_observations_has_0():
    cohort, fit = study("15 people")
    first, last = cohort.segment_offsets[2:4]  # everybody has one episode
    own = pl.int_range(pl.len()).is_between(first, last - 1)
    nothing = cohort.segments.with_columns(pl.when(~own).then(pl.col("^(duration|n_turns|pause).*$")))
    silent = replace(cohort, segments=nothing)
    row = fit.leave_one_out(silent).row(2, named=True)
    assert max(abs(row[name]) for name in FACTORS[1:]) < 1e-6
    assert row["total"] == pytest.approx(row["action"], abs=1e-5)


def test_effort_without_a_task_is_left_out_too():
    cohort, _ = study("15 people")
    fit = fidm.fit_effort(cohort)
    found, seen = fit.leave_one_out(cohort), fit.log_likelihood(cohort)
    assert found.columns == ["participant", *fit.parameters, "total"]
    assert -3 < (found["total"] - seen["total"]).mean() < -0.1


def test_a_pooled_fit_is_refused():
    cohort, _ = study("15 people")
    with pytest.raises(FitError, match=r"needs random intercepts.*population='random'"):
        fidm.fit_effort(cohort, population="pooled").leave_one_out(cohort)


def test_maximum_likelihood_has_nothing_to_average_over():
    cohort, _ = study("15 people")
    fit = fidm.Model(TASK, channels=()).fit(cohort, method="mle")
    with pytest.raises(FitError, match="no prior of action_sensitivity to average over"):
        fit.leave_one_out(cohort)


def test_arviz_compares_models_by_people_left_out():
    import arviz

    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 12, seed=2)
    fits = {
        name: fidm.Model(task, channels=channel("duration", "duration_s")).fit(people)
        for name, channel in {"gamma": fidm.channels.Gamma, "log-normal": fidm.channels.LogNormal}.items()
    }
    table = arviz.compare({name: fit.elpd(people, of="duration") for name, fit in fits.items()})
    own = {name: fit.leave_one_out(people)["duration"].sum() for name, fit in fits.items()}
    for name, value in own.items():
        assert table.loc[name, "elpd_loo"] == pytest.approx(value)
    assert table.index[0] == max(own, key=own.get)
    assert "elpd_loo" in str(fits["gamma"].elpd(people))
    with pytest.raises(fidm.FitError, match="there are: action, duration, total"):
        fits["gamma"].elpd(people, of="turns")
