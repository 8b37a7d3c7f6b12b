"""``fidm check`` of several tasks and of a whole study."""

from __future__ import annotations

import json

import pytest

import fidm
from fidm.cli.main import main


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("set") / "study"
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    people = fidm.simulate_cohort(tasks, 12, seed=1, max_steps=60)
    fidm.write_cohort(people, folder, tasks=["errands", "grocery_small"])
    return folder


def test_several_tasks_have_a_row_each(capsys):
    assert main(["check", "errands", "grocery_small"]) == 0
    out = capsys.readouterr().out
    assert "2 tasks: 2 usable alone; together η is known to ±" in out
    assert "one episode on each task" in out
    assert main(["check", "errands", "grocery_small", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["task"] for row in said["tasks"]] == ["errands", "grocery_small"]


def test_a_study_is_checked_with_its_episodes_and_the_sensitivity_of_its_fit(study, capsys):
    assert main(["check", str(study)]) == 0
    out = capsys.readouterr().out
    assert "2 episodes per person, as recorded of 12 people" in " ".join(out.split())
    assert "the median 1/τ of the tasks" in out
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    fit = fidm.Model(tasks, channels=()).fit(fidm.read_cohort(study))
    fit.save(study / "fit.json")
    assert main(["check", str(study), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "the typical person of fit.json"
    fidm.Model(tasks[0], channels=()).fit(fidm.simulate_cohort(tasks[0], 12, seed=1)).save(study / "fit.json")
    assert main(["check", str(study)]) == 0
    assert "fit.json is of other tasks" in " ".join(capsys.readouterr().out.split())


def test_a_study_without_data_counts_one_episode_each(tmp_path, capsys):
    (tmp_path / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    assert main(["check", str(tmp_path)]) == 0
    assert "1 task: 1 usable alone" in capsys.readouterr().out
    (tmp_path / "study.toml").write_text("schema = 1\n", "utf-8")
    assert main(["check", str(tmp_path)]) == 2
    assert "names no task" in capsys.readouterr().err
    assert main(["check", str(tmp_path), "errands"]) == 2
    assert "checked on its own" in capsys.readouterr().err
