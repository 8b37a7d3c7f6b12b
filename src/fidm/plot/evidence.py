"""One person's evidence at a glance: the way with its unexpected steps, and the effort of each segment."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fidm.evidence.evidence import Evidence
from fidm.plot.action_evidence import UNCOUNTED, unexpected_row, unexpected_steps
from fidm.plot.effort_evidence import effort_residuals
from fidm.plot.localizing import localization
from fidm.plot.style import INK
from fidm.tasks.model import TaskModel

__all__ = [
    "UNCOUNTED",
    "effort_residuals",
    "localization",
    "person_evidence",
    "unexpected_row",
    "unexpected_steps",
]


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
