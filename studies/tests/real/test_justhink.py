"""Gates on the published files of the JUSThink corpus."""

from __future__ import annotations

import polars as pl
from real_studies import run_real, say

FOUND = {
    ("aucs", "score", "unexpectedness", "auc"): (0.60, 0.66),
    ("aucs", "score", "q_gap", "auc"): (0.61, 0.67),
    ("aucs", "score", "cost", "auc"): (0.63, 0.69),
    ("aucs", "score", "closes_a_circle", "auc"): (0.52, 0.58),
    ("odds", "score", "unexpectedness", "odds"): (0.99, 1.19),
    ("odds", "score", "cost", "odds"): (1.5, 1.9),
    ("whose", "whose", "without the attempt", "auc"): (0.59, 0.65),
    ("whose", "whose", "one for all", "auc"): (0.57, 0.63),
    ("whose", "whose", "within pairs", "auc"): (0.59, 0.65),
    ("readings", "reading", "a change costs 1 franc", "auc"): (0.62, 0.68),
    ("readings", "reading", "a change costs 1 franc", "log_likelihood"): (60, 80),
    ("readings", "reading", "a change costs 1 franc", "same_order"): (0.87, 0.96),
    ("readings", "reading", "a change costs 2 francs", "auc"): (0.61, 0.67),
    ("readings", "reading", "a change costs 2 francs", "log_likelihood"): (135, 160),
    ("readings", "reading", "a change costs 2 francs", "same_order"): (0.57, 0.70),
    ("halves", "parameter", "action_sensitivity", "reliability"): (0.30, 0.50),
    ("halves", "parameter", "duration", "reliability"): (0.91, 0.97),
    ("halves", "parameter", "turns", "reliability"): (0.84, 0.94),
}
"""Findings, not expectations: they lie here, and must not drift."""


def test_justhink():
    told, misses = run_real("justhink")
    loaded, findings = told.loaded, told.findings
    for (table, column, name, value), (low, high) in FOUND.items():
        found = findings.tables[table].filter(pl.col(column) == name)[value].item()
        if not low <= found <= high:
            misses.append(f"{name} in {table}: {found:.3f} is not in {low} to {high}")
    # at the price the task is read with, every wrong track is about equally bad
    own = findings.tables["readings"].filter(reading="as read here").row(0, named=True)
    if not 0.27 < own["loss_low"] <= own["loss_high"] < 0.29:
        misses.append(f"wrong tracks lose between {own['loss_low']:.3f} and {own['loss_high']:.3f} francs")
    numbers = findings.numbers
    if (numbers["n_turns"], numbers["n_stretches"], numbers["n_without_change"]) != (588, 622, 79):
        misses.append(f"there are {numbers['n_turns']} turns in {numbers['n_stretches']} stretches")
    if not 0.44 < numbers["best_by_chance"] < 0.46 or not 0.58 < numbers["best_shares"] < 0.60:
        misses.append(f"{numbers['best_by_chance']:.3f} of random layings are in line with a best plan")
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
