"""What a result must say about itself to be made again, and how it is written.

Every experiment gives a *result*: a frozen object with a :class:`Record` (experiment, version of the package,
hash of each task, seed, settings, hash of the data), tables, and ``to_dict()``. :func:`write_result` puts it
into files that other programs read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors as cs

import fidm
from fidm.cohort import Cohort
from fidm.files import whole_file

if TYPE_CHECKING:
    from fidm.tasks.model import TaskModel

SCHEMA = 2
"""The version of the files' layout; results of another one are not read, but made again."""


@dataclass(frozen=True, slots=True)
class Record:
    """How a result came about; the same record and data give the same result.

    Parameters
    ----------
    experiment : str
        The verb: ``"recover"``, ``"matched"`` and so on.
    version : str
        The version of the package.
    tasks : mapping of str to str
        The hash of every task by its name (:attr:`fidm.TaskModel.fingerprint`).
    seed : int or None
        The seed; None where nothing is drawn.
    settings : mapping
        Every setting that changes a number: plain numbers, texts, and lists of them.
    data : str or None
        A hash of the people the result is about (:func:`hash_cohort`); None where there are none. Where
        others tell what people share, or groups matter, the settings have hashes of those too.
    """

    experiment: str
    version: str
    tasks: Mapping[str, str]
    seed: int | None
    settings: Mapping[str, Any]
    data: str | None = None

    @classmethod
    def of(
        cls,
        experiment: str,
        tasks: TaskModel | Iterable[TaskModel],
        *,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
        cohort: Cohort | None = None,
    ) -> Record:
        """Make the record of an experiment.

        Examples
        --------
        >>> import fidm
        >>> from fidm.record import Record
        >>> Record.of("recover", fidm.load_task("errands"), seed=1).tasks["errands"][:3].isalnum()
        True
        """
        models: Iterable[TaskModel] = tasks if isinstance(tasks, Iterable) else (tasks,)
        return cls(
            experiment=experiment,
            version=fidm.__version__,
            tasks={task.name: task.fingerprint for task in models},
            seed=None if seed is None else int(seed),
            settings=dict(settings or {}),
            data=None if cohort is None else hash_cohort(cohort),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "schema": SCHEMA,
            "experiment": self.experiment,
            "fidm_version": self.version,
            "tasks": dict(self.tasks),
            "seed": self.seed,
            "settings": plain(self.settings),
            "data": self.data,
        }


class Result(Protocol):
    """What every experiment gives."""

    @property
    def record(self) -> Record:
        """How it came about."""

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Its tables by name, each written as a CSV file; the name "" stands for the main one."""

    def to_dict(self) -> dict[str, Any]:
        """Return its numbers as plain values, without the record."""


def hash_cohort(cohort: Cohort) -> str:
    """Return a hash of who did what and what it cost them; what else is known of people is left out."""
    digest = hashlib.sha256("\n".join(cohort.ids.to_list()).encode())
    for name in ("episode_offsets", "step_offsets", "segment_offsets", "state", "action", "end_state"):
        digest.update(np.ascontiguousarray(getattr(cohort, name)).tobytes())
    for array in (cohort.weight, cohort.segment, cohort.inferred):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    for name in sorted(cohort.segments.columns):
        digest.update(name.encode())
        digest.update("\n".join(map(str, cohort.segments[name].to_list())).encode())
    return digest.hexdigest()


def hash_values(values: NDArray[Any]) -> str:
    """Return a short hash of numbers: who belongs to which group, or what was learned."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: no arrays, and None for what is no finite number."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, pl.DataFrame):
        return [plain(row) for row in value.iter_rows(named=True)]
    if isinstance(value, pl.Series | list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def to_json(result: Result) -> str:
    """Return a result and its record as JSON."""
    return json.dumps(
        {**result.record.to_dict(), "result": plain(result.to_dict())},
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def read_record(path: Path) -> tuple[Record, dict[str, Any]] | None:
    """Return a written result's record and numbers; None where there is no file, or one that is not ours."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        return None
    try:
        record = Record(
            said["experiment"],
            said["fidm_version"],
            said["tasks"],
            said["seed"],
            said["settings"],
            said["data"],
        )
        return record, dict(said["result"])
    except (KeyError, TypeError, ValueError):
        return None


def write_result(result: Result, folder: str | Path) -> tuple[Path, ...]:
    """Write a result: ``recover.json`` with everything, and a CSV file per table; each whole or not at all.

    Parameters
    ----------
    result : Result
        What to write.
    folder : path
        Where to; made if need be.
    """
    place, name = Path(folder), result.record.experiment
    found = [place / f"{name}.json"]
    with whole_file(found[0]) as part:
        part.write_text(to_json(result) + "\n", "utf-8")
    for key, table in result.tables.items():
        found.append(place / (f"{name}-{key}.csv" if key else f"{name}.csv"))
        with whole_file(found[-1]) as part:
            table.with_columns(cs.float().fill_nan(None)).write_csv(part)
    return tuple(found)
