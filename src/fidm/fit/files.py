"""Keeping a fit in a file that a person can read: numbers, names, the tasks' hashes; no code.

The file is JSON. Numbers are written so that they come back to the last bit. A task itself is not in
the file: it is given again, or found among the built-in ones, and its hash must be the one the fit was
made with, since η means nothing without the values it multiplies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fidm
from fidm.errors import FitError
from fidm.files import whole_file
from fidm.fit.common import one_of, valid_inferred, valid_level
from fidm.fit.fitted import Fit
from fidm.fit.joint import JointPrior
from fidm.fit.offsets import Population
from fidm.fit.population import Learned
from fidm.fit.sensitivity import SensitivityPrior
from fidm.model.channels import Channel
from fidm.model.effort import design_names
from fidm.model.more_channels import KINDS
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.tasks.spec import builtin_tasks
from fidm.tasks.stack import TaskSet
from fidm.types import read_only

FORMAT = "fidm fit"
SCHEMA = 2
READABLE = (1, 2)
"""Files of schema 1 do not say how much inferred moves count; they are older than the column of that name."""


def save_fit(fit: Fit, path: str | Path) -> None:
    """Write a fit to a file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(json.dumps(to_dict(fit), indent=2, ensure_ascii=False) + "\n", "utf-8")


def to_dict(fit: Fit) -> dict[str, Any]:
    """Return everything a fit consists of, except the tasks."""
    channels = []
    for channel in fit.channels:
        learned = fit.populations[channel.name]
        shared = learned.population
        names = design_names(channel, fit.levels)
        channels.append(
            {
                **channel.to_dict(),
                "coefficients": dict(zip(names, shared.coefficients.tolist(), strict=True)),
                "shape": shared.shape if channel.shape_name else None,
                "prior": {"mean": shared.mean, "sd": shared.sd} if math.isfinite(shared.sd) else None,
                "se": {key: float(value) for key, value in learned.se.items()},
                "warnings": list(learned.warnings),
            }
        )
    joint = None
    if fit.joint is not None:
        joint = {
            "parameters": ["log_action_sensitivity", *fit.parameters[1:]],
            "mean": fit.joint.mean.tolist(),
            "covariance": fit.joint.covariance.tolist(),
        }
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "fidm_version": fidm.__version__,
        "method": fit.method,
        "population": fit.population,
        "level": fit.level,
        "people": {"training": fit.n_people, "learned_from": fit.n_learned},
        "tasks": [{"name": task.name, "sha256": task.fingerprint} for task in fit.tasks.tasks],
        "action_sensitivity": {
            "log_mean": _plain(fit.prior.mean),
            "log_sd": _plain(fit.prior.sd),
            "se": {"log_mean": _plain(fit.prior.mean_se), "log_sd": _plain(fit.prior.sd_se)},
            "lapse": fit.lapse,
            "lapse_se": _plain(fit.lapse_se),
            "inferred": fit.inferred,
        },
        "levels": {column: list(levels) for column, levels in fit.levels.items()},
        "channels": channels,
        "joint": joint,
    }


def load_fit(
    path: str | Path,
    task: TaskModel | Iterable[TaskModel] | Mapping[str, TaskModel] | None = None,
    *,
    channels: Sequence[type[Channel]] = (),
) -> Fit:
    """Read a fit from a file.

    Parameters
    ----------
    path : path
        A file written by :meth:`Fit.save`.
    task : TaskModel, or several, optional
        The tasks it was fitted on; left out, built-in ones of the same names.
    channels : sequence of Channel classes, optional
        Channels of your own that the fit uses.
    """
    where = Path(path)
    try:
        saved = json.loads(where.read_text("utf-8"))
    except OSError as error:
        raise FitError(f"cannot be read: {error.strerror}.", source=str(where)) from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise FitError("is not a saved fit: it is not JSON.", source=str(where)) from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise FitError("is not a saved fit.", source=str(where))
    if saved.get("schema") not in READABLE:
        raise FitError(
            f"has the schema {saved.get('schema')}; this version of fidm reads 1 and 2. "
            f"It was written by fidm {saved.get('fidm_version')}.",
            source=str(where),
        )
    try:
        return _fit_of(saved, task, {**KINDS, **{kind.kind: kind for kind in channels}}, str(where))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FitError(f"is damaged: {type(error).__name__} {error}.", source=str(where)) from None


def _fit_of(saved: dict[str, Any], task: Any, kinds: Mapping[str, type[Channel]], source: str) -> Fit:
    tasks = TaskSet.of(_builtin(saved, source) if task is None else task)
    _check_tasks(tasks, saved, source)
    channels, populations = [], {}
    for entry in saved["channels"]:
        if entry["kind"] not in kinds:
            raise FitError(
                f"uses a channel of the kind {entry['kind']!r}. Give its class: load_fit(…, channels=[…]).",
                source=source,
            )
        prior = {"mean": 0.0, "sd": math.inf} if entry["prior"] is None else entry["prior"]
        known = ("kind", "coefficients", "shape", "prior", "se", "warnings")
        options = {key: value for key, value in entry.items() if key not in known}
        channel = kinds[entry["kind"]](**{**options, "design": tuple(entry["design"])})
        levels = {column: tuple(names) for column, names in saved["levels"].items()}
        if list(entry["coefficients"]) != list(design_names(channel, levels)):
            raise ValueError(f"the coefficients of {channel.name} are not those of its design")
        shape = 1.0 if entry["shape"] is None else float(entry["shape"])
        shared = Population(
            np.array(list(entry["coefficients"].values()), dtype=np.float64),
            shape,
            float(prior["mean"]),
            float(prior["sd"]),
        )
        channels.append(channel)
        populations[channel.name] = Learned(shared, dict(entry["se"]), tuple(entry["warnings"]))
    action = saved["action_sensitivity"]
    one_of("method", saved["method"], ("eb", "mle"))
    one_of("population", saved["population"], ("random", "pooled"))
    valid_level(saved["level"])
    if saved["method"] == "eb" and not (action["log_sd"] or 0) > 0:
        raise ValueError("there is no prior of the action sensitivity")
    joint = saved["joint"]
    inferred = valid_inferred(action["inferred"] if saved["schema"] > 1 else 0.0)
    return Fit(
        tasks=tasks,
        q=read_only(tasks.values([solve(model) for model in tasks.tasks])),
        channels=tuple(channels),
        levels={column: tuple(levels) for column, levels in saved["levels"].items()},
        prior=SensitivityPrior(
            _number(action["log_mean"]),
            _number(action["log_sd"]),
            _number(action["se"]["log_mean"]),
            _number(action["se"]["log_sd"]),
        ),
        lapse=float(action["lapse"]),
        lapse_se=_number(action["lapse_se"]),
        populations=populations,
        method=saved["method"],
        population=saved["population"],
        level=float(saved["level"]),
        n_people=int(saved["people"]["training"]),
        n_learned=int(saved["people"]["learned_from"]),
        joint=None if joint is None else JointPrior(np.array(joint["mean"]), np.array(joint["covariance"])),
        inferred=inferred,
    )


def _builtin(saved: dict[str, Any], source: str) -> list[TaskModel]:
    names = [entry["name"] for entry in saved["tasks"]]
    missing = [name for name in names if name not in builtin_tasks()]
    if missing:
        raise FitError(
            f"was fitted on the task {missing[0]!r}, which is not built in. Give it: load_fit(path, task).",
            source=source,
        )
    return [load_task(name) for name in names]


def _check_tasks(tasks: TaskSet, saved: dict[str, Any], source: str) -> None:
    expected = {entry["name"]: entry["sha256"] for entry in saved["tasks"]}
    if list(expected) != list(tasks.names):
        raise FitError(
            f"was fitted on {_few(list(expected))}, but {_few(tasks.names)} was given.", source=source
        )
    for task in tasks.tasks:
        if task.fingerprint != expected[task.name]:
            raise FitError(
                f"was fitted on another version of the task {task.name!r}: its map, rules, rewards or "
                "settings differ, so sensitivities would not be comparable. Give the task it was fitted on, "
                "or fit again.",
                source=source,
            )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
