"""The page about figures runs as it is written, from its first block to its last."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "make-figures.md"


def test_every_block_of_the_page_runs_after_those_before_it():
    blocks = re.findall(
        r"^```(?:\{picture\}[^\n]*\n:code:|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M
    )
    assert len(blocks) >= 8
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert tuple(names["figure"].get_size_inches()) == (7.0, 3.0)
    FigureCanvasAgg(names["figure"]).draw()
