"""From predictions to scores with intervals, and paired differences of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fidm.classify.intervals import (
    Estimate,
    auc,
    balanced_accuracy,
    by_groups,
    difference,
    macro_auc,
    mean_of,
    over_repeats,
)
from fidm.classify.judging import Prediction
from fidm.classify.question import Question
from fidm.experiments import paper
from fidm.types import Integers

BINARY, MULTICLASS = "binary", "multiclass"
CV, HELD_OUT = "cv", "held-out"
Key = tuple[str, str, str, str]
"""Setting, part, representation and metric."""

Papers = Callable[[str, str, str, str], float | None]
"""Gives what the paper reports of a representation, setting, part and metric; None where it is silent."""

FEWEST = 3
"""With fewer people of a class than this, a score has no error: nothing shows how much they differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """An estimate, and what the repetitions it averages gave.

    Parameters
    ----------
    estimate : Estimate
        The mean over folds and repetitions.
    repeats : tuple of float
        The mean over the folds of each repetition; one for the held-out part.
    n : int
        How many people it is of.
    """

    estimate: Estimate
    repeats: tuple[float, ...]
    n: int


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
    :func:`fidm.classify.intervals.over_repeats`).

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
    found: dict[tuple[str, str, str], Scored] = {}
    for name in repeats[0][0]:
        for setting in settings:
            for metric in paper.METRICS:
                means = [
                    _repetition(question, setting, metric, [fold[name] for fold in folds], people)
                    for folds in repeats
                ]
                estimate = over_repeats(means) if len(repeats[0]) > 1 else means[0]
                found[setting, name, metric] = Scored(
                    estimate, tuple(mean.value for mean in means), len(people)
                )
    return found


def _repetition(
    question: Question, setting: str, metric: str, said: Sequence[Prediction], people: Integers
) -> Estimate:
    """The mean over the folds of one repetition, or what the held-out part gives."""
    place = question.places(people)
    folds = [_measure(question, setting, metric, one) for one in said]
    mean = mean_of(folds, [place[one.rows] for one in said], len(people))
    if metric == "balanced_accuracy" and len(said) > 1:
        # A class has few people in a fold, which shows little of how they differ. Decisions of different
        # classifiers can be counted together, where their scores could not be ranked.
        together = _measure(question, setting, metric, _joined(said))
        pooled = mean_of([together], [place[np.concatenate([one.rows for one in said])]], len(people))
        mean = replace(pooled, value=mean.value)
    return mean if question.together is None else by_groups(mean, question.together[people])


def _joined(said: Sequence[Prediction]) -> Prediction:
    """The predictions of several folds as one."""
    given = [one.probability for one in said if one.probability is not None]
    return replace(
        said[0],
        rows=np.concatenate([one.rows for one in said]),
        logit=np.concatenate([one.logit for one in said]),
        probability=np.concatenate(given) if given else None,
    )


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


def score_row(key: Key, scored: Scored, *, kind: str, n_features: int, papers: Papers) -> dict[str, Any]:
    """Return a row of the table of scores; without an error where a class has too few people for one."""
    setting, part, representation, metric = key
    sure = scored.estimate.smallest >= FEWEST
    low, high = scored.estimate.interval() if sure else (None, None)
    repeats = scored.repeats
    return {
        "setting": setting,
        "part": part,
        "representation": representation,
        "kind": kind,
        "n_features": n_features,
        "metric": metric,
        "n": scored.n,
        "value": scored.estimate.value,
        "se": scored.estimate.se if sure else None,
        "low": low,
        "high": high,
        "sd_repeats": float(np.std(repeats, ddof=1)) if part == CV and len(repeats) > 1 else None,
        "first_repeat": repeats[0] if part == CV else None,
        "paper": papers(representation, setting, part, metric),
    }


def difference_rows(
    scored: Mapping[Key, Scored], pairs: Sequence[tuple[str, str]], *, papers: Papers
) -> list[dict[str, Any]]:
    """Return the rows of the table of differences: each pair's first representation less its second."""
    rows = []
    keys = dict.fromkeys((setting, part, metric) for setting, part, _, metric in scored)
    for setting, part, metric in keys:
        for one, other in pairs:
            a, b = (scored[setting, part, name, metric].estimate for name in (one, other))
            gain = difference(a, b)
            sure = gain.smallest >= FEWEST
            low, high = gain.interval(bounded=False) if sure else (None, None)
            known = [papers(name, setting, part, metric) for name in (one, other)]
            rows.append(
                {
                    "setting": setting,
                    "part": part,
                    "metric": metric,
                    "representation": one,
                    "against": other,
                    "value": gain.value,
                    "se": gain.se if sure else None,
                    "low": low,
                    "high": high,
                    "p": gain.p_value() if sure else None,
                    "paper": None if None in known else known[0] - known[1],  # type: ignore[operator]
                }
            )
    return rows
