"""What :func:`fidm.compare` makes of covariates that some people lack, and of scores from elsewhere.

Run from the repository root; each part takes about ten minutes::

    python benchmarks/covariates.py imputed [--studies 200] [--people 80] [--missing 0.3]
    python benchmarks/covariates.py correlated [--studies 200] [--people 100]

``imputed``: two groups do the built-in task ``errands``. Log η falls with age (by half a standard deviation
of people per standard deviation of age) and differs between the groups, and the groups differ in age. Ages of
some people are missing completely at random. A line for the slope of age and one for the difference of the
groups: mean error as a share of the truth with its Monte-Carlo error, and how often the 95 % interval holds
the truth, with 20 imputations, with people left out, and with all ages known.

``correlated``: a score goes with the latent parameter by a true r, in η and in duration. A line per r and
parameter: mean r, its Monte-Carlo error, how often the interval holds the truth, and the mean correlation of
people's estimates. Seeds are 0, 1, 2 and on.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

import fidm
from fidm.fit.profile import SENSITIVITY
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People

ALIKE = People(log_sensitivity_sd=1e-9, effort_sd=1e-9)
SD = np.array([People().log_sensitivity_sd, *[People().effort_sd] * 5])
OLDER, EFFECT, SLOPE = 5.0, 0.8, -0.5
"""By how many years one group is older, and the effects of group and of 8 years in SDs of log η."""


def people_with(task: fidm.TaskModel, latent: np.ndarray, seed: int, **known: np.ndarray) -> fidm.Cohort:
    """Return people of these latent parameters, in standard deviations, [P, 6], with covariates."""
    made = fidm.simulate_cohort(task, len(latent), seed=seed, people=ALIKE, shifts=latent * SD)
    return made.with_participants(
        made.participants.with_columns(**{k: pl.Series(v) for k, v in known.items()})
    )


def imputed(task: fidm.TaskModel, n: int, lost: float, seed: int) -> dict[str, tuple[float, bool]]:
    """Return relative errors of slope and difference, and whether intervals hold them, by way and number."""
    rng = np.random.default_rng([seed, n])
    group = np.arange(n) % 2
    age = 70 + OLDER * group + 8 * rng.normal(size=n)
    latent = rng.normal(size=(n, 6))
    latent[:, 0] += EFFECT * group + SLOPE * (age - 70) / 8
    known = np.where(rng.uniform(size=n) < lost, np.nan, age)
    cohort = people_with(task, latent, seed, group=np.where(group == 1, "b", "a"), age=known, true_age=age)
    truth = {"age": SLOPE / 8 * SD[0], "b / a": EFFECT * SD[0]}
    found = {}
    about = cohort.participants.with_columns(age=pl.col("true_age"))
    for way in ("impute", "drop", "nothing missing"):
        result = fidm.compare(
            task,
            cohort.with_participants(about) if way == "nothing missing" else cohort,
            by="group",
            adjust=["age"],
            reference="a",
            channels=(),
            missing="impute" if way == "impute" else "drop",
            seed=seed,
        )
        for row in result.terms.iter_rows(named=True):
            true = truth[row["term"]]
            error, holds = row["slope"] / true - 1, row["low"] <= true <= row["high"]
            found[f"{way}: {row['term']}"] = (error, holds)
    return found


def correlated(task: fidm.TaskModel, n: int, r: float, seed: int) -> dict[str, tuple[float, bool, float]]:
    """Return r, whether the interval holds the truth, and r of estimates, by parameter."""
    rng = np.random.default_rng([seed, n, int(100 * r)])
    score = rng.normal(size=n)
    latent = r * score[:, None] + np.sqrt(1 - r**2) * rng.normal(size=(n, 6))
    cohort = people_with(task, latent, seed, score=score)
    table = fidm.compare(task, cohort, by="score", channels=paper_channels()[:1]).correlations
    return {
        row["parameter"]: (row["r"], row["low"] <= r <= row["high"], row["r_estimates"])
        for row in table.iter_rows(named=True)
        if row["r"] is not None
    }


def said(values: list[float]) -> str:
    """Return a mean with its Monte-Carlo error."""
    return f"{np.mean(values):>+9.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["imputed", "correlated"])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--people", type=int)
    parser.add_argument("--missing", type=float, default=0.3)
    options = parser.parse_args()
    task, seeds = fidm.load_task("errands"), range(options.first, options.first + options.studies)
    if options.part == "imputed":
        n = options.people or 80
        print(f"{n} people, {options.missing:.0%} of ages missing, {options.studies} studies")
        print(f"{'':24}{'relative error':>18}{'interval holds':>17}")
        found = [imputed(task, n, options.missing, seed) for seed in seeds]
        for name in found[0]:
            rows = [one[name] for one in found]
            print(f"{name:24}{said([row[0] for row in rows]):>18}{np.mean([row[1] for row in rows]):>17.1%}")
        return
    n = options.people or 100
    print(f"{n} people, {options.studies} studies")
    print(f"{'':28}{'mean r':>18}{'interval holds':>17}{'r of estimates':>17}{'studies':>9}")
    for r in (0.3, 0.6):
        found = [correlated(task, n, r, seed) for seed in seeds]
        for name in (SENSITIVITY, "duration"):
            rows = [one[name] for one in found if name in one]
            holds, plain = np.mean([row[1] for row in rows]), np.mean([row[2] for row in rows])
            line = f"r = {r:g}, {name:19}{said([row[0] for row in rows]):>18}"
            print(f"{line}{holds:>17.1%}{plain:>17.3f}{len(rows):>9}")


if __name__ == "__main__":
    main()
