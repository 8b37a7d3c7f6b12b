"""The section about people's status: how well it is told by what was estimated, and by other things."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, get_args

import polars as pl
from matplotlib.figure import Figure

from fidm.classify.classify import classify
from fidm.classify.language import Language, Texts
from fidm.classify.result import Classification, Metric, in_words
from fidm.classify.validation import FOLD_NUMBER
from fidm.errors import FidmError, count
from fidm.plot.classification import calibration_curve, curve_panels
from fidm.present.numbers import PERCENT, in_one_way
from fidm.present.summary import UNCERTAIN, is_unsure, say_scrambled
from fidm.present.wording import PARTS, featured, say_missing, times
from fidm.report.opening import Opened
from fidm.report.parts import (
    column,
    figure,
    roc_panels,
    score_bars,
    section,
    sentence,
    table,
    text_column,
    with_interval,
)

JUDGED = "judged in"
"""What the column is called that says how people were judged: by cross-validation, or once in the end."""

SCORE_KEYS = ("value", "low", "high", "paper")


def classification_section(opened: Opened) -> dict[str, Any]:
    """Return how well people's status is told, or why that cannot be told."""
    title, known, asked = "Classification", opened.known, opened.asked
    if not asked.classify:
        return section(
            "classification", title, ["Classification was left out of this report (--no-classify)."]
        )
    if known.label is None:
        why = f"Nothing is classified: the table of participants has no column {asked.label!r} with a status."
        return section("classification", title, [why])
    found = opened.study.find_classification(label=asked.label, normal=asked.normal)
    is_kept = found is not None
    if found is None:
        try:
            found = classify(
                known.tasks,
                known.cohort,
                language=Language(Texts(), {}),
                label=asked.label,
                normal=asked.normal,
                channels=opened.study.channels,
                seed=asked.seed,
                workers=asked.workers,
                on_progress=asked.on_progress,
            )
        except FidmError as error:
            said = [f"People's status cannot be classified: {error.message}"]
            if "folds" in error.message:
                said.append("fidm classify takes another number of folds (--folds); this page then shows it.")
            return section("classification", title, said)
    judged = count(found.flow.n("train"), "person", "people")
    folds, repeats = found.record.settings["folds"], found.record.settings["repeats"]
    said = [
        f"How well {asked.normal} people are told from all others ({', '.join(found.classes[1:])}), by "
        f"logistic regression: {folds}-fold cross-validation of {judged}, done {times(repeats)}"
        + (f", then {found.flow.n('held-out'):,} others once." if found.flow.n("held-out") else "."),
        *([] if is_kept else ["Language is left out; fidm classify, run before the report, can add it."]),
        *_left_out(found),
        *(in_one_way(sentence(note)) for note in (*found.notes, *say_missing(found))),
        *checks(found),
        *(f"{in_words(name)} was not tried: {why.rstrip('.')}." for name, why in found.not_run.items()),
    ]
    return section("classification", title, said, tables=_class_tables(found), figures=_class_figures(found))


def _left_out(found: Classification) -> list[str]:
    """How many people of known status are left out since nothing was observed of them."""
    n = found.flow.without_data
    return [f"{count(n, 'person', 'people')} left out: no data."] if n else []


def checks(found: Classification) -> list[str]:
    """Return what scrambled labels and numbers of folds gave: failures one by one, else all in a line."""
    failed = found.checks.filter(~pl.col("passed"))
    if failed.height:
        names = ", ".join(
            f"{check} ({in_words(name)})"
            for check, name in failed.select("check", "representation").iter_rows()
        )
        return [f"A check FAILED, so these numbers cannot be trusted: {names}. See fidm classify."]
    said = say_scrambled(found, "{:.3f}".format, "0.5")
    said += [
        f"features that name the fold change the AUC by {_change(row['value'])} (0 expected"
        + (f"; {UNCERTAIN})" if is_unsure(row) else ")")
        for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True)
        if row["value"] is not None and math.isfinite(row["value"])
    ]
    return [sentence(f"Checks: {'; '.join(said)}")] if said else []


def _change(value: float) -> str:
    """A small difference, signed; one that rounds to nothing is 0.

    Examples
    --------
    >>> _change(-0.0002), _change(-0.0121), _change(0.0031)
    ('0.000', '−0.012', '+0.003')
    """
    text = f"{abs(value):.3f}"
    if not float(text):
        return text
    return ("−" if value < 0 else "+") + text


def _class_tables(found: Classification) -> list[dict[str, Any]]:
    curves, calibrated = featured(found, most=3), featured(found, most=2)
    scores = table(
        "scores",
        "How well each representation tells people's status",
        [text_column("representation"), text_column("part", JUDGED), column("n", "people"),
         *with_interval("auc", "AUC"), column("auc_paper", "AUC in the paper"),
         *with_interval("balanced_accuracy", unit=PERCENT),
         column("balanced_accuracy_paper", "balanced accuracy in the paper", unit=PERCENT)],
        _score_rows(found.scores.filter(setting="binary")),
        brackets="95 % intervals",
        note="The paper's numbers are about its own people.",
    )  # fmt: skip
    roc = table(
        "roc-points",
        "Points of the ROC curves",
        [text_column("representation"), text_column("part", JUDGED),
         column("false_positive_rate", "false positives", unit=PERCENT), column("sensitivity", unit=PERCENT)],
        (
            (in_words(row["representation"]), PARTS[row["part"]], row["false_positive_rate"],
             row["sensitivity"])
            for row in _of(found.roc, curves)
        ),
    )  # fmt: skip
    calibration = table(
        "calibration-points",
        "Predicted and observed shares",
        [text_column("representation"), text_column("part", JUDGED), column("n", "people"),
         column("predicted", unit=PERCENT),
         *with_interval("observed", low="low", high="high", unit=PERCENT)],
        (
            (in_words(row["representation"]), PARTS[row["part"]], row["n"], row["predicted"], row["observed"],
             row["low"], row["high"])
            for row in _of(found.calibration, calibrated)
        ),
        brackets="95 % intervals",
    )  # fmt: skip
    return [scores, roc, calibration]


def _score_rows(scores: pl.DataFrame) -> list[tuple[Any, ...]]:
    """A row per representation and part, both metrics beside each other."""
    metrics: tuple[Metric, ...] = get_args(Metric)
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in scores.iter_rows(named=True):
        found.setdefault((row["representation"], row["part"]), {})[row["metric"]] = row
    rows = []
    for (name, part), own in found.items():
        cells = [own.get(metric, {}).get(key) for metric in metrics for key in SCORE_KEYS]
        rows.append((in_words(name), PARTS[part], next(iter(own.values()))["n"], *cells))
    return rows


def _of(points: pl.DataFrame, representations: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of these representations."""
    return points.filter(pl.col("representation").is_in(representations)).iter_rows(named=True)


FIGURES: tuple[tuple[str, str, Callable[[Classification], Figure], str, str], ...] = (
    ("score-bars", "How well each representation tells people's status", score_bars,
     "AUC and balanced accuracy of each representation with intervals.", "scores"),
    ("roc", "ROC curves", roc_panels,
     "Sensitivity against the share of false positives, a curve per representation.", "roc-points"),
    ("calibration", "Calibration", lambda found: curve_panels(found, calibration_curve),
     "Observed shares of cases against predicted probabilities.", "calibration-points"),
)  # fmt: skip
"""The name of each figure, its title, what draws it, what it shows in words, and the table of its numbers."""


def _class_figures(found: Classification) -> list[dict[str, Any]]:
    rows = {"score-bars": 1, "roc": found.roc.height, "calibration": found.calibration.height}
    return [
        figure(name, title, draw(found), alt=alt, table=numbers)
        for name, title, draw, alt, numbers in FIGURES
        if rows[name]
    ]
