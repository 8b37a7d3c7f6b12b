"""What is missing is drawn so that slopes are right on average, and intervals as wide as they should be."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fidm
from fidm.experiments.imputation import impute, pool, pool_test


def study(seed, n=80, lost=0.3):
    """Outcome and group of people, and their ages, which go with both; some of them are missing."""
    rng = np.random.default_rng(seed)
    group = (np.arange(n) % 2).astype(float)
    age = 0.6 * group + rng.normal(size=n)
    outcome = 0.5 * group - 0.5 * age + rng.normal(size=n)
    known = pl.Series("age", np.where(rng.uniform(size=n) < lost, np.nan, age), nan_to_null=True)
    return outcome, group, known


def regress(outcome, group, age):
    """Slopes of group and age by least squares, with their covariance."""
    known = np.column_stack([np.ones(len(age)), group, age])
    inverse = np.linalg.inv(known.T @ known)
    slopes = inverse @ known.T @ outcome
    rest = outcome - known @ slopes
    return slopes[1:], inverse[1:, 1:] * (rest @ rest) / (len(age) - 3)


def test_pooled_slopes_are_unbiased_and_intervals_hold_the_truth():
    """300 studies of 80 people, 30 % of ages missing completely at random, 10 imputations, seeds 0 to 299."""
    errors, held = [], []
    for seed in range(300):
        outcome, group, known = study(seed)
        filled = impute(known.to_frame(), np.column_stack([outcome, group]), times=10, seed=seed)
        found = [regress(outcome, group, table["age"].to_numpy()) for table in filled]
        values, variances = (
            np.array(each) for each in zip(*((one, np.diag(v)) for one, v in found), strict=True)
        )
        pooled = pool(values, variances, 77)
        low, high = pooled.ends(0.95)
        errors.append(pooled.value - (0.5, -0.5))
        held.append((low <= (0.5, -0.5)) & (high >= (0.5, -0.5)))
    spread = np.std(errors, axis=0) / np.sqrt(300)
    assert (np.abs(np.mean(errors, axis=0)) < 3 * spread).all()
    assert (np.mean(held, axis=0) >= 0.93).all()
    assert (np.mean(held, axis=0) <= 0.98).all()


def test_without_the_outcome_slopes_are_too_flat():
    slopes = []
    for seed in range(60):
        outcome, group, known = study(seed, lost=0.5)
        filled = impute(known.to_frame(), group[:, None], times=3, seed=seed)
        slopes.append(np.mean([regress(outcome, group, table["age"].to_numpy())[0][1] for table in filled]))
    assert -0.4 < np.mean(slopes) < -0.15


def test_categories_are_drawn_as_they_go_with_the_rest():
    rng = np.random.default_rng(3)
    outcome = rng.normal(size=600)
    site = np.where(outcome + rng.logistic(size=600) / 2 > 0, "b", "a").astype(object)
    known = pl.Series("site", [None if i % 3 == 0 else one for i, one in enumerate(site)])
    filled = impute(known.to_frame(), outcome[:, None], times=5, seed=1)
    lost = known.is_null().to_numpy()
    for table in filled:
        drawn = table["site"].to_numpy()
        assert (drawn[~lost] == site[~lost]).all()
        gap = outcome[lost & (drawn == "b")].mean() - outcome[lost & (drawn == "a")].mean()
        assert gap == pytest.approx(outcome[site == "b"].mean() - outcome[site == "a"].mean(), abs=0.3)


def test_several_columns_are_drawn_in_turn_and_the_same_seed_draws_the_same():
    rng = np.random.default_rng(5)
    age = rng.normal(70, 8, 400)
    table = pl.DataFrame(
        {"age": age, "years": (20 - age / 8 + rng.normal(size=400)).round(), "sex": ["f", "m"] * 200}
    )
    gaps = table.with_columns(
        age=pl.when(pl.int_range(400) % 4 == 0).then(None).otherwise(pl.col("age")),
        years=pl.when(pl.int_range(400) % 4 == 1).then(None).otherwise(pl.col("years").cast(pl.Int64)),
    )
    one, other = (
        impute(gaps, rng.normal(size=(400, 1)), times=2, seed=7) for rng in map(np.random.default_rng, (1, 1))
    )
    assert all(a.equals(b) for a, b in zip(one, other, strict=True))
    assert not one[0].equals(one[1])
    for filled in one:
        assert filled.null_count().sum_horizontal()[0] == 0
        assert np.corrcoef(filled["age"], filled["years"])[0, 1] == pytest.approx(-0.7, abs=0.1)


def test_too_few_people_are_not_imputed_from():
    known = pl.Series("age", [1.0, 2.0, 3.0, None, None, None, None, None])
    with pytest.raises(fidm.FitError, match="3 people have age; that is too few"):
        impute(known.to_frame(), np.arange(8.0)[:, None], times=2, seed=1)


def test_rules_of_pooling():
    """Rubin's rules by hand: three estimates, each with variance 1, of 20 degrees of freedom."""
    found = pool(np.array([[1.0], [2.0], [3.0]]), np.ones((3, 1)), 20)
    share = (4 / 3) / (1 + 4 / 3)
    known = 21 / 23 * 20 * (1 - share)
    assert found.value[0] == 2
    assert found.se[0] == pytest.approx(np.sqrt(1 + 4 / 3))
    assert found.freedom[0] == pytest.approx(1 / (share**2 / 2 + 1 / known))
    assert found.p[0] == pytest.approx(2 * stats.t.sf(2 / found.se[0], found.freedom[0]))
    alone = pool(np.array([[1.0]]), np.array([[4.0]]), 20)
    assert (alone.value[0], alone.se[0], alone.freedom[0]) == (1, 2, 20)


def test_several_numbers_are_tested_at_their_level():
    """Two means that are 0, each found ten times: p is below .05 in a twentieth of 2,000 studies."""
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(2000):
        truth = rng.normal(size=2)
        found = truth + 0.6 * rng.normal(size=2) + 0.6 * rng.normal(size=(10, 2))
        hits += pool_test(found, [np.eye(2)] * 10, 1e6) < 0.05
    assert hits / 2000 == pytest.approx(0.05, abs=0.02)
