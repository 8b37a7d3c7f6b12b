"""How the time of reading a transcript grows with the size of its file.

Run from the repository root::

    python benchmarks/transcripts.py

Each format is read at two sizes that differ by a factor of ten; CSV at 5 and 50 MB. The time per megabyte
must stay about the same: a ratio near 1 is linear, near 10 quadratic. The exit code is 1 above 2.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fidm.io.dialogs import read, write
from fidm.io.talk import Transcript, Turn

MOST = 2.0
TEXT = "I go left and then up to the meat, no, up two more"


def long_talk(n_turns: int) -> Transcript:
    """A talk of one participant and one assessor, within a day."""
    step = 80_000 / n_turns
    turns = (
        Turn(
            "PAR" if n % 2 else "INV",
            n * step,
            (n + 1) * step,
            f"{TEXT} {n + 1}",
            "participant" if n % 2 else "assessor",
        )
        for n in range(n_turns)
    )
    return Transcript("P1", tuple(turns))


def csv_of(megabytes: int) -> Callable[[Path], None]:
    """What writes a table of many participants, a thousand turns each."""

    def fill(path: Path) -> None:
        with path.open("w") as file:
            file.write("participant,speaker,start_s,end_s,text\n")
            row = 0
            while file.tell() < megabytes * 1e6:
                who, n = divmod(row, 1000)
                file.write(f'P{who},{"PAR" if n % 2 else "INV"},{n},{n + 0.9},"{TEXT} {n}"\n')
                row += 1

    return fill


def seconds_per_mb(fill: Callable[[Path], None], suffix: str) -> float:
    """How long a megabyte takes; the shorter of two readings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"P1{suffix}"
        fill(path)
        needed = []
        for _ in range(2):
            begun = time.perf_counter()
            read(path)
            needed.append(time.perf_counter() - begun)
        return min(needed) / (path.stat().st_size / 1e6)


def main() -> int:
    """Measure all formats and say whether one of them grows faster than its files."""
    cases: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
        ".csv": (csv_of(5), csv_of(50))
    }
    for suffix in (".eaf", ".TextGrid", ".cha", ".jsonl"):
        short, long = (lambda path, n=n: write(long_talk(n), path) for n in (2_000, 20_000))
        cases[suffix] = (short, long)
    worst = 0.0
    for suffix, (small, large) in cases.items():
        before, after = seconds_per_mb(small, suffix), seconds_per_mb(large, suffix)
        worst = max(worst, after / before)
        print(f"{suffix:10} {before:6.3f} s/MB, ten times as large {after:6.3f}, ratio {after / before:.2f}")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
