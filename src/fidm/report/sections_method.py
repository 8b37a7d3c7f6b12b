"""The section that says how the report came about: methods in words, versions, hashes, settings."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from fidm.report.opening import Opened, doubtful_weight
from fidm.report.parts import section, table, text_column

LIBRARIES = ("numpy", "scipy", "polars", "scikit-learn", "matplotlib", "jinja2")

SHAREABLE = (
    "grounder", "fidm", "fidm_version", "rules_version", "rules", "model", "check_share", "model_weight",
    "model_file_sha256", "template_sha256", "schema_sha256", "languages_sha256", "settings",
    "task", "task_fingerprint", "counting", "segmenter", "segmenting", "weighing", "language",
    "context_turns", "n_steps", "n_segments",
)  # fmt: skip
"""What a de-identified report may say of a grounding: no names of people or files, and no hash with them."""

METHODS = (
    "Unexpectedness is −log of the probability of an action under the person's own fitted policy: 0 is an "
    "action nobody would be surprised at, such as the only one there was; ∞ is one that somebody who only "
    "ever chose best actions would never take.",
    "An effort residual is the logarithm of observed over expected given the moves, 1 added to counts (for "
    "pause presence a difference of probabilities). Those of durations and counts are relative to the mean, "
    "and since speech is skewed a typical segment lies below 0.",
    "Estimates describe how a person went through this task on that day. They depend on the task, on the "
    "people they are compared with and on how speech was read as moves.",
)


def method_section(opened: Opened, *, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes on methods, and all that is needed to make the report again.

    Parameters
    ----------
    opened : Opened
        The study.
    settings : mapping
        What the report was asked for.
    """
    record = opened.known.found.record
    rows: list[tuple[str, Any]] = [
        ("fidm", record.version),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in LIBRARIES),
        *((f"task {name}", hash_) for name, hash_ in record.tasks.items()),
        *(
            [] if opened.known.is_deidentified else [("data", record.data)]
        ),  # a hash with people's names in it
        *((f"fit: {key}", value) for key, value in _flat(record.settings)),
        *((f"report: {key}", value) for key, value in _flat(settings)),
    ]
    tables = [table("provenance", "How this report came about", _COLUMNS, rows)]
    how = opened.provenance
    if opened.known.is_deidentified:
        how = {key: how[key] for key in SHAREABLE if key in how}
    if how:
        tables.append(table("grounding-provenance", "How words became moves", _COLUMNS, _flat(how)))
    said = [
        METHODS[0],
        _counting_words(opened),
        *METHODS[1:],
        f"What people share was {opened.source.rstrip('.')}.",
    ]
    return section("method", "Methods and provenance", said, tables=tables)


def _counting_words(opened: Opened) -> str:
    """Which actions count, as this fit and this grounding have it."""
    inferred, doubtful = opened.known.fit.inferred, doubtful_weight(opened.provenance)
    weights = {"that a planner filled in": inferred}
    if doubtful is not None:
        weights["of segments that need review"] = doubtful
    never = [what for what, weight in weights.items() if weight == 0]
    less = [f"those {what} with weight {weight:g}" for what, weight in weights.items() if 0 < weight < 1]
    said = "Leaving, and waiting where the task leaves it out, do not count in action sensitivity"
    said += f", nor do actions {' or '.join(never)}; " if never else "; "
    said += "such steps are hatched. A step with one legal action counts, though it says nothing about η."
    return said + (f" Other actions count less: {', and '.join(less)}." if less else "")


_COLUMNS = (text_column("what"), text_column("value"))


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Settings within settings as rows."""
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}: ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value))
        else:
            yield name, f"{value:g}" if isinstance(value, float) else value
