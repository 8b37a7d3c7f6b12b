"""What must hold of any measure of a classifier, whoever the people are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fidm.classify.calibration import at_threshold, calibration
from fidm.classify.intervals import Estimate, auc, balanced_accuracy, difference, macro_auc, mean_over_folds

quick = settings(max_examples=80, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def people(seed: int, n_classes: int = 2) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """A few people with rounded scores (so that some are tied), at least one of each class."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(n_classes, 30))
    label = rng.permutation(np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    score = np.round(rng.normal(size=(n, n_classes)) + rng.uniform(0, 3) * np.eye(n_classes)[label], 1)
    return rng, score, label


def all_of(score: np.ndarray, label: np.ndarray) -> list[Estimate]:
    n_classes = score.shape[1]
    return [
        auc(score[:, 0], label == 0),
        macro_auc(score, label),
        balanced_accuracy(score.argmax(axis=1), label, n_classes),
    ]


@given(seeds, st.sampled_from([2, 3]))
@quick
def test_shuffling_people_changes_nothing(seed: int, n_classes: int) -> None:
    rng, score, label = people(seed, n_classes)
    order = rng.permutation(len(label))
    for one, other in zip(all_of(score, label), all_of(score[order], label[order]), strict=True):
        assert other.value == pytest.approx(one.value, abs=1e-12)
        assert other.parts == pytest.approx(one.parts[order], abs=1e-12)
        assert other.interval() == pytest.approx(one.interval(), abs=1e-9)


@given(seeds, st.sampled_from([2, 3]), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@quick
def test_an_interval_holds_its_value_and_has_a_width(seed: int, n_classes: int, level: float) -> None:
    _, score, label = people(seed, n_classes)
    for found in all_of(score, label):
        low, high = found.interval(level)
        assert 0 <= low <= found.value <= high <= 1
        assert high > low
        free = found.interval(level, bounded=False)
        assert free[0] <= found.value <= free[1]


@given(seeds)
@quick
def test_only_ranks_count(seed: int) -> None:
    _, score, label = people(seed)
    one, other = auc(score[:, 1], label), auc(np.exp(score[:, 1]), label)
    assert other.value == one.value
    assert np.array_equal(other.parts, one.parts)


@given(seeds)
@quick
def test_looking_for_the_other_class_mirrors_the_auc(seed: int) -> None:
    _, score, label = people(seed)
    one, other = auc(score[:, 1], label == 1), auc(score[:, 1], label == 0)
    assert other.value == pytest.approx(1 - one.value, abs=1e-12)
    assert other.parts == pytest.approx(-one.parts, abs=1e-12)


@given(seeds)
@quick
def test_two_classes_need_no_macro(seed: int) -> None:
    _, score, label = people(seed)
    both = np.column_stack([-score[:, 1], score[:, 1]])
    assert macro_auc(both, label).value == pytest.approx(auc(score[:, 1], label).value, abs=1e-12)
    assert macro_auc(both, label).parts == pytest.approx(auc(score[:, 1], label).parts, abs=1e-12)


@given(seeds)
@quick
def test_numbering_the_classes_differently_changes_nothing(seed: int) -> None:
    rng, score, label = people(seed, 3)
    order = rng.permutation(3)
    other = macro_auc(score[:, order], np.argsort(order)[label])
    assert other.value == pytest.approx(macro_auc(score, label).value, abs=1e-12)
    assert other.parts == pytest.approx(macro_auc(score, label).parts, abs=1e-12)


@given(seeds)
@quick
def test_differences_are_antisymmetric_and_nothing_from_oneself(seed: int) -> None:
    _, score, label = people(seed)
    a, b = auc(score[:, 0], label), auc(score[:, 1], label)
    assert difference(a, b).value == -difference(b, a).value
    assert difference(a, b).se == difference(b, a).se
    assert difference(a, b).p_value() == difference(b, a).p_value()
    assert difference(a, a).value == 0
    assert difference(a, a).se == 0
    assert difference(a, a).p_value() == 1


@given(seeds)
@quick
def test_judging_the_same_folds_again_adds_nothing(seed: int) -> None:
    rng, score, label = people(seed)
    rows = np.arange(len(label))
    other = np.round(score + rng.normal(size=score.shape), 1)
    folds = [auc(score[:, 1], label), auc(other[:, 1], label)]
    once = mean_over_folds(folds, [rows, rows], len(label))
    twice = mean_over_folds(folds * 2, [rows] * 4, len(label))
    assert twice.value == pytest.approx(once.value, abs=1e-12)
    assert twice.parts == pytest.approx(once.parts, abs=1e-12)
    assert mean_over_folds(folds[:1], [rows], len(label)).parts == pytest.approx(folds[0].parts, abs=1e-15)


@given(seeds)
@quick
def test_calibration_bins_hold_everybody_once_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    probability = np.round(rng.random(n), int(rng.integers(0, 4)))
    found = calibration(probability, rng.random(n) < probability)
    curve = found.curve
    assert curve["n"].sum() == n
    assert curve["bin"].to_list() == list(range(1, curve.height + 1))
    assert curve["predicted"].is_sorted()
    assert curve["predicted"].n_unique() == curve.height
    assert ((curve["low"] <= curve["observed"]) & (curve["observed"] <= curve["high"])).all()
    assert float((curve["n"] * curve["observed"]).sum()) / n == pytest.approx(found.summary["prevalence"])
    assert all(value is None or np.isfinite(value) for value in found.summary.values())


@given(seeds)
@quick
def test_everybody_is_counted_once_at_any_threshold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    probability, positive = np.round(rng.random(n), 1), rng.random(n) < rng.random()
    row = at_threshold(probability, positive, threshold=float(np.round(rng.random(), 1)))
    counts = [row[name] for name in ("true_positive", "false_positive", "true_negative", "false_negative")]
    assert sum(counts) == row["n"] == n
    for name in ("sensitivity", "specificity", "ppv", "npv"):
        ends = row[f"{name}_low"], row[f"{name}_high"]
        assert (row[name] is None) == (ends[0] is None) == (ends[1] is None)
        assert row[name] is None or 0 <= ends[0] <= row[name] <= ends[1] <= 1
