"""Pictures of a comparison of accounts of choice: differences, simulated choices, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fidm.experiments.criticism import LEVEL
from fidm.experiments.rivals import ModelComparison
from fidm.plot.style import INK, LOOKS, QUIET, RULE, Look, new_axes, plain, plain_legend, plain_ticks, quieten
from fidm.present.choices import COUNTED, level_text, model_words, more_probable, statistic_words

WAYS = (("people", "other people", LOOKS[0]), ("trials", "other trials of known people", LOOKS[1]))
"""In which ways choices are held out, what they are called, and how they are drawn."""

FAR = 4.0
"""A model that is worse by more than so many times what the others differ by is written at the edge."""


def model_figures(result: ModelComparison) -> dict[str, Figure]:
    """Return the figures of a comparison of action models by the names of their files."""
    drawn = {"compare-models": model_differences(result).figure}
    if result.criticism.checks.height:
        drawn["compare-models-checks"] = model_checks(result)
    if result.criticism.calibration.height:
        drawn["compare-models-calibration"] = model_calibration(result)
    return {name: figure for name, figure in drawn.items() if isinstance(figure, Figure)}


def model_differences(result: ModelComparison, *, ax: Axes | None = None) -> Axes:
    """Draw by how much more probable held-out choices are under each account than under the reference.

    Filled: the interval excludes 0. An account that is far worse than the others is written at the left edge.

    Parameters
    ----------
    result : ModelComparison
        What :func:`fidm.compare_models` gives.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    rows = result.models.sort("by_people", descending=True, maintain_order=True).to_dicts()
    ax = ax or new_axes(6.2, 1.15 + 0.36 * len(rows))
    near = _near(rows)
    low = min([0.0, *(_per_cent(row[f"{way}_low"]) for row in near for way, _, _ in WAYS)])
    high = max([0.0, *(_per_cent(row[f"{way}_high"]) for row in near for way, _, _ in WAYS)])
    room = 0.06 * max(high - low, 0.1)
    ax.axvline(0, color=QUIET, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for place, row in enumerate(rows):
        if row["model"] == result.reference:
            ax.plot(0, place, "D", color=INK, ms=6, mfc="white", mew=1.3, zorder=4)
        elif row not in near:
            said = f"{_per_cent(row['people_difference']):+.0f} %".replace("-", "\N{MINUS SIGN}")
            arrow = {"arrowstyle": "-|>", "color": QUIET, "lw": 1.2, "shrinkB": 0}
            ax.annotate(
                said, (low - room, place), xytext=(12, 0), textcoords="offset points", va="center",
                fontsize=8, color=INK, arrowprops=arrow,
            )  # fmt: skip
        else:
            for shift, (way, _, look) in zip((-0.13, 0.13), WAYS, strict=True):
                _whisker(ax, row, way, place + shift, look)
    plain_ticks(
        ax.yaxis, list(range(len(rows))), [model_words(result, str(row["model"])) for row in rows], size=8.5
    )
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(low - room, high + room)
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: f"{x:+g}".replace("-", "\N{MINUS SIGN}") if x else "0")
    )
    said = (
        f"by how many per cent choices are more probable than under {model_words(result, result.reference)}"
    )
    ax.set_xlabel(f"{said}\n({level_text(result)} intervals; filled: 0 is excluded)", fontsize=8.5)
    plain(ax.xaxis.label)
    quieten(ax)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0, labelsize=8.5)
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, ls="-", lw=1.6, ms=5, label=words)
        for _, words, look in WAYS
    ]
    ax.legend(
        handles=handles, title="predicted from", title_fontsize=8, fontsize=8, frameon=False, ncols=2,
        loc="lower center", bbox_to_anchor=(0.5, 1.0), alignment="center",
    )  # fmt: skip
    return ax


def _whisker(ax: Axes, row: Mapping[str, Any], way: str, place: float, look: Look) -> None:
    """One difference with its interval; filled where that excludes 0."""
    low, middle, high = (_per_cent(row[f"{way}_{end}"]) for end in ("low", "difference", "high"))
    is_sure = low > 0 or high < 0
    ax.plot([low, high], [place, place], color=look.colour, lw=1.7, solid_capstyle="butt", zorder=2)
    ax.plot(
        middle, place, look.marker, color=look.colour, ms=5.2, mew=1.3,
        mfc=look.colour if is_sure else "white", zorder=3,
    )  # fmt: skip


def _near(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The models that are not far worse than all others, so that one axis can show them."""
    near = sorted(rows, key=lambda row: float(row["people_difference"]))
    while len(near) > 2:
        reach = max(abs(_per_cent(row[f"people_{end}"])) for row in near[1:] for end in ("low", "high"))
        if _per_cent(near[0]["people_high"]) > -FAR * max(reach, 0.05):
            break
        near = near[1:]
    return near


def _per_cent(difference: float) -> float:
    return 100 * (more_probable(difference) or 0.0)


def model_checks(result: ModelComparison) -> Figure:
    """Draw what people did beside what they would do under the best account and the reference.

    Diamonds are observed means over people; bars hold 95 % of the means of simulated choices.

    Parameters
    ----------
    result : ModelComparison
        What :func:`fidm.compare_models` gives.
    """
    checks = result.criticism.checks
    names = list(dict.fromkeys(checks["statistic"]))
    shares, numbers = [n for n in names if n not in COUNTED], [n for n in names if n in COUNTED]
    parts = [(part, is_share) for part, is_share in ((shares, True), (numbers, False)) if part]
    figure = Figure(figsize=(6.4, 1.25 + 0.4 * len(names) + 0.35 * len(parts)), layout="constrained")
    panels = figure.subplots(
        len(parts), 1, squeeze=False, gridspec_kw={"height_ratios": [len(part) + 0.4 for part, _ in parts]}
    )[:, 0]
    shown = _shown(result)
    for ax, (part, is_share) in zip(panels, parts, strict=True):
        _check_panel(ax, checks, part, shown, 100.0 if is_share else 1.0)
        ax.set_xlabel("per cent" if is_share else "steps", fontsize=8.5)
    handles = [
        Line2D([], [], ls="none", marker="D", color=INK, ms=5.5, label="observed"),
        *(
            Line2D([], [], color=look.colour, lw=5, alpha=0.45, marker="|", mec=look.colour, mew=1.8, ms=9)
            for look in LOOKS[: len(shown)]
        ),
    ]
    words = ["observed", *(model_words(result, name) for name in shown)]
    legend = figure.legend(
        handles, words, loc="outside upper center", ncols=len(words), frameon=False, fontsize=8.5,
        title=f"bars: {100 * LEVEL:g} % of simulated means", title_fontsize=8,
    )  # fmt: skip
    plain_legend(legend, words)
    return figure


def _check_panel(
    ax: Axes, checks: pl.DataFrame, names: Sequence[str], shown: Sequence[str], times: float
) -> None:
    """The statistics of one unit, a row each."""
    for k, (model, look) in enumerate(zip(shown, LOOKS, strict=False)):
        for row in checks.filter(model=model).filter(pl.col("statistic").is_in(names)).iter_rows(named=True):
            place = names.index(row["statistic"]) + 0.26 * (k - 0.5 * (len(shown) - 1))
            ends = times * row["low"], times * row["high"]
            ax.plot(
                ends, [place, place], color=look.colour, lw=6, alpha=0.45, solid_capstyle="butt", zorder=2
            )
            ax.plot(times * row["replicated"], place, "|", color=look.colour, ms=9, mew=1.8, zorder=3)
    for place, name in enumerate(names):
        observed = times * checks.filter(statistic=name)["observed"][0]
        ax.plot(observed, place, "D", color=INK, ms=5, mec="white", mew=0.8, zorder=4)
        if place:
            ax.axhline(place - 0.5, color=RULE, lw=0.6, zorder=0)
    quieten(ax)
    ax.grid(axis="y", visible=False)
    plain_ticks(ax.yaxis, list(range(len(names))), [statistic_words(name) for name in names], size=8.5)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.45, -0.55)


def model_calibration(result: ModelComparison) -> Figure:
    """Draw how often options were chosen against the predicted probability, for the best and the reference.

    Whiskers are 95 % intervals; the panel below has how many options each point rests on.

    Parameters
    ----------
    result : ModelComparison
        What :func:`fidm.compare_models` gives.
    """
    figure = Figure(figsize=(4.4, 5.0), layout="constrained")
    top, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (4, 1)})
    top.plot([0, 100], [0, 100], color=QUIET, lw=0.9, ls=(0, (4, 2)), zorder=1)
    shown = [name for name in _shown(result) if result.criticism.calibration.filter(model=name).height]
    for k, (name, look) in enumerate(zip(shown, LOOKS, strict=False)):
        own = result.criticism.calibration.filter(model=name)
        x, y, low, high = (
            100 * own[column].to_numpy() for column in ("predicted", "observed", "low", "high")
        )
        top.vlines(x, low, high, color=look.colour, lw=1.4, alpha=0.6, zorder=2)
        top.plot(
            x, y, ls=look.line, marker=look.marker, color=look.colour, lw=1.1, ms=5,
            mfc=look.colour if k == 0 else "white", mew=1.3, zorder=3,
        )  # fmt: skip
        below.vlines(
            x + 1.8 * (k - 0.5 * (len(shown) - 1)), 0.7, own["n"].to_numpy(), color=look.colour, lw=2.6
        )
    for ax in (top, below):
        quieten(ax)
    top.set_xlim(-2, 102)
    top.set_ylim(-2, 102)
    top.set_ylabel("chosen, per cent", fontsize=8.5)
    below.set_yscale("log")
    below.set_ylim(bottom=0.7)
    below.yaxis.set_major_locator(LogLocator(numticks=4))
    below.yaxis.set_minor_locator(NullLocator())
    below.set_ylabel("options", fontsize=8.5)
    below.yaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    below.set_xlabel("predicted probability, per cent", fontsize=8.5)
    words = [model_words(result, name) for name in shown]
    handles = list(top.get_lines()[1:])
    plain_legend(top.legend(handles, words, frameon=False, fontsize=8.5, loc="upper left"), words)
    return figure


def _shown(result: ModelComparison) -> list[str]:
    """The models that are looked at closely: the best one, and the reference."""
    return list(dict.fromkeys([result.best, result.reference]))
