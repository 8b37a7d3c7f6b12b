"""Draws are of the posterior that a profile sums up, and of nothing else."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

import fidm
from fidm.errors import DataError, FitError
from fidm.simulate.cohort import People

TASK = fidm.load_task("errands")
N = 20_000


def two_kinds():
    shifts = np.zeros((60, 6))
    shifts[:15] = [-1.2, 0.8, 0.8, 0.8, 0.8, 0.8]
    return shifts


def some_at_random():
    shifts = np.zeros((60, 6))
    shifts[:9, 0] = -15.0
    return shifts


def going_together():
    correlation = np.eye(6)
    correlation[1, 2] = correlation[2, 1] = 0.9
    return People(correlation=correlation)


STUDIES = {
    "40 people": (40, {"max_steps": 60}, {}),
    "12 people": (12, {"max_steps": 10}, {}),
    "two kinds": (60, {"shifts": two_kinds()}, {}),
    "at random": (60, {"shifts": some_at_random(), "max_steps": 60}, {}),
    "joint": (110, {"people": going_together()}, {"joint": True}),
}


@cache
def fitted(study):
    """The people of a study and the fit to them."""
    n, people, way = STUDIES[study]
    cohort = fidm.simulate_cohort(TASK, n, seed=4, **people)
    return cohort, fidm.Model(TASK).fit(cohort, **way)


def some(study):
    """At most twenty people of a study, of all its kinds: so many draws take long."""
    cohort, _ = fitted(study)
    return cohort[np.arange(0, len(cohort), math.ceil(len(cohort) / 20))]


@cache
def drawn(study):
    """Draws of these people's posteriors."""
    return fitted(study)[1].draws(some(study), N, seed=1)


def in_logs(profile):
    """Estimate, se, low and high of log η and of every offset, [P, K]."""
    columns = [getattr(profile, name).copy() for name in ("estimate", "se", "low", "high")]
    columns[0][:, 0], columns[1][:, 0] = profile.log_sensitivity, profile.log_sensitivity_se
    with np.errstate(divide="ignore"):
        columns[2][:, 0], columns[3][:, 0] = np.log(columns[2][:, 0]), np.log(columns[3][:, 0])
    return columns


def misfits(draws, profile):
    """By how many Monte Carlo errors estimate, sd, and the shares below low and high are off, [M, 4]."""
    tail, found = 0.5 * (1 - profile.level), []
    median = np.tile(np.arange(len(profile.parameters)) == 0, len(profile))  # of log η, the mean of others
    for *told, of_eta, values in zip(
        *(column.ravel() for column in in_logs(profile)), median, draws.values.reshape(-1, N), strict=True
    ):
        estimate, sd, low, high = told
        if np.isnan(estimate):
            assert np.isnan(values).all()
            continue
        error, chosen = math.sqrt(tail * (1 - tail) / N), values[np.isfinite(values)]
        off = [0.0, 0.0]
        for end, share in ((low, tail), (high, 1 - tail)):
            below = ((values <= end).mean() - share) / error
            off.append(below if np.isfinite(end) else min(below, 0.0))  # η = 0 holds more than that share
        if len(chosen) > N // 100:  # estimate and sd of a profile are of log η if it is not 0
            heavy = stats.kurtosis(chosen, fisher=False)
            off[0] = (chosen.mean() - estimate) / (sd / math.sqrt(len(chosen)))
            if of_eta:
                off[0] = ((chosen <= estimate).mean() - 0.5) / (0.5 / math.sqrt(len(chosen)))
            off[1] = (chosen.std() / sd - 1) / math.sqrt((heavy - 1) / (4 * len(chosen)))
        found.append(off)
    return np.array(found)


@pytest.mark.parametrize("study", STUDIES)
def test_draws_agree_with_the_profile(study):
    off = misfits(drawn(study), fitted(study)[1].profile(some(study)))
    print(study, len(off), np.abs(off).max(axis=0).round(2), np.sqrt((off**2).mean(axis=0)).round(2))
    assert np.abs(off).max() < 4


def test_each_study_is_what_it_is_called():
    few = fitted("12 people")[1]
    assert all(one.plausible is not None for one in (few.prior, *few.populations.values()))
    assert fitted("two kinds")[1].kinds is not None
    assert fitted("at random")[1].prior.random > 0
    assert fitted("joint")[1].joint is not None


def test_people_at_random_have_draws_of_no_sensitivity():
    at_random = np.isneginf(drawn("at random")["log_action_sensitivity"]).mean(axis=1)
    random = fitted("at random")[1].profile(some("at random")).random
    assert np.abs(at_random - random).max() < 4 * 0.5 / math.sqrt(N)
    assert random.max() > 0.9


def correlation(draws, person, first, second):
    return np.corrcoef(draws.values[person, first], draws.values[person, second])[0, 1]


def test_parameters_of_a_person_go_together_as_the_joint_posterior_says():
    fit, draws = fitted("joint")[1], drawn("joint")
    shared = fit.joint.covariance[1, 2] / math.sqrt(fit.joint.covariance[1, 1] * fit.joint.covariance[2, 2])
    assert shared > 0.5
    assert len(draws) > 15
    assert all(0.05 < correlation(draws, person, 1, 2) < shared for person in range(len(draws)))
    assert all(abs(correlation(draws, person, 0, 5)) < 4 / math.sqrt(N) for person in range(len(draws)))


def test_a_person_is_of_one_kind_in_each_draw():
    cohort, fit = fitted("two kinds")
    likelihoods = fit.kind_likelihoods(fit._data(cohort))
    unsure = int(np.abs(fit.kinds.probabilities(likelihoods)[:, 0] - 0.5).argmin())
    alone = replace(fit, kinds=None)
    together, apart = (one.draws(cohort[[unsure]], N, seed=1) for one in (fit, alone))
    assert correlation(together, 0, 1, 2) > 0.05
    assert abs(correlation(apart, 0, 1, 2)) < 4 / math.sqrt(N)


def test_people_share_the_population_of_a_draw():
    """Two people who say little are unsure together, so their difference is surer than either."""
    cohort, fit = fitted("12 people")
    duration = drawn("12 people")["duration"]
    assert np.corrcoef(duration)[np.triu_indices(12, 1)].mean() > 0.02
    best = replace(fit, populations={k: replace(one, plausible=None) for k, one in fit.populations.items()})
    duration = best.draws(cohort, N, seed=1)["duration"]
    assert abs(np.corrcoef(duration)[np.triu_indices(12, 1)]).max() < 4.5 / math.sqrt(N)


@pytest.mark.parametrize("study", ["12 people", "at random", "joint"])
def test_draws_depend_on_seed_and_person_alone(study):
    cohort, fit = fitted(study)
    whole = fit.draws(cohort, 50, seed=3)
    order = np.random.default_rng(0).permutation(len(cohort))
    shuffled, part = fit.draws(cohort[order], 50, seed=3), fit.draws(cohort[3:7], 50, seed=3)
    assert np.array_equal(shuffled.values, whole.values[order], equal_nan=True)
    assert np.array_equal(part.values, whole.values[3:7], equal_nan=True)
    assert part.participants.to_list() == cohort.ids.to_list()[3:7]
    other, finite = fit.draws(cohort, 50, seed=4).values, np.isfinite(whole.values)
    assert np.isclose(other[finite], whole.values[finite]).mean() < 0.01  # some may be by chance


def test_effort_without_a_task_has_draws():
    cohort, _ = fitted("40 people")
    fit = fidm.fit_effort(cohort)
    draws = fit.draws(cohort, 200, seed=1)
    assert draws.parameters == fit.parameters
    assert draws.values.shape == (40, 5, 200)
    assert np.abs(draws["duration"].mean(axis=1) - fit.profile(cohort)["duration"]).max() < 0.1
    assert len(fit.draws(cohort[:0], 10, seed=1)) == 0


def test_nothing_is_drawn_of_what_is_not_estimated():
    cohort, fit = fitted("40 people")
    draws = replace(fit, alike=("pause",)).draws(cohort, 10, seed=1)
    assert np.isnan(draws["pause"]).all()
    assert np.isfinite(draws["log_action_sensitivity"]).all()
    assert np.isnan(
        replace(fit, prior=replace(fit.prior, sd=math.nan)).draws(cohort, 10, seed=1).values[:, 0]
    ).all()


def test_what_cannot_be_drawn_is_refused():
    cohort, fit = fitted("12 people")
    with pytest.raises(FitError, match=r"no posterior to draw from\. Fit with method='eb'"):
        fidm.Model(TASK, channels=()).fit(cohort, method="mle").draws(cohort, seed=1)
    with pytest.raises(FitError, match="n is 0; it must be a whole number, 1 or more"):
        fit.draws(cohort, 0, seed=1)
    with pytest.raises(FitError, match="seed is -1; it must be a whole number, 0 or more"):
        fit.draws(cohort, seed=-1)
    with pytest.raises(
        DataError, match=r"no parameter 'speed'\. There are: log_action_sensitivity, duration"
    ):
        fit.draws(cohort, 2, seed=1)["speed"]


def test_arviz_has_the_same_numbers():
    cohort, fit = fitted("12 people")
    draws = fit.draws(cohort, 30, seed=1)
    posterior = draws.to_inference_data().posterior
    assert list(posterior.data_vars) == list(draws.parameters)
    assert posterior["duration"].dims == ("chain", "draw", "participant")
    assert posterior["participant"].values.tolist() == cohort.ids.to_list()
    assert np.array_equal(posterior["duration"].values[0].T, draws["duration"], equal_nan=True)


def test_without_arviz_it_says_what_to_install(monkeypatch):
    cohort, fit = fitted("12 people")
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(DataError, match=r"needs arviz: pip install 'fidm\[arviz\]'"):
        fit.draws(cohort, 2, seed=1).to_inference_data()
