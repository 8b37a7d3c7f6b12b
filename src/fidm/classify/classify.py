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

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from fidm.classify.available import prepare_blocks, usual
from fidm.classify.comparing import (
    BINARY,
    CV,
    FEWEST,
    HELD_OUT,
    MULTICLASS,
    Key,
    Papers,
    Scored,
    difference_rows,
    score,
    score_row,
)
from fidm.classify.encoder import ENCODERS, find_encoder, fingerprint
from fidm.classify.features import known_blocks, make_blocks
from fidm.classify.judging import Judge
from fidm.classify.language import Language
from fidm.classify.question import UNKNOWN, Question, ask
from fidm.classify.result import (
    CHECKS,
    COEFFICIENTS,
    DIFFERENCES,
    MISSING,
    SCORES,
    Classification,
    Flow,
)
from fidm.classify.subgroups import cut_people
from fidm.classify.tables import Curves, coefficient_rows, curves, missing_rows, prediction_rows
from fidm.classify.tabular import Block, BlockScaling
from fidm.classify.validation import check_leaks, cross_validate
from fidm.cohort import Cohort
from fidm.defaults import LABEL, NORMAL, PERMUTATIONS, REPEATS, SCORE
from fidm.errors import DataError
from fidm.experiments import paper
from fidm.model.channels import Channel
from fidm.record import Record, hash_values
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Progress

UNSURE = 10
"""With fewer people of a class than this, the width of an interval is itself unsure."""


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
    models = (tasks,) if isinstance(tasks, TaskModel) else tuple(tasks)
    _check_options(folds, repeats, permutations, seed, representations, by, subscores)
    say = on_progress or (lambda doing, done, of: None)
    question = ask(cohort, label=label, normal=normal, together=together, folds=folds)
    groups = cut_people(cohort.participants, by, learn_from=question.train)
    blind = cohort.with_participants(cohort.participants.drop(label))
    notes: list[str] = []
    settings = _settings(question, folds, notes)
    own = own or {}
    encoders = language.encoders if language is not None else ENCODERS
    wanted = usual(tuple(encoders), tuple(own)) if representations is None else tuple(representations)
    made = prepare_blocks(
        wanted,
        known_blocks(encoders=encoders, own=own),
        blind,
        question.train,
        partial(
            make_blocks,
            tasks=models,
            cohort=blind[question.train],
            values=tuple(solve(task) for task in models),
            score=score_column,
            subscores=subscores,
            paper_estimates=paper_estimates,
            channels=channels,
            language=language,
            own=own,
            on_progress=on_progress,
        ),
        must=representations is not None,
    )
    parts = made.representations
    notes += dict.fromkeys(said for block in made.blocks.values() for said in block.notes)
    judge = Judge(
        cohort=blind,
        label=question.label,
        n_classes=len(question.classes) if MULTICLASS in settings else 2,
        blocks=made.blocks,
        representations=parts,
        scale_blocks=scale_blocks,
        fixed=made.fixed,
    )
    validated, first = cross_validate(
        judge, question, folds=folds, repeats=repeats, seed=seed, workers=workers, say=say
    )
    say("held-out part", 0, 1)
    whole, features = judge.predict(question.train, question.held_out)
    scored: dict[Key, Scored] = {
        (setting, CV, name, metric): value
        for (setting, name, metric), value in score(question, settings, validated, question.train).items()
    }
    said = {CV: {name: [fold[name] for fold in validated[0]] for name in parts}}
    possible = _held_out_settings(question, settings, notes)
    if possible:
        held = score(question, possible, [[whole]], question.held_out)
        scored |= {(setting, HELD_OUT, name, metric): v for (setting, name, metric), v in held.items()}
        said[HELD_OUT] = {name: [whole[name]] for name in parts}
    _note_few(question, scored, notes)
    papers = _papers(question, label)
    used = {name: encoders[name] for name in made.blocks if name in encoders}
    drawn = Curves.joined([curves(question, part, given, groups) for part, given in said.items()])
    sizes = {name: sum(len(features[one].names) for one in made) for name, made in parts.items()}
    checks = check_leaks(
        judge,
        question,
        first,
        observed={name: scored[BINARY, CV, name, "auc"].repeats[0] for name in parts},
        permutations=permutations,
        seed=seed,
        workers=workers,
        say=say,
    )
    order = {setting: number for number, setting in enumerate(settings)}
    keys = sorted(scored, key=lambda key: (order[key[0]], key[1] != CV, list(parts).index(key[2]), key[3]))
    return Classification(
        record=Record.of(
            "classify",
            models,
            seed=seed,
            settings={
                "representations": list(parts),
                "encoders": {
                    name: str(model).encode("utf-8", "replace").decode() for name, model in used.items()
                },
                "encoder_hashes": {name: fingerprint(find_encoder(model)) for name, model in used.items()},
                "label": label,
                "normal": normal,
                "score": score_column,
                "subscores": None if subscores is None else list(subscores),
                "together": together,
                "by": list(groups.columns),
                "folds": folds,
                "repeats": repeats,
                "permutations": permutations,
                "paper_estimates": paper_estimates,
                **({} if channels is None else {"channels": [channel.to_dict() for channel in channels]}),
                "scale_blocks": scale_blocks,
                "labels": hash_values(question.label),
                "parts": hash_values(np.concatenate([question.train, [-1], question.held_out])),
                "fixed": {name: hash_values(made.fixed[name].matrix) for name in made.fixed},
            },
            cohort=cohort,
        ),
        flow=_flow(question, excluded or {}, with_problems),
        representations=tuple(parts),
        scores=pl.DataFrame(
            [
                score_row(
                    key,
                    scored[key],
                    kind=_kind(parts[key[2]], made.blocks),
                    n_features=sizes[key[2]],
                    papers=papers,
                )
                for key in keys
            ],
            schema=SCORES,
        ),
        differences=pl.DataFrame(
            difference_rows({key: scored[key] for key in keys}, _pairs(parts), papers=papers),
            schema=DIFFERENCES,
        ),
        predictions=pl.concat(
            [prediction_rows(question, part, given, cohort.ids) for part, given in said.items()]
        ),
        roc=drawn.roc,
        calibration=drawn.calibration,
        calibration_summary=drawn.calibration_summary,
        thresholds=drawn.thresholds,
        groups=drawn.groups,
        checks=pl.DataFrame(checks, schema=CHECKS),
        missing=pl.DataFrame(missing_rows(question, features), schema=MISSING),
        coefficients=pl.DataFrame(coefficient_rows(judge, question, whole, features), schema=COEFFICIENTS),
        not_run=made.not_run,
        notes=tuple(notes),
    )


# ---------------------------------------------------------------------- before


def _check_options(
    folds: int,
    repeats: int,
    permutations: int,
    seed: int,
    representations: Sequence[str] | None,
    by: Sequence[str] | None,
    subscores: Sequence[str] | None,
) -> None:
    for name, value, least in (
        ("folds", folds, 2),
        ("repeats", repeats, 1),
        ("permutations", permutations, 0),
        ("seed", seed, 0),
    ):
        if not isinstance(value, int | np.integer) or not least <= value < 2**32:
            raise DataError(f"{name} is {value!r}; a whole number of {least} or more (below 2³²) is needed.")
    for name, given in (("representations", representations), ("by", by), ("subscores", subscores)):
        if isinstance(given, str):
            raise DataError(f"{name} is one text; a list of names is needed, such as [{given!r}].")


def _settings(question: Question, folds: int, notes: list[str]) -> tuple[str, ...]:
    """Which questions can be asked: healthy or not, and, with enough people of each, which class."""
    if len(question.classes) == 2:
        return (BINARY,)
    name, n = question.smallest(question.train)
    if n < folds:
        notes.append(
            f"all {len(question.classes)} classes are not told apart: {name!r} has {n} people to learn from, "
            f"and {folds} folds need at least {folds}"
        )
        return (BINARY,)
    return (BINARY, MULTICLASS)


def _papers(question: Question, label: str) -> Papers:
    """What the paper reports, where the question is the paper's."""
    same = label == LABEL and question.classes[0] == NORMAL

    def reports(representation: str, setting: str, part: str, metric: str) -> float | None:
        if not same or (setting == MULTICLASS and len(question.classes) != 3):
            return None
        return paper.classification(representation, setting, part, metric)

    return reports


def _note_few(question: Question, scored: Mapping[Key, Scored], notes: list[str]) -> None:
    """Say where there are no errors since a class has too few people."""
    for part, rows in ((CV, question.train), (HELD_OUT, question.held_out)):
        if any(key[1] == part and one.estimate.smallest < FEWEST for key, one in scored.items()):
            name, n = question.smallest(rows)
            notes.append(
                f"no intervals where a class has fewer than {FEWEST} people: {name!r} has {n} ({part})"
            )
    if any(key[:2] == (MULTICLASS, HELD_OUT) for key in scored):
        name, n = question.smallest(question.held_out)
        if FEWEST <= n < UNSURE:
            notes.append(
                f"{n} of the held-out people are {name!r}: how wide the intervals of all classes are there "
                "is itself unsure"
            )


def _held_out_settings(question: Question, settings: Sequence[str], notes: list[str]) -> list[str]:
    """Which questions can be asked of the held-out part: somebody of every class must be in it."""
    if not len(question.held_out):
        return []
    if len(np.unique(question.ill[question.held_out])) < 2:
        notes.append("the held-out part has one class only, so nothing can be scored in it")
        return []
    name, n = question.smallest(question.held_out)
    if MULTICLASS in settings and not n:
        notes.append(f"nobody in the held-out part is {name!r}, so all classes are not told apart in it")
        return [BINARY]
    return list(settings)


# ---------------------------------------------------------------------- after


def _flow(question: Question, excluded: Mapping[str, int], with_problems: int) -> Flow:
    """Who was in, and who was out and why."""
    parts = {"train": question.label[question.train], "held-out": question.label[question.held_out]}
    return Flow(
        n_participants=len(question.label),
        excluded=dict(excluded),
        with_problems=with_problems,
        without_label=int((question.label == UNKNOWN).sum()),
        without_part=question.n_without_part,
        classes={
            name: {part: int((label == number).sum()) for part, label in parts.items()}
            for number, name in enumerate(question.classes)
        },
    )


def _kind(made: Sequence[str], blocks: Mapping[str, Block]) -> str:
    return "fusion" if len(made) > 1 else blocks[made[0]].kind


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
