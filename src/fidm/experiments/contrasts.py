"""What is compared, and what it is adjusted for, as a formula; and which sums of its slopes are differences.

A difference between two groups is that of two people who are alike in all else. Where it may change with a
covariate (an interaction), it is given for people of chosen values of it. Either way it is a sum of slopes,
whose weights are the difference of two rows of the formula's matrix.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from fidm.errors import DataError, listed, meant, remedy
from fidm.fit.regression import variables
from fidm.types import Floats

BY, OTHER = "by__", "adjust"
"""What is compared is called so in formulas, and what it is adjusted for, with a number."""

At = Mapping[str, Sequence[float | str]]
"""Values of covariates that differences are given for."""


@dataclass(frozen=True, slots=True)
class Contrasts:
    """A formula of what is compared and adjusted for, and its contrasts.

    Parameters
    ----------
    by : str
        What is compared.
    levels : tuple of str
        The groups, the reference first; empty where a number is compared.
    scale : float
        The standard deviation of the number that is compared.
    terms : mapping of str to str
        Of every column to adjust for its term in the formula; a term that was given is its own.
    interact : tuple of str
        With which columns the difference may change.
    centre : mapping of str to float
        The means of those that are numbers, which are taken off: slopes of groups are then those at the mean.
    at : tuple of mapping
        The values of these columns that differences are given for.
    bases : mapping of str to str
        What the other categories of texts to adjust for are compared with: the first in alphabetical order.
    """

    by: str
    levels: tuple[str, ...]
    scale: float
    terms: Mapping[str, str]
    interact: tuple[str, ...]
    centre: Mapping[str, float]
    at: tuple[Mapping[str, float | str], ...]
    bases: Mapping[str, str]

    @classmethod
    def of(
        cls,
        people: pl.DataFrame,
        by: str,
        adjust: Sequence[str] = (),
        *,
        reference: str | None = None,
        interact: Sequence[str] = (),
        at: At | None = None,
    ) -> Contrasts:
        """Lay out a comparison of these people; those who lack a covariate do not count in its mean."""
        levels, scale = _groups(people[by], reference)
        terms = {
            name: name if is_term(name) else _term(f"{OTHER}{i}", people[name])
            for i, name in enumerate(adjust)
        }
        known = {name: people[name].drop_nulls() for name in interact if name in terms and not is_term(name)}
        _check_interactions(terms, interact, at or {}, people.columns)
        centre = {
            name: float(np.nanmean(own.to_numpy())) for name, own in known.items() if own.dtype.is_numeric()
        }
        usual: dict[str, list[float | str]] = {
            name: [centre[name]] if name in centre else sorted(own.cast(pl.String).unique())
            for name, own in known.items()
        }
        chosen = {name: list((at or {}).get(name, usual[name])) for name in known}
        for name, given in chosen.items():
            if name not in centre:  # a group may be called by a number
                given[:] = [one if isinstance(one, str) else f"{one:g}" for one in given]
            wrong = [
                one for one in given if (isinstance(one, str) if name in centre else one not in usual[name])
            ]
            if wrong:
                hint = (
                    f"{name} is a number."
                    if name in centre
                    else meant([str(wrong[0])], map(str, usual[name]))
                )
                raise DataError(f"at: {name} has no value {wrong[0]!r}. {hint}")
        combined = tuple(dict(zip(chosen, one, strict=True)) for one in itertools.product(*chosen.values()))
        texts = [name for name in adjust if not is_term(name) and not people[name].dtype.is_numeric()]
        bases = {name: min(people[name].cast(pl.String).drop_nulls()) for name in texts}
        return cls(by, levels, scale, terms, tuple(interact), centre, combined, bases)

    @property
    def plain(self) -> str:
        """The formula without what is adjusted for."""
        return f"C({BY})" if self.levels else BY

    @property
    def formula(self) -> str:
        """The formula; columns have plain names in it."""
        changing = (f"{self.plain}:{self.terms[name]}" for name in self.interact)
        return " + ".join([self.plain, *self.terms.values(), *changing])

    @property
    def pairs(self) -> tuple[str, ...]:
        """What is compared with what, whatever the covariates are."""
        if not self.levels:
            return (f"{self.by} + 1 SD",)
        return tuple(f"{one} / {self.levels[0]}" for one in self.levels[1:])

    @property
    def contrasts(self) -> list[tuple[str, int]]:
        """The name of every difference, and which of the pairs it is."""
        said = [", ".join(f"{name} {_text(value)}" for name, value in one.items()) for one in self.at]
        return [
            (f"{pair} at {where}" if where else pair, k)
            for where in said
            for k, pair in enumerate(self.pairs)
        ]

    def frame(self, people: pl.DataFrame) -> pl.DataFrame:
        """Return the formula's variables of these people."""
        own = people[self.by]
        codes = dict(zip(self.levels, self._codes, strict=False))
        made = {BY: own.cast(pl.String).replace_strict(codes) if codes else own.cast(pl.Float64) / self.scale}
        for i, (name, term) in enumerate(self.terms.items()):
            if is_term(name):
                made |= {one: people[one] for one in sorted(variables(term))}
            else:
                made[f"{OTHER}{i}"] = self._coded(people[name], name)
        return pl.DataFrame(made)

    @property
    def _codes(self) -> list[str] | list[float]:
        """What groups are called in formulas, or two numbers that differ by a standard deviation."""
        return [f"{i:03d}" for i in range(len(self.levels))] if self.levels else [0.0, 1.0]

    def _coded(self, column: pl.Series, name: str) -> pl.Series:
        if not column.dtype.is_numeric():
            return column.cast(pl.String)
        return column.cast(pl.Float64) - self.centre[name] if name in self.centre else column

    def weights(self, frame: pl.DataFrame, names: Sequence[str]) -> Floats:
        """Return how much of the slopes of these columns each difference has, [K, C]."""
        from formulaic import model_matrix

        spec = model_matrix(self.formula, frame, na_action="ignore", output="numpy").model_spec
        columns = [list(spec.column_names).index(name) for name in names]
        places = {name: f"{OTHER}{i}" for i, name in enumerate(self.terms)}
        rows = []
        for one in self.at:
            coded = [self._coded(pl.Series(places[name], [value]), name) for name, value in one.items()]
            rows += [frame[:1].with_columns(*coded, pl.lit(code).alias(BY)) for code in self._codes]
        made = np.asarray(spec.get_model_matrix(pl.concat(rows)), dtype=np.float64)[:, columns]
        people = made.reshape(len(self.at), len(self._codes), len(columns))
        return np.asarray((people[:, 1:] - people[:, :1]).reshape(-1, len(columns)))

    def words(self, column: str) -> str:
        """Return what a column of the formula's matrix is called in words: ``"site z × age"``."""
        return " × ".join(self.pairs[0] if part == BY else self._word(part) for part in column.split(":"))

    def reworded(self, text: str) -> str:
        """Return a text with columns called by their names."""
        return re.sub(rf"(C\()?({BY}|{OTHER}\d+)\)?(\[T\.[^\]]*\])?", lambda own: self._word(own[0]), text)

    def _word(self, factor: str) -> str:
        own = re.fullmatch(rf"(?:C\()?({BY}|{OTHER}\d+)\)?(?:\[T\.(.*)\])?", factor)
        if own is None:
            return factor
        name, level = own.groups()
        if name == BY:
            return self.pairs[int(level) - 1] if level else self.by
        whole = list(self.terms)[int(name.removeprefix(OTHER))]
        return f"{whole} {level} / {self.bases[whole]}" if level else whole

    def notes(self, reference: str | None) -> list[str]:
        """Return how the tables are to be read: what is compared with what, and slopes of interactions."""
        if self.levels:
            how = (
                ""
                if reference
                else f", {LARGEST}; {remedy('reference', 'fidm compare --reference')} names another"
            )
            said = [f"Reference: {self.levels[0]}{how}."]
        else:
            said = [f"1 SD of {self.by} is {self.scale:.3g}."]
        if self.interact:
            where = [
                f"the mean {name} ({self.centre[name]:.4g})"
                if name in self.centre
                else f"{name} {self.bases[name]}"
                for name in self.interact
            ]
            whose = f", those of {listed(self.interact)} are for {self.levels[0]}" if self.levels else ""
            said.append(
                f"Interaction: in compare-terms.csv, slopes of {self.by} are at {listed(where)}{whose}."
            )
        return said


LARGEST = "the largest group, or of several the first in alphabetical order"
"""Which group the others are compared with where none is named."""


def _check_interactions(
    terms: Mapping[str, str], interact: Sequence[str], at: At, columns: Sequence[str]
) -> None:
    """Raise where a difference cannot change with what is named, or values are given of something else."""
    plain = [name for name in terms if not is_term(name)]
    for name in interact:
        if name not in plain:
            hint = (
                meant([name], plain)
                if plain and name not in columns
                else f"Add it: {remedy(f'adjust=[{name!r}]', f'--adjust {name}')}."
            )
            if is_term(name):
                hint = "Name a column, and adjust for it, too."
            raise DataError(f"interact names {name!r}, which must be a column that is adjusted for. {hint}")
    for name in at:
        if name not in interact:
            hint = (
                f"Add it: {remedy(f'interact=[{name!r}]', f'--interact {name}')}."
                if name in plain
                else meant([name], interact or plain or columns)
            )
            raise DataError(
                f"at gives values of {name!r}, but interact does not name it, so the difference is the same "
                f"at all of its values. {hint}"
            )


def asked_for(people: pl.DataFrame, by: str, adjust: Sequence[str], also: Sequence[str] = ()) -> list[str]:
    """Return the columns that a comparison is made of; raise for those that people do not have.

    ``also`` are columns of the episodes, by which people may be compared with themselves.
    """
    named = [by, *adjust]
    if len(set(named)) < len(named):
        raise DataError(f"A column is named twice: {', '.join(named)}.")
    columns = [by]
    for name in adjust:
        columns += sorted(variables(name)) if is_term(name) else [name]
    absent = [name for name in columns if name not in people.columns]
    if absent:
        known = [*people.columns, *(also if by in absent else ())]
        raise DataError(
            f"The participants have no column {', '.join(map(repr, absent))}. {meant(absent, known)}"
        )
    return list(dict.fromkeys(columns))


def is_term(name: str) -> bool:
    """Return whether this is a term of a formula, such as ``bs(age, df=3)``, and not a column."""
    return "(" in name


def _term(key: str, column: pl.Series) -> str:
    return key if column.dtype.is_numeric() else f"C({key})"


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _groups(column: pl.Series, reference: str | None) -> tuple[tuple[str, ...], float]:
    """The groups, the reference first; or the standard deviation of a number."""
    by = column.name
    if column.dtype.is_numeric():
        if reference is not None:
            raise DataError(f"{by} is a number, so there is no group {reference!r} to compare with.")
        spread = column.cast(pl.Float64).std()
        if not isinstance(spread, float) or not spread > 0:
            raise DataError(f"{by} is the same for everybody.")
        return (), spread
    sizes = column.cast(pl.String).alias(BY).value_counts().sort(["count", BY], descending=[True, False])
    levels = sizes[BY].to_list()
    if len(levels) < 2:
        raise DataError(f"{by} has only one group, {levels[0]!r}: there is nothing to compare.")
    base = levels[0] if reference is None else reference
    if base not in levels:
        raise DataError(f"{by} has no group {base!r}. {meant([base], sorted(levels))}")
    return (base, *sorted(level for level in levels if level != base)), 1.0
