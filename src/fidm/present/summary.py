"""A summary of a classification along the lines of TRIPOD+AI: who was in, what was done, how well it did.

TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378) lists what a report of a prediction model has to say. The
summary says what the program knows, and names the items that only the people behind a study can fill in.
"""

from __future__ import annotations

from pathlib import Path

from fidm.classify.result import Classification, in_words
from fidm.errors import listed
from fidm.files import whole_file
from fidm.present import NOT_A_DIAGNOSIS, findings
from fidm.present.numbers import DASH, cell, plain_text, sentence, table


def performance(result: Classification) -> list[str]:
    """Return section 7: scores with intervals, and what combinations add."""
    columns = [(part, metric) for part in result.parts for metric in findings.METRICS]
    header = ["", *(f"{findings.PARTS[part]}, {findings.SHORT[metric]}" for part, metric in columns)]
    ends = ", with 95 % intervals" if result.scores["low"].count() else "; too few people for intervals"
    lines = ["## 7 Performance", "", f"In per cent{ends}.", ""]
    known = findings.found_by(result.scores, "setting", "representation", "part", "metric")
    for setting in result.settings:
        rows = [
            [in_words(name), *(cell(known.get((setting, name, *one))) for one in columns)]
            for name in result.representations
        ]
        lines += [f"**{findings.how_many_classes(result, setting).capitalize()}**", *table(header, rows)]
    differences = findings.compared(result, "binary")
    if not differences.height:
        return lines
    gains = findings.found_by(differences, "representation", "against", "part", "metric")
    pairs = differences.select("representation", "against").unique(maintain_order=True).rows()
    rows = [
        [
            findings.pair_words(in_words, *pair),
            *(cell(gains.get((*pair, *one)), sign=True) for one in columns),
        ]
        for pair in pairs
    ]
    elsewhere = ["p values"] if differences["p"].count() else []
    elsewhere += [findings.how_many_classes(result, "multiclass")] if "multiclass" in result.settings else []
    more = listed(elsewhere) if elsewhere else ""
    where = f" {more if differences['p'].count() else more.capitalize()}: classify-differences.csv."
    return [
        *lines,
        "**What a combination adds to its baseline**, two classes, in points",
        *table(header, rows),
        f"{findings.say_chance(differences)}{where if more else ''}",
    ]


def output(result: Classification) -> list[str]:
    """Return section 8: what a threshold of one half gives, and calibration."""
    return [
        "## 8 Probabilities and thresholds",
        "",
        f"Two classes. {findings.FIRST} Intervals of this section are not widened.",
        "",
        "At a threshold of one half of the balanced probability, fixed before anybody was judged; in per "
        "cent, with Wilson's intervals. PPV and NPV hold only where cases are as frequent as among these "
        "people.",
        *table(*findings.threshold_rows(result, in_words), left=2),
        "Calibration, at the prevalence of the training part (best: intercept 0, slope 1, a Brier score "
        f"below that of the prevalence alone). {findings.NO_INTERCEPT}",
        *table(*findings.calibration_rows(result, in_words), left=2),
        "Clinical utility (net benefit): not examined.",
    ]


def groups(result: Classification) -> list[str]:
    """Return section 9: scores within groups of people."""
    header, rows = findings.group_rows(result, in_words, result.parts)
    if not rows:
        return ["## 9 Groups", "", "The study has no columns of age, sex or education to cut people by."]
    return [
        "## 9 Groups",
        "",
        f"Area under the ROC curve, two classes, in per cent. {findings.FIRST} Intervals are DeLong's, not "
        "widened. Balanced accuracy and all other representations: classify-groups.csv.",
        *table(header, rows, left=2),
        *([findings.FEW_CASES] if any(DASH in row for row in rows) else []),
    ]


def limitations(result: Classification, *, simulated: bool) -> list[str]:
    """Return section 10: checks for leaks, and what the numbers do not show."""
    held_out = (
        "The held-out part comes from the same study" if "held-out" in result.parts else "Nobody was held out"
    )
    chance = "intervals exclude 0" if result.differences["low"].count() else "differences are large"
    return [
        "## 10 Checks and limitations",
        "",
        *(f"- {plain_text(sentence(one))}" for one in findings.say_checks(result)),
        *(f"- **{plain_text(one)}**" for one in findings.say_failed(result, in_words)),
        "- Intervals do not cover chance in who was trained on or in how folds were cut (classify.csv has "
        "the spread over repetitions), nor another clinic, language or map.",
        f"- Representations were compared many times on the same people; some {chance} by chance.",
        f"- {held_out}: this is no external validation.",
        *(["- The people are simulated and made to resemble the paper's."] if simulated else []),
        *([f"- {findings.PAPERS_PEOPLE} They are in classify.csv."] if findings.has_paper(result) else []),
    ]


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
    return "\n\n".join("\n".join(section).strip("\n") for section in sections) + "\n"


def _head(result: Classification, simulated: bool) -> list[str]:
    first, *others = map(plain_text, result.classes)
    column = plain_text(result.record.settings.get("label", "diagnosis"))
    lines = [
        f"# Classification of {column}: {first} against {', '.join(others)}",
        "",
        "A summary along the lines of TRIPOD+AI (Collins et al. 2024, BMJ 385, e078378). "
        f"**{NOT_A_DIAGNOSIS}**",
    ]
    if simulated:
        lines += ["", f"**{findings.SIMULATED}**"]
    return [*lines, *table(["TRIPOD+AI item", "about", "section"], ITEMS, left=3)]


def _participants(result: Classification) -> list[str]:
    flow, settings = result.flow, result.record.settings
    parts = findings.study_parts(result)
    split = plain_text(settings.get("split", "split"))
    said = f"{sum(flow.n(part) for part in parts):,} people were analysed: {flow.n('train'):,} in the "
    if len(parts) > 1:
        said += f"training part and {flow.n('held-out'):,} in the held-out part (column {split})."
    else:
        said += "training part, nobody held out."
    out = [f"{n:,} ({plain_text(why)})" for n, why in findings.left_out(flow)]
    rows = [
        [
            name,
            *(f"{counts.get(part, 0):,} ({_share(counts.get(part, 0), flow.n(part))})" for part in parts),
        ]
        for name, counts in flow.classes.items()
    ]
    return [
        "## 1 Participants",
        "",
        said,
        f"Left out: {', '.join(out)}." if out else "Nobody was left out.",
        *table(["class", *parts.values()], rows),
    ]


def _outcome(result: Classification) -> list[str]:
    first, *others = map(plain_text, result.classes)
    said = (
        f"The participants' column {plain_text(result.record.settings.get('label', 'diagnosis'))}, as the "
        "study gives it; how, when and by whom it was judged is for the authors to say. Two classes: "
        f"{first} against {listed(others)}{' grouped together' if len(others) > 1 else ''}. Cases: everybody "
        f"who is not {first}."
    )
    if "multiclass" in result.settings:
        said += f" Also {findings.how_many_classes(result, 'multiclass')}, each against the rest."
    return ["## 2 Outcome", "", said]


def _predictors(result: Classification) -> list[str]:
    counts = _features(result)
    kinds = dict(result.scores.select("representation", "kind").unique(maintain_order=True).iter_rows())
    rows = [
        [plain_text(in_words(name)), _source(result, name, kinds[name]), f"{counts[name]:,}"]
        for name in result.representations
    ]
    notes = [*findings.say_not_run(result, in_words), *result.notes]
    if findings.uses_effort(result):
        notes.append(findings.NO_PRESENCE)
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
        *table(["representation", "from", "features"], rows, left=2, write=str),
        *(f"- {plain_text(one)}" for one in notes),
    ]


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
    return [*lines, *findings.say_width(result)]


def _missing(result: Classification) -> list[str]:
    found = findings.lacking(result)
    lines = [
        "## 5 Missing data",
        "",
        "A missing value is replaced by the median of those the classifier is trained on, inside every fold.",
    ]
    if not found.height:
        return [*lines, "No feature was missing for anybody."]
    rows = [
        [
            in_words(row["representation"]),
            row["feature"],
            findings.SIDES["held-out" if row["part"] == "held-out" else "train"],
            f"{row['n_missing']:,} of {row['n']:,}",
        ]
        for row in found.head(MOST_MISSING).iter_rows(named=True)
    ]
    lines += table(["representation", "feature", "part", "missing"], rows, left=3)
    if found.height > MOST_MISSING:
        lines.append(f"And {found.height - MOST_MISSING:,} more in classify-missing.csv.")
    return lines


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
        f"; for {findings.how_many_classes(result, 'multiclass')} the mean over classes"
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
        f"stratified by class, {findings.times(repeats)}{new} (seed {DASH if seed is None else seed}){stay}."
        f"{once if 'held-out' in result.parts else ''}",
        f"- **Measures.** Area under the ROC curve and balanced accuracy{several}. In cross-validation they "
        "are computed within folds and averaged.",
        "- **Intervals.** 95 %, by the influence of every person (for an AUC DeLong's; in cross-validation "
        f"after LeDell et al. 2015). {findings.say_widened(result)} Differences compare the same people with "
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
        NOT_A_DIAGNOSIS,
    ]


def _features(result: Classification) -> dict[str, int]:
    return dict(result.scores.select("representation", "n_features").unique(maintain_order=True).iter_rows())


def _share(n: int, of: int) -> str:
    return f"{n / of:.0%}" if of else DASH
