"""The rules grounder on phrasings that were written apart from it.

The held-out files are older and easier than those that judge: the rules of today and what they learned were
never changed for them, but they were judged often while rules were made. What to expect of new people is said
by ``judging*``, which were opened once, and by ``scripts/confidence.py``, which judges every author by what was
learned from others; both figures are in ``docs/explanation/words-to-moves.md``. These gates keep what is reached.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fidm.grounding.base import Phrasing, judge, read_phrasings
from fidm.grounding.rules.grounder import Rules

PHRASINGS = Path(__file__).parent.parent / "data" / "phrasings"
RIGHT_WHERE_CONFIDENT = {"heldout": 0.93, "judging": 0.88}
CONFIDENT, SILENT = {"heldout": 0.6, "judging": 0.3}, 0.01


def items(kind: str, language: str) -> list[Phrasing]:
    paths = sorted(PHRASINGS.glob(f"{kind}*_{language}.jsonl"))
    return [item for path in paths for item in read_phrasings(path, language=language)]


@pytest.mark.parametrize("kind", ["heldout", "judging"])
@pytest.mark.parametrize("language", ["en", "yue"])
@pytest.mark.parametrize("form", ["written", "unpunctuated"])
def test_the_rules_know_when_they_know(kind: str, language: str, form: str) -> None:
    said = items(kind, language)
    found = judge(Rules(), said if form == "written" else [item.unpunctuated() for item in said])
    sure = found.filter(pl.col("confident"))
    print(
        f"{kind} {language}: confident {sure.height}/{found.height}, right {sure['right'].sum()}/{sure.height}"
    )
    assert sure.height / found.height >= CONFIDENT[kind]
    assert sure["right"].mean() >= RIGHT_WHERE_CONFIDENT[kind]
    silent = sure.filter(pl.col("program") == "NONE", ~pl.col("right"))
    assert silent.height / found.height <= SILENT


def test_what_is_not_sure_says_why() -> None:
    found = judge(Rules(), items("heldout", "en"))
    assert found.filter(~pl.col("confident"))["doubts"].str.len_chars().min() > 0
