"""The model as a drawing (the paper's figure 2): who depends on what, and the likelihood in two factors."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Patch, Rectangle

from fidm.plot.style import INK, QUIET, new_axes

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
    if ax is None:
        ax = new_axes(9.6, 4.2)
    for corner, width, height, words in (
        ((1.45, -0.1), 5.75, 5.5, r"participants $j$"), ((2.45, 0.98), 4.5, 3.1, r"steps $i$")
    ):  # fmt: skip
        ax.add_patch(
            FancyBboxPatch(
                corner,
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.18",
                fc="none",
                ec="#888888",
                lw=1,
            )
        )
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
