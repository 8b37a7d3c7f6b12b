"""Pictures that only a report needs: how a grounding went, and panels of a classification side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import get_args

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.classify.result import Classification, Metric, Part
from fidm.fit.profile import OK, Profile
from fidm.plot.classification import bar_handles, classification_bars, roc_curves
from fidm.plot.profiles import cohort_scatter
from fidm.plot.style import INK, QUIET
from fidm.report.words import GROUNDED

LOOKS: Mapping[str, tuple[str, str]] = {
    "confident": ("#0072B2", ""),
    "reviewed": ("#56B4E9", ".."),
    "needs_review": ("#E69F00", "//"),
    "rejected": ("#D55E00", "xx"),
    "no_route": ("#D9D9D9", ""),
}
"""The colour and the hatching of each status, told apart in grey too."""

AREA = re.compile(r"  (\d+\.\d)(?: \((\d+\.\d)–(\d+\.\d)\))?(?: \(–\))?$")
"""How an area stands at the end of a legend's entry, in per cent."""


def status_bar(counts: Mapping[str, int]) -> Figure:
    """Draw how many segments have each status as one bar.

    Parameters
    ----------
    counts : mapping of str to int
        How many there are of each status.
    """
    figure = Figure(figsize=(8, 1.25), layout="constrained")
    ax = figure.subplots()
    total, left = sum(counts.values()), 0.0
    for status, n in counts.items():
        colour, hatch = LOOKS.get(status, ("#999999", "--"))
        share = 100 * n / total
        ax.barh(0, share, left=left, height=0.8, color=colour, hatch=hatch, edgecolor="white", lw=0.8,
                label=f"{GROUNDED.get(status, status)} {share:.1f} %")  # fmt: skip
        left += share
    ax.set(xlim=(0, 100), yticks=[], xlabel="segments (%)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=5, frameon=False, fontsize=8.5)
    return figure


def scatter(profile: Profile, *, channel: str, groups: pl.Series | None) -> Axes:
    """Draw everybody's action sensitivity against effort, with a cross where an estimate has a flag.

    Parameters
    ----------
    profile, channel, groups
        As in :func:`fidm.plot.cohort_scatter`.
    """
    ax = cohort_scatter(profile, channel=channel, groups=groups)
    eta, theta, k = profile.action_sensitivity, profile[channel], profile.parameters.index(channel)
    shown = np.isfinite(eta) & (eta > 0) & np.isfinite(theta)
    flagged = shown & ((profile.status[:, 0] != OK) | (profile.status[:, k] != OK))
    if flagged.any():
        ax.plot(eta[flagged], theta[flagged], "x", color=INK, ms=7.5, mew=1.0, zorder=6)
        said = f"× something is to be said against η or θ ({flagged.sum():,})"
        ax.annotate(said, (0, 0), xytext=(3, 3), xycoords="axes fraction", textcoords="offset points",
                    ha="left", va="bottom", fontsize=7, color=QUIET)  # fmt: skip
    return ax


def score_bars(found: Classification) -> Figure:
    """Draw the area under the curve and the balanced accuracy of each representation, for two classes."""
    n = len(found.representations) + 0.8 * len(set(found.scores["kind"]))
    drawn = Figure(figsize=(10.5, 1.1 + 0.31 * n), layout="constrained")
    metrics: tuple[Metric, ...] = get_args(Metric)
    for i, (ax, metric) in enumerate(zip(drawn.subplots(1, len(metrics)), metrics, strict=True)):
        classification_bars(found, setting="binary", metric=metric, legend=False, ax=ax)
        ax.tick_params(labelleft=i == 0)
        if metric == "auc":  # the report writes an AUC as 0.93 everywhere
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
            ax.set_xlabel(ax.get_xlabel().replace(" (%)", ""), fontsize=8.5)
    drawn.legend(handles=bar_handles(found), loc="outside upper right", ncols=4, frameon=False, fontsize=8.5)
    return drawn


def curve_panels(found: Classification, draw: Callable[..., Axes]) -> Figure:
    """Draw a curve of each part of people side by side.

    Parameters
    ----------
    found : Classification
        What was found.
    draw : callable
        :func:`fidm.plot.roc_curves` or :func:`fidm.plot.calibration_curve`.
    """
    parts: list[Part] = [one for one in get_args(Part) if one in found.parts]
    drawn = Figure(figsize=(0.2 + 4.4 * len(parts), 5.0), layout="constrained")
    for ax, part in zip(drawn.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        draw(found, part=part, ax=ax)
        if draw is roc_curves:
            _areas_as_shares(ax)
    return drawn


def _areas_as_shares(ax: Axes) -> None:
    """Write the areas in a legend as the report does: 0.934 (0.915 to 0.950)."""
    legend = ax.get_legend()
    if legend is None:
        return
    legend.set_title(legend.get_title().get_text().replace(" (%)", ""))
    for entry in legend.get_texts():
        entry.set_text(AREA.sub(_area, entry.get_text()))


def _area(found: re.Match[str]) -> str:
    value, low, high = (None if one is None else f"{float(one) / 100:.3f}" for one in found.groups())
    return f"  {value}" if low is None else f"  {value} ({low} to {high})"
