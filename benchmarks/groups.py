"""How often groups that do not differ seem to, where one of them did less than the other.

Run from the repository root, in about a minute::

    python benchmarks/groups.py [--studies 60] [--people 40]

Two groups of the same people do the built-in task ``grocery``, one of them for fewer actions. Three tests at
5 %: ranks of maximum-likelihood estimates of log η, a t test of the finite ones, and :func:`fidm.compare`.
With an effect, in standard deviations of log η, the last columns say how often its interval holds the true
difference, and how large the difference is on average, as a share of the true one. Seeds are 0, 1, 2 and on.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.stats import mannwhitneyu, ttest_ind

import fidm
from fidm.simulate.cohort import People

TESTS = ("rank test on ML", "t test on finite ML", "fidm.compare")
REGIMES = ((60, 60), (60, 40), (60, 25), (60, 15), (15, 15))


@dataclass(frozen=True)
class Study:
    """One study: p-values of the three tests, whether the interval holds the truth, and the difference."""

    p: tuple[float, float, float]
    inside: bool
    difference: float


def one_study(
    task: fidm.TaskModel, values: fidm.Values, n: int, actions: tuple[int, int], effect: float, seed: int
) -> Study:
    usual = People()
    true = effect * usual.log_sensitivity_sd
    other = replace(usual, log_sensitivity_mean=usual.log_sensitivity_mean + true)
    both = fidm.Cohort.concat(
        [
            fidm.simulate_cohort(task, n, seed=seed, first=n * place, max_steps=most, people=people)
            for place, (most, people) in enumerate(zip(actions, (usual, other), strict=True))
        ]
    )
    group = pl.Series("group", ["a"] * n + ["b"] * n)
    both = both.with_participants(both.participants.with_columns(group))
    model = fidm.Model(task, channels=(), values=values)
    estimates = model.fit(both, method="mle").profile(both).log_sensitivity
    first, second = estimates[:n], estimates[n:]
    finite = [some[np.isfinite(some)] for some in (first, second)]
    row = fidm.compare(task, both, by="group", reference="a", channels=()).table.row(0, named=True)
    plain = float(mannwhitneyu(first, second).pvalue), float(ttest_ind(*finite, equal_var=False).pvalue)
    return Study((*plain, row["p"]), row["low"] <= true <= row["high"], row["difference"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--effect", type=float, default=0.0)
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    true = options.effect * People().log_sensitivity_sd
    print(f"{'p < .05':40}" + "".join(f"{name:>21}" for name in (*TESTS, "interval holds", "difference")))
    for actions in REGIMES:
        found = [
            one_study(task, values, options.people, actions, options.effect, seed)
            for seed in range(options.studies)
        ]
        shares = [
            *(np.array([one.p for one in found]) < 0.05).mean(axis=0),
            np.mean([one.inside for one in found]),
        ]
        mean = np.mean([one.difference for one in found])
        print(
            f"{f'{options.people} and {options.people} people, {actions[0]} and {actions[1]} actions':40}"
            + "".join(f"{share:>21.1%}" for share in shares)
            + (f"{mean / true:>21.2f}" if true else f"{mean:>21.3f}"),
            flush=True,
        )


if __name__ == "__main__":
    main()
