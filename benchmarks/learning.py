"""How often intervals of a trend of η over blocks of trials hold the truth, and how far off it is on average.

Run from the repository root; two hundred studies of eight people take some minutes::

    python benchmarks/learning.py [--studies 200] [--people 8,15,40] [--slope 0] [--slope-sd 0] [--missing 0]

People make ten choices among three options in each of five blocks. Their log η is N(0.7, 0.5²) in the middle
block and changes by N(slope, slope sd²) per block; blocks are missing at random. A line per number of people:
the share of 95 % intervals that hold the slope, its mean error with its Monte-Carlo error, and the sd of
estimates over the mean standard error. Seeds are 0, 1, 2 and on.
"""

from __future__ import annotations

import argparse

import numpy as np

from fidm.cohort import offsets_of
from fidm.fit.within import sensitivity_within
from fidm.model.action import Choices, list_choices

BLOCKS, EACH = 5, 10


def one_study(
    people: int, slope: float, slope_sd: float, seed: int
) -> tuple[Choices, np.ndarray, np.ndarray]:
    """Return the choices of every person's blocks, whose they are and which."""
    rng, n = np.random.default_rng([seed, people, BLOCKS, EACH]), people * BLOCKS * EACH
    values = rng.normal(size=(n, 3))
    level, own = rng.normal(0.7, 0.5, people), slope + slope_sd * rng.normal(size=people)
    log_eta = level[:, None] + own[:, None] * (np.arange(BLOCKS) - 0.5 * (BLOCKS - 1))
    eta = np.exp(np.repeat(log_eta.ravel(), EACH))
    chosen = (eta[:, None] * values + rng.gumbel(size=values.shape)).argmax(axis=1)
    offsets = np.arange(0, 3 * n + 1, 3)
    choices = list_choices(
        offsets,
        values.ravel(),
        offsets_of(np.full(people * BLOCKS, EACH)),
        np.arange(n, dtype=np.int32),
        (offsets[:-1] + chosen).astype(np.int32),
        np.zeros(0),
        np.ones(n, np.bool_),
    )
    return choices, np.repeat(np.arange(people), BLOCKS), np.tile(np.arange(BLOCKS, dtype=np.float64), people)


def main() -> None:
    """Print a line per number of people."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--people", default="8,15,40")
    for name in ("--slope", "--slope-sd", "--missing"):
        parser.add_argument(name, type=float, default=0.0)
    asked = parser.parse_args()
    for people in map(int, asked.people.split(",")):
        found = []
        for seed in range(asked.studies):
            choices, owner, at = one_study(people, asked.slope, asked.slope_sd, seed)
            there = np.random.default_rng([seed, 1]).random(len(owner)) >= asked.missing
            one = sensitivity_within(
                choices.take(there), owner[there], at[there][:, None], by_people=True, lapse=0.0
            )
            (low,), (high,) = one.intervals(0.95)
            found.append((one.slopes[0] - asked.slope, one.se[0], low <= asked.slope <= high))
        error, se, holds = np.array(found, dtype=np.float64).T
        print(
            f"{people} people: {holds.mean():.1%} of intervals hold {asked.slope:g}; mean error "
            f"{error.mean():+.3f} ± {error.std() / np.sqrt(len(error)):.3f}; sd over standard error "
            f"{error.std() / se.mean():.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
