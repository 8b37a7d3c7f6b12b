"""Studies of simulated people, and the paper's experiments on any study.

Each experiment is a function here and a verb of the command line:

>>> import fidm.study
>>> task = fidm.load_task("errands")
>>> found = fidm.study.recover(task, n=40, seed=1, methods=("eb",), conditions=("complete",))
>>> sorted(found.record.tasks)
['errands']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fidm import lazy_names

if TYPE_CHECKING:
    from fidm.classify.classify import classify
    from fidm.classify.result import Classification
    from fidm.experiments.calibrate import Calibration, calibrate
    from fidm.experiments.compare import correlate
    from fidm.experiments.families import Families, compare_families
    from fidm.experiments.learning import Learning, learning
    from fidm.experiments.matched import Matched, matched
    from fidm.experiments.recover import Recovery, recover
    from fidm.experiments.reliability import Reliability, reliability
    from fidm.experiments.select import Selection, select
    from fidm.simulate.acting import Style
    from fidm.simulate.cohort import People, simulate_cohort
    from fidm.simulate.structure import replicate
    from fidm.simulate.talk import simulate_talks
    from fidm.simulate.twin import SimulatedStudy, simulate_study
    from fidm.simulate.walker import Habits

__all__ = [
    "Calibration",
    "Classification",
    "Families",
    "Habits",
    "Learning",
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
    "correlate",
    "learning",
    "matched",
    "recover",
    "reliability",
    "replicate",
    "select",
    "simulate_cohort",
    "simulate_study",
    "simulate_talks",
]

_HOMES = {
    "fidm.classify.classify": ["classify"],
    "fidm.classify.result": ["Classification"],
    "fidm.experiments.calibrate": ["Calibration", "calibrate"],
    "fidm.experiments.compare": ["correlate"],
    "fidm.experiments.families": ["Families", "compare_families"],
    "fidm.experiments.learning": ["Learning", "learning"],
    "fidm.experiments.matched": ["Matched", "matched"],
    "fidm.experiments.recover": ["Recovery", "recover"],
    "fidm.experiments.reliability": ["Reliability", "reliability"],
    "fidm.experiments.select": ["Selection", "select"],
    "fidm.simulate.acting": ["Style"],
    "fidm.simulate.cohort": ["People", "simulate_cohort"],
    "fidm.simulate.structure": ["replicate"],
    "fidm.simulate.talk": ["simulate_talks"],
    "fidm.simulate.twin": ["SimulatedStudy", "simulate_study"],
    "fidm.simulate.walker": ["Habits"],
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
