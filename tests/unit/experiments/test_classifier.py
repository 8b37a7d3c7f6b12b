"""Features are prepared as scikit-learn does it, from training rows alone, and the classifier converges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from fidm.classify.features import preparation
from fidm.experiments.shared import Preparation, classifier


def awkward(n, d, seed):
    """Numbers of all sizes, with missing ones, a constant column, an empty one and one far from zero."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, size=d)
    x[rng.random((n, d)) < 0.2] = np.nan
    x[:, 0] = 0.1
    if d > 2:
        x[:, 1] = np.nan
        x[:, 2] += 1e6
    return x


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_are_those_of_scikit_learn(seed, scaled):
    train = [awkward(n, d, seed) for n, d in ((37 + seed, 1), (37 + seed, 5), (37 + seed, 60))]
    test = [awkward(11, matrix.shape[1], 100 + seed) for matrix in train]
    found = Preparation.learn(train, scaled=scaled)
    for rows in (train, test):
        expected = [
            Pipeline(preparation(scaled=scaled)).fit(own).transform(other)
            for own, other in zip(train, rows, strict=True)
        ]
        np.testing.assert_allclose(
            found.apply(rows), np.concatenate(expected, axis=1), rtol=1e-10, atol=1e-10
        )


def test_a_scaled_block_has_the_same_size_whatever_its_number_of_features():
    rng = np.random.default_rng(1)
    blocks = [rng.normal(size=(200, d)) for d in (1, 5, 768)]
    x = Preparation.learn(blocks, scaled=True).apply(blocks)
    for first, last in ((0, 1), (1, 6), (6, 774)):
        assert (x[:, first:last] ** 2).sum(axis=1).mean() == pytest.approx(1.0)


def test_rows_that_are_judged_change_nothing_that_was_learned():
    train = [awkward(30, 4, 1)]
    found = Preparation.learn(train)
    before = found.apply(train)
    found.apply([1e9 * awkward(30, 4, 2)])
    assert np.array_equal(before, found.apply(train))
    assert np.array_equal(Preparation.learn(train).mean, found.mean)


def test_no_row_is_changed_in_place():
    train = awkward(20, 4, 1)
    kept = train.copy()
    Preparation.learn([train]).apply([train])
    assert np.array_equal(train, kept, equal_nan=True)


def gradient(model, x, y):
    """The largest slope of the penalized likelihood at what was found, per person."""
    classes, n = model.classes_, len(y)
    is_class = y[:, None] == classes
    weight = is_class @ (n / (len(classes) * is_class.sum(axis=0)))
    if len(classes) == 2:
        left = weight * (model.predict_proba(x)[:, 1] - is_class[:, 1])
        slopes = np.append(x.T @ left + model.coef_[0], left.sum())
    else:
        left = weight[:, None] * (model.predict_proba(x) - is_class)
        slopes = np.column_stack([left.T @ x + model.coef_, left.sum(axis=0)])
    return np.abs(slopes).max() / n


@pytest.mark.parametrize("d", [1, 5, 19, 300])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_converges(d, n_classes):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(265, d))
    x[:, -1] = x[:, 0]  # nothing but the penalty tells these two apart
    y = np.digitize(x[:, 0] + rng.normal(size=265), [0.5] if n_classes == 2 else [0.0, 1.2])
    model = classifier().fit(x, y)
    assert gradient(model, x, y) < 1e-6
    assert model.coef_.shape == (1 if n_classes == 2 else 3, d)
    assert model.coef_[:, -1] == pytest.approx(model.coef_[:, 0])


def test_the_usual_tolerance_would_not_do():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(265, 14))
    y = (x[:, 0] + rng.normal(size=265) > 0.5).astype(int)
    usual = LogisticRegression(C=1.0, class_weight="balanced").fit(x, y)
    assert gradient(usual, x, y) > 1e-6


def test_classes_count_the_same_whatever_their_size():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [230, 35])
    x = rng.normal(size=(265, 1)) + y[:, None]
    chance = classifier().fit(x, y).predict_proba(x)[:, 1]
    mean = [chance[y == group].mean() for group in (0, 1)]
    assert mean[0] == pytest.approx(1 - mean[1], abs=0.1)


def test_groups_that_are_told_apart_completely():
    """The penalty keeps the weights finite, and nobody warns."""
    x = np.linspace(-1, 1, 40)[:, None]
    model = classifier().fit(x, x[:, 0] > 0)
    assert np.isfinite(model.coef_).all()
    assert gradient(model, x, x[:, 0] > 0) < 1e-6
