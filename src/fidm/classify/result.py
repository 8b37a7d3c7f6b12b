"""What :func:`fidm.study.classify` found: scores with intervals, differences, checks, and who was in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from fidm.record import Record, write_result

Setting = Literal["binary", "multiclass"]
Part = Literal["cv", "held-out"]
Metric = Literal["auc", "balanced_accuracy"]
Kind = Literal["clinical", "behaviour", "language", "ablation", "fidm", "fusion", "own"]

KINDS: Mapping[Kind, str] = {
    "clinical": "clinical baselines",
    "behaviour": "behavioural baselines",
    "language": "language baselines",
    "own": "own representations",
    "ablation": "single factors",
    "fidm": "model (both factors)",
    "fusion": "combinations",
}
"""Kinds of representations, in the order in which they are shown, in words."""

LABELS: Mapping[str, str] = {
    "score": "score",
    "score+subscores": "score + subscores",
    "demographics": "age, education, sex",
    "trajectory": "trajectory statistics",
    "action": "action",
    "effort": "effort",
    "fidm": "FIDM",
    "bert": "BERT",
    "macbert": "MacBERT",
}
"""Single representations in words."""

SCORES = {
    "setting": pl.String, "part": pl.String, "representation": pl.String, "kind": pl.String,
    "n_features": pl.Int64, "metric": pl.String, "n": pl.Int64, "value": pl.Float64, "se": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "sd_repeats": pl.Float64, "first_repeat": pl.Float64,
    "paper": pl.Float64,
}  # fmt: skip
DIFFERENCES = {
    "setting": pl.String, "part": pl.String, "metric": pl.String, "representation": pl.String,
    "against": pl.String, "value": pl.Float64, "se": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "p": pl.Float64, "paper": pl.Float64,
}  # fmt: skip
PREDICTIONS = {
    "participant": pl.String, "setting": pl.String, "part": pl.String, "representation": pl.String,
    "label": pl.String, "predicted": pl.String, "class": pl.String, "probability": pl.Float64,
}  # fmt: skip
ROC = {
    "part": pl.String, "representation": pl.String, "false_positive_rate": pl.Float64,
    "sensitivity": pl.Float64, "threshold": pl.Float64,
}  # fmt: skip
CALIBRATION = {
    "part": pl.String, "representation": pl.String, "bin": pl.Int64, "n": pl.Int64, "predicted": pl.Float64,
    "observed": pl.Float64, "low": pl.Float64, "high": pl.Float64,
}  # fmt: skip
CALIBRATION_SUMMARY = {
    "part": pl.String, "representation": pl.String, "n": pl.Int64, "prevalence": pl.Float64,
    "intercept": pl.Float64, "intercept_low": pl.Float64, "intercept_high": pl.Float64, "slope": pl.Float64,
    "slope_low": pl.Float64, "slope_high": pl.Float64, "brier": pl.Float64, "brier_reference": pl.Float64,
}  # fmt: skip
THRESHOLDS = {
    "part": pl.String, "representation": pl.String, "threshold": pl.Float64, "n": pl.Int64,
    "true_positive": pl.Int64, "false_positive": pl.Int64, "true_negative": pl.Int64,
    "false_negative": pl.Int64,
    **{
        f"{name}{end}": pl.Float64
        for name in ("sensitivity", "specificity", "ppv", "npv")
        for end in ("", "_low", "_high")
    },
}  # fmt: skip
GROUPS = {
    "part": pl.String, "representation": pl.String, "column": pl.String, "group": pl.String, "n": pl.Int64,
    "n_cases": pl.Int64, "metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "why": pl.String,
}  # fmt: skip
CHECKS = {
    "check": pl.String, "representation": pl.String, "n": pl.Int64, "value": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "expected": pl.Float64, "passed": pl.Boolean, "observed": pl.Float64, "p": pl.Float64,
}  # fmt: skip
MISSING = {
    "representation": pl.String, "feature": pl.String, "part": pl.String, "n": pl.Int64,
    "n_missing": pl.Int64,
}  # fmt: skip
COEFFICIENTS = {
    "setting": pl.String, "representation": pl.String, "class": pl.String, "feature": pl.String,
    "coefficient": pl.Float64, "median": pl.Float64, "mean": pl.Float64, "sd": pl.Float64,
    "block_scale": pl.Float64,
}  # fmt: skip
"""The columns of each table."""

TABLES = (
    "scores", "differences", "predictions", "roc", "calibration", "calibration_summary", "thresholds",
    "groups", "checks", "missing", "coefficients",
)  # fmt: skip
"""The tables, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Who was in, and who was out and why.

    Parameters
    ----------
    n_participants : int
        People in the study whose data could be used.
    excluded : mapping of str to int
        People the study excludes, by reason.
    with_problems : int
        People left out because of problems in their data.
    without_label : int
        People whose status is not known.
    without_part : int
        People who are in neither the training nor the held-out part.
    classes : mapping of str to (mapping of str to int)
        How many people of each class are in each part (``train``, ``held-out``); healthy people come first.
    without_data : int
        People of known status of whom nothing was observed: neither a step nor a segment. They are left out
        of all representations, so that these are compared on the same people.
    """

    n_participants: int
    excluded: Mapping[str, int]
    with_problems: int
    without_label: int
    without_part: int
    classes: Mapping[str, Mapping[str, int]]
    without_data: int = 0

    def n(self, part: str) -> int:
        """Return how many people of known status a part has: ``train`` or ``held-out``."""
        return sum(counts.get(part, 0) for counts in self.classes.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Classification:
    """How well each representation tells people's status, alone and together with others.

    Every table is long: a row per setting, part, representation and so on. ``setting`` is ``binary`` (healthy
    against all others) or ``multiclass``; ``part`` is ``cv`` (cross-validation on the training part) or
    ``held-out``.

    Parameters
    ----------
    record : Record
        How it came about.
    flow : Flow
        Who was in it.
    representations : tuple of str
        Those that were run, in the order in which they are shown.
    scores : DataFrame
        Area under the curve and balanced accuracy with their intervals; ``sd_repeats`` is how much the
        repetitions of cross-validation differ, ``first_repeat`` what the first of them gives, ``paper`` what
        the paper reports of its own data.
    differences : DataFrame
        Each combination against its parts, the same people compared with themselves.
    predictions : DataFrame
        What was predicted of each person by somebody who had not seen them.
    roc : DataFrame
        Points of the curves, binary.
    calibration, calibration_summary : DataFrame
        Predicted against observed shares, at the training part's prevalence; binary. In cross-validation the
        intercept is 0 by construction, and left out.
    thresholds : DataFrame
        What a threshold of one half gives; binary.
    groups : DataFrame
        Scores within groups of age, education and sex; binary.
    checks : DataFrame
        What scrambled labels give, which must be one half, and what the number of the fold adds, which must
        be nothing; ``observed`` is what the true labels give in the same folds, ``p`` how often a scramble
        does as well.
    missing : DataFrame
        How many people lack each feature.
    coefficients : DataFrame
        Of the classifiers that the held-out part was judged by. A feature is put to its ``median`` where it
        is missing, its ``mean`` is taken off, and it is divided by its ``sd`` and by its ``block_scale``
        before it is multiplied by its coefficient.
    not_run : mapping of str to str
        Representations that could not be run, and why.
    notes : tuple of str
        What is to be said beside.
    """

    record: Record
    flow: Flow
    representations: tuple[str, ...]
    scores: pl.DataFrame
    differences: pl.DataFrame
    predictions: pl.DataFrame
    roc: pl.DataFrame
    calibration: pl.DataFrame
    calibration_summary: pl.DataFrame
    thresholds: pl.DataFrame
    groups: pl.DataFrame
    checks: pl.DataFrame
    missing: pl.DataFrame
    coefficients: pl.DataFrame
    not_run: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables, by the names of their files."""
        return {"" if name == "scores" else name.replace("_", "-"): getattr(self, name) for name in TABLES}

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes; healthy people come first."""
        return tuple(self.flow.classes)

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that were run."""
        return tuple(self.scores["setting"].unique(maintain_order=True).to_list())

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts people were judged in: ``cv``, and ``held-out`` if there is one."""
        return tuple(self.scores["part"].unique(maintain_order=True).to_list())

    def score(
        self,
        representation: str,
        *,
        setting: Setting = "binary",
        part: Part = "cv",
        metric: Metric = "auc",
    ) -> dict[str, Any] | None:
        """Return one row of ``scores``; None where there is none."""
        chosen = self.scores.filter(representation=representation, setting=setting, part=part, metric=metric)
        return chosen.row(0, named=True) if chosen.height else None

    def write(self, folder: str | Path) -> tuple[Path, ...]:
        """Write ``classify.json`` with everything, and a CSV file per table, into a folder."""
        return write_result(self, folder)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, without single people's predictions."""
        return {
            "flow": self.flow.to_dict(),
            "representations": list(self.representations),
            **{name: getattr(self, name).to_dicts() for name in TABLES if name != "predictions"},
            "not_run": dict(self.not_run),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        best = self.scores.filter(setting="binary", part="cv", metric="auc").sort("value", descending=True)
        said = ", ".join(
            f"{name} {value:.3f}"
            for name, value in best.select("representation", "value").head(3).iter_rows()
        )
        return f"Classification({self.flow.n('train')} + {self.flow.n('held-out')} people; AUC: {said})"


def in_words(representation: str) -> str:
    """Return a representation's name for a reader: "score + FIDM".

    Examples
    --------
    >>> from fidm.classify.result import in_words
    >>> in_words("score+subscores+fidm")
    'score + subscores + FIDM'
    """
    if representation in LABELS:
        return LABELS[representation]
    return " + ".join(LABELS.get(name, name) for name in representation.split("+"))
