"""Pictures of a classification: scores with their intervals, ROC curves, and calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TypeGuard, get_args

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from scipy.special import logit

from fidm.classify.calibration import at_prevalence
from fidm.classify.result import KINDS, Classification, Metric, Part, Setting, in_words
from fidm.errors import DataError
from fidm.plot.style import INK, RULE, Look, new_axes, plain, plain_ticks, quieten
from fidm.present.findings import METRICS, PARTS, featured
from fidm.present.numbers import percent, span

QUIET, PAPER = "#777777", "#D55E00"


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
        What :func:`fidm.classify.classify.classify` gave.
    setting : {"binary", "multiclass"}
        Healthy against all others, or all classes.
    metric : {"auc", "balanced_accuracy"}
        Which score.
    legend : bool
        Whether to draw the legend; a figure of several panels needs only one (:func:`bar_handles`).
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    rows = result.scores.filter(setting=setting, metric=metric)
    if not rows.height:
        metrics = result.scores["metric"].unique(maintain_order=True)
        raise DataError(
            f"There are no scores of the setting {setting!r} and the metric {metric!r} to draw. "
            f"There are the settings: {', '.join(result.settings)}; and the metrics: {', '.join(metrics)}."
        )
    ticks = _layout(result, rows)
    ax = ax or new_axes(6.4, 1.2 + 0.32 * len(ticks))
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

    ``setting`` and ``metric`` are what is shown; all of it by default.

    Examples
    --------
    ``figure.legend(handles=bar_handles(result), loc="outside upper right", ncols=4, frameon=False)``
    """
    rows = result.scores
    if setting is not None:
        rows = rows.filter(setting=setting)
    if metric is not None:
        rows = rows.filter(metric=metric)
    handles = [
        Line2D([], [], color=colour, marker=marker, mfc=filling, ms=5.2, mew=1.3, lw=1.6, label=PARTS[part])
        for part, (colour, marker, filling) in PART_STYLES.items()
        if part in _parts(rows)
    ]
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


LOOKS = {
    "score": Look("#222222", (0, (1, 1.6)), "^"),
    "fidm": Look("#0072B2", "-", "o"),
    "score+fidm": Look("#E69F00", (0, (6, 2.2)), "s", is_filled=False),
}
"""How those are drawn that every picture shows: in grey they are dark, middling and light."""


OTHERS = (
    Look("#009E73", (0, (7, 2, 1.5, 2)), "D"),
    Look("#882255", (0, (9, 2, 3, 2)), "v", is_filled=False),
    Look("#56B4E9", (0, (12, 3)), "P"),
    Look("#AA4499", (0, (4, 1.5, 1, 1.5, 1, 1.5)), "D", is_filled=False),
    Look("#D55E00", (0, (3, 3)), "X"),
)
"""How the others are drawn, by their place in the result."""


MOST_CURVES = len(OTHERS)
"""How many curves one panel holds."""


FEWEST_JOINED = 50
"""Calibration of fewer people than this is shown as points: a line between them would be mostly noise."""


def roc_curves(
    result: Classification,
    *,
    part: Part = "cv",
    representations: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw ROC curves, each with its area and interval.

    In cross-validation the curve is that of everybody's predictions in the first repetition, while the area
    is the mean over folds and repetitions, as in the tables; the two need not agree to the last digit.

    Parameters
    ----------
    result : Classification
        What :func:`fidm.classify.classify.classify` gave.
    part : {"cv", "held-out"}
        Whose predictions.
    representations : sequence of str, optional
        Whose curves, at most five; by default the score's, FIDM's and those of both together.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    names = _chosen(result, part, representations, most=3, table=result.roc)
    ax = ax or new_axes(4.6, 4.7)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    for name, look in _looks(result, names).items():
        points = result.roc.filter(part=part, representation=name)
        ax.plot(
            points["false_positive_rate"], points["sensitivity"], color=look.colour, ls=look.line, lw=2.0,
            zorder=4 if name == "fidm" else 3, label=_area_words(result, name, part),
        )  # fmt: skip
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set_xlabel("1 − specificity", fontsize=8.5)
    ax.set_ylabel("sensitivity", fontsize=8.5)
    quieten(ax)
    ax.legend(
        frameon=True, framealpha=0.85, edgecolor="none", fontsize=7.5, loc="lower right", handlelength=3.6,
        title="AUC (%), 95 % interval", title_fontsize=7.5, alignment="left", borderaxespad=0.3,
        labelcolor="black",
    )  # fmt: skip
    _plain_entries(ax)
    is_one_of_many = part == "cv" and result.record.settings.get("repeats") != 1
    said = " (curve: first repetition)" if is_one_of_many else ""
    ax.set_title(_part_words(result, part) + said, fontsize=9.5, loc="left")
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
    means predictions that are too extreme, an intercept above 0 predictions that are too low. Points of fewer
    than 50 people are not joined. The number beside the spread is how many people its highest step has.

    Parameters
    ----------
    result, part, ax
        As in :func:`roc_curves`.
    representations : sequence of str, optional
        Whose curves, at most five; by default FIDM's and a combination's.
    """
    names = _chosen(result, part, representations, most=2, table=result.calibration)
    ax = ax or new_axes(4.4, 5.0)
    strip = ax.inset_axes((0.0, 0.0, 1.0, 0.14), sharex=ax)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", lw=0.9, ls=(0, (2, 2)), zorder=1)
    most = 0
    for i, (name, look) in enumerate(_looks(result, names).items()):
        bins = (
            result.calibration.filter(part=part, representation=name).drop_nulls("observed").sort("predicted")
        )
        x = bins["predicted"].to_numpy() + 0.006 * (i - (len(names) - 1) / 2)
        low, high = bins["low"].to_numpy(), bins["high"].to_numpy()
        ax.vlines(x, low, high, color=look.colour, lw=1.1, alpha=0.9, zorder=2)
        ax.plot(
            x, bins["observed"].to_numpy(), color=look.colour, lw=1.5, marker=look.marker, ms=5, zorder=3,
            ls=look.line if bins["n"].sum() >= FEWEST_JOINED else "none",
            mfc=look.colour if look.is_filled else "white", mew=1.3,
            label=_calibration_words(result, name, part),
        )  # fmt: skip
        counts, _, _ = strip.hist(
            _at_prevalence(result, name, part), bins=np.linspace(0, 1, 26).tolist(), histtype="step",
            color=look.colour, ls=look.line, lw=1.3,
        )  # fmt: skip
        most = max(most, int(np.max(counts)))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.22, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability (at the training part's prevalence)", fontsize=8.5)
    ax.set_ylabel("observed share of cases", fontsize=8.5)
    quieten(ax)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.spines["left"].set_bounds(0, 1)
    strip.patch.set_visible(False)
    strip.spines[["top", "right", "bottom"]].set_visible(False)
    strip.xaxis.set_visible(False)
    strip.set(ylim=(0, 1.06 * max(most, 1)), yticks=[most])
    strip.tick_params(labelsize=7.5, length=2.5)
    strip.set_ylabel("people", fontsize=7.5)
    ax.legend(
        frameon=False, fontsize=7.5, loc="lower left", bbox_to_anchor=(0.0, 1.0), handlelength=3.6,
        borderaxespad=0.2, borderpad=0.2,
    )  # fmt: skip
    _plain_entries(ax)
    ax.set_title(_part_words(result, part), fontsize=9.5, loc="left", pad=8 + 12 * len(names))
    return ax


def _plain_entries(ax: Axes) -> None:
    """Names in the legend as they stand: representations may be named after a column of the study."""
    legend = ax.get_legend()
    for text in legend.get_texts() if legend is not None else []:
        plain(text)


def _chosen(
    result: Classification, part: str, names: Sequence[str] | None, *, most: int, table: pl.DataFrame
) -> tuple[str, ...]:
    """The representations to draw: those asked for, or the usual ones."""
    known = set(table.filter(part=part)["representation"])
    if not known and table.height:
        parts = ", ".join(table["part"].unique(maintain_order=True))
        raise DataError(f"There is nothing to draw in the part {part!r}. There are the parts: {parts}.")
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


def _looks(result: Classification, names: Sequence[str]) -> dict[str, Look]:
    """A look per representation, whatever else is drawn and in whatever order it is asked for."""
    others = [name for name in result.representations if name not in LOOKS]
    found, free = {name: LOOKS[name] for name in names if name in LOOKS}, list(OTHERS)
    for i, name in enumerate(others):
        if name in names:
            own = OTHERS[i % len(OTHERS)]
            found[name] = own if own in free else free[0]  # two that would look the same are told apart
            free.remove(found[name])
    return {name: found[name] for name in names}


def _area_words(result: Classification, name: str, part: Part) -> str:
    row = result.score(name, part=part)
    if row is None:
        return in_words(name)
    return f"{in_words(name)}  {percent(row['value'])} ({span(row['low'], row['high'])})"


def _calibration_words(result: Classification, name: str, part: str) -> str:
    """The name with the slope and the intercept, as far as they are known."""
    rows = result.calibration_summary.filter(part=part, representation=name)
    row = rows.row(0, named=True) if rows.height else {}
    forms = {"slope": ".2f", "intercept": "+.2f"}
    said = [f"{what} {row[what]:{form}}" for what, form in forms.items() if is_known(row.get(what))]
    return f"{in_words(name)}: {', '.join(said).replace('-', '−')}" if said else in_words(name)


def _at_prevalence(result: Classification, name: str, part: str) -> NDArray[np.float64]:
    """People's probabilities as the curve has them: at the prevalence of the training part."""
    given = result.predictions.filter(setting="binary", part=part, representation=name)["probability"]
    healthy, *ill = (counts.get("train", 0) for counts in result.flow.classes.values())
    return at_prevalence(logit(given.to_numpy()), healthy, sum(ill))


def _part_words(result: Classification, part: str) -> str:
    n = result.flow.n("train" if part == "cv" else part)
    return f"{PARTS[part]}, {n:,} people"


def classification_figures(found: Classification) -> dict[str, Figure]:
    """Return the figures by the names of their files: scores, ROC curves and calibration."""
    settings: list[Setting] = [one for one in get_args(Setting) if one in found.settings]
    metrics: tuple[Metric, ...] = get_args(Metric)
    n = len(found.representations) + 0.8 * len(set(found.scores["kind"]))
    bars = Figure(figsize=(2.2 + 4.4 * len(settings), 0.3 + 2 * (0.9 + 0.31 * n)), layout="constrained")
    panels = bars.subplots(len(metrics), len(settings), squeeze=False, sharex="row")
    for axes, metric in zip(panels, metrics, strict=True):
        for i, (ax, setting) in enumerate(zip(axes, settings, strict=True)):
            classification_bars(found, setting=setting, metric=metric, legend=False, ax=ax)
            ax.tick_params(labelleft=i == 0)
    bars.legend(handles=bar_handles(found), loc="outside upper right", ncols=4, frameon=False, fontsize=8.5)
    roc = curve_panels(found, roc_curves, size=(4.5, 4.7))
    calibration = curve_panels(found, calibration_curve, size=(4.3, 5.1))
    return {"classify": bars, "classify-roc": roc, "classify-calibration": calibration}


def curve_panels(
    found: Classification, draw: Callable[..., Axes], *, size: tuple[float, float] = (4.4, 5.0)
) -> Figure:
    """Draw the curves of each part of people side by side, in panels of this width and height in inches."""
    parts: list[Part] = [one for one in get_args(Part) if one in found.parts]
    drawn = Figure(figsize=(0.2 + size[0] * len(parts), size[1]), layout="constrained")
    for ax, part in zip(drawn.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        draw(found, part=part, ax=ax)
    return drawn
