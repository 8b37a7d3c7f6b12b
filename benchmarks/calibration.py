"""Are posteriors calibrated: those of :meth:`fidm.Model.fit`, or with ``--sampled`` those of the full model?

Run from the repository root; studies are dealt to processes::

    python benchmarks/calibration.py [--people 40] [--actions 15] [--studies 200] [--sampled] [--joint]

Simulated people do the built-in task ``grocery`` for so many actions at most; their true parameters are
ranked among draws of their posteriors (:func:`fidm.study.calibrate`), and the ranks of all processes are
judged together. A line per parameter: how often 50, 80 and 95 % intervals hold the truth with standard
errors by study, the mean rank (0.5 where estimates are neither too high nor too low), and the p-value of
uniform ranks. On a GPU, processes share it: set ``XLA_PYTHON_CLIENT_PREALLOCATE=false``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import polars as pl

import fidm
import fidm.study
from fidm.experiments.calibrate import judged


def part(options: argparse.Namespace, studies: int, seed: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Ranks of some of the studies."""
    warnings.simplefilter("ignore")
    task = fidm.load_task("grocery")
    like = fidm.simulate_cohort(task, options.people, seed=99, max_steps=options.actions)
    found = fidm.study.calibrate(
        task, like=like, studies=studies, seed=seed, spread="paper", effort_sd=0.3, joint=options.joint,
        sampled=options.sampled, populations=options.populations, workers=1,
    )  # fmt: skip
    return found.ranks.with_columns(study=pl.col("study") + 100_000 * seed), found.notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--actions", type=int, default=15, help="how many actions people make at most")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first seed; every process has its own")
    parser.add_argument("--sampled", action="store_true", help="sample the full model instead of fitting")
    parser.add_argument("--populations", choices=("same", "drawn"), default="same")
    parser.add_argument("--joint", action="store_true", help="let parameters be correlated")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    begun, n = time.perf_counter(), options.processes
    with ProcessPoolExecutor(n, multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(part, options, -(-options.studies // n), options.first + i) for i in range(n)]
        found = [job.result() for job in jobs]
    ranks = pl.concat(own for own, _ in found)
    way = ("sampled" if options.sampled else "fitted") + (" jointly" if options.joint else "")
    print(
        f"{options.people} people × {options.actions} actions, {ranks['study'].n_unique()} studies, {way}, "
        f"{time.perf_counter() - begun:.0f} s"
    )
    for name in ranks["parameter"].unique(maintain_order=True):
        row = judged(name, ranks.filter(parameter=name), 199, options.first)
        held = "  ".join(f"{row[f'held_{k}']:.1%} ± {row[f'held_{k}_se']:.1%}" for k in (50, 80, 95))
        rank = f"mean rank {row['mean_rank']:.3f} ± {row['mean_rank_se']:.3f}"
        print(f"{name:24} {held}  {rank}  p {row['p']:.2f}")
    print(*dict.fromkeys(note for _, notes in found for note in notes), sep="\n")


if __name__ == "__main__":
    main()
