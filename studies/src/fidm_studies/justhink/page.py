"""What the page of the JUSThink study shows: rows and verdicts for its template, tables and figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

from fidm.channels import parameter_words
from fidm.fit.profile import SENSITIVITY
from fidm.plot.style import INK, LOOKS, QUIET, RULE, new_axes, quieten
from fidm_studies.analysis import Findings, Reanalysis
from fidm_studies.dataset import Loaded
from fidm_studies.justhink.analysis import analyse
from fidm_studies.justhink.people import OUTCOMES
from fidm_studies.justhink.removals import (
    AS_READ,
    ONE,
    OWN,
    SCORES,
    WHOSE,
    WITHIN,
    WITHOUT,
)
from fidm_studies.writing import ABOVE, BELOW, one_row, read_template, side, write_sections

ALIKE = 1.2
"""Losses whose ends differ by less than this factor are called about equal."""

SURE = 0.05
"""A corrected p-value below this is called beyond chance."""

EFFECTS = ("log_moves", "role=tells", "sd")
"""What the table of effects on speech has: coefficients, and the spread of θ."""


def sections(findings: Findings, _loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first."""
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
        "aucs": draw_aucs(tables["aucs"]),
        "fifths": draw_fifths(tables["fifths"]),
        "relations": draw_relations(tables["relations"]),
        "gain": draw_gain(log_eta, findings.parts["relative_gain"]),
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


REANALYSIS = Reanalysis(
    name="justhink",
    dataset="justhink",
    title="Pairs of children build a railway network and talk",
    question="Do children remove again the tracks they laid unexpectedly, and does what talking costs them, "
    "or how closely they follow value, go with what they learn?",
    analyse=analyse,
    sections=sections,
)


MODEL = ("unexpectedness", "q_gap")
"""The scores that come from the model; the others are plain facts about a track."""


def draw_aucs(aucs: pl.DataFrame) -> Axes:
    """Draw how well each score tells which tracks are removed later, with intervals."""
    ax = new_axes(6.2, 2.6)
    place = np.arange(aucs.height)[::-1]
    for at, row in zip(place, aucs.iter_rows(named=True), strict=True):
        look = LOOKS[0] if row["score"] in MODEL else LOOKS[1]
        filled = look.colour if row["score"] in MODEL else "white"
        ax.plot([row["low"], row["high"]], [at, at], color=look.colour, ls=look.line, lw=1.8, zorder=2)
        ax.plot(row["auc"], at, look.marker, color=look.colour, mfc=filled, mew=1.4, ms=7, zorder=3)
    ax.axvline(0.5, color=INK, lw=0.8, ls="--", zorder=1)
    ax.set_yticks(place, [SCORES[name] for name in aucs["score"]])
    ax.set_xlabel("AUC, removed later against kept (0.5: chance)")
    quieten(ax)
    return ax


def draw_fifths(fifths: pl.DataFrame) -> Axes:
    """Draw the share of tracks removed later, from the most expected fifth to the least."""
    ax = new_axes(4.6, 2.8)
    share = 100 * fifths["removed"].to_numpy()
    ax.bar(fifths["fifth"], share, width=0.7, color=LOOKS[4].colour, edgecolor=INK, lw=0.8, zorder=2)
    for at, value in zip(fifths["fifth"], share, strict=True):
        ax.annotate(
            f"{value:.0f} %", (at, value), (0, 2), textcoords="offset points", ha="center", fontsize=8
        )
    ax.set_xticks(fifths["fifth"].to_list())
    ax.set_ylim(0, 1.15 * max(float(share.max(initial=0.0)), 1.0))
    ax.set_xlabel("fifth of the laid tracks, from expected to unexpected")
    ax.set_ylabel("removed later (%)")
    quieten(ax)
    return ax


def draw_relations(relations: pl.DataFrame) -> Axes:
    """Draw how η and every θ go with relative gain, and what could have been found with so many children."""
    ax = new_axes(6.2, 2.8)
    shown = relations.filter(pl.col("outcome") == "relative_gain")
    place = np.arange(shown.height)[::-1]
    for at, row in zip(place, shown.iter_rows(named=True), strict=True):
        edge = row["detectable_corrected"]
        ax.fill_betweenx([at - 0.35, at + 0.35], -edge, edge, color=RULE, lw=0, zorder=1)
        ax.plot([row["low"], row["high"]], [at, at], color=LOOKS[0].colour, lw=1.8, zorder=2)
        ax.plot(row["value"], at, LOOKS[0].marker, color=LOOKS[0].colour, ms=7, zorder=3)
    ax.axvline(0.0, color=INK, lw=0.8, ls="--", zorder=1)
    words = [
        f"{parameter_words(row[0])} (n = {row[1]})" for row in shown.select("parameter", "n").iter_rows()
    ]
    ax.set_yticks(place, words)
    ax.set_xlim(-1, 1)
    ax.set_xlabel(
        "Spearman correlation with relative gain\n"
        "(grey: too small for 80 % power, corrected for the number of tests)"
    )
    quieten(ax)
    return ax


def draw_gain(log_eta: NDArray[np.float64], gain: NDArray[np.float64]) -> Axes:
    """Draw relative gain against action sensitivity, a point per child."""
    ax = new_axes(4.4, 3.2)
    ax.plot(log_eta, gain, LOOKS[0].marker, mfc="none", mec=LOOKS[0].colour, ms=5, zorder=3)
    ax.axhline(0.0, color=QUIET, lw=0.8, zorder=2)
    ax.set_xlabel("logarithm of action sensitivity η (1 / franc)")
    ax.set_ylabel("relative gain in the test")
    quieten(ax)
    return ax
