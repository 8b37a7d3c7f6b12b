"""What the page of the JUSThink study shows: rows and verdicts for its template, tables and figures."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from fidm.channels import parameter_words
from fidm.fit.profile import SENSITIVITY
from fidm_studies.analysis import Findings
from fidm_studies.dataset import Loaded
from fidm_studies.justhink import figures
from fidm_studies.justhink.anchor import SCORES
from fidm_studies.justhink.people import OUTCOMES
from fidm_studies.justhink.readings import AS_READ, ONE, OWN, WHOSE, WITHIN, WITHOUT
from fidm_studies.writing import ABOVE, BELOW, one_row, read_template, side, write_sections

ALIKE = 1.2
"""Losses whose ends differ by less than this factor are called about equal."""

SURE = 0.05
"""A corrected p-value below this is called beyond chance."""

EFFECTS = ("log_moves", "role=tells", "sd")
"""What the table of effects on speech has: coefficients, and the spread of θ."""


def sections(findings: Findings, _loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first.

    Parameters
    ----------
    findings : Findings
        What the analysis gave.
    """
    tables = findings.tables
    effort = effort_table(tables["population"])
    words = pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)
    scored = pl.col("score").replace_strict(SCORES)
    shown = {
        "aucs": tables["aucs"].with_columns(scored),
        "odds": tables["odds"].with_columns(scored),
        "whose": tables["whose"].with_columns(pl.col("whose").replace_strict(WHOSE)),
        "effort": effort.with_columns(words),
        "halves": tables["halves"].with_columns(words),
        "relations": tables["relations"].with_columns(words, pl.col("outcome").replace_strict(OUTCOMES)),
    }
    log_eta = findings.parts["estimates"][SENSITIVITY]
    drawn = {
        "aucs": figures.draw_aucs(tables["aucs"]),
        "fifths": figures.draw_fifths(tables["fifths"]),
        "relations": figures.draw_relations(tables["relations"]),
        "gain": figures.draw_gain(log_eta, findings.parts["relative_gain"]),
    }
    chosen = {
        **_of_task(findings),
        **_of_removals(tables["aucs"], tables["odds"], tables["whose"]),
        **_of_readings(tables["readings"]),
        **_of_speech(effort, tables["halves"]),
        **_of_learning(tables["relations"]),
    }
    template = read_template("fidm_studies.justhink")
    return write_sections(template, findings, chosen=chosen, tables=shown, figures=drawn)


def _of_task(findings: Findings) -> dict[str, Any]:
    numbers = findings.numbers
    n_tracks = int(math.log2(numbers["n_sets"]))
    return {
        "has_clock": math.isfinite(numbers["clock_lag_s"]),
        "solvers_agree": numbers["solver_difference"] <= 1e-9,
        # from this temperature on a change is worth more than it costs, were all choices alike
        "trap": abs(findings.record.settings["change"]) / math.log(n_tracks + 1),
    }


def _of_removals(aucs: pl.DataFrame, odds: pl.DataFrame, whose: pl.DataFrame) -> dict[str, Any]:
    """Whether unexpected tracks are removed again, beside their cost and under another η."""
    own = one_row(aucs, score="unexpectedness")
    fixed = next(odds.filter(score="unexpectedness").iter_rows(named=True), None)
    rows = {row["whose"]: row for row in whose.iter_rows(named=True)}
    others = {"without": rows[WITHOUT], "one": rows[ONE], "within": rows[WITHIN]}
    return {
        "own": own,
        "own_side": side(own, 0.5, "auc"),
        "cost": one_row(aucs, score="cost"),
        "over_cost": side(own, 0.0, "over_cost"),
        "odds": fixed,
        "odds_side": side(fixed, 1.0, "odds") if fixed else "",
        "whose": others,
        "n_others": len(others),
        "n_lower": sum(row["auc"] < rows[OWN]["auc"] for row in others.values()),
        "n_above": sum(row["low"] > 0.5 for row in others.values()),
    }


def _of_readings(table: pl.DataFrame) -> dict[str, Any]:
    """What depends on how the task is read."""
    rows = table.rows(named=True)
    verdicts = [side(row, 0.0, "over_cost") for row in rows]
    as_read = one_row(table, reading=AS_READ)
    dear = table.filter(pl.col("change") == table["change"].max()).row(0, named=True)
    losses = ""
    if as_read["loss_low"] is not None and dear["loss_low"] is not None:
        losses = "alike" if as_read["loss_high"] <= ALIKE * as_read["loss_low"] else "different"
    likely = table.drop_nulls("log_likelihood").sort("log_likelihood", descending=True)
    return {
        "n_readings": len(rows),
        "readings_agree": len(set(verdicts)) == 1,
        "n_worse": verdicts.count(BELOW),
        "n_better": verdicts.count(ABOVE),
        "n_adding": [side(row, 1.0, "odds") for row in rows].count(ABOVE),
        "as_read": as_read,
        "dear": dear,
        "losses": losses,
        "least_auc": table["auc"].min(),
        "largest_auc": table["auc"].max(),
        "other_order": table.sort("same_order").row(0, named=True),
        "most_likely": likely.row(0, named=True),
        "n_same_choices": likely.height,
    }


def effort_table(population: pl.DataFrame) -> pl.DataFrame:
    """Return what speech goes with, a row per channel: coefficients with standard errors, the spread of θ."""
    known = population.filter(pl.col("quantity").is_in(EFFECTS), ~pl.col("parameter").str.starts_with("log_"))
    names = [f"{kind}_{name}" for name in EFFECTS for kind in ("estimate", "se")]
    wide = known.pivot("quantity", index="parameter", values=["estimate", "se"])
    lacking = [pl.lit(None, dtype=pl.Float64).alias(name) for name in names if name not in wide.columns]
    return wide.with_columns(lacking)


def _of_speech(effort: pl.DataFrame, halves: pl.DataFrame) -> dict[str, Any]:
    theta = halves.filter(pl.col("parameter") != SENSITIVITY)["reliability"].drop_nulls()
    more = effort.filter(pl.col("estimate_log_moves") > 1.96 * pl.col("se_log_moves"))
    return {
        "has_speech": effort.height > 0,
        "n_channels": effort.height,
        "n_more_speech": more.height,
        "theta_low": theta.min(),
        "theta_high": theta.max(),
        "eta_halves": one_row(halves, parameter=SENSITIVITY),
    }


def _of_learning(relations: pl.DataFrame) -> dict[str, Any]:
    """Which correlations with learning are beyond chance, and which could have been."""
    eta = one_row(relations, parameter=SENSITIVITY, outcome="relative_gain")
    effort = relations.filter(pl.col("parameter") != SENSITIVITY)
    ordered = effort.sort(pl.col("value").abs(), descending=True, nulls_last=True)
    largest = next(ordered.iter_rows(named=True), None)
    if largest:
        largest["parameter_words"] = parameter_words(largest["parameter"])
        largest["outcome_words"] = OUTCOMES[largest["outcome"]]
    return {
        "eta_gain": eta,
        "eta_side": side(eta, 0.0),
        "largest": largest,
        "speaking": next(effort.iter_rows(named=True), None),
        "n_effort": effort.height,
        "n_sure": effort.filter(pl.col("p_corrected") < SURE).height,
        "n_tests": relations.height,
        "n_clear": relations.filter((pl.col("low") > 0) | (pl.col("high") < 0)).height,
    }
