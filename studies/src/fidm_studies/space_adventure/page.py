"""What the page of the Space Adventure Task shows: rows and verdicts for its template, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.present.numbers import MINUS
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded
from fidm_studies.space_adventure import figures
from fidm_studies.space_adventure.dataset import STUDENTS
from fidm_studies.space_adventure.figures import WORDS
from fidm_studies.space_adventure.files import FASTEST_MS, N_ITEMS
from fidm_studies.space_adventure.people import CLINICAL, IN_TIME, UNDER
from fidm_studies.writing import UNSURE, one_row, read_template, side, write_sections

ALIKE = 0.99
"""From this rank correlation on, two orders of people are called alike."""

SURE = 0.05
"""A corrected p-value below this is called beyond chance."""

METRICS = {"auc": "AUC", "balanced_accuracy": "balanced accuracy"}
COMPARED = {"clinical": "all", "clinical, as published": "with published estimates"}
"""Whom a comparison of alcohol use disorder with controls is of."""


def sections(findings: Findings, loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first.

    Parameters
    ----------
    findings : Findings
        What the analysis gave.
    loaded : Loaded
        The data.
    """
    tables = findings.tables
    chosen = {
        **_of_values(tables["values"]),
        **_of_estimates(tables["agreement"], tables["reliability"]),
        **_of_times(findings),
        **_of_age(findings),
        **_of_tests(tables),
        **_of_disorder(tables["groups"]),
    }
    drawn: dict[str, Figure | Axes] = {
        "values": figures.draw_values(tables["values"]),
        "agreement": figures.draw_agreement(tables["people"], loaded.tables["published_fits"]),
        "times": figures.draw_times(tables["reaction_times"]),
        "groups": figures.draw_groups(tables["people"]),
        "ablation": figures.draw_ablation(tables["ablation"]),
        "relations": figures.draw_relations(tables["relations"]),
    }
    template = read_template("fidm_studies.space_adventure")
    return write_sections(template, findings, chosen=chosen, tables=_shown(tables), figures=drawn)


def _shown(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of the page, with words in place of names."""
    pairs = (
        tables["values"]
        .group_by("task", "steps", "depth")
        .agg(pl.col("is_same").all(), pl.col("misprint").any())
    )
    counts = {"n_pairs": pl.len(), "n_same": pl.col("is_same").sum(), "misprints": pl.col("misprint").sum()}
    groups = figures.in_words(tables["groups"], "parameter")
    ablation = figures.in_words(tables["ablation"], "representation")
    return {
        "values": pairs.group_by("steps", "depth").agg(**counts).sort("steps", "depth"),
        "agreement": figures.in_words(tables["agreement"], "parameter", "published"),
        "reliability": figures.in_words(tables["reliability"], "parameter"),
        "times": tables["reaction_times"],
        "two-kinds": figures.in_words(tables["two_kinds_of_time"], "one", "other"),
        "age": groups.filter(comparison="age"),
        "ablation": ablation.with_columns(pl.col("metric").replace(METRICS)),
        "relations": figures.in_words(tables["relations"], "parameter", "test"),
        "with-age": figures.in_words(tables["age"], "measure"),
        "clinical": groups.filter(pl.col("comparison").is_in(list(COMPARED))).with_columns(
            pl.col("comparison").replace(COMPARED)
        ),
    }


def _of_values(values: pl.DataFrame) -> dict[str, Any]:
    """How many published pairs of values are not ours, and the misprint, if that is all there is."""
    wrong = values.filter(~pl.col("is_same"))
    n = wrong.select("task", "block_id", "depth").n_unique()
    misprint = wrong.row(0, named=True) if n == 1 and wrong["misprint"].all() else None
    if misprint:
        misprint |= {"printed": _all_digits(misprint["q"]), "solved": _all_digits(misprint["ours"])}
    return {"n_different": n, "misprint": misprint}


def _all_digits(value: float) -> str:
    """A value as the published table has it."""
    return f"{value:,.3f}".replace("-", MINUS)


def _of_estimates(agreement: pl.DataFrame, halves: pl.DataFrame) -> dict[str, Any]:
    """How η and θ agree with published estimates and with themselves."""
    beta, depth = (
        one_row(agreement, parameter="eta", published=name) for name in ("model_beta", "mean_planning_depth")
    )
    eta, theta = (one_row(halves, halves="mini-blocks", parameter=name) for name in ("eta", "theta"))
    choices = one_row(halves, halves="choices", parameter="theta")
    ends = choices["high"], theta["low"]
    in_time = []
    for name, mixed in (("eta", eta), ("theta", theta)):
        split = one_row(halves, halves=IN_TIME, parameter=name)
        if None not in (mixed["r"], split["r"]):
            lost, less = mixed["n"] - split["n"], split["r"] < mixed["r"]
            words = {"words": WORDS[name], "n_excluded": lost, "is_less": less}
            in_time.append({"mixed": mixed, "split": split, **words})
    return {
        "beta": beta,
        "depth": depth,
        "depth_side": side(depth, 0.0),
        "eta_halves": eta,
        "theta_halves": theta,
        "theta_choices": choices,
        "choices_less": None not in ends and ends[0] < ends[1],
        "in_time": in_time if len(in_time) == 2 else [],
    }


def _of_times(findings: Findings) -> dict[str, Any]:
    kinds = findings.tables["two_kinds_of_time"]
    together = one_row(kinds, one="first_choice", other="later_choices")
    return {
        "slow_s": _typical(findings.tables["reaction_times"], "first"),
        "fast_s": _typical(findings.tables["reaction_times"], "second"),
        "order_alike": findings.numbers["theta_with_and_without_design"] >= ALIKE,
        "together": together,
        "together_side": side(together, 0.0),
        "first_eta": one_row(kinds, one="first_choice", other="eta"),
        "later_eta": one_row(kinds, one="later_choices", other="eta"),
    }


def _typical(shown: pl.DataFrame, choice: str) -> float:
    """The geometric mean of the cells of a choice, of all adults; cells have as many choices each."""
    cells = shown.filter(pl.col("group") == "all adults", pl.col("choice_index") == choice)
    total = cells.select((pl.col("typical_s").log() * pl.col("n_choices")).sum() / pl.col("n_choices").sum())
    return float(total.select(pl.first().exp()).item())


def _of_age(findings: Findings) -> dict[str, Any]:
    """Whether older people are slower and guided less by value, and what distinguishes the groups."""
    numbers, tables = findings.numbers, findings.tables
    auc = tables["ablation"].filter(metric="auc")
    first, later = (
        one_row(tables["groups"], comparison="age", parameter=name)
        for name in ("first_choice", "later_choices")
    )
    differences = tables["ablation_differences"].filter(metric="auc").iter_rows(named=True)
    return {
        "age_eta_side": side(numbers["age_eta"], 0.5),
        "age_theta_side": side(numbers["age_theta"], 0.5),
        "by_action": one_row(auc, representation="action"),
        "by_effort": one_row(auc, representation="effort"),
        "by_both": one_row(auc, representation="fidm"),
        "first": first,
        "later": later,
        "first_side": side(first, 0.5, "auc"),
        "later_side": side(later, 0.5, "auc"),
        "differences": [
            {"row": row, "side": side(row, 0.0), "words": WORDS[row["against"]]} for row in differences
        ],
    }


def _of_tests(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Which correlations with other tests remain after correction, also with the disorder held fixed."""
    rows, people = tables["relations"], tables["people"]
    young = people.filter(pl.col("age") < UNDER, pl.col("source") != STUDENTS)
    samples = []
    for name in rows["sample"].unique(maintain_order=True):
        own = rows.filter(sample=name)
        sure = [
            {
                **row,
                "words": f"{WORDS[row['parameter']]} with {WORDS[row['test']]}",
                "remains": row["partial_p_holm"] is not None and row["partial_p_holm"] < SURE,
            }
            for row in own.filter(pl.col("p_holm") < SURE).iter_rows(named=True)
        ]
        samples.append({"name": name, "n": max(own["n"].to_list()), "sure": sure})
    return {
        "n_items": N_ITEMS,
        "fastest_ms": FASTEST_MS,
        "sure": SURE,
        "samples": samples,
        "with_age": [
            {**row, "words": WORDS[row["measure"]]}
            for row in tables["age"].iter_rows(named=True)
            if side(row, 0.0) != UNSURE
        ],
        "under": UNDER,
        "n_young": young.height,
        "n_disorder": young.filter(pl.col(CLINICAL.column) == CLINICAL.first).height,
    }


def _of_disorder(groups: pl.DataFrame) -> dict[str, Any]:
    """Alcohol use disorder against controls: everybody, and those with published estimates."""
    eta, theta = (one_row(groups, comparison="clinical", parameter=name) for name in ("eta", "theta"))
    theirs = groups.filter(comparison="clinical, as published")
    fewer = one_row(theirs, parameter="eta")
    return {
        "clinical_eta": eta,
        "clinical_theta": theta,
        "clinical_side": side(eta, 0.5, "auc"),
        "clinical_theta_side": side(theta, 0.5, "auc"),
        "published_eta": fewer,
        "published_beta": one_row(theirs, parameter="model_beta"),
        "n_fewer": eta["n_second"] - fewer["n_second"],
    }
