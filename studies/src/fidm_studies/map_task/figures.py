"""The figures of the HCRC Map Task; they draw tables and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fidm.channels import parameter_words
from fidm.experiments.families import Families
from fidm.plot.experiments import family_differences, worm_plot
from fidm.plot.style import LOOKS, QUIET, new_axes, quieten
from fidm_studies.map_task.readings import MATTERS, OBSERVABLES

GAIN = "held-out log-likelihood per move, against the first (filled: more than chance, and it matters)"
"""What gains are, beneath the last panel."""


def worms(found: Families) -> Figure:
    """Draw how far quantile residuals lie from normal ones, a panel per observation, one below the other."""
    observables = found.observables
    figure = Figure(figsize=(6.8, 1.55 * len(observables) + 0.4), layout="constrained")
    for place, name in enumerate(observables, 1):
        ax = worm_plot(found, name, ax=figure.add_subplot(len(observables), 1, place))
        ax.set_title(OBSERVABLES[name], fontsize=9, loc="left")
        last = place == len(observables)
        ax.set_xlabel("residual expected of a normal distribution" if last else "", fontsize=8)
        ax.set_ylabel("residual\nminus expected", fontsize=8)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def gains(found: Families) -> Figure:
    """Draw how much better or worse than the reference families predict people left out, panel by panel."""
    observables = found.observables
    sizes = [1.6 + len(found.of(name)) for name in observables]
    figure = Figure(figsize=(6.8, 0.27 * sum(sizes) + 0.3), layout="constrained")
    grid = figure.add_gridspec(len(observables), 1, height_ratios=sizes)
    for place, name in enumerate(observables):
        ax = family_differences(found, name, matters=MATTERS, ax=figure.add_subplot(grid[place]))
        ax.set_title(OBSERVABLES[name], fontsize=9, loc="left")
        ax.tick_params(labelsize=8)
        last = place == len(observables) - 1
        ax.set_xlabel(GAIN if last else "", fontsize=8)
        ax.xaxis.set_major_locator(MaxNLocator(5))
    return figure


def forest(
    table: pl.DataFrame, value: str, low: str, high: str, *, by: str, looks: Sequence[str], xlabel: str
) -> Axes:
    """Draw numbers with their intervals, a line per θ and a mark per value of another column.

    Parameters
    ----------
    table : DataFrame
        With ``label``, the column ``by``, and the numbers.
    value, low, high : str
        The columns of the number and its ends.
    by : str
        The column that tells marks apart.
    looks : sequence of str
        Its values, in the order in which they are drawn.
    xlabel : str
        What is drawn, with its unit.
    """
    labels = table["label"].unique(maintain_order=True).to_list()
    ax = new_axes(7.0, 1.2 + 0.5 * len(labels))
    ax.axvline(0.0, color=QUIET, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for k, one in enumerate(looks):
        look = LOOKS[k % len(LOOKS)]
        named = False
        for row in table.filter(pl.col(by) == one).iter_rows(named=True):
            if row[value] is None:
                continue
            at = len(labels) - 1 - labels.index(row["label"]) + 0.16 * (len(looks) - 1 - 2 * k)
            if row[low] is not None:
                ax.plot([row[low], row[high]], [at, at], color=look.colour, ls=look.line, lw=1.6, zorder=2)
            ax.plot(
                row[value], at, look.marker, color=look.colour, ms=6, zorder=3, label=None if named else one
            )
            named = True
    ax.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
    ax.set_ylim(-0.6, len(labels) - 0.4)
    ax.set_xlabel(xlabel, fontsize=8.5)
    if len(looks) > 1:
        ax.legend(fontsize=7.5, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(looks))
    quieten(ax)
    return ax


def labelled(table: pl.DataFrame, *, with_family: bool) -> pl.DataFrame:
    """Return a table with the words of its θ in the column ``label``."""
    words = pl.col("parameter").map_elements(parameter_words, return_dtype=pl.String)
    return table.with_columns(label=pl.format("{}, {}", words, "family") if with_family else words)
