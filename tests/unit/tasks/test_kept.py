"""A file of tasks gives back every bit of every task, and says everything that is wrong with it at once."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mazes import maze
from scipy import sparse

import fidm
from fidm.tasks import kept
from fidm.tasks.kept import DAMAGED, LISTS, NAMES, PLAIN


def random_task(seed, name="task", horizon=None):
    """A task with several outcomes, goals, states that do not count and handovers, all drawn by chance."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    pairs = [(s, a) for s in range(n_states) for a in range(n_actions) if rng.random() < 0.6]
    transition = rng.random((len(pairs), n_states)) * (rng.random((len(pairs), n_states)) < 0.5)
    transition[:, 0] += 1e-3
    transition /= transition.sum(axis=1, keepdims=True)
    at = rng.integers(0, 3, (n_states, 2)).astype(float)
    at[rng.random(n_states) < 0.3] = np.nan
    task = fidm.TaskModel.from_pairs(
        [s for s, _ in pairs],
        [a for _, a in pairs],
        rng.normal(size=len(pairs)) * 10.0 ** rng.integers(-300, 12),
        sparse.csr_array(transition) if pairs else np.zeros((0, n_states)),
        gamma=float(rng.random()),
        tau=float(rng.random() + 1e-9),
        normaliser=str(rng.choice(["sum", "mean", "max"])),
        start=int(rng.integers(n_states)),
        horizon=horizon,
        name=name,
        actions=[f"α {a}\t{a}" for a in range(n_actions)],
        states=[f"state «{s}»" for s in range(n_states)] if rng.random() < 0.5 else (),
        coordinates=at if rng.random() < 0.5 else None,
    )
    n = task.n_states
    return replace(
        task,
        reward=np.where(rng.random(task.n_pairs) < 0.2, -0.0, task.reward),
        goals=("one", "two"),
        goal=rng.integers(-1, 2, task.n_pairs).astype(np.int16),
        counted=rng.random(n) < 0.7,
        handover=rng.integers(0, n, n).astype(np.int32),
    )


def same(one, other):
    """Whether two tasks are the same to the last bit."""
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
                return False
        elif (type(a), a) != (type(b), b):
            return False
    return one.fingerprint == other.fingerprint


@given(st.integers(0, 10_000), st.sampled_from([None, 1, 3]))
@settings(max_examples=40)
def test_every_bit_survives(tmp_path_factory, seed, horizon):
    path = tmp_path_factory.mktemp("kept") / "tasks.parquet"
    tasks = [random_task([seed, i], f"task {i}", horizon if i else None) for i in range(3)]
    fidm.save_tasks(path, tasks)
    read = fidm.load_tasks(path)
    assert all(same(one, other) for one, other in zip(tasks, read, strict=True))


def test_the_columns_are_those_that_are_documented(tmp_path):
    fidm.save_tasks(tmp_path / "t.parquet", maze(1))
    schema = pl.read_parquet_schema(tmp_path / "t.parquet")
    lists = {name: pl.List(kind) for name, kind in LISTS.items()} | dict.fromkeys(NAMES, pl.List(pl.String))
    assert dict(schema) == {**PLAIN, **lists}


def test_hundreds_of_tasks_keep_their_order(tmp_path):
    tasks = [maze(i, size=3) for i in range(300)]
    fidm.save_tasks(tmp_path / "t.parquet", {task.name: task for task in reversed(tasks)})
    read = fidm.load_tasks(tmp_path / "t.parquet")
    assert [task.fingerprint for task in read] == [task.fingerprint for task in reversed(tasks)]


def test_one_task_is_named_or_the_only_one(tmp_path):
    path = tmp_path / "tasks.parquet"
    fidm.save_tasks(path, [maze(1), maze(2)])
    assert fidm.load_task(f"{path}#maze_002").name == "maze_002"
    assert [task.name for task in fidm.load_tasks(f"{path}#maze_001")] == ["maze_001"]
    with pytest.raises(fidm.TaskError, match=r"holds 2 tasks.*tasks.parquet#maze_001, or read all"):
        fidm.load_task(path)
    with pytest.raises(fidm.TaskError, match=r"no task .maze_02.\. Did you mean maze_002"):
        fidm.load_task(f"{path}#maze_02")
    fidm.save_tasks(path, maze(3))
    assert fidm.load_task(path).name == "maze_003"


def test_maps_stay_what_they_are_and_are_refused(tmp_path):
    errands = fidm.load_task("errands")
    with pytest.raises(fidm.TaskError, match=r"errands was drawn as a map.*built-in name"):
        fidm.save_tasks(tmp_path / "t.parquet", [maze(1), errands])
    assert not list(tmp_path.iterdir())
    fidm.save_tasks(tmp_path / "t.parquet", errands.with_horizon(3))  # which has lost its map
    assert same(errands.with_horizon(3), fidm.load_task(tmp_path / "t.parquet"))


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([], "at least one task"),
        ([maze(1), maze(1)], "Several tasks are called 'maze_001'"),
        (["maze"], "not str"),
        ([replace(maze(1), name=" ")], "one line of up to 200"),
        ([replace(maze(1), actions=("a", "a", "b", "c"))], "actions: must differ"),
        ([maze(1, states=["\ud800", *map(str, range(15))])], "not text that can be written"),
        ([replace(maze(1), reward=maze(1).reward.astype(np.float32))], "not as TaskModel describes"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_the_older_file_stays(tmp_path, tasks, said):
    path = tmp_path / "t.parquet"
    fidm.save_tasks(path, maze(5))
    with pytest.raises(fidm.TaskError, match=said):
        fidm.save_tasks(path, tasks)
    assert fidm.load_task(path).name == "maze_005"
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def changed(path, **columns):
    """A file of one task in which columns are changed: one value, or a function of its list."""
    table = pl.read_parquet(path)
    for name, new in columns.items():
        value = new(table[name].to_list()[0]) if callable(new) else new
        table = table.with_columns(pl.Series(name, [value], dtype=table.schema[name]))
    table.write_parquet(path)


def setting(i, value):
    """Change one entry of a list."""
    return lambda own: [value if k == i else one for k, one in enumerate(own)]


@pytest.mark.parametrize(
    "column",
    [
        {"reward": setting(3, 0.5)},
        {"gamma": 0.5},
        {"tau": 0.2},
        {"start": 3},
        {"normaliser": "max"},
        {"is_move": setting(0, False)},
        {"counted": setting(2, False)},
        {"handover": setting(0, 1)},
        {"successor": setting(0, 7)},
        {"name": "other"},
        {"states": setting(0, "elsewhere")},
        {"x": setting(0, 0.25)},
        {"fingerprint": "0" * 64},
        {"sha256": "0" * 64},
    ],
)
def test_a_change_by_hand_is_found_unless_the_hashes_are_taken_away(tmp_path, column):
    path = tmp_path / "t.parquet"
    fidm.save_tasks(path, maze(1))
    changed(path, **column)
    with pytest.raises(fidm.TaskError, match="1 of 1 task cannot be used") as error:
        fidm.load_tasks(path)
    assert DAMAGED[0] in str(error.value)
    changed(path, fingerprint=None, sha256=None)
    fidm.load_tasks(path)


WRONG = {
    "offsets": ({"offsets": setting(1, 40)}, "offsets: must rise from 0"),
    "begins": ({"successor_offsets": setting(1, 0)}, "successor_offsets: must rise"),
    "order": ({"action": setting(1, 0)}, "action: must rise within a state"),
    "action": ({"action": setting(0, 4)}, "action: must be numbers of actions"),
    "reward": ({"reward": setting(0, float("nan"))}, "reward: must be at most 1e+12"),
    "empty": ({"reward": setting(0, None)}, "reward: has no value"),
    "successor": ({"successor": setting(0, 16)}, "successor: must be numbers of states"),
    "probability": ({"probability": setting(0, 0.5)}, "probability: must not be negative, and sum to one"),
    "short": ({"reward": lambda own: own[1:]}, "reward: has 45 values; 46 are needed."),
    "goal": ({"goal": setting(0, 0)}, "goal: must be numbers of goals"),
    "handover": ({"handover": setting(0, -1)}, "handover: must be numbers of states"),
    "states": ({"states": lambda own: own[1:]}, "states: has 15 values; 16 are needed."),
    "names": ({"actions": setting(0, None)}, "actions: has no value"),
    "no name": ({"name": None}, "row 1, name: has no value"),
    "half a place": ({"x": setting(0, None)}, "coordinates[0]: is nan, 0."),
    "no y": ({"y": None}, "y: has 0 values; 16 are needed."),
    "start": ({"start": 16}, "start is 16"),
    "horizon": ({"horizon": 4}, "horizon: must be 1 or more, and fit"),
    "gamma": ({"gamma": 1.5}, "gamma: is 1.5"),
    "normaliser": ({"normaliser": "median"}, "normaliser: is 'median'"),
    "format": ({"format": 2}, "format: is 2; this version of fidm reads 1."),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_what_cannot_be_a_task_is_said(tmp_path, case):
    columns, said = WRONG[case]
    fidm.save_tasks(tmp_path / "t.parquet", maze(1))
    changed(tmp_path / "t.parquet", **columns, fingerprint=None, sha256=None)
    with pytest.raises(fidm.TaskError) as error:
        fidm.load_tasks(tmp_path / "t.parquet")
    assert said in str(error.value)


def test_all_problems_of_a_file_are_said_at_once(tmp_path):
    path = tmp_path / "t.parquet"
    fidm.save_tasks(path, [maze(i) for i in range(4)])
    table = pl.read_parquet(path).with_columns(
        gamma=pl.Series([2.0, 0.98, 0.98, 0.98]),
        name=pl.Series(["maze_000", "maze_001", "maze_003", "maze_003"]),
        fingerprint=pl.lit(None, pl.String),
        sha256=pl.lit(None, pl.String),
    )
    table.write_parquet(path)
    with pytest.raises(fidm.TaskError, match="3 of 4 tasks cannot be used") as error:
        fidm.load_tasks(path)
    assert len(error.value.problems) == 3
    assert {one.where for one in error.value.problems} == {
        "task 'maze_000', gamma", "task 'maze_003', name"
    }  # fmt: skip


def test_other_software_may_leave_out_what_has_a_usual_value(tmp_path):
    path = tmp_path / "t.parquet"
    whole = maze(1)
    table = pl.DataFrame(
        {
            "name": ["maze_001"], "gamma": [1], "tau": [0.01],
            "offsets": [whole.offsets.tolist()], "action": [whole.action.tolist()],
            "reward": [whole.reward.tolist()], "successor_offsets": [whole.successor_offsets.tolist()],
            "successor": [whole.successor.tolist()], "probability": [[1] * whole.n_pairs],
            "actions": [list(whole.actions)],
        }
    )  # fmt: skip
    table.write_parquet(path)
    bare = maze(1, gamma=1.0, coordinates=None, states=())
    assert same(bare, fidm.load_task(path))
    x, y = np.nan_to_num(whole.coordinates).T.tolist()
    table.with_columns(x=pl.Series([x]), y=pl.Series([y])).write_parquet(path)
    assert same(maze(1, gamma=1.0, states=()), fidm.load_task(path))
    table.drop("reward", "tau").write_parquet(path)
    with pytest.raises(fidm.TaskError, match=r"column tau: is missing.*\n.*column reward: is missing"):
        fidm.load_task(path)
    table.with_columns(action=pl.Series([["up"]]), gamma=pl.lit("much")).write_parquet(path)
    with pytest.raises(fidm.TaskError, match="column action: must have a list of whole numbers") as error:
        fidm.load_task(path)
    assert len(error.value.problems) == 2
    table.clear().write_parquet(path)
    with pytest.raises(fidm.TaskError, match="has no rows"):
        fidm.load_task(path)


def test_what_is_no_such_file_is_said(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    with pytest.raises(fidm.TaskError, match="there is no such file"):
        fidm.load_tasks(path)
    path.write_bytes(b"PAR1 is how it should begin and end")
    with pytest.raises(fidm.TaskError, match="is not a Parquet file that can be read"):
        fidm.load_tasks(path)
    with pytest.raises(fidm.TaskError, match=r"t.parquet: is a file of tasks without maps"):
        fidm.read_task(path)
    with pytest.raises(fidm.TaskError, match=r"ends in \.parquet"):
        fidm.save_tasks(tmp_path / "t.npz", maze(1))
    with pytest.raises(fidm.TaskError, match="no ordinary file"):
        fidm.load_tasks(make_folder(tmp_path / "folder.parquet"))
    fidm.save_tasks(path, [maze(1), maze(2)])
    for name, limit, said in (
        ("MAX_TASKS", 1, "holds 2 rows"), ("MAX_FILE_BYTES", 10, "larger"), ("MAX_STATES", 9, "more than 9")
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(kept, name, limit)
            with pytest.raises(fidm.TaskError, match=said):
                fidm.load_tasks(path)


def make_folder(path):
    path.mkdir()
    return path
