"""Tiny made-up files in the formats of the Space Adventure Task: nobody ever flew these flights.

People choose by softmax of values that are worked out here once more, by plain loops from the task's rules,
so that the published table of values (with a misprint of its own) is a check on the solver as well.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.io import savemat

COST = (2, 5)
TARGET = (4, 3, 4, 5, 1, 1)
HIT = {"low": 0.9, "high": 0.5}
CONDITIONS = [(steps, noise) for steps in (2, 3) for noise in ("low", "high")] * 3
"""Twelve mini-blocks."""

OLDER = [f"2990000{k}" for k in range(1, 7)] + ["09091"]
YOUNGER = [f"0910{k}" for k in range(1, 8)]
ALCOHOL = [f"0930{k}" for k in range(1, 7)]
CONTROL = ["09091", "09101", "09102", "09103", "09501", "09502", "09503"]
"""One older and three younger people are controls as well: four are in both studies."""

STUDENTS = ["23", "24", "25", "26", "27"]
SHORT = "27"
"""The student whose fuel runs out."""

UNNAMED = "09501"
"""The control whose file has no age and gender."""

MISPRINTED = (3, 2, 1)
"""The mini-block, depth and action whose published value is a thousand times what it should be."""


def write(folder: Path, *, seed: int = 1) -> None:
    """Write all files into the data set's own folder."""
    rng = np.random.default_rng(seed)
    planets = rng.integers(1, 6, (len(CONDITIONS), 6))
    starts = rng.integers(0, 6, len(CONDITIONS))
    age, aud = folder / "plandepth_age" / "data", folder / "plandepth_aud" / "data"
    people = {}
    for name in [*OLDER, *YOUNGER, *ALCOHOL, *CONTROL, *STUDENTS]:
        if name not in people:
            is_old = name in OLDER
            people[name] = _person(planets, starts, rng, is_old=is_old)
    for name in OLDER:
        file = (
            f"b09_{name}_spacetask_file_exp.mat"
            if name.startswith("0")
            else f"part_{name}_01-Jan-2000_10-00.mat"
        )
        _session(age / "OldAdults/space_adventure/Experiment" / file, people[name], 70)
        _tests(age / "OldAdults", ("Identical Pictures", "Spot a Word", "Spatial Working Memory"), name, 0.5)
    for name in YOUNGER:
        _session(
            age / f"YoungAdults/space_adventure/Experiment/b09_{name}_spacetask_file_exp.mat",
            people[name],
            25,
        )
        _tests(
            age / "YoungAdults", ("Identical Pictures", "Spot a Word", "Spatial Working Memory"), name, 0.7
        )
    for group, names in (("AUD", ALCOHOL), ("HC", CONTROL)):
        for name in names:
            years = np.nan if name == UNNAMED else 70 if name in OLDER else 25
            _session(aud / f"{group}/SAT/Experiment/{name}_b09_spacetask_file_exp.mat", people[name], years)
            _tests(aud / group, ("IDP", "SAW", "SWM"), name, 0.5 if name in OLDER else 0.7)
    for name in STUDENTS:
        path = folder / f"pybefit_students/data/part_{name}_01-Jan-2000.mat"
        _session(path, people[name], 22, cut=name == SHORT)
    _write_fits(aud / "SAT_subjectLevel.csv", people)
    _write_values(aud / "mini-block_data.csv", planets, starts)


def value(kinds: np.ndarray, noise: str, planet: int, to_go: int, action: int) -> float:
    """What an action is worth, written straight from the rules."""
    fuel = [10 * (int(kind) - 3) for kind in kinds]
    if action == 0:
        outcomes = {(planet + 1) % 6: 1.0}
    else:
        target, miss = TARGET[planet], (1 - HIT[noise]) / 2
        outcomes = {target: HIT[noise], (target + 1) % 6: miss, (target - 1) % 6: miss}
    worth = -COST[action]
    for there, probability in outcomes.items():
        later = max(value(kinds, noise, there, to_go - 1, a) for a in (0, 1)) if to_go > 1 else 0
        worth += probability * (fuel[there] + later)
    return worth


def _person(planets, starts, rng, *, is_old):
    """One person's flights: keys, planets, reaction times and fuel, 12 mini-blocks each."""
    eta = float(np.exp(rng.normal(-2.6 if is_old else -2.0, 0.4)))
    tempo = rng.normal(0.5 if is_old else -0.2, 0.2)
    n = len(CONDITIONS)
    keys, rt, points = np.full((n, 3), np.nan), np.full((n, 3), np.nan), np.full((n, 3), np.nan)
    states, fuel = np.full((n, 4), np.nan), 1000
    for b, (steps, noise) in enumerate(CONDITIONS):
        here = int(starts[b])
        states[b, 0] = here + 1
        for t in range(steps):
            gap = value(planets[b], noise, here, steps - t, 1) - value(planets[b], noise, here, steps - t, 0)
            action = int(rng.random() < 1 / (1 + np.exp(-eta * gap)))
            there = (here + 1) % 6
            if action == 1:
                miss = (1 - HIT[noise]) / 2
                there = (TARGET[here] + int(rng.choice([0, 1, -1], p=[HIT[noise], miss, miss]))) % 6
            fuel += 10 * (int(planets[b][there]) - 3) - COST[action]
            keys[b, t], states[b, t + 1], points[b, t] = action + 1, there + 1, fuel
            rt[b, t] = np.exp((1.5 if t == 0 else -0.5) + tempo + 0.5 * rng.normal())
            here = there
    return {"keys": keys, "rt": rt, "points": points, "states": states, "planets": planets, "eta": eta}


def _session(path: Path, person, age, *, cut=False) -> None:
    """Write a session; one that is cut ends in the eighth mini-block, at a flight that did not take place."""
    arrays = {
        name: np.array(person[name], dtype=float) for name in ("keys", "rt", "points", "states", "planets")
    }
    noise = [noise for _, noise in CONDITIONS]
    steps = np.array([steps for steps, _ in CONDITIONS], dtype=float)
    if cut:
        arrays["points"] -= arrays["points"][7, 0] - 4
        for array in arrays.values():
            array[8:] = np.nan
        steps[8:], noise = np.nan, noise[:8]
        arrays["keys"][7, 1], arrays["states"][7, 2] = 2, arrays["states"][7, 1]  # a jump it had no fuel for
        arrays["points"][7, 1:] = np.nan
        for array, first in ((arrays["keys"], 2), (arrays["rt"], 2), (arrays["states"], 3)):
            array[7, first:] = np.nan
    data = {
        "Age": age,
        "Gender": np.nan if np.isnan(age) else int(1000 * person["rt"][0][0]) % 2,
        "Group": 0,
        "Responses": {"RT": arrays["rt"], "Keys": arrays["keys"]},
        "States": arrays["states"],
        "Points": arrays["points"],
        "PlanetConf": arrays["planets"],
        "Conditions": {"notrials": steps[:, None], "noise": np.array([noise], dtype=object)},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"data": data})


def _tests(folder: Path, names, person: str, share: float) -> None:
    """Write the three other tests, with rows that do not count: too fast, too late, and training."""
    plain = "VPID\tSESSID\tDATE\tRESP\tCRESP\tACC\tRESPT"
    seed = int(person) % 1000
    for name, ending, items in ((names[0], "idp", 46), (names[1], "wst", 35)):
        right = round((share + 0.002 * (seed % 90)) * items)
        rows = [f"{person}\t1\t1.1.2000\t2\t2\t{int(i < right)}\t900" for i in range(items - 2)]
        rows += [f"{person}\t1\t1.1.2000\t2\t2\t1\t149", f"{person}\t1\t1.1.2000\t0\t2\t1\t900"]
        _text(folder / name / f"{person}_b09_{ending}_file.txt", [plain, *rows])
    right = round((share + 0.003 * (seed % 70)) * 96)
    rows = [f"{person}\t{i}\t900\t-999\t1\t-999\t1\t-999\t" for i in range(4)]
    rows += [f"{person}\t{i}\t900\t-999\t1\t-999\t{int(i < right)}\t-999\t" for i in range(95)]
    rows += [f"{person}\t95\t9\t-999\t1\t-999\t1\t-999\t"]
    head = "VPID\tTRIAL\tRT1\tRT2\tResp1\tResp2\tCorr1\tCorr2"
    _text(folder / names[2] / f"{person}_b09_swm_file.txt", [head, *rows])


def _text(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\r\n".join(lines) + "\r\n", "utf-8")


def _write_fits(path: Path, people) -> None:
    columns = ["ID", "age", "gender", "SAT_Total_points", "IDP_PER", "SWM_PER", "MeanPD"]
    columns += ["model_alpha", "model_beta", "model_theta"]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["", *columns])
        for i, name in enumerate([*ALCOHOL, *CONTROL[:-1]]):
            beta = 20 * people[name]["eta"]
            table.writerow(
                [i, name, 25.0, 0.0, 900.0, 70.0, 70.0, 1.5 + beta / 9, 0.01 * i, beta, 0.1 * (i % 3)]
            )


def _write_values(path: Path, planets, starts) -> None:
    kinds = [f"p{k}" for k in range(1, 7)]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["block_id", "start", "noise", "steps", *kinds, "depth", "Q", "action"])
        for b, (steps, noise) in enumerate(CONDITIONS):
            fuel = [10.0 * (int(kind) - 3) for kind in planets[b]]
            for depth in range(1, steps + 1):
                for action in (0, 1):
                    q = value(planets[b], noise, int(starts[b]), depth, action) + 1e-6
                    q = 1000 * q if (b + 1, depth, action) == MISPRINTED else q
                    row = [b + 1, int(starts[b]) + 1, int(noise == "high"), steps, *fuel, depth, q, action]
                    table.writerow(row)
