"""A summary of a classification along the lines of TRIPOD+AI: who was in, what was done, how well it did.

TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378) lists what a report of a prediction model has to say. The
summary says what the program knows, and names the items that only the people behind a study can fill in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from fidm.study.classified import Classification, in_words
from fidm.study.leakage import FOLD_NUMBER, SCRAMBLED
from fidm.study.leakage import LEVEL as CHECK_LEVEL
from fidm.study.wording import (
    DASH,
    METRICS,
    PARTS,
    SHORT,
    baseline_of,
    compared,
    featured,
    half_width,
    percent,
    say_chance,
    span,
)

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$:@^])")
"""Characters that Markdown may take for more than themselves, in the middle of a line."""

MOST_MISSING = 12
"""How many incomplete features the summary lists; all are in the file."""

FEW_EVENTS = 10
"""People of the smaller class per feature below which a plain regression is often unstable."""

SOURCES: Mapping[str, str] = {
    "score": "the participants table",
    "score+subscores": "the participants table",
    "demographics": "the participants table",
    "trajectory": "counts of recorded actions",
    "action": "log action sensitivity η; what people share is learned again in every training fold",
    "effort": "effort parameters θ; what people share is learned again in every training fold",
    "fidm": "log η and θ; what people share is learned again in every training fold",
}
"""Where the features of single representations come from."""

ITEMS: tuple[tuple[str, str, str], ...] = (
    ("5a, 20a", "source of data, flow of participants", "1"),
    ("8a", "outcome", "2"),
    ("9, 22", "predictors and model", "3"),
    ("10, 21", "sample size", "4"),
    ("11", "missing data", "5"),
    ("12, 13", "analysis, class imbalance", "6"),
    ("23a", "performance", "7"),
    ("15", "probabilities and thresholds", "8"),
    ("14, 23b", "fairness: groups of people", "9"),
    ("26", "limitations", "10"),
    ("18f", "code and reproduction", "11"),
    ("2–4, 5b, 6, 8b–c, 17–19, 25, 27", "context, dates, ethics, funding, use", "to be told by the study"),
)
"""Items of TRIPOD+AI, and the section of the summary that says something about them."""


def summary(result: Classification, *, simulated: bool = False) -> str:
    """Return a summary in Markdown: participants, outcome, predictors, analysis, results and limitations.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
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
        _performance(result),
        _output(result),
        _groups(result),
        _limitations(result, simulated),
        _software(result),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def plain_text(text: object) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> from fidm.study.tripod import plain_text
    >>> print(plain_text("major_ncd | *new*"))
    major\_ncd \| \*new\*
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return SPECIAL.sub(r"\\\1", line)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return the lines of a table; the first columns are words, the others numbers. Cells are not escaped."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return ["", *(f"| {' | '.join(row)} |" for row in (header, rule, *rows)), ""]


def _head(result: Classification, simulated: bool) -> list[str]:
    lines = [
        "# Classification of cognitive status",
        "",
        "A summary along the lines of TRIPOD+AI (Collins et al. 2024). **Research use only, not a "
        "diagnosis.**",
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
    parts = _parts(result)
    out = [
        *((plain_text(reason), n) for reason, n in flow.excluded.items()),
        ("problems in their data", flow.with_problems),
        ("status not known", flow.without_label),
        ("in neither part", flow.without_part),
    ]
    judged = sum(flow.n(part) for part in parts)
    lines = ["## 1 Participants", ""]
    lines.append(
        f"{judged:,} people were analysed: {flow.n('train'):,} to learn from and for cross-validation"
        + (f", {flow.n('held-out'):,} held out and judged once" if "held-out" in parts else ", none held out")
        + f" (column {plain_text(settings.get('split', 'split'))})."
    )
    left_out = [f"{why} ({n:,})" for why, n in out if n]
    lines.append(f"Left out: {'; '.join(left_out)}." if left_out else "Nobody was left out.")
    rows = []
    for name, counts in flow.classes.items():
        rows.append(
            [
                plain_text(name),
                *(f"{counts.get(part, 0):,} ({_share(counts.get(part, 0), flow.n(part))})" for part in parts),
            ]
        )
    lines += table(["class", *("training" if part == "train" else "held out" for part in parts)], rows)
    return lines[:-1]


def _outcome(result: Classification) -> list[str]:
    settings = result.record.settings
    first, *others = map(plain_text, result.classes)
    lines = [
        "## 2 Outcome",
        "",
        f"The participants' column {plain_text(settings.get('label', 'diagnosis'))}, as the study gives it; "
        f"how and by whom it was judged is for the study to say. Binary question: {first} against "
        f"{' and '.join(others)} grouped together.",
    ]
    if "multiclass" in result.settings:
        lines[-1] += f" Also all {len(result.classes)} classes apart."
    return lines


def _predictors(result: Classification) -> list[str]:
    counts = _features(result)
    how = result.record.settings.get("paper_estimates")
    estimates = "maximum likelihood and a pooled population, as in the paper" if how else "empirical Bayes"
    rows = [
        [plain_text(in_words(name)), plain_text(_source(name)), f"{counts[name]:,}"]
        for name in result.representations
    ]
    rows += [
        [plain_text(in_words(name)), f"not run: {plain_text(why)}", DASH]
        for name, why in result.not_run.items()
    ]
    return [
        "## 3 Predictors and model",
        "",
        f"Each representation was given to the same classifier on its own. People's parameters: {estimates}. "
        "The coefficients of the classifiers learned from the whole training part are in "
        "classify-coefficients.csv.",
        *table(["representation", "from", "features"], rows, left=2),
        *(f"- {plain_text(one)}" for one in result.notes),
    ]


def _sample_size(result: Classification) -> list[str]:
    counts, flow = _features(result), result.flow
    healthy, *others = (numbers.get("train", 0) for numbers in flow.classes.values())
    fewer = min(healthy, sum(others))
    tight = [name for name in result.representations if counts[name] and fewer / counts[name] < FEW_EVENTS]
    lines = [
        "## 4 Sample size",
        "",
        "No sample size was planned by the program. The smaller class of the binary question has "
        f"{fewer:,} people in the training part.",
    ]
    if tight:
        listed = ", ".join(f"{plain_text(in_words(name))} ({fewer / counts[name]:.1f})" for name in tight)
        lines.append(
            f"Fewer than {FEW_EVENTS} of them per feature, where only the penalty of the regression keeps it "
            f"from overfitting: {listed}."
        )
    half = half_width(result, "held-out")
    if half is not None:
        lines.append(
            f"With {flow.n('held-out'):,} people held out, the 95 % interval of an AUC there reaches about "
            f"{100 * half:.0f} points to either side."
        )
    return lines


def _missing(result: Classification) -> list[str]:
    lacking = result.missing.filter(pl.col("n_missing") > 0)
    if "fidm" in result.missing["representation"]:  # action and effort are parts of it
        lacking = lacking.filter(~pl.col("representation").is_in(["action", "effort"]))
    lines = [
        "## 5 Missing data",
        "",
        "A missing value is replaced by the median of those the classifier learns from, inside every fold.",
    ]
    if not lacking.height:
        return [*lines, "No feature was missing for anybody."]
    rows = [
        [
            plain_text(in_words(row["representation"])),
            plain_text(row["feature"]),
            "training" if row["part"] in ("train", "cv") else "held out",
            f"{row['n_missing']:,} of {row['n']:,}",
        ]
        for row in lacking.sort("n_missing", descending=True, maintain_order=True)
        .head(MOST_MISSING)
        .iter_rows(named=True)
    ]
    lines += table(["representation", "feature", "part", "missing"], rows, left=3)
    if lacking.height > MOST_MISSING:
        lines.append(f"And {lacking.height - MOST_MISSING:,} more in classify-missing.csv.")
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
    once = (
        " Then one model per representation from the whole training part, judged once on the held-out part."
    )
    return [
        "## 6 Analysis",
        "",
        "- **Classifier.** Logistic regression with an L2 penalty, C = 1, and classes weighted as if they "
        "were equally frequent; nothing was tuned.",
        f"- **Preparation.** Median imputation, then standardization. {scaling}All of it, and what people "
        "share in FIDM, is learned from the training people of each fold alone.",
        f"- **Validation.** {settings.get('folds', DASH)}-fold cross-validation of the training part, "
        f"stratified by class, {settings.get('repeats', DASH)} times with new folds (seed "
        f"{DASH if seed is None else seed}){stay}.{once if 'held-out' in result.parts else ''}",
        "- **Measures.** Area under the ROC curve and balanced accuracy; with several classes the mean of "
        "each class against the rest. In cross-validation they are computed within folds and averaged.",
        "- **Intervals.** 95 %, DeLong; in cross-validation by the influence of every person (LeDell et al. "
        "2015), widened by √2 since everybody also teaches. Differences compare the same people with "
        "themselves.",
    ]


def _performance(result: Classification) -> list[str]:
    lines = ["## 7 Performance", "", "In per cent, with 95 % intervals.", ""]
    parts = result.parts
    known = {
        (row["setting"], row["part"], row["metric"], row["representation"]): row
        for row in result.scores.iter_rows(named=True)
    }
    header = ["", *(f"{PARTS[part]}, {SHORT[metric]}" for part in parts for metric in METRICS)]
    for setting in result.settings:
        what = "Binary" if setting == "binary" else f"{len(result.classes)} classes"
        rows = [
            [
                plain_text(in_words(name)),
                *(_cell(known.get((setting, part, metric, name))) for part in parts for metric in METRICS),
            ]
            for name in result.representations
        ]
        lines += [f"**{what}**", *table(header, rows)]
    differences = compared(result)
    if differences.height:
        found = {
            (row["part"], row["metric"], row["representation"], row["against"]): row
            for row in differences.filter(setting="binary").iter_rows(named=True)
        }
        pairs = differences.select("representation", "against").unique(maintain_order=True).rows()
        rows = [
            [
                _pair(*pair),
                *(_cell(found.get((part, metric, *pair)), sign=True) for part in parts for metric in METRICS),
            ]
            for pair in pairs
        ]
        lines += ["**What a combination adds to its baseline**, binary, in points", *table(header, rows)]
        lines += [say_chance(differences), ""]
    return lines[:-1]


def _output(result: Classification) -> list[str]:
    chosen = featured(result)
    rows = []
    for row in _of(result.thresholds, chosen):
        shares = (_cell(row, name) for name in ("sensitivity", "specificity", "ppv", "npv"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *shares])
    lines = [
        "## 8 Probabilities and thresholds",
        "",
        "At a threshold of one half of the balanced probability, in per cent. PPV and NPV hold only where "
        "cases are as frequent as among these people.",
        *table(["", "", "sensitivity", "specificity", "PPV", "NPV"], rows, left=2),
        "Calibration, at the prevalence of the training part (best: intercept 0, slope 1, a Brier score "
        "below that of the prevalence alone):",
    ]
    rows = []
    for row in _of(result.calibration_summary, chosen):
        numbers = (
            f"{_number(row[name])} ({_number(row[f'{name}_low'])} to {_number(row[f'{name}_high'])})"
            for name in ("intercept", "slope")
        )
        briers = (_number(row[name], places=3) for name in ("brier", "brier_reference"))
        rows.append([plain_text(in_words(row["representation"])), PARTS[row["part"]], *numbers, *briers])
    lines += table(["", "", "intercept", "slope", "Brier", "of the prevalence"], rows, left=2)
    return lines[:-1]


def _groups(result: Classification) -> list[str]:
    chosen = featured(result, most=2)
    shown = result.groups.filter(pl.col("representation").is_in(list(chosen)), metric="auc")
    if not shown.height:
        return ["## 9 Groups", "", "The study has no columns of age, sex or education to cut people by."]
    keys = shown.select("column", "group").unique(maintain_order=True).rows()
    known = {
        (row["column"], row["group"], row["part"], row["representation"]): row
        for row in shown.iter_rows(named=True)
    }
    parts = result.parts
    rows = []
    for column, group in keys:
        sizes = [
            next(
                (known[column, group, part, name] for name in chosen if (column, group, part, name) in known),
                None,
            )
            for part in parts
        ]
        people = (f"{one['n_cases']:,} of {one['n']:,}" if one else DASH for one in sizes)
        cells = (_cell(known.get((column, group, part, name))) for part in parts for name in chosen)
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
        "Area under the ROC curve, binary, in per cent.",
        *table(header, rows, left=2),
    ]
    reasons = shown.drop_nulls("why")["why"].unique(maintain_order=True).to_list()
    if reasons:
        lines.append(f"{DASH}: {'; '.join(map(plain_text, reasons))}.")
        return lines
    return lines[:-1]


def _limitations(result: Classification, simulated: bool) -> list[str]:
    level = f"{CHECK_LEVEL:.1%}".replace("%", " %")
    scrambled = result.checks.filter(check=SCRAMBLED).drop_nulls("passed")
    lines = ["## 10 Checks and limitations", ""]
    if scrambled.height:
        times = int(scrambled["n"].max())  # type: ignore[arg-type]
        lines.append(
            f"- Labels scrambled {times:,} times give an AUC of one half, as they must, for "
            f"{int(scrambled['passed'].sum()):,} of {scrambled.height:,} representations ({level} intervals)."
        )
    for row in result.checks.filter(check=FOLD_NUMBER).iter_rows(named=True):
        verdict = {True: "passed", False: "FAILED", None: "not judged"}[row["passed"]]
        lines.append(
            f"- A feature that encodes the fold adds {percent(row['value'], sign=True)} points to "
            f"{plain_text(in_words(row['representation']))} "
            f"({level}: {span(row['low'], row['high'], sign=True)}): {verdict}."
        )
    if result.checks.filter(passed=False).height:
        lines.append("- **A check failed. The results above must not be trusted before it is known why.**")
    return [
        *lines,
        "- Intervals know that other people could have been judged. They do not know that others could have "
        "been learned from, that other folds could have been drawn (classify.csv has the spread over "
        "repetitions), or that another clinic, language or map would differ.",
        "- Representations were compared many times on the same people; some intervals exclude 0 by chance.",
        "- Held-out people come from the same study: this is no external validation.",
        *(["- The people are simulated and made to resemble the paper's."] if simulated else []),
        "- The paper's figures in classify.csv are of its own 400 people, whose data are not public.",
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


def _parts(result: Classification) -> list[str]:
    """The parts people are in."""
    return ["train"] + (["held-out"] if result.flow.n("held-out") else [])


def _features(result: Classification) -> dict[str, int]:
    return dict(result.scores.select("representation", "n_features").unique(maintain_order=True).iter_rows())


def _source(name: str) -> str:
    """Where a representation's features come from, in words."""
    if name in SOURCES:
        return SOURCES[name]
    return "its parts" if "+" in name else "a frozen language encoder over the participant's own words"


def _pair(representation: str, against: str) -> str:
    words = plain_text(in_words(representation))
    return words if baseline_of(representation) == against else f"{words} − {plain_text(in_words(against))}"


def _cell(row: Mapping[str, Any] | None, name: str = "", *, sign: bool = False) -> str:
    """A value and its interval."""
    value, low, high = (f"{name}", f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    if row is None or row[value] is None:
        return DASH
    return f"{percent(row[value], sign=sign)} ({span(row[low], row[high], sign=sign)})"


def _of(frame: pl.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    return [row for name in names for row in frame.filter(representation=name).iter_rows(named=True)]


def _share(n: int, of: int) -> str:
    return f"{n / of:.0%}" if of else DASH


def _number(value: float | None, *, places: int = 2) -> str:
    return DASH if value is None or value != value else f"{value:.{places}f}"
