"""``fidm demo``: the whole line on an embedded default: simulate, ground, fit, evidence, localize, report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm import plot
from fidm.cli.both_ways import compare, say_inferred
from fidm.cli.check import run_check, show
from fidm.cli.evidence import most_astray
from fidm.cli.fit import show_summary
from fidm.cli.simulate import formats_here, say_left_out
from fidm.cohort import Cohort
from fidm.errors import count
from fidm.evidence.evidence import Evidence, find_evidence
from fidm.evidence.localization import Localization, localize
from fidm.experiments.paper import LOCALIZATION
from fidm.fit.factorized import Model
from fidm.fit.inferred import other_way
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.store import write_grounding
from fidm.io.dialogs import read
from fidm.io.study import read_cohort
from fidm.present.evidence import worse_actions
from fidm.present.terminal import note, page, progress_bar, save_figure, table_of, warn
from fidm.record import write_result
from fidm.report.report import write_report
from fidm.simulate.twin import simulate_study
from fidm.tasks.compile import load_task
from fidm.tasks.solve import solve

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
    console = page()
    task = load_task(TASK)
    show(run_check(task, vary=True), console)
    formats = formats_here()
    study, results = out / "study", out / "study" / "results"
    with progress_bar() as bars:
        made = simulate_study(
            study, task=TASK, n=people, seed=seed, formats=formats, overwrite=True, on_progress=bars.step
        )
        truth = read_cohort(study / "truth")
        dialogs = read(study / "talks", on_progress=lambda done, of: bars.step("reading", done, of))
        grounded = ground(dialogs, task, on_progress=bars.step)
        write_grounding(study, grounded, tasks=[TASK])
        cohort = read_cohort(study)
        fitted = Model(task, values=solve(task)).fit(cohort.split("train"), on_progress=bars.step)
        fitted.save(study / "fit.json")
        profile = fitted.profile(cohort, on_progress=bars.step)
        other = other_way(fitted, cohort.split("train"))
        ways = compare(profile, other.profile(cohort), other)
        evidence = find_evidence(fitted, cohort, profile=profile, on_progress=bars.step)
        astray = localize(evidence, cohort, seed=seed, on_progress=bars.step)
        write_result(astray, results)
        bars.step("drawing", 0, 1)
        whom = most_astray(evidence) or cohort.ids[0]
        save_figure(plot.person_evidence(evidence, whom, task=task), [results / "evidence.png"])
        save_figure(plot.localization(astray, paper=LOCALIZATION), [results / "localize.png"])
        report, _ = write_report(study, seed=seed, on_progress=bars.step)
    reasons = ", ".join(f"{reason} ({n})" for reason, n in made.reasons.items())
    console.print(
        f"\n[bold]A simulated study[/]: {count(made.n_people, 'participant')} and "
        f"{sum(made.reasons.values())} excluded: {reasons}",
        soft_wrap=True,
    )
    _show_words(truth, grounded, console)
    if say_left_out(formats):
        warn(console, say_left_out(formats))
    console.print(f"\n[bold]What these {len(cohort)} people are like[/], from what they did and said")
    show_summary(profile, console)
    if ways is not None:
        console.print(Text(say_inferred(ways, is_new=True)), soft_wrap=True)
    _show_evidence(evidence, whom, console)
    _show_localization(astray, console)
    pictures = f"{results / 'evidence.png'} and {results / 'localize.png'}"
    console.print(f"\nWrote {study}, with {pictures}", soft_wrap=True)
    console.print(f"[bold]The report[/]: open {report.resolve().as_uri()}", soft_wrap=True)
    note(
        console,
        f"to look at the groundings yourself, and correct them: fidm review {study} (needs the extra web)",
    )
    console.print("Simulated people; research use only, not a diagnosis.", style="dim")


def _show_words(truth: Cohort, grounded: Grounded, console: Console) -> None:
    """What became of the dialogs: how many segments are right, and what one of them looks like."""
    formats = len({dialog.transcript.format for dialog in grounded.dialogs})
    shares = grounded.shares()
    console.print(
        f"[bold]From words to moves[/]: {len(grounded.dialogs)} dialogs in {formats} formats, "
        f"{grounded.segments.height:,} segments, {shares.get('needs_review', 0.0):.1%} marked for review",
        soft_wrap=True,
    )
    right, of = _right(truth, grounded.cohort)
    console.print(
        f"{right / of:.1%} of segments led through exactly the actions that were meant; this package put "
        "them into words, so that says nothing about real speech",
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


def _right(truth: Cohort, found: Cohort) -> tuple[int, int]:
    """How many segments led through exactly the true actions, of how many."""
    same = found.select(truth.ids.to_list())
    actions = []
    for cohort in (truth, same):
        own = []
        for e in range(cohort.n_episodes):
            first, last = cohort.step_offsets[e], cohort.step_offsets[e + 1]
            owner = cohort.segment[first:last] if cohort.segment is not None else np.zeros(0)
            n = int(cohort.segment_offsets[e + 1] - cohort.segment_offsets[e])
            own.append([tuple(cohort.action[first:last][owner == i].tolist()) for i in range(n)])
        actions.append(own)
    right = sum(a == b for one, two in zip(*actions, strict=True) for a, b in zip(one, two, strict=False))
    return right, truth.n_segments


def _show_evidence(evidence: Evidence, whom: str, console: Console) -> None:
    """The actions of one person that their policy leads one to expect least."""
    console.print(f"\n[bold]Evidence[/]: what {whom} did that was not best, the least expected first")
    rows = [
        [str(row["step"]), str(row["segment"]), row["action"], row["best"], f"{row['probability']:.1%}"]
        for row in worse_actions(evidence, 4, participant=whom).iter_rows(named=True)
    ]
    console.print(table_of(["step", "segment", "did", "best", "probability"], rows, left=4))


def _show_localization(astray: Localization, console: Console) -> None:
    """How well unexpected actions point at detours and shelves passed by."""
    console.print("[bold]Are unexpected actions where people went astray?[/] Two anchors from the map alone")
    names = {"route_divergence": "turned away from the next goal", "bypass": "passed a target by"}
    rows = []
    for anchor, words in names.items():
        row, paper = astray.row(anchor), LOCALIZATION[anchor]
        interval = f"{row['auc']:.3f}"
        if row["auc_low"] is not None:
            interval += f" [{row['auc_low']:.3f}, {row['auc_high']:.3f}]"
        rows.append(
            [words, interval, f"{paper['auc']:.3f}", f"{row['enrichment']:.2f}", f"{paper['enrichment']:.2f}"]
        )
    console.print(table_of(["", "AUC within a person", "paper", "enrichment", "paper"], rows))
    note(
        console,
        "The anchors are found from the same distances as the values, so part of this is circular; and these "
        "people were made to resemble the paper's.",
    )
