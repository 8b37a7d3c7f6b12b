"""The figures of the JUSThink study; they draw what was found and compute nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

from fidm.channels import parameter_words
from fidm.plot.style import INK, LOOKS, QUIET, RULE, new_axes, quieten
from fidm_studies.justhink.anchor import SCORES

MODEL = ("unexpectedness", "q_gap")
"""The scores that come from the model; the others are plain facts about a track."""


def draw_aucs(aucs: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how well each score tells which tracks are removed later, with intervals.

    Parameters
    ----------
    aucs : DataFrame
        What :func:`fidm_studies.justhink.anchor.removal_aucs` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(6.2, 2.6)
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


def draw_fifths(fifths: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the share of tracks removed later, from the most expected fifth to the least.

    Parameters
    ----------
    fifths : DataFrame
        What :func:`fidm_studies.justhink.anchor.removal_by_fifth` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(4.6, 2.8)
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


def draw_relations(relations: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how η and every θ go with relative gain, and what could have been found with so many children.

    Parameters
    ----------
    relations : DataFrame
        What :func:`fidm_studies.justhink.people.relations` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(6.2, 2.8)
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


def draw_gain(log_eta: NDArray[np.float64], gain: NDArray[np.float64], *, ax: Axes | None = None) -> Axes:
    """Draw relative gain against action sensitivity, a point per child.

    Parameters
    ----------
    log_eta, gain : float array [P]
        The logarithm of η, and the relative gain.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(4.4, 3.2)
    ax.plot(log_eta, gain, LOOKS[0].marker, mfc="none", mec=LOOKS[0].colour, ms=5, zorder=3)
    ax.axhline(0.0, color=QUIET, lw=0.8, zorder=2)
    ax.set_xlabel("logarithm of action sensitivity η (1 / franc)")
    ax.set_ylabel("relative gain in the test")
    quieten(ax)
    return ax
