"""What experiments share: the paper's classifier, learning what can be learned, people who belong together.

The classifier is that of the paper's appendix B.2. Missing values are imputed by the median, features
standardized, and in a fusion every block of d features is divided by √d. All of it is learned from the rows
the classifier learns from, and from no others. A channel that people tell nothing about is left out of a fit,
with the reason why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, meant
from fidm.fit.effort_alone import EffortFit
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.model.channels import Channel
from fidm.stats import deal_classes
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Integers, Values

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FOLDS = 5
"""The paper's number of folds."""

EXACT, QUICK = 1e-8, 1e-4
"""Where the search for the weights ends: exact to some seven digits; or as in scikit-learn, within .001."""

MOST_STEPS = 10_000
"""The most steps of that search; it ends long before."""


def classifier(*, tolerance: float = EXACT) -> LogisticRegression:
    """Return the paper's classifier: logistic regression, an L2 penalty with C = 1, balanced classes.

    One for all representations and any number of classes; more than two are one multinomial model.

    Parameters
    ----------
    tolerance : float
        The search for the weights ends where the mean gradient is below this. scikit-learn's usual 1e-4 stops
        early enough to move an area under the curve by up to 0.001; the default here goes on until nothing
        moves any more.
    """
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        C=1.0, class_weight="balanced", solver="lbfgs", tol=tolerance, max_iter=MOST_STEPS
    )


def log_odds(learned: LogisticRegression, features: Floats) -> Floats:
    """Return what a classifier says of people, [n], to eight decimals.

    People with the same features have the same log odds but for the last bits, which are not the same on
    every processor: without rounding, chance would break their ties, and move an area under the curve.
    """
    return np.asarray(np.round(learned.decision_function(features), 8))


@contextmanager
def many_small_fits() -> Iterator[None]:
    """Make thousands of small classifiers quickly: one thread each, and numbers are not checked again.

    With a thread per processor, linear algebra on tables this small spends its time on waiting.
    """
    from sklearn import config_context
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """How features are prepared for a classifier: medians, means and spreads learned from training rows.

    The numbers are those of scikit-learn's ``SimpleImputer`` (median) and ``StandardScaler``, then each block
    divided by √d if it is scaled; without their overhead.

    Parameters
    ----------
    median, mean, spread : float array [D]
        Of every feature, block after block. A feature without any value has the median 0; one that does not
        vary has the spread 1. A block's scale is part of the spread.

    Examples
    --------
    >>> import numpy as np
    >>> from fidm.experiments.shared import Preparation
    >>> block = np.array([[1.0], [3.0], [np.nan]])
    >>> Preparation.learn([block]).apply([block]).round(3)[:, 0].tolist()
    [-1.225, 1.225, 0.0]
    """

    median: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def learn(cls, blocks: Sequence[Floats], *, scaled: bool = False) -> Preparation:
        """Learn from training rows.

        Parameters
        ----------
        blocks : sequence of float array [n, d]
            The features of each block, NaN where missing.
        scaled : bool
            Whether to divide each block of d features by √d; see :func:`fidm.classify.features.is_scaled`.
        """
        x = np.concatenate(blocks, axis=1)
        median = _medians(x)
        x = np.where(np.isnan(x), median, x)
        mean = x.mean(axis=0)
        away = x - mean
        rounding = np.square(away.mean(axis=0))
        variance = np.maximum(np.square(away).mean(axis=0) - rounding, 0.0)
        precision = np.finfo(np.float64).eps * len(x)
        constant = variance <= precision * variance + np.square(precision * mean)
        spread = np.where(constant, 1.0, np.sqrt(variance))
        if scaled:
            sizes = [block.shape[1] for block in blocks]
            spread *= np.repeat(np.sqrt(sizes), sizes)
        return cls(median, mean, spread)

    def apply(self, blocks: Sequence[Floats]) -> Floats:
        """Return the features a classifier is given, [n, D], of these rows."""
        x = np.concatenate(blocks, axis=1)
        return np.asarray((np.where(np.isnan(x), self.median, x) - self.mean) / self.spread)


def _medians(x: Floats) -> Floats:
    """The median of each column without its missing values; 0 where all are missing."""
    missing = np.isnan(x)
    if not missing.any():
        return np.asarray(np.median(x, axis=0))
    ordered = np.sort(x, axis=0)  # NaN come last
    n = len(x) - missing.sum(axis=0)
    low, high = np.maximum(n - 1, 0) // 2, np.minimum(n // 2, len(x) - 1)
    columns = np.arange(x.shape[1])
    middle = 0.5 * (ordered[low, columns] + ordered[high, columns])
    return np.where(n > 0, middle, 0.0)


def cross_validated_auc(
    features: ArrayLike,
    label: ArrayLike,
    *,
    seed: int,
    groups: ArrayLike | None = None,
    folds: int = FOLDS,
) -> float:
    """Return the mean area under the curve over the folds, each judged by a classifier that did not see it.

    Parameters
    ----------
    features : array [n, K] or [n]
        Numbers; NaN where missing. Infinite values are refused.
    label : bool array [n]
        The group of each person.
    seed : int
        Of the folds.
    groups : array [n], optional
        Rows of the same group stay in the same fold.
    folds : int
        How many folds.
    """
    x = np.asarray(features, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    y = np.asarray(label, dtype=np.bool_)
    if x.ndim != 2 or len(x) != len(y):
        raise DataError(f"features have the shape {x.shape}, but there are {len(y)} labels.")
    if np.isinf(x).any():
        raise DataError("features hold infinite values; a classifier needs finite ones.")
    smaller = int(min(y.sum(), (~y).sum()))
    if smaller < folds:
        raise DataError(f"The smaller group has {smaller} people; {folds} folds need at least {folds}.")
    x = x[:, np.flatnonzero(~np.isnan(x).all(axis=0))]
    if not x.shape[1]:
        raise DataError("No feature has a value.")
    fold = deal_classes(y, folds, seed=seed, groups=groups)
    parts = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(folds)]
    return float(np.mean([held_out_auc(x, y, train, test) for train, test in parts]))


def held_out_auc(features: Floats, label: NDArray[Any], train: Integers, test: Integers) -> float:
    """Return the area under the curve among some people, by a classifier that learned from others.

    ``features`` [n, K] are NaN where missing; ``label`` [n] has two values, the second of which is looked
    for; ``train`` and ``test`` are the rows to learn from and to judge by.
    """
    from sklearn.metrics import roc_auc_score

    prepared = Preparation.learn([features[train]])
    learned = classifier(tolerance=QUICK).fit(prepared.apply([features[train]]), label[train])
    score = log_odds(learned, prepared.apply([features[test]]))
    return float(roc_auc_score(label[test], score))


AnyFit = TypeVar("AnyFit", bound=EffortFit)
Made = TypeVar("Made")


def fit_learnable(
    tasks: Sequence[TaskModel],
    cohort: Cohort,
    channels: Sequence[Channel],
    *,
    method: Literal["eb", "mle"] = "eb",
    population: Literal["random", "pooled"] = "random",
    joint: bool = False,
    values: Sequence[Values] | None = None,
    inferred: float = 0.0,
    workers: int | None = None,
) -> tuple[Fit, dict[str, str]]:
    """Fit a model with those channels that these people tell something about, and say why others are not.

    The rest is as in :class:`fidm.Model` and :meth:`fidm.Model.fit`. The channels that could not be learned
    come back with the reason, by their names.
    """

    def fit(channels: Sequence[Channel]) -> Fit:
        model = Model(tasks, channels=channels, values=values, inferred=inferred)
        return model.fit(cohort, method=method, population=population, joint=joint, workers=workers)

    return with_learnable(cohort, channels, fit)


def with_learnable(
    cohort: Cohort, channels: Sequence[Channel], work: Callable[[Sequence[Channel]], Made]
) -> tuple[Made, dict[str, str]]:
    """Return what is made with those channels that can be learned, and why each of the others cannot."""
    failures: dict[str, str] = {}
    wanted = []
    for channel in channels:
        if channel.column in cohort.segments.columns:
            wanted.append(channel)
        else:
            failures[channel.name] = f"The segments have no column {channel.column}."
    while True:
        try:
            return work(wanted), failures
        except FitError as error:
            if not error.channel:
                raise
            failures[error.channel] = error.message
            wanted = [channel for channel in wanted if channel.name != error.channel]


def by_method(fit: AnyFit, method: Literal["eb", "mle"]) -> AnyFit:
    """Return the same population with people estimated one parameter at a time by this method."""
    changes: dict[str, Any] = {"method": method}
    if isinstance(fit, Fit):
        changes["joint"] = None
        if method == "mle":  # everybody by their own likelihood alone
            changes["kinds"] = None
    return replace(fit, **changes)


def groups_of(people: Cohort, together: str | None) -> NDArray[np.int64]:
    """Return the number of the group each person belongs to, [P]; everybody their own if none is asked for.

    ``together`` is a column of the participants: people with the same value belong together, and those
    without a value to nobody.
    """
    if together is None:
        return np.arange(len(people))
    if together not in people.participants.columns:
        raise DataError(f"The participants have no column {together!r}.")
    values = people.participants[together].cast(pl.String)
    names = [f"={value}" if value is not None else f"?{j}" for j, value in enumerate(values)]
    return np.unique(np.array(names), return_inverse=True)[1].astype(np.int64)


PARTS = {"halves": 2, "thirds": 3, "quarters": 4, "fifths": 5, "tenths": 10}
"""Rules that deal each person's episodes, in their order, to so many equal blocks."""

MOST_BLOCKS = 50
"""More blocks than this are refused: single trials tell too little of η."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks that episodes belong to, in order.

    Parameters
    ----------
    of_episode : int array [E]
        The block of each episode; -1 for none.
    names : tuple of str
        What they are called.
    at : float array [K]
        Where they lie: the numbers of a column of numbers, or else 0, 1, 2 …
    unit : str
        What one more of ``at`` is.
    """

    of_episode: Integers
    names: tuple[str, ...]
    at: Floats
    unit: str

    @classmethod
    def of(cls, cohort: Cohort, by: str) -> Blocks:
        """Return the blocks that a column of the episodes names, or a rule: "every 10", "thirds"."""
        every = re.fullmatch(r"every[ -]?(\d+)(?:[ -]episodes)?", by)
        if by in cohort.episodes.columns:
            found = _named_blocks(cohort, by)
        elif by in PARTS or (every and int(every[1])):
            rank, n = episode_ranks(cohort)
            block = rank // int(every[1]) if every else rank * PARTS[by] // np.maximum(n, 1)
            names = tuple(str(k + 1) for k in range(int(block.max(initial=-1)) + 1))
            found = cls(block, names, np.arange(len(names), dtype=np.float64), "block")
        else:
            columns = [name for name in cohort.episodes.columns if name not in ("episode", "task")]
            rules = f"'every 10' (episodes), {', '.join(map(repr, PARTS))}"
            has = (
                f"Episodes have {', '.join(map(repr, columns))}."
                if columns
                else "Episodes have no columns of their own."
            )
            raise DataError(
                f"{by!r} is neither a column of the episodes nor a rule. {has} Rules: {rules}. "
                f"{meant([by], [*columns, *PARTS])}".rstrip()
            )
        if len(found.names) > MOST_BLOCKS:
            raise DataError(
                f"{by} makes {len(found.names):,} blocks; at most {MOST_BLOCKS} are possible. Put several "
                "episodes into a block: 'every 10', 'fifths', or a column with fewer values."
            )
        return found


def episode_ranks(cohort: Cohort) -> tuple[Integers, Integers]:
    """Return the place of each episode among its person's, from 0, and how many these are, [E] each."""
    sizes = np.diff(cohort.episode_offsets)
    return np.arange(cohort.n_episodes) - np.repeat(cohort.episode_offsets[:-1], sizes), np.repeat(
        sizes, sizes
    )


def _named_blocks(cohort: Cohort, by: str) -> Blocks:
    """The blocks of a column: numbers and dates in their order, texts as they follow each other in people."""
    column = cohort.episodes[by]
    if column.dtype.is_float():
        column = column.fill_nan(None)
    as_number = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else None
    if as_number is not None and as_number.null_count() == column.null_count():
        column = as_number
    is_number = column.dtype.is_numeric()
    if is_number or column.dtype.is_temporal():
        values = column.drop_nulls().unique().sort().to_list()
    else:
        column = column.cast(pl.String)
        rank, n = episode_ranks(cohort)
        order = pl.DataFrame({"value": column, "place": rank / np.maximum(n - 1, 1)}).drop_nulls()
        values = order.group_by("value").agg(pl.mean("place")).sort("place", "value")["value"].to_list()
    block = pl.Series(values, dtype=column.dtype)
    places = pl.DataFrame({"value": block}).with_row_index("block")
    own = pl.DataFrame({"value": column}).join(places, on="value", how="left", maintain_order="left")
    of_episode = own["block"].cast(pl.Int64).fill_null(-1).to_numpy()
    at = np.array(values, dtype=np.float64) if is_number else np.arange(len(values), dtype=np.float64)
    names = tuple(f"{value:g}" if is_number else str(value) for value in values)
    return Blocks(of_episode, names, at, by if is_number else "block")
