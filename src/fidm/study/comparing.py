"""From predictions to scores with intervals, and paired differences of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.study import paper
from fidm.study.folds import Question
from fidm.study.influence import CAREFUL, Estimate, auc, balanced_accuracy, difference, macro_auc, mean_of
from fidm.study.judging import Prediction

Integers = NDArray[np.int64]

BINARY, MULTICLASS = "binary", "multiclass"
CV, HELD_OUT = "cv", "held-out"
Key = tuple[str, str, str, str]
"""Setting, part, representation and metric."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """An estimate, and what the repetitions it averages gave.

    Parameters
    ----------
    estimate : Estimate
        The mean over folds and repetitions.
    repeats : tuple of float
        The mean over the folds of each repetition; one for the held-out part.
    """

    estimate: Estimate
    repeats: tuple[float, ...]


def score(
    question: Question,
    settings: Sequence[str],
    repeats: Sequence[Sequence[Mapping[str, Prediction]]],
    people: Integers,
) -> dict[tuple[str, str, str], Scored]:
    """Return the area under the curve and the balanced accuracy by setting, representation and metric.

    Both are computed within each fold and averaged, as the paper's are: scores of people who were judged by
    different classifiers are not ranked against each other. In cross-validation everybody both teaches and is
    judged, which the influence of single people does not show; its errors are widened for that (see
    :data:`fidm.study.influence.CAREFUL`).

    Parameters
    ----------
    question : Question
        Who is what.
    settings : sequence of str
        ``binary`` and, if wanted, ``multiclass``.
    repeats : sequence of sequences of mappings
        For each repetition and each of its folds, what each representation says.
    people : int array [n]
        The rows of those who are judged.
    """
    place = question.places(people)
    found: dict[tuple[str, str, str], Scored] = {}
    for name in repeats[0][0]:
        for setting in settings:
            for metric in paper.METRICS:
                means = []
                for folds in repeats:
                    said = [fold[name] for fold in folds]
                    parts = [_measure(question, setting, metric, one) for one in said]
                    means.append(mean_of(parts, [place[one.rows] for one in said], len(people)))
                everybody = [np.arange(len(people))] * len(means)
                widen = CAREFUL if len(repeats[0]) > 1 else 1.0
                found[setting, name, metric] = Scored(
                    mean_of(means, everybody, len(people), widen=widen), tuple(mean.value for mean in means)
                )
    return found


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


def score_row(key: Key, scored: Scored, *, kind: str, n_features: int) -> dict[str, Any]:
    """Return a row of the table of scores."""
    setting, part, representation, metric = key
    low, high = scored.estimate.interval()
    repeats = scored.repeats
    return {
        "setting": setting,
        "part": part,
        "representation": representation,
        "kind": kind,
        "n_features": n_features,
        "metric": metric,
        "n": len(scored.estimate.parts),
        "value": scored.estimate.value,
        "se": scored.estimate.se,
        "low": low,
        "high": high,
        "sd_repeats": float(np.std(repeats, ddof=1)) if part == CV and len(repeats) > 1 else None,
        "first_repeat": repeats[0] if part == CV else None,
        "paper": paper.classification(representation, setting, part, metric),
    }


def difference_rows(scored: Mapping[Key, Scored], pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rows of the table of differences: each pair's first representation less its second."""
    rows = []
    keys = dict.fromkeys((setting, part, metric) for setting, part, _, metric in scored)
    for setting, part, metric in keys:
        for one, other in pairs:
            a, b = (scored[setting, part, name, metric].estimate for name in (one, other))
            gain = difference(a, b)
            low, high = gain.interval(bounded=False)
            known = [paper.classification(name, setting, part, metric) for name in (one, other)]
            rows.append(
                {
                    "setting": setting,
                    "part": part,
                    "metric": metric,
                    "representation": one,
                    "against": other,
                    "value": gain.value,
                    "se": gain.se,
                    "low": low,
                    "high": high,
                    "p": gain.p_value(),
                    "paper": None if None in known else known[0] - known[1],  # type: ignore[operator]
                }
            )
    return rows
