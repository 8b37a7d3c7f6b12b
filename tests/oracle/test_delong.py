"""AUC, its error and its paired difference against slow loops from DeLong, DeLong & Clarke-Pearson (1988)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from fidm.classify.intervals import auc, balanced_accuracy, difference, macro_auc, mean_over_folds

TIED = st.sampled_from([-1.0, 0.0, 0.1, 0.1 + 1e-9, 0.5, 2.0, 1e9])


def psi(case: float, other: float) -> float:
    if other < case:
        return 1.0
    return 0.5 if other == case else 0.0


def delong(scores: list[list[float]], positive: list[bool]) -> tuple[list[float], list[list[float]]]:
    """The AUCs of several scores of the same people, and their covariance (their equations 2 to 6)."""
    cases = [i for i, is_case in enumerate(positive) if is_case]
    others = [j for j, is_case in enumerate(positive) if not is_case]
    m, n = len(cases), len(others)
    theta, v10, v01 = [], [], []
    for score in scores:
        theta.append(sum(psi(score[i], score[j]) for i in cases for j in others) / (m * n))
        v10.append([sum(psi(score[i], score[j]) for j in others) / n for i in cases])
        v01.append([sum(psi(score[i], score[j]) for i in cases) / m for j in others])
    many = range(len(scores))
    covariance = [[0.0 for _ in many] for _ in many]
    for r in many:
        for s in many:
            s10 = sum((v10[r][i] - theta[r]) * (v10[s][i] - theta[s]) for i in range(m)) / (m - 1)
            s01 = sum((v01[r][j] - theta[r]) * (v01[s][j] - theta[s]) for j in range(n)) / (n - 1)
            covariance[r][s] = s10 / m + s01 / n
    return theta, covariance


@st.composite
def two_scores(draw: st.DrawFn) -> tuple[list[float], list[float], list[bool]]:
    n = draw(st.integers(4, 14))
    positive = draw(st.permutations([True, True, False, False] + [draw(st.booleans()) for _ in range(n - 4)]))
    a = [draw(st.one_of(TIED, st.floats(-3, 3))) for _ in range(n)]
    b = [draw(st.one_of(TIED, st.floats(-3, 3))) for _ in range(n)]
    return a, b, list(positive)


@given(two_scores())
@settings(max_examples=150, deadline=None)
def test_variance_and_paired_difference_are_delongs(
    drawn: tuple[list[float], list[float], list[bool]],
) -> None:
    a, b, positive = drawn
    theta, covariance = delong([a, b], positive)
    first, second = auc(a, positive), auc(b, positive)
    assert first.value == pytest.approx(theta[0], abs=1e-12)
    assert second.value == pytest.approx(theta[1], abs=1e-12)
    assert first.variance == pytest.approx(covariance[0][0], abs=1e-12)
    assert second.variance == pytest.approx(covariance[1][1], abs=1e-12)
    apart = difference(first, second)
    assert apart.value == pytest.approx(theta[0] - theta[1], abs=1e-12)
    expected = covariance[0][0] + covariance[1][1] - 2 * covariance[0][1]
    assert apart.variance == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_values_are_those_of_scikit_learn(decimals: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        label = np.r_[[0, 1, 2], rng.integers(0, 3, 60)]
        probability = np.round(rng.dirichlet([1, 1, 1], len(label)) + 0.3 * np.eye(3)[label], decimals)
        positive = label > 0
        assert auc(probability[:, 1], positive).value == pytest.approx(
            roc_auc_score(positive, probability[:, 1]), abs=1e-12
        )
        summed = probability.sum(axis=1, keepdims=True)
        proper = np.where(summed > 0, probability / np.where(summed > 0, summed, 1), 1 / 3)
        assert macro_auc(proper, label).value == pytest.approx(
            roc_auc_score(label, proper, multi_class="ovr", average="macro"), abs=1e-12
        )
        predicted = rng.integers(0, 3, len(label))
        assert balanced_accuracy(predicted, label, 3).value == pytest.approx(
            balanced_accuracy_score(label, predicted), abs=1e-12
        )


def test_macro_error_is_the_covariance_of_the_one_against_rest_parts() -> None:
    """Written out: the variance of a mean is the mean of all covariances between the classes' AUCs."""
    rng = np.random.default_rng(3)
    label = np.repeat([0, 1, 2], [9, 7, 4])
    probability = np.round(rng.normal(size=(20, 3)) + np.eye(3)[label], 1)
    parts = []
    for k in range(3):
        members = label == k
        m, rest = int(members.sum()), int((~members).sum())
        theta = auc(probability[:, k], members).value
        row = []
        for i in range(20):
            against = [
                psi(probability[i, k], probability[j, k])
                if members[i]
                else psi(probability[j, k], probability[i, k])
                for j in range(20)
                if members[j] != members[i]
            ]
            size = m if members[i] else rest
            row.append((sum(against) / len(against) - theta) / math.sqrt(size * (size - 1)))
        parts.append(row)
    expected = sum(parts[k][i] * parts[h][i] for k in range(3) for h in range(3) for i in range(20)) / 9
    assert macro_auc(probability, label).variance == pytest.approx(expected, abs=1e-12)


def test_balanced_accuracy_error_is_binomial() -> None:
    label = np.repeat([0, 1, 2], [10, 6, 4])
    predicted = label.copy()
    predicted[[0, 1, 2, 10, 16, 17]] = [1, 1, 2, 0, 0, 1]
    shares = [(7, 10), (5, 6), (2, 4)]
    expected = sum(r / m * (1 - r / m) / (m - 1) for r, m in shares) / 9
    found = balanced_accuracy(predicted, label, 3)
    assert found.value == pytest.approx(sum(r / m for r, m in shares) / 3, abs=1e-15)
    assert found.variance == pytest.approx(expected, abs=1e-15)


def test_cross_validated_error_is_ledells() -> None:
    """LeDell, Petersen & van der Laan (2015), equation for the influence curve, with m − 1 in the place of m."""
    rng = np.random.default_rng(5)
    n, folds = 60, 5
    label = np.tile([True, False, False, True, False, False], 10)
    score = np.round(rng.normal(size=n) + label, 1)
    rows = [np.arange(k * 12, (k + 1) * 12) for k in range(folds)]
    total = 0.0
    for fold in rows:
        cases = [int(i) for i in fold if label[i]]
        others = [int(i) for i in fold if not label[i]]
        theta = sum(psi(score[i], score[j]) for i in cases for j in others) / (len(cases) * len(others))
        squares = 0.0
        for own, against, sign in ((cases, others, 1), (others, cases, -1)):
            share = len(own) / len(fold)
            for i in own:
                placement = sum(psi(sign * score[i], sign * score[j]) for j in against) / len(against)
                squares += ((placement - theta) / share) ** 2 * len(own) / (len(own) - 1)
        total += squares / len(fold)
    expected = total / folds / n
    found = mean_over_folds([auc(score[fold], label[fold]) for fold in rows], rows, n)
    assert found.variance == pytest.approx(expected, abs=1e-12)
