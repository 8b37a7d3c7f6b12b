"""How much was said along the way (the right of the paper's figure 1), and that figure as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from numpy.typing import NDArray

from fidm.channels import channel_words
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.plot.maps import routes
from fidm.plot.style import INK, LOOKS, QUIET, new_axes, plain_legend, quieten
from fidm.tasks.model import TaskModel
from fidm.types import Trace

QUANTITIES = {"n_characters": "characters", "duration_s": "duration", "n_turns": "turns", "pause_s": "pause"}
"""What can be laid along the way, by the column of the segments: the channel that is about it."""


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """How much one person said at each step of an episode."""

    participant: str  # who
    # [L]: how much was said at each step: a segment's amount spread evenly over its steps. NaN where the step
    # belongs to no segment or nothing was observed.
    per_step: NDArray[np.float64]
    # What was said in segments without a step: after how many steps, and how much.
    without: list[tuple[float, float]]
    total: float  # all of it


def verbal_output(
    cohort: Cohort,
    participants: Sequence[str] | str,
    *,
    quantity: str = "n_characters",
    episode: Sequence[str] | str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much was said at each step of the way: the characters of a segment spread over its steps.

    What was said without taking a step stands between the steps as a pin with its mark on top. Nothing is
    drawn where a step belongs to no segment or nothing was observed. Steps are counted as in the table of
    steps, inferred ones included.

    Parameters
    ----------
    cohort : Cohort
        People whose steps know their segments, such as grounded ones.
    participants : str or sequence of str
        Who: one or several.
    quantity : {"n_characters", "duration_s", "n_turns", "pause_s"}
        Which column of the segments.
    episode : str or sequence of str, optional
        Which episode, the same of everybody or one each; everybody's first by default.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import fidm
    >>> cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    >>> fidm.plot.verbal_output(cohort, ["P0000001", "P0000002"]).get_xlabel()
    'step along the way'
    """
    people = [participants] if isinstance(participants, str) else list(participants)
    if not people:
        raise DataError("There is nobody to draw. Name at least one participant.")
    if quantity not in QUANTITIES:
        raise DataError(f"quantity is {quantity!r}; it must be one of {', '.join(QUANTITIES)}.")
    which = [episode] * len(people) if episode is None or isinstance(episode, str) else list(episode)
    if len(which) != len(people):
        raise DataError(f"There are {len(which)} episodes for {len(people)} people. Name one for each.")
    found = [
        said_along(cohort, name, quantity=quantity, episode=one)
        for name, one in zip(people, which, strict=True)
    ]
    ax = ax or new_axes(6.4, 2.8)
    handles = []
    for i, one in enumerate(found):
        look = LOOKS[i % len(LOOKS)]
        edges = np.arange(len(one.per_step) + 1) + 0.5
        ax.stairs(one.per_step, edges, color=look.colour, fill=True, alpha=0.16, zorder=2)
        ax.stairs(one.per_step, edges, color=look.colour, lw=1.6, ls=look.line, baseline=None, zorder=3 + i)
        if one.without:
            x, y = zip(*one.without, strict=True)
            ax.vlines(x, 0, y, color=look.colour, lw=1.0, ls=look.line, zorder=3)
            ax.plot(x, y, look.marker, color=look.colour, ms=5, mec="white", mew=0.7, zorder=5 + i)
        marker = look.marker if one.without else "none"
        handles.append(Line2D([], [], color=look.colour, ls=look.line, marker=marker, lw=1.8, ms=5))
    words = channel_words(QUANTITIES[quantity])
    in_seconds = f" ({words.unit})" if words.unit == "s" else ""
    quieten(ax)
    ax.grid(visible=False, axis="x")
    ax.set_xlim(0.5, max(2, *(len(one.per_step) for one in found)) + 0.5)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("step along the way", fontsize=8.5)
    ax.set_ylabel(f"{words.name}{in_seconds}\nper step", fontsize=8.5)
    legend = ax.legend(
        handles, [str(i) for i in range(len(found))], frameon=False, fontsize=8, loc="lower left",
        bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=3.4, borderaxespad=0.2,
    )  # fmt: skip
    totals = [
        f"{one.participant}: {one.total:,.0f} {words.unit} in {len(one.per_step)} steps" for one in found
    ]
    plain_legend(legend, totals)
    if any(one.without for one in found):
        ax.set_title("pins: said without a step", fontsize=7.5, loc="right", pad=4)
    return ax


def said_along(
    cohort: Cohort, participant: str, *, quantity: str = "n_characters", episode: str | None = None
) -> Said:
    """Return how much one person said at each step, as :func:`verbal_output` draws it."""
    if quantity not in cohort.segments.columns:
        raise DataError(
            f"The segments have no column {quantity!r}, so there is nothing to lay along the way."
        )
    if cohort.segment is None:
        raise DataError("No step knows its segment, so it is not known what was said where.")
    e = _episode(cohort, participant, episode)
    steps = slice(int(cohort.step_offsets[e]), int(cohort.step_offsets[e + 1]))
    rows = slice(int(cohort.segment_offsets[e]), int(cohort.segment_offsets[e + 1]))
    amount = cohort.segments[quantity][rows].cast(pl.Float64).to_numpy()
    of_step = cohort.segment[steps]
    share = np.bincount(of_step[of_step >= 0], minlength=len(amount))
    per_step = np.full(len(of_step), np.nan)
    held = of_step >= 0
    per_step[held] = amount[of_step[held]] / share[of_step[held]]
    without, passed = [], 0
    for row, n_steps in enumerate(share.tolist()):
        if n_steps:
            passed = max(passed, int(np.flatnonzero(of_step == row)[-1]) + 1)
        elif amount[row] > 0:
            without.append((passed + 0.5, float(amount[row])))
    return Said(str(participant), per_step, without, float(np.nansum(amount)))


def _episode(cohort: Cohort, participant: str, episode: str | None) -> int:
    """The row of this episode of a person, of the first where none is named."""
    keys = cohort.episode_keys().with_row_index("row").filter(participant=str(participant))
    if not keys.height:
        cohort.select([participant])  # says that there is no such person, if that is so
        raise DataError(f"{participant!r} has no episode.")
    if episode is not None:
        keys = keys.filter(pl.col("episode") == episode)
        if not keys.height:
            raise DataError(f"{participant!r} has no episode {episode!r}.")
    return int(keys["row"][0])


def figure_one(
    task: TaskModel,
    cohort: Cohort,
    *,
    walkers: Sequence[str],
    speakers: Sequence[str] | None = None,
    quantity: str = "n_characters",
) -> Figure:
    """Draw the paper's figure 1: the ways of some people on the left, what they said along them on the right.

    Parameters
    ----------
    task : TaskModel
        A task that was drawn as a map; each person's first episode on it is drawn.
    cohort : Cohort
        The people.
    walkers : sequence of str
        Whose ways.
    speakers : sequence of str, optional
        Whose words; the walkers' by default.
    quantity : str
        As in :func:`verbal_output`.
    """
    speakers = list(speakers or walkers)
    spoken = [_first_on(task, cohort, name)[0] for name in speakers]
    walks = [_first_on(task, cohort, name)[1] for name in walkers]
    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    routes(task, walks, ax=left)
    verbal_output(cohort, speakers, quantity=quantity, episode=spoken, ax=right)
    return figure


def _first_on(task: TaskModel, cohort: Cohort, participant: str) -> tuple[str, Trace]:
    """A person's first episode on a task: its name and its walk."""
    names = cohort.episode_keys().filter(participant=participant)["episode"].to_list()
    for name, trace in zip(names, cohort.traces(participant), strict=True):
        if trace.task == task.name:
            return name, trace
    raise DataError(f"{participant!r} has no episode on {task.name!r}.")


ACTION, EFFORT, OBSERVED = "#0072B2", "#B34700", "#DDDDDD"


NODES = {
    "M": (0.75, 3.1, "$M$", "square"),
    "eta": (2.3, 4.75, r"$\eta_j$", "open"),
    "theta": (2.3, 0.55, r"$\theta_j$", "open"),
    "state": (3.1, 3.1, "$s_i$", "seen"),
    "action": (4.7, 3.1, "$a_i$", "seen"),
    "next": (6.3, 3.1, "$s_{i+1}$", "seen"),
    "effort": (4.7, 1.55, "$e_i$", "seen"),
}
"""Where each quantity stands, how it is written, and whether it is seen."""


ARROWS = (
    ("M", "state", INK, 0.0), ("state", "action", ACTION, 0.0), ("eta", "action", ACTION, 0.0),
    ("M", "action", ACTION, -0.32), ("action", "next", INK, 0.0), ("state", "next", INK, -0.42),
    ("action", "effort", EFFORT, 0.0), ("state", "effort", EFFORT, 0.0), ("theta", "effort", EFFORT, 0.0),
    ("M", "effort", EFFORT, 0.24),
)  # fmt: skip
"""Which depends on which: from, to, the colour of the factor it belongs to, and how far it is bent."""


SIZE = 0.4


def factor_graph(*, ax: Axes | None = None) -> Axes:
    """Draw the model: the graph on the left, the likelihood as an action factor and an effort factor.

    Grey circles are seen, white ones are a person's own parameters, the square is the task that everybody
    shares. Arrows of the action factor are solid, those of the effort factor dashed.

    Parameters
    ----------
    ax : Axes, optional
        Where to draw; a new figure by default.
    """
    ax = ax or new_axes(9.6, 4.2)
    for corner, width, height, words in (
        ((1.45, -0.1), 5.75, 5.5, r"participants $j$"), ((2.45, 0.98), 4.5, 3.1, r"steps $i$")
    ):  # fmt: skip
        box = "round,pad=0,rounding_size=0.18"
        ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle=box, fc="none", ec="#888888", lw=1))
        ax.text(
            corner[0] + width - 0.15, corner[1] + 0.12, words, ha="right", va="bottom", fontsize=8.5,
            color=QUIET,
        )  # fmt: skip
    shapes: dict[str, Patch] = {}
    for name, (x, y, words, kind) in NODES.items():
        if kind == "square":
            shape: Patch = Rectangle(
                (x - SIZE, y - SIZE), 2 * SIZE, 2 * SIZE, fc=OBSERVED, ec=INK, lw=1.3, zorder=3
            )
        else:
            face = OBSERVED if kind == "seen" else "white"
            shape = Circle((x, y), SIZE, fc=face, ec=INK, lw=1.3 if kind == "seen" else 2.0, zorder=3)
        shapes[name] = shape
        ax.add_patch(shape)
        ax.text(x, y, words, ha="center", va="center", fontsize=13, color=INK, zorder=4)
    for source, target, colour, bend in ARROWS:
        ax.add_patch(
            FancyArrowPatch(
                NODES[source][:2], NODES[target][:2], arrowstyle="-|>", mutation_scale=13, lw=1.5, zorder=2,
                linestyle=(0, (4, 1.6)) if colour == EFFORT else "-", shrinkA=0, shrinkB=1.5,
                patchA=shapes[source], patchB=shapes[target], color=colour,
                connectionstyle=f"arc3,rad={bend}",
            )
        )  # fmt: skip
    ax.text(0.75, 2.45, "task", ha="center", fontsize=8.5, color=QUIET)
    _likelihood(ax)
    ax.set(xlim=(0.2, 14.0), ylim=(-0.3, 5.6), aspect="equal")
    ax.set_axis_off()
    return ax


def _likelihood(ax: Axes) -> None:
    """The likelihood of a trace in its two factors, with what each of them is in words."""
    left = 7.75
    ax.text(
        left, 4.85, r"$p(\zeta_j \mid \eta_j, \theta_j, M)\;\propto\;\prod_i$", fontsize=13, color=INK,
        va="center",
    )  # fmt: skip
    for y, colour, line, formula, words in (
        (3.45, ACTION, "-", r"$\pi(a_i \mid s_i;\, \eta_j, M)\;\propto\;e^{\,\eta_j Q(s_i, a_i)}$",
         "action factor: which action is chosen"),
        (1.15, EFFORT, (0, (4, 1.6)), r"$p(e_i \mid s_i, a_i;\, \theta_j, M)$",
         "effort factor: what carrying it out costs"),
    ):  # fmt: skip
        ax.add_patch(
            FancyBboxPatch(
                (left, y - 0.75), 6.1, 1.5, boxstyle="round,pad=0,rounding_size=0.15", fc="white", ec=colour,
                lw=1.6, ls=line,
            )
        )  # fmt: skip
        ax.text(left + 0.3, y + 0.2, formula, fontsize=13, color=INK, va="center")
        ax.text(left + 0.3, y - 0.48, words, fontsize=8.5, color=colour, va="center")
    ax.text(left + 3.05, 2.3, r"$\times$", fontsize=15, color=INK, ha="center", va="center")
