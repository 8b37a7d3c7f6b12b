"""How well :meth:`fidm.Model.fit` agrees with the full Bayesian model, sampled by :meth:`fidm.Model.sample`.

Run from the repository root, with the development environment (jax and numpyro are in it)::

    python benchmarks/referee.py --out benchmarks/results/referee.json [--people 400] [--actions 60]

Simulated people do the built-in task ``grocery``; nobody lapses, and both ways know that. Their parameters
are correlated by ``--correlation``. Three comparisons: the default fit with the same model sampled, which
leaves correlations out; the joint fit with the sampled model that has them; and the default fit with the
latter. For each parameter: the correlation over people of posterior means (medians of log η), their mean
difference in posterior standard deviations, and the mean ratio of the fit's standard deviations to the
sampled ones. Against the same model the default fit must reach a correlation of .99 and a ratio between 0.95
and 1.03, and at most 1 % of the paths may diverge; the exit code is 1 if one of these does not hold.

With ``--regress`` people have an age, whose standard deviation moves every parameter by 0.2, and the prior
depends on it; slopes are compared, too: those of the fit and their standard errors with those sampled.

On a GPU chains run side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

import fidm
from fidm.files import whole_file
from fidm.simulate.cohort import People

TASK, PARAMETERS = "grocery", 6
LOWEST_R, RATIOS, MOST_DIVERGENT = 0.99, (0.95, 1.03), 0.01


def simulate(options: argparse.Namespace, task: fidm.TaskModel) -> fidm.Cohort:
    """People whose parameters are correlated and, if asked for, go with age."""
    age = np.random.default_rng(options.seed).normal(size=options.people)
    correlation = np.full((PARAMETERS, PARAMETERS), options.correlation)
    np.fill_diagonal(correlation, 1.0)
    cohort = fidm.simulate_cohort(
        task, options.people, seed=options.seed, max_steps=options.actions,
        people=People(correlation=correlation),
        shifts=np.outer(age, np.full(PARAMETERS, 0.2 if options.regress else 0.0)),
    )  # fmt: skip
    return cohort.with_participants(cohort.participants.with_columns(age=pl.Series(70 + 7 * age)))


def slopes(fit: fidm.Fit, posterior: fidm.Posterior) -> None:
    """Print how the fit's slopes agree with those sampled."""
    sampled = posterior.population.filter(quantity="slope of age")
    for row in fit.regression_table().iter_rows(named=True):
        own = sampled.filter(pl.col("parameter").str.ends_with(row["parameter"])).row(0, named=True)
        print(
            f"  slope of {row['parameter']:20} fit {row['slope']:+.4f} ± {row['se']:.4f}, sampled "
            f"{own['estimate']:+.4f} ± {own['se']:.4f}"
        )


def compare(profile: fidm.Profile, posterior: fidm.Posterior) -> list[dict[str, object]]:
    """Agreement of a profile with what was sampled, by parameter."""
    values = posterior.draws.values
    centre, sd = values.mean(axis=2), values.std(axis=2)
    centre[:, 0] = np.median(values[:, 0], axis=1)
    estimate = np.column_stack([profile.log_sensitivity, profile.estimate[:, 1:]])
    found: list[dict[str, object]] = []
    for name in posterior.parameters:
        k, own = posterior.parameters.index(name), profile.parameters.index(name)
        some = np.isfinite(estimate[:, own]) & np.isfinite(centre[:, k])
        if some.sum() < 3:
            found.append({"parameter": name, "people": int(some.sum())})
            continue
        away = (estimate[some, own] - centre[some, k]) / sd[some, k]
        found.append(
            {
                "parameter": name,
                "people": int(some.sum()),
                "r": float(np.corrcoef(estimate[some, own], centre[some, k])[0, 1]),
                "difference_in_sd": float(away.mean()),
                "sd_ratio": float(np.mean(profile.errors[some, own] / sd[some, k])),
            }
        )
    return found


def sampled(model: fidm.Model, cohort: fidm.Cohort, options: argparse.Namespace, *, joint: bool):
    """Sample, and say how good the chains are."""
    begun = time.perf_counter()

    def say(doing: str, done: int, of: int) -> None:
        if options.progress:
            print(f"  {doing} {done} of {of}, {time.perf_counter() - begun:.0f} s", flush=True)

    posterior = model.sample(
        cohort, seed=options.seed, draws=options.draws, warmup=options.warmup, chains=options.chains,
        joint=joint, however_long=options.however_long, on_progress=say,
    )  # fmt: skip
    seconds, told = time.perf_counter() - begun, posterior.diagnostics
    return posterior, {
        "seconds": seconds,
        "r_hat": told.r_hat,
        "ess": told.ess,
        "divergences": told.divergences,
        "too_long": told.too_long,
        "leapfrogs": told.leapfrogs,
        "warnings": posterior.warnings,
    }


def show(title: str, chains: dict[str, object], rows: list[dict[str, object]]) -> None:
    """Print one comparison."""
    print(
        f"\n{title}\n  chains: {chains['seconds']:.0f} s, R-hat up to {chains['r_hat']:.3f}, at least "
        f"{chains['ess']:.0f} effective draws, {chains['divergences']} divergences, "
        f"{chains['leapfrogs']:.0f} gradients per draw"
    )
    print(f"  {'parameter':20} {'people':>6} {'r':>8} {'difference':>11} {'sd ratio':>9}")
    for row in rows:
        if "r" in row:
            print(
                f"  {row['parameter']:20} {row['people']:6} {row['r']:8.4f} {row['difference_in_sd']:+11.3f} "
                f"{row['sd_ratio']:9.3f}"
            )
        else:
            print(f"  {row['parameter']:20} {row['people']:6}  the fit has no estimate")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--actions", type=int, default=60, help="how many actions people make at most")
    parser.add_argument("--correlation", type=float, default=0.0, help="of any two parameters among people")
    parser.add_argument("--regress", action="store_true", help="let the prior depend on age")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--however-long", action="store_true")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    task = fidm.load_task(TASK)
    formula = "age" if options.regress else None
    model = fidm.Model(task, lapse=0.0, values=fidm.solve(task), regress=formula)
    cohort = simulate(options, task)
    fits, seconds = {}, {}
    for way, joint in (("default", False), ("joint", True)):
        begun = time.perf_counter()
        fit = model.fit(cohort, joint=joint)
        fits[way] = fit.profile(cohort)
        seconds[way] = time.perf_counter() - begun
        print(f"{way} fit: {seconds[way]:.1f} s", flush=True)
    apart, told_apart = sampled(model, cohort, options, joint=False)
    together, told_together = sampled(model, cohort, options, joint=True)
    found = [
        ("default fit, sampled without correlations", told_apart, compare(fits["default"], apart)),
        ("joint fit, sampled with correlations", told_together, compare(fits["joint"], together)),
        ("default fit, sampled with correlations", told_together, compare(fits["default"], together)),
    ]
    for one in found:
        show(*one)
    if options.regress:
        slopes(fit, apart)
    same = [row for row in found[0][2] if "r" in row]
    gates = {
        f"r of at least {LOWEST_R}": all(row["r"] >= LOWEST_R for row in same),
        "sd ratio between {:.2f} and {:.2f}".format(*RATIOS): all(
            RATIOS[0] <= row["sd_ratio"] <= RATIOS[1] for row in same
        ),
        f"at most {MOST_DIVERGENT:.0%} divergent": told_apart["divergences"]
        <= MOST_DIVERGENT * options.chains * options.draws,
    }
    failed = [gate for gate, passed in gates.items() if not passed]
    verdict = f"failed: {'; '.join(failed)}" if failed else "all gates passed"
    print(f"\nThe default fit, against the same model sampled: {verdict}.")
    if options.out is not None:
        import jax
        import numpyro

        machine = {
            "fidm": fidm.__version__, "python": platform.python_version(), "numpy": np.__version__,
            "jax": jax.__version__, "numpyro": numpyro.__version__, "system": platform.platform(),
            "cores": os.cpu_count(), "device": str(jax.devices()[0].device_kind),
        }  # fmt: skip
        settings = {name: value for name, value in vars(options).items() if name != "out"}
        whole = {
            "machine": machine,
            "settings": settings,
            "fit_seconds": seconds,
            "comparisons": [
                {"of": title, "chains": chains, "parameters": rows} for title, chains, rows in found
            ],
            "gates": gates,
        }
        with whole_file(options.out) as part:
            part.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
