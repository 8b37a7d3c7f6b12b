"""``fidm report STUDY``: one HTML file with everything there is to say of a study and its people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fidm.cli.shared import (
    Flag,
    Many,
    ReadingFit,
    print_json,
    require_writable,
)
from fidm.defaults import LABEL, NORMAL
from fidm.errors import count
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import note, page, progress_bar, warn

if TYPE_CHECKING:
    from rich.console import Console

    from fidm.report.report import Report


def report(
    study: Path,
    *,
    reading: ReadingFit = ReadingFit(),
    label: str = LABEL,
    normal: str = NORMAL,
    participant: Many = (),
    no_classify: Flag = False,
    deidentify: Flag = False,
    key: Path | None = None,
    seed: int = 1,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Write a study's report: one HTML file that opens in any browser, without a network.

    It says who is in the study, how words became moves, what was estimated and how far that can be trusted,
    and shows every person's route, unexpected steps, effort and words, linked with each other. Writes
    report.html and report.json, which hold what participants said and which their owner alone can read; with
    --deidentify report-deidentified.html and .json, which hold neither words nor ids. Exit code 0: done.
    2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    label
        The participants' column with their status.
    normal
        The status of healthy people, who are told from all others.
    participant
        Show this person only; may be repeated. Numbers about the cohort stay those of everybody.
    no_classify
        Leave classification out, which takes the most time.
    deidentify
        Leave out words, ids, covariates other than status and split, speakers, reviewers and names of files.
        People are called P001 and so on, and stand in the order of these names, which is random.
    key
        Keep who is called what in this file, for its owner alone; used again if it is there.
    seed
        The same seed gives the same numbers; with --deidentify, the same seed and the same key.
    workers
        Threads and processes; by default one per processor. Changes no number.
    out
        The page; by default report.html in the study.
    json
        Print what was written, and the sections with their tables, as JSON instead of a page.
    """
    from joblib import cpu_count

    from fidm.present.next import say_next
    from fidm.report.opening import write_key
    from fidm.report.report import DEIDENTIFIED, NAME, build_report, targets

    target = out if out is not None else study / (DEIDENTIFIED if deidentify else NAME)
    require_writable(target.parent)
    if key is not None:
        require_writable(key.parent)
    targets(target, key=key)
    with progress_bar() as bars:
        found = build_report(
            study,
            task=reading.task,
            use=reading.use,
            label=label,
            normal=normal,
            participants=participant or None,
            classify=not no_classify,
            deidentify=deidentify,
            key=key,
            skip_bad=reading.leave_out,
            seed=seed,
            workers=cpu_count() if workers is None else workers,
            on_progress=bars.step,
        )
        bars.step("writing", 0, 1)
        if key is not None:
            write_key(key, found.names)
        written = [*found.write(target), *([] if key is None else [key])]
    if json:
        print_json({"written": [str(path) for path in written], **found.about()})
        return 0
    console = page()
    _show(found, written, console)
    say_next(console, study, after="report", skip=reading.leave_out)
    return 0


def _show(found: Report, written: list[Path], console: Console) -> None:
    """Print what is in the report, and where it is."""
    size = sum(path.stat().st_size for path in written[:1]) / 1e6
    people = count(len(found.data["people"]), "participant")
    console.print(f"[bold]Report of {people}[/], {size:,.1f} MB", soft_wrap=True)
    note(console, *found.data["sections"][0]["paragraphs"])
    if found.is_deidentified:
        note(console, "no words, ids or covariates are in it; look through it before you pass it on")
    elif found.data["shared"]["has_words"]:
        warn(console, "it holds what participants said: keep it as you keep the recordings")
    else:
        warn(console, "it is about single people: keep it as you keep their data")
    console.print(f"\nWrote {', '.join(map(str, written))}", soft_wrap=True, markup=False)
    console.print(NOT_A_DIAGNOSIS, style="dim")
