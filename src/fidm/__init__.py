"""fidm reads how a person decides, and what it costs them, from what they say and do.

The public names below are imported when they are first used, so ``import fidm`` is fast.

>>> import fidm
>>> task = fidm.load_task("grocery")
>>> values = fidm.solve(task)
>>> fidm.check_task(task, vary=False).usable
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.cohort import Cohort
    from fidm.errors import DataError, FidmError, FitError, GroundingError, Problem, TaskError
    from fidm.evidence.evidence import Evidence, find_evidence
    from fidm.evidence.localization import Localization, localize
    from fidm.experiments.compare import Comparison, compare
    from fidm.fit.averaged import average_profiles, profile_draws
    from fidm.fit.choices import fit_choices
    from fidm.fit.draws import Draws
    from fidm.fit.effort_alone import EffortFit, fit_effort
    from fidm.fit.factorized import Model
    from fidm.fit.fitted import Fit, load_fit
    from fidm.fit.profile import Profile
    from fidm.grounding.ground import Grounded, ground
    from fidm.grounding.hybrid import Hybrid
    from fidm.grounding.llm.grounder import LanguageModel
    from fidm.grounding.review.apply import apply_review
    from fidm.grounding.rules.grounder import Rules
    from fidm.io.dialogs import read
    from fidm.io.study import Study, read_cohort, write_cohort
    from fidm.io.tables import make_cohort
    from fidm.report.report import write_report
    from fidm.simulate.cohort import simulate_cohort
    from fidm.simulate.talk import simulate_talks
    from fidm.simulate.twin import simulate_study
    from fidm.simulate.walker import Habits
    from fidm.talk import Transcript, Transcripts, Turn
    from fidm.tasks.behaviour import choice_probabilities, walk
    from fidm.tasks.check import TaskCheck, check_task
    from fidm.tasks.compile import TaskRules, compile_task, load_task
    from fidm.tasks.model import TaskModel
    from fidm.tasks.solve import solve
    from fidm.tasks.spec import TaskSpec, builtin_tasks, builtin_text, parse_task, read_task
    from fidm.types import Trace, Values

__version__ = "0.1.0"

_HOME = {
    "Cohort": "fidm.cohort",
    "Comparison": "fidm.experiments.compare",
    "DataError": "fidm.errors",
    "Draws": "fidm.fit.draws",
    "EffortFit": "fidm.fit.effort_alone",
    "Evidence": "fidm.evidence.evidence",
    "FidmError": "fidm.errors",
    "Fit": "fidm.fit.fitted",
    "FitError": "fidm.errors",
    "Grounded": "fidm.grounding.ground",
    "GroundingError": "fidm.errors",
    "Habits": "fidm.simulate.walker",
    "Hybrid": "fidm.grounding.hybrid",
    "LanguageModel": "fidm.grounding.llm.grounder",
    "Localization": "fidm.evidence.localization",
    "Model": "fidm.fit.factorized",
    "Problem": "fidm.errors",
    "Profile": "fidm.fit.profile",
    "Rules": "fidm.grounding.rules.grounder",
    "Study": "fidm.io.study",
    "TaskCheck": "fidm.tasks.check",
    "TaskError": "fidm.errors",
    "TaskModel": "fidm.tasks.model",
    "TaskRules": "fidm.tasks.compile",
    "TaskSpec": "fidm.tasks.spec",
    "Trace": "fidm.types",
    "Transcript": "fidm.talk",
    "Transcripts": "fidm.talk",
    "Turn": "fidm.talk",
    "Values": "fidm.types",
    "apply_review": "fidm.grounding.review.apply",
    "average_profiles": "fidm.fit.averaged",
    "builtin_tasks": "fidm.tasks.spec",
    "builtin_text": "fidm.tasks.spec",
    "check_task": "fidm.tasks.check",
    "choice_probabilities": "fidm.tasks.behaviour",
    "compare": "fidm.experiments.compare",
    "compile_task": "fidm.tasks.compile",
    "find_evidence": "fidm.evidence.evidence",
    "fit_choices": "fidm.fit.choices",
    "fit_effort": "fidm.fit.effort_alone",
    "ground": "fidm.grounding.ground",
    "load_fit": "fidm.fit.fitted",
    "load_task": "fidm.tasks.compile",
    "localize": "fidm.evidence.localization",
    "make_cohort": "fidm.io.tables",
    "parse_task": "fidm.tasks.spec",
    "profile_draws": "fidm.fit.averaged",
    "read": "fidm.io.dialogs",
    "read_cohort": "fidm.io.study",
    "read_task": "fidm.tasks.spec",
    "simulate_cohort": "fidm.simulate.cohort",
    "simulate_study": "fidm.simulate.twin",
    "simulate_talks": "fidm.simulate.talk",
    "solve": "fidm.tasks.solve",
    "walk": "fidm.tasks.behaviour",
    "write_cohort": "fidm.io.study",
    "write_report": "fidm.report.report",
}

__all__ = [
    "Cohort",
    "Comparison",
    "DataError",
    "Draws",
    "EffortFit",
    "Evidence",
    "FidmError",
    "Fit",
    "FitError",
    "Grounded",
    "GroundingError",
    "Habits",
    "Hybrid",
    "LanguageModel",
    "Localization",
    "Model",
    "Problem",
    "Profile",
    "Rules",
    "Study",
    "TaskCheck",
    "TaskError",
    "TaskModel",
    "TaskRules",
    "TaskSpec",
    "Trace",
    "Transcript",
    "Transcripts",
    "Turn",
    "Values",
    "apply_review",
    "average_profiles",
    "builtin_tasks",
    "builtin_text",
    "check_task",
    "choice_probabilities",
    "compare",
    "compile_task",
    "find_evidence",
    "fit_choices",
    "fit_effort",
    "ground",
    "load_fit",
    "load_task",
    "localize",
    "make_cohort",
    "parse_task",
    "profile_draws",
    "read",
    "read_cohort",
    "read_task",
    "simulate_cohort",
    "simulate_study",
    "simulate_talks",
    "solve",
    "walk",
    "write_cohort",
    "write_report",
]


_MODULES = {
    "channels": "fidm.channels",
    "evidence": "fidm.evidence",
    "plot": "fidm.plot",
    "sklearn": "fidm.sklearn",
    "study": "fidm.study",
    "testing": "fidm.testing",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'fidm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *_MODULES})
