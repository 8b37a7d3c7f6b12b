"""``fidm fit --draws``: estimates averaged over sampled groundings of the dialogs."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.grounding.base import Proposal
from fidm.grounding.ground import ground
from fidm.grounding.route.program import NOTHING
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.store import study_draws, write_grounding


class Doubting:
    """The rules, but every third segment may as well mean nothing."""

    name = "doubting"

    def __init__(self) -> None:
        self._rules = Rules()

    def provenance(self):
        return {"grounder": self.name}

    def ground(self, segment, context):
        found = self._rules.ground(segment, context)
        if segment.number % 3:
            return found
        return Proposal.of([(found.program, 0.6), (NOTHING, 0.4)], ("in_doubt",), self.name)

    def close(self):
        pass


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draws") / "study"
    folder.mkdir()
    task = fidm.load_task("grocery")
    talks = fidm.simulate_talks(task, 30, seed=4, language="en")
    ids = [*talks.cohort.ids.to_list(), "absent"]
    pl.DataFrame({"participant": ids, "age": range(len(ids))}).write_csv(folder / "participants.csv")
    write_grounding(folder, ground(talks.transcripts, task, by=Doubting()), tasks=["grocery"])
    return folder


def test_draws_widen_intervals_by_the_groundings_doubt(study, tmp_path, capsys):
    assert main(["fit", str(study), "--out", str(tmp_path / "one")]) == 0
    assert main(["fit", str(study), "--out", str(tmp_path / "many"), "--draws", "6"]) == 0
    assert "averaged over 6 groundings" in capsys.readouterr().out
    one, many = (pl.read_parquet(tmp_path / name / "profile.parquet") for name in ("one", "many"))
    assert one["participant"].to_list() == many["participant"].to_list()
    assert "absent" in many["participant"].to_list()
    share = many["action_sensitivity_grounding_share"].drop_nulls().drop_nans()
    assert share.max() > 0.05
    assert share.min() >= 0.0


def test_the_same_seed_gives_the_same_draws_whoever_asks(study):
    task = fidm.load_task("grocery")
    first = [cohort.action for cohort in study_draws(study, task, 3, seed=7)]
    again = [cohort.action for cohort in study_draws(study, task, 3, seed=7)]
    other = [cohort.action for cohort in study_draws(study, task, 3, seed=8)]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert len({len(actions) for actions in first}) > 1


def test_every_draw_follows_the_rules_of_the_task(study):
    task = fidm.load_task("grocery")
    model = fidm.Model(task)
    for cohort in study_draws(study, task, 4, seed=1):
        assert model.check(cohort).problems.height == 0
        assert cohort.segments["duration_s"].null_count() == 0


def test_json_says_how_many_draws(study, tmp_path, capsys):
    assert main(["fit", str(study), "--out", str(tmp_path), "--draws", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["draws"] == 2


@pytest.mark.parametrize("draws", ["1", "-3"])
def test_one_draw_cannot_be_averaged(study, tmp_path, draws, capsys):
    assert main(["fit", str(study), "--out", str(tmp_path), "--draws", draws]) == 2
    assert "--draws" in capsys.readouterr().err


def test_draws_need_a_grounding(tmp_path, capsys):
    task = fidm.load_task("grocery")
    fidm.write_cohort(fidm.simulate_cohort(task, 10, seed=1), tmp_path / "study", tasks=["grocery"])
    assert main(["fit", str(tmp_path / "study"), "--draws", "3"]) == 2
    assert "fidm ground" in capsys.readouterr().err
