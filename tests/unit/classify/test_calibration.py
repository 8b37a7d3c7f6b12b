"""Calibration and cut-offs, against statsmodels and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from statsmodels.stats.proportion import proportion_confint

from fidm.classify.calibration import at_prevalence, at_threshold, calibration
from fidm.errors import DataError


def people(
    seed: int, n: int = 120, slope: float = 0.6, offset: float = -0.5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return expit(x), rng.random(n) < expit(offset + slope * x)


@pytest.mark.parametrize("seed", range(8))
def test_intercept_and_slope_are_those_of_statsmodels(seed: int) -> None:
    p, y = people(seed, n=[30, 68, 332][seed % 3])
    x = logit(p)
    family = sm.families.Binomial()
    large = sm.GLM(y, np.ones(len(y)), offset=x, family=family).fit(tol=1e-14)
    line = sm.GLM(y, sm.add_constant(x), family=family).fit(tol=1e-14)
    found = calibration(p, y).summary
    for name, expected, ends in (
        ("intercept", large.params[0], large.conf_int()[0]),
        ("slope", line.params[1], line.conf_int()[1]),
    ):
        assert found[name] == pytest.approx(expected, abs=1e-7)
        assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(ends, abs=1e-6)


def test_brier_and_its_reference() -> None:
    found = calibration([0.1, 0.4, 0.8, 0.9], [False, True, True, True]).summary
    assert found["brier"] == pytest.approx((0.01 + 0.36 + 0.04 + 0.01) / 4)
    assert found["brier_reference"] == pytest.approx(0.75 * 0.25)
    assert found["prevalence"] == 0.75
    assert found["n"] == 4


@pytest.mark.parametrize(("n", "bins"), [(20, 3), (45, 3), (68, 4), (100, 6), (332, 10)])
def test_bins_are_about_equal(n: int, bins: int) -> None:
    p, y = people(1, n)
    curve = calibration(p, y).curve
    assert curve.height == bins
    assert curve["n"].max() - curve["n"].min() <= 1
    assert calibration(p, y, bins=5).curve.height == 5


def test_the_curve_by_hand() -> None:
    p = np.r_[np.full(20, 0.2), np.full(30, 0.6)]
    y = np.r_[np.arange(20) < 5, np.arange(30) < 21]
    curve = calibration(p, y).curve
    assert curve["n"].to_list() == [20, 30]
    assert curve["predicted"].to_list() == pytest.approx([0.2, 0.6])
    assert curve["observed"].to_list() == pytest.approx([0.25, 0.7])
    low, high = proportion_confint([5, 21], [20, 30], method="wilson")
    assert curve["low"].to_list() == pytest.approx(list(low))
    assert curve["high"].to_list() == pytest.approx(list(high))


def test_one_class_has_no_intercept_and_no_slope() -> None:
    for y in (np.zeros(30, dtype=bool), np.ones(30, dtype=bool)):
        found = calibration(np.linspace(0.1, 0.9, 30), y).summary
        assert all(
            found[f"{name}{end}"] is None for name in ("intercept", "slope") for end in ("", "_low", "_high")
        )
        assert found["brier_reference"] == 0


def test_a_constant_probability_has_an_intercept_and_no_slope() -> None:
    found = calibration(np.full(40, 0.5), np.arange(40) < 10)
    assert found.curve.height == 1
    assert found.summary["slope"] is None
    assert found.summary["intercept"] == pytest.approx(logit(0.25))


@pytest.mark.parametrize("gap", [0.3, 0.0, -1e-13])
def test_separated_classes_have_no_slope(gap: float) -> None:
    """Apart, touching, and overlapping by no more than rounding; also the wrong way round."""
    y = np.repeat([False, True], 20)
    p = np.r_[np.linspace(0.1, 0.4, 20), np.linspace(0.4 + gap, 0.9, 20)]
    assert calibration(p, y).summary["slope"] is None
    assert calibration(1 - p, y).summary["slope"] is None
    assert calibration(p, y).summary["intercept"] is not None


def test_probabilities_of_exactly_0_and_1_are_moved_inside() -> None:
    p, y = people(3)
    p = np.where(p < 0.1, 0.0, np.where(p > 0.9, 1.0, p))
    found = calibration(p, y).summary
    assert all(np.isfinite(value) for value in found.values())


def test_balanced_probabilities_come_back_to_the_prevalence() -> None:
    """A balanced classifier among 150 and 50 people is far too sure of cases; put back, it is calibrated."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(4)
    y = np.repeat([False, True], [3000, 1000])
    x = rng.normal(size=(4000, 2)) + y[:, None]
    model = LogisticRegression(class_weight="balanced").fit(x, y)
    balanced = calibration(model.predict_proba(x)[:, 1], y).summary
    back = calibration(at_prevalence(model.decision_function(x), 3000, 1000), y).summary
    assert balanced["intercept"] < -1
    assert back["intercept_low"] < 0 < back["intercept_high"]
    assert back["slope_low"] < 1 < back["slope_high"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: calibration([], []), "nobody"),
        (lambda: calibration([0.1, 1.2], [True, False]), "1 of 2 probabilities"),
        (lambda: calibration([0.1, np.nan], [True, False]), "1 of 2 probabilities"),
        (lambda: calibration([0.1], [True, False]), "shape"),
        (lambda: calibration([0.1, 0.2], [True, False], bins=0), "at least one"),
        (lambda: at_prevalence([0.0], 10, 0), "both classes"),
        (lambda: at_threshold([], []), "nobody"),
    ],
)
def test_what_cannot_be_judged_says_why(make: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()  # type: ignore[operator]


def test_a_threshold_by_hand() -> None:
    p = [0.9, 0.8, 0.5, 0.4, 0.3, 0.5, 0.2, 0.1, 0.05, 0.7]
    y = [True, True, True, True, False, False, False, False, False, False]
    row = at_threshold(p, y)
    assert [row[k] for k in ("true_positive", "false_positive", "true_negative", "false_negative")] == [
        3,
        2,
        4,
        1,
    ]
    assert [row[k] for k in ("sensitivity", "specificity", "ppv", "npv")] == pytest.approx(
        [3 / 4, 4 / 6, 3 / 5, 4 / 5]
    )
    low, high = proportion_confint(3, 4, method="wilson")
    assert [row["sensitivity_low"], row["sensitivity_high"]] == pytest.approx([low, high])
    assert row["threshold"] == 0.5


def test_nobody_called_and_nobody_a_case() -> None:
    row = at_threshold([0.1, 0.2], [False, False])
    assert row["sensitivity"] is None
    assert row["ppv"] is None
    assert row["ppv_low"] is None
    assert row["specificity"] == row["npv"] == 1
    assert row["specificity_low"] > 0
