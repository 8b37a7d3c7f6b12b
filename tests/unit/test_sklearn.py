"""FactorizedFeatures is a well-behaved transformer that learns from the training fold alone."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fidm
from fidm.sklearn import FactorizedFeatures


@functools.cache
def setting():
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 90, seed=1)
    return task, cohort, cohort.participants["true_duration"].to_numpy() > 0


def test_parameters_can_be_read_set_and_cloned():
    task, cohort, _ = setting()
    features = FactorizedFeatures(task, cohort, method="mle", scale="raw")
    copied = clone(features)
    assert copied.get_params()["method"] == "mle"
    assert copied.cohort is cohort
    assert copied.set_params(method="eb").method == "eb"
    assert features.method == "mle"


def test_fitting_returns_itself_and_changes_no_parameter():
    task, cohort, y = setting()
    features = FactorizedFeatures(task)
    before = dict(features.get_params())
    assert features.fit(cohort, y) is features
    assert features.get_params() == before
    with pytest.raises(NotFittedError):
        FactorizedFeatures(task).transform(cohort)


def test_features_are_those_of_the_profile():
    task, cohort, _ = setting()
    features = FactorizedFeatures(task).fit(cohort)
    expected, names = fidm.Model(task).fit(cohort).profile(cohort).features()
    assert np.array_equal(features.transform(cohort), expected)
    assert features.get_feature_names_out().tolist() == list(names)
    assert np.array_equal(FactorizedFeatures(task).fit_transform(cohort), expected)


def test_cross_validation_on_a_cohort():
    task, cohort, y = setting()
    pipeline = make_pipeline(FactorizedFeatures(task), StandardScaler(), LogisticRegression())
    scores = cross_val_score(pipeline, cohort, y, cv=StratifiedKFold(3), scoring="roc_auc")
    assert scores.mean() > 0.85


def test_ids_beside_other_features():
    task, cohort, y = setting()
    table = pd.DataFrame(
        {"participant": cohort.ids.to_list(), "age": np.random.default_rng(0).normal(70, 8, 90)}
    )
    both = ColumnTransformer(
        [("fidm", FactorizedFeatures(task, cohort), ["participant"]), ("age", StandardScaler(), ["age"])]
    )
    pipeline = make_pipeline(both, SimpleImputer(), LogisticRegression())
    assert cross_val_score(pipeline, table, y, cv=3, scoring="roc_auc").mean() > 0.8
    both.fit(table)
    assert both.get_feature_names_out()[0] == "fidm__log_action_sensitivity"
    ids = np.array(cohort.ids.to_list())
    assert np.array_equal(
        FactorizedFeatures(task, cohort).fit(ids).transform(ids),
        FactorizedFeatures(task).fit(cohort).transform(cohort),
    )


def test_the_population_is_learned_from_the_training_fold_alone():
    """Changing people of the test fold beyond recognition changes nothing that was learned."""
    task, cohort, _ = setting()
    rows = np.arange(90)
    train, test = rows[:60], rows[60:]
    learned = FactorizedFeatures(task, cohort).fit(np.array(cohort.ids.to_list())[train])
    segments = cohort.segments.to_dict(as_series=False)
    first = int(cohort.segment_offsets[cohort.episode_offsets[60]])
    segments["duration_s"][first:] = [1e3 * value for value in segments["duration_s"][first:]]
    fields = {name: getattr(cohort, name) for name in fidm.Cohort.__slots__}
    import polars as pl

    spoiled = fidm.Cohort(**{**fields, "segments": pl.DataFrame(segments, schema=cohort.segments.schema)})
    again = FactorizedFeatures(task, spoiled).fit(np.array(cohort.ids.to_list())[train])
    assert again.fit_.population_table().equals(learned.fit_.population_table())
    assert not np.array_equal(
        again.transform(cohort.ids.to_numpy()[test]), learned.transform(cohort.ids.to_numpy()[test])
    )


def test_a_grid_search_over_methods():
    task, cohort, y = setting()
    pipeline = make_pipeline(FactorizedFeatures(task), SimpleImputer(), LogisticRegression())
    search = GridSearchCV(pipeline, {"factorizedfeatures__method": ["eb", "mle"]}, cv=3)
    search.fit(cohort, y)
    assert search.best_params_["factorizedfeatures__method"] in ("eb", "mle")


def test_what_cannot_be_looked_up_is_refused():
    task, cohort, _ = setting()
    with pytest.raises(fidm.DataError, match="X must be a Cohort"):
        FactorizedFeatures(task).fit(["P0000001"])
    with pytest.raises(fidm.DataError, match="no participant 'nobody'"):
        FactorizedFeatures(task, cohort).fit(["nobody"])
    with pytest.raises(fidm.DataError, match="one column"):
        FactorizedFeatures(task, cohort).fit(np.zeros((3, 2)))
