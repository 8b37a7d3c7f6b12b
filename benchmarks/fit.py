"""How fast :meth:`fidm.Fit.profile` is: against a lab's own loop, in memory, and for a million people.

Run from the repository root, with the development environment (statsmodels is in it)::

    python benchmarks/fit.py --out benchmarks/results/fit.json [--million]

Simulated people do the built-in task ``grocery``, about 60 actions and 18 segments each. All contestants
get the same population parameters, and whatever can be laid out beforehand (the table of values, the
columns as arrays, the predictors without the person's own offset) is laid out before a loop's clock
starts. Contestants run in turn in the same run, over and over, and each counts with the shortest of its
repetitions. The loops run on one thread; how many threads fidm had is in the table. ``fit.profile`` also
checks every trace and gives standard errors, intervals and statuses, which the loops do not; by empirical
Bayes it estimates a fifth offset, whether there was a pause at all.

With ``--million``, ``fidm fit`` also runs on studies of 10,000, 100,000 and 1,000,000 people; simulating
them takes several minutes and a gigabyte of the temporary folder (``TMPDIR``). The exit code is 1 if one
of the gates printed at the end fails.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import pickle
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import optimize, special

import fidm
from fidm.files import whole_file
from fidm.fit.profile import Profile
from fidm.io.study import StudyWriter

TASK = "grocery"
SEED, MAX_STEPS = 1, 60
PEOPLE_PER_TURN, PEOPLE_PER_PART = 10_000, 50_000
LEARNERS = 5_000
"""``fidm fit`` learns from so many people in studies of every size, so that the rest is what grows."""
"""How many people one process simulates at a time, and how many make a part of a study."""

LOOP_PEOPLE = 200
"""The loops run over so many people; their time per person does not depend on it."""

RACE_SIZES = (400, 2_000, 20_000)
LINEAR_SIZES = (1_000, 10_000, 100_000)
STUDY_SIZES = (10_000, 100_000, 1_000_000)
SAME_PEOPLE = 20_000
BATCH_SIZES = (1, 7, 777, 5_000)

RACE_REPETITIONS = 5
LINEAR_REPETITIONS = 3

ETA_BOUNDS = (0.0, 1_000.0)
THETA_BRACKET = (-0.5, 0.5)

STATSMODELS = "loop with statsmodels and SciPy"
TUNED = "loop with SciPy on hand-written NumPy likelihoods"

FASTER = 1_000.0
AGREEMENT = 1e-4
"""Relative difference the loops' tolerances allow; for θ, which may be 0, relative to max(1, |θ|)."""

MOST_MEMORY = 4e9
LINEAR_FACTOR = 2.0

ARRAYS = ("estimate", "se", "low", "high", "status", "n", "log_sensitivity", "log_sensitivity_se")
"""What must be the same to the last bit, however the people are cut into batches."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment variables the numerical libraries read when they are loaded."""

RSS_UNIT = 1 if sys.platform == "darwin" else 1024

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timed:
    """The shortest time a contestant took, for so many people, and what it found."""

    seconds: float
    people: int
    found: Any

    @property
    def each(self) -> float:
        """Seconds per person."""
        return self.seconds / self.people


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table: how much longer a loop takes per person than :meth:`fidm.Fit.profile`."""

    against: str
    method: str
    people: int
    workers: int
    ratio: float
    loop_seconds_per_person: float
    fidm_seconds_per_person: float
    fidm_seconds: float
    repetitions: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a profile of so many people cost."""

    people: int
    seconds: float
    seconds_per_person: float
    relative: float
    peak_bytes: float = math.nan


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition the benchmark must meet."""

    condition: str
    measured: float
    passed: bool


# ---------------------------------------------------------------------- the loops of a lab


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Everything a loop needs, laid out: values, the person's steps, observations and known predictors."""

    q: Floats
    state: NDArray[np.int32]
    action: NDArray[np.int32]
    steps: NDArray[np.int64]
    segments: NDArray[np.int64]
    y: Mapping[str, Floats]
    xi: Mapping[str, Floats]
    shape: Mapping[str, float]

    @classmethod
    def of(cls, task: fidm.TaskModel, fit: fidm.Fit, cohort: fidm.Cohort) -> Known:
        """Lay out a cohort in which everybody has one episode; steps that are not counted are left out."""
        if cohort.n_episodes != len(cohort):
            raise SystemExit("The loops expect one episode per person.")
        counted = np.flatnonzero(task.counted[cohort.state] & (cohort.action >= 0))
        columns = {channel.name: channel.column for channel in fit.channels}
        shared = {name: fit.populations[name].population for name in columns}
        log_moves = np.log1p(cohort.segments["n_moves"].to_numpy().astype(np.float64))
        return cls(
            q=task.table(fit.q, fill=-np.inf),
            state=cohort.state[counted],
            action=cohort.action[counted],
            steps=np.searchsorted(counted, cohort.step_offsets),
            segments=cohort.segment_offsets,
            y={
                name: cohort.segments[column].to_numpy().astype(np.float64)
                for name, column in columns.items()
            },
            xi={name: s.coefficients[0] + s.coefficients[1] * log_moves for name, s in shared.items()},
            shape={name: s.shape for name, s in shared.items()},
        )


def statsmodels_loop(known: Known, n: int) -> Floats:
    """η and four θ of n people: SciPy for η, statsmodels' GLMs for θ; [n, 5]."""
    import statsmodels.api as sm  # here, so that this process stays small while its children are measured

    families = {"duration": sm.families.Gamma(link=sm.families.links.Log())}
    for name in ("characters", "turns"):
        families[name] = sm.families.NegativeBinomial(alpha=1 / known.shape[name])
    found = np.full((n, 5), np.nan)
    for j in range(n):
        steps = slice(known.steps[j], known.steps[j + 1])
        q, action = known.q[known.state[steps]], known.action[steps]
        chosen = q[np.arange(len(q)), action]

        def loss(eta: float, q: Floats = q, chosen: Floats = chosen) -> float:
            return float((special.logsumexp(eta * q, axis=1) - eta * chosen).sum())

        found[j, 0] = optimize.minimize_scalar(loss, bounds=ETA_BOUNDS, method="bounded").x
        own = slice(known.segments[j], known.segments[j + 1])
        for k, (name, family) in enumerate(families.items(), start=1):
            y = known.y[name][own]
            model = sm.GLM(y, np.ones(len(y)), family=family, offset=known.xi[name][own])
            found[j, k] = model.fit().params[0]
        found[j, 4] = mean_pause(known, own)
    return found


def tuned_loop(known: Known, n: int) -> Floats:
    """The same with likelihoods written by hand, without constants, and nothing done twice."""
    found = np.full((n, 5), np.nan)
    for j in range(n):
        steps = slice(known.steps[j], known.steps[j + 1])
        q, action = known.q[known.state[steps]], known.action[steps]
        below = q - q.max(axis=1)[:, None]
        chosen = float(below[np.arange(len(q)), action].sum())

        def choice_loss(eta: float, below: Floats = below, chosen: float = chosen) -> float:
            return float(np.log(np.exp(eta * below).sum(axis=1)).sum()) - eta * chosen

        found[j, 0] = optimize.minimize_scalar(choice_loss, bounds=ETA_BOUNDS, method="bounded").x
        own = slice(known.segments[j], known.segments[j + 1])
        count = int(own.stop - own.start)
        amount = float((known.y["duration"][own] * np.exp(-known.xi["duration"][own])).sum())
        found[j, 1] = optimize.minimize_scalar(duration_loss, bracket=THETA_BRACKET, args=(count, amount)).x
        for k, name in ((2, "characters"), (3, "turns")):
            y, mean, kappa = known.y[name][own], np.exp(known.xi[name][own]), known.shape[name]
            laid_out = (float(y.sum()), y + kappa, mean, kappa)
            found[j, k] = optimize.minimize_scalar(count_loss, bracket=THETA_BRACKET, args=laid_out).x
        found[j, 4] = mean_pause(known, own)
    return found


def duration_loss(theta: float, count: int, amount: float) -> float:
    """Minus the gamma log-likelihood, over κ; ``amount`` is Σ y e^−ξ₀."""
    return count * theta + amount * math.exp(-theta)


def count_loss(theta: float, total: float, both: Floats, mean: Floats, kappa: float) -> float:
    """Minus the negative-binomial log-likelihood; ``both`` is y + κ, ``mean`` is e^ξ₀."""
    return float(both @ np.log(kappa + mean * math.exp(theta))) - total * theta


def mean_pause(known: Known, own: slice) -> float:
    """θ of the pauses, which is a mean."""
    y, xi = known.y["pause"][own], known.xi["pause"][own]
    paused = y > 0
    return float((np.log(y[paused]) - xi[paused]).mean()) if paused.any() else math.nan


def without_warnings(loop: Callable[[Known, int], Floats], known: Known, n: int) -> Floats:
    """Run a loop as a lab would, warnings or not; somebody with very few zeros or pauses sets them off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loop(known, n)


# ---------------------------------------------------------------------- measurements in this process


def race(contestants: Mapping[str, tuple[int, Callable[[], Any]]], repetitions: int) -> dict[str, Timed]:
    """Run every contestant in turn, several times over; keep the shortest time of each."""
    seconds: dict[str, float] = {}
    found: dict[str, Any] = {}
    for _ in range(repetitions):
        for name, (_, contestant) in contestants.items():
            begin = time.perf_counter()
            found[name] = contestant()
            taken = time.perf_counter() - begin
            seconds[name] = min(taken, seconds.get(name, taken))
    return {name: Timed(seconds[name], people, found[name]) for name, (people, _) in contestants.items()}


def measure_loops(
    task: fidm.TaskModel, fits: Mapping[str, fidm.Fit], cohort: fidm.Cohort, sizes: Sequence[int], n_loop: int
) -> tuple[list[Comparison], dict[str, dict[str, float]]]:
    """Compare with two loops; return also by how much their estimates differ, by parameter."""
    known = Known.of(task, fits["mle"], cohort[:n_loop])
    contestants: dict[str, tuple[int, Callable[[], Any]]] = {
        name: (n_loop, partial(without_warnings, loop, known, n_loop))
        for name, loop in ((STATSMODELS, statsmodels_loop), (TUNED, tuned_loop))
    }
    lines = [("mle", n, 2) for n in sizes] + [
        ("mle", sizes[-1], 1),
        ("eb", sizes[-1], 2),
        ("eb", sizes[-1], 1),
    ]
    people = {n: cohort[:n] for n in sizes}
    for method, n, workers in lines:
        contestant = partial(fits[method].profile, people[n], workers=workers)
        contestants[f"{method} {n} {workers}"] = (n, contestant)
    for fit in fits.values():
        fit.profile(people[sizes[0]])  # so that everything is compiled
    timed = race(contestants, RACE_REPETITIONS)
    comparisons = [
        Comparison(
            against=loop,
            method=method,
            people=n,
            workers=workers,
            ratio=timed[loop].each / timed[f"{method} {n} {workers}"].each,
            loop_seconds_per_person=timed[loop].each,
            fidm_seconds_per_person=timed[f"{method} {n} {workers}"].each,
            fidm_seconds=timed[f"{method} {n} {workers}"].seconds,
            repetitions=RACE_REPETITIONS,
        )
        for loop in (STATSMODELS, TUNED)
        for method, n, workers in lines
    ]
    profile = timed[f"mle {sizes[-1]} 2"].found
    ours = profile.estimate[:n_loop, :5]
    differences = {
        loop: dict(zip(profile.parameters, differ(ours, timed[loop].found), strict=False))
        for loop in (STATSMODELS, TUNED)
    }
    return comparisons, differences


def differ(ours: Floats, theirs: Floats) -> list[float]:
    """The largest relative difference of each column, where the likelihood has a finite maximum.

    A sensitivity of 0, or none at all, is known exactly; a search within bounds stops short of it.
    """
    known = np.isfinite(ours)
    known[:, 0] &= ours[:, 0] > 0
    apart = np.zeros(ours.shape)
    apart[known] = np.abs(ours[known] - theirs[known]) / np.maximum(1.0, np.abs(ours[known]))
    return [float(column.max()) for column in apart.T]


def measure_linear(fit: fidm.Fit, cohort: fidm.Cohort, sizes: Sequence[int]) -> list[Cost]:
    """Time per person of profiles of ever more people in memory."""
    people = {n: cohort if n == len(cohort) else cohort[:n] for n in sizes}
    contestants = {str(n): (n, partial(fit.profile, people[n], workers=2)) for n in sizes}
    timed = race(contestants, LINEAR_REPETITIONS)
    first = timed[str(sizes[0])].each
    return [Cost(n, t.seconds, t.each, t.each / first) for n, t in zip(sizes, timed.values(), strict=True)]


def measure_same(fits: Mapping[str, fidm.Fit], cohort: fidm.Cohort) -> dict[str, int]:
    """Count the numbers that depend on threads or batches; there must be none."""
    found = {}
    for method, fit in fits.items():
        whole = fit.profile(cohort, workers=1)
        found[f"{method}, two threads"] = unlike(whole, fit.profile(cohort, workers=2))
        for size in BATCH_SIZES:
            last = min(len(cohort), 100 * size)
            cuts = [*range(0, last, size), last]
            if last < len(cohort):
                cuts.append(len(cohort))
            parts = [fit.profile(cohort[a:b], workers=2) for a, b in pairwise(cuts)]
            found[f"{method}, batches of {size:,}"] = unlike(whole, Profile.concat(parts))
    return found


def unlike(one: Profile, other: Profile) -> int:
    """How many numbers of two profiles are not the same to the last bit."""
    count = 0
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            count += int((~((a == b) | ((a != a) & (b != b)))).sum()) or 1
    return count


# ---------------------------------------------------------------------- processes of their own


def simulated(task: fidm.TaskModel, first: int, n: int) -> fidm.Cohort:
    """Simulate a run of the people everything here is about."""
    return fidm.simulate_cohort(task, n, seed=SEED, max_steps=MAX_STEPS, first=first)


def simulate_studies(folder: Path, sizes: Sequence[int]) -> dict[str, float]:
    """Write studies of the first so many people, simulated by two processes."""
    begin = time.perf_counter()
    task = fidm.load_task(TASK)
    most = max(sizes)
    starts = range(0, most, PEOPLE_PER_TURN)
    counts = [min(PEOPLE_PER_TURN, most - first) for first in starts]
    # Forking a process whose libraries have threads may hang, so the two are started afresh.
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(2, mp_context=context))
        writers = {n: stack.enter_context(StudyWriter(folder / str(n), tasks=[TASK])) for n in sizes}
        done = 0
        for part in joined(pool.map(simulated, [task] * len(counts), starts, counts)):
            for n, writer in writers.items():
                if n > done:
                    writer.add(part if n >= done + len(part) else part[: n - done])
            done += len(part)
    return {"seconds": time.perf_counter() - begin}


def joined(turns: Iterator[fidm.Cohort]) -> Iterator[fidm.Cohort]:
    """Put what the processes simulate together to parts of a study."""
    waiting: list[fidm.Cohort] = []
    for turn in turns:
        waiting.append(turn)
        if sum(map(len, waiting)) >= PEOPLE_PER_PART:
            yield fidm.Cohort.concat(waiting)
            waiting = []
    if waiting:
        yield fidm.Cohort.concat(waiting)


def learn_fits(folder: Path, n: int) -> dict[str, float]:
    """Learn what people share, both ways; keep that and the cohort as it lies in memory."""
    task = fidm.load_task(TASK)
    cohort = fidm.read_cohort(folder / str(n))
    seconds = {}
    for method, population in (("mle", "pooled"), ("eb", "random")):
        begin = time.perf_counter()
        # By maximum likelihood the loops' own job: η and four θ. Otherwise whether there was a pause, too.
        channels = fidm.channels.paper_channels()[:4] if method == "mle" else None
        fit = fidm.Model(task, channels=channels).fit(cohort, method=method, population=population)
        seconds[f"{method}_{population}_seconds"] = time.perf_counter() - begin
        fit.save(folder / f"{method}.json")
    with (folder / "cohort.pickle").open("wb") as file:
        pickle.dump(cohort, file, protocol=pickle.HIGHEST_PROTOCOL)
    return {"learned_from": fit.n_learned, **seconds}


def profile_memory(folder: Path, method: str) -> dict[str, float]:
    """Profile everybody in one call, and return how much memory that took beyond the cohort itself."""
    fit = fidm.load_fit(folder / f"{method}.json")
    cohort = load_people(folder)
    fit.profile(cohort[:500], workers=2)
    held, before = resident(), peak()
    begin = time.perf_counter()
    profile = fit.profile(cohort, workers=2)
    seconds = time.perf_counter() - begin
    after = peak()
    arrays = sum(getattr(cohort, name).nbytes for name in array_names(cohort))
    tables = sum(table.estimated_size() for table in (cohort.participants, cohort.episodes, cohort.segments))
    return {
        "people": len(cohort),
        "seconds": seconds,
        "cohort_bytes": arrays + tables,
        "profile_bytes": sum(getattr(profile, name).nbytes for name in ARRAYS),
        "held_before_bytes": held,
        "peak_before_bytes": before,
        "peak_after_bytes": after,
        "beyond_bytes": after - held,
        "ratio": (after - held) / (arrays + tables),
    }


def array_names(cohort: fidm.Cohort) -> list[str]:
    """The arrays of a cohort."""
    return [name for name in cohort.__slots__ if isinstance(getattr(cohort, name), np.ndarray)]


def peak() -> int:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT


def resident() -> int:
    """The memory this process holds now; the most it has held where that cannot be told."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize()


def load_people(folder: Path) -> fidm.Cohort:
    """The cohort that was learned from, without reading a study again."""
    with (folder / "cohort.pickle").open("rb") as file:
        cohort: fidm.Cohort = pickle.load(file)
    return cohort


def fit_study(folder: Path, n: int) -> tuple[float, float]:
    """Run ``fidm fit`` on a study; return its seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "fidm", "fit", str(folder / str(n)), "--out", str(folder / f"out-{n}")]
    command += ["--max-people", str(LEARNERS)]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {child.returncode}.")
    shutil.rmtree(folder / f"out-{n}")
    return seconds, float(usage.ru_maxrss * RSS_UNIT)


def measure_studies(folder: Path, sizes: Sequence[int]) -> list[Cost]:
    """Time and memory of ``fidm fit`` on studies of ever more people, each in a process of its own."""
    costs: list[Cost] = []
    for n in sizes:
        seconds, memory = fit_study(folder, n)
        first = costs[0].seconds_per_person if costs else seconds / n
        costs.append(Cost(n, seconds, seconds / n, seconds / n / first, memory))
    return costs


def stage(name: str, folder: Path, *sizes: int) -> dict[str, float]:
    """Run a stage of this script in a process of its own, and return what it prints."""
    command = [sys.executable, str(Path(__file__).resolve()), "--stage", name, "--folder", str(folder)]
    command += ["--sizes", *map(str, sizes)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, float] = json.loads(found)
    return result


def run_stage(options: argparse.Namespace) -> dict[str, float]:
    """Be such a process."""
    if options.stage == "simulate":
        return simulate_studies(options.folder, options.sizes)
    if options.stage == "learn":
        return learn_fits(options.folder, options.sizes[0])
    return profile_memory(options.folder, options.stage.removeprefix("memory-"))


# ---------------------------------------------------------------------- the verdict


def gates(
    comparisons: list[Comparison],
    differences: Mapping[str, Mapping[str, float]],
    same: Mapping[str, int],
    studies: list[Cost],
) -> list[Gate]:
    """Hold the measurements against what is promised of them."""
    most = max(c.people for c in comparisons)
    ratio = next(
        c.ratio
        for c in comparisons
        if (c.against, c.method, c.people, c.workers) == (STATSMODELS, "mle", most, 2)
    )
    widest = float(np.max([list(apart.values()) for apart in differences.values()]))  # a NaN fails the gate
    found = [
        Gate(f"at least {FASTER:,.0f} times as fast per person as the {STATSMODELS}", ratio, ratio >= FASTER),
        Gate(f"both loops agree on every parameter to {AGREEMENT:g}", widest, widest <= AGREEMENT),
        Gate("numbers that depend on threads or batches: none", sum(same.values()), not any(same.values())),
    ]
    if studies:
        last = studies[-1]
        name = f"fidm fit, {last.people:,} people"
        found.append(
            Gate(
                f"{name}: peak memory below {MOST_MEMORY / 1e9:.0f} GB",
                last.peak_bytes / 1e9,
                last.peak_bytes < MOST_MEMORY,
            )
        )
        early, late = further_people(studies).values()
        found.append(
            Gate(
                f"{name}: a further one costs at most {LINEAR_FACTOR:g} times as much as before",
                late / early,
                late / early <= LINEAR_FACTOR,
            )
        )
    return found


def show(console: Console, report: Mapping[str, Any], verdict: list[Gate]) -> None:
    """Print the measurements and the gates."""
    table = titled(
        "fit.profile against loops, per person",
        ("Against", "Method"),
        ("People", "Threads", "Times as fast", "Loop, µs", "fidm, µs", "fidm, s"),
    )
    for c in report["comparisons"]:
        table.add_row(
            c["against"],
            c["method"],
            f"{c['people']:,}",
            str(c["workers"]),
            f"{c['ratio']:,.0f}",
            f"{1e6 * c['loop_seconds_per_person']:,.0f}",
            f"{1e6 * c['fidm_seconds_per_person']:.1f}",
            f"{c['fidm_seconds']:.3f}",
        )
    console.print(table)

    parameters = list(report["differences"][TUNED])
    table = titled("Largest relative difference from fit.profile, method mle", ("Loop",), parameters)
    for loop, by_parameter in report["differences"].items():
        table.add_row(loop, *(f"{by_parameter[name]:.1e}" for name in parameters))
    console.print(table)

    table = titled(
        "Memory of one call of fit.profile",
        ("Method",),
        ("People", "Cohort, MB", "Beyond it at peak, MB", "Ratio", "Profile itself, MB", "Seconds"),
    )
    for method, memory in report["memory"].items():
        table.add_row(
            method,
            f"{memory['people']:,}",
            f"{memory['cohort_bytes'] / 1e6:.0f}",
            f"{memory['beyond_bytes'] / 1e6:.0f}",
            f"{memory['ratio']:.2f}",
            f"{memory['profile_bytes'] / 1e6:.0f}",
            f"{memory['seconds']:.2f}",
        )
    console.print(table)

    heads = ("People", "Seconds", "Per person, µs", "Relative to the first", "Peak memory, GB")
    for title, costs in (
        ("fit.profile in memory, method mle, two threads", report["linear"]),
        ("fidm fit, from and to files", report["studies"]),
    ):
        if costs:
            table = titled(title, (), heads if costs is report["studies"] else heads[:-1])
            for c in costs:
                cells = [f"{c['people']:,}", f"{c['seconds']:.2f}", f"{1e6 * c['seconds_per_person']:.1f}"]
                cells.append(f"{c['relative']:.2f}")
                if costs is report["studies"]:
                    cells.append(f"{c['peak_bytes'] / 1e9:.2f}")
                table.add_row(*cells)
            console.print(table)
    if report["more_people_microseconds"]:
        each = ", ".join(
            f"{name}: {value:.1f} µs" for name, value in report["more_people_microseconds"].items()
        )
        console.print(f"fidm fit, every further person — {each}.")

    table = titled("Gates", ("Condition",), ("Measured",), ("",))
    for gate in verdict:
        table.add_row(gate.condition, f"{gate.measured:.3g}", "passed" if gate.passed else "FAILED")
    console.print(table)


def titled(title: str, left: Sequence[str], right: Sequence[str], rest: Sequence[str] = ()) -> Table:
    """A table with texts, then numbers, then texts."""
    table = Table(title=title, title_justify="left")
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    for heading in rest:
        table.add_column(heading)
    return table


def further_people(studies: list[Cost]) -> dict[str, float]:
    """Microseconds of ``fidm fit`` for every person beyond the next smaller study; learning is done once."""
    return {
        f"{a.people:,} to {b.people:,}": 1e6 * (b.seconds - a.seconds) / (b.people - a.people)
        for a, b in pairwise(studies)
    }


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="where to write the measurements, as JSON")
    parser.add_argument("--million", action="store_true", help="run also fidm fit on up to a million people")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="take so much fewer people, to try the script out (0.02)"
    )
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 0 < options.scale <= 1:
        parser.error("--scale must lie between 0 and 1")
    return options


def scaled(sizes: Sequence[int], scale: float) -> list[int]:
    """These sizes, or fewer people where the script is tried out."""
    return [max(100, round(n * scale)) for n in sizes]


def measure(folder: Path, options: argparse.Namespace) -> tuple[dict[str, Any], list[Gate]]:
    """Measure everything; return the report and the gates."""
    linear_sizes, study_sizes = scaled(LINEAR_SIZES, options.scale), scaled(STUDY_SIZES, options.scale)
    most = linear_sizes[-1]
    if options.million and shutil.disk_usage(folder).free < 4e9 * options.scale:
        raise SystemExit(f"{folder} has less than 4 GB left; name another place in TMPDIR.")
    # First, while this process is small: on Linux a child counts its parent's memory as its own peak.
    wanted = sorted({most, *study_sizes}) if options.million else [most]
    simulation = {"people": wanted[-1], **stage("simulate", folder, *wanted)}
    learning = stage("learn", folder, most)
    memory = {method: stage(f"memory-{method}", folder) for method in ("mle", "eb")}
    studies = measure_studies(folder, study_sizes) if options.million else []

    task = fidm.load_task(TASK)
    fits = {method: fidm.load_fit(folder / f"{method}.json") for method in ("mle", "eb")}
    cohort = load_people(folder)
    comparisons, differences = measure_loops(
        task, fits, cohort, scaled(RACE_SIZES, options.scale), scaled([LOOP_PEOPLE], options.scale)[0]
    )
    linear = measure_linear(fits["mle"], cohort, linear_sizes)
    same = measure_same(fits, cohort[: scaled([SAME_PEOPLE], options.scale)[0]])
    report = {
        "people": {
            "actions_each": cohort.n_steps / len(cohort),
            "segments_each": cohort.n_segments / len(cohort),
        },
        "simulation": simulation,
        "learning": learning,
        "comparisons": [asdict(c) for c in comparisons],
        "differences": differences,
        "memory": memory,
        "linear": [asdict(c) | {"peak_bytes": None} for c in linear],
        "studies": [asdict(c) for c in studies],
        "more_people_microseconds": further_people(studies),
        "same": same,
    }
    return report, gates(comparisons, differences, same, studies)


def main() -> int:
    """Measure everything, print it, write it down, and return the exit code."""
    warnings.simplefilter("error")
    options = parse_arguments()
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD})
    if options.stage:
        print(json.dumps(run_stage(options)))
        return 0

    console = Console(width=None if sys.stdout.isatty() else 140)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fidm-fit-") as folder:
        report, verdict = measure(Path(folder), options)
    seconds = time.perf_counter() - begin
    import statsmodels

    machine = {
        "fidm": fidm.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "polars": pl.__version__,
        "statsmodels": statsmodels.__version__,
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }
    show(console, report, verdict)
    if options.out is not None:
        whole = {"machine": machine, "scale": options.scale, "seconds": seconds, **report}
        whole["gates"] = [asdict(gate) for gate in verdict]
        with whole_file(options.out) as part:
            part.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    failed = [gate.condition for gate in verdict if not gate.passed]
    passed = f"{len(verdict) - len(failed)} of {len(verdict)} gates passed in {seconds:.0f} s"
    console.print(f"{passed}; failed: {'; '.join(failed)}" if failed else f"{passed}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
