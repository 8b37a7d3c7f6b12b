"""How far ends of effort intervals are off because finitely many plausible populations stand for all of them.

``python benchmarks/plausible.py`` fits small simulated studies with the usual number of populations, with 64,
and with 8,192, which count as exact, and prints by how many posterior standard deviations ends of intervals
differ: the median, 95 % and the largest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import fidm
from fidm.fit import plausible

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "recovery"))
from strangers import Regime, draw, task_values

REGIMES = {
    "8 people": Regime(people=8),
    "15 people": Regime(people=15),
    "30 people": Regime(people=30),
    "30 people, 10 actions, 3 segments": Regime(people=30, actions=10, segments=3),
}
EXACT, SEEDS = 8_192, range(400, 403)


def main() -> None:
    """Print the table."""
    task, _ = task_values("grocery")
    model, usual = fidm.Model(task, values=fidm.solve(task), lapse=0.0), plausible.points_for
    for name, regime in REGIMES.items():
        off: dict[str, list[np.ndarray]] = {"usual": [], "64": []}
        for seed in SEEDS:
            cohort = draw(regime, seed)[0]
            ends, scale = {}, np.ones(1)
            for way, points in (("exact", lambda _: EXACT), ("usual", usual), ("64", lambda _: 64)):
                plausible.points_for = points
                profile = model.fit(cohort).profile(cohort)
                ends[way] = np.stack([profile.low, profile.high])[:, :, 1:]
                scale = profile.se[:, 1:] if way == "exact" else scale
            for way, found in off.items():
                found.append((np.abs(ends[way] - ends["exact"]) / scale).ravel())
        plausible.points_for = usual
        for way, found in off.items():
            all_ends = np.concatenate(found)
            middle, most, largest = np.nanquantile(all_ends, [0.5, 0.95, 1.0])
            print(
                f"{name:36} {way:6} median {middle:.3f}  95 % {most:.3f}  largest {largest:.3f}", flush=True
            )


if __name__ == "__main__":
    main()
