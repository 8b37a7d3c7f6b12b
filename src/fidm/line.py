"""The straight line on a study folder: dialogs are grounded, people are fitted, their status is classified.

Each step is one function, called by verbs and by :func:`run_line`; it returns what was found and what was
written, and prints nothing.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from fidm.classify.encoder import ENCODERS, find_encoder
from fidm.classify.result import Classification
from fidm.cohort import Cohort
from fidm.defaults import FitOptions, GroundOptions
from fidm.errors import DataError, at_least, count
from fidm.files import recover_folder, whole_file
from fidm.fit.averaged import profile_draws
from fidm.fit.common import smallest_hashes
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit, load_fit, to_dict
from fidm.fit.inferred import Ways, compare, learn_other, other_way, report_inferred, with_other
from fidm.fit.profile import Profile
from fidm.fit.regression import Formulas, require_known
from fidm.folder import (
    StudyFolder,
    checked_parts,
    choose_part,
    naming_study,
    nobody_left,
    read_talks,
    require_grounded,
    study_channels,
    study_tasks,
)
from fidm.grounding.dialog import Waiting
from fidm.grounding.evaluate import Evaluation, evaluate, known_audited, known_phrasings
from fidm.grounding.ground import NOTHING_SAID, Grounded, ground, one_script
from fidm.grounding.llm.client import API_KEY, FAILURES
from fidm.grounding.people import require_reached
from fidm.grounding.review.apply import (
    Applied,
    apply_review,
    bring_up_to_date,
    read_proposed,
    reviewed_examples,
)
from fidm.grounding.review.trail import Trail
from fidm.grounding.review.verdicts import doubt_in_words
from fidm.grounding.rules.language import better_task, task_fit
from fidm.grounding.settings import ASKING, GroundingFile, read_settings
from fidm.grounding.speakers import say_heard
from fidm.grounding.store import (
    ANSWERS,
    FOLDER,
    VECTORS,
    alone_in,
    has_grounding,
    known_participants,
    private_folder,
    study_draws,
    unmatched,
    write_grounding,
)
from fidm.io.columns import count_reasons, excluded_people, n_without, say_without
from fidm.io.study import Study, read_manifest
from fidm.io.talk import Transcripts
from fidm.model.gaps import Gaps, forecast, learners_of, omitted, say_one_speaker, scripts_used
from fidm.record import plain
from fidm.registry import GROUNDERS
from fidm.tasks.compile import load_task
from fidm.tasks.model import TaskModel
from fidm.tasks.spec import builtin_tasks
from fidm.types import Omission, Progress, SkipBad

if TYPE_CHECKING:
    from fidm.classify.question import Protocol

SERVED = ("endpoint", "model", "samples", "workers")
"""The options that are for a language model."""


REVIEW_FIRST = 5
"""Of so many segments it is said what their review would free."""


def silent(_doing: str, _done: int, _of: int) -> None:
    """Tell nobody how far it is."""


# ---------------------------------------------------------------------- ground


@dataclass(frozen=True, slots=True, eq=False)
class GroundedStudy:
    """A study whose dialogs have been grounded."""

    study: Path  # the folder
    grounded: Grounded  # what became of the dialogs, decisions of reviewers applied
    by: str  # who read them
    problems: pl.DataFrame  # what was wrong with dialogs that were left out
    excluded: pl.DataFrame  # ``participant`` and ``reason`` of everybody who takes no part
    # How often rules and model agreed, with the share's interval, where both were asked.
    agreement: Mapping[str, Any] | None
    applied: Applied | None  # what became of reviewers' decisions, where there are any
    was_interrupted: bool  # whether tables were put back that an earlier, interrupted run had moved away
    gaps: Gaps = field(
        default_factory=Gaps
    )  # which participants have no dialog, and whose dialogs are copies
    # Another built-in task whose places the talk names far more often; empty where the task fits.
    meant_task: str = ""
    # What was left out when the dialogs were read, and what they and the lab's tables do not share.
    omissions: tuple[Omission, ...] = ()
    heard: str = ""  # who was heard in the dialogs, by the names of speakers
    # How many reviewed segments a language model could be shown as examples; None where it was shown none.
    n_examples: int | None = None

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why people are excluded, and how many."""
        return count_reasons(self.excluded)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss."""
        found = [*map(str, self.omissions), *self.gaps.say("dialog")]
        if self.meant_task:
            found.insert(
                0,
                "The dialogs hardly name any place of this task, but they name places of the task "
                f"{self.meant_task}. If it is the wrong one: fidm ground {self.study} --task "
                f"{self.meant_task}",
            )
        if alone := self.grounded.provenance.get("one_speaker", 0):
            found.append(say_one_speaker(alone))
        if answers := self.grounded.provenance.get("answers", {}):
            asked, unanswered = answers["asked"], answers["unanswered"]
            if unanswered:
                again = ". To ask for what the server did not answer: fidm ground again"
                is_failed = not FAILURES.keys().isdisjoint(unanswered)  # unusable answers are kept, too
                found.append(f"{say_unanswered(asked, unanswered)}{again if is_failed else ''}")
        if self.n_examples == 0:
            found.append(
                "No segment of this study is reviewed yet, so the language model was shown the template's "
                f"examples alone. Review some: fidm review {self.study}; then ground again."
            )
        if self.grounded.provenance.get("allow_remote"):
            found.append("A server on another machine was allowed.")
        if self.by != "rules":
            found.append(
                f"How often {self.by} is right on your dialogs is not known yet: fidm audit sample STUDY."
            )
        if self.applied is not None and self.applied.n_stale + self.applied.n_lost + self.applied.n_differ:
            found.append("some decisions do not hold any more, or differ; see fidm review")
        return tuple(found)

    def frames(self) -> dict[str, int]:
        """Return in how many dialogs directions are not meant as is usual, by whose they are."""
        return dict(sorted(Counter(one.frame for one in self.grounded.dialogs if one.frame).items()))

    def doubts(self) -> pl.DataFrame:
        """Return how often each doubt was had, the most frequent first."""
        waiting = self.grounded.segments.filter(pl.col("status") == "needs_review")
        doubts = waiting.select(pl.col("doubts").str.split(" ").explode().alias("doubt"))
        counted = doubts.filter(pl.col("doubt") != "").group_by("doubt").len()
        return counted.sort("len", "doubt", descending=[True, False])

    def review_first(self) -> dict[str, Any]:
        """Return the segments whose review frees most later moves, and how many actions count after that.

        As if they were accepted as they are read; ``counted`` is as in the forecast.
        """
        grounded = self.grounded
        waiting = [
            Waiting(dialog, grounded.terrain, grounded.settings.weighing) for dialog in grounded.dialogs
        ]
        frees = [(one.frees(i), d, i) for d, one in enumerate(waiting) for i in one.doubted]
        first = sorted((one for one in frees if one[0]), key=lambda one: (-one[0], *one[1:]))[:REVIEW_FIRST]
        chosen = {d: [i for _, other, i in first if other == d] for _, d, _ in first}
        counted = sum(sum(one.counted(chosen.get(d, ()))) for d, one in enumerate(waiting))
        listed = [
            (grounded.dialogs[d].transcript, grounded.dialogs[d].segments[i].segment.number, n)
            for n, d, i in first
        ]
        return {
            "counted": counted,
            "segments": [
                {"participant": item.participant, "episode": item.episode, "segment": str(number), "frees": n}
                for item, number, n in listed
            ],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values."""
        return {
            "study": str(self.study),
            "dialogs": len(self.grounded.dialogs),
            "left_out": self.problems["table"].n_unique(),
            "excluded": dict(self.reasons),
            "omissions": [
                one.to_dict()
                for one in (
                    *self.omissions,
                    *omitted(
                        self.grounded.cohort, self.grounded.segments["status"], self.gaps, self.excluded
                    ),
                )
            ],
            "segments": self.grounded.segments.height,
            "shares": self.grounded.shares(),
            "frames": self.frames(),
            "doubts": dict(self.doubts().iter_rows()),
            "steps": self.grounded.cohort.n_steps,
            "forecast": forecast(self.grounded.cohort),
            "review_first": self.review_first(),
            "checks_failed": self.grounded.checks.height,
            "agreement": self.agreement,
            "provenance": json.loads(json.dumps(dict(self.grounded.provenance), default=str)),
            "review": None if self.applied is None else self.applied.counts(),
        }


def ground_study(study: Path, options: GroundOptions, *, on_progress: Progress = silent) -> GroundedStudy:
    """Turn the dialogs of a study into its tables, and write them; as ``fidm ground`` does."""
    if not study.is_dir():
        raise DataError("is not a folder.", source=str(study))
    was_interrupted = recover_folder(study)
    Trail(study)  # decisions that were tampered with are found before the work, not after it
    chosen = _with_options(read_settings(study), options)
    name = _dialogs_task(study, options.task)
    loaded = load_task(name)
    place = options.talks if options.talks is not None else study / chosen.talks
    people = known_participants(study)
    excluded = excluded_people(people, source=str(study))
    with alone_in(study):
        dialogs = read_talks(
            study,
            talks=options.talks,
            roles=options.roles,
            skip_bad=options.skip_bad,
            on_progress=on_progress,
        )
        if dialogs is None:
            hint = "Put the dialogs into it, or say where they are with --talks."
            if (study.parent / "study.toml").exists():
                hint = f"Did you mean the study {study.parent}?"
            raise DataError(f"is not there. {hint}", source=str(place))
        if not len(dialogs):
            why = "; ".join(map(str, dialogs.omissions))
            said = f"has no dialog that can be used: {why}. Repair the files, and run fidm ground again."
            raise DataError(said, source=str(place))
        ids = [] if people is None else people["participant"].to_list()
        named = [dialog.participant for dialog in dialogs]
        require_reached(excluded["participant"].to_list(), ids, named, source=str(study))
        cache = private_folder(study) / ANSWERS if chosen.by in ASKING else None
        key = os.environ.get(API_KEY)
        shows_reviewed = chosen.by in ASKING and chosen.llm.examples == "reviewed"
        reviewed = reviewed_examples(study, loaded) if shows_reviewed else ()
        grounder = chosen.grounder(
            cache=cache, allow_remote=options.allow_remote, api_key=key, reviewed=reviewed
        )
        try:
            grounded = ground(
                dialogs,
                loaded,
                by=grounder,
                settings=chosen.settings(),
                workers=chosen.llm.workers if chosen.by in ASKING else 1,
                on_progress=on_progress,
            )
        finally:
            grounder.close()
        answers = _answered(grounder, chosen.llm.endpoint, has_moves=grounded.cohort.n_steps > 0)
        if not grounded.cohort.n_steps:
            raise DataError(
                _nothing_read(len(dialogs), _meant_task(dialogs, name, chosen.language)), source=str(place)
            )
        also = {"reading": chosen.model_dump(include={"speakers", "roles", "columns", "untimed"}), **answers}
        also["omissions"] = [one.to_dict() for one in dialogs.omissions]
        also["one_speaker"] = sum(len({turn.speaker for turn in one}) == 1 for one in dialogs)
        grounded = replace(grounded, provenance={**grounded.provenance, **also})
        on_progress("writing", 0, 1)
        write_grounding(study, grounded, tasks=[name], problems=dialogs.problems)
        applied = apply_review(study, on_progress=on_progress, is_alone=True)
    final = grounded if applied is None else applied.grounded
    silent = final.checks.filter(problem=NOTHING_SAID)["participant"].unique(maintain_order=True)
    columns = [str(table.get("column")) for table in read_manifest(study).channels.values()]
    takes_part = ~grounded.cohort.ids.is_in(excluded["participant"].implode()).to_numpy()
    gaps = replace(
        Gaps.of(grounded.cohort),
        scripts=scripts_used(one_script(grounded.cohort[takes_part]), columns),
        absent=_absent(people, grounded, excluded),
        unread=tuple(silent.to_list()),
        doubted=(),
    )
    return GroundedStudy(
        study=study,
        grounded=final,
        by=chosen.by,
        problems=dialogs.problems,
        excluded=excluded,
        agreement=grounded.provenance.get("agreement"),
        applied=applied,
        was_interrupted=was_interrupted,
        gaps=gaps,
        meant_task=_meant_task(dialogs, name, chosen.language),
        omissions=(*dialogs.omissions, *unmatched(study, final)),
        heard=say_heard(dialogs),
        n_examples=len(reviewed) if shows_reviewed else None,
    )


def evaluate_grounder(
    study: Path, sheet: Path, options: GroundOptions, *, on_progress: Progress = silent
) -> Evaluation:
    """Measure a study's grounder on audited segments or phrasings; nothing of the study changes.

    Parameters
    ----------
    study
        The study, whose grounding.toml says who reads.
    sheet
        A judged sheet of ``fidm audit sample``, or a file of phrasings (``.jsonl``).
    options
        What is said instead of grounding.toml; options about the dialogs themselves are refused.
    """
    if not study.is_dir():
        raise DataError("is not a folder.", source=str(study))
    for name in ("talks", "task", "roles", "skip_bad"):
        if getattr(options, name):
            option = name.replace("_", "-")
            raise DataError(f"--{option} is about reading dialogs, and --evaluate reads none. Leave it out.")
    chosen = _with_options(read_settings(study), options)
    shows_reviewed = chosen.by in ASKING and chosen.llm.examples == "reviewed"
    if sheet.suffix == ".jsonl":
        known = known_phrasings(sheet, language=chosen.language or "en")
        is_reviewed = shows_reviewed and has_grounding(study)
        task = load_task(_dialogs_task(study, None)) if is_reviewed else None
    else:
        require_grounded(study)
        grounded = read_proposed(study)
        task = grounded.terrain.task
        known = known_audited(sheet, grounded, language=chosen.language, context_turns=chosen.context_turns)
    grounder = chosen.grounder(
        cache=None,
        allow_remote=options.allow_remote,
        api_key=os.environ.get(API_KEY),
        reviewed=reviewed_examples(study, task) if shows_reviewed and task is not None else (),
    )
    try:
        workers = chosen.llm.workers if chosen.by in ASKING else 1
        return evaluate(grounder, known, sheet=sheet, workers=workers, on_progress=on_progress)
    finally:
        grounder.close()


def _nothing_read(n_dialogs: int, meant_task: str) -> str:
    """Why there is nothing to write, and what to check."""
    hint = (
        f"Their words fit the task {meant_task}: --task {meant_task}."
        if meant_task
        else ("Check who is the participant (--roles), the language (--language) and the task (--task).")
    )
    return f"No move could be read in {count(n_dialogs, 'dialog')}, so nothing was written. {hint}"


def _answered(grounder: Any, endpoint: str, *, has_moves: bool) -> dict[str, Any]:
    """How often a language model gave no usable answer; an error where that is why nothing is read."""
    count_answers = getattr(getattr(grounder, "model", grounder), "answers", None)
    if count_answers is None:
        return {}
    found = count_answers()
    if found.n_unanswered and (found.n_unanswered == found.n_asked or not has_moves):
        raise DataError(
            f"{say_unanswered(found.n_asked, found.unanswered)}, so nothing was written. Look at the "
            f"server's own log, its model and its context; delete {FOLDER}/{ANSWERS} to ask everything "
            "again. Without a model: --by rules.",
            source=endpoint,
        )
    return {"answers": {"asked": found.n_asked, "unanswered": dict(found.unanswered)}}


def say_unanswered(n_asked: int, unanswered: Mapping[str, int]) -> str:
    """Return for how many segments a language model's server gave no usable answer, and why.

    Examples
    --------
    >>> say_unanswered(9, {"busy": 2})
    'The language-model server gave no usable answer for 2 of 9 segments (the server was busy: 2)'
    """
    why = "; ".join(f"{doubt_in_words(code)}: {n:,}" for code, n in unanswered.items())
    of = f"{sum(unanswered.values()):,} of {count(n_asked, 'segment')}"
    return f"The language-model server gave no usable answer for {of} ({why})"


def _meant_task(dialogs: Transcripts, task: str | Path, language: str) -> str:
    """The built-in task that the dialogs are about, where it is clearly another; empty where it is not."""
    fit = task_fit(dialogs, list(dict.fromkeys([task, *builtin_tasks()])), language=language)
    return better_task(fit, str(task)) or ""


def _absent(people: pl.DataFrame | None, grounded: Grounded, excluded: pl.DataFrame) -> tuple[str, ...]:
    """The participants who take part, and have no dialog."""
    if people is None:
        return ()
    known = pl.concat([grounded.cohort.ids, excluded["participant"]])
    return tuple(people["participant"].filter(~people["participant"].is_in(known.implode())).to_list())


def _with_options(file: GroundingFile, options: GroundOptions) -> GroundingFile:
    """The file's settings with what the caller says instead, of the grounder and of a model's server."""
    said = {key: value for key, value in asdict(options).items() if value is not None}
    chosen = file.model_copy(update={key: said[key] for key in ("by", "language") if key in said})
    told = {key: value for key, value in said.items() if key in SERVED}
    GROUNDERS.find(chosen.by)  # says which there are
    if told and chosen.by not in ASKING:
        raise DataError(f"--{next(iter(told))} is for a language model; add --by llm or --by hybrid.")
    for key, most in (("samples", 64), ("workers", 256)):
        if key in told and not 1 <= int(told[key]) <= most:
            raise DataError(f"--{key} must be 1 to {most}.")
    return chosen.model_copy(update={"llm": chosen.llm.model_copy(update=told)})


def _dialogs_task(study: Path, task: str | None) -> str | Path:
    """The task that the dialogs are about: a built-in name or a file."""
    if task is not None:
        return task if task in builtin_tasks() else Path(task)
    manifest, named = study / "study.toml", read_manifest(study).tasks
    if len(named) == 1:
        return named[0] if named[0] in builtin_tasks() else study / named[0]
    if named:
        raise DataError(
            "names several tasks; say which one the dialogs are about: --task NAME.", source=str(manifest)
        )
    raise DataError(
        "names no task. Say which one the dialogs are about: fidm ground STUDY --task NAME.",
        source=str(study),
    )


# ---------------------------------------------------------------------- fit


@dataclass(frozen=True, slots=True, eq=False)
class FittedStudy:
    """A study whose people have been profiled."""

    fit: Fit  # what people share
    profile: Profile  # what is particular to each
    # The sensitivity with inferred moves and without; why there is no such comparison; None where no move is
    # inferred.
    ways: Ways
    problems: pl.DataFrame  # what was wrong with people who were left out
    reasons: Mapping[str, int]  # why people are excluded, and how many
    # How many segments are as reviewers read them, where anybody has reviewed the study.
    reviewed: Mapping[str, int] | None
    part: str  # from whom it was learned, in words
    folder: Path  # where the files are
    is_new: bool  # whether the fit was learned now
    notes: tuple[str, ...] = ()  # what was done first, such as applying reviewers' decisions
    # From how many people each parameter was learned; empty where it was learned earlier.
    learned: Mapping[str, int] = field(default_factory=dict)
    # Who has no data, whose episodes are copies, and whose effort awaits review, in words.
    gaps: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must not miss."""
        found = [*self.fit.warnings, *self.gaps]
        if self.problems.height:
            found.append(
                f"{say_without(self.problems, self.profile.participants)} left out for "
                f"{count(self.problems.height, 'problem')}, listed in {self.folder / 'problems.csv'}"
            )
        return tuple(found)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that were written."""
        return (*(("fit.json",) if self.is_new else ()), "profile.parquet", "profile.csv")

    def write(self) -> None:
        """Write the fit, if it is new, and the profiles; each whole or not at all."""
        wide = with_other(self.profile.wide, self.ways)
        if self.is_new:
            self.fit.save(self.folder / "fit.json")
        with whole_file(self.folder / "profile.parquet") as part:
            wide.write_parquet(part)
        with whole_file(self.folder / "profile.csv") as part:
            wide.write_csv(part)
        if self.problems.height:
            with whole_file(self.folder / "problems.csv") as part:
                self.problems.write_csv(part)
        else:
            (self.folder / "problems.csv").unlink(missing_ok=True)  # of an earlier run

    def to_dict(self) -> dict[str, Any]:
        """Return a summary and the whole fit as plain values."""
        return {
            "participants": len(self.profile),
            "left_out": n_without(self.problems, self.profile.participants)[0],
            "excluded": dict(self.reasons),
            "review": self.reviewed,
            "learned_from": {
                "part": self.part,
                "participants": self.fit.n_learned,
                "parameters": dict(self.learned),
            },
            "parameters": plain(self.profile.summary().table),
            "inferred": None
            if self.ways is None
            else report_inferred(self.profile, self.ways, is_new=self.is_new),
            "draws": self.profile.n_draws,
            "fit": to_dict(self.fit),
            **self._regression(),
            "warnings": list(self.warnings),
            "wrote": [str(self.folder / name) for name in self.files],
        }

    def _regression(self) -> dict[str, Any]:
        """How parameters go with covariates, where the fit is regressed on any."""
        table = self.fit.regression_table()
        return (
            {"regression": plain(table), "regression_notes": self.fit.regression_notes()}
            if table.height
            else {}
        )


def fit_study(
    study: Path,
    options: FitOptions,
    *,
    task: tuple[str, ...] = (),
    skip_bad: SkipBad = False,
    on_progress: Progress = silent,
) -> FittedStudy:
    """Learn what people share, estimate everybody, and write both, as ``fidm fit`` does; part by part."""
    require_grounded(study)
    applied = bring_up_to_date(study, on_progress=on_progress)
    opened = Study(study)
    tasks = study_tasks(opened, task)
    use, workers = options.use, options.workers
    if options.draws < 0 or options.draws == 1 or options.seed < 0:
        raise DataError("--draws must be 0, or 2 and more; --seed 0 or more.")
    at_least("--max-people", options.max_people, 2)
    own = study_channels(opened)
    kinds = [type(channel) for channel in own or ()]
    earlier = None if use is None else load_fit(use, tasks, channels=kinds)
    if earlier is not None and options.inferred not in (None, earlier.inferred):
        raise DataError(
            f"--inferred is {options.inferred:g}, but the fit was made with {earlier.inferred:g}, and its "
            "prior belongs to that. Leave --inferred out, or fit again.",
            source=str(use),
        )
    channels = own if earlier is None else earlier.channels
    if earlier is not None and options.regress:
        raise DataError(
            "--regress learns from this study, but --use takes an earlier fit. Leave one of them out."
        )
    model = Model(
        tasks,
        channels=channels,
        lapse=_lapse(options.lapse),
        inferred=options.inferred or 0.0,
        regress=_formulas(options.regress),
        cluster=options.cluster,
    )
    if model.regress is not None and not skip_bad:  # of everybody, not of the training part first
        require_known(model.regress, opened.participants())
    compares = opened.has_column("steps", "inferred")
    other: Fit | str | None = None
    learned_from = pl.Series([], dtype=pl.String)
    if earlier is not None:
        fitted, part = earlier, f"an earlier study, {use}"
        other = other_way(earlier) if compares else None
    else:
        learners, part = _learners(opened, model, options, skip_bad, on_progress)
        with naming_study(study, learners):
            fitted = model.fit(
                learners,
                method=options.method,
                population=options.population,
                joint=options.joint,
                max_people=None,
                workers=workers,
                on_progress=on_progress,
            )
        other = learn_other(fitted, learners, model, workers) if compares else None
        learned_from = learners.ids
        del learners
    profile, others, problems, gaps = _profiles(fitted, other, opened, model, skip_bad, workers, on_progress)
    if options.draws:
        average = partial(_averaged, study, tasks, options, on_progress=on_progress)
        profile = average(fitted, profile)
        if others is not None and isinstance(other, Fit):
            others = average(other, others)
    found = FittedStudy(
        fit=fitted,
        profile=profile,
        ways=compare(profile, others, other),
        problems=problems,
        reasons=count_reasons(opened.excluded()),
        reviewed=_reviewed(study),
        part=part,
        folder=options.out or study,
        is_new=use is None,
        notes=() if applied is None else (applied,),
        learned=_learned(profile, learned_from),
        gaps=gaps.say("dialog" if has_grounding(study) else "episode"),
    )
    found.write()
    return found


def _lapse(text: str | None) -> float | Literal["estimate"] | None:
    if text is None:
        return None
    if text == "estimate":
        return "estimate"
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--lapse is {text!r}; it must be a number or 'estimate'.") from None


def _formulas(said: str | None) -> Formulas | None:
    """One formula for all parameters, or one for each of some: ``duration ~ age; turns ~ age``."""
    if said is None or "~" not in said:
        return said
    parts = [[part.strip() for part in one.split("~")] for one in said.split(";") if one.strip()]
    if any(len(part) != 2 for part in parts) or len({part[0] for part in parts}) < len(parts):
        raise DataError(
            "--regress takes one formula, or one for each parameter: 'duration ~ age; turns ~ age'."
        )
    return {part[0]: part[1] for part in parts}


def _learned(profile: Profile, people: pl.Series) -> dict[str, int]:
    """From how many of these people each parameter was learned: those of whom it was observed."""
    seen = profile.n[profile.participants.is_in(people.implode()).to_numpy()] > 0
    counts = seen.sum(axis=0).tolist()
    return dict(zip(profile.parameters, counts, strict=True)) if len(people) else {}


def _learners(
    study: Study, model: Model, options: FitOptions, skip_bad: SkipBad, on_progress: Progress
) -> tuple[Cohort, str]:
    """The people to learn from: those of the training part, at most so many of them."""
    people = study.participants()
    ids, part = choose_part(people, options.split, source=str(study.folder))
    if ids is None:
        ids = people["participant"].cast(pl.String).unique(maintain_order=True).drop_nulls()
    if len(ids) > options.max_people:
        ids = ids.gather(np.sort(smallest_hashes(ids.to_list(), options.max_people)))
    # Of a large study only the learners' rows are read here; the others' are checked when they are profiled.
    some = ids if len(ids) < people.height and study.n_parts > 1 else None
    parts, problems = [], []
    for done, batch in enumerate(checked_parts(study, model, skip_bad or some is not None, only=some)):
        on_progress("reading", done, study.n_parts)
        problems.append(batch.problems)
        rows = np.flatnonzero(batch.ids.is_in(ids.implode()).to_numpy())
        if len(rows):
            parts.append(batch if len(rows) == len(batch) else batch[rows])
    wrong = pl.concat(problems)
    if wrong.height and not skip_bad:
        for _ in checked_parts(study, model, skip_bad=False):  # raises, with everything that is wrong
            pass
    if not parts:
        raise nobody_left(study, wrong)
    learners = parts[0] if len(parts) == 1 else Cohort.concat(parts)
    return learners_of(learners, part)


def _profiles(
    fitted: Fit,
    other: Fit | str | None,
    study: Study,
    model: Model,
    skip_bad: SkipBad,
    workers: int | None,
    on_progress: Progress,
) -> tuple[Profile, Profile | None, pl.DataFrame, Gaps]:
    found, others, problems, gaps = [], [], [], Gaps()
    for done, batch in enumerate(checked_parts(study, model, skip_bad)):
        on_progress("profiles", done, study.n_parts)
        problems.append(batch.problems)
        gaps += Gaps.of(batch, columns=[channel.column for channel in fitted.channels])
        found.append(fitted.profile(batch, workers=workers))
        if isinstance(other, Fit):
            others.append(other.profile(batch, workers=workers))
    return Profile.concat(found), Profile.concat(others) if others else None, pl.concat(problems), gaps


def _averaged(
    study: Path,
    tasks: tuple[TaskModel, ...],
    options: FitOptions,
    fitted: Fit,
    profile: Profile,
    *,
    on_progress: Progress,
) -> Profile:
    """The people's profile averaged over sampled groundings."""
    if len(tasks) > 1:
        raise DataError("--draws needs dialogs about one task.", source=str(study))
    place = {name: i for i, name in enumerate(profile.participants.to_list())}

    def same_people(cohort: Cohort) -> Cohort:
        """Those who are profiled, in the same order."""
        rows = [(place[name], j) for j, name in enumerate(cohort.ids.to_list()) if name in place]
        return cohort[np.array([j for _, j in sorted(rows)], dtype=np.int64)]

    cohorts = map(same_people, study_draws(study, tasks[0], options.draws, seed=options.seed))
    return profile_draws(
        fitted,
        cohorts,
        workers=options.workers,
        on_progress=lambda doing, done, _: on_progress(doing, done, options.draws),
    )


def _reviewed(study: Path) -> dict[str, int] | None:
    """How much of a study's traces is as reviewers read it; None where nobody has reviewed it."""
    if not has_grounding(study):
        return None
    path = study / FOLDER / "provenance.json"
    try:
        said = json.loads(path.read_text("utf-8"))
        found = said.get("review")
        if found is None:
            return None
        numbers = {name: int(found[name]) for name in ("n_decisions", "n_reviewed", "n_rejected")}
        return {"n_segments": int(said["n_segments"]), **numbers}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"cannot be read ({type(error).__name__}). Run fidm ground again.", source=str(path)
        ) from None


# ---------------------------------------------------------------------- classify


@dataclass(frozen=True, slots=True, eq=False)
class ClassifiedStudy:
    """A study whose people's status has been classified."""

    found: Classification  # how well each representation does
    not_kept: str = ""  # why vectors of what was said are not kept; empty where they are
    n_unread: int = 0  # how many files of dialogs could not be read


def classify_study(
    opened: StudyFolder,
    protocol: Protocol,
    *,
    encoder: Sequence[str] = (),
    talks: Path | None = None,
    roles: Path | None = None,
    no_language: bool = False,
    skip_bad: SkipBad = False,
    on_progress: Progress = silent,
) -> ClassifiedStudy:
    """Classify the status of a study's people, as ``fidm classify`` does, with what they said in dialogs."""
    from fidm.classify.classify import run_protocol
    from fidm.classify.language import Language, Texts, participant_texts

    representations = protocol.representations or ()
    encoders = encoders_of(encoder)
    if no_language:
        _refuse_language(representations, encoders, encoder)
        encoders = {}
    if talks is not None and not talks.exists():
        raise DataError("is not there. Say where the dialogs are with --talks.", source=str(talks))
    wanted = _wanted(representations, encoders)
    asked = {name for name, model in encoders.items() if model != ENCODERS.get(name)}
    present, absent = _present(wanted, must=wanted if representations else asked)
    unused = sorted(asked - set(wanted))
    if unused:
        raise DataError(
            f"--encoder {unused[0]} is used by no representation. Add {unused[0]} or {unused[0]}+fidm to "
            "--representations."
        )
    texts, n_unread = Texts(), 0
    if present:
        dialogs = read_talks(
            opened.path, talks=talks, roles=roles, skip_bad=bool(skip_bad), on_progress=on_progress
        )
        if dialogs is not None:
            texts, n_unread = participant_texts(dialogs), dialogs.problems["table"].n_unique()
        elif representations:
            raise DataError(
                "has no dialogs, and language needs them. Say where they are with --talks.",
                source=str(opened.path),
            )
    cache, not_kept = _cache(opened.path) if texts else (None, "")
    found = run_protocol(
        opened.tasks,
        opened.cohort,
        replace(protocol, channels=protocol.channels or opened.channels),
        language=Language(texts, present, cache=cache),
        excluded=opened.reasons,
        with_problems=opened.n_left_out,
        on_progress=on_progress,
    )
    more = {name: why for one, why in absent.items() for name in (one, f"{one}+fidm")}
    return ClassifiedStudy(replace(found, not_run={**found.not_run, **more}), not_kept, n_unread)


def encoders_of(options: Sequence[str]) -> dict[str, str]:
    """Return the encoders by label: the paper's, and those of the command line in their place or beside.

    Examples
    --------
    >>> from fidm.line import encoders_of
    >>> encoders_of(["bert=/models/mine"])["bert"]
    '/models/mine'
    >>> list(encoders_of(["/models/roberta-yue"]))
    ['bert', 'macbert', 'roberta-yue']
    """
    from fidm.classify.features import is_name, known_blocks

    found, own = dict(ENCODERS), set[str]()
    labels = {model: label for label, model in ENCODERS.items()}
    for option in options:
        name, equals, model = option.partition("=")
        if not equals or Path(option).is_dir():
            model = option
            name = labels.get(option, Path(option).expanduser().resolve().name)
        name, model = name.strip(), model.strip()
        if not is_name(name) or not model:
            raise DataError(
                f"--encoder is {option!r}. Give LABEL=FOLDER or LABEL=NAME; a label has letters, digits, "
                "dots, hyphens and underscores."
            )
        if name in known_blocks(encoders={}):
            raise DataError(
                f"--encoder {option!r}: {name!r} is a representation already. Choose another label."
            )
        if name in own:
            raise DataError(f"--encoder names {name!r} twice. Give each encoder a label of its own.")
        own.add(name)
        found[name] = model
    return found


def _wanted(names: Sequence[str], encoders: Mapping[str, str]) -> dict[str, str]:
    """The encoders that the representations need: all of them where none is named."""
    if not names:
        return dict(encoders)
    from fidm.classify.features import blocks_of, known_blocks

    known = known_blocks(encoders=encoders)
    parts = {one for name in names for one in blocks_of(name, known)}
    return {name: model for name, model in encoders.items() if name in parts}


def _refuse_language(names: Sequence[str], encoders: Mapping[str, str], options: Sequence[str]) -> None:
    asked = [name for name in names if {one.strip() for one in name.split("+")} & set(encoders)]
    if asked or options:
        said = f"the representation {asked[0]!r}" if asked else "--encoder"
        raise DataError(f"--no-language leaves language out, and {said} asks for it. Drop one of the two.")


def _present(encoders: Mapping[str, str], *, must: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The encoders that are on this machine, and why the others are not; an error for those that must be."""
    present, absent = {}, {}
    for name, model in encoders.items():
        try:
            find_encoder(model)
        except DataError as error:
            if name in must:
                raise
            absent[name] = str(error)
        else:
            present[name] = model
    return present, absent


def _cache(study: Path) -> tuple[Path | None, str]:
    """Where vectors are kept, or why they are not."""
    try:
        return private_folder(study) / VECTORS, ""
    except DataError as error:
        return None, f"the vectors of what was said are not kept: {error}"
