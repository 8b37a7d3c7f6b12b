"""How well :func:`fidm.compare` tells groups apart, where one of them did less than the other.

Run from the repository root; a hundred studies of one regime take about a minute::

    python benchmarks/groups.py [--studies 100] [--people 40] [--effect 0.8] [--latent skewed]

Two groups do the built-in task ``grocery``, one of them for fewer actions (``--actions 60/15``), and differ
by an effect, in standard deviations, in every parameter. A line per parameter: how often p < .05, how often
the 95 % interval holds the true difference, and the mean error of the difference, as a share of the standard
deviation, with its Monte-Carlo error. For η also how often a rank test of maximum-likelihood estimates, and a
t test of the finite ones, have p < .05. Seeds are 0, 1, 2 and on. With ``--profiles`` also how often the 95 %
intervals of single people hold their true parameters, where the prior depends on the group
(``fidm.Model(regress="C(group)")``) and where it does not, and the root mean square error of either.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import mannwhitneyu, ttest_ind

import fidm
from fidm.fit.profile import SENSITIVITY
from fidm.simulate.cohort import People

USUAL = People()
NAMES = (SENSITIVITY, "duration", "characters", "turns", "pause", "pause_presence")
TRUE = dict.fromkeys(NAMES, USUAL.effort_sd) | {SENSITIVITY: USUAL.log_sensitivity_sd}
LATENT = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1,
    "heavy": lambda rng, shape: rng.standard_t(4, size=shape) / np.sqrt(2),
}
"""How people differ, with mean 0 and variance 1."""


def one_study(
    task: fidm.TaskModel,
    values: fidm.Values,
    n: int,
    actions: tuple[int, int],
    effect: float,
    latent: str,
    seed: int,
    people_too: bool,
) -> dict[str, Any]:
    """Return of every parameter p, whether the interval holds the truth, and the error of the difference."""
    rng = np.random.default_rng([seed, n])
    sd = np.array([USUAL.log_sensitivity_sd, *[USUAL.effort_sd] * 5])
    alike = People(log_sensitivity_sd=1e-9, effort_sd=1e-9)
    parts = []
    for place, most in enumerate(actions):
        shifts = sd * (LATENT[latent](rng, (n, len(sd))) + effect * place)
        parts.append(
            fidm.simulate_cohort(
                task, n, seed=seed, first=n * place, max_steps=most, people=alike, shifts=shifts
            )
        )
    both = fidm.Cohort.concat(parts)
    group = pl.Series("group", ["a"] * n + ["b"] * n)
    both = both.with_participants(both.participants.with_columns(group))
    table = fidm.compare(task, both, by="group", reference="a").table
    found = {}
    for row in table.iter_rows(named=True):
        own = TRUE.get(row["parameter"])
        if own is None or row["p"] is None:
            continue
        inside = row["low"] <= effect * own <= row["high"]
        found[row["parameter"]] = row["p"], inside, (row["difference"] - effect * own) / own
    estimates = (
        fidm.Model(task, channels=(), values=values).fit(both, method="mle").profile(both).log_sensitivity
    )
    first, second = estimates[:n], estimates[n:]
    finite = [some[np.isfinite(some)] for some in (first, second)]
    found["rank test on ML"] = (float(mannwhitneyu(first, second).pvalue),)
    found["t test on finite ML"] = (float(ttest_ind(*finite, equal_var=False).pvalue),)
    return found | (profiles(task, values, both, effect) if people_too else {})


def profiles(
    task: fidm.TaskModel, values: fidm.Values, both: fidm.Cohort, effect: float
) -> dict[str, np.ndarray]:
    """Return, for a plain and a regressed prior, whose intervals hold the truth, and errors, [2, P, K]."""
    truth = both.participants.select(f"true_{name}" for name in NAMES).to_numpy().copy()
    truth[:, 0] = np.log(truth[:, 0])
    truth[:, 1:] -= 0.5 * effect * USUAL.effort_sd  # θ is relative to people in the middle
    found = {}
    for name, formula in (("plain", None), ("by group", "C(group)")):
        profile = fidm.Model(task, values=values, regress=formula).fit(both).profile(both)
        own = truth[:, [NAMES.index(one) for one in profile.parameters]]
        low, high, estimate = profile.low.copy(), profile.high.copy(), profile.estimate.copy()
        estimate[:, 0] = profile.log_sensitivity
        with np.errstate(divide="ignore"):
            low[:, 0], high[:, 0] = np.log(low[:, 0]), np.log(high[:, 0])
        made = np.full((2, len(own), len(NAMES)), np.nan)
        for k, one in enumerate(profile.parameters):
            told = np.isfinite(estimate[:, k])
            made[0, told, NAMES.index(one)] = ((low <= own) & (own <= high))[told, k]
            made[1, told, NAMES.index(one)] = (estimate - own)[told, k]
        found[name] = made
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--effect", type=float, default=0.0)
    parser.add_argument("--latent", choices=LATENT, default="normal")
    parser.add_argument("--actions", nargs="*", default=["60/60", "60/40", "60/25", "60/15", "15/15"])
    parser.add_argument("--profiles", action="store_true", help="look at single people's intervals, too")
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    for said in options.actions:
        first, second = (int(part) for part in said.split("/"))
        print(
            f"\n{options.people} + {options.people} people, {first} and {second} actions, effect "
            f"{options.effect:g} SD, {options.latent}, {options.studies} studies"
        )
        print(f"{'':22}{'p < .05':>10}{'interval holds':>17}{'mean error, SD':>21}")
        found = [
            one_study(
                task,
                values,
                options.people,
                (first, second),
                options.effect,
                options.latent,
                seed,
                options.profiles,
            )
            for seed in range(options.first, options.first + options.studies)
        ]
        for name in (*NAMES, "rank test on ML", "t test on finite ML"):
            rows = [one[name] for one in found if name in one]
            if not rows:
                continue
            line = f"{name:22}{np.mean([row[0] < 0.05 for row in rows]):>10.1%}"
            if len(rows[0]) > 1:
                errors = np.array([row[2] for row in rows])
                line += f"{np.mean([row[1] for row in rows]):>17.1%}"
                line += f"{errors.mean():>+13.3f} ± {errors.std() / np.sqrt(len(errors)):.3f}"
            print(line + (f"  ({len(rows)} studies)" if len(rows) < len(found) else ""), flush=True)
        for name in ("plain", "by group") if options.profiles else ():
            both = np.stack([one[name] for one in found])  # studies, what, people, parameters
            holds, rmse = (
                np.nanmean(both[:, 0], axis=(0, 1)),
                np.sqrt(np.nanmean(both[:, 1] ** 2, axis=(0, 1))),
            )
            print(f"people, {name:10} hold " + " ".join(f"{one:.1%}" for one in holds))
            print(f"{'':18} RMSE " + " ".join(f"{one:.3f}" for one in rmse), flush=True)


if __name__ == "__main__":
    main()
