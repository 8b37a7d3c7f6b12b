"""New choices and effort on the structure of a study."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.channels import ZeroInflatedNegativeBinomial
from fidm.cohort import UNKNOWN_STATE
from fidm.errors import DataError
from fidm.evidence.evidence import find_surprisal
from fidm.fit.factorized import Model
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import PAPER_TRUTH, WideTruth
from fidm.simulate.structure import (
    counted_steps,
    noisier,
    people_like,
    redraw_choices,
    redraw_effort,
    redraw_walks,
    replicate,
)  # fmt: skip
from fidm.tasks.stack import TaskSet, follow

CHANNELS = paper_channels()[:4]


@pytest.fixture(scope="module")
def tasks():
    return TaskSet.of([fidm.load_task("grocery"), fidm.load_task("errands")])


@pytest.fixture(scope="module")
def cohort(tasks):
    return fidm.simulate_cohort(tasks.tasks, 12, seed=1, max_steps=50)


def per_person(cohort):
    return np.diff(cohort.step_offsets[cohort.episode_offsets])


def test_walks_are_legal_and_as_long_as_before(tasks, cohort):
    etas = np.full(12, 60.0)
    walked = redraw_walks(tasks, cohort, etas, seed=3)
    Model(tasks.tasks).check(walked)
    assert (per_person(walked) == per_person(cohort)).all()
    assert counted_steps(tasks, walked).all()
    assert walked.n_episodes > cohort.n_episodes  # purposeful people finish early and begin again
    assert walked.n_segments == cohort.n_segments
    assert walked.participants["true_action_sensitivity"].to_list() == etas.tolist()
    first = np.flatnonzero(np.diff(walked.step_offsets) > 0)
    starts = {task.name: task.start for task in tasks.tasks}
    begun = walked.state[walked.step_offsets[first]]
    assert begun.tolist() == [starts[name] for name in walked.episodes["task"].gather(first)]


def test_walks_depend_on_the_seed_and_on_the_person_alone(tasks, cohort):
    etas = np.linspace(5, 50, 12)
    walked = redraw_walks(tasks, cohort, etas, seed=(1, 2))
    again = redraw_walks(tasks, cohort, etas, seed=(1, 2))
    fewer = redraw_walks(tasks, cohort[:5], etas[:5], seed=(1, 2))
    other = redraw_walks(tasks, cohort, etas, seed=(1, 3))
    assert (walked.action == again.action).all()
    assert (walked.action[: fewer.n_steps] == fewer.action).all()
    assert not np.array_equal(walked.action, other.action)


def test_walks_go_on_from_where_an_episode_began(tasks, cohort):
    middle = cohort[:1]
    steps = slice(4, int(middle.step_offsets[1]))
    late = fidm.Cohort(
        participants=middle.participants,
        episodes=middle.episodes[:1],
        episode_offsets=np.array([0, 1]),
        step_offsets=np.array([0, steps.stop - 4]),
        state=middle.state[steps],
        action=middle.action[steps],
        end_state=middle.end_state[:1],
        segments=middle.segments[:0],
        segment_offsets=np.array([0, 0]),
    )
    walked = redraw_walks(tasks, late, [30.0], seed=1)
    assert set(walked.state[walked.step_offsets[:-1]].tolist()) == {int(late.state[0])}


def test_steps_that_do_not_count_are_not_drawn_again(tasks, cohort):
    weight = np.ones(cohort.n_steps)
    weight[::2] = 0.0
    half = fidm.Cohort(**{n: getattr(cohort, n) for n in fidm.Cohort.__slots__} | {"weight": weight})
    walked = redraw_walks(tasks, half, np.full(12, 20.0), seed=1)
    assert walked.n_steps == int(weight.sum())
    assert redraw_choices(tasks, half, np.full(12, 20.0), seed=1).n_steps == int(weight.sum())


def test_choices_keep_every_situation(tasks, cohort):
    drawn = redraw_choices(tasks, cohort, np.full(12, 1e6), seed=1)
    Model(tasks.tasks).check(drawn)
    assert (drawn.state == cohort.state).all()
    assert (drawn.end_state == UNKNOWN_STATE).all()
    assert drawn.n_episodes == drawn.n_steps
    assert (
        np.diff(drawn.segment_offsets[drawn.episode_offsets])
        == np.diff(cohort.segment_offsets[cohort.episode_offsets])
    ).all()
    profile = Model(tasks.tasks, channels=()).fit(drawn, method="mle").profile(drawn)
    assert np.isinf(profile.action_sensitivity).all()  # at such an η every choice is a best one


def test_choices_follow_the_softmax(tasks):
    task = fidm.TaskModel.from_arrays(
        [[1, 2], [-1, -1], [-1, -1]], [[1.0, 0.0], [0, 0], [0, 0]], gamma=0.9, tau=0.1
    )
    traces = [fidm.walk(task, fidm.solve(task), 1.0, seed=i, label="P1") for i in range(4000)]
    one = fidm.Cohort.from_traces(traces)
    drawn = redraw_choices(TaskSet.of(task), one, [1.0], seed=1)
    assert abs((drawn.action == 0).mean() - 1 / (1 + np.exp(-1))) < 0.03


def test_somebody_without_a_counted_step_keeps_their_segments(tasks, cohort):
    nothing = fidm.Cohort(
        **{n: getattr(cohort, n) for n in fidm.Cohort.__slots__} | {"weight": np.zeros(cohort.n_steps)}
    )
    for redraw in (redraw_choices, redraw_walks):
        drawn = redraw(tasks, nothing, np.full(12, 9.0), seed=1)
        assert (drawn.n_steps, drawn.n_segments) == (0, cohort.n_segments)


def test_effort_is_drawn_anew_given_the_moves(cohort):
    theta = np.zeros((12, 4))
    theta[0] = 3.0
    drawn = redraw_effort(cohort, CHANNELS, PAPER_TRUTH, theta, seed=1)
    assert (drawn.segments["n_moves"] == cohort.segments["n_moves"]).all()
    assert drawn.segments["pause_s"].min() == 0  # whether there is a pause is drawn as well
    n = int(cohort.segment_offsets[cohort.episode_offsets[1]])
    for name in ("duration_s", "n_characters", "n_turns"):
        assert drawn.segments[name][:n].mean() > 4 * drawn.segments[name][n:].mean()
    assert drawn.participants["true_pause"][0] == 3.0
    same = redraw_effort(cohort, CHANNELS, PAPER_TRUTH, theta, seed=1)
    assert same.segments.equals(drawn.segments)


def test_missing_effort_is_removed_and_nothing_else_changes(cohort):
    theta = np.zeros((12, 4))
    full = redraw_effort(cohort, CHANNELS, PAPER_TRUTH, theta, seed=1).segments
    less = redraw_effort(cohort, CHANNELS, PAPER_TRUTH, theta, seed=1, missing=0.3).segments
    for name in ("duration_s", "n_characters", "n_turns", "pause_s"):
        gone = less[name].is_null()
        assert 0.2 < gone.mean() < 0.4
        assert (less[name].drop_nulls() == full[name].filter(~gone)).all()
    assert not less["duration_s"].is_null().equals(less["n_turns"].is_null())  # each on its own


def test_what_was_not_observed_stays_so(cohort):
    holes = cohort.segments.with_columns(
        duration_s=pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise(pl.col("duration_s"))
    )
    fields = {n: getattr(cohort, n) for n in fidm.Cohort.__slots__} | {"segments": holes}
    drawn = redraw_effort(fidm.Cohort(**fields), CHANNELS, PAPER_TRUTH, np.zeros((12, 4)), seed=1)
    assert drawn.segments["duration_s"].is_null().equals(holes["duration_s"].is_null())


def test_noise_multiplies_the_variance():
    rng = np.random.default_rng(1)
    for channel, shape in zip(CHANNELS, (1.9, 2.2, 3.0, 0.98), strict=True):
        xi = np.full(200_000, 3.0)
        calm = channel.sample(xi, shape, rng)
        loud = channel.sample(xi, noisier(channel, shape, 2.0), rng)
        counting = np.exp(3.0) if channel.kind == "negative_binomial" else 0.0
        assert abs((loud.var() - counting) / (calm.var() - counting) - 2) < 0.1, channel.name
    assert noisier(ZeroInflatedNegativeBinomial("pauses", "n_pauses"), 3.0, 2.0) == 1.5


def test_people_like_the_papers():
    found = people_like(fidm.load_task("grocery"), 100, seed=1)
    assert 55 <= found.n_steps / 100 <= 60
    assert 16 <= found.n_segments / 100 <= 17.6


def test_numbers_that_cannot_be(tasks, cohort):
    with pytest.raises(DataError, match="12 finite numbers"):
        redraw_walks(tasks, cohort, [1.0], seed=1)
    with pytest.raises(DataError, match="theta has the shape"):
        redraw_effort(cohort, CHANNELS, PAPER_TRUTH, np.zeros((12, 3)), seed=1)
    with pytest.raises(DataError, match="a share below 1"):
        redraw_effort(cohort, CHANNELS, PAPER_TRUTH, np.zeros((12, 4)), seed=1, missing=1.0)
    with pytest.raises(DataError, match="truth says nothing"):
        redraw_effort(cohort, CHANNELS, {}, np.zeros((12, 4)), seed=1)


# ---------------------------------------------------------------------- posterior predictive replicates


@functools.cache
def replicated(n=60):
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 20, seed=4, max_steps=40)
    fit = fidm.Model(task).fit(people)
    return people, fit, list(replicate(fit, people, n, seed=3))


def test_replicates_keep_people_situations_and_moves():
    people, fit, found = replicated()
    one = found[0]
    assert one.ids.equals(people.ids)
    assert one.segments["n_moves"].equals(people.segments["n_moves"])
    assert one.segments["pause_s"].is_null().equals(people.segments["pause_s"].is_null())
    kept = counted_steps(fit.tasks, people)
    assert np.array_equal(one.state, people.state[kept])
    fit.profile(one)  # they are a cohort like any other


def test_the_study_looks_like_one_of_its_replicates():
    """Of data that the model has made, means and spreads lie among those of replicates."""
    people, fit, found = replicated()

    def looked_at(some):
        text = some.segments
        best = find_surprisal(fit, some, follow(fit.tasks, some), np.ones(len(some))).q_gap
        return [
            text["duration_s"].mean(),
            text["duration_s"].std(),
            text["n_characters"].mean(),
            text["n_turns"].std(),
            (text["pause_s"] > 0).mean(),
            (best < 1e-8).mean(),
        ]

    own, others = looked_at(people), np.array([looked_at(one) for one in found])
    place = (others < own).mean(axis=0)
    assert (place > 0).all(), place
    assert (place < 1).all(), place


def test_replicates_are_the_same_with_the_same_seed():
    people, fit, found = replicated()
    again = next(iter(replicate(fit, people, 60, seed=3)))
    assert again.segments.equals(found[0].segments)
    assert np.array_equal(again.action, found[0].action)
    other = next(iter(replicate(fit, people, 60, seed=4)))
    assert not np.array_equal(other.action, found[0].action)


def test_what_cannot_be_replicated_is_refused():
    people, _, _ = replicated()
    with pytest.raises(fidm.FitError, match="no posterior"):
        next(
            iter(
                replicate(fidm.Model(fidm.load_task("errands")).fit(people, method="mle"), people, 2, seed=1)
            )
        )
    wide = fidm.channels.Gamma("duration", "duration_s", design=("log_moves", "n_turns"))
    other = fidm.Model(fidm.load_task("errands"), channels=[wide]).fit(people)
    redrawn = next(iter(replicate(other, people, 2, seed=1)))
    assert redrawn.segments["n_turns"].equals(people.segments["n_turns"])
    assert not redrawn.segments["duration_s"].equals(people.segments["duration_s"])
    turns = fidm.channels.NegativeBinomial("turns", "n_turns")
    both = fidm.Model(fidm.load_task("errands"), channels=[wide, turns]).fit(people)
    with pytest.raises(fidm.DataError, match="duration: it is conditioned on n_turns, drawn anew"):
        next(iter(replicate(both, people, 2, seed=1)))


def test_effort_is_drawn_from_the_whole_design():
    rng = np.random.default_rng(2)
    people = fidm.simulate_cohort(fidm.load_task("errands"), 40, seed=1)
    m = people.n_segments
    table = people.segments.with_columns(
        role=pl.Series(np.array(["asks", "leads", "tells"])[rng.integers(0, 3, m)]), load=rng.normal(size=m)
    )
    people = dataclasses.replace(people, segments=table)
    channel = fidm.channels.Gamma("duration", "duration_s", design=("load", "role"))
    truth = {"duration": WideTruth(0.4, 0.0, 200.0, (0.3, -0.5, 0.8))}
    drawn = redraw_effort(people, [channel], truth, np.zeros((40, 1)), seed=1)
    expected = (
        0.4
        + 0.3 * table["load"]
        + np.select([table["role"] == "leads", table["role"] == "tells"], [-0.5, 0.8], 0.0)
    )
    off = np.log(drawn.segments["duration_s"].to_numpy()) - expected.to_numpy()
    assert abs(off.mean()) < 0.01
    assert off.std() < 0.08
    fewer = {"duration": WideTruth(0.4, 0.0, 200.0, (0.3,))}
    with pytest.raises(fidm.DataError, match="1 slopes of duration, whose design has 3"):
        redraw_effort(people, [channel], fewer, np.zeros((40, 1)), seed=1)
