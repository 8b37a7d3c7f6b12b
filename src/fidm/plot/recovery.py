"""Pictures of recovery (the paper's figure 3) and of reliability."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.channels import CHANNEL_WORDS, channel_words, parameter_words
from fidm.fit.profile import SENSITIVITY
from fidm.plot.fonts import plain_ticks
from fidm.study.recovered import Recovery, number
from fidm.study.repeated import Reliability

SHORT = {SENSITIVITY: "η", **{name: name.replace("_", " ") for name in CHANNEL_WORDS}}
"""What parameters are called where there is little room, as in tables of the terminal: by their own names."""

COLOURS = {"split-half": "#0072B2", "retest": "#D55E00", "model": "#009E73"}
"""Colours of the kinds of reliability (Okabe and Ito)."""

MARKERS: dict[str, tuple[str, Literal["-", "--", ":"]]] = {
    "split-half": ("o", "-"),
    "retest": ("s", "--"),
    "model": ("^", ":"),
}
"""The marker and the line of each kind, so that they differ without colour too."""

INK, MAP = "#222222", "cividis"


def recovery(result: Recovery, *, method: str = "", scale: str = "log") -> Figure:
    """Draw a heat map per condition: rows are manipulated factors, columns recovered parameters.

    Parameters
    ----------
    result : Recovery
        What :func:`fidm.study.recovering.recover` gives.
    method : {"eb", "mle"}
        How people were estimated; by default the first method tried.
    scale : {"log", "raw"}
        Whether log η or η.
    """
    conditions = result.conditions
    figure = Figure(figsize=(0.9 + 2.7 * len(conditions), 3.6), layout="constrained")
    panels = figure.subplots(1, len(conditions), squeeze=False)[0]
    for i, (ax, condition) in enumerate(zip(panels, conditions, strict=True)):
        recovery_matrix(result, condition, method=method, scale=scale, ax=ax)
        ax.set_title(f"({'abc'[i]}) {result.condition_words(condition)}", fontsize=9)
        if i:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
    figure.colorbar(panels[-1].images[0], ax=list(panels), shrink=0.8, label="|standardized partial slope|")
    how = {"eb": "empirical Bayes", "mle": "maximum likelihood"}[method or result.methods[0]]
    figure.suptitle(f"{result.n_people:,} people, {how}, {scale} η", fontsize=9)
    return figure


def recovery_matrix(
    result: Recovery,
    condition: str = "complete",
    *,
    method: str = "",
    scale: str = "log",
    ax: Axes | None = None,
) -> Axes:
    """Draw the heat map of one condition.

    Parameters
    ----------
    result, method, scale
        As in :func:`recovery`.
    condition : str
        Which condition.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    if ax is None:
        ax = Figure(figsize=(3.4, 3.1), layout="constrained").subplots()
    matrix = result.matrix(condition, method=method, scale=scale)
    names = ["η" if name == SENSITIVITY else channel_words(name).name for name in result.factors]
    if scale == "log":
        names[0] = f"log {names[0]}"
    ax.imshow(np.abs(matrix), vmin=0, vmax=1, cmap=MAP)
    for (i, j), value in np.ndenumerate(matrix):
        colour = INK if math.isfinite(value) and abs(value) > 0.6 else "white"
        colour = colour if math.isfinite(value) else INK
        ax.text(j, i, number(value), ha="center", va="center", fontsize=7.5, color=colour)
    for axis in (ax.xaxis, ax.yaxis):
        plain_ticks(axis, list(range(len(names))), names, size=8)
    for label in ax.get_xticklabels():
        label.set(rotation=35, ha="right")
    ax.tick_params(length=0)
    ax.set_xlabel("recovered", fontsize=8.5)
    ax.set_ylabel("manipulated", fontsize=8.5)
    return ax


def reliability(result: Reliability, *, ax: Axes | None = None) -> Axes:
    """Draw each parameter's reliability as dots with 95 % intervals, a colour per kind.

    Parameters
    ----------
    result : Reliability
        What :func:`fidm.study.repeating.reliability` gives.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    names = list(result.parameters)
    if ax is None:
        ax = Figure(figsize=(5.2, 0.9 + 0.5 * len(names)), layout="constrained").subplots()
    kinds = [kind for kind in COLOURS if kind in set(result.table["kind"])]
    for k, kind in enumerate(kinds):
        rows = result.table.filter(kind=kind).drop_nulls("reliability")
        height = [names.index(name) + 0.18 * (k - (len(kinds) - 1) / 2) for name in rows["parameter"]]
        marker, line = MARKERS[kind]
        filling = "white" if kind == "retest" else COLOURS[kind]
        ax.plot(
            rows["reliability"], height, marker, color=COLOURS[kind], mfc=filling, ms=5.5, mew=1.4,
            label=kind, zorder=3,
        )  # fmt: skip
        known = rows.drop_nulls(["low", "high"])
        at = [y for y, low in zip(height, rows["low"], strict=True) if low is not None]
        ax.hlines(at, known["low"], known["high"], color=COLOURS[kind], linewidth=1.4, linestyles=line)
    plain_ticks(ax.yaxis, list(range(len(names))), [parameter_words(name) for name in names], size=9)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.axvline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    ax.set_xlim(right=1.02)
    ax.set_xlabel("reliability, 95 % interval")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(kinds))
    return ax
