"""Who simulated people are: exact quotas, streams of their own, scores within their bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.errors import DataError
from fidm.simulate.cohort import People
from fidm.simulate.people import (
    GROUPS,
    NOT_COMPLETED,
    SUBSCORES,
    Clinic,
    channels_of,
    draw_people,
    draw_roster,
    quotas,
    score_people,
    shifts_of,
)

SHARES = [group.share for group in GROUPS]


def test_the_paper_s_numbers_come_out_exactly():
    people = draw_people(draw_roster(402, seed=1), seed=1)
    done = people.filter(pl.col("excluded").is_null())
    assert (people.height, done.height) == (402, 400)
    assert dict(done["split"].value_counts().iter_rows()) == {"train": 332, "test": 68}
    assert dict(done["diagnosis"].value_counts().iter_rows()) == {"normal": 252, "mci": 124, "major_ncd": 24}
    test = done.filter(pl.col("split") == "test")
    # the numbers of the paper's held-out people
    assert dict(test["diagnosis"].value_counts().iter_rows()) == {"normal": 43, "mci": 21, "major_ncd": 4}
    out = people.filter(pl.col("excluded").is_not_null())
    assert out["excluded"].to_list() == [NOT_COMPLETED] * 2
    assert out["split"].to_list() == [None, None]


@pytest.mark.parametrize("n", [1, 2, 5, 17, 100, 402, 1000])
@pytest.mark.parametrize("seed", [0, 7])
def test_any_number_of_people_has_its_quotas(n, seed):
    roster = draw_roster(n, seed=seed)
    n_out = round(n * 2 / 402)
    assert len(roster) == n
    assert roster.is_excluded.sum() == n_out
    assert not (roster.is_excluded & roster.is_test).any()
    assert roster.is_test.sum() == round((n - n_out) * 0.17)
    done = roster.group[~roster.is_excluded]
    assert np.bincount(done, minlength=3).tolist() == quotas(n - n_out, SHARES)
    for g, size in enumerate(quotas(n - n_out, SHARES)):
        tested = int((roster.is_test & (roster.group == g)).sum())
        assert abs(tested - 0.17 * size) < 1.5


@pytest.mark.parametrize("n", range(40))
def test_quotas_add_up_and_are_off_by_less_than_one(n):
    found = quotas(n, SHARES)
    assert sum(found) == n
    assert all(abs(size - n * share) < 1 for size, share in zip(found, SHARES, strict=True))


def test_another_seed_deals_otherwise_and_the_same_alike():
    one, same, other = (draw_roster(402, seed=seed) for seed in (1, 1, 2))
    assert (one.group == same.group).all()
    assert (one.is_test == same.is_test).all()
    assert (one.group != other.group).any()


def test_people_are_the_same_however_they_are_drawn():
    roster = draw_roster(60, seed=3)
    whole = draw_people(roster, seed=3)
    assert pl.concat([draw_people(roster, seed=3, first=first, n=20) for first in (0, 20, 40)]).equals(whole)
    scores = score_people(roster, seed=3)
    assert pl.concat([score_people(roster, seed=3, first=first, n=20) for first in (0, 20, 40)]).equals(
        scores
    )


def test_covariates_stay_within_bounds_and_differ_as_they_should():
    people = draw_people(draw_roster(4_000, seed=1), seed=1)
    assert people["age_years"].is_between(60, 95).all()
    assert people["education_years"].is_between(0, 20).all()
    means = {
        row["diagnosis"]: row
        for row in people.group_by("diagnosis")
        .agg(pl.col("age_years", "education_years").mean())
        .iter_rows(named=True)
    }
    ages = [means[name]["age_years"] for name in ("normal", "mci", "major_ncd")]
    school = [means[name]["education_years"] for name in ("normal", "mci", "major_ncd")]
    assert ages == sorted(ages)
    assert school == sorted(school, reverse=True)
    assert (people["sex"] == "female").mean() == pytest.approx(0.6, abs=0.03)


def test_scores_are_whole_within_their_maxima_and_add_up():
    roster = draw_roster(2_000, seed=1)
    scores = score_people(roster, seed=1)
    assert scores.columns == ["score_total", *(score.name for score in SUBSCORES)]
    done = scores.filter(~pl.Series(roster.is_excluded))
    assert done.null_count().sum_horizontal().item() == 0
    for score in SUBSCORES:
        assert done[score.name].is_between(0, score.maximum).all()
        assert done[score.name].n_unique() > 2
    assert (
        done["score_total"] == done.select(pl.sum_horizontal(pl.exclude("score_total"))).to_series()
    ).all()
    assert scores.filter(pl.Series(roster.is_excluded)).drop_nulls().height == 0
    by_group = [
        done["score_total"].filter(pl.Series(roster.group[~roster.is_excluded] == g)).mean() for g in range(3)
    ]
    assert by_group == sorted(by_group, reverse=True)


def test_scores_follow_the_ability_that_is_simulated():
    strong = Clinic(score_action=5.0, score_noise=0.0, subscore_noise=0.0, score_effort=0.0)
    roster = draw_roster(200, seed=5, clinic=strong)
    people = People()
    shifts = shifts_of(roster.group, channels_of(people), clinic=strong)
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 200, seed=5, shifts=shifts)
    scores = score_people(roster, seed=5, clinic=strong)["score_total"].fill_null(0).to_numpy()
    kept = ~roster.is_excluded & (roster.group == 0)
    true = cohort.participants["true_action_sensitivity"].to_numpy()[kept]
    order = np.argsort(true)
    assert (np.diff(scores[kept][order]) >= 0).all()
    assert scores[kept][order[-1]] > scores[kept][order[0]]


def test_shifts_stand_in_the_order_of_the_channels():
    shifts = shifts_of(np.array([0, 1, 2], dtype=np.int8), ("pause", "duration"))
    assert shifts.tolist() == [
        [0, 0, 0],
        [GROUPS[1].log_sensitivity, GROUPS[1].effort["pause"], GROUPS[1].effort["duration"]],
        [GROUPS[2].log_sensitivity, GROUPS[2].effort["pause"], GROUPS[2].effort["duration"]],
    ]
    assert channels_of(People()) == ("duration", "characters", "turns", "pause", "pause_presence")


def test_a_study_of_one_diagnosis():
    alone = Clinic(groups=(replace(GROUPS[0], share=1.0),))
    people = draw_people(draw_roster(10, seed=1, clinic=alone), seed=1, clinic=alone)
    assert people["diagnosis"].unique().to_list() == ["normal"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": (GROUPS[0],)}, "add up to 1"),
        ({"groups": ()}, "add up to 1"),
        ({"groups": (replace(GROUPS[0], share=0.5), replace(GROUPS[0], share=0.5))}, "the same name"),
        ({"test_share": 1.0}, "between 0 and 1"),
        ({"excluded_share": -0.1}, "between 0 and 1"),
    ],
)
def test_an_impossible_clinic_is_refused(changes, words):
    with pytest.raises(DataError, match=words):
        Clinic(**changes)


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (-3, 1), (2.5, 1), (5, -1), (5, 0.5)])
def test_impossible_numbers_are_refused(n, seed):
    with pytest.raises(DataError, match="must be"):
        draw_roster(n, seed=seed)
