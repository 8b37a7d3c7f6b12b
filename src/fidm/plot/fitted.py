"""Words that fit into their place on a map, however large the map is drawn."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text

__all__ = ["FittedText"]

TRIES = 4
"""How often a smaller size is tried."""


class FittedText(Text):
    """A text in the middle of a place on an axis that becomes smaller where it would not fit into it.

    Parameters
    ----------
    ax : Axes
        Where it stands; both directions have the same scale.
    x, y : float
        Its middle, in data coordinates.
    words : str
        What it says.
    room : (float, float)
        How wide and how high it may become, in data coordinates.
    size : float
        How large its letters are where there is room, in points.
    colour : str
        Of the letters.
    zorder : float
        What is drawn later lies on top.
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
