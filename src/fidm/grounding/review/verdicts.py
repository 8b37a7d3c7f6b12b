"""What a dialog comes to once people have looked at it: which decisions hold, and what follows from them.

The grounder's proposals are never changed. A dialog is walked again from its start, and each segment is what
was decided about it, or else what was proposed. A decision about a segment holds as long as the figure starts
where it did when the decision was made and the program comes to the same moves; if a correction before it has
moved the figure, somebody must look again. What each doubt means is said here too, in words for people.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from fidm.errors import GroundingError
from fidm.grounding.base import Proposal, Segment
from fidm.grounding.dialog import (
    CONFIRMED,
    CONTRADICTED,
    OTHER_READING,
    GroundedDialog,
    GroundedSegment,
    Status,
    status_of,
)
from fidm.grounding.llm.client import FAILURES
from fidm.grounding.review.edits import action_names
from fidm.grounding.review.trail import Decision, Kind, Outcome, words_hash
from fidm.grounding.route.program import Instruction, Program, parse_program, same_program, write_program
from fidm.grounding.route.replay import MEANING, Position, Replay, Terrain, replay

BY_HAND = "review"
"""Who proposed a program that a person decided on."""

MOVED, DIFFER = "moved_since_review", "reviewers_differ"

REVIEW_MEANING: dict[str, str] = {
    MOVED: "somebody decided on it, but the figure now starts elsewhere or the words are read on another map",
    DIFFER: "reviewers decided differently, and nobody has settled it",
}
"""What each doubt that comes from a review means."""

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class ReviewedSegment:
    """A segment, as it was proposed and as it stands.

    Parameters
    ----------
    grounded : GroundedSegment
        As it stands now.
    proposed : GroundedSegment
        As the grounder left it.
    start : Position
        Where the figure is before it.
    replay : Replay
        Its moves, from there.
    actions : tuple of str
        The same, by name.
    decision : Decision or None
        The decision in force; None where there is none, or where reviewers differ.
    decisions : tuple of Decision
        The latest of each reviewer that was not withdrawn, oldest first.
    is_stale : bool
        Somebody decided on it, but not where the figure starts now.
    reviewers_differ : bool
        Whether reviewers decided differently, and nobody has settled it.
    """

    grounded: GroundedSegment
    proposed: GroundedSegment
    start: Position
    replay: Replay
    actions: tuple[str, ...]
    decision: Decision | None = None
    decisions: tuple[Decision, ...] = ()
    is_stale: bool = False
    reviewers_differ: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether a decision is in force and holds."""
        return self.decision is not None and not self.is_stale

    @property
    def program(self) -> Program:
        """What it is read as."""
        return self.grounded.proposal.program


@dataclass(frozen=True, slots=True)
class Change:
    """What a decision changes about another segment.

    Parameters
    ----------
    segment : int
        The number of the segment.
    old_actions, new_actions : tuple of str
        Its actions before and after.
    old_status, new_status : str
        Its status before and after.
    """

    segment: int
    old_actions: tuple[str, ...]
    new_actions: tuple[str, ...]
    old_status: Status
    new_status: Status


def segment_key(dialog: GroundedDialog, one: GroundedSegment) -> Key:
    """Return what makes a segment the same one in any grounding: whose, when, and the words."""
    turns = " ".join(str(turn + 1) for turn in one.segment.turns)
    return (
        dialog.transcript.participant,
        dialog.transcript.episode,
        turns,
        words_hash(one.segment.text),
    )


def by_dialog(decisions: Iterable[Decision]) -> dict[tuple[str, str], list[Decision]]:
    """Return decisions by the participant and the episode they are about."""
    found: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions:
        found.setdefault((decision.participant, decision.episode), []).append(decision)
    return found


def by_segment(decisions: Iterable[Decision]) -> dict[Key, list[Decision]]:
    """Return decisions by the segment they are about, oldest first."""
    found: dict[Key, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(decision.key, []).append(decision)
    return found


def latest_of_each(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the latest decision of each reviewer about one segment, without those that were withdrawn."""
    last: dict[str, Decision] = {}
    for decision in decisions:
        last.pop(decision.reviewer, None)
        last[decision.reviewer] = decision
    return tuple(decision for decision in last.values() if decision.kind != "withdraw")


def review_dialog(
    dialog: GroundedDialog, decisions: Sequence[Decision], terrain: Terrain
) -> tuple[ReviewedSegment, ...]:
    """Walk a dialog as it stands after what people decided.

    Parameters
    ----------
    dialog : GroundedDialog
        The dialog as the grounder left it.
    decisions : sequence of Decision
        Decisions, oldest first; those about other dialogs change nothing.
    terrain : Terrain
        The map.
    """
    known = by_segment(decisions)
    here = before = terrain.start()
    found = []
    for one in dialog.segments:
        for phase in one.segment.opened:
            here = terrain.tell(here, phase, dialog.told)
            before = terrain.tell(before, phase, dialog.told)
        proposed = replay(one.proposal.program, terrain, before, told=dialog.told)
        made = known.get(segment_key(dialog, one), [])
        now = _judged(one, latest_of_each(made), here, dialog.told, terrain)
        if now is None:
            now = _unjudged(one, proposed, here, is_moved=here != before, told=dialog.told, terrain=terrain)
        found.append(now)
        here, before = now.replay.end, proposed.end
    return tuple(found)


def _unjudged(
    one: GroundedSegment,
    proposed: Replay,
    here: Position,
    *,
    is_moved: bool,
    told: frozenset[str],
    terrain: Terrain,
) -> ReviewedSegment:
    """A segment nobody decided on; its doubts about the map are those of where it starts now."""
    done = replay(one.proposal.program, terrain, here, told=told)
    if not is_moved:
        return ReviewedSegment(one, one, here, done, action_names(terrain, done.actions))
    own = [doubt for doubt in one.doubts if doubt not in proposed.doubts and doubt != CONFIRMED]
    doubts = tuple(dict.fromkeys((*own, *done.doubts)))
    status = status_of(doubts, one.proposal.program)
    proposal = replace(one.proposal, doubts=doubts)
    now = replace(one, proposal=proposal, status=status, doubts=doubts)
    return ReviewedSegment(now, one, here, done, action_names(terrain, done.actions))


def _judged(
    one: GroundedSegment,
    latest: tuple[Decision, ...],
    here: Position,
    told: frozenset[str],
    terrain: Terrain,
) -> ReviewedSegment | None:
    """A segment somebody decided on; None where nobody has, or everybody took it back."""
    if not latest:
        return None
    holding = tuple(d for d in latest if _holds(d, here, told, terrain))
    counted = _unsettled(holding or latest)
    differ = len({_verdict(d, here, told, terrain) for d in counted}) > 1
    stale = not holding
    decision = None if differ and not stale else counted[-1]
    if decision is not None and decision.kind == "reject" and not stale:
        done = replay(one.proposal.program, terrain, here, told=told)
        proposal = replace(one.proposal, doubts=())
        now = replace(one, proposal=proposal, status="rejected", doubts=())
        return ReviewedSegment(now, one, here, done, action_names(terrain, done.actions), decision, latest)
    sources = counted if decision is None else (decision,)
    programs = [program for d in sources if (program := _program(d, one, terrain)) is not None]
    # Of a decision that names a place the map has no more, nothing is left but what was proposed.
    proposal = (
        Proposal.of([(program, 1.0) for program in programs], grounder=BY_HAND) if programs else one.proposal
    )
    done = replay(proposal.program, terrain, here, told=told)
    doubts: tuple[str, ...] = (*([MOVED] if stale else []), *([DIFFER] if differ else []))
    status: Status = "needs_review" if doubts else "reviewed"
    if doubts:
        doubts = tuple(dict.fromkeys((*doubts, *done.doubts)))
    now = replace(one, proposal=replace(proposal, doubts=doubts), status=status, doubts=doubts)
    actions = action_names(terrain, done.actions)
    return ReviewedSegment(now, one, here, done, actions, decision, latest, stale, differ)


def _unsettled(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """The decisions from the one on that settled those before it."""
    settling = [i for i, decision in enumerate(decisions) if decision.settles]
    return decisions[settling[-1] :] if settling else decisions


def _verdict(decision: Decision, here: Position, told: frozenset[str], terrain: Terrain) -> Hashable:
    """What a decision comes to, the same for those that agree: the moves, and which of them are inferred."""
    if decision.new is None:
        return None
    program = _parsed(decision.new, terrain)
    inferred = () if program is None else replay(program, terrain, here, told=told).inferred
    return decision.new.actions, tuple(inferred)


def _holds(decision: Decision, here: Position, told: frozenset[str], terrain: Terrain) -> bool:
    """Whether a decision was made about what is there now."""
    if decision.task != terrain.task.fingerprint:
        return False
    if decision.new is None:
        return decision.kind == "reject"
    if decision.start != here.state:
        return False
    program = _parsed(decision.new, terrain)
    if program is None:
        return False
    done = replay(program, terrain, here, told=told)
    return action_names(terrain, done.actions) == decision.new.actions


def _parsed(outcome: Outcome, terrain: Terrain) -> Program | None:
    try:
        return parse_program(outcome.program, terrain.places)
    except GroundingError:  # a place the map has no more
        return None


def _program(decision: Decision, one: GroundedSegment, terrain: Terrain) -> Program | None:
    """The program somebody decided on, with the words it came from."""
    program = None if decision.new is None else _parsed(decision.new, terrain)
    return None if program is None else with_spans(program, one)


def with_spans(program: Program, one: GroundedSegment) -> Program:
    """Return a program with the words of each instruction.

    An instruction that the grounder has read too keeps its words, and one that it has read with another
    number of squares has the words of that. Any other is led back to the whole of the longest turn.
    """
    spans: list[tuple[int, int] | None] = [None] * len(program)
    readings = sorted(one.proposal.readings, key=lambda r: not same_program(r.program, program))
    for alike in (str, _kind_of):
        wanted = [alike(step) for step in program]
        for reading in readings:
            known = [alike(step) for step in reading.program]
            for block in SequenceMatcher(None, wanted, known, autojunk=False).get_matching_blocks():
                for k in range(block.size):
                    spans[block.a + k] = spans[block.a + k] or reading.program[block.b + k].span
    longest = _longest_turn(one.segment)
    return tuple(
        replace(step, span=span or longest, probability=1.0)
        for step, span in zip(program, spans, strict=True)
    )


def _kind_of(step: Instruction) -> str:
    """An instruction without its number of squares."""
    return str(replace(step, squares=None, to_end=False))


def _longest_turn(segment: Segment) -> tuple[int, int]:
    """The stretch of a segment's text that is its longest turn."""
    ends = (*(start - 1 for start in segment.starts[1:]), len(segment.text))
    return max(zip(segment.starts, ends, strict=True), key=lambda span: span[1] - span[0])


def reviewed_dialog(dialog: GroundedDialog, segments: Sequence[ReviewedSegment]) -> GroundedDialog:
    """Return a dialog with its segments as they stand."""
    return replace(dialog, segments=tuple(one.grounded for one in segments))


def decide(
    dialog: GroundedDialog,
    segment: ReviewedSegment,
    terrain: Terrain,
    *,
    reviewer: str,
    kind: Kind,
    edit: tuple[Program, Replay] | None = None,
    comment: str = "",
    settles: bool = False,
    sample: str = "",
) -> Decision:
    """Return a decision about a segment as it stands, to be added to the trail.

    Parameters
    ----------
    dialog : GroundedDialog
        The dialog.
    segment : ReviewedSegment
        The segment, as the reviewer saw it.
    terrain : Terrain
        The map.
    reviewer : str
        Who decides.
    kind : str
        ``accept``, ``edit``, ``reject`` or ``withdraw``.
    edit : tuple of Program and Replay, optional
        What it is to be read as, from :func:`fidm.grounding.review.edits.parse_edit`; needed to edit.
    comment : str
        Why.
    settles : bool
        Whether the reviewer saw that others differ.
    sample : str
        The audit sample it belongs to.
    """
    if (kind == "edit") != (edit is not None):
        raise GroundingError("An edit needs what the segment is to be read as, and nothing else does.")
    old = Outcome(write_program(segment.program), segment.actions)
    new = old if kind == "accept" else None
    if edit is not None:
        new = Outcome(write_program(edit[0]), action_names(terrain, edit[1].actions))
    participant, episode, turns, words = segment_key(dialog, segment.proposed)
    return Decision(
        reviewer=reviewer,
        kind=kind,
        participant=participant,
        episode=episode,
        segment=str(segment.proposed.segment.number),
        turns=turns,
        words=words,
        task=terrain.task.fingerprint,
        start=segment.start.state,
        old=old,
        new=new,
        comment=comment,
        settles=settles,
        sample=sample,
    )


def changed_after(before: Sequence[ReviewedSegment], after: Sequence[ReviewedSegment]) -> tuple[Change, ...]:
    """Return which segments of a dialog are not what they were.

    Parameters
    ----------
    before, after : sequence of ReviewedSegment
        The same dialog, walked twice.
    """
    found = []
    for one, other in zip(before, after, strict=True):
        is_same = one.actions == other.actions and one.grounded.status == other.grounded.status
        if not is_same:
            number, was, now = one.proposed.segment.number, one.grounded.status, other.grounded.status
            found.append(Change(number, one.actions, other.actions, was, now))
    return tuple(found)


def doubtfulness(segment: ReviewedSegment) -> float:
    """Return how much a segment needs somebody to look at it: 0 where that is settled, more for more doubt.

    First come segments about which reviewers differ, then those whose start was moved after a decision, then
    those marked for review, the least probable reading first, then the others in the same order.
    """
    if segment.is_settled:
        return 0.0
    if segment.reviewers_differ:
        return 4.0
    if segment.is_stale:
        return 3.0
    unsure = 1.0 - segment.proposed.proposal.sureness
    filled = sum(segment.replay.inferred) / max(1, len(segment.replay))
    little = 0.05 * min(4, len(segment.grounded.doubts)) + 0.05 * filled
    return (1.5 if segment.grounded.status == "needs_review" else 0.1) + unsure + little


OF_RULES: Mapping[str, str] = {
    "unknown_words": "too many words that are in no word list",
    "unread_words": "a word about the way, such as “left” or a number, was not used",
    "vague": "a distance or place that is none: “a bit”, “the corner”",
    "place_unused": "a place was named, and nothing was done with it",
    "ambiguous_place": "a word that several sections have; the first was taken",
    "not_in_reach": "what is taken, or the place named, is not in reach of where the moves lead",
    "set_aside": "something taken for a question, a thought or a negation reads like an instruction",
    "unresolved_repair": "something was taken back, and it is not clear what",
    "maybe_repair": "“hold on”, and then another version: taken back, or in addition?",
    "mixed_frames": "“turn left, then go left”: the figure’s own left, and then the map’s?",
    "said_twice": "the same thing taken twice in a row; read as once",
    "bought_elsewhere": "something is said to be taken that is elsewhere",
    "too_long": "more than can be read as a whole; the rest is left out",
    "what_to_buy": "“I take it”, with no section or several in reach",
    "where_to": "“go there”, with no place named before",
    "turn": "a turn that does not say where to",
    "back": "a way back that does not say where to",
    "along": "a way along something that does not say where to",
    "only_named": "something was named without a verb; read as a purchase",
    "named_aside": "something is named that may be talked of rather than meant",
    "counted_on": "two distances in a row: does the second replace the first or add to it?",
    "not_there": "a place that was said to be passed is not on the way",
    "not_straight": "the place is not straight ahead in the direction named; the way there was filled in",
    "reread": "the words speak for another reading than that of the grammar",
    "talked_of": "a place was mentioned, but not in an instruction",
    "undecided": "two alternatives were left open: “two, or was it six?”",
    "nothing_done": "words about going or buying from which no instruction could be read",
}
"""What the doubts of the rules mean."""

OF_MODELS: Mapping[str, str] = {
    "no_answer": "the language model gave nothing usable",
    "cut_off": "the language model’s answer was cut off",
    "prompt_cut": "the language model seems to have read only a part",
    "repaired": "the language model’s first answer did not fit the map; this is its second",
    "disagree": "several readings of the same words differ",
    "unsure": "the grounder is unsure",
    "missed": "an empty answer, though the words name a place or something to do",
    "unquoted": "an instruction whose words nobody said was left out",
    "requoted": "an instruction whose words an earlier one had used was left out",
    "full": "as many instructions as fit; some may be missing",
    "not_json": "its answer is not in the form that was asked for",
    "wrong_form": "its answer is not in the form that was asked for",
    "loop": "its answer goes round in circles",
    "unknown_place": "its answer names a place that the task does not have",
    **FAILURES,
}
"""What the doubts of language models mean, and what may stand beside ``no_answer``."""

OF_DIALOGS: Mapping[str, str] = {
    CONTRADICTED: "the assessor’s next turn names another place than the one reached",
    OTHER_READING: "a less probable reading is used because later turns fit it better",
    CONFIRMED: "later turns confirm the reading",
}
"""What the rest of a dialog says of a segment."""

MEANINGS: Mapping[str, str] = {
    **{str(code): words for code, words in MEANING.items()},
    **OF_MODELS,
    **OF_RULES,
    **OF_DIALOGS,
    **REVIEW_MEANING,
}
"""All of them: issues of the replay, doubts of the built-in grounders, and of the dialog, and of reviews."""


def doubt_in_words(code: str) -> str:
    """Return what a doubt means; a code of somebody's own grounder is shown as it is.

    Examples
    --------
    >>> doubt_in_words("unsure"), doubt_in_words("odd_accent")
    ('the grounder is unsure', 'odd accent')
    """
    return MEANINGS.get(code, code.replace("_", " "))
