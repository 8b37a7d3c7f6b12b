"""Gates on the published files of the HCRC Map Task."""

from __future__ import annotations

from real_studies import run_real, say

from fidm_studies.map_task.readings import (
    ABOVE_ZERO,
    ACROSS,
    GAMMA,
    GAMMA_ABOVE,
    GENERALISED,
    LOG_NORMAL,
    LOG_NORMAL_ABOVE,
    MORE_ZEROS,
    MOVE,
    NEGATIVE_BINOMIAL,
    POISSON,
    WITHIN,
    WORDS,
    two_parts,
)

FAMILIES = {
    (MOVE, "duration", LOG_NORMAL, "difference"): (-0.030, -0.008),
    (MOVE, "duration", GENERALISED, "difference"): (-0.003, 0.004),
    (MOVE, "duration", GAMMA, "ks"): (0.0, 0.025),
    (MOVE, "duration", GAMMA, "dispersion"): (0.95, 1.12),
    (MOVE, "characters", POISSON, "difference"): (-9.0, -6.5),
    (MOVE, "characters", POISSON, "dispersion"): (18.0, 25.0),
    (MOVE, "characters", NEGATIVE_BINOMIAL, "ks"): (0.0, 0.020),
    (MOVE, "words", ABOVE_ZERO, "difference"): (0.006, 0.012),
    (MOVE, "pauses", POISSON, "difference"): (-0.12, -0.05),
    (MOVE, "pauses", MORE_ZEROS, "difference"): (-0.002, 0.003),
    (MOVE, "pause", two_parts(GAMMA), "difference"): (-0.026, -0.013),
    (MOVE, "pause", two_parts(GAMMA_ABOVE), "difference"): (0.028, 0.046),
    (MOVE, "pause", two_parts(LOG_NORMAL_ABOVE), "difference"): (-0.032, -0.006),
    (MOVE, "pause", two_parts(LOG_NORMAL), "ks"): (0.030, 0.050),
    (MOVE, "pause", two_parts(GAMMA_ABOVE), "ks"): (0.0, 0.030),
    (MOVE, "pause", two_parts(GAMMA_ABOVE), "n_residuals"): (2_202, 2_202),
    (MOVE, "pause", two_parts(GAMMA_ABOVE), "theta_rank_r"): (0.93, 0.985),
    (MOVE, "silence", two_parts(GENERALISED), "difference"): (0.006, 0.017),
    (MOVE, "silence", two_parts(GENERALISED), "theta_rank_r"): (0.93, 0.985),
    (WORDS, "duration", LOG_NORMAL, "difference"): (-0.002, 0.012),
    (WORDS, "characters", NEGATIVE_BINOMIAL, "dispersion"): (0.74, 0.84),
    (WORDS, "pause", two_parts(GAMMA_ABOVE), "difference"): (0.022, 0.039),
    (WORDS, "silence", two_parts(GAMMA), "difference"): (0.005, 0.022),
}
"""Findings, not expectations: they lie here, and must not drift."""

TWICE = {
    (MOVE, WITHIN, "duration", GAMMA): (0.50, 0.62),
    (WORDS, WITHIN, "duration", GAMMA): (0.73, 0.84),
    (MOVE, ACROSS, "duration", GAMMA): (0.40, 0.56),
    (WORDS, ACROSS, "duration", GAMMA): (0.72, 0.86),
    (MOVE, WITHIN, "characters", NEGATIVE_BINOMIAL): (0.45, 0.57),
    (MOVE, WITHIN, "pause", LOG_NORMAL): (0.27, 0.42),
    (MOVE, WITHIN, "pause", GAMMA_ABOVE): (0.36, 0.50),
}
"""How θ agrees with itself."""


def test_the_map_task() -> None:
    told, misses = run_real("map-task")
    tables = told.findings.tables
    for (given, observable, family, number), (low, high) in FAMILIES.items():
        rows = tables["families"].filter(given=given, observable=observable, family=family)
        if not low <= rows[number].item() <= high:
            misses.append(
                f"{number} of {observable}, {family}, given {given}: {rows[number].item():.4f} is not in {low} to {high}"
            )
    for (given, measured, parameter, family), (low, high) in TWICE.items():
        rows = tables["reliability"].filter(
            given=given, measured=measured, parameter=parameter, family=family
        )
        if not low <= rows["r"].item() <= high:
            misses.append(
                f"{parameter}, {family}, {measured}, given {given}: {rows['r'].item():.3f} is not in {low} to {high}"
            )
    known = tables["contrasts"]["p_holm"]
    if len(known) != 16 or not 0.03 < known.min() < 0.08:
        misses.append(f"the least corrected p of 16 contrasts is {known.min():.4f} of {len(known)}")
    optional = {one.what: one for one in told.findings.expectations if not one.required}
    if len(optional) != 1 or any(one.reached for one in optional.values()):
        misses.append("the first reading of the known reliability is not shown as missed")
    segments = told.loaded.cohort.segments
    if segments["n_words"].min() != 1 or segments.null_count().sum_horizontal().item():
        misses.append("a move has no word, or a column is not filled")
    if told.loaded.cohort.participants["eye_contact"].sum() != 32:
        misses.append("other than half of the givers see the other person")
    assert not misses, say(misses)
