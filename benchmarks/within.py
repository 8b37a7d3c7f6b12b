"""How well changes within people are found, where people make fewer choices at their second visit.

Run from the repository root; a hundred studies of one regime take about a minute::

    python benchmarks/within.py [--studies 200] [--people 30] [--effect 0.4] [--slope-sd 0.3] [--effort]

People do the built-in task ``grocery`` at two visits, for so many actions each (``--actions 60/20``). Each
has an own log η and an own change of it, drawn here: N(0, 0.42²) and N(effect, slope sd²); with ``--effort``
so has the duration of segments, N(0, 0.35²) and the same change. A line per parameter: how often p < .05, how
often the 95 % interval holds the mean change, the mean error with its Monte-Carlo error, the sd of estimates
over the mean standard error, and how often people are said to change differently. The same of episodes
treated as independent people. The lapse rate is held at 0. Seeds are 0, 1, 2 and on.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import polars as pl

import fidm
from fidm.cohort import Cohort
from fidm.fit.common import Data
from fidm.fit.regression import Regressed, regress_offsets, regress_sensitivity
from fidm.fit.within import offsets_within, sensitivity_within
from fidm.model.effort import paper_channels
from fidm.simulate.cohort import People
from fidm.tasks.stack import TaskSet

USUAL = People()
ALIKE = People(log_sensitivity_sd=1e-9, effort_sd=1e-9)
DURATION = paper_channels()[:1]


def two_visits(
    task: fidm.TaskModel, n: int, actions: tuple[int, int], effect: float, slope_sd: float, seed: int
) -> Cohort:
    """Return people at two visits, whose log η and θ of duration change by the effect on average."""
    rng = np.random.default_rng([seed, n, 77])
    level = rng.normal(size=(n, 6)) * np.array([USUAL.log_sensitivity_sd, *[USUAL.effort_sd] * 5])
    change = effect + slope_sd * rng.normal(size=(n, 6))
    parts = [
        fidm.simulate_cohort(
            task, n, seed=seed, first=n * visit, max_steps=most, people=ALIKE, shifts=level + visit * change
        )
        for visit, most in enumerate(actions)
    ]
    units = Cohort.concat(parts)[np.arange(2 * n).reshape(2, n).T.ravel()]
    visits = pl.DataFrame({"episode": ["1", "2"] * n, "visit": [1, 2] * n})
    return replace(
        units,
        participants=units.participants[::2],
        episodes=visits.insert_column(1, units.episodes["task"]),
        episode_offsets=np.arange(0, 2 * n + 1, 2),
    )


def one_study(tasks: TaskSet, q: np.ndarray, cohort: Cohort, *, effort: bool) -> dict[str, Regressed]:
    """Return the change of log η, and of θ, by both ways."""
    channels = DURATION if effort else ()
    data = Data.of(tasks, q, channels, {}, cohort.by_episode(), need_columns=True, inferred=0.0)
    owner, z = cohort.episode_owner(), cohort.episodes["visit"].to_numpy()[:, None].astype(float)
    found = {
        "η": sensitivity_within(data.choices, owner, z, lapse=0.0),
        "η, episodes as people": regress_sensitivity(data.choices, z - z.mean(), lapse=0.0),
    }
    if effort:
        found["duration"] = offsets_within(DURATION[0], data.effort[0], {}, owner, z)
        found["duration, episodes as people"] = regress_offsets(
            DURATION[0], data.effort[0], {}, z - z.mean(), ["visit"]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--effect", type=float, nargs="*", default=[0.0, 0.4])
    parser.add_argument("--slope-sd", type=float, nargs="*", default=[0.0, 0.3])
    parser.add_argument("--actions", nargs="*", default=["60/60", "20/20", "60/20"])
    parser.add_argument("--effort", action="store_true", help="duration, too")
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    tasks = TaskSet.of(task)
    q = tasks.values([fidm.solve(task)])
    for said in options.actions:
        first, second = (int(part) for part in said.split("/"))
        for effect in options.effect:
            for slope_sd in options.slope_sd:
                found = []
                for seed in range(options.first, options.first + options.studies):
                    cohort = two_visits(task, options.people, (first, second), effect, slope_sd, seed)
                    found.append(one_study(tasks, q, cohort, effort=options.effort))
                change = f"change {effect:g} ± {slope_sd:g}"
                print(f"\n{options.people} people, {said} actions, {change}, {options.studies} studies")
                head = ("p < .05", "holds", "mean error", "sd / se", "differ")
                print(f"{'':30}{head[0]:>9}{head[1]:>9}{head[2]:>19}{head[3]:>9}{head[4]:>9}")
                for name in found[0]:
                    print(f"{name:30}{summary([one[name] for one in found], effect)}", flush=True)


def summary(found: list[Regressed], effect: float) -> str:
    """Return what is printed of many estimates of one change."""
    slope, se = (np.array([getattr(one, name)[0] for one in found]) for name in ("slopes", "se"))
    ends = np.array([one.intervals(0.95) for one in found])[:, :, 0]
    p = np.array([one.p_values()[0] for one in found])
    differ = [getattr(one, "differs", False) for one in found]
    return (
        f"{np.mean(p < 0.05):>9.1%}{np.mean((ends[:, 0] <= effect) & (effect <= ends[:, 1])):>9.1%}"
        f"{slope.mean() - effect:>+12.3f} ± {slope.std() / np.sqrt(len(slope)):.3f}"
        f"{slope.std() / se.mean():>9.2f}{np.mean(differ):>9.1%}"
    )


if __name__ == "__main__":
    main()
