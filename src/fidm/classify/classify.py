"""Does the model tell people's status, and add to what is known otherwise? The paper's tables 2 and 3.

Every representation is judged by the same classifier and protocol (the paper's, appendix B.2): logistic
regression with an L2 penalty, C = 1 and balanced classes; medians, means, spreads and what people share are
learned from the training folds; blocks of a fusion are divided by the square root of their size; five-fold
stratified cross-validation on the training part, and the held-out part once.

Beyond the paper, cross-validation is repeated with other folds, every number has an interval, every fusion is
compared with its parts person by person, and two checks look for leaks. All representations are judged on the
same folds, and those of the binary question are the same as those of the other: they are balanced by all
classes, where each has enough people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.classify.encoder import find_encoder, fingerprint
from fidm.classify.features import (
    FACTORS,
    TRACES,
    Block,
    BlockScaling,
    blocks_of,
    known_blocks,
    make_blocks,
    profile_channels,
    usual,
)
from fidm.classify.language import Language
from fidm.classify.question import UNKNOWN, Protocol, Question, ask
from fidm.classify.result import CHECKS, Classification, Flow
from fidm.classify.tables import (
    BINARY,
    CV,
    FEWEST_FOLDED,
    HELD_OUT,
    MULTICLASS,
    Key,
    Papers,
    Scored,
    coefficient_table,
    curve_tables,
    difference_table,
    has_error,
    missing_table,
    prediction_table,
    score,
    score_table,
)
from fidm.classify.tabular import cut_people
from fidm.classify.validation import Features, Judge, check_leaks, cross_validate
from fidm.cohort import Cohort
from fidm.defaults import LABEL, NORMAL, PERMUTATIONS, REPEATS, SCORE
from fidm.errors import DataError, FidmError, FitError
from fidm.experiments import paper
from fidm.model.channels import Channel
from fidm.model.gaps import has_data
from fidm.record import Record, hash_values
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Progress


def classify(
    tasks: Sequence[TaskModel] | TaskModel,
    cohort: Cohort,
    *,
    representations: Sequence[str] | None = None,
    own: Mapping[str, Any] | None = None,
    channels: Sequence[Channel] | None = None,
    language: Language | None = None,
    label: str = LABEL,
    normal: str = NORMAL,
    score_column: str = SCORE,
    subscores: Sequence[str] | None = None,
    together: str | None = None,
    by: Sequence[str] | None = None,
    folds: int = 5,
    repeats: int = REPEATS,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
    paper_estimates: bool = False,
    scale_blocks: BlockScaling = "fusion",
    excluded: Mapping[str, int] | None = None,
    with_problems: int = 0,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Classification:
    """Say how well each representation tells people's status, alone and together, with intervals.

    Parameters
    ----------
    tasks : TaskModel, or several
        What people did.
    cohort : Cohort
        The people; their table has a column with their status, and may have one with their part.
    representations : sequence of str, optional
        Such as ``"fidm"`` or ``"score+fidm"``; see :mod:`fidm.classify.features`. Left out, those of the
        paper's tables; what cannot be run then is in ``not_run`` with the reason, where it is otherwise an
        error.
    own : mapping of str to transformer, optional
        Representations of your own: anything with ``fit`` and ``transform`` that turns a cohort into numbers.
        It is refitted in every training fold, and never sees a status.
    channels : sequence of Channel, optional
        The effort channels that ``effort`` and ``fidm`` consist of; by default the paper's.
    language : Language, optional
        What people said and which encoders are to represent it; by default the paper's two.
    label, normal, together
        Columns and values that say who is what; see :func:`fidm.classify.question.ask`.
    score_column, subscores
        The columns with the total score and with subscores.
    by : sequence of str, optional
        Columns to form groups by; age, sex and education if left out.
    folds, repeats : int
        How many folds, and how often cross-validation is repeated.
    permutations : int
        How often labels are scrambled for the check; 0 leaves it out.
    seed : int
        The same seed gives the same result, for any number of workers.
    paper_estimates : bool
        Estimate people as the paper does: maximum likelihood, a pooled population, and η itself.
    scale_blocks : {"fusion", "language", "never"}
        When a block of d features is divided by √d: in every fusion, where language takes part, or never.
    excluded, with_problems
        Who is not in the cohort and why, for the record.
    workers : int, optional
        Processes; by default one. Changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 60, seed=1)
    >>> slow = pl.when(pl.col("true_duration") > 0.3).then(pl.lit("slow")).otherwise(pl.lit("normal"))
    >>> people = people.with_participants(people.participants.select("participant", diagnosis=slow))
    >>> found = fidm.study.classify(
    ...     task, people, representations=["action", "effort"], repeats=1, permutations=0
    ... )
    >>> found.score("effort")["value"] > found.score("action")["value"]
    True
    """
    protocol = Protocol(
        representations=representations, channels=channels, label=label, normal=normal,
        score_column=score_column, subscores=subscores, together=together, by=by, folds=folds,
        repeats=repeats, permutations=permutations, seed=seed, paper_estimates=paper_estimates,
        scale_blocks=scale_blocks, workers=workers,
    )  # fmt: skip
    return run_protocol(
        (tasks,) if isinstance(tasks, TaskModel) else tuple(tasks),
        cohort,
        protocol,
        language=language or Language(),
        own=own,
        excluded=excluded,
        with_problems=with_problems,
        on_progress=on_progress,
    )


def run_protocol(
    models: tuple[TaskModel, ...],
    cohort: Cohort,
    protocol: Protocol,
    *,
    language: Language,
    own: Mapping[str, Any] | None = None,
    excluded: Mapping[str, int] | None = None,
    with_problems: int = 0,
    on_progress: Progress | None = None,
) -> Classification:
    """Classify people's status by a protocol; :func:`classify` describes the rest."""
    own = own or {}
    parts = _parts(protocol.representations, tuple(language.encoders), tuple(own))
    question = ask(
        cohort,
        label=protocol.label,
        normal=protocol.normal,
        together=protocol.together,
        folds=protocol.folds,
        without_data=_without_data(cohort, parts),
    )
    groups = cut_people(cohort.participants, protocol.by, learn_from=question.train)
    lost: dict[str, str] = {}
    while True:
        notes: list[str] = []
        judge, not_run = _prepare(
            models, cohort, question, protocol, parts, language, own, lost, on_progress, notes
        )
        try:
            tables = _tables(judge, question, groups, cohort.ids, protocol, on_progress, notes)
            break
        except FitError as error:  # a channel that not every training fold can learn is used in none
            if not error.channel or error.channel in lost:
                raise
            lost[error.channel] = error.message
    return Classification(
        record=_record(models, cohort, question, tuple(groups.columns), judge, protocol, language),
        flow=_flow(question, excluded or {}, with_problems),
        representations=tuple(judge.representations),
        not_run=not_run,
        notes=tuple(notes),
        **tables,
    )


# ---------------------------------------------------------------------- what can be run


def _without_data(cohort: Cohort, parts: Mapping[str, tuple[str, ...]]) -> NDArray[np.bool_]:
    """Who has neither a step nor a segment, where what people did is to be judged at all."""
    wanted = any(block in TRACES for made in parts.values() for block in made)
    empty = ~has_data(cohort)
    return empty & (wanted and not empty.all())


def _prepare(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    question: Question,
    protocol: Protocol,
    parts: Mapping[str, tuple[str, ...]],
    language: Language,
    own: Mapping[str, Any],
    lost: Mapping[str, str],
    on_progress: Progress | None,
    notes: list[str],
) -> tuple[Judge, dict[str, str]]:
    """The representations that are to be judged, by sources that see no status; and why others cannot be.

    ``lost`` are effort channels that a training fold could not learn, and why.
    """
    asks_classes = _asks_classes(question, protocol.folds, notes)
    channels = profile_channels() if protocol.channels is None else protocol.channels
    blind = cohort.with_participants(cohort.participants.drop(protocol.label))
    make = partial(
        make_blocks,
        tasks=tasks,
        cohort=blind[question.train],
        values=tuple(solve(task) for task in tasks),
        score=protocol.score_column,
        subscores=protocol.subscores,
        paper_estimates=protocol.paper_estimates,
        channels=[channel for channel in channels if channel.name not in lost],
        language=language,
        own=own,
        on_progress=on_progress,
    )
    needed = list(dict.fromkeys(block for made in parts.values() for block in made))
    must = protocol.representations is not None
    blocks, fixed, failed = _make_all(needed, make, blind, question, must=must)
    not_run = {
        name: next(failed[block] for block in made if block in failed)
        for name, made in parts.items()
        if not failed.keys().isdisjoint(made)
    }
    if len(not_run) == len(parts):
        raise DataError(f"No representation can be run. {' '.join(dict.fromkeys(not_run.values()))}")
    judge = Judge(
        cohort=blind,
        label=question.label,
        n_classes=len(question.classes) if asks_classes else 2,
        blocks={name: blocks[name] for name in needed if name in blocks},
        representations={name: made for name, made in parts.items() if name not in not_run},
        scale_blocks=protocol.scale_blocks,
        fixed=fixed,
    )
    notes += dict.fromkeys(said for block in judge.blocks.values() for said in block.notes)
    notes += [
        f"{name} is left out, because not every training fold can learn it: {why}"
        for name, why in lost.items()
    ]
    return judge, not_run


def _parts(
    wanted: Sequence[str] | None, encoders: Sequence[str], own: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The blocks of every representation in the usual order, those of the model last; its name is theirs."""
    known = known_blocks(encoders=encoders, own=own)
    parts = {}
    for name in usual(encoders, own) if wanted is None else wanted:
        made = sorted(blocks_of(name, known), key=lambda block: (block in FACTORS, known.index(block)))
        parts["+".join(made)] = tuple(made)
    if not parts:
        raise DataError("No representation is named.")
    return parts


def _make_all(
    needed: Sequence[str],
    make: Callable[[Sequence[str]], dict[str, Block]],
    people: Cohort,
    question: Question,
    *,
    must: bool,
) -> tuple[dict[str, Block], dict[str, Features], dict[str, str]]:
    """Blocks by name, the features of those that learn nothing, and why others cannot be made.

    The factors share a source and are made together. Action needs no words, so where the factors cannot be
    made it is tried once more by itself.
    """
    blocks: dict[str, Block] = {}
    fixed: dict[str, Features] = {}
    failed: dict[str, str] = {}
    factors = [name for name in needed if name in FACTORS]
    waiting = [[name] for name in needed if name not in FACTORS] + ([factors] if factors else [])
    for names in waiting:
        try:
            made = make(names)
            found = {
                name: _computed(block, people, question) for name, block in made.items() if not block.learns
            }
        except FidmError as error:
            if must:
                raise
            failed |= dict.fromkeys(names, str(error))
            if "action" in names and len(names) > 1:
                waiting.append(["action"])
        else:
            blocks |= {
                name: block.without_source() if name in found else block for name, block in made.items()
            }
            fixed |= found
    return blocks, fixed, {name: why for name, why in failed.items() if name not in blocks}


def _computed(block: Block, people: Cohort, question: Question) -> Features:
    """Everybody's features, by a source that learns nothing."""
    source = block.fresh_source()
    source.fit(people[question.train])
    features = Features.of(block, source, source.transform(people), len(people))
    if np.isnan(features.matrix[question.train]).all():
        raise DataError(
            f"{block.name} has no value for any of the {len(question.train)} people to learn from."
        )
    return features


def _asks_classes(question: Question, folds: int, notes: list[str]) -> bool:
    """Whether all classes can be told apart, beside healthy people from all others."""
    if len(question.classes) == 2:
        return False
    name, n = question.smallest(question.train)
    if n < folds:
        notes.append(
            f"all {len(question.classes)} classes are not told apart: {name!r} has {n} people to learn from, "
            f"and {folds} folds need at least {folds}"
        )
    return n >= folds


# ---------------------------------------------------------------------- what is found


def _tables(
    judge: Judge,
    question: Question,
    groups: pl.DataFrame,
    ids: pl.Series,
    protocol: Protocol,
    on_progress: Progress | None,
    notes: list[str],
) -> dict[str, pl.DataFrame]:
    """Everybody judged, and what was found as tables."""
    say = on_progress or (lambda doing, done, of: None)
    parts = judge.representations
    settings = (BINARY, MULTICLASS) if judge.n_classes > 2 else (BINARY,)
    validated, first = cross_validate(judge, question, protocol, say)
    say("held-out part", 0, 1)
    whole, features = judge.predict(question.train, question.held_out)
    scored = score(question, CV, settings, validated, question.train)
    said = {CV: {name: [fold[name] for fold in validated[0]] for name in parts}}
    possible = _held_out_settings(question, settings, notes)
    if possible:
        scored |= score(question, HELD_OUT, possible, [[whole]], question.held_out)
        said[HELD_OUT] = {name: [whole[name]] for name in parts}
    place = {name: i for i, name in enumerate((*settings, *parts))}
    in_order = sorted(scored, key=lambda key: (place[key[0]], key[1] != CV, place[key[2]], key[3]))
    scored = {key: scored[key] for key in in_order}
    _note_few(question, scored, notes)
    observed = {name: scored[BINARY, CV, name, "auc"].repeats[0] for name in parts}
    checks = check_leaks(judge, question, first, observed, protocol, say)
    papers = _papers(question, protocol.label)
    drawn = [
        {"predictions": prediction_table(question, part, given, ids)}
        | curve_tables(question, part, given, groups)
        for part, given in said.items()
    ]
    return {
        "scores": score_table(scored, _shapes(judge, features), papers),
        "differences": difference_table(scored, _pairs(parts), papers),
        **{name: pl.concat([one[name] for one in drawn]) for name in drawn[0]},
        "checks": pl.DataFrame(checks, schema=CHECKS),
        "missing": missing_table(question, features),
        "coefficients": coefficient_table(judge, question, whole, features),
    }


def _held_out_settings(question: Question, settings: Sequence[str], notes: list[str]) -> Sequence[str]:
    """Which questions can be asked of the held-out part: somebody of every class must be in it."""
    if not len(question.held_out):
        return ()
    if len(np.unique(question.ill[question.held_out])) < 2:
        notes.append("the held-out part has one class only, so nothing can be scored in it")
        return ()
    name, n = question.smallest(question.held_out)
    if MULTICLASS in settings and not n:
        notes.append(f"nobody in the held-out part is {name!r}, so all classes are not told apart in it")
        return (BINARY,)
    return settings


def _note_few(question: Question, scored: Mapping[Key, Scored], notes: list[str]) -> None:
    """Say where there are no errors since a class has too few people."""
    for part, words, rows in (
        (CV, "cross-validation", question.train),
        (HELD_OUT, "held-out part", question.held_out),
    ):
        few = {
            setting: one.estimate.smallest for (setting, where, *_), one in scored.items() if where == part
        }
        name, n = question.smallest(rows)
        smallest = min(few.values(), default=FEWEST_FOLDED)
        if smallest < FEWEST_FOLDED:
            whom = (
                f"{few[BINARY]} in the smaller class" if few[BINARY] < FEWEST_FOLDED else f"{n} are {name!r}"
            )
            which = "the classes" if few[BINARY] < FEWEST_FOLDED else "all classes"
            none = "" if has_error(part, smallest) else "for intervals, and "
            notes.append(
                f"{whom} ({words}): too few people {none}to judge how well {which} are distinguished"
            )


def _papers(question: Question, label: str) -> Papers:
    """What the paper reports, where the question is the paper's."""
    same = label == LABEL and question.classes[0] == NORMAL

    def reports(representation: str, setting: str, part: str, metric: str) -> float | None:
        if not same or (setting == MULTICLASS and len(question.classes) != 3):
            return None
        return paper.classification(representation, setting, part, metric)

    return reports


def _shapes(judge: Judge, features: Mapping[str, Features]) -> dict[str, tuple[str, int]]:
    """The kind of each representation, and how many features it has."""
    return {
        name: (
            "fusion" if len(made) > 1 else judge.blocks[made[0]].kind,
            sum(len(features[block].names) for block in made),
        )
        for name, made in judge.representations.items()
    }


def _pairs(parts: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """Which representations are compared: each fusion with its parts, and FIDM with its factors."""
    found = []
    for name, made in parts.items():
        if len(made) > 1:
            fewer = ["+".join(one for one in made if one != left) for left in reversed(made)]
            found += [(name, other) for other in dict.fromkeys([*fewer, *made]) if other in parts]
    if "fidm" in parts:
        found += [("fidm", name) for name in ("action", "effort") if name in parts]
    return found


# ---------------------------------------------------------------------- how it came about


def _flow(question: Question, excluded: Mapping[str, int], with_problems: int) -> Flow:
    """Who was in, and who was out and why."""
    parts = {"train": question.label[question.train], "held-out": question.label[question.held_out]}
    return Flow(
        n_participants=len(question.label),
        excluded=dict(excluded),
        with_problems=with_problems,
        without_label=int((question.label == UNKNOWN).sum()),
        without_part=question.n_without_part,
        without_data=question.n_without_data,
        classes={
            name: {part: int((label == number).sum()) for part, label in parts.items()}
            for number, name in enumerate(question.classes)
        },
    )


def _record(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    question: Question,
    by: Sequence[str],
    judge: Judge,
    protocol: Protocol,
    language: Language,
) -> Record:
    """Every setting that changes a number."""
    used = {name: language.encoders[name] for name in judge.blocks if name in language.encoders}
    channels, subscores = protocol.channels, protocol.subscores
    settings = {
        "representations": list(judge.representations),
        "encoders": {name: str(model).encode("utf-8", "replace").decode() for name, model in used.items()},
        "encoder_hashes": {name: fingerprint(find_encoder(model)) for name, model in used.items()},
        "label": protocol.label,
        "normal": protocol.normal,
        "score": protocol.score_column,
        "subscores": None if subscores is None else list(subscores),
        "together": protocol.together,
        "by": list(by),
        "folds": protocol.folds,
        "repeats": protocol.repeats,
        "permutations": protocol.permutations,
        "paper_estimates": protocol.paper_estimates,
        **({} if channels is None else {"channels": [channel.to_dict() for channel in channels]}),
        "scale_blocks": protocol.scale_blocks,
        "labels": hash_values(question.label),
        "parts": hash_values(np.concatenate([question.train, [-1], question.held_out])),
        "fixed": {name: hash_values(one.matrix) for name, one in judge.fixed.items()},
    }
    return Record.of("classify", tasks, seed=protocol.seed, settings=settings, cohort=cohort)
