"""A file of tasks: a Parquet table with a row per task, for tasks made from arrays, pairs or code.

Every array of a :class:`TaskModel` is a list in its row. So all of a task survives to the last bit, other
software can read and write the file, and hundreds of tasks are read at once. What does not match the
fingerprint beside it is refused. ``docs/reference/tasks-format.md`` has the columns.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.errors import Problem, TaskError, count, few, meant, remedy
from fidm.files import whole_file
from fidm.tasks.model import TaskModel
from fidm.tasks.pairs import MAX_ACTIONS, MAX_REWARD, MAX_STATES, Pairs, find_moves
from fidm.tasks.stack import TaskSet

FORMAT = 1
"""The version of the format of a file of tasks."""

SUFFIX = ".parquet"
MAX_TASKS = 100_000
MAX_FILE_BYTES = 2_000_000_000

PLAIN: Mapping[str, Any] = {
    "format": pl.Int64, "name": pl.String, "gamma": pl.Float64, "tau": pl.Float64, "normaliser": pl.String,
    "start": pl.Int64, "horizon": pl.Int64, "fingerprint": pl.String, "sha256": pl.String,
}  # fmt: skip
"""The columns with one value per task."""

LISTS: Mapping[str, Any] = {
    "offsets": pl.Int64, "action": pl.Int32, "reward": pl.Float64, "successor_offsets": pl.Int64,
    "successor": pl.Int32, "probability": pl.Float64, "goal": pl.Int16, "is_move": pl.Boolean,
    "counted": pl.Boolean, "handover": pl.Int32, "x": pl.Float64, "y": pl.Float64,
}  # fmt: skip
"""The columns with a list of numbers per task."""

NAMES = ("actions", "goals", "states")
"""The columns with a list of names per task."""

NEEDED = (
    "name", "gamma", "tau", "offsets", "action", "reward", "successor_offsets", "successor", "probability",
    "actions",
)  # fmt: skip
"""The columns that must be there, and have a value in every row."""

DAMAGED = (
    "does not match its fingerprint: the file was damaged or changed by hand.",
    "Write it again with fidm.save_tasks. If the change is meant, empty the task's fingerprint and sha256.",
)


def names_kept(path: str | Path) -> bool:
    """Return whether a path names a file of tasks, or one task of it (``FILE.parquet#NAME``)."""
    return split_name(path)[0].suffix.casefold() == SUFFIX


def split_name(path: str | Path) -> tuple[Path, str]:
    """Return the file and the name of the task that are meant by ``FILE.parquet#NAME``; no name, no task."""
    text = str(path)
    file, mark, name = text.partition(f"{SUFFIX}#")
    return (Path(file + SUFFIX), name) if mark and not Path(text).exists() else (Path(path), "")


def save_tasks(path: str | Path, tasks: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel]) -> None:
    """Keep tasks in a file, so that a study can name it; whole or not at all.

    A file that is there is replaced. All of a task is kept to the last bit, with its fingerprint. Tasks that
    were drawn as maps are refused: their TOML files are how they are kept.

    Parameters
    ----------
    path : path
        Where to; ends in ``.parquet``.
    tasks : TaskModel, or several
        What to keep; each has a name of its own.

    Examples
    --------
    >>> import fidm, tempfile
    >>> corridor = fidm.TaskModel.from_arrays(
    ...     [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1, name="corridor"
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     fidm.save_tasks(f"{place}/tasks.parquet", [corridor])
    ...     (task,) = fidm.load_tasks(f"{place}/tasks.parquet")
    >>> task.fingerprint == corridor.fingerprint
    True
    """
    target, found = Path(path), TaskSet.of(tasks).tasks
    if target.suffix.casefold() != SUFFIX:
        raise TaskError(f"A file of tasks ends in {SUFFIX}.", source=str(path))
    require_keepable(found, source=str(path))
    table = _table_of(found, str(path))
    with whole_file(target) as part:
        table.write_parquet(part)
        try:  # what is in its place can be read, and is what was given
            read_tasks(part)
        except TaskError as error:
            raise TaskError(
                "cannot be written: the arrays of some tasks are not as TaskModel describes them.",
                source=str(path),
                problems=error.problems,
            ) from None


def require_keepable(tasks: Sequence[TaskModel], *, source: str) -> None:
    """Raise if tasks cannot be kept in one file: too many, or drawn as maps."""
    if len(tasks) > MAX_TASKS:
        raise TaskError(f"{len(tasks):,} tasks; a file holds up to {MAX_TASKS:,}.", source=source)
    drawn = [task.name for task in tasks if task.grid is not None]
    if drawn:
        raise TaskError(
            f"{few(drawn)} {'was' if len(drawn) == 1 else 'were'} drawn as a map, and a file of tasks "
            "holds no maps. Give the TOML file of such a task, or its built-in name, beside the others; "
            f'study.toml then names both: tasks = ["tasks{SUFFIX}", "{drawn[0]}"].',
            source=source,
        )


def read_tasks(path: str | Path) -> tuple[TaskModel, ...]:
    """Read a file of tasks, and check all of it; everything that is wrong is said at once."""
    source = str(path)
    table = _read(Path(path), source)
    problems = _column_problems(table)
    if problems:
        raise TaskError("the tasks cannot be read.", source=source, problems=problems)
    found, names, n_wrong = [], table["name"].to_list(), 0
    times = Counter(names)
    for i, row in enumerate(_rows(table)):
        wrong = _wrong(row)
        if times[names[i]] > 1:
            wrong.append(Problem("is the name of several tasks; each needs its own.", "name"))
        if not wrong:
            made, wrong = _made(row)
            found.append(made)
        where = f"task {names[i]!r}" if names[i] else f"row {i + 1}"
        problems += [Problem(one.what, f"{where}, {one.where}".rstrip(", "), hint=one.hint) for one in wrong]
        n_wrong += bool(wrong)
    if problems:
        said = f"{n_wrong:,} of {count(len(names), 'task')} cannot be used."
        raise TaskError(said, source=source, problems=problems)
    return tuple(task for task in found if task is not None)


def pick_task(path: str | Path) -> TaskModel:
    """Read one task: that which ``FILE.parquet#NAME`` names, or the only one of the file."""
    file, name = split_name(path)
    found = {task.name: task for task in read_tasks(file)}
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        said = f"has no task {name!r}." if name else f"holds {len(found):,} tasks; say which one is meant."
        example = next(iter(found))
        raise TaskError(
            f"{said} {meant([name], found)} Name one: {file.name}#{example}"
            + remedy(", or read all with fidm.load_tasks.", "."),
            source=str(file),
        )
    return found[name]


# ---------------------------------------------------------------------- writing


def _table_of(tasks: tuple[TaskModel, ...], source: str) -> pl.DataFrame:
    """The table of tasks; names that are not text that can be written are refused."""
    columns: list[pl.Series] = []
    said: dict[str, Callable[[TaskModel], Any]] = {
        "format": lambda task: FORMAT,
        "start": lambda task: int(task.start),
        "fingerprint": lambda task: task.fingerprint,
        "sha256": _hash,
        "x": lambda task: None if task.coordinates is None else task.coordinates[:, 0],
        "y": lambda task: None if task.coordinates is None else task.coordinates[:, 1],
    }
    try:
        for name, kind in PLAIN.items():
            values = [said[name](task) if name in said else getattr(task, name) for task in tasks]
            columns.append(pl.Series(name, values, dtype=kind))
        for name, kind in LISTS.items():
            found = [said[name](task) if name in said else getattr(task, name) for task in tasks]
            lists = [None if one is None else pl.Series(one, dtype=kind) for one in found]
            columns.append(pl.Series(name, lists, dtype=pl.List(kind)))
        for name in NAMES:
            named = [list(getattr(task, name)) for task in tasks]
            columns.append(pl.Series(name, named, dtype=pl.List(pl.String)))
    except UnicodeEncodeError:
        raise TaskError(
            f"{few(task.name for task in tasks)}: a name is not text that can be written.", source=source
        ) from None
    return pl.DataFrame(columns)


def _hash(task: TaskModel) -> str:
    """A hash of all of a task, also of what changes no number: names and where states are drawn."""
    said = (FORMAT, task.fingerprint, task.name, task.horizon, task.goals, task.states)
    digest = hashlib.sha256(json.dumps(said).encode())
    if task.coordinates is not None:
        digest.update(task.coordinates.astype("<f8").tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _Row:
    """What stands in a row: single values, arrays (None where there are none) and names."""

    plain: dict[str, Any]
    arrays: dict[str, NDArray[Any] | None]
    names: dict[str, tuple[str, ...]]
    empty: tuple[str, ...]  # the lists in which a value is missing


def _read(path: Path, source: str) -> pl.DataFrame:
    """The table as it is in the file, if it is one and not too large."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise TaskError("cannot be read: it is no ordinary file.", source=source)
        if size > MAX_FILE_BYTES:
            raise TaskError(f"is larger than {MAX_FILE_BYTES // 1_000_000} MB.", source=source)
        height = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
        if height > MAX_TASKS:
            raise TaskError(f"holds {height:,} rows; a file of tasks up to {MAX_TASKS:,}.", source=source)
        known = [*PLAIN, *LISTS, *NAMES]
        there = pl.read_parquet_schema(path)
        return pl.read_parquet(path, glob=False, columns=[name for name in known if name in there])
    except FileNotFoundError:
        raise TaskError("there is no such file.", source=source) from None
    except OSError as error:
        raise TaskError(f"cannot be read: {error.strerror or 'input error'}.", source=source) from None
    except pl.exceptions.PolarsError:
        raise TaskError(
            "is not a Parquet file that can be read; it may be damaged. Write it again with fidm.save_tasks.",
            source=source,
        ) from None


def _column_problems(table: pl.DataFrame) -> list[Problem]:
    """What is wrong with the columns as a whole."""
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        hint = "A file of tasks is written by fidm.save_tasks."
        return [Problem("is missing.", f"column {name}", hint=hint) for name in missing]
    if not table.height:
        return [Problem("has no rows.", "the table")]
    if "format" in table.columns and (others := set(table["format"].unique()) - {FORMAT, None}):
        return [Problem(f"is {others.pop()!r}; this version of fidm reads {FORMAT}.", "format")]
    problems = []
    for name, kind in table.schema.items():
        wanted = PLAIN.get(name) or LISTS.get(name) or pl.String
        inner = kind if name in PLAIN else kind.inner if isinstance(kind, pl.List) else None
        if inner is None or not _fits(inner, wanted):
            of = "a value" if name in PLAIN else "a list"
            problems.append(Problem(f"must have {of} of {_kind_words(wanted)} per task.", f"column {name}"))
    return problems


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether a column can be read as what it should be."""
    if kind == pl.Null:
        return True
    if wanted == pl.Float64:
        return bool(kind.is_numeric())
    return bool(kind.is_integer()) if wanted.is_integer() else bool(kind == wanted)


def _kind_words(kind: Any) -> str:
    words = {pl.Float64: "numbers", pl.Boolean: "true or false", pl.String: "text"}
    return words.get(kind, "whole numbers")


def _rows(table: pl.DataFrame) -> Iterator[_Row]:
    """Every row; lists are cut out of one array per column."""
    height = table.height
    plain = {
        name: table[name].cast(kind).to_list() if name in table.columns else [None] * height
        for name, kind in PLAIN.items()
    }
    names = {name: table[name].to_list() if name in table.columns else [None] * height for name in NAMES}
    cut = {
        name: _cut(table[name], kind) if name in table.columns else ([None] * height, set[int]())
        for name, kind in LISTS.items()
    }
    for i in range(height):
        yield _Row(
            {name: values[i] for name, values in plain.items()},
            {name: arrays[i] for name, (arrays, _) in cut.items()},
            {name: tuple(values[i] or ()) for name, values in names.items()},
            tuple(name for name, (_, empty) in cut.items() if i in empty),
        )


def _cut(column: pl.Series, kind: Any) -> tuple[list[NDArray[Any] | None], set[int]]:
    """The list of each row as an array, None where there is none; and the rows with a value missing in it.

    Coordinates may be missing; other values too large for what they should be count as missing.
    """
    sizes = column.list.len()
    counts = sizes.fill_null(0).to_numpy().astype(np.int64)
    flat = column.filter(sizes.fill_null(0) > 0).explode().cast(kind, strict=False)
    ends = np.concatenate([[0], np.cumsum(counts)])
    empty: set[int] = set()
    if flat.null_count():
        if column.name in ("x", "y"):
            flat = flat.fill_null(float("nan"))
        else:
            lost = np.flatnonzero(flat.is_null().to_numpy())
            empty = set((np.searchsorted(ends, lost, side="right") - 1).tolist())
            flat = flat.fill_null(strategy="zero")
    values = flat.to_numpy() if len(flat) else np.zeros(0, dtype=_DTYPES[kind])
    is_there = sizes.is_not_null().to_list()
    pieces = zip(is_there, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [values[low:high] if there else None for there, low, high in pieces], empty


_DTYPES: Mapping[Any, str] = {
    pl.Int64: "int64", pl.Int32: "int32", pl.Int16: "int16", pl.Float64: "float64", pl.Boolean: "bool"
}  # fmt: skip


def _wrong(row: _Row) -> list[Problem]:
    """What is wrong with the arrays of a row; nothing is made of those that do not fit together."""
    arrays, names = row.arrays, row.names
    lost = [name for name in NEEDED if row.plain.get(name, arrays.get(name, names.get(name))) is None]
    lost += row.empty
    lost += [name for name, own in names.items() if not all(isinstance(one, str) for one in own)]
    problems = [Problem("has no value, or an empty or too large one.", name) for name in dict.fromkeys(lost)]
    said = row.plain["name"]
    if said is not None and (not said.strip() or not said.isprintable() or len(said) > 200):
        problems.append(Problem("must be one line of up to 200 printable characters.", "name"))
    if problems:
        return problems
    problems = [Problem(f"has {n} values; {need} are needed.", name) for name, n, need in _sizes(row)]
    if problems:
        return problems
    return [Problem(what, name) for name, is_wrong, what in _contents(row) if is_wrong]


def _sizes(row: _Row) -> Iterator[tuple[str, int, int]]:
    """The lists whose length does not fit: their name, their length, and what it should be."""
    arrays = {name: array for name, array in row.arrays.items() if array is not None}
    n_states, n_pairs, n_links = (len(arrays[name]) - add for name, add in
                                  (("offsets", 1), ("action", 0), ("successor", 0)))  # fmt: skip
    need = {
        "reward": n_pairs, "successor_offsets": n_pairs + 1, "probability": n_links, "goal": n_pairs,
        "is_move": n_pairs, "counted": n_states, "handover": n_states, "x": n_states, "y": n_states,
    }  # fmt: skip
    if n_states < 1:
        yield "offsets", n_states + 1, 2
    if ("x" in arrays) != ("y" in arrays):
        yield "y" if "x" in arrays else "x", 0, n_states
    if row.names["states"] and len(row.names["states"]) != n_states:
        yield "states", len(row.names["states"]), n_states
    yield from ((name, len(arrays[name]), n) for name, n in need.items()
                if name in arrays and len(arrays[name]) != n)  # fmt: skip


def _contents(row: _Row) -> Iterator[tuple[str, bool, str]]:
    """What may be wrong in lists of fitting lengths: which, whether it is, and in words."""
    a: dict[str, Any] = row.arrays
    offsets, begins, action = a["offsets"], a["successor_offsets"], a["action"]
    n_states, n_pairs, n_links = len(offsets) - 1, len(action), len(a["successor"])
    steps, links = np.diff(offsets), np.diff(begins)
    are_offsets = offsets[0] == 0 and offsets[-1] == n_pairs and (steps >= 0).all()
    are_begins = begins[0] == 0 and begins[-1] == n_links and (links >= 1).all()
    yield "offsets", not are_offsets, "must rise from 0 to the number of pairs."
    yield "successor_offsets", not are_begins, "must rise from 0 to the number of successors, for every pair."
    yield "offsets", n_states > MAX_STATES, f"has more than {MAX_STATES:,} states."
    names = row.names["actions"]
    yield "actions", len(names) > MAX_ACTIONS, f"has more than {MAX_ACTIONS:,} names."
    yield "actions", len(set(names)) < len(names), "must differ from each other."
    yield "action", _outside(action, 0, len(names)), "must be numbers of actions, counted from 0."
    yield "reward", not (np.abs(a["reward"]) <= MAX_REWARD).all(), f"must be at most {MAX_REWARD:g} in size."
    yield "successor", _outside(a["successor"], 0, n_states), "must be numbers of states, counted from 0."
    if are_offsets and n_pairs > 1:
        same = np.diff(np.repeat(np.arange(n_states), steps)) == 0
        yield "action", bool((np.diff(action)[same] <= 0).any()), "must rise within a state."
    if are_begins and n_pairs:
        sums = np.add.reduceat(a["probability"], begins[:-1])
        is_bad = not (np.abs(sums - 1) <= 1e-9).all() or not (a["probability"] >= 0).all()
        yield "probability", is_bad, "must not be negative, and sum to one for every pair."
    goal, handover = a["goal"], a["handover"]
    yield (
        "goal",
        goal is not None and _outside(goal, -1, len(row.names["goals"])),
        ("must be numbers of goals, or -1."),
    )
    yield "handover", handover is not None and _outside(handover, 0, n_states), "must be numbers of states."
    horizon = row.plain["horizon"]
    is_odd = horizon is not None and (horizon < 1 or (n_states - 1) % horizon > 0)
    yield "horizon", is_odd, "must be 1 or more, and fit the number of states (horizon × states + 1)."


def _outside(values: NDArray[Any], low: int, end: int) -> bool:
    return bool(len(values)) and not low <= int(values.min()) <= int(values.max()) < end


def _made(row: _Row) -> tuple[TaskModel | None, list[Problem]]:
    """The task of a row whose arrays fit together, and what is still wrong with it."""
    plain, names = row.plain, row.names
    a: dict[str, Any] = row.arrays
    n_states, n_pairs = len(a["offsets"]) - 1, len(a["action"])
    pairs = Pairs(
        offsets=a["offsets"],
        action=a["action"],
        reward=a["reward"],
        successor_offsets=a["successor_offsets"],
        successor=a["successor"],
        probability=a["probability"],
        actions=names["actions"],
    )
    at = None if a["x"] is None else np.stack([a["x"], a["y"]], axis=1)
    usual: dict[str, Any] = {
        "goal": np.full(n_pairs, -1, dtype=np.int16),
        "counted": np.ones(n_states, dtype=np.bool_),
        "handover": np.arange(n_states, dtype=np.int32),
    }
    given: dict[str, Any] = {name: usual[name] if a[name] is None else a[name] for name in usual}
    try:
        moves = a["is_move"]
        if moves is None:
            moves = np.zeros(n_pairs, dtype=np.bool_) if at is None else find_moves(pairs, at)
        task = TaskModel(
            name=plain["name"],
            offsets=pairs.offsets,
            action=pairs.action,
            reward=pairs.reward,
            successor_offsets=pairs.successor_offsets,
            successor=pairs.successor,
            probability=pairs.probability,
            actions=pairs.actions,
            gamma=plain["gamma"],
            tau=plain["tau"],
            normaliser=plain["normaliser"] or "sum",
            start=plain["start"] or 0,
            goals=names["goals"],
            is_move=moves,
            states=names["states"],
            horizon=plain["horizon"],
            coordinates=at,
            **given,
        )
    except TaskError as error:
        return None, list(error.problems) or [Problem(error.message)]
    for name, found in (("fingerprint", task.fingerprint), ("sha256", _hash(task))):
        if plain[name] not in (None, found):
            return None, [Problem(*DAMAGED[:1], hint=DAMAGED[1])]
    return task, []
