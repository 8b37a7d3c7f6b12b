r"""Where the evidence for a person's profile lies: in which actions, and in which segments.

:func:`find_evidence` takes a fit and people, and gives a row per action (how unexpected it was of this
person) and a row per segment (how much more it cost than its moves explain). Rows are named by participant,
episode and step or segment, exactly as in a study's tables, so that each leads back to the words behind it.

The unexpectedness of action i of person j is (paper, section 4.3)

.. math:: U_{ji} = -\log \pi_{\hat\eta_j}(a_{ji} \mid s_{ji}),

in natural units, with the person's own estimate η̂ (the population's where there is none) and, where the fit
has one, the lapse rate mixed in as in the likelihood: π = (1 − ε) softmax(η̂ Q) + ε / \|A(s)\|. It is 0 where
nothing else was possible or thinkable.

Residuals are relative to what the population leads one to expect given the segment's n moves (paper, appendix
"Effort likelihoods"): for speech duration, the two counts, and pauses

.. math::

    \log d - [\alpha + \beta \log(1 + n)], \qquad
    \log(1 + e) - \log(1 + \hat\mu), \qquad
    \log p - [\alpha + \beta \log(1 + n)],

with log μ̂ = α + β log(1 + n). α and β are the coefficients of the fit as they stand: with random intercepts
they describe a person with θ = 0, who is the average one; in a pooled fit (the paper's) they already average
over people, and the mean of the prior of θ, which is then not 0, is not added.

These are the paper's formulas. For durations and counts they compare an observation with its *mean*. Speech
is skewed: a few long segments pull the mean up, so that a typical segment has a residual a little below 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from fidm.cohort import Cohort
from fidm.errors import DataError, count
from fidm.fit.effort_alone import EffortFit
from fidm.fit.fitted import Fit, hash_fit
from fidm.fit.profile import FEWEST_FOR_SHARES, SENSITIVITY, Profile
from fidm.model.action import TIE, effective_weight
from fidm.model.channels import Channel
from fidm.model.counts import Bernoulli
from fidm.model.effort import (
    awaits_review,
    cohort_problems,
    column_values,
    doubtful_moves,
    observed,
    refuse,
    without_longer,
)
from fidm.record import Record
from fidm.tasks.stack import Followed, TaskSet, follow
from fidm.types import Floats, Progress

CAUSES = ("waiting or no choice", "inferred", "weight 0", "no η")
"""Why an action may not be among the counted ones."""

IMPROBABLE = 0.05
"""An action less probable than this is called improbable."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Which actions and which segments a profile rests on.

    Parameters
    ----------
    actions : DataFrame [N]
        One row per step, those that do not count included: ``participant``, ``episode``, ``step`` (counted
        from 1, as in the table of steps), ``segment``, ``state`` and ``where`` (in words), ``action`` (null
        for one the task leaves out), ``is_move``, ``inferred``, ``weight``, ``counts`` (whether it enters the
        likelihood), ``n_legal``, ``best`` (the best actions), ``q_gap``, ``probability``, ``unexpectedness``
        and ``percentile`` (among the person's counted actions, if there are ten). Null where it cannot be
        said.
    segments : DataFrame [M]
        One row per segment, see :func:`fidm.evidence.evidence.find_residuals`.
    channels : tuple of str
        The effort channels.
    sensitivity : float array [P]
        Everybody's own η, by which their actions are judged; NaN where there is no estimate, and actions are
        judged by the population's.
    participants : Series [P]
        The people.
    tasks : TaskSet
        Their tasks.
    record : Record
        How it came about.
    yes_no : tuple of str
        Those of the channels that only say whether something happened, such as ``"pause_presence"``. Their
        residuals are differences of probabilities, those of the others logarithms of ratios.
    """

    actions: pl.DataFrame
    segments: pl.DataFrame
    channels: tuple[str, ...]
    sensitivity: NDArray[np.float64]
    participants: pl.Series
    tasks: TaskSet = field(repr=False)
    record: Record = field(repr=False)
    yes_no: tuple[str, ...] = ()

    @property
    def counted(self) -> pl.DataFrame:
        """The actions that enter the likelihood and whose unexpectedness is known."""
        return self.actions.filter(pl.col("counts") & pl.col("unexpectedness").is_not_null())

    @property
    def people(self) -> pl.DataFrame:
        """One row per person: η, counted actions, their mean and total unexpectedness, improbable ones."""
        found = self.counted.group_by("participant").agg(
            n_actions=pl.len().cast(pl.Int64),
            mean_unexpectedness=pl.col("unexpectedness").mean(),
            total_unexpectedness=(pl.col("unexpectedness") * pl.col("weight")).sum(),
            n_improbable=(pl.col("probability") < IMPROBABLE).sum().cast(pl.Int64),
        )
        everybody = pl.DataFrame(
            {"participant": self.participants, SENSITIVITY: pl.Series(self.sensitivity, nan_to_null=True)}
        )
        joined = everybody.join(found, on="participant", how="left", maintain_order="left")
        return joined.with_columns(pl.col("n_actions", "n_improbable").fill_null(0))

    def not_counted(self, *, participant: str | None = None) -> dict[str, int]:
        """Return how many actions are not among the counted ones, by the cause.

        An action with several causes is counted under the first: ``waiting or no choice`` (the task leaves
        the action or the state out), ``inferred``, ``weight 0``, ``no η`` (of the person).

        Parameters
        ----------
        participant : str, optional
            Whose.
        """
        table = self.actions if participant is None else self._own(self.actions, participant)
        left = table.filter(~pl.col("counts") | pl.col("unexpectedness").is_null())
        waits = pl.col("q_gap").is_null()
        inferred = pl.col("inferred") if self.record.settings["inferred"] == 0 else pl.lit(value=False)
        cause = (
            pl.when(waits).then(pl.lit(CAUSES[0]))
            .when(inferred).then(pl.lit(CAUSES[1]))
            .when(pl.col("weight") == 0).then(pl.lit(CAUSES[2]))
            .otherwise(pl.lit(CAUSES[3]))
        )  # fmt: skip
        found = left.select(cause=cause)["cause"].to_list()
        return {name: found.count(name) for name in CAUSES}

    def most_unexpected(self, n: int = 10, *, participant: str | None = None) -> pl.DataFrame:
        """Return the most unexpected counted actions, of everybody or of one person.

        Parameters
        ----------
        n : int
            How many.
        participant : str, optional
            Whose.
        """
        table = self.counted if participant is None else self._own(self.counted, participant)
        return table.sort("unexpectedness", descending=True, maintain_order=True).head(n)

    def most_astray(self) -> str | None:
        """Return whose action was the most unexpected of all; None where nothing can be said of anybody."""
        top = self.most_unexpected(1)
        return str(top["participant"][0]) if top.height else None

    def heaviest(self, channel: str, n: int = 10, *, participant: str | None = None) -> pl.DataFrame:
        """Return the segments that cost the most beyond what their moves explain.

        Parameters
        ----------
        channel : str
            In which effort channel, such as ``"duration"``.
        n : int
            How many.
        participant : str, optional
            Whose.
        """
        if channel not in self.channels:
            known = ", ".join(self.channels) or "none, as there are no observations of effort"
            raise DataError(f"There is no effort channel {channel!r}. There is: {known}.")
        table = self.segments if participant is None else self._own(self.segments, participant)
        name = f"{channel}_residual"
        return table.drop_nulls(name).sort(name, descending=True, maintain_order=True).head(n)

    def summary(self) -> pl.DataFrame:
        """Return how unexpectedness and the residuals of each channel are spread over rows."""
        known = {"unexpectedness": self.counted["unexpectedness"]}
        known |= {channel: self.segments[f"{channel}_residual"] for channel in self.channels}
        return pl.DataFrame([_spread(name, values) for name, values in known.items()])

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The tables that are small enough for CSV files: the spread, the people, the top hundred."""
        return {"summary": self.summary(), "people": self.people, "top": self.most_unexpected(100)}

    def to_dict(self) -> dict[str, Any]:
        """Return the main numbers as plain values."""
        counted = self.counted
        return {
            "n_participants": len(self.participants),
            "n_steps": self.actions.height,
            "n_counted": counted.height,
            "n_not_counted": self.not_counted(),
            "n_segments": self.segments.height,
            "share_improbable": (counted["probability"] < IMPROBABLE).mean(),
            "improbable_below": IMPROBABLE,
            "summary": self.summary(),
            "most_unexpected": self.most_unexpected(10),
        }

    def _own(self, table: pl.DataFrame, participant: str) -> pl.DataFrame:
        if self.participants.index_of(str(participant)) is None:
            raise DataError(
                f"There is no participant {participant!r} among the {len(self.participants)} people."
            )
        return table.filter(pl.col("participant") == str(participant))

    def sentences(self) -> tuple[str, ...]:
        """Return what was found, in a few sentences."""
        counted, effort = self.counted, ", ".join(name.replace("_", " ") for name in self.channels)
        said = [
            f"Evidence about {count(len(self.participants), 'participant')}: "
            f"{count(self.actions.height, 'action')}, {counted.height:,} of them counted, and "
            f"{count(self.segments.height, 'segment')}."
        ]
        if counted.height:
            share = (counted["probability"] < IMPROBABLE).sum() / counted.height
            said.append(f"{share:.1%} of the counted actions had a probability below {IMPROBABLE:.0%}.")
        said.append(f"Effort: {effort}." if effort else "No segment has an observation of effort.")
        return tuple(said)

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def find_evidence(
    fit: Fit,
    cohort: Cohort,
    *,
    profile: Profile | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> Evidence:
    """Find the actions and the segments that make each person's profile what it is.

    Parameters
    ----------
    fit : Fit
        What people share.
    cohort : Cohort
        The people.
    profile : Profile, optional
        Their estimates, if they are known already; made by the fit otherwise.
    workers : int, optional
        Threads; by default one per processor. Changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.evidence.evidence import find_evidence
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 20, seed=1)
    >>> evidence = find_evidence(fidm.Model(task).fit(cohort), cohort)
    >>> bool((evidence.counted["unexpectedness"] >= 0).all())
    True
    """
    say = on_progress or (lambda doing, done, of: None)
    if profile is None:
        profile = fit.profile(cohort, workers=workers, on_progress=on_progress)
    elif not profile.participants.equals(cohort.ids) or profile.parameters != fit.parameters:
        raise DataError(
            "The profile is not of these people in this order, or has other parameters than the fit. "
            "Make it with fit.profile(cohort)."
        )
    say("actions", 0, 2)
    followed = follow(fit.tasks, cohort)
    refuse(cohort_problems(fit.tasks, fit.channels, cohort, followed))
    eta = profile.action_sensitivity
    expected = np.exp(fit.prior_means(cohort)[:, 0])
    found = find_surprisal(fit, cohort, followed, np.where(np.isnan(eta), expected, eta))
    actions = _actions(fit, cohort, followed, found)
    say("segments", 1, 2)
    segments = find_residuals(fit, cohort, profile)
    seen = tuple(name for name in fit.parameters[1:] if segments[f"{name}_residual"].count())
    say("segments", 2, 2)
    settings = {
        "method": fit.method,
        "population": fit.population,
        "lapse": fit.lapse,
        "inferred": fit.inferred,
        "n_learned": fit.n_learned,
        "fit_sha256": hash_fit(fit),
    }
    return Evidence(
        actions=actions,
        segments=segments,
        channels=seen,
        sensitivity=eta,
        participants=cohort.ids,
        tasks=fit.tasks,
        record=Record.of("evidence", fit.tasks.tasks, settings=settings, cohort=cohort),
        yes_no=tuple(one.name for one in fit.channels if isinstance(one, Bernoulli) and one.name in seen),
    )


def _actions(fit: Fit, cohort: Cohort, followed: Followed, found: Surprisal) -> pl.DataFrame:
    tasks = fit.tasks
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    has_pair = followed.pair >= 0
    pair = np.where(has_pair, followed.pair, 0)
    is_move = np.concatenate([task.is_move for task in tasks.tasks])
    inferred = np.zeros(cohort.n_steps, dtype=np.bool_) if cohort.inferred is None else cohort.inferred
    table = pl.DataFrame(
        {
            **step_keys(cohort, of_step),
            "segment": _segments(cohort, of_step),
            "state": cohort.state,
            "where": _where(tasks, followed),
            "action": _named(*_pair_names(tasks), np.where(has_pair, pair, -1)),
            "is_move": has_pair & is_move[pair],
            "inferred": inferred,
            "weight": found.weight,
            "counts": found.counts,
            "n_legal": found.n_legal,
            "best": _best(fit, followed, found),
            "q_gap": pl.Series(found.q_gap, nan_to_null=True),
            "probability": pl.Series(np.exp(-found.unexpectedness), nan_to_null=True),
            "unexpectedness": pl.Series(found.unexpectedness, nan_to_null=True),
        }
    )
    known = pl.when(pl.col("counts")).then(pl.col("unexpectedness"))
    n = known.count().over("participant")
    place = 100 * (known.rank("average").over("participant") - 0.5) / n
    return table.with_columns(percentile=pl.when(n >= FEWEST_FOR_SHARES).then(place))


def step_keys(cohort: Cohort, of_step: NDArray[np.int64]) -> dict[str, Any]:
    """Return the columns that name a step, given the episode of each."""
    return {
        "participant": cohort.ids.gather(cohort.episode_owner()[of_step]),
        "episode": cohort.episodes["episode"].gather(of_step),
        "step": cohort.step_numbers(),
    }


def _segments(cohort: Cohort, of_step: NDArray[np.int64]) -> pl.Series:
    """The name of each step's segment, null where it belongs to none."""
    if cohort.segment is None:
        return pl.Series([None] * cohort.n_steps, dtype=pl.String)
    row = np.where(cohort.segment < 0, -1, cohort.segment + cohort.segment_offsets[of_step])
    return cohort.segments["segment"].cast(pl.String).gather(_or_null(row))


def _or_null(rows: NDArray[Any]) -> pl.Series:
    series = pl.Series(rows.astype(np.int64))
    return series.set(series < 0, None)


def _named(names: list[str], code: NDArray[Any], rows: NDArray[Any]) -> pl.Series:
    """The name of each row's entry; ``code`` says which name an entry has, and a row of -1 has none."""
    kinds = pl.Series(names, dtype=pl.Enum(names))
    codes = np.full(len(rows), -1, dtype=np.int64)
    codes[rows >= 0] = code[rows[rows >= 0]]
    return kinds.gather(_or_null(codes)) if names else pl.Series([None] * len(rows), dtype=pl.String)


def _pair_names(tasks: TaskSet) -> tuple[list[str], NDArray[Any]]:
    """The names of all actions, and which of them each stacked pair has."""
    names = list(dict.fromkeys(name for task in tasks.tasks for name in task.actions))
    if len(tasks.tasks) == 1 and len(names) == tasks.tasks[0].n_actions:
        return names, tasks.tasks[0].action  # an action's number is its name's
    place = {name: i for i, name in enumerate(names)}
    codes = [np.array([place[name] for name in task.actions])[task.action] for task in tasks.tasks]
    return names, np.concatenate(codes)


def _where(tasks: TaskSet, followed: Followed) -> pl.Series:
    """The state of each step in words; only states somebody was in are described."""
    rows, inverse = np.unique(followed.row, return_inverse=True)
    said = []
    for row in rows.tolist():
        t = int(np.searchsorted(tasks.state_base, row, side="right")) - 1
        said.append(tasks.tasks[t].describe(row - int(tasks.state_base[t])) if row >= 0 else "")
    names = list(dict.fromkeys(said))
    place = {name: i for i, name in enumerate(names)}
    code = np.array([place[name] for name in said], dtype=np.int64)
    return _named(names, code, inverse)


def _best(fit: Fit, followed: Followed, found: Surprisal) -> pl.Series:
    """The best actions of each step's state, those that are equally good side by side."""
    tasks = fit.tasks
    rows, inverse = np.unique(followed.row, return_inverse=True)
    names, code = _pair_names(tasks)
    known = np.flatnonzero((rows >= 0) & (np.diff(tasks.offsets)[np.maximum(rows, 0)] > 0))
    label = [""] * len(rows)
    for i in known.tolist():  # a state each, not a step
        first, last = int(tasks.offsets[rows[i]]), int(tasks.offsets[rows[i] + 1])
        q = fit.q[first:last]
        label[i] = " / ".join(names[k] for k in code[first:last][q > q.max() - TIE])
    kinds = list(dict.fromkeys(label))
    place = {name: i for i, name in enumerate(kinds)}
    which = np.array([place[name] for name in label], dtype=np.int64)
    return _named(kinds, which, np.where(np.isnan(found.q_gap), -1, inverse))


def _spread(name: str, values: pl.Series) -> dict[str, Any]:
    known = values.drop_nulls()
    if not len(known):
        return {"quantity": name, "n": 0} | dict.fromkeys(("mean", "sd", "p10", "median", "p90"))
    p10, middle, p90 = (known.quantile(share, "linear") for share in (0.1, 0.5, 0.9))
    return {
        "quantity": name, "n": len(known), "mean": known.mean(), "sd": known.std(), "p10": p10,
        "median": middle, "p90": p90,
    }  # fmt: skip


IN_DOUBT = "moves_in_doubt"
"""The column that says whether over half of a segment's moves were filled in or await review."""

PARTS = ("observed", "expected", "residual", "own_residual", "own_z")
"""What is known of a segment in each channel."""


def find_residuals(fit: EffortFit, cohort: Cohort, profile: Profile) -> pl.DataFrame:
    """Return one row per segment and, per channel, five columns; null where nothing was observed.

    ``moves_in_doubt`` says whether over half of the segment's moves, which everything is relative to, were
    filled in by a planner or await review. The columns of a channel:

    - ``duration_observed``: the observation, as it stands in the segments;
    - ``duration_expected``: what the residual is relative to, given the moves: the mean in the population; of
      a log-normal channel (pauses) exp(ξ), the typical value, since its residual is that of the logarithm.
      An observation below it never has a residual above 0;
    - ``duration_residual``: the residual above, the paper's. As speech is skewed, that of a typical segment
      lies below 0 where it is relative to a mean;
    - ``duration_own_residual``: the same relative to what the person's own θ̂ leads one to expect, or the
      mean of the population where the person has no estimate;
    - ``duration_own_z``: how many standard deviations the observation lies above that (Pearson's residual).

    Parameters
    ----------
    fit : EffortFit
        What people share.
    cohort : Cohort
        The people.
    profile : Profile
        Their estimates.
    """
    of_segment = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.segment_offsets))
    owner = cohort.episode_owner()[of_segment]
    columns: dict[str, pl.Series] = {
        "participant": cohort.ids.gather(owner),
        "episode": cohort.episodes["episode"].gather(of_segment),
        "segment": cohort.segments["segment"].cast(pl.String),
    }
    if "n_moves" in cohort.segments.columns:
        columns["n_moves"] = cohort.segments["n_moves"]
        moves = column_values(cohort.segments, "n_moves")
        columns[IN_DOUBT] = pl.Series(awaits_review(cohort) | (2 * doubtful_moves(cohort) > moves))
    effort = observed(fit.channels, cohort, fit.levels, required=False)
    effort, _ = without_longer(fit.channels, effort, cohort, fit.longest)
    means = fit.prior_means(cohort)[:, len(fit.parameters) - len(fit.channels) :]
    for channel, seen, mean in zip(fit.channels, effort, means.T, strict=True):
        shared = fit.populations[channel.name].population
        theta = np.where(np.isnan(profile[channel.name]), mean, profile[channel.name])[owner[seen.row]]
        base = seen.predictor(shared.coefficients)
        parts = (
            channel.record(seen.y),
            channel.typical(base, shared.shape),
            channel.residual(seen.y, base),
            channel.residual(seen.y, base + theta),
            _pearson(channel, seen.y, base + theta, shared.shape),
        )
        for name, values in zip(PARTS, parts, strict=True):
            spread = np.full(cohort.n_segments, np.nan)
            spread[seen.row] = values
            columns[f"{channel.name}_{name}"] = pl.Series(spread, nan_to_null=True)
    return pl.DataFrame(columns)


def _pearson(channel: Channel, y: Floats, xi: Floats, shape: float) -> Floats:
    """The score over the root of the information, which is (y − mean)/sd for the channels of the paper.

    Where ξ is infinite there is no spread, and it is 0.
    """
    finite = np.isfinite(xi)
    at = np.where(finite, xi, 0.0)
    slope, _ = channel.slopes(y, at, shape)
    information = channel.information(at, shape)
    return np.where(finite, slope / np.sqrt(information), np.where(np.isnan(xi), np.nan, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Surprisal:
    """What the fitted policy says of every step."""

    # [N]: −log π of the action taken; NaN where it cannot be said. Infinite where a person whose η has no
    # finite maximum is credited with an action that is not a best one (such a step does not count).
    unexpectedness: Floats
    q_gap: Floats  # [N]: how much less the action is worth than the best one; NaN where it cannot be said
    n_legal: NDArray[np.int32]  # [N]: how many actions were legal
    weight: Floats  # [N]: how much the step counts in the likelihood
    counts: NDArray[np.bool_]  # [N]: whether it counts at all


def find_surprisal(fit: Fit, cohort: Cohort, followed: Followed, eta: Floats) -> Surprisal:
    """Return how unexpected each step is, given everybody's η.

    Steps the likelihood leaves out because of their weight, such as inferred ones, have an unexpectedness all
    the same, but do not count; steps in states that are not counted have none. ``eta`` [P] is NaN where
    unknown, infinite where there is no finite maximum.
    """
    n, tasks = cohort.n_steps, fit.tasks
    found, gap = np.full(n, np.nan), np.full(n, np.nan)
    _surprisal(
        cohort.step_offsets[cohort.episode_offsets],
        followed.row,
        followed.pair,
        tasks.counted,
        tasks.offsets,
        fit.q,
        np.asarray(eta, dtype=np.float64),
        fit.lapse,
        TIE,
        found,
        gap,
    )
    weight = effective_weight(cohort, fit.inferred)
    weight = weight if len(weight) else np.ones(n)
    sizes = np.diff(tasks.offsets).astype(np.int32)
    known = followed.row >= 0
    row = np.where(known, followed.row, 0)
    counts = (followed.pair >= 0) & known & tasks.counted[row] & (weight > 0)
    return Surprisal(found, gap, np.where(known, sizes[row], 0).astype(np.int32), weight, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _surprisal(  # type: ignore[no-untyped-def]
    person_steps, row, pair, counted, offsets, q, etas, lapse, tie, found, gap
):
    for j in range(len(person_steps) - 1):
        eta = etas[j]
        for i in range(person_steps[j], person_steps[j + 1]):
            if pair[i] < 0 or not counted[row[i]]:
                continue
            first = offsets[row[i]]
            last = offsets[row[i] + 1]
            top = q[first]
            bottom = q[first]
            for k in range(first + 1, last):
                top = max(top, q[k])
                bottom = min(bottom, q[k])
            own = q[pair[i]] - top
            gap[i] = -own
            n = last - first
            if top - bottom < tie:  # nothing to choose between, whatever η is
                found[i] = np.log(n)
                continue
            if np.isnan(eta):
                continue
            if np.isinf(eta):
                ties = 0
                for k in range(first, last):
                    if top - q[k] < tie:
                        ties += 1
                p = 1.0 / ties if -own < tie else 0.0
                found[i] = max(0.0, -np.log((1.0 - lapse) * p + lapse / n))
                continue
            total = 0.0
            for k in range(first, last):
                d = q[k] - top
                total += 1.0 if d == 0.0 else np.exp(eta * d)
            if lapse == 0.0:
                found[i] = np.log(total) - eta * own
            else:
                found[i] = max(0.0, -np.log((1.0 - lapse) * np.exp(eta * own) / total + lapse / n))
