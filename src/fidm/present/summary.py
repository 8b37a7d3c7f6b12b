"""A summary of a classification along the lines of TRIPOD+AI: who was in, what was done, how well it did.

TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378) lists what a report of a prediction model has to say. The
summary says what the program knows, and names the items that only the people behind a study can fill in.

The sections of the summary with results: performance, thresholds, calibration, groups, limitations.

What the checks of a classification found, in words, for its page and its summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from fidm.classify.result import Classification, in_words
from fidm.classify.subgroups import FEWEST
from fidm.classify.validation import FOLD_NUMBER, LEVEL, SCRAMBLED
from fidm.files import whole_file
from fidm.present.numbers import DASH, between, cell, number, percent, plain_text, rows_of, span, table
from fidm.present.wording import (
    FIRST,
    METRICS,
    NO_INTERCEPT,
    PARTS,
    SHORT,
    baseline_of,
    briefly,
    compared,
    featured,
    half_width,
    has_paper,
    how_many_classes,
    lacking,
    left_out,
    listed,
    say_chance,
    say_widened,
    times,
    uses_effort,
)

UNSURE = 0.10
"""A check whose interval reaches further than this to either side cannot be judged."""


UNCERTAIN = "too uncertain to judge with so few people"


def check_level() -> str:
    """Return the level of the intervals of checks: "99.9 %"."""
    return f"{LEVEL:.1%}".replace("%", " %")


def is_unsure(row: Mapping[str, Any]) -> bool:
    """Return whether the check of the fold passed only because its interval is so wide."""
    low, high = row["low"], row["high"]
    return row["passed"] is not False and (low is None or high is None or not (high - low) / 2 <= UNSURE)


def say_fold(row: Mapping[str, Any]) -> str:
    """Return what features that name the fold add to a representation, and whether that is well."""
    verdict = {
        True: "nothing, as it must be",
        False: "it must be nothing, so the check FAILED",
        None: "not judged",
    }[row["passed"]]
    if is_unsure(row):
        verdict = UNCERTAIN
    return (
        "Features that name the fold, and the answer for those who are judged, add "
        f"{percent(row['value'], sign=True)} points of AUC to {briefly(row['representation'])} "
        f"({check_level()}: {span(row['low'], row['high'], sign=True)}): {verdict}."
    )


def permutation_p(p: float | None, n: int) -> str:
    """Return the p of n scrambles; at its least it is only a bound.

    Examples
    --------
    >>> from fidm.present.summary import permutation_p
    >>> permutation_p(1 / 21, 20), permutation_p(0.5, 20)
    ('≤ 0.048', '0.500')
    """
    if p is None or not math.isfinite(p):
        return DASH
    words = f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"
    return f"≤ {words}" if p <= (1 + 1e-9) / (1 + n) else words


def say_scrambled(found: Classification, write: Callable[[float], str], expected: str) -> list[str]:
    """Return what scrambled labels gave, if they were tried; ``write`` writes an AUC."""
    scrambled = found.checks.filter(check=SCRAMBLED)
    values = scrambled["value"].drop_nulls().drop_nans().to_list()
    if not values:
        return []
    gave = " to ".join(dict.fromkeys((write(min(values)), write(max(values)))))
    return [f"labels scrambled {times(int(scrambled['n'][0]))} gave an AUC of {gave} ({expected} expected)"]


def check_words(found: Classification) -> str:
    """Return all checks in one line, for when none failed."""
    said = say_scrambled(found, percent, "50")
    said += [
        f"{percent(row['value'], sign=True)} points from features that name the fold (0 expected)"
        for row in found.checks.filter(check=FOLD_NUMBER).iter_rows(named=True)
    ]
    return "; ".join(said)


def performance(result: Classification) -> list[str]:
    """Return section 7: scores with intervals, and what combinations add."""
    lines = ["## 7 Performance", "", "In per cent, with 95 % intervals.", ""]
    parts = result.parts
    known = {
        (row["setting"], row["part"], row["metric"], row["representation"]): row
        for row in result.scores.iter_rows(named=True)
    }
    header = ["", *(f"{PARTS[part]}, {SHORT[metric]}" for part in parts for metric in METRICS)]
    for setting in result.settings:
        rows = [
            [
                plain_text(in_words(name)),
                *(cell(known.get((setting, part, metric, name))) for part in parts for metric in METRICS),
            ]
            for name in result.representations
        ]
        lines += [f"**{how_many_classes(result, setting).capitalize()}**", *table(header, rows)]
    differences = compared(result, "binary")
    if not differences.height:
        return lines[:-1]
    found = {
        (row["part"], row["metric"], row["representation"], row["against"]): row
        for row in differences.iter_rows(named=True)
    }
    pairs = differences.select("representation", "against").unique(maintain_order=True).rows()
    rows = [
        [
            _pair(*pair),
            *(cell(found.get((part, metric, *pair)), sign=True) for part in parts for metric in METRICS),
        ]
        for pair in pairs
    ]
    more = f" and {how_many_classes(result, 'multiclass')}" if "multiclass" in result.settings else ""
    return [
        *lines,
        "**What a combination adds to its baseline**, two classes, in points",
        *table(header, rows),
        f"{say_chance(differences)} p values{more}: classify-differences.csv.",
    ]


def output(result: Classification) -> list[str]:
    """Return section 8: what a threshold of one half gives, and calibration."""
    chosen = featured(result)
    rows = []
    for row in rows_of(result.thresholds, chosen):
        shares = (cell(row, name) for name in ("sensitivity", "specificity", "ppv", "npv"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *shares])
    lines = [
        "## 8 Probabilities and thresholds",
        "",
        f"Two classes. {FIRST} Intervals of this section are not widened.",
        "",
        "At a threshold of one half of the balanced probability, fixed before anybody was judged; in per "
        "cent, with Wilson's intervals. PPV and NPV hold only where cases are as frequent as among these "
        "people.",
        *table(["", "", "sensitivity", "specificity", "PPV", "NPV"], rows, left=2),
        "Calibration, at the prevalence of the training part (best: intercept 0, slope 1, a Brier score "
        f"below that of the prevalence alone). {NO_INTERCEPT}",
    ]
    rows = []
    for row in rows_of(result.calibration_summary, chosen):
        numbers = (
            f"{number(row[name])} ({between(row[f'{name}_low'], row[f'{name}_high'])})"
            if row[name] is not None
            else DASH
            for name in ("intercept", "slope")
        )
        briers = (number(row[name], places=3) for name in ("brier", "brier_reference"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *numbers, *briers])
    lines += table(["", "", "intercept", "slope", "Brier", "of the prevalence"], rows, left=2)
    return [*lines, "Clinical utility (net benefit): not examined."]


def groups(result: Classification) -> list[str]:
    """Return section 9: scores within groups of people."""
    chosen = featured(result, most=2)
    shown = result.groups.filter(pl.col("representation").is_in(list(chosen)), metric="auc")
    if not shown.height:
        return ["## 9 Groups", "", "The study has no columns of age, sex or education to cut people by."]
    known = {
        (row["column"], row["group"], row["part"], row["representation"]): row
        for row in shown.iter_rows(named=True)
    }
    parts = result.parts
    rows = []
    for column, group in shown.select("column", "group").unique(maintain_order=True).rows():
        sizes = [
            next((known[key] for name in chosen if (key := (column, group, part, name)) in known), None)
            for part in parts
        ]
        people = (f"{one['n_cases']:,} of {one['n']:,}" if one else DASH for one in sizes)
        cells = (cell(known.get((column, group, part, name))) for part in parts for name in chosen)
        rows.append([plain_text(column), plain_text(group), *people, *cells])
    header = [
        "",
        "",
        *(f"cases, {PARTS[part]}" for part in parts),
        *(f"{plain_text(in_words(name))}, {PARTS[part]}" for part in parts for name in chosen),
    ]
    lines = [
        "## 9 Groups",
        "",
        f"Area under the ROC curve, two classes, in per cent. {FIRST} Intervals are DeLong's, not widened. "
        "Balanced accuracy and all other representations: classify-groups.csv.",
        *table(header, rows, left=2),
    ]
    if shown["value"].null_count():
        return [*lines, f"{DASH}: fewer than {FEWEST} cases or {FEWEST} others."]
    return lines[:-1]


def limitations(result: Classification, *, simulated: bool) -> list[str]:
    """Return section 10: checks for leaks, and what the numbers do not show."""
    lines = ["## 10 Checks and limitations", ""]
    scrambled = result.checks.filter(check=SCRAMBLED)
    if scrambled.height:
        often, judged = times(int(scrambled["n"][0])), scrambled.drop_nulls("passed")
        lines.append(
            f"- Labels scrambled {often} give an AUC of one half, as they must, for "
            f"{int(judged['passed'].sum()):,} of {judged.height:,} representations ({check_level()} "
            "intervals)."
            if judged.height
            else f"- Labels were scrambled {often}, which is too few to judge what they give."
        )
    lines += [
        f"- {plain_text(say_fold(row))}"
        for row in result.checks.filter(check=FOLD_NUMBER).iter_rows(named=True)
    ]
    if result.checks.filter(passed=False).height:
        lines.append("- **A check failed. The results above must not be trusted before it is known why.**")
    return [
        *lines,
        "- Intervals do not cover chance in who was trained on or in how folds were cut (classify.csv has "
        "the spread over repetitions), nor another clinic, language or map.",
        "- Representations were compared many times on the same people; some intervals exclude 0 by chance.",
        *(
            ["- The held-out part comes from the same study: this is no external validation."]
            if "held-out" in result.parts
            else ["- Nobody was held out: this is no external validation."]
        ),
        *(["- The people are simulated and made to resemble the paper's."] if simulated else []),
        *(
            ["- The paper's figures in classify.csv are of its own 400 people, whose data are not public."]
            if has_paper(result)
            else []
        ),
    ]


def _pair(representation: str, against: str) -> str:
    words = plain_text(in_words(representation))
    return words if baseline_of(representation) == against else f"{words} − {plain_text(in_words(against))}"


MOST_MISSING = 12
"""How many incomplete features the summary lists; all are in the file."""

FEW_EVENTS = 10
"""People of the smaller class per feature below which a plain regression is often unstable."""

SHOWN_HASH = 12
"""How many characters of a hash are shown; all are in classify.json."""

ITEMS: tuple[tuple[str, str, str], ...] = (
    ("20a, 21", "flow; people and cases per analysis", "1"),
    ("8a (in part)", "outcome", "2"),
    ("9b (in part), 12b, 22 (in part)", "predictors and model", "3"),
    ("10 (in part)", "sample size", "4"),
    ("11", "missing data", "5"),
    ("12a–c, 12e, 12g, 13", "analysis, class imbalance and recalibration", "6"),
    ("12f, 24", "model updating: none was done", "6"),
    ("23a", "performance; sociodemographic groups", "7, 9"),
    ("15, 23a", "output, threshold, calibration", "8"),
    ("14", "fairness: nothing was done about it, section 9 only reports", "9"),
    ("12d, 23b", "clusters such as sites: only if asked for with --by", "9"),
    ("26 (in part)", "limitations", "10"),
    ("18f (in part)", "code", "11"),
    (
        "1–4, 5, 6, 7, 8b–c, 9a, 9c, 16, 17, 18a–e, 19, 20b–c, 25, 27",
        "context, data, setting, assessors, ethics, funding, people's characteristics, interpretation, use",
        "for the authors",
    ),
)
"""Items of TRIPOD+AI, and the section of the summary that says something about them."""


def write_summary(found: Classification, folder: Path, *, simulated: bool) -> Path:
    """Write ``classify-summary.md`` into a folder, whole or not at all."""
    path = folder / "classify-summary.md"
    with whole_file(path) as part:
        part.write_text(summary(found, simulated=simulated), "utf-8")
    return path


def summary(result: Classification, *, simulated: bool = False) -> str:
    """Return a summary in Markdown: participants, outcome, predictors, analysis, results and limitations.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.classify.classify.classify` gave.
    simulated : bool
        Whether the people are simulated.
    """
    sections = (
        _head(result, simulated),
        _participants(result),
        _outcome(result),
        _predictors(result),
        _sample_size(result),
        _missing(result),
        _analysis(result),
        performance(result),
        output(result),
        groups(result),
        limitations(result, simulated=simulated),
        _software(result),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _head(result: Classification, simulated: bool) -> list[str]:
    first, *others = map(plain_text, result.classes)
    column = plain_text(result.record.settings.get("label", "diagnosis"))
    lines = [
        f"# Classification of {column}: {first} against {', '.join(others)}",
        "",
        "A summary along the lines of TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378). **Research use "
        "only, not a diagnosis.**",
    ]
    if simulated:
        lines += [
            "",
            "**These people are simulated.** Nothing here says how well real people can be told apart.",
        ]
    lines += table(["TRIPOD+AI item", "about", "section"], ITEMS, left=3)
    return lines[:-1]


def _participants(result: Classification) -> list[str]:
    flow, settings = result.flow, result.record.settings
    parts = ["train", "held-out"] if flow.n("held-out") else ["train"]
    split = plain_text(settings.get("split", "split"))
    said = f"{sum(flow.n(part) for part in parts):,} people were analysed: {flow.n('train'):,} in the "
    if len(parts) > 1:
        said += f"training part and {flow.n('held-out'):,} in the held-out part (column {split})."
    else:
        said += "training part, nobody held out."
    out = [f"{n:,} ({plain_text(why)})" for n, why in left_out(flow)]
    rows = [
        [
            plain_text(name),
            *(f"{counts.get(part, 0):,} ({_share(counts.get(part, 0), flow.n(part))})" for part in parts),
        ]
        for name, counts in flow.classes.items()
    ]
    header = ["class", *("training part" if part == "train" else "held-out part" for part in parts)]
    lines = ["## 1 Participants", "", said]
    lines.append(f"Left out: {', '.join(out)}." if out else "Nobody was left out.")
    return [*lines, *table(header, rows)][:-1]


def _outcome(result: Classification) -> list[str]:
    first, *others = map(plain_text, result.classes)
    said = (
        f"The participants' column {plain_text(result.record.settings.get('label', 'diagnosis'))}, as the "
        "study gives it; how, when and by whom it was judged is for the authors to say. Two classes: "
        f"{first} against {listed(others)}{' grouped together' if len(others) > 1 else ''}. Cases: everybody "
        f"who is not {first}."
    )
    if "multiclass" in result.settings:
        said += f" Also {how_many_classes(result, 'multiclass')}, each against the rest."
    return ["## 2 Outcome", "", said]


def _predictors(result: Classification) -> list[str]:
    counts = _features(result)
    kinds = dict(result.scores.select("representation", "kind").unique(maintain_order=True).iter_rows())
    rows = [
        [plain_text(in_words(name)), _source(result, name, kinds[name]), f"{counts[name]:,}"]
        for name in result.representations
    ]
    reasons: dict[str, list[str]] = {}
    for name, why in result.not_run.items():
        reasons.setdefault(why, []).append(plain_text(in_words(name)))
    notes = [f"Not run: {', '.join(names)}. {plain_text(why)}" for why, names in reasons.items()]
    notes += map(plain_text, result.notes)
    if uses_effort(result):
        notes.append(f"{plain_text('pause_presence')} is not used, as in the paper.")
    written = set(result.coefficients["representation"])
    absent = [plain_text(in_words(name)) for name in result.representations if name not in written]
    but = f" (not of {listed(absent)}, which have too many features)" if absent else ""
    return [
        "## 3 Predictors and model",
        "",
        "Each representation was given to the same classifier on its own. classify-coefficients.csv has the "
        f"models of the whole training part{but}: the logit of the "
        "balanced probability of being a case is the intercept plus the sum of coefficient × (value − mean) "
        f"/ sd / {plain_text('block_scale')}, with the median for a missing value.",
        *table(["representation", "from", "features"], rows, left=2),
        *(f"- {one}" for one in notes),
    ][: None if notes else -1]


def _source(result: Classification, name: str, kind: str) -> str:
    """Where a representation's features come from, in words."""
    settings = result.record.settings
    if kind == "fusion":
        return "its parts"
    if kind == "own":
        learns = name not in settings.get("fixed", {})
        how = "refitted in every training fold" if learns else "which learns nothing from people"
        return f"a transformer of the user's own, {how}"
    if kind == "language":
        model = plain_text(settings.get("encoders", {}).get(name, "unknown"))
        code = settings.get("encoder_hashes", {}).get(name)
        brackets = f" (sha256 `{code[:SHOWN_HASH]}`)" if code else ""
        return f"the frozen language encoder {model}{brackets} over the participant's own words"
    if kind in ("ablation", "fidm"):
        eta, method = (
            ("η", "maximum likelihood, pooled population")
            if settings.get("paper_estimates")
            else ("log η", "empirical Bayes")
        )
        what = {
            "action": f"action sensitivity, {eta}",
            "effort": "effort parameters θ",
        }.get(name, f"action sensitivity, {eta}, and effort parameters θ")
        return f"{what}, by {method}; what people share is learned again in every training fold"
    if name == "demographics":
        return "the participants' columns of age, education and sex"
    if name == "trajectory":
        return "counts of recorded actions"
    score = plain_text(settings.get("score", "score_total"))
    if name == "score":
        return f"the participants' column {score}"
    named = settings.get("subscores")
    rest = ", ".join(map(plain_text, named)) if named else f"all other {plain_text('score_…')} with numbers"
    return f"the participants' columns {score}, {rest}"


def _sample_size(result: Classification) -> list[str]:
    counts, flow = _features(result), result.flow
    healthy, *others = (numbers.get("train", 0) for numbers in flow.classes.values())
    fewer = min(healthy, sum(others))
    tight = [name for name in result.representations if counts[name] and fewer / counts[name] < FEW_EVENTS]
    lines = [
        "## 4 Sample size",
        "",
        "No sample size was planned by the program. The smaller of the two classes has "
        f"{fewer:,} people in the training part.",
    ]
    if tight:
        said = ", ".join(f"{plain_text(in_words(name))} ({fewer / counts[name]:.1f})" for name in tight)
        lines.append(
            f"Fewer than {FEW_EVENTS} of them per feature, where only the penalty of the regression keeps it "
            f"from overfitting: {said}."
        )
    half = half_width(result, "held-out")
    if half is not None:
        lines.append(
            f"With {flow.n('held-out'):,} people in the held-out part, the 95 % interval of an AUC there "
            f"reaches about {100 * half:.0f} points to either side."
        )
    return lines


def _missing(result: Classification) -> list[str]:
    found = lacking(result)
    lines = [
        "## 5 Missing data",
        "",
        "A missing value is replaced by the median of those the classifier is trained on, inside every fold.",
    ]
    if not found.height:
        return [*lines, "No feature was missing for anybody."]
    rows = [
        [
            plain_text(in_words(row["representation"])),
            plain_text(row["feature"]),
            "training part" if row["part"] in ("train", "cv") else "held-out part",
            f"{row['n_missing']:,} of {row['n']:,}",
        ]
        for row in found.head(MOST_MISSING).iter_rows(named=True)
    ]
    lines += table(["representation", "feature", "part", "missing"], rows, left=3)
    if found.height > MOST_MISSING:
        lines.append(f"And {found.height - MOST_MISSING:,} more in classify-missing.csv.")
        return lines
    return lines[:-1]


def _analysis(result: Classification) -> list[str]:
    settings, seed = result.record.settings, result.record.seed
    together = settings.get("together")
    scaling = {
        "fusion": "In a combination every block of d features is divided by √d. ",
        "language": "In a combination with a language block every block of d features is divided by √d. ",
        "never": "",
    }[str(settings.get("scale_blocks", "fusion"))]
    stay = f"; people with the same {plain_text(together)} stay in one fold" if together else ""
    repeats = settings.get("repeats", DASH)
    new = "" if repeats == 1 else " with new folds"
    once = (
        " Then one model per representation was trained on the whole training part and tested once on the "
        "held-out part."
    )
    several = (
        f"; for {how_many_classes(result, 'multiclass')} the mean over classes"
        if "multiclass" in result.settings
        else ""
    )
    return [
        "## 6 Analysis",
        "",
        "- **Classifier.** Logistic regression with an L2 penalty, C = 1, and classes weighted as if they "
        "were equally frequent; nothing was tuned.",
        f"- **Preparation.** Median imputation, then standardization. {scaling}All of it, and what people "
        "share in FIDM, is learned from the training people of each fold alone.",
        f"- **Validation.** {settings.get('folds', DASH)}-fold cross-validation of the training part, "
        f"stratified by class, {times(repeats)}{new} (seed {DASH if seed is None else seed}){stay}."
        f"{once if 'held-out' in result.parts else ''}",
        f"- **Measures.** Area under the ROC curve and balanced accuracy{several}. In cross-validation they "
        "are computed within folds and averaged.",
        "- **Intervals.** 95 %, by the influence of every person (for an AUC DeLong's; in cross-validation "
        f"after LeDell et al. 2015). {say_widened(result)} Differences compare the same people with "
        "themselves.",
        "- **Class imbalance.** Because of the weights the output is a balanced probability, that of a world "
        "in which all classes are equally frequent. The threshold of one half refers to it. For calibration "
        "it was moved to the prevalence of the training part by shifting the intercept.",
        "- **Model updating.** None was done.",
        "- **Fairness.** Nothing was done about it; section 9 only reports. Clusters such as sites are "
        "examined only if asked for with --by.",
    ]


def _software(result: Classification) -> list[str]:
    record = result.record
    tasks = ", ".join(f"{plain_text(name)} `{value}`" for name, value in record.tasks.items())
    return [
        "## 11 Reproduction",
        "",
        f"fidm {plain_text(record.version)}; seed {DASH if record.seed is None else record.seed}; "
        f"task {tasks}; data `{record.data or DASH}`. All settings are in classify.json; "
        "the same settings and data give the same numbers.",
        "",
        "Research use only, not a diagnosis.",
    ]


def _features(result: Classification) -> dict[str, int]:
    return dict(result.scores.select("representation", "n_features").unique(maintain_order=True).iter_rows())


def _share(n: int, of: int) -> str:
    return f"{n / of:.0%}" if of else DASH
