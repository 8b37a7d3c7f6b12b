"""People cut by age, sex and schooling, and a classifier judged within each group."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fidm.classify.intervals import auc, balanced_accuracy
from fidm.classify.tabular import by_group, cut_people, usual_columns
from fidm.errors import DataError


def test_the_usual_columns_are_those_that_exist() -> None:
    full = pl.DataFrame({"education": [1], "education_years": [1], "age": [1], "gender": ["f"], "score": [1]})
    assert usual_columns(full) == ("age", "gender", "education_years")
    assert usual_columns(pl.DataFrame({"participant": ["a"]})) == ()
    assert cut_people(pl.DataFrame({"participant": ["a"]})).columns == []


def test_whole_numbers_are_cut_into_thirds_learned_from_some() -> None:
    table = pl.DataFrame({"age_years": [*range(60, 90), 30, 120, None]})
    learn = np.arange(33) < 30
    found = cut_people(table, learn_from=learn)["age_years"]
    assert found.dtype.categories.to_list() == ["under 70", "70–78", "79 and over"]
    assert found.to_list()[:30] == ["under 70"] * 10 + ["70–78"] * 9 + ["79 and over"] * 11
    assert found.to_list()[30:] == ["under 70", "79 and over", None]
    assert cut_people(table, learn_from=np.arange(30))["age_years"].equals(found)
    assert table["age_years"].to_list()[0] == 60


def test_the_labels_tell_the_truth() -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.integers(0, 25, 200).tolist(),
        rng.normal(0, 3, 200).tolist(),
        rng.normal(1e4, 0.01, 99).tolist(),
    ):
        found = cut_people(pl.DataFrame({"x": values}), ["x"])["x"].to_list()
        for value, label in zip(values, found, strict=True):
            if label.startswith("under "):
                assert value < float(label.removeprefix("under "))
            elif label.endswith(" and over"):
                assert value >= float(label.removesuffix(" and over"))
            elif " to under " in label:
                low, high = (float(end) for end in label.split(" to under "))
                assert low <= value < high
            else:
                low, high = (int(end) for end in label.split("–"))
                assert low <= value <= high
        sizes = np.unique(found, return_counts=True)[1]
        assert len(sizes) == 3
        assert sizes.min() > len(values) / 5


def test_years_of_schooling_of_which_most_are_none() -> None:
    """Thirds are impossible where nearly everybody has the same value; nobody is put into an empty group."""
    found = cut_people(pl.DataFrame({"education_years": [0] * 50 + [1, 2, 3, 4, 5, 6, 7]}))["education_years"]
    assert found.to_list() == ["under 1"] * 50 + ["1 and over"] * 7
    two = cut_people(pl.DataFrame({"education_years": [0] * 20 + [6] * 30 + [1, 2, 3, 4, 5, 7]}))[
        "education_years"
    ]
    assert two.unique(maintain_order=True).to_list() == ["under 6", "6 and over"]
    third = cut_people(pl.DataFrame({"x": [0] * 20 + [1] * 20 + [2] * 20 + [3, 4, 5, 6]}), ["x"])["x"]
    assert third.unique(maintain_order=True).to_list() == ["under 1", "1", "2 and over"]


def test_few_values_and_words_stay_as_they_are() -> None:
    table = pl.DataFrame(
        {
            "sex": ["f", " m ", "", None, "f"],
            "stage": [2.0, 1.0, float("nan"), None, 10.0],
            "left_handed": [True, False, None, True, True],
            "nothing": pl.Series([None] * 5, dtype=pl.Float64),
        }
    )
    found = cut_people(table, table.columns)
    assert found["sex"].to_list() == ["f", "m", None, None, "f"]
    assert found["stage"].to_list() == ["2", "1", None, None, "10"]
    assert found["stage"].dtype.categories.to_list() == ["1", "2", "10"]
    assert found["left_handed"].to_list() == ["true", "false", None, "true", "true"]
    assert found["nothing"].to_list() == [None] * 5


def test_a_missing_column_says_which_there_are() -> None:
    with pytest.raises(DataError, match=r"no column height\. They have: age_years"):
        cut_people(pl.DataFrame({"age_years": [1]}), ["height"])


def test_each_group_is_judged_by_its_own_people() -> None:
    rng = np.random.default_rng(2)
    n = 90
    groups = cut_people(
        pl.DataFrame({"age": rng.integers(60, 90, n), "sex": ["f"] * 60 + ["m"] * 28 + [None] * 2})
    )
    y = rng.random(n) < 0.4
    score = rng.normal(size=n) + y
    found = by_group(groups, score=score, predicted=score > 0.5, positive=y)
    assert found.height == 2 * (3 + 2)
    assert found["column"].unique(maintain_order=True).to_list() == ["age", "sex"]
    assert found.filter(pl.col("column") == "age")["group"][0].startswith("under ")
    row = found.filter((pl.col("group") == "f") & (pl.col("metric") == "auc")).row(0, named=True)
    expected = auc(score[:60], y[:60])
    assert (row["n"], row["n_cases"]) == (60, int(y[:60].sum()))
    assert (row["value"], row["low"], row["high"]) == (expected.value, *expected.interval())
    row = found.filter((pl.col("group") == "m") & (pl.col("metric") == "balanced_accuracy")).row(
        0, named=True
    )
    assert row["n"] == 28
    assert row["value"] == balanced_accuracy((score > 0.5)[60:88], y[60:88], 2).value
    assert found["why"].null_count() == found.height


def test_groups_too_small_say_so() -> None:
    groups = pl.DataFrame({"sex": ["f"] * 12 + ["m"] * 9})
    y = np.r_[np.arange(12) < 5, np.arange(9) < 4]
    found = by_group(groups, score=np.arange(21.0), predicted=y, positive=y)
    assert found["value"].is_null().to_list() == [False, False, True, True]
    assert found["why"].to_list()[2] == "4 cases and 5 others; at least 5 of each are needed"
    assert found["low"].is_null().to_list()[2:] == [True, True]


def test_an_empty_cut_gives_an_empty_table() -> None:
    found = by_group(pl.DataFrame(), score=[], predicted=[], positive=[])
    assert found.height == 0
    assert found.columns[:2] == ["column", "group"]


def test_lengths_must_agree() -> None:
    with pytest.raises(DataError, match="2 people in groups"):
        by_group(pl.DataFrame({"sex": ["f", "m"]}), score=[1.0], predicted=[True], positive=[True])
