"""One person's evidence at a glance: unexpected actions, the effort of each segment, and both together.

Actions are drawn on the map, one after the other, and both side by side (the paper's figure 5); of effort,
what was observed and what the moves do not explain (figure 6). :func:`localization` draws how well
unexpectedness points at what went wrong: AUC and enrichment at each anchor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from fidm.channels import channel_words
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.evidence.evidence import IN_DOUBT, Evidence
from fidm.evidence.localization import SCORES, Localization
from fidm.fit.profile import number_text
from fidm.plot.maps import bumps_of, draw_map, lanes, spots_of
from fidm.plot.style import (
    INK,
    LESS_HATCH,
    QUIET,
    RESIDUAL_MAP,
    WEIGHT_MAP,
    figure_of,
    new_axes,
    plain,
    plain_ticks,
)
from fidm.tasks.model import TaskModel
from fidm.types import Floats

UNCOUNTED, NOT_COUNTED = "#8C8C8C", "not counted (inferred, in doubt, waiting, no η)"
IMPOSSIBLE = "infinitely unexpected (probability 0)"
HATCH = "/////"
LABEL = "unexpectedness, −log π (nats)"
LETTERS = "abcdefghij"
"""How the most unexpected steps are named on the map and beside it."""


def action_evidence(
    evidence: Evidence,
    participants: Sequence[str] | str,
    *,
    task: TaskModel | None = None,
    episode: str | None = None,
    n_marked: int = 3,
) -> Figure:
    """Draw where one or two people's actions were unexpected: the map beside the steps one after the other.

    All panels have one scale, and the darker a step is, the more unexpected it was. The most unexpected steps
    have a letter that stands on the map and over the bar. Without a map only the steps are drawn.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participants : str or sequence of str
        Who: one or a few, a row each.
    task : TaskModel, optional
        The task with a map. By default that of the evidence where there is only one.
    episode : str, optional
        Which episode; everybody's first by default.
    n_marked : int
        How many steps get a letter, at most ten.
    """
    people = [participants] if isinstance(participants, str) else list(participants)
    if not people:
        raise DataError("There is nobody to draw. Name at least one participant.")
    if not 0 <= n_marked <= len(LETTERS):
        raise DataError(f"n_marked is {n_marked}; it must be between 0 and {len(LETTERS)}.")
    if task is None and len(evidence.tasks.tasks) == 1:
        task = evidence.tasks.tasks[0]
    has_map = task is not None and task.has_places
    own = [own_steps(evidence, name, episode) for name in people]
    top = max(highest(steps) for steps in own)
    figure = Figure(figsize=(12.0, 4.2 * len(people)) if has_map else (7.0, 2.8 * len(people)))
    figure.set_layout_engine("constrained")
    parts: list[SubFigure] = list(figure.subfigures(len(people), 1, squeeze=False)[:, 0])
    rows: list[Axes] = []
    for part, name, steps in zip(parts, people, own, strict=True):
        marked = _marked(steps, n_marked)
        if task is not None and has_map:
            left, right = part.subplots(1, 2, width_ratios=(1.25, 1))
            unexpected_steps(task, evidence, name, episode=episode, top=top, marked=marked, ax=left)
        else:
            right = part.subplots()
        unexpected_row(evidence, name, episode=steps["episode"][0], top=top, marked=marked, ax=right)
        rows.append(right)
    tallest = max(ax.get_ylim()[1] for ax in rows)
    for ax in rows:
        ax.set_ylim(0, tallest)
    return figure


def unexpected_steps(
    task: TaskModel,
    evidence: Evidence,
    participant: str,
    *,
    episode: str | None = None,
    top: float | None = None,
    marked: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw one person's way, the darker the more unexpected each step was; crosses mark other actions.

    Steps that do not count (inferred, in doubt and so of weight 0, waiting, or of a person without an η) are
    thin grey dots. What had a probability of 0 has an ∞ beside it. A bump is a bar at the side where the way
    was not free.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map, or whose states have coordinates.
    evidence : Evidence
        What was found.
    participant : str
        Whose way.
    episode : str, optional
        Which episode; the first by default.
    top : float, optional
        The unexpectedness drawn darkest; by default the largest one of this way, or 1.
    marked : sequence of int
        Steps to name by letters, in this order.
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    steps = own_steps(evidence, participant, episode)
    if not task.has_places:
        raise DataError(f"{task.name} was not drawn as a map. Draw the steps with unexpected_row.")
    ax = draw_map(task, ax=ax)
    spots = spots_of(task, steps["state"].to_numpy())
    shown = ~np.isnan(spots[:, 0])
    at = spots[shown]
    steps = steps.filter(pl.Series(shown))
    counts = counted(steps)
    top = highest(steps) if top is None else top
    scale = shades(top)
    colours = np.asarray(scale.to_rgba(_finite(steps, top)))
    passed = _with_end(task, steps, at)
    ((begin, end),) = lanes([passed])
    moved = np.flatnonzero(np.abs(np.diff(passed, axis=0)).sum(axis=1) > 0)
    _draw_ways(begin, end, colours[moved], counts[moved], ax)
    if task.grid is not None and task.grid.has_bumps:
        rows, bars = bumps_of(task.grid, steps["state"].to_numpy(), steps["action"].cast(pl.String).to_list())
        ink = np.where(counts[rows, None], colours[rows], to_rgba(UNCOUNTED))
        ax.add_collection(LineCollection(list(bars), colors="#555555", linewidths=4.4, zorder=5))
        ax.add_collection(LineCollection(list(bars), colors=list(ink), linewidths=3.2, zorder=5))
    acted = np.flatnonzero(~steps["is_move"].to_numpy() & steps["action"].is_not_null().to_numpy())
    for which, face in ((acted[counts[acted]], colours), (acted[~counts[acted]], None)):
        colour = "white" if face is None else face[which]
        edge = INK if face is not None else UNCOUNTED
        ax.scatter(
            at[which, 0], at[which, 1], c=colour, marker="X", s=58, edgecolors=edge, linewidths=0.7, zorder=6
        )
    place = dict(zip(moved.tolist(), (begin + end) / 2, strict=True))
    row_of = {step: row for row, step in enumerate(steps["step"].to_list())}
    for letter, step in zip(LETTERS, marked, strict=False):
        if step in row_of:
            x, y = place.get(row_of[step], at[row_of[step]])
            _letter(letter, float(x), float(y), ax)
    for i in np.flatnonzero(_infinite(steps)).tolist():
        x, y = place.get(i, at[i])
        ax.annotate("∞", (x, y), (7, 5), textcoords="offset points", fontsize=8, color=INK, zorder=9)
    bar = figure_of(ax).colorbar(scale, ax=ax, fraction=0.035, pad=0.02)
    bar.set_label(LABEL, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    row = evidence.participants.index_of(participant)
    eta = evidence.sensitivity[row] if row is not None else np.nan
    said = "η not estimated" if np.isnan(eta) else f"η = {number_text(float(eta))}"
    marks = ": ✕ marks actions that are no movements" if len(acted) else ""
    plain(ax.set_title(f"{participant}, {said}{marks}", fontsize=9))
    if not (counts[moved].all() and counts[acted].all()):
        grey = Line2D([], [], color=UNCOUNTED, linewidth=1.8, linestyle=":", label=NOT_COUNTED)
        ax.legend(handles=[grey], fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.0))
    return ax


def unexpected_row(
    evidence: Evidence,
    participant: str,
    *,
    episode: str | None = None,
    top: float | None = None,
    marked: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw how unexpected one person's actions were, one after the other; darker is more unexpected.

    Steps that do not count are hatched. What had a probability of 0 is as high as the highest, under an ∞.

    Parameters
    ----------
    evidence, participant, top, marked, ax
        As in :func:`unexpected_steps`.
    episode : str, optional
        Which episode; by default all of them, one after the other.
    """
    steps = evidence.actions.filter(pl.col("participant") == participant)
    if episode is not None:
        steps = steps.filter(pl.col("episode") == episode)
    if not steps.height:
        raise DataError(f"There are no steps of {participant!r} to draw.")
    ax = ax or new_axes(6.4, 2.8)
    top = highest(steps) if top is None else top
    values, counts = _finite(steps, top), counted(steps)
    place = np.arange(1, len(values) + 1)
    colours = np.asarray(shades(top).to_rgba(values))
    ax.bar(
        place[counts],
        values[counts],
        color=colours[counts],
        width=0.85,
        edgecolor="#555555",
        lw=0.4,
        zorder=3,
    )
    if not counts.all():
        ax.bar(
            place[~counts], values[~counts], color="white", edgecolor=UNCOUNTED, hatch=HATCH, lw=0.4,
            width=0.85, label=NOT_COUNTED, zorder=3,
        )  # fmt: skip
    endless = np.flatnonzero(_infinite(steps))
    for row in endless.tolist():
        ax.text(
            row + 1, values[row] + 0.01 * top, "∞", ha="center", va="bottom", fontsize=9, color=INK, zorder=4
        )
    if len(endless):
        ax.plot([], [], marker=r"$\infty$", ls="none", color=INK, ms=8, label=IMPOSSIBLE)
    if len(endless) or not counts.all():
        ax.legend(fontsize=7, frameon=False, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)
    episodes = steps["episode"].to_list()
    for cut in np.flatnonzero([a != b for a, b in itertools.pairwise(episodes)]):
        ax.axvline(cut + 1.5, color=INK, lw=0.8, ls="--", zorder=2)
    for letter, step in zip(LETTERS, marked, strict=False):
        row = int(np.flatnonzero(steps["step"].to_numpy() == step)[0])
        _letter(letter, row + 1, values[row] + (0.14 if row in endless else 0.06) * top, ax)
    ax.set_xlim(0.3, max(len(values), 2) + 0.7)
    ax.set_ylim(0, (1.2 if len(endless) else 1.12) * max(top, float(values.max())))
    ax.set_xlabel("step", fontsize=8.5)
    ax.set_ylabel(LABEL, fontsize=8.5)
    plain(ax.set_title(participant, fontsize=9, loc="left"))
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def own_steps(evidence: Evidence, participant: str, episode: str | None) -> pl.DataFrame:
    """Return the steps of one person in one episode, the first where none is named."""
    steps = evidence.actions.filter(pl.col("participant") == participant)
    first = steps["episode"].first() if episode is None else episode
    steps = steps.filter(pl.col("episode").eq_missing(pl.lit(first, pl.String)))
    if not steps.height:
        where = "" if episode is None else f" in the episode {episode!r}"
        raise DataError(f"There are no steps of {participant!r}{where} to draw.")
    return steps


def counted(steps: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which of these steps enter the likelihood and have a known unexpectedness."""
    return (steps["counts"] & steps["unexpectedness"].is_not_null()).to_numpy()


def highest(steps: pl.DataFrame) -> float:
    """Return the largest finite unexpectedness of the steps that count; 1 at least."""
    values = steps["unexpectedness"].to_numpy()
    return float(np.max(values[counted(steps) & np.isfinite(values)], initial=1.0))


def shades(top: float) -> ScalarMappable:
    """Return the scale from ordinary (light) to the most unexpected (dark)."""
    return ScalarMappable(Normalize(0.0, top), WEIGHT_MAP)


def _finite(steps: pl.DataFrame, top: float) -> Floats:
    """Each step's unexpectedness as it can be drawn: what is not known as 0, infinity as the highest."""
    values = steps["unexpectedness"].to_numpy()
    highest_drawn = float(np.max(values[np.isfinite(values)], initial=top))
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=highest_drawn))


def _infinite(steps: pl.DataFrame) -> NDArray[np.bool_]:
    """Which of these steps had a probability of 0."""
    return np.asarray(np.isposinf(steps["unexpectedness"].to_numpy()))


def _with_end(task: TaskModel, steps: pl.DataFrame, at: Floats) -> Floats:
    """The places passed, and the one the last step led to if it was a movement."""
    last, grid = steps["action"][-1] if steps.height else None, task.grid
    if grid is None:
        if last is None or not steps["is_move"][-1]:
            return at
        pair = task.pair(int(steps["state"][-1]), last)
        return np.append(at, spots_of(task, task.successor[task.successor_offsets[[pair]]]), axis=0)
    cell = grid.after(steps["state"][-1], last) if steps.height else -1
    if cell < 0:
        return at
    return np.append(at, [[float(grid.grid.column[cell]), float(grid.grid.row[cell])]], axis=0)


def _marked(steps: pl.DataFrame, n: int) -> list[int]:
    """The most unexpected counted steps, in the order they were taken."""
    known = steps.filter(pl.Series(counted(steps))).sort("unexpectedness", descending=True).head(n)
    return sorted(known["step"].to_list())


def _draw_ways(begin: Floats, end: Floats, colours: Floats, counts: NDArray[np.bool_], ax: Axes) -> None:
    """Steps from cell to cell, those that count as coloured bands, the others as thin dots."""
    if not len(begin):
        return
    ways = np.stack([begin, end], axis=1)
    sure = list(ways[counts])
    ax.add_collection(LineCollection(sure, colors="#555555", linewidths=4.4, zorder=3))
    ax.add_collection(LineCollection(sure, colors=colours[counts], linewidths=3.2, zorder=4))
    if not counts.all():
        rest = list(ways[~counts])
        ax.add_collection(LineCollection(rest, colors=UNCOUNTED, linewidths=1.8, linestyles=":", zorder=3))
    ax.quiver(
        *((begin + end) / 2).T, *(end - begin).T, color=INK, angles="xy", scale_units="xy", scale=6.0,
        width=0.0022, pivot="mid", zorder=5,
    )  # fmt: skip


def _letter(letter: str, x: float, y: float, ax: Axes) -> None:
    behind = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": INK, "lw": 0.7}
    ax.text(x, y, letter, ha="center", va="center", fontsize=7, color=INK, zorder=9, bbox=behind)


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
    evidence, participant, channel
        As in :func:`effort_evidence`.
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
        if task.has_places:
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
    if task is not None and task.has_places:
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
    anchors = [anchor for anchor in NAMES if anchor in result.anchors]
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
