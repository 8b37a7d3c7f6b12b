"""Scores and other columns of the participants table as features."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import fidm
from fidm.classify.tabular import DEMOGRAPHICS, TableFeatures, score_columns, table_features

TABLE = {
    "score_total": [20, None, 12, 9],
    "score_items": [4.0, 3.0, float("nan"), 1.0],
    "score_note": ["a", "b", "c", "d"],
    "score_passed": [True, False, None, False],
    "age_years": [70, 71, None, 73],
    "education_years": [6, 9, 12, 3],
    "sex": ["male", "female", None, "female"],
}


@functools.cache
def walked():
    return fidm.simulate_cohort(fidm.load_task("errands"), 4, seed=1)


def people(**changes):
    table = {name: values for name, values in {**TABLE, **changes}.items() if values is not None}
    return walked().with_participants(pl.DataFrame({"participant": walked().ids, **table}, strict=False))


def test_a_column_is_taken_as_it_is_and_an_empty_cell_is_nan():
    found = table_features(people(), ["score_total", "score_items", "score_passed"]).fit_transform(people())
    nan = np.nan
    expected = [[20, 4, 1], [nan, 3, 0], [12, nan, nan], [9, 1, 0]]
    assert np.array_equal(found, np.array(expected, dtype=float), equal_nan=True)


def test_two_texts_are_zero_and_one():
    source = table_features(people(), DEMOGRAPHICS)
    found = source.fit_transform(people())
    assert np.array_equal(found[:, 2], [1, 0, np.nan, 0], equal_nan=True)
    assert np.array_equal(found[:, 0], [70, 71, np.nan, 73], equal_nan=True)
    assert source.get_feature_names_out().tolist() == list(DEMOGRAPHICS)
    assert not source.learns
    assert np.array_equal(clone(source).transform(people()), found, equal_nan=True)


def test_which_text_is_one_does_not_depend_on_who_is_looked_at():
    source = table_features(people(), ["sex"])
    assert source.transform(people()[[1, 3]])[:, 0].tolist() == [0, 0]
    assert source.transform(people()[[0]])[:, 0].tolist() == [1]


def test_subscores_are_all_other_numbers_called_score():
    assert score_columns(people()) == ("score_total", "score_items", "score_passed")
    assert score_columns(people(), score="score_items")[0] == "score_items"
    assert score_columns(people(), score="age_years", subscores=["sex"]) == ("age_years", "sex")


@pytest.mark.parametrize(
    ("columns", "changes", "message"),
    [
        (["score_total"], {"score_total": None}, "no column 'score_total'. Add it"),
        (
            ["score_total"],
            {"score_total": [None] * 4},
            "'score_total' of the participants is empty for all 4",
        ),
        (["score_total"], {"score_total": [float("nan")] * 4}, "is empty for all 4 people"),
        (["score_total"], {"score_total": [1.0, float("inf"), 2.0, 3.0]}, "infinite"),
        (["score_note"], {}, "'score_note' of the participants holds 4 different texts; numbers"),
        (["sex"], {"sex": ["a", "a", "a", "a"]}, "holds 1 different texts"),
        (["age_years"], {"age_years": [[1], [2], [3], [4]]}, r"holds List\(Int64\); numbers are needed"),
    ],
)
def test_what_cannot_be_used_is_refused(columns, changes, message):
    with pytest.raises(fidm.DataError, match=message):
        table_features(people(**changes), columns)


def test_a_text_nobody_learned_from_has_is_refused_without_repeating_it():
    source = TableFeatures(["sex"], {"sex": ("female", "male")})
    with pytest.raises(fidm.DataError, match=r"'sex' .* holds a text for P0000003 that") as caught:
        source.transform(people(sex=["male", "female", "unheard-of", None]))
    assert "unheard-of" not in str(caught.value)


def test_without_subscores_there_is_a_message():
    with pytest.raises(fidm.DataError, match="no columns score_… with numbers besides 'score_total'"):
        score_columns(people(score_items=None, score_passed=None))
    with pytest.raises(fidm.DataError, match="no column 'mmse'"):
        score_columns(people(), score="mmse")
    with pytest.raises(fidm.DataError, match="named twice"):
        score_columns(people(), subscores=["score_items", "score_total"])
