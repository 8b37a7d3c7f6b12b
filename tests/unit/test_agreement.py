"""How far reviewers agree, and what their verdicts say of the grounder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import fidm
from fidm.errors import GroundingError
from fidm.grounding.agreement import agreements, audit_of, draw_sample
from fidm.grounding.audit import drawn_dialogs, sample_audit
from fidm.grounding.decisions import Decision, Kind, Outcome, Sample
from fidm.grounding.ground import ground
from fidm.grounding.review import decide, review_dialog
from fidm.grounding.store import write_grounding
from fidm.proportion import wilson
from fidm.talk import Transcript, Turn

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
    (found,) = agreements([*made, said("Ann", 1, "withdraw"), said("Ann", 1, "accept")])
    assert (found.n, found.n_same_verdict) == (1, 1)
    assert agreements([*made, said("Bo", 1, "withdraw")]) == ()


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
    made = [verdict("Ann", p, s, "accept") for p in range(3) for s in range(2)]
    made[1] = verdict("Ann", 0, 1, "reject")
    found = audit_of(ALL, GROUNDED, made)
    assert (found.n_dialogs, found.n_consistent, found.n_segments, found.n_right) == (3, 2, 6, 5)
    assert found.n_left == 2
    assert found.dialogs == wilson(2, 3)
    assert found.segments == wilson(5, 6)
    assert audit_of(ALL, GROUNDED, made[:1]).n_dialogs == 0
    assert audit_of(ALL, GROUNDED, []).dialogs == (0.0, 1.0)
    assert audit_of(ALL, GROUNDED, made, level=0.5).dialogs == wilson(2, 3, 0.5)
    with pytest.raises(GroundingError, match="level"):
        audit_of(ALL, GROUNDED, made, level=95)


def test_an_audit_by_one_or_by_everybody() -> None:
    one = Sample(name="x", seed=1, n=1, dialogs=(("P0", "1"),))
    made = [verdict(who, 0, s, "accept") for who in ("Ann", "Bo") for s in range(2)]
    made.append(verdict("Bo", 0, 1, "reject"))
    assert audit_of(one, GROUNDED, made, reviewer="Ann").n_consistent == 1
    assert audit_of(one, GROUNDED, made, reviewer="Bo").n_consistent == 0
    assert audit_of(one, GROUNDED, made, reviewer="Cy").n_left == 2
    assert audit_of(one, GROUNDED, made).n_consistent == 0
    made.append(verdict("Cy", 0, 1, "accept", settles=True))
    assert audit_of(one, GROUNDED, made).n_consistent == 1


def test_an_accepted_edit_does_not_make_the_grounder_right() -> None:
    from dataclasses import replace

    made = verdict("Ann", 0, 0, "accept")
    assert made.new is not None
    own = replace(made.new, program="MOVE left 2", actions=("W", "W"))
    made = replace(made, old=own, new=own)
    assert audit_of(ALL, GROUNDED, [made]).n_right == 0


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
