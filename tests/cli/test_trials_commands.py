"""Trials of a study: what is known of episodes reaches every verb, ``fidm learning``, halves by a column."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.folder import StudyFolder

PEOPLE, EACH = 8, 6


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study whose lab keeps a table of episodes without the task, which is the only one."""
    folder = tmp_path_factory.mktemp("trials") / "study"
    made = fidm.simulate_cohort(fidm.load_task("errands"), PEOPLE * EACH, seed=3, max_steps=10)
    names = pl.Series([str(k + 1) for k in range(EACH)] * PEOPLE)
    cohort = replace(
        made,
        participants=made.participants.select("participant")[:PEOPLE],
        episodes=made.episodes.with_columns(episode=names),
        episode_offsets=np.arange(0, PEOPLE * EACH + 1, EACH),
    )
    fidm.write_cohort(cohort, folder, tasks=["errands"])
    (folder / "episodes.parquet").unlink()
    about = pl.DataFrame(
        {
            "block": [1, 1, 2, 2, 3, 3] * PEOPLE,
            "condition": ["easy", "hard"] * (3 * PEOPLE),
            "date": ["2026-01-05", "2026-01-05", "2026-01-06", "2026-01-06", "", ""] * PEOPLE,
        }
    )
    cohort.episode_keys().drop("task").hstack(about).write_csv(folder / "episodes.csv")
    return folder


def said(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("no_pictures")
def test_a_table_of_episodes_reaches_every_verb(study, capsys):
    assert fidm.read_cohort(study).episodes.columns[2:] == ["block", "condition", "date"]
    assert said(capsys, "fit", study)["participants"]
    assert said(capsys, "evidence", study)["result"]
    assert said(capsys, "reliability", study, "--halves", "condition", "--bootstrap", 20)["result"]["notes"][
        0
    ].startswith("split-half: condition easy against hard")
    assert said(capsys, "learning", study, "--by", "block")["result"]["trend"]
    assert main(["report", str(study), "--no-classify"]) == 0
    report = json.loads((study / "report.json").read_text("utf-8"))
    [section] = [one for one in report["sections"] if one["id"] == "learning"]
    assert section["paragraphs"][0].startswith("Per block η changes by a factor of")
    assert len(section["tables"][0]["rows"]) == 3
    assert "condition easy against hard" in json.dumps(report)  # the lab's own halves are taken
    capsys.readouterr()


@pytest.mark.usefixtures("no_pictures")
def test_learning_of_a_study(study, capsys):
    found = said(capsys, "learning", study, "--by", "block")
    assert found["experiment"] == "learning"
    assert [row["n_people"] for row in found["result"]["group"]] == [PEOPLE] * 3
    assert found["result"]["unit"] == "block"
    for name in (
        "learning.json",
        "learning.csv",
        "learning-people.csv",
        "learning-slopes.csv",
        "learning-trend.csv",
    ):
        assert (study / "results" / name).stat().st_size > 0
    kept = StudyFolder.open(study)
    assert kept.find_learning() is not None
    moved = kept.cohort.episodes.with_columns(block=pl.col("block").reverse())
    assert replace(kept, cohort=replace(kept.cohort, episodes=moved)).find_learning() is None
    assert main(["learning", str(study), "--by", "date"]) == 0
    out = capsys.readouterr().out
    assert "2026-01-06" in out
    assert "Per block η changes by a factor of" in out
    assert "16 episodes in no block are left out." in out
    assert "Next: " in out
    assert main(["learning", str(study), "--by", "blok"]) == 2
    assert "neither a column of the episodes nor a rule" in capsys.readouterr().err


def test_reliability_by_blocks_that_do_not_exist(study, capsys):
    assert main(["reliability", str(study), "--halves", "sessions"]) == 2
    assert "Halves may also be 'segments'" in capsys.readouterr().err
