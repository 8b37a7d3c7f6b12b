"""A whole report as one plain dict: its sections, what people share, and the people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import fidm
from fidm.report.opening import Opened
from fidm.report.parts import Progress
from fidm.report.people import people_parts, shared_part
from fidm.report.sections_method import method_section
from fidm.report.sections_model import localisation_section, parameters_section, reliability_section
from fidm.report.sections_status import classification_section
from fidm.report.sections_study import grounding_section, overview, task_section
from fidm.report.words import NOT_A_DIAGNOSIS

KIND = "fidm report"
"""What a report's data begin with, so that nothing else is taken for one."""

SCHEMA = 1
"""The version of the dict's layout."""


def summarize(
    opened: Opened,
    *,
    settings: Mapping[str, Any],
    chosen: Sequence[str],
    classify: bool,
    label: str,
    normal: str,
    seed: int,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Return everything a report says, as plain values.

    Parameters
    ----------
    opened : Opened
        The study.
    settings : mapping
        What was asked for, for the record.
    chosen : sequence of str
        Whose parts, in this order.
    classify, label, normal, seed, workers, on_progress
        As in :func:`fidm.report.report.build_report`.
    """
    sections = [
        overview(opened),
        task_section(opened, on_progress=on_progress),
        grounding_section(opened),
        parameters_section(opened),
        reliability_section(opened, seed=seed, workers=workers, on_progress=on_progress),
        localisation_section(opened, seed=seed, on_progress=on_progress),
        classification_section(
            opened,
            wanted=classify,
            label=label,
            normal=normal,
            seed=seed,
            workers=workers,
            on_progress=on_progress,
        ),
        method_section(opened, settings=settings),
    ]
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "fidm_version": fidm.__version__,
        "title": _title(opened),
        "statement": NOT_A_DIAGNOSIS,
        "deidentified": opened.known.is_deidentified,
        "sections": sections,
        "shared": shared_part(opened.known, chosen=chosen),
        "people": list(people_parts(opened.known, chosen=chosen, on_progress=on_progress)),
    }


def _title(opened: Opened) -> str:
    if opened.known.is_deidentified:
        return "Report of a study"
    return f"Report of {opened.folder.resolve().name}"
