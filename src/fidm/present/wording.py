"""Words and numbers of a classification that its page, its pictures and its summary share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from fidm.classify.features import KINDS as BLOCK_KINDS
from fidm.classify.intervals import ALONE, CAREFUL
from fidm.classify.result import KINDS, LABELS, Classification, Flow, in_words
from fidm.errors import count
from fidm.experiments.paper import CLASSIFICATION

Row = tuple[str, str, int | None]
"""A row of the tables: a representation, its kind, and how many features it has."""

PARTS: Mapping[str, str] = {"cv": "cross-validation", "held-out": "held-out part"}
METRICS: Mapping[str, str] = {"auc": "area under the ROC curve", "balanced_accuracy": "balanced accuracy"}
SHORT: Mapping[str, str] = {"auc": "AUC", "balanced_accuracy": "balanced accuracy"}
"""Parts and metrics in words."""

HEADINGS: Mapping[str, str] = {
    "clinical": "clinical baselines",
    "demographic": "demographic baseline",
    **{str(kind): words for kind, words in KINDS.items()},
    "fidm": "model (both factors)",
}
"""What stands above the rows of each kind, in the order in which they are shown."""

ABLATION = ("action", "effort", "fidm")
"""The rows of the paper's table 3."""

WHOLE = ("score", "score+subscores", "trajectory", "fidm")
"""Rows that are tried whenever nothing is asked for by name."""


ADDED = "+fidm"
"""How the name of a combination with FIDM ends."""

USUAL = (
    "fidm",
    "score+fidm",
    "score",
    "trajectory",
    "bert",
    "macbert",
    "score+subscores+fidm",
    "score+subscores",
)
"""What is shown where there is room for a few, the most wanted first; chosen before anybody is classified."""

MOST_LACKING = 5
"""How many features, or sets of them, that people lack a line names."""

COUNTED = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FIRST = (
    "In cross-validation from the first repetition, all folds together, so they need not average to the "
    "tables above."
)
"""Where thresholds, calibration and groups come from."""

NO_INTERCEPT = "In cross-validation the intercept is 0 by construction, and left out."
PAPERS_OWN = "the paper's figures are left out: it told normal from mci and major NCD"
"""Said where the question is another."""


# ---------------------------------------------------------------------- numbers


def times(n: Any) -> str:
    """Return how often: "once", "5 times"."""
    return "once" if n == 1 else f"{n:,} times" if isinstance(n, int) else f"{n} times"


def listed(names: Iterable[str]) -> str:
    """Return names as one says them: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# ---------------------------------------------------------------------- names and questions


def briefly(representation: str) -> str:
    """Return a representation's name where there is little room: "trajectory + FIDM"."""
    words = in_words(representation)
    for name in ("trajectory", "demographics"):
        words = words.replace(LABELS[name], name)
    return words


def baseline_of(representation: str) -> str:
    """Return what a combination with FIDM adds it to: "score" of "score+fidm"."""
    return representation.removesuffix(ADDED)


def how_many_classes(result: Classification, setting: str) -> str:
    """Return what a setting is called: "two classes", "three classes"."""
    n = 2 if setting == "binary" else len(result.classes)
    return f"{COUNTED[n] if n < len(COUNTED) else n} classes"


def question(result: Classification, setting: str) -> str:
    """Return what a setting asks, in the study's words: "normal against mci and major_ncd"."""
    first, *others = result.classes
    if setting == "binary":
        return f"{first} against {listed(others)}"
    return f"{', '.join(result.classes)}, each against the rest"


def has_paper(result: Classification, setting: str | None = None) -> bool:
    """Return whether the paper reports any of these scores: it must have asked the same question."""
    rows = result.scores if setting is None else result.scores.filter(setting=setting)
    return rows["paper"].count() > 0


def asks_otherwise(result: Classification) -> bool:
    """Return whether the question is another than the paper's, so that its figures are left out."""
    settings = result.record.settings
    asked = settings.get("label", "diagnosis"), settings.get("normal", "normal")
    return asked != ("diagnosis", "normal") and not has_paper(result)


def say_widened(result: Classification) -> str:
    """Return what cross-validated intervals are, and what they leave out."""
    factor = ALONE if result.record.settings.get("repeats") == 1 else CAREFUL
    square = round(factor**2)
    words = f"√{square}" if math.isclose(factor**2, square) else f"{factor:g}"
    return (
        f"Cross-validated intervals are widened (× {words}), because everybody is used both for training and "
        "for testing; they cover chance in who is tested, not in who was trained on."
    )


def uses_effort(result: Classification) -> bool:
    """Return whether effort channels take part."""
    return any({"effort", "fidm"} & set(name.split("+")) for name in result.representations)


def left_out(flow: Flow) -> list[tuple[int, str]]:
    """Return how many people were left out, and why: the study's reasons first."""
    found = [(n, reason) for reason, n in flow.excluded.items()]
    found += [
        (flow.with_problems, "problems in their data"),
        (flow.without_label, "status not known"),
        (flow.without_part, "in neither part"),
        (flow.without_data, "no data"),
    ]
    return [(n, why) for n, why in found if n]


def lacking(result: Classification) -> pl.DataFrame:
    """Return how many people lack each feature, where anybody does, most first; FIDM has its factors'."""
    parts = ["action", "effort"] if "fidm" in result.missing["representation"] else []
    found = result.missing.filter(pl.col("n_missing") > 0, ~pl.col("representation").is_in(parts))
    return found.sort("n_missing", descending=True, maintain_order=True)


def say_missing(result: Classification) -> list[str]:
    """Return which features people lack, in a line; nothing where nobody lacks any."""
    alike = ["representation", "part", "n", "n_missing"]
    of_each = result.missing.group_by("feature", maintain_order=True).agg(pl.col("n", "n_missing").sum())
    gone = of_each.filter(pl.col("n") == pl.col("n_missing"))["feature"].to_list()
    said = [
        f"{features[0] if len(features) == 1 else f'{len(features):,} features of {briefly(name)}'} "
        f"for {lack:,} of {n:,} {'held-out people' if part == 'held-out' else 'people'}"
        for name, part, n, lack, features in lacking(result)
        .filter(~pl.col("feature").is_in(gone))
        .group_by(alike, maintain_order=True)
        .agg("feature")
        .iter_rows()
    ]
    more = f", and {len(said) - MOST_LACKING:,} more" if len(said) > MOST_LACKING else ""
    shown = ", ".join(said[:MOST_LACKING])
    return [
        *(
            [f"missing for everybody, and of no use: {', '.join(gone)} (classify-missing.csv)"]
            if gone
            else []
        ),
        *([f"missing, and replaced by the median: {shown}{more} (classify-missing.csv)"] if said else []),
    ]


# ---------------------------------------------------------------------- which rows


def featured(result: Classification, *, most: int = 3) -> tuple[str, ...]:
    """Return a few representations to be shown more closely, in the order of the tables.

    FIDM, its combination with the clinical score, and baselines come first; their scores play no part in it.

    Parameters
    ----------
    result : Classification
        What was found.
    most : int
        How many at most.
    """
    wanted = [name for name in USUAL if name in result.representations]
    if "bert" in wanted and "macbert" in wanted:  # one language baseline stands for both
        wanted.remove("macbert")
    rest = [name for name in result.representations if name not in wanted]
    chosen = {*[*wanted, *rest][:most]}
    return tuple(name for name in result.representations if name in chosen)


def rows_shown(result: Classification) -> tuple[Row, ...]:
    """Return the rows of the tables: name, kind and number of features.

    Those that were not run are among them if the paper reports them, for its figures.
    """
    known = {
        name: (kind, n)
        for name, kind, n in result.scores.select("representation", "kind", "n_features").iter_rows()
    }
    found: list[Row] = [(name, *known[name]) for name in result.representations if name in known]
    if has_paper(result):
        for name in result.not_run:
            kind = BLOCK_KINDS.get(name) or ("fusion" if "+" in name else "language")
            found.append((name, kind, None))
    order = {name: i for i, name in enumerate((*CLASSIFICATION, "action", "effort"))}
    place = {name: i for i, (name, _, _) in enumerate(found)}
    return tuple(sorted(found, key=lambda row: (order.get(row[0], len(order)), place[row[0]])))


def main_rows(result: Classification) -> list[Row]:
    """Return the rows of table 2; single factors are among them if they were asked for by name."""
    shown = rows_shown(result)
    if {*WHOLE} <= {*result.representations, *result.not_run}:
        return [row for row in shown if row[1] != "ablation"]
    return list(shown)


def factor_rows(result: Classification) -> list[Row]:
    """Return the rows of table 3, or none where nothing is taken apart."""
    found = sorted(
        (row for row in rows_shown(result) if row[0] in ABLATION), key=lambda row: ABLATION.index(row[0])
    )
    return found if len(found) > 1 and found[-1][0] == "fidm" else []


def grouped(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return rows by kind, each kind with its heading."""
    kinds = ["demographic" if name == "demographics" else kind for name, kind, _ in rows]
    found = [
        (words, [row for row, own in zip(rows, kinds, strict=True) if own == kind])
        for kind, words in HEADINGS.items()
    ]
    return [(words, own) for words, own in found if own]


# ---------------------------------------------------------------------- differences


def compared(result: Classification, *settings: str) -> pl.DataFrame:
    """Return the differences between combinations and their baselines, without those against FIDM alone."""
    found = result.differences.filter(pl.col("against") != "fidm")
    return found.filter(pl.col("setting").is_in(settings)) if settings else found


def excluding_zero(differences: pl.DataFrame) -> tuple[int, int, int]:
    """Return how many differences have an interval, and how many of these lie above and below zero."""
    known = differences.filter(pl.col("low").is_finite() & pl.col("high").is_finite())
    return known.height, int((known["low"] > 0).sum()), int((known["high"] < 0).sum())


def say_chance(differences: pl.DataFrame) -> str:
    """Return how many intervals exclude zero, and that some would by chance, as sentences."""
    n, above, below = excluding_zero(differences)
    if not n:
        return "No difference has an interval."
    out = above + below
    return (
        f"Of {count(n, 'interval')}, {out:,} exclude{'s' if out == 1 else ''} 0 ({above:,} "
        f"above, {below:,} below). Some would by chance, and they share people: decide before you look "
        "which comparison counts."
    )


def half_width(result: Classification, part: str) -> float | None:
    """Return the median half width of the intervals of the AUC for two classes in a part."""
    rows = result.scores.filter(setting="binary", part=part, metric="auc")
    widths = (rows["high"] - rows["low"]).drop_nulls().drop_nans()
    return float(np.median(widths.to_numpy())) / 2 if len(widths) else None
