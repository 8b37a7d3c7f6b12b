"""One person's evidence at a glance: the way with its unexpected steps, and the effort of each segment.

How well unexpectedness points at what went wrong: AUC and enrichment at each anchor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from fidm.cohort import Cohort
from fidm.evidence.evidence import Evidence
from fidm.evidence.localization import SCORES, Localization
from fidm.plot.action_evidence import UNCOUNTED, unexpected_row, unexpected_steps
from fidm.plot.effort_evidence import effort_residuals
from fidm.plot.style import INK
from fidm.tasks.model import TaskModel

__all__ = [
    "UNCOUNTED",
    "effort_residuals",
    "evidence_figure",
    "localization",
    "person_evidence",
    "unexpected_row",
    "unexpected_steps",
]


def evidence_figure(
    evidence: Evidence, participant: str, tasks: Sequence[TaskModel], cohort: Cohort
) -> Figure:
    """Draw one person's evidence, with the map of the first episode that has steps on a task with a map.

    Parameters
    ----------
    evidence : Evidence
        What was found.
    participant : str
        Who.
    tasks : sequence of TaskModel
        The tasks.
    cohort : Cohort
        The people.
    """
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
