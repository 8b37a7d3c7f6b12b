"""What a joint prior gains, and whether its intervals hold, beside one parameter at a time.

Run from the repository root; all regimes take some minutes::

    python benchmarks/joint.py [--first 5000] [--regimes 40x60:0.3 …]

Simulated people do the built-in task ``grocery``; any two of their parameters are correlated alike, and
nobody lapses. A regime is people × actions : correlation. For one parameter at a time: the root mean square
error of log η and of θ in each channel; for the joint prior: its ratio to that. For both: the share of 95 %
intervals that hold the truth.
"""

from __future__ import annotations

import argparse

import numpy as np

import fidm
from fidm.simulate.cohort import People

NAMES = ("action_sensitivity", "duration", "characters", "turns", "pause", "pause_presence")
REGIMES = (
    "400x60:0",
    "400x60:0.3",
    "100x12:0",
    "100x12:0.5",
    "40x60:0",
    "40x60:0.3",
    "40x15:0.5",
    "15x60:0.3",
)


def one_study(
    model: fidm.Model, task: fidm.TaskModel, n: int, actions: int, r: float, seed: int
) -> np.ndarray:
    """Return errors and whether intervals hold the truth, of both ways, [way, what, person, parameter]."""
    people = People(correlation=np.full((len(NAMES),) * 2, r) + (1 - r) * np.eye(len(NAMES)))
    cohort = fidm.simulate_cohort(task, n, seed=seed, max_steps=actions, people=people)
    truth = cohort.participants.select(f"true_{name}" for name in NAMES).to_numpy().copy()
    truth[:, 0] = np.log(truth[:, 0])
    found = np.full((2, 2, n, len(NAMES)), np.nan)
    for way, joint in zip(found, (False, True), strict=True):
        profile = model.fit(cohort, joint=joint).profile(cohort)
        estimate, low, high = profile.estimate.copy(), profile.low.copy(), profile.high.copy()
        estimate[:, 0], low[:, 0], high[:, 0] = profile.log_sensitivity, np.log(low[:, 0]), np.log(high[:, 0])
        for k, name in enumerate(profile.parameters):
            own = NAMES.index(name)
            told = np.isfinite(estimate[:, k])
            way[0, told, own] = (estimate[:, k] - truth[:, own])[told]
            way[1, told, own] = ((low[:, k] <= truth[:, own]) & (truth[:, own] <= high[:, k]))[told]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1_200, help="about how many people a regime has in all")
    parser.add_argument("--first", type=int, default=5_000, help="the first seed")
    parser.add_argument("--regimes", nargs="*", default=REGIMES)
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    model = fidm.Model(task, values=fidm.solve(task), lapse=0.0)
    print(f"{'':40}" + "".join(f"{name[:10]:>12}" for name in NAMES))
    for regime in options.regimes:
        size, r = regime.split(":")
        n, actions = (int(part) for part in size.split("x"))
        studies = max(3, options.people // n)
        seeds = range(options.first, options.first + studies)
        found = np.concatenate([one_study(model, task, n, actions, float(r), seed) for seed in seeds], axis=2)
        rmse = np.sqrt(np.nanmean(found[:, 0] ** 2, axis=1))
        held = np.nanmean(found[:, 1], axis=1)
        print(f"{n} people × {actions} actions, r = {r}, {studies} studies")
        for title, row in (
            ("RMSE, one at a time", rmse[0]), ("  joint, as a ratio", rmse[1] / rmse[0]),
            ("held, one at a time", held[0]), ("  joint", held[1]),
        ):  # fmt: skip
            print(f"  {title:38}" + "".join(f"{one:12.3f}" for one in row), flush=True)


if __name__ == "__main__":
    main()
