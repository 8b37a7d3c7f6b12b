"""The section about people's status: how well it is told by what was estimated, and by other things."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from fidm.classify.classify import classify
from fidm.classify.language import Language, Texts
from fidm.classify.result import Classification, in_words
from fidm.errors import FidmError, count
from fidm.plot.classification import calibration_curve, curve_panels
from fidm.present.findings import PAPERS_PEOPLE, SHARES, say_checks, say_failed, say_not_run
from fidm.present.numbers import PERCENT, in_one_way, sentence
from fidm.present.wording import PARTS, featured, has_paper, say_missing, times
from fidm.report.opening import Opened
from fidm.report.parts import (
    column,
    figure,
    roc_panels,
    score_bars,
    section,
    table_of,
    text_column,
    with_interval,
)

JUDGED = "judged in"
"""What the column is called that says how people were judged: by cross-validation, or once in the end."""


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
        *map(sentence, say_not_run(found, in_words)),
    ]
    return section("classification", title, said, tables=_class_tables(found), figures=_class_figures(found))


def _left_out(found: Classification) -> list[str]:
    """How many people of known status are left out since nothing was observed of them."""
    n = found.flow.without_data
    return [f"{count(n, 'person', 'people')} left out: no data."] if n else []


def checks(found: Classification) -> list[str]:
    """Return what the checks gave, or which of them failed."""
    failed = say_failed(found, in_words)
    if failed:
        return [f"{failed[0]} See fidm classify."]
    return list(map(sentence, say_checks(found, SHARES)))


def _class_tables(found: Classification) -> list[dict[str, Any]]:
    whose = [text_column("representation"), text_column("part", JUDGED)]
    scores = table_of(
        "scores",
        "How well each representation tells people's status",
        [*whose, column("n", "people"),
         *with_interval("auc", "AUC"), column("auc_paper", "AUC in the paper"),
         *with_interval("balanced_accuracy", unit=PERCENT),
         column("balanced_accuracy_paper", "balanced accuracy in the paper", unit=PERCENT)],
        _beside(_in_words(found.scores.filter(setting="binary"))),
        brackets="95 % intervals",
        note=PAPERS_PEOPLE if has_paper(found) else "",
    )  # fmt: skip
    roc = table_of(
        "roc-points",
        "Points of the ROC curves",
        [*whose, column("false_positive_rate", "false positives", unit=PERCENT),
         column("sensitivity", unit=PERCENT)],
        _in_words(found.roc, featured(found, most=3)),
    )  # fmt: skip
    calibration = table_of(
        "calibration-points",
        "Predicted and observed shares",
        [*whose, column("n", "people"), column("predicted", unit=PERCENT),
         *with_interval("observed", low="low", high="high", unit=PERCENT)],
        _in_words(found.calibration, featured(found, most=2)),
        brackets="95 % intervals",
    )  # fmt: skip
    return [scores, roc, calibration]


def _in_words(frame: pl.DataFrame, representations: Sequence[str] = ()) -> pl.DataFrame:
    """The rows of these representations, or of all, with what they are called and how people were judged."""
    shown = frame.filter(pl.col("representation").is_in(representations)) if representations else frame
    names = {name: in_words(name) for name in shown["representation"].unique()}
    return shown.with_columns(pl.col("representation").replace(names), pl.col("part").replace(PARTS))


def _beside(scores: pl.DataFrame) -> pl.DataFrame:
    """A row per representation and part, both metrics beside each other."""
    wide = scores.pivot(
        "metric", index=["representation", "part", "n"], values=["value", "low", "high", "paper"]
    )
    return wide.rename(lambda name: re.sub(r"^(low|high|paper)_(.+)", r"\2_\1", name.removeprefix("value_")))


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
