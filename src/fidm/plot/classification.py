"""Pictures of a classification: scores with intervals, ROC curves, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from scipy.special import logit

from fidm.errors import DataError
from fidm.study.calibrating import at_prevalence
from fidm.study.classified import KINDS, Classification, Metric, Part, Setting, in_words
from fidm.study.wording import METRICS, PARTS, SETTINGS, featured, percent, span

INK, QUIET, RULE, PAPER = "#222222", "#777777", "#e6e6e6", "#D55E00"
Line = str | tuple[float, tuple[float, ...]]
FIDM: tuple[str, Line, str] = ("#0072B2", "-", "o")
FUSION: tuple[str, Line, str] = ("#D55E00", "--", "s")
OTHERS: tuple[tuple[str, Line, str], ...] = (
    ("#333333", (0, (1, 1)), "^"),
    ("#009E73", "-.", "D"),
    ("#AA4499", (0, (5, 1, 1, 1, 1, 1)), "v"),
    ("#E69F00", (0, (8, 2)), "P"),
    ("#56B4E9", (0, (3, 3)), "X"),
)
"""A colour (most of them Okabe and Ito's), a line and a marker per curve: they differ in grey too."""

PART_STYLES = {"cv": ("#0072B2", "o", "#0072B2"), "held-out": ("#333333", "s", "white")}
"""The colour, the marker and the filling of each part."""

MOST_CURVES = len(OTHERS)
"""How many curves one panel holds."""


def classification_bars(
    result: Classification, *, setting: Setting = "binary", metric: Metric = "auc", ax: Axes | None = None
) -> Axes:
    """Draw how well every representation tells people's status, with 95 % intervals.

    Dots are cross-validation, squares the held-out part, orange diamonds what the paper reports of its own
    data; the dashed line is chance.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    setting : {"binary", "multiclass"}
        Healthy against all others, or all classes.
    metric : {"auc", "balanced_accuracy"}
        Which score.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    rows = result.scores.filter(setting=setting, metric=metric)
    if not rows.height:
        raise DataError(f"There are no scores of the setting {setting!r} and the metric {metric!r} to draw.")
    ticks = _layout(result, rows)
    if ax is None:
        ax = Figure(figsize=(6.4, 1.2 + 0.3 * len(ticks)), layout="constrained").add_subplot()
    place = {name: at for at, name, is_heading in ticks if not is_heading}
    parts = [part for part in PART_STYLES if part in set(rows["part"])]
    for i, part in enumerate(parts):
        colour, marker, filling = PART_STYLES[part]
        shift = 0.16 * (2 * i - len(parts) + 1)
        for row in rows.filter(part=part).iter_rows(named=True):
            at = place[row["representation"]] + shift
            if row["low"] is not None and row["high"] is not None:
                ax.hlines(at, row["low"], row["high"], color=colour, lw=1.6, zorder=3)
            ax.plot(row["value"], at, marker, ms=5.2, color=colour, mfc=filling, mew=1.3, zorder=4)
            if row["paper"] is not None:
                ax.plot(row["paper"], at, "D", ms=4.2, mfc="none", mec=PAPER, mew=1.2, zorder=5)
    for name, kind in rows.select("representation", "kind").unique().iter_rows():
        if kind == "fidm":
            ax.axhspan(place[name] - 0.45, place[name] + 0.45, color="#f1f1f1", zorder=0, lw=0)
    chance = 0.5 if metric == "auc" or setting == "binary" else 1 / len(result.classes)
    ax.axvline(chance, color=INK, lw=0.8, ls="--", zorder=2)
    ax.text(chance, ticks[0][0] - 0.75, "chance", ha="center", va="bottom", fontsize=7, color=INK)
    ax.set_yticks(
        [at for at, _, _ in ticks], [_tick(name, is_heading, rows) for _, name, is_heading in ticks]
    )
    for label, (_, _, is_heading) in zip(ax.get_yticklabels(), ticks, strict=False):
        label.set(color=QUIET if is_heading else INK, fontsize=7.5 if is_heading else 8.5)
        label.set_fontstyle("italic" if is_heading else "normal")
    ax.set_ylim(ticks[-1][0] + 0.6, ticks[0][0] - 0.7)
    ax.set_xlim(*_limits(rows, chance))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=None))
    ax.set_xlabel(f"{METRICS[metric]} (%), 95 % interval", fontsize=8.5)
    ax.set_title(SETTINGS[setting], fontsize=9.5, loc="left", pad=16)
    ax.grid(axis="x", color=RULE, lw=0.7, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    handles = [_part_handle(part) for part in parts]
    if rows["paper"].count():
        handles.append(
            Line2D([], [], ls="none", marker="D", ms=4.6, mfc="none", mec=PAPER, mew=1.2, label="paper")
        )
    ax.legend(
        handles=handles, frameon=False, fontsize=7.5, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.1, handletextpad=0.3, columnspacing=1.0,
    )  # fmt: skip
    return ax


def roc_curves(
    result: Classification,
    *,
    part: Part = "cv",
    representations: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw at most five ROC curves, each with its area and interval.

    In cross-validation the curve is that of everybody's predictions in one repetition, while the area is the
    mean over folds and repetitions, as in the tables; the two need not agree to the last digit.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    part : {"cv", "held-out"}
        Whose predictions.
    representations : sequence of str, optional
        Whose curves; by default a clinical, a behavioural and a language baseline, FIDM and a combination.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    names = _chosen(result, part, representations, most=MOST_CURVES, table=result.roc)
    if ax is None:
        ax = Figure(figsize=(4.6, 4.7), layout="constrained").add_subplot()
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    styles = _styles(names)
    for name, (colour, line, _) in zip(names, styles, strict=True):
        points = result.roc.filter(part=part, representation=name)
        ax.plot(
            points["false_positive_rate"], points["sensitivity"], color=colour, ls=line,
            lw=2.3 if name == "fidm" else 1.6, zorder=4 if name == "fidm" else 3,
            label=_area_words(result, name, part),
        )  # fmt: skip
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set_xlabel("1 − specificity", fontsize=8.5)
    ax.set_ylabel("sensitivity", fontsize=8.5)
    _quiet(ax)
    legend = ax.legend(
        frameon=True, framealpha=0.85, edgecolor="none", fontsize=7.5, loc="lower right", handlelength=2.6,
        title="AUC, 95 % interval", title_fontsize=7.5, alignment="left", borderaxespad=0.3,
    )  # fmt: skip
    for text, (colour, _, _) in zip(legend.get_texts(), styles, strict=True):
        text.set_color(colour)
    ax.set_title(_part_words(result, part), fontsize=9.5, loc="left")
    return ax


def calibration_curve(
    result: Classification,
    *,
    part: Part = "cv",
    representations: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw observed against predicted shares of cases, with the spread of predictions below.

    Both are at the prevalence of the training part. Whiskers are 95 % intervals (Wilson). A slope below 1
    means predictions that are too extreme, an intercept above 0 predictions that are too low.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.study.classifying.classify` gave.
    part : {"cv", "held-out"}
        Whose predictions.
    representations : sequence of str, optional
        Whose curves, at most five; by default FIDM's and a combination's.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    names = _chosen(result, part, representations, most=2, table=result.calibration)
    if ax is None:
        ax = Figure(figsize=(4.4, 5.0), layout="constrained").add_subplot()
    strip = ax.inset_axes((0.0, 0.0, 1.0, 0.14), sharex=ax)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    for i, (name, (colour, line, marker)) in enumerate(zip(names, _styles(names), strict=True)):
        bins = (
            result.calibration.filter(part=part, representation=name).drop_nulls("observed").sort("predicted")
        )
        x = bins["predicted"].to_numpy() + 0.006 * (i - (len(names) - 1) / 2)
        ax.vlines(
            x, bins["low"].to_numpy(), bins["high"].to_numpy(), color=colour, lw=1.1, alpha=0.75, zorder=2
        )
        ax.plot(
            x, bins["observed"].to_numpy(), color=colour, ls=line, lw=1.5, marker=marker, ms=5, zorder=3,
            mfc=colour if i % 2 == 0 else "white", mew=1.3, label=_calibration_words(result, name, part),
        )  # fmt: skip
        strip.hist(
            _at_prevalence(result, name, part),
            bins=np.linspace(0, 1, 26).tolist(),
            histtype="step",
            color=colour,
            ls=line,
            lw=1.3,
        )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.22, 1.02), aspect="equal")
    ax.set_xlabel("predicted share of cases (below: how many people)", fontsize=8.5)
    ax.set_ylabel("observed share of cases", fontsize=8.5)
    _quiet(ax)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.spines["left"].set_bounds(0, 1)
    strip.set_axis_off()
    ax.legend(
        framealpha=0.85, edgecolor="none", fontsize=7.5, loc="upper left", handlelength=2.8, borderaxespad=0.2
    )
    ax.set_title(_part_words(result, part), fontsize=9.5, loc="left")
    return ax


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


def _limits(rows: pl.DataFrame, chance: float) -> tuple[float, float]:
    """From a little below the lowest thing shown to a little above the highest."""
    seen = [
        v for name in ("value", "low", "high", "paper") for v in rows[name].drop_nulls().drop_nans().to_list()
    ]
    return max(-0.01, min(*seen, chance) - 0.02), min(1.01, max(*seen, chance) + 0.02)


def _part_handle(part: str) -> Line2D:
    colour, marker, filling = PART_STYLES[part]
    return Line2D(
        [], [], color=colour, marker=marker, mfc=filling, ms=5.2, mew=1.3, lw=1.6, label=PARTS[part]
    )


def _chosen(
    result: Classification, part: str, names: Sequence[str] | None, *, most: int, table: pl.DataFrame
) -> tuple[str, ...]:
    """The representations to draw: those asked for, or the usual ones."""
    known = set(table.filter(part=part)["representation"])
    if names is None:
        found = tuple(name for name in featured(result, most=most) if name in known)
    else:
        found = tuple(dict.fromkeys(names))
        if len(found) > MOST_CURVES:
            raise DataError(f"A panel holds {MOST_CURVES} curves, and {len(found)} are asked for.")
    strange = [name for name in found if name not in known]
    if strange or not found:
        what = f"of {', '.join(map(repr, strange))} " if strange else ""
        listed = ", ".join(name for name in result.representations if name in known)
        raise DataError(
            f"There is nothing {what}to draw in the part {part!r}."
            + (f" There are: {listed}." if listed else "")
        )
    return found


def _styles(names: Sequence[str]) -> list[tuple[str, Line, str]]:
    """A style per curve: FIDM's and the first combination's are always the same."""
    found, rest, has_fusion = [], iter(OTHERS), False
    for name in names:
        is_first = not has_fusion and name.endswith("+fidm")
        has_fusion = has_fusion or is_first
        found.append(FIDM if name == "fidm" else FUSION if is_first else next(rest))
    return found


def _area_words(result: Classification, name: str, part: Part) -> str:
    row = result.score(name, part=part)
    if row is None:
        return in_words(name)
    return f"{in_words(name)}  {percent(row['value'])} ({span(row['low'], row['high'])})"


def _calibration_words(result: Classification, name: str, part: str) -> str:
    rows = result.calibration_summary.filter(part=part, representation=name)
    if not rows.height or rows["slope"][0] is None or rows["intercept"][0] is None:
        return in_words(name)
    row = rows.row(0, named=True)
    return f"{in_words(name)}: slope {row['slope']:.2f}, intercept {row['intercept']:+.2f}"


def _at_prevalence(result: Classification, name: str, part: str) -> NDArray[np.float64]:
    """People's probabilities as the curve has them: at the prevalence of the training part."""
    given = result.predictions.filter(setting="binary", part=part, representation=name)["probability"]
    healthy, *ill = (counts.get("train", 0) for counts in result.flow.classes.values())
    return at_prevalence(logit(given.to_numpy()), healthy, sum(ill))


def _part_words(result: Classification, part: str) -> str:
    n = result.flow.n("train" if part == "cv" else part)
    return f"{PARTS[part]}, {n:,} people"


def _quiet(ax: Axes) -> None:
    ax.grid(color=RULE, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
