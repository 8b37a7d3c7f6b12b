"""Gates on the published files of the JUSThink corpus."""

from __future__ import annotations

import polars as pl
from real_studies import run_real, say

FOUND = {
    ("aucs", "score", "unexpectedness", "auc"): (0.60, 0.66),
    ("aucs", "score", "q_gap", "auc"): (0.61, 0.67),
    ("aucs", "score", "cost", "auc"): (0.63, 0.69),
    ("aucs", "score", "closes_a_circle", "auc"): (0.52, 0.58),
    ("odds", "score", "unexpectedness", "odds"): (0.95, 1.25),
    ("odds", "score", "cost", "odds"): (1.6, 2.1),
    ("halves", "parameter", "action_sensitivity", "value"): (0.20, 0.40),
    ("halves", "parameter", "duration", "value"): (0.70, 0.90),
    ("halves", "parameter", "turns", "value"): (0.75, 0.95),
}
"""Findings, not expectations: they lie here, and must not drift."""


def test_justhink():
    told, misses = run_real("justhink")
    loaded, findings = told.loaded, told.findings
    for (table, column, name, value), (low, high) in FOUND.items():
        found = findings.tables[table].filter(pl.col(column) == name)[value].item()
        if not low <= found <= high:
            misses.append(f"{name} in {table}: {found:.3f} is not in {low} to {high}")
    learned = findings.tables["relations"].filter(outcome="relative_gain")
    eta = learned.filter(parameter="action_sensitivity").row(0, named=True)
    if eta["n"] != 78 or not -0.1 < eta["value"] < 0.2:
        misses.append(f"η goes with relative gain by {eta['value']:.3f}, {eta['n']} children")
    if learned["n"].to_list() != [78, 20, 20, 20, 20, 20] or learned["p_corrected"].min() < 0.05:
        misses.append("a correlation with learning has become certain, or is of other children")
    slips = dict(loaded.tables["slips"]["slip"].value_counts().iter_rows())
    if sorted(slips.values()) != [6, 16, 16, 18]:
        misses.append(f"there are other slips in the logs: {slips}")
    # the authors' own relative gains, over all children
    gain = loaded.cohort.participants["relative_gain"]
    if abs(gain.mean() - 0.0486) > 1e-4 or (gain > 0).sum() != 31 or (gain < 0).sum() != 23:
        misses.append(f"relative gain is {gain.mean():.4f} on average")
    assert not misses, say(misses)
