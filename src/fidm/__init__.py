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
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fidm.cohort import Cohort
    from fidm.errors import DataError, FidmError, FitError, GroundingError, Problem, TaskError
    from fidm.evidence.evidence import Evidence, find_evidence
    from fidm.evidence.localization import Localization, localize
    from fidm.experiments.compare import compare
    from fidm.experiments.comparison import Comparison
    from fidm.experiments.rivals import ModelComparison, compare_models
    from fidm.fit.action_fit import ActionFit, fit_action_model
    from fidm.fit.averaged import average_profiles, profile_draws
    from fidm.fit.choices import ChoicesFit, fit_choices
    from fidm.fit.draws import Draws
    from fidm.fit.effort_alone import EffortFit, fit_effort
    from fidm.fit.factorized import Model
    from fidm.fit.fitted import Fit, load_fit
    from fidm.fit.nuts import Posterior
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
    from fidm.simulate.choosing import simulate_choices
    from fidm.simulate.cohort import simulate_cohort
    from fidm.simulate.talk import simulate_talks
    from fidm.simulate.twin import simulate_study
    from fidm.simulate.walker import Habits
    from fidm.talk import Transcript, Transcripts, Turn
    from fidm.tasks.behaviour import choice_probabilities, walk
    from fidm.tasks.check import TaskCheck, check_task
    from fidm.tasks.compile import TaskRules, compile_task, load_task, load_tasks
    from fidm.tasks.kept import save_tasks
    from fidm.tasks.model import TaskModel
    from fidm.tasks.solve import solve
    from fidm.tasks.spec import TaskSpec, builtin_tasks, builtin_text, parse_task, read_task
    from fidm.tasks.together import TaskSetCheck, check_tasks
    from fidm.types import Trace, Values

__version__ = "0.1.0"

__all__ = [
    "ActionFit",
    "ChoicesFit",
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
    "ModelComparison",
    "Posterior",
    "Problem",
    "Profile",
    "Rules",
    "Study",
    "TaskCheck",
    "TaskError",
    "TaskModel",
    "TaskRules",
    "TaskSetCheck",
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
    "check_tasks",
    "choice_probabilities",
    "compare",
    "compare_models",
    "compile_task",
    "find_evidence",
    "fit_action_model",
    "fit_choices",
    "fit_effort",
    "ground",
    "load_fit",
    "load_task",
    "load_tasks",
    "localize",
    "make_cohort",
    "parse_task",
    "profile_draws",
    "read",
    "read_cohort",
    "read_task",
    "save_tasks",
    "simulate_choices",
    "simulate_cohort",
    "simulate_study",
    "simulate_talks",
    "solve",
    "walk",
    "write_cohort",
    "write_report",
]


def lazy_names(
    module: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module whose names are imported when first used."""
    home = {name: place for place, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(home[name]), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get, lambda: sorted(home)


_MODULES = ("action_models", "channels", "evidence", "plot", "sklearn", "study", "testing")
_HOMES = {
    "fidm.cohort": ["Cohort"],
    "fidm.errors": ["DataError", "FidmError", "FitError", "GroundingError", "Problem", "TaskError"],
    "fidm.evidence.evidence": ["Evidence", "find_evidence"],
    "fidm.evidence.localization": ["Localization", "localize"],
    "fidm.experiments.compare": ["compare"],
    "fidm.experiments.comparison": ["Comparison"],
    "fidm.experiments.rivals": ["ModelComparison", "compare_models"],
    "fidm.fit.action_fit": ["ActionFit", "fit_action_model"],
    "fidm.fit.averaged": ["average_profiles", "profile_draws"],
    "fidm.fit.choices": ["ChoicesFit", "fit_choices"],
    "fidm.fit.draws": ["Draws"],
    "fidm.fit.effort_alone": ["EffortFit", "fit_effort"],
    "fidm.fit.factorized": ["Model"],
    "fidm.fit.fitted": ["Fit", "load_fit"],
    "fidm.fit.nuts": ["Posterior"],
    "fidm.fit.profile": ["Profile"],
    "fidm.grounding.ground": ["Grounded", "ground"],
    "fidm.grounding.hybrid": ["Hybrid"],
    "fidm.grounding.llm.grounder": ["LanguageModel"],
    "fidm.grounding.review.apply": ["apply_review"],
    "fidm.grounding.rules.grounder": ["Rules"],
    "fidm.io.dialogs": ["read"],
    "fidm.io.study": ["Study", "read_cohort", "write_cohort"],
    "fidm.io.tables": ["make_cohort"],
    "fidm.report.report": ["write_report"],
    "fidm.simulate.choosing": ["simulate_choices"],
    "fidm.simulate.cohort": ["simulate_cohort"],
    "fidm.simulate.talk": ["simulate_talks"],
    "fidm.simulate.twin": ["simulate_study"],
    "fidm.simulate.walker": ["Habits"],
    "fidm.talk": ["Transcript", "Transcripts", "Turn"],
    "fidm.tasks.behaviour": ["choice_probabilities", "walk"],
    "fidm.tasks.check": ["TaskCheck", "check_task"],
    "fidm.tasks.compile": ["TaskRules", "compile_task", "load_task", "load_tasks"],
    "fidm.tasks.kept": ["save_tasks"],
    "fidm.tasks.together": ["TaskSetCheck", "check_tasks"],
    "fidm.tasks.model": ["TaskModel"],
    "fidm.tasks.solve": ["solve"],
    "fidm.tasks.spec": ["TaskSpec", "builtin_tasks", "builtin_text", "parse_task", "read_task"],
    "fidm.types": ["Trace", "Values"],
}
_get, _names = lazy_names("fidm", _HOMES)


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"fidm.{name}") if name in _MODULES else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__", *_MODULES})
