"""What the participants table says of people already, as features, and as groups to judge a classifier in.

Scores, age, education and sex are baselines of their own. The same columns cut people into groups: a
classifier can do well on average and badly for, say, people with little schooling. The groups are small, so
the intervals are wide, and overlapping intervals are no proof that there is no difference. TRIPOD+AI
(Collins et al. 2024, BMJ 385, e078378) asks for such results by group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from fidm.classify.intervals import Estimate, auc, balanced_accuracy
from fidm.classify.result import GROUPS
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


USUAL = (("age_years", "age"), ("sex", "gender"), ("education_years", "education"))
"""The columns people are cut by unless others are named: the first of each that exists."""

MOST_AS_THEY_ARE = 6
"""A column of numbers with more different values than this is cut into thirds."""

FEWEST = 5
"""A group needs this many people of either class to be judged."""


def usual_columns(participants: pl.DataFrame) -> tuple[str, ...]:
    """Return the columns of age, sex and education that these participants have, in this order."""
    found = (next((name for name in names if name in participants.columns), None) for names in USUAL)
    return tuple(name for name in found if name is not None)


def cut_people(
    participants: pl.DataFrame, columns: Sequence[str] | None = None, *, learn_from: ArrayLike | None = None
) -> pl.DataFrame:
    """Say which group each person belongs to, by age, sex, schooling or any other column.

    Numbers with more than six different values are cut into thirds, with bounds learned from some of the
    people (the training part), so that the people a classifier is judged on have no say in them. Everything
    else stays as it is.

    Parameters
    ----------
    participants : DataFrame
        One row per person.
    columns : sequence of str, optional
        What to cut by; by default those of age, sex and education that exist.
    learn_from : int array of rows or bool array [n], optional
        The people whose values set the bounds; by default everybody.

    Returns
    -------
    DataFrame
        The same rows, one column of groups per column, as an ordered list of words (``Enum``); null where
        the value is unknown.

    Examples
    --------
    >>> people = pl.DataFrame({"age_years": [61, 64, 66, 69, 70, 74, 77, 80, 85], "sex": ["f", "m", "f"] * 3})
    >>> found = cut_people(people)
    >>> found["age_years"].unique(maintain_order=True).to_list()
    ['under 68', '68–74', '75 and over']
    """
    names = usual_columns(participants) if columns is None else tuple(columns)
    missing = [name for name in names if name not in participants.columns]
    if missing:
        raise DataError(
            f"The participants have no column {', '.join(missing)}. They have: "
            f"{', '.join(participants.columns)}."
        )
    rows = np.arange(participants.height) if learn_from is None else np.asarray(learn_from)
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    return pl.DataFrame({name: _cut(participants[name], rows.astype(np.int64)) for name in names})


def by_group(
    groups: pl.DataFrame, *, score: ArrayLike, predicted: ArrayLike, positive: ArrayLike, level: float = 0.95
) -> pl.DataFrame:
    """Give the AUC and the balanced accuracy within each group of people.

    Parameters
    ----------
    groups : DataFrame
        From :func:`cut_people`, for the people that are judged.
    score : array [n]
        Higher for likelier cases, by a classifier that has not seen the person.
    predicted : bool array [n]
        Who is called a case.
    positive : bool array [n]
        Who is one.
    level : float
        Of the intervals.

    Returns
    -------
    DataFrame
        ``column``, ``group``, ``n``, ``n_cases``, ``metric`` ("auc" or "balanced_accuracy"), ``value``,
        ``low``, ``high``, ``why``. Groups with fewer than five people of either class have no value, and
        ``why`` says so. People whose group is unknown are in none.
    """
    x, called = np.asarray(score, dtype=np.float64), np.asarray(predicted, dtype=np.bool_)
    y = np.asarray(positive, dtype=np.bool_)
    if not x.shape == called.shape == y.shape == (groups.height,):
        raise DataError(
            f"There are {groups.height} people in groups, but scores of the shape {x.shape}, "
            f"predictions of the shape {called.shape} and labels of the shape {y.shape}."
        )
    rows: list[tuple[str, str, int, int, str, float | None, float | None, float | None, str | None]] = []
    for column in groups.columns:
        for group in _in_order(groups[column]):
            inside = (groups[column].cast(pl.String) == group).fill_null(False).to_numpy()
            n, cases = int(inside.sum()), int(y[inside].sum())
            why: str | None = f"{cases} cases and {n - cases} others; at least {FEWEST} of each are needed"
            found: dict[str, Estimate | None] = {"auc": None, "balanced_accuracy": None}
            if min(cases, n - cases) >= FEWEST:
                why = None
                found["auc"] = auc(x[inside], y[inside])
                found["balanced_accuracy"] = balanced_accuracy(called[inside], y[inside], 2)
            for metric, estimate in found.items():
                value = None if estimate is None else estimate.value
                low, high = (None, None) if estimate is None else estimate.interval(level)
                rows.append((column, group, n, cases, metric, value, low, high, why))
    schema = {name: kind for name, kind in GROUPS.items() if name not in ("part", "representation")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _in_order(groups: pl.Series) -> list[str]:
    """Return the groups somebody is in: as the list of words has them, or by the alphabet."""
    there = set(groups.drop_nulls().cast(pl.String).to_list())
    if isinstance(groups.dtype, pl.Enum):
        return [word for word in groups.dtype.categories.to_list() if word in there]
    return sorted(there)


def _cut(values: pl.Series, rows: NDArray[np.int64]) -> pl.Series:
    if not values.dtype.is_numeric():
        words = words_in_column(values.to_frame(), values.name, why="so there are no groups")
        return words.cast(pl.Enum(words.drop_nulls().unique().sort()))
    x = values.cast(pl.Float64).to_numpy()
    x = np.where(np.abs(x) <= LARGEST, x, np.nan)
    learned = x[rows]
    different = np.unique(learned[~np.isnan(learned)])
    if len(different) <= MOST_AS_THEY_ARE:
        kinds = np.unique(x[~np.isnan(x)])
        names = {float(kind): _say(float(kind)) for kind in kinds}
        return pl.Series(
            values.name, [names.get(float(v)) for v in x], dtype=pl.Enum(list(dict.fromkeys(names.values())))
        )
    cuts, whole = _bounds(learned[~np.isnan(learned)], different)
    labels = _labels(cuts, whole)
    place = np.searchsorted(cuts, x, side="right")
    return pl.Series(
        values.name,
        [None if np.isnan(v) else labels[k] for v, k in zip(x, place, strict=True)],
        dtype=pl.Enum(labels),
    )


def _bounds(learned: Floats, different: Floats) -> tuple[Floats, bool]:
    """Return where the second and third group begin, and whether the numbers are whole.

    Bounds that leave nobody below them are dropped; there may be two groups instead of three.
    """
    whole = bool((different == np.rint(different)).all())
    decimals = 0 if whole else min(max(2 - math.floor(math.log10(different[-1] - different[0])), 0), 12)
    cuts = np.unique(np.round(np.quantile(learned, [1 / 3, 2 / 3]), decimals))
    cuts = cuts[(cuts > different[0]) & (cuts <= different[-1])]
    return (cuts if len(cuts) else different[1:2]), whole


def _labels(cuts: Floats, whole: bool) -> list[str]:
    labels = [f"under {_say(float(cuts[0]))}"]
    for low, high in itertools.pairwise(cuts):
        if not whole:
            labels.append(f"{_say(float(low))} to under {_say(float(high))}")
        elif high - low == 1:
            labels.append(_say(float(low)))
        else:
            labels.append(f"{_say(float(low))}–{_say(float(high) - 1)}")
    return [*labels, f"{_say(float(cuts[-1]))} and over"]


def _say(number: float) -> str:
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.12g}"
