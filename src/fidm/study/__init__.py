"""Studies of simulated people, and the paper's experiments on any study.

Each experiment is a function here and a verb of the command line:

>>> import fidm.study
>>> task = fidm.load_task("errands")
>>> found = fidm.study.recover(task, n=40, seed=1, methods=("eb",), conditions=("complete",))
>>> sorted(found.record.tasks)
['errands']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.study.classified import Classification
    from fidm.study.classifying import classify
    from fidm.study.families import compare_families
    from fidm.study.families_found import Families
    from fidm.study.matching import Matched, matched
    from fidm.study.recovered import Recovery
    from fidm.study.recovering import recover
    from fidm.study.repeated import Reliability
    from fidm.study.repeating import reliability
    from fidm.study.selected import Selection
    from fidm.study.selecting import select
    from fidm.study.simulate import People, simulate_cohort
    from fidm.study.talk import Style, simulate_talks
    from fidm.study.twin import SimulatedStudy, simulate_study
    from fidm.study.walker import Habits

_HOME = {
    "Classification": "classified",
    "Families": "families_found",
    "Habits": "walker",
    "Matched": "matching",
    "People": "simulate",
    "Recovery": "recovered",
    "Reliability": "repeated",
    "Selection": "selected",
    "SimulatedStudy": "twin",
    "Style": "talk",
    "classify": "classifying",
    "compare_families": "families",
    "matched": "matching",
    "recover": "recovering",
    "reliability": "repeating",
    "select": "selecting",
    "simulate_cohort": "simulate",
    "simulate_study": "twin",
    "simulate_talks": "talk",
}

__all__ = [
    "Classification",
    "Families",
    "Habits",
    "Matched",
    "People",
    "Recovery",
    "Reliability",
    "Selection",
    "SimulatedStudy",
    "Style",
    "classify",
    "compare_families",
    "matched",
    "recover",
    "reliability",
    "select",
    "simulate_cohort",
    "simulate_study",
    "simulate_talks",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fidm.study.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fidm.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
