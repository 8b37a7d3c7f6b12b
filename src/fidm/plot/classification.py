"""Pictures of a classification: scores with their intervals."""

from __future__ import annotations

import math
from textwrap import fill
from typing import TypeGuard

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from fidm.errors import DataError
from fidm.plot.fonts import plain, plain_ticks
from fidm.study.classified import KINDS, Classification, Metric, Setting, in_words
from fidm.study.wording import METRICS, PARTS

INK, QUIET, RULE, PAPER = "#222222", "#777777", "#e6e6e6", "#D55E00"


PART_STYLES = {"cv": ("#0072B2", "o", "#0072B2"), "held-out": ("#333333", "s", "white")}
"""The colour, the marker and the filling of each part."""


APART, BELOW = 0.2, 0.17
"""How far the two parts of a row are from its middle, and the paper's diamonds below their line."""


def classification_bars(
    result: Classification,
    *,
    setting: Setting = "binary",
    metric: Metric = "auc",
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw how well every representation tells people's status, with 95 % intervals.

    Dots are cross-validation, squares the held-out part; a diamond just below is what the paper reports of
    its own people; the dashed line is chance. Axes that share x get limits that show everything on all of
    them.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    setting : {"binary", "multiclass"}
        Healthy against all others, or all classes.
    metric : {"auc", "balanced_accuracy"}
        Which score.
    legend : bool
        Whether to draw the legend; a figure of several panels needs only one (:func:`bar_handles`).
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    rows = result.scores.filter(setting=setting, metric=metric)
    if not rows.height:
        metrics = result.scores["metric"].unique(maintain_order=True)
        raise DataError(
            f"There are no scores of the setting {setting!r} and the metric {metric!r} to draw. "
            f"There are the settings: {', '.join(result.settings)}; and the metrics: {', '.join(metrics)}."
        )
    ticks = _layout(result, rows)
    if ax is None:
        ax = Figure(figsize=(6.4, 1.2 + 0.32 * len(ticks)), layout="constrained").add_subplot()
    place = {name: at for at, name, is_heading in ticks if not is_heading}
    parts = _parts(rows)
    for i, part in enumerate(parts):
        colour, marker, filling = PART_STYLES[part]
        shift = APART * (2 * i - len(parts) + 1)
        for row in rows.filter(part=part).iter_rows(named=True):
            at = place[row["representation"]] + shift
            if is_known(row["low"]) and is_known(row["high"]):
                ax.hlines(at, row["low"], row["high"], color=colour, lw=1.6, zorder=3)
            if is_known(row["value"]):
                ax.plot(row["value"], at, marker, ms=5.2, color=colour, mfc=filling, mew=1.3, zorder=5)
            if is_known(row["paper"]):
                ax.plot(row["paper"], at + BELOW, "D", ms=3.4, mfc="none", mec=PAPER, mew=1.1, zorder=4)
    for name, kind in rows.select("representation", "kind").unique().iter_rows():
        if kind == "fidm":
            ax.axhspan(place[name] - 0.45, place[name] + 0.55, color="#f1f1f1", zorder=0, lw=0)
    chance = 0.5 if metric == "auc" or setting == "binary" else 1 / len(result.classes)
    ax.axvline(chance, color=INK, lw=0.8, ls="--", zorder=2)
    plain_ticks(
        ax.yaxis, [at for at, _, _ in ticks], [_tick(name, is_heading, rows) for _, name, is_heading in ticks]
    )
    for label, (_, _, is_heading) in zip(ax.get_yticklabels(), ticks, strict=False):
        label.set(color=QUIET if is_heading else INK, fontsize=7.5 if is_heading else 8.5)
    ax.set_ylim(ticks[-1][0] + 0.7, ticks[0][0] - 0.6)
    ax.set_xlim(*_limits(rows, chance, ax))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=None))
    ax.set_xlabel(f"{METRICS[metric]} (%), 95 % interval", fontsize=8.5)
    plain(ax.set_title(_setting_words(result, setting), fontsize=9.5, loc="left", pad=18 if legend else 5))
    ax.grid(axis="x", color=RULE, lw=0.7, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if legend:
        ax.legend(
            handles=bar_handles(result, setting=setting, metric=metric), frameon=False, fontsize=7.5, ncols=4,
            loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, handletextpad=0.4,
            columnspacing=1.1,
        )  # fmt: skip
    return ax


def bar_handles(
    result: Classification, *, setting: Setting | None = None, metric: Metric | None = None
) -> list[Line2D]:
    """Return what the legend of :func:`classification_bars` explains, for one legend of several panels.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    setting, metric : str, optional
        What is shown; all of it by default.

    Examples
    --------
    ``figure.legend(handles=bar_handles(result), loc="outside upper right", ncols=4, frameon=False)``
    """
    rows = result.scores
    if setting is not None:
        rows = rows.filter(setting=setting)
    if metric is not None:
        rows = rows.filter(metric=metric)
    handles = []
    for part in _parts(rows):
        colour, marker, filling = PART_STYLES[part]
        handles.append(
            Line2D(
                [], [], color=colour, marker=marker, mfc=filling, ms=5.2, mew=1.3, lw=1.6, label=PARTS[part]
            )
        )
    if rows["paper"].drop_nulls().drop_nans().len():
        handles.append(
            Line2D(
                [], [], ls="none", marker="D", ms=4, mfc="none", mec=PAPER, mew=1.1,
                label="paper (its own people)",
            )
        )  # fmt: skip
    handles.append(Line2D([], [], color=INK, lw=0.8, ls="--", label="chance"))
    return handles


def _layout(result: Classification, rows: pl.DataFrame) -> list[tuple[float, str, bool]]:
    """Where each heading and each representation stands, from above: place, name, whether it is a heading."""
    found: list[tuple[float, str, bool]] = []
    at = 0.0
    kinds = dict(rows.select("representation", "kind").iter_rows())
    for kind, words in KINDS.items():
        names = [name for name in result.representations if kinds.get(name) == kind]
        if not names:
            continue
        if found:
            at += 0.25
        for name in (words, *names):
            found.append((at, name, name is words))
            at += 0.8 if name is words else 1.0
    return found


def _tick(name: str, is_heading: bool, rows: pl.DataFrame) -> str:
    if is_heading:
        return name
    return f"{in_words(name)} ({rows.filter(representation=name)['n_features'][0]:,})"


def _limits(rows: pl.DataFrame, chance: float, ax: Axes) -> tuple[float, float]:
    """From a little below the lowest thing shown to a little above the highest, on all axes that share x."""
    seen = [chance]
    for name in ("value", "low", "high", "paper"):
        seen += rows[name].drop_nulls().drop_nans().to_list()
    low, high = max(-0.01, min(seen) - 0.02), min(1.01, max(seen) + 0.02)
    for other in ax.get_shared_x_axes().get_siblings(ax):
        if other is not ax and other.has_data():
            low, high = min(low, other.get_xlim()[0]), max(high, other.get_xlim()[1])
    return low, high


def _parts(rows: pl.DataFrame) -> list[str]:
    known = set(rows["part"])
    return [part for part in PART_STYLES if part in known]


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether there is a number to draw."""
    return value is not None and math.isfinite(value)


def _setting_words(result: Classification, setting: Setting) -> str:
    """What is told from what, by the names of the classes."""
    healthy, *ill = result.classes
    said = f"{healthy} against {', '.join(ill)}"
    return fill(said if setting == "binary" else f"{', '.join(result.classes)} apart", 56)
