"""People from a generator that shares no code with the model: its own values, policy and effort.

Everything is plain NumPy and SciPy on the arrays of a task. Settings describe the studies that labs have: few
people, few actions or segments, wrong moves, rare groups, people who click at random, effort that goes on from
one segment to the next. Effort is drawn by its distribution's quantile function from a latent normal, which
is how one segment can lean on the one before.

``python tests/recovery/strangers.py`` prints how often 95 % intervals hold the truth in every regime, with the
standard error of that share, and how far estimates lie from it, for people of seeds that no test uses.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np
import polars as pl
from scipy import stats

import fidm

PARAMETERS = ("action_sensitivity", "duration", "characters", "turns", "pause")
INTERCEPT = {"duration": 0.79, "characters": 1.87, "turns": 0.59, "pause": -0.10}
SLOPE = {"duration": 0.57, "characters": 0.48, "turns": 0.12, "pause": 0.22}
SHAPE = {"duration": 1.9, "characters": 2.2, "turns": 3.0, "pause": 0.98}


@dataclass(frozen=True)
class Regime:
    """A kind of study."""

    people: int = 400
    actions: int = 60
    segments: int | None = None
    """How many segments everybody has; None: as many as their moves make, about one per 3.5 moves."""
    offset_sd: float = 0.3
    log_mean: float = float(np.log(24.0))
    log_sd: float = 0.42
    wrong: float = 0.0
    """The share of recorded moves that are drawn at random among the legal ones."""
    impaired: float = 0.0
    """The share of people whose η is 0.4 times as high and whose offsets are 0.7 higher."""
    clickers: float = 0.0
    """The share of people who choose at random."""
    carried: float = 0.0
    """The correlation of a segment's effort with that of the one before."""
    pauses: float = 0.5
    """The share of segments with a pause."""


REGIMES = {
    "400 people": (Regime(), 5),
    "30 people": (Regime(people=30), 40),
    "15 people": (Regime(people=15), 80),
    "8 people": (Regime(people=8), 100),
    "400 people, 3 segments": (Regime(segments=3, pauses=0.35), 5),
    "30 people, 10 actions, 3 segments": (Regime(people=30, actions=10, segments=3), 40),
    "5 % wrong moves": (Regime(wrong=0.05), 5),
    "30 people, 5 % wrong moves": (Regime(people=30, wrong=0.05), 40),
    "15 % impaired": (Regime(impaired=0.15), 8),
    "effort carried over (.6)": (Regime(carried=0.6), 5),
    "10 % click at random": (Regime(clickers=0.1), 5),
}
"""Kinds of studies, and how many of each are looked at."""


@dataclass(frozen=True)
class Measured:
    """Of many people: whether intervals hold the truth [n, 5], errors [n, 5], who is special, who is flagged."""

    inside: np.ndarray
    error: np.ndarray
    special: np.ndarray
    flagged: np.ndarray
    study: np.ndarray
    seconds: float

    def coverage(self, special: bool = False) -> np.ndarray:
        inside = self.inside[self.special == special]
        return np.nansum(inside, axis=0) / np.maximum((~np.isnan(inside)).sum(axis=0), 1)

    def coverage_se(self, special: bool = False) -> np.ndarray:
        """Standard errors of the coverage, by studies: intervals of one study miss together."""
        own, some = self.study[self.special == special], self.coverage(special)
        away = np.nan_to_num(self.inside[self.special == special] - some)
        sums = np.array([away[own == study].sum(axis=0) for study in np.unique(own)])
        known = (~np.isnan(self.inside[self.special == special])).sum(axis=0)
        return np.sqrt((sums**2).sum(axis=0) * len(sums) / max(len(sums) - 1, 1)) / np.maximum(known, 1)

    def rmse(self, special: bool = False) -> np.ndarray:
        error = self.error[self.special == special]
        square, known = np.where(np.isfinite(error), error, 0.0) ** 2, np.isfinite(error).sum(axis=0)
        return np.sqrt(square.sum(axis=0) / np.where(known, known, np.nan))


def measure(regime: Regime, seeds, *, joint: bool = False, **settings) -> Measured:
    """Fit a model to studies of a regime, one per seed, and compare with the truth."""
    task, _ = task_values("grocery")
    values, found, seconds = fidm.solve(task), [], 0.0
    for seed in seeds:
        cohort, truth, impaired, clicks = draw(regime, seed)
        begin = perf_counter()
        profile = fidm.Model(task, values=values, **settings).fit(cohort, joint=joint).profile(cohort)
        seconds += perf_counter() - begin
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high, estimate = (_columns(profile, what) for what in ("low", "high", "estimate"))
            low[:, 0], high[:, 0], estimate[:, 0] = (
                np.log(low[:, 0]),
                np.log(high[:, 0]),
                profile.log_sensitivity,
            )
            inside = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
            which = np.full(len(truth), seed)
            found.append((inside, estimate - truth, impaired | clicks, profile.random > 0.5, which))
    return Measured(*(np.concatenate(column) for column in zip(*found, strict=True)), seconds / len(found))


def _columns(profile, what):
    """The five parameters, NaN where one was not fitted, [P, 5]."""
    missing = np.full(len(profile), np.nan)
    values = getattr(profile, what)
    return np.column_stack(
        [
            values[:, profile.parameters.index(name)] if name in profile.parameters else missing
            for name in PARAMETERS
        ]
    )


@cache
def task_values(name: str):
    """A task, and its soft values by plain iteration over its pairs."""
    task = fidm.load_task(name)
    n, rows = task.n_states, np.repeat(np.arange(task.n_states), np.diff(task.offsets))
    pair_of = np.repeat(np.arange(len(task.action)), np.diff(task.successor_offsets))
    value = np.zeros(n)
    some = np.flatnonzero(np.diff(task.offsets) > 0)
    for _ in range(20_000):
        ahead = np.bincount(pair_of, task.probability * value[task.successor], minlength=len(task.action))
        q = task.reward + task.gamma * ahead
        top = np.full(n, -np.inf)
        np.maximum.at(top, rows, q)
        total = np.bincount(rows, np.exp((q - top[rows]) / task.tau), minlength=n)
        if task.normaliser == "mean":
            total /= np.maximum(np.diff(task.offsets), 1)
        new = np.zeros(n)
        new[some] = top[some] + task.tau * np.log(total[some])
        if np.abs(new - value).max() < 1e-12:
            break
        value = new
    return task, q


def draw(regime: Regime, seed: int, task_name: str = "grocery"):
    """Return a cohort, the truth [P, 5] (log η and four offsets), and who is impaired and who clicks."""
    task, q = task_values(task_name)
    rng = np.random.default_rng([seed, 20_261_116])
    n = regime.people
    impaired = rng.random(n) < regime.impaired
    clicks = rng.random(n) < regime.clickers
    log_eta = rng.normal(regime.log_mean, regime.log_sd, n) + np.where(impaired, np.log(0.4), 0.0)
    offsets = rng.normal(0.0, regime.offset_sd, (n, 4)) + np.where(impaired, 0.7, 0.0)[:, None]
    presence = rng.normal(np.log(regime.pauses / (1 - regime.pauses)), 0.5, n)
    steps, segments = [], []
    for j in range(n):
        eta = 0.0 if clicks[j] else float(np.exp(log_eta[j]))
        walked = _walk(task, q, eta, regime, rng)
        cuts = _cuts(len(walked), regime, rng)
        segments += _speak(f"p{j:04d}", cuts, offsets[j], presence[j], regime, rng)
        own = np.repeat(np.arange(1, len(cuts) + 1), cuts)
        steps += [
            (f"p{j:04d}", i + 1, state, action, int(own[i])) for i, (state, action) in enumerate(walked)
        ]
    log_eta[clicks] = -np.inf
    offsets = offsets - 0.7 * regime.impaired  # offsets are from the average person
    names = ("participant", "step", "state", "action", "segment")
    columns = ("participant", "segment", "n_moves", "duration_s", "n_characters", "n_turns", "pause_s")
    cohort = fidm.make_cohort(
        steps=pl.DataFrame(steps, schema=names, orient="row"),
        segments=pl.DataFrame(segments, schema=columns, orient="row"),
        tasks=task,
    )
    return cohort, np.column_stack([log_eta, offsets]), impaired, clicks


def _walk(task, q, eta, regime, rng):
    """States and actions of one person; a task that ends begins anew is not needed: steps are cut short."""
    walked, state = [], task.start
    while len(walked) < regime.actions:
        first, last = task.offsets[state], task.offsets[state + 1]
        if first == last:
            break
        score = eta * (q[first:last] - q[first:last].max())
        p = np.exp(score) / np.exp(score).sum()
        if regime.wrong and rng.random() < regime.wrong:
            p = np.full(last - first, 1 / (last - first))
        pair = first + int(np.searchsorted(np.cumsum(p), rng.random() * p.sum()).clip(0, last - first - 1))
        walked.append((int(state), int(task.action[pair])))
        low, high = task.successor_offsets[pair], task.successor_offsets[pair + 1]
        state = task.successor[low + int(rng.choice(high - low, p=task.probability[low:high]))]
        state = task.handover[state]
    return walked


def _cuts(n, regime, rng):
    """How many moves each segment holds."""
    if regime.segments is not None:
        wanted = min(regime.segments, n)
        inside = np.sort(rng.choice(np.arange(1, n), wanted - 1, replace=False)) if wanted > 1 else []
        return np.diff([0, *inside, n]).astype(int)
    cuts = []
    while sum(cuts) < n:
        cuts.append(min(int(rng.integers(1, 7)), n - sum(cuts)))
    return np.array(cuts)


def _speak(name, cuts, offsets, presence, regime, rng):
    """The segments of one person."""
    latent = rng.normal(size=(len(cuts), 4))
    for i in range(1, len(cuts)):
        latent[i] = regime.carried * latent[i - 1] + np.sqrt(1 - regime.carried**2) * latent[i]
    u = stats.norm.cdf(latent)
    log_moves = np.log1p(cuts)
    found = []
    for k, channel in enumerate(SHAPE):
        centre = INTERCEPT[channel] + SLOPE[channel] * log_moves + offsets[k]
        shape = SHAPE[channel]
        if channel == "duration":
            found.append(stats.gamma.ppf(u[:, k], shape, scale=np.exp(centre) / shape))
        elif channel == "pause":
            found.append(np.exp(centre + shape * latent[:, k]))
        else:
            found.append(stats.nbinom.ppf(u[:, k], shape, shape / (shape + np.exp(centre))))
    paused = rng.random(len(cuts)) < 1 / (1 + np.exp(-presence))
    return [
        (
            name,
            i + 1,
            int(cuts[i]),
            float(found[0][i]),
            int(found[1][i]),
            int(found[2][i]),
            float(found[3][i]) if paused[i] else 0.0,
        )
        for i in range(len(cuts))
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="words in the names of the regimes that are wanted")
    parser.add_argument("--joint", action="store_true", help="with a joint prior")
    parser.add_argument("--first", type=int, default=5_000, help="the first seed")
    parser.add_argument("--studies", type=int, help="how many studies of each regime")
    chosen = parser.parse_args()
    print(f"{'coverage of 95 % intervals, RMSE':36} " + " ".join(f"{name[:10]:>15}" for name in PARAMETERS))
    for name, (regime, usual) in REGIMES.items():
        if chosen.names and not any(word in name for word in chosen.names):
            continue
        studies = chosen.studies or usual
        found = measure(regime, range(chosen.first, chosen.first + studies), joint=chosen.joint)
        for special in (False, True):
            if special and not found.special.any():
                continue
            columns = found.coverage(special), found.coverage_se(special), found.rmse(special)
            cells = " ".join(
                f"{100 * p:5.1f}±{100 * se:3.1f} {error:5.3f}" for p, se, error in zip(*columns, strict=True)
            )
            print(f"{name + (': those people' if special else ''):36} {cells}", flush=True)
        if regime.clickers:
            flagged, falsely = found.flagged[found.special].mean(), found.flagged[~found.special].mean()
            print(f"{'':36} flagged {flagged:.1%}, falsely {falsely:.1%}")
        print(
            f"{'':36} {studies} studies, {np.isnan(found.inside).mean():.1%} not estimated, {found.seconds:.2f} s each"
        )


if __name__ == "__main__":
    main()
