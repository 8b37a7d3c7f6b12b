"""Measures of a classifier on a handful of people, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from fidm.classify.intervals import (
    CAREFUL,
    NOBODY,
    Estimate,
    auc,
    balanced_accuracy,
    by_groups,
    difference,
    macro_auc,
    mean_over_folds,
    over_repeats,
)
from fidm.errors import DataError

LABEL = np.repeat([False, True], [6, 4])
SCORE = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.8, 0.35, 0.6, 0.7, 0.9])


def test_by_hand() -> None:
    """Two cases and two others: of four pairs three are right."""
    found = auc([0.1, 0.5, 0.3, 0.9], [False, False, True, True])
    assert found.value == 0.75
    assert found.parts == pytest.approx(np.array([0.25, -0.25, -0.25, 0.25]) / np.sqrt(2))
    assert found.se == pytest.approx(np.sqrt(0.125))


def test_a_constant_score_is_worth_a_half_and_its_interval_has_a_width() -> None:
    found = auc(np.full(10, 0.3), LABEL)
    assert found.value == 0.5
    assert found.se == 0
    low, high = found.interval()
    assert low < 0.5 < high


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_perfect_ranking_ends_where_wilson_does(level: float) -> None:
    found = auc(LABEL + 0.0, LABEL)
    wilson = binomtest(4, 4).proportion_ci(level, "wilson")
    assert found.interval(level) == pytest.approx((wilson.low, 1.0), abs=1e-12)
    reverse = auc(1.0 - LABEL, LABEL)
    assert reverse.interval(level) == pytest.approx((0.0, 1 - wilson.low), abs=1e-12)
    assert found.smallest == 4


def test_everybody_recognised_ends_where_wilson_does() -> None:
    wilson = binomtest(4, 4).proportion_ci(0.95, "wilson")
    assert balanced_accuracy(LABEL, LABEL, 2).interval() == pytest.approx((wilson.low, 1.0), abs=1e-12)


def test_everybody_called_the_same_leaves_doubt() -> None:
    found = balanced_accuracy(np.ones(10, dtype=int), LABEL, 2)
    assert found.value == 0.5
    low, high = found.interval()
    assert low < 0.4
    assert high > 0.6


def test_laplace_gives_a_class_without_spread_its_variance() -> None:
    """Four of four right counts as five of six, two of six as it is."""
    predicted = np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    found = balanced_accuracy(predicted, LABEL, 2)
    assert found.variance == pytest.approx((5 / 6 * 1 / 6 / 4 + 2 / 6 * 4 / 6 / 5) / 4, abs=1e-15)


def test_a_class_of_one_is_compared_with_a_half() -> None:
    found = auc([0.1, 0.2, 0.3, 0.25], [False, False, False, True])
    assert found.value == pytest.approx(2 / 3)
    assert found.parts[3] == pytest.approx(2 / 3 - 1 / 2)
    assert np.isfinite(found.interval()).all()


def test_few_people_make_wider_intervals_than_the_normal_curve_has() -> None:
    found = auc(SCORE, LABEL)
    shares = np.array([(found.parts[~LABEL] ** 2).sum(), (found.parts[LABEL] ** 2).sum()])
    degrees = shares.sum() ** 2 / (shares**2 / [5, 3]).sum()
    assert found.degrees == pytest.approx(degrees)
    low, high = found.interval(bounded=False)
    assert high - low == pytest.approx(2 * t.ppf(0.975, degrees) * found.se)
    assert found.p_value(0.5) == pytest.approx(2 * t.sf((found.value - 0.5) / found.se, degrees))


def test_the_interval_on_the_logit_scale() -> None:
    found = auc(SCORE, LABEL)
    low, high = found.interval()
    middle = np.log(found.value / (1 - found.value))
    assert np.log(low / (1 - low)) + np.log(high / (1 - high)) == pytest.approx(2 * middle)
    assert 0 < low < found.value < high < 1


def test_a_difference_without_spread_is_not_certain() -> None:
    best, constant = auc(LABEL + 0.0, LABEL), auc(np.zeros(10), LABEL)
    apart = difference(best, constant)
    assert apart.value == 0.5
    low, high = apart.interval(bounded=False)
    assert low < 0.5 < high
    assert 0 < apart.p_value() < 1
    z = np.sqrt(4.0)  # z² / (m + z²) = ½ with m = 4
    assert apart.p_value() == pytest.approx(2 * t.sf(z, 1e9), rel=1e-6)
    assert difference(best, auc(1.0 - LABEL, LABEL)).p_value() == 0


def test_folds_average_and_people_keep_their_places() -> None:
    rows = [np.array([0, 1, 2, 6, 7]), np.array([3, 4, 5, 8, 9])]
    folds = [auc(SCORE[row], LABEL[row]) for row in rows]
    found = mean_over_folds(folds, rows, 12)
    assert found.value == pytest.approx((folds[0].value + folds[1].value) / 2)
    assert found.parts[rows[1]] == pytest.approx(folds[1].parts / 2)
    assert found.label.tolist() == [0] * 6 + [1] * 4 + [NOBODY] * 2
    assert found.smallest == 4
    assert found.variance == pytest.approx((folds[0].variance + folds[1].variance) / 4)


def test_repetitions_have_the_error_of_a_single_one_and_more() -> None:
    rng = np.random.default_rng(3)
    single = [auc(SCORE + 0.1 * rng.standard_normal(len(SCORE)), LABEL) for _ in range(4)]
    found = over_repeats(single)
    assert found.value == pytest.approx(np.mean([one.value for one in single]))
    assert found.variance == pytest.approx(CAREFUL**2 * np.mean([one.variance for one in single]))
    assert found.smallest == single[0].smallest
    assert over_repeats(single[:1]).variance == pytest.approx(2 * single[0].variance)
    assert over_repeats(single[:1]).degrees == pytest.approx(single[0].degrees)
    other = over_repeats([auc(-SCORE, LABEL)] * 4)
    apart = difference(found, other)
    assert apart.variance == pytest.approx(np.square(found.parts - other.parts).sum())
    with pytest.raises(DataError, match="the same people"):
        difference(found, single[0])


def test_people_of_a_group_count_together() -> None:
    found = auc(SCORE, LABEL)
    alone = by_groups(found, np.arange(len(SCORE)))
    assert alone.variance == pytest.approx(found.variance)
    pairs = np.arange(len(SCORE)) // 2
    sums = np.bincount(pairs, found.parts)
    assert by_groups(found, pairs).variance == pytest.approx((sums**2).sum())
    twice = auc(np.repeat(SCORE, 2), np.repeat(LABEL, 2))
    doubled = by_groups(twice, np.repeat(np.arange(len(SCORE)), 2))
    assert doubled.se == pytest.approx(found.se, rel=0.2), "the same people twice are not more people"


def test_arrays_are_read_only_and_the_callers_stay_open() -> None:
    label = np.repeat([0, 1], 5)
    found = balanced_accuracy(label, label, 2)
    assert not found.parts.flags.writeable
    assert not found.label.flags.writeable
    label[0] = 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: auc([0.1, 0.2], [True, True]), "2 people of the class looked for and 0 others"),
        (lambda: auc([0.1, np.nan], [True, False]), "1 of 2 scores are missing"),
        (lambda: auc([0.1], [True, False]), "shape"),
        (lambda: macro_auc([[0.1, 0.2, 0.7]] * 4, [0, 1, 1, 0]), "of which 1 have nobody"),
        (lambda: macro_auc([[0.1, 0.9]] * 3, [0, 1, 2]), "0 to 1"),
        (lambda: macro_auc([0.1, 0.9], [0, 1]), "shape"),
        (lambda: balanced_accuracy([0, 0], [0, 0], 2), "of which 1 have nobody"),
        (lambda: balanced_accuracy([0, 0], [0, 0, 1], 2), "shape"),
        (lambda: mean_over_folds([], [], 3), "no estimate"),
        (lambda: mean_over_folds([auc(SCORE, LABEL)], [[0, 1]], 10), "names 2 people"),
        (lambda: difference(auc(SCORE, LABEL), auc(SCORE, ~LABEL)), "same people"),
        (lambda: auc(SCORE, LABEL).interval(95), "between 0 and 1"),
    ],
)
def test_what_cannot_be_measured_says_why(make: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()  # type: ignore[operator]


def test_an_estimate_made_by_hand() -> None:
    found = Estimate(0.7, np.array([0.03, 0.04]), np.array([0, 1]))
    assert found.se == pytest.approx(0.05)
    assert found.degrees == pytest.approx(0.0025**2 / (0.0009**2 + 0.0016**2))
