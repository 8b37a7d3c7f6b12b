"""``fidm demo``: the main job on an embedded default, from the task to profiles and a picture."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from fidm import plot
from fidm.cli.check import run_check, show
from fidm.cli.console import page
from fidm.cli.fit import show_summary
from fidm.cli.pictures import save_figure
from fidm.cli.progress import progress_bar
from fidm.cohort import Cohort
from fidm.fit.factorized import Model
from fidm.study.simulate import simulate_cohort
from fidm.tasks.behaviour import walk
from fidm.tasks.compile import load_task
from fidm.tasks.solve import solve

SENSIBLE, ERRATIC = 40.0, 8.0
"""Action sensitivities of the two shoppers."""

PEOPLE = 100
"""How many people the demonstration simulates."""


def demo(*, out: Path = Path("fidm-demo"), seed: int = 1) -> None:
    """Check the grocery task, profile simulated people, and find two shoppers' sensitivity from their routes.

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
    with progress_bar() as bars:
        bars.step("simulating", 0, 1)
        people = simulate_cohort(task, PEOPLE, seed=seed)
        fitted = Model(task, values=values).fit(people, on_progress=bars.step)
        profile = fitted.profile(people, on_progress=bars.step)
        found = fitted.profile(Cohort.from_traces(shoppers))
    console.print(f"[bold]What {PEOPLE} simulated people are like[/], from what they did and said")
    show_summary(profile, console)
    console.print("\n[bold]Two shoppers[/], and what their routes alone tell about them")
    for j, trace in enumerate(shoppers):
        end = "finished" if trace.finished else "did not finish"
        eta, low, high = found.estimate[j, 0], found.low[j, 0], found.high[j, 0]
        console.print(
            f"  {trace.label}: {len(trace)} actions, {end}; estimated η {eta:.0f} ({low:.0f} to {high:.0f})"
        )
    figure = Figure(figsize=(13, 5.2))
    for trace, ax in zip(shoppers, figure.subplots(1, 2), strict=True):
        plot.routes(task, trace, ax=ax)
    paths = [out / "routes.svg", out / "routes.png"]
    save_figure(figure, paths)
    console.print(f"\nWrote {paths[0]} and {paths[1]}")
