"""Whatever people decide, in whatever order: every trace stays sound, and every way can be said again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fidm
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.ground import NOTHING_SAID, Grounded, ground, trace_checks
from fidm.grounding.review.apply import review_all, reviewed_grounding
from fidm.grounding.review.edits import action_names, legal_actions, parse_edit, program_of
from fidm.grounding.review.trail import Decision
from fidm.grounding.review.verdicts import decide, review_dialog
from fidm.grounding.route.program import (
    EXIT,
    FINISH,
    MAX_INSTRUCTIONS,
    MOVE_WAYS,
    START,
    Instruction,
    parse_program,
)
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.io.talk import Transcript, Turn
from fidm.tasks.spec import builtin_tasks

TERRAIN = {name: Terrain(fidm.load_task(name)) for name in builtin_tasks()}


class Stub:
    """A grounder that takes what is said for a program, with a second reading; ``!`` is a doubt."""

    name = "stub"

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": "stub"}

    def ground(self, segment: Segment, context: Context) -> Proposal:
        said = parse_program(segment.text.rstrip("!"), context.terrain.places)
        other = parse_program("GOTO meat", context.terrain.places)
        doubts = ("vague",) if segment.text.endswith("!") else ()
        return Proposal.of([(said, 0.7), (other, 0.3)], doubts, "stub")

    def close(self) -> None: ...


def talk(who: str, *said: str) -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 3.0 * i, 3 * i + 1.25, text, "participant"))
        turns.append(Turn("INV", 3 * i + 1.5, 3 * i + 2.0, "okay, I've moved you", "assessor"))
    turns.append(Turn("INV", 3.0 * len(said), 3.0 * len(said) + 1, "please also get some bread", "assessor"))
    turns.append(
        Turn("PAR", 3.0 * len(said) + 1, 3.0 * len(said) + 2, "GOTO bakery; BUY bakery", "participant")
    )
    return Transcript(who, tuple(turns), language="en")


GROUNDED: Grounded = ground(
    [
        talk("P1", "MOVE left 1; MOVE up 9!", "NONE", "GOTO meat; BUY meat", "MOVE left 1"),
        talk("P2", "GOTO vegetables; BUY vegetables", "MOVE down!", "TURN left; MOVE ahead 2"),
    ],
    fidm.load_task("grocery"),
    by=Stub(),
)


@st.composite
def decided(draw: st.DrawFn) -> list[Decision]:
    """Decisions of two people about random segments, each as they stand in what that person sees."""
    made: list[Decision] = []
    terrain = GROUNDED.terrain
    for _ in range(draw(st.integers(1, 12))):
        dialog = draw(st.sampled_from(GROUNDED.dialogs))
        who = draw(st.sampled_from(["Ann", "Bo"]))
        alone = draw(st.booleans())
        seen = [one for one in made if one.reviewer == who] if alone else made
        segment = draw(st.sampled_from(review_dialog(dialog, seen, terrain)))
        kind = draw(st.sampled_from(["accept", "edit", "edit", "reject", "withdraw"]))
        edit = None
        if kind == "edit":
            position, way = segment.start, []
            for _ in range(draw(st.integers(0, 5))):
                legal = legal_actions(terrain, position, told=dialog.told)
                if not legal:
                    break
                way.append(draw(st.sampled_from(legal)))
                program = program_of(way, terrain, segment.start, told=dialog.told)
                position = replay(program, terrain, segment.start, told=dialog.told).end
            edit = parse_edit(" ".join(way) or "NONE", terrain, segment.start, told=dialog.told)
            assert action_names(terrain, edit[1].actions) == tuple(way)
        settles = draw(st.booleans()) and not alone
        made.append(decide(dialog, segment, terrain, reviewer=who, kind=kind, edit=edit, settles=settles))
    return made


@settings(max_examples=30)
@given(made=decided(), data=st.data())
def test_any_decisions_in_any_order_give_sound_traces(made: list[Decision], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(made))
    for decisions in (made, shuffled):
        applied = reviewed_grounding(GROUNDED, decisions)
        now = applied.grounded
        assert now.checks.filter(now.checks["problem"] != NOTHING_SAID).height == 0
        walked = review_all(GROUNDED, decisions)
        for segments, weights in zip(walked, _weights(now), strict=True):
            start = 0
            for one in segments:
                mine = weights[start : start + len(one.replay)]
                start += len(one.replay)
                if one.grounded.status == "reviewed":
                    assert (mine == 1).all()
                    assert one.decision is not None
                    assert one.decision.new is not None
                    assert one.actions == one.decision.new.actions
                    assert one.grounded.doubts == ()
                elif one.grounded.status in ("rejected", "needs_review"):
                    assert (mine == 0).all()
                assert (one.is_stale or one.reviewers_differ) <= (one.grounded.status == "needs_review")
            assert start == len(weights)
        assert now.cohort.segments.filter(now.cohort.segments["status"] == "rejected").height == 0
        for cohort in now.draws(2, seed=1):
            found = trace_checks(now.terrain.task, cohort, now.dialogs)
            assert found.filter(found["problem"] != NOTHING_SAID).height == 0


def _weights(grounded: Grounded) -> list[np.ndarray[Any, Any]]:
    return np.split(np.asarray(grounded.cohort.weight), grounded.cohort.step_offsets[1:-1])


@settings(max_examples=20)
@given(made=decided())
def test_taking_everything_back_leaves_the_proposals(made: list[Decision]) -> None:
    from dataclasses import replace

    back = [replace(one, kind="withdraw", new=None) for one in made]
    now = reviewed_grounding(GROUNDED, [*made, *back]).grounded
    assert now.segments.equals(GROUNDED.segments)
    assert now.moves.equals(GROUNDED.moves)


def programs(terrain: Terrain) -> st.SearchStrategy[list[Instruction]]:
    places = st.sampled_from([*terrain.places, START, FINISH, EXIT])
    step = st.one_of(
        st.builds(lambda way, n: Instruction("MOVE", way, n), st.sampled_from(MOVE_WAYS), st.integers(1, 9)),
        st.builds(lambda place: Instruction("GOTO", place=place), places),
        st.builds(lambda place: Instruction("BUY", place=place), st.sampled_from(terrain.places)),
        st.sampled_from(
            [Instruction("PAY"), Instruction("LEAVE"), Instruction("BACK"), Instruction("ALONG")]
        ),
    )
    return st.lists(step, max_size=6)


@pytest.mark.parametrize("name", sorted(TERRAIN))
@settings(max_examples=60)
@given(data=st.data())
def test_every_way_can_be_said_in_stated_moves(name: str, data: st.DataObject) -> None:
    terrain = TERRAIN[name]
    state = data.draw(st.one_of(st.integers(0, terrain.task.n_states - 1), st.just(terrain.end)))
    position = Position(state, data.draw(st.one_of(st.none(), st.integers(0, 3))))
    told = frozenset()
    if terrain.spec.rules.phase_change == "transcript":
        told = data.draw(st.frozensets(st.sampled_from(terrain.phases[1:])))
    done = replay(data.draw(programs(terrain)), terrain, position, told=told)
    program = program_of(done.actions, terrain, position, told=told)
    again = replay(program, terrain, position, told=told)
    assert again.actions == done.actions
    assert again.states == done.states
    assert not any(again.inferred)
    assert not again.issues
    assert len(program) <= MAX_INSTRUCTIONS
    names = action_names(terrain, done.actions)
    assert program_of(names, terrain, position, told=told) == program
    typed, walked = parse_edit(", ".join(names) or "NONE", terrain, position, told=told)
    assert (typed, walked.actions) == (program, done.actions)
