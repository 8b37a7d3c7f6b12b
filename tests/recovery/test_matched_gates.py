"""The paper's matched conditions, with simulated people on the grocery task.

All bands were written down before the run: 400 pairs, about 60 choices and 17 segments each, ηA = 18 and
ηB = 30, five repetitions, seed 1. Five of them are missed, and stand here as what they are:

- a person's choices on this map tell log η to ±0.20 at η = 18 and ±0.26 at 24 (the bands were drawn from another
  map, with ±0.32 there), so the action factor tells A from B better than the paper reports,
  and points in the right direction more often;
- raw η has a heavy tail, and a few near-perfect choosers pull its mean difference up;
- the pause's r depends on how many segments have a pause, which the paper does not say; here it is about 8 in A
  and 4 in B;
- the largest difference of four independent totals in five repetitions of 400 pairs is about 0.15 by chance
  alone (each has a standard error of 0.07), so 0.12 was too narrow a band. Their means over repetitions are
  gated too; that band, four standard errors, was written after the run.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fidm
from fidm.study import paper
from fidm.study.matching import matched

AUC = {
    "raw": (0.46, 0.54),
    "per_movement": (0.46, 0.54),
    "action": (0.90, 0.96),
    "effort": (0.967, 1.0),
    "full": (0.985, 1.0),
}
R, SENSITIVITY_R, DIRECTION, DIFFERENCE = 0.06, 0.13, 0.04, 0.15
"""How far r, direction and, relatively, the mean difference may be from the paper's."""
LARGEST_DIFFERENCE = 0.12
MEAN_DIFFERENCE = 4 * np.sqrt(2 / (5 * 400))

MISSED = {
    ("auc", "action"): "0.965: choices on this map tell more about η",
    ("direction", "action_sensitivity"): "0.971 against 0.924: choices on this map tell more about η",
    ("difference", "action_sensitivity"): "16.1 against 12.8: the heavy tail of raw η",
    ("r", "pause"): "0.474 against 0.538: too few segments with a pause",
    ("largest", ""): "0.154: what chance alone gives with 400 pairs and five repetitions",
}


@functools.cache
def found():
    return matched(fidm.load_task("grocery"), n=400, low=18.0, high=30.0, repeat=5, seed=1)


def gates():
    """Every gate: what is judged, of what, and the band."""
    for name, band in AUC.items():
        yield "auc", name, band
    for name, (r, direction, difference) in paper.MATCHED_RECOVERY.items():
        near = SENSITIVITY_R if name == "action_sensitivity" else R
        yield "r", name, (r - near, r + near)
        yield "direction", name, (direction - DIRECTION, direction + DIRECTION)
        yield "difference", name, (difference * (1 - DIFFERENCE), difference * (1 + DIFFERENCE))
    yield "largest", "", (0.0, LARGEST_DIFFERENCE)


def marked():
    for kind, name, band in gates():
        why = MISSED.get((kind, name))
        marks = () if why is None else pytest.mark.xfail(reason=why, strict=True)
        yield pytest.param(kind, name, band, marks=marks, id=f"{kind}-{name}".rstrip("-"))


@pytest.mark.parametrize(("kind", "name", "band"), list(marked()))
def test_it_comes_out_as_in_the_paper(kind, name, band):
    if kind == "auc":
        value = found().area(name)
    elif kind == "largest":
        value = found().largest_difference
    else:
        value = found().recovery.filter(factor=name)[kind].item()
    print(f"{kind} {name}: {value:.3f}, band {band[0]:.3f} to {band[1]:.3f}")
    assert band[0] <= value <= band[1]


def test_totals_agree_on_average():
    assert found().differences["mean"].abs().max() <= MEAN_DIFFERENCE


def test_people_are_as_many_and_as_long_as_the_paper_says():
    assert found().n_pairs == 400
    assert found().n_actions == pytest.approx(60, abs=1)
    assert 16 <= found().n_segments <= 18


def test_plain_summaries_the_paper_does_not_try_solve_it_too():
    assert found().area("per_segment") >= 0.985
    assert found().area("n_segments") >= 0.90
