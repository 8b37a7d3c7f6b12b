"""What decisions do to a study: which one is in force, what follows from it, and that nothing is half done."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fidm
from fidm import files
from fidm.errors import DataError, GroundingError
from fidm.grounding.dialog import Settings, Weighing
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.review import apply as review
from fidm.grounding.review.apply import apply_review, bring_up_to_date, read_proposed, reviewed_grounding
from fidm.grounding.review.audit import sample_audit, score_audit
from fidm.grounding.review.edits import parse_edit
from fidm.grounding.review.trail import FILE, Decision, Kind, Trail, verify_trail
from fidm.grounding.review.verdicts import ReviewedSegment, changed_after, decide, doubtfulness, review_dialog
from fidm.grounding.store import (
    PROPOSALS,
    PROPOSED,
    PROPOSED_MOVES,
    alone_in,
    has_grounding,
    read_grounding,
    study_draws,
    write_grounding,
)
from fidm.io.study import read_cohort
from fidm.io.talk import Transcript, Turn

TASK = fidm.load_task("grocery")
SAID = (
    "go left one square",
    "go up",
    "go left two squares",
    "to the meat, take the meat",
    "go down one square",
)


def talk(who: str = "P1", said: Sequence[str] = SAID, episode: str = "1") -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.0, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor"))
    return Transcript(who, tuple(turns), language="en", episode=episode)


def grounded(*dialogs: Transcript, **more: Any) -> Grounded:
    return ground(dialogs or (talk(),), TASK, settings=Settings(weighing=Weighing(**more)))


ONE = grounded()


class Desk:
    """A dialog and the people who decide on it, in memory."""

    def __init__(self, base: Grounded = ONE, row: int = 0) -> None:
        self.base, self.dialog, self.made = base, base.dialogs[row], list[Decision]()

    def now(self) -> tuple[ReviewedSegment, ...]:
        return review_dialog(self.dialog, self.made, self.base.terrain)

    def do(self, who: str, number: int, kind: Kind, text: str = "", **more: Any) -> Decision:
        segment = self.now()[number - 1]
        terrain, told = self.base.terrain, self.dialog.told
        edit = parse_edit(text, terrain, segment.start, told=told) if kind == "edit" else None
        made = decide(self.dialog, segment, terrain, reviewer=who, kind=kind, edit=edit, **more)
        made = replace(made, number=len(self.made) + 1)
        self.made.append(made)
        return made

    def statuses(self) -> list[str]:
        return [one.grounded.status for one in self.now()]

    def applied(self) -> review.Applied:
        return reviewed_grounding(self.base, self.made)


def weights(one: Grounded, segment: int) -> list[float]:
    rows = (one.moves["segment"] == str(segment)).to_numpy()
    return [float(value) for value in np.asarray(one.cohort.weight)[rows]]


# ------------------------------------------------------------------ what is in force


def test_what_the_rules_make_of_the_dialog() -> None:
    """The second segment says no distance; that one can go left after it tells how far it was."""
    assert Desk().statuses() == ["confident", "needs_review", "confident", "confident", "confident"]
    assert [weights(ONE, n)[0] for n in range(1, 6)] == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert all(one.grounded is one.proposed for one in Desk().now())


def test_an_accepted_segment_is_reviewed_and_counts() -> None:
    desk = Desk()
    made = desk.do("Ann", 2, "accept")
    now = desk.now()[1]
    assert (now.grounded.status, now.grounded.doubts, now.decision) == ("reviewed", (), made)
    assert now.grounded.proposal.grounder == "review"
    assert now.is_settled
    found = desk.applied()
    assert (found.n_decisions, found.n_reviewed) == (1, 1)
    assert weights(ONE, 2) == [0.0] * 3
    assert weights(found.grounded, 2) == [1.0] * 3
    assert found.grounded.moves.filter(pl.col("segment") == "2")["inferred"].all()
    assert found.grounded.moves["word_start"].to_list() == ONE.moves["word_start"].to_list()


def test_an_edit_moves_what_follows_and_its_doubts_are_found_anew() -> None:
    desk = Desk()
    before = desk.now()
    desk.do("Ann", 2, "edit", "N")
    after = desk.now()
    assert after[1].actions == ("N",)
    assert after[2].start != before[2].start
    changes = changed_after(before, after)
    assert [change.segment for change in changes] == [2, 3, 4]
    assert (changes[0].old_status, changes[0].new_status) == ("needs_review", "reviewed")
    assert changes[0].old_actions == ("N",) * 3
    assert (after[2].grounded.status, after[2].grounded.doubts) == ("needs_review", ("blocked",))
    assert after[2].proposed.doubts == ()
    span = after[1].grounded.proposal.program[0].span
    assert span == (0, len("go up"))
    assert changed_after(after, after) == ()


def test_instructions_that_were_read_before_keep_their_words() -> None:
    desk = Desk()
    desk.do("Ann", 4, "edit", "W W; GOTO meat; N; BUY meat")
    program = desk.now()[3].grounded.proposal.program
    known = {str(step): step.span for step in desk.now()[3].proposed.proposal.program}
    whole = (0, len(SAID[3]))
    assert [step.span for step in program] == [whole, known["GOTO meat"], whole, known["BUY meat"]]
    assert whole not in known.values()
    assert {step.probability for step in program} == {1.0}


def test_a_correction_before_it_makes_a_decision_stale_and_back_again() -> None:
    desk = Desk()
    desk.do("Ann", 3, "edit", "NONE")
    assert desk.statuses()[2] == "reviewed"
    desk.do("Ann", 2, "edit", "N")
    now = desk.now()[2]
    assert (now.is_stale, now.grounded.status) == (True, "needs_review")
    assert now.grounded.doubts[0] == "moved_since_review"
    assert str(now.program[0]) == "NONE"
    assert desk.applied().n_stale == 1
    assert doubtfulness(now) > 2
    desk.do("Ann", 2, "withdraw")
    assert desk.statuses()[2] == "reviewed"


def test_a_rejected_segment_is_left_out_and_what_follows_is_in_doubt() -> None:
    desk = Desk()
    desk.do("Ann", 1, "reject")
    desk.do("Ann", 2, "accept")
    desk.do("Ann", 4, "reject")
    found = desk.applied().grounded
    assert desk.statuses() == ["rejected", "reviewed", "confident", "rejected", "confident"]
    assert weights(found, 1) == [0.0]
    assert weights(found, 2) == [1.0] * 3  # somebody saw where it starts
    assert set(weights(found, 4)) == set(weights(found, 5)) == {0.0}
    assert found.cohort.segments["segment"].to_list() == ["2", "3", "5"]
    assert found.cohort.segment is not None
    rows = found.moves["segment"].is_in(["1", "4"]).to_numpy()
    assert (np.asarray(found.cohort.segment)[rows] == -1).all()
    assert found.checks.height == 0
    for cohort in found.draws(3, seed=2):
        assert cohort.weight is not None
        assert cohort.weight[0] == 0
        assert cohort.segments["segment"].to_list() == ["2", "3", "5"]


def test_after_a_rejected_segment_doubtful_moves_have_the_weight_of_doubt() -> None:
    desk = Desk(grounded(doubtful=0.25))
    desk.do("Ann", 4, "reject")
    found = desk.applied().grounded
    assert set(weights(found, 4)) == {0.0}
    assert weights(found, 5) == [0.25]
    for cohort in found.draws(2, seed=1):
        assert np.asarray(cohort.weight)[-1] == 0.25


def test_the_latest_of_each_reviewer_counts_and_can_be_taken_back() -> None:
    desk = Desk()
    desk.do("Ann", 2, "reject")
    last = desk.do("Ann", 2, "accept")
    assert desk.now()[1].decisions == (last,)
    desk.do("Ann", 2, "withdraw")
    now = desk.now()[1]
    assert (now.grounded, now.decision, now.decisions) == (now.proposed, None, ())


def test_reviewers_who_agree_in_the_moves_agree() -> None:
    desk = Desk()
    desk.do("Ann", 2, "edit", "MOVE up 2")
    second = desk.do("Bo", 2, "edit", "MOVE up 1; MOVE up 1")
    now = desk.now()[1]
    assert now.decision == second
    assert len(now.grounded.proposal.readings) == 1
    desk.do("Cy", 2, "reject")
    assert desk.now()[1].reviewers_differ


@pytest.mark.parametrize("order", [("Ann", "Bo"), ("Bo", "Ann")])
def test_reviewers_who_differ_in_what_was_said_and_what_inferred_differ(order: tuple[str, str]) -> None:
    """The same moves, but whether they were said decides whether they count: no matter who came last."""
    desk = Desk()
    read = {"Ann": "GOTO meat; BUY meat", "Bo": " ".join(desk.now()[3].actions)}
    for who in order:
        desk.do(who, 4, "edit", read[who])
        assert any(desk.now()[3].replay.inferred) == (who == "Ann") or who == order[1]
    now = desk.now()[3]
    assert (now.reviewers_differ, now.decision) == (True, None)


def test_words_of_an_edit_are_those_of_the_nearest_reading_or_of_the_longest_turn() -> None:
    turns = [
        Turn("PAR", 0.0, 0.5, "er", "participant"),
        Turn("PAR", 1.0, 2.0, "go left one square", "participant"),
        Turn("PAR", 2.5, 3.0, "uh", "participant"),
    ]
    desk = Desk(grounded(Transcript("P1", tuple(turns), language="en")))
    desk.do("Ann", 1, "edit", "W W")
    moves = desk.applied().grounded.moves
    assert moves["turn"].to_list() == [2, 2]
    said = turns[1].text[moves["word_start"][0] : moves["word_end"][0]]
    assert "left" in said
    desk.do("Ann", 1, "edit", "W N")
    moves = desk.applied().grounded.moves
    assert moves["turn"].to_list() == [2, 2]
    assert (moves["word_start"][1], moves["word_end"][1]) == (0, len(turns[1].text))


def test_accepting_that_nothing_was_said_does_not_say_where_the_figure_is() -> None:
    said = ("go left one square", "well I am thinking", "go left one square")
    desk = Desk(grounded(talk(said=said)))
    desk.do("Ann", 1, "reject")
    desk.do("Ann", 2, "accept")
    assert weights(desk.applied().grounded, 3) == [0.0]
    desk.do("Ann", 3, "accept")
    assert weights(desk.applied().grounded, 3) == [1.0]


def test_reviewers_who_differ_leave_it_in_doubt_until_somebody_settles_it() -> None:
    desk = Desk()
    desk.do("Ann", 2, "accept")
    desk.do("Bo", 2, "edit", "N")
    now = desk.now()[1]
    assert (now.decision, now.reviewers_differ, now.grounded.status) == (None, True, "needs_review")
    assert now.grounded.doubts[0] == "reviewers_differ"
    assert [round(r.probability, 3) for r in now.grounded.proposal.readings] == [0.5, 0.5]
    assert doubtfulness(now) > 3
    settled = desk.do("Cy", 2, "edit", "N N", settles=True)
    now = desk.now()[1]
    assert (now.decision, now.reviewers_differ, now.actions) == (settled, False, ("N", "N"))
    assert doubtfulness(now) == 0
    desk.do("Ann", 2, "edit", "N N")
    assert desk.statuses()[1] == "reviewed"
    desk.do("Ann", 2, "reject")
    assert desk.now()[1].reviewers_differ
    assert desk.now()[1].actions == ("N", "N")


def test_two_who_reject_agree() -> None:
    desk = Desk()
    desk.do("Ann", 2, "reject")
    desk.do("Bo", 2, "reject")
    assert desk.statuses()[1] == "rejected"


def test_a_decision_made_elsewhere_does_not_stand_against_one_that_holds() -> None:
    desk = Desk()
    desk.do("Ann", 3, "edit", "NONE")
    desk.do("Ann", 2, "edit", "N")
    held = desk.do("Bo", 3, "edit", "S")
    now = desk.now()[2]
    assert (now.decision, now.is_stale, now.reviewers_differ) == (held, False, False)
    assert [d.reviewer for d in now.decisions] == ["Ann", "Bo"]


def test_decisions_about_other_words_or_another_task_change_nothing_by_themselves() -> None:
    desk = Desk()
    desk.do("Ann", 2, "accept")
    desk.made = [replace(desk.made[0], words="0" * 64)]
    assert desk.statuses()[1] == "needs_review"
    assert desk.now()[1].decision is None
    assert desk.applied().n_lost == 1
    desk.made = []
    made = desk.do("Ann", 2, "reject")
    desk.made = [replace(made, task="other")]
    now = desk.now()[1]
    assert (now.is_stale, now.grounded.status) == (True, "needs_review")


def test_a_program_with_a_place_the_map_has_no_more_is_stale() -> None:
    desk = Desk()
    made = desk.do("Ann", 2, "accept")
    assert made.new is not None
    desk.made = [replace(made, new=replace(made.new, program="GOTO nowhere"))]
    now = desk.now()[1]
    assert now.is_stale
    assert now.program == now.proposed.proposal.program


def test_the_most_doubtful_come_first() -> None:
    desk = Desk()
    values = [doubtfulness(one) for one in desk.now()]
    assert values[1] == max(values)
    assert values[3] > values[4] > 0  # the planner found the way there
    desk.do("Ann", 2, "accept")
    assert doubtfulness(desk.now()[1]) == 0


def test_an_edit_and_only_an_edit_needs_a_program() -> None:
    desk = Desk()
    segment = desk.now()[0]
    for kind, edit in (("edit", None), ("accept", parse_edit("W", ONE.terrain, segment.start))):
        with pytest.raises(GroundingError, match="edit"):
            decide(desk.dialog, segment, ONE.terrain, reviewer="Ann", kind=kind, edit=edit)  # type: ignore[arg-type]


# ------------------------------------------------------------------ the study


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "participants.csv").write_text("participant,age\nP1,70\nP9,61\n", "utf-8")
    unread = pl.DataFrame(
        [("P7.cha", 3, "P7", "The turn has no times.", "")],
        schema=fidm.cohort.PROBLEM_SCHEMA, orient="row",
    )  # fmt: skip
    dialogs = (talk(), talk("P2"), Transcript("P0", (), language="en"))
    write_grounding(folder, grounded(*dialogs, doubtful=0.5), tasks=["grocery"], problems=unread)
    return folder


def decided(study: Path, *what: tuple[str, int, Kind, str]) -> Trail:
    trail, desk = Trail(study), Desk(read_proposed(study, TASK))
    desk.made = list(trail.decisions)
    for who, number, kind, text in what:
        trail.append(desk.do(who, number, kind, text))
    return trail


def tables(study: Path) -> dict[str, pl.DataFrame]:
    files = [file for part in ("*.parquet", "grounding/*.parquet") for file in sorted(study.glob(part))]
    return {str(file.relative_to(study)): pl.read_parquet(file) for file in files}


def same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> bool:
    return one.keys() == other.keys() and all(one[name].equals(other[name]) for name in one)


def test_a_study_is_brought_up_to_date_once(study: Path) -> None:
    before = tables(study)
    assert bring_up_to_date(study) is None
    assert apply_review(study) is None
    trail = decided(study, ("Ann", 2, "edit", "N"), ("Ann", 3, "reject", ""))
    said = bring_up_to_date(study)
    assert said is not None
    assert "2 new decisions" in said
    assert "1 segment read by hand, 1 rejected" in said
    assert bring_up_to_date(study) is None
    provenance = json.loads((study / "grounding" / "provenance.json").read_text("utf-8"))
    assert provenance["review"] == {
        "head": trail.head, "n_decisions": 2, "n_reviewed": 1, "n_rejected": 1, "n_stale": 0, "n_differ": 0,
        "n_lost": 0,
    }  # fmt: skip
    after = tables(study)
    assert after[f"grounding/{PROPOSALS}"].equals(before["grounding/segments.parquet"])
    for name in ("grounding/turns.parquet", "grounding/dialogs.parquet", "participants.parquet"):
        assert after[name].equals(before[name])
    cohort = read_cohort(study)
    again = read_grounding(study, TASK, settings=Settings(weighing=Weighing(doubtful=0.5)))
    assert np.array_equal(cohort.weight, again.cohort.weight)
    assert np.array_equal(cohort.state, again.cohort.state)
    assert cohort.n_segments == 9
    assert 0.5 in cohort.weight
    assert cohort.problems.height == 0
    problems = pl.read_csv(study / "grounding" / "problems.csv")
    assert problems["participant"].to_list() == ["P7", "P0"]
    assert read_proposed(study, TASK).segments.equals(before["grounding/segments.parquet"])
    assert read_proposed(study).cohort.n_steps == before["steps.parquet"].height
    for drawn in study_draws(study, TASK, 2, seed=1):
        assert (drawn.segments["status"] != "rejected").all()


def test_taking_everything_back_brings_the_first_tables_back(study: Path) -> None:
    before = tables(study)
    decided(study, ("Ann", 2, "edit", "N"), ("Bo", 1, "reject", ""))
    bring_up_to_date(study)
    assert not same(tables(study), before)
    decided(study, ("Ann", 2, "withdraw", ""), ("Bo", 1, "withdraw", ""))
    assert bring_up_to_date(study) is not None
    after = tables(study)
    del after[f"grounding/{PROPOSALS}"], after[f"grounding/{PROPOSED_MOVES}"]
    assert same(after, before)


def test_a_sample_alone_changes_no_table(study: Path) -> None:
    from fidm.grounding.review.audit import draw_sample

    decided(study, ("Ann", 2, "accept", ""))
    bring_up_to_date(study)
    Trail(study).append(draw_sample(study, 1, 1, reviewer="Ann"))
    assert bring_up_to_date(study) is None


def test_grounding_again_keeps_the_decisions_that_still_hold(study: Path) -> None:
    decided(study, ("Ann", 2, "edit", "N"), ("Ann", 4, "accept", ""), ("Ann", 5, "accept", ""))
    bring_up_to_date(study)
    said = (*SAID[:3], "to the meat, take the meat please", SAID[4])
    write_grounding(study, grounded(talk(said=said), talk("P2")), tasks=["grocery"])
    assert not (study / "grounding" / PROPOSALS).exists()
    assert not (study / "grounding" / PROPOSED).exists()
    assert bring_up_to_date(study) is not None
    applied = apply_review(study)
    assert applied is not None
    assert (applied.n_decisions, applied.n_reviewed, applied.n_lost) == (3, 2, 1)
    assert "1 that the study" in str(applied)


def test_an_interrupted_write_brings_everything_back(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(study, ("Ann", 2, "edit", "N"))
    before = tables(study)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_swap", fail)
    with pytest.raises(KeyboardInterrupt):
        bring_up_to_date(study)
    monkeypatch.undo()
    after = tables(study)
    del after[f"grounding/{PROPOSALS}"], after[f"grounding/{PROPOSED_MOVES}"]
    assert same(after, before)
    assert has_grounding(study)
    assert bring_up_to_date(study) is not None


KILLED = """
import os, signal, sys
from fidm.grounding.review.apply import bring_up_to_date
replace, calls, wanted = os.replace, [0], int(sys.argv[2])
def dying(old, new):
    calls[0] += 1
    if calls[0] == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(old, new)
os.replace = dying
bring_up_to_date(sys.argv[1])
"""


def test_a_process_killed_while_it_applies_loses_nothing(study: Path, tmp_path: Path) -> None:
    """Killed among the study's tables, and among those of the grounding."""
    import shutil

    decided(study, ("Ann", 2, "edit", "N"), ("Ann", 3, "reject", ""))
    killed = {n: tmp_path / f"killed-{n}" for n in (9, 19)}
    running = []
    for n, folder in killed.items():
        shutil.copytree(study, folder)
        running.append(subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(n)]))
    bring_up_to_date(study)
    assert [process.wait(60) for process in running] == [-9, -9]
    for folder in killed.values():
        assert not has_grounding(folder)
        assert bring_up_to_date(folder) is not None
        assert same(tables(folder), tables(study))
        assert bring_up_to_date(folder) is None
        assert verify_trail(folder).is_whole


def test_decisions_without_a_grounding_are_not_passed_over(study: Path) -> None:
    decided(study, ("Ann", 2, "accept", ""))
    (study / "grounding" / "provenance.json").unlink()
    with pytest.raises(GroundingError, match="fidm ground"):
        bring_up_to_date(study)
    with pytest.raises(GroundingError, match="no grounding"):
        apply_review(study)


def test_a_trail_that_lost_entries_is_refused(study: Path) -> None:
    decided(study, ("Ann", 2, "accept", ""), ("Ann", 3, "accept", ""))
    bring_up_to_date(study)
    for name in (FILE, "review.head"):
        (study / "grounding" / name).unlink()
    assert not verify_trail(study).is_whole
    decided(study, ("Ann", 2, "accept", ""))
    with pytest.raises(GroundingError, match="lacks decisions"):
        bring_up_to_date(study)


def test_another_task_or_version_is_refused(study: Path) -> None:
    decided(study, ("Ann", 2, "accept", ""))
    (study / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    with pytest.raises(GroundingError, match="does not name"):
        bring_up_to_date(study)


def test_whoever_holds_the_study_is_waited_for(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(study, ("Ann", 2, "accept", ""))
    monkeypatch.setattr(review, "WAIT_S", 0.1)
    with alone_in(study), pytest.raises(DataError, match="another process"):
        bring_up_to_date(study)
    assert bring_up_to_date(study) is not None


def test_sheets_drawn_before_and_after_a_review_are_about_the_grounder(study: Path, tmp_path: Path) -> None:
    sheets = [sample_audit(study, 9, seed=1, path=tmp_path / "before.csv")]
    decided(study, ("Ann", 2, "edit", "N"))
    bring_up_to_date(study)
    sheets.append(sample_audit(study, 9, seed=1, path=tmp_path / "after.csv"))
    assert sheets[0].read_bytes() == sheets[1].read_bytes()
    for sheet in sheets:
        text = sheet.read_text("utf-8-sig")
        sheet.write_text(text.replace(",,,", ",ok,,"), "utf-8")
        assert score_audit(study, sheet).n_consistent == 2
