"""Cross-validation, repeated and in several processes, and checks that it tells nothing it should not know.

People's status is predicted by classifiers that have not seen them. Everything that learns (what people
share, medians, means and spreads, the classifier) learns from the people to learn from, and from nobody else.
Sources of features never see a status. Those that learn nothing, such as a score or the vector of somebody's
words, are computed once. Two checks look for mistakes in that:

- *Scrambled labels.* Labels are shuffled among the people of each fold, so that every fold keeps its classes,
  and everything that learns from labels learns again. What is left to tell apart is nothing: the area under
  the curve must be one half on average. How often a scramble does as well as the true labels is a (one-sided)
  permutation test of the representation (Ojala & Garriga 2010, test 1).
- *The number of the fold.* Features that say in which fold a person is judged are added to a representation,
  and with them the very answer, but only for those who are being judged. Nobody who is learned from is in
  that fold, so none of it can help; a classifier that learned from those it judges would find the answer.

Both look at the classifier and at how it is scored. Neither can see features that know the answer (a status
hidden in a column, say), nor medians and spreads learned from everybody: that sources are given no status,
and that everything is learned from the learners, is up to :class:`Judge`, and to the tests.

Ojala & Garriga (2010), Journal of Machine Learning Research 11, 1833–1863.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from scipy.stats import t as student

from fidm.classify.features import Block, BlockScaling, checked, is_scaled
from fidm.classify.intervals import Estimate, auc, difference, mean_over_folds, over_repeats
from fidm.classify.question import Protocol, Question, cut
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.experiments.shared import Preparation, classifier, log_odds, many_small_fits
from fidm.types import Floats, Integers, Progress

SCRAMBLED, FOLD_NUMBER = "scrambled labels", "fold number"
LEVEL = 0.999
"""Of the intervals of checks: a check of something sound fails once in a thousand times."""

Job = TypeVar("Job")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """One fold: who is learned from and in which fold they are judged themselves, and who is judged.

    Its features are those of the learners first, then of the others.
    """

    number: int
    learners: Integers
    rows: Integers
    learner_folds: Integers
    features: dict[str, Features]


def cross_validate(
    judge: Judge, question: Question, protocol: Protocol, say: Progress
) -> tuple[list[list[dict[str, Prediction]]], list[Fold]]:
    """Return what is said of everybody in the training part by those who did not see them.

    The first repetition has the folds that a single cross-validation with the same seed has.

    Returns
    -------
    said : list of lists of dicts
        For each repetition and fold, the predictions by representation.
    first : list of Fold
        The folds of the first repetition.
    """
    rows, folds = question.train, protocol.folds
    label = question.label[rows] if judge.n_classes > 2 else question.ill[rows].astype(np.int64)
    repeats = range(protocol.repeats)
    cuts = [cut(question, rows, label, folds, _seed(protocol.seed, repeat)) for repeat in repeats]
    jobs = [(repeat, number) for repeat in repeats for number in range(folds)]

    def run(job: tuple[int, int]) -> tuple[dict[str, Prediction], Fold]:
        repeat, number = job
        inside = cuts[repeat] == number
        said, features = judge.predict(rows[~inside], rows[inside])
        return said, Fold(number, rows[~inside], rows[inside], cuts[repeat][~inside], features)

    found = _mapped(run, jobs, protocol.workers, lambda done: say("cross-validation", done, len(jobs)))
    said = [[found[repeat * folds + number][0] for number in range(folds)] for repeat in repeats]
    return said, [fold for _, fold in found[:folds]]


def _seed(seed: int, repeat: int) -> int:
    return seed if repeat == 0 else int(np.random.default_rng([seed, repeat]).integers(2**31))


def check_leaks(
    judge: Judge,
    question: Question,
    folds: Sequence[Fold],
    observed: Mapping[str, float],
    protocol: Protocol,
    say: Progress,
) -> list[dict[str, Any]]:
    """Return what scrambled labels give for every single block, and what the number of the fold adds.

    ``observed`` is the area under the curve of each representation in these folds.
    """
    single = [name for name, made in judge.representations.items() if len(made) == 1]
    times = protocol.permutations

    def run(name: str) -> dict[str, Any]:
        row = scrambled(judge, name, folds, times=times, seed=protocol.seed, observed=observed[name])
        return row if question.together is None else row | {"p": None}  # they are not exchangeable

    def tell(done: int) -> None:
        say("scrambled labels", done * times, len(single) * times)

    found = _mapped(run, single, protocol.workers, tell) if times else []
    main = "fidm" if "fidm" in judge.representations else next(iter(judge.representations))
    return [*found, fold_number(judge, main, folds, question.places(question.train))]


def scrambled(
    judge: Judge, representation: str, folds: Sequence[Fold], *, times: int, seed: int, observed: float
) -> dict[str, Any]:
    """Return what a representation tells of scrambled labels, a row of the table of checks.

    ``observed`` is the area under the curve of the true labels in the same folds.
    """
    found = _scrambled_areas(judge, judge.representations[representation], folds, times, seed)
    mean, half = float(found.mean()), float("nan")
    if times > 1:
        half = float(student.ppf(0.5 + LEVEL / 2, times - 1) * found.std(ddof=1) / np.sqrt(times))
    return {
        "check": SCRAMBLED,
        "representation": representation,
        "n": times,
        "value": mean,
        "low": mean - half,
        "high": mean + half,
        "expected": 0.5,
        "passed": bool(abs(mean - 0.5) <= half) if times > 1 else None,
        "observed": observed,
        "p": float((1 + (found >= observed).sum()) / (1 + times)),
    }


def _scrambled_areas(
    judge: Judge, blocks: Sequence[str], folds: Sequence[Fold], times: int, seed: int
) -> Floats:
    """The area under the curve, averaged over the folds, of every scramble."""
    prepared = [
        judge.prepare(blocks, [fold.features[name].matrix for name in blocks], len(fold.learners))
        for fold in folds
    ]
    binary = replace(judge, n_classes=2)
    ill = (judge.label > 0).astype(np.int64)
    found = np.empty(times)
    for number in range(times):
        rng = np.random.default_rng([seed, number])
        mixed = ill.copy()
        for fold in folds:
            mixed[fold.rows] = rng.permutation(ill[fold.rows])
        areas = []
        for fold, x in zip(folds, prepared, strict=True):
            said = binary.judge(x, mixed[fold.learners], fold.rows)
            areas.append(auc(said.logit, mixed[fold.rows] > 0).value)
        found[number] = np.mean(areas)
    return found


def fold_number(judge: Judge, representation: str, folds: Sequence[Fold], places: Integers) -> dict[str, Any]:
    """Return how much the number of the fold adds to a representation, a row of the table of checks.

    ``places`` is the place of each row of the cohort among those who are cross-validated.
    """
    blocks = judge.representations[representation]
    plain: list[Estimate] = []
    with_code: list[Estimate] = []
    for fold in folds:
        n = len(fold.learners)
        ill = judge.label[fold.rows] > 0
        number = np.concatenate([fold.learner_folds, np.full(len(fold.rows), fold.number)])
        codes = (number[:, None] == np.arange(len(folds))).astype(np.float64)
        answer = np.concatenate([np.zeros(n), ill])[:, None]
        known = [fold.features[name].matrix for name in blocks]
        for areas, matrices in ((plain, known), (with_code, [*known, codes, answer])):
            x = judge.prepare(blocks, matrices, n)
            areas.append(auc(judge.judge(x, judge.label[fold.learners], fold.rows).logit, ill))
    rows = [places[fold.rows] for fold in folds]
    everybody = sum(map(len, rows))
    before, after = (over_repeats([mean_over_folds(one, rows, everybody)]) for one in (plain, with_code))
    gain = difference(after, before)
    low, high = gain.interval(LEVEL, bounded=False)
    return {
        "check": FOLD_NUMBER,
        "representation": representation,
        "n": everybody,
        "value": gain.value,
        "low": low,
        "high": high,
        "expected": 0.0,
        "passed": bool(low <= 0),
        "observed": before.value,
        "p": None,
    }


def _mapped(
    run: Callable[[Job], Found], jobs: Sequence[Job], workers: int | None, tell: Callable[[int], None]
) -> list[Found]:
    """Run all jobs, in several processes if wanted, and tell how many are done."""
    from joblib import Parallel, delayed

    def quickly(job: Job) -> Found:
        with many_small_fits():
            return run(job)

    tell(0)
    found = []
    for one in Parallel(n_jobs=workers or 1, return_as="generator")(delayed(quickly)(job) for job in jobs):
        found.append(one)
        tell(len(found))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What classifiers say of people they have not seen."""

    rows: Integers  # [m]: whom they were asked about
    # [m]: the log odds of not being healthy, as if healthy and ill were equally frequent: the classifier
    # balances its classes.
    logit: Floats
    # [m, K]: the probability of each class, as if all were equally frequent; None where there are only two.
    probability: Floats | None
    # Whom the classifiers learned from.
    n_healthy: int
    n_ill: int
    models: tuple[Any, Any]  # the binary classifier, and that of all classes or None

    @classmethod
    def joined(cls, folds: Sequence[Prediction]) -> Prediction:
        """Put the predictions of several folds after each other; whom each learned from is the first's."""
        given = [one.probability for one in folds if one.probability is not None]
        return replace(
            folds[0],
            rows=np.concatenate([one.rows for one in folds]),
            logit=np.concatenate([one.logit for one in folds]),
            probability=np.concatenate(given) if given else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of some people, [m, d], NaN where missing; and what each column is."""

    matrix: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, block: Block, source: Any, given: Any, n: int) -> Features:
        """Return a block of the features that its source gave of ``n`` people."""
        matrix = checked(block.name, given, n)
        size = matrix.shape[1]
        told = source.get_feature_names_out() if hasattr(source, "get_feature_names_out") else ()
        names = [str(name) for name in told]
        if len(names) != size:
            names = [f"{block.name}_{number}" for number in range(1, size + 1)]
        kept = range(size) if block.keep is None else block.keep
        return cls(block.pick(matrix), tuple(names[column] for column in kept))

    def people(self, rows: Integers) -> Features:
        """Return the features of some of the people."""
        return Features(self.matrix[rows], self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Representations of a cohort, and the classifier that is to judge them."""

    cohort: Cohort  # the people
    label: Integers  # [n]: their classes; 0 is healthy
    n_classes: int  # how many classes there are; with more than two all of them are told apart too
    blocks: Mapping[str, Block]  # blocks of features by name
    representations: Mapping[str, tuple[str, ...]]  # which blocks each representation is made of
    scale_blocks: BlockScaling = "fusion"  # when blocks are divided by the square root of their size
    # The features, of everybody, of blocks that learn nothing.
    fixed: Mapping[str, Features] = field(default_factory=dict)

    def features(self, learners: Integers, rows: Integers) -> dict[str, Features]:
        """Return the blocks of these rows, with sources that learned from the learners."""
        found: dict[str, Features] = {}
        known: dict[int, tuple[Any, Any]] = {}  # by source: what has learned, and what it gave
        for name, block in self.blocks.items():
            if name in self.fixed:
                found[name] = self.fixed[name].people(rows)
                continue
            if (key := id(block.source)) not in known:
                source = block.fresh_source()
                source.fit(self.cohort[learners])
                known[key] = source, source.transform(self.cohort[rows])
            found[name] = Features.of(block, *known[key], len(rows))
        return found

    def predict(
        self, learners: Integers, rows: Integers
    ) -> tuple[dict[str, Prediction], dict[str, Features]]:
        """Return what each representation says of the people in these rows, and the features it rests on.

        The features are those of the learners first, then of the others.
        """
        if len(np.intersect1d(learners, rows)):
            raise DataError("Some people are both learned from and judged; nobody may be both.")
        features = self.features(learners, np.concatenate([learners, rows]))
        said = {}
        for name, blocks in self.representations.items():
            x = self.prepare(blocks, [features[block].matrix for block in blocks], len(learners))
            said[name] = self.judge(x, self.label[learners], rows)
        return said, features

    def is_scaled(self, blocks: Sequence[str]) -> bool:
        """Return whether these blocks are scaled when they stand side by side."""
        return is_scaled([self.blocks[block] for block in blocks], self.scale_blocks)

    def prepare(self, blocks: Sequence[str], matrices: Sequence[Floats], n_learners: int) -> Floats:
        """Return blocks side by side, imputed and standardized by the first rows, those of the learners."""
        scaled = self.is_scaled(blocks)
        return Preparation.learn([one[:n_learners] for one in matrices], scaled=scaled).apply(matrices)

    def judge(self, x: Floats, label: Integers, rows: Integers) -> Prediction:
        """Return what classifiers say that learned from the first rows of ``x``, whose labels are given."""
        n = len(label)
        ill = label > 0
        binary = classifier().fit(x[:n], ill)
        several = classifier().fit(x[:n], label) if self.n_classes > 2 else None
        return Prediction(
            rows=rows,
            logit=log_odds(binary, x[n:]) if len(rows) else np.zeros(0),
            probability=several.predict_proba(x[n:]).round(8) if several is not None and len(rows) else None,
            n_healthy=int((~ill).sum()),
            n_ill=int(ill.sum()),
            models=(binary, several),
        )
