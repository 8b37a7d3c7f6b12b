"""What :func:`fidm.study.families.compare_families` found, in a table and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fidm.errors import DataError
from fidm.record import Record, plain

CLOSE, ROUGH = 0.03, 0.08
"""Residuals whose distribution is off by less are called close to normal, or roughly so; by more, far off."""

SAME_ORDER, CLOSE_ORDER = 0.95, 0.9
"""From these rank correlations on people keep their order by and large, or less closely."""


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """How well each family of distributions predicts people it was not learned from.

    Parameters
    ----------
    record : Record
        How it came about.
    table : DataFrame
        A row per observable and family: how many observations and people; the held-out log-likelihood per
        observation; its ``difference`` to the reference with the interval ``low`` to ``high``, and whether
        that is ``beyond_chance`` (1 better, -1 worse, 0 neither); how many residuals there are, which of a
        family in two parts are those of the amounts above 0; the Pearson ``dispersion``; mean and sd of
        quantile residuals, their distance from the normal distribution (``ks``) with p, the Anderson–Darling
        statistic with p; the share of zeros observed and expected; the rank correlation of people's θ with
        that under the reference; and settings chosen on everybody.
    residuals : DataFrame
        The quantile residuals of each family in order, beside those ``expected`` of a normal distribution and
        the band (``low`` to ``high``) in which 95 % of normal ones would lie at each place.
    n_people, folds : int
        How many people, in how many folds.
    """

    record: Record
    table: pl.DataFrame
    residuals: pl.DataFrame
    n_people: int
    folds: int

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The table; residuals are only for pictures."""
        return {"": self.table}

    @property
    def observables(self) -> tuple[str, ...]:
        """What was observed."""
        return tuple(self.table["observable"].unique(maintain_order=True))

    def of(self, observable: str) -> list[dict[str, Any]]:
        """Return the rows of one observable, the reference first."""
        rows = self.table.filter(pl.col("observable") == observable).to_dicts()
        if not rows:
            raise DataError(f"Nothing is known of {observable!r}. There are: {', '.join(self.observables)}.")
        return rows

    def row(self, observable: str, family: str) -> dict[str, Any]:
        """Return what is known of one family."""
        for row in self.of(observable):
            if row["family"] == family:
                return row
        names = ", ".join(row["family"] for row in self.of(observable))
        raise DataError(f"There is no family {family!r} of {observable}. There are: {names}.")

    def best(self, observable: str) -> str:
        """Return the family that predicts held-out people best."""
        return str(max(self.of(observable), key=lambda row: row["log_likelihood"])["family"])

    def is_right(self, observable: str) -> bool:
        """Return whether no family predicts held-out people better than the reference beyond chance."""
        return not any(row["beyond_chance"] > 0 for row in self.of(observable))

    def verdict(self, observable: str) -> str:
        """Say whether the reference is the right family, and how well the best one fits."""
        rows = self.of(observable)
        reference, best = rows[0], self.row(observable, self.best(observable))
        n = f"{best['n']:,} observations of {best['n_people']:,} people"
        if len(rows) == 1:
            text = f"{_first(observable)}, {n}: {best['family']} is compared with no other family"
        elif best is reference or best["family"] == reference["family"]:
            close = [row["family"] for row in rows[1:] if row["beyond_chance"] == 0]
            text = f"{_first(observable)}, {n}: {best['family']} predicts held-out people best"
            text += f"; {_and(close)} cannot be told apart from it" if close else ""
        elif best["beyond_chance"] > 0:
            text = (
                f"{_first(observable)}, {n}: {best['family']} predicts held-out people better than "
                f"{reference['family']}, by {best['difference']:.3f} per observation "
                f"({best['low']:.3f} to {best['high']:.3f})"
            )
        else:
            text = (
                f"{_first(observable)}, {n}: {best['family']} predicts held-out people best, but not beyond "
                f"chance better than {reference['family']} ({best['difference']:+.3f} per observation, "
                f"{best['low']:+.3f} to {best['high']:+.3f})"
            )
        return f"{text}. {_fits(best)}{_order(best, reference)}"

    def sentences(self) -> tuple[str, ...]:
        """Say for each observable which family suits it."""
        return tuple(self.verdict(observable) for observable in self.observables)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "families": plain(self.table),
            "best": {observable: self.best(observable) for observable in self.observables},
            "sentences": list(self.sentences()),
            "people": self.n_people,
            "folds": self.folds,
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def _fits(row: Mapping[str, Any]) -> str:
    """How near the residuals of a family come to what they should be."""
    how = "close to" if row["ks"] < CLOSE else "roughly" if row["ks"] < ROUGH else "far from"
    of = "" if row["n_residuals"] == row["n"] else f", of the {row['n_residuals']:,} amounts above 0,"
    return f"Its quantile residuals{of} are {how} normal (off by at most {100 * row['ks']:.1f} % of them)."


def _order(row: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    """What the choice of a family changes in the order of people."""
    r = row["theta_rank_r"]
    if row["is_reference"] or math.isnan(r):
        return ""
    return f" By θ people {order_kept(r)} (rank correlation {r:.2f} with {reference['family']})."


def order_kept(r: float) -> str:
    """Return in words what a rank correlation of people's θ under two families means.

    Examples
    --------
    >>> order_kept(0.96), order_kept(0.5)
    ('keep their order by and large', 'change places')
    """
    if r >= SAME_ORDER:
        return "keep their order by and large"
    return "keep their order less closely" if r >= CLOSE_ORDER else "change places"


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
