"""Pictures. Each function takes a result and an optional ``ax``, returns the Axes, and computes nothing.

Those that need several panels return a Figure. All can be read in grey and by the colour-blind; names of
people and places are drawn as they stand (:mod:`fidm.plot.style`), and :func:`figure_svg` gives any of them
as text that can stand in a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fidm import lazy_names

if TYPE_CHECKING:
    from fidm.plot.action_models import model_calibration, model_checks, model_differences
    from fidm.plot.classification import calibration_curve, classification_bars, roc_curves
    from fidm.plot.evidence import (
        action_evidence,
        effort_evidence,
        effort_residuals,
        localization,
        person_evidence,
        unexpected_row,
        unexpected_steps,
    )
    from fidm.plot.experiments import (
        family_differences,
        forest,
        learning_curve,
        matched_auc,
        quantile_plot,
        rank_differences,
        recovery,
        recovery_matrix,
        reliability,
        selection_map,
        worm_plot,
    )
    from fidm.plot.maps import draw_map, routes, value_field
    from fidm.plot.profiles import cohort_scatter, person_profile
    from fidm.plot.style import FontWarning, figure_svg
    from fidm.plot.talk import factor_graph, figure_one, verbal_output

__all__ = [
    "FontWarning",
    "action_evidence",
    "calibration_curve",
    "classification_bars",
    "cohort_scatter",
    "draw_map",
    "effort_evidence",
    "effort_residuals",
    "factor_graph",
    "family_differences",
    "figure_one",
    "figure_svg",
    "forest",
    "learning_curve",
    "localization",
    "matched_auc",
    "model_calibration",
    "model_checks",
    "model_differences",
    "person_evidence",
    "person_profile",
    "quantile_plot",
    "rank_differences",
    "recovery",
    "recovery_matrix",
    "reliability",
    "roc_curves",
    "routes",
    "selection_map",
    "unexpected_row",
    "unexpected_steps",
    "value_field",
    "verbal_output",
    "worm_plot",
]

_HOMES = {
    "fidm.plot.action_models": ["model_calibration", "model_checks", "model_differences"],
    "fidm.plot.classification": ["calibration_curve", "classification_bars", "roc_curves"],
    "fidm.plot.evidence": [
        "action_evidence",
        "effort_evidence",
        "effort_residuals",
        "localization",
        "person_evidence",
        "unexpected_row",
        "unexpected_steps",
    ],
    "fidm.plot.experiments": [
        "family_differences",
        "forest",
        "learning_curve",
        "matched_auc",
        "quantile_plot",
        "rank_differences",
        "recovery",
        "recovery_matrix",
        "reliability",
        "selection_map",
        "worm_plot",
    ],
    "fidm.plot.maps": ["draw_map", "routes", "value_field"],
    "fidm.plot.profiles": ["cohort_scatter", "person_profile"],
    "fidm.plot.style": ["FontWarning", "figure_svg"],
    "fidm.plot.talk": ["factor_graph", "figure_one", "verbal_output"],
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
