"""From predictions to the tables of a result: scores with intervals, differences, curves, groups, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from fidm.classify.calibration import at_prevalence, at_threshold, calibration
from fidm.classify.intervals import (
    Estimate,
    auc,
    balanced_accuracy,
    by_groups,
    difference,
    macro_auc,
    mean_over_folds,
    over_repeats,
)
from fidm.classify.question import Question
from fidm.classify.result import (
    CALIBRATION,
    CALIBRATION_SUMMARY,
    COEFFICIENTS,
    DIFFERENCES,
    GROUPS,
    MISSING,
    PREDICTIONS,
    ROC,
    SCORES,
    THRESHOLDS,
)
from fidm.classify.tabular import by_group
from fidm.classify.validation import Features, Judge, Prediction
from fidm.experiments import paper
from fidm.experiments.shared import Preparation
from fidm.types import Integers

BINARY, MULTICLASS = "binary", "multiclass"
CV, HELD_OUT = "cv", "held-out"
Key = tuple[str, str, str, str]
"""Setting, part, representation and metric."""

Papers = Callable[[str, str, str, str], float | None]
"""Gives what the paper reports of a representation, setting, part and metric; None where it is silent."""

FEWEST, FEWEST_FOLDED = 3, 10
"""With fewer people of a class a score has no error: in the held-out part, and in cross-validation.

Nothing shows how much fewer than three people differ. In a fold with one or two people of a class a score has
few values, and its interval on the logit scale then reaches from next to 0 to 1.
"""

MOST_NAMED = 50
"""Representations with more features than this are not written out feature by feature."""


# ---------------------------------------------------------------------- scores and their differences


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The mean over folds and repetitions, what each repetition gave, and of how many people it is."""

    estimate: Estimate
    repeats: tuple[float, ...]
    n: int


def score(
    question: Question,
    part: str,
    settings: Sequence[str],
    repeats: Sequence[Sequence[Mapping[str, Prediction]]],
    people: Integers,
) -> dict[Key, Scored]:
    """Return the area under the curve and the balanced accuracy of every representation and setting.

    Both are computed within each fold and averaged, as the paper's are: scores of people who were judged by
    different classifiers are not ranked against each other. In cross-validation everybody both teaches and is
    judged, which the influence of single people does not show; its errors are widened for that (see
    :func:`fidm.classify.intervals.over_repeats`).

    Parameters
    ----------
    question : Question
        Who is what.
    part : str
        ``cv`` or ``held-out``.
    settings : sequence of str
        ``binary`` and, if wanted, ``multiclass``.
    repeats : sequence of sequences of mappings
        For each repetition and each of its folds, what each representation says.
    people : int array [n]
        The rows of those who are judged.
    """
    found: dict[Key, Scored] = {}
    for name in repeats[0][0]:
        for setting in settings:
            for metric in paper.METRICS:
                means = [
                    _repetition(question, setting, metric, [fold[name] for fold in folds], people)
                    for folds in repeats
                ]
                estimate = over_repeats(means) if len(repeats[0]) > 1 else means[0]
                values = tuple(mean.value for mean in means)
                found[setting, part, name, metric] = Scored(estimate, values, len(people))
    return found


def _repetition(
    question: Question, setting: str, metric: str, said: Sequence[Prediction], people: Integers
) -> Estimate:
    """The mean over the folds of one repetition, or what the held-out part gives."""
    place = question.places(people)
    folds = [_measure(question, setting, metric, one) for one in said]
    mean = mean_over_folds(folds, [place[one.rows] for one in said], len(people))
    if metric == "balanced_accuracy" and len(said) > 1:
        # A class has few people in a fold, which shows little of how they differ. Decisions of different
        # classifiers can be counted together, where their scores could not be ranked.
        joined = Prediction.joined(said)
        together = _measure(question, setting, metric, joined)
        mean = replace(mean_over_folds([together], [place[joined.rows]], len(people)), value=mean.value)
    return mean if question.together is None else by_groups(mean, question.together[people])


def _measure(question: Question, setting: str, metric: str, said: Prediction) -> Estimate:
    label = question.label[said.rows]
    if setting == BINARY:
        if metric == "auc":
            return auc(said.logit, label > 0)
        return balanced_accuracy((said.logit >= 0).astype(np.int64), (label > 0).astype(np.int64), 2)
    assert said.probability is not None  # noqa: S101
    if metric == "auc":
        return macro_auc(said.probability, label)
    return balanced_accuracy(said.probability.argmax(axis=1), label, len(question.classes))


def has_error(part: str, smallest: int) -> bool:
    """Return whether the smallest class has enough people for an error and an interval."""
    return smallest >= (FEWEST_FOLDED if part == CV else FEWEST)


def score_table(
    scored: Mapping[Key, Scored], shapes: Mapping[str, tuple[str, int]], papers: Papers
) -> pl.DataFrame:
    """Return the table of scores; without an error where a class has too few people for one.

    ``shapes`` says of what kind each representation is, and how many features it has.
    """
    rows = []
    for (setting, part, name, metric), one in scored.items():
        sure, repeats = has_error(part, one.estimate.smallest), one.repeats
        error = (one.estimate.se, *one.estimate.interval()) if sure else (None, None, None)
        spread = float(np.std(repeats, ddof=1)) if part == CV and len(repeats) > 1 else None
        first = repeats[0] if part == CV else None
        told = papers(name, setting, part, metric)
        row = (metric, one.n, one.estimate.value, *error, spread, first, told)
        rows.append((setting, part, name, *shapes[name], *row))
    return pl.DataFrame(rows, schema=SCORES, orient="row")


def difference_table(
    scored: Mapping[Key, Scored], pairs: Sequence[tuple[str, str]], papers: Papers
) -> pl.DataFrame:
    """Return the table of differences: each pair's first representation less its second."""
    rows = []
    for setting, part, metric in dict.fromkeys((key[0], key[1], key[3]) for key in scored):
        for one, other in pairs:
            gain = difference(*(scored[setting, part, name, metric].estimate for name in (one, other)))
            sure = has_error(part, gain.smallest)
            error = (gain.se, *gain.interval(bounded=False), gain.p_value()) if sure else (None,) * 4
            a, b = (papers(name, setting, part, metric) for name in (one, other))
            told = None if a is None or b is None else a - b
            rows.append((setting, part, metric, one, other, gain.value, *error, told))
    return pl.DataFrame(rows, schema=DIFFERENCES, orient="row")


# ---------------------------------------------------------------------- what was said of people


def prediction_table(
    question: Question, part: str, said: Mapping[str, Sequence[Prediction]], ids: pl.Series
) -> pl.DataFrame:
    """Return what was predicted of each person: the probability of each class, by representation.

    ``said`` has one prediction per fold, which together have everybody once; ``ids`` are the names of all
    people of the cohort.
    """
    tables = []
    classes = np.array(question.classes, dtype=object)
    ends = np.array([classes[0], f"not {classes[0]}"], dtype=object)
    for name, folds in said.items():
        one = Prediction.joined(folds)
        order = np.argsort(one.rows, kind="stable")
        people, logit = one.rows[order], one.logit[order]
        label = question.label[people]
        told = [(BINARY, ends[(label > 0) * 1], ends[(logit >= 0) * 1], ends[1], expit(logit))]
        if one.probability is not None:
            given = one.probability[order]
            chosen = classes[given.argmax(axis=1)]
            told += [
                (MULTICLASS, classes[label], chosen, case, given[:, k])
                for k, case in enumerate(question.classes)
            ]
        for setting, truth, predicted, case, probability in told:
            columns = {
                "participant": ids[people], "setting": setting, "part": part, "representation": name,
                "label": truth.tolist(), "predicted": predicted.tolist(), "class": case,
                "probability": probability,
            }  # fmt: skip
            tables.append(pl.DataFrame(columns, schema=PREDICTIONS))
    return pl.concat(tables)


def curve_tables(
    question: Question, part: str, said: Mapping[str, Sequence[Prediction]], groups: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return curves, calibration, thresholds and groups of the binary question, by the names of the tables.

    ``groups`` are those of all people of the cohort, see :func:`fidm.classify.tabular.cut_people`.
    """
    from sklearn.metrics import roc_curve

    found: dict[str, list[pl.DataFrame]] = {"groups": [pl.DataFrame(schema=GROUPS)]}

    def put(table: str, name: str, rows: Any, schema: Mapping[str, Any]) -> None:
        made = pl.DataFrame(rows).with_columns(part=pl.lit(part), representation=pl.lit(name))
        found.setdefault(table, []).append(made.select(pl.col(n).cast(kind) for n, kind in schema.items()))

    for name, folds in said.items():
        one = Prediction.joined(folds)
        ill = question.label[one.rows] > 0
        wrong, right, at = roc_curve(ill, expit(one.logit))
        at = np.where(np.isfinite(at), at, np.nan)
        put("roc", name, {"false_positive_rate": wrong, "sensitivity": right, "threshold": at}, ROC)
        honest = np.concatenate([at_prevalence(fold.logit, fold.n_healthy, fold.n_ill) for fold in folds])
        judged = calibration(honest, ill)
        put("calibration", name, judged.curve, CALIBRATION)
        summed = dict(judged.summary)
        if len(folds) > 1:  # folds have the prevalence they are put back to, so it is 0 by construction
            summed |= dict.fromkeys(("intercept", "intercept_low", "intercept_high"))
        put("calibration_summary", name, [summed], CALIBRATION_SUMMARY)
        put("thresholds", name, [at_threshold(expit(one.logit), ill)], THRESHOLDS)
        if groups.width:
            within = by_group(groups[one.rows], score=one.logit, predicted=one.logit >= 0, positive=ill)
            put("groups", name, within, GROUPS)
    return {name: pl.concat(tables) for name, tables in found.items()}


# ---------------------------------------------------------------------- features and their weights


def missing_table(question: Question, everybody: Mapping[str, Features]) -> pl.DataFrame:
    """Return how many people lack each feature, by part, where the whole training part is learned from."""
    rows = []
    n = len(question.train)
    for name, features in everybody.items():
        for part, matrix in (("train", features.matrix[:n]), (HELD_OUT, features.matrix[n:])):
            if not len(matrix):
                continue
            lacking = np.isnan(matrix).sum(axis=0)
            shown = list(zip(features.names, map(int, lacking), strict=True))
            if len(shown) > MOST_NAMED:  # a vector is there or not, as a whole
                shown = [(f"{len(shown)} features", int(lacking.max()))]
            rows += [(name, feature, part, len(matrix), n_missing) for feature, n_missing in shown]
    return pl.DataFrame(rows, schema=MISSING, orient="row")


def coefficient_table(
    judge: Judge, question: Question, said: Mapping[str, Prediction], features: Mapping[str, Features]
) -> pl.DataFrame:
    """Return the weights of the classifiers that learned from the whole training part."""
    rows: list[tuple[Any, ...]] = []
    for name, made in judge.representations.items():
        blocks = [features[block] for block in made]
        columns = [feature for block in blocks for feature in block.names]
        if len(columns) > MOST_NAMED:
            continue
        learned = Preparation.learn([block.matrix[: len(question.train)] for block in blocks])
        sizes = [len(block.names) for block in blocks]
        scaled = judge.is_scaled(made)
        scale = [size**0.5 if scaled else 1.0 for size in sizes for _ in range(size)]
        prepared = [(None,) * 4, *zip(learned.median, learned.mean, learned.spread, scale, strict=True)]
        binary, several = said[name].models
        answers = [(BINARY, f"not {question.classes[0]}", binary, 0)]
        if several is not None:
            answers += [(MULTICLASS, one, several, k) for k, one in enumerate(question.classes)]
        for setting, one, model, k in answers:
            weights = zip(columns, model.coef_[k], strict=True)
            for (feature, weight), numbers in zip(
                [("(intercept)", model.intercept_[k]), *weights], prepared, strict=True
            ):
                rows.append((setting, name, one, feature, float(weight), *numbers))
    return pl.DataFrame(rows, schema=COEFFICIENTS, orient="row")
