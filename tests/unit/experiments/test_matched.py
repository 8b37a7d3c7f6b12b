"""Matched pairs: the design holds exactly, and what cannot be used is refused in words."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.experiments import matched as module
from fidm.experiments.matched import (
    MatchedPairs,
    _recovered,
    expected_totals,
    factor_features,
    matched,
    merge_segments,
    plain_summaries,
    standardized_difference,
)
from fidm.fit.profile import Profile
from fidm.record import to_json
from fidm.tasks.stack import TaskSet

CHANNELS = ("duration", "characters", "turns", "pause")


@pytest.fixture(scope="module")
def task():
    return fidm.load_task("errands")


@pytest.fixture(scope="module")
def people(task):
    return fidm.simulate_cohort(task, 40, seed=1)


@pytest.fixture(scope="module")
def fit(task, people):
    return fidm.Model(task).fit(people, method="mle")


@pytest.fixture(scope="module")
def pairs(task, people, fit):
    return MatchedPairs.of(TaskSet.of(task), people, fit)


def small_cohort(n_moves, episodes):
    """One person, with these segments in each of several episodes."""
    sizes = [len(part) for part in n_moves]
    return Cohort(
        participants=pl.DataFrame({"participant": ["P1"]}),
        episodes=pl.DataFrame(
            {"episode": [str(i + 1) for i in range(episodes)], "task": ["errands"] * episodes}
        ),
        episode_offsets=np.array([0, episodes]),
        step_offsets=np.zeros(episodes + 1, dtype=np.int64),
        state=np.zeros(0, dtype=np.int32),
        action=np.zeros(0, dtype=np.int32),
        end_state=np.full(episodes, -1, dtype=np.int32),
        segments=pl.DataFrame(
            {
                "segment": [f"{e}{i}" for e, part in enumerate(n_moves) for i in range(len(part))],
                "n_moves": np.concatenate(n_moves).astype(np.int32),
            }
        ),
        segment_offsets=np.concatenate([[0], np.cumsum(sizes)]),
    )


def test_neighbours_are_merged_within_an_episode_and_an_odd_one_stays():
    merged = merge_segments(small_cohort([[1, 2, 4], [8, 16], [32]], 3))
    assert merged.segments["n_moves"].to_list() == [3, 4, 24, 32]
    assert merged.segments["segment"].to_list() == ["00", "02", "10", "20"]
    assert merged.segment_offsets.tolist() == [0, 2, 3, 4]


def test_expected_totals_agree_to_the_last_digits(pairs):
    apart = expected_totals(pairs.separate, pairs.channels, pairs.truth)
    together = expected_totals(pairs.merged, pairs.channels, pairs.truth)
    np.testing.assert_allclose(together * np.exp(pairs.delta), apart, rtol=1e-12)
    assert (np.abs(apart / together - 1) > 0.05).any(), "without offsets they would not"


def test_an_offset_of_equal_segments_is_the_formula(pairs):
    moves = np.full(6, 3)
    cohort = small_cohort([moves], 1)
    channels, truth = pairs.channels[:1], {"duration": pairs.truth["duration"]}
    delta = np.log(
        expected_totals(cohort, channels, truth) / expected_totals(merge_segments(cohort), channels, truth)
    )
    expected = np.log(2) - truth["duration"].slope * np.log((1 + 6) / (1 + 3))
    assert delta[0, 0] == pytest.approx(expected, abs=1e-12)


def test_a_pause_is_expected_only_where_there_is_one(pairs):
    cohort = small_cohort([[3]], 1)
    pause = [channel for channel in pairs.channels if channel.name == "pause"]
    truth = {name: pairs.truth[name] for name in ("pause", "pause_presence")}
    own, there = truth["pause"], truth["pause_presence"]
    x = np.log(4)
    seconds = np.exp(own.intercept + own.slope * x + own.shape**2 / 2)
    chance = 1 / (1 + np.exp(-there.intercept - there.slope * x))
    assert expected_totals(cohort, pause, truth)[0, 0] == pytest.approx(seconds * chance, rel=1e-12)


def test_members_share_situations_and_movements_but_not_segments(pairs):
    a, b = pairs.draw(5.0, 50.0, (1, 0))
    assert np.array_equal(a.state, b.state)
    assert not np.array_equal(a.action, b.action)
    found = plain_summaries((a, b), pairs.channels)
    moved = found["raw"] / found["per_movement"]
    np.testing.assert_allclose(moved[: len(a)], moved[len(a) :])
    sizes = found["n_segments"][:, 0]
    assert np.array_equal(sizes[len(a) :], np.ceil(sizes[: len(a)] / 2))
    np.testing.assert_allclose(found["per_segment"] * sizes[:, None], found["raw"])
    assert a.participants["true_action_sensitivity"].unique().to_list() == [5.0]
    assert b.participants["true_action_sensitivity"].unique().to_list() == [50.0]
    assert a.participants["true_duration"].unique().to_list() == [0.0]
    np.testing.assert_array_equal(b.participants["true_pause"].to_numpy(), pairs.delta[:, 3])


def test_what_people_share_comes_from_the_observed(task, people, fit, monkeypatch):
    seen = []
    real = fidm.Model.fit

    def spy(self, cohort, **options):
        seen.append(cohort)
        return real(self, cohort, **options)

    monkeypatch.setattr(fidm.Model, "fit", spy)
    matched(task, like=people, repeat=1)
    assert len(seen) == 1
    assert seen[0] is people
    truth = MatchedPairs.of(TaskSet.of(task), people, fit).truth["characters"]
    shared = fit.populations["characters"].population
    assert (truth.intercept, truth.slope, truth.shape) == (*shared.coefficients, shared.shape)


def test_both_members_of_a_pair_are_in_one_fold(task, people, monkeypatch):
    asked = []

    def spy(features, label, *, seed, groups):
        asked.append((np.asarray(features), np.asarray(label), np.asarray(groups)))
        return 0.5

    monkeypatch.setattr(module, "cross_validated_auc", spy)
    matched(task, like=people, repeat=1)
    assert len(asked) == len(module.FEATURES)
    for features, label, groups in asked:
        assert len(features) == len(label) == len(groups) == 2 * len(people)
        assert np.array_equal(groups[~label], groups[label])
        assert len(np.unique(groups)) == len(people)


def test_it_tells_them_apart_and_says_what_it_did(task, people):
    found = matched(task, like=people, repeat=2, seed=3)
    again = matched(task, like=people, repeat=2, seed=3)
    assert to_json(found) == to_json(again)
    assert to_json(found) != to_json(matched(task, like=people, repeat=2, seed=4))
    assert found.auc["features"].to_list() == list(module.FEATURES)
    assert found.area("full") > 0.9 > 0.75 > found.area("raw")
    assert found.recovery["factor"].to_list() == ["action_sensitivity", "log_action_sensitivity", *CHANNELS]
    assert found.recovery["paper_r"].to_list() == [0.566, None, 0.615, 0.652, 0.737, 0.538]
    assert found.differences.height == 8
    assert found.largest_difference == found.differences["mean"].abs().max()
    assert found.largest_single_difference == found.differences["largest"].max() > found.largest_difference
    assert found.record.settings["repeat"] == 2
    assert found.record.data is not None
    said = json.loads(to_json(found))["result"]
    assert said["pairs"] == 40
    assert f"{found.area('per_segment'):.3f}" in found.sentence
    with pytest.raises(DataError, match="no features 'x'"):
        found.area("x")


def test_what_people_share_comes_from_those_it_is_to_be_learned_from(task, people):
    """Whoever is only to be matched, as a test part, changes neither offsets nor estimates by their effort."""
    train, slow = people[:30], slower(people, 30)
    ours, theirs = (matched(task, like=like, learn_from=train, repeat=1) for like in (people, slow))
    assert ours.recovery["meant"].to_list() == theirs.recovery["meant"].to_list()
    assert matched(task, like=slow, repeat=1).recovery["meant"].to_list() != ours.recovery["meant"].to_list()


def slower(cohort, first):
    """The same people, those from a row on fifty times as slow."""
    keyed = cohort.episode_keys().with_row_index("e")
    owner = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    names = keyed["participant"].gather(owner)
    late = pl.Series(cohort.episode_owner()[owner] >= first)
    table = cohort.segments.with_columns(
        pl.when(late).then(pl.col("duration_s") * 50).otherwise("duration_s").alias("duration_s"),
        participant=names,
        episode=keyed["episode"].gather(owner),
    )
    return cohort.with_segments(table)


def test_nothing_to_merge_is_refused(task, people):
    keyed = people.segments.with_columns(
        participant=people.ids.gather(np.repeat(people.episode_owner(), np.diff(people.segment_offsets))),
        episode=pl.lit("1"),
    )
    with pytest.raises(DataError, match="nothing to merge"):
        matched(task, like=people.with_segments(keyed.filter(pl.col("segment") == "1")), repeat=1)
    with pytest.raises(DataError, match="leave n"):
        matched(task, like=people, n=10)


def test_one_repetition_has_no_spread(task, people):
    assert matched(task, like=people, repeat=1).auc["sd"].null_count() == len(module.FEATURES)


def test_missing_observations_and_unknown_moves_do_not_matter(task, people):
    holes = people.segments.with_columns(
        duration_s=pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise("duration_s")
    )
    first = pl.int_range(pl.len()) == 0
    names = ("n_moves", "duration_s", "n_characters", "n_turns", "pause_s")
    holes = holes.with_columns(
        pl.when(first).then(None).otherwise(pl.col(name)).alias(name) for name in names
    )
    keys = people.episode_keys()[np.repeat(np.arange(people.n_episodes), np.diff(people.segment_offsets))]
    cohort = people.with_segments(
        holes.with_columns(participant=keys["participant"], episode=keys["episode"])
    )
    found = matched(task, like=cohort, repeat=1)
    assert found.n_pairs == 40
    assert found.n_segments * 40 == people.n_segments - 1


def test_people_of_whom_no_pair_can_be_made_are_left_out(task, people):
    keys = people.episode_keys()[np.repeat(np.arange(people.n_episodes), np.diff(people.segment_offsets))]
    table = people.segments.with_columns(participant=keys["participant"], episode=keys["episode"])
    lost = people.with_segments(table.filter(pl.col("participant") != people.ids[0]))
    found = matched(task, like=lost, repeat=1)
    assert (found.n_pairs, found.n_left_out) == (39, 1)


def test_several_tasks_and_a_study_without_all_channels(task, people):
    tasks = (task, fidm.load_task("grocery_small"))
    both = fidm.simulate_cohort(tasks, 12, seed=2)
    assert matched(tasks, like=both, repeat=1).n_pairs == 12
    keys = people.episode_keys()[np.repeat(np.arange(people.n_episodes), np.diff(people.segment_offsets))]
    bare = people.segments.select("segment", "n_moves", "duration_s").with_columns(
        participant=keys["participant"], episode=keys["episode"]
    )
    found = matched(task, like=people.with_segments(bare), repeat=1)
    assert found.recovery["factor"].to_list()[2:] == ["duration"]
    assert found.skipped == ("characters", "turns", "pause")
    with pytest.raises(DataError, match="no segments"):
        matched(task, like=people.with_segments(bare.drop("duration_s")), repeat=1)


def test_pauses_that_are_always_there_or_never(task, people):
    keys = people.episode_keys()[np.repeat(np.arange(people.n_episodes), np.diff(people.segment_offsets))]
    table = people.segments.with_columns(participant=keys["participant"], episode=keys["episode"])
    always = people.with_segments(table.with_columns(pause_s=pl.col("pause_s") + 0.5))
    assert matched(task, like=always, repeat=1).skipped == ()
    never = people.with_segments(table.with_columns(pause_s=pl.lit(0.0)))
    assert matched(task, like=never, repeat=1).skipped == ("pause",)


def test_estimates_without_a_maximum_are_the_farthest():
    def profile(eta, theta):
        columns = np.column_stack([eta, theta])
        with np.errstate(divide="ignore"):
            log = np.log(eta)
        return Profile(
            participants=pl.Series([f"P{i}" for i in range(len(eta))]),
            parameters=("action_sensitivity", "turns"),
            estimate=columns, se=columns, low=columns, high=columns,
            status=np.zeros(columns.shape, np.int8), n=np.ones(columns.shape, np.int64),
            log_sensitivity=log, log_sensitivity_se=log,
            method="mle", level=0.95, prior_sd=np.full(2, np.nan),
            n_steps=np.full(len(eta), np.nan), n_inferred=np.full(len(eta), np.nan),
        )  # fmt: skip

    a = profile(np.array([1.0, np.inf]), np.array([-np.inf, 0.3]))
    b = profile(np.array([np.e, 0.0]), np.array([np.nan, -0.2]))
    found = factor_features([a, b], ["turns"])
    assert found[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert found[[0, 1, 3], 1].tolist() == [-0.2, 0.3, -0.2]
    assert np.isnan(found[2, 1])


def test_a_standardized_difference_by_hand():
    values = np.array([[1.0], [3.0], [4.0], [6.0]])
    assert standardized_difference(values)[0] == pytest.approx(3 / np.sqrt(2))


def test_recovery_by_hand():
    a = np.array([1.0, 2.0, 3.0, np.inf, np.nan, 5.0])
    b = np.array([2.0, 2.0, 5.0, np.inf, 4.0, np.inf])
    r, direction, difference, left_out = _recovered(a, b, np.zeros(6), np.ones(6))
    assert direction == pytest.approx((1 + 0.5 + 1 + 0.5 + 1) / 5)
    assert difference == pytest.approx(1.0)
    assert left_out == 3
    assert r == pytest.approx(np.corrcoef([1, 2, 3, 2, 2, 5], [0, 0, 0, 1, 1, 1])[0, 1])
    few = _recovered(a[1:], b[1:], np.zeros(5), np.ones(5))  # too few are left to speak for all
    assert np.isnan(few[0])
    assert np.isnan(few[2])
    assert few[3] == 3


@pytest.mark.parametrize("options", [{"low": 30.0, "high": 18.0}, {"low": 0.0}, {"repeat": 0}, {"seed": -1}])
def test_impossible_settings_are_refused(task, people, options):
    with pytest.raises(DataError, match="must be"):
        matched(task, like=people, **options)


def test_too_few_people_are_refused(task):
    for n in (1, 4):
        with pytest.raises(DataError, match=rf"{n} of {n} observed people .* at least 5"):
            matched(task, n=n)


def test_people_without_segments_or_movements_are_refused(task, people):
    silent = fidm.Cohort.from_traces(trace for name in people.ids for trace in people.traces(name))
    with pytest.raises(DataError, match="have no segments"):
        matched(task, like=silent)
    keys = people.episode_keys()[np.repeat(np.arange(people.n_episodes), np.diff(people.segment_offsets))]
    still = people.segments.with_columns(
        n_moves=pl.lit(0, pl.Int32), participant=keys["participant"], episode=keys["episode"]
    )
    with pytest.raises(DataError, match="No segment of"):
        matched(task, like=people.with_segments(still))


def test_the_picture_shows_every_kind_of_features(task, people):
    from matplotlib.figure import Figure

    from fidm.plot.experiments import matched_auc

    found = matched(task, like=people, repeat=1)
    ax = matched_auc(found)
    assert [text.get_text() for text in ax.get_yticklabels()] == list(module.FEATURES.values())
    shown = [float(own.lines[0].get_xdata()[0]) for own in ax.containers]
    assert shown == found.auc["auc"].to_list()
    own = Figure().add_subplot()
    assert matched_auc(found, ax=own) is own
