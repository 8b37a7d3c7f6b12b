"""Cross-validation, repeated, in several processes, and the checks that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fidm.fit.fitted import Progress
from fidm.study.folds import Question, cut
from fidm.study.judging import Judge, Prediction
from fidm.study.leakage import Fold, fold_number, scrambled
from fidm.study.preparing import many_small_fits

Job = TypeVar("Job")
Found = TypeVar("Found")


def cross_validate(
    judge: Judge,
    question: Question,
    *,
    folds: int,
    repeats: int,
    seed: int,
    workers: int | None,
    say: Progress,
) -> tuple[list[list[dict[str, Prediction]]], list[Fold]]:
    """Return what is said of everybody in the training part by those who did not see them.

    Parameters
    ----------
    judge : Judge
        The representations.
    question : Question
        Who is what.
    folds, repeats : int
        How many folds, and how often people are cut into them anew.
    seed : int
        The first repetition has the folds that a single cross-validation with this seed has.
    workers : int or None
        Processes.
    say : callable
        Called as ``say(doing, done, of)``.

    Returns
    -------
    said : list of lists of dicts
        For each repetition and fold, the predictions by representation.
    first : list of Fold
        The folds of the first repetition.
    """
    rows = question.train
    label = question.label[rows] if judge.n_classes > 2 else question.ill[rows].astype(np.int64)
    cuts = [cut(question, rows, label, folds, _seed(seed, repeat)) for repeat in range(repeats)]
    jobs = [(repeat, number) for repeat in range(repeats) for number in range(folds)]

    def run(job: tuple[int, int]) -> tuple[dict[str, Prediction], Fold]:
        repeat, number = job
        inside = cuts[repeat] == number
        said, features = judge.predict(rows[~inside], rows[inside])
        return said, Fold(number, rows[~inside], rows[inside], cuts[repeat][~inside], features)

    found = _mapped(run, jobs, workers, lambda done: say("cross-validation", done, len(jobs)))
    said = [[found[repeat * folds + number][0] for number in range(folds)] for repeat in range(repeats)]
    return said, [fold for _, fold in found[:folds]]


def _seed(seed: int, repeat: int) -> int:
    return seed if repeat == 0 else int(np.random.default_rng([seed, repeat]).integers(2**31))


def check_leaks(
    judge: Judge,
    question: Question,
    folds: Sequence[Fold],
    *,
    observed: Mapping[str, float],
    permutations: int,
    seed: int,
    workers: int | None,
    say: Progress,
) -> list[dict[str, Any]]:
    """Return what scrambled labels give for every single block, and what the number of the fold adds.

    Parameters
    ----------
    judge, question, seed, workers, say
        As in :func:`cross_validate`.
    folds : sequence of Fold
        One cross-validation.
    observed : mapping of str to float
        The area under the curve of each representation in these folds.
    permutations : int
        How often labels are scrambled.
    """
    single = [name for name, made in judge.representations.items() if len(made) == 1]

    def run(name: str) -> dict[str, Any]:
        return scrambled(
            judge,
            name,
            folds,
            times=permutations,
            seed=seed,
            observed=observed[name],
            exchangeable=question.together is None,
        )

    def tell(done: int) -> None:
        say("scrambled labels", done * permutations, len(single) * permutations)

    found = _mapped(run, single, workers, tell) if permutations else []
    main = "fidm" if "fidm" in judge.representations else next(iter(judge.representations))
    return [*found, fold_number(judge, main, folds, question.places(question.train))]


def _mapped(
    run: Callable[[Job], Found], jobs: Sequence[Job], workers: int | None, tell: Callable[[int], None]
) -> list[Found]:
    """Run all jobs, in several processes if wanted, and tell how many are done."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    def quickly(job: Job) -> Found:
        with many_small_fits():
            return run(job)

    tell(0)
    found = []
    for one in Parallel(n_jobs=workers or 1, return_as="generator")(delayed(quickly)(job) for job in jobs):
        found.append(one)
        tell(len(found))
    return found
