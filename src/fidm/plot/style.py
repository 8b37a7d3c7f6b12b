"""What the figures share: colours with their grey, and how people and groups are told apart.

Words and units of parameters and channels are in :mod:`fidm.channels`.

Figures as SVG text that can stand in a page: letters stay letters, and nothing is fetched.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure, SubFigure

from fidm.plot.fonts import as_said

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

INK, QUIET, RULE = "#222222", "#666666", "#e6e6e6"
PEOPLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours of people, distinguishable by the colour-blind (Okabe and Ito)."""

WEIGHT_MAP = "YlOrRd"
"""Light is ordinary, dark is heavy; its lightness alone tells the order."""

MORE, NOTHING, LESS = "#8A3000", "#FFFFFF", "#5AA5D8"
"""More than expected, as expected, and less: dark, white and middling in grey."""

RESIDUAL_MAP = LinearSegmentedColormap.from_list("fidm_residual", (LESS, NOTHING, MORE))
"""From less through nothing to more; the farther from nothing, the darker on either side."""

LESS_HATCH = "////"
"""Over what is less than expected, so that it differs from more without colour too."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one person or one group is drawn, told apart by more than its colour.

    Parameters
    ----------
    colour : str
        Of lines and points.
    line : str, or an offset with lengths of dashes and gaps
        How lines are broken.
    marker : str
        The shape of points.
    box : str
        The shape of the box round a number.
    """

    colour: str
    line: Dashes
    marker: str
    box: str


LOOKS = (
    Look(PEOPLE[0], "-", "o", "round,pad=0.25,rounding_size=0.7"),
    Look(PEOPLE[1], (0, (4, 1.5)), "s", "square,pad=0.25"),
    Look(PEOPLE[2], (0, (1.2, 1.2)), "^", "sawtooth,pad=0.3"),
    Look(PEOPLE[3], (0, (7, 1.5, 1.2, 1.5)), "D", "round4,pad=0.3"),
    Look(PEOPLE[4], (0, (9, 2)), "v", "larrow,pad=0.2"),
    Look(PEOPLE[5], (0, (2.5, 2.5)), "P", "rarrow,pad=0.2"),
)
"""How the first, the second … person is drawn; in grey their lines, points and boxes still differ."""


def new_axes(width: float, height: float) -> Axes:
    """Return the one Axes of a new figure of this size, in inches."""
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def figure_of(ax: Axes) -> Figure | SubFigure:
    """Return the figure or the part of one that an Axes stands in."""
    figure = ax.get_figure()
    if figure is None:
        raise ValueError("These Axes were taken out of their figure.")
    return figure


def ink_on(colour: str) -> str:
    """Return the colour of letters that can be read on this one: dark or white."""
    return INK if lightness(colour) > 0.55 else "white"


def lightness(colour: str) -> float:
    """Return how light a colour is in grey, 0 black to 1 white."""
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def quieten(ax: Axes) -> None:
    """Leave an axis what a reader needs: two sides, small ticks and a faint grid."""
    ax.grid(color=RULE, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


UNDATED = {"Date": None, "Creator": None, "Format": None, "Type": None}


def figure_svg(figure: Figure | Axes) -> str:
    """Return a figure as SVG text: the same figure, the same text, with letters that can be searched.

    The text begins with ``<svg`` and refers to nothing outside itself, so it can stand in a page or in a
    ``data:`` address. Letters that no installed font has are kept: whoever looks at it brings
    their own fonts.

    Parameters
    ----------
    figure : Figure or Axes
        What a function of :mod:`fidm.plot` gave back; of Axes, the whole figure they stand in.

    Examples
    --------
    >>> import fidm
    >>> from fidm.plot.style import figure_svg
    >>> text = figure_svg(fidm.plot.draw_map(fidm.load_task("errands")))
    >>> text.startswith("<svg"), "start" in text
    (True, True)
    """
    whole = figure_of(figure).get_figure(root=True) if isinstance(figure, Axes) else figure
    page = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fidm"}), as_said(whole):
        whole.savefig(page, format="svg", bbox_inches="tight", metadata=UNDATED)
    text = page.getvalue()
    text = text[text.index("<svg") :]  # neither a prologue nor a document type, which names an address
    return re.sub(r"^ *<metadata>.*?</metadata>\n", "", text, flags=re.DOTALL | re.MULTILINE)
