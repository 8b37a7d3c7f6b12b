"""How long a report of 400 people takes, and how large it is.

Run from the repository root, with the development environment::

    python benchmarks/report.py --out benchmarks/results/report.json [--people 402]

A study of simulated people who speak Cantonese is written, grounded by rules and fitted; none of that is
timed. Then ``fidm report`` runs as a process of its own, as somebody would run it, with classification, and
once more with ``--deidentify``. A report must take less than 60 s, the page less than 30 MB and a person less
than 75 kB; the exit code is 1 if one of these does not hold.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS, MOST_MB, MOST_KB_PER_PERSON = 60.0, 30.0, 75.0


def fidm(*arguments: object) -> float:
    """Run the command line and return how many seconds it took."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "fidm", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def measure(study: Path, *options: str) -> dict[str, float]:
    """Return how long a report takes and how large it is."""
    page = study / ("report-deidentified.html" if "--deidentify" in options else "report.html")
    seconds = fidm("report", study, *options)
    people = json.loads(page.with_suffix(".json").read_text("utf-8"))["people"]
    sizes = [len(json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()) for one in people]
    found = {
        "people": len(people),
        "seconds": seconds,
        "page_mb": page.stat().st_size / 1e6,
        "json_mb": page.with_suffix(".json").stat().st_size / 1e6,
        "median_kb_per_person": sorted(sizes)[len(sizes) // 2] / 1e3,
        "most_kb_per_person": max(sizes) / 1e3,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3,
    }
    print(
        f"{' '.join(options) or 'whole'}: {found['people']} people in {seconds:.1f} s, page "
        f"{found['page_mb']:.1f} MB, a person {found['median_kb_per_person']:.0f} kB (at most "
        f"{found['most_kb_per_person']:.0f}), {found['peak_memory_mb']:.0f} MB of memory at most"
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--people", type=int, default=402)
    parser.add_argument("--study", type=Path, help="a study that is grounded and fitted already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        study = options.study
        if study is None:
            study = Path(place) / "study"
            fidm("simulate", study, "--people", options.people, "--language", "yue")
            fidm("ground", study)
            fidm("fit", study)
        whole, hidden = measure(study), measure(study, "--deidentify")
    is_good = all(
        one["seconds"] < MOST_SECONDS
        and one["page_mb"] < MOST_MB
        and one["most_kb_per_person"] < MOST_KB_PER_PERSON
        for one in (whole, hidden)
    )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        report = {"machine": platform.machine(), "whole": whole, "deidentified": hidden, "is_good": is_good}
        options.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        print(f"Wrote {options.out}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
