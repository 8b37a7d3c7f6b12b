"""How good and how fast the rules grounder is: phrasings with a known meaning, and simulated dialogs.

Run from the repository root, with the development environment::

    python benchmarks/grounding.py --out benchmarks/results/grounding.json
    python benchmarks/grounding.py --phrasings judging3

Three questions. Where the rules are confident on phrasings written apart from them, how often are they
right, and how often are they confident (``tests/data/phrasings``; the ``heldout`` and ``judging`` files are
never used to tune the rules or to learn from)? On simulated dialogs, how many segments lead through exactly
the true actions, and does η from grounded traces go with η from the true ones? And how many segments per
second does the whole way from a transcript in memory to the cohort and its tables take, on one thread? The
speed is given beside that of a plain loop that only looks for the words of the lexicon with regular
expressions, in the same run: a ratio that does not depend on the machine. The exit code is 1 if a gate
printed at the end fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

import fidm
from fidm.files import whole_file
from fidm.grounding.base import judge, read_phrasings
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.rules.language import Vocabulary, load_language
from fidm.simulate.talk import Talks
from fidm.stats import wilson

GROUPS = ("heldout", "judging[12]", "judging3")
PHRASINGS = Path(__file__).parent.parent / "tests" / "data" / "phrasings"
LANGUAGES = ("en", "yue", "zh")
PEOPLE, SEEDS, REPEATS = 100, (0, 1, 2), 5

console = Console(highlight=False, width=110)


def phrasings(groups: Sequence[str] = GROUPS) -> dict[str, dict[str, float]]:
    """Judge groups of files of phrasings: as written, as recognisers write, and with spaces between words."""
    found: dict[str, dict[str, float]] = {}
    table = Table("phrasings", "number", "confident", "right where confident", "right in all", "silent")
    for group, code in product(groups, ("en", "yue")):
        paths = sorted(PHRASINGS.glob(f"{group}*_{code}.jsonl"))
        items = [item for path in paths for item in read_phrasings(path, language=code)]
        forms = {"": items, ", unpunctuated": [item.unpunctuated() for item in items]}
        if all(item.spaced for item in items):
            forms[", spaced"] = [replace(item, text=item.spaced) for item in items]
        for form, phrased in forms.items():
            found[f"{group} {code}{form}"] = _figures(judge(Rules(), phrased))
    for name, figures in found.items():
        low, high = figures["low"], figures["high"]
        table.add_row(
            name, f"{figures['n']:.0f}", f"{figures['confident']:.1%}",
            f"{figures['right_if_confident']:.1%} ({low:.1%} to {high:.1%})", f"{figures['right']:.1%}",
            f"{figures['silent']:.1%}",
        )  # fmt: skip
    console.print(table)
    return found


def _figures(table: pl.DataFrame) -> dict[str, float]:
    sure = table.filter(pl.col("confident"))
    low, high = wilson(int(sure["right"].sum()), sure.height)
    silent = sure.filter(pl.col("program") == "NONE", ~pl.col("right"))
    return {
        "n": table.height,
        "confident": sure.height / table.height,
        "right_if_confident": float(sure["right"].mean() or 0.0),  # type: ignore[arg-type]
        "low": low,
        "high": high,
        "right": float(table["right"].mean() or 0.0),  # type: ignore[arg-type]
        "silent": silent.height / table.height,
    }


def simulated() -> dict[str, dict[str, float]]:
    """Ground simulated dialogs and compare with the truth."""
    task = fidm.load_task("grocery")
    found: dict[str, dict[str, float]] = {}
    table = Table("dialogs", "segments", "exact", "marked", "exact unless marked", "r of log η")
    for code in LANGUAGES:
        rows = []
        for seed in SEEDS:
            talks = fidm.simulate_talks(task, PEOPLE, seed=seed, language=code)
            grounded = fidm.ground(talks.transcripts, task)
            exact, marked = _exact(talks, grounded)
            rows.append((exact, marked, _correlation(task, talks.cohort, grounded.cohort)))
        exact, marked = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
        figures = {
            "segments": len(exact),
            "exact": float(exact.mean()),
            "marked": float(marked.mean()),
            "exact_unless_marked": float(exact[~marked].mean()),
            "correlation": float(np.mean([row[2] for row in rows])),
            "lowest_correlation": float(np.min([row[2] for row in rows])),
        }
        found[code] = figures
        table.add_row(
            code, f"{len(exact):,}", f"{figures['exact']:.2%}", f"{figures['marked']:.2%}",
            f"{figures['exact_unless_marked']:.2%}", f"{figures['correlation']:.3f}",
        )  # fmt: skip
    console.print(table)
    return found


def _exact(talks: Talks, grounded: fidm.Grounded) -> tuple[np.ndarray, np.ndarray]:
    """Which of the true segments led through exactly the true actions, and which are marked for review."""
    exact, marked = [], []
    truth, found = talks.cohort, grounded.cohort
    assert truth.segment is not None
    steps = grounded.moves.with_columns(pl.Series("code", found.action))
    made = {
        (who, number): codes
        for who, number, codes in steps.group_by("participant", "segment", maintain_order=True)
        .agg("code")
        .iter_rows()
    }
    for j, dialog in enumerate(grounded.dialogs):
        first, last = truth.step_offsets[j], truth.step_offsets[j + 1]
        for i in range(len(talks.programs[j])):
            meant = truth.action[first:last][truth.segment[first:last] == i].tolist()
            got = made.get((dialog.transcript.participant, str(i + 1)), [])
            exact.append(meant == got)
            marked.append(i >= len(dialog.segments) or dialog.segments[i].status == "needs_review")
    return np.array(exact), np.array(marked)


def _correlation(task: fidm.TaskModel, truth: fidm.Cohort, found: fidm.Cohort) -> float:
    """How log η from grounded traces goes with log η from the true ones."""
    fits = [fidm.Model(task, channels=()).fit(cohort).profile(cohort) for cohort in (truth, found)]
    mine, theirs = (np.log(profile.estimate[:, 0]) for profile in fits)
    known = np.isfinite(mine) & np.isfinite(theirs)  # nobody without a single move that counts
    return float(np.corrcoef(mine[known], theirs[known])[0, 1])


def speed() -> dict[str, dict[str, float]]:
    """Time the whole way, beside a loop that only looks for the lexicon's words."""
    task = fidm.load_task("grocery")
    assert task.grid is not None
    found: dict[str, dict[str, float]] = {}
    table = Table("speed", "segments", "segments per second", "regular expressions only", "ratio")
    for code in LANGUAGES:
        talks = fidm.simulate_talks(task, 2 * PEOPLE, seed=9, language=code)
        n = talks.cohort.n_segments
        words = sorted(Vocabulary(load_language(code), task.grid.spec)._known, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, words)))
        texts = [
            turn.text.lower() for item in talks.transcripts for turn in item if turn.role == "participant"
        ]
        whole, plain = [], []
        fidm.ground(talks.transcripts[:5], task)  # files are read and patterns compiled once
        for _ in range(REPEATS):
            start = time.perf_counter()
            fidm.ground(talks.transcripts, task)
            whole.append(time.perf_counter() - start)
            start = time.perf_counter()
            for text in texts:
                pattern.findall(text)
            plain.append(time.perf_counter() - start)
        found[code] = {"per_second": n / min(whole), "ratio": min(plain) / min(whole)}
        table.add_row(
            code, f"{n:,}", f"{n / min(whole):,.0f}", f"{n / min(plain):,.0f}", f"{found[code]['ratio']:.2f}"
        )
    console.print(table)
    return found


def main() -> int:
    """Run everything and print the gates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--phrasings", metavar="GROUP", help="only judge files of this name, as judging3")
    options = parser.parse_args()
    if options.phrasings:
        phrasings([options.phrasings])
        return 0
    results: dict[str, Any] = {"phrasings": phrasings(), "simulated": simulated(), "speed": speed()}
    gates = {}
    for name, figures in results["phrasings"].items():
        gates[f"{name}: right in at least 95 % where confident"] = figures["right_if_confident"] >= 0.95
        if name.startswith("judging"):
            gates[f"{name}: confident on at least 65 %"] = figures["confident"] >= 0.65
    for code in LANGUAGES:
        gates[f"simulated dialogs, {code}: exact for at least 97 %"] = (
            results["simulated"][code]["exact"] >= 0.97
        )
        gates[f"simulated dialogs, {code}: r of log η at least .95"] = (
            results["simulated"][code]["lowest_correlation"] >= 0.95
        )
        gates[f"{code}: at least 2,000 segments per second"] = results["speed"][code]["per_second"] >= 2_000
    results["gates"] = gates
    for gate, passed in gates.items():
        console.print(f"{'✓' if passed else '✗'} {gate}")
    if options.out:
        with whole_file(options.out) as part:
            part.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    return 0 if all(gates.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
