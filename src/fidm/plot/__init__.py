"""Pictures. Each function takes a result and an optional ``ax``, returns the Axes, and computes nothing.

Those that need several panels return a Figure.
"""

from fidm.plot.classification import classification_bars
from fidm.plot.curves import calibration_curve, roc_curves
from fidm.plot.evidence import (
    effort_residuals,
    localization,
    person_evidence,
    unexpected_row,
    unexpected_steps,
)
from fidm.plot.experiments import matched_auc, selection_map
from fidm.plot.maps import draw_map, routes, value_field
from fidm.plot.recovery import recovery, recovery_matrix, reliability

__all__ = [
    "calibration_curve",
    "classification_bars",
    "draw_map",
    "effort_residuals",
    "localization",
    "matched_auc",
    "person_evidence",
    "recovery",
    "recovery_matrix",
    "reliability",
    "roc_curves",
    "routes",
    "selection_map",
    "unexpected_row",
    "unexpected_steps",
    "value_field",
]
