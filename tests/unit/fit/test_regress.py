"""A model whose prior depends on covariates: what is learned, everybody's posterior, and what is kept."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import integrate, stats

import fidm
from fidm.evidence.evidence import find_evidence, find_surprisal
from fidm.fit import offsets, sensitivity
from fidm.fit.plausible import log_slopes_prior
from fidm.fit.population import _Free, _Search, covariance_of, no_less, random_intercepts, sandwich
from fidm.fit.regression import Layout, regress_offsets
from fidm.model.effort import design_names
from fidm.tasks.stack import follow

N = 24


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def cohort(n=N, seed=5):
    rng = np.random.default_rng(seed)
    people = fidm.simulate_cohort(task(), n, seed=seed, max_steps=30)
    about = people.participants.with_columns(
        age=pl.Series(rng.normal(70, 7, n).round()),
        group=pl.Series(np.where(np.arange(n) % 3 == 0, "patient", "control")),
        site=pl.Series(np.arange(n) % 6),
    )
    return people.with_participants(about)


@functools.cache
def fitted(formula="age + C(group)", **options):
    return fidm.Model(task(), regress=formula, **options).fit(cohort())


# ---------------------------------------------------------------------- what is learned


def test_every_parameter_has_slopes_with_intervals_and_the_share_explained():
    table = fitted().regression_table()
    assert table["parameter"].unique(maintain_order=True).to_list() == list(fitted().parameters)
    assert table["column"].unique(maintain_order=True).to_list() == ["age", "C(group)[T.patient]"]
    assert ((table["low"] < table["slope"]) & (table["slope"] < table["high"])).all()
    assert table["explained"].is_between(0, 1).all()
    # a term of one column has the test of that column
    assert table["p_term"].to_numpy() == pytest.approx(table["p"].to_numpy())


def test_a_comparison_learns_the_same():
    found = fidm.compare(task(), cohort(), by="group", adjust=["age"], reference="control")
    own = fitted().regression_table().filter(term="C(group)")
    assert own["parameter"].to_list() == found.table["parameter"].to_list()
    effort = own["parameter"] != "action_sensitivity"
    assert own["slope"].filter(effort).to_numpy() == pytest.approx(
        found.table["difference"].filter(effort).to_numpy(), abs=1e-6
    )


def test_a_column_of_the_episodes_is_sent_to_where_people_are_compared_with_themselves():
    people = cohort()
    visited = replace(people, episodes=people.episodes.with_columns(visit=pl.lit(1)))
    with pytest.raises(
        fidm.FitError, match=r"visit is a column of the episodes.*fidm.compare\(task, cohort, by='visit'\)"
    ):
        fidm.Model(task(), regress="age + visit").fit(visited)


def test_parameters_may_have_formulas_of_their_own():
    fit = fidm.Model(task(), regress={"duration": "age", "action_sensitivity": "C(group)"}).fit(cohort())
    table = fit.regression_table()
    assert dict(zip(table["parameter"], table["column"], strict=True)) == {
        "duration": "age",
        "action_sensitivity": "C(group)[T.patient]",
    }
    assert fit.populations["turns"].population.slopes is None


def test_effort_alone_is_regressed_as_with_choices():
    alone = fidm.fit_effort(cohort(), regress="age + C(group)")
    with_choices = fitted().regression_table().filter(pl.col("parameter") != "action_sensitivity")
    assert alone.regression_table().equals(with_choices)
    assert np.array_equal(
        alone.profile(cohort()).estimate, fitted().profile(cohort()).estimate[:, 1:], equal_nan=True
    )


def test_pooled_populations_have_a_prior_that_depends_on_covariates_too():
    fit = fidm.Model(task(), regress="age", channels=fidm.fit_effort(cohort()).channels).fit(
        cohort(), population="pooled"
    )
    assert set(fit.regression_table()["parameter"]) == set(fit.parameters)
    both = fit.regression_table().join(fitted("age").regression_table(), on="parameter")
    assert ((both["slope"] - both["slope_right"]).abs() < 0.5 * both["se"]).all()


@pytest.mark.parametrize("point", [np.array([3.0, -0.4, 0.8]), np.array([2.9, 0.2, -0.3])])
def test_the_marginal_likelihood_is_the_integral_over_everybody_s_own_prior(point):
    """Brute force: scipy integrates each person's likelihood times a normal with the person's own mean."""
    channel = fitted().channels[0]
    seen = fitted()._data(cohort()).effort[0]
    known = np.linspace(-1, 1, N)[:, None]
    mean, slope, shape = 0.2, point[2], 3.0
    shared = offsets.Population(point[:2], shape, mean, 0.5, slopes=np.array([slope]))
    some = replace(seen, known=known)
    found = offsets.posterior(channel, some, shared, level=0.95)[1]
    found = found + offsets.constants(channel, some, shared)
    base = seen.predictor(point[:2])
    for j in (0, 7, N - 1):
        own = slice(seen.offsets[j], seen.offsets[j + 1])

        def density(theta, own=own, j=j):
            value = channel.log_density(seen.y[own], base[own] + theta, shape).sum()
            return np.exp(value - found[j]) * stats.norm.pdf(theta, mean + slope * known[j, 0], 0.5)

        total = integrate.quad(density, -6, 6, limit=500, points=[0.0, 0.5, 1.0])[0]
        assert np.log(total) == pytest.approx(0.0, abs=1e-7)


def test_slopes_of_the_likelihood_are_its_derivatives():
    channel, seen = fitted().channels[1], fitted()._data(cohort()).effort[1]
    data = replace(seen, known=np.linspace(-1, 1, N)[:, None])
    best = random_intercepts(channel, data, design_names(channel, {}), 1).population
    free = _Free.all_of(channel, best)
    search = _Search(channel, data, free, None, 1)
    at = free.numbers(best) + 0.05
    _, slopes = search.gradients(at)
    for k, unit in enumerate(np.eye(len(at))):
        ahead, behind = (search.gradients(at + step * unit)[0] for step in (1e-5, -1e-5))
        assert slopes[:, k] == pytest.approx((ahead - behind) / 2e-5, abs=2e-5)


# ---------------------------------------------------------------------- everybody's posterior


def test_people_are_drawn_towards_others_like_them():
    fit, plain = fitted(), fidm.Model(task()).fit(cohort())
    means = fit.prior_means(cohort())
    assert means.shape == (N, len(fit.parameters))
    assert plain.prior_means(cohort()).std(axis=0) == pytest.approx(0, abs=1e-12)
    assert (means.std(axis=0) > 0).all()
    # somebody without any choice of their own would be where the prior is
    nobody = replace(cohort(), weight=np.zeros(len(cohort().state)))
    choices = fit._data(nobody).choices
    own, _ = sensitivity.posterior(choices, replace(fit.prior, plausible=None), lapse=0.0, level=0.95)
    assert own.log_mean == pytest.approx(means[:, 0], abs=1e-8)


def test_posteriors_are_those_of_the_density_itself():
    """η of one person: likelihood times a normal around the person's own mean, by brute force."""
    fit = fidm.Model(task(), channels=(), regress="age", lapse=0.0).fit(cohort())
    prior = replace(fit.prior, plausible=None)
    choices = fit._data(cohort()).choices
    own, _ = sensitivity.posterior(choices, prior, lapse=0.0, level=0.95)
    grid = np.linspace(-4, 10, 20_001)
    for j in (0, 11):
        table = sensitivity.values_on(choices.people(j, j + 1), np.exp(grid)[None], 0.0)[0]
        log = table + stats.norm.logpdf(grid, prior.means(choices)[j], prior.sd)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        mean = float(weight @ grid)
        assert own.log_mean[j] == pytest.approx(mean, abs=1e-6)
        assert own.log_se[j] == pytest.approx(np.sqrt(weight @ (grid - mean) ** 2), abs=1e-6)


def test_sampled_priors_are_as_plausible_as_those_on_a_grid():
    """Without any covariate, importance sampling must find what the grid over mean and sd finds."""
    plain = fidm.Model(task(), channels=()).fit(cohort())
    choices = replace(plain._data(cohort()).choices, known=np.zeros((N, 0)))
    learning = sensitivity._Learning(choices, 1)
    rate, _ = learning.best_rate(random=False)
    sampled = learning._with_slopes(learning._rates(rate, False, given=False), False)
    grid = plain.prior.plausible
    assert sampled.weight[sampled.lapse == 0].sum() == pytest.approx(
        grid.weight[grid.lapse == 0].sum(), abs=0.02
    )
    for name in ("mean", "sd"):
        expected = float(grid.weight @ getattr(grid, name))
        assert sampled.weight @ getattr(sampled, name) == pytest.approx(expected, abs=0.03)
    profile = plain.profile(cohort())
    prior = replace(plain.prior, plausible=replace(sampled, slopes=None))
    found, _ = sensitivity.posterior(choices, prior, lapse=plain.lapse, level=0.95)
    away = (np.log(found.high) - np.log(profile.high[:, 0])) / profile.log_sensitivity_se
    assert np.abs(away).max() < 0.1


def test_nobody_s_numbers_depend_on_who_else_is_profiled():
    whole = fitted().profile(cohort())
    order = np.random.default_rng(0).permutation(N)
    turned = fitted().profile(cohort()[order])
    assert np.array_equal(whole.estimate[order], turned.estimate, equal_nan=True)
    assert np.array_equal(whole.high[3:4], fitted().profile(cohort()[3:4]).high, equal_nan=True)


def test_nothing_that_is_learned_depends_on_the_order_of_people():
    order = np.random.default_rng(1).permutation(N)
    other = fidm.Model(task(), regress="age + C(group)").fit(cohort()[order])
    assert other.regression_table()["slope"].to_list() == pytest.approx(
        fitted().regression_table()["slope"].to_list(), abs=1e-9
    )


def test_draws_have_the_moments_of_the_profile():
    profile, n = fitted().profile(cohort()), 4_000
    draws = fitted().draws(cohort(), n, seed=1).values
    told = np.isfinite(profile.estimate)
    assert told[:, :3].mean() > 0.9
    sd = draws[told].std(axis=1)
    se = np.column_stack([profile.log_sensitivity_se, profile.se[:, 1:]])[told]
    assert (sd / se).mean() == pytest.approx(1, abs=0.02)
    effort = told & (np.arange(told.shape[1]) > 0)  # the estimate of η is its median
    away = (draws[effort].mean(axis=1) - profile.estimate[effort]) / draws[effort].std(axis=1)
    assert np.abs(away).max() < 4.5 / np.sqrt(n)


def test_a_joint_prior_is_over_what_covariates_leave():
    people = cohort(120, seed=8)
    fit = fidm.Model(task(), regress="age").fit(people, joint=True)
    profile = fit.profile(people)
    assert np.isfinite(profile.estimate[:, 1]).all()
    alone = fidm.Model(task(), regress="age").fit(people).profile(people)
    assert np.corrcoef(profile.estimate[:, 1], alone.estimate[:, 1])[0, 1] > 0.98


def test_leaving_people_out_moves_slopes_too():
    left = fitted().leave_one_out(cohort())
    inside = fitted().log_likelihood(cohort(), at="prior")
    assert (left["total"] < inside["total"]).mean() > 0.8


def test_actions_of_people_without_an_estimate_are_judged_by_their_own_prior():
    fit = fidm.Model(task(), channels=(), regress="age", lapse=0.0).fit(cohort())
    idle = replace(cohort(), weight=np.zeros(len(cohort().state)))
    found = find_evidence(fit, idle).actions["unexpectedness"].to_numpy()
    eta = np.exp(fit.prior_means(idle)[:, 0])
    assert len(np.unique(eta)) > 10
    expected = find_surprisal(fit, idle, follow(fit.tasks, idle), eta).unexpectedness
    assert np.array_equal(found, expected, equal_nan=True)


# ---------------------------------------------------------------------- clusters


def test_clusters_add_up_before_they_are_squared():
    slopes, curvature = np.array([[1.0], [2.0], [-1.5], [-1.5]]), np.array([[-2.0]])
    seen, clusters = np.ones(4, dtype=bool), np.array([0, 0, 1, 1])
    assert sandwich(slopes, curvature, seen)[0, 0] == pytest.approx(4 / 3 * 9.5 / 4)
    # two clusters of the sums 3 and −3: G / (G − 1) · (n − 1) / (n − F) · (9 + 9) / H²
    assert sandwich(slopes, curvature, seen, clusters)[0, 0] == pytest.approx(2 / 1 * 3 / 3 * 18 / 4)


def test_of_two_covariances_no_mixture_varies_less():
    rng = np.random.default_rng(2)
    one, other = (a @ a.T for a in rng.normal(size=(2, 3, 3)))
    both = no_less(one, other)
    for way in rng.normal(size=(200, 3)):
        assert way @ both @ way >= max(way @ one @ way, way @ other @ way) * (1 - 1e-9)
    assert no_less(one, 0.01 * one) == pytest.approx(one)
    assert no_less(one[:1, :1], other[:1, :1]) == pytest.approx(np.maximum(one, other)[:1, :1])


def test_a_cluster_of_one_each_is_nearly_no_cluster():
    own = cohort().with_participants(cohort().participants.with_columns(own=pl.col("participant")))
    each = fidm.Model(task(), regress="age", cluster="own").fit(own).regression_table()
    plain = fidm.Model(task(), regress="age").fit(own).regression_table()
    assert each["slope"].to_list() == plain["slope"].to_list()
    assert each["se"].to_numpy() == pytest.approx(plain["se"].to_numpy(), rel=0.03)


def test_clusters_bound_the_degrees_of_freedom():
    fit = fidm.Model(task(), regress="age", cluster="site").fit(cohort())
    assert fit.prior.freedom == 5
    assert fit.populations["duration"].freedom == 5


def test_the_hyperprior_of_slopes_is_the_same_from_any_age_on():
    """Slopes of group, age and their product change with where age is counted from; what they say does not."""
    rng = np.random.default_rng(3)
    group, age = rng.integers(0, 2, 40).astype(float), rng.normal(70, 8, 40)
    found = []
    for origin in (0.0, 70.0):
        x = np.column_stack([group, age - origin, group * (age - origin)])
        slopes = np.linalg.lstsq(x - x.mean(axis=0), 0.1 * group * (age - 65) + 0.02 * age)[0]
        found.append(log_slopes_prior(slopes, covariance_of(x), 0.5)[0])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_the_slopes_of_that_hyperprior_are_its_derivatives():
    covariance = np.array([[2.0, 0.3], [0.3, 0.5]])
    at = np.array([0.4, -0.7])
    _, slopes = log_slopes_prior(at, covariance, 0.5)
    for k, unit in enumerate(np.eye(2)):
        ahead, behind = (log_slopes_prior(at + step * unit, covariance, 0.5)[0] for step in (1e-6, -1e-6))
        assert slopes[k] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


# ---------------------------------------------------------------------- layouts


@pytest.mark.parametrize(
    "formula",
    ["age + C(group)", "bs(age, df=3) * C(group)", "scale(age) + C(site)", "poly(age, 2)", "C(group):age"],
)
def test_other_people_are_laid_out_like_the_training_part(formula):
    people = cohort().participants
    layout, values = Layout.of(people, formula)
    assert np.array_equal(layout.values(people), values)
    for j in (0, 1):  # one person alone, of either group
        assert np.array_equal(layout.values(people[j : j + 1]), values[j : j + 1])
    again = Layout.from_dict(json.loads(json.dumps(layout.to_dict())))
    assert np.array_equal(again.values(people), values)


@pytest.mark.parametrize("formula", ["age + C(group)", "bs(age, df=3) + C(site)"])
def test_a_kept_fit_profiles_the_same(formula, tmp_path):
    fit = fitted(formula)
    fit.save(tmp_path / "fit.json")
    again = fidm.load_fit(tmp_path / "fit.json")
    assert np.array_equal(again.profile(cohort()).estimate, fit.profile(cohort()).estimate, equal_nan=True)
    assert again.regression_table().equals(fit.regression_table())
    text = (tmp_path / "fit.json").read_text()
    assert cohort().ids[0] not in text


def test_a_fit_without_covariates_keeps_its_format(tmp_path):
    fidm.Model(task()).fit(cohort()).save(tmp_path / "fit.json")
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert "regress" not in saved
    assert "slopes" not in (saved["action_sensitivity"]["plausible"] or {})


# ---------------------------------------------------------------------- what is refused


def test_people_without_a_covariate_are_named():
    lost = cohort().participants.with_columns(
        age=pl.when(pl.col("participant") == cohort().ids[3]).then(None).otherwise("age")
    )
    some = cohort().with_participants(lost)
    with pytest.raises(fidm.DataError, match=rf"(?s)1 participant without age.*{cohort().ids[3]}"):
        fidm.Model(task(), regress="age").fit(some)
    with pytest.raises(fidm.DataError, match=cohort().ids[3]):
        fitted("age").profile(some)


def test_a_spline_says_what_to_do_with_people_beyond_its_range():
    older = cohort().participants.with_columns(age=pl.col("age") + 30)
    layout, _ = Layout.of(cohort().participants, "bs(age, df=3)")
    with pytest.raises(fidm.DataError, match=r"beyond the range.*extrapolation='clip'"):
        layout.values(older)
    clipped, values = Layout.of(cohort().participants, "bs(age, df=3, extrapolation='clip')")
    oldest = int(np.argmax(cohort().participants["age"].to_numpy()))
    assert clipped.values(older)[oldest] == pytest.approx(values[oldest])


def test_a_category_that_nobody_had_is_refused():
    other = cohort().participants.with_columns(group=pl.lit("relative"))
    with pytest.raises(fidm.DataError, match="group has values that nobody of the training part had"):
        fitted().profile(cohort().with_participants(other))


@pytest.mark.parametrize(
    ("options", "fit_options", "said"),
    [
        ({"regress": "age"}, {"method": "mle"}, "needs method='eb'"),
        ({"regress": {"speed": "age"}}, {}, "regress names speed, not a parameter. There are: action_sens"),
        ({"cluster": "site"}, {}, "it needs regress"),
    ],
)
def test_what_cannot_be_regressed_is_said(options, fit_options, said):
    with pytest.raises(fidm.FitError, match=said):
        fidm.Model(task(), **options).fit(cohort(), **fit_options)


@pytest.mark.parametrize("formula", ["C(age > 70)", "height", "age ~ group"])
def test_formulas_that_do_not_suit_are_refused(formula):
    with pytest.raises(fidm.DataError):
        fidm.Model(task(), regress=formula).fit(cohort())


def test_a_channel_whose_people_are_alike_in_a_covariate_is_left_out():
    """Only controls were recorded with pauses: nothing tells what the group does to pauses."""
    owner = np.repeat(np.arange(N), np.diff(cohort().segment_offsets[cohort().episode_offsets]))
    is_patient = (cohort().participants["group"] == "patient").to_numpy()[owner]
    segments = cohort().segments.with_columns(
        pause_s=pl.when(pl.Series(is_patient)).then(None).otherwise("pause_s")
    )
    fit = fidm.Model(task(), regress="C(group)").fit(replace(cohort(), segments=segments))
    assert "pause" not in fit.parameters
    assert any("pause is left out" in note and "too much alike" in note for note in fit.notes)


def test_a_few_clusters_are_refused():
    with pytest.raises(fidm.DataError, match="group makes 2 clusters; standard errors need 5 or more"):
        fidm.Model(task(), regress="age", cluster="group").fit(cohort())


@pytest.mark.parametrize("formula", ["", "1", "__import__('os').getcwd()", "age +"])
def test_formulas_of_nothing_are_refused(formula):
    with pytest.raises(fidm.DataError):
        fidm.Model(task(), regress=formula).fit(cohort())


def test_numbers_that_are_not_finite_are_named():
    odd = cohort().participants.with_columns(
        age=pl.when(pl.col("participant") == cohort().ids[2]).then(float("inf")).otherwise("age")
    )
    with pytest.raises(fidm.DataError, match=f"no finite number of {cohort().ids[2]}"):
        fidm.Model(task(), regress="age").fit(cohort().with_participants(odd))
    with pytest.raises(fidm.DataError, match=f"no finite number of {cohort().ids[2]}"):
        fitted("age").profile(cohort().with_participants(odd))


def test_text_where_a_number_was_learned_is_refused():
    text = cohort().with_participants(cohort().participants.with_columns(pl.col("age").cast(pl.String)))
    with pytest.raises(fidm.DataError, match="age is text here, and was a number in the training part"):
        fitted("age").profile(text)
    numbers = cohort().with_participants(cohort().participants.with_columns(group=pl.lit(1)))
    with pytest.raises(fidm.DataError, match="group is a number here, and was text"):
        fitted().profile(numbers)


def test_a_list_is_no_formula():
    with pytest.raises(fidm.FitError, match="it must be a formula"):
        fidm.Model(task(), regress=["age"])


def test_clusters_are_said():
    notes = fidm.Model(task(), regress="age", cluster="site").fit(cohort()).notes
    assert any("allow for 6 clusters (site). With fewer than 20" in note for note in notes)


def test_all_that_is_missing_is_said_at_once():
    is_lost = pl.int_range(N)
    lost = cohort().participants.with_columns(
        age=pl.when(is_lost < 7).then(None).otherwise("age"),
        group=pl.when(is_lost == 20).then(None).otherwise("group"),
    )
    formulas = {"duration": "age", "turns": "C(group)"}
    with pytest.raises(fidm.DataError) as error:
        fidm.Model(task(), regress=formulas).fit(cohort().with_participants(lost))
    ids = cohort().ids
    assert error.value.message.startswith("8 participants without age and group")
    assert [problem.what for problem in error.value.problems] == [
        f"age is missing for 7: {', '.join(ids[:5])} and 2 more.",
        f"group is missing for 1: {ids[20]}.",
    ]


# ---------------------------------------------------------------------- what is said


def test_the_category_that_others_are_compared_with_is_said_with_how_to_change_it():
    assert fitted().regression_table()["words"][1] == "group: patient / control"
    (said,) = fitted().regression_notes()
    assert said.startswith("group: compared with control, the first in alphabetical order.")
    assert "C(group, contr.treatment(base='patient'))" in said
    other = fitted("C(group, contr.treatment(base='patient'))")
    assert other.regression_table()["words"][0] == "group: control / patient"
    assert other.regression_notes() == ("group: compared with patient.",)
    slopes = [
        fit.regression_table().filter(parameter="duration")["slope"][0] for fit in (other, fitted("C(group)"))
    ]
    assert slopes[0] == pytest.approx(-slopes[1], abs=1e-4)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("age * C(group)", "that at age 0. center(age) instead of age gives it at the mean age."),
        ("center(age) * C(group)", "that at the mean age."),
    ],
)
def test_slopes_of_variables_that_interact_say_where_they_hold(formula, said):
    layout, _ = Layout.of(cohort().participants, formula)
    *_, last = layout.notes()
    assert last == f"group: as it interacts, its own slope is {said}"
    assert any("its own slope is that at group control" in note for note in layout.notes())
    assert layout.words(layout.names[-1]) == f"{formula[:-11]} × group: patient / control"


def test_what_is_said_of_interactions_is_true():
    """The slope of the group is the difference of two people at age 0, or at the mean age."""
    people = cohort().participants[:2].with_columns(group=pl.Series(["control", "patient"]))
    for formula, age in (
        ("age * C(group)", 0.0),
        ("center(age) * C(group)", cohort().participants["age"].mean()),
    ):
        layout, _ = Layout.of(cohort().participants, formula)
        control, patient = layout.values(people.with_columns(age=pl.lit(age)))
        assert dict(zip(layout.names, patient - control, strict=True))[
            "C(group)[T.patient]"
        ] == pytest.approx(1)
        assert np.abs(patient - control).sum() == pytest.approx(1)


def test_categories_of_few_people_are_named_and_counted():
    rare = pl.Series(["b", *"aaacccccccc", *"ddddddddcccc"])
    people = cohort().with_participants(cohort().participants.with_columns(site=rare))
    said = "Fewer than 5 people: site a, the reference (3 people) and site b (1 person)."
    fit = fidm.Model(task(), regress={"duration": "C(site)"}).fit(people)
    assert any(warning.startswith(said) for warning in fit.warnings)
    alone = fidm.fit_effort(people, regress={"duration": "C(site)"})
    assert any(warning.startswith(said) for warning in alone.notes)
    assert not any("Fewer than 5 people" in warning for warning in fitted().warnings)


def test_categories_are_counted_only_where_they_are_learned_from():
    """A channel that too few people were observed in is left out, and says nothing of rare categories."""
    people = cohort()
    hardly = np.repeat(np.arange(len(people)), np.diff(people.segment_offsets[people.episode_offsets])) > 3
    silent = pl.when(pl.Series(hardly)).then(None).otherwise(pl.col("pause_s")).alias("pause_s")
    fit = fidm.Model(task(), regress="C(group)").fit(
        replace(people, segments=people.segments.with_columns(silent))
    )
    assert "pause" not in fit.parameters
    assert not any("Fewer than 5 people" in warning for warning in fit.warnings)


def test_combinations_of_few_people_are_named_too():
    two = pl.Series(["m" if j in (0, 3) or j % 3 == 1 else "f" for j in range(N)])
    people = cohort().with_participants(cohort().participants.with_columns(sex=two))
    fit = fidm.Model(task(), regress={"duration": "C(group) * C(sex)"}).fit(people)
    assert any("group: patient / control × sex: m / f (2 people)" in note for note in fit.notes)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (
            "agee + C(grop)",
            r"names 'agee', 'grop', which .*Did you mean age and group\? There are: participant",
        ),
        (
            "age +* C(group)",
            r"cannot be read: Operator `\+\*` is incorrectly used, at '\+\*'\. Write terms with \+",
        ),
        ("age + (C(group)", r"Could not find matching bracket, at '\('\. .*close every bracket"),
        ("cnter(age)", r"there is no function 'cnter'\. Did you mean center\?"),
        ("log(group)", r"log\(group\) needs numbers, and group holds text\. C\(group\) makes groups of it\."),
        ("bs(age, df=1)", r"bs\(age, df=1\): Invalid value for `df`"),
        (
            "C(group, contr.treatment(base='contrl'))",
            r"base='contrl' is not a category of group\. Did you mean control\? There are: control, patient\.",
        ),
    ],
)
def test_errors_of_formulas_are_plain_sentences(formula, said):
    with pytest.raises(fidm.DataError, match=said) as error:
        fidm.Model(task(), regress=formula).fit(cohort())
    assert str(error.value).isprintable()
    assert "⧛" not in str(error.value)


def test_contrasts_other_than_treatments_have_no_reference():
    layout, _ = Layout.of(cohort().participants, "C(group, contr.sum)")
    assert (layout.references, layout.notes()) == ({}, [])


def test_a_misspelt_cluster_or_parameter_is_guessed():
    with pytest.raises(fidm.DataError, match=r"no column 'sit' to cluster by\. Did you mean site\?"):
        fidm.Model(task(), regress="age", cluster="sit").fit(cohort())
    with pytest.raises(fidm.FitError, match=r"regress names duraton, .*Did you mean duration\?"):
        fidm.Model(task(), regress={"duraton": "age"}).fit(cohort())
    lost = cohort().participants.with_columns(site=pl.when(pl.int_range(N) == 2).then(None).otherwise("site"))
    with pytest.raises(fidm.DataError, match=f"1 participant without site to cluster by: {cohort().ids[2]}"):
        fidm.Model(task(), regress="age", cluster="site").fit(cohort().with_participants(lost))


def test_terms_are_tested_by_the_ratio_of_likelihoods_too():
    people = cohort(60, seed=6)
    shift = np.zeros((60, 6))
    shift[:, 1] = 0.8 * (people.participants["group"] == "patient").to_numpy()
    moved = fidm.simulate_cohort(task(), 60, seed=6, max_steps=30, shifts=shift).with_participants(
        people.participants
    )
    fit = fidm.Model(task(), regress={"duration": "age + C(group)", "action_sensitivity": "age"}).fit(moved)
    found = fit.likelihood_ratios(moved)
    assert found.select("parameter", "term").rows() == [
        ("duration", "age"),
        ("duration", "C(group)"),
        ("action_sensitivity", "age"),
    ]
    table = fit.regression_table()
    assert found["p_wald"].to_list() == table["p_term"].to_list()
    group = found.row(1, named=True)
    assert max(group["p_ratio"], group["p_wald"]) < 0.001
    assert found["p_ratio"].to_numpy()[[0, 2]] == pytest.approx(found["p_wald"].to_numpy()[[0, 2]], abs=0.1)
    seen, channel = fit._data(moved).effort[0], fit.channels[0]
    whole, less = (
        regress_offsets(channel, seen, fit.levels, seen.known[:, columns]) for columns in ([0, 1], [0])
    )
    assert group["p_ratio"] == whole.against(less)
