"""Moves that a planner filled in: how they are read, carried, counted, saved and reported."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import fidm
from fidm.fit.inferred import BothWays, other_way
from fidm.fit.profile import Profile
from fidm.io.study import Study, StudyWriter
from fidm.io.tables import tables_of
from fidm.sklearn import FactorizedFeatures


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def plain():
    return fidm.simulate_cohort(task(), 40, seed=1)


@functools.cache
def flagged():
    """The same people; a third of the steps is said to be inferred, whatever they are."""
    return replace(plain(), inferred=np.random.default_rng(0).random(plain().n_steps) < 1 / 3)


@functools.cache
def fitted(inferred=0.0):
    return fidm.Model(task(), inferred=inferred).fit(flagged())


# ---------------------------------------------------------------------- in a cohort


def test_flags_stay_with_their_steps():
    whole = flagged()
    owner = np.repeat(np.arange(len(whole)), np.diff(whole.step_offsets))
    for part, rows in (
        (whole[3:9], range(3, 9)),
        (whole[[8, 2]], [8, 2]),
        (whole.select(["P0000005"]), [4]),
        (whole.with_segments(tables_of(whole)["segments"]), range(40)),
        (whole.with_participants(whole.participants), range(40)),
    ):
        expected = np.concatenate([whole.inferred[owner == row] for row in rows])
        assert np.array_equal(part.inferred, expected)
        assert part.inferred.dtype == np.bool_
    halves = whole.participants.with_columns(split=pl.Series(["a", "b"] * 20))
    assert len(whole.with_participants(halves).split("b").inferred) == whole.inferred[owner % 2 == 1].size
    with pytest.raises(ValueError, match="read-only"):
        whole.inferred[0] = True


def test_joining_cohorts_with_and_without_flags():
    joined = fidm.Cohort.concat([plain()[:10], flagged()[10:]])
    first = plain()[:10].n_steps
    assert not joined.inferred[:first].any()
    assert np.array_equal(joined.inferred[first:], flagged()[10:].inferred)
    assert fidm.Cohort.concat([plain()[:10], plain()[10:]]).inferred is None


def test_flags_must_be_flags_and_as_many_as_steps():
    with pytest.raises(fidm.DataError, match=r"\(3,\)"):
        replace(plain(), inferred=np.zeros(3, bool))
    with pytest.raises(fidm.DataError, match="inferred holds float64"):
        replace(plain(), inferred=np.zeros(plain().n_steps))


# ---------------------------------------------------------------------- in tables


def steps_of(column):
    return tables_of(plain()[:1])["steps"].head(4).with_columns(inferred=column)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([True, False, None, True]),
        pl.Series([1, 0, None, 1]),
        pl.Series([1.0, 0.0, float("nan"), 1.0]),
        pl.Series(["true", "False", "", " TRUE "]),
        pl.Series(["1", "0", None, "1.0"]),
        pl.Series(["true", "false", None, "true"], dtype=pl.Categorical),
    ],
)
def test_true_and_false_may_be_written_in_several_ways(column):
    cohort = fidm.make_cohort(steps=steps_of(column), tasks=task())
    assert cohort.inferred.tolist() == [True, False, False, True]
    frame = pd.DataFrame(steps_of(column).cast({"inferred": pl.String}).to_dict(as_series=False))
    assert fidm.make_cohort(steps=frame, tasks=task()).inferred.tolist() == [True, False, False, True]


def test_an_empty_column_says_that_nothing_is_inferred():
    cohort = fidm.make_cohort(steps=steps_of(pl.Series([None] * 4)), tasks=task())
    assert not cohort.inferred.any()
    assert fidm.make_cohort(steps=steps_of(None).drop("inferred"), tasks=task()).inferred is None


def test_what_is_neither_true_nor_false_is_a_problem_with_row_and_person():
    for column in (
        pl.Series([0, 2, 1, -1]),
        pl.Series(["0", "maybe", "1", "no"]),
        pl.Series([0.0, 0.5, 1.0, 7.0]),
    ):
        with pytest.raises(fidm.DataError, match="2 problems, with 1 participant") as caught:
            fidm.make_cohort(steps=steps_of(column), tasks=task())
        assert [problem.where for problem in caught.value.problems] == [
            "steps, row 2, P0000001",
            "steps, row 4, P0000001",
        ]
        assert caught.value.problems[0].what == "inferred is neither true nor false."
        assert "maybe" not in str(caught.value)
    with pytest.raises(fidm.DataError, match="'inferred' of steps"):
        fidm.make_cohort(steps=steps_of(pl.Series([date(2024, 1, 1)] * 4)), tasks=task())


def test_a_study_folder_keeps_the_flags(tmp_path):
    fidm.write_cohort(flagged(), tmp_path / "whole", tasks=["errands"])
    assert np.array_equal(fidm.read_cohort(tmp_path / "whole").inferred, flagged().inferred)
    with StudyWriter(tmp_path / "parts", tasks=["errands"]) as writer:
        writer.add(plain()[:15])
        writer.add(flagged()[15:])
    back = fidm.read_cohort(tmp_path / "parts")
    assert np.array_equal(back.inferred, fidm.Cohort.concat([plain()[:15], flagged()[15:]]).inferred)
    assert Study(tmp_path / "parts").has_column("steps", "inferred")
    assert not Study(tmp_path / "parts").has_column("steps", "weight")
    (tmp_path / "csv").mkdir()
    tables_of(flagged())["steps"].write_csv(tmp_path / "csv" / "steps.csv")
    assert Study(tmp_path / "csv").has_column("steps", "inferred")
    assert np.array_equal(fidm.read_cohort(tmp_path / "csv", tasks=task()).inferred, flagged().inferred)


# ---------------------------------------------------------------------- in a model


@pytest.mark.parametrize("wrong", [-0.1, 1.5, True, "all", None, float("nan")])
def test_a_weight_lies_between_zero_and_one(wrong):
    with pytest.raises(fidm.FitError, match=r"from 0 .* to 1"):
        fidm.Model(task(), inferred=wrong)


def test_the_weight_is_shown_where_it_is_not_the_usual_one():
    assert "inferred" not in repr(fidm.Model(task())) + repr(fitted())
    assert "inferred: 0.5" in repr(fidm.Model(task(), inferred=0.5))
    assert "inferred=1" in repr(fitted(1.0))


def test_a_fit_keeps_its_weight_in_a_file(tmp_path):
    for weight in (0.0, 0.25, 1.0):
        fitted(weight).save(tmp_path / "fit.json")
        again = fidm.load_fit(tmp_path / "fit.json")
        assert again.inferred == weight
        assert np.array_equal(again.profile(flagged()).estimate, fitted(weight).profile(flagged()).estimate)


def test_older_and_spoiled_files_are_refused(tmp_path):
    path = tmp_path / "fit.json"
    fitted().save(path)
    saved = json.loads(path.read_text("utf-8"))
    assert saved["schema"] == 3
    older = json.loads(path.read_text("utf-8"))
    older["schema"] = 2
    path.write_text(json.dumps(older), "utf-8")
    with pytest.raises(fidm.FitError, match=r"has the schema 2; .* reads 3.* fit again"):
        fidm.load_fit(path)
    older["schema"] = 3
    del older["action_sensitivity"]["inferred"]
    path.write_text(json.dumps(older), "utf-8")
    with pytest.raises(fidm.FitError, match="KeyError 'inferred'"):
        fidm.load_fit(path)
    saved["action_sensitivity"]["inferred"] = 3
    path.write_text(json.dumps(saved), "utf-8")
    with pytest.raises(fidm.FitError, match="inferred is 3"):
        fidm.load_fit(path)


def test_where_everything_is_inferred_the_error_says_so():
    everything = replace(plain(), inferred=np.ones(plain().n_steps, bool))
    with pytest.raises(fidm.FitError, match="100% of the counted"):
        fidm.Model(task(), channels=()).fit(everything)
    two = replace(plain(), inferred=np.arange(plain().n_steps) >= plain()[:2].n_steps)
    with pytest.raises(fidm.FitError, match=r"participants? .* are inferred"):
        fidm.Model(task(), channels=()).fit(two)
    assert fidm.Model(task(), channels=(), inferred=1).fit(everything).n_learned == 40
    profile = fidm.Model(task(), channels=()).fit(everything, method="mle").profile(everything)
    assert np.isnan(profile.estimate).all()
    assert (profile.inferred_share == 1.0).all()


def test_features_for_scikit_learn_take_the_weight():
    features = FactorizedFeatures(task(), inferred=1.0)
    assert clone(features).get_params()["inferred"] == 1.0
    assert np.array_equal(
        features.fit(flagged()).transform(flagged()), fitted(1.0).profile(flagged()).features()[0]
    )


# ---------------------------------------------------------------------- in a profile


def test_the_share_of_inferred_moves_is_that_of_counted_steps():
    weight = np.ones(plain().n_steps)
    first = slice(0, plain()[:1].n_steps)
    weight[first][::2] = 0.0
    cohort = replace(flagged(), weight=weight)
    for inferred in (0.0, 0.5, 1.0):
        profile = fitted(inferred).profile(cohort)
        own = flagged().inferred[first][1::2]
        assert profile.inferred_share[0] == pytest.approx(own.mean(), rel=1e-15)
        assert profile.n[0, 0] == (len(own) if inferred else (~own).sum())
        assert profile.wide["inferred_share"][0] == profile.inferred_share[0]
    unsaid = fitted().profile(plain())
    assert np.isnan(unsaid.inferred_share).all()
    assert unsaid.wide["inferred_share"].null_count() == 40
    nobody = fidm.make_cohort(
        steps=tables_of(flagged()[:1])["steps"],
        participants=pl.DataFrame({"participant": ["P0000001", "idle"]}),
        tasks=task(),
    )
    assert fitted().profile(nobody).wide["inferred_share"].is_null().to_list() == [False, True]


def test_steps_that_never_count_are_in_no_share():
    grocery = fidm.load_task("grocery")
    cohort = fidm.simulate_cohort(grocery, 5, seed=1)
    left_out = replace(cohort, inferred=~grocery.counted[cohort.state])
    profile = fidm.Model(grocery, channels=()).fit(left_out, method="mle").profile(left_out)
    assert (profile.inferred_share == 0).all()


def test_the_summary_says_what_became_of_inferred_moves():
    share = f"{100 * flagged().inferred.mean():.0f} % of the moves that"
    for weight, how in (
        (0.0, "would count, left out of action sensitivity (weight 0)"),
        (0.5, "count, counted with weight 0.5 in action sensitivity"),
        (1.0, "count, counted like any other in action sensitivity (weight 1)"),
    ):
        assert f"inferred moves: {share} {how}" in str(fitted(weight).profile(flagged()).summary())
    assert "inferred" not in str(fitted().profile(plain()).summary())
    none = replace(plain(), inferred=np.zeros(plain().n_steps, bool))
    assert "inferred" not in str(fitted().profile(none).summary())


def test_profiles_of_different_weights_are_not_put_together():
    with pytest.raises(fidm.DataError, match="inferred moves differently"):
        Profile.concat([fitted().profile(flagged()[:5]), fitted(1.0).profile(flagged()[5:])])


# ---------------------------------------------------------------------- both ways


@pytest.mark.parametrize("method", ["eb", "mle"])
@pytest.mark.parametrize(("weight", "other"), [(0.0, 1.0), (0.3, 1.0), (1.0, 0.0)])
def test_the_other_way_is_a_fit_of_choices_alone(method, weight, other):
    fit = fidm.Model(task(), inferred=weight).fit(flagged(), method=method)
    expected = fidm.Model(task(), channels=(), inferred=other).fit(flagged(), method=method)
    found = other_way(fit, flagged())
    assert found.inferred == other
    assert found.population_table().equals(expected.population_table())
    assert np.array_equal(
        found.profile(flagged()).estimate, expected.profile(flagged()).estimate, equal_nan=True
    )
    assert other_way(fit).prior is fit.prior


def test_the_other_way_estimates_the_lapse_rate_again():
    model = fidm.Model(task(), channels=(), lapse="estimate")
    fit = model.fit(flagged())
    other = other_way(fit, flagged(), lapse="estimate")
    expected = fidm.Model(task(), channels=(), lapse="estimate", inferred=1.0).fit(flagged())
    assert (other.lapse, other.prior.mean) == (expected.lapse, expected.prior.mean)


def test_both_ways_in_numbers():
    mine, others = fitted().profile(flagged()), other_way(fitted(), flagged()).profile(flagged())
    ways = BothWays(mine, others)
    assert ways.median == (np.median(mine.action_sensitivity), np.median(others.action_sensitivity))
    ranks = [pl.Series(p.action_sensitivity).rank().to_numpy() for p in (mine, others)]
    assert ways.rank_correlation == pytest.approx(np.corrcoef(*ranks)[0, 1], rel=1e-12)
    assert ways.table.columns == [
        "action_sensitivity_all_moves",
        "action_sensitivity_all_moves_low",
        "action_sensitivity_all_moves_high",
        "action_sensitivity_all_moves_status",
    ]
    assert "with inferred moves left out, " in str(ways)
    assert str(ways).endswith(
        f"inferred moves counted, too; rank correlation {ways.rank_correlation:.2f} (n = {len(mine)})"
    )
    turned = BothWays(others, mine)
    assert turned.name == "action_sensitivity_stated_moves"
    with pytest.raises(fidm.DataError, match="of different people"):
        BothWays(mine, fitted(1.0).profile(flagged()[:3]))
    few = BothWays(fitted().profile(flagged()[:9]), fitted(1.0).profile(flagged()[:9]))
    assert np.isnan(few.rank_correlation)  # of so few people it says nothing
    assert "correlation" not in str(few)
