"""Figures as SVG text that can stand in a page: letters stay letters, and nothing is fetched."""

from __future__ import annotations

import io
import re

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.plot.fonts import as_said
from fidm.plot.style import figure_of

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
    >>> from fidm.plot.vector import figure_svg
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
