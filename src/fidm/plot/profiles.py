"""Profiles: one person against everybody else, and everybody's action against their effort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from fidm.channels import channel_words, parameter_words
from fidm.errors import DataError
from fidm.fit.profile import NO_OBSERVATION, OK, SENSITIVITY, STATUSES, Profile, number_text
from fidm.plot.style import INK, LOOKS, QUIET, RULE, new_axes, plain, plain_legend, plain_ticks, quieten
from fidm.present.numbers import FLAGS, flag_text, not_estimated
from fidm.types import Floats

TRIES = 4
"""How often a smaller size is tried."""


class FittedText(Text):
    """A text in the middle of a place on an axis that becomes smaller where it would not fit into it.

    ``x``, ``y`` are its middle, and ``room`` is how wide and how high it may become, in data coordinates with
    the same scale in both directions; ``size`` is that of its letters where there is room, in points.
    """

    def __init__(
        self,
        ax: Axes,
        x: float,
        y: float,
        words: str,
        *,
        room: tuple[float, float],
        size: float,
        colour: str,
        zorder: float,
    ) -> None:
        super().__init__(
            x, y, words, ha="center", va="center", fontsize=size, color=colour, zorder=zorder,
            linespacing=1.05, clip_on=False,
        )  # fmt: skip
        self.room, self.size = room, size
        self.set_in_layout(False)  # it lies inside the map, which can be laid out without it
        ax.add_artist(self)

    def fit(self, renderer: RendererBase) -> None:
        """Choose the size of the letters for the map as large as it is now."""
        if self.axes is None or not self.get_text():
            return
        (x0, y0), (x1, y1) = self.axes.transData.transform([(0.0, 0.0), self.room])
        size = self.size
        for _ in range(TRIES):  # letters are fitted to pixels, so that half the size is not half as wide
            self.set_fontsize(size)
            box = self.get_window_extent(renderer)
            share = min(abs(x1 - x0) / max(box.width, 1e-9), abs(y1 - y0) / max(box.height, 1e-9))
            if share >= 1.0:
                return
            size *= 0.99 * share
        self.set_fontsize(size)

    def draw(self, renderer: RendererBase, *args: Any, **kwargs: Any) -> None:
        """Draw it as large as there is room for it."""
        self.fit(renderer)
        super().draw(renderer, *args, **kwargs)


WIDEST = 4.5
"""How many of the cohort's standard deviations are drawn on each side; what lies beyond is an arrow."""

NO_GROUP = "unknown"


def person_profile(profile: Profile, participant: str, *, ax: Axes | None = None) -> Axes:
    """Draw one person's parameters, with their intervals, against those of the whole cohort.

    Each row has the cohort's own scale: 0 is its median, and one unit is its spread (the distance from the
    tenth to the ninetieth percentile over 2.56, a standard deviation where people are normally distributed);
    η is laid out by its logarithm. A person's place is the share of the others who lie below, those with the
    same value counted half. The band holds the middle 80 % of people, and each short line is one
    person. Hollow marks are estimates about which something is to be said; arrows lie beyond the drawing.

    Parameters
    ----------
    profile : Profile
        Everybody's profile.
    participant : str
        Whose is drawn against it.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    row = profile.participants.index_of(str(participant))
    if row is None:
        raise DataError(f"There is no participant {participant!r} among the {len(profile)} people.")
    n = len(profile.parameters)
    ax = ax or new_axes(7.4, 1.0 + 0.52 * n)
    for k in range(n):
        _draw_parameter(profile, row, k, ax)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=2)
    ax.set_xlim(-WIDEST, WIDEST)
    ax.set_ylim(n - 0.4, -0.6)
    plain_ticks(ax.yaxis, list(range(n)), [parameter_words(name) for name in profile.parameters], size=8.5)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.grid(axis="x", color=RULE, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    people = f"{len(profile):,} people" if len(profile) > 1 else "one person"
    ax.set_xlabel(f"less  ←  median of {people}  →  more   (standard deviations of the cohort)", fontsize=8.5)
    plain(ax.set_title(f"{participant}, {100 * profile.level:g} % intervals", fontsize=9.5, loc="left"))
    return ax


def _draw_parameter(profile: Profile, row: int, k: int, ax: Axes) -> None:
    """One row: the cohort as band and short lines, the person as a mark with an interval, and in numbers."""
    look = LOOKS[1]
    everybody = _laid_out(profile, profile.estimate[:, k], k)
    known = everybody[np.isfinite(everybody)]
    low, middle, high = np.quantile(known, (0.1, 0.5, 0.9)) if len(known) else (math.nan,) * 3
    spread = (high - low) / 2.5631 if high > low else 1.0
    if len(known):
        ax.barh(
            k, (high - low) / spread, left=(low - middle) / spread, height=0.5, color="#DCE6EE",
            edgecolor="#8FA3B3", lw=0.6, zorder=1,
        )  # fmt: skip
        ax.vlines((known - middle) / spread, k - 0.25, k - 0.12, color="#5F7485", lw=0.5, alpha=0.6, zorder=2)
    status = STATUSES[profile.status[row, k]]
    ends = [
        (float(_laid_out(profile, values[row : row + 1, k], k)[0]) - middle) / spread
        for values in (profile.low, profile.estimate, profile.high)
    ]
    begin, at, end = np.clip(ends, -WIDEST, WIDEST).tolist()
    if not math.isnan(begin) and not math.isnan(end):
        ax.plot([begin, end], [k, k], color=look.colour, lw=2.4, solid_capstyle="butt", zorder=4)
        for value, tip, mark in ((ends[0], begin, "<"), (ends[2], end, ">")):
            if value != tip:
                ax.plot(tip, k, mark, color=look.colour, ms=6, zorder=5, clip_on=False)
    if not math.isnan(at):
        filling = look.colour if status == STATUSES[OK] else "white"
        ax.plot(at, k, look.marker, ms=7.5, color=look.colour, mfc=filling, mew=1.6, zorder=6)
    said = flag_text(profile.parameters[k], status, int(profile.n[row, k])) or FLAGS.get(status, "")
    ax.annotate(
        _numbers(profile, row, k, everybody, said), (1.01, k), fontsize=7.5, color=INK,
        xycoords=("axes fraction", "data"), va="center", annotation_clip=False,
    )  # fmt: skip


def _laid_out(profile: Profile, values: Floats, k: int) -> Floats:
    """Values on the scale they are drawn on: the logarithm of η, and θ as it is."""
    if profile.parameters[k] != SENSITIVITY:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(values))


def _numbers(profile: Profile, row: int, k: int, everybody: Floats, against: str) -> str:
    """The estimate with its interval, how many people lie below it, and what is to be said against it."""
    estimate = float(profile.estimate[row, k])
    if math.isnan(estimate):
        is_observed = profile.status[row, k] != NO_OBSERVATION
        return against if is_observed else not_estimated(profile.parameters[k], int(profile.n[row, k]))
    low, high = float(profile.low[row, k]), float(profile.high[row, k])
    said = number_text(estimate).replace("-", "−")
    if not (math.isnan(low) or math.isnan(high)):
        said += f" ({number_text(low)} to {number_text(high)})".replace("-", "−")
    known = everybody[~np.isnan(everybody)]  # what has no end lies beyond all that has
    if len(known) > 1:
        said += f"\n{_rank_words(known, float(everybody[row]))}"
    return f"{said}, {against}" if against else said


def _rank_words(known: Floats, own: float) -> str:
    """Where a value lies among those of the others: which share of them is below; ties count half."""
    below, above = int((known < own).sum()), int((known > own).sum())
    others = len(known) - 1
    if below == others or above == others:
        return f"the {'highest' if below else 'lowest'} of {len(known):,} people"
    share = 100 * (below + 0.5 * (others - below - above)) / others
    if share < 1 or share > 99:
        return f"among the {'lowest' if share < 1 else 'highest'} 1 % of {len(known):,} people"
    return f"higher than {share:.0f} % of the others"


def cohort_scatter(
    profile: Profile,
    *,
    channel: str = "duration",
    groups: pl.Series | None = None,
    highlight: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw everybody's action sensitivity against their effort in one channel.

    Groups differ in marker, filling and lightness as well as in colour, the largest first. People to be
    pointed out have their intervals and their names. Those without a finite estimate of both are left out,
    and the drawing says how many they are.

    Parameters
    ----------
    profile : Profile
        Everybody's profile.
    channel : str
        The effort channel.
    groups : Series, optional
        The group of each person, in the order of the profile, such as ``participants["diagnosis"]``.
    highlight : sequence of str
        Whom to point out.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    eta, theta = profile.action_sensitivity, profile[channel]
    if channel == SENSITIVITY:
        raise DataError(f"{channel} is the horizontal axis already; name an effort channel.")
    if groups is not None and len(groups) != len(profile):
        raise DataError(f"There are groups of {len(groups)} people and profiles of {len(profile)}.")
    ax = ax or new_axes(5.6, 4.4)
    shown = np.isfinite(eta) & (eta > 0) & np.isfinite(theta)
    kinds = np.full(len(profile), "everybody")
    if groups is not None:
        kinds = np.array(groups.cast(pl.String).fill_null(NO_GROUP).to_list())
    names = sorted(set(kinds.tolist()), key=lambda name: (name == NO_GROUP, -(kinds == name).sum(), name))
    handles = []
    for i, name in enumerate(names):
        own = shown & (kinds == name)
        colour, marker, filling = DOTS[i % len(DOTS)]
        dots = Line2D([], [], ls="none", marker=marker, color=colour, mfc=filling, mew=0.9, ms=5.5)
        handles.append(dots)
        ax.plot(
            eta[own], theta[own], ls="none", marker=marker, color=colour, mfc=filling, mew=0.9, ms=4.4,
            alpha=0.85, zorder=3 + 0.01 * i,
        )  # fmt: skip
    if shown.any():
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for name in highlight:
        _point_out(profile, name, channel, shown, ax)
    quieten(ax)
    ax.axhline(0.0, color="#999999", lw=0.8, zorder=1)
    ax.set_xlabel("action sensitivity η (logarithmic)", fontsize=8.5)
    plain(ax.set_ylabel(f"effort offset θ: {channel_words(channel).name}", fontsize=8.5))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    if groups is not None:
        legend = ax.legend(
            handles, [str(i) for i in range(len(names))], frameon=False, fontsize=8, loc="lower left",
            bbox_to_anchor=(0, 1), ncols=4, handletextpad=0.3, columnspacing=1.2, borderaxespad=0.1,
        )  # fmt: skip
        plain_legend(legend, [f"{name} ({(shown & (kinds == name)).sum():,})" for name in names])
    left_out = int((~shown).sum())
    if left_out:
        said = f"{left_out:,} without a finite estimate of both not shown"
        ax.annotate(said, (1, 0), xycoords="axes fraction", ha="right", va="bottom", fontsize=7, color=QUIET)
    return ax


DOTS = (
    ("#0072B2", "o", "white"),
    ("#D55E00", "s", "#D55E00"),
    ("#222222", "^", "#222222"),
    ("#009E73", "D", "white"),
    ("#CC79A7", "v", "#CC79A7"),
    ("#56B4E9", "P", "white"),
)
"""The colour, the marker and the filling of each group."""


def _point_out(profile: Profile, name: str, channel: str, shown: NDArray[np.bool_], ax: Axes) -> None:
    """Both intervals of one person as a cross, with a ring and the name."""
    row = profile.participants.index_of(str(name))
    if row is None:
        raise DataError(f"There is no participant {name!r} among the {len(profile)} people.")
    if not shown[row]:
        raise DataError(f"{name!r} has no finite estimate of both, so there is no point to show.")
    k = profile.parameters.index(channel)
    x, y = float(profile.action_sensitivity[row]), float(profile[channel][row])
    ax.hlines(y, profile.low[row, 0], profile.high[row, 0], color=INK, lw=1.1, zorder=5)
    ax.vlines(x, profile.low[row, k], profile.high[row, k], color=INK, lw=1.1, zorder=5)
    ax.plot(x, y, "o", ms=10, mfc="none", mec=INK, mew=1.4, zorder=6)
    behind = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.6}
    plain(
        ax.annotate(
            str(name), (x, y), xytext=(7, 7), textcoords="offset points", fontsize=8, color=INK, bbox=behind,
            zorder=7,
        )
    )  # fmt: skip
