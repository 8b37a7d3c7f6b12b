"""Pictures of the matched conditions (the paper's figure 4) and of the grid of task settings."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from fidm.study.matching import FEATURES, MATCHED, PLAIN, Matched
from fidm.study.selected import PAPER_CHOICE, Selection

PAPER, INK = "#D55E00", "#222222"

KINDS = {
    "matched": ("#777777", "s", "white"),
    "plain": ("#56B4E9", "^", "#56B4E9"),
    "factor": ("#0072B2", "o", "#0072B2"),
}
"""The colour, the marker and the filling of each kind of features."""

SAID = {"matched": "summaries that are matched", "plain": "other plain summaries", "factor": "FIDM's factors"}


def matched_auc(result: Matched, *, ax: Axes | None = None) -> Axes:
    """Draw how well each kind of features tells the matched conditions apart, with the paper's numbers.

    Points are means over repetitions, whiskers their standard deviation, diamonds the paper's. Hollow
    squares: summaries that are matched; triangles: plain ones the paper lacks; dots: the factors.

    Parameters
    ----------
    result : Matched
        What :func:`fidm.study.matching.matched` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    if ax is None:
        ax = Figure(figsize=(6.4, 3.2), layout="constrained").add_subplot()
    table = result.auc
    names = table["features"].to_list()
    place = np.arange(len(names))[::-1]
    kinds = ["matched" if name in MATCHED else "plain" if name in PLAIN else "factor" for name in names]
    auc, spread = table["auc"].to_numpy(), table["sd"].fill_null(0.0).to_numpy()
    for at, value, error, kind in zip(place, auc, spread, kinds, strict=True):
        colour, marker, filling = KINDS[kind]
        ax.errorbar(
            value, at, xerr=error, fmt=marker, color=colour, mfc=filling, mew=1.4, ms=7, elinewidth=2,
            capsize=3, zorder=3,
        )  # fmt: skip
    paper = table["paper"].cast(float).to_numpy()
    known = np.isfinite(paper)
    ax.plot(
        paper[known],
        place[known],
        "D",
        color="none",
        ms=8,
        mec=PAPER,
        mew=1.4,
        zorder=4,
        clip_on=False,
    )
    ax.axvline(0.5, color=INK, lw=0.8, ls="--", zorder=3)
    for at, value in zip(place, auc, strict=True):
        ax.text(1.03, at, f"{value:.3f}", va="center", fontsize=8, color=INK)
    ax.set_yticks(place, [FEATURES[name] for name in names])
    ax.set_xlim(min(0.4, 0.95 * float(np.nanmin(auc - spread))), 1.01)
    ax.grid(axis="x", color="#eeeeee", zorder=0)
    ax.set_xlabel("AUC, A against B (0.5: chance)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    handles = [
        Line2D([], [], ls="none", marker=marker, color=colour, mfc=filling, ms=6, mew=1.4, label=SAID[kind])
        for kind, (colour, marker, filling) in KINDS.items()
        if kind in kinds
    ]
    if known.any():
        handles.append(Line2D([], [], ls="none", marker="D", color="none", mec=PAPER, mew=1.4, label="paper"))
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=8,
        borderaxespad=0.1,
    )  # fmt: skip
    return ax


def selection_map(result: Selection, *, ax: Axes | None = None) -> Axes:
    """Draw the grid of move costs and temperatures: scores, degenerate points hatched, the choice framed.

    Parameters
    ----------
    result : Selection
        What :func:`fidm.study.selecting.select` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    if ax is None:
        ax = Figure(figsize=(6.0, 3.4), layout="constrained").add_subplot()
    costs = list(dict.fromkeys(point.move_cost for point in result.points))
    temperatures = list(dict.fromkeys(point.tau for point in result.points))
    score = np.array([result.score(point) for point in result.points]).reshape(len(costs), len(temperatures))
    usable = np.array([point.usable for point in result.points]).reshape(score.shape)
    shown = score[usable] if usable.any() else score[np.isfinite(score)]  # the scale is that of candidates
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    image = ax.imshow(np.ma.masked_invalid(score), cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for point in result.points:
        row, column = costs.index(point.move_cost), temperatures.index(point.tau)
        value = result.score(point)
        text = f"{value:.4f}" if np.isfinite(value) else "–"
        if not point.usable:
            cell = {"facecolor": "#eeeeee", "edgecolor": "#888888", "hatch": "////", "linewidth": 0}
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **cell))  # type: ignore[arg-type]
        if point == result.chosen:
            ax.add_patch(Rectangle((column - 0.47, row - 0.46), 0.94, 0.92, fill=False, ec=PAPER, lw=3))
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "boxstyle": "round,pad=0.25"}
        ax.text(column, row, text, ha="center", va="center", fontsize=9, color=INK, bbox=behind, zorder=4)
    paper = result.at(*PAPER_CHOICE)
    if paper is not None:
        row, column = costs.index(paper.move_cost), temperatures.index(paper.tau)
        ax.plot(column + 0.38, row - 0.34, "D", color=PAPER, ms=6, mec="white", zorder=5)
    ax.set_xticks(range(len(temperatures)), [f"{tau:g}" for tau in temperatures])
    ax.set_yticks(range(len(costs)), [f"{cost:g}" for cost in costs])
    ax.set_xlabel("Bellman temperature τ")
    ax.set_ylabel("move cost")
    ax.tick_params(length=0)
    said = "log-likelihood per choice (nats)" if result.by == "likelihood" else "AUC"
    if ax.figure is not None:
        ax.figure.colorbar(image, ax=ax, label=said)
    ax.set_title("hatched: degenerate · frame: chosen · diamond: paper", fontsize=8, color=INK)
    return ax
