"""What the paper reports, to stand beside the same number from other data.

All figures are of the paper's 400 participants, whose data and store are not public. Simulated people and
another map give other numbers; the paper's are printed for comparison, never as something to be reached.
"""

from __future__ import annotations

from collections.abc import Mapping

RECOVERY_DIAGONAL = (0.70, 0.97)
"""Figure 3: the lowest and the highest matched response under complete observations."""

MATCHED_AUC: Mapping[str, float] = {
    "raw": 0.502,
    "per_movement": 0.503,
    "action": 0.929,
    "effort": 0.989,
    "full": 0.996,
}
"""Figure 4: AUC for telling the matched conditions apart."""

MATCHED_LARGEST_DIFFERENCE = 0.072
"""Appendix C.2: the largest absolute standardized mean difference of raw and per-movement summaries."""

MATCHED_RECOVERY: Mapping[str, tuple[float, float, float]] = {
    "action_sensitivity": (0.566, 0.924, 12.766),
    "duration": (0.615, 0.866, 0.348),
    "characters": (0.652, 0.888, 0.376),
    "turns": (0.737, 0.936, 0.590),
    "pause": (0.538, 0.819, 0.520),
}
"""Appendix C.2: Pearson r, pairwise direction and mean B − A of each recovered factor."""

LOCALIZATION: Mapping[str, Mapping[str, float]] = {
    "route_divergence": {
        "auc": 0.902, "low": 0.877, "high": 0.925, "top_rate": 0.292, "baseline": 0.049, "enrichment": 5.95,
    },
    "bypass": {
        "auc": 0.983, "low": 0.962, "high": 1.000, "top_rate": 0.962, "baseline": 0.278, "enrichment": 3.47,
    },
}  # fmt: skip
"""Table 1 and appendix C.3: dataset-level action localization."""

MOVE_COSTS = (-0.01, -0.02, -0.05)
TEMPERATURES = (0.03, 0.05, 0.08, 0.12)
"""Appendix B.3: the grid of task hyper-parameters."""

CHOSEN_MOVE_COST, CHOSEN_TEMPERATURE = -0.02, 0.05
"""Appendix B.3: the point the paper chose."""

CLASSIFICATION_AUC: Mapping[str, float] = {"action": 0.6786, "effort": 0.6418, "full": 0.7039}
"""Table 3: binary AUC by five-fold cross-validation on the training part."""
