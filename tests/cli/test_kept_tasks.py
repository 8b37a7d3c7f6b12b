"""Studies of many small tasks from arrays, on the command line: every verb knows them."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from mazes import maze, walked

import fidm
from fidm.cli.main import main
from fidm.folder import StudyFolder


def run(capsys, *arguments):
    """Run a verb; its exit code, and what it said on both streams with spaces made one."""
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, re.sub(r"\s+", " ", said.out), re.sub(r"\s+", " ", said.err)


def make_study(folder, tasks, n_people, **options):
    """A study as a lab keeps it: CSV files with names, and a file of tasks."""
    folder.mkdir()
    steps, episodes = walked(tasks, n_people, **options)
    steps.write_csv(folder / "steps.csv")
    episodes.write_csv(folder / "episodes.csv")
    fidm.save_tasks(folder / "tasks.parquet", tasks)
    (folder / "study.toml").write_text('schema = 1\ntasks = ["tasks.parquet"]\n', "utf-8")
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("kept") / "s", [maze(i, size=3) for i in range(12)], 15)


def test_every_verb_works_on_tasks_from_arrays(study, capsys, no_pictures):
    code, out, _ = run(capsys, "fit", study)
    assert (code, "15 participants" in out) == (0, True)
    saved = json.loads((study / "fit.json").read_text("utf-8"))
    tasks = fidm.load_tasks(study / "tasks.parquet")
    assert [(one["name"], one["sha256"]) for one in saved["tasks"]] == [
        (task.name, task.fingerprint) for task in tasks
    ]

    code, out, _ = run(capsys, "evidence", study, "--participant", "P03")
    assert code == 0
    actions = pl.read_parquet(study / "results" / "evidence-actions.parquet")
    assert set(actions["action"]) <= {"up", "down", "left", "right"}
    assert actions["where"].cast(pl.String).str.contains(r"^r\dc\d$").all()
    assert actions["is_move"].all()

    code, out, _ = run(capsys, "localize", study, "--bootstrap", "20")
    assert code == 0
    assert "Turned away from the next goal" in out
    assert "Passed a target by" not in out
    assert "no target can be passed by there" in out
    assert pl.read_csv(study / "results" / "localize.csv")["anchor"].unique().to_list() == [
        "route_divergence"
    ]

    code, out, _ = run(capsys, "reliability", study)
    assert (code, "odd against even episodes" in out) == (0, True)

    code, out, _ = run(capsys, "report", study)
    assert (code, "15 participants with 180 trials" in out) == (0, True)
    data = json.loads((study / "report.json").read_text("utf-8"))
    assert len(data["shared"]["scenes"]) == 12
    scene = data["shared"]["scenes"][0]
    assert (len(scene["cells"]), len(scene["links"]), scene["start"], scene["ends"]) == (9, 12, 0, [8])
    episode = data["people"][0]["episodes"][4]
    assert (episode["scene"], episode["steps"]["cell"][0], all(episode["steps"]["move"])) == (4, 0, True)
    for here, after in zip(episode["steps"]["next_cell"], episode["steps"]["cell"][1:], strict=False):
        assert here == after
    sections = {section["id"]: section for section in data["sections"]}
    assert len(next(one for one in sections["task"]["tables"] if one["id"] == "tasks")["rows"]) == 12
    assert len(sections["task"]["figures"]) == 3
    assert sections["localisation"]["tables"]


def test_a_fit_is_used_on_another_study_of_the_same_tasks_and_not_of_others(study, tmp_path, capsys):
    run(capsys, "fit", study)
    tasks = [maze(i, size=3) for i in range(12)]
    other = make_study(tmp_path / "other", tasks, 3, seed=2)
    assert run(capsys, "fit", other, "--use", study / "fit.json")[0] == 0
    (other / "study.toml").unlink()
    own = other / "tasks.parquet"
    assert run(capsys, "fit", other, "--use", study / "fit.json", "--task", own)[0] == 0
    fit = StudyFolder.open(other, task=[str(own)]).load_fit(study / "fit.json")
    assert fit.tasks.names == tuple(task.name for task in tasks)
    fidm.save_tasks(other / "tasks.parquet", [task.with_settings(tau=0.02) for task in tasks])
    code, _, err = run(capsys, "fit", other, "--use", study / "fit.json", "--task", own)
    assert (code, "another version of the task 'maze_000'" in err) == (2, True)


def test_tasks_without_coordinates_are_refused_by_localize_in_words(tmp_path, capsys):
    plain = make_study(tmp_path / "s", [maze(i, size=3, coordinates=None) for i in range(2)], 8)
    code, _, err = run(capsys, "localize", plain)
    assert (code, "maze_000 was not drawn as a map" in err) == (2, True)
    assert "made with coordinates" in err


def test_three_hundred_tasks_are_opened_and_fitted(tmp_path, capsys):
    tasks = [maze(i, size=3) for i in range(300)]
    folder = make_study(tmp_path / "s", tasks, 3)
    opened = StudyFolder.open(folder)
    assert [task.fingerprint for task in opened.tasks] == [task.fingerprint for task in tasks]
    assert opened.cohort.n_episodes == 900
    code, out, _ = run(capsys, "fit", folder)
    assert (code, "3 participants" in out) == (0, True)


def test_files_of_tasks_are_listed_checked_and_shown(study, tmp_path, capsys):
    file = study / "tasks.parquet"
    code, out, _ = run(capsys, "task", "list", file)
    assert (code, "12 tasks" in out, maze(3, size=3).fingerprint[:12] in out) == (0, True, True)
    code, out, _ = run(capsys, "check", file)
    assert (code, "12 tasks: " in out, "together η is known to" in out) == (0, True, True)
    code, out, _ = run(capsys, "check", f"{file}#maze_003")
    assert (code, "usable maze_003: 9 states" in out, "move cost tau" in out) == (0, True, True)
    code, out, _ = run(capsys, "check", file, "--json")
    assert [one["task"] for one in json.loads(out)["tasks"]] == [f"maze_{i:03d}" for i in range(12)]
    code, out, _ = run(capsys, "task", "show", f"{file}#maze_003", "--out", tmp_path / "map.svg")
    assert (code, "The start is r1c1." in out, (tmp_path / "map.svg").exists()) == (0, True, True)
    code, _, err = run(capsys, "task", "show", file)
    assert (code, "holds 12 tasks" in err) == (2, True)
    code, _, err = run(capsys, "task", "show", f"{file}#maze_003", "--completed", "gold")
    assert (code, "no targets and no phases" in err) == (2, True)
    bad = fidm.TaskModel.from_arrays(
        [[0, 1], [-1, -1]], [[1.0, 0], [0, 0]], gamma=0.9, tau=0.1, name="stay", actions=["stay", "go"]
    )
    fidm.save_tasks(tmp_path / "two.parquet", [maze(1), bad])
    code, out, _ = run(capsys, "check", tmp_path / "two.parquet")
    assert (code, "1 usable alone, 1 not usable" in out, "stay: The best agent never finishes" in out) == (
        1, True, True
    )  # fmt: skip


def test_a_study_is_simulated_on_a_kept_task(study, tmp_path, capsys):
    place = tmp_path / "twin"
    task = f"{study / 'tasks.parquet'}#maze_004"
    code, _, err = run(
        capsys, "simulate", place, "--task", task, "--people", 12, "--agent", "model", "--no-dialogs"
    )
    assert code == 0, err
    (made,) = StudyFolder.open(place).tasks
    assert made.fingerprint == maze(4, size=3).fingerprint


def test_a_damaged_file_is_named_with_what_to_do(study, tmp_path, capsys):
    tasks = [maze(i, size=3) for i in range(3)]
    folder = make_study(tmp_path / "s", tasks, 3)
    table = pl.read_parquet(folder / "tasks.parquet")
    table.with_columns(gamma=pl.Series([0.98, 0.9, 0.9])).write_parquet(folder / "tasks.parquet")
    code, _, err = run(capsys, "fit", folder)
    assert code == 2
    assert "tasks.parquet: 2 of 3 tasks cannot be used" in err
    assert "task 'maze_001': does not match its fingerprint" in err
    assert "Write it again with fidm.save_tasks" in err
