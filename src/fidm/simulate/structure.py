"""New data on an old structure: the same people, tasks, lengths and segments, but other choices and effort.

Experiments that need a known truth keep what a study gives (who did which task, how many actions, how many
moves each segment holds) and draw the rest anew from the model. Every person has a random stream of their
own, made from the seed and the person's row, so the result does not depend on how the work is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from fidm.cohort import UNKNOWN_STATE, Cohort, no_problems, offsets_of
from fidm.errors import DataError, FidmError, TaskError, listed
from fidm.fit.draws import Noise
from fidm.fit.fitted import Fit
from fidm.fit.population import Learned
from fidm.model.action import effective_weight
from fidm.model.amounts import Gamma, LogNormal
from fidm.model.channels import LOG_MOVES, Channel
from fidm.model.counts import Bernoulli, NegativeBinomial, ZeroInflatedNegativeBinomial
from fidm.model.effort import (
    Levels,
    column_values,
    design_matrix,
    paper_channels,
    segment_owner_offsets,
    text_levels,
)
from fidm.simulate.cohort import (
    People,
    SoftmaxWalker,
    Truth,
    WideTruth,
    choose,
    simulate_cohort,
    truth_of,
)
from fidm.tasks.beliefs import own_values
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet, follow
from fidm.types import Floats, Values

Seed = int | Sequence[int]
"""One whole number, or several: the seed of an experiment and the number of a repetition."""

ACTIONS, MOVES_PER_SEGMENT = 60, 3.7
"""Simulated people take about 60 actions, described in 16 to 17 segments; the paper reports neither."""

PRESENCE = "pause_presence"
"""The channel that says whether there was a pause at all."""

MOST_FRUITLESS = 1_000
"""A walk in which nothing counts is tried again so many times."""

# What a stream is for, so that no two draws are the same.
_WALK, _CHOICE, _EFFORT, _MISSING, _LAPSE = range(5)


def people_like(
    task: TaskModel | Iterable[TaskModel],
    n: int = 400,
    *,
    seed: int,
    people: People | None = None,
    actions: int = ACTIONS,
) -> Cohort:
    """Let simulated people stand in for the paper's: about 60 actions, 17 segments on the grocery task.

    Parameters
    ----------
    task, n, seed, people
        As in :func:`fidm.simulate_cohort`.
    actions : int
        An episode is broken off after so many actions.
    """
    return simulate_cohort(
        task, n, seed=seed, people=people, max_steps=actions, moves_per_segment=MOVES_PER_SEGMENT
    )


def counted_steps(tasks: TaskSet, cohort: Cohort) -> NDArray[np.bool_]:
    """Return which steps enter the action likelihood, [N]; inferred ones do not."""
    followed = follow(tasks, cohort)
    counts = (followed.fault == 0) & (followed.pair >= 0)
    counts[counts] = tasks.counted[followed.row[counts]]
    weight = effective_weight(cohort, 0.0)
    return np.asarray(counts & (weight > 0)) if len(weight) else counts


def redraw_walks(
    tasks: TaskSet, cohort: Cohort, etas: ArrayLike, *, seed: Seed, values: Sequence[Values] | None = None
) -> Cohort:
    """Let everybody walk again, as long as before, choosing with a sensitivity we know.

    Every episode begins in its first recorded state, on its task, and has as many counted actions as the
    person's had. A walk that ends before goes on as another episode from the same first state; the last is
    cut. Segments stay where they are; which steps they belong to is no longer known.

    Parameters
    ----------
    tasks : TaskSet
        The tasks the episodes name.
    cohort : Cohort
        Whose structure to use.
    etas : float array [P]
        Everybody's η.
    seed : int or several
        The same seed gives the same walks.
    values : sequence of Values, optional
        The tasks' values, where they are solved already.

    Returns
    -------
    Cohort
        With ``true_action_sensitivity`` in the participants table.
    """
    eta = _per_person(etas, cohort, "etas")
    solved = own_values(tasks, values)
    paths = [SoftmaxWalker.of(model, one) for model, one in zip(tasks.tasks, solved, strict=True)]
    task = tasks.task_of(cohort)
    needed = np.diff(np.append(0, np.cumsum(counted_steps(tasks, cohort)))[cohort.step_offsets])
    states: list[NDArray[np.int32]] = []
    actions: list[NDArray[np.int32]] = []
    parent: list[int] = []
    for j in range(len(cohort)):
        rng = _stream(seed, j, _WALK)
        for e in range(int(cohort.episode_offsets[j]), int(cohort.episode_offsets[j + 1])):
            at = int(cohort.step_offsets[e])
            first = int(cohort.state[at]) if at < cohort.step_offsets[e + 1] else UNKNOWN_STATE
            for walked, acted in _again(paths[int(task[e])], first, float(eta[j]), int(needed[e]), rng):
                states.append(walked)
                actions.append(acted)
                parent.append(e)
    owner = np.array(parent, dtype=np.int64)
    is_first = np.append(True, np.diff(owner) > 0)[: len(owner)]
    sizes = np.where(is_first, np.diff(cohort.segment_offsets)[owner], 0)
    per_person = np.bincount(cohort.episode_owner()[owner], minlength=len(cohort))
    return Cohort(
        participants=cohort.participants.with_columns(true_action_sensitivity=pl.Series(eta)),
        episodes=_episodes(cohort, owner, per_person),
        episode_offsets=offsets_of(per_person),
        step_offsets=offsets_of([len(part) for part in actions]),
        state=_joined([part[:-1] for part in states]),
        action=_joined(actions),
        end_state=_joined([part[-1:] for part in states]),
        segments=cohort.segments,
        segment_offsets=offsets_of(sizes),
    )


def redraw_choices(
    tasks: TaskSet,
    cohort: Cohort,
    etas: ArrayLike,
    *,
    seed: Seed,
    values: Sequence[Values] | None = None,
) -> Cohort:
    """Let everybody choose again in the very situations they were in, with a sensitivity we know.

    Every counted state a person was in is kept, and an action is drawn there. Such actions form no path, so
    each is an episode of its own whose end nobody recorded. Steps that do not count are dropped, and a
    person's segments all belong to their first episode.

    Parameters
    ----------
    tasks, cohort, etas, seed, values
        As in :func:`redraw_walks`.
    """
    q = tasks.values(own_values(tasks, values))
    return _chosen_again(tasks, q, cohort, _per_person(etas, cohort, "etas"), seed)


def _chosen_again(
    tasks: TaskSet, q: Floats, cohort: Cohort, eta: Floats, seed: Seed, lapse: float = 0.0
) -> Cohort:
    """As :func:`redraw_choices`, given the value of every pair; a share of the choices may be at random."""
    kept = np.flatnonzero(counted_steps(tasks, cohort))
    episode = np.searchsorted(cohort.step_offsets, kept, side="right") - 1
    person = cohort.episode_owner()[episode]
    row = follow(tasks, cohort).row[kept]
    each = np.bincount(person, minlength=len(cohort))
    draws = [_stream(seed, j, _CHOICE).random(int(n)) for j, n in enumerate(each)]
    own = eta[person]
    if lapse:
        lapses = [_stream(seed, j, _LAPSE).random(int(n)) < lapse for j, n in enumerate(each)]
        own = np.where(np.concatenate([np.zeros(0, np.bool_), *lapses]), 0.0, own)
    pair = choose(tasks.offsets, q, row, own, np.concatenate([np.zeros(0), *draws]))
    # People without a counted step keep one empty episode, which holds their segments.
    has_episode = np.diff(cohort.episode_offsets) > 0
    empty = np.flatnonzero((each == 0) & has_episode)
    order = np.argsort(np.append(person, empty), kind="stable")
    source = np.append(episode, cohort.episode_offsets[empty])[order]
    steps = np.append(np.ones(len(kept), np.int64), np.zeros(len(empty), np.int64))[order]
    per_person = np.where(each == 0, has_episode, each).astype(np.int64)
    starts = offsets_of(per_person)
    sizes = np.zeros(len(source), dtype=np.int64)
    sizes[starts[:-1][per_person > 0]] = np.diff(segment_owner_offsets(cohort))[per_person > 0]
    return Cohort(
        participants=cohort.participants.with_columns(true_action_sensitivity=pl.Series(eta)),
        episodes=_episodes(cohort, source, per_person),
        episode_offsets=starts,
        step_offsets=offsets_of(steps),
        state=cohort.state[kept],
        action=tasks.action[pair],
        end_state=np.full(len(source), UNKNOWN_STATE, dtype=np.int32),
        segments=_numbered_segments(cohort),
        segment_offsets=offsets_of(sizes),
    )


def redraw_effort(
    cohort: Cohort,
    channels: Sequence[Channel],
    truth: Mapping[str, Truth],
    theta: ArrayLike,
    *,
    seed: Seed,
    missing: float = 0.0,
    noise: float = 1.0,
    levels: Levels | None = None,
) -> Cohort:
    """Draw every segment's effort anew, given its moves and what we say each person needs for them.

    Where a segment of the cohort lacks an observation, none is drawn. If ``truth`` has ``pause_presence`` and
    the channels do not, whether there is a pause follows its intercept and slope, the same for everybody.

    Parameters
    ----------
    cohort : Cohort
        Whose segments to use; their ``n_moves`` stay.
    channels : sequence of Channel [C]
        What to draw, given what each is conditioned on.
    truth : mapping of channel names to Truth
        The population values.
    theta : float array [P, C]
        Everybody's own offset in every channel.
    seed : int or several
        The same seed gives the same effort; ``missing`` removes some of it and changes no other number.
    missing : float
        The share of observations that are removed, each with the same chance.
    noise : float
        How many times as noisy observations are (see :func:`noisier`).
    levels : mapping, optional
        The levels of text columns, in the order of ``WideTruth.slopes``; by default those of the cohort.

    Returns
    -------
    Cohort
        With ``true_duration`` and so on in the participants table.
    """
    own = np.asarray(theta, dtype=np.float64)
    if own.shape != (len(cohort), len(channels)) or not np.isfinite(own).all():
        raise DataError(
            f"theta has the shape {own.shape}; {(len(cohort), len(channels))} finite numbers are needed."
        )
    if not 0 <= missing < 1 or not noise > 0:
        raise DataError(
            f"missing is {missing} and noise {noise}; give a share below 1 and a positive factor."
        )
    drawn = [*channels]
    if PRESENCE in truth and PRESENCE not in {channel.name for channel in channels}:
        wanted = {channel.column for channel in channels}
        drawn += [c for c in paper_channels() if c.name == PRESENCE and c.column in wanted]
    for channel in drawn:
        if channel.name not in truth:
            raise DataError(f"truth says nothing of the channel {channel.name!r}.")
    known = text_levels(drawn, cohort) if levels is None else levels
    predicted = [_predicted(channel, truth[channel.name], cohort.segments, known) for channel in drawn]
    columns = {channel.column: np.full(cohort.n_segments, np.nan) for channel in drawn}
    seen = {name: ~np.isnan(column_values(cohort.segments, name)) for name in columns}
    for channel, expected in zip(drawn, predicted, strict=True):
        seen[channel.column] &= ~np.isnan(expected)
    offsets = segment_owner_offsets(cohort)
    for j in range(len(cohort)):
        rows = slice(int(offsets[j]), int(offsets[j + 1]))
        rng, lost = _stream(seed, j, _EFFORT), _stream(seed, j, _MISSING)
        found: dict[str, Floats] = {}
        for k, channel in enumerate(drawn):
            shared, xi = truth[channel.name], predicted[k][rows]
            xi = np.where(np.isnan(xi), shared.intercept, xi)  # drawn all the same, and not kept
            xi = xi + (own[j, k] if k < len(channels) else 0.0)
            shape = noisier(channel, shared.shape, noise)
            values = channel.record(channel.sample(xi, shape, rng))
            found[channel.column] = values * found.get(channel.column, 1.0)
        for name, values in found.items():
            stays = seen[name][rows] & (lost.random(len(values)) >= missing)
            columns[name][rows] = np.where(stays, values, np.nan)
    table = cohort.segments.with_columns(
        _column(name, values, is_count=_are_counts(name, drawn)) for name, values in columns.items()
    )
    people = {f"true_{channel.name}": own[:, k] for k, channel in enumerate(channels)}
    return replace(
        cohort,
        participants=cohort.participants.with_columns(**{name: pl.Series(v) for name, v in people.items()}),
        segments=table,
        problems=no_problems(),
    )


def replicate(fit: Fit, cohort: Cohort, n: int = 100, *, seed: int) -> Iterator[Cohort]:
    """Yield data that people like these could as well have given, one cohort per posterior draw.

    Whatever is computed of the study can be computed of each replicate: where the study's own number lies
    far outside, the model misses something (a posterior predictive check). In every replicate everybody has
    one draw of their parameters, under one plausible population. They choose again in the very situations
    they were in (see :func:`redraw_choices`), and every segment's effort is drawn anew given its moves.

    Parameters
    ----------
    fit : Fit
        What people share, by ``method="eb"``.
    cohort : Cohort
        The people.
    n : int
        How many replicates. They are made one at a time and take no room together; the draws behind them take
        8 n bytes per person and parameter.
    seed : int
        The same seed and n give the same replicates.

    Examples
    --------
    >>> import fidm
    >>> from fidm.study import replicate
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 20, seed=1)
    >>> fit = fidm.Model(task).fit(cohort)
    >>> means = [other.segments["duration_s"].mean() for other in replicate(fit, cohort, 20, seed=1)]
    >>> min(means) < cohort.segments["duration_s"].mean() < max(means)
    True
    """
    values = fit.draws(cohort, n, seed=seed).values
    lost = undrawable(fit.channels, learned_truth(fit))
    if lost or not np.isfinite(fit.prior.sd):
        why = " ".join(f"{name}: {one}" for name, one in lost.items()) or "it has no prior of η."
        raise DataError(f"Nothing can be drawn anew from this fit. {why}")
    values = np.where(np.isnan(values), fit.prior_means(cohort)[:, :, None], values)
    noise = Noise.of([], len(fit.parameters), n, seed)
    priors = list(fit.prior.rates(fit.lapse))
    weight, rates = (np.concatenate([getattr(one, name) for one in priors]) for name in ("weight", "lapse"))
    lapse = rates[noise.shared("log_action_sensitivity", weight)]
    truths = [_truths(fit.populations[channel.name], noise, channel) for channel in fit.channels]
    for d in range(n):
        eta = np.exp(values[:, 0, d])
        chosen = _chosen_again(fit.tasks, fit.q, cohort, eta, (seed, d), float(lapse[d]))
        truth = {channel.name: own[d] for channel, own in zip(fit.channels, truths, strict=True)}
        known = fit.channels, truth, values[:, 1:, d]
        yield redraw_effort(chosen, *known, seed=(seed, d), levels=fit.levels) if truth else chosen


def _truths(learned: Learned, noise: Noise, channel: Channel) -> list[Truth]:
    """The population of a channel behind every draw."""
    others, shared = learned.plausible, learned.population
    populations = [shared] if others is None else others.populations(shared.carried)
    under = noise.shared(channel.name, np.ones(1) if others is None else others.weight)
    known = [truth_of(channel, one.coefficients, float(one.shape)) for one in populations]
    return [known[r] for r in under]


def noisier(channel: Channel, shape: float, factor: float) -> float:
    """Return the shape of a channel that is ``factor`` times as noisy.

    Gamma and negative binomial: κ / factor, so that the variance (of the part beyond counting) is multiplied.
    Log-normal: the variance of log y is multiplied. Channels without a shape stay as they are.
    """
    if isinstance(channel, Gamma | NegativeBinomial | ZeroInflatedNegativeBinomial):
        return shape / factor
    return shape * float(np.sqrt(factor)) if isinstance(channel, LogNormal) else shape


def undrawable(channels: Sequence[Channel], truth: Mapping[str, Truth]) -> dict[str, str]:
    """Return which channels cannot be drawn anew beside each other, and why."""
    failures: dict[str, str] = {}
    taken: dict[str, str] = {}  # which channel draws the amounts of each column
    columns = {channel.column for channel in channels}
    for channel in channels:
        others = [column for column in channel.design if column in columns]
        if others:
            failures[channel.name] = f"it is conditioned on {listed(others)}, drawn anew at the same time."
        elif not _has_sampler(channel, truth[channel.name]):
            failures[channel.name] = f"its kind, {channel.kind}, cannot be simulated: it has no sample()."
        elif channel.kind != Bernoulli.kind and channel.column in taken:
            one = taken[channel.column]
            failures[channel.name] = f"{one} is drawn in the same column; two amounts cannot share one."
        elif channel.kind != Bernoulli.kind:
            taken[channel.column] = channel.name
    return failures


def learned_truth(fit: Fit) -> dict[str, Truth]:
    """Return the population values of a fit's channels as those to draw effort from, by channel."""
    found = {}
    for channel in fit.channels:
        shared = fit.populations[channel.name].population
        found[channel.name] = truth_of(channel, shared.coefficients, float(shared.shape))
    return found


# ---------------------------------------------------------------------- inside


def _has_sampler(channel: Channel, truth: Truth) -> bool:
    """Whether a channel draws observations; a class of one's own may not."""
    try:
        channel.record(
            channel.sample(np.full(2, truth.intercept), truth.shape, np.random.default_rng(_EFFORT))
        )
    except (NotImplementedError, FidmError):
        return False
    return True


def _predicted(channel: Channel, truth: Truth, segments: pl.DataFrame, levels: Levels) -> Floats:
    """The predictor of every segment without a person's own offset, [M]; NaN where it is not known."""
    if channel.design == (LOG_MOVES,) and LOG_MOVES not in segments.columns:
        return np.asarray(truth.intercept + truth.slope * np.log1p(column_values(segments, "n_moves")))
    x = design_matrix(channel, segments, levels)
    slopes = truth.slopes if isinstance(truth, WideTruth) else (truth.slope,)
    if len(slopes) != len(x) - 1:
        raise DataError(
            f"truth has {len(slopes)} slopes of {channel.name}, whose design has {len(x) - 1} columns."
        )
    found = np.full(segments.height, truth.intercept)
    for slope, column in zip(slopes, x[1:], strict=True):
        found = found + slope * column
    return found


def _are_counts(column: str, channels: Sequence[Channel]) -> bool:
    """Whether what is drawn into a column are whole numbers."""
    return column.startswith("n_") and all(one.discrete for one in channels if one.column == column)


def _stream(seed: Seed, person: int, purpose: int) -> np.random.Generator:
    first = [seed] if isinstance(seed, int | np.integer) else list(seed)
    return np.random.default_rng([*map(int, first), person, purpose])


def _per_person(values: ArrayLike, cohort: Cohort, name: str) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (len(cohort),) or not np.isfinite(found).all() or (found < 0).any():
        raise DataError(f"{name} must be {len(cohort)} finite numbers, 0 or more, one per person.")
    return found


def _again(
    walker: SoftmaxWalker, first: int, eta: float, needed: int, rng: np.random.Generator
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Episodes from one state that hold so many counted actions together: (states, actions) of each."""
    model, found = walker.model, []
    begin = np.array([first], dtype=np.int32)
    states, actions, left, fruitless = [begin], [np.zeros(0, np.int32)], needed, 0
    while left:
        draws = np.ones((left, 3))
        draws[:, ::2] = rng.random((left, 2))
        walked, acted = walker.walk(int(states[-1][-1]), eta, 0.0, draws)
        counts = int(model.counted[walked[:-1]].sum())
        fruitless = 0 if counts else fruitless + 1
        if fruitless > MOST_FRUITLESS:
            raise TaskError(f"{model.name}: from {model.describe(first)} no action that counts is reached.")
        states.append(walked[1:])
        actions.append(acted)
        has_ended = len(acted) < left
        left -= counts
        if has_ended or not left:
            found.append((np.concatenate(states), np.concatenate(actions)))
            states, actions = [begin], [np.zeros(0, np.int32)]
    return found or [(begin, actions[0])]


def _episodes(cohort: Cohort, source: NDArray[np.int64], per_person: NDArray[np.int64]) -> pl.DataFrame:
    """Episodes numbered within each person, on the task of the episode each comes from."""
    starts = offsets_of(per_person)
    number = np.arange(len(source)) - np.repeat(starts[:-1], per_person) + 1
    return pl.DataFrame(
        {"episode": pl.Series(number).cast(pl.String), "task": cohort.episodes["task"].gather(source)}
    )


def _numbered_segments(cohort: Cohort) -> pl.DataFrame:
    """The segments, numbered within each person where some have several episodes."""
    if (np.diff(cohort.episode_offsets) <= 1).all():
        return cohort.segments
    offsets = segment_owner_offsets(cohort)
    number = np.arange(cohort.n_segments) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
    return cohort.segments.with_columns(segment=pl.Series(number).cast(pl.String))


def _column(name: str, values: Floats, *, is_count: bool) -> pl.Series:
    series = pl.Series(name, values, nan_to_null=True)
    return series.cast(pl.Int64) if is_count else series


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, dtype=np.int32), *parts])
