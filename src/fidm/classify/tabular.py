"""Numbers about people that stand in the participants table already: scores, age, education, sex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from fidm.cohort import Cohort
from fidm.defaults import SCORE
from fidm.errors import DataError
from fidm.types import Floats

LARGEST = 1e100
"""Larger numbers are slips, and would turn into infinite ones when they are squared."""


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


def words_in_column(participants: pl.DataFrame, name: str, *, why: str) -> pl.Series:
    """Return a column as texts without spaces around them; null where a cell is empty, blank or NaN.

    ``why`` says in an error what the column is needed for: "so there is nothing to tell apart".
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
        subscores = [
            name
            for name, kind in cohort.participants.schema.items()
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
