"""Predicting people's status by classifiers that have not seen them.

Everything that learns (what people share, medians, means and spreads, the classifier) learns from the people
to learn from, and from nobody else. Sources of features never see a status. Those that learn nothing, such as
a score or the vector of somebody's words, are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fidm.classify.features import Block, BlockScaling, checked, is_scaled
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.experiments.shared import Preparation, classifier
from fidm.types import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What classifiers say of people they have not seen.

    Parameters
    ----------
    rows : int array [m]
        Whom they were asked about.
    logit : float array [m]
        The log odds of not being healthy, as if healthy and ill were equally frequent: the classifier
        balances its classes.
    probability : float array [m, K] or None
        The probability of each class, as if all were equally frequent; None where there are only two.
    n_healthy, n_ill : int
        Whom the classifiers learned from.
    models : tuple
        The binary classifier, and that of all classes or None.
    """

    rows: Integers
    logit: Floats
    probability: Floats | None
    n_healthy: int
    n_ill: int
    models: tuple[Any, Any]

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
    """Representations of a cohort, and the classifier that is to judge them.

    Parameters
    ----------
    cohort : Cohort
        The people.
    label : int array [n]
        Their classes; 0 is healthy.
    n_classes : int
        How many classes there are; with more than two all of them are told apart too.
    blocks : mapping of str to Block
        Blocks of features by name.
    representations : mapping of str to tuple of str
        Which blocks each representation is made of.
    scale_blocks : {"fusion", "language", "never"}
        When blocks are divided by the square root of their size.
    fixed : mapping of str to Features
        The features, of everybody, of blocks that learn nothing.
    """

    cohort: Cohort
    label: Integers
    n_classes: int
    blocks: Mapping[str, Block]
    representations: Mapping[str, tuple[str, ...]]
    scale_blocks: BlockScaling = "fusion"
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
            logit=binary.decision_function(x[n:]) if len(rows) else np.zeros(0),
            probability=several.predict_proba(x[n:]) if several is not None and len(rows) else None,
            n_healthy=int((~ill).sum()),
            n_ill=int(ill.sum()),
            models=(binary, several),
        )
