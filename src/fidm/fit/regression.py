r"""How people's latent parameters go with what else is known of them: groups, age, education.

Estimates of single people must not be compared: with few choices they are biased or drawn to the mean, and
the more so the less somebody did. Instead the population itself depends on the covariates x of a person,

.. math::

    \log \eta_j \sim N(m + \gamma^\top (x_j - \bar x), s^2), \qquad
    \theta_j \sim N(\gamma^\top (x_j - \bar x), s^2),

and γ is learned from everybody's likelihood together with the rest of the population. Nobody is left out
because their own estimate is infinite, and a person with few choices counts for what they tell.

Standard errors are those of :func:`fidm.fit.population.standard_errors`; intervals and tests take Student's t
with as many degrees of freedom as there are people beyond the numbers that are learned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from polars import selectors as cs
from scipy import stats

from fidm.errors import DataError, FitError, count
from fidm.fit import offsets
from fidm.fit.population import random_intercepts
from fidm.fit.profile import told_apart
from fidm.fit.sensitivity import SensitivityPrior, learn_slopes, posterior
from fidm.model.action import Choices
from fidm.model.channels import Channel
from fidm.model.effort import Levels, Observed, design_names
from fidm.types import Flags, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """What a formula makes of a table of participants.

    Parameters
    ----------
    formula : str
        As it was given, without an outcome.
    names : tuple of str
        The columns it makes, the intercept left out.
    terms : mapping of str to tuple of int
        Which columns belong to each of its terms.
    values : float array [P, C]
        The columns, less their means over the complete rows.
    complete : bool array [P]
        Who lacks none of the formula's variables.
    """

    formula: str
    names: tuple[str, ...]
    terms: Mapping[str, tuple[int, ...]]
    values: Floats
    complete: Flags

    @classmethod
    def of(cls, participants: pl.DataFrame, formula: str) -> Covariates:
        """Lay out the columns of a formula, as ``"age + C(group)"``."""
        from formulaic import Formula, model_matrix
        from formulaic.errors import FormulaicError

        try:
            parsed = Formula(formula)
            if not hasattr(parsed, "required_variables") or hasattr(parsed, "lhs"):
                raise DataError(
                    f"The formula {formula!r} must have no outcome: what is explained is η and θ."
                )
        except FormulaicError as error:
            raise DataError(f"The formula {formula!r} cannot be read: {error}") from None
        wanted = variables(formula)
        absent = sorted(wanted - set(participants.columns))
        if absent:
            known = ", ".join(participants.columns)
            raise DataError(
                f"The formula {formula!r} names {', '.join(map(repr, absent))}, which the participants do "
                f"not have. They have: {known}."
            )
        used = participants.select(sorted(wanted))
        complete = without_missing(used)
        if not complete.any():
            raise DataError(f"Nobody has all of what the formula {formula!r} names.")
        try:
            made = model_matrix(formula, used.filter(complete), na_action="ignore", output="numpy")
        except FormulaicError as error:
            raise DataError(f"The formula {formula!r} does not suit these people: {error}") from None
        matrix = np.asarray(made, dtype=np.float64)
        spec = made.model_spec
        kept = [i for i, name in enumerate(spec.column_names) if name != "Intercept"]
        place = {name: i for i, name in enumerate(np.array(spec.column_names)[kept].tolist())}
        terms = {
            str(one.term): tuple(place[name] for name in one.columns)
            for one in spec.structure
            if set(one.columns) <= set(place) and one.columns
        }
        empty = [str(one.term) for one in spec.structure if not one.columns]
        if empty:
            raise DataError(f"{', '.join(empty)} of the formula {formula!r} is the same for everybody.")
        values = np.zeros((participants.height, len(kept)))
        values[complete] = matrix[:, kept] - matrix[:, kept].mean(axis=0)
        found = cls(formula, tuple(place), terms, values, complete)
        found._check()
        return found

    def _check(self) -> None:
        """Raise where a column says nothing that the others do not say."""
        inside = self.values[self.complete]
        scale = np.sqrt((inside**2).mean(axis=0))
        flat = [name for name, one in zip(self.names, scale, strict=True) if not one > 1e-12]
        if flat:
            raise DataError(f"{', '.join(flat)} of the formula {self.formula!r} is the same for everybody.")
        if np.linalg.matrix_rank(inside / scale) < len(self.names):
            raise DataError(
                f"The columns {', '.join(self.names)} of the formula {self.formula!r} follow from each "
                "other. Leave one out."
            )

    def without(self, columns: Sequence[int]) -> Covariates:
        """Return the same without some of the columns."""
        kept = [i for i in range(len(self.names)) if i not in columns]
        place = {old: new for new, old in enumerate(kept)}
        terms = {
            term: tuple(place[i] for i in own)
            for term, own in self.terms.items()
            if all(i in place for i in own)
        }
        names = tuple(self.names[i] for i in kept)
        return Covariates(self.formula, names, terms, self.values[:, kept], self.complete)


def variables(formula: str) -> set[str]:
    """Return the columns that a formula names: not what it calls, nor its settings, nor texts.

    Examples
    --------
    >>> sorted(variables("bs(age, df=3) + C(group, contr.treatment('a')) + `shoe size`"))
    ['age', 'group', 'shoe size']
    """
    quoted = re.findall(r"`([^`]+)`", formula)
    bare = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", " ", formula)
    return {*quoted, *re.findall(r"(?<![\w.])([^\W\d][\w.]*)(?![\w.]|\s*[(=])", bare)}


def without_missing(table: pl.DataFrame) -> Flags:
    """Return which rows have a value in every column, [P]; NaN is none."""
    lost = table.select(pl.all().is_null(), cs.float().is_nan().name.suffix(" nan")).fill_null(value=True)
    return ~np.asarray(lost.to_numpy().any(axis=1), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """How one parameter goes with covariates.

    Parameters
    ----------
    parameter : str
        Whose slopes they are.
    slopes : float array [C]
        Per unit of each covariate, on the scale of log η or θ.
    covariance : float array [C, C]
        Their sampling covariance.
    spread, log_spread_se : float
        The sd of people after what the covariates say, and the standard error of its logarithm.
    least_reliability : float
        The share of the remaining differences among people that their data account for, if the spread is as
        small as its 95 % interval allows.
    log_likelihood : float
        Of everybody's data, as probable as the best population makes it.
    n_people, n_free : int
        How many people it rests on, and how many numbers were learned.
    warnings : tuple of str
        What is to be said against the population.
    """

    parameter: str
    slopes: Floats
    covariance: Floats
    spread: float
    log_spread_se: float
    least_reliability: float
    log_likelihood: float
    n_people: int
    n_free: int
    warnings: tuple[str, ...] = ()

    @property
    def se(self) -> Floats:
        """The slopes' standard errors, [C]."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def freedom(self) -> int:
        """The degrees of freedom of tests."""
        return max(self.n_people - self.n_free, 1)

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the slopes' intervals."""
        reach = stats.t.ppf(0.5 + 0.5 * level, self.freedom) * self.se
        return self.slopes - reach, self.slopes + reach

    def p_values(self) -> Floats:
        """Return the probability of slopes as far from 0 as these, if there were none."""
        return np.asarray(2 * stats.t.sf(np.abs(self.slopes) / self.se, self.freedom))

    def against(self, smaller: Regressed) -> float:
        """Return the p-value of what a smaller regression leaves out, by the ratio of likelihoods.

        Twice its logarithm, per number left out and lowered by the share of numbers learned, is compared
        with an F distribution, which in large studies is the usual χ².
        """
        width = self.n_free - smaller.n_free
        gain = max(2 * (self.log_likelihood - smaller.log_likelihood), 0.0)
        return float(stats.f.sf(gain / width * self.freedom / self.n_people, width, self.freedom))


def regress_sensitivity(
    choices: Choices, known: Floats, *, lapse: float | None, workers: int = 1
) -> Regressed:
    """Learn how log η goes with covariates [P, C].

    ``lapse=None`` estimates the lapse rate together with the rest.
    """
    told = np.diff(choices.person_offsets) > 0
    if told.sum() <= known.shape[1] + 2:
        raise FitError(
            f"{count(int(told.sum()), 'person', 'people')} made choices that tell anything; that is too few "
            f"to learn {known.shape[1] + 2} numbers from."
        )
    some = choices.take(told)
    best, covariance, value, rate = learn_slopes(some, known[told], lapse=lapse, workers=workers)
    width = known.shape[1]
    first, spread = len(best) - width, math.exp(best[1])
    log_se = math.sqrt(covariance[1, 1])
    prior = SensitivityPrior(float(best[0]), spread)
    own, _ = posterior(some, prior, lapse=rate, level=0.95, workers=workers)
    return Regressed(
        "action_sensitivity",
        best[first:],
        covariance[first:, first:],
        spread,
        log_se,
        _least_reliability(own.log_se, spread, log_se),
        value,
        int(told.sum()),
        len(best),
    )


def regress_offsets(
    channel: Channel, seen: Observed, levels: Levels, known: Floats, names: Sequence[str], *, workers: int = 1
) -> Regressed:
    """Learn how θ of a channel goes with covariates [P, C]: they move the mean of everybody's offset."""
    wide = np.concatenate([seen.x, np.repeat(known.T, seen.counts, axis=1)])
    data = Observed(seen.y, wide, seen.offsets, seen.row)
    columns = (*design_names(channel, levels), *names)
    learned = random_intercepts(channel, data, columns, workers, plausible=True)
    shared = learned.population
    width = len(names)
    slopes = shared.coefficients[len(columns) - width :]
    spread = float(shared.sd)
    log_se = learned.se["sd"] / spread
    assert learned.covariance is not None  # noqa: S101
    own, _ = offsets.posterior(channel, data, shared, level=0.95, workers=workers)
    return Regressed(
        channel.name,
        slopes,
        learned.covariance[len(columns) - width :, len(columns) - width :],
        spread,
        log_se,
        _least_reliability(own.se[seen.counts > 0], spread, log_se),
        learned.log_likelihood,
        int((seen.counts > 0).sum()),
        len(columns) + bool(channel.shape_name) + 1,
        learned.warnings,
    )


def _least_reliability(se: Floats, spread: float, log_se: float) -> float:
    """The reliability at the lower end of the spread's interval; 0 where that is not known."""
    low = spread * math.exp(-1.96 * log_se) if math.isfinite(log_se) else 0.0
    return told_apart(se, spread, low)
