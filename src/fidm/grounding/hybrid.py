"""Rules and a language model read every segment; where both say the same, nobody needs to look.

Rules that abstain and a model that reads differently make different mistakes, so their agreement is worth
more than either. How often they agree is counted: it is the figure for the quality of a study's grounding
that needs nobody's judgement, and stands in the provenance, on the terminal and in the report.

Only where the rules are sure that nothing is said about the way is the model not asked. Silence is easy to
agree on: segments in which neither reads anything are not in the figure.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Grounder, Proposal, Segment
from fidm.grounding.route.program import NOTHING, Program, same_program
from fidm.grounding.route.replay import replay
from fidm.stats import wilson

NO_WITNESS = frozenset({"no_answer", "missed", "cut_off", "prompt_cut"})
"""A model that doubts itself so is no witness for the rules, even where it says the same."""

FAINT = frozenset({"unsure"})
"""Doubts of rules that heard nothing and found nothing in particular wrong; a silent model lifts them."""

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
    n_silent : int
        Those of them in which neither read anything about the way.
    n_checked : int
        Segments in which the rules were confident and the model was asked all the same.
    n_confirmed : int
        Those of them in which both led to the same moves.
    """

    n_asked: int = 0
    n_agreed: int = 0
    n_unanswered: int = 0
    n_silent: int = 0
    n_checked: int = 0
    n_confirmed: int = 0

    @property
    def n_both(self) -> int:
        """How many segments that say something about the way were read by both."""
        return self.n_asked - self.n_unanswered - self.n_silent + self.n_checked

    @property
    def n_same(self) -> int:
        """In how many of them both led to the same moves."""
        return self.n_agreed + self.n_confirmed

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, and the share of segments in which both agreed with its 95 % Wilson interval."""
        counts = {name.removeprefix("n_"): n for name, n in asdict(self).items()}
        low, high = wilson(self.n_same, self.n_both)
        share = self.n_same / self.n_both if self.n_both else None
        return counts | {"both": self.n_both, "same": self.n_same, "share": share, "low": low, "high": high}


class Hybrid:
    """A grounder that follows the rules, asks a model too, and doubts where the two differ.

    Parameters
    ----------
    rules : Grounder
        Asked first, about every segment.
    model : Grounder
        Asked where the rules doubt, and to check them.
    check_share : float
        The share of segments in which the rules are confident of something about the way and the model is
        asked all the same: by default all of them. Fewer save time; which ones is then fixed by their words,
        whatever the order.
    model_weight : float
        How probable it is that the model's reading is right where the two disagree, before it is known how
        sure the rules are.
    """

    name = "hybrid"

    def __init__(
        self, rules: Grounder, model: Grounder, *, check_share: float = 1.0, model_weight: float = 0.5
    ) -> None:
        if not 0 <= check_share <= 1 or not 0 < model_weight < 1:
            raise GroundingError("check_share is 0 to 1, and model_weight between 0 and 1.")
        self.rules, self.model = rules, model
        self.check_share, self.model_weight = check_share, model_weight
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(asdict(Agreement()), 0)

    def provenance(self) -> Mapping[str, Any]:
        """Return the provenance of both, and how they are put together."""
        return {
            "grounder": self.name,
            "check_share": self.check_share,
            "model_weight": self.model_weight,
            "agreement": self.agreement().to_dict(),
            "rules": dict(self.rules.provenance()),
            "model": dict(self.model.provenance()),
        }

    def about(self, participant: str, without: Collection[str] = ()) -> Hybrid:
        """Return this grounder to read one participant; see the model's own ``about``."""
        found, about = copy(self), getattr(self.model, "about", None)
        found.model = self.model if about is None else about(participant, without)
        return found

    def agreement(self) -> Agreement:
        """Return how often both said the same so far."""
        with self._lock:
            return Agreement(**self._counts)

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose what a segment says about the way."""
        ruled = self.rules.ground(segment, context)
        if ruled.is_confident:
            is_checked = not same_program(ruled.program, NOTHING) and self._is_drawn(segment)
            return self._checked(ruled, segment, context) if is_checked else ruled
        modelled = self.model.ground(segment, context)
        self._count("n_asked")
        if "no_answer" in modelled.doubts:
            self._count("n_unanswered")
            return Proposal(ruled.readings, _joined(ruled.doubts, modelled.doubts), ruled.grounder)
        if _same_moves(ruled.program, modelled.program, context):
            left = tuple(doubt for doubt in modelled.doubts if doubt in NO_WITNESS)
            is_silent = same_program(ruled.program, NOTHING)
            if is_silent and not set(ruled.doubts) <= FAINT:  # two silences are no proof
                left = _joined(left, ruled.doubts)
            if is_silent or not left:
                self._count("n_silent" if is_silent else "n_agreed")
            if left:
                return Proposal(ruled.readings, _joined(ruled.doubts, left), ruled.grounder)
            return Proposal.of([(ruled.program, 1.0)], (), self.name)
        # one of the two is right, or neither
        both = [
            (ruled, 1 - self.model_weight),
            (modelled, self.model_weight * (1 - ruled.trusted()[0].probability)),
        ]
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
        if not self.check_share:
            return False
        text = f"{segment.number}\n{segment.text}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") < self.check_share * 2**64

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
