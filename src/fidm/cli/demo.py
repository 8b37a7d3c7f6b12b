"""``fidm demo``: a simulated study, taken through the whole line."""

from __future__ import annotations

from pathlib import Path

from fidm.defaults import RunOptions
from fidm.errors import count
from fidm.present.terminal import note, page, progress_bar, warn

TASK = "grocery"


def demo(*, out: Path = Path("fidm-demo"), seed: int = 1, people: int = 402) -> None:
    """Simulate a whole study, read its dialogs, profile the people who spoke, and write the report.

    Parameters
    ----------
    out
        The folder to write the study, the results and the pictures to.
    seed
        The same seed gives the same people.
    people
        How many simulated people; by default as many as in the paper.
    """
    from fidm.cli.run import do_steps, say_report
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
        checked = check_task(load_task(TASK), on_progress=lambda done, of: bars.step("solving", done, of))
        made = simulate_study(
            study, task=TASK, n=people, seed=seed, formats=formats, overwrite=True, on_progress=bars.step
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
