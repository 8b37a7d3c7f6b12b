"""Gates on the published files: a study's expectations, and its documentation, number by number.

A study's test in ``real`` runs it once and asserts that nothing is missed::

    def test_map_task():
        told, misses = run_real("map-task")
        ...  # append sentences to misses
        assert not misses, say(misses)
"""

from __future__ import annotations

import re
from pathlib import Path

from fidm_studies.page import Told, band_text, figure_text, to_html, to_markdown
from fidm_studies.running import run_study

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "results"

NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*(?:\.\d+)?(?:e[−-]?\d+)?")

RELATIVE = 0.011
"""By how much a number with decimals may differ beyond one unit of its last digit."""


def run_real(name: str) -> tuple[Told, list[str]]:
    """Run a study on the real files as ``fidm studies run`` does; return it and what it missed."""
    told = run_study(name)
    misses = [] if told.loaded.verified else ["the files are not those that were published"]
    misses += [
        f"{one.what}: {figure_text(one.found)}, was to be {band_text(one)}" for one in told.findings.missed
    ]
    if not told.findings.expectations:
        misses.append("the study expects nothing")
    assert to_html(told).startswith("<!doctype html>")
    path = DOCS / f"{name}.md"
    if not path.exists():
        return told, [
            *misses,
            f"{path.name} is not in docs/studies/results; `fidm studies run {name}` writes it",
        ]
    return told, [*misses, *differences(path.read_text("utf-8"), to_markdown(told))]


def say(misses: list[str]) -> str:
    return "\n".join(["", *misses])


def differences(kept: str, fresh: str) -> list[str]:
    """Return where the documentation is not what a run writes now: other words, or numbers too far off."""
    old, new = _lines(kept), _lines(fresh)
    if len(old) != len(new):
        return [f"the documentation has {len(old)} lines, a run writes {len(new)}"]
    return [f"documentation: {a!r}, a run: {b!r}" for a, b in zip(old, new, strict=True) if not _agree(a, b)]


def _lines(text: str) -> list[str]:
    """The lines but the one with the version."""
    return [line for line in text.splitlines() if not line.startswith("- Version:")]


def _agree(kept: str, fresh: str) -> bool:
    if NUMBER.sub("#", kept) != NUMBER.sub("#", fresh):
        return False
    return all(_close(a, b) for a, b in zip(NUMBER.findall(kept), NUMBER.findall(fresh), strict=True))


def _close(kept: str, fresh: str) -> bool:
    """Whole numbers count things and must be the same; others may differ a little from machine to machine."""
    if "." not in kept and "e" not in kept:
        return kept == fresh
    a, b = (float(one.replace("−", "-").replace(",", "")) for one in (kept, fresh))
    unit = 10.0 ** -len(kept.split("e")[0].partition(".")[2])
    if "e" in kept:
        unit *= 10.0 ** float(kept.split("e")[1].replace("−", "-"))
    return abs(a - b) <= 1.0001 * unit + RELATIVE * abs(a)
