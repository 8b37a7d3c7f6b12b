"""The figures of the Space Adventure Task; they draw what was found and compute nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from fidm.plot.style import INK, LOOKS, QUIET, RESIDUAL_MAP, RULE, ink_on, new_axes, quieten

WORDS = {
    "eta": "action sensitivity η",
    "theta": "time offset θ",
    "first_choice": "θ of first choices",
    "later_choices": "θ of later choices",
    "processing_speed": "processing speed",
    "vocabulary": "vocabulary",
    "working_memory": "working memory",
    "model_beta": "published β (response precision)",
    "mean_planning_depth": "published planning depth",
    "model_theta": "published bias",
    "model_alpha": "published learning rate",
    "age": "age",
    "action": "action (η)",
    "effort": "effort (θ)",
    "fidm": "both (η and θ)",
    "fidm-two-times": "η and two θ: first choices, later ones",
}
"""Parameters, tests and representations in words."""

GROUPS = ("older", "younger", "alcohol use disorder", "control", "students")


def in_words(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the same table with the names in these columns in words."""
    return frame.with_columns(pl.col(name).replace(WORDS) for name in columns)


def draw_values(values: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw published action values against those of the solved task; misprints are left out."""
    ax = ax or new_axes(4.2, 4.0)
    shown = values.filter(~pl.col("misprint"))
    for look, depth in zip(LOOKS, (1, 2, 3), strict=False):
        chosen = shown.filter(depth=depth)
        words = f"{depth} flight{'s' if depth > 1 else ''} to go"
        ax.plot(
            chosen["ours"], chosen["q"], look.marker, ms=4, mfc="none", mec=look.colour, label=words, zorder=3
        )
    ends = [float(shown["q"].min()), float(shown["q"].max())]  # type: ignore[arg-type]
    ax.plot(ends, ends, color=QUIET, lw=0.8, zorder=2)
    ax.set_xlabel("value of the solved task (fuel)")
    ax.set_ylabel("published value (fuel)")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_agreement(people: pl.DataFrame, fits: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw everybody's η against the β that was published of them."""
    ax = ax or new_axes(4.8, 3.8)
    joined = people.join(fits.select("participant", "model_beta"), on="participant", how="inner")
    for look, group in zip(LOOKS, ("alcohol use disorder", "control"), strict=False):
        chosen = joined.filter(clinical_group=group)
        ax.plot(
            chosen["eta"], chosen["model_beta"], look.marker, color=look.colour, ms=5, alpha=0.8, label=group
        )
    ax.set_xscale("log")
    _plain_ticks(ax.xaxis)
    ax.set_xlabel("action sensitivity η (per unit of fuel)")
    ax.set_ylabel("published β")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_groups(people: pl.DataFrame) -> Figure:
    """Draw η and θ of everybody in every group, with the group's median."""
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    is_in = {
        name: (pl.col("age_group") == name) | (pl.col("clinical_group") == name) | (pl.col("source") == name)
        for name in GROUPS
    }
    for ax, parameter in ((left, "eta"), (right, "theta")):
        for at, (look, who) in enumerate(zip(LOOKS, is_in.values(), strict=False)):
            values = people.filter(who)[parameter].to_numpy()
            aside = at + np.linspace(-0.22, 0.22, max(2, len(values)))[: len(values)]
            ax.plot(aside, values, look.marker, ms=3.5, mfc="none", mec=look.colour, zorder=3)
            if len(values):
                ax.plot([at - 0.3, at + 0.3], [np.median(values)] * 2, color=INK, lw=2, zorder=4)
        ax.set_xticks(range(len(GROUPS)), [name.replace("alcohol use", "alcohol\nuse") for name in GROUPS])
        ax.set_ylabel(WORDS[parameter] + (" (per unit of fuel)" if parameter == "eta" else " (log seconds)"))
        quieten(ax)
        ax.tick_params(axis="x", labelsize=7)
    left.set_yscale("log")
    _plain_ticks(left.yaxis)
    return figure


def draw_times(times: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw typical reaction times of first, second and third choices, of older and younger people."""
    ax = ax or new_axes(5.6, 3.6)
    for look, group in zip(LOOKS, ("older", "younger"), strict=False):
        for noise, dashes in (("low", "-"), ("high", (0, (3, 2)))):
            chosen = times.filter(pl.col("group") == group, pl.col("noise") == noise)
            for steps in (3, 2):  # how many flights the mini-block has
                place = pl.col("choice_index").to_physical().cast(pl.Int64)
                line = chosen.filter(pl.col("steps_to_go") + place == steps).with_columns(place=place)
                ax.plot(
                    line["place"] + (0.04 if steps == 3 else -0.04),
                    line["typical_s"],
                    look.marker,
                    ls=dashes,
                    color=look.colour,
                    mfc=look.colour if noise == "low" else "white",
                    ms=5,
                    lw=1.4,
                    label=f"{group}, {noise} noise" if steps == 3 else None,
                )
    ax.set_yscale("log")
    ax.set_yticks([0.3, 0.5, 1, 2, 3, 5], ["0.3", "0.5", "1", "2", "3", "5"])
    ax.minorticks_off()
    ax.set_xticks(range(3), ["first", "second", "third"])
    ax.set_xlabel("choice of a mini-block (two or three flights)")
    ax.set_ylabel("typical reaction time (s)")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_ablation(ablation: pl.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw how well each representation tells older from younger people, with its interval."""
    rows = ablation.filter(metric="auc").reverse()
    ax = ax or new_axes(6.2, 0.6 * rows.height + 0.9)
    place = np.arange(rows.height)
    value, low, high = (rows[name].to_numpy() for name in ("value", "low", "high"))
    ax.errorbar(
        value, place, xerr=[value - low, high - value], fmt="o", color=LOOKS[0].colour, capsize=3, lw=2
    )
    for at, number in zip(place, value, strict=True):
        ax.text(number, at + 0.16, f"{number:.2f}", ha="center", va="bottom", fontsize=8, color=INK)
    ax.axvline(0.5, color=QUIET, lw=0.8, ls="--")
    ax.set_yticks(place, [WORDS[name] for name in rows["representation"]])
    ax.set_ylim(-0.5, rows.height - 0.3)
    ax.set_xlim(min(0.4, float(np.nanmin(low)) - 0.02), 1.02)
    ax.set_xlabel("AUC, older against younger (0.5: chance)")
    quieten(ax)
    return ax


def draw_relations(relations: pl.DataFrame) -> Figure:
    """Draw the rank correlations with the other tests; framed are those that remain after correction."""
    samples = relations["sample"].unique(maintain_order=True).to_list()
    tests = relations["test"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, parameter in zip(axes, ("eta", "theta"), strict=True):
        grid = np.full((len(samples), len(tests)), np.nan)
        sure = np.zeros(grid.shape, dtype=np.bool_)
        for row in relations.filter(parameter=parameter).iter_rows(named=True):
            at = samples.index(row["sample"]), tests.index(row["test"])
            grid[at] = row["value"]
            sure[at] = row["p_holm"] is not None and row["p_holm"] < 0.05
        ax.imshow(np.ma.masked_invalid(grid), cmap=RESIDUAL_MAP, vmin=-1, vmax=1, aspect="auto")
        for (y, x), value in np.ndenumerate(grid):
            said = "–" if np.isnan(value) else f"{value:+.2f}".replace("-", "−")
            colour = "#ffffff" if np.isnan(value) else _hex((value + 1) / 2)
            ax.text(x, y, said, ha="center", va="center", fontsize=9, color=ink_on(colour))
            if sure[y, x]:
                ax.add_patch(_frame(x, y))
        ax.set_xticks(range(len(tests)), [WORDS[test].replace(" ", "\n") for test in tests])
        ax.set_yticks(range(len(samples)), samples)
        ax.set_title(WORDS[parameter], fontsize=9)
        ax.tick_params(length=0, labelsize=8)
        ax.spines[:].set_color(RULE)
    return figure


def _plain_ticks(axis: Axis) -> None:
    """Numbers of a logarithmic axis as people write them."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _hex(share: float) -> str:
    return to_hex(RESIDUAL_MAP(share))


def _frame(x: int, y: int) -> Rectangle:
    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, ec=INK, lw=1.6)
