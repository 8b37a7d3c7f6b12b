"""Which segments count in effort, and which can count in action sensitivity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

import fidm
from fidm.model.gaps import say_counted, segment_uses

PEOPLE = fidm.simulate_cohort(fidm.load_task("errands"), 3, seed=1)


def test_a_segment_can_count_in_action_sensitivity_by_its_stated_steps_of_known_place():
    first = (PEOPLE.segment == 0) & (np.arange(PEOPLE.n_steps) < PEOPLE.step_offsets[1])
    n = int(first.sum())
    assert n
    assert segment_uses(PEOPLE)["in_choices"][0]
    assert not segment_uses(replace(PEOPLE, weight=np.where(first, 0.0, 1.0)))["in_choices"][0]
    planned = replace(PEOPLE, inferred=first)
    assert segment_uses(planned)["in_choices"].to_list() == [False, *segment_uses(PEOPLE)["in_choices"][1:]]
    assert segment_uses(planned)["n_inferred"].to_list() == [n] + [0] * (PEOPLE.n_segments - 1)
    assert segment_uses(planned, inferred=0.5)["in_choices"][0]


def test_rejections_are_named_only_where_there_are_any():
    uses = pl.DataFrame({"awaits_review": [False], "in_effort": [True], "in_choices": [True]})
    assert say_counted(uses, pl.Series(["confident"])) == ""
    one = "1 of 2 segments count in effort and 1 can count in action sensitivity; "
    assert say_counted(uses, pl.Series(["confident", "no_route"])) == f"{one}in 1 no moves were read"
    assert say_counted(uses, pl.Series(["confident", "rejected"])) == f"{one}1 was rejected"
    far_longer = pl.DataFrame(
        {"awaits_review": [True, False], "in_effort": [False, True], "in_choices": [True] * 2}
    )
    said = "1 of 2 segments count in effort and 2 can count in action sensitivity"
    assert say_counted(far_longer, pl.Series(["needs_review", "confident"])) == said
