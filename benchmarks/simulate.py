"""How weakly the simulated twin of the study separates people, and how fast a large one is written.

Run from the repository root, with the development environment::

    python benchmarks/simulate.py --out benchmarks/results/simulate.json [--million]

For each agent and each of ten seeds, a study of 402 people is written (without dialogs, and with them where
``--dialogs`` is given) and read back. Its 332 people to learn from are fitted and profiled, and the paper's
classifier tells those with a diagnosis from those without, by five-fold cross-validation: from log η
("action"), from the four θ ("effort"), from both ("FIDM"), from the total score, and from it with the seven
subscores. The population's parameters are learned from all 332 people, as in the paper.

This is a calibration: the shifts of :mod:`fidm.simulate.people` and the slope of the walkers' slips were
chosen by looking at the means over seeds 1 to 10, without dialogs. It says nothing about people.

With ``--million``, a million people are also streamed to a temporary folder (``TMPDIR``), without dialogs.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fidm
from fidm.experiments.shared import cross_validated_auc
from fidm.simulate.twin import simulate_study

PAPER = {"action": 0.679, "effort": 0.642, "FIDM": 0.704, "total": 0.621, "total+subscores": 0.667}
"""Binary AUC by cross-validation on the training part."""

EFFORT = ("duration", "characters", "turns", "pause")


def separation(seed: int, agent: str, *, dialogs: bool = False) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        made = simulate_study(f"{place}/twin", seed=seed, agent=agent, dialogs=dialogs, formats=("csv",))
        train = fidm.read_cohort(f"{place}/twin").split("train")
    people = train.participants
    impaired = (people["diagnosis"] != "normal").to_numpy()
    features, names = fidm.Model(fidm.load_task("grocery")).fit(train).profile(train).features()
    effort = features[:, [names.index(name) for name in EFFORT]]
    action = features[:, :1]
    scores = people.select(name for name in people.columns if name.startswith("score_")).to_numpy()
    found = {
        "action": action,
        "effort": effort,
        "FIDM": np.hstack([action, effort]),
        "total": people["score_total"].to_numpy().astype(float),
        "total+subscores": scores.astype(float),
    }
    auc = {name: cross_validated_auc(values, impaired, seed=seed) for name, values in found.items()}
    return {**auc, "actions": made.n_actions / made.n_people, "segments": made.n_segments / made.n_people}


def calibration(agents: list[str], seeds: list[int], *, dialogs: bool) -> dict[str, object]:
    report: dict[str, object] = {}
    print(f"\n{'with' if dialogs else 'without'} dialogs, seeds {seeds[0]} to {seeds[-1]}")
    print(f"{'agent':<8}{'from':<18}{'mean':>7}{'sd':>7}{'paper':>8}   each seed")
    for agent in agents:
        rows = [separation(seed, agent, dialogs=dialogs) for seed in seeds]
        for name in rows[0]:
            values = np.array([row[name] for row in rows])
            sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
            paper = f"{PAPER[name]:.3f}" if name in PAPER else "–"
            digits = 3 if name in PAPER else 1
            listed = " ".join(f"{value:.{digits}f}" for value in values)
            print(f"{agent:<8}{name:<18}{values.mean():>7.{digits}f}{sd:>7.{digits}f}{paper:>8}   {listed}")
        report[agent] = rows
    return report


def million(n: int, agent: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        simulate_study(f"{place}/twin", n=n, agent=agent, dialogs=False)
        took = time.perf_counter() - begun
        size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    found = {"people": n, "seconds": took, "people_per_s": n / took, "peak_mb": peak, "disk_mb": size / 2**20}
    print(
        f"\n{agent}: {n:,} people in {took:,.0f} s, {n / took:,.0f} people/s, peak memory {peak:,.0f} MB, "
        f"{size / 2**20:,.0f} MB on disk"
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--agents", default="model,walker")
    parser.add_argument("--seeds", type=int, default=10, help="how many, from 1")
    parser.add_argument("--dialogs", action="store_true", help="also with dialogs")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--people", type=int, default=1_000_000, help="how many with --million")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    agents, seeds = options.agents.split(","), list(range(1, options.seeds + 1))
    report: dict[str, object] = {
        "fidm": fidm.__version__, "python": platform.python_version(), "machine": platform.machine(),
        "paper": PAPER,
    }  # fmt: skip
    if options.million:  # first, so that the peak of memory is its own
        report["million"] = million(options.people, agents[-1])
    report["without_dialogs"] = calibration(agents, seeds, dialogs=False)
    if options.dialogs:
        report["with_dialogs"] = calibration(agents, seeds, dialogs=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
