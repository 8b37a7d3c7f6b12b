"""Rules and model together."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from llm_dialogs import context, segment, terrain

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Grounder, Proposal, Reading, Segment
from fidm.grounding.hybrid import Agreement, Hybrid
from fidm.grounding.route.program import parse_program, write_program
from fidm.stats import wilson


@dataclass
class Stub:
    """Always says the same."""

    name: str
    program: str = "MOVE up 3"
    doubts: tuple[str, ...] = ()
    n_asked: int = 0
    closed: bool = False
    asked: list[str] = field(default_factory=list)

    def provenance(self) -> Mapping[str, Any]:
        return {"grounder": self.name}

    def ground(self, segment: Segment, context: Context) -> Proposal:
        self.asked.append(segment.text)
        program = parse_program(self.program, terrain().places)
        return Proposal((Reading(program),), self.doubts, self.name)

    def close(self) -> None:
        self.closed = True


def both(rules: Stub, model: Stub, **options) -> tuple[Proposal, Hybrid]:
    hybrid = Hybrid(rules, model, **options)
    return hybrid.ground(segment(), context()), hybrid


def test_confident_rules_are_checked_in_full_unless_told_otherwise() -> None:
    found, hybrid = both(Stub("rules"), Stub("llm", "GOTO meat"))
    assert (found.grounder, found.doubts, write_program(found.program)) == (
        "rules",
        ("disagree",),
        "MOVE up 3",
    )
    assert hybrid.agreement() == Agreement(n_checked=1)
    model = Stub("llm", "GOTO meat")
    found, hybrid = both(Stub("rules"), model, check_share=0.0)
    assert (found.grounder, found.doubts, model.asked) == ("rules", (), [])
    assert hybrid.agreement() == Agreement()


def test_the_model_is_not_asked_where_rules_are_sure_that_nothing_was_said() -> None:
    model = Stub("llm", "GOTO meat")
    found, hybrid = both(Stub("rules", "NONE"), model)
    assert (found.doubts, model.asked, hybrid.agreement()) == ((), [], Agreement())


def test_agreement_is_a_share_of_what_both_read() -> None:
    found = Agreement(n_asked=14, n_agreed=5, n_unanswered=2, n_silent=4, n_checked=20, n_confirmed=19)
    assert (found.n_both, found.n_same) == (28, 24)
    whole = found.to_dict()
    assert {name: whole[name] for name in ("asked", "agreed", "unanswered", "silent", "checked", "confirmed")} == {
        "asked": 14, "agreed": 5, "unanswered": 2, "silent": 4, "checked": 20, "confirmed": 19,
    }  # fmt: skip
    assert whole["share"] == 24 / 28
    assert (whole["low"], whole["high"]) == wilson(24, 28)
    assert Agreement().to_dict()["share"] is None


def test_agreement_of_moves_clears_doubts() -> None:
    found, hybrid = both(Stub("rules", doubts=("unread",)), Stub("llm", "MOVE ahead 3", ("unquoted",)))
    assert (found.grounder, found.doubts, write_program(found.program)) == ("hybrid", (), "MOVE up 3")
    assert hybrid.agreement() == Agreement(n_asked=1, n_agreed=1)


def test_walks_that_a_shelf_stops_agree_only_if_the_same_was_said() -> None:
    for program, agreed in (("MOVE right 9", 1), ("MOVE right 8", 0)):
        _, hybrid = both(Stub("rules", "MOVE right 9", ("blocked",)), Stub("llm", program, ("blocked",)))
        assert hybrid.agreement() == Agreement(n_asked=1, n_agreed=agreed)


@pytest.mark.parametrize("doubt", ["missed", "cut_off", "prompt_cut"])
def test_a_model_that_doubts_itself_is_no_witness(doubt: str) -> None:
    found, hybrid = both(Stub("rules", "NONE", ("unread",)), Stub("llm", "NONE", (doubt,)))
    assert found.doubts == ("unread", doubt)
    assert hybrid.agreement() == Agreement(n_asked=1, n_silent=1)


@pytest.mark.parametrize(
    ("heard", "model", "left"),
    [
        (("unsure",), (), ()),  # the rules heard nothing, and were not sure of it
        (("set_aside",), (), ("set_aside",)),  # they heard something: two silences are no proof
        (("unsure", "unknown_words"), (), ("unsure", "unknown_words")),
        (("unsure",), ("missed",), ("unsure", "missed")),
    ],
)
def test_two_silences(heard: tuple[str, ...], model: tuple[str, ...], left: tuple[str, ...]) -> None:
    found, hybrid = both(Stub("rules", "NONE", heard), Stub("llm", "NONE", model))
    assert (write_program(found.program), found.doubts) == ("NONE", left)
    assert hybrid.agreement() == Agreement(n_asked=1, n_silent=1)
    assert hybrid.agreement().n_both == 0


def test_disagreement_keeps_both_readings() -> None:
    found, hybrid = both(Stub("rules", doubts=("unread",)), Stub("llm", "MOVE up 2", ("unquoted",)))
    assert found.doubts == ("unread", "unquoted", "disagree")
    assert [(write_program(r.program), r.probability) for r in found.readings] == [
        ("MOVE up 3", 0.5),
        ("MOVE up 2", 0.25),
    ]
    assert found.grounder == "rules"
    assert hybrid.agreement() == Agreement(n_asked=1)
    found, _ = both(Stub("rules", doubts=("unread",)), Stub("llm", "MOVE up 2"), model_weight=0.7)
    assert (found.grounder, write_program(found.program)) == ("llm", "MOVE up 2")
    found, _ = both(Stub("rules", "NONE", ("unread",)), Stub("llm", "MOVE up 2"), model_weight=0.7)
    assert (found.grounder, write_program(found.program)) == ("llm", "MOVE up 2")


def test_no_answer_leaves_the_rules_and_their_doubts() -> None:
    found, hybrid = both(Stub("rules", "NONE", ("unread",)), Stub("llm", "NONE", ("no_answer", "timeout")))
    assert (found.grounder, found.doubts) == ("rules", ("unread", "no_answer", "timeout"))
    assert hybrid.agreement() == Agreement(n_asked=1, n_unanswered=1)


def test_a_share_of_confident_segments_is_checked() -> None:
    texts = [f"up three {i}" for i in range(400)]
    drawn = []
    for order in (texts, texts[::-1]):
        model = Stub("llm", "MOVE up 2")
        hybrid = Hybrid(Stub("rules"), model, check_share=0.25)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text, hybrid=hybrid: hybrid.ground(segment(text), context()), order))
        drawn.append(set(model.asked))
        assert 60 < len(model.asked) < 140
        assert hybrid.agreement() == Agreement(n_checked=len(model.asked))
        assert sum(p.doubts == ("disagree",) for p in found) == len(model.asked)
        assert {write_program(p.program) for p in found} == {"MOVE up 3"}
    assert drawn[0] == drawn[1]
    found, hybrid = both(Stub("rules"), Stub("llm"), check_share=1.0)
    assert (found.is_confident, hybrid.agreement()) == (True, Agreement(n_checked=1, n_confirmed=1))
    found, hybrid = both(Stub("rules"), Stub("llm", "GOTO meat", ("unquoted",)), check_share=1.0)
    assert (found.is_confident, hybrid.agreement()) == (True, Agreement(n_checked=1))
    found, hybrid = both(Stub("rules"), Stub("llm", doubts=("no_answer",)), check_share=1.0)
    assert (found.is_confident, hybrid.agreement()) == (True, Agreement())


def test_provenance_settings_and_closing() -> None:
    rules, model = Stub("rules"), Stub("llm")
    hybrid: Grounder = Hybrid(rules, model)
    assert hybrid.name == "hybrid"
    assert hybrid.provenance()["rules"] == {"grounder": "rules"}
    assert (hybrid.provenance()["check_share"], hybrid.provenance()["agreement"]["both"]) == (1.0, 0)
    hybrid.close()
    assert rules.closed
    assert model.closed
    for options in ({"check_share": 2}, {"model_weight": 0}, {"model_weight": 1}):
        with pytest.raises(GroundingError):
            Hybrid(rules, model, **options)
