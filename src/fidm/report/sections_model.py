"""The sections about what was found: parameters, choices, reliability, groups, places, classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from fidm import plot
from fidm.channels import CHANNEL_WORDS, channel_words, parameter_words
from fidm.classify.classify import classify
from fidm.classify.language import Language, Texts
from fidm.classify.result import Classification, in_words
from fidm.errors import FidmError, count, listed
from fidm.evidence.localization import DENOMINATORS, FEWEST, SAID, Localization, localize
from fidm.experiments.comparison import Comparison
from fidm.experiments.criticism import LEVEL
from fidm.experiments.paper import LOCALIZATION
from fidm.experiments.reliability import TOO_LOW, reliability
from fidm.experiments.rivals import ModelComparison
from fidm.fit.inferred import say_way
from fidm.fit.profile import SENSITIVITY, STATUSES, Profile, fewest, number_text
from fidm.fit.regression import variables
from fidm.fit.sensitivity import NO_LAPSE
from fidm.plot.classification import calibration_curve, curve_panels
from fidm.present.choices import (
    check_texts,
    choice_notes,
    choice_sentences,
    level_text,
    model_words,
    quoted,
    say_filled_in,
    say_models_not_run,
    shared_parameters,
    statistic_words,
)
from fidm.present.experiments import say_trend, together
from fidm.present.findings import (
    PAPERS_PEOPLE,
    PARTS,
    SHARES,
    featured,
    has_paper,
    say_checks,
    say_failed,
    say_missing,
    say_not_run,
    times,
)
from fidm.present.numbers import (
    FLAGS,
    METHODS,
    MINUS,
    ONE_SITTING,
    PERCENT,
    in_one_way,
    percent_text,
    sentence,
)
from fidm.report.opening import Opened
from fidm.report.parts import (
    column,
    column_words,
    figure,
    roc_panels,
    scatter,
    score_bars,
    section,
    table,
    table_of,
    text_column,
    with_interval,
)

SCORES = {"unexpectedness": "unexpectedness", "q_gap": "gap in Q alone (no η)"}

NEVER_ZERO = (
    "By empirical Bayes an interval of η never reaches 0, so it cannot tell whether somebody chooses at "
    "random. Where the choices themselves do not exclude that, the estimate is flagged."
)
"""What an interval of η does not say, where nobody was found to choose at random."""

ONE_PRIOR = (
    "What people are like is learned from all groups together, and everybody's estimate is drawn towards it: "
    "differences between groups come out too small here."
)
"""What estimates drawn towards one prior do to groups."""

NOT_BY_ESTIMATES = (
    "Do not compare groups by these estimates: they also depend on how much each person did. The section "
    "Groups compares the groups themselves."
)
"""What estimates of single people are not for."""

COMPARED = (
    "The mean of every parameter may differ between groups, and everybody's choices and segments together "
    "tell by how much; estimates of single people are not compared."
)
"""How groups are compared."""

INFINITE = (
    " People: those with an estimate. An infinite one lies beyond all others, and counts so in the median, "
    "in the two ends and in everybody's place among the others."
)

QUANTITIES = {
    "intercept": "intercept α", "log_moves": "slope β of log(1 + moves)", "kappa": "shape κ",
    "log_sd": "spread within a person", "sd": "spread among people", "mean": "mean", "rate": "rate",
}  # fmt: skip
"""What the population's parameters are called."""


def parameters_section(opened: Opened) -> dict[str, Any]:
    """Return everybody's parameters, how they are spread, and what is to be said against them."""
    known = opened.known
    profile, fit = known.profile, known.fit
    summary = profile.summary()
    has_prior = profile.method == "eb" and np.isfinite(fit.prior.sd)
    one_prior = has_prior and not any(known.label in variables(own.formula) for own in fit.regress.values())
    offsets = " and an effort offset θ per channel of speech (0: as much as the moves explain)"
    said = [
        "Every person has an action sensitivity η (how strongly value steers what they do)"
        f"{offsets if known.has_speech else ''}. Estimated by "
        f"{METHODS[profile.method]}, with {profile.level * 100:g} % intervals; what people share was "
        f"{opened.source}.",
        *_learned_from(opened),
        NEVER_ZERO if has_prior and not fit.prior.random else "",
        "" if known.label is None else f"{ONE_PRIOR} {NOT_BY_ESTIMATES}" if one_prior else NOT_BY_ESTIMATES,
        *(in_one_way(sentence(_in_words(note))) for note in (*summary.notes, *fit.warnings)),
    ]
    tables = [
        _summary_table(summary.table, profile),
        _flag_table(summary.table),
        _population_table(opened),
        _covariates_table(opened),
        _people_table(opened),
    ]
    figures = []
    both = np.isfinite(profile.estimate) & np.isfinite(profile.estimate[:, :1])
    known_of = [name for name, own in zip(profile.parameters, both.T, strict=True) if own.any()]
    channel = next((name for name in ("duration", *profile.parameters[1:]) if name in known_of), None)
    if channel is None and known.has_speech:
        said.append(
            "Nobody has a finite estimate of both action and effort, so there is no figure of the two."
        )
    elif channel is not None:
        label = known.label
        groups = None if label is None else known.cohort.participants[label].cast(pl.String)
        figures.append(
            figure(
                "scatter",
                f"Action sensitivity and {parameter_words(channel)} of everybody",
                scatter(profile, channel=channel, groups=groups),
                alt=f"A dot per person: action sensitivity against {parameter_words(channel)}; a cross where "
                "something is to be said against one of the two.",
                table="estimates",
            )
        )
    return section("parameters", "Parameters", said, tables=[one for one in tables if one], figures=figures)


def _learned_from(opened: Opened) -> list[str]:
    """From how many people each parameter was learned, where that differs and is known."""
    profile, learners = opened.known.profile, opened.study.part()[0].ids
    if opened.asked.use is not None or len(learners) != opened.known.fit.n_people:
        return []
    called = pl.Series([opened.names.get(name, name) for name in learners])
    seen = (profile.n[profile.participants.is_in(called.implode()).to_numpy()] > 0).sum(axis=0)
    fewer = [
        f"{parameter_words(name)} from {n:,}"
        for name, n in zip(profile.parameters, seen, strict=True)
        if n < opened.known.fit.n_learned and (name != SENSITIVITY or np.isfinite(opened.known.fit.prior.sd))
    ]
    return [f"Learned from fewer of them: {', '.join(fewer)}."] if fewer else []


def _in_words(text: str) -> str:
    """A text with the names of parameters in words; columns of tables keep their names."""
    for name in (SENSITIVITY, *CHANNEL_WORDS):
        text = text.replace(name, name.replace("_", " "))
    return text


def _summary_table(summary: pl.DataFrame, profile: Profile) -> dict[str, Any]:
    estimated = (~np.isnan(profile.estimate)).sum(axis=0)
    infinite = np.isinf(profile.estimate).sum()
    return table(
        "spread",
        "How people's parameters are spread",
        [text_column("parameter"), column("n", "people"), column("median"), column("p10", "10 % lie below"),
         column("p90", "10 % lie above"), column("typical_error", "typical error"), column("reliability"),
         column("ok", "people without a flag")],
        (
            (parameter_words(row["parameter"]), int(n), _endless(row["median"]), _endless(row["p10"]),
             _endless(row["p90"]), row["typical_error"], row["reliability"], row["ok"])
            for row, n in zip(summary.iter_rows(named=True), estimated, strict=True)
        ),
        note="The typical error is that of log η for action sensitivity. Reliability: the share of the "
        "differences among people that the estimates account for (empirical Bayes)."
        + (INFINITE if infinite else ""),
    )  # fmt: skip


def _endless(value: float) -> float | str:
    """Return a number as it is, an infinite one as its sign."""
    return value if not np.isinf(value) else number_text(value).replace("-", MINUS)


def _flag_table(summary: pl.DataFrame) -> dict[str, Any] | None:
    flagged = [name for name in STATUSES[1:] if summary[name].sum() and name != "alike"]  # said once, above
    if not flagged:
        return None
    return table(
        "flags",
        "How many people have each flag",
        [text_column("parameter"), *(column(name, FLAGS[name]) for name in flagged)],
        ((parameter_words(row["parameter"]), *(row[name] for name in flagged))
         for row in summary.iter_rows(named=True)),
    )  # fmt: skip


def _population_table(opened: Opened) -> dict[str, Any]:
    shared = opened.known.fit.population_table()
    said = {f"log_{SENSITIVITY}": "log η", "lapse": "lapses"}
    return table(
        "population",
        "What people share",
        [text_column("parameter"), text_column("quantity"), column("estimate"),
         column("se", "standard error")],
        (
            (said.get(name) or channel_words(name).name, QUANTITIES.get(what, what), value, se)
            for name, what, value, se in shared.iter_rows()
        ),
        note=_say_lapses(opened.known.fit.prior.no_lapse),
    )  # fmt: skip


def _covariates_table(opened: Opened) -> dict[str, Any] | None:
    """How parameters go with covariates, where the prior depends on them."""
    found = opened.known.fit.regression_table()
    if not found.height:
        return None
    return table(
        "covariates",
        "How parameters go with covariates",
        [text_column("parameter"), text_column("covariate"), *with_interval("factor", "factor per unit"),
         column("p"), column("explained", "explained by all covariates", unit=PERCENT)],
        (
            (parameter_words(row["parameter"]), row["words"],
             *(float(np.exp(row[name])) for name in ("slope", "low", "high")), row["p"], row["explained"])
            for row in found.iter_rows(named=True)
        ),
        brackets=f"{opened.known.fit.level * 100:g} % intervals",
        note=" ".join(
            ["A factor of η, or of the effort; for pause presence of its odds. Learned from everybody's "
             "choices and segments, not from estimates of single people. p: Wald's test of each row alone.",
             *opened.known.fit.regression_notes()]
        ),
    )  # fmt: skip


def _say_lapses(none: float) -> str:
    """What the rate of lapses is, and how probable it is that there are none, where that is known."""
    if np.isnan(none):
        return ""
    return (
        "The rate of lapses is the most probable one. That nobody lapses has a probability of "
        f"{percent_text(none)} ({percent_text(NO_LAPSE)} before any data). η takes all rates into account."
    )


OWN_FIT = (
    "“{}” is a fit of its own: what people are like is learned again, so the η of people without any "
    "inferred move changes, too."
)
"""Said where η is shown both ways, each with its own prior."""


def _people_table(opened: Opened) -> dict[str, Any]:
    """Everybody's estimates with their intervals, sorted by id; new names are in their order already."""
    known, profile = opened.known, opened.known.profile
    label = known.label
    shown = [k for k, name in enumerate(profile.parameters) if name not in known.fit.alike]
    columns = [text_column("participant")]
    if label is not None:
        columns.append(text_column(label, column_words(label)))
    other, note = known.other_way, ""
    for name in (profile.parameters[k] for k in shown):
        columns += with_interval(name, parameter_words(name), flag=f"{name}_status", few=f"{name}_few")
        if name == SENSITIVITY and other is not None:
            second, counts = other.columns[0], float(other.columns[0].endswith("all_moves"))
            words = f"{parameter_words(name)}, {say_way(counts)}"
            columns += with_interval(second, words, flag=f"{second}_status", few=f"{second}_few")
            n_other = profile.n_steps - (1 - counts) * profile.n_inferred
            if profile.method == "eb" and opened.asked.use is None:
                note = OWN_FIT.format(say_way(counts))
    labels = [] if label is None else known.cohort.participants[label].cast(pl.String).to_list()
    cells = np.stack([profile.estimate, profile.low, profile.high], axis=2).tolist()
    rows = []
    for i, name in enumerate(profile.participants):
        own = [(*cells[i][k], STATUSES[profile.status[i, k]], bool(profile.is_few[i, k])) for k in shown]
        if other is not None and shown[0] == 0:
            own.insert(1, (*other.row(i), bool(0 < n_other[i] < fewest(SENSITIVITY))))
        rows.append((name, *([] if label is None else [labels[i]]), *(cell for one in own for cell in one)))
    return table(
        "estimates",
        "Everybody's estimates",
        columns,
        rows if known.is_deidentified else sorted(rows, key=lambda row: str(row[0])),
        brackets=f"{profile.level * 100:g} % intervals",
        note=note,
    )


# ---------------------------------------------------------------------- the model of choice


def models_section(opened: Opened) -> dict[str, Any]:
    """Return which model of choice was used, what it was compared with, and what it fails to describe."""
    title, fit, found = "Choice model", opened.known.fit, opened.study.find_model_comparison()
    lapses = "without lapses"
    if fit.lapse > 0:
        is_averaged = not np.isnan(fit.prior.no_lapse)
        how = "averaged over the plausible rates, most probably" if is_averaged else "a rate of"
        lapses = f"with lapses, {how} {percent_text(fit.lapse)}"
    used = f"Choices are modelled as softmax(η·Q), {lapses}."
    if found is None:
        return section(
            "models",
            title,
            [
                f"{used} No comparison with other accounts of choice is kept with these data. Make one (fidm "
                "compare-models STUDY), then the report again."
            ],
        )
    others = [quoted(found, str(name)) for name in found.models["model"] if name != found.reference]
    said = [
        f"{used} Compared with {quoted(found, found.reference)} on held-out choices: {listed(others)}.",
        *choice_sentences(found),
        *say_filled_in(opened.known.cohort),
        *say_models_not_run(found),
        *map(sentence, choice_notes(found)),
    ]
    return section("models", title, said, tables=_choice_tables(found), figures=_choice_figures(found))


def _choice_tables(found: ModelComparison) -> list[dict[str, Any]]:
    """The models with their differences, what people share, and what was checked."""
    ways = [f"{way}_{end}" for way in ("people", "trials") for end in ("difference", "low", "high")]
    level = f"{level_text(found)} intervals, people drawn again {found.record.settings['bootstrap']:,} times"
    tables = [
        table(
            "choice-models",
            "Accounts of choice compared",
            [text_column("account"), text_column("model"), column("parameters"),
             column("choice", "probability of a choice", unit=PERCENT),
             *with_interval("people", "more probable, per cent"),
             *with_interval("trials", "of known people, per cent"),
             column("best", "people best predicted"),
             column("protected", "most frequent with probability", unit=PERCENT)],
            (
                (model_words(found, row["model"]), row["model"], row["parameters"],
                 float(np.exp(row["by_people"])), *(100 * float(np.expm1(row[name])) for name in ways),
                 row["best"], row["protected"])
                for row in found.models.iter_rows(named=True)
            ),
            brackets=level,
            note=f"More probable: what people chose, against {quoted(found, found.reference)}, choice by "
            "choice on (geometric) average. Of known people: held-out trials, predicted from the person's "
            "others.",
        ),
        table(
            "choice-shared",
            "What people share under each account",
            [text_column("account"), text_column("parameter"), text_column("typical", "typical person"),
             text_column("range", "95 % of people")],
            ((model_words(found, one.model), one.label, one.typical, one.between)
             for one in shared_parameters(found)),
        ),
        table(
            "choice-checks",
            "What people did, and would do",
            [text_column("account"), text_column("statistic"), text_column("observed"),
             text_column("expected"), text_column("band", f"{100 * LEVEL:g} % of simulated means"),
             column("p"), column("people")],
            (
                (model_words(found, row["model"]), statistic_words(row["statistic"]), *check_texts(row),
                 row["p"], row["people"])
                for row in found.criticism.checks.iter_rows(named=True)
            ),
        ),
        table(
            "choice-calibration",
            "Predicted probabilities of options",
            [text_column("account"), column("predicted", unit=PERCENT),
             *with_interval("observed", "chosen", low="low", high="high", unit=PERCENT),
             column("n", "options")],
            (
                (model_words(found, row["model"]), row["predicted"], row["observed"], row["low"], row["high"],
                 row["n"])
                for row in found.criticism.calibration.iter_rows(named=True)
            ),
            brackets="95 % intervals",
        ),
    ]  # fmt: skip
    return [one for one in tables if one["rows"]]


def _choice_figures(found: ModelComparison) -> list[dict[str, Any]]:
    """Differences, what was checked, and calibration."""
    figures = [
        figure(
            "choice-differences",
            "How well each account predicts held-out choices",
            plot.model_differences(found),
            alt="A dot per account and way of holding out, with its interval; 0 is the reference.",
            table="choice-models",
        )
    ]
    if found.criticism.checks.height:
        figures.append(
            figure(
                "choice-checks-figure",
                "What people did beside simulated choices",
                plot.model_checks(found),
                alt="A row per statistic: a diamond for what was observed, a bar for the range of simulated "
                "choices under the best account and the reference.",
                table="choice-checks",
            )
        )
    if found.criticism.calibration.height:
        figures.append(
            figure(
                "choice-calibration-figure",
                "Calibration of predicted choices",
                plot.model_calibration(found),
                alt="How often options were chosen against their predicted probability; a good model lies on "
                "the diagonal.",
                table="choice-calibration",
            )
        )
    return figures


# ---------------------------------------------------------------------- reliability


def learning_section(opened: Opened) -> list[dict[str, Any]]:
    """Return how η changes over blocks of trials, where the study has a learning curve of these data."""
    found = opened.study.find_learning()
    if found is None:
        return []
    shown = table(
        "learning-table",
        f"Action sensitivity over blocks ({found.by})",
        [text_column("block"), column("n_people", "people"), column("n_choices", "choices"),
         *with_interval("action_sensitivity", "η", low="low", high="high")],
        (
            (row["block"], row["n_people"], row["n_choices"],
             row["action_sensitivity"], row["low"], row["high"])
            for row in found.group.iter_rows(named=True)
        ),
        brackets=f"{found.level:.0%} intervals of the mean; changes are told by the trend, within people",
    )  # fmt: skip
    drawn = figure(
        "learning-figure",
        "Action sensitivity over blocks",
        plot.learning_curve(found),
        alt="A line for each participant over the blocks, and the mean of all with its interval.",
        table="learning-table",
    )
    said = [in_one_way(text) for text in (*say_trend(found), *map(sentence, found.notes))]
    return [section("learning", "Learning", said, tables=[shown], figures=[drawn])]


def reliability_section(opened: Opened) -> dict[str, Any]:
    """Return how far the parameters can be trusted, or why that cannot be told."""
    title, known, asked = "Reliability", opened.known, opened.asked
    found = opened.study.find_reliability(known.fit)
    if found is None:
        try:
            found = reliability(
                known.tasks,
                known.cohort,
                fit=known.fit,
                seed=asked.seed,
                workers=asked.workers,
                on_progress=asked.on_progress,
            )
        except FidmError as error:
            return section("reliability", title, [f"Reliability cannot be told: {error.message}"])
    shown = table(
        "reliability-table",
        "Reliability of each parameter",
        [text_column("parameter"), text_column("kind"), column("n", "people"), column("r", "correlation"),
         *with_interval("reliability", low="low", high="high"),
         column("sem", "standard error of measurement (maximum likelihood)"),
         column("mdc", "smallest detectable change (maximum likelihood)"),
         column("mdc_shrunk", "smallest detectable change (empirical Bayes)")],
        (
            (parameter_words(row["parameter"]), row["kind"], row["n"], row["r"],
             row["reliability"], row["low"], row["high"], row["sem"], row["mdc"], row["mdc_shrunk"])
            for row in found.table.iter_rows(named=True)
        ),
        brackets="95 % intervals, participants resampled "
        f"{found.record.settings['bootstrap']:,} times; of the model, by how well the spread of people is "
        "known",
        note="Errors and changes are of log η and θ. This report shows estimates by "
        f"{METHODS[known.profile.method]}. Estimates by empirical Bayes are pulled towards the mean, and so "
        "are their differences: a smaller change of them says as much as a larger one of estimates by "
        "maximum likelihood, which the "
        f"standard error is about. –: with a reliability that is or may be {TOO_LOW:.2f} or below, or of few "
        f"people, nothing is said of changes in a person. {ONE_SITTING}",
    )  # fmt: skip
    said = [in_one_way(text) for text in (*found.sentences(), *(sentence(note) for note in found.notes))]
    if not found.table["reliability"].drop_nulls().len():
        return section("reliability", title, said, tables=[shown])
    drawn = figure(
        "reliability-figure",
        "Reliability with intervals",
        plot.reliability(found),
        alt="A dot per parameter and kind of reliability, from 0 to 1, with its interval.",
        table="reliability-table",
    )
    return section("reliability", title, said, tables=[shown], figures=[drawn])


# ---------------------------------------------------------------------- groups


def groups_section(opened: Opened) -> dict[str, Any]:
    """Return how groups differ, as the study's kept comparison has it, or how to make one."""
    title, known, label = "Groups", opened.known, opened.known.label
    found = opened.study.find_comparison()
    if found is None:
        how = f"fidm compare STUDY --by {label or 'COLUMN'}"
        why = f"No comparison of groups is kept with these data. Make one ({how}), then the report again."
        return section("comparison", title, [why])
    if known.is_deidentified and found.by not in (label, "split"):
        why = (
            f"The study's comparison is not by {opened.asked.label}, and left out of a de-identified report."
        )
        return section("comparison", title, [why])
    contrasts = list(found.by_contrast())
    inferred = [column("inferred", "moves inferred", unit=PERCENT)] if found.groups["inferred"].sum() else []
    adjusted = f", adjusted for {listed(map(column_words, found.adjust))}" if found.adjust else ""
    said = [
        f"People compared by {column_words(found.by)}{adjusted}. {COMPARED}",
        *(in_one_way(text) for name, _, texts in contrasts for text in _found(name, texts)),
        *map(in_one_way, together(found)),
        *(in_one_way(sentence(text)) for text in found.notes),
    ]
    tables = [
        table_of(
            "compared",
            "What each group rests on",
            [text_column("group"), column("people"), column("actions", "actions each (median)"),
             column("segments", "segments each (median)"),
             *inferred],
            found.groups,
        ),
        *(_contrast_table(found, i, name, rows) for i, (name, rows, _) in enumerate(contrasts)),
    ]  # fmt: skip
    drawn = figure(
        "forest",
        "How many times as high each parameter is",
        plot.forest(found),
        alt="A dot per parameter and contrast with its interval; 1 is no difference.",
        table="contrast-0",
    )
    return section("comparison", title, said, tables=tables, figures=[drawn])


def _found(contrast: str, said: Sequence[str]) -> list[str]:
    """What a contrast found, a paragraph each; what is not clear in one."""
    unclear = [text for text in said if ": no clear difference; " in text or ": no clear relation; " in text]
    names = listed(text.partition(":")[0] for text in unclear) if unclear else ""
    clear = [sentence(text) for text in said if text not in unclear]
    return [*clear, *([f"No clear difference in {names} ({contrast})."] if unclear else [])]


def _contrast_table(found: Comparison, i: int, name: str, rows: pl.DataFrame) -> dict[str, Any]:
    plain = [column("unadjusted", "factor, unadjusted"), column("auc_unadjusted", "AUC, unadjusted")]
    measure = with_interval("auc", "AUC")
    how = (
        "AUC: how well the parameter itself, if it were known without error, would distinguish the groups: "
        "0.5 not at all, 1 or 0 perfectly (below 0.5 it is lower in the first group)."
    )
    if found.correlations.height:
        rows = rows.drop("low", "high").join(found.correlations, on="parameter", maintain_order="left")
        measure = with_interval("r", "r", low="low", high="high")
        measure.append(column("r_estimates", "r of estimates"))
        plain = plain[:1]
        how = "r: the correlation of the parameter itself; the error of people's estimates lowers theirs."
    return table_of(
        f"contrast-{i}",
        name,
        [text_column("parameter"), *with_interval("factor", "factor, times"),
         column("p_holm", "p (Holm)"), *measure, *(plain if found.adjust else []),
         column("n_people", "people")],
        rows.with_columns(pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)),
        brackets=f"{found.level * 100:g} % intervals",
        note="Factor: how many times as high the parameter is; of pause presence the odds. p holds for all "
        f"parameters and contrasts together. {how}",
    )  # fmt: skip


# ---------------------------------------------------------------------- localisation


def localisation_section(opened: Opened) -> dict[str, Any]:
    """Return whether unexpected actions are where people went astray, or why that cannot be told."""
    title, known, asked = "Localisation", opened.known, opened.asked
    found = opened.study.find_localization(known.fit)
    if found is None:
        try:
            found = localize(known.found, known.cohort, seed=asked.seed, on_progress=asked.on_progress)
        except FidmError as error:
            return section("localisation", title, [f"Localisation cannot be told: {error.message}"])
    said = [
        "If unexpectedness points at the right places, actions that turn away from the next goal, or pass a "
        "target by, should be among a person's most unexpected ones.",
        *(in_one_way(text) for text in found.sentences()),
        *(in_one_way(sentence(note)) for note in found.notes if not note.startswith(tuple(DENOMINATORS))),
        *_without_interval(found),
    ]
    shown = _localisation_table(found)
    if not found.table["auc"].drop_nulls().len():
        return section("localisation", title, said, tables=[shown])
    drawn = figure(
        "localisation-figure",
        "How well unexpectedness points at detours and at targets passed by",
        plot.localization(found, paper=LOCALIZATION),
        alt="AUC within a person and enrichment in the most unexpected tenth, for each kind of event.",
        table="localisation-table",
    )
    return section("localisation", title, said, tables=[shown], figures=[drawn])


def _without_interval(found: Localization) -> list[str]:
    """Why rows have no interval."""
    bare = found.table.filter(pl.col("auc").is_not_null() & pl.col("auc_low").is_null())
    if not bare.height:
        return []
    which = "No row has" if bare.height == found.table["auc"].count() else "Some rows have no"
    end = " an interval" if which == "No row has" else " interval"
    return [
        f"{which}{end}: fewer than {FEWEST} people have both such events and other actions, and so few say "
        "nothing about how much another study would differ."
    ]


def _localisation_table(found: Localization) -> dict[str, Any]:
    rows = []
    for row in found.table.iter_rows(named=True):
        paper = LOCALIZATION.get(row["anchor"], {}) if row["score"] == "unexpectedness" else {}
        among, score = DENOMINATORS[row["anchor"]], SCORES.get(row["score"], row["score"])
        rows.append(
            (SAID[row["anchor"]], among, score, row["auc"], row["auc_low"], row["auc_high"],
             row["enrichment"], row["enrichment_low"], row["enrichment_high"], row["n_people"],
             row["n_events"], row["n_steps"],
             paper.get("auc"), paper.get("enrichment"))
        )  # fmt: skip
    return table(
        "localisation-table",
        "Unexpectedness at detours and at targets passed by",
        [text_column("event"), text_column("among"), text_column("score"), *with_interval("auc", "AUC"),
         *with_interval("enrichment", "enrichment, times"), column("n_people", "people"),
         column("n_events", "events"), column("n_steps", "of steps"), column("paper_auc", "AUC in the paper"),
         column("paper_enrichment", "enrichment in the paper")],
        rows,
        brackets=f"{found.record.settings['level'] * 100:g} % intervals, participants resampled "
        f"{found.record.settings['bootstrap']:,} times",
    )  # fmt: skip


# ---------------------------------------------------------------------- classification


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
            if "fewer folds" in error.message:
                said.append("fidm classify takes another number of folds (--folds); this page then shows it.")
            return section("classification", title, said)
    judged = count(found.flow.n("train"), "person", "people")
    idle = found.flow.without_data
    folds, repeats = found.record.settings["folds"], found.record.settings["repeats"]
    said = [
        f"How well {asked.normal} people are told from all others ({', '.join(found.classes[1:])}), by "
        f"logistic regression: {folds}-fold cross-validation of {judged}, done {times(repeats)}"
        + (f", then {found.flow.n('held-out'):,} others once." if found.flow.n("held-out") else "."),
        *([] if is_kept else ["Language is left out; fidm classify, run before the report, can add it."]),
        f"{count(idle, 'person', 'people')} left out: no data." if idle else "",
        *(in_one_way(sentence(note)) for note in (*found.notes, *say_missing(found))),
        *checks(found),
        *map(sentence, say_not_run(found, in_words)),
    ]
    return section("classification", title, said, tables=_class_tables(found), figures=_class_figures(found))


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
        _beside(_worded(found.scores.filter(setting="binary"))),
        brackets="95 % intervals",
        note=PAPERS_PEOPLE if has_paper(found) else "",
    )  # fmt: skip
    roc = table_of(
        "roc-points",
        "Points of the ROC curves",
        [*whose, column("false_positive_rate", "false positives", unit=PERCENT),
         column("sensitivity", unit=PERCENT)],
        _worded(found.roc, featured(found, most=3)),
    )  # fmt: skip
    calibration = table_of(
        "calibration-points",
        "Predicted and observed shares",
        [*whose, column("n", "people"), column("predicted", unit=PERCENT),
         *with_interval("observed", low="low", high="high", unit=PERCENT)],
        _worded(found.calibration, featured(found, most=2)),
        brackets="95 % intervals",
    )  # fmt: skip
    return [scores, roc, calibration]


def _worded(frame: pl.DataFrame, representations: Sequence[str] = ()) -> pl.DataFrame:
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
