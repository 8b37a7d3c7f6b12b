"""``fidm fit STUDY``: from a study folder to a profile of every participant."""

from __future__ import annotations

import json as jsons
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl
from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fidm.cli.both_ways import Ways, compare, learn_other, report_inferred, say_inferred, with_other
from fidm.cli.opening import apply_decisions
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.files import whole_file
from fidm.fit.averaged import profile_draws
from fidm.fit.common import smallest_hashes
from fidm.fit.factorized import MAX_PEOPLE, Model
from fidm.fit.fitted import Fit, load_fit, to_dict
from fidm.fit.inferred import other_way
from fidm.fit.profile import Profile
from fidm.grounding.store import FOLDER, has_grounding, study_draws
from fidm.io.columns import count_reasons, say_reasons
from fidm.io.study import Study
from fidm.present.terminal import Bars, page, progress_bar
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel


def fit(
    study: Path,
    *,
    task: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    method: Literal["eb", "mle"] = "eb",
    population: Literal["random", "pooled"] = "random",
    joint: bool = False,
    lapse: str = "0",
    inferred: float | None = None,
    draws: int = 0,
    seed: int = 1,
    split: str | None = None,
    use: Path | None = None,
    skip_bad: Annotated[bool, Parameter(negative=())] = False,
    max_people: int = MAX_PEOPLE,
    workers: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> int:
    """Learn what people share and estimate every participant of a study.

    Writes ``fit.json`` (what people share) and ``profile.parquet`` and ``profile.csv`` (one row per
    participant). Exit code 0: done. 2: the study could not be used.

    Parameters
    ----------
    study
        The study folder.
    task
        A built-in task or a task file; by default those that study.toml names. May be repeated.
    method
        eb shrinks every estimate by what people are like; mle takes each alone, as in the paper.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    joint
        Learn one prior over all parameters together.
    lapse
        The share of choices made at random: a number, or "estimate".
    inferred
        How much a move counts that a planner filled in (column "inferred" of the steps): from 0, the default,
        which leaves such moves out, to 1, like any other. Where there are such moves, the sensitivity is also
        estimated the other way: with all moves, or with 1 without the inferred ones.
    draws
        Average over so many sampled groundings of the dialogs, so that intervals carry the grounding's doubt.
        0 takes the most probable grounding, with moves in doubt left out.
    seed
        The same seed gives the same draws.
    split
        Learn from the participants with this value of "split"; by default from "train" where there is a
        split, else from everybody. "all" learns from everybody. Everybody is profiled.
    use
        A fit.json to profile people with, instead of learning from this study.
    skip_bad
        Leave out participants whose data have problems, instead of refusing the study.
    max_people
        Learn from at most so many participants.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default into the study folder.
    json
        Print a summary as JSON instead of a page.
    """
    with progress_bar() as bars:
        apply_decisions(study, bars)
    opened = Study(study)
    tasks = tuple(load_task(name) for name in task) or opened.load_tasks()
    if not tasks:
        raise DataError("names no task in study.toml. Give one: --task NAME.", source=str(study))
    if draws < 0 or draws == 1 or seed < 0:
        raise DataError("--draws must be 0, or 2 and more; --seed 0 or more.")
    if max_people < 2:
        raise DataError(f"--max-people is {max_people}; it must be 2 or more.")
    earlier = None if use is None else load_fit(use, tasks)
    if earlier is not None and inferred not in (None, earlier.inferred):
        raise DataError(
            f"--inferred is {inferred:g}, but the fit was made with {earlier.inferred:g}, and its prior "
            "belongs to that. Leave --inferred out, or fit again.",
            source=str(use),
        )
    model = Model(
        tasks,
        channels=None if earlier is None else earlier.channels,
        lapse=_lapse(lapse),
        inferred=inferred or 0.0,
    )
    reasons = count_reasons(opened.excluded())
    compares = opened.has_column("steps", "inferred")
    target = out or study
    with progress_bar() as bars:
        other: Fit | str | None = None
        if earlier is not None:
            fitted, part = earlier, f"an earlier study, {use}"
            other = other_way(earlier) if compares else None
        else:
            learners, part = _learners(opened, model, split, max_people, skip_bad, bars)
            fitted = model.fit(
                learners,
                method=method,
                population=population,
                joint=joint,
                max_people=None,
                workers=workers,
                on_progress=bars.step,
            )
            other = learn_other(fitted, learners, model, workers) if compares else None
            del learners
        profile, others, problems = _profiles(fitted, other, opened, model, skip_bad, workers, bars)
        if draws:
            profile = _averaged(fitted, study, tasks, profile, draws, seed, workers, bars)
            if others is not None and isinstance(other, Fit):
                others = _averaged(other, study, tasks, others, draws, seed, workers, bars)
    ways = compare(profile, others, other)
    reviewed = _reviewed(study)
    _write(fitted, profile, ways, problems, target, is_new=use is None)
    if json:
        print(
            jsons.dumps(
                _report(fitted, profile, ways, problems, reasons, reviewed, part, target, is_new=use is None),
                indent=2,
                ensure_ascii=False,
                allow_nan=False,
            )
        )
    else:
        _show(
            fitted,
            profile,
            ways,
            problems,
            reasons,
            reviewed,
            part,
            target,
            page(),
            estimated=lapse == "estimate",
            is_new=use is None,
        )
    return 0


def _lapse(text: str) -> float | Literal["estimate"]:
    if text == "estimate":
        return "estimate"
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--lapse is {text!r}; it must be a number or 'estimate'.") from None


def _learners(
    study: Study,
    model: Model,
    split: str | None,
    most: int,
    skip_bad: bool,
    bars: Bars,
) -> tuple[Cohort, str]:
    """The people to learn from: those of the training part, at most so many of them."""
    people = study.participants()
    chosen, part = people, "everybody"
    named = (
        people["split"].drop_nulls().cast(pl.String)
        if "split" in people.columns
        else pl.Series([], dtype=pl.String)
    )
    if split is None and len(named):
        split = "train"
        if not (named == split).any():
            known = ", ".join(repr(name) for name in named.unique().sort().to_list())
            raise DataError(
                f"The participants have a split ({known}), but nobody is in 'train'. Say whom to learn from: "
                "--split NAME, or --split all.",
                source=str(study.folder),
            )
    if split == "all" and not (named == "all").any():
        split = None
    if split is not None:
        chosen = (
            people.filter(pl.col("split").cast(pl.String) == split)
            if "split" in people.columns
            else people.clear()
        )
        part = f"split {split!r}"
        if not chosen.height:
            raise DataError(f"Nobody is in the split {split!r}.", source=str(study.folder))
    ids = chosen["participant"].cast(pl.String).unique(maintain_order=True).drop_nulls()
    if len(ids) > most:
        ids = ids.gather(np.sort(smallest_hashes(ids.to_list(), most)))
    # Of a large study only the learners' rows are read here; the others' are checked when they are profiled.
    some = ids if len(ids) < people.height and study.n_parts > 1 else None
    parts, is_bad = [], False
    for done, batch in enumerate(_checked(study, model, skip_bad or some is not None, only=some)):
        bars.step("reading", done, study.n_parts)
        is_bad = is_bad or bool(batch.problems.height)
        rows = np.flatnonzero(batch.ids.is_in(ids.implode()).to_numpy())
        if len(rows):
            parts.append(batch if len(rows) == len(batch) else batch[rows])
    if is_bad and not skip_bad:
        for _ in _checked(study, model, skip_bad=False):  # raises, with everything that is wrong
            pass
    if not parts:
        raise DataError("Nobody to learn from is left.", source=str(study.folder))
    return (parts[0] if len(parts) == 1 else Cohort.concat(parts)), part


def _checked(study: Study, model: Model, skip_bad: bool, only: pl.Series | None = None) -> Iterator[Cohort]:
    for batch in study.batches(tasks=model.tasks.tasks, strict=not skip_bad, only=only):
        yield model.check(batch, strict=not skip_bad)


def _profiles(
    fitted: Fit,
    other: Fit | str | None,
    study: Study,
    model: Model,
    skip_bad: bool,
    workers: int | None,
    bars: Bars,
) -> tuple[Profile, Profile | None, pl.DataFrame]:
    found, others, problems = [], [], []
    for done, batch in enumerate(_checked(study, model, skip_bad)):
        bars.step("profiles", done, study.n_parts)
        problems.append(batch.problems)
        found.append(fitted.profile(batch, workers=workers))
        if isinstance(other, Fit):
            others.append(other.profile(batch, workers=workers))
    return Profile.concat(found), Profile.concat(others) if others else None, pl.concat(problems)


def _averaged(
    fitted: Fit,
    study: Path,
    tasks: tuple[TaskModel, ...],
    profile: Profile,
    n: int,
    seed: int,
    workers: int | None,
    bars: Bars,
) -> Profile:
    """The people's profile averaged over sampled groundings."""
    if len(tasks) > 1:
        raise DataError("--draws needs dialogs about one task.", source=str(study))
    place = {name: i for i, name in enumerate(profile.participants.to_list())}

    def same_people(cohort: Cohort) -> Cohort:
        """Those who are profiled, in the same order."""
        rows = [(place[name], j) for j, name in enumerate(cohort.ids.to_list()) if name in place]
        return cohort[np.array([j for _, j in sorted(rows)], dtype=np.int64)]

    cohorts = map(same_people, study_draws(study, tasks[0], n, seed=seed))
    return profile_draws(
        fitted, cohorts, workers=workers, on_progress=lambda doing, done, _: bars.step(doing, done, n)
    )


def _reviewed(study: Path) -> dict[str, int] | None:
    """How much of a study's traces is as reviewers read it; None where nobody has reviewed it."""
    if not has_grounding(study):
        return None
    path = study / FOLDER / "provenance.json"
    try:
        said = jsons.loads(path.read_text("utf-8"))
        found = said.get("review")
        if found is None:
            return None
        numbers = {name: int(found[name]) for name in ("n_decisions", "n_reviewed", "n_rejected")}
        return {"n_segments": int(said["n_segments"]), **numbers}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"cannot be read ({type(error).__name__}). Run fidm ground again.", source=str(path)
        ) from None


def _say_reviewed(reviewed: dict[str, int]) -> str:
    rejected = reviewed["n_rejected"]
    more = f", {rejected:,} {'is' if rejected == 1 else 'are'} rejected and left out" if rejected else ""
    of = f"{reviewed['n_reviewed']:,} of the study's {reviewed['n_segments']:,} segments"
    return f"{of} are as reviewers read them{more}"


def _written(is_new: bool) -> list[str]:
    return [*(["fit.json"] if is_new else []), "profile.parquet", "profile.csv"]


def _write(
    fitted: Fit,
    profile: Profile,
    ways: Ways,
    problems: pl.DataFrame,
    target: Path,
    *,
    is_new: bool,
) -> None:
    wide = with_other(profile.wide, ways)
    if is_new:
        fitted.save(target / "fit.json")
    with whole_file(target / "profile.parquet") as part:
        wide.write_parquet(part)
    with whole_file(target / "profile.csv") as part:
        wide.write_csv(part)
    if problems.height:
        with whole_file(target / "problems.csv") as part:
            problems.write_csv(part)
    else:
        (target / "problems.csv").unlink(missing_ok=True)  # of an earlier run


def _report(
    fitted: Fit,
    profile: Profile,
    ways: Ways,
    problems: pl.DataFrame,
    reasons: dict[str, int],
    reviewed: dict[str, int] | None,
    part: str,
    target: Path,
    *,
    is_new: bool,
) -> dict[str, object]:
    summary = profile.summary()
    rows = [
        {
            key: (None if isinstance(value, float) and not math.isfinite(value) else value)
            for key, value in row.items()
        }
        for row in summary.table.iter_rows(named=True)
    ]
    return {
        "participants": len(profile),
        "left_out": problems["participant"].n_unique(),
        "excluded": reasons,
        "review": reviewed,
        "learned_from": {"part": part, "participants": fitted.n_learned},
        "parameters": rows,
        "inferred": None if ways is None else report_inferred(profile, ways, is_new=is_new),
        "draws": profile.n_draws,
        "fit": to_dict(fitted),
        "warnings": list(fitted.warnings),
        "wrote": [str(target / name) for name in _written(is_new)],
    }


def show_summary(profile: Profile, console: Console) -> None:
    """Print a profile's summary as a table."""
    header, rows, notes = profile.summary().lines()
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    for note in notes:
        console.print(Text(f"· {note}"), style="dim", soft_wrap=True)


def _show(
    fitted: Fit,
    profile: Profile,
    ways: Ways,
    problems: pl.DataFrame,
    reasons: dict[str, int],
    reviewed: dict[str, int] | None,
    part: str,
    target: Path,
    console: Console,
    *,
    estimated: bool,
    is_new: bool,
) -> None:
    how = {"eb": "empirical Bayes", "mle": "maximum likelihood"}[fitted.method]
    joint = ", joint prior" if fitted.joint is not None else ""
    console.print(f"[bold]{len(profile):,} participants[/], {how}{joint}, {fitted.level:.0%} intervals")
    console.print(
        f"what people share was learned from {fitted.n_learned:,} ({part})",
        style="dim",
        soft_wrap=True,
        markup=False,
    )
    if reviewed is not None:
        console.print(_say_reviewed(reviewed), style="dim", soft_wrap=True, markup=False)
    if reasons:
        console.print(Text(say_reasons(reasons)), style="dim", soft_wrap=True)
    show_summary(profile, console)
    if ways is not None:
        console.print(Text(say_inferred(ways, is_new=is_new)), soft_wrap=True)
    if fitted.lapse or estimated:
        known = f" ± {fitted.lapse_se:.3f}" if math.isfinite(fitted.lapse_se) else ""
        console.print(f"lapse rate {fitted.lapse:.3f}{known}")
    for warning in fitted.warnings:
        console.print(Text.assemble(("! ", "yellow"), warning), soft_wrap=True)
    if problems.height:
        left_out = problems["participant"].n_unique()
        console.print(
            Text.assemble(
                ("! ", "yellow"),
                f"{left_out:,} participants left out for {problems.height:,} problems, "
                f"listed in {target / 'problems.csv'}",
            ),
            soft_wrap=True,
        )
    names = _written(is_new)
    console.print(
        f"\nWrote {', '.join(names[:-1])} and {names[-1]} to {target}", soft_wrap=True, markup=False
    )
    console.print("Research use only, not a diagnosis.", style="dim")
