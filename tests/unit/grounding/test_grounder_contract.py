"""The contract test for grounders, and a segmenting rule of one's own."""

from __future__ import annotations

import itertools

import pytest

import fidm
from fidm.grounding.base import Proposal, Reading, Segment
from fidm.grounding.route.program import NOTHING, Instruction
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.segment import Cut
from fidm.io.talk import Transcript, Turn
from fidm.testing import check_grounder


class Fixed:
    """A grounder that always answers the same."""

    name = "fixed"

    def __init__(self, proposal):
        self.proposal = proposal

    def provenance(self):
        return {"grounder": self.name}

    def ground(self, segment, context):
        return self.proposal if isinstance(self.proposal, Proposal) else next(self.proposal)

    def close(self):
        pass


def test_the_rules_keep_the_contract():
    for name in ("grocery", "grocery_small", "errands"):
        check_grounder(Rules(), task=fidm.load_task(name))


@pytest.mark.parametrize(
    ("proposal", "complaint"),
    [
        (Proposal((Reading(NOTHING, 1.0), Reading(NOTHING, 0.5))), "sum to more than one"),
        (Proposal((Reading(NOTHING, 0.2), Reading(NOTHING, 0.8))), "most probable is not first"),
        (Proposal((Reading((Instruction("GOTO", place="moon"),)),)), "not in the route language"),
        (Proposal((Reading((Instruction("PAY", span=(0, 9_999)),)),)), "lies outside the text"),
        (Proposal(()), "no Proposal with readings"),
        (iter(Proposal(doubts=(str(i),)) for i in itertools.count()), "it answers differently"),
    ],
)
def test_a_broken_grounder_is_told_what_is_wrong(proposal, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_grounder(Fixed(proposal))


def test_what_is_no_grounder_lacks_its_members():
    with pytest.raises(AssertionError, match="lacks name, provenance, ground, close"):
        check_grounder(object())


def test_segments_can_be_cut_by_another_rule():
    def one_per_turn(transcript, vocabulary, spec, segmenting):
        own = [i for i, turn in enumerate(transcript.turns) if turn.role == "participant"]
        cut = [Segment(n + 1, transcript.turns[i].text, (i,), (0,), (i,)) for n, i in enumerate(own)]
        return Cut(tuple(cut), frozenset(), ("",) * len(transcript.turns))

    said = ("go left one square", "up two squares", "up one square")
    turns = tuple(Turn("PAR", 2.0 * i, 2.0 * i + 1, text, role="participant") for i, text in enumerate(said))
    task = fidm.load_task("grocery")
    grounded = fidm.ground([Transcript("P1", turns)], task, segmenter=one_per_turn)
    assert grounded.cohort.segments["n_moves"].to_list() == [1, 2, 1]
    assert "one_per_turn" in grounded.provenance["segmenter"]
