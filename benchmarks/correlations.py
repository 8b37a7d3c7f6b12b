"""How well :meth:`fidm.Fit.correlations` finds how η and durations go together in people.

Run from the repository root; a hundred studies of one regime take about a minute::

    python benchmarks/correlations.py [--studies 100] [--first 0]

People do the built-in task ``grocery``; log η and θ of durations have a true correlation. A line per regime:
the mean of the estimated correlations with its Monte-Carlo error, how often the 95 % interval holds the true
one, and the mean correlation of people's estimates, which is what one would compute without it.
"""

from __future__ import annotations

import argparse

import numpy as np

import fidm
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People

USUAL = People()
REGIMES = [(n, actions, r) for n, actions in ((100, 60), (30, 60), (100, 15), (15, 60)) for r in (0.0, 0.5)]


def one_study(task: fidm.TaskModel, values: fidm.Values, n: int, actions: int, r: float, seed: int):
    """Return the estimate, whether its interval holds r, and the correlation of estimates."""
    rng = np.random.default_rng([seed, n, actions])
    latent = rng.normal(size=(n, 6))
    latent[:, 1] = r * latent[:, 0] + np.sqrt(1 - r**2) * latent[:, 1]
    shifts = latent * np.array([USUAL.log_sensitivity_sd, *[USUAL.effort_sd] * 5])
    alike = People(log_sensitivity_sd=1e-9, effort_sd=1e-9)
    cohort = fidm.simulate_cohort(task, n, seed=seed, max_steps=actions, people=alike, shifts=shifts)
    fit = fidm.Model(task, channels=paper_channels()[:1], values=values).fit(cohort)
    found = fit.correlations(cohort)
    if not found.height:
        return None
    row, profile = found.row(0, named=True), fit.profile(cohort)
    plain = np.corrcoef(profile.log_sensitivity, profile["duration"])[0, 1]
    return row["correlation"], row["low"] <= r <= row["high"], plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    print("people  actions   true          estimated   holds  of estimates  studies")
    for n, actions, r in REGIMES:
        seeds = range(options.first, options.first + options.studies)
        found = [one_study(task, values, n, actions, r, seed) for seed in seeds]
        estimate, holds, plain = np.array([one for one in found if one is not None]).T
        error = estimate.std() / np.sqrt(len(estimate))
        print(
            f"{n:>6}{actions:>9}{r:>7.2f}{estimate.mean():>+11.3f} ± {error:.3f}{holds.mean():>8.1%}"
            f"{plain.mean():>+14.3f}{len(estimate):>9}",
            flush=True,
        )


if __name__ == "__main__":
    main()
