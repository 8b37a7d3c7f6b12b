"""What is asked, and of whom: the protocol, the classes, who learns and who is judged, by whole people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.classify.features import BlockScaling
from fidm.classify.tabular import words_in_column
from fidm.cohort import Cohort
from fidm.defaults import LABEL, NORMAL, PERMUTATIONS, REPEATS, SCORE
from fidm.errors import DataError, remedy
from fidm.model.channels import Channel
from fidm.stats import deal_classes
from fidm.types import Integers

UNKNOWN = -1
"""The class of people whose status is not known."""

MOST_CLASSES = 10
"""A column with more different values than this names no classes."""

LONGEST_NAME = 20
"""A value with more characters than this is not repeated in a message."""

FEWEST_IN_CLASS = 5
"""Of fewer people in a class nobody is advised to use fewer folds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How people are to be told apart: the options of :func:`fidm.study.classify`, described there."""

    representations: Sequence[str] | None = None
    channels: Sequence[Channel] | None = None
    label: str = LABEL
    normal: str = NORMAL
    score_column: str = SCORE
    subscores: Sequence[str] | None = None
    together: str | None = None
    by: Sequence[str] | None = None
    folds: int = 5
    repeats: int = REPEATS
    permutations: int = PERMUTATIONS
    seed: int = 1
    paper_estimates: bool = False
    scale_blocks: BlockScaling = "fusion"
    workers: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("repeats", 1), ("permutations", 0), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or not least <= value < 2**32:
                raise DataError(
                    f"{name} is {value!r}; a whole number of {least} or more (below 2³²) is needed."
                )
        for name in ("representations", "by", "subscores"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise DataError(f"{name} is one text; a list of names is needed, such as [{given!r}].")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is to be told of whom.

    Parameters
    ----------
    classes : tuple of str
        Healthy people first, then the others, the most frequent first.
    label : int array [n]
        Everybody's class; -1 where it is not known.
    train, held_out : int array
        Rows of the people who are learned from and cross-validated, and of those kept for the end; people
        whose class is not known, or of whom nothing was observed, are in neither.
    together : int array [n] or None
        People with the same number stay in the same fold.
    n_without_part : int
        How many people of known class are in neither part.
    n_without_data : int
        How many people of a part are left out of it, since nothing was observed of them.
    """

    classes: tuple[str, ...]
    label: Integers
    train: Integers
    held_out: Integers
    together: Integers | None
    n_without_part: int
    n_without_data: int = 0

    @property
    def ill(self) -> NDArray[np.bool_]:
        """Whether each person is of another class than the first."""
        return self.label > 0

    def places(self, rows: Integers) -> Integers:
        """Return the place of every person among those in these rows; -1 for others."""
        place = np.full(len(self.label), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return place

    def smallest(self, rows: Integers) -> tuple[str, int]:
        """Return the class with the fewest people among these, and how many they are."""
        counts = np.bincount(self.label[rows], minlength=len(self.classes))
        least = int(counts.argmin())
        return self.classes[least], int(counts[least])


def ask(
    cohort: Cohort,
    *,
    label: str = LABEL,
    normal: str = NORMAL,
    split: str = "split",
    train: str = "train",
    together: str | None = None,
    folds: int = 5,
    without_data: NDArray[np.bool_] | None = None,
) -> Question:
    """Find out from the participants' table who belongs to which class and part.

    Parameters
    ----------
    cohort : Cohort
        The people.
    label : str
        The column of participants with the classes.
    normal : str
        The class of healthy people, which the binary question sets against all others.
    split : str
        The column that says who is in which part. Without it everybody is in the training part.
    train : str
        The value of ``split`` of those to learn from. All who have another value are held out; who has none
        is in neither part.
    together : str, optional
        A column: people with the same value in it (a family, or two visits of one person) stay together.
    folds : int
        How many folds there will be; each class of the binary question must have as many people.
    without_data : bool array [n], optional
        Who is to be left out, since nothing was observed of them.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> from fidm.classify.question import ask
    >>> people = fidm.simulate_cohort(fidm.load_task("errands"), 12, seed=1)
    >>> people = people.with_participants(
    ...     people.participants.with_columns(diagnosis=pl.Series(["normal", "mci"] * 6))
    ... )
    >>> ask(people).classes
    ('normal', 'mci')
    """
    classes, codes = _classes(cohort, label, normal)
    known = codes != UNKNOWN
    learns, held = _parts(cohort, split, train)
    observed = np.ones(len(cohort), dtype=np.bool_) if without_data is None else ~without_data
    groups = None if together is None else _groups(cohort, together)
    question = Question(
        classes=classes,
        label=codes,
        train=np.flatnonzero(known & learns & observed),
        held_out=np.flatnonzero(known & held & observed),
        together=groups,
        n_without_part=int((known & ~learns & ~held).sum()),
        n_without_data=int((known & (learns | held) & ~observed).sum()),
    )
    if folds < 2:
        raise DataError(f"folds is {folds}; cross-validation needs 2 or more.")
    part = "the training part" if len(question.held_out) else "the study"
    ill = question.ill[question.train]
    out = f" ({question.n_without_data} left out: no data)" if question.n_without_data else ""
    for name, n in ((repr(normal), int((~ill).sum())), (f"any class but {normal!r}", int(ill.sum()))):
        if n < folds:
            raise DataError(
                f"{n} of the people of {part} with a {label}{out} {'is' if n == 1 else 'are'} {name}; "
                f"{folds} folds need at least {folds}. "
                f"{'Use fewer folds, or more people' if n >= FEWEST_IN_CLASS else 'More people are needed'}."
            )
    if groups is not None:
        crossing = np.intersect1d(groups[question.train], groups[question.held_out])
        if len(crossing):
            raise DataError(
                f"{len(crossing)} value(s) of {together!r} occur in both the training and the held-out part; "
                f"people who belong together must be in the same. Change the column {split!r}."
            )
    return question


def cut(question: Question, rows: Integers, label: NDArray[np.int64], folds: int, seed: int) -> Integers:
    """Return the fold of each of these rows; classes are spread evenly, and whole people stay whole.

    Parameters
    ----------
    question : Question
        Who must stay together.
    rows : int array [m]
        The people to cut into folds.
    label : int array [m]
        The class of each of them, which the folds are balanced by.
    folds : int
        How many.
    seed : int
        The same seed gives the same folds.
    """
    groups = None if question.together is None else question.together[rows]
    if groups is not None and len(np.unique(groups)) < folds:
        raise DataError(
            f"Those who belong together make {len(np.unique(groups))} groups; {folds} folds need at least "
            f"{folds}."
        )
    fold = deal_classes(label, folds, seed=seed, groups=groups)
    for number in range(folds):
        if len(np.unique(label[fold == number])) < len(np.unique(label)):
            raise DataError(
                f"Those who belong together cannot be cut into {folds} folds that each have people of every "
                "class. Use fewer folds."
            )
    return fold


def _classes(cohort: Cohort, label: str, normal: str) -> tuple[tuple[str, ...], Integers]:
    """The classes, healthy people first, and everybody's."""
    values = words_in_column(
        cohort.participants,
        label,
        why="so there is nothing to tell apart. Name the column that holds people's status: "
        + remedy("label", "--label"),
    )
    counted = values.drop_nulls().value_counts().rows()
    found = [name for name, _ in sorted(counted, key=lambda row: (-row[1], row[0]))]
    if len(found) > MOST_CLASSES:
        raise DataError(
            f"The column {label!r} of the participants has {len(found)} different values; at most "
            f"{MOST_CLASSES} classes can be told apart. Is it the right column?"
        )
    listed = _listed(found)
    if len(found) < 2:
        raise DataError(
            f"The column {label!r} of the participants has "
            + (f"one class only ({listed})" if found else "no value at all")
            + "; two or more are needed to tell people apart."
        )
    _refuse_spellings(found, label)
    if normal not in found:
        raise DataError(
            f"Nobody's {label} is {normal!r}, so it is not clear who is healthy. There is: {listed}. Name "
            f"one of them: {remedy('normal', '--normal')}."
        )
    classes = (normal, *(name for name in found if name != normal))
    codes = values.replace_strict(list(classes), range(len(classes)), default=None, return_dtype=pl.Int64)
    return classes, codes.fill_null(UNKNOWN).to_numpy().astype(np.int64)


def _parts(cohort: Cohort, split: str, train: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who is in the training part, and who is held out."""
    everybody = np.ones(len(cohort), dtype=np.bool_)
    if split not in cohort.participants.columns:
        return everybody, ~everybody
    values = words_in_column(cohort.participants, split, why="so there are no parts")
    if not values.drop_nulls().len():
        return everybody, ~everybody
    found = values.drop_nulls().unique().sort().to_list()
    _refuse_spellings(found, split)
    learns = (values == train).fill_null(value=False).to_numpy()
    held = (values != train).fill_null(value=False).to_numpy()
    if not learns.any():
        raise DataError(
            f"Nobody's {split} is {train!r}, so there is nobody to learn from. There is: {_listed(found)}. "
            f"Write {train!r} for those to learn from and another word, such as 'test', for those held out; "
            "or drop the column, and everybody is cross-validated."
        )
    return learns, held


def _groups(cohort: Cohort, together: str) -> Integers:
    """Everybody's group; who has no value is alone."""
    values = words_in_column(cohort.participants, together, why="so it is not known who belongs together")
    names: dict[object, int] = {}
    known = [(row,) if value is None else value for row, value in enumerate(values)]
    return np.array([names.setdefault(value, len(names)) for value in known], dtype=np.int64)


def _refuse_spellings(found: Sequence[str], column: str) -> None:
    """Raise if values differ in upper and lower case alone: one class would be taken for two."""
    spelled: dict[str, str] = {}
    for name in found:
        other = spelled.setdefault(name.casefold(), name)
        if other != name:
            raise DataError(
                f"The column {column!r} of the participants has both {_listed([other])} and "
                f"{_listed([name])}. Spell the same thing the same way, and different things differently."
            )


def _listed(found: Sequence[str]) -> str:
    """Values of a column, where they are short enough to be words rather than remarks."""
    short = all(len(name) <= LONGEST_NAME and name.isprintable() for name in found)
    return ", ".join(map(repr, found)) if short and len(found) <= MOST_CLASSES else f"{len(found)} values"
