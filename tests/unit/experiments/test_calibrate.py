"""Calibration finds posteriors that are right to be right, and others not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fidm
import fidm.study
from fidm.errors import DataError
from fidm.experiments.calibrate import band, strays

TASK = fidm.load_task("errands")
DRAWS = 99


def p_value(ranks):
    distance, by_chance = strays(ranks, DRAWS)
    return (by_chance <= distance).mean()


def ranks_of(factor, shift, n, seed):
    """Ranks of a standard normal truth among draws of a normal that is too wide, too narrow or elsewhere."""
    rng = np.random.default_rng(seed)
    truth, drawn = rng.normal(size=n), shift + factor * rng.normal(size=(n, DRAWS))
    return (drawn < truth[:, None]).sum(axis=1)


def test_uniform_ranks_stray_as_often_as_they_should():
    """One in twenty samples has a p-value below 0.05; of 400, 20 with an sd of 4.4."""
    by_chance = strays(ranks_of(1.0, 0.0, 100, 0), DRAWS)[1]
    found = [
        (by_chance <= strays(ranks_of(1.0, 0.0, 100, seed), DRAWS, simulated=0)[0]).mean() < 0.05
        for seed in range(400)
    ]
    assert 7 <= sum(found) <= 33


@pytest.mark.parametrize(("factor", "shift"), [(0.6, 0.0), (1.7, 0.0), (1.0, 0.5), (1.0, -0.5)])
def test_wrong_posteriors_are_found(factor, shift):
    assert p_value(ranks_of(factor, shift, 200, 1)) < 0.001


def test_the_band_holds_uniform_ranks():
    low, high = band(100, DRAWS)
    held = []
    for seed in range(400):
        ranks = ranks_of(1.0, 0.0, 100, 1000 + seed)
        share = np.searchsorted(np.sort(ranks), np.arange(DRAWS), side="right") / 100
        held.append(((low <= share) & (share <= high)).all())
    assert 0.92 <= np.mean(held) <= 0.98


def test_a_small_study_is_calibrated():
    """Eight people of 15 actions: 60 studies; the shares must hold within three of their standard errors.

    60 ranks among 99 draws tell as much as among 199.
    """
    like = fidm.simulate_cohort(TASK, 8, seed=2, max_steps=15)
    duration = [channel for channel in fidm.channels.paper_channels() if channel.name == "duration"]
    found = fidm.study.calibrate(
        TASK, like=like, channels=duration, studies=60, draws=99, effort_sd=0.3, log_sensitivity_sd=0.4
    )
    print(found)
    assert found.parameters["parameter"].to_list() == ["log_action_sensitivity", "duration"]
    assert (found.parameters["p"] > 0.001).all()
    for row in found.parameters.iter_rows(named=True):
        assert row["held_95"] >= 0.93 - 3 * row["held_95_se"]
        assert row["held_80"] >= 0.78 - 3 * row["held_80_se"]
    assert found.ranks.filter("chosen").group_by("parameter").len()["len"].max() <= 60
    assert found.ranks["rank"].is_between(0, 99).all()


def test_the_same_seed_gives_the_same_ranks_with_any_number_of_threads():
    one, other = (
        fidm.study.calibrate(TASK, n=6, studies=20, draws=19, channels=[], workers=workers)
        for workers in (1, 2)
    )
    assert one.ranks.equals(other.ranks)
    assert one.tables[""].equals(other.tables[""])
    other = fidm.study.calibrate(TASK, n=6, studies=20, draws=19, channels=[], seed=2)
    assert not one.ranks.equals(other.ranks)
    chosen = one.ranks.filter(pl.col("chosen")).group_by("study").len()
    assert (chosen["len"] == 1).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"studies": 5}, "studies is 5"),
        ({"draws": 100}, "multiple of 20"),
        ({"n": 3}, "needs 5 or more"),
        ({"spread": "study"}, "needs a study"),
        ({"effort_sd": 0.0}, "effort_sd is 0"),
    ],
)
def test_what_cannot_be_asked(asked, said):
    with pytest.raises(DataError, match=said):
        fidm.study.calibrate(TASK, **{"channels": [], **asked})


def test_the_full_model_is_calibrated_in_the_same_way(monkeypatch):
    """Short chains, to see that truths are ranked among what was sampled; benchmarks/calibration.py takes long ones."""
    for name, value in (("CHAINS", 1), ("WARMUP", 75), ("EVERY", 1)):
        monkeypatch.setattr(f"fidm.experiments.calibrate.{name}", value)
    asked = {"n": 6, "studies": 20, "draws": 19, "channels": []}
    fitted, sampled = (fidm.study.calibrate(TASK, **asked, sampled=way) for way in (False, True))
    assert sampled.record.settings["sampled"]
    assert any("sampled" in note for note in sampled.notes)
    both = fitted.ranks.join(sampled.ranks, on=["study", "parameter", "person"])
    assert both.height > 90
    assert np.corrcoef(both["rank"], both["rank_right"])[0, 1] > 0.8


def test_populations_drawn_from_the_hyperpriors_give_uniform_ranks():
    """Eight people of 15 actions, 60 studies: the strict test of the computation, within three standard errors."""
    like = fidm.simulate_cohort(TASK, 8, seed=2, max_steps=15)
    found = fidm.study.calibrate(
        TASK, like=like, studies=60, draws=99, channels=[], populations="drawn", spread="paper"
    )
    row = found.parameters.row(0, named=True)
    assert abs(row["held_95"] - 0.95) < 3 * row["held_95_se"] + 0.02
    assert abs(row["mean_rank"] - 0.5) < 3 * row["mean_rank_se"]
    assert row["p"] > 0.001
    assert found.record.settings["populations"] == "drawn"
