"""What covariates cost: processor seconds of a fit and a profile with and without them, in one run.

Run from the repository root::

    OPENBLAS_NUM_THREADS=1 python benchmarks/regress.py [--people 400]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

import fidm


def seconds(work: Callable[[], object]) -> float:
    """The least of three times."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=400)
    n = parser.parse_args().people
    task = fidm.load_task("grocery")
    values, cohort = fidm.solve(task), fidm.simulate_cohort(task, n, seed=1, max_steps=60)
    age = np.random.default_rng(1).normal(70, 7, n)
    group = np.where(np.arange(n) % 2, "b", "a")
    cohort = cohort.with_participants(
        cohort.participants.with_columns(age=pl.Series(age), group=pl.Series(group))
    )
    for formula in (None, "age + C(group)"):
        model = fidm.Model(task, values=values, regress=formula)
        fit = model.fit(cohort, workers=1)
        took = [seconds(partial(work, cohort, workers=1)) for work in (model.fit, fit.profile)]
        print(f"{formula!s:16} fit {took[0]:.2f} s, profile {took[1]:.2f} s", flush=True)


if __name__ == "__main__":
    main()
