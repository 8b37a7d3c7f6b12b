"""The rules grounder on phrasings that were written apart from it.

The thresholds were given before the rules were written. The held-out files were judged seven times while the
rules were made, each time by their totals alone: confident on 70, 71, 70, 68, 70, 70 and 70 %, and right in
92.3, 93.6, 94.8, 95.3, 96.1, 96.1 and 96.1 % of those. That is choosing with the judge looking on: expect a little less
on new phrasings. What was changed in between was found on the development files. Judged before anything was
changed for them, these gave 69 to 80 % confident and 89 to 100 % right of those, and the last and hardest 44
and 97 %. The first development files have the author of the held-out ones.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fidm.grounding.base import judge, read_phrasings
from fidm.grounding.rules.grounder import Rules

PHRASINGS = Path(__file__).parent.parent / "data" / "phrasings"
RIGHT_WHERE_CONFIDENT, CONFIDENT = 0.95, 0.65


def judged(kind: str) -> pl.DataFrame:
    tables = []
    for path in sorted(PHRASINGS.glob(f"{kind}*.jsonl")):
        language = path.stem.rsplit("_", 1)[1]
        found = judge(Rules(), read_phrasings(path, language=language))
        sure = found.filter(pl.col("confident"))
        print(
            f"{path.stem}: confident {sure.height}/{found.height}, right {sure['right'].sum()}/{sure.height}"
        )
        tables.append(found)
    return pl.concat(tables)


@pytest.mark.parametrize("kind", ["heldout", "development"])
def test_the_rules_know_when_they_know(kind):
    found = judged(kind)
    sure = found.filter(pl.col("confident"))
    assert sure.height / found.height >= CONFIDENT
    assert sure["right"].mean() >= RIGHT_WHERE_CONFIDENT


def test_what_is_not_sure_says_why():
    found = judged("")
    assert found.filter(~pl.col("confident"))["doubts"].str.len_chars().min() > 0
