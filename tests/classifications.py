"""A made-up :class:`fidm.classify.result.Classification`: nobody was classified, but every table fits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from fidm.classify import result as classified
from fidm.classify.result import Classification, Flow
from fidm.experiments import paper
from fidm.record import Record

SINGLE = {
    "score": ("clinical", 1),
    "score+subscores": ("clinical", 8),
    "trajectory": ("behaviour", 14),
    "bert": ("language", 768),
    "macbert": ("language", 768),
    "action": ("ablation", 1),
    "effort": ("ablation", 4),
    "fidm": ("fidm", 5),
}
PAPER_TABLE = (
    *SINGLE,
    *(f"{name}+fidm" for name, (kind, _) in SINGLE.items() if kind in "clinical behaviour language"),
)
COUNTS = {"normal": (209, 43), "mci": (103, 21), "major_ncd": (20, 4)}
LANGUAGE = ("bert", "macbert", "bert+fidm", "macbert+fidm")
WHY = "bert-base-chinese is not on this machine. Fetch it with: hf download google-bert/bert-base-chinese"


def kind_of(name: str) -> tuple[str, int]:
    """The kind of a representation, and how many features it has."""
    if name in SINGLE:
        return SINGLE[name]
    return "fusion", SINGLE[name.removesuffix("+fidm")][1] + 5


def wilson(k: int, n: int) -> tuple[float, float, float]:
    """A share with its interval."""
    p, z = k / n, 1.96
    middle, half = (p + z * z / 2 / n), z * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return p, (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def make_classification(
    names=PAPER_TABLE,
    *,
    classes=COUNTS,
    not_run=None,
    held_out=True,
    seed=1,
    excluded=None,
    notes=(),
) -> Classification:
    """Make up a whole result."""
    rng = np.random.default_rng(seed)
    parts = {"cv": 0, "held-out": 1} if held_out else {"cv": 0}
    settings = ("binary", "multiclass") if len(classes) > 2 else ("binary",)
    (
        scores,
        differences,
        predictions,
        roc,
        bins,
        summary,
        thresholds,
        groups,
        checks,
        missing,
        coefficients,
    ) = ([] for _ in range(11))
    for setting in settings:
        for part, place in parts.items():
            n = sum(counts[place] for counts in classes.values())
            width = {"cv": 0.03, "held-out": 0.068}[part]
            for name in names:
                kind, d = kind_of(name)
                for metric in paper.METRICS:
                    told = paper.classification(name, setting, part, metric)
                    value = float(np.clip((told or 0.66) + rng.normal(0, width / 2), 0.2, 0.98))
                    scores.append(
                        (setting, part, name, kind, d, metric, n, value, width, value - 1.96 * width,
                         min(value + 1.96 * width, 0.999), 0.01 if part == "cv" else None,
                         value - 0.004 if part == "cv" else None, told)
                    )  # fmt: skip
                    if kind != "fusion":
                        continue
                    for base in (name.removesuffix("+fidm"), "fidm"):
                        gain, se = float(rng.normal(0.03, width / 2)), width / 2
                        known = paper.classification(base, setting, part, metric)
                        differences.append(
                            (setting, part, metric, name, base, gain, se, gain - 1.96 * se, gain + 1.96 * se,
                             math.erfc(abs(gain / se) / math.sqrt(2)), None if told is None else told - known)
                        )  # fmt: skip
    for part, place in parts.items():
        label = np.repeat(np.arange(len(classes)), [counts[place] for counts in classes.values()])
        case = label > 0
        for name in names:
            kind, d = kind_of(name)
            probability = 1 / (1 + np.exp(-(rng.normal(0, 1, len(case)) + 0.75 * case - 0.2)))
            order = np.argsort(-probability)
            roc.append((part, name, 0.0, 0.0, math.inf))
            positive, negative = np.cumsum(case[order]), np.cumsum(~case[order])
            roc += [
                (part, name, float(f / negative[-1]), float(t / positive[-1]), float(c))
                for f, t, c in zip(negative, positive, probability[order], strict=True)
            ]
            for b, rows in enumerate(np.array_split(np.argsort(probability), 10 if part == "cv" else 5)):
                observed, low, high = wilson(int(case[rows].sum()), len(rows))
                bins.append((part, name, b, len(rows), float(probability[rows].mean()), observed, low, high))
            summary.append(
                (part, name, len(case), float(case.mean()), 0.05, -0.2, 0.3, 0.9, 0.6, 1.2, 0.215, 0.23)
            )
            said = probability >= 0.5
            table = [int(x.sum()) for x in (said & case, said & ~case, ~said & ~case, ~said & case)]
            tp, fp, tn, fn = table
            shares = [wilson(*x) for x in ((tp, tp + fn), (tn, tn + fp), (tp, tp + fp), (tn, tn + fn))]
            thresholds.append((part, name, 0.5, len(case), *table, *(v for share in shares for v in share)))
            for column, cut in (
                ("age_years", ("up to 70", "71 to 76", "77 and over")),
                ("education_years", ("up to 6", "7 to 11", "12 and over")),
                ("sex", ("female", "male")),
            ):
                for group in cut:
                    size = len(case) // len(cut)
                    for metric in paper.METRICS:
                        small = part == "held-out" and group == "male"
                        numbers = (None,) * 3 if small else (0.68, 0.58, 0.77)
                        why = "fewer than 5 people of a class" if small else None
                        groups.append((part, name, column, group, size, size // 3, metric, *numbers, why))
            for f in range(min(d, 8) if kind != "fusion" else 0):
                missing.append(
                    (
                        name,
                        f"{name}_{f + 1}",
                        "train" if part == "cv" else part,
                        len(case),
                        (f == 1 and 3) or 0,
                    )
                )
            for i, p in enumerate(probability[:20]):
                predictions.append((f"P{i}", "binary", part, name, "normal", "normal", "case", float(p)))
    for name in names:
        checks.append(("scrambled labels", name, 100, 0.503, 0.49, 0.516, 0.5, True, 0.68, 1 / 101))
        for f in range(min(kind_of(name)[1], 8)):
            coefficients.append(
                ("binary", name, "case", f"{name}_{f + 1}", float(rng.normal()), 0.0, 0.0, 1.0, 1.0)
            )
    checks.append(("fold number", "fidm", 332, -0.001, -0.006, 0.004, 0.0, True, 0.69, None))
    rows = {
        "scores": (scores, classified.SCORES),
        "differences": (differences, classified.DIFFERENCES),
        "predictions": (predictions, classified.PREDICTIONS),
        "roc": (roc, classified.ROC),
        "calibration": (bins, classified.CALIBRATION),
        "calibration_summary": (summary, classified.CALIBRATION_SUMMARY),
        "thresholds": (thresholds, classified.THRESHOLDS),
        "groups": (groups, classified.GROUPS),
        "checks": (checks, classified.CHECKS),
        "missing": (missing, classified.MISSING),
        "coefficients": (coefficients, classified.COEFFICIENTS),
    }
    known = {
        "label": "diagnosis", "normal": "normal", "split": "split", "train": "train", "folds": 5, "repeats": 5,
        "permutations": 100, "paper_estimates": False, "scale_blocks": "fusion", "together": None,
        "by": ["age_years", "education_years", "sex"], "score": "score_total", "subscores": None,
        "encoders": {name: f"lab/{name}-base" for name in names if kind_of(name)[0] == "language"},
        "encoder_hashes": {name: f"{name:0<64}" for name in names if kind_of(name)[0] == "language"},
    }  # fmt: skip
    counted = {
        name: {"train": counts[0], **({"held-out": counts[1]} if held_out else {})}
        for name, counts in classes.items()
    }
    total = sum(sum(counts.values()) for counts in counted.values())
    left_out = {"did not complete": 2} if excluded is None else excluded
    return Classification(
        record=Record("classify", "0.1.0", {"grocery": "abc123"}, 1, known, "f" * 64),
        flow=Flow(total + 1, left_out, 3, 1, 0, counted),
        representations=tuple(names),
        **{key: pl.DataFrame(*made, orient="row") for key, made in rows.items()},
        not_run=dict(not_run or {}),
        notes=tuple(notes),
    )


def without_language(**options) -> Classification:
    """The paper's table on a machine without encoders."""
    names = tuple(name for name in PAPER_TABLE if name not in LANGUAGE)
    return make_classification(names, not_run=dict.fromkeys(LANGUAGE, WHY), **options)


def with_tables(result: Classification, **tables) -> Classification:
    """The same result with other tables."""
    return replace(result, **tables)
