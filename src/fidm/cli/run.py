"""``fidm run`` and ``demo``: the whole line, from dialogs or tables to a report, resumed where it stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.text import Text

from fidm.cli.shared import print_json
from fidm.defaults import RunOptions
from fidm.errors import count
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import note, page, printable, progress_bar, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.run import Step
    from fidm.types import Progress

MARKS = {"done": ("✓", "green"), "up to date": ("·", "dim"), "left out": ("–", "yellow")}
"""How the outcome of a step is marked, and in which colour."""

DEMO_TASK = "grocery"


def run(
    study: Path,
    *,
    options: Annotated[RunOptions, Parameter(name="*", negative=())] = RunOptions(),
    json: bool = False,
) -> int:
    """Take a study from its dialogs, or its tables, to its report.

    Does ground, fit, evidence, localize, reliability, compare (people of different status), classify and
    report, each with its defaults and the settings of grounding.toml. Steps that are up to date are skipped,
    so that a run that was interrupted, or a study to which dialogs were added, goes on where it has to. Exit
    code 0: done. 2: the study could not be used.

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
    with progress_bar() as bars:
        for step in run_with(bars.step):
            steps.append(step)
            if console is not None:
                more = f" ({step.outcome})" if step.outcome != "done" else ""
                said = (printable(step.said + more), "dim")
                line = Text.assemble(MARKS[step.outcome], f" {step.step:<12} ", said)
                console.print(line, soft_wrap=True)
                note(console, *step.notes)
                warn(console, *(one for one in step.warnings if one not in told))
                told += step.warnings
    return steps


def say_report(study: Path, console: Console) -> None:
    """Print where the report is, and what it is not."""
    from fidm.report.report import NAME

    address = (study / NAME).resolve().as_uri()
    console.print(f"\nThe report: open {address}", soft_wrap=True, markup=False)
    console.print(NOT_A_DIAGNOSIS, style="dim")


def demo(
    *, out: Path = Path("fidm-demo"), seed: int = 1, people: int = 402, language: str | None = None
) -> None:
    """Simulate a whole study, read its dialogs, profile the people who spoke, and write the report.

    Parameters
    ----------
    out
        The folder to write the study, the results and the pictures to.
    seed
        The same seed gives the same people.
    people
        How many simulated people; by default as many as in the paper.
    language
        What they speak, such as en, yue (Cantonese) or zh (Mandarin); see fidm list languages. By default
        the language of this terminal (LC_ALL, LC_MESSAGES, LANG) if people can be simulated in it, else
        English.
    """
    from fidm.present.experiments import say_left_out
    from fidm.present.study import show_demo
    from fidm.present.task import show_check
    from fidm.run import run_line
    from fidm.simulate.talk import formats_here
    from fidm.simulate.twin import simulate_study
    from fidm.tasks.check import check_task
    from fidm.tasks.compile import load_task

    console = page()
    formats, study = formats_here(), out / "study"
    with progress_bar() as bars:
        checked = check_task(
            load_task(DEMO_TASK), on_progress=lambda done, of: bars.step("solving", done, of)
        )
        made = simulate_study(
            study,
            task=DEMO_TASK,
            n=people,
            seed=seed,
            language=language or spoken_here(os.environ),
            formats=formats,
            overwrite=True,
            on_progress=bars.step,
        )
    show_check(checked, console)
    reasons = ", ".join(f"{reason} ({n})" for reason, n in made.reasons.items())
    console.print(
        f"\n[bold]A simulated study[/]: {count(made.n_people, 'participant')} and "
        f"{sum(made.reasons.values())} excluded: {reasons}\n",
        soft_wrap=True,
    )
    if say_left_out(formats):
        warn(console, say_left_out(formats))
    do_steps(lambda step: run_line(study, RunOptions(seed=seed), on_progress=step), console)
    show_demo(study, console)
    console.print(f"\nWrote {study}, with tables and figures in {study / 'results'}", soft_wrap=True)
    note(
        console,
        f"to look at the groundings yourself, and correct them: fidm review {study} (needs the extra web)",
        "these people are simulated, and made to resemble the paper's",
    )
    say_report(study, console)


def spoken_here(environment: Mapping[str, str]) -> str:
    """Return the language of the terminal if simulated people speak it, else English.

    Examples
    --------
    >>> spoken_here({"LANG": "zh_HK.UTF-8"}), spoken_here({"LC_ALL": "C", "LANG": "yue_HK"})
    ('yue', 'en')
    """
    from fidm.languages import language_called
    from fidm.simulate.speaking import languages

    known = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    named = re.split(r"[.@]", next(filter(None, known), ""))[0].lower().replace("_", "-")
    spoken = language_called(named) or named.split("-")[0]
    return spoken if spoken in languages() else "en"
