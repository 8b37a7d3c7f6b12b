"""Rules first, a language model where they doubt; where both say the same, nobody needs to look.

Rules that abstain and a model that reads differently make different mistakes, so their agreement is worth
more than either. How often they agree is counted and belongs into a study's report.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Grounder, Proposal, Segment
from fidm.grounding.route.program import NOTHING, Program, same_program
from fidm.grounding.route.replay import replay

NO_WITNESS = frozenset({"no_answer", "missed", "cut_off", "prompt_cut"})
"""A model that doubts itself so is no witness for the rules, even where it says the same."""

STOPPED = frozenset({"blocked", "unreachable", "not_here"})
"""Issues after which moves say less than the program did."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often rules and model said the same.

    Parameters
    ----------
    n_asked : int
        Segments in which the rules doubted, so that the model was asked.
    n_agreed : int
        Those of them in which both led to the same moves.
    n_unanswered : int
        Those of them in which the model had no usable answer.
    n_checked : int
        Segments in which the rules were confident and the model was asked all the same.
    n_confirmed : int
        Those of them in which both led to the same moves.
    """

    n_asked: int = 0
    n_agreed: int = 0
    n_unanswered: int = 0
    n_checked: int = 0
    n_confirmed: int = 0


class Hybrid:
    """A grounder that follows the rules and asks a model where they doubt.

    Parameters
    ----------
    rules : Grounder
        Asked first, about every segment.
    model : Grounder
        Asked where the rules doubt.
    check_share : float
        The share of segments in which the rules are confident and the model is asked all the same, to
        measure how often they agree. Which ones is fixed by their words, whatever the order.
    model_weight : float
        The probability of the model's reading where the two disagree.
    """

    name = "hybrid"

    def __init__(
        self, rules: Grounder, model: Grounder, *, check_share: float = 0.0, model_weight: float = 0.5
    ) -> None:
        if not 0 <= check_share <= 1 or not 0 < model_weight < 1:
            raise GroundingError("check_share is 0 to 1, and model_weight between 0 and 1.")
        self.rules, self.model = rules, model
        self._share, self._weight = check_share, model_weight
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(asdict(Agreement()), 0)

    def provenance(self) -> Mapping[str, Any]:
        """Return the provenance of both, and how they are put together."""
        return {
            "grounder": self.name,
            "check_share": self._share,
            "model_weight": self._weight,
            "rules": dict(self.rules.provenance()),
            "model": dict(self.model.provenance()),
        }

    def agreement(self) -> Agreement:
        """Return how often both said the same so far."""
        with self._lock:
            return Agreement(**self._counts)

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way."""
        ruled = self.rules.ground(segment, context)
        if ruled.is_confident:
            return self._checked(ruled, segment, context) if self._is_drawn(segment) else ruled
        modelled = self.model.ground(segment, context)
        self._count("n_asked")
        if "no_answer" in modelled.doubts:
            self._count("n_unanswered")
            return Proposal(ruled.readings, _joined(ruled.doubts, modelled.doubts), ruled.grounder)
        if _same_moves(ruled.program, modelled.program, context):
            left = tuple(doubt for doubt in modelled.doubts if doubt in NO_WITNESS)
            if same_program(ruled.program, NOTHING):  # the rules heard something; two silences are no proof
                left = _joined(left, ruled.doubts)
            if left:
                return Proposal(ruled.readings, _joined(ruled.doubts, left), ruled.grounder)
            self._count("n_agreed")
            return Proposal.of([(ruled.program, 1.0)], (), self.name)
        both = [(ruled, 1 - self._weight), (modelled, self._weight)]
        if same_program(ruled.program, NOTHING):
            both.reverse()
        weighed = [(r.program, r.probability * weight) for said, weight in both for r in said.readings]
        found = Proposal.of(weighed, _joined(ruled.doubts, modelled.doubts, ("disagree",)))
        is_ruled = any(same_program(found.program, reading.program) for reading in ruled.readings)
        return Proposal(found.readings, found.doubts, ruled.grounder if is_ruled else modelled.grounder)

    def close(self) -> None:
        """Close both."""
        try:
            self.rules.close()
        finally:
            self.model.close()

    def _checked(self, ruled: Proposal, segment: Segment, context: Context) -> Proposal:
        """Show the model what the rules are confident of; if it is confident of something else, doubt."""
        modelled = self.model.ground(segment, context)
        if "no_answer" in modelled.doubts:
            return ruled
        same = _same_moves(ruled.program, modelled.program, context)
        self._count("n_checked")
        if same:
            self._count("n_confirmed")
        if same or not modelled.is_confident:
            return ruled
        return Proposal(ruled.readings, ("disagree",), ruled.grounder)

    def _is_drawn(self, segment: Segment) -> bool:
        if not self._share:
            return False
        text = f"{segment.number}\n{segment.text}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") < self._share * 2**64

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1


def _same_moves(one: Program, other: Program, context: Context) -> bool:
    terrain, position, told = context.terrain, context.position, context.told
    first = replay(one, terrain, position, told=told)
    second = replay(other, terrain, position, told=told)
    if first.actions != second.actions or first.end.heading != second.end.heading:
        return False
    # Different programs that a shelf stops at the same place do not say the same.
    stopped = any(issue.code in STOPPED for walk in (first, second) for issue in walk.issues)
    return not stopped or same_program(one, other)


def _joined(*doubts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(doubt for some in doubts for doubt in some))
