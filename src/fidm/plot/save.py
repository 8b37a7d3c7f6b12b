"""Writing figures to files, and results together with their figures; never half a file."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fidm.errors import DataError
from fidm.files import whole_file
from fidm.record import Result, write_result

FORMATS = (".png", ".svg", ".pdf")
"""The kinds of picture that can be written."""

FIGURES = {
    "calibrate": "fidm.plot.experiments:rank_differences",
    "classify": "fidm.plot.classification:classification_figures",
    "compare": "fidm.plot.experiments:forest",
    "compare-models": "fidm.plot.action_models:model_figures",
    "learning": "fidm.plot.experiments:learning_curve",
    "localize": "fidm.plot.evidence:localization",
    "matched": "fidm.plot.experiments:matched_auc",
    "recover": "fidm.plot.experiments:recovery",
    "reliability": "fidm.plot.experiments:reliability",
    "select": "fidm.plot.experiments:selection_map",
}
"""What draws the result of each experiment."""


def figures_of(result: Result) -> dict[str, Figure]:
    """Return a result's figures by the names of their files; none for a result that has no figure."""
    name = result.record.experiment
    if name not in FIGURES:
        return {}
    module, _, function = FIGURES[name].partition(":")
    draw: Any = getattr(import_module(module), function)
    if name == "localize":
        from fidm.experiments.paper import LOCALIZATION

        drawn: Any = draw(result, paper=LOCALIZATION)
    else:
        drawn = draw(result)
    if isinstance(drawn, Axes):
        drawn = drawn.figure
    return drawn if isinstance(drawn, dict) else {name: drawn}


def write_with_figures(result: Result, folder: Path) -> list[Path]:
    """Write a result's tables and its figures, as PNG and PDF; return what was written."""
    written = list(write_result(result, folder))
    for name, figure in figures_of(result).items():
        pictures = [folder / f"{name}.png", folder / f"{name}.pdf"]
        save_figure(figure, pictures)
        written += pictures
    return written


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
