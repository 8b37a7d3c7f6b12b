r"""How far a person's numbers can be trusted: split halves, retest, and the change that is more than noise.

*Split-half.* A person's segments are dealt to two halves, odd and even; every step goes with its segment.
In episodes whose steps do not say which segment they belong to, runs of three counted steps are dealt
instead (see :mod:`fidm.study.halves`). People with many short episodes have whole episodes dealt
(``halves="episodes"``): where the segments of an episode follow a pattern, such as a slow first choice, odd
and even segments are not parallel. Each half is estimated alone by maximum likelihood, with the population
values of one fit for both; shrunken halves are pulled to the same centre, the more the less they hold, which
distorts the correlation. With r the correlation of the halves (log η, θ), the full-length reliability is
Spearman and Brown's ρ = 2r / (1 + r); a negative r is not stepped up. With SD the spread of full-length
estimates, the standard error of measurement is SD·√(1 − ρ).

People whose estimate is infinite in a half (every choice a best one) are left out of r, and with them the
most consistent people, so ρ of η says little where they are many. The rank correlation keeps them, in the
first and last places; sentences then rely on the model.

*Retest.* Where people have several traces: the first against the second, or odd against even ones if anybody
has more than two. ρ is the ICC(2,1), absolute agreement of single measurements, and the standard error of
measurement √(σ²_occasion + σ²_error) of the same two-way model.

*Model.* What empirical Bayes itself says of people who were observed: ρ is one minus the mean posterior
variance over the prior's, and the standard error of measurement the root of the mean posterior variance over
ρ.

The standard error of measurement is that of estimates by maximum likelihood, and the minimal detectable
change 1.96·√2 times as large: two such estimates of a person who has not changed differ by less in 95 % of
cases. The estimates of empirical Bayes, which ``fidm fit`` prints unless told otherwise, are pulled towards
the mean by about ρ, and so are their differences: for them the change is ρ times as large. Intervals are from
a bootstrap of participants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.fit.effort_alone import EffortFit, fit_effort
from fidm.fit.fitted import Fit
from fidm.fit.profile import SENSITIVITY
from fidm.model.channels import paper_channels
from fidm.record import Record, hash_values
from fidm.study.halves import deal_episodes, deal_segments, half_of
from fidm.study.learnable import by_method, fit_learnable
from fidm.study.recovered import LABELS
from fidm.study.repeated import MANY, Reliability
from fidm.study.together import groups_of
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]

FEWEST_PEOPLE = 5
"""A correlation of fewer people is not given."""

BOOTSTRAP, _CHUNK = 1_000, 2_000_000


def reliability(
    task: TaskModel | Iterable[TaskModel] | None,
    cohort: Cohort,
    *,
    fit: Fit | EffortFit | None = None,
    learn_from: Cohort | None = None,
    halves: Literal["segments", "episodes"] = "segments",
    unit: Literal["person", "episode"] = "person",
    together: str | None = None,
    seed: int = 1,
    bootstrap: int = BOOTSTRAP,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Reliability:
    """Say how reliable every parameter is: split halves, retest, and the change that can be detected.

    Parameters
    ----------
    task : TaskModel, or several, or None
        The tasks the episodes name; None where effort alone is studied, without a task.
    cohort : Cohort
        The people.
    fit : Fit or EffortFit, optional
        What people share; learned from ``learn_from`` if left out.
    learn_from : Cohort, optional
        The training part; by default all of the cohort.
    halves : {"segments", "episodes"}
        What is dealt to the two halves in turn: segments with their steps, or whole episodes.
    unit : {"person", "episode"}
        Whose reliability: that of people; or that of single episodes, such as the dialogs of a person, each
        of which then has numbers of its own. People are still drawn whole for the intervals.
    together : str, optional
        A column of the participants: people with the same value, such as those who talk to each other, are
        drawn together for the intervals.
    seed : int
        Of the bootstrap.
    bootstrap : int
        How many times people are drawn anew for the intervals.
    workers : int, optional
        Threads; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.study.repeating import reliability
    >>> task = fidm.load_task("errands")
    >>> found = reliability(task, fidm.simulate_cohort(task, 60, seed=1), bootstrap=100)
    >>> found.row("duration")["n"]
    60
    """
    if len(cohort) < 2:
        raise DataError("There is one person; reliability compares differences among people with error.")
    if seed < 0 or bootstrap < 20:
        raise DataError(f"seed is {seed} and bootstrap {bootstrap}; they must be at least 0 and 20.")
    if halves not in ("segments", "episodes"):
        raise DataError(f"halves is {halves!r}; it must be 'segments' or 'episodes'.")
    several = np.diff(cohort.episode_offsets) > 1
    if unit not in ("person", "episode"):
        raise DataError(f"unit is {unit!r}; it must be 'person' or 'episode'.")
    if halves == "episodes" and unit == "episode":
        raise DataError("A single episode cannot be dealt to halves whole; deal segments.")
    if isinstance(fit, EffortFit) and task is not None:
        raise DataError("This fit is of effort alone; give None as the task.")
    if isinstance(fit, Fit) and task is None:
        raise DataError("This fit is of a task; give the task too.")
    if halves == "episodes" and not several.any():
        raise DataError("Nobody has several episodes, so they cannot be dealt to halves; deal segments.")
    group = None if together is None else groups_of(cohort, together)
    if unit == "episode":
        owner = cohort.episode_owner()
        group = owner if group is None else group[owner]
        cohort = cohort.by_episode()
        learn_from = None if learn_from is None else learn_from.by_episode()
        several = np.zeros(len(cohort), dtype=np.bool_)
    tasks = None if task is None else TaskSet.of(task)
    say = on_progress or (lambda doing, done, of: None)
    say("population", 0, 4)
    failures: dict[str, str] = {}
    if fit is None:
        learners = cohort if learn_from is None else learn_from
        if tasks is None:
            fit = fit_effort(learners, workers=workers)
        else:
            fit, failures = fit_learnable(tasks.tasks, learners, paper_channels(), workers=workers)
    alone = by_method(fit, "mle")

    def estimates(some: Cohort) -> Floats:
        profile = alone.profile(some, workers=workers)
        if SENSITIVITY not in profile.parameters:
            return profile.estimate
        return np.column_stack([profile.log_sensitivity, profile.estimate[:, 1:]])

    rows, notes = [], []
    if unit == "episode":
        notes.append(f"every episode has numbers of its own: {len(cohort):,} episodes stand for people")
    say("split halves", 1, 4)
    if halves == "episodes":
        ((is_odd, is_odd_segment), _), _ = deal_episodes(cohort)
        how = "split-half: odd against even episodes, whole"
    else:
        is_odd, is_odd_segment, how = deal_segments(tasks, cohort)
    parts = [
        estimates(half_of(cohort, fit.channels, steps, segments))
        for steps, segments in ((is_odd, is_odd_segment), (~is_odd, ~is_odd_segment))
    ]
    full = estimates(cohort)
    notes.append(how)
    for k, name in enumerate(fit.parameters):
        columns = (parts[0][:, k], parts[1][:, k], full[:, k])
        rows.append(_measured(name, "split-half", columns, _split_half, seed, bootstrap, group))
    say("retest", 2, 4)
    if several.any():
        chosen = cohort[np.flatnonzero(several)]
        their = None if group is None else group[several]
        first, how = deal_episodes(chosen)
        notes.append(how)
        times = [estimates(half_of(chosen, fit.channels, *part)) for part in first]
        for k, name in enumerate(fit.parameters):
            columns = (times[0][:, k], times[1][:, k], times[0][:, k])
            rows.append(_measured(name, "retest", columns, _retest, seed, bootstrap, their))
    elif unit == "person":
        notes.append("no retest: nobody has several traces")
    say("model", 3, 4)
    rows += _by_model(fit, cohort, workers, notes)
    say("model", 4, 4)
    return Reliability(
        record=Record.of(
            "reliability",
            () if tasks is None else tasks.tasks,
            seed=seed,
            settings={
                "bootstrap": bootstrap,
                "learned": hash_values(_learned_numbers(fit)),
                **({} if halves == "segments" else {"halves": halves}),
                **({} if unit == "person" else {"unit": unit}),
                **({} if together is None else {"together": together}),
            },
            cohort=cohort,
        ),
        parameters=fit.parameters,
        table=pl.DataFrame(rows, infer_schema_length=None).fill_nan(None),
        notes=(*notes, *_few(rows)),
        not_learned=failures,
    )


# ---------------------------------------------------------------------- numbers


def _measured(
    name: str,
    kind: str,
    columns: tuple[Floats, Floats, Floats],
    function: Callable[[Floats], Floats],
    seed: int,
    bootstrap: int,
    group: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """One row of the table: what people with two finite measurements give, and bootstrap intervals."""
    data = np.stack(columns)
    ranked = ~np.isnan(data[:2]).any(axis=0)
    known = np.isfinite(data).all(axis=0)
    rank_r = _rank_correlation(data[0, ranked], data[1, ranked])
    data = data[:, known]
    n = data.shape[1]
    nothing = np.full(3, np.nan)
    found, low, high = nothing, nothing, nothing
    if n >= FEWEST_PEOPLE:
        found = function(data[:, None, :])[0]
        rng = np.random.default_rng([seed, n])
        if group is not None:
            drawn = _drawn_together(data, group[known], function, rng, bootstrap)
        else:
            size = max(1, _CHUNK // n)
            drawn = np.concatenate(
                [
                    function(data[:, rng.integers(0, n, (min(size, bootstrap - first), n))])
                    for first in range(0, bootstrap, size)
                ]
            )
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        if len(drawn) > bootstrap // 2:
            low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    return _row(name, kind, n, int((~known).sum()), found, low, high, rank_r)


def _drawn_together(
    data: Floats,
    group: NDArray[np.int64],
    function: Callable[[Floats], Floats],
    rng: np.random.Generator,
    bootstrap: int,
) -> Floats:
    """What is found when groups are drawn anew whole, [B, 3]."""
    members = [np.flatnonzero(group == one) for one in np.unique(group)]
    if len({len(one) for one in members}) == 1:  # all at a time
        drawn = rng.integers(0, len(members), (bootstrap, len(members)))
        chosen = np.stack(members)[drawn].reshape(bootstrap, -1)
        size = max(1, _CHUNK // chosen.shape[1])
        return np.concatenate(
            [function(data[:, chosen[first : first + size]]) for first in range(0, bootstrap, size)]
        )
    found = []
    for _ in range(bootstrap):
        chosen = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        found.append(function(data[:, None, chosen])[0])
    return np.stack(found)


def _row(
    name: str,
    kind: str,
    n: int,
    without: int,
    found: Floats,
    low: Floats,
    high: Floats,
    rank_r: float = math.nan,
) -> dict[str, Any]:
    change = 1.96 * math.sqrt(2)
    shrunk = change * float(found[2]) * min(1.0, max(0.0, float(found[1])))
    return {
        "parameter": name,
        "kind": kind,
        "n": n,
        "without": without,
        "r": float(found[0]),
        "rank_r": rank_r,
        "reliability": float(found[1]),
        "low": float(low[1]),
        "high": float(high[1]),
        "sem": float(found[2]),
        "mdc": change * float(found[2]),
        "mdc_low": change * float(low[2]),
        "mdc_high": change * float(high[2]),
        "mdc_shrunk": shrunk if math.isfinite(found[1]) else math.nan,
    }


def _split_half(data: Floats) -> Floats:
    """r, Spearman and Brown's reliability, and the standard error of measurement, [B, 3]; data [3, B, n]."""
    r = _correlation(data[0], data[1])
    full = np.where(r > 0, 2 * r / (1 + np.abs(r)), r)
    sd = data[2].std(axis=1, ddof=1)
    return np.stack([r, full, sd * np.sqrt(1 - np.clip(full, 0, 1))], axis=1)


def _retest(data: Floats) -> Floats:
    """r, ICC(2,1) and the standard error of measurement, [B, 3], of data [3, B, n]; the third is not used."""
    both = np.stack([data[0], data[1]], axis=2)
    n = both.shape[1]
    grand = both.mean(axis=(1, 2))
    people = both.mean(axis=2) - grand[:, None]
    times = both.mean(axis=1) - grand[:, None]
    rest = both - grand[:, None, None] - people[:, :, None] - times[:, None, :]
    between = 2 * (people**2).sum(axis=1) / (n - 1)
    occasion = n * (times**2).sum(axis=1)
    error = (rest**2).sum(axis=(1, 2)) / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        icc = (between - error) / (between + error + 2 * (occasion - error) / n)
    sem = np.sqrt(error + np.maximum(0.0, (occasion - error) / n))
    return np.stack([_correlation(data[0], data[1]), icc, sem], axis=1)


def _correlation(x: Floats, y: Floats) -> Floats:
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


def _rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's correlation; infinite values take the first and last places."""
    if len(x) < FEWEST_PEOPLE:
        return math.nan
    return float(_correlation(rankdata(x)[None], rankdata(y)[None])[0])


def _learned_numbers(fit: Fit | EffortFit) -> Floats:
    """Everything a fit learned, in a row."""
    return fit.population_table()["estimate"].cast(pl.Float64).to_numpy()


def _by_model(
    fit: Fit | EffortFit, cohort: Cohort, workers: int | None, notes: list[str]
) -> list[dict[str, Any]]:
    """What empirical Bayes says of the reliability of its own estimates."""
    spreads = [learned.population.sd for learned in fit.populations.values()]
    spreads += [fit.prior.sd] if isinstance(fit, Fit) else []
    if not np.isfinite(spreads).all():
        notes.append("no reliability by the model: the fit has no prior; fit with method='eb'")
        return []
    profile = by_method(fit, "eb").profile(cohort, workers=workers)
    errors = profile.se.copy()
    if isinstance(fit, Fit):
        errors[:, 0] = profile.log_sensitivity_se
    rows = []
    nothing = np.full(3, np.nan)
    for k, name in enumerate(profile.parameters):
        seen = np.isfinite(errors[:, k]) & (profile.n[:, k] > 0)  # the rest have the prior's spread
        variance = float(np.mean(errors[seen, k] ** 2)) if seen.any() else math.nan
        rho = 1 - variance / float(profile.prior_sd[k]) ** 2
        error = math.sqrt(variance / rho) if rho > 0 else math.nan
        found = np.array([math.nan, rho, error])
        rows.append(_row(name, "model", int(seen.sum()), int((~seen).sum()), found, nothing, nothing))
    return rows


def _few(rows: list[dict[str, Any]]) -> list[str]:
    """Who could not be measured twice."""
    said = []
    for row in rows:
        if row["kind"] == "model":
            continue
        label = LABELS.get(row["parameter"], row["parameter"])
        label = "finite η" if row["parameter"] == SENSITIVITY else label
        where = "halves" if row["kind"] == "split-half" else "traces"
        if row["n"] < FEWEST_PEOPLE:
            said.append(
                f"{row['kind']}: {row['n']} people have a {label} in both {where}; "
                f"{FEWEST_PEOPLE} are needed for a correlation"
            )
        elif row["without"]:
            share = row["without"] / (row["n"] + row["without"])
            more = ", which is too many to rely on it; see the rank correlation" if share > MANY else ""
            people = "person" if row["without"] == 1 else "people"
            said.append(
                f"{row['kind']}: {row['without']:,} {people} left out for want of a {label} in one of the "
                f"{where}{more}"
            )
    return said
