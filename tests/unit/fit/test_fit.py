"""Edges of estimation, what is said about them, channels, saved fits, and options that cannot apply."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.channels import Bernoulli, Channel, Gamma, LogNormal, NegativeBinomial, Poisson
from fidm.fit.effort_alone import fit_effort
from fidm.fit.fitted import to_dict as fitted_dict
from fidm.fit.profile import STATUSES
from fidm.model.effort import without_constants
from fidm.report.parts import against
from fidm.simulate.cohort import People


@functools.cache
def task():
    return fidm.load_task("errands")


@functools.cache
def cohort():
    return fidm.simulate_cohort(task(), 80, seed=1)


@functools.cache
def fitted(**way):
    return fidm.Model(task()).fit(cohort(), **dict(way))


def with_segments(base, **columns):
    fields = {name: getattr(base, name) for name in fidm.Cohort.__slots__}
    return fidm.Cohort(**{**fields, "segments": base.segments.with_columns(**columns)})


def two_ways(good):
    """A choice between two options of value 1 and 0, over and over."""
    return np.tile([1.0, 0.0], (len(good), 1)), np.where(good, 0, 1)


# ---------------------------------------------------------------------- the edges of η


def test_closed_form_of_two_options():
    """With two options a value apart, η̂ is the log odds of choosing the better one."""
    values, chosen = two_ways([True] * 30 + [False] * 10)
    row = fidm.fit_choices(values, chosen).table.row(0, named=True)
    assert row["action_sensitivity"] == pytest.approx(math.log(3), rel=1e-12)
    assert row["se"] == pytest.approx(1 / math.sqrt(40 * 0.75 * 0.25), rel=1e-5)
    assert row["status"] == "ok"


def test_no_better_than_chance_is_zero_with_an_upper_bound():
    values, chosen = two_ways([True] * 15 + [False] * 15)
    row = fidm.fit_choices(values, chosen).table.row(0, named=True)
    assert (row["action_sensitivity"], row["low"], row["status"]) == (0.0, 0.0, "at_zero")
    drop = 1.6448536269514722**2 / 2  # one-sided

    def fallen(eta):
        return 30 * math.log(2) + 15 * eta - 30 * math.log1p(math.exp(eta)) + drop

    assert fallen(row["high"]) == pytest.approx(0.0, abs=1e-4)
    worse = fidm.fit_choices(*two_ways([False] * 30)).table.row(0, named=True)
    assert worse["action_sensitivity"] == 0.0
    assert worse["high"] < row["high"]


def test_always_best_has_a_lower_bound_and_no_number():
    values, chosen = two_ways([True] * 30)
    row = fidm.fit_choices(values, chosen).table.row(0, named=True)
    assert (row["action_sensitivity"], row["high"], row["se"], row["status"]) == (
        math.inf,
        math.inf,
        None,
        "no_maximum",
    )
    chance = (1 + math.exp(-row["low"])) ** -30
    assert chance == pytest.approx(0.05, rel=1e-8)


def test_ties_within_rounding_count_as_best():
    values = np.array([[1.0, 1.0 - 1e-9, 0.0]] * 25)
    assert fidm.fit_choices(values, [1] * 25).table["status"].to_list() == ["no_maximum"]
    values = np.array([[1.0, 1.0 - 1e-6, 0.0]] * 25)
    assert math.isfinite(fidm.fit_choices(values, [1] * 25).table["action_sensitivity"][0])


def test_flat_rows_say_nothing():
    row = fidm.fit_choices([[2.0, 2.0], [1.0, np.nan]], [0, 0]).table.row(0, named=True)
    assert (row["action_sensitivity"], row["status"], row["n"]) == (None, "no_observation", 2)
    assert (row["low"], row["high"]) == (None, None)


def test_a_maximum_far_beyond_the_grid_is_found():
    """One slip of a very small gap among large ones: η̂ is finite but huge."""
    values = np.array([[1.0, 0.0]] * 50 + [[1.0, 1.0 - 1e-6]] * 10)
    chosen = np.array([0] * 50 + [0] * 7 + [1] * 3)
    row = fidm.fit_choices(values, chosen).table.row(0, named=True)
    assert row["action_sensitivity"] == pytest.approx(math.log(7 / 3) / 1e-6, rel=1e-6)
    assert row["low"] < row["action_sensitivity"] < row["high"] < math.inf


def test_very_many_choices_are_resolved_by_the_posterior():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60_000, 3))
    p = np.exp(2.0 * values)
    p /= p.sum(axis=1, keepdims=True)
    chosen = (rng.random((60_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    person = np.repeat(["many", "few", "some"], [59_800, 50, 150])
    exact = fidm.fit_choices(values, chosen, person).table.row(0, named=True)
    shrunk = fidm.fit_choices(values, chosen, person, method="eb", lapse=0.0).table.row(0, named=True)
    assert shrunk["action_sensitivity"] == pytest.approx(exact["action_sensitivity"], rel=2e-3)
    assert shrunk["se"] == pytest.approx(exact["se"], rel=0.05)
    assert shrunk["low"] < exact["action_sensitivity"] < shrunk["high"]


def test_people_come_in_the_order_they_first_appear():
    table = fidm.fit_choices([[1, 0]] * 6, [0, 1, 0, 0, 1, 0], ["b", "a", "b", "a", "b", "c"]).table
    assert table["participant"].to_list() == ["b", "a", "c"]
    assert table["n"].to_list() == [3, 2, 1]
    own = ["participant", "action_sensitivity", "se", "low", "high", "status", "n"]
    assert table.columns == [*own, "log_likelihood", "log_marginal"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[1, 0]], [2]), "row 0: the option chosen is 2, which was not offered"),
        (([[1, np.nan]], [1]), "row 0: the option chosen is 1, which was not offered"),
        (([[1, -np.inf]], [1]), "which was not offered"),
        (([[1, np.inf]], [0]), "worth \\+inf"),
        (([[1, 0]], [0, 1]), "There are 1 rows of option_values"),
        (([[1, 0]], [0.5]), "whole numbers"),
        (([1, 0], [0]), "has the shape"),
        (([["a"]], [0]), "rows of numbers"),
        (([[1, 0]], [0], ["a", "b"]), "participant has 2 entries"),
    ],
)
def test_choices_that_make_no_sense_are_refused(arguments, sentence):
    with pytest.raises(fidm.DataError, match=sentence):
        fidm.fit_choices(*arguments)


def test_an_empty_list_of_choices_gives_an_undefined_person():
    table = fidm.fit_choices(np.zeros((0, 2)), np.zeros(0, dtype=int)).table
    assert table["status"].to_list() == ["no_observation"]


def some_choices(n=8, each=30):
    rng = np.random.default_rng(4)
    values = rng.normal(size=(n * each, 3))
    eta = np.repeat(np.exp(rng.normal(0.5, 0.4, n)), each)
    chosen = (eta[:, None] * values + rng.gumbel(size=values.shape)).argmax(axis=1)
    return values, chosen, np.repeat([f"p{j}" for j in range(n)], each)


def test_the_log_likelihood_is_that_of_the_choices_at_the_estimates():
    values, chosen, people = some_choices()
    values[:, 2][::5] = np.nan  # not offered
    chosen = np.where((chosen == 2) & np.isnan(values[:, 2]), 0, chosen)
    values[3] = 1.0  # flat: counts, whatever η is
    for lapse in (0.0, 0.1):
        found = fidm.fit_choices(values, chosen, people, lapse=lapse)
        eta = dict(zip(found.table["participant"], found.table["action_sensitivity"], strict=True))
        slow = dict.fromkeys(eta, 0.0)
        for row, pick, who in zip(values, chosen, people, strict=True):
            offered = np.isfinite(row)
            p = np.exp(eta[who] * (row[offered] - row[pick]))
            slow[who] += math.log((1 - lapse) / p.sum() + lapse / offered.sum())
        assert found.table["log_likelihood"].to_list() == pytest.approx(list(slow.values()), abs=1e-10)
        assert found.log_likelihood == pytest.approx(sum(slow.values()), abs=1e-9)
        assert (found.prior, found.log_marginal, found.lapse) == (None, None, lapse)
        assert found.table["log_marginal"].null_count() == 8


def test_likelihoods_where_there_is_no_estimate_and_where_it_is_infinite():
    never = fidm.fit_choices([[1.0, 0.0]] * 4, [0] * 4)
    assert never.log_likelihood == pytest.approx(0.0, abs=1e-12)
    flat = fidm.fit_choices([[1.0, 1.0, 1.0]] * 2, [0, 1])
    assert flat.log_likelihood == pytest.approx(-2 * math.log(3))
    assert flat.to_dict()["participants"][0]["action_sensitivity"] is None
    assert fidm.fit_choices(np.zeros((0, 2)), np.zeros(0, dtype=int)).log_likelihood == 0.0


def test_the_learned_prior_is_in_the_unit_of_the_values():
    values, chosen, people = some_choices(12)
    found = fidm.fit_choices(values, chosen, people, method="eb", lapse=0.0)
    other = fidm.fit_choices(1000 * values, chosen, people, method="eb", lapse=0.0)
    assert other.prior.mean + math.log(1000) == pytest.approx(found.prior.mean, abs=1e-6)
    assert other.prior.sd == pytest.approx(found.prior.sd, rel=1e-6)
    slow = 0.0
    u, step = np.linspace(-6, 8, 4001, retstep=True)
    prior = np.exp(-0.5 * ((u - found.prior.mean) / found.prior.sd) ** 2) / (
        found.prior.sd * math.sqrt(2 * math.pi)
    )
    for who in np.unique(people):
        own = people == who
        away = values[own] - values[own][np.arange(own.sum()), chosen[own]][:, None]
        log_p = -np.logaddexp.reduce(np.exp(u)[:, None, None] * away, axis=2).sum(axis=1)
        slow += math.log(float((np.exp(log_p) * prior).sum()) * step)
    assert found.log_marginal == pytest.approx(slow, abs=1e-4)
    assert found.log_likelihood > found.log_marginal


def test_a_fit_of_choices_says_what_it_is():
    values, chosen, people = some_choices()
    found = fidm.fit_choices(values, chosen, people, method="eb", lapse="estimate")
    said = found.to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said["prior"]["log_sd"] == found.prior.sd
    assert len(said["participants"]) == 8
    first = repr(found).splitlines()[0]
    assert first.startswith("ChoicesFit(8 participants, 240 choices; method='eb', lapse rate ")
    assert "among people" in first
    alone = repr(fidm.fit_choices(values, chosen, people)).splitlines()[0]
    assert "among people" not in alone


# ---------------------------------------------------------------------- the edges of θ


def test_all_zero_counts_give_minus_infinity_and_an_upper_bound():
    silent = cohort().segments["n_turns"].to_numpy().copy()
    silent[: int(cohort().segment_offsets[1])] = 0
    changed = with_segments(cohort(), n_turns=pl.Series(silent))
    profile = fitted(method="mle").profile(changed)
    k = profile.parameters.index("turns")
    assert profile.estimate[0, k] == -math.inf
    assert profile.low[0, k] == -math.inf
    assert math.isfinite(profile.high[0, k])
    assert STATUSES[profile.status[0, k]] == "at_edge"
    shrunk = fitted().profile(changed)
    assert math.isfinite(shrunk.estimate[0, k])
    assert STATUSES[shrunk.status[0, k]] == "at_edge"


def test_nobody_s_pause_may_be_positive():
    pause = cohort().segments["pause_s"].to_numpy().copy()
    pause[: int(cohort().segment_offsets[1])] = 0.0
    changed = with_segments(cohort(), pause_s=pl.Series(pause))
    profile = fitted(method="mle").profile(changed)
    pause_at, presence_at = profile.parameters.index("pause"), profile.parameters.index("pause_presence")
    assert math.isnan(profile.estimate[0, pause_at])
    assert STATUSES[profile.status[0, pause_at]] == "no_observation"
    assert profile.estimate[0, presence_at] == -math.inf
    assert profile.n[0, pause_at] == 0
    shrunk = fitted().profile(changed)
    assert math.isnan(shrunk.estimate[0, pause_at])  # nothing was observed, so there is no number
    assert math.isnan(shrunk.low[0, pause_at])
    assert STATUSES[shrunk.status[0, pause_at]] == "no_observation"


def test_people_without_segments_or_steps_are_profiled_by_what_they_have():
    half = cohort()[:3]
    empty = fidm.Cohort(
        participants=half.participants,
        episodes=half.episodes,
        episode_offsets=half.episode_offsets,
        step_offsets=np.zeros(4, np.int64),
        state=np.zeros(0, np.int32),
        action=np.zeros(0, np.int32),
        end_state=np.full(3, -1, np.int32),
        segments=half.segments.clear(),
        segment_offsets=np.zeros(4, np.int64),
    )
    for way in ({}, {"method": "mle"}):
        profile = fitted(**way).profile(empty)
        assert {STATUSES[code] for code in profile.status.reshape(-1)} == {"no_observation"}
        assert np.isnan(profile.estimate).all()
        assert np.isnan(profile.log_sensitivity).all()


def test_a_cohort_of_nobody_gives_an_empty_profile():
    assert len(fitted().profile(cohort()[:0])) == 0


# ---------------------------------------------------------------------- weights, states left out, several tasks


def test_weights_leave_out_or_repeat_steps():
    fit = fidm.Model(task(), channels=()).fit(cohort(), method="mle")
    one = cohort()[:1]
    fields = {name: getattr(one, name) for name in fidm.Cohort.__slots__}
    double = fidm.Cohort(**{**fields, "weight": np.full(one.n_steps, 2.0)})
    assert fit.profile(double).estimate[0, 0] == pytest.approx(fit.profile(one).estimate[0, 0], rel=1e-12)
    assert fit.profile(double).se[0, 0] == pytest.approx(fit.profile(one).se[0, 0] / math.sqrt(2), rel=1e-9)
    none = fidm.Cohort(**{**fields, "weight": np.zeros(one.n_steps)})
    assert STATUSES[fit.profile(none).status[0, 0]] == "no_observation"


def test_steps_in_waiting_states_do_not_count():
    grocery = fidm.load_task("grocery")
    values = fidm.solve(grocery)
    waiting = int(np.flatnonzero(~grocery.counted)[0])
    action = int(grocery.action[grocery.offsets[waiting]])
    trace = fidm.walk(grocery, values, 20.0, seed=1, label="A")
    there = int(grocery.successor[grocery.successor_offsets[grocery.offsets[waiting]]])
    extra = fidm.Trace(
        "grocery",
        np.array([waiting, there], np.int32),
        np.array([action], np.int32),
        finished=False,
        label="A",
    )
    model = fidm.Model(grocery, channels=())
    others = [fidm.walk(grocery, values, 20.0, seed=s, label=f"B{s}") for s in range(2, 6)]
    fit = model.fit(fidm.Cohort.from_traces([trace, *others]), method="mle")
    plain = fit.profile(fidm.Cohort.from_traces([trace]))
    more = fit.profile(fidm.Cohort.from_traces([trace, extra]))
    assert more.n[0, 0] == plain.n[0, 0]
    assert more.estimate[0, 0] == plain.estimate[0, 0]


def test_episodes_on_several_tasks_share_one_sensitivity():
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    both = fidm.simulate_cohort(tasks, 60, seed=2)
    assert both.tasks == ("errands", "grocery_small")
    fit = fidm.Model(tasks).fit(both)
    swapped = fidm.Model(tasks[::-1]).fit(both)
    truth = np.log(both.participants["true_action_sensitivity"].to_numpy())
    profile = fit.profile(both)
    alone = fidm.Model(tasks[0]).fit(fidm.simulate_cohort(tasks[:1], 60, seed=2))
    assert np.corrcoef(profile.log_sensitivity, truth)[0, 1] > 0.85
    assert swapped.profile(both).estimate == pytest.approx(profile.estimate, rel=1e-9)
    assert np.median(profile.log_sensitivity_se) < alone.prior.sd
    with pytest.raises(fidm.DataError, match="'grocery_small', which"):
        fidm.Model(tasks[0]).fit(both)


def test_tasks_need_names_of_their_own():
    with pytest.raises(fidm.TaskError, match="tasks are called 'errands'"):
        fidm.Model([task(), task()])
    with pytest.raises(fidm.TaskError, match="TaskModels, not str"):
        fidm.Model(["errands"])
    with pytest.raises(fidm.TaskError, match="at least one"):
        fidm.Model([])


def test_a_model_refuses_traces_that_do_not_follow_its_task():
    other = fidm.load_task("grocery")
    wrong = fidm.simulate_cohort(other, 2, seed=1)
    fields = {name: getattr(wrong, name) for name in fidm.Cohort.__slots__}
    renamed = fidm.Cohort(**{**fields, "episodes": wrong.episodes.with_columns(task=pl.lit("errands"))})
    with pytest.raises(fidm.DataError, match="2 participants cannot be"):
        fidm.Model(task()).fit(renamed)


# ---------------------------------------------------------------------- channels


@pytest.mark.parametrize(
    "channel",
    [*fidm.channels.paper_channels(), Poisson("p", "y"), LogNormal("t", "y")],
    ids=lambda c: f"{c.kind}-{c.name}",
)
def test_every_channel_keeps_its_contract(channel):
    fidm.testing.check_channel(channel)


@dataclass(frozen=True)
class Exponential(Channel):
    """A waiting time: a Gamma whose shape is 1."""

    kind: ClassVar[str] = "exponential"

    def varying(self, y, xi, shape):
        return -xi - y * np.exp(-xi)

    def fixed(self, y, shape):
        return np.zeros(len(y))

    def slopes(self, y, xi, shape):
        ratio = y * np.exp(-xi)
        return ratio - 1, ratio

    def predictor(self, y):
        return float(np.log(y.mean()))

    def mean(self, xi, shape):
        return np.exp(xi)

    def residual(self, y, xi):
        return np.log(y) - xi

    def sample(self, xi, shape, rng):
        return rng.exponential(np.exp(xi))


def test_a_channel_of_one_s_own_needs_no_other_module(tmp_path):
    fidm.testing.check_channel(Exponential("wait", "duration_s"))
    fit = fidm.Model(task(), channels=[Exponential("wait", "duration_s")]).fit(cohort())
    assert fit.parameters == ("action_sensitivity", "wait")
    fit.save(tmp_path / "fit.json")
    with pytest.raises(fidm.FitError, match="kind 'exponential'"):
        fidm.load_fit(tmp_path / "fit.json")
    again = fidm.load_fit(tmp_path / "fit.json", channels=[Exponential])
    assert np.array_equal(again.profile(cohort()).estimate, fit.profile(cohort()).estimate)


class TestContract:
    """check_channel names what is wrong."""

    def test_wrong_slope(self):
        @dataclass(frozen=True)
        class Steep(Exponential):
            def slopes(self, y, xi, shape):
                first, second = super().slopes(y, xi, shape)
                return 2 * first, second

        with pytest.raises(AssertionError, match="derivative of"):
            fidm.testing.check_channel(Steep("a", "b"))

    def test_wrong_sampler(self):
        @dataclass(frozen=True)
        class Loud(Exponential):
            def sample(self, xi, shape, rng):
                return 3 * super().sample(xi, shape, rng)

        with pytest.raises(AssertionError, match="samples average"):
            fidm.testing.check_channel(Loud("a", "b"))

    def test_a_class_is_no_channel(self):
        with pytest.raises(AssertionError, match="not an object"):
            fidm.testing.check_channel(Exponential)


def test_design_columns_by_name():
    rng = np.random.default_rng(0)
    m = cohort().n_segments
    first = np.zeros(m, dtype=bool)
    first[cohort().segment_offsets[:-1]] = True
    phase = rng.choice(["checkout", "shopping", "bakery"], m)
    shift = 0.8 * first + 0.5 * (phase == "shopping") - 0.4 * (phase == "checkout")
    changed = with_segments(
        cohort(),
        first=pl.Series(first),
        phase=pl.Series(phase),
        duration_s=pl.Series(cohort().segments["duration_s"].to_numpy() * np.exp(shift)),
    )
    channel = Gamma("duration", "duration_s", design=("log_moves", "first", "phase"))
    fit = fidm.Model(task(), channels=[channel]).fit(changed)
    table = {row[1]: (row[2], row[3]) for row in fit.population_table().rows() if row[0] == "duration"}
    assert list(table) == [
        "intercept",
        "log_moves",
        "first",
        "phase=checkout",
        "phase=shopping",
        "kappa",
        "sd",
    ]
    for name, truth in (
        ("first", 0.8),
        ("phase=shopping", 0.5),
        ("phase=checkout", -0.4),
        ("log_moves", 0.57),
    ):
        assert abs(table[name][0] - truth) < 4 * table[name][1]
    with pytest.raises(fidm.DataError, match="1 levels"):
        fit.profile(with_segments(changed, phase=pl.lit("elsewhere")))
    with pytest.raises(fidm.DataError, match="first is missing"):
        fit.profile(with_segments(changed, first=pl.lit(None, dtype=pl.Boolean)))


def test_a_design_that_cannot_be_told_apart_is_named():
    doubled = with_segments(cohort(), twice=2 * pl.col("n_moves"))
    wide = Gamma("duration", "duration_s", design=("n_moves", "twice"))
    with pytest.raises(fidm.FitError, match=r"on (n_moves|twice), which .* follows from"):
        fidm.Model(task(), channels=[wide]).fit(doubled)


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("method", ["eb", "mle"])
def test_a_design_column_that_does_not_vary_is_left_out_with_a_note(n, method):
    people = with_segments(cohort()[:n], n_moves=pl.lit(3), role=pl.lit("guide"), load=pl.lit(0.25))
    wide = Gamma("duration", "duration_s", design=("log_moves", "role", "load"))
    fit = fidm.Model(task(), channels=[wide]).fit(people, method=method)
    plain = fidm.Model(task(), channels=[Gamma("duration", "duration_s", design=())]).fit(
        people, method=method
    )
    assert fit.channels[0].design == ()
    assert fit.levels == {}
    np.testing.assert_array_equal(fit.profile(people).estimate, plain.profile(people).estimate)
    said = [note for note in fit.warnings if "not conditioned on n_moves, role and load" in note]
    assert len(said) == 1
    assert fit_effort(people, [wide], method=method).notes[0] == said[0]
    other = with_segments(
        people, n_moves=pl.lit(9), role=pl.lit("other"), load=pl.lit(None, dtype=pl.Float64)
    )
    np.testing.assert_array_equal(fit.profile(other).estimate, fit.profile(people).estimate)


def test_the_papers_channels_are_learned_where_every_segment_has_as_many_moves(tmp_path):
    people = with_segments(cohort()[:20], n_moves=pl.lit(3))
    fit = fidm.Model(task()).fit(people)
    assert fit.parameters == fidm.Model(task()).fit(cohort()[:20]).parameters
    said = [note for note in fit.notes if "are not conditioned on n_moves: it is the same" in note]
    assert len(said) == 1
    assert said[0].startswith("duration, characters, turns, pause and pause_presence are")
    fit.save(tmp_path / "fit.json")
    again = fidm.load_fit(tmp_path / "fit.json", task())
    assert again.notes == fit.notes
    np.testing.assert_array_equal(again.profile(people).estimate, fit.profile(people).estimate)


def test_only_what_the_channel_is_observed_with_must_vary():
    odd = pl.int_range(pl.len()) % 2
    people = with_segments(
        cohort()[:20],
        role=pl.when(odd == 0).then(pl.lit("a")).otherwise(pl.lit("b")),
        duration_s=pl.when(odd == 0).then(pl.col("duration_s")),
        gap=pl.when(odd == 0).then(pl.lit(1.0)),
    )
    some = [
        Gamma("duration", "duration_s", design=("role",)),
        NegativeBinomial("turns", "n_turns", design=("role",)),
    ]
    fit = fidm.Model(task(), channels=some).fit(people)
    assert [channel.design for channel in fit.channels] == [(), ("role",)]
    with pytest.raises(fidm.DataError, match="gap is missing"):
        fidm.Model(task(), channels=[NegativeBinomial("turns", "n_turns", design=("gap",))]).fit(people)


def test_a_design_that_varies_stays_the_very_same():
    channels = (Gamma("duration", "duration_s"), NegativeBinomial("turns", "n_turns"))
    found, notes = without_constants(channels, cohort())
    assert all(one is other for one, other in zip(found, channels, strict=True))
    assert notes == ()
    assert without_constants(channels, cohort()[:0])[0] == channels


def test_response_times_and_counts_for_every_action():
    rng = np.random.default_rng(1)
    m = cohort().n_segments
    own = np.repeat(rng.normal(0, 0.4, 80), np.diff(cohort().segment_offsets))
    changed = with_segments(
        cohort(),
        rt_s=pl.Series(np.exp(0.5 + own + rng.normal(0, 0.3, m))),
        n_prompts=pl.Series(rng.poisson(np.exp(own))),
    )
    channels = [LogNormal("response_time", "rt_s", design=()), Poisson("prompts", "n_prompts", design=())]
    profile = fidm.Model(task(), channels=channels).fit(changed).profile(changed)
    truth = own[cohort().segment_offsets[:-1]]
    assert np.corrcoef(profile["response_time"], truth)[0, 1] > 0.97
    assert np.corrcoef(profile["prompts"], truth)[0, 1] > 0.8


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("duration_s", 0.0, "duration_s is 0. It must be above 0; leave it empty"),
        ("n_characters", 2.5, "n_characters is 2.5. It must be a whole number"),
        ("pause_s", -1.0, "pause_s is -1. It must be 0 or more"),
        ("duration_s", math.inf, "duration_s is inf"),
    ],
)
def test_values_a_channel_cannot_have_are_named(column, value, sentence):
    values = cohort().segments[column].cast(pl.Float64).to_numpy().copy()
    values[5] = value
    with pytest.raises(fidm.DataError) as raised:
        fitted().profile(with_segments(cohort(), **{column: pl.Series(values)}))
    assert f"segments, row 6, P0000001: {sentence}" in str(raised.value)
    assert len(raised.value.problems) == 1


def test_channels_left_out_are_those_without_a_column():
    fields = {name: getattr(cohort(), name) for name in fidm.Cohort.__slots__}
    quiet = fidm.Cohort(**{**fields, "segments": cohort().segments.drop("pause_s", "n_turns")})
    assert fidm.Model(task()).fit(quiet).parameters == ("action_sensitivity", "duration", "characters")
    with pytest.raises(fidm.DataError, match="no column 'n_turns'"):
        fidm.Model(task(), channels=fidm.channels.paper_channels()).fit(quiet)
    profile = fitted().profile(quiet)  # fitted with pauses, profiled without: nothing observed
    assert {STATUSES[c] for c in profile.status[:, profile.parameters.index("pause")]} == {"no_observation"}


def test_channels_that_cannot_be_fitted_say_why():
    always = with_segments(cohort(), pause_s=pl.lit(1.5))
    with pytest.raises(fidm.FitError, match=r"the same pause presence \(yes\)"):
        fidm.Model(task(), channels=[Bernoulli("pause_presence", "pause_s")]).fit(always)
    never = with_segments(cohort(), n_turns=pl.lit(0))
    with pytest.raises(fidm.FitError, match=r"all .* segments have the same turn count \(0\)"):
        fidm.Model(task(), channels=[NegativeBinomial("turns", "n_turns")]).fit(never)
    nothing = with_segments(cohort(), n_turns=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(fidm.FitError, match="nobody has a recorded turn count"):
        fidm.Model(task(), channels=[NegativeBinomial("turns", "n_turns")]).fit(nothing)


@pytest.mark.parametrize("method", ["eb", "mle"])
@pytest.mark.parametrize("population", ["random", "pooled"])
def test_a_channel_that_never_varies_is_left_out_whatever_the_method(method, population):
    few = with_segments(cohort()[:10], n_turns=pl.lit(1), duration_s=pl.lit(2.5))
    fit = fidm.Model(task()).fit(few, method=method, population=population)
    assert {"turns", "duration"}.isdisjoint(fit.parameters)
    alike = f"all {few.n_segments} segments have the same"
    for said in (f"turns is left out: {alike} turn count (1)", f"{alike} speech duration (2.5)"):
        assert any(f"{said}, so there is nothing to learn from it." in warning for warning in fit.warnings)
    effort = fidm.fit_effort(few, method=method, population=population)
    assert effort.parameters == fit.parameters[1:]
    assert any(f"{alike} turn count (1)" in warning for warning in effort.warnings)
    for channel in (NegativeBinomial("turns", "n_turns"), Gamma("duration", "duration_s")):
        with pytest.raises(fidm.FitError, match=f"{alike} .*, so there is nothing to learn") as refused:
            fidm.Model(task(), channels=[channel]).fit(few, method=method, population=population)
        assert refused.value.channel == channel.name


def test_people_who_are_alike_are_said_to_be():
    alike = fidm.simulate_cohort(task(), 60, seed=3, people=People(effort_sd=1e-9, log_sensitivity_sd=1e-9))
    fit = fidm.Model(task(), channels=[Gamma("duration", "duration_s")]).fit(alike)
    assert fit.populations["duration"].population.sd < 0.08
    assert fit.prior.sd < 0.2


@pytest.mark.parametrize(
    ("trials", "said"), [(100, "a Poisson channel would do"), (10, "vary less than counts do by chance")]
)
def test_counts_without_extra_spread_are_no_more_or_clearly_less_than_chance(trials, said):
    rng = np.random.default_rng(5)
    turns = pl.Series(rng.binomial(trials, 8 / trials, cohort().n_segments))
    few = with_segments(cohort(), n_turns=turns)
    fit = fidm.Model(task(), channels=[NegativeBinomial("turns", "n_turns")]).fit(few)
    assert [warning for warning in fit.warnings if "its values" in warning and said in warning]


# ---------------------------------------------------------------------- options, tables, files


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fidm.Model(task(), lapse=1.0), "lapse is 1.0"),
        (lambda: fidm.Model(task(), lapse="some"), "lapse is 'some'"),
        (lambda: fidm.Model(task(), channels=[Gamma("a", "b"), Gamma("a", "c")]), "a name of its own"),
        (lambda: fidm.Model(task()).fit(cohort(), method="map"), "method is 'map'"),
        (lambda: fidm.Model(task()).fit(cohort(), population="none"), "population is 'none'"),
        (lambda: fidm.Model(task()).fit(cohort(), method="mle", joint=True), "needs method='eb'"),
        (lambda: fidm.Model(task()).fit(cohort(), level=95), "level is 95"),
        (lambda: fidm.Model(task()).fit(cohort(), workers=0), "workers is 0"),
        (lambda: fidm.Model(task()).fit(cohort()[:0]), "nobody to learn from"),
        (lambda: fidm.Model(task()).fit(cohort(), max_people=1), "max_people is 1"),
    ],
)
def test_options_that_cannot_apply_are_refused(make, sentence):
    with pytest.raises(fidm.FitError, match=sentence):
        make()


def test_learning_from_a_draw_does_not_depend_on_order():
    model = fidm.Model(task(), channels=())
    a = model.fit(cohort(), max_people=30)
    b = model.fit(cohort()[::-1], max_people=30)
    assert (a.n_learned, a.n_people) == (30, 80)
    assert fitted_dict(a) == fitted_dict(b)


def test_the_tables_of_a_profile():
    profile = fitted().profile(cohort())
    assert profile.table.columns == [
        "participant",
        "parameter",
        "estimate",
        "se",
        "low",
        "high",
        "status",
        "n",
    ]
    assert profile.table.height == 80 * 6
    assert profile.wide.height == 80
    assert profile.wide["duration"].to_list() == profile["duration"].tolist()
    frame = profile.to_pandas(wide=True)
    assert list(frame["participant"]) == cohort().ids.to_list()
    with pytest.raises(fidm.DataError, match="no parameter 'speed'"):
        profile["speed"]
    matrix, names = profile.features()
    raw, raw_names = profile.features(scale="raw")
    assert names[0] == "log_action_sensitivity"
    assert raw_names[0] == "action_sensitivity"
    assert matrix[:, 0] == pytest.approx(np.log(raw[:, 0]), rel=1e-12)
    with pytest.raises(fidm.DataError, match="scale is 'square'"):
        profile.features(scale="square")


def test_infinite_estimates_are_missing_features():
    values = fidm.solve(task())
    best = [fidm.walk(task(), values, 1e6, seed=s, label=f"best{s}") for s in range(3)]
    profile = fitted(method="mle").profile(fidm.Cohort.from_traces(best))
    assert np.isinf(profile.action_sensitivity).all()
    assert np.isnan(profile.features()[0][:, 0]).all()
    assert "3 no_maximum" in str(profile.summary())


def made_up(parameters, columns, status, n, **more):
    """A profile by maximum likelihood with these columns of estimates."""
    estimate = np.array(columns, dtype=float).T
    unknown = np.full(len(estimate), np.nan)
    return fidm.Profile(
        participants=pl.Series([f"P{j}" for j in range(len(estimate))]), parameters=parameters,
        estimate=estimate, se=estimate, low=estimate, high=estimate, status=np.array(status, np.int8).T,
        n=np.array(n).T, log_sensitivity=unknown, log_sensitivity_se=unknown, level=0.95,
        **{"method": "mle", "prior_sd": np.full(len(parameters), np.nan), "n_steps": unknown,
           "n_inferred": unknown} | more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "quantiles", "shown"),
    [
        ([*range(1, 10), math.inf], (1.9, 5.5, math.inf), ["5.50", "1.90", "to", "∞"]),
        ([-math.inf] * 6 + [1, 2, 3, 4, 5], (-math.inf, -math.inf, 4), ["-∞", "-∞", "to", "4.00"]),
        (
            [-math.inf] * 2 + [1] * 3 + [2] * 3 + [math.inf] * 2,
            (-math.inf, 1.5, math.inf),
            ["1.50", "-∞", "to", "∞"],
        ),
        ([1] + [math.inf] * 10, (math.inf,) * 3, ["∞", "∞", "to", "∞"]),
    ],
)
def test_medians_count_infinite_estimates_as_what_they_are(values, quantiles, shown):
    n = [len(values) * [30]]
    summary = made_up(("pause_presence",), [values], np.zeros_like(n), n).summary()
    assert summary.table.select("p10", "median", "p90").row(0) == pytest.approx(quantiles)
    assert str(summary).splitlines()[3].split()[1:5] == shown


def test_few_observations_are_counted_whatever_else_is_said():
    codes = [STATUSES.index(name) for name in ("no_maximum", "at_zero", "few_observations", "ok")]
    nothing = [STATUSES.index("no_observation")] * 4
    names = ("action_sensitivity", "duration")
    profile = made_up(names, [[1, 2, 3, 4]] * 2, [codes, nothing], [[1, 19, 19, 20], [0] * 4])
    assert profile.is_few.T.tolist() == [[True, True, True, False], [False] * 4]
    assert profile.summary().table["few_observations"].to_list() == [3, 0]
    assert against(profile, 0, 0) == "Every choice was a best action. It rests on 1 step only."
    assert against(profile, 1, 0).endswith("chooses at random. It rests on 19 steps only.")
    assert against(profile, 2, 0) == "It rests on 19 steps only."
    assert against(profile, 3, 0) is None


def test_few_observations_under_eb_are_said_to_rest_on_the_others():
    codes = [STATUSES.index(name) for name in ("no_maximum", "at_zero", "few_observations", "no_maximum")]
    more = {"method": "eb", "prior_sd": np.array([1.0])}
    profile = made_up(("action_sensitivity",), [[20, 5, 18, 40]], [codes], [[1, 2, 16, 44]], **more)
    profile = replace(profile, log_sensitivity_se=np.array([0.95, 0.9, 0.4, 0.6]))
    mostly = "of this person, the estimate and its interval rest mostly on what the other people are like."
    assert against(profile, 0, 0) == f"With only 1 step {mostly}"  # and not: the data give a lower bound
    assert against(profile, 1, 0).startswith(f"With only 2 steps {mostly}")
    random = np.full(profile.status.shape, STATUSES.index("at_random"), np.int8)
    assert "chooses at random" in against(replace(profile, status=random, random=np.full(4, 0.97)), 1, 0)
    partly = "It rests on 16 steps only, and in part on what the other people are like."
    assert against(profile, 2, 0) == partly
    assert against(profile, 3, 0).startswith(
        "Every choice was a best action, so the data give only a lower bound."
    )


@pytest.mark.parametrize("joint", [False, True])
def test_the_error_of_sensitivity_does_not_rest_on_the_far_tail(joint):
    wide = fidm.simulate_cohort(task(), 60, seed=2, people=People(log_sensitivity_sd=1.5))
    one = fidm.walk(task(), fidm.solve(task()), 1e6, seed=1, label="one", max_steps=1)
    fit = fidm.Model(task(), channels=()).fit(wide, joint=joint)
    profile = fit.profile(fidm.Cohort.concat([wide, fidm.Cohort.from_traces([one])]))
    assert profile.se[:, 0] == pytest.approx(profile.estimate[:, 0] * profile.log_sensitivity_se)
    assert np.isfinite(profile.se[:, 0]).all()


def test_the_summary_reads_well():
    text = str(fitted().profile(cohort()).summary())
    lines = text.splitlines()
    assert lines[0] == "80 participants, empirical Bayes, 95% intervals"
    assert str(made_up(("pause",), [[1]], [[0]], [[5]]).summary()).startswith("1 participant, maximum")
    assert lines[2].split() == [
        "parameter",
        "median",
        "80",
        "%",
        "of",
        "people",
        "typical",
        "error",
        "reliability",
        "ok",
    ]
    assert len({len(line) for line in lines[2:9]}) == 1
    assert "<table>" in fitted().profile(cohort()).summary()._repr_html_()


def test_log_likelihood_has_a_column_per_factor():
    for at in ("estimate", "prior"):
        table = fitted().log_likelihood(cohort(), at=at)
        assert table.columns == [
            "participant",
            "action",
            "duration",
            "characters",
            "turns",
            "pause",
            "pause_presence",
            "total",
        ]
        assert table["total"].to_numpy() == pytest.approx(
            table.drop("participant", "total").to_numpy().sum(axis=1)
        )


def test_maximum_likelihood_is_at_least_as_likely_as_any_other_estimate():
    mle = fitted(method="mle").log_likelihood(cohort())
    eb = fidm.Model(task(), lapse=0.0).fit(cohort()).log_likelihood(cohort())
    assert (mle["action"].to_numpy() >= eb["action"].to_numpy() - 1e-9).all()
    for column in ("duration", "characters", "turns", "pause", "pause_presence"):
        # Empirical Bayes takes the most probable population, which is not quite the likeliest.
        assert (mle[column].to_numpy() >= eb[column].to_numpy() - 0.01).all()


def test_a_saved_fit_is_readable_and_refuses_another_task(tmp_path):
    path = tmp_path / "fit.json"
    fitted().save(path)
    saved = json.loads(path.read_text("utf-8"))
    assert saved["tasks"][0] == {"name": "errands", "sha256": task().fingerprint}
    assert saved["fidm_version"] == fidm.__version__
    assert saved["channels"][0]["coefficients"].keys() == {"intercept", "log_moves"}
    with pytest.raises(fidm.FitError, match="version of the task 'errands'"):
        fidm.load_fit(path, task().with_settings(tau=0.04))
    with pytest.raises(fidm.FitError, match="fitted on errands, but grocery"):
        fidm.load_fit(path, fidm.load_task("grocery"))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda text: "not json", "it is not JSON"),
        (lambda text: "[]", "is not a saved fit"),
        (
            lambda text: text.replace('"schema": 3', '"schema": 9'),
            "has the schema 9; this version of fidm reads 3",
        ),
        (lambda text: text.replace('"prior"', '"before"'), "is damaged: KeyError 'prior'"),
        (lambda text: text.replace('"errands"', '"elsewhere"'), "'elsewhere', which is not built in"),
    ],
)
def test_spoiled_fit_files_are_refused(tmp_path, spoil, sentence):
    path = tmp_path / "fit.json"
    fitted().save(path)
    path.write_text(spoil(path.read_text("utf-8")), "utf-8")
    with pytest.raises(fidm.FitError, match=sentence):
        fidm.load_fit(path)
    with pytest.raises(fidm.FitError, match="cannot be read"):
        fidm.load_fit(tmp_path / "nothing.json")


def test_progress_is_reported():
    heard = []
    fit = fidm.Model(task()).fit(cohort(), on_progress=lambda *said: heard.append(said))
    fit.profile(cohort(), on_progress=lambda *said: heard.append(said))
    assert [doing for doing, _, _ in heard] == [
        "solving", "action sensitivity", "duration", "characters", "turns", "pause", "pause_presence", "done", "profiles", "profiles",
    ]  # fmt: skip
    assert heard[-1] == ("profiles", 80, 80)


# ---------------------------------------------------------------------- few people, people left out


def test_one_person_can_be_fitted_as_in_the_paper_but_not_shrunk(tmp_path):
    one = cohort()[:1]
    fit = fidm.Model(task()).fit(one, method="mle", population="pooled")
    profile = fit.profile(one)
    assert profile["duration"][0] == pytest.approx(0.0, abs=1e-9)  # pooled over one person
    fit.save(tmp_path / "fit.json")
    assert np.array_equal(fidm.load_fit(tmp_path / "fit.json").profile(one).estimate, profile.estimate)
    assert fit.population_table()["quantity"].to_list()[:3] == ["rate", "intercept", "log_moves"]
    with pytest.raises(fidm.FitError, match="no prior of"):
        fit.log_likelihood(one, at="prior")
    for few in (1, 2):
        with pytest.raises(fidm.FitError, match=f"{few} participant"):
            fidm.Model(task()).fit(cohort()[:few])


def test_a_handful_of_people_is_fitted_or_refused_in_words():
    for people in (3, 4, 6):
        profile = fidm.Model(task()).fit(cohort()[:people]).profile(cohort()[:people])
        known = np.isfinite(profile.estimate)
        without = {STATUSES[code] for code in profile.status[~known]}
        assert without <= {"no_observation", "no_maximum", "alike"}
        assert known.any()


def test_a_model_leaves_out_whom_its_channels_cannot_use():
    values = cohort().segments["duration_s"].to_numpy().copy()
    values[5] = 0.0
    spoiled = with_segments(cohort(), duration_s=pl.Series(values))
    model = fidm.Model(task())
    assert model.check(cohort()) is cohort()
    with pytest.raises(fidm.DataError, match="1 row of 1 participant"):
        model.check(spoiled)
    kept = model.check(spoiled, strict=False)
    assert len(kept) == 79
    assert kept.problems.rows() == [
        (
            "segments",
            6,
            "P0000001",
            "duration_s is 0.",
            "It must be above 0; leave it empty where nothing was observed.",
        )
    ]


@pytest.mark.parametrize("channels", [["duration"], [Gamma]])
def test_what_is_no_channel_is_refused(channels):
    with pytest.raises(fidm.FitError, match="is not a channel"):
        fidm.Model(task(), channels=channels)


def test_channels_without_columns_are_named_in_a_warning():
    fields = {name: getattr(cohort(), name) for name in fidm.Cohort.__slots__}
    renamed = fidm.Cohort(**{**fields, "segments": cohort().segments.rename({"pause_s": "pause"})})
    fit = fidm.Model(task()).fit(renamed)
    assert fit.skipped == ("pause", "pause_presence")
    assert fit.warnings == (
        "The segments have no column pause_s, so pause, pause_presence could not be fitted.",
    )
    with pytest.raises(fidm.FitError, match="not from a DataFrame"):
        fidm.Model(task()).fit(cohort().participants)


def test_missing_design_values_are_problems_with_row_and_person():
    trial = np.arange(cohort().n_segments, dtype=float)
    trial[7] = np.nan
    changed = with_segments(cohort(), trial=pl.Series(trial))
    model = fidm.Model(task(), channels=[Gamma("duration", "duration_s", design=("trial",))])
    with pytest.raises(fidm.DataError, match="segments, row 8, P0000001: trial"):
        model.fit(changed)
    assert len(model.check(changed, strict=False)) == 79


def test_options_counted_from_one_are_guessed():
    with pytest.raises(fidm.DataError, match="counted from 1"):
        fidm.fit_choices([[1, 0]] * 4, [1, 2, 1, 2])
    with pytest.raises(fidm.DataError, match="whole numbers"):
        fidm.fit_choices([[1, 0]], ["A"])
    with pytest.raises(fidm.DataError, match="have no participant"):
        fidm.fit_choices([[1, 0]] * 2, [0, 1], [1.0, np.nan])


def test_standard_errors_hold_where_people_differ_in_a_slope():
    """The spread of an estimate over repeated studies, against the standard error each study reports."""
    found, said = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        people, each = 60, 20
        x = np.tile(np.arange(each) % 2, people).astype(float)
        own, slope = rng.normal(0, 0.4, people), rng.normal(0.5, 0.5, people)
        y = np.exp(np.repeat(own, each) + x * np.repeat(slope, each) + rng.normal(0, 0.5, people * each))
        base = fidm.Cohort.from_traces(
            fidm.Trace("t", np.array([0], np.int32), np.zeros(0, np.int32), finished=False, label=f"P{j}")
            for j in range(people)
        )
        segments = pl.DataFrame(
            {
                "participant": np.repeat([f"P{j}" for j in range(people)], each),
                "segment": np.tile(np.arange(each), people),
                "y": y,
                "x": x,
            }
        )
        from fidm.fit.population import random_intercepts
        from fidm.model.effort import observed

        channel = LogNormal("time", "y", design=("x",))
        (data,) = observed([channel], base.with_segments(segments), {})
        learned = random_intercepts(channel, data, ("intercept", "x"), 1)
        found.append(learned.population.coefficients[1])
        said.append(learned.se["x"])
    assert np.std(found) == pytest.approx(np.mean(said), rel=0.3)


def test_as_many_people_as_numbers_have_no_standard_errors_but_what_is_plausible_has():
    five = fidm.simulate_cohort(task(), 5, seed=4)
    model = fidm.Model(task(), channels=[Gamma("duration", "duration_s", design=("log_moves", "n_turns"))])
    alone = model.fit(five, method="mle")
    assert np.isnan(list(alone.populations["duration"].se.values())).all()
    shared = model.fit(five)
    assert min(shared.populations["duration"].se.values()) > 0.03


def test_people_without_observations_do_not_make_standard_errors_smaller():
    people = fidm.simulate_cohort(task(), 12, seed=4)
    few = pl.when(pl.col("participant").is_in(people.ids[:6].to_list())).then("duration_s")
    some = people.with_segments(people.segment_table().with_columns(duration_s=few))
    model = fidm.Model(task(), channels=[Gamma("duration", "duration_s")])
    for method in ("mle", "eb"):
        found, alone = (model.fit(one, method=method).populations["duration"] for one in (some, some[:6]))
        assert list(found.se.values()) == pytest.approx(list(alone.se.values()), rel=1e-4)


def test_maximum_likelihood_of_few_people_is_said_to_be_too_sure():
    few = fidm.simulate_cohort(task(), 12, seed=4)
    assert any("they are too narrow" in said for said in fidm.Model(task()).fit(few, method="mle").warnings)
    assert not any("too narrow" in said for said in fidm.Model(task()).fit(few).warnings)
    assert not any("too narrow" in said for said in fitted().warnings)


def test_fewer_than_ten_people_have_no_tenths_nor_a_median():
    few, many = (fitted().profile(cohort()[np.arange(n)]).summary().table for n in (9, 10))
    assert np.isnan(few.select("median", "p10", "p90", "reliability").to_numpy()).all()
    assert np.isfinite(many.select("median", "p10").to_numpy()).all()


# ---------------------------------------------------------------------- far from everybody, and other extremes


def bandit():
    """Two options a value of 1 apart, for ever."""
    return fidm.TaskModel.from_arrays(
        [[0, 0], [-1, -1]], [[1.0, 0.0], [0, 0]], gamma=0.5, tau=0.1, name="bandit"
    )


def players(log_eta, n, seed):
    """People who choose the better option with probability 1 / (1 + e^−η), n times each."""
    rng = np.random.default_rng(seed)
    traces = []
    for j, value in enumerate(np.atleast_1d(log_eta)):
        worse = rng.random(n) > 1 / (1 + np.exp(-np.exp(value)))
        state = np.zeros(n + 1, np.int32)
        traces.append(
            fidm.Trace("bandit", state, worse.astype(np.int32), finished=False, label=f"P{seed}-{j}")
        )
    return fidm.Cohort.from_traces(traces)


@pytest.mark.parametrize(("log_eta", "n"), [(-2.0, 5000), (0.0, 5000), (-2.0, 1000), (3.0, 400)])
def test_somebody_unlike_the_training_part_is_integrated_where_they_are(log_eta, n):
    alike = players(np.random.default_rng(0).normal(1.0, 0.05, 60), 2000, 1)
    fit = fidm.Model(bandit(), channels=(), lapse=0.0).fit(alike)
    assert fit.prior.sd < 0.12
    fit = replace(fit, prior=replace(fit.prior, plausible=None))
    other = players(log_eta, n, 2)
    better = int((other.action == 0).sum())

    def log_likelihood(u):
        eta = math.exp(u)
        return better * eta - n * np.logaddexp(0.0, eta)

    shift = max(
        log_likelihood(u) - 0.5 * ((u - fit.prior.mean) / fit.prior.sd) ** 2 for u in np.linspace(-4, 5, 9001)
    )
    grid = np.linspace(-4, 5, 90_001)
    weight = np.exp(
        [log_likelihood(u) - 0.5 * ((u - fit.prior.mean) / fit.prior.sd) ** 2 - shift for u in grid]
    )
    mean = float((weight * grid).sum() / weight.sum())
    sd = math.sqrt(float((weight * (grid - mean) ** 2).sum() / weight.sum()))
    profile = fit.profile(other)
    up_to = np.cumsum(weight) - 0.5 * weight
    median = float(np.interp(0.5, up_to / weight.sum(), grid))
    assert profile.log_sensitivity[0] == pytest.approx(median, abs=1e-4 * sd)
    assert profile.log_sensitivity_se[0] == pytest.approx(sd, rel=1e-3)
    assert profile.low[0, 0] < profile.estimate[0, 0] < profile.high[0, 0]


def test_a_joint_prior_resolves_people_with_very_many_choices():
    rng = np.random.default_rng(3)
    truth = rng.normal(1.0, 0.4, 40)
    base = players(truth, 20_000, 4)
    segments = pl.DataFrame(
        {
            "participant": np.repeat(base.ids.to_numpy(), 5),
            "segment": np.tile(np.arange(5), 40),
            "y": rng.lognormal(0, 1, 200),
        }
    )
    many = base.with_segments(segments)
    model = fidm.Model(bandit(), channels=[LogNormal("time", "y", design=())])
    joint, single = model.fit(many, joint=True).profile(many), model.fit(many).profile(many)
    assert joint.log_sensitivity_se == pytest.approx(single.log_sensitivity_se, rel=0.05)
    assert joint.log_sensitivity == pytest.approx(single.log_sensitivity, abs=1e-2)
    assert ((joint.low < joint.estimate) & (joint.estimate < joint.high))[:, 0].all()


def test_a_terrible_option_does_not_push_the_prior_away():
    rng = np.random.default_rng(5)
    values = np.column_stack([rng.normal(size=(2400, 2)), np.full(2400, -1e6)])
    chosen = (3 * values + rng.gumbel(size=values.shape)).argmax(axis=1)
    person = np.repeat(np.arange(40), 60)
    shrunk = fidm.fit_choices(values, chosen, person, method="eb").table["action_sensitivity"].median()
    assert shrunk == pytest.approx(
        fidm.fit_choices(values, chosen, person).table["action_sensitivity"].median(), rel=0.1
    )


def test_choices_do_not_depend_on_the_unit_of_value():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(300, 3))
    chosen = (2 * values + rng.gumbel(size=values.shape)).argmax(axis=1)
    person = np.repeat(np.arange(6), 50)
    plain = fidm.fit_choices(values, chosen, person).table
    for unit in (1e-7, 1e5):
        scaled = fidm.fit_choices(values * unit, chosen, person).table
        assert scaled["action_sensitivity"].to_numpy() * unit == pytest.approx(
            plain["action_sensitivity"].to_numpy(), rel=1e-7
        )
        assert scaled["high"].to_numpy() * unit == pytest.approx(plain["high"].to_numpy(), rel=1e-5)
        assert scaled["status"].to_list() == plain["status"].to_list()


def test_statuses_with_lapses_speak_of_the_likelihood_for_both_methods():
    assert fidm.fit_choices([[1.0, 0.0]] * 4, [0, 1, 0, 0], lapse=0.5).table["status"].to_list() == [
        "no_maximum"
    ]
    values, chosen = two_ways([True] * 55 + [False] * 5)
    many = np.tile(values, (6, 1)), np.tile(chosen, 6), np.repeat(np.arange(6), 60)
    for method in ("mle", "eb"):
        assert set(fidm.fit_choices(*many, lapse=0.3, method=method).table["status"].to_list()) == {
            "no_maximum"
        }


def test_one_sided_bounds_of_low_levels_do_not_mirror_high_ones():
    values, chosen = two_ways([True] * 30)
    bounds = [fidm.fit_choices(values, chosen, level=level).table["low"][0] for level in (0.3, 0.7, 0.95)]
    assert bounds[0] > bounds[1] > bounds[2]


def test_an_edge_far_away_is_found():
    channel = NegativeBinomial("turns", "n_turns", design=())
    from fidm.fit import offsets as of
    from fidm.model.effort import Observed

    own = Observed(np.zeros(1), np.ones((1, 1)), np.array([0, 1]), np.array([0]))
    found = of.maximum(channel, own, of.Population(np.array([0.0]), 0.02), level=0.95)
    assert 0.02 * math.log1p(math.exp(found.high[0]) / 0.02) == pytest.approx(-math.log(0.05), rel=1e-6)


def test_perfect_separation_is_refused_in_words():
    moves = cohort().segments["n_moves"].to_numpy()
    split = with_segments(cohort(), pause_s=pl.Series(np.where(moves > 2, 1.0, 0.0)))
    with pytest.raises(
        fidm.FitError, match=r"pause_presence (cannot|could not) be fitted|population of pause_presence"
    ):
        fidm.Model(task(), channels=[Bernoulli("pause_presence", "pause_s")]).fit(split)


def test_a_fit_file_that_makes_no_sense_is_refused(tmp_path):
    fitted().save(tmp_path / "fit.json")
    good = (tmp_path / "fit.json").read_text("utf-8")
    for wrong in (
        good.replace('"method": "eb"', '"method": "x"'),
        good.replace('"level": 0.95', '"level": 5'),
        good.replace('"log_moves": ', '"other": ', 1),
    ):
        assert wrong != good
        (tmp_path / "fit.json").write_text(wrong, "utf-8")
        with pytest.raises(fidm.FitError):
            fidm.load_fit(tmp_path / "fit.json")


@pytest.mark.parametrize("person", [["a", 1, "a"], [None, "b", "b"], [np.nan, "b", "b"]])
def test_people_of_any_name(person):
    values = [[1, 0]] * 3
    if None in person or any(name != name for name in person):
        with pytest.raises(fidm.DataError, match="have no participant"):
            fidm.fit_choices(values, [0, 1, 0], person)
    else:
        assert fidm.fit_choices(values, [0, 1, 0], person).table["participant"].to_list() == ["a", "1"]


@pytest.mark.parametrize("channel", fidm.channels.paper_channels()[:3], ids=lambda channel: channel.name)
def test_predictors_far_away_are_improbable_and_no_trouble(channel):
    """Searches look at absurd places: no warning there, and nothing that is no number."""
    y, far = np.array([1.0, 3.0]), np.array([2e6, 2e6])
    for xi in (far, -far):
        assert np.isfinite(channel.varying(y, xi, 2.0)).all()
        assert np.isfinite(channel.slopes(y, xi, 2.0)[0]).all()
        assert (channel.varying(y, xi, 2.0) < channel.varying(y, np.zeros(2), 2.0)).all()
