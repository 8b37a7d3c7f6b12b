"""Whether rival accounts of choice are told from each other, and how well their parameters are found.

Run from the repository root, with two threads at most; every part is asked for by its name::

    nice python benchmarks/rivals.py --confusion 5        # cohorts of each model: which one wins
    nice python benchmarks/rivals.py --recovery           # two-parameter models, 100 people × 60 choices
    nice python benchmarks/rivals.py --coverage 20        # 95 % intervals at 8, 15, 40 people
    nice python benchmarks/rivals.py --speed              # CPU seconds
    nice python benchmarks/rivals.py --walkers            # simulated people who plan routes, no softmax
    nice python benchmarks/rivals.py --data ~/data        # published data sets (needs fidm-studies)

``--out FILE`` also writes what is printed as JSON. The confusion matrix has two tables: the model with the
highest held-out log-likelihood by people, and how often some model beats the true one beyond chance (the 95 %
interval of the difference lies above 0). Where the truth is nested in a larger model (as softmax
is), that the larger one is ahead by a hair is no false finding; the second table says whether it is one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import mannwhitneyu, spearmanr

import fidm
from fidm.action_models import (
    ActionModel,
    Depth,
    Discounting,
    GoalAtATime,
    Lapse,
    Random,
    Softmax,
    Stickiness,
    World,
)
from fidm.cohort import Cohort
from fidm.experiments.rivals import ModelComparison
from fidm.fit.action_fit import ActionFit, Sharing, learn_shared, tabulate
from fidm.model.action_models import list_chosen
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet

ETA = (24.0, 0.42)
PEOPLE, CHOICES = 40, 60
QUICK = {"replicates": 2, "bootstrap": 200}
FULL = {"replicates": 50, "bootstrap": 1000}

TRUTHS: tuple[tuple[ActionModel, dict[str, tuple[float, float]]], ...] = (
    (Softmax(), {"action_sensitivity": ETA}),
    (Lapse(), {"action_sensitivity": ETA, "lapse_rate": (0.1, 0.5)}),
    (Stickiness(), {"action_sensitivity": ETA, "repeat": (1.0, 0.5)}),
    (Stickiness("way"), {"action_sensitivity": ETA, "step_back": (-1.0, 0.5)}),
    (Discounting(), {"action_sensitivity": ETA, "discount": (0.9, 0.4)}),
    (Depth(), {"action_sensitivity": ETA, "depth": (3.0, 0.7)}),
    (GoalAtATime(), {"action_sensitivity": ETA}),
    (GoalAtATime("chosen"), {"action_sensitivity": ETA}),
    (Random(), {}),
)
"""Every model, and what people are like who choose by it: median, and sd on the free scale."""

Found = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        cells = (f"{one:.3g}" if isinstance(one, float) else str(one) for one in row)
        print("| " + " | ".join(cells) + " |", flush=True)


def halls(n: int = 4) -> tuple[TaskModel, ...]:
    """Return small mazes with one way out, in which bumping into a wall costs a step."""
    found = []
    for number in range(n):
        rng = np.random.default_rng([number, 7])
        side = 5
        free = rng.random((side, side)) > 0.2
        free[0, 0] = free[-1, -1] = True
        cell = np.arange(side * side).reshape(side, side)
        to = np.empty((side * side, 4), dtype=np.int64)
        for (y, x), own in np.ndenumerate(cell):
            for k, (dy, dx) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
                ny, nx = y + dy, x + dx
                fits = 0 <= ny < side and 0 <= nx < side and free[ny, nx]
                to[own, k] = cell[ny, nx] if fits else own
        reward = np.where(to == side * side - 1, 1.0, -0.04)
        to[-1] = -1
        found.append(
            TaskModel.from_arrays(to, reward, gamma=0.95, tau=0.05, name=f"hall-{number}", actions="NSWE")
        )
    return tuple(found)


# ---------------------------------------------------------------------- which model


def confusion(cohorts: int, *, mazes: bool) -> Found:
    """Simulate cohorts by each model and compare all models on each."""
    task: Any = halls() if mazes else fidm.load_task("grocery")
    truths = [one for one in TRUTHS if not one[0].problems(TaskSet.of(task))]
    names = [model.name for model, _ in truths]
    best = {name: dict.fromkeys(names, 0) for name in names}
    beyond = {name: dict.fromkeys(names, 0) for name in names}
    ahead: dict[str, dict[str, list[float]]] = {name: {other: [] for other in names} for name in names}
    protected: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(1, cohorts + 1):
        for model, people in truths:
            cohort = fidm.simulate_choices(
                task, model, people, PEOPLE, seed=seed, max_steps=15 if mazes else CHOICES
            )
            ordered = [model, *(other for other, _ in truths if other.name != model.name)]
            found = fidm.compare_models(task, cohort, ordered, seed=seed, **QUICK)  # type: ignore[arg-type]
            best[model.name][found.best] += 1
            for row in found.models.iter_rows(named=True):
                beyond[model.name][row["model"]] += row["people_low"] > 0
                ahead[model.name][row["model"]].append(row["people_difference"])
            protected[model.name].append(found.row(model.name)["protected"])
            beaten = found.models.filter(pl.col("people_low") > 0)["model"].to_list()
            gains = " ".join(f"{name} {1000 * own[-1]:.1f}" for name, own in ahead[model.name].items())
            print(f"{seed} {model.name}: best {found.best}; beaten by {beaten}; {gains}", flush=True)
    where = "four small mazes" if mazes else "grocery"
    print(f"\n{where}: true model (rows), and how often each model predicts held-out people best")
    table(["true", *names], [[name, *best[name].values()] for name in names])
    print("\nhow often each model beats the true one beyond chance")
    table(["true", *names], [[name, *beyond[name].values()] for name in names])
    print("\nmean difference to the true model, nats per 1,000 choices")
    table(
        ["true", *names],
        [[name, *(f"{1000 * np.mean(own):.1f}" for own in ahead[name].values())] for name in names],
    )
    return {"best": best, "beyond": beyond, "ahead": ahead, "protected": protected}


# ---------------------------------------------------------------------- parameters


def recovery() -> Found:
    """Estimate two-parameter models from 60 choices of each of 100 people."""
    task = fidm.load_task("grocery")
    world = World(TaskSet.of(task))
    found, rows = {}, []
    for model, people in TRUTHS:
        if len(people) < 2:
            continue
        cohort = fidm.simulate_choices(task, model, people, 100, seed=11, max_steps=CHOICES)
        fit = fidm.fit_action_model(task, cohort, model, world=world)
        for one in fit.seen.parameters:
            said = found_one(fit, cohort, one.name)
            rows.append([model.name, one.name, *said.values()])
            found[f"{model.name}.{one.name}"] = said
    head = (
        "model",
        "parameter",
        "r",
        "expected r",
        "spearman",
        "covered",
        "low_information",
        "few",
        "at_edge",
    )
    table(head, rows)
    return found


def found_one(fit: ActionFit, cohort: Cohort, name: str) -> Found:
    """Compare one parameter's estimates with the truth, on the free scale."""
    one = next(own for own in fit.seen.parameters if own.name == name)
    true = cohort.participants[f"true_{name}"].to_numpy()
    own = fit.table.filter(parameter=name)
    estimate, low, high = (own[column].to_numpy() for column in ("estimate", "low", "high"))
    x, y = np.array([one.free(v) for v in true]), np.array([one.free(v) for v in estimate])
    se, sd = own["se"].to_numpy(), float(fit.population.filter(parameter=name)["sd"][0])
    status = own["status"].cast(str)
    return {
        "r": float(np.corrcoef(x, y)[0, 1]),
        "expected": float(np.sqrt(np.clip(1 - np.mean(se**2) / sd**2, 0, 1))),
        "spearman": float(spearmanr(x, y)[0]),
        "covered": float(np.mean((low <= true + 1e-12) & (true <= high + 1e-12))),
        **{
            kind: float((status == kind).mean())  # type: ignore[arg-type]
            for kind in ("low_information", "few_observations", "at_edge")
        },
    }


def coverage(seeds: int) -> Found:
    """Count how often 95 % intervals of people hold the truth, and those of the mean of people."""
    task = fidm.load_task("grocery")
    world = World(TaskSet.of(task))
    found, rows = {}, []
    for model, people in (TRUTHS[0], TRUTHS[2]):
        for n in (8, 15, 40):
            for choices in (15, 60):
                inside: dict[str, list[float]] = {}
                centre: dict[str, list[bool]] = {}
                for seed in range(seeds):
                    cohort = fidm.simulate_choices(task, model, people, n, seed=seed + 100, max_steps=choices)
                    fit = fidm.fit_action_model(task, cohort, model, world=world)
                    for one in fit.population.iter_rows(named=True):
                        name = one["parameter"]
                        parameter = next(p for p in fit.seen.parameters if p.name == name)
                        away = abs(one["mean"] - parameter.free(people[name][0]))
                        inside.setdefault(name, []).append(found_one(fit, cohort, name)["covered"])
                        centre.setdefault(name, []).append(away <= 1.96 * one["mean_se"])
                for name, own in inside.items():
                    # people of a cohort share what was learned, so the error is that of cohorts
                    error = float(np.std(own, ddof=1) / np.sqrt(seeds))
                    said = [float(np.mean(own)), 1.96 * error, float(np.mean(centre[name]))]
                    rows.append([model.name, name, n, choices, *said])
                    found[f"{model.name}.{name}.{n}.{choices}"] = said
    table(["model", "parameter", "people", "choices", "covered", "±", "mean covered"], rows)
    return found


# ---------------------------------------------------------------------- speed


def speed() -> Found:
    """Measure CPU seconds of the two longest things people ask for."""
    task = fidm.load_task("grocery")
    cohort = fidm.simulate_cohort(task, 400, seed=1, max_steps=CHOICES)
    found = {}
    for name, do in (
        ("fit Discounting, 400 people", lambda: fidm.fit_action_model(task, cohort, Discounting())),
        ("compare_models of all, 40 people", lambda: fidm.compare_models(task, cohort[np.arange(40)])),
    ):
        begun = time.process_time()
        do()
        found[name] = time.process_time() - begun
    table([f"grocery, {task.n_states} states, {CHOICES} choices", "CPU-s"], list(found.items()))
    return found


# ---------------------------------------------------------------------- people who go by no model


def shown(title: str, found: ModelComparison) -> Found:
    """Print the comparison of models."""
    print(f"\n{title}: {found.people.height} people, {found.people['n'].sum()} choices")
    rows = [
        [
            row["model"],
            *(f"{row[f'by_{way}']:.4f}" for way in ("people", "trials")),
            f"{1000 * row['people_difference']:+.1f} ({1000 * row['people_low']:+.1f} to "
            f"{1000 * row['people_high']:+.1f})",
            f"{1000 * row['trials_difference']:+.1f} ({1000 * row['trials_low']:+.1f} to "
            f"{1000 * row['trials_high']:+.1f})",
            f"{row['frequency']:.2f}",
            f"{row['protected']:.2f}",
        ]
        for row in found.models.iter_rows(named=True)
    ]
    head = ("model", "by people", "by trials", "gain × 1000 (people)", "gain × 1000 (trials)", "frequency",
            "protected")  # fmt: skip
    table(head, rows)
    misses = found.criticism.misses(found.best)["statistic"].to_list()
    print(f"\n{found.best} fails to describe: {', '.join(misses) or 'nothing that is counted'}")
    return found.to_dict()


def split_half(task: Any, cohort: Cohort, models: Sequence[ActionModel]) -> Found:
    """Correlate estimates of odd and even trials (episodes, or quarters of the only one) over people.

    Estimates are posterior means on the free scale, with what people share learned from everything; people
    without a choice in a half are left out. ``full length`` is the correlation stepped up.
    """
    world, found, rows = World(TaskSet.of(task)), {}, []
    for model in models:
        made = list_chosen(world, cohort, remembers=model.remembers)
        rank = np.arange(made.n_trials) - np.searchsorted(made.owner, made.owner)
        seen = tabulate(model, made, rank % 2, 2)
        learning, mode = Sharing(seen), learn_shared(seen).mode
        both = np.bincount(made.owner, rank % 2, minlength=len(made.n)) > 0
        for k, one in enumerate(seen.parameters):
            x, y = (
                np.add.reduceat(
                    learning._sums(learning.log_prior(mode) + own)[1] * seen.x[:, k], seen.offsets[:-1]
                )[both]
                for own in seen.held
            )
            said = float(spearmanr(x, y)[0]), float(np.corrcoef(x, y)[0, 1])
            rows.append([model.name, one.name, int(both.sum()), *said, 2 * said[1] / (1 + said[1])])
            found[f"{model.name}.{one.name}"] = said
    table(["model", "parameter", "people", "rank r of halves", "r of halves", "full length"], rows)
    return found


def walkers(n: int) -> Found:
    """Compare models on simulated people who plan routes to what they need and err on the way."""
    task = fidm.load_task("grocery")
    cohort = fidm.simulate_cohort(task, n, seed=1, agent="walker")
    found = shown("walkers", fidm.compare_models(task, cohort, **FULL))  # type: ignore[arg-type]
    print("\nodd against even quarters of each walk")
    models = (Softmax(), Lapse(), Stickiness(), Discounting(), GoalAtATime(), GoalAtATime("chosen"))
    return {"comparison": found, "halves": split_half(task, cohort, models)}


SPACE: tuple[ActionModel, ...] = (
    Softmax(), Lapse(), Stickiness(), Discounting(), Depth((1.0, 2.0, 3.0)), Random(),
)  # fmt: skip


def space_adventure(data: Path) -> Found:
    """Compare models on older and younger adults, and planning depths with the published ones."""
    from fidm_studies.dataset import load
    from fidm_studies.space_adventure.dataset import STUDENTS

    loaded = load("space-adventure", data)
    age = loaded.cohort.participants["age_group"]
    fits = loaded.tables["published_fits"]
    found: Found = {}
    for group in ("young", "old"):
        chosen = np.flatnonzero(age.str.starts_with(group).fill_null(False).to_numpy())
        cohort = loaded.cohort[chosen]
        names = set(cohort.episodes["task"].unique())
        tasks = [task for task in loaded.tasks if task.name in names]
        compared = fidm.compare_models(tasks, cohort, SPACE, **FULL)  # type: ignore[arg-type]
        found[group] = shown(f"Space Adventure, {group}", compared)
    both = loaded.cohort[np.flatnonzero(age.is_not_null().to_numpy())]
    adults = loaded.cohort[np.flatnonzero((loaded.cohort.participants["source"] != STUDENTS).to_numpy())]
    world = World(TaskSet.of(loaded.tasks))
    adult_age = adults.participants["age_group"].to_numpy()
    known = dict(zip(fits["participant"], fits["mean_planning_depth"], strict=True))
    both_have = np.array([known.get(person) is not None for person in adults.ids])
    published = np.array([known[person] for person in adults.ids.filter(pl.Series(both_have))])
    rows: list[list[object]] = []
    for model, name in ((SPACE[4], "depth"), (SPACE[3], "discount"), (SPACE[0], "action_sensitivity")):
        own = posterior_mean(fidm.fit_action_model(loaded.tasks, adults, model, world=world), name)
        medians = [float(np.median(own[adult_age == group])) for group in ("young", "old")]
        p = float(mannwhitneyu(own[adult_age == "young"], own[adult_age == "old"]).pvalue)
        rows.append([name, *medians, p, len(published), float(spearmanr(own[both_have], published)[0])])
    print("\nposterior means of adults by age, and against the published mean planning depth")
    table(["parameter", "median young", "median old", "p", "people", "Spearman with published depth"], rows)
    found["published"] = rows
    print("\nodd against even mini-blocks, both age groups")
    found["halves"] = split_half(loaded.tasks, both, SPACE[:5])
    return found


def posterior_mean(fit: ActionFit, parameter: str) -> np.ndarray:
    """Return the mean of everybody's value, averaged over levels."""
    k = [one.name for one in fit.seen.parameters].index(parameter)
    one = fit.seen.parameters[k]
    return np.add.reduceat(fit.weight * one.value(fit.seen.x[:, k]), fit.seen.offsets[:-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--confusion", type=int, default=0, metavar="COHORTS")
    parser.add_argument("--mazes", action="store_true", help="the confusion matrix on four small mazes")
    parser.add_argument("--recovery", action="store_true")
    parser.add_argument("--coverage", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--walkers", type=int, default=0, metavar="PEOPLE")
    parser.add_argument("--data", type=Path, help="the folder of published data sets")
    parser.add_argument("--out", type=Path, help="a JSON file")
    asked = parser.parse_args()
    found: Mapping[str, Any] = {
        name: do()
        for name, wanted, do in (
            ("confusion", asked.confusion, lambda: confusion(asked.confusion, mazes=asked.mazes)),
            ("recovery", asked.recovery, recovery),
            ("coverage", asked.coverage, lambda: coverage(asked.coverage)),
            ("speed", asked.speed, speed),
            ("walkers", asked.walkers, lambda: walkers(asked.walkers)),
            ("space_adventure", asked.data, lambda: space_adventure(asked.data)),
        )
        if wanted
    }
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
