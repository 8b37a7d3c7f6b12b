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

SETTINGS, PARTS, METRICS = ("binary", "multiclass"), ("cv", "held-out"), ("auc", "balanced_accuracy")
"""How table 2 is laid out: two questions, two ways to test an answer, two scores."""

CLASSIFICATION: Mapping[str, tuple[float, ...]] = {
    "score": (62.09, 64.85, 62.93, 62.19, 63.98, 51.82, 68.46, 64.38),
    "score+subscores": (66.71, 62.29, 60.23, 63.02, 66.82, 50.73, 55.29, 51.70),
    "trajectory": (62.40, 61.00, 67.02, 63.40, 56.41, 41.09, 64.17, 44.36),
    "bert": (67.64, 62.50, 70.33, 61.07, 70.38, 49.50, 70.80, 44.40),
    "macbert": (65.85, 61.38, 67.35, 66.56, 69.48, 49.97, 70.64, 46.72),
    "fidm": (70.39, 65.12, 66.79, 64.74, 67.39, 49.65, 67.85, 56.34),
    "score+fidm": (72.70, 67.29, 71.35, 68.56, 70.16, 48.16, 78.13, 71.72),
    "score+subscores+fidm": (74.71, 66.94, 70.33, 69.40, 69.04, 50.87, 65.58, 59.86),
    "trajectory+fidm": (69.46, 65.70, 68.74, 65.91, 64.40, 46.31, 63.94, 56.72),
    "bert+fidm": (72.46, 63.28, 75.63, 67.91, 72.27, 49.57, 68.91, 40.41),
    "macbert+fidm": (72.61, 65.74, 74.88, 72.23, 72.61, 49.09, 71.12, 54.32),
}
"""Table 2, in per cent: for each setting and part, the area under the curve and the balanced accuracy."""

ABLATION: Mapping[str, tuple[float, ...]] = {
    "action": (67.86, 63.67, 62.62, 47.86),
    "effort": (64.18, 61.82, 62.97, 51.66),
}
"""Table 3, in per cent, by cross-validation: AUC and balanced accuracy of both settings."""


def classification(representation: str, setting: str, part: str, metric: str) -> float | None:
    """Return what the paper's tables 2 and 3 say of a representation, as a share; None where they are silent.

    Examples
    --------
    >>> from fidm.experiments.paper import classification
    >>> classification("fidm", "binary", "cv", "auc")
    0.7039
    >>> classification("action", "binary", "held-out", "auc") is None
    True
    """
    place = 2 * SETTINGS.index(setting) + METRICS.index(metric)
    if representation in ABLATION:
        return round(ABLATION[representation][place] / 100, 4) if part == "cv" else None
    if representation not in CLASSIFICATION:
        return None
    place = 4 * SETTINGS.index(setting) + 2 * PARTS.index(part) + METRICS.index(metric)
    return round(CLASSIFICATION[representation][place] / 100, 4)
