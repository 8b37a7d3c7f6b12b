"""From predictions to tables about people: what was said of each, curves, groups, weights, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from fidm.classify.calibration import at_prevalence, at_threshold, calibration
from fidm.classify.comparing import BINARY, MULTICLASS
from fidm.classify.judging import Features, Judge, Prediction
from fidm.classify.question import Question
from fidm.classify.result import CALIBRATION, CALIBRATION_SUMMARY, GROUPS, PREDICTIONS, ROC, THRESHOLDS
from fidm.classify.subgroups import by_group
from fidm.experiments.classifier import Preparation

MOST_NAMED = 50
"""Representations with more features than this are not written out feature by feature."""


def prediction_rows(
    question: Question, part: str, said: Mapping[str, Sequence[Prediction]], ids: pl.Series
) -> pl.DataFrame:
    """Return what was predicted of each person: the probability of each class, by representation.

    Parameters
    ----------
    question : Question
        Who is what.
    part : str
        ``cv`` or ``held-out``.
    said : mapping of str to sequence of Prediction
        One per fold, which together have everybody once.
    ids : Series
        The names of all people of the cohort.
    """
    tables = []
    truth = np.array(question.classes, dtype=object)
    for name, folds in said.items():
        rows = np.concatenate([one.rows for one in folds])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        label = question.label[rows]
        logit = np.concatenate([one.logit for one in folds])[order]
        healthy, ill = question.classes[0], f"not {question.classes[0]}"
        tables.append(
            pl.DataFrame(
                {
                    "participant": ids[rows],
                    "setting": [BINARY] * len(rows),
                    "part": [part] * len(rows),
                    "representation": [name] * len(rows),
                    "label": np.where(label > 0, ill, healthy).tolist(),
                    "predicted": np.where(logit >= 0, ill, healthy).tolist(),
                    "class": [ill] * len(rows),
                    "probability": expit(logit),
                },
                schema=PREDICTIONS,
            )
        )
        if folds[0].probability is None:
            continue
        given = np.concatenate([one.probability for one in folds if one.probability is not None])[order]
        chosen = truth[given.argmax(axis=1)]
        for number, one in enumerate(question.classes):
            tables.append(
                pl.DataFrame(
                    {
                        "participant": ids[rows],
                        "setting": [MULTICLASS] * len(rows),
                        "part": [part] * len(rows),
                        "representation": [name] * len(rows),
                        "label": truth[label].tolist(),
                        "predicted": chosen.tolist(),
                        "class": [one] * len(rows),
                        "probability": given[:, number],
                    },
                    schema=PREDICTIONS,
                )
            )
    return pl.concat(tables) if tables else pl.DataFrame(schema=PREDICTIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Tables about the binary question that need one prediction per person."""

    roc: pl.DataFrame
    calibration: pl.DataFrame
    calibration_summary: pl.DataFrame
    thresholds: pl.DataFrame
    groups: pl.DataFrame

    @classmethod
    def joined(cls, parts: Sequence[Curves]) -> Curves:
        """Put the tables of several parts under each other."""
        names = ("roc", "calibration", "calibration_summary", "thresholds", "groups")
        return cls(**{name: pl.concat([getattr(part, name) for part in parts]) for name in names})


def curves(
    question: Question, part: str, said: Mapping[str, Sequence[Prediction]], groups: pl.DataFrame
) -> Curves:
    """Return curves, thresholds and groups of the binary question.

    Parameters
    ----------
    question, part, said
        As in :func:`prediction_rows`.
    groups : DataFrame
        The groups of all people of the cohort; see :func:`fidm.classify.subgroups.cut_people`.
    """
    from sklearn.metrics import roc_curve

    found: dict[str, list[pl.DataFrame]] = {}

    def put(table: str, name: str, rows: Any, schema: Mapping[str, Any]) -> None:
        made = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows)
        made = made.with_columns(part=pl.lit(part), representation=pl.lit(name))
        found.setdefault(table, []).append(made.select(pl.col(n).cast(kind) for n, kind in schema.items()))

    for name, folds in said.items():
        rows = np.concatenate([one.rows for one in folds])
        logit = np.concatenate([one.logit for one in folds])
        ill = question.label[rows] > 0
        wrong, right, at = roc_curve(ill, expit(logit))
        steps = {
            "false_positive_rate": wrong,
            "sensitivity": right,
            "threshold": np.where(np.isfinite(at), at, np.nan),
        }
        put("roc", name, steps, ROC)
        honest = np.concatenate([at_prevalence(one.logit, one.n_healthy, one.n_ill) for one in folds])
        judged = calibration(honest, ill)
        put("calibration", name, judged.curve, CALIBRATION)
        summed = dict(judged.summary)
        if len(folds) > 1:  # folds have the prevalence they are put back to, so it is 0 by construction
            summed |= dict.fromkeys(("intercept", "intercept_low", "intercept_high"))
        put("calibration_summary", name, [summed], CALIBRATION_SUMMARY)
        put("thresholds", name, [at_threshold(expit(logit), ill)], THRESHOLDS)
        if groups.width:
            within = by_group(groups[rows], score=logit, predicted=logit >= 0, positive=ill)
            put("groups", name, within, GROUPS)
    found.setdefault("groups", [pl.DataFrame(schema=GROUPS)])
    return Curves(**{name: pl.concat(tables) for name, tables in found.items()})


def missing_rows(question: Question, everybody: Mapping[str, Features]) -> list[dict[str, Any]]:
    """How many people lack each feature, by part, where the whole training part is learned from."""
    found = []
    n = len(question.train)
    for name, features in everybody.items():
        for part, matrix in (("train", features.matrix[:n]), ("held-out", features.matrix[n:])):
            if not len(matrix):
                continue
            lacking = np.isnan(matrix).sum(axis=0)
            if len(features.names) > MOST_NAMED:  # a vector is there or not, as a whole
                shown = [(f"{len(features.names)} features", int(lacking.max()))]
            else:
                shown = list(zip(features.names, map(int, lacking), strict=True))
            for feature, n_missing in shown:
                found.append(
                    {
                        "representation": name,
                        "feature": feature,
                        "part": part,
                        "n": len(matrix),
                        "n_missing": n_missing,
                    }
                )
    return found


def coefficient_rows(
    judge: Judge,
    question: Question,
    said: Mapping[str, Prediction],
    features: Mapping[str, Features],
) -> list[dict[str, Any]]:
    """The weights of the classifiers that learned from the whole training part."""
    found = []
    n = len(question.train)
    for name, made in judge.representations.items():
        columns = [feature for block in made for feature in features[block].names]
        if len(columns) > MOST_NAMED:
            continue
        scaled = judge.is_scaled(made)
        learned = Preparation.learn([features[block].matrix[:n] for block in made])
        scale = [len(features[block].names) ** 0.5 if scaled else 1.0 for block in made]
        scales = [one for block, one in zip(made, scale, strict=True) for _ in features[block].names]
        given = [(None,) * 4, *zip(learned.median, learned.mean, learned.spread, scales, strict=True)]
        binary, several = said[name].models
        rows = [(BINARY, f"not {question.classes[0]}", binary.intercept_[0], binary.coef_[0])]
        if several is not None:
            rows += [
                (MULTICLASS, one, several.intercept_[number], several.coef_[number])
                for number, one in enumerate(question.classes)
            ]
        for setting, one, intercept, weights in rows:
            named = (("(intercept)", intercept), *zip(columns, weights, strict=True))
            for (feature, value), (median, mean, sd, block) in zip(named, given, strict=True):
                found.append(
                    {
                        "setting": setting,
                        "representation": name,
                        "class": one,
                        "feature": feature,
                        "coefficient": float(value),
                        "median": median,
                        "mean": mean,
                        "sd": sd,
                        "block_scale": block,
                    }
                )
    return found
