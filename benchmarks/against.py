"""How much longer :meth:`fidm.Model.fit` and :meth:`fidm.Fit.profile` take than in another version of fidm.

Run from the repository root, with the source tree of the other version, such as a git worktree::

    git worktree add ../before COMMIT
    python benchmarks/against.py ../before/src [--people 30 400 100000] [--out FILE]

Simulated people do the built-in task ``grocery``, about 60 actions and 18 segments each; both versions read
the same files. They run in turn, each in a process of its own, over and over; what counts is the shortest
processor time of each, kernels compiled beforehand on a few people.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TASK, SEED, MAX_STEPS, WARM_UP = "grocery", 1, 60, 30
HERE = Path(__file__).resolve().parent.parent / "src"

ONE_RUN = """
import json, sys, time
import fidm
task = fidm.load_task(sys.argv[1])
def run(folder):
    people = fidm.read_cohort(folder)
    began = time.process_time()
    fit = fidm.Model(task).fit(people)
    between = time.process_time()
    fit.profile(people)
    return between - began, time.process_time() - between
run(sys.argv[2])
print(json.dumps(run(sys.argv[3])))
"""


def simulate(folder: Path, n: int) -> Path:
    """Write a study of n people, and return where it is."""
    import fidm

    made = fidm.simulate_cohort(fidm.load_task(TASK), n, seed=SEED, max_steps=MAX_STEPS)
    fidm.write_cohort(made, folder / str(n), tasks=[TASK])
    return folder / str(n)


def processor_seconds(source: Path, warm_up: Path, study: Path) -> tuple[float, float]:
    """Fit and profile a study with one version; processor seconds of each of the two."""
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", ONE_RUN, TASK, str(warm_up), str(study)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    fit, profile = json.loads(done.stdout.splitlines()[-1])
    return fit, profile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the src folder of the other version")
    parser.add_argument("--people", type=int, nargs="+", default=[30, 400, 100_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not (options.other / "fidm").is_dir():
        parser.error(f"{options.other} has no package fidm; give the src folder of a source tree.")
    versions = {"other": options.other.resolve(), "this": HERE}
    found = []
    print(f"{'people':>8}  {'other: fit':>10} {'profile':>8}  {'this: fit':>10} {'profile':>8}  {'ratio':>6}")
    with tempfile.TemporaryDirectory() as name:
        warm_up = simulate(Path(name), WARM_UP + 1)
        for n in options.people:
            study = simulate(Path(name), n)
            runs: dict[str, list[tuple[float, float]]] = {version: [] for version in versions}
            for _ in range(options.repeat):
                for version, source in versions.items():
                    runs[version].append(processor_seconds(source, warm_up, study))
            best = {version: min(times, key=sum) for version, times in runs.items()}
            ratio = sum(best["this"]) / sum(best["other"])
            found.append({"people": n, **best, "ratio": ratio})
            other, this = best["other"], best["this"]
            print(
                f"{n:8,}  {other[0]:10.2f} {other[1]:8.2f}  {this[0]:10.2f} {this[1]:8.2f}  {ratio:6.2f}",
                flush=True,
            )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(
            json.dumps({"task": TASK, "seed": SEED, "runs": found}, indent=1) + "\n", "utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
