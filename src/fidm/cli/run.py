"""``fidm run STUDY``: the whole line, from dialogs or tables to the report, resumed where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from fidm.cli.shared import print_json
from fidm.defaults import RunOptions
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import page, printable, progress_bar, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.run import Step
    from fidm.types import Progress

MARKS = {"done": ("✓", "green"), "up to date": ("·", "dim"), "left out": ("–", "yellow")}
"""How the outcome of a step is marked, and in which colour."""


def run(
    study: Path,
    *,
    options: Annotated[RunOptions, Parameter(name="*", negative=())] = RunOptions(),
    json: bool = False,
) -> int:
    """Take a study from its dialogs, or its tables, to its report.

    Does ground, fit, evidence, localize, reliability, classify and report, each with its defaults and the
    settings of grounding.toml. Steps that are up to date are skipped, so that a run that was interrupted, or
    a study to which dialogs were added, goes on where it has to. Exit code 0: done. 2: the study could not be
    used.

    Parameters
    ----------
    study
        The study folder, with dialogs in talks/, or with tables.
    json
        Print what became of each step as JSON.
    """
    from fidm.run import run_line

    console = None if json else page()
    steps = do_steps(lambda on_progress: run_line(study, options, on_progress=on_progress), console)
    if console is None:
        print_json([asdict(step) for step in steps])
    else:
        say_report(study, console)
    return 0


def do_steps(run_with: Callable[[Progress], Iterator[Step]], console: Console | None) -> list[Step]:
    """Do all steps, printing a line for each as soon as it is finished."""
    steps = []
    told: list[str] = []
    with progress_bar(rates=True) as bars:
        for step in run_with(bars.step):
            steps.append(step)
            if console is not None:
                more = f" ({step.outcome})" if step.outcome != "done" else ""
                said = (printable(step.said + more), "dim")
                line = Text.assemble(MARKS[step.outcome], f" {step.step:<12} ", said)
                console.print(line, soft_wrap=True)
                warn(console, *(one for one in step.warnings if one not in told))
                told += step.warnings
    return steps


def say_report(study: Path, console: Console) -> None:
    """Print where the report is, and what it is not."""
    from fidm.report.report import NAME

    address = (study / NAME).resolve().as_uri()
    console.print(f"\nThe report: open {address}", soft_wrap=True, markup=False)
    console.print(NOT_A_DIAGNOSIS, style="dim")
