"""What the page of the Map Task shows: rows and verdicts for its template, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fidm.channels import parameter_words
from fidm.experiments.families import CLOSE, Families, order_kept
from fidm.plot.experiments import family_differences, worm_plot
from fidm.plot.style import LOOKS, QUIET, new_axes, quieten
from fidm_studies.analysis import Findings, Reanalysis
from fidm_studies.dataset import Loaded
from fidm_studies.map_task.analysis import EYE_CONTACT, FAMILIAR, analyse, is_clear
from fidm_studies.map_task.dataset import PAUSE_ABOVE_S
from fidm_studies.map_task.readings import (
    ACROSS,
    DESIGNS,
    GAMMA,
    GAMMA_ABOVE,
    LOG_NORMAL,
    MATTERS,
    MOVE,
    OBSERVABLES,
    PAPER,
    WITHIN,
    WORDS,
    as_channel,
)
from fidm_studies.writing import Row, read_template, write_sections

ODDS = 20.0
"""How much more probable data must be under one family than under another to speak of it for sure."""

TOO_WIDE, NARROW = 0.9, 0.95
"""Below this dispersion, and this spread of residuals, a family allows for clearly more than there is."""

KEYS = {MOVE: "move", WORDS: "words"}
"""What is given, as part of names in the page."""

CONTRASTS = {EYE_CONTACT: "seeing each other", FAMILIAR: "friends, not strangers"}


def sections(findings: Findings, _loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first."""
    judged, tables = findings.parts, findings.tables
    chosen = {
        "odds": ODDS,
        "matters": MATTERS,
        "pause_above": PAUSE_ABOVE_S,
        "gamma": GAMMA,
        "log_normal": LOG_NORMAL,
        "gamma_above": GAMMA_ABOVE,
        "summary": [verdict(judged[MOVE], name) for name in PAPER],
        "changed": _changed(judged),
        "narrow": _narrow(judged[WORDS]),
        "halves": _halves(tables["reliability"]),
        "parts": [
            {"given": given, "key": key, "verdicts": [verdict(found, name) for name in found.observables]}
            for given, key in KEYS.items()
            for found in [judged[given]]
        ],
        **_contrasts(tables["contrasts"]),
    }
    twice = labelled(tables["reliability"], with_family=False).rename({"label": "words"})
    differ = labelled(tables["contrasts"], with_family=False)
    differ = differ.with_columns(pl.col("contrast").replace(CONTRASTS))
    shown = {"twice": twice, "contrasts": differ, **_families(tables["families"])}
    template = read_template("fidm_studies.map_task")
    return write_sections(template, findings, chosen=chosen, tables=shown, figures=_drawn(findings, differ))


# ---------------------------------------------------------------------- families


class Standing(StrEnum):
    """How a family stands to the first one of its observation."""

    BETTER = "better"
    BORDERLINE_BETTER = "better, borderline"
    WORSE = "worse"
    BORDERLINE_WORSE = "worse, borderline"
    ALIKE = "alike"
    UNSURE = "not distinguished"


SIDE = {Standing.BETTER: 1, Standing.BORDERLINE_BETTER: 1, Standing.WORSE: -1, Standing.BORDERLINE_WORSE: -1}
"""Which way a family differs from the first, if it does."""


def standing(row: Row) -> Standing:
    """Return how a family stands to the first one.

    Better and worse are beyond chance (the interval excludes 0) and by what matters; borderline if the
    interval's near end is less than what matters. Alike: the whole interval is less than what matters. All
    else is not distinguished.

    Examples
    --------
    >>> standing({"difference": 0.02, "low": 0.01, "high": 0.03}).value
    'better'
    >>> standing({"difference": 0.005, "low": 0.0002, "high": 0.009}).value
    'better, borderline'
    >>> standing({"difference": 0.0002, "low": 0.0001, "high": 0.0003}).value
    'alike'
    >>> standing({"difference": 0.0012, "low": -0.001, "high": 0.003}).value
    'not distinguished'
    """
    difference, low, high = row["difference"], row["low"], row["high"]
    if difference >= MATTERS and low > 0:
        return Standing.BETTER if low >= MATTERS else Standing.BORDERLINE_BETTER
    if difference <= -MATTERS and high < 0:
        return Standing.WORSE if high <= -MATTERS else Standing.BORDERLINE_WORSE
    return Standing.ALIKE if max(-low, high) < MATTERS else Standing.UNSURE


def verdict(found: Families, observable: str) -> dict[str, Any]:
    """Return how the families of an observation stand to its first one, and which is the best."""
    reference, *others = (_shown(row) for row in found.of(observable))
    better = [row for row in others if row["side"] == 1]
    sure = [row for row in better if row["standing"] is Standing.BETTER]
    best = max(sure or better, key=lambda row: row["difference"], default=None)
    rest = {kind: [row for row in others if row["standing"] is kind and row is not best] for kind in Standing}
    chosen: dict[str, Any] = {}
    if best is not None:
        moves = math.log(ODDS) / best["difference"]
        size = 10 ** max(0, math.floor(math.log10(moves)) - 1)
        r = best["theta_rank_r"]
        chosen = {
            "moves": round(moves / size) * size,
            "channel": as_channel(observable, best["family"]),
            "order": "" if r is None or r != r else order_kept(r),
        }
    what = OBSERVABLES[observable]
    return {
        "title": what[0].upper() + what[1:],
        "reference": reference["family"],
        "best": best,
        "is_sure": bool(sure),
        "shown": best or reference,
        "better": rest[Standing.BETTER],
        "maybe_better": rest[Standing.BORDERLINE_BETTER],
        "worse": rest[Standing.WORSE],
        "maybe_worse": rest[Standing.BORDERLINE_WORSE],
        "unsure": rest[Standing.UNSURE],
        "alike": rest[Standing.ALIKE],
        **chosen,
    }


def _shown(row: Row) -> dict[str, Any]:
    """A family with how it stands, and by how much it is better or worse, whichever it is."""
    kind = standing(row)
    side = SIDE.get(kind, 0)
    least, most = sorted((side * row["low"], side * row["high"]))
    return {
        **row,
        "standing": kind,
        "side": side,
        "gain": side * row["difference"],
        "least": least,
        "most": most,
        "digits": 4 if abs(row["difference"]) < 0.01 else 3,
        "is_close": row["ks"] < CLOSE,
        "is_whole": row["n_residuals"] == row["n"],
    }


def _changed(judged: Mapping[str, Families]) -> list[dict[str, Any]]:
    """The verdicts that are others once the number of words is given."""
    return [
        {
            "what": OBSERVABLES[name],
            "family": row["family"],
            "reference": judged[WORDS].of(name)[0]["family"],
            "before": before.value,
            "then": then.value,
        }
        for name in judged[WORDS].observables
        for row in judged[WORDS].of(name)[1:]
        for before, then in [(standing(judged[MOVE].row(name, row["family"])), standing(row))]
        if SIDE.get(then) != SIDE.get(before)
    ]


def _narrow(found: Families) -> list[dict[str, Any]]:
    """The observations of which less spread is left than both families allow."""
    narrow = []
    for name in found.observables:
        rows = found.of(name)
        spread = min((row["dispersion"] for row in rows), key=lambda x: abs(x - 1))
        if spread < TOO_WIDE and max(row["residual_sd"] for row in rows) < NARROW:
            narrow.append({"what": OBSERVABLES[name], "dispersion": spread})
    return narrow


def _families(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The tables of families, given the move and given its words."""
    tiny = pl.col("difference", "low", "high", "zeros_expected").fill_nan(None).round(5)
    worded = table.with_columns(pl.col("observable").replace(OBSERVABLES), tiny)
    return {f"families-{key}": worded.filter(given=given) for given, key in KEYS.items()}


# ---------------------------------------------------------------------- θ


def _halves(table: pl.DataFrame) -> dict[str, Row]:
    """The rows on how θ agrees with itself that sentences need; a row of nothing where there is none."""

    def one(given: str, family: str, measured: str, parameter: str = "duration") -> Row:
        rows = table.filter(given=given, family=family, measured=measured, parameter=parameter).to_dicts()
        return rows[0] if rows else {"r": None}

    return {
        "gamma": one(MOVE, GAMMA, WITHIN),
        "log_normal": one(MOVE, LOG_NORMAL, WITHIN),
        "words": one(WORDS, GAMMA, WITHIN),
        "across": one(MOVE, GAMMA, ACROSS),
        "words_across": one(WORDS, GAMMA, ACROSS),
        "pause": one(MOVE, LOG_NORMAL, WITHIN, "pause"),
        "pause_above": one(MOVE, GAMMA_ABOVE, WITHIN, "pause"),
    }


def _contrasts(table: pl.DataFrame) -> dict[str, Any]:
    """The contrasts that are significant after correction, and the nearest."""
    rows = [
        {
            **row,
            "what": parameter_words(row["parameter"]).removesuffix(" θ"),
            "contrast": CONTRASTS[row["contrast"]],
        }
        for row in table.drop_nulls("p").sort("p", maintain_order=True).iter_rows(named=True)
    ]
    return {
        "n_contrasts": len(rows),
        "clear": [row for row in rows if is_clear(row)],
        "nearest": rows[0] if rows else None,
    }


def _drawn(findings: Findings, differ: pl.DataFrame) -> dict[str, Any]:
    judged = findings.parts
    within = labelled(findings.tables["reliability"].filter(measured=WITHIN), with_family=True)
    return {
        **{f"gains-{key}": gains(judged[given]) for given, key in KEYS.items()},
        **{f"worms-{key}": worms(judged[given]) for given, key in KEYS.items()},
        "twice-figure": forest(
            within, "r", "r_low", "r_high", by="given", looks=list(DESIGNS), xlabel="correlation of halves"
        ),
        "contrasts-figure": forest(
            differ.filter(given=MOVE),
            "difference",
            "low",
            "high",
            by="contrast",
            looks=list(CONTRASTS.values()),
            xlabel="difference of θ (log scale)",
        ),
    }


REANALYSIS = Reanalysis(
    name="map-task",
    dataset="map-task",
    title="Real route-giving speech and the families of the effort channels",
    question="Are Gamma, negative binomial and Bernoulli + log-normal the right families for real speech?",
    analyse=analyse,
    sections=sections,
)


GAIN = "held-out log-likelihood per move, against the first (filled: more than chance, and it matters)"
"""What gains are, beneath the last panel."""


def worms(found: Families) -> Figure:
    """Draw how far quantile residuals lie from normal ones, a panel per observation, one below the other."""
    observables = found.observables
    figure = Figure(figsize=(6.8, 1.55 * len(observables) + 0.4), layout="constrained")
    for place, name in enumerate(observables, 1):
        ax = worm_plot(found, name, ax=figure.add_subplot(len(observables), 1, place))
        ax.set_title(OBSERVABLES[name], fontsize=9, loc="left")
        last = place == len(observables)
        ax.set_xlabel("residual expected of a normal distribution" if last else "", fontsize=8)
        ax.set_ylabel("residual\nminus expected", fontsize=8)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def gains(found: Families) -> Figure:
    """Draw how much better or worse than the reference families predict people left out, panel by panel."""
    observables = found.observables
    sizes = [1.6 + len(found.of(name)) for name in observables]
    figure = Figure(figsize=(6.8, 0.27 * sum(sizes) + 0.3), layout="constrained")
    grid = figure.add_gridspec(len(observables), 1, height_ratios=sizes)
    for place, name in enumerate(observables):
        ax = family_differences(found, name, matters=MATTERS, ax=figure.add_subplot(grid[place]))
        ax.set_title(OBSERVABLES[name], fontsize=9, loc="left")
        ax.tick_params(labelsize=8)
        last = place == len(observables) - 1
        ax.set_xlabel(GAIN if last else "", fontsize=8)
        ax.xaxis.set_major_locator(MaxNLocator(5))
    return figure


def forest(
    table: pl.DataFrame, value: str, low: str, high: str, *, by: str, looks: Sequence[str], xlabel: str
) -> Axes:
    """Draw numbers with their intervals, a line per θ and a mark per value of another column.

    Parameters
    ----------
    table : DataFrame
        With ``label``, the column ``by``, and the numbers.
    value, low, high : str
        The columns of the number and its ends.
    by : str
        The column that tells marks apart.
    looks : sequence of str
        Its values, in the order in which they are drawn.
    xlabel : str
        What is drawn, with its unit.
    """
    labels = table["label"].unique(maintain_order=True).to_list()
    ax = new_axes(7.0, 1.2 + 0.5 * len(labels))
    ax.axvline(0.0, color=QUIET, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for k, one in enumerate(looks):
        look = LOOKS[k % len(LOOKS)]
        named = False
        for row in table.filter(pl.col(by) == one).iter_rows(named=True):
            if row[value] is None:
                continue
            at = len(labels) - 1 - labels.index(row["label"]) + 0.16 * (len(looks) - 1 - 2 * k)
            if row[low] is not None:
                ax.plot([row[low], row[high]], [at, at], color=look.colour, ls=look.line, lw=1.6, zorder=2)
            ax.plot(
                row[value], at, look.marker, color=look.colour, ms=6, zorder=3, label=None if named else one
            )
            named = True
    ax.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
    ax.set_ylim(-0.6, len(labels) - 0.4)
    ax.set_xlabel(xlabel, fontsize=8.5)
    if len(looks) > 1:
        ax.legend(fontsize=7.5, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(looks))
    quieten(ax)
    return ax


def labelled(table: pl.DataFrame, *, with_family: bool) -> pl.DataFrame:
    """Return a table with the words of its θ in the column ``label``."""
    words = pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)
    return table.with_columns(label=pl.format("{}, {}", words, "family") if with_family else words)
