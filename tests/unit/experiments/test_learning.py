"""Curves of η over blocks of trials, per person and for the group, and their trend."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes

import fidm
from fidm.cohort import offsets_of
from fidm.errors import DataError
from fidm.experiments.learning import _units, learning
from fidm.experiments.shared import Blocks
from fidm.fit.within import sensitivity_within
from fidm.model.action import list_choices
from fidm.plot import learning_curve
from fidm.record import plain


@pytest.fixture(scope="module")
def task():
    """Two choices in a row, each between three ways."""
    rng = np.random.default_rng(5)
    to = np.full((13, 3), -1)
    to[0], to[1:4] = (1, 2, 3), np.arange(4, 13).reshape(3, 3)
    reward = np.where(to >= 0, rng.normal(size=to.shape), 0.0)
    return fidm.TaskModel.from_arrays(to, reward, gamma=0.95, tau=0.2, name="ways")


def trials(task, people=8, each=20, slope=0.0, seed=1, of_block=5):
    """People with many trials, whose log η rises by a slope from one block of trials to the next."""
    rng, values = np.random.default_rng(seed), fidm.solve(task)
    middle = 0.5 * ((each - 1) // of_block)
    walks = []
    for j in range(people):
        level = rng.normal(0.8, 0.4)
        for k in range(each):
            eta = float(np.exp(level + slope * (k // of_block - middle)))
            walks.append(fidm.walk(task, values, eta, seed=int(rng.integers(1 << 31)), label=f"P{j + 1:02d}"))
    return fidm.Cohort.from_traces(walks)


@pytest.fixture(scope="module")
def cohort(task):
    return trials(task, slope=0.4)


@pytest.fixture(scope="module")
def fit(task, cohort):
    return fidm.Model(task, channels=(), lapse=0.0).fit(cohort)


@pytest.fixture(scope="module")
def found(task, cohort, fit):
    return learning(task, cohort, by="every 5", fit=fit)


def with_column(cohort, values):
    return replace(cohort, episodes=cohort.episodes.with_columns(block=pl.Series(values)))


# ---------------------------------------------------------------------- blocks


def test_rules_make_blocks_of_everybodys_own_episodes(task):
    people = trials(task, people=2, each=7)
    uneven = replace(people, episode_offsets=np.array([0, 10, 14]))
    assert Blocks.of(uneven, "every 4").of_episode.tolist() == [0] * 4 + [1] * 4 + [2] * 2 + [0] * 4
    assert Blocks.of(uneven, "every-4").names == ("1", "2", "3")
    assert Blocks.of(uneven, "halves").of_episode.tolist() == [0] * 5 + [1] * 5 + [0] * 2 + [1] * 2
    assert Blocks.of(uneven, "thirds").of_episode[-4:].tolist() == [0, 0, 1, 2]
    few = replace(people, episode_offsets=np.array([0, 12, 14]))
    assert Blocks.of(few, "fifths").of_episode[-2:].tolist() == [0, 2]  # with blocks that are missing


@pytest.mark.parametrize(
    ("values", "names", "at"),
    [
        ([10, 2, 2, 30], ("2", "10", "30"), [2, 10, 30]),
        (["10", "2", None, "30"], ("2", "10", "30"), [2, 10, 30]),
        (["pre", "post", "post", "late"], ("pre", "post", "late"), [0, 1, 2]),
        ([date(2026, 3, 1), date(2025, 3, 1), None, None], ("2025-03-01", "2026-03-01"), [0, 1]),
        ([0.5, float("nan"), 0.5, 0.25], ("0.25", "0.5"), [0.25, 0.5]),
        ([False, False, True, True], ("false", "true"), [0, 1]),
    ],
)
def test_a_column_names_blocks_in_their_order(task, values, names, at):
    blocks = Blocks.of(with_column(trials(task, people=1, each=4), values), "block")
    assert blocks.names == names
    assert blocks.at.tolist() == at
    assert (blocks.of_episode >= 0).sum() == sum(value is not None and value == value for value in values)


def test_what_makes_no_blocks_is_refused(task, cohort):
    with pytest.raises(DataError, match="neither a column of the episodes nor a rule"):
        Blocks.of(cohort, "sessions")
    with pytest.raises(DataError, match="neither"):
        Blocks.of(cohort, "every 0")
    with pytest.raises(DataError, match="160 blocks; at most 50"):
        Blocks.of(with_column(cohort, np.arange(160)), "block")
    with pytest.raises(DataError, match="Nobody made a choice"):
        learning(task, cohort[:0], by="halves")
    with pytest.raises(DataError, match="Nobody made a choice"):
        learning(task, with_column(cohort, [None] * 160), by="block")


def test_a_persons_blocks_need_not_stand_side_by_side(task, cohort):
    alternating = with_column(cohort, ["a", "b"] * 80)
    units, owner, block = _units(alternating, Blocks.of(alternating, "block"))
    assert (owner.tolist()[:4], block.tolist()[:4]) == ([0, 0, 1, 1], [0, 1, 0, 1])
    assert units.ids.to_list()[:2] == ["P01, a", "P01, b"]
    assert units.n_steps == cohort.n_steps
    assert units.select(["P02, b"]).episodes["episode"].to_list() == [str(k) for k in range(2, 21, 2)]


# ---------------------------------------------------------------------- curves of people


def test_every_block_is_estimated_by_the_one_prior(cohort, fit, found):
    blocks = np.tile(np.repeat(np.arange(4), 5), 8)
    for k in range(4):
        part = fit.profile(with_column(cohort, blocks).where(block=k))
        own = found.people.filter(block=str(k + 1))
        assert own["action_sensitivity"].to_list() == pytest.approx(part.estimate[:, 0].tolist())
        assert own["low"].to_list() == pytest.approx(part.low[:, 0].tolist())
        assert own["n"].to_list() == part.n[:, 0].tolist()


def test_the_group_is_not_the_mean_of_shrunken_estimates(found):
    """Single estimates are drawn to one mean, so their slope is flatter than that of choices."""
    own = found.people.group_by("at").agg(pl.col("action_sensitivity").log().mean()).sort("at")
    flat = np.polyfit(own["at"], own["action_sensitivity"], 1)[0]
    assert flat < 0.5 * found.trend["slope"][0]
    own = found.people.group_by("at").agg(pl.col("line").log().mean()).sort("at")
    slope = np.polyfit(own["at"], own["line"], 1)[0]
    assert slope == pytest.approx(found.trend["slope"][0], abs=0.02)
    assert (
        (found.people["line_low"] < found.people["line"]) & (found.people["line"] < found.people["line_high"])
    ).all()
    line = np.polyfit(found.group["at"], found.group["log_mean"], 1)[0]
    assert line == pytest.approx(found.trend["slope"][0], abs=0.1)


# ---------------------------------------------------------------------- the group


def units(people, blocks, each, slope, slope_sd, seed):
    """Choices of three options by person and block, with owners and blocks."""
    rng, n = np.random.default_rng([seed, people]), people * blocks * each
    values = rng.normal(size=(n, 3))
    level, own = rng.normal(0.7, 0.5, people), slope + slope_sd * rng.normal(size=people)
    log_eta = level[:, None] + own[:, None] * (np.arange(blocks) - 0.5 * (blocks - 1))
    eta = np.exp(np.repeat(log_eta.ravel(), each))
    chosen = (eta[:, None] * values + rng.gumbel(size=values.shape)).argmax(axis=1)
    offsets = np.arange(0, 3 * n + 1, 3)
    choices = list_choices(
        offsets, values.ravel(), offsets_of(np.full(people * blocks, each)), np.arange(n, dtype=np.int32),
        (offsets[:-1] + chosen).astype(np.int32), np.zeros(0), np.ones(n, np.bool_),
    )  # fmt: skip
    return choices, np.repeat(np.arange(people), blocks), np.tile(np.arange(blocks, dtype=float), people)


def test_the_slope_is_recovered_in_small_studies():
    """Of six studies of eight people: within three standard errors of 0.3, and at most one interval off."""
    slopes, holds = [], 0
    for seed in range(6):
        choices, owner, at = units(8, 4, 20, 0.3, 0.1, seed)
        one = sensitivity_within(choices, owner, at[:, None], by_people=True)
        (low,), (high,) = one.intervals(0.95)
        slopes.append(one.slopes[0])
        holds += low <= 0.3 <= high
    assert abs(np.mean(slopes) - 0.3) < 3 * np.std(slopes, ddof=1) / np.sqrt(6)
    assert holds >= 5


def test_two_blocks_are_a_line():
    choices, owner, at = units(10, 2, 15, 0.5, 0.2, 1)
    line = sensitivity_within(choices, owner, at[:, None], by_people=True)
    curve = sensitivity_within(choices, owner, at[:, None], line=at, by_people=True)
    means, errors = curve.means(np.array([[0.0], [1.0]]))
    assert means[1] - means[0] == pytest.approx(line.slopes[0], abs=1e-6)
    assert errors == pytest.approx(line.means(np.array([[0.0], [1.0]]))[1], rel=1e-4)
    assert curve.own is None or curve.own == pytest.approx(line.own)
    value, error = line.lines(np.array([0, 0, 3]), np.array([0.0, 1.0, 0.5]))
    assert value[1] - value[0] == pytest.approx(line.own[0, 1])
    assert value[2] == pytest.approx(line.own[3, 0])
    assert error[2] ** 2 == pytest.approx(line.own_covariance[3, 0, 0])


def test_a_persons_slope_is_drawn_to_the_mean_by_how_little_is_known():
    choices, owner, at = units(12, 4, 40, 0.2, 0.4, 3)
    found = sensitivity_within(choices, owner, at[:, None], by_people=True)
    truth = np.random.default_rng([3, 12])
    truth.normal(size=(12 * 4 * 40, 3))
    truth.normal(0.7, 0.5, 12)
    own = 0.2 + 0.4 * truth.normal(size=12)
    slope, se = found.own[:, 1] / 3, np.sqrt(found.own_covariance[:, 1, 1]) / 3
    assert np.corrcoef(slope, own)[0, 1] > 0.9
    assert (np.abs(slope - own) < 1.96 * se).sum() >= 10
    assert np.ptp(slope) < 1.5 * np.ptp(own)
    assert slope.mean() == pytest.approx(found.slopes[0], abs=0.05)


def test_a_trend_where_there_is_one_and_none_where_there_is_none(task, found):
    row = found.trend.row(0, named=True)
    assert row["low"] < 0.4 < row["high"]
    assert row["factor"] == pytest.approx(np.exp(row["slope"]))
    assert (row["n_people"], row["n_paired"]) == (8, 8)
    assert found.group["log_mean"].is_sorted()
    assert (found.group["low"] < found.group["action_sensitivity"]).all()
    steady = learning(task, trials(task, seed=3), by="halves").trend.row(0, named=True)
    assert steady["low"] < 0 < steady["high"]


def test_numbers_say_how_far_blocks_lie_apart(task, cohort, fit, found):
    weeks = with_column(cohort, np.tile(np.repeat([0, 2, 4, 6], 5), 8))
    by_week = learning(task, weeks, by="block", fit=fit)
    assert by_week.unit == "block"
    assert 2 * by_week.trend["slope"][0] == pytest.approx(found.trend["slope"][0], rel=1e-3)
    assert by_week.group["log_mean"].to_list() == pytest.approx(found.group["log_mean"].to_list(), abs=1e-4)


# ---------------------------------------------------------------------- what is missing


def test_people_with_missing_blocks_and_a_block_of_one_choice(task, cohort, fit):
    blocks = np.tile(np.repeat([1.0, 2.0, 3.0, 4.0], 5), 8)
    blocks[:15] = np.nan  # the first person has the last block alone
    blocks[20:25] = np.nan  # the second lacks the first
    blocks[41:45] = np.nan  # the third has one trial in it
    one = learning(task, with_column(cohort, blocks), by="block", fit=fit)
    assert one.slopes["n_blocks"].to_list() == [1, 3, 4, 4, 4, 4, 4, 4]
    assert one.slopes["slope"].is_null().to_list() == [True] + [False] * 7
    assert one.group["n_people"].to_list() == [6, 7, 7, 8]
    assert one.group["action_sensitivity"].null_count() == 0
    assert one.people.filter(participant="P03", block="1")["n"].item() == 2
    assert "24 episodes in no block are left out." in one.notes
    assert (one.trend["n_people"][0], one.trend["n_paired"][0]) == (8, 7)


def test_a_block_of_few_people_has_no_mean(task, cohort, fit):
    blocks = np.tile(np.repeat([1, 2, 3, 3], 5), 8)
    blocks[: 20 * 3][np.tile(np.repeat([0, 0, 0, 1], 5), 3) == 1] = 4  # of three people
    one = learning(task, with_column(cohort, blocks), by="block", fit=fit)
    assert one.group["n_people"].to_list() == [8, 8, 8, 3]
    assert one.group["action_sensitivity"].is_null().to_list() == [False, False, False, True]
    assert any("no mean in 1 block (4)" in note for note in one.notes)


@pytest.mark.parametrize("n", [1, 4])
def test_too_few_people_have_curves_of_their_own_and_no_trend(task, cohort, n):
    one = learning(task, cohort[:n], by="quarters")
    assert one.trend.height == 0
    assert one.group["action_sensitivity"].null_count() == 4
    assert one.people.height == 4 * n
    assert one.slopes["slope"].null_count() == n
    assert any("at least 5 are needed" in note for note in one.notes)
    assert "too few people" in repr(one)
    assert plain(one.to_dict())["trend"] is None


def test_one_block_has_no_trend(task, cohort, fit):
    one = learning(task, cohort, by="every 100", fit=fit)
    assert (one.group.height, one.trend.height) == (1, 0)


def test_somebody_who_always_chose_best_counts(task, cohort):
    values, walks = fidm.solve(task), [trace for name in cohort.ids for trace in cohort.traces(name)]
    walks[15:20] = [fidm.walk(task, values, 1e6, seed=k, label="P01") for k in range(5)]
    one = learning(task, fidm.Cohort.from_traces(walks), by="quarters")
    assert np.isfinite(one.trend["slope"][0])
    assert one.group["n_people"].to_list() == [8] * 4


def test_other_orders_and_other_tasks_are_said(task, cohort, fit):
    turned = np.tile(np.repeat(["a", "b"], 10), 8)
    turned[:20] = np.repeat(["b", "a"], 10)
    one = learning(task, with_column(cohort, turned), by="block", fit=fit)
    assert any("1 participant went through the blocks in another order" in note for note in one.notes)
    assert not any("tasks" in note for note in one.notes)


def test_the_order_of_people_changes_nothing(task, cohort, fit, found):
    turned = learning(task, cohort[np.arange(8)[::-1]], by="every 5", fit=fit)
    assert turned.trend["slope"][0] == pytest.approx(found.trend["slope"][0], abs=1e-5)
    assert turned.slopes["participant"].to_list() == found.slopes["participant"].to_list()[::-1]


def test_a_curve_as_a_result(found, cohort, task, fit):
    said = json.loads(json.dumps(plain(found.to_dict()), allow_nan=False))
    assert list(said) == ["by", "unit", "level", "trend", "group", "slopes", "people", "notes"]
    assert list(found.tables) == ["", "people", "slopes", "trend"]
    assert found.record.experiment == "learning"
    assert found.record.settings["by"] == "every 5"
    other = learning(task, with_column(cohort, np.tile(np.repeat([1, 2, 3, 4], 5), 8)), by="block", fit=fit)
    assert other.record.settings["blocks"] == found.record.settings["blocks"]
    assert repr(found).startswith("Learning(8 participants, 4 blocks by 'every 5'; η × 1.")
    axes = learning_curve(found)
    assert isinstance(axes, Axes)
    assert len(axes.lines) == 9  # everybody, and all
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4"]
