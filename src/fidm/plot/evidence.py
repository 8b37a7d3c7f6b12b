"""Evidence on the map and along the segments, and how well it points at what went wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm.evidence.evidence import Evidence
from fidm.evidence.localizing import SCORES, Localization
from fidm.plot.maps import INK, PEOPLE, _lanes, draw_map
from fidm.tasks.model import TaskModel

WEIGHT_MAP = "YlOrRd"
"""Light is ordinary, dark is heavy; its lightness alone tells the order."""

HEAVY, LIGHT = "#D55E00", "#56B4E9"
UNCOUNTED, NOT_COUNTED = "#BDBDBD", "not counted (inferred, weight 0, waiting, no η)"
NAMES = {
    "route_divergence": "turned away\nfrom the next goal",
    "route_divergence_clear": "the same, on stretches\nwithout a bypass",
    "bypass": "passed a target by\n(of opportunity steps)",
    "bypass_of_moves": "passed a target by\n(of all movements)",
}
CONTROL = {"unexpectedness": "unexpectedness", "q_gap": "gap in Q alone (no η)"}


def unexpected_steps(
    task: TaskModel,
    evidence: Evidence,
    participant: str,
    *,
    episode: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one person's way, the darker the more unexpected each step was; crosses mark other actions.

    Steps that do not count (inferred, of weight 0, waiting, or of a person without an η) are grey.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map.
    evidence : Evidence
        What was found.
    participant : str
        Whose way.
    episode : str, optional
        Which episode; the first by default.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    steps = evidence.actions.filter(pl.col("participant") == participant)
    first = steps["episode"].first() if episode is None else episode
    steps = steps.filter(pl.col("episode").eq_missing(pl.lit(first, pl.String)))
    if not steps.height or task.grid is None:
        raise DataError(f"There are no steps of {participant!r} to draw on a map.")
    ax = draw_map(task, ax=ax)
    cells = [task.grid.cell(state) for state in steps["state"].to_list()]
    at = np.array([cell[::-1] for cell in cells if cell], dtype=np.float64)
    shown = np.array([cell is not None for cell in cells])
    values = steps["unexpectedness"].to_numpy()[shown]
    counts = _counted(steps)[shown]
    top = np.max(values[counts & np.isfinite(values)], initial=1.0)
    scale = ScalarMappable(Normalize(0.0, float(top)), WEIGHT_MAP)
    begin, end = _lanes(at, beside=0.0)
    moved = np.flatnonzero(np.abs(np.diff(at, axis=0)).sum(axis=1) > 0)
    colours = np.asarray(scale.to_rgba(np.nan_to_num(values, nan=0.0, posinf=float(top))))
    colours[~counts] = to_rgba(UNCOUNTED)
    if len(begin):
        ways = list(np.stack([begin, end], axis=1))
        ax.add_collection(LineCollection(ways, colors="#777777", linewidths=4.2, zorder=3))
        ax.add_collection(LineCollection(ways, colors=colours[moved], linewidths=3.2, zorder=4))
        middle, way = (begin + end) / 2, end - begin
        ax.quiver(
            *middle.T, *way.T, color=INK, angles="xy", scale_units="xy", scale=6.0, width=0.0022, pivot="mid",
            zorder=5,
        )  # fmt: skip
    acted = np.flatnonzero(
        ~steps["is_move"].to_numpy()[shown] & steps["action"].is_not_null().to_numpy()[shown]
    )
    x, y = at[acted, 0], at[acted, 1]
    ax.scatter(x, y, c=colours[acted], marker="X", s=58, edgecolors=INK, linewidths=0.7, zorder=6)
    bar = ax.figure.colorbar(scale, ax=ax, fraction=0.035, pad=0.02)
    bar.set_label("unexpectedness, −log π", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    row = evidence.participants.index_of(participant)
    eta = evidence.sensitivity[row] if row is not None else np.nan
    marks = ": ✕ marks actions that are no movements" if len(acted) else ""
    ax.set_title(f"{participant}, η = {eta:.1f}{marks}", fontsize=9)
    if not (counts[moved].all() and counts[acted].all()):
        grey = Line2D([], [], color=UNCOUNTED, linewidth=3.2, label=NOT_COUNTED)
        ax.legend(handles=[grey], fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.0))
    return ax


def _counted(steps: pl.DataFrame) -> NDArray[np.bool_]:
    """Which of these steps enter the likelihood and have a known unexpectedness."""
    return (steps["counts"] & steps["unexpectedness"].is_not_null()).to_numpy()


def effort_residuals(evidence: Evidence, participant: str, channel: str, *, ax: Axes | None = None) -> Axes:
    """Draw how much more each of a person's segments cost than its moves explain.

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
    if channel not in evidence.channels:
        raise DataError(f"There is no effort channel {channel!r}.")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 3))[1]
    own = evidence.segments.filter(pl.col("participant") == participant)
    values = own[f"{channel}_residual"].cast(pl.Float64).to_numpy()
    places = np.arange(len(values))
    ax.bar(places, np.nan_to_num(values), color=np.where(values > 0, HEAVY, LIGHT), width=0.8)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    every = max(1, len(values) // 20)
    ax.set_xticks(places[::every], own["segment"].to_list()[::every], fontsize=6.5)
    unit = "difference" if channel in evidence.yes_no else "log ratio"
    ax.set_ylabel(f"{channel.replace('_', ' ')}\n{unit}", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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


def unexpected_row(evidence: Evidence, participant: str, *, ax: Axes | None = None) -> Axes:
    """Draw how unexpected one person's actions were, one after the other, for tasks without a map.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participant : str
        Whose actions.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 3))[1]
    steps = evidence.actions.filter(pl.col("participant") == participant)
    values, counts = steps["unexpectedness"].to_numpy(), _counted(steps)
    values = np.where(np.isfinite(values), values, 0.0)
    place = np.arange(1, len(values) + 1)
    ax.bar(place[counts], values[counts], color=PEOPLE[0], width=0.8)
    if not counts.all():
        ax.bar(place[~counts], values[~counts], color=UNCOUNTED, width=0.8, label=NOT_COUNTED)
        ax.legend(fontsize=7, frameon=False)
    ax.set_xlabel("action", fontsize=8)
    ax.set_ylabel("unexpectedness, −log π", fontsize=8)
    ax.set_title(participant, fontsize=9)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


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
            style = {"color": PEOPLE[i], "label": CONTROL[score]}
            if number == "auc":
                ax.errorbar(places, centre, yerr=reach, fmt="o", capsize=3, **style)
            else:
                ax.bar(places, centre, 0.34, yerr=reach, capsize=3, ecolor=INK, **style)
        marked = [
            (k, paper[a][number]) for k, a in enumerate(anchors) if paper and number in paper.get(a, {})
        ]
        if marked:
            style = {"facecolors": "white", "edgecolors": INK, "label": "the paper's participants"}
            ax.scatter(*zip(*marked, strict=True), marker="D", s=34, zorder=5, **style)
        ax.axhline(chance, color="#999999", linewidth=0.9, linestyle="--")
        ax.set_xticks(range(len(anchors)), [NAMES[a] for a in anchors], fontsize=8)
        ax.set_title(title, fontsize=9)
        ax.tick_params(axis="y", labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=7.5, loc="lower right" if number == "auc" else "upper left")
    return figure
