"""How long the tables of classification take, and how much they vary from one simulated study to the next.

Run from the repository root, with the development environment::

    python benchmarks/classify.py --out benchmarks/results/classify.json [--seeds 10]

*Time*: a simulated study of 402 people is written, without dialogs, and classified as ``fidm classify`` does
by default, without language: nine representations, two settings, five repetitions, a hundred scrambles.
Beside it, one repetition of the binary question is done the plain way, by a scikit-learn pipeline for every
representation, which learns what people share again for each. The ratio is of times per cross-validation.

*Spread* (``--seeds``): the tables of so many studies of each agent, to show how far a single study's numbers
can be trusted: mean and standard deviation over studies, beside the standard errors that studies report.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import polars as pl
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import fidm
import fidm.study
from fidm.classify.features import make_blocks, representation, usual
from fidm.experiments.shared import classifier


def study(place: str, seed: int, agent: str) -> tuple[fidm.TaskModel, fidm.Cohort]:
    fidm.study.simulate_study(f"{place}/twin", seed=seed, agent=agent, dialogs=False)
    return fidm.load_task("grocery"), fidm.read_cohort(f"{place}/twin")


def times(workers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        task, cohort = study(place, 1, "walker")
    fidm.study.classify(task, cohort[:60], representations=["fidm"], repeats=1, permutations=0)  # compile
    start = time.perf_counter()
    found = fidm.study.classify(task, cohort, workers=workers)
    ours = time.perf_counter() - start
    n_ours = 5 * len(found.representations) * 2
    train = cohort.split("train")
    label = train.participants["diagnosis"].to_numpy()
    ill = label != "normal"
    folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(label, label))
    start = time.perf_counter()
    blocks = make_blocks(found.representations, [task], train)
    for name in found.representations:
        pipeline = make_pipeline(representation(name, blocks), classifier())
        cross_val_predict(pipeline, train, ill, cv=folds, method="predict_proba")
    plain = time.perf_counter() - start
    n_plain = len(found.representations)
    ratio = (plain / n_plain) / (ours / n_ours)
    print(f"whole table, {workers} processes: {ours:.1f} s ({n_ours} cross-validations and 600 scrambles)")
    print(f"plain pipelines: {plain:.1f} s ({n_plain} cross-validations); per cross-validation {ratio:.1f}×")
    return {"seconds": ours, "workers": workers, "plain_seconds": plain, "ratio": ratio}


def spread(agent: str, seeds: list[int]) -> list[dict[str, object]]:
    tables = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as place:
            task, cohort = study(place, seed, agent)
        chosen = usual()
        found = fidm.study.classify(
            task, cohort, representations=chosen, repeats=1, permutations=0, seed=seed
        )
        scores = found.scores.with_columns(against=pl.lit(None, pl.String))
        gains = found.differences.filter(pl.col("against") != "fidm").with_columns(
            n_features=pl.lit(None, pl.Int64)
        )
        columns = ["setting", "part", "metric", "representation", "against", "value", "se"]
        tables.append(pl.concat([scores.select(columns), gains.select(columns)]))
    keys = ["setting", "part", "metric", "representation", "against"]
    table = (
        pl.concat(tables)
        .group_by(keys, maintain_order=True)
        .agg(
            mean=pl.col("value").mean(),
            sd=pl.col("value").std(),
            se=(pl.col("se") ** 2).mean().sqrt(),
            positive=(pl.col("value") > 0).mean(),
        )
    )
    print(
        f"\n{agent}, seeds {seeds[0]} to {seeds[-1]}: mean and sd over studies, and the error a study reports"
    )
    for row in table.filter(metric="auc").iter_rows(named=True):
        name = (
            row["representation"] if row["against"] is None else f"{row['representation']} − {row['against']}"
        )
        print(
            f"{row['setting']:<11}{row['part']:<9}{name:<46}{100 * row['mean']:>6.1f}{100 * row['sd']:>6.1f}"
            f"{100 * row['se']:>6.1f}"
        )
    return table.to_dicts()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=0)
    options = parser.parse_args()
    report: dict[str, object] = {"machine": platform.machine(), "time": times(options.workers)}
    if options.seeds:
        seeds = list(range(1, options.seeds + 1))
        report["spread"] = {agent: spread(agent, seeds) for agent in ("model", "walker")}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        print(f"Wrote {options.out}")


if __name__ == "__main__":
    main()
