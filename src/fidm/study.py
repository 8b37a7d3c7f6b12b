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
    from fidm.classify.classify import classify
    from fidm.classify.result import Classification
    from fidm.experiments.calibrate import Calibration, calibrate
    from fidm.experiments.families import Families, compare_families
    from fidm.experiments.matched import Matched, matched
    from fidm.experiments.recover import Recovery, recover
    from fidm.experiments.reliability import Reliability, reliability
    from fidm.experiments.select import Selection, select
    from fidm.simulate.acting import Style
    from fidm.simulate.cohort import People, simulate_cohort
    from fidm.simulate.talk import simulate_talks
    from fidm.simulate.twin import SimulatedStudy, simulate_study
    from fidm.simulate.walker import Habits

_HOME = {
    "Calibration": "experiments.calibrate",
    "Classification": "classify.result",
    "Families": "experiments.families",
    "Habits": "simulate.walker",
    "Matched": "experiments.matched",
    "People": "simulate.cohort",
    "Recovery": "experiments.recover",
    "Reliability": "experiments.reliability",
    "Selection": "experiments.select",
    "SimulatedStudy": "simulate.twin",
    "Style": "simulate.talk",
    "calibrate": "experiments.calibrate",
    "classify": "classify.classify",
    "compare_families": "experiments.families",
    "matched": "experiments.matched",
    "recover": "experiments.recover",
    "reliability": "experiments.reliability",
    "select": "experiments.select",
    "simulate_cohort": "simulate.cohort",
    "simulate_study": "simulate.twin",
    "simulate_talks": "simulate.talk",
}

__all__ = [
    "Calibration",
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
    "calibrate",
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
        return getattr(importlib.import_module(f"fidm.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fidm.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
