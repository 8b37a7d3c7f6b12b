"""A study may name a file of tasks, one task of it, and other tasks beside it."""

from __future__ import annotations

import polars as pl
from mazes import maze, walked

import fidm
from fidm.io.study import Study, StudyWriter
from fidm.run import RunOptions, _Line


def test_one_task_of_a_file_may_be_named_and_goes_along(tmp_path):
    tasks = [maze(i) for i in range(3)]
    fidm.save_tasks(tmp_path / "all.parquet", tasks)
    steps, _ = walked(tasks[1:2], 2)
    made = fidm.make_cohort(steps=steps.drop("state", "episode"), tasks=tasks[1])
    with StudyWriter(tmp_path / "s", tasks=[f"{tmp_path}/all.parquet#maze_001", "errands"]) as writer:
        writer.add(made)
    assert [task.name for task in Study(tmp_path / "s").load_tasks()] == ["maze_001", "errands"]
    named = 'schema = 1\ntasks = ["../all.parquet#maze_001"]\n'
    (tmp_path / "s" / "study.toml").write_text(named, "utf-8")
    read = fidm.read_cohort(tmp_path / "s")
    assert read.state.tolist() == made.state.tolist()


def test_a_run_notices_that_a_file_of_tasks_has_changed(tmp_path):
    fidm.save_tasks(tmp_path / "mine.parquet", [maze(1), maze(2)])
    (tmp_path / "study.toml").write_text(
        'schema = 1\ntasks = ["mine.parquet#maze_001", "errands"]\n', "utf-8"
    )
    line = _Line(tmp_path, RunOptions(), lambda *_: None)
    assert tmp_path / "mine.parquet" in line.inputs("fit")
    assert tmp_path / "errands" not in line.inputs("fit")


def test_states_of_many_tasks_are_worked_out_from_actions():
    tasks = [maze(i, size=3) for i in range(60)]
    steps, episodes = walked(tasks, 2)
    given = fidm.make_cohort(steps=steps, episodes=episodes, tasks=tasks)
    worked = fidm.make_cohort(steps=steps.drop("state"), episodes=episodes, tasks=tasks)
    assert worked.state.tolist() == given.state.tolist()
    ends = pl.Series(worked.end_state)
    assert (ends >= 0).all()
