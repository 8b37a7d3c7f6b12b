"""What a classification found, as plain rows and sentences: terminal, summary, page and pictures share them.

Those who show them say what representations are called there, which columns there is room for, and how an
area under the curve is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fidm.classify.features import KINDS as BLOCK_KINDS
from fidm.classify.intervals import ALONE, CAREFUL
from fidm.classify.result import KINDS, LABELS, Classification, Flow, in_words
from fidm.classify.tabular import FEWEST
from fidm.classify.validation import FOLD_NUMBER, LEVEL, SCRAMBLED
from fidm.errors import count, listed
from fidm.experiments.paper import CLASSIFICATION
from fidm.present.numbers import DASH, between, cell, number, percent, rows_of

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


# ---------------------------------------------------------------------- names and questions


def briefly(representation: str) -> str:
    """Return a representation's name where there is little room: "trajectory + FIDM"."""
    words = in_words(representation)
    for name in ("trajectory", "demographics"):
        words = words.replace(LABELS[name], name)
    return words


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


Called = Callable[[str], str]
"""Gives what a representation is called."""

SIDES: Mapping[str, str] = {"train": "training part", "held-out": "held-out part"}
"""The parts of a study in words."""

SIMULATED = "These people are simulated: nothing here says how well real people can be told apart."
PAPERS_PEOPLE = (
    "The paper's figures are of its own 400 people and map, which are not public: agreement proves nothing."
)
NO_PRESENCE = "pause_presence is not used, as in the paper."
FEW_CASES = f"{DASH}: fewer than {FEWEST} cases or {FEWEST} others."
"""Said where a group is too small."""

FEW = 0.05
"""Held-out people are few if the interval of an AUC reaches further than this to either side."""

UNSURE = 0.10
"""A check whose interval reaches further than this to either side cannot be judged."""

UNCERTAIN = "too uncertain to judge with so few people"


class Rows(NamedTuple):
    """A table as text: what stands above its columns, and its cells; the first two columns are words."""

    header: list[str]
    cells: list[list[str]]

    def first(self, n: int) -> Rows:
        """Return the first columns alone."""
        return Rows(self.header[:n], [row[:n] for row in self.cells])


def found_by(frame: pl.DataFrame, *columns: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the rows of a table by what stands in these columns."""
    return {tuple(row[name] for name in columns): row for row in frame.iter_rows(named=True)}


# ---------------------------------------------------------------------- people and rows


def study_parts(found: Classification) -> dict[str, str]:
    """Return the parts of the study that have people, in words."""
    return {part: words for part, words in SIDES.items() if part == "train" or found.flow.n(part)}


def say_not_run(found: Classification, called: Called) -> list[str]:
    """Return which representations were not run, and what would help; the same reason is said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in found.not_run.items():
        reasons.setdefault(why, []).append(called(name))
    return [f"{', '.join(names)} not run: {why}" for why, names in reasons.items()]


def say_width(found: Classification) -> list[str]:
    """Return how far the interval of an AUC reaches among held-out people, if there are any."""
    half = half_width(found, "held-out")
    if half is None:
        return []
    few = " are few" if half > FEW else ""
    return [
        f"{found.flow.n('held-out'):,} held-out people{few}: the 95 % interval of an AUC reaches about "
        f"{100 * half:.0f} points to either side."
    ]


def pair_words(called: Called, representation: str, against: str) -> str:
    """Return what a difference is between; the baseline of a combination need not be named."""
    words = called(representation)
    return words if representation.removesuffix(ADDED) == against else f"{words} − {called(against)}"


# ---------------------------------------------------------------------- more closely


def threshold_rows(found: Classification, called: Called) -> Rows:
    """Return what a threshold of one half gives, for a few representations; in per cent."""
    shares = ("sensitivity", "specificity", "ppv", "npv")
    return Rows(
        ["", "", "sensitivity", "specificity", "PPV", "NPV"],
        [
            [called(row["representation"]), PARTS[row["part"]], *(cell(row, name) for name in shares)]
            for row in rows_of(found.thresholds, featured(found))
        ],
    )


def calibration_rows(found: Classification, called: Called) -> Rows:
    """Return the calibration of a few representations."""
    rows = []
    for row in rows_of(found.calibration_summary, featured(found)):
        numbers = (
            f"{number(row[name])} ({between(row[f'{name}_low'], row[f'{name}_high'])})"
            if row[name] is not None
            else DASH
            for name in ("intercept", "slope")
        )
        briers = (number(row[name], places=3) for name in ("brier", "brier_reference"))
        rows.append([called(row["representation"]), PARTS[row["part"]], *numbers, *briers])
    return Rows(["", "", "intercept", "slope", "Brier", "of the prevalence"], rows)


def group_rows(found: Classification, called: Called, parts: Sequence[str]) -> Rows:
    """Return the area under the curve within groups of people, for a few representations; in per cent."""
    chosen = featured(found, most=2)
    shown = found.groups.filter(
        pl.col("representation").is_in(list(chosen)), pl.col("part").is_in(list(parts)), metric="auc"
    )
    sizes = found_by(shown, "column", "group", "part")
    known = found_by(shown, "column", "group", "part", "representation")
    rows = []
    for own in shown.select("column", "group").unique(maintain_order=True).rows():
        groups = (sizes.get((*own, part)) for part in parts)
        people = (f"{one['n_cases']:,} of {one['n']:,}" if one else DASH for one in groups)
        areas = (cell(known.get((*own, part, name))) for part in parts for name in chosen)
        rows.append([*own, *people, *areas])
    where = {part: f", {PARTS[part]}" if len(parts) > 1 else "" for part in parts}
    names = (f"{called(name)}{where[part]}" for part in parts for name in chosen)
    return Rows(["", "", *(f"cases{where[part]}" for part in parts), *names], rows)


# ---------------------------------------------------------------------- checks


class Scale(NamedTuple):
    """How areas under the curve are written, and changes of one."""

    area: Callable[[float], str]
    change: Callable[[float | None], str]
    unit: str
    half: str


def _small(value: float | None) -> str:
    """A small difference, signed; one that rounds to nothing is 0.

    Examples
    --------
    >>> _small(-0.0002), _small(-0.0121), _small(0.0031), _small(None)
    ('0.000', '−0.012', '+0.003', '–')
    """
    return number(value, places=3, sign=True) if value is None or round(value, 3) else "0.000"


POINTS = Scale(percent, partial(percent, sign=True), " points", "50")
"""In per cent, as the paper has them."""

SHARES = Scale("{:.3f}".format, _small, "", "0.5")
"""From 0 to 1, as the report has them."""


def check_level() -> str:
    """Return the level of the intervals of checks: "99.9 %"."""
    return f"{LEVEL:.1%}".replace("%", " %")


def is_unsure(row: Mapping[str, Any]) -> bool:
    """Return whether the check of the fold passed only because its interval is so wide."""
    low, high = row["low"], row["high"]
    return row["passed"] is not False and (low is None or high is None or not (high - low) / 2 <= UNSURE)


def say_fold(row: Mapping[str, Any], scale: Scale = POINTS) -> str:
    """Return what features that name the fold add to a representation, and whether that is well."""
    verdict = {
        True: "nothing, as it must be",
        False: "it must be nothing, so the check FAILED",
        None: "not judged",
    }[row["passed"]]
    if is_unsure(row):
        verdict = UNCERTAIN
    value, low, high = (scale.change(row[name]) for name in ("value", "low", "high"))
    ends = "" if DASH in (low, high) else f" ({check_level()}: {low} to {high})"
    added = f"{value}{scale.unit} of AUC to {briefly(row['representation'])}"
    return f"features that name the fold add {added}{ends}: {verdict}"


def permutation_p(p: float | None, n: int) -> str:
    """Return the p of n scrambles; at its least it is only a bound.

    Examples
    --------
    >>> from fidm.present.findings import permutation_p
    >>> permutation_p(1 / 21, 20), permutation_p(0.5, 20)
    ('≤ 0.048', '0.500')
    """
    if p is None or not math.isfinite(p):
        return DASH
    words = f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"
    return f"≤ {words}" if p <= (1 + 1e-9) / (1 + n) else words


def say_failed(found: Classification, called: Called) -> list[str]:
    """Return which checks failed, if any did."""
    failed = found.checks.filter(passed=False)
    if not failed.height:
        return []
    which = (
        f"{check} ({', '.join(map(called, names))})"
        for check, names in failed.group_by("check", maintain_order=True).agg("representation").iter_rows()
    )
    return [
        f"{failed.height} of {count(found.checks.height, 'check')} failed: do not trust these results before "
        f"it is known why. Failed: {', '.join(which)}."
    ]


def say_checks(found: Classification, scale: Scale = POINTS) -> list[str]:
    """Return in a line what the checks gave, and how many passed; nothing where there are none."""
    checks, said = found.checks, []
    scrambled = checks.filter(check=SCRAMBLED)
    values = scrambled["value"].drop_nulls().drop_nans().to_list()
    if values:
        gave = " to ".join(dict.fromkeys((scale.area(min(values)), scale.area(max(values)))))
        often = times(int(scrambled["n"][0]))
        said.append(f"labels scrambled {often} gave a mean AUC of {gave} ({scale.half} expected)")
        if chances := scrambled["p"].drop_nulls().to_list():
            ps = " to ".join(dict.fromkeys(f"{p:.2f}" for p in (min(chances), max(chances))))
            said.append(f"they did as well as the true labels with a probability of {ps}")
    folds = checks.filter(check=FOLD_NUMBER).rows(named=True)
    said += [say_fold(row, scale) for row in folds]
    unsure = sum(is_unsure(row) and row["passed"] is not None for row in folds)
    passed, judged = (int(n) - unsure for n in (checks["passed"].sum(), checks["passed"].count()))
    open_ones = checks["passed"].null_count() + unsure
    if open_ones:
        said.append(
            f"{open_ones} not judged" + (f", {passed} of the other {judged} passed" if judged else "")
        )
    elif judged:
        said.append(f"{passed} of {judged} passed")
    return [f"checks: {'; '.join(said)}"] if said else []
