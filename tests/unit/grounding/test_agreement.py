"""How far reviewers agree, and what their verdicts say of the grounder."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.ground import ground
from fidm.grounding.review.audit import agreements, audit_of, audits, draw_sample, drawn_dialogs, sample_audit
from fidm.grounding.review.trail import Decision, Kind, Outcome, Sample
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.grounding.store import write_grounding
from fidm.io.talk import Transcript, Turn
from fidm.stats import wilson

SHOWN = Outcome("MOVE left 1", ("W",))
OTHER = Outcome("MOVE left 2", ("W", "W"))


def said(who: str, segment: int, kind: Kind, new: Outcome | None = None, **more: Any) -> Decision:
    values: dict[str, Any] = {
        "reviewer": who, "kind": kind, "participant": "P1", "episode": "1", "segment": str(segment),
        "turns": str(segment), "words": "w", "task": "t", "start": 1, "old": SHOWN,
        "new": SHOWN if kind == "accept" else new,
    }  # fmt: skip
    return Decision(**{**values, **more})


def both(n: int, one: Kind, other: Kind, first: int = 0) -> list[Decision]:
    made = []
    for i in range(first, first + n):
        for who, kind in (("Ann", one), ("Bo", other)):
            made.append(said(who, i, kind, OTHER if kind == "edit" else None))
    return made


def test_agreement_and_kappa_of_a_known_table() -> None:
    """20 both right, 5 and 10 apart, 15 both wrong: Cohen's kappa is 0.4."""
    made = [
        *both(20, "accept", "accept"),
        *both(5, "accept", "edit", 20),
        *both(10, "reject", "accept", 25),
        *both(15, "edit", "edit", 35),
    ]
    (found,) = agreements(made)
    assert (found.one, found.other, found.n, found.n_same_verdict) == ("Ann", "Bo", 50, 35)
    assert found.agreement == 0.7
    assert (found.low, found.high) == wilson(35, 50)
    assert found.kappa == pytest.approx(0.4)
    assert (found.n_same_moves, found.same_moves) == (35, 0.7)


def test_both_may_find_it_wrong_and_differ_in_the_moves() -> None:
    (found,) = agreements([*both(1, "edit", "reject"), *both(2, "reject", "reject", 1)])
    assert (found.n, found.n_same_verdict, found.n_same_moves) == (3, 3, 2)
    assert math.isnan(found.kappa)


def test_kappa_of_one_verdict_alone_is_undefined_and_warns_nobody() -> None:
    assert math.isnan(agreements(both(4, "accept", "accept"))[0].kappa)


def test_only_what_both_were_shown_is_compared() -> None:
    elsewhere = said("Bo", 1, "accept", start=7)
    assert agreements([said("Ann", 1, "accept"), elsewhere]) == ()
    assert agreements([said("Ann", 1, "accept"), said("Bo", 2, "accept")]) == ()
    assert agreements([]) == ()


def test_the_latest_about_the_same_reading_counts() -> None:
    """Who edits and then accepts the own edit found the first reading wrong."""
    made = [
        said("Ann", 1, "accept"),
        said("Ann", 1, "edit", OTHER),
        said("Ann", 1, "accept", old=OTHER, new=OTHER),
        said("Bo", 1, "accept"),
    ]
    (found,) = agreements(made)
    assert (found.n, found.n_same_verdict) == (1, 0)
    later = [said("Ann", 1, "withdraw"), said("Ann", 1, "accept"), said("Bo", 1, "withdraw")]
    (found,) = agreements([*made, *later])  # both could see the other's by then
    assert (found.n, found.n_same_verdict) == (1, 0)


def test_what_settles_a_difference_does_not_count() -> None:
    made = [said("Ann", 1, "accept"), said("Bo", 1, "reject"), said("Bo", 1, "accept", settles=True)]
    (found,) = agreements(made)
    assert found.n_same_verdict == 0
    assert agreements([said("Ann", 1, "accept"), said("Bo", 1, "accept", settles=True)]) == ()


def test_every_pair_is_compared() -> None:
    made = [said(who, 1, "accept") for who in ("Cy", "Ann", "Bo")]
    assert [(a.one, a.other) for a in agreements(made)] == [("Ann", "Bo"), ("Ann", "Cy"), ("Bo", "Cy")]


# ------------------------------------------------------------------ audits


def talk(who: str) -> Transcript:
    turns = []
    for i, text in enumerate(("go left one square", "go up two squares")):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor"))
    return Transcript(who, tuple(turns), language="en")


GROUNDED = ground([talk(f"P{i}") for i in range(4)], fidm.load_task("grocery"))
ALL = Sample(name="audit-1-4", seed=1, n=4, dialogs=tuple((f"P{i}", "1") for i in range(4)))


def verdict(who: str, person: int, segment: int, kind: Kind, **more: Any) -> Decision:
    dialog = GROUNDED.dialogs[person]
    seen = review_dialog(dialog, (), GROUNDED.terrain)[segment]
    return decide(dialog, seen, GROUNDED.terrain, reviewer=who, kind=kind, **more)


def test_an_audit_counts_dialogs_that_are_judged_whole() -> None:
    made = [verdict("Ann", p, s, "accept", sample=ALL.name) for p in range(3) for s in range(2)]
    made[1] = verdict("Ann", 0, 1, "reject", sample=ALL.name)
    found = audit_of(ALL, GROUNDED, made, reviewer="Ann")
    assert (found.n_dialogs, found.n_consistent, found.n_segments, found.n_right) == (3, 2, 6, 5)
    assert found.n_left == 2
    assert found.dialogs == wilson(2, 3)
    assert found.segments == wilson(5, 6)
    assert audit_of(ALL, GROUNDED, made[:1], reviewer="Ann").n_dialogs == 0
    assert audit_of(ALL, GROUNDED, [], reviewer="Ann").dialogs == (0.0, 1.0)
    assert audit_of(ALL, GROUNDED, made, reviewer="Ann", level=0.5).dialogs == wilson(2, 3, 0.5)
    with pytest.raises(GroundingError, match="level"):
        audit_of(ALL, GROUNDED, made, reviewer="Ann", level=95)


def test_each_reviewer_has_an_audit_of_their_own() -> None:
    one = Sample(name="x", seed=1, n=1, dialogs=(("P0", "1"),))
    made = [verdict(who, 0, s, "accept", sample="x") for who in ("Ann", "Bo") for s in range(2)]
    made.append(verdict("Bo", 0, 1, "reject", sample="x"))
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_consistent == 1
    assert audit_of(one, GROUNDED, made, reviewer="Bo").n_consistent == 0
    assert audit_of(one, GROUNDED, made, reviewer="Cy").n_left == 2
    scores = [(name, score.n_consistent) for _, name, score in audits([one, one], GROUNDED, made)]
    assert scores == [("Ann", 1), ("Bo", 0)]


def test_what_was_decided_outside_the_sample_is_no_audit() -> None:
    one = Sample(name="x", seed=1, n=1, dialogs=(("P0", "1"),))
    made = [verdict("Ann", 0, s, "accept") for s in range(2)]
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_left == 2
    made += [verdict("Ann", 0, s, "accept", sample="x") for s in range(2)]
    made.append(verdict("Ann", 0, 1, "reject"))  # later, and not blind
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_consistent == 1
    made.append(verdict("Ann", 0, 1, "withdraw", sample="x"))
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_left == 1


def test_agreement_is_of_what_was_decided_before_seeing_the_other() -> None:
    def share(*made: Decision) -> float:
        (found,) = agreements(made)
        return found.agreement

    ann, bo = verdict("Ann", 0, 0, "accept"), verdict("Bo", 0, 0, "reject")
    assert share(ann, bo) == 0
    assert share(ann, bo, verdict("Bo", 0, 0, "accept")) == 0  # Bo has seen what Ann decided
    assert share(ann, bo, verdict("Ann", 0, 0, "withdraw"), verdict("Ann", 0, 0, "reject")) == 0
    assert share(ann, verdict("Ann", 0, 0, "reject"), bo) == 1  # nobody else had judged it yet
    assert share(ann, verdict("Ann", 0, 0, "withdraw"), verdict("Ann", 0, 0, "reject"), bo) == 1
    settled = [verdict("Cy", 0, 0, "accept", settles=True), verdict("Cy", 0, 0, "reject")]
    assert [(one.one, one.other) for one in agreements([ann, bo, *settled])] == [("Ann", "Bo")]


def test_verdicts_about_another_map_or_from_another_start_are_no_audit() -> None:
    one = Sample(name="x", seed=1, n=1, dialogs=(("P0", "1"),))
    made = [verdict("Ann", 0, s, "accept", sample="x") for s in range(2)]
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_left == 0
    for other in (replace(made[1], task="f" * 64), replace(made[1], start=made[1].start + 1)):
        assert audit_of(one, GROUNDED, [made[0], other], reviewer="Ann").n_left == 1


def test_an_accepted_edit_does_not_make_the_grounder_right() -> None:
    made = verdict("Ann", 0, 0, "accept", sample=ALL.name)
    assert made.new is not None
    own = replace(made.new, program="MOVE left 2", actions=("W", "W"))
    made = replace(made, old=own, new=own)
    assert audit_of(ALL, GROUNDED, [made], reviewer="Ann").n_right == 0


def test_a_sample_has_the_dialogs_of_the_sheet(tmp_path: Path) -> None:
    import csv
    import io

    write_grounding(tmp_path / "s", GROUNDED, tasks=["grocery"])
    for seed in range(4):
        sheet = sample_audit(tmp_path / "s", 2, seed=seed).read_text("utf-8-sig")
        drawn = {(row["participant"], row["episode"]) for row in csv.DictReader(io.StringIO(sheet))}
        sample = draw_sample(tmp_path / "s", 2, seed, reviewer="Ann")
        assert set(sample.dialogs) == drawn
        assert (sample.name, sample.n, sample.seed, sample.reviewer) == (f"audit-{seed}-2", 2, seed, "Ann")
    assert len(drawn_dialogs(tmp_path / "s", 99, seed=0)) == 4
    with pytest.raises(GroundingError, match="1 or more"):
        draw_sample(tmp_path / "s", 0, 1)
