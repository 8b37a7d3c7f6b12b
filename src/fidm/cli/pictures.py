"""Writing figures from the command line: no window, and never half a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from fidm.errors import DataError
from fidm.files import whole_file

FORMATS = (".png", ".svg", ".pdf")
"""The kinds of picture that can be written."""


def require_format(path: Path) -> None:
    """Raise if a file's ending names no kind of picture we write."""
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"a picture ends in {', '.join(FORMATS)}.", source=str(path))


def save_figure(figure: Figure, paths: Iterable[Path]) -> None:
    """Write a figure to each path, in the format its ending names; the same figure, the same bytes."""
    for path in paths:
        require_format(path)
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
        with whole_file(path) as part, rc_context({"svg.hashsalt": "fidm"}):
            figure.savefig(part, dpi=200, bbox_inches="tight", metadata=undated[path.suffix.lower()])
