"""Covariates that some people lack, filled in many times over, and what all of that says together.

Every missing value is drawn from what is known of the person: the other covariates, the group, and the
person's own estimates. The estimates must be among them, or slopes are too flat; those of empirical Bayes are
the right ones, since a covariate that goes with a latent parameter goes with its posterior mean. Numbers are
drawn from a linear regression whose coefficients and error are themselves drawn from their posterior,
categories from a logistic regression learned from people drawn again; each column in turn, ten times, where
several lack values (chained equations). Drawing coefficients once for all people is what scikit-learn's
``IterativeImputer`` leaves out: it draws for each person alone.

Results are pooled by Rubin's rules, with the degrees of freedom of Barnard and Rubin (1999), several numbers
together by Li, Raghunathan and Rubin (1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import linalg, stats
from sklearn.linear_model import LogisticRegression

from fidm.errors import FitError, count
from fidm.types import Flags, Floats

ROUNDS = 10
"""How often each column is drawn in turn, where several lack values."""

FEWEST_BEYOND = 5
"""A column is imputed where so many more people have it than there are numbers to learn."""


def impute(table: pl.DataFrame, besides: Floats, *, times: int, seed: int) -> list[pl.DataFrame]:
    """Return a table with its missing values drawn, so many times.

    Parameters
    ----------
    table : DataFrame
        Numbers and texts, some of them missing.
    besides : float array [P, B]
        What else is known of everybody, without gaps.
    times : int
        How often.
    seed : int
        The same seed gives the same draws.
    """
    whole = table.with_columns(pl.selectors.float().fill_nan(None))
    lost = {name: whole[name].is_null().to_numpy() for name in whole.columns if whole[name].null_count()}
    filled = []
    for child in np.random.SeedSequence(seed).spawn(times):
        rng = np.random.default_rng(child)
        now = {name: _any(whole[name], rng) for name in whole.columns}
        for _ in range(ROUNDS if len(lost) > 1 else 1):
            for name, missing in lost.items():
                others = [_columns(now[other]) for other in now if other != name]
                known = np.column_stack([np.ones(len(besides)), *map(_scaled, [besides, *others])])
                _enough(name, missing, known)
                draw = _draw_numbers if now[name].dtype.kind == "f" else _draw_texts
                now[name][missing] = draw(now[name], known, missing, rng)
        filled.append(pl.DataFrame(now))
    return filled


def _any(column: pl.Series, rng: np.random.Generator) -> NDArray[np.generic]:
    """A column with values of anybody where there is none."""
    own = column.cast(pl.Float64 if column.dtype.is_numeric() else pl.String)
    known = own.drop_nulls().to_numpy()
    values = own.fill_null(own.drop_nulls()[0]).to_numpy().copy()
    missing = own.is_null().to_numpy()
    values[missing] = rng.choice(known, int(missing.sum()))
    return values


def _columns(values: NDArray[np.generic]) -> Floats:
    """A number as it is, a text as a column of 0 and 1 for each of its values but the first."""
    if values.dtype.kind == "f":
        return values[:, None].astype(np.float64)
    return np.asarray(values[:, None] == np.unique(values)[None, 1:], dtype=np.float64)


def _scaled(columns: Floats) -> Floats:
    spread = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0))[:, spread > 0] / spread[spread > 0])


def _enough(name: str, missing: Flags, known: Floats) -> None:
    n = int((~missing).sum())
    if n < known.shape[1] + FEWEST_BEYOND:
        raise FitError(
            f"{count(n, 'person', 'people')} have {name}; that is too few to impute it for the others."
        )


def _draw_numbers(
    values: NDArray[np.generic], known: Floats, missing: Flags, rng: np.random.Generator
) -> Floats:
    """Numbers of those who lack them, by a regression drawn from its posterior."""
    x, y = known[~missing], values[~missing].astype(np.float64)
    precision = linalg.pinvh(x.T @ x)
    best = precision @ x.T @ y
    free = len(y) - x.shape[1]
    error = np.sqrt(np.sum((y - x @ best) ** 2) / rng.chisquare(free))
    drawn = rng.multivariate_normal(best, error**2 * precision, method="eigh")
    return np.asarray(known[missing] @ drawn + error * rng.normal(size=int(missing.sum())))


def _draw_texts(
    values: NDArray[np.generic], known: Floats, missing: Flags, rng: np.random.Generator
) -> NDArray[np.generic]:
    """Categories of those who lack them, by a regression learned from people drawn again."""
    some = rng.choice(np.flatnonzero(~missing), int((~missing).sum()))
    if len(np.unique(values[some])) < 2:
        return np.repeat(values[some[:1]], int(missing.sum()))
    learned = LogisticRegression(max_iter=1_000).fit(known[some, 1:], values[some])
    reached = np.cumsum(learned.predict_proba(known[missing, 1:]), axis=1)
    place = (reached < rng.uniform(size=(len(reached), 1))).sum(axis=1)
    return np.asarray(learned.classes_[np.minimum(place, len(learned.classes_) - 1)])


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Numbers with their standard errors and degrees of freedom, [K] each."""

    value: Floats
    se: Floats
    freedom: Floats

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of their intervals."""
        reach = stats.t.ppf(0.5 + 0.5 * level, self.freedom) * self.se
        return self.value - reach, self.value + reach

    @property
    def p(self) -> Floats:
        """The probability of numbers as far from 0 as these, if they were 0."""
        return np.asarray(2 * stats.t.sf(np.abs(self.value) / self.se, self.freedom))


def pool(values: Floats, variances: Floats, freedom: float) -> Pooled:
    """Return numbers that were found several times as one, by Rubin's rules.

    Parameters
    ----------
    values, variances : float array [M, K]
        The numbers of every imputation, and their variances.
    freedom : float
        The degrees of freedom if nothing were missing.
    """
    middle, times = values.mean(axis=0), len(values)
    if times == 1:
        return Pooled(values[0], np.sqrt(variances[0]), np.full(len(middle), float(freedom)))
    between = (1 + 1 / times) * values.var(axis=0, ddof=1)
    total = variances.mean(axis=0) + between
    share = np.maximum(between / total, 1e-12)
    known = (freedom + 1) / (freedom + 3) * freedom * (1 - share)
    return Pooled(middle, np.sqrt(total), 1 / (share**2 / (times - 1) + 1 / known))


def pool_test(values: Floats, covariances: Sequence[Floats], freedom: float) -> float:
    """Return the p-value of several numbers together, found several times.

    Parameters
    ----------
    values : float array [M, K]
        The numbers of every imputation.
    covariances : sequence of float array [K, K]
        Their covariances.
    freedom : float
        The degrees of freedom if nothing were missing, which those of the test do not exceed.
    """
    times, width = values.shape
    middle, within = values.mean(axis=0), np.mean(covariances, axis=0)
    between = np.atleast_2d(np.cov(values, rowvar=False))
    inverse = linalg.pinvh(within)
    more = max((1 + 1 / times) * float(np.trace(between @ inverse)) / width, 1e-12)
    size = float(middle @ inverse @ middle) / (width * (1 + more))
    draws = width * (times - 1)
    if draws > 4:
        below = 4 + (draws - 4) * (1 + (1 - 2 / draws) / more) ** 2
    else:
        below = draws * (1 + 1 / width) * (1 + 1 / more) ** 2 / 2
    return float(stats.f.sf(size, width, min(below, freedom)))
