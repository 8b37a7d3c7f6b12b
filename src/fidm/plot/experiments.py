"""Pictures of experiments: recovery, calibration, matched pairs (figures 3 and 4), settings, groups."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from fidm.channels import channel_words, parameter_words
from fidm.experiments.calibrate import Calibration, band
from fidm.experiments.comparison import Comparison
from fidm.experiments.families import Families
from fidm.experiments.learning import Learning
from fidm.experiments.matched import FEATURES, MATCHED, PLAIN, Matched
from fidm.experiments.recover import Recovery, as_printed, label_of
from fidm.experiments.reliability import Reliability
from fidm.experiments.select import PAPER_CHOICE, Point, Selection
from fidm.fit.profile import SENSITIVITY
from fidm.plot.style import INK, LOOKS, QUIET, new_axes, plain, plain_ticks, quieten
from fidm.present.numbers import METHODS
from fidm.types import Floats

COLOURS = {"split-half": "#0072B2", "retest": "#D55E00", "model": "#009E73"}
"""Colours of the kinds of reliability (Okabe and Ito)."""

MARKERS: dict[str, tuple[str, Literal["-", "--", ":"]]] = {
    "split-half": ("o", "-"),
    "retest": ("s", "--"),
    "model": ("^", ":"),
}
"""The marker and the line of each kind, so that they differ without colour too."""

MAP = "cividis"


def recovery(result: Recovery, *, method: str = "", scale: str = "log") -> Figure:
    """Draw a heat map per condition: rows are manipulated factors, columns recovered parameters.

    Parameters
    ----------
    result : Recovery
        What :func:`fidm.experiments.recover.recover` gives.
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
    how = METHODS[method or result.methods[0]]
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
    ax = ax or new_axes(3.4, 3.1)
    matrix = result.matrix(condition, method=method, scale=scale)
    names = ["η" if name == SENSITIVITY else channel_words(name).name for name in result.factors]
    if scale == "log":
        names[0] = f"log {names[0]}"
    ax.imshow(np.abs(matrix), vmin=0, vmax=1, cmap=MAP)
    for (i, j), value in np.ndenumerate(matrix):
        colour = INK if math.isfinite(value) and abs(value) > 0.6 else "white"
        colour = colour if math.isfinite(value) else INK
        ax.text(j, i, as_printed(value), ha="center", va="center", fontsize=7.5, color=colour)
    for axis in (ax.xaxis, ax.yaxis):
        plain_ticks(axis, list(range(len(names))), names, size=8)
    for label in ax.get_xticklabels():
        label.set(rotation=35, ha="right")
    ax.tick_params(length=0)
    ax.set_xlabel("recovered", fontsize=8.5)
    ax.set_ylabel("manipulated", fontsize=8.5)
    return ax


def rank_differences(result: Calibration) -> Figure:
    """Draw by how much the distribution function of ranks differs from that of a uniform, with a band.

    One panel per parameter. A line that stays in the band is what 95 % of calibrated posteriors give.
    Intervals that are too short push it up on the left and down on the right, those that are too long the
    other way round; estimates that are too high push it up everywhere, those that are too low down.

    Parameters
    ----------
    result : Calibration
        What :func:`fidm.experiments.calibrate.calibrate` gives.
    """
    rows = list(result.parameters.iter_rows(named=True))
    figure = Figure(figsize=(0.7 + 1.9 * len(rows), 2.4), layout="constrained")
    panels = figure.subplots(1, len(rows), squeeze=False, sharey=True)[0]
    places = np.arange(1, result.n_draws + 1) / (result.n_draws + 1)
    for ax, row in zip(panels, rows, strict=True):
        ranks = np.sort(result.chosen(row["parameter"]))
        below = np.searchsorted(ranks, np.arange(result.n_draws), side="right") / len(ranks)
        low, high = band(len(ranks), result.n_draws)
        ax.fill_between(places, low - places, high - places, color="#dddddd", lw=0, step="mid", zorder=1)
        ax.axhline(0, color=QUIET, lw=0.9, zorder=2)
        ax.step(places, below - places, where="mid", color=LOOKS[0].colour, lw=1.3, zorder=3)
        ax.set_title(label_of(row["parameter"]), fontsize=8.5)
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        quieten(ax)
    panels[0].set_ylabel("ECDF of ranks − uniform", fontsize=8)
    figure.supxlabel(
        f"rank of the truth among {result.n_draws} draws, {result.n_studies} studies", fontsize=8
    )
    return figure


def reliability(result: Reliability, *, ax: Axes | None = None) -> Axes:
    """Draw each parameter's reliability as dots with 95 % intervals, a colour per kind.

    Parameters
    ----------
    result : Reliability
        What :func:`fidm.experiments.reliability.reliability` gives.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    names = list(result.parameters)
    ax = ax or new_axes(5.2, 0.9 + 0.5 * len(names))
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


MOST_CURVES = 60
"""Curves of more people are not drawn one by one."""


def learning_curve(result: Learning, *, ax: Axes | None = None) -> Axes:
    """Draw η over blocks: everybody's own line, and the group's mean with its interval.

    Where there are too few people for lines, everybody's single blocks are joined instead.

    Parameters
    ----------
    result : Learning
        What :func:`fidm.study.learning` gives.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(5.4, 3.6)
    value = "line" if result.trend.height else "action_sensitivity"
    own = result.people.filter(pl.col(value).is_finite() & (pl.col(value) > 0))
    curves = own.partition_by("participant", maintain_order=True)
    for curve in curves if len(curves) <= MOST_CURVES else ():
        ax.plot(curve["at"], curve[value], ".-", color=QUIET, lw=0.7, ms=2, alpha=0.55, zorder=1)
    group, look = result.group.drop_nulls("action_sensitivity"), LOOKS[0]
    ax.vlines(group["at"], group["low"], group["high"], color=look.colour, linewidth=1.6, zorder=3)
    ax.plot(
        group["at"], group["action_sensitivity"], f"{look.marker}-", color=look.colour, ms=5.5, lw=1.6,
        label=f"all people, {result.level:.0%} interval", zorder=4,
    )  # fmt: skip
    ax.set_yscale("log")
    ticks = FuncFormatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_major_formatter(ticks)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("action sensitivity η")
    ax.set_xlabel(f"block ({result.by})" if result.unit == "block" != result.by else result.by)
    plain(ax.xaxis.label)
    if result.group.height <= MOST_NAMES:
        plain_ticks(ax.xaxis, result.group["at"].to_list(), result.group["block"].to_list())
    if group.height:
        ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    quieten(ax)
    return ax


MOST_NAMES = 12
"""More blocks than these are not named one by one."""

WIDEST_LEGEND = 60
"""How many characters of a legend stand in one line."""


def forest(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw how many times as high each parameter is in one group as in another, with intervals.

    Parameters
    ----------
    result : Comparison
        What :func:`fidm.compare` gives.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    table = result.table
    names, contrasts = (table[name].unique(maintain_order=True) for name in ("parameter", "contrast"))
    ax = ax or new_axes(5.2, 0.9 + 0.35 * table.height)
    for k, contrast in enumerate(contrasts):
        rows = table.filter(contrast=contrast)
        height = [
            names.to_list().index(name) + 0.5 * (k + 0.5) / len(contrasts) - 0.25
            for name in rows["parameter"]
        ]
        look = LOOKS[k % len(LOOKS)]
        ax.hlines(height, rows["factor_low"], rows["factor_high"], color=look.colour, linewidth=1.4)
        ax.plot(rows["factor"], height, look.marker, color=look.colour, ms=5.5, label=contrast, zorder=3)
    plain_ticks(ax.yaxis, list(range(len(names))), [parameter_words(name) for name in names], size=9)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    plain_ticks(ax.xaxis, *_factors(min(low, 1 / 1.2), max(high, 1.2)))
    ax.minorticks_off()
    ax.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
    ax.set_xlabel(f"factor, {result.level:.0%} interval")
    ax.spines[["top", "right"]].set_visible(False)
    columns = max(1, WIDEST_LEGEND // max(len(name) + 6 for name in contrasts))
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    return ax


def _factors(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of factors, and their labels: so many that labels do not touch."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.1, 1.2, 1.5, 2, 3, 5, 7, 8, 9), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**power for power in decades for step in steps]
        kept = [value for value in found if low <= value <= high]
        if len(kept) <= MOST_FACTORS:
            break
    kept = kept[:: -(-len(kept) // MOST_FACTORS)]
    return kept, [f"{value:g}" for value in kept]


MOST_FACTORS = 8
"""How many ticks an axis of factors has room for."""

PAPER = "#D55E00"

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
        What :func:`fidm.experiments.matched.matched` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(6.4, 3.2)
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
    ax.plot(paper[known], place[known], "D", color="none", ms=8, mec=PAPER, mew=1.4, zorder=4, clip_on=False)
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
    """Draw the grid of settings: scores, degenerate points hatched, the choice framed; a row per discount.

    Parameters
    ----------
    result : Selection
        What :func:`fidm.experiments.select.select` gave.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    places = [_row_words(result, point) for point in result.points]
    rows = list(dict.fromkeys(places))
    ax = ax or new_axes(6.0, max(3.4, 1.2 + 0.4 * len(rows)))
    temperatures = list(dict.fromkeys(point.tau for point in result.points))
    score = np.array([result.score(point) for point in result.points]).reshape(len(rows), len(temperatures))
    usable = np.array([point.usable for point in result.points]).reshape(score.shape)
    shown = score[usable] if usable.any() else score[np.isfinite(score)]  # the scale is that of candidates
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    image = ax.imshow(np.ma.masked_invalid(score), cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for point, place in zip(result.points, places, strict=True):
        row, column = rows.index(place), temperatures.index(point.tau)
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
        row, column = rows.index(_row_words(result, paper)), temperatures.index(paper.tau)
        ax.plot(column + 0.38, row - 0.34, "D", color=PAPER, ms=6, mec="white", zorder=5)
    ax.set_xticks(range(len(temperatures)), [f"{tau:g}" for tau in temperatures])
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel("Bellman temperature τ")
    ax.set_ylabel("γ, move cost" if result.varies_gamma else "move cost")
    ax.tick_params(length=0)
    said = "log-likelihood per choice (nats)" if result.by == "likelihood" else "AUC"
    if ax.figure is not None:
        ax.figure.colorbar(image, ax=ax, label=said)
    ax.set_title("hatched: degenerate · frame: chosen · diamond: paper", fontsize=8, color=INK)
    return ax


def _row_words(result: Selection, point: Point) -> str:
    """What a row of the grid is called: its discount, where several are tried, and its move cost."""
    cost = "–" if np.isnan(point.move_cost) else f"{point.move_cost:g}"
    return f"{point.gamma:g}, {cost}" if result.varies_gamma else cost


MOST_POINTS = 400
"""More residuals than this are thinned out, evenly along the axis, so that the few in the tails all stay."""


NARROWEST = 5e-4
"""An axis of differences reaches at least this far, so that rounding does not look like evidence."""


def family_differences(
    result: Families, observable: str, ax: Axes | None = None, *, matters: float = 0.0
) -> Axes:
    """Draw how much better or worse than the reference each family predicts people left out.

    Parameters
    ----------
    result : Families
        What :func:`fidm.experiments.families.compare_families` found.
    observable : str
        Which observation.
    ax : Axes, optional
        Where to draw; a new figure if left out.
    matters : float
        Differences smaller than this are not filled, however sure they are.
    """
    rows = result.of(observable)
    ax = ax or new_axes(5.2, 1.1 + 0.38 * len(rows))
    ax.axvline(0, color=QUIET, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for place, row in enumerate(rows):
        at = len(rows) - 1 - place
        if row["is_reference"]:
            ax.plot(0, at, "D", color=INK, ms=6, mfc="white", zorder=3)
            continue
        sure = row["beyond_chance"] != 0 and abs(row["difference"]) >= matters
        colour = LOOKS[0].colour if row["difference"] > 0 else LOOKS[1].colour
        ax.plot([row["low"], row["high"]], [at, at], color=colour, lw=2, solid_capstyle="butt", zorder=2)
        marker = "^" if row["difference"] > 0 else "v"
        ax.plot(row["difference"], at, marker, color=colour, ms=7, mfc=colour if sure else "white", zorder=3)
    ax.set_yticks(range(len(rows)), [row["family"] for row in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    left, right = ax.get_xlim()
    if max(-left, right) < NARROWEST:
        ax.set_xlim(-NARROWEST, NARROWEST)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}")))
    ax.set_xlabel(
        f"held-out log-likelihood per observation, against {rows[0]['family']}\n"
        "(filled: beyond chance; bars: 95 % interval)",
        fontsize=8,
    )
    ax.set_title(f"{observable}: right is better", fontsize=9, loc="left")
    quieten(ax)
    return ax


def quantile_plot(result: Families, observable: str, family: str, ax: Axes | None = None) -> Axes:
    """Draw quantile residuals against those of a normal distribution, with the band of chance.

    Parameters
    ----------
    result, observable, ax
        As in :func:`family_differences`.
    family : str
        Which family.
    """
    expected, residual, low, high = _residuals(result, observable, family)
    ax = ax or new_axes(3.6, 3.4)
    ends = np.array([expected[0], expected[-1]])
    ax.fill_between(expected, low, high, color="#dddddd", lw=0, zorder=1)
    ax.plot(ends, ends, color=QUIET, lw=0.9, zorder=2)
    ax.plot(expected, residual, "o", color=LOOKS[0].colour, ms=2.6, zorder=3)
    ax.set_xlabel("residual expected of a normal distribution", fontsize=8)
    ax.set_ylabel("quantile residual", fontsize=8)
    ax.set_title(f"{observable}: {family}", fontsize=9, loc="left")
    quieten(ax)
    return ax


def worm_plot(result: Families, observable: str, ax: Axes | None = None) -> Axes:
    """Draw how far quantile residuals of every family lie from normal ones, with the band of chance.

    A flat worm inside the band is a family that fits. One that slopes up has too little spread; one bent like
    a U or its reverse has the wrong skewness, and one like an S the wrong tails.

    Parameters
    ----------
    result, observable, ax
        As in :func:`family_differences`.
    """
    rows = result.of(observable)
    ax = ax or new_axes(5.6, 3.4)
    for i, row in enumerate(rows):
        look = LOOKS[i % len(LOOKS)]
        expected, residual, low, high = _residuals(result, observable, row["family"])
        if not i:
            ax.fill_between(expected, low - expected, high - expected, color="#dddddd", lw=0, zorder=1)
        ax.plot(
            expected, residual - expected, color=look.colour, ls=look.line, lw=1.4, marker=look.marker,
            markevery=max(1, len(expected) // 12), ms=4, label=row["family"], zorder=3,
        )  # fmt: skip
    ax.axhline(0, color=QUIET, lw=0.9, zorder=2)
    ax.set_xlabel("residual expected of a normal distribution", fontsize=8)
    ax.set_ylabel("quantile residual minus expected", fontsize=8)
    ax.set_title(f"{observable}: a family that fits stays in the band", fontsize=9, loc="left")
    ax.legend(fontsize=7, frameon=False)
    quieten(ax)
    return ax


def _residuals(result: Families, observable: str, family: str) -> tuple[Floats, Floats, Floats, Floats]:
    """What to draw of a family's residuals: expected, found, and the band of chance."""
    result.row(observable, family)  # says which there are
    table = result.residuals.filter((pl.col("observable") == observable) & (pl.col("family") == family))
    at = table["expected"].to_numpy()
    places = np.arange(len(at))
    if len(at) > MOST_POINTS:
        places = np.unique(np.searchsorted(at, np.linspace(at[0], at[-1], MOST_POINTS)))
    expected, residual, low, high = (
        table[name].to_numpy()[places] for name in ("expected", "residual", "low", "high")
    )
    return expected, residual, low, high
