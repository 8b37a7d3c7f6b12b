"""One person's evidence at a glance: the way with its unexpected steps, and the effort of each segment.

How well unexpectedness points at what went wrong: AUC and enrichment at each anchor.

Effort of single segments: what was observed, and what the moves do not explain (the paper's figure 6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fidm.channels import channel_words
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.evidence.evidence import IN_DOUBT, Evidence
from fidm.evidence.localization import SCORES, Localization
from fidm.plot.action_evidence import unexpected_row, unexpected_steps
from fidm.plot.style import INK, LESS_HATCH, QUIET, RESIDUAL_MAP, WEIGHT_MAP, new_axes, plain, plain_ticks
from fidm.tasks.model import TaskModel
from fidm.types import Floats

DARKEST_LOG, DARKEST_DIFFERENCE = math.log(4.0), 1.0
"""Residuals of this size and beyond are darkest: four times what was expected, or a quarter of it."""

MOST_LABELS = 22
"""How many segments are named beside an axis; of more, every second, third … one is."""


def effort_evidence(
    evidence: Evidence, participant: str, channel: str, *, episode: str | None = None
) -> Figure:
    """Draw one person's effort segment by segment: what was observed, beside what its moves do not explain.

    The darker an observation, the larger it is among the person's. A residual of nothing is white; the more a
    segment cost beyond its moves, the darker brown it is, and the less, the darker blue, and hatched. A small
    line across an observation is what the population leads one to expect of so many moves. Segments without
    an observation have a dash.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participant : str
        Whose segments.
    channel : str
        The effort channel, such as ``"duration"`` or ``"characters"``.
    episode : str, optional
        Which episode; by default all of them, one after the other.
    """
    own = own_segments(evidence, participant, channel, episode)
    n = own.height
    figure = Figure(figsize=(8.0, max(2.2, 1.1 + 0.2 * n)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    place = np.arange(n)
    observed, expected, residual = (
        own[f"{channel}_{part}"].cast(pl.Float64).to_numpy() for part in ("observed", "expected", "residual")
    )
    is_difference = channel in evidence.yes_no
    colours = (shade(observed), residual_shade(residual, is_difference=is_difference))
    for ax, values, own_colours in zip((left, right), (observed, residual), colours, strict=True):
        _bars(ax, place, values, own_colours, hatch=LESS_HATCH if ax is right else "")
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    for colour, width in (("white", 3.0), (INK, 1.2)):
        left.vlines(expected, place - 0.48, place + 0.48, color=colour, lw=width, zorder=4)
    right.axvline(0.0, color=INK, lw=0.9, zorder=4)
    left.set_xlim(left=0.0)
    words = channel_words(channel)
    unit = "1 yes, 0 no" if is_difference else words.unit or "as observed"
    plain(left.set_xlabel(f"{words.name} ({unit});  | expected of so many moves", fontsize=8.5))
    kind = "difference" if is_difference else "log ratio"
    right.set_xlabel(f"residual ({kind} to expected); hatched: less", fontsize=8.5)
    plain(left.set_title(f"{participant}: observed", fontsize=9.5, loc="left"))
    right.set_title("beyond what the moves explain", fontsize=9.5, loc="left")
    every = max(1, -(-n // (2 * MOST_LABELS)))
    plain_ticks(left.yaxis, place[::every].tolist(), _names(own)[::every], size=7.5)
    left.set_ylim(n - 0.4, -0.6)
    doubt = ", ? if in doubt" if own.get_column(IN_DOUBT, default=pl.Series([False])).any() else ""
    left.set_ylabel(f"segment (its moves{doubt})" if "n_moves" in own.columns else "segment", fontsize=8.5)
    return figure


def effort_residuals(evidence: Evidence, participant: str, channel: str, *, ax: Axes | None = None) -> Axes:
    """Draw how much more each of a person's segments cost than its moves explain.

    A bar is the browner the more a segment cost, the bluer the less, which is hatched too, and white near 0.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participant : str
        Whose segments.
    channel : str
        The effort channel, such as ``"duration"``.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    own = own_segments(evidence, participant, channel, None, needed=False)
    ax = ax or new_axes(6.0, 3.0)
    values = own[f"{channel}_residual"].cast(pl.Float64).to_numpy()
    places = np.arange(len(values))
    is_difference = channel in evidence.yes_no
    ax.bar(
        places, np.nan_to_num(values), color=residual_shade(values, is_difference=is_difference), width=0.8,
        edgecolor="#555555", linewidth=0.4, hatch=_hatches(values, LESS_HATCH),
    )  # fmt: skip
    ax.axhline(0.0, color=INK, linewidth=0.8)
    every = max(1, -(-len(values) // MOST_LABELS))
    doubtful = own.get_column(IN_DOUBT, default=own["segment"] == "")
    names = [f"{name}{'?' if one else ''}" for name, one in zip(own["segment"], doubtful, strict=True)]
    plain_ticks(ax.xaxis, places[::every].tolist(), names[::every], size=6.5)
    unit = "difference" if is_difference else "log ratio"
    plain(ax.set_ylabel(f"{channel_words(channel).name}\n{unit}", fontsize=8))
    ax.tick_params(axis="y", labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def own_segments(
    evidence: Evidence, participant: str, channel: str, episode: str | None, *, needed: bool = True
) -> pl.DataFrame:
    """Return the segments of one person, in one episode or all; none is an error where they are needed."""
    if channel not in evidence.channels:
        known = ", ".join(evidence.channels) or "none, as there are no observations of effort"
        raise DataError(f"There is no effort channel {channel!r}. There is: {known}.")
    own = evidence.segments.filter(pl.col("participant") == participant)
    if episode is not None:
        own = own.filter(pl.col("episode") == episode)
    if needed and not own.height:
        raise DataError(f"There are no segments of {participant!r} to draw.")
    return own


def shade(values: Floats) -> Floats:
    """Return a colour per value, the larger the darker within these; white where there is none."""
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    scaled = Normalize(low, high if high > low else low + 1.0)(np.nan_to_num(values, nan=low))
    colours = np.asarray(colormaps[WEIGHT_MAP](0.08 + 0.9 * np.asarray(scaled)))
    colours[~np.isfinite(values)] = 1.0
    return colours


def residual_shade(values: Floats, *, is_difference: bool = False) -> Floats:
    """Return a colour per residual: white at 0, darker brown the more, darker blue the less it is.

    The scale is the same for everybody, so that panels of several people can be compared. ``is_difference``
    says that these are differences of probabilities rather than logarithms of ratios.
    """
    darkest = DARKEST_DIFFERENCE if is_difference else DARKEST_LOG
    return np.asarray(RESIDUAL_MAP(0.5 + 0.5 * np.clip(np.nan_to_num(values) / darkest, -1.0, 1.0)))


def _hatches(values: Floats, hatch: str) -> list[str]:
    return [hatch if value < 0 else "" for value in values.tolist()]


def _bars(ax: Axes, place: NDArray[np.int64], values: Floats, colours: Floats, *, hatch: str) -> None:
    known = np.isfinite(values)
    ax.barh(
        place[known], values[known], height=0.78, color=colours[known], edgecolor="#555555", lw=0.4,
        hatch=_hatches(values[known], hatch), zorder=3,
    )  # fmt: skip
    for at in place[~known]:
        ax.text(0.0, at, " –", va="center", fontsize=7.5, color=QUIET)


def _names(own: pl.DataFrame) -> list[str]:
    """Each segment's name with its moves (? if in doubt), and its episode where there are several."""
    names = own["segment"].to_list()
    if own["episode"].n_unique() > 1:
        names = [f"{episode}: {name}" for episode, name in zip(own["episode"], names, strict=True)]
    if "n_moves" not in own.columns:
        return names
    return [
        f"{name} ({'–' if moves is None else moves}{'?' if in_doubt else ''})"
        for name, moves, in_doubt in zip(names, own["n_moves"], own[IN_DOUBT], strict=True)
    ]


def evidence_figure(
    evidence: Evidence, participant: str, tasks: Sequence[TaskModel], cohort: Cohort
) -> Figure:
    """Draw one person's evidence, with the map of the first episode that has steps on a task with a map."""
    by_name = {task.name: task for task in tasks}
    walked = evidence.actions.filter(pl.col("participant") == participant)["episode"].unique().implode()
    keys = cohort.episode_keys()
    own = keys.filter((pl.col("participant") == participant) & pl.col("episode").is_in(walked))
    for row in own.iter_rows(named=True):
        task = tasks[0] if len(tasks) == 1 else by_name[row["task"]]
        if task.grid is not None:
            return person_evidence(evidence, participant, task=task, episode=row["episode"])
    return person_evidence(evidence, participant)


def person_evidence(
    evidence: Evidence, participant: str, *, task: TaskModel | None = None, episode: str | None = None
) -> Figure:
    """Draw one person's evidence: the way coloured by unexpectedness, and a bar per segment and channel.

    Channels that only say whether something happened have no panel: their residuals are about as large in
    every segment. :func:`effort_residuals` draws them too.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participant : str
        Who.
    task : TaskModel, optional
        The task with a map; without one the actions are drawn in a row.
    episode : str, optional
        Which episode is drawn on the map; the first by default.
    """
    channels = [name for name in evidence.channels if name not in evidence.yes_no]
    n = max(1, len(channels))
    figure = Figure(figsize=(13, max(5.2, 1.15 * n)), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1), squeeze=False)[0]
    if task is not None and task.grid is not None:
        unexpected_steps(task, evidence, participant, episode=episode, ax=left.subplots())
    else:
        unexpected_row(evidence, participant, ax=left.subplots())
    if channels:
        axes = np.atleast_1d(right.subplots(n, 1, sharex=True))
        for channel, ax in zip(channels, axes, strict=True):
            effort_residuals(evidence, participant, channel, ax=ax)
        axes[0].set_title("effort beyond what the moves explain", fontsize=9)
        axes[-1].set_xlabel("segment", fontsize=8)
    else:
        right.text(0.5, 0.5, "no observations of effort", ha="center", va="center", fontsize=9, color=INK)
    return figure


NAMES = {
    "route_divergence": "turned away\nfrom the next goal",
    "route_divergence_clear": "the same, on stretches\nwithout a bypass",
    "bypass": "passed a target by\n(of opportunity steps)",
    "bypass_of_moves": "passed a target by\n(of all movements)",
}
CONTROL = {"unexpectedness": "unexpectedness", "q_gap": "gap in Q alone (no η)"}

LOOKS = {"unexpectedness": ("#0072B2", "o", ""), "q_gap": ("#D55E00", "s", "////")}
"""The colour, the marker and the hatching of each score; what is hatched has hollow markers."""


def localization(result: Localization, *, paper: Mapping[str, Mapping[str, float]] | None = None) -> Figure:
    """Draw how well unexpectedness points at each anchor: AUC and enrichment with intervals.

    Parameters
    ----------
    result : Localization
        What was found.
    paper : mapping, optional
        Numbers to mark beside it, by anchor: ``auc`` and ``enrichment``, such as the paper's.
    """
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    panels = (("auc", "AUC within a person", 0.5), ("enrichment", "enrichment in the top tenth", 1.0))
    anchors = list(NAMES)
    for ax, (number, title, chance) in zip(figure.subplots(1, 2), panels, strict=True):
        for i, score in enumerate(SCORES):
            rows = {row["anchor"]: row for row in result.table.iter_rows(named=True) if row["score"] == score}
            centre = np.array([rows[a][number] for a in anchors], dtype=np.float64)
            low = np.array([rows[a][f"{number}_low"] for a in anchors], dtype=np.float64)
            high = np.array([rows[a][f"{number}_high"] for a in anchors], dtype=np.float64)
            reach = np.nan_to_num(np.clip([centre - low, high - centre], 0.0, None))
            places = np.arange(len(anchors)) + (i - 0.5) * 0.36
            colour, marker, hatch = LOOKS[score]
            if number == "auc":
                ax.errorbar(
                    places, centre, yerr=reach, fmt=marker, capsize=3, color=colour, label=CONTROL[score],
                    mfc=colour if not hatch else "white", ms=6, mew=1.4,
                )  # fmt: skip
            else:
                ax.bar(
                    places, centre, 0.34, yerr=reach, capsize=3, ecolor=INK, label=CONTROL[score],
                    hatch=hatch, color=colour if not hatch else "white", edgecolor=colour, linewidth=1.0,
                )  # fmt: skip
        marked = [
            (k, paper[a][number]) for k, a in enumerate(anchors) if paper and number in paper.get(a, {})
        ]
        if marked:
            style = {"facecolors": "white", "edgecolors": INK, "label": "the paper's participants"}
            ax.scatter(*zip(*marked, strict=True), marker="D", s=34, zorder=5, **style)
        ax.axhline(chance, color="#999999", linewidth=0.9, linestyle="--")
        ax.set_xticks(range(len(anchors)), [NAMES[a] for a in anchors], fontsize=8)
        ax.set_title(title, fontsize=9, loc="left")
        ax.tick_params(axis="y", labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(
            frameon=False, fontsize=7.5, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3,
            borderaxespad=0.1, columnspacing=1.2, handletextpad=0.5,
        )  # fmt: skip
    return figure
