"""``fidm demo``: the main job on an embedded default, from the task to a picture of two shoppers."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from fidm import plot
from fidm.cli.check import run_check, show
from fidm.cli.console import page
from fidm.cli.pictures import save_figure
from fidm.tasks.behaviour import walk
from fidm.tasks.compile import load_task
from fidm.tasks.solve import solve

SENSIBLE, ERRATIC = 40.0, 8.0
"""Action sensitivities of the two shoppers."""


def demo(*, out: Path = Path("fidm-demo"), seed: int = 1) -> None:
    """Check and solve the built-in grocery task, let two shoppers walk it, and draw their routes.

    Parameters
    ----------
    out
        The folder to write the picture to.
    seed
        The same seed gives the same shoppers.
    """
    console = page()
    task = load_task("grocery")
    show(run_check(task, vary=True), console)
    values = solve(task)
    shoppers = [
        walk(task, values, SENSIBLE, seed=seed, label=f"sensible shopper, η = {SENSIBLE:g}"),
        walk(task, values, ERRATIC, seed=seed, label=f"erratic shopper, η = {ERRATIC:g}"),
    ]
    console.print()
    for trace in shoppers:
        end = "finished" if trace.finished else "did not finish"
        console.print(f"  {trace.label}: {len(trace)} actions, {end}")
    figure = Figure(figsize=(13, 5.2))
    for trace, ax in zip(shoppers, figure.subplots(1, 2), strict=True):
        plot.routes(task, trace, ax=ax)
    paths = [out / "routes.svg", out / "routes.png"]
    save_figure(figure, paths)
    console.print(f"\nWrote {paths[0]} and {paths[1]}")
