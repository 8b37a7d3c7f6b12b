"""Simulated people who talk come back through the rules: their moves, and how sensitive they are.

The gates were written down before the first run. 100 people on the grocery task, every language, seeds 0 to 2,
with the default style of talk. A segment is right if the rules' best reading leads through exactly the actions
that were taken in it; η is estimated with inferred moves left out, from the grounded and from the true traces.
The wordings are those of the simulator, which knows no more than a few hundred; real talk is harder.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fidm
from fidm.cohort import Cohort
from fidm.grounding.ground import Grounded
from fidm.simulate.talk import Talks

SEEDS = (0, 1, 2)
PEOPLE = 100

EXACT = 0.97
"""Share of segments whose actions are exactly those that were taken: at least this."""
ESTIMATED = 0.98
"""Share of people of whom enough is read to say something: at least this."""
CORRELATION = 0.95
"""Correlation of log η from grounded with log η from true traces: at least this."""

cells = pytest.mark.parametrize(
    ("language", "seed"), [(code, seed) for code in ("en", "yue", "zh") for seed in SEEDS]
)


@functools.cache
def made(language: str, seed: int) -> tuple[Talks, Grounded]:
    task = fidm.load_task("grocery")
    talks = fidm.simulate_talks(task, PEOPLE, seed=seed, language=language)
    return talks, fidm.ground(talks.transcripts, task)


def actions(cohort: Cohort, person: int) -> dict[str, list[int]]:
    """The actions of one person, by segment."""
    steps = slice(int(cohort.step_offsets[person]), int(cohort.step_offsets[person + 1]))
    names = cohort.segments["segment"][
        int(cohort.segment_offsets[person]) : int(cohort.segment_offsets[person + 1])
    ]
    assert cohort.segment is not None
    found: dict[str, list[int]] = {name: [] for name in names.to_list()}
    for row, action in zip(cohort.segment[steps].tolist(), cohort.action[steps].tolist(), strict=True):
        found[names[row]].append(action)
    return found


@cells
def test_segments_are_cut_where_they_were_made(language: str, seed: int) -> None:
    talks, grounded = made(language, seed)
    for dialog, turns in zip(grounded.dialogs, talks.turns, strict=True):
        assert [(one.segment.dialog[0], one.segment.dialog[-1]) for one in dialog.segments] == list(turns)


@cells
def test_rules_find_the_actions_that_were_taken(language: str, seed: int) -> None:
    talks, grounded = made(language, seed)
    right = sure = sure_and_right = total = 0
    for j, dialog in enumerate(grounded.dialogs):
        truth, found = actions(talks.cohort, j), actions(grounded.cohort, j)
        for one in dialog.segments:
            name = str(one.segment.number)
            exact = found.get(name, []) == truth.get(name)
            total += 1
            right += exact
            sure += one.status == "confident"
            sure_and_right += exact and one.status == "confident"
    print(
        f"{language}, seed {seed}: {right / total:.2%} of {total} segments exact; {sure / total:.2%} confident, "
        f"of which {sure_and_right / sure:.2%} exact"
    )
    assert total == talks.cohort.n_segments
    assert right / total >= EXACT


@cells
def test_sensitivity_from_words_is_that_from_moves(language: str, seed: int) -> None:
    talks, grounded = made(language, seed)
    task = fidm.load_task("grocery")
    eta = []
    for cohort in (talks.cohort, grounded.cohort):
        model = fidm.Model(task, channels=(), inferred=0.0)
        eta.append(np.log(model.fit(cohort).profile(cohort).action_sensitivity))
    has_both = np.isfinite(eta[1])  # of whom too little is known there is no estimate
    true, read = (values[has_both] for values in eta)
    r = float(np.corrcoef(true, read)[0, 1])
    known = np.log(talks.cohort.participants["true_action_sensitivity"].to_numpy())[has_both]
    print(
        f"{language}, seed {seed}: of {has_both.mean():.0%} log η from words and from moves r = {r:.3f}, mean difference "
        f"{np.mean(read - true):+.3f}; with the truth r = {np.corrcoef(known, read)[0, 1]:.3f} from words, "
        f"{np.corrcoef(known, true)[0, 1]:.3f} from moves"
    )
    assert np.isfinite(eta[0]).all()
    assert has_both.mean() >= ESTIMATED
    assert r >= CORRELATION
