"""How often groups that do not differ seem to, where one of them did less than the other.

Run from the repository root, in about a minute::

    python benchmarks/groups.py [--studies 60] [--people 40]

Two groups of the same people do the built-in task ``grocery``, one of them for fewer actions. Three tests at
5 %: ranks of maximum-likelihood estimates of log η, a t test of the finite ones, and the difference of the
means that a fit of each group learns. Seeds are 0, 1, 2 and so on.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import mannwhitneyu, t, ttest_ind

import fidm

TESTS = ("rank test on ML", "t test on finite ML", "each group fitted")


def p_values(
    model: fidm.Model, task: fidm.TaskModel, n: int, actions: tuple[int, int], seed: int
) -> list[float]:
    """The three tests of one study in which there is nothing to find."""
    groups = [
        fidm.simulate_cohort(task, n, seed=seed, first=n * place, max_steps=most)
        for place, most in enumerate(actions)
    ]
    both = fidm.Cohort.concat(groups)
    estimates = model.fit(both, method="mle").profile(both).log_sensitivity
    first, second = estimates[:n], estimates[n:]
    finite = [some[np.isfinite(some)] for some in (first, second)]
    a, b = (model.fit(group).prior for group in groups)
    away = abs(a.mean - b.mean) / np.hypot(a.mean_se, b.mean_se)
    return [
        float(mannwhitneyu(first, second).pvalue),
        float(ttest_ind(*finite, equal_var=False).pvalue),
        float(2 * t.sf(away, 2 * n - 2)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--people", type=int, default=40)
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    model = fidm.Model(task, channels=(), values=fidm.solve(task))
    print(f"{'p < .05 without a difference':30}" + "".join(f"{name:>22}" for name in TESTS))
    for actions in ((60, 40), (60, 15)):
        found = [p_values(model, task, options.people, actions, seed) for seed in range(options.studies)]
        shares = (np.array(found) < 0.05).mean(axis=0)
        print(
            f"{options.people} and {options.people} people, {actions[0]} and {actions[1]} actions"
            + "".join(f"{share:>22.1%}" for share in shares),
            flush=True,
        )


if __name__ == "__main__":
    main()
