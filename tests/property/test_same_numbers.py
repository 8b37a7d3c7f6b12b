"""What must not change a number: order, batches, threads, constants, files."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import fidm
from fidm.fit import effort_alone as fitting
from fidm.fit import offsets
from fidm.fit.profile import Profile
from fidm.model import action
from fidm.simulate.cohort import People

ARRAYS = ("estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se")
WAYS = [
    {},
    {"method": "mle", "population": "pooled"},
    {"method": "mle"},
    {"joint": True},
    {"population": "pooled"},
]
WAY_IDS = ["eb", "paper", "mle", "joint", "pooled"]


@functools.cache
def setting():
    """People who differ enough in effort that a joint prior is learned in some fifty rounds, not two thousand."""
    task = fidm.load_task("errands")
    people = People(effort_sd=0.7)
    cohort = fidm.simulate_cohort(task, 60, seed=4, max_steps=40, wrong_moves=0.02, people=people)
    holes = np.random.default_rng(0)
    segments = cohort.segments.with_columns(
        pl.Series(
            c, np.where(holes.random(cohort.n_segments) < 0.2, np.nan, cohort.segments[c].to_numpy())
        ).fill_nan(None)
        for c in ("duration_s", "n_characters", "pause_s")
    )
    return task, factorized_cohort(cohort, segments=segments)


def factorized_cohort(cohort, **changes):
    fields = {name: getattr(cohort, name) for name in fidm.Cohort.__slots__}
    return fidm.Cohort(**{**fields, **changes})


def same(a: Profile, b: Profile, *, rows=None):
    for name in ARRAYS:
        left, right = getattr(a, name), getattr(b, name)
        right = right if rows is None else right[rows]
        assert np.array_equal(left, right, equal_nan=name != "n" and left.dtype.kind == "f"), name


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_shuffling_participants_changes_no_bit(way):
    task, cohort = setting()
    order = np.random.default_rng(1).permutation(len(cohort))
    model = fidm.Model(task, lapse="estimate" if not way else 0.0)
    straight, shuffled = model.fit(cohort, **way), model.fit(cohort[order], **way)
    assert_frame_equal(straight.population_table(), shuffled.population_table(), check_exact=True)
    same(shuffled.profile(cohort[order]), straight.profile(cohort), rows=order)


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_threads_and_chunks_change_no_bit(way, monkeypatch):
    task, cohort = setting()
    fit = fidm.Model(task, lapse=0.03).fit(cohort, workers=1, **way)
    expected = fit.profile(cohort, workers=1)
    monkeypatch.setattr(offsets, "CHUNK", 13)
    monkeypatch.setattr(action, "CHUNK_STEPS", 300)
    monkeypatch.setattr(action, "TABLE_BYTES", 50_000)
    monkeypatch.setattr(fitting, "BATCH", 23)
    monkeypatch.setattr(fitting, "FEWEST_PER_THREAD", 5)
    again = fidm.Model(task, lapse=0.03).fit(cohort, workers=3, **way)
    assert_frame_equal(fit.population_table(), again.population_table(), check_exact=True)
    same(again.profile(cohort, workers=3), expected)


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_splitting_a_cohort_changes_no_bit(way):
    task, cohort = setting()
    fit = fidm.Model(task).fit(cohort, **way)
    whole = fit.profile(cohort)
    for cut in (1, 17, 59):
        same(Profile.concat([fit.profile(cohort[:cut]), fit.profile(cohort[cut:])]), whole)


def test_a_constant_per_state_changes_nothing():
    task, cohort = setting()
    values = fidm.solve(task)
    shift = np.random.default_rng(2).normal(size=(task.n_states, 1)) * 3
    moved = replace(values, q=values.q + shift)
    for way in WAYS[:3]:
        a = fidm.Model(task, values=values).fit(cohort, **way).profile(cohort)
        b = fidm.Model(task, believes=moved).fit(cohort, **way).profile(cohort)
        for name in ("estimate", "low", "high"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-8, abs=1e-8, nan_ok=True)


def test_scaling_values_scales_the_sensitivity():
    task, cohort = setting()
    values = fidm.solve(task)
    a = fidm.Model(task, values=values).fit(cohort, method="mle").profile(cohort)
    b = fidm.Model(task, believes=replace(values, q=values.q * 10)).fit(cohort, method="mle").profile(cohort)
    finite = np.isfinite(a.action_sensitivity)
    assert b.action_sensitivity[finite] * 10 == pytest.approx(a.action_sensitivity[finite], rel=1e-9)


def test_a_study_folder_and_back_changes_no_bit():
    task, cohort = setting()
    fit = fidm.Model(task).fit(cohort)
    with tempfile.TemporaryDirectory() as place:
        fidm.write_cohort(cohort, Path(place) / "study", tasks=["errands"])
        back = fidm.read_cohort(Path(place) / "study")
    for name in (
        "state",
        "action",
        "end_state",
        "segment",
        "step_offsets",
        "segment_offsets",
        "episode_offsets",
    ):
        assert np.array_equal(getattr(back, name), getattr(cohort, name)), name
    for name in ("participants", "episodes", "segments"):
        assert_frame_equal(getattr(back, name), getattr(cohort, name))
    same(fit.profile(back), fit.profile(cohort))
    assert_frame_equal(
        fidm.Model(task).fit(back).population_table(), fit.population_table(), check_exact=True
    )


def test_a_saved_fit_profiles_the_same_to_the_last_bit(tmp_path):
    task, cohort = setting()
    for i, way in enumerate(WAYS):
        fit = fidm.Model(task, lapse=0.02).fit(cohort, **way)
        fit.save(tmp_path / f"{i}.json")
        same(fidm.load_fit(tmp_path / f"{i}.json").profile(cohort), fit.profile(cohort))


def test_episodes_cut_apart_say_the_same():
    """η and θ are the person's: one long episode or the same steps as two gives the same estimates."""
    task, cohort = setting()
    steps = np.diff(cohort.step_offsets)
    segments = np.diff(cohort.segment_offsets)
    half_steps = np.stack([steps // 2, steps - steps // 2], axis=1).reshape(-1)
    half_segments = np.stack([segments // 3, segments - segments // 3], axis=1).reshape(-1)
    middle = cohort.step_offsets[:-1] + steps // 2
    ends = np.stack([cohort.state[middle], cohort.end_state], axis=1).reshape(-1)
    cut = factorized_cohort(
        cohort,
        episodes=pl.DataFrame({"episode": ["1", "2"] * len(cohort), "task": ["errands"] * 2 * len(cohort)}),
        episode_offsets=2 * np.arange(len(cohort) + 1),
        step_offsets=np.concatenate([[0], np.cumsum(half_steps)]),
        segment_offsets=np.concatenate([[0], np.cumsum(half_segments)]),
        end_state=ends,
        segment=None,
    )
    fit = fidm.Model(task).fit(cohort)
    same(fit.profile(cut), fit.profile(cohort))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_choices_of_any_shape_give_a_maximum_or_say_why_not(data):
    """No estimate is beaten by any other η; every edge has its status."""
    n = data.draw(st.integers(1, 25))
    width = data.draw(st.integers(1, 5))
    values = np.array(
        data.draw(
            st.lists(
                st.lists(st.floats(-3, 3, width=32), min_size=width, max_size=width), min_size=n, max_size=n
            )
        )
    )
    offered = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=n, max_size=n))
    )
    chosen = np.array(data.draw(st.lists(st.integers(0, width - 1), min_size=n, max_size=n)))
    offered[np.arange(n), chosen] = True
    values[~offered] = np.nan
    lapse = data.draw(st.sampled_from([0.0, 0.0, 0.1]))
    row = fidm.fit_choices(values, chosen, lapse=lapse).table.row(0, named=True)

    def value(eta):
        total = 0.0
        for q, c in zip(values, chosen, strict=True):
            w = eta * (q - np.nanmax(q))
            p = np.exp(w[c]) / np.nansum(np.exp(w))
            with np.errstate(divide="ignore"):
                total += np.log((1 - lapse) * p + lapse / np.isfinite(q).sum())
        return total

    if row["status"] == "no_observation":
        assert row["action_sensitivity"] is None
        assert (np.nanmax(values, axis=1) - np.nanmin(values, axis=1) < 1e-8).all()
        return
    eta = row["action_sensitivity"]
    assert eta >= 0
    assert row["low"] <= eta <= row["high"]
    best = value(min(eta, 1e12))
    rivals = [value(other) for other in (0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 1e3, 1e5)]
    assert best >= max(rivals) - 1e-6
