"""Whether groups of people differ in how they decide and what it costs them, adjusted for what else is known.

Estimates of single people are not compared: groups that did not do equally much differ in them without any
difference (see :mod:`fidm.fit.regression`). The mean of every latent parameter depends on the group and on
what is adjusted for instead, and everybody's choices and segments tell how.

Differences are given as factors: the η, the duration, the count of one group divided by that of the other;
for the presence of pauses the ratio of odds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import optimize, special, stats

from fidm.channels import parameter_words
from fidm.cohort import Cohort
from fidm.defaults import LABEL
from fidm.errors import DataError, FitError, at_least, count, listed, remedy
from fidm.experiments.changes import compare_within
from fidm.experiments.comparison import (
    CORRELATIONS,
    Comparison,
    all_together,
    each_group,
    gaps_of,
    hash_columns,
    lay_out_for,
    numbers_of,
    say_moves_inferred,
    say_unequal,
    say_unequally_inferred,
)
from fidm.experiments.contrasts import BY, At, Contrasts, asked_for
from fidm.experiments.imputation import Pooled, impute, pool, pool_test
from fidm.experiments.shared import fit_learnable
from fidm.fit.common import Data, default_lapse, plain_algebra, threads, valid_lapse, valid_level
from fidm.fit.profile import SENSITIVITY, TOLD_APART
from fidm.fit.regression import (
    Covariates,
    Regressed,
    clusters_of,
    regress_offsets,
    regress_sensitivity,
    say_clusters,
    without_missing,
)
from fidm.model.channels import Channel
from fidm.model.effort import far_longer
from fidm.model.gaps import has_data
from fidm.record import Record
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet
from fidm.types import Flags, Floats, Progress

SPREADS = 41
"""How many plausible spreads an interval of the AUC is averaged over."""

FEWEST_PER_GROUP = 5
"""A parameter that was observed in fewer people of a group is not compared."""


@plain_algebra
def compare(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    by: str,
    adjust: Sequence[str] = (),
    reference: str | None = None,
    interact: Sequence[str] = (),
    at: At | None = None,
    missing: Literal["drop", "impute"] = "drop",
    imputations: int = 20,
    seed: int = 1,
    cluster: str | None = None,
    channels: Sequence[Channel] | None = None,
    lapse: float | Literal["estimate"] | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Comparison:
    """Compare groups of people, or people along a number, in every latent parameter.

    Parameters
    ----------
    task : TaskModel, or several
        The tasks.
    cohort : Cohort
        The people; ``by`` and ``adjust`` are columns of its participants.
    by : str
        A column of texts (groups), or of numbers (the difference is then that of one standard deviation). A
        column of the episodes, such as a visit or a condition, is compared within people: how each person
        changes (:mod:`fidm.fit.within`). A number of more than two values is then compared per unit.
    adjust : sequence of str
        Columns to adjust for: numbers enter as they are, texts as groups. Also terms of a formula, such as
        ``"bs(age, df=3)"``, a curve.
    reference : str, optional
        The group the others are compared with; by default the largest.
    interact : sequence of str
        With which of the columns adjusted for the difference may change.
    at : mapping of str to sequence, optional
        The values of these that differences are given for, as ``{"age": [60, 75]}``; by default the mean of a
        number, and every group of a text.
    missing : {"drop", "impute"}
        What becomes of people who lack what is adjusted for: they are left out, or it is imputed
        (:mod:`fidm.experiments.imputation`).
    imputations, seed : int
        How often it is imputed; the same seed gives the same numbers.
    cluster : str, optional
        A column of the participants: people with the same value (a site, a family) may go together, and the
        standard errors allow for it.
    channels, lapse, inferred
        As in :class:`fidm.Model`.
    level : float
        The level of intervals.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> from fidm.experiments.compare import compare
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 40, seed=1)
    >>> half = pl.when(pl.int_range(40) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    >>> people = people.with_participants(people.participants.with_columns(group=half))
    >>> found = compare(task, people, by="group", reference="a", channels=())
    >>> found.table["contrast"].to_list()
    ['b / a']
    """
    valid_level(level)
    if by in cohort.episodes.columns and by not in cohort.participants.columns:
        if adjust or interact or cluster:
            raise DataError(
                f"{by} is a column of the episodes, so people are compared with themselves. What is the same "
                "in all of a person's episodes makes no difference: leave adjust, interact and cluster out."
            )
        return compare_within(
            task, cohort, by,
            reference=reference, channels=channels, lapse=lapse, inferred=inferred, level=level,
            workers=workers, on_progress=on_progress,
        )  # fmt: skip
    if missing not in ("drop", "impute"):
        raise DataError(f"missing is {missing!r}; it must be 'drop' or 'impute'.")
    at_least("imputations", imputations, 2)
    asked = asked_for(cohort.participants, by, adjust, cohort.episodes.columns)
    whole, has_any = cohort, has_data(cohort)
    known = without_missing(cohort.participants.select(asked if missing == "drop" else [by]))
    enough, too_few = _large_enough(_group(whole, by), known & has_any)
    cohort = whole[np.flatnonzero(enough)]
    people = cohort.participants
    design = Contrasts.of(people, by, adjust, reference=reference, interact=interact, at=at)

    tasks = TaskSet.of(task)
    longest = far_longer(cohort)[1]
    used, levels, data, constant = lay_out_for(tasks, cohort, channels, inferred, longest)
    threads_, rate = threads(workers), valid_lapse(default_lapse(lapse, "eb"))
    say = on_progress or (lambda doing, done, of: None)
    estimates = None
    is_lost = not without_missing(people.select(asked)).all()
    if is_lost or not design.levels:
        say("estimates", 0, 1)
        estimates = _estimates(tasks.tasks, cohort, used, inferred, threads_)
    tables = [people]
    if is_lost and estimates is not None:
        tables = _imputed(people, design, asked[1:], estimates, imputations, seed)
    laid_out = [_laid_out(design, table) for table in tables]
    plain = Covariates.of(design.frame(people).select(BY), design.plain)
    group, clusters = _group(cohort, by), clusters_of(people, cluster)

    def regressed(parameter: str, known: Covariates) -> Regressed:
        if parameter == SENSITIVITY:
            return regress_sensitivity(
                data.choices, known.values, lapse=rate, clusters=clusters, workers=threads_
            )
        place = [channel.name for channel in used].index(parameter)
        return regress_offsets(
            used[place], data.effort[place], levels, known.values, clusters=clusters, workers=threads_
        )

    parts: list[_Part] = []
    notes = [*constant]
    lost: dict[str, list[str]] = {}
    parameters = (SENSITIVITY, *(channel.name for channel in used))
    counts = (np.diff(data.choices.person_offsets), *(seen.counts for seen in data.effort))
    seen = {name: own > 0 for name, own in zip(parameters, counts, strict=True)}
    for done, parameter in enumerate(parameters):
        say(parameter, done, len(parameters))
        try:
            _enough_in_each(group, seen[parameter])
            part = _Part.of(parameter, laid_out, plain, regressed)
        except FitError as error:
            lost.setdefault(str(error), []).append(parameter)
            continue
        parts.append(part)
        notes += part.fits[0].warnings
    notes += [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {why}" for why, names in lost.items()
    ]
    if not parts:
        raise FitError(f"Nothing can be compared. {' '.join(notes)}")
    rows = [row for part in parts for row in part.rows(design, level)]
    related = []
    if estimates is not None and not design.levels and not interact:
        everybody = [known for known, _ in laid_out]
        related = [part.correlation(everybody, seen[part.parameter], estimates, level) for part in parts]
    described = _described(cohort, by, data)
    return Comparison(
        record=Record.of(
            "compare",
            tasks.tasks,
            seed=seed if is_lost else None,
            settings={
                "by": by,
                "adjust": list(adjust),
                "interact": list(interact),
                "at": {name: list(values) for name, values in (at or {}).items()},
                "reference": reference,
                "missing": missing,
                "cluster": cluster,
                "imputations": len(tables) if is_lost else 0,
                "lapse": lapse,
                "inferred": inferred,
                "level": level,
                "channels": list(parameters[1:]),
                "known": hash_columns(whole, [*asked, *([] if cluster is None else [cluster])]),
            },
            cohort=whole,
        ),
        table=all_together(pl.DataFrame(rows, schema_overrides=numbers_of(rows))),
        terms=pl.DataFrame([row for part in parts for row in part.terms(design, level)]),
        overall=pl.DataFrame(
            [part.overall() for part in parts], schema_overrides={"p_interaction": pl.Float64}
        ),
        groups=described,
        correlations=pl.DataFrame(related, schema=CORRELATIONS),
        by=by,
        adjust=tuple(adjust),
        level=level,
        notes=(
            *design.notes(reference),
            *_left_out(whole.participants.filter(has_any), asked if missing == "drop" else [by]),
            *too_few,
            *([] if clusters is None else [say_clusters(clusters, cluster)]),
            *_said_imputed(people.select(asked[1:]), len(tables)),
            *_beyond(people, design),
            *say_unequal(described),
            *say_unequally_inferred(described, inferred),
            *say_moves_inferred(data, inferred),
            *notes,
            *_no_auc([parameter_words(part.parameter) for part in parts if part.may_be_alike], design),
            *_predicted(design),
        ),
        gaps=gaps_of(whole, cohort),
    )


def _laid_out(design: Contrasts, people: pl.DataFrame) -> tuple[Covariates, Floats]:
    """The columns of a comparison's formula, and the weights of its contrasts."""
    frame = design.frame(people)
    try:
        covariates = Covariates.of(frame, design.formula)
    except DataError as error:
        raise DataError(design.reworded(error.message)) from None
    return covariates, design.weights(frame, covariates.names)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """How one parameter goes with what is compared, with covariates once or as often as they were imputed.

    ``own`` are the columns of what is compared, ``changing`` those among them that interact; ``smaller`` are
    the regressions without the former, ``steady`` those without the latter, ``alone`` is the one without what
    is adjusted for.
    """

    parameter: str
    fits: tuple[Regressed, ...]
    weights: tuple[Floats, ...]
    names: tuple[str, ...]
    own: tuple[int, ...]
    changing: tuple[int, ...]
    smaller: tuple[Regressed, ...]
    steady: tuple[Regressed, ...]
    alone: Regressed

    @classmethod
    def of(
        cls,
        parameter: str,
        laid_out: Sequence[tuple[Covariates, Floats]],
        plain: Covariates,
        regressed: Callable[[str, Covariates], Regressed],
    ) -> _Part:
        """Regress a parameter on everything, and on less."""
        first = laid_out[0][0]
        terms = {term: places for term, places in first.terms.items() if BY in term}
        own = tuple(i for places in terms.values() for i in places)
        changing = tuple(i for term, places in terms.items() if ":" in term for i in places)
        fits = tuple(regressed(parameter, known) for known, _ in laid_out)
        if not all(np.isfinite(fit.se).all() for fit in fits):
            raise FitError("it was observed in too few people for standard errors of all slopes.")
        smaller, steady = (
            tuple(regressed(parameter, known.without(places)) for known, _ in laid_out) if places else ()
            for places in (own, changing)
        )
        alone = fits[0] if first.names == plain.names else regressed(parameter, plain)
        weights = tuple(weights for _, weights in laid_out)
        return cls(parameter, fits, weights, first.names, own, changing, smaller, steady, alone)

    @property
    def contrasts(self) -> Pooled:
        """The differences."""
        values = np.array([own @ fit.slopes for own, fit in zip(self.weights, self.fits, strict=True)])
        variances = [
            np.einsum("kc,cd,kd->k", own, fit.covariance, own)
            for own, fit in zip(self.weights, self.fits, strict=True)
        ]
        return pool(values, np.array(variances), self.fits[0].freedom)

    @property
    def slopes(self) -> Pooled:
        """The slopes of all columns."""
        values, errors = (np.array([getattr(fit, name) for fit in self.fits]) for name in ("slopes", "se"))
        return pool(values, errors**2, self.fits[0].freedom)

    @property
    def spread(self) -> _Spread:
        """How much people differ after what the covariates say."""
        return _Spread.of(self.fits)

    @property
    def may_be_alike(self) -> bool:
        """Whether that cannot be told from 0."""
        return self.spread.least_reliability < TOLD_APART

    def rows(self, design: Contrasts, level: float) -> Iterator[dict[str, Any]]:
        """Give a row of the table for every contrast."""
        found, spread, alone = self.contrasts, self.spread, _Spread.of([self.alone])
        ends = np.array([found.value, *found.ends(level)])
        plain = Pooled(
            self.alone.slopes, self.alone.se, np.full(len(self.alone.slopes), float(self.alone.freedom))
        )
        for place, (name, k) in enumerate(design.contrasts):
            yield {
                "parameter": self.parameter,
                "contrast": name,
                "difference": ends[0, place],
                "se": found.se[place],
                "low": ends[1, place],
                "high": ends[2, place],
                **dict(
                    zip(("factor", "factor_low", "factor_high"), np.exp(ends[:, place]).tolist(), strict=True)
                ),
                "p": found.p[place],
                **_latent_auc(found, place, spread, level),
                "unadjusted": float(np.exp(plain.value[k])),
                "auc_unadjusted": _latent_auc(plain, k, alone, level)["auc"],
                "n_people": self.fits[0].n_people,
            }

    def terms(self, design: Contrasts, level: float) -> Iterator[dict[str, Any]]:
        """Give a row for every slope."""
        found = self.slopes
        low, high = found.ends(level)
        for i, name in enumerate(self.names):
            yield {
                "parameter": self.parameter,
                "term": design.words(name),
                "slope": found.value[i],
                "se": found.se[i],
                "low": low[i],
                "high": high[i],
                "p": found.p[i],
            }

    def correlation(
        self, laid_out: Sequence[Covariates], seen: Flags, estimates: pl.DataFrame, level: float
    ) -> dict[str, Any]:
        """Return the correlation of the parameter itself with a number, and that of people's estimates.

        With the slope γ per standard deviation of the number and the spread s of people beside it, u = γ / s
        is r / √(1 − r²), and arsinh u is Fisher's z of r. Slope, spread and standard deviation are each as
        uncertain as they are; the latter by 1 / √(2n) of itself.
        """
        found, spread = self.contrasts, self.spread
        number = [_beside(known.values[seen], self.own) for known in laid_out]
        row: dict[str, Any] = {"parameter": self.parameter, "r": None, "low": None, "high": None}
        if spread.least_reliability >= TOLD_APART:
            scale = float(np.mean([own.std(ddof=1) for own in number]))
            u, se = float(found.value[0]) * scale / spread.value, float(found.se[0]) * scale / spread.value
            error = math.hypot(se, u * math.hypot(spread.log_se, 1 / math.sqrt(2 * seen.sum()))) / math.hypot(
                1, u
            )
            reach = float(stats.t.ppf(0.5 + 0.5 * level, found.freedom[0])) * error
            z = math.asinh(u)
            row |= {"r": math.tanh(z), "low": math.tanh(z - reach), "high": math.tanh(z + reach)}
        plain = None
        if self.parameter in estimates.columns:
            own = estimates[self.parameter].to_numpy()[seen]
            whole = np.isfinite(own)
            others = np.delete(laid_out[0].values[seen], self.own, axis=1)
            plain = _correlated(number[0][whole], _rest(own[whole], others[whole]))
        return row | {"r_estimates": plain, "n_people": self.fits[0].n_people}

    def overall(self) -> dict[str, Any]:
        """Return the tests of all contrasts together, and how much is explained."""
        spread, without = self.spread.value, _Spread.of(self.smaller).value
        return {
            "parameter": self.parameter,
            "p": self._test(self.own, self.smaller),
            "p_interaction": self._test(self.changing, self.steady) if self.changing else None,
            "sd": spread,
            "sd_without": without,
            "explained": max(0.0, 1 - (spread / without) ** 2),
            "n_people": self.fits[0].n_people,
        }

    def _test(self, columns: tuple[int, ...], smaller: Sequence[Regressed]) -> float:
        """The p-value of some slopes together: by the ratio of likelihoods, or pooled.

        Where people of a cluster go together, or people who choose at random are found in one of the two fits
        only, likelihoods cannot be compared, but slopes can.
        """
        first = self.fits[0]
        if len(columns) == 1:
            return float(self.slopes.p[columns[0]])
        if len(self.fits) == 1:
            clustered = first.freedom < first.n_people - first.n_free
            same = first.n_free - smaller[0].n_free == len(columns)
            return first.against(smaller[0]) if same and not clustered else first.wald(columns)
        some = np.ix_(columns, columns)
        values = np.array([fit.slopes[list(columns)] for fit in self.fits])
        return pool_test(values, [fit.covariance[some] for fit in self.fits], first.freedom)


def _beside(columns: Floats, own: Sequence[int]) -> Floats:
    """What the other columns do not say of one, [P]."""
    return _rest(columns[:, own[0]], np.delete(columns, own, axis=1))


def _rest(values: Floats, others: Floats) -> Floats:
    """What is left of numbers after a regression on others."""
    known = np.column_stack([np.ones(len(values)), others])
    return np.asarray(values - known @ np.linalg.lstsq(known, values, rcond=None)[0])


def _correlated(one: Floats, other: Floats) -> float | None:
    """A correlation; None where people do not differ."""
    return float(np.corrcoef(one, other)[0, 1]) if other.std() > 1e-12 else None


@dataclass(frozen=True, slots=True)
class _Spread:
    """An sd of people, the standard error of its logarithm, and how reliable people are if it is small."""

    value: float
    log_se: float
    least_reliability: float

    @classmethod
    def of(cls, fits: Sequence[Regressed]) -> _Spread:
        """Pool what regressions say of it."""
        logs = np.log([[fit.spread] for fit in fits])
        variances = np.square([[fit.log_spread_se] for fit in fits])
        found = pool(logs, variances, fits[0].freedom)
        middle = fits[0].spread if len(fits) == 1 else float(np.exp(found.value[0]))
        return cls(middle, float(found.se[0]), float(np.mean([fit.least_reliability for fit in fits])))


def _estimates(
    tasks: Sequence[TaskModel], cohort: Cohort, channels: Sequence[Channel], inferred: float, workers: int
) -> pl.DataFrame:
    """Everybody's own estimates by empirical Bayes, log η and θ; NaN where there is none."""
    fit, _ = fit_learnable(tasks, cohort, channels, inferred=inferred, workers=workers)
    profile = fit.profile(cohort, workers=workers)
    names = profile.parameters
    return pl.DataFrame({names[0]: profile.log_sensitivity} | {name: profile[name] for name in names[1:]})


def _imputed(
    people: pl.DataFrame,
    design: Contrasts,
    columns: Sequence[str],
    estimates: pl.DataFrame,
    times: int,
    seed: int,
) -> list[pl.DataFrame]:
    """These people with what they lack drawn, so many times."""
    by = design.frame(people)[BY]
    group = (
        by.to_dummies(drop_first=True).to_numpy().astype(np.float64)
        if design.levels
        else by.to_numpy()[:, None]
    )
    own = estimates.to_numpy()
    own = np.where(np.isfinite(own), own, np.nan)
    own = own[:, np.isfinite(own).any(axis=0)]
    own = np.where(np.isnan(own), np.nanmean(own, axis=0), own)  # without data, the posterior is the prior
    besides = [group, own]
    if design.interact:
        besides += [column[:, None] * own for column in group.T]
    filled = impute(people.select(columns), np.column_stack(besides), times=times, seed=seed)
    return [people.with_columns(table) for table in filled]


def _said_imputed(known: pl.DataFrame, times: int) -> list[str]:
    """Say what was imputed, and for how many people."""
    lost = [(name, int((~without_missing(known.select(name))).sum())) for name in known.columns]
    said = [f"{name} of {count(n, 'person', 'people')}" for name, n in lost if n]
    if not said:
        return []
    return [
        f"Imputed {times} times, from the groups, the other covariates and everybody's own estimates: "
        f"{listed(said)}."
    ]


def _beyond(people: pl.DataFrame, design: Contrasts) -> list[str]:
    """Say which chosen values lie outside what was observed."""
    said = []
    for name in design.centre:
        own = people[name].drop_nulls().cast(pl.Float64).drop_nans().to_numpy()
        far = sorted({one[name] for one in design.at if not own.min() <= float(one[name]) <= own.max()})
        if far:
            values = listed(f"{float(value):g}" for value in far)
            said.append(
                f"{name} was observed from {own.min():g} to {own.max():g}: {values} lies outside, where "
                "differences are extrapolated."
            )
    return said


def _large_enough(group: pl.Series, known: Flags) -> tuple[Flags, list[str]]:
    """Who is compared: everybody known, but of small groups nobody if two others are left."""
    sizes = pl.DataFrame({"group": group, "n": known}).drop_nulls().group_by("group").agg(pl.col("n").sum())
    sizes = sizes.sort("group")
    small = sizes.filter(pl.col("n") < FEWEST_PER_GROUP)
    if sizes.height < 2:
        return known, []
    if sizes.height - small.height < 2:
        told = ", ".join(f"{name!r} {n:,}" for name, n in sizes.iter_rows())
        raise FitError(
            f"Two groups of {FEWEST_PER_GROUP} people with data and all that is adjusted for, or more, are "
            f"needed; there are {told}. Merge groups, or adjust for less."
        )
    said = [
        f"The group {name!r} is left out: {count(n, 'person', 'people')} can be compared, and at least "
        f"{FEWEST_PER_GROUP} are needed. Merge it with another group to keep them."
        for name, n in small.iter_rows()
    ]
    return known & ~group.is_in(small["group"].implode()).fill_null(value=False).to_numpy(), said


def _latent_auc(found: Pooled, place: int, spread: _Spread, level: float) -> dict[str, float | None]:
    """How well a parameter known without error would tell two groups apart that differ so much.

    It is Φ(difference / (√2 spread)). The ends of its interval are quantiles of that ratio, where the
    difference has its t distribution and the logarithm of the spread a normal one.
    """
    names = ("auc", "auc_low", "auc_high")
    if spread.least_reliability < TOLD_APART:
        return dict.fromkeys(names)
    nodes, weights = special.roots_hermitenorm(SPREADS)
    spreads, weights = spread.value * np.exp(spread.log_se * nodes), weights / weights.sum()
    difference, se, freedom = found.value[place], found.se[place], found.freedom[place]

    def excess(area: float, share: float) -> float:
        away = (np.sqrt(2) * special.ndtri(area) * spreads - difference) / se
        return float(weights @ special.stdtr(freedom, away)) - share

    ends = [
        optimize.brentq(excess, 1e-15, 1 - 1e-15, args=(share,), xtol=1e-9)
        if excess(1e-15, share) < 0 < excess(1 - 1e-15, share)
        else float(share > 0.5)
        for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    ]
    middle = float(special.ndtr(difference / (np.sqrt(2) * spread.value)))
    return dict(zip(names, (middle, *ends), strict=True))


def _group(cohort: Cohort, by: str) -> pl.Series:
    """Everybody's group; one for all where a number is compared."""
    column = cohort.participants[by]
    if column.dtype.is_numeric():
        return pl.Series("group", ["everybody"] * len(cohort))
    return column.cast(pl.String).alias("group")


def _enough_in_each(group: pl.Series, observed: Flags) -> None:
    """Raise if too few people of a group were observed."""
    sizes = {
        name: int((observed & (group == name).to_numpy()).sum()) for name in group.unique().sort().to_list()
    }
    small = [f"{n} of {name!r}" for name, n in sizes.items() if n < FEWEST_PER_GROUP]
    if small:
        others = len(sizes) - len(small) > 1
        raise FitError(
            f"{listed(small)} can be compared in it; at least {FEWEST_PER_GROUP} people are needed in each."
            + (" Exclude such groups (column excluded) to compare the others in it." if others else "")
        )


def _described(cohort: Cohort, by: str, data: Data) -> pl.DataFrame:
    """How many people each group has, how much they did, and how much of it was inferred."""
    segments = np.diff(cohort.segment_offsets[cohort.episode_offsets])
    did = {"actions": data.choices.n_choices, "segments": segments}
    moves = {"moves": data.n_steps, "inferred": data.n_inferred}
    return each_group(pl.DataFrame({**did, **moves}, nan_to_null=True).with_columns(_group(cohort, by)))


def _left_out(people: pl.DataFrame, asked: Sequence[str]) -> list[str]:
    """Say how many people lack what, and what to do about it."""
    lost = int((~without_missing(people.select(asked))).sum())
    if not lost:
        return []
    each = {name: int((~without_missing(people.select(name))).sum()) for name in asked}
    told = listed(f"{name} is missing for {n:,}" for name, n in each.items() if n)
    how = (
        remedy("missing='impute'", "fidm compare --missing impute") + " imputes what is adjusted for."
        if any(list(each.values())[1:])
        else ""
    )
    return [f"Left out: {count(lost, 'person', 'people')}; {told}. {how}".rstrip()]


def _no_auc(alike: Sequence[str], design: Contrasts) -> list[str]:
    """Say it if there is no AUC, or no correlation, of a parameter."""
    if not alike:
        return []
    what, who = ("AUC", "of a group") if design.levels else ("correlation", f"of the same {design.by}")
    return [
        f"No {what} of {', '.join(alike)}: people {who} do not measurably differ, and "
        f"{'an AUC' if design.levels else 'a correlation'} measures the difference by how much they do."
    ]


def _predicted(design: Contrasts) -> list[str]:
    """Say of a number that is classified that predictions of it reuse the data."""
    if design.levels or design.by != LABEL:
        return []
    return [f"If {design.by} was predicted from these data, by fidm classify or by hand, r says nothing."]


def correlate(
    task: TaskModel | Iterable[TaskModel],
    cohort: Cohort,
    *,
    scores: Sequence[str],
    adjust: Sequence[str] = (),
    channels: Sequence[Channel] | None = None,
    lapse: float | Literal["estimate"] | None = None,
    inferred: float = 0.0,
    level: float = 0.95,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> pl.DataFrame:
    """Correlate every latent parameter with scores from elsewhere, free of the error of people's estimates.

    A score that was itself made from these data, such as the prediction of a classifier, goes with the
    parameters by its making: its correlation says nothing.

    Parameters
    ----------
    task, cohort, adjust, channels, lapse, inferred, level, workers, on_progress
        As in :func:`compare`; with ``adjust`` correlations are partial ones.
    scores : sequence of str
        Columns of numbers.

    Returns
    -------
    DataFrame
        A row per score and parameter: ``r`` with ``low`` and ``high`` (null where people may not differ
        beside the score), ``p`` and ``p_holm`` (which holds for all rows together), the correlation of
        people's estimates (``r_estimates``), and ``n_people``.

    Examples
    --------
    >>> import fidm, polars as pl
    >>> from fidm.experiments.compare import correlate
    >>> task = fidm.load_task("errands")
    >>> people = fidm.simulate_cohort(task, 40, seed=1)
    >>> about = people.participants.with_columns(moca=22 + pl.int_range(40) % 9)
    >>> found = correlate(task, people.with_participants(about), scores=["moca"], channels=())
    >>> bool(found["low"][0] < found["r"][0] < found["high"][0])
    True
    """
    texts = [
        name
        for name in scores
        if name in cohort.participants.columns and not cohort.participants[name].dtype.is_numeric()
    ]
    if texts or not scores:
        raise DataError(
            f"{', '.join(texts)} holds texts; a score is a number." if texts else "No score is named."
        )
    found = []
    for score in scores:
        one = compare(
            task, cohort, by=score, adjust=adjust, channels=channels, lapse=lapse, inferred=inferred,
            level=level, workers=workers, on_progress=on_progress,
        )  # fmt: skip
        own = one.correlations.join(one.table.select("parameter", "p"), on="parameter", maintain_order="left")
        found.append(own.select(pl.lit(score).alias("score"), pl.all()))
    table = all_together(pl.concat(found, how="vertical_relaxed")).drop("p_fdr")
    return table.select("score", "parameter", "r", "low", "high", "p", "p_holm", "r_estimates", "n_people")
