"""``fidm ground``: the dialogs of a study become steps and segments, with everything to lead them back."""

from __future__ import annotations

import json as jsons
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.errors import DataError, count
from fidm.grounding.ground import NOTHING_SAID, Grounded, ground
from fidm.grounding.review.apply import Applied, apply_review
from fidm.grounding.review.trail import Trail
from fidm.grounding.settings import GroundingFile, read_settings
from fidm.grounding.store import ANSWERS, alone_in, known_participants, private_folder, write_grounding
from fidm.io.columns import count_reasons, excluded_people, say_reasons
from fidm.io.dialogs import formats, read
from fidm.io.study import recover
from fidm.present.terminal import aside, page, progress_bar, warn
from fidm.tasks.compile import load_task
from fidm.tasks.spec import builtin_tasks

API_KEY = "FIDM_API_KEY"
"""The environment variable that holds a server's key; a key on the command line could be seen by others."""


def ground_study(
    study: Path,
    *,
    talks: Path | None = None,
    task: str | None = None,
    by: Literal["rules", "llm", "hybrid"] | None = None,
    language: str | None = None,
    roles: Path | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    samples: int | None = None,
    workers: int | None = None,
    allow_remote: bool = False,
    skip_bad: bool = False,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Turn the dialogs of a study into steps and segments.

    Dialogs of participants who are excluded are read too; they reach no fit.

    Parameters
    ----------
    study
        The study folder; grounding.toml in it may hold settings.
    talks
        Where the dialogs are; by default the folder talks in the study.
    task
        A built-in task or the path of a task file; by default the one study.toml names.
    by
        Who reads the dialogs: rules, a language model on this machine (llm), or it where rules are unsure.
    language
        The dialogs' language (yue, en) or a language file; by default each file's own.
    roles
        A file that says which speaker is the participant and which the assessor.
    endpoint
        The address of the language model's server.
    model
        The name of the language model.
    samples
        How many answers to take from the language model; different ones are kept as alternatives.
    workers
        How many dialogs are read at the same time (llm and hybrid).
    allow_remote
        Allow a server on another machine. What participants said then leaves this one.
    skip_bad
        Leave out dialogs that cannot be read, and list what is wrong with them.
    json
        Print the result as JSON.
    """
    if not study.is_dir():
        raise DataError("is not a folder.", source=str(study))
    if recover(study):
        aside().print("A replacement of this study's tables was interrupted; they are back as they were.")
    Trail(study)  # decisions that were tampered with are found before the work, not after it
    chosen = _with_options(read_settings(study), by, language, endpoint, model, samples, workers)
    name, source = _task(study, task)
    loaded = load_task(source)
    place = talks if talks is not None else study / chosen.talks
    if not place.exists() and (study.parent / "study.toml").exists():
        raise DataError(f"is not there. Did you mean the study {study.parent}?", source=str(place))
    if not place.exists():
        raise DataError(
            "is not there. Put the dialogs into it, or say where they are with --talks.", source=str(place)
        )
    reasons = count_reasons(excluded_people(known_participants(study), source=str(study)))
    console = page()
    with alone_in(study), progress_bar(rates=True) as bars:
        dialogs = read(
            place,
            names=chosen.names,
            roles=roles if roles is not None else chosen.speakers or None,
            columns=chosen.columns or None,
            strict=not skip_bad,
            untimed=chosen.untimed,
            on_progress=lambda done, of: bars.step("reading", done, of),
        )
        if not len(dialogs):
            raise DataError("has no dialog that can be used.", source=str(place))
        cache = None if chosen.by == "rules" else private_folder(study) / ANSWERS
        grounder = chosen.grounder(cache=cache, allow_remote=allow_remote, api_key=os.environ.get(API_KEY))
        try:
            grounded = ground(
                dialogs,
                loaded,
                by=grounder,
                settings=chosen.settings(),
                workers=1 if chosen.by == "rules" else chosen.llm.workers,
                on_progress=bars.step,
            )
            agreement = _agreement(grounder)
        finally:
            grounder.close()
        also = {"speakers": dict(chosen.speakers), "columns": dict(chosen.columns), "untimed": chosen.untimed}
        grounded = replace(grounded, provenance={**grounded.provenance, "reading": also})
        bars.step("writing", 0, 1)
        write_grounding(study, grounded, tasks=[name], problems=dialogs.problems)
        applied = apply_review(study, on_progress=bars.step, is_alone=True)
        grounded = grounded if applied is None else applied.grounded
    if json:
        report = _report(study, grounded, dialogs.problems, reasons, agreement)
        report["review"] = None if applied is None else applied.counts()
        print(jsons.dumps(report, indent=2, ensure_ascii=False))
    else:
        _show(study, grounded, dialogs.problems, reasons, agreement, chosen, console)
        if applied is not None:
            _show_applied(applied, console)
        console.print(f"\nWrote the tables and grounding/ to {study}", soft_wrap=True, markup=False)
        strange = _strange_files(place)
        if strange:
            kinds = ", ".join(sorted({path.suffix or "no suffix" for path in strange}))
            said = f"{count(len(strange), 'file')} beside the dialogs not read: no known format has {kinds}"
            console.print(Text.assemble(("! ", "yellow"), said), soft_wrap=True)
    return 0


def _with_options(
    file: GroundingFile,
    by: Literal["rules", "llm", "hybrid"] | None,
    language: str | None,
    endpoint: str | None,
    model: str | None,
    samples: int | None,
    workers: int | None,
) -> GroundingFile:
    """The file's settings with what the command line says instead."""
    asked = {"by": by, "language": language}
    served = {"endpoint": endpoint, "model": model, "samples": samples, "workers": workers}
    chosen = file.model_copy(update={key: value for key, value in asked.items() if value is not None})
    told = {key: value for key, value in served.items() if value is not None}
    if told and chosen.by == "rules":
        raise DataError(f"--{next(iter(told))} is for a language model; add --by llm or --by hybrid.")
    for key, most in (("samples", 64), ("workers", 256)):
        if key in told and not 1 <= int(str(told[key])) <= most:
            raise DataError(f"--{key} must be 1 to {most}.")
    return chosen.model_copy(update={"llm": chosen.llm.model_copy(update=told)})


def _task(study: Path, task: str | None) -> tuple[str | Path, str | Path]:
    """The task as the study is to name it, and where to load it from."""
    if task is not None:
        return (task, task) if task in builtin_tasks() else (Path(task), Path(task))
    manifest = study / "study.toml"
    if manifest.exists():
        try:
            named = tomllib.loads(manifest.read_text("utf-8")).get("tasks", [])
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"cannot be read ({type(error).__name__}).", source=str(manifest)) from None
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            raise DataError("tasks must be a list of built-in names or of task files.", source=str(manifest))
        if len(named) == 1:
            found = named[0] if named[0] in builtin_tasks() else study / named[0]
            return found, found
        if len(named) > 1:
            raise DataError(
                "names several tasks; say which one the dialogs are about: --task NAME.", source=str(manifest)
            )
    raise DataError("names no task. Say which one the dialogs are about: --task NAME.", source=str(study))


def _strange_files(place: Path) -> list[Path]:
    """Files among the dialogs whose format is not known."""
    known = {suffix for one in formats() for suffix in one.suffixes}
    if not place.is_dir():
        return []
    files = (path for path in place.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [path for path in files if path.suffix.casefold() not in known]


def _agreement(grounder: Any) -> dict[str, int] | None:
    """How often rules and model agreed, where both were asked."""
    found = getattr(grounder, "agreement", None)
    if found is None:
        return None
    counts = found()
    return {"asked": counts.n_asked, "agreed": counts.n_agreed, "unanswered": counts.n_unanswered,
            "checked": counts.n_checked, "confirmed": counts.n_confirmed}  # fmt: skip


def _report(
    study: Path,
    grounded: Grounded,
    problems: pl.DataFrame,
    reasons: dict[str, int],
    agreement: dict[str, int] | None,
) -> dict[str, Any]:
    table = grounded.segments
    return {
        "study": str(study),
        "dialogs": len(grounded.dialogs),
        "left_out": problems["table"].n_unique(),
        "excluded": reasons,
        "segments": table.height,
        "shares": grounded.shares(),
        "doubts": dict(_doubt_counts(table).iter_rows()),
        "steps": grounded.cohort.n_steps,
        "checks_failed": grounded.checks.height,
        "agreement": agreement,
        "provenance": jsons.loads(jsons.dumps(dict(grounded.provenance), default=str)),
    }


def _doubt_counts(table: pl.DataFrame) -> pl.DataFrame:
    doubts = table.select(pl.col("doubts").str.split(" ").explode().alias("doubt"))
    return (
        doubts.filter(pl.col("doubt") != "")
        .group_by("doubt")
        .len()
        .sort("len", "doubt", descending=[True, False])
    )


def _show(
    study: Path,
    grounded: Grounded,
    problems: pl.DataFrame,
    reasons: dict[str, int],
    agreement: dict[str, int] | None,
    chosen: GroundingFile,
    console: Console,
) -> None:
    table = grounded.segments
    console.print(
        f"[bold]{count(len(grounded.dialogs), 'dialog')}[/], {count(table.height, 'segment')}, "
        f"{count(grounded.cohort.n_steps, 'action')}, read by {chosen.by}",
        soft_wrap=True,
    )
    if reasons:
        told = f"{say_reasons(reasons)}; their dialogs are read, and reach no fit"
        console.print(Text(told), style="dim", soft_wrap=True)
    if grounded.provenance.get("allow_remote"):
        console.print(
            Text.assemble(("! ", "yellow"), "A server on another machine was allowed."), soft_wrap=True
        )
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("segments")
    shown.add_column("number", justify="right")
    shown.add_column("share", justify="right")
    for status, words in (
        ("confident", "used as they are"),
        ("needs_review", "marked for review"),
        ("no_route", "say nothing about the way"),
        ("reviewed", "read by hand"),
        ("rejected", "rejected by hand and left out"),
    ):
        n = int((table["status"] == status).sum())
        if n or status not in ("reviewed", "rejected"):
            shown.add_row(words, f"{n:,}", f"{n / max(1, table.height):.1%}")
    console.print(shown)
    doubts = _doubt_counts(table)
    if doubts.height:
        listed = ", ".join(f"{name} {n:,}" for name, n in doubts.head(6).iter_rows())
        console.print(Text(f"· why review: {listed}"), style="dim", soft_wrap=True)
    share = grounded.shares()["inferred_moves"]
    if share:
        told = f"· {share:.0%} of moves are inferred: the words name a place and the planner found the way"
        console.print(Text(told), style="dim", soft_wrap=True)
    if agreement is not None:
        agreed = "· the model was asked where rules doubted; they agreed in {agreed:,} of {asked:,} segments"
        console.print(Text(agreed.format(**agreement)), style="dim", soft_wrap=True)
        if agreement["checked"]:
            checked = "· of {checked:,} segments in which rules were sure, the model confirmed {confirmed:,}"
            console.print(Text(checked.format(**agreement)), style="dim", soft_wrap=True)
    if chosen.by != "rules":
        advice = "How often the model is right on your dialogs is not known yet: fidm audit sample STUDY."
        console.print(Text.assemble(("! ", "yellow"), advice), soft_wrap=True)
    if problems.height:
        n = problems["table"].n_unique()
        console.print(
            Text.assemble(("! ", "yellow"), f"{count(n, 'file')} left out; see grounding/problems.csv"),
            soft_wrap=True,
        )
    silent = grounded.checks.filter(pl.col("problem") == NOTHING_SAID)["participant"].n_unique()
    faulty = grounded.checks.filter(pl.col("problem") != NOTHING_SAID)["participant"].n_unique()
    if silent:
        said = f"{count(silent, 'participant')} said nothing about the way that could be read"
        console.print(Text.assemble(("! ", "yellow"), said), soft_wrap=True)
    traces = len(grounded.cohort)
    console.print(f"structural checks: {traces - faulty:,} of {count(traces, 'trace')} sound")


def _show_applied(applied: Applied, console: Console) -> None:
    """What became of what reviewers had decided about the grounding before."""
    console.print(Text(f"decisions of reviewers kept: {applied}"), soft_wrap=True)
    if applied.n_stale + applied.n_lost + applied.n_differ:
        warn(console, "some decisions do not hold any more, or differ; see fidm review")
