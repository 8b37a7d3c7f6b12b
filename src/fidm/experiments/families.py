"""Which distribution suits an observation best, judged on people who were not learned from.

People are dealt to folds. For every family the population is learned from the other folds, with a random
intercept per person, and a setting (the power of a generalised gamma) chosen on the same people; then the
fold's people are judged:

- *held-out log-likelihood*: the log-density of each person's observations, averaged over the prior of θ. Its
  difference to the reference, per observation, has an interval from a bootstrap of people;
- *quantile residuals*: each observation predicted from the person's other ones (see
  :mod:`fidm.experiments.held_out`). KS is the largest distance of their distribution from the normal one;
- *dispersion*: the mean of (y − m)²/v, with m and v mean and variance of the same predictions. Above 1 the
  data vary more than the family allows;
- *zeros*: the share observed, and the share predicted.

The families of one observation must be densities of the same thing: the same column, the same rows, all of
counts or all of amounts. A family in two parts, such as ``(Bernoulli(…), LogNormal(…, zeros="left_out"))``,
is the joint density of whether there is anything and of how much. Its residuals and its dispersion are those
of the amounts above 0 alone: a residual of a zero is drawn at random, and says nothing about the amounts.

With thousands of observations no family is exactly right, and p-values of KS and Anderson–Darling only say
that; the distance says whether it matters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special, stats

from fidm.cohort import Cohort
from fidm.errors import DataError, listed
from fidm.experiments.held_out import FamilyScores, FamilyTest, Part
from fidm.experiments.shared import groups_of
from fidm.fit.common import threads
from fidm.fit.effort_alone import as_cohort
from fidm.model.amounts import Positive
from fidm.model.channels import Channel
from fidm.model.counts import Bernoulli
from fidm.model.effort import column_values, effort_problems, refuse
from fidm.record import Record, plain
from fidm.stats import deal
from fidm.types import Floats, Integers, Progress

Family = Channel | tuple[Channel, ...]
"""One channel, or whether there is anything and how much."""

CLOSE, ROUGH = 0.03, 0.08
"""Residuals whose distribution is off by less are called close to normal, or roughly so; by more, far off."""

SAME_ORDER, CLOSE_ORDER = 0.95, 0.9
"""From these rank correlations on people keep their order by and large, or less closely."""

NEGLIGIBLE = 1e-6
"""Differences per observation below this are rounding, not evidence."""

FEWEST_PEOPLE = 3
"""Fewer people do not tell how people differ."""


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
        start = f"{observable[:1].upper()}{observable[1:]}, {best['n']:,} observations of "
        start += f"{best['n_people']:,} people: {best['family']}"
        if len(rows) == 1:
            text = "is compared with no other family"
        elif best["family"] == reference["family"]:
            close = [row["family"] for row in rows[1:] if row["beyond_chance"] == 0]
            text = "predicts held-out people best"
            text += f"; {listed(close)} cannot be told apart from it" if close else ""
        elif best["beyond_chance"] > 0:
            text = (
                f"predicts held-out people better than {reference['family']}, by {best['difference']:.3f} "
                f"per observation ({best['low']:.3f} to {best['high']:.3f})"
            )
        else:
            text = (
                f"predicts held-out people best, but not beyond chance better than {reference['family']} "
                f"({best['difference']:+.3f} per observation, {best['low']:+.3f} to {best['high']:+.3f})"
            )
        return f"{start} {text}. {_fits(best)}{_order(best, reference)}"

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


def compare_families(
    cohort: Cohort | pl.DataFrame | Any,
    families: Mapping[str, Sequence[Family] | Mapping[str, Family]],
    *,
    folds: int = 5,
    seed: int = 1,
    bootstrap: int = 1_000,
    together: str | None = None,
    tune: bool = True,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Families:
    """Compare distributions of effort observations on people they were not learned from.

    Parameters
    ----------
    cohort : Cohort or DataFrame
        The people, or their segments.
    families : mapping of str to sequence, or to mapping, of families
        For each thing observed, such as ``"duration"``, the families to compare, the first being the
        reference. A family is a channel or, in two parts, a tuple of a Bernoulli channel and a channel that
        leaves zeros out. A mapping gives them names; else they are called by their kinds.
    folds : int
        How many folds people are dealt to.
    seed : int
        Of the folds, of the bootstrap and of draws within the probability of a count.
    bootstrap : int
        How often people are drawn anew for the intervals.
    together : str, optional
        A column of the participants: people with the same value stay in one fold and are drawn together.
    tune : bool
        Choose settings of channels that have one, in every fold on the people learned from, searching from
        the settings given. With False they stay as given.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.channels import Gamma, LogNormal
    >>> from fidm.experiments.families import compare_families
    >>> cohort = fidm.simulate_cohort(fidm.load_task("errands"), 40, seed=1)
    >>> found = compare_families(
    ...     cohort, {"duration": [Gamma("duration", "duration_s"), LogNormal("duration", "duration_s")]}
    ... )
    >>> found.best("duration")
    'gamma'
    """
    people = as_cohort(cohort)
    if folds < 2 or seed < 0 or bootstrap < 20:
        raise DataError(
            f"folds is {folds}, seed {seed} and bootstrap {bootstrap}; they must be at least 2, 0 and 20."
        )
    if not families:
        raise DataError(
            "There is nothing to compare: families is empty. Name what was observed and the channels to "
            "compare, such as {'duration': [Gamma(…), LogNormal(…)]}."
        )
    asked = {name: _named(name, given) for name, given in families.items()}
    group = groups_of(people, together)
    fold = _deal(group, folds, seed)
    steps, of = itertools.count(), (folds + 1) * sum(map(len, asked.values()))

    def tell(doing: str) -> None:
        if on_progress is not None:
            on_progress(doing, next(steps), of)

    rows: list[dict[str, Any]] = []
    residuals: list[pl.DataFrame] = []
    for observable, candidates in asked.items():
        _check_comparable(observable, candidates, people)
        reference: FamilyScores | None = None
        known: dict[tuple[int, int | None], Part] = {}
        for number, (name, parts) in enumerate(candidates.items()):
            tell(f"{observable}: {name}")
            test = FamilyTest(people, parts, tune=tune, workers=threads(workers), known=known)
            held = []
            for k in range(folds):
                tell(f"{observable}: {name}")
                held.append(test.hold_out(k, np.flatnonzero(fold == k), np.flatnonzero(fold != k)))
            found = test.joined(held, np.random.default_rng([seed, number]))
            reference = reference or found
            row = _row(found, reference, group, seed, bootstrap)
            rows.append({"observable": observable, "family": name, "is_reference": found is reference, **row})
            residuals.append(_residual_table(observable, name, found))
    tell("done")
    kinds = {
        observable: {name: [part.to_dict() for part in parts] for name, parts in candidates.items()}
        for observable, candidates in asked.items()
    }
    settings = {
        "families": kinds, "folds": folds, "bootstrap": bootstrap, "together": together, "tune": tune
    }  # fmt: skip
    return Families(
        record=Record.of("families", (), seed=seed, settings=settings, cohort=people),
        table=pl.DataFrame(rows, infer_schema_length=None),
        residuals=pl.concat(residuals),
        n_people=len(people),
        folds=folds,
    )


# ---------------------------------------------------------------------- what is compared


def _named(observable: str, given: Sequence[Family] | Mapping[str, Family]) -> dict[str, tuple[Channel, ...]]:
    """The families of one observation by name, each as its parts."""
    if isinstance(given, Mapping):
        found = {name: _parts(family) for name, family in given.items()}
    else:
        listed = [_parts(family) for family in given]
        names = [" + ".join(part.kind.replace("_", " ") for part in parts) for parts in listed]
        if len(set(names)) < len(names):
            raise DataError(
                f"Two families of {observable} have the same name; give names: {{'name': channel, …}}."
            )
        found = dict(zip(names, listed, strict=True))
    if not found:
        raise DataError(f"There is no family to judge for {observable}.")
    for name, parts in found.items():
        presence = [part for part in parts if isinstance(part, Bernoulli)]
        leaves = [part for part in parts if isinstance(part, Positive) and part.zeros == "left_out"]
        if len(parts) > 1 and (len(parts), len(presence), len(leaves)) != (2, 1, 1):
            raise DataError(
                f"{name}, a family of {observable} in parts, must be a Bernoulli channel and one that leaves "
                "zeros out (zeros='left_out'): only then do they make one density."
            )
    return {
        name: tuple(sorted(parts, key=lambda part: not isinstance(part, Bernoulli)))
        for name, parts in found.items()
    }


def _parts(family: Family) -> tuple[Channel, ...]:
    parts = family if isinstance(family, tuple) else (family,)
    if not parts or not all(isinstance(part, Channel) for part in parts):
        raise DataError("A family is a channel, or a tuple of two; see fidm.channels.")
    return parts


def _check_comparable(observable: str, candidates: Mapping[str, tuple[Channel, ...]], people: Cohort) -> None:
    """Raise unless all families are densities of the same observations."""
    columns = {part.column for parts in candidates.values() for part in parts}
    if len(columns) > 1:
        raise DataError(
            f"The families of {observable} are about different columns: {', '.join(sorted(columns))}."
        )
    raw = column_values(people.segments, columns.pop())
    refuse(
        effort_problems([part for parts in candidates.values() for part in parts], people),
        hint=f"Leave out the families of {observable} that cannot have such values, or repair these rows.",
    )
    first: tuple[str, bool, Integers] | None = None
    for name, parts in candidates.items():
        rows = np.flatnonzero(~np.isnan(parts[0].observe(raw)))
        now = name, parts[-1].discrete, rows
        first = first or now
        if now[1] != first[1]:
            raise DataError(
                f"Of the families of {observable}, {first[0]} and {name} are about counts and amounts; a "
                "probability and a density cannot be compared."
            )
        if not np.array_equal(now[2], first[2]):
            raise DataError(
                f"Of the families of {observable}, {first[0]} is about {len(first[2]):,} observations and "
                f"{name} about {len(rows):,}. Where one leaves zeros out, so must all, or it needs a "
                "Bernoulli channel beside it."
            )


# ---------------------------------------------------------------------- folds


def _deal(group: Integers, folds: int, seed: int) -> Integers:
    """The fold of each person, groups being dealt in turn in an order drawn at random."""
    n = int(group.max(initial=-1)) + 1
    if n < folds:
        raise DataError(f"There are {n} people, or groups of them, for {folds} folds. Use fewer folds.")
    fold = deal(n, folds, seed=[seed, 0])[group]
    learners = len(fold) - int(np.bincount(fold).max())
    if learners < FEWEST_PEOPLE:
        raise DataError(
            f"{len(fold)} people in {folds} folds leave {learners} to learn from; {FEWEST_PEOPLE} are "
            "needed to tell how people differ."
        )
    return fold


# ---------------------------------------------------------------------- numbers


def _row(
    found: FamilyScores, reference: FamilyScores, group: Integers, seed: int, bootstrap: int
) -> dict[str, Any]:
    """One line of the table."""
    n = int(found.counts.sum())
    gain = found.log_likelihood - reference.log_likelihood
    low = high = math.nan
    if found is not reference:
        low, high = _interval(gain, found.counts, group, seed, bootstrap)
    distance = stats.kstest(found.residual, "norm")
    statistic, ad_p = anderson_darling(found.residual)
    both = np.isfinite(found.theta) & np.isfinite(reference.theta)
    alike = math.nan
    if both.sum() > 2 and min(np.ptp(found.theta[both]), np.ptp(reference.theta[both])) > 0:
        alike = float(stats.spearmanr(found.theta[both], reference.theta[both]).statistic)
    return {
        "n": n,
        "n_people": int((found.counts > 0).sum()),
        "log_likelihood": math.fsum(found.log_likelihood) / n,
        "difference": math.fsum(gain) / n,
        "low": low,
        "high": high,
        "beyond_chance": 1 if low > NEGLIGIBLE else -1 if high < -NEGLIGIBLE else 0,
        "n_residuals": len(found.residual),
        "dispersion": found.dispersion,
        "residual_mean": float(found.residual.mean()),
        "residual_sd": float(found.residual.std()),
        "ks": float(distance.statistic),
        "ks_p": float(distance.pvalue),
        "ad": statistic,
        "ad_p": ad_p,
        "zeros_observed": found.zeros[0],
        "zeros_expected": found.zeros[1],
        "theta_rank_r": alike,
        "settings": found.settings,
    }


def _interval(
    gain: Floats, counts: Integers, group: Integers, seed: int, bootstrap: int
) -> tuple[float, float]:
    """The middle 95 % of the difference per observation, people (or groups) being drawn anew."""
    gains, sizes = np.bincount(group, gain), np.bincount(group, counts)
    rng = np.random.default_rng([seed, 1])
    often = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=bootstrap)
    found = (often @ gains) / np.maximum(often @ sizes, 1)
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def anderson_darling(residual: Floats) -> tuple[float, float]:
    """Return the Anderson–Darling statistic against the standard normal, and its p.

    Nothing is estimated from the residuals, so p is that of a distribution fully known (Marsaglia and
    Marsaglia 2004, for many observations).

    Examples
    --------
    >>> import numpy as np
    >>> from fidm.experiments.families import anderson_darling
    >>> anderson_darling(np.random.default_rng(1).normal(size=500))[1] > 0.05
    True
    """
    x = np.sort(residual)
    n = len(x)
    odd = 2 * np.arange(1, n + 1) - 1
    z = float(-n - np.mean(odd * (special.log_ndtr(x) + special.log_ndtr(-x[::-1]))))
    return z, anderson_darling_p(z)


def anderson_darling_p(z: float) -> float:
    """Return the probability of a larger Anderson–Darling statistic, if nothing was estimated.

    Examples
    --------
    >>> round(anderson_darling_p(2.492), 3)
    0.05
    """
    if z < 2:
        inner = 0.0649821 - (0.0347962 - (0.011672 - 0.00168691 * z) * z) * z
        inside = 2.00012 + (0.247105 - inner * z) * z
        return 1 - math.exp(-1.2337141 / z) / math.sqrt(z) * inside
    bent = 1.0776 - (2.30695 - (0.43424 - (0.082433 - (0.008056 - 0.0003146 * z) * z) * z) * z) * z
    return -math.expm1(-math.exp(bent)) if z < 32 else 0.0


def _residual_table(observable: str, family: str, found: FamilyScores) -> pl.DataFrame:
    """The residuals, from the smallest to the largest, as pictures need them; whose they are is left out."""
    n = len(found.residual)
    share = (np.arange(n) + 0.5) / n
    expected = special.ndtri(share)
    error = np.sqrt(share * (1 - share) / n) / stats.norm.pdf(expected)  # of a normal order statistic
    return pl.DataFrame(
        {
            "observable": pl.Series([observable] * n, dtype=pl.String),
            "family": pl.Series([family] * n, dtype=pl.String),
            "expected": expected,
            "low": expected - 1.96 * error,
            "high": expected + 1.96 * error,
            "residual": np.sort(found.residual),
        }
    )
