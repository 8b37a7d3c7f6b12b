"""``fidm demo``: the whole line on an embedded default, from the task through dialogs to profiles."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm import plot
from fidm.cli.both_ways import compare, say_inferred
from fidm.cli.check import run_check, show
from fidm.cli.console import page
from fidm.cli.fit import show_summary
from fidm.cli.pictures import save_figure
from fidm.cli.progress import progress_bar
from fidm.cohort import Cohort
from fidm.fit.factorized import Model
from fidm.fit.inferred import other_way
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.store import write_grounding
from fidm.io.dialogs import read
from fidm.study.talk import SEVEN_FORMATS, Talks, simulate_talks
from fidm.tasks.behaviour import walk
from fidm.tasks.compile import load_task
from fidm.tasks.solve import solve

SENSIBLE, ERRATIC = 40.0, 8.0
"""Action sensitivities of the two shoppers."""

PEOPLE = 100
"""How many people the demonstration simulates."""

WITHOUT_SPEECH = ("whisper", "csv")
"""The formats that need no further package."""


def demo(*, out: Path = Path("fidm-demo"), seed: int = 1) -> None:
    """Check the grocery task, turn simulated dialogs into moves, and profile the people who spoke.

    Parameters
    ----------
    out
        The folder to write the dialogs, the study and the picture to.
    seed
        The same seed gives the same people.
    """
    console = page()
    task = load_task("grocery")
    show(run_check(task, vary=True), console)
    values = solve(task)
    has_speech = all(importlib.util.find_spec(name) for name in ("rustling", "webvtt"))
    study = out / "study"
    with progress_bar() as bars:
        bars.step("simulating", 0, 1)
        talks = simulate_talks(task, PEOPLE, seed=seed, language="yue")
        shutil.rmtree(study / "talks", ignore_errors=True)  # of an earlier run
        talks.write(study / "talks", formats=SEVEN_FORMATS if has_speech else WITHOUT_SPEECH)
        dialogs = read(study / "talks", on_progress=lambda done, of: bars.step("reading", done, of))
        grounded = ground(dialogs, task, on_progress=bars.step)
        write_grounding(study, grounded, tasks=["grocery"])
        people = grounded.cohort
        fitted = Model(task, values=values).fit(people, on_progress=bars.step)
        profile = fitted.profile(people, on_progress=bars.step)
        other = other_way(fitted, people)
        ways = compare(profile, other.profile(people), other)
        shoppers = [
            walk(task, values, SENSIBLE, seed=seed, label=f"sensible shopper, η = {SENSIBLE:g}"),
            walk(task, values, ERRATIC, seed=seed, label=f"erratic shopper, η = {ERRATIC:g}"),
        ]
        found = fitted.profile(Cohort.from_traces(shoppers))
    _show_words(talks, grounded, console)
    if not has_speech:
        more = "pip install 'fidm[speech]' adds CHAT, ELAN, TextGrid, SRT and WebVTT"
        console.print(f"Written as Whisper JSON and CSV only: {more}.", style="yellow", soft_wrap=True)
    console.print(f"\n[bold]What these {PEOPLE} people are like[/], from what they did and said")
    show_summary(profile, console)
    if ways is not None:
        console.print(Text(say_inferred(ways, is_new=True)), soft_wrap=True)
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
    console.print(f"\nWrote {study}, {paths[0]} and {paths[1]}", soft_wrap=True)


def _show_words(talks: Talks, grounded: Grounded, console: Console) -> None:
    """What became of the dialogs: how many segments are right, and what one of them looks like."""
    formats = len({dialog.transcript.format for dialog in grounded.dialogs})
    shares = grounded.shares()
    console.print(
        f"[bold]From words to moves[/]: {len(talks)} dialogs in {formats} formats, "
        f"{grounded.segments.height:,} segments, {shares.get('needs_review', 0.0):.1%} marked for review",
        soft_wrap=True,
    )
    right = sum(_right(talks, grounded, j) for j in range(len(talks)))
    console.print(
        f"{right / talks.cohort.n_segments:.1%} of segments led through exactly the actions that were meant",
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("one of the simulated people said", overflow="fold", max_width=44)
    table.add_column("program", overflow="fold")
    table.add_column("actions", justify="right")
    dialog = grounded.dialogs[0]
    counts = grounded.segments.filter(grounded.segments["participant"] == dialog.transcript.participant)
    for one, n in list(zip(dialog.segments, counts["n_actions"].to_list(), strict=True))[:4]:
        program = "; ".join(str(step) for step in one.proposal.program)
        table.add_row(Text(one.segment.text.replace("\n", " / ")), Text(program), str(n))
    console.print(table)


def _right(talks: Talks, grounded: Grounded, j: int) -> int:
    """How many segments of a person led through exactly the true actions."""
    truth, found = talks.cohort, grounded.cohort
    counts = []
    for cohort in (truth, found):
        first, last = cohort.step_offsets[j], cohort.step_offsets[j + 1]
        owner = cohort.segment[first:last] if cohort.segment is not None else np.zeros(0)
        n = int(cohort.segment_offsets[j + 1] - cohort.segment_offsets[j])
        counts.append([tuple(cohort.action[first:last][owner == i].tolist()) for i in range(n)])
    return sum(a == b for a, b in zip(*counts, strict=False))
