"""How fast :func:`fidm.solve` is: against value iteration, at a million states, and against msdm.

Run from the repository root::

    python benchmarks/solve.py --out benchmarks/results/solve.json [--msdm-python .venv-bench/bin/python]

Speed is given as ratios only. All contestants of a ratio run in turn in the same run, over and over,
and each counts with the shortest of its repetitions; what a contestant needs to know of the task is
laid out before its clock starts. Everything runs on one thread (the script starts itself anew with
``OMP_NUM_THREADS=1`` and the like), so that a busy machine does not favour anybody. The exit code is 1
if one of the gates printed at the end fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import fidm
from fidm.files import whole_file
from fidm.types import Normaliser

TOLERANCE = 1e-10
"""Everybody stops when the largest change, which is the residual, is no larger than this."""

AGREEMENT = 1e-7
"""Values of two contestants may differ by this much; value iteration is off by up to 5e-9 here."""

GROCERY_REPETITIONS = 7
GRID_REPETITIONS = 3
MSDM_ROUNDS, MSDM_REPETITIONS = 3, 10

GRID_SIZE = 300
MILLION_SIZE = 1000
MSDM_SIZE = 12

GAMMA, TAU, MOVE_COST = 0.98, 0.05, -0.02

PADDED = "vectorised NumPy value iteration"
BY_ACTION = "value iteration, tables turned to [A, S]"
BY_PAIR = "value iteration over the legal pairs"

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment variables the numerical libraries read when they are loaded."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Backup = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Timed:
    """The shortest time a contestant took, and the state values it found."""

    seconds: float
    v: Floats


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table: how much longer another program took than :func:`fidm.solve`."""

    task: str
    states: int
    normaliser: Normaliser
    against: str
    ratio: float
    difference: float
    seconds: float
    fidm_seconds: float
    repetitions: int


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition the benchmark must meet."""

    condition: str
    measured: float
    passed: bool


# ---------------------------------------------------------------------- value iteration in NumPy


def looped_tables(task: fidm.TaskModel) -> tuple[Integers, Floats]:
    """Return next_state [S, A] and reward [S, A], which is -inf where an action is not legal.

    A terminal state gets one action that stays there and pays nothing, so that no state is special.
    """
    next_state = task.next_state.astype(np.int64)
    reward = task.table(task.reward, fill=-np.inf)
    ends = np.flatnonzero(task.terminal)
    next_state[ends, 0], reward[ends, 0] = ends, 0.0
    return np.maximum(next_state, 0), reward


def padded_backup(task: fidm.TaskModel) -> Backup:
    """The Bellman backup the way it is usually written: tables [S, A], illegal actions pay -inf."""
    next_state, reward = looped_tables(task)
    gamma, tau, normaliser = task.gamma, task.tau, task.normaliser
    counts = np.isfinite(reward).sum(axis=1)

    def backup(v: Floats) -> Floats:
        q = reward + gamma * v[next_state]
        best = q.max(axis=1)
        if normaliser == "max":
            return np.asarray(best)
        total = np.exp((q - best[:, None]) / tau).sum(axis=1)
        return np.asarray(best + tau * np.log(total / counts if normaliser == "mean" else total))

    return backup


def action_backup(task: fidm.TaskModel) -> Backup:
    """The same with tables [A, S], which NumPy reduces much faster, and without needless copies."""
    by_state = looped_tables(task)
    next_state, reward = np.ascontiguousarray(by_state[0].T), np.ascontiguousarray(by_state[1].T)
    gamma, tau, normaliser = task.gamma, task.tau, task.normaliser
    counts = np.isfinite(reward).sum(axis=0)

    def backup(v: Floats) -> Floats:
        q = v.take(next_state)
        q *= gamma
        q += reward
        best = q.max(axis=0)
        if normaliser == "max":
            return np.asarray(best)
        q -= best
        q *= 1.0 / tau
        total = np.exp(q, out=q).sum(axis=0)
        return np.asarray(best + tau * np.log(total / counts if normaliser == "mean" else total))

    return backup


def pair_backup(task: fidm.TaskModel) -> Backup:
    """The same over the legal pairs only, without needless copies."""
    next_state, reward = looped_tables(task)
    legal = np.isfinite(reward)
    successor, pay, counts = next_state[legal], reward[legal], legal.sum(axis=1)
    begins = np.cumsum(counts) - counts
    gamma, tau, normaliser = task.gamma, task.tau, task.normaliser

    def backup(v: Floats) -> Floats:
        q = v.take(successor)
        q *= gamma
        q += pay
        best = np.maximum.reduceat(q, begins)
        if normaliser == "max":
            return np.asarray(best)
        q -= np.repeat(best, counts)
        q *= 1.0 / tau
        total = np.add.reduceat(np.exp(q, out=q), begins)
        return np.asarray(best + tau * np.log(total / counts if normaliser == "mean" else total))

    return backup


def iterate(backup: Backup, n_states: int) -> Floats:
    """Back up from zero until no value changes by more than the tolerance."""
    v = np.zeros(n_states)
    while True:
        new = backup(v)
        change = np.abs(new - v).max()
        v = new
        if change <= TOLERANCE:
            return v


# ---------------------------------------------------------------------- tasks


def open_grid(size: int, normaliser: Normaliser) -> fidm.TaskModel:
    """An open square grid; in the middle cell a fifth action pays 1 and ends the task."""
    n_cells = size * size
    goal = n_cells // 2 + size // 2
    around = np.pad(np.arange(n_cells).reshape(size, size), 1, constant_values=-1)
    next_state = np.full((n_cells + 1, 5), -1)
    for move, (row, column) in enumerate([(0, 1), (2, 1), (1, 2), (1, 0)]):
        next_state[:-1, move] = around[row : row + size, column : column + size].reshape(-1)
    next_state[goal, 4] = n_cells
    reward = np.full(next_state.shape, MOVE_COST)
    reward[goal, 4] = 1.0
    return fidm.TaskModel.from_arrays(
        next_state, reward, gamma=GAMMA, tau=TAU, normaliser=normaliser, name=f"grid_{size}"
    )


def field_text(size: int) -> str:
    """The file of a task on an open square field, with a well in the middle to be found."""
    rows = [["."] * size for _ in range(size)]
    rows[0][0], rows[size // 2][size // 2] = "S", "O"
    drawing = "\n".join("".join(row) for row in rows)
    return f'''format = 1
name = "field"
title = "A well in an open field"
verb = "DRINK"

[values]
gamma = {GAMMA}
tau = {TAU}

[rewards]
move = {MOVE_COST}
target = 1.0
repeated = -0.1
non_target = -0.1

[map]
drawing = """
{drawing}
"""

[sections.well]
symbol = "O"
reach = "on"

[[phases]]
name = "search"
targets = ["well"]
'''


# ---------------------------------------------------------------------- the four measurements


def solved(task: fidm.TaskModel) -> Floats:
    """The contestant all others are compared with."""
    return fidm.solve(task).v


def race(contestants: Mapping[str, Callable[[], Floats]], repetitions: int) -> dict[str, Timed]:
    """Run every contestant in turn, several times over; keep the shortest time of each."""
    seconds: dict[str, float] = {}
    found: dict[str, Floats] = {}
    for _ in range(repetitions):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            found[name] = contestant()
            taken = time.perf_counter() - begin
            seconds[name] = min(taken, seconds.get(name, taken))
    return {name: Timed(seconds[name], found[name]) for name in contestants}


def compare(
    task: fidm.TaskModel, backups: Mapping[str, Callable[[fidm.TaskModel], Backup]], repetitions: int
) -> list[Comparison]:
    """Compare fidm.solve with kinds of value iteration on one task."""
    contestants: dict[str, Callable[[], Floats]] = {"fidm": partial(solved, task)}
    contestants |= {name: partial(iterate, make(task), task.n_states) for name, make in backups.items()}
    timed = race(contestants, repetitions)
    return [line(task, timed["fidm"], name, timed[name], repetitions) for name in backups]


def line(task: fidm.TaskModel, ours: Timed, against: str, theirs: Timed, repetitions: int) -> Comparison:
    """Put two measurements on the same task into one line of the table."""
    return Comparison(
        task=task.name,
        states=task.n_states,
        normaliser=task.normaliser,
        against=against,
        ratio=theirs.seconds / ours.seconds,
        difference=float(np.abs(theirs.v - ours.v).max()),
        seconds=theirs.seconds,
        fidm_seconds=ours.seconds,
        repetitions=repetitions,
    )


def measure_grocery() -> list[Comparison]:
    """Compare with three kinds of value iteration on grocery, and on the much smaller errands."""
    backups = {PADDED: padded_backup, BY_ACTION: action_backup, BY_PAIR: pair_backup}
    small = {BY_ACTION: action_backup, BY_PAIR: pair_backup}
    return [
        *compare(fidm.load_task("grocery"), backups, GROCERY_REPETITIONS),
        *compare(fidm.load_task("errands"), small, GROCERY_REPETITIONS),
    ]


def measure_grid() -> list[Comparison]:
    """Compare with the two faster kinds of value iteration on a large open grid."""
    backups = {BY_ACTION: action_backup, BY_PAIR: pair_backup}
    kinds: tuple[Normaliser, ...] = ("sum", "mean", "max")
    return [
        comparison
        for kind in kinds
        for comparison in compare(open_grid(GRID_SIZE, kind), backups, GRID_REPETITIONS)
    ]


def solve_million() -> dict[str, float]:
    """Compile and solve a field of a million states in this process, and return what it took."""
    text = field_text(MILLION_SIZE)
    begin = time.perf_counter()
    spec = fidm.parse_task(text)
    parsed = time.perf_counter()
    task = fidm.compile_task(spec)
    compiled = time.perf_counter()
    values = fidm.solve(task)
    solved = time.perf_counter()
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "states": task.n_states,
        "pairs": task.n_pairs,
        "parse_seconds": parsed - begin,
        "compile_seconds": compiled - parsed,
        "solve_seconds": solved - compiled,
        "newton_steps": values.iterations,
        "residual": values.residual,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30,
    }


def measure_million() -> dict[str, float]:
    """Solve a million states in a process of their own, whose peak memory is then theirs alone."""
    command = [sys.executable, str(Path(__file__).resolve()), "--million"]
    result: dict[str, float] = json.loads(output_of(command))
    return result


def measure_msdm(python: Path) -> tuple[list[Comparison], dict[str, Any]]:
    """Compare with msdm's entropy-regularized planner on a small grid; return also what msdm ran on."""
    comparisons, about = [], {}
    kinds: tuple[Normaliser, ...] = ("sum", "mean")
    for kind in kinds:
        task = open_grid(MSDM_SIZE, kind)
        ours, theirs = [], []
        for _ in range(MSDM_ROUNDS):
            ours.append(race({"fidm": partial(solved, task)}, MSDM_REPETITIONS)["fidm"])
            about = plan_with_msdm(python, task)
            theirs.append(Timed(about.pop("seconds"), np.array(about.pop("values"))))
        name = f"msdm {about['msdm']}, {about['planner']}"
        repetitions = MSDM_ROUNDS * MSDM_REPETITIONS
        comparisons.append(line(task, fastest(ours), name, fastest(theirs), repetitions))
    return comparisons, about


def plan_with_msdm(python: Path, task: fidm.TaskModel) -> dict[str, Any]:
    """Have msdm plan a task several times in its own environment; return what its script prints."""
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables.npz"
        np.savez(
            tables,
            next_state=task.next_state.astype(np.int64),
            reward=task.table(task.reward, fill=0.0),
            gamma=task.gamma,
            tau=task.tau,
        )
        command = [str(python), str(Path(__file__).with_name("msdm_planner.py")), str(tables)]
        command += ["--normaliser", task.normaliser, "--repetitions", str(MSDM_REPETITIONS)]
        result: dict[str, Any] = json.loads(output_of(command))
    return result


def fastest(timed: list[Timed]) -> Timed:
    """Return the shortest of several times."""
    return min(timed, key=lambda one: one.seconds)


def output_of(command: list[str]) -> str:
    """Run a program and return what it prints; its complaints go where ours go."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---------------------------------------------------------------------- the verdict


def gates(
    grocery: list[Comparison],
    grid: list[Comparison],
    million: Mapping[str, float],
    msdm: list[Comparison],
) -> list[Gate]:
    """Hold the measurements against what is promised of them."""
    ratio = next(c.ratio for c in grocery if c.against == PADDED)
    found = [Gate(f"grocery: at least 10 times as fast as {PADDED}", ratio, ratio >= 10.0)]
    for kind in dict.fromkeys(c.normaliser for c in grid):
        ratio = min(c.ratio for c in grid if c.normaliser == kind)
        name = f"grid of {GRID_SIZE} x {GRID_SIZE}, {kind}: no slower than the faster value iteration"
        found.append(Gate(name, ratio, ratio >= 1.0))
    peak, residual = million["peak_gib"], million["residual"]
    found.append(Gate("a million states: peak memory below 8 GiB", peak, peak < 8.0))
    found.append(Gate(f"a million states: residual at most {TOLERANCE:g}", residual, residual <= TOLERANCE))
    widest = max(c.difference for c in [*grocery, *grid, *msdm])
    found.append(Gate(f"all contestants agree on V to {AGREEMENT:g}", widest, widest < AGREEMENT))
    return found


def show(
    console: Console, comparisons: list[Comparison], million: Mapping[str, float], verdict: list[Gate]
) -> None:
    """Print the measurements and the gates."""
    table = Table(title="fidm.solve against others", title_justify="left")
    table.add_column("Task")
    table.add_column("States", justify="right")
    table.add_column("Normaliser")
    table.add_column("Against")
    table.add_column("Times as fast", justify="right")
    table.add_column("Largest difference of V", justify="right")
    table.add_column("Repetitions", justify="right")
    for c in comparisons:
        cells = (f"{c.states:,}", c.normaliser, c.against, f"{c.ratio:.1f}", f"{c.difference:.1e}")
        table.add_row(c.task, *cells, str(c.repetitions))
    console.print(table)

    table = Table(title="A task file of a million cells", title_justify="left")
    for heading in ("States", "Pairs", "Parse, s", "Compile, s", "Solve, s", "Residual", "Peak memory, GiB"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{million['states']:,}",
        f"{million['pairs']:,}",
        *(f"{million[f'{part}_seconds']:.1f}" for part in ("parse", "compile", "solve")),
        f"{million['residual']:.1e}",
        f"{million['peak_gib']:.2f}",
    )
    console.print(table)

    table = Table(title="Gates", title_justify="left")
    table.add_column("Condition")
    table.add_column("Measured", justify="right")
    table.add_column("")
    for gate in verdict:
        table.add_row(gate.condition, f"{gate.measured:.3g}", "passed" if gate.passed else "FAILED")
    console.print(table)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="where to write the measurements, as JSON")
    parser.add_argument("--msdm-python", type=Path, help="the Python of an environment that holds msdm")
    parser.add_argument("--million", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out is None and not options.million:
        parser.error("--out is needed")
    return options


def main() -> int:
    """Measure everything, print it, write it down, and return the exit code."""
    warnings.simplefilter("error")
    options = parse_arguments()
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD})
    if options.million:
        print(json.dumps(solve_million()))
        return 0

    console = Console(width=None if sys.stdout.isatty() else 140)
    begin = time.perf_counter()
    # First, while this process is small: on Linux a child counts its parent's memory as its own peak.
    million = measure_million()
    grocery, grid = measure_grocery(), measure_grid()
    msdm, msdm_about = measure_msdm(options.msdm_python) if options.msdm_python else ([], {})
    verdict = gates(grocery, grid, million, msdm)
    seconds = time.perf_counter() - begin

    comparisons = [*grocery, *grid, *msdm]
    show(console, comparisons, million, verdict)
    if not msdm:
        console.print("msdm was not run: give --msdm-python.")
    report = {
        "machine": {
            "fidm": fidm.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "system": platform.platform(),
            "cores": os.cpu_count(),
        },
        "seconds": seconds,
        "comparisons": [asdict(c) for c in comparisons],
        "million": million,
        "msdm": msdm_about,
        "gates": [asdict(gate) for gate in verdict],
    }
    with whole_file(options.out) as part:
        part.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    failed = [gate.condition for gate in verdict if not gate.passed]
    passed = f"{len(verdict) - len(failed)} of {len(verdict)} gates passed in {seconds:.0f} s"
    console.print(f"{passed}; failed: {'; '.join(failed)}" if failed else f"{passed}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
