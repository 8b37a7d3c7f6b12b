"""Numbers about people that stand in the participants table already: scores, age, education, sex.

A named block of features, and when blocks are scaled to stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    TransformerMixin,
    clone,
)

from fidm.cohort import Cohort
from fidm.defaults import SCORE
from fidm.errors import DataError
from fidm.types import Floats

Kind = Literal["clinical", "behaviour", "language", "fidm", "ablation", "own"]


BlockScaling = Literal["fusion", "language", "never"]


LARGEST = 1e100
"""Larger numbers are slips, and would turn into infinite ones when they are squared."""


class Block(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One named set of features: all that a transformer gives, or some of its columns.

    Parameters
    ----------
    name : str
        What it is called.
    source : transformer
        A scikit-learn transformer, or anything with ``fit`` and ``transform``, that turns a
        :class:`fidm.Cohort` into numbers [n, d], NaN where they are missing. Several blocks may share one.
    keep : tuple of int, optional
        The columns that belong to the block; all of them if left out.
    kind : str
        What kind of representation it is on its own.
    notes : tuple of str
        What a reader has to know about it, such as channels that could not be learned.
    """

    def __init__(
        self,
        name: str,
        source: Any,
        keep: tuple[int, ...] | None = None,
        *,
        kind: Kind = "own",
        notes: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.source = source
        self.keep = keep
        self.kind = kind
        self.notes = notes

    @property
    def learns(self) -> bool:
        """Whether the source learns from people, so that every training fold needs its own."""
        return bool(getattr(self.source, "learns", True))

    @property
    def is_language(self) -> bool:
        """Whether it is made of what people said."""
        return self.kind == "language"

    def fresh_source(self) -> Any:
        """Return a source that has learned nothing yet; the source itself if it never learns."""
        if not self.learns:
            return self.source
        if isinstance(self.source, type):
            raise DataError(f"{self.name} is a class; an object made of it is needed.")
        return clone(self.source) if hasattr(self.source, "get_params") else deepcopy(self.source)

    def without_source(self) -> Block:
        """Return the block for those who have its features already: no words, no files, nothing to copy."""
        return Block(self.name, None, self.keep, kind=self.kind, notes=self.notes)

    def fit(self, X: Cohort, y: Any = None) -> Block:  # noqa: N803
        """Let the source learn from these people."""
        self.source.fit(X, y)
        return self

    def transform(self, X: Cohort) -> Floats:  # noqa: N803
        """Return the features of these people, [n, d]."""
        return self.pick(checked(self.name, self.source.transform(X), len(X)))

    def pick(self, matrix: Floats) -> Floats:
        """Return the block's own columns of what its source gave."""
        return matrix if self.keep is None else matrix[:, list(self.keep)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features, once the source is fitted."""
        names = np.asarray(self.source.get_feature_names_out(), dtype=object)
        return names if self.keep is None else names[list(self.keep)]

    def __sklearn_clone__(self) -> Block:
        """A copy has a source of its own if that learns; one that learns nothing is shared."""
        return Block(self.name, self.fresh_source(), self.keep, kind=self.kind, notes=self.notes)

    def __sklearn_is_fitted__(self) -> bool:
        return True  # the source says so itself


def checked(name: str, given: Any, n: int) -> Floats:
    """Return what a source gave as numbers [n, d], or say what is wrong with it."""
    raw = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
    try:
        matrix = raw.astype(np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        matrix = None
    if matrix is None:
        raise DataError(f"{name} gives something other than numbers.")
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) != n:
        raise DataError(
            f"{name} gives numbers of the shape {matrix.shape} for {n} people; one row each is needed."
        )
    if not matrix.shape[1]:
        raise DataError(f"{name} has no features.")
    if (np.abs(matrix) > LARGEST).any():
        raise DataError(
            f"{name} gives infinite or absurdly large values; a classifier needs finite ones, or NaN where "
            "missing."
        )
    return matrix


def is_scaled(blocks: Sequence[Block], how: BlockScaling = "fusion") -> bool:
    """Return whether each of these blocks of d features is divided by √d before they stand side by side.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks of one representation.
    how : {"fusion", "language", "never"}
        In every fusion; only where a language block takes part, as the paper writes; or never. A single block
        is never scaled.
    """
    if how not in ("fusion", "language", "never"):
        raise DataError(f"scale_blocks is {how!r}; it must be 'fusion', 'language' or 'never'.")
    if len(blocks) < 2 or how == "never":
        return False
    return how == "fusion" or any(block.is_language for block in blocks)


SUBSCORES = "score_"
"""What the names of columns with subscores begin with, unless they are named."""

DEMOGRAPHICS = ("age_years", "education_years", "sex")
"""The columns that tell who somebody is."""


class TableFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Takes columns of the participants table as they are; an empty cell is NaN.

    Nothing is learned, so it can be made once for everybody.

    Parameters
    ----------
    columns : sequence of str
        Columns that hold numbers, or yes and no.
    levels : mapping of str to two texts, optional
        Columns that hold two texts instead, and which of them is 0 and which is 1.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> from fidm.classify.tabular import TableFeatures
    >>> cohort = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)
    >>> cohort = cohort.with_participants(
    ...     pl.DataFrame({"participant": cohort.ids, "age_years": [71, None, 80], "sex": ["f", "m", "f"]})
    ... )
    >>> TableFeatures(["age_years", "sex"], {"sex": ("f", "m")}).fit_transform(cohort).tolist()
    [[71.0, 0.0], [nan, 1.0], [80.0, 0.0]]
    """

    learns = False

    def __init__(self, columns: Sequence[str], levels: Mapping[str, tuple[str, str]] | None = None) -> None:
        self.columns = columns
        self.levels = levels

    def fit(self, X: Cohort, y: Any = None) -> TableFeatures:  # noqa: N803
        """Learn nothing."""
        return self

    def transform(self, X: Cohort) -> Floats:  # noqa: N803
        """Return the columns of these people, [n, K]."""
        found = np.empty((len(X), len(self.columns)))
        for place, name in enumerate(self.columns):
            found[:, place] = _numbers(X, name, (self.levels or {}).get(name))
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns."""
        return np.array(list(self.columns), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def words_of(participants: pl.DataFrame, name: str, *, why: str) -> pl.Series:
    """Return a column as texts without spaces around them; null where a cell is empty, blank or NaN.

    Parameters
    ----------
    participants : DataFrame
        The table.
    name : str
        The column.
    why : str
        What it is needed for: "so there is nothing to tell apart".
    """
    if name not in participants.columns:
        raise DataError(f"The participants have no column {name!r}, {why}.")
    column = participants[name]
    kind = column.dtype
    if kind.is_nested() or kind in (pl.Duration, pl.Binary, pl.Object):
        raise DataError(
            f"The column {name!r} of the participants holds {kind}; a word or a number each is needed."
        )
    words = (column.fill_nan(None) if kind.is_float() else column).cast(pl.String).str.strip_chars()
    return words.set(words == "", None)


def score_columns(
    cohort: Cohort, *, score: str = SCORE, subscores: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the column with the total score and those with subscores.

    Parameters
    ----------
    cohort : Cohort
        The people.
    score : str
        The column with the total score.
    subscores : sequence of str, optional
        The columns with subscores. Left out, all others that hold numbers and are called ``score_…``.
    """
    _column(cohort, score)
    if subscores is None:
        table = cohort.participants
        subscores = [
            name
            for name, kind in table.schema.items()
            if name.startswith(SUBSCORES) and name != score and (kind.is_numeric() or kind == pl.Boolean)
        ]
        if not subscores:
            raise DataError(
                f"The participants have no columns {SUBSCORES}… with numbers besides {score!r}, so there are "
                "no subscores. Name their columns, or leave score+subscores out."
            )
    if score in subscores or len(set(subscores)) < len(subscores):
        raise DataError(f"A column is named twice among the scores: {', '.join((score, *subscores))}.")
    return (score, *subscores)


def table_features(cohort: Cohort, columns: Sequence[str]) -> TableFeatures:
    """Return a transformer for columns, after a look at whether these people have something in them.

    A column of texts must have two different ones, such as ``female`` and ``male``; the first by the alphabet
    is 0, the second 1.
    """
    levels = {}
    for name in columns:
        column = _column(cohort, name)
        if column.dtype == pl.String:
            texts = column.drop_nulls().unique().sort().to_list()
            if len(texts) != 2:
                raise DataError(
                    f"The column {name!r} of the participants holds {len(texts)} different texts; numbers "
                    "are needed, or two texts that become 0 and 1."
                )
            levels[name] = (texts[0], texts[1])
        elif np.isnan(_numbers(cohort, name, None)).all():
            raise DataError(
                f"The column {name!r} of the participants is empty for all {len(cohort)} people. Fill it in, "
                "name another column, or leave it out."
            )
    return TableFeatures(tuple(columns), levels or None)


def _column(cohort: Cohort, name: str) -> pl.Series:
    if name not in cohort.participants.columns:
        raise DataError(
            f"The participants have no column {name!r}. Add it to the participants table, name another "
            "column, or leave out what needs it."
        )
    return cohort.participants[name]


def _numbers(cohort: Cohort, name: str, levels: tuple[str, str] | None) -> Floats:
    """The column as numbers, NaN where a cell is empty."""
    column = _column(cohort, name)
    if levels is not None:
        strange = (~column.cast(pl.String).is_in(list(levels)) & column.is_not_null()).to_numpy()
        if strange.any():
            who = cohort.ids[int(strange.argmax())]
            raise DataError(
                f"The column {name!r} of the participants holds a text for {who} that "
                "those learned from do not have, so it is neither 0 nor 1."
            )
        column = column.cast(pl.String) == levels[1]
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise DataError(f"The column {name!r} of the participants holds {column.dtype}; numbers are needed.")
    numbers = column.cast(pl.Float64).to_numpy()
    if (np.abs(numbers) > LARGEST).any():
        raise DataError(f"The column {name!r} of the participants holds infinite or absurdly large numbers.")
    return np.asarray(numbers, dtype=np.float64)
