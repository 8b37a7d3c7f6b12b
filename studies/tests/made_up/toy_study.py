"""A data set and a study of another package, as small as can be: numbers that people named."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

import fidm
from fidm.errors import DataError
from fidm.record import Record
from fidm.report import parts
from fidm_studies import Dataset, Expectation, Findings, Loaded, Reanalysis, Source

FILES = {
    "numbers.csv": b"participant,named\nA,7\nB,3\nC,8\n",
    "more/a file.txt": b"named in a pub\n",
    "other/notes.txt": b"from elsewhere\n",
}
HOME, ELSEWHERE = "https://example.org/numbers", "https://example.org/elsewhere"


def write(folder: Path, *, seed: int = 1) -> None:
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def read(folder: Path, on_progress) -> Loaded:
    on_progress("reading", 0, 1)
    try:
        named = pl.read_csv(folder / "numbers.csv")
    except FileNotFoundError:
        raise DataError("is missing.", source="numbers.csv") from None
    task = fidm.load_task("errands")
    values = fidm.solve(task)
    walked = [
        fidm.walk(task, values, 20.0, seed=i, label=one)
        for i, one in enumerate(named["participant"].to_list())
    ]
    return Loaded(
        DATASET,
        tasks=(task,),
        cohort=fidm.Cohort.from_traces(walked),
        tables={"named": named},
        notes=("Nobody was left out.",),
    )


def analyse(loaded, *, seed=1, bootstrap=50, workers=None, on_progress=None) -> Findings:
    named = loaded.tables["named"]
    mean = float(named["named"].mean())
    return Findings(
        record=Record.of(
            "toy", loaded.tasks, seed=seed, settings={"bootstrap": bootstrap}, cohort=loaded.cohort
        ),
        tables={"named": named},
        numbers={"mean": mean},
        expectations=(
            Expectation("people who named a number", named.height, 3, 3, "published"),
            Expectation("mean of the numbers", mean, 5, float("inf"), "known beforehand", "seven is usual"),
        ),
        notes=("Three people are few.",),
    )


def sections(findings: Findings, loaded: Loaded) -> list[dict]:
    mean = findings.numbers["mean"]
    figure = Figure(figsize=(3, 2))
    figure.subplots().bar(["mean"], [mean])
    numbers = parts.table(
        "means", "Mean <number>", [parts.text_column("of"), parts.column("mean")], [("all", mean)]
    )
    people = parts.table_of(
        "people",
        "Each person",
        [parts.text_column("participant"), parts.column("named")],
        findings.tables["named"],
    )
    drawn = parts.figure("mean", "The mean", figure, alt="One bar.", table="means")
    return [
        parts.section("found", "What was found", [f"People named {mean:.1f} on average & no more."]),
        parts.section("numbers", "The numbers people named", tables=[numbers, people], figures=[drawn]),
    ]


DATASET = Dataset(
    name="numbers",
    title="Named numbers",
    folder="named_numbers",
    summary="People named a number.",
    people="3 made-up people",
    licence="CC0 1.0",
    licence_url="https://creativecommons.org/publicdomain/zero/1.0/",
    terms="Anybody may do anything with it.",
    citation=("Nobody (2026). Numbers.",),
    sources=(
        Source(HOME, "0123456789abcdef", f"{HOME}/raw/", within="", there="data/"),
        Source(ELSEWHERE, "fedcba9876543210", f"{ELSEWHERE}/", within="other/"),
    ),
    manifest={path: hashlib.sha256(content).hexdigest() for path, content in FILES.items()},
    read=read,
)
REANALYSIS = Reanalysis(
    name="toy",
    dataset="numbers",
    title="Numbers that people name",
    question="Which number do people name?",
    analyse=analyse,
    sections=sections,
)


def install(folder: Path, monkeypatch, **entries: str) -> None:
    """Put a package with these entry points into reach, as if it had been installed."""
    own = {
        "fidm.datasets": "numbers = made_up.toy_study:DATASET",
        "fidm.reanalyses": "toy = made_up.toy_study:REANALYSIS",
    }
    told = folder / "toy-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    chosen = entries or own
    (told / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{lines}\n" for group, lines in chosen.items())
    )
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
