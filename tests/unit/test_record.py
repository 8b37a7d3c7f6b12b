"""Results say how they came about, and are written whole."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.errors import DataError
from fidm.experiments.shared import cross_validated_auc
from fidm.record import Record, hash_cohort, plain, to_json, write_result


@dataclass(frozen=True)
class Tiny:
    record: Record
    tables: dict[str, pl.DataFrame]

    def to_dict(self):
        return {"auc": np.float64(0.5), "none": float("nan"), "many": np.arange(2), "table": self.tables[""]}


@pytest.fixture
def result():
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 3, seed=1)
    made = Record.of("tiny", task, seed=7, settings={"n": 3, "share": 0.3}, cohort=people)
    return Tiny(made, {"": pl.DataFrame({"a": [1]}), "more": pl.DataFrame({"b": [2.5]})})


def test_a_file_says_what_is_needed_to_make_it_again(result, tmp_path):
    paths = write_result(result, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["tiny.json", "tiny.csv", "tiny-more.csv"]
    said = json.loads(paths[0].read_text("utf-8"))
    assert said["fidm_version"] == fidm.__version__
    assert said["tasks"] == {"errands": fidm.load_task("errands").fingerprint}
    assert (said["experiment"], said["seed"], said["settings"]) == ("tiny", 7, {"n": 3, "share": 0.3})
    assert said["result"] == {"auc": 0.5, "none": None, "many": [0, 1], "table": [{"a": 1}]}
    assert len(said["data"]) == 64


def test_the_same_result_gives_the_same_bytes(result, tmp_path):
    first = write_result(result, tmp_path / "a")[0].read_bytes()
    assert write_result(result, tmp_path / "b")[0].read_bytes() == first == (to_json(result) + "\n").encode()


def test_the_hash_changes_with_whatever_was_done_or_said():
    task = fidm.load_task("errands")
    people = fidm.simulate_cohort(task, 3, seed=1)
    same = fidm.simulate_cohort(task, 3, seed=1)
    assert hash_cohort(people) == hash_cohort(same)
    table = people.segments.with_columns(pl.col("duration_s") + 0.001)
    keyed = pl.DataFrame(
        {
            "participant": people.ids.gather(
                np.repeat(people.episode_owner(), np.diff(people.segment_offsets))
            ),
            "episode": "1",
        }
    ).hstack(table)
    assert hash_cohort(people.with_segments(keyed)) != hash_cohort(people)
    assert hash_cohort(people[:2]) != hash_cohort(people)


def test_what_json_does_not_know_becomes_plain():
    assert plain({"x": (np.int64(1), np.inf, None, True)}) == {"x": [1, None, None, True]}


def test_groups_that_differ_are_told_apart_and_others_are_not():
    rng = np.random.default_rng(1)
    label = np.arange(400) % 2 == 0
    far = rng.normal(size=400) + 2 * label
    assert cross_validated_auc(far, label, seed=1) > 0.85
    assert abs(cross_validated_auc(rng.normal(size=(400, 3)), label, seed=1) - 0.5) < 0.08


def test_members_of_a_pair_stay_in_one_fold():
    rng = np.random.default_rng(2)
    pair, label = np.repeat(np.arange(60), 2), np.tile([False, True], 60)
    own = np.repeat(rng.normal(size=60), 2)  # tells the pair, not the member
    assert abs(cross_validated_auc(own, label, seed=1, groups=pair) - 0.5) < 0.01


@pytest.mark.parametrize(
    ("features", "label", "said"),
    [
        (np.ones(4), [True] * 4, "smaller group has 0"),
        (np.full(20, np.inf), np.arange(20) % 2 == 0, "infinite"),
        (np.full(20, np.nan), np.arange(20) % 2 == 0, "No feature"),
        (np.ones(3), [True, False], "2 labels"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(features, label, said):
    with pytest.raises(DataError, match=said):
        cross_validated_auc(features, label, seed=1)
