"""``fidm report STUDY``: one HTML file with everything there is to say of a study and its people."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from joblib import cpu_count
from rich.console import Console

from fidm.classify.question import LABEL, NORMAL
from fidm.cli.opening import require_writable
from fidm.present.terminal import count, note, page, progress_bar, warn
from fidm.report.opening import write_key
from fidm.report.report import DEIDENTIFIED, NAME, Report, build_report, targets


def report(
    study: Path,
    *,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    use: Path | None = None,
    label: str = LABEL,
    normal: str = NORMAL,
    participant: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    no_classify: Annotated[bool, Parameter(negative=())] = False,
    deidentify: Annotated[bool, Parameter(negative=())] = False,
    key: Path | None = None,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
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
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    use
        A fit.json; by default the study's own, or else one learned now.
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
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    seed
        The same seed gives the same numbers; with --deidentify, the same seed and the same key.
    workers
        Threads and processes; by default one per processor. Changes no number.
    out
        The page; by default report.html in the study.
    json
        Print what was written, and the sections with their tables, as JSON instead of a page.
    """
    target = out if out is not None else study / (DEIDENTIFIED if deidentify else NAME)
    require_writable(target.parent)
    if key is not None:
        require_writable(key.parent)
    targets(target, key=key)
    with progress_bar() as bars:
        found = build_report(
            study,
            task=task,
            use=use,
            label=label,
            normal=normal,
            participants=participant or None,
            classify=not no_classify,
            deidentify=deidentify,
            key=key,
            skip_bad=skip_bad,
            seed=seed,
            workers=cpu_count() if workers is None else workers,
            on_progress=bars.step,
        )
        bars.step("writing", 0, 1)
        if key is not None:
            write_key(key, found.names)
        written = [*found.write(target), *([] if key is None else [key])]
    if json:
        print(jsons.dumps(_for_programs(found, written), indent=2, ensure_ascii=False, allow_nan=False))
        return 0
    _show(found, written, page())
    return 0


def _for_programs(found: Report, written: list[Path]) -> dict[str, Any]:
    """The sections without pictures, and what was written; nothing of single people."""
    sections = [
        {
            **one,
            "tables": [table for table in one["tables"] if table["id"] != "estimates"],
            "figures": [{key: drawn[key] for key in drawn if key != "svg"} for drawn in one["figures"]],
        }
        for one in found.data["sections"]
    ]
    return {
        "written": [str(path) for path in written],
        "n_people": len(found.data["people"]),
        "deidentified": found.is_deidentified,
        "sections": sections,
    }


def _show(found: Report, written: list[Path], console: Console) -> None:
    """Print what is in the report, and where it is."""
    size = sum(path.stat().st_size for path in written[:1]) / 1e6
    people = count(len(found.data["people"]), "participant")
    console.print(f"[bold]Report of {people}[/], {size:,.1f} MB", soft_wrap=True)
    for one in found.data["sections"][0]["paragraphs"]:
        note(console, one)
    if found.is_deidentified:
        note(console, "no words, ids or covariates are in it; look through it before you pass it on")
    elif found.data["shared"]["has_words"]:
        warn(console, "it holds what participants said: keep it as you keep the recordings")
    else:
        warn(console, "it is about single people: keep it as you keep their data")
    console.print(f"\nWrote {', '.join(map(str, written))}", soft_wrap=True, markup=False)
    console.print("Research use only, not a diagnosis.", style="dim")
