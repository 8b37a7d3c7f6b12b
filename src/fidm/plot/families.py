"""Pictures of families of distributions: which predicts best, and what each gets wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from fidm.plot.style import INK, LOOKS, QUIET, new_axes, quieten
from fidm.study.families_found import Families

Floats = NDArray[np.float64]

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
        What :func:`fidm.study.families.compare_families` found.
    observable : str
        Which observation.
    ax : Axes, optional
        Where to draw; a new figure if left out.
    matters : float
        Differences smaller than this are not filled, however sure they are.
    """
    rows = result.of(observable)
    ax = new_axes(5.2, 1.1 + 0.38 * len(rows)) if ax is None else ax
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
    ax = new_axes(3.6, 3.4) if ax is None else ax
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
    ax = new_axes(5.6, 3.4) if ax is None else ax
    for number, row in enumerate(rows):
        look = LOOKS[number % len(LOOKS)]
        expected, residual, low, high = _residuals(result, observable, row["family"])
        if not number:
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
